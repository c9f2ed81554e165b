//! Events: things that happened at a time, such as deployments, with tags. Kept in SQLite, in a file or in memory.
//!
//! Everything here waits for the disk, so callers ask from a thread that may. As a backend it answers `events("a","b")`
//! patterns with counts. Invariant: the tags of an event are what its list says, each once, without blanks or commas.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use crate::backend::{Answer, Backend, BackendError, BackendId, Scope};
use crate::series::{Consolidation, Selector, Series, Step};

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewEvent {
    /// When, in seconds since the epoch.
    pub when: i64,
    /// What, in short.
    pub what: String,
    /// More about it.
    pub data: String,
    /// What it can be found by.
    pub tags: Vec<String>,
}

/// Something that happened, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub id: i64,
    /// What it is.
    pub event: NewEvent,
}

/// Which events are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// The first second, inclusive.
    pub from: i64,
    /// The last second, inclusive.
    pub until: i64,
    /// Tags that they have; any event when empty.
    pub tags: Vec<String>,
    /// One of the tags is enough.
    pub any: bool,
}

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the database of events cannot be used: {0}")]
pub struct EventsError(#[from] rusqlite::Error);

/// Where events are kept.
#[derive(Debug)]
pub struct EventStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: BackendId,
    /// The most events that are kept: without a file, memory would fill.
    most: i64,
    connection: Mutex<Connection>,
}

/// Events that are kept in memory; when there are more, the oldest numbers are forgotten.
const MOST_IN_MEMORY: i64 = 100_000;

/// The most points in an answer; longer ranges are counted in longer steps. A step of a second lasts 46 days.
const MOST_POINTS: i64 = 4_000_000;

impl EventStore {
    /// A store that forgets all at the end.
    ///
    /// # Errors
    /// SQLite refuses.
    pub fn in_memory() -> Result<Self, EventsError> {
        Self::over(Connection::open_in_memory()?, MOST_IN_MEMORY)
    }

    /// A store in a file, which is made when there is none.
    ///
    /// # Errors
    /// The file cannot be read or written, or is something else.
    pub fn open(path: &Path) -> Result<Self, EventsError> {
        let connection = Connection::open(path)?;
        // Readers do not wait for a writer, and a crash loses at most the last events.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.busy_timeout(Duration::from_secs(5))?;
        Self::over(connection, i64::MAX)
    }

    fn over(connection: Connection, most: i64) -> Result<Self, EventsError> {
        connection.execute_batch(
            "create table if not exists events (
                 id integer primary key autoincrement, time integer not null, what text not null, data text not null,
                 tags text not null);
             create index if not exists events_by_time on events (time);
             create table if not exists tags_of_events (
                 tag text not null, event integer not null, primary key (tag, event)) without rowid;
             create index if not exists tags_by_event on tags_of_events (event);",
        )?;
        let inner = Inner { id: BackendId::new("events"), most, connection: Mutex::new(connection) };
        Ok(Self(Arc::new(inner)))
    }

    /// Keeps an event and answers its number. Its tags are split at blanks and commas.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn add(&self, event: &NewEvent) -> Result<i64, EventsError> {
        let mut connection = self.0.connection();
        let transaction = connection.transaction()?;
        let tags = tags_of(event.tags.iter().map(String::as_str));
        transaction
            .prepare_cached("insert into events (time, what, data, tags) values (?1, ?2, ?3, ?4)")?
            .execute(params![event.when, event.what, event.data, tags.join(" ")])?;
        let id = transaction.last_insert_rowid();
        for tag in &tags {
            let mut statement =
                transaction.prepare_cached("insert into tags_of_events (tag, event) values (?1, ?2)")?;
            statement.execute(params![tag, id])?;
        }
        let forgotten = id.saturating_sub(self.0.most);
        if forgotten > 0 {
            transaction.prepare_cached("delete from events where id <= ?1")?.execute([forgotten])?;
            transaction.prepare_cached("delete from tags_of_events where event <= ?1")?.execute([forgotten])?;
        }
        transaction.commit()?;
        Ok(id)
    }

    /// The event of a number.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn get(&self, id: i64) -> Result<Option<Event>, EventsError> {
        let connection = self.0.connection();
        let mut statement = connection.prepare_cached("select id, time, what, data, tags from events where id = ?1")?;
        Ok(statement.query_row([id], event).optional()?)
    }

    /// The events that are wanted, by time.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn find(&self, query: &EventQuery) -> Result<Vec<Event>, EventsError> {
        let connection = self.0.connection();
        let sql = format!("select id, time, what, data, tags from events where {WANTED} order by time, id");
        let mut statement = connection.prepare_cached(&sql)?;
        let (tags, needed) = query.wanted();
        let rows = statement.query_map(
            named_params! {":from": query.from, ":until": query.until, ":tags": tags, ":needed": needed},
            event,
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// The condition that an [`EventQuery`] means.
const WANTED: &str = "time between :from and :until and (:needed = 0 or :needed <= (
     select count(*) from tags_of_events where event = events.id and tag in (select value from json_each(:tags))))";

impl EventQuery {
    /// The distinct tags as a JSON array, and how many of them an event needs.
    fn wanted(&self) -> (String, i64) {
        let tags = tags_of(self.tags.iter().map(String::as_str));
        let needed = if self.any { tags.len().min(1) } else { tags.len() };
        (serde_json::Value::from(tags).to_string(), i64::try_from(needed).unwrap_or(i64::MAX))
    }
}

/// The tags that texts name, each once.
fn tags_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut tags = Vec::new();
    for text in texts {
        for tag in text.split(|c: char| c.is_whitespace() || c == ',').filter(|tag| !tag.is_empty()) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }
    tags
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let tags: String = row.get(4)?;
    let tags = tags.split_whitespace().map(str::to_owned).collect();
    let event = NewEvent { when: row.get(1)?, what: row.get(2)?, data: row.get(3)?, tags };
    Ok(Event { id: row.get(0)?, event })
}

impl Inner {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic while it was locked has rolled its transaction back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many events there were in each step from the range's start, which is not rounded, to before its end. Where
    /// there were none the point is absent.
    fn count(&self, selector: &Selector) -> Answer {
        let Some(tags) = selector.pattern.arguments() else { return Ok(Vec::new()) };
        let name = format!("events(\"{}\")", tags.join("\", \""));
        let all = tags == ["*"];
        let (from, until) = (selector.range.from(), selector.range.until());
        let seconds = ((until - from) / MOST_POINTS + 1).min(u32::MAX.into());
        let step = Step::new(seconds).expect("at least one second");
        let query = EventQuery { from, until: until - 1, tags: if all { Vec::new() } else { tags }, any: false };
        if query.wanted().1 == 0 && !all {
            return Err(BackendError::BadQuery {
                backend: self.id.clone(),
                reason: format!("{name} names no tag; events(\"*\") counts all"),
            });
        }
        let mut values = vec![f64::NAN; usize::try_from((until - from + seconds - 1) / seconds).unwrap_or(0)];
        let counted = self.each_count(&query, seconds, |place, count| {
            if let Some(value) = usize::try_from(place).ok().and_then(|place| values.get_mut(place)) {
                *value = count as f64;
            }
        });
        counted.map_err(|error| BackendError::Unreachable {
            backend: self.id.clone(),
            reason: EventsError(error).to_string(),
        })?;
        let mut series = Series::new(name, from, step, values);
        series.path_expression = selector.pattern.as_str().into();
        series.consolidation = Consolidation::Sum;
        Ok(vec![series])
    }

    fn each_count(&self, query: &EventQuery, step: i64, mut each: impl FnMut(i64, i64)) -> rusqlite::Result<()> {
        let connection = self.connection();
        let sql = format!("select (time - :from) / :step, count(*) from events where {WANTED} group by 1");
        let mut statement = connection.prepare_cached(&sql)?;
        let (tags, needed) = query.wanted();
        let mut rows = statement.query(named_params! {
            ":from": query.from, ":until": query.until, ":tags": tags, ":needed": needed, ":step": step
        })?;
        while let Some(row) = rows.next()? {
            each(row.get(0)?, row.get(1)?);
        }
        Ok(())
    }
}

#[async_trait]
impl Backend for EventStore {
    fn id(&self) -> &BackendId {
        &self.0.id
    }

    async fn fetch(&self, selectors: &[Selector], scope: &Scope) -> Vec<Answer> {
        let (inner, asked) = (self.0.clone(), selectors.to_vec());
        let work = tokio::task::spawn_blocking(move || asked.iter().map(|s| inner.count(s)).collect::<Vec<_>>());
        match tokio::time::timeout_at(scope.deadline, work).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(error)) => {
                let error = BackendError::Unreachable { backend: self.0.id.clone(), reason: error.to_string() };
                selectors.iter().map(|_| Err(error.clone())).collect()
            }
            Err(_) => selectors.iter().map(|_| Err(BackendError::Timeout { backend: self.0.id.clone() })).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{PathExpression, TimeRange};

    fn happened(when: i64, what: &str, tags: &[&str]) -> NewEvent {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        NewEvent { when, what: what.to_owned(), data: String::new(), tags }
    }

    fn filled(store: &EventStore) {
        for event in [
            happened(100, "first", &["deploy", "web prod"]),
            happened(160, "third", &["deploy,db"]),
            happened(130, "second", &["restart"]),
            happened(160, "fourth", &[]),
        ] {
            store.add(&event).expect("kept");
        }
    }

    fn found(store: &EventStore, (from, until): (i64, i64), tags: &[&str], any: bool) -> Vec<String> {
        let query = EventQuery { from, until, tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), any };
        store.find(&query).expect("found").into_iter().map(|event| event.event.what).collect()
    }

    #[test]
    fn events_are_found_by_time_and_tags() {
        let store = EventStore::in_memory().expect("a store");
        filled(&store);
        let always = (i64::MIN, i64::MAX);
        assert_eq!(found(&store, always, &[], false), ["first", "second", "third", "fourth"]);
        assert_eq!(found(&store, (100, 130), &[], false), ["first", "second"]);
        assert_eq!(found(&store, (131, 159), &[], false), [""; 0]);
        assert_eq!(found(&store, (130, 100), &[], false), [""; 0]);
        assert_eq!(found(&store, always, &["deploy"], false), ["first", "third"]);
        assert_eq!(found(&store, always, &["deploy", "db"], false), ["third"]);
        assert_eq!(found(&store, always, &["db deploy", "db"], false), ["third"]);
        assert_eq!(found(&store, always, &["restart", "db"], false), [""; 0]);
        assert_eq!(found(&store, always, &["restart", "db", "nosuch"], true), ["second", "third"]);
        assert_eq!(found(&store, always, &["Deploy"], true), [""; 0]);
        assert_eq!(found(&store, always, &["'; drop table events; --"], true), [""; 0]);
        assert_eq!(found(&store, always, &[" "], false).len(), 4);
        let first = store.get(1).expect("read").expect("it is there");
        assert_eq!(first.event, happened(100, "first", &["deploy", "web", "prod"]));
        assert_eq!(store.get(99).expect("read"), None);
    }

    #[test]
    fn a_file_keeps_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.sqlite");
        filled(&EventStore::open(&path).expect("made"));
        let store = EventStore::open(&path).expect("opened");
        assert_eq!(found(&store, (0, 200), &["web"], false), ["first"]);
        std::fs::write(folder.path().join("other"), "this is no database, whatever its length may be")
            .expect("written");
        assert!(EventStore::open(&folder.path().join("other")).is_err());
    }

    #[test]
    fn memory_does_not_fill() {
        let mut store = EventStore::in_memory().expect("a store");
        Arc::get_mut(&mut store.0).expect("no other").most = 2;
        filled(&store);
        assert_eq!(found(&store, (0, 200), &[], false), ["second", "fourth"]);
        assert_eq!(found(&store, (0, 200), &["deploy"], false), [""; 0]);
    }

    #[test]
    fn counts_as_a_series() {
        let store = EventStore::in_memory().expect("a store");
        filled(&store);
        let count = |pattern: &str, from, until| {
            let range = TimeRange::new(from, until).expect("a range");
            store.0.count(&Selector { pattern: PathExpression::new(pattern), range })
        };
        let series = count("events(\"*\")", 99, 161).expect("counted").remove(0);
        assert_eq!((&*series.name, &*series.path_expression), ("events(\"*\")", "events(\"*\")"));
        assert_eq!((series.start(), series.step().seconds(), series.len()), (99, 1, 62));
        let known: Vec<_> = (0..62).filter(|i| !series.values()[*i].is_nan()).collect();
        assert_eq!(known, [1, 31, 61]);
        assert_eq!(series.values()[61], 2.0);
        assert_eq!(series.consolidated(62), [4.0]);
        let both = count("events('deploy',\"db\")", 100, 160).expect("counted").remove(0);
        assert_eq!(&*both.name, "events(\"deploy\", \"db\")");
        assert!(both.values().iter().all(|value| value.is_nan()) && both.len() == 60);
        assert!(matches!(count("events(\"\")", 0, 1), Err(BackendError::BadQuery { .. })));
        let long = count("events(\"*\")", -8_000_000, 1000).expect("counted").remove(0);
        assert_eq!((long.step().seconds(), long.len()), (3, 2_667_000));
        assert_eq!(long.values().iter().filter(|v| !v.is_nan()).sum::<f64>(), 4.0);
    }
}
