//! Pie charts.

use std::f64::consts::TAU;

use serde_json::Value;

use crate::series::{Aggregation, Series};

use super::legend::{Entry, Legend};
use super::options::{Font, Options, ValueLabels, plain};
use super::surface::{Align, Canvas, Failure, Label, Surface, Turn, fill};
use super::{Color, Scene};

/// Which number of a series is its slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PieMode {
    /// The mean of the known values.
    #[default]
    Average,
    /// The greatest.
    Maximum,
    /// The least.
    Minimum,
}

impl PieMode {
    /// The slice of a series: its name and number, 0 when nothing of it is known.
    #[must_use]
    pub fn slice(self, series: &Series) -> (String, f64) {
        let function = match self {
            Self::Average => Aggregation::Average,
            Self::Maximum => Aggregation::Max,
            Self::Minimum => Aggregation::Min,
        };
        let value = function.apply(series.values());
        (series.name.to_string(), if value.is_nan() { 0.0 } else { value })
    }
}

struct Slice {
    value: f64,
    /// Of the whole, from 0 to 1.
    share: f64,
    color: Color,
}

/// A pie chart, laid out.
pub(super) struct Pie<'a> {
    options: &'a Options,
    slices: Vec<Slice>,
    legend: Legend,
}

impl<'a> Pie<'a> {
    /// `None` when there is nothing to divide. Numbers that are not positive and finite have no slice.
    pub fn new(slices: &[(String, f64)], options: &'a Options) -> Option<Self> {
        let size = |value: f64| if value.is_finite() { value.clamp(0.0, 1e300) } else { 0.0 };
        let most = slices.iter().map(|(_, value)| size(*value)).fold(0.0, f64::max);
        if most <= 0.0 {
            return None;
        }
        // Divided by the greatest first, so that the sum stays finite.
        let total: f64 = slices.iter().map(|(_, value)| size(*value) / most).sum();
        let colors = || options.colors.iter().copied().cycle();
        let shown = slices.iter().zip(colors());
        let entries =
            shown.clone().map(|((name, _), color)| Entry { name: plain(name), color: Some(color), right: false });
        let legend = if options.hide_legend.unwrap_or(false) { Vec::new() } else { entries.collect() };
        let slices =
            shown.map(|((_, value), color)| Slice { value: *value, share: size(*value) / most / total, color });
        Some(Self { options, slices: slices.collect(), legend: Legend::new(legend, options) })
    }

    fn label(&self, slice: &Slice) -> Option<String> {
        let least = self.options.value_labels_min;
        match self.options.value_labels {
            ValueLabels::Percent if slice.share * 100.0 >= least => Some(format!("{:.2}%", slice.share * 100.0)),
            ValueLabels::Number if slice.value >= least && slice.share > 0.0 => {
                let fraction = slice.value < 10.0 && slice.value.fract() != 0.0;
                Some(if fraction { format!("{:.2}", slice.value) } else { format!("{:.0}", slice.value.trunc()) })
            }
            _ => None,
        }
    }
}

impl Scene for Pie<'_> {
    fn draw<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure> {
        let options = self.options;
        let (width, height) = (f64::from(options.width), f64::from(options.height));
        let Font { face, size } = options.font;
        let mut top = options.margin;
        if let Some(title) = &options.title {
            canvas.part("title")?;
            let font = Font { face, size: size + size.ln().floor().max(0.0) };
            let lines = face.title(title, font.size, width);
            for text in &lines {
                let (x, color) = (width / 2.0, options.foreground.ink(1.0));
                let label =
                    Label { text, font, color, x, y: top, align: Align::Center, middle: false, turn: Turn::None };
                canvas.label(label)?;
                top += face.line_height(font.size);
            }
            top += options.margin;
        }
        let bottom = height - options.margin - self.legend.height;
        if self.legend.height > 0.0 {
            canvas.part("legend")?;
            self.legend.draw(canvas, bottom, options.foreground)?;
        }
        canvas.part("pie")?;
        let radius = ((bottom - top).min(width - 2.0 * options.margin) / 2.0 * 0.95).max(1.0);
        let (x, y) = (width / 2.0, f64::midpoint(top, bottom));
        let at = |angle: f64, radius: f64| (x + radius * angle.cos(), y + radius * angle.sin());
        let alpha = options.area_alpha.unwrap_or(1.0);
        // From the top, clockwise.
        let mut from = -TAU / 4.0;
        let mut labels = Vec::new();
        for slice in self.slices.iter().filter(|s| s.share > 0.0) {
            let to = from + TAU * slice.share;
            // Pieces of two pixels look round.
            let pieces = ((to - from) * radius / 2.0).ceil().clamp(1.0, 10_000.0);
            let arc = (0..=pieces as u32).map(|i| at(from + (to - from) * f64::from(i) / pieces, radius));
            let whole = slice.share >= 1.0;
            let points: Vec<(f64, f64)> = (!whole).then_some((x, y)).into_iter().chain(arc).collect();
            canvas.polygon(&points, fill(slice.color.ink(alpha)))?;
            labels.push((f64::midpoint(from, to), self.label(slice)));
            from = to;
        }
        canvas.part("labels")?;
        for (angle, text) in &labels {
            let Some(text) = text else { continue };
            let (x, y) = at(*angle, radius * 0.6);
            // Text runs in four directions only; three of them can be read.
            let turn = match (options.rotated_labels, angle.sin()) {
                (true, s) if s > 0.7 => Turn::Down,
                (true, s) if s < -0.7 => Turn::Up,
                _ => Turn::None,
            };
            let color = options.value_labels_color.ink(1.0);
            let label = Label { text, font: options.font, color, x, y, align: Align::Center, middle: true, turn };
            canvas.label(label)?;
        }
        Ok(())
    }

    fn metadata(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }
}
