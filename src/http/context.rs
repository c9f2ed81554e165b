//! What is known of a client's request before it is answered: id, address, headers for the backends.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;

use super::App;
use crate::backend::Scope;
use crate::config::HttpSettings;

/// Name of the header that carries a request's id, both ways and to the backends.
pub(super) const REQUEST_ID: &str = "x-request-id";

/// One client request.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The client's id when it sent a sane one, else one of our own.
    pub id: Arc<str>,
    /// Who asks; behind a trusted proxy the address that it names.
    pub client: Option<IpAddr>,
    /// The headers that the configuration lets through to the backends.
    pub passed: Arc<[(String, String)]>,
}

impl Context {
    pub fn of(request: &HttpRequest, app: &App) -> Self {
        let headers = request.headers();
        let peer = request.peer_addr().map(|a| a.ip());
        let http = &app.config().http;
        Self { id: id(headers), client: client(headers, peer, http), passed: passed(headers, http) }
    }

    /// What the backend calls of this request share.
    pub fn scope(&self, app: &App, now: i64) -> Scope {
        app.scope(now, self.id.clone(), self.passed.clone())
    }
}

/// An id of a client is used when it is short and of harmless characters.
fn id(headers: &HeaderMap) -> Arc<str> {
    let sane = |id: &&str| {
        (1..=128).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    match headers.get(REQUEST_ID).and_then(|v| v.to_str().ok()).filter(sane) {
        Some(id) => id.into(),
        None => new_id(),
    }
}

/// Unique within the process and, by its random start, almost surely among processes.
fn new_id() -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static START: std::sync::LazyLock<u64> = std::sync::LazyLock::new(rand::random);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}", START.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).into()
}

/// The last address in X-Forwarded-For that is not itself a trusted proxy. What a client writes there is believed only
/// when the connection comes from a trusted proxy.
fn client(headers: &HeaderMap, peer: Option<IpAddr>, http: &HttpSettings) -> Option<IpAddr> {
    let trusted = |ip: &IpAddr| http.trusted_proxies.contains(ip);
    let peer = peer?;
    if !trusted(&peer) {
        return Some(peer);
    }
    let lines: Vec<&str> = headers.get_all("x-forwarded-for").filter_map(|v| v.to_str().ok()).collect();
    let mut named: Vec<&str> = lines.iter().flat_map(|l| l.split(',')).map(str::trim).collect();
    let mut last = peer;
    while let Some(text) = named.pop() {
        let Ok(ip) = text.parse() else { break };
        last = ip;
        if !trusted(&ip) {
            break;
        }
    }
    Some(last)
}

/// The headers of the client that are passed on, by the allow-list, sorted. Values with control characters are dropped.
fn passed(headers: &HeaderMap, http: &HttpSettings) -> Arc<[(String, String)]> {
    let allowed = |name: &str| {
        http.headers_to_pass.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
            None => name.eq_ignore_ascii_case(pattern),
        })
    };
    let mut passed: Vec<(String, String)> = headers
        .iter()
        .filter(|(name, _)| allowed(name.as_str()))
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .filter(|(_, value)| !value.chars().any(char::is_control))
        .collect();
    passed.sort();
    passed.into()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = list.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)));
        let mut map = HeaderMap::new();
        pairs.for_each(|(n, v)| map.append(n, v));
        map
    }

    #[test]
    fn forwarded_addresses_count_only_behind_trusted_proxies() {
        let ip = |s: &str| s.parse::<IpAddr>().expect("an address");
        let http = HttpSettings { trusted_proxies: vec![ip("10.0.0.1"), ip("10.0.0.2")], ..HttpSettings::default() };
        let forwarded = headers(&[("x-forwarded-for", "6.6.6.6, 192.0.2.7, 10.0.0.2")]);
        assert_eq!(client(&forwarded, Some(ip("192.0.2.99")), &http), Some(ip("192.0.2.99")));
        assert_eq!(client(&forwarded, Some(ip("10.0.0.1")), &http), Some(ip("192.0.2.7")));
        assert_eq!(client(&headers(&[]), Some(ip("10.0.0.1")), &http), Some(ip("10.0.0.1")));
    }

    #[test]
    fn only_listed_headers_are_passed_on() {
        let sent =
            headers(&[("authorization", "Basic x"), ("cookie", "secret"), ("x-grafana-user", "ann"), ("x-fwd", "a")]);
        let passed = passed(&sent, &HttpSettings::default());
        let names: Vec<&str> = passed.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["authorization", "x-grafana-user"]);
    }

    #[test]
    fn ids_of_clients_are_used_when_they_are_harmless() {
        assert_eq!(&*id(&headers(&[("x-request-id", "abc-1.2_3")])), "abc-1.2_3");
        assert_eq!(id(&headers(&[("x-request-id", "a b")])).len(), 16);
        assert_ne!(id(&headers(&[])), id(&headers(&[])));
    }
}
