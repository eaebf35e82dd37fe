//! Bringing a working tree up to date with the main branch: by rebase, or not at all.

use super::survey::dirty;
use super::{is_rebasing, own, refuse_dirty, refuse_rebasing};
use crate::git::Git;
use crate::ref_file;
use crate::refs::{Commit, History, Sample};
use crate::repository::Repo;
use onus_core::refusal::Refusal;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Synced {
    /// It had everything already.
    Current { head: String },
    /// Its commits stand on top of the main branch.
    Rebased { old: String, new: String },
    /// Nothing has changed: somebody must decide about these paths.
    Conflicts(Vec<Conflict>),
}

/// A path that both sides changed, and who changed it on the main branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: String,
    pub commits: Vec<Commit>,
}

/// Nothing of the user's taste may move other branches, open an editor or stash.
const PLAIN: &[&str] = &["--no-autostash", "--no-autosquash", "--no-update-refs", "--no-rebase-merges"];

/// The commit that a working tree is on.
fn stands_on(dir: &Path, history: &History<'_>) -> Result<String, Refusal> {
    match ref_file::head_of(dir).commit {
        Some(commit) => Ok(commit),
        None => history.commit("HEAD"),
    }
}

pub fn sync(repo: &Repo, dir: &Path, main: &str) -> Result<Synced, Refusal> {
    sync_seen(repo, dir, main, &dirty(dir)?, None)
}

/// The same by whoever has just seen what nobody committed there, and perhaps whether a commit has all of `main`.
pub fn sync_seen(
    repo: &Repo,
    dir: &Path,
    main: &str,
    dirty: &Sample<String>,
    known: Option<(&str, bool)>,
) -> Result<Synced, Refusal> {
    let own = own(repo, dir)?;
    refuse_rebasing(&own, dir)?;
    refuse_dirty(dir, dirty, "rebased")?;
    let history = History::at(dir);
    let (main, old) = (history.id(main)?, stands_on(dir, &history)?);
    let is_current = match known.filter(|(commit, _)| *commit == old) {
        Some((_, is_on_top)) => is_on_top,
        None => History::of(repo).reaches(&old, &main)?,
    };
    if is_current {
        return Ok(Synced::Current { head: old });
    }
    // The old commits stay where they are, so nothing is lost with the new ones: git's own care is enough.
    let rebase = Git::ours_with(dir, &["core.fsync=default"], "rebase")
        .args(&["--quiet"])
        .args(PLAIN)
        .env("GIT_EDITOR", "true");
    let Err(failure) = rebase.values(&[&main]).run() else {
        return Ok(Synced::Rebased { new: stands_on(dir, &history)?, old });
    };
    let unmerged = Git::ours(dir, "diff").args(&["--name-only", "--diff-filter=U", "-z"]).run()?;
    if is_rebasing(&own) {
        Git::ours(dir, "rebase").args(&["--abort"]).run()?;
    }
    let base = Git::ours(dir, "merge-base").values(&[&main, &old]).line();
    let not: Vec<&str> = base.as_deref().into_iter().collect();
    let conflict = |path: String| {
        let commits = history.touching(&main, &not, Path::new(&path))?;
        Ok(Conflict { path, commits })
    };
    let paths = crate::refs::paths(&unmerged);
    if paths.is_empty() {
        return Err(failure.into());
    }
    paths.into_iter().map(conflict).collect::<Result<_, Refusal>>().map(Synced::Conflicts)
}
