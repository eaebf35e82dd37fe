//! Puts a worktree back on the main branch. The caller has kept what was there before.

use super::own;
use crate::file::{if_exists, refused};
use crate::git::{Failure, Git};
use crate::refs::{Commit, History};
use crate::repository::Repo;
use onus_core::refusal::Refusal;
use std::path::Path;
use std::time::Duration;

/// How often a git that is still running there is waited for.
const PATIENCE: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// What a killed git may have left half done.
const UNFINISHED: &[(&str, &str)] = &[
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
];

/// Puts the working tree at `dir` on `branch`, and the branch on `base`. Changed and new files go; ignored ones stay.
pub fn put_back(repo: &Repo, dir: &Path, branch: &str, base: &str) -> Result<(), Refusal> {
    let own = own(repo, dir)?;
    for (trace, verb) in UNFINISHED {
        if own.git_dir.join(trace).exists() {
            // What it leaves is overwritten below.
            drop(Git::ours(dir, verb).args(&["--quit"]).run());
        }
    }
    let base = History::at(dir).id(base)?;
    let switch = || {
        let args = ["--quiet", "--force", "--no-track", "-B", branch];
        Git::ours(dir, "checkout").args(&args).unmarked_values(&[&base]).run().map(drop)
    };
    let mut tried = switch();
    for _ in 0..PATIENCE {
        if !tried.as_ref().is_err_and(is_locked) {
            break;
        }
        std::thread::sleep(PAUSE);
        tried = switch();
    }
    if tried.as_ref().is_err_and(is_locked) && !runs_git(dir) {
        // Nobody but who asks for this may write here: the locks are a killed git's.
        let branch = own.common_dir.join(format!("refs/heads/{branch}.lock"));
        for lock in [own.git_dir.join("index.lock"), own.git_dir.join("HEAD.lock"), branch] {
            if_exists(std::fs::remove_file(&lock)).map_err(|error| refused("remove", &lock, &error))?;
        }
        tried = switch();
    }
    tried?;
    // A repository inside the tree is somebody's on purpose: without a second force git leaves it.
    Git::ours(dir, "clean").args(&["-d", "--force", "--quiet"]).run()?;
    Ok(())
}

fn is_locked(failure: &Failure) -> bool {
    failure.said().contains(".lock")
}

/// Whether a git lives that stands in this directory: what it holds is no killed one's.
fn runs_git(dir: &Path) -> bool {
    let dir = &dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut gits = processes.filter(|process| {
        std::fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("git"))
    });
    gits.any(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir)))
}

/// What became of commits that were to be made again here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Picked {
    All,
    /// Nothing has changed: this one does not fit.
    Conflict(String),
}

/// Makes `commits` again on top of the working tree's branch, the first one first; authors and messages stay. `uncommitted`
/// is a commit whose change is laid out in the files without being committed.
pub fn pick(
    repo: &Repo,
    dir: &Path,
    commits: &[Commit],
    uncommitted: Option<&str>,
) -> Result<Picked, Refusal> {
    own(repo, dir)?;
    let start = History::at(dir).commit("HEAD")?;
    let all =
        commits.iter().map(|commit| (commit.id.as_str(), &["--allow-empty", "--keep-redundant-commits"][..]));
    let last = uncommitted.map(|id| (id, &["--no-commit", "--mainline", "1"][..]));
    for (id, args) in all.chain(last) {
        let is_merge = History::at(dir).parents(id)? > 1;
        let args: &[&str] = if args.contains(&"--mainline") && !is_merge { &args[..1] } else { args };
        if Git::ours(dir, "cherry-pick").args(args).values(&[id]).run().is_err() {
            drop(Git::ours(dir, "cherry-pick").args(&["--quit"]).run());
            Git::ours(dir, "reset").args(&["--quiet", "--hard"]).unmarked_values(&[&start]).run()?;
            return Ok(Picked::Conflict(id.to_owned()));
        }
    }
    if uncommitted.is_some() {
        Git::ours(dir, "reset").args(&["--quiet"]).run()?;
    }
    Ok(Picked::All)
}
