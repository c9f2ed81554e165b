//! Plumbago: a Graphite-compatible federating render frontend.
//!
//! Modules are listed bottom-up: each may use only those above it (`tests/architecture.rs` checks it).
#![forbid(unsafe_code)]

/// What a storage offers; the protocols that speak to one.
pub mod backend;
/// Now, `from`/`until`, intervals, time zones.
pub mod clock;
/// Answers as bytes: JSON, CSV, raw, dygraph, rickshaw…; compression.
pub mod encode;
/// Time series, tags, patterns, ranges, aggregation. Depends on nothing.
pub mod series;
/// Embedded stores: series in memory, whisper files, demo data.
pub mod store;
