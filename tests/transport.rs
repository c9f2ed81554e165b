//! The HTTP transport against small servers in the same process.

mod support;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plumbago::backend::protocol::{Bulk, by_name};
use plumbago::backend::transport::{HttpBackend, HttpSettings, SettingsError, shown};
use plumbago::backend::{
    Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Scope, TagLimits, msgpack,
};
use plumbago::series::{PathExpression, Selector, Series, Step, TimeRange};
use support::backend_server::{Reply, Request, Server, msgpack_of, next_request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

fn one(name: &str) -> Reply {
    msgpack_of(&[Series::new(name, 60, Step::SECOND, vec![1.0])])
}

fn settings(server: &Server) -> HttpSettings {
    HttpSettings::new(BackendId::new("b"), server.url())
}

fn to(server: &Server) -> HttpBackend {
    backend(settings(server))
}

fn backend(settings: HttpSettings) -> HttpBackend {
    HttpBackend::new(settings, by_name("graphite", Bulk::default()).expect("known")).expect("a backend")
}

fn scope() -> Scope {
    Scope {
        deadline: Instant::now() + Duration::from_secs(60),
        now: 1000,
        headers: Arc::new([]),
        request_id: "r-1".into(),
    }
}

fn selector(pattern: &str, from: i64, until: i64) -> Selector {
    Selector { pattern: PathExpression::new(pattern), range: TimeRange::new(from, until).expect("not empty") }
}

async fn fetch(backend: &HttpBackend) -> Answer {
    backend.fetch(&[selector("a.*", 0, 100)], &scope()).await.remove(0)
}

fn names(answer: &Answer) -> Vec<&str> {
    answer.as_ref().expect("an answer").iter().map(|s| &*s.name).collect()
}

/// Lets time jump: from here on the clock goes to the next timer whenever nothing else can happen.
fn jump() {
    tokio::time::pause();
}

// What is sent.

#[tokio::test]
async fn one_request_for_each_range_at_the_same_time() {
    // No request is answered before all have come.
    let all = Arc::new(tokio::sync::Barrier::new(3));
    let server = Server::start(move |request| {
        let all = all.clone();
        async move {
            all.wait().await;
            let from = request.parameters().iter().find(|(k, _)| k == "from").map(|(_, v)| v.clone());
            one(&format!("a.from{}", from.expect("from")))
        }
    })
    .await;
    let backend = to(&server);
    let selectors =
        [selector("a.*", 0, 100), selector("a.*", 50, 100), selector("a.from*", 0, 100), selector("a.*", 7, 100)];
    let answers = backend.fetch(&selectors, &scope()).await;
    let got: Vec<Vec<&str>> = answers.iter().map(names).collect();
    assert_eq!(got, [["a.from0"], ["a.from50"], ["a.from0"], ["a.from7"]]);
    assert_eq!(server.seen().len(), 3);
    let stats = backend.stats();
    assert_eq!((stats.requests, stats.failures, stats.in_flight, stats.waiting), (3, 0, 0, 0));
    assert!(stats.bytes > 0);
    assert!(backend.fetch(&[], &scope()).await.is_empty());
}

/// Graphite reads `-60` as an offset without its unit, and refuses it.
#[tokio::test]
async fn times_before_1970_are_not_sent() {
    for protocol in ["graphite-pickle", "carbonapi_v2_pb"] {
        let server = Server::saying(Reply::Full(200, vec![], vec![])).await;
        let protocol = by_name(protocol, Bulk::default()).expect("known");
        let backend = HttpBackend::new(settings(&server), protocol).expect("a backend");
        let selectors = [selector("a", -120, -60), selector("b", -60, 100), selector("c", -1, 0)];
        let answers = backend.fetch(&selectors, &scope()).await;
        assert!(answers.iter().all(|answer| names(answer).is_empty()));
        let asked: Vec<(String, String)> = server.seen().iter().flat_map(Request::parameters).collect();
        let of = |name: &str| asked.iter().filter(|(k, _)| k == name).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        assert_eq!((of("target"), of("from"), of("until")), (vec!["b".into()], vec!["0".into()], vec!["100".into()]));
        let query = FindQuery { pattern: "*".into(), range: TimeRange::new(-60, 100), leaves_only: false };
        assert_eq!(backend.find(&query, &scope()).await, Ok(vec![]));
        assert!(server.seen()[1].parameters().iter().all(|(k, v)| k != "from" || v == "0"));
    }
}

#[tokio::test]
async fn an_answer_belongs_to_its_selector_when_others_are_not_sent() {
    let server = Server::saying(one("a.b")).await;
    let selectors = [selector("a.*", -120, -60), selector("a.*", -60, 100)];
    let answers = to(&server).fetch(&selectors, &scope()).await;
    assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), [vec![], vec!["a.b"]]);
}

#[tokio::test]
async fn one_range_can_fail_alone() {
    let server = Server::start(|request| async move {
        if request.target.contains("from=50") { Reply::Full(500, vec![], b"oops".to_vec()) } else { one("a.b") }
    })
    .await;
    let answers = to(&server).fetch(&[selector("a.*", 0, 100), selector("a.*", 50, 100)], &scope()).await;
    assert_eq!(names(&answers[0]), ["a.b"]);
    assert!(matches!(&answers[1], Err(BackendError::Refused { reason, .. }) if reason.contains("oops")));
}

#[tokio::test]
async fn headers_are_passed_on_only_if_harmless() {
    let server = Server::saying(one("a.b")).await;
    let pairs = [
        ("X-Grafana-User", "ada"),
        ("X-Smuggled", "a\r\nX-Evil: 1"),
        ("X-Evil\r\nX-Worse", "1"),
        ("Host", "elsewhere"),
        ("Content-Length", "5"),
        ("Accept-Encoding", "identity"),
        ("X-Request-Id", "theirs"),
    ];
    let headers = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    to(&server).fetch(&[selector("a.*", 0, 100)], &Scope { headers, ..scope() }).await;
    let request = &server.seen()[0];
    assert_eq!(request.header("x-grafana-user"), ["ada"]);
    assert_eq!(request.header("x-request-id"), ["r-1"]);
    assert_eq!(request.header("host"), [server.address.to_string()]);
    assert_eq!(request.header("accept-encoding"), ["gzip"]);
    assert!(
        request
            .headers
            .iter()
            .all(|(n, _)| !["x-evil", "x-worse", "x-smuggled", "content-length"].contains(&n.as_str()))
    );
}

#[tokio::test]
async fn long_requests_are_posted_below_the_path_of_the_url() {
    let server = Server::saying(msgpack_of(&[])).await;
    let settings = HttpSettings { url: format!("{}/graphite/", server.url()), ..settings(&server) };
    let selectors: Vec<Selector> = (0..800).map(|i| selector(&format!("servers.web{i:03}.*"), 0, 100)).collect();
    let answers = backend(settings).fetch(&selectors, &scope()).await;
    assert!(answers.iter().all(|a| names(a).is_empty()) && answers.len() == 800);
    let request = &server.seen()[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/graphite/render/"));
    assert_eq!(request.header("content-type"), ["application/x-www-form-urlencoded"]);
    assert_eq!(request.parameters().iter().filter(|(k, _)| k == "target").count(), 800);
}

#[test]
fn urls_of_other_kinds_are_refused() {
    for url in ["", "localhost:8080", "ftp://a/", "http://a/?x=1", "http://a/#b", "/render", "http://"] {
        let settings = HttpSettings::new(BackendId::new("b"), url);
        let protocol = by_name("graphite", Bulk::default()).expect("known");
        let result = HttpBackend::new(settings, protocol);
        assert!(matches!(result, Err(SettingsError::Url { .. })), "{url}");
    }
}

#[tokio::test]
async fn a_password_is_sent_and_not_shown() {
    for (url, expected) in [
        ("http://u:p@h:1/x", "http://h:1/x"),
        ("http://u:p/@h:1/x@y", "http://u:p/@h:1/x@y"),
        ("https://u@h/@", "https://h/@"),
        ("http://h:1", "http://h:1"),
        ("h", "h"),
    ] {
        assert_eq!(shown(url), expected);
    }
    let server = Server::saying(one("a.b")).await;
    let url = server.url().replace("://", "://ada:secret@");
    assert_eq!(names(&fetch(&backend(HttpSettings { url, ..settings(&server) })).await), ["a.b"]);
    // base64 of `ada:secret`
    assert_eq!(server.seen()[0].header("authorization"), ["Basic YWRhOnNlY3JldA=="]);
}

// What comes back.

#[tokio::test]
async fn not_found_is_an_empty_answer_of_those_that_say_it_so() {
    for reply in [Reply::Full(404, vec![], b"Not Found".to_vec()), Reply::Full(200, vec![], vec![])] {
        for name in ["graphite-pickle", "carbonapi_v2_pb", "carbonapi_v3_pb", "graphite", "graphite-0.9"] {
            let server = Server::saying(reply.clone()).await;
            let protocol = by_name(name, Bulk::default()).expect("known");
            let backend = HttpBackend::new(settings(&server), protocol).expect("a backend");
            let query = FindQuery { pattern: "*".into(), range: None, leaves_only: false };
            let (answer, found, index) =
                (fetch(&backend).await, backend.find(&query, &scope()).await, backend.index(&scope()).await);
            if matches!(name, "graphite" | "graphite-0.9") {
                assert!(answer.is_err() && found.is_err() && index.is_err(), "{name}");
                assert_eq!(backend.stats().failures, 3);
                continue;
            }
            assert_eq!((names(&answer), found, index), (vec![], Ok(vec![]), Ok(vec![])), "{name}");
            let tags = backend.tags().expect("tags");
            assert_eq!(tags.list(&TagLimits::default(), &scope()).await, Ok(vec![]));
            assert_eq!(tags.values("dc", &TagLimits::default(), &scope()).await, Ok(None));
            assert_eq!(backend.stats().failures, 0);
        }
    }
}

/// A store without anything and a URL with a wrong path are not the same.
#[tokio::test]
async fn a_path_that_is_not_there_is_a_failure() {
    for (body, reason) in [
        ("404 page not found\n", "404 Not Found: 404 page not found"),
        ("<html><head><title>404 Not Found</title></head></html>", "404 Not Found"),
    ] {
        let server = Server::saying(Reply::Full(404, vec![], body.into())).await;
        for name in ["graphite", "graphite-pickle", "graphite-0.9", "carbonapi_v2_pb", "carbonapi_v3_pb"] {
            let protocol = by_name(name, Bulk::default()).expect("known");
            let backend = HttpBackend::new(settings(&server), protocol).expect("a backend");
            let error = fetch(&backend).await.expect_err("a failure");
            assert_eq!(error, BackendError::Refused { backend: BackendId::new("b"), reason: reason.into() }, "{name}");
        }
        // A Graphite older than tags has no such paths.
        let tags = to(&server);
        assert_eq!(tags.tags().expect("tags").list(&TagLimits::default(), &scope()).await, Ok(vec![]));
    }
}

#[tokio::test]
async fn answers_that_are_none() {
    let html = b"<!DOCTYPE html><html><head><title>Login</title></head><body>Please sign in</body></html>";
    let garbled = |reason: &str| BackendError::Garbled { backend: BackendId::new("b"), reason: reason.into() };
    let refused = |reason: &str| BackendError::Refused { backend: BackendId::new("b"), reason: reason.into() };
    let typed = |kind, body: &[u8]| Reply::Full(200, vec![("Content-Type", kind)], body.to_vec());
    for (reply, expected) in [
        (typed("text/html", html), garbled("it looks like an HTML page")),
        (typed("image/png", b"\x89PNG\r\n\x1a\n.."), garbled("it is an image: the backend does not know this format")),
        (typed("application/x-msgpack", b""), garbled("it is empty")),
        (typed("application/x-msgpack", b"\x91"), garbled("it ends too early")),
        (Reply::Full(500, vec![], html.to_vec()), refused("500 Internal Server Error")),
        (Reply::Full(503, vec![], b"\n too\tbusy \nsecond".to_vec()), refused("503 Service Unavailable: toobusy")),
        (Reply::Full(400, vec![], b"Bad Request: no".to_vec()), refused("400 Bad Request: Bad Request: no")),
        (Reply::Full(206, vec![], b"half".to_vec()), refused("206 Partial Content: half")),
        (Reply::Full(302, vec![("Location", "http://127.0.0.1:1/")], vec![]), refused("302 Found")),
        (Reply::Full(401, vec![], b"<html>sign in".to_vec()), refused("401 Unauthorized")),
    ] {
        let server = Server::saying(reply).await;
        let answer = fetch(&to(&server)).await;
        assert_eq!(answer.expect_err("an error"), expected);
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let too_large = BackendError::TooLarge { backend: BackendId::new("b"), limit: 100_000, unit: "bytes" };
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; 2_000_000]).expect("memory");
    let bomb = bomb.finish().expect("memory");
    assert!(bomb.len() < 50_000);
    let mut endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..100 {
        endless.extend_from_slice(b"1000\r\n");
        endless.extend_from_slice(&[0; 0x1000]);
        endless.extend_from_slice(b"\r\n");
    }
    for reply in [
        Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\nabc".to_vec()),
        Reply::Raw(endless),
        Reply::Full(200, vec![("Content-Encoding", "gzip")], bomb),
    ] {
        let server = Server::saying(reply).await;
        let backend = backend(HttpSettings { max_body_bytes: 100_000, ..settings(&server) });
        for _ in 0..5 {
            assert_eq!(fetch(&backend).await.expect_err("too large"), too_large);
        }
        // It is not the backend's fault.
        assert!(!backend.stats().resting);
    }
}

#[tokio::test]
async fn compressed_and_large_answers_are_read() {
    let many: Vec<Series> =
        (0..200).map(|i| Series::new(format!("a.s{i:03}"), 60, Step::SECOND, vec![0.5; 500])).collect();
    let body = msgpack::write_render(&many);
    assert!(body.len() > 800_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&body).expect("memory");
    let server =
        Server::saying(Reply::Full(200, vec![("Content-Encoding", "gzip")], gzip.finish().expect("memory"))).await;
    let backend = to(&server);
    let answer = fetch(&backend).await;
    assert_eq!(names(&answer).len(), 200);
    assert_eq!(backend.stats().bytes, body.len() as u64);
}

// Time, connections.

#[tokio::test]
async fn a_broken_connection_is_tried_once_more() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let server = Server::start(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { Reply::Raw(vec![]) } else { one("a.b") } }
    })
    .await;
    let backend = to(&server);
    assert_eq!(names(&fetch(&backend).await), ["a.b"]);
    let stats = backend.stats();
    assert_eq!((stats.requests, stats.retries, stats.failures), (2, 1, 0));

    let server = Server::saying(Reply::Raw(vec![])).await;
    let backend = to(&server);
    assert!(matches!(fetch(&backend).await, Err(BackendError::Unreachable { .. })));
    assert_eq!(backend.stats().requests, 2);
    // A body that stops in the middle.
    let server = Server::saying(Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n\x91".to_vec())).await;
    assert!(matches!(fetch(&to(&server)).await, Err(BackendError::Unreachable { .. })));
}

#[tokio::test]
async fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let backend = backend(HttpSettings::new(BackendId::new("b"), format!("http://user:secret@{address}")));
    let error = fetch(&backend).await.expect_err("nobody");
    let BackendError::Unreachable { reason, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("refused") && !reason.contains("secret"), "{reason}");
}

#[tokio::test]
async fn silence_ends_at_the_timeout_and_at_the_deadline() {
    let asked = Arc::new(Notify::new());
    let told = asked.clone();
    let server = Server::start(move |_| {
        told.notify_one();
        async { Reply::Silence }
    })
    .await;
    let backend = backend(HttpSettings { timeout: Duration::from_secs(7), ..settings(&server) });
    for (deadline, expected) in [(60, 7), (3, 3)] {
        let selectors = [selector("a.*", 0, 100)];
        let began = Instant::now();
        let scope = Scope { deadline: began + Duration::from_secs(deadline), ..scope() };
        let fetch = backend.fetch(&selectors, &scope);
        let (answers, ()) = tokio::join!(fetch, async {
            asked.notified().await;
            jump();
        });
        assert!(matches!(answers[0], Err(BackendError::Timeout { .. })), "{answers:?}");
        assert_eq!(began.elapsed().as_secs(), expected);
        tokio::time::resume();
        // The connection is closed, too.
        server.left.notified().await;
    }
    // Past its deadline a request is not even sent.
    let late = Scope { deadline: Instant::now(), ..scope() };
    let answers = backend.fetch(&[selector("a.*", 0, 100)], &late).await;
    assert!(matches!(answers[0], Err(BackendError::Timeout { .. })));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_slow_body_ends_at_the_timeout() {
    let body = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n\u{11}";
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let backend =
        backend(HttpSettings::new(BackendId::new("b"), format!("http://{}", listener.local_addr().expect("bound"))));
    let (answer, _held) = tokio::join!(fetch(&backend), async {
        let (mut stream, _) = listener.accept().await.expect("a client");
        next_request(&mut stream, &mut Vec::new()).await;
        stream.write_all(body.as_bytes()).await.expect("a client");
        jump();
        stream
    });
    assert!(matches!(answer, Err(BackendError::Timeout { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_dropped_future_ends_its_request_and_frees_its_place() {
    let asked = Arc::new(Notify::new());
    let told = asked.clone();
    let server = Server::start(move |request| {
        let silent = request.target.contains("silent");
        if silent {
            told.notify_one();
        }
        async move { if silent { Reply::Silence } else { one("a.b") } }
    })
    .await;
    let backend = Arc::new(backend(HttpSettings { concurrency: NonZeroUsize::MIN, ..settings(&server) }));
    let running = {
        let backend = backend.clone();
        tokio::spawn(async move { backend.fetch(&[selector("silent", 0, 100)], &scope()).await })
    };
    asked.notified().await;
    assert_eq!(backend.stats().in_flight, 1);
    // Others wait for the only place, some of them in vain.
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let backend = backend.clone();
            tokio::spawn(async move { fetch(&backend).await })
        })
        .collect();
    while backend.stats().waiting < 50 {
        tokio::task::yield_now().await;
    }
    for gone in &waiting[10..20] {
        gone.abort();
    }
    running.abort();
    server.left.notified().await;
    let mut done = 0;
    for waiting in waiting {
        if let Ok(answer) = waiting.await {
            assert_eq!(names(&answer), ["a.b"]);
            done += 1;
        }
    }
    assert_eq!(done, 40);
    let stats = backend.stats();
    assert_eq!((stats.in_flight, stats.waiting, stats.failures, stats.requests), (0, 0, 0, 41));
}

#[tokio::test]
async fn no_more_requests_at_a_time_than_allowed() {
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (i, m, g) = (inside.clone(), most.clone(), gate.clone());
    let server = Server::start(move |_| {
        let (inside, most, gate) = (i.clone(), m.clone(), g.clone());
        async move {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.acquire().await.expect("open").forget();
            inside.fetch_sub(1, Ordering::SeqCst);
            one("a.b")
        }
    })
    .await;
    let concurrency = NonZeroUsize::new(3).expect("3");
    let backend = backend(HttpSettings { concurrency, ..settings(&server) });
    let all = futures::future::join_all((0..12).map(|_| fetch(&backend)));
    let (answers, ()) = tokio::join!(all, async {
        while inside.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(12);
    });
    assert!(answers.iter().all(|a| names(a) == ["a.b"]));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn it_rests_after_repeated_failures_and_is_probed() {
    let well = Arc::new(AtomicUsize::new(0));
    let state = well.clone();
    let server = Server::start(move |_| {
        let well = state.load(Ordering::SeqCst) == 1;
        async move { if well { one("a.b") } else { Reply::Full(500, vec![], vec![]) } }
    })
    .await;
    let backend = backend(HttpSettings { retry_delay: Duration::from_secs(30), ..settings(&server) });
    let refused = |a: &Answer| matches!(a, Err(BackendError::Refused { .. }));
    let resting = |a: &Answer| matches!(a, Err(BackendError::Resting { .. }));

    // Two failures and a success: it goes on.
    for expected in [0, 0, 1, 0, 0, 0] {
        well.store(expected, Ordering::SeqCst);
        assert!(!backend.stats().resting);
        let answer = fetch(&backend).await;
        assert_eq!(refused(&answer), expected == 0);
    }
    // Three in a row: it rests, and is not asked.
    well.store(1, Ordering::SeqCst);
    assert!(backend.stats().resting);
    let before = server.seen().len();
    assert!(resting(&fetch(&backend).await));
    assert_eq!(server.seen().len(), before);

    // After a while one request goes out to see; it fails, so that it rests on.
    well.store(0, Ordering::SeqCst);
    wait(Duration::from_secs(31)).await;
    assert!(refused(&fetch(&backend).await));
    assert!(resting(&fetch(&backend).await));
    assert_eq!(server.seen().len(), before + 1);

    // The next one succeeds; those that come meanwhile are refused.
    well.store(1, Ordering::SeqCst);
    wait(Duration::from_secs(31)).await;
    let (probe, other) = tokio::join!(fetch(&backend), fetch(&backend));
    assert_eq!(names(&probe), ["a.b"]);
    assert!(resting(&other));
    assert_eq!(names(&fetch(&backend).await), ["a.b"]);
    assert!(!backend.stats().resting);
}

/// Time passes without waiting.
async fn wait(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

/// A hanging backend must cost nobody its whole timeout each time it is probed, and a client that leaves must not take the
/// probe along.
#[tokio::test]
async fn a_probe_goes_on_without_the_request_that_began_it() {
    for leaves in [false, true] {
        let (state, asked, gate) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()), Arc::new(tokio::sync::Semaphore::new(0)));
        let (now, told, open) = (state.clone(), asked.clone(), gate.clone());
        let server = Server::start(move |_| {
            let (state, open) = (now.load(Ordering::SeqCst), open.clone());
            told.notify_one();
            async move {
                if state == 0 {
                    return Reply::Full(500, vec![], vec![]);
                }
                open.acquire().await.expect("not closed").forget();
                one("a.b")
            }
        })
        .await;
        let settings = HttpSettings { failures_before_rest: 1, timeout: Duration::from_secs(600), ..settings(&server) };
        let backend = Arc::new(backend(settings));
        assert!(fetch(&backend).await.is_err());
        asked.notified().await;
        state.store(1, Ordering::SeqCst);
        wait(Duration::from_secs(6)).await;
        let request = {
            let backend = backend.clone();
            tokio::spawn(async move { fetch(&backend).await })
        };
        asked.notified().await;
        if leaves {
            request.abort();
            assert!(request.await.is_err());
        } else {
            wait(Duration::from_secs(2)).await;
            assert!(matches!(request.await.expect("it ends"), Err(BackendError::Resting { .. })));
        }
        // It is still on its way, so others do not ask.
        assert!(matches!(fetch(&backend).await, Err(BackendError::Resting { .. })));
        gate.add_permits(2);
        while backend.stats().resting {
            tokio::task::yield_now().await;
        }
        assert_eq!(names(&fetch(&backend).await), ["a.b"]);
        assert_eq!(server.seen().len(), 3);
    }
}

#[tokio::test]
async fn one_bad_question_does_not_make_it_rest() {
    let all = Arc::new(tokio::sync::Barrier::new(5));
    let server = Server::start(move |_| {
        let all = all.clone();
        async move {
            all.wait().await;
            Reply::Full(500, vec![], vec![])
        }
    })
    .await;
    let backend = to(&server);
    let selectors: Vec<Selector> = (0..5).map(|from| selector("a.*", from, 100)).collect();
    for expected in [false, false, true] {
        let answers = backend.fetch(&selectors, &scope()).await;
        assert!(answers.iter().all(|a| matches!(a, Err(BackendError::Refused { .. }))));
        assert_eq!(backend.stats().resting, expected);
    }
}

#[tokio::test]
async fn a_wrong_request_is_not_a_sick_backend() {
    let server = Server::saying(Reply::Full(400, vec![], b"no".to_vec())).await;
    let backend = to(&server);
    for _ in 0..10 {
        assert!(matches!(fetch(&backend).await, Err(BackendError::Refused { .. })));
    }
    assert_eq!(backend.stats().failures, 10);
}

// Finding, tags.

#[tokio::test]
async fn found_nodes_are_sorted_and_listed_once() {
    let nodes = [
        FoundNode::leaf("b").within(5, 9),
        FoundNode::branch("a"),
        FoundNode::leaf("a"),
        FoundNode::leaf("b").within(2, 7),
        FoundNode::branch("a"),
    ];
    let server = Server::saying(Reply::Full(200, vec![], msgpack::write_find(&nodes))).await;
    let backend = to(&server);
    let finder = backend.finder().expect("a finder");
    let query = FindQuery { pattern: "*".into(), range: TimeRange::new(3, 8), leaves_only: false };
    let found = finder.find(&query, &scope()).await.expect("found");
    let known: Vec<(&str, bool)> = found.iter().map(|n| (n.path.as_str(), n.leaf)).collect();
    assert_eq!(known, [("a", false), ("a", true), ("b", true)]);
    assert_eq!(found[2].interval, Some((2, 9)));
    let leaves = finder.find(&FindQuery { leaves_only: true, ..query }, &scope()).await.expect("found");
    assert_eq!(leaves.len(), 2);
    assert_eq!(server.seen()[0].target, "/metrics/find/?local=1&format=msgpack&query=*&from=3&until=8");
}

#[tokio::test]
async fn tags_are_asked_for_in_json() {
    let server = Server::start(|request| async move {
        let body = match request.target.split('?').next().unwrap_or_default() {
            "/tags" => r#"[{"id":2,"tag":"name"},{"id":1,"tag":"dc"}]"#,
            "/tags/d%2Fc" => r#"{"id":1,"tag":"d/c","values":[{"id":2,"value":"us","count":3},{"value":"eu"}]}"#,
            "/tags/none" => "null",
            "/tags/findSeries" => r#"["b;dc=eu","a;dc=eu","a;dc=eu"]"#,
            "/tags/autoComplete/tags" => r#"["dc","name"]"#,
            "/tags/autoComplete/values" => r#"["eu"]"#,
            _ => "{}",
        };
        Reply::Full(200, vec![("Content-Type", "application/json")], body.into())
    })
    .await;
    let backend = to(&server);
    let (tags, scope) = (backend.tags().expect("tags"), scope());
    let limits = TagLimits { prefix: Some("d".into()), filter: Some("^d".into()), limit: Some(5) };
    let expressions = ["name=~a&b".to_owned(), "dc!=".to_owned()];
    assert_eq!(tags.list(&limits, &scope).await, Ok(vec!["dc".to_owned(), "name".to_owned()]));
    let values = tags.values("d/c", &TagLimits::default(), &scope).await;
    assert_eq!(values, Ok(Some(vec![("eu".to_owned(), 0), ("us".to_owned(), 3)])));
    assert_eq!(tags.values("none", &limits, &scope).await, Ok(None));
    let series = tags.find_series(&expressions, &scope).await;
    assert_eq!(series, Ok(vec!["a;dc=eu".to_owned(), "b;dc=eu".to_owned()]));
    assert_eq!(tags.complete_tags(&expressions, &limits, &scope).await.map(|t| t.len()), Ok(2));
    assert_eq!(tags.complete_values(&[], "dc", &limits, &scope).await, Ok(vec!["eu".to_owned()]));
    let targets: Vec<String> = server.seen().into_iter().map(|r| r.target).collect();
    assert_eq!(
        targets,
        [
            "/tags?local=1&filter=%5Ed&limit=5",
            "/tags/d%2Fc?local=1",
            "/tags/none?local=1&filter=%5Ed&limit=5",
            "/tags/findSeries?local=1&expr=name%3D%7Ea%26b&expr=dc%21%3D",
            "/tags/autoComplete/tags?local=1&expr=name%3D%7Ea%26b&expr=dc%21%3D&tagPrefix=d&limit=5",
            "/tags/autoComplete/values?local=1&tag=dc&valuePrefix=d&limit=5",
        ]
    );
}
