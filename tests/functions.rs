//! Functions over small series with answers that can be worked out by hand (or were read off graphite-web), for what
//! the recordings of `tests/golden` do not show.

mod support;

use plumbago::backend::BackendId;
use plumbago::series::{Series, Step};
use plumbago::store::MemoryStore;

/// No value.
const N: f64 = f64::NAN;

/// Name, start, step and points of a series.
type Line<'a> = (&'a str, i64, i64, &'a [f64]);

/// What a target answers over a range, or the error's text.
fn evaluate(store: &MemoryStore, range: (i64, i64), target: &str) -> Result<Vec<Series>, String> {
    support::evaluate::evaluate(store, range, &[target]).map(|lists| lists.into_iter().flatten().collect())
}

fn store(data: &[Line<'_>]) -> MemoryStore {
    let series = data.iter().map(|(name, start, step, values)| {
        Series::new(*name, *start, Step::new(*step).expect("a step"), values.to_vec())
    });
    MemoryStore::new(BackendId::new("memory"), series)
}

fn shown(series: &[Series]) -> Vec<String> {
    let one = |s: &Series| format!("{} @{}/{} {:?}", s.name, s.start(), s.step(), s.values());
    series.iter().map(one).collect()
}

#[test]
fn answers_worked_out_by_hand() {
    type Case = (&'static [Line<'static>], (i64, i64), &'static str, &'static [Line<'static>]);
    let cases: &[Case] = &[
        // What stands before a pipe is a series or a number, as the function wants it.
        (
            &[("7", 60, 60, &[1.0, 2.0])],
            (0, 120),
            "group(7|scale(2),2.5|threshold('limit'),-1|constantLine()|alias('low'))",
            &[
                ("scale(7,2)", 60, 60, &[2.0, 4.0]),
                ("limit", 0, 60, &[2.5, 2.5, 2.5]),
                ("low", 0, 60, &[-1.0, -1.0, -1.0]),
            ],
        ),
        // A variable stands for a number, or for a path where a function takes either.
        (
            &[("a", 60, 60, &[25.0]), ("b", 60, 60, &[50.0])],
            (0, 60),
            "group(template(asPercent(a,$t),t='b'),template(asPercent(a,$t),t='100'))",
            &[("asPercent(a,b)", 60, 60, &[50.0]), ("asPercent(a,100.0)", 60, 60, &[25.0])],
        ),
        // The last group of `b` is shorter than its step, and is taken all the same.
        (
            &[("a", 60, 60, &[1.0, 2.0, 3.0, 4.0]), ("b", 30, 30, &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])],
            (0, 240),
            "sumSeries(a,b)",
            &[("sumSeries(a,b)", 30, 60, &[2.0, 3.0, 4.0, 5.0])],
        ),
        (
            &[("a", 60, 60, &[3.0, N, -1.0, N]), ("b", 60, 60, &[1.0, 4.0, 2.0, N])],
            (0, 240),
            "group(diffSeries(a,b),multiplySeries(a,b),rangeOfSeries(a,b),countSeries(a,b),powSeries(a,b),multiplySeries(a))",
            &[
                ("diffSeries(a,b)", 60, 60, &[2.0, 4.0, -3.0, N]),
                ("multiplySeries(a,b)", 60, 60, &[3.0, N, -2.0, N]),
                ("rangeOfSeries(a,b)", 60, 60, &[2.0, 0.0, 3.0, N]),
                ("countSeries(a,b)", 60, 60, &[2.0, 2.0, 2.0, 2.0]),
                ("powSeries(a,b)", 60, 60, &[3.0, N, 1.0, N]),
                ("a", 60, 60, &[3.0, N, -1.0, N]),
            ],
        ),
        // 1e16 + 1 + 1 is 1e16 when added from the left.
        (
            &[("x.a", 60, 60, &[1e16]), ("x.b", 60, 60, &[1.0]), ("x.c", 60, 60, &[1.0]), ("x.d", 60, 60, &[-1e16])],
            (0, 60),
            "sumSeries(x.*)",
            &[("sumSeries(x.*)", 60, 60, &[0.0])],
        ),
        (
            &[("s.a.used", 60, 60, &[25.0]), ("s.b.used", 60, 60, &[50.0]), ("t.a.total", 60, 60, &[100.0])],
            (0, 60),
            "asPercent(s.*.used,t.*.total,1)",
            &[("asPercent(s.a.used,t.a.total)", 60, 60, &[25.0]), ("asPercent(s.b.used,MISSING)", 60, 60, &[N])],
        ),
        (
            &[("s.a", 60, 60, &[1.0, 0.0]), ("s.b", 60, 60, &[3.0, 0.0])],
            (0, 120),
            "asPercent(s.*)",
            &[
                ("asPercent(s.a,sumSeries(s.*))", 60, 60, &[25.0, N]),
                ("asPercent(s.b,sumSeries(s.*))", 60, 60, &[75.0, N]),
            ],
        ),
        (
            &[("a.b", 60, 60, &[8.0, 0.0]), ("a.c", 60, 60, &[2.0, 0.0])],
            (0, 120),
            "group(divideSeries(a.b,a.c),divideSeries(a.b,a.x))",
            &[("divideSeries(a.b,a.c)", 60, 60, &[4.0, N]), ("divideSeries(a.b,MISSING)", 60, 60, &[N, N])],
        ),
        // (2 * 10 + 4 * 30) / (10 + 30)
        (
            &[
                ("h.x.mean", 60, 60, &[2.0]),
                ("h.y.mean", 60, 60, &[4.0]),
                ("h.x.count", 60, 60, &[10.0]),
                ("h.y.count", 60, 60, &[30.0]),
            ],
            (0, 60),
            "weightedAverage(h.*.mean,h.*.count,1)",
            &[("weightedAverage(h.*.mean, h.*.count, 1)", 60, 60, &[3.5])],
        ),
        (
            &[("a.x", 60, 60, &[1.0]), ("a.y", 60, 60, &[5.0]), ("b.x", 60, 60, &[7.0])],
            (0, 60),
            "groupByNode(*.*,0,\"maxSeries\")",
            &[("a", 60, 60, &[5.0]), ("b", 60, 60, &[7.0])],
        ),
        (
            &[("a.x", 60, 60, &[1.0]), ("a.y", 60, 60, &[5.0]), ("b.x", 60, 60, &[7.0])],
            (0, 60),
            "groupByNode(*.*,0,\"avg\")",
            &[("a", 60, 60, &[3.0]), ("b", 60, 60, &[7.0])],
        ),
        // A function's result is grouped by the first path in its name.
        (
            &[("foo.bar", 60, 60, &[1.0, 2.0])],
            (0, 120),
            "groupByNode(scale(foo.bar,2),1)",
            &[("bar", 60, 60, &[2.0, 4.0])],
        ),
        // A list without the series of a matcher still reduces.
        (
            &[("h.x.used", 60, 60, &[1.0]), ("h.x.total", 60, 60, &[4.0]), ("h.y.used", 60, 60, &[2.0])],
            (0, 60),
            "reduceSeries(mapSeries(h.*.*,1),\"divideSeries\",2,\"used\",\"total\")",
            &[("h.x.reduce.divideSeries", 60, 60, &[0.25]), ("h.y.reduce.divideSeries", 60, 60, &[N])],
        ),
        // A tag that a series lacks is empty in the name of its group.
        (
            &[("d;k=1", 60, 60, &[1.0]), ("d;k=1;l=2", 60, 60, &[2.0]), ("d", 60, 60, &[4.0])],
            (0, 60),
            "groupByTags(group(d*,seriesByTag(\"name=d\")),\"sum\",\"k\")",
            &[("d;k=", 60, 60, &[4.0]), ("d;k=1", 60, 60, &[3.0])],
        ),
        // One known point is enough; none is not.
        (
            &[("a.x", 60, 60, &[N, N, 1.0]), ("a.y", 60, 60, &[N, N, N])],
            (0, 180),
            "removeEmptySeries(a.*,0)",
            &[("a.x", 60, 60, &[N, N, 1.0])],
        ),
        (&[("a.x", 60, 60, &[1.0]), ("a.y", 60, 60, &[2.0])], (0, 60), "highestAverage(a.*,0)", &[]),
        (
            &[("a.x", 60, 60, &[1.0]), ("a.y", 60, 60, &[2.0])],
            (0, 60),
            "lowestCurrent(a.*,-1)",
            &[("a.x", 60, 60, &[1.0])],
        ),
        (&[("a.b", 60, 60, &[1.0])], (0, 60), "aliasByNode(a.b,-2)", &[("a", 60, 60, &[1.0])]),
        (&[("a.b", 60, 60, &[1.0])], (0, 60), "aliasByNode(a.b,-3)", &[("", 60, 60, &[1.0])]),
        (
            &[("a.b.counter", 60, 60, &[1.0, 4.0])],
            (0, 120),
            "aliasByMetric(derivative(a.b.counter))",
            &[("counter", 60, 60, &[N, 3.0])],
        ),
        // A replacement may make several targets; a series with an absent point has no greatest value.
        (
            &[("a.x", 60, 60, &[9.0, 9.0]), ("a.y", 60, 60, &[9.0, N]), ("b", 60, 60, &[1.0, 2.0])],
            (0, 120),
            "useSeriesAbove(a.*,5,\"^.*$\",\"b,scale(b,2)\")",
            &[("b", 60, 60, &[1.0, 2.0]), ("scale(b,2)", 60, 60, &[2.0, 4.0])],
        ),
        // Series without an average are on neither side.
        (
            &[("a.w", 60, 60, &[1.0]), ("a.x", 60, 60, &[2.0]), ("a.y", 60, 60, &[3.0]), ("a.z", 60, 60, &[N])],
            (0, 60),
            "averageOutsidePercentile(a.*,75)",
            &[("a.w", 60, 60, &[1.0]), ("a.y", 60, 60, &[3.0]), ("a.z", 60, 60, &[N])],
        ),
        // A wrap from 480 at a maximum of 1000: 1000 - 480 + 240 + 1 in 60 s.
        (
            &[("a", 60, 60, &[0.0, 120.0, N, 480.0, 240.0])],
            (0, 300),
            "group(perSecond(a,1000),nonNegativeDerivative(a),derivative(a))",
            &[
                ("perSecond(a)", 60, 60, &[N, 2.0, N, N, 12.683_333]),
                ("nonNegativeDerivative(a)", 60, 60, &[N, 120.0, N, N, N]),
                ("derivative(a)", 60, 60, &[N, 120.0, N, N, -240.0]),
            ],
        ),
        (
            &[("a", 60, 60, &[1.0, 2.0, 3.0])],
            (0, 180),
            "group(delay(a,5),delay(a,-5),delay(a,-1),delay(a,1))",
            &[
                ("delay(a,5)", 60, 60, &[N, N, N]),
                ("delay(a,-5)", 60, 60, &[N, N, N]),
                ("delay(a,-1)", 60, 60, &[2.0, 3.0, N]),
                ("delay(a,1)", 60, 60, &[N, 1.0, 2.0]),
            ],
        ),
        (
            &[("a", 60, 60, &[N, N])],
            (0, 120),
            "group(removeAbovePercentile(a,95),nPercentile(a,95),minMax(a),offsetToZero(a))",
            &[
                ("removeAbovePercentile(a, 95)", 60, 60, &[N, N]),
                ("minMax(a)", 60, 60, &[N, N]),
                ("offsetToZero(a)", 60, 60, &[N, N]),
            ],
        ),
        // Where there is no number there is no value, and no infinity either.
        (
            &[("a", 60, 60, &[-4.0, 0.0, N, 4.0, 1e200])],
            (0, 300),
            "group(pow(a,0.5),pow(a,-1),pow(a,2),log(a,2),invert(a),squareRoot(a),exp(a),logit(a))",
            &[
                ("pow(a,0.5)", 60, 60, &[N, 0.0, N, 2.0, 1e100]),
                ("pow(a,-1)", 60, 60, &[-0.25, N, N, 0.25, 1e-200]),
                ("pow(a,2)", 60, 60, &[16.0, 0.0, N, 16.0, N]),
                ("log(a, 2)", 60, 60, &[N, N, N, 2.0, 664.385_618_977_472_4]),
                ("invert(a)", 60, 60, &[-0.25, N, N, 0.25, 1e-200]),
                ("squareRoot(a)", 60, 60, &[N, 0.0, N, 2.0, 1e100]),
                ("exp(a)", 60, 60, &[0.018_315_638_888_734_18, 1.0, N, 54.598_150_033_144_236, N]),
                ("logit(a)", 60, 60, &[N, N, N, N, N]),
            ],
        ),
        // The points are 60060 to 60300.
        (
            &[("a", 59940, 60, &[999.0, 1000.0, 1001.0, 1002.0, 1003.0, 1004.0, 1005.0, 1006.0])],
            (60030, 60330),
            "group(summarize(a,\"2min\"),summarize(a,\"2min\",\"sum\",true),smartSummarize(a,\"2min\",\"max\"))",
            &[
                ("summarize(a, \"2min\", \"sum\")", 60000, 120, &[1001.0, 2005.0, 2009.0, N]),
                ("summarize(a, \"2min\", \"sum\", true)", 60060, 120, &[2003.0, 2007.0, 1005.0]),
                ("smartSummarize(a, \"2min\", \"max\")", 60060, 120, &[1002.0, 1004.0, 1005.0]),
            ],
        ),
        (
            &[("a", 59940, 60, &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])],
            (60030, 60330),
            "group(hitcount(a,\"2min\"),hitcount(a,\"2min\",true))",
            &[
                ("hitcount(a, \"2min\")", 60000, 120, &[60.0, 120.0, 120.0]),
                ("hitcount(a, \"2min\", true)", 60060, 120, &[120.0, 120.0, 60.0]),
            ],
        ),
        // The second minute lies half in the first 90 seconds, half in the next.
        (
            &[("a", 60, 60, &[2.0, 3.0, 4.0])],
            (0, 180),
            "hitcount(a,\"90s\")",
            &[("hitcount(a, \"90s\")", 60, 90, &[210.0, 330.0])],
        ),
        // A great value leaves no trace once it has left the window.
        (
            &[("a", 60, 60, &[1e10, 1.0, 2.0, 1.0, 2.0])],
            (0, 300),
            "stdev(a,2,1)",
            &[("stdev(a,2)", 60, 60, &[N, 4_999_999_999.5, 0.5, 0.5, 0.5])],
        ),
        (
            &[("a", 60, 60, &[N, 1.0, N, N, 4.0, N, N, N, 8.0, N])],
            (0, 600),
            "group(keepLastValue(a,2),interpolate(a,2),interpolate(a),transformNull(a),changed(a),integral(a))",
            &[
                ("keepLastValue(a)", 60, 60, &[N, 1.0, 1.0, 1.0, 4.0, N, N, N, 8.0, 8.0]),
                ("interpolate(a)", 60, 60, &[N, 1.0, 2.0, 3.0, 4.0, N, N, N, 8.0, N]),
                ("interpolate(a)", 60, 60, &[N, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, N]),
                ("transformNull(a,0)", 60, 60, &[0.0, 1.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 8.0, 0.0]),
                ("changed(a)", 60, 60, &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
                ("integral(a)", 60, 60, &[N, 1.0, N, N, 5.0, N, N, N, 13.0, N]),
            ],
        ),
        (
            &[("a", 60, 60, &[N, N, 3.0]), ("b", 60, 60, &[1.0, N, N])],
            (0, 180),
            "transformNull(a,default=7,referenceSeries=b)",
            &[("transformNull(a,7,referenceSeries)", 60, 60, &[7.0, N, 3.0])],
        ),
        // Values at every third point, not counting the zero.
        (
            &[("a", 60, 60, &[0.0, 5.0, N, N, 6.0, N, N, 7.0, N])],
            (0, 540),
            "compressPeriodicGaps(a)",
            &[("compressPeriodicGaps(a)", 120, 180, &[5.0, 6.0, 7.0])],
        ),
        // The median of 1, 2 and 9 is 2.
        (
            &[("a", 20, 20, &[1.0, 2.0, 9.0]), ("b", 60, 60, &[1.0])],
            (0, 60),
            "sumSeries(consolidateBy(a,\"median\"),b)",
            &[("sumSeries(consolidateBy(a,\"median\"),b)", 20, 60, &[3.0])],
        ),
    ];
    let mut faults = Vec::new();
    for (data, range, target, want) in cases {
        let got = match evaluate(&store(data), *range, target) {
            Ok(got) => got,
            Err(e) => {
                faults.push(format!("{target}: {e}"));
                continue;
            }
        };
        let same = |g: &Series, (name, start, step, values): &Line<'_>| {
            let close = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs();
            &*g.name == *name
                && (g.start(), g.step().seconds(), g.len()) == (*start, *step, values.len())
                && g.values().iter().zip(*values).all(close)
        };
        if got.len() != want.len() || !got.iter().zip(*want).all(|(g, w)| same(g, w)) {
            faults.push(format!("{target}\n  want {want:?}\n  got  {:?}", shown(&got)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What no series can satisfy is refused with a message about the argument, and nothing panics.
#[test]
fn wrong_arguments_are_refused() {
    let store = store(&[("a.x", 60, 60, &[1.0]), ("a.y", 60, 60, &[2.0])]);
    for (target, message) in [
        ("1.2.3|threshold()", "`1.2.3` is read as a path, but a number is expected"),
        ("percentileOfSeries(a.*,0)", "`n`: 0 is not greater than 0"),
        ("divideSeries(a.x,a.*)", "exactly one series"),
        ("divideSeriesLists(a.x,a.*)", "as many series as in dividendSeriesList"),
        ("sumSeriesLists(a.x,a.*)", "as many series as in seriesListFirstPos"),
        ("weightedAverage(a.x,a.*,0)", "as many series as in seriesListAvg"),
        ("asPercent(a.x,\"b\")", "is not a number"),
        ("asPercent(a.*,group(a.*,a.x))", "one series or as many as there are (2)"),
        ("asPercent(a.x,5,0)", "series or None are expected"),
        ("groupByNode(a.*,0,\"nope\")", "neither an aggregation function nor a function"),
        ("groupByNodes(a.*,\"scale\",0)", "needs `factor`"),
        ("applyByNode(a.*,7,\"%\")", "has no node 7"),
        ("applyByNode(a.*,0,\"sumSeries(\")", "applyByNode: in `sumSeries(`"),
        ("reduceSeries(mapSeries(a.*,0),\"nope\",1,\"x\")", "`nope` is not a function"),
        ("aliasSub(a.*,\"(\",\"x\")", "`search`: \"(\" is not a regular expression: a `(` is not closed"),
        ("aliasSub(a.*,\"x\",\"\\1\")", "`replace`: there is no group 1"),
        ("aliasQuery(a.x,\"x\",\"nope\",\"%d\")", "No series found with query: a.nope"),
        ("aliasQuery(a.x,\"x\",\"y\",\"none\")", "`newName`: it has no place for the value"),
        ("filterSeries(a.*,\"max\",\"~\",1)", "`operator`: \"~\" is not an operator"),
        ("averageOutsidePercentile(a.*,101)", "`n`: a percentile is from 0 to 100"),
        ("cactiStyle(a.*,\"bogus\")", "`system`: \"bogus\" is not a unit system"),
        ("summarize(a.*,\"0s\")", "`intervalString`: \"0s\" is not longer than 0"),
        ("smartSummarize(a.*,\"-10min\")", "`intervalString`: \"-10min\" is not longer than 0"),
        ("hitcount(a.*,\"999999999d\")", "`intervalString`: \"999999999d\" is too long"),
        ("summarize(a.*,\"1h\",\"sumSeries\")", "`func`: \"sumSeries\" is not an aggregation function"),
        ("smartSummarize(a.*,\"1h\",\"sum\",\"weeks8\")", "`alignTo`: \"weeks8\" is not a unit"),
        ("integralByInterval(a.*,\"\")", "`intervalUnit`: \"\" has no length"),
        ("nPercentile(a.*,0)", "`n`: 0 is not a percentile above 0"),
        ("removeBelowPercentile(a.*,-1)", "`n`: -1 is not a percentile above 0"),
        ("removeBetweenPercentile(a.*,150)", "`n`: a percentile from 0 to 100"),
        ("stdev(a.*,-1)", "`points`: -1 is not a number of points"),
        ("log(a.*,1)", "`base`: 1 cannot be the base"),
        ("keepLastValue(a.*,\"x\")", "`limit`: \"x\" is neither a number nor inf"),
    ] {
        let error = evaluate(&store, (0, 60), target).map(|s| shown(&s)).expect_err(target);
        assert!(error.contains(message), "{target}: {error}");
    }
    for target in ["applyByNode(a.*,-9,\"%\")", "reduceSeries(mapSeries(a.*,0),\"sumSeries\",-9,\"x\")"] {
        assert_eq!(shown(&evaluate(&store, (0, 60), target).expect(target)), Vec::<String>::new());
    }
}

/// A short interval over a long range would be a series of millions of points.
#[test]
fn long_results_are_refused() {
    let names: Vec<String> = (0..110).map(|i| format!("many.{i}")).collect();
    let mut data: Vec<Line<'_>> = vec![("a", 86_400, 86_400, &[1.0; 30])];
    data.extend(names.iter().map(|name| (name.as_str(), 86_400, 86_400, [1.0; 11].as_slice())));
    let store = store(&data);
    let month = (0, 30 * 86_400);
    for function in ["summarize", "smartSummarize", "hitcount"] {
        let error = evaluate(&store, month, &format!("{function}(a,\"1s\")")).expect_err(function);
        assert!(error.contains("more than 1000000; take a longer interval"), "{error}");
        let error = evaluate(&store, (0, 11 * 86_400), &format!("{function}(many.*,\"1s\")")).expect_err(function);
        assert!(error.contains("more than 100000000; take a longer interval"), "{error}");
    }
    let error = evaluate(&store, month, "movingSum(many.*,-1000000)").expect_err("too long");
    assert!(error.contains("`windowSize`: -1000000 points make 110 series too long"), "{error}");

    // Its second series has a point a second and is given the stated end of the first.
    let target = "nPercentile(timeShift(group(constantLine(1),verticalLine(\"now\")),\"0s\"),50)";
    let error = evaluate(&store, month, target).expect_err("too long");
    assert!(error.contains("states a range of 2592000 points"), "{error}");
}

/// What puts texts into texts cannot be nested until there is no memory left.
#[test]
fn long_names_are_refused_or_cut() {
    let store = store(&[("a", 60, 60, &[1.0])]);
    let failing = |target: &str| evaluate(&store, (0, 60), target).map(|s| shown(&s)).expect_err("too long");
    let groups = "\\1".repeat(4000);
    let error = failing(&format!("aliasSub(aliasSub(a,\"(.+)\",\"{groups}\"),\"(.+)\",\"{groups}\")"));
    assert!(error.contains("the replaced name has more than 1048576 bytes"), "{error}");
    let name = "x".repeat(1000);
    let signs = "%".repeat(1000);
    for (template, new_name, param) in [(signs.as_str(), "", "templateFunction"), ("a", &signs, "newName")] {
        let error = failing(&format!("applyByNode(alias(a,\"{name}\"),0,\"{template}\",\"{new_name}\")"));
        assert!(error.contains(&format!("`{param}`: it becomes longer than 65536 bytes")), "{error}");
    }
    let error = failing(&format!("legendValue(a{})", ",\"avg\"".repeat(101)));
    assert!(error.contains("101 values are more than 100"), "{error}");
    let cut = evaluate(&store, (0, 60), &format!("aliasByNode(alias(a,\"{name}\"){})", ",0".repeat(2000)));
    let cut = cut.expect("named")[0].name.len();
    assert_eq!(cut, 65_536 + '…'.len_utf8());
}

/// A long name that is wrong is compared with none of the names that are much shorter.
#[test]
fn nothing_is_near_to_a_long_name() {
    assert_eq!(plumbago::functions::nearest(&"sumSeries".repeat(7000)), Vec::<&str>::new());
    assert_eq!(plumbago::functions::nearest("sumSerie")[0], "sumSeries");
}
