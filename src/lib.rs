//! Plumbago: a Graphite-compatible federating render frontend.
//!
//! Modules are listed bottom-up: each may use only those above it (`tests/architecture.rs` checks it).
#![forbid(unsafe_code)]

// Time series, tags, patterns, ranges, aggregation. Depends on nothing.
pub mod series;

// Now, `from`/`until`, intervals, time zones.
pub mod clock;

// The target language: text to syntax tree, with places and errors that point.
pub mod target;

// The function library: one value a function, one file a family.
pub mod functions;

// Syntax tree + library = checked tree.
pub mod bind;

// Checked tree + range = what to fetch.
pub mod plan;

// Checked tree + fetched series = series; the rounds of a request.
pub mod evaluate;

// What a storage offers; the protocols that speak to one.
pub mod backend;

// Embedded stores: whisper files, series in memory, tags.
pub mod store;

// Many backends asked as one: batches, replicas, merged answers, look-ups.
pub mod fetch;

// Caches that outlive a request, bounded in bytes.
pub mod cache;

// Answers as bytes: JSON, CSV, raw, dygraph, rickshaw…; compression.
pub mod encode;

// Pictures of series: PNG, SVG, PDF.
pub mod graph;

// The use case: targets in, series out.
pub mod render;

// The configuration file.
pub mod config;

// The log; numbers in the format of Prometheus.
pub mod telemetry;

// Routes, parameters, statuses.
pub mod http;
