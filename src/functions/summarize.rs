//! Points joined to longer intervals.
//!
//! Three functions with three ways to lay the intervals: `summarize` from multiples of the interval (or the start of
//! the series), `smartSummarize` from the start of the series, which it can have moved to the start of a day or such,
//! and `hitcount` up to the end of the series.

use std::sync::Arc;

use super::{
    Args, Argument, Ask, COMMON_GRID, Call, Eval, EvalError, Function, Group, Interval, Kind, Literal, MAX_POINTS,
    MAX_POINTS_OF_CALL, Needs, Param, Parameter, SeriesList, Statistic, Value, least_common_multiple,
};
use crate::clock::{Unit, unit_of};
use crate::series::{Aggregation, Series, Step, TimeRange};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const INTERVAL: Param<Bucket> =
    Param::required("intervalString").suggestions(&[Literal::Text("10min"), Literal::Text("1h"), Literal::Text("1d")]);
const FUNC: Param<Statistic> = Param::optional("func").default(Literal::Text("sum"));
const ALIGN_TO_FROM: Param<bool> = Param::optional("alignToFrom").default(Literal::Boolean(false));
const ALIGN_TO: Param<AlignTo> = Param::optional("alignTo").options(&[
    Literal::Boolean(false),
    Literal::None,
    Literal::Boolean(true),
    Literal::Text("days"),
    Literal::Text("hours"),
    Literal::Text("minutes"),
    Literal::Text("months"),
    Literal::Text("seconds"),
    Literal::Text("weeks"),
    Literal::Text("years"),
]);
const ALIGN_TO_INTERVAL: Param<bool> = Param::optional("alignToInterval").default(Literal::Boolean(false));

/// What the functions of this file have in common.
const SUMMARY: Function = Function::of(Group::Transform, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "hitcount",
        doc: "Takes the values as rates per second and counts the hits in each interval: value times seconds, shared \
              out where a point lies in two intervals. The intervals are laid so that the last one ends at the end of \
              the range; with `alignToInterval` so that the first begins at a whole minute, hour or day (of the \
              request's time zone), for which earlier points are fetched.",
        example: "hitcount(edge.ramp,\"10min\")",
        params: &[&SERIES, &INTERVAL, &ALIGN_TO_INTERVAL],
        needs: Some(|args, ask| {
            let seconds = args.get(&INTERVAL).step.seconds();
            let unit = [Unit::Days, Unit::Hours, Unit::Minutes].into_iter().find(|unit| seconds >= unit.seconds());
            match unit {
                Some(unit) if args.get(&ALIGN_TO_INTERVAL) => from_start_of(unit, 1, ask),
                _ => Some(Needs::Ranges(vec![ask.range])),
            }
            .ok_or_else(|| EvalError::argument(&ALIGN_TO_INTERVAL, "the range cannot be aligned"))
        }),
        eval: Eval::Series(|call| {
            let Bucket { step, text } = call.args.get(&INTERVAL);
            let aligned = call.args.get(&ALIGN_TO_INTERVAL);
            let mark = if aligned { ", true" } else { "" };
            let seconds = step.seconds();
            let end = |s: &Series| match s.end() {
                end if aligned => s.start() + ((end - s.start()).div_euclid(seconds) + 1) * seconds,
                end => end,
            };
            let series = call.series(&SERIES);
            refuse_many(series.iter().map(|s| bucket_count(s.start(), end(s), step)))?;
            let counted = |s: Series| {
                let name = format!("hitcount({}, \"{text}\"{mark})", s.name);
                let end = end(&s);
                let buckets = bucket_count(s.start(), end, step);
                let first = end - buckets * seconds;
                let values = hits(&s, first, step, buckets as usize);
                s.derived_at(name, first, step, values).ending(end).tagged("hitcount", &*text)
            };
            Ok(series.into_iter().map(counted).collect())
        }),
        ..SUMMARY
    },
    Function {
        name: "smartSummarize",
        doc: "Joins the points of each interval by an aggregation function. The intervals are counted from the start of \
              the range; with `alignTo` from the start of the minute, hour, day, week, month or year (of the request's \
              time zone) in which the range begins, for which earlier points are fetched. `weeks3` has weeks begin on \
              the third day, Wednesday.",
        example: "smartSummarize(business.orders.eu,\"1d\",\"sum\",\"days\")",
        params: &[&SERIES, &INTERVAL, &FUNC, &ALIGN_TO],
        needs: Some(|args, ask| {
            let needs = match args.find(&ALIGN_TO) {
                Some(AlignTo::Unit { unit, weekday }) => from_start_of(unit, weekday, ask),
                _ => Some(Needs::Ranges(vec![ask.range])),
            };
            needs.ok_or_else(|| EvalError::argument(&ALIGN_TO, "the range cannot be aligned to this"))
        }),
        eval: Eval::Series(|call| {
            let (interval, function, shown) = interval_and_function(call);
            let series = call.series(&SERIES);
            refuse_many(series.iter().map(|s| bucket_count(s.start(), s.end(), interval.step)))?;
            let joined = |s: Series| {
                let name = format!("smartSummarize({}, \"{}\", \"{shown}\")", s.name, interval.text);
                let values = summarized(&s, function, interval.step, s.start(), s.end());
                let joined = s.derived_at(name, s.start(), interval.step, values);
                joined.tagged("smartSummarize", &*interval.text).tagged("smartSummarizeFunction", shown.as_str())
            };
            Ok(series.into_iter().map(joined).collect())
        }),
        ..SUMMARY
    },
    Function {
        name: "summarize",
        doc: "Joins the points of each interval by an aggregation function (sum when none is named). The intervals \
              begin at multiples of the interval since 1970 in UTC, so that they stay the same while time goes on; \
              with `alignToFrom` they are counted from the start of the range. The first and the last may hold less \
              points than the others.",
        example: "summarize(business.orders.eu,\"1h\",\"avg\")",
        params: &[&SERIES, &INTERVAL, &FUNC, &ALIGN_TO_FROM],
        eval: Eval::Series(|call| {
            let (interval, function, shown) = interval_and_function(call);
            let from_start = call.args.get(&ALIGN_TO_FROM);
            let mark = if from_start { ", true" } else { "" };
            let step = interval.step;
            let ends = |s: &Series| {
                if from_start {
                    return (s.start(), s.end());
                }
                // An end at a multiple of the interval gets another, empty, interval.
                (step.floor(s.start()), step.floor(s.end()) + step.seconds())
            };
            let series = call.series(&SERIES);
            refuse_many(series.iter().map(ends).map(|(start, end)| bucket_count(start, end, step)))?;
            let joined = |s: Series| {
                let name = format!("summarize({}, \"{}\", \"{shown}\"{mark})", s.name, interval.text);
                let (start, end) = ends(&s);
                let values = summarized(&s, function, step, start, end);
                let joined = s.derived_at(name, start, step, values);
                joined.tagged("summarize", &*interval.text).tagged("summarizeFunction", shown.as_str())
            };
            Ok(series.into_iter().map(joined).collect())
        }),
        ..SUMMARY
    },
];

/// Where intervals begin, as [`Function::grid`] has it; all functions that have none begin where the series do.
pub(super) fn grid(args: &Args) -> Option<i64> {
    let has = |param: &dyn Parameter| args.function().param(param.name()).is_some();
    if !has(&INTERVAL) {
        return Some(1);
    }
    let unit = match has(&ALIGN_TO).then(|| args.find(&ALIGN_TO)).flatten() {
        Some(AlignTo::Unit { unit: Unit::Months | Unit::Years, .. }) => return None,
        Some(AlignTo::Unit { unit, .. }) => unit.seconds(),
        // To a whole day at most.
        None if has(&ALIGN_TO_INTERVAL) && args.get(&ALIGN_TO_INTERVAL) => Unit::Days.seconds(),
        _ => 1,
    };
    let interval = args.find(&INTERVAL)?.step.seconds();
    least_common_multiple(interval, unit).and_then(|grid| least_common_multiple(grid, COMMON_GRID))
}

/// The length of the intervals: at least a second, at most what a step can be.
struct Bucket {
    step: Step,
    /// As written.
    text: Arc<str>,
}

impl Argument for Bucket {
    const KIND: Kind = Kind::Interval;
    fn read(value: &Value) -> Result<Self, String> {
        let Interval { seconds, text } = Interval::read(value)?;
        match Step::new(seconds) {
            Some(step) => Ok(Self { step, text }),
            None if seconds <= 0 => Err(format!("{value} is not longer than 0")),
            None => Err(format!("{value} is too long")),
        }
    }
}

/// What `smartSummarize` aligns to.
enum AlignTo {
    /// Booleans are accepted and mean nothing: the parameter was another one once.
    Nothing,
    Unit {
        unit: Unit,
        /// Where weeks begin: 1 is Monday.
        weekday: i64,
    },
}

impl Argument for AlignTo {
    const KIND: Kind = Kind::String;
    fn read(value: &Value) -> Result<Self, String> {
        let bad = || format!("{value} is not a unit such as 'days', 'weeks1' or 'months'");
        let text = match value {
            Value::Boolean(_) => return Ok(Self::Nothing),
            Value::Text(text) => text,
            _ => return Err(bad()),
        };
        let unit = unit_of(text).map_err(|_| bad())?;
        let weekday = match text.chars().next_back() {
            Some(last) if unit == Unit::Weeks && !last.is_alphabetic() => {
                last.to_digit(10).filter(|day| *day <= 7).map(i64::from).ok_or_else(bad)?
            }
            _ => 1,
        };
        Ok(Self::Unit { unit, weekday })
    }
}

/// The asked range, begun at the start of the unit that it begins in.
fn from_start_of(unit: Unit, weekday: i64, ask: &Ask<'_>) -> Option<Needs> {
    let from = ask.request.time_zone.start_of(unit, weekday, ask.range.from(), ask.request.range.from());
    TimeRange::new(from, ask.range.until()).map(|range| Needs::Ranges(vec![range]))
}

fn interval_and_function(call: &Call<'_>) -> (Bucket, Aggregation, String) {
    let args: &Args = call.args;
    let shown = args.raw(&FUNC).map(|v| v.python_str()).unwrap_or_default();
    (args.get(&INTERVAL), args.get(&FUNC).0, shown)
}

/// How many intervals there are from `start` to `end`, the last one perhaps beyond it.
fn bucket_count(start: i64, end: i64, interval: Step) -> i64 {
    let seconds = interval.seconds();
    ((end - start).max(0) + seconds - 1) / seconds
}

/// Refuses results that would be too long, alone or together.
fn refuse_many(counts: impl Iterator<Item = i64>) -> Result<(), EvalError> {
    let mut all = 0_i64;
    for count in counts {
        all = all.saturating_add(count);
        let (points, limit) = if count > MAX_POINTS { (count, MAX_POINTS) } else { (all, MAX_POINTS_OF_CALL) };
        if points > limit {
            let message = format!("the result would have {points} points, more than {limit}; take a longer interval");
            return Err(EvalError::argument(&INTERVAL, message));
        }
    }
    Ok(())
}

/// The points of each interval joined, from `start` on as long as an interval begins before `end`. An interval of
/// which less than the series' xFilesFactor is known is absent. The caller bounds the number of intervals.
pub(super) fn summarized(series: &Series, function: Aggregation, interval: Step, start: i64, end: i64) -> Vec<f64> {
    let (step, seconds) = (series.step().seconds(), interval.seconds());
    // A series may state an end before its last points (or after them); only points before it count.
    let within = ((series.end() - series.start()).max(0) + step - 1) / step;
    let values = &series.values()[..series.len().min(within as usize)];
    let points = seconds as f64 / step as f64;
    let mut out = Vec::new();
    let mut next = 0;
    let mut time = start;
    while time < end {
        // Points before the first interval belong to none.
        while next < values.len() && series.time(next) < time {
            next += 1;
        }
        let first = next;
        while next < values.len() && series.time(next) < time + seconds {
            next += 1;
        }
        let group = &values[first..next];
        let known = group.iter().filter(|v| !v.is_nan()).count();
        let enough = known > 0 && known as f64 / points >= series.x_files_factor;
        out.push(if enough { function.apply(group) } else { f64::NAN });
        time += seconds;
    }
    out
}

/// Value times seconds in each of `buckets` intervals from `start` on.
fn hits(series: &Series, start: i64, interval: Step, buckets: usize) -> Vec<f64> {
    let (step, seconds) = (series.step().seconds(), interval.seconds());
    let mut out = vec![f64::NAN; buckets];
    for (i, value) in series.values().iter().enumerate().filter(|(_, v)| !v.is_nan()) {
        let (begin, end) = (series.time(i) - start, series.time(i) + step - start);
        let first = begin.div_euclid(seconds).max(0);
        // What lies beyond the last interval counts as much as fits into it.
        for bucket in first..buckets as i64 {
            let (from, until) = (bucket * seconds, (bucket + 1) * seconds);
            let inside = end.min(until) - begin.max(from);
            if inside <= 0 {
                break;
            }
            let sum = &mut out[bucket as usize];
            *sum = if sum.is_nan() { 0.0 } else { *sum } + value * inside as f64;
        }
    }
    out
}
