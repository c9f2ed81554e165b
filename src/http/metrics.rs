//! `/metrics`: what this server counts, for Prometheus.
//!
//! Labels are endpoints, classes of statuses, caches, groups and backends, whose number the configuration bounds; never
//! targets or clients. Reading changes no number.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse};

use super::App;
use super::answer::{bytes_of, not_cached};
use crate::backend::Histogram;
use crate::backend::transport::BackendStats as Transport;
use crate::cache::CacheStats;
use crate::fetch::{BackendStats, Counter, Entered, Gauge};
use crate::telemetry::{Exposition, process};

/// A kind of endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Render,
    Find,
    Tags,
    Events,
    Functions,
    Status,
    Other,
}

impl Endpoint {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Render, "render"),
        (Self::Find, "find"),
        (Self::Tags, "tags"),
        (Self::Events, "events"),
        (Self::Functions, "functions"),
        (Self::Status, "status"),
        (Self::Other, "other"),
    ];

    /// Of a path; `plain` when nothing else was sent.
    pub(super) fn of(path: &str, plain: bool) -> Self {
        let mut nodes = path.split('/').filter(|node| !node.is_empty());
        match (nodes.next(), nodes.next()) {
            (Some("render"), None) => Self::Render,
            (Some("metrics"), None) if plain => Self::Status,
            (Some("metrics"), _) | (Some("browser"), Some("search")) | (Some("info"), None) => Self::Find,
            (Some("tags"), _) => Self::Tags,
            (Some("events"), _) => Self::Events,
            (Some("functions"), _) => Self::Functions,
            (Some("version" | "healthz" | "readyz" | "lb_check" | "openapi.json" | "dashboard" | "_internal"), _) => {
                Self::Status
            }
            _ => Self::Other,
        }
    }
}

/// Classes of statuses, by the hundreds; the first one is for clients that hung up.
const CLASSES: [&str; 6] = ["hung_up", "1xx", "2xx", "3xx", "4xx", "5xx"];

#[derive(Debug, Default)]
struct Requests {
    by_class: [Counter; CLASSES.len()],
    in_flight: Gauge,
    durations: Histogram,
}

/// The requests of clients so far.
#[derive(Debug, Default)]
pub(super) struct HttpStats([Requests; Endpoint::ALL.len()]);

impl HttpStats {
    fn of(&self, endpoint: Endpoint) -> &Requests {
        &self.0[endpoint as usize]
    }

    /// One more that is going on.
    pub(super) fn begun(&self, endpoint: Endpoint) -> Entered {
        self.of(endpoint).in_flight.enter()
    }

    /// One was answered; with `None` when the client hung up before.
    pub(super) fn ended(&self, endpoint: Endpoint, status: Option<u16>, duration: Duration) {
        let requests = self.of(endpoint);
        let class = status.map_or(0, |status| usize::from(status / 100).clamp(1, CLASSES.len() - 1));
        requests.by_class[class].add(1);
        requests.durations.observe(duration);
    }
}

/// Whether this asks for the numbers, and not as graphite-web's `/metrics` for names.
pub(super) fn is_asked_for(http: &HttpRequest, body: &[u8]) -> bool {
    matches!(*http.method(), Method::GET | Method::HEAD)
        && http.path() == "/metrics"
        && http.query_string().is_empty()
        && body.is_empty()
}

/// The answer.
pub(super) fn page(app: &App) -> HttpResponse {
    not_cached(bytes_of(StatusCode::OK, Exposition::MEDIA_TYPE, exposition(app).into_bytes()))
}

fn exposition(app: &App) -> String {
    let mut text = Exposition::default();
    text.gauge("plumbago_build_info", "The version that runs.").sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    if let Some(bytes) = process::resident_memory() {
        text.gauge("process_resident_memory_bytes", "Memory in use.").sample(&[], bytes);
    }
    if let Some(files) = process::open_files() {
        text.gauge("process_open_fds", "Open file descriptors, connections included.").sample(&[], files);
    }
    requests(&mut text, app.http_stats());
    renders(&mut text, app);
    memory(&mut text, app);
    caches(&mut text, app);
    backends(&mut text, app);
    text.text()
}

fn requests(text: &mut Exposition, stats: &HttpStats) {
    let mut family =
        text.counter("plumbago_http_requests_total", "Requests of clients, by kind of endpoint and class of status.");
    for (endpoint, name) in Endpoint::ALL {
        for (class, counter) in
            CLASSES.iter().zip(&stats.of(endpoint).by_class).filter(|(_, counter)| counter.get() > 0)
        {
            family.sample(&[("endpoint", name), ("status", class)], counter.get());
        }
    }
    let mut family = text.gauge("plumbago_http_requests_in_flight", "Requests of clients now being answered.");
    for (endpoint, name) in Endpoint::ALL {
        family.sample(&[("endpoint", name)], stats.of(endpoint).in_flight.get());
    }
    let mut family = text.histogram("plumbago_http_request_duration_seconds", "Time until an answer was made.");
    for (endpoint, name) in Endpoint::ALL {
        family.durations(&[("endpoint", name)], &stats.of(endpoint).durations);
    }
}

fn renders(text: &mut Exposition, app: &App) {
    let (render, fetch) = (app.renderer().stats(), app.federation().stats());
    let counters: [(&'static str, &str, &Counter); 15] = [
        ("plumbago_renders_total", "Renders begun.", &render.requests),
        ("plumbago_render_rounds_total", "Rounds of fetching of renders.", &render.rounds),
        ("plumbago_render_partial_total", "Renders whose answer misses a backend.", &render.partial),
        (
            "plumbago_render_unplanned_selectors_total",
            "Selectors that evaluation asked for and the plan had not: anything but 0 is a fault.",
            &render.misses,
        ),
        ("plumbago_fetches_total", "Fetches over all backends; one for each round of a render.", &fetch.fetches),
        ("plumbago_fetch_selectors_total", "Patterns with ranges that were fetched.", &fetch.selectors),
        ("plumbago_fetch_series_total", "Series that were fetched.", &fetch.series),
        ("plumbago_fetch_points_total", "Points that were fetched.", &fetch.points),
        ("plumbago_lookups_total", "Look-ups of names or tags over all backends.", &fetch.lookups),
        ("plumbago_partial_total", "Fetches and look-ups whose answer misses a backend.", &fetch.partial),
        ("plumbago_failed_total", "Fetches and look-ups that no backend answered.", &fetch.failed),
        ("plumbago_too_large_total", "Fetches and look-ups given up at a limit.", &fetch.too_large),
        ("plumbago_replica_mismatches_total", "Timestamps at which replicas disagreed.", &fetch.mismatches),
        ("plumbago_replica_failovers_total", "Calls to a replica because another failed.", &fetch.failovers),
        ("plumbago_replica_hedges_total", "Calls to a replica because another was slow.", &fetch.hedges),
    ];
    for (name, help, counter) in counters {
        text.counter(name, help).sample(&[], counter.get());
    }
    text.gauge("plumbago_fetches_in_flight", "Fetches and look-ups now going on.").sample(&[], fetch.in_flight.get());
}

type CounterOf = fn(&CacheStats) -> &Counter;

fn memory(text: &mut Exposition, app: &App) {
    let pool = app.renderer().pool();
    text.gauge("plumbago_requests_memory_bytes", "Memory of what renders have fetched and computed, roughly.")
        .sample(&[], pool.taken());
    text.counter("plumbago_busy_total", "Renders refused as others held the memory.").sample(&[], pool.refused());
}

fn caches(text: &mut Exposition, app: &App) {
    let responses = app.responses();
    let mut caches: Vec<(&str, &CacheStats, (u64, u64))> = vec![("responses", responses.stats(), responses.size())];
    if let Some((series, lookups)) = app.caches() {
        caches.push(("series", series.stats(), series.size()));
        caches.push(("names", lookups.stats(), lookups.size()));
    }
    let counters: [(&'static str, &str, CounterOf); 3] = [
        ("plumbago_cache_hits_total", "Answered from the cache.", |stats| &stats.hits),
        ("plumbago_cache_misses_total", "Not in the cache.", |stats| &stats.misses),
        ("plumbago_cache_joined_total", "Answered by waiting for what another request asked.", |stats| &stats.joined),
    ];
    for (name, help, counter) in counters {
        let mut family = text.counter(name, help);
        for (cache, stats, _) in &caches {
            family.sample(&[("cache", cache)], counter(stats).get());
        }
    }
    let mut family = text.gauge("plumbago_cache_bytes", "Memory of what is kept, roughly.");
    for (cache, _, (bytes, _)) in &caches {
        family.sample(&[("cache", cache)], bytes);
    }
    let mut family = text.gauge("plumbago_cache_entries", "Entries that are kept.");
    for (cache, _, (_, entries)) in &caches {
        family.sample(&[("cache", cache)], entries);
    }
}

/// A number of each backend: name, whether it only grows, help, the number.
type Of<T> = (&'static str, bool, &'static str, fn(&T) -> u64);

const CALLS: [Of<BackendStats>; 5] = [
    ("plumbago_backend_calls_total", true, "Questions to a backend, also those that a cache answered.", |s| {
        s.calls.get()
    }),
    ("plumbago_backend_call_failures_total", true, "Questions to a backend that failed, in part or altogether.", |s| {
        s.failures.get()
    }),
    ("plumbago_backend_calls_in_flight", false, "Questions to a backend now going on.", |s| s.in_flight.get()),
    ("plumbago_backend_outdone_total", true, "Answers that another replica gave, faster or within the limits.", |s| {
        s.outdone.get()
    }),
    ("plumbago_backend_failed_in_a_row", false, "Questions that failed since the last good one.", |s| {
        s.failed_in_a_row()
    }),
];

const TRANSPORT: [Of<Transport>; 7] = [
    ("plumbago_backend_requests_total", true, "HTTP requests sent to a backend.", |s| s.requests),
    (
        "plumbago_backend_request_failures_total",
        true,
        "HTTP requests that failed, also those not sent because the backend rests.",
        |s| s.failures,
    ),
    ("plumbago_backend_retries_total", true, "HTTP requests sent again because the connection broke.", |s| s.retries),
    ("plumbago_backend_received_bytes_total", true, "Bytes of bodies, after decompression.", |s| s.bytes),
    ("plumbago_backend_requests_in_flight", false, "HTTP requests on their way.", |s| s.in_flight),
    ("plumbago_backend_requests_waiting", false, "HTTP requests that wait for their turn.", |s| s.waiting),
    ("plumbago_backend_resting", false, "1: the backend rests after repeated failures.", |s| u64::from(s.resting)),
];

fn backends(text: &mut Exposition, app: &App) {
    let all: Vec<_> = app
        .federation()
        .backends()
        .map(|(group, backend, stats)| {
            let id = backend.id().as_str();
            let name = id.strip_prefix(group).map_or(id, str::trim_start);
            ([("group", group), ("backend", if name.is_empty() { id } else { name })], backend, stats)
        })
        .collect();
    for (name, grows, help, number) in CALLS {
        let mut family = if grows { text.counter(name, help) } else { text.gauge(name, help) };
        for (labels, _, stats) in &all {
            family.sample(labels, number(stats));
        }
    }
    let sent: Vec<_> = all.iter().filter_map(|(labels, backend, _)| Some((labels, backend.http()?.stats()))).collect();
    for (name, grows, help, number) in TRANSPORT {
        let mut family = if grows { text.counter(name, help) } else { text.gauge(name, help) };
        for (labels, stats) in &sent {
            family.sample(*labels, number(stats));
        }
    }
    let help = "Time of HTTP requests to a backend; of embedded stores, of questions.";
    let mut family = text.histogram("plumbago_backend_duration_seconds", help);
    for (labels, backend, stats) in &all {
        family.durations(labels, backend.http().map_or(&stats.durations, |http| http.durations()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_kinds() {
        for (path, plain, expected) in [
            ("/render", true, Endpoint::Render),
            ("/render/", false, Endpoint::Render),
            ("/metrics", true, Endpoint::Status),
            ("/metrics", false, Endpoint::Find),
            ("/metrics/find/", true, Endpoint::Find),
            ("/tags/autoComplete/tags", false, Endpoint::Tags),
            ("/events/get_data", false, Endpoint::Events),
            ("/functions/scale", true, Endpoint::Functions),
            ("/healthz", true, Endpoint::Status),
            ("/", true, Endpoint::Other),
            ("/render/x", true, Endpoint::Other),
        ] {
            assert_eq!(Endpoint::of(path, plain), expected, "{path}");
        }
        for (at, (endpoint, _)) in Endpoint::ALL.into_iter().enumerate() {
            assert_eq!(endpoint as usize, at);
        }
    }
}
