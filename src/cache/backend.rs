//! Caches around a backend: series, and look-ups of names and tags.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use super::tier::{Bounds, CacheStats, Tier, Weigh};
use crate::backend::transport::HttpBackend;
use crate::backend::{
    Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Scope, TagEditor, TagLimits, TagSource,
};
use crate::fetch::bytes_of;
use crate::series::{Selector, Series};

/// Headers that tell where a question came from; no backend answers differently because of them.
const WITHOUT_EFFECT: &[&str] = &[
    "accept",
    "accept-encoding",
    "user-agent",
    "x-dashboard-id",
    "x-dashboard-uid",
    "x-panel-id",
    "x-panel-plugin-id",
    "x-query-group-id",
    "x-request-id",
];

/// Whom and for whom a question is: what is a part of every key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Who {
    backend: BackendId,
    /// The client's headers that are passed on: the answer may depend on who asks.
    headers: Arc<[(String, String)]>,
    /// Grows when the backend's tags are edited, so that what was kept before is never found again.
    edition: u64,
}

impl Who {
    fn bytes(&self) -> u64 {
        (self.backend.as_str().len() + self.headers.iter().map(|(n, v)| n.len() + v.len() + 48).sum::<usize>()) as u64
    }
}

/// What a fetch is: whom, which selector, and what else is sent that changes the answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FetchKey {
    who: Who,
    selector: Selector,
}

/// What an entry costs besides its text and points.
const FIXED: u64 = 200;

impl Weigh for FetchKey {
    fn bytes(&self) -> u64 {
        FIXED + self.who.bytes() + self.selector.pattern.as_str().len() as u64
    }
}

impl Weigh for Arc<[Series]> {
    fn bytes(&self) -> u64 {
        self.iter().map(bytes_of).sum()
    }
}

/// The series of all backends. Owned by the application, shared by its [`CachedBackend`]s.
pub struct SeriesCache(Tier<FetchKey, Arc<[Series]>>);

impl SeriesCache {
    /// An empty one.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self(Tier::new(bounds))
    }

    /// What it did, counted in selectors.
    #[must_use]
    pub fn stats(&self) -> &CacheStats {
        &self.0.stats
    }

    /// Bytes and entries that it has now.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        self.0.size()
    }
}

/// A look-up with everything that changes its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LookupKind {
    Find(FindQuery),
    Index,
    Tags(TagLimits),
    Values(String, TagLimits),
    FindSeries(Vec<String>),
    CompleteTags(Vec<String>, TagLimits),
    CompleteValues(Vec<String>, String, TagLimits),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LookupKey {
    who: Who,
    kind: Arc<LookupKind>,
}

impl Weigh for LookupKey {
    fn bytes(&self) -> u64 {
        let list = |texts: &[String]| texts.iter().map(|t| t.len() + 24).sum::<usize>();
        let limits = |limits: &TagLimits| {
            limits.prefix.as_ref().map_or(0, String::len) + limits.filter.as_ref().map_or(0, String::len)
        };
        let own = match &*self.kind {
            LookupKind::Find(query) => query.pattern.len(),
            LookupKind::Index => 0,
            LookupKind::Tags(l) => limits(l),
            LookupKind::Values(tag, l) => tag.len() + limits(l),
            LookupKind::FindSeries(expressions) => list(expressions),
            LookupKind::CompleteTags(expressions, l) => list(expressions) + limits(l),
            LookupKind::CompleteValues(expressions, tag, l) => list(expressions) + tag.len() + limits(l),
        };
        FIXED + self.who.bytes() + own as u64
    }
}

/// What a look-up found. Its variant follows from the kind of the look-up.
#[derive(Clone, Debug)]
enum Listing {
    Nodes(Arc<[FoundNode]>),
    Names(Arc<[String]>),
    Values(Option<Arc<[(String, u64)]>>),
}

impl Weigh for Listing {
    fn bytes(&self) -> u64 {
        let text = |text: &String| text.len() + 24;
        let bytes: usize = match self {
            Self::Nodes(nodes) => nodes.iter().map(|n| text(&n.path) + 40).sum(),
            Self::Names(names) => names.iter().map(text).sum(),
            Self::Values(values) => values.iter().flat_map(|v| v.iter()).map(|(value, _)| text(value) + 8).sum(),
        };
        bytes as u64
    }
}

/// Look-ups of names and tags in all backends. Owned by the application, shared by its [`CachedBackend`]s.
pub struct LookupCache(Tier<LookupKey, Listing>);

impl LookupCache {
    /// An empty one.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self(Tier::new(bounds))
    }

    /// What it did.
    #[must_use]
    pub fn stats(&self) -> &CacheStats {
        &self.0.stats
    }

    /// Bytes and entries that it has now.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        self.0.size()
    }
}

/// A backend with caches around it. A batch asks the backend once, for all selectors that are not cached; errors
/// never enter.
pub struct CachedBackend {
    inner: Arc<dyn Backend>,
    series: Arc<SeriesCache>,
    lookups: Arc<LookupCache>,
    edition: AtomicU64,
}

impl CachedBackend {
    /// Puts caches around a backend. Its name is a part of every key, so no other backend may have the same.
    pub fn new(inner: Arc<dyn Backend>, series: Arc<SeriesCache>, lookups: Arc<LookupCache>) -> Self {
        Self { inner, series, lookups, edition: AtomicU64::new(0) }
    }

    fn who(&self, scope: &Scope) -> Who {
        let matters =
            |name: &str| !WITHOUT_EFFECT.iter().any(|without_effect| name.eq_ignore_ascii_case(without_effect));
        let mut headers: Vec<(String, String)> = scope
            .headers
            .iter()
            .filter(|(name, _)| matters(name))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect();
        headers.sort();
        Who { backend: self.inner.id().clone(), headers: headers.into(), edition: self.edition.load(Ordering::Acquire) }
    }

    /// Looks up one thing; `ask` asks the backend.
    async fn look_up<F>(
        &self,
        kind: LookupKind,
        scope: &Scope,
        ask: impl Fn() -> F + Sync,
    ) -> Result<Listing, BackendError>
    where
        F: Future<Output = Result<Listing, BackendError>> + Send,
    {
        let key = LookupKey { who: self.who(scope), kind: Arc::new(kind) };
        let ask = |_| {
            let asked = ask();
            async move { vec![asked.await] }
        };
        let mut found = self.lookups.0.get(&[key], self.inner.id(), scope, ask).await;
        found.pop().expect("one key has one answer")
    }

    async fn names<F>(
        &self,
        kind: LookupKind,
        scope: &Scope,
        ask: impl Fn() -> F + Sync,
    ) -> Result<Vec<String>, BackendError>
    where
        F: Future<Output = Result<Vec<String>, BackendError>> + Send,
    {
        let ask = || {
            let asked = ask();
            async move { asked.await.map(|names| Listing::Names(names.into())) }
        };
        match self.look_up(kind, scope, ask).await? {
            Listing::Names(names) => Ok(names.to_vec()),
            other => unreachable!("a look-up of names keeps names, not {other:?}"),
        }
    }

    /// The tags of a backend that was asked for tags because it has them.
    fn tag_source(&self) -> &dyn TagSource {
        self.inner.tags().expect("a cached backend offers tags only when its backend does")
    }

    fn inner_finder(&self) -> &dyn Finder {
        self.inner.finder().expect("a cached backend offers finding only when its backend does")
    }

    fn editor(&self) -> &dyn TagEditor {
        self.inner.tag_editor().expect("a cached backend offers editing only when its backend does")
    }
}

#[async_trait]
impl Backend for CachedBackend {
    fn id(&self) -> &BackendId {
        self.inner.id()
    }

    async fn fetch(&self, selectors: &[Selector], scope: &Scope) -> Vec<Answer> {
        if !self.series.0.is_on() {
            return self.inner.fetch(selectors, scope).await;
        }
        let who = self.who(scope);
        let keys: Vec<FetchKey> =
            selectors.iter().map(|s| FetchKey { who: who.clone(), selector: s.clone() }).collect();
        let ask = |positions: Vec<usize>| {
            let missing: Vec<Selector> = positions.into_iter().map(|at| selectors[at].clone()).collect();
            async move {
                let answers = self.inner.fetch(&missing, scope).await;
                answers.into_iter().map(|answer| answer.map(Arc::<[Series]>::from)).collect()
            }
        };
        let answers = self.series.0.get(&keys, self.inner.id(), scope, ask).await;
        answers.into_iter().map(|answer| answer.map(|series| series.to_vec())).collect()
    }

    fn finder(&self) -> Option<&dyn Finder> {
        self.inner.finder().map(|_| self as &dyn Finder)
    }

    fn tags(&self) -> Option<&dyn TagSource> {
        self.inner.tags().map(|_| self as &dyn TagSource)
    }

    fn http(&self) -> Option<&HttpBackend> {
        self.inner.http()
    }

    fn tag_editor(&self) -> Option<&dyn TagEditor> {
        self.inner.tag_editor().map(|_| self as &dyn TagEditor)
    }
}

#[async_trait]
impl Finder for CachedBackend {
    /// A range is widened to whole lifetimes of the cache, for the key and for the backend alike: the ranges of
    /// clients move every second, and nodes that were there a moment ago do no harm.
    async fn find(&self, query: &FindQuery, scope: &Scope) -> Result<Vec<FoundNode>, BackendError> {
        let query = FindQuery { range: query.range.map(|r| self.lookups.0.widened(r)), ..query.clone() };
        let ask = || async {
            let found = self.inner_finder().find(&query, scope).await;
            found.map(|nodes| Listing::Nodes(nodes.into()))
        };
        match self.look_up(LookupKind::Find(query.clone()), scope, ask).await? {
            Listing::Nodes(nodes) => Ok(nodes.to_vec()),
            other => unreachable!("a look-up of nodes keeps nodes, not {other:?}"),
        }
    }

    async fn index(&self, scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.names(LookupKind::Index, scope, || self.inner_finder().index(scope)).await
    }
}

#[async_trait]
impl TagSource for CachedBackend {
    async fn list(&self, limits: &TagLimits, scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.names(LookupKind::Tags(limits.clone()), scope, || self.tag_source().list(limits, scope)).await
    }

    async fn values(
        &self,
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Option<Vec<(String, u64)>>, BackendError> {
        let ask = || async {
            let found = self.tag_source().values(tag, limits, scope).await;
            found.map(|values| Listing::Values(values.map(Arc::from)))
        };
        match self.look_up(LookupKind::Values(tag.to_owned(), limits.clone()), scope, ask).await? {
            Listing::Values(values) => Ok(values.map(|values| values.to_vec())),
            other => unreachable!("a look-up of values keeps values, not {other:?}"),
        }
    }

    async fn find_series(&self, expressions: &[String], scope: &Scope) -> Result<Vec<String>, BackendError> {
        let kind = LookupKind::FindSeries(expressions.to_vec());
        self.names(kind, scope, || self.tag_source().find_series(expressions, scope)).await
    }

    async fn complete_tags(
        &self,
        expressions: &[String],
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        let kind = LookupKind::CompleteTags(expressions.to_vec(), limits.clone());
        self.names(kind, scope, || self.tag_source().complete_tags(expressions, limits, scope)).await
    }

    async fn complete_values(
        &self,
        expressions: &[String],
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        let kind = LookupKind::CompleteValues(expressions.to_vec(), tag.to_owned(), limits.clone());
        self.names(kind, scope, || self.tag_source().complete_values(expressions, tag, limits, scope)).await
    }
}

/// Begins a new edition when it is dropped: an edit whose caller has gone away may have been made all the same.
struct Edited<'a>(&'a AtomicU64);

impl Drop for Edited<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Edits go through, and what was cached of the backend before is not found any more.
#[async_trait]
impl TagEditor for CachedBackend {
    async fn tag_series(&self, name: &str, scope: &Scope) -> Result<String, BackendError> {
        let _edited = Edited(&self.edition);
        self.editor().tag_series(name, scope).await
    }

    async fn del_series(&self, name: &str, scope: &Scope) -> Result<(), BackendError> {
        let _edited = Edited(&self.edition);
        self.editor().del_series(name, scope).await
    }
}
