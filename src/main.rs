//! The `plumbago` command: reads the command line and the configuration, and serves.

use std::io::{ErrorKind, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use plumbago::clock::{Now, TimeBounds};
use plumbago::config::{Config, GroupKind, GroupSettings};
use plumbago::encode::{self, DataOptions, Format, JsonOptions};
use plumbago::functions::reference::{self, Listing};
use plumbago::functions::{self, Request};
use plumbago::graph;
use plumbago::http::{self, App};
use plumbago::render::RenderRequest;
use plumbago::telemetry;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Graphite-compatible federating render frontend.
#[derive(Debug, Parser)]
#[command(name = "plumbago", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show it: three backends with generated data on this machine, and a frontend over them.
    Demo {
        /// Listen here.
        #[arg(long, default_value = "127.0.0.1:8080")]
        listen: String,
    },
    /// Serve over the backends of a configuration file.
    Serve {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
        /// Listen here instead of where the file says.
        #[arg(long)]
        listen: Option<String>,
    },
    /// Check a configuration file and report every mistake.
    Check {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
    },
    /// Answer one render request from the shell.
    Render {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
        /// Start of the time range.
        #[arg(long, default_value = "-1h", allow_hyphen_values = true)]
        from: String,
        /// End of the time range.
        #[arg(long, default_value = "now", allow_hyphen_values = true)]
        until: String,
        /// json, csv, raw, pickle, msgpack, dygraph, rickshaw, carbonapi_v2_pb, carbonapi_v3_pb, png, svg or pdf.
        #[arg(long, default_value = "json")]
        format: String,
        /// A parameter of a picture, such as width=800 or areaMode=stacked; as often as there are any.
        #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parameter)]
        parameters: Vec<(String, String)>,
        /// Write here instead of to standard output.
        #[arg(long)]
        output: Option<PathBuf>,
        /// The targets.
        #[arg(required = true)]
        targets: Vec<String>,
    },
    /// Every function with its parameters.
    Functions {
        /// The reference manual, as Markdown.
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        /// As `/functions` answers it.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

type AnyError = Box<dyn std::error::Error>;

fn run(command: Command) -> Result<(), AnyError> {
    match command {
        Command::Demo { listen } => demo(&listen),
        Command::Serve { config, listen } => {
            #[cfg(unix)]
            {
                keep_memory();
                allow_open_files();
            }
            serve(&config, listen)
        }
        Command::Functions { markdown, json } => {
            let text = if markdown {
                reference::markdown()
            } else if json {
                reference::json(&Listing { pretty: true, ..Listing::default() })
            } else {
                let lines = functions::names().map(|(name, f)| format!("{name}: {}", first_sentence(f.doc)));
                lines.collect::<Vec<_>>().join("\n") + "\n"
            };
            Ok(print(text.as_bytes())?)
        }
        Command::Check { config } => {
            let config = Config::load(&config)?;
            println!("no mistakes: {} groups of backends, listening on {}", config.groups.len(), config.listen);
            Ok(())
        }
        Command::Render { config, from, until, format, parameters, output, targets } => {
            let bytes = render(Config::load(&config)?, targets, &from, &until, &format, &parameters)?;
            match output {
                Some(path) => std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?,
                None => print(&bytes)?,
            }
            Ok(())
        }
    }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error; a disk that is full is one.
fn print(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Makes the allocator keep what requests gave back for a minute, not for a second. Large answers, of which there is one
/// every now and then, would else get their memory from the system again page by page, which doubles the processor time
/// that they take. The allocator reads its settings from the environment when a process starts, and there is no safe way
/// to change them later, so the program starts itself again in its place (the same process for whoever started it).
/// Where that is not possible, it goes on as it is.
#[cfg(unix)]
fn keep_memory() {
    use std::os::unix::process::CommandExt as _;
    const DELAY: &str = "MIMALLOC_PURGE_DELAY";
    const MILLISECONDS: &str = "60000";
    if std::env::var_os(DELAY).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        let mut arguments = std::env::args_os();
        let mut again = std::process::Command::new(program);
        if let Some(name) = arguments.next() {
            again.arg0(name);
        }
        // It only returns when it fails.
        let _ = again.args(arguments).env(DELAY, MILLISECONDS).exec();
    }
}

/// Takes as many open files as the process may have. 200 backends and 20 clients at a time need 4,000 connections, and
/// systems give 1,024 to those who do not ask; without more, sound backends would look as if they were down. Where it is
/// not granted, it stays as it is.
#[cfg(unix)]
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

/// Three embedded backends that share no series, each with its own HTTP server, and the federating frontend over them:
/// the same that a cluster would be, on loopback.
fn demo(listen: &str) -> Result<(), AnyError> {
    telemetry::start("warn", false)?;
    let listener = TcpListener::bind(listen).map_err(|e| format!("cannot listen on {listen}: {e}"))?;
    let address = listener.local_addr()?;
    let folder = tempfile::Builder::new().prefix("plumbago-demo-").tempdir()?;
    eprintln!("writing demo data to {} …", folder.path().display());
    let parts = plumbago::store::write_demo(folder.path(), Now::read(), 1)?;
    let mut frontend = Config::default();
    let mut group = GroupSettings::new("demo", GroupKind::Shards, "graphite");
    for part in parts {
        let mut backend = Config { http_threads: 1, fetch_threads: 1, ..Config::default() };
        let mut files = GroupSettings::new("files", GroupKind::Shards, "whisper");
        files.path = Some(part);
        backend.groups.push(files);
        let socket = TcpListener::bind("127.0.0.1:0")?;
        group.urls.push(format!("http://{}", socket.local_addr()?));
        http::serve_aside(App::build(backend)?, socket)?;
    }
    frontend.groups.push(group);
    println!("Plumbago over three backends with generated data. Try:\n");
    for (what, query) in [
        ("series as JSON", "/render?target=servers.web01.cpu.user&from=-1h&format=json"),
        ("a function over a glob", "/render?target=sumSeries(stats.counters.http.status.*.count)&from=-1h&format=json"),
        (
            "the same as a picture",
            "/render?target=sumSeries(stats.counters.http.status.*.count)&from=-1h&width=800&height=400",
        ),
        ("what there is", "/metrics/find?query=servers.*"),
    ] {
        println!("  {what}:\n    http://{address}{query}");
    }
    println!("\nCtrl-C ends it.");
    Ok(http::serve(App::build(frontend)?, listener)?)
}

fn serve(path: &Path, listen: Option<String>) -> Result<(), AnyError> {
    let mut config = Config::load(path)?;
    if let Some(listen) = listen {
        config.listen = listen;
    }
    telemetry::start(&config.log, config.log_json)?;
    let listener = TcpListener::bind(&config.listen).map_err(|e| format!("cannot listen on {}: {e}", config.listen))?;
    Ok(http::serve(App::build(config)?, listener)?)
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn render(
    config: Config,
    targets: Vec<String>,
    from: &str,
    until: &str,
    format: &str,
    parameters: &[(String, String)],
) -> Result<Vec<u8>, AnyError> {
    let format = Format::from_parameter(format).ok_or_else(|| format!("there is no format `{format}`"))?;
    let picture = graph::Options::read(parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    telemetry::start("warn", false)?;
    let zone = config.time_zone.clone();
    let bounds = TimeBounds::resolve(Some(from), Some(until), None, &zone, Now::read())?;
    let x_files_factor = config.x_files_factor;
    let strict = config.strict;
    let app = App::build(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rendered = runtime.block_on(async {
        let request = Request {
            range: bounds.range(),
            now: bounds.now(),
            time_zone: zone.clone(),
            server_time_zone: zone.clone(),
            x_files_factor,
            seed: bounds.now().unsigned_abs(),
        };
        let scope = app.scope(bounds.now(), Arc::from("shell"), Arc::from([]));
        app.renderer().render(RenderRequest { targets, overrides: Vec::new(), request, scope, strict }).await
    });
    let rendered = rendered.map_err(|e| e.text())?;
    for failure in &rendered.failures {
        eprintln!("warning: {failure}; something may be missing");
    }
    match format {
        Format::Data(format) => {
            let json = JsonOptions::default();
            let options = DataOptions { json, callback: None, zone: &zone, range: bounds.range() };
            Ok(encode::data(format, &rendered.series, options)?.0)
        }
        Format::Image(format) => Ok(graph::render(&rendered.series, &picture, &zone, format)?),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    #[test]
    fn files_may_be_open_as_far_as_the_system_allows() {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).expect("less is always granted");
        super::allow_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, limit.maximum);
    }
}
