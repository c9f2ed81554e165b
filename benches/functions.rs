//! The functions that dashboards use most, over fetched series: `cargo bench --bench functions [-- NAME]`.
//!
//! What is measured is what a request does after its fetch: evaluation of the checked target. Beside them, as a
//! measure of what the memory can do, the same points read once.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plumbago::bind::{Binder, Target};
use plumbago::clock::TimeZone;
use plumbago::evaluate::{Advance, Budget, DEFAULT_COMPUTED, Rounds, evaluate};
use plumbago::functions::{Request, State};
use plumbago::plan::Learnt;
use plumbago::series::{Selector, Series, Step, TimeRange};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MINUTE: i64 = 60;
const NOW: i64 = 1_699_999_200;

/// Points of a day.
const DAY: i64 = 1_440;

/// (what is shown, target, series that a pattern matches)
const BENCHES: [(&str, &str, usize); 10] = [
    ("sumSeries", "sumSeries(a.*.b)", 1000),
    ("movingAverage", "movingAverage(a.*.b,60)", 100),
    ("percentileOfSeries", "percentileOfSeries(a.*.b,95)", 1000),
    ("nonNegativeDerivative", "nonNegativeDerivative(a.*.b)", 1000),
    ("groupByNode", "groupByNode(a.*.b,1,'sum')", 1000),
    ("aliasByNode", "aliasByNode(a.*.b,1)", 1000),
    ("aliasSub", r#"aliasSub(a.*.b,"(^.*$)","\1 A")"#, 1000),
    ("summarize", "summarize(a.*.b,'1h','sum')", 1000),
    ("asPercent", "asPercent(a.*.b)", 1000),
    ("holtWintersForecast", "holtWintersForecast(a.*.b)", 10),
];

fn request() -> Request {
    Request {
        range: TimeRange::new(NOW - DAY * MINUTE, NOW).expect("from is before until"),
        now: NOW,
        time_zone: TimeZone::utc(),
        server_time_zone: TimeZone::utc(),
        x_files_factor: 0.0,
        seed: 1,
    }
}

/// `count` series over the range of a selector, one value in a hundred absent, growing and starting again as counters do.
fn series(selector: &Selector, count: usize) -> Vec<Series> {
    let step = Step::new(MINUTE).expect("a minute is a step");
    let start = selector.range.from() / MINUTE * MINUTE + MINUTE;
    let points = (selector.range.until() - start) / MINUTE + 1;
    let one = |n: usize| {
        let value = |i: i64| if i % 100 == 13 { f64::NAN } else { (i * (n as i64 % 17 + 3) % 4_999) as f64 / 8.0 };
        let name = format!("a.{:04}{}.b", n, if n.is_multiple_of(2) { "x" } else { "" });
        let mut series = Series::new(name.as_str(), start, step, (0..points).map(value).collect());
        series.path_expression = selector.pattern.as_str().into();
        series
    };
    (0..count).map(one).collect()
}

/// What the target reads, by planning it as a request would.
fn fetched(target: &str, count: usize) -> HashMap<Selector, Vec<Series>> {
    let mut rounds = Rounds::new(&[target], request(), Vec::new(), None).expect("the target is right");
    let mut fetched = HashMap::new();
    loop {
        match rounds.advance(&fetched).expect("the target can be evaluated") {
            Advance::Fetch(selectors) => fetched.extend(selectors.into_iter().map(|s| (s.clone(), series(&s, count)))),
            Advance::Done(_) => return fetched,
        }
    }
}

fn run(target: &Target, fetched: &HashMap<Selector, Vec<Series>>) -> Vec<Series> {
    let request = request();
    // A window in points has been learnt when the request comes to its evaluation.
    let learnt = Learnt { steps: HashMap::from([(target.root.id, Step::new(MINUTE))]), ..Learnt::default() };
    let budget = Budget::new(DEFAULT_COMPUTED);
    evaluate(target, &request, &learnt, fetched, &budget, &mut State::new(&request)).expect("everything is there")
}

fn functions(criterion: &mut Criterion) {
    for (name, text, count) in BENCHES {
        let target = Binder::new(Vec::new()).bind(text).expect("the target is right");
        let fetched = fetched(text, count);
        let points: usize = fetched.values().flatten().map(Series::len).sum();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(points as u64));
        group.bench_function(format!("{count} series"), |b| b.iter(|| black_box(run(&target, &fetched))));
        group.finish();
    }
}

fn memory(criterion: &mut Criterion) {
    let fetched = fetched("sumSeries(a.*.b)", 1000);
    let rows: Vec<&[f64]> = fetched.values().flatten().map(Series::values).collect();
    let mut group = criterion.benchmark_group("memory");
    group.throughput(Throughput::Elements(rows.iter().map(|r| r.len() as u64).sum()));
    group.bench_function("1000 series read once", |b| {
        b.iter(|| {
            let sum = |row: &&[f64]| {
                let mut lanes = [0.0; 8];
                for chunk in row.chunks_exact(8) {
                    lanes.iter_mut().zip(chunk).for_each(|(lane, v)| *lane += v);
                }
                lanes
            };
            black_box(rows.iter().map(sum).fold(0.0, |sum, lanes| sum + lanes[0]))
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = memory, functions
}
criterion_main!(benches);
