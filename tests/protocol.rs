//! The codecs of backends against recorded bytes, hostile bytes and random bytes.

use std::fs;
use std::path::{Path, PathBuf};

use plumbago::backend::protocol::{Bulk, NAMES, Payload, Protocol, WireRequest, by_name};
use plumbago::backend::wire::{CodecError, Limits};
use plumbago::backend::{FindQuery, FoundNode, carbonapi, msgpack, pickle};
use plumbago::series::{PathExpression, Selector, Series, Step, TimeRange};
use proptest::prelude::*;
use serde_json::Value;

const T: i64 = 1_699_999_200;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol")
}

fn recorded(file: &str) -> Vec<u8> {
    fs::read(here().join(file)).expect(file)
}

fn protocol(name: &str) -> std::sync::Arc<dyn Protocol> {
    by_name(name, Bulk::default()).expect(name)
}

fn selector(pattern: &str, from: i64, until: i64) -> Selector {
    Selector { pattern: PathExpression::new(pattern), range: TimeRange::new(from, until).expect("not empty") }
}

fn read(protocol_name: &str, asked: &[Selector], body: &[u8]) -> Result<Vec<Vec<Series>>, CodecError> {
    protocol(protocol_name).read_render(asked, body, &Limits::default())
}

fn names(answer: &[Series]) -> Vec<&str> {
    answer.iter().map(|s| &*s.name).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "results are made where they are checked")]
fn assert_garbled<T: std::fmt::Debug>(what: &str, result: Result<T, CodecError>) {
    assert!(matches!(result, Err(CodecError::Garbled(_))), "{what}: {result:?}");
}

// Recordings.

fn check_render(case: &Value, file: &str, body: &[u8]) {
    let asked: Vec<Selector> = case["asked"]
        .as_array()
        .expect("asked")
        .iter()
        .map(|a| selector(a[0].as_str().expect("text"), a[1].as_i64().expect("from"), a[2].as_i64().expect("until")))
        .collect();
    let answers = read(case["protocol"].as_str().expect("protocol"), &asked, body).expect(file);
    let expected = case["expect"].as_array().expect("expect");
    assert_eq!(answers.len(), expected.len(), "{file}");
    for ((selector, mut answer), expected) in asked.iter().zip(answers).zip(expected) {
        answer.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        let expected = expected.as_array().expect("series");
        let expected_names: Vec<&str> = expected.iter().map(|e| e[0].as_str().expect("name")).collect();
        assert_eq!(names(&answer), expected_names, "{file} {}", selector.pattern);
        for (series, expected) in answer.iter().zip(expected) {
            let what = format!("{file} {}", series.name);
            assert_eq!(&*series.path_expression, selector.pattern.as_str(), "{what}");
            assert_eq!(series.start(), expected[1].as_i64().expect("start"), "{what}");
            assert_eq!(series.step().seconds(), expected[2].as_i64().expect("step"), "{what}");
            let values: Vec<Option<f64>> = series.values().iter().map(|v| (!v.is_nan()).then_some(*v)).collect();
            let expected: Vec<Option<f64>> =
                expected[3].as_array().expect("values").iter().map(Value::as_f64).collect();
            assert_eq!(values, expected, "{what}");
            assert_eq!(series.end(), series.time(expected.len()), "{what}");
        }
    }
}

fn check_find(case: &Value, file: &str, body: &[u8]) {
    let mut nodes =
        protocol(case["protocol"].as_str().expect("protocol")).read_find(body, &Limits::default()).expect(file);
    nodes.sort();
    let expected = case["expect"].as_array().expect("nodes");
    assert_eq!(nodes.len(), expected.len(), "{file}");
    for (node, expected) in nodes.iter().zip(expected) {
        assert_eq!(node.path, expected[0].as_str().expect("path"), "{file}");
        assert_eq!(node.leaf, expected[1].as_bool().expect("leaf"), "{file}");
        if let Some(interval) = expected.get(2) {
            let interval = interval.as_array().map(|i| (i[0].as_i64().expect("from"), i[1].as_i64().expect("until")));
            assert_eq!(node.interval, interval, "{file} {}", node.path);
        }
    }
}

#[test]
fn recorded_answers_are_read() {
    let cases = fs::read_to_string(here().join("cases.jsonl")).expect("cases");
    let mut count = 0;
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let file = case["file"].as_str().expect("file");
        let body = recorded(file);
        match case["kind"].as_str() {
            Some("render") => check_render(&case, file, &body),
            Some("find") => check_find(&case, file, &body),
            _ => {
                let protocol = protocol(case["protocol"].as_str().expect("protocol"));
                let mut index = protocol.read_index(&body, &Limits::default()).expect(file);
                index.sort();
                let expected: Vec<String> = serde_json::from_value(case["expect"].clone()).expect("names");
                assert_eq!(index, expected, "{file}");
            }
        }
        count += 1;
    }
    assert!(count >= 30);
}

/// Each recording, cut anywhere, is an error or (protobuf, between messages) a shorter answer, and never a panic.
#[test]
fn truncated_answers_are_errors() {
    let cases = fs::read_to_string(here().join("cases.jsonl")).expect("cases");
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let file = case["file"].as_str().expect("file");
        let name = case["protocol"].as_str().expect("protocol");
        let body = recorded(file);
        let asked = [selector("edge.*", T - 600, T), selector("edge.*", T - 1200, T - 600)];
        let asked = if name == "carbonapi_v3_pb" { &asked[..] } else { &asked[..1] };
        for end in (0..body.len()).step_by(7) {
            let cut = &body[..end];
            let errors = match case["kind"].as_str() {
                Some("render") => read(name, asked, cut).is_err(),
                Some("find") => protocol(name).read_find(cut, &Limits::default()).is_err(),
                _ => protocol(name).read_index(cut, &Limits::default()).is_err(),
            };
            assert!(errors || name.starts_with("carbonapi"), "{file} cut at {end}");
        }
    }
}

// Requests.

fn parameters(request: &WireRequest) -> Vec<(String, String)> {
    form_urlencoded::parse(request.parameters.as_bytes()).into_owned().collect()
}

fn pairs(text: &[(&str, &str)]) -> Vec<(String, String)> {
    text.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn graphite_is_asked_once_for_each_range() {
    let tags = r#"seriesByTag("name=disk","dc=~eu|us")"#;
    let selectors = [
        selector("a.*", 100, 200),
        selector("a.b", 40, 140),
        selector(r"x\{y\}.z", 100, 200),
        selector("a.*", 100, 200),
        selector(tags, 100, 200),
        selector("ü.{a,b}", 40, 140),
    ];
    for (name, format) in [("graphite", "msgpack"), ("graphite-pickle", "pickle")] {
        let requests = protocol(name).render(&selectors, 210);
        assert_eq!(requests.len(), 2);
        let head = |from, until| {
            [("format", format), ("local", "1"), ("noCache", "1"), ("from", from), ("until", until), ("now", "210")]
        };
        let mut first = pairs(&head("100", "200"));
        first.extend(pairs(&[("target", "a.*"), ("target", r"x\{y\}.z"), ("target", tags)]));
        assert_eq!(parameters(&requests[0]), first);
        assert_eq!(requests[0].path, "/render/");
        assert_eq!(requests[0].payload, Payload::Url);
        assert_eq!(requests[0].answers, [0, 3, 2, 4]);
        let mut second = pairs(&head("40", "140"));
        second.extend(pairs(&[("target", "a.b"), ("target", "ü.{a,b}")]));
        assert_eq!(parameters(&requests[1]), second);
        assert_eq!(requests[1].answers, [1, 5]);
    }
    // A Graphite 0.9 would answer the whole request with an error because of `seriesByTag`.
    let requests = protocol("graphite-0.9").render(&selectors, 210);
    assert_eq!(requests[0].answers, [0, 3, 2]);
    assert!(protocol("graphite-0.9").render(&selectors[4..5], 210).is_empty());
    assert!(!protocol("graphite-0.9").has_tags());
    for name in NAMES {
        assert!(protocol(name).render(&[], 210).is_empty());
        assert_eq!(protocol(name).name(), *name);
    }
    assert!(by_name("graphite-2", Bulk::default()).is_none());
}

#[test]
fn long_requests_are_posted_and_very_long_ones_split() {
    let many: Vec<Selector> = (0..2000).map(|i| selector(&format!("servers.web{i:04}.cpu.user"), 100, 200)).collect();
    let requests = protocol("graphite").render(&many[..100], 210);
    assert_eq!(requests.len(), 1);
    assert!(requests[0].parameters.len() < 3900 && requests[0].payload == Payload::Url);
    let requests = protocol("graphite").render(&many[..130], 210);
    assert_eq!((requests.len(), &requests[0].payload), (1, &Payload::Form));

    // Django takes no more than a thousand parameters.
    let requests = protocol("graphite").render(&many, 210);
    assert_eq!(requests.iter().map(|r| r.answers.len()).collect::<Vec<_>>(), [900, 900, 200]);
    assert_eq!(requests.iter().flat_map(|r| r.answers.clone()).collect::<Vec<_>>(), (0..2000).collect::<Vec<_>>());

    let each = |patterns, post| by_name("graphite", Bulk { patterns, post }).expect("known").render(&many, 210);
    assert_eq!(each(Some(1), true).len(), 2000);
    let by_get = each(None, false);
    assert!(by_get.iter().all(|r| r.payload == Payload::Url && r.parameters.len() <= 3900));
    assert_eq!(by_get.iter().map(|r| r.answers.len()).sum::<usize>(), 2000);
    assert_eq!(protocol("carbonapi_v3_pb").render(&many, 210).len(), 1);
}

#[test]
fn carbonapi_v3_is_asked_once_for_all_ranges() {
    let selectors = [
        selector("edge.*", T - 600, T),
        selector("edge.ramp", T - 1200, T - 600),
        selector("edge.ramp", T - 600, T),
        selector("edge.*", T - 1200, T - 600),
        selector("nothing.here", T - 600, T),
    ];
    let requests = protocol("carbonapi_v3_pb").render(&selectors, T);
    let Payload::Body { media_type, bytes } = &requests[0].payload else { panic!("{requests:?}") };
    assert_eq!(*media_type, "application/x-carbonapi-v3-pb");
    assert_eq!(*bytes, recorded("carbonapi-v3-request.pb"));
    let request: carbonapi::v3::MultiFetchRequest = carbonapi::read(bytes).expect("readable");
    assert_eq!((request.metrics[1].start_time, request.metrics[1].path_expression.as_str()), (T - 1200, "edge.ramp"));
    assert_eq!(carbonapi::write(&request), *bytes);
    assert_eq!((requests.len(), requests[0].parameters.as_str()), (1, "format=carbonapi_v3_pb"));
    assert_eq!(requests[0].answers, [0, 1, 2, 3, 4]);

    let requests = protocol("carbonapi_v2_pb").render(&selectors[..2], T);
    assert_eq!(
        requests.iter().map(|r| r.parameters.as_str()).collect::<Vec<_>>(),
        [
            "format=protobuf&from=1699998600&until=1699999200&target=edge.*",
            "format=protobuf&from=1699998000&until=1699998600&target=edge.ramp"
        ]
    );
}

#[test]
fn finds_are_asked_as_graphite_asks_them() {
    let query = FindQuery { pattern: "a.{b,c}*".into(), range: TimeRange::new(5, 9), leaves_only: false };
    let request = protocol("graphite").find(&query);
    let range = [("from", "5"), ("until", "9")];
    let mut expected = pairs(&[("local", "1"), ("format", "msgpack"), ("query", "a.{b,c}*")]);
    expected.extend(pairs(&range));
    assert_eq!((request.path, parameters(&request)), ("/metrics/find/", expected));
    let unlimited = FindQuery { range: None, ..query };
    let request = protocol("graphite-0.9").find(&unlimited);
    assert_eq!(parameters(&request), pairs(&[("local", "1"), ("format", "pickle"), ("query", "a.{b,c}*")]));
    assert_eq!(protocol("graphite").index().parameters, "local=1");
}

// Who gets what.

fn row(name: &str, path_expression: Option<&str>) -> String {
    let echo = path_expression.map(|p| format!("V{p}\n")).unwrap_or_default();
    let key = if path_expression.is_some() { "S'pathExpression'\n" } else { "" };
    format!("(S'name'\nV{name}\nS'start'\nI60\nS'end'\nI120\nS'step'\nI60\nS'values'\n(F1.5\nl{key}{echo}d")
}

/// A pickle of these series, all with one value.
fn answer(rows: &[(&str, Option<&str>)]) -> Vec<u8> {
    let rows: String = rows.iter().map(|(name, echo)| row(name, *echo)).collect();
    format!("({rows}l.").into_bytes()
}

fn given(patterns: &[&str], rows: &[(&str, Option<&str>)]) -> Vec<Vec<String>> {
    let asked: Vec<Selector> = patterns.iter().map(|p| selector(p, 0, 60)).collect();
    let answers = read("graphite-pickle", &asked, &answer(rows)).expect("readable");
    for (selector, series) in asked.iter().zip(&answers) {
        assert!(series.iter().all(|s| &*s.path_expression == selector.pattern.as_str()));
    }
    answers.iter().map(|a| a.iter().map(|s| s.name.to_string()).collect()).collect()
}

#[test]
fn series_go_to_those_who_asked() {
    // Without an echo: by name, to every pattern, each once; what nobody asked for is dropped.
    assert_eq!(
        given(
            &["a.*", "a.b", r"x\{y\}.z", "**.q", "{a,b}.c", "n[1", "nothing"],
            &[
                ("a.b", None),
                ("a.c", None),
                ("a.b", None),
                ("x{y}.z", None),
                ("o.p.q", None),
                ("n[1", None),
                ("z", None)
            ]
        ),
        [vec!["a.b", "a.c"], vec!["a.b"], vec!["x{y}.z"], vec!["o.p.q"], vec!["a.c"], vec!["n[1"], vec![]]
    );
    // With it: as the backend says, also when its globs mean something else.
    assert_eq!(
        given(&["a.*", "A.*"], &[("a.b", Some("a.*")), ("a.b", Some("A.*")), ("a.c", Some("A.*"))]),
        [vec!["a.b"], vec!["a.b", "a.c"]]
    );
    // An echo that nobody asked for says nothing.
    assert_eq!(
        given(&[r"x\{y\}.z", "b.*"], &[("x{y}.z", Some("x{y}.z")), ("b.c", Some("b.?")), ("q", Some("q"))]),
        [vec!["x{y}.z"], vec!["b.c"]]
    );
    // A backend that answers a series once for two patterns.
    assert_eq!(
        given(&["a.*", "a.b"], &[("a.b", Some("a.*")), ("a.c", Some("a.*"))]),
        [vec!["a.b", "a.c"], vec!["a.b"]]
    );
    // The same pattern twice.
    assert_eq!(given(&["a.*", "a.*"], &[("a.b", Some("a.*"))]), [["a.b"], ["a.b"]]);
    // Tag queries: in another spelling, or by the tags in the name.
    let query = r#"seriesByTag("name=disk","dc=~eu|us")"#;
    assert_eq!(given(&[query], &[("strange", Some(r"seriesByTag('name=disk', 'dc=~eu|us')"))]), [["strange"]]);
    assert_eq!(
        given(&[query, "disk;dc=us"], &[("disk;dc=us", None), ("disk;dc=ap", None), ("cpu;dc=us", None)]),
        [["disk;dc=us"], ["disk;dc=us"]]
    );
    assert_eq!(given(&["a.*"], &[]), [Vec::<String>::new()]);
}

#[test]
fn ranges_are_those_that_were_asked() {
    let series = Series::new("a.b", 60, Step::SECOND, vec![1.0]);
    let (early, late) = (selector("a.*", 0, 100), selector("a.*", 100, 200));
    let other = selector("a.b", 100, 200);
    let asked = [early.clone(), late.clone(), other.clone()];
    let v3 = |pairs: &[(&Selector, &Series)]| {
        let body = carbonapi::v3::write_render(pairs.iter().copied());
        read("carbonapi_v3_pb", &asked, &body)
            .map(|a| a.iter().map(|s| names(s).into_iter().map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>())
    };
    let (none, some) = (Vec::<String>::new(), vec!["a.b".to_owned()]);
    assert_eq!(v3(&[(&late, &series)]), Ok(vec![none.clone(), some.clone(), some.clone()]));
    // The early one is not for the later range, whatever its name.
    assert_eq!(v3(&[(&early, &series)]), Ok(vec![some.clone(), none.clone(), none.clone()]));
    // A range that nobody asked for says nothing, so it is not known which is meant.
    let unasked = selector("a.*", 7, 9);
    assert!(matches!(v3(&[(&unasked, &series)]), Err(CodecError::Garbled(_))));
    let unasked = selector("a.b", 7, 9);
    assert_eq!(v3(&[(&unasked, &series)]), Ok(vec![none.clone(), none, some]));
}

#[test]
fn shared_lists_are_one_column() {
    // `d = {..}; [d, d]`, and one list of values in two series.
    let body = b"\x80\x02](}q\x00(X\x04\x00\x00\x00nameX\x01\x00\x00\x00aX\x05\x00\x00\x00startK\x3cX\x04\x00\x00\x00\
        stepK\x3cX\x06\x00\x00\x00values]q\x01(K\x01NG?\xf8\x00\x00\x00\x00\x00\x00eu\
        h\x00}(X\x04\x00\x00\x00nameX\x01\x00\x00\x00bX\x05\x00\x00\x00startK\x3cX\x04\x00\x00\x00stepK\x3c\
        X\x06\x00\x00\x00valuesh\x01ue.";
    let answers = read("graphite-pickle", &[selector("*", 0, 60)], body).expect("readable");
    assert_eq!(names(&answers[0]), ["a", "b"]);
    let values: Vec<&[f64]> = answers[0].iter().map(Series::values).collect();
    assert_eq!((values[0][0], values[0][1].is_nan(), values[0][2]), (1.0, true, 1.5));
    assert!(std::ptr::eq(values[0], values[1]));
}

// Hostile input.

fn one_series(values: &[u8]) -> Vec<u8> {
    let mut body = b"\x80\x02]}(U\x04nameU\x01aU\x05startK\x3cU\x04stepK\x3cU\x06values".to_vec();
    body.extend_from_slice(values);
    body.extend_from_slice(b"ua.");
    body
}

fn values_of(values: &[u8]) -> Result<Vec<f64>, CodecError> {
    let mut answers = read("graphite-pickle", &[selector("a", 0, 60)], &one_series(values))?;
    Ok(answers.remove(0).remove(0).values().to_vec())
}

#[test]
fn numbers_of_all_kinds() {
    let read = |values: &[u8]| values_of(values).expect("readable");
    assert_eq!(
        read(b"](I7\nI01\nI00\nL12L\nF-2.5e3\nFinf\n\x88\x89K\xffM\xff\xffJ\xfe\xff\xff\xffe"),
        [7.0, 1.0, 0.0, 12.0, -2500.0, f64::INFINITY, 1.0, 0.0, 255.0, 65535.0, -2.0]
    );
    assert!(read(b"](NFnan\nG\x7f\xf8\x00\x00\x00\x00\x00\x00e").iter().all(|v| v.is_nan()));
    // Longs: 0, -1, 2^64, -2^64, 2^71, and one beyond f64.
    let longs = b"](\x8a\x00\x8a\x01\xff\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01\
        \x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00e";
    let (two64, two71) = (18_446_744_073_709_551_616.0, 2_361_183_241_434_822_606_848.0);
    assert_eq!(read(longs), [0.0, -1.0, two64, -two64, two71]);
    assert_eq!(read(b"](L36893488147419103232L\ne"), [36_893_488_147_419_103_232.0]);
    let mut huge = b"](\x8b\x00\x02\x00\x00".to_vec();
    huge.extend_from_slice(&[0x7f; 512]);
    huge.push(b'e');
    assert_eq!(read(&huge), [f64::INFINITY]);
    // A tuple, lists made in other ways, an empty list, and a run that turns out to be no list.
    assert_eq!(read(b"K\x01K\x02\x86"), [1.0, 2.0]);
    assert_eq!(read(b"(K\x01K\x02t"), [1.0, 2.0]);
    assert_eq!(read(b"(lp0\nF1.5\naNa")[0], 1.5);
    assert_eq!(read(b"]"), [0.0; 0]);
    assert_eq!(read(b")"), [0.0; 0]);
    assert_eq!(read(b"](K\x01K\x021K\x03a"), [3.0]);
    for wrong in [&b"](K\x01X\x01\x00\x00\x00xe"[..], b"N", b"}", b"U\x04oops", b"](]e", b"](cos\nsystem\ne"] {
        assert_garbled("values", values_of(wrong));
    }
}

#[test]
fn text_of_all_kinds() {
    let name = |name: &[u8]| {
        let mut body = b"\x80\x02]}(U\x04name".to_vec();
        body.extend_from_slice(name);
        body.extend_from_slice(b"U\x05startK\x3cU\x04stepK\x3cU\x06values]ua.");
        read("graphite-pickle", &[selector("*", 0, 60)], &body).map(|a| a[0][0].name.to_string())
    };
    for same in [
        &b"X\x0c\x00\x00\x00random-d\xc3\xb8de"[..],
        b"U\x0crandom-d\xc3\xb8de",
        b"T\x0c\x00\x00\x00random-d\xc3\xb8de",
        b"\x8c\x0crandom-d\xc3\xb8de",
        b"\x8d\x0c\x00\x00\x00\x00\x00\x00\x00random-d\xc3\xb8de",
        b"C\x0crandom-d\xc3\xb8de",
        b"S'random-d\\xc3\\xb8de'\n",
        b"S\"random\\x2dd\\303\\270de\"\n",
        b"Vrandom-d\xf8de\n",
        b"Vrandom-d\\u00f8de\n",
        b"Vrandom-d\\U000000f8de\n",
    ] {
        assert_eq!(name(same).as_deref(), Ok("random-døde"), "{}", String::from_utf8_lossy(same));
    }
    assert_eq!(name(b"S'a\\\\b\\'c\\td'\n").as_deref(), Ok("a\\b'c\td"));
    assert_eq!(name(b"V\\ud83d\\ude00\\u005cu\n").as_deref(), Ok("😀\\u"));
    // Not UTF-8: better a strange name than no series.
    assert_eq!(name(b"U\x03a\xffb").as_deref(), Ok("a\u{fffd}b"));
    for wrong in [&b"U\x00"[..], b"K\x05", b"Sunquoted\n", b"N"] {
        assert_garbled("name", name(wrong));
    }
}

/// What hangs, overflows or executes in other readers.
#[test]
fn hostile_pickles() {
    let selectors = [selector("a", 0, 60)];
    let read = |body: &[u8]| read("graphite-pickle", &selectors, body);
    assert_garbled("a million marks", read(&b"(".repeat(1_000_000)));
    assert_garbled("nested lists", read(&b"]".repeat(1_000_000)));
    assert_garbled("nested lists, closed", read(&[b"(l".repeat(500_000), b"e".repeat(10), b".".to_vec()].concat()));
    assert_garbled("huge text", read(b"\x80\x02](X\xf0\xff\xff\xffabc"));
    assert_garbled("huge long", read(b"\x80\x02](\x8b\xf0\xff\xff\xffabc"));
    assert_garbled("huge memo", read(b"\x80\x02]r\xff\xff\xff\xff."));
    assert_garbled("huge memo", read(b"]p99999999999999999999\n."));
    assert_garbled("unknown memo", read(b"\x80\x02h\x05."));
    for underflow in
        [&b"."[..], b"0.", b"2.", b"a.", b"s.", b"u.", b"e.", b"t.", b"R.", b"b.", b"q\x00.", b"(0e.", b"\x87."]
    {
        assert_garbled("underflow", read(underflow));
    }

    // 200,000 lists in a field that nobody reads do not matter.
    let deep = b"]".repeat(200_000);
    let mut body = b"\x80\x02]}(U\x04nameU\x01aU\x05startK\x3cU\x04stepK\x3cU\x06values](K\x01eU\x05extra".to_vec();
    body.extend_from_slice(&deep);
    body.extend_from_slice(&b"a".repeat(199_999));
    body.extend_from_slice(b"ua.");
    assert_eq!(read(&body).map(|a| a[0].len()), Ok(1));

    // A large dictionary, referred to 5,000 times: one series.
    let mut body = b"\x80\x02]}(U\x04nameU\x01aU\x05startK\x3cU\x04stepK\x3cU\x06values](".to_vec();
    body.extend_from_slice(&b"N".repeat(100_000));
    body.extend_from_slice(b"eu(");
    body.extend_from_slice(&b"2".repeat(5_000));
    assert_garbled("dup below a mark", read(&body));
    let mut body = b"\x80\x02}q\x00(U\x04nameU\x01aU\x05startK\x3cU\x04stepK\x3cU\x06values](".to_vec();
    body.extend_from_slice(&b"N".repeat(100_000));
    body.extend_from_slice(b"eu](");
    body.extend_from_slice(&b"h\x00".repeat(5_000));
    body.extend_from_slice(b"e.");
    let answers = read(&body).expect("readable");
    assert_eq!((answers[0].len(), answers[0][0].len()), (1, 100_000));

    // One column for very many series is more points than are taken.
    let mut body = b"\x80\x02]q\x00(".to_vec();
    body.extend_from_slice(&b"N".repeat(100_000));
    body.extend_from_slice(b"e0](");
    for i in 0..1000 {
        body.extend_from_slice(format!("}}(U\x04nameS'n{i}'\nU\x05startK\x3cU\x04stepK\x3cU\x06valuesh").as_bytes());
        body.extend_from_slice(b"\x00u");
    }
    body.extend_from_slice(b"e.");
    assert_eq!(read(&body).err(), Some(CodecError::TooLarge { limit: 64_000_000, unit: "points" }));

    // Objects are never made; the series beside them are kept.
    for object in [
        &b"cposix\nsystem\n(S'touch /tmp/owned'\ntR"[..],
        b"(S'touch /tmp/owned'\niposix\nsystem\n",
        b"(cposix\nsystem\nS'touch /tmp/owned'\no",
        b"\x8c\x05posix\x8c\x06system\x93\x8c\x05touch\x85R",
        b"cgraphite.intervals\nIntervalSet\n)\x81}(U\x09intervals]ub",
        b"ccollections\nOrderedDict\n)R(U\x04nameU\x01bu",
        b"cbuiltins\nset\n](K\x01e\x85R",
        b"\x8f(K\x01\x90",
        b"(K\x01\x91",
        b"\x82\x01",
        b"\x83\x01\x02",
        b"\x84\x01\x02\x03\x04",
        b"Pid\n",
        b"NQ",
        b"cm\nc\n)}\x92",
    ] {
        let mut body = b"\x80\x02]}(U\x04nameU\x01aU\x05startK\x3cU\x04stepK\x3cU\x06values](K\x01eU\x04evil".to_vec();
        body.extend_from_slice(object);
        body.extend_from_slice(b"ua.");
        let answers = read(&body);
        assert_eq!(answers.map(|a| a[0].len()), Ok(1), "{}", String::from_utf8_lossy(object));
    }
    assert!(!Path::new("/tmp/owned").exists());
    // What follows the end is not looked at, as in Python.
    assert_eq!(read(b"].garbage").map(|a| a.len()), Ok(1));
}

#[test]
fn hostile_msgpack() {
    let selectors = [selector("a", 0, 60)];
    let read = |body: &[u8]| read("graphite", &selectors, body);
    assert_garbled("huge array", read(b"\xdd\x00\x0f\x00\x00\x89\xa4name\xdb\xff\xff\xff\xf0abc"));
    assert_garbled("huge array", read(b"\xdd\xff\xff\xff\xff\x89\xa4name\xdb\xff\xff\xff\xf0abc"));
    assert_garbled("huge values", read(b"\x91\x81\xa6values\xdd\xff\xff\xff\xff\x01"));
    assert_garbled("nested arrays", read(&b"\x91".repeat(1_000_000)));
    assert_garbled("nested arrays in a field", read(&[b"\x91\x81\xa1x".to_vec(), b"\x91".repeat(1_000_000)].concat()));
    assert_garbled("a map of 2^32", read(b"\x91\x81\xa1x\xdf\xff\xff\xff\xff\x01"));
    assert_garbled("extension of 2^32", read(b"\x91\x81\xa1x\xc9\xff\xff\xff\xff\x01"));
    assert_garbled("the reserved byte", read(b"\xc1"));
    assert_garbled("bytes after the end", read(b"\x90\x00"));
    assert_eq!(read(b"\x90").map(|a| a[0].len()), Ok(0));
    // Nested deeply where nobody looks, and closed.
    let mut body = b"\x91\x85\xa4name\xa1a\xa5start\x3c\xa4step\x3c\xa6values\x92\x01\xc0\xa1x".to_vec();
    body.extend_from_slice(&b"\x91".repeat(200_000));
    body.push(0xc0);
    assert_eq!(read(&body).map(|a| a[0][0].len()), Ok(2));
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n > 127 {
        out.push(n as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

#[test]
fn hostile_protobuf() {
    let selectors = [selector("a", 0, 60)];
    for name in ["carbonapi_v2_pb", "carbonapi_v3_pb"] {
        let read = |body: &[u8]| read(name, &selectors, body);
        assert_eq!(read(b"").map(|a| a[0].len()), Ok(0));
        assert_garbled("huge message", read(&[b"\x0a".to_vec(), varint(1 << 40), b"abc".to_vec()].concat()));
        assert_garbled("many empty series", read(&b"\x0a\x00".repeat(100_000)));
        assert_garbled("wrong wire type", read(b"\x08\x05"));
        assert_garbled("html", read(b"<!DOCTYPE html><html><head><title>Login</title></head></html>"));
        assert_garbled("groups", read(&b"\x13".repeat(100_000)));
        assert_garbled("field 0", read(b"\x00\x00"));
    }
    // Fewer marks of absence than points.
    let series = carbonapi::v2::FetchResponse {
        name: b"a".to_vec(),
        start_time: 60,
        stop_time: 180,
        step_time: 60,
        values: vec![1.0, 2.0],
        is_absent: vec![true],
    };
    let message = prost::Message::encode_to_vec(&series);
    let body = [b"\x0a".to_vec(), varint(message.len() as u64), message].concat();
    assert_garbled("absent", read("carbonapi_v2_pb", &selectors, &body));
}

/// Well-formed answers that make no sense.
#[test]
fn impossible_series() {
    let asked = [selector("bomb", 0, 60)];
    for (what, start, end, step) in [
        ("step 0", "1699999200", "1699999200", "0"),
        ("negative step", "1699999200", "1699999260", "-60"),
        ("step over 32 bits", "1699999200", "1699999260", "4294967296"),
        ("end before start", "1699999200", "0", "60"),
        ("start in no year", "9223372036854775807", "9223372036854775807", "60"),
        ("end in no year", "253402300700", "253402300800", "4294967295"),
        ("start is text", "x", "60", "60"),
        ("start is a fraction", "0.5", "60", "60"),
    ] {
        let number = |text: &str| {
            if text.contains('.') {
                format!("F{text}\n")
            } else if text == "x" {
                "S'x'\n".into()
            } else {
                format!("I{text}\n")
            }
        };
        let body = format!(
            "((S'name'\nS'bomb'\nS'start'\n{}S'end'\n{}S'step'\n{}S'values'\n(F1\nNldl.",
            number(start),
            number(end),
            number(step)
        );
        assert_garbled(what, read("graphite-pickle", &asked, body.as_bytes()));
    }
    // Python has whole floats where other languages have integers.
    let body = "((S'name'\nS'bomb'\nS'start'\nF60.0\nS'end'\nF120.0\nS'step'\nF60.0\nS'values'\n(F1\nldl.";
    assert_eq!(read("graphite-pickle", &asked, body.as_bytes()).map(|a| a[0][0].step().seconds()), Ok(60));

    let wrong_shapes: [(&str, &[u8]); 7] = [
        ("graphite-pickle", b"\x80\x02}(U\x04nameK\x07U\x06valuesU\x04oopsU\x05startNu."),
        ("graphite-pickle", b"\x80\x02](K\x01K\x02e."),
        ("graphite-pickle", b"\x80\x02](](K\x01ee."),
        ("graphite", b"\x82\xa4name\x07\xa6values\xa4oops"),
        ("graphite", b"\x91\x82\xa4name\x07\xa6values\xa4oops"),
        ("graphite", b"\x91\x81\x07\x07"),
        ("graphite", b"\x91\x81\xa4name\xa1a"),
    ];
    for (name, body) in wrong_shapes {
        assert_garbled(name, read(name, &asked, body));
        assert_garbled(name, protocol(name).read_find(body, &Limits::default()));
    }
    for name in ["graphite", "graphite-pickle", "graphite-0.9"] {
        assert_garbled(name, read(name, &asked, b""));
        assert_garbled(name, read(name, &asked, b"<html>Please sign in</html>"));
        assert_garbled(name, protocol(name).read_index(&b"[".repeat(200_000), &Limits::default()));
    }
}

#[test]
fn limits_hold() {
    let series: Vec<Series> =
        (0..20).map(|i| Series::new(format!("a.{i}"), 60, Step::SECOND, vec![f64::NAN; 50])).collect();
    let asked = selector("a.*", 0, 60);
    let bodies = [
        ("graphite-pickle", pickle::write_render(&series)),
        ("graphite", msgpack::write_render(&series)),
        ("carbonapi_v2_pb", carbonapi::v2::write_render(&series)),
        ("carbonapi_v3_pb", carbonapi::v3::write_render(series.iter().map(|s| (&asked, s)))),
    ];
    for (name, body) in bodies {
        let within = |entries, points| {
            protocol(name)
                .read_render(std::slice::from_ref(&asked), &body, &Limits { entries, points })
                .map(|a| a[0].len())
        };
        assert_eq!(within(20, 1000), Ok(20), "{name}");
        assert_eq!(within(19, 1000), Err(CodecError::TooLarge { limit: 19, unit: "series" }), "{name}");
        assert_eq!(within(20, 999), Err(CodecError::TooLarge { limit: 999, unit: "points" }), "{name}");
    }
}

// Writing.

/// Python's own bytes for the same answer, but for `use_bin_type` and the order of keys, which is graphite-web's.
#[test]
fn written_answers_have_graphites_keys() {
    let mut series = Series::new("edge.ü", T - 60, Step::new(60).expect("step"), vec![1.5, f64::NAN, f64::INFINITY]);
    series.path_expression = "edge.*".into();
    let body = msgpack::write_render(std::slice::from_ref(&series));
    let expected =
        b"\x91\x89\xa4name\xa7edge.\xc3\xbc\xa5start\xce\x65\x53\xed\xa4\xa3end\xce\x65\x53\xee\x58\xa4step\x3c\
        \xa6values\x93\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xc0\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00\
        \xaepathExpression\xa6edge.*\xaevaluesPerPoint\x01\xb1consolidationFunc\xa7average\
        \xacxFilesFactor\xcb\x00\x00\x00\x00\x00\x00\x00\x00";
    assert_eq!(body, expected);

    let nodes = [FoundNode::branch("a.b"), FoundNode::leaf("a.c").within(5, 7), FoundNode::leaf("a.d")];
    let expected = b"\x93\x82\xa4path\xa3a.b\xa7is_leaf\xc2\
        \x83\xa4path\xa3a.c\xa7is_leaf\xc3\xa9intervals\x91\x92\x05\x07\
        \x83\xa4path\xa3a.d\xa7is_leaf\xc3\xa9intervals\x91\x92\x00\xce\x7f\xff\xff\xff";
    assert_eq!(msgpack::write_find(&nodes), expected);

    // Pickles: protocol 2, which everyone reads.
    let body = pickle::write_render(&[series]);
    assert!(body.starts_with(b"\x80\x02") && body.ends_with(b"."));
    let keys: serde_json::Map<String, Value> = serde_pickle::from_slice::<Vec<Value>>(
        &pickle::write_render(&[Series::new("a", 0, Step::SECOND, vec![f64::NAN])]),
        serde_pickle::DeOptions::new(),
    )
    .expect("a pickle")
    .remove(0)
    .as_object()
    .expect("a dictionary")
    .clone();
    let mut names: Vec<&str> = keys.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "consolidationFunc",
            "end",
            "name",
            "pathExpression",
            "start",
            "step",
            "values",
            "valuesPerPoint",
            "xFilesFactor"
        ]
    );
    assert_eq!(keys["values"], serde_json::json!([null]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
        let asked = [selector("a.*", 0, 60), selector("a", 0, 60)];
        for name in NAMES {
            let _ = read(name, &asked, &body);
            let _ = protocol(name).read_find(&body, &Limits::default());
            let _ = protocol(name).read_index(&body, &Limits::default());
        }
    }

    /// Random opcodes reach further than random bytes.
    #[test]
    fn random_opcodes_never_panic(ops in prop::collection::vec(prop::sample::select(OPCODES.to_vec()), 0..200)) {
        let body: Vec<u8> = ops.concat();
        let _ = read("graphite-pickle", &[selector("a.*", 0, 60)], &body);
        let _ = protocol("graphite-pickle").read_find(&body, &Limits::default());
    }

    /// A recording with a few bytes changed.
    #[test]
    fn damaged_answers_never_panic(
        file in prop::sample::select(vec![
            ("graphite-pickle", "python3-protocol-4.pickle"), ("graphite-pickle", "python2-protocol-0.pickle"),
            ("graphite", "python-msgpack.msgpack"), ("carbonapi_v2_pb", "go-carbon-render-protobuf.pb"),
            ("carbonapi_v3_pb", "go-carbon-render-v3.pb"), ("graphite-pickle", "graphite-web-1.1.10-find-leaves.pickle"),
        ]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut body = recorded(file.1);
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let _ = read(file.0, &[selector("edge.*", T - 600, T)], &body);
        let _ = protocol(file.0).read_find(&body, &Limits::default());
    }

    #[test]
    fn what_is_written_is_read(
        rows in prop::collection::vec(
            ("[a-zé.;=]{1,40}", 1_i64..4_000_000_000, 1_i64..100_000, prop::collection::vec(any::<f64>(), 0..40)),
            0..8,
        ),
    ) {
        let asked = selector("**", 0, 60);
        let mut series: Vec<Series> = Vec::new();
        for (name, start, step, values) in rows {
            // (carbonapi v2 has timestamps of 32 bits.)
            let start = start % 2_000_000_000;
            if series.iter().all(|s| *s.name != *name) {
                let mut new = Series::new(name, start, Step::new(step).expect("a step"), values);
                new.path_expression = "**".into();
                series.push(new);
            }
        }
        let bodies = [
            ("graphite-pickle", pickle::write_render(&series)),
            ("graphite", msgpack::write_render(&series)),
            ("carbonapi_v2_pb", carbonapi::v2::write_render(&series)),
            ("carbonapi_v3_pb", carbonapi::v3::write_render(series.iter().map(|s| (&asked, s)))),
        ];
        for (name, body) in bodies {
            let answers = read(name, std::slice::from_ref(&asked), &body).expect(name);
            prop_assert_eq!(answers[0].len(), series.len());
            for (got, expected) in answers[0].iter().zip(&series) {
                prop_assert_eq!(&got.name, &expected.name);
                prop_assert_eq!((got.start(), got.end(), got.step()), (expected.start(), expected.end(), expected.step()));
                prop_assert_eq!(&got.tags, &expected.tags);
                let same = |a: &f64, b: &f64| a.is_nan() && b.is_nan() || a == b;
                prop_assert!(got.values().iter().zip(expected.values()).all(|(a, b)| same(a, b)));
            }
        }
    }

    #[test]
    fn found_nodes_that_are_written_are_read(
        nodes in prop::collection::vec(("[a-zé.]{1,40}", any::<bool>(), prop::option::of((0_i64..9_000_000_000, 0_i64..9_000_000_000))), 0..20),
    ) {
        let nodes: Vec<FoundNode> = nodes
            .into_iter()
            .map(|(path, leaf, interval)| FoundNode { path, leaf, interval: if leaf { interval } else { None } })
            .collect();
        let written = nodes.iter().map(|n| {
            let interval = if n.leaf { n.interval.or(Some((0, i64::from(i32::MAX)))) } else { None };
            FoundNode { interval, ..n.clone() }
        });
        let written: Vec<FoundNode> = written.collect();
        let limits = Limits::default();
        prop_assert_eq!(pickle::read_find(&pickle::write_find(&nodes), &limits), Ok(written.clone()));
        prop_assert_eq!(msgpack::read_find(&msgpack::write_find(&nodes), &limits), Ok(written));
        let plain: Vec<FoundNode> = nodes.iter().map(|n| FoundNode { interval: None, ..n.clone() }).collect();
        prop_assert_eq!(carbonapi::v2::read_find(&carbonapi::v2::write_find("q", &nodes), &limits), Ok(plain.clone()));
        let v3 = carbonapi::v3::write_find([("q", nodes.as_slice())]);
        prop_assert_eq!(carbonapi::v3::read_find(&v3, &limits), Ok(plain));
    }
}

const OPCODES: &[&[u8]] = &[
    b"(",
    b".",
    b"0",
    b"1",
    b"2",
    b"]",
    b"}",
    b")",
    b"l",
    b"t",
    b"d",
    b"a",
    b"e",
    b"s",
    b"u",
    b"N",
    b"K\x01",
    b"M\x01\x00",
    b"J\x01\x00\x00\x00",
    b"G?\xf0\x00\x00\x00\x00\x00\x00",
    b"I5\n",
    b"I01\n",
    b"L5L\n",
    b"F1.5\n",
    b"\x88",
    b"\x8a\x01\x05",
    b"q\x00",
    b"q\x05",
    b"h\x00",
    b"h\x05",
    b"p1\n",
    b"g1\n",
    b"\x94",
    b"U\x01a",
    b"U\x04name",
    b"U\x05start",
    b"U\x04step",
    b"U\x06values",
    b"X\x04\x00\x00\x00path",
    b"S'is_leaf'\n",
    b"Va\n",
    b"U\x09intervals",
    b"\x85",
    b"\x86",
    b"\x87",
    b"c\n\n",
    b"R",
    b"b",
    b"i\n\n",
    b"o",
    b"\x81",
    b"\x8f",
    b"\x90",
    b"\x91",
    b"\x93",
    b"\x95\x00\x00\x00\x00\x00\x00\x00\x00",
];
