//! The loop of plan, fetch and evaluate, without the fetching.
//!
//! [`Rounds::advance`] says either what to fetch next or the result. The caller fetches (all in one batch) and calls
//! again; almost always there are two calls, one that names everything and one that answers.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Budget, DEFAULT_COMPUTED, EvaluateError, Fetched, GivenUp, PoolEmpty, Share, coarsest, evaluate, learn};
use crate::bind::{Binder, Node, NodeId, NodeKind, Target};
use crate::functions::{Needs, Request, State};
use crate::plan::{Learnt, PlanError, Probe, ProbeKind, StepKey, StepMemory, demand, plan};
use crate::series::{Selector, Series, Step, TimeRange};
use crate::target::Diagnostic;

/// One request on its way.
#[derive(Debug)]
pub struct Rounds {
    targets: Vec<Target>,
    request: Request,
    binder: Binder,
    learnt: Learnt,
    probes: Vec<Probe>,
    memory: Option<Arc<StepMemory>>,
    keys: HashMap<NodeId, StepKey>,
    computed: u64,
    given_up: Option<GivenUp>,
    share: Option<Arc<Share>>,
    fetches: u32,
    misses: u32,
}

/// What to do next.
#[derive(Debug)]
pub enum Advance {
    /// Fetch these, all at once, and call again.
    Fetch(Vec<Selector>),
    /// The series of each target.
    Done(Vec<Vec<Series>>),
}

/// Why a request cannot be answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RoundsError {
    /// A target is wrong.
    #[error("{diagnostic}")]
    Target {
        /// Which of the request's targets.
        target: usize,
        /// What and where.
        diagnostic: Diagnostic,
    },
    /// It reads too much.
    #[error("{0}")]
    TooMany(PlanError),
    /// It computes too much.
    #[error("the request computes more than {limit} points; ask for fewer targets, series or a shorter range")]
    TooMuch {
        /// The limit, in points.
        limit: u64,
    },
    /// Nobody waits for the results any more.
    #[error("nobody waits for the results any more")]
    GivenUp,
    /// All requests together hold more than they may.
    #[error("{0}")]
    PoolEmpty(PoolEmpty),
    /// Planning does not come to an end: a fault in a function's declaration.
    #[error("planning made no progress after {rounds} rounds")]
    Stuck {
        /// Rounds so far.
        rounds: u32,
    },
}

impl From<PlanError> for RoundsError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Target { target, diagnostic } => Self::Target { target, diagnostic },
            other @ PlanError::TooMany { .. } => Self::TooMany(other),
        }
    }
}

/// Points that a function takes about a millisecond for, so that several targets at a time are worth threads.
const MANY_POINTS: usize = 500_000;

/// Nesting is at most 128 deep and each level may take one round to learn from.
const MAX_ROUNDS: u32 = 300;

impl Rounds {
    /// Parses and checks `targets`. `overrides` are the request's `template[name]` parameters; `memory` is shared by
    /// all requests.
    ///
    /// # Errors
    /// The first target that is wrong.
    pub fn new(
        targets: &[impl AsRef<str>],
        request: Request,
        overrides: Vec<(String, String)>,
        memory: Option<Arc<StepMemory>>,
    ) -> Result<Self, RoundsError> {
        let mut binder = Binder::new(overrides);
        let bind = |(target, text): (usize, &_)| {
            binder.bind(AsRef::as_ref(text)).map_err(|diagnostic| RoundsError::Target { target, diagnostic })
        };
        let targets = targets.iter().enumerate().map(bind).collect::<Result<_, _>>()?;
        Ok(Self {
            targets,
            request,
            binder,
            learnt: Learnt::default(),
            probes: Vec::new(),
            memory,
            keys: HashMap::new(),
            computed: DEFAULT_COMPUTED,
            given_up: None,
            share: None,
            fetches: 0,
            misses: 0,
        })
    }

    /// The same with another limit of the points that are computed between two fetches.
    #[must_use]
    pub fn computing_at_most(mut self, points: u64) -> Self {
        self.computed = points;
        self
    }

    /// The same, ending early when nobody waits any more.
    #[must_use]
    pub fn until(mut self, given_up: GivenUp) -> Self {
        self.given_up = Some(given_up);
        self
    }

    /// The same, taking what it computes from what all requests have.
    #[must_use]
    pub fn of(mut self, share: Arc<Share>) -> Self {
        self.share = Some(share);
        self
    }

    /// How often something had to be fetched so far.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.fetches
    }

    /// How often evaluation met a selector that the plan had not asked for. Anything but 0 is a fault of a function's
    /// declaration; the answer is right all the same.
    #[must_use]
    pub fn misses(&self) -> u32 {
        self.misses
    }

    /// The checked targets.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Goes on as far as `fetched` allows.
    ///
    /// # Errors
    /// See [`RoundsError`].
    pub fn advance(&mut self, fetched: &impl Fetched) -> Result<Advance, RoundsError> {
        let budget = Budget::new(self.computed).until(self.given_up.clone()).of(self.share.clone());
        for _ in 0..MAX_ROUNDS {
            let probes = std::mem::take(&mut self.probes);
            match learn(&probes, &self.request, &mut self.learnt, fetched, &budget, &mut self.binder) {
                Err((target, EvaluateError::Target(diagnostic))) => {
                    return Err(RoundsError::Target { target, diagnostic });
                }
                Err((_, EvaluateError::TooMuch { limit })) => return Err(RoundsError::TooMuch { limit }),
                Err((_, EvaluateError::GivenUp)) => return Err(RoundsError::GivenUp),
                Err((_, EvaluateError::PoolEmpty)) => return Err(RoundsError::PoolEmpty(PoolEmpty)),
                // Such probes are left for a later round.
                Ok(()) | Err((_, EvaluateError::NotAsked(_) | EvaluateError::NotLearnt)) => {}
            }
            let mut plan = plan(&self.targets, &self.request, &self.learnt)?;
            if self.guess(&plan.probes, fetched) {
                plan = crate::plan::plan(&self.targets, &self.request, &self.learnt)?;
            }
            self.probes = plan.probes;
            let (mut missing, mut points) = (Vec::new(), 0);
            for selector in plan.selectors {
                match fetched.series(&selector) {
                    Some(series) => points += series.iter().map(Series::len).sum::<usize>(),
                    None => missing.push(selector),
                }
            }
            if !missing.is_empty() {
                return self.fetch(missing);
            }
            if !self.probes.is_empty() {
                continue;
            }
            match self.evaluate(fetched, points, &budget) {
                Ok(series) => {
                    self.remember();
                    return Ok(Advance::Done(series));
                }
                Err((_, EvaluateError::NotAsked(selector))) => {
                    self.misses += 1;
                    return self.fetch(vec![selector]);
                }
                Err((_, EvaluateError::NotLearnt)) => {}
                Err((_, EvaluateError::TooMuch { limit })) => return Err(RoundsError::TooMuch { limit }),
                Err((_, EvaluateError::GivenUp)) => return Err(RoundsError::GivenUp),
                Err((_, EvaluateError::PoolEmpty)) => return Err(RoundsError::PoolEmpty(PoolEmpty)),
                Err((target, EvaluateError::Target(diagnostic))) => {
                    return Err(RoundsError::Target { target, diagnostic });
                }
            }
        }
        Err(RoundsError::Stuck { rounds: self.fetches })
    }

    fn fetch(&mut self, selectors: Vec<Selector>) -> Result<Advance, RoundsError> {
        self.fetches += 1;
        if self.fetches > MAX_ROUNDS {
            return Err(RoundsError::Stuck { rounds: self.fetches });
        }
        Ok(Advance::Fetch(selectors))
    }

    /// Evaluates all targets, several at a time when they read many points. What they share, few of them change:
    /// those after one that did are evaluated again.
    fn evaluate(
        &self,
        fetched: &impl Fetched,
        points: usize,
        budget: &Budget,
    ) -> Result<Vec<Vec<Series>>, (usize, EvaluateError)> {
        let one =
            |target: &Target, state: &mut State| evaluate(target, &self.request, &self.learnt, fetched, budget, state);
        let mut state = State::new(&self.request);
        let mut series = Vec::with_capacity(self.targets.len());
        if points >= MANY_POINTS {
            let alone: Vec<_> = self
                .targets
                .par_iter()
                .map(|target| {
                    let mut state = State::new(&self.request);
                    (one(target, &mut state), state)
                })
                .collect();
            for (target, (result, after)) in alone.into_iter().enumerate() {
                series.push(result.map_err(|e| (target, e))?);
                if after != state {
                    state = after;
                    break;
                }
            }
        }
        for (target, rest) in self.targets.iter().enumerate().skip(series.len()) {
            series.push(one(rest, &mut state).map_err(|e| (target, e))?);
        }
        Ok(series)
    }

    /// Finds likely steps for probes of steps: what an earlier request saw, else what the series below have. Says
    /// whether there was any.
    fn guess(&mut self, probes: &[Probe], fetched: &impl Fetched) -> bool {
        let mut any = false;
        // Inner calls first, so that outer ones can take over their steps.
        for probe in probes.iter().rev().filter(|p| p.kind == ProbeKind::Step) {
            let NodeKind::Call(call) = &probe.node.kind else { continue };
            let id = probe.node.id;
            if self.learnt.guesses.contains_key(&id) {
                continue;
            }
            let remembered = match &self.memory {
                Some(memory) => {
                    let key = StepKey::of(call, probe.range, &self.request);
                    let step = memory.recall(&key);
                    self.keys.insert(id, key);
                    step
                }
                None => None,
            };
            let likely = || call.inputs.iter().filter_map(|(_, i)| self.likely_step(i, probe.range, fetched)).max();
            if let Some(step) = remembered.or_else(likely) {
                self.learnt.guesses.insert(id, step);
                any = true;
            }
        }
        any
    }

    /// The step that a node's series have if no function below changes it, as far as it can be seen.
    fn likely_step(&self, node: &Node, range: TimeRange, fetched: &impl Fetched) -> Option<Step> {
        let call = match &node.kind {
            NodeKind::Path { pattern, .. } => {
                return coarsest(fetched.series(&Selector { pattern: pattern.clone(), range })?);
            }
            NodeKind::Call(call) => call,
        };
        if let Some(step) = self.learnt.steps.get(&node.id) {
            return *step;
        }
        if let Some(step) = self.learnt.guesses.get(&node.id) {
            return Some(*step);
        }
        let range = match demand(node.id, call, range, &self.request, &self.learnt).ok()? {
            Needs::Ranges(ranges) => *ranges.first()?,
            Needs::InputStep => range,
        };
        call.inputs.iter().filter_map(|(_, input)| self.likely_step(input, range, fetched)).max()
    }

    fn remember(&mut self) {
        let Some(memory) = &self.memory else { return };
        for (id, key) in self.keys.drain() {
            if let Some(step) = self.learnt.steps.get(&id).copied().flatten() {
                memory.remember(key, step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TimeZone;
    use crate::target::MAX_DEPTH;

    fn request(range: TimeRange) -> Request {
        Request {
            range,
            now: range.until(),
            time_zone: TimeZone::utc(),
            server_time_zone: TimeZone::utc(),
            x_files_factor: 0.0,
            seed: 1,
        }
    }

    /// Enough points for several targets at a time; what an earlier target changes must still reach the later ones.
    #[test]
    fn targets_evaluated_at_once_are_as_if_in_order() {
        let range = TimeRange::new(0, MANY_POINTS as i64).expect("not empty");
        let request = request(range);
        // The last one is as deep as a target may be: threads that evaluate have the stack for it.
        let deepest = format!("{}a{}", "absolute(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
        let targets =
            ["scale(a,2)", "stacked(a)", "a", "stacked(a)", "setXFilesFactor(a,0.5)", "sumSeries(a,a)", &deepest];
        let one = Step::new(1).expect("positive");
        let mut rounds = Rounds::new(&targets, request, Vec::new(), None).expect("the targets are right");
        let mut fetched = HashMap::new();
        let lists = loop {
            match rounds.advance(&fetched).expect("the targets can be evaluated") {
                Advance::Done(lists) => break lists,
                Advance::Fetch(selectors) => fetched
                    .extend(selectors.into_iter().map(|s| (s, vec![Series::new("a", 1, one, vec![1.0; MANY_POINTS])]))),
            }
        };
        let shown: Vec<(f64, f64)> = lists.iter().map(|list| (list[0].values()[7], list[0].x_files_factor)).collect();
        assert_eq!(shown, [(2.0, 0.0), (1.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 0.5), (2.0, 0.5), (1.0, 0.5)]);
    }

    #[test]
    fn evaluation_ends_when_nobody_waits() {
        let range = TimeRange::new(0, 3_600).expect("not empty");
        for target in ["scale(a,2)", "movingAverage(scale(a,2),3)"] {
            let rounds = Rounds::new(&[target], request(range), Vec::new(), None).expect("the target is right");
            let mut rounds = rounds.until(GivenUp::when(|| true));
            let mut fetched = HashMap::new();
            let Ok(Advance::Fetch(selectors)) = rounds.advance(&fetched) else { panic!("`a` is to be fetched") };
            fetched.extend(selectors.into_iter().map(|s| (s, Vec::new())));
            assert!(matches!(rounds.advance(&fetched), Err(RoundsError::GivenUp)), "{target}");
        }
    }

    /// As deep as a target may be, on the threads of those evaluated at once.
    #[test]
    fn deep_targets_are_evaluated_at_once() {
        let range = TimeRange::new(0, MANY_POINTS as i64).expect("not empty");
        for call in ["aliasSub(#,'a','a')", "sumSeries(#)"] {
            let deep = (0..127).fold("a".to_owned(), |target, _| call.replace('#', &target));
            let targets = [deep.clone(), deep];
            let one = Step::new(1).expect("positive");
            let mut rounds = Rounds::new(&targets, request(range), Vec::new(), None).expect("the targets are right");
            let mut fetched = HashMap::new();
            loop {
                match rounds.advance(&fetched).expect("the targets can be evaluated") {
                    Advance::Done(lists) => break assert_eq!(lists.len(), 2),
                    Advance::Fetch(selectors) => fetched.extend(
                        selectors.into_iter().map(|s| (s, vec![Series::new("a", 1, one, vec![1.0; MANY_POINTS])])),
                    ),
                }
            }
        }
    }

    /// A hundred bytes of target that would make a million series, each step of them small.
    #[test]
    fn what_multiplies_without_end_is_refused() {
        let range = TimeRange::new(0, 3_600).expect("not empty");
        for (inner, from_store) in [("constantLine(1)", false), ("a", true)] {
            let nested = (0..3).fold(inner.to_owned(), |target, _| format!("timeStack({target},'1s',0,100)"));
            let rounds = Rounds::new(&[nested], request(range), Vec::new(), None).expect("the target is right");
            let mut rounds = rounds.computing_at_most(1_000_000);
            let mut fetched = HashMap::new();
            if let Ok(Advance::Fetch(selectors)) = rounds.advance(&fetched) {
                assert!(from_store);
                fetched.extend(selectors.into_iter().map(|s| (s, Vec::new())));
            }
            let error = rounds.advance(&fetched).expect_err("too much");
            assert!(matches!(error, RoundsError::TooMuch { limit: 1_000_000 }), "{error}");
        }
    }

    /// Each range is a request to a backend: a short target must not make tens of thousands of them.
    #[test]
    fn what_reads_countless_ranges_is_refused() {
        let range = TimeRange::new(0, 3_600).expect("not empty");
        let ranges = |target: &str| {
            let mut rounds = Rounds::new(&[target], request(range), Vec::new(), None).expect("the target is right");
            rounds.advance(&HashMap::new()).map(|advance| match advance {
                Advance::Fetch(selectors) => selectors.len(),
                Advance::Done(_) => 0,
            })
        };
        assert_eq!(ranges("timeStack(a,'1s',0,1000)").expect("planned"), 1000);
        let error = ranges("timeStack(timeStack(a,'1s',0,300),'300s',0,300)").expect_err("90,000 ranges");
        assert_eq!(error.to_string(), "the request reads more than 2000 time ranges");
    }
}
