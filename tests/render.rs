//! `/render` as clients see it: parameters, headers, caches, failures, hang-ups.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use actix_web::{middleware, test as actix, web};
use plumbago::backend::{Backend, BackendError, BackendId};
use plumbago::config::{Config, GroupKind as ConfiguredKind, GroupSettings};
use plumbago::fetch::{Group, GroupKind};
use plumbago::http::{self, App};
use plumbago::series::{Series, Step};
use plumbago::store::MemoryStore;
use serde_json::{Value, json};

fn series(name: &str, start: i64, values: &[f64]) -> Series {
    Series::new(name, start, Step::new(60).expect("a minute"), values.to_vec())
}

/// An application over one group of shards.
fn app(config: Config, stores: Vec<Arc<MemoryStore>>) -> web::Data<App> {
    let backends = stores.into_iter().map(|s| s as Arc<dyn Backend>).collect();
    let group = Group::new("test", GroupKind::Shards, backends);
    web::Data::new(App::with_groups(config, vec![group]).expect("threads"))
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text body")
    }
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| v.to_str().expect("a readable header"))
    }
}

async fn send(app: &web::Data<App>, request: actix::TestRequest) -> Answer {
    let service = actix_web::App::new().wrap(middleware::from_fn(http::outer)).configure(http::routes(app.clone()));
    let service = actix::init_service(service).await;
    let response = actix::call_service(&service, request.to_request()).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, body: actix::read_body(response).await.to_vec() }
}

async fn get(app: &web::Data<App>, uri: &str) -> Answer {
    send(app, actix::TestRequest::get().uri(uri)).await
}

const RANGE: &str = "from=600&until=900&now=900&format=json";

fn ramp() -> Arc<MemoryStore> {
    let values: Vec<f64> = (0..30).map(f64::from).collect();
    Arc::new(MemoryStore::new(BackendId::new("one"), [series("a.b", 0, &values), series("a.c", 0, &[1.0; 30])]))
}

#[actix_web::test]
async fn answers_graphite_web_gave_to_known_traps() {
    let app = app(Config::default(), vec![ramp()]);
    let points = |answer: &Answer| answer.json()[0]["datapoints"].clone();
    // Two targets in one request: each gets its own series, in order.
    let two = get(&app, &format!("/render?target=a.b&target=a.c&{RANGE}")).await.json();
    assert_eq!([&two[0]["target"], &two[1]["target"]], ["a.b", "a.c"]);
    // A shift reads other data than what it is asked over.
    let shifted = get(&app, &format!("/render?target=timeShift(a.b,%225min%22)&{RANGE}")).await;
    assert_eq!(points(&shifted), json!([[6.0, 660], [7.0, 720], [8.0, 780], [9.0, 840], [10.0, 900]]));
    // The same target twice: consolidated once each.
    let twice = get(&app, "/render?target=a.b&target=a.b&from=0&until=600&now=900&format=json&maxDataPoints=5").await;
    assert_eq!(twice.json()[0], twice.json()[1]);
    // Functions do not change the series that others use.
    let three =
        get(&app, &format!("/render?target=scale(a.c,2)&target=a.c&target=alias(a.c,%22z%22)&{RANGE}")).await.json();
    assert_eq!(three[0]["datapoints"][0][0], 2.0);
    assert_eq!(three[1]["datapoints"][0][0], 1.0);
    assert_eq!((&three[2]["target"], &three[2]["datapoints"][0][0]), (&json!("z"), &json!(1.0)));
    assert_eq!(three[2]["tags"]["name"], "a.c");
    // Quoted numbers count as numbers; unknown metrics are no error; maxDataPoints=0 is none.
    assert_eq!(points(&get(&app, &format!("/render?target=scale(a.c,%222%22)&{RANGE}")).await)[0][0], 2.0);
    assert_eq!(get(&app, &format!("/render?target=no.such&{RANGE}")).await.json(), json!([]));
    assert_eq!(get(&app, &format!("/render?target=a.b&maxDataPoints=0&{RANGE}")).await.status, 200);
    let one = get(&app, "/render?target=a.b&from=0&until=600&now=900&format=json&maxDataPoints=1").await;
    assert_eq!(points(&one), json!([[5.5, 60]]), "the mean of 1 to 10 at the first time");
}

#[actix_web::test]
async fn the_body_of_a_post_is_merged_with_the_query() {
    let app = app(Config::default(), vec![ramp()]);
    let post = |body: &'static str| {
        let form = ("content-type", "application/x-www-form-urlencoded");
        actix::TestRequest::post().uri("/render?from=600&now=900&target=a.b").insert_header(form).set_payload(body)
    };
    let first = send(&app, post("format=json&until=900")).await;
    assert_eq!(first.json()[0]["target"], "a.b");
    // The cache tells bodies apart.
    let second = send(&app, post("format=json&until=900&target=a.c")).await;
    assert_eq!(second.json().as_array().map(Vec::len), Some(2));
    let escaped = get(&app, &format!("/render?target=a.b%26target%3Da.c&{RANGE}")).await;
    assert_eq!(escaped.json(), json!([]), "an escaped ampersand is a part of the name");
}

#[actix_web::test]
async fn errors_are_one_line_of_plain_text() {
    let app = app(Config::default(), vec![ramp()]);
    for (query, status, text) in [
        ("target=scal(a.b,2)", 400, "did you mean `scale`?"),
        ("target=a.b)", 400, "unexpected `)`"),
        ("target=scale(a.b,1,zz=1)", 400, "has no argument `zz`"),
        ("target=scale(a.b)", 400, "needs `factor`"),
        ("target=a.b&jsonp=alert(1)//", 400, "jsonp"),
        ("target=a.b&cacheTimeout=%3Cimg%3E", 400, "cacheTimeout"),
        ("target=a.b&xFilesFactor=x", 400, "xFilesFactor"),
        ("target=a.b&graphType=bogus", 400, "graphType"),
    ] {
        let answer = get(&app, &format!("/render?{query}&{RANGE}")).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        assert!(answer.text().lines().next().is_some_and(|l| l.contains(text)), "{query}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    let hostile = get(&app, &format!("/render?target=a.b&cacheTimeout=%3Cimg%20src=x%20onerror=1%3E&{RANGE}")).await;
    assert!(!hostile.text().contains(['<', '>']), "{}", hostile.text());
    for (query, text) in [("from=blurb", "blurb"), ("from=600&until=600", "empty"), ("from=%3Cscript%3E", "script")] {
        let answer = get(&app, &format!("/render?target=a.b&now=900&format=json&{query}")).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(text), "{}", answer.text());
    }
    // Reversed ends are swapped, and a time long ago is no error.
    assert_eq!(
        get(&app, "/render?target=a.b&from=900&until=600&now=900&format=json").await.json()[0]["datapoints"][0][1],
        660
    );
    assert_eq!(get(&app, "/render?target=a.b&from=-10y&until=-9y&format=json").await.status, 200);
    let hostile = "f(".repeat(10_000);
    assert_eq!(get(&app, &format!("/render?target={hostile}&{RANGE}")).await.status, 400);
}

#[actix_web::test]
async fn caching_is_announced_and_kept() {
    let store = ramp();
    let app = app(Config::default(), vec![store.clone()]);
    let uri = format!("/render?target=a.b&{RANGE}");
    let first = get(&app, &uri).await;
    assert_eq!(first.header("cache-control"), Some("max-age=60"));
    assert_eq!(get(&app, &uri).await.body, first.body);
    assert_eq!(store.fetches().len(), 1, "the second answer came from the cache");
    let never = get(&app, &format!("{uri}&noCache=1")).await;
    assert_eq!(never.header("cache-control"), Some("max-age=0, no-cache, no-store, must-revalidate, private"));
    assert_eq!(store.fetches().len(), 2, "noCache asks anew");
    get(&app, &format!("{uri}&cacheTimeout=0")).await;
    assert_eq!(store.fetches().len(), 3);
    assert_eq!(get(&app, &format!("{uri}&cacheTimeout=7")).await.header("cache-control"), Some("max-age=7"));
    // Two users whose credentials are passed on do not share answers.
    let fetches = store.fetches().len();
    for user in ["Basic YTph", "Basic Yjpi"] {
        send(&app, actix::TestRequest::get().uri(&uri).insert_header(("authorization", user))).await;
    }
    assert_eq!(store.fetches().len(), fetches + 2);
    // The two zones mean different times, whatever the text.
    let zoned = |tz: &str| format!("/render?target=a.b&from=10:00_20240110&until=11:00_20240110&tz={tz}&format=json");
    let times = |answer: &Answer| answer.json()[0]["datapoints"][0][1].clone();
    assert_eq!(times(&get(&app, &zoned("UTC")).await), 1_704_880_860);
    assert_eq!(times(&get(&app, &zoned("America/New_York")).await), 1_704_898_860);
}

#[actix_web::test]
async fn a_failed_backend_marks_the_answer() {
    let down = || {
        let store = MemoryStore::new(BackendId::new("down"), [series("a.d", 0, &[1.0; 30])]);
        Arc::new(store.failing_with(|_| {
            Some(BackendError::Unreachable { backend: BackendId::new("down"), reason: "refused".into() })
        }))
    };
    let up = ramp();
    let partial = app(Config::default(), vec![up.clone(), down()]);
    let uri = format!("/render?target=a.*&{RANGE}");
    for round in 1..=2 {
        let answer = get(&partial, &uri).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json().as_array().map(Vec::len), Some(2));
        assert!(answer.header("x-plumbago-partial").is_some_and(|h| h.starts_with("1 failed: down is not reachable")));
        assert!(answer.header("cache-control").is_some_and(|h| h.contains("no-store")));
        assert_eq!(up.fetches().len(), round, "a partial answer is not cached");
    }
    let strict = app(Config { strict: true, ..Config::default() }, vec![ramp(), down()]);
    assert_eq!(get(&strict, &uri).await.status, 502);
    let none = app(Config::default(), vec![down()]);
    let answer = get(&none, &uri).await;
    assert_eq!((answer.status, answer.text().lines().count()), (502, 1));
    // What needs no storage works without any.
    assert_eq!(get(&none, &format!("/render?target=constantLine(100)&{RANGE}")).await.json()[0]["target"], "100.0");
}

#[actix_web::test]
async fn compression_and_ids() {
    let app = app(Config::default(), vec![ramp()]);
    let uri = "/render?target=a.*&from=0&until=90000&now=90000&format=json";
    let plain = get(&app, uri).await;
    assert_eq!(plain.header("content-encoding"), None);
    let request = actix::TestRequest::get()
        .uri(uri)
        .insert_header(("accept-encoding", "gzip"))
        .insert_header(("x-request-id", "abc"));
    let small = send(&app, request).await;
    assert_eq!(small.header("content-encoding"), Some("gzip"));
    for answer in [&plain, &small] {
        assert_eq!(answer.header("vary"), Some("accept-encoding"));
    }
    assert_eq!(small.header("x-request-id"), Some("abc"));
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&small.body[..]).read_to_end(&mut text).expect("gzip");
    assert_eq!(text, plain.body);
    let identity = actix::TestRequest::get().uri(uri).insert_header(("accept-encoding", "identity"));
    assert_eq!(send(&app, identity).await.header("content-encoding"), None);
}

/// Browsers refuse an answer with two Access-Control-Allow-Origin headers, and one whose length is not that of its body.
#[test]
fn a_page_of_an_allowed_origin_may_read_compressed_answers() {
    let mut config = Config { http_threads: 1, fetch_threads: 1, ..Config::default() };
    config.http.cors_origins = vec!["https://grafana.example".to_owned()];
    let group = Group::new("test", GroupKind::Shards, vec![ramp() as Arc<dyn Backend>]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    http::serve_aside(App::with_groups(config, vec![group]).expect("an app"), listener).expect("a thread");
    let ask = |origin: &str| {
        let mut client = TcpStream::connect(address).expect("the server listens");
        let request = format!(
            "GET /render?target=a.*&from=0&until=90000&now=90000&format=json HTTP/1.1\r\nHost: x\r\nOrigin: {origin}\r\n\
             Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        );
        client.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        (head.lines().map(str::to_owned).collect::<Vec<_>>(), answer[end + 4..].to_vec())
    };
    let allowed = |head: &[String]| head.iter().filter(|l| l.starts_with("access-control-allow-origin:")).count();
    let (head, body) = ask("https://grafana.example");
    assert_eq!(allowed(&head), 1, "{head:?}");
    assert!(head.contains(&"content-encoding: gzip".to_owned()), "{head:?}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head:?}");
    let (head, _) = ask("https://elsewhere.example");
    assert_eq!(allowed(&head), 0, "{head:?}");
}

/// Grafana drops the connection of a request that it needs no more. The backend must see its own dropped.
#[test]
fn a_client_that_hangs_up_ends_the_calls_to_the_backends() {
    let backend = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", backend.local_addr().expect("an address"));
    let (asked, was_asked) = mpsc::channel();
    let (ended, has_ended) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut socket, _) = backend.accept().expect("a connection");
        let mut buffer = [0; 4096];
        let n = socket.read(&mut buffer).expect("a request");
        asked.send(String::from_utf8_lossy(&buffer[..n]).into_owned()).expect("the test waits");
        // Never answers; reads until the connection ends.
        while socket.read(&mut buffer).is_ok_and(|n| n > 0) {}
        ended.send(()).expect("the test waits");
    });
    let mut group = GroupSettings::new("slow", ConfiguredKind::Shards, "graphite");
    group.urls = vec![url];
    let config = Config { groups: vec![group], http_threads: 1, fetch_threads: 1, ..Config::default() };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    http::serve_aside(App::build(config).expect("an app"), listener).expect("a thread");
    let mut client = TcpStream::connect(address).expect("the server listens");
    client.write_all(b"GET /render?target=a.b&format=json HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let request = was_asked.recv_timeout(Duration::from_secs(20)).expect("the backend is asked");
    assert!(request.contains("/render"), "{request}");
    drop(client);
    has_ended.recv_timeout(Duration::from_secs(20)).expect("the backend's connection ends with the client's");
}
