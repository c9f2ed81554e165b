//! Reducing several values to one: the aggregation functions and the consolidation of a series.

use std::fmt;

/// An aggregation function over values of which the absent are left out, as in graphite-web's `aggFuncs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// Arithmetic mean of the known values.
    Average,
    /// Mean over all values, absent ones as 0.
    AvgZero,
    /// Middle value; of an even number the mean of the two in the middle.
    Median,
    /// Left-to-right sum.
    Sum,
    /// Least value.
    Min,
    /// Greatest value.
    Max,
    /// First known value minus all others.
    Diff,
    /// Standard deviation of the population.
    Stddev,
    /// Number of known values; 0 when none is known.
    Count,
    /// Greatest minus least.
    Range,
    /// Product; absent when any value is.
    Multiply,
    /// Last known value.
    Last,
}

impl Aggregation {
    /// Every name with what it stands for: graphite-web's own twelve, then its aliases.
    pub const NAMES: &'static [(&'static str, Aggregation)] = &[
        ("average", Aggregation::Average),
        ("avg_zero", Aggregation::AvgZero),
        ("median", Aggregation::Median),
        ("sum", Aggregation::Sum),
        ("min", Aggregation::Min),
        ("max", Aggregation::Max),
        ("diff", Aggregation::Diff),
        ("stddev", Aggregation::Stddev),
        ("count", Aggregation::Count),
        ("range", Aggregation::Range),
        ("multiply", Aggregation::Multiply),
        ("last", Aggregation::Last),
        ("rangeOf", Aggregation::Range),
        ("avg", Aggregation::Average),
        ("total", Aggregation::Sum),
        ("current", Aggregation::Last),
    ];

    /// By name or alias, case-sensitive. The deprecated spelling with `Series` at the end (`sumSeries`) is the
    /// caller's to strip, because names of results show the stripped form.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
    }

    /// The value of this function over `values`, NaN when there is none.
    #[must_use]
    pub fn apply(self, values: &[f64]) -> f64 {
        let known = || values.iter().copied().filter(|v| !v.is_nan());
        match self {
            Self::Average => {
                let (sum, count) = sum_and_count(values);
                if count == 0 { f64::NAN } else { sum / count as f64 }
            }
            Self::AvgZero => {
                if values.is_empty() {
                    return f64::NAN;
                }
                sum_and_count(values).0 / values.len() as f64
            }
            Self::Median => median(values),
            Self::Sum => {
                let (sum, count) = sum_and_count(values);
                if count == 0 { f64::NAN } else { sum }
            }
            Self::Min => known().fold(f64::NAN, f64::min),
            Self::Max => known().fold(f64::NAN, f64::max),
            Self::Diff => {
                let mut known = known();
                match known.next() {
                    None => f64::NAN,
                    Some(first) => known.fold(first, |acc, v| acc - v),
                }
            }
            Self::Stddev => stddev(values),
            Self::Count => known().count() as f64,
            Self::Range => known().fold(f64::NAN, f64::max) - known().fold(f64::NAN, f64::min),
            Self::Multiply => values.iter().product(),
            Self::Last => values.iter().rev().copied().find(|v| !v.is_nan()).unwrap_or(f64::NAN),
        }
    }
}

/// Left-to-right sum of the known values and their number. Python's `sum` starts from the integer 0, so does this.
fn sum_and_count(values: &[f64]) -> (f64, usize) {
    let (mut sum, mut count) = (0.0, 0);
    for v in values {
        if !v.is_nan() {
            sum += v;
            count += 1;
        }
    }
    (sum, count)
}

fn median(values: &[f64]) -> f64 {
    let mut known: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    if known.is_empty() {
        return f64::NAN;
    }
    let middle = known.len() / 2;
    let even = known.len().is_multiple_of(2);
    let (below, mid, _) = known.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return *mid;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(*mid);
    (lower + *mid) / 2.0
}

fn stddev(values: &[f64]) -> f64 {
    let (sum, count) = sum_and_count(values);
    if count == 0 {
        return f64::NAN;
    }
    let mean = sum / count as f64;
    let squares: f64 = values.iter().filter(|v| !v.is_nan()).fold(0.0, |acc, v| acc + (v - mean) * (v - mean));
    (squares / count as f64).sqrt()
}

/// How the points of one series are joined when there are more than wanted: `consolidateBy` sets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Consolidation {
    /// Mean of the known points (the default).
    #[default]
    Average,
    /// Mean with absent points as 0.
    AvgZero,
    /// Sum of the known points.
    Sum,
    /// Least known point.
    Min,
    /// Greatest known point.
    Max,
    /// First known point.
    First,
    /// Last known point.
    Last,
    /// Any other aggregation function. graphite-web takes its name and fails when there is something to join.
    Other(Aggregation),
}

impl Consolidation {
    /// Every accepted name with what it stands for: those that graphite-web can compute, then all others that name an
    /// aggregation function.
    pub const NAMES: &'static [(&'static str, Consolidation)] = &[
        ("average", Consolidation::Average),
        ("avg", Consolidation::Average),
        ("avg_zero", Consolidation::AvgZero),
        ("first", Consolidation::First),
        ("last", Consolidation::Last),
        ("max", Consolidation::Max),
        ("min", Consolidation::Min),
        ("sum", Consolidation::Sum),
        ("total", Consolidation::Sum),
        ("current", Consolidation::Last),
        ("count", Consolidation::Other(Aggregation::Count)),
        ("diff", Consolidation::Other(Aggregation::Diff)),
        ("median", Consolidation::Other(Aggregation::Median)),
        ("multiply", Consolidation::Other(Aggregation::Multiply)),
        ("range", Consolidation::Other(Aggregation::Range)),
        ("rangeOf", Consolidation::Other(Aggregation::Range)),
        ("stddev", Consolidation::Other(Aggregation::Stddev)),
    ];

    /// By name, case-sensitive.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, c)| c.clone())
    }

    /// The name that graphite-web's pickle and msgpack answers carry.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Self::NAMES.iter().find(|(_, c)| c == self).map_or("average", |(n, _)| n)
    }

    /// One group of points joined; NaN when fewer than `x_files_factor` of `points` are known.
    #[must_use]
    pub fn apply(&self, group: &[f64], points: usize, x_files_factor: f64) -> f64 {
        let known = group.iter().filter(|v| !v.is_nan()).count();
        if !super::enough(known, points, x_files_factor) {
            return f64::NAN;
        }
        match self {
            Self::Average => Aggregation::Average.apply(group),
            Self::AvgZero => Aggregation::AvgZero.apply(group),
            Self::Sum => Aggregation::Sum.apply(group),
            Self::Min => Aggregation::Min.apply(group),
            Self::Max => Aggregation::Max.apply(group),
            Self::First => group.iter().copied().find(|v| !v.is_nan()).unwrap_or(f64::NAN),
            Self::Last => Aggregation::Last.apply(group),
            Self::Other(function) => function.apply(group),
        }
    }
}

impl fmt::Display for Consolidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
