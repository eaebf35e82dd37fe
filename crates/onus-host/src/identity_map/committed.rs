//! The map in a commit, as git has it.

use crate::git::{Git, is_object_id};
use crate::refs::LooseObjects;
use crate::repository::Repo;
use crate::yaml::SIZE_MAX;
use onus_core::identity_map::FILE;
use onus_core::refusal::Refusal;

/// What a commit says about the map.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Committed {
    Absent,
    Content(Vec<u8>),
    /// There is something of that name that cannot be a map; the reason reads on after the name.
    Odd(String),
}

/// The regular file that a commit has as its map, where that can be told without git; none inside where it has none.
pub(super) fn blob(repo: &Repo, commit: &str) -> Option<Option<String>> {
    match LooseObjects::of(&repo.common_dir).top_entry(commit, FILE)? {
        None => Some(None),
        Some((mode, id)) => mode.starts_with("100").then_some(Some(id)),
    }
}

/// Asks git. A commit that git does not have is an error, not a commit without a map.
pub(super) fn read(repo: &Repo, commit: &str) -> Result<Committed, Refusal> {
    let listed = Git::on_common(repo, "ls-tree")
        .args(&["-l", "--full-tree", commit, "--", FILE])
        .line()
        .map_err(Refusal::from)?;
    // `MODE TYPE ID SIZE<tab>NAME`
    let fields: Vec<&str> = listed.split_whitespace().collect();
    let [mode, kind, id, size, ..] = fields.as_slice() else { return Ok(Committed::Absent) };
    if *kind != "blob" || !mode.starts_with("100") || !is_object_id(id) {
        return Ok(Committed::Odd("is not a regular file".to_owned()));
    }
    if size.parse().is_ok_and(|size: usize| size > SIZE_MAX) {
        return Ok(Committed::Odd(format!("is larger than {SIZE_MAX} bytes")));
    }
    let bytes = Git::on_common(repo, "cat-file").args(&["blob", id]).run().map_err(Refusal::from)?;
    Ok(Committed::Content(bytes))
}
