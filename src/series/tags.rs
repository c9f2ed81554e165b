//! Tags of a series, and queries over them (`seriesByTag`).

use std::collections::BTreeMap;

use fancy_regex::{Regex, RegexBuilder};

/// Tags of one series: name to value, sorted by name. A fetched series always has `name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(BTreeMap<String, String>);

impl Tags {
    /// The tags that a series name holds: `disk.used;host=a` has `name` and `host`. A name that looks like a call
    /// (`scale(..)`), or whose tags cannot be read, is all `name`, as graphite-web has it. `~` at the start of the
    /// `name` tag is cut.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let tags = if looks_like_call(name) { None } else { Self::parse(name).ok() };
        tags.unwrap_or_else(|| Self(BTreeMap::from([("name".to_owned(), name.to_owned())])))
    }

    /// The tags of a name in Graphite's form (`disk.used;dc=eu;host=a`) or in OpenMetrics' form
    /// (`disk_used{dc="eu",host="a"}`). A name without tags has the one tag `name`.
    ///
    /// # Errors
    /// No metric; a tag or value that is empty or holds what Graphite forbids: `;!^=` in a tag, `;` in a value,
    /// `~` at its start.
    pub fn parse(name: &str) -> Result<Self, SeriesNameError> {
        let (metric, mut tags) =
            if name.ends_with("\"}") && name.contains('{') { parse_openmetrics(name)? } else { parse_carbon(name)? };
        let value = metric.trim_start_matches('~');
        if value.is_empty() {
            return Err(SeriesNameError::NoMetric(name.to_owned()));
        }
        tags.insert("name".to_owned(), value.to_owned());
        Ok(Self(tags))
    }

    /// The canonical name of the series that has these tags: `name;k=v;k=v`, in the order of the `;k=v` texts.
    #[must_use]
    pub fn series_name(&self) -> String {
        let mut parts: Vec<String> =
            self.0.iter().filter(|(k, _)| *k != "name").map(|(k, v)| format!(";{k}={v}")).collect();
        parts.sort_unstable();
        format!("{}{}", self.get("name").unwrap_or_default(), parts.concat())
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

/// A series name whose tags cannot be read; shown to users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesNameError {
    /// Nothing (but `~`) before the tags.
    #[error("`{0}` has no metric name")]
    NoMetric(String),
    /// A part that is not `tag=value`.
    #[error("`{segment}` in `{name}` is not a tag and its value")]
    Segment {
        /// The whole name.
        name: String,
        /// The part.
        segment: String,
    },
    /// A tag without a value.
    #[error("the tag `{0}` has an empty value")]
    EmptyValue(String),
    /// A tag with one of `;!^=`.
    #[error("the tag `{tag}` must not hold `{character}`")]
    TagCharacter {
        /// The tag.
        tag: String,
        /// The character.
        character: char,
    },
    /// A value that holds `;` or begins with `~`.
    #[error("the value of the tag `{tag}` must not {fault}")]
    Value {
        /// The tag.
        tag: String,
        /// What is wrong with it.
        fault: &'static str,
    },
}

fn check_tag(tag: &str, value: &str) -> Result<(), SeriesNameError> {
    let tag_name = || tag.to_owned();
    if value.is_empty() {
        return Err(SeriesNameError::EmptyValue(tag_name()));
    }
    if let Some(character) = tag.chars().find(|c| matches!(c, ';' | '!' | '^' | '=')) {
        return Err(SeriesNameError::TagCharacter { tag: tag_name(), character });
    }
    if value.contains(';') {
        return Err(SeriesNameError::Value { tag: tag_name(), fault: "hold `;`" });
    }
    if value.starts_with('~') {
        return Err(SeriesNameError::Value { tag: tag_name(), fault: "begin with `~`" });
    }
    Ok(())
}

type MetricAndTags<'a> = (&'a str, BTreeMap<String, String>);

fn parse_carbon(name: &str) -> Result<MetricAndTags<'_>, SeriesNameError> {
    let mut parts = name.split(';');
    let metric = parts.next().filter(|m| !m.is_empty()).ok_or_else(|| SeriesNameError::NoMetric(name.to_owned()))?;
    let mut tags = BTreeMap::new();
    for part in parts {
        let (tag, value) = part
            .split_once('=')
            .filter(|(tag, _)| !tag.is_empty())
            .ok_or_else(|| SeriesNameError::Segment { name: name.to_owned(), segment: part.to_owned() })?;
        check_tag(tag, value)?;
        tags.insert(tag.to_owned(), value.to_owned());
    }
    Ok((metric, tags))
}

/// `metric{tag="value",…}`, with `\"` and `\\` inside a value.
fn parse_openmetrics(name: &str) -> Result<MetricAndTags<'_>, SeriesNameError> {
    let no_metric = || SeriesNameError::NoMetric(name.to_owned());
    let (metric, rest) = name.strip_suffix('}').and_then(|n| n.split_once('{')).ok_or_else(no_metric)?;
    if metric.is_empty() {
        return Err(no_metric());
    }
    let mut rest = rest;
    let mut tags = BTreeMap::new();
    while !rest.is_empty() {
        let segment = || SeriesNameError::Segment { name: name.to_owned(), segment: rest.to_owned() };
        let (tag, quoted) = rest.split_once("=\"").filter(|(tag, _)| !tag.is_empty()).ok_or_else(segment)?;
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next().ok_or_else(segment)? {
                (at, '"') => break at + 1,
                (_, '\\') => match chars.next() {
                    Some((_, c @ ('"' | '\\'))) => value.push(c),
                    _ => return Err(segment()),
                },
                (_, c) => value.push(c),
            }
        };
        let after = &quoted[end..];
        let next = after.strip_prefix(',').or_else(|| after.is_empty().then_some("")).ok_or_else(segment)?;
        check_tag(tag, &value)?;
        tags.insert(tag.to_owned(), value);
        rest = next;
    }
    Ok((metric, tags))
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
    pattern: Option<TagPattern>,
}

/// How a spec compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagOperator {
    /// `=`; an empty value means "absent".
    Equal,
    /// `!=`; an empty value means "present".
    NotEqual,
    /// `=~`, anchored at the start (see [`TagPattern`]).
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

/// Steps of backtracking for one text, some tenths of a millisecond; a pattern is compared with up to a million of them.
const MAX_BACKTRACKS: usize = 10_000;

/// A regular expression over tags or their values, as graphite-web with its default database reads it: anchored at
/// the start, except that one which begins with `^` says itself where it is anchored (`^a|b` finds `b` anywhere).
/// Case-sensitive.
#[derive(Clone, Debug)]
pub struct TagPattern(Regex);

impl TagPattern {
    /// # Errors
    /// A pattern that cannot be compiled.
    pub fn new(pattern: &str) -> Result<Self, TagQueryError> {
        if pattern.starts_with('^') { Self::compile(pattern, pattern) } else { Self::at_start(pattern) }
    }

    /// Anchored at the start, whatever the pattern begins with.
    fn at_start(pattern: &str) -> Result<Self, TagQueryError> {
        Self::compile(pattern, &format!("^(?:{pattern})"))
    }

    fn compile(pattern: &str, regex: &str) -> Result<Self, TagQueryError> {
        let regex = RegexBuilder::new(regex).backtrack_limit(MAX_BACKTRACKS).build();
        regex.map(Self).map_err(|_| TagQueryError::Regex(pattern.to_owned()))
    }

    /// Whether the text matches. A pattern that backtracks too much does not.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text).unwrap_or(false)
    }
}

impl TagQuerySpec {
    /// # Errors
    /// Malformed text, or a pattern that cannot be compiled.
    pub fn parse(text: &str) -> Result<Self, TagQueryError> {
        let malformed = || TagQueryError::Malformed(text.to_owned());
        let at = text.find(['=', '!', ';']).filter(|at| *at > 0).ok_or_else(malformed)?;
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
        if value.contains(';') {
            return Err(malformed());
        }
        let pattern = match operator {
            TagOperator::Match | TagOperator::NotMatch => {
                // A spec that a missing tag satisfies is a filter, and filters are always anchored.
                let anchored = TagPattern::at_start(value)?;
                let is_filter = anchored.matches("") == (operator == TagOperator::Match);
                Some(if is_filter { anchored } else { TagPattern::new(value)? })
            }
            _ => None,
        };
        Ok(Self { tag: tag.to_owned(), operator, value: value.to_owned(), pattern })
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
        let hit = || self.pattern.as_ref().is_some_and(|p| p.matches(value));
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

    /// The canonical spelling of a `seriesByTag(..)` call that is spelt in another way; `None` when it is no such call.
    #[must_use]
    pub fn respelt(text: &str) -> Option<String> {
        let text = text.trim();
        let arguments = text.strip_prefix("seriesByTag").and_then(call_arguments)?;
        Some(Self::canonical(&arguments))
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
pub(super) fn call_arguments(text: &str) -> Option<Vec<String>> {
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
        let odd = "m;key=a b(c|d)=e,{f}";
        assert_eq!(Tags::of_name(odd).get("key"), Some("a b(c|d)=e,{f}"));
        for forbidden in
            ["m;a!b=x", "m;a^b=x", "m;a=~x", "m;a=", "m;=x", "m;", ";a=b", "~;a=b", "", "m{a=\"\"}", "m{a=\"1\"x\"}"]
        {
            assert!(Tags::parse(forbidden).is_err(), "{forbidden}");
        }
        let open = Tags::parse(r#"zz.om{b="2",a="say \"1\\2\""}"#).expect("valid");
        assert_eq!(open.series_name(), r#"zz.om;a=say "1\2";b=2"#);
        // The parts are ordered with their `=`, which comes after `-`.
        assert_eq!(Tags::of_name("m;a=1;a-b=2").series_name(), "m;a-b=2;a=1");
        assert_eq!(Tags::parse("zz.plain").expect("valid").series_name(), "zz.plain");
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
        // One that begins with `^` is searched for, unless a missing tag satisfies it.
        for (spec, value, hit) in
            [("t=~^a|b", "xb", true), ("t!=~^a|b", "xb", true), ("t!=~^a|b", "b", false), ("t=~^|b", "xb", true)]
        {
            assert_eq!(matches(&["name=m", spec], &format!("m;t={value}")), hit, "{spec} {value}");
        }
        assert!(TagQuerySpec::parse("a^b=c").is_ok() && TagQuerySpec::parse("a=b;c").is_err());
        for everything in [["a=~.*"], ["a="], ["a!=~.+"]] {
            assert_eq!(TagQuery::new(everything).err(), Some(TagQueryError::MatchesEverything));
        }
        assert!(TagQuery::new(["=x"]).is_err() && TagQuery::new(["x"]).is_err() && TagQuery::new(["x=~("]).is_err());
        let query = TagQuery::from_call("seriesByTag('desc=hello, world', \"name=a\")").expect("valid");
        assert_eq!(query.specs().len(), 2);
        assert_eq!(query.specs()[0].value(), "hello, world");
        let respelt = TagQuery::respelt("seriesByTag( 'a=b', \"c=d\" )");
        assert_eq!(respelt.as_deref(), Some("seriesByTag(\"a=b\",\"c=d\")"));
        assert_eq!(TagQuery::respelt("a.b"), None);
    }
}
