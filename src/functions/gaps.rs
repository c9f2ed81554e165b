//! Absent points filled in, or taken out.

use super::summarize::summarized;
use super::{Call, Eval, Function, Group, IntOrInf, Literal, MAX_POINTS, Param, SeriesList};
use crate::series::{Aggregation, Series, Step, float_repr, format_g};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const LIMIT: Param<IntOrInf> = Param::optional("limit").default(Literal::Float(f64::INFINITY));
const DEFAULT: Param<f64> = Param::optional("default").default(Literal::Integer(0));
const REFERENCE: Param<SeriesList> = Param::optional("referenceSeries");

/// What the functions of this file have in common.
const GAP: Function = Function::of(Group::Transform, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "compressPeriodicGaps",
        doc: "Where values come at regular intervals with gaps between them, gives the series the step at which they \
              come. The interval is guessed from the first three values that are neither absent nor 0; when they tell \
              none, the series is left as it is.",
        example: "compressPeriodicGaps(edge.periodic)",
        eval: Eval::Series(|call| {
            let compressed = |s: Series| {
                let name = format!("compressPeriodicGaps({})", s.name);
                let named = s.renamed(name);
                compressed(&named).unwrap_or(named)
            };
            Ok(call.series(&SERIES).into_iter().map(compressed).collect())
        }),
        ..GAP
    },
    Function {
        name: "interpolate",
        doc: "Fills gaps of at most `limit` points with values on a straight line between the values before and after. \
              Longer gaps are left as they are, and so are those at the start and the end.",
        example: "interpolate(edge.sparse,5)",
        params: &[&SERIES, &LIMIT],
        eval: Eval::Series(|call| Ok(filled(call, "interpolate", interpolate))),
        ..GAP
    },
    Function {
        name: "isNonNull",
        doc: "1 where a point is known and 0 where it is absent. The sum of the results counts the series that have data.",
        example: "sumSeries(isNonNull(edge.{sparse,gap,ramp}))",
        eval: Eval::Series(|call| {
            let marked = |mut s: Series| {
                for value in s.values_mut() {
                    *value = f64::from(u8::from(!value.is_nan()));
                }
                let name = format!("isNonNull({})", s.name);
                s.tagged("isNonNull", "1").renamed(name)
            };
            Ok(call.series(&SERIES).into_iter().map(marked).collect())
        }),
        ..GAP
    },
    Function {
        name: "keepLastValue",
        doc: "Fills gaps of at most `limit` points with the last value before. Longer gaps are left as they are, also \
              at the end.",
        example: "keepLastValue(edge.gap,10)",
        params: &[&SERIES, &LIMIT],
        eval: Eval::Series(|call| Ok(filled(call, "keepLastValue", keep_last_value))),
        ..GAP
    },
    Function {
        name: "transformNull",
        doc: "Replaces absent points by a value. With `referenceSeries` only where one of those series has a value at \
              the same index; the others stay absent.",
        example: "transformNull(edge.sparse,-1)",
        params: &[&SERIES, &DEFAULT, &REFERENCE],
        eval: Eval::Series(|call| Ok(transform_null(call))),
        ..GAP
    },
];

fn filled(call: &mut Call<'_>, name: &str, fill: fn(&mut [f64], f64)) -> Vec<Series> {
    let IntOrInf(limit) = call.args.get(&LIMIT);
    let filled = |mut s: Series| {
        fill(s.values_mut(), limit);
        let name = format!("{name}({})", s.name);
        s.renamed(name)
    };
    call.series(&SERIES).into_iter().map(filled).collect()
}

fn keep_last_value(values: &mut [f64], limit: f64) {
    let mut next = 0;
    while let Some(gap) = next_gap(values, next) {
        if gap.start > 0 && gap.len() as f64 <= limit {
            let last = values[gap.start - 1];
            values[gap.clone()].fill(last);
        }
        next = gap.end;
    }
}

fn interpolate(values: &mut [f64], limit: f64) {
    let mut next = 0;
    while let Some(gap) = next_gap(values, next) {
        if gap.start > 0 && gap.end < values.len() && gap.len() as f64 <= limit {
            let (before, after) = (values[gap.start - 1], values[gap.end]);
            let parts = (gap.len() + 1) as f64;
            for (i, value) in values[gap.clone()].iter_mut().enumerate() {
                *value = before + (i + 1) as f64 * (after - before) / parts;
            }
        }
        next = gap.end;
    }
}

/// The first run of absent points that begins at `from` or later.
fn next_gap(values: &[f64], from: usize) -> Option<std::ops::Range<usize>> {
    let start = from + values[from..].iter().position(|v| v.is_nan())?;
    let len = values[start..].iter().position(|v| !v.is_nan()).unwrap_or(values.len() - start);
    Some(start..start + len)
}

fn transform_null(call: &mut Call<'_>) -> Vec<Series> {
    let default = call.args.get(&DEFAULT);
    let tag = if call.args.has(&DEFAULT) { float_repr(default) } else { "0".into() };
    let references = call.series(&REFERENCE);
    // For each index whether a reference is known there; empty: no reference decides.
    let mut known = vec![false; references.iter().map(Series::len).max().unwrap_or(0)];
    for reference in &references {
        for (known, value) in known.iter_mut().zip(reference.values()) {
            *known |= !value.is_nan();
        }
    }
    let transformed = |mut s: Series| {
        let mark = if references.is_empty() { "" } else { ",referenceSeries" };
        let name = format!("transformNull({},{}{mark})", s.name, format_g(default));
        if !references.is_empty() {
            s = s.tagged("referenceSeries", "1");
        }
        fill_known(s.values_mut(), default, &known);
        s.tagged("transformNull", tag.as_str()).renamed(name)
    };
    call.series(&SERIES).into_iter().map(transformed).collect()
}

fn fill_known(values: &mut [f64], default: f64, known: &[bool]) {
    let fill = |at: usize| if known.is_empty() || known.get(at) == Some(&true) { default } else { f64::NAN };
    for (at, value) in values.iter_mut().enumerate().filter(|(_, v)| v.is_nan()) {
        *value = fill(at);
    }
    // Of a longer reference graphite-web keeps the end: the values move to the start by what there is too much.
    let surplus = known.len().saturating_sub(values.len());
    if surplus > 0 {
        let len = values.len();
        let moved = surplus.min(len);
        values.rotate_left(moved);
        for (i, value) in values[len - moved..].iter_mut().enumerate() {
            *value = fill(known.len() - moved + i);
        }
    }
}

/// The series at the step at which its values come; `None` when no such step can be told.
fn compressed(series: &Series) -> Option<Series> {
    let values = series.values();
    let counts = |i: usize| values.get(i).is_some_and(|v| !v.is_nan() && *v != 0.0);
    let mut seen = (0..values.len()).filter(|i| counts(*i));
    let (first, second) = (seen.next()?, seen.next()?);
    let apart = second - first;
    let third = second + apart;
    if apart < 2 || third + 2 > values.len() || !counts(third) {
        return None;
    }
    if !values[third - 1].is_nan() || !values[third + 1].is_nan() {
        return None;
    }
    let step = Step::new((apart as i64).checked_mul(series.step().seconds())?)?;
    let start = series.time(first);
    // A stated end may lie far behind the values.
    if (series.end() - start) / step.seconds() > MAX_POINTS.max(values.len() as i64) {
        return None;
    }
    let values = summarized(series, Aggregation::Last, step, start, series.end());
    // graphite-web has the end at the last point, not after it.
    let end = start + step.seconds() * (values.len() as i64 - 1);
    let mut compressed = series.derived_at(series.name.clone(), start, step, values).ending(end);
    compressed.path_expression = series.path_expression.clone();
    Some(compressed)
}
