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

/// The key of a series for grouping or naming by nodes and tags: their values joined by dots. A name that ends like a
/// call stands for the first path in it.
pub(crate) fn key(series: &Series, nodes: &[NodeOrTag]) -> String {
    let path = if series.name.ends_with(')') { first_path(&series.name) } else { None };
    let values: Vec<String> = nodes.iter().map(|n| node_or_tag(series, n, path)).collect();
    values.join(".")
}

/// The first path in the text of an expression: `a.b` in `scale(sumSeries(a.b,c),2)`. `None` when the innermost first
/// argument is something else.
pub(crate) fn first_path(expression: &str) -> Option<&str> {
    let mut rest = expression.trim_start();
    loop {
        let word = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let after = rest[word..].trim_start();
        match after.strip_prefix('(') {
            Some(inner) if word > 0 && !rest.starts_with(|c: char| c.is_ascii_digit()) => rest = inner.trim_start(),
            _ => break,
        }
    }
    let mut depth = 0_u32;
    let mut escaped = false;
    let end = rest.char_indices().find_map(|(at, c)| {
        if std::mem::take(&mut escaped) {
            return None;
        }
        match c {
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth > 0 => {}
            '(' | ')' | '}' | ',' | '|' | '"' | '\'' => return Some(at),
            c if c.is_whitespace() => return Some(at),
            _ => {}
        }
        None
    });
    let path = &rest[..end.unwrap_or(rest.len())];
    let number = || path.parse::<f64>().is_ok() && end.is_some();
    if path.is_empty() || number() { None } else { Some(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_paths() {
        for (expression, path) in [
            ("a.b", Some("a.b")),
            ("scale(sumSeries(a.b,c),2)", Some("a.b")),
            ("sumSeries( a.{b,c}.d , x)", Some("a.{b,c}.d")),
            ("5xx.rate", Some("5xx.rate")),
            ("constantLine(5)", None),
            ("randomWalk(\"x.y\")", None),
            ("seriesByTag('name=x')", None),
        ] {
            assert_eq!(first_path(expression), path, "{expression}");
        }
    }
}
