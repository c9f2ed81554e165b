//! Time series and what is said about them: names, tags, steps, ranges, consolidation.
//!
//! This module knows neither where a series comes from nor what is done with it. It keeps two invariants: a step
//! is at least one second, and a [`TimeRange`] is never empty.
//!
//! A value is an `f64`; **NaN means absent** (Graphite's `None`). Infinity is a value.

mod aggregation;
mod glob;
mod python;
mod style;
mod tags;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

pub use aggregation::{Aggregation, Consolidation};
pub use glob::{Component, Glob, GlobError};
pub use python::{float_repr, format_d, format_g, round_digits};
pub use style::Style;
pub use tags::{SeriesNameError, TagOperator, TagPattern, TagQuery, TagQueryError, TagQuerySpec, Tags};

/// The distance between two points, in whole seconds; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step(NonZeroU32);

impl Step {
    /// One second.
    pub const SECOND: Step = Step(NonZeroU32::MIN);

    /// `None` when `seconds` is not in `1..=u32::MAX`.
    #[must_use]
    pub fn new(seconds: i64) -> Option<Self> {
        u32::try_from(seconds).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// The step in seconds, signed because it is used in arithmetic with timestamps.
    #[must_use]
    pub fn seconds(self) -> i64 {
        i64::from(self.0.get())
    }

    /// `time` rounded down to a multiple of this step.
    #[must_use]
    pub fn floor(self, time: i64) -> i64 {
        time - time.rem_euclid(self.seconds())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The time that a request asks for, in seconds since the epoch. `from` itself is not a part of it, `until` is:
/// a store answers the points with `from < t <= until`, rounded to its step (see [`TimeRange::aligned`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimeRange {
    from: i64,
    until: i64,
}

impl TimeRange {
    /// `None` when `from` is not before `until`.
    #[must_use]
    pub fn new(from: i64, until: i64) -> Option<Self> {
        (from < until).then_some(Self { from, until })
    }

    /// Seconds since the epoch; exclusive.
    #[must_use]
    pub fn from(self) -> i64 {
        self.from
    }

    /// Seconds since the epoch; inclusive.
    #[must_use]
    pub fn until(self) -> i64 {
        self.until
    }

    /// Length in seconds, at least one.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.until - self.from
    }

    /// The same range with its start moved back by `seconds`; a negative number moves it forward, as far as the
    /// range does not become empty.
    #[must_use]
    pub fn reaching_back(self, seconds: i64) -> Self {
        Self { from: self.from.saturating_sub(seconds).min(self.until - 1), ..self }
    }

    /// Both ends moved by `seconds` (negative: to the past).
    #[must_use]
    pub fn shifted(self, seconds: i64) -> Self {
        Self { from: self.from.saturating_add(seconds), until: self.until.saturating_add(seconds) }
    }

    /// First timestamp and end (exclusive) of the points that a store with this step answers: Graphite's rounding,
    /// which every Graphite store shares. `start = floor(from) + step`, `end = floor(until) + step`, and never
    /// less than one point.
    #[must_use]
    pub fn aligned(self, step: Step) -> (i64, i64) {
        let start = step.floor(self.from) + step.seconds();
        let end = step.floor(self.until) + step.seconds();
        (start, if end <= start { start + step.seconds() } else { end })
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.from, self.until)
    }
}

/// What a storage is asked for: a glob, or a `seriesByTag(..)` / `events(..)` call, in canonical spelling.
///
/// A glob keeps its backslashes (`foo\{x\}` is a literal brace), so that it means the same when it is sent on.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathExpression(Arc<str>);

impl PathExpression {
    /// Takes canonical text; the binder makes it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The canonical text, as it is sent to a backend.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this asks by tags: a `seriesByTag(..)` call.
    #[must_use]
    pub fn is_tag_query(&self) -> bool {
        self.0.starts_with("seriesByTag(")
    }

    /// The arguments of a call, without their quotes; `None` for a glob.
    #[must_use]
    pub fn arguments(&self) -> Option<Vec<String>> {
        if self.is_tag_query() || self.is_event_query() { tags::call_arguments(&self.0) } else { None }
    }

    /// Whether this asks for events: an `events(..)` call.
    #[must_use]
    pub fn is_event_query(&self) -> bool {
        self.0.starts_with("events(")
    }
}

impl fmt::Display for PathExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PathExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// What evaluation looks up and a backend is asked for: one pattern over one range.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Selector {
    /// Which series.
    pub pattern: PathExpression,
    /// Over which time.
    pub range: TimeRange,
}

/// A regular time series.
///
/// Cloning is cheap: name, tags and values are shared until one of the copies is changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend and `target` in JSON show.
    pub name: Arc<str>,
    /// The expression that this series stands for in the name of an aggregate (`sumSeries(<this>)`). A fetched
    /// series has the pattern that it was asked by; which functions set it is copied from graphite-web.
    pub path_expression: Arc<str>,
    /// Tags by name; always with `name` for a fetched series.
    pub tags: Arc<Tags>,
    /// How points are joined when there are more than the client wants.
    pub consolidation: Consolidation,
    /// The least share (0 to 1) of known points for a consolidated point to be known.
    pub x_files_factor: f64,
    /// How it is drawn; `None` when nothing was said.
    pub style: Option<Arc<Style>>,
    start: i64,
    end: i64,
    step: Step,
    values: Arc<Vec<f64>>,
}

impl Series {
    /// A series that ends where its values end, consolidated by average, with its own name as path expression and
    /// the tags that its name holds (`disk;host=a`).
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, start: i64, step: Step, values: Vec<f64>) -> Self {
        let name = name.into();
        let tags = Arc::new(Tags::of_name(&name));
        Self::with_tags(name, tags, start, step, values)
    }

    /// Like [`Series::new`], with given tags.
    #[must_use]
    pub fn with_tags(name: impl Into<Arc<str>>, tags: Arc<Tags>, start: i64, step: Step, values: Vec<f64>) -> Self {
        let name = name.into();
        let end = start + step.seconds() * values.len() as i64;
        Self {
            path_expression: name.clone(),
            name,
            tags,
            consolidation: Consolidation::default(),
            x_files_factor: 0.0,
            style: None,
            start,
            end,
            step,
            values: Arc::new(values),
        }
    }

    /// Like [`Series::new`], with values that other series (or other answers) share.
    #[must_use]
    pub fn sharing(name: impl Into<Arc<str>>, start: i64, step: Step, values: Arc<Vec<f64>>) -> Self {
        let mut new = Self::new(name, start, step, Vec::new());
        new.end = start + step.seconds() * values.len() as i64;
        new.values = values;
        new
    }

    /// A new series like this one: same tags, consolidation and xFilesFactor, no style; its name is also its path
    /// expression. (What graphite-web's `TimeSeries.copy` keeps; functions that compute new values use it.)
    #[must_use]
    pub fn derived(&self, name: impl Into<Arc<str>>, values: Vec<f64>) -> Self {
        self.derived_at(name, self.start, self.step, values).ending(self.end)
    }

    /// Like [`Series::derived`] with another start and step; the end follows from the values.
    #[must_use]
    pub fn derived_at(&self, name: impl Into<Arc<str>>, start: i64, step: Step, values: Vec<f64>) -> Self {
        let mut new = Self::with_tags(name, self.tags.clone(), start, step, values);
        new.consolidation = self.consolidation.clone();
        new.x_files_factor = self.x_files_factor;
        new
    }

    /// Timestamp of the first point, seconds since the epoch.
    #[must_use]
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The end, exclusive, seconds since the epoch. It is `start + step * len` for all but a few functions, of
    /// which graphite-web's answer shows another (`constantLine`, `timeShift`, `summarize`…): `raw`, `pickle` and
    /// the normalisation of several series see it, so it is kept.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Distance of two points.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// The points; NaN is absent.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The points, for changing them in place; copied first when another series shares them. The number of points
    /// cannot be changed this way, so the end stays true.
    pub fn values_mut(&mut self) -> &mut [f64] {
        Arc::make_mut(&mut self.values).as_mut_slice()
    }

    /// The tags, for changing them; copied first when shared.
    pub fn tags_mut(&mut self) -> &mut Tags {
        Arc::make_mut(&mut self.tags)
    }

    /// The style, for changing it; made when there is none.
    pub fn style_mut(&mut self) -> &mut Style {
        Arc::make_mut(self.style.get_or_insert_with(Arc::default))
    }

    /// Number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no point at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The same series under another name; the path expression stays (what graphite-web's `series.name = x` does).
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The same series under another name that is its path expression too.
    #[must_use]
    pub fn renamed(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self.path_expression = self.name.clone();
        self
    }

    /// The same series with a tag set.
    #[must_use]
    pub fn tagged(mut self, tag: &str, value: impl Into<String>) -> Self {
        self.tags_mut().set(tag, value);
        self
    }

    /// The same points beginning at `start`; the end moves along.
    #[must_use]
    pub fn starting(mut self, start: i64) -> Self {
        self.end += start - self.start;
        self.start = start;
        self
    }

    /// The same series with another stated end (see [`Series::end`]).
    #[must_use]
    pub fn ending(mut self, end: i64) -> Self {
        self.end = end;
        self
    }

    /// The same series with each known value replaced by `f` of it, in place when this is the only owner. `f` may
    /// answer NaN for "absent".
    #[must_use]
    pub fn map(mut self, f: impl Fn(f64) -> f64) -> Self {
        for value in self.values_mut() {
            if !value.is_nan() {
                *value = f(*value);
            }
        }
        self
    }

    /// Timestamp of point `index`.
    #[must_use]
    pub fn time(&self, index: usize) -> i64 {
        self.start + self.step.seconds() * index as i64
    }

    /// The points joined in groups of `points` from the first on (not aligned to the clock), by the series' own
    /// consolidation function and xFilesFactor; the last group may be shorter. `points` of 0 or 1 changes nothing.
    /// As graphite-web's `TimeSeries.consolidate`: the share of known points is of `points`, also in a short group.
    #[must_use]
    pub fn consolidated(&self, points: usize) -> Vec<f64> {
        if points <= 1 {
            return self.values.to_vec();
        }
        self.values.chunks(points).map(|chunk| self.consolidation.apply(chunk, points, self.x_files_factor)).collect()
    }
}

/// Whether `known` of `total` points are enough for a factor (graphite-web's `xff`): none never are.
#[must_use]
pub fn enough(known: usize, total: usize, x_files_factor: f64) -> bool {
    known > 0 && total > 0 && known as f64 / total as f64 >= x_files_factor
}
