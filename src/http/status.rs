//! What this server is and how it is: version, health, the state of its backends.

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, web};
use serde_json::{Value, json};

use super::answer::{Json, bytes_of, not_cached, resource};
use super::{App, Params};

/// The version of graphite-web whose API this is; clients decide by it what they may ask.
const GRAPHITE_VERSION: &str = "1.2.0-dev";

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Adds the routes.
pub(super) fn routes(service: &mut web::ServiceConfig) {
    let get = [Method::GET, Method::HEAD];
    service
        .service(resource(&["/version"], &get, version))
        .service(resource(&["/lb_check"], &get, alive))
        .service(resource(&["/healthz"], &get, alive))
        .service(resource(&["/readyz"], &get, ready))
        .service(resource(&["/dashboard/find"], &[Method::GET, Method::HEAD, Method::POST], no_dashboards))
        .service(resource(&["/dashboard/load/{name}"], &get, no_dashboard));
}

/// `/version`: graphite-web's, with our own in a header.
async fn version() -> HttpResponse {
    let mut response =
        bytes_of(StatusCode::OK, "text/plain; charset=utf-8", format!("{GRAPHITE_VERSION}\n").into_bytes());
    let name = HeaderName::from_static("x-plumbago-version");
    response.headers_mut().insert(name, HeaderValue::from_static(VERSION));
    response
}

/// `/lb_check` and `/healthz`: the server answers.
async fn alive() -> HttpResponse {
    not_cached(bytes_of(StatusCode::OK, "text/plain; charset=utf-8", b"ok\n".to_vec()))
}

/// `/readyz`: how each backend is, as its last calls ended. It is answered with 200 also when backends fail: they would
/// not be asked again, and so never be seen to be well again, if nobody sent requests here for that.
async fn ready(app: web::Data<App>) -> HttpResponse {
    let mut groups: Vec<(&str, Vec<Value>, usize)> = Vec::new();
    for (group, backend, stats) in app.federation().backends() {
        let failed = stats.failed_in_a_row();
        let state = json!({
            "name": backend.id().as_str(), "ok": failed == 0, "failed_in_a_row": failed,
            "calls": stats.calls.get(), "failures": stats.failures.get(), "in_flight": stats.in_flight.get()
        });
        if groups.last().is_none_or(|(name, ..)| *name != group) {
            groups.push((group, Vec::new(), 0));
        }
        if let Some((_, backends, failing)) = groups.last_mut() {
            backends.push(state);
            *failing += usize::from(failed > 0);
        }
    }
    let all_well = groups.iter().all(|(.., failing)| *failing == 0);
    let groups: Vec<Value> = groups
        .into_iter()
        .map(|(name, backends, failing)| {
            let state = match failing {
                0 => "ok",
                n if n < backends.len() => "degraded",
                _ => "failing",
            };
            json!({"name": name, "state": state, "backends": backends})
        })
        .collect();
    let state = if all_well { "ok" } else { "degraded" };
    let form = Json::of_tags(&Params::default());
    not_cached(form.answer(&json!({"state": state, "version": VERSION, "groups": groups})))
}

/// `/dashboard/find`: there are no dashboards to be found, nor to be imported into Grafana.
async fn no_dashboards() -> HttpResponse {
    Json::of_tags(&Params::default()).answer(&json!({"dashboards": []}))
}

/// `/dashboard/load/NAME`; its errors come with 200.
async fn no_dashboard() -> HttpResponse {
    Json::of_tags(&Params::default()).answer(&json!({"error": "there are no dashboards here"}))
}
