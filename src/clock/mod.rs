//! Time as Graphite's parameters say it: `from`/`until` ("at" style), intervals, time zones.
//!
//! All of it is pure: text, "now" and a zone in, seconds since the epoch out. [`Now::read`] is the one place (besides
//! the transport) that reads the machine's clock, once for a request. Times beyond it are integers; nothing above
//! this module parses a time or knows a calendar.

mod at;
mod bounds;
mod error;
mod interval;
mod zone;

use std::time::{SystemTime, UNIX_EPOCH};

pub use at::parse_time;
pub use bounds::TimeBounds;
pub use error::TimeError;
pub use interval::{Unit, parse_interval, unit_of};
pub use zone::{Civil, TimeZone};

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct Now;

impl Now {
    /// Reads the clock: whole seconds since the epoch. A request does this once and hands the number on, so that all
    /// its parts agree on what "now" is. A clock before 1970 reads as 0.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one reading of the clock")]
    pub fn read() -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }
}
