//! Requests run in rounds, with what they fetch.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plumbago::backend::Backend;
use plumbago::clock::TimeZone;
use plumbago::evaluate::{Advance, Rounds};
use plumbago::functions::Request;
use plumbago::plan::StepMemory;
use plumbago::series::{Selector, Series, TimeRange};
use plumbago::store::MemoryStore;

use super::dataset::{self, NOW};

/// A range that is not empty.
pub fn range(from: i64, until: i64) -> TimeRange {
    TimeRange::new(from, until).expect("not empty")
}

/// A request of the data set's time, in UTC.
pub fn request(range: TimeRange) -> Request {
    Request {
        range,
        now: NOW,
        time_zone: TimeZone::utc(),
        server_time_zone: TimeZone::utc(),
        x_files_factor: 0.0,
        seed: 1,
    }
}

/// What happened to a request.
pub struct Run {
    /// The selectors of each round.
    pub rounds: Vec<Vec<Selector>>,
    /// How many selectors evaluation met that were not planned.
    pub misses: u32,
    /// The series of each target.
    pub series: Vec<Vec<Series>>,
}

impl Run {
    /// All selectors.
    pub fn selectors(&self) -> BTreeSet<Selector> {
        self.rounds.iter().flatten().cloned().collect()
    }

    /// All ranges.
    pub fn ranges(&self) -> BTreeSet<TimeRange> {
        self.rounds.iter().flatten().map(|s| s.range).collect()
    }
}

/// Answers a request; `answer` stands for the backends.
pub fn run(
    targets: &[impl AsRef<str>],
    request: Request,
    overrides: &[(&str, &str)],
    memory: Option<&Arc<StepMemory>>,
    answer: impl Fn(&Selector) -> Vec<Series>,
) -> Run {
    let overrides = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let mut rounds = Rounds::new(targets, request, overrides, memory.cloned()).expect("the targets are well formed");
    let mut fetched: HashMap<Selector, Vec<Series>> = HashMap::new();
    let mut asked = Vec::new();
    loop {
        match rounds.advance(&fetched).expect("the targets can be evaluated") {
            Advance::Fetch(selectors) => {
                for selector in &selectors {
                    let before = fetched.insert(selector.clone(), answer(selector));
                    assert!(before.is_none(), "{selector:?} is fetched twice");
                }
                asked.push(selectors);
            }
            Advance::Done(series) => return Run { rounds: asked, misses: rounds.misses(), series },
        }
    }
}

/// Asks a store, one selector at a time.
pub fn answers(store: &MemoryStore) -> impl Fn(&Selector) -> Vec<Series> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    move |selector| {
        let selectors = [selector.clone()];
        let mut answers = runtime.block_on(async { store.fetch(&selectors, &dataset::scope()).await });
        answers.pop().expect("an answer for each selector").expect("the store answers")
    }
}
