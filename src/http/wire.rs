//! What frontends ask of a storage in carbonapi's protobuf: a carbonapi, or another Plumbago.
//!
//! Version 3 asks in a body, also of a GET; each pattern of a render has a range of its own, and all are fetched as one.
//! Functions stay with the frontend: here are patterns only.

use std::sync::Arc;

use actix_web::http::header::{ACCEPT, CONTENT_TYPE};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use futures::future::try_join_all;
use prost::Message;
use serde_json::{Value, json};

use super::answer::{Json, accepted, bytes_of, marked, not_cached, resource, scope};
use super::find::found;
use super::{App, Params, Problem};
use crate::backend::carbonapi::{self, v2, v3};
use crate::backend::{BackendError, FindQuery};
use crate::clock::Now;
use crate::encode::DataFormat;
use crate::fetch::{self, Answers};
use crate::render::RenderError;
use crate::series::{PathExpression, Selector, Series, TagQuery, TimeRange};
use crate::target::{self, Expr, ExprKind};

/// Adds the routes.
pub(super) fn routes(service: &mut web::ServiceConfig) {
    let read = [Method::GET, Method::HEAD, Method::POST];
    service
        .service(resource(&["/_internal/capabilities"], &read, capabilities))
        .service(resource(&["/metrics/list"], &read, list))
        .service(resource(&["/info"], &read, info));
}

/// What a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    V2,
    V3,
    Json,
}

impl Reads {
    fn of(http: &HttpRequest) -> Self {
        let params = Params::read(http.query_string(), b"");
        match params.get("format") {
            Some("carbonapi_v3_pb") => Self::V3,
            Some("carbonapi_v2_pb" | "protobuf" | "protobuf3") => Self::V2,
            _ if http.headers().get(ACCEPT).is_some_and(|accept| accept == v3::MEDIA_TYPE) => Self::V3,
            _ => Self::Json,
        }
    }
}

/// The message in a request of version 3: a body that is no form.
pub(super) fn message<'a>(http: &HttpRequest, body: &'a [u8]) -> Option<&'a [u8]> {
    let form = "application/x-www-form-urlencoded";
    let is_form = http.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(form.as_bytes()));
    (!body.is_empty() && !is_form && Reads::of(http) == Reads::V3).then_some(body)
}

fn decoded<M: Message + Default>(message: &[u8]) -> Result<M, Problem> {
    M::decode(message)
        .map_err(|error| Problem::bad_request(format!("the body is not the expected protobuf message: {error}")))
}

/// `/render` with a `MultiFetchRequest`.
pub(super) async fn render(http: &HttpRequest, message: &[u8], app: &App) -> Result<HttpResponse, Problem> {
    let request: v3::MultiFetchRequest = decoded(message)?;
    let limits = app.config().limits;
    if request.metrics.len() > limits.targets {
        let text =
            format!("the request has {} patterns; at most {} are accepted", request.metrics.len(), limits.targets);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    // What is asked of the backends, and what the client calls it.
    let (mut selectors, mut questions) = (Vec::new(), Vec::new());
    for metric in &request.metrics {
        let asked = if metric.name.is_empty() { &metric.path_expression } else { &metric.name };
        let called = if metric.path_expression.is_empty() { asked } else { &metric.path_expression };
        // One of no seconds has no points, and one from the end to the start is none.
        let Some(range) = TimeRange::new(metric.start_time, metric.stop_time) else { continue };
        selectors.push(Selector { pattern: pattern(asked)?, range });
        questions.push(Selector { pattern: PathExpression::new(called), range });
    }
    let fetched = app.federation().fetch(&selectors, &scope(http, app, Now::read()), limits.fetched).await;
    let outcomes = fetched.map_err(|limit| Problem::new(StatusCode::PAYLOAD_TOO_LARGE, limit.to_string()))?;
    let (mut answer, mut failures): (Vec<(Selector, Series)>, Vec<BackendError>) = (Vec::new(), Vec::new());
    for (question, outcome) in questions.into_iter().zip(outcomes) {
        let found = outcome.map_err(|error| Problem::from(Arc::unwrap_or_clone(error)))?;
        failures.extend(found.failures.iter().filter(|f| !failures.contains(f)).cloned().collect::<Vec<_>>());
        answer.extend(found.series.iter().map(|series| (question.clone(), series.clone())));
    }
    let ((), failures) = accepted(Answers { value: (), failures }, app)?;
    // Once as it was fetched, once as it is sent.
    let share = app.renderer().pool().share();
    share.take(2 * answer.iter().map(|(_, series)| fetch::bytes_of(series)).sum::<u64>()).map_err(RenderError::Busy)?;
    let bytes = web::block(move || v3::write_render(answer.iter().map(|(question, series)| (question, series)))).await;
    let bytes = bytes.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(marked(not_cached(bytes_of(StatusCode::OK, v3::MEDIA_TYPE, bytes)), &failures))
}

/// A pattern as backends are asked for it.
fn pattern(text: &str) -> Result<PathExpression, Problem> {
    if let Some(call) = TagQuery::respelt(text) {
        TagQuery::from_call(&call).map_err(|e| Problem::bad_request(e.to_string()))?;
        return Ok(PathExpression::new(&call));
    }
    // Passed on, it would be the backends that compute, each over its own series.
    if let Ok(Expr { kind: ExprKind::Call(call), .. }) = target::parse(text) {
        let text = format!("`{}` is a function; a MultiFetchRequest is for patterns and seriesByTag", call.name);
        return Err(Problem::bad_request(text));
    }
    Ok(PathExpression::new(text))
}

/// `/metrics/find` and `/metrics/expand` with a `MultiGlobRequest`.
pub(super) async fn find(http: &HttpRequest, message: &[u8], app: &App) -> Result<HttpResponse, Problem> {
    let request: v3::MultiGlobRequest = decoded(message)?;
    let limit = app.config().limits.targets;
    if request.metrics.len() > limit {
        let text = format!("the request has {} patterns; at most {limit} are accepted", request.metrics.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    let (from, until) = (request.start_time, request.stop_time);
    let range = if until > 0 { TimeRange::new(from, until) } else { None };
    let now = Now::read();
    let query = |pattern: &String| FindQuery { pattern: pattern.clone(), range, leaves_only: false };
    let answers = try_join_all(request.metrics.iter().map(|pattern| found(query(pattern), now, http, app))).await?;
    let mut failures: Vec<BackendError> = Vec::new();
    for failure in answers.iter().flat_map(|(_, failures)| failures) {
        if !failures.contains(failure) {
            failures.push(failure.clone());
        }
    }
    let found = request.metrics.iter().zip(&answers).map(|(query, (nodes, _))| (query.as_str(), nodes.as_slice()));
    Ok(marked(not_cached(bytes_of(StatusCode::OK, v3::MEDIA_TYPE, v3::write_find(found))), &failures))
}

/// `/_internal/capabilities`: by this a carbonapi chooses how it asks.
async fn capabilities(http: HttpRequest) -> HttpResponse {
    // The best first: it is what is chosen.
    let protocols = ["carbonapi_v3_pb", "carbonapi_v2_pb", "graphite-web-pickle", "graphite-web-pickle-1.1"];
    if Reads::of(&http) == Reads::Json {
        let known = json!({"supportedProtocols": protocols, "name": "plumbago", "likeSplittedRequests": false});
        return Json::of_tags(&Params::default()).answer(&known);
    }
    let known = v3::CapabilityResponse {
        supported_protocols: protocols.map(str::to_owned).to_vec(),
        name: "plumbago".to_owned(),
        ..v3::CapabilityResponse::default()
    };
    bytes_of(StatusCode::OK, v3::MEDIA_TYPE, known.encode_to_vec())
}

/// `/metrics/list`: the names of all series.
async fn list(http: HttpRequest, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    let (names, failures) = accepted(app.federation().index(&scope(&http, &app, Now::read())).await?, &app)?;
    let reads = Reads::of(&http);
    let bytes = web::block(move || match reads {
        Reads::Json => Json::of_tags(&Params::default()).bytes(&json!({"Metrics": names})),
        Reads::V2 | Reads::V3 => carbonapi::write_list(&names),
    });
    let bytes = bytes.await.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(marked(bytes_of(StatusCode::OK, reads.content_type(), bytes), &failures))
}

impl Reads {
    fn content_type(self) -> &'static str {
        match self {
            Self::V2 => DataFormat::CarbonApiV2.content_type(),
            Self::V3 => v3::MEDIA_TYPE,
            Self::Json => DataFormat::Json.content_type(),
        }
    }
}

/// How far back `/info` looks for points, in seconds, to learn the step of a series.
const RECENT: i64 = 3600;

/// `/info`: how series are stored, as far as can be seen from outside: since when there are points, and the step of the
/// newest ones.
async fn info(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    let names: Vec<String> = match message(&http, &body) {
        Some(message) => decoded::<v3::MultiMetricsInfoRequest>(message)?.names,
        None => Params::read(http.query_string(), &body).all("target").map(str::to_owned).collect(),
    };
    let limits = app.config().limits;
    if names.is_empty() || names.len() > limits.targets {
        return Err(Problem::bad_request(format!("parameter `target`: name 1 to {} series", limits.targets)));
    }
    let now = Now::read();
    let scope = scope(&http, &app, now);
    let range = TimeRange::new(now - RECENT, now).expect("an hour is not empty");
    let selectors: Vec<Selector> =
        names.iter().map(|name| Selector { pattern: PathExpression::new(name), range }).collect();
    let query = |name: &String| FindQuery { pattern: name.clone(), range: None, leaves_only: true };
    let searched = try_join_all(names.iter().map(|name| found(query(name), now, &http, &app))).await?;
    let fetched = app.federation().fetch(&selectors, &scope, limits.fetched).await;
    let outcomes = fetched.map_err(|limit| Problem::new(StatusCode::PAYLOAD_TOO_LARGE, limit.to_string()))?;

    let mut infos = Vec::new();
    for ((name, (nodes, _)), outcome) in names.iter().zip(&searched).zip(&outcomes) {
        let Some(node) = nodes.iter().find(|node| node.path == *name) else { continue };
        let newest = outcome.as_ref().ok().and_then(|found| found.series.iter().find(|s| *s.name == **name));
        let since = node.interval.map(|(first, _)| first).or_else(|| newest.map(Series::start));
        let max_retention = since.map_or(0, |since| now.saturating_sub(since).max(0));
        let seconds_per_point = newest.map(|series| series.step().seconds());
        let retention = |seconds_per_point| v3::Retention {
            seconds_per_point,
            number_of_points: (max_retention + seconds_per_point - 1) / seconds_per_point,
        };
        infos.push(v3::MetricsInfoResponse {
            name: name.clone(),
            consolidation_func: newest.map(|series| series.consolidation.name()).unwrap_or_default().to_owned(),
            max_retention,
            x_files_factor: 0.0,
            retentions: seconds_per_point.map(retention).into_iter().collect(),
        });
    }
    let Some(first) = infos.first() else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "there is no such series"));
    };
    let reads = Reads::of(&http);
    let bytes = match reads {
        Reads::V2 => narrowed(first).encode_to_vec(),
        Reads::V3 => v3::MultiMetricsInfoResponse { metrics: infos }.encode_to_vec(),
        Reads::Json => Json::of_tags(&Params::default())
            .bytes(&json!({"metrics": infos.iter().map(described).collect::<Vec<_>>()})),
    };
    Ok(bytes_of(StatusCode::OK, reads.content_type(), bytes))
}

fn narrowed(info: &v3::MetricsInfoResponse) -> v2::InfoResponse {
    let narrow = |seconds: i64| i32::try_from(seconds).unwrap_or(i32::MAX);
    v2::InfoResponse {
        name: info.name.clone(),
        aggregation_method: info.consolidation_func.clone(),
        max_retention: narrow(info.max_retention),
        x_files_factor: info.x_files_factor,
        retentions: info
            .retentions
            .iter()
            .map(|r| v2::Retention {
                seconds_per_point: narrow(r.seconds_per_point),
                number_of_points: narrow(r.number_of_points),
            })
            .collect(),
    }
}

fn described(info: &v3::MetricsInfoResponse) -> Value {
    let retention =
        |r: &v3::Retention| json!({"secondsPerPoint": r.seconds_per_point, "numberOfPoints": r.number_of_points});
    json!({
        "name": info.name, "consolidationFunc": info.consolidation_func, "maxRetention": info.max_retention,
        "xFilesFactor": info.x_files_factor, "retentions": info.retentions.iter().map(retention).collect::<Vec<_>>()
    })
}
