//! Colours for the lines of a diff: words of the language, texts, comments and numbers, by what languages have in common. Parts of
//! files are at hand, written by anybody: this never fails, takes time in proportion to the text, and what it does not know stays
//! plain (ADR 23).

use super::language::{Language, language_of};
use std::ops::Range;

/// A longer line is no source that a person reads.
const LINE_MAX: usize = 2_000;

/// What a part of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hue {
    Plain,
    /// A word of the language, a tag, the name of a key.
    Word,
    Text,
    Comment,
    Number,
}

impl Hue {
    /// Its class on the page; none of what is plain.
    pub(super) const fn class(self) -> Option<&'static str> {
        match self {
            Hue::Plain => None,
            Hue::Word => Some("hw"),
            Hue::Text => Some("ht"),
            Hue::Comment => Some("hc"),
            Hue::Number => Some("hn"),
        }
    }
}

type Hues = Vec<(Hue, Range<usize>)>;

/// Reads the lines of one side of a hunk, one after the other: a comment or a text may go on over several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Painter {
    language: Option<&'static Language>,
    /// What ends the comment or text in which the next line begins.
    within: Option<(Hue, &'static str)>,
}

impl Painter {
    /// By the name of the file. Where a hunk begins nobody knows what is open: as a rule nothing is.
    pub(super) fn of(path: &str) -> Painter {
        Painter { language: language_of(path), within: None }
    }

    /// The parts of a line in their order, all of it.
    pub(super) fn line(&mut self, text: &str) -> Hues {
        match self.language {
            Some(language) if text.len() <= LINE_MAX => {
                let mut reader = HueReader { text, at: 0, hues: Vec::new(), language };
                reader.read(&mut self.within);
                reader.hues
            }
            _ => vec![(Hue::Plain, 0..text.len())],
        }
    }
}

struct HueReader<'t> {
    text: &'t str,
    at: usize,
    hues: Hues,
    language: &'static Language,
}

impl HueReader<'_> {
    fn read(&mut self, within: &mut Option<(Hue, &'static str)>) {
        while self.at < self.text.len() {
            if let Some((hue, end)) = *within {
                if self.until(hue, 0, end) {
                    *within = None;
                }
                continue;
            }
            let rest = &self.text[self.at..];
            let language = self.language;
            let is_space_before = self.text[..self.at].ends_with(|c: char| c.is_whitespace()) || self.at == 0;
            let is_comment = |start: &&&str| rest.starts_with(**start) && (**start != "#" || is_space_before);
            if language.comments.iter().find(is_comment).is_some() {
                self.take(Hue::Comment, rest.len());
            } else if let Some((start, end)) = language.block.filter(|(start, _)| rest.starts_with(start)) {
                *within = Some((Hue::Comment, end)).filter(|_| !self.until(Hue::Comment, start.len(), end));
            } else if let Some(end) = language.long.iter().find(|mark| rest.starts_with(**mark)) {
                *within = Some((Hue::Text, *end)).filter(|_| !self.until(Hue::Text, end.len(), end));
            } else {
                self.token(rest);
            }
        }
    }

    /// A text on one line, a number, a name, or one sign.
    fn token(&mut self, rest: &str) {
        let Some(first) = rest.chars().next() else { return };
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || (c == '-' && self.language.keys);
        if self.language.quotes.contains(first) {
            return match quoted(rest, first, self.language.has_chars) {
                Some(length) => self.take(Hue::Text, length),
                None => self.take(Hue::Plain, first.len_utf8()),
            };
        }
        if first.is_ascii_digit() {
            let is_of_it = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
            return self.take(Hue::Number, rest.find(|c| !is_of_it(c)).unwrap_or(rest.len()));
        }
        if !(first.is_alphabetic() || matches!(first, '_' | '@')) {
            return self.take(Hue::Plain, first.len_utf8());
        }
        let length =
            rest[first.len_utf8()..].find(|c| !is_name(c)).map_or(rest.len(), |n| n + first.len_utf8());
        let (name, before) = (&rest[..length], &self.text[..self.at]);
        let is_word = self.language.words.split(' ').any(|word| word == name);
        let is_tag = self.language.tags && (before.ends_with('<') || before.ends_with("</"));
        let begins = before.trim_start_matches([' ', '\t', '-', '"']).is_empty();
        let is_key = self.language.keys && begins && rest[length..].trim_start().starts_with([':', '=']);
        self.take(if is_word || is_tag || is_key { Hue::Word } else { Hue::Plain }, length);
    }

    /// All up to what ends it, which is looked for behind so many bytes; whether the end is on this line.
    fn until(&mut self, hue: Hue, skipped: usize, end: &str) -> bool {
        let from = self.at + skipped;
        let found = self.text[from..].find(end);
        self.take(hue, found.map_or(self.text.len(), |n| from + n + end.len()) - self.at);
        found.is_some()
    }

    fn take(&mut self, hue: Hue, length: usize) {
        let range = self.at..self.at + length;
        self.at = range.end;
        match self.hues.last_mut() {
            Some((last, before)) if *last == hue => before.end = range.end,
            _ => self.hues.push((hue, range)),
        }
    }
}

/// How long a text in quotes is, to the end of the line where it does not end; none where a single quote begins none.
fn quoted(rest: &str, quote: char, has_chars: bool) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let mut seen = 0;
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some(at + c.len_utf8());
        }
        if c == '\\' {
            chars.next();
        }
        seen += 1;
        // 'a is no text where texts of one sign are written 'a'.
        if has_chars && quote == '\'' && seen > 1 && !rest[1..].starts_with('\\') {
            return None;
        }
    }
    (!has_chars || quote != '\'').then_some(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that are not plain, each with a letter for what it is.
    fn painted(path: &str, lines: &[&str]) -> String {
        let mut painter = Painter::of(path);
        let mut all = Vec::new();
        for line in lines {
            let hues = painter.line(line);
            assert_eq!(
                hues.iter().map(|(_, range)| &line[range.clone()]).collect::<String>(),
                *line,
                "all of it"
            );
            all.extend(
                hues.into_iter()
                    .filter_map(|(hue, range)| Some(format!("{}:{}", &hue.class()?[1..], &line[range]))),
            );
        }
        all.join("|")
    }

    #[test]
    fn languages_have_much_in_common() {
        for (path, lines, wanted) in [
            ("a.rs", vec!["let s: &'a str = \"x\\\"y\"; // z"], "w:let|t:\"x\\\"y\"|c:// z"),
            ("a.rs", vec!["match c { 'x' => 0x1f, '\\n' => 2 }"], "w:match|t:'x'|n:0x1f|t:'\\n'|n:2"),
            ("a.rs", vec!["/* a", "b */ fn"], "c:/* a|c:b */|w:fn"),
            (
                "a.py",
                vec!["def f(x):  # y", "\"\"\"a", "b\"\"\" + 'c'"],
                "w:def|c:# y|t:\"\"\"a|t:b\"\"\"|t:'c'",
            ),
            ("a.sh", vec!["if [ \"$#\" = 1 ]; then # x"], "w:if|t:\"$#\"|n:1|w:then|c:# x"),
            ("a.sql", vec!["SELECT 'it''s' -- x"], "w:SELECT|t:'it''s'|c:-- x"),
            ("a.html", vec!["<a href=\"x\">don't</a> <!-- b", "c -->"], "w:a|t:\"x\"|w:a|c:<!-- b|c:c -->"),
            ("onus.yaml", vec!["run: # x", "  - keep-it: 'y'"], "w:run|c:# x|w:keep-it|t:'y'"),
            ("x/Makefile", vec!["ifeq (a, b) # c"], "w:ifeq|c:# c"),
            ("a.js", vec!["const x = `a", "b` + /* y */ 3"], "w:const|t:`a|t:b`|c:/* y */|n:3"),
            ("a.txt", vec!["let it \"be\" 3"], ""),
        ] {
            assert_eq!(painted(path, &lines), wanted, "{path}");
        }
    }

    #[test]
    fn whatever_it_says_nothing_is_lost_and_it_ends() {
        let signs = [
            "\"", "'", "\\", "/*", "*/", "//", "#", "`", "ä", "<", "<!--", "\u{202e}", "9", "a", " ",
            "\"\"\"", "𝒳",
        ];
        let mut state = 1_usize;
        for path in ["a.rs", "a.py", "a.js", "a.html", "a.sh", "a.sql", "a.yaml", "a.c", "Dockerfile"] {
            let mut painter = Painter::of(path);
            for _ in 0..500 {
                let mut line = String::new();
                for _ in 0..12 {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    line.push_str(signs[(state >> 33) % signs.len()]);
                }
                let whole: String = painter.line(&line).into_iter().map(|(_, range)| &line[range]).collect();
                assert_eq!(whole, line, "{path}");
            }
        }
        let long = "x".repeat(LINE_MAX + 1);
        assert_eq!(Painter::of("a.rs").line(&long), [(Hue::Plain, 0..long.len())]);
    }
}
