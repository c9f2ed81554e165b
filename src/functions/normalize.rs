//! Bringing several series to one step.

use std::borrow::Cow;

use super::{EvalError, columns, least_common_multiple};
use crate::series::{Aggregation, Series, Step};

/// Series brought to one step: row `i` holds the points of series `i`.
///
/// As graphite-web does it: the step is the least common multiple, each series is consolidated to it with its own
/// function **from its own start**, and points of different series belong together by index, not by time.
pub(crate) struct Normalized<'a> {
    /// The points of each series.
    pub rows: Vec<Cow<'a, [f64]>>,
    /// The earliest start.
    pub start: i64,
    /// The latest end, cut to whole steps from the start.
    pub end: i64,
    /// The common step.
    pub step: Step,
}

impl<'a> Normalized<'a> {
    /// `None` when there is no series.
    ///
    /// # Errors
    /// The common step is longer than a step can be.
    pub fn new<I>(series: I) -> Result<Option<Self>, EvalError>
    where
        I: IntoIterator<Item = &'a Series> + Clone,
    {
        let Some(frame) = Frame::of(series.clone())? else { return Ok(None) };
        let rows = series.into_iter().map(|s| consolidated_to(s, frame.step)).collect();
        Ok(Some(Self { rows, start: frame.start, end: frame.end, step: frame.step }))
    }

    /// Each column reduced to one value; absent where fewer than `x_files_factor` of the series are known.
    #[must_use]
    pub fn reduce(&self, function: Aggregation, x_files_factor: f64) -> Vec<f64> {
        columns::reduce(&self.rows, function, x_files_factor)
    }

    /// Start, end and step alone.
    #[must_use]
    pub fn frame(&self) -> Frame {
        Frame { start: self.start, end: self.end, step: self.step }
    }
}

/// Start, end and step that several series have together; see [`Normalized`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The earliest start.
    pub start: i64,
    /// The latest end, cut to whole steps from the start.
    pub end: i64,
    /// The least common multiple of the steps.
    pub step: Step,
}

impl Frame {
    /// That of one series.
    #[must_use]
    pub fn alone(series: &Series) -> Self {
        Self { start: series.start(), end: series.end(), step: series.step() }
    }

    /// `None` when there is no series.
    ///
    /// # Errors
    /// The common step is longer than a step can be.
    pub fn of<'a, I>(series: I) -> Result<Option<Self>, EvalError>
    where
        I: IntoIterator<Item = &'a Series>,
    {
        let mut series = series.into_iter();
        let Some(first) = series.next() else { return Ok(None) };
        let mut frame = Self::alone(first);
        for s in series {
            frame.start = frame.start.min(s.start());
            frame.end = frame.end.max(s.end());
            if s.step() != frame.step {
                let common = least_common_multiple(frame.step.seconds(), s.step().seconds()).and_then(Step::new);
                frame.step =
                    common.ok_or_else(|| EvalError::new("the steps of the series have no usable common multiple"))?;
            }
        }
        frame.end -= (frame.end - frame.start).rem_euclid(frame.step.seconds());
        Ok(Some(frame))
    }
}

/// The points of a series at a coarser step (a multiple of its own).
pub(crate) fn consolidated_to(series: &Series, step: Step) -> Cow<'_, [f64]> {
    let points = step.seconds() / series.step().seconds();
    if points <= 1 { Cow::Borrowed(series.values()) } else { Cow::Owned(series.consolidated(points as usize)) }
}
