//! The function library. A function is data: one [`Function`] value in one family file; everything else (`/functions`,
//! the manual, completion, argument checking, planning) is read from that value.
//!
//! Functions are pure: they get their series already fetched and evaluated, the request's clock and zone, and nothing
//! that could reach a backend. At which ranges a function wants its series is said by its `needs`, which planner and
//! evaluator both ask, so that what is fetched and what is looked up cannot differ.

mod alias;
mod call;
mod columns;
mod combine;
mod drawing;
mod filter;
mod filter_data;
mod first_path;
mod gaps;
mod groups;
mod holt_winters;
mod legend;
mod lists;
mod moving;
mod names;
mod normalize;
mod params;
mod percent;
mod python_format;
mod python_regex;
mod rates;
mod regression;
mod sort;
mod sources;
mod special;
mod statistics;
mod summarize;
mod time_shift;
mod transform;
mod value;

pub mod reference;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use call::{Args, Call, EvalError, Input, InputArgument, Inputs, Request, State};
pub use legend::UnitSystem;
pub use params::{
    AggOrSeriesFunc, Amount, Any, Argument, Date, IntOrInf, Interval, Kind, Literal, Node, NodeOrTag, Param, Parameter,
    SeriesList, SeriesLists, Statistic, Tag, Window,
};
pub use value::Value;

use crate::series::{Series, Step, TimeRange};

/// Every family file's list. (What is missing here is an unused constant, which the compiler reports.)
const FAMILIES: &[&[Function]] = &[
    alias::FUNCTIONS,
    combine::FUNCTIONS,
    drawing::FUNCTIONS,
    filter::FUNCTIONS,
    filter_data::FUNCTIONS,
    gaps::FUNCTIONS,
    groups::FUNCTIONS,
    holt_winters::FUNCTIONS,
    legend::FUNCTIONS,
    lists::FUNCTIONS,
    moving::FUNCTIONS,
    percent::FUNCTIONS,
    rates::FUNCTIONS,
    regression::FUNCTIONS,
    sort::FUNCTIONS,
    sources::FUNCTIONS,
    special::FUNCTIONS,
    statistics::FUNCTIONS,
    summarize::FUNCTIONS,
    time_shift::FUNCTIONS,
    transform::FUNCTIONS,
];

/// One function of the target language.
pub struct Function {
    /// The name in targets, case-sensitive.
    pub name: &'static str,
    /// Other names for the same function.
    pub aliases: &'static [&'static str],
    /// Where menus list it.
    pub group: Group,
    /// What it does: a sentence or more, for the manual and for editors.
    pub doc: &'static str,
    /// A target that shows it.
    pub example: &'static str,
    /// Its parameters in order: signature, documentation and accessors at once.
    pub params: &'static [&'static dyn Parameter],
    /// At which ranges it wants its series arguments; `None`: at the range that is asked of itself.
    pub needs: Option<NeedsFn>,
    /// For a function that reads further targets, which depend on its evaluated arguments: those targets.
    pub expand: Option<ExpandFn>,
    /// What it computes.
    pub eval: Eval,
}

/// See [`Function::needs`].
pub type NeedsFn = fn(&Args, &Ask<'_>) -> Result<Needs, EvalError>;
/// See [`Function::expand`].
pub type ExpandFn = fn(&Args, &Request, &[Series]) -> Result<Vec<String>, EvalError>;

/// How a function computes its result.
#[derive(Clone, Copy)]
pub enum Eval {
    /// A list of series.
    Series(fn(&mut Call<'_>) -> Result<Vec<Series>, EvalError>),
    /// A list of lists (`mapSeries`), which only a parameter of kind [`Kind::SeriesLists`] takes as it is; elsewhere
    /// it is flattened.
    Groups(fn(&mut Call<'_>) -> Result<Vec<Vec<Series>>, EvalError>),
    /// Not computed but fetched: the whole call is a path expression (`seriesByTag`, `events`).
    Selector,
}

/// The groups of graphite-web's `/functions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Several series to fewer.
    Combine,
    /// Each series to another.
    Transform,
    /// Statistics over time.
    Calculate,
    /// Chooses series.
    FilterSeries,
    /// Chooses points.
    FilterData,
    /// Orders series.
    Sorting,
    /// Renames series.
    Alias,
    /// Says how series are drawn.
    Graph,
    /// All else.
    Special,
}

impl Group {
    /// The name that clients see.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Combine => "Combine",
            Self::Transform => "Transform",
            Self::Calculate => "Calculate",
            Self::FilterSeries => "Filter Series",
            Self::FilterData => "Filter Data",
            Self::Sorting => "Sorting",
            Self::Alias => "Alias",
            Self::Graph => "Graph",
            Self::Special => "Special",
        }
    }
}

/// What `needs` is asked with: once for each call site and range, by planner and evaluator alike.
pub struct Ask<'a> {
    /// The range that is wanted of the call.
    pub range: TimeRange,
    /// The coarsest step among the call's evaluated series, once it has been learnt (see [`Needs::InputStep`]).
    pub input_step: Option<Step>,
    /// Clock, zone and parameters of the request.
    pub request: &'a Request,
    /// The [`Function::grid`] of all that the series arguments are made of; `None` when one of them has none.
    pub input_grid: &'a dyn Fn() -> Option<i64>,
}

/// The most points of one series that a function makes longer than what it reads: a point a second over years must not
/// take all memory.
const MAX_POINTS: i64 = 1_000_000;

/// The most points that one call makes so, of all its series together.
const MAX_POINTS_OF_CALL: i64 = 100_000_000;

/// Seconds that the steps of stored series divide.
const COMMON_GRID: i64 = 3_600;

/// The least common multiple of two positive numbers, such as steps or grids (see [`Function::grid`]); `None` when it is
/// too large.
#[must_use]
pub fn least_common_multiple(a: i64, b: i64) -> Option<i64> {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a.checked_div(divisor)?.checked_mul(b)
}

/// What a call needs of its series arguments before it can be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The series over each of these ranges.
    Ranges(Vec<TimeRange>),
    /// First the coarsest step of the series over the asked range, then ask again.
    InputStep,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Function {
    /// A declaration that the functions of a file fill in (`..Function::of(group, params)`): no aliases, the series at
    /// the range that is asked of itself, no further targets. Until `eval` is given it is fetched and not computed.
    const fn of(group: Group, params: &'static [&'static dyn Parameter]) -> Self {
        Self {
            name: "",
            aliases: &[],
            group,
            doc: "",
            example: "",
            params,
            needs: None,
            expand: None,
            eval: Eval::Selector,
        }
    }

    /// Position of a parameter by the name that targets use.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name() == name || p.also() == Some(name))
    }

    /// At which ranges the series arguments are wanted.
    ///
    /// # Errors
    /// Arguments that make no sense together or with the request's time.
    pub fn needs(&self, args: &Args, ask: &Ask<'_>) -> Result<Needs, EvalError> {
        match self.needs {
            None => Ok(Needs::Ranges(vec![ask.range])),
            Some(needs) => needs(args, ask),
        }
    }

    /// Where results begin and end, by how it moves with the asked range: `Some(1)` where the series begin and end,
    /// which follows from their steps; otherwise as far from them as before only when the range is moved by a multiple
    /// of so many seconds (and the steps of what is stored divide an hour); `None` when that is never sure.
    #[must_use]
    pub fn grid(&self, args: &Args) -> Option<i64> {
        match self.group {
            Group::Combine => Some(COMMON_GRID),
            Group::Transform => summarize::grid(args),
            _ => moving::grid(args),
        }
    }

    /// Whether this can be applied to a list of series by name (`groupByNode`'s callback, `reduceSeries`): it reads
    /// nothing but its arguments.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.needs.is_none() && self.expand.is_none() && !matches!(self.eval, Eval::Selector)
    }
}

/// Every function, by family.
pub fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Every name that a target may use, aliases included, with its function.
pub fn names() -> impl Iterator<Item = (&'static str, &'static Function)> {
    all().flat_map(|f| std::iter::once(f.name).chain(f.aliases.iter().copied()).map(move |n| (n, f)))
}

/// The function of this name or alias.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static Function> {
    static INDEX: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| names().collect());
    INDEX.get(name).copied()
}

/// The names nearest to a misspelt one, best first, at most three.
#[must_use]
pub fn nearest(name: &str) -> Vec<&'static str> {
    let lower = name.to_lowercase();
    let most = |n: &str| 1 + n.len().min(name.len()) / 4;
    let mut near: Vec<(usize, &'static str)> = names()
        // Names that differ more in length cannot be near, and to compare a very long one takes long.
        .filter(|(n, _)| n.len().abs_diff(name.len()) <= most(n))
        .map(|(n, _)| (strsim::damerau_levenshtein(&lower, &n.to_lowercase()), n))
        .filter(|(distance, n)| *distance <= most(n))
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, n)| n).take(3).collect()
}
