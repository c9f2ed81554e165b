//! Finished answers: bytes as they are served, by everything that changes them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::tier::{CacheStats, LONGEST, weight};

/// What an answer depends on, as bytes that two different requests never share: every part is written with its
/// length before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResponseKey(Arc<[u8]>);

impl ResponseKey {
    /// Begins a key for one kind of answer (`render`, `find`).
    #[must_use]
    pub fn of(kind: &str) -> ResponseKeyBuilder {
        ResponseKeyBuilder(Vec::with_capacity(256)).field("", kind)
    }

    /// The key as bytes, for a cache outside of this process.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A [`ResponseKey`] being made. The order of the fields matters.
#[derive(Clone, Debug)]
pub struct ResponseKeyBuilder(Vec<u8>);

impl ResponseKeyBuilder {
    /// Adds a parameter and its value. A parameter that is not given and one with an empty value are different: leave
    /// the first one out.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        for part in [name.as_bytes(), value.as_ref()] {
            self.0.extend_from_slice(&(part.len() as u64).to_le_bytes());
            self.0.extend_from_slice(part);
        }
        self
    }

    /// Adds a number: a time as seconds since the epoch, a limit, a flag as 0 or 1.
    #[must_use]
    pub fn number(self, name: &str, value: i64) -> Self {
        self.field(name, value.to_le_bytes())
    }

    /// The key.
    #[must_use]
    pub fn build(self) -> ResponseKey {
        ResponseKey(self.0.into())
    }
}

/// An answer as it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedResponse {
    /// The body, compressed as `encoding` says: parts that follow each other.
    pub parts: Vec<Bytes>,
    /// The `Content-Type`.
    pub content_type: Arc<str>,
    /// The `Content-Encoding`; `None` is the plain body.
    pub encoding: Option<&'static str>,
}

impl CachedResponse {
    /// Bytes of the body.
    #[must_use]
    pub fn size(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }
}

#[derive(Clone)]
struct Kept {
    response: Arc<CachedResponse>,
    now: i64,
    ttl: Duration,
}

struct OwnLife;

impl moka::Expiry<ResponseKey, Kept> for OwnLife {
    fn expire_after_create(&self, _: &ResponseKey, kept: &Kept, _: Instant) -> Option<Duration> {
        Some(kept.ttl)
    }

    fn expire_after_update(&self, _: &ResponseKey, kept: &Kept, _: Instant, _: Option<Duration>) -> Option<Duration> {
        Some(kept.ttl)
    }
}

/// Answers, bounded in bytes, each with its own time to live. It keeps what it is given: partial answers and errors
/// are not to be given.
pub struct ResponseCache {
    cache: moka::sync::Cache<ResponseKey, Kept>,
    stats: CacheStats,
}

impl ResponseCache {
    /// An empty one that takes `bytes` at most; 0 keeps nothing.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let weigh = |key: &ResponseKey, kept: &Kept| {
            weight((key.0.len() + kept.response.size() + kept.response.content_type.len() + 200) as u64)
        };
        let cache = moka::sync::Cache::builder().max_capacity(bytes).weigher(weigh).expire_after(OwnLife).build();
        Self { cache, stats: CacheStats::default() }
    }

    /// The answer kept for a key, when it is younger than its time to live at `now` (seconds since the epoch).
    #[must_use]
    pub fn get(&self, key: &ResponseKey, now: i64) -> Option<Arc<CachedResponse>> {
        let kept = self.cache.get(key).filter(|kept| now.abs_diff(kept.now) < kept.ttl.as_secs());
        let counter = if kept.is_some() { &self.stats.hits } else { &self.stats.misses };
        counter.add(1);
        kept.map(|kept| kept.response)
    }

    /// Keeps an answer that was made at `now` for `ttl`, in whole seconds; not at all when that is 0.
    pub fn insert(&self, key: ResponseKey, response: Arc<CachedResponse>, now: i64, ttl: Duration) {
        let ttl = ttl.min(LONGEST);
        if ttl.as_secs() > 0 {
            self.cache.insert(key, Kept { response, now, ttl });
        }
    }

    /// What it did.
    #[must_use]
    pub fn stats(&self) -> &CacheStats {
        &self.stats
    }

    /// Bytes and entries that it has now.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        self.cache.run_pending_tasks();
        (self.cache.weighted_size(), self.cache.entry_count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn response(body: &str) -> Arc<CachedResponse> {
        let parts = vec![Bytes::copy_from_slice(body.as_bytes())];
        Arc::new(CachedResponse { parts, content_type: "application/json".into(), encoding: None })
    }

    fn render(targets: &[&str]) -> ResponseKeyBuilder {
        targets.iter().fold(ResponseKey::of("render"), |key, target| key.field("target", target))
    }

    #[test]
    fn different_requests_have_different_keys() {
        let keys = [
            render(&["a", "b"]),
            render(&["b", "a"]),
            render(&["a&target=b"]),
            render(&["a&b"]),
            render(&["a", "b", ""]),
            render(&["a"]).field("b", ""),
            render(&["a"]).field("b", "x"),
            render(&["a"]).field("bx", ""),
            render(&["a"]).number("from", 1),
            render(&["a"]).number("from", 1 << 8),
            render(&["a"]).number("until", 1),
            ResponseKey::of("find").field("target", "a"),
            // Equal wall times in two zones are two ranges.
            render(&["a"]).number("from", 1_704_880_800),
            render(&["a"]).number("from", 1_704_898_800),
        ];
        let keys: Vec<ResponseKey> = keys.into_iter().map(ResponseKeyBuilder::build).collect();
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                assert_ne!(a, b);
            }
        }
        assert_eq!(render(&["a"]).build(), render(&["a"]).build());
    }

    #[test]
    fn a_miss_is_a_miss() {
        let cache = ResponseCache::new(1 << 20);
        let key = render(&["a"]).build();
        assert_eq!(cache.get(&key, 100), None);
        cache.insert(key.clone(), response("[]"), 100, MINUTE);
        assert_eq!(cache.get(&key, 100), Some(response("[]")));
        assert_eq!(cache.get(&render(&["b"]).build(), 100), None);
        assert_eq!((cache.stats().hits.get(), cache.stats().misses.get()), (1, 2));
    }

    #[test]
    fn each_answer_has_its_life() {
        let cache = ResponseCache::new(1 << 20);
        let key = render(&["a"]).build();
        cache.insert(key.clone(), response("old"), 100, MINUTE);
        assert!(cache.get(&key, 159).is_some());
        assert!(cache.get(&key, 160).is_none());
        cache.insert(key.clone(), response("new"), 160, MINUTE);
        assert_eq!(cache.get(&key, 219), Some(response("new")));
        let key = render(&["b"]).build();
        cache.insert(key.clone(), response("x"), 100, Duration::ZERO);
        assert!(cache.get(&key, 100).is_none());
    }

    #[test]
    fn it_is_bounded_in_bytes() {
        let cache = ResponseCache::new(10_000);
        for i in 0..100 {
            cache.insert(render(&[&i.to_string()]).build(), response(&"x".repeat(1000)), 100, MINUTE);
        }
        let (bytes, entries) = cache.size();
        assert!(bytes <= 10_000 && (1..=9).contains(&entries), "{bytes} bytes, {entries} entries");
        let off = ResponseCache::new(0);
        let key = render(&["a"]).build();
        off.insert(key.clone(), response("x"), 100, MINUTE);
        assert_eq!(off.size(), (0, 0));
        assert!(off.get(&key, 100).is_none());
    }
}
