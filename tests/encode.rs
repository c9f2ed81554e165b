//! Recorded answers to requests for plain series, encoded anew and compared byte for byte.

mod support;

use plumbago::backend::wire::{Answered, Limits};
use plumbago::backend::{Backend, msgpack};
use plumbago::clock::{TimeBounds, TimeZone};
use plumbago::encode::{self, Callback, DataFormat, DataOptions, Format, JsonOptions};
use plumbago::series::{Consolidation, PathExpression, Selector, Series, TimeRange};
use plumbago::store::MemoryStore;
use serde_json::Value;
use support::dataset::{NOW, cases, scope, store};

/// A path, and the name of the consolidation that a target asks for.
type Path<'a> = (&'a str, Option<(&'a str, Consolidation)>);

struct Case {
    json: Value,
    parameters: Vec<(String, String)>,
}

impl Case {
    fn new(json: Value) -> Self {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let pairs = json["params"].as_array().expect("pairs");
        let parameters = pairs.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
        Self { json, parameters }
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.parameters.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The last value wins, as in Django.
    fn get(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// The path of each target with the consolidation it asks for; `None` when a target calls any other function.
    fn paths(&self) -> Option<Vec<Path<'_>>> {
        let plain = |path: &str| path.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-{},*".contains(&b));
        self.all("target")
            .map(|target| {
                if plain(target) {
                    return Some((target, None));
                }
                let (path, name) = target.strip_prefix("consolidateBy(")?.strip_suffix("\")")?.rsplit_once(",\"")?;
                plain(path).then_some(())?;
                Some((path, Some((name, Consolidation::by_name(name)?))))
            })
            .collect()
    }

    async fn series(&self, store: &MemoryStore, range: TimeRange) -> Option<Vec<Series>> {
        let mut series = Vec::new();
        for (path, consolidation) in self.paths()? {
            let selector = Selector { pattern: PathExpression::new(path), range };
            let found = store.fetch(&[selector], &scope()).await.remove(0).expect("an answer");
            series.extend(found.into_iter().map(|mut series| {
                series.x_files_factor = self.get("xFilesFactor").map_or(0.0, |f| f.parse().expect("a number"));
                if let Some((name, consolidation)) = &consolidation {
                    series.consolidation = consolidation.clone();
                    let shown = format!("consolidateBy({},\"{name}\")", series.name);
                    series = series.named(shown).tagged("consolidateBy", *name);
                }
                series
            }));
        }
        Some(series)
    }
}

fn encode(
    case: &Case,
    series: &[Series],
    zone: &TimeZone,
    range: TimeRange,
) -> Option<(DataFormat, Vec<u8>, &'static str)> {
    let name = case.get("format").or(case.get("rawData").map(|_| "raw")).or(case.get("pickle").map(|_| "pickle"))?;
    let Some(Format::Data(format)) = Format::from_parameter(name) else { return None };
    let json = JsonOptions {
        max_data_points: case.get("maxDataPoints").and_then(encode::max_data_points),
        no_null_points: case.get("noNullPoints").is_some(),
        pretty: case.get("pretty").is_some_and(|value| !value.is_empty()),
    };
    let callback = case.get("jsonp").map(Callback::new).transpose().ok()?;
    let (body, content_type) =
        encode::data(format, series, DataOptions { json, callback: callback.as_ref(), zone, range }).expect("small");
    Some((format, body, content_type))
}

/// A pickled answer as an independent reader sees it, and of a packed one the fields that our own reader takes.
fn decoded(format: DataFormat, body: &[u8]) -> Value {
    if format == DataFormat::Pickle {
        return serde_pickle::from_slice(body, serde_pickle::DeOptions::new()).expect("a pickle");
    }
    let answered = msgpack::read_render(body, &Limits::default()).expect("what was written can be read");
    let fields = |a: &Answered| {
        let series = a.series();
        let values = series.values().iter().map(|v| if v.is_nan() { Value::Null } else { (*v).into() });
        serde_json::json!({
            "name": &*a.name,
            "start": series.start(),
            "step": series.step().seconds(),
            "values": values.collect::<Vec<_>>(),
            "pathExpression": a.path_expression.as_deref(),
        })
    };
    answered.iter().map(fields).collect()
}

fn assert_contains(ours: &Value, recorded: &Value, id: &Value) {
    let rows = |value: &Value| value.as_array().expect("rows").clone();
    assert_eq!(rows(ours).len(), rows(recorded).len(), "{id}");
    for (ours, recorded) in rows(ours).iter().zip(&rows(recorded)) {
        for (field, value) in ours.as_object().expect("fields") {
            assert_eq!(value, &recorded[field], "{id}: {field}");
        }
    }
}

#[tokio::test]
async fn recorded_answers() {
    let store = store();
    let (mut exact, mut equal, mut binary) = (0, 0, 0);
    for case in ["formats.jsonl", "combined.jsonl"].into_iter().flat_map(cases).map(Case::new) {
        let elsewhere = case.json.get("query").is_some() || case.get("target[]").is_some();
        if case.json["endpoint"] != "/render" || case.json["status"] != 200 || elsewhere {
            continue;
        }
        let zone = case.get("tz").and_then(TimeZone::named).unwrap_or_else(TimeZone::utc);
        let Ok(bounds) = TimeBounds::resolve(case.get("from"), case.get("until"), case.get("now"), &zone, NOW) else {
            continue;
        };
        let Some(series) = case.series(&store, bounds.range()).await else { continue };
        let Some((format, body, content_type)) = encode(&case, &series, &zone, bounds.range()) else { continue };
        assert_eq!(case.json["content_type"], content_type, "{}", case.json["id"]);
        if matches!(format, DataFormat::Pickle | DataFormat::MsgPack) {
            assert_contains(&decoded(format, &body), &case.json["body"], &case.json["id"]);
            binary += 1;
            continue;
        }
        let text = String::from_utf8(body).expect("UTF-8");
        let recorded = &case.json["body"];
        if let Some(recorded) = case.json["body_text"].as_str().or(recorded.as_str()) {
            assert_eq!(text, recorded, "{}", case.json["id"]);
            exact += 1;
        } else if content_type == "application/json" {
            let ours: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(&ours, recorded, "{}", case.json["id"]);
            equal += 1;
        }
    }
    assert!(exact > 40 && equal > 70 && binary > 10, "{exact} byte for byte, {equal} equal, {binary} binary");
}
