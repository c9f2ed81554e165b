//! Regular expressions and their replacement templates as Python's `re` reads them.
//!
//! A pattern is translated to the syntax of the `regex` crate, whose time is linear in the text. What that cannot
//! express (look-around, back-references, atomic groups, conditions) goes to `fancy-regex`, which backtracks and
//! therefore has a limit. The translation also takes away what the engines would read otherwise than Python:
//! set operations in classes, `\<`, braces that are no counts, possessive counts, `$` before a last newline.
//!
//! A pattern that Python refuses is refused, nearly always; a few that Python refuses are accepted.

mod chars;
mod template;
mod translate;

use std::cell::OnceCell;
use std::ops::Range;

pub(crate) use template::Template;
use translate::{DOLLAR, DOLLAR_EXACT, Translator};

use super::EvalError;

/// Bytes that a compiled pattern may take. `\w{80}` needs about 2 MB.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// Steps of backtracking for one search, some ten milliseconds.
const MAX_BACKTRACKS: usize = 100_000;

/// Bytes of a text in which matches have been replaced. Replacements of replacements would soon take all memory.
const MAX_REPLACED_BYTES: usize = 1 << 20;

/// A compiled pattern. Compile once a call, not once a series.
#[derive(Debug)]
pub(crate) struct Pattern {
    engine: Engine,
    /// The pattern in `fancy-regex`'s syntax, with Python's `$`.
    exact: String,
    /// It for texts that end with a newline, when it has a `$`, which stands before such a newline too.
    before_newline: Option<OnceCell<Result<fancy_regex::Regex, Failure>>>,
    /// The same, but matching only something, when the pattern may match nothing where it could match something.
    something: Option<OnceCell<Result<fancy_regex::Regex, Failure>>>,
    /// Names of groups with their numbers.
    names: Vec<(String, usize)>,
    /// Number of groups, without the whole match.
    groups: usize,
}

#[derive(Debug)]
enum Engine {
    /// `(^.*$)`, which Grafana puts around each query, `^(.*)$` or `^.*$`: the whole of a text without newlines.
    Whole(OnceCell<Result<fancy_regex::Regex, Failure>>),
    Linear(regex::Regex),
    Backtracking(fancy_regex::Regex),
}

/// Why a pattern or template cannot be used: a part of a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(String);

fn failure(message: impl Into<String>) -> Failure {
    Failure(message.into())
}

/// Byte ranges of a match: the whole, then the groups.
type Found = Vec<Option<Range<usize>>>;

impl Pattern {
    /// # Errors
    /// Python would refuse it, or it is too large.
    pub fn new(pattern: &str) -> Result<Self, Failure> {
        if let "(^.*$)" | "^(.*)$" | "^.*$" = pattern {
            return Ok(Self {
                engine: Engine::Whole(OnceCell::new()),
                exact: pattern.replace('$', DOLLAR_EXACT).replace('^', r"\A"),
                before_newline: None,
                something: None,
                names: Vec::new(),
                groups: usize::from(pattern.contains('(')),
            });
        }
        let translated = Translator::new(pattern).run()?;
        let exact = translated.text.replace(DOLLAR, DOLLAR_EXACT);
        let fast = translated.text.replace(DOLLAR, r"\z");
        let engine = if translated.backtracks {
            Engine::Backtracking(backtracking(&fast, false)?)
        } else {
            let linear = regex::RegexBuilder::new(&fast)
                .size_limit(MAX_COMPILED_BYTES)
                .dfa_size_limit(MAX_COMPILED_BYTES)
                .build()
                .map_err(|e| match e {
                    regex::Error::CompiledTooBig(_) => too_large(),
                    other => failure(format!("\"{pattern}\" is not a regular expression: {}", last_line(&other))),
                })?;
            Engine::Linear(linear)
        };
        Ok(Self {
            engine,
            before_newline: (exact != fast).then(OnceCell::new),
            exact,
            something: translated.prefers_nothing.then(OnceCell::new),
            names: translated.names,
            groups: translated.groups,
        })
    }

    /// Whether it matches anywhere in `text`: Python's `search`.
    ///
    /// # Errors
    /// It backtracks too much.
    pub fn is_match(&self, text: &str) -> Result<bool, Failure> {
        match &self.engine {
            Engine::Linear(regex) if !self.needs_exact(text) => Ok(regex.is_match(text)),
            _ => Ok(self.find(text, 0)?.is_some()),
        }
    }

    /// Each match replaced by the template: Python's `sub`.
    ///
    /// # Errors
    /// It backtracks too much, or the result is too long.
    pub fn replace_all(&self, text: &str, template: &Template) -> Result<String, Failure> {
        let mut out = String::with_capacity(text.len() + template.length_hint());
        let (mut at, mut copied, mut after_nothing) = (0, 0, false);
        while at <= text.len() {
            let mut found = self.find(text, at)?;
            // After a match of nothing the next one begins later or is of something. A match of nothing right after
            // one of something counts, other than in Rust.
            if after_nothing && found.as_ref().and_then(whole).is_some_and(|m| m == (at..at)) {
                found = match self.find_something(text, at)? {
                    Some(found) if whole(&found).is_some_and(|m| m.start == at) => Some(found),
                    _ => match text[at..].chars().next() {
                        Some(c) => self.find(text, at + c.len_utf8())?,
                        None => None,
                    },
                };
            }
            let Some(groups) = found else { break };
            let Some(matched) = whole(&groups) else { break };
            out.push_str(&text[copied..matched.start]);
            template.write(text, &groups, &mut out);
            if out.len() > MAX_REPLACED_BYTES {
                return Err(failure(format!("the replaced name has more than {MAX_REPLACED_BYTES} bytes")));
            }
            after_nothing = matched.is_empty();
            (at, copied) = (matched.end, matched.end);
        }
        out.push_str(&text[copied..]);
        Ok(out)
    }

    fn needs_exact(&self, text: &str) -> bool {
        self.before_newline.is_some() && text.ends_with('\n')
    }

    fn find(&self, text: &str, from: usize) -> Result<Option<Found>, Failure> {
        match &self.engine {
            Engine::Whole(exact) => {
                if text.contains('\n') {
                    return search(lazily(exact, || backtracking(&self.exact, false))?, text, from);
                }
                Ok((from == 0).then(|| vec![Some(0..text.len()); 1 + self.groups]))
            }
            _ if self.needs_exact(text) => {
                let Some(exact) = &self.before_newline else { return Ok(None) };
                search(lazily(exact, || backtracking(&self.exact, false))?, text, from)
            }
            Engine::Linear(regex) => Ok(regex
                .captures_at(text, from)
                .map(|captures| captures.iter().map(|group| group.map(|g| g.range())).collect())),
            Engine::Backtracking(regex) => search(regex, text, from),
        }
    }

    fn find_something(&self, text: &str, from: usize) -> Result<Option<Found>, Failure> {
        let Some(something) = &self.something else { return Ok(None) };
        search(lazily(something, || backtracking(&self.exact, true))?, text, from)
    }
}

fn whole(found: &Found) -> Option<Range<usize>> {
    found.first().cloned().flatten()
}

fn lazily(
    cell: &OnceCell<Result<fancy_regex::Regex, Failure>>,
    compile: impl FnOnce() -> Result<fancy_regex::Regex, Failure>,
) -> Result<&fancy_regex::Regex, Failure> {
    cell.get_or_init(compile).as_ref().map_err(Clone::clone)
}

fn search(regex: &fancy_regex::Regex, text: &str, from: usize) -> Result<Option<Found>, Failure> {
    let captures = regex
        .captures_from_pos(text, from)
        .map_err(|_| failure("the regular expression needs too many steps for a name; make it simpler"))?;
    Ok(captures.map(|captures| captures.iter().map(|group| group.map(|g| g.start()..g.end())).collect()))
}

fn backtracking(pattern: &str, something: bool) -> Result<fancy_regex::Regex, Failure> {
    fancy_regex::RegexBuilder::new(pattern)
        .backtrack_limit(MAX_BACKTRACKS)
        .delegate_size_limit(MAX_COMPILED_BYTES)
        .delegate_dfa_size_limit(MAX_COMPILED_BYTES)
        .find_not_empty(something)
        .build()
        .map_err(|e| match e {
            fancy_regex::Error::CompileError(_) => too_large(),
            other => failure(format!("this is not a regular expression: {}", last_line(&other))),
        })
}

fn too_large() -> Failure {
    failure("the regular expression is too large or too deeply nested")
}

/// The engines' messages show the pattern first and say what is wrong in the last line.
fn last_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next_back().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// `search` and `replace` arguments of a call, as `aliasSub` and others take them.
#[derive(Debug)]
pub(crate) struct Substitution {
    pattern: Pattern,
    template: Template,
}

impl Substitution {
    /// The arguments of a call.
    ///
    /// # Errors
    /// One of them is not what Python accepts.
    pub fn new(
        args: &super::Args,
        search: &super::Param<String>,
        replace: &super::Param<String>,
    ) -> Result<Self, EvalError> {
        let pattern = Pattern::new(&args.get(search)).map_err(|e| EvalError::argument(search, e))?;
        let template = Template::new(&args.get(replace), &pattern).map_err(|e| EvalError::argument(replace, e))?;
        Ok(Self { pattern, template })
    }

    /// All matches in `text` replaced.
    ///
    /// # Errors
    /// It takes too long, or the result is.
    pub fn apply(&self, text: &str) -> Result<String, EvalError> {
        self.pattern.replace_all(text, &self.template).map_err(|e| EvalError::new(e.to_string()))
    }
}

impl Pattern {
    /// Number of a group by number or name.
    fn group(&self, name: &str) -> Result<usize, Failure> {
        let number = if name.bytes().all(|b| b.is_ascii_digit()) {
            name.parse().ok().filter(|n| *n <= self.groups)
        } else {
            self.names.iter().find(|(n, _)| n == name).map(|(_, n)| *n)
        };
        number.ok_or_else(|| match self.groups {
            0 => failure(format!("there is no group {name}; the regular expression has none")),
            n => failure(format!("there is no group {name}; the regular expression has {n}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(pattern: &str, template: &str, text: &str) -> Result<String, Failure> {
        let pattern = Pattern::new(pattern)?;
        let template = Template::new(template, &pattern)?;
        pattern.replace_all(text, &template)
    }

    #[test]
    fn substitutes_as_python_does() {
        for [pattern, template, text, expected] in SUBSTITUTIONS {
            let got = sub(pattern, template, text);
            assert_eq!(got.as_deref(), Ok(*expected), "re.sub({pattern:?}, {template:?}, {text:?})");
        }
    }

    #[test]
    fn refuses_what_python_refuses() {
        for pattern in REFUSED_PATTERNS {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
        for [pattern, template] in REFUSED_TEMPLATES {
            assert!(sub(pattern, template, "a").is_err(), "{pattern} {template}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        for pattern in [r"(?:\w{500}){500}", "((a{1000}){1000}){1000}", &deep, "(?=a{1000}){1000}b"] {
            assert!(Pattern::new(pattern).is_err(), "{}", &pattern[..20.min(pattern.len())]);
        }
        // Exponential in the length of the text, for an engine without a limit.
        let slow = Pattern::new(r"^(?:(a|aa)+)+\1b").expect("a pattern");
        assert!(slow.is_match(&format!("{}!", "a".repeat(200))).is_err());
        let linear = Pattern::new("^(a+)+$").expect("a pattern");
        assert_eq!(linear.is_match(&format!("{}!", "a".repeat(10_000))), Ok(false));
    }

    /// Pattern, template, text, and what CPython 3.11 makes of them.
    const SUBSTITUTIONS: &[[&str; 4]] = &[
        ["servers", "s", "servers.a", "s.a"],
        [r"^.*(web|db)(\d+).*$", r"\1-\2", "servers.web01.cpu", "web-01"],
        [r"^.*\.(?P<last>\w+)$", r"\g<last>", "a.b.c", "c"],
        [r"\.", "/", "a.b.c", "a/b/c"],
        ["", "", "abc", "abc"],
        ["^", "pre ", "abc", "pre abc"],
        ["$", "!", "abc", "abc!"],
        ["x*", "-", "abxd", "-a-b--d-"],
        ["x*?", "-", "axx", "-a-----"],
        ["|a", "-", "aba", "---b---"],
        ["a|", "-", "aba", "--b--"],
        ["b??", "<>", "abb", "<>a<><><><><>"],
        [r"(web)?(\d+)", r"<\1|\2>", "db01 web2", "db<|01> <web|2>"],
        ["user", r"\0", "a.user", "a.\u{0}"],
        ["user", r"\g<0>!", "a.user", "a.user!"],
        ["(?=c)", "_", "abcc", "ab_c_c"],
        ["(a)(?!b)", r"[\1]", "abac", "ab[a]c"],
        ["(?<=a)b", "X", "abcb", "aXcb"],
        [r"(\w)\1", r"<\1>", "aabbcd", "<a><b>cd"],
        [r"(?P<x>\w)(?P=x)", r"<\g<x>>", "aabbcd", "<a><b>cd"],
        ["(?i)SERVERS", "x", "Servers.a", "x.a"],
        ["(?i:S)e", "x", "SeRsE se", "xRsE x"],
        ["(^.*$)", r"\1 A", "a.b", "a.b A"],
        ["(^.*$)", r"\1 A", "", " A"],
        ["(^.*$)", r"\1 A", "a\nb", "a\nb"],
        ["(^.*$)", r"\1 A", "a\n", "a A\n"],
        ["^(.*)$", r"<\1>", "a.b", "<a.b>"],
        ["^(.*)$", r"<\1>", "a.b\n", "<a.b>\n"],
        ["^.*$", "all", "a.b", "all"],
        ["(.*)", r"\1 A", "a.b", "a.b A A"],
        ["b$", "X", "b\nb\n", "b\nX\n"],
        [r"b\Z", "X", "b\nb\n", "b\nb\n"],
        ["(?m)^b$", "X", "b\nb\n", "X\nX\n"],
        ["$", "X", "b\n", "bX\nX"],
        ["a{2}", "X", "aaa", "Xa"],
        ["a{,2}", "X", "aaab", "XXXbX"],
        ["a{2,}", "X", "aaab", "Xb"],
        ["a{x}", "X", "a{x}", "X"],
        ["{a,b}", "X", "{a,b}", "X"],
        ["a{}", "X", "a{}b", "Xb"],
        ["a{1,0x}", "X", "a{1,0x}", "X"],
        ["[[]", "X", "a[b", "aXb"],
        ["[]x]", "X", "a]x", "aXX"],
        ["[^]]", "X", "a]b", "X]X"],
        ["[a&&b]", "X", "a&bc", "XXXc"],
        ["[+--]", "X", "+,-.", "XXX."],
        ["[~~]", "X", "a~", "aX"],
        ["[a-]", "X", "a-b", "XXb"],
        [r"[\w-]+", "X", "ab-c d", "X X"],
        [r"[\d\s]+", "X", "a 1b", "aXb"],
        [r"[^\W_]+", "X", "a_b", "X_X"],
        [r"[\b]", "X", "a\u{8}b", "aXb"],
        [r"\bcpu\b", "X", "a.cpu.cpus", "a.X.cpus"],
        [r"\Bp", "X", "cpu p", "cXu p"],
        [r"\<a\>", "X", "<a>", "X"],
        [r"\-\_\/\ \%\é", "X", "-_/ %é", "X"],
        [r"\x41\u0042\U00000043\103", "X", "ABCC", "X"],
        [r"\07", r"\a", "a\u{7}", "a\u{7}"],
        ["a", "\\n\\t\\\\\\.", "a", "\n\t\\\\."],
        ["a", r"\\", "a", r"\"],
        ["(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)", r"\10\1", "abcdefghij", "ja"],
        ["a", r"\101\060", "a", "A0"],
        ["(a)", r"\1z\g<1>0", "a", "aza0"],
        ["(?:a|b)+?c", "X", "abac", "X"],
        ["a++b", "X", "aaab", "X"],
        ["a*+a", "X", "aaa", "aaa"],
        ["(?>a+)b", "X", "aab", "X"],
        ["a?+a", "X", "aa", "X"],
        ["a{1,2}+a", "X", "aaa aa", "X aa"],
        ["(ab)?+c", "X", "ababc", "abX"],
        ["(a)?(?(1)b|c)", "X", "ab c", "X X"],
        ["(?P<n>a)?(?(n)b|c)", "X", "ab c", "X X"],
        ["(?#note)a", "X", "a", "X"],
        ["a(?#note)+", "X", "aa", "X"],
        ["(?x) a  b # c\n  c [ ]", "X", "abc ", "X"],
        ["(?s)a.b", "X", "a\nb", "X"],
        ["a.b", "X", "a\nb", "a\nb"],
        [r"(?a)\w", "X", "aé", "Xé"],
        [r"\w+", "X", "aé日_1-", "X-"],
        [r"\w", "X", "e\u{301}", "X\u{301}"],
        [r"\d", "X", "٣3", "XX"],
        [r"\s", "X", "a\u{1c}b\u{3000}", "aXbX"],
        [r"\S+", "X", "a\u{1c}b", "X\u{1c}X"],
        ["é", "e", "caféé", "cafee"],
        ["(a)|b", r"<\1>", "ab", "<a><>"],
        ["()", r"<\1>", "ab", "<>a<>b<>"],
        ["(|a)+", "X", "aab", "XXXXXbX"],
        ["[a-c.]+", "X", "abc.d", "Xd"],
        [r"[\]\\]", "X", r"]\", "XX"],
        ["]", "X", "a]", "aX"],
        ["}", "X", "a}", "aX"],
        ["a|b|", "X", "abc", "XXXcX"],
        [r"\Aa", "X", "aa", "Xa"],
        ["(?i)(?-i:a)b", "X", "aBAB", "XAB"],
        [r"(?<!\.)x", "_", "x.xx", "_.x_"],
        ["a(?:)b", "X", "ab", "X"],
        ["(a(?P<in>b))", r"\2\g<in>\1", "ab", "bbab"],
        [r"^|\.", "<>", "a.b", "<>a<>b"],
        ["", "-", "日本", "-日-本-"],
        ["\\t", "T", "a\tb", "aTb"],
        ["(?u)é", "X", "é", "X"],
        ["((a)|b)+", r"\1\2", "ab", "ba"],
        ["[0-9]+", "", "web01", "web"],
        [r"scale\((.*),.*\)", r"\1", "scale(a.b,2)", "a.b"],
    ];

    const REFUSED_PATTERNS: &[&str] = &[
        "(",
        ")",
        "a)",
        "[",
        "[a",
        "*",
        "a**",
        "a{2}{3}",
        "+a",
        "(?",
        "(?P<",
        "(?P<1>a)",
        "(?P<a>x)(?P<a>y)",
        "(?P=no)",
        "(?<x>a)",
        r"\1",
        r"(a\1)",
        r"\y",
        r"[\y]",
        r"a\",
        "[b-a]",
        r"[\d-z]",
        "(?z)",
        "a{2,1}",
        "(?(1)a|b|c)",
        r"\xg1",
        r"\777",
        "|*",
        "(?:",
        "(?#",
    ];

    /// Pattern and template.
    const REFUSED_TEMPLATES: &[[&str; 2]] = &[
        ["a", r"\1"],
        ["(a)", r"\2"],
        ["a", r"\g<x>"],
        ["a", r"\g"],
        ["a", r"\g<"],
        ["a", r"\y"],
        ["a", r"\"],
        ["a", r"\777"],
        ["(a)", r"\g<>"],
    ];
}
