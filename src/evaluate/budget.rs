//! How much the evaluation of one request may compute.
//!
//! What is counted are points: those of fetched series, each time that a target reads them, and those by which the
//! result of a function is larger than what it was computed from. A series counts for some points more, and so does each
//! call, so that neither names nor empty lists are free. The sum depends on the request and its data alone.
//!
//! Whoever asks may leave before: then evaluation ends with the next call.
//!
//! The bound of one request is no bound of many at a time. So what requests fetch and compute is also taken from one
//! [`Pool`] and given back when they end. There is no waiting for it, as who waits would hold what others wait for: when
//! there is no more, requests that have taken much end, and small ones go on as if there were.

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

/// What all requests together hold at a time, in bytes, roughly.
#[derive(Debug)]
pub struct Pool {
    limit: u64,
    taken: AtomicU64,
    refused: AtomicU64,
}

/// A request that has taken less than this part of the pool is never refused.
const SMALL: u64 = 64;

impl Pool {
    /// One of so many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicU64::new(0), refused: AtomicU64::new(0) })
    }

    /// What a request takes of it.
    #[must_use]
    pub fn share(self: &Arc<Self>) -> Share {
        Share { pool: self.clone(), taken: AtomicU64::new(0) }
    }

    /// Bytes that requests hold now.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// How often a request wanted what was not there.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// What one request holds of a [`Pool`], until this is dropped.
#[derive(Debug)]
pub struct Share {
    pool: Arc<Pool>,
    taken: AtomicU64,
}

/// The pool is empty, and this request holds much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("other requests hold the memory that this one needs; try again in a moment")]
pub struct PoolEmpty;

impl Share {
    /// Takes so many bytes, which count even when they are refused: the request ends then.
    ///
    /// # Errors
    /// See [`PoolEmpty`].
    pub fn take(&self, bytes: u64) -> Result<(), PoolEmpty> {
        let own = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let all = self.pool.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if all <= self.pool.limit || own < self.pool.limit / SMALL {
            return Ok(());
        }
        self.pool.refused.fetch_add(1, Ordering::Relaxed);
        Err(PoolEmpty)
    }
}

impl Share {
    /// Gives back all but so many bytes, or takes so many if it has less: what is left of a request that is answered.
    pub fn keep(&self, bytes: u64) {
        let taken = self.taken.swap(bytes, Ordering::Relaxed);
        self.pool.taken.fetch_add(bytes, Ordering::Relaxed);
        self.pool.taken.fetch_sub(taken, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.taken.fetch_sub(*self.taken.get_mut(), Ordering::Relaxed);
    }
}

/// What one request may compute and has spent; shared by the threads that evaluate its targets.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: AtomicU64,
    given_up: Option<GivenUp>,
    share: Option<Arc<Share>>,
}

impl Budget {
    /// One of so many points.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, spent: AtomicU64::new(0), given_up: None, share: None }
    }

    /// The same as long as somebody waits.
    pub(super) fn until(self, given_up: Option<GivenUp>) -> Self {
        Self { given_up, ..self }
    }

    /// The same, taken also from what all requests have.
    pub(super) fn of(self, share: Option<Arc<Share>>) -> Self {
        Self { share, ..self }
    }

    /// # Errors
    /// More is spent than there is.
    pub(super) fn spend(&self, points: u64) -> Result<(), EvaluateError> {
        let spent = self.spent.fetch_add(points, Ordering::Relaxed).saturating_add(points);
        if spent > self.limit {
            return Err(EvaluateError::TooMuch { limit: self.limit });
        }
        let bytes = points.saturating_mul(size_of::<f64>() as u64);
        self.share.as_ref().map_or(Ok(()), |share| share.take(bytes)).map_err(|_| EvaluateError::PoolEmpty)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_requests_go_on_when_large_ones_have_all() {
        let pool = Pool::new(6400);
        let (large, other, small) = (pool.share(), pool.share(), pool.share());
        assert_eq!((large.take(6000), other.take(400)), (Ok(()), Ok(())));
        assert_eq!((other.take(1), small.take(99), small.take(1)), (Err(PoolEmpty), Ok(()), Err(PoolEmpty)));
        assert_eq!((pool.taken(), pool.refused()), (6501, 2));
        drop(large);
        assert_eq!((other.take(1), small.take(5000)), (Ok(()), Ok(())));
        small.keep(7);
        assert_eq!(pool.taken(), 402 + 7);
        drop((other, small));
        assert_eq!(pool.taken(), 0);
    }
}
