//! The application: what the configuration says, put together. Owns backends, caches and renderer.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::metrics::HttpStats;
use crate::backend::protocol::{self, Bulk};
use crate::backend::transport::{HttpBackend, HttpSettings, SettingsError, shown};
use crate::backend::{Backend, BackendId, Scope, wire};
use crate::cache::{Bounds, CachedBackend, LookupCache, ResponseCache, SeriesCache};
use crate::config::{Config, GroupKind, GroupSettings};
use crate::fetch::{self, Federation, Group, Order};
use crate::plan::StepMemory;
use crate::render::{FetchMode, Renderer};
use crate::store::{EventStore, EventsError, TagIndexError, WhisperOptions, WhisperStore};

/// A running Plumbago without its sockets.
pub struct App {
    config: Config,
    renderer: Renderer,
    responses: ResponseCache,
    events: Arc<EventStore>,
    caches: Option<(Arc<SeriesCache>, Arc<LookupCache>)>,
    http: HttpStats,
}

/// Why it cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A backend's settings.
    #[error("group {group}: {error}")]
    Backend {
        /// The group.
        group: String,
        /// What is wrong.
        error: SettingsError,
    },
    /// The tag index of a whisper group.
    #[error("group {group}: {error}")]
    Tags {
        /// The group.
        group: String,
        /// What is wrong.
        error: TagIndexError,
    },
    /// A protocol that does not exist; the configuration never has one.
    #[error("group {group}: there is no protocol `{protocol}`")]
    Protocol {
        /// The group.
        group: String,
        /// The protocol.
        protocol: &'static str,
    },
    /// The file of events.
    #[error("events: {0}")]
    Events(#[from] EventsError),
    /// The operating system refuses threads.
    #[error("threads cannot be started: {0}")]
    Threads(#[from] std::io::Error),
}

impl App {
    /// Puts together what the configuration says.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(config: Config) -> Result<Self, BuildError> {
        let cache = &config.cache;
        let series = Arc::new(SeriesCache::new(Bounds { bytes: cache.series_size, ttl: cache.series_ttl }));
        let lookups = Arc::new(LookupCache::new(Bounds { bytes: cache.find_size, ttl: cache.find_ttl }));
        let cached =
            |backend| -> Arc<dyn Backend> { Arc::new(CachedBackend::new(backend, series.clone(), lookups.clone())) };
        let answers = answer_limits(config.limits.fetched);
        let groups =
            config.groups.iter().map(|settings| group(settings, answers, &cached)).collect::<Result<Vec<_>, _>>()?;
        let caches = Some((series.clone(), lookups.clone()));
        Ok(Self { caches, ..Self::with_groups(config, groups)? })
    }

    /// The same over given backends; the groups of the configuration are not looked at.
    ///
    /// # Errors
    /// The events cannot be opened, or the operating system refuses threads.
    pub fn with_groups(config: Config, groups: Vec<Group>) -> Result<Self, BuildError> {
        let threads = match config.fetch_threads {
            0 => std::thread::available_parallelism().map_or(2, NonZeroUsize::get),
            n => n,
        };
        let events = Arc::new(match &config.events_path {
            Some(path) => EventStore::open(path)?,
            None => EventStore::in_memory()?,
        });
        let federation = Arc::new(Federation::new(groups, Some(events.clone()), threads)?);
        let memory = (config.cache.step_size > 0).then(|| Arc::new(StepMemory::new(config.cache.step_size)));
        let limits = config.limits;
        let renderer = Renderer::new(federation, memory, limits.fetched, limits.computed, limits.targets)
            .holding_at_most(limits.all_requests);
        let responses = ResponseCache::new(config.cache.response_size);
        Ok(Self { config, renderer, responses, events, caches: None, http: HttpStats::default() })
    }

    /// The same with another way of fetching, for comparison.
    #[must_use]
    pub fn fetching(mut self, mode: FetchMode) -> Self {
        self.renderer = self.renderer.fetching(mode);
        self
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What answers render requests.
    #[must_use]
    pub fn renderer(&self) -> &Renderer {
        &self.renderer
    }

    /// Finished answers.
    #[must_use]
    pub fn responses(&self) -> &ResponseCache {
        &self.responses
    }

    /// The caches around the backends of the configuration.
    pub(super) fn caches(&self) -> Option<&(Arc<SeriesCache>, Arc<LookupCache>)> {
        self.caches.as_ref()
    }

    /// Counts of requests.
    pub(super) fn http_stats(&self) -> &HttpStats {
        &self.http
    }

    /// Events.
    #[must_use]
    pub fn events(&self) -> &Arc<EventStore> {
        &self.events
    }

    /// The backends.
    #[must_use]
    pub fn federation(&self) -> &Federation {
        self.renderer.federation()
    }

    /// What the backend calls of one request share.
    #[must_use]
    pub fn scope(&self, now: i64, request_id: Arc<str>, headers: Arc<[(String, String)]>) -> Scope {
        Scope { deadline: Instant::now() + self.config.request_timeout, now, headers, request_id }
    }
}

/// A backend over the whisper files of a folder.
fn whisper(settings: &GroupSettings, path: &Path) -> Result<Arc<dyn Backend>, BuildError> {
    let options = WhisperOptions {
        refresh: settings.rescan,
        tag_database: settings.tag_index.clone(),
        ..WhisperOptions::default()
    };
    let id = BackendId::new(format!("{} {}", settings.name, path.display()));
    let store = WhisperStore::open(id, path, options)
        .map_err(|error| BuildError::Tags { group: settings.name.clone(), error })?;
    Ok(Arc::new(store))
}

/// What is read of one backend's answer: as much as a request may fetch, and of names never less than usual.
fn answer_limits(fetched: fetch::Limits) -> wire::Limits {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let usual = wire::Limits::default();
    wire::Limits { entries: number(fetched.series).max(usual.entries), points: number(fetched.points) }
}

fn group(
    settings: &GroupSettings,
    answers: wire::Limits,
    cached: &dyn Fn(Arc<dyn Backend>) -> Arc<dyn Backend>,
) -> Result<Group, BuildError> {
    let mut backends: Vec<Arc<dyn Backend>> = Vec::new();
    // Local files change without notice and are quick to read: no cache around them.
    backends.extend(settings.path.as_deref().map(|path| whisper(settings, path)).transpose()?);
    for url in &settings.urls {
        let bulk = Bulk { patterns: settings.patterns_per_request, post: settings.post };
        let protocol = protocol::by_name(settings.protocol, bulk)
            .ok_or_else(|| BuildError::Protocol { group: settings.name.clone(), protocol: settings.protocol })?;
        let mut http = HttpSettings::new(BackendId::new(format!("{} {}", settings.name, shown(url))), url.as_str());
        http.timeout = settings.timeout;
        http.connect_timeout = settings.connect_timeout;
        http.concurrency = NonZeroUsize::new(settings.concurrency).unwrap_or(NonZeroUsize::MIN);
        http.max_body_bytes = settings.max_answer;
        http.limits = answers;
        http.failures_before_rest = settings.failures_before_rest;
        http.retry_delay = settings.retry_delay;
        let backend = HttpBackend::new(http, protocol)
            .map_err(|error| BuildError::Backend { group: settings.name.clone(), error })?;
        backends.push(cached(Arc::new(backend)));
    }
    let kind = match settings.kind {
        GroupKind::Shards => fetch::GroupKind::Shards,
        GroupKind::MergedReplicas => fetch::GroupKind::AllReplicas,
        GroupKind::Replicas => fetch::GroupKind::AnyReplica {
            hedge_after: settings.hedge_after.filter(|d| *d > Duration::ZERO),
            order: if settings.rotate { Order::Rotating } else { Order::Listed },
        },
    };
    let mut group = Group::new(settings.name.as_str(), kind, backends);
    group.min_available = settings.min_available;
    group.rest = fetch::Rest { after: settings.failures_before_rest.max(1), delay: settings.retry_delay };
    group.prefixes.clone_from(&settings.prefixes);
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator who allows more than the defaults is not stopped by those of the decoders.
    #[test]
    fn answers_may_be_as_large_as_the_configuration_says() {
        let limits = |series, points| answer_limits(fetch::Limits { series, points, ..fetch::Limits::default() });
        assert_eq!(limits(3_000_000, 200_000_000), wire::Limits { entries: 3_000_000, points: 200_000_000 });
        assert_eq!(limits(10, 1000), wire::Limits { entries: 1_000_000, points: 1000 });
    }
}
