//! The parameters of a picture, read and checked.

use std::collections::HashMap;
use std::fmt;

use percent_encoding::percent_decode_str;

use super::font::Face;
use super::theme::Theme;
use super::{Color, PieMode, units};
use crate::functions::UnitSystem;

/// The most pixels of a picture, so that one request cannot take all memory (four bytes a pixel).
const MOST_PIXELS: u64 = 16_000_000;

/// The longest side, in pixels.
const LONGEST_SIDE: u32 = 16_384;

/// The largest font, in pixels.
const LARGEST_FONT: f64 = 400.0;

/// The longest format of times, in bytes.
const LONGEST_FORMAT: usize = 200;

/// A parameter that is refused; the text is one line and names it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionError {
    /// No colour.
    #[error("{parameter}: `{text}` is no colour; write a name such as blue, or 3, 6 or 8 hexadecimal digits")]
    Color {
        /// The parameter's name.
        parameter: &'static str,
        /// Its value.
        text: String,
    },
    /// No number, or one out of bounds.
    #[error("{parameter}: `{text}` is not {wanted}")]
    Number {
        /// The parameter's name.
        parameter: &'static str,
        /// Its value.
        text: String,
        /// What it must be.
        wanted: String,
    },
    /// Not one of the few values that there are.
    #[error("{parameter}: `{text}` is none of {}", choices.join(", "))]
    Choice {
        /// The parameter's name.
        parameter: &'static str,
        /// Its value.
        text: String,
        /// What it may be.
        choices: Vec<&'static str>,
    },
    /// More pixels than a picture may have.
    #[error("width and height: {width} x {height} is more than {MOST_PIXELS} pixels")]
    Size {
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    },
    /// A y axis that ends before it begins.
    #[error("{least} ({from}) must be less than {most} ({to})")]
    Order {
        /// The parameter for the lower end.
        least: &'static str,
        /// Its value.
        from: f64,
        /// The parameter for the upper end.
        most: &'static str,
        /// Its value.
        to: f64,
    },
}

/// How points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineMode {
    /// Straight from point to point; gaps stay.
    Slope,
    /// Each value holds until the next.
    Staircase,
    /// Straight from point to point, also over gaps.
    Connected,
}

/// Which series are areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AreaMode {
    None,
    First,
    All,
    /// All, each on top of those before it.
    Stacked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueLabels {
    None,
    Number,
    Percent,
}

/// The end of a y axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Top {
    /// The greatest value of the data, without room above it.
    Greatest,
    At(f64),
}

/// What a request says of one y axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct AxisWishes {
    pub min: Option<f64>,
    pub max: Option<Top>,
    pub limit: Option<f64>,
    pub step: Option<f64>,
}

/// What a request says of the series of one of two y axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SideStyle {
    pub width: Option<f64>,
    pub color: Option<Color>,
    /// Length of the dashes; 0 is a plain line whatever the series says.
    pub dashed: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Font {
    pub face: Face,
    /// Height of the em square, pixels.
    pub size: f64,
}

/// What the parameters of a request say about its picture. Names and meaning are those of graphite-web.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) margin: f64,
    pub(super) background: Color,
    pub(super) foreground: Color,
    pub(super) major: Color,
    pub(super) minor: Color,
    pub(super) colors: Vec<Color>,
    pub(super) font: Font,
    pub(super) title: Option<String>,
    pub(super) v_title: Option<String>,
    pub(super) v_title_right: Option<String>,
    pub(super) line_mode: LineMode,
    pub(super) connected_limit: f64,
    pub(super) line_width: f64,
    pub(super) area_mode: AreaMode,
    pub(super) area_alpha: Option<f64>,
    pub(super) null_as_zero: bool,
    pub(super) hide_legend: Option<bool>,
    pub(super) unique_legend: bool,
    pub(super) hide_null_from_legend: bool,
    pub(super) hide_axes: bool,
    pub(super) hide_x_axis: bool,
    pub(super) hide_y_axis: bool,
    pub(super) hide_grid: bool,
    pub(super) graph_only: bool,
    pub(super) y_side: Side,
    pub(super) y: AxisWishes,
    pub(super) y_left: AxisWishes,
    pub(super) y_right: AxisWishes,
    pub(super) left: SideStyle,
    pub(super) right: SideStyle,
    pub(super) divisors: Vec<u32>,
    pub(super) units: UnitSystem,
    pub(super) log_base: Option<f64>,
    pub(super) minor_y: u32,
    pub(super) min_x_step: f64,
    pub(super) x_format: Option<String>,
    pub(super) pie_mode: PieMode,
    pub(super) value_labels: ValueLabels,
    pub(super) value_labels_min: f64,
    pub(super) value_labels_color: Color,
    pub(super) rotated_labels: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self::read([]).unwrap_or_else(|_| unreachable!("no parameter is wrong when there is none"))
    }
}

impl Options {
    /// Reads the parameters of a request; the last of a name counts, names that mean nothing here are left alone, and
    /// a value that is empty or `default` is as good as none.
    ///
    /// # Errors
    /// A colour, number or choice that is none, or a picture that would be too large.
    pub fn read<'a>(params: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, OptionError> {
        let given = params.into_iter().filter(|(_, v)| !v.is_empty() && !v.eq_ignore_ascii_case("default"));
        let given = Given(given.collect());
        let theme = Theme::named(given.0.get("template").copied().unwrap_or_default());
        let size = |name, default| given.count(name, 1..=LONGEST_SIDE).map(|n| n.unwrap_or(default));
        let (width, height) = (size("width", 330)?, size("height", 250)?);
        if u64::from(width) * u64::from(height) > MOST_PIXELS {
            return Err(OptionError::Size { width, height });
        }
        let theme_color = |name, text| Ok(given.color(name)?.unwrap_or_else(|| Theme::color(text)));
        let graph_only = given.flag("graphOnly").unwrap_or(false);
        let text = |name| if graph_only { None } else { given.text(name) };
        let font_size = given.number("fontSize")?.unwrap_or(10.0);
        if !(1.0..=LARGEST_FONT).contains(&font_size) {
            return Err(given.refused("fontSize", format!("a size from 1 to {LARGEST_FONT} pixels")));
        }
        let options = Self {
            width,
            height,
            margin: match given.number("margin")? {
                _ if graph_only => 0.0,
                Some(margin) if (0.0..f64::from(LONGEST_SIDE)).contains(&margin) => margin,
                _ => 10.0,
            },
            background: theme_color("bgcolor", theme.background)?,
            foreground: theme_color("fgcolor", theme.foreground)?,
            major: theme_color("majorGridLineColor", theme.major)?,
            minor: theme_color("minorGridLineColor", theme.minor)?,
            colors: given.colors(theme)?,
            font: Font {
                face: Face::of(
                    given.0.get("fontName").copied().unwrap_or_default(),
                    given.flag("fontBold").unwrap_or(false),
                    given.flag("fontItalic").unwrap_or(false),
                ),
                size: font_size.floor(),
            },
            title: text("title"),
            v_title: text("vtitle"),
            v_title_right: text("vtitleRight"),
            line_mode: given
                .choice(
                    "lineMode",
                    &[
                        ("slope", LineMode::Slope),
                        ("staircase", LineMode::Staircase),
                        ("connected", LineMode::Connected),
                    ],
                )?
                .unwrap_or(LineMode::Slope),
            connected_limit: given.number("connectedLimit")?.unwrap_or(f64::INFINITY),
            line_width: match given.width("lineWidth")? {
                None => given.width("thickness")?.unwrap_or(1.2),
                Some(width) => width,
            },
            area_mode: given
                .choice(
                    "areaMode",
                    &[
                        ("none", AreaMode::None),
                        ("first", AreaMode::First),
                        ("all", AreaMode::All),
                        ("stacked", AreaMode::Stacked),
                    ],
                )?
                .unwrap_or(AreaMode::None),
            // As in graphite-web, what is no number is one half, and 0 is as good as nothing.
            area_alpha: given
                .0
                .get("areaAlpha")
                .map(|t| t.parse().unwrap_or(0.5_f64).clamp(0.0, 1.0))
                .filter(|alpha| *alpha != 0.0),
            null_as_zero: given.flag("drawNullAsZero").unwrap_or(false),
            hide_legend: if graph_only { Some(true) } else { given.flag("hideLegend") },
            unique_legend: given.flag("uniqueLegend").unwrap_or(false),
            hide_null_from_legend: given.flag("hideNullFromLegend").unwrap_or(false),
            hide_axes: graph_only || given.flag("hideAxes").unwrap_or(false),
            hide_x_axis: given.flag("hideXAxis").unwrap_or(false),
            hide_y_axis: given.flag("hideYAxis").unwrap_or(false),
            hide_grid: graph_only || given.flag("hideGrid").unwrap_or(false),
            graph_only,
            y_side: given
                .choice("yAxisSide", &[("left", Side::Left), ("right", Side::Right)])?
                .filter(|_| !graph_only)
                .unwrap_or(Side::Left),
            y: given.axis(["yMin", "yMax", "yLimit", "yStep"], Some(("min", "max")))?,
            y_left: given.axis(["yMinLeft", "yMaxLeft", "yLimitLeft", "yStepLeft"], None)?,
            y_right: given.axis(["yMinRight", "yMaxRight", "yLimitRight", "yStepRight"], None)?,
            left: given.side(["leftWidth", "leftColor", "leftDashed"])?,
            right: given.side(["rightWidth", "rightColor", "rightDashed"])?,
            divisors: given.divisors()?,
            units: units::named(given.0.get("yUnitSystem").copied().unwrap_or_default()),
            log_base: given.log_base()?,
            minor_y: given.count("minorY", 0..=100)?.unwrap_or(1),
            min_x_step: given.number("minXStep")?.unwrap_or(1.0).max(0.0),
            x_format: given.format("xFormat")?,
            pie_mode: given
                .choice(
                    "pieMode",
                    &[("average", PieMode::Average), ("maximum", PieMode::Maximum), ("minimum", PieMode::Minimum)],
                )?
                .unwrap_or_default(),
            value_labels: given
                .choice(
                    "valueLabels",
                    &[("none", ValueLabels::None), ("number", ValueLabels::Number), ("percent", ValueLabels::Percent)],
                )?
                .unwrap_or(ValueLabels::Percent),
            value_labels_min: given.number("valueLabelsMin")?.unwrap_or(5.0),
            value_labels_color: theme_color("valueLabelsColor", "black")?,
            rotated_labels: given.choice("pieLabels", &[("horizontal", false), ("rotated", true)])?.unwrap_or(false),
        };
        Ok(options)
    }

    /// Which number of a series is its slice of a pie.
    #[must_use]
    pub fn pie_mode(&self) -> PieMode {
        self.pie_mode
    }
}

/// Parameters that say something, the last of each name.
struct Given<'a>(HashMap<&'a str, &'a str>);

impl Given<'_> {
    fn refused(&self, parameter: &'static str, wanted: impl fmt::Display) -> OptionError {
        let text = self.0.get(parameter).copied().unwrap_or_default().to_owned();
        OptionError::Number { parameter, text, wanted: wanted.to_string() }
    }

    /// Anything but `false` and zero is yes.
    fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name).map(|v| !v.eq_ignore_ascii_case("false") && v.parse() != Ok(0.0))
    }

    fn number(&self, name: &'static str) -> Result<Option<f64>, OptionError> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        let number = text.trim().parse().ok().filter(|n: &f64| n.is_finite());
        number.map(Some).ok_or_else(|| self.refused(name, "a number"))
    }

    fn width(&self, name: &'static str) -> Result<Option<f64>, OptionError> {
        Ok(self.number(name)?.map(|w| w.clamp(0.0, 1000.0)))
    }

    fn count(&self, name: &'static str, bounds: std::ops::RangeInclusive<u32>) -> Result<Option<u32>, OptionError> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        let wanted = || format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let number = text.trim().parse().ok().filter(|n| bounds.contains(n));
        number.map(Some).ok_or_else(|| self.refused(name, wanted()))
    }

    fn color(&self, parameter: &'static str) -> Result<Option<Color>, OptionError> {
        let Some(text) = self.0.get(parameter) else { return Ok(None) };
        let bad = || OptionError::Color { parameter, text: (*text).to_owned() };
        Color::parse(text).map(Some).ok_or_else(bad)
    }

    fn colors(&self, theme: &Theme) -> Result<Vec<Color>, OptionError> {
        let Some(text) = self.0.get("colorList") else { return Ok(theme.lines.split(',').map(Theme::color).collect()) };
        let text = plain(text);
        let bad = |color: &str| OptionError::Color { parameter: "colorList", text: color.trim().to_owned() };
        let listed = text.trim_end_matches(',').split(',');
        listed.map(|color| Color::parse(color).ok_or_else(|| bad(color))).collect()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|text| plain(text))
    }

    fn format(&self, name: &'static str) -> Result<Option<String>, OptionError> {
        let text = self.text(name);
        // Every label is written by it.
        if text.as_ref().is_some_and(|text| text.len() > LONGEST_FORMAT) {
            return Err(self.refused(name, format!("a format of at most {LONGEST_FORMAT} bytes")));
        }
        Ok(text)
    }

    fn choice<T: Copy>(
        &self,
        parameter: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, OptionError> {
        let Some(text) = self.0.get(parameter) else { return Ok(None) };
        let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let bad = || OptionError::Choice {
            parameter,
            text: (*text).to_owned(),
            choices: choices.iter().map(|(name, _)| *name).collect(),
        };
        found.map(|(_, value)| Some(*value)).ok_or_else(bad)
    }

    /// `old` names an older parameter for least and greatest.
    fn axis(
        &self,
        [min, max, limit, step]: [&'static str; 4],
        old: Option<(&'static str, &'static str)>,
    ) -> Result<AxisWishes, OptionError> {
        let either = |name, old: Option<&'static str>| old.filter(|_| !self.0.contains_key(name)).unwrap_or(name);
        let (min, max) = (either(min, old.map(|o| o.0)), either(max, old.map(|o| o.1)));
        let top = match self.0.get(max) {
            Some(&"max") => Some(Top::Greatest),
            _ => self.number(max)?.map(Top::At),
        };
        let wishes =
            AxisWishes { min: self.number(min)?, max: top, limit: self.number(limit)?, step: self.number(step)? };
        if wishes.step.is_some_and(|step| step <= 0.0) {
            return Err(self.refused(step, "a number above 0"));
        }
        let ends = [
            (
                max,
                match top {
                    Some(Top::At(at)) => Some(at),
                    _ => None,
                },
            ),
            (limit, wishes.limit),
        ];
        for (most, to) in ends {
            if let (Some(from), Some(to)) = (wishes.min, to)
                && from >= to
            {
                return Err(OptionError::Order { least: min, from, most, to });
            }
        }
        Ok(wishes)
    }

    fn side(&self, [width, color, dashed]: [&'static str; 3]) -> Result<SideStyle, OptionError> {
        let dash = self.flag(dashed).map(|yes| {
            let length = self.0.get(dashed).and_then(|v| v.parse().ok()).filter(|n: &f64| n.is_finite());
            if yes { length.unwrap_or(5.0) } else { 0.0 }
        });
        Ok(SideStyle { width: self.width(width)?, color: self.color(color)?, dashed: dash })
    }

    fn divisors(&self) -> Result<Vec<u32>, OptionError> {
        let Some(text) = self.0.get("yDivisors") else { return Ok(vec![4, 5, 6]) };
        let read = |part: &str| part.trim().parse().ok().filter(|n| (1..=100).contains(n));
        let list: Option<Vec<u32>> = text.split(',').map(read).collect();
        list.ok_or_else(|| self.refused("yDivisors", "a list of whole numbers from 1 to 100"))
    }

    /// A base of less than one is no logarithmic scale at all, as in graphite-web; a base of just one makes no scale.
    fn log_base(&self) -> Result<Option<f64>, OptionError> {
        if self.0.get("logBase") == Some(&"e") {
            return Ok(Some(std::f64::consts::E));
        }
        match self.number("logBase")? {
            Some(base) if (1.0..1.001).contains(&base) => Err(self.refused("logBase", "a number above 1, or e")),
            base => Ok(base.filter(|base| *base > 1.0)),
        }
    }
}

/// Texts are encoded once more by some clients, and graphite-web decodes them once more.
pub(super) fn plain(text: &str) -> String {
    let spaces = text.replace('+', " ");
    percent_decode_str(&spaces).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(params: &[(&'static str, &'static str)]) -> String {
        let error = Options::read(params.iter().copied()).expect_err("refused").to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    #[test]
    fn defaults() {
        let options = Options::default();
        assert_eq!((options.width, options.height), (330, 250));
        assert_eq!(options.background.rgb, [255, 255, 255]);
        assert_eq!(options.colors.len(), 12);
        assert_eq!(Options::read([("width", ""), ("bgcolor", "default"), ("vTitle", "x")]), Ok(options));
    }

    #[test]
    fn the_last_one_counts_and_texts_are_decoded_again() {
        let options = Options::read([
            ("width", "10"),
            ("width", "800"),
            ("title", "a+b%20c"),
            ("colorList", "%23ff0000,blue"),
            ("hideLegend", "false"),
            ("hideAxes", "True"),
            ("hideGrid", "0"),
            ("template", "noc"),
            ("thickness", "3"),
            ("min", "0"),
            ("max", "9"),
            ("yMax", "max"),
        ])
        .expect("accepted");
        assert_eq!(options.width, 800);
        assert_eq!(options.title.as_deref(), Some("a b c"));
        assert_eq!(options.colors.iter().map(|c| c.rgb).collect::<Vec<_>>(), [[255, 0, 0], [100, 100, 255]]);
        assert_eq!((options.hide_legend, options.hide_axes, options.hide_grid), (Some(false), true, false));
        assert_eq!(options.background.rgb, [0, 0, 0]);
        assert_eq!(options.line_width, 3.0);
        assert_eq!((options.y.min, options.y.max), (Some(0.0), Some(Top::Greatest)));
    }

    #[test]
    fn what_is_refused() {
        assert_eq!(
            error(&[("bgcolor", "blau")]),
            "bgcolor: `blau` is no colour; write a name such as blue, or 3, 6 or 8 hexadecimal digits"
        );
        assert!(error(&[("colorList", "red,12,blue")]).starts_with("colorList: `12` is no colour"));
        assert_eq!(error(&[("width", "100000")]), "width: `100000` is not a whole number from 1 to 16384");
        assert_eq!(error(&[("width", "0")]), "width: `0` is not a whole number from 1 to 16384");
        assert_eq!(
            error(&[("width", "9000"), ("height", "9000")]),
            "width and height: 9000 x 9000 is more than 16000000 pixels"
        );
        assert_eq!(error(&[("fontSize", "big")]), "fontSize: `big` is not a number");
        assert_eq!(error(&[("lineMode", "x")]), "lineMode: `x` is none of slope, staircase, connected");
        assert_eq!(error(&[("yMin", "5"), ("yMax", "5")]), "yMin (5) must be less than yMax (5)");
        assert_eq!(error(&[("yStep", "0")]), "yStep: `0` is not a number above 0");
        assert_eq!(error(&[("yMin", "nan")]), "yMin: `nan` is not a number");
        assert_eq!(error(&[("pieMode", "x")]), "pieMode: `x` is none of average, maximum, minimum");
        assert_eq!(error(&[("yDivisors", "4,0")]), "yDivisors: `4,0` is not a list of whole numbers from 1 to 100");
    }
}
