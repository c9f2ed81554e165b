//! Functions that read their series over other ranges, or make series from the time: answers worked out by hand.

mod support;

use plumbago::clock::{Civil, TimeZone};
use plumbago::evaluate::Rounds;
use plumbago::functions::Request;
use plumbago::series::{Selector, Series, Step};
use support::dataset::NOW;
use support::rounds::{range, request, run};

/// Any series a minute apart, each point the number of its minute since the epoch.
fn minutes(selector: &Selector) -> Vec<Series> {
    let step = Step::new(60).expect("a step");
    let (start, end) = selector.range.aligned(step);
    let values = (start..end).step_by(60).map(|t| (t / 60) as f64).collect();
    vec![Series::new(selector.pattern.as_str(), start, step, values)]
}

fn one(target: &str, request: Request, answer: impl Fn(&Selector) -> Vec<Series>) -> Series {
    let mut got = run(&[target], request, &[], None, answer);
    assert_eq!(got.series[0].len(), 1, "{target}");
    got.series.remove(0).remove(0)
}

#[test]
fn windows_and_shifts_over_minutes() {
    let line = |from: i64| -> Vec<f64> { (from..from + 5).map(|i| i as f64).collect() };
    for (target, from, want) in [
        // A window ends with the current point.
        ("movingMax(a,1)", 600, line(11)),
        ("movingAverage(a,3)", 600, line(10)),
        ("movingWindow(a,'3min','average')", 600, line(10)),
        ("movingMedian(a,'5min')", 600, line(9)),
        ("movingMin(a,'1h')", 36_000, line(542)),
        ("timeShift(a,'5min')", 900, line(11)),
        ("timeShift(a,'1h')", 36_000, line(541)),
        ("timeShift(a,'1h',false)", 36_000, line(541)),
        ("timeShift(a,'+1h')", 36_000, line(661)),
        ("timeShift(movingAverage(a,3),'5min')", 900, line(10)),
    ] {
        let got = one(target, request(range(from, from + 300)), minutes);
        assert_eq!((got.start(), got.end(), got.values()), (from + 60, from + 360, &want[..]), "{target}");
    }
}

#[test]
fn a_window_over_the_first_points() {
    let start = 1_580_225_574;
    let two_points = |selector: &Selector| {
        let (first, end) = selector.range.aligned(Step::SECOND);
        let value = |t: i64| [10.0, 20.0].get(usize::try_from(t - start).unwrap_or(9)).copied().unwrap_or(f64::NAN);
        vec![Series::new("a", first, Step::SECOND, (first..end).map(value).collect())]
    };
    let got = one("movingSum(a,2)", request(range(start - 6, start + 4)), two_points);
    assert_eq!(got.start(), start - 5);
    assert_eq!(format!("{:?}", got.values()), "[NaN, NaN, NaN, NaN, NaN, 10.0, 30.0, 20.0, NaN, NaN]");
    let whole = one("movingSum(a,2,xFilesFactor=1)", request(range(start - 6, start + 4)), two_points);
    assert_eq!(format!("{:?}", whole.values()), "[NaN, NaN, NaN, NaN, NaN, NaN, 30.0, NaN, NaN, NaN]");
}

#[test]
fn shifted_buckets_stay_on_their_grid() {
    let target = "averageSeries(timeShift(summarize(movingAverage(a,30),'2h','sum',false),'1h'))";
    let got = one(target, request(range(NOW - 36_000, NOW)), minutes);
    assert_eq!((got.start() % 7_200, got.step().seconds()), (0, 7_200));
    // A shift by half an interval: the intervals lie where those of the unshifted series do, which is read for that.
    let (from, until) = (NOW - 36_000, NOW);
    let ranges = |target| run(&[target], request(range(from, until)), &[], None, minutes).ranges();
    let shifted = [range(from, until), range(from - 3_600, until - 3_600)];
    assert_eq!(ranges("timeShift(summarize(a,'2h'),'1h')"), shifted.into());
    assert_eq!(ranges("timeShift(summarize(a,'30min'),'1h')"), shifted[1..].iter().copied().collect());
    assert_eq!(ranges("timeShift(sumSeries(a,b),'1h')"), shifted[1..].iter().copied().collect());
    let line = one("timeShift(constantLine(3),'1h')", request(range(NOW - 3_000, NOW)), minutes);
    assert_eq!((line.start(), line.end()), (NOW - 3_000, NOW));
}

#[test]
fn times_of_day_are_compared_over_a_change_of_the_clocks() {
    let zone = TimeZone::named("America/New_York").expect("a zone");
    let at = |day, hour| zone.timestamp(Civil::new(2015, 3, day, hour, 0, 0).expect("a time"));
    // The clocks went forward on the 8th.
    let asked =
        || Request { time_zone: zone.clone(), server_time_zone: zone.clone(), ..request(range(at(10, 8), at(10, 9))) };
    let ranges = |target: &str| run(&[target], asked(), &[], None, minutes).ranges();
    assert_eq!(ranges("timeShift(a,'7d')"), [range(at(3, 7), at(3, 8))].into());
    for aligned in ["timeShift(a,'7d',true,true)", "timeShift(a,'7d',alignDST=true)", "timeShift(a,'7d',alignDst=true)"]
    {
        assert_eq!(ranges(aligned), [range(at(3, 8), at(3, 9))].into(), "{aligned}");
        assert_eq!(one(aligned, asked(), minutes).start(), at(10, 8) + 60);
    }
    // A range with the change in it is not moved.
    assert_eq!(ranges("timeShift(a,'2d',alignDST=true)"), [range(at(8, 8), at(8, 9))].into());
    // What a request in another zone shows is read by the server's clock: 3:00 of the 8th is after the change there.
    let utc = TimeZone::utc().timestamp(Civil::new(2015, 3, 8, 3, 0, 0).expect("a time"));
    let other = Request { server_time_zone: zone.clone(), ..request(range(utc, utc + 3_600)) };
    let read = run(&["timeShift(a,'7d',alignDST=true)"], other, &[], None, minutes).ranges();
    let week = 7 * 86_400 - 3_600;
    assert_eq!(read, [range(utc - week, utc + 3_600 - week)].into());
}

#[test]
fn the_request_zones_clock_is_read_in_the_servers() {
    // 23:00 in Berlin, where it is winter; the server's clock says 22:00.
    let berlin =
        || Request { time_zone: TimeZone::named("Europe/Berlin").expect("a zone"), ..request(range(NOW - 1_800, NOW)) };
    let line = one("verticalLine('22:45','deploy')", berlin(), minutes);
    assert_eq!(
        (&*line.name, line.start(), line.end(), line.values()),
        ("deploy", NOW + 2_700, NOW + 2_700, &[1.0; 2][..])
    );
    let time = one("time('t',600)", berlin(), minutes);
    assert_eq!((time.start(), time.values()), (NOW + 1_800, &[1_800, 2_400, 3_000].map(|s| (NOW + s) as f64)[..]));
    // Dates are the server's, points count from the asked range's start on the request's clock.
    let slice = one("timeSlice(a,'21:45','22:45')", berlin(), minutes);
    assert_eq!(slice.values().iter().filter(|v| !v.is_nan()).count(), 16);
    // Without a zone of the request nothing moves.
    let line = one("verticalLine('21:45','deploy')", request(range(NOW - 1_800, NOW)), minutes);
    assert_eq!(line.start(), NOW - 900);
}

/// Two archives: the asked hours have a point a minute, the bootstrap makes the store answer one in five minutes.
#[test]
fn aberration_copes_with_a_coarser_bootstrap() {
    let spike = NOW - 1_800;
    let archives = |selector: &Selector| {
        let minutes = if selector.range.from() < NOW - 86_400 { 5 } else { 1 };
        let step = Step::new(60 * minutes).expect("a step");
        let (start, end) = selector.range.aligned(step);
        let value = |t: usize| if minutes == 1 && t as i64 == spike { 100.0 } else { 10.0 };
        let values = (start as usize..end as usize).step_by(step.seconds() as usize).map(value).collect();
        vec![Series::new("a", start, step, values)]
    };
    // A steady past has bands of no width.
    let got = one("holtWintersAberration(a,3,'7d')", request(range(NOW - 7_200, NOW)), archives);
    assert_eq!((got.start(), got.step().seconds(), got.len()), (NOW - 7_200 + 60, 60, 120));
    for (i, value) in got.values().iter().enumerate() {
        let want = if got.time(i) == spike { 90.0 } else { 0.0 };
        assert!((value - want).abs() < 1e-9, "{i}: {value}");
    }
    let forecast = one("holtWintersForecast(a,'3d')", request(range(NOW - 7_200, NOW)), archives);
    assert_eq!((forecast.start(), forecast.len()), (NOW - 7_200 + 300, 24));
}

#[test]
fn an_area_for_each_series() {
    let got =
        run(&["holtWintersConfidenceArea(group(a,b),3,'1h')"], request(range(NOW - 600, NOW)), &[], None, minutes);
    let names: Vec<_> = got.series[0].iter().map(|s| &*s.name).collect();
    let [a, b] = ["holtWintersConfidenceArea(a)", "holtWintersConfidenceArea(b)"];
    assert_eq!(names, [a, a, b, b]);
    let hidden: Vec<_> = got.series[0].iter().map(|s| s.style.as_ref().is_some_and(|s| s.invisible)).collect();
    assert_eq!(hidden, [true, false, true, false]);
}

#[test]
fn walks_follow_the_seed_and_the_name() {
    let walk = |name: &str, seed| {
        let asked = Request { seed, ..request(range(NOW - 3_600, NOW)) };
        one(&format!("randomWalk('{name}')"), asked, minutes).values().to_vec()
    };
    let first = walk("x", 1);
    assert_eq!((first.len(), first[0]), (60, 0.0));
    assert!(first.windows(2).all(|w| (w[1] - w[0]).abs() <= 0.5 && w[1] != w[0]));
    assert_eq!(walk("x", 1), first);
    assert_ne!(walk("x", 2), first);
    assert_ne!(walk("y", 1), first);
}

#[test]
fn nothing_is_made_without_bounds() {
    let hour = || request(range(NOW - 3_600, NOW));
    let years = || request(range(NOW - 20 * 365 * 86_400, NOW));
    let second = || request(range(NOW - 1, NOW));
    for (target, request, message) in [
        ("constantLine(1)", second(), "too short"),
        ("time('t',0)", hour(), "`step`: 0 is not a step"),
        ("sin('t',1,-5)", hour(), "`step`: -5 is not a step"),
        ("randomWalk('t',1)", years(), "points are more than 1000000"),
        ("identity('t')", years(), "points are more than 1000000"),
        ("timeStack(a,'1d',0,1000000000)", hour(), "`timeShiftEnd`: 1000000000 makes more than 1000 shifts"),
        ("timeStack(a,'999999999d',5,6)", hour(), "`timeShiftUnit`: 5 times"),
        ("timeShift(a,'')", hour(), "`timeShift`: \"\" is not an interval"),
        ("movingAverage(a,9223372036854775807)", hour(), "`windowSize`: 9223372036854775807 points are more than"),
        ("exponentialMovingAverage(a,-1)", hour(), "`windowSize`: -1 is less than 0 points"),
        ("movingWindow(a,5,'sumSeries')", hour(), "`func`: \"sumSeries\" is not an aggregation function"),
        ("verticalLine('-2h')", hour(), "before the asked range"),
        ("verticalLine('+2h')", hour(), "after the asked range"),
        ("timeSlice(a,'soon')", hour(), "`startSliceAt`: unknown time `soon`"),
        ("areaBetween(group(a,b,c))", hour(), "exactly two series are needed, not 3"),
    ] {
        let mut rounds = Rounds::new(&[target], request, Vec::new(), None).expect("the target is well formed");
        let mut fetched = std::collections::HashMap::new();
        let error = loop {
            match rounds.advance(&fetched) {
                Ok(plumbago::evaluate::Advance::Fetch(selectors)) => {
                    fetched.extend(selectors.into_iter().map(|s| (s.clone(), minutes(&s))));
                }
                Ok(_) => panic!("{target} is answered"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(message), "{target}: {error}");
    }
}
