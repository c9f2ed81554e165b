//! Checked tree + fetched series = series. Recursive, pure, never fetches.
//!
//! A selector that was not asked for is not the same as one that was asked for and is empty: taking one for the other
//! silently corrupts results. So a look-up has more than two answers, and evaluation that meets a selector that was
//! not asked for fails with [`EvaluateError::NotAsked`]; the caller fetches what is missing and evaluates again.
//!
//! A short target can multiply its series without end (a `timeStack` of `timeStack`s), so evaluation has a [`Budget`].

mod budget;
mod rounds;

use std::collections::HashMap;
use std::sync::Arc;

pub use budget::{Budget, DEFAULT_COMPUTED, GivenUp, Pool, PoolEmpty, Share};
pub use rounds::{Advance, Rounds, RoundsError};

use crate::bind::{Binder, Node, NodeKind, Target};
use crate::functions::{Call, Input, InputArgument, Inputs, Needs, Request, State};
use crate::plan::{Learnt, Probe, ProbeKind, demand};
use crate::series::{PathExpression, Selector, Series, Step, TimeRange};
use crate::target::{Code, Diagnostic};

/// The fetched series of a request.
pub trait Fetched: Sync {
    /// The series of a selector, sorted by name; `None` when it was not asked for. What was asked for and failed or
    /// matched nothing is an empty list.
    fn series(&self, selector: &Selector) -> Option<&[Series]>;
}

impl<H: std::hash::BuildHasher + Sync> Fetched for HashMap<Selector, Vec<Series>, H> {
    fn series(&self, selector: &Selector) -> Option<&[Series]> {
        self.get(selector).map(Vec::as_slice)
    }
}

/// Why evaluation stopped.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The plan did not ask for this: a fault of a function's `needs`. Fetch it and evaluate again.
    #[error("{} over {} was not asked for", .0.pattern, .0.range)]
    NotAsked(Selector),
    /// A step or the targets of a dynamic call have not been learnt yet: plan another round.
    #[error("something about a call is not known yet")]
    NotLearnt,
    /// The request computes more than it may.
    #[error("the request computes more than {limit} points")]
    TooMuch {
        /// The limit, in points.
        limit: u64,
    },
    /// Nobody waits for the results any more.
    #[error("nobody waits for the results any more")]
    GivenUp,
    /// All requests together hold more than they may.
    #[error("{PoolEmpty}")]
    PoolEmpty,
    /// A function cannot be applied.
    #[error("{0}")]
    Target(Diagnostic),
}

/// Evaluates one target over the request's range. `state` is shared by the targets of a request, which are evaluated in
/// order.
///
/// # Errors
/// See [`EvaluateError`].
pub fn evaluate(
    target: &Target,
    request: &Request,
    learnt: &Learnt,
    fetched: &impl Fetched,
    budget: &Budget,
    state: &mut State,
) -> Result<Vec<Series>, EvaluateError> {
    let mut evaluator = Evaluator { request, learnt, fetched, budget, state };
    evaluator.node(&target.root, request.range).map(Input::into_list)
}

/// Evaluates what the plan's probes ask for and adds it to `learnt`. Probes whose inputs are not all fetched yet are
/// left for a later round.
///
/// # Errors
/// A function that cannot be applied, or too much to compute, with the index of the target.
fn learn(
    probes: &[Probe],
    request: &Request,
    learnt: &mut Learnt,
    fetched: &impl Fetched,
    budget: &Budget,
    binder: &mut Binder,
) -> Result<(), (usize, EvaluateError)> {
    // A call stands before what is below it: from the end on, the steps of inner windows are known when outer ones
    // are evaluated.
    for probe in probes.iter().rev() {
        let NodeKind::Call(call) = &probe.node.kind else { continue };
        // Learnt from an earlier probe of the same call site: one is enough.
        if probe.kind == ProbeKind::Step && learnt.steps.contains_key(&probe.node.id) {
            continue;
        }
        let mut state = State::new(request);
        let mut evaluator = Evaluator { request, learnt, fetched, budget, state: &mut state };
        let mut series = Vec::new();
        let mut complete = true;
        for (_, input) in &call.inputs {
            match evaluator.node(input, probe.range) {
                Ok(input) => series.extend(input.into_list()),
                Err(EvaluateError::NotAsked(_) | EvaluateError::NotLearnt) => complete = false,
                Err(error) => return Err((probe.target, error)),
            }
        }
        if !complete {
            continue;
        }
        match probe.kind {
            ProbeKind::Step => {
                learnt.guesses.remove(&probe.node.id);
                learnt.steps.insert(probe.node.id, coarsest(&series));
            }
            ProbeKind::Targets => {
                let failed = |diagnostic| (probe.target, EvaluateError::Target(diagnostic));
                let expand = call.function.expand.expect("only a call that expands is probed for targets");
                let texts =
                    expand(&call.args, request, &series).map_err(|e| failed(call.diagnostic(probe.node.span, &e)))?;
                let targets =
                    texts.iter().map(|text| binder.bind(text).map_err(|d| (text, d))).collect::<Result<_, _>>();
                let targets: Vec<Target> = targets.map_err(|(text, d)| {
                    let message = format!("{}: in `{text}`: {d}", call.function.name);
                    failed(Diagnostic::new(Code::Evaluation, probe.node.span, message))
                })?;
                learnt.targets.insert((probe.node.id, probe.range), Arc::new(targets));
            }
        }
    }
    Ok(())
}

/// The coarsest step of a list; `None` when it is empty.
fn coarsest<'a>(series: impl IntoIterator<Item = &'a Series>) -> Option<Step> {
    series.into_iter().map(Series::step).max()
}

struct Evaluator<'a, F> {
    request: &'a Request,
    learnt: &'a Learnt,
    fetched: &'a F,
    budget: &'a Budget,
    state: &'a mut State,
}

impl<F: Fetched> Evaluator<'_, F> {
    fn node(&mut self, node: &Node, range: TimeRange) -> Result<Input, EvaluateError> {
        self.budget.spend_step()?;
        let call = match &node.kind {
            NodeKind::Path { pattern, shown } => return self.path(pattern, shown, range).map(Input::List),
            NodeKind::Call(call) => call,
        };
        let failed = |e| EvaluateError::Target(call.diagnostic(node.span, &e));
        let ranges = match demand(node.id, call, range, self.request, self.learnt).map_err(failed)? {
            Needs::Ranges(ranges) => ranges,
            Needs::InputStep => return Err(EvaluateError::NotLearnt),
        };
        let mut inputs = Inputs { ranges: ranges.clone(), ..Inputs::default() };
        for (param, input) in &call.inputs {
            let at = ranges.iter().map(|r| self.node(input, *r)).collect::<Result<_, _>>()?;
            inputs.arguments.push(InputArgument { param: *param, at });
        }
        if call.function.expand.is_some() {
            let Some(targets) = self.learnt.targets.get(&(node.id, range)).cloned() else {
                return Err(EvaluateError::NotLearnt);
            };
            for target in targets.iter() {
                let series = self.node(&target.root, range).map_err(|e| match e {
                    EvaluateError::Target(d) => {
                        let message = format!("{}: in `{}`: {d}", call.function.name, target.text);
                        EvaluateError::Target(Diagnostic::new(Code::Evaluation, node.span, message))
                    }
                    other => other,
                })?;
                inputs.targets.push((target.text.to_string(), series.into_list()));
            }
        }
        let read = inputs.arguments.iter().flat_map(|a| &a.at).flat_map(Input::iter);
        let read = budget::cost(read.chain(inputs.targets.iter().flat_map(|(_, series)| series)));
        let result = Call::new(&call.args, range, self.request, self.state, inputs).run().map_err(failed)?;
        // What was read has been counted where it came from; what takes its place is as good as free.
        self.budget.spend(budget::cost(result.iter()).saturating_sub(read))?;
        Ok(result)
    }

    fn path(&self, pattern: &PathExpression, shown: &Arc<str>, range: TimeRange) -> Result<Vec<Series>, EvaluateError> {
        let selector = Selector { pattern: pattern.clone(), range };
        let Some(series) = self.fetched.series(&selector) else {
            return Err(EvaluateError::NotAsked(selector));
        };
        self.budget.spend(budget::cost(series))?;
        let mut series = series.to_vec();
        for s in &mut series {
            s.path_expression = shown.clone();
            s.x_files_factor = self.state.x_files_factor;
        }
        Ok(series)
    }
}
