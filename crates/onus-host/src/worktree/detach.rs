//! Putting a working tree on a commit of the past, and back.

use super::survey::dirty;
use super::{own, refuse_dirty, refuse_rebasing};
use crate::file::shown;
use crate::git::Git;
use crate::refs::History;
use crate::repository::Repo;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::path::Path;

/// Where a working tree stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stood {
    /// On the commit that was asked for: nothing was done.
    There,
    OnBranch(String),
    Detached(String),
}

/// Puts the working tree at `dir` on `commit`, on no branch. Refused where something would be lost: changes that no
/// commit has, commits that no reference has.
pub fn detach(repo: &Repo, dir: &Path, commit: &str) -> Result<Stood, Refusal> {
    refuse_rebasing(&own(repo, dir)?, dir)?;
    refuse_dirty(dir, &dirty(dir)?, "moved to another commit")?;
    let history = History::at(dir);
    let (commit, head) = (history.commit(commit)?, history.commit("HEAD")?);
    if commit == head {
        return Ok(Stood::There);
    }
    let stood = match Git::ours(dir, "symbolic-ref").args(&["--quiet", "--short", "HEAD"]).line() {
        Ok(branch) => Stood::OnBranch(branch),
        Err(failure) if failure.is_exit(1) => Stood::Detached(head),
        Err(failure) => return Err(failure.into()),
    };
    if let Stood::Detached(head) = &stood {
        let kept = ["--not", "--branches", "--tags", "--remotes", "--glob=refs/onus/*"];
        let lost = Git::ours(dir, "rev-list").args(&["--count", head]).args(&kept).line()?;
        if lost != "0" {
            return Err(Refusal::new(
                Code::WorkstationNotReady,
                format!("{} has {lost} commits that are on no branch", shown(dir)),
            )
            .hint(format!("git -C {} branch NAME keeps them", shown(dir))));
        }
    }
    Git::ours(dir, "switch").args(&["--quiet", "--detach"]).args(&[&commit]).run()?;
    Ok(stood)
}

/// Undoes [`detach`].
pub fn reattach(dir: &Path, stood: &Stood) -> Result<(), Refusal> {
    match stood {
        Stood::There => {}
        Stood::OnBranch(branch) => {
            Git::ours(dir, "switch").args(&["--quiet", "--no-guess"]).unmarked_values(&[branch]).run()?;
        }
        Stood::Detached(head) => {
            Git::ours(dir, "switch").args(&["--quiet", "--detach", head]).run()?;
        }
    }
    Ok(())
}
