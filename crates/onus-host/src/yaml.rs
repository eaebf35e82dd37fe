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

/// A document of another tool, whatever it says; the line of the mistake where it cannot be read.
pub fn foreign(text: &str) -> Result<serde_json::Value, (usize, String)> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: FOREIGN_EVENTS,
            max_nodes: FOREIGN_EVENTS,
            max_total_scalar_bytes: FOREIGN_BYTES,
            max_documents: 1,
        },
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
        (line, printable(&DefaultMessageFormatter.format_message(&error)))
    })
}

/// A queue of some ten thousand tasks.
const FOREIGN_EVENTS: usize = 2_000_000;
const FOREIGN_BYTES: usize = 64 << 20;

/// What is wrong with a document that cannot be read, and what remains of it without its mistakes.
pub(crate) struct Mistakes<T> {
    pub(crate) refusals: Vec<Refusal>,
    /// The document without the entries that are wrong, where that can be read.
    pub(crate) rest: Option<T>,
    /// The lines that were left out for it, from 1.
    pub(crate) left_out: Vec<usize>,
}

/// More mistakes than anybody mends at once.
const MISTAKES_MAX: usize = 20;

/// The document in `bytes`, or every mistake in it: the parser stops at the first, so the entry with it is left out and the
/// rest is read again. Lines keep their numbers.
pub(crate) fn parse_all<T: DeserializeOwned + Default>(
    bytes: &[u8],
    name: &str,
    words: &Words,
) -> Result<T, Mistakes<T>> {
    let mut found = Mistakes { refusals: Vec::new(), rest: None, left_out: Vec::new() };
    let mut lines: Vec<String> = String::from_utf8_lossy(bytes).split('\n').map(str::to_owned).collect();
    let mut parsed = parse(bytes, name, words);
    while let Err(refusal) = parsed {
        let at = line_of(&refusal.detail, name);
        let is_known = found.refusals.contains(&refusal);
        if !is_known {
            found.refusals.push(refusal);
        }
        let block =
            at.filter(|_| !is_known && found.refusals.len() < MISTAKES_MAX).and_then(|at| entry(&lines, at));
        let Some(block) = block else { return Err(found) };
        for at in block {
            lines[at].clear();
            found.left_out.push(at + 1);
        }
        parsed = parse(lines.join("\n").as_bytes(), name, words);
    }
    match parsed {
        Ok(document) if found.refusals.is_empty() => Ok(document),
        parsed => Err(Mistakes { rest: parsed.ok(), ..found }),
    }
}

/// The line in `NAME:LINE:COLUMN: …`, from 0.
fn line_of(detail: &str, name: &str) -> Option<usize> {
    let place = detail.strip_prefix(name)?.strip_prefix(':')?;
    place.split(':').next()?.parse::<usize>().ok()?.checked_sub(1)
}

/// The lines of the entry that stands at a line: those that follow and are further in belong to it. Of a list's item the
/// first line is all of it.
fn entry(lines: &[String], at: usize) -> Option<std::ops::Range<usize>> {
    let inset = |line: &str| line.len() - line.trim_start().len();
    // Without the mark between two documents they would run into each other.
    let is_entry = |line: &&String| !line.trim().is_empty() && !line.starts_with("---");
    let first = lines.get(at).filter(is_entry)?;
    let further = |line: &&String| line.trim().is_empty() || inset(line) > inset(first);
    let more = lines[at + 1..].iter().take_while(further).count();
    Some(at..at + 1 + more)
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
        Error::InvalidScalar { ty: "u32" | "u64" | "u8", .. } => ("not a whole number".to_owned(), remedy()),
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
