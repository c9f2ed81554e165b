//! What operators see: the log (`tracing` to standard error, as text or JSON lines), and how numbers are written for
//! Prometheus. What is logged or counted is said where it happens.

mod exposition;
pub mod process;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

pub use exposition::{Exposition, Family, Labels};

/// A filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("log: `{filter}` is not a level such as `info` or filters such as `plumbago::backend=debug,info`: {reason}")]
pub struct FilterError {
    filter: String,
    reason: String,
}

/// What reads requests from connections.
const CONNECTIONS: &str = "actix_http";

/// Starts logging; once for a process, later calls change nothing.
///
/// # Errors
/// A filter that cannot be read.
pub fn start(filter: &str, json: bool) -> Result<(), FilterError> {
    let parsed =
        EnvFilter::try_new(filter).map_err(|e| FilterError { filter: filter.to_owned(), reason: e.to_string() })?;
    let parsed = if filter.contains(CONNECTIONS) {
        parsed
    } else {
        // It calls what clients send an error of its own: whoever likes could fill the log.
        let quiet = format!("{CONNECTIONS}=off").parse().expect("a module and a level are a filter");
        parsed.add_directive(quiet)
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // An error says that logging was started before, as tests do.
    let _ = if json { builder.json().try_init() } else { builder.try_init() };
    Ok(())
}
