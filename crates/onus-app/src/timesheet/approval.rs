//! `timesheet approve`: a person's word about a period, and what has changed since.

use super::{people, read};
use crate::Onus;
use crate::idempotent_admin::{Asker, once};
use crate::registry::record;
use crate::remote::calls;
use onus_core::event::Event;
use onus_core::hash::Digest;
use onus_core::id::{Handle, Seq};
use onus_core::refusal::Refusal;
use onus_core::session::Counts;
use onus_core::settings::EffortSettings;
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::{Approving, Difference, Dimension, Fingerprint, Person, approve, differences};
use onus_core::worker::Worker;
use onus_store::error::Result as StoreResult;
use onus_store::port::{Outcome, Tx};
use onus_store::read::effort::{self, Approval};
use onus_store::{apply, load};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// A period that was approved, and what is other than it was then.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// The ledger entry.
    pub seq: i64,
    pub worker: Handle,
    pub from: Date,
    pub to: Date,
    pub by: Handle,
    pub at: Timestamp,
    pub fingerprint: String,
    /// Whether the record still has what was approved. If not, it was tampered with: `ledger verify` tells where.
    pub intact: bool,
    /// What was corrected or added since.
    pub differences: Vec<Difference>,
}

/// The answer to `timesheet approve`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ApprovedView {
    /// `created`, or `existing` where the very same was approved already.
    pub outcome: String,
    pub worker: Handle,
    pub from: Date,
    pub to: Date,
    pub fingerprint: String,
    pub total_seconds: i64,
    /// What is other than at the approval before this one.
    pub differences: Vec<Difference>,
}

/// By what a difference is told.
const BY: [Dimension; 2] = [Dimension::Task, Dimension::Day];

impl Onus {
    pub fn approve_timesheet<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        worker: &Handle,
        (from, to): (Date, Date),
    ) -> Result<ApprovedView, Refusal> {
        let asked = asker.into().asks(&calls::ApproveTimesheet { worker: worker.clone(), from, to })?;
        if let Some(answer) = self.remote_once(&asked)? {
            return Ok(answer);
        }
        let Some(worker) = self.people(Some(worker))?.into_iter().next() else {
            return Err(crate::submit::unexpected("a worker that is there and is not"));
        };
        let person = people(std::slice::from_ref(&worker), from, to)?.remove(0);
        let settings = self.settings.effort.clone();
        once(self.store.as_mut(), &asked, |tx, caller| {
            let now = tx.now()?.wall;
            let printed = print(tx, &worker, &person, (from, to), Seq::MAX)?;
            let last = latest(effort::approvals(tx, &worker.handle, (from, to))?)
                .into_iter()
                .rfind(|approval| (approval.from, approval.to) == (from, to));
            let period = Approving {
                worker: worker.handle.clone(),
                from,
                to,
                ends_at: person.days.end(),
                running: printed.running,
                fingerprint: printed.digest,
                last: last.as_ref().map(|approval| approval.fingerprint),
            };
            let (by, event) = approve(caller, &period, now)?;
            let differences = match &last {
                Some(last) => changed(tx, &person, last.seq, &settings)?,
                None => Vec::new(),
            };
            let view = ApprovedView {
                outcome: if event.is_some() { "created" } else { "existing" }.to_owned(),
                worker: worker.handle.clone(),
                from,
                to,
                fingerprint: printed.digest.to_string(),
                total_seconds: printed.seconds,
                differences,
            };
            let Some(event) = event else {
                return Ok(Outcome::Rollback(view));
            };
            let seq = load::workspace(tx)?.last_seq + 1;
            if let Event::TimesheetApproved(approved) = &event {
                apply::approval(tx, seq, approved)?;
            }
            record(tx, &by, event)?;
            Ok(Outcome::Commit(view))
        })
    }

    /// What was approved of some days of a worker, and what has changed since.
    pub fn approvals_of(
        &mut self,
        worker: &Handle,
        from: Date,
        to: Date,
    ) -> Result<Vec<ApprovalView>, Refusal> {
        if let Some(answer) = self.remote(|| calls::ApprovalsOf { worker: worker.clone(), from, to })? {
            return Ok(answer);
        }
        let found = self.people(Some(worker))?;
        found.first().map_or(Ok(Vec::new()), |worker| self.approvals(worker, from, to))
    }

    /// The same of a worker whose row is at hand.
    pub(crate) fn approvals(
        &mut self,
        worker: &Worker,
        from: Date,
        to: Date,
    ) -> Result<Vec<ApprovalView>, Refusal> {
        let settings = self.settings.effort.clone();
        let found = self.ask(|tx| effort::approvals(tx, &worker.handle, (from, to)))?;
        let mut views = Vec::new();
        for approval in latest(found) {
            let person = people(std::slice::from_ref(worker), approval.from, approval.to)?.remove(0);
            let days = (approval.from, approval.to);
            views.push(self.ask(|tx| {
                let then = print(tx, worker, &person, days, approval.seq)?;
                Ok(ApprovalView {
                    seq: approval.seq,
                    worker: worker.handle.clone(),
                    from: approval.from,
                    to: approval.to,
                    by: approval.by.clone(),
                    at: approval.at,
                    fingerprint: approval.fingerprint.to_string(),
                    intact: then.digest == approval.fingerprint,
                    differences: changed(tx, &person, approval.seq, &settings)?,
                })
            })?);
        }
        Ok(views)
    }
}

/// Of several approvals of the same days the last one counts.
fn latest(found: Vec<Approval>) -> Vec<Approval> {
    let mut by_days: BTreeMap<(Date, Date), Approval> = BTreeMap::new();
    for approval in found {
        by_days.insert((approval.from, approval.to), approval);
    }
    by_days.into_values().collect()
}

/// What is other than it was at the entry `seq`.
fn changed(
    tx: &mut dyn Tx,
    person: &Person,
    seq: Seq,
    settings: &EffortSettings,
) -> StoreResult<Vec<Difference>> {
    let mut rows = |as_of| {
        let read = read(tx, vec![person.clone()], Some(&person.handle), as_of)?;
        read.rows(tx, &BY, settings)
    };
    Ok(differences(&rows(seq)?, &rows(Seq::MAX)?))
}

struct Printed {
    digest: Digest,
    seconds: i64,
    running: Option<Seq>,
}

/// The fingerprint of what a worker did in some days, as the record was at the entry `as_of`.
fn print(
    tx: &mut dyn Tx,
    worker: &Worker,
    person: &Person,
    (from, to): (Date, Date),
    as_of: Seq,
) -> StoreResult<Printed> {
    let (begin, end) = (person.days.begin(), person.days.end());
    let period = effort::Period { from: begin, to: end, as_of, worker: Some(&worker.handle) };
    let corrections = effort::corrections(tx, as_of)?;
    let mut sessions: BTreeMap<Seq, (String, Timestamp, Timestamp)> = BTreeMap::new();
    let mut running = None;
    effort::sessions(tx, &period, &corrections, &mut |session| {
        if session.is_running {
            running = Some(session.id);
        }
        if !person.days.touch(session.from, session.to) {
            return Ok(());
        }
        let clipped = (session.from.max(begin), session.to.min(end));
        sessions.insert(session.id, (session.task.to_owned(), clipped.0, clipped.1));
        Ok(())
    })?;
    let mut used: HashMap<Seq, Counts> = HashMap::new();
    effort::used_in(tx, sessions.keys().copied(), as_of, &corrections, &mut |found| {
        // Usage counts on the day on which its session began.
        if found.began >= begin && found.began < end {
            used.insert(found.session, found.counts());
        }
        Ok(())
    })?;
    let mut print = Fingerprint::new(&worker.handle, &worker.tz, from, to);
    let mut seconds = 0;
    for (id, (task, from, to)) in &sessions {
        print.session(*id, task, *from, *to, &used.get(id).copied().unwrap_or_default());
        seconds += to.since(*from).0 / 1_000;
    }
    Ok(Printed { digest: print.digest(), seconds, running })
}
