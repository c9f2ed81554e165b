//! `maxDataPoints`: series thinned out to about as many points as a client can show.
//!
//! Copied from graphite-web with all that is odd about it, because refreshing dashboards depend on it: the start is
//! moved forward to a multiple of the new step, so that the groups of points stay the same when time goes on, but one
//! point less is dropped than the start moves, so the labels are one step late.

use std::borrow::Cow;
use std::num::NonZeroU64;

use crate::series::Series;

/// Reads the parameter: a number of points. What is not all digits, or is 0, is no limit.
#[must_use]
pub fn max_data_points(text: &str) -> Option<NonZeroU64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A number too large for the type limits nothing.
    text.parse().ok()
}

/// The points of one series that are shown: the first is at `start`, each other `step` seconds after the one before.
pub(super) struct Points<'a> {
    pub(super) start: i64,
    pub(super) step: i64,
    pub(super) values: Cow<'a, [f64]>,
}

/// The points of each series, in the same order; at most `limit` each, give or take one.
pub(super) fn thinned(series: &[Series], limit: Option<NonZeroU64>) -> Vec<Points<'_>> {
    let start = series.iter().map(Series::start).min().unwrap_or(0);
    let end = series.iter().map(Series::end).max().unwrap_or(0);
    series.iter().map(|s| shown(thin(s, (end - start) as f64, limit), s.end())).collect()
}

fn thin(series: &Series, seconds: f64, limit: Option<NonZeroU64>) -> Points<'_> {
    let (start, step) = (series.start(), series.step().seconds());
    let all = Points { start, step, values: Cow::Borrowed(series.values()) };
    let Some(limit) = limit.map(NonZeroU64::get).filter(|_| !series.is_empty()) else { return all };
    if limit == 1 {
        let values = Cow::Owned(series.consolidated(series.len()));
        return Points { start, step: step.saturating_mul(series.len() as i64), values };
    }
    let points = seconds / step as f64;
    if (limit as f64) >= points {
        return all;
    }
    let group = (points / limit as f64).ceil() as i64;
    let group_step = group.saturating_mul(step);
    let nudge = group_step + start.rem_euclid(step) - start.rem_euclid(group_step);
    let dropped = usize::try_from(nudge / step - 1).unwrap_or(0).min(series.len());
    let group = group as usize;
    let join = |values: &[f64]| series.consolidation.apply(values, group, series.x_files_factor);
    let values = series.values()[dropped..].chunks(group).map(join).collect();
    Points { start: start + nudge, step: group_step, values: Cow::Owned(values) }
}

/// Only the points that lie within the series' stated end, that second included.
fn shown(mut points: Points<'_>, end: i64) -> Points<'_> {
    let room = (end - points.start).div_euclid(points.step) + 1;
    let len = usize::try_from(room).unwrap_or(0).min(points.values.len());
    match &mut points.values {
        Cow::Borrowed(values) => *values = &values[..len],
        Cow::Owned(values) => values.truncate(len),
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Consolidation, Step};

    fn ramp(start: i64, step: i64, len: usize) -> Series {
        Series::new("a", start, Step::new(step).expect("positive"), (0..len).map(|i| i as f64).collect())
    }

    fn thin_to(limit: u64, series: &[Series]) -> Vec<(i64, i64, Vec<f64>)> {
        thinned(series, NonZeroU64::new(limit)).into_iter().map(|p| (p.start, p.step, p.values.into_owned())).collect()
    }

    #[test]
    fn the_parameter() {
        assert_eq!(max_data_points("43200").map(NonZeroU64::get), Some(43_200));
        for text in ["", "0", "-5", " 5", "abc", "1.5", "99999999999999999999999"] {
            assert_eq!(max_data_points(text), None, "{text}");
        }
    }

    #[test]
    fn one_point_is_all_of_them() {
        assert_eq!(thin_to(1, &[ramp(0, 60, 10)]), [(0, 600, vec![4.5])]);
        assert_eq!(thin_to(1, &[ramp(60, 60, 1)]), [(60, 60, vec![0.0])]);
        assert_eq!(thin_to(1, &[ramp(60, 60, 0)]), [(60, 60, vec![])]);
    }

    /// Ten points at 60, 120 … 600 (so the end is 660), three wanted: groups of ceil(10 / 3) = 4, which is 240 s. The
    /// start moves to 240, three steps on, for which two points are dropped.
    #[test]
    fn the_start_moves_to_a_multiple() {
        assert_eq!(thin_to(3, &[ramp(60, 60, 10)]), [(240, 240, vec![3.5, 7.5])]);
        // An aligned start moves by a whole group, and all but one point of the group are lost.
        assert_eq!(thin_to(3, &[ramp(240, 60, 10)]), [(480, 240, vec![4.5, 8.0])]);
        // Off the grid by 7 s: the rest stays.
        assert_eq!(thin_to(3, &[ramp(67, 60, 10)]), [(247, 240, vec![3.5, 7.5])]);
        // Enough room: nothing changes.
        assert_eq!(thin_to(10, &[ramp(60, 60, 10)])[0].2.len(), 10);
    }

    /// The range is that of all series: 600 s, so of the one with step 300 two points are few enough.
    #[test]
    fn the_range_is_that_of_all_series() {
        let fine = ramp(60, 60, 10);
        let coarse = ramp(300, 300, 2).ending(660);
        let thin = thin_to(2, &[fine, coarse]);
        // 10 points / 2: groups of 5; the start moves from 60 to 300, four steps, three points dropped.
        assert_eq!(thin[0], (300, 300, vec![5.0, 8.5]));
        assert_eq!(thin[1], (300, 300, vec![0.0, 1.0]));
    }

    #[test]
    fn each_series_is_joined_its_own_way() {
        let mut sum = Series::new("a", 60, Step::SECOND, vec![1.0, 2.0, f64::NAN, 4.0]);
        sum.consolidation = Consolidation::Sum;
        let mut strict = sum.clone();
        strict.x_files_factor = 1.0;
        // Start 60 is a multiple of 2, so it moves by 2 s and one point is dropped.
        let thin = thin_to(2, &[sum, strict]);
        assert_eq!(thin[0], (62, 2, vec![2.0, 4.0]));
        assert!(thin[1].2.iter().all(|v| v.is_nan()) && thin[1].2.len() == 2);
    }

    #[test]
    fn points_beyond_the_end_are_not_shown() {
        let vertical = Series::new("v", 100, Step::SECOND, vec![1.0, 1.0]).ending(100);
        assert_eq!(thin_to(0, &[vertical]), [(100, 1, vec![1.0])]);
        let constant = ramp(0, 300, 3).ending(600);
        assert_eq!(thin_to(0, &[constant])[0].2.len(), 3);
        assert_eq!(thin_to(0, &[ramp(0, 60, 3).ending(-60)])[0].2.len(), 0);
    }

    proptest::proptest! {
        #[test]
        fn no_series_panics(start in -1000_i64..1000, step in 1_i64..100, len in 0_usize..50, end in -1000_i64..9000, limit in 0_u64..60) {
            let thin = thin_to(limit, &[ramp(start, step, len), ramp(start, step, len).ending(end)]);
            proptest::prop_assert!(thin.iter().all(|t| t.2.len() <= len));
        }
    }
}
