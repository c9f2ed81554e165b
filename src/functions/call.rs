//! What a function gets: its arguments, its evaluated inputs, the request.

use std::collections::HashMap;

use super::params::Argument;
use super::{Eval, Function, Param, SeriesList, SeriesLists, Value, lookup};
use crate::clock::TimeZone;
use crate::series::{Aggregation, Series, TimeRange};

/// What is fixed for a whole request: read once, at its start.
#[derive(Clone, Debug)]
pub struct Request {
    /// The range that the client asked for.
    pub range: TimeRange,
    /// The request's one clock reading, seconds since the epoch.
    pub now: i64,
    /// The zone of the request (`tz=`).
    pub time_zone: TimeZone,
    /// The zone of the server's configuration, in which a few functions read dates.
    pub server_time_zone: TimeZone,
    /// `xFilesFactor=`, or the configured default (0).
    pub x_files_factor: f64,
    /// Seed of `randomWalk`.
    pub seed: u64,
}

impl Request {
    /// The request zone's clock at `time`, read in the server's zone: where graphite-web says "local time". The same
    /// as `time` unless the zones differ.
    #[must_use]
    pub fn server_clock(&self, time: i64) -> i64 {
        self.server_time_zone.reread(&self.time_zone, time)
    }
}

/// What the targets of one request share while they are evaluated, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The xFilesFactor in force: the request's, until `setXFilesFactor` changes it for all that is evaluated later.
    pub x_files_factor: f64,
    /// Running totals of `stacked`, by stack name, point by point.
    pub stacks: HashMap<String, Vec<f64>>,
}

impl State {
    /// At the start of a request.
    #[must_use]
    pub fn new(request: &Request) -> Self {
        Self { x_files_factor: request.x_files_factor, stacks: HashMap::new() }
    }
}

/// The scalar arguments of a call, checked against the signature by the binder: every one that is there can be read
/// as its parameter's type, and every required one is there.
#[derive(Clone, Debug)]
pub struct Args {
    function: &'static Function,
    /// For each parameter the values given; empty when left out or a series.
    values: Vec<Vec<Value>>,
}

impl Args {
    /// No arguments yet.
    #[must_use]
    pub fn new(function: &'static Function) -> Self {
        Self { function, values: vec![Vec::new(); function.params.len()] }
    }

    /// The function that these are for.
    #[must_use]
    pub fn function(&self) -> &'static Function {
        self.function
    }

    /// Adds a value; the binder has checked it.
    pub fn push(&mut self, param: usize, value: Value) {
        self.values[param].push(value);
    }

    /// Takes back the values of a parameter; the binder does when a keyword is given again.
    pub fn clear(&mut self, param: usize) {
        self.values[param].clear();
    }

    fn given<T: Argument>(&self, param: &Param<T>) -> &[Value] {
        let index =
            self.function.param(super::Parameter::name(param)).expect("a function reads only its own parameters");
        &self.values[index]
    }

    /// The value as it was written, for names and tags; the default when it was left out.
    #[must_use]
    pub fn raw<T: Argument>(&self, param: &Param<T>) -> Option<Value> {
        self.given(param).first().cloned().or_else(|| super::Parameter::default(param).map(super::Literal::value))
    }

    /// The value, or the default; `None` when it was left out and has none.
    #[must_use]
    pub fn find<T: Argument>(&self, param: &Param<T>) -> Option<T> {
        self.raw(param).and_then(|v| T::read(&v).ok())
    }

    /// The value of a parameter that is required or has a default.
    #[must_use]
    pub fn get<T: Argument>(&self, param: &Param<T>) -> T {
        self.find(param).expect("the binder refuses calls without a required argument")
    }

    /// All values of a repeated parameter.
    #[must_use]
    pub fn all<T: Argument>(&self, param: &Param<T>) -> Vec<T> {
        self.given(param).iter().filter_map(|v| T::read(v).ok()).collect()
    }

    /// All values of a repeated parameter as they were written.
    #[must_use]
    pub fn all_raw<T: Argument>(&self, param: &Param<T>) -> &[Value] {
        self.given(param)
    }

    /// Whether a scalar was given.
    #[must_use]
    pub fn has<T: Argument>(&self, param: &Param<T>) -> bool {
        !self.given(param).is_empty()
    }
}

/// An evaluated series argument.
#[derive(Clone, Debug)]
pub enum Input {
    /// A list.
    List(Vec<Series>),
    /// A list of lists.
    Groups(Vec<Vec<Series>>),
}

impl Input {
    /// All its series, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Series> {
        let (list, groups) = match self {
            Self::List(list) => (list.as_slice(), [].as_slice()),
            Self::Groups(groups) => ([].as_slice(), groups.as_slice()),
        };
        list.iter().chain(groups.iter().flatten())
    }

    /// As one list.
    #[must_use]
    pub fn into_list(self) -> Vec<Series> {
        match self {
            Self::List(list) => list,
            Self::Groups(groups) => groups.into_iter().flatten().collect(),
        }
    }
}

/// One series argument, evaluated at each of the ranges that `needs` named, in that order.
#[derive(Clone, Debug)]
pub struct InputArgument {
    /// Index of its parameter.
    pub param: usize,
    /// One value for each range.
    pub at: Vec<Input>,
}

/// All evaluated inputs of a call.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The ranges that `needs` named.
    pub ranges: Vec<TimeRange>,
    /// The series arguments as they stand in the call.
    pub arguments: Vec<InputArgument>,
    /// The targets that `expand` named, in its order, with their series.
    pub targets: Vec<(String, Vec<Series>)>,
}

/// A call about to be computed.
pub struct Call<'a> {
    /// Its scalar arguments.
    pub args: &'a Args,
    /// The range that is wanted of it; not always that of the request.
    pub range: TimeRange,
    /// What is fixed for the request.
    pub request: &'a Request,
    /// What the request's targets share.
    pub state: &'a mut State,
    inputs: Inputs,
}

impl<'a> Call<'a> {
    /// Puts a call together; the evaluator does.
    #[must_use]
    pub fn new(args: &'a Args, range: TimeRange, request: &'a Request, state: &'a mut State, inputs: Inputs) -> Self {
        Self { args, range, request, state, inputs }
    }

    /// Computes it.
    ///
    /// # Errors
    /// What the function says.
    pub fn run(mut self) -> Result<Input, EvalError> {
        match self.args.function.eval {
            Eval::Series(eval) => eval(&mut self).map(Input::List),
            Eval::Groups(eval) => eval(&mut self).map(Input::Groups),
            Eval::Selector => Ok(Input::List(Vec::new())),
        }
    }

    fn index<T: Argument>(&self, param: &Param<T>) -> usize {
        self.args.function.param(super::Parameter::name(param)).expect("a function reads only its own parameters")
    }

    /// The ranges at which the series arguments were wanted, in the order in which `needs` named them. None when it
    /// was learnt that there is no series at all.
    #[must_use]
    pub fn ranges(&self) -> &[TimeRange] {
        &self.inputs.ranges
    }

    /// The series of a parameter, at the first (usually only) range; all arguments of a repeated parameter together,
    /// in order. The lists are moved out: a second call gets none.
    pub fn series<T: Argument>(&mut self, param: &Param<T>) -> Vec<Series> {
        self.series_at(param, 0)
    }

    /// The series of a parameter at the `range`-th of the ranges that `needs` named; moved out.
    pub fn series_at<T: Argument>(&mut self, param: &Param<T>, range: usize) -> Vec<Series> {
        self.lists_at(param, range).into_iter().flatten().collect()
    }

    /// One list for each argument of a repeated parameter; moved out.
    pub fn lists(&mut self, param: &Param<SeriesList>) -> Vec<Vec<Series>> {
        self.lists_at(param, 0)
    }

    fn lists_at<T: Argument>(&mut self, param: &Param<T>, range: usize) -> Vec<Vec<Series>> {
        let index = self.index(param);
        let arguments = self.inputs.arguments.iter_mut().filter(|a| a.param == index);
        arguments
            .filter_map(|a| a.at.get_mut(range))
            .map(|input| std::mem::replace(input, Input::List(Vec::new())).into_list())
            .collect()
    }

    /// Whether a series argument (not a scalar) was given for this parameter, even one that matched nothing.
    #[must_use]
    pub fn has_series<T: Argument>(&self, param: &Param<T>) -> bool {
        let index = self.index(param);
        self.inputs.arguments.iter().any(|a| a.param == index)
    }

    /// The lists of lists of a parameter; a plain list counts as one list for each series.
    pub fn groups(&mut self, param: &Param<SeriesLists>) -> Vec<Vec<Series>> {
        let index = self.index(param);
        let mut groups = Vec::new();
        for argument in self.inputs.arguments.iter_mut().filter(|a| a.param == index) {
            match argument.at.first_mut().map(|i| std::mem::replace(i, Input::List(Vec::new()))) {
                Some(Input::Groups(g)) => groups.extend(g),
                Some(Input::List(list)) => groups.extend(list.into_iter().map(|s| vec![s])),
                None => {}
            }
        }
        groups
    }

    /// The targets that `expand` named with their series, in its order; moved out.
    pub fn targets(&mut self) -> Vec<(String, Vec<Series>)> {
        std::mem::take(&mut self.inputs.targets)
    }

    /// Computes another plain function ([`Function::is_plain`]) over `lists`, as a callback: each list is one series
    /// argument, in the order of its parameters; scalars have their defaults.
    ///
    /// # Errors
    /// There is no such function, it cannot be used so, or it fails.
    pub fn apply(&mut self, name: &str, lists: Vec<Vec<Series>>) -> Result<Vec<Series>, EvalError> {
        let function = lookup(name)
            .filter(|f| f.is_plain())
            .ok_or_else(|| EvalError::new(format!("`{name}` is not a function that can be applied to series")))?;
        let mut slots = function.params.iter().enumerate().filter(|(_, p)| p.kind().takes_series());
        let mut slot = slots.next();
        let mut arguments = Vec::new();
        for list in lists {
            let Some((param, p)) = slot else {
                return Err(EvalError::new(format!("`{name}` does not take so many series lists")));
            };
            arguments.push(InputArgument { param, at: vec![Input::List(list)] });
            if !p.multiple() {
                slot = slots.next();
            }
        }
        let missing = function
            .params
            .iter()
            .enumerate()
            .find(|(i, p)| p.required() && p.default().is_none() && !arguments.iter().any(|a| a.param == *i));
        if let Some((_, p)) = missing {
            return Err(EvalError::new(format!("`{name}` cannot be used here: it needs `{}`", p.name())));
        }
        let args = Args::new(function);
        let inputs = Inputs { ranges: vec![self.range], arguments, targets: Vec::new() };
        let call = Call { args: &args, range: self.range, request: self.request, state: self.state, inputs };
        call.run().map(Input::into_list)
    }

    /// Combines a list by the name of an aggregation function (`sum`, `avg`, `sumSeries`…) or, when there is none of
    /// that name, of a plain function: what `callback` arguments mean. graphite-web looks for functions first.
    ///
    /// # Errors
    /// As [`Call::apply`].
    pub fn combine(&mut self, callback: &str, list: Vec<Series>) -> Result<Vec<Series>, EvalError> {
        if lookup(callback).is_some_and(Function::is_plain) {
            return self.apply(callback, vec![list]);
        }
        let name = callback.strip_suffix("Series").unwrap_or(callback);
        let function = Aggregation::by_name(name)
            .ok_or_else(|| EvalError::new(format!("`{callback}` is neither an aggregation function nor a function")))?;
        super::combine::aggregate(self, &list, name, function, None)
    }
}

/// Why a call cannot be computed; the evaluator adds the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    message: String,
    param: Option<&'static str>,
}

impl EvalError {
    /// About the call as a whole. One line, for users.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), param: None }
    }

    /// About one argument: the caret goes there. The message follows "`name`: ".
    #[must_use]
    pub fn argument<T: Argument>(param: &Param<T>, message: impl std::fmt::Display) -> Self {
        let name = super::Parameter::name(param);
        Self { message: format!("`{name}`: {message}"), param: Some(name) }
    }

    /// The parameter that it is about.
    #[must_use]
    pub fn param(&self) -> Option<&'static str> {
        self.param
    }
}
