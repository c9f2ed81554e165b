//! Names with values in them, and numbers with the prefixes of a unit system (`1.5k`, `2.00Gi`).

use super::{Call, Eval, EvalError, Function, Group, Literal, Param, SeriesList, Value};
use crate::series::{Aggregation, Series, float_repr};

const SERIES: Param<SeriesList> = Param::required("seriesList");
/// graphite-web offers the names of all aggregation functions here, also in their older spelling, which then show as
/// `(?)`.
const VALUE_TYPES: Param<String> = Param::optional("valuesTypes").multiple().options(VALUE_TYPE_OPTIONS);
/// The most values in one name.
const MAX_VALUES: usize = 100;
const SYSTEM: Param<UnitSystem> = Param::optional("system").options(&[Literal::Text("binary"), Literal::Text("si")]);
const UNITS: Param<String> = Param::optional("units");

/// What the functions of this file have in common.
const LEGEND: Function = Function::of(Group::Alias, &[&SERIES]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cactiStyle",
        group: Group::Special,
        doc: "Adds the last, greatest and least value to each name, in columns (in a font of fixed width). `system` \
              \"si\" shortens values by powers of 1000, \"binary\" by powers of 1024; `units` is put after them. \
              Columns are aligned among the series of one call.",
        example: "cactiStyle(servers.web01.memory.*,\"binary\",\"B\")",
        params: &[&SERIES, &SYSTEM, &UNITS],
        eval: Eval::Series(|call| Ok(cacti_style(call))),
        ..LEGEND
    },
    Function {
        name: "legendValue",
        doc: "Adds values to each name: any of the aggregation functions, such as \"last\", \"avg\", \"max\", over all \
              points. A last argument of \"si\" or \"binary\" shortens them by powers of 1000 or 1024 and puts them in \
              columns.",
        example: "legendValue(servers.*.cpu.user,\"avg\",\"max\",\"si\")",
        params: &[&SERIES, &VALUE_TYPES],
        eval: Eval::Series(legend_value),
        ..LEGEND
    },
];

/// Which prefixes shorten a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitSystem {
    /// Powers of 1000: k, M, G, T, P.
    Si,
    /// Powers of 1024: Ki, Mi, Gi, Ti, Pi.
    Binary,
    /// Seconds as minutes, hours, days, months of 30 days, years.
    Seconds,
    /// The same of milliseconds.
    Milliseconds,
    /// None.
    None,
}

const DAY: f64 = 86_400.0;

impl UnitSystem {
    /// By graphite-web's name: `si`, `binary`, `sec`, `msec`, `none`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "si" => Self::Si,
            "binary" => Self::Binary,
            "sec" => Self::Seconds,
            "msec" => Self::Milliseconds,
            "none" => Self::None,
            _ => return None,
        })
    }

    /// Prefixes with their sizes, greatest first.
    fn prefixes(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Si => &[("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)],
            Self::Binary => &[
                ("Pi", 1_125_899_906_842_624.0),
                ("Ti", 1_099_511_627_776.0),
                ("Gi", 1_073_741_824.0),
                ("Mi", 1_048_576.0),
                ("Ki", 1024.0),
            ],
            Self::Seconds => &[("Y", 365.0 * DAY), ("M", 30.0 * DAY), ("D", DAY), ("H", 3600.0), ("m", 60.0)],
            Self::Milliseconds => &[
                ("Y", 365_000.0 * DAY),
                ("M", 30_000.0 * DAY),
                ("D", 1000.0 * DAY),
                ("H", 3_600_000.0),
                ("m", 60_000.0),
                ("s", 1000.0),
            ],
            Self::None => &[],
        }
    }

    /// The number divided by the greatest prefix that it reaches, and that prefix. With `step`, the distance of two
    /// labels of an axis, a prefix greater than it is not used, so that labels stay apart.
    #[must_use]
    pub fn format(self, value: f64, step: Option<f64>) -> (f64, &'static str) {
        let fits = |size: f64| value.abs() >= size && step.is_none_or(|s| s >= size);
        let (scaled, prefix) = self
            .prefixes()
            .iter()
            .find(|(_, size)| fits(*size))
            .map_or((value, ""), |(prefix, size)| (value / size, *prefix));
        // What is left of a whole number by rounding is not shown.
        let whole = value > 1.0 && scaled - scaled.floor() < 1e-11;
        (if whole { scaled.floor() } else { scaled }, prefix)
    }
}

impl super::Argument for UnitSystem {
    const KIND: super::Kind = super::Kind::String;
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.python_str();
        // An empty text is "no system".
        if text.is_empty() {
            return Ok(Self::None);
        }
        Self::by_name(&text).ok_or_else(|| format!("{value} is not a unit system; there are si, binary, sec, msec"))
    }
}

const VALUE_TYPE_OPTIONS: &[Literal] = &[
    Literal::Text("average"),
    Literal::Text("averageSeries"),
    Literal::Text("avg"),
    Literal::Text("avgSeries"),
    Literal::Text("avg_zero"),
    Literal::Text("avg_zeroSeries"),
    Literal::Text("binary"),
    Literal::Text("count"),
    Literal::Text("countSeries"),
    Literal::Text("current"),
    Literal::Text("currentSeries"),
    Literal::Text("diff"),
    Literal::Text("diffSeries"),
    Literal::Text("last"),
    Literal::Text("lastSeries"),
    Literal::Text("max"),
    Literal::Text("maxSeries"),
    Literal::Text("median"),
    Literal::Text("medianSeries"),
    Literal::Text("min"),
    Literal::Text("minSeries"),
    Literal::Text("multiply"),
    Literal::Text("multiplySeries"),
    Literal::Text("range"),
    Literal::Text("rangeOf"),
    Literal::Text("rangeOfSeries"),
    Literal::Text("rangeSeries"),
    Literal::Text("si"),
    Literal::Text("stddev"),
    Literal::Text("stddevSeries"),
    Literal::Text("sum"),
    Literal::Text("sumSeries"),
    Literal::Text("total"),
    Literal::Text("totalSeries"),
];

fn legend_value(call: &mut Call<'_>) -> Result<Vec<Series>, EvalError> {
    let mut types = call.args.all(&VALUE_TYPES);
    if types.len() > MAX_VALUES {
        return Err(EvalError::argument(&VALUE_TYPES, format!("{} values are more than {MAX_VALUES}", types.len())));
    }
    let system = types.last().map(String::as_str).filter(|t| matches!(*t, "si" | "binary"));
    let system = system.and_then(UnitSystem::by_name);
    if system.is_some() {
        types.pop();
    }
    let named = call.series(&SERIES).into_iter().map(|s| {
        let mut name = s.name.to_string();
        for kind in &types {
            let function = Aggregation::by_name(kind);
            let value = function.map(|f| f.apply(s.values()));
            name = match system {
                None => {
                    let shown = match (function, value) {
                        (None, _) | (_, None) => "(?)".into(),
                        (Some(_), Some(v)) if v.is_nan() => "None".into(),
                        (Some(Aggregation::Count), Some(v)) => format!("{v:.0}"),
                        (Some(_), Some(v)) => float_repr(v),
                    };
                    format!("{name} ({kind}: {shown})")
                }
                Some(system) => {
                    let shown = match value {
                        None => "(?)".into(),
                        Some(v) if v.is_nan() => "None".into(),
                        Some(v) => {
                            let (scaled, prefix) = system.format(v, None);
                            format!("{scaled:.2}{prefix}")
                        }
                    };
                    format!("{name:<20}{kind:<5}{shown:<10}")
                }
            };
        }
        s.named(name)
    });
    Ok(named.collect())
}

fn cacti_style(call: &mut Call<'_>) -> Vec<Series> {
    let system = call.args.find(&SYSTEM).unwrap_or(UnitSystem::None);
    let units = call.args.find(&UNITS).filter(|u| !u.is_empty());
    let format = |value: f64| {
        let (scaled, prefix) = system.format(value, None);
        match &units {
            Some(units) => format!("{scaled:.2} {prefix}{units}"),
            None => format!("{scaled:.2}{prefix}"),
        }
    };
    let series = call.series(&SERIES);
    let columns = |function: Aggregation| -> (Vec<String>, usize) {
        let values: Vec<f64> = series.iter().map(|s| function.apply(s.values())).collect();
        // A column is as wide as its whole parts need, and three more; an absent value and 0 count as 3.
        let whole = |v: &f64| if v.is_nan() || *v == 0.0 { 3.0 } else { v.trunc() };
        let width = values.iter().map(|v| format(whole(v)).chars().count()).max().unwrap_or(0) + 3;
        let texts = values.iter().map(|v| if v.is_nan() { "nan".into() } else { format(*v) });
        (texts.collect(), width)
    };
    let (last, last_width) = columns(Aggregation::Last);
    let (max, max_width) = columns(Aggregation::Max);
    let (min, min_width) = columns(Aggregation::Min);
    let name_width = series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    let named = series.into_iter().enumerate().map(|(i, s)| {
        let name = format!(
            "{:<name_width$} Current:{:<last_width$} Max:{:<max_width$} Min:{:<min_width$} ",
            s.name, last[i], max[i], min[i]
        );
        s.named(name)
    });
    named.collect()
}
