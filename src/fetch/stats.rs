//! Counts of what the federation does, for telemetry to read. Relaxed atomics: each number is exact, two of them read
//! one after the other need not fit together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::Histogram;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many of something are going on.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicU64>);

impl Gauge {
    /// One more, until the answer is dropped.
    #[must_use]
    pub fn enter(&self) -> Entered {
        self.0.fetch_add(1, Ordering::Relaxed);
        Entered(self.0.clone())
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of what a [`Gauge`] counts; it is over when this is dropped.
#[derive(Debug)]
pub struct Entered(Arc<AtomicU64>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What all requests together did.
#[derive(Debug, Default)]
pub struct FetchStats {
    /// Federated fetches; one is all selectors of one round of a request.
    pub fetches: Counter,
    /// Selectors asked for.
    pub selectors: Counter,
    /// Series answered, after merging.
    pub series: Counter,
    /// Their points.
    pub points: Counter,
    /// Federated look-ups of names or tags.
    pub lookups: Counter,
    /// Fetches and look-ups whose answer misses something because a backend failed.
    pub partial: Counter,
    /// Fetches with a selector that no backend answered, and look-ups that none answered.
    pub failed: Counter,
    /// Fetches and look-ups given up at a limit of series, points or bytes.
    pub too_large: Counter,
    /// Timestamps at which replicas disagreed.
    pub mismatches: Counter,
    /// Calls to a replica because the one before it failed.
    pub failovers: Counter,
    /// Calls to a replica because the one before it was slow.
    pub hedges: Counter,
    /// Federated fetches and look-ups now going on.
    pub in_flight: Gauge,
}

/// What one backend was asked.
#[derive(Debug, Default)]
pub struct BackendStats {
    /// Calls.
    pub calls: Counter,
    /// Calls that failed altogether or for a part.
    pub failures: Counter,
    /// Calls in which another replica did better: it answered while this one did not within the time for a hedge, or
    /// when this one had more than is read.
    pub outdone: Counter,
    /// Calls now going on.
    pub in_flight: Gauge,
    /// How long calls took; those are left out that were cancelled.
    pub durations: Histogram,
    failed_in_a_row: AtomicU64,
}

impl BackendStats {
    /// Notes how a call ended.
    pub(super) fn ended(&self, well: bool) {
        if well {
            self.failed_in_a_row.store(0, Ordering::Relaxed);
        } else {
            self.failures.add(1);
            self.failed_in_a_row.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many calls have failed since the last one that did not; 0 is healthy, or never asked.
    pub fn failed_in_a_row(&self) -> u64 {
        self.failed_in_a_row.load(Ordering::Relaxed)
    }
}
