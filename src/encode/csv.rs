//! `format=csv`: a line a point, `name,2023-11-14 22:00:00,value`, with times as a clock in the request's zone shows
//! them. Quotes and line ends are those of Excel.

use std::io::Write;

use super::writer::write_repr;
use crate::clock::TimeZone;
use crate::series::Series;

/// All points of all series, one after the other; an absent value is an empty field.
#[must_use]
pub fn csv(series: &[Series], zone: &TimeZone) -> Vec<u8> {
    let mut out = Vec::new();
    for series in series {
        let name = field(&series.name);
        out.reserve(series.len() * (name.len() + 32));
        for (index, &value) in series.values().iter().enumerate() {
            out.extend_from_slice(name.as_bytes());
            // Writing to memory cannot fail.
            let _ = write!(out, ",{},", zone.local(series.time(index)));
            if !value.is_nan() {
                write_repr(&mut out, value);
            }
            out.extend_from_slice(b"\r\n");
        }
    }
    out
}

/// The field in quotes if it needs them.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Step;

    #[test]
    fn as_graphite_writes_it() {
        let step = Step::new(60).expect("positive");
        let a = Series::new("scale(a,2)", 1_699_998_660, step, vec![27.2, f64::NAN, f64::INFINITY]);
        let b = Series::new("say \"b\"", 1_699_998_660, step, vec![1e-5]).ending(1_699_998_660);
        assert_eq!(
            String::from_utf8_lossy(&csv(&[a.clone(), b], &TimeZone::utc())),
            "\"scale(a,2)\",2023-11-14 21:51:00,27.2\r\n\"scale(a,2)\",2023-11-14 21:52:00,\r\n\
             \"scale(a,2)\",2023-11-14 21:53:00,inf\r\n\"say \"\"b\"\"\",2023-11-14 21:51:00,1e-05\r\n"
        );
        let new_york = TimeZone::named("America/New_York").expect("a zone");
        assert!(csv(&[a], &new_york).starts_with(b"\"scale(a,2)\",2023-11-14 16:51:00,27.2\r\n"));
        assert!(csv(&[], &new_york).is_empty());
    }
}
