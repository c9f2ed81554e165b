//! HTTP: routes, parameters, errors to statuses. The only module that knows actix.

mod answer;
mod app;
mod body;
mod connection;
mod context;
mod events;
mod find;
mod framing;
mod functions;
mod metrics;
mod openapi;
mod outer;
mod params;
mod picture;
mod problem;
mod render;
mod server;
mod status;
mod tags;
mod wire;

use actix_web::http::Method;
use actix_web::web;

pub use app::{App, BuildError};
pub use outer::outer;
pub use params::Params;
pub use problem::Problem;
pub use server::{serve, serve_aside};

/// Adds all routes; `app` is what they work on.
pub fn routes(app: web::Data<App>) -> impl FnOnce(&mut web::ServiceConfig) {
    move |service| {
        service.app_data(web::PayloadConfig::new(app.config().limits.body));
        service.app_data(web::FormConfig::default().limit(app.config().limits.body));
        service.app_data(app);
        openapi::routes(service);
        let read = [Method::GET, Method::HEAD, Method::POST];
        service.service(answer::resource(&["/render"], &read, render::render));
        find::routes(service);
        tags::routes(service);
        events::routes(service);
        functions::routes(service);
        status::routes(service);
        wire::routes(service);
        service.route(connection::REFUSED, web::to(connection::refused));
        service.default_service(web::to(answer::not_found));
    }
}
