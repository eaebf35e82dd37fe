//! Moving the main branch forward, and only forward (mission D11).

use super::transaction::Transaction;
use super::{History, checked_name};
use crate::file::{printable, shown};
use crate::git::{Failure, Git};
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
        let history = History::of(repo);
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
        let (locked, checkouts) = self.lock()?;
        for checkout in &checkouts {
            tried(checkout, || follow(checkout, &self.old, &self.new, Files::Try))?;
        }
        confirm()?;
        let FastForward { old, new, .. } = self;
        let mut forwarded = Forwarded { new, old, followed: Vec::new(), behind: Vec::new() };
        // Before the reference moves: a commit made there in between fails at the lock, whereas one made after it, from
        // files that have not followed, would take the merge back without a word.
        for checkout in checkouts {
            match follow(&checkout, &forwarded.old, &forwarded.new, Files::Write) {
                Ok(()) => forwarded.followed.push(checkout),
                Err(failure) => forwarded.behind.push((checkout, Refusal::from(failure).detail)),
            }
        }
        forwarded.end(locked.commit())
    }

    /// The same where nothing is left to agree to: where the files of one checkout cannot follow, nothing moves.
    pub fn run_agreed(self) -> Result<Forwarded, Refusal> {
        let (locked, checkouts) = self.lock()?;
        let FastForward { old, new, .. } = self;
        let mut forwarded = Forwarded { new, old, followed: Vec::new(), behind: Vec::new() };
        for checkout in checkouts {
            let write = || follow(&checkout, &forwarded.old, &forwarded.new, Files::Write);
            if let Err(refusal) = tried(&checkout, write) {
                return forwarded.end(Err(refusal));
            }
            forwarded.followed.push(checkout);
        }
        forwarded.end(locked.commit())
    }

    /// Under the lock no checkout can move to another commit of the branch.
    fn lock(&self) -> Result<(Transaction, Vec<PathBuf>), Refusal> {
        let FastForward { repo, main_ref, old, new } = self;
        let locked = Transaction::prepare(&repo.common_dir, &format!("update {main_ref} {new} {old}"))?;
        let checkouts = if new == old { Vec::new() } else { worktree::checkouts_of(repo, main_ref)? };
        Ok((locked, checkouts))
    }
}

impl Forwarded {
    /// Where the branch did not move, the files go back.
    fn end(self, moved: Result<(), Refusal>) -> Result<Forwarded, Refusal> {
        if moved.is_err() {
            for checkout in &self.followed {
                let _ = follow(checkout, &self.new, &self.old, Files::Write);
            }
        }
        moved.map(|()| self)
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

/// Whether files are written, or only tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    Try,
    Write,
}

/// What somebody edited there and the merge would not touch stays as it is.
fn follow(checkout: &Path, old: &str, new: &str, files: Files) -> Result<(), Failure> {
    let only_try: &[&str] = if files == Files::Try { &["-n"] } else { &[] };
    Git::ours(checkout, "read-tree").args(&["-m", "-u"]).args(only_try).values(&[old, new]).run().map(drop)
}

/// Says in words what stands in the way.
fn tried(checkout: &Path, follow: impl Fn() -> Result<(), Failure>) -> Result<(), Refusal> {
    if follow().is_ok() {
        return Ok(());
    }
    // A file that was only touched looks changed until it has been read again. What is really changed is exit 1.
    Git::ours(checkout, "update-index").args(&["-q", "--refresh"]).yes()?;
    follow().map_err(|failure| {
        let said = printable(failure.said().lines().next().unwrap_or("git did not say why"));
        Refusal::new(Code::NotMerged, format!("local changes in {} are in the way: {said}", shown(checkout)))
            .hint(format!("commit or stash them: git -C {} status", shown(checkout)))
    })
}
