//! The tags of all series of a store, and the questions that Graphite's tag API asks about them.
//!
//! Series come in two ways: the store states which it has ([`TagIndex::refresh`]), and clients add and delete some by
//! name ([`TagIndex::tag_series`], [`TagIndex::del_series`]), as carbon does. What clients said outlives a refresh and,
//! with a database file, a restart: names of files that are named by a hash are known from nowhere else. All questions are
//! answered from memory. Invariant: every posting list is sorted and names only series that exist.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::{Connection, params};

use crate::backend::TagLimits;
use crate::series::{SeriesNameError, TagOperator, TagPattern, TagQuery, TagQueryError, TagQuerySpec, Tags};

/// The tag index of one store. Reading and changing it is quick, but for a million series not instant: ask it off
/// the event loop.
#[derive(Debug, Default)]
pub struct TagIndex {
    state: RwLock<State>,
    /// Where what clients said is kept. Locked by all that changes the state, and before it.
    database: Mutex<Option<Database>>,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum TagIndexError {
    /// The name's tags cannot be read.
    #[error(transparent)]
    Name(#[from] SeriesNameError),
    /// The database file cannot be used.
    #[error("the tag database cannot be used: {0}")]
    Database(#[from] rusqlite::Error),
}

/// Two kinds of rows: series that clients added, and series of the store that clients deleted.
#[derive(Debug)]
struct Database(Connection);

impl Database {
    fn open(path: &Path) -> Result<Self, rusqlite::Error> {
        let connection = Connection::open(path)?;
        // Readers do not wait for a writer, and a crash loses at most the last changes.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.execute_batch(
            "create table if not exists stated_by_clients (name text primary key, deleted integer not null) without rowid",
        )?;
        Ok(Self(connection))
    }

    /// Names, and whether they are deleted.
    fn rows(&self) -> Result<Vec<(String, bool)>, rusqlite::Error> {
        let mut statement = self.0.prepare("select name, deleted from stated_by_clients")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    fn set(&self, name: &str, deleted: bool) -> Result<(), rusqlite::Error> {
        let mut statement = self.0.prepare_cached("insert or replace into stated_by_clients values (?1, ?2)")?;
        statement.execute(params![name, deleted]).map(|_| ())
    }

    fn forget(&self, name: &str) -> Result<(), rusqlite::Error> {
        let mut statement = self.0.prepare_cached("delete from stated_by_clients where name = ?1")?;
        statement.execute([name]).map(|_| ())
    }
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Option<Entry>>,
    by_path: HashMap<Arc<str>, u32>,
    /// Tag, then value, then the series that have it.
    postings: BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<u32>>>,
    /// Stated by the store, but deleted by a client.
    deleted: HashSet<Arc<str>>,
    holes: usize,
    refreshes: u64,
}

#[derive(Debug)]
struct Entry {
    path: Arc<str>,
    tags: Tags,
    /// The last refresh that named it.
    seen: u64,
    /// A client added it.
    added: bool,
}

impl TagIndex {
    /// An empty index that forgets at the end what clients said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An index that keeps what clients said in an SQLite file, which is made when there is none.
    ///
    /// # Errors
    /// The file cannot be read or written, or is something else.
    pub fn open(path: &Path) -> Result<Self, TagIndexError> {
        let database = Database::open(path)?;
        let mut state = State::default();
        for (name, deleted) in database.rows()? {
            if deleted {
                state.deleted.insert(name.into());
            } else if let Ok(tags) = Tags::parse(&name) {
                state.insert(&name, tags, 0, true);
            }
        }
        Ok(Self { state: RwLock::new(state), database: Mutex::new(Some(database)) })
    }

    fn database(&self) -> std::sync::MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// States all series that the store has now, by canonical name. Those that went away are forgotten unless a
    /// client added them; those that a client deleted stay deleted until they have gone away once. Names whose tags
    /// cannot be read are left out.
    ///
    /// # Errors
    /// The database cannot be written; the index itself is as it should be.
    pub fn refresh<T: AsRef<str>>(&self, names: impl IntoIterator<Item = T>) -> Result<(), TagIndexError> {
        let database = self.database();
        let state = &mut *self.write();
        state.refreshes += 1;
        let refresh = state.refreshes;
        let mut still_deleted = HashSet::new();
        for name in names {
            let name = name.as_ref();
            if let Some(&id) = state.by_path.get(name) {
                if let Some(entry) = &mut state.entries[id as usize] {
                    entry.seen = refresh;
                }
            } else if let Some(deleted) = state.deleted.get(name) {
                still_deleted.insert(deleted.clone());
            } else if let Ok(tags) = Tags::parse(name) {
                state.insert(name, tags, refresh, false);
            }
        }
        let no_longer_deleted = std::mem::replace(&mut state.deleted, still_deleted);
        let gone: Vec<u32> = (0..)
            .zip(&state.entries)
            .filter_map(|(id, entry)| entry.as_ref().is_some_and(|e| e.seen != refresh && !e.added).then_some(id))
            .collect();
        for id in gone {
            state.remove(id);
        }
        state.compact();
        if let Some(database) = &*database {
            for name in no_longer_deleted.difference(&state.deleted) {
                database.forget(name)?;
            }
        }
        Ok(())
    }

    /// Adds a series by its name in either form (see [`Tags::parse`]) and answers its canonical name.
    ///
    /// # Errors
    /// A name whose tags cannot be read, or a database that cannot be written.
    pub fn tag_series(&self, path: &str) -> Result<String, TagIndexError> {
        let tags = Tags::parse(path)?;
        let name = tags.series_name();
        let database = self.database();
        // Carbon says the same again and again.
        let known = |state: &State| state.by_name(&name).is_some_and(|entry| entry.added);
        if known(&self.read()) {
            return Ok(name);
        }
        if let Some(database) = &*database {
            database.set(&name, false)?;
        }
        let state = &mut *self.write();
        state.deleted.remove(name.as_str());
        if let Some(&id) = state.by_path.get(name.as_str()) {
            if let Some(entry) = &mut state.entries[id as usize] {
                entry.added = true;
            }
        } else {
            state.insert(&name, tags, 0, true);
        }
        Ok(name)
    }

    /// Deletes a series by its name in either form. That there is none is no error.
    ///
    /// # Errors
    /// As [`TagIndex::tag_series`].
    pub fn del_series(&self, path: &str) -> Result<(), TagIndexError> {
        let name = Tags::parse(path)?.series_name();
        let database = self.database();
        let Some(seen) = self.read().by_name(&name).map(|entry| entry.seen > 0) else { return Ok(()) };
        if let Some(database) = &*database {
            if seen { database.set(&name, true) } else { database.forget(&name) }?;
        }
        let state = &mut *self.write();
        if let Some(&id) = state.by_path.get(name.as_str()) {
            if let Some(entry) = &state.entries[id as usize]
                && seen
            {
                state.deleted.insert(entry.path.clone());
            }
            state.remove(id);
            state.compact();
        }
        Ok(())
    }

    /// Number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().by_path.len()
    }

    /// Whether there is no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All tags, sorted.
    ///
    /// # Errors
    /// A filter that is not a regular expression.
    pub fn list(&self, limits: &TagLimits) -> Result<Vec<String>, TagQueryError> {
        let wanted = Wanted::new(limits)?;
        Ok(wanted.limited(self.read().postings.keys().map(|tag| &**tag)))
    }

    /// Values of a tag and how many series have each, sorted by value; `None` when there is no such tag.
    ///
    /// # Errors
    /// A filter that is not a regular expression.
    pub fn values(&self, tag: &str, limits: &TagLimits) -> Result<Option<Vec<(String, u64)>>, TagQueryError> {
        let wanted = Wanted::new(limits)?;
        Ok(self.read().postings.get(tag).map(|values| {
            let values = values.iter().filter(|(value, _)| wanted.holds(value));
            values.map(|(value, ids)| (value.to_string(), ids.len() as u64)).take(wanted.limit).collect()
        }))
    }

    /// Names of the series that satisfy all expressions, sorted.
    ///
    /// # Errors
    /// An expression that is malformed, or none that needs a value.
    pub fn find_series<T: AsRef<str>>(&self, expressions: &[T]) -> Result<Vec<String>, TagQueryError> {
        let query = TagQuery::new(expressions)?;
        Ok(self.matching(&query).iter().map(ToString::to_string).collect())
    }

    /// Names of the series that satisfy a query, sorted.
    #[must_use]
    pub fn matching(&self, query: &TagQuery) -> Vec<Arc<str>> {
        let state = self.read();
        let series = state.select(query);
        let mut names: Vec<Arc<str>> =
            series.into_iter().filter_map(|id| state.entry(id)).map(|entry| entry.path.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Tags of the series that satisfy all expressions, without those that an expression names; all tags when there
    /// is no expression. Sorted.
    ///
    /// # Errors
    /// As [`TagIndex::find_series`].
    pub fn complete_tags<T: AsRef<str>>(
        &self,
        expressions: &[T],
        limits: &TagLimits,
    ) -> Result<Vec<String>, TagQueryError> {
        if expressions.is_empty() {
            return self.list(limits);
        }
        let wanted = Wanted::new(limits)?;
        let query = TagQuery::new(expressions)?;
        let state = self.read();
        let named: HashSet<&str> = query.specs().iter().map(TagQuerySpec::tag).collect();
        let series = state.select(&query);
        let tags: BTreeSet<&str> = series
            .into_iter()
            .filter_map(|id| state.entry(id))
            .flat_map(|entry| entry.tags.iter().map(|(tag, _)| tag))
            .filter(|tag| !named.contains(tag))
            .collect();
        Ok(wanted.limited(tags))
    }

    /// Values that a tag has in the series that satisfy all expressions; all its values when there is no expression.
    /// Sorted.
    ///
    /// # Errors
    /// A malformed expression or tag.
    pub fn complete_values<T: AsRef<str>>(
        &self,
        expressions: &[T],
        tag: &str,
        limits: &TagLimits,
    ) -> Result<Vec<String>, TagQueryError> {
        if expressions.is_empty() {
            let values = self.values(tag, limits)?.unwrap_or_default();
            return Ok(values.into_iter().map(|(value, _)| value).collect());
        }
        let wanted = Wanted::new(limits)?;
        let present = format!("{tag}!=");
        let query = TagQuery::new(expressions.iter().map(AsRef::as_ref).chain([present.as_str()]))?;
        let state = self.read();
        let series = state.select(&query);
        let values: BTreeSet<&str> = series.into_iter().filter_map(|id| state.entry(id)?.tags.get(tag)).collect();
        Ok(wanted.limited(values))
    }
}

impl State {
    fn by_name(&self, name: &str) -> Option<&Entry> {
        self.entry(*self.by_path.get(name)?)
    }

    fn entry(&self, id: u32) -> Option<&Entry> {
        self.entries.get(id as usize)?.as_ref()
    }

    fn insert(&mut self, path: &str, tags: Tags, seen: u64, added: bool) {
        // Ids only grow, so that a new one goes to the end of its posting lists.
        let Ok(id) = u32::try_from(self.entries.len()) else { return };
        for (tag, value) in tags.iter() {
            let values = entry_of(&mut self.postings, tag);
            entry_of(values, value).push(id);
        }
        let path: Arc<str> = path.into();
        self.by_path.insert(path.clone(), id);
        self.entries.push(Some(Entry { path, tags, seen, added }));
    }

    fn remove(&mut self, id: u32) {
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::take) else { return };
        self.holes += 1;
        self.by_path.remove(&entry.path);
        for (tag, value) in entry.tags.iter() {
            let Some(values) = self.postings.get_mut(tag) else { continue };
            if let Some(ids) = values.get_mut(value) {
                if let Ok(at) = ids.binary_search(&id) {
                    ids.remove(at);
                }
                if ids.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                self.postings.remove(tag);
            }
        }
    }

    /// Numbers the entries anew when most numbers are unused.
    fn compact(&mut self) {
        if self.holes <= 1024 || self.holes <= self.by_path.len() {
            return;
        }
        let entries = std::mem::take(&mut self.entries);
        self.by_path.clear();
        self.postings.clear();
        self.holes = 0;
        for entry in entries.into_iter().flatten() {
            self.insert(&entry.path, entry.tags, entry.seen, entry.added);
        }
    }

    /// The series that satisfy a query, each once.
    fn select(&self, query: &TagQuery) -> Vec<u32> {
        // Specs that need a value give lists to intersect; the others, which a missing tag satisfies, take series away.
        let (filters, needs): (Vec<_>, Vec<_>) = query.specs().iter().partition(|s| s.matches_value(""));
        let mut lists: Vec<Vec<u32>> = Vec::with_capacity(needs.len());
        for spec in needs {
            let list =
                self.having(spec.tag(), spec.operator() == TagOperator::Equal, spec.value(), |v| spec.matches_value(v));
            if list.is_empty() {
                return list;
            }
            lists.push(list);
        }
        lists.sort_by_key(Vec::len);
        let mut lists = lists.into_iter();
        let mut selected = lists.next().unwrap_or_default();
        for list in lists {
            selected.retain(|id| list.binary_search(id).is_ok());
        }
        for spec in filters {
            if selected.is_empty() {
                break;
            }
            let without = self.having(spec.tag(), false, "", |v| !spec.matches_value(v));
            selected.retain(|id| without.binary_search(id).is_err());
        }
        selected
    }

    /// The series, sorted, with a value of this tag that `matches`; each distinct value is tried once. With `exact`
    /// it is the given value.
    fn having(&self, tag: &str, exact: bool, value: &str, matches: impl Fn(&str) -> bool) -> Vec<u32> {
        let Some(values) = self.postings.get(tag) else { return Vec::new() };
        if exact {
            return values.get(value).cloned().unwrap_or_default();
        }
        let mut ids: Vec<u32> = values.iter().filter(|(v, _)| matches(v)).flat_map(|(_, ids)| ids).copied().collect();
        ids.sort_unstable();
        ids
    }
}

/// The entry of a map, made when it is not there; the key is copied only then.
fn entry_of<'a, V: Default>(map: &'a mut BTreeMap<Box<str>, V>, key: &str) -> &'a mut V {
    if !map.contains_key(key) {
        map.insert(key.into(), V::default());
    }
    map.get_mut(key).expect("it was just inserted")
}

/// Which names of an answer are wanted.
struct Wanted<'a> {
    prefix: &'a str,
    filter: Option<TagPattern>,
    limit: usize,
}

impl<'a> Wanted<'a> {
    fn new(limits: &'a TagLimits) -> Result<Self, TagQueryError> {
        let filter = limits.filter.as_deref().filter(|f| !f.is_empty()).map(TagPattern::new).transpose()?;
        Ok(Self {
            prefix: limits.prefix.as_deref().unwrap_or_default(),
            filter,
            limit: limits.limit.unwrap_or(usize::MAX),
        })
    }

    fn holds(&self, text: &str) -> bool {
        text.starts_with(self.prefix) && self.filter.as_ref().is_none_or(|f| f.matches(text))
    }

    fn limited<'b>(&self, sorted: impl IntoIterator<Item = &'b str>) -> Vec<String> {
        sorted.into_iter().filter(|t| self.holds(t)).take(self.limit).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(index: &TagIndex, expression: &str) -> Vec<String> {
        index.find_series(&[expression]).expect("a valid query")
    }

    #[test]
    fn what_clients_said_outlives_a_refresh() {
        let index = TagIndex::new();
        index.refresh(["m;a=1", "m;a=2", "not a;tag"]).expect("refreshed");
        assert_eq!(index.len(), 2);
        assert_eq!(index.tag_series("m;b=2;a=3").expect("valid"), "m;a=3;b=2");
        index.del_series("m{a=\"1\"}").expect("valid");
        index.del_series("nosuch;a=1").expect("valid");
        assert!(index.tag_series("m;a").is_err() && index.del_series(";").is_err());
        assert_eq!(named(&index, "name=m"), ["m;a=2", "m;a=3;b=2"]);
        index.refresh(["m;a=1", "m;a=2"]).expect("refreshed");
        assert_eq!(named(&index, "name=m"), ["m;a=2", "m;a=3;b=2"]);
        index.refresh(["m;a=1"]).expect("refreshed");
        assert_eq!(named(&index, "name=m"), ["m;a=3;b=2"]);
        // Gone and come back: it is a new series. So is one that is added again.
        index.refresh([""; 0]).expect("refreshed");
        index.refresh(["m;a=1"]).expect("refreshed");
        assert_eq!(named(&index, "name=m"), ["m;a=1", "m;a=3;b=2"]);
        index.del_series("m;a=1").expect("valid");
        index.tag_series("m;a=1").expect("valid");
        index.refresh([""; 0]).expect("refreshed");
        assert_eq!(named(&index, "name=m"), ["m;a=1", "m;a=3;b=2"]);
        index.del_series("m;a=1").expect("valid");
        index.del_series("m;a=3;b=2").expect("valid");
        assert_eq!(index.list(&TagLimits::default()), Ok(vec![]));
    }

    #[test]
    fn a_database_keeps_what_clients_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tags.sqlite");
        let index = TagIndex::open(&path).expect("opened");
        index.refresh(["m;a=1", "m;a=2"]).expect("refreshed");
        for name in ["m;a=1", "x;added=1", "x;added=2"] {
            index.tag_series(name).expect("valid");
        }
        index.del_series("m;a=2").expect("valid");
        index.del_series("x;added=2").expect("valid");
        drop(index);
        let index = TagIndex::open(&path).expect("opened");
        assert_eq!(named(&index, "name=~.+"), ["m;a=1", "x;added=1"]);
        index.refresh(["m;a=2", "m;a=3"]).expect("refreshed");
        assert_eq!(named(&index, "name=~.+"), ["m;a=1", "m;a=3", "x;added=1"]);
        index.refresh(["m;a=3"]).expect("refreshed");
        drop(index);
        let index = TagIndex::open(&path).expect("opened");
        index.refresh(["m;a=2"]).expect("refreshed");
        assert_eq!(named(&index, "name=~.+"), ["m;a=1", "m;a=2", "x;added=1"]);
        std::fs::write(&path, "this is no database, but long enough to be looked at").expect("written");
        assert!(matches!(TagIndex::open(&path), Err(TagIndexError::Database(_))));
    }

    #[test]
    fn numbering_anew_changes_no_answer() {
        let index = TagIndex::new();
        index.refresh((0..5000).map(|i| format!("m;i={i};parity={}", i % 2))).expect("refreshed");
        index.refresh((4000..5000).map(|i| format!("m;i={i};parity={}", i % 2))).expect("refreshed");
        assert_eq!(index.read().entries.len(), 1000);
        assert_eq!(index.find_series(&["parity=1", "i=~40"]).expect("valid").len(), 50);
        assert_eq!(index.find_series(&["parity=1", "i!=~40"]).expect("valid").len(), 450);
        let limits = TagLimits { limit: Some(2), ..TagLimits::default() };
        assert_eq!(index.complete_values(&["parity=1"], "i", &limits), Ok(vec!["4001".to_owned(), "4003".to_owned()]));
    }
}
