//! Uniting what several backends say about the same series.
//!
//! The answer depends on the *set* of replies alone: neither on their order, nor on one being there twice, nor on
//! merging the result again with one of them. The rules:
//!
//! * Points are compared by timestamp, never by index.
//! * A replica that knows no point at all counts only when no replica knows one.
//! * The finest step wins: its grid is the grid of the answer, extended to the first and the last timestamp that any
//!   replica has.
//! * Replicas on the same grid vote on each timestamp; absent values have no vote. When the vote is a tie, the value
//!   of the more complete replica wins. Each timestamp with more than one value is counted as a mismatch.
//! * A coarser replica fills gaps, with the value of a point for the whole interval that the point stands for
//!   (Graphite's `[t, t + step)`), but only where the finer ones know nothing in all of that interval. So an outage
//!   of a replica is covered, while a lone gap stays a gap and a half-known interval is not counted twice. A point
//!   that is a sum is spread evenly.
//!
//! Names, tags and the rest come from the most complete replica with the finest step.

use std::cmp::Ordering;

use crate::series::{Consolidation, Series, Step};

/// The most points that a merged series may have where it would be longer than its longest replica: what keeps two
/// replies that are an age apart from becoming a series of everything in between.
const MAX_EXTENDED: u64 = 1 << 22;

/// Several replies about one series, united.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The series.
    pub series: Series,
    /// Number of timestamps at which replicas of the same step know different values.
    pub mismatches: u64,
}

/// The series of several answers to the same selector: each name once, sorted by name; and the number of
/// [`Merged::mismatches`].
#[must_use]
pub fn unite(mut answers: Vec<Series>) -> (Vec<Series>, u64) {
    if answers.windows(2).all(|pair| pair[0].name < pair[1].name) {
        return (answers, 0);
    }
    answers.sort_by(|a, b| a.name.cmp(&b.name));
    let mut united: Vec<Series> = Vec::with_capacity(answers.len());
    let mut mismatches = 0;
    let mut answers = answers.into_iter().peekable();
    while let Some(first) = answers.next() {
        if answers.peek().is_none_or(|next| next.name != first.name) {
            united.push(first);
            continue;
        }
        let mut replicas = vec![first];
        while let Some(next) = answers.next_if(|next| next.name == replicas[0].name) {
            replicas.push(next);
        }
        if let Some(merged) = merge(replicas) {
            mismatches += merged.mismatches;
            united.push(merged.series);
        }
    }
    (united, mismatches)
}

/// Replies about the same series as one; `None` when there is none.
#[must_use]
pub fn merge(replicas: Vec<Series>) -> Option<Merged> {
    let mut ranked: Vec<(usize, Series)> = replicas.into_iter().map(|s| (known(s.values()), s)).collect();
    if ranked.iter().any(|(known, _)| *known > 0) {
        ranked.retain(|(known, _)| *known > 0);
    }
    ranked.sort_by(|(known_a, a), (known_b, b)| known_b.cmp(known_a).then_with(|| arbitrary_order(a, b)));
    let ranked: Vec<Series> = ranked.into_iter().map(|(_, s)| s).collect();
    let best = ranked.first()?;
    if ranked.iter().all(|s| same_points(best, s)) {
        return Some(Merged { series: best.clone(), mismatches: 0 });
    }

    let mut mismatches = 0;
    let mut levels = levels(ranked).into_iter();
    let mut grid = levels.next()?.vote(&mut mismatches);
    let coarser: Vec<Grid> = levels.map(|level| level.vote(&mut mismatches)).collect();
    grid.extend(&coarser);
    for level in &coarser {
        grid.fill_gaps(level);
    }
    Some(Merged { series: grid.into_series(), mismatches })
}

fn known(values: &[f64]) -> usize {
    values.iter().filter(|v| !v.is_nan()).count()
}

/// A total order of equally complete replicas. Which one is first has no meaning; that it is always the same one has.
fn arbitrary_order(a: &Series, b: &Series) -> Ordering {
    let numbers = |a: &[f64], b: &[f64]| {
        let differing = a.iter().zip(b).map(|(a, b)| b.total_cmp(a)).find(|order| order.is_ne());
        differing.unwrap_or_else(|| b.len().cmp(&a.len()))
    };
    (a.step(), a.start())
        .cmp(&(b.step(), b.start()))
        .then_with(|| numbers(a.values(), b.values()))
        .then_with(|| a.tags.iter().cmp(b.tags.iter()))
        .then_with(|| a.consolidation.name().cmp(b.consolidation.name()))
        .then_with(|| a.x_files_factor.total_cmp(&b.x_files_factor))
        .then_with(|| a.path_expression.cmp(&b.path_expression))
}

/// Whether both have the same value at the same timestamps.
fn same_points(a: &Series, b: &Series) -> bool {
    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    (a.start(), a.step(), a.len()) == (b.start(), b.step(), b.len()) && a.values().iter().zip(b.values()).all(same)
}

/// Replicas whose points have the same timestamps, as far as they reach; the most complete first.
struct Level {
    step: Step,
    phase: i64,
    replicas: Vec<Series>,
}

/// The finest level first; of levels that have the same step and differ in their phase, that of the best replica.
fn levels(ranked: Vec<Series>) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for series in ranked {
        let (step, phase) = (series.step(), series.start().rem_euclid(series.step().seconds()));
        match levels.iter_mut().find(|l| (l.step, l.phase) == (step, phase)) {
            Some(level) => level.replicas.push(series),
            None => levels.push(Level { step, phase, replicas: vec![series] }),
        }
    }
    levels.sort_by_key(|level| level.step);
    levels
}

impl Level {
    /// One value for each timestamp.
    fn vote(mut self, mismatches: &mut u64) -> Grid {
        let best = self.replicas.remove(0);
        let mut grid = Grid { start: best.start(), step: best.step(), values: best.values().to_vec(), like: best };
        if self.replicas.is_empty() {
            return grid;
        }
        let first = self.replicas.iter().filter(|s| !s.is_empty()).map(Series::start).min();
        let last = self.replicas.iter().filter_map(last_of).max();
        if let (Some(first), Some(last)) = (first, last) {
            grid.extend_to(first, last);
        }
        let mut votes: Vec<(f64, u32)> = Vec::with_capacity(self.replicas.len() + 1);
        for index in 0..grid.values.len() {
            let time = grid.time(index);
            votes.clear();
            let voters = std::iter::once(grid.values[index]).chain(self.replicas.iter().map(|s| value_at(s, time)));
            for value in voters.filter(|v| !v.is_nan()) {
                match votes.iter_mut().find(|(v, _)| *v == value) {
                    Some((_, count)) => *count += 1,
                    None => votes.push((value, 1)),
                }
            }
            *mismatches += u64::from(votes.len() > 1);
            // The best replica voted first, so the first of the greatest counts is its value.
            let most = votes.iter().map(|(_, count)| *count).max();
            if let Some((value, _)) = votes.iter().find(|(_, count)| Some(*count) == most) {
                grid.values[index] = *value;
            }
        }
        grid
    }
}

fn last_of(series: &Series) -> Option<i64> {
    let intervals = series.len().checked_sub(1)?;
    Some(series.start().saturating_add(series.step().seconds().saturating_mul(intervals as i64)))
}

/// The value at a timestamp of the series' grid; NaN outside.
fn value_at(series: &Series, time: i64) -> f64 {
    let index = time.saturating_sub(series.start()) / series.step().seconds();
    let value = if time < series.start() { None } else { series.values().get(index as usize) };
    value.copied().unwrap_or(f64::NAN)
}

/// Points being worked on.
struct Grid {
    start: i64,
    step: Step,
    values: Vec<f64>,
    /// Whose name, tags and consolidation these are.
    like: Series,
}

impl Grid {
    fn time(&self, index: usize) -> i64 {
        self.start.saturating_add(self.step.seconds().saturating_mul(index as i64))
    }

    fn last(&self) -> Option<i64> {
        self.values.len().checked_sub(1).map(|index| self.time(index))
    }

    /// Reaches over what `others` reach over.
    fn extend(&mut self, others: &[Grid]) {
        let first = others.iter().filter(|g| !g.values.is_empty()).map(|g| g.start).min();
        let last = others.iter().filter_map(Grid::last).max();
        if let (Some(first), Some(last)) = (first, last) {
            self.extend_to(first, last);
        }
    }

    /// Adds absent points so that all of this grid's timestamps in `first..=last` are there, unless they are too many.
    fn extend_to(&mut self, first: i64, last: i64) {
        let step = self.step.seconds();
        let Some(own_last) = self.last() else { return };
        let before = self.start.saturating_sub(first).max(0) / step;
        let after = last.saturating_sub(own_last).max(0) / step;
        let extended = before.saturating_add(after).saturating_add(self.values.len() as i64);
        if (before == 0 && after == 0) || extended as u64 > MAX_EXTENDED {
            return;
        }
        let mut values = vec![f64::NAN; extended as usize];
        values[before as usize..before as usize + self.values.len()].copy_from_slice(&self.values);
        self.values = values;
        self.start -= before * step;
    }

    /// Takes each known point of `coarser` in whose whole interval nothing is known here.
    fn fill_gaps(&mut self, coarser: &Grid) {
        let (fine, coarse) = (self.step.seconds(), coarser.step.seconds());
        let share = match coarser.like.consolidation {
            Consolidation::Sum => fine as f64 / coarse as f64,
            _ => 1.0,
        };
        // Index of the first point at or after a time.
        let index = |time: i64| {
            let steps = time.saturating_sub(self.start).saturating_add(fine - 1).div_euclid(fine);
            usize::try_from(steps).unwrap_or(0).min(self.values.len())
        };
        let intervals: Vec<(usize, usize)> = (0..coarser.values.len())
            .map(|i| coarser.time(i))
            .map(|time| (index(time), index(time.saturating_add(coarse))))
            .collect();
        for ((from, to), value) in intervals.into_iter().zip(&coarser.values) {
            let Some(gap) = self.values.get_mut(from..to) else { continue };
            if !value.is_nan() && gap.iter().all(|v| v.is_nan()) {
                gap.fill(value * share);
            }
        }
    }

    fn into_series(self) -> Series {
        let Self { start, step, values, like } = self;
        let mut series = Series::with_tags(like.name, like.tags, start, step, values);
        series.path_expression = like.path_expression;
        series.consolidation = like.consolidation;
        series.x_files_factor = like.x_files_factor;
        series.style = like.style;
        series
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const N: f64 = f64::NAN;

    fn series(start: i64, step: i64, values: &[f64]) -> Series {
        Series::new("a.b", start, Step::new(step).expect("positive"), values.to_vec())
    }

    fn points(series: &Series) -> Vec<(i64, Option<f64>)> {
        let value = |v: &f64| (!v.is_nan()).then_some(*v);
        series.values().iter().enumerate().map(|(i, v)| (series.time(i), value(v))).collect()
    }

    fn values(series: &Series) -> Vec<Option<f64>> {
        points(series).into_iter().map(|(_, v)| v).collect()
    }

    /// Merged in every order, which must make no difference.
    fn merged(replicas: &[Series]) -> Merged {
        let first = merge(replicas.to_vec()).expect("not empty");
        for order in permutations(replicas.len()) {
            let other = merge(order.iter().map(|i| replicas[*i].clone()).collect()).expect("not empty");
            assert_eq!(points(&first.series), points(&other.series));
            assert_eq!(first.mismatches, other.mismatches);
        }
        first
    }

    fn permutations(n: usize) -> Vec<Vec<usize>> {
        let Some(last) = n.checked_sub(1) else { return vec![vec![]] };
        let insert = |shorter: Vec<usize>| {
            (0..=last).map(move |at| {
                let mut longer = shorter.clone();
                longer.insert(at, last);
                longer
            })
        };
        permutations(last).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn a_coarse_replica_without_points_changes_nothing() {
        let fine = series(60, 60, &[1.0, N, 3.0, 4.0]);
        let merged = merged(&[fine.clone(), series(120, 120, &[N, N])]);
        assert_eq!(points(&merged.series), points(&fine));
    }

    #[test]
    fn a_fine_replica_without_points_changes_nothing() {
        let coarse = series(60, 60, &[1.0, N, 3.0]);
        let merged = merged(&[coarse.clone(), series(10, 10, &[N; 18])]);
        assert_eq!(points(&merged.series), points(&coarse));
    }

    #[test]
    fn the_finest_step_wins_at_a_retention_boundary() {
        let fine = series(10, 10, &vec![2.0; 8640]);
        let merged = merged(&[fine.clone(), series(60, 60, &vec![9.0; 1440])]);
        assert_eq!(points(&merged.series), points(&fine));
        assert_eq!(merged.mismatches, 0);
    }

    #[test]
    fn a_lone_gap_is_not_filled_by_the_coarse() {
        let fine = series(0, 10, &[1.0, N, 3.0, N, N, N]);
        let merged = merged(&[fine, series(0, 30, &[8.0, 9.0])]);
        assert_eq!(values(&merged.series), [Some(1.0), None, Some(3.0), Some(9.0), Some(9.0), Some(9.0)]);
    }

    #[test]
    fn old_and_new_cluster_of_a_migration_cover_both_spans() {
        let old = series(0, 10, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, N, N, N, N, N, N]);
        let new = series(0, 60, &[N, 7.0]);
        let merged = merged(&[old, new]);
        let expected: Vec<_> = (0..12).map(|i| (i * 10, Some(if i < 6 { (i + 1) as f64 } else { 7.0 }))).collect();
        assert_eq!(points(&merged.series), expected);
    }

    #[test]
    fn the_grid_reaches_as_far_as_any_replica() {
        let merged = merged(&[series(100, 10, &[1.0, 2.0]), series(60, 60, &[7.0, 8.0, 9.0])]);
        let expected: Vec<_> = (0..13)
            .map(|i| 60 + i * 10)
            .map(|t| {
                let value = match t {
                    100 => Some(1.0),
                    110 => Some(2.0),
                    60..=90 => None,
                    120..=170 => Some(8.0),
                    _ => Some(9.0),
                };
                (t, value)
            })
            .collect();
        assert_eq!(points(&merged.series), expected);
    }

    #[test]
    fn a_sum_is_spread_over_its_interval() {
        let mut coarse = series(0, 60, &[12.0, 60.0]);
        coarse.consolidation = Consolidation::Sum;
        let merged = merged(&[series(0, 30, &[5.0, 7.0, N, N]), coarse]);
        assert_eq!(values(&merged.series), [Some(5.0), Some(7.0), Some(30.0), Some(30.0)]);
    }

    #[test]
    fn four_replies_with_holes_in_every_order() {
        let replies = [
            series(0, 1, &[0.0, 1.0, 2.0, 3.0, 4.0, N, N, N, N, N]),
            series(0, 1, &[N, N, N, N, N, 5.0, 6.0, 7.0, 8.0, 9.0]),
            series(0, 1, &[N, N, N, N, N, N, N, 7.0, 8.0, 9.0]),
            series(0, 1, &[0.0, 1.0, 2.0, 3.0, 4.0, N, N, 7.0, 8.0, 9.0]),
        ];
        let merged = merged(&replies);
        assert_eq!(values(&merged.series), (0..10).map(|i| Some(f64::from(i))).collect::<Vec<_>>());
        assert_eq!(merged.mismatches, 0);
    }

    #[test]
    fn the_majority_wins_and_mismatches_are_counted() {
        let merged = merged(&[series(0, 60, &[5.0, 1.0]), series(0, 60, &[5.0, 1.0]), series(0, 60, &[7.0, 1.0])]);
        assert_eq!(values(&merged.series), [Some(5.0), Some(1.0)]);
        assert_eq!(merged.mismatches, 1);
    }

    #[test]
    fn a_tie_goes_to_the_more_complete() {
        let merged = merged(&[series(0, 60, &[5.0, 5.0, 5.0]), series(0, 60, &[7.0, N, 7.0])]);
        assert_eq!(values(&merged.series), [Some(5.0); 3]);
        assert_eq!(merged.mismatches, 2);
    }

    #[test]
    fn replies_are_compared_by_timestamp() {
        let merged = merged(&[series(60, 60, &[1.0, 2.0, N]), series(120, 60, &[2.0, 3.0, 4.0])]);
        assert_eq!(points(&merged.series), [(60, Some(1.0)), (120, Some(2.0)), (180, Some(3.0)), (240, Some(4.0))]);
        assert_eq!(merged.mismatches, 0);
    }

    #[test]
    fn replies_an_age_apart_do_not_eat_the_memory() {
        let far = i64::MAX - 1_000_000;
        let merged = merged(&[series(-far, 1, &[1.0]), series(far, 1, &[2.0, 3.0]), series(0, 60, &[4.0])]);
        assert!(merged.series.len() < 10);
    }

    #[test]
    fn unites_names_in_order() {
        let named = |name: &str, v: f64| series(0, 60, &[v]).named(name);
        let (united, _) = unite(vec![named("b", 1.0), named("a", 2.0), named("b", 1.0), named("c", 3.0)]);
        assert_eq!(united.iter().map(|s| &*s.name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(merge(Vec::new()).is_none());
    }

    fn replica() -> impl Strategy<Value = Series> {
        let value = prop_oneof![2 => Just(N), 3 => (0..4_i32).prop_map(f64::from)];
        let shape = (0..8_i64, prop_oneof![Just(1_i64), Just(2), Just(3), Just(6)]);
        (shape, prop::collection::vec(value, 0..12), prop::bool::ANY).prop_map(|((start, step), values, sum)| {
            let mut series = series(start, step, &values);
            if sum {
                series.consolidation = Consolidation::Sum;
            }
            series
        })
    }

    proptest! {
        #[test]
        fn order_makes_no_difference(replicas in prop::collection::vec(replica(), 1..5), turn in 0..5_usize) {
            let mut turned = replicas.clone();
            turned.rotate_left(turn % replicas.len());
            let mut reversed = turned.clone();
            reversed.reverse();
            let expected = merge(replicas).expect("not empty");
            for other in [turned, reversed] {
                let other = merge(other).expect("not empty");
                prop_assert_eq!(points(&expected.series), points(&other.series));
                prop_assert_eq!(&expected.series.consolidation, &other.series.consolidation);
                prop_assert_eq!(expected.mismatches, other.mismatches);
            }
        }

        #[test]
        fn merging_again_changes_nothing(replicas in prop::collection::vec(replica(), 1..5)) {
            let once = merge(replicas.clone()).expect("not empty").series;
            let twice = merge(vec![once.clone(), once.clone()]).expect("not empty").series;
            prop_assert_eq!(points(&once), points(&twice));
            let mut with_result = replicas;
            with_result.push(once.clone());
            let again = merge(with_result).expect("not empty").series;
            prop_assert_eq!(points(&once), points(&again));
        }

        #[test]
        fn the_best_replica_loses_no_point(replicas in prop::collection::vec(replica(), 1..5)) {
            let merged = merge(replicas.clone()).expect("not empty").series;
            let known_there = |s: &Series| known(s.values()) > 0;
            let Some(finest) = replicas.iter().filter(|s| known_there(s)).map(Series::step).min() else {
                return Ok(());
            };
            prop_assert_eq!(merged.step(), finest);
            for replica in replicas.iter().filter(|s| s.step() == finest) {
                if replica.start().rem_euclid(finest.seconds()) != merged.start().rem_euclid(finest.seconds()) {
                    continue;
                }
                for (time, value) in points(replica) {
                    prop_assert!(value.is_none() || !value_at(&merged, time).is_nan());
                }
            }
        }
    }
}
