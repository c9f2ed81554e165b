//! What all codecs share: bounds, errors, a cursor over bytes, and the series of an answer before it is known who
//! asked for them.
//!
//! It keeps one invariant: an [`Answered`] series has a name, a step of at least a second and timestamps that can be
//! computed with, whatever a backend sent.

use std::borrow::Cow;
use std::sync::Arc;

use crate::series::{Consolidation, Series, Step};

/// What a decoder takes at most. Bytes are bounded by whoever reads the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Series, or found nodes, or names.
    pub entries: usize,
    /// Points of all series together.
    pub points: usize,
}

impl Default for Limits {
    /// A million entries and 64 million points (512 MB in memory).
    fn default() -> Self {
        Self { entries: 1_000_000, points: 64_000_000 }
    }
}

/// Why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// It is not what was asked for: truncated, of another format, or of a shape that makes no sense.
    #[error("{0}")]
    Garbled(Cow<'static, str>),
    /// It holds more than [`Limits`] allow.
    #[error("more than {limit} {unit}")]
    TooLarge {
        /// The limit.
        limit: usize,
        /// What is counted.
        unit: &'static str,
    },
}

impl CodecError {
    /// A body that cannot be read, with the reason.
    pub fn garbled(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Garbled(reason.into())
    }
}

impl Limits {
    pub(super) fn check_entries(&self, entries: usize) -> Result<(), CodecError> {
        if entries > self.entries {
            return Err(CodecError::TooLarge { limit: self.entries, unit: "series" });
        }
        Ok(())
    }

    pub(super) fn too_many_points(&self) -> CodecError {
        CodecError::TooLarge { limit: self.points, unit: "points" }
    }
}

/// One series of an answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Its name.
    pub name: Arc<str>,
    /// The pattern that it answers, when the backend says so.
    pub path_expression: Option<Arc<str>>,
    /// The range that was asked, when the backend says so: `from` and `until`.
    pub asked: Option<(i64, i64)>,
    /// How its points are to be joined, when the backend says more than "as usual".
    pub consolidation: Consolidation,
    start: i64,
    step: Step,
    values: Arc<Vec<f64>>,
}

/// No timestamp is further from 1970 than this, in seconds (the year 9999).
const FAR: i64 = 253_402_300_800;

impl Answered {
    /// Checks what a backend said of a series. The end is computed from the values; a stated one is only checked.
    ///
    /// # Errors
    /// No name, a step that is not in `1..=u32::MAX`, an end before the start, timestamps beyond the year 9999.
    pub fn new(
        name: Arc<str>,
        path_expression: Option<Arc<str>>,
        (start, end, step): (i64, Option<i64>, i64),
        values: Arc<Vec<f64>>,
    ) -> Result<Self, CodecError> {
        let garbled = |what: String| {
            let short: String = name.chars().take(100).collect();
            Err(CodecError::garbled(format!("series `{short}` has {what}")))
        };
        if name.is_empty() {
            return Err(CodecError::garbled("a series has no name"));
        }
        let Some(valid_step) = Step::new(step) else {
            return garbled(format!("a step of {step}"));
        };
        if end.is_some_and(|end| end < start) {
            return garbled("an end before its start".to_owned());
        }
        let computed = i64::try_from(values.len()).ok().and_then(|n| n.checked_mul(step)?.checked_add(start));
        match computed {
            Some(end) if start >= -FAR && end <= FAR => {}
            _ => return garbled("timestamps that are not on any calendar".to_owned()),
        }
        let consolidation = Consolidation::default();
        Ok(Self { name, path_expression, asked: None, consolidation, start, step: valid_step, values })
    }

    /// As a series; the values stay shared.
    #[must_use]
    pub fn series(&self) -> Series {
        let mut series = Series::sharing(self.name.clone(), self.start, self.step, self.values.clone());
        series.consolidation = self.consolidation.clone();
        series
    }

    /// Number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// A position in bytes that are read from front to back; running off their end is an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn truncated() -> CodecError {
        CodecError::garbled("it ends too early")
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn peek(&self) -> Result<u8, CodecError> {
        self.bytes.get(self.at).copied().ok_or_else(Self::truncated)
    }

    pub(super) fn byte(&mut self) -> Result<u8, CodecError> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let array = self.bytes[self.at..].first_chunk::<N>().ok_or_else(Self::truncated)?;
        self.at += N;
        Ok(*array)
    }

    /// The next `n` bytes; `n` may be any number that the input claims.
    pub(super) fn take(&mut self, n: u64) -> Result<&'a [u8], CodecError> {
        let n = usize::try_from(n).map_err(|_| Self::truncated())?;
        let taken = self.bytes[self.at..].get(..n).ok_or_else(Self::truncated)?;
        self.at += n;
        Ok(taken)
    }

    /// The bytes up to the next line feed, which is skipped.
    pub(super) fn line(&mut self) -> Result<&'a [u8], CodecError> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| *b == b'\n').ok_or_else(Self::truncated)?;
        self.at += end + 1;
        Ok(&rest[..end])
    }
}

/// A whole number of a wire format that has floats too (`1.0` is a step in Python).
pub(super) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}

/// The second of a timestamp that may have a fraction, as the intervals of a find answer do.
pub(super) fn second(value: f64) -> Option<i64> {
    (value.abs() < 9e15).then_some(value.floor() as i64)
}

/// Text of a backend: names are not always UTF-8, and a series with a strange name is better than none.
pub(super) fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

/// The interval that is written for a leaf of unknown interval: one that no query is outside of, and that fits in
/// the 32 bits of old readers.
pub const ALWAYS: (i64, i64) = (0, i32::MAX as i64);

/// An interval that covers `all` so far and one more.
pub(super) fn joined(all: Option<(i64, i64)>, (first, last): (i64, i64)) -> (i64, i64) {
    let (from, until) = all.unwrap_or((first, last));
    (from.min(first), until.max(last))
}

/// What a body that cannot be read seems to be, to help whoever reads the error.
pub(super) fn looks_like(body: &[u8]) -> Option<&'static str> {
    let start = body.trim_ascii_start();
    let html = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
    if html(b"<!doctype html") || html(b"<html") || html(b"<head") || html(b"<body") {
        return Some("it looks like an HTML page");
    }
    if body.starts_with(b"\x89PNG") {
        return Some("it is an image: the backend does not know this format");
    }
    if body.is_empty() {
        return Some("it is empty");
    }
    None
}
