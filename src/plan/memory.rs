//! Step memory: the steps that windows in points met in earlier requests, so that a repeated request plans in one round.
//!
//! What is remembered is only a guess. The series that tell the true step are fetched in the same round and looked at
//! before anything is computed, so a wrong guess costs a round and never a wrong answer.

use std::fmt::Write as _;
use std::time::Duration;

use moka::sync::Cache;

use crate::bind::{BoundCall, Node, NodeKind};
use crate::functions::Request;
use crate::series::{Step, TimeRange};

/// Remembered steps, by what is read and how old it is. Bounded in bytes; entries live for hours.
#[derive(Clone, Debug)]
pub struct StepMemory {
    steps: Cache<Key, Step>,
}

/// What a step is remembered by: the text of the series arguments, and age and length of the range in minutes (a store
/// chooses its archive by these, and "the last hour" has the same ones at every refresh).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    inputs: String,
    age_minutes: i64,
    length_minutes: i64,
}

impl StepMemory {
    /// Holds at most about `bytes`.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let steps = Cache::builder()
            .max_capacity(bytes)
            .weigher(|key: &Key, _| u32::try_from(key.inputs.len() + 64).unwrap_or(u32::MAX))
            .time_to_live(Duration::from_secs(6 * 3600))
            .build();
        Self { steps }
    }

    /// The step seen last.
    #[must_use]
    pub fn recall(&self, key: &Key) -> Option<Step> {
        self.steps.get(key)
    }

    /// Remembers a step that was seen.
    pub fn remember(&self, key: Key, step: Step) {
        self.steps.insert(key, step);
    }
}

impl Key {
    /// The key of a call's series arguments over `range`.
    #[must_use]
    pub fn of(call: &BoundCall, range: TimeRange, request: &Request) -> Self {
        let mut inputs = String::new();
        for (_, input) in &call.inputs {
            describe(input, &mut inputs);
            inputs.push(',');
        }
        Self {
            inputs,
            age_minutes: request.now.saturating_sub(range.from()).div_euclid(60),
            length_minutes: range.seconds() / 60,
        }
    }
}

/// Unambiguous text of a subtree.
fn describe(node: &Node, out: &mut String) {
    match &node.kind {
        NodeKind::Path { pattern, .. } => {
            let _ = write!(out, "{pattern:?}");
        }
        NodeKind::Call(call) => {
            let _ = write!(out, "{}{:?}(", call.function.name, call.args);
            for (param, input) in &call.inputs {
                let _ = write!(out, "{param}=");
                describe(input, out);
                out.push(',');
            }
            out.push(')');
        }
    }
}
