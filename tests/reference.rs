//! The library's documents: `/functions` against graphite-web's, and the manual.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use plumbago::functions::reference::{Listing, json, json_of, markdown};
use plumbago::functions::{Eval, all, names};
use serde_json::Value;
use support::dataset::{self, NOW, cases};
use support::evaluate::evaluate;

/// Our JSON without descriptions, which are our own; infinity as the recordings show it.
fn parsed(text: &str) -> Value {
    fn strip(value: &mut Value) {
        if let Some(object) = value.as_object_mut() {
            if object.contains_key("params") {
                let description = object.remove("description");
                assert!(description.is_some_and(|d| d.as_str().is_some_and(|d| !d.is_empty())), "{object:?}");
            }
            object.values_mut().for_each(strip);
        }
    }
    let mut value = serde_json::from_str(&text.replace("1e9999", "\"Infinity\"")).expect("JSON");
    strip(&mut value);
    value
}

#[test]
fn tells_editors_what_graphite_web_tells_them() {
    let text = std::fs::read_to_string(dataset::golden("functions.json")).expect("the recorded list");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    let theirs: BTreeMap<String, Value> = serde_json::from_value(recorded["functions"].clone()).expect("an object");
    let ours: BTreeMap<String, Value> = serde_json::from_value(parsed(&json(&Listing::default()))).expect("an object");
    let mut faults = Vec::new();
    for (name, theirs) in &theirs {
        match ours.get(name) {
            None => faults.push(format!("{name} is missing")),
            Some(ours) if ours != theirs => faults.push(format!("{name}\n  ours   {ours}\n  theirs {theirs}")),
            Some(_) => {}
        }
    }
    faults.extend(ours.keys().filter(|name| !theirs.contains_key(*name)).map(|name| format!("{name} is ours alone")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let pie = Listing { pie: true, ..Listing::default() };
    assert_eq!(parsed(&json(&pie)), recorded["pieFunctions"]);
}

/// The functions in an answer by their paths: name, group and name, or nothing for the answer itself.
fn members(answer: &Value) -> BTreeMap<String, Value> {
    fn walk(path: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
        if value.get("params").is_some() {
            out.insert(path.to_owned(), value.clone());
            return;
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            walk(&format!("{path}/{name}"), member, out);
        }
    }
    let mut out = BTreeMap::new();
    walk("", answer, &mut out);
    out
}

#[test]
fn answers_the_recorded_questions() {
    let mut compared = 0;
    for case in cases("formats.jsonl").into_iter().filter(|c| c["group"] == "functions" && c["method"] == "GET") {
        let param = |wanted: &str| {
            let pairs = case["params"].as_array().expect("pairs");
            pairs.iter().rev().find(|p| p[0] == wanted).and_then(|p| p[1].as_str()).map(str::to_owned)
        };
        let listing = Listing {
            grouped: param("grouped").is_some_and(|g| g == "1" || g.eq_ignore_ascii_case("true")),
            group: param("group"),
            pie: param("type").as_deref() == Some("pie"),
            pretty: param("pretty").is_some(),
        };
        let endpoint = case["endpoint"].as_str().expect("a path");
        let ours = match endpoint.strip_prefix("/functions/").filter(|name| !name.is_empty()) {
            Some(name) => json_of(name, &listing),
            None => Some(json(&listing)),
        };
        match (ours, case["status"].as_u64()) {
            (None, Some(404)) => {}
            (Some(ours), Some(200)) => {
                let (ours, theirs) = (members(&parsed(&ours)), members(&case["body"]));
                let different: Vec<&String> =
                    ours.keys().chain(theirs.keys()).filter(|path| ours.get(*path) != theirs.get(*path)).collect();
                assert!(different.is_empty(), "{}: {different:?}", case["id"]);
            }
            (ours, status) => panic!("{}: {ours:?} for status {status:?}", case["id"]),
        }
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} cases");
}

#[test]
fn indented_answers_have_their_keys_in_order() {
    let listing = Listing { group: Some("Sorting".into()), pretty: true, ..Listing::default() };
    let text = json(&listing);
    let keys: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("    \"")?.split_once("\":").map(|(key, _)| key)).take(6).collect();
    assert_eq!(keys, ["description", "function", "group", "module", "name", "params"]);
}

#[test]
fn every_function_is_documented() {
    let manual = markdown();
    for function in all() {
        let name = function.name;
        assert!(function.doc.len() > 20 && function.doc.ends_with('.'), "{name} has no sentence of documentation");
        assert!(manual.contains(&format!("\n### {name}\n")), "{name} is not in the manual");
        assert!(manual.contains(&format!("Example: `{}`", function.example)), "{name} has no example");
        let uses = std::iter::once(&name).chain(function.aliases).any(|n| function.example.contains(&format!("{n}(")));
        assert!(uses, "the example of {name} does not use it: {}", function.example);
    }
    // What a declaration leaves out is taken from one that is not computed; only these are meant to be so.
    let fetched: Vec<&str> = all().filter(|f| matches!(f.eval, Eval::Selector)).map(|f| f.name).collect();
    assert_eq!(fetched, ["seriesByTag", "events"]);
    let types = manual.split_once("## Types of parameters").expect("the types stand at the end").1;
    for kind in all().flat_map(|f| f.params.iter()).map(|p| p.kind().name()) {
        assert!(types.contains(&format!("\n| {kind} | ")), "the type {kind} is not explained");
    }
    let distinct: BTreeSet<&str> = names().map(|(name, _)| name).collect();
    assert_eq!(distinct.len(), names().count(), "a name is taken twice");
}

#[test]
fn every_example_shows_something() {
    let store = dataset::store();
    let mut faults = Vec::new();
    // `events` needs a store of events.
    for function in all().filter(|f| f.name != "events") {
        match evaluate(&store, (NOW - 3600, NOW), &[function.example]) {
            Err(e) => faults.push(format!("{}: {e}", function.example)),
            Ok(lists) if lists[0].is_empty() => faults.push(format!("{}: nothing", function.example)),
            Ok(_) => {}
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
