//! `session list` and `worker day`: what somebody did, stretch by stretch.

use crate::Onus;
use crate::answer_room::{AnswerRoom, LIST_BYTES};
use crate::remote::calls;
use crate::timesheet::RowView;
use onus_core::code::Code;
use onus_core::event::Event;
use onus_core::evidence::{Classification, RunPlace};
use onus_core::id::{CheckId, CommitId, Handle, Seq, TaskId};
use onus_core::refusal::Refusal;
use onus_core::session::Counts;
use onus_core::task::Check;
use onus_core::time::{Date, Timestamp};
use onus_store::error::Result as StoreResult;
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::effort::{self, Listed, Which};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A stretch of work: one worker, one workstation, one task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    pub id: i64,
    pub task: TaskId,
    pub worker: Handle,
    pub workstation: String,
    pub epoch: i64,
    /// As it counts: corrected, where somebody did.
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
    /// Of a session that runs: up to the holder's last sign of life.
    pub seconds: i64,
    pub running: bool,
    /// What a person corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<CorrectionView>,
    /// A correction beyond the assignment, which counts when another person says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<ProposalView>,
    pub tokens: i64,
    pub cost: Option<f64>,
}

/// What was on record before a correction, and the entry that made it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CorrectionView {
    pub seq: i64,
    pub recorded_started_at: Timestamp,
    pub recorded_ended_at: Option<Timestamp>,
}

/// A correction that waits for another person, and its entry.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProposalView {
    pub seq: i64,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
}

impl SessionView {
    fn new(session: &Listed, used: &Counts) -> SessionView {
        let correction = session.correction.map(|(seq, ..)| CorrectionView {
            seq,
            recorded_started_at: session.started_at,
            recorded_ended_at: session.ended_at,
        });
        SessionView {
            id: session.id,
            task: session.task.clone(),
            worker: session.worker.clone(),
            workstation: session.workstation.clone(),
            epoch: session.epoch,
            started_at: session.began(),
            ended_at: session.ended(),
            end_reason: session.end_reason.clone(),
            seconds: session.counts_until().since(session.began()).0 / 1_000,
            running: session.ended().is_none(),
            correction,
            proposal: session.proposal.map(|(seq, started_at, ended_at)| ProposalView {
                seq,
                started_at,
                ended_at,
            }),
            tokens: used.tokens(),
            cost: used.cost_micros.map(crate::timesheet::units),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionsView {
    pub sessions: Vec<SessionView>,
}

/// One day of a worker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DayView {
    pub worker: Handle,
    pub tz: String,
    pub day: Date,
    pub sessions: Vec<SessionView>,
    /// The day by task.
    pub tasks: Vec<DayTaskView>,
    /// Sessions and acts of a long day that are not told: `show` tells a task's whole story.
    #[serde(default)]
    pub left_out: i64,
    pub total_seconds: i64,
    pub total_billable_seconds: i64,
    pub total_tokens: i64,
    pub total_cost: Option<f64>,
    pub currency: String,
}

/// What a worker did to one task in one day.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DayTaskView {
    pub title: String,
    #[serde(flatten)]
    pub row: RowView,
    /// What came of it, and what was written down, in order.
    pub acts: Vec<ActView>,
    pub untrusted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ActView {
    pub seq: i64,
    pub at: Timestamp,
    pub verb: String,
    /// Who, where that is another one: a reviewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Handle>,
    /// What it showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<ShownView>,
    /// `progress`, `comment`, `handoff` or `resolution`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What a run of a check, a review, a merge or a completion showed, and on what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckId>,
    /// The check's text, while the task still has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// `passed`, `failed`, `timed_out` or `could_not_run` of a check; `approved` or `rejected` of a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The tree had changes that no commit has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// Of a check: somebody says that it ran so. Onus did not run it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
}

impl ShownView {
    fn of(event: &Event, checks: &[Check]) -> Option<ShownView> {
        match event {
            Event::CheckRun(run) => Some(ShownView {
                check: Some(run.check.clone()),
                command: checks
                    .iter()
                    .find(|check| check.id() == run.check)
                    .map(|check| check.command.clone()),
                verdict: Some(run.verdict.name().to_owned()),
                commit: run.ground.commit.clone(),
                dirty: run.ground.dirty,
                stated: run.sandbox == RunPlace::Stated.name(),
                ..ShownView::default()
            }),
            Event::Reviewed(review) => Some(ShownView {
                verdict: Some(review.verdict.name().to_owned()),
                classification: Some(review.classification),
                commit: review.commit.clone(),
                ..ShownView::default()
            }),
            Event::Merged(merged) => {
                Some(ShownView { commit: Some(merged.commit.clone()), ..ShownView::default() })
            }
            Event::Completed(completed) => {
                let commit = completed.commit.clone()?;
                Some(ShownView { commit: Some(commit), ..ShownView::default() })
            }
            _ => None,
        }
    }
}

impl Onus {
    /// Sessions, the latest first.
    pub fn sessions(
        &mut self,
        task: Option<&TaskId>,
        worker: Option<&Handle>,
        limit: i64,
    ) -> Result<SessionsView, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::Sessions { task: task.cloned(), worker: worker.cloned(), limit })?
        {
            return Ok(answer);
        }
        let which = match (task, worker) {
            (Some(task), _) => Which::OfTask(task),
            (None, Some(worker)) => Which::OfWorker(worker),
            (None, None) => Which::All,
        };
        if let Some(worker) = worker {
            self.people(Some(worker))?;
        }
        let sessions = self.ask(|tx| {
            if let Some(task) = task
                && load::state(tx, task)?.is_none()
            {
                return Ok(None);
            }
            // The sessions of one task are few; how many of them are this worker's is seen only afterwards.
            let most = if task.is_some() && worker.is_some() { i64::MAX } else { limit };
            let mut found = effort::list(tx, which, most)?;
            found.retain(|session| worker.is_none_or(|worker| session.worker == *worker));
            found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            views(tx, &found).map(Some)
        })?;
        match (sessions, task) {
            (Some(sessions), _) => Ok(SessionsView { sessions }),
            (None, Some(task)) => Err(crate::show::unknown_task(task)),
            (None, None) => Ok(SessionsView { sessions: Vec::new() }),
        }
    }

    /// The session with this number.
    pub fn session(&mut self, id: Seq) -> Result<SessionView, Refusal> {
        if let Some(answer) = self.remote(|| calls::SessionOf { id })? {
            return Ok(answer);
        }
        let found = self.ask(|tx| {
            let found = effort::list(tx, Which::One(id), 1)?;
            views(tx, &found)
        })?;
        found.into_iter().next().ok_or_else(|| {
            Refusal::new(Code::UnknownName, format!("there is no session {id}")).hint("onus session list")
        })
    }

    /// What a worker did in one of its days.
    pub fn day(&mut self, worker: &Handle, day: Date) -> Result<DayView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Day { worker: worker.clone(), day })? {
            return Ok(answer);
        }
        let ask = crate::timesheet::Ask {
            from: day,
            to: day,
            worker: Some(worker.clone()),
            by: vec![onus_core::timesheet::Dimension::Task],
        };
        let sheet = self.timesheet(&ask)?;
        let tz = self.zone_of(Some(worker))?;
        let days = onus_host::zone::days(&tz, day, day).map_err(Refusal::invalid)?;
        let ids = self.session_ids(&ask)?;
        let mut left_out = 0;
        let (sessions, tasks) = self.ask(|tx| {
            let (mut listed, mut tasks) = (Vec::new(), Vec::new());
            let mut room = AnswerRoom::new(LIST_BYTES / 4);
            for id in &ids {
                match room.has(0) {
                    true => listed.extend(effort::list(tx, Which::One(*id), 1)?),
                    false => left_out += 1,
                }
            }
            let mut room = AnswerRoom::new(LIST_BYTES / 4);
            for row in &sheet.rows {
                let Some(task) = &row.task else { continue };
                let checks = load::task(tx, task)?.map(|stored| stored.task.spec.checks).unwrap_or_default();
                let mut acts = Vec::new();
                effort::acts(tx, task, worker, (days.begin(), days.end()), &mut |act| {
                    let words = act.note.as_ref().map_or(0, |(_, text)| text.len());
                    match (is_telling(&act), room.has(words)) {
                        (false, _) => {}
                        (true, true) => acts.push(ActView::new(act, worker, &checks)),
                        (true, false) => left_out += 1,
                    }
                    Ok(())
                })?;
                tasks.push(DayTaskView {
                    title: effort::title(tx, task)?,
                    row: row.clone(),
                    acts,
                    untrusted: true,
                });
            }
            Ok((views(tx, &listed)?, tasks))
        })?;
        Ok(DayView {
            worker: worker.clone(),
            tz,
            day,
            sessions,
            tasks,
            left_out,
            total_seconds: sheet.total_seconds,
            total_billable_seconds: sheet.total_billable_seconds,
            total_tokens: sheet.total_tokens,
            total_cost: sheet.total_cost,
            currency: sheet.currency,
        })
    }
}

/// Renewals tell that somebody lives, not what came of it.
fn is_telling(act: &effort::Act) -> bool {
    !matches!(act.event, Event::Renewed(_))
}

impl ActView {
    fn new(act: effort::Act, worker: &Handle, checks: &[Check]) -> ActView {
        let (note, text) = act.note.unzip();
        ActView {
            seq: act.seq,
            at: act.at,
            verb: act.event.verb().to_owned(),
            by: Some(act.by).filter(|by| by != worker),
            evidence: ShownView::of(&act.event, checks),
            note,
            text,
        }
    }
}

/// Sessions with what was used up in them.
pub(crate) fn views(tx: &mut dyn Tx, found: &[Listed]) -> StoreResult<Vec<SessionView>> {
    let ids = found.iter().map(|session| session.id);
    let mut used: HashMap<Seq, Counts> = HashMap::new();
    effort::used_in(tx, ids, Seq::MAX, &Default::default(), &mut |one| {
        used.insert(one.session, one.counts());
        Ok(())
    })?;
    let counts = |id: &Seq| used.get(id).copied().unwrap_or_default();
    Ok(found.iter().map(|session| SessionView::new(session, &counts(&session.id))).collect())
}
