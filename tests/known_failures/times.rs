//! Ranges, zones and intervals.

use plumbago::clock::{Civil, TimeZone};
use plumbago::config::Config;
use plumbago::functions::Request;
use plumbago::series::{Series, Step};

use super::support::rounds::{range, request, run};
use super::support::server::Server;
use super::{count, minutes, refusal, store};

/// graphite-web #1688: days begin at midnight of the asked zone.
#[test]
fn buckets_of_a_day_begin_at_local_midnight() {
    let zone = TimeZone::named("America/New_York").expect("a zone");
    let at = |day, hour| zone.timestamp(Civil::new(2023, 7, day, hour, 0, 0).expect("a time"));
    let asked = Request { time_zone: zone.clone(), ..request(range(at(10, 15), at(12, 15))) };
    let hours = |selector: &plumbago::series::Selector| {
        let step = Step::new(3600).expect("an hour");
        let (start, end) = selector.range.aligned(step);
        vec![Series::new("a", start, step, vec![1.0; ((end - start) / 3600) as usize])]
    };
    let got = run(&["smartSummarize(a,\"1d\",\"sum\",\"days\")"], asked, &[], None, hours).series.remove(0).remove(0);
    // 04:00 in UTC. The first point after midnight is that of 1:00, so a bucket goes from 1:00 to the next midnight.
    assert_eq!((got.start() - 3600, got.step().seconds()), (at(10, 0), 86_400));
    assert_eq!(got.values(), [24.0, 24.0, 15.0]);
}

/// carbonapi changelog 0.16.1: `m` is either of two units.
#[test]
fn a_unit_that_could_be_two_is_refused_with_both() {
    let error = refusal(&[minutes("a", &[1.0])], (0, 60), "movingAverage(a,\"5m\")");
    assert!(error.contains("`min`") && error.contains("`mon`"), "{error}");
}

/// graphite-web #23, #204; carbonapi #72.
#[actix_web::test]
async fn ranges_that_are_empty_reversed_or_long_ago() {
    let server = Server::over(Config::default(), vec![std::sync::Arc::new(store(&[count("a", 60)]))]).await;
    let render = async |range: &str| server.get(&format!("/render?target=a&format=json&now=3600&{range}")).await;
    assert_eq!(render("from=600&until=600").await.status, 400);
    let right = render("from=-1h&until=now").await;
    assert_eq!(right.json()[0]["datapoints"].as_array().map(Vec::len), Some(60));
    assert_eq!(render("from=now&until=-1h").await.json(), right.json());
    let old = server.get("/render?target=a&format=json&from=-10y&until=-9y").await;
    assert_eq!(old.status, 200);
    let points = old.json()[0]["datapoints"].as_array().cloned().unwrap_or_default();
    assert!(points.iter().all(|point| point[0].is_null()));
}
