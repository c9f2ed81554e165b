//! Pictures of series: PNG, SVG, PDF, as graphite-web's `/render` answers by default.
//!
//! Pure: series and options in, bytes out. Parameters mean what they mean to graphite-web; pixels are our own. plotters
//! draws on three backends, one a format, in sixteenths of a pixel. Whatever the values (infinite, absent, all the
//! same, not positive on a logarithmic axis) there is a picture; the only errors are what a request says wrongly.

/// Writes to a string, which does not fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        let _ = write!($out, $($arg)*);
    };
}

mod area;
mod clip;
mod color;
mod font;
mod legend;
mod line;
mod options;
mod pdf;
mod pie;
mod raster;
mod surface;
mod svg;
mod theme;
mod trace;
mod units;
mod x_axis;
mod y_axis;

use std::io;

use plotters::prelude::IntoDrawingArea;
use serde_json::Value;
use tiny_skia::Pixmap;

pub use color::Color;
pub use options::{OptionError, Options};
pub use pie::PieMode;

use crate::clock::TimeZone;
use crate::encode::ImageFormat;
use crate::series::Series;
use line::LineGraph;
use pie::Pie;
use surface::{Align, Canvas, Failure, Label, Page, Pen, Surface, Turn};

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// A series was given a colour that is none.
    #[error(
        "color: `{text}`, given to `{series}`, is no colour; write a name such as blue, or 3, 6 or 8 hexadecimal digits"
    )]
    Color {
        /// The series' name.
        series: String,
        /// The colour.
        text: String,
    },
    /// The picture could not be drawn.
    #[error("the picture cannot be drawn: {0}")]
    Drawing(#[from] Failure),
    /// The picture could not be written.
    #[error("the picture cannot be written: {0}")]
    Writing(#[from] io::Error),
}

impl GraphError {
    /// Whether the request is wrong, and not this program.
    #[must_use]
    pub fn is_request(&self) -> bool {
        matches!(self, Self::Color { .. })
    }
}

/// A line graph of the series, with times as a clock in `zone` shows them. Without any point it says "No Data".
///
/// # Errors
/// See [`GraphError`].
pub fn render(
    series: &[Series],
    options: &Options,
    zone: &TimeZone,
    format: ImageFormat,
) -> Result<Vec<u8>, GraphError> {
    match LineGraph::new(series, options, zone)? {
        Some(graph) => paint(&graph, options, format),
        None => paint(&NoData(options), options, format),
    }
}

/// A pie chart of named numbers. Without a positive one it says "No Data".
///
/// # Errors
/// See [`GraphError`].
pub fn pie(slices: &[(String, f64)], options: &Options, format: ImageFormat) -> Result<Vec<u8>, GraphError> {
    match Pie::new(slices, options) {
        Some(pie) => paint(&pie, options, format),
        None => paint(&NoData(options), options, format),
    }
}

/// What can be drawn on any backend.
trait Scene {
    fn draw<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure>;
    /// What scripts in an SVG may want to know.
    fn metadata(&self) -> Value;
}

fn paint(scene: &impl Scene, options: &Options, format: ImageFormat) -> Result<Vec<u8>, GraphError> {
    let size = (options.width, options.height);
    match format {
        ImageFormat::Png => {
            let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
            let mut pixmap = Pixmap::new(size.0, size.1).ok_or_else(no_memory)?;
            draw(scene, raster::Raster::new(&mut pixmap, options.background))?;
            Ok(raster::png(&pixmap)?)
        }
        ImageFormat::Svg => {
            let mut out = String::with_capacity(16_384);
            draw(scene, svg::Svg::new(&mut out, size, options.background))?;
            svg::Svg::finish(&mut out, &scene.metadata());
            Ok(out.into_bytes())
        }
        ImageFormat::Pdf => {
            let mut content = pdf::Content::default();
            draw(scene, pdf::Pdf::new(&mut content, size, options.background))?;
            Ok(pdf::document(&content, size)?)
        }
    }
}

fn draw(scene: &impl Scene, pen: impl Pen) -> Result<(), Failure> {
    scene.draw(&Canvas { root: Page(pen).into_drawing_area() })
}

/// A picture that says so.
struct NoData<'a>(&'a Options);

impl Scene for NoData<'_> {
    fn draw<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure> {
        let (width, height) = (f64::from(self.0.width), f64::from(self.0.height));
        let size = (width * height).ln().round().clamp(6.0, 60.0);
        canvas.part("no-data")?;
        canvas.label(Label {
            text: "No Data",
            font: options::Font { face: self.0.font.face, size },
            color: Color::RED.ink(1.0),
            x: width / 2.0,
            y: height / 2.0,
            align: Align::Center,
            middle: true,
            turn: Turn::None,
        })
    }

    fn metadata(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }
}
