//! Line graphs: where everything is, then the drawing of it.
//!
//! All is measured first, because the y labels take room from the graph, and how many points a graph has room for
//! decides the y labels.

use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{DrawingArea, PathElement, Polygon};
use serde_json::{Value, json};

use crate::clock::TimeZone;
use crate::series::{Series, Style};

use super::area::Covered;
use super::clip::{Window, dashes};
use super::legend::{Entry, Legend};
use super::options::{AreaMode, AxisWishes, Font, LineMode, Options, Side, plain};
use super::surface::{Align, Canvas, Failure, Label, Surface, Turn, crisp, fill, stroke, units};
use super::trace::{Joining, Points, lines, points, stack};
use super::x_axis::XAxis;
use super::y_axis::{AxisRules, YAxis};
use super::{Color, GraphError, Scene};

/// With more series than this there is no legend unless it is asked for.
const LEGEND_ITEMS: usize = 10;

/// Between labels and graph.
const GAP: f64 = 4.0;

/// Grid lines nearer to each other than this many pixels would be a surface.
const CLOSE: f64 = 3.0;

/// How strong grid lines are.
const MAJOR: f64 = 0.45;
const MINOR: f64 = 0.28;

/// One series and how it is drawn.
#[derive(Clone, Debug)]
struct Curve<'a> {
    series: &'a Series,
    color: Color,
    alpha: f64,
    width: f64,
    dash: Option<f64>,
    area: bool,
    infinite: bool,
    second: bool,
    invisible: bool,
    points: Points,
}

/// The inner part of a graph, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// A line graph, laid out.
pub(super) struct LineGraph<'a> {
    options: &'a Options,
    curves: Vec<Curve<'a>>,
    frame: Frame,
    start: i64,
    end: i64,
    y: YAxis,
    second: Option<YAxis>,
    x: XAxis,
    legend: Legend,
    joining: Joining,
}

type Plot<B> = DrawingArea<B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl<'a> LineGraph<'a> {
    /// Lays a graph out; `None` when there is no point in any series.
    ///
    /// # Errors
    /// A series has a colour that is none.
    pub fn new(series: &'a [Series], options: &'a Options, zone: &TimeZone) -> Result<Option<Self>, GraphError> {
        let some = || series.iter().filter(|s| !s.is_empty());
        let Some(start) = some().map(Series::start).min() else { return Ok(None) };
        let curves = curves(series, options)?;
        let mut mode = options.line_mode;
        // Of a single point no slope can be drawn.
        if mode == LineMode::Slope && series.iter().any(|s| s.len() == 1) {
            mode = LineMode::Staircase;
        }
        let points_to = |s: &Series| if mode == LineMode::Staircase { s.len() } else { s.len() - 1 };
        let end = some().map(|s| s.time(points_to(s))).max().unwrap_or(start).max(start.saturating_add(1));
        let second = curves.iter().any(|c| c.second);
        let legend = Legend::new(entries(&curves, options), options);
        let mut curves = order(curves, options.area_mode);
        let mut graph = Self {
            options,
            frame: outer(options, second, legend.height),
            start,
            end,
            y: YAxis::new(0.0, 1.0, rules(options, options.y)),
            second: None,
            x: XAxis::default(),
            legend,
            joining: Joining { mode, limit: options.connected_limit, null_as_zero: options.null_as_zero },
            curves: Vec::new(),
        };
        let outer = graph.frame;
        // Labels change the width, the width changes how points are joined, and that may change the labels.
        for _ in 0..3 {
            let width = graph.width();
            for curve in &mut curves {
                curve.points = points(curve.series, end.saturating_sub(start), width, options.min_x_step);
            }
            // The axis also reaches down to the least value before it is stacked, mostly near to 0, so that the lowest
            // band is seen as high as it is.
            let mut lowest = f64::INFINITY;
            if options.area_mode == AreaMode::Stacked && !second {
                lowest = limits(curves.iter().filter(|c| !c.infinite), options).0;
                stack(curves.iter_mut().filter(|c| !c.infinite).map(|c| &mut c.points));
            }
            graph.set_y_axes(&curves, second, lowest);
            let frame = graph.within(outer);
            if frame == graph.frame {
                break;
            }
            graph.frame = frame;
        }
        graph.x = XAxis::new(start, end, graph.width(), zone, options.x_format.as_deref());
        graph.curves = curves;
        Ok(Some(graph))
    }

    /// Pixels from the first point to the last.
    fn width(&self) -> f64 {
        (self.frame.right - self.frame.left - self.options.line_width - 1.0).max(1.0)
    }

    fn set_y_axes(&mut self, curves: &[Curve<'_>], second: bool, lowest: f64) {
        let axis = |right: bool, wishes| {
            let curves = curves.iter().filter(|c| c.second == right && !c.infinite);
            let (least, greatest) = limits(curves, self.options);
            YAxis::new(least.min(lowest), greatest, rules(self.options, wishes))
        };
        if second {
            (self.y, self.second) = (axis(false, self.options.y_left), Some(axis(true, self.options.y_right)));
        } else {
            self.y = axis(false, self.options.y);
        }
    }

    fn label_width(&self, axis: &YAxis) -> f64 {
        let Font { face, size } = self.options.font;
        self.shown(axis).map(|(_, text)| face.width(text, size)).fold(0.0, f64::max).ceil()
    }

    fn side(&self) -> Side {
        if self.second.is_some() { Side::Left } else { self.options.y_side }
    }

    /// The frame with room for the y labels.
    fn within(&self, outer: Frame) -> Frame {
        let mut frame = outer;
        if !self.options.hide_axes && !self.options.hide_y_axis {
            // A label that is too long is cut off, so that the graph is not.
            let most = (outer.right - outer.left) / 3.0;
            let room = self.label_width(&self.y).min(most) + GAP;
            match self.side() {
                Side::Left => frame.left = frame.left.max(frame.left - 10.0 + room),
                Side::Right => frame.right -= room,
            }
            if let Some(second) = &self.second {
                frame.right -= self.label_width(second).min(most) + GAP;
            }
        }
        frame.left = frame.left.floor();
        frame.right = frame.right.floor().max(frame.left + 1.0);
        frame
    }

    fn pixels_per_second(&self) -> f64 {
        self.width() / self.end.saturating_sub(self.start) as f64
    }

    fn x_of(&self, time: i64) -> f64 {
        self.frame.left
            + self.options.line_width / 2.0
            + time.saturating_sub(self.start) as f64 * self.pixels_per_second()
    }

    fn y_of(&self, axis: &YAxis, value: f64) -> Option<f64> {
        let height = axis.height(axis.place(value)?);
        Some(self.frame.bottom - height * (self.frame.bottom - self.frame.top))
    }

    /// What the graph shows: seconds from its start, places on an axis.
    fn window(&self, axis: &YAxis) -> Window {
        let half = self.options.line_width / 2.0;
        let scale = self.pixels_per_second();
        let seconds = (self.frame.right - self.frame.left - half) / scale;
        Window { x: (-half / scale, seconds), y: axis.ends() }
    }

    fn plot<B: Surface>(&self, root: &DrawingArea<B, Shift>, window: Window) -> Plot<B> {
        let frame = self.frame;
        let pixels = (units(frame.left)..units(frame.right), units(frame.bottom)..units(frame.top));
        root.apply_coord_spec(Cartesian2d::new(window.x.0..window.x.1, window.y.0..window.y.1, pixels))
    }

    fn titles<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure> {
        let options = self.options;
        let font = title_font(options);
        let line = font.face.line_height(font.size);
        let (width, height) = (f64::from(options.width), f64::from(options.height));
        let right = options.v_title_right.as_ref().filter(|_| self.second.is_some());
        let middle = f64::midpoint(self.frame.top, self.frame.bottom);
        let margin = options.margin;
        let titles = [
            ("title", options.title.as_ref(), width, (width / 2.0, margin), (0.0, line), Turn::None),
            ("vtitle", options.v_title.as_ref(), height, (margin, middle), (line, 0.0), Turn::Up),
            ("vtitleRight", right, height, (width - margin, middle), (-line, 0.0), Turn::Down),
        ];
        for (part, text, room, (mut x, mut y), (right, down), turn) in titles {
            let Some(text) = text else { continue };
            canvas.part(part)?;
            for text in font.face.title(text, font.size, room) {
                let color = options.foreground.ink(1.0);
                let label = Label { text: &text, font, color, x, y, align: Align::Center, middle: false, turn };
                canvas.label(label)?;
                (x, y) = (x + right, y + down);
            }
        }
        Ok(())
    }

    fn labels<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure> {
        let options = self.options;
        let Font { face, size } = options.font;
        let label = |text, x, y, align, middle| Label {
            text,
            font: options.font,
            color: options.foreground.ink(1.0),
            x,
            y,
            align,
            middle,
            turn: Turn::None,
        };
        if !options.hide_y_axis {
            let left = (self.frame.left - GAP, Align::End);
            let right = (self.frame.right + GAP, Align::Start);
            let (x, align) = if self.side() == Side::Left { left } else { right };
            for (value, text) in self.shown(&self.y) {
                if let Some(y) = self.y_of(&self.y, *value) {
                    canvas.label(label(text, x, y, align, true))?;
                }
            }
            if let Some(second) = &self.second {
                for (value, text) in self.shown(second) {
                    if let Some(y) = self.y_of(second, *value) {
                        canvas.label(label(text, right.0, y, right.1, true))?;
                    }
                }
            }
        }
        if !options.hide_x_axis {
            let widest = self.x.labels.iter().map(|(_, text)| face.width(text, size)).fold(0.0, f64::max);
            let distance = match self.x.labels.as_slice() {
                [(a, _), (b, _), ..] => (b - a) as f64 * self.pixels_per_second(),
                _ => f64::INFINITY,
            };
            // Labels that would run into each other: every second, third…
            let every = ((widest + GAP) / distance).ceil().max(1.0) as usize;
            for (time, text) in self.x.labels.iter().step_by(every) {
                let half = face.width(text, size) / 2.0;
                let x = self.x_of(*time).clamp(half, (f64::from(options.width) - half).max(half));
                let y = self.frame.bottom + (face.ascent(size) * 0.6).round();
                canvas.label(label(text, x, y, Align::Center, false))?;
            }
        }
        Ok(())
    }

    /// The labels of an axis that have room.
    fn shown<'b>(&self, axis: &'b YAxis) -> impl Iterator<Item = &'b (f64, String)> {
        let Font { face, size } = self.options.font;
        let room = (self.frame.bottom - self.frame.top) / face.line_height(size).max(1.0);
        let every = (axis.labels.len().saturating_sub(1) as f64 / room.max(1.0)).ceil().max(1.0) as usize;
        // Where there is hardly a graph, there is no place for two.
        let most = if room < 1.0 { 1 } else { usize::MAX };
        axis.labels.iter().step_by(every).take(most)
    }

    fn grid<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure> {
        let options = self.options;
        let Frame { left, top, right, bottom } = self.frame;
        let major = stroke(options.major.faint(MAJOR), 1.0);
        let minor = stroke(options.minor.faint(MINOR), 1.0);
        let level = |y: f64, style| canvas.line((left, crisp(y)), (right, crisp(y)), style);
        let upright = |x: f64, style| canvas.line((crisp(x), top), (crisp(x), bottom), style);
        let labelled: Vec<f64> = self.shown(&self.y).map(|(value, _)| *value).collect();
        for (i, value) in labelled.iter().enumerate() {
            if let Some(y) = self.y_of(&self.y, *value) {
                level(y, major)?;
            }
            let Some(next) = labelled.get(i + 1) else { continue };
            let part = (next - value) / f64::from(options.minor_y + 1);
            let distance = |y: f64| self.y_of(&self.y, *next).map_or(0.0, |next| y - next);
            let room = self.y_of(&self.y, *value).map_or(0.0, distance) / f64::from(options.minor_y + 1);
            if room < CLOSE {
                continue;
            }
            for n in 1..=options.minor_y {
                if let Some(y) = self.y_of(&self.y, value + part * f64::from(n)) {
                    level(y, minor)?;
                }
            }
        }
        let within = |time: &&i64| self.x_of(**time) < right;
        let close = |times: &[i64]| match times {
            [a, b, ..] => (b - a) as f64 * self.pixels_per_second() < CLOSE,
            _ => false,
        };
        if !close(&self.x.minor) {
            for time in self.x.minor.iter().filter(within).filter(|t| !self.x.major.contains(t)) {
                upright(self.x_of(*time), minor)?;
            }
        }
        if !close(&self.x.major) {
            for time in self.x.major.iter().filter(within) {
                upright(self.x_of(*time), major)?;
            }
        }
        upright(left, major)?;
        upright(right, major)
    }

    fn axis(&self, curve: &Curve<'_>) -> &YAxis {
        self.second.as_ref().filter(|_| curve.second).unwrap_or(&self.y)
    }

    fn draw_curves<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure> {
        // What is covered is counted in heights of the frame, so that areas of both axes keep clear of each other, as in
        // graphite-web, where they begin at the same height: nearly always at the bottom.
        let base = |axis: &YAxis| axis.height(axis.base_line()).clamp(0.0, 1.0);
        let (from, to) = self.window(&self.y).x;
        let mut left = Covered::new(from, to, base(&self.y));
        let other = self.second.as_ref().map(base).filter(|other| *other != base(&self.y));
        let mut right = other.map(|base| Covered::new(from, to, base));
        for curve in &self.curves {
            let covered = right.as_mut().filter(|_| curve.second).unwrap_or(&mut left);
            self.draw_curve(canvas, curve, covered)?;
        }
        if self.options.area_alpha.is_none() {
            return Ok(());
        }
        // Areas that one can see through have an edge that one can see.
        let areas = self.curves.iter().filter(|c| c.area && !c.invisible && !c.infinite);
        for curve in areas {
            self.draw_line(canvas, curve, stroke(curve.color.ink(1.0), self.options.line_width), None)?;
        }
        Ok(())
    }

    fn draw_curve<B: Surface>(
        &self,
        canvas: &Canvas<B>,
        curve: &Curve<'_>,
        covered: &mut Covered,
    ) -> Result<(), Failure> {
        let axis = self.axis(curve);
        let window = self.window(axis);
        if curve.infinite {
            return self.draw_events(canvas, curve);
        }
        if !curve.area {
            if curve.invisible {
                return Ok(());
            }
            return self.draw_line(canvas, curve, stroke(curve.color.ink(curve.alpha), curve.width), curve.dash);
        }
        let alpha = self.options.area_alpha.unwrap_or(curve.alpha);
        let plot = self.plot(&canvas.root, window);
        for mut line in lines(&curve.points, self.start, axis, self.joining) {
            for (_, y) in &mut line {
                *y = axis.height(*y);
            }
            for mut polygon in covered.cover(&line) {
                for (_, y) in &mut polygon {
                    *y = axis.at_height(*y);
                }
                let polygon = window.polygon(&polygon);
                if polygon.len() > 2 && !curve.invisible {
                    plot.draw(&Polygon::new(polygon, fill(curve.color.ink(alpha))))?;
                }
            }
        }
        Ok(())
    }

    fn draw_line<B: Surface>(
        &self,
        canvas: &Canvas<B>,
        curve: &Curve<'_>,
        style: plotters::style::ShapeStyle,
        dash: Option<f64>,
    ) -> Result<(), Failure> {
        if curve.width <= 0.0 {
            return Ok(());
        }
        let axis = self.axis(curve);
        let window = self.window(axis);
        let plot = self.plot(&canvas.root, window);
        let (low, high) = window.y;
        let scale = (self.pixels_per_second(), (self.frame.bottom - self.frame.top) / (high - low));
        for line in lines(&curve.points, self.start, axis, self.joining) {
            for part in window.line(&line) {
                let pieces = match dash {
                    Some(length) if length > 0.0 => dashes(&part, length, scale),
                    _ => vec![part],
                };
                for piece in pieces {
                    plot.draw(&PathElement::new(piece, style))?;
                }
            }
        }
        Ok(())
    }

    /// Vertical lines for a series of events.
    fn draw_events<B: Surface>(&self, canvas: &Canvas<B>, curve: &Curve<'_>) -> Result<(), Failure> {
        if curve.invisible || curve.width <= 0.0 {
            return Ok(());
        }
        let Frame { left, top, right, bottom } = self.frame;
        let style = stroke(curve.color.ink(curve.alpha), curve.width);
        for (i, _) in curve.points.values.iter().enumerate().filter(|(_, v)| **v > 0.0) {
            let seconds = curve.points.start.saturating_sub(self.start) as f64 + curve.points.step * i as f64;
            let x = self.x_of(self.start) + seconds * self.pixels_per_second();
            if (left..=right).contains(&x) {
                let line = [(x, top), (x, bottom)];
                let parts = curve
                    .dash
                    .filter(|d| *d > 0.0)
                    .map_or_else(|| vec![line.to_vec()], |d| dashes(&line, d, (1.0, 1.0)));
                for part in parts {
                    canvas.line(part[0], part[part.len() - 1], style)?;
                }
            }
        }
        Ok(())
    }
}

impl Scene for LineGraph<'_> {
    fn draw<B: Surface>(&self, canvas: &Canvas<B>) -> Result<(), Failure> {
        let options = self.options;
        if !options.graph_only {
            self.titles(canvas)?;
        }
        if self.legend.height > 0.0 {
            canvas.part("legend")?;
            let top = f64::from(options.height) - options.margin - self.legend.height;
            self.legend.draw(canvas, top, options.foreground)?;
        }
        if !options.hide_axes {
            canvas.part("axes")?;
            self.labels(canvas)?;
            if !options.hide_grid {
                canvas.part("grid")?;
                self.grid(canvas)?;
            }
        }
        canvas.part("lines")?;
        self.draw_curves(canvas)
    }

    fn metadata(&self) -> Value {
        let Frame { left, top, right, bottom } = self.frame;
        let Font { face, size } = self.options.font;
        let series = self.curves.iter().map(|curve| {
            let mut options = serde_json::Map::new();
            let mut set = |name: &str, value: Option<Value>| {
                options.extend(value.map(|value| (name.to_owned(), value)));
            };
            set("stacked", curve.area.then(|| json!(true)));
            set("secondYAxis", curve.second.then(|| json!(true)));
            set("drawAsInfinite", curve.infinite.then(|| json!(true)));
            set("invisible", curve.invisible.then(|| json!(true)));
            set("dashed", curve.dash.map(|d| json!(d)));
            set("lineWidth", curve.series.style.as_ref().and_then(|s| s.line_width).map(|w| json!(w)));
            json!({
                "name": &*curve.series.name,
                "start": curve.points.start,
                "end": curve.series.end(),
                "step": curve.series.step().seconds(),
                "valuesPerPoint": curve.points.step / curve.series.step().seconds() as f64,
                "color": curve.color.hex(),
                "data": curve.points.values,
                "options": options,
            })
        });
        let axis = |axis: &YAxis| {
            json!({
                "top": axis.top,
                "bottom": axis.bottom,
                "step": axis.step,
                "labels": axis.labels.iter().map(|(_, text)| text).collect::<Vec<_>>(),
                "labelValues": axis.labels.iter().map(|(value, _)| value).collect::<Vec<_>>(),
            })
        };
        let mut metadata = json!({
            "x": { "start": self.start, "end": self.end },
            "options": { "lineWidth": self.options.line_width },
            "font": { "name": face.name(), "size": size, "bold": face.is_bold(), "italic": face.is_italic() },
            "area": { "xmin": left, "xmax": right, "ymin": top, "ymax": bottom },
            "series": series.collect::<Vec<_>>(),
            "y": axis(&self.y),
        });
        if let Some(second) = &self.second {
            metadata["yRight"] = axis(second);
        }
        metadata
    }
}

/// The series with colours and widths.
fn curves<'a>(series: &'a [Series], options: &Options) -> Result<Vec<Curve<'a>>, GraphError> {
    let plain_style = Style::default();
    let second = |s: &Series| s.style.as_ref().is_some_and(|style| style.second_y_axis);
    let two_axes = series.iter().any(second);
    let mut colors = options.colors.iter().copied().cycle();
    let mut curves = Vec::with_capacity(series.len());
    for series in series {
        let style = series.style.as_deref().unwrap_or(&plain_style);
        let side = match (two_axes, style.second_y_axis) {
            (false, _) => None,
            (true, false) => Some(options.left),
            (true, true) => Some(options.right),
        };
        let own = match &style.color {
            None => None,
            Some(text) => Some(
                Color::parse(text)
                    .ok_or_else(|| GraphError::Color { series: series.name.to_string(), text: text.clone() })?,
            ),
        };
        let color = side.and_then(|s| s.color).or(own);
        let infinite = style.draw_as_infinite;
        let area = style.stacked
            || match options.area_mode {
                AreaMode::None | AreaMode::First => false,
                AreaMode::All => !infinite,
                AreaMode::Stacked => !infinite && !two_axes,
            };
        let width = side.and_then(|s| s.width).or(style.line_width).unwrap_or(options.line_width);
        curves.push(Curve {
            series,
            color: color.or_else(|| colors.next()).unwrap_or(Color::BLACK),
            alpha: style.alpha.filter(|a| *a != 0.0).unwrap_or(1.0),
            width: if width.is_finite() { width.clamp(0.0, 1000.0) } else { options.line_width },
            dash: side.and_then(|s| s.dashed).or(style.dashed).filter(|d| d.is_finite() && *d > 0.0),
            area,
            infinite,
            second: style.second_y_axis,
            invisible: style.invisible,
            points: Points { start: series.start(), step: series.step().seconds() as f64, values: Vec::new() },
        });
    }
    Ok(curves)
}

/// The curves in the order in which they are drawn and stacked: areas that functions have stacked before all lines, else
/// all as they come. The first of them is the one that [`AreaMode::First`] means.
fn order(mut curves: Vec<Curve<'_>>, mode: AreaMode) -> Vec<Curve<'_>> {
    curves.sort_by_key(|c| !c.series.style.as_ref().is_some_and(|s| s.stacked));
    if let Some(first) = curves.first_mut().filter(|_| mode == AreaMode::First) {
        first.area = true;
    }
    curves
}

fn entries(curves: &[Curve<'_>], options: &Options) -> Vec<Entry> {
    if options.hide_legend.unwrap_or(curves.len() > LEGEND_ITEMS) {
        return Vec::new();
    }
    let unknown = |c: &Curve<'_>| c.series.values().iter().all(|v| v.is_nan());
    let listed = curves.iter().filter(|c| !c.series.name.is_empty() && !c.invisible);
    let listed = listed.filter(|c| !(options.hide_null_from_legend && unknown(c)));
    listed.map(|c| Entry { name: plain(&c.series.name), color: Some(c.color), right: c.second }).collect()
}

fn title_font(options: &Options) -> Font {
    let Font { face, size } = options.font;
    Font { face, size: size + size.ln().floor().max(0.0) }
}

/// The frame before there are y labels.
fn outer(options: &Options, second: bool, legend: f64) -> Frame {
    let (width, height) = (f64::from(options.width), f64::from(options.height));
    if options.graph_only {
        return Frame { left: 0.0, top: 0.0, right: width, bottom: height };
    }
    let margin = options.margin;
    let title = title_font(options);
    let line = title.face.line_height(title.size);
    let lines = |text: Option<&String>| text.map_or(0.0, |text| title.face.title(text, title.size, 0.0).len() as f64);
    // Room for half of a time that stands at the left edge.
    let mut frame = Frame { left: margin + 10.0, top: margin, right: width - margin, bottom: height - margin - legend };
    if options.title.is_some() {
        frame.top += lines(options.title.as_ref()) * line + margin.min(10.0);
    }
    if options.v_title.is_some() {
        frame.left += lines(options.v_title.as_ref()) * line + GAP;
    }
    if second && options.v_title_right.is_some() {
        frame.right -= lines(options.v_title_right.as_ref()) * line + GAP;
    }
    if !options.hide_axes && !options.hide_x_axis {
        frame.bottom -= options.font.face.ascent(options.font.size) * 2.0;
    }
    frame.top = frame.top.floor();
    frame.bottom = frame.bottom.floor().max(frame.top + 1.0);
    frame
}

fn rules(options: &Options, wishes: AxisWishes) -> AxisRules<'_> {
    AxisRules { wishes, divisors: &options.divisors, units: options.units, base: options.log_base }
}

/// The least and the greatest value, of finite ones.
fn limits<'a, 'b: 'a>(curves: impl Iterator<Item = &'a Curve<'b>>, options: &Options) -> (f64, f64) {
    let (mut least, mut greatest, mut absent) = (f64::INFINITY, f64::NEG_INFINITY, false);
    for curve in curves {
        for value in &curve.points.values {
            absent |= value.is_nan();
            if value.is_finite() && (options.log_base.is_none() || *value > 0.0) {
                least = least.min(*value);
                greatest = greatest.max(*value);
            }
        }
    }
    if least > greatest {
        return (0.0, 1.0);
    }
    if options.null_as_zero && absent {
        (least, greatest) = (least.min(0.0), greatest.max(0.0));
    }
    (least, greatest)
}
