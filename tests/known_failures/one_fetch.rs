//! How many requests a backend gets, and what is in them.

use std::sync::Arc;

use plumbago::series::{Series, Step};
use tokio::sync::Notify;

use super::support::backend_server::{Reply, Request, Server as BackendServer, msgpack_of};
use super::{before, names};

const RANGE: &str = "from=600&until=900&now=900&format=json";

/// Series of one value in the range, for these names.
fn found<'a>(wanted: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Series> {
    let step = Step::new(60).expect("a minute");
    let one = |(name, pattern): (&str, &str)| {
        let mut series = Series::new(name, 660, step, vec![1.0; 5]);
        series.path_expression = pattern.into();
        series
    };
    wanted.into_iter().map(one).collect()
}

fn asked(request: &Request) -> Vec<String> {
    request.parameters().into_iter().filter(|(name, _)| name == "target").map(|(_, value)| value).collect()
}

/// A backend that has every name that it is asked for.
async fn answering_all() -> BackendServer {
    BackendServer::start(|request| async move {
        let asked = asked(&request);
        msgpack_of(&found(asked.iter().map(|name| (name.as_str(), name.as_str()))))
    })
    .await
}

fn sum_of(names: usize) -> String {
    let names: Vec<String> = (0..names).map(|i| format!("a.n{i}")).collect();
    format!("target=sumSeries({})&{RANGE}", names.join(","))
}

/// graphite-web #1908: one bulk answer, of which each target takes its own.
#[actix_web::test]
async fn a_bulk_answer_is_divided_among_the_targets() {
    let backend = BackendServer::saying(msgpack_of(&found([("a.b", "a.b"), ("a.c", "a.c"), ("a.c", "a.[c]")]))).await;
    let server = before(&backend, "graphite", |_| {}).await;
    let answer = server.get(&format!("/render?target=a.b&target=a.c&target=a.[c]&{RANGE}")).await.json();
    assert_eq!(names(&answer), ["a.b", "a.c", "a.c"]);
    assert_eq!(backend.seen().len(), 1);
    assert_eq!(asked(&backend.seen()[0]), ["a.[c]", "a.b", "a.c"]);
}

/// graphite-web commit 688d3083; and its templates do not reach into the text of a tag query.
#[actix_web::test]
async fn a_tag_query_is_fetched_once_with_its_variables_filled_in() {
    let backend = answering_all().await;
    let server = before(&backend, "graphite", |_| {}).await;
    let plain = "seriesByTag(%22name=a%22)";
    let answer = server.get(&format!("/render?target={plain}&target=scale({plain},2)&{RANGE}")).await;
    assert_eq!((answer.json().as_array().map(Vec::len), backend.seen().len()), (Some(2), 1));
    assert_eq!(asked(&backend.seen()[0]), ["seriesByTag(\"name=a\")"]);
    let template = "template(seriesByTag(%22name=cpu%22,%22dc=$dc%22),dc=%22x%22)";
    server.get(&format!("/render?target={template}&{RANGE}")).await;
    let seen = backend.seen();
    assert_eq!((seen.len(), asked(&seen[1])), (2, vec!["seriesByTag(\"name=cpu\",\"dc=x\")".to_owned()]));
}

/// carbonapi #518, #631: no finds for names that are known, and all targets at once.
#[actix_web::test]
async fn known_names_are_not_looked_for_and_targets_not_fetched_one_by_one() {
    let backend = answering_all().await;
    let server = before(&backend, "graphite", |_| {}).await;
    let answer = server.post("/render", &sum_of(500)).await.json();
    assert_eq!(answer[0]["datapoints"][0][0], 500.0);
    let seen = backend.seen();
    assert_eq!((seen.len(), seen[0].target.as_str(), asked(&seen[0]).len()), (1, "/render/", 500));
    let ten: Vec<String> = (0..10).map(|i| format!("target=absolute(b.n{i}.*)")).collect();
    let answer = server.get(&format!("/render?{}&{RANGE}", ten.join("&"))).await.json();
    assert_eq!((answer.as_array().map(Vec::len), backend.seen().len()), (Some(10), 2));
}

/// carbonapi #570: a limit on the patterns of a request counts patterns, and what a pattern matches is not split again.
#[actix_web::test]
async fn a_limit_on_patterns_splits_once() {
    let backend = answering_all().await;
    let server = before(&backend, "graphite", |group| group.patterns_per_request = Some(100)).await;
    let answer = server.post("/render", &sum_of(250)).await.json();
    assert_eq!(answer[0]["datapoints"][0][0], 250.0);
    let mut sizes: Vec<usize> = backend.seen().iter().map(|request| asked(request).len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [50, 100, 100]);

    let many: Vec<String> = (0..250).map(|i| format!("a.n{i:03}")).collect();
    let backend = BackendServer::saying(msgpack_of(&found(many.iter().map(|name| (name.as_str(), "a.*"))))).await;
    let server = before(&backend, "graphite", |group| group.patterns_per_request = Some(100)).await;
    let answer = server.get(&format!("/render?target=a.*&{RANGE}")).await.json();
    assert_eq!((answer.as_array().map(Vec::len), backend.seen().len()), (Some(250), 1));
}

/// graphite-clickhouse commits d53720b and 7fc2f24: backends that know neither POST nor several targets.
#[actix_web::test]
async fn a_backend_can_be_asked_for_one_pattern_at_a_time_without_post() {
    let backend = answering_all().await;
    let server = before(&backend, "graphite-pickle", |group| {
        group.patterns_per_request = Some(1);
        group.post = false;
    })
    .await;
    let long = "x".repeat(3_000);
    server.post("/render", &format!("target=a.{long}&target=b.{long}&target=c&{RANGE}")).await;
    let seen = backend.seen();
    assert_eq!(seen.iter().map(|r| (r.method.as_str(), asked(r).len())).collect::<Vec<_>>(), [("GET", 1); 3]);
}

/// bookingcom/carbonapi #328: a request for ten thousand series does not keep small ones from the backend.
#[actix_web::test]
async fn a_huge_request_leaves_room_for_small_ones() {
    let hanging = Arc::new(Notify::new());
    let told = hanging.clone();
    let backend = BackendServer::start(move |request| {
        let asked = asked(&request);
        let told = told.clone();
        async move {
            if asked.iter().any(|name| name.starts_with("a.")) {
                told.notify_one();
                return Reply::Silence;
            }
            msgpack_of(&found(asked.iter().map(|name| (name.as_str(), name.as_str()))))
        }
    })
    .await;
    let server = before(&backend, "graphite", |group| group.concurrency = 20).await;
    // The target is bounded in bytes, so there are many of them.
    let names: Vec<String> = (0..10_000).map(|i| format!("a.n{i}")).collect();
    let targets: Vec<String> =
        names.chunks(1_000).map(|names| format!("target=sumSeries({})", names.join(","))).collect();
    let body = format!("{}&{RANGE}", targets.join("&"));
    let mut huge = Box::pin(server.post("/render", &body));
    tokio::select! {
        _ = &mut huge => panic!("the backend does not answer"),
        () = hanging.notified() => {}
    }
    let small: Vec<String> = (0..100).map(|i| format!("/render?target=b.n{i}&{RANGE}")).collect();
    let all = futures::future::join_all(small.iter().map(|uri| server.get(uri)));
    let answers = tokio::select! {
        _ = &mut huge => panic!("the backend does not answer"),
        answers = all => answers,
    };
    assert!(answers.iter().all(|answer| answer.json()[0]["datapoints"][0][0] == 1.0));
}
