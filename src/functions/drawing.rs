//! How series are drawn: the functions of group Graph. Most change nothing but the style that the graph reads.

use super::{Amount, Call, Eval, Function, Group, Literal, Param, SeriesList};
use crate::series::{Series, Style, float_repr, format_g};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const ALPHA: Param<f64> = Param::required("alpha");
const COLOR: Param<String> = Param::required("theColor");
const DASH_LENGTH: Param<Amount> = Param::optional("dashLength").default(Literal::Integer(5));
const WIDTH: Param<f64> = Param::required("width");
const STACK: Param<String> = Param::optional("stack").also("stackName");

/// The stack of series for which no stack is named.
const DEFAULT_STACK: &str = "__DEFAULT__";

/// What the functions of this file have in common.
const DRAWING: Function = Function::of(Group::Graph, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "alpha",
        doc: "Draws series with this opacity, from 0 to 1.",
        example: "alpha(servers.web01.cpu.user,0.5)",
        params: &[&SERIES, &ALPHA],
        eval: Eval::Series(|call| {
            let alpha = call.args.get(&ALPHA);
            Ok(styled(call, |style| style.alpha = Some(alpha)))
        }),
        ..DRAWING
    },
    Function {
        name: "color",
        doc: "Draws series in this colour: a name such as \"green\", or hexadecimal digits of red, green, blue and \
              perhaps opacity.",
        example: "color(servers.web01.cpu.user,\"6464ffaa\")",
        params: &[&SERIES, &COLOR],
        eval: Eval::Series(|call| {
            let color = call.args.get(&COLOR);
            Ok(styled(call, |style| style.color = Some(color.clone())))
        }),
        ..DRAWING
    },
    Function {
        name: "dashed",
        doc: "Draws series as dashed lines, with dashes of this many pixels.",
        example: "dashed(servers.web01.cpu.user,2.5)",
        params: &[&SERIES, &DASH_LENGTH],
        eval: Eval::Series(|call| {
            let Amount(length) = call.args.get(&DASH_LENGTH);
            let whole = call.args.raw(&DASH_LENGTH).and_then(|v| v.to_integer());
            let tag = whole.map_or_else(|| float_repr(length), |n| n.to_string());
            let shown = format_g(length);
            let dashed = styled(call, |style| style.dashed = Some(length)).into_iter().map(|s| {
                let name = format!("dashed({}, {shown})", s.name);
                s.tagged("dashed", tag.as_str()).named(name)
            });
            Ok(dashed.collect())
        }),
        ..DRAWING
    },
    Function {
        name: "drawAsInfinite",
        doc: "Draws a vertical line at each point above 0, for series that tell of events.",
        example: "drawAsInfinite(edge.bool)",
        eval: Eval::Series(|call| {
            let series = styled(call, |style| style.draw_as_infinite = true);
            Ok(wrapped(series, "drawAsInfinite"))
        }),
        ..DRAWING
    },
    Function {
        name: "lineWidth",
        doc: "Draws series with lines of this many pixels, whatever the graph's own width is.",
        example: "lineWidth(servers.web01.cpu.user,5)",
        params: &[&SERIES, &WIDTH],
        eval: Eval::Series(|call| {
            let width = call.args.get(&WIDTH);
            Ok(styled(call, |style| style.line_width = Some(width)))
        }),
        ..DRAWING
    },
    Function {
        name: "secondYAxis",
        doc: "Draws series by the scale of a second y axis, at the right side.",
        example: "secondYAxis(servers.web01.memory.free)",
        eval: Eval::Series(|call| {
            let series = styled(call, |style| style.second_y_axis = true);
            Ok(wrapped(series, "secondYAxis"))
        }),
        ..DRAWING
    },
    Function {
        name: "stacked",
        doc: "Puts series on top of each other: each value becomes the sum of it and all series before it in the same \
              stack, point by point, through all targets of the request. `stack` names a stack, so that there can be \
              several; with it the names of the series stay as they are.",
        example: "stacked(servers.web0[12].cpu.user,\"users\")",
        params: &[&SERIES, &STACK],
        eval: Eval::Series(|call| Ok(stacked(call))),
        ..DRAWING
    },
];

fn styled(call: &mut Call<'_>, set: impl Fn(&mut Style)) -> Vec<Series> {
    let mut series = call.series(&SERIES);
    for s in &mut series {
        set(s.style_mut());
    }
    series
}

/// The series with `function(…)` around their names and a tag that says so.
fn wrapped(series: Vec<Series>, function: &str) -> Vec<Series> {
    let wrap = |s: Series| {
        let name = format!("{function}({})", s.name);
        s.tagged(function, "1").named(name)
    };
    series.into_iter().map(wrap).collect()
}

fn stacked(call: &mut Call<'_>) -> Vec<Series> {
    let stack = call.args.find(&STACK).unwrap_or_else(|| DEFAULT_STACK.to_owned());
    let series = call.series(&SERIES);
    let named = stack != DEFAULT_STACK;
    let totals = call.state.stacks.entry(stack).or_default();
    let stacked = series.into_iter().map(|mut s| {
        if totals.len() < s.len() {
            totals.resize(s.len(), 0.0);
        }
        let add = |(total, value): (&mut f64, &f64)| {
            if value.is_nan() {
                return f64::NAN;
            }
            *total += value;
            *total
        };
        let values = totals.iter_mut().zip(s.values()).map(add).collect();
        let name = if named { s.name.to_string() } else { format!("stacked({})", s.name) };
        if !named {
            s.tags_mut().set("stacked", DEFAULT_STACK);
        }
        let mut stacked = s.derived(name, values);
        stacked.style_mut().stacked = true;
        stacked
    });
    stacked.collect()
}
