//! Short answers: what a model needs of a document, and whose words they are. Titles, bodies, notes and handoffs are
//! others' words: data, marked `untrusted`, with who said them (threat 1 of the rules).

use onus_app::finish::FinishView;
use onus_app::inbox::{InboxView, MessageView};
use onus_app::submit::Receipt;
use onus_app::view::{AddView, ChecksView, ClaimView, ReadyView, StoryView, TaskView};
use onus_core::id::{Handle, OriginRef, Role, TaskId, TaskType, WorkstationName};
use onus_core::task::{Check, Criterion, Priority, Risk, StateName};
use onus_core::text::shortened;
use onus_core::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

/// How many notes a story tells, the newest last, and how much of each, and of a check's output.
const NOTES: usize = 8;
const NOTE: usize = 4_000;
const OUTPUT: usize = 2_000;

/// A task in few words.
#[derive(Debug, Serialize)]
pub(crate) struct Card<'a> {
    id: &'a TaskId,
    title: &'a str,
    state: StateName,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<Risk>,
    kind: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    task_type: Option<&'a TaskType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a Role>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scope: &'a [String],
    #[serde(skip_serializing_if = "<[TaskId]>::is_empty")]
    depends_on: &'a [TaskId],
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_on: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<HoldingSummary<'a>>,
    /// Whose words the title and the body are.
    asked_by: &'a Handle,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a OriginRef>,
    untrusted: bool,
}

#[derive(Debug, Serialize)]
struct HoldingSummary<'a> {
    worker: &'a Handle,
    workstation: &'a WorkstationName,
    expires_at: Timestamp,
    /// Nothing else is allowed.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    constraints: &'a [String],
}

impl<'a> From<&'a TaskView> for Card<'a> {
    fn from(task: &'a TaskView) -> Card<'a> {
        Card {
            id: &task.id,
            title: &task.title,
            state: task.state,
            priority: task.priority,
            risk: (task.risk != Risk::default()).then_some(task.risk),
            kind: &task.kind,
            task_type: task.task_type.as_ref(),
            role: task.role.as_ref(),
            scope: &task.scope,
            depends_on: &task.depends_on,
            blocked_on: task.blocked_on.as_deref(),
            holder: task.assignment.as_ref().map(|held| HoldingSummary {
                worker: &held.assignee,
                workstation: &held.workstation,
                expires_at: held.lease_expires_at,
                constraints: &held.constraints,
            }),
            asked_by: &task.created_by,
            origin: task.origin_ask_ref.as_ref(),
            untrusted: true,
        }
    }
}

/// A task with what its holder must read.
#[derive(Debug, Serialize)]
struct Sheet<'a> {
    #[serde(flatten)]
    card: Card<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Check]>::is_empty")]
    checks: &'a [Check],
    /// What another worker ticks before it can complete.
    #[serde(skip_serializing_if = "<[Criterion]>::is_empty")]
    criteria: &'a [Criterion],
}

impl<'a> From<&'a TaskView> for Sheet<'a> {
    fn from(task: &'a TaskView) -> Sheet<'a> {
        Sheet {
            card: Card::from(task),
            body: task.body.as_deref(),
            checks: &task.checks,
            criteria: &task.criteria,
        }
    }
}

pub(crate) fn ready(view: &ReadyView) -> Value {
    let tasks: Vec<Card<'_>> = view.tasks.iter().map(Card::from).collect();
    let told = |rows: &[onus_app::view::NotReadyView]| -> Vec<Value> {
        let row = |row: &onus_app::view::NotReadyView| json!({ "task": row.task, "reasons": row.reasons, "waits_for": row.waits_for });
        rows.iter().take(tasks.len().max(5)).map(row).collect()
    };
    json!({
        "tasks": tasks,
        "not_ready": told(&view.not_ready),
        "not_for_you": told(&view.not_for_caller),
        "counts": view.counts,
    })
}

pub(crate) fn story(view: &StoryView) -> Value {
    let notes = &view.notes[view.notes.len().saturating_sub(NOTES)..];
    // Where what is not told here can be asked for.
    let earlier = if view.notes.len() > NOTES { notes.first().map(|note| note.seq) } else { view.earlier };
    let notes: Vec<Value> = notes
        .iter()
        .map(|note| {
            let text = shortened(&note.text, NOTE);
            json!({ "kind": note.kind, "by": note.by, "at": note.at, "text": text, "untrusted": true })
        })
        .collect();
    json!({
        "task": Sheet::from(&view.task),
        "dependencies": view.dependencies,
        "dependents": view.dependents,
        "handoff": view.handoff,
        "reviews": view.reviews,
        "notes": notes,
        "earlier_notes": view.notes.len().saturating_sub(NOTES),
        "earlier": earlier,
    })
}

pub(crate) fn grant(receipt: &Receipt, directory: Option<&Path>, warning: Option<String>) -> Value {
    let view = ClaimView::from(receipt);
    let mut answer = json!({ "task": Sheet::from(&view.task), "lease": view.lease });
    if let Some(directory) = directory {
        answer["directory"] = json!(directory);
    }
    if let Some(warning) = warning {
        answer["warning"] = json!(warning);
    }
    answer
}

pub(crate) fn changed(receipt: &Receipt) -> Value {
    json!({ "task": Card::from(&TaskView::from(&receipt.task)) })
}

pub(crate) fn finished(view: &FinishView) -> Value {
    json!({
        "task": Card::from(&view.task),
        "landed": view.landed,
        "checks": view.checks,
        "handoff": view.handoff,
    })
}

pub(crate) fn asked(receipt: &Receipt) -> Value {
    let view = AddView::from(receipt);
    let mut told = json!({ "outcome": view.outcome, "task": Card::from(&view.task) });
    if let Some(detail) = view.detail {
        told["detail"] = json!(detail);
    }
    told
}

/// How many things of an inbox are told.
const ITEMS: usize = 20;

pub(crate) fn inbox(view: &InboxView) -> Value {
    let told = view.items.iter().take(ITEMS).map(|item| {
        json!({
            "kind": item.kind, "task": item.task, "from": item.from, "at": item.at,
            "text": shortened(&item.text, OUTPUT), "action": item.action, "untrusted": true,
        })
    });
    json!({ "items": told.collect::<Vec<Value>>(), "more": view.more || view.items.len() > ITEMS })
}

pub(crate) fn messages(messages: &[MessageView]) -> Value {
    let told = messages.iter().map(|message| {
        let mut told = json!({
            "task": message.task, "from": message.from, "kind": message.kind, "text": shortened(&message.text, NOTE),
            "untrusted": true,
        });
        if let Some(place) = &message.place {
            told["place"] = json!(place);
        }
        told
    });
    Value::Array(told.collect())
}

pub(crate) fn checks(view: &ChecksView) -> Value {
    let checks: Vec<Value> = view
        .checks
        .iter()
        .map(|check| {
            let mut told =
                json!({ "id": check.id, "command": check.command, "kind": check.kind, "state": check.state });
            if let Some(run) = &check.run {
                told["run"] = json!({
                    "verdict": run.verdict, "exit_code": run.exit_code, "at": run.at, "commit": run.commit,
                    "dirty": run.dirty, "output": tail(&run.output),
                });
                if run.stated {
                    told["run"]["stated"] = true.into();
                }
            }
            told
        })
        .collect();
    json!({ "task": view.task, "checks": checks, "untrusted": true })
}

/// The end of an output: there it says what failed.
fn tail(output: &str) -> &str {
    let mut from = output.len().saturating_sub(OUTPUT);
    while !output.is_char_boundary(from) {
        from += 1;
    }
    &output[from..]
}
