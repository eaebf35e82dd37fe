//! Which of the changes that git announces move a reference at all (mission E1).
//!
//! Git's housekeeping goes through the same transactions as a commit: packing a branch announces that it is made where it is,
//! and then that its file is deleted. Neither moves it.

use super::Update;
use crate::ref_file;
use crate::repository::Repo;
use onus_core::refusal::Refusal;

/// Those of `updates` that move a reference to another commit, or away.
pub fn moving(repo: &Repo, updates: Vec<Update>) -> Result<Vec<Update>, Refusal> {
    let mut moving = Vec::new();
    for update in updates {
        if !stays(repo, &update)? {
            moving.push(update);
        }
    }
    Ok(moving)
}

fn stays(repo: &Repo, update: &Update) -> Result<bool, Refusal> {
    match (&update.old, &update.new) {
        (Some(old), Some(new)) if old == new => Ok(true),
        (_, Some(new)) if update.refname.starts_with("refs/") => {
            Ok(ref_file::commit(repo, &update.refname)?.as_ref() == Some(new))
        }
        (Some(old), None) => is_pruned(repo, &update.refname, old),
        _ => Ok(false),
    }
}

/// Only the file goes; the packed references tell the same. Whoever really deletes a reference holds their lock while the
/// hook runs, because it has to be taken out of them, too.
fn is_pruned(repo: &Repo, refname: &str, old: &str) -> Result<bool, Refusal> {
    if repo.common_dir.join("packed-refs.lock").exists() {
        return Ok(false);
    }
    Ok(ref_file::packed(repo, refname)?.as_deref() == Some(old))
}
