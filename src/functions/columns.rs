//! Kernels over several rows of points: each column is reduced to one value.
//!
//! Rows may differ in length; a row that is too short is absent in the last columns. NaN is absent. Sums add the rows
//! in their order, exactly as one left-to-right sum for each column would: the work goes row by row, several rows at
//! once, only because that is how memory likes it.

use crate::series::{Aggregation, enough};

/// Columns at once: their sums and counts stay in the innermost cache while the rows stream by.
const BLOCK: usize = 1024;
/// Columns gathered at once where a column is needed as a whole: those of one cache line.
const GATHER: usize = 8;

/// Number of points of the longest row.
pub(crate) fn width<R: AsRef<[f64]>>(rows: &[R]) -> usize {
    rows.iter().map(|r| r.as_ref().len()).max().unwrap_or(0)
}

/// Each column reduced by an aggregation function; absent where fewer than `x_files_factor` of the rows are known.
pub(crate) fn reduce<R: AsRef<[f64]>>(rows: &[R], function: Aggregation, x_files_factor: f64) -> Vec<f64> {
    let width = width(rows);
    let mut out = vec![f64::NAN; width];
    let mut block = Block::default();
    for start in (0..width).step_by(BLOCK) {
        let end = width.min(start + BLOCK);
        let parts: Vec<&[f64]> = parts(rows, start, end).collect();
        let out = &mut out[start..end];
        block.reduce(&parts, function, out);
        for (value, count) in out.iter_mut().zip(&block.count) {
            if !enough(*count as usize, rows.len(), x_files_factor) {
                *value = f64::NAN;
            }
        }
    }
    out
}

/// The `percent`-th percentile of each column, by the rank `percent / 100 * (known + 1)`: the known value of that rank
/// rounded up or, with `interpolate`, a value between the two nearest ranks. Above the last rank it is the greatest.
pub(crate) fn percentile<R: AsRef<[f64]>>(rows: &[R], percent: f64, interpolate: bool) -> Vec<f64> {
    let mut out = Vec::with_capacity(width(rows));
    for_each_column(rows, |known| {
        let value = if known.is_empty() { f64::NAN } else { percentile_of(known, percent, interpolate) };
        out.push(value);
    });
    out
}

/// The percentile, counted likewise, of the known values of one row; `None` when there is none.
pub(crate) fn percentile_of_row(row: &[f64], percent: f64, interpolate: bool) -> Option<f64> {
    let mut known: Vec<i64> = row.iter().filter(|v| !v.is_nan()).map(|v| key(*v)).collect();
    if known.is_empty() { None } else { Some(percentile_of(&mut known, percent, interpolate)) }
}

/// Each column folded by powers from the first row on: absent as soon as one value is, or a power has no finite value.
pub(crate) fn power<R: AsRef<[f64]>>(rows: &[R]) -> Vec<f64> {
    let mut out = vec![f64::NAN; width(rows)];
    let Some((first, others)) = rows.split_first() else { return out };
    let first = first.as_ref();
    out[..first.len()].copy_from_slice(first);
    for row in others {
        let row = row.as_ref();
        for (value, exponent) in out.iter_mut().zip(row) {
            *value = power_of(*value, *exponent);
        }
        out[row.len()..].fill(f64::NAN);
    }
    out
}

/// Two rows combined point by point; the shorter one is absent at the end.
pub(crate) fn pairs(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let common = a.len().min(b.len());
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    out.extend(a.iter().zip(b).map(|(a, b)| f(*a, *b)));
    out.extend(a[common..].iter().map(|a| f(*a, f64::NAN)));
    out.extend(b[common..].iter().map(|b| f(f64::NAN, *b)));
    out
}

/// The quotient; absent where either is, and where the divisor is 0.
pub(crate) fn quotient(a: f64, b: f64) -> f64 {
    if b == 0.0 { f64::NAN } else { a / b }
}

fn power_of(base: f64, exponent: f64) -> f64 {
    // `pow(1, NaN)` and `pow(NaN, 0)` are 1.
    if base.is_nan() || exponent.is_nan() {
        return f64::NAN;
    }
    let power = base.powf(exponent);
    if power.is_infinite() && base.is_finite() && exponent.is_finite() { f64::NAN } else { power }
}

fn parts<R: AsRef<[f64]>>(rows: &[R], start: usize, end: usize) -> impl Iterator<Item = &[f64]> {
    rows.iter().map(move |r| {
        let row = r.as_ref();
        &row[start.min(row.len())..end.min(row.len())]
    })
}

/// Accumulators for the columns of one block.
#[derive(Default)]
struct Block {
    /// Known values of each column; as floats, so that they are counted in the same lanes as the sums.
    count: Vec<f64>,
    other: Vec<f64>,
}

impl Block {
    /// Leaves the result in `out` (any value where none is known) and the number of known values in `self.count`.
    fn reduce(&mut self, rows: &[&[f64]], function: Aggregation, out: &mut [f64]) {
        self.count.clear();
        self.count.resize(out.len(), 0.0);
        let (count, other) = (self.count.as_mut_slice(), &mut self.other);
        // An absent value is added as 0, which changes no sum: a sum that began with 0 is never -0.
        let mut sum = |out: &mut [f64]| {
            out.fill(0.0);
            accumulate(rows, out, count, |sum, n, v| (sum + if v.is_nan() { 0.0 } else { v }, n + known(v)));
        };
        match function {
            Aggregation::Sum => sum(out),
            Aggregation::Average => {
                sum(out);
                out.iter_mut().zip(count).for_each(|(v, n)| *v /= *n);
            }
            Aggregation::AvgZero => {
                sum(out);
                for v in out {
                    *v /= rows.len() as f64;
                }
            }
            Aggregation::Stddev => {
                sum(out);
                other.clear();
                other.extend(out.iter().zip(&*count).map(|(sum, n)| sum / n));
                out.fill(0.0);
                accumulate(rows, out, other, |sum, mean, v| {
                    (sum + if v.is_nan() { 0.0 } else { (v - mean) * (v - mean) }, mean)
                });
                out.iter_mut().zip(count).for_each(|(v, n)| *v = (*v / *n).sqrt());
            }
            Aggregation::Count => {
                count_known(rows, count);
                out.copy_from_slice(count);
            }
            Aggregation::Min => accumulate(rows, out, count, |least, n, v| (least.min(v), n + known(v))),
            Aggregation::Max => accumulate(rows, out, count, |most, n, v| (most.max(v), n + known(v))),
            Aggregation::Range => {
                other.clear();
                other.resize(out.len(), f64::NAN);
                accumulate(rows, out, other, |most, least, v| (most.max(v), least.min(v)));
                out.iter_mut().zip(other).for_each(|(most, least)| *most -= *least);
                count_known(rows, count);
            }
            Aggregation::Last => {
                accumulate(rows, out, count, |last, n, v| (if v.is_nan() { last } else { v }, n + known(v)));
            }
            Aggregation::Diff => accumulate(rows, out, count, |diff, n, v| {
                let next = if n == 0.0 { v } else { diff - v };
                (if v.is_nan() { diff } else { next }, n + known(v))
            }),
            Aggregation::Multiply => {
                out.fill(1.0);
                accumulate(rows, out, count, |product, n, v| (product * v, n + known(v)));
                for row in rows {
                    out[row.len()..].fill(f64::NAN);
                }
            }
            Aggregation::Median => {
                let mut places = out.iter_mut().zip(count);
                for_each_column(rows, |known| {
                    if let Some((value, n)) = places.next() {
                        *value = if known.is_empty() { f64::NAN } else { median_of(known) };
                        *n = known.len() as f64;
                    }
                });
            }
        }
    }
}

fn known(v: f64) -> f64 {
    if v.is_nan() { 0.0 } else { 1.0 }
}

fn count_known(rows: &[&[f64]], count: &mut [f64]) {
    for row in rows {
        for (n, v) in count.iter_mut().zip(*row) {
            *n += known(*v);
        }
    }
}

/// Puts the value of each row in turn into the two accumulators of its column, four rows for each pass over them.
fn accumulate(rows: &[&[f64]], a: &mut [f64], b: &mut [f64], f: impl Fn(f64, f64, f64) -> (f64, f64)) {
    let one_row = |row: &[f64], a: &mut [f64], b: &mut [f64]| {
        for ((a, b), v) in a.iter_mut().zip(b).zip(row) {
            (*a, *b) = f(*a, *b, *v);
        }
    };
    let mut quads = rows.chunks_exact(4);
    for quad in &mut quads {
        let common = quad.iter().map(|r| r.len()).min().unwrap_or(0);
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|i| &quad[i][..common]);
        let (both_a, both_b) = (&mut a[..common], &mut b[..common]);
        for i in 0..common {
            let mut both = f(both_a[i], both_b[i], first[i]);
            both = f(both.0, both.1, second[i]);
            both = f(both.0, both.1, third[i]);
            (both_a[i], both_b[i]) = f(both.0, both.1, fourth[i]);
        }
        for row in quad {
            one_row(&row[common..], &mut a[common..], &mut b[common..]);
        }
    }
    for row in quads.remainder() {
        one_row(row, a, b);
    }
}

/// A float as an integer of the same order (that of `f64::total_cmp`), which is quicker to select by; and back.
fn key(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn of_key(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// Calls `f` for each column in order with the keys of its known values, which it may reorder.
fn for_each_column<R: AsRef<[f64]>>(rows: &[R], mut f: impl FnMut(&mut [i64])) {
    let width = width(rows);
    let mut columns: [Vec<i64>; GATHER] = std::array::from_fn(|_| Vec::with_capacity(rows.len()));
    for start in (0..width).step_by(GATHER) {
        let end = width.min(start + GATHER);
        for row in parts(rows, start, end) {
            for (column, v) in columns.iter_mut().zip(row) {
                if !v.is_nan() {
                    column.push(key(*v));
                }
            }
        }
        for column in &mut columns[..end - start] {
            f(column);
            column.clear();
        }
    }
}

fn median_of(known: &mut [i64]) -> f64 {
    let middle = known.len() / 2;
    let even = known.len().is_multiple_of(2);
    let (below, mid, _) = known.select_nth_unstable(middle);
    let mid = of_key(*mid);
    match below.iter().max() {
        Some(lower) if even => (of_key(*lower) + mid) / 2.0,
        _ => mid,
    }
}

fn percentile_of(known: &mut [i64], percent: f64, interpolate: bool) -> f64 {
    let rank = (percent / 100.0) * (known.len() + 1) as f64;
    let last = known.len() - 1;
    if !interpolate {
        let index = (rank.ceil() as usize).saturating_sub(1).min(last);
        return of_key(*known.select_nth_unstable(index).1);
    }
    let index = rank as usize;
    if index > last {
        return of_key(*known.select_nth_unstable(last).1);
    }
    let (below, above, _) = known.select_nth_unstable(index);
    let above = of_key(*above);
    let lower = below.iter().max().map_or(above, |k| of_key(*k));
    lower + rank.fract() * (above - lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of uneven length with gaps and values that round: bit for bit what the plain definition over one column
    /// gives, also across block edges.
    #[test]
    fn blocks_change_nothing() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let rows: Vec<Vec<f64>> = (0..11)
            .map(|i| {
                let len = if i == 4 { 700 } else { 2 * BLOCK + 3 };
                let values = (0..len).map(|_| match random() % 5 {
                    0 => f64::NAN,
                    1 => -0.0,
                    n => (random() as f64 - 1e9) * 0.1_f64.powi(n as i32),
                });
                values.collect()
            })
            .collect();
        for (_, function) in Aggregation::NAMES {
            for xff in [0.0, 0.7, 1.0] {
                let got = reduce(&rows, *function, xff);
                assert_eq!(got.len(), 2 * BLOCK + 3);
                for (i, got) in got.iter().enumerate() {
                    let column: Vec<f64> = rows.iter().map(|r| r.get(i).copied().unwrap_or(f64::NAN)).collect();
                    let known = column.iter().filter(|v| !v.is_nan()).count();
                    let want = if enough(known, rows.len(), xff) { function.apply(&column) } else { f64::NAN };
                    assert!(want == *got || want.is_nan() && got.is_nan(), "{function:?} {i}: {want} {got}");
                }
            }
        }
    }

    /// Ranks by hand: of 4 known values the 50th percentile has the rank 2.5.
    #[test]
    fn percentiles() {
        let rows = [vec![4.0], vec![-1.0], vec![f64::NAN], vec![2.0], vec![3.0]];
        for (percent, plain, between) in [
            (50.0, 3.0, 2.5),
            (1.0, -1.0, -1.0),
            (20.0, -1.0, -1.0),
            (80.0, 4.0, 4.0),
            (100.0, 4.0, 4.0),
            (999.0, 4.0, 4.0),
        ] {
            assert_eq!(percentile(&rows, percent, false), [plain], "{percent}");
            assert_eq!(percentile(&rows, percent, true), [between], "{percent}");
        }
        assert!(percentile(&[[f64::NAN]], 50.0, true)[0].is_nan());
    }

    #[test]
    fn powers() {
        let nan = f64::NAN;
        let rows = [vec![2.0, 1.0, nan, 0.0, -8.0, 10.0], vec![3.0, nan, 0.0, -1.0, 0.5, 400.0]];
        let got = power(&rows);
        assert_eq!(got[0], 8.0);
        assert!(got[1..].iter().all(|v| v.is_nan()), "{got:?}");
    }
}
