//! What waits for a person, and the command that gives it.

use super::stuck::WINDOW;
use crate::Onus;
use crate::timesheet::ApprovalView;
use crate::view::HeldView;
use onus_core::evidence::{self as rules, CheckVerdict, ReviewVerdict};
use onus_core::handoff::Handoff;
use onus_core::id::{Handle, TaskId};
use onus_core::refusal::Refusal;
use onus_core::settings::ReviewPolicy;
use onus_core::task::{CheckState, StateName, Task};
use onus_core::time::Date;
use onus_core::timesheet::week_before;
use onus_core::workstation::WorkstationState;
use onus_store::error::Result as StoreResult;
use onus_store::port::Tx;
use onus_store::read::report::{self, Span, Wanting};
use onus_store::read::show;
use onus_store::{evidence, load, registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a person is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WantKind {
    /// A proposed check may not run until a person approves it.
    ApproveCheck,
    /// The work is there, and another one has to look at it.
    Review,
    /// A dependency should not be waited for.
    ApproveException,
    /// A blocked task waits for a person's answer.
    Answer,
    /// A limit stopped a task, and a person says whether it goes on.
    Budget,
    /// A workstation is closed until a person opens it.
    Restore,
    /// A week of somebody's time is not approved.
    ApproveTimesheet,
}

impl WantKind {
    pub const fn name(self) -> &'static str {
        match self {
            WantKind::ApproveCheck => "approve_check",
            WantKind::Review => "review",
            WantKind::ApproveException => "approve_exception",
            WantKind::Answer => "answer",
            WantKind::Budget => "budget",
            WantKind::Restore => "restore",
            WantKind::ApproveTimesheet => "approve_timesheet",
        }
    }
}

/// One thing that needs a person.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WantView {
    pub kind: WantKind,
    /// The task, workstation or worker that it is about.
    pub about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub detail: String,
    /// Whom, where one person is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whom: Option<Handle>,
    /// The command that does it.
    pub command: String,
    /// The call of the HTTP interface that does it, where nothing more has to be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallView>,
    pub untrusted: bool,
}

/// A call of the HTTP interface: a POST.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallView {
    pub path: String,
    pub body: serde_json::Value,
}

impl WantView {
    fn of(kind: WantKind, about: impl ToString, detail: String, command: String) -> WantView {
        let about = about.to_string();
        WantView { kind, about, task: None, detail, whom: None, command, call: None, untrusted: true }
    }

    fn call(self, path: String, body: serde_json::Value) -> WantView {
        WantView { call: Some(CallView { path, body }), ..self }
    }

    fn task(self, task: &TaskId) -> WantView {
        WantView { task: Some(task.clone()), ..self }
    }
}

impl Onus {
    pub(crate) fn wants(&mut self, held: &[HeldView]) -> Result<Vec<WantView>, Refusal> {
        let policy = self.settings.complete.review;
        let map = self.policy()?;
        let mut wants = self.ask(|tx| {
            let mut wants = Vec::new();
            for found in report::wanting(tx, WINDOW)? {
                wants.extend(checks(&found));
                wants.extend(exceptions(&found));
                wants.extend(answer(tx, &found)?);
            }
            if policy != ReviewPolicy::Never {
                for held in held {
                    let Some(stored) = load::task(tx, &held.task)? else { continue };
                    let high = rules::is_high_risk(&map, &stored.task.spec);
                    if policy == ReviewPolicy::Always || high {
                        wants.extend(review(tx, &stored.task)?);
                    }
                }
            }
            for row in registry::workstations(tx)? {
                let place = row.workstation;
                if place.state == WorkstationState::Quarantined {
                    let why = place.reason.unwrap_or_default();
                    let command = format!("onus workstation restore {}", place.name);
                    let path = format!("/v1/workstations/{}/restore", place.name);
                    let want = WantView::of(WantKind::Restore, &place.name, why, command);
                    wants.push(want.call(path, json!({})));
                }
            }
            Ok(wants)
        })?;
        wants.extend(self.unapproved()?);
        Ok(wants)
    }

    /// Whose last week nobody approved; only where the team approves time at all.
    fn unapproved(&mut self) -> Result<Vec<WantView>, Refusal> {
        if !self.ask(report::is_approving)? {
            return Ok(Vec::new());
        }
        let mut wants = Vec::new();
        for worker in self.people(None)? {
            let today = self.today(Some(&worker.handle))?;
            let (from, to) = week_before(today);
            let days = onus_host::zone::days(&worker.tz, from, to).map_err(Refusal::invalid)?;
            let span = Span { from: days.begin(), to: days.end() };
            if !self.ask(|tx| report::worked(tx, &worker.handle, span))? {
                continue;
            }
            let approvals = self.approvals(&worker, from, to)?;
            if !approvals.iter().any(|approval| covers(approval, (from, to))) {
                let detail = format!("{from} to {to}");
                let name = &worker.handle;
                let command = format!("onus timesheet approve --worker {name} --from {from} --to {to}");
                let body = json!({ "worker": name, "from": from, "to": to });
                let want = WantView::of(WantKind::ApproveTimesheet, name, detail, command);
                wants.push(want.call("/v1/timesheets/approve".to_owned(), body));
            }
        }
        Ok(wants)
    }
}

/// Approved, and nothing has changed since.
fn covers(approval: &ApprovalView, (from, to): (Date, Date)) -> bool {
    approval.from <= from && approval.to >= to && approval.differences.is_empty()
}

fn checks(found: &Wanting) -> Vec<WantView> {
    let proposed = found.checks.iter().filter(|check| check.state == CheckState::Proposed);
    proposed
        .map(|check| {
            let (task, id) = (&found.task, check.id());
            let command = format!("onus check {task} --approve {id}");
            let body = json!({ "action": "approve", "check": id });
            WantView::of(WantKind::ApproveCheck, task, check.command.clone(), command)
                .task(task)
                .call(format!("/v1/tasks/{task}/checks"), body)
        })
        .collect()
}

fn exceptions(found: &Wanting) -> Vec<WantView> {
    let asked = found.exceptions.iter().filter(|(_, exception)| exception.approved_by.is_none());
    asked
        .map(|(on, exception)| {
            let detail =
                format!("{} asks not to wait for {on}: {}", exception.requested_by, exception.reason);
            let command = format!("onus exception approve {} --on {on}", found.task);
            WantView::of(WantKind::ApproveException, &found.task, detail, command).task(&found.task)
        })
        .collect()
}

fn answer(tx: &mut dyn Tx, found: &Wanting) -> StoreResult<Option<WantView>> {
    let whom = found.blocker.as_deref().and_then(|on| on.strip_prefix("person:")?.parse().ok());
    let Some(whom) = whom.filter(|_| found.state == StateName::Blocked) else {
        return Ok(None);
    };
    let command = format!("onus say {} TEXT", found.task);
    let limits = load::limits::stopped_by(tx, &found.task)?;
    let (kind, detail) = match limits.as_slice() {
        [] => (WantKind::Answer, question(tx, found)?),
        limits => {
            let all: Vec<&str> = limits.iter().map(|one| one.detail.as_str()).collect();
            (WantKind::Budget, format!("{}: {}", found.title, all.join("; ")))
        }
    };
    let want = WantView::of(kind, &found.task, detail, command).task(&found.task);
    Ok(Some(WantView { whom: Some(whom), ..want }))
}

/// What is asked, behind what it is about.
fn question(tx: &mut dyn Tx, found: &Wanting) -> StoreResult<String> {
    let said = show::last_note(tx, &found.task, "handoff")?.and_then(|text| Handoff::parse(&text).ok());
    Ok(match said.and_then(|handoff| handoff.summary) {
        Some(words) => format!("{}: {words}", found.title),
        None => found.title.clone(),
    })
}

/// Something was shown, and nobody has approved it.
fn review(tx: &mut dyn Tx, task: &Task) -> StoreResult<Option<WantView>> {
    let shown = evidence::evidence(tx, &task.id)?;
    let Some(last) = shown.iter().filter(|run| run.verdict == CheckVerdict::Passed).map(|run| run.seq).max()
    else {
        return Ok(None);
    };
    let reviews = evidence::reviews(tx, &task.id)?;
    let settled = reviews.iter().any(|review| review.verdict == ReviewVerdict::Approved || review.seq > last);
    let command = format!("onus review {} --approve --as-implemented", task.id);
    let want = WantView::of(WantKind::Review, &task.id, task.spec.title.clone(), command).task(&task.id);
    Ok((!settled).then_some(want))
}
