//! Numbers as the y axis shows them.

use crate::functions::UnitSystem;
use crate::series::format_g;

/// Digits of larger numbers say nothing, because doubles do not have them.
const HUGE: f64 = 1e16;

/// The system of this name, in any case; any other is [`UnitSystem::Si`].
pub(super) fn named(name: &str) -> UnitSystem {
    UnitSystem::by_name(&name.to_ascii_lowercase()).unwrap_or(UnitSystem::Si)
}

/// The label of a value on an axis that spans `span`, with a label every `step`, where there is one.
pub(super) fn label(units: UnitSystem, value: f64, span: f64, step: Option<f64>) -> String {
    let (value, prefix) = units.format(value, step);
    let (span, span_prefix) = units.format(span, step);
    let number = if !(0.1..HUGE).contains(&value) {
        // No label says minus nothing.
        format_g(value + 0.0)
    } else if value < 1.0 {
        format!("{value:.2}")
    } else if span > 3.0 || !prefix.is_empty() || !span_prefix.is_empty() {
        format!("{value:.1}")
    } else if span > 0.1 {
        format!("{value:.2}")
    } else {
        format_g(value)
    };
    if prefix.is_empty() { number } else { format!("{number} {prefix}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels as graphite-web's arithmetic gives them.
    #[test]
    fn labels() {
        let si = |value, span, step| label(UnitSystem::Si, value, span, Some(step));
        assert_eq!(si(0.0, 6000.0, 1000.0), "0");
        assert_eq!(si(1000.0, 6000.0, 1000.0), "1.0 k");
        assert_eq!(si(1_500_000.0, 4e6, 1e6), "1.5 M");
        // With a prefix there is one decimal, however short the axis.
        assert_eq!(si(1_500_000.0, 3e6, 1e6), "1.5 M");
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
        let binary = |value, span, step| label(UnitSystem::Binary, value, span, Some(step));
        assert_eq!(binary(1024.0, 4096.0, 1024.0), "1.0 Ki");
        assert_eq!(binary(3.0 * 1024.0 * 1024.0, 4.0 * 1024.0 * 1024.0, 1024.0 * 1024.0), "3.0 Mi");
        assert_eq!(label(UnitSystem::Seconds, 7200.0, 14_400.0, Some(3600.0)), "2.0 H");
        assert_eq!(label(UnitSystem::Milliseconds, 1500.0, 3000.0, Some(1000.0)), "1.5 s");
        assert_eq!(si(2e40, 4e40, 1e40), "2e+25 P");
        assert_eq!(label(UnitSystem::None, 1_000_000.0, 4e6, Some(1e6)), "1000000.0");
    }

    /// A logarithmic axis has no step.
    #[test]
    fn labels_without_a_step() {
        let si = |value| label(UnitSystem::Si, value, 99_999.0, None);
        let labels: Vec<String> = [1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0].map(si).to_vec();
        assert_eq!(labels, ["1.0", "10.0", "100.0", "1.0 k", "10.0 k", "100.0 k"]);
        assert_eq!(label(UnitSystem::Binary, 2048.0, 2046.0, None), "2.0 Ki");
    }

    #[test]
    fn unknown_systems_are_si() {
        assert_eq!(named("Binary"), UnitSystem::Binary);
        assert_eq!(named("bogus"), UnitSystem::Si);
    }
}
