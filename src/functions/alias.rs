//! Other names for series.

use super::names::key;
use super::python_format::percent;
use super::python_regex::Substitution;
use super::{
    Args, Argument, Call, Eval, EvalError, Function, Group, Kind, Literal, Node, NodeOrTag, Param, SeriesList, Value,
};
use crate::series::Series;

const SERIES: Param<SeriesList> = Param::required("seriesList");
const NEW_NAME: Param<String> = Param::required("newName");
const NODES: Param<NodeOrTag> = Param::optional("nodes").shown_required().multiple();
const TAGS: Param<NodeOrTag> = Param::optional("tags").shown_required().multiple();
const SEARCH: Param<String> = Param::required("search");
const REPLACE: Param<String> = Param::required("replace");
const POSITIONS: Param<i64> = Param::optional("pos").multiple();
const START: Param<Index> = Param::optional("start").default(Literal::Integer(0));
const STOP: Param<Index> = Param::optional("stop").default(Literal::Integer(0));

/// What the functions of this file have in common.
const ALIAS: Function = Function::of(Group::Alias, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "alias",
        doc: "Gives each series the same new name.",
        example: "alias(servers.web01.cpu.user,\"CPU of web01\")",
        params: &[&SERIES, &NEW_NAME],
        eval: Eval::Series(|call| {
            let name: std::sync::Arc<str> = call.args.get(&NEW_NAME).into();
            rename(call, |_| Ok(name.clone()))
        }),
        ..ALIAS
    },
    Function {
        name: "aliasByMetric",
        doc: "Names each series by the last node of its name. For the result of a function it is the last node of the \
              first argument.",
        example: "aliasByMetric(servers.web01.cpu.*)",
        eval: Eval::Series(|call| rename(call, |s| Ok(nodes_between(&s.name, -1, 0)))),
        ..ALIAS
    },
    Function {
        name: "aliasByNode",
        doc: "Names each series by nodes of its name, counted from 0 (negative: from the end), and values of tags, \
              joined by dots. A series that is the result of functions has the nodes of the first path in it.",
        example: "aliasByNode(servers.*.cpu.user,1,-1)",
        params: &[&SERIES, &NODES],
        eval: Eval::Series(|call| by_key(call, &NODES)),
        ..ALIAS
    },
    Function {
        name: "aliasByTags",
        doc: "Names each series by values of tags, joined by dots. A number stands for a node of the name, as in \
              `aliasByNode`, which this is another name for.",
        example: "aliasByTags(seriesByTag(\"name=disk.used\"),\"server\",\"rack\")",
        params: &[&SERIES, &TAGS],
        eval: Eval::Series(|call| by_key(call, &TAGS)),
        ..ALIAS
    },
    Function {
        name: "aliasQuery",
        doc: "Names each series by the last value of another. The other is found by replacing what the regular \
              expression `search` matches in the name by `replace`; the result is evaluated as a target. Its last \
              value is put into `newName` at a place like %d, %g or %.2f.",
        example: "aliasQuery(servers.web0[12].cpu.user,\"user$\",\"system\",\"user, with system at %.1f\")",
        params: &[&SERIES, &SEARCH, &REPLACE, &NEW_NAME],
        expand: Some(|args, _, series| queries(args, series)),
        eval: Eval::Series(alias_query),
        ..ALIAS
    },
    Function {
        name: "aliasSub",
        doc: "Replaces what a regular expression matches in each name. The syntax is Python's: `\\1` or `\\g<1>` in \
              `replace` stands for the first group, `\\g<name>` for a group `(?P<name>…)`.",
        example: "aliasSub(servers.*.cpu.user,\"^servers\\.([a-z]+)(\\d+).*$\",\"\\1 number \\2\")",
        params: &[&SERIES, &SEARCH, &REPLACE],
        eval: Eval::Series(|call| {
            let substitution = Substitution::new(call.args, &SEARCH, &REPLACE)?;
            rename(call, |s| substitution.apply(&s.name))
        }),
        ..ALIAS
    },
    Function {
        name: "lower",
        doc: "Turns names to lower case; with positions, only the characters there (counted from 0, negative: from \
              the end).",
        example: "lower(weird.UPPER.CamelCase)",
        params: &[&SERIES, &POSITIONS],
        eval: Eval::Series(|call| change_case(call, str::to_lowercase)),
        ..ALIAS
    },
    Function {
        name: "upper",
        doc: "Turns names to upper case; with positions, only the characters there (counted from 0, negative: from \
              the end).",
        example: "upper(servers.web01.cpu.user,0)",
        params: &[&SERIES, &POSITIONS],
        eval: Eval::Series(|call| change_case(call, str::to_uppercase)),
        ..ALIAS
    },
    Function {
        name: "substr",
        group: Group::Special,
        doc: "Names each series by the nodes of its name from `start` on and before `stop`, counted from 0 (negative: \
              from the end); a `stop` of 0 is the end. Of the result of a function the nodes of the first argument \
              count.",
        example: "substr(servers.*.cpu.user,1,3)",
        params: &[&SERIES, &START, &STOP],
        eval: Eval::Series(|call| {
            let (Index(start), Index(stop)) = (call.args.get(&START), call.args.get(&STOP));
            rename(call, |s| Ok(nodes_between(&s.name, start, stop)))
        }),
        ..ALIAS
    },
];

/// Index of a node; a fraction is cut off.
struct Index(i64);
impl Argument for Index {
    const KIND: Kind = Kind::Node;
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Float(n) if n.is_finite() => Ok(Self(*n as i64)),
            other => Node::read(other).map(|Node(n)| Self(n)),
        }
    }
}

fn rename<N: Into<std::sync::Arc<str>>>(
    call: &mut Call<'_>,
    name: impl Fn(&Series) -> Result<N, EvalError>,
) -> Result<Vec<Series>, EvalError> {
    call.series(&SERIES).into_iter().map(|s| name(&s).map(|n| s.named(n))).collect()
}

fn by_key(call: &mut Call<'_>, param: &Param<NodeOrTag>) -> Result<Vec<Series>, EvalError> {
    let nodes = call.args.all(param);
    rename(call, |s| Ok(key(s, &nodes)))
}

fn change_case(call: &mut Call<'_>, change: fn(&str) -> String) -> Result<Vec<Series>, EvalError> {
    let positions = call.args.all(&POSITIONS);
    if positions.is_empty() {
        return rename(call, |s| Ok(change(&s.name)));
    }
    rename(call, |s| {
        let mut characters: Vec<String> = s.name.chars().map(String::from).collect();
        let len = characters.len() as i64;
        for position in &positions {
            let index = if *position < 0 { position.saturating_add(len) } else { *position };
            if let Some(c) = usize::try_from(index).ok().and_then(|i| characters.get_mut(i)) {
                *c = change(c);
            }
        }
        Ok(characters.concat())
    })
}

/// The nodes `start..stop` of the innermost arguments of a name, as far as the first comma in them.
fn nodes_between(name: &str, start: i64, stop: i64) -> String {
    let left = name.rfind('(').map_or(0, |at| at + 1);
    let right = name.find(')').unwrap_or(name.len());
    let nodes: Vec<&str> = name.get(left..right).unwrap_or_default().split('.').collect();
    let stop = if stop == 0 { i64::MAX } else { stop };
    let (from, to) = super::names::slice(nodes.len(), start, stop);
    let joined = nodes[from..to].join(".");
    match joined.split_once(',') {
        Some((before, _)) => before.to_owned(),
        None => joined,
    }
}

fn queries(args: &Args, series: &[Series]) -> Result<Vec<String>, EvalError> {
    let substitution = Substitution::new(args, &SEARCH, &REPLACE)?;
    series.iter().map(|s| substitution.apply(&s.name)).collect()
}

fn alias_query(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let new_name = call.args.get(&NEW_NAME);
    let targets = call.targets();
    let series = call.series(&SERIES);
    let named = series.into_iter().zip(targets).map(|(s, (query, found))| {
        let other = found.first().ok_or_else(|| EvalError::new(format!("No series found with query: {query}")))?;
        let last = other.values().iter().rev().copied().find(|v| !v.is_nan());
        let last = last.ok_or_else(|| EvalError::new(format!("{} has no value to name a series by", other.name)))?;
        percent(&new_name, last).map(|name| s.named(name)).map_err(|e| EvalError::argument(&NEW_NAME, e))
    });
    named.collect()
}
