//! Holt-Winters forecasts: triple exponential smoothing, its confidence bands, and what falls outside them.
//!
//! All of them read their series from one bootstrap interval before the asked range on, so that level, trend and
//! seasons have settled when it begins. `holtWintersAberration` also reads the asked range as it is: over the longer
//! one a store may answer a coarser step.

use std::collections::HashMap;

use super::{Amount, Args, Ask, Call, Eval, EvalError, Function, Group, Interval, Literal, Needs, Param, SeriesList};
use crate::series::{Series, Step};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const DELTA: Param<Amount> = Param::optional("delta").default(Literal::Integer(3));
const BOOTSTRAP: Param<Interval> = Param::optional("bootstrapInterval")
    .default(Literal::Text("7d"))
    .suggestions(&[Literal::Text("7d"), Literal::Text("30d")]);
const SEASONALITY: Param<Interval> = Param::optional("seasonality")
    .default(Literal::Text("1d"))
    .suggestions(&[Literal::Text("1d"), Literal::Text("7d")]);

/// What the functions of this file have in common.
const HOLT_WINTERS: Function = Function::of(Group::Calculate, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "holtWintersForecast",
        doc: "Predicts each point from those before it by triple exponential smoothing: level, trend and season. The \
              data of bootstrapInterval before the range is read too, so that the prediction is good from the start.",
        example: "holtWintersForecast(business.orders.eu,'7d','1d')",
        params: &[&SERIES, &BOOTSTRAP, &SEASONALITY],
        needs: Some(|args, ask| Ok(Needs::Ranges(vec![bootstrapped(args, ask)]))),
        eval: Eval::Series(|call| {
            let setting = Setting::of(call.args);
            let forecast = |series: Series| {
                let name = format!("holtWintersForecast({})", series.name);
                let predictions = setting.forecast(&series).predictions;
                setting
                    .result(&series, name, predictions)
                    .tagged("holtWintersForecast", "1")
                    .tagged("holtWintersDeviation", "1")
            };
            Ok(call.series(&SERIES).into_iter().map(forecast).collect())
        }),
        ..HOLT_WINTERS
    },
    Function {
        name: "holtWintersConfidenceBands",
        doc: "Two series for each: the Holt-Winters forecast minus and plus delta times its usual error at that time \
              of the season.",
        example: "holtWintersConfidenceBands(business.orders.eu,3)",
        params: &[&SERIES, &DELTA, &BOOTSTRAP, &SEASONALITY],
        needs: Some(|args, ask| Ok(Needs::Ranges(vec![bootstrapped(args, ask)]))),
        eval: Eval::Series(|call| Ok(bands(call, 0).into_iter().flat_map(|b| [b.lower, b.upper]).collect())),
        ..HOLT_WINTERS
    },
    Function {
        name: "holtWintersAberration",
        doc: "How far each point lies outside the Holt-Winters confidence bands: above is positive, below is negative, \
              within or unknown is 0.",
        example: "holtWintersAberration(business.orders.eu,3)",
        params: &[&SERIES, &DELTA, &BOOTSTRAP, &SEASONALITY],
        needs: Some(|args, ask| Ok(Needs::Ranges(vec![ask.range, bootstrapped(args, ask)]))),
        eval: Eval::Series(|call| {
            let series = call.series_at(&SERIES, 0);
            let bands: HashMap<_, _> = bands(call, 1).into_iter().map(|b| (b.of.clone(), b)).collect();
            let aberration = |series: &Series| {
                let values = match bands.get(&series.name) {
                    Some(bands) => outside(series, bands),
                    None => vec![0.0; series.len()],
                };
                computed(series, format!("holtWintersAberration({})", series.name), series.start(), values)
                    .tagged("holtWintersAberration", "1")
            };
            Ok(series.iter().map(aberration).collect())
        }),
        ..HOLT_WINTERS
    },
    Function {
        name: "holtWintersConfidenceArea",
        doc: "The area between the Holt-Winters confidence bands of each series, to be drawn stacked.",
        example: "holtWintersConfidenceArea(business.orders.eu,3)",
        params: &[&SERIES, &DELTA, &BOOTSTRAP, &SEASONALITY],
        needs: Some(|args, ask| Ok(Needs::Ranges(vec![bootstrapped(args, ask)]))),
        eval: Eval::Series(|call| {
            let area = |bands: Bands| {
                let [mut lower, mut upper] = between(bands.lower, bands.upper);
                for series in [&mut lower, &mut upper] {
                    series.tags_mut().remove("areaBetween");
                    series.tags_mut().set("holtWintersConfidenceArea", "1");
                    let name = series.name.replace("areaBetween", "holtWintersConfidenceArea");
                    *series = series.clone().renamed(name);
                }
                [lower, upper]
            };
            Ok(bands(call, 0).into_iter().flat_map(area).collect())
        }),
        ..HOLT_WINTERS
    },
    Function {
        name: "areaBetween",
        group: Group::Graph,
        doc: "Fills the area between exactly two series, the lower one first, when the graph is drawn stacked. `group` \
              makes a list of two.",
        example: "areaBetween(group(edge.zeros,edge.ramp))",
        eval: Eval::Series(|call| {
            let mut series = call.series(&SERIES).into_iter();
            match (series.next(), series.next(), series.next()) {
                // Metrics that do not exist are no mistake.
                (None, ..) => Ok(Vec::new()),
                (Some(lower), Some(upper), None) => Ok(between(lower, upper).into()),
                (_, second, _) => {
                    let count = if second.is_none() { 1 } else { 3 + series.count() };
                    Err(EvalError::argument(&SERIES, format!("exactly two series are needed, not {count}")))
                }
            }
        }),
        ..HOLT_WINTERS
    },
];

fn bootstrapped(args: &Args, ask: &Ask<'_>) -> crate::series::TimeRange {
    ask.range.reaching_back(args.get(&BOOTSTRAP).seconds)
}

/// The two edges of an area, as the graph draws it: the lower one holds the upper one up and is not seen.
fn between(mut lower: Series, mut upper: Series) -> [Series; 2] {
    lower.style_mut().stacked = true;
    lower.style_mut().invisible = true;
    upper.style_mut().stacked = true;
    upper.tags_mut().set("areaBetween", "1");
    lower.tags = upper.tags.clone();
    let name = format!("areaBetween({})", upper.path_expression);
    [lower.named(name.clone()), upper.named(name)]
}

struct Setting {
    bootstrap: i64,
    season: i64,
}

/// What is predicted for the asked range.
struct Forecast {
    predictions: Vec<f64>,
    deviations: Vec<f64>,
}

impl Setting {
    fn of(args: &Args) -> Self {
        Self { bootstrap: args.get(&BOOTSTRAP).seconds, season: args.get(&SEASONALITY).seconds }
    }

    fn forecast(&self, series: &Series) -> Forecast {
        let step = series.step().seconds();
        let season = usize::try_from(self.season.div_euclid(step)).unwrap_or(0).max(2);
        let (predictions, deviations) = analyse(series.values(), season);
        let skipped = self.bootstrap.div_euclid(step);
        Forecast { predictions: tail(predictions, skipped), deviations: tail(deviations, skipped) }
    }

    /// What is computed for the asked range as a series.
    fn result(&self, series: &Series, name: String, values: Vec<f64>) -> Series {
        computed(series, name, series.start() + self.bootstrap, values)
    }
}

/// A series that is computed from another: tags, end and xFilesFactor are kept, how it is consolidated is not.
fn computed(series: &Series, name: String, start: i64, values: Vec<f64>) -> Series {
    let mut new = Series::with_tags(name, series.tags.clone(), start, series.step(), values).ending(series.end());
    new.x_files_factor = series.x_files_factor;
    new
}

/// All but the first `count` values; of a negative count, the last so many.
fn tail(mut values: Vec<f64>, count: i64) -> Vec<f64> {
    let magnitude = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(values.len());
    let first = if count < 0 { values.len() - magnitude } else { magnitude };
    values.split_off(first)
}

/// Predictions and their usual errors, point by point. `season` is in points.
///
/// The smoothing factors are graphite-web's: 0.1 for level and season, 0.0035 for the trend. A point that is absent
/// resets trend, season and error there, and leaves nothing to predict the next one from.
fn analyse(values: &[f64], season: usize) -> (Vec<f64>, Vec<f64>) {
    const LEVEL: f64 = 0.1;
    const TREND: f64 = 0.0035;
    const SEASON: f64 = 0.1;
    let (mut seasonals, mut predictions, mut deviations) =
        (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()), Vec::<f64>::with_capacity(values.len()));
    let ago = |history: &[f64], i: usize| i.checked_sub(season).and_then(|j| history.get(j)).copied().unwrap_or(0.0);
    let (mut last_level, mut last_trend, mut next) = (f64::NAN, 0.0, f64::NAN);
    for (i, &actual) in values.iter().enumerate() {
        if actual.is_nan() {
            (last_level, last_trend) = (f64::NAN, 0.0);
            seasonals.push(0.0);
            predictions.push(next);
            deviations.push(0.0);
            next = f64::NAN;
            continue;
        }
        if last_level.is_nan() {
            last_level = actual;
        }
        let prediction = if i == 0 { actual } else { next };
        let last_seasonal = ago(&seasonals, i);
        let level = LEVEL * (actual - last_seasonal) + (1.0 - LEVEL) * (last_level + last_trend);
        let trend = TREND * (level - last_level) + (1.0 - TREND) * last_trend;
        let error = (actual - if prediction.is_nan() { 0.0 } else { prediction }).abs();
        next = level + trend + ago(&seasonals, i + 1);
        seasonals.push(SEASON * (actual - level) + (1.0 - SEASON) * last_seasonal);
        predictions.push(prediction);
        deviations.push(SEASON * error + (1.0 - SEASON) * ago(&deviations, i));
        (last_level, last_trend) = (level, trend);
    }
    (predictions, deviations)
}

struct Bands {
    /// Name of the series that they are of.
    of: std::sync::Arc<str>,
    lower: Series,
    upper: Series,
}

fn bands(call: &mut Call<'_>, range: usize) -> Vec<Bands> {
    let (setting, Amount(delta)) = (Setting::of(call.args), call.args.get(&DELTA));
    let of = |series: Series| {
        let forecast = setting.forecast(&series);
        let at = |sign: f64| {
            let pairs = forecast.predictions.iter().zip(&forecast.deviations);
            pairs.map(|(prediction, deviation)| prediction + sign * (delta * deviation)).collect()
        };
        let band = |which: &str, values| {
            let name = format!("holtWintersConfidence{which}({})", series.name);
            let mut band = setting.result(&series, name, values);
            for tag in ["Forecast", "Deviation", "ConfidenceUpper", "ConfidenceLower"] {
                band.tags_mut().set(&format!("holtWinters{tag}"), "1");
            }
            band.path_expression = series.path_expression.clone();
            band
        };
        Bands { lower: band("Lower", at(-1.0)), upper: band("Upper", at(1.0)), of: series.name.clone() }
    };
    call.series_at(&SERIES, range).into_iter().map(of).collect()
}

/// By how much each value lies outside the bands.
fn outside(series: &Series, bands: &Bands) -> Vec<f64> {
    let one = |(i, &value): (usize, &f64)| {
        let (lower, upper) = (bands.lower.values(), bands.upper.values());
        let band = if bands.upper.step() == series.step() { Some(i) } else { covering(&bands.upper, series.time(i)) };
        let Some((lower, upper)) = band.and_then(|b| Some((lower.get(b)?, upper.get(b)?))) else { return 0.0 };
        // Comparisons with an absent value are false.
        if value > *upper {
            value - upper
        } else if value < *lower {
            value - lower
        } else {
            0.0
        }
    };
    series.values().iter().enumerate().map(one).collect()
}

/// The point of a series with another step that covers `time`: a coarser archive's point stands for the time from its
/// timestamp to the next one.
fn covering(series: &Series, time: i64) -> Option<usize> {
    let step: Step = series.step();
    usize::try_from((time - series.start()).div_euclid(step.seconds())).ok()
}
