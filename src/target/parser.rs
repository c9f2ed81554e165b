//! pest's pairs to our tree, and pest's errors to diagnostics. The only place that knows pest.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::{Arc, Once};

use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;

use super::{Argument, Call, Code, Diagnostic, Expr, ExprKind, MAX_BYTES, MAX_DEPTH, Span};

#[derive(pest_derive::Parser)]
#[grammar = "../grammar/target.pest"]
struct TargetParser;

/// Parses a whole target. White space around it is allowed.
///
/// # Errors
/// Text that is not of the language, too long or too deeply nested.
pub fn parse(text: &str) -> Result<Expr, Diagnostic> {
    static LIMIT: Once = Once::new();
    // Bounds the work of one parse; the length limit keeps every legal target far below.
    LIMIT.call_once(|| pest::set_call_limit(NonZeroUsize::new(20_000_000)));
    refuse_hostile(text)?;
    let mut pairs = TargetParser::parse(Rule::target, text).map_err(|e| syntax_error(text, &e))?;
    let target = pairs.next().expect("a successful parse has one pair for the start rule");
    let expression = target.into_inner().next().expect("a target holds an expression");
    build_expression(expression, text, 0)
}

/// Refuses text by length and nesting before the grammar, whose recursion follows the nesting, sees it.
fn refuse_hostile(text: &str) -> Result<(), Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the target has {} bytes; at most {MAX_BYTES} are accepted", text.len());
        return Err(Diagnostic::new(Code::TooLong, Span { start: 0, end: 0 }, message));
    }
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (i, b) in text.bytes().enumerate() {
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, b) {
            (_, b'\\') => escaped = true,
            (Some(q), b) if b == q => quote = None,
            (None, b'"' | b'\'') => quote = Some(b),
            (None, b'(' | b'{') => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(too_deep(Span { start: i, end: i + 1 }));
                }
            }
            (None, b')' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::new(Code::TooDeep, span, format!("calls are nested deeper than {MAX_DEPTH}"))
}

fn span(pair: &Pair<'_, Rule>) -> Span {
    let s = pair.as_span();
    Span { start: s.start(), end: s.end() }
}

/// `depth` counts the calls around this expression.
fn build_expression(pair: Pair<'_, Rule>, text: &str, depth: usize) -> Result<Expr, Diagnostic> {
    let start = pair.as_span().start();
    let mut inner = pair.into_inner();
    let first = inner.next().expect("an expression starts with a call or path");
    let calls: Vec<_> = inner.filter(|p| p.as_rule() == Rule::call).collect();
    // A pipe nests what is on its left one deeper than it is written.
    let mut expr = build_value(first, text, depth + calls.len())?;
    let pipes = calls.len();
    for (i, pair) in calls.into_iter().enumerate() {
        let whole = Span { start, end: pair.as_span().end() };
        let mut call = build_call(pair, text, depth + pipes - 1 - i)?;
        call.arguments.insert(0, Argument { keyword: None, value: expr });
        expr = Expr { span: whole, kind: ExprKind::Call(call) };
    }
    Ok(expr)
}

fn build_value(pair: Pair<'_, Rule>, text: &str, depth: usize) -> Result<Expr, Diagnostic> {
    let span = span(&pair);
    let written = pair.as_str();
    let kind = match pair.as_rule() {
        Rule::expression => return build_expression(pair, text, depth),
        Rule::call => ExprKind::Call(build_call(pair, text, depth)?),
        Rule::boolean => ExprKind::Boolean(written.eq_ignore_ascii_case("true")),
        Rule::none => ExprKind::None,
        Rule::infinity => ExprKind::Float(f64::INFINITY),
        Rule::number => {
            let digits = in_ascii(written);
            match digits.parse::<i64>() {
                Ok(n) => ExprKind::Integer(n),
                Err(_) => {
                    ExprKind::Float(digits.parse().map_err(|_| Diagnostic::new(Code::Syntax, span, "not a number"))?)
                }
            }
        }
        Rule::string => ExprKind::Text(written[1..written.len() - 1].into()),
        Rule::path => ExprKind::Path(written.into()),
        rule => unreachable!("{rule:?} is not a value"),
    };
    Ok(Expr { span, kind })
}

/// A number with fullwidth digits as one with the usual ones.
fn in_ascii(number: &str) -> Cow<'_, str> {
    if number.is_ascii() {
        return Cow::Borrowed(number);
    }
    let usual = |c| match c {
        '\u{ff10}'..='\u{ff19}' => char::from(b'0' + (u32::from(c) - 0xff10) as u8),
        other => other,
    };
    Cow::Owned(number.chars().map(usual).collect())
}

fn build_call(pair: Pair<'_, Rule>, text: &str, depth: usize) -> Result<Call, Diagnostic> {
    if depth >= MAX_DEPTH {
        return Err(too_deep(span(&pair)));
    }
    let raw: Arc<str> = pair.as_str().into();
    let mut inner = pair.into_inner();
    let name = inner.next().expect("a call starts with a name");
    let (name_span, name) = (span(&name), Arc::from(name.as_str()));
    let mut arguments = Vec::new();
    for part in inner {
        match part.as_rule() {
            Rule::open | Rule::comma | Rule::close => {}
            Rule::named => {
                let mut parts = part.into_inner().filter(|p| p.as_rule() != Rule::equals);
                let keyword = parts.next().expect("a keyword argument has a name");
                let value = parts.next().expect("a keyword argument has a value");
                let keyword = Some((Arc::from(keyword.as_str()), span(&keyword)));
                arguments.push(Argument { keyword, value: build_value(value, text, depth + 1)? });
            }
            _ => arguments.push(Argument { keyword: None, value: build_value(part, text, depth + 1)? }),
        }
    }
    Ok(Call { name, name_span, raw, arguments })
}

fn syntax_error(text: &str, error: &pest::error::Error<Rule>) -> Diagnostic {
    let start = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let found = text[start..].chars().next();
    let span = Span { start, end: start + found.map_or(0, char::len_utf8) };
    let message = match found {
        None => "unexpected end of the target".to_owned(),
        Some(c) if c.is_whitespace() => "unexpected white space".to_owned(),
        Some(c) if c.is_control() => "unexpected control character".to_owned(),
        Some('\\') => "a `\\` may stand only before one of ( ) { } , . ' \" \\ | =".to_owned(),
        Some(q @ ('"' | '\'')) if text[start + 1..].find(q).is_none() => {
            format!("a string that starts with {q} is not closed")
        }
        Some(c) => format!("unexpected `{c}`"),
    };
    let mut diagnostic = Diagnostic::new(Code::Syntax, span, message);
    if let ErrorVariant::ParsingError { positives, .. } = &error.variant {
        let mut wanted: Vec<&str> = positives.iter().map(|r| shown(*r)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if !wanted.is_empty() {
            diagnostic = diagnostic.help(format!("expected {}", wanted.join(" or ")));
        }
    }
    diagnostic
}

/// What a user calls a rule. Exhaustive on purpose: a new rule does not compile until it is named.
fn shown(rule: Rule) -> &'static str {
    match rule {
        Rule::EOI => "the end",
        Rule::target | Rule::expression | Rule::primary | Rule::path | Rule::node | Rule::plain | Rule::escaped => {
            "a path"
        }
        Rule::braces | Rule::choice => "an alternative in braces",
        Rule::call | Rule::name => "a function call",
        Rule::argument | Rule::named | Rule::value => "an argument",
        Rule::number | Rule::digit | Rule::infinity => "a number",
        Rule::boolean => "true or false",
        Rule::none => "None",
        Rule::string => "a quoted string",
        Rule::pipe => "`|`",
        Rule::open => "`(`",
        Rule::close => "`)`",
        Rule::comma => "`,`",
        Rule::equals => "`=`",
        Rule::ends | Rule::WHITESPACE => "the end of the argument",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in the compact form that the tests below compare with.
    fn shape(e: &Expr) -> String {
        match &e.kind {
            ExprKind::Path(p) => p.to_string(),
            ExprKind::Integer(n) => format!("#{n}"),
            ExprKind::Float(n) => format!("#{n:?}"),
            ExprKind::Text(t) => format!("<{t}>"),
            ExprKind::Boolean(b) => format!("#{b}"),
            ExprKind::None => "#None".into(),
            ExprKind::Call(c) => {
                let arguments = c.arguments.iter().map(|a| match &a.keyword {
                    Some((k, _)) => format!("{k}={}", shape(&a.value)),
                    None => shape(&a.value),
                });
                format!("{}({})", c.name, arguments.collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn reads_the_language() {
        for (text, tree) in [
            ("a.b", "a.b"),
            (" \n a.b\t", "a.b"),
            ("a (x , 2 )", "a(x #2)"),
            ("f(a,-1.5e-2,1e2,007)", "f(a #-0.015 #100.0 #7)"),
            ("f(5xx.rate, +5, 2.5.x)", "f(5xx.rate +5 2.5.x)"),
            ("10_5_7_57", "10_5_7_57"),
            (
                "f(true.cpu,None.cpu,infra.cpu,TRUE,none,INF,Infinity)",
                "f(true.cpu None.cpu infra.cpu #true #None #inf #inf)",
            ),
            ("f(a,k = 'v',n=1)", "f(a k=<v> n=#1)"),
            ("a|f(1)|g()", "g(f(a #1))"),
            ("f(a|g(1), b)", "f(g(a #1) b)"),
            (r#"alias(a,"x\"y")"#, r#"alias(a <x\"y>)"#),
            ("alias(a,'it''s')", "alias(a <it''s>)"),
            (r#"alias(a,"")"#, "alias(a <>)"),
            (r"foo.bar\{topic\}.x", r"foo.bar\{topic\}.x"),
            ("a.{b,c{1,2},}.d[0-9]?.*", "a.{b,c{1,2},}.d[0-9]?.*"),
            ("weird.日本.ünï;a=b:c~@%$^&#!", "weird.日本.ünï;a=b:c~@%$^&#!"),
            ("f()", "f()"),
            ("f(a=)", "f(a=)"),
            ("f(a=", ""),
            ("f(a))", ""),
            ("a b", ""),
            ("a..b", ""),
            ("a.", ""),
            ("a,b", ""),
            ("f(a,)", ""),
            ("f(a", ""),
            ("a|", ""),
            ("a||f()", ""),
            ("m.27011[c=rs11,d=T].x", ""),
            ("", ""),
            ("a.{}", ""),
            ("alias(a,\"x\ny\")", ""),
            ("a\u{a0}", ""),
            ("a\0", ""),
        ] {
            match parse(text) {
                Ok(e) => assert_eq!(shape(&e), tree, "{text}"),
                Err(d) => assert!(tree.is_empty(), "{text}: {}", d.render(text)),
            }
        }
    }

    #[test]
    fn points_at_the_place() {
        for (text, at) in [("f(a b)", 4), ("f(a", 3), ("f(a))", 4), ("m.2[c=r,d=T]", 7), ("f(a,'x)", 4)] {
            assert_eq!(parse(text).expect_err(text).span.start, at, "{text}");
        }
        let shown = parse("movingAverage(a b, 5)").expect_err("two paths").render("movingAverage(a b, 5)");
        assert!(shown.lines().nth(1).is_some_and(|l| l == "  | movingAverage(a b, 5)"), "{shown}");
        assert!(shown.lines().nth(2).is_some_and(|l| l == "  |                 ^"), "{shown}");
    }

    #[test]
    fn hostile_text_is_refused() {
        let nested = |n: usize| "f(".repeat(n) + "a" + &")".repeat(n);
        assert!(parse(&nested(128)).is_ok());
        assert_eq!(parse(&nested(129)).expect_err("deep").code, Code::TooDeep);
        assert_eq!(parse(&nested(10_000)).expect_err("deep").code, Code::TooDeep);
        assert_eq!(parse(&"(".repeat(1 << 20)).expect_err("long").code, Code::TooLong);
        assert_eq!(parse(&format!("a{}", "|f()".repeat(10_000))).expect_err("deep").code, Code::TooDeep);
        assert!(parse(&format!("a{}", "|f()".repeat(128))).is_ok());
        assert_eq!(parse(&format!("a{}", "|f()".repeat(129))).expect_err("deep").code, Code::TooDeep);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,200}") {
            if let Err(d) = parse(&text) { assert!(!d.render(&text).is_empty()); }
        }
        #[test]
        fn any_tokens_are_answered(text in r#"([a-c.]|[(){},|='"\\ ]|true|-?[0-9]{1,3}|f\(){0,60}"#) {
            if let Err(d) = parse(&text) { assert!(!d.render(&text).is_empty()); }
        }
    }
}
