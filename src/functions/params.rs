//! Parameters: a typed [`Param`] constant is signature, documentation and accessor at once.

use std::marker::PhantomData;
use std::sync::Arc;

use super::{Value, lookup};
use crate::clock;
use crate::series::Aggregation;

/// A constant value in a declaration: a default, an option, a suggestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// `None`.
    None,
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number; infinity for "no limit".
    Float(f64),
    /// A string.
    Text(&'static str),
}

impl Literal {
    /// As an argument.
    #[must_use]
    pub fn value(self) -> Value {
        match self {
            Self::None => Value::None,
            Self::Boolean(b) => Value::Boolean(b),
            Self::Integer(n) => Value::Integer(n),
            Self::Float(n) => Value::Float(n),
            Self::Text(t) => Value::Text(t.into()),
        }
    }
}

/// The kinds of parameter, with graphite-web's names for them (Grafana's editor goes by these).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any scalar or a list of series.
    Any,
    /// true or false.
    Boolean,
    /// A time as in `from`.
    Date,
    /// A number.
    Float,
    /// A whole number.
    Integer,
    /// A length of time such as '5min'.
    Interval,
    /// A number of points or a length of time.
    IntOrInterval,
    /// A whole number or infinity.
    IntOrInf,
    /// Index of a node of the name, from 0; negative from the end.
    Node,
    /// Index of a node, or the name of a tag.
    NodeOrTag,
    /// Name of a tag.
    Tag,
    /// A list of series.
    SeriesList,
    /// A list of lists of series, as `mapSeries` makes it.
    SeriesLists,
    /// A string.
    String,
    /// Name of an aggregation function.
    AggFunc,
    /// Name of an aggregation function or of a function of series.
    AggOrSeriesFunc,
}

impl Kind {
    /// graphite-web's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Interval => "interval",
            Self::IntOrInterval => "intOrInterval",
            Self::IntOrInf => "intOrInf",
            Self::Node => "node",
            Self::NodeOrTag => "nodeOrTag",
            Self::Tag => "tag",
            Self::SeriesList => "seriesList",
            Self::SeriesLists => "seriesLists",
            Self::String => "string",
            Self::AggFunc => "aggFunc",
            Self::AggOrSeriesFunc => "aggOrSeriesFunc",
        }
    }

    /// Whether an expression (and not a scalar) is expected.
    #[must_use]
    pub fn takes_series(self) -> bool {
        matches!(self, Self::SeriesList | Self::SeriesLists | Self::Any)
    }
}

/// A parameter that reads as `T`. See the builder methods for what can be said of it.
pub struct Param<T> {
    name: &'static str,
    also: Option<&'static str>,
    required: bool,
    shown_required: bool,
    multiple: bool,
    default: Option<Literal>,
    options: &'static [Literal],
    suggestions: &'static [Literal],
    of: PhantomData<fn() -> T>,
}

impl<T> Param<T> {
    /// Must be given.
    #[must_use]
    pub const fn required(name: &'static str) -> Self {
        Self {
            name,
            also: None,
            required: true,
            shown_required: true,
            multiple: false,
            default: None,
            options: &[],
            suggestions: &[],
            of: PhantomData,
        }
    }

    /// May be left out.
    #[must_use]
    pub const fn optional(name: &'static str) -> Self {
        let mut param = Self::required(name);
        param.required = false;
        param.shown_required = false;
        param
    }

    /// May be left out, but clients are told that it must be given, as graphite-web tells them.
    #[must_use]
    pub const fn shown_required(mut self) -> Self {
        self.shown_required = true;
        self
    }

    /// Taken when it is left out.
    #[must_use]
    pub const fn default(mut self, value: Literal) -> Self {
        self.default = Some(value);
        self
    }

    /// May be given any number of times (the last parameter only).
    #[must_use]
    pub const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    /// Values that editors offer as the only ones. Not enforced here: `T` decides what is accepted.
    #[must_use]
    pub const fn options(mut self, options: &'static [Literal]) -> Self {
        self.options = options;
        self
    }

    /// Values that editors suggest.
    #[must_use]
    pub const fn suggestions(mut self, suggestions: &'static [Literal]) -> Self {
        self.suggestions = suggestions;
        self
    }

    /// Another keyword for it.
    #[must_use]
    pub const fn also(mut self, name: &'static str) -> Self {
        self.also = Some(name);
        self
    }
}

/// A parameter without its type: what binder, `/functions` and manual see.
pub trait Parameter: Sync {
    /// Its keyword.
    fn name(&self) -> &'static str;
    /// Another accepted keyword.
    fn also(&self) -> Option<&'static str>;
    /// Whether a call without it is refused.
    fn required(&self) -> bool;
    /// Whether clients are told that it is required.
    fn shown_required(&self) -> bool;
    /// Whether it may be given several times.
    fn multiple(&self) -> bool;
    /// Taken when it is left out.
    fn default(&self) -> Option<Literal>;
    /// Values that editors offer; empty when any may stand.
    fn options(&self) -> Vec<Literal>;
    /// Values that editors suggest.
    fn suggestions(&self) -> &'static [Literal];
    /// What it takes.
    fn kind(&self) -> Kind;
    /// Whether it takes this value; else why not, to follow "`name`: ".
    ///
    /// # Errors
    /// The reason as a part of a sentence for users.
    fn check(&self, value: &Value) -> Result<(), String>;
}

impl<T: Argument> Parameter for Param<T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn also(&self) -> Option<&'static str> {
        self.also
    }
    fn required(&self) -> bool {
        self.required
    }
    fn shown_required(&self) -> bool {
        self.shown_required
    }
    fn multiple(&self) -> bool {
        self.multiple
    }
    fn default(&self) -> Option<Literal> {
        self.default
    }
    fn options(&self) -> Vec<Literal> {
        if self.options.is_empty() { T::options() } else { self.options.to_vec() }
    }
    fn suggestions(&self) -> &'static [Literal] {
        self.suggestions
    }
    fn kind(&self) -> Kind {
        T::KIND
    }
    fn check(&self, value: &Value) -> Result<(), String> {
        T::read(value).map(drop)
    }
}

/// A type that an argument can be read as.
pub trait Argument: Sized {
    /// What clients are told.
    const KIND: Kind;
    /// # Errors
    /// Why the value is not one of these, as a part of a sentence.
    fn read(value: &Value) -> Result<Self, String>;
    /// All values there are, when they are few.
    fn options() -> Vec<Literal> {
        Vec::new()
    }
}

impl Argument for f64 {
    const KIND: Kind = Kind::Float;
    fn read(value: &Value) -> Result<Self, String> {
        value.to_float().ok_or_else(|| format!("{value} is not a number"))
    }
}

impl Argument for i64 {
    const KIND: Kind = Kind::Integer;
    fn read(value: &Value) -> Result<Self, String> {
        value.to_whole().ok_or_else(|| format!("{value} is not a whole number"))
    }
}

impl Argument for bool {
    const KIND: Kind = Kind::Boolean;
    fn read(value: &Value) -> Result<Self, String> {
        value.to_boolean().ok_or_else(|| format!("{value} is not true or false"))
    }
}

impl Argument for String {
    const KIND: Kind = Kind::String;
    fn read(value: &Value) -> Result<Self, String> {
        Ok(value.python_str())
    }
}

impl<T: Argument> Argument for Option<T> {
    const KIND: Kind = T::KIND;
    fn read(value: &Value) -> Result<Self, String> {
        if *value == Value::None { Ok(None) } else { T::read(value).map(Some) }
    }
}

/// A list of series; its value is in the call's inputs, never a scalar.
pub struct SeriesList;
impl Argument for SeriesList {
    const KIND: Kind = Kind::SeriesList;
    fn read(value: &Value) -> Result<Self, String> {
        Err(format!("{value} is not a series; a path stands without quotes"))
    }
}

/// A list of lists of series; its value is in the call's inputs, never a scalar.
pub struct SeriesLists;
impl Argument for SeriesLists {
    const KIND: Kind = Kind::SeriesLists;
    fn read(value: &Value) -> Result<Self, String> {
        Err(format!("{value} is not a list of series lists; `mapSeries` makes one"))
    }
}

/// Any scalar; a list of series may stand here too and is then in the call's inputs.
pub struct Any(pub Value);
impl Argument for Any {
    const KIND: Kind = Kind::Any;
    fn read(value: &Value) -> Result<Self, String> {
        Ok(Self(value.clone()))
    }
}

/// A length of time such as `'5min'` or `'-1d'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Signed seconds; without a sign, positive.
    pub seconds: i64,
    /// As written.
    pub text: Arc<str>,
}
impl Argument for Interval {
    const KIND: Kind = Kind::Interval;
    fn read(value: &Value) -> Result<Self, String> {
        let expected = || format!("{value} is not an interval such as '5min' or '1d'");
        let text = value.as_text().ok_or_else(expected)?;
        let seconds = clock::parse_interval(text).map_err(|e| format!("{}: {e}", expected()))?;
        Ok(Self { seconds, text: text.clone() })
    }
}

/// The window of a moving function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Window {
    /// So many points.
    Points(i64),
    /// So much time; the sign does not matter.
    Time(Interval),
}
impl Argument for Window {
    const KIND: Kind = Kind::IntOrInterval;
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Integer(_) | Value::Float(_) => {
                value.to_whole().map(Self::Points).ok_or_else(|| format!("{value} is not a whole number of points"))
            }
            // Editors quote arguments of functions that they do not know.
            Value::Text(t) if !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) => {
                t.parse().map(Self::Points).map_err(|_| format!("{value} is not a number of points"))
            }
            Value::Text(_) => Interval::read(value).map(Self::Time),
            _ => Err(format!("{value} is neither a number of points nor an interval such as '5min'")),
        }
    }
}

/// A number, or infinity for "no limit". Clients are told of a whole one; graphite-web computes with any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntOrInf(pub f64);
impl Argument for IntOrInf {
    const KIND: Kind = Kind::IntOrInf;
    fn read(value: &Value) -> Result<Self, String> {
        match value.to_float() {
            Some(number) if !number.is_nan() => Ok(Self(number)),
            _ => Err(format!("{value} is neither a number nor inf")),
        }
    }
}

/// A number where clients are told of a whole one: graphite-web computes with any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount(pub f64);
impl Argument for Amount {
    const KIND: Kind = Kind::Integer;
    fn read(value: &Value) -> Result<Self, String> {
        f64::read(value).map(Self)
    }
}

/// Index of a node of a dotted name, from 0; negative from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub i64);
impl Argument for Node {
    const KIND: Kind = Kind::Node;
    fn read(value: &Value) -> Result<Self, String> {
        value.to_whole().map(Self).ok_or_else(|| format!("{value} is not the index of a node"))
    }
}

/// Index of a node (a number), or the name of a tag (a string, also one of digits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOrTag {
    /// Index of a node, from 0; negative from the end.
    Node(i64),
    /// Name of a tag.
    Tag(Arc<str>),
}
impl Argument for NodeOrTag {
    const KIND: Kind = Kind::NodeOrTag;
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Integer(n) => Ok(Self::Node(*n)),
            Value::Boolean(b) => Ok(Self::Node(i64::from(*b))),
            // A number that is no index cannot be found as a node; it is looked up as a tag.
            Value::Float(_) => Ok(value.to_whole().map_or_else(|| Self::Tag(value.python_str().into()), Self::Node)),
            Value::Text(t) => Ok(Self::Tag(t.clone())),
            Value::None => Err(format!("{value} is neither the index of a node nor the name of a tag")),
        }
    }
}

/// Name of a tag.
pub struct Tag(pub String);
impl Argument for Tag {
    const KIND: Kind = Kind::Tag;
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::None => Err("None is not the name of a tag".into()),
            other => Ok(Self(other.python_str())),
        }
    }
}

/// A time as `from` takes it; resolved by the function, with the request's clock.
pub struct Date(pub String);
impl Argument for Date {
    const KIND: Kind = Kind::Date;
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(_) | Value::Integer(_) => Ok(Self(value.python_str())),
            _ => Err(format!("{value} is not a time such as '-1h' or '10:00_20260101'")),
        }
    }
}

fn aggregation_names() -> impl Iterator<Item = &'static str> {
    Aggregation::NAMES.iter().map(|(n, _)| *n)
}

fn not_an_aggregation(value: &Value) -> String {
    format!("{value} is not an aggregation function; there are {}", aggregation_names().collect::<Vec<_>>().join(", "))
}

impl Argument for Aggregation {
    const KIND: Kind = Kind::AggFunc;
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.as_text().ok_or_else(|| not_an_aggregation(value))?;
        // `sumSeries` is the older spelling of `sum`.
        Aggregation::by_name(text.strip_suffix("Series").unwrap_or(text)).ok_or_else(|| not_an_aggregation(value))
    }
    fn options() -> Vec<Literal> {
        let mut names: Vec<_> = aggregation_names().collect();
        names.sort_unstable();
        names.into_iter().map(Literal::Text).collect()
    }
}

/// Name of an aggregation function in its present spelling: `sum`, not `sumSeries`. The functions that work on
/// single series know no other.
pub struct Statistic(pub Aggregation);
impl Argument for Statistic {
    const KIND: Kind = Kind::AggFunc;
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.as_text().ok_or_else(|| not_an_aggregation(value))?;
        Aggregation::by_name(text).map(Self).ok_or_else(|| not_an_aggregation(value))
    }
    fn options() -> Vec<Literal> {
        Aggregation::options()
    }
}

/// The functions of series that editors offer as callbacks, as graphite-web does. Many more are accepted.
const OFFERED_CALLBACKS: &[&str] = &[
    "asPercent",
    "averageSeries",
    "averageSeriesWithWildcards",
    "avg",
    "countSeries",
    "diffSeries",
    "diffSeriesLists",
    "maxSeries",
    "minSeries",
    "multiplySeries",
    "multiplySeriesLists",
    "multiplySeriesWithWildcards",
    "pct",
    "powSeries",
    "rangeOfSeries",
    "stddevSeries",
    "sum",
    "sumSeries",
    "sumSeriesLists",
    "sumSeriesWithWildcards",
];

/// Name of an aggregation function, or of a function that combines series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggOrSeriesFunc(pub Arc<str>);
impl Argument for AggOrSeriesFunc {
    const KIND: Kind = Kind::AggOrSeriesFunc;
    fn read(value: &Value) -> Result<Self, String> {
        let expected =
            || format!("{value} is neither an aggregation function nor a function that can be applied to series");
        let text = value.as_text().ok_or_else(expected)?;
        let known = Aggregation::by_name(text.strip_suffix("Series").unwrap_or(text)).is_some()
            || lookup(text).is_some_and(super::Function::is_plain);
        if known { Ok(Self(text.clone())) } else { Err(expected()) }
    }
    fn options() -> Vec<Literal> {
        let mut names: Vec<_> = aggregation_names().chain(OFFERED_CALLBACKS.iter().copied()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(Literal::Text).collect()
    }
}
