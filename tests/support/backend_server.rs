//! A backend's server in the same process: it answers as it is told and remembers what it was asked.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use plumbago::backend::msgpack;
use plumbago::series::Series;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What was asked.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect()
    }

    /// Those of the query and of a form.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let query = self.target.split_once('?').map(|(_, q)| q.as_bytes()).unwrap_or_default();
        let form = if self.method == "POST" { self.body.as_slice() } else { &[] };
        [query, form].into_iter().flat_map(|p| form_urlencoded::parse(p).into_owned()).collect()
    }
}

/// What is answered.
#[derive(Clone)]
pub enum Reply {
    /// A status, headers and a body of stated length.
    Full(u16, Vec<(&'static str, &'static str)>, Vec<u8>),
    /// These bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// Nothing, until the client leaves.
    Silence,
}

/// These series, as a graphite-web sends them.
pub fn msgpack_of(series: &[Series]) -> Reply {
    Reply::Full(200, vec![("Content-Type", "application/x-msgpack")], msgpack::write_render(series))
}

type Handler = dyn Fn(Request) -> Pin<Box<dyn Future<Output = Reply> + Send>> + Send + Sync;

/// A listening server.
pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    /// Connections that the client closed while they waited for an answer.
    pub left: Arc<Notify>,
}

impl Server {
    /// Answers by `handler`.
    pub async fn start<F, R>(handler: F) -> Self
    where
        F: Fn(Request) -> R + Send + Sync + 'static,
        R: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (requests, left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let handler: Arc<Handler> = Arc::new(move |request| Box::pin(handler(request)));
        let (seen, gone) = (requests.clone(), left.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, handler.clone(), seen.clone(), gone.clone()));
            }
        });
        Self { address, requests, left }
    }

    /// Answers always the same.
    pub async fn saying(reply: Reply) -> Self {
        Self::start(move |_| {
            let reply = reply.clone();
            async move { reply }
        })
        .await
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Request> {
        self.requests.lock().expect("not poisoned").clone()
    }
}

async fn serve(mut stream: TcpStream, handler: Arc<Handler>, seen: Arc<Mutex<Vec<Request>>>, gone: Arc<Notify>) {
    let mut buffer = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut buffer).await {
        seen.lock().expect("not poisoned").push(request.clone());
        match handler(request).await {
            Reply::Full(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: {}\r\n", body.len());
                for (name, value) in headers {
                    head.extend([name, ": ", value, "\r\n"]);
                }
                head.push_str("\r\n");
                if stream.write_all(&[head.as_bytes(), &body].concat()).await.is_err() {
                    return;
                }
            }
            Reply::Raw(bytes) => {
                let _ = stream.write_all(&bytes).await;
                return;
            }
            Reply::Silence => {
                while stream.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
                gone.notify_one();
                return;
            }
        }
    }
}

/// The next request of a connection; `None` at its end.
pub async fn next_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_vec()).expect("ASCII");
            let mut lines = head.split("\r\n");
            let mut first = lines.next()?.split(' ');
            let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
            let headers: Vec<(String, String)> =
                lines.filter_map(|l| l.split_once(": ")).map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned())).collect();
            let length = headers.iter().find(|(n, _)| n == "content-length").and_then(|(_, v)| v.parse().ok());
            let total = end + 4 + length.unwrap_or(0_usize);
            if buffer.len() >= total {
                let body = buffer[end + 4..total].to_vec();
                buffer.drain(..total);
                return Some(Request { method, target, headers, body });
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
