//! Graphite's tag requests, which all protocols share: JSON, whatever the format of renders.

use form_urlencoded::Serializer;
use serde::Deserialize;

use super::TagLimits;
use super::protocol::WireRequest;
use super::wire::{CodecError, Limits};

/// All tags: answered by [`read_tags`].
pub(super) fn list(limits: &TagLimits) -> WireRequest {
    let mut parameters = local();
    filtered(&mut parameters, limits);
    WireRequest::new("/tags", parameters.finish())
}

/// The values of a tag: answered by [`read_values`].
pub(super) fn values(tag: &str, limits: &TagLimits) -> WireRequest {
    let mut parameters = local();
    filtered(&mut parameters, limits);
    let segment = percent_encoding::utf8_percent_encode(tag, percent_encoding::NON_ALPHANUMERIC).to_string();
    WireRequest { segment: Some(segment), ..WireRequest::new("/tags/", parameters.finish()) }
}

/// Series that satisfy expressions: answered by [`read_names`].
pub(super) fn find_series(expressions: &[String]) -> WireRequest {
    let mut parameters = local();
    expressed(&mut parameters, expressions);
    WireRequest::new("/tags/findSeries", parameters.finish())
}

/// Completion of tag names: answered by [`read_names`].
pub(super) fn complete_tags(expressions: &[String], limits: &TagLimits) -> WireRequest {
    let mut parameters = local();
    expressed(&mut parameters, expressions);
    narrowed(&mut parameters, "tagPrefix", limits);
    WireRequest::new("/tags/autoComplete/tags", parameters.finish())
}

/// Completion of tag values: answered by [`read_names`].
pub(super) fn complete_values(expressions: &[String], tag: &str, limits: &TagLimits) -> WireRequest {
    let mut parameters = local();
    parameters.append_pair("tag", tag);
    expressed(&mut parameters, expressions);
    narrowed(&mut parameters, "valuePrefix", limits);
    WireRequest::new("/tags/autoComplete/values", parameters.finish())
}

fn local() -> Serializer<'static, String> {
    Serializer::new("local=1".to_owned())
}

fn expressed(parameters: &mut Serializer<'static, String>, expressions: &[String]) {
    for expression in expressions {
        parameters.append_pair("expr", expression);
    }
}

fn filtered(parameters: &mut Serializer<'static, String>, limits: &TagLimits) {
    if let Some(filter) = &limits.filter {
        parameters.append_pair("filter", filter);
    }
    limited(parameters, limits);
}

fn narrowed(parameters: &mut Serializer<'static, String>, prefix: &str, limits: &TagLimits) {
    if let Some(text) = &limits.prefix {
        parameters.append_pair(prefix, text);
    }
    limited(parameters, limits);
}

fn limited(parameters: &mut Serializer<'static, String>, limits: &TagLimits) {
    if let Some(limit) = limits.limit {
        parameters.append_pair("limit", &limit.to_string());
    }
}

#[derive(Deserialize)]
struct Tag {
    tag: String,
}

#[derive(Deserialize)]
struct TagValues {
    values: Vec<TagValue>,
}

#[derive(Deserialize)]
struct TagValue {
    value: String,
    // Some stores leave it out.
    #[serde(default)]
    count: u64,
}

/// Reads a list of text, of which `null` is an empty one.
pub(super) fn read_names(body: &[u8], limits: &Limits) -> Result<Vec<String>, CodecError> {
    let names: Vec<String> = json::<Option<_>>(body)?.unwrap_or_default();
    limits.check_entries(names.len())?;
    Ok(names)
}

pub(super) fn read_tags(body: &[u8], limits: &Limits) -> Result<Vec<String>, CodecError> {
    let tags: Vec<Tag> = json::<Option<_>>(body)?.unwrap_or_default();
    limits.check_entries(tags.len())?;
    Ok(tags.into_iter().map(|t| t.tag).collect())
}

/// Reads the values of a tag with their numbers of series; `None` when there is no such tag.
pub(super) fn read_values(body: &[u8], limits: &Limits) -> Result<Option<Vec<(String, u64)>>, CodecError> {
    let Some(tag) = json::<Option<TagValues>>(body)? else {
        return Ok(None);
    };
    limits.check_entries(tag.values.len())?;
    Ok(Some(tag.values.into_iter().map(|v| (v.value, v.count)).collect()))
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, CodecError> {
    serde_json::from_slice(body).map_err(|error| CodecError::garbled(format!("it is not the expected JSON: {error}")))
}
