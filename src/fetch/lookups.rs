//! Federated look-ups: names, tags and values of all backends as one list.
//!
//! Each backend that can answer is asked with the same limits; as its list is sorted, the first entries of the union
//! are among the first entries of the lists. The prefix and the limit are applied to the union once more, so that a
//! backend that ignores them does no harm. A `filter` is left to the backends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::ask::Question;
use super::{ByGroup, Federation, FetchError, GroupKind, GroupState, Inner};
use crate::backend::{Backend, BackendError, FindQuery, Finder, FoundNode, Scope, TagEditor, TagLimits, TagSource};

/// An answer with the failures of backends that could have added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers<T> {
    /// What the others said, united.
    pub value: T,
    /// Backends that failed, each failure once, sorted by backend.
    pub failures: Vec<BackendError>,
}

impl<T> Answers<T> {
    fn map<U>(self, f: impl FnOnce(T) -> U) -> Answers<U> {
        Answers { value: f(self.value), failures: self.failures }
    }
}

type Asked<'a, T> = BoxFuture<'a, Result<T, BackendError>>;

/// A question with one item, and its arguments.
struct OneQuestion<A, T> {
    arguments: A,
    suits: fn(&dyn Backend) -> bool,
    ask: for<'a> fn(&'a dyn Backend, &'a A, &'a Scope) -> Asked<'a, T>,
    scope: Scope,
}

impl<A: Send + Sync + 'static, T: Clone + Send + 'static> Question for OneQuestion<A, T> {
    type Reply = T;

    fn deadline(&self) -> Instant {
        self.scope.deadline
    }

    fn suits(&self, backend: &dyn Backend, _item: usize) -> bool {
        (self.suits)(backend)
    }

    async fn ask(&self, backend: &dyn Backend, items: &[usize]) -> Vec<Result<T, BackendError>> {
        let reply = (self.ask)(backend, &self.arguments, &self.scope).await;
        debug_assert_eq!(items.len(), 1, "a look-up has one item");
        vec![reply]
    }
}

/// Asks the finder of a backend that has one.
fn finder<'a, T: Default + Send + 'a>(
    backend: &'a dyn Backend,
    ask: impl FnOnce(&'a dyn Finder) -> Asked<'a, T>,
) -> Asked<'a, T> {
    backend.finder().map_or_else(|| Box::pin(async { Ok(T::default()) }), ask)
}

/// Asks the tags of a backend that has them.
fn tags<'a, T: Default + Send + 'a>(
    backend: &'a dyn Backend,
    ask: impl FnOnce(&'a dyn TagSource) -> Asked<'a, T>,
) -> Asked<'a, T> {
    backend.tags().map_or_else(|| Box::pin(async { Ok(T::default()) }), ask)
}

fn has_finder(backend: &dyn Backend) -> bool {
    backend.finder().is_some()
}

fn has_tags(backend: &dyn Backend) -> bool {
    backend.tags().is_some()
}

impl Inner {
    async fn look_up<A: Send + Sync + 'static, T: Clone + Send + 'static>(
        &self,
        question: OneQuestion<A, T>,
        routed: impl Fn(&GroupState) -> bool,
    ) -> Result<Answers<ByGroup<T>>, FetchError> {
        let _going_on = self.stats.in_flight.enter();
        self.stats.lookups.add(1);
        let groups: Vec<_> = self.groups.iter().filter(|group| routed(group)).map(|group| (group, vec![0])).collect();
        let gathered = self.gather(Arc::new(question), groups, 1).await?.pop().unwrap_or_default();
        let (value, failures) = gathered.outcome().inspect_err(|_| self.stats.failed.add(1))?;
        self.stats.partial.add(u64::from(!failures.is_empty()));
        Ok(Answers { value, failures })
    }
}

impl Federation {
    async fn look_up<A: Send + Sync + 'static, T: Clone + Send + 'static>(
        &self,
        question: OneQuestion<A, T>,
        routed: impl Fn(&GroupState) -> bool + Send + Sync + 'static,
    ) -> Result<Answers<Vec<T>>, FetchError> {
        let found = self.look_up_by_group(question, routed).await?;
        Ok(found.map(|groups| groups.into_iter().flat_map(|(_, replies)| replies).collect()))
    }

    async fn look_up_by_group<A: Send + Sync + 'static, T: Clone + Send + 'static>(
        &self,
        question: OneQuestion<A, T>,
        routed: impl Fn(&GroupState) -> bool + Send + Sync + 'static,
    ) -> Result<Answers<ByGroup<T>>, FetchError> {
        self.run(move |inner| async move { inner.look_up(question, routed).await }).await
    }

    /// The nodes that match, of all backends: sorted by path, each once. A name that is a branch on one backend and a
    /// leaf on another comes as both, the branch first.
    ///
    /// # Errors
    /// As for all look-ups: no backend answered, or a group has too few that did.
    pub async fn find(&self, query: &FindQuery, scope: &Scope) -> Result<Answers<Vec<FoundNode>>, FetchError> {
        let question = OneQuestion {
            arguments: query.clone(),
            suits: has_finder,
            ask: |backend, query, scope| finder(backend, |finder| finder.find(query, scope)),
            scope: scope.clone(),
        };
        let pattern = query.pattern.clone();
        let found = self.look_up(question, move |group| group.may_have(&pattern, true)).await?;
        Ok(found.map(united_nodes))
    }

    /// The names of all series of all backends, sorted.
    ///
    /// # Errors
    /// As [`Federation::find`].
    pub async fn index(&self, scope: &Scope) -> Result<Answers<Vec<String>>, FetchError> {
        let question = OneQuestion {
            arguments: (),
            suits: has_finder,
            ask: |backend, (), scope| finder(backend, |finder| finder.index(scope)),
            scope: scope.clone(),
        };
        Ok(self.look_up(question, |_| true).await?.map(united))
    }

    /// All tag names, sorted.
    ///
    /// # Errors
    /// As [`Federation::find`].
    pub async fn tags(&self, limits: &TagLimits, scope: &Scope) -> Result<Answers<Vec<String>>, FetchError> {
        let question = OneQuestion {
            arguments: limits.clone(),
            suits: has_tags,
            ask: |backend, limits, scope| tags(backend, |tags| tags.list(limits, scope)),
            scope: scope.clone(),
        };
        Ok(self.look_up(question, |_| true).await?.map(|lists| limited(united(lists), limits)))
    }

    /// The values of a tag, sorted, with the number of series that have each, over all backends. Replicas of a group
    /// have the same series, so their counts are not added: the greatest counts. `None` when no backend has the tag.
    ///
    /// # Errors
    /// As [`Federation::find`].
    pub async fn tag_values(
        &self,
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Answers<Option<Vec<(String, u64)>>>, FetchError> {
        let question = OneQuestion {
            arguments: (tag.to_owned(), limits.clone()),
            suits: has_tags,
            ask: |backend, (tag, limits), scope| tags(backend, |tags| tags.values(tag, limits, scope)),
            scope: scope.clone(),
        };
        let found = self.look_up_by_group(question, |_| true).await?;
        Ok(found.map(|groups| {
            let mut counts: Option<BTreeMap<String, u64>> = None;
            for (kind, lists) in groups {
                let known = lists.iter().any(Option::is_some);
                let mut of_group: BTreeMap<String, u64> = BTreeMap::new();
                for (value, count) in lists.into_iter().flatten().flatten() {
                    let sum = of_group.entry(value).or_default();
                    *sum = if kind == GroupKind::AllReplicas { count.max(*sum) } else { sum.saturating_add(count) };
                }
                if known {
                    let counts = counts.get_or_insert_default();
                    for (value, count) in of_group {
                        let sum = counts.entry(value).or_default();
                        *sum = sum.saturating_add(count);
                    }
                }
            }
            counts.map(|counts| limited_by(counts.into_iter().collect(), |(value, _)| value, limits))
        }))
    }

    /// The names of the series that satisfy all expressions, sorted.
    ///
    /// # Errors
    /// As [`Federation::find`].
    pub async fn find_series(&self, expressions: &[String], scope: &Scope) -> Result<Answers<Vec<String>>, FetchError> {
        let question = OneQuestion {
            arguments: expressions.to_vec(),
            suits: has_tags,
            ask: |backend, expressions, scope| tags(backend, |tags| tags.find_series(expressions, scope)),
            scope: scope.clone(),
        };
        Ok(self.look_up(question, |_| true).await?.map(united))
    }

    /// The tag names that complete a query, sorted (see [`TagSource::complete_tags`]).
    ///
    /// # Errors
    /// As [`Federation::find`].
    pub async fn complete_tags(
        &self,
        expressions: &[String],
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Answers<Vec<String>>, FetchError> {
        let question = OneQuestion {
            arguments: (expressions.to_vec(), limits.clone()),
            suits: has_tags,
            ask: |backend, (expressions, limits), scope| {
                tags(backend, |tags| tags.complete_tags(expressions, limits, scope))
            },
            scope: scope.clone(),
        };
        Ok(self.look_up(question, |_| true).await?.map(|lists| limited(united(lists), limits)))
    }

    /// The values of a tag that complete a query, sorted (see [`TagSource::complete_values`]).
    ///
    /// # Errors
    /// As [`Federation::find`].
    pub async fn complete_values(
        &self,
        expressions: &[String],
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Answers<Vec<String>>, FetchError> {
        let question = OneQuestion {
            arguments: (expressions.to_vec(), tag.to_owned(), limits.clone()),
            suits: has_tags,
            ask: |backend, (expressions, tag, limits), scope| {
                tags(backend, |tags| tags.complete_values(expressions, tag, limits, scope))
            },
            scope: scope.clone(),
        };
        Ok(self.look_up(question, |_| true).await?.map(|lists| limited(united(lists), limits)))
    }

    /// Adds a series to the tag index of the first backend that lets clients do that (see [`TagEditor::tag_series`]).
    /// `None` when there is no such backend.
    ///
    /// # Errors
    /// As of that backend.
    pub async fn tag_series(&self, name: &str, scope: &Scope) -> Option<Result<String, BackendError>> {
        self.edit(name, scope, |editor, name, scope| editor.tag_series(name, scope)).await
    }

    /// Takes a series out of that tag index (see [`TagEditor::del_series`]). `None` when there is none.
    ///
    /// # Errors
    /// As of that backend.
    pub async fn del_series(&self, name: &str, scope: &Scope) -> Option<Result<(), BackendError>> {
        self.edit(name, scope, |editor, name, scope| editor.del_series(name, scope)).await
    }

    async fn edit<T: Send + 'static>(
        &self,
        name: &str,
        scope: &Scope,
        edit: Edit<T>,
    ) -> Option<Result<T, BackendError>> {
        let (_, backend, _) = self.backends().find(|(_, backend, _)| backend.tag_editor().is_some())?;
        let (backend, name, scope) = (backend.clone(), name.to_owned(), scope.clone());
        self.run(move |_| async move {
            let edited = edit(backend.tag_editor()?, &name, &scope);
            let timeout = |_| Err(BackendError::Timeout { backend: backend.id().clone() });
            Some(tokio::time::timeout_at(scope.deadline, edited).await.unwrap_or_else(timeout))
        })
        .await
    }
}

type Edit<T> = for<'a> fn(&'a dyn TagEditor, &'a str, &'a Scope) -> Asked<'a, T>;

/// The lists as one: sorted, each entry once.
fn united<T: Ord>(lists: Vec<Vec<T>>) -> Vec<T> {
    lists.into_iter().flatten().collect::<BTreeSet<T>>().into_iter().collect()
}

/// The nodes as one list: sorted, each once. Its interval reaches over all that are known, and is unknown when one is.
fn united_nodes(lists: Vec<Vec<FoundNode>>) -> Vec<FoundNode> {
    let mut nodes = united(lists);
    nodes.dedup_by(|next, node| {
        let same = (&next.path, next.leaf) == (&node.path, node.leaf);
        if same {
            node.interval = match (node.interval, next.interval) {
                (Some((first, last)), Some((next_first, next_last))) => {
                    Some((first.min(next_first), last.max(next_last)))
                }
                _ => None,
            };
        }
        same
    });
    nodes
}

fn limited(names: Vec<String>, limits: &TagLimits) -> Vec<String> {
    limited_by(names, |name| name, limits)
}

fn limited_by<T>(mut entries: Vec<T>, name: fn(&T) -> &String, limits: &TagLimits) -> Vec<T> {
    if let Some(prefix) = &limits.prefix {
        entries.retain(|entry| name(entry).starts_with(prefix));
    }
    entries.truncate(limits.limit.unwrap_or(usize::MAX));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_a_node_are_joined() {
        let nodes = united_nodes(vec![
            vec![FoundNode::branch("a"), FoundNode::leaf("a").within(10, 20), FoundNode::leaf("b").within(1, 2)],
            vec![FoundNode::leaf("a").within(15, 40), FoundNode::leaf("b"), FoundNode::leaf("c").within(3, 4)],
            vec![FoundNode::leaf("a").within(5, 6)],
        ]);
        let expected = [
            FoundNode::branch("a"),
            FoundNode::leaf("a").within(5, 40),
            FoundNode::leaf("b"),
            FoundNode::leaf("c").within(3, 4),
        ];
        assert_eq!(nodes, expected);
    }
}
