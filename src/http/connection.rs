//! A client's connection as actix reads it: what its requests hold that actix would refuse is written otherwise
//! ([`Framing`]), and a request that cannot be read is replaced by one that is answered with what is wrong with it.
//! What is written to the client goes as it is.

use std::cell::OnceCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::rt::net::TcpStream;
use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::framing::{Framing, Step};
use super::{Problem, answer};

/// Where the requests go that stand for those that cannot be read. Other requests for it find nothing.
pub(super) const REFUSED: &str = "/malformed-request";

/// How long a client may go on sending after it was refused, so that it gets to reading the answer.
const LINGER: Duration = Duration::from_secs(1);

/// Why the last request of a connection was refused; set once.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusal(Rc<OnceCell<Problem>>);

/// The connection.
#[derive(Debug)]
pub(super) struct Connection<S = TcpStream> {
    stream: S,
    framing: Framing,
    /// What came and waits for the rest of its head.
    held: BytesMut,
    /// What is to be read next.
    ready: BytesMut,
    refusal: Refusal,
    /// How long what comes after a refusal is still read.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Connection<S> {
    pub fn new(stream: S) -> Self {
        let (held, ready) = (BytesMut::new(), BytesMut::new());
        Self { stream, framing: Framing::new(), held, ready, refusal: Refusal::default(), patience: None }
    }

    /// Why its last request is refused, once it is.
    pub fn refusal(&self) -> Refusal {
        self.refusal.clone()
    }

    fn refused(&self) -> bool {
        self.refusal.0.get().is_some()
    }

    /// Does what is to be done with the bytes held.
    fn apply(&mut self, step: Step) {
        match step {
            Step::Pass(n) => self.ready.unsplit(self.held.split_to(n)),
            Step::Wait => {}
            Step::Replace(n, with) => {
                self.held.advance(n);
                self.ready.extend_from_slice(&with);
            }
            Step::Refuse(problem) => {
                self.held = BytesMut::new();
                let instead = format!("GET {REFUSED} HTTP/1.1\r\nHost: -\r\nConnection: close\r\n\r\n");
                self.ready.extend_from_slice(instead.as_bytes());
                let first = self.refusal.0.set(problem);
                debug_assert!(first.is_ok(), "nothing is judged after a refusal");
            }
        }
    }

    fn judge_held(&mut self) {
        while !self.held.is_empty() {
            let step = self.framing.next(&self.held);
            if matches!(step, Step::Wait) {
                break;
            }
            self.apply(step);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            if this.ready.is_empty() {
                this.judge_held();
            }
            if !this.ready.is_empty() {
                let n = this.ready.len().min(buf.remaining());
                buf.put_slice(&this.ready.split_to(n));
                return Poll::Ready(Ok(()));
            }
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
            let new = &buf.filled()[before..];
            if new.is_empty() {
                // The end. A head that is not complete is for actix to refuse.
                if this.held.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.ready = std::mem::take(&mut this.held);
                continue;
            }
            if this.refused() {
                // The client may go on sending, and sees the answer only when that is taken from it. One read at a
                // time, so that others have their turn.
                buf.set_filled(before);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !this.held.is_empty() {
                this.held.extend_from_slice(new);
                buf.set_filled(before);
                continue;
            }
            // Most of it, bodies above all, goes on as it is: then it stays where it was read to.
            let mut passed = 0;
            while passed < new.len() {
                match this.framing.next(&new[passed..]) {
                    Step::Pass(n) => passed += n,
                    step => {
                        this.held.extend_from_slice(&new[passed..]);
                        this.apply(step);
                        break;
                    }
                }
            }
            buf.set_filled(before + passed);
            if passed > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        if !this.refused() {
            return Poll::Ready(Ok(()));
        }
        // A socket that is closed while more comes in may take the answer from the client that has not read it yet.
        let patience = this.patience.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if patience.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut space = [0; 4096];
        loop {
            let mut unread = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut unread))?;
            if unread.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Answers a request that stands for one that cannot be read.
pub(super) async fn refused(http: HttpRequest) -> actix_web::HttpResponse {
    match http.conn_data::<Refusal>().and_then(|refusal| refusal.0.get()) {
        Some(problem) => actix_web::ResponseError::error_response(problem),
        None => answer::not_found().await,
    }
}
