//! Series as lines: thinned out to the width of the picture, joined as asked for, split at gaps.

use crate::series::Series;

use super::options::LineMode;
use super::y_axis::YAxis;

/// The values of a series as they are drawn: the first at `start`, each other `step` seconds later.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Points {
    pub start: i64,
    pub step: f64,
    pub values: Vec<f64>,
}

/// The series' values, joined in groups until each has `min_step` of `width` pixels, of which all are `seconds`.
pub(super) fn points(series: &Series, seconds: i64, width: f64, min_step: f64) -> Points {
    let step = series.step().seconds() as f64;
    let count = seconds.max(1) as f64 / step;
    let mut group = 1.0_f64;
    if min_step > 0.0 && width / count < min_step {
        group = (count / (width / min_step).floor().max(1.0)).ceil();
    }
    let group = (group as usize).clamp(1, series.len().max(1));
    Points { start: series.start(), step: step * group as f64, values: series.consolidated(group) }
}

/// How points become lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joining {
    pub mode: LineMode,
    /// How many absent points a connected line bridges.
    pub limit: f64,
    pub null_as_zero: bool,
}

/// Lines of `(seconds from origin, place on the axis)`, in order.
///
/// A line goes on level for one step into a gap, so that a point with no neighbours is seen too.
pub(super) fn lines(points: &Points, origin: i64, axis: &YAxis, how: Joining) -> Vec<Vec<(f64, f64)>> {
    let mut lines: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut line: Vec<(f64, f64)> = Vec::new();
    let mut absent = 0_usize;
    let begin = points.start.saturating_sub(origin) as f64;
    for (i, value) in points.values.iter().enumerate() {
        let value = if value.is_nan() && how.null_as_zero { 0.0 } else { *value };
        let x = begin + points.step * i as f64;
        let Some(y) = axis.place(value) else {
            if how.mode != LineMode::Connected {
                end(&mut lines, &mut line, x);
            }
            absent += 1;
            continue;
        };
        if how.mode == LineMode::Connected && absent as f64 > how.limit {
            let x = line.last().map_or(x, |(last, _)| last + points.step);
            end(&mut lines, &mut line, x);
        }
        line.push((x, y));
        if how.mode == LineMode::Staircase {
            line.push((x + points.step, y));
        }
        absent = 0;
    }
    let alone = line.len() == 1;
    let last = line.last().map_or(begin, |(x, _)| *x);
    end(&mut lines, &mut line, if alone { last + points.step } else { last });
    lines
}

/// Ends a line at `x`, as high as its last point.
fn end(lines: &mut Vec<Vec<(f64, f64)>>, line: &mut Vec<(f64, f64)>, x: f64) {
    let Some((last, y)) = line.last().copied() else { return };
    if last < x {
        line.push((x, y));
    }
    lines.push(std::mem::take(line));
}

/// The values of all series, each on top of the sum of those before it, point by point.
pub(super) fn stack<'a>(all: impl Iterator<Item = &'a mut Points>) {
    let mut total: Vec<f64> = Vec::new();
    for points in all {
        if total.len() < points.values.len() {
            total.resize(points.values.len(), 0.0);
        }
        for (value, total) in points.values.iter_mut().zip(&mut total) {
            if !value.is_nan() {
                *total += *value;
                *value = *total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::UnitSystem;
    use crate::graph::options::AxisWishes;
    use crate::graph::y_axis::AxisRules;
    use crate::series::Step;

    const GAP: f64 = f64::NAN;

    fn series(step: i64, values: Vec<f64>) -> Series {
        Series::new("a", 600, Step::new(step).expect("positive"), values)
    }

    fn drawn(mode: LineMode, values: &[f64]) -> Vec<Vec<(f64, f64)>> {
        let wishes = AxisWishes::default();
        let axis = YAxis::new(0.0, 9.0, AxisRules { wishes, divisors: &[4], units: UnitSystem::Si, base: None });
        let points = Points { start: 100, step: 10.0, values: values.to_vec() };
        lines(&points, 90, &axis, Joining { mode, limit: 2.0, null_as_zero: false })
    }

    #[test]
    fn thinning() {
        // 100 points on 50 pixels: two for each.
        let thin = points(&series(60, (0..100).map(f64::from).collect()), 6000, 50.0, 1.0);
        assert_eq!((thin.step, thin.values.len(), thin.values[0]), (120.0, 50, 0.5));
        // With room enough nothing is joined, nor when it is switched off.
        assert_eq!(points(&series(60, vec![1.0; 100]), 6000, 100.0, 1.0).values.len(), 100);
        assert_eq!(points(&series(60, vec![1.0; 100]), 6000, 5.0, 0.0).values.len(), 100);
        assert_eq!(points(&series(60, vec![]), 0, 0.0, 1.0).values.len(), 0);
    }

    #[test]
    fn modes() {
        let values = [1.0, 2.0, GAP, 4.0, GAP, GAP, GAP, 5.0];
        assert_eq!(
            drawn(LineMode::Slope, &values),
            [
                vec![(10.0, 1.0), (20.0, 2.0), (30.0, 2.0)],
                vec![(40.0, 4.0), (50.0, 4.0)],
                vec![(80.0, 5.0), (90.0, 5.0)]
            ]
        );
        assert_eq!(
            drawn(LineMode::Staircase, &values),
            [
                vec![(10.0, 1.0), (20.0, 1.0), (20.0, 2.0), (30.0, 2.0)],
                vec![(40.0, 4.0), (50.0, 4.0)],
                vec![(80.0, 5.0), (90.0, 5.0)]
            ]
        );
        // One gap is bridged, three are not.
        assert_eq!(
            drawn(LineMode::Connected, &values),
            [vec![(10.0, 1.0), (20.0, 2.0), (40.0, 4.0), (50.0, 4.0)], vec![(80.0, 5.0), (90.0, 5.0)]]
        );
        assert!(drawn(LineMode::Slope, &[GAP, f64::INFINITY]).is_empty());
    }

    #[test]
    fn stacking() {
        let of = |values: &[f64]| Points { start: 0, step: 1.0, values: values.to_vec() };
        let mut all = [of(&[1.0, GAP, 3.0]), of(&[1.0, 1.0]), of(&[1.0, 1.0, 1.0])];
        stack(all.iter_mut());
        assert_eq!(all[1].values, [2.0, 1.0]);
        assert_eq!(all[2].values, [3.0, 2.0, 4.0]);
    }
}
