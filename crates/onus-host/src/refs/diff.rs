//! What one commit has that another has not, file by file and line by line. Names and lines are whatever somebody committed:
//! they come out as text that drives no terminal, and bounded.

use super::History;
use crate::git::Git;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_core::text::{is_unprintable, shortened};
use std::collections::BTreeSet;
use std::path::Path;

/// A file with more changed lines than this is folded, unless it alone is asked for.
const FILE_LINES: i64 = 1_500;
/// So many changed lines of all files are told; the files after that are folded.
const ALL_LINES: i64 = 20_000;
/// And of a file that is asked for alone.
const ONE_FILE_LINES: i64 = 20_000;
/// So many files are listed.
const FILES: usize = 2_000;
/// So much of a line.
const LINE_BYTES: usize = 1_000;

/// Files beyond a megabyte count as binary: nobody reads their lines.
const SETTINGS: &[&str] =
    &["core.bigFileThreshold=1m", "diff.suppressBlankEmpty=false", "core.quotePath=true"];

/// The tree without files, in both of git's ways to name objects.
const NOTHING: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const NOTHING_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffFile {
    pub path: String,
    /// Where it was before, if it has moved.
    pub old_path: Option<String>,
    /// None: it is binary.
    pub lines: Option<(i64, i64)>,
    /// Why there is nothing of it: too much has changed.
    pub folded: bool,
    pub hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// What git found around it, such as the name of a function.
    pub heading: String,
    pub lines: Vec<DiffLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub side: Side,
    pub old: Option<i64>,
    pub new: Option<i64>,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Both,
    Old,
    New,
}

/// How much of it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail<'a> {
    /// Names and numbers.
    Files,
    Lines,
    /// The lines of one file.
    File(&'a str),
}

/// The files, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub files: Vec<DiffFile>,
    pub left_out: usize,
}

/// A file as git names it, before its name is made harmless.
struct ListedFile {
    paths: Vec<Vec<u8>>,
    file: DiffFile,
}

impl History<'_> {
    /// Where a branch left another one.
    pub fn fork_point(&self, one: &str, other: &str) -> Result<Option<String>, Refusal> {
        match self.git("merge-base").values(&[one, other]).line() {
            Ok(base) => Ok(Some(base)),
            Err(failure) if failure.is_exit(1) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The commit before one; none before the first.
    pub fn parent(&self, commit: &str) -> Result<Option<String>, Refusal> {
        self.resolve(&format!("{commit}^"))
    }

    /// The paths that differ between two commits, as they are told.
    pub fn differing(&self, base: &str, head: &str) -> Result<BTreeSet<String>, Refusal> {
        let bytes = self.diff(&["--name-only", "-z", "--no-renames"], base, head, &[])?;
        Ok(bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(told).collect())
    }

    /// How many lines a file of a commit has, by its name as it is told; a binary one has none. None: there is no such file.
    pub fn lines_at(&self, commit: &str, path: &str) -> Result<Option<i64>, Refusal> {
        let nothing = if commit.len() == 64 { NOTHING_SHA256 } else { NOTHING };
        let is_disguised = path.contains(is_disguise) || path.contains("<U+");
        let mut name = path.as_bytes().to_vec();
        if is_disguised {
            let all = self.git("ls-tree").args(&["-r", "-z", "--name-only"]).values(&[commit]).run()?;
            let found = all.split(|byte| *byte == 0).find(|name| told(name) == path);
            name = found.map_or(name, <[u8]>::to_vec);
        }
        let bytes = self.diff(&["--numstat", "-z", "--no-renames"], nothing, commit, &[&name])?;
        let found = listed(&bytes)?.into_iter().find(|one| one.paths.contains(&name));
        Ok(found.map(|one| one.file.lines.map_or(0, |(added, _)| added)))
    }

    pub fn changes(&self, base: &str, head: &str, detail: Detail<'_>) -> Result<Changes, Refusal> {
        let bytes = self.diff(&["--numstat", "-z", "--find-renames"], base, head, &[])?;
        let mut listed = listed(&bytes)?;
        if let Detail::File(path) = detail {
            listed.retain(|one| one.file.path == path);
        }
        let left_out = listed.len().saturating_sub(FILES);
        listed.truncate(FILES);
        if detail != Detail::Files {
            self.read_lines(base, head, detail, &mut listed)?;
        }
        Ok(Changes { files: listed.into_iter().map(|one| one.file).collect(), left_out })
    }

    fn read_lines(
        &self,
        base: &str,
        head: &str,
        detail: Detail<'_>,
        listed: &mut [ListedFile],
    ) -> Result<(), Refusal> {
        let of_one = if matches!(detail, Detail::File(_)) { ONE_FILE_LINES } else { FILE_LINES };
        let mut left = ALL_LINES;
        let mut wanted: Vec<&mut ListedFile> = Vec::new();
        for one in listed.iter_mut() {
            let Some((added, deleted)) = one.file.lines else { continue };
            let lines = added.saturating_add(deleted);
            if lines > of_one || lines > left {
                one.file.folded = true;
            } else {
                left -= lines;
                wanted.push(one);
            }
        }
        // Few enough names at a time for one command line.
        for some in wanted.chunks_mut(100) {
            let paths: Vec<&Vec<u8>> = some.iter().flat_map(|one| &one.paths).collect();
            let text = self.diff(&["--patch", "--unified=3", "--find-renames"], base, head, &paths)?;
            let patches = sections(&text);
            if patches.len() != some.len() {
                return Err(Refusal::new(Code::Internal, "git told of other files than it had listed"));
            }
            for (one, patch) in some.iter_mut().zip(patches) {
                one.file.hunks = hunks(&patch);
            }
        }
        Ok(())
    }

    fn diff(&self, options: &[&str], base: &str, head: &str, paths: &[&Vec<u8>]) -> Result<Vec<u8>, Refusal> {
        use std::os::unix::ffi::OsStrExt;
        let usual =
            ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--submodule=short"];
        let git = Git::ours_with(self.dir, SETTINGS, "diff").seeing(self.incoming);
        let git = git.args(&usual).args(options).values(&[base, head]);
        let paths: Vec<&Path> =
            paths.iter().map(|path| Path::new(std::ffi::OsStr::from_bytes(path))).collect();
        Ok(git.paths(&paths).run()?)
    }
}

/// `added TAB deleted TAB path NUL`, or with an empty path the old and the new one, each with its NUL.
fn listed(bytes: &[u8]) -> Result<Vec<ListedFile>, Refusal> {
    let wrong = || Refusal::new(Code::Internal, "git listed its changes in another form");
    let mut fields = bytes.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let Some(field) = fields.next().filter(|field| !field.is_empty()) {
        let mut parts = field.splitn(3, |byte| *byte == b'\t');
        let (added, deleted) = (parts.next().ok_or_else(wrong)?, parts.next().ok_or_else(wrong)?);
        let path = parts.next().ok_or_else(wrong)?;
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        let (old, new) = match path {
            b"" => {
                let old = fields.next().ok_or_else(wrong)?;
                (Some(old), fields.next().ok_or_else(wrong)?)
            }
            path => (None, path),
        };
        found.push(ListedFile {
            paths: old.into_iter().chain([new]).map(<[u8]>::to_vec).collect(),
            file: DiffFile {
                path: told(new),
                old_path: old.map(told),
                lines: number(added).zip(number(deleted)),
                folded: false,
                hunks: Vec::new(),
            },
        });
    }
    Ok(found)
}

/// The patch of each file. A line of a file begins with a sign, so that none can look like a beginning.
fn sections(text: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut found: Vec<Vec<&[u8]>> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            found.push(Vec::new());
        } else if let Some(last) = found.last_mut() {
            last.push(line);
        }
    }
    found
}

fn hunks(lines: &[&[u8]]) -> Vec<Hunk> {
    let mut found: Vec<Hunk> = Vec::new();
    let (mut old, mut new) = (0, 0);
    for line in lines {
        if let Some((from, to, heading)) = line.strip_prefix(b"@@ -").and_then(begins) {
            (old, new) = (from, to);
            found.push(Hunk { heading, lines: Vec::new() });
            continue;
        }
        let (Some(hunk), Some((sign, rest))) = (found.last_mut(), line.split_first()) else { continue };
        let text = told(rest);
        let (old_number, new_number) = (Some(old), Some(new));
        let line = match sign {
            b' ' => DiffLine { side: Side::Both, old: old_number, new: new_number, text },
            b'-' => DiffLine { side: Side::Old, old: old_number, new: None, text },
            b'+' => DiffLine { side: Side::New, old: None, new: new_number, text },
            // That the last line has no end.
            _ => continue,
        };
        old += i64::from(line.old.is_some());
        new += i64::from(line.new.is_some());
        hunk.lines.push(line);
    }
    found
}

/// `12,3 +14,5 @@ heading`.
fn begins(rest: &[u8]) -> Option<(i64, i64, String)> {
    let text = String::from_utf8_lossy(rest);
    let (old, rest) = text.split_once(" +")?;
    let (new, heading) = rest.split_once(" @@")?;
    let first = |range: &str| range.split(',').next().and_then(|number| number.parse().ok());
    Some((first(old)?, first(new)?, told(heading.trim_start().as_bytes())))
}

/// What [`told`] puts in the place of another character.
fn is_disguise(c: char) -> bool {
    matches!(c, '\u{2400}'..='\u{2421}' | '\u{fffd}')
}

/// Text as it is shown: control characters by their pictures, what hides by its number.
fn told(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    for c in text.trim_end_matches('\r').chars() {
        match c {
            '\t' => shown.push(c),
            '\u{0}'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + c as u32)),
            '\u{7f}' => shown.push('\u{2421}'),
            c if is_unprintable(c) => shown.push_str(&format!("<U+{:04X}>", c as u32)),
            c => shown.push(c),
        }
    }
    shortened(&shown, LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_becomes_numbered_lines() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@ fn a()\n same\n-old\n+new\n+diff --git a/y b/y\n\\ No newline at end of file\n";
        let patches = sections(patch.as_bytes());
        assert_eq!(patches.len(), 1, "a line of a file is no beginning");
        let hunks = hunks(&patches[0]);
        assert_eq!(hunks[0].heading, "fn a()");
        let lines: Vec<_> =
            hunks[0].lines.iter().map(|line| (line.side, line.old, line.new, line.text.as_str())).collect();
        assert_eq!(
            lines,
            [
                (Side::Both, Some(3), Some(3), "same"),
                (Side::Old, Some(4), None, "old"),
                (Side::New, None, Some(4), "new"),
                (Side::New, None, Some(5), "diff --git a/y b/y"),
            ]
        );
    }

    #[test]
    fn hostile_names_and_lines_are_shown_and_drive_nothing() {
        assert_eq!(told(b"a\x1b[31mred\x07"), "a\u{241b}[31mred\u{2407}");
        assert_eq!(told("a\u{202e}b".as_bytes()), "a<U+202E>b");
        assert_eq!(told(b"\xff\tx\r"), "\u{fffd}\tx");
        assert!(told("x".repeat(5_000).as_bytes()).len() <= LINE_BYTES);
    }
}
