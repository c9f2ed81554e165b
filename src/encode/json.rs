//! `format=json`: what Grafana reads.

use std::num::NonZeroU64;

use super::max_data_points::thinned;
use super::writer::Writer;
use crate::series::Series;

/// How the JSON of a request is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JsonOptions {
    /// The most points a series should have (see [`super::max_data_points`]); `None` is no limit.
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
    let mut writer = Writer::new(options.pretty);
    writer.open(b'[');
    if series.iter().any(|s| !s.is_empty()) {
        for (series, points) in series.iter().zip(thinned(series, options.max_data_points)) {
            let wanted = |value: f64| !options.no_null_points || value.is_finite();
            if options.no_null_points && !points.values.iter().copied().any(wanted) {
                continue;
            }
            // Most points are short of this: two brackets, two commas, a time of ten digits and a value.
            writer.reserve(200 + points.values.len() * 26);
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
            let mut time = points.start;
            for &value in points.values.iter() {
                if wanted(value) {
                    writer.point(value, time);
                }
                time = time.saturating_add(points.step);
            }
            writer.close(b']');
            writer.close(b'}');
        }
    }
    writer.close(b']');
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
