//! What one client request has fetched so far.
//!
//! Insert-only: an answer is never replaced or taken out, so planner and evaluator of all targets see the same series,
//! and each selector is fetched at most once. It never takes "not asked" for "nothing there". It is bounded; it
//! does not fetch.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::{FetchError, Outcome};
use crate::backend::{BackendError, BackendId};
use crate::evaluate::Fetched;
use crate::series::{Selector, Series};

/// The most that one client request may fetch. A series that two selectors match counts twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Series.
    pub series: u64,
    /// Points, absent ones included.
    pub points: u64,
    /// Bytes in memory, roughly.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { series: 200_000, points: 64_000_000, bytes: 1 << 30 }
    }
}

/// More was found than a request may fetch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request matches more than {limit} {unit}{}", from(.backend.as_ref()))]
pub struct LimitExceeded {
    /// The limit.
    pub limit: u64,
    /// Of what: `series`, `points` or `bytes`.
    pub unit: &'static str,
    /// The backend that alone sent that much; `None` when it is the sum of several.
    pub backend: Option<BackendId>,
}

fn from(backend: Option<&BackendId>) -> String {
    backend.map(|b| format!(" ({b})")).unwrap_or_default()
}

/// Roughly the memory that a series takes, in bytes.
#[must_use]
pub fn bytes_of(series: &Series) -> u64 {
    const FIXED: usize = 256;
    let tags: usize = series.tags.iter().map(|(tag, value)| tag.len() + value.len() + 64).sum();
    (FIXED + std::mem::size_of_val(series.values()) + series.name.len() + series.path_expression.len() + tags) as u64
}

/// A count of series, points and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Series.
    pub series: u64,
    /// Points, absent ones included.
    pub points: u64,
    /// Bytes in memory, roughly.
    pub bytes: u64,
}

impl Size {
    /// Adds these series.
    pub fn add(&mut self, series: &[Series]) {
        self.series += series.len() as u64;
        for series in series {
            self.points += series.len() as u64;
            self.bytes += bytes_of(series);
        }
    }

    /// The first limit that this goes beyond, with its unit.
    #[must_use]
    pub fn beyond(&self, limits: &Limits) -> Option<(u64, &'static str)> {
        [
            (self.series, limits.series, "series"),
            (self.points, limits.points, "points"),
            (self.bytes, limits.bytes, "bytes"),
        ]
        .into_iter()
        .find_map(|(size, limit, unit)| (size > limit).then_some((limit, unit)))
    }
}

/// What is known about a selector.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// It was not asked for. Not the same as empty: it has to be fetched now.
    NotAsked,
    /// It was asked for.
    Found {
        /// Sorted by name, each name once; empty when there is nothing.
        series: Arc<[Series]>,
        /// Backends that failed; something may be missing when there are any.
        failures: Arc<[BackendError]>,
    },
    /// It was asked for, and the answer cannot be given.
    Failed(Arc<FetchError>),
}

/// All answers that one client request has so far.
#[derive(Debug)]
pub struct RequestMap {
    answers: HashMap<Selector, Outcome>,
    limits: Limits,
    size: Size,
}

impl RequestMap {
    /// An empty one.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { answers: HashMap::new(), limits, size: Size::default() }
    }

    /// What is known about a selector.
    #[must_use]
    pub fn get(&self, selector: &Selector) -> Lookup {
        match self.answers.get(selector) {
            None => Lookup::NotAsked,
            Some(Ok(found)) => Lookup::Found { series: found.series.clone(), failures: found.failures.clone() },
            Some(Err(error)) => Lookup::Failed(error.clone()),
        }
    }

    /// Whether the selector was asked for.
    #[must_use]
    pub fn contains(&self, selector: &Selector) -> bool {
        self.answers.contains_key(selector)
    }

    /// Those of `selectors` that were not asked for, each once, in their order.
    #[must_use]
    pub fn missing<'a>(&self, selectors: impl IntoIterator<Item = &'a Selector>) -> Vec<Selector> {
        let mut seen = std::collections::HashSet::new();
        selectors.into_iter().filter(|s| !self.contains(s) && seen.insert(*s)).cloned().collect()
    }

    /// Keeps an answer. An answer that is there already stays, and the new one is dropped.
    ///
    /// # Errors
    /// The request's limits are exceeded; the answer is not kept.
    pub fn insert(&mut self, selector: Selector, outcome: Outcome) -> Result<(), LimitExceeded> {
        let Entry::Vacant(vacant) = self.answers.entry(selector) else { return Ok(()) };
        if let Ok(found) = &outcome {
            let mut size = self.size;
            size.add(&found.series);
            if let Some((limit, unit)) = size.beyond(&self.limits) {
                return Err(LimitExceeded { limit, unit, backend: None });
            }
            self.size = size;
        }
        vacant.insert(outcome);
        Ok(())
    }

    /// The limits that it keeps.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// How much it holds.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Number of selectors asked for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether nothing was asked for yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Every failure of a backend, each once, sorted by backend: what a warning header or a log line says.
    #[must_use]
    pub fn failures(&self) -> Vec<BackendError> {
        let of = |outcome: &Outcome| match outcome {
            Ok(found) => found.failures.to_vec(),
            Err(error) => error.failures().to_vec(),
        };
        super::distinct(self.answers.values().flat_map(of))
    }
}

/// A selector that failed is an empty list here: whoever fetches it has to end the request ([`Lookup::Failed`]).
impl Fetched for RequestMap {
    fn series(&self, selector: &Selector) -> Option<&[Series]> {
        self.answers.get(selector).map(|outcome| outcome.as_ref().map_or(&[][..], |found| &found.series))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Found;
    use super::*;
    use crate::series::{PathExpression, Step, TimeRange};

    fn selector(pattern: &str) -> Selector {
        let range = TimeRange::new(0, 600).expect("not empty");
        Selector { pattern: PathExpression::new(pattern), range }
    }

    fn found(names: &[&str]) -> Found {
        let series = names.iter().map(|n| Series::new(*n, 60, Step::SECOND, vec![1.0, 2.0])).collect();
        Found { series, failures: Arc::new([]) }
    }

    #[test]
    fn not_asked_is_not_empty() {
        let mut map = RequestMap::new(Limits::default());
        assert!(matches!(map.get(&selector("a")), Lookup::NotAsked));
        map.insert(selector("a"), Ok(found(&[]))).expect("within the limits");
        assert!(matches!(map.get(&selector("a")), Lookup::Found { series, .. } if series.is_empty()));
        let timeout = BackendError::Timeout { backend: BackendId::new("x") };
        let error = Arc::new(FetchError::AllFailed { failures: Arc::new([timeout.clone()]) });
        map.insert(selector("b"), Err(error)).expect("within the limits");
        assert!(matches!(map.get(&selector("b")), Lookup::Failed(_)));
        assert_eq!(map.series(&selector("a")), Some(&[][..]));
        assert_eq!(map.series(&selector("c")), None);
        assert_eq!(map.failures(), [timeout]);
        assert_eq!(map.missing(&[selector("a"), selector("c"), selector("b"), selector("c")]), [selector("c")]);
    }

    #[test]
    fn the_first_answer_stays() {
        let mut map = RequestMap::new(Limits::default());
        map.insert(selector("a"), Ok(found(&["a"]))).expect("within the limits");
        map.insert(selector("a"), Ok(found(&["b", "c"]))).expect("within the limits");
        assert!(matches!(map.get(&selector("a")), Lookup::Found { series, .. } if &*series[0].name == "a"));
        assert_eq!((map.size().series, map.size().points), (1, 2));
    }

    #[test]
    fn the_limit_that_is_exceeded_is_named() {
        for (limits, unit, text) in [
            (Limits { series: 2, ..Limits::default() }, "series", "the request matches more than 2 series"),
            (Limits { points: 5, ..Limits::default() }, "points", "the request matches more than 5 points"),
            (Limits { bytes: 700, ..Limits::default() }, "bytes", "the request matches more than 700 bytes"),
        ] {
            let mut map = RequestMap::new(limits);
            map.insert(selector("a"), Ok(found(&["a", "b"]))).expect("within the limits");
            let error = map.insert(selector("b"), Ok(found(&["b"]))).expect_err("beyond the limits");
            assert_eq!((error.unit, error.to_string().as_str()), (unit, text));
            assert!(matches!(map.get(&selector("b")), Lookup::NotAsked));
        }
    }
}
