//! What a target means, and where a wrong one is wrong.

use plumbago::bind::Binder;
use plumbago::target;

use super::{Row, check, minutes, refusal};

#[test]
fn arguments_are_read_as_they_are_meant() {
    check(&[
        Row {
            of: "metrictank #1524, carbonapi commit 20fd5eb9",
            data: vec![minutes("a", &[1.0])],
            range: (0, 60),
            targets: vec!["scale(a,\"2\")"],
            points: None,
            want: vec![minutes("scale(a,2)", &[2.0])],
        },
        Row {
            of: "carbonapi #260: `true` is a path alone and a truth as an argument",
            data: vec![minutes("true.cpu", &[1.0, 3.0])],
            range: (0, 120),
            targets: vec!["summarize(true.cpu,\"2min\",\"sum\",true)", "smartSummarize(true.cpu,\"2min\",\"max\")"],
            points: None,
            want: vec![
                super::Line("summarize(true.cpu, \"2min\", \"sum\", true)", 60, 120, vec![4.0]),
                super::Line("smartSummarize(true.cpu, \"2min\", \"max\")", 60, 120, vec![3.0]),
            ],
        },
    ]);
}

#[test]
fn wrong_targets_are_refused_at_their_place() {
    let data = [minutes("a", &[1.0])];
    let nested = "abs(".repeat(10_000) + "a" + &")".repeat(10_000);
    for (of, target, place, message) in [
        ("carbonapi commit 257385dd", "f(a=", 4, "expected"),
        ("carbonapi #746", "m.27011[c=rs11,d=T].x", 14, "unexpected `,`"),
        ("metrictank commit b580bbf1", "scale(a,1,zz=1)", 10, "has no argument `zz`"),
    ] {
        let diagnostic = Binder::default().bind(target).map(|_| ()).expect_err(of);
        let shown = diagnostic.render(target);
        assert!(shown.contains(message), "{of}: {shown}");
        assert_eq!(diagnostic.span.start, place, "{of}: {shown}");
    }
    // metrictank commit 693ba590: the stack must not overflow.
    let error = refusal(&data, (0, 60), &nested);
    assert!(error.contains("nested deeper") || error.contains("bytes"), "{error}");
    let shallow = "absolute(".repeat(5_000) + "a" + &")".repeat(5_000);
    assert!(refusal(&data, (0, 60), &shallow).contains("nested deeper"));
    // VictoriaMetrics #9534: a text without end is not kept for each series.
    let names: Vec<String> = (0..30_000).map(|i| format!("servers.host{i}.load")).collect();
    assert!(refusal(&data, (0, 60), &format!("sumSeries({})", names.join(","))).contains("bytes; at most"));
}

/// graphite-web #1806: a parser with state that threads share.
#[test]
fn many_threads_read_the_same_tree() {
    let text = "alias(sumSeries(a.{b,c}*.d,scale(x.y|movingAverage('5min'),-1.5e-2)),'it''s, \"x\"')";
    let alone = target::parse(text).expect("well formed");
    let start = std::sync::Barrier::new(32);
    std::thread::scope(|scope| {
        let reading = || {
            start.wait();
            (0..50).all(|_| target::parse(text).is_ok_and(|tree| tree == alone))
        };
        let threads: Vec<_> = (0..32).map(|_| scope.spawn(reading)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
    });
}
