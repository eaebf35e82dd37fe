//! For whom a coding client works in a working tree, where its environment does not say: one line in that tree's private git
//! directory, left by `onus setup --worker`. Only a coding client is believed to be it.

use crate::file::{if_exists, read_capped, refused, temporary_beside};
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

const NAME_MAX: usize = 256;

fn file(git_dir: &Path) -> PathBuf {
    git_dir.join("onus/client-worker")
}

/// Keeps the name, or forgets it.
pub fn keep(git_dir: &Path, worker: Option<&Handle>) -> Result<(), Refusal> {
    let path = file(git_dir);
    let failed = |error: std::io::Error| refused("write", &path, &error);
    let Some(worker) = worker else {
        return if_exists(fs::remove_file(&path)).map(drop).map_err(failed);
    };
    fs::create_dir_all(git_dir.join("onus")).map_err(failed)?;
    let beside = temporary_beside(&path).map_err(failed)?;
    let written = fs::write(&beside, format!("{worker}\n")).and_then(|()| fs::rename(&beside, &path));
    written.map_err(|error| {
        drop(fs::remove_file(&beside));
        failed(error)
    })
}

/// The name that was kept; one that makes no sense is none.
pub fn kept(git_dir: &Path) -> Option<Handle> {
    let text = read_capped(&file(git_dir), NAME_MAX).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_replaced_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(kept(dir.path()), None);
        for name in ["@one", "@two"] {
            keep(dir.path(), Some(&name.parse().unwrap())).unwrap();
            assert_eq!(kept(dir.path()).unwrap().as_str(), name);
        }
        fs::write(file(dir.path()), "no name").unwrap();
        assert_eq!(kept(dir.path()), None);
        keep(dir.path(), None).unwrap();
        keep(dir.path(), None).unwrap();
        assert!(!file(dir.path()).exists());
    }
}
