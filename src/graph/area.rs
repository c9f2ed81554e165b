//! Areas that do not cover each other.
//!
//! An area reaches from its line to the base line, and what an earlier area covers stays that one's: of a later area
//! only what sticks out above (or, below the base line, under) all earlier ones is seen. So colours are never mixed,
//! and stacked areas become bands.

type Point = (f64, f64);

/// A straight piece of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    from: Point,
    to: Point,
}

impl Piece {
    fn at(self, x: f64) -> f64 {
        let (x0, y0) = self.from;
        let (x1, y1) = self.to;
        if x <= x0 {
            y0
        } else if x >= x1 {
            y1
        } else {
            y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        }
    }

    fn between(self, a: f64, b: f64) -> Self {
        Self { from: (a, self.at(a)), to: (b, self.at(b)) }
    }
}

/// What is covered so far, on both sides of the base line.
pub(super) struct Covered {
    above: Edge,
    below: Edge,
}

impl Covered {
    /// Nothing yet, from `from` to `to`.
    pub fn new(from: f64, to: f64, base: f64) -> Self {
        let edge = |base| Edge { pieces: vec![Piece { from: (from, base), to: (to, base) }] };
        Self { above: edge(base), below: edge(-base) }
    }

    /// Covers what is between the base line and `line` (points in order of x), and answers the part that was not
    /// covered before, as polygons.
    pub fn cover(&mut self, line: &[Point]) -> Vec<Vec<Point>> {
        let mut polygons = self.above.cover(line);
        let mirrored: Vec<Point> = line.iter().map(|(x, y)| (*x, -y)).collect();
        let below = self.below.cover(&mirrored).into_iter();
        polygons.extend(below.map(|polygon| polygon.into_iter().map(|(x, y)| (x, -y)).collect()));
        polygons
    }
}

/// The upper edge of what is covered: pieces in order, without gaps between them.
struct Edge {
    pieces: Vec<Piece>,
}

impl Edge {
    fn cover(&mut self, line: &[Point]) -> Vec<Vec<Point>> {
        let mut out = Outline::default();
        let mut new: Vec<Piece> = Vec::with_capacity(self.pieces.len() + line.len());
        let pieces = line.windows(2).map(|w| Piece { from: w[0], to: w[1] }).filter(|p| p.to.0 > p.from.0);
        let mut pieces = pieces.peekable();
        for old in &self.pieces {
            let mut x = old.from.0;
            let end = old.to.0;
            while x < end {
                while pieces.next_if(|p| p.to.0 <= x).is_some() {}
                let Some(piece) = pieces.peek().filter(|p| p.from.0 < end) else { break };
                if piece.from.0 > x {
                    push(&mut new, old.between(x, piece.from.0));
                    x = piece.from.0;
                }
                let until = end.min(piece.to.0);
                over(old.between(x, until), piece.between(x, until), &mut new, &mut out);
                x = until;
            }
            if x < end {
                push(&mut new, old.between(x, end));
            }
        }
        self.pieces = new;
        out.finish()
    }
}

/// The higher of two pieces with the same ends goes to `new`, what is between them to `out`.
fn over(old: Piece, line: Piece, new: &mut Vec<Piece>, out: &mut Outline) {
    let (left, right) = (line.from.1 - old.from.1, line.to.1 - old.to.1);
    if left <= 0.0 && right <= 0.0 {
        push(new, old);
    } else if left >= 0.0 && right >= 0.0 {
        push(new, line);
        out.add(old, line);
    } else {
        let (from, to) = (old.from.0, old.to.0);
        let cross = from + (to - from) * left / (left - right);
        if !(cross > from && cross < to) {
            push(new, if left + right > 0.0 { line } else { old });
            return;
        }
        for (a, b, above) in [(from, cross, left > 0.0), (cross, to, right > 0.0)] {
            let (old, line) = (old.between(a, b), line.between(a, b));
            push(new, if above { line } else { old });
            if above {
                out.add(old, line);
            }
        }
    }
}

fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    if piece.to.0 > piece.from.0 {
        // Level pieces that go on are one, so that an edge with much of the base line in it stays short.
        if let Some(last) = pieces.last_mut()
            && last.to == piece.from
            && last.from.1 == last.to.1
            && piece.from.1 == piece.to.1
        {
            last.to = piece.to;
            return;
        }
        pieces.push(piece);
    }
}

/// Polygons in the making: an upper and a lower edge.
#[derive(Default)]
struct Outline {
    polygons: Vec<Vec<Point>>,
    upper: Vec<Point>,
    lower: Vec<Point>,
}

impl Outline {
    fn add(&mut self, lower: Piece, upper: Piece) {
        if self.upper.last().is_some_and(|(x, _)| *x != upper.from.0) {
            self.end();
        }
        extend(&mut self.upper, upper);
        extend(&mut self.lower, lower);
    }

    fn end(&mut self) {
        let mut polygon = std::mem::take(&mut self.upper);
        polygon.extend(self.lower.drain(..).rev());
        if polygon.len() > 2 {
            self.polygons.push(polygon);
        }
    }

    fn finish(mut self) -> Vec<Vec<Point>> {
        self.end();
        self.polygons
    }
}

fn extend(edge: &mut Vec<Point>, piece: Piece) {
    if edge.last() != Some(&piece.from) {
        edge.push(piece.from);
    }
    edge.push(piece.to);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(polygons: &[Vec<Point>]) -> f64 {
        let one = |p: &Vec<Point>| -> f64 {
            let twice: f64 = p.iter().zip(p.iter().cycle().skip(1)).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum();
            twice.abs() / 2.0
        };
        polygons.iter().map(one).sum()
    }

    #[test]
    fn bands() {
        let mut covered = Covered::new(0.0, 10.0, 0.0);
        assert_eq!(size(&covered.cover(&[(0.0, 2.0), (10.0, 2.0)])), 20.0);
        // A second one that is two higher everywhere is a band of two.
        let band = covered.cover(&[(0.0, 4.0), (5.0, 4.0), (10.0, 4.0)]);
        assert_eq!(band.len(), 1);
        assert_eq!(size(&band), 20.0);
        // One that is lower is not seen.
        assert!(covered.cover(&[(0.0, 3.0), (10.0, 3.0)]).is_empty());
        // From 0 up to 8: above 4 from x = 5 on, a triangle of 5 by 4.
        assert_eq!(size(&covered.cover(&[(0.0, 0.0), (10.0, 8.0)])), 10.0);
        // And what is left above that up to 8: 10 x 4 less the triangle.
        assert_eq!(size(&covered.cover(&[(0.0, 8.0), (10.0, 8.0)])), 30.0);
    }

    #[test]
    fn steps_and_gaps() {
        let mut covered = Covered::new(0.0, 10.0, 0.0);
        // Two for x from 1 to 2, then three until 4.
        assert_eq!(size(&covered.cover(&[(1.0, 2.0), (2.0, 2.0), (2.0, 3.0), (4.0, 3.0)])), 8.0);
        // Three everywhere: 30 less those 8.
        let rest = covered.cover(&[(0.0, 3.0), (10.0, 3.0)]);
        assert_eq!(size(&rest), 22.0);
    }

    #[test]
    fn below_the_base_line() {
        let mut covered = Covered::new(0.0, 10.0, 0.0);
        // From -5 to 5: a triangle on each side.
        assert_eq!(size(&covered.cover(&[(0.0, -5.0), (10.0, 5.0)])), 25.0);
        assert_eq!(size(&covered.cover(&[(0.0, -5.0), (10.0, -5.0)])), 37.5);
        assert_eq!(size(&Covered::new(0.0, 4.0, 1.0).cover(&[(0.0, 3.0), (4.0, 3.0)])), 8.0);
    }
}
