//! `format=dygraph`: one table of all series, for the dygraphs chart library.
//!
//! graphite-web takes the times of the first series and fails when another has more or fewer points. Here the table
//! has a row for each time that any series has, so series of different steps share it. Where they share few times the
//! table is far larger than the series are, so there is a limit.

use std::collections::HashSet;

use super::writer::Writer;
use crate::series::{Series, Step};

/// The most cells of a table: about 1 GB of text.
const MAX_CELLS: usize = 64_000_000;

/// The table would be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a table of all times of all series would have more than {MAX_CELLS} cells; ask for series of one step")]
pub struct TableTooLarge;

/// `{"labels" : ["Time", name…], "data" : [[milliseconds, value…], …]}`, rows by time; `null` where a series has no
/// value. Without any series it is `{}`.
///
/// # Errors
/// The table would be too large.
pub fn dygraph(series: &[Series]) -> Result<Vec<u8>, TableTooLarge> {
    if series.is_empty() {
        return Ok(b"{}".to_vec());
    }
    // Most series have their times in common.
    let grids: HashSet<(i64, Step, usize)> = series.iter().map(|s| (s.start(), s.step(), s.len())).collect();
    let of_grid = |(start, step, len): (i64, Step, usize)| (0..len as i64).map(move |i| start + step.seconds() * i);
    let mut times: Vec<i64> = grids.into_iter().flat_map(of_grid).collect();
    times.sort_unstable();
    times.dedup();
    if times.len().saturating_mul(series.len()) > MAX_CELLS {
        return Err(TableTooLarge);
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
    for time in times {
        writer.item();
        writer.open(b'[');
        writer.item();
        writer.integer(time.saturating_mul(1000));
        for (series, next) in series.iter().zip(&mut next) {
            writer.item();
            if *next < series.len() && series.time(*next) == time {
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
    Ok(writer.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(series: &[Series]) -> String {
        String::from_utf8(dygraph(series).expect("small")).expect("UTF-8")
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

    #[test]
    fn tables_of_few_shared_times_are_refused() {
        let step = Step::new(100_000).expect("positive");
        let apart = |i: i64| Series::new("a", i, step, vec![0.0; 8]);
        let all: Vec<Series> = (0..3000).map(apart).collect();
        assert_eq!(dygraph(&all), Err(TableTooLarge));
    }
}
