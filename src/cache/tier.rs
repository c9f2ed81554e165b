//! A bounded cache in front of something slow, whose concurrent misses share one question.
//!
//! Who misses first asks, for all keys that it misses together; who comes while that is going on waits for the
//! answer. When the asker is cancelled, one of those that wait asks again. Errors are shared with those that wait at
//! the moment, and never kept; a timeout is not even shared with somebody who has more time.
//!
//! An entry is fresh for a reader whose clock reading is less than the time to live away from the writer's. That is
//! computed from the readings that the requests carry. The machine's clock only throws out what no request asks for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backend::{BackendError, BackendId, Scope};
use crate::fetch::Counter;
use crate::series::TimeRange;

/// Size and age of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most bytes that its entries take together, roughly.
    pub bytes: u64,
    /// How long an entry is of use, in whole seconds; 0 switches the cache off.
    pub ttl: Duration,
}

impl Bounds {
    pub(super) fn seconds(self) -> u64 {
        self.ttl.as_secs()
    }
}

/// What a cache did.
#[derive(Debug, Default)]
pub struct CacheStats {
    /// Answered from the cache.
    pub hits: Counter,
    /// Asked for.
    pub misses: Counter,
    /// Answered by waiting for what another request had asked.
    pub joined: Counter,
}

/// The longest life of an entry; moka refuses ages.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What an entry costs, in bytes.
pub(super) trait Weigh {
    fn bytes(&self) -> u64;
}

/// As moka wants it.
pub(super) fn weight(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[derive(Clone)]
struct Kept<V> {
    value: V,
    now: i64,
}

/// The answer to one key; `None` when nobody gave one.
type Shared<V> = Option<Result<V, BackendError>>;

/// A question that is being asked.
#[derive(Clone)]
struct Flight<V> {
    answer: watch::Receiver<Shared<V>>,
    now: i64,
    deadline: Instant,
}

/// Positions of keys that others are asking for.
type Waited<V> = Vec<(usize, Flight<V>)>;

type Flights<K, V> = Mutex<HashMap<K, Flight<V>>>;

/// See the module.
pub(super) struct Tier<K, V> {
    cache: moka::sync::Cache<K, Kept<V>>,
    flights: Flights<K, V>,
    seconds: u64,
    pub(super) stats: CacheStats,
}

/// What one asker asks for. Others wait for the keys that it has taken; when this is dropped without an answer, they
/// learn that they must ask themselves.
struct Lead<'a, K: Hash + Eq, V> {
    flights: &'a Flights<K, V>,
    /// Positions of the keys that are asked for.
    asked: Vec<usize>,
    /// Those of them that others may wait for: index in `asked`, key, and where the answer goes.
    taken: Vec<(usize, K, watch::Sender<Shared<V>>)>,
}

impl<K: Hash + Eq, V> Lead<'_, K, V> {
    /// From now on, who misses one of the keys finds the cache, or asks anew. Answers who waits, with the index.
    fn land(&mut self) -> Vec<(usize, watch::Sender<Shared<V>>)> {
        let mut flights = locked(self.flights);
        let land = |(index, key, sender)| {
            flights.remove(&key);
            (index, sender)
        };
        self.taken.drain(..).map(land).collect()
    }
}

impl<K: Hash + Eq, V> Drop for Lead<'_, K, V> {
    fn drop(&mut self) {
        self.land();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind the lock is whole at any moment, so a panic elsewhere is no reason to give up.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K, V> Tier<K, V>
where
    K: Weigh + Hash + Eq + Clone + Send + Sync + 'static,
    V: Weigh + Clone + Send + Sync + 'static,
{
    pub(super) fn new(bounds: Bounds) -> Self {
        let cache = moka::sync::Cache::builder()
            .max_capacity(bounds.bytes)
            .weigher(|key: &K, kept: &Kept<V>| weight(key.bytes() + kept.value.bytes()))
            .time_to_live(bounds.ttl.min(LONGEST))
            .build();
        Self { cache, flights: Mutex::default(), seconds: bounds.seconds(), stats: CacheStats::default() }
    }

    /// Whether it keeps anything at all.
    pub(super) fn is_on(&self) -> bool {
        self.seconds > 0
    }

    /// The range of whole lifetimes that this one lies in; the same range when the cache is off.
    pub(super) fn widened(&self, range: TimeRange) -> TimeRange {
        let lifetime = i64::try_from(self.seconds).unwrap_or(i64::MAX).max(1);
        let from = range.from().div_euclid(lifetime).saturating_mul(lifetime);
        let until = range.until().saturating_add(lifetime - 1).div_euclid(lifetime).saturating_mul(lifetime);
        TimeRange::new(from, until).unwrap_or(range)
    }

    /// Bytes and entries now kept.
    pub(super) fn size(&self) -> (u64, u64) {
        self.cache.run_pending_tasks();
        (self.cache.weighted_size(), self.cache.entry_count())
    }

    fn is_fresh(&self, now: i64, of: i64) -> bool {
        now.abs_diff(of) < self.seconds
    }

    fn fresh(&self, key: &K, now: i64) -> Option<V> {
        self.cache.get(key).filter(|kept| self.is_fresh(now, kept.now)).map(|kept| kept.value)
    }

    /// The answers to the keys, in their order. `ask` is called with the positions of those that nobody knows or is
    /// asking for, and answers them in that order. It is called once at most, except when another request that was
    /// waited for is cancelled or out of time.
    pub(super) async fn get<F>(
        &self,
        keys: &[K],
        backend: &BackendId,
        scope: &Scope,
        ask: impl Fn(Vec<usize>) -> F + Sync,
    ) -> Vec<Result<V, BackendError>>
    where
        F: Future<Output = Vec<Result<V, BackendError>>> + Send,
    {
        if !self.is_on() {
            return ask((0..keys.len()).collect()).await;
        }
        let mut answers: Vec<Shared<V>> = keys.iter().map(|key| self.fresh(key, scope.now).map(Ok)).collect();
        self.stats.hits.add(answers.iter().flatten().count() as u64);
        while answers.iter().any(Option::is_none) {
            let (lead, waited) = self.divide(keys, scope, &mut answers);
            let (own, others) = tokio::join!(
                self.lead(keys, lead, backend, scope, &ask),
                join_all(waited.into_iter().map(|(at, flight)| self.follow(at, flight, backend, scope)))
            );
            for (at, answer) in own.into_iter().chain(others) {
                answers[at] = answer;
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// Who answers the keys that have no answer yet: the cache (at once), this request, or others that are asking.
    fn divide<'a>(&'a self, keys: &[K], scope: &Scope, answers: &mut [Shared<V>]) -> (Lead<'a, K, V>, Waited<V>) {
        let mut lead = Lead { flights: &self.flights, asked: Vec::new(), taken: Vec::new() };
        let mut waited = Vec::new();
        let mut flights = locked(&self.flights);
        for (at, (key, answer)) in keys.iter().zip(answers).enumerate().filter(|(_, (_, a))| a.is_none()) {
            // Under the lock: a flight that has just landed is in the cache.
            if let Some(value) = self.fresh(key, scope.now) {
                self.stats.hits.add(1);
                *answer = Some(Ok(value));
                continue;
            }
            match flights.entry(key.clone()) {
                Entry::Vacant(vacant) => {
                    let (sender, answer) = watch::channel(None);
                    vacant.insert(Flight { answer, now: scope.now, deadline: scope.deadline });
                    lead.taken.push((lead.asked.len(), key.clone(), sender));
                    lead.asked.push(at);
                }
                Entry::Occupied(flight) if self.is_fresh(scope.now, flight.get().now) => {
                    waited.push((at, flight.get().clone()));
                }
                // Somebody asks the same at another time of the world's: that answer would not do.
                Entry::Occupied(_) => lead.asked.push(at),
            }
        }
        drop(flights);
        (lead, waited)
    }

    /// Asks, keeps what came, and tells who waits.
    async fn lead<F>(
        &self,
        keys: &[K],
        mut lead: Lead<'_, K, V>,
        backend: &BackendId,
        scope: &Scope,
        ask: impl Fn(Vec<usize>) -> F,
    ) -> Vec<(usize, Shared<V>)>
    where
        F: Future<Output = Vec<Result<V, BackendError>>> + Send,
    {
        if lead.asked.is_empty() {
            return Vec::new();
        }
        self.stats.misses.add(lead.asked.len() as u64);
        let mut replies = ask(lead.asked.clone()).await;
        if replies.len() != lead.asked.len() {
            // Which answer is whose cannot be known.
            let reason = format!("{} answers to {} questions", replies.len(), lead.asked.len());
            let garbled = BackendError::Garbled { backend: backend.clone(), reason };
            replies = lead.asked.iter().map(|_| Err(garbled.clone())).collect();
        }
        for (at, reply) in lead.asked.iter().zip(&replies) {
            if let Ok(value) = reply {
                self.cache.insert(keys[*at].clone(), Kept { value: value.clone(), now: scope.now });
            }
        }
        for (index, sender) in lead.land() {
            // Nobody may wait.
            let _ = sender.send(Some(replies[index].clone()));
        }
        std::mem::take(&mut lead.asked).into_iter().zip(replies.into_iter().map(Some)).collect()
    }

    /// Waits for what another request asked; no answer when this one has to ask itself.
    async fn follow(&self, at: usize, mut flight: Flight<V>, backend: &BackendId, scope: &Scope) -> (usize, Shared<V>) {
        let answer = match tokio::time::timeout_at(scope.deadline, flight.answer.wait_for(Option::is_some)).await {
            Ok(Ok(answer)) => answer.clone(),
            // Cancelled.
            Ok(Err(_)) => None,
            Err(_) => Some(Err(BackendError::Timeout { backend: backend.clone() })),
        };
        match answer {
            Some(Err(BackendError::Timeout { .. })) if flight.deadline < scope.deadline && !scope.left().is_zero() => {
                (at, None)
            }
            answer => {
                self.stats.joined.add(u64::from(answer.is_some()));
                (at, answer)
            }
        }
    }
}
