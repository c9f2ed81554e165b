//! Rendering over several backends, in process: what each of them is asked, and what happens when one does not answer.

mod support;

use std::sync::Arc;
use std::time::Duration;

use plumbago::backend::{Backend, BackendError, BackendId, Scope};
use plumbago::clock::TimeZone;
use plumbago::evaluate::DEFAULT_COMPUTED;
use plumbago::fetch::{Federation, Group, GroupKind, Limits};
use plumbago::functions::Request;
use plumbago::render::{RenderRequest, Renderer};
use plumbago::series::TimeRange;
use plumbago::store::MemoryStore;

/// The data set divided by names: `servers` in the first, all others in the second.
fn halves() -> [MemoryStore; 2] {
    let half = |id: &str, servers: bool| {
        let mine = support::dataset::series().into_iter().filter(|s| s.name.starts_with("servers") == servers);
        MemoryStore::new(BackendId::new(id), mine)
    };
    [half("servers", true), half("others", false)]
}

fn renderer(backends: &[&Arc<MemoryStore>], step_memory: bool) -> Renderer {
    let backends = backends.iter().map(|b| Arc::clone(b) as Arc<dyn Backend>).collect();
    let groups = vec![Group::new("test", GroupKind::Shards, backends)];
    let federation = Federation::on(tokio::runtime::Handle::current(), groups, None);
    let memory = step_memory.then(|| Arc::new(plumbago::plan::StepMemory::new(1 << 20)));
    Renderer::new(Arc::new(federation), memory, Limits::default(), DEFAULT_COMPUTED, 100)
}

fn request(targets: &[&str]) -> RenderRequest {
    let now = support::dataset::NOW;
    let scope = Scope {
        deadline: tokio::time::Instant::now() + Duration::from_secs(60),
        now,
        headers: Arc::new([]),
        request_id: "test".into(),
    };
    let request = Request {
        range: TimeRange::new(now - 3600, now).expect("not empty"),
        now,
        time_zone: TimeZone::utc(),
        server_time_zone: TimeZone::utc(),
        x_files_factor: 0.0,
        seed: 1,
    };
    let targets = targets.iter().map(|t| (*t).to_owned()).collect();
    RenderRequest { targets, overrides: Vec::new(), request, scope, strict: false }
}

#[tokio::test]
async fn one_call_to_each_backend_and_round() {
    let cases: &[(&[&str], usize, usize)] = &[
        // Targets, selectors, rounds.
        (&["servers.*.cpu.user"], 1, 1),
        (&["servers.*.cpu.user", "app.load.*", "stats.gauges.temp", "business.*.eu", "mixed.*", "edge.zeros"], 6, 1),
        (&["app.load.1", "app.load.1"], 1, 1),
        (&["sumSeries(servers.*.cpu.user, app.load.*)", "scale(app.load.*, 2)"], 2, 1),
        (&["servers.*.cpu.user|scale(2)|sumSeries()"], 1, 1),
        (&["scale(factor=2, seriesList=app.load.1)"], 1, 1),
        (&["template(sumSeries(servers.$host.cpu.*), host=\"web01\")"], 1, 1),
        (&["sumSeries(servers.{web01,web02,web03,db01,db02}.cpu.user)"], 1, 1),
        (&["applyByNode(servers.*.cpu.user, 1, \"sumSeries(%.cpu.*)\")"], 8, 2),
    ];
    for (targets, selectors, rounds) in cases {
        let stores = halves().map(Arc::new);
        let rendered = renderer(&stores.each_ref(), false).render(request(targets)).await.expect("rendered");
        assert!(rendered.failures.is_empty());
        assert_eq!(rendered.rounds as usize, *rounds, "{targets:?}");
        for store in &stores {
            let fetches = store.fetches();
            assert_eq!(fetches.len(), *rounds, "{targets:?}");
            assert_eq!(fetches.iter().map(Vec::len).sum::<usize>(), *selectors, "{targets:?}");
            assert!(store.finds().is_empty(), "{targets:?}");
        }
    }
}

#[tokio::test]
async fn series_of_all_backends_come_in_order() {
    let stores = halves().map(Arc::new);
    let renderer = renderer(&stores.each_ref(), true);
    let rendered = renderer.render(request(&["*.*.cpu.user", "app.load.{5,1}", "app.load.1"])).await.expect("rendered");
    let names: Vec<&str> = rendered.series.iter().map(|s| &*s.name).collect();
    assert_eq!(names.len(), 10);
    assert!(names[..7].is_sorted() && names[..7].iter().all(|name| name.ends_with(".cpu.user")));
    assert_eq!(names[7..], ["app.load.1", "app.load.5", "app.load.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_hangs_makes_the_answer_partial() {
    let [servers, others] = halves();
    let others = Arc::new(others.delayed_by(|_| Duration::from_secs(3600)));
    let servers = Arc::new(servers);
    let both = renderer(&[&servers, &others], false);
    let targets = &["servers.web01.cpu.user", "app.load.1"];
    let rendered = both.render(request(targets)).await.expect("partial");
    assert_eq!(rendered.series.iter().map(|s| &*s.name).collect::<Vec<_>>(), ["servers.web01.cpu.user"]);
    assert_eq!(rendered.failures, [BackendError::Timeout { backend: BackendId::new("others") }]);

    let strict = RenderRequest { strict: true, ..request(targets) };
    let error = both.render(strict).await.expect_err("strict");
    assert_eq!(error.to_string(), "1 backends failed: others did not answer in time");

    let error = renderer(&[&others], false).render(request(targets)).await.expect_err("nobody answers");
    assert_eq!(error.code(), plumbago::render::ErrorCode::Deadline);
}
