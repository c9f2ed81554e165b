//! Reading TOML so that every mistake is found at once, each with its place and advice.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One mistake in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// The key with the tables around it, such as `group[0].timeout`; empty for the file as a whole.
    pub key: String,
    /// What is wrong and what would be right. One line.
    pub message: String,
}

/// Collects mistakes and, for the test of the documentation, the keys that are known.
pub(super) struct Findings<'a> {
    text: &'a str,
    pub mistakes: RefCell<Vec<Mistake>>,
    pub known: RefCell<BTreeSet<String>>,
}

impl<'a> Findings<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, mistakes: RefCell::default(), known: RefCell::default() }
    }

    pub fn add(&self, at: usize, key: &str, message: impl Into<String>) {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        self.mistakes.borrow_mut().push(Mistake { line, key: key.to_owned(), message: message.into() });
    }
}

/// A table that is being read. Keys that were never asked for are mistakes; [`Section::finish`] reports them.
pub(super) struct Section<'a> {
    findings: &'a Findings<'a>,
    table: &'a DeTable<'a>,
    /// Where the table starts, for keys that are missing.
    at: usize,
    /// Path for messages: `group[0]`.
    path: String,
    /// Path for documentation: `group`.
    kind: String,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Section<'a> {
    pub fn root(findings: &'a Findings<'a>, table: &'a Spanned<DeTable<'a>>) -> Self {
        let (path, kind) = (String::new(), String::new());
        Self { findings, table: table.get_ref(), at: table.span().start, path, kind, asked: RefCell::default() }
    }

    fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn get(&self, name: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.borrow_mut().insert(name);
        let documented = if self.kind.is_empty() { name.to_owned() } else { format!("{}.{name}", self.kind) };
        self.findings.known.borrow_mut().insert(documented);
        self.table.iter().find(|(k, _)| k.get_ref() == name).map(|(_, v)| v)
    }

    /// A mistake about one of this table's keys.
    pub fn mistake(&self, name: &'static str, message: impl Into<String>) {
        let at = self.table.iter().find(|(k, _)| k.get_ref() == name).map_or(self.at, |(_, v)| v.span().start);
        self.findings.add(at, &self.key(name), message);
    }

    pub fn has(&self, name: &'static str) -> bool {
        self.get(name).is_some()
    }

    fn read<T>(&self, name: &'static str, expected: &str, read: impl Fn(&DeValue<'a>) -> Option<T>) -> Option<T> {
        let value = self.get(name)?;
        let result = read(value.get_ref());
        if result.is_none() {
            self.findings.add(value.span().start, &self.key(name), format!("expected {expected}"));
        }
        result
    }

    pub fn string(&self, name: &'static str) -> Option<String> {
        self.read(name, "a string in quotes", |v| v.as_str().map(str::to_owned))
    }

    /// A string that is one of `choices`.
    pub fn choice(&self, name: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        let given = self.string(name)?;
        let found = choices.iter().copied().find(|c| *c == given);
        if found.is_none() {
            let near =
                nearest(&given, choices.iter().copied()).map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
            let listed: Vec<_> = choices.iter().map(|c| format!("\"{c}\"")).collect();
            self.mistake(name, format!("\"{given}\" is not one of {}{near}", listed.join(", ")));
        }
        found
    }

    pub fn boolean(&self, name: &'static str) -> Option<bool> {
        self.read(name, "true or false", DeValue::as_bool)
    }

    pub fn integer(&self, name: &'static str, least: u64) -> Option<u64> {
        let expected =
            if least == 0 { "a whole number".to_owned() } else { format!("a whole number, at least {least}") };
        self.read(name, &expected, |v| integer(v).filter(|n| *n >= least))
    }

    pub fn fraction(&self, name: &'static str) -> Option<f64> {
        self.read(name, "a number from 0 to 1", |v| {
            let number = match v {
                DeValue::Float(f) => f.as_str().parse().ok(),
                other => integer(other).map(|n| n as f64),
            };
            number.filter(|n: &f64| (0.0..=1.0).contains(n))
        })
    }

    /// A length of time: `"10s"`, `"250ms"`, `"5min"`, `"1h"`, `"1d"`; `0` is zero.
    pub fn duration(&self, name: &'static str) -> Option<Duration> {
        self.read(name, "a length of time such as \"10s\", \"250ms\", \"5min\" or \"1h\"", |v| match v {
            DeValue::String(text) => duration(text),
            other => integer(other).filter(|n| *n == 0).map(|_| Duration::ZERO),
        })
    }

    /// A number of bytes: `"256MB"`, `"1GiB"`, or a plain number.
    pub fn bytes(&self, name: &'static str) -> Option<u64> {
        self.read(name, "a number of bytes such as \"256MB\" or \"1GiB\"", |v| match v {
            DeValue::String(text) => bytes(text),
            other => integer(other),
        })
    }

    /// As [`Section::duration`], but not 0, where nothing would be done in time.
    pub fn positive(&self, name: &'static str) -> Option<Duration> {
        let read = self.duration(name);
        self.above_0(name, "a length of time", read, Duration::is_zero)
    }

    /// As [`Section::bytes`], but not 0, where nothing would be small enough.
    pub fn size(&self, name: &'static str) -> Option<u64> {
        let read = self.bytes(name);
        self.above_0(name, "a number of bytes", read, |bytes| *bytes == 0)
    }

    fn above_0<T>(&self, name: &'static str, what: &str, read: Option<T>, is_0: impl Fn(&T) -> bool) -> Option<T> {
        if read.as_ref().is_some_and(is_0) {
            self.mistake(name, format!("expected {what} above 0"));
        }
        read
    }

    pub fn strings(&self, name: &'static str) -> Option<Vec<String>> {
        self.read(name, "a list of strings", |v| {
            v.as_array()?.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        })
    }

    /// A table below this one, read by `read` when it is there or not (its keys have defaults).
    pub fn table<T>(&self, name: &'static str, read: impl FnOnce(&Section<'a>) -> T, absent: impl FnOnce() -> T) -> T {
        let Some(value) = self.get(name) else { return absent() };
        let Some(table) = value.get_ref().as_table() else {
            self.findings.add(value.span().start, &self.key(name), "expected a table");
            return absent();
        };
        let section = self.below(table, value.span().start, self.key(name), name);
        let result = read(&section);
        section.finish();
        result
    }

    /// The tables of `[[name]]`.
    pub fn tables<T>(&self, name: &'static str, read: impl Fn(&Section<'a>) -> T) -> Vec<T> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            self.findings.add(value.span().start, &self.key(name), format!("expected tables, each under [[{name}]]"));
            return Vec::new();
        };
        let mut out = Vec::new();
        for (i, item) in list.iter().enumerate() {
            let path = format!("{}[{i}]", self.key(name));
            let Some(table) = item.get_ref().as_table() else {
                self.findings.add(item.span().start, &path, format!("expected a table under [[{name}]]"));
                continue;
            };
            let section = self.below(table, item.span().start, path, name);
            out.push(read(&section));
            section.finish();
        }
        out
    }

    fn below(&self, table: &'a DeTable<'a>, at: usize, path: String, name: &str) -> Section<'a> {
        let kind = if self.kind.is_empty() { name.to_owned() } else { format!("{}.{name}", self.kind) };
        Section { findings: self.findings, table, at, path, kind, asked: RefCell::default() }
    }

    /// Reports keys that nobody asked for.
    pub fn finish(&self) {
        let asked = self.asked.borrow();
        for (key, _) in self.table {
            if asked.contains(&**key.get_ref()) {
                continue;
            }
            let advice = match nearest(key.get_ref(), asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys here are {}", asked.iter().copied().collect::<Vec<_>>().join(", ")),
            };
            self.findings.add(key.span().start, &self.key(key.get_ref()), format!("unknown key; {advice}"));
        }
    }
}

fn integer(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(n) = value else { return None };
    u64::from_str_radix(n.as_str(), n.radix()).ok()
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..digits].parse().ok()?;
    Some((number, text[digits..].trim()))
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        "" if number == 0.0 => 1.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let bytes = number * factor as f64;
    (bytes < u64::MAX as f64).then_some(bytes as u64)
}

/// The candidate that a misspelt word most likely means.
pub(super) fn nearest<'n>(word: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |c: &str| strsim::damerau_levenshtein(&word.to_lowercase(), c);
    candidates.map(|c| (distance(c), c)).filter(|(d, c)| *d <= 1 + c.len().min(word.len()) / 3).min().map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_and_sizes() {
        assert_eq!(duration("10s"), Some(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("1.5min"), Some(Duration::from_secs(90)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        assert_eq!(duration("10"), None);
        assert_eq!(duration("10m"), None);
        assert_eq!(bytes("2MiB"), Some(2 << 20));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes("1 GB"), Some(1_000_000_000));
        assert_eq!(bytes("12 parsecs"), None);
    }
}
