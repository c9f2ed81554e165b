//! Backends that answer in their own way.

use actix_web::test::TestRequest;
use plumbago::backend::carbonapi::v3;
use plumbago::backend::wire::Limits;
use plumbago::backend::{FoundNode, msgpack, pickle};
use plumbago::config::Config;
use prost::Message as _;
use serde_json::{Value, json};

use super::support::backend_server::{Reply, Server as BackendServer};
use super::support::server::Server;
use super::{Line, before, names, store};

fn pickled(body: &[u8]) -> Reply {
    Reply::Full(200, vec![("Content-Type", "application/pickle")], body.to_vec())
}

/// A pickle of series of two minutes, of each the opcodes of its name, without what newer servers add.
fn answer(names: &[&[u8]]) -> Vec<u8> {
    let rest = b"sS'start'\nI60\nsS'end'\nI180\nsS'step'\nI60\nsS'values'\n(lF1\naNasa";
    let series: Vec<u8> = names.iter().flat_map(|name| [b"(dS'name'\n", *name, rest].concat()).collect();
    [b"(l", &*series, b"."].concat()
}

/// graphite-web #1073: servers before 1.0 do not say which pattern a series is for.
#[actix_web::test]
async fn series_without_a_pattern_are_matched_by_name() {
    let body = answer(&[b"S'a.b'\n", b"S'a.c'\n", b"S'x.y'\n"]);
    let backend = BackendServer::saying(pickled(&body)).await;
    let server = before(&backend, "graphite-0.9", |_| {}).await;
    let found =
        server.get("/render?target=a.*&target=x.y&target=n.*&from=0&until=120&now=120&format=json").await.json();
    assert_eq!(names(&found), ["a.b", "a.c", "x.y"]);
    assert_eq!(found[0]["datapoints"], json!([[1.0, 60], [null, 120]]));
    assert_eq!(backend.seen().len(), 1);
}

/// graphite-web #2652, go-carbon #107: names in the bytes of Python 2 and the text of Python 3.
#[actix_web::test]
async fn names_in_bytes_and_in_text_are_the_same() {
    for name in [&b"U\x0brandom.d\xc3\xb8d"[..], b"X\x0b\0\0\0random.d\xc3\xb8d"] {
        let body = answer(&[name]);
        let backend = BackendServer::saying(pickled(&body)).await;
        let server = before(&backend, "graphite-pickle", |_| {}).await;
        let found = server.get("/render?target=random.*&from=0&until=120&now=120&format=json").await.json();
        assert_eq!(names(&found), ["random.død"]);
    }
}

/// graphite-web #756, #583; graphite-clickhouse #39, carbonapi #503: nothing there, said in different ways.
#[actix_web::test]
async fn nothing_is_an_answer_however_it_is_said() {
    for reply in
        [pickled(b"\x80\x02]q\x00."), Reply::Full(404, vec![], b"Not Found".to_vec()), Reply::Full(200, vec![], vec![])]
    {
        let backend = BackendServer::saying(reply).await;
        let server = before(&backend, "graphite-pickle", |_| {}).await;
        let get = async |rest: &str| server.get(&format!("/render?target=a.b&now=900&{rest}")).await;
        let future = get("from=%2B1h&until=%2B2h&format=json").await;
        assert_eq!((future.status, future.text()), (200, "[]"));
        assert_eq!(future.header("x-plumbago-partial"), None);
        let svg = get("from=600&until=900&format=svg").await;
        assert_eq!(svg.status, 200);
        assert!(svg.text().contains("No Data"), "{}", svg.text());
        assert!(get("from=600&until=900&format=png").await.body.starts_with(b"\x89PNG"));
        assert_eq!(backend.seen().len(), 2, "it is not asked again for what is not there");
    }
}

/// graphite-web commit 5f736a83, docker-graphite-statsd #174: intervals that are missing, empty, pairs or objects.
#[actix_web::test]
async fn found_nodes_are_read_with_and_without_intervals() {
    let node = |intervals: &str| format!("(l(dS'path'\nS'a.b'\nsS'is_leaf'\nI01\ns{intervals}a.");
    let object = "S'intervals'\n(igraphite.intervals\nIntervalSet\n(dS'intervals'\n(l(F5\nF9\ntasbs";
    for (intervals, known) in [
        ("", None),
        ("S'intervals'\n(ls", None),
        ("S'intervals'\n(l(F5\nF9\ntas", Some((5, 9))),
        (object, Some((5, 9))),
    ] {
        let backend = BackendServer::saying(pickled(node(intervals).as_bytes())).await;
        let server = before(&backend, "graphite-pickle", |_| {}).await;
        let found = server.get("/metrics/find?query=a.*&format=json").await;
        let (start, end) = known.unwrap_or((0, i64::from(i32::MAX)));
        let leaf = json!([{"path": "a.b", "is_leaf": true, "intervals": [{"start": start, "end": end}]}]);
        assert_eq!((found.status, found.json()), (200, leaf), "{intervals:?}");
    }
    let empty = b"\x91\x83\xa4path\xa3a.b\xa7is_leaf\xc3\xa9intervals\x90";
    assert_eq!(msgpack::read_find(empty, &Limits::default()), Ok(vec![FoundNode::leaf("a.b")]));
}

/// carbonapi #379, graphite-web #2591, docker-graphite-statsd #174: pickles that everyone can read.
#[actix_web::test]
async fn pickles_are_of_protocol_2_with_plain_tuples() {
    let server =
        Server::over(Config::default(), vec![std::sync::Arc::new(store(&[Line("a.b", 60, 60, vec![1.0; 3])]))]).await;
    let found = server.get("/metrics/find?format=pickle&query=a.*").await;
    let rendered = server.get("/render?target=a.b&format=pickle&from=0&until=180&now=180").await;
    for answer in [&found, &rendered] {
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/pickle")));
        assert!(answer.body.starts_with(b"\x80\x02"));
        // No class, no call.
        let read: Value = serde_pickle::from_slice(&answer.body, serde_pickle::DeOptions::new()).expect("plain data");
        assert_eq!(read.as_array().map(Vec::len), Some(1));
    }
    let nodes: Value = serde_pickle::from_slice(&found.body, serde_pickle::DeOptions::new()).expect("plain data");
    assert_eq!(nodes[0], json!({"path": "a.b", "is_leaf": true, "intervals": [[60, 180]]}));
    assert_eq!(pickle::read_find(&found.body, &Limits::default()).map(|nodes| nodes.len()), Ok(1));
}

/// metrictank #633: the bounds of the data, not those of the question.
#[actix_web::test]
async fn a_pickle_says_where_its_points_are() {
    let data = [Line("a", 0, 60, vec![1.0; 20])];
    let server = Server::over(Config::default(), vec![std::sync::Arc::new(store(&data))]).await;
    let request = TestRequest::get().uri("/render?target=a&format=pickle&from=605&until=905&now=905");
    let answer = server.ask(request).await;
    let read: Value = serde_pickle::from_slice(&answer.body, serde_pickle::DeOptions::new()).expect("plain data");
    assert_eq!([&read[0]["start"], &read[0]["end"], &read[0]["step"]], [660, 960, 60]);
    assert_eq!(read[0]["values"], json!([1.0, 1.0, 1.0, 1.0, 1.0]));
}

/// graphite-web #1525: the mean of a counter is not what its owner wants; a store that knows better says so.
#[actix_web::test]
async fn points_are_joined_as_the_store_joins_them() {
    let counter = |declared: &str| v3::FetchResponse {
        name: b"a".to_vec(),
        path_expression: b"a".to_vec(),
        consolidation_func: declared.to_owned(),
        start_time: 60,
        stop_time: 300,
        step_time: 60,
        values: vec![1.0, 2.0, 3.0, 4.0],
        request_start_time: 0,
        request_stop_time: 240,
        ..v3::FetchResponse::default()
    };
    for (declared, joined) in
        [("Sum", 10.0), ("sum", 10.0), ("Max", 4.0), ("Last", 4.0), ("Average", 2.5), ("", 2.5), ("bogus", 2.5)]
    {
        let message = counter(declared).encode_to_vec();
        // One field of a message; the length of a short one is a byte.
        let length = u8::try_from(message.len()).ok().filter(|n| *n < 128).expect("a short message");
        let body = [&[0x0a, length], &*message].concat();
        let backend = BackendServer::saying(Reply::Full(200, vec![("Content-Type", v3::MEDIA_TYPE)], body)).await;
        let server = before(&backend, "carbonapi_v3_pb", |_| {}).await;
        let targets = "target=a&target=consolidateBy(a,'min')";
        let uri = format!("/render?{targets}&from=0&until=240&now=240&maxDataPoints=1&format=json");
        let answer = server.get(&uri).await.json();
        assert_eq!(answer[0]["datapoints"], json!([[joined, 60]]), "{declared}");
        assert_eq!(answer[1]["datapoints"], json!([[1.0, 60]]), "{declared}");
    }
}
