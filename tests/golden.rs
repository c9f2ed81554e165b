//! Replays graphite-web's recorded answers (`tests/golden/*.jsonl`) over the data set that they were recorded from.
//!
//! `GOLDEN=fn:scale` (a prefix of a group, or a case's id) runs a part and shows more.

mod support;

use std::collections::{BTreeMap, HashMap};

use plumbago::backend::Backend;
use plumbago::clock::{TimeBounds, TimeZone};
use plumbago::evaluate::{Advance, Rounds};
use plumbago::functions::Request;
use plumbago::series::{Selector, Series, Step};
use plumbago::store::MemoryStore;
use serde_json::{Value, json};
use support::dataset;
use support::judge::difference;

struct Replay {
    store: MemoryStore,
    runtime: tokio::runtime::Runtime,
}

impl Replay {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        Self { store: dataset::store(), runtime }
    }

    fn fetch(&self, selectors: &[Selector]) -> Vec<Vec<Series>> {
        let answers = self.runtime.block_on(async { self.store.fetch(selectors, &dataset::scope()).await });
        let answers = answers.into_iter().zip(selectors);
        answers.map(|(a, s)| no_events(s).unwrap_or_else(|| a.expect("the store answers"))).collect()
    }

    /// Status and body of a `/render` case.
    fn render(&self, case: &Value) -> (u16, Value) {
        let params: Vec<(String, String)> = case["params"]
            .as_array()
            .expect("params")
            .iter()
            .map(|p| (p[0].as_str().expect("a name").to_owned(), p[1].as_str().expect("a value").to_owned()))
            .collect();
        let get = |name: &str| params.iter().rev().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
        let targets: Vec<String> = params
            .iter()
            .filter(|(k, v)| (k == "target" || k == "target[]") && !v.trim().is_empty())
            .map(|(_, v)| v.clone())
            .collect();
        let overrides = params
            .iter()
            .filter_map(|(k, v)| Some((k.strip_prefix("template[")?.strip_suffix(']')?.to_owned(), v.clone())))
            .collect();
        let zone = get("tz").and_then(TimeZone::named).unwrap_or_else(TimeZone::utc);
        let bounds = match TimeBounds::resolve(get("from"), get("until"), get("now"), &zone, dataset::NOW) {
            Ok(bounds) => bounds,
            Err(e) => return (400, json!(e.to_string())),
        };
        let request = Request {
            range: bounds.range(),
            now: bounds.now(),
            time_zone: zone,
            server_time_zone: TimeZone::utc(),
            x_files_factor: get("xFilesFactor").and_then(|x| x.parse().ok()).unwrap_or(0.0),
            seed: 1,
        };
        let mut rounds = match Rounds::new(&targets, request, overrides, None) {
            Ok(rounds) => rounds,
            Err(e) => return (400, json!(e.to_string())),
        };
        let mut fetched: HashMap<Selector, Vec<Series>> = HashMap::new();
        loop {
            match rounds.advance(&fetched) {
                Err(e) => return (400, json!(e.to_string())),
                Ok(Advance::Fetch(selectors)) => {
                    let answers = self.fetch(&selectors);
                    fetched.extend(selectors.into_iter().zip(answers));
                }
                Ok(Advance::Done(lists)) => {
                    assert_eq!(rounds.misses(), 0, "{}: the plan missed a selector", case["id"]);
                    let series: Vec<Series> = lists.into_iter().flatten().collect();
                    return (200, body(&series, get("maxDataPoints"), get("noNullPoints").is_some()));
                }
            }
        }
    }
}

/// What a store without events answers to `events(..)`: nothing in any second.
fn no_events(selector: &Selector) -> Option<Vec<Series>> {
    let range = selector.range;
    let values = vec![f64::NAN; usize::try_from(range.seconds()).expect("a range is not empty")];
    let name = selector.pattern.as_str();
    selector.pattern.is_event_query().then(|| vec![Series::new(name, range.from(), Step::SECOND, values)])
}

/// The JSON answer, as graphite-web makes it.
fn body(series: &[Series], max_data_points: Option<&str>, no_null_points: bool) -> Value {
    if series.iter().all(Series::is_empty) {
        return json!([]);
    }
    let max: Option<i64> = max_data_points.and_then(|m| m.parse().ok()).filter(|m| *m > 0);
    let start = series.iter().map(Series::start).min().unwrap_or(0);
    let end = series.iter().map(Series::end).max().unwrap_or(0);
    let mut out = Vec::new();
    for s in series {
        let step = s.step().seconds();
        let (mut first, mut skip, mut group) = (s.start(), 0_usize, 1_usize);
        if let Some(max) = max {
            let points = (end - start) as f64 / step as f64;
            if max == 1 {
                group = s.len().max(1);
            } else if (max as f64) < points {
                group = (points / max as f64).ceil() as usize;
                let seconds = group as i64 * step;
                let nudge = seconds + first.rem_euclid(step) - first.rem_euclid(seconds);
                first += nudge;
                skip = usize::try_from(nudge / step - 1).unwrap_or(0);
            }
        }
        let kept = s.values()[skip.min(s.len())..].to_vec();
        let mut rest = Series::new("", first, s.step(), kept);
        rest.consolidation = s.consolidation.clone();
        rest.x_files_factor = s.x_files_factor;
        let values = rest.consolidated(group);
        let times = (0..).map(|i| first + i * step * group as i64).take_while(|t| *t <= s.end());
        let points: Vec<Value> = values
            .iter()
            .zip(times)
            .filter(|(v, _)| !no_null_points || !v.is_nan())
            .map(|(v, t)| json!([if v.is_finite() { json!(v) } else { Value::Null }, t]))
            .collect();
        if no_null_points && points.is_empty() {
            continue;
        }
        let tags: BTreeMap<&str, &str> = s.tags.iter().collect();
        out.push(json!({"target": &*s.name, "tags": tags, "datapoints": points}));
    }
    Value::Array(out)
}

fn judge(case: &Value, (status, body): &(u16, Value)) -> Option<String> {
    let want = case["status"].as_u64().expect("a status") as u16;
    match want {
        500 => (*status >= 500).then(|| format!("status {status}")),
        404 | 405 => (!(400..500).contains(status)).then(|| format!("status {status}, want a 4xx")),
        _ if want != *status => Some(format!("status {status}, want {want}: {}", body.as_str().unwrap_or_default())),
        200 => difference(&case["body"], body, ""),
        _ => None,
    }
}

/// Whether a target names this function, as a call or as a callback in quotes.
fn calls(target: &str, name: &str) -> bool {
    target.match_indices(name).any(|(at, _)| {
        let before = target[..at].chars().next_back();
        let after = target[at + name.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && match after {
                Some('(') => true,
                Some('"' | '\'') => matches!(before, Some('"' | '\'')),
                _ => false,
            }
    })
}

#[test]
fn graphite_web_answers() {
    let only = std::env::var("GOLDEN").ok();
    let text = std::fs::read_to_string(dataset::golden("differs.json")).unwrap_or_else(|_| "{}".into());
    let differs: BTreeMap<String, String> = serde_json::from_str(&text).expect("differs.json maps ids to reasons");
    // Functions that do not exist yet, one a line; cases that use one wait for it.
    let pending = std::fs::read_to_string(dataset::golden("pending.txt")).unwrap_or_default();
    let pending: Vec<&str> = pending.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    for name in &pending {
        assert!(plumbago::functions::lookup(name).is_none(), "{name} exists; take it from tests/golden/pending.txt");
    }
    let mut waiting = 0;
    let replay = Replay::new();
    let mut groups: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut faults = Vec::new();
    for file in ["functions.jsonl", "combined.jsonl", "syntax.jsonl"] {
        for case in dataset::cases(file) {
            let (group, id) = (case["group"].as_str().unwrap_or_default(), case["id"].as_str().unwrap_or_default());
            if only.as_ref().is_some_and(|o| !group.starts_with(o.as_str()) && id != o) {
                continue;
            }
            let params = case["params"].as_array().expect("params");
            if case["endpoint"] != "/render" || !params.iter().any(|p| p[0] == "format" && p[1] == "json") {
                continue;
            }
            let uses =
                |name: &&str| params.iter().any(|p| p[0] == "target" && calls(p[1].as_str().unwrap_or_default(), name));
            if pending.iter().any(uses) {
                waiting += 1;
                continue;
            }
            let counts = groups.entry(group.to_owned()).or_default();
            match judge(&case, &replay.render(&case)) {
                None => counts.0 += 1,
                Some(_) if differs.contains_key(id) => {}
                Some(why) => {
                    counts.1 += 1;
                    let targets: Vec<_> = params
                        .iter()
                        .filter(|p| p[0] != "format" && p[0] != "now")
                        .map(|p| format!("{}={}", p[0].as_str().unwrap_or_default(), p[1].as_str().unwrap_or_default()))
                        .collect();
                    faults.push(format!("{id} {group} {}\n    {why}", targets.join("&")));
                }
            }
        }
    }
    let shown = if only.is_some() { 60 } else { 10 };
    for fault in faults.iter().take(shown) {
        println!("{fault}");
    }
    for (group, (passed, failed)) in groups.iter().filter(|(_, (_, f))| *f > 0) {
        println!("{group}: {passed} passed, {failed} failed");
    }
    let passed: u32 = groups.values().map(|(p, _)| p).sum();
    println!("{passed} passed, {} failed, {waiting} wait for functions", faults.len());
    assert!(faults.is_empty());
}
