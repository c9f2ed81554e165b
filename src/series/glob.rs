//! Graphite's globs: `*`, `?`, `[a-z]`, `[!a-z]` and `{a,b{c,d}}` within one node, `**` over any number of nodes,
//! `\` before a character that stands for itself.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};

/// A pattern that cannot be read; shown to users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a valid pattern: {reason}")]
pub struct GlobError {
    pattern: String,
    reason: &'static str,
}

/// The most wildcards in one node. Each takes time to compile, so this is looked at before trying.
const MOST_WILDCARDS: u32 = 8192;

const TOO_COMPLEX: &str = "it is too complex";

/// A compiled path pattern: one [`Component`] for each node.
#[derive(Clone, Debug)]
pub struct Glob {
    components: Vec<Component>,
}

/// One node of a pattern.
#[derive(Clone)]
pub enum Component {
    /// Exactly this node.
    Literal(String),
    /// Any node.
    Any,
    /// `**`: any number of nodes, also none. (At the end of a pattern another [`Component::Any`] follows.)
    Deep,
    /// Nodes that this expression matches whole.
    Pattern(Regex),
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(s) => write!(f, "{s:?}"),
            Self::Any => f.write_str("*"),
            Self::Deep => f.write_str("**"),
            Self::Pattern(r) => write!(f, "/{r}/"),
        }
    }
}

impl Component {
    /// Whether a node of this name matches. (`**` matches each single node.)
    #[must_use]
    pub fn matches(&self, node: &str) -> bool {
        match self {
            Self::Literal(s) => s == node,
            Self::Any | Self::Deep => true,
            Self::Pattern(r) => r.is_match(node.as_bytes()),
        }
    }

    /// The node's name when there is just one.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        if let Self::Literal(s) = self { Some(s) } else { None }
    }
}

impl Glob {
    /// The most bytes a pattern may have.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// # Errors
    /// A brace or bracket that is not closed, or a pattern over [`Glob::MAX_BYTES`] or of thousands of wildcards.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        let error = |reason| GlobError { pattern: pattern.chars().take(200).collect(), reason };
        if pattern.len() > Self::MAX_BYTES {
            return Err(error("it is too long"));
        }
        let mut components: Vec<Component> =
            split_nodes(pattern).iter().map(|node| component(node)).collect::<Result<_, _>>().map_err(error)?;
        if matches!(components.last(), Some(Component::Deep)) {
            // `a.**` is everything below `a`, not `a` itself.
            components.push(Component::Any);
        }
        Ok(Self { components })
    }

    /// The nodes of the pattern.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The one name that this can match, when it has no wildcard.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let nodes: Option<Vec<&str>> = self.components.iter().map(Component::literal).collect();
        nodes.map(|n| n.join("."))
    }

    /// Whether the dotted name matches, node by node.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let nodes: Vec<&str> = name.split('.').collect();
        self.matches_nodes(&nodes)
    }

    /// The same for a name that is split already: one name is often compared with many patterns.
    #[must_use]
    pub fn matches_nodes(&self, nodes: &[&str]) -> bool {
        match_nodes(&self.components, nodes)
    }
}

fn match_nodes(components: &[Component], nodes: &[&str]) -> bool {
    // The usual two-pointer match with one point to go back to: linear in practice, never exponential.
    let (mut c, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match components.get(c) {
            Some(Component::Deep) => {
                retry = Some((c, n));
                c += 1;
                continue;
            }
            Some(component) if n < nodes.len() && component.matches(nodes[n]) => {
                c += 1;
                n += 1;
                continue;
            }
            None if n == nodes.len() => return true,
            _ => {}
        }
        match retry {
            Some((at, from)) if from < nodes.len() => {
                retry = Some((at, from + 1));
                c = at + 1;
                n = from + 1;
            }
            _ => return false,
        }
    }
}

/// Splits at dots that are not inside braces.
fn split_nodes(pattern: &str) -> Vec<String> {
    let (mut nodes, mut node, mut depth, mut escaped) = (Vec::new(), String::new(), 0_u32, false);
    for c in pattern.chars() {
        if escaped {
            escaped = false;
            if c != '.' || depth > 0 {
                node.push('\\');
                node.push(c);
                continue;
            }
            // A node's name never has a dot, so an escaped dot separates as well.
        }
        match c {
            '\\' => {
                escaped = true;
                continue;
            }
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => {
                nodes.push(std::mem::take(&mut node));
                continue;
            }
            _ => {}
        }
        node.push(c);
    }
    if escaped {
        node.push('\\');
    }
    nodes.push(node);
    nodes
}

fn component(node: &str) -> Result<Component, &'static str> {
    match node {
        "*" => return Ok(Component::Any),
        "**" => return Ok(Component::Deep),
        // As fnmatch has it, more of them say the same as one.
        _ if node.starts_with("***") && node.bytes().all(|b| b == b'*') => return Ok(Component::Any),
        _ => {}
    }
    if !node.contains(['*', '?', '[', '{', '}', '\\']) {
        return Ok(Component::Literal(node.to_owned()));
    }
    let mut regex = String::from(r"\A(?s:");
    let mut literal = Some(String::new());
    let mut chars = node.chars().peekable();
    let (mut depth, mut wildcards) = (0_u32, 0_u32);
    while let Some(c) = chars.next() {
        let special = match c {
            '\\' => {
                let c = chars.next().unwrap_or('\\');
                if let Some(l) = &mut literal {
                    l.push(c);
                }
                push_literal(&mut regex, c);
                continue;
            }
            '*' => {
                while chars.next_if_eq(&'*').is_some() {}
                // Any bytes: what stands around it is text, and so is the name. It compiles sooner than any characters.
                "(?-u:.)*".to_owned()
            }
            '?' => ".".to_owned(),
            '{' => {
                depth += 1;
                "(?:".to_owned()
            }
            '}' if depth > 0 => {
                depth -= 1;
                ")".to_owned()
            }
            ',' if depth > 0 => "|".to_owned(),
            '[' => match class(&mut chars) {
                Some(class) => class,
                None => {
                    // As fnmatch has it: a bracket that is never closed stands for itself.
                    if let Some(l) = &mut literal {
                        l.push(c);
                    }
                    push_literal(&mut regex, c);
                    continue;
                }
            },
            '}' => return Err("a `}` has no `{`"),
            c => {
                if let Some(l) = &mut literal {
                    l.push(c);
                }
                push_literal(&mut regex, c);
                continue;
            }
        };
        literal = None;
        regex.push_str(&special);
        wildcards += u32::from(matches!(c, '*' | '?' | '['));
        if wildcards > MOST_WILDCARDS {
            return Err(TOO_COMPLEX);
        }
    }
    if depth > 0 {
        return Err("a `{` is not closed");
    }
    if let Some(literal) = literal {
        return Ok(Component::Literal(literal));
    }
    regex.push_str(r")\z");
    RegexBuilder::new(&regex)
        .size_limit(1 << 22)
        .nest_limit(64)
        .build()
        .map(Component::Pattern)
        .map_err(|_| TOO_COMPLEX)
}

fn push_literal(regex: &mut String, c: char) {
    let mut buffer = [0; 4];
    regex.push_str(&regex::escape(c.encode_utf8(&mut buffer)));
}

/// A bracket expression after its `[`, as a regex class; `None` when it is never closed (nothing is consumed then).
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut ahead = chars.clone();
    let negated = matches!(ahead.peek(), Some('!'));
    if negated {
        ahead.next();
    }
    let mut members = Vec::new();
    loop {
        match ahead.next()? {
            ']' if !members.is_empty() => break,
            c => members.push(c),
        }
    }
    *chars = ahead;
    let mut class = String::from(if negated { "[^" } else { "[" });
    let mut i = 0;
    let mut any = false;
    while i < members.len() {
        let low = members[i];
        if i + 2 < members.len() && members[i + 1] == '-' {
            let high = members[i + 2];
            i += 3;
            // An empty range (`z-a`) matches nothing, as in fnmatch.
            if low <= high {
                push_literal(&mut class, low);
                class.push('-');
                push_literal(&mut class, high);
                any = true;
            }
            continue;
        }
        push_literal(&mut class, low);
        any = true;
        i += 1;
    }
    if !any {
        return Some(if negated { ".".to_owned() } else { r"[^\s\S]".to_owned() });
    }
    class.push(']');
    Some(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_graphite_does() {
        for (pattern, yes, no) in [
            ("a.b", vec!["a.b"], vec!["a", "a.b.c", "a.bb"]),
            ("a.*", vec!["a.b", "a.bb"], vec!["a", "a.b.c", "b.b"]),
            ("a?c.d", vec!["abc.d"], vec!["ac.d", "abbc.d"]),
            ("a[12].x", vec!["a1.x", "a2.x"], vec!["a3.x", "a12.x"]),
            ("a[!12].x", vec!["a3.x"], vec!["a1.x", "a.x"]),
            ("a[0-9a-c]", vec!["a0", "ab"], vec!["ad"]),
            ("{one*}", vec!["one1", "one"], vec!["two"]),
            ("x.{a,b{1,2}}", vec!["x.a", "x.b1", "x.b2"], vec!["x.b", "x.ab1"]),
            ("foo.{bar,}.baz", vec!["foo.bar.baz", "foo..baz"], vec!["foo.baz"]),
            ("**", vec!["a", "a.b.c"], vec![]),
            ("a.**", vec!["a.b", "a.b.c"], vec!["a", "b.a"]),
            (r"a\.b", vec!["a.b"], vec!["a"]),
            ("a.**.c", vec!["a.c", "a.b.c", "a.x.y.c"], vec!["a.b", "c"]),
            (r"foo.bar\{topic\}.x", vec!["foo.bar{topic}.x"], vec!["foo.bartopic.x"]),
            ("a+b.c(d", vec!["a+b.c(d"], vec!["aab.c(d"]),
            ("日*.x", vec!["日本.x"], vec!["本.x"]),
            ("*?本*", vec!["日本", "日日本語"], vec!["本", "本語"]),
            ("{日*,x?}[!本]", vec!["日é", "日本x", "xéé"], vec!["日本", "xé"]),
            ("a[b", vec!["a[b"], vec!["ab"]),
            ("***", vec!["a", "abc"], vec!["a.b"]),
            ("a***.b**c", vec!["a.bc", "ax.bxxc"], vec!["x.bc", "a.b.c"]),
            (r"*\**", vec!["*", "a*b"], vec!["ab"]),
        ] {
            let glob = Glob::new(pattern).expect(pattern);
            for name in yes {
                assert!(glob.matches(name), "{pattern} {name}");
            }
            for name in no {
                assert!(!glob.matches(name), "{pattern} {name}");
            }
        }
        assert!(Glob::new("a.{b").is_err());
        assert!(Glob::new("a.b}").is_err());
        let stars = Glob::new(&"*".repeat(60_000)).expect("the same as one");
        assert!(matches!(stars.components(), [Component::Any]));
        let error = Glob::new(&"*a".repeat(30_000)).expect_err("more than an expression can hold");
        assert!(error.to_string().ends_with("it is too complex"));
        assert_eq!(Glob::new(r"a.b\*c").expect("valid").literal().as_deref(), Some("a.b*c"));
        assert_eq!(Glob::new("a.b*c").expect("valid").literal(), None);
    }
}
