//! Bringing several series to one step, and the arithmetic of columns.

use std::borrow::Cow;

use super::EvalError;
use crate::series::{Aggregation, Series, Step, enough};

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
        let mut steps = series.clone().into_iter().map(|s| s.step().seconds());
        let Some(first) = steps.next() else { return Ok(None) };
        let step = steps.try_fold(first, least_common_multiple).and_then(Step::new);
        let step = step.ok_or_else(|| EvalError::new("the steps of the series have no usable common multiple"))?;
        let rows = series.clone().into_iter().map(|s| consolidated_to(s, step)).collect();
        let start = series.clone().into_iter().map(Series::start).min().unwrap_or_default();
        let end = series.into_iter().map(Series::end).max().unwrap_or_default();
        let end = end - (end - start).rem_euclid(step.seconds());
        Ok(Some(Self { rows, start, end, step }))
    }

    /// Number of points of the longest row.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.iter().map(|r| r.len()).max().unwrap_or(0)
    }

    /// Each column reduced to one value; absent where fewer than `x_files_factor` of the series are known.
    #[must_use]
    pub fn reduce(&self, function: Aggregation, x_files_factor: f64) -> Vec<f64> {
        let len = self.len();
        let mut column = Vec::with_capacity(self.rows.len());
        let mut out = Vec::with_capacity(len);
        for i in 0..len {
            column.clear();
            column.extend(self.rows.iter().map(|r| r.get(i).copied().unwrap_or(f64::NAN)));
            let known = column.iter().filter(|v| !v.is_nan()).count();
            let value = if enough(known, column.len(), x_files_factor) { function.apply(&column) } else { f64::NAN };
            out.push(value);
        }
        out
    }
}

/// The points of a series at a coarser step (a multiple of its own).
pub(crate) fn consolidated_to(series: &Series, step: Step) -> Cow<'_, [f64]> {
    let points = step.seconds() / series.step().seconds();
    if points <= 1 { Cow::Borrowed(series.values()) } else { Cow::Owned(series.consolidated(points as usize)) }
}

fn least_common_multiple(a: i64, b: i64) -> Option<i64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}
