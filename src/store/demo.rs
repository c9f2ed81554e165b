//! Demo data: some hundred whisper series that look like those of a small company, in three folders.
//!
//! All values are a function of the seed and the time, so the same call makes the same files. Nothing here reads the
//! clock. The folders share no series, so that each can stand for a backend.

use std::f64::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};

use super::names;
use super::tree;
use super::whisper::{Archive, RollUp, WhisperError, WhisperFile};
use crate::series::Step;

/// The folders that [`write_demo`] makes.
pub const DEMO_PARTS: [&str; 3] = ["shard1", "shard2", "shard3"];

/// Fills `folder` with demo data of the weeks before `now` (seconds since the epoch): whisper files in each of
/// [`DEMO_PARTS`]. Answers their paths.
///
/// # Errors
/// A file cannot be written, or is there already.
pub fn write_demo(folder: &Path, now: i64, seed: u64) -> Result<[PathBuf; 3], WhisperError> {
    let parts = DEMO_PARTS.map(|part| folder.join(part));
    for series in all(now, seed) {
        let place = if names::is_tagged(&series.name) { names::tagged_node(&series.name) } else { series.name.clone() };
        let file = tree::file_of(&place).expect("the names of demo series can be file names");
        let path = parts[series.part % parts.len()].join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|source| WhisperError::Io { path: parent.to_owned(), source })?;
        }
        let archives = series.kept.archives();
        WhisperFile::create(
            &path,
            &archives,
            series.kept.x_files_factor(),
            series.kept.roll_up(),
            &series.points(now),
            now,
        )?;
    }
    Ok(parts)
}

/// How long at which resolution, and how it is rolled up.
#[derive(Clone, Copy)]
enum Kept {
    /// What a host reports each minute.
    Host,
    /// What the applications report each ten seconds.
    Fast,
    /// The same, counted: minutes are sums.
    Counted,
    /// Business numbers, counted each five minutes.
    Slow,
}

impl Kept {
    /// Step and length of each archive, in seconds.
    fn lengths(self) -> &'static [(i64, i64)] {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        match self {
            Self::Host => &[(60, 3 * DAY), (300, 14 * DAY)],
            Self::Fast | Self::Counted => &[(10, 6 * HOUR), (60, 3 * DAY), (300, 14 * DAY)],
            Self::Slow => &[(300, 14 * DAY), (3600, 60 * DAY)],
        }
    }

    fn archives(self) -> Vec<Archive> {
        let lengths = self.lengths().iter();
        lengths
            .map(|(step, length)| Archive {
                step: Step::new(*step).expect("the steps above are positive"),
                points: (length / step) as u32,
            })
            .collect()
    }

    fn roll_up(self) -> RollUp {
        if self.counts() { RollUp::Sum } else { RollUp::Average }
    }

    fn x_files_factor(self) -> f32 {
        if self.counts() { 0.0 } else { 0.5 }
    }

    fn counts(self) -> bool {
        matches!(self, Self::Counted | Self::Slow)
    }
}

/// What a series is worth at a time; for a counted one, its rate for each second.
type Value = Box<dyn Fn(i64) -> f64>;

/// One series: where it goes and what it is worth at a time.
struct Demo {
    name: String,
    part: usize,
    kept: Kept,
    /// The times at which nothing was reported.
    silent: Vec<(i64, i64)>,
    value: Value,
}

impl Demo {
    /// Points of each archive for the time that the finer ones do not reach.
    fn points(&self, now: i64) -> Vec<(i64, f64)> {
        let mut points = Vec::new();
        let mut until = now;
        for (step, length) in self.kept.lengths() {
            let from = now - length;
            let first = from - from.rem_euclid(*step) + step;
            for time in (first..=until).step_by(*step as usize) {
                if self.silent.iter().any(|(start, end)| (*start..*end).contains(&time)) {
                    continue;
                }
                let value = (self.value)(time);
                let value = if self.kept.counts() { (value * *step as f64).round() } else { value };
                points.push((time, value));
            }
            until = first - step;
        }
        points
    }
}

/// Numbers that follow from a seed.
#[derive(Clone, Copy)]
struct Noise(u64);

impl Noise {
    fn of(self, text: &str) -> Self {
        Self(text.bytes().fold(self.0, |hash, byte| mixed(hash ^ u64::from(byte))))
    }

    /// 0 to 1, for one whole number.
    fn at(self, n: i64) -> f64 {
        (mixed(self.0 ^ mixed(n as u64)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// -1 to 1, changing smoothly, with about one hill for each two periods (in seconds).
    fn smooth(self, time: i64, period: i64) -> f64 {
        let (n, part) = (time.div_euclid(period), time.rem_euclid(period) as f64 / period as f64);
        let (a, b) = (self.at(n), self.at(n + 1));
        let ease = part * part * (3.0 - 2.0 * part);
        2.0 * (a + (b - a) * ease) - 1.0
    }

    /// -1 to 1, as measured things wander: slow hills, small ones on them, jitter on those.
    fn wander(self, time: i64) -> f64 {
        0.5 * self.smooth(time, 5400) + 0.3 * self.smooth(time, 900) + 0.2 * (2.0 * self.at(time) - 1.0)
    }

    /// 0 nearly always; now and then a burst that reaches up to 1 and ends within a quarter of an hour.
    fn burst(self, time: i64) -> f64 {
        let slot = time.div_euclid(900);
        if self.at(slot ^ 0x5eed) > 0.012 {
            return 0.0;
        }
        let part = time.rem_euclid(900) as f64 / 900.0;
        (part * TAU / 2.0).sin() * (0.5 + 0.5 * self.at(slot))
    }
}

/// A good hash of one number (SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// How busy the day is, 0 to 1: quiet at 4, busiest at 16 o'clock (UTC plus `zone` hours), less on weekends.
fn daily(time: i64, zone: i64) -> f64 {
    let local = time + zone * 3600;
    let hour = local.rem_euclid(86_400) as f64 / 3600.0;
    let wave = 0.5 - 0.5 * ((hour - 4.0) / 24.0 * TAU).cos();
    // 1 January 1970 was a Thursday.
    let weekday = (local.div_euclid(86_400) + 3).rem_euclid(7);
    let week = if weekday >= 5 { 0.6 } else { 1.0 };
    (0.1 + 0.9 * wave) * week
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

const HOSTS: [(&str, i64, f64); 15] = [
    // Name, time zone of its users, how much of it they use.
    ("web01", 0, 0.6),
    ("web02", 0, 0.65),
    ("web03", 0, 0.55),
    ("web04", -6, 0.7),
    ("web05", -6, 0.5),
    ("web06", 8, 0.6),
    ("web07", 8, 0.45),
    ("web08", 0, 0.3),
    ("db01", 0, 0.75),
    ("db02", 0, 0.35),
    ("db03", -6, 0.5),
    ("db04", 8, 0.4),
    ("cache01", 0, 0.3),
    ("cache02", -6, 0.25),
    ("cache03", 8, 0.2),
];

fn all(now: i64, seed: u64) -> Vec<Demo> {
    let noise = Noise(seed);
    let mut series = Vec::new();
    for (part, (host, zone, use_of_it)) in HOSTS.into_iter().enumerate() {
        hosts(&mut series, noise.of(host), now, part, host, zone, use_of_it);
    }
    applications(&mut series, noise, now);
    business(&mut series, noise);
    tagged(&mut series, noise);
    series
}

fn hosts(series: &mut Vec<Demo>, noise: Noise, now: i64, part: usize, host: &'static str, zone: i64, use_of_it: f64) {
    let silent = match host {
        // It was down for forty minutes yesterday.
        "web03" => vec![(now - 93_600, now - 91_200)],
        // It is new.
        "web08" => vec![(i64::MIN, now - 2 * 86_400)],
        // It was switched off.
        "cache03" => vec![(now - 5 * 3600, i64::MAX)],
        // Its network is bad: now and then some minutes are missing.
        "db02" => (0..40).map(|i| now - (noise.at(i) * 14.0 * 86_400.0) as i64).map(|t| (t, t + 420)).collect(),
        _ => vec![],
    };
    let busy = move |time: i64| {
        let busy = use_of_it * (0.25 + 0.75 * daily(time, zone)) + 0.06 * noise.wander(time) + 0.3 * noise.burst(time);
        busy.clamp(0.01, 0.98)
    };
    let mut add = |name: String, value: Value| {
        let name = format!("servers.{host}.{name}");
        series.push(Demo { name, part, kept: Kept::Host, silent: silent.clone(), value });
    };

    let user = move |t| hundredths(72.0 * busy(t));
    let system = move |t| hundredths(16.0 * busy(t) + 1.5 * noise.of("system").at(t));
    let iowait =
        move |t| hundredths((3.0 * noise.of("iowait").wander(t) + 20.0 * noise.of("io").burst(t)).max(0.0) * 0.5);
    add("cpu.user".into(), Box::new(user));
    add("cpu.system".into(), Box::new(system));
    add("cpu.iowait".into(), Box::new(iowait));
    add("cpu.idle".into(), Box::new(move |t| hundredths((100.0 - user(t) - system(t) - iowait(t)).max(0.0))));
    for (minutes, name) in [(1, "1"), (5, "5"), (15, "15")] {
        // A load of fifteen minutes is a mean over them.
        let load = move |t: i64| (0..minutes).map(|m| busy(t - 60 * m)).sum::<f64>() / minutes as f64 * 8.0;
        add(format!("load.{name}"), Box::new(move |t| hundredths(load(t))));
    }

    let total = f64::from(1_u32 << (4 + part % 3)) * f64::from(1 << 30);
    // It leaks until the nightly restart.
    let used = move |t: i64| {
        let since_restart = (t - 3 * 3600).rem_euclid(86_400) as f64 / 86_400.0;
        (total * (0.3 + 0.25 * busy(t) + 0.15 * since_restart)).round()
    };
    let cached = move |t: i64| (total * (0.15 + 0.05 * noise.of("cached").smooth(t, 7200))).round();
    add("memory.used".into(), Box::new(used));
    add("memory.cached".into(), Box::new(cached));
    add("memory.free".into(), Box::new(move |t| (total - used(t) - cached(t)).max(0.0)));

    for disk in ["root", "data"] {
        let noise = noise.of(disk);
        let (size, fills) = if disk == "root" { (40.0, 2.0) } else { (55.0, 6.0) };
        let full = move |t: i64| {
            let days = (t - now) as f64 / 86_400.0;
            let log_rotation = t.rem_euclid(86_400) as f64 / 86_400.0;
            hundredths((size + fills * days / 7.0 + 1.5 * log_rotation + 20.0 * noise.at(0)).clamp(5.0, 99.0))
        };
        add(format!("disk.{disk}.used_percent"), Box::new(full));
        for (direction, scale) in [("read_bytes", 6e6), ("write_bytes", 2.5e6)] {
            let noise = noise.of(direction);
            let rate = move |t| (scale * (busy(t) * (1.2 + noise.wander(t)) + 2.0 * noise.burst(t)).max(0.0)).round();
            add(format!("disk.{disk}.{direction}"), Box::new(rate));
        }
    }
    for (direction, scale) in [("rx_bytes", 9e6), ("tx_bytes", 2.4e7)] {
        let noise = noise.of(direction);
        let rate = move |t| (scale * (busy(t) * (1.0 + 0.3 * noise.wander(t))).max(0.0)).round();
        add(format!("net.eth0.{direction}"), Box::new(rate));
    }
}

fn applications(series: &mut Vec<Demo>, noise: Noise, now: i64) {
    let mut add = |part, kept, name: String, value: Value| {
        series.push(Demo { name, part, kept, silent: vec![], value });
    };
    let timers = [
        ("api", 40.0, 90.0),
        ("checkout", 180.0, 4.0),
        ("db", 6.0, 400.0),
        ("login", 120.0, 7.0),
        ("search", 75.0, 30.0),
    ];
    for (part, (timer, milliseconds, per_second)) in timers.into_iter().enumerate() {
        let noise = noise.of(timer);
        // A release two days ago made the search faster.
        let release = if timer == "search" { now - 2 * 86_400 } else { i64::MIN };
        let mean = move |t: i64| {
            let slower = 1.0 + 0.5 * daily(t, 0) + 0.15 * noise.wander(t) + 2.5 * noise.burst(t);
            milliseconds * slower * if t < release { 1.7 } else { 1.0 }
        };
        let tail = move |t: i64| 1.8 + 0.5 * noise.of("tail").smooth(t, 1800);
        let rate = move |t: i64| per_second * daily(t, 0) * (1.0 + 0.2 * noise.of("rate").wander(t));
        let name = |what: &str| format!("stats.timers.{timer}.{what}");
        add(part, Kept::Fast, name("mean"), Box::new(move |t| hundredths(mean(t))));
        add(part, Kept::Fast, name("upper_90"), Box::new(move |t| hundredths(mean(t) * tail(t))));
        add(part, Kept::Fast, name("upper_99"), Box::new(move |t| hundredths(mean(t) * tail(t) * 1.9)));
        add(part, Kept::Counted, name("count"), Box::new(rate));
    }
    let counters = [
        ("http.status.2xx", 120.0, 0.0),
        ("http.status.3xx", 14.0, 0.0),
        ("http.status.4xx", 3.0, 20.0),
        ("http.status.5xx", 0.05, 9.0),
        ("jobs.done", 8.0, 0.0),
        ("jobs.failed", 0.02, 1.0),
        ("logins", 2.2, 0.0),
        ("mails.sent", 1.1, 12.0),
    ];
    for (part, (counter, per_second, bursts)) in counters.into_iter().enumerate() {
        let noise = noise.of(counter);
        let rate =
            move |t| (per_second * daily(t, 0) * (1.0 + 0.25 * noise.wander(t)) + bursts * noise.burst(t)).max(0.0);
        add(part, Kept::Counted, format!("stats.counters.{counter}.count"), Box::new(rate));
    }
    for (part, queue) in ["images", "mails", "orders", "reports"].into_iter().enumerate() {
        let noise = noise.of(queue);
        let depth = move |t| (12.0 * daily(t, 0) * (1.0 + noise.wander(t)) + 400.0 * noise.burst(t)).max(0.0).round();
        add(part, Kept::Fast, format!("stats.gauges.queue.{queue}.depth"), Box::new(depth));
    }
}

fn business(series: &mut Vec<Demo>, noise: Noise) {
    for (part, (region, zone, per_minute)) in
        [("apac", 8, 3.0), ("eu", 1, 9.0), ("us", -6, 7.0)].into_iter().enumerate()
    {
        let noise = noise.of(region);
        let orders = move |t| per_minute / 60.0 * daily(t, zone) * (1.0 + 0.3 * noise.wander(t));
        let basket = move |t| 38.0 + 6.0 * noise.of("basket").smooth(t, 6 * 3600);
        let visitors = move |t| orders(t) * (28.0 + 5.0 * noise.of("visitors").wander(t));
        let values: [(&str, Value); 3] = [
            ("orders", Box::new(orders)),
            ("revenue", Box::new(move |t| orders(t) * basket(t))),
            ("visitors", Box::new(visitors)),
        ];
        for (what, value) in values {
            series.push(Demo {
                name: format!("business.{what}.{region}"),
                part,
                kept: Kept::Slow,
                silent: vec![],
                value,
            });
        }
    }
}

fn tagged(series: &mut Vec<Demo>, noise: Noise) {
    let centers = [("ams", 1), ("nyc", -5), ("sin", 8)];
    for (part, (center, zone)) in centers.into_iter().enumerate() {
        for (method, share) in [("GET", 1.0), ("POST", 0.12)] {
            for (code, rate, bursts) in [("200", 60.0, 0.0), ("404", 1.5, 8.0), ("500", 0.02, 4.0)] {
                let name = format!("http.requests;code={code};dc={center};method={method}");
                let noise = noise.of(&name);
                let value = move |t| {
                    (share * (rate * daily(t, zone) * (1.0 + 0.2 * noise.wander(t)) + bursts * noise.burst(t))).max(0.0)
                };
                series.push(Demo { name, part, kept: Kept::Counted, silent: vec![], value: Box::new(value) });
            }
        }
        for service in ["billing", "catalog", "gateway", "users"] {
            let name = format!("jvm.heap.used;dc={center};service={service}");
            let noise = noise.of(&name);
            // A saw: it grows until the collector runs.
            let period = 600 + (noise.at(1) * 1200.0) as i64;
            let value = move |t: i64| {
                let grown = t.rem_euclid(period) as f64 / period as f64;
                (1e9 * (0.4 + 0.45 * grown + 0.05 * noise.wander(t))).round()
            };
            series.push(Demo { name, part, kept: Kept::Fast, silent: vec![], value: Box::new(value) });
        }
    }
    for (part, (host, ..)) in HOSTS.into_iter().enumerate() {
        let role = host.trim_end_matches(|c: char| c.is_ascii_digit());
        let name = format!("node.temperature;host={host};role={role}");
        let noise = noise.of(&name);
        let value = move |t| hundredths(41.0 + 9.0 * daily(t, 0) + 3.0 * noise.wander(t));
        series.push(Demo { name, part, kept: Kept::Host, silent: vec![], value: Box::new(value) });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::series::TimeRange;

    const NOW: i64 = 1_700_000_123;

    #[test]
    fn is_a_few_hundred_series_in_three_parts() {
        let all = all(NOW, 7);
        let names: BTreeSet<&str> = all.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!((300..500).contains(&all.len()), "{}", all.len());
        for part in 0..3 {
            assert!(all.iter().filter(|s| s.part % 3 == part).count() > 80);
        }
        assert!(all.iter().filter(|s| s.name.contains(';')).count() > 40);
    }

    #[test]
    fn values_are_plausible_and_follow_from_the_seed() {
        let all_series = all(NOW, 7);
        let (same, other) = (all(NOW, 7), all(NOW, 8));
        let mut differ = 0;
        for (i, series) in all_series.iter().enumerate() {
            for time in (NOW - 14 * 86_400..NOW).step_by(9_973) {
                let value = (series.value)(time);
                assert!(value.is_finite() && value >= 0.0, "{} {value}", series.name);
                assert!(!series.name.contains(".cpu.") || value <= 100.0, "{} {value}", series.name);
                assert_eq!(value, (same[i].value)(time));
                differ += usize::from(value != (other[i].value)(time));
            }
        }
        assert!(differ > 10_000);
        let host = |what: &str| {
            all_series.iter().find(|s| s.name == format!("servers.web01.cpu.{what}")).map(|s| (s.value)(NOW))
        };
        let sum: f64 = ["user", "system", "iowait", "idle"].into_iter().filter_map(host).sum();
        assert!((sum - 100.0).abs() < 0.02, "{sum}");
        // Tuesday afternoon in Europe is busier than the night before.
        assert!(daily(1_699_970_400, 0) > 3.0 * daily(1_699_930_800, 0));
    }

    #[test]
    fn files_reach_back_two_weeks() {
        let folder = tempfile::tempdir().expect("a folder");
        let series = all(NOW, 7).into_iter().filter(|s| s.name.starts_with("stats.timers.search")).collect::<Vec<_>>();
        for series in series {
            let path = folder.path().join(&series.name);
            let (archives, points) = (series.kept.archives(), series.points(NOW));
            let file = WhisperFile::create(
                &path,
                &archives,
                series.kept.x_files_factor(),
                series.kept.roll_up(),
                &points,
                NOW,
            );
            let file = file.expect("written");
            for (reach, step) in [(3600, 10), (86_400, 60), (13 * 86_400, 300)] {
                let range = TimeRange::new(NOW - reach, NOW).expect("a range");
                let points = file.fetch(range, NOW).expect("fetched").expect("points");
                assert_eq!(points.step.seconds(), step);
                let known = points.values.iter().filter(|v| !v.is_nan()).count();
                assert!(
                    known + 2 >= points.values.len(),
                    "{} {reach}: {known} of {}",
                    series.name,
                    points.values.len()
                );
            }
        }
    }
}
