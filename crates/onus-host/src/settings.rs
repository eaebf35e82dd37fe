//! Reads `onus.yaml`. A file with a mistake in it is refused whole: half of a policy is another policy.

use crate::file::{if_exists, printable, read_capped, refused, shown};
use onus_core::id::shown as shown_text;
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use serde_saphyr::{DefaultMessageFormatter, Error, MergeKeyPolicy, MessageFormatter, Options};
use std::io;
use std::path::Path;

const SIZE_MAX: usize = 256 * 1024;

/// The settings in `path`; the defaults when there is no such file.
pub fn load(path: &Path) -> Result<Settings, Refusal> {
    let bytes = if_exists(read_capped(path, SIZE_MAX)).map_err(|e| match e.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidData => {
            Refusal::invalid(format!("{} is {e}", shown(path))).hint("settings are a small YAML file")
        }
        _ => refused("read", path, &e),
    })?;
    match bytes {
        Some(bytes) => parse(&bytes, &shown(path)),
        None => Ok(Settings::default()),
    }
}

/// The JSON Schema of `onus.yaml`, for editors.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Settings);
    schema.insert("title".into(), "onus.yaml".into());
    schema.to_value()
}

fn parse(bytes: &[u8], name: &str) -> Result<Settings, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = String::from_utf8_lossy(&bytes[..e.valid_up_to()]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Refusal::invalid(format!("{name}:{line}:{column}: not UTF-8 text")).hint("save the file as UTF-8")
    })?;
    // A file of nothing but comments sets nothing.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Settings::default());
    }
    serde_saphyr::from_str_with_options(text, limits()).map_err(|e| refusal(&e, name))
}

/// Settings are a page of text: what needs more than this is an attack or a mistake.
fn limits() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 20_000, max_documents: 1 },
        // A merge could bring a key in a second time without anybody seeing it.
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    }
}

fn refusal(error: &Error, name: &str) -> Refusal {
    let at = error.location().map(|at| format!(":{}:{}", at.line(), at.column())).unwrap_or_default();
    let (message, hint) = in_words(error);
    Refusal::invalid(format!("{name}{at}: {message}")).hint(hint)
}

/// What is wrong and what to do, for a person who edits settings and does not know the parser.
fn in_words(error: &Error) -> (String, String) {
    let default = || "correct it, or remove the line to have the default".to_owned();
    match error {
        Error::AliasError { error, .. } => in_words(error),
        Error::SerdeUnknownField { field, expected, .. } => (
            format!("there is no setting {}", shown_text(field)),
            format!("known here: {}", expected.join(", ")),
        ),
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map_or_else(|| "a key".to_owned(), shown_text);
            (format!("{key} is set twice"), "remove one of the two lines".to_owned())
        }
        Error::InvalidScalar { ty: "u32", .. } => ("not a whole number".to_owned(), default()),
        Error::NullIntoString { .. } => ("it has no value".to_owned(), default()),
        Error::Unexpected { expected: "mapping start", .. } => {
            ("settings in the form `key: value` belong here".to_owned(), default())
        }
        Error::Budget { .. } => (
            "too much of one thing for a file of settings".to_owned(),
            "settings are one small document".to_owned(),
        ),
        other => (printable(&DefaultMessageFormatter.format_message(other)), default()),
    }
}
