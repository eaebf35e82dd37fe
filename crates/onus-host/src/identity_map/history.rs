//! The commits of the main branch that changed the map.

use super::committed::{Committed, read};
use super::{main, parse};
use crate::git::{Git, is_object_id};
use crate::repository::{Place, Repo};
use onus_core::code::Code;
use onus_core::identity_map::{FILE, IdentityMap, Version};
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::Settings;
use onus_core::time::Timestamp;

/// How many commits are read.
const VERSIONS_MAX: &str = "--max-count=200";

/// The commits of the main branch that changed the map, newest first. Outside git there are none.
///
/// A branch's commits count from the merge that brought them in: from then on the map was in force.
pub fn history(place: &Place, settings: &Settings) -> Result<Vec<Version>, Refusal> {
    let Some(repo) = &place.repo else { return Ok(Vec::new()) };
    let Some(main) = main(repo, settings)? else { return Ok(Vec::new()) };
    let log = Git::on_common(repo, "log")
        .args(&["--first-parent", "--no-show-signature", "--encoding=UTF-8", VERSIONS_MAX, "-z"])
        .args(&["--format=%H%x00%ct%x00%an%x00%s", &main.commit, "--", FILE])
        .run()
        .map_err(Refusal::from)?;
    let text = String::from_utf8_lossy(&log);
    let fields: Vec<&str> = text.split('\0').collect();
    fields.chunks_exact(4).map(|fields| version(repo, fields)).collect()
}

fn version(repo: &Repo, fields: &[&str]) -> Result<Version, Refusal> {
    let (Some(commit), Some(seconds)) = (
        fields.first().filter(|id| is_object_id(id)),
        fields.get(1).and_then(|seconds| seconds.parse::<i64>().ok()),
    ) else {
        return Err(Refusal::new(Code::Internal, "git log did not answer in the form it was asked for"));
    };
    let word = |at: usize| crate::file::printable(fields.get(at).copied().unwrap_or_default());
    Ok(Version {
        commit: (*commit).to_owned(),
        at: Timestamp(seconds.saturating_mul(1_000)),
        author: word(2),
        subject: word(3),
        map: map(read(repo, commit)?, commit),
    })
}

fn map(content: Committed, commit: &str) -> Result<Option<IdentityMap>, Vec<Finding>> {
    let short = commit.get(..12).unwrap_or(commit);
    match content {
        Committed::Absent => Ok(None),
        Committed::Content(bytes) => parse(&bytes, &format!("{FILE} at {short}")).map(Some),
        Committed::Odd(why) => Err(vec![Finding::new(Code::MapInvalid, format!("{FILE} at {short} {why}"))]),
    }
}
