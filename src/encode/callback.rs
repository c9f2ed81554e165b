//! The name that a JSONP answer calls. It comes from the client and goes into a script, so it is checked.

/// A dotted JavaScript name, such as `jQuery123_456` or `app.show`; or empty, which graphite-web answers with bare
/// parentheses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Callback(String);

/// A callback that is refused, because a page would run more than a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`jsonp` must be a JavaScript name of letters, digits, `_`, `$` and dots")]
pub struct CallbackError;

impl Callback {
    /// # Errors
    /// The text is no such name: letters, digits, `_`, `$` and dots, the first no digit and no dot.
    pub fn new(name: &str) -> Result<Self, CallbackError> {
        let plain = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$');
        let first = name.bytes().next().is_none_or(plain);
        let rest = name.bytes().all(|b| plain(b) || b.is_ascii_digit() || b == b'.');
        if first && rest { Ok(Self(name.to_owned())) } else { Err(CallbackError) }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_called() {
        for name in ["cb", "jQuery1720_1699999200", "$.ajax.done", "_", "a.b", ""] {
            assert_eq!(Callback::new(name).expect("a name").as_str(), name);
        }
        for name in ["alert(1)//", "a.b[0]<x>", "1a", ".a", "a b", "a;b", "é", "a\n"] {
            assert_eq!(Callback::new(name), Err(CallbackError), "{name}");
        }
    }
}
