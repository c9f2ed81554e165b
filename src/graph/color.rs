//! Colours: names of graphite-web, hexadecimal digits.

use plotters::style::RGBAColor;

/// The names, which are not always what CSS means by them.
const NAMES: &[(&str, [u8; 3])] = &[
    ("aqua", [0, 150, 150]),
    ("black", [0, 0, 0]),
    ("blue", [100, 100, 255]),
    ("brown", [150, 100, 50]),
    ("cyan", [0, 255, 255]),
    ("darkblue", [0, 0, 255]),
    ("darkgray", [111, 111, 111]),
    ("darkgreen", [0, 255, 0]),
    ("darkgrey", [111, 111, 111]),
    ("darkred", [255, 0, 0]),
    ("gold", [200, 200, 0]),
    ("gray", [175, 175, 175]),
    ("green", [0, 200, 0]),
    ("grey", [175, 175, 175]),
    ("magenta", [255, 0, 255]),
    ("orange", [255, 165, 0]),
    ("pink", [255, 100, 100]),
    ("purple", [200, 100, 255]),
    ("red", [200, 0, 50]),
    ("rose", [200, 150, 200]),
    ("white", [255, 255, 255]),
    ("yellow", [255, 255, 0]),
];

/// A colour with its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Color {
    /// Red, green, blue.
    pub rgb: [u8; 3],
    /// Opacity from 0 to 1; `None` when the text said nothing of it.
    pub alpha: Option<f64>,
}

impl Color {
    pub(super) const BLACK: Self = Self::of(0, 0, 0);
    pub(super) const RED: Self = Self::of(200, 0, 50);
    /// Around the squares of the legend.
    pub(super) const BORDER: Self = Self::of(111, 111, 111);

    const fn of(r: u8, g: u8, b: u8) -> Self {
        Self { rgb: [r, g, b], alpha: None }
    }

    /// Reads a name (in any case), or 3, 6 or 8 hexadecimal digits, with `#` or `%23` before them or not. The last two
    /// of eight are the opacity.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((_, rgb)) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Some(Self { rgb: *rgb, alpha: None });
        }
        let digits = text.strip_prefix('#').or_else(|| text.strip_prefix("%23")).unwrap_or(text);
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let number = u32::from_str_radix(digits, 16).ok()?;
        match digits.len() {
            3 => {
                let [_, _, high, low] = number.to_be_bytes();
                Some(Self::of(high * 17, (low >> 4) * 17, (low & 15) * 17))
            }
            6 => {
                let [_, r, g, b] = number.to_be_bytes();
                Some(Self::of(r, g, b))
            }
            8 => {
                let [r, g, b, alpha] = number.to_be_bytes();
                Some(Self { rgb: [r, g, b], alpha: Some(f64::from(alpha) / 255.0) })
            }
            _ => None,
        }
    }

    /// The opacity.
    #[must_use]
    pub fn opacity(self) -> f64 {
        self.alpha.unwrap_or(1.0)
    }

    /// For plotters; `alpha` counts when the colour has none of its own.
    pub(super) fn ink(self, alpha: f64) -> RGBAColor {
        let [r, g, b] = self.rgb;
        RGBAColor(r, g, b, self.alpha.unwrap_or(alpha).clamp(0.0, 1.0))
    }

    /// For plotters, `share` as strong as it is.
    pub(super) fn faint(self, share: f64) -> RGBAColor {
        let [r, g, b] = self.rgb;
        RGBAColor(r, g, b, self.opacity() * share)
    }

    /// `#rrggbb`.
    pub(super) fn hex(self) -> String {
        let [r, g, b] = self.rgb;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_digits() {
        let rgb = |text| Color::parse(text).map(|c| c.rgb);
        assert_eq!(rgb("blue"), Some([100, 100, 255]));
        assert_eq!(rgb("Red"), Some([200, 0, 50]));
        // Digits only are a colour too, no number.
        assert_eq!(rgb("808080"), Some([128, 128, 128]));
        assert_eq!(rgb("#ff0000"), Some([255, 0, 0]));
        assert_eq!(rgb("%23ff8000"), Some([255, 128, 0]));
        assert_eq!(rgb("#f80"), Some([255, 136, 0]));
        assert_eq!(Color::parse("00ff0080"), Some(Color { rgb: [0, 255, 0], alpha: Some(128.0 / 255.0) }));
        for text in ["", "#", "ff", "ffff", "fffff", "gggggg", "#12345678a", "no such", "-12345", "+12345"] {
            assert_eq!(Color::parse(text), None, "{text}");
        }
    }

    #[test]
    fn own_opacity_wins() {
        let opacity = |text: &str, alpha| Color::parse(text).map(|c| c.ink(alpha).3);
        assert_eq!(opacity("000000ff", 0.5), Some(1.0));
        assert_eq!(opacity("000000", 0.5), Some(0.5));
        assert_eq!(opacity("000000", 7.0), Some(1.0));
    }
}
