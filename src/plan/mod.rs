//! Checked tree + range = what to fetch. Pure: no I/O.
//!
//! [`demand`] is the only place where the needs of a call are computed; planner and evaluator both come here, so that
//! what is fetched and what is looked up cannot differ. What does not follow from the text, the step of an evaluated
//! input and the targets of a dynamic function, is learnt between rounds and kept in [`Learnt`], once for each call
//! site (once for each range would double the work at every level of nesting).

mod memory;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

pub use memory::{Key as StepKey, StepMemory};

use crate::bind::{BoundCall, Node, NodeId, NodeKind, Target};
use crate::functions::{Ask, EvalError, Needs, Request, least_common_multiple};
use crate::series::{Selector, Step, TimeRange};
use crate::target::{Code, Diagnostic, MAX_DEPTH};

/// What earlier rounds of a request have found out.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    /// The coarsest step of a call site's series; `None` where it has no series at all.
    pub steps: HashMap<NodeId, Option<Step>>,
    /// Steps that are likely. Planning goes on with them, and still probes for the true ones in the same round: a wrong
    /// guess costs a round, and no result is computed from one.
    pub guesses: HashMap<NodeId, Step>,
    /// The targets that a dynamic call reads, by call site and range.
    pub targets: HashMap<(NodeId, TimeRange), Arc<Vec<Target>>>,
}

/// Something that must be evaluated before planning can go on.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The call whose series arguments are to be evaluated.
    pub node: Arc<Node>,
    /// At this range.
    pub range: TimeRange,
    /// For what.
    pub kind: ProbeKind,
    /// Which of the request's targets it belongs to.
    pub target: usize,
}

/// What a probe is to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// The coarsest step.
    Step,
    /// The targets of a dynamic function.
    Targets,
}

/// What one round asks for.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// All that is to be fetched, also what earlier rounds have fetched.
    pub selectors: BTreeSet<Selector>,
    /// What is not known yet; empty in the last round.
    pub probes: Vec<Probe>,
}

/// Why there is no plan.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PlanError {
    /// A target asks for something that cannot be.
    #[error("{diagnostic}")]
    Target {
        /// Which of the request's targets.
        target: usize,
        /// What and where.
        diagnostic: Diagnostic,
    },
    /// The targets read more than is allowed.
    #[error("the request reads more than {limit} {of}")]
    TooMany {
        /// The limit.
        limit: usize,
        /// Of what.
        of: &'static str,
    },
}

/// The most (node, range) pairs of one request. A nest of `timeStack`s multiplies them.
const MAX_VISITS: usize = 100_000;

/// The most time ranges of one request. Each of them is a request of its own to most backends.
const MAX_RANGES: usize = 2_000;

/// What is wrong with a target in targets that are made by calls: each of them may be as deep as a target may be, and
/// evaluation recurses through all.
const TOO_DEEP: &str = "calls and the targets that they make are nested too deeply";

/// The plan for all targets of a request over `request.range`.
///
/// # Errors
/// Needs that cannot be computed, or too many of them.
pub fn plan(targets: &[Target], request: &Request, learnt: &Learnt) -> Result<Plan, PlanError> {
    let mut planner =
        Planner { request, learnt, plan: Plan::default(), visited: HashSet::new(), probed: HashSet::new(), target: 0 };
    for (i, target) in targets.iter().enumerate() {
        planner.target = i;
        planner.visit(&target.root, request.range, 0)?;
    }
    let ranges: HashSet<TimeRange> = planner.plan.selectors.iter().map(|selector| selector.range).collect();
    if ranges.len() > MAX_RANGES {
        return Err(PlanError::TooMany { limit: MAX_RANGES, of: "time ranges" });
    }
    Ok(planner.plan)
}

struct Planner<'a> {
    request: &'a Request,
    learnt: &'a Learnt,
    plan: Plan,
    visited: HashSet<(NodeId, TimeRange)>,
    /// Call sites whose step this round finds out.
    probed: HashSet<NodeId>,
    target: usize,
}

impl Planner<'_> {
    /// `depth` counts the calls around this node, also those whose targets were made while planning.
    fn visit(&mut self, node: &Arc<Node>, range: TimeRange, depth: usize) -> Result<(), PlanError> {
        if !self.visited.insert((node.id, range)) {
            return Ok(());
        }
        if self.visited.len() > MAX_VISITS {
            return Err(PlanError::TooMany { limit: MAX_VISITS, of: "combinations of pattern and range" });
        }
        let call = match &node.kind {
            NodeKind::Path { pattern, .. } => {
                self.plan.selectors.insert(Selector { pattern: pattern.clone(), range });
                return Ok(());
            }
            NodeKind::Call(call) => call,
        };
        if depth >= MAX_DEPTH {
            return Err(self.wrong(Diagnostic::new(Code::TooDeep, node.span, TOO_DEEP)));
        }
        let needs = demand(node.id, call, range, self.request, self.learnt)
            .map_err(|e| self.wrong(call.diagnostic(node.span, &e)))?;
        let unsure = !self.learnt.steps.contains_key(&node.id)
            && (needs == Needs::InputStep || self.learnt.guesses.contains_key(&node.id));
        let mut ranges = match needs {
            Needs::Ranges(ranges) => ranges,
            Needs::InputStep => Vec::new(),
        };
        // The step is that of the series over the asked range. One range tells it for all ranges of a call site; the
        // first, which goes before the others, so that sites below are probed at what they are first asked for.
        if unsure && self.probed.insert(node.id) {
            self.probe(node, range, ProbeKind::Step);
            ranges.insert(0, range);
        }
        for range in ranges {
            for (_, input) in &call.inputs {
                self.visit(input, range, depth + 1)?;
            }
        }
        if call.function.expand.is_some() {
            match self.learnt.targets.get(&(node.id, range)).cloned() {
                Some(targets) => {
                    for target in targets.iter() {
                        self.visit(&target.root, range, depth + 1).map_err(|e| match e {
                            // A place in the made target is none in what the client wrote.
                            PlanError::Target { target, diagnostic } => {
                                PlanError::Target { target, diagnostic: Diagnostic { span: node.span, ..diagnostic } }
                            }
                            other @ PlanError::TooMany { .. } => other,
                        })?;
                    }
                }
                None => self.probe(node, range, ProbeKind::Targets),
            }
        }
        Ok(())
    }

    fn wrong(&self, diagnostic: Diagnostic) -> PlanError {
        PlanError::Target { target: self.target, diagnostic }
    }

    fn probe(&mut self, node: &Arc<Node>, range: TimeRange, kind: ProbeKind) {
        self.plan.probes.push(Probe { node: node.clone(), range, kind, target: self.target });
    }
}

/// What a call needs of its series arguments to be computed over `range`, with what has been learnt so far.
///
/// # Errors
/// What the function's `needs` says.
pub fn demand(
    id: NodeId,
    call: &BoundCall,
    range: TimeRange,
    request: &Request,
    learnt: &Learnt,
) -> Result<Needs, EvalError> {
    let input_step = match learnt.steps.get(&id) {
        // The call has no series: there is nothing to read, whatever the window.
        Some(None) => return Ok(Needs::Ranges(Vec::new())),
        Some(step) => *step,
        None => learnt.guesses.get(&id).copied(),
    };
    let input_grid = || call.inputs.iter().try_fold(1, |grid, (_, input)| least_common_multiple(grid, grid_of(input)?));
    call.function.needs(&call.args, &Ask { range, input_step, request, input_grid: &input_grid })
}

/// The [`Function::grid`](crate::functions::Function::grid) of all calls of a tree.
fn grid_of(node: &Node) -> Option<i64> {
    let NodeKind::Call(call) = &node.kind else { return Some(1) };
    let own = call.function.grid(&call.args)?;
    call.inputs.iter().try_fold(own, |grid, (_, input)| least_common_multiple(grid, grid_of(input)?))
}
