//! Whisper files against what the reference implementation wrote and fetched (`tests/whisper`), and against files that
//! lie about themselves.

use std::fs;
use std::path::{Path, PathBuf};

use plumbago::series::{Step, TimeRange};
use plumbago::store::{Archive, Points, RollUp, WhisperError, WhisperFile};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/whisper")
}

fn recorded() -> serde_json::Map<String, Value> {
    let text = fs::read_to_string(folder().join("expected.json")).expect("the recording is readable");
    serde_json::from_str(&text).expect("the recording is JSON")
}

fn int(value: &Value) -> i64 {
    value.as_i64().expect("a whole number")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

/// Compares each recorded fetch; answers how many there were.
fn check(name: &str, file: &WhisperFile, fetches: &Value) -> usize {
    for fetch in list(fetches) {
        let (from, until, now) = (int(&fetch[0]), int(&fetch[1]), int(&fetch[2]));
        let found = file.fetch(TimeRange::new(from, until).expect("a range"), now).expect("fetched");
        let found = found.map(|Points { start, step, values }| {
            let end = start + step.seconds() * values.len() as i64;
            let values = values.into_iter().map(|v| if v.is_nan() { Value::Null } else { v.into() });
            serde_json::json!({"info": [start, end, step.seconds()], "values": values.collect::<Vec<_>>()})
        });
        assert_eq!(found.unwrap_or(Value::Null), fetch[3], "{name} {from}..{until} at {now}");
    }
    list(fetches).len()
}

#[test]
fn reads_what_whisper_reads() {
    let mut compared = 0;
    for (name, case) in recorded() {
        let file = WhisperFile::open(&folder().join(format!("{name}.wsp"))).expect("a whisper file");
        compared += check(&name, &file, &case["fetches"]);
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn writes_what_whisper_writes() {
    let scratch = tempfile::tempdir().expect("a folder");
    for (name, case) in recorded() {
        let archives: Vec<Archive> = list(&case["archives"])
            .iter()
            .map(|a| Archive { step: Step::new(int(&a[0])).expect("a step"), points: int(&a[1]) as u32 })
            .collect();
        let roll_up = match case["method"].as_str().expect("a method") {
            "average" => RollUp::Average,
            "sum" => RollUp::Sum,
            "last" => RollUp::Last,
            "max" => RollUp::Max,
            "min" => RollUp::Min,
            "avg_zero" => RollUp::AvgZero,
            "absmax" => RollUp::AbsMax,
            "absmin" => RollUp::AbsMin,
            other => panic!("unknown method {other}"),
        };
        let xff = case["xff"].as_f64().expect("a factor") as f32;
        let path = scratch.path().join(&name);
        let mut file = WhisperFile::create(&path, &archives, xff, roll_up, &[], 0).expect("created");
        assert_eq!(file.archives().collect::<Vec<_>>(), archives);
        for write in list(&case["writes"]) {
            let points: Vec<(i64, f64)> =
                list(&write["points"]).iter().map(|p| (int(&p[0]), p[1].as_f64().expect("a value"))).collect();
            file.update_many(&points, int(&write["now"])).expect("updated");
        }
        check(&name, &file, &case["fetches"]);
        let again = WhisperFile::open(&path).expect("a whisper file");
        assert_eq!(again.roll_up(), roll_up);
        check(&name, &again, &case["fetches"]);
        assert_eq!(
            fs::metadata(&path).expect("there").len(),
            fs::metadata(folder().join(format!("{name}.wsp"))).expect("there").len()
        );
    }
}

#[test]
fn refuses_archives_that_do_not_fit() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("x.wsp");
    let archive = |step, points| Archive { step: Step::new(step).expect("a step"), points };
    for archives in [
        vec![],
        vec![archive(10, 0)],
        vec![archive(10, 10), archive(10, 20)],
        vec![archive(10, 10), archive(25, 20)],
        vec![archive(10, 10), archive(20, 5)],
        vec![archive(10, 5), archive(60, 20)],
        vec![archive(60, u32::MAX)],
    ] {
        let refused = WhisperFile::create(&path, &archives, 0.5, RollUp::Average, &[], 0);
        assert!(matches!(refused, Err(WhisperError::Archives { .. })), "{archives:?}");
    }
    let refused = WhisperFile::create(&path, &[archive(10, 10)], 1.5, RollUp::Average, &[], 0);
    assert!(matches!(refused, Err(WhisperError::Archives { .. })));
    assert!(!path.exists());
    WhisperFile::create(&path, &[archive(10, 10)], 0.5, RollUp::Average, &[], 0).expect("created");
    let again = WhisperFile::create(&path, &[archive(10, 10)], 0.5, RollUp::Average, &[], 0);
    assert!(matches!(again, Err(WhisperError::Io { .. })));
}

/// A header with one word replaced.
fn spoilt(word: usize, value: u32) -> Vec<u8> {
    let mut bytes = fs::read(folder().join("average.wsp")).expect("readable");
    bytes[word * 4..word * 4 + 4].copy_from_slice(&value.to_be_bytes());
    bytes
}

#[test]
fn names_the_file_that_lies() {
    let scratch = tempfile::tempdir().expect("a folder");
    let whole = fs::read(folder().join("average.wsp")).expect("readable");
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("half a header", whole[..10].to_vec()),
        ("half the archives", whole[..40].to_vec()),
        ("points missing", whole[..whole.len() - 1].to_vec()),
        ("unknown aggregation", spoilt(0, 0)),
        ("unknown aggregation 9", spoilt(0, 9)),
        ("factor 2", spoilt(2, 2.0_f32.to_bits())),
        ("factor NaN", spoilt(2, f32::NAN.to_bits())),
        ("no archives", spoilt(3, 0)),
        ("many archives", spoilt(3, u32::MAX)),
        ("65 archives", spoilt(3, 65)),
        ("ring inside the header", spoilt(4, 8)),
        ("ring beyond the file", spoilt(4, u32::MAX)),
        ("step 0", spoilt(5, 0)),
        ("no points", spoilt(6, 0)),
        ("too many points", spoilt(6, u32::MAX)),
    ];
    for (what, bytes) in cases {
        let path = scratch.path().join("liar.wsp");
        fs::write(&path, bytes).expect("written");
        let error = WhisperFile::open(&path).expect_err(what);
        assert!(matches!(error, WhisperError::Corrupt { .. }), "{what}: {error}");
        assert!(error.to_string().contains("liar.wsp"), "{what}: {error}");
    }
    fs::write(scratch.path().join("empty.wsp"), "").expect("written");
    let empty = WhisperFile::open(&scratch.path().join("empty.wsp")).expect_err("empty");
    assert!(matches!(empty, WhisperError::Empty { .. }) && empty.to_string().contains("empty.wsp"), "{empty}");
    let missing = WhisperFile::open(&scratch.path().join("missing.wsp")).expect_err("missing");
    assert!(missing.to_string().contains("missing.wsp"));
}

/// A header may state a retention or steps that its archives do not have; answers stay as small as the archives.
#[test]
fn odd_headers_give_small_answers() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("odd.wsp");
    let now = 1_700_000_000;
    // Words: 1 the whole retention, 5 the first archive's step, 11 the last archive's step.
    for (word, value) in [(1, 0), (1, u32::MAX), (5, u32::MAX), (5, 7), (11, 1), (11, u32::MAX)] {
        fs::write(&path, spoilt(word, value)).expect("written");
        let mut file = WhisperFile::open_for_update(&path).expect("still a whisper file");
        for from in [0, 1, now - 86_400, now - 300, now - 1] {
            for until in [from + 1, now, now + 1000] {
                let Some(range) = TimeRange::new(from, until) else { continue };
                let points = file.fetch(range, now).expect("fetched");
                assert!(points.is_none_or(|p| p.values.len() <= 30), "{word} {value} {range}");
            }
        }
        file.update_many(&[(now, 1.0), (now - 1000, 2.0), (5, 1.0)], now).expect("updated");
    }
}

proptest::proptest! {
    /// Whatever a header says, a file is refused or gives no more points than it has.
    #[test]
    fn no_header_can_do_harm(
        words in proptest::collection::vec((0..13_usize, proptest::prelude::any::<u32>(), 0..3_usize), 1..5),
        from in proptest::prelude::any::<i64>(),
        length in 1..i64::MAX,
        now in proptest::prelude::any::<i64>(),
        near in proptest::prelude::any::<bool>(),
    ) {
        let scratch = tempfile::tempdir().expect("a folder");
        let path = scratch.path().join("x.wsp");
        let mut bytes = fs::read(folder().join("average.wsp")).expect("readable");
        for (word, value, kind) in words {
            // Small numbers come nearer to what is valid.
            let value: u32 = [value, value % 1000, value % 8][kind];
            bytes[word * 4..word * 4 + 4].copy_from_slice(&value.to_be_bytes());
        }
        fs::write(&path, bytes).expect("written");
        if let Ok(mut file) = WhisperFile::open_for_update(&path) {
            let (from, length, now) = if near {
                let now = 1_700_000_000 + now % 10_000;
                (now - from.rem_euclid(10_000), length % 10_000 + 1, now)
            } else {
                (from, length, now)
            };
            if let Some(range) = TimeRange::new(from, from.saturating_add(length)) {
                let points = file.fetch(range, now).expect("fetched");
                proptest::prop_assert!(points.is_none_or(|p| p.values.len() <= 70));
            }
            // A time that a file cannot hold is an error.
            let _ = file.update_many(&[(now, 1.0), (now.saturating_sub(100), 2.0)], now);
        }
    }
}
