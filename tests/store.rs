//! The embedded stores against what graphite-web answered.

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use plumbago::backend::{Backend, BackendError, BackendId, FindQuery, Scope, TagLimits};
use plumbago::series::{PathExpression, Selector, Series, TimeRange};
use plumbago::store::{WhisperOptions, WhisperStore};
use serde_json::Value;
use sha2::Digest;
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

/// The data set as files; the folder lives as long as the second value.
fn files() -> (WhisperStore, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    dataset::write_files(folder.path());
    let store = WhisperStore::open(BackendId::new("files"), folder.path(), WhisperOptions::default());
    (store.expect("a store"), folder)
}

#[tokio::test]
async fn finds_what_graphite_finds() {
    check_finds(&dataset::store(), true).await;
    check_finds(&files().0, false).await;
}

/// Finds as `json`, `msgpack` and `pickle` show them: paths, kinds and intervals.
async fn check_finds(store: &dyn Backend, intervals: bool) {
    let store = store.finder().expect("a store that finds");
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
                let interval = interval.filter(|_| intervals);
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
    check_expansions(&dataset::store()).await;
    check_expansions(&files().0).await;
}

async fn check_expansions(store: &dyn Backend) {
    let store = store.finder().expect("a store that finds");
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

#[tokio::test]
async fn fetches_what_graphite_fetches() {
    assert!(check_fetches(&dataset::store(), |_, _| true).await >= 20);
    // Files know now and their own retention, of which the recorded answers know nothing.
    let whole = |from, until| from > NOW - 3 * 3600 && until <= NOW;
    assert!(check_fetches(&files().0, whole).await >= 15);
}

/// Requests for one plain pattern with times in seconds: names, order, rounding and values.
async fn check_fetches(store: &dyn Backend, wanted: impl Fn(i64, i64) -> bool) -> usize {
    let mut compared = 0;
    for case in cases("time.jsonl") {
        let seconds = |key| param(&case, key).and_then(|v| v.parse::<i64>().ok());
        let targets = params(&case, "target");
        let (Some(from), Some(until), [target]) = (seconds("from"), seconds("until"), &targets[..]) else { continue };
        let plain = case["status"] == 200 && param(&case, "format") == Some("json") && !target.contains('(');
        if !plain || param(&case, "maxDataPoints").is_some() || from >= until || !wanted(from, until) {
            continue;
        }
        let found: Vec<Value> = fetch_one(store, &selector(target, from, until))
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
    compared
}

#[tokio::test]
async fn tagged_series_are_found_in_three_ways() {
    check_tagged(&dataset::store()).await;
    check_tagged(&files().0).await;
}

async fn check_tagged(store: &dyn Backend) {
    let name = "http.requests;code=404;method=GET";
    let place = "_tagged.09b.073.http_DOT_requests;code=404;method=GET";
    let fetch = async |pattern: &str| fetch_one(store, &selector(pattern, NOW - 3600, NOW)).await;
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
    check_tags(&dataset::store()).await;
    check_tags(&files().0).await;
}

async fn check_tags(store: &dyn Backend) {
    let mut compared = 0;
    for case in cases("tags.jsonl") {
        if case["status"] == 405 || param(&case, "jsonp").is_some() {
            continue;
        }
        let answer = tag_answer(store, &case, &scope()).await;
        if case["status"] == 200 {
            assert_eq!(answer, Some(without_ids(&case["body"])), "{}", case["id"]);
        } else {
            assert_eq!(answer, None, "{}", case["id"]);
        }
        compared += 1;
    }
    assert!(compared > 80, "{compared}");
}

/// The names of a pattern's series, or the error.
async fn names(store: &dyn Backend, pattern: &str) -> Result<Vec<String>, BackendError> {
    let answer = store.fetch(&[selector(pattern, NOW - 600, NOW)], &scope()).await.remove(0)?;
    Ok(answer.iter().map(|series| series.name.to_string()).collect())
}

#[tokio::test]
async fn one_fetch_has_many_answers() {
    let (store, folder) = files();
    let (glob, exact, none) = (
        selector("edge.{ramp,zeros}", NOW - 600, NOW),
        selector("edge.ramp", NOW - 600, NOW),
        selector("edge.nosuch", NOW - 600, NOW),
    );
    let longer = selector("edge.ramp", NOW - 1200, NOW);
    let old = selector("edge.*", NOW - 1_000_000, NOW - 900_000);
    let answers = store.fetch(&[glob, exact, none, longer, old], &scope()).await;
    let found: Vec<Vec<(String, String, usize)>> = answers
        .into_iter()
        .map(|a| {
            a.expect("an answer").iter().map(|s| (s.name.to_string(), s.path_expression.to_string(), s.len())).collect()
        })
        .collect();
    let series = |name: &str, pattern: &str, points| (name.to_owned(), pattern.to_owned(), points);
    let ramp = "edge.ramp";
    assert_eq!(
        found,
        [
            vec![series(ramp, "edge.{ramp,zeros}", 10), series("edge.zeros", "edge.{ramp,zeros}", 10)],
            vec![series(ramp, ramp, 10)],
            vec![],
            vec![series(ramp, ramp, 20)],
            vec![],
        ]
    );
    drop(folder);
    assert!(matches!(names(&store, ramp).await, Err(BackendError::Unreachable { .. })));
}

/// Ways to break a whisper file.
fn broken(sound: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    let with = |at: usize, bytes: &[u8]| {
        let mut image = sound.to_vec();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        image
    };
    [
        ("a text", b"this is no whisper file".to_vec()),
        ("a part of a header", sound[..9].to_vec()),
        ("half of its points", sound[..sound.len() / 2].to_vec()),
        // The metadata has 16 bytes; the position of the first archive comes next.
        ("an archive out of the file", with(16, &u32::MAX.to_be_bytes())),
        ("no archive", with(12, &[0; 4])),
    ]
}

#[tokio::test]
async fn a_broken_file_hides_no_other_and_is_not_passed_over() {
    let (store, folder) = files();
    let path = folder.path().join("edge/ramp.wsp");
    let sound = std::fs::read(&path).expect("read");
    for (how, image) in broken(&sound) {
        std::fs::write(&path, image).expect("written");
        let patterns = ["edge.{ramp,zeros}", "edge.ramp", "edge.zeros", "edge.nosuch"];
        let selectors = patterns.map(|pattern| selector(pattern, NOW - 600, NOW));
        let answers = store.fetch(&selectors, &scope()).await;
        let [both, broken, sound, none] = answers.try_into().expect("an answer to each");
        for (answer, expected, count) in [(both, vec!["edge.zeros"], "1 of 2"), (broken, vec![], "1 of 1")] {
            let Err(BackendError::Partial { reason, found, .. }) = answer else { panic!("{how}: {answer:?}") };
            assert!(reason.starts_with(count) && reason.contains("edge/ramp.wsp"), "{how}: {reason}");
            let found = found.get::<Vec<Series>>().expect("series");
            assert_eq!(found.iter().map(|series| &*series.name).collect::<Vec<_>>(), expected, "{how}");
        }
        // What does not ask for it is whole.
        assert_eq!((sound.map(|series| series.len()), none), (Ok(1), Ok(vec![])), "{how}");
        // Where nothing can be read there is no answer.
        let error = names(&store, "edge.ramp").await.expect_err("nothing can be read");
        assert!(matches!(&error, BackendError::Garbled { reason, .. } if reason.contains("edge/ramp.wsp")), "{error}");
    }
}

/// Carbon creates a file and then fills it, and people delete files: nothing is missed for that.
#[tokio::test]
async fn files_without_points_and_files_that_are_gone_are_no_failures() {
    let (store, folder) = files();
    let path = folder.path().join("edge/ramp.wsp");
    let zeros = Ok(vec!["edge.zeros".to_owned()]);
    assert_eq!(names(&store, "edge.{ramp,zeros}").await.map(|found| found.len()), Ok(2));
    std::fs::write(&path, "").expect("emptied");
    assert_eq!(names(&store, "edge.{ramp,zeros}").await, zeros);
    assert_eq!(names(&store, "edge.ramp").await, Ok(vec![]));
    // The index still has it.
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(names(&store, "edge.{ramp,zeros}").await, zeros);
    assert_eq!(names(&store, "edge.ramp").await, Ok(vec![]));
}

/// Root may read everything: then there is nothing to test.
#[tokio::test]
async fn what_may_not_be_read_is_not_passed_over() {
    let (store, folder) = files();
    let close = |path: &str| {
        let path = folder.path().join(path);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("closed");
        std::fs::File::open(path).is_ok()
    };
    if close("edge/ramp.wsp") {
        return;
    }
    let partial = async |pattern: &str| match names(&store, pattern).await {
        Err(BackendError::Partial { reason, found, .. }) => (reason, found.get::<Vec<Series>>().expect("series").len()),
        other => panic!("{pattern}: {other:?}"),
    };
    let (reason, found) = partial("edge.{ramp,zeros}").await;
    assert!(found == 1 && reason.contains("ramp.wsp: Permission denied"), "{reason}");
    close("mixed");
    let (store, mixed) = (
        WhisperStore::open(BackendId::new("files"), folder.path(), WhisperOptions::default()).expect("a store"),
        folder.path().join("mixed"),
    );
    let partial = async |pattern: &str| match names(&store, pattern).await {
        Err(BackendError::Partial { reason, .. }) => reason,
        other => panic!("{pattern}: {other:?}"),
    };
    assert_eq!(partial("{edge,mixed}.z*").await, "folders could not be listed");
    assert_eq!(names(&store, "edge.zeros").await, Ok(vec!["edge.zeros".to_owned()]));
    assert!(matches!(names(&store, "mixed.s10").await, Err(BackendError::Garbled { .. })));
    let finder = store.finder().expect("finds");
    let find = |pattern: &str| FindQuery { pattern: pattern.to_owned(), range: None, leaves_only: false };
    assert!(finder.find(&find("edge.*"), &scope()).await.is_ok() && finder.find(&find("*"), &scope()).await.is_ok());
    assert!(matches!(finder.find(&find("*.s10"), &scope()).await, Err(BackendError::Partial { .. })));
    assert!(matches!(finder.find(&find("mixed.s10"), &scope()).await, Err(BackendError::Unreachable { .. })));
    assert!(matches!(finder.index(&scope()).await, Err(BackendError::Partial { .. })));
    std::fs::set_permissions(mixed, std::fs::Permissions::from_mode(0o700)).expect("opened");
}

/// Explicit names need no index, so they see a new file at once; patterns see it when the index is made anew.
#[tokio::test(start_paused = true)]
async fn the_index_is_made_anew_when_it_is_old() {
    let (store, folder) = files();
    let wait = async |seconds| tokio::time::advance(Duration::from_secs(seconds)).await;
    assert_eq!(names(&store, "mixed.s1?").await, Ok(vec!["mixed.s10".to_owned()]));
    std::fs::copy(folder.path().join("mixed/s10.wsp"), folder.path().join("mixed/s11.wsp")).expect("copied");
    let both = Ok(vec!["mixed.s10".to_owned(), "mixed.s11".to_owned()]);
    assert_eq!(names(&store, "mixed.s11").await, Ok(vec!["mixed.s11".to_owned()]));
    wait(59).await;
    assert_eq!(names(&store, "mixed.s1?").await, Ok(vec!["mixed.s10".to_owned()]));
    wait(600).await;
    assert_eq!(names(&store, "mixed.s1?").await, both);
    std::fs::remove_file(folder.path().join("mixed/s11.wsp")).expect("removed");
    assert_eq!(names(&store, "mixed.s1?").await, Ok(vec!["mixed.s10".to_owned()]));
    wait(61).await;
    // This one is answered from the old index and starts the scan that the others wait for.
    store.finder().expect("finds").index(&scope()).await.expect("names");
    wait(601).await;
    let all = store.finder().expect("finds").index(&scope()).await.expect("names");
    assert!(!all.contains(&"mixed.s11".to_owned()) && all.len() == 97);
}

#[tokio::test]
async fn limits_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    dataset::write_files(folder.path());
    let options = WhisperOptions { max_series: 90, max_points: 50, ..WhisperOptions::default() };
    let store = WhisperStore::open(BackendId::new("files"), folder.path(), options).expect("a store");
    let series = Err(BackendError::TooLarge { backend: store.id().clone(), limit: 90, unit: "series" });
    assert_eq!(names(&store, "edge.*").await, series);
    assert_eq!(names(&store, "edge.ramp").await, Ok(vec!["edge.ramp".to_owned()]));
    let long = store.fetch(&[selector("edge.ramp", NOW - 6000, NOW)], &scope()).await.remove(0);
    let points = Err(BackendError::TooLarge { backend: store.id().clone(), limit: 50, unit: "points" });
    assert_eq!(long, points);
}

#[tokio::test]
async fn a_series_named_by_its_hash_is_found_by_its_tags() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("whisper");
    dataset::write_files(&root);
    // A value with a slash can be stored in no other way; the file says nothing of its name.
    let name = "disk;mount=/var";
    let hash = format!("{:x}", sha2::Sha256::digest(name));
    let place = root.join(format!("_tagged/{}/{}", &hash[..3], &hash[3..6]));
    std::fs::create_dir_all(&place).expect("created");
    std::fs::copy(root.join("edge/ramp.wsp"), place.join(format!("{hash}.wsp"))).expect("copied");
    let options = WhisperOptions { tag_database: Some(folder.path().join("tags.sqlite")), ..WhisperOptions::default() };
    let open = || WhisperStore::open(BackendId::new("files"), &root, options.clone()).expect("a store");
    let store = open();
    let query = "seriesByTag(\"mount=/var\")";
    assert_eq!(names(&store, name).await, Ok(vec![name.to_owned()]));
    assert_eq!(names(&store, query).await, Ok(vec![]));
    let editor = store.tag_editor().expect("tags can be changed");
    assert_eq!(editor.tag_series("disk{mount=\"/var\"}", &scope()).await, Ok(name.to_owned()));
    assert_eq!(names(&store, query).await, Ok(vec![name.to_owned()]));
    drop(store);
    assert_eq!(names(&open(), query).await, Ok(vec![name.to_owned()]));
}

#[tokio::test]
async fn the_memory_store_can_fail_and_wait_and_remembers() {
    let unreachable = BackendError::Unreachable { backend: BackendId::new("dataset"), reason: "cut".to_owned() };
    let error = unreachable.clone();
    let store = dataset::store()
        .failing_with(move |s| (s.pattern.as_str() == "edge.zeros").then(|| error.clone()))
        .delayed_by(|selectors| Duration::from_secs(if selectors.len() > 1 { 7200 } else { 0 }));
    assert_eq!(names(&store, "edge.zeros").await, Err(unreachable));
    assert_eq!(names(&store, "edge.ramp").await, Ok(vec!["edge.ramp".to_owned()]));
    assert_eq!(store.fetches().iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    store.forget_calls();
    tokio::time::pause();
    let both = [selector("edge.ramp", 0, 60), selector("edge.zeros", 0, 60)];
    let answers = store.fetch(&both, &scope()).await;
    assert!(answers.iter().all(|a| matches!(a, Err(BackendError::Timeout { .. }))), "{answers:?}");
    assert_eq!(store.fetches(), [both.to_vec()]);
}
