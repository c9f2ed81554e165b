//! The body of a large answer: parts that follow each other, handed to the connection a slice at a time.
//!
//! A connection copies what it is given before it sends it. Slices keep that copy small and near, whatever the size of
//! the answer, and the parts need not be made one piece.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

use crate::evaluate::Share;

/// Bytes that the connection gets at once.
const SLICE: usize = 64 * 1024;

/// See the module.
pub(super) struct Parts {
    parts: VecDeque<Bytes>,
    share: Option<Arc<Share>>,
}

impl Parts {
    pub(super) fn new(parts: Vec<Bytes>) -> Self {
        Self { parts: parts.into_iter().filter(|part| !part.is_empty()).collect(), share: None }
    }

    /// The same with what the answer takes of the memory of all requests, given back when it is sent.
    pub(super) fn holding(self, share: Arc<Share>) -> Self {
        share.keep(self.bytes());
        Self { share: Some(share), ..self }
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }
}

impl MessageBody for Parts {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes())
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let Some(first) = self.parts.front_mut() else { return Poll::Ready(None) };
        let slice = first.split_to(first.len().min(SLICE));
        if first.is_empty() {
            self.parts.pop_front();
        }
        Poll::Ready(Some(Ok(slice)))
    }

    fn try_into_bytes(mut self) -> Result<Bytes, Self> {
        if self.parts.len() > 1 || self.share.is_some() {
            return Err(self);
        }
        Ok(self.parts.pop_front().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;

    use super::*;
    use crate::evaluate::Pool;

    #[actix_web::test]
    async fn all_bytes_arrive_in_order() {
        let part = |byte: u8, len: usize| Bytes::from(vec![byte; len]);
        let parts = || Parts::new(vec![part(b'a', SLICE * 2 + 5), part(b'x', 0), part(b'b', 7), part(b'c', SLICE)]);
        let all = [vec![b'a'; SLICE * 2 + 5], vec![b'b'; 7], vec![b'c'; SLICE]].concat();
        assert_eq!(parts().size(), BodySize::Sized(all.len() as u64));
        assert_eq!(to_bytes(parts()).await.expect("it does not fail"), all);
        assert_eq!(Parts::new(Vec::new()).size(), BodySize::Sized(0));
        assert_eq!(to_bytes(Parts::new(Vec::new())).await.expect("it does not fail"), "");
    }

    #[actix_web::test]
    async fn memory_is_held_until_it_is_sent() {
        let pool = Pool::new(1000);
        let share = Arc::new(pool.share());
        share.take(800).expect("there is room");
        let body = Parts::new(vec![Bytes::from_static(b"12345")]).holding(share);
        assert_eq!(pool.taken(), 5);
        let Err(body) = body.try_into_bytes() else { panic!("nobody would hold the memory") };
        assert_eq!(to_bytes(body).await.expect("it does not fail"), "12345");
        assert_eq!(pool.taken(), 0);
    }
}
