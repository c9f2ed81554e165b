//! The first path in the name of a result: naming and grouping by nodes goes by it.

/// The first path in a name that may be the text of an expression: `a.b` in `scale(sumSeries(a.b,c),2)`. `None` when the
/// innermost first argument is something else. What is not a call (`f(,a)`) begins with a path that looks like one.
pub(crate) fn first_path(expression: &str) -> Option<&str> {
    match (Scanner { text: expression, at: 0 }).expression(MAX_DEPTH) {
        Some(First::Path(path)) => Some(path),
        Some(First::Other) | None => None,
    }
}

/// What an expression begins with.
enum First<'a> {
    /// A path.
    Path(&'a str),
    /// A literal, or nothing at all.
    Other,
}

/// What is nested deeper is not looked at.
const MAX_DEPTH: usize = 200;

/// Reads the language of targets as far as [`first_path`] needs it, without making a tree: names are many. Each method
/// moves on behind what it reads; the answer `None` means that it is not there.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let taken = &self.rest()[..bytes];
        self.at += bytes;
        taken
    }

    fn token(&mut self, token: char) -> bool {
        self.skip_spaces();
        let there = self.rest().starts_with(token);
        self.at += if there { token.len_utf8() } else { 0 };
        there
    }

    fn word(&mut self) -> Option<()> {
        self.skip_spaces();
        let end = self.rest().bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let word = self.take(end);
        (!word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit())).then_some(())
    }

    fn expression(&mut self, depth: usize) -> Option<First<'a>> {
        self.skip_spaces();
        let depth = depth.checked_sub(1)?;
        let start = self.at;
        let first = self.call(depth).or_else(|| {
            self.at = start;
            self.path().map(First::Path)
        })?;
        loop {
            let end = self.at;
            if !self.token('|') || self.call(depth).is_none() {
                self.at = end;
                return Some(first);
            }
        }
    }

    fn call(&mut self, depth: usize) -> Option<First<'a>> {
        self.word()?;
        if !self.token('(') {
            return None;
        }
        if self.token(')') {
            return Some(First::Other);
        }
        // The first argument cannot be named.
        let start = self.at;
        if self.word().is_some() && self.token('=') {
            return None;
        }
        self.at = start;
        let first = self.argument(depth)?;
        loop {
            if self.token(')') {
                return Some(first);
            }
            if !self.token(',') {
                return None;
            }
            self.argument(depth)?;
        }
    }

    fn argument(&mut self, depth: usize) -> Option<First<'a>> {
        let start = self.at;
        if self.word().is_some() && self.token('=') {
            self.argument(depth.checked_sub(1)?)?;
            return Some(First::Other);
        }
        self.at = start;
        self.skip_spaces();
        if let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '"' | '\'')) {
            return self.string(quote).map(|()| First::Other);
        }
        let end = self.rest().find([',', ')']).unwrap_or(self.rest().len());
        let literal = self.rest()[..end].trim_end();
        let keyword = ["true", "false", "none", "inf"].iter().any(|k| literal.eq_ignore_ascii_case(k));
        if keyword || literal.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && literal.parse::<f64>().is_ok() {
            self.take(end);
            return Some(First::Other);
        }
        self.expression(depth)
    }

    fn string(&mut self, quote: char) -> Option<()> {
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c == '\\' || c == quote && chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else if c == quote {
                self.take(at + 1);
                return Some(());
            }
        }
        None
    }

    fn path(&mut self) -> Option<&'a str> {
        let text = self.rest();
        // Up to `end` it is a path; a dot after that is one of it only when a node follows.
        let (mut at, mut end) = (0, 0);
        while let Some(c) = text[at..].chars().next() {
            at += match c {
                '\\' => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
                '{' => match braces(&text[at..]) {
                    Some(length) => length,
                    None => break,
                },
                '.' if at > 0 && at == end => {
                    at += 1;
                    continue;
                }
                '.' | '(' | ')' | '}' | ',' | '|' | '"' | '\'' => break,
                c if c.is_whitespace() => break,
                c => c.len_utf8(),
            };
            end = at;
        }
        (end > 0).then(|| self.take(end))
    }
}

/// The length of an alternative in braces that the text begins with.
fn braces(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => depth -= 1,
            '(' | ')' | '.' | '|' | '"' | '\'' => return None,
            c if c.is_whitespace() => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_paths() {
        for (expression, path) in [
            ("a.b", Some("a.b")),
            ("scale(sumSeries(a.b,c),2)", Some("a.b")),
            ("sumSeries( a.{b,c}.d , x)", Some("a.{b,c}.d")),
            ("5xx.rate", Some("5xx.rate")),
            ("constantLine(5)", None),
            ("randomWalk(\"x.y\")", None),
            ("seriesByTag('name=x')", None),
            ("divideSeries(,a.b)", Some("divideSeries")),
            ("scale(sum(a.b,),2)", Some("scale")),
            ("f(a b,c)", Some("f")),
            ("disk used (all)", Some("disk")),
            ("a.b|scale(2)", Some("a.b")),
            ("f(a.b|g(2),x=1)", Some("a.b")),
            ("f(a{b,c}d.e\\(,\"x)\",'y')", Some("a{b,c}d.e\\(")),
            ("f(true,a.b)", None),
            ("f(true.b,1)", Some("true.b")),
            ("f()", None),
            ("f(x=a.b)", Some("f")),
            ("a..b", Some("a")),
            ("a.{b", Some("a")),
            (".a)", None),
            ("日本.x", Some("日本.x")),
        ] {
            assert_eq!(first_path(expression), path, "{expression}");
        }
    }
}
