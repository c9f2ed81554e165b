//! HTTP: routes, parameters, errors to statuses. The only module that knows actix.

mod answer;
mod app;
mod body;
mod context;
mod events;
mod find;
mod functions;
mod metrics;
mod openapi;
mod outer;
mod params;
mod picture;
mod problem;
mod render;
mod status;
mod tags;
mod wire;

use std::io;
use std::net::TcpListener;

use actix_web::http::Method;
use actix_web::{HttpServer, middleware, web};

pub use app::{App, BuildError};
pub use outer::outer;
pub use params::Params;
pub use problem::Problem;

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
        service.default_service(web::to(answer::not_found));
    }
}

/// Serves on `listener` until a signal ends it (SIGINT and SIGTERM let running requests finish).
///
/// # Errors
/// The operating system refuses sockets or threads.
pub fn serve(app: App, listener: TcpListener) -> io::Result<()> {
    run(app, listener, true)
}

/// The same on a thread of its own, until the process ends; signals are left to the caller's [`serve`].
///
/// # Errors
/// The operating system refuses the thread.
pub fn serve_aside(app: App, listener: TcpListener) -> io::Result<()> {
    let work = move || {
        if let Err(error) = run(app, listener, false) {
            tracing::error!(%error, "a server ended");
        }
    };
    std::thread::Builder::new().name("serve".to_owned()).spawn(work).map(drop)
}

fn run(app: App, listener: TcpListener, signals: bool) -> io::Result<()> {
    let threads = app.config().http_threads;
    let cross_origin = !app.config().http.cors_origins.is_empty();
    let app = web::Data::new(app);
    actix_web::rt::System::new().block_on(async move {
        let make = move || {
            actix_web::App::new()
                .wrap(middleware::Condition::new(cross_origin, outer::cors(&app)))
                .wrap(middleware::from_fn(outer::outer))
                .configure(routes(app.clone()))
        };
        // A client that hangs up ends its request: nobody reads the answer. The end of an answer that is sent in
        // pieces must not wait until the client has confirmed what came before.
        let mut server = HttpServer::new(make).h1_allow_half_closed(false).tcp_nodelay(true);
        if threads > 0 {
            server = server.workers(threads);
        }
        if !signals {
            server = server.disable_signals();
        }
        server.shutdown_timeout(10).listen(listener)?.run().await
    })
}
