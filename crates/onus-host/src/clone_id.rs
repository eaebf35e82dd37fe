//! By which name a clone of a repository is known: one that it drew for itself and keeps in its git directory, so that it is
//! the same clone wherever it is moved.

use crate::clock;
use crate::file::{if_exists, read_capped, refused, temporary_beside};
use crate::repository::Repo;
use onus_core::code::Code;
use onus_core::id::CloneId;
use onus_core::main_of_record::RepositoryClone;
use onus_core::refusal::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_MAX: usize = 4_096;

fn file(common_dir: &Path) -> PathBuf {
    common_dir.join("onus/clone")
}

/// The name that a git directory keeps.
pub fn kept(common_dir: &Path) -> Option<CloneId> {
    let bytes = read_capped(&file(common_dir), FILE_MAX).ok()?;
    std::str::from_utf8(&bytes).ok()?.lines().next()?.trim().parse().ok()
}

/// This clone as the store should know it. One that has no name yet draws one.
pub fn here(repo: &Repo) -> Result<RepositoryClone, Refusal> {
    let id = match kept(&repo.common_dir) {
        Some(id) => id,
        None => renew(repo)?,
    };
    let path = repo.common_dir.to_string_lossy().into_owned();
    Ok(RepositoryClone { id, host: clock::now().tick.host, path })
}

/// Draws a new name: for a clone that has none, and for a copy that has another one's.
pub fn renew(repo: &Repo) -> Result<CloneId, Refusal> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
    let id = CloneId::new(&random);
    let path = file(&repo.common_dir);
    let failed = |error: std::io::Error| refused("write", &path, &error);
    if let Some(above) = path.parent() {
        fs::create_dir_all(above).map_err(failed)?;
    }
    let beside = temporary_beside(&path).map_err(failed)?;
    fs::write(&beside, format!("{id}\n")).map_err(failed)?;
    // Whoever was first has given the name.
    let linked = fs::hard_link(&beside, &path);
    let known = kept(&repo.common_dir);
    if linked.is_err() && known.is_none() {
        fs::rename(&beside, &path).map_err(failed)?;
    }
    if_exists(fs::remove_file(&beside)).map_err(failed)?;
    Ok(kept(&repo.common_dir).unwrap_or(id))
}

/// Gives a copy a name of its own.
pub fn replace(repo: &Repo) -> Result<CloneId, Refusal> {
    let path = file(&repo.common_dir);
    if_exists(fs::remove_file(&path)).map_err(|error| refused("remove", &path, &error))?;
    renew(repo)
}

/// Whether a clone that the store knows is no more: only on its own machine can that be seen.
pub fn is_gone(clone: &RepositoryClone) -> bool {
    clone.host == clock::now().tick.host && kept(Path::new(&clone.path)).as_ref() != Some(&clone.id)
}
