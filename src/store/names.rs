//! The tree of names: what globs are matched against, one node at a time.
//!
//! Knows names only, not what is stored under them. Invariant: the leaves and branches of a branch are sorted and each
//! occurs once, so that a literal node is found by binary search and a walk yields sorted names.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::series::{Component, Glob};

/// One branch of the tree; unchanged branches are shared between two versions of a tree.
#[derive(Debug, Default)]
pub(super) struct Branch {
    pub(super) leaves: Vec<Box<str>>,
    pub(super) branches: Vec<(Box<str>, Arc<Branch>)>,
    /// When the folder behind it was changed, if it has one, and whether it was listed again since.
    pub(super) listed: Option<(SystemTime, bool)>,
    /// The folder behind it could not be listed: what is below it is not known.
    pub(super) unknown: bool,
}

/// Told of a node's path and whether it is a leaf; answers whether to go on.
pub(super) type Visit<'a> = dyn FnMut(&str, bool) -> bool + 'a;

impl Branch {
    /// The tree of dotted names.
    pub(super) fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        #[derive(Default)]
        struct Growing<'a> {
            leaves: BTreeSet<&'a str>,
            branches: BTreeMap<&'a str, Growing<'a>>,
        }
        impl Growing<'_> {
            fn done(self) -> Branch {
                Branch {
                    leaves: self.leaves.into_iter().map(Into::into).collect(),
                    branches: self.branches.into_iter().map(|(n, b)| (n.into(), Arc::new(b.done()))).collect(),
                    listed: None,
                    unknown: false,
                }
            }
        }
        let mut root = Growing::default();
        for name in names {
            let mut branch = &mut root;
            let mut rest = name;
            while let Some((node, more)) = rest.split_once('.') {
                branch = branch.branches.entry(node).or_default();
                rest = more;
            }
            branch.leaves.insert(rest);
        }
        root.done()
    }

    /// Calls `visit` with the path of each node that matches and whether it is a leaf, each once, until `visit`
    /// answers false. As Graphite's finder has it, empty nodes of a pattern stand for nothing (`a..b` is `a.b`), but
    /// one at the end stands for the branch itself, whose path then ends with a dot. The answer is whether all branches
    /// that may have something to match are known.
    pub(super) fn find(&self, glob: &Glob, visit: &mut Visit<'_>) -> bool {
        let (last, before) = glob.components().split_last().map_or((None, &[][..]), |(l, b)| (Some(l), b));
        let mut components: Vec<&Component> = before.iter().filter(|c| c.literal() != Some("")).collect();
        let itself = last.is_some_and(|l| l.literal() == Some(""));
        if !itself {
            components.extend(last);
        }
        let search = Search { components, itself, all_known: Cell::new(true) };
        let mut at = vec![0];
        search.skip_deep(&mut at);
        self.search(&search, &at, &mut String::new(), visit);
        search.all_known.get()
    }

    /// Where the search stands (`at`) is the set of components that may match next. Each node is visited once
    /// however many `**` there are.
    fn search(&self, search: &Search<'_>, at: &[usize], path: &mut String, visit: &mut Visit<'_>) -> bool {
        let end = search.components.len();
        if self.unknown && at.iter().any(|&a| a < end) {
            search.all_known.set(false);
        }
        if search.itself && at.contains(&end) {
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            let go_on = visit(path, false);
            path.truncate(length);
            if !go_on {
                return false;
            }
        }
        let literals: Option<Vec<&str>> =
            at.iter().filter(|&&a| a < end).map(|&a| search.components[a].literal()).collect();
        if let Some(mut nodes) = literals {
            nodes.sort_unstable();
            nodes.dedup();
            for node in nodes {
                let branch = self.branch(node);
                let leaf = self.leaves.binary_search_by(|n| (**n).cmp(node)).is_ok();
                if !step(search, at, path, node, branch, leaf, visit) {
                    return false;
                }
            }
            return true;
        }
        let (mut leaves, mut branches) = (self.leaves.iter().peekable(), self.branches.iter().peekable());
        loop {
            let (node, branch, leaf) = match (leaves.peek(), branches.peek()) {
                (None, None) => return true,
                (Some(l), Some((b, branch))) if **l == *b => (b, Some(branch), true),
                (Some(l), Some((b, branch))) if **l > *b => (b, Some(branch), false),
                (None, Some((b, branch))) => (b, Some(branch), false),
                (Some(l), _) => (*l, None, true),
            };
            if leaf {
                leaves.next();
            }
            if branch.is_some() {
                branches.next();
            }
            if !step(search, at, path, node, branch, leaf, visit) {
                return false;
            }
        }
    }

    /// Whether there is a leaf of this name.
    pub(super) fn has_leaf(&self, name: &str) -> bool {
        match name.split_once('.') {
            Some((node, rest)) => self.branch(node).is_some_and(|branch| branch.has_leaf(rest)),
            None => self.leaves.binary_search_by(|n| (**n).cmp(name)).is_ok(),
        }
    }

    /// The branch of this name directly below.
    pub(super) fn branch(&self, node: &str) -> Option<&Arc<Branch>> {
        self.branches.binary_search_by(|(n, _)| (**n).cmp(node)).ok().map(|i| &self.branches[i].1)
    }

    /// Whether it is known what is in it and in all branches below.
    pub(super) fn all_known(&self) -> bool {
        !self.unknown && self.branches.iter().all(|(_, branch)| branch.all_known())
    }

    /// Calls `visit` with the path of each leaf until it answers false. Sorted within a branch, not altogether.
    pub(super) fn each_leaf(&self, visit: &mut dyn FnMut(&str) -> bool) {
        self.walk(&mut String::new(), visit);
    }

    fn walk(&self, path: &mut String, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let length = path.len();
        for leaf in &self.leaves {
            path.push_str(leaf);
            let go_on = visit(path);
            path.truncate(length);
            if !go_on {
                return false;
            }
        }
        for (node, branch) in &self.branches {
            path.push_str(node);
            path.push('.');
            let go_on = branch.walk(path, visit);
            path.truncate(length);
            if !go_on {
                return false;
            }
        }
        true
    }
}

struct Search<'a> {
    components: Vec<&'a Component>,
    /// Whether branches that match all components are wanted themselves, with a dot after them.
    itself: bool,
    /// Whether no branch was searched whose nodes are not known.
    all_known: Cell<bool>,
}

impl Search<'_> {
    /// `**` may stand for no node: what follows it may match next, too.
    fn skip_deep(&self, at: &mut Vec<usize>) {
        let mut i = 0;
        while i < at.len() {
            let next = at[i] + 1;
            if matches!(self.components.get(at[i]), Some(Component::Deep)) && !at.contains(&next) {
                at.push(next);
            }
            i += 1;
        }
    }

    /// Where the search stands after a node of this name.
    fn after(&self, at: &[usize], node: &str) -> Vec<usize> {
        let mut after = Vec::new();
        for &a in at {
            let next = match self.components.get(a) {
                Some(Component::Deep) => a,
                Some(component) if component.matches(node) => a + 1,
                _ => continue,
            };
            if !after.contains(&next) {
                after.push(next);
            }
        }
        self.skip_deep(&mut after);
        after
    }
}

/// Goes on to one node: reports it when it matches, and searches below it.
fn step(
    search: &Search<'_>,
    at: &[usize],
    path: &mut String,
    node: &str,
    branch: Option<&Arc<Branch>>,
    leaf: bool,
    visit: &mut Visit<'_>,
) -> bool {
    let after = search.after(at, node);
    if after.is_empty() {
        return true;
    }
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(node);
    let matched = !search.itself && after.contains(&search.components.len());
    let mut go_on = true;
    if matched && branch.is_some() {
        go_on = visit(path, false);
    }
    if go_on && matched && leaf {
        go_on = visit(path, true);
    }
    if go_on && let Some(branch) = branch {
        go_on = branch.search(search, &after, path, visit);
    }
    path.truncate(length);
    go_on
}

/// Whether a name is that of a tagged series, stored under its hash (but not already such a place).
pub(super) fn is_tagged(name: &str) -> bool {
    name.contains(';') && !name.starts_with("_tagged.")
}

/// The series that is stored under a place in the tree, when the place says so: `_tagged.abc.def.a_DOT_b;k=v` is
/// `a.b;k=v`. The hash is checked, as that is where the series would be looked for.
pub(super) fn tagged_name(place: &str) -> Option<String> {
    let node = place.strip_prefix("_tagged.")?.splitn(3, '.').nth(2)?;
    let name = node.replace("_DOT_", ".");
    (name.contains(';') && tagged_node(&name) == place).then_some(name)
}

/// The node under which carbon stores a tagged series: `_tagged.abc.def.` and the name with `.` as `_DOT_`, where
/// `abcdef` begins the SHA-256 of the name.
pub(super) fn tagged_node(name: &str) -> String {
    let hash = tagged_hash(name);
    format!("_tagged.{}.{}.{}", &hash[0..3], &hash[3..6], name.replace('.', "_DOT_"))
}

/// The SHA-256 of a name in hexadecimal.
pub(super) fn tagged_hash(name: &str) -> String {
    format!("{:x}", Sha256::digest(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tree: &Branch, pattern: &str) -> Vec<String> {
        let mut found = Vec::new();
        tree.find(&Glob::new(pattern).expect("a valid pattern"), &mut |path, leaf| {
            found.push(if leaf { path.to_owned() } else { format!("{path}/") });
            true
        });
        found
    }

    #[test]
    fn finds_as_graphite_does() {
        let tree = Branch::from_names(["a.b.c", "a.b.d", "a.x.c", "a.b", "z", "a.y.b.c"]);
        for (pattern, expected) in [
            ("*", vec!["a/", "z"]),
            ("a.*", vec!["a.b/", "a.b", "a.x/", "a.y/"]),
            ("a.b", vec!["a.b/", "a.b"]),
            ("a.{b,x}.c", vec!["a.b.c", "a.x.c"]),
            ("a.**.c", vec!["a.b.c", "a.x.c", "a.y.b.c"]),
            ("**.b.**", vec!["a.b.c", "a.b.d", "a.y.b.c"]),
            ("**.**.c", vec!["a.b.c", "a.x.c", "a.y.b.c"]),
            ("a.b.**", vec!["a.b.c", "a.b.d"]),
            (".a..b", vec!["a.b/", "a.b"]),
            ("a.", vec!["a./"]),
            ("a.*.", vec!["a.b./", "a.x./", "a.y./"]),
            ("", vec!["/"]),
            ("a.b.c.d", vec![]),
            ("b", vec![]),
        ] {
            assert_eq!(found(&tree, pattern), expected, "{pattern}");
        }
        let mut all = Vec::new();
        tree.each_leaf(&mut |name| {
            all.push(name.to_owned());
            true
        });
        all.sort();
        assert_eq!(all, ["a.b", "a.b.c", "a.b.d", "a.x.c", "a.y.b.c", "z"]);
        let mut first = None;
        tree.find(&Glob::new("**").expect("valid"), &mut |path, _| {
            first = Some(path.to_owned());
            false
        });
        assert_eq!(first.as_deref(), Some("a"));
    }

    #[test]
    fn tagged_series_are_where_carbon_puts_them() {
        // From graphite-web: _tagged.09b.073 is in the recorded index of names.
        let name = "http.requests;code=404;method=GET";
        assert_eq!(tagged_node(name), "_tagged.09b.073.http_DOT_requests;code=404;method=GET");
        assert_eq!(tagged_name(&tagged_node(name)).as_deref(), Some(name));
        for no in ["a.b", "_tagged.09b.074.http_DOT_requests;code=404;method=GET", "_tagged.09b.073.abc", "_tagged.09b"]
        {
            assert_eq!(tagged_name(no), None, "{no}");
        }
        assert!(is_tagged(name) && !is_tagged(&tagged_node(name)) && !is_tagged("a.b"));
    }
}
