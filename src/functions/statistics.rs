//! Statistics of one series over time.

use super::columns::percentile_of_row;
use super::sources::constant_line;
use super::{
    Call, Eval, EvalError, Function, Group, Literal, MAX_POINTS, MAX_POINTS_OF_CALL, Param, SeriesList, Statistic,
};
use crate::series::{Aggregation, Series, float_repr, format_g};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const FUNC: Param<Statistic> = Param::optional("func").default(Literal::Text("average"));
const KEEP_STEP: Param<bool> = Param::optional("keepStep").default(Literal::Boolean(false));
const N: Param<f64> = Param::required("n");
const POINTS: Param<i64> = Param::required("points");
const TOLERANCE: Param<f64> = Param::optional("windowTolerance").default(Literal::Float(0.1));

/// What the functions of this file have in common.
const STATISTIC: Function = Function::of(Group::Calculate, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "aggregateLine",
        doc: "Replaces each series by a flat line at its average, or at what another aggregation function makes of it. \
              The line has three points over the whole range, or with `keepStep` as many as the series.",
        example: "aggregateLine(servers.*.cpu.user,\"max\")",
        params: &[&SERIES, &FUNC, &KEEP_STEP],
        eval: Eval::Series(aggregate_line),
        ..STATISTIC
    },
    Function {
        name: "nPercentile",
        doc: "Replaces each series by a flat line at its n-th percentile. Series without values are left out.",
        example: "nPercentile(servers.*.cpu.user,95)",
        params: &[&SERIES, &N],
        eval: Eval::Series(n_percentile),
        ..STATISTIC
    },
    Function {
        name: "stdev",
        doc: "The standard deviation of the last `points` points, for each point. It is absent where less than the \
              share `windowTolerance` of them is known. Nothing is fetched for the points before the range.",
        example: "stdev(edge.sparse,5,0.5)",
        params: &[&SERIES, &POINTS, &TOLERANCE],
        eval: Eval::Series(|call| {
            let (points, tolerance) = (call.args.get(&POINTS), call.args.get(&TOLERANCE));
            let window = usize::try_from(points)
                .map_err(|_| EvalError::argument(&POINTS, format!("{points} is not a number of points")))?;
            let deviation = |s: Series| {
                let name = format!("stdev({},{points})", s.name);
                s.derived(name, deviations(s.values(), window, tolerance)).tagged("stdev", points.to_string())
            };
            Ok(call.series(&SERIES).into_iter().map(deviation).collect())
        }),
        ..STATISTIC
    },
];

fn aggregate_line(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let Statistic(function) = call.args.get(&FUNC);
    let keep_step = call.args.get(&KEEP_STEP);
    let series = call.series(&SERIES);
    let line = |s: Series| {
        let value = function.apply(s.values());
        let shown = if value.is_nan() { "None".into() } else { format_g(value) };
        let name = format!("aggregateLine({}, {shown})", s.name);
        if keep_step {
            return Ok(s.derived(name, vec![value; s.len()]));
        }
        let tag = match function {
            _ if value.is_nan() => shown,
            Aggregation::Count => shown,
            _ => float_repr(value),
        };
        Ok(constant_line(call, &tag, value)?.renamed(name))
    };
    series.into_iter().map(line).collect()
}

fn n_percentile(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let n = call.args.get(&N);
    if n.is_nan() || n <= 0.0 || n > 100.0 {
        let message = format!("{} is not a percentile above 0 and up to 100", format_g(n));
        return Err(EvalError::argument(&N, message));
    }
    let series = call.series(&SERIES);
    // As graphite-web has it, the line has the points of the stated range, which may be longer than the values are.
    let points = |s: &Series| ((s.end() - s.start()) / s.step().seconds()).max(0);
    let mut added = 0_i64;
    for s in &series {
        let more = (points(s) - s.len() as i64).max(0);
        added = added.saturating_add(more);
        if more > MAX_POINTS || added > MAX_POINTS_OF_CALL {
            return Err(EvalError::new(format!(
                "{} states a range of {} points, far more than it has",
                s.name,
                points(s)
            )));
        }
    }
    let line = |s: Series| {
        let value = percentile_of_row(s.values(), n, false)?;
        let name = format!("nPercentile({}, {})", s.name, format_g(n));
        let values = vec![value; points(&s) as usize];
        Some(s.derived(name, values).tagged("nPercentile", float_repr(n)))
    };
    Ok(series.into_iter().filter_map(line).collect())
}

/// The standard deviation of the window that ends at each point, from running sums as graphite-web has them. The sums
/// are made anew when they have held something so large that it may have left nothing of the present values.
fn deviations(values: &[f64], window: usize, tolerance: f64) -> Vec<f64> {
    if window == 0 {
        return vec![f64::NAN; values.len()];
    }
    let mut sums = Sums::default();
    let mut out = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        if let Some(left) = i.checked_sub(window) {
            sums.remove(values[left]);
        }
        sums.add(*value);
        if sums.known > 0 && sums.unsure() {
            sums = Sums::default();
            values[(i + 1).saturating_sub(window)..=i].iter().for_each(|v| sums.add(*v));
        }
        let known = sums.known as f64;
        let enough = sums.known > 0 && known / window as f64 >= tolerance;
        out.push(if enough && sums.beyond == 0 {
            (known * sums.squares - sums.values * sums.values).sqrt() / known
        } else {
            f64::NAN
        });
    }
    out
}

/// Greater values, though finite, are not summed: their squares would overflow.
const LARGEST: f64 = 1e150;

#[derive(Default)]
struct Sums {
    known: usize,
    /// Known values that are too large for the sums.
    beyond: usize,
    values: f64,
    squares: f64,
    /// The most that `squares` has been.
    most: f64,
}

impl Sums {
    fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.known += 1;
        if value.abs() <= LARGEST {
            self.values += value;
            self.squares += value * value;
            self.most = self.most.max(self.squares);
        } else {
            self.beyond += 1;
        }
    }

    fn remove(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.known -= 1;
        if value.abs() <= LARGEST {
            self.values -= value;
            self.squares -= value * value;
        } else {
            self.beyond -= 1;
        }
    }

    /// Whether the sums may be mostly rounding.
    fn unsure(&self) -> bool {
        self.most * 1e-12 > self.squares
    }
}
