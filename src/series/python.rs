//! Numbers as Python writes them. Names and tags of graphite-web's answers hold them, so ours must be the same.

/// Python's `repr(float)`: the shortest text that reads back equal, with `.0` for whole numbers and an exponent
/// from 1e16 up and below 1e-4 (`1e+16`, `1e-05`, `inf`, `nan`).
#[must_use]
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0".into() } else { "0.0".into() };
    }
    // `{:e}` is the shortest round-trip form as digits and exponent: `1.25e-7`.
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// C's `%g` with a precision of 6: at most six significant digits, no trailing zeros (`1e+06`, `0.5`, `100000`).
#[must_use]
pub fn format_g(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let text = format!("{value:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed =
        |s: &str| if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trimmed(&format!("{value:.decimals$}"));
    }
    format!("{}e{}{:02}", trimmed(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pair was printed by CPython 3.11.
    #[test]
    fn floats_read_as_in_python() {
        for (value, repr, g) in [
            (1.0, "1.0", "1"),
            (0.1, "0.1", "0.1"),
            (1e16, "1e+16", "1e+16"),
            (1e15, "1000000000000000.0", "1e+15"),
            (123_456_789.0, "123456789.0", "1.23457e+08"),
            (1e-5, "1e-05", "1e-05"),
            (0.0001, "0.0001", "0.0001"),
            (-2.5, "-2.5", "-2.5"),
            (100_000.0, "100000.0", "100000"),
            (1_000_000.0, "1000000.0", "1e+06"),
            (1e100, "1e+100", "1e+100"),
            (f64::INFINITY, "inf", "inf"),
        ] {
            assert_eq!(float_repr(value), repr);
            assert_eq!(format_g(value), g);
        }
    }
}
