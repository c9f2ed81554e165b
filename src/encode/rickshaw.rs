//! `format=rickshaw`: points as `{x, y}` objects, for the Rickshaw chart library.

use super::writer::Writer;
use crate::series::Series;

/// An array of `{"target", "datapoints": [{"x": time, "y": value}, …]}`. Points that lie at or beyond a series' stated
/// end are left out, as graphite-web does.
#[must_use]
pub fn rickshaw(series: &[Series], pretty: bool) -> Vec<u8> {
    let mut writer = Writer::new(pretty);
    writer.open(b'[');
    for series in series {
        writer.reserve(100 + series.len() * 36);
        writer.item();
        writer.open(b'{');
        writer.key("target");
        writer.string(&series.name);
        writer.key("datapoints");
        writer.open(b'[');
        for (index, &value) in series.values().iter().enumerate() {
            let time = series.time(index);
            if time >= series.end() {
                break;
            }
            writer.item();
            writer.open(b'{');
            writer.key("x");
            writer.integer(time);
            writer.key("y");
            writer.float(value);
            writer.close(b'}');
        }
        writer.close(b']');
        writer.close(b'}');
    }
    writer.close(b']');
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Step;

    #[test]
    fn as_graphite_writes_it() {
        let step = Step::new(300).expect("positive");
        let a = Series::new("a", 300, step, vec![31.69, f64::NAN, f64::INFINITY]);
        let line = Series::new("5.0", 0, step, vec![5.0; 3]).ending(600);
        assert_eq!(
            String::from_utf8_lossy(&rickshaw(&[a, line], false)),
            r#"[{"target": "a", "datapoints": [{"x": 300, "y": 31.69}, {"x": 600, "y": null}, {"x": 900, "y": null}]}, {"target": "5.0", "datapoints": [{"x": 0, "y": 5.0}, {"x": 300, "y": 5.0}]}]"#
        );
        assert_eq!(rickshaw(&[], true), b"[]");
    }
}
