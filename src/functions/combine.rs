//! Several series to one: `aggregate`, the functions that are `aggregate` with a fixed function, and others that reduce
//! each column to one value.

use std::sync::Arc;

use super::names::{joined, path_expressions};
use super::normalize::Normalized;
use super::{Call, Eval, EvalError, Function, Group, Literal, Param, SeriesList, columns};
use crate::series::{Aggregation, Series, Step, Tags, format_g};

const SERIES_LISTS: Param<SeriesList> = Param::optional("seriesLists").shown_required().multiple();
const COUNTED: Param<SeriesList> = Param::optional("seriesLists").multiple();
const POWERS: Param<SeriesList> = Param::optional("seriesList").shown_required().multiple();
const SERIES: Param<SeriesList> = Param::required("seriesList");
const FUNC: Param<Aggregation> = Param::required("func");
const XFF: Param<f64> = Param::optional("xFilesFactor");
const PERCENT: Param<f64> = Param::required("n");
const INTERPOLATE: Param<bool> = Param::optional("interpolate").default(Literal::Boolean(false));

/// What most functions of the group have in common.
pub(super) const COMBINE: Function = Function::of(Group::Combine, &[&SERIES_LISTS]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "aggregate",
        doc: "Combines the series of a list into one: each point is the given function of the points of all series at \
              that index. Points of which fewer than xFilesFactor of the series are known are absent.",
        example: "aggregate(servers.*.cpu.user,\"sum\")",
        params: &[&SERIES, &FUNC, &XFF],
        eval: Eval::Series(|call| {
            let series = call.series(&SERIES);
            let (name, function) = function_of(call, &FUNC);
            let xff = call.args.find(&XFF);
            aggregate(call, &series, &name, function, xff)
        }),
        ..COMBINE
    },
    Function {
        name: "averageSeries",
        aliases: &["avg"],
        doc: "The mean of the series at each point. Absent points do not count.",
        example: "averageSeries(servers.*.cpu.user)",
        eval: Eval::Series(|call| combined(call, "average", Aggregation::Average)),
        ..COMBINE
    },
    Function {
        name: "countSeries",
        doc: "A line at the number of series, whether their points are known or not. Without arguments a line at 0.",
        example: "countSeries(servers.*.cpu.user)",
        params: &[&COUNTED],
        eval: Eval::Series(count_series),
        ..COMBINE
    },
    Function {
        name: "diffSeries",
        doc: "Subtracts all further series from the first one. Where the first is absent, the next known one takes its \
              place. `offset` subtracts a constant.",
        example: "diffSeries(servers.web01.memory.total,servers.web01.memory.free)",
        eval: Eval::Series(|call| combined(call, "diff", Aggregation::Diff)),
        ..COMBINE
    },
    Function {
        name: "maxSeries",
        doc: "The greatest of the series at each point.",
        example: "maxSeries(servers.*.cpu.user)",
        eval: Eval::Series(|call| combined(call, "max", Aggregation::Max)),
        ..COMBINE
    },
    Function {
        name: "minSeries",
        doc: "The least of the series at each point.",
        example: "minSeries(servers.*.cpu.user)",
        eval: Eval::Series(|call| combined(call, "min", Aggregation::Min)),
        ..COMBINE
    },
    Function {
        name: "multiplySeries",
        doc: "The product of the series; absent where any of them is. One series alone is returned as it is. `scale` \
              multiplies by a constant.",
        example: "multiplySeries(stats.timers.api.mean,stats.timers.api.count)",
        eval: Eval::Series(|call| {
            let mut lists = call.lists(&SERIES_LISTS);
            match lists.as_mut_slice() {
                [only] if only.len() == 1 => Ok(std::mem::take(only)),
                _ => aggregate(call, &lists.concat(), "multiply", Aggregation::Multiply, None),
            }
        }),
        ..COMBINE
    },
    Function {
        name: "percentileOfSeries",
        doc: "The n-th percentile over all series at each point: one of their values, or with interpolate a value \
              between two of them.",
        example: "percentileOfSeries(servers.*.cpu.user,95)",
        params: &[&SERIES, &PERCENT, &INTERPOLATE],
        eval: Eval::Series(percentile_of_series),
        ..COMBINE
    },
    Function {
        name: "powSeries",
        doc: "Raises the first series to the power of the second, the result to the power of the third and so on; \
              absent where any of them is, or where a power is not a finite number.",
        example: "powSeries(servers.web01.cpu.user,edge.bool)",
        params: &[&POWERS],
        eval: Eval::Series(|call| {
            let series = call.series(&POWERS);
            let Some(normalized) = Normalized::new(&series)? else { return Ok(Vec::new()) };
            let name = format!("powSeries({})", joined(series.iter().map(|s| &*s.name)));
            Ok(vec![result(call, &normalized, name, columns::power(&normalized.rows))])
        }),
        ..COMBINE
    },
    Function {
        name: "rangeOfSeries",
        doc: "The difference of the greatest and the least of the series at each point.",
        example: "rangeOfSeries(servers.*.cpu.user)",
        eval: Eval::Series(|call| combined(call, "rangeOf", Aggregation::Range)),
        ..COMBINE
    },
    Function {
        name: "stddevSeries",
        doc: "The standard deviation (of the population) of the series at each point.",
        example: "stddevSeries(servers.*.cpu.user)",
        eval: Eval::Series(|call| combined(call, "stddev", Aggregation::Stddev)),
        ..COMBINE
    },
    Function {
        name: "sumSeries",
        aliases: &["sum"],
        doc: "Adds the series up, point by point. Absent points count as nothing; where all are absent the sum is too.",
        example: "sumSeries(servers.*.cpu.user)",
        eval: Eval::Series(|call| combined(call, "sum", Aggregation::Sum)),
        ..COMBINE
    },
];

/// The aggregation function of an argument, and its name in results: `sum` for `sumSeries`.
pub(super) fn function_of(call: &Call<'_>, param: &Param<Aggregation>) -> (String, Aggregation) {
    let written = call.args.raw(param).map(|v| v.python_str()).unwrap_or_default();
    let name = written.strip_suffix("Series").unwrap_or(&written).to_owned();
    (name, call.args.get(param))
}

fn combined(call: &mut Call<'_>, name: &str, function: Aggregation) -> Result<Vec<Series>, EvalError> {
    let series = call.series(&SERIES_LISTS);
    aggregate(call, &series, name, function, None)
}

/// One series of the given function over each column of `series`; nothing when there are none. Its name is
/// `<name>Series(<path expressions>)`; its tags are those that all series share, and `aggregatedBy`.
///
/// # Errors
/// The series have no common step.
pub(super) fn aggregate<'s, I>(
    call: &Call<'_>,
    series: I,
    name: &str,
    function: Aggregation,
    x_files_factor: Option<f64>,
) -> Result<Vec<Series>, EvalError>
where
    I: IntoIterator<Item = &'s Series> + Clone,
{
    let Some(normalized) = Normalized::new(series.clone())? else { return Ok(Vec::new()) };
    let x_files_factor = x_files_factor.unwrap_or(call.state.x_files_factor);
    let full_name = format!("{name}Series({})", path_expressions(series.clone()));
    let values = normalized.reduce(function, x_files_factor);
    let mut tags = common_tags(series);
    let own = Arc::make_mut(&mut tags);
    if !own.contains("name") {
        own.set("name", full_name.as_str());
    }
    own.set("aggregatedBy", name);
    let mut result =
        Series::with_tags(full_name, tags, normalized.start, normalized.step, values).ending(normalized.end);
    result.x_files_factor = x_files_factor;
    Ok(vec![result])
}

/// The tags that all series have with the same value.
fn common_tags<'s>(series: impl IntoIterator<Item = &'s Series>) -> Arc<Tags> {
    let mut series = series.into_iter();
    let mut tags = series.next().map(|s| s.tags.clone()).unwrap_or_default();
    for other in series {
        if !Arc::ptr_eq(&other.tags, &tags) && other.tags != tags {
            Arc::make_mut(&mut tags).intersect(&other.tags);
        }
    }
    tags
}

/// A new series over all that was normalized, with the xFilesFactor in force.
pub(super) fn result(call: &Call<'_>, normalized: &Normalized<'_>, name: String, values: Vec<f64>) -> Series {
    let mut series = Series::new(name, normalized.start, normalized.step, values).ending(normalized.end);
    series.x_files_factor = call.state.x_files_factor;
    series
}

fn count_series(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    if !call.has_series(&COUNTED) {
        // Three points, as a constant line has them.
        let (from, until) = (call.range.from(), call.range.until());
        let step = Step::new((until - from) / 2)
            .ok_or_else(|| EvalError::new("the range is too short, or too long, for a line of three points"))?;
        let mut line = Series::new("0", from, step, vec![0.0; 3]).ending(until);
        line.path_expression = "countSeries()".into();
        line.x_files_factor = call.state.x_files_factor;
        return Ok(vec![line]);
    }
    let series = call.series(&COUNTED);
    let Some(normalized) = Normalized::new(&series)? else { return Ok(Vec::new()) };
    let name = format!("countSeries({})", path_expressions(&series));
    let values = vec![series.len() as f64; columns::width(&normalized.rows)];
    Ok(vec![result(call, &normalized, name, values)])
}

fn percentile_of_series(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let series = call.series(&SERIES);
    let (percent, interpolate) = (call.args.get(&PERCENT), call.args.get(&INTERPOLATE));
    if percent.is_nan() || percent <= 0.0 {
        return Err(EvalError::argument(&PERCENT, format!("{} is not greater than 0", format_g(percent))));
    }
    let Some(normalized) = Normalized::new(&series)? else { return Ok(Vec::new()) };
    let name = format!("percentileOfSeries({},{})", series[0].path_expression, format_g(percent));
    let values = columns::percentile(&normalized.rows, percent, interpolate);
    Ok(vec![result(call, &normalized, name, values)])
}
