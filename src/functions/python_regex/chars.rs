//! Reading a pattern or template from left to right, and the escapes that both know.

use super::{Failure, failure};

pub(super) enum Number {
    Octal(char),
    Group(usize),
}

/// The letters that stand for control characters everywhere.
pub(super) fn control(letter: char) -> Option<char> {
    Some(match letter {
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        _ => return None,
    })
}

/// The rest of a text.
pub(super) struct Chars<'a>(&'a str);

impl<'a> Chars<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.0.chars().next()?;
        self.0 = &self.0[c.len_utf8()..];
        Some(c)
    }

    pub(super) fn starts_with(&self, c: char) -> bool {
        self.0.starts_with(c)
    }

    pub(super) fn starts_with_both(&self, first: char, second: char) -> bool {
        self.0.strip_prefix(first).is_some_and(|rest| rest.starts_with(second))
    }

    pub(super) fn take(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// What stands before the next `end`, which is consumed too; not nothing.
    pub(super) fn through(&mut self, end: char) -> Option<String> {
        let (inner, rest) = self.0.split_once(end)?;
        self.0 = rest;
        (!inner.is_empty()).then(|| inner.to_owned())
    }

    /// What stands between `start` and `end`, when `start` comes next; not nothing.
    pub(super) fn until(&mut self, start: char, end: char) -> Option<String> {
        if self.take(start) { self.through(end) } else { None }
    }

    pub(super) fn digit(&mut self, radix: u32) -> Option<u32> {
        let digit = self.0.chars().next().filter(char::is_ascii)?.to_digit(radix)?;
        self.next();
        Some(digit)
    }

    /// Up to `more` octal digits after those that make `start`.
    pub(super) fn octal(&mut self, start: u32, more: u32) -> Result<char, Failure> {
        let mut code = start;
        for _ in 0..more {
            let Some(digit) = self.digit(8) else { break };
            code = code * 8 + digit;
        }
        char::from_u32(code)
            .filter(|_| code <= 0o377)
            .ok_or_else(|| failure(format!("`\\{code:o}` is not an octal escape")))
    }

    /// What `\1`… means: `\` and three octal digits are a character, else one or two digits are a group. `first` has
    /// been read.
    pub(super) fn group_or_octal(&mut self, first: char) -> Result<Number, Failure> {
        let first = first.to_digit(10).unwrap_or_default();
        let mut ahead = self.0.chars().map_while(|c| c.is_ascii().then_some(c)?.to_digit(10));
        let (second, third) = (ahead.next(), ahead.next());
        if first < 8 && second.is_some_and(|d| d < 8) && third.is_some_and(|d| d < 8) {
            return self.octal(first, 2).map(Number::Octal);
        }
        let Some(second) = second else { return Ok(Number::Group(first as usize)) };
        self.next();
        Ok(Number::Group((first * 10 + second) as usize))
    }

    pub(super) fn hexadecimal(&mut self, digits: u32) -> Option<u32> {
        let mut code: u32 = 0;
        for _ in 0..digits {
            code = code.checked_mul(16)? + self.digit(16)?;
        }
        Some(code)
    }

    /// `{m}`, `{m,}`, `{,n}`, `{m,n}` or `{,}` after its `{`; nothing is consumed when it is something else.
    pub(super) fn count(&mut self) -> Option<(Option<u32>, Option<u32>)> {
        let (inner, rest) = self.0.split_once('}')?;
        let number = |text: &str| -> Option<Option<u32>> {
            if text.is_empty() {
                return Some(None);
            }
            // A count beyond every limit is refused as too large when it is compiled.
            text.bytes().all(|b| b.is_ascii_digit()).then(|| Some(text.parse().unwrap_or(u32::MAX)))
        };
        let counts = match inner.split_once(',') {
            Some((least, most)) => (number(least)?, number(most)?),
            None => {
                let exact = number(inner)??;
                (Some(exact), Some(exact))
            }
        };
        self.0 = rest;
        Some(counts)
    }
}
