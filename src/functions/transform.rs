//! Each series to another, point by point.

use super::{Eval, Function, Group, Param, SeriesList};
use crate::series::format_g;

const SERIES: Param<SeriesList> = Param::required("seriesList");
const FACTOR: Param<f64> = Param::required("factor");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "absolute",
        aliases: &[],
        group: Group::Transform,
        doc: "Replaces each value by its absolute value.",
        example: "absolute(edge.negative)",
        params: &[&SERIES],
        needs: None,
        expand: None,
        eval: Eval::Series(|call| {
            let absolute = |s: crate::series::Series| {
                let name = format!("absolute({})", s.name);
                s.map(f64::abs).tagged("absolute", "1").renamed(name)
            };
            Ok(call.series(&SERIES).into_iter().map(absolute).collect())
        }),
    },
    Function {
        name: "scale",
        aliases: &[],
        group: Group::Transform,
        doc: "Multiplies each value by a factor.",
        example: "scale(stats.timers.api.mean,0.001)",
        params: &[&SERIES, &FACTOR],
        needs: None,
        expand: None,
        eval: Eval::Series(|call| {
            let factor = call.args.get(&FACTOR);
            let scaled = |s: crate::series::Series| {
                let name = format!("scale({},{})", s.name, format_g(factor));
                s.map(|v| v * factor).tagged("scale", crate::series::float_repr(factor)).renamed(name)
            };
            Ok(call.series(&SERIES).into_iter().map(scaled).collect())
        }),
    },
];
