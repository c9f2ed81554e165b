//! What can be wrong with a time. Each error is one line that names the words it is about.

/// A time or interval that cannot be read; shown to users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// A word that stands for no time.
    #[error(
        "unknown time `{0}`; use seconds since the epoch, an offset such as `-1h`, or `midnight`, `noon_yesterday`, \
         `monday`, `january_5`, `20240131`, `10:30_20240131`"
    )]
    UnknownReference(String),
    /// A number without a unit.
    #[error("`{0}` needs a unit after its number: s, min, h, d, w, mon or y")]
    MissingUnit(String),
    /// A unit that does not exist.
    #[error("`{unit}` in `{text}` is not a unit; units are s, min, h, d, w, mon and y")]
    UnknownUnit {
        /// The whole offset.
        text: String,
        /// The unit.
        unit: String,
    },
    /// `m`, which could be minutes or months.
    #[error("`{unit}` in `{text}` could be minutes or months; write `min` or `mon`")]
    AmbiguousUnit {
        /// The whole offset.
        text: String,
        /// The unit.
        unit: String,
    },
    /// An offset in which a number should stand but does not.
    #[error("`{0}` needs a whole number before each unit, as in `-1h` or `1d12h`")]
    MissingNumber(String),
    /// An interval that begins with neither a digit nor a sign.
    #[error("`{0}` is not an interval such as `5min`, `-1h` or `1d12h`")]
    NotAnInterval(String),
    /// A time of day that no clock shows.
    #[error("`{0}` is not a time of day; hours go from 0 to 23, minutes from 0 to 59")]
    BadTimeOfDay(String),
    /// A date that no calendar has.
    #[error("`{0}` is not a date")]
    BadDate(String),
    /// A month without its day.
    #[error("`{0}` needs a day of the month, as in `january_5`")]
    MissingDay(String),
    /// Before the year 1 or after the year 9999, or an interval longer than that.
    #[error("`{0}` is out of range")]
    OutOfRange(String),
    /// `from` and `until` are the same second.
    #[error("`from` and `until` are the same time ({0}), so the time range is empty")]
    EmptyRange(i64),
    /// One of the request's parameters cannot be read.
    #[error("parameter `{name}`: {error}")]
    Parameter {
        /// `from`, `until` or `now`.
        name: &'static str,
        /// What is wrong with it.
        error: Box<TimeError>,
    },
}

impl TimeError {
    /// This error, as one of a request's parameter.
    #[must_use]
    pub fn of_parameter(self, name: &'static str) -> Self {
        Self::Parameter { name, error: Box::new(self) }
    }
}
