//! The endpoints beside `/render`, in process: graphite-web's recorded answers, and what clients rely on.
//!
//! `GOLDEN=find:json` (a prefix of a group, or a case's id) runs a part of the recordings and shows more.

mod support;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use actix_web::dev::{Payload, Service as _};
use actix_web::http::Method;
use actix_web::test::{TestRequest, call_service, init_service, try_call_service};
use actix_web::{middleware, web};
use async_trait::async_trait;
use futures::{FutureExt as _, StreamExt as _, stream};
use plumbago::backend::carbonapi::{self, v2, v3};
use plumbago::backend::wire::Limits;
use plumbago::backend::{Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Scope};
use plumbago::config::{Config, GroupKind, GroupSettings, RequestLimits};
use plumbago::http::{App, outer, routes};
use plumbago::series::{Selector, Series, Step};
use plumbago::store::MemoryStore;
use prost::Message as _;
use serde_json::{Value, json};
use support::dataset;
use support::judge::{HttpAnswer, judge};
use support::server::Server;

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
    for (form, found) in [("query=B%24+%5EX", "a.b,x.y"), ("query=c", "a.b.c"), ("query=q", ""), ("query=+", "")] {
        let answer = server.post("/browser/search/", form).await;
        assert_eq!((answer.status, answer.text()), (200, found), "{form}");
    }
    let answer = server.post("/browser/search", "query=%28").await;
    assert_eq!((answer.status, answer.text().lines().count()), (400, 1), "{}", answer.text());
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

/// The deepest targets that there are, by several roads; what calls make counts too.
#[actix_web::test]
async fn deep_targets_need_no_more_stack_than_there_is() {
    let server = Server::recorded().await;
    let within = |calls: usize, target: &str| format!("{}{target}{}", "absolute(".repeat(calls), ")".repeat(calls));
    let render = async |target: &str| {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("target", target).finish();
        server.get(&format!("/render?format=json&from=1699995600&until=1699999200&now=1699999200&{query}")).await
    };
    for target in [
        within(128, "servers.web01.cpu.user"),
        format!("servers.web01.cpu.user{}", "|absolute()".repeat(128)),
        format!("{}servers.web01.cpu.user{}", "movingAverage(".repeat(100), ",2)".repeat(100)),
        within(60, &format!("applyByNode(servers.web01.cpu.user,1,\"{}\")", within(60, "%.cpu.user"))),
    ] {
        let answer = render(&target).await;
        assert_eq!((answer.status, answer.json()[0]["datapoints"].as_array().map(Vec::len)), (200, Some(60)));
    }
    let made = within(120, &format!("applyByNode(%.cpu.user,1,'{}')", within(120, "%.cpu.user")));
    let answer = render(&within(120, &format!("applyByNode(servers.web01.cpu.user,1,\"{made}\")"))).await;
    assert_problem(&answer, 400);
    assert!(
        answer.text().starts_with("calls and the targets that they make are nested too deeply"),
        "{}",
        answer.text()
    );
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
    assert_problem(&server.ask(TestRequest::delete().uri("/render?target=a")).await, 405);
    let head =
        server.ask(TestRequest::default().method(Method::HEAD).uri("/render?target=edge.ramp&format=json")).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")));
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

#[actix_web::test]
async fn events_are_kept_and_found() {
    let server = server(&[&["a.b"]]).await;
    let post = async |body: &str| {
        let answer = server.ask(TestRequest::post().uri("/events/").set_payload(body.to_owned())).await;
        (answer.status, answer.text().to_owned())
    };
    let kept = (200, String::new());
    let first = r#"{"what": "deploy 1", "tags": ["web", "prod"], "when": 1699999000, "data": "by me"}"#;
    assert_eq!(post(first).await, kept);
    assert_eq!(post(r#"{"what": "<b>", "tags": "web db", "when": 1699999100.7}"#).await, kept);
    assert_eq!(post(r#"{"what": "third", "when": "1699999200", "tags": null, "data": {"by": 1}}"#).await, kept);
    for (wrong, said) in [
        ("", "object"),
        ("what=x", "object"),
        ("[1]", "object"),
        ("{}", "what"),
        (r#"{"what": "x", "tags": 5}"#, "tags"),
        (r#"{"what": "x", "tags": [5]}"#, "tags"),
        (r#"{"what": "x", "when": "noon"}"#, "when"),
        (r#"{"what": "x", "when": 1e300}"#, "when"),
    ] {
        let (status, text) = post(wrong).await;
        assert!(status == 400 && text.starts_with("{\"error\": ") && text.contains(said), "{wrong}: {text}");
    }
    let (one, two) = (
        json!({"when": 1_699_999_000, "what": "deploy 1", "data": "by me", "tags": ["web", "prod"], "id": 1}),
        json!({"when": 1_699_999_100, "what": "<b>", "data": "", "tags": ["web", "db"], "id": 2}),
    );
    let three = json!({"when": 1_699_999_200, "what": "third", "data": "{\"by\":1}", "tags": [], "id": 3});
    let get = async |query: &str| server.get(&format!("/events/get_data?{query}")).await.json();
    assert_eq!(get("").await, json!([one, two, three]));
    assert_eq!(get("from=1699999000&until=1699999100").await, json!([one, two]));
    assert_eq!(get("from=20231114&until=21:57_20231114&tz=UTC").await, json!([one]));
    assert_eq!(get("tags=web%20prod&from=-100y").await, json!([one]));
    assert_eq!(get("tags=web+db&set=intersection&_=123").await, json!([two]));
    assert_eq!(get("tags=prod+db+none&set=union").await, json!([one, two]));
    assert_eq!(get("tags=nosuch").await, json!([]));
    assert_eq!(server.get("/events").await.json(), json!([one, two, three]));
    assert_eq!(server.get("/events/2").await.json(), two);
    assert_eq!(server.get("/events/9").await.status, 404);
    assert_eq!(server.get("/events/x").await.status, 404);
    let called = server.get("/events/get_data?tags=db&jsonp=cb").await;
    assert_eq!(called.header("content-type"), Some("text/javascript"));
    assert!(called.text().starts_with("cb([{\"when\": 1699999100, "), "{}", called.text());
    assert_problem(&server.get("/events/get_data?jsonp=alert(1)").await, 400);
    let bad = server.get("/events/get_data?from=%3Cscript%3Ebogus").await;
    assert_eq!((bad.status, bad.text().contains("bogus")), (400, true));

    // The same as a series.
    let series =
        server.get("/render?target=events(%22web%22,'db')&from=1699999099&until=1699999102&format=json").await.json();
    assert_eq!(series[0]["target"], "events(\"web\", \"db\")");
    assert_eq!(series[0]["datapoints"], json!([[null, 1_699_999_099], [1.0, 1_699_999_100], [null, 1_699_999_101]]));
}

#[actix_web::test]
async fn other_answers_as_recorded() {
    let wanted = |case: &Value| {
        let endpoint = case["endpoint"].as_str().expect("an endpoint");
        // The version is a text that says what it is.
        !endpoint.starts_with("/render") && !endpoint.starts_with("/version")
    };
    replay("formats.jsonl", wanted, 15).await;
}

#[actix_web::test]
async fn what_the_server_is() {
    let server = Server::over(Config::default(), vec![store("one", &["a.b"]), broken()]).await;
    for path in ["/version", "/version/"] {
        let version = server.get(path).await;
        // Bare, so that it can be read as a semantic version.
        assert_eq!((version.status, version.text()), (200, "1.2.0-dev\n"));
        assert_eq!(version.header("x-plumbago-version"), Some(env!("CARGO_PKG_VERSION")));
    }
    assert_eq!(server.get("/lb_check").await.text(), "ok\n");
    assert_eq!(server.get("/healthz").await.text(), "ok\n");
    let ready = server.get("/readyz").await.json();
    assert_eq!((&ready["state"], &ready["groups"][0]["state"]), (&json!("ok"), &json!("ok")));
    server.get("/metrics/find?query=*").await;
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 200);
    let ready = ready.json();
    assert_eq!((&ready["state"], &ready["groups"][0]["state"]), (&json!("degraded"), &json!("degraded")));
    let backends = &ready["groups"][0]["backends"];
    assert_eq!((&backends[0]["name"], &backends[0]["ok"]), (&json!("one"), &json!(true)));
    assert_eq!((&backends[1]["ok"], &backends[1]["failed_in_a_row"]), (&json!(false), &json!(1)));
    assert_eq!((&ready["groups"][1]["name"], &ready["groups"][1]["state"]), (&json!("events"), &json!("ok")));
    assert_eq!(server.get("/dashboard/find/?query=").await.json(), json!({"dashboards": []}));
    assert!(server.get("/dashboard/load/x").await.json()["error"].is_string());
    for path in ["/whitelist", "/dashboard", "/composer", "/s/path", "/account/login"] {
        assert_problem(&server.get(path).await, 404);
    }
}

#[actix_web::test]
async fn functions_are_listed_for_editors() {
    let server = server(&[]).await;
    let all = server.get("/functions?pretty=1").await;
    assert_eq!(all.header("content-type"), Some("application/json"));
    // Grafana takes 1e9999 for infinity; no other token is not JSON.
    let text = all.text().replace("\"default\": 1e9999", "\"default\": 0");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    assert!(all.as_object().is_some_and(|all| all.len() > 100));
    for (name, function) in all.as_object().expect("an object") {
        assert_eq!(function["name"], **name);
        assert!(function["description"].is_string() && function["group"].is_string());
        assert!(function["params"].as_array().is_some_and(|params| params.iter().all(|p| p["type"].is_string())));
    }
    assert_eq!(server.get("/functions/scale").await.json()["params"][0]["type"], "seriesList");
    let none = server.get("/functions/nosuch").await;
    assert_eq!((none.status, none.json()["error"].is_string()), (404, true));
    assert_eq!(server.post("/functions", "").await.status, 405);
}

/// A request in version 3 of carbonapi's protobuf, as its frontend sends it: the body of a GET.
fn asked_in_v3(path: &str, message: &impl prost::Message) -> TestRequest {
    TestRequest::get().uri(path).insert_header(("Accept", v3::MEDIA_TYPE)).set_payload(message.encode_to_vec())
}

#[actix_web::test]
async fn a_carbonapi_asks() {
    let server = Server::recorded().await;
    let capable = server.ask(asked_in_v3("/_internal/capabilities/", &v3::CapabilityResponse::default())).await;
    let capable = v3::CapabilityResponse::decode(&*capable.body).expect("a message");
    assert_eq!(capable.supported_protocols[0], "carbonapi_v3_pb");
    assert_eq!(server.get("/_internal/capabilities/").await.json()["supportedProtocols"][0], "carbonapi_v3_pb");

    // Each with a range of its own, and its name echoed.
    let metric = |name: &str, start_time, stop_time, path_expression: &str| v3::FetchRequest {
        name: name.to_owned(),
        start_time,
        stop_time,
        path_expression: path_expression.to_owned(),
        max_data_points: 0,
    };
    let (hour, now) = (dataset::NOW - 3600, dataset::NOW);
    let metrics = vec![
        metric("edge.ramp", hour, now, "edge.r*"),
        metric("edge.ramp", now - 600, now, ""),
        metric("seriesByTag('name=disk.free', 'server=web01')", hour, now, "tagged"),
        metric("no.such", hour, now, "no.such"),
        metric("edge.ramp", now, now, "edge.ramp"),
    ];
    for request in [
        asked_in_v3("/render/?format=carbonapi_v3_pb", &v3::MultiFetchRequest { metrics: metrics.clone() }),
        asked_in_v3("/render/", &v3::MultiFetchRequest { metrics: metrics.clone() }).method(Method::POST),
    ] {
        let rendered = server.ask(request).await;
        assert_eq!((rendered.status, rendered.header("content-type")), (200, Some(v3::MEDIA_TYPE)));
        let series = v3::read_render(&rendered.body, &Limits::default()).expect("an answer");
        let said: Vec<_> = series.iter().map(|s| (&*s.name, s.path_expression.as_deref(), s.asked, s.len())).collect();
        assert_eq!(
            said,
            [
                ("edge.ramp", Some("edge.r*"), Some((hour, now)), 60),
                ("edge.ramp", Some("edge.ramp"), Some((now - 600, now)), 10),
                ("disk.free;datacenter=dc1;server=web01", Some("tagged"), Some((hour, now)), 60),
            ]
        );
    }
    let function = v3::MultiFetchRequest { metrics: vec![metric("scale(edge.ramp,2)", hour, now, "")] };
    assert_problem(&server.ask(asked_in_v3("/render/?format=carbonapi_v3_pb", &function)).await, 400);
    let garbage = TestRequest::post().uri("/render/?format=carbonapi_v3_pb").set_payload("\u{1}\u{2}\u{3}");
    assert_problem(&server.ask(garbage).await, 400);

    let globs = v3::MultiGlobRequest { metrics: vec!["dual.*".into(), "no.*".into()], start_time: 0, stop_time: 0 };
    for path in ["/metrics/find/?format=carbonapi_v3_pb", "/metrics/expand/"] {
        let found = server.ask(asked_in_v3(path, &globs)).await;
        assert_eq!((found.status, found.header("content-type")), (200, Some(v3::MEDIA_TYPE)));
        let nodes = v3::read_find(&found.body, &Limits::default()).expect("an answer");
        assert_eq!(nodes, [FoundNode::branch("dual.node"), FoundNode::leaf("dual.node")], "{path}");
    }
    let found = server.get("/metrics/find/?format=protobuf&query=dual.*").await;
    assert_eq!(found.header("content-type"), Some("application/x-protobuf"));
    let nodes = v2::read_find(&found.body, &Limits::default()).expect("an answer");
    assert_eq!(nodes, [FoundNode::branch("dual.node"), FoundNode::leaf("dual.node")]);

    let listed = server.get("/metrics/list/?format=protobuf").await;
    let listed = carbonapi::read_list(&listed.body, &Limits::default()).expect("an answer");
    assert_eq!(json!(listed), server.get("/metrics/index.json").await.json());
    assert_eq!(json!({"Metrics": listed}), server.get("/metrics/list/").await.json());
}

#[actix_web::test]
async fn how_series_are_stored() {
    let server = server(&[&["a.b"]]).await;
    let info = server.get("/info/?target=a.b&format=protobuf").await;
    assert_eq!((info.status, info.header("content-type")), (200, Some("application/x-protobuf")));
    let info = v2::InfoResponse::decode(&*info.body).expect("a message");
    // The points of the store are from 2023.
    assert!(info.name == "a.b" && info.max_retention > 0 && info.retentions[0].seconds_per_point == 60);
    assert_eq!(server.get("/info/?target=a.b").await.json()["metrics"][0]["name"], "a.b");
    let many = v3::MultiMetricsInfoRequest { names: vec!["no.such".into(), "a.b".into()] };
    let many = server.ask(asked_in_v3("/info/?format=carbonapi_v3_pb", &many)).await;
    let many = v3::MultiMetricsInfoResponse::decode(&*many.body).expect("a message");
    assert_eq!(many.metrics.iter().map(|info| &*info.name).collect::<Vec<_>>(), ["a.b"]);
    assert_problem(&server.get("/info/?target=no.such").await, 404);
    assert_problem(&server.get("/info/").await, 400);
}

/// Every path and method that is described is served, and every path that the sources serve is described.
#[actix_web::test]
async fn the_description_is_whole() {
    let server = server(&[&["a.b"]]).await;
    let document = server.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        for method in operations.as_object().expect("operations").keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            let uri = path.replace("{tag}", "name").replace("{id}", "1").replace("{name}", "scale");
            let event = r#"{"what": "described"}"#;
            let request = TestRequest::default().method(method.clone()).uri(&uri).set_payload(event);
            let status = server.ask(request).await.status;
            // There may be no such event yet.
            let none = status == 404 && path == "/events/{id}";
            assert!(none || (status != 404 && status != 405), "{method} {path}: {status}");
        }
    }
    let resources = regex::Regex::new(r"resource\(\s*&\[([^\]]*)\]").expect("an expression");
    let (mut served, folder) = (0, std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http"));
    for file in std::fs::read_dir(folder).expect("a folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a text");
        for found in resources.captures_iter(&text) {
            for path in found[1].split('"').filter(|path| path.starts_with('/')) {
                served += 1;
                assert!(paths.contains_key(path), "{path} is not described");
            }
        }
    }
    assert!(served > 25, "the resources are found: {served}");
}

#[actix_web::test]
async fn what_backends_would_refuse_does_not_reach_them() {
    let server = Server::over(Config::default(), vec![broken()]).await;
    assert_eq!(server.get("/metrics/expand?query=").await.json(), json!({"results": [""]}));
    let answer = server.get("/tags?filter=%5B").await;
    assert_eq!((answer.status, answer.json()["error"].is_string()), (400, true));
}

/// graphite-web and curl know forms of other kinds; such a one must not look like one that asks for nothing.
#[actix_web::test]
async fn bodies_that_are_not_read_are_refused() {
    let server = server(&[&["a.b"]]).await;
    let ask = async |body: &str, kind: &str, query: &str| {
        let request = TestRequest::post().uri(&format!("/render{query}")).insert_header(("Content-Type", kind));
        let answer = server.ask(request.set_payload(body.to_owned())).await;
        (answer.status, answer.text().to_owned())
    };
    let nothing = (200, "[]".to_owned());
    let query = "?target=none&format=json";
    for kind in ["multipart/form-data; boundary=x", "application/json"] {
        let (status, text) = ask("{\"target\": \"a.b\"}", kind, "").await;
        assert_eq!((status, text.lines().count()), (415, 1), "{text}");
        assert_eq!(ask("", kind, query).await, nothing);
    }
    assert_eq!(ask("{}", "application/json", query).await, nothing);
    assert_eq!(ask("--x", "multipart/form-data; boundary=x", query).await.0, 415);
    for kind in ["application/x-www-form-urlencoded", "text/plain", ""] {
        assert_eq!(ask(&query[1..], kind, "").await, nothing);
    }
}

#[actix_web::test]
async fn long_answers_are_refused() {
    let mut config = Config::default();
    config.limits.fetched.points = 10;
    let server = Server::over(config, vec![store("one", &["a.b"])]).await;
    let at = format!("from={}&until={now}&now={now}", dataset::NOW - 600, now = dataset::NOW);
    let get = async |rest: &str| server.get(&format!("/render?{at}&target=a.b{rest}")).await;
    assert_eq!(get("&format=json").await.status, 200);
    assert_eq!(get("&target=a.b&format=json&maxDataPoints=5").await.status, 200);
    for rest in ["&target=a.b&format=json", "&target=a.b&format=csv&maxDataPoints=5"] {
        let answer = get(rest).await;
        assert_problem(&answer, 413);
        assert!(answer.text().starts_with("the answer would have 20 points, more than 10;"), "{}", answer.text());
    }
}

#[actix_web::test]
async fn long_bodies_are_refused() {
    let mut config = Config::default();
    config.limits.body = 20;
    let server = Server::over(config, vec![store("one", &["a.b"])]).await;
    let post = async |body: &'static str| {
        let form = ("content-type", "application/x-www-form-urlencoded");
        server.ask(TestRequest::post().uri("/render?format=raw").insert_header(form).set_payload(body)).await
    };
    assert_eq!(post("target=a.b&x=1234567").await.status, 200);
    let answer = post("target=a.b&x=12345678").await;
    assert_problem(&answer, 413);
    assert_eq!(answer.text(), "the body of the request takes more than 20 bytes (limits.body)\n");
}

/// What is logged, as text.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bodies that do not come are not waited for, and clients that leave are not forgotten.
#[actix_web::test]
async fn each_request_has_an_end_and_a_line_in_the_log() {
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let app = App::with_groups(Config::default(), Vec::new()).expect("an application");
    let service = actix_web::App::new().wrap(middleware::from_fn(outer)).configure(routes(web::Data::new(app)));
    let service = init_service(service).await;
    let trickling = || {
        let request = TestRequest::post().uri("/render").insert_header(("Content-Length", "9")).to_request();
        request.replace_payload(Payload::Stream { payload: stream::pending().boxed_local() }).0
    };

    call_service(&service, TestRequest::get().uri("/healthz?password=x").to_request()).await;
    assert!(service.call(trickling()).now_or_never().is_none());
    // From here on the clock goes to the next timer whenever nothing else can happen.
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let error = try_call_service(&service, trickling()).await.expect_err("no answer");
    assert_eq!(error.as_response_error().status_code(), 504);
    assert_eq!(began.elapsed().as_secs(), 35, "the time of a request and a moment");

    let text = String::from_utf8(logged.0.lock().expect("not poisoned").clone()).expect("text");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("plumbago::access")).collect();
    let expected = [
        "method=GET path=\"/healthz\" status=200 bytes=3",
        "method=POST path=\"/render\" status=499 bytes=0",
        "method=POST path=\"/render\" status=504 bytes=0",
    ];
    assert!(lines.len() == 3 && lines.iter().zip(expected).all(|(line, part)| line.contains(part)), "{text}");
}

/// The lines of `/metrics` that begin so.
async fn counted(server: &Server, start: &str) -> Vec<String> {
    let answer = server.get("/metrics").await;
    answer.text().lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
}

#[actix_web::test]
async fn prometheus_reads_what_is_counted() {
    let server = server(&[&["a.b", "a.c"], &["a.d"]]).await;
    let render = "/render?target=sumSeries(a.*)&format=json&from=-10min&now=";
    for _ in 0..2 {
        assert_eq!(server.get(&format!("{render}{}", dataset::NOW)).await.status, 200);
    }
    assert_eq!(server.get("/render?target=sumSeries(&format=json").await.status, 400);
    assert_eq!(server.get("/metrics/find?query=*").await.status, 200);

    let answer = server.get("/metrics").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
    let text = answer.text();
    for line in [
        concat!("plumbago_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        "plumbago_http_requests_total{endpoint=\"render\",status=\"2xx\"} 2",
        "plumbago_http_requests_total{endpoint=\"render\",status=\"4xx\"} 1",
        "plumbago_http_requests_total{endpoint=\"find\",status=\"2xx\"} 1",
        "plumbago_http_requests_in_flight{endpoint=\"status\"} 1",
        "plumbago_http_requests_in_flight{endpoint=\"render\"} 0",
        "plumbago_http_request_duration_seconds_count{endpoint=\"render\"} 3",
        "plumbago_fetches_total 1",
        "plumbago_fetch_series_total 3",
        "plumbago_fetch_points_total 30",
        "plumbago_cache_hits_total{cache=\"responses\"} 1",
        "plumbago_cache_misses_total{cache=\"responses\"} 2",
        "plumbago_backend_calls_total{group=\"test\",backend=\"one\"} 2",
        "plumbago_backend_calls_in_flight{group=\"test\",backend=\"two\"} 0",
        "plumbago_backend_duration_seconds_count{group=\"test\",backend=\"two\"} 2",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    // A sample has a name that its family's head has named, and a value that is a number; no family comes twice.
    let mut family = "";
    let mut families = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            family = head.split(' ').next().expect("a name");
            assert!(families.insert(family), "{family} comes twice");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let name = name.split('{').next().expect("a name");
            let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{name} stands below {family}"));
            assert!(["", "_bucket", "_sum", "_count"].contains(&suffix), "{name} stands below {family}");
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        }
    }
    // Targets and clients leave no trace.
    for hidden in ["sumSeries", "a.b", "a.*", "127.0.0.1"] {
        assert!(!text.contains(hidden), "{hidden} is in\n{text}");
    }
    let renders = "plumbago_http_requests_total{endpoint=\"render\"";
    assert_eq!(counted(&server, renders).await.len(), 2);
    // With a question it is graphite-web's.
    let found = server.get("/metrics?query=a.*").await;
    assert_eq!((found.status, found.json().as_array().map(Vec::len)), (200, Some(3)));
    for (answer, what) in
        [(server.get("/metrics?format=json").await, "a parameter"), (server.post("/metrics", "").await, "POST")]
    {
        assert_eq!(answer.status, 400, "{what}");
    }
}

/// A backend over HTTP has numbers of its own, and its password stays here.
#[actix_web::test]
async fn prometheus_sees_backends_without_their_passwords() {
    let mut group = GroupSettings::new("east", GroupKind::Shards, "graphite");
    group.urls = vec!["http://user:secret@127.0.0.1:1/sub".to_owned()];
    group.failures_before_rest = 1;
    let config = Config { groups: vec![group], ..Config::default() };
    let server = Server::of(App::build(config).expect("an app")).await;
    assert_eq!(server.get("/render?target=a&format=json").await.status, 502);
    let answer = server.get("/metrics").await;
    let text = answer.text();
    let labels = "{group=\"east\",backend=\"http://127.0.0.1:1/sub\"}";
    for line in [
        "requests_total{} 2",
        "retries_total{} 1",
        "request_failures_total{} 1",
        "resting{} 1",
        "received_bytes_total{} 0",
    ] {
        let line = format!("plumbago_backend_{}", line.replace("{}", labels));
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    for cache in ["responses", "series", "names"] {
        assert!(text.contains(&format!("plumbago_cache_bytes{{cache=\"{cache}\"}}")), "{text}");
    }
    assert!(!text.contains("secret"));
}

#[actix_web::test]
async fn what_all_requests_hold_is_bounded_and_given_back() {
    let render = format!("/render?target=a.*&format=json&from=-10min&now={}", dataset::NOW);
    let with = async |all_requests| {
        let limits = RequestLimits { all_requests, ..RequestLimits::default() };
        Server::over(Config { limits, ..Config::default() }, vec![store("one", &["a.b", "a.c"])]).await
    };
    // Every request is a large one here.
    let server = with(64).await;
    for path in [&render, &render.replace("json", "csv")] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.text());
        assert!(answer.text().starts_with("other requests hold the memory"), "{}", answer.text());
    }
    assert_eq!(counted(&server, "plumbago_busy_total").await, ["plumbago_busy_total 2"]);
    assert_eq!(counted(&server, "plumbago_requests_memory").await, ["plumbago_requests_memory_bytes 0"]);
    // These two series take less than a thousand points would.
    let server = with(64 * 8000).await;
    assert_eq!(server.get(&render).await.status, 200);
    assert_eq!(counted(&server, "plumbago_requests_memory").await, ["plumbago_requests_memory_bytes 0"]);
}
