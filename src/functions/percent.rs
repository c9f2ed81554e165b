//! Series in relation to others: percentages, quotients, weighted means.

use std::collections::{BTreeSet, HashMap};

use super::columns::{pairs, quotient};
use super::combine::{COMBINE, aggregate, result};
use super::groups::grouped;
use super::lists::paired;
use super::names::{joined, key, path_expressions, shared};
use super::normalize::{Frame, Normalized, consolidated_to};
use super::{Any, Call, Eval, EvalError, Function, NodeOrTag, Param, SeriesList, Value};
use crate::series::{Aggregation, Series};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const TOTAL: Param<Any> = Param::optional("total");
const NODES: Param<NodeOrTag> = Param::optional("nodes").multiple();
const DIVIDENDS: Param<SeriesList> = Param::required("dividendSeriesList");
const DIVISOR: Param<SeriesList> = Param::required("divisorSeries");
const DIVISORS: Param<SeriesList> = Param::required("divisorSeriesList");
const AVERAGES: Param<SeriesList> = Param::required("seriesListAvg");
const WEIGHTS: Param<SeriesList> = Param::required("seriesListWeight");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "asPercent",
        aliases: &["pct"],
        doc: "Each series as a percentage of a total: of a number, of one series, of as many series as there are \
              (matched in the order of their names) or, without a total, of the sum of all. With nodes or tags, series \
              and totals that have these in common belong together, and without a total (`None`) each series is \
              related to the sum of its group; what has no partner becomes an absent series with MISSING in its name.",
        example: "asPercent(servers.web01.cpu.*,None,1)",
        params: &[&SERIES, &TOTAL, &NODES],
        eval: Eval::Series(as_percent),
        ..COMBINE
    },
    Function {
        name: "divideSeries",
        doc: "Divides each series of the first list by the one series of the second; absent where the divisor is 0. \
              `scale` divides by a constant. Without a divisor the results are absent and have MISSING in their names.",
        example: "divideSeries(servers.web0[12].cpu.user,servers.web01.cpu.idle)",
        params: &[&DIVIDENDS, &DIVISOR],
        eval: Eval::Series(divide_series),
        ..COMBINE
    },
    Function {
        name: "divideSeriesLists",
        doc: "Divides the first series of the first list by the first of the second, the second by the second and so \
              on. Both lists must have the same number of series.",
        example: "divideSeriesLists(servers.web0[12].cpu.user,servers.web0[12].cpu.idle)",
        params: &[&DIVIDENDS, &DIVISORS],
        eval: Eval::Series(|call| {
            let list = paired(call, &DIVIDENDS, &DIVISORS)?;
            list.iter().map(|(a, b)| divided(call, a, b)).collect()
        }),
        ..COMBINE
    },
    Function {
        name: "weightedAverage",
        doc: "The mean of the series of the first list, each with the weight that the series of the second list with \
              the same nodes and tags has. Both lists must have the same number of series.",
        example: "weightedAverage(stats.timers.*.mean,stats.timers.*.count,2)",
        params: &[&AVERAGES, &WEIGHTS, &NODES],
        eval: Eval::Series(weighted_average),
        ..COMBINE
    },
];

fn divide_series(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let dividends = call.series(&DIVIDENDS);
    let divisors = call.series(&DIVISOR);
    match divisors.as_slice() {
        [] => Ok(dividends
            .into_iter()
            .map(|s| {
                let name = format!("divideSeries({},MISSING)", s.name);
                s.map(|_| f64::NAN).renamed(name)
            })
            .collect()),
        [divisor] => dividends.iter().map(|dividend| divided(call, dividend, divisor)).collect(),
        more => Err(EvalError::argument(&DIVISOR, format!("exactly one series is expected, there are {}", more.len()))),
    }
}

fn divided(call: &Call<'_>, dividend: &Series, divisor: &Series) -> Result<Series, EvalError> {
    let name = format!("divideSeries({},{})", dividend.name, divisor.name);
    related(call, name, dividend, divisor, quotient)
}

fn percentage(part: f64, total: f64) -> f64 {
    quotient(part, total) * 100.0
}

/// Two series brought to one step and combined point by point.
fn related(
    call: &Call<'_>,
    name: String,
    a: &Series,
    b: &Series,
    f: impl Fn(f64, f64) -> f64,
) -> Result<Series, EvalError> {
    let frame = Frame::of([a, b])?.unwrap_or_else(|| Frame::alone(a));
    let values = pairs(&consolidated_to(a, frame.step), &consolidated_to(b, frame.step), f);
    Ok(framed(call, frame, name, values))
}

fn framed(call: &Call<'_>, frame: Frame, name: String, values: Vec<f64>) -> Series {
    let mut series = Series::new(name, frame.start, frame.step, values).ending(frame.end);
    series.x_files_factor = call.state.x_files_factor;
    series
}

/// What `asPercent` relates to.
enum Total {
    /// The sum of the series.
    Sum,
    /// A number, and how it is written.
    Number(f64, String),
    /// Other series.
    Series(Vec<Series>),
}

fn as_percent(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let series = call.series(&SERIES);
    let total = if call.has_series(&TOTAL) {
        Total::Series(call.series(&TOTAL))
    } else {
        match call.args.raw(&TOTAL) {
            None | Some(Value::None) => Total::Sum,
            Some(value) => {
                let number = value.to_float().ok_or_else(|| {
                    EvalError::argument(&TOTAL, format!("{value} is not a number, and a path stands without quotes"))
                })?;
                Total::Number(number, value.python_str())
            }
        }
    };
    let nodes = call.args.all(&NODES);
    // Without series there is nothing, even when there are totals.
    let Some(frame) = Frame::of(&series)? else { return Ok(Vec::new()) };
    if !nodes.is_empty() {
        return by_nodes(call, &series, total, &nodes, frame);
    }
    match total {
        Total::Series(mut totals) if totals.len() == series.len() => {
            let mut series = series;
            series.sort_by(|a, b| a.name.cmp(&b.name));
            totals.sort_by(|a, b| a.name.cmp(&b.name));
            let pair = |(a, b): (&Series, &Series)| {
                related(call, format!("asPercent({},{})", a.name, b.name), a, b, percentage)
            };
            series.iter().zip(&totals).map(pair).collect()
        }
        Total::Series(totals) => match totals.as_slice() {
            [total] => {
                let frame = Frame::of(series.iter().chain([total]))?.unwrap_or(frame);
                let values = consolidated_to(total, frame.step);
                Ok(of_one_total(call, &series, frame, &values, &total.name))
            }
            other => Err(EvalError::argument(
                &TOTAL,
                format!(
                    "a number, one series or as many as there are ({}) are expected, there are {}",
                    series.len(),
                    other.len()
                ),
            )),
        },
        Total::Sum => {
            let Some(normalized) = Normalized::new(&series)? else { return Ok(Vec::new()) };
            let sum = normalized.reduce(Aggregation::Sum, 0.0);
            let name = format!("sumSeries({})", path_expressions(&series));
            Ok(of_one_total(call, &series, frame, &sum, &name))
        }
        Total::Number(total, text) => {
            // As many totals as the first series has points before they are joined, so further points are absent.
            Ok(of_one_total(call, &series, frame, &vec![total; series[0].len()], &text))
        }
    }
}

/// Each series as a percentage of the same total. Its points are joined to the common step, but as graphite-web has it
/// the results keep the steps of the series.
fn of_one_total(call: &Call<'_>, series: &[Series], frame: Frame, total: &[f64], total_name: &str) -> Vec<Series> {
    let total_name = shared(total_name, series.len());
    let of_total = |s: &Series| {
        let total_name = if total_name.is_empty() { &*s.path_expression } else { &*total_name };
        let values = pairs(&consolidated_to(s, frame.step), total, percentage);
        framed(call, Frame::alone(s), format!("asPercent({},{total_name})", s.name), values)
    };
    series.iter().map(of_total).collect()
}

/// `asPercent` with nodes. `frame` is what all series have together.
fn by_nodes(
    call: &Call<'_>,
    series: &[Series],
    total: Total,
    nodes: &[NodeOrTag],
    frame: Frame,
) -> Result<Vec<Series>, EvalError> {
    let groups = grouped(series, |s| key(s, nodes));
    // A series without a partner has no frame of its own: it gets that of the sum or pair that was computed last.
    let mut last = None;
    let mut sum_of = |list: &[&Series]| -> Result<Option<Series>, EvalError> {
        if let [only] = list {
            return Ok(Some((*only).clone()));
        }
        let Some(normalized) = Normalized::new(list.iter().copied())? else { return Ok(None) };
        last = Some(normalized.frame());
        let name = format!("sumSeries({})", path_expressions(list.iter().copied()));
        Ok(Some(result(call, &normalized, name, normalized.reduce(Aggregation::Sum, 0.0))))
    };
    let mut totals: HashMap<String, Series> = HashMap::new();
    let mut without_series = Vec::new();
    match total {
        Total::Sum => {
            for (key, list) in &groups {
                totals.extend(sum_of(list)?.map(|total| (key.clone(), total)));
            }
        }
        Total::Series(list) => {
            let known: std::collections::HashSet<&str> = groups.iter().map(|(key, _)| key.as_str()).collect();
            for (key, list) in grouped(&list, |s| key(s, nodes)) {
                let Some(total) = sum_of(&list)? else { continue };
                if known.contains(key.as_str()) {
                    totals.insert(key, total);
                } else {
                    without_series.push(total);
                }
            }
        }
        Total::Number(..) => {
            return Err(EvalError::argument(&TOTAL, "series or None are expected when nodes are given"));
        }
    }
    let mut results = Vec::new();
    for (key, list) in &groups {
        let total = totals.get(key);
        let total_name = total.map(|t| shared(&t.name, list.len()));
        for s in list {
            let Some((total, total_name)) = total.zip(total_name.as_deref()) else {
                let values = vec![f64::NAN; consolidated_to(s, frame.step).len()];
                let name = format!("asPercent({},MISSING)", s.name);
                results.push(framed(call, last.unwrap_or(frame), name, values));
                continue;
            };
            last = Frame::of([*s, total])?;
            results.push(related(call, format!("asPercent({},{total_name})", s.name), s, total, percentage)?);
        }
    }
    for total in without_series {
        let name = format!("asPercent(MISSING,{})", total.name);
        results.push(framed(call, last.unwrap_or(frame), name, vec![f64::NAN; total.len()]));
    }
    Ok(results)
}

fn weighted_average(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let nodes = call.args.all(&NODES);
    let pairs_of_lists = paired(call, &AVERAGES, &WEIGHTS)?;
    // For each key the last average and the last weight that have it.
    let mut partners: Vec<(Option<&Series>, Option<&Series>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (average, weight) in &pairs_of_lists {
        for (series, is_weight) in [(average, false), (weight, true)] {
            let place = *places.entry(key(series, &nodes)).or_insert_with(|| {
                partners.push((None, None));
                partners.len() - 1
            });
            let (a, w) = &mut partners[place];
            *(if is_weight { w } else { a }) = Some(series);
        }
    }
    let product = |(average, weight): (Option<&Series>, Option<&Series>)| {
        let (average, weight) = (average?, weight?);
        // Not brought to one step, as in graphite-web.
        let values = pairs(average.values(), weight.values(), |a, w| a * w);
        let name = format!("product({},{})", weight.name, average.name);
        Some(framed(call, Frame::alone(average), name, values))
    };
    let products: Vec<Series> = partners.into_iter().filter_map(product).collect();
    let sum = |list: &[&Series]| aggregate(call, list.iter().copied(), "sum", Aggregation::Sum, None);
    let products = sum(&products.iter().collect::<Vec<_>>())?;
    let weights = sum(&pairs_of_lists.iter().map(|(_, weight)| weight).collect::<Vec<_>>())?;
    let (Some(products), Some(weights)) = (products.first(), weights.first()) else { return Ok(Vec::new()) };
    let paths = |of: fn(&(Series, Series)) -> &Series| {
        let sorted: BTreeSet<&str> = pairs_of_lists.iter().map(|pair| &*of(pair).path_expression).collect();
        joined(sorted)
    };
    let nodes: Vec<String> = call.args.all_raw(&NODES).iter().map(Value::python_str).collect();
    let name = format!("weightedAverage({}, {}, {})", paths(|p| &p.0), paths(|p| &p.1), nodes.join(","));
    let values = pairs(products.values(), weights.values(), quotient);
    Ok(vec![framed(call, Frame::alone(products), name, values)])
}
