//! What pictures are drawn on: plotters' drawing backend, in finer units than pixels.
//!
//! plotters counts in whole units. [`UNITS`] of them are a pixel, so that its grid is too fine to be seen. A font's
//! family is the PostScript name of a [`Face`], its size is in units too.

use std::convert::Infallible;

use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::element::Drawable;
use plotters::element::PointCollection;
use plotters::prelude::{DrawingArea, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontDesc, FontFamily, FontStyle, FontTransform, RGBAColor, ShapeStyle, TextStyle};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};

use super::font::Face;
use super::options::Font;

/// Units a pixel.
pub(super) const UNITS: i32 = 16;

/// Drawing itself does not fail; plotters could find a layout that has no room.
pub(super) type Failure = DrawingAreaErrorKind<Infallible>;

/// A drawing backend that knows parts of a picture.
pub(super) trait Surface: DrawingBackend<ErrorType = Infallible> {
    /// What is drawn from now on belongs to this part.
    fn begin(&mut self, part: &'static str);
}

/// What a format has to do. Coordinates and widths are in units.
pub(super) trait Pen {
    /// Width and height of the picture, in pixels.
    fn size(&self) -> (u32, u32);
    /// What is drawn from now on belongs to this part; formats without parts need not care.
    fn begin(&mut self, _part: &'static str) {}
    /// A rectangle, or its edge.
    fn rectangle(&mut self, from: BackendCoord, to: BackendCoord, ink: Ink, filled: bool);
    /// A line through points.
    fn path(&mut self, points: impl IntoIterator<Item = BackendCoord>, ink: Ink);
    /// A filled polygon.
    fn polygon(&mut self, points: impl IntoIterator<Item = BackendCoord>, color: BackendColor);
    /// A text.
    fn text(&mut self, text: &str, place: &TextPlace, color: BackendColor);
}

/// How a line is drawn.
#[derive(Clone, Copy)]
pub(super) struct Ink {
    pub color: BackendColor,
    /// In units.
    pub width: u32,
}

impl Ink {
    fn of(style: &impl BackendStyle) -> Self {
        Self { color: style.color(), width: style.stroke_width() }
    }
}

/// A format's pen as plotters' backend.
pub(super) struct Page<P>(pub P);

impl<P: Pen> Surface for Page<P> {
    fn begin(&mut self, part: &'static str) {
        self.0.begin(part);
    }
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl<P: Pen> DrawingBackend for Page<P> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        let (width, height) = self.0.size();
        (width * UNITS.unsigned_abs(), height * UNITS.unsigned_abs())
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.draw_rect((x, y), (x + UNITS, y + UNITS), &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, fill: bool) -> Drawn {
        self.0.rectangle(from, to, Ink::of(style), fill);
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, points: I, style: &S) -> Drawn {
        self.0.path(points, Ink::of(style));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, points: I, style: &S) -> Drawn {
        self.0.polygon(points, style.color());
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        self.0.text(text, &TextPlace::new(text, style, at), style.color());
        Ok(())
    }
}

/// Pixels as units.
pub(super) fn units(pixels: f64) -> i32 {
    (pixels * f64::from(UNITS)).round() as i32
}

/// Units as pixels.
pub(super) fn pixels(units: i32) -> f32 {
    units as f32 / UNITS as f32
}

/// Units as pixels.
pub(super) fn point((x, y): BackendCoord) -> (f32, f32) {
    (pixels(x), pixels(y))
}

/// The whole of a picture: coordinates in pixels from the upper left corner.
pub(super) struct Canvas<B: Surface> {
    pub root: DrawingArea<B, Shift>,
}

/// Where a text is, as seen from its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// The text begins here.
    Start,
    Center,
    /// The text ends here.
    End,
}

/// One text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label<'a> {
    pub text: &'a str,
    pub font: Font,
    pub color: RGBAColor,
    pub x: f64,
    pub y: f64,
    pub align: Align,
    /// Whether `y` is the middle of the line, and not its upper edge.
    pub middle: bool,
    pub turn: Turn,
}

/// How a text runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    None,
    Up,
    Down,
}

/// A line of `width` pixels.
pub(super) fn stroke(color: RGBAColor, width: f64) -> ShapeStyle {
    ShapeStyle { color, filled: false, stroke_width: units(width).max(1).unsigned_abs() }
}

/// An area.
pub(super) fn fill(color: RGBAColor) -> ShapeStyle {
    ShapeStyle { color, filled: true, stroke_width: 1 }
}

/// The middle of the pixel that `at` lies in: where a line of one pixel is sharp.
pub(super) fn crisp(at: f64) -> f64 {
    at.floor() + 0.5
}

impl<B: Surface> Canvas<B> {
    pub fn part(&self, part: &'static str) -> Result<(), Failure> {
        self.root.draw(&Part(part))
    }

    pub fn rectangle(&self, (x, y): (f64, f64), (width, height): (f64, f64), style: ShapeStyle) -> Result<(), Failure> {
        let corner = |x, y| (units(x), units(y));
        self.root.draw(&Rectangle::new([corner(x, y), corner(x + width, y + height)], style))
    }

    pub fn line(&self, from: (f64, f64), to: (f64, f64), style: ShapeStyle) -> Result<(), Failure> {
        let at = |(x, y)| (units(x), units(y));
        self.root.draw(&PathElement::new([at(from), at(to)], style))
    }

    pub fn polygon(&self, points: &[(f64, f64)], style: ShapeStyle) -> Result<(), Failure> {
        let points: Vec<(i32, i32)> = points.iter().map(|(x, y)| (units(*x), units(*y))).collect();
        self.root.draw(&Polygon::new(points, style))
    }

    pub fn label(&self, label: Label<'_>) -> Result<(), Failure> {
        let Font { face, size } = label.font;
        let transform = match label.turn {
            Turn::None => FontTransform::None,
            Turn::Up => FontTransform::Rotate270,
            Turn::Down => FontTransform::Rotate90,
        };
        let horizontal = match label.align {
            Align::Start => HPos::Left,
            Align::Center => HPos::Center,
            Align::End => HPos::Right,
        };
        let vertical = if label.middle { VPos::Center } else { VPos::Top };
        let size = size * f64::from(UNITS);
        let font = FontDesc::new(FontFamily::Name(face.name()), size, FontStyle::Normal).transform(transform);
        let style = TextStyle { font, color: label.color.to_backend_color(), pos: Pos::new(horizontal, vertical) };
        self.root.draw(&Text::new(label.text, (units(label.x), units(label.y)), style))
    }
}

/// Begins a part of the picture.
struct Part(&'static str);

impl<'a> PointCollection<'a, BackendCoord> for &'a Part {
    type Point = &'a BackendCoord;
    type IntoIter = std::iter::Empty<&'a BackendCoord>;
    fn point_iter(self) -> Self::IntoIter {
        std::iter::empty()
    }
}

impl<B: Surface> Drawable<B> for Part {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        _: I,
        backend: &mut B,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        backend.begin(self.0);
        Ok(())
    }
}

/// A text as a backend has to draw it: where its base line begins, in pixels before it is turned around `at`.
pub(super) struct TextPlace {
    pub face: Face,
    pub size: f64,
    pub at: (f64, f64),
    /// Which part of the text is at `at`.
    pub anchor: HPos,
    pub dx: f64,
    pub dy: f64,
    pub turn: Turn,
}

impl TextPlace {
    fn new(text: &str, style: &impl BackendTextStyle, at: BackendCoord) -> Self {
        let face = Face::named(style.family().as_str());
        let size = style.size() / f64::from(UNITS);
        let anchor = style.anchor();
        let width = face.width(text, size);
        let dx = match anchor.h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        let dy = match anchor.v_pos {
            VPos::Top => face.ascent(size),
            VPos::Center => (face.ascent(size) - face.descent(size)) / 2.0,
            VPos::Bottom => -face.descent(size),
        };
        let turn = match style.transform() {
            FontTransform::Rotate270 => Turn::Up,
            FontTransform::Rotate90 => Turn::Down,
            FontTransform::None | FontTransform::Rotate180 => Turn::None,
        };
        let at = (f64::from(at.0) / f64::from(UNITS), f64::from(at.1) / f64::from(UNITS));
        Self { face, size, at, anchor: anchor.h_pos, dx, dy, turn }
    }

    /// Where a place `(x, y)` of the text that is not turned (x along it, y downwards, from the anchor) really is.
    pub fn turned(&self, x: f64, y: f64) -> (f64, f64) {
        match self.turn {
            Turn::None => (self.at.0 + x, self.at.1 + y),
            Turn::Up => (self.at.0 + y, self.at.1 - x),
            Turn::Down => (self.at.0 - y, self.at.1 + x),
        }
    }
}
