//! Bytes for a terminal, as lines that people can read anywhere.

use crate::text::is_unprintable;

/// Longer than any title or link that a program sets. One that never ends hides nothing behind it.
const STRING_MAX: usize = 4_096;

/// Takes terminal sequences and other control characters out of a stream of bytes.
#[derive(Debug, Default)]
pub struct Plain {
    /// The beginning of a character whose end has not come yet.
    torn: Vec<u8>,
    state: Within,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    /// Behind a carriage return: a line end, unless one follows.
    Return,
    Escape,
    /// A sequence with parameters, up to its last letter.
    Sequence,
    /// A string, such as a title, up to its terminator; so many characters of it have come.
    String(usize),
    /// The same, behind an escape: its terminator, or what ends it early.
    StringEscape(usize),
}

impl Plain {
    /// The text of the bytes that came, as far as it is known.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.torn.extend_from_slice(bytes);
        let whole = std::mem::take(&mut self.torn);
        let mut text = String::with_capacity(whole.len());
        let mut rest = whole.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(good) => {
                    self.characters(good, &mut text);
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.characters(std::str::from_utf8(good).unwrap_or_default(), &mut text);
                    let Some(length) = error.error_len() else {
                        self.torn = bad.to_vec();
                        break;
                    };
                    self.character(char::REPLACEMENT_CHARACTER, &mut text);
                    rest = &bad[length..];
                }
            }
        }
        text
    }

    /// What is left when nothing more comes.
    pub fn finish(&mut self) -> String {
        let mut text = String::new();
        if !std::mem::take(&mut self.torn).is_empty() {
            self.character(char::REPLACEMENT_CHARACTER, &mut text);
        }
        if std::mem::take(&mut self.state) == Within::Return {
            text.push('\n');
        }
        text
    }

    fn characters(&mut self, good: &str, text: &mut String) {
        good.chars().for_each(|c| self.character(c, text));
    }

    fn character(&mut self, c: char, text: &mut String) {
        self.state = match (self.state, c) {
            (Within::Sequence, '\u{20}'..='\u{3f}') => Within::Sequence,
            (Within::Sequence, '\u{40}'..='\u{7e}') => Within::Text,
            (Within::Escape, '[') => Within::Sequence,
            (Within::Escape, ']' | 'P' | 'X' | '^' | '_') => Within::String(0),
            // Between the escape and its letter.
            (Within::Escape, '\u{20}'..='\u{2f}') => Within::Escape,
            (Within::Escape, '\u{30}'..='\u{7e}') => Within::Text,
            (Within::String(_), '\u{7}' | '\u{9c}') | (Within::StringEscape(_), '\\') => Within::Text,
            (Within::String(n), '\u{1b}') => Within::StringEscape(n),
            (Within::String(n) | Within::StringEscape(n), _) if n < STRING_MAX => Within::String(n + 1),
            (_, _) => self.plain(c, text),
        };
    }

    /// Outside of every sequence.
    fn plain(&mut self, c: char, text: &mut String) -> Within {
        if self.state == Within::Return {
            text.push('\n');
        }
        match c {
            '\n' if self.state == Within::Return => {}
            '\n' | '\t' => text.push(c),
            '\r' => return Within::Return,
            '\u{1b}' => return Within::Escape,
            '\u{9b}' => return Within::Sequence,
            '\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => return Within::String(0),
            _ if c.is_control() => {}
            _ if is_unprintable(c) => text.push(char::REPLACEMENT_CHARACTER),
            _ => text.push(c),
        }
        Within::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &[(&str, &str)] = &[
        ("plain\ttext\n", "plain\ttext\n"),
        ("\u{1b}[1;31mred\u{1b}[0m\n", "red\n"),
        ("\u{1b}]0;title\u{7}after", "after"),
        ("\u{1b}]8;;https://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ("10%\r20%\r\ndone\r", "10%\n20%\ndone\n"),
        ("a\u{1b}(Bb\u{1b}=c\u{1b}7d", "abcd"),
        ("\u{9b}31mC1\u{9b}0m", "C1"),
        ("bell\u{7} back\u{8} nul\u{0}", "bell back nul"),
        ("right\u{202e}left", "right\u{fffd}left"),
        ("naïve — 日本\u{1f600}", "naïve — 日本\u{1f600}"),
    ];

    fn whole(bytes: &[u8]) -> String {
        let mut plain = Plain::default();
        let mut text = plain.push(bytes);
        text.push_str(&plain.finish());
        text
    }

    #[test]
    fn sequences_go_and_words_stay() {
        for (given, wanted) in CASES {
            assert_eq!(whole(given.as_bytes()), *wanted, "{given:?}");
        }
        assert_eq!(whole(b"bad \xff\xfe byte \xe2\x82"), "bad \u{fffd}\u{fffd} byte \u{fffd}");
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        for (given, wanted) in CASES {
            for cut in 0..=given.len() {
                let (first, second) = given.as_bytes().split_at(cut);
                let mut plain = Plain::default();
                let mut text = plain.push(first);
                text.push_str(&plain.push(second));
                text.push_str(&plain.finish());
                assert_eq!(text, *wanted, "{given:?} at {cut}");
            }
        }
    }

    #[test]
    fn a_string_without_an_end_hides_nothing_for_ever() {
        let text = whole(format!("\u{1b}]0;{}seen", "x".repeat(STRING_MAX)).as_bytes());
        assert!(text.ends_with("seen"), "{text}");
    }
}
