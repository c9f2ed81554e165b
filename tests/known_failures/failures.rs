//! Backends that fail: what is answered all the same, and how it is marked.

use std::sync::Arc;
use std::time::Duration;

use plumbago::backend::protocol::{Bulk, by_name};
use plumbago::backend::transport::{HttpBackend, HttpSettings};
use plumbago::backend::{Backend, BackendError, BackendId, FoundNode, Scope, msgpack};
use plumbago::config::{self, Config, GroupSettings};
use plumbago::fetch::{Group, GroupKind, Limits, Order};
use plumbago::http::App;
use plumbago::series::{PathExpression, Selector, Series, TimeRange};
use plumbago::store::MemoryStore;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::support::backend_server::{Reply, Server as BackendServer};
use super::support::dataset;
use super::support::server::Server;
use super::{before, minutes, names, store};

const RENDER: &str = "/render?target=a.*&from=0&until=60&now=60&format=json";

fn well() -> Arc<dyn Backend> {
    Arc::new(store(&[minutes("a.b", &[1.0]), minutes("a.c", &[2.0])]))
}

fn failing(name: &'static str, error: impl Fn(BackendId) -> BackendError + Send + Sync + 'static) -> Arc<dyn Backend> {
    let store = MemoryStore::new(BackendId::new(name), []);
    Arc::new(store.failing_with(move |_| Some(error(BackendId::new(name)))))
}

fn slow(name: &'static str) -> Arc<dyn Backend> {
    failing(name, |backend| BackendError::Timeout { backend })
}

fn down(name: &'static str) -> Arc<dyn Backend> {
    failing(name, |backend| BackendError::Unreachable { backend, reason: "refused".to_owned() })
}

/// carbonapi #657, #397, #593: an empty answer, or 404, when nobody answered.
#[actix_web::test]
async fn no_answer_of_any_backend_is_not_an_empty_answer() {
    for (backends, status) in [
        (vec![slow("one"), slow("two")], 504),
        (vec![down("one"), down("two")], 502),
        (vec![down("one"), slow("two")], 502),
    ] {
        let server = Server::over(Config::default(), backends).await;
        let answer = server.get(RENDER).await;
        assert_eq!((answer.status, answer.text().lines().count()), (status, 1), "{}", answer.text());
    }
}

/// graphite-web #2218: one dead server of three made an error of a find.
#[actix_web::test]
async fn one_of_three_is_down() {
    let dead = BackendServer::saying(Reply::Raw(vec![])).await;
    let server = before(&dead, "graphite", |_| {}).await;
    assert_eq!(server.get("/metrics/find?query=*").await.status, 502);
    let server = Server::over(Config::default(), vec![well(), down("two"), slow("three")]).await;
    let answer = server.get(RENDER).await;
    assert_eq!((answer.status, names(&answer.json())), (200, vec!["a.b", "a.c"]));
    assert!(answer.header("x-plumbago-partial").is_some_and(|text| text.starts_with("2 failed: ")), "{answer:?}");
}

/// carbonapi #498: completions of one group are shown when the other is down.
#[actix_web::test]
async fn tag_values_of_one_group_are_answered_without_the_other() {
    let values = BackendServer::saying(Reply::Full(200, vec![], br#"["eu"]"#.to_vec())).await;
    let dead = BackendServer::saying(Reply::Raw(vec![])).await;
    let server = before(&values, "graphite", |group| group.urls.push(dead.url())).await;
    let answer = server.get("/tags/autoComplete/values?tag=dc").await;
    assert_eq!((answer.status, answer.json()), (200, json!(["eu"])));
    assert!(answer.header("x-plumbago-partial").is_some_and(|text| text.contains(&dead.url())), "{answer:?}");
}

/// metrictank #670: fewer shards than are needed are an error and not a smaller answer.
#[actix_web::test]
async fn too_few_backends_are_an_error() {
    let with = async |needed| {
        let mut group = Group::new("east", GroupKind::Shards, vec![well(), down("two")]);
        group.min_available = needed;
        Server::of(App::with_groups(Config::default(), vec![group]).expect("an app")).await.get(RENDER).await
    };
    assert_eq!(with(1).await.status, 200);
    let error = with(2).await;
    assert_eq!(error.status, 502);
    assert!(error.text().starts_with("1 of the 2 needed backends of group east answered"), "{}", error.text());
}

/// carbonapi #662, #400, metrictank #968: a pattern that matches too much is refused with the limit's name.
#[actix_web::test]
async fn too_much_is_refused_with_the_limit() {
    for (fetched, said) in [
        (Limits { series: 1, ..Limits::default() }, "more than 1 series"),
        (Limits { points: 1, ..Limits::default() }, "more than 1 points"),
        (Limits { bytes: 10, ..Limits::default() }, "more than 10 bytes"),
    ] {
        let mut config = Config::default();
        config.limits.fetched = fetched;
        let answer = Server::over(config, vec![well()]).await.get(RENDER).await;
        assert_eq!(answer.status, 413);
        assert!(answer.text().contains(said), "{}", answer.text());
    }
}

/// graphite-web #1791: a dead server held up every page for the whole timeout.
#[tokio::test]
async fn a_backend_that_never_answers_is_waited_for_only_a_few_times() {
    let asked = Arc::new(Notify::new());
    let told = asked.clone();
    let silent = BackendServer::start(move |_| {
        told.notify_one();
        async { Reply::Silence }
    })
    .await;
    let settings = HttpSettings::new(BackendId::new("silent"), silent.url());
    let (patience, retry) = (settings.timeout, settings.retry_delay);
    let attempts = settings.failures_before_rest;
    let backend = HttpBackend::new(settings, by_name("graphite", Bulk::default()).expect("known")).expect("a backend");
    let selector = Selector { pattern: PathExpression::new("a"), range: TimeRange::new(0, 60).expect("not empty") };
    let mut waited = Duration::ZERO;
    for request in 0..10 {
        let began = Instant::now();
        let scope = Scope { deadline: began + 6 * patience, ..dataset::scope() };
        let asking = backend.fetch(std::slice::from_ref(&selector), &scope);
        let resting = request >= attempts;
        let (answers, ()) = tokio::join!(asking, async {
            if !resting {
                // Once the request is there, the clock goes on to the next timer at once.
                asked.notified().await;
                tokio::time::pause();
            }
        });
        let failed = answers[0].as_ref().expect_err("nothing is answered");
        assert_eq!(matches!(failed, BackendError::Resting { .. }), resting, "{request}: {failed}");
        waited += began.elapsed();
        if !resting {
            tokio::time::resume();
        }
    }
    assert!(waited < patience * attempts + retry / 2, "{waited:?}");
    assert_eq!(silent.seen().len(), attempts as usize);
}

/// What the lower of two tiers misses, the upper one misses too, whatever they speak.
#[actix_web::test]
async fn a_part_of_an_answer_is_known_for_one() {
    let part: [Series; 1] = [minutes("a.b", &[1.0]).series()];
    let marked = |kind, body| {
        let headers =
            vec![("Content-Type", kind), ("X-Plumbago-Partial", "1 failed: far http://far did not answer in time")];
        Reply::Full(200, headers, body)
    };
    let reply = marked("application/x-msgpack", msgpack::write_render(&part));
    let lower = BackendServer::saying(reply).await;
    let server = before(&lower, "graphite", |_| {}).await;
    for asked in 1..3 {
        let answer = server.get(RENDER).await;
        assert_eq!((answer.status, names(&answer.json())), (200, vec!["a.b"]));
        let said = answer.header("x-plumbago-partial").expect("it is marked");
        assert!(
            said.starts_with("1 failed: ")
                && said.ends_with("answered in part: 1 failed: far http://far did not answer in time"),
            "{said}"
        );
        assert_eq!(lower.seen().len(), asked, "no cache keeps it");
    }

    let finds =
        BackendServer::saying(marked("application/x-msgpack", msgpack::write_find(&[FoundNode::leaf("a.b")]))).await;
    let answer = before(&finds, "graphite", |_| {}).await.get("/metrics/find?query=a.*").await;
    assert_eq!((answer.status, answer.json()[0]["id"].as_str()), (200, Some("a.b")));
    assert!(answer.header("x-plumbago-partial").is_some());
    let tags = BackendServer::saying(marked("application/json", b"[\"a.b\"]".to_vec())).await;
    let answer = before(&tags, "graphite", |_| {}).await.get("/metrics/index.json").await;
    assert_eq!((answer.status, answer.text()), (200, "[\"a.b\"]"));
    assert!(answer.header("x-plumbago-partial").is_some());

    // A replica that has all is better.
    let settings = HttpSettings::new(BackendId::new("lower"), lower.url());
    let http = HttpBackend::new(settings, by_name("graphite", Bulk::default()).expect("known")).expect("a backend");
    let kind = GroupKind::AnyReplica { hedge_after: None, order: Order::Listed };
    let group = Group::new("east", kind, vec![Arc::new(http), well()]);
    let server = Server::of(App::with_groups(Config::default(), vec![group]).expect("an app")).await;
    let answer = server.get(RENDER).await;
    assert_eq!((names(&answer.json()), answer.header("x-plumbago-partial")), (vec!["a.b", "a.c"], None));
}

/// What a full disk leaves: a file that cannot be read is neither an error of all series beside it, nor passed over as if
/// nothing were missing.
#[actix_web::test]
async fn a_broken_file_is_said_to_be_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    dataset::write_files(folder.path());
    let path = folder.path().join("edge/ramp.wsp");
    let sound = std::fs::read(&path).expect("read");
    std::fs::write(&path, &sound[..sound.len() / 2]).expect("cut");
    let server = async |strict| {
        let group = GroupSettings {
            path: Some(folder.path().into()),
            ..GroupSettings::new("here", config::GroupKind::Shards, "whisper")
        };
        Server::of(App::build(Config { strict, groups: vec![group], ..Config::default() }).expect("an app")).await
    };
    let now = dataset::NOW;
    let render = |target: &str| format!("/render?target={target}&from={}&until={now}&now={now}&format=json", now - 600);
    let lenient = server(false).await;
    for _ in 0..2 {
        let answer = lenient.get(&render("edge.{ramp,zeros}")).await;
        assert_eq!((answer.status, names(&answer.json())), (200, vec!["edge.zeros"]));
        let said = answer.header("x-plumbago-partial").expect("it is marked");
        assert!(said.contains("here ") && said.contains("1 of 2 files"), "{said}");
        assert!(answer.header("cache-control").is_some_and(|value| value.contains("no-store")));
    }
    // It is no part of this.
    let other = lenient.get(&render("edge.zeros")).await;
    assert_eq!((names(&other.json()), other.header("x-plumbago-partial")), (vec!["edge.zeros"], None));
    let alone = lenient.get(&render("edge.ramp")).await;
    assert_eq!(alone.status, 502);
    assert!(alone.text().contains("ramp.wsp"), "{}", alone.text());
    // Once it is good again, so is the answer: no cache has kept the other.
    let strict = server(true).await;
    assert_eq!(strict.get(&render("edge.{ramp,zeros}")).await.status, 502);
    std::fs::write(&path, &sound).expect("restored");
    for server in [lenient, strict] {
        let answer = server.get(&render("edge.{ramp,zeros}")).await;
        assert_eq!(names(&answer.json()), ["edge.ramp", "edge.zeros"]);
        assert_eq!(answer.header("x-plumbago-partial"), None);
    }
}
