//! Series that are made and not read: constants, the time, waves, random walks; and the selectors `seriesByTag` and
//! `events`, which are fetched as they stand.
//!
//! What is made follows from the range, the request's clock and its seed, so equal requests are answered equally.
//! Where graphite-web takes the time from the request zone's clock read in the server's zone, so do these.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{Amount, Call, Date, Eval, EvalError, Function, Group, Literal, MAX_POINTS, Param, Parameter};
use crate::clock::parse_time;
use crate::series::{Series, Step, float_repr};

const VALUE: Param<Option<f64>> = Param::required("value");
const LABEL: Param<String> = Param::optional("label");
const COLOR: Param<String> = Param::optional("color");
const TIME: Param<Date> = Param::required("ts");
const NAME: Param<String> = Param::required("name");
const STEP: Param<i64> = Param::optional("step").default(Literal::Integer(60));
const AMPLITUDE: Param<Amount> = Param::optional("amplitude").default(Literal::Integer(1));
const TAG_EXPRESSIONS: Param<String> = Param::required("tagExpressions").multiple();
const TAGS: Param<String> = Param::required("tags").multiple();

const NAME_AND_STEP: &[&dyn Parameter] = &[&NAME, &STEP];

/// What the functions of this file have in common.
const SOURCE: Function = Function::of(Group::Special, &[]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "constantLine",
        doc: "A horizontal line at a value, over the whole range.",
        example: "constantLine(123.456)",
        params: &[&VALUE],
        eval: Eval::Series(|call| Ok(vec![constant(call)?])),
        ..SOURCE
    },
    Function {
        name: "threshold",
        group: Group::Graph,
        doc: "A horizontal line at a value, with a label and a color.",
        example: "threshold(90,'too hot','red')",
        params: &[&VALUE, &LABEL, &COLOR],
        eval: Eval::Series(|call| {
            let mut line = constant(call)?;
            if let Some(label) = call.args.find(&LABEL).filter(|l| !l.is_empty()) {
                line = line.named(label);
            }
            Ok(vec![colored(line, call)])
        }),
        ..SOURCE
    },
    Function {
        name: "verticalLine",
        group: Group::Graph,
        doc: "A vertical line at a time, which must lie in the asked range, with a label and a color. The time is read \
              in the request's zone.",
        example: "verticalLine('-30min','deploy','blue')",
        params: &[&TIME, &LABEL, &COLOR],
        eval: Eval::Series(|call| {
            let Date(text) = call.args.get(&TIME);
            let request = call.request;
            let time = parse_time(&text, request.now, &request.time_zone).map_err(|e| EvalError::argument(&TIME, e))?;
            let [at, from, until] = [time, call.range.from(), call.range.until()].map(|t| request.server_clock(t));
            if at < from {
                return Err(EvalError::argument(&TIME, format!("{at} lies before the asked range")));
            }
            if at > until {
                return Err(EvalError::argument(&TIME, format!("{at} lies after the asked range")));
            }
            let label = call.args.find(&LABEL).unwrap_or_default();
            let mut line = made(call, &label, at, Step::SECOND, vec![1.0, 1.0], at);
            line.style_mut().draw_as_infinite = true;
            Ok(vec![colored(line, call)])
        }),
        ..SOURCE
    },
    Function {
        name: "identity",
        group: Group::Calculate,
        doc: "A series in which each value is its own time, a point a minute: for comparing with series that hold \
              times.",
        example: "identity('The time')",
        params: &[&NAME],
        eval: Eval::Series(|call| {
            let (name, from, until) = (call.args.get(&NAME), call.range.from(), call.range.until());
            let step = Step::new(60).unwrap_or(Step::SECOND);
            let values = (0..points(call, step)?).map(|i| (from + i * step.seconds()) as f64).collect();
            let mut series = made(call, &name, from, step, values, until);
            series.path_expression = format!("identity(\"{name}\")").into();
            Ok(vec![series])
        }),
        ..SOURCE
    },
    Function {
        name: "timeFunction",
        aliases: &["time"],
        group: Group::Transform,
        doc: "A series in which each value is its own time, a point every `step` seconds.",
        example: "timeFunction('The time',300)",
        params: NAME_AND_STEP,
        eval: Eval::Series(|call| {
            let (name, step) = (call.args.get(&NAME), step(call)?);
            let [from, until] = [call.range.from(), call.range.until()].map(|t| call.request.server_clock(t));
            let values = (0..points(call, step)?).map(|i| (from + i * step.seconds()) as f64).collect();
            Ok(vec![made(call, &name, from, step, values, until)])
        }),
        ..SOURCE
    },
    Function {
        name: "sinFunction",
        aliases: &["sin"],
        group: Group::Transform,
        doc: "The sine of the time in seconds, times an amplitude, a point every `step` seconds.",
        example: "sinFunction('The sine',2)",
        params: &[&NAME, &AMPLITUDE, &STEP],
        eval: Eval::Series(|call| {
            let (name, Amount(amplitude), step) = (call.args.get(&NAME), call.args.get(&AMPLITUDE), step(call)?);
            let first = call.request.server_clock(call.range.from());
            let value = |i: i64| ((first + i * step.seconds()) as f64).sin() * amplitude;
            let values = (0..points(call, step)?).map(value).collect();
            Ok(vec![made(call, &name, call.range.from(), step, values, call.range.until())])
        }),
        ..SOURCE
    },
    Function {
        name: "randomWalkFunction",
        aliases: &["randomWalk"],
        doc: "A random walk that starts at 0 and changes by at most a half from point to point: something to look at \
              where there is no data yet. Within one request, walks of one name are the same.",
        example: "randomWalkFunction('The walk')",
        params: NAME_AND_STEP,
        eval: Eval::Series(|call| {
            let (name, step) = (call.args.get(&NAME), step(call)?);
            let mut random = SmallRng::seed_from_u64(call.request.seed ^ fingerprint(&name));
            let mut value = 0.0;
            let mut values = Vec::new();
            for _ in 0..points(call, step)? {
                values.push(value);
                value += random.random::<f64>() - 0.5;
            }
            Ok(vec![made(call, &name, call.range.from(), step, values, call.range.until())])
        }),
        ..SOURCE
    },
    Function {
        name: "seriesByTag",
        doc: "The series whose tags match all expressions: 'tag=value', 'tag!=value', 'tag=~regex' or 'tag!=~regex'. \
              A regular expression is anchored at the start; a tag that is not there counts as empty, and at least \
              one expression must not match the empty value.",
        example: "seriesByTag('name=disk.used','server=~web.*')",
        params: &[&TAG_EXPRESSIONS],
        eval: Eval::Selector,
        ..SOURCE
    },
    Function {
        name: "events",
        doc: "The number of events in each second that have all the given tags; \"*\" is for all events. To be drawn \
              with drawAsInfinite.",
        example: "events('deploy')",
        params: &[&TAGS],
        eval: Eval::Selector,
        ..SOURCE
    },
];

/// A new series with the xFilesFactor in force. As in graphite-web, its end need not be where its values end.
fn made(call: &Call<'_>, name: &str, start: i64, step: Step, values: Vec<f64>, end: i64) -> Series {
    let mut series = Series::new(name, start, step, values).ending(end);
    series.x_files_factor = call.state.x_files_factor;
    series
}

fn constant(call: &Call<'_>) -> Result<Series, EvalError> {
    let value = call.args.get(&VALUE);
    let name = value.map_or_else(|| "None".to_owned(), float_repr);
    constant_line(call, &name, value.unwrap_or(f64::NAN))
}

/// A line at a value: three points, at the start, in the middle and at the end of the range.
///
/// # Errors
/// The range is a single second.
pub(super) fn constant_line(call: &Call<'_>, name: &str, value: f64) -> Result<Series, EvalError> {
    let step = Step::new(call.range.seconds() / 2)
        .ok_or_else(|| EvalError::new("the asked range is too short for a line; two seconds are needed"))?;
    let mut line = made(call, name, call.range.from(), step, vec![value; 3], call.range.until());
    line.path_expression = format!("constantLine({name})").into();
    Ok(line)
}

fn colored(mut line: Series, call: &Call<'_>) -> Series {
    if let Some(color) = call.args.find(&COLOR).filter(|c| !c.is_empty()) {
        line.style_mut().color = Some(color);
    }
    line
}

fn step(call: &Call<'_>) -> Result<Step, EvalError> {
    let seconds = call.args.get(&STEP);
    Step::new(seconds).ok_or_else(|| EvalError::argument(&STEP, format!("{seconds} is not a step of a second or more")))
}

/// How many points from the start of the range on lie before its end.
fn points(call: &Call<'_>, step: Step) -> Result<i64, EvalError> {
    let points = (call.range.seconds() - 1) / step.seconds() + 1;
    if points > MAX_POINTS {
        return Err(EvalError::new(format!("{points} points are more than {MAX_POINTS}; ask for a shorter range")));
    }
    Ok(points)
}

/// FNV-1a, so that walks of different names differ.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
