//! `format=raw`: a line a series, `name,start,end,step|value,value`.

use std::io::Write;

use super::writer::write_repr;
use crate::series::Series;

/// A line for each series; an absent value is `None`. Names are written as they are.
#[must_use]
pub fn raw(series: &[Series]) -> Vec<u8> {
    let mut out = Vec::new();
    for series in series {
        // Writing to memory cannot fail.
        let _ = write!(out, "{},{},{},{}|", series.name, series.start(), series.end(), series.step());
        for (index, &value) in series.values().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            if value.is_nan() {
                out.extend_from_slice(b"None");
            } else {
                write_repr(&mut out, value);
            }
        }
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Step;

    #[test]
    fn as_graphite_writes_it() {
        let values = vec![f64::NAN, 5.392e-10, f64::INFINITY, f64::NEG_INFINITY, 1.0];
        let a = Series::new("scale(a,2)", 60, Step::new(60).expect("positive"), values);
        let line = Series::new("5.0", 0, Step::new(300).expect("positive"), vec![5.0; 3]).ending(600);
        let empty = Series::new("", 7, Step::SECOND, vec![]);
        assert_eq!(
            String::from_utf8_lossy(&raw(&[a, line, empty])),
            "scale(a,2),60,360,60|None,5.392e-10,inf,-inf,1.0\n5.0,0,600,300|5.0,5.0,5.0\n,7,7,1|\n"
        );
    }
}
