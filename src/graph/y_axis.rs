//! The y axis: from where to where, and what stands beside it.
//!
//! Steps are 1, 2 or 5 times a power of ten (powers of two for binary units); of those that divide the axis into one
//! of the wanted numbers of parts, the one that leaves the least room unused. All of it is finite and bounded, whatever
//! the data: not more than a thousand labels, and the top is above the bottom.

use super::options::{AxisWishes, Top};
use super::units::label;
use crate::functions::UnitSystem;

/// Of a step: what is nearer is the same.
const NEAR: f64 = 1e-4;

/// Numbers beyond this are as good as this, so that differences stay finite.
const LARGEST: f64 = 1e300;

/// Logarithms of numbers less than this are those of this.
const LEAST_POSITIVE: f64 = 1e-300;

/// The most labels.
const MOST_LABELS: f64 = 1000.0;

/// A y axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct YAxis {
    /// Value at the lower edge.
    pub bottom: f64,
    /// Value at the upper edge; greater than `bottom`.
    pub top: f64,
    /// Distance of the labels; a logarithmic axis has none.
    pub step: Option<f64>,
    /// Base of the logarithm.
    pub base: Option<f64>,
    /// Value and text, from the bottom up.
    pub labels: Vec<(f64, String)>,
}

/// What does not depend on the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisRules<'a> {
    pub wishes: AxisWishes,
    pub divisors: &'a [u32],
    pub units: UnitSystem,
    pub base: Option<f64>,
}

/// The range of an axis, and which of its ends were asked for.
struct Ends {
    min: f64,
    max: f64,
    limit: Option<f64>,
    fixed_min: bool,
    fixed_max: bool,
    /// The maximum is that of the data, without room above it.
    exact: bool,
}

impl YAxis {
    /// An axis for data from `least` to `greatest`.
    pub fn new(least: f64, greatest: f64, rules: AxisRules<'_>) -> Self {
        match rules.base {
            None => Self::linear(Ends::new(least, greatest, rules.wishes), rules),
            Some(base) => Self::logarithmic(least, greatest, base, rules),
        }
    }

    fn linear(mut ends: Ends, rules: AxisRules<'_>) -> Self {
        ends.part();
        let chosen = |ends: &Ends| step(ends.min, ends.max, rules.divisors, rules.units == UnitSystem::Binary);
        let mut step = rules.wishes.step.unwrap_or_else(|| chosen(&ends));
        let (mut bottom, mut top) = ends.rounded(step);
        if (top - bottom) / step > MOST_LABELS || step.is_subnormal() {
            step = chosen(&ends);
            (bottom, top) = ends.rounded(step);
        }
        if top <= bottom {
            top = bottom + distance(bottom);
        }
        bottom += 0.0;
        let span = top - bottom;
        let first = (bottom / step - NEAR).ceil();
        let count = ((top / step + NEAR).floor() - first).clamp(0.0, MOST_LABELS) as u32;
        let labels = (0..=count).map(|i| step * (first + f64::from(i)));
        let labels = labels.map(|value| (value, label(rules.units, value, span, Some(step)))).collect();
        Self { bottom, top, step: Some(step), base: None, labels }
    }

    /// From a power of the base to a power of the base. What is not positive has no place on it.
    fn logarithmic(least: f64, greatest: f64, base: f64, rules: AxisRules<'_>) -> Self {
        let positive = |value: Option<f64>| value.filter(|v| *v > 0.0);
        let wishes = AxisWishes {
            min: positive(rules.wishes.min),
            max: rules.wishes.max.filter(|m| !matches!(m, Top::At(at) if *at <= 0.0)),
            limit: positive(rules.wishes.limit),
            step: None,
        };
        let (least, greatest) = if greatest > 0.0 { (least, greatest) } else { (1.0, base) };
        let mut ends = Ends::new(least.max(LEAST_POSITIVE), greatest.max(LEAST_POSITIVE), wishes);
        ends.part();
        let power = |value: f64| value.max(LEAST_POSITIVE).ln() / base.ln();
        let near = 1e-9;
        let lowest = (power(ends.min) + near).floor();
        let highest = (power(ends.max) - near).ceil().max(lowest + 1.0);
        let every = ((highest - lowest) / MOST_LABELS).ceil().max(1.0);
        let (bottom, top) = (base.powf(lowest), base.powf(highest));
        let count = ((highest - lowest) / every) as u32;
        let labels = (0..=count).map(|i| base.powf(lowest + every * f64::from(i)));
        let labels = labels.map(|value| (value, label(rules.units, value, top - bottom, None))).collect();
        Self { bottom, top, step: None, base: Some(base), labels }
    }

    /// Where a value is, between [`YAxis::ends`]. `None` for what has no place: nothing known, infinite, or not
    /// positive on a logarithmic axis.
    pub fn place(&self, value: f64) -> Option<f64> {
        match self.base {
            _ if !value.is_finite() => None,
            None => Some(value.clamp(-LARGEST, LARGEST)),
            Some(base) => (value > 0.0).then(|| value.max(LEAST_POSITIVE).ln() / base.ln()),
        }
    }

    /// The places of bottom and top.
    pub fn ends(&self) -> (f64, f64) {
        let place = |value| self.place(value).unwrap_or(value);
        (place(self.bottom), place(self.top))
    }

    /// How high a place is: 0 at the bottom, 1 at the top.
    pub fn height(&self, place: f64) -> f64 {
        let (low, high) = self.ends();
        (place - low) / (high - low)
    }

    /// The place that is so high.
    pub fn at_height(&self, height: f64) -> f64 {
        let (low, high) = self.ends();
        low + height * (high - low)
    }

    /// Where areas begin: at 0, or at the bottom where there is no 0.
    pub fn base_line(&self) -> f64 {
        self.place(0.0).unwrap_or(self.ends().0)
    }
}

impl Ends {
    fn new(least: f64, greatest: f64, wishes: AxisWishes) -> Self {
        let mut ends = Self {
            min: wishes.min.unwrap_or(least).clamp(-LARGEST, LARGEST),
            max: greatest.clamp(-LARGEST, LARGEST),
            limit: wishes.limit,
            fixed_min: wishes.min.is_some(),
            fixed_max: false,
            exact: matches!(wishes.max, Some(Top::Greatest)),
        };
        if let Some(Top::At(max)) = wishes.max {
            ends.max = max.clamp(-LARGEST, LARGEST);
            ends.fixed_max = true;
        }
        if let Some(limit) = ends.limit.filter(|limit| *limit < ends.max) {
            ends.max = limit.clamp(-LARGEST, LARGEST);
            ends.fixed_max = true;
            ends.limit = None;
        }
        ends
    }

    /// Moves the ends apart where they are the same or the wrong way round; those that were asked for stay.
    fn part(&mut self) {
        let size = self.min.abs().max(self.max.abs());
        // Doubles do not tell apart what is nearer.
        if self.max - self.min > size * 1e-12 {
            return;
        }
        if self.fixed_min {
            self.max = self.min + distance(self.min);
        } else if self.fixed_max {
            self.min = self.max - distance(self.max);
        } else {
            let middle = f64::midpoint(self.min, self.max);
            (self.min, self.max) = (middle - distance(size), middle + distance(size));
        }
    }

    /// Ends that were not asked for, at multiples of `step`.
    fn rounded(&self, step: f64) -> (f64, f64) {
        let bottom = if self.fixed_min { self.min } else { step * (self.min / step + NEAR).floor() };
        let top = if self.fixed_max || self.exact { self.max } else { step * (self.max / step - NEAR).ceil() };
        let top = match self.limit {
            Some(limit) if top > limit + NEAR * step => limit,
            _ => top,
        };
        (bottom, top)
    }
}

/// A length for an axis of which only one end is known.
fn distance(end: f64) -> f64 {
    if end.abs() < 1e-9 { 1.0 } else { 0.1 * end.abs() }
}

/// The best distance of labels.
fn step(min: f64, max: f64, divisors: &[u32], binary: bool) -> f64 {
    let span = max - min;
    let most = f64::from(divisors.iter().copied().max().unwrap_or(6));
    let fewest = f64::from(divisors.iter().copied().min().unwrap_or(4));
    let least = span / most;
    let (base, mantissas): (f64, &[f64]) = if binary { (2.0, &[1.0]) } else { (10.0, &[1.0, 2.0, 5.0]) };
    let exponent = (least.ln() / base.ln() - NEAR).floor() as i32;
    let mut best: Option<(f64, f64)> = None;
    // A step as large as the span covers it with two parts, whatever it begins with, so a few powers are enough.
    for exponent in exponent..exponent.saturating_add(30) {
        for step in mantissas.iter().map(|m| m * base.powi(exponent)).filter(|s| *s >= least * (1.0 - NEAR)) {
            if best.is_some_and(|(unused, _)| step * fewest >= 2.0 * unused + span) {
                return best.map_or(step, |(_, best)| best);
            }
            for parts in divisors.iter().copied().map(f64::from) {
                let bottom = step * (min / step + NEAR).floor();
                let top = bottom + step * parts;
                if top >= max - NEAR * step {
                    let unused = (top - max).max(min - bottom);
                    if best.is_none_or(|(least, _)| unused < least) {
                        best = Some((unused, step));
                    }
                }
            }
        }
    }
    best.map_or(span, |(_, step)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: AxisRules<'static> = AxisRules {
        wishes: AxisWishes { min: None, max: None, limit: None, step: None },
        divisors: &[4, 5, 6],
        units: UnitSystem::Si,
        base: None,
    };

    fn texts(axis: &YAxis) -> Vec<&str> {
        axis.labels.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// A constant 50: a tenth of it to each side, so 45 to 55. The least step is 10 / 6, so 2 is tried first: six parts
    /// from 44 reach 56, which leaves 1 unused on both sides. With 5, four parts are more than 10 + 2.
    #[test]
    fn a_constant() {
        let axis = YAxis::new(50.0, 50.0, RULES);
        assert_eq!((axis.bottom, axis.top, axis.step), (44.0, 56.0, Some(2.0)));
        assert_eq!(texts(&axis), ["44.0", "46.0", "48.0", "50.0", "52.0", "54.0", "56.0"]);
        let zero = YAxis::new(0.0, 0.0, RULES);
        assert_eq!((zero.bottom, zero.top), (-1.0, 1.0));
        assert_eq!(texts(&zero), ["-1", "-0.5", "0", "0.50", "1.00"]);
    }

    #[test]
    fn steps() {
        let chosen = |least, greatest| {
            let axis = YAxis::new(least, greatest, RULES);
            (axis.bottom, axis.top, axis.step.expect("linear"))
        };
        assert_eq!(chosen(0.0, 100.0), (0.0, 100.0, 20.0));
        assert_eq!(chosen(0.0, 6000.0), (0.0, 6000.0, 1000.0));
        // 1 unused either way with a step of 20; a step of 50 would leave more.
        assert_eq!(chosen(1.0, 99.0), (0.0, 100.0, 20.0));
        assert_eq!(chosen(-30.0, 30.0), (-30.0, 30.0, 10.0));
        let tenths = YAxis::new(0.0, 0.5, RULES);
        assert_eq!(texts(&tenths), ["0", "0.10", "0.20", "0.30", "0.40", "0.50"]);
        let thousands = YAxis::new(0.0, 5000.0, RULES);
        assert_eq!(texts(&thousands), ["0", "1.0 k", "2.0 k", "3.0 k", "4.0 k", "5.0 k"]);
    }

    #[test]
    fn binary_steps_are_powers_of_two() {
        let axis = YAxis::new(0.0, 4096.0, AxisRules { units: UnitSystem::Binary, ..RULES });
        assert_eq!(axis.step, Some(1024.0));
        assert_eq!(texts(&axis), ["0", "1.0 Ki", "2.0 Ki", "3.0 Ki", "4.0 Ki"]);
    }

    #[test]
    fn wishes() {
        let with = |wishes| {
            let axis = YAxis::new(10.0, 95.0, AxisRules { wishes, ..RULES });
            (axis.bottom, axis.top, axis.labels.len())
        };
        let none = AxisWishes::default();
        assert_eq!(with(AxisWishes { min: Some(0.0), ..none }), (0.0, 100.0, 6));
        assert_eq!(with(AxisWishes { min: Some(0.0), max: Some(Top::Greatest), ..none }), (0.0, 95.0, 5));
        assert_eq!(with(AxisWishes { min: Some(0.0), max: Some(Top::At(50.0)), ..none }), (0.0, 50.0, 6));
        assert_eq!(with(AxisWishes { min: Some(0.0), limit: Some(60.0), ..none }), (0.0, 60.0, 7));
        assert_eq!(with(AxisWishes { min: Some(0.0), limit: Some(97.0), ..none }), (0.0, 97.0, 5));
        assert_eq!(with(AxisWishes { min: Some(0.0), step: Some(25.0), ..none }), (0.0, 100.0, 5));
        // A step far too small is not followed.
        assert_eq!(with(AxisWishes { min: Some(0.0), step: Some(1e-9), ..none }), (0.0, 100.0, 6));
        // The data lie below the wished minimum: a tenth of it above.
        assert_eq!(with(AxisWishes { min: Some(200.0), ..none }), (200.0, 220.0, 5));
        assert_eq!(with(AxisWishes { max: Some(Top::At(5.0)), ..none }), (4.5, 5.0, 6));
    }

    /// 42 000 with `yMin=1` lies between the powers 0 and 5 of ten.
    #[test]
    fn logarithms() {
        let log = |least, greatest, min| {
            let wishes = AxisWishes { min, ..AxisWishes::default() };
            YAxis::new(least, greatest, AxisRules { base: Some(10.0), wishes, ..RULES })
        };
        let axis = log(42_000.0, 42_000.0, Some(1.0));
        assert_eq!((axis.bottom, axis.top), (1.0, 100_000.0));
        assert_eq!(texts(&axis), ["1.0", "10.0", "100.0", "1.0 k", "10.0 k", "100.0 k"]);
        let place = axis.place(42_000.0).expect("positive");
        assert!(place > 4.0 && place < 5.0 && axis.ends() == (0.0, 5.0), "{place}");
        let exact = log(1.0, 1000.0, None);
        assert_eq!((exact.bottom, exact.top.round()), (1.0, 1000.0));
        // Nothing positive: some axis, and no value has a place on it.
        let none = log(-5.0, 0.0, None);
        assert_eq!((none.bottom, none.top, none.place(-5.0)), (1.0, 10.0, None));
        assert_eq!(log(1e-5, 10.0, Some(-3.0)).bottom, 1e-5);
    }

    #[test]
    fn whatever_the_data() {
        let values =
            [0.0, -0.0, 1e-320, -1e-320, 1e-9, 1.0, -1.0, 1e15, 1e15 + 0.125, 1e300, -1e300, f64::MAX, f64::MIN];
        for a in values {
            for b in values {
                for base in [None, Some(2.0), Some(10.0), Some(1.001)] {
                    for min in [None, Some(0.0), Some(1e18)] {
                        let wishes = AxisWishes { min, ..AxisWishes::default() };
                        let axis = YAxis::new(a.min(b), a.max(b), AxisRules { wishes, base, ..RULES });
                        let (bottom, top) = axis.ends();
                        assert!(bottom < top && (top - bottom).is_finite(), "{a} {b} {base:?}: {axis:?}");
                        assert!(axis.labels.len() <= 1002, "{a} {b}: {}", axis.labels.len());
                    }
                }
            }
        }
    }
}
