//! Scalar arguments of functions, as they stand in a target.

use std::sync::Arc;

use crate::series::float_repr;

/// Floats have all whole numbers up to this.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A scalar argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A quoted string.
    Text(Arc<str>),
}

impl Value {
    /// As Python's `str()` shows it: names and tags of results hold arguments in this form.
    #[must_use]
    pub fn python_str(&self) -> String {
        match self {
            Self::None => "None".into(),
            Self::Boolean(true) => "True".into(),
            Self::Boolean(false) => "False".into(),
            Self::Integer(n) => n.to_string(),
            Self::Float(n) => float_repr(*n),
            Self::Text(t) => t.to_string(),
        }
    }

    /// The number that this is or that its text says, as Python's `float()` reads it.
    #[must_use]
    pub fn to_float(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Boolean(b) => Some(f64::from(u8::from(*b))),
            Self::Integer(n) => Some(*n as f64),
            Self::Float(n) => Some(*n),
            Self::Text(t) => t.trim().parse().ok(),
        }
    }

    /// The whole number that this is or that its text says. A float is none, even when it is whole.
    #[must_use]
    pub fn to_integer(&self) -> Option<i64> {
        match self {
            Self::None | Self::Float(_) => None,
            Self::Boolean(b) => Some(i64::from(*b)),
            Self::Integer(n) => Some(*n),
            Self::Text(t) => t.trim().parse().ok(),
        }
    }

    /// The same, or a float that is whole: what a template puts in place of `$n` is one, also where `n="5"` was given.
    #[must_use]
    pub fn to_whole(&self) -> Option<i64> {
        match self {
            Self::Float(n) if n.fract() == 0.0 && n.abs() <= EXACT => Some(*n as i64),
            other => other.to_integer(),
        }
    }

    /// The boolean that this is or says: `true`/`false` in any case, 1/0.
    #[must_use]
    pub fn to_boolean(&self) -> Option<bool> {
        match self {
            Self::Boolean(b) => Some(*b),
            Self::Integer(0) => Some(false),
            Self::Integer(1) => Some(true),
            Self::Float(n) if *n == 0.0 => Some(false),
            Self::Float(n) if *n == 1.0 => Some(true),
            Self::Text(t) if t.eq_ignore_ascii_case("true") => Some(true),
            Self::Text(t) if t.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }

    /// The text, when it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&Arc<str>> {
        if let Self::Text(t) = self { Some(t) } else { None }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(t) => write!(f, "\"{t}\""),
            other => f.write_str(&other.python_str()),
        }
    }
}
