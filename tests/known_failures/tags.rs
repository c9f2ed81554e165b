//! Tags and tag queries.

use plumbago::config::Config;
use serde_json::json;

use super::support::server::Server;
use super::{minutes, names, store};

async fn server(data: &[&'static str]) -> Server {
    let data: Vec<_> = data.iter().map(|name| minutes(name, &[1.0])).collect();
    Server::over(Config::default(), vec![std::sync::Arc::new(store(&data))]).await
}

fn encoded(target: &str) -> String {
    let target: String = form_urlencoded::byte_serialize(target.as_bytes()).collect();
    format!("/render?target={target}&from=0&until=60&now=60&format=json")
}

/// metrictank commit c8cd1a3c: what every series satisfies would fetch all of them.
#[actix_web::test]
async fn a_query_that_needs_no_tag_is_refused() {
    let server = server(&["m;a=1"]).await;
    for query in ["a=~.*", "a=", "a!=~.+"] {
        let answer = server.get(&encoded(&format!("seriesByTag('{query}')"))).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.text());
        assert!(answer.text().contains("empty"), "{}", answer.text());
    }
    let found = server.get(&encoded("seriesByTag('name=m','a=~.*')")).await.json();
    assert_eq!(names(&found), ["m;a=1"]);
}

/// grafana #15261, metrictank #941, carbonapi commits 5aaf1ef3 and 0.15.0, graphite-web commit a4a4f7e8.
#[actix_web::test]
async fn odd_characters_in_tags_are_found() {
    let series = ["disk;dc=a=b", "desc;d=hello, world", "odd;k=a b(c|d)", "m;t=a", "m;t=b", "m;t=ab", "m;t=xb"];
    let server = server(&series).await;
    for (query, found) in [
        ("seriesByTag('dc=a=b')", &["disk;dc=a=b"][..]),
        ("seriesByTag('d=hello, world','name=desc')", &["desc;d=hello, world"]),
        ("seriesByTag('k=a b(c|d)')", &["odd;k=a b(c|d)"]),
        // Alternatives are anchored together, at their start only.
        ("seriesByTag('t=~a|b')", &["m;t=a", "m;t=ab", "m;t=b"]),
    ] {
        assert_eq!(names(&server.get(&encoded(query)).await.json()), found, "{query}");
    }
    let tags = server.get(&encoded("seriesByTag('dc=a=b')")).await.json()[0]["tags"].clone();
    assert_eq!(tags, json!({"name": "disk", "dc": "a=b"}));
    for refused in ["seriesByTag('a!b=c')", "seriesByTag('a=b;c')", "seriesByTag(';=x')"] {
        assert_eq!(server.get(&encoded(refused)).await.status, 400, "{refused}");
    }
}

/// graphite-clickhouse #107, carbonapi commit a1459c4d.
#[actix_web::test]
async fn functions_keep_the_name_tag() {
    let server = server(&["x;k=1", "x;k=2", "a.b"]).await;
    let grouped = server.get(&encoded("groupByTags(seriesByTag('name=x'),'last','')")).await;
    assert!(grouped.status == 400 || names(&grouped.json()) == ["x"], "{}", grouped.text());
    for target in ["alias(a.b,\"z\")", "alias(scale(a.b,2),\"z\")", "alias(keepLastValue(a.b),\"z\")"] {
        let alias = server.get(&encoded(target)).await.json();
        assert_eq!((&alias[0]["target"], &alias[0]["tags"]["name"]), (&json!("z"), &json!("a.b")), "{target}");
    }
}
