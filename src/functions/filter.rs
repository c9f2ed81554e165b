//! Chooses series: by a value over all their points, by name, by number.

use super::columns::percentile_of_row;
use super::names::slice;
use super::python_regex::{Pattern, Substitution};
use super::sort::sorted_by;
use super::{
    Args, Argument, Call, Eval, EvalError, Function, Group, Kind, Literal, Param, Request, SeriesList, Statistic, Value,
};
use crate::series::{Aggregation, Series, enough};
use crate::target::{MAX_BYTES, parse};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const THRESHOLD_N: Param<f64> = Param::required("n");
const PERCENT: Param<f64> = Param::required("n");
const PATTERN: Param<String> = Param::required("pattern");
const FUNC: Param<Statistic> = Param::required("func");
const FUNC_OR_AVERAGE: Param<Statistic> = Param::optional("func").default(Literal::Text("average"));
const OPERATOR: Param<Operator> = Param::required("operator");
const THRESHOLD: Param<f64> = Param::required("threshold");
const NUMBER: Param<i64> = Param::required("n");
const COUNT: Param<Count> = Param::required("n");
const COUNT_OR_ONE: Param<Count> = Param::optional("n").shown_required();
const XFF: Param<f64> = Param::optional("xFilesFactor");
const VALUE: Param<f64> = Param::required("value");
const SEARCH: Param<String> = Param::required("search");
const REPLACE: Param<String> = Param::required("replace");

/// What the functions of this file have in common.
const FILTER: Function = Function::of(Group::FilterSeries, &[&SERIES]);

/// A filter by a fixed function and operator.
macro_rules! threshold {
    ($name:literal, $function:ident, $operator:ident, $doc:literal, $example:literal) => {
        Function {
            name: $name,
            doc: $doc,
            example: $example,
            params: &[&SERIES, &THRESHOLD_N],
            eval: Eval::Series(|call| {
                let threshold = call.args.get(&THRESHOLD_N);
                Ok(filtered(call, Aggregation::$function, Operator::$operator, threshold))
            }),
            ..FILTER
        }
    };
}

/// The first so many by a fixed function.
macro_rules! extreme {
    ($name:literal, $function:ident, $reverse:literal, $doc:literal, $example:literal) => {
        Function {
            name: $name,
            doc: $doc,
            example: $example,
            params: &[&SERIES, &COUNT],
            eval: Eval::Series(|call| {
                let Count(n) = call.args.get(&COUNT);
                Ok(extremes(call, Aggregation::$function, $reverse, n))
            }),
            ..FILTER
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    threshold!(
        "averageAbove",
        Average,
        Greater,
        "Series whose average is above `n`.",
        "averageAbove(servers.*.cpu.user,50)"
    ),
    threshold!(
        "averageBelow",
        Average,
        LessOrEqual,
        "Series whose average is `n` or below, and those without any value.",
        "averageBelow(servers.*.cpu.user,50)"
    ),
    threshold!(
        "currentAbove",
        Last,
        Greater,
        "Series whose last value is above `n`.",
        "currentAbove(servers.*.cpu.user,50)"
    ),
    threshold!(
        "currentBelow",
        Last,
        LessOrEqual,
        "Series whose last value is `n` or below, and those without any value.",
        "currentBelow(servers.*.cpu.user,50)"
    ),
    threshold!(
        "maximumAbove",
        Max,
        Greater,
        "Series that are above `n` at any time.",
        "maximumAbove(servers.*.cpu.user,50)"
    ),
    threshold!(
        "maximumBelow",
        Max,
        LessOrEqual,
        "Series that are never above `n`, and those without any value.",
        "maximumBelow(servers.*.cpu.user,50)"
    ),
    threshold!(
        "minimumAbove",
        Min,
        Greater,
        "Series that are above `n` all the time.",
        "minimumAbove(servers.*.cpu.user,50)"
    ),
    threshold!(
        "minimumBelow",
        Min,
        LessOrEqual,
        "Series that are `n` or below at any time, and those without any value.",
        "minimumBelow(servers.*.cpu.user,50)"
    ),
    Function {
        name: "averageOutsidePercentile",
        doc: "Series whose average is not strictly between the percentiles `n` and 100 - `n` of all averages: the \
              unusual ones.",
        example: "averageOutsidePercentile(servers.*.cpu.user,80)",
        params: &[&SERIES, &PERCENT],
        eval: Eval::Series(average_outside_percentile),
        ..FILTER
    },
    Function {
        name: "exclude",
        doc: "Series whose name a regular expression (in Python's syntax) does not match anywhere.",
        example: "exclude(servers.*.cpu.user,\"web0[12]\")",
        params: &[&SERIES, &PATTERN],
        eval: Eval::Series(|call| matching(call, false)),
        ..FILTER
    },
    Function {
        name: "grep",
        doc: "Series whose name a regular expression (in Python's syntax) matches anywhere.",
        example: "grep(servers.*.cpu.user,\"web0[12]\")",
        params: &[&SERIES, &PATTERN],
        eval: Eval::Series(|call| matching(call, true)),
        ..FILTER
    },
    Function {
        name: "filterSeries",
        doc: "Series of which the value of an aggregation function over all points compares to `threshold` as \
              `operator` says. Series without a value are kept by <, <= and != only.",
        example: "filterSeries(servers.*.cpu.user,\"max\",\">\",50)",
        params: &[&SERIES, &FUNC, &OPERATOR, &THRESHOLD],
        eval: Eval::Series(|call| {
            let (Statistic(function), operator) = (call.args.get(&FUNC), call.args.get(&OPERATOR));
            let threshold = call.args.get(&THRESHOLD);
            Ok(filtered(call, function, operator, threshold))
        }),
        ..FILTER
    },
    Function {
        name: "highest",
        doc: "The `n` series with the greatest value of an aggregation function over all points, the greatest first. \
              A negative `n` leaves out so many at the end.",
        example: "highest(servers.*.cpu.user,3,\"max\")",
        params: &[&SERIES, &COUNT_OR_ONE, &FUNC_OR_AVERAGE],
        eval: Eval::Series(|call| Ok(extremes_by_argument(call, true))),
        ..FILTER
    },
    extreme!(
        "highestAverage",
        Average,
        true,
        "The `n` series with the greatest average, the greatest first.",
        "highestAverage(servers.*.cpu.user,3)"
    ),
    extreme!(
        "highestCurrent",
        Last,
        true,
        "The `n` series with the greatest last value, the greatest first.",
        "highestCurrent(servers.*.cpu.user,3)"
    ),
    extreme!(
        "highestMax",
        Max,
        true,
        "The `n` series with the greatest maximum, the greatest first.",
        "highestMax(servers.*.cpu.user,3)"
    ),
    Function {
        name: "lowest",
        doc: "The `n` series with the least value of an aggregation function over all points, the least first. Series \
              without a value count as less than all others. A negative `n` leaves out so many at the end.",
        example: "lowest(servers.*.cpu.user,3,\"max\")",
        params: &[&SERIES, &COUNT_OR_ONE, &FUNC_OR_AVERAGE],
        eval: Eval::Series(|call| Ok(extremes_by_argument(call, false))),
        ..FILTER
    },
    extreme!(
        "lowestAverage",
        Average,
        false,
        "The `n` series with the least average, the least first.",
        "lowestAverage(servers.*.cpu.user,3)"
    ),
    extreme!(
        "lowestCurrent",
        Last,
        false,
        "The `n` series with the least last value, the least first.",
        "lowestCurrent(servers.*.cpu.user,3)"
    ),
    Function {
        name: "limit",
        doc: "The first `n` series; a negative `n` leaves out so many at the end.",
        example: "limit(servers.*.cpu.user,3)",
        params: &[&SERIES, &NUMBER],
        eval: Eval::Series(|call| {
            let n = call.args.get(&NUMBER);
            Ok(first(call.series(&SERIES), n))
        }),
        ..FILTER
    },
    Function {
        name: "mostDeviant",
        doc: "The `n` series with the greatest standard deviation, the greatest first; a negative `n` leaves out so \
              many at the end. Series without a value are left out.",
        example: "mostDeviant(servers.*.cpu.user,3)",
        params: &[&SERIES, &NUMBER],
        eval: Eval::Series(|call| {
            let n = call.args.get(&NUMBER);
            let mut series = call.series(&SERIES);
            series.retain(|s| s.values().iter().any(|v| !v.is_nan()));
            Ok(first(sorted_by(series, |s| variance(s.values()), true), n))
        }),
        ..FILTER
    },
    Function {
        name: "removeEmptySeries",
        doc: "Series of which at least a share `xFilesFactor` (0 to 1) of the points is known, and at least one.",
        example: "removeEmptySeries(edge.*,0.5)",
        params: &[&SERIES, &XFF],
        eval: Eval::Series(|call| {
            // The request's own factor is not asked here.
            let factor = call.args.find(&XFF).unwrap_or(0.0);
            let mut series = call.series(&SERIES);
            series.retain(|s| enough(s.values().iter().filter(|v| !v.is_nan()).count(), s.len(), factor));
            Ok(series)
        }),
        ..FILTER
    },
    Function {
        name: "useSeriesAbove",
        doc: "For each series whose greatest value is above `value` another one: its name is found by replacing what \
              the regular expression `search` matches by `replace`, and the result is evaluated as a target. Series \
              with absent points do not count.",
        example: "useSeriesAbove(stats.timers.*.mean,50,\"mean\",\"upper_90\")",
        params: &[&SERIES, &VALUE, &SEARCH, &REPLACE],
        expand: Some(above),
        eval: Eval::Series(|call| {
            let series = call.targets().into_iter().flat_map(|(_, series)| series);
            Ok(series.filter(|s| !s.is_empty()).collect())
        }),
        ..FILTER
    },
];

/// A number of series; a fraction is cut off.
struct Count(i64);
impl Argument for Count {
    const KIND: Kind = Kind::Integer;
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Float(n) if n.is_finite() => Ok(Self(*n as i64)),
            other => i64::read(other).map(Self),
        }
    }
}

/// How a value compares to a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    const NAMES: [(&'static str, Operator); 6] = [
        ("!=", Self::NotEqual),
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        ("=", Self::Equal),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
    ];

    /// An absent value is less than any other.
    fn holds(self, value: f64, threshold: f64) -> bool {
        let absent = value.is_nan();
        match self {
            Self::Equal => value == threshold,
            Self::NotEqual => absent || value != threshold,
            Self::Greater => value > threshold,
            Self::GreaterOrEqual => value >= threshold,
            Self::Less => absent || value < threshold,
            Self::LessOrEqual => absent || value <= threshold,
        }
    }
}

impl Argument for Operator {
    const KIND: Kind = Kind::String;
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.python_str();
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, o)| *o).ok_or_else(|| format!("{value} is not an operator; there are =, !=, <, <=, >, >="))
    }
    fn options() -> Vec<Literal> {
        Self::NAMES.iter().map(|(name, _)| Literal::Text(name)).collect()
    }
}

fn filtered(call: &mut Call<'_>, function: Aggregation, operator: Operator, threshold: f64) -> Vec<Series> {
    let mut series = call.series(&SERIES);
    series.retain(|s| operator.holds(function.apply(s.values()), threshold));
    series
}

fn first(mut series: Vec<Series>, n: i64) -> Vec<Series> {
    series.truncate(slice(series.len(), 0, n).1);
    series
}

fn extremes(call: &mut Call<'_>, function: Aggregation, reverse: bool, n: i64) -> Vec<Series> {
    first(sorted_by(call.series(&SERIES), |s| function.apply(s.values()), reverse), n)
}

fn extremes_by_argument(call: &mut Call<'_>, reverse: bool) -> Vec<Series> {
    let Count(n) = call.args.find(&COUNT_OR_ONE).unwrap_or(Count(1));
    let Statistic(function) = call.args.get(&FUNC_OR_AVERAGE);
    extremes(call, function, reverse, n)
}

fn matching(call: &mut Call<'_>, wanted: bool) -> Result<Vec<Series>, EvalError> {
    let wrong = |e| EvalError::argument(&PATTERN, e);
    let pattern = Pattern::new(&call.args.get(&PATTERN)).map_err(wrong)?;
    let mut kept = Vec::new();
    for s in call.series(&SERIES) {
        if pattern.is_match(&s.name).map_err(wrong)? == wanted {
            kept.push(s);
        }
    }
    Ok(kept)
}

/// The square of the standard deviation.
fn variance(values: &[f64]) -> f64 {
    let mean = Aggregation::Average.apply(values);
    let (mut sum, mut count) = (0.0, 0_u32);
    for v in values.iter().filter(|v| !v.is_nan()) {
        sum += (v - mean) * (v - mean);
        count += 1;
    }
    sum / f64::from(count)
}

fn average_outside_percentile(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let n = call.args.get(&PERCENT);
    if !(0.0..=100.0).contains(&n) {
        return Err(EvalError::argument(&PERCENT, "a percentile is from 0 to 100"));
    }
    let n = if n < 50.0 { 100.0 - n } else { n };
    let series = call.series(&SERIES);
    let averages: Vec<f64> = series.iter().map(|s| Aggregation::Average.apply(s.values())).collect();
    let percentile = |n| percentile_of_row(&averages, n, false).unwrap_or(f64::NAN);
    let (low, high) = (percentile(100.0 - n), percentile(n));
    let outside = series.into_iter().zip(averages).filter(|(_, average)| !(low < *average && *average < high));
    Ok(outside.map(|(s, _)| s).collect())
}

fn above(args: &Args, _: &Request, series: &[Series]) -> Result<Vec<String>, EvalError> {
    let value = args.get(&VALUE);
    let substitution = Substitution::new(args, &SEARCH, &REPLACE)?;
    let whole = |s: &&Series| s.values().iter().all(|v| !v.is_nan());
    let above = series.iter().filter(whole).filter(|s| Aggregation::Max.apply(s.values()) > value);
    let names: Vec<String> = above.map(|s| substitution.apply(&s.name)).collect::<Result<_, _>>()?;
    // In a `group`, one replacement may make several targets, with commas between them. Names that cannot be read as
    // targets are those of no series.
    let mut groups: Vec<String> = Vec::new();
    for name in names.into_iter().filter(|name| parse(&format!("group({name})")).is_ok()) {
        match groups.last_mut() {
            Some(group) if group.len() + name.len() < MAX_BYTES / 2 => group.extend([",", &name]),
            _ => groups.push(format!("group({name}")),
        }
    }
    Ok(groups.into_iter().map(|group| group + ")").collect())
}
