//! Backends: what a storage has to offer, said once for all protocols and embedded stores.
//!
//! A backend knows series, patterns and ranges; it knows nothing of functions or targets. Finding and tags are traits
//! of their own, so that a store without them does not stub them. Everything here is asked for by the federation.

pub mod carbonapi;
mod measure;
pub mod msgpack;
pub mod pickle;
pub mod protocol;
mod tag_api;
pub mod transport;
pub mod wire;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

pub use self::measure::{Durations, Histogram};
use crate::series::{Selector, Series, TimeRange};

/// Name of a backend in metrics, logs, errors and cache keys: its group and URL or path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackendId(Arc<str>);

impl BackendId {
    /// From its text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What all backend calls of one client request share.
#[derive(Clone, Debug)]
pub struct Scope {
    /// When the client's request must be answered; no call waits longer.
    pub deadline: Instant,
    /// The request's one clock reading, seconds since the epoch; backends that take `now` are sent it.
    pub now: i64,
    /// Headers of the client that are passed on (already allow-listed).
    pub headers: Arc<[(String, String)]>,
    /// Logged by both sides as `X-Request-Id`.
    pub request_id: Arc<str>,
}

impl Scope {
    /// Time left until the deadline.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// The answer to one selector. Empty is "asked, and there is nothing".
pub type Answer = Result<Vec<Series>, BackendError>;

/// A storage that answers series.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Its name.
    fn id(&self) -> &BackendId;

    /// Asks for all `selectors` at once: one answer for each, in the same order. Requests on the wire are as few as
    /// the protocol allows: one for each distinct range, or one altogether. An answer holds each series once, its
    /// `path_expression` is the selector's pattern; series nobody asked for are dropped here.
    async fn fetch(&self, selectors: &[Selector], scope: &Scope) -> Vec<Answer>;

    /// Finding by pattern, when the store has it.
    fn finder(&self) -> Option<&dyn Finder> {
        None
    }

    /// Tags, when the store has them.
    fn tags(&self) -> Option<&dyn TagSource> {
        None
    }

    /// Changing the tag index, when the store lets clients do that.
    fn tag_editor(&self) -> Option<&dyn TagEditor> {
        None
    }

    /// What is asked over HTTP, if this is or has that: for telemetry.
    fn http(&self) -> Option<&transport::HttpBackend> {
        None
    }
}

/// What is looked for in the tree of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FindQuery {
    /// A glob, as the client wrote it.
    pub pattern: String,
    /// Only nodes that may have points in this range, where the store can tell.
    pub range: Option<TimeRange>,
    /// Only leaves.
    pub leaves_only: bool,
}

/// One node of the tree of names. A name that is both a branch and a leaf comes as two nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FoundNode {
    /// The full dotted path.
    pub path: String,
    /// Whether this is a series; else it is a branch.
    pub leaf: bool,
    /// First and last second that a leaf may have points for, when the store says so. What `intervals` of
    /// `/metrics/find` shows; no node is left out because of it.
    pub interval: Option<(i64, i64)>,
}

impl FoundNode {
    /// A series, of unknown interval.
    pub fn leaf(path: impl Into<String>) -> Self {
        Self { path: path.into(), leaf: true, interval: None }
    }

    /// A node that has others below it.
    pub fn branch(path: impl Into<String>) -> Self {
        Self { path: path.into(), leaf: false, interval: None }
    }

    /// The same node with a known interval.
    #[must_use]
    pub fn within(self, first: i64, last: i64) -> Self {
        Self { interval: Some((first, last)), ..self }
    }
}

/// Finding by pattern.
#[async_trait]
pub trait Finder: Send + Sync {
    /// The nodes that match, sorted by path (a branch before the leaf of the same path), each once.
    ///
    /// # Errors
    /// The store could not be asked, or did not understand.
    async fn find(&self, query: &FindQuery, scope: &Scope) -> Result<Vec<FoundNode>, BackendError>;

    /// Names of all series (`/metrics/index.json`), sorted.
    ///
    /// # Errors
    /// As [`Finder::find`].
    async fn index(&self, scope: &Scope) -> Result<Vec<String>, BackendError>;
}

/// What all tag look-ups can be narrowed by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TagLimits {
    /// `tagPrefix` or `valuePrefix` of the completions.
    pub prefix: Option<String>,
    /// `filter` of the listings: a regular expression, anchored at the start.
    pub filter: Option<String>,
    /// The most entries wanted.
    pub limit: Option<usize>,
}

/// Tags of series.
#[async_trait]
pub trait TagSource: Send + Sync {
    /// All tag names, sorted.
    ///
    /// # Errors
    /// As for all methods here: the store could not be asked, or did not understand.
    async fn list(&self, limits: &TagLimits, scope: &Scope) -> Result<Vec<String>, BackendError>;

    /// The values of one tag with the number of series that have each, sorted; `None` when there is no such tag.
    async fn values(
        &self,
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Option<Vec<(String, u64)>>, BackendError>;

    /// Names of the series that satisfy all expressions (`tag=value`, `tag=~regex`…), sorted.
    async fn find_series(&self, expressions: &[String], scope: &Scope) -> Result<Vec<String>, BackendError>;

    /// Tag names that series satisfying `expressions` have, besides those that the expressions name; sorted.
    async fn complete_tags(
        &self,
        expressions: &[String],
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError>;

    /// Values of `tag` that series satisfying `expressions` have; sorted.
    async fn complete_values(
        &self,
        expressions: &[String],
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError>;
}

/// Changing which series a tag index knows (`/tags/tagSeries`, `/tags/delSeries`), as carbon does.
#[async_trait]
pub trait TagEditor: Send + Sync {
    /// Adds a series by its name, `name;k=v` or `name{k="v"}`, and answers its canonical name.
    ///
    /// # Errors
    /// [`BackendError::BadQuery`] for a name whose tags cannot be read; or the index cannot be written.
    async fn tag_series(&self, name: &str, scope: &Scope) -> Result<String, BackendError>;

    /// Deletes a series by its name. That there is none is no error. Points stay where they are.
    ///
    /// # Errors
    /// As [`TagEditor::tag_series`].
    async fn del_series(&self, name: &str, scope: &Scope) -> Result<(), BackendError>;
}

/// What was found by a backend that answered in part, of the type that its answer would have had.
#[derive(Clone)]
pub struct Part(Arc<dyn Any + Send + Sync>);

impl Part {
    /// This.
    pub fn new<T: Send + Sync + 'static>(found: T) -> Self {
        Self(Arc::new(found))
    }

    /// It, when it is of this type.
    #[must_use]
    pub fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.0.downcast_ref::<T>().cloned()
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Part")
    }
}

/// Errors are the same when they say the same; what came with them does not count.
impl PartialEq for Part {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Part {}

/// Why a backend did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// No answer before the deadline or the backend's own timeout.
    #[error("{backend} did not answer in time")]
    Timeout {
        /// Who.
        backend: BackendId,
    },
    /// No connection, or it broke.
    #[error("{backend} is not reachable: {reason}")]
    Unreachable {
        /// Who.
        backend: BackendId,
        /// What the network said.
        reason: String,
    },
    /// Not asked, because it failed repeatedly a moment ago.
    #[error("{backend} is resting after repeated failures")]
    Resting {
        /// Who.
        backend: BackendId,
    },
    /// It answered with an error.
    #[error("{backend} refused the request: {reason}")]
    Refused {
        /// Who.
        backend: BackendId,
        /// Its status and first line, cut.
        reason: String,
    },
    /// The question itself is wrong (a tag expression, a regular expression): every store would refuse it.
    #[error("{reason}")]
    BadQuery {
        /// Who said so.
        backend: BackendId,
        /// What is wrong with the question.
        reason: String,
    },
    /// Its answer cannot be read.
    #[error("{backend} sent an answer that cannot be read: {reason}")]
    Garbled {
        /// Who.
        backend: BackendId,
        /// What is wrong with it.
        reason: String,
    },
    /// It answered, but says that some of its own backends did not: what it sent is a part of what there is. A failure
    /// like others, so that no cache keeps it and a replica is asked instead; what was found is for where there is none.
    #[error("{backend} answered in part: {reason}")]
    Partial {
        /// Who.
        backend: BackendId,
        /// What it says of those that failed.
        reason: String,
        /// What it found.
        found: Part,
    },
    /// Its answer is larger than this server takes.
    #[error("{backend} sent more than {limit} {unit}")]
    TooLarge {
        /// Who.
        backend: BackendId,
        /// The limit.
        limit: u64,
        /// What is counted: bytes, series or points.
        unit: &'static str,
    },
}

impl BackendError {
    /// Who failed.
    pub fn backend(&self) -> &BackendId {
        match self {
            Self::Timeout { backend }
            | Self::Unreachable { backend, .. }
            | Self::Resting { backend }
            | Self::Refused { backend, .. }
            | Self::BadQuery { backend, .. }
            | Self::Garbled { backend, .. }
            | Self::Partial { backend, .. }
            | Self::TooLarge { backend, .. } => backend,
        }
    }
}
