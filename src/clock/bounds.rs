//! The time range of a request.

use super::{TimeError, TimeZone, parse_time};
use crate::series::TimeRange;

/// What a request asked when it said `from`, `until` and `now`, as numbers. Made once, at the start of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeBounds {
    range: TimeRange,
    now: i64,
}

impl TimeBounds {
    /// Reads the parameters. `from` is a day ago and `until` is now when they are absent; an empty one is now. Those
    /// in the wrong order are swapped. `read_now` is the clock (see [`super::Now`]); a `now` parameter replaces it.
    ///
    /// # Errors
    /// A parameter cannot be read (the error names it), or `from` and `until` are the same second.
    pub fn resolve(
        from: Option<&str>,
        until: Option<&str>,
        now: Option<&str>,
        zone: &TimeZone,
        read_now: i64,
    ) -> Result<Self, TimeError> {
        let read = |name, text: &str, now| parse_time(text, now, zone).map_err(|e| e.of_parameter(name));
        let now = now.map_or(Ok(read_now), |text| read("now", text, read_now))?;
        let until = until.map_or(Ok(now), |text| read("until", text, now))?;
        let from = read("from", from.unwrap_or("-1d"), now)?;
        let range = TimeRange::new(from.min(until), from.max(until)).ok_or(TimeError::EmptyRange(from))?;
        Ok(Self { range, now })
    }

    /// The range, never empty.
    #[must_use]
    pub fn range(self) -> TimeRange {
        self.range
    }

    /// Its start, seconds since the epoch; exclusive.
    #[must_use]
    pub fn from(self) -> i64 {
        self.range.from()
    }

    /// Its end, seconds since the epoch; inclusive.
    #[must_use]
    pub fn until(self) -> i64 {
        self.range.until()
    }

    /// What the request takes for now, seconds since the epoch.
    #[must_use]
    pub fn now(self) -> i64 {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_699_999_200;

    fn resolve(from: Option<&str>, until: Option<&str>, now: Option<&str>) -> Result<(i64, i64, i64), String> {
        TimeBounds::resolve(from, until, now, &TimeZone::utc(), NOW)
            .map(|b| (b.from(), b.until(), b.now()))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_and_order() {
        assert_eq!(resolve(None, None, None), Ok((NOW - 86_400, NOW, NOW)));
        assert_eq!(resolve(Some("now"), Some("-1h"), None), Ok((NOW - 3_600, NOW, NOW)));
        assert_eq!(resolve(Some("-1h"), Some("-"), None), Ok((NOW - 3_600, NOW, NOW)));
        assert_eq!(resolve(Some("-1h"), None, Some("1000000000")), Ok((999_996_400, 1_000_000_000, 1_000_000_000)));
        assert_eq!(resolve(Some("-1h"), None, Some("")), Ok((NOW - 3_600, NOW, NOW)));
        assert_eq!(resolve(Some("-10y"), Some("-9y"), None), Ok((NOW - 315_360_000, NOW - 283_824_000, NOW)));
    }

    #[test]
    fn what_is_refused() {
        let empty = Err("`from` and `until` are the same time (1699999200), so the time range is empty".to_owned());
        assert_eq!(resolve(Some("now"), None, None), empty);
        assert_eq!(resolve(Some(""), Some(""), None), empty);
        let error = resolve(Some("bogus"), None, None).expect_err("no such time");
        assert!(error.starts_with("parameter `from`: unknown time `bogus`;"), "{error}");
        let error = resolve(None, Some("-1m"), None).expect_err("no such unit");
        assert_eq!(error, "parameter `until`: `m` in `-1m` could be minutes or months; write `min` or `mon`");
        assert!(resolve(None, None, Some("1699999200.7")).is_err());
    }
}
