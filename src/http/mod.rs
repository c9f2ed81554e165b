//! HTTP: routes, parameters, errors to statuses. The only module that knows actix.

mod app;
mod params;
mod problem;
mod render;

use std::io;
use std::net::TcpListener;

use actix_web::{HttpResponse, HttpServer, web};

pub use app::{App, BuildError};
pub use params::Params;
pub use problem::Problem;

/// Adds all routes; `app` is what they work on.
pub fn routes(app: web::Data<App>) -> impl FnOnce(&mut web::ServiceConfig) {
    move |service| {
        service.app_data(web::PayloadConfig::new(app.config().limits.body));
        service.app_data(app);
        for path in ["/render", "/render/"] {
            service.service(
                web::resource(path).route(web::get().to(render::render)).route(web::post().to(render::render)),
            );
        }
        service
            .route("/healthz", web::get().to(|| async { HttpResponse::Ok().content_type("text/plain").body("ok\n") }));
    }
}

/// Serves on `listener` until a signal ends it (SIGINT and SIGTERM let running requests finish).
///
/// # Errors
/// The operating system refuses sockets or threads.
pub fn serve(app: App, listener: TcpListener) -> io::Result<()> {
    let threads = app.config().http_threads;
    let app = web::Data::new(app);
    actix_web::rt::System::new().block_on(async move {
        let mut server = HttpServer::new(move || actix_web::App::new().configure(routes(app.clone())));
        if threads > 0 {
            server = server.workers(threads);
        }
        server.shutdown_timeout(10).listen(listener)?.run().await
    })
}
