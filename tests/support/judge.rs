//! The rules by which an answer is compared with a recorded one.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use plumbago::backend::wire::Limits;
use plumbago::backend::{FoundNode, msgpack, pickle};

/// `None` when equal, else the place. Numbers agree within 1e-9 relative; a recorded infinity may be null. What a
/// function does in words, and the row numbers of graphite-web's database, are not compared.
pub fn difference(want: &Value, got: &Value, path: &str) -> Option<String> {
    match (want, got) {
        (Value::String(w), Value::Null) if matches!(w.as_str(), "Infinity" | "-Infinity" | "NaN") => None,
        (Value::Number(w), Value::Number(g)) => {
            let (w, g) = (w.as_f64()?, g.as_f64()?);
            let close = (w - g).abs() <= 1e-12_f64.max(1e-9 * w.abs().max(g.abs()));
            if close { None } else { Some(format!("{path}: want {w} got {g}")) }
        }
        (Value::Array(w), Value::Array(g)) => {
            let inner = w.iter().zip(g).enumerate().find_map(|(i, (w, g))| difference(w, g, &format!("{path}[{i}]")));
            inner.or_else(|| (w.len() != g.len()).then(|| format!("{path}: want {} items got {}", w.len(), g.len())))
        }
        (Value::Object(w), Value::Object(g)) => {
            let ignored = |key: &str| {
                (key == "description" && path.starts_with("/functions")) || (key == "id" && path.starts_with("/tags"))
            };
            for (key, value) in w.iter().filter(|(key, _)| !ignored(key)) {
                match g.get(key) {
                    None => return Some(format!("{path}.{key}: missing")),
                    Some(other) => {
                        if let Some(d) = difference(value, other, &format!("{path}.{key}")) {
                            return Some(d);
                        }
                    }
                }
            }
            let extra: Vec<_> = g.keys().filter(|k| !w.contains_key(*k) && !ignored(k)).collect();
            (!extra.is_empty()).then(|| format!("{path}: extra {extra:?}"))
        }
        (w, g) if w == g => None,
        (w, g) => {
            let short = |v: &Value| v.to_string().chars().take(160).collect::<String>();
            Some(format!("{path}: want {} got {}", short(w), short(g)))
        }
    }
}

/// What a server answered over HTTP.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("an answer in UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }
}

/// What the status says alone: a judgement, or that the rest of the answer has to be looked at.
fn judge_status(case: &Value, answer: &HttpAnswer) -> ControlFlow<Option<String>> {
    let want = case["status"].as_u64().expect("a status") as u16;
    let status = answer.status;
    match want {
        // An accident of graphite-web's: a good answer is right, and so is the client's mistake.
        500 => ControlFlow::Break((status >= 500).then(|| format!("status {status}"))),
        404 | 405 => {
            ControlFlow::Break((!(400..500).contains(&status)).then(|| format!("status {status}, want a 4xx")))
        }
        _ if want != status => {
            ControlFlow::Break(Some(format!("status {status}, want {want}: {}", String::from_utf8_lossy(&answer.body))))
        }
        200 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(None),
    }
}

/// `None` when a server's answer to a recorded case (not to a render) is right, else what is wrong.
pub fn judge(case: &Value, answer: &HttpAnswer) -> Option<String> {
    if let ControlFlow::Break(judged) = judge_status(case, answer) {
        return judged;
    }
    for (name, value) in case["resp_headers"].as_object().into_iter().flatten() {
        if answer.header(name) != value.as_str() {
            return Some(format!("header {name}: want {value} got {:?}", answer.header(name)));
        }
    }
    if let Some(text) = case["body_text"].as_str()
        && !text.contains("\"id\"")
        && text.as_bytes() != answer.body
    {
        return Some(format!("text: want {text} got {}", String::from_utf8_lossy(&answer.body)));
    }
    let mut want = case["body"].clone();
    let format = case["params"].as_array().and_then(|p| p.iter().rev().find(|p| p[0] == "format"));
    let limits = Limits::default();
    let mut got = match format.and_then(|format| format[1].as_str()) {
        Some("pickle") => nodes(&pickle::read_find(&answer.body, &limits).expect("a pickle")),
        Some("msgpack") => nodes(&msgpack::read_find(&answer.body, &limits).expect("MessagePack")),
        _ if want.is_string() && case["content_type"] != "application/json" => {
            Value::from(String::from_utf8_lossy(&answer.body))
        }
        _ => match serde_json::from_str(&String::from_utf8_lossy(&answer.body).replace("1e9999", "\"Infinity\"")) {
            Ok(value) => value,
            Err(error) => return Some(format!("{error}: {}", String::from_utf8_lossy(&answer.body))),
        },
    };
    plain_intervals(&mut want);
    if case["unordered"] == true {
        sort(&mut want);
        sort(&mut got);
    }
    difference(&want, &got, case["endpoint"].as_str().unwrap_or_default())
}

/// `None` when a server's answer to a recorded render is right, else what is wrong.
pub fn judge_render(case: &Value, answer: &HttpAnswer) -> Option<String> {
    if let ControlFlow::Break(judged) = judge_status(case, answer) {
        return judged;
    }
    if answer.header("content-type") != case["content_type"].as_str() {
        return Some(format!("content type {:?}, want {}", answer.header("content-type"), case["content_type"]));
    }
    let want = &case["body"];
    if want["binary"] == true {
        let magic: &[&[u8]] = match case["content_type"].as_str() {
            Some("image/png") => &[b"\x89PNG\r\n\x1a\n"],
            Some("image/svg+xml") => &[b"<?xml", b"<svg"],
            _ => &[b"%PDF"],
        };
        return (!magic.iter().any(|m| answer.body.starts_with(m))).then(|| "not such a picture".to_owned());
    }
    if let Some(text) = want.as_str() {
        return text_difference(text, &String::from_utf8_lossy(&answer.body));
    }
    let got: Result<Value, String> = match case["content_type"].as_str() {
        Some("application/pickle") => {
            serde_pickle::from_slice(&answer.body, serde_pickle::DeOptions::new()).map_err(|e| e.to_string())
        }
        Some("application/x-msgpack") => rmp_serde::from_slice(&answer.body).map_err(|e| e.to_string()),
        _ => serde_json::from_slice(&answer.body).map_err(|e| e.to_string()),
    };
    match got {
        Ok(got) => difference(want, &got, ""),
        Err(error) => Some(format!("{error}: {}", String::from_utf8_lossy(&answer.body))),
    }
}

/// Texts are equal when their words are and their numbers agree.
fn text_difference(want: &str, got: &str) -> Option<String> {
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?").expect("a valid expression"));
    let parts = |text: &str| {
        let text = text.replace("\r\n", "\n");
        let numbers: Vec<f64> = NUMBER.find_iter(&text).filter_map(|n| n.as_str().parse().ok()).collect();
        (NUMBER.replace_all(&text, "#").into_owned(), numbers)
    };
    let ((want_words, want_numbers), (got_words, got_numbers)) = (parts(want), parts(got));
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12_f64.max(1e-9 * a.abs().max(b.abs()));
    let same = want_words == got_words
        && want_numbers.len() == got_numbers.len()
        && want_numbers.iter().zip(&got_numbers).all(close);
    let short = |text: &str| text.chars().take(160).collect::<String>();
    (!same).then(|| format!("text: want {} got {}", short(want), short(got)))
}

fn nodes(nodes: &[FoundNode]) -> Value {
    let node = |node: &FoundNode| match node.interval {
        Some((first, last)) => json!({"path": node.path, "is_leaf": node.leaf, "intervals": [[first, last]]}),
        None => json!({"path": node.path, "is_leaf": node.leaf}),
    };
    nodes.iter().map(node).collect()
}

/// graphite-web's class of intervals, which not all versions of it have, is read as the list that it holds.
fn plain_intervals(value: &mut Value) {
    for node in value.as_array_mut().into_iter().flatten() {
        if let Some(set) = node.get_mut("intervals").and_then(|i| i.get_mut("IntervalSet")).map(Value::take) {
            node["intervals"] = set;
        }
    }
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(list) => list.sort_by_cached_key(ToString::to_string),
        Value::Object(map) => map.values_mut().filter(|v| v.is_array()).for_each(sort),
        _ => {}
    }
}
