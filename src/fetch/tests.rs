//! What the federation asks of its backends, and what it makes of their answers.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::runtime::Handle;

use super::fake::{Act, Fake, id, refused, scope, selector, series, timeout};
use super::*;
use crate::backend::{FindQuery, FoundNode, TagLimits};

const FIRST: GroupKind = GroupKind::AnyReplica { hedge_after: None, order: Order::Listed };

fn group(name: &str, kind: GroupKind, fakes: &[&Arc<Fake>]) -> Group {
    Group::new(name, kind, fakes.iter().map(|f| Arc::clone(f) as Arc<dyn Backend>).collect())
}

fn federation(groups: Vec<Group>) -> Federation {
    Federation::on(Handle::current(), groups, None)
}

fn shards(fakes: &[&Arc<Fake>]) -> Federation {
    federation(vec![group("east", GroupKind::Shards, fakes)])
}

fn replicas(kind: GroupKind, fakes: &[&Arc<Fake>]) -> Federation {
    federation(vec![group("east", kind, fakes)])
}

async fn fetch(federation: &Federation, patterns: &[&str]) -> Vec<Outcome> {
    let selectors: Vec<Selector> = patterns.iter().map(|p| selector(p)).collect();
    federation.fetch(&selectors, &scope(), Limits::default()).await.expect("within the limits")
}

fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.as_ref().expect("found").series.iter().map(|s| &*s.name).collect()
}

fn failures(outcome: &Outcome) -> &[BackendError] {
    &outcome.as_ref().expect("found").failures
}

fn find_query(pattern: &str) -> FindQuery {
    FindQuery { pattern: pattern.to_owned(), range: None, leaves_only: false }
}

#[tokio::test]
async fn one_call_for_all_selectors_to_each_backend() {
    let a = Arc::new(Fake::with("a", &["x.1", "y.1"]));
    let b = Arc::new(Fake::with("b", &["x.2", "x.0"]));
    let c = Arc::new(Fake::with("c", &["z.9"]));
    let federation =
        federation(vec![group("east", GroupKind::Shards, &[&a, &b]), group("west", GroupKind::Shards, &[&c])]);
    let outcomes = fetch(&federation, &["x.*", "y.*", "nothing"]).await;
    assert_eq!(names(&outcomes[0]), ["x.0", "x.1", "x.2"]);
    assert_eq!(names(&outcomes[1]), ["y.1"]);
    assert!(names(&outcomes[2]).is_empty() && failures(&outcomes[2]).is_empty());
    for backend in [&a, &b, &c] {
        assert_eq!(backend.calls(), [["x.*", "y.*", "nothing"]]);
    }
    assert_eq!(federation.stats().partial.get() + federation.stats().failed.get(), 0);
}

#[tokio::test]
async fn a_request_asks_each_selector_once() {
    let a = Arc::new(Fake::with("a", &["x", "y"]));
    let federation = shards(&[&a]);
    let mut map = RequestMap::new(Limits::default());
    let first = [selector("x"), selector("x")];
    assert_eq!(federation.fill(&mut map, &first, &scope()).await, Ok(1));
    assert_eq!(federation.fill(&mut map, &[selector("y"), selector("x")], &scope()).await, Ok(1));
    assert_eq!(federation.fill(&mut map, &[selector("x")], &scope()).await, Ok(0));
    assert_eq!(a.calls(), [["x"], ["y"]]);
    assert!(matches!(map.get(&selector("y")), Lookup::Found { series, .. } if series.len() == 1));
}

#[tokio::test]
async fn nothing_is_lost_behind_a_complete_answer() {
    let a = Arc::new(Fake::new("a", vec![series("a.b", &[1.0, 2.0])]));
    let b = Arc::new(Fake::new("b", vec![series("a.b", &[1.0, 2.0]), series("a.c", &[3.0])]));
    for kind in [GroupKind::Shards, GroupKind::AllReplicas] {
        let outcomes = fetch(&replicas(kind, &[&a, &b]), &["a.*"]).await;
        assert_eq!(names(&outcomes[0]), ["a.b", "a.c"]);
    }
}

#[tokio::test]
async fn one_of_three_refuses() {
    let a = Arc::new(Fake::with("a", &["x.a"]));
    let b = Arc::new(Fake::with("b", &["x.b"]).acting([Act::Fail(refused("b"))]));
    let c = Arc::new(Fake::with("c", &["x.c"]));
    let federation = shards(&[&a, &b, &c]);
    let outcomes = fetch(&federation, &["x.*"]).await;
    assert_eq!(names(&outcomes[0]), ["x.a", "x.c"]);
    assert_eq!(failures(&outcomes[0]), [refused("b")]);
    assert_eq!(federation.stats().partial.get(), 1);

    let found = federation.find(&find_query("x.*"), &scope()).await.expect("partial");
    assert_eq!(found.value.iter().map(|n| n.path.as_str()).collect::<Vec<_>>(), ["x.a", "x.c"]);
    assert_eq!(found.failures, [refused("b")]);
    let health =
        federation.backends().map(|(group, backend, stats)| (group, backend.id().as_str(), stats.failed_in_a_row()));
    assert_eq!(health.collect::<Vec<_>>(), [("east", "a", 0), ("east", "b", 2), ("east", "c", 0)]);
}

#[tokio::test]
async fn a_backend_that_fails_for_one_pattern_answers_the_others() {
    let a = Arc::new(Fake::with("a", &["x.a", "y.a"]).acting([Act::FailFor("y", refused("a"))]));
    let outcomes = fetch(&shards(&[&a]), &["x.*", "y.*"]).await;
    assert_eq!((names(&outcomes[0]), failures(&outcomes[0])), (vec!["x.a"], &[][..]));
    let error = outcomes[1].as_ref().expect_err("nobody answered");
    assert_eq!(**error, FetchError::AllFailed { failures: Arc::new([refused("a")]) });
}

#[tokio::test]
async fn all_fail() {
    let a = Arc::new(Fake::with("a", &[]).acting([Act::Fail(timeout("a"))]));
    let b = Arc::new(Fake::with("b", &[]).acting([Act::Fail(refused("b"))]));
    let federation = shards(&[&a, &b]);
    let outcomes = fetch(&federation, &["x"]).await;
    let error = outcomes[0].as_ref().expect_err("nobody answered");
    assert_eq!(error.failures(), [timeout("a"), refused("b")]);
    assert!(!error.is_timeout());
    assert_eq!(error.to_string(), "no backend answered: a did not answer in time; b refused the request: 503");
    assert!(federation.find(&find_query("*"), &scope()).await.is_err());
    assert_eq!(federation.stats().failed.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_kept() {
    let a = Arc::new(Fake::with("a", &["x"]));
    let b = Arc::new(Fake::with("b", &["x"]).acting([Act::Hang]));
    let both = shards(&[&a, &b]);
    let scope = scope();
    let outcomes = both.fetch(&[selector("x")], &scope, Limits::default()).await.expect("within the limits");
    assert_eq!(failures(&outcomes[0]), [timeout("b")]);
    assert_eq!(scope.left(), Duration::ZERO);
    assert_eq!(*b.in_flight().borrow(), 0);

    let outcomes = fetch(&shards(&[&b]), &["x"]).await;
    assert!(outcomes[0].as_ref().expect_err("nobody answered").is_timeout());
}

#[tokio::test]
async fn a_backend_with_a_bug_is_a_failed_backend() {
    let a = Arc::new(Fake::with("a", &["x"]).acting([Act::Panic]));
    let b = Arc::new(Fake::with("b", &["x"]).acting([Act::LoseOne]));
    let c = Arc::new(Fake::with("c", &["x"]));
    let outcomes = fetch(&shards(&[&a, &b, &c]), &["x"]).await;
    assert_eq!(names(&outcomes[0]), ["x"]);
    assert_eq!(failures(&outcomes[0]).iter().map(BackendError::backend).collect::<Vec<_>>(), [&id("a"), &id("b")]);
}

#[tokio::test]
async fn a_healthy_replica_is_enough() {
    let a = Arc::new(Fake::with("a", &["x"]));
    let b = Arc::new(Fake::with("b", &["x"]));
    let federation = replicas(FIRST, &[&a, &b]);
    for _ in 0..3 {
        assert_eq!(names(&fetch(&federation, &["x"]).await[0]), ["x"]);
    }
    assert_eq!((a.calls().len(), b.calls().len()), (3, 0));

    let rotating = GroupKind::AnyReplica { hedge_after: None, order: Order::Rotating };
    let federation = replicas(rotating, &[&a, &b]);
    for _ in 0..4 {
        fetch(&federation, &["x"]).await;
    }
    assert_eq!((a.calls().len(), b.calls().len()), (5, 2));
}

#[tokio::test]
async fn a_replica_takes_over_what_failed() {
    let a = Arc::new(Fake::with("a", &["x", "y"]).acting([Act::FailFor("y", refused("a"))]));
    let b = Arc::new(Fake::with("b", &["x", "y"]).acting([Act::Fail(refused("b"))]));
    let c = Arc::new(Fake::with("c", &["x", "y"]));
    let federation = replicas(FIRST, &[&a, &b, &c]);
    let outcomes = fetch(&federation, &["x", "y"]).await;
    // Another replica answered: the answer is whole.
    assert_eq!((names(&outcomes[1]), failures(&outcomes[1])), (vec!["y"], &[][..]));
    assert_eq!(a.calls(), [["x", "y"]]);
    assert_eq!(b.calls(), [["y"]]);
    assert_eq!(c.calls(), [["y"]]);
    assert_eq!(federation.stats().failovers.get(), 2);
    assert_eq!(federation.stats().hedges.get(), 0);
}

#[tokio::test]
async fn all_replicas_fail() {
    let a = Arc::new(Fake::with("a", &["x"]).acting([Act::Fail(refused("a"))]));
    let b = Arc::new(Fake::with("b", &["x"]).acting([Act::Fail(refused("b"))]));
    let outcomes = fetch(&replicas(FIRST, &[&a, &b]), &["x"]).await;
    assert_eq!(outcomes[0].as_ref().expect_err("nobody answered").failures(), [refused("a"), refused("b")]);
}

#[tokio::test]
async fn a_flaky_replica_does_not_change_the_answer() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let a = Arc::new(Fake::new("a", vec![series("x", &values)]));
    let flaky = [Act::Fail(refused("b")), Act::Answer, Act::Fail(refused("b")), Act::Answer];
    let b = Arc::new(Fake::new("b", vec![series("x", &values)]).acting(flaky));
    let federation = replicas(GroupKind::AllReplicas, &[&a, &b]);
    for round in 0..4 {
        let outcomes = fetch(&federation, &["x"]).await;
        assert_eq!(outcomes[0].as_ref().expect("found").series[0].values(), values);
        assert_eq!(failures(&outcomes[0]).len(), usize::from(round % 2 == 0));
    }
}

#[tokio::test]
async fn replicas_are_merged() {
    let a = Arc::new(Fake::new("a", vec![series("x", &[1.0, f64::NAN, 3.0])]));
    let b = Arc::new(Fake::new("b", vec![series("x", &[1.0, 2.0, 7.0])]));
    let c = Arc::new(Fake::new("c", vec![series("x", &[1.0, 2.0, 3.0])]));
    let federation = replicas(GroupKind::AllReplicas, &[&a, &b, &c]);
    let outcomes = fetch(&federation, &["x"]).await;
    assert_eq!(outcomes[0].as_ref().expect("found").series[0].values(), [1.0, 2.0, 3.0]);
    assert_eq!(federation.stats().mismatches.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_replica_is_hedged_and_the_loser_cancelled() {
    let second = Duration::from_secs(1);
    let slow = Arc::new(Fake::with("slow", &["x"]).acting([Act::AnswerAfter(2 * second)]));
    let fast = Arc::new(Fake::with("fast", &["x"]).acting([Act::AnswerAfter(second / 100)]));
    let hedged = GroupKind::AnyReplica { hedge_after: Some(second / 10), order: Order::Listed };
    let federation = replicas(hedged, &[&slow, &fast]);
    let scope = scope();
    let outcomes = federation.fetch(&[selector("x")], &scope, Limits::default()).await.expect("within the limits");
    assert_eq!((names(&outcomes[0]), failures(&outcomes[0])), (vec!["x"], &[][..]));
    assert_eq!(scope.left(), Duration::from_millis(60_000 - 110));
    assert_eq!((federation.stats().hedges.get(), federation.stats().failovers.get()), (1, 0));
    slow.in_flight().wait_for(|n| *n == 0).await.expect("the backend lives");

    // Without a hedge the slow one is waited for.
    let outcomes = fetch(&replicas(FIRST, &[&slow, &fast]), &["x"]).await;
    assert_eq!(names(&outcomes[0]), ["x"]);
    assert_eq!(fast.calls().len(), 1);
    assert_eq!(slow.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_hedged_wins_when_the_hedge_fails() {
    let second = Duration::from_secs(1);
    let slow = Arc::new(Fake::with("slow", &["x"]).acting([Act::AnswerAfter(2 * second)]));
    let bad = Arc::new(Fake::with("bad", &["x"]).acting([Act::Fail(refused("bad"))]));
    let hedged = GroupKind::AnyReplica { hedge_after: Some(second), order: Order::Listed };
    let outcomes = fetch(&replicas(hedged, &[&slow, &bad]), &["x"]).await;
    assert_eq!((names(&outcomes[0]), failures(&outcomes[0])), (vec!["x"], &[][..]));
}

#[tokio::test]
async fn too_few_backends() {
    let a = Arc::new(Fake::with("a", &["x.a"]));
    let b = Arc::new(Fake::with("b", &["x.b"]).acting([Act::Fail(refused("b"))]));
    let strict = Group { min_available: 2, ..group("east", GroupKind::Shards, &[&a, &b]) };
    let federation = federation(vec![strict]);
    let outcomes = fetch(&federation, &["x.*"]).await;
    let error = outcomes[0].as_ref().expect_err("too few");
    assert_eq!(error.to_string(), "1 of the 2 needed backends of group east answered: b refused the request: 503");
    assert!(federation.find(&find_query("*"), &scope()).await.is_err());
    b.act([Act::Answer]);
    assert_eq!(names(&fetch(&federation, &["x.*"]).await[0]), ["x.a", "x.b"]);
}

#[tokio::test]
async fn patterns_go_where_they_can_be_answered() {
    let plain = Arc::new(Fake::with("plain", &["x;host=a"]));
    let tagged = Arc::new(Fake::with("tagged", &["x;host=a"]).tagged());
    let apps = Arc::new(Fake::with("apps", &["apps.web.load"]));
    let events = Arc::new(Fake::with("events", &[]));
    let federation = Federation::on(
        Handle::current(),
        vec![
            group("east", GroupKind::Shards, &[&plain, &tagged]),
            Group { prefixes: vec!["apps.web".to_owned()], ..group("apps", GroupKind::Shards, &[&apps]) },
        ],
        Some(events.clone()),
    );
    let tags = "seriesByTag(\"host=a\")";
    let patterns = ["events(\"a\")", tags, "servers.*", "apps.*.load", "*.{web,db}.x", "apps.db.x", "**.load", "apps"];
    let outcomes = fetch(&federation, &patterns).await;
    assert_eq!(events.calls(), [["events(\"a\")"]]);
    assert_eq!(tagged.calls(), [patterns[1..].to_vec()]);
    assert_eq!(plain.calls(), [patterns[2..].to_vec()]);
    assert_eq!(apps.calls(), [["apps.*.load", "*.{web,db}.x", "**.load"]]);
    assert_eq!(names(&outcomes[1]), ["x;host=a"]);

    let found = federation.find(&find_query("apps"), &scope()).await.expect("found");
    assert_eq!(found.value, [FoundNode::branch("apps")]);
    federation.find(&find_query("servers.*"), &scope()).await.expect("found");
    assert_eq!(apps.calls().len(), 2);
}

#[tokio::test]
async fn nobody_to_ask_is_empty() {
    let plain = Arc::new(Fake::with("plain", &["x"]));
    let federation = shards(&[&plain]);
    for outcome in fetch(&federation, &["events()", "seriesByTag(\"name=x\")"]).await {
        assert!(names(&outcome).is_empty() && failures(&outcome).is_empty());
    }
    assert!(plain.calls().is_empty());
}

#[tokio::test]
async fn a_huge_answer_is_refused_while_others_are_waited_for() {
    let big = Arc::new(Fake::with("big", &["x.1", "x.2", "x.3"]));
    let hanging = Arc::new(Fake::with("hanging", &[]).acting([Act::Hang]));
    let federation = shards(&[&hanging, &big]);
    let room = Limits { series: 2, ..Limits::default() };
    let error = federation.fetch(&[selector("x.*")], &scope(), room).await.expect_err("too large");
    assert_eq!(error.to_string(), "the request matches more than 2 series (big)");
    hanging.in_flight().wait_for(|n| *n == 0).await.expect("the backend lives");

    let a = Arc::new(Fake::with("a", &["x.1", "x.2"]));
    let b = Arc::new(Fake::with("b", &["x.3"]));
    let mut map = RequestMap::new(room);
    let error = shards(&[&a, &b]).fill(&mut map, &[selector("x.*")], &scope()).await.expect_err("too large");
    assert_eq!((error.limit, error.unit, error.backend), (2, "series", None));

    // What a shard itself stopped at is not a partial answer.
    let endless = endless("c");
    let federation = shards(&[&endless, &a]);
    assert!(federation.fetch(&[selector("x.1")], &scope(), Limits::default()).await.is_err());
    assert!(matches!(federation.find(&find_query("x"), &scope()).await, Err(FetchError::TooLarge(_))));
}

/// A backend whose answers do not end.
fn endless(name: &str) -> Arc<Fake> {
    let error = BackendError::TooLarge { backend: id(name), limit: 10, unit: "bytes" };
    Arc::new(Fake::with(name, &["x"]).acting([Act::Fail(error)]))
}

#[tokio::test(start_paused = true)]
async fn one_more_replica_is_asked_when_an_answer_is_too_large() {
    let try_fetch = async |federation: &Federation, room: Limits| {
        federation.fetch(&[selector("x"), selector("y")], &scope(), room).await
    };
    let all = Limits::default();
    let (large, well) = (endless("large"), Arc::new(Fake::with("well", &["x"])));
    let federation = replicas(FIRST, &[&large, &well]);
    let outcomes = try_fetch(&federation, all).await.expect("the other has it");
    assert_eq!((names(&outcomes[0]), failures(&outcomes[0])), (vec!["x"], &[][..]));
    assert!(federation.find(&find_query("x"), &scope()).await.is_ok());
    // It is not asked first for ever.
    try_fetch(&federation, all).await.expect("the other has it");
    try_fetch(&federation, all).await.expect("the other has it");
    assert_eq!((large.calls().len(), well.calls().len()), (3, 4));
    tokio::time::advance(Duration::from_secs(5)).await;
    try_fetch(&federation, all).await.expect("the other has it");
    assert_eq!(large.calls().len(), 4);

    // The question is to blame when two say so, and nobody else is asked.
    let (other, third) = (endless("other"), Arc::new(Fake::with("third", &["x"])));
    let federation = replicas(FIRST, &[&large, &other, &third]);
    for _ in 0..4 {
        assert!(try_fetch(&federation, all).await.is_err());
    }
    assert_eq!((third.calls().len(), other.calls().len()), (0, 4));
    // So it is when the one more fails.
    let down = Arc::new(Fake::with("down", &[]).acting([Act::Fail(refused("down"))]));
    assert!(try_fetch(&replicas(FIRST, &[&large, &down, &third]), all).await.is_err());
    assert_eq!(third.calls().len(), 0);
    // One that fails before is not the one more.
    assert!(try_fetch(&replicas(FIRST, &[&down, &large, &third]), all).await.is_ok());
    // More than the request may fetch is too much wherever it comes from.
    let (a, b) = (Arc::new(Fake::with("a", &["x", "y"])), Arc::new(Fake::with("b", &["x", "y"])));
    let room = Limits { series: 1, ..all };
    let error = try_fetch(&replicas(FIRST, &[&a, &b, &third]), room).await.expect_err("too large");
    assert_eq!((error.unit, third.calls().len()), ("series", 1));

    // Replicas that are all asked make up for each other, and what may be missing is said.
    let outcomes = try_fetch(&replicas(GroupKind::AllReplicas, &[&large, &well]), all).await.expect("the other has it");
    assert_eq!((names(&outcomes[0]), failures(&outcomes[0]).len()), (vec!["x"], 1));
    assert!(try_fetch(&replicas(GroupKind::AllReplicas, &[&large, &down, &other]), all).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_hangs_is_asked_last_for_a_while() {
    let milliseconds = Duration::from_millis;
    let hung = Arc::new(Fake::with("hung", &["x"]).acting([Act::Hang]));
    let fast = Arc::new(Fake::with("fast", &["x"]).acting([Act::AnswerAfter(milliseconds(10))]));
    let hedged = GroupKind::AnyReplica { hedge_after: Some(milliseconds(100)), order: Order::Listed };
    let federation = replicas(hedged, &[&hung, &fast]);
    let time = async || {
        let began = Instant::now();
        assert_eq!(names(&fetch(&federation, &["x"]).await[0]), ["x"]);
        began.elapsed()
    };
    for _ in 0..3 {
        assert_eq!(time().await, milliseconds(110));
    }
    for _ in 0..3 {
        assert_eq!(time().await, milliseconds(10));
    }
    assert_eq!(hung.calls().len(), 3);
    // It is not shut out: it answers when the other cannot.
    fast.act([Act::Fail(refused("fast"))]);
    hung.act([Act::AnswerAfter(milliseconds(90)), Act::Hang]);
    assert_eq!(time().await, milliseconds(90));
    // That was well, and it is the first again.
    fast.act([Act::AnswerAfter(milliseconds(10))]);
    for _ in 0..3 {
        assert_eq!(time().await, milliseconds(110));
    }
    assert_eq!(time().await, milliseconds(10));
    // After its rest one request tries it; others do not wait for how that ends.
    tokio::time::advance(Duration::from_secs(5)).await;
    let (probe, other) = tokio::join!(time(), time());
    assert_eq!((probe, other), (milliseconds(110), milliseconds(10)));
    assert_eq!(time().await, milliseconds(10));
    // Once it is well it leads.
    hung.act([Act::AnswerAfter(milliseconds(20))]);
    tokio::time::advance(Duration::from_secs(5)).await;
    for _ in 0..4 {
        assert_eq!(time().await, milliseconds(20));
    }
}

#[test]
fn a_cancelled_fetch_leaves_nothing_behind() {
    let hanging: Vec<Arc<Fake>> =
        (0..3).map(|i| Arc::new(Fake::with(&format!("b{i}"), &["x"]).tagged().acting([Act::Hang]))).collect();
    let refs: Vec<&Arc<Fake>> = hanging.iter().collect();
    let hedged = GroupKind::AnyReplica { hedge_after: Some(Duration::ZERO), order: Order::Listed };
    let groups = vec![group("a", GroupKind::Shards, &refs), group("b", hedged, &refs)];
    let federation = Federation::new(groups, None, 2).expect("threads");
    // The caller's side needs no runtime.
    futures::executor::block_on(async {
        let (selectors, limits, scope) = ([selector("x")], TagLimits::default(), scope());
        let mut seen: Vec<_> = hanging.iter().map(|b| b.in_flight()).collect();
        for round in 0..1000 {
            let mut fetch = Box::pin(federation.fetch(&selectors, &scope, Limits::default()));
            let mut find = Box::pin(federation.tags(&limits, &scope));
            assert!((&mut fetch).now_or_never().is_none());
            assert!((&mut find).now_or_never().is_none());
            if round % 100 == 0 {
                for seen in &mut seen {
                    seen.wait_for(|n| *n > 0).await.expect("the backend lives");
                }
            }
        }
    });
    // Tasks end a moment after they were told to.
    let going_on = || {
        let calls: u64 = federation.backends().map(|(_, _, stats)| stats.in_flight.get()).sum();
        federation.stats().in_flight.get() + calls + hanging.iter().map(|b| *b.in_flight().borrow() as u64).sum::<u64>()
    };
    while going_on() > 0 {
        std::thread::yield_now();
    }
    assert!(hanging.iter().all(|b| !b.calls().is_empty()));
}

#[tokio::test]
async fn an_owned_runtime_may_be_dropped_on_another_one() {
    let a = Arc::new(Fake::with("a", &["x"]));
    let federation = Federation::new(vec![group("east", GroupKind::Shards, &[&a])], None, 1).expect("threads");
    assert_eq!(names(&fetch(&federation, &["x"]).await[0]), ["x"]);
    drop(federation);
}

#[tokio::test]
async fn found_nodes_are_united() {
    let a = Arc::new(Fake::with("a", &["x.a.b", "x.c"]));
    let b = Arc::new(Fake::with("b", &["x.a", "x.c"]));
    let c = Arc::new(Fake::with("c", &["x.d"]).without_finder());
    let federation = shards(&[&a, &b, &c]);
    let found = federation.find(&find_query("x.*"), &scope()).await.expect("found");
    let nodes: Vec<(&str, bool)> = found.value.iter().map(|n| (n.path.as_str(), n.leaf)).collect();
    assert_eq!(nodes, [("x.a", false), ("x.a", true), ("x.c", true)]);
    assert!(found.failures.is_empty());
    assert_eq!(c.calls().len(), 0);
    assert_eq!(federation.index(&scope()).await.expect("found").value, ["x.a", "x.a.b", "x.c"]);
}

#[tokio::test]
async fn a_replica_answers_a_look_up() {
    let a = Arc::new(Fake::with("a", &["x"]).acting([Act::Fail(refused("a"))]));
    let b = Arc::new(Fake::with("b", &["x"]));
    let c = Arc::new(Fake::with("c", &["x"]));
    let found = replicas(FIRST, &[&a, &b, &c]).find(&find_query("x"), &scope()).await.expect("found");
    assert_eq!((found.value.len(), found.failures.len()), (1, 0));
    assert_eq!((a.calls().len(), b.calls().len(), c.calls().len()), (1, 1, 0));
}

#[tokio::test]
async fn tags_of_all_backends() {
    let a = Arc::new(Fake::with("a", &["x;dc=eu;host=1", "x;dc=eu;host=2"]).tagged());
    let b = Arc::new(Fake::with("b", &["y;dc=eu;rack=3", "y;dc=us"]).tagged());
    let plain = Arc::new(Fake::with("plain", &["z;color=red"]));
    let federation = shards(&[&a, &plain, &b]);
    let (all, scope) = (TagLimits::default(), scope());
    assert_eq!(federation.tags(&all, &scope).await.expect("found").value, ["dc", "host", "name", "rack"]);
    let limits = TagLimits { limit: Some(1), ..TagLimits::default() };
    assert_eq!(federation.tags(&limits, &scope).await.expect("found").value, ["dc"]);
    let limits = TagLimits { prefix: Some("n".to_owned()), ..TagLimits::default() };
    assert_eq!(federation.complete_tags(&[], &limits, &scope).await.expect("found").value, ["name"]);

    let counted = |list: &[(&str, u64)]| Some(list.iter().map(|(v, n)| ((*v).to_owned(), *n)).collect::<Vec<_>>());
    let values = federation.tag_values("dc", &all, &scope).await.expect("found").value;
    assert_eq!(values, counted(&[("eu", 3), ("us", 1)]));
    let values = federation.tag_values("dc", &limits_of(Some("u"), 9), &scope).await.expect("found").value;
    assert_eq!(values, counted(&[("us", 1)]));
    assert_eq!(federation.tag_values("color", &all, &scope).await.expect("found").value, None);
    let same = replicas(GroupKind::AllReplicas, &[&a, &a]);
    assert_eq!(same.tag_values("dc", &all, &scope).await.expect("found").value, counted(&[("eu", 2)]));

    let series = federation.find_series(&["dc=eu".to_owned()], &scope).await.expect("found").value;
    assert_eq!(series, ["x;dc=eu;host=1", "x;dc=eu;host=2", "y;dc=eu;rack=3"]);
    let values = federation.complete_values(&[], "host", &limits_of(None, 1), &scope).await.expect("found").value;
    assert_eq!(values, ["1"]);
    assert!(plain.calls().is_empty());
}

fn limits_of(prefix: Option<&str>, limit: usize) -> TagLimits {
    TagLimits { prefix: prefix.map(str::to_owned), filter: None, limit: Some(limit) }
}

#[tokio::test]
async fn tag_values_without_one_group() {
    let a = Arc::new(Fake::with("a", &["x;dc=eu"]).tagged());
    let b = Arc::new(Fake::with("b", &["x;dc=us"]).tagged().acting([Act::Fail(timeout("b"))]));
    let federation = federation(vec![group("a", GroupKind::Shards, &[&a]), group("b", GroupKind::Shards, &[&b])]);
    let values = federation.complete_values(&[], "dc", &limits_of(None, 100), &scope()).await.expect("partial");
    assert_eq!((values.value, values.failures), (vec!["eu".to_owned()], vec![timeout("b")]));
    a.act([Act::Fail(timeout("a"))]);
    let error = federation.complete_values(&[], "dc", &limits_of(None, 100), &scope()).await.expect_err("all failed");
    assert!(error.is_timeout());
}

#[tokio::test]
async fn a_wrong_question_is_nobodys_failure() {
    let bad = |name| BackendError::BadQuery { backend: id(name), reason: "no such operator".to_owned() };
    let a = Arc::new(Fake::with("a", &["x;dc=eu"]).tagged().acting([Act::Fail(bad("a"))]));
    let b = Arc::new(Fake::with("b", &["x;dc=us"]).tagged().acting([Act::Fail(timeout("b"))]));
    let federation = shards(&[&a, &b]);
    let error = federation.find_series(&["dc=~(".to_owned()], &scope()).await.expect_err("wrong");
    assert_eq!(error, FetchError::BadQuery { reason: "no such operator".to_owned() });
    let failed: Vec<u64> = federation.backends().map(|(_, _, stats)| stats.failures.get()).collect();
    assert_eq!(failed, [0, 1]);
}

#[tokio::test]
async fn edits_go_to_the_first_editor() {
    let plain = Arc::new(Fake::with("plain", &[]));
    let a = Arc::new(Fake::with("a", &[]).tagged());
    let b = Arc::new(Fake::with("b", &[]).tagged());
    let federation = shards(&[&plain, &a, &b]);
    assert_eq!(federation.tag_series("x;k=v", &scope()).await, Some(Ok("x;k=v".to_owned())));
    assert_eq!(federation.del_series("x;k=v", &scope()).await, Some(Ok(())));
    assert_eq!(a.calls(), [["tag x;k=v"], ["delete x;k=v"]]);
    assert!(b.calls().is_empty());
    assert_eq!(shards(&[&plain]).tag_series("x;k=v", &scope()).await, None);
}
