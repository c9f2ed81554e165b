//! The text format of Prometheus (version 0.0.4): families of samples with labels.
//!
//! Knows no metric. Invariant: the samples of a family stand together below its head, as the format demands.

use std::fmt::{Display, Write as _};

use crate::backend::Histogram;

/// A text being written.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// Labels of a sample: names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// The media type of the text.
    pub const MEDIA_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Begins a family of numbers that only grow. Its name should end in `_total`.
    pub fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// Begins a family of numbers that go up and down.
    pub fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Begins a family of durations. Its name should end in `_seconds`.
    pub fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        line(&mut self.0, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        Family { text: &mut self.0, name }
    }

    /// The text.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}

/// The family that is being written.
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) -> &mut Self {
        line(self.text, format_args!("{}{} {value}", self.name, braced(labels, None)));
        self
    }

    /// Adds all samples of a histogram.
    pub fn durations(&mut self, labels: Labels<'_>, histogram: &Histogram) -> &mut Self {
        let (name, read) = (self.name, histogram.read());
        for (bound, count) in read.up_to {
            line(self.text, format_args!("{name}_bucket{} {count}", braced(labels, Some(&bound.to_string()))));
        }
        line(self.text, format_args!("{name}_bucket{} {}", braced(labels, Some("+Inf")), read.count));
        line(self.text, format_args!("{name}_sum{} {}", braced(labels, None), read.sum));
        line(self.text, format_args!("{name}_count{} {}", braced(labels, None), read.count));
        self
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

fn braced(labels: Labels<'_>, bound: Option<&str>) -> String {
    let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
    let escaped = |value: &str| value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let list: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if list.is_empty() { String::new() } else { format!("{{{}}}", list.join(",")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The escapes and the order are those of the format's description.
    #[test]
    fn families_are_written() {
        let mut text = Exposition::default();
        text.counter("asked_total", "Times\nasked.")
            .sample(&[("by", r#"C:\"x""#), ("of", "b")], 3_u64)
            .sample(&[], 1_u64);
        text.gauge("size", "Size.").sample(&[], 1.5);
        let histogram = Histogram::default();
        histogram.observe(Duration::from_secs(20));
        text.histogram("time_seconds", "Time.").durations(&[("of", "b")], &histogram);
        let text = text.text();
        let expected = [
            r"# HELP asked_total Times\nasked.",
            "# TYPE asked_total counter",
            r#"asked_total{by="C:\\\"x\"",of="b"} 3"#,
            "asked_total 1",
            "# HELP size Size.",
            "# TYPE size gauge",
            "size 1.5",
            "# HELP time_seconds Time.",
            "# TYPE time_seconds histogram",
            r#"time_seconds_bucket{of="b",le="0.005"} 0"#,
        ];
        assert_eq!(text.lines().take(expected.len()).collect::<Vec<_>>(), expected);
        let last = [
            r#"time_seconds_bucket{of="b",le="10"} 0"#,
            r#"time_seconds_bucket{of="b",le="30"} 1"#,
            r#"time_seconds_bucket{of="b",le="+Inf"} 1"#,
            r#"time_seconds_sum{of="b"} 20"#,
            r#"time_seconds_count{of="b"} 1"#,
        ];
        assert!(text.ends_with(&(last.join("\n") + "\n")), "{text}");
    }
}
