//! The legend below a graph: coloured squares and names in columns.

use super::options::Font;
use super::surface::{Align, Canvas, Failure, Label, Surface, Turn, crisp, fill, stroke};
use super::{Color, Options};

/// Between columns, and between square and name.
const PADDING: f64 = 5.0;

/// One line of the legend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub name: String,
    /// None for a remark.
    pub color: Option<Color>,
    /// Of the right y axis: stands at the right side.
    pub right: bool,
}

/// A legend with its places.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Legend {
    font: Font,
    entries: Vec<Placed>,
    /// Pixels that it takes, at the bottom of the picture.
    pub height: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Placed {
    entry: Entry,
    /// The square's left edge.
    x: f64,
    /// Pixels below the legend's upper edge.
    y: f64,
}

impl Legend {
    /// A legend that takes at most about half of the picture; what has no place is counted in its last line.
    pub fn new(mut entries: Vec<Entry>, options: &Options) -> Self {
        let font = options.font;
        if options.unique_legend {
            let mut seen = std::collections::HashSet::new();
            entries.retain(|e| seen.insert(e.name.clone()));
        }
        if entries.is_empty() {
            return Self { font, entries: Vec::new(), height: 0.0 };
        }
        let square = square(font);
        let line = font.face.line_height(font.size) + 1.0;
        let (start, end) = (options.margin + 10.0, f64::from(options.width) - options.margin);
        let most = (end - start - square - PADDING).max(square);
        for entry in &mut entries {
            entry.name = font.face.fitting(&entry.name, font.size, most);
        }
        let widest = entries.iter().map(|e| font.face.width(&e.name, font.size)).fold(0.0, f64::max);
        // Square and name, and as much room as a square takes before the next column.
        let between = square + PADDING;
        let column = between + widest + between;
        let columns = ((end - start + between) / column).floor().max(1.0) as usize;
        let lines = ((f64::from(options.height) * 0.5) / line).floor().max(1.0) as usize;
        let two_sides = columns > 1 && entries.iter().any(|e| e.right) && entries.iter().any(|e| !e.right);
        let room = columns * lines;
        if entries.len() > room {
            let more = entries.len() - (room - 1);
            entries.truncate(room - 1);
            entries.push(Entry { name: format!("… and {more} more"), color: None, right: false });
        }
        let columns_a_side = if two_sides { columns / 2 } else { columns };
        let (mut left, mut right) = (0, 0);
        let mut placed = Vec::with_capacity(entries.len());
        for entry in entries {
            let at_right = two_sides && entry.right;
            let n = if at_right { &mut right } else { &mut left };
            let (row, col) = ((*n / columns_a_side) as f64, (*n % columns_a_side) as f64);
            *n += 1;
            let x = if at_right { end - square - col * column } else { start + col * column };
            placed.push(Placed { entry: Entry { right: at_right, ..entry }, x, y: row * line });
        }
        let rows = left.max(right).div_ceil(columns_a_side) as f64;
        // It is drawn one padding lower than it begins, for which there mostly is room in the margin.
        let above = PADDING.max(2.0 * PADDING - options.margin);
        Self { font, entries: placed, height: rows * line + above }
    }

    /// Draws it below `top`.
    pub fn draw<B: Surface>(&self, canvas: &Canvas<B>, top: f64, foreground: Color) -> Result<(), Failure> {
        let square = square(self.font);
        for Placed { entry, x, y } in &self.entries {
            let (x, y) = (x.floor(), (top + 2.0 * PADDING + y).floor());
            if let Some(color) = entry.color {
                canvas.rectangle((x, y), (square, square), fill(color.ink(1.0)))?;
                let border = stroke(Color::BORDER.ink(1.0), 1.0);
                canvas.rectangle((crisp(x), crisp(y)), (square - 1.0, square - 1.0), border)?;
            }
            let (x, align) = match (entry.color, entry.right) {
                (_, true) => (x - PADDING, Align::End),
                (Some(_), false) => (x + square + PADDING, Align::Start),
                (None, false) => (x, Align::Start),
            };
            let y = y + square / 2.0;
            canvas.label(Label {
                text: &entry.name,
                font: self.font,
                color: foreground.ink(1.0),
                x,
                y,
                align,
                middle: true,
                turn: Turn::None,
            })?;
        }
        Ok(())
    }
}

/// The side of a square.
fn square(font: Font) -> f64 {
    (font.face.line_height(font.size) - 1.0).max(2.0)
}
