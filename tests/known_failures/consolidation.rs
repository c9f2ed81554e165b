//! Points joined for `maxDataPoints`.

use super::{Line, Row, check, count, minutes};

#[test]
fn points_are_joined_as_their_series_says() {
    check(&[
        Row {
            of: "graphite-web #2054",
            data: vec![count("a", 10)],
            range: (-60, 540),
            targets: vec!["a"],
            points: Some(1),
            want: vec![Line("a", 0, 600, vec![4.5])],
        },
        Row {
            of: "graphite-web #2311: each group is divided by its own number of points",
            data: vec![minutes("a", &[1_681.767_757_34; 11])],
            range: (0, 660),
            targets: vec!["a"],
            points: Some(3),
            // Groups of four minutes; the first start that is a multiple is 240.
            want: vec![Line("a", 240, 240, vec![1_681.767_757_34; 3])],
        },
        Row {
            of: "carbonapi commit b4d86c57",
            data: vec![minutes("a", &[2.0, 4.0])],
            range: (0, 120),
            targets: vec!["a", "consolidateBy(a,\"average\")", "consolidateBy(a,\"sum\")"],
            points: Some(1),
            want: vec![
                minutes("a", &[3.0]),
                minutes("consolidateBy(a,\"average\")", &[3.0]),
                minutes("consolidateBy(a,\"sum\")", &[6.0]),
            ],
        },
        Row {
            of: "metrictank commits 94fe1e1a and 25572e00",
            data: vec![Line("a", 0, 60, vec![0.0, 10.0, 5.0, 5.0])],
            range: (-60, 180),
            targets: vec!["minMax(consolidateBy(a,\"max\"))", "minMax(a)"],
            points: Some(2),
            // 0, 1, 0.5, 0.5: of the first group only its second point is left.
            want: vec![
                Line("minMax(consolidateBy(a,\"max\"))", 120, 120, vec![1.0, 0.5]),
                Line("minMax(a)", 120, 120, vec![0.75, 0.5]),
            ],
        },
    ]);
}
