//! What goes around every route: request id, log line, compression, CORS.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_cors::Cors;
use actix_web::body::{self, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, ResponseError as _, web};
use tokio::time::Instant;

use super::context::{Context, REQUEST_ID};
use super::metrics::Endpoint;
use super::{App, Problem};
use crate::encode::compression::{WORTHWHILE, compressed};
use crate::fetch::Entered;

/// How much longer than its time a request may take: for saying what ran out of time, and for making an answer of what
/// came before a backend did.
const GRACE: Duration = Duration::from_secs(5);

/// When a request is given up that may take this time.
pub(super) fn patience(request_timeout: Duration) -> Duration {
    request_timeout.saturating_add(GRACE)
}

/// The middleware around all routes: puts what is known of the client (id, address, headers to pass on) into the
/// request, and around the answer its id, compression and a line in the log.
///
/// # Errors
/// What the route answers as an error.
pub async fn outer<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(app) = request.app_data::<web::Data<App>>().cloned() else {
        return next.call(request).await.map(ServiceResponse::map_into_boxed_body);
    };
    let context = Arc::new(Context::of(request.request(), &app));
    request.extensions_mut().insert(context.clone());
    let (method, path) = (request.method().clone(), request.path().to_owned());
    let accept = request.headers().get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let endpoint = Endpoint::of(&path, request.query_string().is_empty() && method != Method::POST);
    let line = Line::begun(&app, endpoint, &context, method.as_str(), path);
    // What is done for an answer has its deadline; this is for what is not, such as a body that trickles in.
    let patience = patience(app.config().request_timeout);
    let Ok(called) = tokio::time::timeout(patience, next.call(request)).await else {
        line.end(504, 0);
        return Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, "the request ran out of time").into());
    };
    let mut response = match called {
        Ok(response) => explained(response, &app),
        Err(error) => {
            line.end(error.as_response_error().status_code().as_u16(), 0);
            return Err(error);
        }
    };
    let compressing = app.config().http.compress;
    if compressing && is_text(&response) {
        // Also on what is compressed already and on what stays plain: caches in between must not mix them up.
        response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    let mut response = match accept.filter(|_| compressing) {
        Some(accept) => compress(response, accept).await?,
        None => response.map_into_boxed_body(),
    };
    if let Ok(id) = HeaderValue::from_str(&context.id) {
        response.headers_mut().insert(HeaderName::from_static(REQUEST_ID), id);
    }
    let bytes = match response.response().body().size() {
        body::BodySize::Sized(n) => n,
        _ => 0,
    };
    line.end(response.status().as_u16(), bytes);
    Ok(response)
}

/// The same, with what is allowed when a body is longer than that.
fn explained<B: MessageBody + 'static>(response: ServiceResponse<B>, app: &App) -> ServiceResponse<BoxBody> {
    let error = response.response().error().and_then(Error::as_error);
    if !matches!(error, Some(PayloadError::Overflow)) {
        return response.map_into_boxed_body();
    }
    let text = format!("the body of the request takes more than {} bytes (limits.body)", app.config().limits.body);
    let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text);
    response.into_response(problem.error_response())
}

/// The line in the log that each request has, and its place in the counts; also one whose client hung up before it was
/// answered.
struct Line {
    id: Arc<str>,
    client: Option<IpAddr>,
    method: String,
    path: String,
    started: Instant,
    ended: bool,
    app: web::Data<App>,
    endpoint: Endpoint,
    _going_on: Entered,
}

impl Line {
    fn begun(app: &web::Data<App>, endpoint: Endpoint, context: &Context, method: &str, path: String) -> Self {
        let (id, client) = (context.id.clone(), context.client);
        let (method, started, going_on) = (method.to_owned(), Instant::now(), app.http_stats().begun(endpoint));
        Self { id, client, method, path, started, ended: false, app: app.clone(), endpoint, _going_on: going_on }
    }

    fn end(mut self, status: u16, bytes: u64) {
        self.app.http_stats().ended(self.endpoint, Some(status), self.started.elapsed());
        self.write(status, bytes);
        self.ended = true;
    }

    fn write(&self, status: u16, bytes: u64) {
        let client = self.client.map(|ip| ip.to_string());
        tracing::info!(
            target: "plumbago::access",
            id = %self.id, client = client.as_deref().unwrap_or("-"), method = %self.method, path = self.path,
            status, bytes, ms = self.started.elapsed().as_millis(),
        );
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.ended {
            self.app.http_stats().ended(self.endpoint, None, self.started.elapsed());
            // As nginx has it: the client closed the request.
            self.write(499, 0);
        }
    }
}

/// Compresses a body that is worth it, off the event loop. A body that is compressed already stays.
async fn compress<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
    accept: String,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if response.headers().contains_key(header::CONTENT_ENCODING) || !is_text(&response) {
        return Ok(response.map_into_boxed_body());
    }
    let (request, response) = response.into_parts();
    let (head, body) = response.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => return Ok(ServiceResponse::new(request, head.set_body(body)).map_into_boxed_body()),
    };
    let mut head = head;
    if bytes.len() < WORTHWHILE {
        return Ok(ServiceResponse::new(request, head.set_body(bytes)).map_into_boxed_body());
    }
    let (bytes, coding) = web::block(move || match compressed(&bytes, &accept) {
        Some((coding, smaller)) => (web::Bytes::from(smaller), Some(coding)),
        None => (bytes, None),
    })
    .await?;
    if let Some(coding) = coding {
        head.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    Ok(ServiceResponse::new(request, head.set_body(bytes)).map_into_boxed_body())
}

fn is_text<B>(response: &ServiceResponse<B>) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    !content_type.starts_with("image/png")
}

/// Cross-origin calls, for the configured origins only.
pub(super) fn cors(app: &App) -> Cors {
    let origins = &app.config().http.cors_origins;
    let cors = Cors::default()
        .allowed_methods(["GET", "POST", "HEAD"])
        .allow_any_header()
        .expose_headers([REQUEST_ID, "x-plumbago-partial"])
        .max_age(3600)
        .block_on_origin_mismatch(false);
    if origins.iter().any(|o| o == "*") {
        return cors.allow_any_origin().send_wildcard();
    }
    origins.iter().fold(cors.supports_credentials(), |cors, origin| cors.allowed_origin(origin))
}
