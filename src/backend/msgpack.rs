//! MessagePack: reading the answers of Graphite 1.x backends, writing them when this server is a backend itself.
//!
//! The reader knows the two shapes that backends answer and skips all else without recursion; what it allocates is
//! bounded by the length of the input, not by the lengths that the input claims.

use std::sync::Arc;

use rmp::Marker;
use rmp::encode as put;

use super::FoundNode;
use super::wire::{ALWAYS, Answered, CodecError, Cursor, Limits, joined, second, text, whole};
use crate::series::Series;

/// Reads the answer to a render request: an array of maps with `name`, `start`, `end`, `step`, `values` and
/// `pathExpression`.
///
/// # Errors
/// Truncated input, another format, another shape, bytes after the end; more than `limits` allow.
pub fn read_render(body: &[u8], limits: &Limits) -> Result<Vec<Answered>, CodecError> {
    let mut reader = Reader::new(body, limits);
    let rows = reader.rows()?;
    let mut answer = Vec::with_capacity(rows.min(reader.input.left() / 16));
    for _ in 0..rows {
        let series = reader.series()?;
        answer.push(series);
    }
    reader.end()?;
    Ok(answer)
}

/// Reads the answer to a find request: an array of maps with `path` and `is_leaf`.
///
/// # Errors
/// As [`read_render`].
pub fn read_find(body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError> {
    let mut reader = Reader::new(body, limits);
    let rows = reader.rows()?;
    let mut nodes = Vec::with_capacity(rows.min(reader.input.left() / 16));
    for _ in 0..rows {
        nodes.push(reader.found()?);
    }
    reader.end()?;
    Ok(nodes)
}

/// Writes series as graphite-web's `format=msgpack` does: to be read by graphite-web, or by another Plumbago.
#[must_use]
pub fn write_render(series: &[Series]) -> Vec<u8> {
    let points: usize = series.iter().map(|s| s.len() * 9 + 200 + 2 * s.name.len()).sum();
    let mut writer = Writer(Vec::with_capacity(points));
    writer.array(series.len());
    for s in series {
        writer.map(9);
        writer.text("name");
        writer.text(&s.name);
        writer.text("start");
        writer.integer(s.start());
        writer.text("end");
        writer.integer(s.end());
        writer.text("step");
        writer.integer(s.step().seconds());
        writer.text("values");
        writer.array(s.len());
        for value in s.values() {
            if value.is_nan() {
                writer.nil();
            } else {
                writer.float(*value);
            }
        }
        writer.text("pathExpression");
        writer.text(&s.path_expression);
        writer.text("valuesPerPoint");
        writer.integer(1);
        writer.text("consolidationFunc");
        writer.text(s.consolidation.name());
        writer.text("xFilesFactor");
        writer.float(s.x_files_factor);
    }
    writer.0
}

/// Writes found nodes as graphite-web's `format=msgpack` does. A leaf of unknown interval is said to have
/// [`ALWAYS`].
#[must_use]
pub fn write_find(nodes: &[FoundNode]) -> Vec<u8> {
    let mut writer = Writer(Vec::with_capacity(nodes.iter().map(|n| n.path.len() + 48).sum()));
    writer.array(nodes.len());
    for node in nodes {
        writer.map(if node.leaf { 3 } else { 2 });
        writer.text("path");
        writer.text(&node.path);
        writer.text("is_leaf");
        writer.boolean(node.leaf);
        if node.leaf {
            writer.text("intervals");
            writer.array(1);
            writer.array(2);
            let (first, last) = node.interval.unwrap_or(ALWAYS);
            writer.integer(first);
            writer.integer(last);
        }
    }
    writer.0
}

/// Values in their shortest encoding, as Python's `msgpack` writes them.
struct Writer(Vec<u8>);

/// `rmp` writes to anything that can fail; memory cannot.
const TO_MEMORY: &str = "writing to memory does not fail";

impl Writer {
    fn array(&mut self, length: usize) {
        put::write_array_len(&mut self.0, length as u32).expect(TO_MEMORY);
    }

    fn map(&mut self, length: u32) {
        put::write_map_len(&mut self.0, length).expect(TO_MEMORY);
    }

    fn text(&mut self, text: &str) {
        put::write_str(&mut self.0, text).expect(TO_MEMORY);
    }

    fn integer(&mut self, value: i64) {
        put::write_sint(&mut self.0, value).expect(TO_MEMORY);
    }

    fn float(&mut self, value: f64) {
        put::write_f64(&mut self.0, value).expect(TO_MEMORY);
    }

    fn nil(&mut self) {
        put::write_nil(&mut self.0).expect(TO_MEMORY);
    }

    fn boolean(&mut self, value: bool) {
        put::write_bool(&mut self.0, value).expect(TO_MEMORY);
    }
}

struct Reader<'a> {
    input: Cursor<'a>,
    limits: &'a Limits,
    points: usize,
}

/// A value that is not a container.
enum Scalar<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(&'a [u8]),
}

/// A value, of containers only their head.
enum Head<'a> {
    Scalar(Scalar<'a>),
    Array(u32),
    Map(u32),
    /// An extension type, already skipped.
    Extension,
}

impl<'a> Reader<'a> {
    fn new(body: &'a [u8], limits: &'a Limits) -> Self {
        Self { input: Cursor::new(body), limits, points: 0 }
    }

    fn head(&mut self) -> Result<Head<'a>, CodecError> {
        let input = &mut self.input;
        let integer = |i: i64| Head::Scalar(Scalar::Int(i));
        Ok(match Marker::from_u8(input.byte()?) {
            Marker::Null => Head::Scalar(Scalar::Nil),
            Marker::True => Head::Scalar(Scalar::Bool(true)),
            Marker::False => Head::Scalar(Scalar::Bool(false)),
            Marker::FixPos(n) => integer(n.into()),
            Marker::FixNeg(n) => integer(n.into()),
            Marker::U8 => integer(input.byte()?.into()),
            Marker::U16 => integer(u16::from_be_bytes(input.array()?).into()),
            Marker::U32 => integer(u32::from_be_bytes(input.array()?).into()),
            Marker::U64 => {
                let n = u64::from_be_bytes(input.array()?);
                i64::try_from(n).map_or(Head::Scalar(Scalar::Float(n as f64)), integer)
            }
            Marker::I8 => integer(i8::from_be_bytes(input.array()?).into()),
            Marker::I16 => integer(i16::from_be_bytes(input.array()?).into()),
            Marker::I32 => integer(i32::from_be_bytes(input.array()?).into()),
            Marker::I64 => integer(i64::from_be_bytes(input.array()?)),
            Marker::F32 => Head::Scalar(Scalar::Float(f32::from_be_bytes(input.array()?).into())),
            Marker::F64 => Head::Scalar(Scalar::Float(f64::from_be_bytes(input.array()?))),
            Marker::FixStr(n) => Self::bytes(input, n.into())?,
            Marker::Str8 | Marker::Bin8 => {
                let n = input.byte()?;
                Self::bytes(input, n.into())?
            }
            Marker::Str16 | Marker::Bin16 => {
                let n = u16::from_be_bytes(input.array()?);
                Self::bytes(input, n.into())?
            }
            Marker::Str32 | Marker::Bin32 => {
                let n = u32::from_be_bytes(input.array()?);
                Self::bytes(input, n.into())?
            }
            Marker::FixArray(n) => Head::Array(n.into()),
            Marker::Array16 => Head::Array(u16::from_be_bytes(input.array()?).into()),
            Marker::Array32 => Head::Array(u32::from_be_bytes(input.array()?)),
            Marker::FixMap(n) => Head::Map(n.into()),
            Marker::Map16 => Head::Map(u16::from_be_bytes(input.array()?).into()),
            Marker::Map32 => Head::Map(u32::from_be_bytes(input.array()?)),
            // The length of an extension does not count its type byte.
            Marker::FixExt1 => Self::extension(input, 1)?,
            Marker::FixExt2 => Self::extension(input, 2)?,
            Marker::FixExt4 => Self::extension(input, 4)?,
            Marker::FixExt8 => Self::extension(input, 8)?,
            Marker::FixExt16 => Self::extension(input, 16)?,
            Marker::Ext8 => {
                let n = input.byte()?;
                Self::extension(input, n.into())?
            }
            Marker::Ext16 => {
                let n = u16::from_be_bytes(input.array()?);
                Self::extension(input, n.into())?
            }
            Marker::Ext32 => {
                let n = u32::from_be_bytes(input.array()?);
                Self::extension(input, n.into())?
            }
            Marker::Reserved => return Err(CodecError::garbled("it is not MessagePack")),
        })
    }

    fn bytes(input: &mut Cursor<'a>, length: u64) -> Result<Head<'a>, CodecError> {
        Ok(Head::Scalar(Scalar::Bytes(input.take(length)?)))
    }

    fn extension(input: &mut Cursor<'a>, length: u64) -> Result<Head<'a>, CodecError> {
        input.take(length + 1)?;
        Ok(Head::Extension)
    }

    /// Skips one value, whatever it holds.
    fn skip(&mut self) -> Result<(), CodecError> {
        let mut pending = 1_u64;
        while pending > 0 {
            // Each value takes a byte at least.
            if pending > self.input.left() as u64 {
                return Err(Cursor::truncated());
            }
            pending -= 1;
            match self.head()? {
                Head::Array(n) => pending += u64::from(n),
                Head::Map(n) => pending += 2 * u64::from(n),
                Head::Scalar(_) | Head::Extension => {}
            }
        }
        Ok(())
    }

    /// Length of the outermost array.
    fn rows(&mut self) -> Result<usize, CodecError> {
        match self.head()? {
            Head::Array(n) => {
                let rows = n as usize;
                // Each row takes a byte at least.
                if rows > self.input.left() {
                    return Err(Cursor::truncated());
                }
                self.limits.check_entries(rows)?;
                Ok(rows)
            }
            _ => Err(CodecError::garbled("it is not an array of maps")),
        }
    }

    fn end(&self) -> Result<(), CodecError> {
        if self.input.left() > 0 {
            return Err(CodecError::garbled("it goes on after its end"));
        }
        Ok(())
    }

    fn map(&mut self) -> Result<u32, CodecError> {
        match self.head()? {
            Head::Map(n) => Ok(n),
            _ => Err(CodecError::garbled("it is not an array of maps")),
        }
    }

    fn key(&mut self) -> Result<&'a [u8], CodecError> {
        match self.head()? {
            Head::Scalar(Scalar::Bytes(key)) => Ok(key),
            _ => Err(CodecError::garbled("a key is not text")),
        }
    }

    fn text(&mut self, what: &'static str) -> Result<Arc<str>, CodecError> {
        match self.head()? {
            Head::Scalar(Scalar::Bytes(bytes)) => Ok(text(bytes)),
            _ => Err(CodecError::garbled(format!("`{what}` is not text"))),
        }
    }

    fn optional_text(&mut self, what: &'static str) -> Result<Option<Arc<str>>, CodecError> {
        match self.head()? {
            Head::Scalar(Scalar::Bytes(bytes)) => Ok(Some(text(bytes))),
            Head::Scalar(Scalar::Nil) => Ok(None),
            _ => Err(CodecError::garbled(format!("`{what}` is not text"))),
        }
    }

    fn integer(&mut self, what: &'static str) -> Result<i64, CodecError> {
        match self.head()? {
            Head::Scalar(Scalar::Int(i)) => Some(i),
            Head::Scalar(Scalar::Float(f)) => whole(f),
            _ => None,
        }
        .ok_or_else(|| CodecError::garbled(format!("`{what}` is not a whole number")))
    }

    fn series(&mut self) -> Result<Answered, CodecError> {
        let (mut name, mut path_expression, mut start, mut end, mut step, mut values) =
            (None, None, None, None, None, None);
        for _ in 0..self.map()? {
            match self.key()? {
                b"name" => name = Some(self.text("name")?),
                b"pathExpression" => path_expression = self.optional_text("pathExpression")?,
                b"start" => start = Some(self.integer("start")?),
                b"end" => end = Some(self.integer("end")?),
                b"step" => step = Some(self.integer("step")?),
                b"values" => values = Some(self.column()?),
                _ => self.skip()?,
            }
        }
        let missing = |what| move || CodecError::garbled(format!("a series has no `{what}`"));
        Answered::new(
            name.ok_or_else(missing("name"))?,
            path_expression,
            (start.ok_or_else(missing("start"))?, end, step.ok_or_else(missing("step"))?),
            Arc::new(values.ok_or_else(missing("values"))?),
        )
    }

    /// Reads floats, which nearly all values are, up to the first that is none; `most` at most.
    fn floats(&mut self, most: usize, column: &mut Vec<f64>) {
        const FLOAT: u8 = 0xcb;
        let rest = &self.input.bytes[self.input.at..];
        let (values, _) = rest.as_chunks::<9>();
        let values = &values[..values.len().min(most)];
        let run = values.iter().position(|[marker, ..]| *marker != FLOAT).unwrap_or(values.len());
        column.extend(values[..run].iter().map(|[_, raw @ ..]| f64::from_be_bytes(*raw)));
        self.input.at += 9 * run;
    }

    fn column(&mut self) -> Result<Vec<f64>, CodecError> {
        let Head::Array(length) = self.head()? else {
            return Err(CodecError::garbled("`values` is not an array"));
        };
        let length = length as usize;
        // Each value takes a byte at least.
        if length > self.input.left() {
            return Err(Cursor::truncated());
        }
        self.points = self.points.saturating_add(length);
        if self.points > self.limits.points {
            return Err(self.limits.too_many_points());
        }
        let mut column = Vec::with_capacity(length);
        while column.len() < length {
            self.floats(length - column.len(), &mut column);
            if column.len() == length {
                break;
            }
            column.push(match self.head()? {
                Head::Scalar(Scalar::Nil) => f64::NAN,
                Head::Scalar(Scalar::Float(f)) => f,
                Head::Scalar(Scalar::Int(i)) => i as f64,
                Head::Scalar(Scalar::Bool(b)) => f64::from(u8::from(b)),
                _ => return Err(CodecError::garbled("one of `values` is not a number")),
            });
        }
        Ok(column)
    }

    fn found(&mut self) -> Result<FoundNode, CodecError> {
        let (mut path, mut leaf, mut interval) = (None, None, None);
        for _ in 0..self.map()? {
            match self.key()? {
                b"path" | b"metric_path" => path = Some(self.text("path")?),
                b"is_leaf" | b"isLeaf" => {
                    leaf = match self.head()? {
                        Head::Scalar(Scalar::Bool(leaf)) => Some(leaf),
                        Head::Scalar(Scalar::Int(leaf)) => Some(leaf != 0),
                        _ => None,
                    }
                }
                b"intervals" => interval = self.interval()?,
                _ => self.skip()?,
            }
        }
        match (path, leaf) {
            (Some(path), Some(leaf)) => {
                let interval = interval.filter(|_| leaf);
                Ok(FoundNode { path: path.as_ref().to_owned(), leaf, interval })
            }
            _ => Err(CodecError::garbled("a found node has no proper `path` and `is_leaf`")),
        }
    }

    /// First and last second of an array of pairs; `None` if it is empty or something else, which is skipped.
    fn interval(&mut self) -> Result<Option<(i64, i64)>, CodecError> {
        let before = self.input;
        if let Ok(interval) = self.pairs() {
            return Ok(interval);
        }
        self.input = before;
        self.skip()?;
        Ok(None)
    }

    fn pairs(&mut self) -> Result<Option<(i64, i64)>, CodecError> {
        let no_pairs = || CodecError::garbled("`intervals` are not pairs");
        let Head::Array(pairs) = self.head()? else {
            return Err(no_pairs());
        };
        let mut all = None;
        for _ in 0..pairs {
            let mut ends = [0; 2];
            if !matches!(self.head()?, Head::Array(2)) {
                return Err(no_pairs());
            }
            for end in &mut ends {
                *end = match self.head()? {
                    Head::Scalar(Scalar::Int(i)) => i,
                    Head::Scalar(Scalar::Float(f)) => second(f).ok_or_else(no_pairs)?,
                    _ => return Err(no_pairs()),
                };
            }
            all = Some(joined(all, ends.into()));
        }
        Ok(all)
    }
}
