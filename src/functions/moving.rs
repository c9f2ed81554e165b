//! Statistics over a window that moves along the series.
//!
//! A window is a number of points or a length of time and ends with the current point, so a call reads its series from
//! one window before the asked range on. How many seconds a number of points is follows from the coarsest step of the
//! series over the asked range, which planning learns first.
//!
//! The kernels take time in proportion to the number of points (times its logarithm for the median), whatever the
//! window. None of them subtracts what leaves the window, so that one huge value does not spoil the windows after it;
//! and equal windows have equal results to the last bit, so that a derivative of them shows no noise.

use super::{
    Args, Ask, COMMON_GRID, Call, Eval, EvalError, Function, Group, Literal, MAX_POINTS_OF_CALL, Needs, Param,
    Parameter, SeriesList, Window,
};
use crate::series::{Aggregation, Series, enough, round_digits};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const WINDOW: Param<Window> = Param::required("windowSize").suggestions(&[
    Literal::Integer(5),
    Literal::Integer(7),
    Literal::Integer(10),
    Literal::Text("1min"),
    Literal::Text("5min"),
    Literal::Text("10min"),
    Literal::Text("30min"),
    Literal::Text("1hour"),
]);
const FUNC: Param<Aggregation> = Param::optional("func").default(Literal::Text("average"));
const XFF: Param<f64> = Param::optional("xFilesFactor");

/// Windows that are a multiple of this, in seconds, hold a whole number of points.
const USUAL_STEPS: i64 = 300;

/// Where results begin, as [`Function::grid`] has it: with the series, unless the window ends between two points.
pub(super) fn grid(args: &Args) -> Option<i64> {
    if args.function().param(Parameter::name(&WINDOW)).is_none() {
        return Some(1);
    }
    match args.find(&WINDOW)? {
        Window::Time(interval) if interval.seconds % USUAL_STEPS != 0 => Some(COMMON_GRID),
        _ => Some(1),
    }
}

const WINDOW_ONLY: &[&dyn Parameter] = &[&SERIES, &WINDOW];
const WINDOW_AND_XFF: &[&dyn Parameter] = &[&SERIES, &WINDOW, &XFF];

/// More points than any useful window has; keeps times and buffers within bounds.
const MAX_WINDOW: i64 = 1_000_000;

/// What the functions of this file have in common.
const MOVING: Function = Function { needs: Some(window_range), ..Function::of(Group::Calculate, WINDOW_AND_XFF) };

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "movingWindow",
        doc: "Applies an aggregation function to the window that ends with each point: the given number of points, or \
              as many as the given time holds. Points of which less than xFilesFactor of the window is known are \
              absent; without that argument the factor of the series counts. Earlier data is read as far as the first \
              window needs it.",
        example: "movingWindow(servers.web01.cpu.user,'10min','max')",
        params: &[&SERIES, &WINDOW, &FUNC, &XFF],
        needs: Some(|args, ask| {
            let written = args.raw(&FUNC).map(|v| v.python_str()).unwrap_or_default();
            if Aggregation::by_name(&written).is_none() {
                return Err(EvalError::argument(&FUNC, format!("\"{written}\" is not an aggregation function")));
            }
            window_range(args, ask)
        }),
        eval: Eval::Series(|call| {
            let written = call.args.raw(&FUNC).map(|v| v.python_str()).unwrap_or_default();
            let function = call.args.get(&FUNC);
            moving(call, &capitalized(&written), function)
        }),
        ..MOVING
    },
    Function {
        name: "movingAverage",
        doc: "The mean of the window that ends with each point: the last so many points, or the last so much time. \
              Earlier data is read as far as the first window needs it.",
        example: "movingAverage(servers.*.cpu.user,'5min')",
        eval: Eval::Series(|call| moving(call, "Average", Aggregation::Average)),
        ..MOVING
    },
    Function {
        name: "movingMedian",
        doc: "The median of the window that ends with each point: the last so many points, or the last so much time. \
              Unlike the mean it does not follow single outliers.",
        example: "movingMedian(servers.web01.cpu.user,7)",
        eval: Eval::Series(|call| moving(call, "Median", Aggregation::Median)),
        ..MOVING
    },
    Function {
        name: "movingMin",
        doc: "The least value of the window that ends with each point: the last so many points, or the last so much \
              time.",
        example: "movingMin(servers.web01.cpu.user,'30min')",
        eval: Eval::Series(|call| moving(call, "Min", Aggregation::Min)),
        ..MOVING
    },
    Function {
        name: "movingMax",
        doc: "The greatest value of the window that ends with each point: the last so many points, or the last so \
              much time.",
        example: "movingMax(servers.web01.cpu.user,'30min')",
        eval: Eval::Series(|call| moving(call, "Max", Aggregation::Max)),
        ..MOVING
    },
    Function {
        name: "movingSum",
        doc: "The sum of the window that ends with each point: the last so many points, or the last so much time.",
        example: "movingSum(business.orders.*,'1d')",
        eval: Eval::Series(|call| moving(call, "Sum", Aggregation::Sum)),
        ..MOVING
    },
    Function {
        name: "exponentialMovingAverage",
        doc: "The exponentially weighted moving average: each value moves it by the share 2 / (window + 1), where the \
              window is a number of points or the seconds of an interval. It starts from the mean of the window before \
              the first point; results have 6 decimal digits.",
        example: "exponentialMovingAverage(servers.web01.cpu.user,10)",
        params: WINDOW_ONLY,
        needs: Some(|args, ask| match args.get(&WINDOW) {
            Window::Points(n) if n < 0 => Err(EvalError::argument(&WINDOW, format!("{n} is less than 0 points"))),
            _ => window_range(args, ask),
        }),
        eval: Eval::Series(|call| Ok(exponential(call))),
        ..MOVING
    },
];

fn window_range(args: &Args, ask: &Ask<'_>) -> Result<Needs, EvalError> {
    let seconds = match args.get(&WINDOW) {
        Window::Time(interval) => interval.seconds.saturating_abs(),
        Window::Points(n) if n.saturating_abs() > MAX_WINDOW => {
            return Err(EvalError::argument(&WINDOW, format!("{n} points are more than {MAX_WINDOW}")));
        }
        Window::Points(n) => match ask.input_step {
            Some(step) => n.saturating_mul(step.seconds()),
            None => return Ok(Needs::InputStep),
        },
    };
    Ok(Needs::Ranges(vec![ask.range.reaching_back(seconds)]))
}

/// The window as seconds, as a number of points at a step, and as it stands in names.
struct Measure {
    window: Window,
    /// As it was written; a number of points may be `5.0`.
    written: String,
    /// By how much the series begin before the asked range; negative for a negative number of points.
    preview: i64,
}

impl Measure {
    fn of(call: &Call<'_>) -> Self {
        let preview = call.ranges().first().map_or(0, |wide| call.range.from() - wide.from());
        let written = call.args.raw(&WINDOW).map(|v| v.python_str()).unwrap_or_default();
        Self { window: call.args.get(&WINDOW), written, preview }
    }

    fn points(&self, series: &Series) -> i64 {
        match self.window {
            Window::Points(n) => n,
            Window::Time(_) => self.preview / series.step().seconds(),
        }
    }

    /// The result of `series`: the start moves by the window, the end does not, however many values there are.
    fn result(&self, series: &Series, name: &str, values: Vec<f64>) -> Series {
        let quote = if matches!(self.window, Window::Time(_)) { "\"" } else { "" };
        series
            .derived_at(
                format!("{name}({},{quote}{}{quote})", series.name, self.written),
                series.start() + self.preview,
                series.step(),
                values,
            )
            .ending(series.end())
            .tagged(name, self.written.as_str())
    }
}

fn moving(call: &mut Call<'_>, function_name: &str, function: Aggregation) -> Result<Vec<Series>, EvalError> {
    let (measure, x_files_factor) = (Measure::of(call), call.args.find(&XFF));
    let name = format!("moving{function_name}");
    let over = |series: Series| {
        let factor = x_files_factor.unwrap_or(series.x_files_factor);
        let values = over_windows(series.values(), measure.points(&series), function, factor);
        measure.result(&series, &name, values)
    };
    let series = call.series(&SERIES);
    // A negative number of points makes a series longer.
    if let Window::Points(n) = measure.window
        && n < 0
        && n.saturating_abs().saturating_mul(series.len() as i64) > MAX_POINTS_OF_CALL
    {
        return Err(EvalError::argument(&WINDOW, format!("{n} points make {} series too long", series.len())));
    }
    Ok(series.into_iter().map(over).collect())
}

fn exponential(call: &mut Call<'_>) -> Vec<Series> {
    let measure = Measure::of(call);
    let length = match measure.window {
        Window::Points(n) => n,
        Window::Time(_) => measure.preview,
    };
    let share = 2.0 / (length as f64 + 1.0);
    let over = |series: Series| {
        let points = usize::try_from(measure.points(&series)).unwrap_or(0).min(series.len());
        let (before, after) = series.values().split_at(points);
        let mean = Aggregation::Average.apply(before);
        let mut average = if mean.is_nan() { 0.0 } else { mean };
        let mut values = Vec::with_capacity(after.len() + 1);
        values.push(round_digits(average, 6));
        for value in after {
            if value.is_nan() {
                values.push(f64::NAN);
            } else {
                average = share * value + (1.0 - share) * average;
                values.push(round_digits(average, 6));
            }
        }
        measure.result(&series, "exponentialMovingAverage", values)
    };
    call.series(&SERIES).into_iter().map(over).collect()
}

/// Python's `str.capitalize`.
fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars.flat_map(char::to_lowercase)).collect())
}

/// The function over every window of `points` values, from the one that ends with value `points` on (counted from 0):
/// the values before it only serve the first window.
fn over_windows(values: &[f64], points: i64, function: Aggregation, x_files_factor: f64) -> Vec<f64> {
    let Some(width) = usize::try_from(points).ok().filter(|w| *w > 0) else {
        // A window without a point knows nothing; graphite-web answers one more value for each negative point.
        return vec![f64::NAN; values.len() + points.unsigned_abs() as usize];
    };
    let values = values.get(1..).unwrap_or_default();
    if values.len() < width {
        return Vec::new();
    }
    let known = known_in_windows(values, width);
    let mut out = match function {
        _ if width <= FEW => one_by_one(values, width, function),
        Aggregation::Count => known.iter().map(|n| f64::from(*n)).collect(),
        Aggregation::Sum => sums(values, width),
        Aggregation::Average | Aggregation::AvgZero => {
            let mut sums = sums(values, width);
            sums.iter_mut().zip(&known).for_each(|(sum, n)| *sum /= f64::from(*n));
            sums
        }
        Aggregation::Min => slide(values, width, f64::NAN, |v| v, f64::min, |v| v),
        Aggregation::Max => slide(values, width, f64::NAN, |v| v, f64::max, |v| v),
        Aggregation::Range => {
            let join = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
            slide(values, width, (f64::NAN, f64::NAN), |v| (v, v), join, |(least, greatest)| greatest - least)
        }
        Aggregation::Multiply => slide(values, width, 1.0, |v| if v.is_nan() { 1.0 } else { v }, |a, b| a * b, |v| v),
        Aggregation::Diff => {
            let firsts = firsts(values, width);
            firsts.zip(sums(values, width)).map(|(first, sum)| first - (sum - first)).collect()
        }
        Aggregation::Last => lasts(values, width).collect(),
        Aggregation::Stddev => slide(values, width, Spread::NONE, Spread::of, Spread::join, Spread::deviation),
        Aggregation::Median => medians(values, width),
    };
    for (value, known) in out.iter_mut().zip(known) {
        if !enough(known as usize, width, x_files_factor) {
            *value = f64::NAN;
        }
    }
    out
}

/// How many values of each window are known.
fn known_in_windows(values: &[f64], width: usize) -> Vec<u32> {
    let known = |v: f64| u32::from(!v.is_nan());
    let mut count: u32 = values[..width].iter().copied().map(known).sum();
    let mut counts = Vec::with_capacity(values.len() - width + 1);
    counts.push(count);
    for (&leaves, &enters) in values.iter().zip(&values[width..]) {
        count = count + known(enters) - known(leaves);
        counts.push(count);
    }
    counts
}

/// A window of so few points is computed as such: it costs no more, and the last bit is that of a sum from the left.
const FEW: usize = 16;

fn one_by_one(values: &[f64], width: usize, function: Aggregation) -> Vec<f64> {
    let mut known = Vec::with_capacity(width);
    let one = |window: &[f64]| {
        known.clear();
        known.extend(window.iter().filter(|v| !v.is_nan()));
        function.apply(&known)
    };
    values.windows(width).map(one).collect()
}

fn sums(values: &[f64], width: usize) -> Vec<f64> {
    slide(values, width, Exact::ZERO, Exact::of, Exact::plus, |sum| sum.near)
}

/// Joins the values of every window of `width` (1 to `values.len()`) with an associative function, of which `none` is
/// the neutral element. The values are cut into blocks of `width`: a window is the end of one block and the beginning
/// of the next, and both are joined step by step.
fn slide<T: Copy>(
    values: &[f64],
    width: usize,
    none: T,
    of: impl Fn(f64) -> T,
    join: impl Fn(T, T) -> T,
    result: impl Fn(T) -> f64,
) -> Vec<f64> {
    let windows = values.len() - width + 1;
    let mut out = Vec::with_capacity(windows);
    let mut ends = vec![none; width];
    for block in (0..windows).step_by(width) {
        let mut end = none;
        for (slot, value) in ends.iter_mut().zip(&values[block..block + width]).rev() {
            end = join(of(*value), end);
            *slot = end;
        }
        let mut beginning = none;
        let next = values[block + width..].iter().map(Some).chain(std::iter::once(None));
        for (end, value) in ends.iter().zip(next) {
            out.push(result(join(*end, beginning)));
            if let Some(value) = value {
                beginning = join(beginning, of(*value));
            }
        }
    }
    out
}

/// The first known value of each window.
fn firsts(values: &[f64], width: usize) -> impl Iterator<Item = f64> {
    let windows = values.len() - width + 1;
    let mut next = vec![f64::NAN; windows];
    let mut first = f64::NAN;
    for (at, value) in values.iter().enumerate().rev() {
        if !value.is_nan() {
            first = *value;
        }
        if at < windows {
            next[at] = first;
        }
    }
    next.into_iter()
}

/// The last known value of each window (or of before, which an unknown window does not show).
fn lasts(values: &[f64], width: usize) -> impl Iterator<Item = f64> {
    let mut last = f64::NAN;
    let running = values.iter().map(move |value| {
        if !value.is_nan() {
            last = *value;
        }
        last
    });
    running.skip(width - 1)
}

/// A number with twice the digits of a float, so that the order of additions does not show: the nearest float and what
/// is missing from it.
#[derive(Clone, Copy)]
struct Exact {
    near: f64,
    rest: f64,
}

impl Exact {
    const ZERO: Self = Self { near: 0.0, rest: 0.0 };

    /// An absent value counts as nothing.
    fn of(value: f64) -> Self {
        if value.is_nan() { Self::ZERO } else { Self { near: value, rest: 0.0 } }
    }

    fn plus(self, other: Self) -> Self {
        let sum = self.near + other.near;
        if !sum.is_finite() {
            return Self { near: sum, rest: 0.0 };
        }
        let added = sum - self.near;
        let rest = (self.near - (sum - added)) + (other.near - added) + (self.rest + other.rest);
        let near = sum + rest;
        Self { near, rest: rest - (near - sum) }
    }
}

/// Number, mean and sum of squared distances from the mean; two of them can be joined without loss (Chan, Golub and
/// LeVeque 1979).
#[derive(Clone, Copy)]
struct Spread {
    count: f64,
    mean: Exact,
    squares: f64,
}

impl Spread {
    const NONE: Self = Self { count: 0.0, mean: Exact::ZERO, squares: 0.0 };

    fn of(value: f64) -> Self {
        if value.is_nan() { Self::NONE } else { Self { count: 1.0, mean: Exact::of(value), squares: 0.0 } }
    }

    fn join(self, other: Self) -> Self {
        if self.count == 0.0 {
            return other;
        }
        if other.count == 0.0 {
            return self;
        }
        let count = self.count + other.count;
        let distance = (other.mean.near - self.mean.near) + (other.mean.rest - self.mean.rest);
        Self {
            count,
            mean: self.mean.plus(Exact::of(distance * (other.count / count))),
            squares: self.squares + other.squares + distance * distance * (self.count * other.count / count),
        }
    }

    fn deviation(self) -> f64 {
        (self.squares / self.count).sqrt()
    }
}

/// The median of the known values of each window. The values are ranked once; a tree of counts over the ranks says
/// which rank is in the middle of a window.
fn medians(values: &[f64], width: usize) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let rank = |value: f64| sorted.binary_search_by(|other| other.total_cmp(&value)).ok();
    let ranks: Vec<Option<usize>> = values.iter().map(|v| if v.is_nan() { None } else { rank(*v) }).collect();

    let mut counts = Counts::new(sorted.len());
    let mut out = Vec::with_capacity(values.len() - width + 1);
    for (at, enters) in ranks.iter().enumerate() {
        if let Some(rank) = enters {
            counts.change(*rank, 1);
        }
        let Some(first) = (at + 1).checked_sub(width) else { continue };
        out.push(match counts.total {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[counts.rank_of(n / 2)],
            n => (sorted[counts.rank_of(n / 2 - 1)] + sorted[counts.rank_of(n / 2)]) / 2.0,
        });
        if let Some(rank) = ranks[first] {
            counts.change(rank, -1);
        }
    }
    out
}

/// How often each rank occurs, as a Fenwick tree.
struct Counts {
    tree: Vec<i32>,
    total: i32,
}

impl Counts {
    fn new(ranks: usize) -> Self {
        Self { tree: vec![0; ranks + 1], total: 0 }
    }

    fn change(&mut self, rank: usize, by: i32) {
        self.total += by;
        let mut node = rank + 1;
        while node < self.tree.len() {
            self.tree[node] += by;
            node += node & node.wrapping_neg();
        }
    }

    /// The rank of the value at `position` in ascending order; `position` is less than the total.
    fn rank_of(&self, position: i32) -> usize {
        let (mut rank, mut before) = (0, position);
        let mut width = self.tree.len().next_power_of_two();
        while width > 0 {
            if let Some(count) = self.tree.get(rank + width).filter(|count| **count <= before) {
                before -= count;
                rank += width;
            }
            width /= 2;
        }
        rank
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_spike_does_not_spoil_later_windows() {
        let mut values = vec![0.1; 40];
        values[7] = 1e17;
        for width in [3, 20] {
            let sums = over_windows(&values, width, Aggregation::Sum, 0.0);
            for (i, sum) in sums.iter().enumerate() {
                // Window i holds the values from i + 1 to i + width.
                if i < 7 && i + width as usize >= 7 {
                    assert_eq!(*sum, 1e17);
                } else {
                    assert!((sum - 0.1 * width as f64).abs() < 1e-12, "{i}: {sum}");
                }
            }
        }
    }

    #[test]
    fn equal_windows_have_equal_results() {
        for function in [Aggregation::Sum, Aggregation::Average, Aggregation::Stddev] {
            let results = over_windows(&[0.1; 300], 70, function, 0.0);
            assert!(results.iter().all(|r| *r == results[0]), "{function:?}");
        }
        // A distance of millions at a height of a million millions.
        let values: Vec<f64> = (0..200).map(|i| 1e15 + f64::from(i % 2) * 2e6).collect();
        let deviations = over_windows(&values, 60, Aggregation::Stddev, 0.0);
        assert!(deviations.iter().all(|d| (d - 1e6).abs() < 1e-6), "{deviations:?}");
    }

    #[test]
    fn windows_without_points() {
        assert_eq!(over_windows(&[1.0, 2.0], 0, Aggregation::Sum, 0.0).len(), 2);
        assert_eq!(over_windows(&[1.0, 2.0], -3, Aggregation::Sum, 0.0).len(), 5);
        assert!(over_windows(&[], 1, Aggregation::Max, 0.0).is_empty());
        assert!(over_windows(&[1.0], 1, Aggregation::Median, 0.0).is_empty());
    }

    proptest! {
        /// The kernels say the same as the aggregation function does of each window.
        #[test]
        fn windows_are_aggregated(
            values in prop::collection::vec(prop_oneof![3 => -9.0..9.0, 1 => Just(f64::NAN), 1 => Just(2.5)], 0..120),
            points in prop_oneof![1_i64..8, 17_i64..50],
            which in 0..Aggregation::NAMES.len(),
            x_files_factor in prop_oneof![Just(0.0), Just(0.5), Just(1.0)],
        ) {
            let (_, function) = Aggregation::NAMES[which];
            let got = over_windows(&values, points, function, x_files_factor);
            let width = points as usize;
            prop_assert_eq!(got.len(), values.len().saturating_sub(width));
            for (i, got) in got.iter().enumerate() {
                let known: Vec<f64> = values[i + 1..=i + width].iter().copied().filter(|v| !v.is_nan()).collect();
                let want = if enough(known.len(), width, x_files_factor) { function.apply(&known) } else { f64::NAN };
                prop_assert!(
                    (got.is_nan() && want.is_nan()) || (got - want).abs() <= 1e-9_f64.max(1e-9 * want.abs()),
                    "{:?} window {}: want {} got {}", function, i, want, got
                );
            }
        }
    }
}
