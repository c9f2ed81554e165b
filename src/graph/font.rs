//! The fonts, which are a part of the program so that every machine draws the same: the DejaVu family.
//!
//! Measures text and gives its outlines. Sizes are those of the em square, in pixels.

use std::sync::LazyLock;

use ab_glyph::{Font as _, FontRef, GlyphId, Outline, PxScale};

/// The most lines of a title.
const MOST_LINES: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Sans,
    Serif,
    Mono,
}

/// One of the fonts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Face {
    family: Family,
    bold: bool,
    italic: bool,
}

/// Every face: its name, its place in the CSS world, its data.
struct Cut {
    name: &'static str,
    css: &'static str,
    face: Face,
    font: FontRef<'static>,
}

static CUTS: LazyLock<Vec<Cut>> = LazyLock::new(|| {
    let cut = |name, family, bold, italic, data: &'static [u8]| {
        let font = FontRef::try_from_slice(data).expect("the fonts within the program are whole");
        let css = match family {
            Family::Sans => "'DejaVu Sans',Verdana,sans-serif",
            Family::Serif => "'DejaVu Serif',Georgia,serif",
            Family::Mono => "'DejaVu Sans Mono',Menlo,monospace",
        };
        Cut { name, css, face: Face { family, bold, italic }, font }
    };
    vec![
        cut("DejaVuSans", Family::Sans, false, false, dejavu::sans::regular()),
        cut("DejaVuSans-Bold", Family::Sans, true, false, dejavu::sans::bold()),
        cut("DejaVuSans-Oblique", Family::Sans, false, true, dejavu::sans::oblique()),
        cut("DejaVuSans-BoldOblique", Family::Sans, true, true, dejavu::sans::bold_oblique()),
        cut("DejaVuSerif", Family::Serif, false, false, dejavu::serif::regular()),
        cut("DejaVuSerif-Bold", Family::Serif, true, false, dejavu::serif::bold()),
        cut("DejaVuSerif-Italic", Family::Serif, false, true, dejavu::serif::italic()),
        cut("DejaVuSerif-BoldItalic", Family::Serif, true, true, dejavu::serif::bold_italic()),
        cut("DejaVuSansMono", Family::Mono, false, false, dejavu::sans_mono::regular()),
        cut("DejaVuSansMono-Bold", Family::Mono, true, false, dejavu::sans_mono::bold()),
        cut("DejaVuSansMono-Oblique", Family::Mono, false, true, dejavu::sans_mono::oblique()),
        cut("DejaVuSansMono-BoldOblique", Family::Mono, true, true, dejavu::sans_mono::bold_oblique()),
    ]
});

/// A character at its place: pixels to the right of the start of the text.
pub(super) struct Placed {
    pub glyph: GlyphId,
    pub x: f64,
}

impl Face {
    /// The face for the name of a font, of which there are three kinds here: with the word "mono" or "courier" in it,
    /// with "serif" or "times" (but not "sans"), and all others.
    pub fn of(name: &str, bold: bool, italic: bool) -> Self {
        let name = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let family = if has(&["mono", "courier", "consol"]) {
            Family::Mono
        } else if has(&["serif", "times", "georgia"]) && !has(&["sans"]) {
            Family::Serif
        } else {
            Family::Sans
        };
        Self { family, bold, italic }
    }

    /// The face with this PostScript name; any other name is plain Sans.
    pub fn named(name: &str) -> Self {
        CUTS.iter().find(|cut| cut.name == name).unwrap_or(&CUTS[0]).face
    }

    fn cut(self) -> &'static Cut {
        CUTS.iter().find(|cut| cut.face == self).unwrap_or(&CUTS[0])
    }

    /// Its PostScript name.
    pub fn name(self) -> &'static str {
        self.cut().name
    }

    /// Families for `font-family` in CSS, the first that a browser has.
    pub fn css_family(self) -> &'static str {
        self.cut().css
    }

    pub fn is_bold(self) -> bool {
        self.bold
    }

    pub fn is_italic(self) -> bool {
        self.italic
    }

    pub fn font(self) -> &'static FontRef<'static> {
        &self.cut().font
    }

    fn units(self) -> f32 {
        self.font().units_per_em().unwrap_or(2048.0)
    }

    /// ab_glyph's scale for a size.
    pub fn scale(self, size: f64) -> PxScale {
        PxScale::from(size as f32 * self.font().height_unscaled() / self.units())
    }

    /// The scale with which small letters are a whole number of pixels high, so that their upper edges are sharp.
    /// Widths do not change.
    pub fn sharp_scale(self, size: f64) -> PxScale {
        let mut scale = self.scale(size);
        let font = self.font();
        let bounds = font.outline(font.glyph_id('x')).map(|outline| outline.bounds);
        let height = bounds.map_or(0.5, |b| b.max.y.abs().max(b.min.y.abs()) / self.units()) * size as f32;
        let whole = (height + 0.125).round();
        if height > 0.0 && whole >= 1.0 && (whole / height - 1.0).abs() < 0.15 {
            scale.y *= whole / height;
        }
        scale
    }

    /// Pixels above the base line, whole.
    pub fn ascent(self, size: f64) -> f64 {
        (f64::from(self.font().ascent_unscaled() / self.units()) * size).ceil()
    }

    /// Pixels below the base line, whole.
    pub fn descent(self, size: f64) -> f64 {
        (f64::from(-self.font().descent_unscaled() / self.units()) * size).ceil()
    }

    /// Pixels from base line to base line, whole.
    pub fn line_height(self, size: f64) -> f64 {
        (f64::from(self.font().height_unscaled() / self.units()) * size).round()
    }

    /// The characters of a text, placed, and its width in pixels.
    pub fn place(self, text: &str, size: f64) -> (Vec<Placed>, f64) {
        let font = self.font();
        let factor = size / f64::from(self.units());
        let mut x = 0.0;
        let mut last = None;
        let mut placed = Vec::with_capacity(text.len());
        for c in text.chars() {
            let glyph = font.glyph_id(if c.is_control() { ' ' } else { c });
            if let Some(last) = last {
                x += f64::from(font.kern_unscaled(last, glyph)) * factor;
            }
            placed.push(Placed { glyph, x });
            x += f64::from(font.h_advance_unscaled(glyph)) * factor;
            last = Some(glyph);
        }
        (placed, x)
    }

    /// Width in pixels.
    pub fn width(self, text: &str, size: f64) -> f64 {
        self.place(text, size).1
    }

    /// The text, or its beginning and an ellipsis when it is wider than `width` pixels.
    pub fn fitting(self, text: &str, size: f64, width: f64) -> String {
        let (placed, whole) = self.place(text, size);
        if whole <= width {
            return text.to_owned();
        }
        let room = width - self.width("…", size);
        let keep = placed.iter().take_while(|p| p.x <= room).count().saturating_sub(1);
        text.chars().take(keep).chain(['…']).collect()
    }

    /// The lines of a title, each no wider than `width` pixels. Of very many the first are enough.
    pub fn title(self, text: &str, size: f64, width: f64) -> Vec<String> {
        text.split('\n').take(MOST_LINES).map(|line| self.fitting(line, size, width)).collect()
    }

    /// The curves of a glyph, in units of the font, y upwards.
    pub fn outline(self, glyph: GlyphId) -> Option<Outline> {
        self.font().outline(glyph)
    }

    /// Pixels a unit of the font.
    pub fn pixels_per_unit(self, size: f64) -> f64 {
        size / f64::from(self.units())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DejaVu Sans is 2048 units an em, 1901 above the base line and 483 below it; a digit is 1303 wide.
    #[test]
    fn measures() {
        let sans = Face::of("Sans", false, false);
        assert_eq!((sans.ascent(10.0), sans.descent(10.0), sans.line_height(10.0)), (10.0, 3.0, 12.0));
        assert!((sans.width("000", 10.0) - 3.0 * 13_030.0 / 2048.0).abs() < 1e-6);
        assert_eq!(sans.width("", 10.0), 0.0);
        assert_eq!(sans.width("\n", 10.0), sans.width(" ", 10.0));
        let mono = Face::of("Courier New", true, false);
        assert!((mono.width("iiii", 10.0) - mono.width("WWWW", 10.0)).abs() < 1e-9);
    }

    #[test]
    fn names() {
        assert_eq!(Face::of("Sans", false, false).name(), "DejaVuSans");
        assert_eq!(Face::of("FreeSans", true, true).name(), "DejaVuSans-BoldOblique");
        assert_eq!(Face::of("DejaVu Serif", false, true).name(), "DejaVuSerif-Italic");
        assert_eq!(Face::of("Monospace", true, false).name(), "DejaVuSansMono-Bold");
        for cut in CUTS.iter() {
            assert_eq!(Face::named(cut.name), cut.face);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let sans = Face::of("", false, false);
        assert_eq!(sans.fitting("short", 10.0, 100.0), "short");
        let cut = sans.fitting("a name that is much too long for its place", 10.0, 60.0);
        assert!(cut.ends_with('…') && sans.width(&cut, 10.0) <= 60.0 && cut.len() > 8, "{cut}");
        assert_eq!(sans.fitting("abc", 10.0, 0.0), "…");
        assert_eq!(sans.title("a\nb", 10.0, 100.0), ["a", "b"]);
        assert_eq!(sans.title(&"\n".repeat(1000), 10.0, 100.0).len(), 20);
    }
}
