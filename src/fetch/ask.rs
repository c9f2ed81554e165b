//! Asking one group of backends: which members, in what order, and how long to wait for each.
//!
//! A question has items (the selectors of a fetch; one item for a look-up). A member is called at most once for a
//! question, with all items that it can answer. Calls are tasks of the fetch runtime that end when their handle is
//! dropped, so nothing goes on once the asker is gone. This module does not know what an answer means.
//!
//! A replica that is outdone again and again (by one that answered while it did not, or that answered what it had too
//! much for) is asked after the others for a while. It is not shut out: what only it can answer is still asked of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use tracing::Instrument;

use super::stats::{BackendStats, FetchStats};
use super::{GroupKind, LimitExceeded, Order, Rest};
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
    pub(super) standing: Standing,
}

/// How a replica does beside the others of its group. The breaker of a backend cannot tell: a call that is cancelled
/// since another one was faster says nothing to it, and an answer that is too large may be the question's fault.
#[derive(Default)]
pub(super) struct Standing(Mutex<State>);

#[derive(Default)]
struct State {
    /// Calls in a row in which another replica outdid this one.
    outdone: u32,
    /// Until then it is not the first to be asked.
    behind_until: Option<Instant>,
}

impl Standing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn behind(&self, now: Instant) -> bool {
        self.state().behind_until.is_some_and(|until| now < until)
    }

    /// Whether it may be asked before the others. When its time behind them is over, one request asks it first, and
    /// the next ones do when it is known how that one ends.
    fn may_lead(&self, now: Instant, rest: Rest) -> bool {
        let mut state = self.state();
        match state.behind_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                state.behind_until = Some(now + rest.delay);
                true
            }
        }
    }

    fn answered(&self) {
        *self.state() = State::default();
    }

    /// Notes that it was outdone; true when it is put behind the others.
    fn outdone(&self, now: Instant, rest: Rest) -> bool {
        let mut state = self.state();
        state.outdone = state.outdone.saturating_add(1);
        if state.outdone < rest.after {
            return false;
        }
        let newly = state.outdone == rest.after;
        state.behind_until = Some(now + rest.delay);
        newly
    }
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
/// [`BackendError::TooLarge`] of a shard ends it: an answer without the large part would be silently wrong. Of replicas,
/// all that answered said so, or two of those that are asked one after the other: the others would send as much.
pub(super) async fn ask_group<Q: Question>(
    kind: GroupKind,
    rest: Rest,
    members: &Arc<[Member]>,
    turn: usize,
    items: &[usize],
    question: &Arc<Q>,
    stats: &FetchStats,
) -> Result<Vec<ItemReply<Q::Reply>>, LimitExceeded> {
    let group = Asking { members, items, question, rest };
    match kind {
        GroupKind::Shards => group.all(true).await,
        GroupKind::AllReplicas => group.all(false).await,
        GroupKind::AnyReplica { hedge_after, order } => {
            let start = match order {
                Order::Listed => 0,
                Order::Rotating => turn % members.len().max(1),
            };
            let now = Instant::now();
            let (mut order, behind): (Vec<usize>, Vec<usize>) =
                (0..members.len()).map(|i| (start + i) % members.len()).partition(|member| {
                    let Member { standing, .. } = &members[*member];
                    if *member == start { standing.may_lead(now, rest) } else { !standing.behind(now) }
                });
            order.extend(behind);
            group.any(&order, hedge_after, stats).await
        }
    }
}

struct Asking<'a, Q> {
    members: &'a Arc<[Member]>,
    items: &'a [usize],
    question: &'a Arc<Q>,
    rest: Rest,
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
            let Member { backend, stats, .. } = &members[member];
            stats.calls.add(1);
            let _going_on = stats.in_flight.enter();
            let began = Instant::now();
            let asked = tokio::time::timeout_at(question.deadline(), question.ask(&**backend, &items)).await;
            stats.durations.observe(began.elapsed());
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

    /// Every member at the same time. `one_is_all`: one with too much for this server ends it for all.
    async fn all(&self, one_is_all: bool) -> Result<Vec<ItemReply<Q::Reply>>, LimitExceeded> {
        let mut calls: FuturesUnordered<Call<Q::Reply>> = (0..self.members.len())
            .map(|member| (member, self.suiting(member)))
            .filter(|(_, positions)| !positions.is_empty())
            .map(|(member, positions)| self.call(member, positions))
            .collect();
        let mut ended = Vec::new();
        while let Some(call) = calls.next().await {
            if one_is_all {
                too_large(&call.2).map_or(Ok(()), Err)?;
            }
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
        refuse_unanswered(&answers)?;
        Ok(answers)
    }

    /// One member after the other, in this order, until each item is answered once: the next one is called for what
    /// the one before failed to answer, and also when that one takes longer than `hedge_after`. A call that has
    /// become needless is cancelled. After one that has too much for this server, at most one more is called.
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
        let mut began: Vec<(usize, Instant)> = Vec::new();
        let mut has_too_much: Option<usize> = None;
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
                began.push((member, Instant::now()));
                calls.push(self.call(member, positions));
                if has_too_much.is_some() {
                    rest = [].iter().copied();
                }
            }
            hedging = false;
            let hedge = async {
                match hedge_after {
                    Some(delay) if rest.len() > 0 => tokio::time::sleep(delay).await,
                    _ => std::future::pending().await,
                }
            };
            let (member, positions, replies) = tokio::select! {
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
            began.retain(|(called, _)| *called != member);
            if let Some(error) = too_large(&replies) {
                if has_too_much.is_some() {
                    return Err(error);
                }
                has_too_much = Some(member);
                let further = order.len() - rest.len();
                rest = order.get(further..order.len().min(further + 1)).unwrap_or_default().iter().copied();
            } else if replies.iter().all(Result::is_ok) {
                self.members[member].standing.answered();
            }
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
        refuse_unanswered(&answers)?;
        // What is still going on will be cancelled. Who had no time is not to blame.
        let now = Instant::now();
        let slow = began.iter().filter(|(_, began)| hedge_after.is_some_and(|fair| now - *began >= fair));
        for member in slow.map(|(member, _)| *member).chain(has_too_much) {
            self.outdone(member, now);
        }
        Ok(answers)
    }

    fn outdone(&self, member: usize, now: Instant) {
        let Member { backend, stats, standing } = &self.members[member];
        stats.outdone.add(1);
        if standing.outdone(now, self.rest) {
            let Rest { after, delay } = self.rest;
            tracing::warn!(
                backend = %backend.id(),
                "other replicas did better {after} times in a row; it is asked after them for {delay:?}"
            );
        }
    }
}

/// What came with a failure.
fn part_of<T: Clone + 'static>(error: &BackendError) -> Option<T> {
    match error {
        BackendError::Partial { found, .. } => found.get(),
        _ => None,
    }
}

/// The first of the replies that says that there is too much.
fn too_large<T>(replies: &[Result<T, BackendError>]) -> Option<LimitExceeded> {
    replies.iter().find_map(|reply| reply.as_ref().err().and_then(limit_of))
}

fn limit_of(error: &BackendError) -> Option<LimitExceeded> {
    match error {
        BackendError::TooLarge { backend, limit, unit } => {
            Some(LimitExceeded { limit: *limit, unit, backend: Some(backend.clone()) })
        }
        _ => None,
    }
}

/// An item that nobody answered and that somebody had too much for is too large.
fn refuse_unanswered<T>(answers: &[ItemReply<T>]) -> Result<(), LimitExceeded> {
    let mut unanswered = answers.iter().filter(|answer| answer.replies.is_empty());
    unanswered.find_map(|answer| answer.failures.iter().find_map(limit_of)).map_or(Ok(()), Err)
}

fn all_failed<T>(items: usize, error: &BackendError) -> Replies<T> {
    (0..items).map(|_| Err(error.clone())).collect()
}
