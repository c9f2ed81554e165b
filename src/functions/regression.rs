//! Straight lines through series.

use super::time_shift::time;
use super::{Args, Ask, Call, Date, Eval, EvalError, Function, Group, Needs, Param, SeriesList};
use crate::series::{Series, TimeRange};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const SOURCE_START: Param<Date> = Param::optional("startSourceAt");
const SOURCE_END: Param<Date> = Param::optional("endSourceAt");

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "linearRegression",
    aliases: &[],
    group: Group::Calculate,
    doc: "The straight line that fits the points best (least squares). The points are those of the asked range, or \
          from startSourceAt to endSourceAt, so that the line can be prolonged beyond them. A series with fewer than \
          two points has none.",
    example: "linearRegression(servers.web01.cpu.user,'-3h','-1h')",
    params: &[&SERIES, &SOURCE_START, &SOURCE_END],
    needs: Some(|args, ask| {
        // A source that ends before it begins has no points, so there is no line.
        Ok(Needs::Ranges(source(args, ask)?.map_or_else(Vec::new, |source| vec![ask.range, source])))
    }),
    expand: None,
    eval: Eval::Series(|call| {
        let (lines, sources) = (call.series_at(&SERIES, 0), call.series_at(&SERIES, 1));
        let (start, end) = shown(call)?;
        let fitted = lines.iter().zip(&sources).filter_map(|(series, source)| {
            let (slope, offset) = fit(source)?;
            let values = (0..series.len()).map(|i| offset + series.time(i) as f64 * slope).collect();
            let name = format!("linearRegression({}, {start}, {end})", series.name);
            let tags = series.tags.clone();
            let mut line = Series::with_tags(name, tags, series.start(), series.step(), values).ending(series.end());
            line.x_files_factor = series.x_files_factor;
            Some(line.tagged("linearRegressions", format!("{start}, {end}")))
        });
        Ok(fitted.collect())
    }),
}];

/// The range whose points the line is fitted to; `None` when it is empty.
fn source(args: &Args, ask: &Ask<'_>) -> Result<Option<TimeRange>, EvalError> {
    let at = |param, default| if args.has(param) { time(ask.request, args, param) } else { Ok(default) };
    Ok(TimeRange::new(at(&SOURCE_START, ask.range.from())?, at(&SOURCE_END, ask.range.until())?))
}

/// Start and end of the source as name and tag show them: what was given, else the range on the server's clock.
fn shown(call: &Call<'_>) -> Result<(i64, i64), EvalError> {
    let shown = |param, default: i64| {
        if call.args.has(param) { time(call.request, call.args, param) } else { Ok(call.request.server_clock(default)) }
    };
    Ok((shown(&SOURCE_START, call.range.from())?, shown(&SOURCE_END, call.range.until())?))
}

/// Slope (per second) and value at time 0 of the line; `None` with fewer than two points. The sums run over indexes,
/// which are small and exact.
fn fit(series: &Series) -> Option<(f64, f64)> {
    let known = || series.values().iter().enumerate().filter(|(_, v)| !v.is_nan());
    let (mut count, mut indexes, mut squares) = (0_i128, 0_i128, 0_i128);
    let (mut values, mut products) = (0.0, 0.0);
    for (i, value) in known() {
        let index = i as i128;
        count += 1;
        indexes += index;
        squares += index * index;
        values += value;
        products += i as f64 * value;
    }
    let denominator = count * squares - indexes * indexes;
    if denominator == 0 {
        return None;
    }
    let (denominator, step) = (denominator as f64, series.step().seconds() as f64);
    let slope = (count as f64 * products - indexes as f64 * values) / denominator / step;
    let at_start = (squares as f64 * values - products * indexes as f64) / denominator;
    Some((slope, at_start - slope * series.start() as f64))
}
