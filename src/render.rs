//! The use case: targets in, series out. Calls parser, planner, federation and evaluator in order, with a deadline.
//!
//! Knows nothing of HTTP or formats. What a request has fetched lives in its own map and is gone with it, also when the
//! client hangs up: dropping the future ends the calls to the backends.

use std::sync::Arc;

use crate::backend::{BackendError, Scope};
use crate::evaluate::{Advance, GivenUp, Pool, PoolEmpty, Rounds, RoundsError, Share};
use crate::fetch::{Counter, Federation, FetchError, LimitExceeded, Limits, Lookup, RequestMap, listed};
use crate::functions::Request;
use crate::plan::StepMemory;
use crate::series::{Selector, Series};
use crate::target::Diagnostic;

/// A render request, with everything about time resolved to numbers.
#[derive(Clone, Debug)]
pub struct RenderRequest {
    /// The targets, in order.
    pub targets: Vec<String>,
    /// `template[name]=value` parameters.
    pub overrides: Vec<(String, String)>,
    /// Range, clock, zone.
    pub request: Request,
    /// Deadline, headers and id for the backends.
    pub scope: Scope,
    /// Whether a partial answer is an error.
    pub strict: bool,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The series of all targets, in order.
    pub series: Vec<Series>,
    /// How many of them each target gave, in order.
    pub counts: Vec<usize>,
    /// Backends that failed; something may be missing when there are any. Such a result must be marked and not cached.
    pub failures: Vec<BackendError>,
    /// How often the backends were asked, one after the other.
    pub rounds: u32,
    /// What the request holds of the memory for all requests, until this is dropped.
    pub share: Arc<Share>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A target is wrong. The text for users is [`Diagnostic::render`] of `text`.
    #[error("{diagnostic}")]
    Target {
        /// The target.
        text: String,
        /// What and where.
        diagnostic: Diagnostic,
    },
    /// More targets than a request may have.
    #[error("the request has {given} targets; at most {limit} are accepted")]
    TooManyTargets {
        /// How many it has.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// The targets ask for too much.
    #[error("{0}")]
    TooMuch(RoundsError),
    /// More matched than a request may fetch.
    #[error("{0}")]
    TooLarge(#[from] LimitExceeded),
    /// Backends failed, and there is no answer without them.
    #[error("{0}")]
    Backends(Arc<FetchError>),
    /// Backends failed, and partial answers are not wanted.
    #[error("{} backends failed: {}", .0.len(), listed(.0))]
    Partial(Vec<BackendError>),
    /// All requests together hold more than they may, and this one much of it.
    #[error("{0}")]
    Busy(#[from] PoolEmpty),
    /// Time ran out.
    #[error("the request ran out of time while {stage}")]
    Deadline {
        /// What was being done.
        stage: &'static str,
    },
    /// A fault of this program.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What callers decide by. Stable, documented, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The request is wrong.
    BadTarget,
    /// The request asks for too much.
    TooLarge,
    /// Backends failed.
    BackendsFailed,
    /// Time ran out.
    Deadline,
    /// There are too many other requests.
    Busy,
    /// A fault of this program.
    Internal,
}

impl RenderError {
    /// Its code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Target { .. } => ErrorCode::BadTarget,
            Self::TooManyTargets { .. } | Self::TooMuch(_) | Self::TooLarge(_) => ErrorCode::TooLarge,
            Self::Backends(e) if e.is_timeout() => ErrorCode::Deadline,
            Self::Backends(e) => match **e {
                FetchError::BadQuery { .. } => ErrorCode::BadTarget,
                FetchError::TooLarge(_) => ErrorCode::TooLarge,
                FetchError::AllFailed { .. } | FetchError::TooFewAvailable { .. } => ErrorCode::BackendsFailed,
            },
            Self::Partial(_) => ErrorCode::BackendsFailed,
            Self::Deadline { .. } => ErrorCode::Deadline,
            Self::Busy(_) => ErrorCode::Busy,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }

    /// The text for users: one line that says it, for a target with the place below.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Target { text, diagnostic } => diagnostic.render(text),
            other => other.to_string(),
        }
    }
}

/// Counts for telemetry.
#[derive(Debug, Default)]
pub struct RenderStats {
    /// Requests begun.
    pub requests: Counter,
    /// Rounds of fetching.
    pub rounds: Counter,
    /// Selectors that evaluation asked for and the plan had not: anything but 0 is a fault worth reporting.
    pub misses: Counter,
    /// Results with failures.
    pub partial: Counter,
}

/// How the selectors of a request become calls to the backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FetchMode {
    /// All of them at once: one call for each backend and round.
    #[default]
    Bulk,
    /// Target by target and selector by selector, one after the other, as frontends do that do not plan. Only for comparison.
    OneByOne,
}

/// Answers render requests. One for the whole server.
pub struct Renderer {
    federation: Arc<Federation>,
    memory: Option<Arc<StepMemory>>,
    limits: Limits,
    computed: u64,
    max_targets: usize,
    mode: FetchMode,
    pool: Arc<Pool>,
    stats: RenderStats,
}

impl Renderer {
    /// A renderer over a federation. Without `memory` each request learns the steps of its windows anew. A request may
    /// fetch what `limits` allow, compute `computed` points and have `max_targets` targets.
    #[must_use]
    pub fn new(
        federation: Arc<Federation>,
        memory: Option<Arc<StepMemory>>,
        limits: Limits,
        computed: u64,
        max_targets: usize,
    ) -> Self {
        let (mode, pool, stats) = (FetchMode::Bulk, Pool::new(u64::MAX), RenderStats::default());
        Self { federation, memory, limits, computed, max_targets, mode, pool, stats }
    }

    /// The same with another way of fetching.
    #[must_use]
    pub fn fetching(mut self, mode: FetchMode) -> Self {
        self.mode = mode;
        self
    }

    /// The same with a bound of what all requests at a time hold together, in bytes.
    #[must_use]
    pub fn holding_at_most(mut self, bytes: u64) -> Self {
        self.pool = Pool::new(bytes);
        self
    }

    /// What all requests hold now.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> &RenderStats {
        &self.stats
    }

    /// The backends.
    #[must_use]
    pub fn federation(&self) -> &Arc<Federation> {
        &self.federation
    }

    /// Fetches and evaluates all targets.
    ///
    /// # Errors
    /// See [`RenderError`].
    pub async fn render(&self, request: RenderRequest) -> Result<Rendered, RenderError> {
        self.stats.requests.add(1);
        if request.targets.len() > self.max_targets {
            return Err(RenderError::TooManyTargets { given: request.targets.len(), limit: self.max_targets });
        }
        let RenderRequest { targets, overrides, request, scope, strict } = request;
        let texts = targets.clone();
        let memory = self.memory.clone();
        // It is gone when this future is: when the client has left, or its time is over.
        let waiting = Arc::new(());
        let gone = Arc::downgrade(&waiting);
        let given_up = GivenUp::when(move || gone.strong_count() == 0);
        let rounds = self.compute(move || Rounds::new(&targets, request, overrides, memory)).await?;
        let share = Arc::new(self.pool.share());
        let rounds = rounds.map_err(|e| failed(&texts, e))?.computing_at_most(self.computed).until(given_up);
        let mut rounds = rounds.of(share.clone());
        let mut map = RequestMap::new(self.limits);
        let lists = loop {
            let (advanced, r, m) = self
                .compute(move || {
                    let advanced = rounds.advance(&map);
                    (advanced, rounds, map)
                })
                .await?;
            (rounds, map) = (r, m);
            match advanced.map_err(|e| failed(&texts, e))? {
                Advance::Done(lists) => break lists,
                Advance::Fetch(selectors) => {
                    let before = map.size().bytes;
                    self.fetch(&mut map, &selectors, &scope).await?;
                    share.take(map.size().bytes.saturating_sub(before))?;
                }
            }
        };
        drop(waiting);
        self.stats.misses.add(u64::from(rounds.misses()));
        let failures = map.failures();
        if !failures.is_empty() {
            self.stats.partial.add(1);
            if strict {
                return Err(RenderError::Partial(failures));
            }
        }
        let counts = lists.iter().map(Vec::len).collect();
        let series = lists.into_iter().flatten().collect();
        Ok(Rendered { series, counts, failures, rounds: rounds.rounds(), share })
    }

    async fn fetch(&self, map: &mut RequestMap, selectors: &[Selector], scope: &Scope) -> Result<(), RenderError> {
        self.stats.rounds.add(1);
        if scope.left().is_zero() {
            return Err(RenderError::Deadline { stage: "planning" });
        }
        // The federation keeps the deadline for each backend. A second watch here would take away what the others
        // answered in time.
        match self.mode {
            FetchMode::Bulk => {
                self.federation.fill(map, selectors, scope).await?;
            }
            FetchMode::OneByOne => {
                for selector in selectors {
                    self.federation.fill(map, [selector], scope).await?;
                }
            }
        }
        // A selector that no backend answered would look like one that matches nothing.
        for selector in selectors {
            if let Lookup::Failed(error) = map.get(selector) {
                return Err(RenderError::Backends(error));
            }
        }
        Ok(())
    }

    /// Runs what needs a processor away from the event loop.
    async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, RenderError> {
        self.federation
            .handle()
            .spawn_blocking(work)
            .await
            .map_err(|e| RenderError::Internal(if e.is_panic() { "evaluation panicked".into() } else { e.to_string() }))
    }
}

fn failed(texts: &[String], error: RoundsError) -> RenderError {
    match error {
        RoundsError::Target { target, diagnostic } => {
            RenderError::Target { text: texts.get(target).cloned().unwrap_or_default(), diagnostic }
        }
        error @ (RoundsError::TooMany(_) | RoundsError::TooMuch { .. }) => RenderError::TooMuch(error),
        RoundsError::GivenUp => RenderError::Deadline { stage: "evaluating" },
        RoundsError::PoolEmpty(empty) => RenderError::Busy(empty),
        error @ RoundsError::Stuck { .. } => RenderError::Internal(error.to_string()),
    }
}
