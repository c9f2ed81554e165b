//! Intervals and offsets: `5min`, `-1h`, `1d12h`.
//!
//! As in graphite-web a unit is known by its first letters (`h`, `hour` and `hullabaloo` are hours), a month has 30
//! days and a year 365, and a day is 86,400 s also where the clocks change.

use super::TimeError;

/// The longest interval, in seconds (Python's limit of 999,999,999 days).
const LONGEST: i64 = 999_999_999 * 86_400;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// `s…`
    Seconds,
    /// `min…`
    Minutes,
    /// `h…`
    Hours,
    /// `d…`
    Days,
    /// `w…`
    Weeks,
    /// `mon…`: 30 days in an interval.
    Months,
    /// `y…`: 365 days in an interval.
    Years,
}

impl Unit {
    /// Its length in an interval, in seconds.
    #[must_use]
    pub fn seconds(self) -> i64 {
        match self {
            Self::Seconds => 1,
            Self::Minutes => 60,
            Self::Hours => 3_600,
            Self::Days => 86_400,
            Self::Weeks => 7 * 86_400,
            Self::Months => 30 * 86_400,
            Self::Years => 365 * 86_400,
        }
    }
}

/// The unit that `text` begins with. What follows does not matter (`weeks3`, which `smartSummarize` aligns to, is a
/// unit and a day). Case matters: `1H` and `1M` are no intervals.
///
/// # Errors
/// No unit begins like this; for `m` and `M` the error says what to write instead.
pub fn unit_of(text: &str) -> Result<Unit, TimeError> {
    find_unit(text).ok_or_else(|| unit_error(text, text))
}

fn find_unit(text: &str) -> Option<Unit> {
    [
        ("s", Unit::Seconds),
        ("min", Unit::Minutes),
        ("h", Unit::Hours),
        ("d", Unit::Days),
        ("w", Unit::Weeks),
        ("mon", Unit::Months),
        ("y", Unit::Years),
    ]
    .into_iter()
    .find_map(|(prefix, unit)| text.starts_with(prefix).then_some(unit))
}

fn unit_error(text: &str, unit: &str) -> TimeError {
    let text = text.to_owned();
    match unit {
        "" => TimeError::MissingUnit(text),
        "m" | "M" | "mi" | "mo" => TimeError::AmbiguousUnit { text, unit: unit.to_owned() },
        _ => TimeError::UnknownUnit { text, unit: unit.to_owned() },
    }
}

/// The seconds that an interval stands for: an optional sign, then numbers and units (`90s`, `-1h`, `+1d12h`). The
/// sign holds for all of them. Empty text, or a sign alone, is 0 s.
///
/// # Errors
/// A number or a unit is missing or unknown, or the sum is out of range.
pub fn parse_interval(text: &str) -> Result<i64, TimeError> {
    let (sign, mut rest) = match text.as_bytes().first() {
        None => return Ok(0),
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        Some(first) if first.is_ascii_digit() => (1, text),
        Some(_) => return Err(TimeError::NotAnInterval(text.to_owned())),
    };
    let out_of_range = || TimeError::OutOfRange(text.to_owned());
    let mut total = 0_i64;
    while !rest.is_empty() {
        let (digits, after) = split_where(rest, |c| !c.is_ascii_digit());
        if digits.is_empty() {
            return Err(TimeError::MissingNumber(text.to_owned()));
        }
        let (letters, after) = split_where(after, |c| !c.is_alphabetic());
        let unit = find_unit(letters).ok_or_else(|| unit_error(text, letters))?;
        total = digits
            .parse::<i64>()
            .ok()
            .and_then(|number| number.checked_mul(unit.seconds()))
            .and_then(|seconds| total.checked_add(seconds))
            .filter(|total| *total <= LONGEST)
            .ok_or_else(out_of_range)?;
        rest = after;
    }
    Ok(sign * total)
}

/// `text` before and from the first character for which `stop` holds.
fn split_where(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn intervals_are_sums_of_numbers_with_units() {
        for (text, seconds) in [
            ("", 0),
            ("-", 0),
            ("+", 0),
            ("5min", 300),
            ("+1d", 86_400),
            ("-1h", -3_600),
            ("1h30min", 5_400),
            ("-1d2h", -93_600),
            ("2weeks", 1_209_600),
            ("1mon", 2_592_000),
            ("1y", 31_536_000),
            ("007s", 7),
            ("1decade", 86_400),
            ("1month1minute", 2_592_060),
        ] {
            assert_eq!(parse_interval(text), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, message) in [
            ("5m", "`m` in `5m` could be minutes or months; write `min` or `mon`"),
            ("-1M", "`M` in `-1M` could be minutes or months; write `min` or `mon`"),
            ("5", "`5` needs a unit after its number: s, min, h, d, w, mon or y"),
            ("-1.5h", "`-1.5h` needs a unit after its number: s, min, h, d, w, mon or y"),
            ("1h-30min", "`1h-30min` needs a whole number before each unit, as in `-1h` or `1d12h`"),
            ("--1h", "`--1h` needs a whole number before each unit, as in `-1h` or `1d12h`"),
            ("1x", "`x` in `1x` is not a unit; units are s, min, h, d, w, mon and y"),
            ("1H", "`H` in `1H` is not a unit; units are s, min, h, d, w, mon and y"),
            ("min", "`min` is not an interval such as `5min`, `-1h` or `1d12h`"),
            ("999999999999d", "`999999999999d` is out of range"),
            ("99999999999999999999s", "`99999999999999999999s` is out of range"),
        ] {
            assert_eq!(parse_interval(text).map_err(|e| e.to_string()), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn units_are_known_by_their_first_letters() {
        for (text, unit) in [
            ("seconds", Unit::Seconds),
            ("min", Unit::Minutes),
            ("hour", Unit::Hours),
            ("days", Unit::Days),
            ("weeks3", Unit::Weeks),
            ("month", Unit::Months),
            ("years", Unit::Years),
        ] {
            assert_eq!(unit_of(text), Ok(unit));
        }
        assert!(unit_of("").is_err() && unit_of("m").is_err() && unit_of("Days").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+0-9a-zé. ]{0,24}|.{0,24}") {
            let _ = parse_interval(&text);
            let _ = unit_of(&text);
        }
    }
}
