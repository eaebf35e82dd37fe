//! Moving the main branch forward, and only forward (mission D11).

use super::transaction::Transaction;
use super::{History, checked_name};
use crate::file::{printable, shown};
use crate::git::Git;
use crate::ref_file;
use crate::repository::Repo;
use crate::worktree;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    pub old: String,
    pub new: String,
    /// Checkouts of the branch whose files followed.
    pub followed: Vec<PathBuf>,
    /// Checkouts whose files could not follow, because somebody changed them in the meantime; and git's words.
    pub behind: Vec<(PathBuf, String)>,
}

/// Moves `main_ref` to `new`, a descendant of where it is. `confirm` is called while the reference is locked: when it
/// refuses, nothing has moved, and when it agrees, nobody can move the branch in between. After a crash the same call
/// finishes what was begun.
pub fn fast_forward(
    repo: &Repo,
    main_ref: &str,
    new: &str,
    confirm: impl FnOnce() -> Result<(), Refusal>,
) -> Result<Forwarded, Refusal> {
    FastForward::prepare(repo, main_ref, new)?.run(confirm)
}

/// A fast-forward that is known to be one, with everything written that the branch will rely on.
#[derive(Debug)]
pub struct FastForward<'r> {
    repo: &'r Repo,
    main_ref: String,
    old: String,
    new: String,
}

impl<'r> FastForward<'r> {
    /// Moves nothing yet.
    pub fn prepare(repo: &'r Repo, main_ref: &str, new: &str) -> Result<FastForward<'r>, Refusal> {
        let main_ref = checked_name(main_ref)?;
        let history = History::at(&repo.common_dir);
        let old = match ref_file::commit(repo, main_ref)? {
            Some(old) => old,
            None => history.commit(main_ref)?,
        };
        let new = history.id(new)?;
        let goes_forward = old != new && history.reaches(&new, &old)?;
        if !goes_forward && !history.reaches(&old, &new)? {
            let short = main_ref.trim_start_matches("refs/heads/");
            return Err(Refusal::new(
                Code::NotMerged,
                format!("{short} is not an ancestor of {new}: it cannot be fast-forwarded"),
            )
            .hint(format!("rebase the work on {short}, run its checks again, then merge")));
        }
        let new = if goes_forward { new } else { old.clone() };
        if goes_forward {
            keep(repo, &old, &new)?;
        }
        Ok(FastForward { repo, main_ref: main_ref.to_owned(), old, new })
    }

    /// As [`fast_forward`]. Refused where the branch has moved since.
    pub fn run(self, confirm: impl FnOnce() -> Result<(), Refusal>) -> Result<Forwarded, Refusal> {
        let FastForward { repo, main_ref, old, new } = self;
        let locked = Transaction::prepare(&repo.common_dir, &format!("update {main_ref} {new} {old}"))?;
        // Under the lock no checkout can move to another commit of this branch.
        let checkouts = if new == old { Vec::new() } else { checkouts(repo, &main_ref)? };
        for checkout in &checkouts {
            may_follow(checkout, &old, &new)?;
        }
        confirm()?;
        let mut forwarded = Forwarded { new, old, followed: Vec::new(), behind: Vec::new() };
        // Before the reference moves: a commit made there in between fails at the lock, whereas one made after it, from
        // files that have not followed, would take the merge back without a word.
        for checkout in checkouts {
            match follow(&checkout, &forwarded.old, &forwarded.new) {
                Ok(()) => forwarded.followed.push(checkout),
                Err(refusal) => forwarded.behind.push((checkout, refusal.detail)),
            }
        }
        if let Err(refusal) = locked.commit() {
            for checkout in &forwarded.followed {
                let _ = follow(checkout, &forwarded.new, &forwarded.old);
            }
            return Err(refusal);
        }
        Ok(forwarded)
    }
}

/// git writes the objects of a commit without waiting for the disk. Before the main branch relies on them, they are
/// written once more, as one file that git does wait for.
fn keep(repo: &Repo, old: &str, new: &str) -> Result<(), Refusal> {
    let pack = repo.common_dir.join("objects/pack/pack");
    let pack = pack.to_str().ok_or_else(|| Refusal::invalid(format!("{} is not UTF-8", shown(&pack))))?;
    let range = format!("{new}\n^{old}\n");
    Git::on_common(repo, "pack-objects").args(&["--revs", "--quiet", pack]).input(range.as_bytes()).run()?;
    Ok(())
}

fn follow(checkout: &Path, old: &str, new: &str) -> Result<(), Refusal> {
    Git::ours(checkout, "read-tree").args(&["-m", "-u"]).values(&[old, new]).run()?;
    Ok(())
}

fn checkouts(repo: &Repo, main_ref: &str) -> Result<Vec<PathBuf>, Refusal> {
    let list = worktree::list(repo)?.into_iter().filter(|tree| tree.prunable.is_none());
    Ok(list.filter(|tree| tree.branch.as_deref() == Some(main_ref)).map(|tree| tree.path).collect())
}

/// Tries without writing. What somebody edited there and the merge would not touch stays as it is.
fn may_follow(checkout: &Path, old: &str, new: &str) -> Result<(), Refusal> {
    let tried = || Git::ours(checkout, "read-tree").args(&["-m", "-u", "-n"]).values(&[old, new]).run();
    if tried().is_ok() {
        return Ok(());
    }
    // A file that was only touched looks changed until it has been read again. What is really changed is exit 1.
    Git::ours(checkout, "update-index").args(&["-q", "--refresh"]).yes()?;
    tried().map(drop).map_err(|failure| {
        let said = printable(failure.said().lines().next().unwrap_or("git did not say why"));
        Refusal::new(Code::NotMerged, format!("local changes in {} are in the way: {said}", shown(checkout)))
            .hint(format!("commit or stash them: git -C {} status", shown(checkout)))
    })
}
