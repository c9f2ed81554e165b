//! A backend for tests: in memory, counting, and failing on demand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backend::{
    Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Scope, TagEditor, TagLimits, TagSource,
};
use crate::series::{Glob, PathExpression, Selector, Series, Step, TagQuery, TimeRange};

/// What a call does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers from the series.
    Answer,
    /// Answers after a while.
    AnswerAfter(Duration),
    /// Fails.
    Fail(BackendError),
    /// Fails after a while.
    FailAfter(Duration, BackendError),
    /// Fails for patterns with this text.
    FailFor(&'static str, BackendError),
    /// Never answers.
    Hang,
    /// Panics.
    Panic,
    /// Answers one item too few.
    LoseOne,
}

pub(crate) struct Fake {
    id: BackendId,
    series: Vec<Series>,
    has_tags: bool,
    has_finder: bool,
    /// What the next calls do; the last one is for all further ones.
    acts: Mutex<VecDeque<Act>>,
    /// The selectors of each call, or one line for a look-up.
    calls: Mutex<Vec<Vec<String>>>,
    in_flight: watch::Sender<usize>,
}

pub(crate) fn id(name: &str) -> BackendId {
    BackendId::new(name)
}

pub(crate) fn refused(name: &str) -> BackendError {
    BackendError::Refused { backend: id(name), reason: "503".to_owned() }
}

pub(crate) fn timeout(name: &str) -> BackendError {
    BackendError::Timeout { backend: id(name) }
}

pub(crate) fn series(name: &str, values: &[f64]) -> Series {
    Series::new(name, 60, Step::new(60).expect("positive"), values.to_vec())
}

pub(crate) fn selector(pattern: &str) -> Selector {
    Selector { pattern: PathExpression::new(pattern), range: TimeRange::new(0, 600).expect("not empty") }
}

/// A request's scope with a minute left.
pub(crate) fn scope() -> Scope {
    Scope {
        deadline: Instant::now() + Duration::from_secs(60),
        now: 1_700_000_000,
        headers: Arc::new([]),
        request_id: "test".into(),
    }
}

impl Fake {
    pub(crate) fn new(name: &str, series: Vec<Series>) -> Self {
        Self {
            id: id(name),
            series,
            has_tags: false,
            has_finder: true,
            acts: Mutex::new(VecDeque::from([Act::Answer])),
            calls: Mutex::new(Vec::new()),
            in_flight: watch::Sender::new(0),
        }
    }

    /// With a series of one point for each name.
    pub(crate) fn with(name: &str, names: &[&str]) -> Self {
        Self::new(name, names.iter().map(|n| series(n, &[1.0])).collect())
    }

    pub(crate) fn tagged(mut self) -> Self {
        self.has_tags = true;
        self
    }

    pub(crate) fn without_finder(mut self) -> Self {
        self.has_finder = false;
        self
    }

    pub(crate) fn acting(self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.act(acts);
        self
    }

    pub(crate) fn act(&self, acts: impl IntoIterator<Item = Act>) {
        *self.acts.lock().expect("not poisoned") = acts.into_iter().collect();
    }

    pub(crate) fn calls(&self) -> Vec<Vec<String>> {
        self.calls.lock().expect("not poisoned").clone()
    }

    pub(crate) fn in_flight(&self) -> watch::Receiver<usize> {
        self.in_flight.subscribe()
    }

    fn matches(pattern: &str, series: &Series) -> bool {
        if pattern.starts_with("seriesByTag(") {
            TagQuery::from_call(pattern).expect("valid").matches(&series.tags)
        } else {
            Glob::new(pattern).expect("valid").matches(&series.name)
        }
    }

    /// Notes a call and does what is to be done; the error is of the whole call.
    async fn called(&self, what: Vec<String>) -> Result<Act, BackendError> {
        self.calls.lock().expect("not poisoned").push(what);
        self.in_flight.send_modify(|n| *n += 1);
        let _over = Over(&self.in_flight);
        let act = {
            let mut acts = self.acts.lock().expect("not poisoned");
            if acts.len() > 1 { acts.pop_front() } else { acts.front().cloned() }.expect("at least one")
        };
        match act {
            Act::AnswerAfter(delay) => tokio::time::sleep(delay).await,
            Act::Fail(error) => return Err(error),
            Act::FailAfter(delay, error) => {
                tokio::time::sleep(delay).await;
                return Err(error);
            }
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("as asked"),
            _ => {}
        }
        Ok(act)
    }
}

struct Over<'a>(&'a watch::Sender<usize>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

#[async_trait]
impl Backend for Fake {
    fn id(&self) -> &BackendId {
        &self.id
    }

    async fn fetch(&self, selectors: &[Selector], _scope: &Scope) -> Vec<Answer> {
        let patterns: Vec<String> = selectors.iter().map(|s| s.pattern.to_string()).collect();
        let act = match self.called(patterns.clone()).await {
            Ok(act) => act,
            Err(error) => return selectors.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut answers: Vec<Answer> = patterns
            .iter()
            .map(|pattern| match &act {
                Act::FailFor(text, error) if pattern.contains(text) => Err(error.clone()),
                _ => Ok(self.series.iter().filter(|s| Self::matches(pattern, s)).cloned().collect()),
            })
            .collect();
        if matches!(act, Act::LoseOne) {
            answers.pop();
        }
        answers
    }

    fn finder(&self) -> Option<&dyn Finder> {
        self.has_finder.then_some(self)
    }

    fn tags(&self) -> Option<&dyn TagSource> {
        self.has_tags.then_some(self)
    }

    fn tag_editor(&self) -> Option<&dyn TagEditor> {
        self.has_tags.then_some(self)
    }
}

/// Notes the edit and changes nothing.
#[async_trait]
impl TagEditor for Fake {
    async fn tag_series(&self, name: &str, _scope: &Scope) -> Result<String, BackendError> {
        self.called(vec![format!("tag {name}")]).await?;
        Ok(name.to_owned())
    }

    async fn del_series(&self, name: &str, _scope: &Scope) -> Result<(), BackendError> {
        self.called(vec![format!("delete {name}")]).await.map(|_| ())
    }
}

#[async_trait]
impl Finder for Fake {
    async fn find(&self, query: &FindQuery, _scope: &Scope) -> Result<Vec<FoundNode>, BackendError> {
        let range = query.range.map(|range| format!(" {range}")).unwrap_or_default();
        self.called(vec![format!("find {}{range}", query.pattern)]).await?;
        let glob = Glob::new(&query.pattern).expect("valid");
        let length = query.pattern.split('.').count();
        let mut nodes: Vec<FoundNode> = Vec::new();
        for series in &self.series {
            let parts: Vec<&str> = series.name.split('.').collect();
            let path = parts.iter().take(length).copied().collect::<Vec<_>>().join(".");
            if parts.len() >= length && glob.matches(&path) {
                nodes.push(if parts.len() == length { FoundNode::leaf(path) } else { FoundNode::branch(path) });
            }
        }
        nodes.sort();
        nodes.dedup();
        Ok(nodes)
    }

    async fn index(&self, _scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.called(vec!["index".to_owned()]).await?;
        Ok(self.series.iter().map(|s| s.name.to_string()).collect())
    }
}

/// Ignores prefix and limit, as a bad backend does; the tests see that they are applied to the union.
#[async_trait]
impl TagSource for Fake {
    async fn list(&self, _limits: &TagLimits, _scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.called(vec!["tags".to_owned()]).await?;
        let mut tags: Vec<String> = self.series.iter().flat_map(|s| s.tags.iter().map(|(t, _)| t.to_owned())).collect();
        tags.sort();
        tags.dedup();
        Ok(tags)
    }

    async fn values(
        &self,
        tag: &str,
        _limits: &TagLimits,
        _scope: &Scope,
    ) -> Result<Option<Vec<(String, u64)>>, BackendError> {
        self.called(vec![format!("values {tag}")]).await?;
        let mut counts = std::collections::BTreeMap::<String, u64>::new();
        for value in self.series.iter().filter_map(|s| s.tags.get(tag)) {
            *counts.entry(value.to_owned()).or_default() += 1;
        }
        Ok((!counts.is_empty()).then(|| counts.into_iter().collect()))
    }

    async fn find_series(&self, expressions: &[String], _scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.called(vec![format!("series {}", expressions.join(" "))]).await?;
        let query = TagQuery::new(expressions).expect("valid");
        Ok(self.series.iter().filter(|s| query.matches(&s.tags)).map(|s| s.name.to_string()).collect())
    }

    async fn complete_tags(
        &self,
        _expressions: &[String],
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        self.list(limits, scope).await
    }

    async fn complete_values(
        &self,
        _expressions: &[String],
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        let values = self.values(tag, limits, scope).await?.unwrap_or_default();
        Ok(values.into_iter().map(|(value, _)| value).collect())
    }
}
