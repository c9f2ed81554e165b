//! The library as documents: the manual in Markdown, and the JSON of `/functions`, which editors such as Grafana's
//! read. Both are made from the declarations; what a function reads beyond the asked range is what its `needs`
//! answers for its example, so the manual cannot promise anything else.

use std::fmt::Write as _;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{
    Args, Argument, Ask, Eval, Function, Group, Kind, Literal, Needs, Parameter, Request, Value, lookup, names,
};
use crate::clock::TimeZone;
use crate::series::{Aggregation, Step, TimeRange, float_repr};
use crate::target::{self, Expr, ExprKind};

/// What `/functions` is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Functions by group, not in one object.
    pub grouped: bool,
    /// The functions of this group only.
    pub group: Option<String>,
    /// The functions of `pieMode` instead.
    pub pie: bool,
    /// Indented, with sorted keys.
    pub pretty: bool,
}

/// The functions as graphite-web's `/functions` shows them: an object by name (or by group, then name). An infinite
/// default is the number `1e9999`: JSON by its grammar, and infinite for the browsers in which editors read it. Grafana
/// needs that number; it then writes `inf` or `Infinity` into a target, which both mean it.
#[must_use]
pub fn json(listing: &Listing) -> String {
    let mut infos = if listing.pie { pie() } else { names().map(|(name, f)| Info::of(name, f)).collect() };
    infos.retain(|info| listing.group.as_deref().is_none_or(|group| group == info.group));
    infos.sort_by_key(|info| info.name);
    if !listing.grouped {
        return text(&by_name(infos), listing.pretty);
    }
    let mut groups: Vec<(&str, Object<Info>)> = Vec::new();
    for info in infos {
        match groups.iter_mut().find(|(group, _)| *group == info.group) {
            Some((_, members)) => members.0.push((info.name, info)),
            None => groups.push((info.group, Object(vec![(info.name, info)]))),
        }
    }
    groups.sort_by_key(|(group, _)| *group);
    text(&Object(groups), listing.pretty)
}

/// One function as `/functions/<name>` shows it; `None` when there is none of that name.
#[must_use]
pub fn json_of(name: &str, listing: &Listing) -> Option<String> {
    let info = if listing.pie {
        pie().into_iter().find(|info| info.name == name)?
    } else {
        let (name, function) = names().find(|(n, _)| *n == name)?;
        Info::of(name, function)
    };
    Some(text(&info, listing.pretty))
}

/// graphite-web's signatures where they are not what its list of parameters says; clients show them.
const SIGNATURES: &[(&str, &str)] = &[
    ("aggregateWithWildcards", "seriesList, func, *positions"),
    ("highest", "seriesList, n=1, func='average'"),
    ("legendValue", "seriesList, *valueTypes"),
    ("lowest", "seriesList, n=1, func='average'"),
    ("powSeries", "*seriesLists"),
    ("round", "seriesList, precision=None"),
    ("stacked", "seriesLists, stackName='__DEFAULT__'"),
    ("timeShift", "seriesList, timeShift, resetEnd=True, alignDST=False"),
];

/// The functions of `pieMode`; they are no part of the target language.
const PIE: &[(&str, &str)] = &[
    ("average", "The average of a series: the size of its slice of a pie."),
    ("maximum", "The greatest value of a series: the size of its slice of a pie."),
    ("minimum", "The least value of a series: the size of its slice of a pie."),
];

/// One entry of `/functions`.
#[derive(Serialize)]
struct Info {
    // The keys in alphabetical order, which is that of graphite-web's indented answers.
    description: &'static str,
    function: String,
    group: &'static str,
    module: &'static str,
    name: &'static str,
    params: Vec<ParamInfo>,
}

#[derive(Serialize)]
struct ParamInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Scalar>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    multiple: bool,
    name: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<Scalar>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suggestions: Vec<Scalar>,
    #[serde(rename = "type")]
    kind: &'static str,
}

struct Scalar(Literal);

/// Stands for infinity until the text is made; in quotes it can be nothing else.
const INFINITY: &str = "Infinity";

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Literal::None => serializer.serialize_none(),
            Literal::Boolean(b) => serializer.serialize_bool(b),
            Literal::Integer(n) => serializer.serialize_i64(n),
            Literal::Float(f64::INFINITY) => serializer.serialize_str(INFINITY),
            Literal::Float(n) => serializer.serialize_f64(n),
            Literal::Text(t) => serializer.serialize_str(t),
        }
    }
}

/// A JSON object with its members in order.
struct Object<T>(Vec<(&'static str, T)>);

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, member) in &self.0 {
            map.serialize_entry(name, member)?;
        }
        map.end()
    }
}

fn by_name(infos: Vec<Info>) -> Object<Info> {
    Object(infos.into_iter().map(|info| (info.name, info)).collect())
}

fn text(document: &impl Serialize, pretty: bool) -> String {
    let written = if pretty { serde_json::to_string_pretty(document) } else { serde_json::to_string(document) };
    let text = written.expect("strings, numbers and lists can always be written");
    text.replace(&format!("\"{INFINITY}\""), "1e9999")
}

impl Info {
    fn of(name: &'static str, function: &Function) -> Self {
        let own = SIGNATURES.iter().find(|(n, _)| *n == name).map(|(_, arguments)| format!("{name}({arguments})"));
        Self {
            description: function.doc,
            function: own.unwrap_or_else(|| signature(name, function)),
            group: function.group.name(),
            module: MODULE,
            name,
            params: function.params.iter().map(|p| ParamInfo::of(*p)).collect(),
        }
    }
}

/// Where graphite-web says that its functions are.
const MODULE: &str = "graphite.render.functions";

fn pie() -> Vec<Info> {
    let info = |(name, description): &(&'static str, &'static str)| Info {
        description,
        function: format!("{name}(series)"),
        group: "Pie",
        module: MODULE,
        name,
        params: vec![ParamInfo {
            default: None,
            multiple: false,
            name: "series",
            options: Vec::new(),
            required: true,
            suggestions: Vec::new(),
            kind: "series",
        }],
    };
    PIE.iter().map(info).collect()
}

impl ParamInfo {
    fn of(param: &dyn Parameter) -> Self {
        Self {
            default: param.default().map(Scalar),
            multiple: param.multiple(),
            name: param.name(),
            options: param.options().into_iter().map(Scalar).collect(),
            required: param.shown_required(),
            suggestions: param.suggestions().iter().copied().map(Scalar).collect(),
            kind: param.kind().name(),
        }
    }
}

/// `name(a, b=1, *c)`, in Python's form.
fn signature(name: &str, function: &Function) -> String {
    let argument = |p: &&dyn Parameter| match p.default() {
        _ if p.multiple() => format!("*{}", p.name()),
        Some(default) => format!("{}={}", p.name(), python_repr(default)),
        None if p.shown_required() => p.name().to_owned(),
        None => format!("{}=None", p.name()),
    };
    let arguments: Vec<String> = function.params.iter().map(argument).collect();
    format!("{name}({})", arguments.join(", "))
}

fn python_repr(value: Literal) -> String {
    match value {
        Literal::Text(t) => format!("'{t}'"),
        Literal::Float(n) => float_repr(n),
        other => other.value().python_str(),
    }
}

/// The manual of all functions.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from(
        "# Functions\n\nWhat can stand in a target, by group; after that, what the types of parameters mean. Where a \
         function reads more than the asked range, it is said with the example.\n",
    );
    let mut functions: Vec<&'static Function> = super::all().collect();
    functions.sort_by_key(|f| (f.group, f.name));
    let mut group: Option<Group> = None;
    for function in functions {
        if group != Some(function.group) {
            group = Some(function.group);
            line(&mut out, &format!("\n## {}", function.group.name()));
        }
        describe(&mut out, function);
    }
    line(&mut out, "\n## Types of parameters\n\n| Type | |\n| --- | --- |");
    for kind in KINDS {
        line(&mut out, &format!("| {} | {} |", kind.name(), meaning(*kind)));
    }
    out
}

/// In the order of the manual.
const KINDS: &[Kind] = &[
    Kind::SeriesList,
    Kind::SeriesLists,
    Kind::Any,
    Kind::Boolean,
    Kind::Integer,
    Kind::Float,
    Kind::IntOrInf,
    Kind::String,
    Kind::Interval,
    Kind::IntOrInterval,
    Kind::Date,
    Kind::Node,
    Kind::NodeOrTag,
    Kind::Tag,
    Kind::AggFunc,
    Kind::AggOrSeriesFunc,
];

fn meaning(kind: Kind) -> String {
    let text = match kind {
        Kind::Any => "a number, a string, None, or a list of series",
        Kind::Boolean => "`true` or `false`",
        Kind::Date => "a time as in `from`, such as \"-1h\" or \"14:00 20260101\"",
        Kind::Float => "a number",
        Kind::Integer => "a whole number",
        Kind::Interval => {
            "a length of time: a number and s, min, h, d, w, mon (30 days) or y (365 days), as in \"5min\""
        }
        Kind::IntOrInterval => "a number of points, or a length of time such as \"5min\"",
        Kind::IntOrInf => "a whole number, or `inf` for no limit",
        Kind::Node => "the position of a node in a name, from 0; negative: from the end",
        Kind::NodeOrTag => "the position of a node in a name (without quotes), or the name of a tag (in quotes)",
        Kind::Tag => "the name of a tag",
        Kind::SeriesList => "a path with or without globs, or a call",
        Kind::SeriesLists => "a list of lists, as `mapSeries` makes it",
        Kind::String => "a text in single or double quotes",
        Kind::AggFunc | Kind::AggOrSeriesFunc => {
            let names: Vec<String> = Aggregation::options().into_iter().map(target_text).collect();
            let more = if kind == Kind::AggFunc { "" } else { ", or the name of a function of series" };
            return format!("one of `{}`{more}", names.join("`, `"));
        }
    };
    text.to_owned()
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn describe(out: &mut String, function: &'static Function) {
    line(out, &format!("\n### {}\n\n`{}`\n", function.name, signature(function.name, function)));
    if !function.aliases.is_empty() {
        let aliases: Vec<String> = function.aliases.iter().map(|a| format!("`{a}`")).collect();
        line(out, &format!("Also {}.\n", aliases.join(", ")));
    }
    line(out, function.doc);
    if !function.params.is_empty() {
        line(out, "\n| Parameter | Type | |\n| --- | --- | --- |");
        for p in function.params {
            line(out, &format!("| `{}` | {} | {} |", p.name(), p.kind().name(), remarks(*p)));
        }
    }
    line(out, &format!("\nExample: `{}`", function.example));
    for effect in effects(function) {
        line(out, &format!("\n{effect}"));
    }
}

/// What the table of parameters says of one beside name and type.
fn remarks(param: &dyn Parameter) -> String {
    let list = |values: &[Literal]| -> String {
        let shown: Vec<String> = values.iter().map(|v| format!("`{}`", target_text(*v))).collect();
        shown.join(", ")
    };
    let mut remarks = Vec::new();
    if param.required() {
        remarks.push("required".to_owned());
    }
    if param.multiple() {
        remarks.push("any number of them".into());
    }
    if let Some(default) = param.default() {
        remarks.push(format!("default `{}`", target_text(default)));
    }
    if let Some(also) = param.also() {
        remarks.push(format!("also `{also}`"));
    }
    let options = param.options();
    // Those of a type are listed with the types.
    if !options.is_empty() && !matches!(param.kind(), Kind::AggFunc | Kind::AggOrSeriesFunc) {
        remarks.push(format!("one of {}", list(&options)));
    }
    if !param.suggestions().is_empty() {
        remarks.push(format!("such as {}", list(param.suggestions())));
    }
    remarks.join("; ")
}

/// A value as it stands in a target.
fn target_text(value: Literal) -> String {
    match value {
        Literal::Text(t) => format!("\"{t}\""),
        Literal::Boolean(b) => b.to_string(),
        Literal::Float(n) => float_repr(n),
        other => other.value().python_str(),
    }
}

/// Sentences about what is fetched for the example.
fn effects(function: &'static Function) -> Vec<String> {
    if matches!(function.eval, Eval::Selector) {
        return vec!["Fetched from the storages as it stands.".into()];
    }
    let mut effects = Vec::new();
    if function.expand.is_some() {
        effects.push(
            "Reads further targets, which are known when its series are; all of them are fetched together, in a second \
             round."
                .to_owned(),
        );
    }
    let Some(call) = target::parse(function.example).ok().and_then(|expr| scalar_arguments(&expr, function)) else {
        return effects;
    };
    // Any hour will do, when its ends are multiples of the usual steps.
    let asked = TimeRange::new(1_699_995_600, 1_699_999_200).expect("an hour is not empty");
    let request = Request {
        range: asked,
        now: asked.until(),
        time_zone: TimeZone::utc(),
        server_time_zone: TimeZone::utc(),
        x_files_factor: 0.0,
        seed: 0,
    };
    let ask = |input_step| {
        function.needs(&call, &Ask { range: asked, input_step, request: &request, input_grid: &|| Some(1) })
    };
    match ask(None) {
        Ok(Needs::Ranges(ranges)) => {
            if let Some(reads) = reads(&ranges, asked) {
                effects.push(format!("The example reads {reads}."));
            }
        }
        Ok(Needs::InputStep) => {
            let minute = Step::new(60);
            let ranges = match ask(minute) {
                Ok(Needs::Ranges(ranges)) => reads(&ranges, asked),
                _ => None,
            };
            let mut sentence = "A window in points is as long as the series' step makes it, so the step is read first \
                                (and remembered)."
                .to_owned();
            if let Some(ranges) = ranges {
                // Writing to a string cannot fail.
                let _ = write!(sentence, " With one point a minute the example reads {ranges}.");
            }
            effects.push(sentence);
        }
        Err(_) => {}
    }
    effects
}

/// The scalar arguments of the first call of a function in a tree.
fn scalar_arguments(expr: &Expr, function: &'static Function) -> Option<Args> {
    let ExprKind::Call(call) = &expr.kind else { return None };
    if lookup(&call.name).map(|f| f.name) != Some(function.name) {
        return call.arguments.iter().find_map(|a| scalar_arguments(&a.value, function));
    }
    let mut args = Args::new(function);
    for (position, argument) in call.arguments.iter().enumerate() {
        let param = match &argument.keyword {
            Some((name, _)) => function.param(name)?,
            None => position.min(function.params.len().checked_sub(1)?),
        };
        let value = match &argument.value.kind {
            ExprKind::Integer(n) => Value::Integer(*n),
            ExprKind::Float(n) => Value::Float(*n),
            ExprKind::Text(t) => Value::Text(t.clone()),
            ExprKind::Boolean(b) => Value::Boolean(*b),
            ExprKind::None | ExprKind::Path(_) | ExprKind::Call(_) => continue,
        };
        args.push(param, value);
    }
    Some(args)
}

/// Ranges as a part of a sentence; `None` when nothing but the asked range is read.
fn reads(ranges: &[TimeRange], asked: TimeRange) -> Option<String> {
    const SHOWN: usize = 4;
    match ranges {
        [] => return Some("nothing".into()),
        [one] if *one == asked => return None,
        _ => {}
    }
    let several = ranges.len() > 1;
    let mut shown: Vec<String> = ranges.iter().take(SHOWN).map(|r| reading(*r, asked, several)).collect();
    if ranges.len() > SHOWN {
        shown.push(format!("so on: {} ranges", ranges.len()));
    }
    let last = shown.pop()?;
    Some(if shown.is_empty() { last } else { format!("{} and {last}", shown.join(", ")) })
}

fn reading(range: TimeRange, asked: TimeRange, among_several: bool) -> String {
    let (before, after) = (asked.from() - range.from(), range.until() - asked.until());
    match (before, after) {
        (0, 0) => "the range".into(),
        (b, 0) if b > 0 && among_several => format!("the range with {} more before it", duration(b)),
        (b, 0) if b > 0 => format!("{} more before the range", duration(b)),
        (0, a) if a > 0 => format!("{} more after the range", duration(a)),
        (b, a) if b > 0 && a > 0 => format!("{} more before the range and {} after it", duration(b), duration(a)),
        (b, a) if b == -a && b > 0 => format!("the range {} earlier", duration(b)),
        (b, a) if b == -a => format!("the range {} later", duration(a)),
        (b, a) => {
            let side = |seconds: i64, before: &str, after: &str| match seconds {
                0 => String::new(),
                s if s > 0 => format!("{} {before} ", duration(s)),
                s => format!("{} {after} ", duration(-s)),
            };
            format!(
                "the time from {}its beginning to {}its end",
                side(b, "before", "after"),
                side(-a, "before", "after")
            )
        }
    }
}

/// A number of seconds in the largest unit that it is a multiple of.
fn duration(seconds: i64) -> String {
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds % size == 0).unwrap_or((1, "second"));
    match seconds / size {
        1 => format!("1 {unit}"),
        n => format!("{n} {unit}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_words() {
        let range = |from, until| TimeRange::new(from, until).expect("a range");
        let asked = range(100_000, 103_600);
        for (ranges, words) in [
            (vec![range(100_000, 103_600)], None),
            (vec![range(99_700, 103_600)], Some("5 minutes more before the range")),
            (vec![range(96_400, 100_000)], Some("the range 1 hour earlier")),
            (vec![range(100_090, 103_690)], Some("the range 90 seconds later")),
            (vec![range(100_000, 104_000)], Some("400 seconds more after the range")),
            (
                vec![range(99_940, 103_480)],
                Some("the time from 1 minute before its beginning to 2 minutes before its end"),
            ),
            (vec![asked, range(13_600, 17_200)], Some("the range and the range 1 day earlier")),
            (vec![asked, range(13_600, 103_600)], Some("the range and the range with 1 day more before it")),
            (vec![], Some("nothing")),
        ] {
            assert_eq!(reads(&ranges, asked).as_deref(), words);
        }
    }
}
