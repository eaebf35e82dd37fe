//! What a milestone needs of a mirror: that the fields of every task were read back as they were told (mission C10).

use super::drift::Drift;
use super::setting::Mirror;
use super::{Counterpart, Picture, wanted};
use crate::code::Code;
use crate::id::{MirrorName, Seq};
use crate::refusal::Finding;

/// How far a mirror was told of one task.
#[derive(Debug, Clone, Default)]
pub struct ToldSoFar {
    pub delivered: Seq,
    /// Why it goes on no more, where it does not.
    pub stuck: Option<String>,
    pub told: Counterpart,
    /// What somebody changed there since.
    pub drift: Vec<Drift>,
}

/// Everything that keeps a task's fields from being equal there. `newest` is the last entry that the mirror is to be told.
pub fn unequal(
    name: &MirrorName,
    mirror: &Mirror,
    task: &Picture,
    newest: Seq,
    so_far: Option<&ToldSoFar>,
) -> Vec<Finding> {
    let id = &task.id;
    let missing = |detail: String, hint: String| Finding::new(Code::EvidenceMissing, detail).hint(hint);
    let sync = format!("onus mirror sync {name}");
    let Some(so_far) = so_far else {
        return vec![missing(format!("{name} was never told of {id}"), sync)];
    };
    if let Some(why) = &so_far.stuck {
        let detail = format!("{name} was not told everything of {id}: {why}");
        let hint = format!("onus mirror retry {name} {id}, once its cause is gone");
        return vec![Finding::new(Code::MirrorStuck, detail).hint(hint)];
    }
    if so_far.delivered < newest {
        return vec![missing(format!("{name} was not told everything of {id} yet"), sync)];
    }
    if so_far.told.far_id.is_none() {
        let hint = format!("set mirrors.{name}.create to always, then {sync}");
        return vec![missing(format!("{id} has no issue in {name}"), hint)];
    }
    let mut found: Vec<Finding> = Vec::new();
    for (field, value) in wanted(mirror, task) {
        let changed = so_far.drift.iter().find(|drift| drift.field == field).map(|drift| &drift.there);
        let there = changed.or_else(|| so_far.told.read_back.get(&field));
        if there == Some(&value) {
            continue;
        }
        let says = there.map_or_else(|| "nothing".to_owned(), |there| format!("`{there}`"));
        let detail = format!("the {field} of {id} says {says} in {name}, not `{value}`");
        found.push(missing(detail, format!("onus mirror diff {name}; then {sync}")));
    }
    found
}
