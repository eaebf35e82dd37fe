//! `milestone`: tasks that are verified together (mission C10).

mod verify;
mod view;

pub use verify::VerifiedView;
pub use view::{ClosedView, MemberView, MilestoneAddedView, MilestoneLine, MilestoneView, MilestonesView};

use crate::Onus;
use crate::idempotent_admin::Asker;
use crate::registry::record;
use crate::remote::calls;
use crate::submit::unexpected;
use onus_core::code::Code;
use onus_core::event::MilestoneAdded;
use onus_core::hash::Digest;
use onus_core::id::{MilestoneName, MirrorName, Seq, TaskId};
use onus_core::milestone::{
    self as rules, MEMBERS_MAX, Member, MilestoneEdit, Story, Verification, findings, fingerprint,
};
use onus_core::mirror::ToldSoFar;
use onus_core::mirror::setting::{InMilestones, Mirror};
use onus_core::refusal::{Finding, Refusal};
use onus_core::registry::{Registration, person};
use onus_core::task::{StateName, Task};
use onus_store::error::{Result as StoreResult, StoreError};
use onus_store::milestone::{self, StoredMilestone};
use onus_store::mirror as rows;
use onus_store::port::{Outcome, Tx};
use onus_store::read::ledger;
use onus_store::{load, registry};
use std::collections::{BTreeMap, BTreeSet};

/// A milestone with everything that it is judged by, on one view of the store.
#[derive(Debug)]
struct MilestoneFacts {
    stored: StoredMilestone,
    members: Vec<Member>,
    missing: Vec<Finding>,
    /// Of what would be verified now.
    fingerprint: Digest,
    /// Whether the record still has what was verified when it was closed.
    intact: Option<bool>,
}

impl Onus {
    pub fn add_milestone<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        wanted: &MilestoneAdded,
    ) -> Result<MilestoneAddedView, Refusal> {
        let mirrors = self.needed_mirrors();
        self.administer(asker, &calls::AddMilestone { wanted: wanted.clone() }, |tx, caller| {
            let by = person(caller)?;
            let found = milestone::find(tx, &wanted.name)?;
            let unknown = unknown_tasks(tx, wanted)?;
            match rules::register(found.as_ref().map(|found| &found.milestone), wanted, &unknown)? {
                outcome @ Registration::Existing => {
                    let milestone = view_of(tx, &wanted.name, &mirrors)?;
                    Ok(Outcome::Rollback(MilestoneAddedView { outcome, milestone }))
                }
                outcome @ Registration::Created => {
                    let entry = record(tx, by, wanted.clone())?;
                    milestone::insert(tx, &rules::evolve(None, &entry).map_err(unexpected)?)?;
                    let milestone = view_of(tx, &wanted.name, &mirrors)?;
                    Ok(Outcome::Commit(MilestoneAddedView { outcome, milestone }))
                }
            }
        })
    }

    /// Calls it otherwise, or moves the day by which it is meant to be reached.
    pub fn edit_milestone<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &MilestoneName,
        wanted: &MilestoneEdit,
    ) -> Result<MilestoneView, Refusal> {
        let call = calls::EditMilestone { name: name.clone(), wanted: wanted.clone() };
        let mirrors = self.needed_mirrors();
        self.administer(asker, &call, |tx, caller| {
            let before = milestone::find(tx, name)?.ok_or_else(|| no_milestone(name))?.milestone;
            let (by, event) = rules::edit(caller, &before, wanted)?;
            let Some(event) = event else {
                return Ok(Outcome::Rollback(view_of(tx, name, &mirrors)?));
            };
            let entry = record(tx, &by, event)?;
            milestone::edit(tx, &rules::evolve(Some(before), &entry).map_err(unexpected)?)?;
            Ok(Outcome::Commit(view_of(tx, name, &mirrors)?))
        })
    }

    /// Every milestone in a few words, the oldest first.
    pub fn milestones(&mut self) -> Result<MilestonesView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Milestones {})? {
            return Ok(answer);
        }
        let rows = self.ask(|tx| milestone::every(tx))?;
        Ok(MilestonesView { milestones: rows.iter().map(MilestoneLine::from).collect() })
    }

    /// One milestone, with exactly what it lacks.
    pub fn milestone(&mut self, name: &MilestoneName) -> Result<MilestoneView, Refusal> {
        if let Some(answer) = self.remote(|| calls::MilestoneOf { name: name.clone() })? {
            return Ok(answer);
        }
        let mirrors = self.needed_mirrors();
        let found =
            self.ask(|tx| milestone::find(tx, name)?.map(|stored| look(tx, stored, &mirrors)).transpose())?;
        let seen = found.ok_or_else(|| no_milestone(name))?;
        bounded(&seen)?;
        Ok(MilestoneView::from(&seen))
    }

    /// Closes it, if nothing is missing.
    pub fn close_milestone<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &MilestoneName,
    ) -> Result<MilestoneView, Refusal> {
        let mirrors = self.needed_mirrors();
        self.administer(asker, &calls::CloseMilestone { name: name.clone() }, |tx, caller| {
            let stored = milestone::find(tx, name)?.ok_or_else(|| no_milestone(name))?;
            let seen = look(tx, stored, &mirrors)?;
            bounded(&seen)?;
            let before = &seen.stored.milestone;
            let (by, event) = rules::close(caller, before, seen.missing.clone(), seen.fingerprint)?;
            let Some(event) = event else {
                return Ok(Outcome::Rollback(MilestoneView::from(&seen)));
            };
            let entry = record(tx, &by, event)?;
            let after = rules::evolve(Some(before.clone()), &entry).map_err(unexpected)?;
            let closed = after.closed.ok_or_else(|| unexpected("a milestone was closed and is not"))?;
            milestone::close(tx, name, &closed)?;
            Ok(Outcome::Commit(view_of(tx, name, &mirrors)?))
        })
    }

    /// The mirrors that must show what a milestone's tasks are.
    fn needed_mirrors(&self) -> Vec<(MirrorName, Mirror)> {
        let mirrors = self.settings.mirrors.iter();
        let needed = mirrors.filter(|(_, mirror)| mirror.milestones == InMilestones::Required);
        needed.map(|(name, mirror)| (name.clone(), mirror.clone())).collect()
    }
}

/// The tasks that a milestone names and that are not there.
fn unknown_tasks(tx: &mut dyn Tx, wanted: &MilestoneAdded) -> StoreResult<Vec<TaskId>> {
    let mut unknown = Vec::new();
    for task in wanted.selection.tasks.iter().chain(&wanted.selection.parent) {
        if load::task(tx, task)?.is_none() {
            unknown.push(task.clone());
        }
    }
    Ok(unknown)
}

fn view_of(
    tx: &mut dyn Tx,
    name: &MilestoneName,
    mirrors: &[(MirrorName, Mirror)],
) -> Result<MilestoneView, Refusal> {
    let stored = milestone::find(tx, name)?.ok_or_else(|| no_milestone(name))?;
    let seen = look(tx, stored, mirrors)?;
    bounded(&seen)?;
    Ok(MilestoneView::from(&seen))
}

/// What keeps an open task from beginning.
fn waits_for(tx: &mut dyn Tx, task: &Task) -> StoreResult<Vec<TaskId>> {
    if task.state.name() != StateName::Open || task.depends_on.is_empty() {
        return Ok(Vec::new());
    }
    let is_excepted = |on: &TaskId| task.exceptions.get(on).is_some_and(|one| one.approved_by.is_some());
    let on = load::dependencies(tx, &task.id)?.into_iter();
    let open = on.filter(|on| on.state != Some(StateName::Complete)).map(|on| on.id);
    Ok(open.filter(|on| !is_excepted(on)).collect())
}

/// Reads everything that a milestone is judged by.
fn look(
    tx: &mut dyn Tx,
    stored: StoredMilestone,
    mirrors: &[(MirrorName, Mirror)],
) -> StoreResult<MilestoneFacts> {
    let closed = stored.milestone.closed;
    let mut members = Vec::new();
    let mut then = Vec::new();
    for row in milestone::members(tx, &stored.milestone)? {
        let (story, past) = stories(tx, &row.task.id, closed.map(|closed| closed.seq))?;
        if closed.is_some_and(|closed| row.task.born <= closed.seq) {
            then.push((row.task.id.clone(), past));
        }
        let told = told(tx, &row.task.id, mirrors)?;
        let waits_for = waits_for(tx, &row.task)?;
        members.push(Member { task: row.task, story, told, waits_for });
    }
    let places = places(tx, &members)?;
    let name = &stored.milestone.name;
    let missing = findings(&Verification { name, members: &members, places: &places, mirrors });
    let now = members.iter().map(|member| (&member.task.id, &member.story));
    let print = fingerprint(&stored.milestone, now);
    let intact = closed.map(|closed| {
        let past = then.iter().map(|(task, story)| (task, story));
        fingerprint(&stored.milestone, past) == closed.fingerprint
    });
    Ok(MilestoneFacts { stored, members, missing, fingerprint: print, intact })
}

/// How far the mirrors that the milestone needs were told of a task.
fn told(
    tx: &mut dyn Tx,
    task: &TaskId,
    mirrors: &[(MirrorName, Mirror)],
) -> StoreResult<BTreeMap<MirrorName, ToldSoFar>> {
    let mut found = BTreeMap::new();
    for (name, _) in mirrors {
        if let Some(row) = rows::one(tx, name, &task.to_string())? {
            let stuck = row.stuck.then(|| row.error.unwrap_or_default());
            let so_far = ToldSoFar { delivered: row.delivered, stuck, told: row.told, drift: row.drift };
            found.insert(name.clone(), so_far);
        }
    }
    Ok(found)
}

/// What the record says about a task now, and what it said up to an entry.
fn stories(tx: &mut dyn Tx, task: &TaskId, until: Option<Seq>) -> StoreResult<(Story, Story)> {
    let (mut now, mut past) = (Story::default(), Story::default());
    ledger::chain(tx, Some(&task.to_string()), &mut |seq, entry| {
        let entry = entry?;
        let stamped = entry.open().map_err(StoreError::Corrupt)?;
        now.tell(&stamped, entry.hash);
        if until.is_some_and(|until| seq <= until) {
            past.tell(&stamped, entry.hash);
        }
        Ok(())
    })?;
    Ok((now, past))
}

type Probed = (onus_core::workstation::Workstation, Vec<onus_core::probe::ProbeResult>);

/// The workstations in which the tasks were worked on, with what their probes said last.
fn places(tx: &mut dyn Tx, members: &[Member]) -> StoreResult<Vec<Probed>> {
    let names: BTreeSet<_> = members.iter().flat_map(|member| &member.story.places).collect();
    let mut found = Vec::new();
    for name in names {
        if let Some((workstation, _)) = load::workstation(tx, name)? {
            let probes = registry::probes(tx, name)?;
            found.push((workstation, probes));
        }
    }
    Ok(found)
}

fn bounded(seen: &MilestoneFacts) -> Result<(), Refusal> {
    if seen.members.len() <= MEMBERS_MAX {
        return Ok(());
    }
    let name = &seen.stored.milestone.name;
    Err(Refusal::invalid(format!("{name} has more than {MEMBERS_MAX} tasks"))
        .hint("verify fewer together: onus milestone add NAME --sprint, --tag, --parent or --task"))
}

fn no_milestone(name: &MilestoneName) -> Refusal {
    Refusal::new(Code::UnknownName, format!("there is no milestone {name}")).hint("onus milestone list")
}
