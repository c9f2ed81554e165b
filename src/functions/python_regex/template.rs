//! Replacement templates.

use super::chars::{Chars, Number, control};
use super::{Failure, Found, MAX_REPLACED_BYTES, Pattern, failure};

/// A replacement: Python's second argument of `sub`.
#[derive(Debug)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(String),
    Group(usize),
}

impl Template {
    /// # Errors
    /// An escape that Python does not know, or a group that `pattern` does not have.
    pub fn new(template: &str, pattern: &Pattern) -> Result<Self, Failure> {
        let mut pieces = Pieces::default();
        let mut rest = Chars::new(template);
        while let Some(c) = rest.next() {
            if c != '\\' {
                pieces.text(c);
                continue;
            }
            match rest.next() {
                None => return Err(failure("it ends with a single backslash")),
                Some('g') => {
                    let name = rest.until('<', '>').ok_or_else(|| failure(r"`\g` must be followed by `<name>`"))?;
                    pieces.group(pattern.group(&name)?);
                }
                Some('0') => pieces.text(rest.octal(0, 2)?),
                Some(digit) if digit.is_ascii_digit() => match rest.group_or_octal(digit)? {
                    Number::Octal(c) => pieces.text(c),
                    Number::Group(n) => pieces.group(pattern.group(&n.to_string())?),
                },
                Some(letter) if letter.is_ascii_alphabetic() => match control(letter) {
                    Some(c) => pieces.text(c),
                    None if letter == 'b' => pieces.text('\u{8}'),
                    None => return Err(failure(format!("`\\{letter}` is not an escape"))),
                },
                Some('\\') => pieces.text('\\'),
                Some(other) => {
                    pieces.text('\\');
                    pieces.text(other);
                }
            }
        }
        Ok(Self(pieces.0))
    }

    pub(super) fn length_hint(&self) -> usize {
        self.0.iter().map(|p| if let Piece::Text(t) = p { t.len() } else { 0 }).sum()
    }

    /// Stops when `out` is longer than it may become.
    pub(super) fn write(&self, text: &str, groups: &Found, out: &mut String) {
        for piece in &self.0 {
            if out.len() > MAX_REPLACED_BYTES {
                return;
            }
            match piece {
                Piece::Text(t) => out.push_str(t),
                // A group that took no part is nothing.
                Piece::Group(n) => out.push_str(groups.get(*n).cloned().flatten().map_or("", |range| &text[range])),
            }
        }
    }
}

#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn text(&mut self, c: char) {
        match self.0.last_mut() {
            Some(Piece::Text(t)) => t.push(c),
            _ => self.0.push(Piece::Text(c.into())),
        }
    }

    fn group(&mut self, n: usize) {
        self.0.push(Piece::Group(n));
    }
}
