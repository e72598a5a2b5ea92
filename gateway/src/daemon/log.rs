//! Structured logs on standard error.

use crate::config::{LogFormat, LogLevel};
use std::io::{self, IsTerminal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging. The environment variable `SIXWAY_LOG` (`warn`, or `sixway::host=debug,info`) takes precedence over the configuration.
pub(super) fn start(level: LogLevel, format: LogFormat) {
    let configured = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let written = std::env::var("SIXWAY_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    // Libraries speak up from their warnings on.
    let ours =
        Targets::new().with_target("sixway", configured).with_default(configured.min(LevelFilter::WARN));
    let filter = written.unwrap_or(ours);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.with_ansi(false).json().flatten_event(true).boxed(),
    };
    // Only in a test is it already started here.
    let _ = registry().with(lines.with_filter(filter)).try_init();
}
