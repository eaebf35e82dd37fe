//! The few lines of a repository's `config` that say where its working tree is, which store it belongs to, and whose it is.
//!
//! Read here and not by git, because every command needs them before it does anything and a process costs more than
//! the command itself.

use std::path::PathBuf;
use std::{ffi::OsString, os::unix::ffi::OsStringExt};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GitConfig {
    pub(crate) bare: bool,
    pub(crate) worktree: Option<PathBuf>,
    /// `core.hooksPath`
    pub(crate) hooks_path: Option<PathBuf>,
    /// The main working tree has a `config.worktree` of its own that overrides this file.
    pub(crate) worktree_config: bool,
    /// Where its remotes are.
    pub(crate) remotes: Vec<String>,
    /// The remotes that can be fetched from, by name.
    pub(crate) fetched_from: Vec<(String, String)>,
    /// `onus.store`: the address of the store that the clone belongs to.
    pub(crate) store: Option<String>,
    /// `onus.tokenFile`: where the token for that store is kept.
    pub(crate) token_file: Option<PathBuf>,
    /// `onus.person`: whose clone it is.
    pub(crate) person: Option<String>,
}

impl GitConfig {
    /// Reads on top of what is there: a later file, like a later line, wins.
    pub(crate) fn read(&mut self, text: &[u8]) {
        let (mut section, mut subsection) = (Vec::new(), None);
        for line in text.split(|byte| *byte == b'\n') {
            let mut line = line.trim_ascii();
            if let Some(rest) = line.strip_prefix(b"[") {
                let end = rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len());
                section = rest[..end].trim_ascii().to_ascii_lowercase();
                subsection = quoted(&rest[..end]);
                line = rest.get(end + 1..).unwrap_or_default().trim_ascii();
            }
            let equals = line.iter().position(|byte| *byte == b'=');
            let key = line[..equals.unwrap_or(line.len())].trim_ascii().to_ascii_lowercase();
            let value = equals.map(|at| unquoted(&line[at + 1..]));
            match (section.as_slice(), key.as_slice()) {
                (b"core", b"bare") => self.bare = is_true(value.as_deref()),
                (b"core", b"worktree") => self.worktree = value.map(|v| PathBuf::from(OsString::from_vec(v))),
                (b"core", b"hookspath") => {
                    self.hooks_path = value.map(|v| PathBuf::from(OsString::from_vec(v)));
                }
                (section, b"url" | b"pushurl") if section.starts_with(b"remote ") => {
                    let address = value.map(|v| String::from_utf8_lossy(&v).into_owned());
                    if key == b"url" {
                        self.fetched_from.extend(subsection.clone().zip(address.clone()));
                    }
                    self.remotes.extend(address);
                }
                (b"onus", b"store") => {
                    self.store = value.map(|v| String::from_utf8_lossy(&v).into_owned());
                }
                (b"onus", b"tokenfile") => {
                    self.token_file = value.map(|v| PathBuf::from(OsString::from_vec(v)));
                }
                (b"onus", b"person") => {
                    self.person = value.map(|v| String::from_utf8_lossy(&v).into_owned());
                }
                (b"extensions", b"worktreeconfig") => self.worktree_config = is_true(value.as_deref()),
                _ => {}
            }
        }
    }
}

/// The name in quotes behind a section's: it alone keeps its case. None where it is written with escapes.
fn quoted(header: &[u8]) -> Option<String> {
    let name = header.split(|byte| *byte == b'"').nth(1)?;
    if name.contains(&b'\\') { None } else { String::from_utf8(name.to_vec()).ok() }
}

/// A key without `=` is true, as git has it.
fn is_true(value: Option<&[u8]>) -> bool {
    value.is_none_or(|value| matches!(value.to_ascii_lowercase().as_slice(), b"true" | b"yes" | b"on" | b"1"))
}

/// The value as git reads it: quotes and escapes resolved, a comment cut off.
fn unquoted(raw: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    let mut kept = 0;
    let mut quoted = false;
    let mut bytes = raw.trim_ascii().iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' => value.extend(bytes.next().map(|escaped| match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                other => *other,
            })),
            b'#' | b';' if !quoted => break,
            other => value.push(*other),
        }
        if quoted || !byte.is_ascii_whitespace() {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bare: bool, worktree: Option<&str>) {
        let mut config = GitConfig::default();
        config.read(text.as_bytes());
        assert_eq!((config.bare, config.worktree), (bare, worktree.map(PathBuf::from)), "{text}");
    }

    #[test]
    fn reads_what_git_writes_and_people_type() {
        check("", false, None);
        check("[core]\n\tbare = true\n", true, None);
        check("[core]\n\tbare = false\n\tworktree = ../../../sub\n", false, Some("../../../sub"));
        check("[CORE] Bare=YES # said so\n", true, None);
        check("[core]\nbare\n", true, None);
        check("[core]\nbare = true\n[core]\nbare = off\n", false, None);
        check("[remote \"core\"]\nbare = true\n", false, None);
        check("# [core]\n; bare = true\nbare = true\n", false, None);
        check("[core]\nworktree = \"/a # b\" ; c\n", false, Some("/a # b"));
        check("[core]\nworktree = \"/a\\\\b\\\"c\"\n", false, Some("/a\\b\"c"));
        check("[core", false, None);
    }

    #[test]
    fn remotes_keep_their_names() {
        let mut config = GitConfig::default();
        config.read(
            b"[remote \"Origin\"]\n\turl = /a.git\n\tpushurl = /b.git\n\tfetch = +x:y\n[Remote \"o\\\"x\"]\nURL=/c.git\n[remote \"up\"] url = \"/d e.git\"\n",
        );
        let found: Vec<(&str, &str)> =
            config.fetched_from.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
        assert_eq!(found, [("Origin", "/a.git"), ("up", "/d e.git")]);
        assert_eq!(config.remotes, ["/a.git", "/b.git", "/c.git", "/d e.git"]);
    }
}
