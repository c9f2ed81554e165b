//! `/events…`: things that happened, for annotations.

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use super::answer::{Json, resource};
use super::{App, Params, Problem};
use crate::clock::{Now, TimeZone, parse_time};
use crate::store::{Event, EventQuery, EventStore, EventsError, NewEvent};

/// Adds the routes.
pub(super) fn routes(service: &mut web::ServiceConfig) {
    let get = [Method::GET, Method::HEAD];
    service
        .service(resource(&["/events"], &get, list).route(web::post().to(add)))
        .service(resource(&["/events/get_data"], &[Method::GET, Method::HEAD, Method::POST], get_data))
        .service(resource(&["/events/{id}"], &get, detail));
}

/// Works on the database off the event loop.
async fn on_store<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&EventStore) -> Result<T, EventsError> + Send + 'static,
) -> Result<T, Problem> {
    let store = app.events().clone();
    let failed = |text| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, text);
    web::block(move || work(&store)).await.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))
}

/// `/events/get_data`.
async fn get_data(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    found(&Params::read(http.query_string(), &body), &app).await
}

/// `/events`, GET.
async fn list(http: HttpRequest, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    found(&Params::read(http.query_string(), b""), &app).await
}

async fn found(params: &Params, app: &App) -> Result<HttpResponse, Problem> {
    let form = Json::of_events(params)?;
    let zone = params.get("tz").and_then(TimeZone::named).unwrap_or_else(|| app.config().time_zone.clone());
    let now = Now::read();
    let time = |name: &'static str, unsaid: i64| {
        let read =
            |text| parse_time(text, now, &zone).map_err(|e| Problem::bad_request(e.of_parameter(name).to_string()));
        params.get(name).map_or(Ok(unsaid), read)
    };
    let query = EventQuery {
        from: time("from", 0)?,
        until: time("until", now)?,
        tags: params.all("tags").map(str::to_owned).collect(),
        any: params.get("set") == Some("union"),
    };
    let events = on_store(app, move |store| store.find(&query)).await?;
    Ok(form.answer(&events.into_iter().map(described).collect()))
}

/// `/events/ID`.
async fn detail(id: web::Path<String>, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    let form = Json::of_tags(&Params::default());
    let event = match id.parse() {
        Ok(id) => on_store(&app, move |store| store.get(id)).await?,
        Err(_) => None,
    };
    let none = || form.error(&Problem::new(StatusCode::NOT_FOUND, "there is no event of this number"));
    Ok(event.map_or_else(none, |event| form.answer(&described(event))))
}

/// As Grafana reads it: the time is a whole number of seconds, the tags are an array.
fn described(Event { id, event }: Event) -> Value {
    json!({"when": event.when, "what": event.what, "data": event.data, "tags": event.tags, "id": id})
}

/// `/events`, POST: an event as JSON, whatever the content type says.
async fn add(body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    let event = match read(&body, Now::read()) {
        Ok(event) => event,
        Err(mistake) => return Ok(Json::of_tags(&Params::default()).error(&Problem::bad_request(mistake))),
    };
    on_store(&app, move |store| store.add(&event)).await?;
    Ok(HttpResponse::Ok().content_type("text/plain; charset=utf-8").finish())
}

/// Reads an event. One that says no time is of now.
fn read(body: &[u8], now: i64) -> Result<NewEvent, &'static str> {
    let Ok(Value::Object(event)) = serde_json::from_slice(body) else {
        return Err(
            "an event is a JSON object such as {\"what\": \"deployed\", \"tags\": [\"web\"], \"when\": 1700000000}",
        );
    };
    let text = |name: &str| match event.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    let what = text("what").ok_or("\"what\" must say what happened")?;
    let tags = match event.get("tags") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(tags)) => vec![tags.clone()],
        Some(Value::Array(tags)) => {
            let tags = tags.iter().map(|tag| tag.as_str().map(str::to_owned)).collect::<Option<_>>();
            tags.ok_or("the elements of \"tags\" must be texts")?
        }
        Some(_) => return Err("\"tags\" must be an array or space-separated string"),
    };
    let when = match event.get("when") {
        None | Some(Value::Null) => now,
        Some(when) => {
            let seconds = when.as_f64().or_else(|| when.as_str()?.trim().parse().ok());
            let seconds = seconds.filter(|s| s.abs() < 1e11).ok_or("\"when\" must be seconds since the epoch")?;
            seconds.floor() as i64
        }
    };
    Ok(NewEvent { when, what, data: text("data").unwrap_or_default(), tags })
}
