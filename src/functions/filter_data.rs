//! Chooses points by their value; the others become absent.

use super::columns::{percentile, percentile_of_row};
use super::{Call, Eval, EvalError, Function, Group, Param, SeriesList};
use crate::series::{Series, float_repr, format_g};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const N: Param<f64> = Param::required("n");

/// What the functions of this file have in common.
const FILTER: Function = Function::of(Group::FilterData, &[&SERIES, &N]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "removeAbovePercentile",
        doc: "Removes the values above the n-th percentile of each series.",
        example: "removeAbovePercentile(servers.*.cpu.user,95)",
        eval: Eval::Series(|call| beyond_percentile(call, "removeAbovePercentile", |v, limit| v > limit)),
        ..FILTER
    },
    Function {
        name: "removeAboveValue",
        doc: "Removes the values above n.",
        example: "removeAboveValue(servers.*.cpu.user,45)",
        eval: Eval::Series(|call| Ok(beyond_value(call, "removeAboveValue", |v, limit| v > limit))),
        ..FILTER
    },
    Function {
        name: "removeBelowPercentile",
        doc: "Removes the values below the n-th percentile of each series.",
        example: "removeBelowPercentile(servers.*.cpu.user,5)",
        eval: Eval::Series(|call| beyond_percentile(call, "removeBelowPercentile", |v, limit| v < limit)),
        ..FILTER
    },
    Function {
        name: "removeBelowValue",
        doc: "Removes the values below n.",
        example: "removeBelowValue(servers.*.cpu.user,30)",
        eval: Eval::Series(|call| Ok(beyond_value(call, "removeBelowValue", |v, limit| v < limit))),
        ..FILTER
    },
    Function {
        name: "removeBetweenPercentile",
        group: Group::FilterSeries,
        doc: "Keeps the series that stand out at least once: of which some value is not strictly between the n-th and \
              the (100 - n)-th percentile of all series at that point.",
        example: "removeBetweenPercentile(mixed.s*,30)",
        eval: Eval::Series(remove_between_percentile),
        ..FILTER
    },
];

fn beyond_value(call: &mut Call<'_>, name: &str, out: fn(f64, f64) -> bool) -> Vec<Series> {
    let n = call.args.get(&N);
    let filtered = |s: Series| {
        let name = format!("{name}({}, {})", s.name, format_g(n));
        s.map(|v| if out(v, n) { f64::NAN } else { v }).renamed(name)
    };
    call.series(&SERIES).into_iter().map(filtered).collect()
}

fn beyond_percentile(call: &mut Call<'_>, name: &str, out: fn(f64, f64) -> bool) -> Result<Vec<Series>, EvalError> {
    let n = call.args.get(&N);
    if n.is_nan() || n <= 0.0 {
        return Err(EvalError::argument(&N, format!("{} is not a percentile above 0", format_g(n))));
    }
    let filtered = |s: Series| {
        let name = format!("{name}({}, {})", s.name, format_g(n));
        // A series without values, or a percentile above 100, is no limit.
        match percentile_of_row(s.values(), n, false).filter(|_| n <= 100.0) {
            None => s.renamed(name),
            Some(limit) => {
                let kept = s.map(|v| if out(v, limit) { f64::NAN } else { v });
                kept.tagged("nPercentile", float_repr(n)).renamed(name)
            }
        }
    };
    Ok(call.series(&SERIES).into_iter().map(filtered).collect())
}

fn remove_between_percentile(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let n = call.args.get(&N);
    let n = if n < 50.0 { 100.0 - n } else { n };
    if !(50.0..=100.0).contains(&n) {
        return Err(EvalError::argument(&N, "a percentile from 0 to 100 is expected"));
    }
    let series = call.series(&SERIES);
    let rows: Vec<&[f64]> = series.iter().map(Series::values).collect();
    let (low, high) = (percentile(&rows, 100.0 - n, false), percentile(&rows, n, false));
    let stands_out = |row: &[f64]| row.iter().zip(low.iter().zip(&high)).any(|(v, (low, high))| v <= low || v >= high);
    let stands_out: Vec<bool> = rows.iter().map(|row| stands_out(row)).collect();
    Ok(series.into_iter().zip(stands_out).filter(|(_, out)| *out).map(|(s, _)| s).collect())
}
