//! Formats of answers: series in, bytes out; a file a format.
//!
//! Pure functions over finished series: nothing here fetches, computes or knows HTTP. Texts are those of graphite-web
//! to the byte, with one exception: a value that JSON cannot say (infinity, NaN) is `null` in every form of JSON.
//! Pictures are made elsewhere ([`Format::Image`]).

mod callback;
pub mod compression;
mod csv;
mod data;
mod dygraph;
mod format;
mod json;
mod max_data_points;
mod raw;
mod rickshaw;
mod writer;

pub use callback::{Callback, CallbackError};
pub use csv::csv;
pub use data::{DataOptions, data, data_parts, joined};
pub use dygraph::{TableTooLarge, dygraph};
pub use format::{DataFormat, Format, ImageFormat};
pub use json::{JsonOptions, json, json_parts};
pub use max_data_points::max_data_points;
pub use raw::raw;
pub use rickshaw::rickshaw;
pub use writer::{Escape, document};

/// Wraps a JSON text in a call, for pages that load it as a script: `callback(text)`.
#[must_use]
pub fn padded(callback: Option<&Callback>, json: Vec<u8>) -> Vec<u8> {
    match callback {
        None => json,
        Some(callback) => [callback.as_str().as_bytes(), b"(", &json, b")"].concat(),
    }
}
