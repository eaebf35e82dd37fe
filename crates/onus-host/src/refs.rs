//! Branches and commits: what a takeover, a merge and a hook need of git beyond reading a file (mission B5, B6, D11).
//!
//! Everything here that writes runs with hooks off: whoever calls it has asked the rules already.

mod barrier;
mod diff;
mod forward;
mod history;
mod loose;
mod salvage;
mod shared;
mod transaction;

pub use barrier::barrier;
pub use diff::{Changes, Detail, DiffFile, DiffLine, Hunk, Side};
pub use forward::{FastForward, Forwarded, fast_forward};
pub(crate) use history::paths;
pub use history::{Brought, Commit, History, Sample, Trailers};
pub(crate) use loose::LooseObjects;
pub use loose::changed_paths as changed_by_one;
pub use salvage::{SUBJECT as SALVAGED, Salvaged, salvage, set_aside};
pub use shared::{Move, Pushed, bring, fetch, push, remote_url, tracking_ref};

use crate::env::Env;
use crate::git::Git;
use crate::repository::{Repo, find_with};
use onus_core::id::shown;
use onus_core::refusal::Refusal;
use std::path::{Path, PathBuf};

/// The name of a branch as git keeps it.
pub fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// The branch that a repository gives to whoever clones it, though it may have no commit yet.
pub fn head_branch(repo: &Repo) -> Option<String> {
    Git::on_common(repo, "symbolic-ref").args(&["--quiet", "HEAD"]).line().ok()
}

/// The full names of all references below `prefix`.
pub fn names(repo: &Repo, prefix: &str) -> Result<Vec<String>, Refusal> {
    let listed =
        Git::on_common(repo, "for-each-ref").args(&["--format=%(refname)"]).args(&[prefix]).line()?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// The repositories that this one knows: their names, and where it fetches from.
pub fn remotes(repo: &Repo) -> Result<Vec<(String, String)>, Refusal> {
    let listed = Git::on_common(repo, "remote").args(&["-v"]).line()?;
    let fetched = listed.lines().filter_map(|line| line.split_once('\t'));
    let fetched = fetched.filter_map(|(name, rest)| Some((name, rest.split_once(" (fetch)")?.0)));
    Ok(fetched.map(|(name, url)| (name.to_owned(), url.to_owned())).collect())
}

/// The remote of this name, if the clone's own configuration alone shows that it has that address: git, which could know others
/// from elsewhere, need not be asked.
pub fn is_remote_at(repo: &Repo, remote: &str, fits: impl Fn(&str) -> bool) -> Result<bool, Refusal> {
    let config = repo.config()?;
    let mut addresses = config.fetched_from.iter().filter(|(name, _)| name == remote).map(|(_, url)| url);
    Ok(addresses.next().is_some_and(|url| fits(url)) && addresses.next().is_none())
}

/// The repositories of this machine that this one pushes to, by their git directories.
pub fn local_remotes(repo: &Repo) -> Result<Vec<PathBuf>, Refusal> {
    let listed = Git::on_common(repo, "remote").args(&["-v"]).line()?;
    let urls = listed.lines().filter_map(|line| line.strip_suffix(" (push)")?.split_once('\t'));
    let paths =
        urls.map(|(_, url)| url.strip_prefix("file://").unwrap_or(url)).filter(|url| url.starts_with('/'));
    let mut found: Vec<PathBuf> = paths
        .filter_map(|path| find_with(Path::new(path), &Env::default()).ok()?.repo)
        .map(|remote| remote.common_dir)
        .filter(|dir| *dir != repo.common_dir)
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// Names are written into git's line protocol; one that could break out of its line is refused. Git itself checks the
/// rest.
fn checked_name(refname: &str) -> Result<&str, Refusal> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    if refname.starts_with("refs/") && refname.chars().all(is_plain) {
        Ok(refname)
    } else {
        Err(Refusal::invalid(format!("{} is not the full name of a reference", shown(refname))))
    }
}
