//! Functions at their edges. Most such cases are in `tests/functions.rs` and `tests/time_ranges.rs`.

use super::{Line, N, Row, check, count, minutes};

#[test]
fn answers_at_the_edges() {
    check(&[
        Row {
            of: "graphite-web #2632",
            data: vec![count("a", 20)],
            range: (600, 900),
            targets: vec!["movingMax(a,1)", "movingAverage(a,3)"],
            points: None,
            want: vec![
                Line("movingMax(a,1)", 660, 60, vec![11.0, 12.0, 13.0, 14.0, 15.0]),
                Line("movingAverage(a,3)", 660, 60, vec![10.0, 11.0, 12.0, 13.0, 14.0]),
            ],
        },
        Row {
            of: "graphite-web #2113, carbonapi #692: steps and lengths that differ",
            data: vec![minutes("a", &[1.0, 2.0, 3.0, 4.0]), Line("b", 60, 30, vec![1.0; 7])],
            range: (30, 240),
            targets: vec!["sumSeries(a,b)"],
            points: None,
            want: vec![minutes("sumSeries(a,b)", &[2.0, 3.0, 4.0, 5.0])],
        },
        Row {
            of: "graphite-web #236, #2213, grafana #5967",
            data: vec![minutes("foo.bar", &[60.0, 180.0]), minutes("a.b.counter", &[1.0, 4.0])],
            range: (0, 120),
            targets: vec!["groupByNode(perSecond(foo.bar,1),1)", "aliasByMetric(derivative(a.b.counter))"],
            points: None,
            // With a greatest value of 1 no difference counts.
            want: vec![minutes("bar", &[N, N]), minutes("counter", &[N, 3.0])],
        },
        Row {
            of: "carbonapi 0.14.2, graphite-web commit 00407d47",
            data: vec![
                minutes("a", &[-4.0, 0.0, N, 4.0]),
                minutes("b", &[0.0, 2.0]),
                minutes("c", &[0.0, -1.0, 1.0, 10.0]),
            ],
            range: (0, 240),
            targets: vec!["pow(a,0.5)", "pow(b,-1)", "log(c)", "invert(b)"],
            points: None,
            want: vec![
                minutes("pow(a,0.5)", &[N, 0.0, N, 2.0]),
                minutes("pow(b,-1)", &[N, 0.5, N, N]),
                minutes("log(c, 10)", &[N, N, 0.0, 1.0]),
                minutes("invert(b)", &[N, 0.5, N, N]),
            ],
        },
        Row {
            of: "carbonapi commits bebe5eff and 5af14c07",
            data: vec![minutes("a.x", &[1.0]), minutes("a.y", &[2.0])],
            range: (0, 60),
            targets: vec!["highestAverage(a.*,0)", "lowestAverage(a.*,0)", "highestMax(a.*,0)"],
            points: None,
            want: vec![],
        },
        Row {
            of: "carbonapi #166, #543, metrictank #1873: the end is shifted with the start",
            data: vec![count("a", 700)],
            range: (36_000, 36_300),
            targets: vec!["timeShift(a,\"1h\")", "timeShift(a,\"1h\",false)"],
            points: None,
            want: vec![
                Line("timeShift(a, \"-1h\")", 36_060, 60, vec![541.0, 542.0, 543.0, 544.0, 545.0]),
                Line("timeShift(a, \"-1h\")", 36_060, 60, vec![541.0, 542.0, 543.0, 544.0, 545.0]),
            ],
        },
        Row {
            of: "metrictank #1505, graphite-web #2494",
            data: vec![minutes("a.x", &[1.0]), minutes("a.y", &[5.0])],
            range: (0, 60),
            targets: vec![
                "groupByNode(a.*,0,\"avg\")",
                "groupByNode(a.*,0,\"maxSeries\")",
                "groupByNode(a.*,0,\"avgSeries\")",
            ],
            points: None,
            want: vec![minutes("a", &[3.0]), minutes("a", &[5.0]), minutes("a", &[3.0])],
        },
    ]);
}
