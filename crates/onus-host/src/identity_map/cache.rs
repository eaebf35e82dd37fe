//! What commits say about the map, kept beside the store: a commit never changes its mind.
//!
//! One private file for each commit and one for each text, `<git-dir>/onus/map/<id>`. It only saves the question to git: whatever
//! is wrong with it, git is asked again.

use super::committed::{Committed, blob, read};
use crate::file::{create_new, create_private_dir, open, read_open, temporary_beside};
use crate::repository::Repo;
use crate::yaml::SIZE_MAX;
use onus_core::hash::Digest;
use onus_core::refusal::Refusal;
use rustix::fs::OFlags;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How many files are kept.
const KEPT: usize = 16;

const HEADER: &[u8] = b"onus-map 1 ";
const ABSENT: &[u8] = b"none\n";
/// The header, a digest in hexadecimal, a line feed.
const BEFORE_CONTENT: usize = 11 + 64 + 1;

pub(super) fn committed(repo: &Repo, commit: &str) -> Result<Committed, Refusal> {
    let dir = repo.common_dir.join("onus/map");
    let path = dir.join(commit);
    if let Some(known) = recall(&path) {
        return Ok(known);
    }
    // Most commits leave the map as it was.
    let (same_text, known) = match blob(repo, commit) {
        Some(None) => (None, Some(Committed::Absent)),
        Some(Some(id)) => (Some(dir.join(&id)), recall(&dir.join(id))),
        None => (None, None),
    };
    let content = known.map_or_else(|| read(repo, commit), Ok)?;
    // A cache that cannot be written costs time, nothing else.
    for path in [Some(path), same_text].into_iter().flatten() {
        let _ = remember(&path, &content);
    }
    Ok(content)
}

/// A power loss may leave half a file behind: only what its digest confirms is believed.
fn recall(path: &Path) -> Option<Committed> {
    let file = open(path, OFlags::NOFOLLOW).ok()?;
    let bytes = read_open(file, SIZE_MAX + BEFORE_CONTENT).ok()?;
    let rest = bytes.strip_prefix(HEADER)?;
    if rest == ABSENT {
        return Some(Committed::Absent);
    }
    let (digest, content) = rest.split_at_checked(64)?;
    let content = content.strip_prefix(b"\n")?;
    let kept = Digest::parse(std::str::from_utf8(digest).ok()?)?;
    (Digest::of(content) == kept).then(|| Committed::Content(content.to_vec()))
}

fn remember(path: &Path, content: &Committed) -> io::Result<()> {
    let bytes = match content {
        Committed::Absent => [HEADER, ABSENT].concat(),
        Committed::Content(content) => {
            [HEADER, Digest::of(content).to_string().as_bytes(), b"\n", content].concat()
        }
        // Rare, and told at once by git.
        Committed::Odd(_) => return Ok(()),
    };
    let dir = path.parent().unwrap_or(path);
    // Only the last directory is private: the one above may hold a store that a group shares.
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    create_private_dir(dir)?;
    let temporary = temporary_beside(path)?;
    let written = create_new(&temporary, &bytes).and_then(|_| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    forget_oldest(dir)
}

/// Also takes away what a writer that was killed left behind.
fn forget_oldest(dir: &Path) -> io::Result<()> {
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Another process may be tidying up, too.
        if let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) {
            files.push((modified, entry.path()));
        }
    }
    files.sort_unstable();
    let surplus = files.len().saturating_sub(KEPT);
    for (_, path) in files.iter().take(surplus) {
        let _ = fs::remove_file(path);
    }
    Ok(())
}
