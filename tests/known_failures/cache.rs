//! Answers that are kept, and whom they are given to.

use std::sync::Arc;

use plumbago::config::Config;
use plumbago::store::MemoryStore;
use serde_json::json;

use super::support::backend_server::{Reply, Server as BackendServer};
use super::support::server::Server;
use super::{before, minutes, names, store};

const RANGE: &str = "from=0&until=120&now=120&format=json";

async fn server() -> (Server, Arc<MemoryStore>) {
    let store = Arc::new(store(&[minutes("a.b", &[1.0, 2.0]), minutes("a.c", &[3.0, 4.0]), minutes("a", &[5.0, 6.0])]));
    (Server::over(Config::default(), vec![store.clone()]).await, store)
}

/// graphite-web #576, #764; carbonapi #198.
#[actix_web::test]
async fn posts_without_a_query_are_told_apart() {
    let (server, store) = server().await;
    for _ in 0..2 {
        for (name, points) in [("a.b", json!([[1.0, 60], [2.0, 120]])), ("a.c", json!([[3.0, 60], [4.0, 120]]))] {
            let answer = server.post("/render", &format!("target={name}&{RANGE}")).await.json();
            assert_eq!((names(&answer), &answer[0]["datapoints"]), (vec![name], &points));
        }
    }
    assert_eq!(store.fetches().len(), 2, "the second answers were kept ones");
}

/// graphite-web's hash of a request: parts that are joined without being escaped.
#[actix_web::test]
async fn an_escaped_ampersand_is_no_second_target() {
    let (server, _) = server().await;
    for _ in 0..2 {
        assert_eq!(names(&server.get(&format!("/render?target=a&target=a.b&{RANGE}")).await.json()), ["a", "a.b"]);
        let escaped = server.get(&format!("/render?target=a%26target%3Da.b&{RANGE}")).await;
        assert_eq!(escaped.json(), json!([]));
        assert_eq!(names(&server.get(&format!("/render?target=a&{RANGE}")).await.json()), ["a"]);
    }
}

/// graphite-web #1278, #1022: what a node was asked by another is not what a user is answered.
#[actix_web::test]
async fn an_answer_for_another_node_is_not_given_to_users() {
    let (server, store) = server().await;
    server.get(&format!("/render?target=a.b&local=1&{RANGE}")).await;
    server.get(&format!("/render?target=a.b&{RANGE}")).await;
    server.get(&format!("/render?target=a.b&{}", RANGE.replace("json", "msgpack"))).await;
    assert_eq!(store.fetches().len(), 3);
}

/// metrictank commit 596df844: a short list must not be the answer to a question for a long one.
#[actix_web::test]
async fn a_limit_is_a_part_of_the_question() {
    let backend = BackendServer::start(|request| async move {
        let all = ["dc", "host", "name"];
        let limit =
            request.parameters().into_iter().find(|(name, _)| name == "limit").and_then(|(_, v)| v.parse().ok());
        let body = serde_json::to_vec(&all[..limit.unwrap_or(3_usize).min(3)]).expect("JSON");
        Reply::Full(200, vec![("Content-Type", "application/json")], body)
    })
    .await;
    let server = before(&backend, "graphite", |_| {}).await;
    for _ in 0..2 {
        assert_eq!(server.get("/tags/autoComplete/tags?limit=1").await.json(), json!(["dc"]));
        assert_eq!(server.get("/tags/autoComplete/tags?limit=100").await.json(), json!(["dc", "host", "name"]));
    }
    assert_eq!(backend.seen().len(), 2, "both are kept");
}
