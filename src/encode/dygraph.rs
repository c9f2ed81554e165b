//! `format=dygraph`: one table of all series, for the dygraphs chart library.
//!
//! graphite-web takes the times of the first series and fails when another has more or fewer points. Here the table
//! has a row for each time that any series has, so series of different steps share it.

use super::writer::Writer;
use crate::series::Series;

/// `{"labels" : ["Time", name…], "data" : [[milliseconds, value…], …]}`, rows by time; `null` where a series has no
/// value. Without any series it is `{}`.
#[must_use]
pub fn dygraph(series: &[Series]) -> Vec<u8> {
    if series.is_empty() {
        return b"{}".to_vec();
    }
    let mut writer = Writer::new(false);
    writer.raw(b"{\"labels\" : ");
    writer.open(b'[');
    writer.item();
    writer.string("Time");
    for series in series {
        writer.item();
        writer.string(&series.name);
    }
    writer.close(b']');
    writer.raw(b", \"data\" : ");
    writer.open(b'[');
    // The next point of each series.
    let mut next = vec![0; series.len()];
    let time_of = |(series, &next): (&Series, &usize)| (next < series.len()).then(|| series.time(next));
    while let Some(time) = series.iter().zip(&next).filter_map(time_of).min() {
        writer.item();
        writer.open(b'[');
        writer.item();
        writer.integer(time.saturating_mul(1000));
        for (series, next) in series.iter().zip(&mut next) {
            writer.item();
            if time_of((series, next)) == Some(time) {
                writer.float(series.values()[*next]);
                *next += 1;
            } else {
                writer.raw(b"null");
            }
        }
        writer.close(b']');
    }
    writer.close(b']');
    writer.raw(b"}");
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Step;

    fn text(series: &[Series]) -> String {
        String::from_utf8(dygraph(series)).expect("UTF-8")
    }

    #[test]
    fn as_graphite_writes_it() {
        let step = Step::new(60).expect("positive");
        let a = Series::new("a \"q\"", 60, step, vec![27.2, f64::NAN]);
        let b = Series::new("b", 60, step, vec![f64::INFINITY, 5.392e-10]);
        assert_eq!(
            text(&[a, b]),
            r#"{"labels" : ["Time", "a \"q\"", "b"], "data" : [[60000, 27.2, null], [120000, null, 5.392e-10]]}"#
        );
        assert_eq!(text(&[]), "{}");
        assert_eq!(text(&[Series::new("a", 60, step, vec![])]), r#"{"labels" : ["Time", "a"], "data" : []}"#);
    }

    #[test]
    fn series_of_different_times_share_the_table() {
        let fine = Series::new("fine", 60, Step::new(60).expect("positive"), vec![1.0, 2.0, 3.0]);
        let coarse = Series::new("coarse", 0, Step::new(120).expect("positive"), vec![10.0, 20.0]).ending(0);
        assert_eq!(
            text(&[fine, coarse]),
            r#"{"labels" : ["Time", "fine", "coarse"], "data" : [[0, null, 10.0], [60000, 1.0, null], [120000, 2.0, 20.0], [180000, 3.0, null]]}"#
        );
    }
}
