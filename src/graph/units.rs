//! Numbers as the y axis shows them.

use crate::series::format_g;

/// How large numbers are shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitSystem {
    Si,
    Binary,
    /// Seconds as minutes, hours, days…
    Seconds,
    Milliseconds,
    None,
}

/// Differences below this are rounding errors.
const NOTHING: f64 = 1e-11;

/// Digits of larger numbers say nothing, because doubles do not have them.
const HUGE: f64 = 1e16;

impl UnitSystem {
    /// By name, in any case; any other is [`UnitSystem::Si`].
    pub fn named(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "binary" => Self::Binary,
            "sec" => Self::Seconds,
            "msec" => Self::Milliseconds,
            "none" => Self::None,
            _ => Self::Si,
        }
    }

    /// Prefixes and what they stand for, the largest first.
    fn prefixes(self) -> &'static [(&'static str, f64)] {
        const KI: f64 = 1024.0;
        const MINUTE: f64 = 60.0;
        const HOUR: f64 = 3_600.0;
        const DAY: f64 = 86_400.0;
        match self {
            Self::Si => &[("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)],
            Self::Binary => &[
                ("Pi", KI * KI * KI * KI * KI),
                ("Ti", KI * KI * KI * KI),
                ("Gi", KI * KI * KI),
                ("Mi", KI * KI),
                ("Ki", KI),
            ],
            Self::Seconds => &[("Y", 365.0 * DAY), ("M", 30.0 * DAY), ("D", DAY), ("H", HOUR), ("m", MINUTE)],
            Self::Milliseconds => &[
                ("Y", 365_000.0 * DAY),
                ("M", 30_000.0 * DAY),
                ("D", 1_000.0 * DAY),
                ("H", 1_000.0 * HOUR),
                ("m", 1_000.0 * MINUTE),
                ("s", 1_000.0),
            ],
            Self::None => &[],
        }
    }

    /// The value in the largest unit that neither it nor `step` (the distance of two labels, where there is one) is
    /// less than.
    fn scaled(self, value: f64, step: Option<f64>) -> (f64, &'static str) {
        let fits = |size: f64| value.abs() >= size && step.is_none_or(|step| step >= size);
        let unit = self.prefixes().iter().find(|(_, size)| fits(*size));
        let (scaled, prefix) = unit.map_or((value, ""), |(prefix, size)| (value / size, *prefix));
        let whole = scaled.floor();
        (if scaled - whole < NOTHING && value > 1.0 { whole } else { scaled }, prefix)
    }

    /// The label of a value on an axis that spans `span`.
    pub fn label(self, value: f64, span: f64, step: Option<f64>) -> String {
        let (value, prefix) = self.scaled(value, step);
        let (span, span_prefix) = self.scaled(span, step);
        let number = if !(0.1..HUGE).contains(&value) {
            // No label says minus nothing.
            format_g(value + 0.0)
        } else if value < 1.0 {
            format!("{value:.2}")
        } else if span > 3.0 || span_prefix != prefix {
            format!("{value:.1}")
        } else if span > 0.1 {
            format!("{value:.2}")
        } else {
            format_g(value)
        };
        if prefix.is_empty() { number } else { format!("{number} {prefix}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels as graphite-web's arithmetic gives them.
    #[test]
    fn labels() {
        let si = |value, span, step| UnitSystem::Si.label(value, span, Some(step));
        assert_eq!(si(0.0, 6000.0, 1000.0), "0");
        assert_eq!(si(1000.0, 6000.0, 1000.0), "1.0 k");
        assert_eq!(si(1_500_000.0, 4e6, 1e6), "1.5 M");
        // A span of no more than three has two decimals.
        assert_eq!(si(1_500_000.0, 3e6, 1e6), "1.50 M");
        // The step is less than a thousand, so there is no prefix.
        assert_eq!(si(1000.0, 2000.0, 500.0), "1000.0");
        assert_eq!(si(44.0, 12.0, 2.0), "44.0");
        assert_eq!(si(4.5, 1.0, 0.2), "4.50");
        assert_eq!(si(5.5, 4.0, 0.5), "5.5");
        assert_eq!(si(-250.0, 500.0, 100.0), "-250");
        assert_eq!(si(5.0004, 0.001, 0.0002), "5.0004");
        // No float noise: three times 0.1.
        assert_eq!(si(0.1 * 3.0, 0.5, 0.1), "0.30");
        assert_eq!(si(0.05, 0.1, 0.01), "0.05");
        assert_eq!(si(-0.0, 1.0, 0.2), "0");
        let binary = |value, span, step| UnitSystem::Binary.label(value, span, Some(step));
        assert_eq!(binary(1024.0, 4096.0, 1024.0), "1.0 Ki");
        assert_eq!(binary(3.0 * 1024.0 * 1024.0, 4.0 * 1024.0 * 1024.0, 1024.0 * 1024.0), "3.0 Mi");
        assert_eq!(UnitSystem::Seconds.label(7200.0, 14_400.0, Some(3600.0)), "2.0 H");
        assert_eq!(UnitSystem::Milliseconds.label(1500.0, 3000.0, Some(1000.0)), "1.50 s");
        assert_eq!(si(2e40, 4e40, 1e40), "2e+25 P");
        assert_eq!(UnitSystem::None.label(1_000_000.0, 4e6, Some(1e6)), "1000000.0");
    }

    /// A logarithmic axis has no step.
    #[test]
    fn labels_without_a_step() {
        let label = |value| UnitSystem::Si.label(value, 99_999.0, None);
        let labels: Vec<String> = [1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0].map(label).to_vec();
        assert_eq!(labels, ["1.0", "10.0", "100.0", "1.0 k", "10.0 k", "100.0 k"]);
    }

    #[test]
    fn unknown_systems_are_si() {
        assert_eq!(UnitSystem::named("Binary"), UnitSystem::Binary);
        assert_eq!(UnitSystem::named("bogus"), UnitSystem::Si);
    }
}
