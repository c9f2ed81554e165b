//! A folder of whisper files as a backend.
//!
//! Names that are written out are looked for directly; patterns and tags are answered from an index of the folder, which
//! is made when first needed and again when it is old. All work on files is done off the event loop.
//!
//! One broken file does not hide a thousand good ones, but no answer looks whole without it: when files that a question
//! asks for cannot be read, or folders that may have some cannot be listed, its answer is [`BackendError::Partial`] and
//! the log names them. A fetch for which no file at all can be read fails. Invariant: nothing outside the folder is read.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::memory::{bad_query, not_changed};
use super::names::{self, Branch};
use super::tag_index::{TagIndex, TagIndexError};
use super::tree;
use super::whisper::{Points, WhisperError, WhisperFile};
use crate::backend::{
    Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Part, Scope, TagEditor, TagLimits,
    TagSource,
};
use crate::series::{Component, Glob, Selector, Series, TagQuery, TimeRange};

/// How a [`WhisperStore`] works.
#[derive(Clone, Debug)]
pub struct WhisperOptions {
    /// The age at which the index of names is made anew. A request that finds it older is answered from it and starts
    /// that; one that finds it ten times older waits.
    pub refresh: Duration,
    /// The most series in the index. When there are more, patterns and tags are answered with an error.
    pub max_series: usize,
    /// The most points in the answers to one fetch.
    pub max_points: u64,
    /// An SQLite file for what clients say about tags; without one it is forgotten at the end. Needed when carbon
    /// names the files of tagged series by their hash, which is its default.
    pub tag_database: Option<PathBuf>,
}

impl Default for WhisperOptions {
    fn default() -> Self {
        Self { refresh: Duration::from_secs(60), max_series: 5_000_000, max_points: 100_000_000, tag_database: None }
    }
}

/// A folder of whisper files.
#[derive(Clone, Debug)]
pub struct WhisperStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: BackendId,
    root: PathBuf,
    options: WhisperOptions,
    tags: TagIndex,
    index: RwLock<Option<Index>>,
    /// Held by the one scan that may run.
    scanning: Arc<tokio::sync::Mutex<()>>,
}

/// The names, as of some time.
#[derive(Clone, Debug)]
struct Index {
    tree: Arc<Branch>,
    made: Instant,
    cut: bool,
    /// Whether all folders could be listed that may have tagged series.
    all_tags: bool,
}

impl WhisperStore {
    /// A store of the files in `root`. The folder itself may appear later.
    ///
    /// # Errors
    /// The tag database cannot be used.
    pub fn open(id: BackendId, root: impl Into<PathBuf>, options: WhisperOptions) -> Result<Self, TagIndexError> {
        let tags = options.tag_database.as_deref().map_or_else(|| Ok(TagIndex::new()), TagIndex::open)?;
        let (index, scanning) = (RwLock::default(), Arc::default());
        Ok(Self { inner: Arc::new(Inner { id, root: root.into(), options, tags, index, scanning }) })
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// The index of names, fresh enough.
    async fn index(&self, deadline: Instant) -> Result<Index, BackendError> {
        let inner = &self.inner;
        let age = |index: &Index| Instant::now().saturating_duration_since(index.made);
        let known = inner.known();
        let index = match known {
            Some(index) if age(&index) < inner.options.refresh => index,
            Some(index) if age(&index) < inner.options.refresh * 10 => {
                if let Ok(turn) = inner.scanning.clone().try_lock_owned() {
                    self.scan(turn);
                }
                index
            }
            _ => {
                let timeout = || BackendError::Timeout { backend: inner.id.clone() };
                let turn = inner.scanning.clone().lock_owned();
                let turn = tokio::time::timeout_at(deadline, turn).await.map_err(|_| timeout())?;
                // Another request may have made it while this one waited for its turn.
                match inner.known().filter(|index| age(index) < inner.options.refresh) {
                    Some(index) => index,
                    None => {
                        let scan = tokio::time::timeout_at(deadline, self.scan(turn)).await.map_err(|_| timeout())?;
                        scan.unwrap_or_else(|e| Err(inner.broken(&io::Error::other(e))))?
                    }
                }
            }
        };
        if index.cut {
            let limit = inner.options.max_series as u64;
            return Err(BackendError::TooLarge { backend: inner.id.clone(), limit, unit: "series" });
        }
        Ok(index)
    }

    /// Scans the folder. It goes on when nobody waits for it any more.
    fn scan(&self, turn: tokio::sync::OwnedMutexGuard<()>) -> tokio::task::JoinHandle<Result<Index, BackendError>> {
        let inner = self.inner.clone();
        let made = Instant::now();
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            inner.scan(made).inspect_err(|error| tracing::warn!(backend = %inner.id, %error, "no new index of names"))
        })
    }

    /// Does work on files off the event loop. When the deadline passes, it is left to end by itself.
    async fn blocking<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Inner) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let inner = self.inner.clone();
        let work = tokio::task::spawn_blocking(move || work(&inner));
        match tokio::time::timeout_at(deadline, work).await {
            Ok(done) => done.unwrap_or_else(|e| Err(self.inner.broken(&io::Error::other(e)))),
            Err(_) => Err(BackendError::Timeout { backend: self.inner.id.clone() }),
        }
    }

    /// Asks the tag index, once the folder was scanned.
    async fn ask_tags<T: Send + Sync + 'static>(
        &self,
        scope: &Scope,
        question: impl FnOnce(&Inner) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let index = self.index(scope.deadline).await?;
        let found = self.blocking(scope.deadline, question).await?;
        self.inner.whole(found, index.all_tags)
    }
}

/// What a fetch has to read.
#[derive(Default)]
struct Plan {
    selectors: Vec<Result<Wanted, BackendError>>,
    reads: Vec<Read>,
}

/// What a selector asks for.
struct Wanted {
    /// Positions among the reads.
    reads: Vec<usize>,
    /// Whether there can be no others, in folders that could not be listed.
    all: bool,
}

struct Read {
    name: Arc<str>,
    /// Where it is, or why that is not known.
    file: Result<PathBuf, String>,
    range: TimeRange,
}

/// What reading one file gave; nothing when the file has nothing for the range.
type ReadResult = Result<Option<Series>, Unread>;

/// Why a file was not read.
#[derive(Debug)]
enum Unread {
    /// It cannot be; this names it.
    Broken(String),
    /// The fetch has come to its end, or to a limit.
    Stopped(BackendError),
}

const UNLISTED: &str = "folders could not be listed";

impl Inner {
    fn known(&self) -> Option<Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn broken(&self, error: &io::Error) -> BackendError {
        BackendError::Unreachable { backend: self.id.clone(), reason: format!("{}: {error}", self.root.display()) }
    }

    fn scan(&self, made: Instant) -> Result<Index, BackendError> {
        let before = self.known();
        let scan = tree::scan(&self.root, before.as_ref().map(|index| &index.tree), self.options.max_series)
            .map_err(|e| self.broken(&e))?;
        if scan.cut {
            tracing::error!(backend = %self.id, limit = self.options.max_series, "too many series for the index of names");
        }
        let changed = before.is_none_or(|index| !Arc::ptr_eq(&index.tree, &scan.tree));
        if changed {
            let mut tagged = Vec::new();
            if let Some(branch) = scan.tree.branch("_tagged") {
                branch.each_leaf(&mut |place| {
                    tagged.extend(names::tagged_name(&format!("_tagged.{place}")));
                    true
                });
            }
            self.tags.refresh(tagged).map_err(|e| not_changed(&self.id, &e))?;
        }
        tracing::debug!(backend = %self.id, series = scan.series, changed, "index of names made");
        let all_tags = !scan.tree.unknown && scan.tree.branch("_tagged").is_none_or(|branch| branch.all_known());
        let index = Index { tree: scan.tree, made, cut: scan.cut, all_tags };
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = Some(index.clone());
        Ok(index)
    }

    /// Finds the files of all selectors. `index` is what the patterns that need one are to use.
    fn plan(&self, selectors: &[Selector], index: Option<&Result<Index, BackendError>>) -> Result<Plan, BackendError> {
        let known = self.known();
        let known = known.as_ref().map(|index| &*index.tree);
        let mut finder = tree::Finder::new(&self.root, known).map_err(|e| self.broken(&e))?;
        let mut plan = Plan::default();
        let mut numbers: HashMap<(Arc<str>, TimeRange), Option<usize>> = HashMap::new();
        for selector in selectors {
            let names = self.names(selector, index);
            let wanted = names.map(|(names, all)| {
                let number = |name: Arc<str>| {
                    *numbers.entry((name.clone(), selector.range)).or_insert_with(|| {
                        let file = finder.file(&name).map_err(|error| format!("{name}: {error}")).transpose()?;
                        plan.reads.push(Read { name, file, range: selector.range });
                        Some(plan.reads.len() - 1)
                    })
                };
                Wanted { reads: names.into_iter().filter_map(number).collect(), all }
            });
            plan.selectors.push(wanted);
        }
        Ok(plan)
    }

    /// Names of the series that a selector asks for, as far as they are known without looking at files, and whether
    /// these can be all.
    fn names(
        &self,
        selector: &Selector,
        index: Option<&Result<Index, BackendError>>,
    ) -> Result<(BTreeSet<Arc<str>>, bool), BackendError> {
        let pattern = selector.pattern.as_str();
        if selector.pattern.is_event_query() {
            return Ok((BTreeSet::new(), true));
        }
        if !selector.pattern.is_tag_query()
            && let Some(Explicit { name, itself }) = explicit(pattern)
        {
            return Ok(((!itself).then(|| Arc::from(name)).into_iter().collect(), true));
        }
        let index = match index {
            Some(Ok(index)) => index,
            Some(Err(error)) => return Err(error.clone()),
            None => return Ok((BTreeSet::new(), true)),
        };
        if selector.pattern.is_tag_query() {
            let query = TagQuery::from_call(pattern).map_err(|e| bad_query(&self.id, &e))?;
            return Ok((self.tags.matching(&query).into_iter().collect(), index.all_tags));
        }
        let (mut names, mut all) = (BTreeSet::new(), true);
        // A pattern that is not one (an open brace) finds nothing, as in Graphite.
        if let Ok(glob) = Glob::new(pattern) {
            all = index.tree.find(&glob, &mut |path, leaf| {
                if leaf {
                    names.insert(Arc::from(path));
                }
                true
            });
        }
        Ok((names, all))
    }

    fn read(&self, read: &Read, now: i64, points: &AtomicU64) -> ReadResult {
        let limit = self.options.max_points;
        let too_large = || Unread::Stopped(BackendError::TooLarge { backend: self.id.clone(), limit, unit: "points" });
        if points.load(Ordering::Relaxed) > limit {
            return Err(too_large());
        }
        let file = read.file.as_deref().map_err(|error| Unread::Broken(error.clone()))?;
        let fetched = WhisperFile::open(file).and_then(|file| file.fetch(read.range, now));
        let found = match fetched {
            Ok(found) => found,
            // It was deleted since it was found.
            Err(WhisperError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            // Files begin like that, and one on a full disk stays so: no point was ever stored in it, so none is missed.
            // A file that has a part of its header or of its archives may have lost the rest. Carbon passes through that
            // state as well, for an instant: then an answer is marked that need not be, which does no harm.
            Err(WhisperError::Empty { .. }) => None,
            Err(error) => return Err(Unread::Broken(error.to_string())),
        };
        let Some(Points { start, step, values }) = found else { return Ok(None) };
        if points.fetch_add(values.len() as u64, Ordering::Relaxed) + values.len() as u64 > limit {
            return Err(too_large());
        }
        Ok(Some(Series::new(read.name.clone(), start, step, values)))
    }

    /// An answer to a question about names, which is whole when `all` folders are known that may have some.
    fn whole<T: Send + Sync + 'static>(&self, found: T, all: bool) -> Result<T, BackendError> {
        if all { Ok(found) } else { Err(self.partial(UNLISTED.to_owned(), found)) }
    }

    fn partial<T: Send + Sync + 'static>(&self, reason: String, found: T) -> BackendError {
        BackendError::Partial { backend: self.id.clone(), reason, found: Part::new(found) }
    }

    /// The error of a fetch for which files were to be read and none could be: nobody may take that for an answer.
    /// Names the broken files in the log.
    fn judge(&self, results: &[ReadResult]) -> Result<(), BackendError> {
        const SHOWN: usize = 8;
        let broken: Vec<&str> = results
            .iter()
            .filter_map(|result| match result {
                Err(Unread::Broken(error)) => Some(error.as_str()),
                _ => None,
            })
            .collect();
        let Some(first) = broken.first() else { return Ok(()) };
        let mut errors = broken[..broken.len().min(SHOWN)].join("; ");
        if broken.len() > SHOWN {
            errors.push_str("; and more");
        }
        tracing::warn!(backend = %self.id, count = broken.len(), %errors, "files could not be read");
        if broken.len() < results.len() {
            return Ok(());
        }
        Err(BackendError::Garbled { backend: self.id.clone(), reason: (*first).to_owned() })
    }

    /// Answers one selector from what was read for it.
    fn answer(&self, selector: &Selector, wanted: &Wanted, results: &[ReadResult]) -> Answer {
        let path_expression: Arc<str> = selector.pattern.as_str().into();
        let mut series = Vec::with_capacity(wanted.reads.len());
        let mut broken: Vec<&str> = Vec::new();
        for result in wanted.reads.iter().filter_map(|i| results.get(*i)) {
            match result {
                Ok(Some(found)) => {
                    let mut found = found.clone();
                    found.path_expression = path_expression.clone();
                    series.push(found);
                }
                Ok(None) => {}
                Err(Unread::Stopped(error)) => return Err(error.clone()),
                Err(Unread::Broken(error)) => broken.push(error),
            }
        }
        match broken.first() {
            Some(first) => {
                let (count, all) = (broken.len(), wanted.reads.len());
                Err(self.partial(format!("{count} of {all} files could not be read: {first}"), series))
            }
            None => self.whole(series, wanted.all),
        }
    }

    /// The nodes of a pattern without wildcards, looked up without the index.
    fn find_explicit(&self, explicit: &Explicit, leaves_only: bool) -> Result<Vec<FoundNode>, BackendError> {
        let Explicit { name, itself } = explicit;
        let known = self.known();
        let known = known.as_ref().map(|index| &*index.tree);
        let mut finder = tree::Finder::new(&self.root, known).map_err(|e| self.broken(&e))?;
        let mut found = Vec::new();
        let looked = |error: io::Error| BackendError::Unreachable {
            backend: self.id.clone(),
            reason: format!("{name}: {error}"),
        };
        if !leaves_only && (name.is_empty() || finder.is_branch(name).map_err(looked)?) {
            let dot = if *itself && !name.is_empty() { "." } else { "" };
            found.push(FoundNode::branch(format!("{name}{dot}")));
        }
        if !itself && finder.file(name).map_err(looked)?.is_some() {
            found.push(FoundNode::leaf(name));
        }
        Ok(found)
    }
}

/// What a pattern without wildcards asks for.
struct Explicit {
    name: String,
    /// The pattern ends with a dot: it asks for the branch alone.
    itself: bool,
}

/// The one name that a pattern can mean: that of a tagged series, or one without wildcards. Empty nodes stand for nothing.
fn explicit(pattern: &str) -> Option<Explicit> {
    if names::is_tagged(pattern) {
        return Some(Explicit { name: pattern.to_owned(), itself: false });
    }
    let glob = Glob::new(pattern).ok()?;
    let nodes: Option<Vec<&str>> = glob.components().iter().map(Component::literal).collect();
    let nodes = nodes?;
    let itself = nodes.last().is_none_or(|node| node.is_empty());
    Some(Explicit { name: nodes.into_iter().filter(|node| !node.is_empty()).collect::<Vec<_>>().join("."), itself })
}

fn needs_index(selector: &Selector) -> bool {
    !selector.pattern.is_event_query()
        && (selector.pattern.is_tag_query() || explicit(selector.pattern.as_str()).is_none())
}

/// Files that one task reads at least; fewer are not worth another task.
const READS_PER_TASK: usize = 64;

#[async_trait]
impl Backend for WhisperStore {
    fn id(&self) -> &BackendId {
        &self.inner.id
    }

    async fn fetch(&self, selectors: &[Selector], scope: &Scope) -> Vec<Answer> {
        let selectors: Arc<[Selector]> = selectors.into();
        let all_fail = |error: &BackendError| selectors.iter().map(|_| Err(error.clone())).collect();
        let deadline = scope.deadline;
        let index = if selectors.iter().any(needs_index) { Some(self.index(deadline).await) } else { None };
        let plan = {
            let selectors = selectors.clone();
            self.blocking(deadline, move |inner| inner.plan(&selectors, index.as_ref())).await
        };
        let Plan { selectors: planned, reads } = match plan {
            Ok(plan) => plan,
            Err(error) => return all_fail(&error),
        };

        let tasks =
            std::thread::available_parallelism().map_or(1, usize::from).min(reads.len() / READS_PER_TASK).max(1);
        let (reads, points, now): (Arc<[Read]>, _, _) = (reads.into(), Arc::new(AtomicU64::new(0)), scope.now);
        let share = reads.len().div_ceil(tasks);
        let tasks = (0..tasks).map(|task| {
            let (reads, points) = (reads.clone(), points.clone());
            self.blocking(deadline, move |inner| {
                let mine = reads.iter().skip(task * share).take(share);
                Ok(mine
                    .map(|read| {
                        // Nobody waits any more.
                        if Instant::now() >= deadline {
                            return Err(Unread::Stopped(BackendError::Timeout { backend: inner.id.clone() }));
                        }
                        inner.read(read, now, &points)
                    })
                    .collect::<Vec<ReadResult>>())
            })
        });
        let mut results = Vec::with_capacity(reads.len());
        for result in futures::future::join_all(tasks).await {
            match result {
                Ok(some) => results.extend(some),
                Err(error) => return all_fail(&error),
            }
        }
        if let Err(error) = self.inner.judge(&results) {
            return all_fail(&error);
        }
        let answers = selectors.iter().zip(planned);
        answers.map(|(selector, wanted)| self.inner.answer(selector, &wanted?, &results)).collect()
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
impl Finder for WhisperStore {
    /// The range narrows nothing down, as with one Graphite server; intervals are not told, as that would mean to open
    /// each file.
    async fn find(&self, query: &FindQuery, scope: &Scope) -> Result<Vec<FoundNode>, BackendError> {
        let query = query.clone();
        if let Some(explicit) = explicit(&query.pattern) {
            let find = move |inner: &Inner| inner.find_explicit(&explicit, query.leaves_only);
            return self.blocking(scope.deadline, find).await;
        }
        let Ok(glob) = Glob::new(&query.pattern) else { return Ok(Vec::new()) };
        let tree = self.index(scope.deadline).await?.tree;
        let find = move |inner: &Inner| {
            let mut found = Vec::new();
            let all = tree.find(&glob, &mut |path, leaf| {
                if leaf {
                    found.push(FoundNode::leaf(path));
                } else if !query.leaves_only {
                    found.push(FoundNode::branch(path));
                }
                true
            });
            found.sort_unstable();
            inner.whole(found, all)
        };
        self.blocking(scope.deadline, find).await
    }

    async fn index(&self, scope: &Scope) -> Result<Vec<String>, BackendError> {
        let tree = WhisperStore::index(self, scope.deadline).await?.tree;
        let list = move |inner: &Inner| {
            let mut names = Vec::new();
            tree.each_leaf(&mut |name| {
                names.push(name.to_owned());
                true
            });
            names.sort_unstable();
            inner.whole(names, tree.all_known())
        };
        self.blocking(scope.deadline, list).await
    }
}

#[async_trait]
impl TagEditor for WhisperStore {
    async fn tag_series(&self, name: &str, scope: &Scope) -> Result<String, BackendError> {
        let name = name.to_owned();
        let tag = move |inner: &Inner| inner.tags.tag_series(&name).map_err(|e| not_changed(&inner.id, &e));
        self.blocking(scope.deadline, tag).await
    }

    async fn del_series(&self, name: &str, scope: &Scope) -> Result<(), BackendError> {
        let name = name.to_owned();
        WhisperStore::index(self, scope.deadline).await?;
        let delete = move |inner: &Inner| inner.tags.del_series(&name).map_err(|e| not_changed(&inner.id, &e));
        self.blocking(scope.deadline, delete).await
    }
}

#[async_trait]
impl TagSource for WhisperStore {
    async fn list(&self, limits: &TagLimits, scope: &Scope) -> Result<Vec<String>, BackendError> {
        let limits = limits.clone();
        self.ask_tags(scope, move |inner| inner.tags.list(&limits).map_err(|e| bad_query(&inner.id, &e))).await
    }

    async fn values(
        &self,
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Option<Vec<(String, u64)>>, BackendError> {
        let (tag, limits) = (tag.to_owned(), limits.clone());
        self.ask_tags(scope, move |inner| inner.tags.values(&tag, &limits).map_err(|e| bad_query(&inner.id, &e))).await
    }

    async fn find_series(&self, expressions: &[String], scope: &Scope) -> Result<Vec<String>, BackendError> {
        let expressions = expressions.to_vec();
        self.ask_tags(scope, move |inner| inner.tags.find_series(&expressions).map_err(|e| bad_query(&inner.id, &e)))
            .await
    }

    async fn complete_tags(
        &self,
        expressions: &[String],
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        let (expressions, limits) = (expressions.to_vec(), limits.clone());
        self.ask_tags(scope, move |inner| {
            inner.tags.complete_tags(&expressions, &limits).map_err(|e| bad_query(&inner.id, &e))
        })
        .await
    }

    async fn complete_values(
        &self,
        expressions: &[String],
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        let (expressions, tag, limits) = (expressions.to_vec(), tag.to_owned(), limits.clone());
        self.ask_tags(scope, move |inner| {
            inner.tags.complete_values(&expressions, &tag, &limits).map_err(|e| bad_query(&inner.id, &e))
        })
        .await
    }
}
