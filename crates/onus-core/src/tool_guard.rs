//! May an agent's client use a tool that writes here? (mission E2) Asked before the tool runs, so that a model is told early
//! and in plain words; what lands is still the guard's to decide ([`crate::guard`]).

use crate::code::Code;
use crate::guard::{Held, Mover, Post};
use crate::id::{TaskId, WorkstationName};
use crate::refusal::Refusal;
use crate::workstation::{WorkstationKind, WorkstationState};

/// Where a tool is about to write.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpot<'a> {
    /// As a person would be told of it.
    pub name: &'a str,
    /// The registered workstation whose directory it lies in.
    pub place: Option<Post<'a>>,
}

/// Who works with the client.
#[derive(Debug, Clone, Copy)]
pub struct ToolUser<'a> {
    pub mover: Mover<'a>,
    /// What it holds, and whether that workstation is a directory; one that is none is wherever its worker stands.
    pub held: &'a [(Held<'a>, bool)],
    /// A task whose lease lies where it works and opens nothing any more.
    pub lost: Option<&'a TaskId>,
    /// Who holds that now.
    pub lost_to: Option<&'a Held<'a>>,
}

/// Whether git asks before a branch moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarding {
    On,
    Off,
}

/// Under which assignment the tool writes, so that its scope is asked next; none where it needs none.
pub fn may_write<'a>(
    worker: &ToolUser<'a>,
    spot: &ToolSpot<'_>,
    guarding: Guarding,
) -> Result<Option<Held<'a>>, Refusal> {
    let ToolUser { mover, held, lost, lost_to } = worker;
    let place = spot.place.filter(|post| post.state != WorkstationState::Retired);
    let own = held.iter().find(|(held, has_directory)| match place {
        Some(place) if *has_directory => {
            held.assignment.workstation == *place.workstation || held.crosses_into(&place)
        }
        Some(place) => place.kind != WorkstationKind::Worktree && place.held.is_none(),
        None => !has_directory,
    });
    match (own, held.first()) {
        (Some((own, _)), _) => return Ok(Some(*own)),
        _ if mover.is_person() => return Ok(None),
        (None, Some((held, _))) => return Err(elsewhere(held, spot, place)),
        (None, None) => {}
    }
    match (lost, guarding) {
        (Some(lost), _) => Err(fenced(lost, *lost_to)),
        (None, Guarding::Off) => Ok(None),
        (None, Guarding::On) => Err(nothing_held(mover, spot, place)),
    }
}

/// The claim that would open the place, as it is typed.
pub fn claim_line(offer: Option<&TaskId>, free: Option<&WorkstationName>) -> String {
    let task = offer.map_or_else(|| "--next".to_owned(), ToString::to_string);
    match free {
        Some(name) => format!("onus claim {task} --workstation {name}"),
        None => format!("onus claim {task} --workstation NAME, then work in that workstation's directory"),
    }
}

fn nothing_held(mover: &Mover<'_>, spot: &ToolSpot<'_>, place: Option<Post<'_>>) -> Refusal {
    let name = spot.name;
    let whose = place.and_then(|place| place.held);
    let (code, who) = match mover {
        Mover::Unregistered(handle) => (Code::UnknownWorker, format!("{handle} is not registered and")),
        Mover::Client(_) | Mover::Nobody => {
            (Code::LeaseRequired, "nobody said who you are (ONUS_AS), and you".to_owned())
        }
        Mover::Named { handle, .. } | Mover::Owner(handle) => (Code::LeaseRequired, handle.to_string()),
    };
    let detail = match whose {
        Some(Held { task, assignment, .. }) => format!(
            "{who} holds no task, and {name} lies in {}, where {} works on {task}",
            assignment.workstation, assignment.assignee
        ),
        None => format!("{who} holds no task: {name} is not to be written without one"),
    };
    Refusal::new(code, detail).hint(claim_line(None, None))
}

fn fenced(task: &TaskId, now: Option<&Held<'_>>) -> Refusal {
    let now = now.map_or_else(
        || "nobody".to_owned(),
        |held| format!("{} (or another session of it)", held.assignment.assignee),
    );
    Refusal::new(Code::Fenced, format!("you no longer hold {task}: {now} does")).task(task).hint(format!(
        "stop writing for it; `onus show {task}` tells why; take other work: onus claim --next"
    ))
}

fn elsewhere(held: &Held<'_>, spot: &ToolSpot<'_>, place: Option<Post<'_>>) -> Refusal {
    let Held { task, assignment, .. } = held;
    let where_to =
        place.map_or_else(|| "no workstation of yours".to_owned(), |place| place.workstation.to_string());
    let detail = format!("you hold {task} in {}; {} lies in {where_to}", assignment.workstation, spot.name);
    Refusal::new(Code::NotPermitted, detail)
        .task(task)
        .hint("work in your own workstation: onus prime tells its directory")
}

/// Whether the claim that is named should name the place where the caller stands.
pub fn is_free_for_agents(place: &Post<'_>) -> bool {
    place.held.is_none() && place.state == WorkstationState::Ready && place.kind == WorkstationKind::Worktree
}
