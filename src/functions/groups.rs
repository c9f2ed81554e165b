//! Series sorted into groups by nodes and tags, and each group combined: `groupBy…`, `…WithWildcards`, map and reduce,
//! and `applyByNode`, which evaluates a target for each group.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::combine::{COMBINE, aggregate, function_of};
use super::names::{key, slice};
use super::{
    AggOrSeriesFunc, Args, Call, Eval, EvalError, Function, Literal, Node, NodeOrTag, Param, SeriesList, SeriesLists,
    Tag,
};
use crate::series::{Aggregation, Series, Tags};
use crate::target::{MAX_BYTES, parse};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const FUNC: Param<Aggregation> = Param::required("func");
const POSITIONS: Param<Node> = Param::optional("position").multiple();
const NODE: Param<NodeOrTag> = Param::required("nodeNum");
const NODES: Param<NodeOrTag> = Param::optional("nodes").multiple();
const OPTIONAL_CALLBACK: Param<AggOrSeriesFunc> = Param::optional("callback").default(Literal::Text("average"));
const CALLBACK: Param<AggOrSeriesFunc> = Param::required("callback");
const TAGS: Param<Tag> = Param::required("tags").multiple();
const MAP_NODES: Param<NodeOrTag> = Param::optional("mapNodes").shown_required().multiple();
const SERIES_LISTS: Param<SeriesLists> = Param::required("seriesLists");
const REDUCE_FUNCTION: Param<String> = Param::required("reduceFunction");
const REDUCE_NODE: Param<Node> = Param::required("reduceNode");
const REDUCE_MATCHERS: Param<String> = Param::required("reduceMatchers").multiple();
const PREFIX_NODE: Param<Node> = Param::required("nodeNum");
const TEMPLATE: Param<String> = Param::required("templateFunction");
const NEW_NAME: Param<String> = Param::optional("newName");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "aggregateWithWildcards",
        doc: "Combines series whose names are equal but for the nodes at the given positions (from 0), by the given \
              function. The result is named by the other nodes.",
        example: "aggregateWithWildcards(servers.*.cpu.{user,system},\"sum\",1)",
        params: &[&SERIES, &FUNC, &POSITIONS],
        eval: Eval::Series(|call| {
            let (name, function) = function_of(call, &FUNC);
            with_wildcards(call, &name, function)
        }),
        ..COMBINE
    },
    Function {
        name: "applyByNode",
        doc: "Evaluates a target for each different beginning of the series' names up to the given node (from 0): `%` \
              in the target stands for that beginning. With newName the results are named by it, `%` as before.",
        example: "applyByNode(servers.web0[12].cpu.user,1,\"divideSeries(%.cpu.user,sumSeries(%.cpu.*))\",\"% user\")",
        params: &[&SERIES, &PREFIX_NODE, &TEMPLATE, &NEW_NAME],
        expand: Some(|args, _, series| Ok(applications(args, series)?.into_values().collect())),
        eval: Eval::Series(apply_by_node),
        ..COMBINE
    },
    Function {
        name: "averageSeriesWithWildcards",
        doc: "The means of series whose names are equal but for the nodes at the given positions (from 0).",
        example: "averageSeriesWithWildcards(servers.*.cpu.{user,system},1)",
        params: &[&SERIES, &POSITIONS],
        eval: Eval::Series(|call| with_wildcards(call, "average", Aggregation::Average)),
        ..COMBINE
    },
    Function {
        name: "groupByNode",
        doc: "Combines the series that have the same node (from 0; negative: from the end) in their names, or the same \
              value of a tag. The callback is an aggregation function, or a function of one list of which the first \
              result is taken. Results are named by the node.",
        example: "groupByNode(servers.*.cpu.{user,system},1,\"sum\")",
        params: &[&SERIES, &NODE, &OPTIONAL_CALLBACK],
        eval: Eval::Series(|call| {
            let (node, callback) = (call.args.get(&NODE), call.args.get(&OPTIONAL_CALLBACK));
            group_by_nodes(call, &callback.0, &[node])
        }),
        ..COMBINE
    },
    Function {
        name: "groupByNodes",
        doc: "As `groupByNode`, by several nodes and tags together. Results are named by them, joined by dots.",
        example: "groupByNodes(servers.*.cpu.{user,system},\"sum\",1,-1)",
        params: &[&SERIES, &CALLBACK, &NODES],
        eval: Eval::Series(|call| {
            let (nodes, callback) = (call.args.all(&NODES), call.args.get(&CALLBACK));
            group_by_nodes(call, &callback.0, &nodes)
        }),
        ..COMBINE
    },
    Function {
        name: "groupByTags",
        doc: "Combines the series that have the same values of all given tags. Results are named as tagged series are: \
              by the name that all series have in common, else by the callback, and the tags.",
        example: "groupByTags(seriesByTag(\"name=disk.used\"),\"sum\",\"datacenter\")",
        params: &[&SERIES, &CALLBACK, &TAGS],
        eval: Eval::Series(group_by_tags),
        ..COMBINE
    },
    Function {
        name: "mapSeries",
        aliases: &["map"],
        doc: "Sorts series into lists that have the given nodes and tags in common, for `reduceSeries`.",
        example: "reduceSeries(mapSeries(servers.web0[12].cpu.*,1),\"divideSeries\",3,\"user\",\"idle\")",
        params: &[&SERIES, &MAP_NODES],
        eval: Eval::Groups(|call| {
            let nodes = call.args.all(&MAP_NODES);
            let series = call.series(&SERIES);
            Ok(grouped(series, |s| key(s, &nodes)).into_iter().map(|(_, list)| list).collect())
        }),
        ..COMBINE
    },
    Function {
        name: "multiplySeriesWithWildcards",
        doc: "The products of series whose names are equal but for the nodes at the given positions (from 0).",
        example: "multiplySeriesWithWildcards(stats.timers.*.{mean,count},3)",
        params: &[&SERIES, &POSITIONS],
        eval: Eval::Series(|call| with_wildcards(call, "multiply", Aggregation::Multiply)),
        ..COMBINE
    },
    Function {
        name: "reduceSeries",
        aliases: &["reduce"],
        doc: "Takes the lists of `mapSeries`, finds in each the series whose node at reduceNode is one of the matchers, \
              and calls the function with them, one argument for each matcher, in the order of the matchers. Results \
              are named by the nodes before reduceNode, `reduce` and the function.",
        example: "reduceSeries(mapSeries(servers.web0[12].cpu.*,1),\"asPercent\",3,\"user\",\"idle\")",
        params: &[&SERIES_LISTS, &REDUCE_FUNCTION, &REDUCE_NODE, &REDUCE_MATCHERS],
        eval: Eval::Series(reduce_series),
        ..COMBINE
    },
    Function {
        name: "sumSeriesWithWildcards",
        doc: "The sums of series whose names are equal but for the nodes at the given positions (from 0).",
        example: "sumSeriesWithWildcards(servers.*.cpu.{user,system},1)",
        params: &[&SERIES, &POSITIONS],
        eval: Eval::Series(|call| with_wildcards(call, "sum", Aggregation::Sum)),
        ..COMBINE
    },
];

/// Things with equal keys together, in the order in which the keys first occur.
pub(super) fn grouped<T>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> String) -> Vec<(String, Vec<T>)> {
    let mut groups: Vec<(String, Vec<T>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in items {
        let key = key(&item);
        match places.get(&key) {
            Some(place) => groups[*place].1.push(item),
            None => {
                places.insert(key.clone(), groups.len());
                groups.push((key, vec![item]));
            }
        }
    }
    groups
}

fn with_wildcards(call: &mut Call<'_>, name: &str, function: Aggregation) -> Result<Vec<Series>, EvalError> {
    let positions: Vec<i64> = call.args.all(&POSITIONS).into_iter().map(|n| n.0).collect();
    let other_nodes = |s: &Series| {
        let nodes = s.name.split('.').zip(0_i64..).filter(|(_, i)| !positions.contains(i)).map(|(node, _)| node);
        nodes.collect::<Vec<_>>().join(".")
    };
    let mut results = Vec::new();
    for (key, list) in grouped(call.series(&SERIES), other_nodes) {
        let combined = aggregate(call, &list, name, function, None)?;
        results.extend(combined.into_iter().map(|s| s.named(key.as_str())));
    }
    Ok(results)
}

fn group_by_nodes(call: &mut Call<'_>, callback: &str, nodes: &[NodeOrTag]) -> Result<Vec<Series>, EvalError> {
    let mut results = Vec::new();
    for (key, list) in grouped(call.series(&SERIES), |s| key(s, nodes)) {
        let first = call.combine(callback, list)?.into_iter().next();
        results.extend(first.map(|s| s.named(key)));
    }
    Ok(results)
}

fn group_by_tags(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let callback = call.args.get(&CALLBACK).0;
    let wanted: Vec<String> = call.args.all(&TAGS).into_iter().map(|t| t.0).collect();
    if wanted.iter().any(String::is_empty) {
        return Err(EvalError::argument(&TAGS, "the name of a tag is expected, not an empty string"));
    }
    let series = call.series(&SERIES);
    let name_of = |s: &Series| s.tags.get("name").unwrap_or_default().to_owned();
    let by_name = wanted.iter().any(|t| t == "name");
    let common = match series.split_first() {
        Some((first, others)) if others.iter().all(|s| s.tags.get("name") == first.tags.get("name")) => name_of(first),
        _ => callback.to_string(),
    };
    let key = |s: &Series| {
        let value = |tag: &String| format!(";{tag}={}", s.tags.get(tag).unwrap_or_default());
        let mut parts: Vec<String> = wanted.iter().filter(|t| *t != "name").map(value).collect();
        parts.sort_unstable();
        format!("{}{}", if by_name { name_of(s) } else { common.clone() }, parts.concat())
    };
    let mut results = Vec::new();
    for (key, list) in grouped(series, key) {
        // A tag that the series lack is in the name, without a value, but not among the tags.
        let tags = Tags::parse(&key).unwrap_or_else(|_| {
            let parts = key.split(';').zip(0..);
            let tag = |(part, i): (&str, usize)| match part.split_once('=') {
                Some((tag, value)) if i > 0 => (!value.is_empty()).then(|| (tag.to_owned(), value.to_owned())),
                _ => (i == 0).then(|| ("name".to_owned(), part.trim_start_matches('~').to_owned())),
            };
            parts.filter_map(tag).collect()
        });
        if let Some(first) = call.combine(&callback, list)?.into_iter().next() {
            let mut first = first.renamed(key);
            first.tags = Arc::new(tags);
            results.push(first);
        }
    }
    Ok(results)
}

/// A place in a list as Python counts it (negative: from the end); `None` outside of it.
fn place(index: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    let index = if index < 0 { index.checked_add(len)? } else { index };
    (0..len).contains(&index).then(|| usize::try_from(index).ok()).flatten()
}

fn reduce_series(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let function = call.args.get(&REDUCE_FUNCTION);
    let matchers = call.args.all(&REDUCE_MATCHERS);
    let node = call.args.get(&REDUCE_NODE).0;
    // For each result the series by matcher; one that comes later takes the place of an earlier one.
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut results: Vec<(String, Vec<Vec<Series>>)> = Vec::new();
    for series in call.groups(&SERIES_LISTS).into_iter().flatten() {
        let nodes: Vec<&str> = series.name.split('.').collect();
        let Some(at) = place(node, nodes.len()) else { continue };
        let Some(matcher) = matchers.iter().position(|m| m == nodes[at]) else { continue };
        let name = format!("{}.reduce.{function}", nodes[..at].join("."));
        let result = *places.entry(name).or_insert_with_key(|name| {
            results.push((name.clone(), vec![Vec::new(); matchers.len()]));
            results.len() - 1
        });
        results[result].1[matcher] = vec![series];
    }
    let mut reduced = Vec::new();
    for (name, lists) in results {
        let first = call.apply(&function, lists)?.into_iter().next();
        reduced.extend(first.map(|s| s.named(name)));
    }
    Ok(reduced)
}

/// What `applyByNode` evaluates: the target for each beginning of the series' names. Beginnings for which the target is
/// empty or cannot be read are left out: one odd name is no reason to show none of the others.
fn applications(args: &Args, series: &[Series]) -> Result<BTreeMap<String, String>, EvalError> {
    let (node, template) = (args.get(&PREFIX_NODE).0, args.get(&TEMPLATE));
    // Where the text around the names is at fault, the user is told.
    let readable = parse(&template.replace('%', "x")).is_ok();
    let mut applications = BTreeMap::new();
    for s in series {
        let nodes: Vec<&str> = s.name.split('.').collect();
        let len = nodes.len() as i64;
        if node >= len {
            return Err(EvalError::argument(&PREFIX_NODE, format!("{} has no node {node}, only {len} nodes", s.name)));
        }
        let (_, end) = slice(nodes.len(), 0, node.saturating_add(1));
        let prefix = nodes[..end].join(".");
        let target = filled_in(&TEMPLATE, &template, &prefix)?;
        let unreadable = readable && parse(&target).is_err();
        if !unreadable && !target.trim().is_empty() {
            applications.insert(prefix, target);
        }
    }
    Ok(applications)
}

/// The value of a parameter with `%` replaced.
fn filled_in(param: &Param<String>, template: &str, prefix: &str) -> Result<String, EvalError> {
    let places = template.matches('%').count();
    if template.len().saturating_add(places.saturating_mul(prefix.len())) > MAX_BYTES {
        return Err(EvalError::argument(param, format!("it becomes longer than {MAX_BYTES} bytes")));
    }
    Ok(template.replace('%', prefix))
}

fn apply_by_node(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let series = call.series(&SERIES);
    let applications = applications(call.args, &series)?;
    let new_name = call.args.find(&NEW_NAME).filter(|n| !n.is_empty());
    let Some(last) = series.last() else { return Ok(Vec::new()) };
    let mut results = Vec::new();
    for (prefix, (_, list)) in applications.keys().zip(call.targets()) {
        for mut result in list {
            if let Some(new_name) = &new_name {
                result.name = filled_in(&NEW_NAME, new_name, prefix)?.into();
            }
            result.path_expression = prefix.as_str().into();
            // graphite-web gives the results the start and the end of the last series, whatever their own are.
            results.push(result.starting(last.start()).ending(last.end()));
        }
    }
    Ok(results)
}
