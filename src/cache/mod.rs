//! Caches that outlive a request: series and look-ups around a backend, and finished answers.
//!
//! None is global: the application owns them and hands them in. All are bounded in bytes. What is kept depends on
//! nothing but its key: a key holds everything that changes the answer, also the client's headers that are passed
//! on. Errors and partial answers never enter. A time to live of 0 seconds switches a cache off.
//!
//! Freshness is computed from the clock readings that the requests carry. This module reads no clock.

mod backend;
mod response;
#[cfg(test)]
mod tests;
mod tier;

pub use backend::{CachedBackend, LookupCache, SeriesCache};
pub use response::{CachedResponse, ResponseCache, ResponseKey, ResponseKeyBuilder};
pub use tier::{Bounds, CacheStats};
