//! Replays graphite-web's recorded answers to `/render` (`tests/golden/*.jsonl`) in process, over HTTP and the data set
//! that they were recorded from.
//!
//! `GOLDEN=fn:scale` (a prefix of a group, or a case's id) runs a part and shows more. `GOLDEN_FILE=/path.jsonl` replays
//! other recordings of the same form.

mod support;

use std::collections::BTreeMap;

use plumbago::config::Config;
use std::sync::Arc;
use support::dataset;
use support::judge::judge_render;
use support::server::Server;

#[actix_web::test]
async fn graphite_web_answers() {
    let only = std::env::var("GOLDEN").ok();
    let text = std::fs::read_to_string(dataset::golden("differs.json")).expect("readable");
    let differs: BTreeMap<String, String> = serde_json::from_str(&text).expect("differs.json maps ids to reasons");
    // Finished answers are not kept, so that each case is computed.
    let mut config = Config::default();
    config.cache.response_size = 0;
    let server = Server::over(config, vec![Arc::new(dataset::store())]).await;
    let mut groups: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let (mut faults, mut different) = (Vec::new(), Vec::new());
    let recorded = ["functions.jsonl", "combined.jsonl", "syntax.jsonl", "time.jsonl", "formats.jsonl", "more.jsonl"];
    let files = std::env::var("GOLDEN_FILE").map_or(recorded.map(str::to_owned).to_vec(), |file| vec![file]);
    for file in &files {
        for case in dataset::cases(file) {
            let (group, id) = (case["group"].as_str().unwrap_or_default(), case["id"].as_str().unwrap_or_default());
            if only.as_ref().is_some_and(|o| !group.starts_with(o.as_str()) && id != o) {
                continue;
            }
            if case["endpoint"].as_str().is_none_or(|e| e.trim_end_matches('/') != "/render") {
                continue;
            }
            // Names that are not ASCII are always read, as with UTF8_METRICS on.
            if group == "utf8off" || case["settings"]["UTF8_METRICS"] == false {
                continue;
            }
            let params = case["params"].as_array().expect("params");
            let counts = groups.entry(group.to_owned()).or_default();
            let misses = || server.app.renderer().stats().misses.get();
            let before = misses();
            let why = judge_render(&case, &server.replay(&case).await);
            let misses = misses() - before;
            match why.or_else(|| (misses > 0).then(|| format!("{misses} selectors were not planned"))) {
                None => counts.0 += 1,
                Some(_) if differs.contains_key(id) => different.push(id.to_owned()),
                Some(why) => {
                    counts.1 += 1;
                    let shown: Vec<_> = params
                        .iter()
                        .filter(|p| p[0] != "now")
                        .map(|p| format!("{}={}", p[0].as_str().unwrap_or_default(), p[1].as_str().unwrap_or_default()))
                        .collect();
                    faults.push(format!("{id} {group} {}\n    {why}", shown.join("&")));
                }
            }
        }
    }
    let shown = if only.is_some() { 60 } else { 15 };
    for fault in faults.iter().take(shown) {
        println!("{fault}");
    }
    for (group, (passed, failed)) in groups.iter().filter(|(_, (_, f))| *f > 0) {
        println!("{group}: {passed} passed, {failed} failed");
    }
    let passed: u32 = groups.values().map(|(p, _)| p).sum();
    println!("{passed} passed, {} failed, {} differ on purpose", faults.len(), different.len());
    assert!(faults.is_empty());
    assert!(only.is_some() || passed > 2_000, "the recordings are there");
}
