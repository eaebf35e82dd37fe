//! `report incident TASK`: who ran it, where, under which version of the map, and was that within policy.

use crate::Onus;
use crate::answer_room::{AnswerRoom, LIST_BYTES};
use crate::remote::calls;
use crate::show::unknown_task;
use onus_core::event::Stamped;
use onus_core::id::{CommitId, Handle, Seq, TaskId, TaskType, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::report::{Compliance, forced, grant, is_named, late_by, said};
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use onus_core::worker::Kind;
use onus_store::error::{Result as StoreResult, StoreError};
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::ledger;
use onus_store::read::show;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that tells whose work a task was.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IncidentView {
    pub task: TaskId,
    pub title: String,
    #[serde(rename = "type")]
    pub task_type: Option<TaskType>,
    pub state: StateName,
    /// Of all its grants: the worst one counts.
    pub compliance: Compliance,
    /// Whether anything about it was forced.
    pub forced: bool,
    /// Who had it, where, and by which rule: the first one, and the last thousand.
    pub grants: Vec<GrantView>,
    /// Acts by force, refusals and late acts among the time line's entries.
    pub forced_acts: Vec<MomentView>,
    pub refusals: Vec<MomentView>,
    pub late_acts: Vec<MomentView>,
    /// What happened, in order; renewals are left out.
    pub timeline: Vec<MomentView>,
    /// There is more: ask for what came after this entry.
    #[serde(default)]
    pub next: Option<Seq>,
    /// Renewals that are left out, of all there are.
    pub renewals: i64,
    pub untrusted: bool,
}

/// Who was given the task, and by which rule.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GrantView {
    pub seq: i64,
    pub epoch: i64,
    pub assignee: Handle,
    pub tier: Option<String>,
    pub workstation: WorkstationName,
    /// Who gave it, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Handle>,
    pub at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
    pub forced: bool,
    pub compliance: Compliance,
    pub rule: Option<String>,
    pub map_commit: Option<String>,
    pub map_hash: Option<String>,
    /// Whether the map in force today names this agent and workstation for the type; absent for people, and where
    /// there is no map.
    pub named_today: Option<bool>,
    /// The commit that the workstation stood at.
    pub base: Option<CommitId>,
}

/// One line of a time line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MomentView {
    pub seq: i64,
    pub at: Timestamp,
    pub actor: Handle,
    pub workstation: Option<WorkstationName>,
    pub epoch: i64,
    pub verb: String,
    pub said: String,
}

impl Onus {
    /// The grants of a task, and what happened after an entry or from the beginning: as much as fits into one answer.
    pub fn report_incident(&mut self, task: &TaskId, after: Option<Seq>) -> Result<IncidentView, Refusal> {
        if let Some(answer) = self.remote(|| calls::ReportIncident { task: task.clone(), after })? {
            return Ok(answer);
        }
        let policy = self.policy()?;
        let found = self.ask(|tx| {
            let Some(stored) = load::task(tx, task)? else { return Ok(None) };
            let row = stored.task;
            let mut view = IncidentView {
                task: row.id.clone(),
                title: row.spec.title.clone(),
                task_type: row.spec.task_type.clone(),
                state: row.state.name(),
                compliance: Compliance::Within,
                forced: false,
                grants: grants(tx, task)?,
                forced_acts: Vec::new(),
                refusals: Vec::new(),
                late_acts: Vec::new(),
                timeline: Vec::new(),
                next: None,
                renewals: 0,
                untrusted: true,
            };
            tell(tx, &mut view, after.unwrap_or(0))?;
            for grant in &mut view.grants {
                if load::worker(tx, &grant.assignee)?.is_some_and(|worker| worker.kind == Kind::Agent) {
                    let task_type = view.task_type.as_ref();
                    grant.named_today = is_named(&policy, task_type, &grant.assignee, &grant.workstation);
                }
            }
            view.compliance = Compliance::worst(view.grants.iter().map(|grant| grant.compliance));
            Ok(Some(view))
        })?;
        found.ok_or_else(|| unknown_task(task))
    }
}

/// The assignments; which entry made each is seen in the record.
fn grants(tx: &mut dyn Tx, task: &TaskId) -> StoreResult<Vec<GrantView>> {
    let all = show::assignments(tx, task)?;
    let view = |past: show::PastAssignment| {
        let held = past.assignment;
        GrantView {
            seq: 0,
            epoch: held.epoch,
            compliance: Compliance::of(held.route.as_ref(), held.forced),
            by: None,
            at: held.assigned_at,
            ended_at: past.ended_at,
            end_reason: past.end_reason,
            forced: held.forced,
            rule: held.route.as_ref().map(|route| route.rule.clone()),
            map_commit: held.route.as_ref().and_then(|route| route.map_commit.clone()),
            map_hash: held.route.as_ref().map(|route| route.map_hash.clone()),
            named_today: None,
            base: held.base,
            assignee: held.assignee,
            tier: held.tier,
            workstation: held.workstation,
        }
    };
    Ok(all.into_iter().map(view).collect())
}

/// Reads the task's record into the time line, as far as there is room after an entry.
fn tell(tx: &mut dyn Tx, view: &mut IncidentView, after: Seq) -> StoreResult<()> {
    let mut room = AnswerRoom::new(LIST_BYTES / 2);
    let name = view.task.to_string();
    ledger::chain(tx, Some(&name), &mut |seq, entry| {
        let stamped = entry?.open().map_err(StoreError::Corrupt)?;
        let verb = stamped.event.verb();
        if let Some((_, assignee)) = grant(&stamped)
            && let Some(made) = view.grants.iter_mut().find(|grant| grant.epoch == stamped.epoch)
        {
            made.seq = stamped.seq;
            made.by = Some(stamped.actor.clone()).filter(|by| by != assignee);
        }
        view.forced |= forced(&stamped.event).is_some();
        if verb == "renewed" {
            view.renewals += 1;
        }
        if seq <= after || view.next.is_some() {
            return Ok(());
        }
        let moment = MomentView::of(&stamped);
        if !room.has(moment.said.len()) {
            view.next = Some(view.timeline.last().map_or(after, |last| last.seq));
            return Ok(());
        }
        if forced(&stamped.event).is_some() {
            view.forced_acts.push(moment.clone());
        }
        if late_by(&stamped.event).is_some() {
            view.late_acts.push(moment.clone());
        }
        if verb == "refused" {
            view.refusals.push(moment.clone());
        }
        if verb != "renewed" {
            view.timeline.push(moment);
        }
        Ok(())
    })
}

impl MomentView {
    fn of(entry: &Stamped) -> MomentView {
        MomentView {
            seq: entry.seq,
            at: entry.at,
            actor: entry.actor.clone(),
            workstation: entry.workstation.clone(),
            epoch: entry.epoch,
            verb: entry.event.verb().to_owned(),
            said: said(&entry.event),
        }
    }
}
