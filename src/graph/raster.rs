//! PNG: pixels by tiny-skia, text by ab_glyph.

use std::io;

use ab_glyph::{Font as _, point as glyph_point};
use plotters_backend::{BackendColor, BackendCoord};
use tiny_skia::{
    Color as SkiaColor, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8, Rect,
    Stroke, Transform,
};

use super::Color;
use super::surface::{Ink, Pen, TextPlace, Turn, UNITS, pixels, point};

/// A picture of pixels.
pub(super) struct Raster<'a> {
    pixmap: &'a mut Pixmap,
}

impl<'a> Raster<'a> {
    /// Draws on `pixmap`, which becomes a single colour.
    pub fn new(pixmap: &'a mut Pixmap, background: Color) -> Self {
        let [r, g, b] = background.rgb;
        let alpha = (background.opacity() * 255.0).round() as u8;
        pixmap.fill(SkiaColor::from_rgba8(r, g, b, alpha));
        Self { pixmap }
    }

    fn fill(&mut self, path: &Path, color: BackendColor) {
        let paint = paint(color);
        self.pixmap.fill_path(path, &paint, FillRule::Winding, Transform::identity(), None);
    }

    fn stroke(&mut self, path: &Path, Ink { color, width }: Ink) {
        let stroke = Stroke {
            width: width as f32 / UNITS as f32,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Bevel,
            ..Stroke::default()
        };
        self.pixmap.stroke_path(path, &paint(color), &stroke, Transform::identity(), None);
    }

    fn blend(&mut self, x: i64, y: i64, color: BackendColor, coverage: f32) {
        let (width, height) = (i64::from(self.pixmap.width()), i64::from(self.pixmap.height()));
        if !(0..width).contains(&x) || !(0..height).contains(&y) {
            return;
        }
        let alpha = coverage.clamp(0.0, 1.0) * color.alpha as f32;
        let pixel = &mut self.pixmap.pixels_mut()[(y * width + x) as usize];
        let mix = |below: u8, above: u8| {
            (f32::from(below) * (1.0 - alpha) + f32::from(above) * alpha).round().clamp(0.0, 255.0) as u8
        };
        let (red, green, blue) = color.rgb;
        let opacity = mix(pixel.alpha(), u8::MAX);
        let channel = |below: u8, above: u8| mix(below, above).min(opacity);
        let mixed = PremultipliedColorU8::from_rgba(
            channel(pixel.red(), red),
            channel(pixel.green(), green),
            channel(pixel.blue(), blue),
            opacity,
        );
        if let Some(mixed) = mixed {
            *pixel = mixed;
        }
    }
}

fn paint(color: BackendColor) -> Paint<'static> {
    let (r, g, b) = color.rgb;
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, (color.alpha * 255.0).round() as u8);
    paint
}

fn path(points: impl IntoIterator<Item = BackendCoord>, close: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (x, y) in points.into_iter().map(point) {
        if path.is_empty() {
            path.move_to(x, y);
        } else {
            path.line_to(x, y);
        }
    }
    if close {
        path.close();
    }
    path.finish()
}

impl Pen for Raster<'_> {
    fn size(&self) -> (u32, u32) {
        (self.pixmap.width(), self.pixmap.height())
    }

    fn rectangle(&mut self, (left, top): BackendCoord, (right, bottom): BackendCoord, ink: Ink, filled: bool) {
        if !filled {
            let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
            if let Some(path) = path(corners, true) {
                self.stroke(&path, ink);
            }
        } else if let Some(rect) = Rect::from_ltrb(pixels(left), pixels(top), pixels(right), pixels(bottom)) {
            self.pixmap.fill_rect(rect, &paint(ink.color), Transform::identity(), None);
        }
    }

    fn path(&mut self, points: impl IntoIterator<Item = BackendCoord>, ink: Ink) {
        if let Some(path) = path(points, false) {
            self.stroke(&path, ink);
        }
    }

    fn polygon(&mut self, points: impl IntoIterator<Item = BackendCoord>, color: BackendColor) {
        if let Some(path) = path(points, true) {
            self.fill(&path, color);
        }
    }

    /// Each character is rasterised upright; for a text that runs upwards its pixels are put elsewhere, so it is as
    /// sharp as any other.
    fn text(&mut self, text: &str, place: &TextPlace, color: BackendColor) {
        let font = place.face.font();
        let scale = place.face.sharp_scale(place.size);
        // The base line is between two rows of pixels, and the text begins with a pixel.
        let (start, base) = place.turned(place.dx, place.dy);
        let (start, base) = (start.round() as i64, base.round() as i64);
        for placed in place.face.place(text, place.size).0 {
            let glyph = placed.glyph.with_scale_and_position(scale, glyph_point(placed.x as f32, 0.0));
            let Some(outlined) = font.outline_glyph(glyph) else { continue };
            let corner = outlined.px_bounds().min;
            let (left, top) = (corner.x as i64, corner.y as i64);
            outlined.draw(|x, y, coverage| {
                let (along, down) = (left + i64::from(x), top + i64::from(y));
                let (x, y) = match place.turn {
                    Turn::None => (start + along, base + down),
                    Turn::Up => (start + down, base - 1 - along),
                    Turn::Down => (start - 1 - down, base + along),
                };
                self.blend(x, y, color, coverage);
            });
        }
    }
}

/// The pixels as a PNG: without an alpha channel when nothing shows through.
pub(super) fn png(pixmap: &Pixmap) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(pixmap.data().len() / 8);
    let mut encoder = png::Encoder::new(&mut out, pixmap.width(), pixmap.height());
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let opaque = pixmap.pixels().iter().all(|p| p.alpha() == u8::MAX);
    let data: Vec<u8> = if opaque {
        pixmap.data().chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect()
    } else {
        let plain = pixmap.pixels().iter().map(PremultipliedColorU8::demultiply);
        plain.flat_map(|p| [p.red(), p.green(), p.blue(), p.alpha()]).collect()
    };
    encoder.set_color(if opaque { png::ColorType::Rgb } else { png::ColorType::Rgba });
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&data)?;
    writer.finish()?;
    Ok(out)
}
