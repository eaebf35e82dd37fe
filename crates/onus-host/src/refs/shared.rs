//! The branch that a team shares: fetching it, and pushing to it, only ever forward (mission D11).

use super::checked_name;
use crate::file::printable;
use crate::git::{Failure, Git};
use crate::ref_file;
use crate::repository::Repo;
use onus_core::code::Code;
use onus_core::id::shown;
use onus_core::refusal::Refusal;
use std::time::Duration;

/// How git may reach another repository. Nothing that runs a command of somebody's choice.
const PROTOCOLS: &str = "file:git:http:https:ssh";
/// Two fetches of one clone wait for each other at the reference that they both write.
const PATIENCE: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    Done,
    /// Somebody else was quicker: fetch and try again.
    Behind,
    /// Another git holds the lock of the branch there, or was killed with it; which one.
    Locked(String),
    /// The other side said no; its words.
    Refused(String),
}

/// How a branch may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Only to a descendant.
    Forward,
    /// Anywhere: a workstation's own branch after a rebase.
    Anywhere,
}

/// Where a clone keeps what it last saw of a shared branch.
pub fn tracking_ref(remote: &str, branch: &str) -> String {
    format!("refs/remotes/{remote}/{branch}")
}

/// The address of a remote, as the clone has it; none where there is no such remote.
pub fn remote_url(repo: &Repo, remote: &str) -> Result<Option<String>, Refusal> {
    match Git::on_common(repo, "remote").args(&["get-url"]).values(&[remote]).line() {
        Ok(url) => Ok(Some(url)),
        Err(Failure::Failed { .. }) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// Brings what the shared branch has. None where it has no such branch yet.
pub fn fetch(repo: &Repo, remote: &str, branch: &str) -> Result<Option<String>, Refusal> {
    let tracking = tracking_ref(remote, branch);
    checked_name(&tracking)?;
    let refspec = format!("+refs/heads/{branch}:{tracking}");
    for attempt in 1.. {
        let fetched = Git::on_common(repo, "fetch")
            .args(&[
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-auto-gc",
                "--no-recurse-submodules",
            ])
            .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
            .values(&[remote, &refspec])
            .run();
        match fetched {
            Ok(_) => return ref_file::commit(repo, &tracking),
            Err(failure) if failure.said().contains("couldn't find remote ref") => return Ok(None),
            Err(failure) if (is_contended(&failure) || is_silent(&failure)) && attempt < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Err(failure) => return Err(unreachable(remote, failure)),
        }
    }
    Ok(None)
}

/// Brings a reference of another repository (a remote, or a directory) here under a name of its own; false where there is none.
pub fn bring(repo: &Repo, from: &str, reference: &str, refname: &str) -> Result<bool, Refusal> {
    let refspec = format!("{}:{}", checked_name(reference)?, checked_name(refname)?);
    let args = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules"];
    let fetch = Git::on_common(repo, "fetch").args(&args).env("GIT_ALLOW_PROTOCOL", PROTOCOLS);
    match fetch.values(&[from, &refspec]).run() {
        Ok(_) => Ok(true),
        Err(Failure::Failed { .. }) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}

/// Puts `commit` on the shared branch if that is an ancestor of it. `options` are shown to a repository that Onus guards; they
/// travel in the environment, where other users of the machine do not see them.
pub fn push(
    repo: &Repo,
    remote: &str,
    branch: &str,
    commit: &str,
    options: &[String],
    how: Move,
) -> Result<Pushed, Refusal> {
    let plus = if how == Move::Anywhere { "+" } else { "" };
    let refspec = format!("{plus}{commit}:refs/heads/{branch}");
    let mut push = Git::on_common(repo, "push")
        .args(&["--quiet", "--no-follow-tags", "--no-recurse-submodules"])
        .env("GIT_ALLOW_PROTOCOL", PROTOCOLS);
    // The empty one takes back what the clone shows by itself: its owner's token is not the holder's.
    for (n, option) in std::iter::once("").chain(options.iter().map(String::as_str)).enumerate() {
        push = push
            .env("GIT_CONFIG_COUNT", (n + 1).to_string())
            .env(&format!("GIT_CONFIG_KEY_{n}"), "push.pushOption")
            .env(&format!("GIT_CONFIG_VALUE_{n}"), option);
    }
    match push.values(&[remote, &refspec]).run() {
        Ok(_) => Ok(Pushed::Done),
        Err(failure) if let Some(words) = locked(&failure) => Ok(Pushed::Locked(words)),
        // Whether a push without a word has arrived is seen by the next fetch.
        Err(failure) if is_behind(&failure) || is_contended(&failure) || is_silent(&failure) => {
            Ok(Pushed::Behind)
        }
        Err(failure) if failure.said().contains("does not support push options") && !options.is_empty() => {
            self::push(repo, remote, branch, commit, &[], how)
        }
        Err(failure) if is_refused(&failure) => Ok(Pushed::Refused(words(&failure))),
        Err(failure) => Err(unreachable(remote, failure)),
    }
}

fn is_behind(failure: &Failure) -> bool {
    ["(non-fast-forward)", "(fetch first)", "(stale info)"].iter().any(|word| failure.said().contains(word))
}

fn is_contended(failure: &Failure) -> bool {
    ["cannot lock ref", "failed to update ref", "incorrect old value", "unable to update local ref"]
        .iter()
        .any(|word| failure.said().contains(word))
}

fn locked(failure: &Failure) -> Option<String> {
    let line =
        failure.said().lines().find(|line| line.contains("Unable to create") && line.contains(".lock'"))?;
    let line = line.trim_start_matches("remote: ").trim_start_matches("error: ");
    Some(printable(line.trim()))
}

/// Git was ended from outside, or by a pipe that nobody read: that tells nothing of the other repository.
fn is_silent(failure: &Failure) -> bool {
    matches!(failure, Failure::Failed { stderr, .. } if stderr.trim().is_empty())
}

fn is_refused(failure: &Failure) -> bool {
    failure.said().contains("[remote rejected]") || failure.said().contains("remote: ")
}

/// What the other side said, without git's words around it.
fn words(failure: &Failure) -> String {
    let remote: Vec<String> = failure
        .said()
        .lines()
        .filter_map(|line| line.strip_prefix("remote: "))
        .map(|line| printable(line.trim()))
        .filter(|line| !line.is_empty())
        .take(6)
        .collect();
    if remote.is_empty() {
        printable(failure.said().lines().next().unwrap_or("it said nothing"))
    } else {
        remote.join("; ")
    }
}

fn unreachable(remote: &str, failure: Failure) -> Refusal {
    let Failure::Failed { stderr, .. } = failure else { return failure.into() };
    let first = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("git ended without a word");
    let detail = format!("{} could not be reached: {}", shown(remote), printable(first));
    Refusal::new(Code::NotMerged, detail).hint(format!("git fetch {remote} tells more; then run it again"))
}
