//! `/metrics…`: finding names of series.

use std::collections::{BTreeSet, HashSet};

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use futures::future::try_join_all;
use regex::RegexSetBuilder;
use serde_json::{Map, Value, json};

use super::answer::{Json, accepted, bytes_of, flag, integer, marked, not_cached, not_found, resource, scope};
use super::{App, Params, Problem, metrics, wire};
use crate::backend::carbonapi::v2;
use crate::backend::wire::ALWAYS;
use crate::backend::{BackendError, FindQuery, FoundNode, msgpack, pickle};
use crate::clock::{Now, TimeZone, parse_time};
use crate::encode::DataFormat;
use crate::series::TimeRange;

/// Adds the routes.
pub(super) fn routes(service: &mut web::ServiceConfig) {
    let read = [Method::GET, Method::HEAD, Method::POST];
    service
        .service(resource(
            &["/metrics/find", "/metrics"],
            &[Method::GET, Method::HEAD, Method::POST, Method::PUT],
            find,
        ))
        .service(resource(&["/metrics/expand"], &read, expand))
        .route("/metrics/index.json/", web::to(not_found))
        .service(resource(&["/metrics/index.json"], &read, index))
        .service(resource(&["/browser/search"], &read, search))
        .service(resource(&["/metrics/get-metadata"], &read, get_metadata))
        .service(resource(&["/metrics/set-metadata"], &read, set_metadata));
}

/// What `/metrics/find` can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FindFormat {
    TreeJson,
    Completer,
    NodeList,
    Json,
    Pickle,
    MsgPack,
    CarbonApiV2,
}

impl FindFormat {
    fn from_parameter(name: &str) -> Option<Self> {
        Some(match name {
            "treejson" => Self::TreeJson,
            "completer" => Self::Completer,
            "nodelist" => Self::NodeList,
            "json" => Self::Json,
            "pickle" => Self::Pickle,
            "msgpack" => Self::MsgPack,
            "carbonapi_v2_pb" | "protobuf" | "protobuf3" => Self::CarbonApiV2,
            _ => return None,
        })
    }
}

/// `/metrics/find`, and `/metrics`, which without a question is for Prometheus.
async fn find(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    if metrics::is_asked_for(&http, &body) {
        return Ok(metrics::page(&app));
    }
    if let Some(message) = wire::message(&http, &body) {
        return wire::find(&http, message, &app).await;
    }
    let params = Params::sent(&http, &body)?;
    let format = FindFormat::from_parameter(params.get("format").unwrap_or("treejson"))
        .ok_or_else(|| Problem::bad_request("parameter `format`: no such format of /metrics/find"))?;
    let leaves_only = flag(&params, "leavesOnly")?;
    // Other servers say that they want no third one to be asked. All that is asked here is this server's own storage.
    flag(&params, "local")?;
    let wildcards = flag(&params, "wildcards")?;
    let variants = flag(&params, "automatic_variants")?;
    let position = integer(&params, "position")?.unwrap_or(-1);
    let form = Json::of_metrics(&http, &params)?;
    let (now, range) = times(&params, &app)?;
    let query = match params.get("query") {
        None => return Err(Problem::bad_request("parameter `query` is missing: the pattern to look for, such as `*`")),
        Some("") => return Err(Problem::bad_request("parameter `query` is empty; `*` finds all at the top")),
        Some(query) => query,
    };
    let pattern = if format == FindFormat::Completer { completed(query, variants) } else { query.to_owned() };
    let (mut nodes, failures) = found(FindQuery { pattern, range, leaves_only }, now, &http, &app).await?;
    if !matches!(format, FindFormat::CarbonApiV2 | FindFormat::Json) {
        // Stable: nodes of one name stay sorted by path, the branch before the leaf.
        nodes.sort_by(|a, b| name(a).cmp(name(b)));
    }
    let bytes = |format: DataFormat, bytes| bytes_of(StatusCode::OK, format.content_type(), bytes);
    let response = match format {
        FindFormat::TreeJson => form.answer(&tree(&nodes, query, wildcards)),
        FindFormat::Completer => form.answer(&completions(&nodes, wildcards)),
        FindFormat::NodeList => form.answer(&json!({"nodes": names_at(&nodes, position)})),
        FindFormat::Json => form.answer(&listed(&nodes)),
        FindFormat::Pickle => bytes(DataFormat::Pickle, pickle::write_find(&nodes)),
        FindFormat::MsgPack => bytes(DataFormat::MsgPack, msgpack::write_find(&nodes)),
        FindFormat::CarbonApiV2 => bytes(DataFormat::CarbonApiV2, v2::write_find(query, &nodes)),
    };
    Ok(marked(not_cached(response), &failures))
}

/// Asks the backends.
pub(super) async fn found(
    query: FindQuery,
    now: i64,
    http: &HttpRequest,
    app: &App,
) -> Result<(Vec<FoundNode>, Vec<BackendError>), Problem> {
    let leaves_only = query.leaves_only;
    let (mut nodes, failures) = accepted(app.federation().find(&query, &scope(http, app, now)).await?, app)?;
    if leaves_only {
        // Not every backend knows that it could leave the branches out.
        nodes.retain(|node| node.leaf);
    }
    Ok((nodes, failures))
}

/// The clock of a request and the range in which found series should have points, which most requests leave open on
/// one side or both.
fn times(params: &Params, app: &App) -> Result<(i64, Option<TimeRange>), Problem> {
    let zone = params.get("tz").and_then(TimeZone::named).unwrap_or_else(|| app.config().time_zone.clone());
    let read = |name: &'static str, now: i64| {
        let text = params.get(name).filter(|text| *text != "-1");
        let time = text.map(|text| parse_time(text, now, &zone).map_err(|e| e.of_parameter(name))).transpose();
        time.map_err(|e| Problem::bad_request(e.to_string()))
    };
    let clock = Now::read();
    let now = read("now", clock)?.unwrap_or(clock);
    let (from, until) = (read("from", now)?, read("until", now)?);
    if from.is_none() && until.is_none() {
        return Ok((now, None));
    }
    let from = from.unwrap_or(0);
    let until = until.unwrap_or_else(|| now.max(from));
    if from > until {
        return Err(Problem::bad_request(format!("`from` ({from}) is after `until` ({until})")));
    }
    Ok((now, TimeRange::new(from, until.max(from + 1))))
}

/// The last part of a node's path.
fn name(node: &FoundNode) -> &str {
    node.path.rsplit('.').next().unwrap_or_default()
}

/// The pattern of all names that begin as the query does. With `variants`, `a,b` within a node stands for either.
fn completed(query: &str, variants: bool) -> String {
    let mut pattern = query.replace("..", "*.");
    if !pattern.ends_with('*') {
        pattern.push('*');
    }
    if !variants {
        return pattern;
    }
    let either = |node: &str| {
        if node.contains(',') && !node.contains('{') { format!("{{{node}}}") } else { node.to_owned() }
    };
    pattern.split('.').map(either).collect::<Vec<_>>().join(".")
}

/// The nodes for a tree that a user unfolds: each name once, the branches first. What they are below is said as the
/// query says it, so that unfolding one of several parents unfolds all.
fn tree(nodes: &[FoundNode], query: &str, wildcards: bool) -> Value {
    let above = query.rfind('.').map_or("", |dot| &query[..=dot]);
    let entry = |name: &str, leaf: bool| {
        let (leaf, branch) = (i32::from(leaf), i32::from(!leaf));
        json!({
            "text": name, "id": format!("{above}{name}"), "allowChildren": branch, "expandable": branch, "leaf": leaf
        })
    };
    let mut entries = Vec::with_capacity(nodes.len());
    if wildcards && nodes.len() > 1 {
        entries.push(entry("*", nodes.iter().all(|node| node.leaf)));
    }
    let mut seen = HashSet::new();
    let (leaves, branches): (Vec<_>, Vec<_>) =
        nodes.iter().filter(|node| seen.insert(name(node))).partition(|node| node.leaf);
    entries.extend(branches.into_iter().chain(leaves).map(|node| entry(name(node), node.leaf)));
    Value::Array(entries)
}

/// The nodes for a field that completes what is typed.
fn completions(nodes: &[FoundNode], wildcards: bool) -> Value {
    let mut entries: Vec<Value> = nodes
        .iter()
        .map(|node| {
            let end = if node.leaf { "" } else { "." };
            let is_leaf = if node.leaf { "1" } else { "0" };
            json!({"path": format!("{}{end}", node.path), "name": name(node), "is_leaf": is_leaf})
        })
        .collect();
    if wildcards && nodes.len() > 1 {
        entries.push(json!({"name": "*"}));
    }
    json!({"metrics": entries})
}

/// What stands at a place of the paths, counted from the end when negative; each once.
fn names_at(nodes: &[FoundNode], position: i64) -> BTreeSet<&str> {
    nodes
        .iter()
        .filter_map(|node| {
            let mut parts = node.path.split('.');
            match usize::try_from(position) {
                Ok(position) => parts.nth(position),
                Err(_) => parts.rev().nth(usize::try_from(-1 - position).ok()?),
            }
        })
        .collect()
}

/// The nodes with all that is known of them.
fn listed(nodes: &[FoundNode]) -> Value {
    nodes
        .iter()
        .map(|node| {
            if node.leaf {
                let (start, end) = node.interval.unwrap_or(ALWAYS);
                json!({"path": node.path, "is_leaf": true, "intervals": [{"start": start, "end": end}]})
            } else {
                json!({"path": node.path, "is_leaf": false})
            }
        })
        .collect()
}

/// `/metrics/expand`: full paths.
async fn expand(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    if let Some(message) = wire::message(&http, &body) {
        return wire::find(&http, message, &app).await;
    }
    let params = Params::sent(&http, &body)?;
    let leaves_only = flag(&params, "leavesOnly")?;
    let grouped = flag(&params, "groupByExpr")?;
    flag(&params, "local")?;
    let form = Json::of_metrics(&http, &params)?;
    let now = Now::read();
    let mut seen = HashSet::new();
    let queries: Vec<&str> = params.all("query").filter(|query| seen.insert(*query)).collect();
    let ask = async |query: &str| {
        if query.is_empty() {
            // The root, which graphite-web lists but refuses to be asked for by other servers.
            let root = if leaves_only { Vec::new() } else { vec![FoundNode::branch("")] };
            return Ok((root, Vec::new()));
        }
        found(FindQuery { pattern: query.to_owned(), range: None, leaves_only }, now, &http, &app).await
    };
    let answers = try_join_all(queries.iter().map(|query| ask(query))).await?;
    let mut failures = Vec::new();
    let mut groups: Vec<BTreeSet<String>> = Vec::with_capacity(answers.len());
    for (nodes, failed) in answers {
        for failure in failed {
            if !failures.contains(&failure) {
                failures.push(failure);
            }
        }
        groups.push(nodes.into_iter().map(|node| node.path).collect());
    }
    let results = if grouped {
        let groups = queries.iter().zip(groups).map(|(query, paths)| ((*query).to_owned(), json!(paths)));
        Value::Object(groups.collect::<Map<_, _>>())
    } else {
        json!(groups.into_iter().flatten().collect::<BTreeSet<_>>())
    };
    Ok(marked(not_cached(form.answer(&json!({"results": results}))), &failures))
}

/// `/metrics/index.json`: the names of all series.
async fn index(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    let params = Params::sent(&http, &body)?;
    flag(&params, "local")?;
    let form = Json::of_metrics(&http, &params)?;
    let (names, failures) = accepted(app.federation().index(&scope(&http, &app, Now::read())).await?, &app)?;
    // Names of millions of series would hold up the requests beside this one.
    let encoder = form.clone();
    let bytes = web::block(move || encoder.bytes(&Value::from(names))).await;
    let bytes = bytes.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(marked(form.answer_bytes(StatusCode::OK, bytes), &failures))
}

/// The most names that a search gives.
const MOST_FOUND: usize = 100;

/// `/browser/search`: names that match any of the words of a form's `query`, which are regular expressions. As in
/// graphite-web, a `query` in the URL is none.
async fn search(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> Result<HttpResponse, Problem> {
    let text = |names: String| bytes_of(StatusCode::OK, "text/plain; charset=utf-8", names.into_bytes());
    Params::sent(&http, &body)?;
    let params = Params::read("", &body);
    let words: Vec<&str> = params.get("query").unwrap_or_default().split_whitespace().collect();
    if words.is_empty() {
        return Ok(not_cached(text(String::new())));
    }
    let any = RegexSetBuilder::new(&words).case_insensitive(true).build();
    let any = any.map_err(|_| Problem::bad_request("query: one of the words is not a regular expression"))?;
    let (names, failures) = accepted(app.federation().index(&scope(&http, &app, Now::read())).await?, &app)?;
    let found = web::block(move || {
        let found: Vec<String> = names.into_iter().filter(|name| any.is_match(name)).take(MOST_FOUND).collect();
        found.join(",")
    });
    let found = found.await.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(marked(not_cached(text(found)), &failures))
}

/// `/metrics/get-metadata`. There is no carbon behind this that knows any; it is answered as graphite-web answers
/// when its carbon cannot be reached.
async fn get_metadata(http: HttpRequest, body: web::Bytes) -> Result<HttpResponse, Problem> {
    let params = Params::sent(&http, &body)?;
    let key = params.get("key").unwrap_or("None");
    let unknown = |metric: &str| no_metadata(metric, &format!("get_metadata({metric}, {key})"));
    Ok(Json::of_metrics(&http, &params)?.answer(&Value::Object(params.all("metric").map(unknown).collect())))
}

/// `/metrics/set-metadata`, likewise.
async fn set_metadata(http: HttpRequest, body: web::Bytes) -> Result<HttpResponse, Problem> {
    let is_json = body.first() == Some(&b'[');
    let params = Params::read(http.query_string(), if is_json { b"" } else { &body });
    let form = Json::of_metrics(&http, &params)?;
    if http.method() == Method::POST {
        let operations = if is_json { &*body } else { params.get("operations").unwrap_or_default().as_bytes() };
        let operations: Vec<Value> = serde_json::from_slice(operations)
            .map_err(|_| Problem::bad_request("`operations` is not a JSON array of {metric, key, value}"))?;
        let metrics = operations.iter().filter_map(|operation| operation["metric"].as_str());
        let refused = |metric: &str| no_metadata(metric, &format!("set_metadata({metric})"));
        return Ok(form.answer(&Value::Object(metrics.map(refused).collect())));
    }
    let needed =
        |name: &str| params.get(name).ok_or_else(|| Problem::bad_request(format!("parameter `{name}` is missing")));
    let (metric, key, _) = (needed("metric")?, needed("key")?, needed("value")?);
    let (metric, error) = no_metadata(metric, &format!("set_metadata({metric}, {key})"));
    Ok(form.answer(&json!({metric: error})))
}

fn no_metadata(metric: &str, call: &str) -> (String, Value) {
    (metric.to_owned(), json!({"error": format!("Unexpected error occurred in CarbonLink.{call}")}))
}
