//! The target language: text to syntax tree.
//!
//! Knows nothing of which functions exist; the binder checks names and arguments. Every part of the tree carries the
//! [`Span`] of text that it came from, and every error is a [`Diagnostic`] that points at one. Text is refused by
//! length and nesting before the grammar sees it, so the tree is never deeper than [`MAX_DEPTH`] and everything that
//! walks it may recurse.

mod diagnostic;
mod parser;

use std::sync::Arc;

pub use diagnostic::{Code, Diagnostic};
pub use parser::parse;

/// The longest target, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;
/// The deepest nesting of calls, pipes included.
pub const MAX_DEPTH: usize = 128;

/// A part of a target, in bytes; `start <= end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

impl Span {
    /// The text that this covers.
    #[must_use]
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: ExprKind,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A path with its globs and escapes as written.
    Path(Arc<str>),
    /// A call; `a|f(x)` is the call `f(a,x)`.
    Call(Call),
    /// A whole number.
    Integer(i64),
    /// A number with a point or an exponent, a whole one too large for 64 bits, or `inf`.
    Float(f64),
    /// What stood between quotes, unchanged.
    Text(Arc<str>),
    /// `true` or `false`, in any case.
    Boolean(bool),
    /// `None`, in any case.
    None,
}

/// A function call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name as written.
    pub name: Arc<str>,
    /// Where the name stands.
    pub name_span: Span,
    /// The call as written, without what was piped into it. For `seriesByTag` it is the path expression.
    pub raw: Arc<str>,
    /// Arguments in order; a piped value is the first.
    pub arguments: Vec<Argument>,
}

/// One argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The name in `name=value`, with its place.
    pub keyword: Option<(Arc<str>, Span)>,
    /// The value.
    pub value: Expr,
}
