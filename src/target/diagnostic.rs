//! Errors that point at a place of the target.

use std::fmt::Write as _;

use super::Span;

/// What is wrong with a target. Stable: shown to users and matched by tests; never reused for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// It is not of the language.
    Syntax,
    /// Longer than a target may be.
    TooLong,
    /// Nested deeper than a target may be.
    TooDeep,
    /// No function has this name.
    UnknownFunction,
    /// The function has no parameter of this name.
    UnknownArgument,
    /// More arguments than the function takes.
    TooManyArguments,
    /// A required argument is not there.
    MissingArgument,
    /// An argument is given twice.
    RepeatedArgument,
    /// A value of the wrong kind, or one that the parameter does not accept.
    BadArgument,
    /// `template(..)` is not used as it can be.
    BadTemplate,
    /// A pattern or tag query that cannot be read.
    BadPattern,
    /// The function cannot be applied to these series.
    Evaluation,
}

impl Code {
    /// Its stable spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::TooLong => "too-long",
            Self::TooDeep => "too-deep",
            Self::UnknownFunction => "unknown-function",
            Self::UnknownArgument => "unknown-argument",
            Self::TooManyArguments => "too-many-arguments",
            Self::MissingArgument => "missing-argument",
            Self::RepeatedArgument => "repeated-argument",
            Self::BadArgument => "bad-argument",
            Self::BadTemplate => "bad-template",
            Self::BadPattern => "bad-pattern",
            Self::Evaluation => "evaluation",
        }
    }
}

/// An error in a target: what, where, and what to do about it. [`Diagnostic::render`] is what users see.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Diagnostic {
    /// Stable code.
    pub code: Code,
    /// Where in the target.
    pub span: Span,
    /// One line: what is wrong.
    pub message: String,
    /// What would be right, when that is known.
    pub help: Option<String>,
}

/// Most characters of a target that are shown around the place of an error.
const WINDOW: usize = 100;

impl Diagnostic {
    /// An error without advice.
    #[must_use]
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: None }
    }

    /// With advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The text for users: the message with its advice on the first line (that line alone makes sense), then the
    /// target, cut around the place, with carets under it.
    #[must_use]
    pub fn render(&self, target: &str) -> String {
        let mut out = single_line(&self.message);
        if let Some(help) = &self.help {
            let _ = write!(out, "; {}", single_line(help));
        }
        let start = floor_boundary(target, self.span.start);
        let end = floor_boundary(target, self.span.end.max(start));
        // Newlines and control characters of the target would move the carets; each becomes one space.
        let clean = |s: &str| s.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<Vec<char>>();
        let (before, place, after) = (clean(&target[..start]), clean(&target[start..end]), clean(&target[end..]));
        let place = if place.len() > WINDOW { &place[..WINDOW] } else { &place[..] };
        let room = WINDOW.saturating_sub(place.len());
        let cut_before = before.len().saturating_sub(room.max(WINDOW / 3));
        let keep_after = after.len().min(room.saturating_sub(before.len() - cut_before).max(WINDOW / 4));
        let dots = |cut: bool| if cut { "…" } else { "" };
        let lead: String = dots(cut_before > 0).chars().chain(before[cut_before..].iter().copied()).collect();
        let _ = write!(
            out,
            "\n  | {lead}{}{}{}",
            place.iter().collect::<String>(),
            after[..keep_after].iter().collect::<String>(),
            dots(keep_after < after.len()),
        );
        let _ = write!(out, "\n  | {}{}", " ".repeat(lead.chars().count()), "^".repeat(place.len().max(1)));
        out
    }
}

fn single_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}
