//! Several series to one: `aggregate` and the functions that are `aggregate` with a fixed function.

use super::names::path_expressions;
use super::normalize::Normalized;
use super::{Call, Eval, EvalError, Function, Group, Param, Parameter, SeriesList};
use crate::series::{Aggregation, Series};

const SERIES_LISTS: Param<SeriesList> = Param::optional("seriesLists").shown_required().multiple();
const SERIES: Param<SeriesList> = Param::required("seriesList");
const FUNC: Param<Aggregation> = Param::required("func");
const XFF: Param<f64> = Param::optional("xFilesFactor");

const LISTS: &[&dyn Parameter] = &[&SERIES_LISTS];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "aggregate",
        aliases: &[],
        group: Group::Combine,
        doc: "Combines the series of a list into one: each point is the given function of the points of all series at \
              that index. Points of which fewer than xFilesFactor of the series are known are absent.",
        example: "aggregate(servers.*.cpu.user,\"sum\")",
        params: &[&SERIES, &FUNC, &XFF],
        needs: None,
        expand: None,
        eval: Eval::Series(|call| {
            let series = call.series(&SERIES);
            let written = call.args.raw(&FUNC).map(|v| v.python_str()).unwrap_or_default();
            let name = written.strip_suffix("Series").unwrap_or(&written).to_owned();
            let (function, xff) = (call.args.get(&FUNC), call.args.find(&XFF));
            aggregate(call, &series, &name, function, xff)
        }),
    },
    Function {
        name: "sumSeries",
        aliases: &["sum"],
        group: Group::Combine,
        doc: "Adds the series up, point by point. Absent points count as nothing; where all are absent the sum is too.",
        example: "sumSeries(servers.*.cpu.user)",
        params: LISTS,
        needs: None,
        expand: None,
        eval: Eval::Series(|call| combined(call, "sum", Aggregation::Sum)),
    },
];

fn combined(call: &mut Call<'_>, name: &str, function: Aggregation) -> Result<Vec<Series>, EvalError> {
    let series = call.series(&SERIES_LISTS);
    aggregate(call, &series, name, function, None)
}

/// One series of the given function over each column of `series`; nothing when there are none. Its name is
/// `<name>Series(<path expressions>)`; its tags are those that all series share, and `aggregatedBy`.
///
/// # Errors
/// The series have no common step.
pub(super) fn aggregate(
    call: &Call<'_>,
    series: &[Series],
    name: &str,
    function: Aggregation,
    x_files_factor: Option<f64>,
) -> Result<Vec<Series>, EvalError> {
    let Some(normalized) = Normalized::new(series)? else { return Ok(Vec::new()) };
    let x_files_factor = x_files_factor.unwrap_or(call.state.x_files_factor);
    let full_name = format!("{name}Series({})", path_expressions(series));
    let values = normalized.reduce(function, x_files_factor);
    let mut tags = series[0].tags.clone();
    for other in &series[1..] {
        if other.tags != tags {
            std::sync::Arc::make_mut(&mut tags).intersect(&other.tags);
        }
    }
    let own = std::sync::Arc::make_mut(&mut tags);
    if !own.contains("name") {
        own.set("name", full_name.as_str());
    }
    own.set("aggregatedBy", name);
    let mut result =
        Series::with_tags(full_name, tags, normalized.start, normalized.step, values).ending(normalized.end);
    result.x_files_factor = x_files_factor;
    Ok(vec![result])
}
