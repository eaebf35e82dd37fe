//! Who takes part in a run, where they work, and which identity maps they live under.

use super::step::{PEOPLE, REGISTERED, ROLES, WORKERS, WORKSTATIONS};
use onus_app::Onus;
use onus_app::registry::Founding;
use onus_core::event::{WorkerAdded, WorkstationAdded};
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::worker::{Kind, VERIFIER_ROLE};
use std::fmt::Write as _;

/// How many identity maps there are: generous, strict, none.
pub(super) const MAPS: usize = 3;

/// Lanes of each role, and how many may be at work in each.
pub(super) const LANES: [[(i64, usize); ROLES.len()]; MAPS - 1] = [[(2, 1), (1, 2)], [(1, 1), (1, 1)]];

/// A name of the simulation's own choice is well-formed.
fn parsed<T: std::str::FromStr<Err = String>>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(Refusal::invalid)
}

pub(crate) fn worker(n: usize) -> Result<Handle, Refusal> {
    parsed(WORKERS[n % WORKERS.len()])
}

pub(crate) fn workstation(n: usize) -> Result<WorkstationName, Refusal> {
    parsed(&format!("ws-{}", n % WORKSTATIONS + 1))
}

pub(super) fn task(n: usize) -> Result<TaskId, Refusal> {
    parsed(&format!("T-{}", n + 1))
}

pub(super) fn is_person(handle: &str) -> bool {
    WORKERS[..PEOPLE].contains(&handle)
}

pub(super) fn is_verifier(handle: &str) -> bool {
    handle == "@v"
}

fn added(n: usize) -> Result<WorkerAdded, Refusal> {
    let handle = worker(n)?;
    let kind = if is_person(handle.as_str()) { Kind::Human } else { Kind::Agent };
    let role = is_verifier(handle.as_str()).then(|| parsed(VERIFIER_ROLE)).transpose()?;
    Ok(WorkerAdded { handle, kind, tier: None, role, tz: "UTC".into() })
}

/// Makes the workspace and everybody in it.
pub(crate) fn found(onus: &mut Onus) -> Result<(), Refusal> {
    let founding = Founding {
        project: Some(parsed("T")?),
        default_project: parsed("T")?,
        person: added(0)?,
        checkout: None,
    };
    onus.init(&founding, |_| Ok("00".repeat(32)))?;
    let founder = worker(0)?;
    for n in 1..REGISTERED {
        onus.add_worker(Some(&founder), &added(n)?)?;
    }
    for n in 0..WORKSTATIONS {
        let place = WorkstationAdded::logical(workstation(n)?);
        onus.add_workstation(Some(&founder), &place)?;
    }
    Ok(())
}

/// The text of a map: every agent may work everywhere, and only lanes are in the way. The last one is no map at all.
pub(super) fn map(n: usize) -> Option<String> {
    let lanes = LANES.get(n % MAPS)?;
    let mut text = "routing:\n  - task_type: \"*\"\n    candidates:\n".to_owned();
    for agent in &WORKERS[PEOPLE..REGISTERED] {
        for place in 1..=WORKSTATIONS {
            let _ = writeln!(text, "      - {{ agent_name: \"{agent}\", workstation: ws-{place} }}");
        }
    }
    text.push_str("roles:\n");
    for (role, (lanes, most)) in ROLES.iter().zip(lanes) {
        let _ = writeln!(text, "  {role}: {{ lanes: {lanes}, max_in_progress: {most} }}");
    }
    Some(text)
}
