//! The data that the recorded answers in `tests/golden` were computed from.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plumbago::backend::{BackendId, Scope};
use plumbago::series::{Series, Step, Tags};
use plumbago::store::{Archive, MemoryStore, RollUp, WhisperFile};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Time of the last point of nearly all series, and `now` of nearly all recorded requests.
pub const NOW: i64 = 1_699_999_200;

/// The path of a file in `tests/golden`.
pub fn golden(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

/// The recorded cases of a file in `tests/golden`, in its order.
pub fn cases(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(golden(file)).expect("the file of cases is readable");
    text.lines().map(|line| serde_json::from_str(line).expect("a case is a JSON object")).collect()
}

/// All series of the data set, with float values.
pub fn series() -> Vec<Series> {
    let text = std::fs::read_to_string(golden("dataset.json")).expect("the data set is readable");
    let data: Value = serde_json::from_str(&text).expect("the data set is JSON");
    data["series"].as_array().expect("a list of series").iter().map(one).collect()
}

fn one(series: &Value) -> Series {
    let name = series["name"].as_str().expect("a name");
    let step = series["step"].as_i64().and_then(Step::new).expect("a step");
    let values = series["values"].as_array().expect("a list of values");
    let values = values.iter().map(|v| v.as_f64().unwrap_or(f64::NAN)).collect();
    let start = series["start"].as_i64().expect("a start");
    let Some(tags) = series["tags"].as_object() else { return Series::new(name, start, step, values) };
    let tags: Tags = tags.iter().map(|(k, v)| (k.clone(), v.as_str().expect("a text").to_owned())).collect();
    Series::with_tags(name, Arc::new(tags), start, step, values)
}

/// A store of the data set.
pub fn store() -> MemoryStore {
    MemoryStore::new(BackendId::new("dataset"), series())
}

/// Writes the data set as whisper files, one archive each that ends now, where carbon would put them.
pub fn write_files(root: &Path) {
    for series in series() {
        let name = &*series.name;
        let place = if name.contains(';') {
            let hash = format!("{:x}", Sha256::digest(name));
            format!("_tagged/{}/{}/{}", &hash[..3], &hash[3..6], name.replace('.', "_DOT_"))
        } else {
            name.replace('.', "/")
        };
        let path = root.join(place + ".wsp");
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        let points: Vec<(i64, f64)> = (0..series.len())
            .map(|i| (series.time(i), series.values()[i]))
            .filter(|(_, value)| !value.is_nan())
            .collect();
        let length = (NOW - series.start()) / series.step().seconds() + 1;
        let archive = Archive { step: series.step(), points: length as u32 };
        WhisperFile::create(&path, &[archive], 0.5, RollUp::Average, &points, NOW).expect("created");
    }
}

/// A scope for calling a store directly: a far deadline, the data set's `now`.
pub fn scope() -> Scope {
    Scope {
        deadline: tokio::time::Instant::now() + Duration::from_secs(3600),
        now: NOW,
        headers: Arc::from([]),
        request_id: "test".into(),
    }
}
