//! Change from point to point and its opposite: derivatives, integrals; points moved.

use super::{Argument, Call, Eval, Function, Group, Interval, Kind, Param, SeriesList, Value};
use crate::series::{Series, round_digits};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const MAX_VALUE: Param<f64> = Param::optional("maxValue");
const MIN_VALUE: Param<f64> = Param::optional("minValue");
const STEPS: Param<i64> = Param::required("steps");
const INTERVAL_UNIT: Param<Period> = Param::required("intervalUnit");

/// What the functions of this file have in common.
const RATE: Function = Function::of(Group::Transform, &[&SERIES]);

/// A length of time whose sign does not matter, in seconds; at least one.
struct Period(i64);

impl Argument for Period {
    const KIND: Kind = Kind::String;
    fn read(value: &Value) -> Result<Self, String> {
        match Interval::read(value)?.seconds.abs() {
            0 => Err(format!("{value} has no length")),
            seconds => Ok(Self(seconds)),
        }
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "delay",
        doc: "Moves the values by so many points to later times (negative: to earlier ones); what moves out of the \
              range is lost. Nothing is fetched for the points that become free, they are absent. As in graphite-web, \
              a delay of 0 leaves no points at all.",
        example: "delay(edge.ramp,3)",
        params: &[&SERIES, &STEPS],
        eval: Eval::Series(|call| {
            let steps = call.args.get(&STEPS);
            let delayed = |s: Series| {
                let name = format!("delay({},{steps})", s.name);
                s.derived(name, delayed(s.values(), steps)).tagged("delay", steps.to_string())
            };
            Ok(call.series(&SERIES).into_iter().map(delayed).collect())
        }),
        ..RATE
    },
    Function {
        name: "derivative",
        doc: "The change from each value to the next: what a counter has counted in each step. Absent where one of the \
              two is.",
        example: "derivative(servers.web01.net.eth0.rx_bytes)",
        eval: Eval::Series(|call| {
            Ok(each(call, "derivative", |s| {
                let mut previous = f64::NAN;
                let change = |v: &f64| *v - std::mem::replace(&mut previous, *v);
                s.values().iter().map(change).collect()
            }))
        }),
        ..RATE
    },
    Function {
        name: "integral",
        doc: "The sum of all values up to each point; absent where the value is.",
        example: "integral(stats.counters.http.*.count)",
        eval: Eval::Series(|call| {
            Ok(each(call, "integral", |s| {
                let mut total = 0.0;
                let add = |v: &f64| {
                    if v.is_nan() {
                        return f64::NAN;
                    }
                    total += v;
                    total
                };
                s.values().iter().map(add).collect()
            }))
        }),
        ..RATE
    },
    Function {
        name: "integralByInterval",
        doc: "The sum of all values up to each point, begun anew in each interval. The intervals are counted from the \
              start of the range. Absent values count as nothing.",
        example: "integralByInterval(stats.counters.http.*.count,\"10min\")",
        params: &[&SERIES, &INTERVAL_UNIT],
        eval: Eval::Series(|call| {
            let shown = call.args.raw(&INTERVAL_UNIT).map(|v| v.python_str()).unwrap_or_default();
            let Period(period) = call.args.get(&INTERVAL_UNIT);
            let from = call.request.server_clock(call.range.from());
            let summed = |s: Series| {
                let name = format!("integralByInterval({},'{shown}')", s.name);
                s.derived(name, integral_by(&s, period, from)).tagged("integralByInterval", shown.as_str())
            };
            Ok(call.series(&SERIES).into_iter().map(summed).collect())
        }),
        ..RATE
    },
    Function {
        name: "nonNegativeDerivative",
        doc: "Like derivative, for counters that are reset or wrap: where the value falls there is no result. With \
              maxValue, the value at which the counter wraps, and minValue, to which it falls, the change across the \
              wrap is computed. Values beyond them are left out.",
        example: "nonNegativeDerivative(servers.web01.net.eth1.rx_bytes)",
        params: &[&SERIES, &MAX_VALUE, &MIN_VALUE],
        eval: Eval::Series(|call| {
            let counter = Counter::of(call);
            Ok(each(call, "nonNegativeDerivative", |s| counter.changes(s).collect()))
        }),
        ..RATE
    },
    Function {
        name: "perSecond",
        doc: "The rate at which a counter counts: nonNegativeDerivative divided by the step in seconds, rounded to 6 \
              digits.",
        example: "perSecond(servers.web01.net.eth0.rx_bytes)",
        params: &[&SERIES, &MAX_VALUE, &MIN_VALUE],
        eval: Eval::Series(|call| {
            let counter = Counter::of(call);
            Ok(each(call, "perSecond", |s| {
                let step = s.step().seconds() as f64;
                counter.changes(s).map(|change| round_digits(change / step, 6)).collect()
            }))
        }),
        ..RATE
    },
];

/// New values for each series, with name and tag of a function that shows no arguments.
fn each(call: &mut Call<'_>, function: &str, f: impl Fn(&Series) -> Vec<f64>) -> Vec<Series> {
    let computed = |s: Series| s.derived(format!("{function}({})", s.name), f(&s)).tagged(function, "1");
    call.series(&SERIES).into_iter().map(computed).collect()
}

fn delayed(values: &[f64], steps: i64) -> Vec<f64> {
    let free = usize::try_from(steps.unsigned_abs()).unwrap_or(usize::MAX).min(values.len());
    let absent = std::iter::repeat_n(f64::NAN, free);
    let kept = values.len() - free;
    match steps {
        0 => Vec::new(),
        1.. => absent.chain(values[..kept].iter().copied()).collect(),
        _ => values[free..].iter().copied().chain(absent).collect(),
    }
}

fn integral_by(series: &Series, period: i64, from: i64) -> Vec<f64> {
    let step = series.step().seconds();
    let interval_of = |time: i64| (time - from).div_euclid(period);
    let mut total = 0.0;
    let mut out = Vec::with_capacity(series.len());
    for (i, value) in series.values().iter().enumerate() {
        let time = series.time(i);
        if interval_of(time) != interval_of(time - step) {
            total = 0.0;
        }
        if !value.is_nan() {
            total += value;
        }
        out.push(total);
    }
    out
}

/// A counter that wraps at `max` to `min`; NaN when not given.
#[derive(Clone, Copy)]
struct Counter {
    max: f64,
    min: f64,
}

impl Counter {
    fn of(call: &Call<'_>) -> Self {
        let of = |param| call.args.find(param).unwrap_or(f64::NAN);
        Self { max: of(&MAX_VALUE), min: of(&MIN_VALUE) }
    }

    fn changes(self, series: &Series) -> impl Iterator<Item = f64> {
        let mut previous = f64::NAN;
        series.values().iter().map(move |v| {
            let value = if *v > self.max || *v < self.min { f64::NAN } else { *v };
            let previous = std::mem::replace(&mut previous, value);
            if value.is_nan() || previous.is_nan() {
                f64::NAN
            } else if value >= previous {
                value - previous
            } else if self.max.is_nan() {
                // Absent too when the minimum is not given.
                value - self.min
            } else {
                self.max + 1.0 + value - previous - if self.min.is_nan() { 0.0 } else { self.min }
            }
        })
    }
}
