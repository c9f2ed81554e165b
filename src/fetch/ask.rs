//! Asking one group of backends: which members, in what order, and how long to wait for each.
//!
//! A question has items (the selectors of a fetch; one item for a look-up). A member is called at most once for a
//! question, with all items that it can answer. Calls are tasks of the fetch runtime that end when their handle is
//! dropped, so nothing goes on once the asker is gone. This module does not know what an answer means.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use tracing::Instrument;

use super::stats::{BackendStats, FetchStats};
use super::{GroupKind, LimitExceeded, Order};
use crate::backend::{Backend, BackendError};

/// A task that is aborted when this is dropped.
pub(super) struct Task<T>(JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    pub(super) fn spawn(on: &Handle, future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(on.spawn(future.in_current_span()))
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A backend with what is known about it.
pub(super) struct Member {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) stats: BackendStats,
}

/// What is asked.
pub(super) trait Question: Send + Sync + 'static {
    /// The answer to one item.
    type Reply: Clone + Send + 'static;

    /// When the last answer is of use.
    fn deadline(&self) -> Instant;

    /// Whether this backend can answer the item at all.
    fn suits(&self, backend: &dyn Backend, item: usize) -> bool;

    /// One call: an answer for each of `items`, in their order.
    fn ask(
        &self,
        backend: &dyn Backend,
        items: &[usize],
    ) -> impl Future<Output = Vec<Result<Self::Reply, BackendError>>> + Send;
}

/// What a group says to one item.
pub(super) struct ItemReply<T> {
    /// The answers, in the members' order.
    pub(super) replies: Vec<T>,
    /// The members that failed and whose answer is missed.
    pub(super) failures: Vec<BackendError>,
    /// How many members should have answered: those that can; one where one is enough.
    pub(super) wanted: usize,
}

impl<T> Default for ItemReply<T> {
    fn default() -> Self {
        Self { replies: Vec::new(), failures: Vec::new(), wanted: 0 }
    }
}

type Replies<T> = Vec<Result<T, BackendError>>;

/// A member's call that is going on; its output says whose it is, and for which items.
type Call<T> = Pin<Box<dyn Future<Output = (usize, Vec<usize>, Replies<T>)> + Send>>;

/// Asks a group about `items`: one reply for each of them, in their order.
///
/// # Errors
/// [`BackendError::TooLarge`] of any member ends it: another member would send as much, and an answer without the
/// large part would be silently wrong.
pub(super) async fn ask_group<Q: Question>(
    kind: GroupKind,
    members: &Arc<[Member]>,
    turn: usize,
    items: &[usize],
    question: &Arc<Q>,
    stats: &FetchStats,
) -> Result<Vec<ItemReply<Q::Reply>>, LimitExceeded> {
    let group = Asking { members, items, question };
    match kind {
        GroupKind::Shards | GroupKind::AllReplicas => group.all().await,
        GroupKind::AnyReplica { hedge_after, order } => {
            let start = match order {
                Order::Listed => 0,
                Order::Rotating => turn % members.len().max(1),
            };
            let order: Vec<usize> = (0..members.len()).map(|i| (start + i) % members.len()).collect();
            group.any(&order, hedge_after, stats).await
        }
    }
}

struct Asking<'a, Q> {
    members: &'a Arc<[Member]>,
    items: &'a [usize],
    question: &'a Arc<Q>,
}

impl<Q: Question> Asking<'_, Q> {
    /// Positions in `self.items` that a member can answer.
    fn suiting(&self, member: usize) -> Vec<usize> {
        let backend = &*self.members[member].backend;
        (0..self.items.len()).filter(|at| self.question.suits(backend, self.items[*at])).collect()
    }

    /// Calls a member for the items at `positions`.
    fn call(&self, member: usize, positions: Vec<usize>) -> Call<Q::Reply> {
        let items: Vec<usize> = positions.iter().map(|at| self.items[*at]).collect();
        let (members, question) = (self.members.clone(), self.question.clone());
        let backend = members[member].backend.id().clone();
        let task = Task::spawn(&Handle::current(), async move {
            let Member { backend, stats } = &members[member];
            stats.calls.add(1);
            let _going_on = stats.in_flight.enter();
            let asked = tokio::time::timeout_at(question.deadline(), question.ask(&**backend, &items)).await;
            let replies = match asked {
                Ok(replies) if replies.len() == items.len() => replies,
                Ok(replies) => {
                    let reason = format!("{} answers to {} questions", replies.len(), items.len());
                    all_failed(items.len(), &BackendError::Garbled { backend: backend.id().clone(), reason })
                }
                Err(_) => all_failed(items.len(), &BackendError::Timeout { backend: backend.id().clone() }),
            };
            let well = |reply: &Result<_, _>| {
                matches!(reply, Ok(_) | Err(BackendError::BadQuery { .. } | BackendError::Partial { .. }))
            };
            stats.ended(replies.iter().all(well));
            replies
        });
        Box::pin(async move {
            let replies = task.await.unwrap_or_else(|error| {
                tracing::error!(%backend, %error, "a call to a backend ended unexpectedly");
                let reason = "the call ended unexpectedly".to_owned();
                all_failed(positions.len(), &BackendError::Unreachable { backend, reason })
            });
            (member, positions, replies)
        })
    }

    /// Every member at the same time.
    async fn all(&self) -> Result<Vec<ItemReply<Q::Reply>>, LimitExceeded> {
        let mut calls: FuturesUnordered<Call<Q::Reply>> = (0..self.members.len())
            .map(|member| (member, self.suiting(member)))
            .filter(|(_, positions)| !positions.is_empty())
            .map(|(member, positions)| self.call(member, positions))
            .collect();
        let mut ended = Vec::new();
        while let Some(call) = calls.next().await {
            refuse_too_large(&call.2)?;
            ended.push(call);
        }
        // In the order of the configuration, not of arrival.
        ended.sort_by_key(|(member, ..)| *member);
        let mut answers: Vec<ItemReply<Q::Reply>> = self.items.iter().map(|_| ItemReply::default()).collect();
        for (_, positions, replies) in ended {
            for (at, reply) in positions.into_iter().zip(replies) {
                answers[at].wanted += 1;
                match reply {
                    Ok(reply) => answers[at].replies.push(reply),
                    Err(error) => {
                        answers[at].replies.extend(part_of(&error));
                        answers[at].failures.push(error);
                    }
                }
            }
        }
        Ok(answers)
    }

    /// One member after the other, in this order, until each item is answered once: the next one is called for what
    /// the one before failed to answer, and also when that one takes longer than `hedge_after`. A call that has
    /// become needless is cancelled.
    async fn any(
        &self,
        order: &[usize],
        hedge_after: Option<std::time::Duration>,
        stats: &FetchStats,
    ) -> Result<Vec<ItemReply<Q::Reply>>, LimitExceeded> {
        let mut answers: Vec<ItemReply<Q::Reply>> = self.items.iter().map(|_| ItemReply::default()).collect();
        let mut waiting: Vec<usize> = vec![0; self.items.len()];
        let mut calls: FuturesUnordered<Call<Q::Reply>> = FuturesUnordered::new();
        let mut rest = order.iter().copied();
        let mut hedging = false;
        let mut first = true;
        loop {
            // Call the next members, while there are items that nobody is being asked for.
            loop {
                let open = |at: &usize| answers[*at].replies.is_empty() && (hedging || waiting[*at] == 0);
                if !(0..self.items.len()).any(|at| open(&at)) {
                    break;
                }
                let Some(member) = rest.next() else { break };
                let positions: Vec<usize> = self.suiting(member).into_iter().filter(open).collect();
                if positions.is_empty() {
                    continue;
                }
                if hedging {
                    stats.hedges.add(1);
                } else if !first {
                    stats.failovers.add(1);
                }
                (first, hedging) = (false, false);
                for at in &positions {
                    waiting[*at] += 1;
                    answers[*at].wanted = 1;
                }
                calls.push(self.call(member, positions));
            }
            hedging = false;
            let hedge = async {
                match hedge_after {
                    Some(delay) if rest.len() > 0 => tokio::time::sleep(delay).await,
                    _ => std::future::pending().await,
                }
            };
            let (_, positions, replies) = tokio::select! {
                biased;
                ended = calls.next() => match ended {
                    Some(ended) => ended,
                    None => break,
                },
                () = hedge => {
                    hedging = true;
                    continue;
                }
            };
            refuse_too_large(&replies)?;
            for (at, reply) in positions.into_iter().zip(replies) {
                waiting[at] -= 1;
                match reply {
                    Ok(reply) if answers[at].replies.is_empty() => {
                        answers[at].replies.push(reply);
                        answers[at].failures.clear();
                    }
                    Err(error) if answers[at].replies.is_empty() => answers[at].failures.push(error),
                    // Somebody else was faster.
                    Ok(_) | Err(_) => {}
                }
            }
            if answers.iter().all(|answer| answer.wanted == 0 || !answer.replies.is_empty()) {
                break;
            }
        }
        // Nobody has a whole answer: a part is better than nothing.
        for answer in answers.iter_mut().filter(|answer| answer.replies.is_empty()) {
            answer.replies = answer.failures.iter().filter_map(part_of).collect();
        }
        Ok(answers)
    }
}

/// What came with a failure.
fn part_of<T: Clone + 'static>(error: &BackendError) -> Option<T> {
    match error {
        BackendError::Partial { found, .. } => found.get(),
        _ => None,
    }
}

fn refuse_too_large<T>(replies: &[Result<T, BackendError>]) -> Result<(), LimitExceeded> {
    for reply in replies {
        if let Err(BackendError::TooLarge { backend, limit, unit }) = reply {
            return Err(LimitExceeded { limit: *limit, unit, backend: Some(backend.clone()) });
        }
    }
    Ok(())
}

fn all_failed<T>(items: usize, error: &BackendError) -> Replies<T> {
    (0..items).map(|_| Err(error.clone())).collect()
}
