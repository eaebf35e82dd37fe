//! How asks come in. What an imported line becomes: how it is found again, which id it keeps, in which state it arrives (mission A2, D14).

pub mod channel;
pub mod refresh;

use crate::id::{OriginRef, TaskId};
use crate::task::StateName;
use uuid::Uuid;

/// The highest number that an imported id may bring along. Numbers only rise: a file that named the highest possible
/// one would leave none for the tasks that come after it.
pub const KEPT_NUMBER_MAX: i64 = 999_999_999;

/// Whether an id from elsewhere leaves room for those that follow. That its project exists and that nobody has it is
/// the store's to say.
pub fn may_be_kept(id: &TaskId) -> bool {
    id.number <= KEPT_NUMBER_MAX
}

/// The origin of a line that names none, so that the same file twice gives the same tasks. The uid belongs to it:
/// two stores may both have an `API-12`, and they are not the same ask.
pub fn derived_origin(id: Option<&TaskId>, uid: Option<Uuid>) -> Option<OriginRef> {
    let key = match (id, uid) {
        (Some(id), Some(uid)) => format!("import:{id}@{uid}"),
        (Some(id), None) => format!("import:{id}"),
        (None, Some(uid)) => format!("import:{uid}"),
        (None, None) => return None,
    };
    key.parse().ok()
}

/// The name that people know an imported task by: its key in the tool that it came from, and that only.
pub fn known_as(origin: &OriginRef) -> Option<&str> {
    let (channel, key) = origin.as_str().split_once(':')?;
    CHANNELS.contains(&channel).then_some(key)
}

/// The channels of tools whose keys are names that people type.
pub const CHANNELS: &[&str] =
    &["queue", "beads", "backlog", "kano", "taskmaster", "github", "redmine", "gitlab", "jira"];

/// The state that history arrives in. Work under way elsewhere has no holder here: it arrives open.
pub fn archived_as(state: StateName) -> Option<StateName> {
    state.is_terminal().then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_again_by_what_they_name() {
        let id: TaskId = "API-12".parse().unwrap();
        let origin = |id, uid| derived_origin(id, uid).map(|origin| origin.to_string());
        assert_eq!(origin(Some(&id), None).as_deref(), Some("import:API-12"));
        assert_eq!(origin(None, None), None);
        assert_ne!(origin(Some(&id), Some(Uuid::from_u128(1))), origin(Some(&id), Some(Uuid::from_u128(2))));
        assert_ne!(origin(Some(&id), Some(Uuid::from_u128(1))), origin(Some(&id), None));
    }

    #[test]
    fn an_id_that_would_use_up_the_numbers_is_not_kept() {
        assert!(may_be_kept(&"API-999999999".parse().unwrap()));
        assert!(!may_be_kept(&"API-1000000000".parse().unwrap()));
    }

    #[test]
    fn only_what_has_ended_is_history() {
        let archived: Vec<StateName> = StateName::ALL.into_iter().filter_map(archived_as).collect();
        assert_eq!(archived, [StateName::Complete, StateName::Dropped]);
    }
}
