//! YAML within limits. A file with a mistake in it is refused whole: half of a policy is another policy.

use crate::file::printable;
use onus_core::code::Code;
use onus_core::id::shown as shown_text;
use onus_core::refusal::Refusal;
use serde::de::DeserializeOwned;
use serde_saphyr::{DefaultMessageFormatter, Error, MergeKeyPolicy, MessageFormatter, Options};

pub const SIZE_MAX: usize = 256 * 1024;

/// What a file is to the person who edits it.
pub(crate) struct Words {
    /// The code of its refusals.
    pub(crate) code: Code,
    /// One entry of it: `setting`.
    pub(crate) entry: &'static str,
    /// Several: `settings`.
    pub(crate) entries: &'static str,
    /// What to do about most mistakes.
    pub(crate) remedy: &'static str,
}

impl Words {
    fn refusal(&self, detail: String) -> Refusal {
        Refusal::new(self.code, detail)
    }
}

/// The document in `bytes`; the default when it says nothing. `name` is the file's, for messages.
pub(crate) fn parse<T: DeserializeOwned + Default>(
    bytes: &[u8],
    name: &str,
    words: &Words,
) -> Result<T, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = String::from_utf8_lossy(&bytes[..e.valid_up_to()]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        words.refusal(format!("{name}:{line}:{column}: not UTF-8 text")).hint("save the file as UTF-8")
    })?;
    // A file of nothing but comments sets nothing.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(T::default());
    }
    serde_saphyr::from_str_with_options(text, limits()).map_err(|e| refusal(&e, name, words))
}

/// Such a file is a page of text: what needs more than this is an attack or a mistake.
fn limits() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 20_000, max_documents: 1 },
        // A merge could bring a key in a second time without anybody seeing it.
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    }
}

fn refusal(error: &Error, name: &str, words: &Words) -> Refusal {
    let at = error.location().map(|at| format!(":{}:{}", at.line(), at.column())).unwrap_or_default();
    let (message, hint) = in_words(error, words);
    words.refusal(format!("{name}{at}: {message}")).hint(hint)
}

/// What is wrong and what to do, for a person who edits the file and does not know the parser.
fn in_words(error: &Error, words: &Words) -> (String, String) {
    let Words { entry, entries, .. } = words;
    let remedy = || words.remedy.to_owned();
    match error {
        Error::AliasError { error, .. } => in_words(error, words),
        Error::SerdeUnknownField { field, expected, .. } => (
            format!("there is no {entry} {}", shown_text(field)),
            format!("known here: {}", expected.join(", ")),
        ),
        Error::SerdeUnknownVariant { variant, expected, .. } => (
            format!("{} is none of the words for it", shown_text(variant)),
            format!("known here: {}", expected.join(", ")),
        ),
        Error::SerdeMissingField { field, .. } => {
            (format!("{} is missing here", shown_text(field)), format!("add `{field}: …`"))
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map_or_else(|| "a key".to_owned(), shown_text);
            (format!("{key} is set twice"), "remove one of the two lines".to_owned())
        }
        Error::InvalidScalar { ty: "u32" | "u8", .. } => ("not a whole number".to_owned(), remedy()),
        Error::NullIntoString { .. } => ("it has no value".to_owned(), remedy()),
        Error::Unexpected { expected: "mapping start", .. } => {
            (format!("{entries} in the form `key: value` belong here"), remedy())
        }
        Error::Budget { .. } => (
            format!("too much of one thing for a file of {entries}"),
            format!("{entries} are one small document"),
        ),
        other => (printable(&DefaultMessageFormatter.format_message(other)), remedy()),
    }
}
