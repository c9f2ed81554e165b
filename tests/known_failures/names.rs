//! Names and the patterns that match them, of series and in `/metrics/find`.

use plumbago::config::Config;
use serde_json::json;

use super::support::server::Server;
use super::{Row, check, minutes, store};

/// Names that are paths, whatever they look like.
const PLAIN: &[(&str, &str)] = &[
    ("carbonapi #278", "1AAAA.BBB"),
    ("carbonapi #368", "10_5_7_57"),
    ("carbonapi #260", "true.cpu"),
    ("carbonapi #260", "None.cpu"),
    ("carbonapi #260", "infra.cpu"),
    ("carbonapi commit 899926ad", "a.b%"),
    ("carbonapi commit 899926ad", "a.b#c"),
    ("carbonapi commit 899926ad", "a.b&c"),
    ("carbonapi commit 899926ad", "a.b@c"),
    ("carbonapi commit afe22176", "a.b:c"),
    ("carbonapi commit afe22176", "a.b^$~!c"),
    ("carbonapi commit afe22176", "a.b;t=1"),
];

#[test]
fn plain_names_are_paths() {
    let rows: Vec<Row> = PLAIN
        .iter()
        .map(|(of, name)| Row {
            of,
            data: vec![minutes(name, &[1.0, 2.0])],
            range: (0, 120),
            targets: vec![*name],
            points: None,
            want: vec![minutes(name, &[1.0, 2.0])],
        })
        .collect();
    check(&rows);
}

#[test]
fn patterns_match_what_they_say() {
    let row = |of, data: &[&'static str], targets: &[&'static str], want: &[&'static str]| Row {
        of,
        data: data.iter().map(|name| minutes(name, &[1.0])).collect(),
        range: (0, 60),
        targets: targets.to_vec(),
        points: None,
        want: want.iter().map(|name| minutes(name, &[1.0])).collect(),
    };
    let topics = ["foo.bar{topic}.x", "foo.bartopic.x"];
    check(&[
        // A backslash makes a character what it is.
        row("carbonapi #661, #675", &topics, &[r"foo.bar\{topic\}.x"], &["foo.bar{topic}.x"]),
        row("graphite-web #242", &topics, &["foo.bar{topic}.x"], &["foo.bartopic.x"]),
        row(
            "collectd #3068",
            &["perfdata.__(space).value"],
            &[r"perfdata.__\(space\).value"],
            &["perfdata.__(space).value"],
        ),
        row("carbonapi #746", &["m.27011[c=rs11,d=T].x", "m.y"], &["m.*.x"], &["m.27011[c=rs11,d=T].x"]),
        row("VictoriaMetrics #952", &["one1", "one2", "two3"], &["{one*}"], &["one1", "one2"]),
        row(
            "VictoriaMetrics commit d16f22f3a1",
            &["x.a", "x.b1", "x.b2", "x.b"],
            &["x.{a,b{1,2}}"],
            &["x.a", "x.b1", "x.b2"],
        ),
        row("graphite-web #2661", &["foo.bar.baz", "foo.x.baz"], &["foo.{bar}.baz"], &["foo.bar.baz"]),
        row("grafana #5936", &["foo.bar.baz", "foo.x.baz"], &["foo.{bar,}.baz"], &["foo.bar.baz"]),
        row("graphite-clickhouse commit 927217f", &["aaa.b", "aa.b", "aaaa.b"], &["aa?.b"], &["aaa.b"]),
        row(
            "graphite-web #102",
            &["s.4.g", "s.5.f", "s.5.g"],
            &["s.*.g", "s.5.*"],
            &["s.4.g", "s.5.g", "s.5.f", "s.5.g"],
        ),
        row(
            "graphite-web #1457, grafana #3154",
            &["m.used", "m.free", "m.buffered"],
            &["m.{used,free,buffered}"],
            &["m.buffered", "m.free", "m.used"],
        ),
    ]);
}

/// VictoriaMetrics commit 98d1cd0971, carbonapi #245: the shapes in which names are answered.
#[actix_web::test]
async fn found_names_have_the_shape_that_was_asked_for() {
    let names = ["a.b.c", "a.d", "prod.servers.x", "test.servers.y", "a.b.e"];
    let data: Vec<_> = names.iter().map(|name| minutes(name, &[1.0])).collect();
    let server = Server::over(Config::default(), vec![std::sync::Arc::new(store(&data))]).await;
    let get = async |uri: &str| server.get(uri).await.json();
    let branch = |path: &str, name: &str| json!({"path": path, "name": name, "is_leaf": "0"});
    assert_eq!(
        get("/metrics/find?format=completer&query=a.").await,
        json!({"metrics": [branch("a.b.", "b"), {"path": "a.d", "name": "d", "is_leaf": "1"}]})
    );
    let roots = json!({"metrics": [branch("a.", "a"), branch("prod.", "prod"), branch("test.", "test")]});
    assert_eq!(get("/metrics/find?format=completer&query=*").await, roots);
    assert_eq!(get("/metrics/expand?query=*.servers").await, json!({"results": ["prod.servers", "test.servers"]}));
    let tree = get("/metrics/find?query=a.*").await;
    assert_eq!(tree[0], json!({"text": "b", "id": "a.b", "allowChildren": 1, "expandable": 1, "leaf": 0}));
    // grafana #8055: with a range and without.
    assert_eq!(get("/metrics/find?query=a.*&from=0&until=60").await, tree);
}
