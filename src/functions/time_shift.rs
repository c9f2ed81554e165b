//! Series at other times: shifted, stacked, cut out.
//!
//! `timeShift` and `timeStack` place the points where the unshifted series has them. That place mostly follows from the
//! asked range, and only the shifted ranges are read; the unshifted series is read too where it does not (a shift by an
//! hour of intervals of a day).

use super::{
    Args, Ask, Call, Date, Eval, EvalError, Function, Group, Interval, Literal, Needs, Param, Request, SeriesList,
};
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
const UNIT: Param<Interval> = Param::optional("timeShiftUnit").default(Literal::Text("1d")).suggestions(SHIFTS);
const FIRST: Param<i64> = Param::optional("timeShiftStart").default(Literal::Integer(0));
const LAST: Param<i64> = Param::optional("timeShiftEnd").default(Literal::Integer(7));
const SLICE_START: Param<Date> = Param::required("startSliceAt");
const SLICE_END: Param<Date> = Param::optional("endSliceAt").default(Literal::Text("now"));

/// The most ranges of one `timeStack`.
const MAX_SHIFTS: i64 = 1_000;

/// The longest shift, in seconds: that of the longest interval.
const MAX_SECONDS: i64 = 999_999_999 * 86_400;

/// What the functions of this file have in common.
const SHIFTED: Function = Function::of(Group::Transform, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "timeShift",
        doc: "Shows the series as they were at another time, placed at the asked range: an interval without a sign, or \
              with a minus, goes back, one with a plus forward. With alignDst the shift is an hour more or less where \
              the clocks of the server's zone changed in between, so that equal times of day are compared. With \
              resetEnd (the default) the result ends where the asked range ends.",
        example: "timeShift(servers.web01.cpu.user,'1d')",
        params: &[&SERIES, &SHIFT, &RESET_END, &ALIGN_DST],
        needs: Some(|args, ask| {
            let shift = Shift::of(args, &SHIFT)?;
            let shifted = ask.range.shifted(shift.seconds);
            let dst = if args.get(&ALIGN_DST) { dst_offset(ask.request, ask.range, shift.seconds) } else { 0 };
            let shifted = shifted.shifted(dst);
            Ok(Needs::Ranges(if keeps_place(ask, &[shifted]) { vec![shifted] } else { vec![ask.range, shifted] }))
        }),
        eval: Eval::Series(|call| {
            let shift = Shift::of(call.args, &SHIFT)?;
            let mut lists: Vec<_> = (0..call.ranges().len()).map(|i| call.series_at(&SERIES, i)).collect();
            let Some((start, end)) = unshifted(call, &lists) else { return Ok(Vec::new()) };
            let series = lists.pop().unwrap_or_default();
            let reset_end = call.args.get(&RESET_END);
            let placed = |series: Series| {
                let name = format!("timeShift({}, \"{}\")", series.name, shift.text);
                let moved = series.starting(start).named(name).tagged("timeShift", shift.text.as_str());
                if reset_end { moved.ending(end) } else { moved }
            };
            Ok(series.into_iter().map(placed).collect())
        }),
        ..SHIFTED
    },
    Function {
        name: "timeStack",
        doc: "Shows the series at several earlier times beside each other, all placed at the asked range: shifted by \
              timeShiftUnit times each number from timeShiftStart up to but without timeShiftEnd. Averaging them \
              gives a usual day.",
        example: "timeStack(business.orders.eu,'1d',0,3)",
        params: &[&SERIES, &UNIT, &FIRST, &LAST],
        needs: Some(|args, ask| Ok(Needs::Ranges(stack(args, ask)?))),
        eval: Eval::Series(|call| {
            let shift = Shift::of(call.args, &UNIT)?;
            let mut lists: Vec<_> = (0..call.ranges().len()).map(|i| call.series_at(&SERIES, i)).collect();
            let Some((start, end)) = unshifted(call, &lists) else { return Ok(Vec::new()) };
            let (first, last) = (call.args.get(&FIRST), call.args.get(&LAST));
            // Without what is read for the place only.
            let places = lists.len().saturating_sub(last.saturating_sub(first).max(0) as usize);
            lists.drain(..places);
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
        ..SHIFTED
    },
    Function {
        name: "timeSlice",
        doc: "Keeps the points between two times, both included, and makes all others absent. The times are read in \
              the server's zone.",
        example: "timeSlice(servers.web01.cpu.user,'-45min','-15min')",
        params: &[&SERIES, &SLICE_START, &SLICE_END],
        eval: Eval::Series(|call| {
            let (start, end) =
                (time(call.request, call.args, &SLICE_START)?, time(call.request, call.args, &SLICE_END)?);
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
        ..SHIFTED
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
        let seconds = seconds
            .ok_or_else(|| EvalError::argument(&UNIT, format!("{number} times \"{}\" is out of range", shift.text)))?;
        Ok(ask.range.shifted(seconds))
    };
    let mut ranges: Vec<TimeRange> = (first..last).map(shifted).collect::<Result<_, _>>()?;
    if !ranges.contains(&ask.range) && !keeps_place(ask, &ranges) {
        ranges.insert(0, ask.range);
    }
    Ok(ranges)
}

/// Whether the place of the unshifted series follows from that of each of the shifted ones.
fn keeps_place(ask: &Ask<'_>, shifted: &[TimeRange]) -> bool {
    let on = |grid: i64| shifted.iter().all(|range| (range.from() - ask.range.from()) % grid == 0);
    (ask.input_grid)().is_some_and(on)
}

/// Where the unshifted series begins and ends, by the series over the ranges that were asked for. Where it was not read,
/// edges on the grid of the step lie as many steps from the asked range, others as many seconds.
fn unshifted(call: &Call<'_>, lists: &[Vec<Series>]) -> Option<(i64, i64)> {
    let mut read = call.ranges().iter().zip(lists);
    if let Some((_, base)) = read.clone().find(|(range, _)| **range == call.range) {
        return base.first().map(|first| (first.start(), first.end()));
    }
    let (shifted, first) = read.find_map(|(range, list)| Some((range, list.first()?)))?;
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
/// when one of the ranges has such a change in it. As in graphite-web, what the clock of the request's zone shows is
/// taken for what the server's shows.
fn dst_offset(request: &Request, asked: TimeRange, shift: i64) -> i64 {
    let zone = &request.server_time_zone;
    let saving = |shift: i64| {
        let is_dst = |time: i64| zone.is_dst(request.server_clock(time).saturating_add(shift));
        (is_dst(asked.from()), is_dst(asked.until()))
    };
    match (saving(0), saving(shift)) {
        ((true, true), (false, false)) => 3_600,
        ((false, false), (true, true)) => -3_600,
        _ => 0,
    }
}
