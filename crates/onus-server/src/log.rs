//! One line on stderr per answer.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// How the lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    Text,
    Json,
    /// Only what is wrong, as text.
    Quiet,
}

impl Log {
    pub fn parse(text: &str) -> Option<Log> {
        match text {
            "text" => Some(Log::Text),
            "json" => Some(Log::Json),
            "quiet" => Some(Log::Quiet),
            _ => None,
        }
    }
}

pub fn start(log: Log) {
    let lines = fmt().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    // That somebody else has begun to write the log is fine.
    let _ = match log {
        Log::Text => {
            tracing::subscriber::set_global_default(lines.with_max_level(LevelFilter::INFO).finish())
        }
        Log::Quiet => {
            tracing::subscriber::set_global_default(lines.with_max_level(LevelFilter::WARN).finish())
        }
        Log::Json => {
            let lines = lines.json().flatten_event(true).with_max_level(LevelFilter::INFO);
            tracing::subscriber::set_global_default(lines.finish())
        }
    };
}
