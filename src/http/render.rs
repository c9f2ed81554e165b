//! `/render`.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, EXPIRES, HeaderName, HeaderValue};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};

use super::body::Parts;
use super::context::Context;
use super::picture::Picture;
use super::{App, Params, Problem, wire};
use crate::backend::{BackendError, transport};
use crate::cache::{CachedResponse, ResponseKey};
use crate::clock::{Now, TimeBounds, TimeZone};
use crate::encode::compression::compressed;
use crate::encode::{self, Callback, DataFormat, DataOptions, Format, ImageFormat, JsonOptions};
use crate::fetch::listed;
use crate::functions::Request;
use crate::render::{RenderError, RenderRequest, Rendered};

/// Says that backends failed and something may be missing: their number and what they said.
pub(super) const PARTIAL: HeaderName = HeaderName::from_static(transport::PARTIAL);

/// What a point takes in an answer, about: `[1234.5,1700000000],`.
const BYTES_OF_A_POINT: u64 = 20;

/// What the parameters ask for, read and checked.
struct Question {
    targets: Vec<String>,
    overrides: Vec<(String, String)>,
    form: Form,
    callback: Option<Callback>,
    zone: TimeZone,
    bounds: TimeBounds,
    x_files_factor: f64,
    max_data_points: Option<NonZeroU64>,
    no_null_points: bool,
    pretty: bool,
    /// Zero: neither looked up in the response cache nor kept there.
    cache_for: Duration,
}

/// The form of the answer.
enum Form {
    Data(DataFormat),
    Picture(Box<Picture>),
}

/// `/render`, GET and POST.
pub(super) async fn render(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    if let Some(message) = wire::message(&http, &body) {
        return wire::render(&http, message, &app).await;
    }
    let params = Params::sent(&http, &body)?;
    let context = context(&http, &app);
    let clock = Now::read();
    let question = Question::read(&params, &app, clock)?;
    let accept = app.config().http.compress.then(|| accepted(&http)).flatten();
    let key = key(&params, &context, accept.as_deref());
    if !question.cache_for.is_zero()
        && let Some(kept) = app.responses().get(&key, clock)
    {
        return Ok(answer(&kept, Parts::new(kept.parts.clone()), question.cache_for, &[]));
    }
    let cache_for = question.cache_for;
    let rendered = app.renderer().render(question.request(&app, &context)).await?;
    let failures = rendered.failures.clone();
    question.refuse_long(&rendered, app.config().limits.fetched.points)?;
    let share = rendered.share.clone();
    let encoded = web::block(move || question.answer(&rendered, accept.as_deref()));
    let response = encoded.await.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))??;
    let response = Arc::new(response);
    if failures.is_empty() && !cache_for.is_zero() {
        app.responses().insert(key, response.clone(), clock, cache_for);
    }
    let body = Parts::new(response.parts.clone()).holding(share);
    Ok(answer(&response, body, if failures.is_empty() { cache_for } else { Duration::ZERO }, &failures))
}

fn answer(response: &CachedResponse, body: Parts, cache_for: Duration, failures: &[BackendError]) -> HttpResponse {
    let mut http = HttpResponse::Ok().body(body);
    let headers = http.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(&response.content_type) {
        headers.insert(CONTENT_TYPE, content_type);
    }
    if let Some(encoding) = response.encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    if cache_for.is_zero() {
        let never = HeaderValue::from_static("max-age=0, no-cache, no-store, must-revalidate, private");
        headers.insert(CACHE_CONTROL, never);
        headers.insert(EXPIRES, HeaderValue::from_static("0"));
    } else if let Ok(value) = HeaderValue::from_str(&format!("max-age={}", cache_for.as_secs())) {
        headers.insert(CACHE_CONTROL, value);
    }
    if !failures.is_empty() {
        headers.insert(PARTIAL, partial(failures));
    }
    http
}

/// The text of [`PARTIAL`]: printable ASCII, bounded.
pub(super) fn partial(failures: &[BackendError]) -> HeaderValue {
    let text = format!("{} failed: {}", failures.len(), listed(failures));
    let clean: String =
        text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(1000).collect();
    HeaderValue::from_str(&clean).unwrap_or(HeaderValue::from_static("backends failed"))
}

/// The context that the outer layer made.
pub(super) fn context(http: &HttpRequest, app: &App) -> Arc<Context> {
    let made = http.extensions().get::<Arc<Context>>().cloned();
    made.unwrap_or_else(|| Arc::new(Context::of(http, app)))
}

fn accepted(http: &HttpRequest) -> Option<String> {
    let value = http.headers().get(actix_web::http::header::ACCEPT_ENCODING)?;
    value.to_str().ok().map(str::to_owned)
}

/// All that the bytes of an answer depend on. Parameters stand as they were sent: a relative time means another range
/// each second, but an answer may be as old as its time to live.
fn key(params: &Params, context: &Context, accept: Option<&str>) -> ResponseKey {
    let mut key = ResponseKey::of("render").field("accept-encoding", accept.unwrap_or_default());
    let params = || params.iter().filter(|(name, _)| !matches!(*name, "_" | "_salt" | "_uniq" | "uniq"));
    // By their number no parameter can pass for a header, which may say whose data is asked for.
    key = key.number("parameters", params().count() as i64);
    for (name, value) in params() {
        key = key.field(name, value);
    }
    for (name, value) in context.passed.iter() {
        key = key.field(name, value);
    }
    key.build()
}

impl Question {
    fn read(params: &Params, app: &App, clock: i64) -> Result<Self, Problem> {
        let bad = |error: &dyn std::fmt::Display| Problem::bad_request(error.to_string());
        if let Some(kind) = params.get("graphType").filter(|k| !matches!(*k, "line" | "pie")) {
            return Err(bad(&format!("graphType: `{kind}` is neither line nor pie")));
        }
        let mut targets = targets(params);
        let form = match format(params) {
            Format::Data(format) => Form::Data(format),
            Format::Image(format) => Form::Picture(Box::new(Picture::read(params, format, &mut targets)?)),
        };
        let zone = zone(params, app);
        let bounds = TimeBounds::resolve(params.get("from"), params.get("until"), params.get("now"), &zone, clock)
            .map_err(|e| bad(&e))?;
        let x_files_factor = match params.get("xFilesFactor") {
            None => app.config().x_files_factor,
            Some(text) => {
                let number = text.trim().parse().ok().filter(|x: &f64| !x.is_nan());
                number.ok_or_else(|| bad(&format!("xFilesFactor: `{text}` is not a number from 0 to 1")))?
            }
        };
        Ok(Self {
            targets,
            overrides: params.keyed("template").map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            form,
            callback: params.get("jsonp").map(Callback::new).transpose().map_err(|e| bad(&e))?,
            cache_for: cache_for(params, app, bounds)?,
            zone,
            bounds,
            x_files_factor,
            max_data_points: params.get("maxDataPoints").and_then(encode::max_data_points),
            no_null_points: params.has("noNullPoints"),
            pretty: params.get("pretty").is_some_and(|p| !p.is_empty()),
        })
    }

    fn json(&self) -> JsonOptions {
        JsonOptions { max_data_points: self.max_data_points, no_null_points: self.no_null_points, pretty: self.pretty }
    }

    /// An answer is refused when there is no memory for it, or when it has more points than may be fetched: as text they
    /// take twenty times the memory, and nobody looks at so many.
    fn refuse_long(&self, rendered: &Rendered, limit: u64) -> Result<(), Problem> {
        let most = match self.form {
            Form::Data(DataFormat::Json) => self.max_data_points.map_or(u64::MAX, NonZeroU64::get),
            _ => u64::MAX,
        };
        let points: u64 = rendered.series.iter().map(|s| (s.len() as u64).min(most)).sum();
        if points <= limit {
            // As long as the answer is made it takes memory beside what it is made of.
            let bytes = if matches!(self.form, Form::Data(_)) { points.saturating_mul(BYTES_OF_A_POINT) } else { 0 };
            return rendered.share.take(bytes).map_err(|empty| RenderError::Busy(empty).into());
        }
        let text = format!(
            "the answer would have {points} points, more than {limit}; ask for fewer series, or for less points of each (maxDataPoints)"
        );
        Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text))
    }

    /// The body, compressed when it is worth it. Work for the processor, not for an event loop.
    fn answer(&self, rendered: &Rendered, accept: Option<&str>) -> Result<CachedResponse, Problem> {
        let (parts, content_type) = match &self.form {
            Form::Data(format) => {
                let range = self.bounds.range();
                let options =
                    DataOptions { json: self.json(), zone: &self.zone, callback: self.callback.as_ref(), range };
                encode::data_parts(*format, &rendered.series, options)
                    .map_err(|e| Problem::new(StatusCode::PAYLOAD_TOO_LARGE, e.to_string()))?
            }
            Form::Picture(picture) => {
                let body = picture.draw(rendered, &self.zone)?;
                match (&self.callback, picture.format) {
                    (Some(callback), ImageFormat::Svg) => {
                        let text = serde_json::Value::String(String::from_utf8_lossy(&body).into_owned());
                        (vec![encode::padded(Some(callback), text.to_string().into_bytes())], DataFormat::JSONP)
                    }
                    (_, format) => (vec![body], format.content_type()),
                }
            }
        };
        // What is compressed already does not get smaller.
        let packed = matches!(&self.form, Form::Picture(p) if p.format != ImageFormat::Svg);
        let (parts, encoding) = match accept.filter(|_| !packed) {
            None => (parts, None),
            Some(accept) => {
                let body = encode::joined(parts);
                match compressed(&body, accept) {
                    Some((coding, smaller)) => (vec![smaller], Some(coding.name())),
                    None => (vec![body], None),
                }
            }
        };
        let parts = parts.into_iter().map(web::Bytes::from).collect();
        Ok(CachedResponse { parts, content_type: content_type.into(), encoding })
    }

    fn request(&self, app: &App, context: &Context) -> RenderRequest {
        RenderRequest {
            targets: self.targets.clone(),
            overrides: self.overrides.clone(),
            request: Request {
                range: self.bounds.range(),
                now: self.bounds.now(),
                time_zone: self.zone.clone(),
                server_time_zone: app.config().time_zone.clone(),
                x_files_factor: self.x_files_factor,
                seed: self.bounds.now().unsigned_abs(),
            },
            scope: context.scope(app, self.bounds.now()),
            strict: app.config().strict,
        }
    }
}

/// `target`, or `target[]` when there is none of the former; empty ones are left out.
fn targets(params: &Params) -> Vec<String> {
    let named = |name: &str| -> Vec<String> {
        let values = params.iter().filter(|(k, _)| *k == name).map(|(_, v)| v);
        values.filter(|v| !v.trim().is_empty()).map(str::to_owned).collect()
    };
    if params.has("target") { named("target") } else { named("target[]") }
}

fn format(params: &Params) -> Format {
    let named = params.get("format").map(Format::from_parameter);
    // A pie is only ever a picture.
    if params.get("graphType") == Some("pie") {
        return named.flatten().filter(|f| matches!(f, Format::Image(_))).unwrap_or(Format::Image(ImageFormat::Png));
    }
    match named {
        Some(format) => format.unwrap_or(Format::Image(ImageFormat::Png)),
        None if params.has("rawData") => Format::Data(DataFormat::Raw),
        None if params.has("pickle") => Format::Data(DataFormat::Pickle),
        None => Format::Image(ImageFormat::Png),
    }
}

/// The zone of the request; one that does not exist is ignored, as graphite-web does.
fn zone(params: &Params, app: &App) -> TimeZone {
    params.get("tz").and_then(TimeZone::named).unwrap_or_else(|| app.config().time_zone.clone())
}

/// How long the answer may be used: `cacheTimeout`, else the configured time, but never more than a sixtieth of a
/// range that moves with the clock, so that "the last five minutes" are never a minute old.
fn cache_for(params: &Params, app: &App, bounds: TimeBounds) -> Result<Duration, Problem> {
    let wanted = match params.get("cacheTimeout") {
        None => app.config().cache.response_ttl,
        Some(text) => {
            let seconds: i64 = text.trim().parse().map_err(|_| {
                Problem::bad_request(format!("cacheTimeout: `{text}` is not a whole number of seconds"))
            })?;
            Duration::from_secs(seconds.max(0).unsigned_abs())
        }
    };
    if params.has("noCache") {
        return Ok(Duration::ZERO);
    }
    let absolute = |name| params.get(name).is_some_and(|t| t.len() > 8 && t.bytes().all(|b| b.is_ascii_digit()));
    if params.has("now") || (absolute("from") && absolute("until")) {
        return Ok(wanted);
    }
    Ok(wanted.min(Duration::from_secs(bounds.range().seconds().unsigned_abs().div_ceil(60))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_not_a_header() {
        let of = |query: &str, passed: &[(&str, &str)]| {
            let passed = passed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            key(&Params::read(query, b""), &Context { id: "1".into(), client: None, passed }, None)
        };
        let tenant = of("target=a", &[("x-org-id", "2")]);
        assert_eq!(tenant, of("target=a&_salt=5", &[("x-org-id", "2")]));
        assert_ne!(tenant, of("target=a&x-org-id=2", &[]));
        assert_ne!(tenant, of("target=a", &[]));
    }
}
