//! `/functions…`: what can stand in a target, for editors such as Grafana's.

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};

use super::answer::{Json, bytes_of, resource};
use super::{Params, Problem};
use crate::functions::reference::{self, Listing};

/// Adds the routes.
pub(super) fn routes(service: &mut web::ServiceConfig) {
    let get = [Method::GET, Method::HEAD];
    service.service(resource(&["/functions"], &get, list)).service(resource(&["/functions/{name}"], &get, one));
}

fn listing(params: &Params) -> Listing {
    let yes = |value: &str| value == "1" || value.eq_ignore_ascii_case("true");
    Listing {
        grouped: params.get("grouped").is_some_and(yes),
        group: params.get("group").map(str::to_owned),
        pie: params.get("type") == Some("pie"),
        pretty: params.get("pretty").is_some_and(|value| !value.is_empty()),
    }
}

fn json(text: String) -> HttpResponse {
    bytes_of(StatusCode::OK, "application/json", text.into_bytes())
}

/// `/functions`.
async fn list(http: HttpRequest) -> HttpResponse {
    json(reference::json(&listing(&Params::read(http.query_string(), b""))))
}

/// `/functions/NAME`.
async fn one(name: web::Path<String>, http: HttpRequest) -> HttpResponse {
    let params = Params::read(http.query_string(), b"");
    let none = || {
        let short: String = name.chars().take(100).collect();
        Json::of_tags(&params).error(&Problem::new(StatusCode::NOT_FOUND, format!("Function not found: {short}")))
    };
    reference::json_of(&name, &listing(&params)).map_or_else(none, json)
}
