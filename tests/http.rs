//! The endpoints beside `/render`, in process: graphite-web's recorded answers, and what clients rely on.
//!
//! `GOLDEN=find:json` (a prefix of a group, or a case's id) runs a part of the recordings and shows more.

mod support;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::test::{self, TestRequest};
use actix_web::web;
use async_trait::async_trait;
use futures::future::LocalBoxFuture;
use plumbago::backend::{Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Scope};
use plumbago::config::Config;
use plumbago::fetch::{Group, GroupKind};
use plumbago::http::{App, routes};
use plumbago::series::{Selector, Series, Step};
use plumbago::store::MemoryStore;
use serde_json::{Value, json};
use support::dataset;
use support::judge::{HttpAnswer, judge};

/// A server in process.
struct Server(Box<dyn Fn(TestRequest) -> LocalBoxFuture<'static, HttpAnswer>>);

impl Server {
    /// Over these backends, each a shard.
    async fn over(config: Config, backends: Vec<Arc<dyn Backend>>) -> Self {
        let group = Group::new("test", GroupKind::Shards, backends);
        let app = App::with_groups(config, vec![group]).expect("an application");
        let service = test::init_service(actix_web::App::new().configure(routes(web::Data::new(app)))).await;
        let service = Rc::new(service);
        Self(Box::new(move |request| {
            let service = service.clone();
            Box::pin(async move {
                let response = test::call_service(&*service, request.to_request()).await;
                let status = response.status().as_u16();
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                let headers =
                    response.headers().iter().map(|(n, v)| (n.as_str().to_owned(), text(v.as_bytes()))).collect();
                HttpAnswer { status, headers, body: test::read_body(response).await.to_vec() }
            })
        }))
    }

    /// Over the data set of the recordings.
    async fn recorded() -> Self {
        Self::over(Config::default(), vec![Arc::new(dataset::store())]).await
    }

    async fn ask(&self, request: TestRequest) -> HttpAnswer {
        (self.0)(request).await
    }

    async fn get(&self, uri: &str) -> HttpAnswer {
        self.ask(TestRequest::get().uri(uri)).await
    }

    async fn post(&self, uri: &str, body: &str) -> HttpAnswer {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask(TestRequest::post().uri(uri).insert_header(form).set_payload(body.to_owned())).await
    }

    /// The request of a recorded case.
    async fn replay(&self, case: &Value) -> HttpAnswer {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for pair in case["params"].as_array().expect("a list of parameters") {
            query.append_pair(pair[0].as_str().expect("a name"), pair[1].as_str().expect("a value"));
        }
        let query = query.finish();
        let method = case["method"].as_str().expect("a method");
        let endpoint = case["endpoint"].as_str().expect("an endpoint");
        let mut request = TestRequest::default().method(Method::from_bytes(method.as_bytes()).expect("a method"));
        for (name, value) in case["headers"].as_object().into_iter().flatten() {
            request = request.insert_header((name.as_str(), value.as_str().expect("a text")));
        }
        if method == "POST" {
            let form = ("Content-Type", "application/x-www-form-urlencoded");
            return self.ask(request.uri(endpoint).insert_header(form).set_payload(query)).await;
        }
        self.ask(request.uri(&format!("{endpoint}?{query}"))).await
    }
}

/// Replays the cases of a file that `wanted` says, in its order.
async fn replay(file: &str, wanted: impl Fn(&Value) -> bool, least: usize) {
    let only = std::env::var("GOLDEN").ok();
    let text = std::fs::read_to_string(dataset::golden("differs.json")).expect("readable");
    let differs: BTreeMap<String, String> = serde_json::from_str(&text).expect("differs.json maps ids to reasons");
    let server = Server::recorded().await;
    let (mut compared, mut faults) = (0, Vec::new());
    for case in dataset::cases(file).iter().filter(|case| wanted(case)) {
        let (group, id) = (case["group"].as_str().expect("a group"), case["id"].as_str().expect("an id"));
        if only.as_ref().is_some_and(|only| !group.starts_with(only.as_str()) && id != only) {
            continue;
        }
        compared += 1;
        if let Some(why) = judge(case, &server.replay(case).await)
            && !differs.contains_key(id)
        {
            let (method, endpoint) = (&case["method"], &case["endpoint"]);
            faults.push(format!("{id} {group} {method} {endpoint} {}\n    {why}", case["params"]));
        }
    }
    let shown = if only.is_some() { 60 } else { 10 };
    assert!(
        faults.is_empty(),
        "{} of {compared} differ:\n{}",
        faults.len(),
        faults[..faults.len().min(shown)].join("\n")
    );
    assert!(only.is_some() || compared >= least, "only {compared} cases");
}

#[actix_web::test]
async fn finds_as_recorded() {
    replay("find.jsonl", |_| true, 390).await;
}

/// A store of series of these names.
fn store(name: &str, names: &[&str]) -> Arc<dyn Backend> {
    let step = Step::new(60).expect("a step");
    let series = names.iter().map(|name| Series::new(*name, dataset::NOW - 540, step, vec![1.0; 10]));
    Arc::new(MemoryStore::new(BackendId::new(name), series))
}

async fn server(stores: &[&[&str]]) -> Server {
    let names = ["one", "two", "three"];
    Server::over(Config::default(), names.iter().zip(stores).map(|(name, series)| store(name, series)).collect()).await
}

/// A store that cannot be reached.
struct Broken(BackendId);

impl Broken {
    fn error(&self) -> BackendError {
        BackendError::Unreachable { backend: self.0.clone(), reason: "cut\noff".to_owned() }
    }
}

#[async_trait]
impl Backend for Broken {
    fn id(&self) -> &BackendId {
        &self.0
    }

    async fn fetch(&self, selectors: &[Selector], _scope: &Scope) -> Vec<Answer> {
        selectors.iter().map(|_| Err(self.error())).collect()
    }

    fn finder(&self) -> Option<&dyn Finder> {
        Some(self)
    }
}

#[async_trait]
impl Finder for Broken {
    async fn find(&self, _query: &FindQuery, _scope: &Scope) -> Result<Vec<FoundNode>, BackendError> {
        Err(self.error())
    }

    async fn index(&self, _scope: &Scope) -> Result<Vec<String>, BackendError> {
        Err(self.error())
    }
}

fn broken() -> Arc<dyn Backend> {
    Arc::new(Broken(BackendId::new("broken")))
}

/// An answer that is an error: one line of plain text that nothing takes for a page.
fn assert_problem(answer: &HttpAnswer, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let text = answer.text();
    assert!(text.len() > 10 && text.ends_with('\n') && !text.contains('<'), "{text}");
}

#[actix_web::test]
async fn a_name_is_a_branch_here_and_a_leaf_there() {
    let server = server(&[&["a.b", "x.y"], &["a.b.c", "a.b"]]).await;
    let found = server.get("/metrics/find?query=a.*&format=json").await.json();
    let interval = json!([{"start": dataset::NOW - 540, "end": dataset::NOW}]);
    assert_eq!(
        found,
        json!([{"path": "a.b", "is_leaf": false}, {"path": "a.b", "is_leaf": true, "intervals": interval}])
    );
    assert_eq!(
        server.get("/metrics/find?query=*").await.json(),
        json!([
            {"text": "a", "id": "a", "allowChildren": 1, "expandable": 1, "leaf": 0},
            {"text": "x", "id": "x", "allowChildren": 1, "expandable": 1, "leaf": 0},
        ])
    );
    assert_eq!(server.get("/metrics/expand?query=a.*&query=*.y").await.json(), json!({"results": ["a.b", "x.y"]}));
    assert_eq!(
        server.get("/metrics/expand?query=x.*&query=a.*&groupByExpr=1").await.json(),
        json!({"results": {"x.*": ["x.y"], "a.*": ["a.b"]}})
    );
    assert_eq!(server.get("/metrics/index.json").await.json(), json!(["a.b", "a.b.c", "x.y"]));
}

#[actix_web::test]
async fn finding_as_clients_do() {
    let server = server(&[&["prod.servers.x", "test.servers.y", "a.x+y", "a.p%41", "aaa.b", "h1.cpu", "h2.cpu"]]).await;
    // What Grafana's query editor sends: the range beside a body that is not encoded.
    let editor = server.post("/metrics/find?from=1699977600&until=1699999200", "query={prod,test}.*").await;
    assert_eq!(editor.header("content-type"), Some("application/json"));
    assert_eq!(editor.json()[0]["id"], "{prod,test}.servers");
    assert_eq!(editor.json().as_array().map(Vec::len), Some(1));
    let names: Vec<String> = (1..2000).map(|i| format!("h{i}")).collect();
    let long = server.post("/metrics/find", &format!("query={{{}}}.*", names.join(","))).await;
    assert_eq!(long.json()[0]["text"], "cpu");
    assert_eq!(server.get("/metrics/find?query=aa%3F.b").await.json()[0]["text"], "b");
    // Texts as they are stored.
    let odd = server.get("/metrics/find?query=a.*").await.json();
    assert_eq!((&odd[0]["text"], &odd[1]["text"]), (&json!("p%41"), &json!("x+y")));
    // One entry for all parents.
    assert_eq!(server.get("/metrics/find?query=*.cpu").await.json().as_array().map(Vec::len), Some(1));
    let both = json!({"results": ["h1.cpu", "h2.cpu"]});
    assert_eq!(server.get("/metrics/expand?query=*.cpu").await.json(), both);
    let servers = json!({"results": ["prod.servers", "test.servers"]});
    assert_eq!(server.get("/metrics/expand?query=*.servers&from=-1h&until=now").await.json(), servers);
    assert_eq!(server.get("/metrics/expand?query=no.such").await.json(), json!({"results": []}));
    assert_eq!(server.get("/metrics/find?query=no.such").await.json(), json!([]));
    let completions = server.get("/metrics/find?format=completer&query=prod.").await.json();
    let servers = json!({"metrics": [{"path": "prod.servers.", "name": "servers", "is_leaf": "0"}]});
    assert_eq!(completions, servers);
    let head = server.ask(TestRequest::default().method(Method::HEAD).uri("/metrics/find?query=*")).await;
    assert_eq!(head.status, 200);
}

#[actix_web::test]
async fn what_finding_refuses() {
    let server = server(&[&["a.b"]]).await;
    for (query, word) in [
        ("", "query"),
        ("query=", "query"),
        ("query=*&format=%3Csvg+onload%3D1%3E", "format"),
        ("query=*&leavesOnly=yes", "yes"),
        ("query=*&local=x", "local"),
        ("query=*&position=1.5", "1.5"),
        ("query=*&from=undefined&until=undefined", "undefined"),
        ("query=*&from=now&until=-1h", "until"),
        ("query=*&jsonp=alert(1)//", "jsonp"),
    ] {
        let answer = server.get(&format!("/metrics/find?{query}")).await;
        assert_problem(&answer, 400);
        assert!(answer.text().contains(word), "{query}: {}", answer.text());
    }
    for path in ["/metrics/bogus", "/metrics/index.json/", "/composer/send_email?url=http://10.0.0.1/", "/%3Cb%3E", "/"]
    {
        assert_problem(&server.get(path).await, 404);
    }
    assert_problem(&server.post("/render/local", "\u{80}\u{2}cos").await, 404);
    assert_problem(&server.ask(TestRequest::delete().uri("/metrics/find?query=*")).await, 405);
    let called = server.get("/metrics/find?query=a.b&jsonp=jQuery1_2.cb").await;
    assert!(called.text().starts_with("jQuery1_2.cb([{\"text\""), "{}", called.text());
    assert_eq!(called.header("content-type"), Some("text/javascript"));
}

#[actix_web::test]
async fn answers_say_when_backends_failed() {
    let server = Server::over(Config::default(), vec![store("one", &["a.b"]), broken()]).await;
    for (path, what) in [
        ("/metrics/find?query=a.*", "[{\"text\": \"b\""),
        ("/metrics/find?query=a.*&format=pickle", ""),
        ("/metrics/expand?query=a.*&query=*", "{\"results\": [\"a\", \"a.b\"]}"),
        ("/metrics/index.json", "[\"a.b\"]"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("x-plumbago-partial"), Some("1 failed: broken is not reachable: cut?off"), "{path}");
        assert!(answer.body.starts_with(what.as_bytes()), "{path}");
    }
    let strict = Config { strict: true, ..Config::default() };
    let server = Server::over(strict, vec![store("one", &["a.b"]), broken()]).await;
    let answer = server.get("/metrics/find?query=a.*").await;
    assert_eq!((answer.status, answer.header("x-plumbago-partial")), (502, None));
    let server = Server::over(Config::default(), vec![broken()]).await;
    assert_eq!(server.get("/metrics/find?query=a.*").await.status, 502);
    let server = Server::over(Config::default(), vec![]).await;
    assert_eq!(server.get("/metrics/find?query=*").await.json(), json!([]));
}

#[actix_web::test]
async fn tags_as_recorded() {
    replay("tags.jsonl", |_| true, 95).await;
}

#[actix_web::test]
async fn tags_of_all_backends() {
    let server =
        server(&[&["disk;dc=eu;host=a", "disk;dc=eu;host=b"], &["disk;dc=us;host=a", "cpu;dc=us;x=a=b", "plain.name"]])
            .await;
    let get = async |path| server.get(path).await.json();
    assert_eq!(get("/tags").await, json!([{"tag": "dc"}, {"tag": "host"}, {"tag": "name"}, {"tag": "x"}]));
    assert_eq!(
        get("/tags/host").await,
        json!({"tag": "host", "values": [{"value": "a", "count": 2}, {"value": "b", "count": 1}]})
    );
    assert_eq!(get("/tags/nosuch").await, Value::Null);
    assert_eq!(get("/tags/x").await["values"][0]["value"], "a=b");
    assert_eq!(get("/tags/findSeries?expr=host%3Da").await, json!(["disk;dc=eu;host=a", "disk;dc=us;host=a"]));
    assert_eq!(get("/tags/findSeries?expr=host%3D~a|b&expr=dc%3Deu").await.as_array().map(Vec::len), Some(2));
    assert_eq!(get("/tags/autoComplete/tags").await, json!(["dc", "host", "name", "x"]));
    assert_eq!(get("/tags/autoComplete/tags?tagPrefix=&limit=2&from=-1h&until=now").await, json!(["dc", "host"]));
    assert_eq!(get("/tags/autoComplete/values?tag=dc&expr=name%3Ddisk").await, json!(["eu", "us"]));
    let form = "tag=dc&valuePrefix=u&expr=name=~(disk|cpu)";
    assert_eq!(server.post("/tags/autoComplete/values", form).await.json(), json!(["us"]));
    // A series that a client adds is in the index; what it cannot be named is refused.
    assert_eq!(server.post("/tags/tagSeries", "path=mem;host=c;dc=eu").await.json(), "mem;dc=eu;host=c");
    assert_eq!(get("/tags/findSeries?expr=host%3Dc").await, json!(["mem;dc=eu;host=c"]));
    assert_eq!(server.post("/tags/tagSeries", "path=mem;a!b=c").await.status, 400);
    assert_eq!(server.post("/tags/delSeries", "path=mem;host=c;dc=eu").await.json(), true);
    assert_eq!(get("/tags/findSeries?expr=host%3Dc").await, json!([]));
}

#[actix_web::test]
async fn tags_that_nobody_has() {
    let server = Server::over(Config::default(), vec![broken()]).await;
    for path in [
        "/tags",
        "/tags/",
        "/tags/findSeries?expr=a%3Db",
        "/tags/autoComplete/tags?tagPrefix=a",
        "/tags/autoComplete/values?tag=a",
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.text()), (200, "[]"), "{path}");
    }
    assert_eq!(server.get("/tags/a").await.text(), "null");
    for (path, said) in [
        ("/tags/findSeries", "no tag expressions specified"),
        ("/tags/findSeries?expr=a%3D~.*", "empty"),
        ("/tags/findSeries?expr=a%3D", "empty"),
        ("/tags/findSeries?expr=a!%3D~.%2B", "empty"),
        ("/tags/autoComplete/tags?expr=bogus", "bogus"),
        ("/tags/autoComplete/tags?limit=many", "many"),
        ("/tags/autoComplete/values?expr=a%3Db", "no tag specified"),
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")), "{path}");
        let error = answer.json()["error"].as_str().expect("a text").to_owned();
        assert!(error.contains(said), "{path}: {error}");
    }
    for path in ["/tags/tagSeries", "/tags/tagMultiSeries", "/tags/delSeries"] {
        assert_eq!(server.post(path, "path=a;b=c").await.status, 400);
        assert_eq!(server.get(path).await.status, 405);
    }
}
