//! Small requests that Graphite servers, carbonapi or their kin are known to have got wrong, with the right answers.
//!
//! Each row or comment names the public issue, pull request or commit in which the failure is described. The expected
//! values follow from that description, from graphite-web, or from arithmetic done by hand.

mod cache;
mod clients;
mod consolidation;
mod failures;
mod functions;
mod names;
mod one_fetch;
mod old_backends;
mod prefetch;
#[path = "../support/mod.rs"]
mod support;
mod tags;
mod targets;
mod times;

use plumbago::backend::BackendId;
use plumbago::config::{Config, GroupKind, GroupSettings};
use plumbago::encode::{self, JsonOptions};
use plumbago::http::App;
use plumbago::series::{Series, Step};
use plumbago::store::MemoryStore;
use serde_json::{Value, json};
use support::backend_server::Server as BackendServer;
use support::server::Server;

/// No value.
const N: f64 = f64::NAN;

/// A series: name, time of the first point, step, values.
struct Line(&'static str, i64, i64, Vec<f64>);

impl Line {
    fn series(&self) -> Series {
        Series::new(self.0, self.1, Step::new(self.2).expect("a step"), self.3.clone())
    }

    /// As JSON has it.
    fn points(&self) -> Value {
        let time = |i: usize| self.1 + i as i64 * self.2;
        self.3.iter().enumerate().map(|(i, value)| json!([value, time(i)])).collect()
    }
}

/// A series of one point a minute, the first at 60 s.
fn minutes(name: &'static str, values: &[f64]) -> Line {
    Line(name, 60, 60, values.to_vec())
}

/// A series of one point a minute from 1970 on, each the number of its minute.
fn count(name: &'static str, minutes: u32) -> Line {
    Line(name, 0, 60, (0..minutes).map(f64::from).collect())
}

fn store(data: &[Line]) -> MemoryStore {
    MemoryStore::new(BackendId::new("memory"), data.iter().map(Line::series))
}

/// A request over small data.
struct Row {
    /// Where the failure is described.
    of: &'static str,
    data: Vec<Line>,
    /// `from` and `until`: points after the one, up to the other.
    range: (i64, i64),
    targets: Vec<&'static str>,
    /// `maxDataPoints`.
    points: Option<u64>,
    want: Vec<Line>,
}

impl Row {
    fn fault(&self) -> Option<String> {
        let lists = match support::evaluate::evaluate(&store(&self.data), self.range, &self.targets) {
            Ok(lists) => lists,
            Err(error) => return Some(error),
        };
        let options =
            JsonOptions { max_data_points: self.points.and_then(std::num::NonZeroU64::new), ..JsonOptions::default() };
        let answer: Value = serde_json::from_slice(&encode::json(&lists.concat(), options)).expect("JSON");
        let pair = |series: &Value| json!([series["target"], series["datapoints"]]);
        let got: Value = answer.as_array().expect("a list").iter().map(pair).collect();
        let want: Value = self.want.iter().map(|line| json!([line.0, line.points()])).collect();
        let difference = support::judge::difference(&want, &got, "");
        difference.map(|difference| format!("{difference}\n  want {want}\n  got  {got}"))
    }
}

#[track_caller]
fn check(rows: &[Row]) {
    let faults: Vec<String> =
        rows.iter().filter_map(|row| Some(format!("{} {:?}: {}", row.of, row.targets, row.fault()?))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The message of a target that is refused.
fn refusal(data: &[Line], range: (i64, i64), target: &str) -> String {
    match support::evaluate::evaluate(&store(data), range, &[target]) {
        Ok(answer) => panic!("{target} is answered: {answer:?}"),
        Err(message) => message,
    }
}

/// A Plumbago before one backend that speaks `protocol`.
async fn before(backend: &BackendServer, protocol: &'static str, change: impl FnOnce(&mut GroupSettings)) -> Server {
    let mut group = GroupSettings::new("backend", GroupKind::Shards, protocol);
    group.urls = vec![backend.url()];
    change(&mut group);
    Server::of(App::build(Config { groups: vec![group], fetch_threads: 1, ..Config::default() }).expect("an app")).await
}

/// The names of the series of a JSON answer.
fn names(answer: &Value) -> Vec<&str> {
    answer.as_array().expect("a list").iter().map(|series| series["target"].as_str().expect("a name")).collect()
}
