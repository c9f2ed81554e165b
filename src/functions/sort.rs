//! Orders series. All orders are stable: series that compare equal stay as they were, also in a reversed order.

use super::{Eval, Function, Group, Literal, Param, SeriesList, Statistic};
use crate::series::{Aggregation, Series};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const FUNC: Param<Statistic> = Param::optional("func").default(Literal::Text("average"));
const NATURAL: Param<bool> = Param::optional("natural").default(Literal::Boolean(false));
const REVERSE: Param<bool> = Param::optional("reverse").default(Literal::Boolean(false));

/// What the functions of this file have in common.
const SORT: Function = Function::of(Group::Sorting, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "sortBy",
        doc: "Orders series by the value of an aggregation function over all their points, the least first; `reverse` \
              begins with the greatest. Series without a value count as less than all others.",
        example: "sortBy(servers.*.cpu.user,\"max\",true)",
        params: &[&SERIES, &FUNC, &REVERSE],
        eval: Eval::Series(|call| {
            let (Statistic(function), reverse) = (call.args.get(&FUNC), call.args.get(&REVERSE));
            Ok(sorted_by(call.series(&SERIES), |s| function.apply(s.values()), reverse))
        }),
        ..SORT
    },
    Function {
        name: "sortByMaxima",
        doc: "Orders series by their greatest value, the greatest first.",
        example: "sortByMaxima(servers.*.cpu.user)",
        eval: Eval::Series(|call| Ok(sorted_by(call.series(&SERIES), |s| Aggregation::Max.apply(s.values()), true))),
        ..SORT
    },
    Function {
        name: "sortByMinima",
        doc: "Orders series by their least value, the least first, and leaves out those that are never above 0.",
        example: "sortByMinima(servers.*.cpu.user)",
        eval: Eval::Series(|call| {
            let mut series = call.series(&SERIES);
            series.retain(|s| Aggregation::Max.apply(s.values()) > 0.0);
            Ok(sorted_by(series, |s| Aggregation::Min.apply(s.values()), false))
        }),
        ..SORT
    },
    Function {
        name: "sortByName",
        doc: "Orders series by name, character by character; `natural` compares digits as numbers (host2 before \
              host10), `reverse` begins with the last.",
        example: "sortByName(weird.host*.val,true)",
        params: &[&SERIES, &NATURAL, &REVERSE],
        eval: Eval::Series(|call| {
            let mut series = call.series(&SERIES);
            let reverse = call.args.get(&REVERSE);
            if call.args.get(&NATURAL) {
                let mut keyed: Vec<(String, Series)> = series.into_iter().map(|s| (natural_key(&s.name), s)).collect();
                keyed.sort_by(|(a, _), (b, _)| if reverse { b.cmp(a) } else { a.cmp(b) });
                return Ok(keyed.into_iter().map(|(_, s)| s).collect());
            }
            series.sort_by(|a, b| if reverse { b.name.cmp(&a.name) } else { a.name.cmp(&b.name) });
            Ok(series)
        }),
        ..SORT
    },
    Function {
        name: "sortByTotal",
        doc: "Orders series by the sum of their values, the greatest first.",
        example: "sortByTotal(servers.*.cpu.user)",
        eval: Eval::Series(|call| Ok(sorted_by(call.series(&SERIES), |s| Aggregation::Sum.apply(s.values()), true))),
        ..SORT
    },
];

/// The series in the order of a key that is computed once for each; an absent key is less than all others.
pub(super) fn sorted_by(series: Vec<Series>, key: impl Fn(&Series) -> f64, reverse: bool) -> Vec<Series> {
    let rank = |s: &Series| {
        let key = key(s);
        // Zeros of both signs are equal here.
        if key.is_nan() { f64::NEG_INFINITY } else { key + 0.0 }
    };
    let mut keyed: Vec<(f64, Series)> = series.into_iter().map(|s| (rank(&s), s)).collect();
    keyed.sort_by(|(a, _), (b, _)| if reverse { b.total_cmp(a) } else { a.total_cmp(b) });
    keyed.into_iter().map(|(_, s)| s).collect()
}

/// A name with each run of digits padded with zeros to ten, or stripped of zeros beyond ten.
fn natural_key(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        let digits = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[at..at + digits].trim_start_matches('0');
        out.extend(std::iter::repeat_n('0', 10_usize.saturating_sub(number.len())));
        out.push_str(number);
        rest = &rest[at + digits..];
    }
    out.push_str(rest);
    out
}
