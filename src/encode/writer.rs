//! JSON text as Python's `json` module writes it: `, ` and `: ` between, two spaces of indentation when pretty, other
//! alphabets as `\uXXXX`, floats as `repr` has them.

use serde_json::Value;

use crate::series::float_repr;

/// Which characters of a string are written as escapes, beside those that JSON demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// All that are not ASCII.
    NonAscii,
    /// None: the text is UTF-8.
    Nothing,
}

/// The text of a JSON document.
#[must_use]
pub fn document(value: &Value, pretty: bool, escape: Escape) -> Vec<u8> {
    let mut writer = Writer { escape, ..Writer::new(pretty) };
    writer.value(value);
    writer.finish()
}

/// Writes one document from start to end. The caller opens and closes in pairs and calls [`Writer::item`] before each
/// element of an array.
pub(super) struct Writer {
    out: Vec<u8>,
    pretty: bool,
    escape: Escape,
    depth: usize,
    /// Whether the innermost open array or object has no element yet.
    empty: bool,
    times: Times,
}

impl Writer {
    pub(super) fn new(pretty: bool) -> Self {
        Self { out: Vec::new(), pretty, escape: Escape::NonAscii, depth: 0, empty: true, times: Times::default() }
    }

    /// Goes on within an array that another writer opened and put an element into.
    pub(super) fn within_array(pretty: bool) -> Self {
        Self { depth: 1, empty: false, ..Self::new(pretty) }
    }

    pub(super) fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.out
    }

    /// Begins an array (`[`) or an object (`{`).
    pub(super) fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.depth += 1;
        self.empty = true;
    }

    /// Ends it (`]`, `}`).
    pub(super) fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        if self.pretty && !self.empty {
            self.new_line();
        }
        self.out.push(bracket);
        self.empty = false;
    }

    /// Goes to the next element of an array.
    pub(super) fn item(&mut self) {
        if !self.empty {
            self.out.push(b',');
        }
        if self.pretty {
            self.new_line();
        } else if !self.empty {
            self.out.push(b' ');
        }
        self.empty = false;
    }

    /// Goes to the next member of an object and writes its key.
    pub(super) fn key(&mut self, key: &str) {
        self.item();
        self.string(key);
        self.raw(b": ");
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn new_line(&mut self) {
        self.out.push(b'\n');
        for _ in 0..self.depth {
            self.out.extend_from_slice(b"  ");
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        self.out.push(b'"');
        for c in text.chars() {
            match c {
                '"' => self.raw(b"\\\""),
                '\\' => self.raw(b"\\\\"),
                '\n' => self.raw(b"\\n"),
                '\r' => self.raw(b"\\r"),
                '\t' => self.raw(b"\\t"),
                '\u{8}' => self.raw(b"\\b"),
                '\u{c}' => self.raw(b"\\f"),
                ' '..='~' => self.out.push(c as u8),
                _ if self.escape == Escape::Nothing && c >= '\u{7f}' => {
                    self.raw(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.raw(format!("\\u{unit:04x}").as_bytes());
                    }
                }
            }
        }
        self.out.push(b'"');
    }

    pub(super) fn integer(&mut self, number: i64) {
        self.raw(itoa::Buffer::new().format(number).as_bytes());
    }

    /// A value; `null` for what JSON cannot say.
    pub(super) fn float(&mut self, value: f64) {
        write_float(&mut self.out, value);
    }

    /// Elements `[value, time]` of the open array, the first at `start`, each other `step` seconds later; those without
    /// a value only when `nulls`. Nearly all of an answer is written here.
    pub(super) fn points(&mut self, values: &[f64], start: i64, step: i64, nulls: bool) {
        if !self.pretty && self.times.cover(start, step, values.len()) {
            return self.quick_points(values, nulls);
        }
        let mut time = start;
        for &value in values {
            if nulls || value.is_finite() {
                self.item();
                self.open(b'[');
                self.item();
                self.float(value);
                self.item();
                self.integer(time);
                self.close(b']');
            }
            time = time.saturating_add(step);
        }
    }

    /// The same at `self.times`.
    fn quick_points(&mut self, values: &[f64], nulls: bool) {
        let mut any = false;
        let mut block = Block::default();
        for (&value, after) in values.iter().zip(&self.times.texts) {
            if !value.is_finite() && !nulls {
                continue;
            }
            if !any {
                any = true;
                block.put(if self.empty { b"[" } else { b", [" });
            }
            if value.is_finite() {
                put_repr(value, &mut block);
            } else {
                block.put(b"null");
            }
            block.put(after);
            if block.len > Block::FULL {
                block.move_to(&mut self.out);
            }
        }
        block.move_to(&mut self.out);
        if any {
            self.out.truncate(self.out.len() - Times::BETWEEN);
            self.empty = false;
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.raw(b"null"),
            Value::Bool(true) => self.raw(b"true"),
            Value::Bool(false) => self.raw(b"false"),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => self.float(float),
                None => self.raw(number.to_string().as_bytes()),
            },
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.open(b'[');
                for item in items {
                    self.item();
                    self.value(item);
                }
                self.close(b']');
            }
            Value::Object(members) => {
                self.open(b'{');
                for (key, value) in members {
                    self.key(key);
                    self.value(value);
                }
                self.close(b'}');
            }
        }
    }
}

/// The largest whole number that is written by way of an integer. Python changes to exponents at 1e16.
const WHOLE: f64 = 1e15;

/// A value as JSON; `null` for what JSON cannot say.
fn write_float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        write_repr(out, value);
    } else {
        out.extend_from_slice(b"null");
    }
}

/// A value as Python's `repr` has it (see [`float_repr`]), by faster ways for nearly all of them.
pub(super) fn write_repr(out: &mut Vec<u8>, value: f64) {
    put_repr(value, out);
}

/// What text is added to.
trait Text {
    fn put(&mut self, piece: &[u8]);

    /// Adds the first `len` bytes of a piece.
    fn put_first(&mut self, len: usize, piece: [u8; 16]);
}

impl Text for Vec<u8> {
    fn put(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }

    fn put_first(&mut self, len: usize, piece: [u8; 16]) {
        self.extend_from_slice(&piece[..len]);
    }
}

fn put_repr(value: f64, out: &mut impl Text) {
    let whole = value as i64;
    if whole as f64 == value && value.abs() < WHOLE && (whole != 0 || value.is_sign_positive()) {
        out.put(itoa::Buffer::new().format(whole).as_bytes());
        out.put(b".0");
    } else if let Some(number) = ten_thousandths(value) {
        if value < 0.0 {
            out.put(b"-");
        }
        put_ten_thousandths(number, out);
    } else if (1e-4..WHOLE).contains(&value.abs()) {
        // Where no exponent is needed, the shortest text is the same as Python's.
        out.put(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.put(float_repr(value).as_bytes());
    }
}

/// A value that has four places after the point at most, as most that people store: how many ten-thousandths it is, without
/// its sign.
fn ten_thousandths(value: f64) -> Option<u64> {
    let value = value.abs();
    // Texts of up to 15 digits are all different floats, so the one that means this value is the shortest that does.
    if !(1e-4..1e11).contains(&value) {
        return None;
    }
    let number = (value * 1e4 + 0.5) as u64;
    (number as f64 / 1e4 == value).then_some(number)
}

/// A number of ten-thousandths as a decimal, with the digits that it needs and at least one on each side of the point.
/// How many that is, is different from value to value, and a branch for each would be taken wrongly half of the time: so
/// there is none.
fn put_ten_thousandths(number: u64, out: &mut impl Text) {
    let (whole, fraction) = (number / 10_000, four_digits((number % 10_000) as u32));
    let mut piece = [0; 16];
    let mut len = 0;
    if whole < 10_000 {
        let digits = four_digits(whole as u32);
        let zeros = (digits | 1 << 24).trailing_zeros() / 8;
        piece[..4].copy_from_slice(&((digits | ZEROS) >> (8 * zeros)).to_le_bytes());
        len = 4 - zeros as usize;
    } else {
        out.put(itoa::Buffer::new().format(whole).as_bytes());
    }
    piece[len] = b'.';
    piece[len + 1..len + 5].copy_from_slice(&(fraction | ZEROS).to_le_bytes());
    let zeros = (fraction | 1).leading_zeros() / 8;
    out.put_first(len + 5 - zeros as usize, piece);
}

/// Four times the digit 0.
const ZEROS: u32 = u32::from_le_bytes(*b"0000");

/// The digits of a number below 10,000, the first one in the lowest byte.
fn four_digits(number: u32) -> u32 {
    // Multiplied and shifted instead of divided by 100 and 10, both pairs of digits at once.
    let hundreds = (number * 5243) >> 19;
    let pairs = hundreds | (number - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f;
    tens | (pairs - tens * 10) << 8
}

/// What comes after the values of points: the time, the end of the point and the beginning of the next. The series of an
/// answer mostly have the same times, which are then written once.
#[derive(Default)]
struct Times {
    start: i64,
    step: i64,
    /// `, 1700000000], [`
    texts: Vec<[u8; 16]>,
}

impl Times {
    /// Length of the beginning of the next point.
    const BETWEEN: usize = ", [".len();

    /// Prepares so many times; not if one has more or fewer than ten digits, as none has from 2001 to 2286.
    fn cover(&mut self, start: i64, step: i64, len: usize) -> bool {
        let last = (len as i64).checked_sub(1).and_then(|n| n.checked_mul(step)?.checked_add(start));
        if start < 1_000_000_000 || last.is_none_or(|last| last > 9_999_999_999) {
            return false;
        }
        if (self.start, self.step) != (start, step) {
            (self.start, self.step) = (start, step);
            self.texts.clear();
        }
        for n in self.texts.len()..len {
            let mut text = *b", 1700000000], [";
            let mut digits = itoa::Buffer::new();
            text[2..12].copy_from_slice(digits.format(start + n as i64 * step).as_bytes());
            self.texts.push(text);
        }
        true
    }
}

/// Text being put together from short pieces, moved on when there is much of it.
struct Block {
    bytes: [u8; Self::FULL + Self::ROOM],
    len: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self { bytes: [0; Self::FULL + Self::ROOM], len: 0 }
    }
}

impl Block {
    /// Bytes from which on it is to be moved on.
    const FULL: usize = 4096;
    /// More than a point has: its longest value has 24 bytes, what follows it 16.
    const ROOM: usize = 64;

    fn move_to(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..self.len]);
        self.len = 0;
    }
}

impl Text for Block {
    /// Adds a piece of 32 bytes at most. A copy of a fixed size is a few instructions, one of any size is a call: a piece
    /// is copied as two of a fixed size that overlap.
    fn put(&mut self, piece: &[u8]) {
        let len = piece.len();
        let room = &mut self.bytes[self.len..self.len + len];
        if let (Some(first), Some(last)) = (piece.first_chunk::<16>(), piece.last_chunk::<16>()) {
            room[..16].copy_from_slice(first);
            room[len - 16..].copy_from_slice(last);
        } else if let (Some(first), Some(last)) = (piece.first_chunk::<8>(), piece.last_chunk::<8>()) {
            room[..8].copy_from_slice(first);
            room[len - 8..].copy_from_slice(last);
        } else if let (Some(first), Some(last)) = (piece.first_chunk::<4>(), piece.last_chunk::<4>()) {
            room[..4].copy_from_slice(first);
            room[len - 4..].copy_from_slice(last);
        } else {
            room.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        }
        self.len += len;
    }

    fn put_first(&mut self, len: usize, piece: [u8; 16]) {
        self.bytes[self.len..self.len + 16].copy_from_slice(&piece);
        self.len += len;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn repr(value: f64) -> String {
        let mut out = Vec::new();
        write_repr(&mut out, value);
        let mut block = Block::default();
        put_repr(value, &mut block);
        assert_eq!(block.bytes[..block.len], out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn decimals_of_few_places_are_written_as_they_are_meant() {
        for (value, text) in [
            (0.5, "0.5"),
            (-0.25, "-0.25"),
            (99.9, "99.9"),
            (0.0103, "0.0103"),
            (10.01, "10.01"),
            (9999.9999, "9999.9999"),
            (10_000.000_1, "10000.0001"),
            (-20_000.5, "-20000.5"),
            (0.0001, "0.0001"),
            (-1234.0071, "-1234.0071"),
            (12_345_678_901.25, "12345678901.25"),
            (99_999_999_999.75, "99999999999.75"),
            (123_456_789_012.25, "123456789012.25"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.00005, "5e-05"),
            (0.12345, "0.12345"),
            (1.0 / 3.0, "0.3333333333333333"),
            (-0.0, "-0.0"),
        ] {
            assert_eq!(repr(value), text);
        }
        for number in 0..10_000 {
            let digits = four_digits(number).to_le_bytes().map(|digit| char::from(digit + b'0'));
            assert_eq!(String::from_iter(digits), format!("{number:04}"));
        }
        for number in (1..300_000_000_u32).step_by(1_999).filter(|n| n % 10_000 != 0) {
            let text = format!("{}.{:04}", number / 10_000, number % 10_000);
            assert_eq!(repr(f64::from(number) / 1e4), text.trim_end_matches('0'));
        }
    }

    fn text(value: &Value, pretty: bool, escape: Escape) -> String {
        String::from_utf8(document(value, pretty, escape)).expect("UTF-8")
    }

    /// Each pair was printed by CPython 3.11.
    #[test]
    fn floats_as_python_writes_them() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1430.0, "-1430.0"),
            (27.2, "27.2"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (5.392e-10, "5.392e-10"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e15, "1000000000000000.0"),
            (999_999_999_999_999.0, "999999999999999.0"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
            (f64::NEG_INFINITY, "null"),
        ] {
            let mut out = Vec::new();
            write_float(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }

    #[test]
    fn documents_as_python_writes_them() {
        let value = json!({"a": [], "b": {}, "c": [1, 2.0, null, true], "ü\u{7f}\u{1}\"\\\n/😀": "x"});
        assert_eq!(
            text(&value, false, Escape::NonAscii),
            r#"{"a": [], "b": {}, "c": [1, 2.0, null, true], "\u00fc\u007f\u0001\"\\\n/\ud83d\ude00": "x"}"#
        );
        assert_eq!(
            text(&json!([{"a": [1, {}], "b": []}]), true, Escape::NonAscii),
            "[\n  {\n    \"a\": [\n      1,\n      {}\n    ],\n    \"b\": []\n  }\n]"
        );
        assert_eq!(text(&json!("ü\u{7f}\u{1}😀"), false, Escape::Nothing), "\"ü\u{7f}\\u0001😀\"");
    }

    proptest::proptest! {
        #[test]
        fn every_text_and_number_reads_back(name in ".{0,12}", bits in proptest::prelude::any::<u64>()) {
            let number = f64::from_bits(bits);
            let value = if number.is_finite() { json!([name, number]) } else { json!([name]) };
            for escape in [Escape::NonAscii, Escape::Nothing] {
                let text = document(&value, bits % 2 == 0, escape);
                let read: Value = serde_json::from_slice(&text).expect("JSON");
                proptest::prop_assert_eq!(&read[0], &value[0]);
                // serde_json may read the last bit wrong; std does not.
                if let Some(number) = value[1].as_f64() {
                    let text = float_repr(number);
                    let mut ours = Vec::new();
                    write_float(&mut ours, number);
                    proptest::prop_assert_eq!(String::from_utf8_lossy(&ours), text);
                }
            }
        }
    }
}
