//! End to end: one request over ten backends, six that answer after 10 ms and four after 80 ms.
//!
//! `cargo bench --bench federation [-- ROUNDS]`. The backends and the frontend are child processes (this program, called
//! again), so that the frontend's processor time is its own. Each scenario is measured with all selectors of a request
//! fetched at once, and with one selector after the other; how often the backends were asked is asserted.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumbago::backend::msgpack;
use plumbago::config::{Config, GroupKind, GroupSettings};
use plumbago::http::{self, App};
use plumbago::render::FetchMode;
use plumbago::series::{Series, Step};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn Error>>;

const FAST: u64 = 10;
const SLOW: u64 = 80;
/// Milliseconds that each backend takes.
const LATENCIES: [u64; 10] = [FAST, FAST, FAST, FAST, FAST, FAST, SLOW, SLOW, SLOW, SLOW];
/// Series that each backend has for a pattern.
const SERIES: usize = 20;
const STEP: i64 = 60;
const UNTIL: i64 = 1_699_999_200;
const FROM: i64 = UNTIL - 86_400;

/// What is asked, and over how many ranges.
struct Scenario {
    name: &'static str,
    targets: [&'static str; 6],
    ranges: usize,
    /// Parameters beside targets and times.
    more: &'static [(&'static str, &'static str)],
}

const TARGETS: [&str; 6] = [
    "alias(maxSeries(*.*.*.*.x.a.*.mean),'a')",
    "alias(maxSeries(*.*.*.*.x.b.*.mean),'b')",
    "alias(maxSeries(*.*.*.*.x.c.*.mean),'c')",
    "alias(maxSeries(*.*.*.*.x.d.*.mean),'d')",
    "alias(maxSeries(*.*.*.*.x.e.*.mean),'e')",
    "alias(scale(*.*.*.y.f.mean,0.01),'f')",
];

const SCENARIOS: [Scenario; 3] = [
    Scenario { name: "six targets, one range", targets: TARGETS, ranges: 1, more: &[] },
    Scenario {
        name: "the same for a panel 1000 pixels wide",
        targets: TARGETS,
        ranges: 1,
        more: &[("maxDataPoints", "1000")],
    },
    Scenario {
        name: "with movingAverage('1h') and timeShift('1d')",
        targets: [
            "alias(maxSeries(*.*.*.*.x.a.*.mean),'a')",
            "alias(maxSeries(*.*.*.*.x.b.*.mean),'b')",
            "alias(movingAverage(maxSeries(*.*.*.*.x.c.*.mean),'1h'),'c')",
            "alias(timeShift(maxSeries(*.*.*.*.x.d.*.mean),'1d'),'d')",
            "alias(maxSeries(*.*.*.*.x.e.*.mean),'e')",
            "alias(scale(*.*.*.y.f.mean,0.01),'f')",
        ],
        ranges: 3,
        more: &[],
    },
];

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    match arguments.next().as_deref() {
        Some("backend") => {
            let number = arguments.next().ok_or("a backend has a number")?.parse()?;
            Backend::serve(number)
        }
        Some("frontend") => {
            let one_by_one = arguments.next().as_deref() == Some("one-by-one");
            frontend(one_by_one, &arguments.collect::<Vec<_>>())
        }
        Some(rounds) => measure(rounds.parse()?),
        None => measure(50),
    }
}

/// A child process that prints its address when it listens, and ends when its standard input does.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start(arguments: &[&str]) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            // As `plumbago serve` has it.
            .env("MIMALLOC_PURGE_DELAY", "60000")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let out = child.stdout.take().ok_or("a child has an output")?;
        BufReader::new(out).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    /// Processor time so far, where the system tells.
    fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The second field is a name in parentheses that may hold anything. Times are in hundredths of a second.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Duration::from_millis(10 * ticks))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Tells the parent where this child listens, and ends the child with its parent.
fn announce(listener: &TcpListener) -> Outcome<()> {
    println!("{}", listener.local_addr()?);
    thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    Ok(())
}

fn frontend(one_by_one: bool, backends: &[String]) -> Outcome<()> {
    let mut config = Config::default();
    config.cache.series_size = 0;
    config.cache.find_size = 0;
    config.cache.response_size = 0;
    let mut group = GroupSettings::new("bench", GroupKind::Shards, "graphite");
    group.urls = backends.iter().map(|address| format!("http://{address}")).collect();
    config.groups.push(group);
    let mode = if one_by_one { FetchMode::OneByOne } else { FetchMode::Bulk };
    let app = App::build(config)?.fetching(mode);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    announce(&listener)?;
    Ok(http::serve(app, listener)?)
}

/// A storage that has every series that is asked for, and answers after a while.
struct Backend {
    number: usize,
    latency: Duration,
    /// Bodies are made once: their making is no part of what is measured.
    bodies: Mutex<HashMap<String, Arc<Vec<u8>>>>,
    requests: AtomicUsize,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
}

impl Backend {
    fn serve(number: usize) -> Outcome<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        announce(&listener)?;
        let backend = Arc::new(Self {
            number,
            latency: Duration::from_millis(LATENCIES[number]),
            bodies: Mutex::default(),
            requests: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
        });
        for connection in listener.incoming() {
            let (backend, connection) = (backend.clone(), connection?);
            thread::spawn(move || drop(backend.converse(connection)));
        }
        Ok(())
    }

    fn converse(&self, mut connection: TcpStream) -> Outcome<()> {
        connection.set_nodelay(true)?;
        let mut reader = BufReader::new(connection.try_clone()?);
        loop {
            let Some((first, _)) = read_head(&mut reader)? else { return Ok(()) };
            let place = first.split(' ').nth(1).ok_or("a request line has a path")?;
            match place.split_once('?') {
                Some(("/render/" | "/render", query)) => {
                    let began = Instant::now();
                    self.requests.fetch_add(1, Ordering::SeqCst);
                    let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                    self.most_in_flight.fetch_max(now, Ordering::SeqCst);
                    let body = self.body(query);
                    thread::sleep(self.latency.saturating_sub(began.elapsed()));
                    self.in_flight.fetch_sub(1, Ordering::SeqCst);
                    connection.write_all(head(body.len()).as_bytes())?;
                    connection.write_all(&body)?;
                }
                // What happened since this was asked last.
                _ => {
                    let asked = self.requests.swap(0, Ordering::SeqCst);
                    let body = format!("{asked} {}", self.most_in_flight.swap(0, Ordering::SeqCst));
                    connection.write_all((head(body.len()) + &body).as_bytes())?;
                }
            }
        }
    }

    fn body(&self, query: &str) -> Arc<Vec<u8>> {
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.entry(query.to_owned()).or_insert_with(|| Arc::new(self.answer(query))).clone()
    }

    fn answer(&self, query: &str) -> Vec<u8> {
        let parameters: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let all = |name| parameters.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str());
        let time = |name| all(name).next().and_then(|t| t.parse::<i64>().ok()).expect("every request has a range");
        let start = time("from") / STEP * STEP + STEP;
        let points = (time("until") - start) / STEP + 1;
        let step = Step::new(STEP).expect("a minute is a step");
        let mut series = Vec::new();
        for pattern in all("target") {
            for n in 0..SERIES {
                let name = pattern.replacen('*', &format!("b{}", self.number), 1);
                let name = name.replacen('*', &format!("s{n}"), 1).replace('*', "n");
                let value = |i: i64| ((i + start / STEP) * (n as i64 + 3) % 9_973) as f64 / 100.0;
                let mut one = Series::new(name.as_str(), start, step, (0..points).map(value).collect());
                one.path_expression = pattern.into();
                series.push(one);
            }
        }
        msgpack::write_render(&series)
    }
}

fn head(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: x/x\r\nContent-Length: {length}\r\n\r\n")
}

/// First line and body length of a request or an answer; `None` when the other side has hung up. The body of an answer
/// without a length is in chunks.
fn read_head(reader: &mut BufReader<TcpStream>) -> Outcome<Option<(String, Option<usize>)>> {
    let (mut first, mut length, mut line) = (String::new(), None, String::new());
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            return Ok(Some((first, length)));
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = Some(value.trim().parse()?);
        }
    }
}

/// One connection that asks and reads the whole answer.
struct Client {
    connection: BufReader<TcpStream>,
    /// What was read last. Kept small, so that the client's own memory is no part of what is measured.
    last: Vec<u8>,
}

impl Client {
    fn connect(address: &str) -> Outcome<Self> {
        let connection = TcpStream::connect(address)?;
        connection.set_nodelay(true)?;
        Ok(Self { connection: BufReader::with_capacity(8 << 10, connection), last: vec![0; 64 << 10] })
    }

    /// The bytes of an answer's body. The whole body is in `self.last` when it is small.
    fn get(&mut self, path: &str) -> Outcome<usize> {
        self.connection.get_mut().write_all(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes())?;
        let (first, length) = read_head(&mut self.connection)?.ok_or("the server hung up")?;
        let bytes = match length {
            Some(length) => self.read(length)?,
            None => self.read_chunks()?,
        };
        if !first.starts_with("HTTP/1.1 200") {
            return Err(format!("{first}{}", String::from_utf8_lossy(&self.last[..bytes.min(self.last.len())])).into());
        }
        Ok(bytes)
    }

    fn read(&mut self, length: usize) -> Outcome<usize> {
        let mut left = length;
        while left > 0 {
            let most = left.min(self.last.len());
            match self.connection.read(&mut self.last[..most])? {
                0 => return Err("the server hung up within a body".into()),
                n => left -= n,
            }
        }
        Ok(length)
    }

    fn read_chunks(&mut self) -> Outcome<usize> {
        let mut all = 0;
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16)?;
            all += self.read(length)?;
            self.connection.read_line(&mut line)?;
            if length == 0 {
                return Ok(all);
            }
        }
    }
}

struct Figures {
    median: Duration,
    processor: Option<Duration>,
    requests: usize,
    bytes: usize,
}

fn measure(rounds: usize) -> Outcome<()> {
    let backends =
        (0..LATENCIES.len()).map(|n| Process::start(&["backend", &n.to_string()])).collect::<Outcome<Vec<_>>>()?;
    println!(
        "{} backends ({} of {FAST} ms, {} of {SLOW} ms), {SERIES} series a pattern and backend, {} points a series",
        LATENCIES.len(),
        LATENCIES.iter().filter(|l| **l == FAST).count(),
        LATENCIES.iter().filter(|l| **l == SLOW).count(),
        (UNTIL - FROM) / STEP,
    );
    for scenario in &SCENARIOS {
        println!("\n{}", scenario.name);
        for (name, rounds) in [("bulk", rounds), ("one-by-one", rounds.div_ceil(10))] {
            let f = scenario.measure(name, &backends, rounds)?;
            println!(
                "  {name:<10}  median {:>6.1} ms ({:.2} x {SLOW} ms)  requests a backend {:>2}  processor {}  {:.1} MB",
                f.median.as_secs_f64() * 1e3,
                f.median.as_secs_f64() * 1e3 / SLOW as f64,
                f.requests,
                f.processor.map_or("unknown".to_owned(), |p| format!("{:.1} ms", p.as_secs_f64() * 1e3)),
                f.bytes as f64 / 1e6,
            );
        }
    }
    Ok(())
}

impl Scenario {
    fn measure(&self, mode: &str, backends: &[Process], rounds: usize) -> Outcome<Figures> {
        let addresses = backends.iter().map(|b| b.address.as_str());
        let frontend = Process::start(&["frontend", mode].into_iter().chain(addresses).collect::<Vec<_>>())?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.targets.iter().map(|target| ("target", target)));
        query.append_pair("from", &FROM.to_string()).append_pair("until", &UNTIL.to_string());
        query.append_pair("now", &UNTIL.to_string()).append_pair("format", "json");
        query.extend_pairs(self.more);
        let path = format!("/render?{}", query.finish());
        let mut client = Client::connect(&frontend.address)?;
        for _ in 0..3 {
            client.get(&path)?;
        }
        counts(backends)?;
        let mut latencies = Vec::with_capacity(rounds);
        let mut bytes = 0;
        let before = frontend.processor_time();
        for _ in 0..rounds {
            let began = Instant::now();
            bytes = client.get(&path)?;
            latencies.push(began.elapsed());
        }
        let processor =
            frontend.processor_time().zip(before).map(|(after, before)| after.saturating_sub(before) / rounds as u32);
        latencies.sort_unstable();
        let mut requests = 0;
        for (asked, at_once) in counts(backends)? {
            requests = asked / rounds;
            if mode == "bulk" {
                assert_eq!(asked, self.ranges * rounds, "one request a backend and range");
                assert_eq!(at_once, self.ranges, "all ranges in one round");
            } else {
                assert_eq!(asked, self.targets.len() * rounds, "one request a backend and selector");
                assert_eq!(at_once, 1, "one after the other");
            }
        }
        Ok(Figures { median: latencies[rounds / 2], processor, requests, bytes })
    }
}

/// Of each backend: how often it was asked since the last time, and the most requests that it had at the same time.
fn counts(backends: &[Process]) -> Outcome<Vec<(usize, usize)>> {
    let one = |backend: &Process| {
        let mut client = Client::connect(&backend.address)?;
        let bytes = client.get("/counts")?;
        let text = str::from_utf8(&client.last[..bytes])?;
        let (asked, at_once) = text.split_once(' ').ok_or("two counts")?;
        Ok((asked.parse()?, at_once.parse()?))
    };
    backends.iter().map(one).collect()
}
