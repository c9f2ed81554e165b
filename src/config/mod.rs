//! The configuration file: TOML to checked settings.
//!
//! Nothing is opened or connected here. Every mistake of a file is found in one go, with its line, its key and
//! advice; a [`Config`] that exists is consistent. `config/plumbago.toml` documents every key with its default, and a
//! test compares it with this module.

mod reader;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use toml::de::DeTable;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub use reader::Mistake;
use reader::{Findings, Section};

use crate::backend::{protocol, transport};
use crate::clock::TimeZone;
use crate::evaluate::DEFAULT_COMPUTED;
use crate::fetch::Limits;

/// Everything that the configuration file says.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address and port to listen on.
    pub listen: String,
    /// The zone of times in requests without `tz=`, and of the dates that functions read.
    pub time_zone: TimeZone,
    /// The longest that a client's request may take.
    pub request_timeout: Duration,
    /// Whether an answer that misses a backend is an error instead of a marked, partial answer.
    pub strict: bool,
    /// xFilesFactor of requests that name none, 0 to 1.
    pub x_files_factor: f64,
    /// Threads for HTTP; 0: one for each core.
    pub http_threads: usize,
    /// Threads for talking to backends; 0: one for each core.
    pub fetch_threads: usize,
    /// What is logged: a level, or `tracing` filter directives.
    pub log: String,
    /// Log lines as JSON.
    pub log_json: bool,
    /// Bounds of one request.
    pub limits: RequestLimits,
    /// Caches.
    pub cache: CacheSettings,
    /// HTTP.
    pub http: HttpSettings,
    /// Where events are kept; `None`: in memory.
    pub events_path: Option<PathBuf>,
    /// Backends.
    pub groups: Vec<GroupSettings>,
}

/// Bounds of one request; beyond them it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Targets.
    pub targets: usize,
    /// Series, points and bytes that are fetched.
    pub fetched: Limits,
    /// Points that are computed: fetched ones each time that a target reads them, and those that functions add.
    pub computed: u64,
    /// Bytes that all requests at a time may hold together of what they fetched and computed.
    pub all_requests: u64,
    /// Bytes of a request's body.
    pub body: usize,
}

/// Sizes and lifetimes of the caches. A size or lifetime of 0 turns a cache off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Bytes of fetched series.
    pub series_size: u64,
    /// Their lifetime.
    pub series_ttl: Duration,
    /// Bytes of find and tag answers.
    pub find_size: u64,
    /// Their lifetime.
    pub find_ttl: Duration,
    /// Bytes of finished answers.
    pub response_size: u64,
    /// The lifetime of finished answers, unless a request says `cacheTimeout`, and what `Cache-Control` says.
    pub response_ttl: Duration,
    /// Bytes of remembered steps.
    pub step_size: u64,
}

/// The HTTP side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Origins that browsers may call from; `*` for any.
    pub cors_origins: Vec<String>,
    /// Proxies whose X-Forwarded-For and -Proto are believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// Headers of the client that are passed on to the backends; a `*` at the end stands for any rest.
    pub headers_to_pass: Vec<String>,
    /// Whether answers are compressed for clients that accept it.
    pub compress: bool,
}

/// How the backends of a group divide the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Each holds other series: all are asked.
    Shards,
    /// All hold the same: one is asked, another when it fails or is slow.
    Replicas,
    /// All hold the same, perhaps with gaps: all are asked and the answers merged.
    MergedReplicas,
}

/// One group of backends.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// Its name in logs and metrics.
    pub name: String,
    /// How they divide the work.
    pub kind: GroupKind,
    /// What they speak; `whisper` for local files.
    pub protocol: &'static str,
    /// Where they are.
    pub urls: Vec<String>,
    /// The folder of whisper files.
    pub path: Option<PathBuf>,
    /// The file of the tag index of whisper files; `None`: in memory.
    pub tag_index: Option<PathBuf>,
    /// How often the folder is scanned for new files.
    pub rescan: Duration,
    /// The longest that one of them may take.
    pub timeout: Duration,
    /// The longest that a connection may take.
    pub connect_timeout: Duration,
    /// Requests at a time to each.
    pub concurrency: usize,
    /// The longest answer that is read, in bytes.
    pub max_answer: u64,
    /// Failures in a row after which one rests.
    pub failures_before_rest: u32,
    /// How long it rests.
    pub retry_delay: Duration,
    /// Another replica is asked too when the first is slower than this.
    pub hedge_after: Option<Duration>,
    /// Whether requests begin with another replica each time, or always with the first.
    pub rotate: bool,
    /// How many must answer; 0: none.
    pub min_available: usize,
    /// Only names below these are asked for; empty: all.
    pub prefixes: Vec<String>,
    /// The most patterns in one HTTP request; `None`: as many as the protocol takes.
    pub patterns_per_request: Option<usize>,
    /// Whether long requests may be sent by POST.
    pub post: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            time_zone: TimeZone::utc(),
            request_timeout: Duration::from_secs(30),
            strict: false,
            x_files_factor: 0.0,
            http_threads: 0,
            fetch_threads: 0,
            log: "info".into(),
            log_json: false,
            limits: RequestLimits::default(),
            cache: CacheSettings::default(),
            http: HttpSettings::default(),
            events_path: None,
            groups: Vec::new(),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            targets: 1_000,
            fetched: Limits::default(),
            computed: DEFAULT_COMPUTED,
            all_requests: 8 << 30,
            body: 8 << 20,
        }
    }
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            series_size: 256 << 20,
            series_ttl: Duration::from_secs(5),
            find_size: 64 << 20,
            find_ttl: Duration::from_secs(60),
            response_size: 128 << 20,
            response_ttl: Duration::from_secs(60),
            step_size: 8 << 20,
        }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        let headers = ["Authorization", "X-Grafana-*", "X-Org-Id", "X-Dashboard-Id", "X-Panel-Id"];
        Self {
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            headers_to_pass: headers.map(str::to_owned).to_vec(),
            compress: true,
        }
    }
}

impl GroupSettings {
    /// A group with everything but name, kind, protocol and place as it is by default.
    #[must_use]
    pub fn new(name: &str, kind: GroupKind, protocol: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            protocol,
            urls: Vec::new(),
            path: None,
            tag_index: None,
            rescan: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(1),
            concurrency: 64,
            max_answer: 512 << 20,
            failures_before_rest: 3,
            retry_delay: Duration::from_secs(5),
            hedge_after: None,
            rotate: true,
            min_available: 0,
            prefixes: Vec::new(),
            patterns_per_request: None,
            post: true,
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// It has mistakes; all of them.
    #[error("{0}")]
    Mistakes(Mistakes),
}

/// The mistakes of a file, in its order. Shown one a line as `file:line: key: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The file.
    pub file: PathBuf,
    /// At least one.
    pub list: Vec<Mistake>,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, m) in self.list.iter().enumerate() {
            let (file, end) = (self.file.display(), if i + 1 < self.list.len() { "\n" } else { "" });
            if m.key.is_empty() {
                write!(f, "{file}:{}: {}{end}", m.line, m.message)?;
            } else {
                write!(f, "{file}:{}: {}: {}{end}", m.line, m.key, m.message)?;
            }
        }
        Ok(())
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, or has mistakes.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
        Self::parse(&text, path).map_err(ConfigError::Mistakes)
    }

    /// Checks a text; `file` is for messages, and relative paths in the text are relative to its folder.
    ///
    /// # Errors
    /// All mistakes.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Mistakes> {
        let (config, findings) = Self::examine(text, file);
        let mut list = findings.mistakes.into_inner();
        list.sort_by_key(|m| m.line);
        if list.is_empty() { Ok(config) } else { Err(Mistakes { file: file.to_owned(), list }) }
    }

    fn examine<'a>(text: &'a str, file: &Path) -> (Self, Findings<'a>) {
        let findings = Findings::new(text);
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let at = error.span().map_or(0, |s| s.start);
            findings.add(at, "", error.message().to_owned());
        }
        // A file that is not TOML would only give mistakes that follow from that.
        let readable = findings.mistakes.borrow().is_empty();
        let mut config = Self::default();
        if readable {
            let inner = Findings::new(text);
            {
                let root = Section::root(&inner, &table);
                config = read_config(&root, file.parent().unwrap_or(Path::new("")));
                root.finish();
            }
            findings.mistakes.borrow_mut().extend(inner.mistakes.into_inner());
            findings.known.borrow_mut().extend(inner.known.into_inner());
        }
        (config, findings)
    }
}

fn read_config(root: &Section<'_>, folder: &Path) -> Config {
    let d = Config::default();
    let groups = root.tables("group", |g| read_group(g, folder));
    for (i, group) in groups.iter().enumerate() {
        if groups[..i].iter().any(|g| g.name == group.name) {
            root.mistake("group", format!("two groups are named \"{}\"; names must differ", group.name));
        }
    }
    if !root.has("group") {
        root.mistake("group", "there is no backend; add a [[group]] with `protocol` and `urls` (or `path`)");
    }
    let listen = root.string("listen").unwrap_or(d.listen);
    if !listen.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        root.mistake("listen", format!("\"{listen}\" is not an address with a port, such as \"127.0.0.1:8080\""));
    }
    let time_zone = match root.string("time_zone") {
        None => d.time_zone,
        Some(name) => TimeZone::named(&name).unwrap_or_else(|| {
            root.mistake("time_zone", format!("\"{name}\" is not a time zone such as \"UTC\" or \"Europe/Berlin\""));
            d.time_zone
        }),
    };
    Config {
        listen,
        time_zone,
        request_timeout: root.positive("request_timeout").unwrap_or(d.request_timeout),
        strict: root.boolean("strict").unwrap_or(d.strict),
        x_files_factor: root.fraction("x_files_factor").unwrap_or(d.x_files_factor),
        http_threads: count(root.integer("http_threads", 0), d.http_threads),
        fetch_threads: count(root.integer("fetch_threads", 0), d.fetch_threads),
        log: read_log(root).unwrap_or(d.log),
        log_json: root.boolean("log_json").unwrap_or(d.log_json),
        limits: root.table("limits", read_limits, RequestLimits::default),
        cache: root.table("cache", read_cache, CacheSettings::default),
        http: root.table("http", read_http, HttpSettings::default),
        events_path: root
            .table("events", |t| t.string("path").filter(|p| !p.is_empty()), || None)
            .map(|p| folder.join(p)),
        groups,
    }
}

fn read_log(root: &Section<'_>) -> Option<String> {
    let filter = root.string("log")?;
    // A level that is misspelt would be taken for the name of a module, and nothing would be logged any more.
    let misspelt = |part: &str| {
        let part = part.trim();
        !part.contains(['=', '[', ':']) && part.parse::<LevelFilter>().is_err()
    };
    let wrong = filter.split(',').find(|part| misspelt(part)).map(str::to_owned);
    let wrong = wrong.or_else(|| EnvFilter::try_new(&filter).is_err().then(|| filter.clone()));
    if let Some(wrong) = wrong {
        let levels = "error, warn, info, debug, trace, off";
        let message =
            format!("\"{wrong}\" is neither a level ({levels}) nor a filter such as \"plumbago::backend=debug\"");
        root.mistake("log", message);
    }
    Some(filter)
}

fn count(read: Option<u64>, default: usize) -> usize {
    read.map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

fn read_limits(t: &Section<'_>) -> RequestLimits {
    let d = RequestLimits::default();
    RequestLimits {
        targets: count(t.integer("targets", 1), d.targets),
        fetched: Limits {
            series: t.integer("series", 1).unwrap_or(d.fetched.series),
            points: t.integer("points", 1).unwrap_or(d.fetched.points),
            bytes: t.size("memory").unwrap_or(d.fetched.bytes),
        },
        computed: t.integer("computed", 1).unwrap_or(d.computed),
        all_requests: t.size("all_requests").unwrap_or(d.all_requests),
        body: count(t.size("body"), d.body),
    }
}

fn read_cache(t: &Section<'_>) -> CacheSettings {
    let d = CacheSettings::default();
    CacheSettings {
        series_size: t.bytes("series_size").unwrap_or(d.series_size),
        series_ttl: t.duration("series_ttl").unwrap_or(d.series_ttl),
        find_size: t.bytes("find_size").unwrap_or(d.find_size),
        find_ttl: t.duration("find_ttl").unwrap_or(d.find_ttl),
        response_size: t.bytes("response_size").unwrap_or(d.response_size),
        response_ttl: t.duration("response_ttl").unwrap_or(d.response_ttl),
        step_size: t.bytes("step_size").unwrap_or(d.step_size),
    }
}

fn read_http(t: &Section<'_>) -> HttpSettings {
    let d = HttpSettings::default();
    let mut proxies = Vec::new();
    for proxy in t.strings("trusted_proxies").unwrap_or_default() {
        match proxy.parse() {
            Ok(ip) => proxies.push(ip),
            Err(_) => t.mistake("trusted_proxies", format!("\"{proxy}\" is not an IP address")),
        }
    }
    let origins = t.strings("cors_origins").unwrap_or(d.cors_origins);
    for origin in origins.iter().filter(|origin| *origin != "*") {
        // Browsers send exactly this: no path, not even a slash, and no port that goes without saying.
        match Url::parse(origin).map(|url| url.origin().ascii_serialization()) {
            Ok(sent) if sent == *origin => {}
            Ok(sent) if sent != "null" => {
                t.mistake("cors_origins", format!("\"{origin}\" is not what browsers send; write \"{sent}\""));
            }
            _ => t.mistake(
                "cors_origins",
                format!("\"{origin}\" is not an origin such as \"https://grafana.example.org\""),
            ),
        }
    }
    let headers = t.strings("headers_to_pass").unwrap_or(d.headers_to_pass);
    for header in &headers {
        let name = header.strip_suffix('*').unwrap_or(header);
        if header.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&b)) {
            t.mistake(
                "headers_to_pass",
                format!("\"{header}\" is not the name of a header, such as \"X-Org-Id\" or \"X-Grafana-*\""),
            );
        }
    }
    HttpSettings {
        cors_origins: origins,
        trusted_proxies: proxies,
        headers_to_pass: headers,
        compress: t.boolean("compress").unwrap_or(d.compress),
    }
}

fn read_group(t: &Section<'_>, folder: &Path) -> GroupSettings {
    let protocols: Vec<&'static str> = protocol::NAMES.iter().copied().chain(["whisper"]).collect();
    let name = t.string("name");
    let kind = t.choice("kind", &["shards", "replicas", "merged-replicas"]);
    let protocol = t.choice("protocol", &protocols);
    let mut group = GroupSettings::new(
        name.as_deref().unwrap_or_default(),
        match kind {
            Some("replicas") => GroupKind::Replicas,
            Some("merged-replicas") => GroupKind::MergedReplicas,
            _ => GroupKind::Shards,
        },
        protocol.unwrap_or("graphite"),
    );
    group.urls = t.strings("urls").unwrap_or_default();
    group.path = t.string("path").map(|p| folder.join(p));
    group.tag_index = t.string("tag_index").filter(|p| !p.is_empty()).map(|p| folder.join(p));
    group.rescan = t.positive("rescan").unwrap_or(group.rescan);
    group.timeout = t.positive("timeout").unwrap_or(group.timeout);
    group.connect_timeout = t.positive("connect_timeout").unwrap_or(group.connect_timeout);
    group.concurrency = count(t.integer("concurrency", 1), group.concurrency);
    group.max_answer = t.size("max_answer").unwrap_or(group.max_answer);
    group.failures_before_rest = t
        .integer("failures_before_rest", 1)
        .map_or(group.failures_before_rest, |n| u32::try_from(n).unwrap_or(u32::MAX));
    group.retry_delay = t.duration("retry_delay").unwrap_or(group.retry_delay);
    group.hedge_after = t.duration("hedge_after").filter(|d| !d.is_zero());
    group.rotate = t.boolean("rotate").unwrap_or(group.rotate);
    group.min_available = count(t.integer("min_available", 0), group.min_available);
    group.prefixes = t.strings("prefixes").unwrap_or_default();
    group.patterns_per_request = t.integer("patterns_per_request", 0).filter(|n| *n > 0).map(|n| count(Some(n), 0));
    group.post = t.boolean("post").unwrap_or(group.post);

    if name.as_ref().is_none_or(String::is_empty) {
        t.mistake("name", "each group needs a name");
    }
    if !t.has("protocol") {
        t.mistake("protocol", format!("missing; it is one of {}", protocols.join(", ")));
    }
    if group.protocol == "whisper" {
        if group.path.is_none() {
            t.mistake("path", "a whisper group needs the folder of its files");
        }
        if !group.urls.is_empty() {
            t.mistake("urls", "a whisper group has a `path` instead");
        }
    } else {
        if group.urls.is_empty() {
            t.mistake("urls", "missing; a list such as [\"http://10.0.0.1:8080\"]");
        }
        if group.path.is_some() {
            t.mistake("path", "only a whisper group has a path");
        }
        for url in &group.urls {
            if let Err(error) = transport::base_url(url) {
                t.mistake("urls", error.to_string());
            }
        }
        for (i, url) in group.urls.iter().enumerate() {
            if group.urls[..i].contains(url) {
                t.mistake("urls", format!("\"{url}\" stands twice"));
            }
        }
        if group.min_available > group.urls.len() {
            t.mistake("min_available", format!("more than the {} urls", group.urls.len()));
        }
    }
    for prefix in &group.prefixes {
        if prefix.split('.').any(|node| node.is_empty() || node.contains(['*', '?', '[', '{'])) {
            t.mistake(
                "prefixes",
                format!("\"{prefix}\" is not the beginning of a name, such as \"servers\" or \"apps.web\""),
            );
        }
    }
    if group.hedge_after.is_some() && group.kind != GroupKind::Replicas {
        t.mistake("hedge_after", "only a group of kind \"replicas\" can hedge");
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        match Config::parse(text, Path::new("p.toml")) {
            Ok(_) => Vec::new(),
            Err(m) => m.to_string().lines().map(str::to_owned).collect(),
        }
    }

    const GROUP: &str =
        "[[group]]\nname = \"a\"\nkind = \"shards\"\nprotocol = \"graphite\"\nurls = [\"http://h:1\"]\n";

    #[test]
    fn a_small_file_is_enough() {
        let config = Config::parse(GROUP, Path::new("/etc/p.toml")).expect("valid");
        assert_eq!(config.groups.len(), 1);
        assert_eq!(config.listen, "127.0.0.1:8080");
        let whisper = "[[group]]\nname = \"w\"\nprotocol = \"whisper\"\npath = \"data\"\n";
        let config = Config::parse(whisper, Path::new("/etc/p.toml")).expect("valid");
        assert_eq!(config.groups[0].path.as_deref(), Some(Path::new("/etc/data")));
    }

    #[test]
    fn every_mistake_is_reported_with_its_place() {
        let text = format!(
            "listn = \"x\"\ntime_zone = \"Mars\"\nrequest_timeout = 5\n{GROUP}timout = \"1s\"\nhedge_after = \"1s\"\n"
        );
        assert_eq!(
            mistakes(&text),
            [
                "p.toml:1: listn: unknown key; did you mean `listen`?",
                "p.toml:2: time_zone: \"Mars\" is not a time zone such as \"UTC\" or \"Europe/Berlin\"",
                "p.toml:3: request_timeout: expected a length of time such as \"10s\", \"250ms\", \"5min\" or \"1h\"",
                "p.toml:9: group[0].timout: unknown key; did you mean `timeout`?",
                "p.toml:10: group[0].hedge_after: only a group of kind \"replicas\" can hedge",
            ]
        );
        assert!(mistakes("").iter().any(|m| m.contains("there is no backend")));
        assert!(mistakes("a = ").iter().any(|m| m.starts_with("p.toml:1: ")));
        assert!(
            mistakes("[[group]]\nname=\"x\"\nprotocol=\"grafite\"\nurls=[\"h\"]")
                .iter()
                .any(|m| m.contains("did you mean \"graphite\"?"))
        );
    }

    /// What would only be noticed when the program starts, or when nothing comes back.
    #[test]
    fn values_that_cannot_work_are_mistakes() {
        let of = |top: &str, group: &str| mistakes(&format!("{top}\n{GROUP}{group}\n"));
        for top in [
            "log = \"plumbago::backend=debug,info\"",
            "log = \"WARN\"",
            "[http]\ncors_origins = [\"*\", \"https://g.example\", \"http://g.example:3000\"]",
            "[http]\nheaders_to_pass = [\"*\", \"X-A_b\", \"X-*\"]",
        ] {
            assert_eq!(of(top, "prefixes = [\"servers\", \"apps.web-1\"]"), [""; 0], "{top}");
        }
        for (top, group, expected) in [
            ("log = \"infoo\"", "", "p.toml:1: log: \"infoo\" is neither a level"),
            ("log = \"info,a=b=c\"", "", "p.toml:1: log: "),
            ("request_timeout = \"0s\"", "", "p.toml:1: request_timeout: expected a length of time above 0"),
            ("[limits]\nmemory = 0", "", "p.toml:2: limits.memory: expected a number of bytes above 0"),
            (
                "[http]\ncors_origins = [\"https://G.example:443/\"]",
                "",
                "p.toml:2: http.cors_origins: \"https://G.example:443/\" is not what browsers send; write \"https://g.example\"",
            ),
            (
                "[http]\ncors_origins = [\"g.example\"]",
                "",
                "p.toml:2: http.cors_origins: \"g.example\" is not an origin",
            ),
            (
                "[http]\nheaders_to_pass = [\"X A\"]",
                "",
                "p.toml:2: http.headers_to_pass: \"X A\" is not the name of a header",
            ),
            ("", "timeout = \"0s\"", "p.toml:7: group[0].timeout: expected a length of time above 0"),
            ("", "max_answer = \"0MB\"", "p.toml:7: group[0].max_answer: expected a number of bytes above 0"),
            ("", "prefixes = [\"\"]", "p.toml:7: group[0].prefixes: \"\" is not the beginning of a name"),
            ("", "prefixes = [\"*.a\"]", "p.toml:7: group[0].prefixes: \"*.a\" is not the beginning of a name"),
        ] {
            let found = of(top, group);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
        }
        for url in ["h:1", "http://h:99999", "http://h:1/?q=1", "https://", "ftp://h"] {
            let text = format!("[[group]]\nname = \"a\"\nprotocol = \"graphite\"\nurls = [\"{url}\"]\n");
            let found = mistakes(&text);
            let expected = format!("p.toml:4: group[0].urls: `{url}` is not the URL of a backend");
            assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
        }
    }

    /// The documented file names every key there is and shows its default.
    #[test]
    fn the_documented_file_is_true() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/plumbago.toml");
        let text = std::fs::read_to_string(&path).expect("config/plumbago.toml is there");
        let (config, findings) = Config::examine(&text, &path);
        assert_eq!(findings.mistakes.into_inner(), [], "it has no mistakes");
        let mut documented = std::collections::BTreeSet::new();
        let mut table = String::new();
        let mut previous_is_comment = false;
        for line in text.lines() {
            // A key without a usable default is shown commented out: `#key = value`.
            let shown = line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line);
            if let Some(name) = shown.strip_prefix('[') {
                table = name.trim_matches(['[', ']']).to_owned();
                documented.insert(table.clone());
            } else if let Some((key, _)) = shown.split_once(" = ") {
                assert!(previous_is_comment || line.contains(" # "), "{line} has a line of meaning");
                documented.insert(if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") });
            }
            previous_is_comment = line.starts_with("# ");
        }
        assert_eq!(documented, findings.known.into_inner());
        let (mut shown, mut default) = (config, Config::default());
        let mut group = GroupSettings::new("east", GroupKind::Shards, "graphite");
        group.urls.clone_from(&shown.groups[0].urls);
        default.groups = vec![group];
        shown.groups.truncate(1);
        assert_eq!(format!("{shown:?}"), format!("{default:?}"));
    }
}
