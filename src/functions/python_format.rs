//! Python's `%` operator with one number: `"%d MHz" % 4.0`.

use std::fmt::Write as _;

use crate::series::float_repr;

/// A width or precision beyond this is refused.
const MAX_WIDTH: usize = 1000;

/// `template % value` as Python computes it for a float. The template must use the value exactly once.
///
/// # Errors
/// What is wrong with the template, as a part of a sentence for users.
pub(crate) fn percent(template: &str, value: f64) -> Result<String, String> {
    let mut out = String::with_capacity(template.len() + 8);
    let mut rest = template;
    let mut used = false;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let (conversion, tail) = Conversion::parse(after)?;
        rest = tail;
        if conversion.kind == '%' {
            out.push('%');
            continue;
        }
        if std::mem::replace(&mut used, true) {
            return Err("it has places for more than one value; a percent sign itself is written %%".into());
        }
        conversion.write(value, &mut out)?;
    }
    if !used {
        return Err("it has no place for the value, such as %d or %.2f".into());
    }
    out.push_str(rest);
    Ok(out)
}

#[derive(Default)]
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

impl Conversion {
    /// Reads what follows a `%`; answers what is left too.
    fn parse(text: &str) -> Result<(Self, &str), String> {
        let mut conversion = Self::default();
        let mut rest = text;
        loop {
            let flag = match rest.as_bytes().first() {
                Some(b'-') => &mut conversion.left,
                Some(b'0') => &mut conversion.zero,
                Some(b'+') => &mut conversion.plus,
                Some(b' ') => &mut conversion.space,
                Some(b'#') => &mut conversion.alternate,
                _ => break,
            };
            *flag = true;
            rest = &rest[1..];
        }
        (conversion.width, rest) = number(rest)?;
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, tail) = number(after)?;
            conversion.precision = Some(precision);
            rest = tail;
        }
        // Length modifiers of C, which mean nothing.
        rest = rest.strip_prefix(['h', 'l', 'L']).unwrap_or(rest);
        let kind =
            rest.chars().next().ok_or("it ends within a place for a value; a percent sign itself is written %%")?;
        conversion.kind = kind;
        Ok((conversion, &rest[kind.len_utf8()..]))
    }

    fn write(&self, value: f64, out: &mut String) -> Result<(), String> {
        let precision = self.precision.unwrap_or(6);
        let magnitude = value.abs();
        let number = match self.kind {
            'd' | 'i' | 'u' if !value.is_finite() => {
                return Err(format!("{} is not a whole number", float_repr(value)));
            }
            'd' | 'i' | 'u' => {
                let digits = format!("{:.0}", magnitude.trunc());
                let zeros = self.precision.unwrap_or(0);
                format!("{digits:0>zeros$}")
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' if !value.is_finite() => float_repr(magnitude),
            'f' | 'F' => {
                let point = if self.alternate && precision == 0 { "." } else { "" };
                format!("{magnitude:.precision$}{point}")
            }
            'e' | 'E' => exponential(magnitude, precision, self.alternate),
            'g' | 'G' => general(magnitude, precision, self.alternate),
            's' | 'r' | 'a' => {
                let text: String = float_repr(value).chars().take(self.precision.unwrap_or(usize::MAX)).collect();
                self.pad("", &text, false, out);
                return Ok(());
            }
            'o' | 'x' | 'X' | 'c' => return Err(format!("%{} does not take a number with a fraction", self.kind)),
            '(' | '*' => return Err(format!("%{} cannot be used here: there is one value and no name", self.kind)),
            other => return Err(format!("`%{other}` is not a place for a value; a percent sign itself is written %%")),
        };
        let whole = matches!(self.kind, 'd' | 'i' | 'u');
        let negative = value.is_sign_negative() && !value.is_nan() && !(whole && value.trunc() == 0.0);
        let sign = match (negative, self.plus, self.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        let upper = self.kind.is_ascii_uppercase();
        let number = if upper { number.to_uppercase() } else { number };
        self.pad(sign, &number, self.zero, out);
        Ok(())
    }

    fn pad(&self, sign: &str, text: &str, zero: bool, out: &mut String) {
        let missing = self.width.saturating_sub(sign.len() + text.chars().count());
        let (spaces_before, zeros, spaces_after) = match (self.left, zero) {
            (true, _) => (0, 0, missing),
            (false, true) => (0, missing, 0),
            (false, false) => (missing, 0, 0),
        };
        let zeros = "0".repeat(zeros);
        // Writing to a string cannot fail.
        let _ = write!(out, "{:spaces_before$}{sign}{zeros}{text}{:spaces_after$}", "", "");
    }
}

fn number(text: &str) -> Result<(usize, &str), String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return Ok((0, rest));
    }
    match number.parse() {
        Ok(n) if n <= MAX_WIDTH => Ok((n, rest)),
        _ => Err(format!("a width of {number} is too much")),
    }
}

/// C's `%e` of a number that is neither negative nor infinite.
fn exponential(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if alternate && precision == 0 { "." } else { "" };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}{point}e{sign}{digits:0>2}")
}

/// C's `%g` of a number that is neither negative nor infinite.
fn general(value: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let rounded = format!("{value:.*e}", precision - 1);
    let exponent: i32 = rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let significant = i32::try_from(precision).unwrap_or(i32::MAX);
    let trim = |text: &str| -> String {
        if alternate || !text.contains('.') {
            return text.to_owned();
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if (-4..significant).contains(&exponent) {
        let decimals = usize::try_from(significant - 1 - exponent).unwrap_or(0);
        let point = if alternate && decimals == 0 { "." } else { "" };
        return trim(&format!("{value:.decimals$}{point}"));
    }
    let text = exponential(value, precision - 1, alternate);
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "+00"));
    format!("{}e{power}", trim(mantissa))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by CPython 3.11.
    #[test]
    fn as_python_formats() {
        for (template, value, text) in PYTHON {
            assert_eq!(percent(template, *value).as_deref(), Ok(*text), "{template} % {value}");
        }
    }

    const PYTHON: &[(&str, f64, &str)] = &[
        ("%d MHz", 1.0, "1 MHz"),
        ("%d MHz", 999_999.5, "999999 MHz"),
        ("%5d|", 42.0, "   42|"),
        ("%5d|", 1e-05, "    0|"),
        ("%5d|", -0.4, "    0|"),
        ("%-5d|", 2.5, "2    |"),
        ("%-5d|", -7.0, "-7   |"),
        ("%05d", -0.0, "00000"),
        ("%05d", 1_000_000.0, "1000000"),
        ("%+d", 42.0, "+42"),
        ("%+d", 1e-05, "+0"),
        ("%+d", -0.4, "+0"),
        ("% d", 1.5, " 1"),
        ("% d", 1e+22, " 10000000000000000000000"),
        ("%.3d", 1.5, "001"),
        ("%.3d", 1e+22, "10000000000000000000000"),
        ("%i", 2.5, "2"),
        ("%i", -7.0, "-7"),
        ("%u", 1.0, "1"),
        ("%u", 999_999.5, "999999"),
        ("%f", -0.0, "-0.000000"),
        ("%f", 1_000_000.0, "1000000.000000"),
        ("%f", f64::NEG_INFINITY, "-inf"),
        ("%.2f", 1.5, "1.50"),
        ("%.2f", 1e+22, "10000000000000000000000.00"),
        ("%10.3f|", -2.5, "    -2.500|"),
        ("%10.3f|", 0.0001, "     0.000|"),
        ("%10.3f|", 12_345_678_901_234.5, "12345678901234.500|"),
        ("%-10.3f|", -2.5, "-2.500    |"),
        ("%-10.3f|", 0.0001, "0.000     |"),
        ("%-10.3f|", 12_345_678_901_234.5, "12345678901234.500|"),
        ("%010.2f", 1.5, "0000001.50"),
        ("%010.2f", 1e+22, "10000000000000000000000.00"),
        ("%+.1f", 2.5, "+2.5"),
        ("%+.1f", -7.0, "-7.0"),
        ("%#.0f", 1.0, "1."),
        ("%#.0f", 999_999.5, "1000000."),
        ("%.0f", 0.0, "0"),
        ("%.0f", 123_456.789, "123457"),
        ("%.0f", f64::INFINITY, "inf"),
        ("%e", -0.0, "-0.000000e+00"),
        ("%e", 1_000_000.0, "1.000000e+06"),
        ("%e", f64::NEG_INFINITY, "-inf"),
        ("%.0e", 1.5, "2e+00"),
        ("%.0e", 1e+22, "1e+22"),
        ("%#.0e", 1.0, "1.e+00"),
        ("%#.0e", 999_999.5, "1.e+06"),
        ("%#.0e", 1e+300, "1.e+300"),
        ("%E", 1.5, "1.500000E+00"),
        ("%E", 1e+22, "1.000000E+22"),
        ("%.3e", 42.0, "4.200e+01"),
        ("%.3e", 1e-05, "1.000e-05"),
        ("%.3e", -0.4, "-4.000e-01"),
        ("%g", -2.5, "-2.5"),
        ("%g", 0.0001, "0.0001"),
        ("%g", 12_345_678_901_234.5, "1.23457e+13"),
        ("%.3g", 0.5, "0.5"),
        ("%.3g", 1e+16, "1e+16"),
        ("%G", 1.0, "1"),
        ("%G", 999_999.5, "1E+06"),
        ("%G", 1e+300, "1E+300"),
        ("%#g", 1.5, "1.50000"),
        ("%#g", 1e+22, "1.00000e+22"),
        ("%.10g", 42.0, "42"),
        ("%.10g", 1e-05, "1e-05"),
        ("%.10g", -0.4, "-0.4"),
        ("%.0g", 0.5, "0.5"),
        ("%.0g", 1e+16, "1e+16"),
        ("%s", 1.0, "1.0"),
        ("%s", 999_999.5, "999999.5"),
        ("%s", 1e+300, "1e+300"),
        ("%10s|", -2.5, "      -2.5|"),
        ("%10s|", 0.0001, "    0.0001|"),
        ("%10s|", 12_345_678_901_234.5, "12345678901234.5|"),
        ("%-10s|", -2.5, "-2.5      |"),
        ("%-10s|", 0.0001, "0.0001    |"),
        ("%-10s|", 12_345_678_901_234.5, "12345678901234.5|"),
        ("%.3s", 0.5, "0.5"),
        ("%.3s", 1e+16, "1e+"),
        ("%r", 1.0, "1.0"),
        ("%r", 999_999.5, "999999.5"),
        ("%r", 1e+300, "1e+300"),
        ("%ld", 1.5, "1"),
        ("%ld", 1e+22, "10000000000000000000000"),
        ("%lf", 0.5, "0.500000"),
        ("%lf", 1e+16, "10000000000000000.000000"),
        ("100%% of %g", 0.0, "100% of 0"),
        ("100%% of %g", 123_456.789, "100% of 123457"),
        ("100%% of %g", f64::INFINITY, "100% of inf"),
        ("%+g", 42.0, "+42"),
        ("%+g", 1e-05, "+1e-05"),
        ("%+g", -0.4, "-0.4"),
        ("%08.3g", 0.5, "000000.5"),
        ("%08.3g", 1e+16, "0001e+16"),
        ("%F", 0.0, "0.000000"),
        ("%F", 123_456.789, "123456.789000"),
        ("%F", f64::INFINITY, "INF"),
        ("% g", 0.0, " 0"),
        ("% g", 123_456.789, " 123457"),
        ("% g", f64::INFINITY, " inf"),
    ];

    #[test]
    fn what_python_refuses() {
        for (template, value) in [
            ("no place", 1.0),
            ("%d and %d", 1.0),
            ("100% yes", 1.0),
            ("ends %", 1.0),
            ("%", 1.0),
            ("%5", 1.0),
            ("%x", 1.0),
            ("%c", 65.0),
            ("%(name)s", 1.0),
            ("%*d", 1.0),
            ("%.*f", 1.0),
            ("%d", f64::INFINITY),
            ("%i", f64::NAN),
            ("%y", 1.0),
            ("%99999999999999999999d", 1.0),
        ] {
            assert!(percent(template, value).is_err(), "{template} % {value}");
        }
    }
}
