//! How long things take, counted in buckets, for telemetry to read. It is told of times and never asks a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in milliseconds; the last bucket has none.
const BOUNDS: [u32; 12] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000];

/// Counts of durations by bucket, and their sum.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

/// What a [`Histogram`] has counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    /// For each bound in seconds, how many lasted no longer.
    pub up_to: Vec<(f64, u64)>,
    /// How many there were.
    pub count: u64,
    /// All of them together, in seconds.
    pub sum: f64,
}

impl Histogram {
    /// Counts one.
    pub fn observe(&self, duration: Duration) {
        let bucket = BOUNDS.partition_point(|bound| Duration::from_millis(u64::from(*bound)) < duration);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> Durations {
        let mut count = 0;
        let mut up_to = Vec::with_capacity(BOUNDS.len());
        for (at, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            up_to.extend(BOUNDS.get(at).map(|bound| (f64::from(*bound) / 1000.0, count)));
        }
        Durations { up_to, count, sum: self.microseconds.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        let histogram = Histogram::default();
        for milliseconds in [0, 5, 6, 1000, 1001, 40_000] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let read = histogram.read();
        let at = |bound: f64| read.up_to.iter().find(|(b, _)| *b == bound).map(|(_, count)| *count);
        assert_eq!(
            (at(0.005), at(0.01), at(0.5), at(1.0), at(2.5), at(30.0)),
            (Some(2), Some(3), Some(3), Some(4), Some(5), Some(5))
        );
        assert_eq!((read.count, read.sum), (6, 42.012));
    }
}
