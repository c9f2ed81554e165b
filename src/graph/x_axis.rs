//! The x axis: which times are labelled and have grid lines, by how many seconds a pixel is.

use crate::clock::TimeZone;

const SECOND: i64 = 1;
const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
const NO_LIMIT: i64 = i64::MAX;

/// Seconds from the epoch.
const FURTHEST: i64 = 1 << 52;

/// One way to divide time; distances in seconds.
struct Division {
    /// Used from this many seconds a pixel on,
    seconds_per_pixel: f64,
    /// and up to this many seconds in all.
    longest: i64,
    minor: Every,
    major: Every,
    label: Every,
    format: &'static str,
}

/// A multiple of a unit. Multiples of seconds, minutes and hours begin with the unit above; of days, on the first day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Every {
    unit: i64,
    step: i64,
}

const fn every(number: i64, unit: i64) -> Every {
    Every { unit, step: number * unit }
}

const fn division(
    seconds_per_pixel: f64,
    longest: i64,
    minor: Every,
    major: Every,
    label: Every,
    format: &'static str,
) -> Division {
    Division { seconds_per_pixel, longest, minor, major, label, format }
}

const TIME_OF_DAY: &str = "%H:%M";
const DATE: &str = "%m/%d";
const DATE_WITH_YEAR: &str = "%m/%d %Y";

/// By seconds a pixel, ascending; the last that fits counts. The numbers are those that users of graphite-web (and of
/// rrdtool before it) know.
#[rustfmt::skip]
const DIVISIONS: &[Division] = &[
    division(0.0,       10 * MINUTE, every(5, SECOND),   every(1, MINUTE),  every(5, SECOND),  "%H:%M:%S"),
    division(0.07,      20 * MINUTE, every(10, SECOND),  every(1, MINUTE),  every(10, SECOND), "%H:%M:%S"),
    division(0.14,      30 * MINUTE, every(15, SECOND),  every(1, MINUTE),  every(15, SECOND), "%H:%M:%S"),
    division(0.27,      2 * HOUR,    every(30, SECOND),  every(2, MINUTE),  every(1, MINUTE),  TIME_OF_DAY),
    division(0.5,       2 * HOUR,    every(1, MINUTE),   every(2, MINUTE),  every(1, MINUTE),  TIME_OF_DAY),
    division(1.2,       3 * HOUR,    every(1, MINUTE),   every(4, MINUTE),  every(2, MINUTE),  TIME_OF_DAY),
    division(2.0,       6 * HOUR,    every(1, MINUTE),   every(10, MINUTE), every(5, MINUTE),  TIME_OF_DAY),
    division(5.0,       12 * HOUR,   every(2, MINUTE),   every(10, MINUTE), every(10, MINUTE), TIME_OF_DAY),
    division(10.0,      DAY,         every(5, MINUTE),   every(20, MINUTE), every(20, MINUTE), TIME_OF_DAY),
    division(30.0,      2 * DAY,     every(10, MINUTE),  every(1, HOUR),    every(1, HOUR),    TIME_OF_DAY),
    division(60.0,      2 * DAY,     every(30, MINUTE),  every(2, HOUR),    every(2, HOUR),    TIME_OF_DAY),
    division(100.0,     6 * DAY,     every(2, HOUR),     every(4, HOUR),    every(4, HOUR),    "%a %H:%M"),
    division(255.0,     10 * DAY,    every(6, HOUR),     every(12, HOUR),   every(12, HOUR),   "%m/%d %H:%M"),
    division(600.0,     14 * DAY,    every(6, HOUR),     every(1, DAY),     every(1, DAY),     DATE),
    division(1000.0,    365 * DAY,   every(12, HOUR),    every(1, DAY),     every(1, DAY),     DATE),
    division(2000.0,    365 * DAY,   every(1, DAY),      every(2, DAY),     every(2, DAY),     DATE),
    division(4000.0,    365 * DAY,   every(2, DAY),      every(4, DAY),     every(4, DAY),     DATE),
    division(8000.0,    365 * DAY,   Every { unit: DAY, step: 7 * DAY / 2 }, every(7, DAY), every(7, DAY), DATE),
    division(16_000.0,  365 * DAY,   every(7, DAY),      every(14, DAY),    every(14, DAY),    DATE),
    division(32_000.0,  365 * DAY,   every(15, DAY),     every(30, DAY),    every(30, DAY),    DATE),
    division(64_000.0,  NO_LIMIT,    every(30, DAY),     every(60, DAY),    every(60, DAY),    DATE_WITH_YEAR),
    division(100_000.0, NO_LIMIT,    every(60, DAY),     every(120, DAY),   every(120, DAY),   DATE_WITH_YEAR),
    division(120_000.0, NO_LIMIT,    every(120, DAY),    every(240, DAY),   every(240, DAY),   DATE_WITH_YEAR),
];

/// Times in seconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct XAxis {
    pub minor: Vec<i64>,
    pub major: Vec<i64>,
    pub labels: Vec<(i64, String)>,
}

impl XAxis {
    /// The axis from `start` to `end`, `width` pixels wide, as a clock in `zone` shows it. `format` is a `strftime`
    /// format instead of the one that suits the range.
    pub fn new(start: i64, end: i64, width: f64, zone: &TimeZone, format: Option<&str>) -> Self {
        // No calendar goes further, and arithmetic within these bounds cannot overflow.
        let (start, end) = (start.clamp(-FURTHEST, FURTHEST), end.clamp(-FURTHEST, FURTHEST));
        let seconds = (end - start).max(1);
        let per_pixel = seconds as f64 / width.max(1.0);
        let fits = |d: &&Division| d.seconds_per_pixel <= per_pixel && d.longest >= seconds;
        let last = &DIVISIONS[DIVISIONS.len() - 1];
        let mut division = DIVISIONS.iter().rev().find(fits).unwrap_or(last);
        if seconds / division.minor.step > 2_000 {
            division = last;
        }
        let format = format.unwrap_or(division.format);
        let labels = division.label.times(start, end, zone);
        Self {
            minor: division.minor.times(start, end, zone),
            major: division.major.times(start, end, zone),
            labels: labels.into_iter().map(|time| (time, zone.format(time, format))).collect(),
        }
    }
}

impl Every {
    /// The times at which a clock in `zone` shows a multiple, from `start` to before `end`; at most a few thousand.
    /// Steps are those of the clock on the wall, so that midnight stays midnight when the clocks change.
    fn times(self, start: i64, end: i64, zone: &TimeZone) -> Vec<i64> {
        let local = start.saturating_add(zone.offset(start));
        let first = match self.unit {
            DAY => local - local.rem_euclid(DAY),
            _ => {
                let above = if self.unit == HOUR { DAY } else { self.unit * 60 };
                local - local.rem_euclid(above).rem_euclid(self.step)
            }
        };
        let mut times = Vec::new();
        for i in 0..5_000 {
            let shown = first.saturating_add(self.step.saturating_mul(i));
            let guess = shown.saturating_sub(zone.offset(shown));
            let time = shown.saturating_sub(zone.offset(guess));
            if time >= end {
                break;
            }
            if time >= start && times.last().is_none_or(|last| *last < time) {
                times.push(time);
            }
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14 22:00:00 UTC, a Tuesday.
    const T: i64 = 1_699_999_200;

    fn labels(start: i64, end: i64, width: f64) -> Vec<String> {
        XAxis::new(start, end, width, &TimeZone::utc(), None).labels.into_iter().map(|(_, text)| text).collect()
    }

    /// One row a range that people ask for, 730 pixels wide: the seconds a pixel choose the division.
    #[test]
    fn labels_by_range() {
        // 0.41 s a pixel: each minute.
        assert_eq!(labels(T - 300, T, 730.0), ["21:55", "21:56", "21:57", "21:58", "21:59"]);
        // 0.08: each 10 seconds.
        assert_eq!(labels(T - 60, T, 730.0)[..2], ["21:59:00", "21:59:10"]);
        // 4.9: each 5 minutes, the end itself has none.
        assert_eq!(labels(T - 3600, T, 730.0)[..3], ["21:00", "21:05", "21:10"]);
        assert_eq!(labels(T - 3600, T, 730.0).len(), 12);
        // 29.6: each 20 minutes.
        assert_eq!(labels(T - 6 * 3600, T, 730.0)[..2], ["16:00", "16:20"]);
        // 118: each 4 hours, with the day.
        assert_eq!(
            labels(T - 86_400, T, 730.0),
            ["Tue 00:00", "Tue 04:00", "Tue 08:00", "Tue 12:00", "Tue 16:00", "Tue 20:00"]
        );
        // 828: each day.
        assert_eq!(labels(T - 7 * 86_400, T, 730.0)[..2], ["11/08", "11/09"]);
        // 3551: each second day, counted from the first.
        assert_eq!(labels(T - 30 * 86_400, T, 730.0)[..2], ["10/17", "10/19"]);
        // 43 200: each 30 days.
        assert_eq!(labels(T - 365 * 86_400, T, 730.0)[..2], ["12/14", "01/13"]);
        // 432 000: each 240 days.
        assert_eq!(labels(T - 3650 * 86_400, T, 730.0)[..1], ["07/14 2014"]);
    }

    #[test]
    fn the_zone_and_the_format_count() {
        let tokyo = TimeZone::named("Asia/Tokyo").expect("known");
        let axis = XAxis::new(T - 3600, T, 730.0, &tokyo, None);
        assert_eq!(axis.labels[0], (T - 3600, "06:00".to_owned()));
        let axis = XAxis::new(T - 3600, T, 730.0, &tokyo, Some("%Y %d %b %!"));
        assert_eq!(axis.labels[0].1, "2023 15 Nov %!");
        assert_eq!(axis.major.len(), 6);
        assert_eq!(axis.minor.len(), 60);
    }

    /// In Berlin the clocks went back on 2023-10-29 at 03:00: midnight stays midnight.
    #[test]
    fn midnight_stays_midnight() {
        let berlin = TimeZone::named("Europe/Berlin").expect("known");
        // From 2023-10-27 to 2023-11-02, 00:00 in Berlin.
        let axis = XAxis::new(1_698_357_600, 1_698_879_600, 600.0, &berlin, Some("%d %H:%M"));
        let texts: Vec<&str> = axis.labels.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["27 00:00", "28 00:00", "29 00:00", "30 00:00", "31 00:00", "01 00:00"]);
    }

    #[test]
    fn odd_ranges() {
        for (start, end) in [(0, 1), (5, 5), (10, 0), (i64::MIN, i64::MAX), (T, T + 400_000_000_000), (-86_400, 0)] {
            for width in [0.0, 1.0, 100.0, 20_000.0] {
                let axis = XAxis::new(start, end, width, &TimeZone::utc(), None);
                assert!(axis.minor.len() <= 5_000, "{start} {end} {width}");
            }
        }
    }
}
