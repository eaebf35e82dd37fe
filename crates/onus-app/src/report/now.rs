//! `report now`: what was done since yesterday, what is stuck and why, and what needs a person.

mod needs_person;
mod stuck;

pub use needs_person::{CallView, WantKind, WantView};
pub use stuck::{StuckKind, StuckView};

use super::When;
use crate::Onus;
use crate::answer_room::AnswerRoom;
use crate::mirror::MirrorView;
use crate::remote::calls;
use crate::view::HeldView;
use onus_core::event::Event;
use onus_core::evidence::CheckVerdict;
use onus_core::id::{CommitId, Handle, TaskId, WorkstationName};
use onus_core::ledger::Entry;
use onus_core::refusal::Refusal;
use onus_core::report::{DayFlow, Flow};
use onus_core::task::{State, StateName};
use onus_core::time::{Millis, Timestamp};
use onus_core::timesheet::days_before;
use onus_host::zone;
use onus_store::error::{Result as StoreResult, StoreError};
use onus_store::port::Tx;
use onus_store::read::report::{self, Span};
use onus_store::read::survey;
use onus_store::{evidence, load, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most completions that are told one by one.
const COMPLETED: i64 = 50;
/// So many days of flow.
const DAYS: u16 = 14;
/// Since yesterday evening, more or less.
const USUAL: Millis = Millis::hours(14);

/// So much is told of what was completed, of what is stuck and of what needs a person.
const ROOM: usize = 256 * 1024;

/// What happened, what is stuck, and what waits for whom.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NowView {
    pub since: Timestamp,
    pub until: Timestamp,
    /// The newest first.
    pub completed: Vec<CompletedView>,
    /// Whether there were more than these.
    pub more_completed: bool,
    pub stuck: Vec<StuckView>,
    /// Outside systems that were not told, and why.
    #[serde(default)]
    pub mirrors: Vec<MirrorView>,
    /// What needs a person, and how to give it.
    pub wants: Vec<WantView>,
    /// How much more there is of both than is told here.
    #[serde(default)]
    pub more_stuck: usize,
    #[serde(default)]
    pub more_wants: usize,
    /// Who works now.
    pub held: Vec<HeldView>,
    pub counts: BTreeMap<String, i64>,
    /// Leases lost to a takeover since then.
    pub leases_lost: i64,
    /// The last days, the earliest first.
    pub flow: Vec<DayFlow>,
}

/// A task that was completed, with what shows it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompletedView {
    pub task: TaskId,
    pub title: String,
    #[serde(rename = "type")]
    pub task_type: Option<String>,
    pub by: Handle,
    pub workstation: Option<WorkstationName>,
    pub at: Timestamp,
    pub seq: i64,
    pub forced: bool,
    pub commit: Option<CommitId>,
    /// Checks that the task has, and those whose last run passed.
    pub checks: usize,
    pub passed: usize,
    /// How many of those that passed are only stated: Onus did not run them.
    #[serde(default)]
    pub stated: usize,
    /// Who approved the work.
    pub approved_by: Vec<Handle>,
    /// The resolution.
    pub resolution: Option<String>,
    pub untrusted: bool,
}

impl Onus {
    /// The morning report, with days as the one who asks counts them.
    pub fn report_now(&mut self, actor: Option<&Handle>, when: &When) -> Result<NowView, Refusal> {
        if let Some(answer) = self.remote(|| calls::ReportNow { when: when.clone() })? {
            return Ok(answer);
        }
        let span = self.span(when, actor, USUAL)?;
        let flow = self.flow(actor, span.to)?;
        let held = self.held()?;
        let (mut wants, mut stuck) = (self.wants(&held)?, self.stuck(&held)?);
        let (mut room, all) = (AnswerRoom::new(ROOM), wants.len());
        wants.retain(|want| room.has(2 * want.detail.len()));
        let more_wants = all - wants.len();
        let (mut room, all) = (AnswerRoom::new(ROOM), stuck.len());
        stuck.retain(|one| room.has(one.title.len() + one.detail.len()));
        let more_stuck = all - stuck.len();
        let mut mirrors = self.mirrors()?.mirrors;
        mirrors.retain(MirrorView::is_stuck);
        let (mut completed, leases_lost, counts, flow) = self.ask(|tx| {
            let completed = completed(tx, span)?;
            let mut lost = 0;
            report::times(tx, "taken_over", span, &mut |_| lost += 1)?;
            let counts = survey::states(tx)?;
            Ok((completed, lost, counts.clone(), counted(tx, flow, &counts)?))
        })?;
        let (mut room, all) = (AnswerRoom::new(ROOM), completed.len());
        completed.retain(|one| room.has(one.resolution.as_ref().map_or(0, String::len)));
        Ok(NowView {
            since: span.from,
            until: span.to,
            more_completed: all as i64 >= COMPLETED || completed.len() < all,
            completed,
            stuck,
            more_stuck,
            more_wants,
            mirrors,
            wants,
            held,
            counts: counts.into_iter().map(|(state, count)| (state.name().to_owned(), count)).collect(),
            leases_lost,
            flow,
        })
    }

    /// How tasks that belong together were asked for and completed, day by day. What was dropped is no part of it.
    pub fn burn_up(&mut self, actor: Option<&Handle>, tasks: &[TaskId]) -> Result<Vec<DayFlow>, Refusal> {
        let now = self.now()?;
        let mut flow = self.flow(actor, now.plus(Millis(1)))?;
        let (scope, done) = self.ask(|tx| {
            let (mut scope, mut done) = (0, 0);
            for id in tasks {
                let Some(task) = load::task(tx, id)?.map(|stored| stored.task) else { continue };
                match &task.state {
                    State::Dropped(_) => continue,
                    State::Complete(closing) => {
                        done += 1;
                        flow.count("completed", closing.at);
                    }
                    _ => {}
                }
                scope += 1;
                flow.count("added", task.created_at);
            }
            Ok((scope, done))
        })?;
        Ok(flow.days(scope, done))
    }

    /// The days up to a moment, without their counts.
    fn flow(&mut self, actor: Option<&Handle>, to: Timestamp) -> Result<Flow, Refusal> {
        let zone = self.zone_of(actor)?;
        let last = zone::date(&zone, to.plus(Millis(-1))).map_err(Refusal::invalid)?;
        Ok(Flow::new(zone::days(&zone, days_before(last, DAYS - 1), last).map_err(Refusal::invalid)?))
    }
}

fn counted(tx: &mut dyn Tx, mut flow: Flow, counts: &[(StateName, i64)]) -> StoreResult<Vec<DayFlow>> {
    let span = Span { from: flow.begin(), to: flow.end() };
    for verb in Flow::VERBS {
        report::times(tx, verb, span, &mut |at| flow.count(verb, at))?;
    }
    let of = |wanted: StateName| counts.iter().filter(|(state, _)| *state == wanted).map(|(_, n)| n).sum();
    let all: i64 = counts.iter().map(|(_, count)| count).sum();
    let dropped: i64 = of(StateName::Dropped);
    Ok(flow.days(all - dropped, of(StateName::Complete)))
}

fn completed(tx: &mut dyn Tx, span: Span) -> StoreResult<Vec<CompletedView>> {
    let entries = report::happened(tx, "completed", span, COMPLETED)?;
    entries.iter().map(|entry| completion(tx, entry)).filter_map(Result::transpose).collect()
}

fn completion(tx: &mut dyn Tx, entry: &Entry) -> StoreResult<Option<CompletedView>> {
    let stamped = entry.open().map_err(StoreError::Corrupt)?;
    let (Event::Completed(event), Some(task)) = (stamped.event, stamped.task) else { return Ok(None) };
    let Some(brief) = report::brief(tx, &task)? else { return Ok(None) };
    let runs = evidence::evidence(tx, &task)?;
    let last_run = |check: &onus_core::task::Check| {
        let (id, last) = (check.id(), entry.seq);
        runs.iter().filter(|run| run.check == id && run.seq < last).max_by_key(|run| run.seq)
    };
    let passed: Vec<_> =
        brief.checks.iter().filter_map(last_run).filter(|run| run.verdict == CheckVerdict::Passed).collect();
    let reviews = evidence::reviews(tx, &task)?;
    let approved =
        reviews.into_iter().filter(|review| review.verdict.name() == "approved" && review.seq < entry.seq);
    Ok(Some(CompletedView {
        approved_by: approved.map(|review| review.by).collect(),
        resolution: read::show::note(tx, entry.seq)?,
        title: brief.title,
        task_type: brief.task_type,
        checks: brief.checks.len(),
        stated: passed.iter().filter(|run| run.stated).count(),
        passed: passed.len(),
        task,
        by: stamped.actor,
        workstation: stamped.workstation,
        at: entry.at,
        seq: entry.seq,
        forced: event.forced,
        commit: event.commit,
        untrusted: true,
    }))
}
