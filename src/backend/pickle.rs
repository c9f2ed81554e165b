//! Pickles: reading the answers of Graphite backends, writing them when this server is a backend itself.
//!
//! The reader is an interpreter of the pickle opcodes (protocols 0 to 5, as Python 2, Python 3 and Go write them) that
//! only ever makes data: whatever would be called or instantiated becomes an opaque value. It keeps of a dictionary
//! only the entries that answers have, it does not recurse, and all it stores is bounded by the length of the
//! input. A list of numbers goes straight into a column of `f64`, which is shared by all that refer to it.
//!
//! Writing is left to `serde-pickle`, at protocol 2, which every Graphite reads.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::FoundNode;
use super::wire::{ALWAYS, Answered, CodecError, Cursor, Limits, joined, second, text, whole};
use crate::series::Series;

/// Reads the answer to a render request: a list of dictionaries with `name`, `start`, `end`, `step`, `values` and,
/// from newer backends, `pathExpression`.
///
/// # Errors
/// A pickle that is truncated, not a pickle, or not of this shape; more than `limits` allow.
pub fn read_render(body: &[u8], limits: &Limits) -> Result<Vec<Answered>, CodecError> {
    let mut machine = Machine::run(body, limits)?;
    let items = machine.rows()?;
    limits.check_entries(items.len())?;
    let mut points = 0_usize;
    let mut seen = HashSet::new();
    let mut answer = Vec::with_capacity(items.len());
    for item in items {
        // One dictionary that is listed twice is one series.
        if let Value::Node(node) = item
            && !seen.insert(node)
        {
            continue;
        }
        let series = machine.series(item)?;
        points = points.saturating_add(series.len());
        if points > limits.points {
            return Err(limits.too_many_points());
        }
        answer.push(series);
    }
    Ok(answer)
}

/// Reads the answer to a find request: a list of dictionaries with `path` and `is_leaf` (Graphite 1.x), or
/// `metric_path` and `isLeaf` (0.9 and go-carbon).
///
/// # Errors
/// As [`read_render`].
pub fn read_find(body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError> {
    let mut machine = Machine::run(body, limits)?;
    let items = machine.rows()?;
    limits.check_entries(items.len())?;
    let mut seen = HashSet::new();
    let mut nodes = Vec::with_capacity(items.len());
    for item in items {
        let Value::Node(node) = item else {
            return Err(CodecError::garbled("a found node is not a dictionary"));
        };
        if seen.insert(node) {
            nodes.push(machine.found(node)?);
        }
    }
    Ok(nodes)
}

/// Writes series as graphite-web's `format=pickle` does: to be read by graphite-web, or by another Plumbago.
#[must_use]
pub fn write_render(series: &[Series]) -> Vec<u8> {
    let rows: Vec<RenderRow<'_>> = series
        .iter()
        .map(|s| RenderRow {
            name: &s.name,
            start: s.start(),
            end: s.end(),
            step: s.step().seconds(),
            values: Column(s.values()),
            path_expression: &s.path_expression,
            values_per_point: 1,
            consolidation_func: s.consolidation.name(),
            x_files_factor: s.x_files_factor,
        })
        .collect();
    write(&rows)
}

/// Writes found nodes as graphite-web's `format=pickle` does, but with plain tuples for intervals: its own classes
/// cannot be read by older versions. A leaf of unknown interval is said to have [`ALWAYS`].
#[must_use]
pub fn write_find(nodes: &[FoundNode]) -> Vec<u8> {
    let rows: Vec<FindRow<'_>> = nodes
        .iter()
        .map(|n| FindRow {
            path: &n.path,
            is_leaf: n.leaf,
            intervals: n.leaf.then(|| vec![n.interval.unwrap_or(ALWAYS)]),
        })
        .collect();
    write(&rows)
}

fn write<T: Serialize>(rows: &T) -> Vec<u8> {
    let options = serde_pickle::SerOptions::new().proto_v2();
    serde_pickle::to_vec(rows, options).expect("text, numbers and lists of them always have a pickle")
}

#[derive(serde::Serialize)]
struct RenderRow<'a> {
    name: &'a str,
    start: i64,
    end: i64,
    step: i64,
    values: Column<'a>,
    #[serde(rename = "pathExpression")]
    path_expression: &'a str,
    #[serde(rename = "valuesPerPoint")]
    values_per_point: u32,
    #[serde(rename = "consolidationFunc")]
    consolidation_func: &'static str,
    #[serde(rename = "xFilesFactor")]
    x_files_factor: f64,
}

#[derive(serde::Serialize)]
struct FindRow<'a> {
    path: &'a str,
    is_leaf: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<Vec<(i64, i64)>>,
}

/// Points with `None` for those that are absent.
struct Column<'a>(&'a [f64]);

impl Serialize for Column<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for value in self.0 {
            list.serialize_element(&(!value.is_nan()).then_some(*value))?;
        }
        list.end()
    }
}

/// The entries of dictionaries that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Name,
    Start,
    End,
    Step,
    Values,
    PathExpression,
    Path,
    Leaf,
    Intervals,
}

impl Key {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"name" => Self::Name,
            b"start" => Self::Start,
            b"end" => Self::End,
            b"step" => Self::Step,
            b"values" => Self::Values,
            b"pathExpression" => Self::PathExpression,
            b"path" | b"metric_path" => Self::Path,
            b"is_leaf" | b"isLeaf" => Self::Leaf,
            b"intervals" => Self::Intervals,
            _ => return None,
        })
    }
}

/// What is on the stack. Lists and dictionaries are in [`Machine::nodes`], because they are filled after they have
/// been referred to.
#[derive(Clone, Copy)]
enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Text as it is in the input: offset and length.
    Slice(u32, u32),
    /// Text that had escapes: index into [`Machine::unescaped`].
    Unescaped(u32),
    Node(u32),
    /// Whatever is not data: an object, a class, a set.
    Opaque,
}

impl Value {
    fn number(self) -> Option<f64> {
        Some(match self {
            Self::None => f64::NAN,
            Self::Bool(b) => f64::from(u8::from(b)),
            Self::Int(i) => i as f64,
            Self::Float(f) => f,
            _ => return None,
        })
    }

    fn whole(self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(i),
            Self::Float(f) => whole(f),
            _ => None,
        }
    }
}

enum Node {
    /// A list or tuple of which all items are numbers or `None` so far.
    Numbers(Vec<f64>),
    /// The same when it has been asked for as a column.
    Column(Arc<Vec<f64>>),
    /// A list or tuple of anything.
    Items(Vec<Value>),
    /// A dictionary: the entries of [`Key`], each once.
    Record(Vec<(Key, Value)>),
}

/// What stopped a run of numbers.
enum Run {
    /// `APPENDS`: the run belongs to the list.
    Appended,
    /// Anything else: the run is just on the stack.
    Interrupted,
}

/// Bounds of what is kept, beside those of the input itself; a real answer is far below.
struct Room {
    nodes: usize,
    stack: usize,
    memo: usize,
    items: usize,
    points: usize,
}

struct Machine<'a> {
    input: Cursor<'a>,
    stack: Vec<Value>,
    /// Heights of the stack at which a mark was set.
    marks: Vec<usize>,
    memo: Vec<Value>,
    nodes: Vec<Node>,
    unescaped: Vec<Vec<u8>>,
    /// Text that was asked for, by its place: series share their pattern, hostile ones their long names.
    texts: HashMap<(bool, u32), Arc<str>>,
    room: Room,
    limits: &'a Limits,
    root: Value,
}

impl<'a> Machine<'a> {
    fn run(body: &'a [u8], limits: &'a Limits) -> Result<Self, CodecError> {
        if u32::try_from(body.len()).is_err() {
            return Err(CodecError::TooLarge { limit: u32::MAX as usize, unit: "bytes" });
        }
        let mut machine = Self {
            input: Cursor::new(body),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            nodes: Vec::new(),
            unescaped: Vec::new(),
            texts: HashMap::new(),
            room: Room {
                nodes: 500_000 + body.len() / 8,
                stack: 1_000_000 + body.len() / 4,
                memo: body.len().min(1_000_000 + body.len() / 8),
                items: 1_000_000 + body.len() / 4,
                points: limits.points,
            },
            limits,
            root: Value::None,
        };
        while machine.step()? {}
        Ok(machine)
    }

    /// Executes one opcode; false when it was the last.
    fn step(&mut self) -> Result<bool, CodecError> {
        let opcode = self.input.byte()?;
        match opcode {
            b'(' => self.mark()?,
            b'.' => {
                self.root = self.pop()?;
                return Ok(false);
            }
            // Memo.
            b'q' => {
                let id = self.input.byte()?;
                self.remember(id.into())?;
            }
            b'r' => {
                let id = u32::from_le_bytes(self.input.array()?);
                self.remember(id as usize)?;
            }
            b'p' => {
                let id = self.decimal()?;
                self.remember(id)?;
            }
            0x94 => self.remember(self.memo.len())?,
            b'h' => {
                let id = self.input.byte()?;
                self.recall(id.into())?;
            }
            b'j' => {
                let id = u32::from_le_bytes(self.input.array()?);
                self.recall(id as usize)?;
            }
            b'g' => {
                let id = self.decimal()?;
                self.recall(id)?;
            }
            // Text.
            b'U' | 0x8c | b'C' => {
                let length = self.input.byte()?;
                self.slice(length.into())?;
            }
            b'T' | b'X' | b'B' => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.slice(length.into())?;
            }
            0x8d | 0x8e | 0x96 => {
                let length = u64::from_le_bytes(self.input.array()?);
                self.slice(length)?;
            }
            b'S' => {
                let line = self.input.line()?;
                let unescaped = unescape_bytes(line)?;
                self.escaped_text(unescaped)?;
            }
            b'V' => {
                let line = self.input.line()?;
                self.escaped_text(unescape_unicode(line))?;
            }
            // Lists, tuples, dictionaries.
            b']' => self.push_node(Node::Numbers(Vec::new()))?,
            b')' => self.push_node(Node::Items(Vec::new()))?,
            b'}' => self.push_node(Node::Record(Vec::new()))?,
            b'l' | b't' => {
                let items = self.pop_to_mark()?;
                self.push_list(&items)?;
            }
            0x85..=0x87 => {
                let length = usize::from(opcode - 0x84);
                let mut items = [Value::None; 3];
                for item in items[..length].iter_mut().rev() {
                    *item = self.pop()?;
                }
                self.push_list(&items[..length])?;
            }
            b'd' => {
                let items = self.pop_to_mark()?;
                self.push_node(Node::Record(Vec::new()))?;
                self.fill(&items)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(&items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.fill(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.fill(&items)?;
            }
            // The stack itself.
            b'0' => self.pop_or_unmark()?,
            // Additions to a set, which is opaque, are lost with it.
            b'1' | 0x90 => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.push(top)?;
            }
            // Whatever would run code: its operands are taken, and the result is opaque.
            b'c' => {
                self.input.line()?;
                self.input.line()?;
                self.push(Value::Opaque)?;
            }
            b'i' => {
                self.input.line()?;
                self.input.line()?;
                self.opaque_to_mark()?;
            }
            b'o' | 0x91 => self.opaque_to_mark()?,
            0x93 | b'R' | 0x81 => self.opaque(2)?,
            0x92 => self.opaque(3)?,
            b'b' => self.build()?,
            b'P' => {
                self.input.line()?;
                self.push(Value::Opaque)?;
            }
            b'Q' => self.opaque(1)?,
            0x82 => {
                self.input.take(1)?;
                self.push(Value::Opaque)?;
            }
            0x83 => {
                self.input.take(2)?;
                self.push(Value::Opaque)?;
            }
            0x84 => {
                self.input.take(4)?;
                self.push(Value::Opaque)?;
            }
            0x8f | 0x97 => self.push(Value::Opaque)?,
            0x98 => {}
            // Framing and version say nothing that is needed here.
            0x80 => drop(self.input.take(1)?),
            0x95 => drop(self.input.take(8)?),
            _ => {
                self.input.at -= 1;
                match self.scalar()? {
                    Some(value) => self.push(value)?,
                    None => return Err(self.unknown_opcode(opcode)),
                }
            }
        }
        Ok(true)
    }

    fn unknown_opcode(&self, opcode: u8) -> CodecError {
        CodecError::garbled(format!("it is not a pickle: byte {opcode:#04x} at {}", self.input.at))
    }

    /// Reads a number, a boolean or `None` if one is next.
    fn scalar(&mut self) -> Result<Option<Value>, CodecError> {
        let input = &mut self.input;
        let opcode = input.byte()?;
        Ok(Some(match opcode {
            b'N' => Value::None,
            b'G' => Value::Float(f64::from_be_bytes(input.array()?)),
            b'K' => Value::Int(input.byte()?.into()),
            b'M' => Value::Int(u16::from_le_bytes(input.array()?).into()),
            b'J' => Value::Int(i32::from_le_bytes(input.array()?).into()),
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            0x8a => {
                let length = input.byte()?;
                long(input.take(length.into())?)
            }
            0x8b => {
                let length = u32::from_le_bytes(input.array()?);
                long(input.take(length.into())?)
            }
            b'I' => match input.line()? {
                b"00" => Value::Bool(false),
                b"01" => Value::Bool(true),
                digits => integer(digits)?,
            },
            b'L' => {
                let line = input.line()?;
                integer(line.strip_suffix(b"L").unwrap_or(line))?
            }
            b'F' => Value::Float(number(input.line()?)?),
            _ => {
                input.at -= 1;
                return Ok(None);
            }
        }))
    }

    /// Sets a mark. What usually follows in an answer is the points of a series: when the value below is a list of
    /// numbers, they are read into it without going over the stack.
    fn mark(&mut self) -> Result<(), CodecError> {
        let below = (self.stack.len() > self.fence()).then(|| self.stack.last().copied()).flatten();
        if self.marks.len() >= self.room.stack {
            return Err(CodecError::garbled("it is nested too deeply"));
        }
        if let Some(Value::Node(node)) = below
            && let Some(Node::Numbers(numbers)) = self.nodes.get_mut(node as usize)
        {
            let mut numbers = mem::take(numbers);
            let before = numbers.len();
            let end = self.numbers(&mut numbers)?;
            if matches!(end, Run::Interrupted) {
                self.marks.push(self.stack.len());
                if self.stack.len() + numbers.len() - before > self.room.stack {
                    return Err(CodecError::garbled("it holds too many items"));
                }
                self.stack.extend(numbers.drain(before..).map(Value::Float));
            }
            self.nodes[node as usize] = Node::Numbers(numbers);
            return Ok(());
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn numbers(&mut self, numbers: &mut Vec<f64>) -> Result<Run, CodecError> {
        let before = numbers.len();
        let run = loop {
            // Nearly all points are of these two kinds.
            while let Some([b'G', raw @ ..]) = self.input.bytes[self.input.at..].first_chunk::<9>() {
                numbers.push(f64::from_be_bytes(*raw));
                self.input.at += 9;
            }
            while self.input.bytes.get(self.input.at) == Some(&b'N') {
                numbers.push(f64::NAN);
                self.input.at += 1;
            }
            if numbers.len() - before > self.room.points {
                return Err(self.limits.too_many_points());
            }
            match self.input.peek()? {
                b'G' if self.input.left() >= 9 => {}
                b'e' => {
                    self.input.at += 1;
                    break Run::Appended;
                }
                0x95 => {
                    self.input.take(9)?;
                }
                _ => match self.scalar()?.and_then(Value::number) {
                    Some(number) => numbers.push(number),
                    None => break Run::Interrupted,
                },
            }
        };
        if matches!(run, Run::Appended) {
            self.room.points -= numbers.len() - before;
        }
        Ok(run)
    }

    // The stack.

    /// Values below this height belong to an enclosing mark.
    fn fence(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn push(&mut self, value: Value) -> Result<(), CodecError> {
        if self.stack.len() >= self.room.stack {
            return Err(CodecError::garbled("it holds too many items"));
        }
        self.stack.push(value);
        Ok(())
    }

    fn top(&self) -> Result<Value, CodecError> {
        if self.stack.len() <= self.fence() {
            return Err(CodecError::garbled("it is not a pickle: an operand is missing"));
        }
        self.stack.last().copied().ok_or_else(Cursor::truncated)
    }

    fn pop(&mut self) -> Result<Value, CodecError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// `POP`, which Python also uses to take back a mark.
    fn pop_or_unmark(&mut self) -> Result<(), CodecError> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(drop)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>, CodecError> {
        let mark = self.marks.pop().ok_or_else(|| CodecError::garbled("it is not a pickle: a mark is missing"))?;
        Ok(self.stack.split_off(mark))
    }

    fn opaque(&mut self, operands: usize) -> Result<(), CodecError> {
        for _ in 0..operands {
            self.pop()?;
        }
        self.push(Value::Opaque)
    }

    fn opaque_to_mark(&mut self) -> Result<(), CodecError> {
        self.pop_to_mark()?;
        self.push(Value::Opaque)
    }

    /// Gives an object its state. What is told of an object is the dictionary that it would have, if there is one:
    /// Graphite's intervals come as objects.
    fn build(&mut self) -> Result<(), CodecError> {
        let state = self.pop()?;
        if let (Value::Opaque, Value::Node(node)) = (self.top()?, state)
            && matches!(self.nodes.get(node as usize), Some(Node::Record(_)))
            && let Some(top) = self.stack.last_mut()
        {
            *top = state;
        }
        Ok(())
    }

    // The memo.

    fn remember(&mut self, id: usize) -> Result<(), CodecError> {
        let value = self.top()?;
        if id >= self.room.memo {
            return Err(CodecError::garbled("it refers to a place that it cannot have"));
        }
        if id >= self.memo.len() {
            self.memo.resize(id + 1, Value::Opaque);
        }
        self.memo[id] = value;
        Ok(())
    }

    fn recall(&mut self, id: usize) -> Result<(), CodecError> {
        match self.memo.get(id) {
            Some(value) => self.push(*value),
            None => Err(CodecError::garbled("it refers to something that it does not hold")),
        }
    }

    fn decimal(&mut self) -> Result<usize, CodecError> {
        let line = self.input.line()?;
        std::str::from_utf8(line)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| CodecError::garbled("it is not a pickle: a number is expected"))
    }

    // Text.

    fn slice(&mut self, length: u64) -> Result<(), CodecError> {
        let at = self.input.at as u32;
        let taken = self.input.take(length)?;
        self.push(Value::Slice(at, taken.len() as u32))
    }

    fn escaped_text(&mut self, unescaped: Vec<u8>) -> Result<(), CodecError> {
        self.unescaped.push(unescaped);
        self.push(Value::Unescaped(self.unescaped.len() as u32 - 1))
    }

    fn bytes(&self, value: Value) -> Option<&[u8]> {
        match value {
            Value::Slice(at, length) => self.input.bytes.get(at as usize..)?.get(..length as usize),
            Value::Unescaped(index) => self.unescaped.get(index as usize).map(Vec::as_slice),
            _ => None,
        }
    }

    fn text(&mut self, value: Value) -> Option<Arc<str>> {
        let place = match value {
            Value::Slice(at, _) => (false, at),
            Value::Unescaped(index) => (true, index),
            _ => return None,
        };
        if let Some(text) = self.texts.get(&place) {
            return Some(text.clone());
        }
        let text = text(self.bytes(value)?);
        self.texts.insert(place, text.clone());
        Some(text)
    }

    // Lists and dictionaries.

    fn push_node(&mut self, node: Node) -> Result<(), CodecError> {
        if self.nodes.len() >= self.room.nodes {
            return Err(CodecError::garbled("it holds too many lists"));
        }
        self.nodes.push(node);
        self.push(Value::Node(self.nodes.len() as u32 - 1))
    }

    fn push_list(&mut self, items: &[Value]) -> Result<(), CodecError> {
        self.push_node(Node::Numbers(Vec::new()))?;
        self.append(items)
    }

    /// Appends to the list on the stack; what is appended to something opaque is lost.
    fn append(&mut self, items: &[Value]) -> Result<(), CodecError> {
        let Value::Node(index) = self.top()? else {
            return Ok(());
        };
        let Some(node) = self.nodes.get_mut(index as usize) else {
            return Ok(());
        };
        for item in items {
            match node {
                Node::Numbers(numbers) => {
                    if let Some(number) = item.number() {
                        if self.room.points == 0 {
                            return Err(self.limits.too_many_points());
                        }
                        self.room.points -= 1;
                        numbers.push(number);
                        continue;
                    }
                    if numbers.len() >= self.room.items {
                        return Err(CodecError::garbled("it holds too many items"));
                    }
                    self.room.items -= numbers.len();
                    *node = Node::Items(numbers.iter().map(|n| Value::Float(*n)).collect());
                }
                Node::Items(_) => {}
                Node::Column(_) | Node::Record(_) => {
                    return Err(CodecError::garbled("it is not a pickle: a list is expected"));
                }
            }
            if let Node::Items(list) = node {
                if self.room.items == 0 {
                    return Err(CodecError::garbled("it holds too many items"));
                }
                self.room.items -= 1;
                list.push(*item);
            }
        }
        Ok(())
    }

    /// Sets keys and values (in turn) of the dictionary on the stack.
    fn fill(&mut self, items: &[Value]) -> Result<(), CodecError> {
        let target = self.top()?;
        let (pairs, []) = items.as_chunks::<2>() else {
            return Err(CodecError::garbled("it is not a pickle: a key has no value"));
        };
        for [key, value] in pairs {
            let Some(key) = self.bytes(*key).and_then(Key::of) else {
                continue;
            };
            let Value::Node(index) = target else {
                continue;
            };
            let Some(Node::Record(entries)) = self.nodes.get_mut(index as usize) else {
                return Err(CodecError::garbled("it is not a pickle: a dictionary is expected"));
            };
            match entries.iter_mut().find(|(k, _)| *k == key) {
                Some((_, old)) => *old = *value,
                None => entries.push((key, *value)),
            }
        }
        Ok(())
    }

    // The answer.

    /// The items of the outermost list.
    fn rows(&mut self) -> Result<Vec<Value>, CodecError> {
        let node = match self.root {
            Value::Node(index) => self.nodes.get_mut(index as usize),
            _ => None,
        };
        match node {
            Some(Node::Items(items)) => Ok(mem::take(items)),
            Some(Node::Numbers(numbers)) if numbers.is_empty() => Ok(Vec::new()),
            _ => Err(CodecError::garbled("it is not a list of dictionaries")),
        }
    }

    fn entry(&self, node: u32, key: Key) -> Option<Value> {
        match self.nodes.get(node as usize)? {
            Node::Record(entries) => entries.iter().find(|(k, _)| *k == key).map(|(_, v)| *v),
            _ => None,
        }
    }

    fn series(&mut self, item: Value) -> Result<Answered, CodecError> {
        let Value::Node(node) = item else {
            return Err(CodecError::garbled("a series is not a dictionary"));
        };
        let missing = |what| move || CodecError::garbled(format!("a series has no proper `{what}`"));
        let name = self.entry(node, Key::Name).and_then(|v| self.text(v)).ok_or_else(missing("name"))?;
        let path_expression = self.entry(node, Key::PathExpression).and_then(|v| self.text(v));
        let start = self.entry(node, Key::Start).and_then(Value::whole).ok_or_else(missing("start"))?;
        let step = self.entry(node, Key::Step).and_then(Value::whole).ok_or_else(missing("step"))?;
        let end = match self.entry(node, Key::End) {
            None => None,
            Some(end) => Some(end.whole().ok_or_else(missing("end"))?),
        };
        let values = match self.entry(node, Key::Values) {
            Some(Value::Node(list)) => self.column(list),
            _ => None,
        }
        .ok_or_else(missing("values"))?;
        Answered::new(name, path_expression, (start, end, step), values)
    }

    /// The list as a column, converted once.
    fn column(&mut self, index: u32) -> Option<Arc<Vec<f64>>> {
        let node = self.nodes.get_mut(index as usize)?;
        let numbers = match node {
            Node::Column(column) => return Some(column.clone()),
            Node::Numbers(numbers) => mem::take(numbers),
            Node::Items(items) if items.is_empty() => Vec::new(),
            Node::Items(_) | Node::Record(_) => return None,
        };
        let column = Arc::new(numbers);
        *node = Node::Column(column.clone());
        Some(column)
    }

    fn found(&mut self, node: u32) -> Result<FoundNode, CodecError> {
        let missing = |what| move || CodecError::garbled(format!("a found node has no proper `{what}`"));
        let path = self.entry(node, Key::Path).and_then(|v| self.text(v)).ok_or_else(missing("path"))?;
        let leaf = match self.entry(node, Key::Leaf) {
            Some(Value::Bool(leaf)) => leaf,
            Some(Value::Int(leaf)) => leaf != 0,
            _ => return Err(missing("is_leaf")()),
        };
        let interval = if leaf { self.interval(node) } else { None };
        Ok(FoundNode { path: path.as_ref().to_owned(), leaf, interval })
    }

    /// First and last second of the intervals of a node: a list of pairs or of objects, itself possibly an object.
    fn interval(&self, node: u32) -> Option<(i64, i64)> {
        let node_of = |value: Option<Value>| if let Some(Value::Node(node)) = value { Some(node) } else { None };
        let list = node_of(self.entry(node, Key::Intervals))?;
        let list = node_of(self.entry(list, Key::Intervals)).unwrap_or(list);
        let Node::Items(items) = self.nodes.get(list as usize)? else {
            return None;
        };
        items.iter().try_fold(None, |all, item| {
            let pair = node_of(Some(*item))?;
            let (first, last) = match self.nodes.get(pair as usize)? {
                Node::Numbers(numbers) => match numbers.as_slice() {
                    [first, last] => (second(*first)?, second(*last)?),
                    _ => return None,
                },
                Node::Record(_) => {
                    let end = |key| self.entry(pair, key).and_then(Value::number).and_then(second);
                    (end(Key::Start)?, end(Key::End)?)
                }
                _ => return None,
            };
            Some(Some(joined(all, (first, last))))
        })?
    }
}

/// A `LONG`: little-endian two's complement of any length.
fn long(bytes: &[u8]) -> Value {
    let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
    if bytes.len() <= 8 {
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        return Value::Int(i64::from_le_bytes(wide));
    }
    // The magnitude of a negative number is that of its complement, plus one: the one is lost on so long a number,
    // except where it carries through to the top, which the sticky bit below does not need.
    let byte = |index: usize| if negative { !bytes[index] } else { bytes[index] };
    let Some(top) = (0..bytes.len()).rev().find(|i| byte(*i) != 0) else {
        return Value::Int(if negative { -1 } else { 0 });
    };
    let low = top.saturating_sub(7);
    let leading = (low..=top).rev().fold(0_u64, |acc, i| acc << 8 | u64::from(byte(i)));
    // A digit anywhere below decides how a tie is rounded.
    let sticky = u64::from((0..low).any(|i| byte(i) != 0));
    let exponent = i32::try_from(low * 8).unwrap_or(i32::MAX);
    let magnitude = (leading | sticky) as f64 * 2_f64.powi(exponent);
    Value::Float(if negative { -magnitude } else { magnitude })
}

/// Decimal digits; beyond 64 bits as the nearest float.
fn integer(digits: &[u8]) -> Result<Value, CodecError> {
    let digits = digits.trim_ascii();
    match std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()) {
        Some(integer) => Ok(Value::Int(integer)),
        None if digits.iter().all(|d| d.is_ascii_digit() || *d == b'-') => number(digits).map(Value::Float),
        None => Err(CodecError::garbled("it is not a pickle: a number is expected")),
    }
}

fn number(text: &[u8]) -> Result<f64, CodecError> {
    std::str::from_utf8(text.trim_ascii())
        .ok()
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| CodecError::garbled("it is not a pickle: a number is expected"))
}

/// The bytes of a Python 2 `repr` of a string.
fn unescape_bytes(line: &[u8]) -> Result<Vec<u8>, CodecError> {
    let line = line.trim_ascii();
    let ([b'\'', quoted @ .., b'\''] | [b'"', quoted @ .., b'"']) = line else {
        return Err(CodecError::garbled("it is not a pickle: a quoted string is expected"));
    };
    let mut out = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((escape, after)) = rest.split_first() else {
            out.push(b'\\');
            break;
        };
        rest = after;
        match escape {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'v' => out.push(11),
            b'f' => out.push(12),
            b'\\' | b'\'' | b'"' => out.push(*escape),
            b'x' => match hex(rest, 2) {
                Some(code) => {
                    out.push(code as u8);
                    rest = &rest[2..];
                }
                None => out.extend_from_slice(b"\\x"),
            },
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let octal = rest[..more].iter().fold(u32::from(escape - b'0'), |n, d| n * 8 + u32::from(d - b'0'));
                out.push(octal as u8);
                rest = &rest[more..];
            }
            other => out.extend_from_slice(&[b'\\', *other]),
        }
    }
    Ok(out)
}

/// The UTF-8 of Python's `raw-unicode-escape`: `\uXXXX`, `\UXXXXXXXX`, and Latin-1 for all else.
fn unescape_unicode(line: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(line.len());
    let mut high: Option<u32> = None;
    let mut rest = line;
    while let Some((byte, after)) = rest.split_first() {
        let digits = match (byte, after.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        let code = (digits > 0).then(|| hex(&after[1..], digits)).flatten();
        rest = match code {
            Some(_) => &after[1 + digits..],
            None => after,
        };
        let code = code.unwrap_or(u32::from(*byte));
        // Old Pythons write characters beyond 16 bits as two surrogates.
        let surrogate = high.take();
        if let (Some(first), 0xdc00..=0xdfff) = (surrogate, code) {
            let both = 0x1_0000 + ((first - 0xd800) << 10) + (code - 0xdc00);
            out.push(char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER));
            continue;
        }
        if surrogate.is_some() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        match code {
            0xd800..=0xdbff => high = Some(code),
            _ => out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
    if high.is_some() {
        out.push(char::REPLACEMENT_CHARACTER);
    }
    out.into_bytes()
}

fn hex(text: &[u8], digits: usize) -> Option<u32> {
    let text = text.get(..digits)?;
    text.iter().try_fold(0_u32, |n, b| Some(n.wrapping_mul(16) + char::from(*b).to_digit(16)?))
}
