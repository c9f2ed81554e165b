//! Python's syntax of patterns as that of the `regex` and `fancy-regex` crates.

use super::chars::{Chars, Number, control};
use super::{Failure, failure, too_large};

/// Groups may be nested so deep; the engines' own limits are near.
const MAX_DEPTH: usize = 50;
/// Stands for Python's `$` until it is known how it is matched. Not a character that is ever written as itself.
pub(super) const DOLLAR: &str = "\u{0}$";
/// Python's `$`, outside of multi-line mode.
pub(super) const DOLLAR_EXACT: &str = r"(?=\n?\z)";

/// A pattern in the engines' syntax.
pub(super) struct Translated {
    pub(super) text: String,
    pub(super) backtracks: bool,
    pub(super) prefers_nothing: bool,
    pub(super) names: Vec<(String, usize)>,
    pub(super) groups: usize,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    ascii: bool,
    multi_line: bool,
    verbose: bool,
}

struct Open {
    /// Where its translation begins.
    start: usize,
    /// Flags to return to at its end.
    outer: Flags,
    /// Its number, when it captures.
    number: Option<usize>,
    /// For `(?(1)…|…)` the number of branches so far.
    condition_branches: Option<u32>,
}

pub(super) struct Translator<'a> {
    pattern: &'a str,
    rest: Chars<'a>,
    out: String,
    /// Where the translation of what a count would repeat begins.
    atom: Option<usize>,
    /// The last thing was a count.
    counted: bool,
    flags: Flags,
    open: Vec<Open>,
    names: Vec<(String, usize)>,
    groups: usize,
    backtracks: bool,
    prefers_nothing: bool,
}

impl<'a> Translator<'a> {
    pub(super) fn new(pattern: &'a str) -> Self {
        Self {
            pattern,
            rest: Chars::new(pattern),
            out: String::with_capacity(pattern.len() + 16),
            atom: None,
            counted: false,
            flags: Flags::default(),
            open: Vec::new(),
            names: Vec::new(),
            groups: 0,
            backtracks: false,
            prefers_nothing: false,
        }
    }

    fn bad(&self, why: impl std::fmt::Display) -> Failure {
        let shown: String = self.pattern.chars().take(60).collect();
        failure(format!("\"{shown}\" is not a regular expression: {why}"))
    }

    pub(super) fn run(mut self) -> Result<Translated, Failure> {
        while let Some(c) = self.rest.next() {
            if self.flags.verbose && (c.is_ascii_whitespace() || c == '\u{b}') {
                continue;
            }
            match c {
                '#' if self.flags.verbose => while self.rest.next().is_some_and(|c| c != '\n') {},
                '\\' => self.escape()?,
                '[' => {
                    let class = self.class()?;
                    self.push_atom(&class);
                }
                '(' => self.group()?,
                ')' => self.close()?,
                '|' => {
                    if let Some(branches) = self.open.last_mut().and_then(|o| o.condition_branches.as_mut()) {
                        *branches += 1;
                        if *branches > 2 {
                            return Err(self.bad("a condition has more than two branches"));
                        }
                    }
                    self.prefers_nothing = true;
                    self.out.push('|');
                    self.no_atom();
                }
                '^' => {
                    let start = if self.flags.multi_line { "(?m:^)" } else { r"\A" };
                    self.push_assertion(start);
                }
                '$' => {
                    let end = if self.flags.multi_line { "(?m:$)" } else { DOLLAR };
                    self.push_assertion(end);
                }
                '.' => self.push_atom("."),
                '*' | '+' | '?' => self.count(&c.to_string())?,
                '{' => match self.rest.count() {
                    Some((least, most)) => {
                        if most.is_some_and(|m| least.unwrap_or(0) > m) {
                            return Err(self.bad("the least count is greater than the greatest"));
                        }
                        let text = match (least, most) {
                            (least, Some(most)) if least == Some(most) => format!("{{{most}}}"),
                            (least, Some(most)) => format!("{{{},{most}}}", least.unwrap_or(0)),
                            (least, None) => format!("{{{},}}", least.unwrap_or(0)),
                        };
                        self.count(&text)?;
                    }
                    None => self.push_atom(r"\{"),
                },
                other => {
                    let literal = literal(other);
                    self.push_atom(&literal);
                }
            }
        }
        if !self.open.is_empty() {
            return Err(self.bad("a `(` is not closed"));
        }
        Ok(Translated {
            text: self.out,
            backtracks: self.backtracks,
            prefers_nothing: self.prefers_nothing,
            names: self.names,
            groups: self.groups,
        })
    }

    fn push_atom(&mut self, text: &str) {
        self.atom = Some(self.out.len());
        self.counted = false;
        self.out.push_str(text);
    }

    fn push_assertion(&mut self, text: &str) {
        self.no_atom();
        self.out.push_str(text);
    }

    fn no_atom(&mut self) {
        self.atom = None;
        self.counted = false;
    }

    fn count(&mut self, text: &str) -> Result<(), Failure> {
        if self.counted {
            return Err(self.bad("a count follows a count"));
        }
        let Some(atom) = self.atom else { return Err(self.bad(format!("nothing stands before `{text}`"))) };
        self.out.push_str(text);
        if self.rest.take('?') {
            self.out.push('?');
            self.prefers_nothing = true;
        } else if self.rest.take('+') {
            self.out.insert_str(atom, "(?>");
            self.out.push(')');
            self.backtracks = true;
        }
        self.counted = true;
        Ok(())
    }

    fn group(&mut self) -> Result<(), Failure> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_large());
        }
        let mut open = Open { start: self.out.len(), outer: self.flags, number: None, condition_branches: None };
        if self.rest.take('?') {
            match self.rest.next() {
                Some(':') => self.out.push_str("(?:"),
                Some('P') => match self.rest.next() {
                    Some('<') => open.number = Some(self.named_group()?),
                    Some('=') => {
                        let name =
                            self.rest.through(')').ok_or_else(|| self.bad("the name of a group is not closed"))?;
                        let number = self.number_of(&name)?;
                        self.back_reference(number)?;
                        return Ok(());
                    }
                    _ => return Err(self.bad("`(?P` must be followed by `<` or `=`")),
                },
                Some('#') => {
                    self.rest.through(')').ok_or_else(|| self.bad("a comment is not closed"))?;
                    return Ok(());
                }
                Some('=') => self.look("(?="),
                Some('!') => self.look("(?!"),
                Some('>') => self.look("(?>"),
                Some('<') => match self.rest.next() {
                    Some('=') => self.look("(?<="),
                    Some('!') => self.look("(?<!"),
                    _ => return Err(self.bad("`(?<` must be followed by `=` or `!`")),
                },
                Some('(') => {
                    let name = self.rest.through(')').ok_or_else(|| self.bad("a condition is not closed"))?;
                    let number = if name.bytes().all(|b| b.is_ascii_digit()) {
                        name.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(|| self.no_group(&name))?
                    } else {
                        self.number_of(&name)?
                    };
                    self.look(&format!("(?({number})"));
                    open.condition_branches = Some(1);
                }
                Some(c) if c == '-' || c.is_ascii_alphabetic() => {
                    if !self.set_flags(c)? {
                        return Ok(());
                    }
                }
                _ => return Err(self.bad("`(?` must be followed by what kind of group it begins")),
            }
        } else {
            self.groups += 1;
            open.number = Some(self.groups);
            self.out.push('(');
        }
        self.no_atom();
        self.open.push(open);
        Ok(())
    }

    fn look(&mut self, opening: &str) {
        self.backtracks = true;
        self.out.push_str(opening);
    }

    fn named_group(&mut self) -> Result<usize, Failure> {
        let name = self.rest.through('>').ok_or_else(|| self.bad("the name of a group is not closed"))?;
        let mut chars = name.chars();
        let valid = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
            && chars.all(|c| c == '_' || c.is_alphanumeric());
        if !valid {
            return Err(self.bad(format!("`{name}` is not a name for a group")));
        }
        if self.names.iter().any(|(n, _)| *n == name) {
            return Err(self.bad(format!("two groups are named `{name}`")));
        }
        self.groups += 1;
        self.names.push((name, self.groups));
        self.out.push('(');
        Ok(self.groups)
    }

    /// `(?i)`, `(?s-i:`…; `first` has been read. Says whether a group begins.
    fn set_flags(&mut self, first: char) -> Result<bool, Failure> {
        let (mut next, mut on) = (Some(first), true);
        let (mut set, mut unset) = (String::new(), String::new());
        let outer = self.flags;
        loop {
            match next {
                Some('-') if on => on = false,
                Some('a') => self.flags.ascii = on,
                Some('u') => self.flags.ascii = !on,
                Some('m') => self.flags.multi_line = on,
                Some('x') => self.flags.verbose = on,
                Some(c @ ('i' | 's')) => if on { &mut set } else { &mut unset }.push(c),
                Some(end @ (':' | ')')) => {
                    if !unset.is_empty() {
                        set.push('-');
                        set.push_str(&unset);
                    }
                    if end == ':' {
                        self.out.extend(["(?", &set, ":"]);
                        // The caller has kept the flags from before.
                        return Ok(true);
                    }
                    if !set.is_empty() {
                        self.out.extend(["(?", &set, ")"]);
                    }
                    self.no_atom();
                    return Ok(false);
                }
                Some(c) => {
                    self.flags = outer;
                    return Err(self.bad(format!("`{c}` is not a flag")));
                }
                None => return Err(self.bad("flags are not closed")),
            }
            next = self.rest.next();
        }
    }

    fn close(&mut self) -> Result<(), Failure> {
        let Some(open) = self.open.pop() else { return Err(self.bad("a `)` closes nothing")) };
        self.out.push(')');
        self.flags = open.outer;
        self.atom = Some(open.start);
        self.counted = false;
        Ok(())
    }

    fn no_group(&self, name: &str) -> Failure {
        self.bad(format!("there is no group {name} before this place"))
    }

    fn number_of(&self, name: &str) -> Result<usize, Failure> {
        self.names.iter().find(|(n, _)| n == name).map(|(_, n)| *n).ok_or_else(|| self.no_group(name))
    }

    fn back_reference(&mut self, number: usize) -> Result<(), Failure> {
        if number > self.groups {
            return Err(self.no_group(&number.to_string()));
        }
        if self.open.iter().any(|o| o.number == Some(number)) {
            return Err(self.bad(format!("group {number} is referred to from within")));
        }
        self.backtracks = true;
        self.push_atom(&format!(r"(?:\{number})"));
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Failure> {
        let Some(c) = self.rest.next() else { return Err(self.bad("it ends with a single backslash")) };
        match c {
            'A' => self.push_assertion(r"\A"),
            'Z' => self.push_assertion(r"\z"),
            'b' => self.push_assertion(r"\b"),
            'B' => self.push_assertion(r"\B"),
            '1'..='9' => match self.rest.group_or_octal(c)? {
                Number::Octal(c) => self.push_atom(&literal(c)),
                Number::Group(n) => self.back_reference(n)?,
            },
            _ => match self.shorthand(c, false) {
                Some(class) => self.push_atom(class),
                None => {
                    let c = self.escaped(c)?;
                    self.push_atom(&literal(c));
                }
            },
        }
        Ok(())
    }

    /// `\d` and the like. Python's `\w` has fewer characters than the engines', its `\s` more.
    fn shorthand(&self, c: char, in_class: bool) -> Option<&'static str> {
        Some(match (c, self.flags.ascii) {
            ('d', false) => r"\d",
            ('D', false) => r"\D",
            ('d', true) => "[0-9]",
            ('D', true) => "[^0-9]",
            ('s', false) => r"[\s\x1C-\x1F]",
            ('S', false) => r"[^\s\x1C-\x1F]",
            ('s', true) => r"[ \t\n\r\x0C\x0B]",
            ('S', true) => r"[^ \t\n\r\x0C\x0B]",
            ('w', false) if in_class => r"\p{L}\p{N}_",
            ('w', false) => r"[\p{L}\p{N}_]",
            ('W', false) => r"[^\p{L}\p{N}_]",
            ('w', true) => "[0-9A-Za-z_]",
            ('W', true) => "[^0-9A-Za-z_]",
            _ => return None,
        })
    }

    /// The one character that an escape stands for; `c` follows the backslash.
    fn escaped(&mut self, c: char) -> Result<char, Failure> {
        let digits = match c {
            '0' => return self.rest.octal(0, 2),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ if !c.is_ascii_alphabetic() => return Ok(c),
            _ => return control(c).ok_or_else(|| self.bad(format!("`\\{c}` is not an escape"))),
        };
        let code = self.rest.hexadecimal(digits);
        code.and_then(char::from_u32).ok_or_else(|| self.bad(format!("`\\{c}` needs {digits} hexadecimal digits")))
    }

    /// A class; its `[` has been read.
    fn class(&mut self) -> Result<String, Failure> {
        let mut out = String::from("[");
        if self.rest.take('^') {
            out.push('^');
        }
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(|| self.bad("a `[` is not closed"))?;
            if c == ']' && !first {
                out.push(']');
                return Ok(out);
            }
            first = false;
            let low = self.class_item(c)?;
            // A `-` before the closing bracket is itself.
            if !self.rest.starts_with('-') || self.rest.starts_with_both('-', ']') {
                match low {
                    Item::Char(c) => out.push_str(&class_literal(c)),
                    Item::Shorthand(class) => out.push_str(class),
                }
                continue;
            }
            self.rest.next();
            let c = self.rest.next().ok_or_else(|| self.bad("a `[` is not closed"))?;
            let high = self.class_item(c)?;
            let (Item::Char(low), Item::Char(high)) = (low, high) else {
                return Err(self.bad("a range in a class has an end that is not one character"));
            };
            if low > high {
                return Err(self.bad(format!("`{low}-{high}` is not a range")));
            }
            out.push_str(&class_literal(low));
            out.push('-');
            out.push_str(&class_literal(high));
        }
    }

    fn class_item(&mut self, c: char) -> Result<Item, Failure> {
        if c != '\\' {
            return Ok(Item::Char(c));
        }
        let c = self.rest.next().ok_or_else(|| self.bad("a `[` is not closed"))?;
        if let Some(class) = self.shorthand(c, true) {
            return Ok(Item::Shorthand(class));
        }
        Ok(Item::Char(match c {
            'b' => '\u{8}',
            '0'..='7' => self.rest.octal(c.to_digit(8).unwrap_or_default(), 2)?,
            '8' | '9' => return Err(self.bad(format!("`\\{c}` is not an escape"))),
            _ => self.escaped(c)?,
        }))
    }
}

enum Item {
    Char(char),
    Shorthand(&'static str),
}

/// A character outside of a class that stands for itself.
fn literal(c: char) -> String {
    if c == '\0' {
        // Kept apart from the mark of `$`.
        return r"\x00".into();
    }
    let mut buffer = [0; 4];
    regex::escape(c.encode_utf8(&mut buffer))
}

/// A character in a class that stands for itself; the engines know set operations and nested classes.
fn class_literal(c: char) -> String {
    if c.is_ascii() && !c.is_ascii_alphanumeric() { format!(r"\x{:02X}", u32::from(c)) } else { c.into() }
}
