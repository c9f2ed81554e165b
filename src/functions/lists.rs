//! Lists of series as lists: joined, without doubles, with a substitute, and combined pair by pair.

use std::collections::HashSet;

use super::combine::{COMBINE, aggregate, function_of};
use super::{Call, Eval, EvalError, Function, Group, Param, Parameter, SeriesList};
use crate::series::{Aggregation, Series};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const FALLBACK: Param<SeriesList> = Param::required("fallback");
const SERIES_LISTS: Param<SeriesList> = Param::optional("seriesLists").multiple();
const SOME_LISTS: Param<SeriesList> = Param::optional("seriesLists").shown_required().multiple();
const FIRST: Param<SeriesList> = Param::required("seriesListFirstPos");
const SECOND: Param<SeriesList> = Param::required("seriesListSecondPos");
const FUNC: Param<Aggregation> = Param::required("func");
const XFF: Param<f64> = Param::optional("xFilesFactor");

const PAIR: &[&dyn Parameter] = &[&FIRST, &SECOND];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "aggregateSeriesLists",
        doc: "Combines the first series of one list with the first of another, the second with the second and so on, \
              by the given function. Both lists must have the same number of series.",
        example: "aggregateSeriesLists(servers.web0[12].cpu.user,servers.web0[12].cpu.system,\"sum\")",
        params: &[&FIRST, &SECOND, &FUNC, &XFF],
        eval: Eval::Series(|call| {
            let (name, function) = function_of(call, &FUNC);
            let xff = call.args.find(&XFF);
            pair_by_pair(call, &name, function, xff)
        }),
        ..COMBINE
    },
    Function {
        name: "diffSeriesLists",
        doc: "Subtracts the first series of the second list from the first of the first list, the second from the \
              second and so on. Both lists must have the same number of series.",
        example: "diffSeriesLists(servers.web0[12].cpu.user,servers.web0[12].cpu.system)",
        params: PAIR,
        eval: Eval::Series(|call| pair_by_pair(call, "diff", Aggregation::Diff, None)),
        ..COMBINE
    },
    Function {
        name: "fallbackSeries",
        group: Group::Special,
        doc: "The first list, or the second one when there is no series in the first.",
        example: "fallbackSeries(servers.web99.cpu.user,edge.zeros)",
        params: &[&SERIES, &FALLBACK],
        eval: Eval::Series(|call| {
            let series = call.series(&SERIES);
            Ok(if series.is_empty() { call.series(&FALLBACK) } else { series })
        }),
        ..COMBINE
    },
    Function {
        name: "group",
        doc: "Joins any number of lists to one, for functions that take only one.",
        example: "group(servers.web01.cpu.user,app.load.*)",
        params: &[&SERIES_LISTS],
        eval: Eval::Series(|call| Ok(call.series(&SERIES_LISTS))),
        ..COMBINE
    },
    Function {
        name: "multiplySeriesLists",
        doc: "Multiplies the first series of one list by the first of another, the second by the second and so on. Both \
              lists must have the same number of series.",
        example: "multiplySeriesLists(stats.timers.*.mean,stats.timers.*.count)",
        params: PAIR,
        eval: Eval::Series(|call| pair_by_pair(call, "multiply", Aggregation::Multiply, None)),
        ..COMBINE
    },
    Function {
        name: "sumSeriesLists",
        doc: "Adds the first series of one list and the first of another, the second and the second and so on. Both \
              lists must have the same number of series.",
        example: "sumSeriesLists(servers.web0[12].cpu.user,servers.web0[12].cpu.system)",
        params: PAIR,
        eval: Eval::Series(|call| pair_by_pair(call, "sum", Aggregation::Sum, None)),
        ..COMBINE
    },
    Function {
        name: "unique",
        group: Group::FilterSeries,
        doc: "Joins any number of lists to one in which no name occurs twice; the first series of a name stays.",
        example: "unique(servers.web0[12].cpu.user,servers.*.cpu.user)",
        params: &[&SOME_LISTS],
        eval: Eval::Series(|call| {
            let mut seen = HashSet::new();
            let mut series = call.series(&SOME_LISTS);
            series.retain(|s| seen.insert(s.name.clone()));
            Ok(series)
        }),
        ..COMBINE
    },
];

/// The series of `first` and `second` at the same places.
///
/// # Errors
/// The lists differ in length.
pub(super) fn paired(
    call: &mut Call<'_>,
    first: &Param<SeriesList>,
    second: &Param<SeriesList>,
) -> Result<Vec<(Series, Series)>, EvalError> {
    let (ours, theirs) = (call.series(first), call.series(second));
    if ours.len() != theirs.len() {
        let (a, b) = (Parameter::name(first), Parameter::name(second));
        let message = format!("{b} has {} series and {a} has {}", theirs.len(), ours.len());
        return Err(EvalError::argument(second, format!("as many series as in {a} are expected: {message}")));
    }
    Ok(ours.into_iter().zip(theirs).collect())
}

fn pair_by_pair(
    call: &mut Call<'_>,
    name: &str,
    function: Aggregation,
    x_files_factor: Option<f64>,
) -> Result<Vec<Series>, EvalError> {
    let mut results = Vec::new();
    for (a, b) in paired(call, &FIRST, &SECOND)? {
        let combined = aggregate(call, [&a, &b], name, function, x_files_factor)?;
        let full_name = format!("{name}Series({},{})", a.name, b.name);
        results.extend(combined.into_iter().map(|s| s.named(full_name.as_str())));
    }
    Ok(results)
}
