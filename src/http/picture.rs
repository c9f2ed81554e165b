//! Pictures as answers of `/render`: which form, which kind of graph, by which options.

use super::{Params, Problem};
use crate::clock::TimeZone;
use crate::encode::ImageFormat;
use crate::graph::{self, GraphError, Options};
use crate::render::Rendered;

/// A picture that is asked for.
pub(super) struct Picture {
    pub format: ImageFormat,
    options: Options,
    kind: Kind,
}

enum Kind {
    Line,
    /// With what each target is, in order.
    Pie(Vec<Part>),
}

enum Part {
    /// `name:number` stands for itself.
    Literal(String, f64),
    /// A target to evaluate, each series of which is a slice.
    Series,
}

impl Picture {
    /// Reads the parameters. `targets` are those of the request; the ones that stand for themselves are taken out.
    ///
    /// # Errors
    /// A parameter is wrong.
    pub fn read(params: &Params, format: ImageFormat, targets: &mut Vec<String>) -> Result<Self, Problem> {
        let options = Options::read(params.iter()).map_err(|e| Problem::bad_request(e.to_string()))?;
        // graphite-web lets this parameter win over the other.
        let format = match params.get("outputFormat").map(str::to_ascii_lowercase).as_deref() {
            Some("png") => ImageFormat::Png,
            Some("svg") => ImageFormat::Svg,
            Some("pdf") => ImageFormat::Pdf,
            _ => format,
        };
        let kind = if params.get("graphType") == Some("pie") {
            let mut parts = Vec::new();
            targets.retain(|target| {
                let (part, evaluated) = match literal(target) {
                    Some((name, value)) => (Part::Literal(name, value), false),
                    None => (Part::Series, true),
                };
                parts.push(part);
                evaluated
            });
            Kind::Pie(parts)
        } else {
            Kind::Line
        };
        Ok(Self { format, options, kind })
    }

    /// Draws it. Work for the processor, not for an event loop.
    ///
    /// # Errors
    /// See [`GraphError`].
    pub fn draw(&self, rendered: &Rendered, zone: &TimeZone) -> Result<Vec<u8>, GraphError> {
        let Kind::Pie(parts) = &self.kind else {
            return graph::render(&rendered.series, &self.options, zone, self.format);
        };
        let mut slices = Vec::new();
        let (mut series, mut counts) = (rendered.series.as_slice(), rendered.counts.iter());
        for part in parts {
            match part {
                Part::Literal(name, value) => slices.push((name.clone(), *value)),
                Part::Series => {
                    let count = counts.next().copied().unwrap_or(0).min(series.len());
                    let (own, rest) = series.split_at(count);
                    slices.extend(own.iter().map(|s| self.options.pie_mode().slice(s)));
                    series = rest;
                }
            }
        }
        graph::pie(&slices, &self.options, self.format)
    }
}

/// A target that is a name and a number.
fn literal(target: &str) -> Option<(String, f64)> {
    let (name, number) = target.rsplit_once(':')?;
    Some((name.to_owned(), number.trim().parse().ok()?))
}

impl From<GraphError> for Problem {
    fn from(error: GraphError) -> Self {
        let text = error.to_string();
        if error.is_request() {
            Self::bad_request(text)
        } else {
            Self::new(actix_web::http::StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}
