//! Time zones and the calendar.
//!
//! The zones' rules are a part of the program, so that every machine answers the same. Where a wall clock shows a
//! time twice or never, the choice is that of graphite-web, which reads it as standard time.

use std::fmt;
use std::sync::LazyLock;

use jiff::fmt::strtime::{BrokenDownTime, Config};
use jiff::tz::{AmbiguousOffset, Offset, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, civil};

use super::Unit;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone(jiff::tz::TimeZone);

impl TimeZone {
    /// The zone with this IANA name (`Europe/Berlin`), in any case; `None` when there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ZONES.get(name).ok().filter(|zone| !zone.is_unknown()).map(Self)
    }

    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self(jiff::tz::TimeZone::UTC)
    }

    /// Its IANA name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// What calendar and clock show at `time` (seconds since the epoch). Times beyond the years -9999 to 9999 read as
    /// the nearest of them.
    #[must_use]
    pub fn local(&self, time: i64) -> Civil {
        Civil(self.0.to_datetime(instant(time)))
    }

    /// When calendar and clock show this, in seconds since the epoch. What they show twice (clocks go back) is the
    /// one in standard time, which is mostly the later one; what they skip (clocks go forward) is read with the offset
    /// in force before.
    #[must_use]
    pub fn timestamp(&self, civil: Civil) -> i64 {
        let with = |offset: Offset| civil.seconds() - i64::from(offset.seconds());
        match self.0.to_ambiguous_timestamp(civil.0).offset() {
            AmbiguousOffset::Unambiguous { offset } => with(offset),
            AmbiguousOffset::Gap { before, .. } => with(before),
            AmbiguousOffset::Fold { before, after } => {
                let (first, second) = (with(before), with(after));
                if self.is_dst(second) && !self.is_dst(first) { first } else { second }
            }
        }
    }

    /// The time at which this zone's clock shows what `other`'s shows at `time`: what C's `mktime` makes, in this
    /// zone, of a date that was broken down in `other`. Where the one had daylight saving time and the other has not,
    /// `mktime` reads the date with the offset of the season that it was broken down in. Some functions of
    /// graphite-web pass the request's times through this.
    #[must_use]
    pub fn reread(&self, other: &TimeZone, time: i64) -> i64 {
        if self == other {
            return time;
        }
        let civil = other.local(time);
        let saving = other.is_dst(time);
        let plain = self.timestamp(civil);
        if self.is_dst(plain) == saving {
            return plain;
        }
        civil.seconds() - self.offset_of_season(saving, plain)
    }

    /// The UTC offset that is in force around `time` with daylight saving time, or without; an hour from the only one
    /// where there is no such season within eight years.
    fn offset_of_season(&self, saving: bool, time: i64) -> i64 {
        const NEAR: i64 = 268_828_200;
        let at = instant(time);
        let near = |t: &Timestamp| (t.as_second() - time).abs() <= NEAR;
        let before = self.0.preceding(at).map(|t| (t.timestamp(), t.dst(), t.offset()));
        let after = self.0.following(at).map(|t| (t.timestamp(), t.dst(), t.offset()));
        let season = before
            .take_while(|(t, ..)| near(t))
            .chain(after.take_while(|(t, ..)| near(t)))
            .find(|(_, dst, _)| dst.is_dst() == saving);
        match season {
            Some((_, _, offset)) => i64::from(offset.seconds()),
            None => self.offset(time) + if saving { 3_600 } else { -3_600 },
        }
    }

    /// What calendar and clock show at `time`, by a `strftime` format. Directives that do not exist stay as they are.
    #[must_use]
    pub fn format(&self, time: i64, format: &str) -> String {
        let shown = BrokenDownTime::from(&instant(time).to_zoned_datetime(self.0.clone()));
        shown.to_string_with_config(&Config::new().lenient(true), format).unwrap_or_else(|_| format.to_owned())
    }

    /// Whether daylight saving time is in force at `time` (seconds since the epoch).
    #[must_use]
    pub fn is_dst(&self, time: i64) -> bool {
        self.0.to_offset_info(instant(time)).dst().is_dst()
    }

    /// Seconds by which the clock is ahead of UTC at `time`.
    #[must_use]
    pub fn offset(&self, time: i64) -> i64 {
        i64::from(self.0.to_offset(instant(time)).seconds())
    }

    /// The start of the unit (hour, day, month…) that `time` lies in. A week starts at `weekday` (1 is Monday, 7 is
    /// Sunday), which no other unit looks at. The UTC offset is that in force at `when`, also when the clocks were
    /// changed in between: graphite-web keeps the offset of the request while it shifts times.
    #[must_use]
    pub fn start_of(&self, unit: Unit, weekday: i64, time: i64, when: i64) -> i64 {
        let offset = self.offset(when);
        let local = Self::utc().local(time.saturating_add(offset));
        let date = local.0.date();
        let of_day = local.seconds().rem_euclid(86_400);
        let midnight = local.seconds() - of_day;
        let start = match unit {
            Unit::Seconds => local.seconds(),
            Unit::Minutes => midnight + of_day - of_day % 60,
            Unit::Hours => midnight + of_day - of_day % 3_600,
            Unit::Days => midnight,
            Unit::Weeks => {
                let days = local.weekday() - weekday;
                midnight - 86_400 * if days < 0 { days + 7 } else { days }
            }
            Unit::Months => Civil(date.first_of_month().to_datetime(civil::Time::midnight())).seconds(),
            Unit::Years => Civil(date.first_of_year().to_datetime(civil::Time::midnight())).seconds(),
        };
        start - offset
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn instant(time: i64) -> Timestamp {
    Timestamp::from_second(time).unwrap_or(if time < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// What calendar and clock show somewhere, to the second. Written as `2023-11-14 22:00:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Civil(civil::DateTime);

impl Civil {
    /// `None` when no calendar or clock shows it; years go from 1 to 9999.
    #[must_use]
    pub fn new(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<Self> {
        let small = |number: i64| i8::try_from(number).ok();
        let year = i16::try_from(year).ok().filter(|year| *year >= 1)?;
        civil::DateTime::new(year, small(month)?, small(day)?, small(hour)?, small(minute)?, small(second)?, 0)
            .ok()
            .map(Self)
    }

    /// The same date at another time of day; `None` when no clock shows it.
    #[must_use]
    pub fn at(self, hour: i64, minute: i64) -> Option<Self> {
        Self::new(self.year(), self.month(), self.day(), hour, minute, 0)
    }

    /// The same time of day, `days` later (negative: earlier); `None` beyond the years 1 to 9999.
    #[must_use]
    pub fn plus_days(self, days: i64) -> Option<Self> {
        let moved = self.0.checked_add(SignedDuration::from_secs(days.checked_mul(86_400)?)).ok()?;
        (moved.year() >= 1).then_some(Self(moved))
    }

    /// The year.
    #[must_use]
    pub fn year(self) -> i64 {
        self.0.year().into()
    }

    /// The month, 1 to 12.
    #[must_use]
    pub fn month(self) -> i64 {
        self.0.month().into()
    }

    /// The day of the month, 1 to 31.
    #[must_use]
    pub fn day(self) -> i64 {
        self.0.day().into()
    }

    /// The hour, 0 to 23.
    #[must_use]
    pub fn hour(self) -> i64 {
        self.0.hour().into()
    }

    /// The minute, 0 to 59.
    #[must_use]
    pub fn minute(self) -> i64 {
        self.0.minute().into()
    }

    /// The second, 0 to 59.
    #[must_use]
    pub fn second(self) -> i64 {
        self.0.second().into()
    }

    /// The ISO day of the week: 1 is Monday, 7 is Sunday.
    #[must_use]
    pub fn weekday(self) -> i64 {
        self.0.weekday().to_monday_one_offset().into()
    }

    /// The day of the year, 1 to 366.
    #[must_use]
    pub fn day_of_year(self) -> i64 {
        self.0.day_of_year().into()
    }

    /// Seconds since 1970-01-01 00:00:00 on the same clock, as if it were UTC.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.0.duration_since(civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs()
    }
}

impl fmt::Display for Civil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.0;
        let (year, month, day) = (t.year(), t.month(), t.day());
        write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", t.hour(), t.minute(), t.second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::named(name).expect("a known zone")
    }

    #[test]
    fn names_are_those_of_iana() {
        assert_eq!(zone("europe/berlin").name(), "Europe/Berlin");
        assert_eq!(zone("utc"), TimeZone::utc());
        for name in ["Etc/GMT+5", "EST", "US/Pacific", "Australia/Lord_Howe"] {
            assert_eq!(zone(name).to_string(), name);
        }
        for name in ["", "Bogus/Zone", "UTC+1", "Etc/Unknown", "../etc/passwd", "Local"] {
            assert_eq!(TimeZone::named(name), None, "{name}");
        }
    }

    /// Values are those of pytz.
    #[test]
    fn clocks_that_change() {
        let berlin = zone("Europe/Berlin");
        let at = |zone: &TimeZone, day: (i64, i64, i64), hour, minute| {
            zone.timestamp(Civil::new(day.0, day.1, day.2, hour, minute, 0).expect("valid"))
        };
        // 02:30 is shown twice: the one in standard time.
        assert_eq!(at(&berlin, (2023, 10, 29), 2, 30), 1_698_543_000);
        // 02:30 is skipped: read with the offset before, so it is 03:30.
        assert_eq!(at(&berlin, (2023, 3, 26), 2, 30), 1_679_794_200);
        assert_eq!(berlin.local(1_679_794_200).to_string(), "2023-03-26 03:30:00");
        assert_eq!(at(&zone("America/New_York"), (2023, 3, 12), 2, 30), 1_678_606_200);
        assert_eq!(at(&zone("America/New_York"), (2023, 11, 5), 1, 30), 1_699_165_800);
        // Half an hour of daylight saving.
        assert_eq!(at(&zone("Australia/Lord_Howe"), (2023, 10, 1), 2, 15), 1_696_088_700);
        assert_eq!(at(&zone("Australia/Lord_Howe"), (2023, 4, 2), 1, 45), 1_680_362_100);
        assert!(berlin.is_dst(1_690_000_000) && !berlin.is_dst(1_700_000_000));
        assert_eq!((berlin.offset(1_690_000_000), berlin.offset(1_700_000_000)), (7_200, 3_600));
    }

    /// Values are those of glibc's `mktime` with `tm_isdst` as the other zone had it.
    #[test]
    fn clocks_read_in_another_zone() {
        let (utc, berlin, new_york) = (TimeZone::utc(), zone("Europe/Berlin"), zone("America/New_York"));
        // 12:00 on the 1st of July, daylight saving, and on the 10th of January in Berlin.
        let (summer, winter) = (1_688_205_600, 1_673_348_400);
        assert_eq!((utc.reread(&berlin, summer), utc.reread(&berlin, winter)), (1_688_209_200, 1_673_352_000));
        assert_eq!(
            (new_york.reread(&berlin, summer), new_york.reread(&berlin, winter)),
            (1_688_227_200, 1_673_370_000)
        );
        // 12:00 UTC on the same days.
        assert_eq!((berlin.reread(&utc, 1_688_212_800), berlin.reread(&utc, 1_673_352_000)), (summer + 3_600, winter));
        // 02:30 in Berlin on the day when New York's clocks have not gone back yet: read as standard time.
        assert_eq!(new_york.reread(&berlin, 1_698_543_000), 1_698_564_600);
        assert_eq!(zone("Australia/Lord_Howe").reread(&berlin, winter), 1_673_314_200);
        assert_eq!(zone("Asia/Kolkata").reread(&zone("Asia/Kolkata"), summer), summer);
        for time in [i64::MIN, i64::MAX] {
            let _ = berlin.reread(&new_york, time);
        }
    }

    #[test]
    fn starts_of_units() {
        let berlin = zone("Europe/Berlin");
        // Tuesday, 2023-11-14 23:12:34 in Berlin.
        let time = 1_699_999_954;
        let start = |unit, weekday| berlin.local(berlin.start_of(unit, weekday, time, time)).to_string();
        assert_eq!(berlin.local(time).to_string(), "2023-11-14 23:12:34");
        assert_eq!(start(Unit::Seconds, 1), "2023-11-14 23:12:34");
        assert_eq!(start(Unit::Minutes, 1), "2023-11-14 23:12:00");
        assert_eq!(start(Unit::Hours, 1), "2023-11-14 23:00:00");
        assert_eq!(start(Unit::Days, 1), "2023-11-14 00:00:00");
        assert_eq!(start(Unit::Weeks, 1), "2023-11-13 00:00:00");
        assert_eq!(start(Unit::Weeks, 2), "2023-11-14 00:00:00");
        assert_eq!(start(Unit::Weeks, 3), "2023-11-08 00:00:00");
        assert_eq!(start(Unit::Months, 1), "2023-11-01 00:00:00");
        // The offset is still that of November, so January's midnight is right and July's would be an hour late.
        assert_eq!(start(Unit::Years, 1), "2023-01-01 00:00:00");
        let then = berlin.timestamp(Civil::new(2023, 10, 30, 0, 0, 0).expect("valid"));
        let october = berlin.start_of(Unit::Months, 1, then, then);
        assert_eq!(berlin.local(october).to_string(), "2023-10-01 01:00:00");
    }

    #[test]
    fn far_times_do_not_panic() {
        for time in [i64::MIN, i64::MAX, -1, 253_402_300_800] {
            for unit in [Unit::Days, Unit::Weeks, Unit::Years] {
                let _ = (zone("Asia/Tokyo").local(time), zone("Asia/Tokyo").start_of(unit, 1, time, time));
            }
        }
        assert_eq!(Civil::new(2023, 2, 29, 0, 0, 0), None);
        assert_eq!(Civil::new(9999, 12, 31, 0, 0, 0).and_then(|d| d.plus_days(1)), None);
        assert_eq!(Civil::new(1, 1, 1, 0, 0, 0).and_then(|d| d.plus_days(-1)), None);
    }
}
