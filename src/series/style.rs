//! How a series is to be drawn. Set by the functions of group Graph, read by the graph module.

/// Drawing options of one series. `Default` is "nothing said".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Style {
    /// A colour name or hex text as given to `color()`.
    pub color: Option<String>,
    /// Opacity from 0 to 1.
    pub alpha: Option<f64>,
    /// Line width in pixels.
    pub line_width: Option<f64>,
    /// Dash length in pixels.
    pub dashed: Option<f64>,
    /// Drawn as an area on top of the stacked series before it.
    pub stacked: bool,
    /// Each non-zero point is a vertical line.
    pub draw_as_infinite: bool,
    /// Belongs to the right y axis.
    pub second_y_axis: bool,
    /// Takes part in stacking but is not drawn (lower edge of `areaBetween`).
    pub invisible: bool,
}
