//! PDF: one page of vectors, written by hand. Characters are drawn as outlines, so that the page looks the same
//! everywhere without a font in the file.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use ab_glyph::{OutlineCurve, Point};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use plotters_backend::{BackendColor, BackendCoord};

use super::Color;
use super::surface::{Ink, Pen, TextPlace, UNITS, pixels, point};

/// Points (of which an inch has 72) a pixel (of which CSS has 96).
const POINTS: f64 = 0.75;

/// What a page shows, in PDF's operators.
#[derive(Debug, Default)]
pub(super) struct Content {
    text: String,
    /// Opacities that occur, in thousandths.
    alphas: BTreeSet<u32>,
}

/// A page being drawn.
pub(super) struct Pdf<'a> {
    content: &'a mut Content,
    size: (u32, u32),
}

fn channel(value: u8) -> f64 {
    (f64::from(value) / 255.0 * 1000.0).round() / 1000.0
}

impl<'a> Pdf<'a> {
    /// Begins a page of `size` pixels.
    pub fn new(content: &'a mut Content, size: (u32, u32), background: Color) -> Self {
        // Pixels, y downwards.
        put!(content.text, "{POINTS} 0 0 -{POINTS} 0 {} cm\n", f64::from(size.1) * POINTS);
        let mut page = Self { content, size };
        let [r, g, b] = background.rgb;
        let color = BackendColor { alpha: background.opacity(), rgb: (r, g, b) };
        let corner = (size.0 as i32 * UNITS, size.1 as i32 * UNITS);
        page.rectangle((0, 0), corner, Ink { color, width: 1 }, true);
        page
    }

    fn color(&mut self, color: BackendColor, operator: &str) {
        let (r, g, b) = color.rgb;
        let alpha = (color.alpha.clamp(0.0, 1.0) * 1000.0).round() as u32;
        self.content.alphas.insert(alpha);
        put!(self.content.text, "/A{alpha} gs {} {} {} {operator}\n", channel(r), channel(g), channel(b));
    }

    fn points(&mut self, points: impl IntoIterator<Item = BackendCoord>) {
        for (i, (x, y)) in points.into_iter().map(point).enumerate() {
            put!(self.content.text, "{x} {y} {}\n", if i == 0 { "m" } else { "l" });
        }
    }

    fn width(&mut self, width: u32) {
        put!(self.content.text, "{} w 2 j\n", width as f32 / UNITS as f32);
    }
}

impl Pen for Pdf<'_> {
    fn size(&self) -> (u32, u32) {
        self.size
    }

    fn rectangle(&mut self, (left, top): BackendCoord, (right, bottom): BackendCoord, ink: Ink, filled: bool) {
        self.color(ink.color, if filled { "rg" } else { "RG" });
        self.width(ink.width);
        let (x, y, width, height) = (pixels(left), pixels(top), pixels(right - left), pixels(bottom - top));
        put!(self.content.text, "{x} {y} {width} {height} re {}\n", if filled { "f" } else { "S" });
    }

    fn path(&mut self, points: impl IntoIterator<Item = BackendCoord>, ink: Ink) {
        self.color(ink.color, "RG");
        self.width(ink.width);
        self.points(points);
        self.content.text.push_str("S\n");
    }

    fn polygon(&mut self, points: impl IntoIterator<Item = BackendCoord>, color: BackendColor) {
        self.color(color, "rg");
        self.points(points);
        self.content.text.push_str("f\n");
    }

    fn text(&mut self, text: &str, place: &TextPlace, color: BackendColor) {
        self.color(color, "rg");
        let factor = place.face.pixels_per_unit(place.size);
        for placed in place.face.place(text, place.size).0 {
            let Some(outline) = place.face.outline(placed.glyph) else { continue };
            let to = |p: Point| {
                let (x, y) = (placed.x + f64::from(p.x) * factor, -f64::from(p.y) * factor);
                let (x, y) = place.turned(place.dx + x, place.dy + y);
                format!("{} {}", (x * 1000.0).round() / 1000.0, (y * 1000.0).round() / 1000.0)
            };
            let mut last = None;
            for curve in &outline.curves {
                let (from, end) = match curve {
                    OutlineCurve::Line(a, b) | OutlineCurve::Quad(a, _, b) | OutlineCurve::Cubic(a, _, _, b) => {
                        (*a, *b)
                    }
                };
                if last != Some(from) {
                    put!(self.content.text, "{} m\n", to(from));
                }
                match curve {
                    OutlineCurve::Line(..) => {
                        put!(self.content.text, "{} l\n", to(end));
                    }
                    OutlineCurve::Quad(_, control, _) => {
                        let two_thirds = |a: f32, b: f32| a + (b - a) * 2.0 / 3.0;
                        let third = |p: Point| Point { x: two_thirds(p.x, control.x), y: two_thirds(p.y, control.y) };
                        put!(self.content.text, "{} {} {} c\n", to(third(from)), to(third(end)), to(end));
                    }
                    OutlineCurve::Cubic(_, one, two, _) => {
                        put!(self.content.text, "{} {} {} c\n", to(*one), to(*two), to(end));
                    }
                }
                last = Some(end);
            }
            if !outline.curves.is_empty() {
                self.content.text.push_str("f\n");
            }
        }
    }
}

/// The file: a page of `size` pixels with this content.
pub(super) fn document(content: &Content, (width, height): (u32, u32)) -> io::Result<Vec<u8>> {
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::new(6));
    stream.write_all(content.text.as_bytes())?;
    let stream = stream.finish()?;
    let alphas: String = content.alphas.iter().fold(String::new(), |mut out, alpha| {
        let opacity = f64::from(*alpha) / 1000.0;
        put!(out, "/A{alpha} << /ca {opacity} /CA {opacity} >> ");
        out
    });
    let page = format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R /Resources << /ExtGState << {alphas}>> >> >>",
        f64::from(width) * POINTS,
        f64::from(height) * POINTS
    );
    let mut out = b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n".to_vec();
    let mut starts = Vec::new();
    let objects: [&[u8]; 3] =
        [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page.as_bytes()];
    for (i, object) in objects.into_iter().enumerate() {
        starts.push(out.len());
        writeln!(out, "{} 0 obj", i + 1)?;
        out.extend_from_slice(object);
        out.extend_from_slice(b"\nendobj\n");
    }
    starts.push(out.len());
    write!(out, "4 0 obj\n<< /Length {} /Filter /FlateDecode >>\nstream\n", stream.len())?;
    out.extend_from_slice(&stream);
    out.extend_from_slice(b"\nendstream\nendobj\n");
    let table = out.len();
    write!(out, "xref\n0 {}\n0000000000 65535 f \n", starts.len() + 1)?;
    for start in &starts {
        writeln!(out, "{start:010} 00000 n ")?;
    }
    write!(out, "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", starts.len() + 1)?;
    Ok(out)
}
