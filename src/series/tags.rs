//! Tags of a series, and queries over them (`seriesByTag`).

use std::collections::BTreeMap;

use fancy_regex::Regex;

/// Tags of one series: name to value, sorted by name. A fetched series always has `name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(BTreeMap<String, String>);

impl Tags {
    /// The tags that a series name holds: `disk.used;host=a` has `name` and `host`. A name that looks like a call
    /// (`scale(..)`), or whose tags cannot be read, is all `name`, as graphite-web has it. `~` at the start of the
    /// `name` tag is cut.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self::parse(name).unwrap_or_else(|| Self(BTreeMap::from([("name".to_owned(), name.to_owned())])))
    }

    /// The tags of a tagged name, or `None` when it has no well-formed tags.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if looks_like_call(name) {
            return None;
        }
        let mut parts = name.split(';');
        let metric = parts.next().unwrap_or_default();
        let mut tags = BTreeMap::new();
        for part in parts {
            let (tag, value) = part.split_once('=')?;
            if tag.is_empty() || value.is_empty() {
                return None;
            }
            tags.insert(tag.to_owned(), value.to_owned());
        }
        tags.insert("name".to_owned(), metric.trim_start_matches('~').to_owned());
        Some(Self(tags))
    }

    /// Value of a tag.
    #[must_use]
    pub fn get(&self, tag: &str) -> Option<&str> {
        self.0.get(tag).map(String::as_str)
    }

    /// Sets a tag.
    pub fn set(&mut self, tag: &str, value: impl Into<String>) {
        self.0.insert(tag.to_owned(), value.into());
    }

    /// Removes a tag.
    pub fn remove(&mut self, tag: &str) {
        self.0.remove(tag);
    }

    /// Whether a tag is there.
    #[must_use]
    pub fn contains(&self, tag: &str) -> bool {
        self.0.contains_key(tag)
    }

    /// Tags sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Keeps only the tags that `other` has with the same value.
    pub fn intersect(&mut self, other: &Tags) {
        self.0.retain(|k, v| other.0.get(k) == Some(v));
    }
}

impl FromIterator<(String, String)> for Tags {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(tags: I) -> Self {
        Self(tags.into_iter().collect())
    }
}

/// `^[a-z]+[(].+[)]$`, ignoring case: what graphite-web takes for the name of a function's result.
fn looks_like_call(name: &str) -> bool {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    letters > 0 && name.as_bytes().get(letters) == Some(&b'(') && name.ends_with(')') && name.len() > letters + 2
}

/// A tag query: all of its specs must hold.
#[derive(Clone, Debug)]
pub struct TagQuery {
    specs: Vec<TagQuerySpec>,
}

/// One `tag<operator>value` of a tag query.
#[derive(Clone, Debug)]
pub struct TagQuerySpec {
    tag: String,
    operator: TagOperator,
    value: String,
    regex: Option<Regex>,
}

/// How a spec compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagOperator {
    /// `=`; an empty value means "absent".
    Equal,
    /// `!=`; an empty value means "present".
    NotEqual,
    /// `=~`, anchored at the start.
    Match,
    /// `!=~`, anchored at the start.
    NotMatch,
}

/// A tag query that is refused; shown to users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagQueryError {
    /// Not `tag<operator>value`.
    #[error("`{0}` is not a tag expression such as `dc=eu`, `dc!=eu`, `dc=~eu.*` or `dc!=~eu.*`")]
    Malformed(String),
    /// The pattern of `=~` or `!=~` cannot be compiled.
    #[error("`{0}` is not a valid regular expression")]
    Regex(String),
    /// All specs also match series that lack the tag, so that the query would mean "everything".
    #[error("at least one tag expression must require a non-empty value")]
    MatchesEverything,
}

impl TagQuerySpec {
    /// # Errors
    /// Malformed text, or a pattern that cannot be compiled.
    pub fn parse(text: &str) -> Result<Self, TagQueryError> {
        let malformed = || TagQueryError::Malformed(text.to_owned());
        let at = text.find(['=', '!', ';', '^']).filter(|at| *at > 0).ok_or_else(malformed)?;
        let (tag, rest) = text.split_at(at);
        let (operator, value) = if let Some(v) = rest.strip_prefix("!=~") {
            (TagOperator::NotMatch, v)
        } else if let Some(v) = rest.strip_prefix("!=") {
            (TagOperator::NotEqual, v)
        } else if let Some(v) = rest.strip_prefix("=~") {
            (TagOperator::Match, v)
        } else if let Some(v) = rest.strip_prefix('=') {
            (TagOperator::Equal, v)
        } else {
            return Err(malformed());
        };
        let regex = match operator {
            TagOperator::Match | TagOperator::NotMatch => {
                // Python's `re.match`: anchored at the start, whichever the alternative.
                Some(Regex::new(&format!("^(?:{value})")).map_err(|_| TagQueryError::Regex(value.to_owned()))?)
            }
            _ => None,
        };
        Ok(Self { tag: tag.to_owned(), operator, value: value.to_owned(), regex })
    }

    /// The tag's name.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// How it compares.
    #[must_use]
    pub fn operator(&self) -> TagOperator {
        self.operator
    }

    /// What it compares with.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether a series whose tag has this value (empty: no such tag) satisfies the spec.
    #[must_use]
    pub fn matches_value(&self, value: &str) -> bool {
        let hit = || self.regex.as_ref().is_some_and(|r| r.is_match(value).unwrap_or(false));
        match self.operator {
            TagOperator::Equal => value == self.value,
            TagOperator::NotEqual => value != self.value,
            TagOperator::Match => hit(),
            TagOperator::NotMatch => !hit(),
        }
    }
}

impl TagQuery {
    /// # Errors
    /// A malformed spec, or specs that all match the empty value.
    pub fn new<T: AsRef<str>>(specs: impl IntoIterator<Item = T>) -> Result<Self, TagQueryError> {
        let specs = specs.into_iter().map(|s| TagQuerySpec::parse(s.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if specs.iter().all(|s| s.matches_value("")) {
            return Err(TagQueryError::MatchesEverything);
        }
        Ok(Self { specs })
    }

    /// From the canonical text `seriesByTag("a=b","c=~d")` (see [`TagQuery::canonical`]).
    ///
    /// # Errors
    /// As [`TagQuery::new`]; text of another shape is malformed.
    pub fn from_call(text: &str) -> Result<Self, TagQueryError> {
        Self::new(call_arguments(text).ok_or_else(|| TagQueryError::Malformed(text.to_owned()))?)
    }

    /// The canonical call of these specs: double quotes where a value has none, no spaces.
    #[must_use]
    pub fn canonical<T: AsRef<str>>(specs: &[T]) -> String {
        let quoted = specs.iter().map(|s| {
            let s = s.as_ref();
            if s.contains('"') { format!("'{s}'") } else { format!("\"{s}\"") }
        });
        format!("seriesByTag({})", quoted.collect::<Vec<_>>().join(","))
    }

    /// The specs.
    #[must_use]
    pub fn specs(&self) -> &[TagQuerySpec] {
        &self.specs
    }

    /// Whether a series with these tags satisfies all specs.
    #[must_use]
    pub fn matches(&self, tags: &Tags) -> bool {
        self.specs.iter().all(|s| s.matches_value(tags.get(&s.tag).unwrap_or("")))
    }
}

/// The quoted arguments of `name("a",'b')`.
fn call_arguments(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_suffix(')')?;
    let mut rest = inner.get(inner.find('(')? + 1..)?.trim_start();
    let mut arguments = Vec::new();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let end = rest[1..].find(quote)? + 1;
        arguments.push(rest[1..end].to_owned());
        rest = rest[end + 1..].trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => {}
            None => return None,
        }
    }
    Some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_names() {
        let tags = Tags::of_name("disk;dc=a=b;host=x");
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("dc", "a=b"), ("host", "x"), ("name", "disk")]);
        assert_eq!(Tags::of_name("~a.b").get("name"), Some("a.b"));
        assert_eq!(Tags::of_name("scale(a;b=c)").iter().collect::<Vec<_>>(), [("name", "scale(a;b=c)")]);
        assert_eq!(Tags::of_name("a;b").iter().collect::<Vec<_>>(), [("name", "a;b")]);
    }

    #[test]
    fn queries_as_in_graphite() {
        let matches = |spec: &[&str], name: &str| TagQuery::new(spec).expect("valid").matches(&Tags::of_name(name));
        assert!(matches(&["name=disk", "dc!=eu"], "disk"));
        assert!(!matches(&["name=disk", "dc!="], "disk"));
        assert!(matches(&["name=disk", "dc="], "disk"));
        // Alternatives are anchored together, at the start only.
        for (value, hit) in [("a", true), ("b", true), ("ab", true), ("xb", false)] {
            assert_eq!(matches(&["tag=~a|b"], &format!("m;tag={value}")), hit, "{value}");
        }
        for everything in [["a=~.*"], ["a="], ["a!=~.+"]] {
            assert_eq!(TagQuery::new(everything).err(), Some(TagQueryError::MatchesEverything));
        }
        assert!(TagQuery::new(["=x"]).is_err() && TagQuery::new(["x"]).is_err() && TagQuery::new(["x=~("]).is_err());
        let query = TagQuery::from_call("seriesByTag('desc=hello, world', \"name=a\")").expect("valid");
        assert_eq!(query.specs().len(), 2);
        assert_eq!(query.specs()[0].value(), "hello, world");
    }
}
