//! The embedded stores against what graphite-web answered.

mod support;

use std::collections::BTreeSet;

use plumbago::backend::{Backend, BackendError, FindQuery, Finder, Scope, TagLimits};
use plumbago::series::{PathExpression, Selector, Series, TimeRange};
use serde_json::Value;
use support::dataset::{self, NOW, cases, scope};

fn params<'a>(case: &'a Value, wanted: &str) -> Vec<&'a str> {
    let pairs = case["params"].as_array().expect("a list of parameters");
    let pairs = pairs.iter().map(|pair| (pair[0].as_str().expect("a key"), pair[1].as_str().expect("a value")));
    pairs.filter(|(key, _)| *key == wanted).map(|(_, value)| value).collect()
}

fn param<'a>(case: &'a Value, wanted: &str) -> Option<&'a str> {
    params(case, wanted).last().copied()
}

fn selector(pattern: &str, from: i64, until: i64) -> Selector {
    Selector { pattern: PathExpression::new(pattern), range: TimeRange::new(from, until).expect("a range") }
}

async fn fetch_one(store: &dyn Backend, selector: &Selector) -> Vec<Series> {
    let mut answers = store.fetch(std::slice::from_ref(selector), &scope()).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0).expect("an answer")
}

/// Finds as `json`, `msgpack` and `pickle` show them: paths, kinds and intervals.
#[tokio::test]
async fn finds_what_graphite_finds() {
    let store = dataset::store();
    let mut compared = 0;
    for case in cases("find.jsonl") {
        let group = case["group"].as_str().expect("a group");
        if !matches!(group, "find:json" | "find:msgpack" | "find:pickle") || case["status"] != 200 {
            continue;
        }
        let pattern = param(&case, "query").expect("a query").to_owned();
        if pattern.contains(r"\{") {
            // graphite-web takes an escaped brace for a brace when it looks for files; nothing is found either way.
            assert_eq!(case["body"], Value::Array(vec![]));
        }
        let mut query = FindQuery { pattern, range: None, leaves_only: false };
        if param(&case, "wildcards").is_some_and(|v| v != "0") {
            continue;
        }
        query.leaves_only = param(&case, "leavesOnly") == Some("1");
        let found = store.find(&query, &scope()).await.expect("found");
        assert!(found.is_sorted(), "{}", case["id"]);
        let found: BTreeSet<_> = found.into_iter().map(|n| (n.path, n.leaf, n.interval)).collect();
        let expected: BTreeSet<_> = case["body"]
            .as_array()
            .expect("a list of nodes")
            .iter()
            .map(|node| {
                let interval = match group {
                    "find:json" => node.get("intervals").map(|i| (&i[0]["start"], &i[0]["end"])),
                    "find:msgpack" => node.get("intervals").map(|i| (&i[0][0], &i[0][1])),
                    _ => node.get("intervals").map(|i| (&i["IntervalSet"][0][0], &i["IntervalSet"][0][1])),
                };
                let interval = interval.map(|(s, e)| (s.as_i64().expect("a time"), e.as_i64().expect("a time")));
                (node["path"].as_str().expect("a path").to_owned(), node["is_leaf"] == true, interval)
            })
            .collect();
        assert_eq!(found, expected, "{} {}", case["id"], query.pattern);
        compared += 1;
    }
    assert!(compared > 70, "{compared}");
}

#[tokio::test]
async fn expands_and_lists_as_graphite_does() {
    let store = dataset::store();
    let mut compared = 0;
    for case in cases("find.jsonl") {
        if case["status"] != 200 || param(&case, "jsonp").is_some() {
            continue;
        }
        if case["group"] == "index" {
            let names = store.index(&scope()).await.expect("names");
            assert_eq!(serde_json::to_value(names).expect("JSON"), case["body"], "{}", case["id"]);
            compared += 1;
        }
        if case["group"] == "expand" && param(&case, "groupByExpr").is_none() {
            let mut paths = BTreeSet::new();
            for pattern in params(&case, "query") {
                let leaves_only = param(&case, "leavesOnly") == Some("1");
                let query = FindQuery { pattern: pattern.to_owned(), range: None, leaves_only };
                paths.extend(store.find(&query, &scope()).await.expect("found").into_iter().map(|n| n.path));
            }
            assert_eq!(serde_json::to_value(paths).expect("JSON"), case["body"]["results"], "{}", case["id"]);
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

/// Requests for one plain pattern with times in seconds: names, order, rounding and values.
#[tokio::test]
async fn fetches_what_graphite_fetches() {
    let store = dataset::store();
    let mut compared = 0;
    for case in cases("time.jsonl") {
        let seconds = |key| param(&case, key).and_then(|v| v.parse::<i64>().ok());
        let targets = params(&case, "target");
        let (Some(from), Some(until), [target]) = (seconds("from"), seconds("until"), &targets[..]) else { continue };
        let plain = case["status"] == 200 && param(&case, "format") == Some("json") && !target.contains('(');
        if !plain || param(&case, "maxDataPoints").is_some() || from >= until {
            continue;
        }
        let found: Vec<Value> = fetch_one(&store, &selector(target, from, until))
            .await
            .iter()
            .map(|series| {
                let points = (0..series.len()).map(|i| serde_json::json!([series.values()[i], series.time(i)]));
                let tags: serde_json::Map<_, _> = series.tags.iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
                serde_json::json!({"target": *series.name, "tags": tags, "datapoints": points.collect::<Vec<_>>()})
            })
            .collect();
        assert_eq!(Value::Array(found), case["body"], "{} {target}", case["id"]);
        compared += 1;
    }
    assert!(compared >= 20, "{compared}");
}

#[tokio::test]
async fn tagged_series_are_found_in_three_ways() {
    let store = dataset::store();
    let name = "http.requests;code=404;method=GET";
    let place = "_tagged.09b.073.http_DOT_requests;code=404;method=GET";
    let fetch = async |pattern: &str| fetch_one(&store, &selector(pattern, NOW - 3600, NOW)).await;
    let by_name = fetch(name).await;
    let by_tag = fetch("seriesByTag(\"code=404\",\"name=http.requests\")").await;
    let by_place = fetch("_tagged.09b.*.*").await;
    for (series, expected) in [(&by_name, name), (&by_tag, name), (&by_place, place)] {
        assert_eq!(series.iter().map(|s| &*s.name).collect::<Vec<_>>(), [expected]);
        assert_eq!(series[0].values(), by_name[0].values());
        assert_eq!((series[0].start(), series[0].end()), (NOW - 3540, NOW + 60));
        assert_eq!(series[0].tags.get("code"), Some("404"));
    }
    assert_eq!(&*by_tag[0].path_expression, "seriesByTag(\"code=404\",\"name=http.requests\")");
    assert_eq!(fetch("http.requests;method=GET;code=404").await, []);
    assert_eq!(fetch("edge.{ramp").await, []);
    let refused = store.fetch(&[selector("seriesByTag(\"a=\")", 0, 1)], &scope()).await.remove(0);
    assert!(matches!(refused, Err(BackendError::BadQuery { .. })));
}

/// Answers a recorded request to `/tags…` from a store, as its body; `None` for an error.
async fn tag_answer(store: &dyn Backend, case: &Value, scope: &Scope) -> Option<Value> {
    let tags = store.tags().expect("a store with tags");
    let editor = store.tag_editor().expect("a store whose tags can be changed");
    let many = |key: &str| -> Vec<String> {
        let plain = params(case, key);
        let all = if plain.is_empty() { params(case, &format!("{key}[]")) } else { plain };
        all.into_iter().map(str::to_owned).collect()
    };
    let limit = match param(case, "limit").map(str::parse) {
        Some(Err(_)) => return None,
        Some(Ok(limit)) => Some(limit),
        None => None,
    };
    let limits = |prefix: &str| TagLimits {
        prefix: param(case, prefix).map(str::to_owned),
        filter: param(case, "filter").map(str::to_owned),
        limit,
    };
    let endpoint = case["endpoint"].as_str().expect("an endpoint").trim_end_matches('/');
    Some(match endpoint {
        "/tags" => {
            let list = tags.list(&limits("prefix"), scope).await.ok()?;
            list.into_iter().map(|tag| serde_json::json!({"tag": tag})).collect()
        }
        "/tags/findSeries" => {
            // The limit is not heard here.
            tags.find_series(&many("expr"), scope).await.ok()?.into()
        }
        "/tags/autoComplete/tags" => tags.complete_tags(&many("expr"), &limits("tagPrefix"), scope).await.ok()?.into(),
        "/tags/autoComplete/values" => {
            let tag = param(case, "tag").filter(|tag| !tag.is_empty())?;
            tags.complete_values(&many("expr"), tag, &limits("valuePrefix"), scope).await.ok()?.into()
        }
        "/tags/tagSeries" => editor.tag_series(param(case, "path")?, scope).await.ok()?.into(),
        "/tags/tagMultiSeries" => {
            let mut names = Vec::new();
            for path in many("path") {
                names.push(editor.tag_series(&path, scope).await.ok()?);
            }
            (!names.is_empty()).then_some(names)?.into()
        }
        "/tags/delSeries" => {
            let paths = many("path");
            for path in &paths {
                editor.del_series(path, scope).await.ok()?;
            }
            (!paths.is_empty()).then_some(true)?.into()
        }
        other => {
            let tag = other.strip_prefix("/tags/")?;
            let values = tags.values(tag, &limits("prefix"), scope).await.ok()??;
            let values: Vec<Value> =
                values.into_iter().map(|(value, count)| serde_json::json!({"value": value, "count": count})).collect();
            serde_json::json!({"tag": tag, "values": values})
        }
    })
}

/// Row numbers of graphite-web's database are nothing to compare.
fn without_ids(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(without_ids).collect(),
        Value::Object(map) => {
            map.iter().filter(|(k, _)| *k != "id").map(|(k, v)| (k.clone(), without_ids(v))).collect()
        }
        other => other.clone(),
    }
}

#[tokio::test]
async fn tags_as_graphite_has_them() {
    let store = dataset::store();
    let mut compared = 0;
    for case in cases("tags.jsonl") {
        if case["status"] == 405 || param(&case, "jsonp").is_some() {
            continue;
        }
        let answer = tag_answer(&store, &case, &scope()).await;
        if case["status"] == 200 {
            assert_eq!(answer, Some(without_ids(&case["body"])), "{}", case["id"]);
        } else {
            assert_eq!(answer, None, "{}", case["id"]);
        }
        compared += 1;
    }
    assert!(compared > 80, "{compared}");
}
