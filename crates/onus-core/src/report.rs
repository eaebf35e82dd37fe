//! Reports over the record: what counts as within policy, how work flows, and what looks wrong (mission C9, C14).
//!
//! Nothing here reads the record: entries and rows are arguments, so that every figure can be checked by hand.

mod anomaly;
mod drift;
mod flow;
pub mod plain_words;
mod summary_line;
mod tally;

pub use anomaly::{Anomaly, AnomalyKind, Held, Known, Limits, Watch};
pub use drift::drift;
pub use flow::{DayFlow, Flow};
pub use summary_line::said;
pub use tally::{Group, Taken, Tally};

use crate::event::{Event, Grant, Renewal, Stamped};
use crate::id::{Handle, TaskType, WorkstationName};
use crate::identity_map::Policy;
use crate::task::Route;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words!(
    /// How a grant stood to the identity map that was in force when it was made.
    Compliance {
        /// A rule of the map named the worker and the workstation, or let a person take it.
        Within = "within",
        /// A person stepped over the map by force.
        Outside = "outside",
        /// There was no map to follow.
        NoPolicy = "no_policy",
    }
);

impl Compliance {
    /// A grant names the map that it followed, or that it stepped over.
    pub fn of(route: Option<&Route>, forced: bool) -> Compliance {
        match (route, forced) {
            (None, _) => Compliance::NoPolicy,
            // A force that the map would have let through steps over something else.
            (Some(route), true) if route.is_forced() => Compliance::Outside,
            (Some(_), _) => Compliance::Within,
        }
    }

    /// Of several grants the worst one counts.
    pub fn worst(all: impl IntoIterator<Item = Compliance>) -> Compliance {
        all.into_iter().fold(Compliance::Within, |worst, one| match (worst, one) {
            (Compliance::Outside, _) | (_, Compliance::Outside) => Compliance::Outside,
            (Compliance::NoPolicy, _) | (_, Compliance::NoPolicy) => Compliance::NoPolicy,
            _ => Compliance::Within,
        })
    }
}

/// Whether the map in force names this agent and workstation for the type; none where there is no map to ask. People
/// need no rule.
pub fn is_named(
    policy: &Policy,
    task_type: Option<&TaskType>,
    agent: &Handle,
    workstation: &WorkstationName,
) -> Option<bool> {
    let map = &policy.in_force()?.map;
    let named = map
        .rule_for(task_type)
        .is_some_and(|(_, rule)| rule.in_order().any(|(who, place, _)| who == agent && place == workstation));
    Some(named)
}

/// The grant that an entry made, if it made one, and to whom.
pub fn grant(entry: &Stamped) -> Option<(&Grant, &Handle)> {
    let grant = match &entry.event {
        Event::Claimed(claimed) => &claimed.grant,
        Event::TakenOver(taken) => &taken.grant,
        _ => return None,
    };
    Some((grant, grant.assignee.as_ref().unwrap_or(&entry.actor)))
}

/// The reason of an act that a person forced.
pub fn forced(event: &Event) -> Option<&str> {
    let (forced, reason) = match event {
        Event::Claimed(claimed) => (claimed.grant.forced, claimed.reason.as_deref()),
        Event::TakenOver(taken) => (taken.grant.forced, Some(taken.reason.as_str())),
        Event::Released(released) => (released.forced, released.reason.as_deref()),
        Event::Completed(completed) => (completed.forced, completed.reason.as_deref()),
        _ => return None,
    };
    forced.then(|| reason.unwrap_or_default())
}

/// By how much an act of a holder came after its lease had expired.
pub fn late_by(event: &Event) -> Option<i64> {
    let of = |renewal: &Renewal| renewal.late_by_ms;
    match event {
        Event::Released(released) => released.late_by_ms,
        Event::Completed(completed) => completed.late_by_ms,
        Event::Blocked(blocked) => blocked.late_by_ms.or(blocked.kept.as_ref().and_then(of)),
        _ => renewal(event).and_then(of),
    }
}

/// The sign of life that an entry is.
fn renewal(event: &Event) -> Option<&Renewal> {
    match event {
        Event::Renewed(renewed) => Some(&renewed.renewal),
        Event::Noted(noted) => noted.renewal.as_ref(),
        Event::Messaged(said) => said.renewal.as_ref(),
        Event::Blocked(blocked) => blocked.kept.as_ref(),
        Event::Unblocked(unblocked) => unblocked.renewal.as_ref(),
        Event::CheckRun(run) => run.renewal.as_ref(),
        Event::Edited(edited) => edited.renewal.as_ref(),
        Event::Merged(merged) => Some(&merged.renewal),
        Event::SessionStarted(started) => Some(&started.renewal),
        Event::SessionStopped(stopped) => Some(&stopped.renewal),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_grant_counts() {
        use Compliance::{NoPolicy, Outside, Within};
        let worst = |all: &[Compliance]| Compliance::worst(all.iter().copied());
        assert_eq!(worst(&[]), Within);
        assert_eq!(worst(&[Within, NoPolicy, Within]), NoPolicy);
        assert_eq!(worst(&[NoPolicy, Outside, Within]), Outside);
    }

    #[test]
    fn a_force_over_a_map_is_outside_and_without_a_map_there_is_no_policy() {
        let route = Route { rule: "person".into(), map_commit: None, map_hash: "h".into() };
        assert_eq!(Compliance::of(Some(&route), false), Compliance::Within);
        assert_eq!(
            Compliance::of(Some(&route), true),
            Compliance::Within,
            "the map lets people take anything"
        );
        for rule in [Route::FORCED, Route::FORCED_OVER_INVALID] {
            let over = Route { rule: rule.into(), ..route.clone() };
            assert_eq!(Compliance::of(Some(&over), true), Compliance::Outside);
        }
        assert_eq!(Compliance::of(None, true), Compliance::NoPolicy);
    }
}
