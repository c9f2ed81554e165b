//! What a request fetches: how many rounds, and exactly which patterns over which ranges.

mod support;

use std::sync::{Arc, LazyLock};

use plumbago::backend::BackendId;
use plumbago::bind::{Binder, Node, NodeKind};
use plumbago::functions::{self, Ask, Needs, Request};
use plumbago::plan::StepMemory;
use plumbago::series::{PathExpression, Selector, Series, Step, TimeRange};
use plumbago::store::MemoryStore;
use proptest::prelude::*;
use support::dataset::{self, NOW};
use support::rounds::{answers, range, request, run};

const HOUR: i64 = 3_600;
const USER: &str = "servers.web01.cpu.user";

static STORE: LazyLock<MemoryStore> = LazyLock::new(dataset::store);

fn last_hour() -> Request {
    request(range(NOW - HOUR, NOW))
}

/// Whether a target reads further targets, and whether it has windows in points.
fn dynamic(node: &Node, request: &Request) -> (bool, bool) {
    let NodeKind::Call(call) = &node.kind else { return (false, false) };
    let ask = Ask { range: request.range, input_step: None, request, input_grid: &|| Some(1) };
    let needs = call.function.needs(&call.args, &ask).expect("the example makes sense");
    let here = (call.function.expand.is_some(), needs == Needs::InputStep);
    call.inputs.iter().map(|(_, input)| dynamic(input, request)).fold(here, |a, b| (a.0 || b.0, a.1 || b.1))
}

#[test]
fn every_function_plans_what_it_reads() {
    for function in functions::all() {
        let example = function.example;
        let target = Binder::default().bind(example).unwrap_or_else(|e| panic!("{example}: {e}"));
        let (expands, counts_points) = dynamic(&target.root, &last_hour());
        let memory = Arc::new(StepMemory::new(1 << 20));
        let first = run(&[example], last_hour(), &[], Some(&memory), answers(&STORE));
        assert_eq!(first.misses, 0, "{example}: a selector was not planned");
        let most = 1 + usize::from(expands || counts_points);
        assert!(first.rounds.len() <= most, "{example}: {} rounds", first.rounds.len());
        if counts_points {
            assert_eq!(first.rounds.len(), 2, "{example}");
        }

        let second = run(&[example], last_hour(), &[], Some(&memory), answers(&STORE));
        assert_eq!(second.misses, 0, "{example}");
        let most = 1 + usize::from(expands);
        assert!(second.rounds.len() <= most, "{example}: {} rounds when repeated", second.rounds.len());
        assert_eq!(second.selectors(), first.selectors(), "{example}");
        assert_eq!(format!("{:?}", second.series), format!("{:?}", first.series), "{example}");
    }
}

/// The selectors of `targets` over the last hour and the number of rounds. Ranges are given as distances from it.
#[track_caller]
fn assert_fetches(targets: &[&str], overrides: &[(&str, &str)], rounds: usize, wanted: &[(&str, i64, i64)]) {
    let got = run(targets, last_hour(), overrides, None, answers(&STORE));
    let selector = |(pattern, from, until): &(&str, i64, i64)| Selector {
        pattern: PathExpression::new(pattern),
        range: range(NOW - HOUR + from, NOW + until),
    };
    assert_eq!(got.misses, 0);
    assert_eq!(got.selectors(), wanted.iter().map(selector).collect());
    assert_eq!(got.rounds.len(), rounds, "{:?}", got.rounds);
    assert!(got.series.iter().any(|list| !list.is_empty()), "{targets:?} show nothing");
}

#[test]
fn targets_share_one_round() {
    assert_fetches(&[USER], &[], 1, &[(USER, 0, 0)]);
    assert_fetches(&[USER, USER], &[], 1, &[(USER, 0, 0)]);
    assert_fetches(
        &[
            "alias(servers.web01.cpu.user,'a')",
            "scale(servers.web02.cpu.user,2)",
            "sumSeries(servers.*.cpu.user)",
            "edge.ramp",
            "sumSeries(edge.ramp,edge.gap)",
            "absolute(edge.negative)",
        ],
        &[],
        1,
        &[
            (USER, 0, 0),
            ("servers.web02.cpu.user", 0, 0),
            ("servers.*.cpu.user", 0, 0),
            ("edge.ramp", 0, 0),
            ("edge.gap", 0, 0),
            ("edge.negative", 0, 0),
        ],
    );
    assert_fetches(&["constantLine(5)"], &[], 0, &[]);
}

#[test]
fn pipes_and_keywords_are_planned() {
    assert_fetches(&["edge.ramp|scale(2)|movingAverage('5min')"], &[], 1, &[("edge.ramp", -300, 0)]);
    assert_fetches(&["scale(seriesList=edge.ramp,factor=2)"], &[], 1, &[("edge.ramp", 0, 0)]);
    assert_fetches(&["movingAverage(windowSize='5min',seriesList=edge.ramp)"], &[], 1, &[("edge.ramp", -300, 0)]);
    let mixed = "timeShift(seriesList=edge.ramp|movingMax('1h'),timeShift='10min')";
    assert_fetches(&[mixed], &[], 1, &[("edge.ramp", -600 - HOUR, -600)]);
}

#[test]
fn templates_and_tags_are_planned() {
    let template = "template(movingAverage(servers.$host.cpu.user,'5min'),host='web01')";
    assert_fetches(&[template], &[], 1, &[(USER, -300, 0)]);
    assert_fetches(&[template], &[("host", "web02")], 1, &[("servers.web02.cpu.user", -300, 0)]);
    let tags = "seriesByTag(\"name=disk.used\")";
    assert_fetches(&[tags], &[], 1, &[(tags, 0, 0)]);
    assert_fetches(
        &["timeShift(seriesByTag('name=disk.used'),'1h')", tags],
        &[],
        1,
        &[(tags, 0, 0), (tags, -HOUR, -HOUR)],
    );
    let templated = "template(sumSeries(seriesByTag('name=$name')),name='disk.used')";
    assert_fetches(&[templated], &[], 1, &[(tags, 0, 0)]);
}

#[test]
fn other_ranges_are_planned_in_the_same_round() {
    let day = 86_400;
    assert_fetches(&["timeShift(edge.ramp,'1h')"], &[], 1, &[("edge.ramp", -HOUR, -HOUR)]);
    assert_fetches(
        &["edge.ramp", "timeShift(edge.ramp,'1h')"],
        &[],
        1,
        &[("edge.ramp", 0, 0), ("edge.ramp", -HOUR, -HOUR)],
    );
    assert_fetches(
        &["divideSeries(edge.ramp,timeShift(edge.ramp,'+1h'))"],
        &[],
        1,
        &[("edge.ramp", 0, 0), ("edge.ramp", HOUR, HOUR)],
    );
    assert_fetches(
        &["timeStack(edge.ramp,'1h',0,3)"],
        &[],
        1,
        &[("edge.ramp", 0, 0), ("edge.ramp", -HOUR, -HOUR), ("edge.ramp", -2 * HOUR, -2 * HOUR)],
    );
    assert_fetches(&["holtWintersForecast(business.orders.eu)"], &[], 1, &[("business.orders.eu", -7 * day, 0)]);
    assert_fetches(
        &["holtWintersAberration(business.orders.eu,3,'2d')"],
        &[],
        1,
        &[("business.orders.eu", 0, 0), ("business.orders.eu", -2 * day, 0)],
    );
    assert_fetches(
        &["linearRegression(edge.ramp,'-2h','-30min')"],
        &[],
        1,
        &[("edge.ramp", 0, 0), ("edge.ramp", -HOUR, -1_800)],
    );
    let two_shifts = "timeShift(movingAverage(timeShift(edge.ramp,'1h'),'5min'),'10min')";
    assert_fetches(&[two_shifts], &[], 1, &[("edge.ramp", -HOUR - 900, -HOUR - 600)]);
}

#[test]
fn a_window_in_points_takes_two_rounds_and_then_one() {
    let memory = Arc::new(StepMemory::new(1 << 20));
    let target = ["movingAverage(mixed.{s10,s60},5)"];
    let first = run(&target, last_hour(), &[], Some(&memory), answers(&STORE));
    assert_eq!(first.rounds.len(), 2);
    // Five points of the coarsest step.
    assert_eq!(first.ranges(), [range(NOW - HOUR, NOW), range(NOW - HOUR - 300, NOW)].into());
    let second = run(&target, last_hour(), &[], Some(&memory), answers(&STORE));
    assert_eq!(second.rounds.len(), 1);
    assert_eq!(second.selectors(), first.selectors());
    // The same panel a few seconds later.
    let mut later = last_hour();
    later.range = range(NOW - HOUR + 20, NOW + 20);
    later.now = NOW + 20;
    assert_eq!(run(&target, later, &[], Some(&memory), answers(&STORE)).rounds.len(), 1);
    // Nothing there: nothing more to read.
    let nothing = run(&["movingAverage(no.such,5)"], last_hour(), &[], Some(&memory), answers(&STORE));
    assert_eq!((nothing.rounds.len(), nothing.series), (1, vec![vec![]]));
}

/// A series whose value is its time in minutes, at the step that `step` says for the range.
fn clock_at(step: impl Fn(TimeRange) -> i64) -> impl Fn(&Selector) -> Vec<Series> {
    move |selector| {
        let step = Step::new(step(selector.range)).expect("a step");
        let (start, end) = selector.range.aligned(step);
        let times = (start..end).step_by(step.seconds() as usize);
        let values = times.map(|t| (t - NOW) as f64 / 60.0).collect();
        vec![Series::new(selector.pattern.as_str(), start, step, values)]
    }
}

#[test]
fn a_stale_memory_costs_a_round_and_not_the_answer() {
    // Points of 60 s for a day, of 300 s beyond: what a store with two archives answers.
    let archives = |range: TimeRange| if range.from() >= NOW - 86_400 { 60 } else { 300 };
    let asked = || request(range(NOW - 23 * HOUR, NOW));
    // The step of the asked range counts: 120 points of 60 s are two hours. The longer range has 300 s.
    let target = ["movingSum(clock,120)"];
    let fresh = run(&target, asked(), &[], None, clock_at(archives));
    assert_eq!(fresh.ranges(), [range(NOW - 23 * HOUR, NOW), range(NOW - 25 * HOUR, NOW)].into());
    let sums = &fresh.series[0][0];
    assert_eq!((sums.step().seconds(), sums.len()), (300, 300 - 120));
    assert_eq!(sums.start(), NOW - 23 * HOUR + 300);

    for (before, rounds) in [(300, 2), (10, 2), (60, 1)] {
        let memory = Arc::new(StepMemory::new(1 << 20));
        run(&target, asked(), &[], Some(&memory), clock_at(move |_| before));
        let stale = run(&target, asked(), &[], Some(&memory), clock_at(archives));
        assert_eq!(format!("{:?}", stale.series), format!("{:?}", fresh.series), "{before}");
        assert_eq!((stale.rounds.len(), stale.misses), (rounds, 0), "{before}");
        // It is right from then on.
        let again = run(&target, asked(), &[], Some(&memory), clock_at(archives));
        assert_eq!(again.rounds.len(), 1, "{before}");
        assert_eq!(again.selectors(), fresh.selectors(), "{before}");
    }
}

#[test]
fn nested_windows_in_points_read_one_range_each() {
    let memory = Arc::new(StepMemory::new(1 << 20));
    let sizes = 2..=13;
    let target = [sizes.clone().fold("edge.ramp".to_owned(), |inner, n| format!("movingAverage({inner},{n})"))];
    let first = run(&target, last_hour(), &[], Some(&memory), answers(&STORE));
    assert_eq!((first.ranges().len(), first.rounds.len(), first.misses), (13, 2, 0));
    let second = run(&target, last_hour(), &[], Some(&memory), answers(&STORE));
    assert_eq!((second.ranges(), second.rounds.len()), (first.ranges(), 1));
    // The mean of a line over n points is the line (n - 1) / 2 points earlier. The ramp ends with 1439.
    let late: f64 = sizes.map(|n| f64::from(n - 1) / 2.0).sum();
    let series = &first.series[0][0];
    assert_eq!((series.start(), series.len()), (NOW - HOUR + 60, 60));
    for (i, value) in series.values().iter().rev().enumerate() {
        assert!((value - (1439.0 - i as f64 - late)).abs() < 1e-6, "{i}: {value}");
    }
    // A function that changes the step in between makes a guess wrong, which must not show.
    let summarized = ["movingAverage(summarize(movingAverage(edge.ramp,5),'10min','max'),3)"];
    let got = run(&summarized, last_hour(), &[], None, answers(&STORE));
    assert!(got.rounds.len() <= 3, "{:?}", got.rounds);
    assert_eq!(got.series[0][0].step().seconds(), 600);
}

#[test]
fn dynamic_functions_take_two_rounds() {
    let step = Step::new(60).expect("a step");
    let series = (0..20).flat_map(|host| {
        ["busy", "idle"].map(|what| {
            let values = (0..120).map(|i| f64::from(i + host)).collect();
            Series::new(format!("hosts.h{host:02}.{what}"), NOW - 119 * 60, step, values)
        })
    });
    let store = MemoryStore::new(BackendId::new("hosts"), series);
    let by_node = ["applyByNode(hosts.*.busy,1,'divideSeries(%.busy,sumSeries(%.*))','%')"];
    let got = run(&by_node, last_hour(), &[], None, answers(&store));
    assert_eq!((got.rounds.len(), got.selectors().len(), got.misses), (2, 1 + 2 * 20, 0));
    assert_eq!(got.series[0].len(), 20);

    let above = ["useSeriesAbove(hosts.*.busy,0,'busy','idle')", "hosts.h00.idle"];
    let got = run(&above, last_hour(), &[], None, answers(&store));
    assert_eq!((got.rounds.len(), got.selectors().len(), got.misses), (2, 1 + 20, 0));
    assert_eq!((got.series[0].len(), got.series[1].len()), (20, 1));

    // Both kinds of learning at once.
    let both = ["movingAverage(useSeriesAbove(hosts.*.busy,0,'busy','idle'),5)", "movingMax(hosts.h01.busy,7)"];
    let got = run(&both, last_hour(), &[], None, answers(&store));
    assert_eq!((got.series[0].len(), got.series[1].len(), got.misses), (20, 1, 0));
    assert!(got.rounds.len() <= 4, "{} rounds", got.rounds.len());
}

/// Functions of one list with some arguments.
const LINKS: &[(&str, &str)] = &[
    ("absolute", ""),
    ("aliasByNode", ",-1"),
    ("exponentialMovingAverage", ",4"),
    ("holtWintersAberration", ",2,'2h','30min'"),
    ("holtWintersForecast", ",'2h','30min'"),
    ("linearRegression", ""),
    ("linearRegression", ",'-2h'"),
    ("movingAverage", ",'5min'"),
    ("movingMedian", ",3"),
    ("movingWindow", ",4,'max'"),
    ("scale", ",2"),
    ("stacked", ""),
    ("sumSeries", ""),
    ("summarize", ",'10min','sum'"),
    ("timeShift", ",'10min'"),
    ("timeShift", ",'+1h',false"),
    ("timeSlice", ",'-40min'"),
    ("timeStack", ",'30min',0,2"),
];

fn chain() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..LINKS.len(), 1..5)
}

/// `a|f(x)` and `f(a,x)`, over a path and the links.
fn spelled(path: &str, links: &[usize]) -> (String, String) {
    links.iter().fold((path.to_owned(), path.to_owned()), |(piped, nested), link| {
        let (name, arguments) = LINKS[*link];
        let after = arguments.strip_prefix(',').unwrap_or(arguments);
        (format!("{piped}|{name}({after})"), format!("{name}({nested}{arguments})"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_pipe_is_a_nested_call(
        path in prop::sample::select(vec!["edge.ramp", "edge.{gap,ramp}", "mixed.{s10,s60}", "no.such"]),
        links in chain(),
        second in chain(),
        inside in any::<bool>(),
    ) {
        let (mut piped, mut nested) = spelled(path, &links);
        if inside {
            let (other_piped, other_nested) = spelled("edge.sparse", &second);
            piped = format!("group({piped},{other_piped})|scale(3)");
            nested = format!("scale(group({nested},{other_nested}),3)");
        }
            let evaluated = |target: String| {
            let got = run(&[target], last_hour(), &[], None, answers(&STORE));
            (format!("{:?}", got.series), got.selectors(), got.misses)
        };
        let (piped, nested) = (evaluated(piped), evaluated(nested));
        prop_assert_eq!(piped.2, 0);
        prop_assert_eq!(piped, nested);
    }
}
