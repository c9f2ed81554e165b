//! Series at other times: shifted, stacked, cut out.
//!
//! `timeShift` and `timeStack` read only the shifted ranges. Where the points then lie is said by graphite-web in terms
//! of the unshifted series; that place follows from the asked range, so the unshifted series are not read.

use super::{Args, Ask, Call, Date, Eval, EvalError, Function, Group, Interval, Literal, Needs, Param, Request, SeriesList};
use crate::clock::parse_time;
use crate::series::{Series, TimeRange};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const SHIFTS: &[Literal] = &[
    Literal::Text("1h"),
    Literal::Text("6h"),
    Literal::Text("12h"),
    Literal::Text("1d"),
    Literal::Text("2d"),
    Literal::Text("7d"),
    Literal::Text("14d"),
    Literal::Text("30d"),
];
const SHIFT: Param<Interval> = Param::required("timeShift").suggestions(SHIFTS);
const RESET_END: Param<bool> = Param::optional("resetEnd").default(Literal::Boolean(true));
const ALIGN_DST: Param<bool> = Param::optional("alignDst").default(Literal::Boolean(false)).also("alignDST");
const UNIT: Param<Interval> =
    Param::optional("timeShiftUnit").default(Literal::Text("1d")).suggestions(SHIFTS);
const FIRST: Param<i64> = Param::optional("timeShiftStart").default(Literal::Integer(0));
const LAST: Param<i64> = Param::optional("timeShiftEnd").default(Literal::Integer(7));
const SLICE_START: Param<Date> = Param::required("startSliceAt");
const SLICE_END: Param<Date> = Param::optional("endSliceAt").default(Literal::Text("now"));

/// The most ranges of one `timeStack`.
const MAX_SHIFTS: i64 = 1_000;

/// The longest shift, in seconds: that of the longest interval.
const MAX_SECONDS: i64 = 999_999_999 * 86_400;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "timeShift",
        aliases: &[],
        group: Group::Transform,
        doc: "Shows the series as they were at another time, placed at the asked range: an interval without a sign, or \
              with a minus, goes back, one with a plus forward. With alignDst the shift is an hour more or less where \
              the clocks of the server's zone changed in between, so that equal times of day are compared. With \
              resetEnd (the default) the result ends where the asked range ends.",
        example: "timeShift(servers.web01.cpu.user,'1d')",
        params: &[&SERIES, &SHIFT, &RESET_END, &ALIGN_DST],
        needs: Some(|args, ask| {
            let shift = Shift::of(args, &SHIFT)?;
            let shifted = ask.range.shifted(shift.seconds);
            let dst = if args.get(&ALIGN_DST) { dst_offset(ask.request, ask.range, shifted) } else { 0 };
            Ok(Needs::Ranges(vec![shifted.shifted(dst)]))
        }),
        expand: None,
        eval: Eval::Series(|call| {
            let shift = Shift::of(call.args, &SHIFT)?;
            let series = call.series(&SERIES);
            let Some((start, end)) = unshifted(call, &series, 0) else { return Ok(Vec::new()) };
            let reset_end = call.args.get(&RESET_END);
            let placed = |series: Series| {
                let name = format!("timeShift({}, \"{}\")", series.name, shift.text);
                let moved = series.starting(start).named(name).tagged("timeShift", shift.text.as_str());
                if reset_end { moved.ending(end) } else { moved }
            };
            Ok(series.into_iter().map(placed).collect())
        }),
    },
    Function {
        name: "timeStack",
        aliases: &[],
        group: Group::Transform,
        doc: "Shows the series at several earlier times beside each other, all placed at the asked range: shifted by \
              timeShiftUnit times each number from timeShiftStart up to but without timeShiftEnd. Averaging them \
              gives a usual day.",
        example: "timeStack(business.orders.eu,'1d',0,3)",
        params: &[&SERIES, &UNIT, &FIRST, &LAST],
        needs: Some(|args, ask| Ok(Needs::Ranges(stack(args, ask)?))),
        expand: None,
        eval: Eval::Series(|call| {
            let shift = Shift::of(call.args, &UNIT)?;
            let lists: Vec<_> = (0..call.ranges().len()).map(|i| call.series_at(&SERIES, i)).collect();
            let place = lists.iter().enumerate().find_map(|(i, list)| unshifted(call, list, i));
            let Some((start, end)) = place else { return Ok(Vec::new()) };
            let first = call.args.get(&FIRST);
            let placed = |(number, list): (i64, Vec<Series>)| {
                let text = shift.text.clone();
                list.into_iter().map(move |series| {
                    let name = format!("timeShift({}, {text}, {number})", series.name);
                    let moved = series.starting(start).ending(end).renamed(name);
                    moved.tagged("timeShiftUnit", text.as_str()).tagged("timeShift", number.to_string())
                })
            };
            Ok((first..).zip(lists).flat_map(placed).collect())
        }),
    },
    Function {
        name: "timeSlice",
        aliases: &[],
        group: Group::Transform,
        doc: "Keeps the points between two times, both included, and makes all others absent. The times are read in \
              the server's zone.",
        example: "timeSlice(servers.web01.cpu.user,'-45min','-15min')",
        params: &[&SERIES, &SLICE_START, &SLICE_END],
        needs: None,
        expand: None,
        eval: Eval::Series(|call| {
            let (start, end) = (time(call.request, call.args, &SLICE_START)?, time(call.request, call.args, &SLICE_END)?);
            // As graphite-web has it: times are counted from the start of the range, not from that of the series, and
            // that start is the clock of the request's zone read in the server's.
            let first = call.request.server_clock(call.range.from());
            let sliced = |mut series: Series| {
                let step = series.step().seconds();
                for (i, value) in series.values_mut().iter_mut().enumerate() {
                    let at = first + step * i as i64;
                    if at < start || at > end {
                        *value = f64::NAN;
                    }
                }
                let name = format!("timeSlice({}, {start}, {end})", series.name);
                series.named(name).tagged("timeSliceStart", start.to_string()).tagged("timeSliceEnd", end.to_string())
            };
            Ok(call.series(&SERIES).into_iter().map(sliced).collect())
        }),
    },
];

/// A date argument, read in the server's zone.
pub(super) fn time(request: &Request, args: &Args, param: &Param<Date>) -> Result<i64, EvalError> {
    let Date(text) = args.get(param);
    parse_time(&text, request.now, &request.server_time_zone).map_err(|e| EvalError::argument(param, e))
}

/// An interval that goes back when it has no sign.
struct Shift {
    /// With its sign, as names show it.
    text: String,
    seconds: i64,
}

impl Shift {
    fn of(args: &Args, param: &Param<Interval>) -> Result<Self, EvalError> {
        let interval = args.get(param);
        match interval.text.as_bytes().first() {
            None => Err(EvalError::argument(param, "\"\" is not an interval such as '1h' or '7d'")),
            Some(first) if first.is_ascii_digit() => {
                Ok(Self { text: format!("-{}", interval.text), seconds: -interval.seconds })
            }
            Some(_) => Ok(Self { text: interval.text.to_string(), seconds: interval.seconds }),
        }
    }
}

fn stack(args: &Args, ask: &Ask<'_>) -> Result<Vec<TimeRange>, EvalError> {
    let shift = Shift::of(args, &UNIT)?;
    let (first, last) = (args.get(&FIRST), args.get(&LAST));
    if last.saturating_sub(first) > MAX_SHIFTS {
        return Err(EvalError::argument(&LAST, format!("{last} makes more than {MAX_SHIFTS} shifts")));
    }
    let shifted = |number: i64| {
        let seconds = shift.seconds.checked_mul(number).filter(|s| s.abs() <= MAX_SECONDS);
        let seconds = seconds.ok_or_else(|| {
            EvalError::argument(&UNIT, format!("{number} times \"{}\" is out of range", shift.text))
        })?;
        Ok(ask.range.shifted(seconds))
    };
    (first..last).map(shifted).collect()
}

/// Where the unshifted series would begin and end, of which `series` are the ones over the `range`-th range. Edges on
/// the grid of the step lie as many steps from the asked range, others as many seconds. Which of the two it is matters
/// only where the shift is not a whole number of steps.
fn unshifted(call: &Call<'_>, series: &[Series], range: usize) -> Option<(i64, i64)> {
    let (first, shifted) = (series.first()?, call.ranges().get(range)?);
    let step = first.step();
    if (first.start(), first.end()) == shifted.aligned(step) {
        return Some(call.range.aligned(step));
    }
    // A line over the whole range.
    if (first.start(), first.end()) == (shifted.from(), shifted.until()) {
        return Some((call.range.from(), call.range.until()));
    }
    let place = |time: i64, shifted: i64, asked: i64| {
        if step.floor(time) == time {
            step.floor(asked) + (time - step.floor(shifted))
        } else {
            time + (asked - shifted)
        }
    };
    let start = place(first.start(), shifted.from(), call.range.from());
    Some((start, place(first.end(), shifted.until(), call.range.until())))
}

/// What to add to a shift so that times of day are the same on both sides of a change of the server's clocks. Nothing
/// when one of the ranges has such a change in it.
fn dst_offset(request: &Request, asked: TimeRange, shifted: TimeRange) -> i64 {
    let zone = &request.server_time_zone;
    let saving = |range: TimeRange| (zone.is_dst(range.from()), zone.is_dst(range.until()));
    match (saving(asked), saving(shifted)) {
        ((true, true), (false, false)) => 3_600,
        ((false, false), (true, true)) => -3_600,
        _ => 0,
    }
}
