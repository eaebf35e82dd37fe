//! A reviewer's words about one line of a file: `PATH:LINE`.

use crate::text::{GLOB_MAX, Text, line};
use serde::{Deserialize, Serialize};

/// The most comments of one review.
pub const COMMENTS_MAX: usize = 200;

/// The last line that a comment may be about.
const LINE_MAX: i64 = 100_000_000;

/// What somebody says about a line, in the commit's version of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineComment {
    pub path: String,
    pub line: i64,
    pub text: Text,
}

impl LineComment {
    /// Where it is, as people write it: `src/lib.rs:12`. The last colon counts: a path may have others.
    pub fn place(text: &str) -> Result<(String, i64), String> {
        let parts = text.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?)));
        let (path, line) = parts
            .ok_or_else(|| format!("{} is not PATH:LINE, such as src/lib.rs:12", crate::id::shown(text)))?;
        Ok((path.to_owned(), line))
    }

    /// The path as it is kept, or why it is none of a file in the repository.
    pub fn checked(&self) -> Result<(), String> {
        let path = line("the path", &self.path, GLOB_MAX)?;
        if path != self.path
            || path.starts_with('/')
            || path.split('/').any(|part| matches!(part, "" | "." | ".."))
        {
            return Err(format!("{} is no path of a file in the repository", crate::id::shown(&self.path)));
        }
        if !(1..=LINE_MAX).contains(&self.line) {
            return Err(format!("{}: {} is no line's number", crate::id::shown(&self.path), self.line));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_path_and_a_number() {
        assert_eq!(LineComment::place("src/a.rs:12"), Ok(("src/a.rs".to_owned(), 12)));
        assert_eq!(LineComment::place("a:b:3"), Ok(("a:b".to_owned(), 3)));
        for bad in ["src/a.rs", "src/a.rs:", "12", "a:x"] {
            assert!(LineComment::place(bad).is_err(), "{bad}");
        }
        let comment = |path: &str, line| LineComment { path: path.into(), line, text: Text::new("x".into()) };
        assert!(comment("src/a.rs", 1).checked().is_ok());
        for (path, line) in
            [("/a", 1), ("a/../b", 1), ("", 1), ("a//b", 1), ("a", 0), ("a", -1), ("a\u{1b}[0m", 1)]
        {
            assert!(comment(path, line).checked().is_err(), "{path} {line}");
        }
    }
}
