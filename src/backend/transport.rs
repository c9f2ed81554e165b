//! HTTP: what all protocols share on their way to a backend and back.
//!
//! A backend has its own client (a connection pool), a limit of requests at a time, a breaker, and bounds in time and
//! bytes. It knows nothing of formats: a [`Protocol`] makes requests and reads bodies. It does not ask a second
//! replica either; that is for the `fetch` module, which sees all of them.
//!
//! Dropping a future that waits here ends its requests and gives its places free, but for the one that finds out whether
//! a backend that rested is well again. All calls of a backend must come from one runtime: a pooled connection is driven
//! by the runtime that opened it.

use std::error::Error as _;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::future::join_all;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

use super::protocol::{Payload, Protocol, WireRequest};
use super::wire::{CodecError, Limits, joined, looks_like};
use super::{
    Answer, Backend, BackendError, BackendId, FindQuery, Finder, FoundNode, Histogram, Part, Scope, TagLimits,
    TagSource, tag_api,
};
use crate::series::{Selector, TimeRange};

/// How a backend is reached. All that has a sensible value has it in [`HttpSettings::new`].
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Its name in errors and metrics.
    pub id: BackendId,
    /// Where it is: `http://` or `https://`, possibly with a path that comes before those of the protocol.
    pub url: String,
    /// The longest that one request may take, waiting for its turn included.
    pub timeout: Duration,
    /// The longest that making a connection may take.
    pub connect_timeout: Duration,
    /// The most requests at a time; others wait for their turn.
    pub concurrency: NonZeroUsize,
    /// The longest body that is read, in bytes (after decompression).
    pub max_body_bytes: u64,
    /// The most series and points of an answer.
    pub limits: Limits,
    /// After so many failures in a row it rests.
    pub failures_before_rest: u32,
    /// How long it rests before it is tried again, with one request.
    pub retry_delay: Duration,
}

impl HttpSettings {
    /// Patient enough for large renders, quick to notice that nobody is there.
    pub fn new(id: BackendId, url: impl Into<String>) -> Self {
        Self {
            id,
            url: url.into(),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(1),
            concurrency: const { NonZeroUsize::new(64).expect("64 is not 0") },
            max_body_bytes: 512 << 20,
            limits: Limits::default(),
            failures_before_rest: 3,
            retry_delay: Duration::from_secs(5),
        }
    }
}

/// Settings that no backend can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not a URL, or not one of HTTP.
    #[error("`{url}` is not the URL of a backend, such as http://10.0.0.1:8080: {reason}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client cannot be made: the system's certificates cannot be read, for example.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// What a backend has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendStats {
    /// Requests sent, without those that were not sent because it rests.
    pub requests: u64,
    /// Requests that failed, those included that were not sent because it rests.
    pub failures: u64,
    /// Requests that were sent a second time because the connection broke.
    pub retries: u64,
    /// Bytes of bodies, after decompression.
    pub bytes: u64,
    /// Requests on their way now.
    pub in_flight: u64,
    /// Requests that wait for their turn now.
    pub waiting: u64,
    /// Whether it rests after repeated failures.
    pub resting: bool,
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    failures: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
    in_flight: AtomicU64,
    waiting: AtomicU64,
}

/// Adds one while it lives; cancelled futures count down too.
struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicU64) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A backend that is asked over HTTP.
pub struct HttpBackend {
    inner: Arc<Inner>,
}

/// What its requests share.
struct Inner {
    settings: HttpSettings,
    base: String,
    protocol: Arc<dyn Protocol>,
    client: Client,
    turns: Semaphore,
    breaker: Breaker,
    counters: Counters,
    durations: Histogram,
}

impl fmt::Debug for HttpBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBackend")
            .field("settings", &self.inner.settings)
            .field("protocol", &self.inner.protocol)
            .finish_non_exhaustive()
    }
}

/// Name of the header by which a Plumbago says that backends of its own failed, and which.
pub const PARTIAL: &str = "x-plumbago-partial";

/// What a backend said.
struct Said<T> {
    /// `None` is "nothing found".
    found: Option<T>,
    /// That something is missing, and why.
    partial: Option<String>,
}

/// A body that is read in the runtime; a longer one is decoded on a thread for blocking work.
const SHORT_BODY: usize = 256 * 1024;

/// A backend that is silent for so long is failing, even if its own timeout is longer.
const FAIR_TIME: Duration = Duration::from_secs(1);

/// Memory that a body gets before any of it is there: enough that hardly any has to be moved while it grows. A server
/// that announces much and sends little costs nothing, since memory is only taken as it is written to.
const MAX_RESERVED: u64 = 16 << 20;

impl HttpBackend {
    /// A backend of these settings that speaks `protocol`.
    ///
    /// # Errors
    /// A URL that is none, or no client for it.
    pub fn new(settings: HttpSettings, protocol: Arc<dyn Protocol>) -> Result<Self, SettingsError> {
        let base = base_url(&settings.url)?;
        // An error says that a provider is installed, which is what is wanted.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(settings.connect_timeout)
            .pool_max_idle_per_host(settings.concurrency.get())
            .user_agent(concat!("plumbago/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| SettingsError::Client(innermost(&error)))?;
        let inner = Inner {
            base,
            client,
            turns: Semaphore::new(settings.concurrency.get().min(Semaphore::MAX_PERMITS)),
            breaker: Breaker::new(settings.failures_before_rest, settings.retry_delay),
            counters: Counters::default(),
            durations: Histogram::default(),
            protocol,
            settings,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What it has done so far.
    pub fn stats(&self) -> BackendStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let c = &self.inner.counters;
        BackendStats {
            requests: read(&c.requests),
            failures: read(&c.failures),
            retries: read(&c.retries),
            bytes: read(&c.bytes),
            in_flight: read(&c.in_flight),
            waiting: read(&c.waiting),
            resting: self.inner.breaker.resting(),
        }
    }

    /// How long its requests took, from their turn until the last byte or the end of their time.
    pub fn durations(&self) -> &Histogram {
        &self.inner.durations
    }

    /// The protocol it speaks.
    pub fn protocol(&self) -> &dyn Protocol {
        &*self.inner.protocol
    }

    /// One question: send, receive, decode.
    async fn ask<T: Send + 'static>(
        &self,
        request: WireRequest,
        scope: &Scope,
        decode: impl FnOnce(&dyn Protocol, &[u8], &Limits) -> Result<T, CodecError> + Send + 'static,
    ) -> Result<Said<T>, BackendError> {
        let inner = &self.inner;
        let result = if inner.breaker.probes_next() {
            // Whether it is well again is found out aside: one request in a while must not wait for it until its own
            // time is over, and what is learnt is of use also when the client has gone.
            let (probe, scope) = (inner.clone(), scope.clone());
            let probe = async move { probe.ask_in_time(request, &scope, decode).await };
            let probe = tokio::spawn(probe.in_current_span());
            match tokio::time::timeout(FAIR_TIME, probe).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) | Err(_) => Err(BackendError::Resting { backend: inner.settings.id.clone() }),
            }
        } else {
            inner.ask_in_time(request, scope, decode).await
        };
        if let Err(error) = &result {
            inner.counters.failures.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(request_id = %scope.request_id, "{error}");
        }
        result
    }

    /// The answer, or the same as a part of one.
    fn whole<T: Send + Sync + 'static>(&self, found: T, partial: Option<&String>) -> Result<T, BackendError> {
        match partial {
            None => Ok(found),
            Some(reason) => Err(BackendError::Partial {
                backend: self.inner.settings.id.clone(),
                reason: reason.clone(),
                found: Part::new(found),
            }),
        }
    }

    /// A tag request whose answer is a list of names.
    async fn names(&self, request: WireRequest, scope: &Scope) -> Result<Vec<String>, BackendError> {
        let said = self.ask(request, scope, |_, b, l| tag_api::read_names(b, l)).await?;
        let mut names = said.found.unwrap_or_default();
        names.sort_unstable();
        names.dedup();
        self.whole(names, said.partial.as_ref())
    }
}

impl Inner {
    async fn ask_in_time<T: Send + 'static>(
        &self,
        request: WireRequest,
        scope: &Scope,
        decode: impl FnOnce(&dyn Protocol, &[u8], &Limits) -> Result<T, CodecError> + Send + 'static,
    ) -> Result<Said<T>, BackendError> {
        let backend = || self.settings.id.clone();
        let timeout = |_| BackendError::Timeout { backend: backend() };
        let deadline = scope.deadline.min(Instant::now() + self.settings.timeout);
        if deadline <= Instant::now() {
            return Err(BackendError::Timeout { backend: backend() });
        }
        if self.breaker.closed_to_all() {
            return Err(BackendError::Resting { backend: backend() });
        }
        let turn = {
            let _waiting = Counted::new(&self.counters.waiting);
            timeout_at(deadline, self.turns.acquire()).await.map_err(timeout)?
        };
        // From here on, what happens tells how the backend is.
        let Some(attempt) = self.breaker.attempt() else {
            return Err(BackendError::Resting { backend: backend() });
        };
        let began = Instant::now();
        let received = {
            let _in_flight = Counted::new(&self.counters.in_flight);
            timeout_at(deadline, self.exchange(&request, scope)).await
        };
        self.durations.observe(began.elapsed());
        let received = match received {
            Ok(received) => received,
            // Whoever got no time to answer is not to blame: `attempt` ends without a verdict.
            Err(elapsed) if began.elapsed() < self.settings.timeout.min(FAIR_TIME) => return Err(timeout(elapsed)),
            Err(elapsed) => Err((timeout(elapsed), Health::Failing)),
        };
        drop(turn);
        let (body, partial) = match received {
            Ok((Some(body), partial)) => (body, partial),
            Ok((None, partial)) => {
                attempt.end(Health::Well);
                return Ok(Said { found: None, partial });
            }
            Err((error, health)) => {
                if attempt.end(health) {
                    tracing::warn!("{error}; it rests for {:?}", self.settings.retry_delay);
                }
                return Err(error);
            }
        };
        let decoded = self.decode(body, decode).await;
        let health = if matches!(decoded, Err(BackendError::Garbled { .. })) { Health::Wrong } else { Health::Well };
        if attempt.end(health) {
            tracing::warn!("{} sends answers that cannot be read; it rests", self.settings.id);
        }
        Ok(Said { found: Some(decoded?), partial })
    }

    /// Sends the request, twice if the connection breaks, and receives the body; and what it says of backends of its own
    /// that failed.
    async fn exchange(
        &self,
        request: &WireRequest,
        scope: &Scope,
    ) -> Result<(Option<Bytes>, Option<String>), (BackendError, Health)> {
        let headers = Self::headers(scope);
        let mut retried = false;
        let response = loop {
            self.counters.requests.fetch_add(1, Ordering::Relaxed);
            match self.send(request, headers.clone()).await {
                Ok(response) => break response,
                // Nothing was answered, and reading twice does no harm. A timeout would only come again.
                Err(error) if !retried && !error.is_timeout() && !error.is_builder() => {
                    retried = true;
                    self.counters.retries.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => return Err(self.unreachable(&error)),
            }
        };
        let status = response.status();
        // A Graphite without tags does not have these paths.
        let about_tags = request.path.starts_with("/tags");
        let may_be_nothing = about_tags || self.protocol.may_answer_nothing();
        if status == StatusCode::NOT_FOUND && may_be_nothing {
            let (start, line) = start_of(response).await;
            // What a proxy or a Go server says of a path that it does not have: the URL is wrong, so that nothing is
            // known about what was asked for.
            let wrong_path = is_page(&start) || line.as_deref() == Some("404 page not found");
            return if about_tags || !wrong_path { Ok((None, None)) } else { Err(self.refused(status, &start, line)) };
        }
        // A part of a body is never asked for.
        if !status.is_success() || status == StatusCode::PARTIAL_CONTENT {
            let (start, line) = start_of(response).await;
            return Err(self.refused(status, &start, line));
        }
        let partial = response.headers().get(PARTIAL).map(|said| {
            String::from_utf8_lossy(said.as_bytes()).chars().filter(|c| !c.is_control()).take(200).collect()
        });
        let has_type = response.headers().contains_key(CONTENT_TYPE);
        let body = self.receive(response).await?;
        // With a type, an empty body is for the protocol to judge.
        Ok(((has_type || !may_be_nothing || !body.is_empty()).then_some(body), partial))
    }

    async fn send(&self, request: &WireRequest, headers: HeaderMap) -> reqwest::Result<Response> {
        let segment = request.segment.as_deref().unwrap_or_default();
        let place = format!("{}{}{segment}", self.base, request.path);
        let with_query = || format!("{place}?{}", request.parameters);
        let builder = match &request.payload {
            Payload::Url => self.client.get(with_query()),
            Payload::Form => self
                .client
                .post(&place)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(request.parameters.clone()),
            Payload::Body { media_type, bytes } => {
                self.client.post(with_query()).header(CONTENT_TYPE, *media_type).body(bytes.clone())
            }
        };
        builder.headers(headers).send().await
    }

    /// The client's headers that may be passed on, and the request's id.
    fn headers(scope: &Scope) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in scope.headers.iter() {
            // Parsing refuses control characters, of which CR and LF would start headers of their own.
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()))
            else {
                continue;
            };
            if !OF_THE_CONNECTION.contains(&name.as_str()) {
                headers.append(name, value);
            }
        }
        if let Ok(id) = HeaderValue::try_from(&*scope.request_id) {
            headers.insert(HeaderName::from_static("x-request-id"), id);
        }
        headers
    }

    fn unreachable(&self, error: &reqwest::Error) -> (BackendError, Health) {
        let backend = self.settings.id.clone();
        // Waiting for someone who is not there is dear: once is enough.
        let health = if error.is_connect() && error.is_timeout() { Health::Gone } else { Health::Failing };
        (BackendError::Unreachable { backend, reason: innermost(error) }, health)
    }

    fn refused(&self, status: StatusCode, start: &[u8], line: Option<String>) -> (BackendError, Health) {
        let health = match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Health::Failing,
            // An error of its own may come from this one request.
            _ if status.is_server_error() => Health::Wrong,
            // It lives if it says that the request is wrong.
            _ => Health::Well,
        };
        let reason = match line.filter(|_| !is_page(start)) {
            None => status.to_string(),
            Some(line) => format!("{status}: {line}"),
        };
        (BackendError::Refused { backend: self.settings.id.clone(), reason }, health)
    }

    async fn receive(&self, response: Response) -> Result<Bytes, (BackendError, Health)> {
        let limit = self.settings.max_body_bytes;
        let too_large =
            || (BackendError::TooLarge { backend: self.settings.id.clone(), limit, unit: "bytes" }, Health::Well);
        let announced = response.content_length().unwrap_or(0);
        if announced > limit {
            return Err(too_large());
        }
        let mut body = BytesMut::with_capacity(announced.min(MAX_RESERVED) as usize);
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| self.unreachable(&error))?;
            self.counters.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            if body.len() as u64 + chunk.len() as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    async fn decode<T: Send + 'static>(
        &self,
        body: Bytes,
        decode: impl FnOnce(&dyn Protocol, &[u8], &Limits) -> Result<T, CodecError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let limits = self.settings.limits;
        let decoded = if body.len() <= SHORT_BODY {
            decode(&*self.protocol, &body, &limits).map_err(|error| (error, looks_like(&body)))
        } else {
            let protocol = self.protocol.clone();
            let work = move || decode(&*protocol, &body, &limits).map_err(|error| (error, looks_like(&body)));
            // It fails only when the runtime ends, or when the decoder has a fault that must not take more with it.
            tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|_| Err((CodecError::garbled("decoding was abandoned"), None)))
        };
        decoded.map_err(|(error, kind)| {
            let backend = self.settings.id.clone();
            match (error, kind) {
                (CodecError::TooLarge { limit, unit }, _) => {
                    BackendError::TooLarge { backend, limit: limit as u64, unit }
                }
                (CodecError::Garbled(_), Some(kind)) => BackendError::Garbled { backend, reason: kind.to_owned() },
                (CodecError::Garbled(reason), None) => BackendError::Garbled { backend, reason: reason.into_owned() },
            }
        })
    }
}

/// Headers that belong to a connection or to the body of a request, so that they are never passed on.
const OF_THE_CONNECTION: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

#[async_trait]
impl Backend for HttpBackend {
    fn id(&self) -> &BackendId {
        &self.inner.settings.id
    }

    async fn fetch(&self, selectors: &[Selector], scope: &Scope) -> Vec<Answer> {
        let (places, stored): (Vec<usize>, Vec<Selector>) = selectors
            .iter()
            .enumerate()
            .filter_map(|(place, s)| {
                Some((place, Selector { range: since_epoch(s.range)?, pattern: s.pattern.clone() }))
            })
            .unzip();
        let requests = self.inner.protocol.render(&stored, scope.now);
        let asked: Vec<Vec<usize>> =
            requests.iter().map(|r| r.answers.iter().map(|at| places[*at]).collect()).collect();
        let replies: Vec<Result<_, BackendError>> = join_all(requests.into_iter().map(|request| {
            let asked: Vec<Selector> = request.answers.iter().map(|at| stored[*at].clone()).collect();
            let count = asked.len();
            let reply =
                self.ask(request, scope, move |protocol, body, limits| protocol.read_render(&asked, body, limits));
            async move {
                let said = reply.await?;
                Ok((said.found.unwrap_or_else(|| vec![Vec::new(); count]), said.partial))
            }
        }))
        .await;
        let mut answers: Vec<Answer> = selectors.iter().map(|_| Ok(Vec::new())).collect();
        for (places, reply) in asked.iter().zip(replies) {
            match reply {
                Ok((each, partial)) => {
                    for (place, series) in places.iter().zip(each) {
                        answers[*place] = self.whole(series, partial.as_ref());
                    }
                }
                Err(error) => {
                    for place in places {
                        answers[*place] = Err(error.clone());
                    }
                }
            }
        }
        answers
    }

    fn finder(&self) -> Option<&dyn Finder> {
        Some(self)
    }

    fn http(&self) -> Option<&HttpBackend> {
        Some(self)
    }

    fn tags(&self) -> Option<&dyn TagSource> {
        if self.inner.protocol.has_tags() { Some(self) } else { None }
    }
}

#[async_trait]
impl Finder for HttpBackend {
    async fn find(&self, query: &FindQuery, scope: &Scope) -> Result<Vec<FoundNode>, BackendError> {
        let stored = FindQuery { range: query.range.and_then(since_epoch), ..query.clone() };
        let said = self.ask(self.inner.protocol.find(&stored), scope, |p, b, l| p.read_find(b, l)).await?;
        let mut nodes = said.found.unwrap_or_default();
        nodes.retain(|n| n.leaf || !query.leaves_only);
        nodes.sort_unstable();
        nodes.dedup_by(|next, first| {
            let same = next.path == first.path && next.leaf == first.leaf;
            if let (true, Some(interval)) = (same, next.interval) {
                first.interval = Some(joined(first.interval, interval));
            }
            same
        });
        self.whole(nodes, said.partial.as_ref())
    }

    async fn index(&self, scope: &Scope) -> Result<Vec<String>, BackendError> {
        let said = self.ask(self.inner.protocol.index(), scope, |p, b, l| p.read_index(b, l)).await?;
        let mut names = said.found.unwrap_or_default();
        names.sort_unstable();
        names.dedup();
        self.whole(names, said.partial.as_ref())
    }
}

#[async_trait]
impl TagSource for HttpBackend {
    async fn list(&self, limits: &TagLimits, scope: &Scope) -> Result<Vec<String>, BackendError> {
        let said = self.ask(tag_api::list(limits), scope, |_, b, l| tag_api::read_tags(b, l)).await?;
        let mut tags = said.found.unwrap_or_default();
        tags.sort_unstable();
        tags.dedup();
        self.whole(tags, said.partial.as_ref())
    }

    async fn values(
        &self,
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Option<Vec<(String, u64)>>, BackendError> {
        let said = self.ask(tag_api::values(tag, limits), scope, |_, b, l| tag_api::read_values(b, l)).await?;
        let mut values = said.found.flatten();
        if let Some(values) = &mut values {
            values.sort_unstable();
        }
        self.whole(values, said.partial.as_ref())
    }

    async fn find_series(&self, expressions: &[String], scope: &Scope) -> Result<Vec<String>, BackendError> {
        self.names(tag_api::find_series(expressions), scope).await
    }

    async fn complete_tags(
        &self,
        expressions: &[String],
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        self.names(tag_api::complete_tags(expressions, limits), scope).await
    }

    async fn complete_values(
        &self,
        expressions: &[String],
        tag: &str,
        limits: &TagLimits,
        scope: &Scope,
    ) -> Result<Vec<String>, BackendError> {
        self.names(tag_api::complete_values(expressions, tag, limits), scope).await
    }
}

/// The part of a range that stores can have points in: none has any before 1970, and most take a time below 0 for a
/// mistake. `None` when there is no such part.
fn since_epoch(range: TimeRange) -> Option<TimeRange> {
    TimeRange::new(range.from().max(0), range.until())
}

/// A URL for logs, metrics and answers to clients: without the name and the password that it may hold.
#[must_use]
pub fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..host].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// The URL without what follows its path, to which paths can be appended.
///
/// # Errors
/// It is not the URL of a backend.
pub fn base_url(text: &str) -> Result<String, SettingsError> {
    let error = |reason: String| SettingsError::Url { url: text.to_owned(), reason };
    let url = Url::parse(text).map_err(|e| error(e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(error(format!("`{}` is not http or https", url.scheme())));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(error("it names no host".to_owned()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(error("it must end with its path".to_owned()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// The start of a body, and its first line as far as it is fit for people.
async fn start_of(response: Response) -> (BytesMut, Option<String>) {
    let mut start = BytesMut::new();
    let mut stream = response.bytes_stream();
    while start.len() < 1000
        && let Some(Ok(chunk)) = stream.next().await
    {
        start.extend_from_slice(&chunk);
    }
    let text = String::from_utf8_lossy(&start);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.map(|line| line.chars().filter(|c| !c.is_control()).take(200).collect());
    (start, line)
}

/// Whether this begins a page or a picture: nothing that says what went wrong.
fn is_page(start: &[u8]) -> bool {
    looks_like(start).is_some() || start.trim_ascii_start().starts_with(b"<")
}

/// What is at the bottom of an error, without the URL, which may be long or hold a password.
fn innermost(error: &reqwest::Error) -> String {
    let mut source = error.source();
    while let Some(deeper) = source.and_then(std::error::Error::source) {
        source = Some(deeper);
    }
    match source {
        Some(source) => source.to_string(),
        None if error.is_timeout() => "no connection in time".to_owned(),
        None => "the connection failed".to_owned(),
    }
}

/// What a request tells of its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    /// It answered.
    Well,
    /// It answered, but with an error of its own or with something that cannot be read. That may be for what is
    /// asked, so several such answers at a time (to the ranges of one client's request) count as one.
    Wrong,
    /// It did not answer, or said that it cannot.
    Failing,
    /// There is nobody: no need to fail more often before it rests.
    Gone,
}

/// Keeps requests from a backend that failed repeatedly. After a while one request is let through as a probe; the
/// others still fail at once until it is known how that one ends.
struct Breaker {
    failures_before_rest: u32,
    retry_delay: Duration,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Requests go through. After so many failures in a row, of which this was the last.
    Working { failures: u32, last: Option<Instant> },
    /// None does until then.
    Resting { until: Instant },
    /// One is on its way, to see.
    Probing,
}

impl Breaker {
    fn new(failures_before_rest: u32, retry_delay: Duration) -> Self {
        let state = Mutex::new(State::Working { failures: 0, last: None });
        Self { failures_before_rest: failures_before_rest.max(1), retry_delay, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resting(&self) -> bool {
        !matches!(*self.state(), State::Working { .. })
    }

    /// Whether waiting for a turn is in vain.
    fn closed_to_all(&self) -> bool {
        match *self.state() {
            State::Working { .. } => false,
            State::Resting { until } => Instant::now() < until,
            State::Probing => true,
        }
    }

    /// Whether the next request is a probe.
    fn probes_next(&self) -> bool {
        matches!(*self.state(), State::Resting { until } if Instant::now() >= until)
    }

    /// Leave to send a request.
    fn attempt(&self) -> Option<Attempt<'_>> {
        let mut state = self.state();
        let probe = match *state {
            State::Working { .. } => false,
            State::Resting { until } if Instant::now() >= until => {
                *state = State::Probing;
                true
            }
            State::Resting { .. } | State::Probing => return None,
        };
        Some(Attempt { breaker: self, probe, began: Instant::now(), ended: false })
    }
}

/// One request that was let through. Dropping it without an end (the request was cancelled) tells nothing.
struct Attempt<'a> {
    breaker: &'a Breaker,
    probe: bool,
    began: Instant,
    ended: bool,
}

impl Attempt<'_> {
    /// Notes how it ended; true when the backend begins to rest.
    fn end(mut self, health: Health) -> bool {
        self.ended = true;
        let breaker = self.breaker;
        let mut state = breaker.state();
        let failures = match (*state, health) {
            (_, Health::Well) => 0,
            // Requests that were on their way before it began to rest do not make it rest longer.
            (State::Resting { .. }, _) => return false,
            (State::Probing, _) if !self.probe => return false,
            (State::Working { last: Some(last), .. }, Health::Wrong) if self.began <= last => return false,
            (State::Working { failures, .. }, Health::Wrong | Health::Failing) => failures + 1,
            (State::Working { .. } | State::Probing, _) => breaker.failures_before_rest,
        };
        let now = Instant::now();
        let rests = failures >= breaker.failures_before_rest;
        *state = if rests {
            State::Resting { until: now + breaker.retry_delay }
        } else {
            State::Working { failures, last: (failures > 0).then_some(now) }
        };
        rests
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.probe && !self.ended {
            let mut state = self.breaker.state();
            if matches!(*state, State::Probing) {
                // The next request is the probe.
                *state = State::Resting { until: Instant::now() };
            }
        }
    }
}
