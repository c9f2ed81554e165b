//! One entry for all formats of data.

use super::{Callback, DataFormat, JsonOptions, TableTooLarge, csv, dygraph, json, json_parts, padded, raw, rickshaw};
use crate::backend::{carbonapi, msgpack, pickle};
use crate::clock::TimeZone;
use crate::series::{PathExpression, Selector, Series, TimeRange};

/// What the parameters of a request say about the form of its answer. Each format looks at its own.
#[derive(Clone, Copy, Debug)]
pub struct DataOptions<'a> {
    /// For JSON; `pretty` for Rickshaw too.
    pub json: JsonOptions,
    /// What a JSON answer is wrapped in.
    pub callback: Option<&'a Callback>,
    /// Whose clock CSV shows.
    pub zone: &'a TimeZone,
    /// What was asked for; carbonapi's version 3 repeats it.
    pub range: TimeRange,
}

/// The answer's body and its `Content-Type`.
///
/// # Errors
/// The form does not suit the series: see [`dygraph()`].
pub fn data(
    format: DataFormat,
    series: &[Series],
    options: DataOptions<'_>,
) -> Result<(Vec<u8>, &'static str), TableTooLarge> {
    let (parts, content_type) = data_parts(format, series, options)?;
    Ok((joined(parts), content_type))
}

/// The same, the body as parts that follow each other: what is large is not copied only to be in one piece.
///
/// # Errors
/// As of [`data`].
pub fn data_parts(
    format: DataFormat,
    series: &[Series],
    options: DataOptions<'_>,
) -> Result<(Vec<Vec<u8>>, &'static str), TableTooLarge> {
    let body = match format {
        DataFormat::Json if options.callback.is_none() => {
            return Ok((json_parts(series, options.json), format.content_type()));
        }
        DataFormat::Json => json(series, options.json),
        DataFormat::Csv => csv(series, options.zone),
        DataFormat::Raw => raw(series),
        DataFormat::Pickle => pickle::write_render(series),
        DataFormat::MsgPack => msgpack::write_render(series),
        DataFormat::Dygraph => dygraph(series)?,
        DataFormat::Rickshaw => rickshaw(series, options.json.pretty),
        DataFormat::CarbonApiV2 => carbonapi::v2::write_render(series),
        DataFormat::CarbonApiV3 => {
            let question =
                |s: &Series| Selector { pattern: PathExpression::new(&s.path_expression), range: options.range };
            let questions: Vec<Selector> = series.iter().map(question).collect();
            carbonapi::v3::write_render(questions.iter().zip(series))
        }
    };
    Ok(match options.callback {
        Some(callback) if format.is_json() => (vec![padded(Some(callback), body)], DataFormat::JSONP),
        _ => (vec![body], format.content_type()),
    })
}

/// Parts as one piece.
#[must_use]
pub fn joined(mut parts: Vec<Vec<u8>>) -> Vec<u8> {
    if parts.len() == 1 { parts.swap_remove(0) } else { parts.concat() }
}
