//! Data on stdout, everything else on stderr. A closed pipe is quiet.

use crate::cli::Global;
use crate::render::error_text;
use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Human,
    Json,
    JsonLines,
}

/// Where a command puts what it has to say.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) quiet: bool,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Output {
        if global.utc {
            crate::render::tell_utc();
        }
        Output { format: global.format(), quiet: global.quiet }
    }

    /// One document, or its text for people.
    pub(crate) fn show<T: Serialize>(
        &self,
        document: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<ExitCode, Refusal> {
        match self.format {
            Format::Human => self.print(&human(document)),
            Format::Json | Format::JsonLines => {
                write_all(&format!("{}\n", onus_app::view::document(document)?));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// A list: one document, or one line each.
    pub(crate) fn show_list<T: Serialize, I: Serialize>(
        &self,
        document: &T,
        items: impl FnOnce(&T) -> &[I],
        human: impl FnOnce(&T) -> String,
    ) -> Result<ExitCode, Refusal> {
        if self.format != Format::JsonLines {
            return self.show(document, human);
        }
        let mut text = String::new();
        for item in items(document) {
            let line =
                serde_json::to_string(item).map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
            text.push_str(&line);
            text.push('\n');
        }
        write_all(&text);
        Ok(ExitCode::SUCCESS)
    }

    /// Text for people, to stdout.
    pub(crate) fn print(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        // In one go: a stream that strips colours as it writes would make a system call of every line.
        let text = match AutoStream::choice(&stdout) {
            ColorChoice::Never => Cow::Owned(strip_str(text).to_string()),
            _ => Cow::Borrowed(text),
        };
        finish(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
    }

    /// Whether hints would be heard by nobody.
    pub(crate) fn is_silent(&self) -> bool {
        self.format != Format::Human || self.quiet
    }

    /// What to do next: for people only.
    pub(crate) fn hint(&self, text: &str) {
        if !self.is_silent() {
            drop(writeln!(anstream::stderr(), "{text}"));
        }
    }

    /// Something went wrong beside the point.
    pub(crate) fn warn(&self, text: &str) {
        if self.format == Format::Human || !self.quiet {
            drop(writeln!(anstream::stderr(), "warning: {text}"));
        }
    }

    pub(crate) fn refuse(&self, refusal: &Refusal) -> ExitCode {
        refuse(refusal, self.format)
    }
}

/// As it is: a document has no colours to be stripped.
fn write_all(text: &str) {
    let mut stdout = io::stdout().lock();
    finish(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

pub(crate) fn version() -> String {
    format!("onus {}\n", env!("CARGO_PKG_VERSION"))
}

pub(crate) fn print_version() -> ExitCode {
    write_all(&version());
    ExitCode::SUCCESS
}

/// A page for people, where no format was asked for.
pub(crate) fn print_page(text: &str) -> ExitCode {
    Output { format: Format::Human, quiet: false }.print(text);
    ExitCode::SUCCESS
}

/// Writes the refusal to stderr and gives its exit code.
pub(crate) fn refuse(refusal: &Refusal, format: Format) -> ExitCode {
    let text = match format {
        Format::Human => error_text(refusal),
        Format::Json | Format::JsonLines => {
            let document = onus_app::view::error(refusal);
            format!("{document}\n")
        }
    };
    drop(anstream::stderr().write_all(text.as_bytes()));
    ExitCode::from(refusal.code.exit_code())
}

/// A reader that closed the pipe has seen enough; a full disk behind stdout is an error.
fn finish(written: io::Result<()>) {
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            drop(writeln!(anstream::stderr(), "error: cannot write to stdout: {error}"));
            std::process::exit(1);
        }
    }
}

/// A defect ends as one sentence and exit code 1, not as a backtrace.
pub(crate) fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        let text = info.payload_as_str().unwrap_or("no message");
        drop(writeln!(io::stderr(), "error: internal: this is a defect of onus: {text}{place}"));
        std::process::exit(1);
    }));
}
