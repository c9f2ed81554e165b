//! `/render`.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};

use super::{App, Params, Problem};
use crate::clock::{Now, TimeBounds, TimeZone};
use crate::encode::{self, Callback, DataFormat, DataOptions, Format, JsonOptions};
use crate::functions::Request;
use crate::render::{RenderRequest, Rendered};

/// Says that backends failed and something may be missing: their number and what they said.
pub(super) const PARTIAL: HeaderName = HeaderName::from_static("x-plumbago-partial");

/// `/render`, GET and POST.
pub(super) async fn render(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    let params = Params::read(http.query_string(), &body);
    let format = format(&params);
    let callback =
        params.get("jsonp").map(Callback::new).transpose().map_err(|e| Problem::bad_request(e.to_string()))?;
    let Format::Data(format) = format else {
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "pictures are not made yet; ask for format=json"));
    };
    let zone = zone(&params, &app);
    let request = request(&params, &app, zone.clone())?;
    let range = request.request.range;
    let Rendered { series, failures, .. } = app.renderer().render(request).await?;
    let json = JsonOptions {
        max_data_points: params.get("maxDataPoints").and_then(encode::max_data_points),
        no_null_points: params.has("noNullPoints"),
        pretty: params.get("pretty").is_some_and(|p| !p.is_empty()),
    };
    let encoded = web::block(move || {
        let options = DataOptions { json, zone: &zone, callback: callback.as_ref(), range };
        encode::data(format, &series, options)
    });
    let (bytes, content_type) =
        encoded.await.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    let mut response = HttpResponse::Ok().body(bytes);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if !failures.is_empty() {
        headers.insert(PARTIAL, partial(&failures));
    }
    Ok(response)
}

/// The text of [`PARTIAL`]: printable ASCII, bounded.
pub(super) fn partial<E: ToString>(failures: &[E]) -> HeaderValue {
    let said: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let text = format!("{} failed: {}", failures.len(), said.join("; "));
    let clean: String =
        text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(1000).collect();
    HeaderValue::from_str(&clean).unwrap_or(HeaderValue::from_static("backends failed"))
}

fn format(params: &Params) -> Format {
    match params.get("format") {
        Some(name) => Format::from_parameter(name).unwrap_or(Format::Image(encode::ImageFormat::Png)),
        None if params.has("rawData") => Format::Data(DataFormat::Raw),
        None if params.has("pickle") => Format::Data(DataFormat::Pickle),
        None => Format::Image(encode::ImageFormat::Png),
    }
}

/// The zone of the request; one that does not exist is ignored, as graphite-web does.
fn zone(params: &Params, app: &App) -> TimeZone {
    params.get("tz").and_then(TimeZone::named).unwrap_or_else(|| app.config().time_zone.clone())
}

fn request(params: &Params, app: &App, time_zone: TimeZone) -> Result<RenderRequest, Problem> {
    let bounds =
        TimeBounds::resolve(params.get("from"), params.get("until"), params.get("now"), &time_zone, Now::read())
            .map_err(|e| Problem::bad_request(e.to_string()))?;
    let x_files_factor = match params.get("xFilesFactor") {
        None => app.config().x_files_factor,
        Some(text) => text
            .trim()
            .parse()
            .map_err(|_| Problem::bad_request(format!("xFilesFactor: `{text}` is not a number from 0 to 1")))?,
    };
    Ok(RenderRequest {
        targets: params.all("target").filter(|t| !t.trim().is_empty()).map(str::to_owned).collect(),
        overrides: params.keyed("template").map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        request: Request {
            range: bounds.range(),
            now: bounds.now(),
            time_zone,
            server_time_zone: app.config().time_zone.clone(),
            x_files_factor,
            seed: bounds.now().unsigned_abs(),
        },
        scope: app.scope(bounds.now(), Arc::from("-"), Arc::from([])),
        strict: app.config().strict,
    })
}
