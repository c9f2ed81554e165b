//! `/openapi.json`: every endpoint and parameter, for people and generators of clients.
//!
//! Kept by hand as a table; a test compares it with the routes.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use serde_json::{Map, Value, json};

use super::answer::resource;

/// One endpoint.
struct Endpoint {
    path: &'static str,
    methods: &'static [&'static str],
    summary: &'static str,
    params: &'static [Param],
    /// Media types of the answer.
    answers: &'static [&'static str],
}

/// One parameter: name, type, whether it may be repeated, meaning.
struct Param(&'static str, Type, &'static str);

#[derive(Clone, Copy)]
enum Type {
    Text,
    Texts,
    Integer,
    Number,
    /// Its presence counts, whatever its value.
    Flag,
    /// 0 or 1.
    Switch,
    /// A part of the path.
    InPath,
}
use Type::{Flag, InPath, Integer, Number, Switch, Text, Texts};

const JSON: &[&str] = &["application/json"];
const STORAGE: &[&str] = &["application/json", "application/x-protobuf", "application/x-carbonapi-v3-pb"];
const PLAIN: &[&str] = &["text/plain"];

const FROM: Param = Param(
    "from",
    Text,
    "Start of the range, exclusive: epoch seconds, -1h, 10:30_20260131, noon_yesterday… Default -1d.",
);
const UNTIL: Param = Param("until", Text, "End of the range, inclusive; written like from. Default now.");
const NOW: Param = Param("now", Text, "What the request takes for the present; relative times count from it.");
const ZONE: Param = Param("tz", Text, "IANA zone of times in the request and of CSV; an unknown one is ignored.");
const PRETTY: Param = Param("pretty", Text, "Not empty: JSON with line breaks.");
const JSONP: Param = Param("jsonp", Text, "Name of a JavaScript function that the JSON is wrapped in.");
const LOCAL: Param = Param("local", Switch, "Sent by other frontends; changes nothing.");
const STORAGE_FORMAT: Param = Param(
    "format",
    Text,
    "json (default), protobuf, carbonapi_v2_pb or carbonapi_v3_pb; the last also by Accept: application/x-carbonapi-v3-pb.",
);
const LIMIT: Param = Param("limit", Integer, "The most entries.");
const EXPR: Param =
    Param("expr", Texts, "Tag expressions that must all hold: tag=value, tag!=value, tag=~regex, tag!=~regex.");

const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/render",
        methods: &["get", "post"],
        summary: "Series of targets, computed over all backends. Parameters of query string and form body are merged; of a repeated one the last counts. Pictures take the parameters that graphite-web's take (width, height, areaMode, bgcolor…).",
        params: &[
            Param(
                "target",
                Texts,
                "A path, a tag query or a call of functions; may be repeated. target[] is the same.",
            ),
            Param(
                "format",
                Text,
                "json, csv, raw, pickle, msgpack, dygraph, rickshaw, carbonapi_v2_pb (protobuf), carbonapi_v3_pb, png, svg or pdf; anything else is png.",
            ),
            FROM,
            UNTIL,
            NOW,
            ZONE,
            Param(
                "maxDataPoints",
                Integer,
                "JSON only: the most points of a series; more are consolidated. 0 is ignored.",
            ),
            Param("noNullPoints", Flag, "JSON only: absent points, and series without any point, are left out."),
            Param(
                "xFilesFactor",
                Number,
                "Least share (0 to 1) of known points for a consolidated or combined point to be known.",
            ),
            Param("template[NAME]", Text, "Value of $NAME in template(..) calls."),
            Param("cacheTimeout", Integer, "How long, in seconds, the answer may be used; 0 is noCache."),
            Param("noCache", Flag, "The answer is computed anew and not kept."),
            Param("rawData", Flag, "Without format: raw."),
            Param("pickle", Flag, "Without format: pickle."),
            Param("graphType", Text, "line or pie; a pie is a picture."),
            Param("pieMode", Text, "average, maximum or minimum: what a slice of a pie is."),
            JSONP,
            PRETTY,
            LOCAL,
        ],
        answers: &[
            "application/json",
            "text/csv",
            "text/plain",
            "text/javascript",
            "application/pickle",
            "application/x-msgpack",
            "application/x-protobuf",
            "application/x-carbonapi-v3-pb",
            "image/png",
            "image/svg+xml",
            "application/x-pdf",
        ],
    },
    Endpoint {
        path: "/metrics/find",
        methods: &["get", "post"],
        summary: "Nodes of the tree of names that match a pattern, of all backends. /metrics with a query is the same.",
        params: &[
            Param("query", Text, "A pattern such as servers.*.cpu; required."),
            Param(
                "format",
                Text,
                "treejson (default), completer, nodelist, json, pickle, msgpack, protobuf, carbonapi_v2_pb or carbonapi_v3_pb.",
            ),
            Param("leavesOnly", Switch, "1: only series."),
            Param("wildcards", Switch, "1: adds a node * when several match."),
            Param("automatic_variants", Switch, "1: completer takes a,b within a node for {a,b}."),
            Param("position", Integer, "nodelist: which part of the names, counted from 0, or from the end with -1."),
            Param("from", Text, "Only nodes that may have points since then, where a backend can tell."),
            Param("until", Text, "Only nodes that may have points until then, where a backend can tell."),
            NOW,
            ZONE,
            JSONP,
            PRETTY,
            LOCAL,
        ],
        answers: &["application/json", "application/pickle", "application/x-msgpack", "application/x-protobuf"],
    },
    Endpoint {
        path: "/metrics",
        methods: &["get"],
        summary: "What this server counts, in the text format of Prometheus. With any parameter it is /metrics/find.",
        params: &[],
        answers: PLAIN,
    },
    Endpoint {
        path: "/metrics/expand",
        methods: &["get", "post"],
        summary: "Full names of the nodes that match patterns.",
        params: &[
            Param("query", Texts, "Patterns."),
            Param("groupByExpr", Switch, "1: an object with a list for each pattern."),
            Param("leavesOnly", Switch, "1: only series."),
            JSONP,
            PRETTY,
            LOCAL,
        ],
        answers: JSON,
    },
    Endpoint {
        path: "/metrics/index.json",
        methods: &["get"],
        summary: "Names of all series.",
        params: &[JSONP, PRETTY, LOCAL],
        answers: JSON,
    },
    Endpoint {
        path: "/browser/search",
        methods: &["get", "post"],
        summary: "Names that match any word of a form's query, a hundred at most, separated by commas.",
        params: &[Param("query", Text, "Regular expressions, in any case, separated by spaces.")],
        answers: &["text/plain"],
    },
    Endpoint {
        path: "/metrics/list",
        methods: &["get", "post"],
        summary: "Names of all series, as carbonapi's backends list them.",
        params: &[STORAGE_FORMAT],
        answers: STORAGE,
    },
    Endpoint {
        path: "/info",
        methods: &["get", "post"],
        summary: "Step and age of series, as carbonapi's backends tell them.",
        params: &[Param("target", Texts, "Names of series."), STORAGE_FORMAT],
        answers: STORAGE,
    },
    Endpoint {
        path: "/_internal/capabilities",
        methods: &["get", "post"],
        summary: "The protocols in which a carbonapi can ask.",
        params: &[STORAGE_FORMAT],
        answers: STORAGE,
    },
    Endpoint {
        path: "/metrics/get-metadata",
        methods: &["get", "post"],
        summary: "Metadata of series, of which none is known here: answered as by a Graphite without its carbon.",
        params: &[Param("metric", Texts, "Names of series."), Param("key", Text, "Which metadata."), JSONP, PRETTY],
        answers: JSON,
    },
    Endpoint {
        path: "/metrics/set-metadata",
        methods: &["get", "post"],
        summary: "The same for setting it; POST takes a JSON array of {metric, key, value}, as the body or as operations.",
        params: &[
            Param("metric", Text, "Name of a series."),
            Param("key", Text, "Which metadata."),
            Param("value", Text, "Its value."),
            Param("operations", Text, "POST: the array."),
            JSONP,
            PRETTY,
        ],
        answers: JSON,
    },
    Endpoint {
        path: "/dashboard/find",
        methods: &["get", "post"],
        summary: "Dashboards: there are none.",
        params: &[Param("query", Text, "Ignored.")],
        answers: JSON,
    },
    Endpoint {
        path: "/dashboard/load/{name}",
        methods: &["get"],
        summary: "A dashboard: an error, with status 200 as by graphite-web.",
        params: &[Param("name", InPath, "Its name.")],
        answers: JSON,
    },
    Endpoint {
        path: "/tags",
        methods: &["get"],
        summary: "All tags.",
        params: &[Param("filter", Text, "A regular expression, anchored at the start."), LIMIT, PRETTY, LOCAL],
        answers: JSON,
    },
    Endpoint {
        path: "/tags/{tag}",
        methods: &["get"],
        summary: "The values of a tag with the number of series that have each.",
        params: &[
            Param("tag", InPath, "The tag."),
            Param("filter", Text, "A regular expression, anchored at the start."),
            LIMIT,
            PRETTY,
            LOCAL,
        ],
        answers: JSON,
    },
    Endpoint {
        path: "/tags/findSeries",
        methods: &["get", "post"],
        summary: "Names of the series that satisfy tag expressions.",
        params: &[EXPR, PRETTY, LOCAL],
        answers: JSON,
    },
    Endpoint {
        path: "/tags/autoComplete/tags",
        methods: &["get", "post"],
        summary: "Tags of the series that satisfy the expressions, besides those in them.",
        params: &[EXPR, Param("tagPrefix", Text, "Start of the tags."), LIMIT, PRETTY, LOCAL],
        answers: JSON,
    },
    Endpoint {
        path: "/tags/autoComplete/values",
        methods: &["get", "post"],
        summary: "Values of a tag of the series that satisfy the expressions.",
        params: &[
            Param("tag", Text, "The tag; required."),
            EXPR,
            Param("valuePrefix", Text, "Start of the values."),
            LIMIT,
            PRETTY,
            LOCAL,
        ],
        answers: JSON,
    },
    Endpoint {
        path: "/tags/tagSeries",
        methods: &["post"],
        summary: "Adds a series to the tag index of an embedded store.",
        params: &[Param("path", Text, "The tagged name, name;tag=value."), PRETTY],
        answers: JSON,
    },
    Endpoint {
        path: "/tags/tagMultiSeries",
        methods: &["post"],
        summary: "Adds several series to the tag index of an embedded store.",
        params: &[Param("path", Texts, "The tagged names."), PRETTY],
        answers: JSON,
    },
    Endpoint {
        path: "/tags/delSeries",
        methods: &["post"],
        summary: "Takes series out of the tag index of an embedded store.",
        params: &[Param("path", Texts, "The tagged names."), PRETTY],
        answers: JSON,
    },
    Endpoint {
        path: "/events",
        methods: &["get", "post"],
        summary: "GET: events, as of /events/get_data. POST: adds one, a JSON object of what, tags, when (epoch seconds) and data.",
        params: &[],
        answers: JSON,
    },
    Endpoint {
        path: "/events/{id}",
        methods: &["get"],
        summary: "One event.",
        params: &[Param("id", InPath, "Its id.")],
        answers: JSON,
    },
    Endpoint {
        path: "/events/get_data",
        methods: &["get"],
        summary: "Events of a range, for annotations.",
        params: &[
            FROM,
            UNTIL,
            Param("tags", Text, "Tags, separated by spaces."),
            Param("set", Text, "intersection (the default): all of the tags; union: any of them."),
            ZONE,
            JSONP,
        ],
        answers: JSON,
    },
    Endpoint {
        path: "/functions",
        methods: &["get"],
        summary: "Every function with its parameters.",
        params: &[
            Param("grouped", Switch, "1: by group."),
            Param("group", Text, "Only this group."),
            Param("type", Text, "pie: the functions of pieMode."),
            PRETTY,
        ],
        answers: JSON,
    },
    Endpoint {
        path: "/functions/{name}",
        methods: &["get"],
        summary: "One function.",
        params: &[Param("name", InPath, "Its name."), Param("type", Text, "pie: a function of pieMode."), PRETTY],
        answers: JSON,
    },
    Endpoint {
        path: "/version",
        methods: &["get"],
        summary: "The version of Graphite's API that this answers.",
        params: &[],
        answers: PLAIN,
    },
    Endpoint { path: "/healthz", methods: &["get"], summary: "The process is alive.", params: &[], answers: PLAIN },
    Endpoint {
        path: "/readyz",
        methods: &["get"],
        summary: "State of each group of backends.",
        params: &[],
        answers: JSON,
    },
    Endpoint { path: "/lb_check", methods: &["get"], summary: "For load balancers.", params: &[], answers: PLAIN },
    Endpoint { path: "/openapi.json", methods: &["get"], summary: "This description.", params: &[], answers: JSON },
];

/// `GET /openapi.json`.
pub(super) async fn openapi() -> HttpResponse {
    HttpResponse::Ok().json(document())
}

/// Adds the route.
pub(super) fn routes(service: &mut web::ServiceConfig) {
    service.service(resource(&["/openapi.json"], &[Method::GET, Method::HEAD], openapi));
}

fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let mut operations = Map::new();
        for method in endpoint.methods {
            operations.insert((*method).to_owned(), operation(endpoint, method));
        }
        paths.insert(endpoint.path.to_owned(), operations.into());
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Plumbago",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Graphite's HTTP API over many storage backends. Each path may end with a slash. Errors are plain text of which the first line says what is wrong.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "paths": paths,
    })
}

fn operation(endpoint: &Endpoint, method: &str) -> Value {
    let posted = method == "post";
    let in_form = |p: &&Param| posted && !matches!(p.1, InPath);
    let parameters: Vec<Value> = endpoint.params.iter().filter(|p| !in_form(p)).map(parameter).collect();
    let mut operation = json!({
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "The answer.", "content": content(endpoint.answers)},
            "400": {"description": "The request is wrong.", "content": content(PLAIN)},
            "413": {"description": "It asks for more than the limits allow.", "content": content(PLAIN)},
            "502": {"description": "Backends failed.", "content": content(PLAIN)},
            "503": {"description": "Other requests hold the memory that this one needs.", "content": content(PLAIN)},
            "504": {"description": "Time ran out.", "content": content(PLAIN)},
        },
    });
    let form: Map<String, Value> =
        endpoint.params.iter().filter(in_form).map(|p| (p.0.to_owned(), schema(p))).collect();
    if !form.is_empty() {
        operation["requestBody"] = json!({"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": form}}}});
    }
    operation
}

fn content(types: &[&str]) -> Value {
    types.iter().map(|t| ((*t).to_owned(), json!({}))).collect::<Map<String, Value>>().into()
}

fn parameter(p: &Param) -> Value {
    let place = if matches!(p.1, InPath) { "path" } else { "query" };
    json!({"name": p.0, "in": place, "required": place == "path", "description": p.2, "schema": schema(p)})
}

fn schema(p: &Param) -> Value {
    match p.1 {
        Text | InPath | Flag => json!({"type": "string", "description": p.2}),
        Texts => json!({"type": "array", "items": {"type": "string"}, "description": p.2}),
        Integer => json!({"type": "integer", "description": p.2}),
        Number => json!({"type": "number", "description": p.2}),
        Switch => json!({"type": "integer", "enum": [0, 1], "description": p.2}),
    }
}
