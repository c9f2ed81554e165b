//! What the endpoints beside `/render` share: resources and their methods, parameters, JSON and its headers.

use actix_web::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, PRAGMA};
use actix_web::http::{Method, StatusCode};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, ResponseError, web};
use serde_json::{Value, json};

use super::render::{PARTIAL, context, partial};
use super::{App, Params, Problem};
use crate::backend::{BackendError, Scope};
use crate::encode::{self, Callback, DataFormat, Escape};
use crate::fetch::{Answers, listed};

/// A resource that one handler serves at these paths, with and without a slash at the end; for other methods 405.
#[expect(clippy::needless_pass_by_value, reason = "a handler is a function")]
pub(super) fn resource<F, Args>(paths: &[&str], methods: &[Method], handler: F) -> Resource
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let both: Vec<String> = paths.iter().flat_map(|path| [(*path).to_owned(), format!("{path}/")]).collect();
    let resource = web::resource(both).default_service(web::to(method_not_allowed));
    methods.iter().fold(resource, |resource, method| resource.route(web::method(method.clone()).to(handler.clone())))
}

async fn method_not_allowed(http: HttpRequest) -> HttpResponse {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{} is not for this path", http.method())).error_response()
}

/// For paths where nothing is.
pub(super) async fn not_found() -> HttpResponse {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path").error_response()
}

/// What the backend calls of this request share.
pub(super) fn scope(http: &HttpRequest, app: &App, now: i64) -> Scope {
    context(http, app).scope(app, now)
}

/// How a JSON answer is written: what the parameters and headers of its request say about that.
#[derive(Clone, Debug)]
pub(super) struct Json {
    callback: Option<Callback>,
    pretty: bool,
    escape: Escape,
    sorted: bool,
}

impl Json {
    /// As the endpoints below `/metrics` have it: other alphabets are escaped unless the client says that it takes more
    /// than plain `application/json`, and `jsonp` is heard.
    ///
    /// # Errors
    /// `jsonp` is no name.
    pub(super) fn of_metrics(http: &HttpRequest, params: &Params) -> Result<Self, Problem> {
        let plain = http.headers().get(ACCEPT).is_none_or(|accept| accept == "application/json");
        let escape = if plain { Escape::NonAscii } else { Escape::Nothing };
        Ok(Self { callback: callback(params)?, pretty: pretty(params), escape, sorted: false })
    }

    /// As `/tags` and `/functions` have it: ASCII, never padded; members are sorted when they are shown indented.
    pub(super) fn of_tags(params: &Params) -> Self {
        let pretty = pretty(params);
        Self { callback: None, pretty, escape: Escape::NonAscii, sorted: pretty }
    }

    /// As `/events` have it: ASCII, and `jsonp` is heard.
    ///
    /// # Errors
    /// `jsonp` is no name.
    pub(super) fn of_events(params: &Params) -> Result<Self, Problem> {
        Ok(Self { callback: callback(params)?, pretty: pretty(params), escape: Escape::NonAscii, sorted: false })
    }

    /// The bytes of a document.
    pub(super) fn bytes(&self, value: &Value) -> Vec<u8> {
        let sorted = self.sorted.then(|| sorted(value));
        let text = encode::document(sorted.as_ref().unwrap_or(value), self.pretty, self.escape);
        encode::padded(self.callback.as_ref(), text)
    }

    /// An answer of these bytes.
    pub(super) fn answer_bytes(&self, status: StatusCode, bytes: Vec<u8>) -> HttpResponse {
        let content_type = match (&self.callback, self.escape) {
            (None, Escape::NonAscii) => "application/json",
            (None, Escape::Nothing) => "application/json;charset=utf-8",
            (Some(_), Escape::NonAscii) => DataFormat::JSONP,
            (Some(_), Escape::Nothing) => "text/javascript;charset=utf-8",
        };
        bytes_of(status, content_type, bytes)
    }

    /// An answer of a document.
    pub(super) fn answer(&self, value: &Value) -> HttpResponse {
        self.answer_bytes(StatusCode::OK, self.bytes(value))
    }

    /// An error as the tag and function endpoints have it: `{"error": …}`.
    pub(super) fn error(&self, problem: &Problem) -> HttpResponse {
        self.answer_bytes(problem.status(), self.bytes(&json!({"error": problem.to_string()})))
    }
}

/// An answer of these bytes.
pub(super) fn bytes_of(status: StatusCode, content_type: &'static str, bytes: Vec<u8>) -> HttpResponse {
    let mut response = HttpResponse::build(status).body(bytes);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The answer, marked as one that proxies and browsers do not keep.
pub(super) fn not_cached(mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// The answer, marked as partial when backends failed.
pub(super) fn marked(mut response: HttpResponse, failures: &[BackendError]) -> HttpResponse {
    if !failures.is_empty() {
        response.headers_mut().insert(PARTIAL, partial(failures));
    }
    response
}

/// What the backends answered, and which of them failed.
///
/// # Errors
/// Some failed, and the configuration does not want answers without them.
pub(super) fn accepted<T>(answers: Answers<T>, app: &App) -> Result<(T, Vec<BackendError>), Problem> {
    let Answers { value, failures } = answers;
    if app.config().strict && !failures.is_empty() {
        let text = format!("{} backends failed: {}", failures.len(), listed(&failures));
        return Err(Problem::new(StatusCode::BAD_GATEWAY, text));
    }
    Ok((value, failures))
}

/// A parameter that is a whole number.
///
/// # Errors
/// It is none.
pub(super) fn integer(params: &Params, name: &str) -> Result<Option<i64>, Problem> {
    let Some(text) = params.get(name) else { return Ok(None) };
    let number = text.trim().parse().map_err(|_| {
        let short: String = text.chars().take(100).collect();
        Problem::bad_request(format!("parameter `{name}`: `{short}` is not a whole number"))
    })?;
    Ok(Some(number))
}

/// A parameter that is a whole number and means yes when it is not 0.
///
/// # Errors
/// It is no whole number.
pub(super) fn flag(params: &Params, name: &str) -> Result<bool, Problem> {
    Ok(integer(params, name)?.is_some_and(|number| number != 0))
}

/// The name to call, if one is asked for.
///
/// # Errors
/// It is none that a script can call.
fn callback(params: &Params) -> Result<Option<Callback>, Problem> {
    let name = params.get("jsonp").filter(|name| !name.is_empty());
    name.map(Callback::new).transpose().map_err(|e| Problem::bad_request(e.to_string()))
}

fn pretty(params: &Params) -> bool {
    params.get("pretty").is_some_and(|value| !value.is_empty())
}

/// The same document with the members of all objects sorted.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            Value::Object(members.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}
