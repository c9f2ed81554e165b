//! Names of series: what graphite-web puts into the names of results and takes from the names of inputs.

use super::NodeOrTag;
use crate::series::Series;

/// The path expressions of a list, each once, in order, joined by commas: what stands in the name of an aggregate.
pub(crate) fn path_expressions<'a>(series: impl IntoIterator<Item = &'a Series>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for s in series {
        if !seen.contains(&&*s.path_expression) {
            seen.push(&s.path_expression);
        }
    }
    seen.join(",")
}

/// The value of a node of the name (counted without the tags), or of a tag; empty when there is none.
/// `path` stands in for the name when it is given.
pub(crate) fn node_or_tag(series: &Series, which: &NodeOrTag, path: Option<&str>) -> String {
    let tag = match which {
        NodeOrTag::Node(n) => {
            let name = path.unwrap_or(&series.name);
            let metric = name.split(';').next().unwrap_or_default();
            let nodes: Vec<&str> = metric.split('.').collect();
            let index = if *n < 0 { *n + nodes.len() as i64 } else { *n };
            if let Some(node) = usize::try_from(index).ok().and_then(|i| nodes.get(i)) {
                return (*node).to_owned();
            }
            n.to_string()
        }
        NodeOrTag::Tag(tag) => tag.to_string(),
    };
    series.tags.get(&tag).unwrap_or_default().to_owned()
}
