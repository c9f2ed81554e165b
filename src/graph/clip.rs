//! Cutting lines and areas off at the edges of a rectangle, so that no backend needs to know how.

type Point = (f64, f64);

/// What is seen of the plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub x: (f64, f64),
    pub y: (f64, f64),
}

impl Window {
    /// The parts of a line that are within.
    pub fn line(self, points: &[Point]) -> Vec<Vec<Point>> {
        let mut parts: Vec<Vec<Point>> = Vec::new();
        for pair in points.windows(2) {
            let Some((from, to)) = self.segment(pair[0], pair[1]) else { continue };
            match parts.last_mut() {
                Some(part) if part.last() == Some(&from) => part.push(to),
                _ => parts.push(vec![from, to]),
            }
        }
        parts
    }

    /// Liang and Barsky's way.
    fn segment(self, (x0, y0): Point, (x1, y1): Point) -> Option<(Point, Point)> {
        let (dx, dy) = (x1 - x0, y1 - y0);
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        let edges = [(-dx, x0 - self.x.0), (dx, self.x.1 - x0), (-dy, y0 - self.y.0), (dy, self.y.1 - y0)];
        for (speed, distance) in edges {
            if speed == 0.0 {
                if distance < 0.0 {
                    return None;
                }
            } else if speed < 0.0 {
                enter = enter.max(distance / speed);
            } else {
                leave = leave.min(distance / speed);
            }
        }
        if enter > leave {
            return None;
        }
        let at = |t: f64| (x0 + t * dx, y0 + t * dy);
        let from = if enter == 0.0 { (x0, y0) } else { at(enter) };
        let to = if leave == 1.0 { (x1, y1) } else { at(leave) };
        Some((from, to))
    }

    /// The part of a polygon that is within; empty when there is none.
    pub fn polygon(self, points: &[Point]) -> Vec<Point> {
        let left = cut(points, |p| p.0 - self.x.0);
        let right = cut(&left, |p| self.x.1 - p.0);
        let below = cut(&right, |p| p.1 - self.y.0);
        cut(&below, |p| self.y.1 - p.1)
    }
}

/// The part of a polygon where `inside` is not negative: Sutherland and Hodgman's way.
fn cut(points: &[Point], inside: impl Fn(Point) -> f64) -> Vec<Point> {
    let mut out = Vec::with_capacity(points.len() + 4);
    let Some(last) = points.last() else { return out };
    let (mut from, mut from_inside) = (*last, inside(*last));
    for to in points {
        let to_inside = inside(*to);
        if (from_inside < 0.0) != (to_inside < 0.0) {
            let t = from_inside / (from_inside - to_inside);
            out.push((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)));
        }
        if to_inside >= 0.0 {
            out.push(*to);
        }
        (from, from_inside) = (*to, to_inside);
    }
    out
}

/// A line cut into dashes of `length` with gaps as long between them; distances are measured on the screen, of which
/// one unit of x is `scale.0` and one of y is `scale.1` pixels.
pub(super) fn dashes(points: &[Point], length: f64, scale: Point) -> Vec<Vec<Point>> {
    // More would not be seen, and would take long to draw.
    let length = length.max(0.5);
    let (mut dashes, mut dash) = (Vec::new(), Vec::new());
    let mut left = length;
    let mut drawing = true;
    dash.extend(points.first().copied());
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let (dx, dy) = (x1 - x0, y1 - y0);
        let total = (dx * scale.0).hypot(dy * scale.1);
        if !total.is_finite() || total == 0.0 {
            continue;
        }
        let mut done = 0.0;
        while total - done > left {
            done += left;
            left = length;
            let at = (x0 + dx * done / total, y0 + dy * done / total);
            if drawing {
                dash.push(at);
                dashes.push(std::mem::take(&mut dash));
            } else {
                dash = vec![at];
            }
            drawing = !drawing;
        }
        left -= total - done;
        if drawing {
            dash.push((x1, y1));
        }
    }
    if drawing && dash.len() > 1 {
        dashes.push(dash);
    }
    dashes
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Window = Window { x: (0.0, 10.0), y: (0.0, 10.0) };

    #[test]
    fn lines() {
        assert_eq!(UNIT.line(&[(1.0, 1.0), (2.0, 2.0), (3.0, 1.0)]), [vec![(1.0, 1.0), (2.0, 2.0), (3.0, 1.0)]]);
        // Up through the ceiling and down again: two parts with the slopes of the whole.
        let parts = UNIT.line(&[(0.0, 0.0), (5.0, 20.0), (10.0, 0.0)]);
        assert_eq!(parts, [vec![(0.0, 0.0), (2.5, 10.0)], vec![(7.5, 10.0), (10.0, 0.0)]]);
        assert!(UNIT.line(&[(0.0, 11.0), (10.0, 12.0)]).is_empty());
        assert!(UNIT.line(&[(1.0, 1.0)]).is_empty());
    }

    #[test]
    fn polygons() {
        let cut = UNIT.polygon(&[(-5.0, 2.0), (5.0, 2.0), (5.0, 15.0), (-5.0, 15.0)]);
        let area: f64 = cut.iter().zip(cut.iter().cycle().skip(1)).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum();
        assert!((area.abs() / 2.0 - 40.0).abs() < 1e-9, "{cut:?}");
        assert!(UNIT.polygon(&[(20.0, 20.0), (30.0, 20.0), (30.0, 30.0)]).is_empty());
    }

    #[test]
    fn dashes_go_round_corners() {
        // 3 along, then 3 down: dashes of 2 with gaps of 2 are 0 to 2 and 4 to 6, of which the corner is in the gap.
        let parts = dashes(&[(0.0, 0.0), (3.0, 0.0), (3.0, 3.0)], 2.0, (1.0, 1.0));
        assert_eq!(parts, [vec![(0.0, 0.0), (2.0, 0.0)], vec![(3.0, 1.0), (3.0, 3.0)]]);
        let corner = dashes(&[(0.0, 0.0), (1.0, 0.0), (1.0, 3.0)], 2.0, (1.0, 1.0));
        assert_eq!(corner, [vec![(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]]);
    }
}
