//! Percentiles as graphite-web counts them.

/// The known values, in order.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut known: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
    known.sort_unstable_by(f64::total_cmp);
    known
}

/// The `n`-th percentile (0 to 100) of sorted values: the one of rank `n/100 * (len + 1)`, rounded up, or with
/// `interpolate` between it and its neighbour. `None` when there are no values or `n` is outside of 0 to 100.
pub(crate) fn percentile(sorted: &[f64], n: f64, interpolate: bool) -> Option<f64> {
    if !(0.0..=100.0).contains(&n) {
        return None;
    }
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let rank = n / 100.0 * (sorted.len() + 1) as f64;
    let whole = if interpolate { rank.floor() } else { rank.ceil() } as usize;
    let value = match whole {
        0 => first,
        whole => sorted.get(whole - 1).copied().unwrap_or(last),
    };
    match sorted.get(whole) {
        Some(next) if interpolate => Some(value + rank.fract() * (next - value)),
        _ => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of graphite-web's `_getPercentile`.
    #[test]
    fn ranks() {
        let values = sorted([3.0, f64::NAN, 1.0, 2.0, 4.0]);
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
        for (n, plain, interpolated) in [
            (0.0, 1.0, 1.0),
            (1.0, 1.0, 1.0),
            (20.0, 1.0, 1.0),
            (30.0, 2.0, 1.5),
            (50.0, 3.0, 2.5),
            (90.0, 4.0, 4.0),
            (100.0, 4.0, 4.0),
        ] {
            assert_eq!(percentile(&values, n, false), Some(plain), "{n}");
            assert_eq!(percentile(&values, n, true), Some(interpolated), "{n}");
        }
        assert_eq!(percentile(&[], 50.0, false), None);
        assert_eq!(percentile(&values, 101.0, false), None);
        assert_eq!(percentile(&values, f64::NAN, false), None);
    }
}
