//! The federation: one question of a client becomes one call to each backend, and their answers become one.
//!
//! Backends are in groups: [shards](GroupKind::Shards) are all asked and united, of replicas
//! [one](GroupKind::AnyReplica) or [all](GroupKind::AllReplicas). All groups are asked at the same time, each backend
//! at most once for one round of fetching, with all selectors that it can answer. What a request has fetched is kept
//! in a [`RequestMap`].
//!
//! Everything runs on a runtime of its own: connections are driven by the runtime that opened them, and a web worker
//! that computes would stall those of its neighbours. A caller that drops the future it got ends all calls behind it.
//!
//! A failed backend makes an answer *partial*: its failure stands beside the answer. An answer is an error only
//! when no backend gave one, when a group has fewer than its [`Group::min_available`], or when it is too large.
//!
//! This module knows nothing of targets and functions, and it keeps nothing from one request to the next.

mod ask;
#[cfg(test)]
pub(crate) mod fake;
mod lookups;
mod map;
pub mod merge;
mod stats;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime::{Handle, Runtime};
use tokio::time::Instant;

use self::ask::{ItemReply, Member, Question, Standing, Task, ask_group};
pub use self::lookups::Answers;
pub use self::map::{LimitExceeded, Limits, Lookup, RequestMap, Size, bytes_of};
pub use self::stats::{BackendStats, Counter, Entered, FetchStats, Gauge};
use crate::backend::{Backend, BackendError, Scope};
use crate::series::{Component, Glob, PathExpression, Selector, Series};

/// Backends that belong together.
#[derive(Clone)]
pub struct Group {
    /// Its name in the configuration, metrics and errors.
    pub name: Arc<str>,
    /// How its backends divide the work.
    pub kind: GroupKind,
    /// The backends, in the order of the configuration.
    pub backends: Vec<Arc<dyn Backend>>,
    /// How many of the backends that were asked must answer; with fewer, the answer is an error instead of a partial
    /// one. 0 allows the whole group to be absent. Of a group of which one replica is asked, more than one cannot be
    /// said to be missing: there it is like 1.
    pub min_available: usize,
    /// Beginnings of dotted names (`servers`, `apps.web`): when there are any, the group is asked only for patterns
    /// that can match a name below one of them. Tag queries are not narrowed by this.
    pub prefixes: Vec<String>,
    /// When one of [several replicas](GroupKind::AnyReplica) is asked after the others.
    pub rest: Rest,
}

/// When a replica is put behind those that do better, so that not each request has to find out anew that it hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// After others did better so many times in a row.
    pub after: u32,
    /// For so long; then one request asks it first again.
    pub delay: Duration,
}

impl Default for Rest {
    fn default() -> Self {
        Self { after: 3, delay: Duration::from_secs(5) }
    }
}

/// How the backends of a group divide the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Each has other series: all are asked and the answers united.
    Shards,
    /// All have the same series, each possibly with holes: all are asked and the answers merged point by point. One
    /// that fails makes the answer partial.
    AllReplicas,
    /// All have the same series, and each is good alone: one is asked, and the next when it fails. As long as one
    /// answers, the answer is whole.
    AnyReplica {
        /// The next one is asked also when no answer came within this time; the first answer counts.
        hedge_after: Option<Duration>,
        /// Which one is first.
        order: Order,
    },
}

/// Which replica is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Always the first of the list: graphs do not flap between replicas that differ.
    Listed,
    /// Each request begins with the next one: the load is divided.
    Rotating,
}

impl Group {
    /// A group of which all backends may fail, for all names.
    pub fn new(name: impl Into<Arc<str>>, kind: GroupKind, backends: Vec<Arc<dyn Backend>>) -> Self {
        Self { name: name.into(), kind, backends, min_available: 0, prefixes: Vec::new(), rest: Rest::default() }
    }
}

/// The answer to one selector.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Sorted by name, each name once; empty when there is nothing.
    pub series: Arc<[Series]>,
    /// Backends that failed; something may be missing when there are any.
    pub failures: Arc<[BackendError]>,
}

/// What became of one selector.
pub type Outcome = Result<Found, Arc<FetchError>>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// No backend that was asked answered.
    #[error("no backend answered: {}", listed(failures))]
    AllFailed {
        /// One for each of them.
        failures: Arc<[BackendError]>,
    },
    /// A group has fewer backends than it needs.
    #[error("{answered} of the {wanted} needed backends of group {group} answered: {}", listed(failures))]
    TooFewAvailable {
        /// The group's name.
        group: Arc<str>,
        /// How many must answer.
        wanted: usize,
        /// How many did.
        answered: usize,
        /// What the others said.
        failures: Arc<[BackendError]>,
    },
    /// The question itself is wrong, and no backend made sense of it.
    #[error("{reason}")]
    BadQuery {
        /// What is wrong with it.
        reason: String,
    },
    /// There is more than a request may fetch.
    #[error(transparent)]
    TooLarge(#[from] LimitExceeded),
}

impl FetchError {
    /// What the backends said.
    #[must_use]
    pub fn failures(&self) -> &[BackendError] {
        match self {
            Self::AllFailed { failures } | Self::TooFewAvailable { failures, .. } => failures,
            Self::BadQuery { .. } | Self::TooLarge(_) => &[],
        }
    }

    /// Whether the only reason is time: every failed backend was too slow.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        let timeout = |error: &BackendError| matches!(error, BackendError::Timeout { .. });
        !self.failures().is_empty() && self.failures().iter().all(timeout)
    }
}

/// What failed, on one line that can be read: of many, only the first.
#[must_use]
pub fn listed(failures: &[BackendError]) -> String {
    const SHOWN: usize = 8;
    let mut said: Vec<String> = failures.iter().take(SHOWN).map(ToString::to_string).collect();
    if failures.len() > SHOWN {
        said.push(format!("and {} more", failures.len() - SHOWN));
    }
    said.join("; ")
}

/// Each failure once, sorted by backend.
fn distinct(failures: impl IntoIterator<Item = BackendError>) -> Vec<BackendError> {
    let mut failures: Vec<(String, BackendError)> = failures.into_iter().map(|e| (e.to_string(), e)).collect();
    failures.sort_by(|(a_text, a), (b_text, b)| (a.backend(), a_text).cmp(&(b.backend(), b_text)));
    failures.dedup();
    failures.into_iter().map(|(_, error)| error).collect()
}

/// Bytes of stack of a thread: several times what the deepest target needs.
const STACK: usize = 8 << 20;

/// All backends, asked as one.
pub struct Federation {
    inner: Arc<Inner>,
    handle: Handle,
    /// `None` on a runtime that somebody else owns, and while being dropped.
    runtime: Option<Runtime>,
}

struct Inner {
    groups: Vec<GroupState>,
    events: Option<GroupState>,
    stats: FetchStats,
}

struct GroupState {
    name: Arc<str>,
    kind: GroupKind,
    members: Arc<[Member]>,
    min_available: usize,
    prefixes: Vec<Vec<String>>,
    rest: Rest,
    turn: AtomicUsize,
}

impl GroupState {
    fn new(group: Group) -> Self {
        let member = |backend| Member { backend, stats: BackendStats::default(), standing: Standing::default() };
        let nodes = |prefix: String| prefix.split('.').filter(|n| !n.is_empty()).map(str::to_owned).collect();
        Self {
            name: group.name,
            kind: group.kind,
            members: group.backends.into_iter().map(member).collect(),
            min_available: group.min_available,
            prefixes: group.prefixes.into_iter().map(nodes).collect(),
            rest: group.rest,
            turn: AtomicUsize::new(0),
        }
    }

    /// Whether a name below one of the prefixes can match `pattern` or, when `nodes` are looked for, a node above.
    fn may_have(&self, pattern: &str, nodes: bool) -> bool {
        if self.prefixes.is_empty() {
            return true;
        }
        // What cannot be read is the backend's to refuse.
        let Ok(glob) = Glob::new(pattern) else { return true };
        self.prefixes.iter().any(|prefix| {
            let mut components = glob.components().iter();
            for node in prefix {
                match components.next() {
                    Some(Component::Deep) => return true,
                    Some(component) if component.matches(node) => {}
                    Some(_) => return false,
                    None => return nodes,
                }
            }
            true
        })
    }

    async fn ask<Q: Question>(
        &self,
        items: Vec<usize>,
        question: &Arc<Q>,
        stats: &FetchStats,
    ) -> Result<(&Self, Vec<usize>, Vec<ItemReply<Q::Reply>>), LimitExceeded> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let replies = ask_group(self.kind, self.rest, &self.members, turn, &items, question, stats).await?;
        Ok((self, items, replies))
    }

    /// Whether too few members answered an item.
    fn too_few<T>(&self, reply: &ItemReply<T>) -> Option<FetchError> {
        let wanted = self.min_available.min(reply.wanted);
        (reply.replies.len() < wanted).then(|| FetchError::TooFewAvailable {
            group: self.name.clone(),
            wanted,
            answered: reply.replies.len(),
            failures: reply.failures.clone().into(),
        })
    }
}

/// The replies of each group that has some.
type ByGroup<T> = Vec<(GroupKind, Vec<T>)>;

/// What all groups say to one item.
struct Gathered<T> {
    replies: ByGroup<T>,
    failures: Vec<BackendError>,
    /// A group that is not complete enough.
    too_few: Option<FetchError>,
}

impl<T> Default for Gathered<T> {
    fn default() -> Self {
        Self { replies: Vec::new(), failures: Vec::new(), too_few: None }
    }
}

impl<T> Gathered<T> {
    /// The replies with the failures, unless there is no use in them.
    fn outcome(self) -> Result<(ByGroup<T>, Vec<BackendError>), FetchError> {
        let failures = distinct(self.failures);
        let bad = failures.iter().find(|error| matches!(error, BackendError::BadQuery { .. }));
        if let (true, Some(bad)) = (self.replies.is_empty(), bad) {
            return Err(FetchError::BadQuery { reason: bad.to_string() });
        }
        if let Some(error) = self.too_few {
            return Err(error);
        }
        if self.replies.is_empty() && !failures.is_empty() {
            return Err(FetchError::AllFailed { failures: failures.into() });
        }
        Ok((self.replies, failures))
    }
}

impl Inner {
    /// Asks all groups at the same time. `routed` says which items a group is asked.
    async fn gather<Q: Question>(
        &self,
        question: Arc<Q>,
        routed: impl IntoIterator<Item = (&GroupState, Vec<usize>)>,
        items: usize,
    ) -> Result<Vec<Gathered<Q::Reply>>, LimitExceeded> {
        let mut asked: FuturesUnordered<_> = routed
            .into_iter()
            .filter(|(_, items)| !items.is_empty())
            .enumerate()
            .map(|(number, (group, items))| {
                let question = &question;
                async move { (number, group.ask(items, question, &self.stats).await) }
            })
            .collect();
        let mut ended = Vec::new();
        while let Some((number, replies)) = asked.next().await {
            let replies = replies.inspect_err(|_| self.stats.too_large.add(1))?;
            ended.push((number, replies));
        }
        // In the order of the configuration, not of arrival.
        ended.sort_by_key(|(number, _)| *number);
        let mut gathered: Vec<Gathered<Q::Reply>> = (0..items).map(|_| Gathered::default()).collect();
        for (_, (group, items, replies)) in ended {
            for (item, reply) in items.into_iter().zip(replies) {
                let gathered = &mut gathered[item];
                gathered.too_few = gathered.too_few.take().or_else(|| group.too_few(&reply));
                if !reply.replies.is_empty() {
                    gathered.replies.push((group.kind, reply.replies));
                }
                gathered.failures.extend(reply.failures);
            }
        }
        Ok(gathered)
    }

    async fn fetch(&self, question: FetchQuestion) -> Result<Vec<Outcome>, LimitExceeded> {
        let _going_on = self.stats.in_flight.enter();
        let question = Arc::new(question);
        let selectors = &question.selectors;
        self.stats.fetches.add(1);
        self.stats.selectors.add(selectors.len() as u64);
        let all = |wanted: &dyn Fn(&PathExpression) -> bool| -> Vec<usize> {
            (0..selectors.len()).filter(|item| wanted(&selectors[*item].pattern)).collect()
        };
        let stores = self.groups.iter().map(|group| {
            let wanted = |pattern: &PathExpression| {
                !pattern.is_event_query() && (pattern.is_tag_query() || group.may_have(pattern.as_str(), false))
            };
            (group, all(&wanted))
        });
        let events = self.events.iter().map(|group| (group, all(&PathExpression::is_event_query)));
        let routed: Vec<_> = stores.chain(events).collect();
        let gathered = self.gather(question.clone(), routed, selectors.len()).await?;

        let mut outcomes = Vec::with_capacity(gathered.len());
        for gathered in gathered {
            let outcome = gathered.outcome().map_err(Arc::new).map(|(groups, failures)| {
                let answers = groups.into_iter().flat_map(|(_, answers)| answers);
                let (series, mismatches) = merge::unite(answers.flatten().collect());
                self.stats.mismatches.add(mismatches);
                self.stats.series.add(series.len() as u64);
                self.stats.points.add(series.iter().map(|series| series.len() as u64).sum());
                Found { series: series.into(), failures: failures.into() }
            });
            outcomes.push(outcome);
        }
        let any = |f: fn(&Outcome) -> bool| u64::from(outcomes.iter().any(f));
        self.stats.failed.add(any(Result::is_err));
        self.stats.partial.add(any(|outcome| outcome.as_ref().is_ok_and(|found| !found.failures.is_empty())));
        Ok(outcomes)
    }
}

/// The question of a fetch.
struct FetchQuestion {
    selectors: Vec<Selector>,
    scope: Scope,
    room: Limits,
}

impl Question for FetchQuestion {
    type Reply = Vec<Series>;

    fn deadline(&self) -> Instant {
        self.scope.deadline
    }

    fn suits(&self, backend: &dyn Backend, item: usize) -> bool {
        !self.selectors[item].pattern.is_tag_query() || backend.tags().is_some()
    }

    async fn ask(&self, backend: &dyn Backend, items: &[usize]) -> Vec<Result<Vec<Series>, BackendError>> {
        let selectors: Vec<Selector> = items.iter().map(|item| self.selectors[*item].clone()).collect();
        let answers = backend.fetch(&selectors, &self.scope).await;
        // What one backend has is a part of the whole: when it alone is too much there is no need to wait for others.
        let mut size = Size::default();
        for answer in answers.iter().flatten() {
            size.add(answer);
        }
        match size.beyond(&self.room) {
            None => answers,
            Some((limit, unit)) => {
                let too_large = || Err(BackendError::TooLarge { backend: backend.id().clone(), limit, unit });
                answers.iter().map(|_| too_large()).collect()
            }
        }
    }
}

impl Federation {
    /// A federation with a runtime of its own, of `threads` workers. `events` answers the `events(..)` patterns.
    ///
    /// # Errors
    /// The operating system refuses the threads.
    pub fn new(groups: Vec<Group>, events: Option<Arc<dyn Backend>>, threads: usize) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("fetch")
            // Targets are parsed and evaluated on its threads, which recurse as deep as they are nested.
            .thread_stack_size(STACK)
            .enable_all()
            .build()?;
        let mut federation = Self::on(runtime.handle().clone(), groups, events);
        federation.runtime = Some(runtime);
        Ok(federation)
    }

    /// A federation on a runtime that the caller keeps alive, with its timers enabled.
    #[must_use]
    pub fn on(handle: Handle, groups: Vec<Group>, events: Option<Arc<dyn Backend>>) -> Self {
        let events = events.map(|backend| GroupState::new(Group::new("events", GroupKind::Shards, vec![backend])));
        let groups = groups.into_iter().map(GroupState::new).collect();
        Self { inner: Arc::new(Inner { groups, events, stats: FetchStats::default() }), handle, runtime: None }
    }

    /// The runtime that everything runs on: for what backends do in the background.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Counts for telemetry.
    #[must_use]
    pub fn stats(&self) -> &FetchStats {
        &self.inner.stats
    }

    /// Each backend with the name of its group, in the order of the configuration, the event source last.
    pub fn backends(&self) -> impl Iterator<Item = (&str, &Arc<dyn Backend>, &BackendStats)> {
        fn members(group: &GroupState) -> impl Iterator<Item = (&str, &Arc<dyn Backend>, &BackendStats)> {
            group.members.iter().map(|member| (&*group.name, &member.backend, &member.stats))
        }
        self.inner.groups.iter().chain(&self.inner.events).flat_map(members)
    }

    /// Fetches the selectors, which should be distinct: what became of each, in their order. Every backend gets one
    /// call with all selectors that it can answer. A selector that nobody can answer (there is no event source, no backend has tags) is
    /// empty.
    ///
    /// # Errors
    /// There is more than `room`.
    pub async fn fetch(
        &self,
        selectors: &[Selector],
        scope: &Scope,
        room: Limits,
    ) -> Result<Vec<Outcome>, LimitExceeded> {
        if selectors.is_empty() {
            return Ok(Vec::new());
        }
        let question = FetchQuestion { selectors: selectors.to_vec(), scope: scope.clone(), room };
        self.run(move |inner| async move { inner.fetch(question).await }).await
    }

    /// Fetches those of the selectors that the map does not have yet, and keeps the answers in it. The answer is
    /// the number of selectors that had to be fetched.
    ///
    /// # Errors
    /// There is more than the map may hold.
    pub async fn fill<'a>(
        &self,
        map: &mut RequestMap,
        selectors: impl IntoIterator<Item = &'a Selector>,
        scope: &Scope,
    ) -> Result<usize, LimitExceeded> {
        let missing = map.missing(selectors);
        let outcomes = self.fetch(&missing, scope, map.limits()).await?;
        let fetched = missing.len();
        for (selector, outcome) in missing.into_iter().zip(outcomes) {
            map.insert(selector, outcome).inspect_err(|_| self.inner.stats.too_large.add(1))?;
        }
        Ok(fetched)
    }

    /// Runs on the fetch runtime what ends when the answer is dropped.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Inner>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match Task::spawn(&self.handle, work(self.inner.clone())).await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down, and nobody waits for an answer any more.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Drop for Federation {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Dropping it would wait, which a thread of another runtime must not.
            runtime.shutdown_background();
        }
    }
}
