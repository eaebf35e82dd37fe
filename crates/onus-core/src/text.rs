//! Text from people and agents: bounded, free of control characters, and kept once.

use crate::hash::Digest;
use crate::id::shown;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Limits on everything: a caller can neither fill the store nor an agent's context with one call.
pub const TITLE_MAX: usize = 500;
pub const REASON_MAX: usize = 4_000;
pub const BODY_MAX: usize = 65_536;
pub const LABEL_MAX: usize = 64;
pub const GLOB_MAX: usize = 512;
pub const CHECK_MAX: usize = 4_096;
pub const LIST_MAX: usize = 256;
/// What a task keeps of another system's fields, as JSON.
pub const EXTRA_MAX: usize = 262_144;
pub const CRITERION_MAX: usize = 4_096;
/// What a task's checks, criteria, scope and tags have together: lists of tasks are long, and the record has each of them.
pub const LISTS_MAX: usize = 65_536;
/// Of the words of all exceptions of a task together, likewise.
pub const EXCEPTIONS_MAX: usize = 65_536;

/// One line: not empty, no control characters, at most `max` bytes.
pub fn line(what: &str, text: &str, max: usize) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.len() > max {
        return Err(format!("{what} has {} bytes; the limit is {max}", text.len()));
    }
    if text.chars().any(is_unprintable) {
        return Err(format!("{what} {} has control characters", shown(text)));
    }
    Ok(text.to_owned())
}

/// Several lines: tabs and line ends are allowed, other control characters are not.
pub fn lines(what: &str, text: &str, max: usize) -> Result<String, String> {
    let text = text.trim_end();
    if text.trim().is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.len() > max {
        return Err(format!("{what} has {} bytes; the limit is {max}", text.len()));
    }
    if text.chars().any(|c| is_unprintable(c) && !matches!(c, '\n' | '\t' | '\r')) {
        return Err(format!("{what} has control characters"));
    }
    Ok(text.to_owned())
}

/// Control characters, and what nobody sees but a program reads: other line ends, marks and overrides of direction, spaces
/// without width, soft hyphens, tags and selectors that can spell words of their own. The joiners within letters and
/// emoji are none of these.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// At most `max` bytes of a text; an ellipsis tells that there was more.
pub fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

/// A text that the ledger names by its digest and the store keeps once, beside the row it belongs to.
///
/// So the record stays small, nothing is entered twice, and an edit of the text still shows.
#[derive(Debug, Clone, Eq)]
pub struct Text {
    digest: Digest,
    content: Option<String>,
}

impl Text {
    pub fn new(content: String) -> Text {
        Text { digest: Digest::of(content.as_bytes()), content: Some(content) }
    }

    /// A text that is kept elsewhere, or nowhere: only its digest is known here.
    pub fn known_by(digest: Digest) -> Text {
        Text { digest, content: None }
    }

    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Text::default()
    }

    /// Present where the text came from a caller or a row; absent where it was read from the ledger.
    pub fn content(&self) -> Option<&str> {
        self.content.as_deref()
    }
}

/// No words at all.
impl Default for Text {
    fn default() -> Text {
        Text::new(String::new())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.digest == other.digest
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.digest.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Text { digest: Digest::deserialize(deserializer)?, content: None })
    }
}

/// `1 finding`, `3 findings`.
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    match count.try_into() {
        Ok(1) => format!("1 {one}"),
        Ok(many) => match one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
            Some(stem) => format!("{many} {stem}ies"),
            None => format!("{many} {one}s"),
        },
        Err(_) => format!("no {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_printable() {
        assert_eq!(line("title", "  hi ", 10).unwrap(), "hi");
        for bad in ["", "   ", "a\nb", "a\u{1b}[0m", "a\u{202e}b", "12345678901"] {
            assert!(line("title", bad, 10).is_err(), "{bad:?}");
        }
        for hidden in [
            "\u{2028}",
            "\u{2029}",
            "\u{200b}",
            "\u{2060}",
            "\u{ad}",
            "\u{200f}",
            "\u{e0041}",
            "\u{e0101}",
            "\u{3164}",
        ] {
            assert!(line("title", &format!("a{hidden}b"), 20).is_err(), "{hidden:?}");
            assert!(lines("body", &format!("a{hidden}b"), 20).is_err(), "{hidden:?}");
        }
        // What letters and emoji are made of stays.
        for good in ["👩\u{200d}💻", "می\u{200c}خواهم", "❤\u{fe0f}", "e\u{301}"] {
            assert!(line("title", good, 40).is_ok(), "{good:?}");
        }
        assert!(lines("body", "a\n\tb\n", 10).is_ok());
        assert!(lines("body", "a\u{0}", 10).is_err());
    }

    #[test]
    fn what_is_counted_reads_well() {
        assert_eq!(counted(1_usize, "finding"), "1 finding");
        assert_eq!(counted(0_i64, "commit"), "0 commits");
        assert_eq!(counted(2_i64, "entry"), "2 entries");
        assert_eq!(counted(2_i64, "day"), "2 days");
    }

    #[test]
    fn the_ledger_sees_only_the_digest() {
        let text = Text::new("secret".into());
        let json = serde_json::to_string(&text).unwrap();
        assert!(!json.contains("secret"));
        let back: Text = serde_json::from_str(&json).unwrap();
        assert_eq!(back, text);
        assert_eq!(back.content(), None);
    }
}
