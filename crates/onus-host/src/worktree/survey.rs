//! What is in a working tree that is nowhere else.

use super::own;
use crate::git::Git;
use crate::refs::{Commit, History, Sample};
use crate::repository::Repo;
use onus_core::refusal::Refusal;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The full name; none when HEAD is detached.
    pub branch: Option<String>,
    /// None before the first commit.
    pub head: Option<String>,
    /// Changed, staged and new paths; a new directory counts as one.
    pub dirty: Sample<String>,
    /// Neither in the main branch nor the same patch as something in it.
    pub unmerged: Sample<Commit>,
    /// On no remote; empty where there is none.
    pub unpushed: Sample<Commit>,
    /// Commits that the main branch has and this one has not.
    pub behind: u64,
}

pub fn survey(repo: &Repo, dir: &Path, main: &str) -> Result<Survey, Refusal> {
    own(repo, dir)?;
    let history = History::at(dir);
    let main = history.commit(main)?;
    let branch = match Git::ours(dir, "symbolic-ref").args(&["--quiet", "HEAD"]).line() {
        Ok(name) => Some(name),
        Err(failure) if failure.is_exit(1) => None,
        Err(failure) => return Err(failure.into()),
    };
    let dirty = dirty(dir)?;
    let Some(head) = history.resolve("HEAD")? else {
        let (unmerged, unpushed) = (Sample::of(Vec::new()), Sample::of(Vec::new()));
        return Ok(Survey { branch, head: None, dirty, unmerged, unpushed, behind: 0 });
    };
    let has_remote = !Git::ours(dir, "remote").line()?.is_empty();
    let unpushed = if has_remote {
        history.log(&["--not", "--remotes", "--not"], std::slice::from_ref(&head))?
    } else {
        Vec::new()
    };
    Ok(Survey {
        unmerged: Sample::of(history.unmerged(&head, &main)?),
        unpushed: Sample::of(unpushed),
        behind: history.count(&main, &[&head])?,
        branch,
        head: Some(head),
        dirty,
    })
}

/// What `git status` shows: a holder's work that no commit has.
pub fn dirty(dir: &Path) -> Result<Sample<String>, Refusal> {
    let args =
        ["--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=none", "--no-renames"];
    let output = Git::ours(dir, "status").args(&args).run()?;
    // Two letters and a space before each path.
    let path = |entry: &[u8]| String::from_utf8_lossy(entry.get(3..).unwrap_or_default()).into_owned();
    let entries = output.split(|b| *b == 0).filter(|entry| !entry.is_empty());
    Ok(Sample::of(entries.map(path).collect()))
}

/// Whether a tree has changes that no commit has.
pub fn is_dirty(dir: &Path) -> Result<bool, Refusal> {
    Ok(!dirty(dir)?.is_empty())
}
