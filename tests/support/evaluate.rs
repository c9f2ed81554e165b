//! Targets evaluated over a store in memory, without a server.

use std::collections::HashMap;

use plumbago::backend::Backend;
use plumbago::clock::TimeZone;
use plumbago::evaluate::{Advance, Rounds};
use plumbago::functions::Request;
use plumbago::series::{Selector, Series, TimeRange};
use plumbago::store::MemoryStore;

use super::dataset;

/// What each target of one request answers over `from..until`, or the error's text. Fails when the plan did not ask
/// for something that evaluation wanted.
pub fn evaluate(store: &MemoryStore, (from, until): (i64, i64), targets: &[&str]) -> Result<Vec<Vec<Series>>, String> {
    let request = Request {
        range: TimeRange::new(from, until).expect("a range"),
        now: until,
        time_zone: TimeZone::utc(),
        server_time_zone: TimeZone::utc(),
        x_files_factor: 0.0,
        seed: 1,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut rounds = Rounds::new(targets, request, Vec::new(), None).map_err(|e| e.to_string())?;
    let mut fetched: HashMap<Selector, Vec<Series>> = HashMap::new();
    loop {
        match rounds.advance(&fetched).map_err(|e| e.to_string())? {
            Advance::Done(lists) => {
                assert_eq!(rounds.misses(), 0, "the plan of {targets:?} missed a selector");
                return Ok(lists);
            }
            Advance::Fetch(selectors) => {
                let answers = runtime.block_on(async { store.fetch(&selectors, &dataset::scope()).await });
                let answers = answers.into_iter().map(|a| a.expect("the store answers"));
                fetched.extend(selectors.into_iter().zip(answers));
            }
        }
    }
}
