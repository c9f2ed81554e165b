//! Names of series: what graphite-web puts into the names of results and takes from the names of inputs.

use std::borrow::Cow;
use std::collections::HashSet;

use super::NodeOrTag;
use super::first_path::first_path;
use crate::series::Series;

/// The most bytes of the names of other series in a name: what is longer is cut. Every series of a result may have
/// such a name, and names of results become parts of further names; ten thousands of series within a few calls would
/// otherwise need gigabytes for names alone.
const MAX_BYTES: usize = 64 * 1024;
/// The most bytes of one text in the names of all series of a list together.
const MAX_BYTES_OF_LIST: usize = 64 * 1024 * 1024;

/// The path expressions of a list, each once, in order, joined by commas: what stands in the name of an aggregate.
pub(crate) fn path_expressions<'a>(series: impl IntoIterator<Item = &'a Series>) -> String {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut last: Option<&std::sync::Arc<str>> = None;
    let mut fresh = series.into_iter().filter_map(|s| {
        // The series of one path have it in common; most often there is nothing else to look at.
        let same = last.is_some_and(|last| std::sync::Arc::ptr_eq(last, &s.path_expression));
        last = Some(&s.path_expression);
        (!same && seen.insert(&s.path_expression)).then_some(&*s.path_expression)
    });
    joined(&mut fresh)
}

/// Texts joined by commas, cut when they are too long for a name.
pub(crate) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for (i, text) in texts.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if out.len() + text.len() > MAX_BYTES {
            out.push_str(cut(text, MAX_BYTES.saturating_sub(out.len())));
            out.push('…');
            break;
        }
        out.push_str(text);
    }
    out
}

/// A text that is to stand in the name of each of `series` series: cut when all of them would be too long together.
pub(crate) fn shared(text: &str, series: usize) -> Cow<'_, str> {
    let limit = (MAX_BYTES_OF_LIST / series.max(1)).max(1024);
    if text.len() <= limit { Cow::Borrowed(text) } else { Cow::Owned(format!("{}…", cut(text, limit))) }
}

/// The longest beginning of at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
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
/// call stands for the first path in it. Nodes may be named any number of times, so the key is cut when it is too long.
pub(crate) fn key(series: &Series, nodes: &[NodeOrTag]) -> String {
    let path = if series.name.ends_with(')') { first_path(&series.name) } else { None };
    let mut key = String::new();
    for (i, node) in nodes.iter().enumerate() {
        if i > 0 {
            key.push('.');
        }
        key.push_str(&node_or_tag(series, node, path));
        if key.len() > MAX_BYTES {
            key.truncate(cut(&key, MAX_BYTES).len());
            key.push('…');
            break;
        }
    }
    key
}

/// First and last (exclusive) index of Python's `[start:stop]` of a list: negative ones count from its end, those
/// beyond are cut.
pub(crate) fn slice(len: usize, start: i64, stop: i64) -> (usize, usize) {
    let index = |at: i64| {
        let at = if at < 0 { at.saturating_add(len as i64) } else { at };
        usize::try_from(at).unwrap_or(0).min(len)
    };
    let (start, stop) = (index(start), index(stop));
    (start, stop.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Step;

    fn series(path: &str) -> Series {
        Series::new(path, 0, Step::SECOND, Vec::new())
    }

    #[test]
    fn names_of_many_series_are_bounded() {
        let list: Vec<Series> = ["b", "a", "b", "a", "c"].map(series).into();
        assert_eq!(path_expressions(&list), "b,a,c");
        let many: Vec<Series> = (0..30_000).map(|i| series(&format!("servers.host{i}.load"))).collect();
        let name = path_expressions(&many);
        assert!(name.starts_with("servers.host0.load,servers.host1.load,") && name.ends_with('…'));
        assert!(name.len() <= MAX_BYTES + "…".len());
        assert_eq!(shared(&name, 1), name);
        assert!(shared(&name, 30_000).len() * 30_000 <= MAX_BYTES_OF_LIST + 30_000 * "…".len());
        assert_eq!(cut("aé", 2), "a");
    }
}
