//! Series that are held in memory: for tests, benches and trying things out.
//!
//! Answers as Graphite's finder does over files: points are rounded to the step and absent outside the data. It knows
//! no retention and no now, so it clamps no range. It remembers what it was asked and can be made to fail or to wait.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::names::{self, Branch};
use super::tag_index::{TagIndex, TagIndexError};
use crate::backend::{
    Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Scope, TagEditor, TagLimits, TagSource,
};
use crate::series::{Glob, Selector, Series, TagQuery, TimeRange};

type Delay = dyn Fn(&[Selector]) -> Duration + Send + Sync;
type Failure = dyn Fn(&Selector) -> Option<BackendError> + Send + Sync;

/// Named series with fixed points.
pub struct MemoryStore {
    id: BackendId,
    series: HashMap<Arc<str>, Series>,
    tree: Branch,
    tags: TagIndex,
    fetches: Mutex<Vec<Vec<Selector>>>,
    finds: Mutex<Vec<FindQuery>>,
    delay: Option<Box<Delay>>,
    failure: Option<Box<Failure>>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("id", &self.id).field("series", &self.series.len()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// A store of these series; of several with one name the last counts. Starts should be multiples of the step, as
    /// they are in every Graphite store: other points are never found.
    pub fn new(id: BackendId, series: impl IntoIterator<Item = Series>) -> Self {
        let series: HashMap<Arc<str>, Series> = series.into_iter().map(|s| (s.name.clone(), s)).collect();
        let places: Vec<String> = series.keys().map(|name| place(name)).collect();
        let tags = TagIndex::new();
        tags.refresh(series.keys().filter(|name| names::is_tagged(name)))
            .expect("an index without a database can always be refreshed");
        Self {
            id,
            tree: Branch::from_names(places.iter().map(String::as_str)),
            series: series
                .into_iter()
                .flat_map(|(name, series)| {
                    // A tagged series is also found in the tree, by the name of its place.
                    let place: Arc<str> = place(&name).into();
                    let second = (place != name).then(|| {
                        (place.clone(), Series::new(place, series.start(), series.step(), series.values().to_vec()))
                    });
                    [Some((name, series)), second].into_iter().flatten()
                })
                .collect(),
            tags,
            fetches: Mutex::default(),
            finds: Mutex::default(),
            delay: None,
            failure: None,
        }
    }

    /// The same store, waiting before each answer to a fetch as long as `delay` says of its selectors.
    #[must_use]
    pub fn delayed_by(mut self, delay: impl Fn(&[Selector]) -> Duration + Send + Sync + 'static) -> Self {
        self.delay = Some(Box::new(delay));
        self
    }

    /// The same store, failing for each selector of which `failure` answers an error.
    #[must_use]
    pub fn failing_with(mut self, failure: impl Fn(&Selector) -> Option<BackendError> + Send + Sync + 'static) -> Self {
        self.failure = Some(Box::new(failure));
        self
    }

    /// The fetches so far, each with its selectors.
    #[must_use]
    pub fn fetches(&self) -> Vec<Vec<Selector>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The finds so far.
    #[must_use]
    pub fn finds(&self) -> Vec<FindQuery> {
        self.finds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the fetches and finds so far.
    pub fn forget_calls(&self) {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.finds.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Its tags.
    #[must_use]
    pub fn tag_index(&self) -> &TagIndex {
        &self.tags
    }

    fn answer(&self, selector: &Selector) -> Answer {
        if let Some(error) = self.failure.as_ref().and_then(|failure| failure(selector)) {
            return Err(error);
        }
        let pattern = selector.pattern.as_str();
        let names: BTreeSet<Arc<str>> = if selector.pattern.is_tag_query() {
            let query = TagQuery::from_call(pattern).map_err(|e| bad_query(&self.id, &e))?;
            self.tags.matching(&query).into_iter().collect()
        } else if selector.pattern.is_event_query() {
            BTreeSet::new()
        } else {
            self.names(pattern)
        };
        let path_expression: Arc<str> = pattern.into();
        let found = names.iter().filter_map(|name| self.series.get(name));
        Ok(found.map(|series| cut(series, selector.range, path_expression.clone())).collect())
    }

    /// Names of the series that a glob, or the exact name of a tagged series, asks for.
    fn names(&self, pattern: &str) -> BTreeSet<Arc<str>> {
        if names::is_tagged(pattern) {
            return self.series.get_key_value(pattern).map(|(name, _)| name.clone()).into_iter().collect();
        }
        let mut names = BTreeSet::new();
        // A pattern that is not one (an open brace) finds nothing, as in Graphite.
        if let Ok(glob) = Glob::new(pattern) {
            self.tree.find(&glob, &mut |path, leaf| {
                if leaf && let Some((name, _)) = self.series.get_key_value(path) {
                    names.insert(name.clone());
                }
                true
            });
        }
        names
    }
}

/// The name under which a series is in the tree.
fn place(name: &str) -> String {
    if names::is_tagged(name) { names::tagged_node(name) } else { name.to_owned() }
}

/// The points of a series in a range, rounded as Graphite does.
fn cut(series: &Series, range: TimeRange, path_expression: Arc<str>) -> Series {
    let step = series.step();
    let (start, end) = range.aligned(step);
    let values = series.values();
    let values = (start..end)
        .step_by(step.seconds() as usize)
        .map(|time| {
            let after = time - series.start();
            if after % step.seconds() != 0 {
                return f64::NAN;
            }
            usize::try_from(after / step.seconds()).ok().and_then(|i| values.get(i)).copied().unwrap_or(f64::NAN)
        })
        .collect();
    let mut cut = Series::with_tags(series.name.clone(), series.tags.clone(), start, step, values);
    cut.path_expression = path_expression;
    cut
}

/// A change of the tag index that was refused or failed.
pub(super) fn not_changed(id: &BackendId, error: &TagIndexError) -> BackendError {
    match error {
        TagIndexError::Name(error) => bad_query(id, error),
        TagIndexError::Database(_) => BackendError::Unreachable { backend: id.clone(), reason: error.to_string() },
    }
}

/// A question that the client got wrong.
pub(super) fn bad_query(id: &BackendId, error: &impl std::error::Error) -> BackendError {
    BackendError::BadQuery { backend: id.clone(), reason: error.to_string() }
}

#[async_trait]
impl Backend for MemoryStore {
    fn id(&self) -> &BackendId {
        &self.id
    }

    async fn fetch(&self, selectors: &[Selector], scope: &Scope) -> Vec<Answer> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner).push(selectors.to_vec());
        if let Some(delay) = &self.delay {
            let until = tokio::time::Instant::now() + delay(selectors);
            tokio::time::sleep_until(until.min(scope.deadline)).await;
            if until > scope.deadline {
                return selectors.iter().map(|_| Err(BackendError::Timeout { backend: self.id.clone() })).collect();
            }
        }
        selectors.iter().map(|selector| self.answer(selector)).collect()
    }

    fn finder(&self) -> Option<&dyn Finder> {
        Some(self)
    }

    fn tags(&self) -> Option<&dyn TagSource> {
        Some(self)
    }

    fn tag_editor(&self) -> Option<&dyn TagEditor> {
        Some(self)
    }
}

#[async_trait]
impl Finder for MemoryStore {
    async fn find(&self, query: &FindQuery, _scope: &Scope) -> Result<Vec<FoundNode>, BackendError> {
        self.finds.lock().unwrap_or_else(PoisonError::into_inner).push(query.clone());
        let leaf = |path: &str| {
            let node = FoundNode::leaf(path);
            match self.series.get(path) {
                Some(s) if !s.is_empty() => node.within(s.start(), s.time(s.len() - 1)),
                _ => node,
            }
        };
        if names::is_tagged(&query.pattern) {
            return Ok(self.names(&query.pattern).iter().map(|name| leaf(name)).collect());
        }
        let mut found = BTreeSet::new();
        if let Ok(glob) = Glob::new(&query.pattern) {
            self.tree.find(&glob, &mut |path, is_leaf| {
                if is_leaf {
                    found.insert(leaf(path));
                } else if !query.leaves_only {
                    found.insert(FoundNode::branch(path));
                }
                true
            });
        }
        Ok(found.into_iter().collect())
    }

    async fn index(&self, _scope: &Scope) -> Result<Vec<String>, BackendError> {
        let mut names = Vec::new();
        self.tree.each_leaf(&mut |name| {
            names.push(name.to_owned());
            true
        });
        names.sort_unstable();
        Ok(names)
    }
}

#[async_trait]
impl TagEditor for MemoryStore {
    async fn tag_series(&self, name: &str, _scope: &Scope) -> Result<String, BackendError> {
        self.tags.tag_series(name).map_err(|e| not_changed(&self.id, &e))
    }

    async fn del_series(&self, name: &str, _scope: &Scope) -> Result<(), BackendError> {
        self.tags.del_series(name).map_err(|e| not_changed(&self.id, &e))
    }
}

#[async_trait]
impl TagSource for MemoryStore {
    async fn list(&self, limits: &TagLimits, _scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.tags.list(limits).map_err(|e| bad_query(&self.id, &e))
    }

    async fn values(
        &self,
        tag: &str,
        limits: &TagLimits,
        _scope: &Scope,
    ) -> Result<Option<Vec<(String, u64)>>, BackendError> {
        self.tags.values(tag, limits).map_err(|e| bad_query(&self.id, &e))
    }

    async fn find_series(&self, expressions: &[String], _scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.tags.find_series(expressions).map_err(|e| bad_query(&self.id, &e))
    }

    async fn complete_tags(
        &self,
        expressions: &[String],
        limits: &TagLimits,
        _scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        self.tags.complete_tags(expressions, limits).map_err(|e| bad_query(&self.id, &e))
    }

    async fn complete_values(
        &self,
        expressions: &[String],
        tag: &str,
        limits: &TagLimits,
        _scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        self.tags.complete_values(expressions, tag, limits).map_err(|e| bad_query(&self.id, &e))
    }
}
