//! How much the evaluation of one request may compute.
//!
//! What is counted are points: those of fetched series, each time that a target reads them, and those by which the
//! result of a function is larger than what it was computed from. A series counts for some points more, and so does each
//! call, so that neither names nor empty lists are free. The sum depends on the request and its data alone.
//!
//! Whoever asks may leave before: then evaluation ends with the next call.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::EvaluateError;
use crate::series::Series;

/// The most points that a request computes when nothing else is said: some 2 GB.
pub const DEFAULT_COMPUTED: u64 = 256_000_000;

/// What a call or path counts for.
const STEP: u64 = 32;

/// What a series counts for besides its points and its name: it takes some 600 bytes, most of them for tags.
const SERIES: u64 = 80;

/// Says whether nobody waits for the results any more.
#[derive(Clone)]
pub struct GivenUp(Arc<dyn Fn() -> bool + Send + Sync>);

impl GivenUp {
    /// Asked before each call, from any thread.
    pub fn when(given_up: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(given_up))
    }
}

impl fmt::Debug for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GivenUp").field(&(self.0)()).finish()
    }
}

/// What one request may compute and has spent; shared by the threads that evaluate its targets.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: AtomicU64,
    given_up: Option<GivenUp>,
}

impl Budget {
    /// One of so many points.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, spent: AtomicU64::new(0), given_up: None }
    }

    /// The same as long as somebody waits.
    pub(super) fn until(self, given_up: Option<GivenUp>) -> Self {
        Self { given_up, ..self }
    }

    /// # Errors
    /// More is spent than there is.
    pub(super) fn spend(&self, points: u64) -> Result<(), EvaluateError> {
        let spent = self.spent.fetch_add(points, Ordering::Relaxed).saturating_add(points);
        if spent > self.limit { Err(EvaluateError::TooMuch { limit: self.limit }) } else { Ok(()) }
    }

    /// One call or path.
    ///
    /// # Errors
    /// As [`Budget::spend`]; or nobody waits any more.
    pub(super) fn spend_step(&self) -> Result<(), EvaluateError> {
        if self.given_up.as_ref().is_some_and(|given_up| given_up.0()) {
            return Err(EvaluateError::GivenUp);
        }
        self.spend(STEP)
    }
}

/// What series count for; a name, by the points that would take as many bytes.
pub(super) fn cost<'a>(series: impl IntoIterator<Item = &'a Series>) -> u64 {
    series.into_iter().map(|s| SERIES + (s.len() + s.name.len() / size_of::<f64>()) as u64).sum()
}
