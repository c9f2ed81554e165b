//! Points in time: `now-1h`, `noon_yesterday`, `10:30_20231114`, `january 5`, seconds since the epoch…
//!
//! A time is a reference (time of day, then day) and an offset, which begins at the first `+`, or without one at the
//! first `-`. Case, spaces, commas and underscores do not matter. The reference is read with the calendar of a zone;
//! the offset is a number of seconds. This is graphite-web's grammar to the letter, prefixes included (`monsoon` is
//! Monday), but for noon and midnight: here `12pm` is noon and `12am` midnight.

use super::{Civil, TimeError, TimeZone, parse_interval};

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// In ISO order.
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The first and the last second of the years 1 to 9999.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

/// Reads a time: seconds since the epoch. `now` is what it is relative to, likewise. Empty text and a sign alone are
/// now. Eight digits are a date where they can be (`20231114`), all other digits are seconds since the epoch.
///
/// # Errors
/// The text is no time; the error names the part that is wrong.
pub fn parse_time(text: &str, now: i64, zone: &TimeZone) -> Result<i64, TimeError> {
    let text: String = text.trim().to_lowercase().chars().filter(|c| !matches!(c, '_' | ',' | ' ')).collect();
    let in_range = |time: Option<i64>| {
        time.filter(|time| (FIRST..=LAST).contains(time)).ok_or_else(|| TimeError::OutOfRange(text.clone()))
    };
    if all_digits(&text) && !looks_like_date(&text) {
        return in_range(text.parse().ok());
    }
    let (reference, offset) = text.split_at(text.find('+').or_else(|| text.find('-')).unwrap_or(text.len()));
    let start = if reference.is_empty() || reference == "now" { now } else { parse_reference(reference, now, zone)? };
    in_range(start.checked_add(parse_interval(offset)?))
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn looks_like_date(digits: &str) -> bool {
    digits.len() == 8 && &digits[..4] > "1900" && &digits[4..6] < "13" && &digits[6..] < "32"
}

/// A time of day, a day, or both.
fn parse_reference(reference: &str, now: i64, zone: &TimeZone) -> Result<i64, TimeError> {
    if !reference.is_ascii() {
        return Err(TimeError::UnknownReference(reference.to_owned()));
    }
    let bad_time = || TimeError::BadTimeOfDay(reference.to_owned());
    let (hour, minute, day) = parse_time_of_day(reference).ok_or_else(bad_time)?;
    let today = zone.local(now).at(hour, minute).ok_or_else(bad_time)?;

    let bad_date = || TimeError::BadDate(reference.to_owned());
    let number = |digits: &str| if all_digits(digits) { digits.parse::<i64>().ok() } else { None };
    let date = |year, month, day| Civil::new(year, month, day, hour, minute, 0).ok_or_else(bad_date);

    let civil = if matches!(day, "" | "today") {
        today
    } else if day == "yesterday" {
        today.plus_days(-1).ok_or_else(bad_date)?
    } else if day == "tomorrow" {
        today.plus_days(1).ok_or_else(bad_date)?
    } else if day.matches('/').count() == 2 {
        let mut parts = day.split('/').map(number);
        let mut next = || parts.next().flatten().ok_or_else(bad_date);
        let (month, day, year) = (next()?, next()?, next()?);
        date(full_year(year), month, day)?
    } else if day.len() == 8 && all_digits(day) {
        let part = |range| number(&day[range]).ok_or_else(bad_date);
        date(part(0..4)?, part(4..6)?, part(6..8)?)?
    } else if let Some(month) = MONTHS.iter().position(|name| day.starts_with(name)) {
        let missing = || TimeError::MissingDay(reference.to_owned());
        // The day is the last two characters, or the last one, whatever stands between.
        let day = number(&day[day.len() - 2..]).or_else(|| number(&day[day.len() - 1..])).ok_or_else(missing)?;
        date(today.year(), month as i64 + 1, day)?
    } else if let Some(weekday) = WEEKDAYS.iter().position(|name| day.starts_with(name)) {
        let back = (today.weekday() - (weekday as i64 + 1)).rem_euclid(7);
        today.plus_days(-back).ok_or_else(bad_date)?
    } else {
        return Err(TimeError::UnknownReference(reference.to_owned()));
    };
    Ok(zone.timestamp(civil))
}

/// Hour, minute and what follows the time of day; 00:00 when there is none. `None` when hour or minute is no number.
/// Both may still be too large.
fn parse_time_of_day(reference: &str) -> Option<(i64, i64, &str)> {
    let number = |digits: &str| if all_digits(digits) { digits.parse::<i64>().ok() } else { None };
    let at = |text: &str, mark: &str| text.find(mark).filter(|at| (1..=2).contains(at));
    let (mut hour, mut minute, mut rest) = (0, 0, reference);
    if let Some(colon) = at(rest, ":") {
        let end = (colon + 3).min(rest.len());
        hour = number(&rest[..colon])?;
        minute = number(&rest[colon + 1..end])?;
        rest = &rest[end..];
        if let Some(after) = rest.strip_prefix("am") {
            (hour, rest) = (morning(hour), after);
        } else if let Some(after) = rest.strip_prefix("pm") {
            (hour, rest) = (afternoon(hour), after);
        }
    }
    if let Some(end) = at(rest, "am") {
        (hour, rest) = (morning(number(&rest[..end])?), &rest[end + 2..]);
    }
    if let Some(end) = at(rest, "pm") {
        (hour, rest) = (afternoon(number(&rest[..end])?), &rest[end + 2..]);
    }
    for (name, named_hour) in [("noon", 12), ("midnight", 0), ("teatime", 16)] {
        if let Some(after) = rest.strip_prefix(name) {
            return Some((named_hour, 0, after));
        }
    }
    Some((hour, minute, rest))
}

fn morning(hour: i64) -> i64 {
    if hour == 12 { 0 } else { hour }
}

fn afternoon(hour: i64) -> i64 {
    if hour == 12 { 12 } else { (hour + 12) % 24 }
}

/// The year that `MM/DD/YY` means: years before 1900 count from there, and what is before 1970 then is a century
/// later.
fn full_year(year: i64) -> i64 {
    let year = if year < 1900 { year + 1900 } else { year };
    if year < 1970 { year + 100 } else { year }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_699_999_200;

    fn utc(text: &str) -> Result<i64, String> {
        parse_time(text, NOW, &TimeZone::utc()).map_err(|e| e.to_string())
    }

    /// `text`, `now`, zone and answer, as graphite-web's own parser gives them; `-` where it refuses.
    #[test]
    fn as_graphite_reads_them() {
        let (mut seen, mut wrong) = (0, Vec::new());
        for line in include_str!("../../tests/clock/times.tsv").lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [text, now, zone, expected] = fields[..] else { panic!("four fields: {line}") };
            let zone = TimeZone::named(zone).expect("a known zone");
            let ours = parse_time(text, now.parse().expect("a number"), &zone);
            if ours.as_ref().ok().copied() != expected.parse().ok() {
                wrong.push(format!("{line}: {ours:?}"));
            }
            seen += 1;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(seen > 500, "{seen} lines");
    }

    /// Times that Graphite servers are known to have read wrongly.
    #[test]
    fn days_zones_and_epochs() {
        let read = |text, now, zone| parse_time(text, now, &TimeZone::named(zone).expect("a known zone"));
        // Absolute times have the offset of their own day, not today's.
        assert_eq!(read("16:15_20140625", NOW, "America/Montreal"), Ok(1_403_727_300));
        assert_eq!(read("01:00_20140410", NOW, "Europe/Berlin"), Ok(1_397_084_400));
        // A day is 24 hours: 2015-03-08 12:00 EDT less a day is 11:00 EST.
        assert_eq!(read("-1d", 1_425_830_400, "America/New_York"), Ok(1_425_744_000));
        // A month is 30 days: 2015-03-31 less a month is 2015-03-01.
        assert_eq!(read("-1mon", 1_427_760_000, "UTC"), Ok(1_425_168_000));
        // Eight digits are a date where they can be.
        assert_eq!(read("20140410", NOW, "UTC"), Ok(1_397_088_000));
        assert_eq!(read("12345678", NOW, "UTC"), Ok(12_345_678));
    }

    /// Here we differ from graphite-web, where 12pm is midnight.
    #[test]
    fn twelve_pm_is_noon() {
        let midnight = 1_699_920_000;
        for (text, hours) in [
            ("12pm", 12.0),
            ("12am", 0.0),
            ("12:30pm", 12.5),
            ("12:30am", 0.5),
            ("12pm_today", 12.0),
            ("12am tomorrow", 24.0),
            ("12pm_20231114", 12.0),
            ("11pm", 23.0),
            ("0am", 0.0),
        ] {
            assert_eq!(utc(text), Ok(midnight + (hours * 3_600.0) as i64), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            ("last_monday", "unknown time `lastmonday`;"),
            ("2023-11-14", "unknown time `2023`;"),
            ("−1h", "unknown time `−1h`;"),
            ("1699990000.5", "unknown time `1699990000.5`;"),
            ("noon+yesterday", "`+yesterday` needs a whole number before each unit"),
            ("-1m", "`m` in `-1m` could be minutes or months; write `min` or `mon`"),
            ("-5", "`-5` needs a unit after its number"),
            ("25:00", "`25:00` is not a time of day"),
            ("10:99", "`10:99` is not a time of day"),
            ("feb_30", "`feb30` is not a date"),
            ("13/13/2023", "`13/13/2023` is not a date"),
            ("20230231", "`20230231` is not a date"),
            ("january", "`january` needs a day of the month"),
            ("1699990000000", "`1699990000000` is out of range"),
            ("now-99999y", "`now-99999y` is out of range"),
        ] {
            let error = utc(text).expect_err(text);
            assert!(error.starts_with(message) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn now_in_all_its_spellings() {
        for text in ["", "now", "-", "+", "now-", "now+", " NOW ", "_", "-0s", "n_o,w"] {
            assert_eq!(utc(text), Ok(NOW), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in "[-+0-9a-z:/_ ,]{0,16}|(1?[0-9](:[0-9]{1,2})?(am|pm)?)(mon|jan|noon|today|[0-9/]{0,10})[-+]?.{0,6}|.{0,16}",
            now in any::<i64>(),
        ) {
            for zone in ["UTC", "Australia/Lord_Howe"] {
                let _ = parse_time(&text, now, &TimeZone::named(zone).expect("a known zone"));
            }
        }

        #[test]
        fn offsets_are_exact(seconds in 0_i64..100_000_000, zone in prop::sample::select(vec!["UTC", "Europe/Berlin"])) {
            let zone = TimeZone::named(zone).expect("a known zone");
            prop_assert_eq!(parse_time(&format!("-{seconds}s"), NOW, &zone), Ok(NOW - seconds));
            prop_assert_eq!(parse_time(&format!("now+{seconds}s"), NOW, &zone), Ok(NOW + seconds));
            prop_assert_eq!(parse_time(&(NOW - seconds).to_string(), 0, &zone), Ok(NOW - seconds));
        }
    }
}
