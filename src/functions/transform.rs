//! Each series to another, point by point: arithmetic.
//!
//! Where Python refuses (logarithm of 0, a negative number's root, an overflowing power) the point is absent.

use super::{Argument, Call, Eval, Function, Group, Kind, Param, SeriesList, Value};
use crate::series::{Aggregation, Series, float_repr, format_d, format_g, round_digits};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const CONSTANT: Param<f64> = Param::required("constant");
const FACTOR: Param<f64> = Param::required("factor");
const SECONDS: Param<f64> = Param::required("seconds");
const BASE: Param<Base> = Param::optional("base").default(super::Literal::Integer(10));
const PRECISION: Param<i64> = Param::optional("precision").default(super::Literal::Integer(0));

/// What the functions of this file have in common.
const TRANSFORM: Function = Function::of(Group::Transform, &[&SERIES]);

/// The base of a logarithm: a positive number that is not 1.
struct Base(f64);

impl Argument for Base {
    const KIND: Kind = Kind::Integer;
    fn read(value: &Value) -> Result<Self, String> {
        match value.to_float() {
            Some(base) if base > 0.0 && base != 1.0 => Ok(Self(base)),
            _ => Err(format!("{value} cannot be the base of a logarithm")),
        }
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "absolute",
        doc: "Replaces each value by its absolute value.",
        example: "absolute(edge.negative)",
        eval: Eval::Series(|call| Ok(each(call, |s| call_named("absolute", s.map(f64::abs), "1")))),
        ..TRANSFORM
    },
    Function {
        name: "add",
        doc: "Adds a constant to each value. The name of the result shows only the whole part of the constant.",
        example: "add(edge.ramp,10)",
        params: &[&SERIES, &CONSTANT],
        eval: Eval::Series(|call| {
            let constant = call.args.get(&CONSTANT);
            Ok(each(call, |s| {
                let name = format!("add({},{})", s.name, format_d(constant));
                s.map(|v| v + constant).tagged("add", float_repr(constant)).renamed(name)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "exp",
        doc: "Raises e to the power of each value. Values for which the result is too large are absent.",
        example: "exp(edge.prob)",
        eval: Eval::Series(|call| Ok(each(call, |s| call_named("exp", s.map(|v| finite_from(v, v.exp())), "e")))),
        ..TRANSFORM
    },
    Function {
        name: "invert",
        doc: "Divides 1 by each value; of 0 the result is absent.",
        example: "invert(edge.ramp)",
        eval: Eval::Series(|call| Ok(each(call, |s| call_named("invert", s.map(|v| power(v, -1.0)), "1")))),
        ..TRANSFORM
    },
    Function {
        name: "log",
        doc: "Takes the logarithm of each value, to base 10 or the given one; of 0 and less it is absent.",
        example: "log(edge.ramp,2)",
        params: &[&SERIES, &BASE],
        eval: Eval::Series(|call| {
            let shown = call.args.raw(&BASE).map(|v| v.python_str()).unwrap_or_default();
            let base = call.args.get(&BASE).0.ln();
            Ok(each(call, |s| {
                let logarithm = |v: &f64| if *v > 0.0 { v.ln() / base } else { f64::NAN };
                let values = s.values().iter().map(logarithm).collect();
                s.derived(format!("log({}, {shown})", s.name), values).tagged("log", shown.as_str())
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "logit",
        doc: "Takes the log-odds of each value, log(x / (1 - x)): a probability between 0 and 1 spread over all \
              numbers. Of values outside of 0 to 1 it is absent.",
        example: "logit(edge.prob)",
        eval: Eval::Series(|call| {
            Ok(each(call, |s| {
                let logit = |v: f64| {
                    let odds = v / (1.0 - v);
                    if odds > 0.0 && odds.is_finite() { odds.ln() } else { f64::NAN }
                };
                call_named("logit", s.map(logit), "logit")
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "minMax",
        doc: "Scales each series so that its least value becomes 0 and its greatest 1. A constant series becomes 0.",
        example: "minMax(edge.ramp)",
        eval: Eval::Series(|call| {
            Ok(each(call, |s| {
                let least = Aggregation::Min.apply(s.values());
                let range = Aggregation::Max.apply(s.values()) - least;
                let name = format!("minMax({})", s.name);
                s.map(|v| if range == 0.0 { 0.0 } else { (v - least) / range }).renamed(name)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "offset",
        doc: "Adds a constant to each value.",
        example: "offset(edge.ramp,-5)",
        params: &[&SERIES, &FACTOR],
        eval: Eval::Series(|call| {
            let constant = call.args.get(&FACTOR);
            Ok(each(call, |s| {
                let name = format!("offset({},{})", s.name, format_g(constant));
                s.map(|v| v + constant).tagged("offset", float_repr(constant)).renamed(name)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "offsetToZero",
        doc: "Subtracts from each series its least value, so that it begins at 0.",
        example: "offsetToZero(servers.*.cpu.user)",
        eval: Eval::Series(|call| {
            Ok(each(call, |s| {
                let least = Aggregation::Min.apply(s.values());
                let tag = if least.is_nan() { "None".into() } else { float_repr(least) };
                call_named("offsetToZero", s.map(|v| v - least), tag)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "pow",
        doc: "Raises each value to a power. Where there is no result (a root of a negative number, 0 to a negative \
              power, too large a number) the point is absent.",
        example: "pow(edge.ramp,2)",
        params: &[&SERIES, &FACTOR],
        eval: Eval::Series(|call| {
            let exponent = call.args.get(&FACTOR);
            Ok(each(call, |s| {
                let name = format!("pow({},{})", s.name, format_g(exponent));
                s.map(|v| power(v, exponent)).tagged("pow", float_repr(exponent)).renamed(name)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "round",
        doc: "Rounds each value to a number of decimal digits: none when it is left out; negative: to tens, hundreds \
              and so on. A tie goes to the even neighbour.",
        example: "round(edge.prob,1)",
        params: &[&SERIES, &PRECISION],
        eval: Eval::Series(|call| {
            let digits = call.args.get(&PRECISION);
            let shown = if call.args.has(&PRECISION) { format!(",{}", format_g(digits as f64)) } else { String::new() };
            Ok(each(call, |s| {
                let name = format!("round({}{shown})", s.name);
                s.map(|v| round_digits(v, digits)).tagged("round", digits.to_string()).renamed(name)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "scale",
        doc: "Multiplies each value by a factor.",
        example: "scale(stats.timers.api.mean,0.001)",
        params: &[&SERIES, &FACTOR],
        eval: Eval::Series(|call| {
            let factor = call.args.get(&FACTOR);
            Ok(each(call, |s| {
                let name = format!("scale({},{})", s.name, format_g(factor));
                s.map(|v| v * factor).tagged("scale", float_repr(factor)).renamed(name)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "scaleToSeconds",
        doc: "Converts values that are totals of one step to totals of so many seconds, by the step of the series; \
              rounded to 6 digits. The name of the result shows only whole seconds.",
        example: "scaleToSeconds(stats.counters.http.*.count,1)",
        params: &[&SERIES, &SECONDS],
        eval: Eval::Series(|call| {
            let seconds = call.args.get(&SECONDS);
            Ok(each(call, |s| {
                let name = format!("scaleToSeconds({},{})", s.name, format_d(seconds));
                let factor = seconds / s.step().seconds() as f64;
                let scaled = s.map(|v| round_digits(v * factor, 6));
                scaled.tagged("scaleToSeconds", float_repr(seconds)).renamed(name)
            }))
        }),
        ..TRANSFORM
    },
    Function {
        name: "sigmoid",
        doc: "Squeezes each value between 0 and 1 by the logistic function, 1 / (1 + e^-x).",
        example: "sigmoid(edge.negative)",
        eval: Eval::Series(|call| {
            Ok(each(call, |s| call_named("sigmoid", s.map(|v| 1.0 / (1.0 + (-v).exp())), "sigmoid")))
        }),
        ..TRANSFORM
    },
    Function {
        name: "squareRoot",
        doc: "Takes the square root of each value; of a negative one it is absent.",
        example: "squareRoot(edge.ramp)",
        eval: Eval::Series(|call| Ok(each(call, |s| call_named("squareRoot", s.map(|v| power(v, 0.5)), "1")))),
        ..TRANSFORM
    },
];

fn each(call: &mut Call<'_>, f: impl Fn(Series) -> Series) -> Vec<Series> {
    call.series(&SERIES).into_iter().map(f).collect()
}

/// Name and tag of a function without further arguments.
fn call_named(function: &str, series: Series, tag: impl Into<String>) -> Series {
    let name = format!("{function}({})", series.name);
    series.tagged(function, tag).renamed(name)
}

/// `base` to the power of `exponent` as Python's `math.pow`, absent where that raises.
fn power(base: f64, exponent: f64) -> f64 {
    let result = base.powf(exponent);
    if exponent.is_finite() { finite_from(base, result) } else { result }
}

/// The result, absent when it overflows though the value is finite.
fn finite_from(value: f64, result: f64) -> f64 {
    if result.is_infinite() && value.is_finite() { f64::NAN } else { result }
}
