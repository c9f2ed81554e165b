//! The time range of each recorded request of `tests/golden/time.jsonl`, read off its answer.

mod support;

use plumbago::clock::{TimeBounds, TimeZone};
use serde_json::Value;
use support::dataset::{NOW, cases};

fn parameter<'a>(case: &'a Value, name: &str) -> Option<&'a str> {
    let pairs = case["params"].as_array().expect("pairs");
    pairs.iter().find(|pair| pair[0] == name).and_then(|pair| pair[1].as_str())
}

/// `from` and `until` as `constantLine` shows them: its first point is at `from`, its third at `until` or the second
/// before, because its step is half of the range.
fn recorded_range(case: &Value) -> Option<(i64, i64)> {
    let points = case["body"][0]["datapoints"].as_array()?;
    let time = |point: &Value| point[1].as_i64().expect("a time");
    Some((time(&points[0]), time(points.last()?)))
}

#[test]
fn ranges_of_recorded_requests() {
    let (mut accepted, mut refused) = (0, 0);
    for case in cases("time.jsonl") {
        let zone = parameter(&case, "tz").and_then(TimeZone::named).unwrap_or_else(TimeZone::utc);
        let get = |name| parameter(&case, name);
        let ours = TimeBounds::resolve(get("from"), get("until"), get("now"), &zone, NOW);
        match case["status"].as_i64().expect("a status") {
            // graphite-web fails where the range has one second only; that is not the time's fault.
            500 => assert!(ours.is_ok(), "{case}"),
            400 => {
                assert!(ours.is_err(), "{case}");
                refused += 1;
            }
            _ if [get("from"), get("until")].contains(&Some("12:30pm")) => {
                // Here 12:30pm is after noon, 12 hours later than there.
            }
            _ => {
                let ours = ours.unwrap_or_else(|e| panic!("{e}: {case}"));
                if get("target") == Some("constantLine(1)") && get("maxDataPoints").is_none() {
                    let (from, last) = recorded_range(&case).expect("points");
                    assert_eq!(ours.from(), from, "{case}");
                    assert!((0..=1).contains(&(ours.until() - last)), "{} is not {last}: {case}", ours.until());
                    accepted += 1;
                }
            }
        }
    }
    assert!(accepted > 150 && refused > 50, "{accepted} accepted, {refused} refused");
}
