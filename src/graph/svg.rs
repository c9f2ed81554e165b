//! SVG, written by hand: a group a part of the picture, named by its class, texts as texts.

use std::fmt::{self, Write as _};

use plotters_backend::text_anchor::HPos;
use plotters_backend::{BackendColor, BackendCoord};

use super::Color;
use super::surface::{Ink, Pen, TextPlace, Turn, UNITS, pixels};

/// A document being written. [`Svg::finish`] closes it.
pub(super) struct Svg<'a> {
    out: &'a mut String,
    size: (u32, u32),
    part: Option<&'static str>,
}

impl<'a> Svg<'a> {
    /// Begins a document of `size` pixels in `out`.
    pub fn new(out: &'a mut String, (width, height): (u32, u32), background: Color) -> Self {
        put!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        put!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}px\" height=\"{height}px\" \
             viewBox=\"0 0 {width} {height}\" version=\"1.1\">\n"
        );
        put!(out, "<g class=\"graphite\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"", background.hex());
        opacity(out, "fill", background.opacity());
        out.push_str("/>\n");
        Self { out, size: (width, height), part: None }
    }

    /// Ends the document that was begun in `out`, with data for scripts.
    pub fn finish(out: &mut String, metadata: &serde_json::Value) {
        out.push_str("</g>\n</g>\n");
        // Only texts within JSON can have these, and XML must not take them for its own.
        let metadata = metadata.to_string().replace('<', "\\u003c").replace('>', "\\u003e");
        put!(out, "<script>\n<![CDATA[\nmetadata = {metadata}\n]]>\n</script>\n</svg>\n");
    }

    fn close_part(&mut self) {
        if self.part.is_some() {
            self.out.push_str("</g>\n");
        }
    }

    fn points(&mut self, points: impl IntoIterator<Item = BackendCoord>, close: bool) {
        self.out.push_str("<path d=\"");
        for (i, (x, y)) in points.into_iter().enumerate() {
            self.out.push_str(match i {
                0 => "M",
                1 => "L",
                _ => " ",
            });
            put!(self.out, "{} {}", Short(pixels(x)), Short(pixels(y)));
        }
        self.out.push_str(if close { "Z\"" } else { "\"" });
    }

    fn filled(&mut self, color: BackendColor) {
        put!(self.out, " fill=\"{}\"", hex(color));
        opacity(self.out, "fill", color.alpha);
    }

    fn stroked(&mut self, Ink { color, width }: Ink) {
        put!(self.out, " fill=\"none\" stroke=\"{}\"", hex(color));
        opacity(self.out, "stroke", color.alpha);
        put!(self.out, " stroke-width=\"{}\" stroke-linejoin=\"bevel\"", Short(width as f32 / UNITS as f32));
    }
}

fn hex(color: BackendColor) -> String {
    let (r, g, b) = color.rgb;
    Color { rgb: [r, g, b], alpha: None }.hex()
}

fn opacity(out: &mut String, what: &str, alpha: f64) {
    if alpha < 1.0 {
        put!(out, " {what}-opacity=\"{}\"", Short(alpha as f32));
    }
}

/// A number with two decimals at most.
struct Short(f32);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 100.0).round() / 100.0)
    }
}

/// A text with what XML would take for markup escaped, and without the characters that it cannot hold.
pub(super) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                c if c.is_control() => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

impl Pen for Svg<'_> {
    fn size(&self) -> (u32, u32) {
        self.size
    }

    fn begin(&mut self, part: &'static str) {
        self.close_part();
        put!(self.out, "<g class=\"{part}\">\n");
        self.part = Some(part);
    }

    fn rectangle(&mut self, (left, top): BackendCoord, (right, bottom): BackendCoord, ink: Ink, filled: bool) {
        put!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            Short(pixels(left)),
            Short(pixels(top)),
            Short(pixels(right - left)),
            Short(pixels(bottom - top))
        );
        if filled {
            self.filled(ink.color);
        } else {
            self.stroked(ink);
        }
        self.out.push_str("/>\n");
    }

    fn path(&mut self, points: impl IntoIterator<Item = BackendCoord>, ink: Ink) {
        self.points(points, false);
        self.stroked(ink);
        self.out.push_str("/>\n");
    }

    fn polygon(&mut self, points: impl IntoIterator<Item = BackendCoord>, color: BackendColor) {
        self.points(points, true);
        self.filled(color);
        self.out.push_str("/>\n");
    }

    fn text(&mut self, text: &str, place: &TextPlace, color: BackendColor) {
        let anchor = match place.anchor {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let (x, y) = place.turned(0.0, place.dy);
        put!(self.out, "<text x=\"{}\" y=\"{}\"", Short(x as f32), Short(y as f32));
        put!(self.out, " font-family=\"{}\" font-size=\"{}px\"", place.face.css_family(), Short(place.size as f32));
        if place.face.is_bold() {
            self.out.push_str(" font-weight=\"bold\"");
        }
        if place.face.is_italic() {
            self.out.push_str(" font-style=\"italic\"");
        }
        if anchor != "start" {
            put!(self.out, " text-anchor=\"{anchor}\"");
        }
        let degrees = match place.turn {
            Turn::None => None,
            Turn::Up => Some(270),
            Turn::Down => Some(90),
        };
        if let Some(degrees) = degrees {
            put!(self.out, " transform=\"rotate({degrees} {} {})\"", Short(x as f32), Short(y as f32));
        }
        self.filled(color);
        put!(self.out, ">{}</text>\n", Escaped(text));
    }
}
