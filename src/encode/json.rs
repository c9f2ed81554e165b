//! `format=json`: what Grafana reads.

use std::num::NonZeroU64;

use rayon::prelude::*;

use super::data::joined;
use super::max_data_points::{Points, thinned};
use super::writer::Writer;
use crate::series::Series;

/// How the JSON of a request is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JsonOptions {
    /// The most points a series should have (see [`super::max_data_points()`]); `None` is no limit.
    pub max_data_points: Option<NonZeroU64>,
    /// Leave points without a value out, and series without a point.
    pub no_null_points: bool,
    /// Indented.
    pub pretty: bool,
}

/// An array of `{"target", "tags", "datapoints": [[value, time], …]}`. Values that JSON cannot say are `null`. When no
/// series has any point, the array is empty.
#[must_use]
pub fn json(series: &[Series], options: JsonOptions) -> Vec<u8> {
    joined(json_parts(series, options))
}

/// The same as parts that follow each other. A large answer is written by several threads.
#[must_use]
pub fn json_parts(series: &[Series], options: JsonOptions) -> Vec<Vec<u8>> {
    let mut shown: Vec<(&Series, Points<'_>)> = Vec::new();
    if series.iter().any(|s| !s.is_empty()) {
        shown = series.iter().zip(thinned(series, options.max_data_points)).collect();
    }
    if options.no_null_points {
        shown.retain(|(_, points)| points.values.iter().any(|value| value.is_finite()));
    }
    let shares = shares(&shown);
    let last = shares.len() - 1;
    shares.par_iter().enumerate().map(|(n, share)| part(share, options, n == 0, n == last)).collect()
}

/// Points that are worth a part of their own: about a millisecond of writing.
const POINTS_A_PART: usize = 32 * 1024;

/// At least one run of series, the last of fewer points than the others.
fn shares<'a, 'b>(mut shown: &'b [(&'a Series, Points<'a>)]) -> Vec<&'b [(&'a Series, Points<'a>)]> {
    let mut shares = Vec::new();
    loop {
        let mut points = 0;
        let full = |(_, next): &(&Series, Points<'_>)| {
            points += next.values.len();
            points >= POINTS_A_PART
        };
        let Some(last) = shown.iter().position(full).filter(|last| last + 1 < shown.len()) else {
            shares.push(shown);
            return shares;
        };
        let (share, rest) = shown.split_at(last + 1);
        shares.push(share);
        shown = rest;
    }
}

fn part(shown: &[(&Series, Points<'_>)], options: JsonOptions, first: bool, last: bool) -> Vec<u8> {
    let mut writer = if first { Writer::new(options.pretty) } else { Writer::within_array(options.pretty) };
    // Most points are short of this: two brackets, two commas, a time of ten digits and a value.
    writer.reserve(shown.iter().map(|(series, points)| 200 + series.name.len() + points.values.len() * 32).sum());
    if first {
        writer.open(b'[');
    }
    for (series, points) in shown {
        writer.item();
        writer.open(b'{');
        writer.key("target");
        writer.string(&series.name);
        writer.key("tags");
        writer.open(b'{');
        for (tag, value) in series.tags.iter() {
            writer.key(tag);
            writer.string(value);
        }
        writer.close(b'}');
        writer.key("datapoints");
        writer.open(b'[');
        writer.points(&points.values, points.start, points.step, !options.no_null_points);
        writer.close(b']');
        writer.close(b'}');
    }
    if last {
        writer.close(b']');
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Step;

    const NAN: f64 = f64::NAN;

    fn series(name: &str, values: &[f64]) -> Series {
        Series::new(name, 60, Step::new(60).expect("positive"), values.to_vec())
    }

    fn text(series: &[Series], options: JsonOptions) -> String {
        String::from_utf8(json(series, options)).expect("UTF-8")
    }

    #[test]
    fn as_graphite_writes_it() {
        let mut a = series("alias(\"ü\")", &[27.2, NAN, 1e-5]);
        a.tags = std::sync::Arc::new([("name".to_owned(), "a".to_owned())].into_iter().collect());
        assert_eq!(
            text(&[a, series("b", &[1.0])], JsonOptions::default()),
            r#"[{"target": "alias(\"\u00fc\")", "tags": {"name": "a"}, "datapoints": [[27.2, 60], [null, 120], [1e-05, 180]]}, {"target": "b", "tags": {"name": "b"}, "datapoints": [[1.0, 60]]}]"#
        );
        let pretty = JsonOptions { pretty: true, ..JsonOptions::default() };
        assert_eq!(
            text(&[series("b", &[1.0, 2.0])], pretty),
            "[\n  {\n    \"target\": \"b\",\n    \"tags\": {\n      \"name\": \"b\"\n    },\n    \"datapoints\": [\n      \
             [\n        1.0,\n        60\n      ],\n      [\n        2.0,\n        120\n      ]\n    ]\n  }\n]"
        );
    }

    #[test]
    fn what_json_cannot_say_is_null() {
        assert_eq!(
            text(&[series("a", &[f64::INFINITY, f64::NEG_INFINITY, NAN, NAN])], JsonOptions::default()),
            r#"[{"target": "a", "tags": {"name": "a"}, "datapoints": [[null, 60], [null, 120], [null, 180], [null, 240]]}]"#
        );
    }

    #[test]
    fn no_null_points() {
        let options = JsonOptions { no_null_points: true, ..JsonOptions::default() };
        assert_eq!(
            text(&[series("a", &[NAN, 1.0, NAN]), series("b", &[NAN, NAN, NAN])], options),
            r#"[{"target": "a", "tags": {"name": "a"}, "datapoints": [[1.0, 120]]}]"#
        );
        assert_eq!(text(&[series("b", &[NAN])], options), "[]");
    }

    #[test]
    fn nothing_is_an_empty_array() {
        assert_eq!(text(&[], JsonOptions::default()), "[]");
        assert_eq!(text(&[series("a", &[]), series("b", &[])], JsonOptions::default()), "[]");
        assert_eq!(
            text(&[series("a", &[]), series("b", &[2.0])], JsonOptions::default()),
            r#"[{"target": "a", "tags": {"name": "a"}, "datapoints": []}, {"target": "b", "tags": {"name": "b"}, "datapoints": [[2.0, 60]]}]"#
        );
        assert_eq!(text(&[], JsonOptions { pretty: true, ..JsonOptions::default() }), "[]");
    }

    /// Enough for several threads; what one writes must follow what the other wrote.
    #[test]
    fn parts_make_one_array() {
        let long = vec![1.5; POINTS_A_PART / 2 + 1];
        let all: Vec<Series> = (0..9).map(|n| series(&format!("s{n}"), &long)).collect();
        for pretty in [false, true] {
            let options = JsonOptions { pretty, ..JsonOptions::default() };
            let read: serde_json::Value = serde_json::from_slice(&json(&all, options)).expect("JSON");
            let names: Vec<_> = read.as_array().expect("an array").iter().map(|s| s["target"].clone()).collect();
            assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"]);
        }
        let points: Vec<String> = (1..=long.len()).map(|n| format!("[1.5, {}]", n * 60)).collect();
        let points = points.join(", ");
        let one = |n| format!(r#"{{"target": "s{n}", "tags": {{"name": "s{n}"}}, "datapoints": [{points}]}}"#);
        let written = format!("[{}]", (0..9).map(one).collect::<Vec<_>>().join(", "));
        // Not as an equality that would be printed: it is megabytes.
        assert!(text(&all, JsonOptions::default()) == written);
    }

    /// Times of ten digits, which nearly all have, are written another way than those of nine or eleven.
    #[test]
    fn times_of_any_length() {
        for start in [-120, 0, 999_999_940, 1_000_000_000, 1_699_999_200, 9_999_999_900, 9_999_999_960, i64::MAX / 2] {
            let at = |n: i64| start + n * 60;
            let mut line = series("a", &[1.0, NAN, 2.5e-7]);
            line = Series::new("a", start, line.step(), line.values().to_vec());
            let points = format!("[1.0, {}], [null, {}], [2.5e-07, {}]", at(0), at(1), at(2));
            let body =
                |points: &str| format!(r#"{{"target": "a", "tags": {{"name": "a"}}, "datapoints": [{points}]}}"#);
            let other = Series::new("a", start, line.step(), vec![3.0, 1.0, 0.0, 0.25]);
            let others = format!("[3.0, {}], [1.0, {}], [0.0, {}], [0.25, {}]", at(0), at(1), at(2), at(3));
            assert_eq!(
                text(&[line.clone(), other.clone(), line.clone()], JsonOptions::default()),
                format!("[{}, {}, {}]", body(&points), body(&others), body(&points))
            );
            let options = JsonOptions { no_null_points: true, ..JsonOptions::default() };
            let known = format!("[1.0, {}], [2.5e-07, {}]", at(0), at(2));
            assert_eq!(text(&[line], options), format!("[{}]", body(&known)));
        }
    }

    /// A constant series whose groups are not of equal size: the mean of each is exact to the last digits.
    #[test]
    fn groups_of_equal_values() {
        let options = JsonOptions { max_data_points: NonZeroU64::new(3), ..JsonOptions::default() };
        let read: serde_json::Value =
            serde_json::from_slice(&json(&[series("a", &[1_681.767_757_34; 11])], options)).expect("JSON");
        let points = read[0]["datapoints"].as_array().expect("an array");
        assert_eq!(points.len(), 3);
        for point in points {
            assert!((point[0].as_f64().expect("a number") - 1_681.767_757_34).abs() < 1e-9);
        }
    }
}
