//! What concerns a series as a whole: how it is consolidated, where it changes.

use super::{Eval, Function, Group, Literal, Param, SeriesList};
use crate::series::{Consolidation, Series, float_repr};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const CONSOLIDATION: Param<String> = Param::required("consolidationFunc").options(&[
    Literal::Text("average"),
    Literal::Text("avg"),
    Literal::Text("avg_zero"),
    Literal::Text("first"),
    Literal::Text("last"),
    Literal::Text("max"),
    Literal::Text("min"),
    Literal::Text("sum"),
]);
const X_FILES_FACTOR: Param<Option<f64>> = Param::required("xFilesFactor");

/// What the functions of this file have in common.
const SPECIAL: Function = Function::of(Group::Special, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "changed",
        doc: "1 where the value is not the last known one, else 0; never absent.",
        example: "changed(edge.steps)",
        eval: Eval::Series(|call| {
            let changed = |mut s: Series| {
                let mut previous = f64::NAN;
                for value in s.values_mut() {
                    let now = *value;
                    let differs = !now.is_nan() && !previous.is_nan() && now != previous;
                    *value = f64::from(u8::from(differs));
                    if !now.is_nan() {
                        previous = now;
                    }
                }
                let name = format!("changed({})", s.name);
                s.renamed(name)
            };
            Ok(call.series(&SERIES).into_iter().map(changed).collect())
        }),
        ..SPECIAL
    },
    Function {
        name: "consolidateBy",
        doc: "Says how points are joined when there are more of them than are wanted, in graphs, with maxDataPoints \
              and when series of different steps are combined: by average (which is the default), sum, min, max, \
              first, last or avg_zero (absent points as 0). Other aggregation functions (median, stddev…) may be \
              named too. A name that is none of them changes nothing but the name of the series.",
        example: "consolidateBy(servers.*.cpu.user,\"max\")",
        params: &[&SERIES, &CONSOLIDATION],
        eval: Eval::Series(|call| {
            let function = call.args.get(&CONSOLIDATION);
            Ok(call.series(&SERIES).into_iter().map(|s| consolidated_by(s, &function)).collect())
        }),
        ..SPECIAL
    },
    Function {
        name: "cumulative",
        doc: "Short for consolidateBy(seriesList,\"sum\").",
        example: "cumulative(stats.counters.http.*.count)",
        eval: Eval::Series(|call| Ok(call.series(&SERIES).into_iter().map(|s| consolidated_by(s, "sum")).collect())),
        ..SPECIAL
    },
    Function {
        name: "setXFilesFactor",
        aliases: &["xFilesFactor"],
        doc: "Sets which share of the points (0 to 1) must be known for a joined point to be known: when points are \
              consolidated, summarized or aggregated. It holds for the given series, and for all that is evaluated \
              later in the same request.",
        example: "summarize(setXFilesFactor(edge.sparse,0.5),\"10min\",\"avg\")",
        params: &[&SERIES, &X_FILES_FACTOR],
        eval: Eval::Series(|call| {
            let factor = call.args.get(&X_FILES_FACTOR);
            let tag = factor.map_or_else(|| "None".into(), float_repr);
            let factor = factor.unwrap_or(0.0);
            call.state.x_files_factor = factor;
            let set = |mut s: Series| {
                s.x_files_factor = factor;
                s.tagged("xFilesFactor", tag.as_str())
            };
            Ok(call.series(&SERIES).into_iter().map(set).collect())
        }),
        ..SPECIAL
    },
];

fn consolidated_by(mut series: Series, function: &str) -> Series {
    if let Some(consolidation) = Consolidation::by_name(function) {
        series.consolidation = consolidation;
    }
    let name = format!("consolidateBy({},\"{function}\")", series.name);
    series.tagged("consolidateBy", function).renamed(name)
}
