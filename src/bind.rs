//! Syntax tree + function library = checked tree.
//!
//! All faults of names, arity and argument types are found here, with their places, before anything is fetched.
//! Templates are substituted here too, so that planner and evaluator never see one. A [`Target`] that exists is
//! well-formed: every call has its required arguments and every scalar can be read as its parameter's type.

use std::sync::Arc;

use crate::functions::{self, Args, Eval, EvalError, Function, Kind, Value};
use crate::series::{PathExpression, TagQuery};
use crate::target::{self, Argument, Call, Code, Diagnostic, Expr, ExprKind, Span};

/// Identifies a call site within one request; what is learnt of it while planning is kept by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// A checked target.
#[derive(Clone, Debug)]
pub struct Target {
    /// As the client wrote it; spans refer to it.
    pub text: Arc<str>,
    /// Its tree.
    pub root: Arc<Node>,
}

/// A node of the checked tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// Unique within the request.
    pub id: NodeId,
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: NodeKind,
}

/// The kinds of node.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Something to fetch.
    Path {
        /// What is fetched, in canonical spelling.
        pattern: PathExpression,
        /// How names of aggregates show it: a path without its escapes, a tag query as it was written.
        shown: Arc<str>,
    },
    /// Something to compute.
    Call(BoundCall),
}

/// A checked call.
#[derive(Clone, Debug)]
pub struct BoundCall {
    /// The function.
    pub function: &'static Function,
    /// Its scalar arguments.
    pub args: Args,
    /// Its series arguments with the index of their parameters, as they stand.
    pub inputs: Vec<(usize, Arc<Node>)>,
    /// Places of all arguments with the index of their parameters.
    pub spans: Vec<(usize, Span)>,
}

impl BoundCall {
    /// An error of this call as a diagnostic: at the argument that it is about, or at the whole call.
    #[must_use]
    pub fn diagnostic(&self, span: Span, error: &EvalError) -> Diagnostic {
        let param = error.param().and_then(|name| self.function.param(name));
        let at = self.spans.iter().find(|(index, _)| Some(*index) == param).map(|(_, span)| *span);
        match at {
            Some(at) => Diagnostic::new(Code::BadArgument, at, error.to_string()),
            None => Diagnostic::new(Code::Evaluation, span, format!("{}: {error}", self.function.name)),
        }
    }
}

/// Turns texts into checked targets and numbers their call sites. One for each request.
#[derive(Clone, Debug, Default)]
pub struct Binder {
    next: u32,
    /// `template[name]=value` parameters of the request; they win over the arguments of `template(..)`.
    overrides: Vec<(String, String)>,
}

/// The variables of a `template(..)` in the order in which they are substituted.
type Variables = [(String, Value)];

impl Binder {
    /// `overrides` are the request's `template[name]=value` parameters.
    #[must_use]
    pub fn new(overrides: Vec<(String, String)>) -> Self {
        Self { next: 0, overrides }
    }

    /// Parses and checks one target.
    ///
    /// # Errors
    /// Anything that is wrong with it.
    pub fn bind(&mut self, text: &str) -> Result<Target, Diagnostic> {
        let expr = target::parse(text)?;
        let root = self.node(&expr, None)?;
        Ok(Target { text: text.into(), root: Arc::new(root) })
    }

    fn new_node(&mut self, span: Span, kind: NodeKind) -> Node {
        self.next += 1;
        Node { id: NodeId(self.next), span, kind }
    }

    fn node(&mut self, expr: &Expr, variables: Option<&Variables>) -> Result<Node, Diagnostic> {
        match &expr.kind {
            ExprKind::Path(path) => match substitute(path, variables) {
                Substituted::Unchanged => Ok(self.path(expr.span, path)),
                Substituted::Text(text) => {
                    let unusable = || {
                        Diagnostic::new(
                            Code::BadTemplate,
                            expr.span,
                            format!("`{path}` becomes `{text}`, which is not a path"),
                        )
                    };
                    match target::parse(&text) {
                        Ok(Expr { kind: ExprKind::Path(path), .. }) => Ok(self.path(expr.span, &path)),
                        _ => Err(unusable()),
                    }
                }
                Substituted::Value(Value::Text(text)) => match target::parse(&text) {
                    Ok(Expr { kind: ExprKind::Path(path), .. }) => Ok(self.path(expr.span, &path)),
                    _ => Err(Diagnostic::new(Code::BadTemplate, expr.span, format!("`{text}` is not a path"))),
                },
                Substituted::Value(value) => {
                    // A number may be a whole path: `template($a, a=5)` asks for the series `5`.
                    Ok(self.path(expr.span, &value.python_str()))
                }
            },
            ExprKind::Call(call) if &*call.name == "template" => {
                if variables.is_some() {
                    return Err(bad_template(expr.span, "a template cannot stand inside another"));
                }
                self.template(expr.span, call)
            }
            ExprKind::Call(call) => self.call(expr.span, call, variables),
            _ => Err(Diagnostic::new(Code::BadArgument, expr.span, "a series is expected here")
                .help("a path stands without quotes")),
        }
    }

    fn path(&mut self, span: Span, path: &str) -> Node {
        let kind = NodeKind::Path { pattern: PathExpression::new(path), shown: unescaped(path).into() };
        self.new_node(span, kind)
    }

    fn template(&mut self, span: Span, call: &Call) -> Result<Node, Diagnostic> {
        let Some((body, rest)) = call.arguments.split_first() else {
            return Err(bad_template(span, "`template` needs an expression"));
        };
        if body.keyword.is_some() || !matches!(body.value.kind, ExprKind::Path(_) | ExprKind::Call(_)) {
            return Err(bad_template(body.value.span, "the first argument of `template` is a path or a call"));
        }
        if rest.iter().any(|a| a.keyword.is_some()) && rest.iter().any(|a| a.keyword.is_none()) {
            return Err(bad_template(span, "arguments of `template` are either all named or all without a name"));
        }
        let mut variables: Vec<(String, Value)> = Vec::new();
        for (i, argument) in rest.iter().enumerate() {
            let name = match &argument.keyword {
                Some((name, _)) => name.to_string(),
                None => (i + 1).to_string(),
            };
            let value = match &argument.value.kind {
                ExprKind::Integer(n) => Value::Integer(*n),
                ExprKind::Float(n) if n.is_finite() => Value::Float(*n),
                ExprKind::Text(t) => Value::Text(t.clone()),
                _ => {
                    let message = "invalid template() syntax, only string/numeric arguments are allowed";
                    return Err(bad_template(argument.value.span, message));
                }
            };
            set(&mut variables, name, value);
        }
        for (name, value) in &self.overrides {
            set(&mut variables, name.clone(), Value::Text(value.as_str().into()));
        }
        self.node(&body.value, Some(&variables))
    }

    fn call(&mut self, span: Span, call: &Call, variables: Option<&Variables>) -> Result<Node, Diagnostic> {
        let function = functions::lookup(&call.name).ok_or_else(|| unknown_function(call))?;
        if matches!(function.eval, Eval::Selector) {
            return self.selector(span, function, call, variables);
        }
        let mut args = Args::new(function);
        let mut inputs = Vec::new();
        let mut spans: Vec<(usize, Span)> = Vec::new();
        let mut by_keyword = vec![false; function.params.len()];
        for (position, argument) in call.arguments.iter().enumerate() {
            let param = parameter_of(function, call, position, argument)?;
            if argument.keyword.is_some() {
                // Of a keyword that is given twice the last counts; what was given by position cannot be given again.
                if spans.iter().any(|(p, _)| *p == param) && !by_keyword[param] {
                    return Err(repeated(function, param, argument));
                }
                if by_keyword[param] {
                    inputs.retain(|(p, _): &(usize, Arc<Node>)| *p != param);
                    spans.retain(|(p, _)| *p != param);
                    args.clear(param);
                }
                by_keyword[param] = true;
            } else if let Some(named) = by_keyword.iter().position(|b| *b) {
                let message = format!("an argument without a name cannot follow `{}=`", function.params[named].name());
                return Err(Diagnostic::new(Code::Syntax, argument.value.span, message));
            }
            spans.push((param, argument.value.span));
            self.argument(function, param, argument, variables, &mut args, &mut inputs)?;
        }
        let given = |i: usize| spans.iter().any(|(p, _)| *p == i);
        if let Some((_, p)) = function.params.iter().enumerate().find(|(i, p)| p.required() && !given(*i)) {
            let message = format!("`{}` needs `{}`", call.name, p.name());
            return Err(
                Diagnostic::new(Code::MissingArgument, span, message).help(format!("as in {}", function.example))
            );
        }
        Ok(self.new_node(span, NodeKind::Call(BoundCall { function, args, inputs, spans })))
    }

    fn argument(
        &mut self,
        function: &'static Function,
        param: usize,
        argument: &Argument,
        variables: Option<&Variables>,
        args: &mut Args,
        inputs: &mut Vec<(usize, Arc<Node>)>,
    ) -> Result<(), Diagnostic> {
        let parameter = function.params[param];
        let span = argument.value.span;
        let bad = |why: String| Diagnostic::new(Code::BadArgument, span, format!("`{}`: {why}", parameter.name()));
        let value = match &argument.value.kind {
            ExprKind::Integer(n) => Value::Integer(*n),
            ExprKind::Float(n) => Value::Float(*n),
            ExprKind::Text(t) => Value::Text(t.clone()),
            ExprKind::Boolean(b) => Value::Boolean(*b),
            ExprKind::None => Value::None,
            ExprKind::Path(path) => {
                let kind = parameter.kind();
                // `$x` that stands alone is a scalar; text that says a number is one.
                let scalar = match substitute(path, variables) {
                    Substituted::Value(value) if !matches!(kind, Kind::SeriesList | Kind::SeriesLists) => {
                        Some(numeric(&value).map_err(&bad)?)
                    }
                    _ => None,
                };
                match scalar {
                    // Other text is a path where either may stand.
                    Some(value) if kind != Kind::Any || value.as_text().is_none() => value,
                    _ if kind.takes_series() => {
                        inputs.push((param, Arc::new(self.node(&argument.value, variables)?)));
                        return Ok(());
                    }
                    // In `100|threshold()`: what stands before a pipe is read before it is known what is wanted.
                    _ => number(path).ok_or_else(|| expected_scalar(kind, path, bad))?,
                }
            }
            ExprKind::Call(call) => {
                if parameter.kind().takes_series() {
                    inputs.push((param, Arc::new(self.node(&argument.value, variables)?)));
                    return Ok(());
                }
                return Err(expected_scalar(parameter.kind(), &call.raw, bad));
            }
        };
        if value == Value::None && !parameter.required() {
            return Ok(());
        }
        parameter.check(&value).map_err(bad)?;
        args.push(param, value);
        Ok(())
    }

    /// A call that is fetched as a whole: `seriesByTag(..)` or `events(..)`.
    fn selector(
        &mut self,
        span: Span,
        function: &'static Function,
        call: &Call,
        variables: Option<&Variables>,
    ) -> Result<Node, Diagnostic> {
        let mut specs = Vec::new();
        let mut shown = call.raw.to_string();
        for (position, argument) in call.arguments.iter().enumerate() {
            parameter_of(function, call, position, argument)?;
            let ExprKind::Text(text) = &argument.value.kind else {
                let message = format!("`{}` takes quoted strings", function.name);
                return Err(Diagnostic::new(Code::BadArgument, argument.value.span, message)
                    .help(format!("as in {}", function.example)));
            };
            match substitute(text, variables) {
                Substituted::Unchanged => specs.push(text.to_string()),
                Substituted::Text(new) => {
                    shown = shown.replace(&**text, &new);
                    specs.push(new);
                }
                Substituted::Value(value) => specs.push(value.python_str()),
            }
        }
        if specs.is_empty() {
            let message = format!("`{}` needs at least one argument", function.name);
            return Err(
                Diagnostic::new(Code::MissingArgument, span, message).help(format!("as in {}", function.example))
            );
        }
        let pattern = if function.name == "seriesByTag" {
            if let Err(e) = TagQuery::new(&specs) {
                return Err(Diagnostic::new(Code::BadPattern, span, e.to_string()));
            }
            TagQuery::canonical(&specs)
        } else {
            TagQuery::canonical(&specs).replacen("seriesByTag", function.name, 1)
        };
        Ok(self.new_node(span, NodeKind::Path { pattern: PathExpression::new(&pattern), shown: shown.into() }))
    }
}

/// Which parameter an argument is for.
fn parameter_of(
    function: &'static Function,
    call: &Call,
    position: usize,
    argument: &Argument,
) -> Result<usize, Diagnostic> {
    if let Some((keyword, span)) = &argument.keyword {
        return function.param(keyword).ok_or_else(|| {
            let names: Vec<_> = function.params.iter().map(|p| p.name()).collect();
            Diagnostic::new(Code::UnknownArgument, *span, format!("`{}` has no argument `{keyword}`", call.name))
                .help(format!("its arguments are {}", names.join(", ")))
        });
    }
    match function.params.len() {
        n if position < n => Ok(position),
        n if n > 0 && function.params[n - 1].multiple() => Ok(n - 1),
        n => {
            let message = match n {
                0 => format!("`{}` takes no arguments", call.name),
                1 => format!("`{}` takes one argument", call.name),
                n => format!("`{}` takes at most {n} arguments", call.name),
            };
            Err(Diagnostic::new(Code::TooManyArguments, argument.value.span, message))
        }
    }
}

fn repeated(function: &Function, param: usize, argument: &Argument) -> Diagnostic {
    let at = argument.keyword.as_ref().map_or(argument.value.span, |(_, span)| *span);
    Diagnostic::new(Code::RepeatedArgument, at, format!("`{}` is given twice", function.params[param].name()))
}

fn unknown_function(call: &Call) -> Diagnostic {
    let diagnostic =
        Diagnostic::new(Code::UnknownFunction, call.name_span, format!("there is no function `{}`", call.name));
    let near = functions::nearest(&call.name);
    if near.is_empty() {
        return diagnostic;
    }
    let quoted: Vec<_> = near.iter().map(|n| format!("`{n}`")).collect();
    diagnostic.help(format!("did you mean {}?", quoted.join(" or ")))
}

fn bad_template(span: Span, message: &str) -> Diagnostic {
    Diagnostic::new(Code::BadTemplate, span, message).help("as in template(hosts.$host.cpu,host=\"web1\")")
}

fn expected_scalar(kind: Kind, written: &str, bad: impl Fn(String) -> Diagnostic) -> Diagnostic {
    let short: String = written.chars().take(40).collect();
    let (expected, quotes) = match kind {
        Kind::Float | Kind::Integer | Kind::Node | Kind::IntOrInf => ("a number", false),
        Kind::Boolean => ("true or false", false),
        _ => ("a quoted string", true),
    };
    let diagnostic = bad(format!("`{short}` is read as a path, but {expected} is expected"));
    if quotes { diagnostic.help("put it in quotes") } else { diagnostic }
}

/// `\` before a character taken away, as names show a path.
fn unescaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

fn set(variables: &mut Vec<(String, Value)>, name: String, value: Value) {
    match variables.iter_mut().find(|(n, _)| *n == name) {
        Some((_, old)) => *old = value,
        None => variables.push((name, value)),
    }
}

enum Substituted {
    Unchanged,
    /// Other text than was written.
    Text(String),
    /// The text was one variable and nothing else.
    Value(Value),
}

/// Variables put into text, one after the other in their order, as plain replacement: `$a` also hits in `$ab`.
fn substitute(text: &str, variables: Option<&Variables>) -> Substituted {
    let Some(variables) = variables else { return Substituted::Unchanged };
    let mut current = text.to_owned();
    for (name, value) in variables {
        let variable = format!("${name}");
        if current == variable {
            return Substituted::Value(value.clone());
        }
        if current.contains(&variable) {
            current = current.replace(&variable, &value.python_str());
        }
        if current.len() > target::MAX_BYTES {
            break;
        }
    }
    if current == text { Substituted::Unchanged } else { Substituted::Text(current) }
}

/// A path that is written like a number.
fn number(path: &str) -> Option<Value> {
    if !path.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let float = || path.parse().ok().filter(|n: &f64| n.is_finite()).map(Value::Float);
    path.parse().ok().map(Value::Integer).or_else(float)
}

/// Text of digits, points and a sign is a number when it stands for a whole argument.
fn numeric(value: &Value) -> Result<Value, String> {
    match value {
        Value::Text(t) => {
            let digits = t.strip_prefix('-').unwrap_or(t);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
                return Ok(value.clone());
            }
            t.parse().map(Value::Float).map_err(|_| format!("\"{t}\" is not a number"))
        }
        other => Ok(other.clone()),
    }
}
