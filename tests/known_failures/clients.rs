//! What Grafana and others rely on.

use plumbago::config::Config;
use serde_json::{Value, json};

use super::support::server::Server;
use super::{N, minutes, names, store};

async fn server() -> Server {
    let data =
        [minutes("a", &[N, 1.0, N]), minutes("b", &[N, N, N]), minutes("c", &[f64::INFINITY, f64::NEG_INFINITY, N])];
    Server::over(Config::default(), vec![std::sync::Arc::new(store(&data))]).await
}

const RANGE: &str = "from=0&until=180&now=180&format=json";

/// graphite-web #813, VictoriaMetrics #5009: JSON that every client can read.
#[actix_web::test]
async fn infinities_do_not_spoil_the_json() {
    let answer = server().await.get(&format!("/render?target=c&{RANGE}")).await;
    assert_eq!(answer.json()[0]["datapoints"], json!([[null, 60], [null, 120], [null, 180]]));
}

/// grafana #11171, carbonapi 0.13.
#[actix_web::test]
async fn no_null_points_drops_points_and_series_without_any() {
    let answer = server().await.get(&format!("/render?target=a&target=b&noNullPoints=1&{RANGE}")).await.json();
    assert_eq!(names(&answer), ["a"]);
    assert_eq!(answer[0]["datapoints"], json!([[1.0, 120]]));
}

/// graphite-web #2609, grafana #46951: one bare `Infinity` and the list of functions was empty.
#[actix_web::test]
async fn infinite_defaults_are_numbers_of_json() {
    let text = server().await.get("/functions").await.text().to_owned();
    assert!(!text.contains("Infinity"));
    let all: Value = serde_json::from_str(&text.replace("1e9999", "\"infinite\"")).expect("strict JSON");
    for name in ["keepLastValue", "interpolate"] {
        let params = all[name]["params"].as_array().expect("parameters");
        let limit = params.iter().find(|param| param["name"] == "limit").expect("a limit");
        assert_eq!(limit["default"], "infinite", "{name}");
    }
}

/// bookingcom/carbonapi #305, carbonapi #483, Icinga #300, grafana #17472.
#[actix_web::test]
async fn what_does_not_exist_is_an_empty_list_of_the_usual_shape() {
    let server = server().await;
    let get = async |uri: &str| {
        let answer = server.get(uri).await;
        (answer.status, answer.json())
    };
    assert_eq!(get(&format!("/render?target=no.such&{RANGE}")).await, (200, json!([])));
    assert_eq!(get("/metrics/expand?query=no.such").await, (200, json!({"results": []})));
    assert_eq!(get("/metrics/find?query=no.such").await, (200, json!([])));
    // Who asks for metrictank's metadata gets the list that every client of Graphite reads.
    let (_, plain) = get(&format!("/render?target=a&meta=true&{RANGE}")).await;
    assert_eq!(names(&plain), ["a"]);
}

/// grafana #16707: long lists of names, in a body or divided between URL and body.
#[actix_web::test]
async fn long_questions_come_in_bodies() {
    let server = server().await;
    let names: Vec<String> = (1..=2_000).map(|i| format!("h{i}")).chain(["a".to_owned()]).collect();
    let pattern = format!("{{{}}}", names.join(","));
    let found = server.post("/metrics/find", &format!("query={pattern}")).await.json();
    assert_eq!(found[0]["text"], "a");
    let rendered = server.post(&format!("/render?{RANGE}"), &format!("target={pattern}")).await.json();
    assert_eq!(super::names(&rendered), ["a"]);
}

/// graphite-web commit 8dd35ced: a colour of digits only was taken for a number, and one with `#` for none.
#[actix_web::test]
async fn colours_of_digits_are_colours() {
    let server = server().await;
    let range = "from=0&until=180&now=180&format=svg";
    for (query, color) in [
        ("target=color(a,808080)", "#808080"),
        ("target=color(a,\"808080\")", "#808080"),
        ("target=a&colorList=%23ff0000", "#ff0000"),
        ("target=a&colorList=00ff00", "#00ff00"),
    ] {
        let uri = format!("/render?{}&lineMode=connected&{range}", query.replace('"', "%22"));
        let picture = server.get(&uri).await;
        assert_eq!(picture.status, 200);
        assert!(picture.text().contains(color), "{query}");
        assert!(!server.get(&format!("/render?target=a&{range}")).await.text().contains(color), "{color}");
    }
}
