//! What the caches ask of the backend behind them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::*;
use crate::backend::{Answer, Backend, BackendError, FindQuery, Finder, Scope, TagEditor, TagLimits, TagSource};
use crate::fetch::fake::{Act, Fake, refused, scope, selector, series, timeout};
use crate::series::{Selector, TimeRange};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn bounds(ttl: Duration) -> Bounds {
    Bounds { bytes: 1 << 20, ttl }
}

struct Caches {
    series: Arc<SeriesCache>,
    lookups: Arc<LookupCache>,
}

impl Caches {
    fn new(bounds: Bounds) -> Self {
        Self { series: Arc::new(SeriesCache::new(bounds)), lookups: Arc::new(LookupCache::new(bounds)) }
    }

    fn around(&self, inner: &Arc<Fake>) -> CachedBackend {
        CachedBackend::new(inner.clone(), self.series.clone(), self.lookups.clone())
    }
}

fn cached(inner: &Arc<Fake>) -> CachedBackend {
    Caches::new(bounds(MINUTE)).around(inner)
}

async fn fetch(backend: &CachedBackend, patterns: &[&str], scope: &Scope) -> Vec<Answer> {
    let selectors: Vec<Selector> = patterns.iter().map(|p| selector(p)).collect();
    backend.fetch(&selectors, scope).await
}

fn names(answer: &Answer) -> Vec<&str> {
    answer.as_ref().expect("answered").iter().map(|s| &*s.name).collect()
}

fn at(now: i64) -> Scope {
    Scope { now, ..scope() }
}

fn with_headers(headers: &[(&str, &str)]) -> Scope {
    Scope { headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(), ..scope() }
}

#[tokio::test]
async fn a_batch_asks_once_for_what_is_missing() {
    let inner = Arc::new(Fake::with("a", &["x", "y", "z"]));
    let caches = Caches::new(bounds(MINUTE));
    let backend = caches.around(&inner);
    fetch(&backend, &["y"], &scope()).await;
    let answers = fetch(&backend, &["x", "y", "none", "z"], &scope()).await;
    assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), [vec!["x"], vec!["y"], vec![], vec!["z"]]);
    fetch(&backend, &["none", "x"], &scope()).await;
    assert_eq!(inner.calls(), [vec!["y"], vec!["x", "none", "z"]]);
    let stats = caches.series.stats();
    assert_eq!((stats.hits.get(), stats.misses.get(), stats.joined.get()), (3, 4, 0));
}

#[tokio::test(start_paused = true)]
async fn concurrent_misses_share_one_question() {
    let inner = Arc::new(Fake::with("a", &["x", "y", "z"]).acting([Act::AnswerAfter(SECOND / 100)]));
    let caches = Caches::new(bounds(MINUTE));
    let (one, other) = (caches.around(&inner), caches.around(&inner));
    let (scope_one, scope_other) = (scope(), scope());
    let (first, second, third) = tokio::join!(
        fetch(&one, &["x", "y"], &scope_one),
        fetch(&other, &["y", "z", "x"], &scope_other),
        fetch(&one, &["z"], &scope_other),
    );
    assert_eq!(first.iter().map(names).collect::<Vec<_>>(), [["x"], ["y"]]);
    assert_eq!(second.iter().map(names).collect::<Vec<_>>(), [["y"], ["z"], ["x"]]);
    assert_eq!(names(&third[0]), ["z"]);
    assert_eq!(inner.calls(), [vec!["x", "y"], vec!["z"]]);
    assert_eq!(caches.series.stats().joined.get(), 3);
}

#[tokio::test]
async fn who_is_cancelled_hands_over() {
    let inner = Arc::new(Fake::with("a", &["x", "y"]).acting([Act::Hang, Act::Answer]));
    let backend = cached(&inner);
    let (first, second, third) = (scope(), scope(), scope());
    let mut leader = Box::pin(fetch(&backend, &["x", "y"], &first));
    assert!((&mut leader).now_or_never().is_none());
    let mut follower = Box::pin(fetch(&backend, &["y", "x"], &second));
    let mut other = Box::pin(fetch(&backend, &["x"], &third));
    assert!((&mut follower).now_or_never().is_none());
    assert!((&mut other).now_or_never().is_none());
    drop(leader);
    let (answers, other) = tokio::join!(follower, other);
    assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), [["y"], ["x"]]);
    assert_eq!(names(&other[0]), ["x"]);
    assert_eq!(inner.calls(), [["x", "y"], ["y", "x"]]);
}

#[tokio::test(start_paused = true)]
async fn errors_are_shared_but_not_kept() {
    let inner = Arc::new(Fake::with("a", &["x", "y"]).acting([Act::FailAfter(SECOND, refused("a")), Act::Answer]));
    let backend = cached(&inner);
    let (one, other) = (scope(), scope());
    let (first, second) = tokio::join!(fetch(&backend, &["x", "y"], &one), fetch(&backend, &["y"], &other));
    assert_eq!(first, [Err(refused("a")), Err(refused("a"))]);
    assert_eq!(second, [Err(refused("a"))]);
    assert_eq!(names(&fetch(&backend, &["y"], &scope()).await[0]), ["y"]);
    assert_eq!(inner.calls(), [vec!["x", "y"], vec!["y"]]);

    // The good part of a batch is kept.
    let inner = Arc::new(Fake::with("a", &["x", "y"]).acting([Act::FailFor("y", refused("a"))]));
    let backend = cached(&inner);
    fetch(&backend, &["x", "y"], &scope()).await;
    fetch(&backend, &["x", "y"], &scope()).await;
    assert_eq!(inner.calls(), [vec!["x", "y"], vec!["y"]]);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_ones_own_deadline() {
    let inner = Arc::new(Fake::with("a", &["x"]).acting([Act::AnswerAfter(10 * SECOND)]));
    let backend = cached(&inner);
    let long = scope();
    let short = Scope { deadline: long.deadline - 55 * SECOND, ..long.clone() };
    let (first, second) = tokio::join!(fetch(&backend, &["x"], &long), fetch(&backend, &["x"], &short));
    assert_eq!(names(&first[0]), ["x"]);
    assert_eq!(second, [Err(timeout("a"))]);
    assert_eq!(inner.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_has_more_time_asks_again_after_a_timeout() {
    let inner = Arc::new(Fake::with("a", &["x"]).acting([Act::AnswerAfter(5 * SECOND)]));
    let backend = cached(&inner);
    let long = scope();
    let short = Scope { deadline: long.deadline - 58 * SECOND, ..long.clone() };
    let hurried = async {
        // As a backend does that keeps its deadline.
        let in_time = tokio::time::timeout_at(short.deadline, fetch(&backend, &["x"], &short)).await;
        assert!(in_time.is_err());
    };
    let ((), patient) = tokio::join!(hurried, fetch(&backend, &["x"], &long));
    assert_eq!(names(&patient[0]), ["x"]);

    let inner = Arc::new(Fake::with("a", &["x"]).acting([Act::FailAfter(2 * SECOND, timeout("a")), Act::Answer]));
    let backend = cached(&inner);
    let long = scope();
    let short = Scope { deadline: long.deadline - 58 * SECOND, ..long.clone() };
    let (hurried, patient) = tokio::join!(fetch(&backend, &["x"], &short), fetch(&backend, &["x"], &long));
    assert_eq!(hurried, [Err(timeout("a"))]);
    assert_eq!(names(&patient[0]), ["x"]);
    assert_eq!(inner.calls().len(), 2);
}

#[tokio::test]
async fn entries_age_by_the_clock_of_the_requests() {
    let inner = Arc::new(Fake::with("a", &["x"]));
    let backend = cached(&inner);
    for (now, calls) in [(1000, 1), (1059, 1), (941, 1), (1060, 2), (1119, 2), (1000, 3), (1010, 3)] {
        assert_eq!(names(&fetch(&backend, &["x"], &at(now)).await[0]), ["x"]);
        assert_eq!(inner.calls().len(), calls, "at {now}");
    }
}

#[tokio::test]
async fn no_time_to_live_is_no_cache() {
    let inner = Arc::new(Fake::with("a", &["x"]).tagged());
    let caches = Caches::new(bounds(Duration::ZERO));
    let backend = caches.around(&inner);
    let query = FindQuery { pattern: "x".to_owned(), range: TimeRange::new(17, 133), leaves_only: false };
    for _ in 0..2 {
        assert_eq!(names(&fetch(&backend, &["x"], &scope()).await[0]), ["x"]);
        assert_eq!(backend.find(&query, &scope()).await.expect("found").len(), 1);
        assert_eq!(backend.list(&TagLimits::default(), &scope()).await.expect("found"), ["name"]);
    }
    assert_eq!(inner.calls(), [["x"], ["find x 17..133"], ["tags"], ["x"], ["find x 17..133"], ["tags"]]);
    assert_eq!((caches.series.size(), caches.lookups.size()), ((0, 0), (0, 0)));
}

#[tokio::test]
async fn everything_that_changes_the_answer_is_in_the_key() {
    let caches = Caches::new(bounds(MINUTE));
    let (a, b) = (Arc::new(Fake::with("a", &["x"])), Arc::new(Fake::with("b", &["x", "y"])));
    let (cached_a, cached_b) = (caches.around(&a), caches.around(&b));
    assert_eq!(names(&fetch(&cached_a, &["*"], &scope()).await[0]), ["x"]);
    assert_eq!(names(&fetch(&cached_b, &["*"], &scope()).await[0]), ["x", "y"]);
    let shifted = Selector { range: TimeRange::new(0, 601).expect("not empty"), ..selector("*") };
    cached_a.fetch(&[shifted], &scope()).await;
    assert_eq!(a.calls().len(), 2);

    let alice = with_headers(&[("Authorization", "alice"), ("X-Panel-Id", "1")]);
    let alice_elsewhere = with_headers(&[("x-panel-id", "2"), ("authorization", "alice")]);
    let bob = with_headers(&[("Authorization", "bob"), ("X-Panel-Id", "1")]);
    for (scope, calls) in [(&alice, 3), (&alice_elsewhere, 3), (&bob, 4), (&alice, 4)] {
        fetch(&cached_a, &["*"], scope).await;
        assert_eq!(a.calls().len(), calls);
    }
}

#[tokio::test]
async fn what_a_caller_changes_is_its_own() {
    let inner = Arc::new(Fake::new("a", vec![series("x", &[1.0, 2.0])]));
    let backend = cached(&inner);
    let mut first = fetch(&backend, &["x"], &scope()).await.remove(0).expect("answered");
    first[0].values_mut()[0] = 9.0;
    let second = fetch(&backend, &["x"], &scope()).await.remove(0).expect("answered");
    assert_eq!(second[0].values(), [1.0, 2.0]);
}

#[tokio::test]
async fn series_are_bounded_in_bytes() {
    let inner = Arc::new(Fake::new("a", vec![series("x", &[1.0; 1000])]));
    let caches = Caches::new(Bounds { bytes: 50_000, ttl: MINUTE });
    let backend = caches.around(&inner);
    for until in 1..100 {
        let selector = Selector { range: TimeRange::new(0, until).expect("not empty"), ..selector("x") };
        assert!(backend.fetch(&[selector], &scope()).await[0].is_ok());
    }
    let (bytes, entries) = caches.series.size();
    assert!(bytes <= 50_000 && (1..=6).contains(&entries), "{bytes} bytes, {entries} entries");
}

#[tokio::test]
async fn limits_and_prefixes_are_in_the_key() {
    let inner = Arc::new(Fake::with("a", &["x;dc=eu;host=a"]).tagged());
    let backend = cached(&inner);
    let limits = |limit, prefix: Option<&str>, filter: Option<&str>| TagLimits {
        prefix: prefix.map(str::to_owned),
        filter: filter.map(str::to_owned),
        limit,
    };
    let different = [
        limits(Some(1), None, None),
        limits(Some(100), None, None),
        limits(None, Some("d"), None),
        limits(None, None, Some("d")),
    ];
    for limits in &different {
        for _ in 0..2 {
            backend.list(limits, &scope()).await.expect("found");
            backend.values("dc", limits, &scope()).await.expect("found");
            backend.complete_tags(&["dc=eu".to_owned()], limits, &scope()).await.expect("found");
            backend.complete_values(&["dc=eu".to_owned()], "dc", limits, &scope()).await.expect("found");
        }
    }
    assert_eq!(inner.calls().len(), 4 * different.len());
    for expressions in [["dc=eu", "host=a"], ["dc=eu,", "host=a"], ["dc=eu", "host=a"]] {
        let expressions = expressions.map(str::to_owned);
        backend.find_series(&expressions, &scope()).await.expect("found");
    }
    assert_eq!(inner.calls().len(), 4 * different.len() + 2);
    assert_eq!(backend.values("none", &TagLimits::default(), &scope()).await, Ok(None));
    assert_eq!(backend.values("none", &TagLimits::default(), &scope()).await, Ok(None));
    assert_eq!(inner.calls().len(), 4 * different.len() + 3);
}

#[tokio::test]
async fn ranges_of_finds_are_widened() {
    let inner = Arc::new(Fake::with("a", &["x.y"]));
    let backend = cached(&inner);
    let query = |from, until, leaves_only| FindQuery {
        pattern: "x.*".to_owned(),
        range: TimeRange::new(from, until),
        leaves_only,
    };
    for (from, until) in [(61, 601), (119, 660), (60, 655)] {
        assert_eq!(backend.find(&query(from, until, false), &scope()).await.expect("found").len(), 1);
    }
    assert_eq!(inner.calls(), [["find x.* 60..660"]]);
    backend.find(&query(61, 661, false), &scope()).await.expect("found");
    backend.find(&query(61, 601, true), &scope()).await.expect("found");
    backend.find(&FindQuery { range: None, ..query(0, 1, false) }, &scope()).await.expect("found");
    assert_eq!(inner.calls().len(), 4);
    assert_eq!(backend.index(&scope()).await, Ok(vec!["x.y".to_owned()]));
    assert_eq!(backend.index(&scope()).await, Ok(vec!["x.y".to_owned()]));
    assert_eq!(inner.calls().len(), 5);
}

#[tokio::test]
async fn failed_lookups_are_not_kept() {
    let inner = Arc::new(Fake::with("a", &["x"]).acting([Act::Fail(refused("a")), Act::Answer]));
    let backend = cached(&inner);
    assert_eq!(backend.index(&scope()).await, Err(refused("a")));
    assert_eq!(backend.index(&scope()).await, Ok(vec!["x".to_owned()]));
}

#[tokio::test]
async fn an_edit_is_seen_at_once() {
    let inner = Arc::new(Fake::with("a", &["x;dc=eu"]).tagged());
    let backend = cached(&inner);
    let look = async || {
        backend.list(&TagLimits::default(), &scope()).await.expect("found");
        fetch(&backend, &["seriesByTag(\"dc=eu\")"], &scope()).await;
    };
    look().await;
    look().await;
    assert_eq!(inner.calls().len(), 2);
    assert_eq!(backend.tag_series("y;dc=us", &scope()).await, Ok("y;dc=us".to_owned()));
    look().await;
    assert_eq!(inner.calls().len(), 5);
    backend.del_series("y;dc=us", &scope()).await.expect("deleted");
    look().await;
    look().await;
    assert_eq!(inner.calls().len(), 8);
}

#[tokio::test]
async fn an_edit_that_nobody_waits_for_is_seen_too() {
    let inner = Arc::new(Fake::with("a", &["x;dc=eu"]).tagged());
    let backend = cached(&inner);
    backend.list(&TagLimits::default(), &scope()).await.expect("found");
    inner.act([Act::Hang, Act::Answer]);
    let scope = scope();
    let mut edit = backend.tag_series("y;dc=us", &scope);
    assert!((&mut edit).now_or_never().is_none());
    drop(edit);
    backend.list(&TagLimits::default(), &scope).await.expect("found");
    assert_eq!(inner.calls(), [["tags"], ["tag y;dc=us"], ["tags"]]);
}

#[test]
fn it_offers_what_its_backend_offers() {
    let plain = cached(&Arc::new(Fake::with("a", &[]).without_finder()));
    assert!(plain.finder().is_none() && plain.tags().is_none() && plain.tag_editor().is_none());
    let tagged = cached(&Arc::new(Fake::with("b", &[]).tagged()));
    assert!(tagged.finder().is_some() && tagged.tags().is_some() && tagged.tag_editor().is_some());
    assert_eq!(tagged.id().as_str(), "b");
}

#[tokio::test]
async fn an_answer_too_few_is_an_error() {
    let inner = Arc::new(Fake::with("a", &["x", "y"]).acting([Act::LoseOne]));
    let answers = fetch(&cached(&inner), &["x", "y"], &scope()).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(BackendError::Garbled { .. }))));
}
