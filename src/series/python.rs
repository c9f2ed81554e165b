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
    // The digits of std's shortest form are not always Python's: of two that read back equal and are equally near,
    // Python takes the even one (737899708902106.25 is `…106.2`), and so does this.
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    let (number, power) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = number.trim_start_matches('-').split_once('.').unwrap_or((number, ""));
    let all = [whole.trim_start_matches('-'), fraction].concat();
    let zeros = all.len() - all.trim_start_matches('0').len();
    let digits = all.trim_matches('0');
    let whole_len = all.len() - fraction.len();
    let exponent = power.parse::<i32>().unwrap_or(0) + whole_len as i32 - 1 - zeros as i32;

    let sign = if value < 0.0 { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    if !(-4..16).contains(&exponent) {
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs());
    }
    let Ok(before_point) = usize::try_from(exponent + 1) else {
        return format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    };
    match digits.len().checked_sub(before_point) {
        _ if before_point == 0 => format!("{sign}0.{digits}"),
        None | Some(0) => format!("{sign}{digits:0<before_point$}.0"),
        Some(_) => format!("{sign}{}.{}", &digits[..before_point], &digits[before_point..]),
    }
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

/// `%d` of a float: what stands before the point.
#[must_use]
pub fn format_d(value: f64) -> String {
    if !value.is_finite() {
        return format_g(value);
    }
    // Adding zero makes -0 to 0.
    format!("{:.0}", value.trunc() + 0.0)
}

/// Python's `round(value, digits)`: to so many decimal digits (negative: to tens, hundreds…), a tie to the even
/// neighbour. What is rounded is the exact value of the float, so `2.675` is `2.67`.
#[must_use]
pub fn round_digits(value: f64, digits: i64) -> f64 {
    // Far from a tie, and with all numbers exact, one multiplication tells the answer.
    if (0..=22).contains(&digits) {
        let scale = 10_f64.powi(digits as i32);
        let scaled = value * scale;
        let nearest = scaled.round_ties_even();
        if scaled.abs() < (1_u64 << 40) as f64 && ((scaled - nearest).abs() - 0.5).abs() > 1e-3 {
            return nearest / scale;
        }
    }
    if !value.is_finite() || value == 0.0 || digits > 323 {
        return value;
    }
    if let Ok(digits) = usize::try_from(digits) {
        return format!("{value:.digits$}").parse().unwrap_or(value);
    }
    let zero = 0.0_f64.copysign(value);
    let text = format!("{value:e}");
    let exponent: i64 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let precision = exponent.saturating_add(digits);
    let rounded = match usize::try_from(precision) {
        Ok(precision) => format!("{value:.precision$e}").parse().unwrap_or(value),
        // The digit before the first one: a tie or less is 0.
        Err(_) if precision == -1 => {
            let unit = 10_f64.powi(exponent as i32);
            if value.abs() > 5.0 * unit { (10.0 * unit).copysign(value) } else { zero }
        }
        Err(_) => zero,
    };
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed by CPython 3.11.
    #[test]
    fn rounds_as_python_does() {
        for (value, digits, rounded) in [
            (2.675, 2, 2.67),
            (0.5, 0, 0.0),
            (1.5, 0, 2.0),
            (2.5, 0, 2.0),
            (-2.5, 0, -2.0),
            (0.125, 2, 0.12),
            (0.375, 2, 0.38),
            (1.000_000_5, 6, 1.000_001),
            (5e-7, 6, 0.0),
            (4.999_999e-7, 6, 0.0),
            (2.5e-6, 6, 3e-6),
            (1.000_001_5, 6, 1.000_001),
            (-1.234_567_89, 6, -1.234_568),
            (1234.5, -2, 1200.0),
            (1250.0, -2, 1200.0),
            (1350.0, -2, 1400.0),
            (50.0, -2, 0.0),
            (50.1, -2, 100.0),
            (-51.0, -2, -100.0),
            (4.0, -2, 0.0),
            (123_456_789.0, -20, 0.0),
            (1e300, 6, 1e300),
            (1.5e-10, 10, 1e-10),
            (1e22, 3, 1e22),
            (0.1, 400, 0.1),
            (5.0, -400, 0.0),
            (f64::INFINITY, 0, f64::INFINITY),
        ] {
            assert_eq!(round_digits(value, digits), rounded, "round({value}, {digits})");
        }
        assert_eq!(format_d(-0.5), "0");
        assert_eq!(format_d(1.7), "1");
        assert_eq!(format_d(-1e3), "-1000");
        assert_eq!(format_d(1e22), "10000000000000000000000");
    }

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
            (737_899_708_902_106.2, "737899708902106.2", "7.379e+14"),
            (-1.5e-7, "-1.5e-07", "-1.5e-07"),
            (0.001_25, "0.00125", "0.00125"),
            (0.25, "0.25", "0.25"),
            (120.0, "120.0", "120"),
            (5e-324, "5e-324", "4.94066e-324"),
            (9_007_199_254_740_993.0, "9007199254740992.0", "9.0072e+15"),
            (f64::MAX, "1.7976931348623157e+308", "1.79769e+308"),
            (f64::INFINITY, "inf", "inf"),
        ] {
            assert_eq!(float_repr(value), repr);
            assert_eq!(format_g(value), g);
        }
    }
}
