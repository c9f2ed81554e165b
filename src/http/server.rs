//! Serving: sockets, threads, signals.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use actix_http::HttpService;
use actix_http::Response;
use actix_http::body::BoxBody;
use actix_server::{GracefulShutdownSignal, Server};
use actix_service::{Service as _, ServiceFactory, ServiceFactoryExt as _, apply_fn_factory, fn_service, map_config};
use actix_web::dev::AppConfig;
use actix_web::rt::net::TcpStream;
use actix_web::{middleware, web};

use super::connection::{Answer, Connection, Turn};
use super::{App, outer, routes};

/// Serves on `listener` until a signal ends it: SIGTERM lets running requests finish, SIGINT does not. Logs when it is so
/// far that connections are taken.
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
    let address = listener.local_addr()?;
    let app = web::Data::new(app);
    actix_web::rt::System::new().block_on(async move {
        let mut server = Server::build().shutdown_timeout(time_to_end(app.config().request_timeout));
        if threads > 0 {
            server = server.workers(threads);
        }
        if !signals {
            server = server.disable_signals();
        }
        let ending = server.graceful_shutdown_signal();
        let server = server.listen("plumbago", listener, move || service(&app, address, &ending))?;
        let mut server = pin!(server.run());
        // It starts its threads when it is asked for the first time how far it is.
        if let Poll::Ready(ended) = futures::poll!(server.as_mut()) {
            return ended;
        }
        if signals {
            tracing::info!(%address, "listening");
        }
        server.await
    })
}

/// How many seconds the running requests have when the server ends: all that they may take, and time to send what came
/// of it.
fn time_to_end(request_timeout: Duration) -> u64 {
    outer::patience(request_timeout).as_secs().saturating_add(2)
}

/// What answers the requests of connections. It is what actix's own HTTP server would make of the routes, but that
/// requests are read through a [`Connection`].
fn service(
    app: &web::Data<App>,
    address: SocketAddr,
    ending: &GracefulShutdownSignal,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = actix_http::error::DispatchError, InitError = ()>
+ use<> {
    let cross_origin = !app.config().http.cors_origins.is_empty();
    let ending = ending.clone();
    let app = actix_web::App::new()
        .wrap(middleware::Condition::new(cross_origin, outer::cors(app)))
        .wrap(middleware::from_fn(outer::outer))
        .configure(routes(app.clone()));
    // Where the server stands is nothing that an answer holds.
    let app = map_config(app, |()| AppConfig::default());
    let app = apply_fn_factory(app, |request: actix_http::Request, app| {
        let turn = request.conn_data::<Turn>().cloned().unwrap_or_default();
        let answer = app.call(request);
        async move {
            let response = match answer.await {
                Ok(response) => Response::from(response).map_into_boxed_body(),
                Err(error) => Response::<BoxBody>::from(error),
            };
            Ok(response.map_body(|_, body| Answer::new(body, turn)))
        }
    });
    let http = HttpService::build()
        .graceful_shutdown_signal(move || {
            let ending = ending.clone();
            async move { ending.notified().await }
        })
        .client_disconnect_timeout(Duration::from_secs(1))
        // A client that hangs up ends its request: nobody reads the answer.
        .h1_allow_half_closed(false)
        .local_addr(address)
        .on_connect_ext(|connection: &Connection, data| {
            data.insert(connection.refusal());
            data.insert(connection.turn());
        })
        .finish(app);
    let accept = |stream: TcpStream| async move {
        // The end of an answer that is sent in pieces must not wait until the client has confirmed what came before.
        // A connection that ends already says so again when it is read.
        let _ = stream.set_nodelay(true);
        let peer = stream.peer_addr().ok();
        Ok((Connection::new(stream), actix_http::Protocol::Http1, peer))
    };
    fn_service(accept).and_then(http)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_waits_for_what_a_request_may_take() {
        assert_eq!(time_to_end(Duration::from_secs(30)), 37);
        assert_eq!(time_to_end(Duration::from_millis(59_900)), 66);
        assert_eq!(time_to_end(Duration::MAX), u64::MAX);
    }
}
