//! A client's connection as actix reads it: what its requests hold that actix would refuse is written otherwise
//! ([`Framing`]), and a request that cannot be read is replaced by one that is answered with what is wrong with it.
//! What is written to the client goes as it is, as long as the client takes it.
//!
//! A request goes on when the one before it is answered ([`Turn`]). Actix would take those that a client sends ahead
//! before that; then it answers as the last one wants it (as to HEAD, close the connection or not), and when there is
//! more than it takes it asks without a rest whether it may go on.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::rt::net::TcpStream;
use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::framing::{Framing, Step};
use super::{Problem, answer};

/// Where the requests go that stand for those that cannot be read. Other requests for it find nothing.
pub(super) const REFUSED: &str = "/malformed-request";

/// How long a client may go on sending after it was refused, so that it gets to reading the answer.
const LINGER: Duration = Duration::from_secs(1);

/// How long a client may take nothing of its answer before it is given up. Until then it holds a connection and the
/// memory of the answer.
const STALLED: Duration = Duration::from_secs(60);

/// How much is read of what a client sends ahead.
const AHEAD: usize = 64 * 1024;

/// Whether the request that went on last is being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn(Rc<Answered>);

#[derive(Debug, Default)]
struct Answered {
    waits: Cell<bool>,
    reader: RefCell<Option<Waker>>,
}

impl Turn {
    fn waits(&self) -> bool {
        self.0.waits.get()
    }

    /// Has the reader of the connection woken when the request is answered.
    fn wake(&self, cx: &Context<'_>) {
        *self.0.reader.borrow_mut() = Some(cx.waker().clone());
    }
}

/// The body of an answer. When it is sent or given up, the next request of its connection goes on.
pub(super) struct Answer {
    body: BoxBody,
    turn: Turn,
}

impl Answer {
    pub fn new(body: impl MessageBody + 'static, turn: Turn) -> Self {
        Self { body: BoxBody::new(body), turn }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.turn.0.waits.set(false);
        let reader = self.turn.0.reader.take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

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
    turn: Turn,
    /// Runs while the client takes nothing of what is written.
    stalled: Option<Pin<Box<Sleep>>>,
    /// How long what comes after a refusal is still read.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Connection<S> {
    pub fn new(stream: S) -> Self {
        let (held, ready) = (BytesMut::new(), BytesMut::new());
        Self {
            stream,
            framing: Framing::new(),
            held,
            ready,
            refusal: Refusal::default(),
            turn: Turn::default(),
            stalled: None,
            patience: None,
        }
    }

    /// Why its last request is refused, once it is.
    pub fn refusal(&self) -> Refusal {
        self.refusal.clone()
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Turn {
        self.turn.clone()
    }

    /// Whether what comes next is another request, whose turn it is not yet.
    fn waits(&self) -> bool {
        self.turn.waits() && self.framing.is_between_requests()
    }

    /// What becomes of bytes that nothing has become of yet.
    fn judge(framing: &mut Framing, turn: &Turn, data: &[u8]) -> Step {
        let before = framing.requests();
        let step = framing.next(data);
        if framing.requests() != before || matches!(step, Step::Refuse(_)) {
            turn.0.waits.set(true);
        }
        step
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
        while !self.held.is_empty() && !self.waits() {
            let step = Self::judge(&mut self.framing, &self.turn, &self.held);
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
            if this.waits() {
                this.turn.wake(cx);
                if this.held.len() >= AHEAD {
                    return Poll::Pending;
                }
            }
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
            let new = &buf.filled()[before..];
            if new.is_empty() {
                // The end: of a client that waits for an answer too. A head that is not complete is for actix to refuse.
                if this.held.is_empty() || this.waits() {
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
                if this.waits() {
                    this.held.extend_from_slice(&new[passed..]);
                    break;
                }
                match Self::judge(&mut this.framing, &this.turn, &new[passed..]) {
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
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        if written.is_ready() {
            this.stalled = None;
            return written;
        }
        let stalled = this.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not take its answer")))
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
        // Actix writes its one buffer; only so is it seen whether the client takes it.
        let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
        self.poll_write(cx, first)
    }
}

/// Answers a request that stands for one that cannot be read.
pub(super) async fn refused(http: HttpRequest) -> actix_web::HttpResponse {
    match http.conn_data::<Refusal>().and_then(|refusal| refusal.0.get()) {
        Some(problem) => actix_web::ResponseError::error_response(problem),
        None => answer::not_found().await,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (mut client, server) = duplex(10);
        let mut connection = Connection::new(server);
        // One that is slow but goes on is served.
        let mut taken = [0; 10];
        for _ in 0..3 {
            connection.write_all(&[b'a'; 10]).await.expect("there is room");
            let (writes, reads) = (connection.write_all(b"b"), async {
                sleep(STALLED.mul_f64(0.9)).await;
                client.read_exact(&mut taken).await
            });
            let (written, read) = tokio::join!(writes, reads);
            written.and(read.map(drop)).expect("it takes something in time");
            client.read_exact(&mut taken[..1]).await.expect("it was sent");
        }
        let began = Instant::now();
        connection.write_all(&[b'a'; 10]).await.expect("there is room");
        let error = connection.write_all(b"b").await.expect_err("nobody reads");
        assert_eq!((error.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, STALLED.as_secs()));
    }

    #[tokio::test]
    async fn a_request_waits_for_the_answer_to_the_one_before() {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let (mut client, server) = duplex(2 * AHEAD);
        let mut connection = Connection::new(server);
        let sent = 2000;
        client.write_all(&request.repeat(sent)).await.expect("there is room");
        let mut space = [0; 4096];
        for n in 1..=sent {
            let read = connection.read(&mut space).await.expect("it is there");
            assert_eq!(&space[..read], request, "{n}");
            assert!(futures::poll!(Box::pin(connection.read(&mut space))).is_pending(), "{n}");
            assert!(connection.held.len() < AHEAD + space.len(), "{n}");
            drop(Answer::new((), connection.turn()));
        }
        // Hanging up ends also what waits.
        client.write_all(&request.repeat(2)).await.expect("there is room");
        assert_eq!(connection.read(&mut space).await.expect("it is there"), request.len());
        drop(client);
        assert_eq!(connection.read(&mut space).await.expect("the end"), 0);
    }
}
