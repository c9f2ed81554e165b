//! Protocols: what is asked of a backend, and who an answer is for. Bytes out, bytes in; no sockets, no clock.
//!
//! The rule that all of them keep: an answer goes to those who asked. A series is for the patterns that the backend
//! says it is for (`pathExpression`, if that is one that was asked), else for every pattern that matches its name;
//! series nobody asked for are dropped, and each name is listed once for a pattern. Ranges are those of the request.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::mem;
use std::sync::Arc;

use form_urlencoded::Serializer;
use prost::Message;

use super::wire::{Answered, CodecError, Limits};
use super::{FindQuery, FoundNode, carbonapi, msgpack, pickle};
use crate::series::{Component, Glob, Selector, Series, TagQuery, Tags, TimeRange};

/// One HTTP request, relative to a backend's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRequest {
    /// The path, with its leading slash.
    pub path: &'static str,
    /// What follows the path besides the parameters: one segment, percent-encoded.
    pub segment: Option<String>,
    /// Parameters, encoded as in a query string.
    pub parameters: String,
    /// How they travel.
    pub payload: Payload,
    /// The selectors that this answers, as indexes into those that were given; empty for all but renders.
    pub answers: Vec<usize>,
}

/// How the parameters of a request travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// `GET`, in the URL.
    Url,
    /// `POST`, as a form: they are too long for a URL.
    Form,
    /// `POST` with another body; the parameters are in the URL.
    Body {
        /// Its media type.
        media_type: &'static str,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

impl WireRequest {
    /// A request of these parameters: by `GET` when the URL is short enough.
    pub(super) fn new(path: &'static str, parameters: String) -> Self {
        let payload = if path.len() + parameters.len() < MAX_URL { Payload::Url } else { Payload::Form };
        Self { path, segment: None, parameters, payload, answers: Vec::new() }
    }
}

/// The longest path with parameters that is sent, in bytes. Servers take 8 KB, but gunicorn, which graphite-web
/// usually runs on, refuses request lines over 4,094 bytes unless told otherwise; the rest is for the URL's own path.
const MAX_URL: usize = 3_900;

/// The longest form that is sent to a Graphite, in bytes: Django refuses 2.5 MB.
const MAX_FORM: usize = 2_000_000;

/// The most patterns in one request to a Graphite: Django refuses requests of more than 1,000 parameters.
const GRAPHITE_PATTERNS: usize = 900;

/// What a backend takes in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// The most patterns; `None` is as many as the protocol allows.
    pub patterns: Option<usize>,
    /// Whether it understands `POST`. If not, long requests are split.
    pub post: bool,
}

impl Default for Bulk {
    fn default() -> Self {
        Self { patterns: None, post: true }
    }
}

/// How one kind of backend is spoken to.
pub trait Protocol: fmt::Debug + Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// The requests that ask for all `selectors`: as few as the protocol allows. `now` is the request's clock
    /// reading, seconds since the epoch. A selector that no request answers has the answer "nothing".
    fn render(&self, selectors: &[Selector], now: i64) -> Vec<WireRequest>;

    /// Reads the answer to one request of [`Protocol::render`]: the series for each of `asked`, the selectors that
    /// the request answers.
    ///
    /// # Errors
    /// A body that is not a proper answer, or larger than `limits`.
    fn read_render(&self, asked: &[Selector], body: &[u8], limits: &Limits) -> Result<Vec<Vec<Series>>, CodecError>;

    /// The request that finds nodes.
    fn find(&self, query: &FindQuery) -> WireRequest;

    /// Reads the answer to [`Protocol::find`].
    ///
    /// # Errors
    /// As [`Protocol::read_render`].
    fn read_find(&self, body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError>;

    /// The request that lists the names of all series.
    fn index(&self) -> WireRequest {
        WireRequest::new("/metrics/index.json", "local=1".to_owned())
    }

    /// Reads the answer to [`Protocol::index`].
    ///
    /// # Errors
    /// As [`Protocol::read_render`].
    fn read_index(&self, body: &[u8], limits: &Limits) -> Result<Vec<String>, CodecError> {
        super::tag_api::read_names(body, limits)
    }

    /// Whether some backends of this kind say that they found nothing with a 404 or an empty body. Of others these are
    /// failures: taken for an answer, a URL that is wrong would look like a store that is empty.
    fn may_answer_nothing(&self) -> bool {
        true
    }

    /// Whether backends of this kind have tags.
    fn has_tags(&self) -> bool {
        true
    }
}

/// Names of all protocols, as the configuration has them.
pub const NAMES: &[&str] = &["graphite", "graphite-pickle", "graphite-0.9", "carbonapi_v2_pb", "carbonapi_v3_pb"];

/// The protocol of this name.
#[must_use]
pub fn by_name(name: &str, bulk: Bulk) -> Option<Arc<dyn Protocol>> {
    Some(match name {
        "graphite" => Arc::new(Graphite::new(Dialect::MsgPack, bulk)),
        "graphite-pickle" => Arc::new(Graphite::new(Dialect::Pickle, bulk)),
        "graphite-0.9" => Arc::new(Graphite::new(Dialect::Old, bulk)),
        "carbonapi_v2_pb" => Arc::new(CarbonapiV2 { bulk }),
        "carbonapi_v3_pb" => Arc::new(CarbonapiV3 { bulk }),
        _ => return None,
    })
}

/// What a Graphite speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Graphite 1.x: MessagePack.
    MsgPack,
    /// Graphite 1.x, or a go-carbon: pickle.
    Pickle,
    /// Graphite 0.9: pickle, no tags, and usually no `pathExpression` in its answers.
    Old,
}

/// Graphite's own protocol: what a graphite-web asks the other nodes of its cluster.
#[derive(Clone, Copy, Debug)]
pub struct Graphite {
    dialect: Dialect,
    bulk: Bulk,
}

impl Graphite {
    /// Speaks this dialect.
    #[must_use]
    pub fn new(dialect: Dialect, bulk: Bulk) -> Self {
        Self { dialect, bulk }
    }

    fn format(self) -> &'static str {
        match self.dialect {
            Dialect::MsgPack => "msgpack",
            Dialect::Pickle | Dialect::Old => "pickle",
        }
    }
}

impl Protocol for Graphite {
    fn name(&self) -> &'static str {
        match self.dialect {
            Dialect::MsgPack => "graphite",
            Dialect::Pickle => "graphite-pickle",
            Dialect::Old => "graphite-0.9",
        }
    }

    fn render(&self, selectors: &[Selector], now: i64) -> Vec<WireRequest> {
        // Old Graphites answer a whole request with an error when it has a function that they do not know.
        let unknown =
            |s: &Selector| self.dialect == Dialect::Old && (s.pattern.is_tag_query() || s.pattern.is_event_query());
        one_request_a_range(selectors, unknown, &self.bulk, Some(GRAPHITE_PATTERNS), |range| {
            format!(
                "format={}&local=1&noCache=1&from={}&until={}&now={now}",
                self.format(),
                range.from(),
                range.until()
            )
        })
    }

    fn read_render(&self, asked: &[Selector], body: &[u8], limits: &Limits) -> Result<Vec<Vec<Series>>, CodecError> {
        let answer = match self.dialect {
            Dialect::MsgPack => msgpack::read_render(body, limits)?,
            Dialect::Pickle | Dialect::Old => pickle::read_render(body, limits)?,
        };
        distribute(asked, &answer)
    }

    fn find(&self, query: &FindQuery) -> WireRequest {
        let mut parameters = Serializer::new(format!("local=1&format={}", self.format()));
        parameters.append_pair("query", &query.pattern);
        if let Some(range) = query.range {
            parameters.append_pair("from", &range.from().to_string());
            parameters.append_pair("until", &range.until().to_string());
        }
        WireRequest::new("/metrics/find/", parameters.finish())
    }

    fn read_find(&self, body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError> {
        match self.dialect {
            Dialect::MsgPack => msgpack::read_find(body, limits),
            Dialect::Pickle | Dialect::Old => pickle::read_find(body, limits),
        }
    }

    fn may_answer_nothing(&self) -> bool {
        // A go-carbon does.
        self.dialect == Dialect::Pickle
    }

    fn has_tags(&self) -> bool {
        self.dialect != Dialect::Old
    }
}

/// `carbonapi_v2_pb`, which is go-carbon's `protobuf`: a request for each range, no `pathExpression`.
#[derive(Clone, Copy, Debug)]
pub struct CarbonapiV2 {
    /// What the backend takes.
    pub bulk: Bulk,
}

impl Protocol for CarbonapiV2 {
    fn name(&self) -> &'static str {
        "carbonapi_v2_pb"
    }

    fn render(&self, selectors: &[Selector], _now: i64) -> Vec<WireRequest> {
        one_request_a_range(
            selectors,
            |s| s.pattern.is_event_query(),
            &self.bulk,
            None,
            |range| format!("format=protobuf&from={}&until={}", range.from(), range.until()),
        )
    }

    fn read_render(&self, asked: &[Selector], body: &[u8], limits: &Limits) -> Result<Vec<Vec<Series>>, CodecError> {
        distribute(asked, &carbonapi::v2::read_render(body, limits)?)
    }

    fn find(&self, query: &FindQuery) -> WireRequest {
        let mut parameters = Serializer::new("format=protobuf".to_owned());
        parameters.append_pair("query", &query.pattern);
        WireRequest::new("/metrics/find/", parameters.finish())
    }

    fn read_find(&self, body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError> {
        carbonapi::v2::read_find(body, limits)
    }

    fn index(&self) -> WireRequest {
        WireRequest::new("/metrics/list/", "format=protobuf".to_owned())
    }

    fn read_index(&self, body: &[u8], limits: &Limits) -> Result<Vec<String>, CodecError> {
        carbonapi::read_list(body, limits)
    }
}

/// `carbonapi_v3_pb`: one request altogether, because each pattern in it has a range of its own.
#[derive(Clone, Copy, Debug)]
pub struct CarbonapiV3 {
    /// What the backend takes.
    pub bulk: Bulk,
}

impl CarbonapiV3 {
    fn request(path: &'static str, message: &impl Message, answers: Vec<usize>) -> WireRequest {
        let payload = Payload::Body { media_type: carbonapi::v3::MEDIA_TYPE, bytes: message.encode_to_vec() };
        WireRequest { path, segment: None, parameters: "format=carbonapi_v3_pb".to_owned(), payload, answers }
    }
}

impl Protocol for CarbonapiV3 {
    fn name(&self) -> &'static str {
        "carbonapi_v3_pb"
    }

    fn render(&self, selectors: &[Selector], _now: i64) -> Vec<WireRequest> {
        let (mut places, mut order) = (HashMap::<&Selector, Vec<usize>>::new(), Vec::new());
        for (index, selector) in selectors.iter().enumerate().filter(|(_, s)| !s.pattern.is_event_query()) {
            let places = places.entry(selector).or_default();
            if places.is_empty() {
                order.push(selector);
            }
            places.push(index);
        }
        order
            .chunks(self.bulk.patterns.unwrap_or(usize::MAX).max(1))
            .map(|chunk| {
                let answers = chunk.iter().flat_map(|s| places[s].iter().copied()).collect();
                Self::request("/render/", &carbonapi::v3::request(chunk.iter().copied()), answers)
            })
            .collect()
    }

    fn read_render(&self, asked: &[Selector], body: &[u8], limits: &Limits) -> Result<Vec<Vec<Series>>, CodecError> {
        distribute(asked, &carbonapi::v3::read_render(body, limits)?)
    }

    fn find(&self, query: &FindQuery) -> WireRequest {
        let (start_time, stop_time) = query.range.map_or((0, 0), |r| (r.from(), r.until()));
        let message = carbonapi::v3::MultiGlobRequest { metrics: vec![query.pattern.clone()], start_time, stop_time };
        Self::request("/metrics/find/", &message, Vec::new())
    }

    fn read_find(&self, body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError> {
        carbonapi::v3::read_find(body, limits)
    }

    fn index(&self) -> WireRequest {
        WireRequest::new("/metrics/list/", "format=carbonapi_v3_pb".to_owned())
    }

    fn read_index(&self, body: &[u8], limits: &Limits) -> Result<Vec<String>, CodecError> {
        carbonapi::read_list(body, limits)
    }
}

/// A request for each range, with all its patterns as `target` after the `head` of the parameters; more than one when
/// the backend does not take so many.
fn one_request_a_range(
    selectors: &[Selector],
    left_out: impl Fn(&Selector) -> bool,
    bulk: &Bulk,
    most: Option<usize>,
    head: impl Fn(TimeRange) -> String,
) -> Vec<WireRequest> {
    let most = bulk.patterns.or(most).unwrap_or(usize::MAX).max(1);
    let longest = if bulk.post { MAX_FORM } else { MAX_URL };
    let mut requests = Vec::new();
    for (range, patterns) in by_range(selectors, left_out) {
        let head = head(range);
        let (mut parameters, mut count, mut answers) = (head.clone(), 0, Vec::new());
        let mut send = |parameters, answers| {
            let mut request = WireRequest { answers, ..WireRequest::new("/render/", parameters) };
            if !bulk.post {
                request.payload = Payload::Url;
            }
            requests.push(request);
        };
        for (pattern, places) in patterns {
            let target: String = form_urlencoded::byte_serialize(pattern.as_bytes()).collect();
            if count > 0 && (count >= most || parameters.len() + target.len() + 8 > longest) {
                send(mem::replace(&mut parameters, head.clone()), mem::take(&mut answers));
                count = 0;
            }
            parameters.push_str("&target=");
            parameters.push_str(&target);
            answers.extend(places);
            count += 1;
        }
        send(parameters, answers);
    }
    requests
}

/// Distinct patterns, each with the places where it is asked for.
type Places<'a> = Vec<(&'a str, Vec<usize>)>;

/// The distinct ranges, each with its patterns, all in the order in which they are first asked for.
fn by_range(selectors: &[Selector], left_out: impl Fn(&Selector) -> bool) -> Vec<(TimeRange, Places<'_>)> {
    let mut ranges: Vec<(TimeRange, Places<'_>)> = Vec::new();
    let mut known_ranges = HashMap::new();
    let mut known = HashMap::new();
    for (place, selector) in selectors.iter().enumerate().filter(|(_, s)| !left_out(s)) {
        let range = *known_ranges.entry(selector.range).or_insert_with(|| {
            ranges.push((selector.range, Vec::new()));
            ranges.len() - 1
        });
        let patterns = &mut ranges[range].1;
        let pattern = *known.entry(selector).or_insert_with(|| {
            patterns.push((selector.pattern.as_str(), Vec::new()));
            patterns.len() - 1
        });
        patterns[pattern].1.push(place);
    }
    ranges
}

/// Gives the series of an answer to those who asked for them.
///
/// # Errors
/// An answer to several ranges that does not say which of them a series is for.
fn distribute(asked: &[Selector], answer: &[Answered]) -> Result<Vec<Vec<Series>>, CodecError> {
    let mut patterns: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, selector) in asked.iter().enumerate() {
        patterns.entry(selector.pattern.as_str()).or_default().push(place);
    }
    let mut given = Given::new(asked);

    // By the echo, where it is one of the patterns; a tag query may come back in another spelling.
    let mut echoes: HashMap<&str, Option<&Vec<usize>>> = HashMap::new();
    let (mut by_echo, mut by_name) = (Vec::new(), Vec::new());
    for (index, series) in answer.iter().enumerate() {
        let places = series.path_expression.as_deref().and_then(|echo| {
            *echoes.entry(echo).or_insert_with(|| {
                patterns.get(echo).or_else(|| TagQuery::respelt(echo).and_then(|call| patterns.get(call.as_str())))
            })
        });
        match places {
            Some(places) => {
                given.give(index, series, places)?;
                by_echo.push(index);
            }
            None => by_name.push(index),
        }
    }

    // The others by their names. A backend that knows no echo answers a series for each pattern it matches; that is
    // the same as once, because here all patterns are compared.
    let once = |indexes: &mut Vec<usize>| {
        let mut seen = HashSet::new();
        indexes.retain(|index| seen.insert((&*answer[*index].name, answer[*index].asked)));
    };
    once(&mut by_name);
    if !by_name.is_empty() {
        let names = NameIndex::new(patterns.iter().map(|(pattern, places)| (*pattern, places)));
        for index in by_name {
            for places in names.matching(&answer[index].name) {
                given.give(index, &answer[index], places)?;
            }
        }
    }

    // Some backends answer a series once although several patterns asked for it: a pattern that got nothing is also
    // compared with the names that were given to others.
    let empty = |places: &&Vec<usize>| places.iter().all(|p| given.series[*p].is_empty());
    let unanswered: Vec<(&str, &Vec<usize>)> =
        patterns.iter().filter(|(_, places)| empty(places)).map(|(pattern, places)| (*pattern, places)).collect();
    once(&mut by_echo);
    by_echo.retain(|index| given.range_is_sure(&answer[*index]));
    if !by_echo.is_empty() && !unanswered.is_empty() {
        let names = NameIndex::new(unanswered.into_iter());
        for index in by_echo {
            for places in names.matching(&answer[index].name) {
                given.give(index, &answer[index], places)?;
            }
        }
    }
    Ok(given.into_series(answer))
}

/// Who gets which series, as indexes into the answer.
struct Given<'a> {
    asked: &'a [Selector],
    ranges: HashSet<(i64, i64)>,
    series: Vec<Vec<usize>>,
}

impl<'a> Given<'a> {
    fn new(asked: &'a [Selector]) -> Self {
        let ranges = asked.iter().map(|s| (s.range.from(), s.range.until())).collect();
        Self { asked, ranges, series: vec![Vec::new(); asked.len()] }
    }

    /// The range that the backend says a series is for, if it is one that was asked.
    fn said(&self, series: &Answered) -> Option<(i64, i64)> {
        series.asked.filter(|range| self.ranges.contains(range))
    }

    fn range_is_sure(&self, series: &Answered) -> bool {
        self.ranges.len() == 1 || self.said(series).is_some()
    }

    /// Gives a series to those of `places` whose range it answers.
    fn give(&mut self, index: usize, series: &Answered, places: &[usize]) -> Result<(), CodecError> {
        let range = |place: usize| (self.asked[place].range.from(), self.asked[place].range.until());
        let said = self.said(series);
        if said.is_none() && places.windows(2).any(|w| range(w[0]) != range(w[1])) {
            return Err(CodecError::garbled("it does not say which range a series is for"));
        }
        for place in places {
            if said.is_none_or(|said| range(*place) == said) {
                self.series[*place].push(index);
            }
        }
        Ok(())
    }

    fn into_series(self, answer: &[Answered]) -> Vec<Vec<Series>> {
        // Names and tags are made once for each series, however many selectors have it.
        let mut made: HashMap<usize, Series> = HashMap::new();
        let mut each = Vec::with_capacity(self.series.len());
        for (selector, indexes) in self.asked.iter().zip(self.series) {
            let pattern: Arc<str> = selector.pattern.as_str().into();
            let mut names = HashSet::with_capacity(indexes.len());
            let mut all = Vec::with_capacity(indexes.len());
            for index in indexes {
                if names.insert(&*answer[index].name) {
                    let mut series = made.entry(index).or_insert_with(|| answer[index].series()).clone();
                    series.path_expression = pattern.clone();
                    all.push(series);
                }
            }
            each.push(all);
        }
        each
    }
}

/// Globs, each with the places where it is asked for.
type Globs<'a> = Vec<(Glob, &'a Vec<usize>)>;

/// Patterns, arranged so that a name is not compared with each of them.
struct NameIndex<'a> {
    /// Patterns without wildcards, and the text of all.
    literal: HashMap<String, Vec<&'a Vec<usize>>>,
    /// Globs of a fixed number of nodes, by that number and their first node if it is no wildcard.
    globs: HashMap<(usize, Option<String>), Globs<'a>>,
    /// Globs with `**`.
    deep: Globs<'a>,
    tags: Vec<(TagQuery, &'a Vec<usize>)>,
}

impl<'a> NameIndex<'a> {
    fn new<'p>(patterns: impl Iterator<Item = (&'p str, &'a Vec<usize>)>) -> Self {
        let mut index = Self { literal: HashMap::new(), globs: HashMap::new(), deep: Vec::new(), tags: Vec::new() };
        for (pattern, places) in patterns {
            if let Ok(query) = TagQuery::from_call(pattern)
                && pattern.starts_with("seriesByTag(")
            {
                index.tags.push((query, places));
                continue;
            }
            let glob = Glob::new(pattern).ok();
            let literal = glob.as_ref().and_then(Glob::literal);
            let other_spelling = literal.as_deref() != Some(pattern);
            // A name that is spelt like the pattern is always meant (one with brackets in it, say).
            index.literal.entry(pattern.to_owned()).or_default().push(places);
            match (glob, literal) {
                (Some(_), Some(literal)) if other_spelling => {
                    index.literal.entry(literal).or_default().push(places);
                }
                (Some(glob), None) => {
                    if glob.components().iter().any(|c| matches!(c, Component::Deep)) {
                        index.deep.push((glob, places));
                    } else {
                        let first = glob.components().first().and_then(Component::literal).map(str::to_owned);
                        index.globs.entry((glob.components().len(), first)).or_default().push((glob, places));
                    }
                }
                _ => {}
            }
        }
        index
    }

    /// Where the patterns that match this name were asked for; one that matches in two ways may come twice.
    fn matching(&self, name: &str) -> Vec<&'a [usize]> {
        let mut found: Vec<&'a [usize]> = Vec::new();
        let mut add = |places: &'a Vec<usize>| found.push(places);
        self.literal.get(name).into_iter().flatten().copied().for_each(&mut add);
        if !self.globs.is_empty() || !self.deep.is_empty() {
            let nodes: Vec<&str> = name.split('.').collect();
            let first = nodes.first().map(|n| (*n).to_owned());
            let same_first = self.globs.get(&(nodes.len(), first));
            let any_first = self.globs.get(&(nodes.len(), None));
            for (glob, places) in same_first.into_iter().chain(any_first).flatten().chain(&self.deep) {
                if glob.matches_nodes(&nodes) {
                    add(places);
                }
            }
        }
        if !self.tags.is_empty() {
            let tags = Tags::of_name(name);
            for (query, places) in &self.tags {
                if query.matches(&tags) {
                    add(places);
                }
            }
        }
        found
    }
}
