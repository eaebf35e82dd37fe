//! The ledger's anchor: signed checkpoints kept outside the database, so that an older or rewritten store is found
//! out (mission A7).

use crate::directory_anchor;
use crate::env::Env;
use crate::git_anchor;
use crate::repository::{self, Repo};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where the checkpoints of one store are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anchor {
    /// Commits on `refs/onus/ledger`, for the store that lies in the repository's own directory.
    Git { repo: Repo },
    /// Numbered directories, for every other store.
    Directory(PathBuf),
}

impl Anchor {
    /// The anchor of the store at `store`.
    ///
    /// Only the store in the repository's common directory is anchored in the repository: a second store somewhere in
    /// its tree has a ledger of its own.
    pub fn of_store(store: &Path, workspace_uid: &str, env: &Env) -> Result<Anchor, Refusal> {
        if let Some(common_dir) =
            store.parent().filter(|dir| dir.file_name() == Some(OsStr::new("onus"))).and_then(Path::parent)
            && let Ok(common_dir) = common_dir.canonicalize()
            && let Some(repo) = repository::find_with(&common_dir, &Env::default())?.repo
            && repo.common_dir == common_dir
        {
            return Ok(Anchor::Git { repo });
        }
        if !is_name(workspace_uid) {
            return Err(Refusal::invalid(format!(
                "{} is not a workspace id",
                onus_core::id::shown(workspace_uid)
            )));
        }
        Ok(Anchor::Directory(env.anchors()?.join(workspace_uid)))
    }

    /// The id of the newest entry. Fast: every grant asks.
    pub fn tip(&self) -> Result<Option<String>, Refusal> {
        match self {
            Anchor::Git { repo } => git_anchor::tip(repo),
            Anchor::Directory(dir) => directory_anchor::tip(dir),
        }
    }

    /// Adds an entry after `expected` and gives its id. When another process was first: `store_busy`.
    pub fn append(
        &self,
        expected: Option<&str>,
        files: &[(&str, &[u8])],
        message: &str,
    ) -> Result<String, Refusal> {
        if let Some((name, _)) = files.iter().find(|(name, _)| !is_name(name)) {
            return Err(Refusal::new(Code::Internal, format!("`{name}` cannot be a file of the anchor")));
        }
        match self {
            Anchor::Git { repo } => git_anchor::append(repo, expected, files, message),
            Anchor::Directory(dir) => directory_anchor::append(dir, expected, files, message),
        }
    }

    /// One file of an entry; none when there is no such entry, or no such file in it.
    pub fn read(&self, id: &str, file: &str) -> Result<Option<Vec<u8>>, Refusal> {
        if !is_name(file) {
            return Ok(None);
        }
        match self {
            Anchor::Git { repo } => git_anchor::read(repo, id, file),
            Anchor::Directory(dir) => directory_anchor::read(dir, id, file),
        }
    }

    /// The ids of all entries, newest first.
    pub fn history(&self) -> Result<Vec<String>, Refusal> {
        match self {
            Anchor::Git { repo } => git_anchor::history(repo),
            Anchor::Directory(dir) => directory_anchor::history(dir),
        }
    }
}

/// A file name that is no path, no option, not hidden, and the same on every file system.
fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_');
    (1..=64).contains(&name.len())
        && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && name.bytes().all(is_plain)
}

/// Another process appended first. Nothing is lost: its entry covers what ours would have.
pub(crate) fn lost_race(detail: String) -> Refusal {
    Refusal::new(Code::StoreBusy, detail).hint("run the command again")
}

/// The anchor does not hold together; only a person can say what happened to it.
pub(crate) fn broken(detail: String) -> Refusal {
    Refusal::new(Code::LedgerBroken, detail)
        .hint("compare it with a backup or another clone before you trust the store")
}
