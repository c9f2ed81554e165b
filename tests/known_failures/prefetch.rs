//! Prefetched data is found again, by everyone who asked for it, and stays as it was fetched.

use super::{Line, N, Row, check, count, minutes};

#[test]
fn each_target_finds_what_was_fetched_for_it() {
    let yesterday = "divideSeries(a.b,timeShift(a.b,\"24h\"))";
    check(&[
        Row {
            of: "graphite-web #1908",
            data: vec![minutes("a.b", &[1.0, 2.0]), minutes("a.c", &[3.0, 4.0])],
            range: (0, 120),
            targets: vec!["a.b", "a.c"],
            points: None,
            want: vec![minutes("a.b", &[1.0, 2.0]), minutes("a.c", &[3.0, 4.0])],
        },
        Row {
            of: "graphite-web #2015",
            data: vec![count("a.b", 30)],
            range: (900, 1200),
            targets: vec!["timeShift(a.b,\"5min\")", "movingAverage(a.b,\"10min\")"],
            points: None,
            want: vec![
                Line("timeShift(a.b, \"-5min\")", 960, 60, vec![11.0, 12.0, 13.0, 14.0, 15.0]),
                // The mean of 7 to 16, which begins before the range, and so on.
                Line("movingAverage(a.b,\"10min\")", 960, 60, vec![11.5, 12.5, 13.5, 14.5, 15.5]),
            ],
        },
        Row {
            of: "graphite-web #2449",
            data: vec![minutes("a.b", &[2.0, 3.0]), minutes("a.c", &[1.0, 1.0]), minutes("x.e", &[5.0, 5.0])],
            range: (0, 120),
            targets: vec!["useSeriesAbove(a.b,0,\"b\",\"c\")", "x.e"],
            points: None,
            want: vec![minutes("a.c", &[1.0, 1.0]), minutes("x.e", &[5.0, 5.0])],
        },
        Row {
            of: "carbonapi #319",
            data: vec![count("a.b", 1450)],
            range: (86_580, 86_760),
            targets: vec![yesterday],
            points: None,
            // 1444 / 4, 1445 / 5, 1446 / 6.
            want: vec![Line("divideSeries(a.b,timeShift(a.b, \"-24h\"))", 86_640, 60, vec![361.0, 289.0, 241.0])],
        },
        Row {
            of: "carbonapi #775: the bootstrap that was asked for, not the usual week",
            data: vec![Line("a.b", 0, 3600, vec![7.0; 120])],
            range: (360_000, 370_800),
            targets: vec!["holtWintersForecast(a.b,\"3d\")"],
            points: None,
            want: vec![Line("holtWintersForecast(a.b)", 363_600, 3600, vec![7.0; 3])],
        },
        Row {
            of: "carbonapi #840",
            data: vec![count("a.b", 30)],
            range: (600, 900),
            targets: vec!["movingWindow(a.b,\"3min\",\"average\")"],
            points: None,
            want: vec![Line("movingAverage(a.b,\"3min\")", 660, 60, vec![10.0, 11.0, 12.0, 13.0, 14.0])],
        },
    ]);
}

#[test]
fn users_of_one_series_do_not_disturb_each_other() {
    check(&[
        Row {
            of: "metrictank #1806",
            data: vec![minutes("a", &[1.0, 2.0, 3.0, 4.0])],
            range: (0, 240),
            targets: vec!["a", "consolidateBy(a,'sum')"],
            points: Some(1),
            want: vec![minutes("a", &[2.5]), minutes("consolidateBy(a,\"sum\")", &[10.0])],
        },
        Row {
            of: "metrictank #1807",
            data: vec![count("a", 10)],
            range: (-60, 540),
            targets: vec!["a", "a"],
            points: Some(5),
            want: vec![
                Line("a", 120, 120, vec![1.5, 3.5, 5.5, 7.5, 9.0]),
                Line("a", 120, 120, vec![1.5, 3.5, 5.5, 7.5, 9.0]),
            ],
        },
        Row {
            of: "metrictank commit 019df99e, carbonapi commit 1e641f6a",
            data: vec![minutes("a", &[1.0, 2.0, 3.0])],
            range: (0, 180),
            targets: vec!["scale(a,2)", "a", "alias(a,\"z\")", "transformNull(delay(a,1),9)", "a"],
            points: None,
            want: vec![
                minutes("scale(a,2)", &[2.0, 4.0, 6.0]),
                minutes("a", &[1.0, 2.0, 3.0]),
                minutes("z", &[1.0, 2.0, 3.0]),
                minutes("transformNull(delay(a,1),9)", &[9.0, 1.0, 2.0]),
                minutes("a", &[1.0, 2.0, 3.0]),
            ],
        },
    ]);
}

/// carbonapi: a shift to where there is nothing is no series, and not one without values.
#[test]
fn nothing_shifted_is_nothing() {
    let run = super::support::rounds::run(
        &["timeShift(a,\"1h\")"],
        super::support::rounds::request(super::support::rounds::range(7_200, 7_500)),
        &[],
        None,
        |_| vec![],
    );
    assert_eq!((run.series, run.misses), (vec![vec![]], 0));
    // A store that has the series answers absent points, which stay points.
    check(&[Row {
        of: "carbonapi commit b2e06496",
        data: vec![Line("a", 12_300, 60, vec![1.0; 6])],
        range: (12_240, 12_360),
        targets: vec!["timeShift(a,\"3min\")"],
        points: None,
        want: vec![Line("timeShift(a, \"-3min\")", 12_300, 60, vec![N, N])],
    }]);
}
