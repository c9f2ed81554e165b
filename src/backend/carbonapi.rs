//! The protobuf messages of carbonapi and go-carbon (`carbonapi_v2_pb`, `carbonapi_v3_pb`), for both ends of the wire.
//!
//! The structs are written by hand and hold the fields that are used; others are skipped when read. Names in
//! answers are bytes, because stores do not make sure that they are UTF-8. Answers are read message by message, so
//! that many tiny messages do not take much more memory than they have bytes.

use std::sync::Arc;

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field};

use super::FoundNode;
use super::wire::{Answered, CodecError, Limits, text};

/// `carbonapi_v2_pb`: one range for a request, absent points in a list of their own.
pub mod v2 {
    use super::{
        Answered, Arc, CodecError, FoundNode, Limits, Message, garbled, messages, text, write_messages, write_pieces,
    };
    use crate::series::Series;

    /// One series of an answer.
    #[derive(Clone, PartialEq, Message)]
    pub struct FetchResponse {
        /// Its name, usually UTF-8.
        #[prost(bytes = "vec", tag = "1")]
        pub name: Vec<u8>,
        /// Timestamp of the first point, in seconds.
        #[prost(int32, tag = "2")]
        pub start_time: i32,
        /// The end, exclusive, in seconds.
        #[prost(int32, tag = "3")]
        pub stop_time: i32,
        /// Distance of two points, in seconds.
        #[prost(int32, tag = "4")]
        pub step_time: i32,
        /// The points; 0 where absent.
        #[prost(double, repeated, tag = "5")]
        pub values: Vec<f64>,
        /// Which points are absent.
        #[prost(bool, repeated, tag = "6")]
        pub is_absent: Vec<bool>,
    }

    /// A node that was found; the same in both versions.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct GlobMatch {
        /// The full path, usually UTF-8.
        #[prost(bytes = "vec", tag = "1")]
        pub path: Vec<u8>,
        /// Whether it is a series.
        #[prost(bool, tag = "2")]
        pub is_leaf: bool,
    }

    /// How long points are kept.
    #[derive(Clone, Copy, PartialEq, Eq, Message)]
    pub struct Retention {
        /// Distance of two points.
        #[prost(int32, tag = "1")]
        pub seconds_per_point: i32,
        /// How many there are.
        #[prost(int32, tag = "2")]
        pub number_of_points: i32,
    }

    /// How a series is stored.
    #[derive(Clone, PartialEq, Message)]
    pub struct InfoResponse {
        /// Its name.
        #[prost(string, tag = "1")]
        pub name: String,
        /// How points are joined in coarser archives.
        #[prost(string, tag = "2")]
        pub aggregation_method: String,
        /// Age of the oldest point, in seconds.
        #[prost(int32, tag = "3")]
        pub max_retention: i32,
        /// The least share of known points.
        #[prost(float, tag = "4")]
        pub x_files_factor: f32,
        /// The archives, finest first.
        #[prost(message, repeated, tag = "5")]
        pub retentions: Vec<Retention>,
    }

    /// Reads a `MultiFetchResponse`.
    ///
    /// # Errors
    /// Truncated input, another format, impossible series; more than `limits` allow.
    pub fn read_render(body: &[u8], limits: &Limits) -> Result<Vec<Answered>, CodecError> {
        let (mut answer, mut points) = (Vec::new(), 0_usize);
        for message in messages(body, 1) {
            let series = FetchResponse::decode(message?).map_err(garbled)?;
            limits.check_entries(answer.len() + 1)?;
            points = points.saturating_add(series.values.len());
            if points > limits.points {
                return Err(limits.too_many_points());
            }
            let mut values = series.values;
            if !series.is_absent.is_empty() {
                if series.is_absent.len() != values.len() {
                    return Err(CodecError::garbled("a series has not as many marks of absence as points"));
                }
                for (value, absent) in values.iter_mut().zip(&series.is_absent) {
                    if *absent {
                        *value = f64::NAN;
                    }
                }
            }
            let times = (series.start_time.into(), Some(series.stop_time.into()), series.step_time.into());
            answer.push(Answered::new(text(&series.name), None, times, Arc::new(values))?);
        }
        Ok(answer)
    }

    /// Writes a `MultiFetchResponse`.
    #[must_use]
    pub fn write_render(series: &[Series]) -> Vec<u8> {
        let narrow = |seconds: i64| i32::try_from(seconds).unwrap_or(i32::MAX);
        write_messages(
            1,
            series.iter().map(|s| FetchResponse {
                name: s.name.as_bytes().to_vec(),
                start_time: narrow(s.start()),
                stop_time: narrow(s.end()),
                step_time: narrow(s.step().seconds()),
                values: s.values().iter().map(|v| if v.is_nan() { 0.0 } else { *v }).collect(),
                is_absent: s.values().iter().map(|v| v.is_nan()).collect(),
            }),
        )
    }

    /// Reads a `GlobResponse`.
    ///
    /// # Errors
    /// As [`read_render`].
    pub fn read_find(body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError> {
        let mut nodes = Vec::new();
        read_matches(body, limits, &mut nodes)?;
        Ok(nodes)
    }

    pub(super) fn read_matches(body: &[u8], limits: &Limits, nodes: &mut Vec<FoundNode>) -> Result<(), CodecError> {
        for message in messages(body, 2) {
            let found = GlobMatch::decode(message?).map_err(garbled)?;
            limits.check_entries(nodes.len() + 1)?;
            if found.path.is_empty() {
                return Err(CodecError::garbled("a found node has no path"));
            }
            let path = text(&found.path).as_ref().to_owned();
            nodes.push(FoundNode { path, leaf: found.is_leaf, interval: None });
        }
        Ok(())
    }

    /// Writes a `GlobResponse`: what was found for `query`.
    #[must_use]
    pub fn write_find(query: &str, nodes: &[FoundNode]) -> Vec<u8> {
        let mut body = write_pieces(1, [query.as_bytes()]);
        body.extend(write_messages(
            2,
            nodes.iter().map(|n| GlobMatch { path: n.path.as_bytes().to_vec(), is_leaf: n.leaf }),
        ));
        body
    }
}

/// `carbonapi_v3_pb`: a range for each metric of a request, several questions at once, absent points as NaN.
pub mod v3 {
    use super::{
        Answered, Arc, CodecError, FoundNode, Limits, Message, garbled, messages, text, v2, write_messages,
        write_pieces,
    };
    use crate::series::{Consolidation, Selector, Series};

    pub use super::v2::GlobMatch;

    /// The media type of all bodies.
    pub const MEDIA_TYPE: &str = "application/x-carbonapi-v3-pb";

    /// What is asked for one pattern.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct FetchRequest {
        /// The pattern.
        #[prost(string, tag = "1")]
        pub name: String,
        /// From, exclusive, in seconds.
        #[prost(int64, tag = "2")]
        pub start_time: i64,
        /// Until, inclusive, in seconds.
        #[prost(int64, tag = "3")]
        pub stop_time: i64,
        /// The pattern again, to be echoed.
        #[prost(string, tag = "5")]
        pub path_expression: String,
        /// How many points are wanted at most; 0 is any number.
        #[prost(int64, tag = "7")]
        pub max_data_points: i64,
    }

    /// What is asked altogether.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct MultiFetchRequest {
        /// Each pattern with its range.
        #[prost(message, repeated, tag = "1")]
        pub metrics: Vec<FetchRequest>,
    }

    /// One series of an answer.
    #[derive(Clone, PartialEq, Message)]
    pub struct FetchResponse {
        /// Its name, usually UTF-8.
        #[prost(bytes = "vec", tag = "1")]
        pub name: Vec<u8>,
        /// The pattern that it answers, as it was asked.
        #[prost(bytes = "vec", tag = "2")]
        pub path_expression: Vec<u8>,
        /// How the store joins its points.
        #[prost(string, tag = "3")]
        pub consolidation_func: String,
        /// Timestamp of the first point, in seconds.
        #[prost(int64, tag = "4")]
        pub start_time: i64,
        /// The end, exclusive, in seconds.
        #[prost(int64, tag = "5")]
        pub stop_time: i64,
        /// Distance of two points, in seconds.
        #[prost(int64, tag = "6")]
        pub step_time: i64,
        /// The least share of known points.
        #[prost(float, tag = "7")]
        pub x_files_factor: f32,
        /// The points; NaN where absent.
        #[prost(double, repeated, tag = "9")]
        pub values: Vec<f64>,
        /// `start_time` of the request.
        #[prost(int64, tag = "11")]
        pub request_start_time: i64,
        /// `stop_time` of the request.
        #[prost(int64, tag = "12")]
        pub request_stop_time: i64,
    }

    /// Patterns that are to be found.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct MultiGlobRequest {
        /// The patterns.
        #[prost(string, repeated, tag = "1")]
        pub metrics: Vec<String>,
        /// From, in seconds; 0 is not said.
        #[prost(int64, tag = "2")]
        pub start_time: i64,
        /// Until, in seconds; 0 is not said.
        #[prost(int64, tag = "3")]
        pub stop_time: i64,
    }

    /// Names of series of which the storage is asked.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct MultiMetricsInfoRequest {
        /// The names.
        #[prost(string, repeated, tag = "1")]
        pub names: Vec<String>,
    }

    /// How long points are kept.
    #[derive(Clone, Copy, PartialEq, Eq, Message)]
    pub struct Retention {
        /// Distance of two points.
        #[prost(int64, tag = "1")]
        pub seconds_per_point: i64,
        /// How many there are.
        #[prost(int64, tag = "2")]
        pub number_of_points: i64,
    }

    /// How a series is stored.
    #[derive(Clone, PartialEq, Message)]
    pub struct MetricsInfoResponse {
        /// Its name.
        #[prost(string, tag = "1")]
        pub name: String,
        /// How points are joined in coarser archives.
        #[prost(string, tag = "2")]
        pub consolidation_func: String,
        /// Age of the oldest point, in seconds.
        #[prost(int64, tag = "3")]
        pub max_retention: i64,
        /// The least share of known points.
        #[prost(float, tag = "4")]
        pub x_files_factor: f32,
        /// The archives, finest first.
        #[prost(message, repeated, tag = "5")]
        pub retentions: Vec<Retention>,
    }

    /// How several series are stored.
    #[derive(Clone, PartialEq, Message)]
    pub struct MultiMetricsInfoResponse {
        /// One for each name that exists.
        #[prost(message, repeated, tag = "1")]
        pub metrics: Vec<MetricsInfoResponse>,
    }

    /// What a server can do.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct CapabilityResponse {
        /// Names of protocols.
        #[prost(string, repeated, tag = "1")]
        pub supported_protocols: Vec<String>,
        /// Name of the server.
        #[prost(string, tag = "2")]
        pub name: String,
        /// Timestamps finer than a second.
        #[prost(bool, tag = "3")]
        pub high_precision_timestamps: bool,
        /// Functions that filter can be passed down.
        #[prost(bool, tag = "4")]
        pub support_filtering_functions: bool,
        /// Many small requests do as well as a large one.
        #[prost(bool, tag = "5")]
        pub like_splitted_requests: bool,
        /// Answers can be streamed.
        #[prost(bool, tag = "6")]
        pub support_streaming: bool,
    }

    /// The request for these selectors.
    #[must_use]
    pub fn request<'a>(selectors: impl IntoIterator<Item = &'a Selector>) -> MultiFetchRequest {
        let metrics = selectors
            .into_iter()
            .map(|s| FetchRequest {
                name: s.pattern.as_str().to_owned(),
                start_time: s.range.from(),
                stop_time: s.range.until(),
                path_expression: s.pattern.as_str().to_owned(),
                max_data_points: 0,
            })
            .collect();
        MultiFetchRequest { metrics }
    }

    /// Reads a `MultiFetchResponse`.
    ///
    /// # Errors
    /// Truncated input, another format, impossible series; more than `limits` allow.
    pub fn read_render(body: &[u8], limits: &Limits) -> Result<Vec<Answered>, CodecError> {
        let (mut answer, mut points) = (Vec::new(), 0_usize);
        for message in messages(body, 1) {
            let series = FetchResponse::decode(message?).map_err(garbled)?;
            limits.check_entries(answer.len() + 1)?;
            points = points.saturating_add(series.values.len());
            if points > limits.points {
                return Err(limits.too_many_points());
            }
            let path_expression = (!series.path_expression.is_empty()).then(|| text(&series.path_expression));
            // The end is no concern: some servers send that of the request.
            let times = (series.start_time, None, series.step_time);
            let mut answered = Answered::new(text(&series.name), path_expression, times, Arc::new(series.values))?;
            if series.request_stop_time != 0 {
                answered.asked = Some((series.request_start_time, series.request_stop_time));
            }
            // A go-carbon says how its file joins points: counters are summed. It begins the name with a capital.
            let declared = Consolidation::by_name(&series.consolidation_func.to_ascii_lowercase());
            answered.consolidation = declared.unwrap_or_default();
            answer.push(answered);
        }
        Ok(answer)
    }

    /// Writes a `MultiFetchResponse`: each series with the question that it answers.
    #[must_use]
    pub fn write_render<'a>(series: impl IntoIterator<Item = (&'a Selector, &'a Series)>) -> Vec<u8> {
        write_messages(
            1,
            series.into_iter().map(|(selector, s)| FetchResponse {
                name: s.name.as_bytes().to_vec(),
                path_expression: selector.pattern.as_str().as_bytes().to_vec(),
                consolidation_func: s.consolidation.name().to_owned(),
                start_time: s.start(),
                stop_time: s.end(),
                step_time: s.step().seconds(),
                x_files_factor: s.x_files_factor as f32,
                values: s.values().to_vec(),
                request_start_time: selector.range.from(),
                request_stop_time: selector.range.until(),
            }),
        )
    }

    /// Reads a `MultiGlobResponse`; the answers to all its patterns are united.
    ///
    /// # Errors
    /// As [`read_render`].
    pub fn read_find(body: &[u8], limits: &Limits) -> Result<Vec<FoundNode>, CodecError> {
        let mut nodes = Vec::new();
        for message in messages(body, 1) {
            v2::read_matches(message?, limits, &mut nodes)?;
        }
        Ok(nodes)
    }

    /// Writes a `MultiGlobResponse`: each pattern with what was found for it.
    #[must_use]
    pub fn write_find<'a>(found: impl IntoIterator<Item = (&'a str, &'a [FoundNode])>) -> Vec<u8> {
        let answers: Vec<Vec<u8>> = found.into_iter().map(|(query, nodes)| v2::write_find(query, nodes)).collect();
        write_pieces(1, answers.iter().map(Vec::as_slice))
    }
}

/// Reads a `ListMetricsResponse`, the same in both versions.
///
/// # Errors
/// Truncated input, another format; more than `limits` allow.
pub fn read_list(body: &[u8], limits: &Limits) -> Result<Vec<String>, CodecError> {
    let mut names = Vec::new();
    for name in messages(body, 1) {
        let name = name?;
        limits.check_entries(names.len() + 1)?;
        if !name.is_empty() {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}

/// Writes a `ListMetricsResponse`, the same in both versions.
#[must_use]
pub fn write_list<T: AsRef<str>>(names: &[T]) -> Vec<u8> {
    write_pieces(1, names.iter().map(|n| n.as_ref().as_bytes()))
}

/// Reads a whole message: a request, where this server is asked.
///
/// # Errors
/// Truncated input, another format.
pub fn read<M: Message + Default>(body: &[u8]) -> Result<M, CodecError> {
    M::decode(body).map_err(garbled)
}

/// Writes a whole message.
#[must_use]
pub fn write<M: Message>(message: &M) -> Vec<u8> {
    message.encode_to_vec()
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn garbled(error: prost::DecodeError) -> CodecError {
    let text = error.to_string();
    let reason = text.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&text);
    CodecError::garbled(format!("it is not the expected protobuf message: {reason}"))
}

/// The bytes of each field `tag` of a message; other fields are skipped.
fn messages(body: &[u8], tag: u32) -> impl Iterator<Item = Result<&[u8], CodecError>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        while rest.has_remaining() {
            let piece = next_field(&mut rest, tag);
            match piece {
                Ok(None) => {}
                Ok(Some(piece)) => return Some(Ok(piece)),
                Err(error) => {
                    rest = &[];
                    return Some(Err(error));
                }
            }
        }
        None
    })
}

fn next_field<'a>(rest: &mut &'a [u8], tag: u32) -> Result<Option<&'a [u8]>, CodecError> {
    let (field, wire_type) = decode_key(rest).map_err(garbled)?;
    if field != tag {
        skip_field(wire_type, field, rest, DecodeContext::default()).map_err(garbled)?;
        return Ok(None);
    }
    if wire_type != WireType::LengthDelimited {
        return Err(CodecError::garbled("it is not the expected protobuf message"));
    }
    let length = decode_varint(rest).map_err(garbled)?;
    let piece = usize::try_from(length)
        .ok()
        .and_then(|n| rest.split_at_checked(n))
        .ok_or_else(|| CodecError::garbled("it ends too early"))?;
    *rest = piece.1;
    Ok(Some(piece.0))
}

/// A field `tag` for each message.
fn write_messages<M: Message>(tag: u32, all: impl Iterator<Item = M>) -> Vec<u8> {
    let mut body = Vec::new();
    for message in all {
        encode_key(tag, WireType::LengthDelimited, &mut body);
        encode_varint(message.encoded_len() as u64, &mut body);
        message.encode_raw(&mut body);
    }
    body
}

fn write_pieces<'a>(tag: u32, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    for piece in pieces {
        encode_key(tag, WireType::LengthDelimited, &mut body);
        encode_varint(piece.len() as u64, &mut body);
        body.extend_from_slice(piece);
    }
    body
}
