//! What can be done to one task. What each takes is its type in `onus_app::input`.

use super::body::{Nothing, bar};
use crate::route::{
    After, Answer, Asked, Next, Rendered, Route, command, get, post, post_then, submitting, unanswered,
};
use crate::store::Store;
use onus_app::Onus;
use onus_app::finish::FinishView;
use onus_app::handoff::HandoffView;
use onus_app::inbox::MessagesView;
use onus_app::input::{self, Order, VerbInput};
use onus_app::merge::MergeView;
use onus_app::submit::Receipt;
use onus_app::view::{ChangeView, ChecksView, ClaimView, TaskView};
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    let changed = |receipt: &Receipt| ChangeView { task: TaskView::from(&receipt.task) };
    vec![
        command::<input::ClaimInput, ClaimView>("/v1/tasks/{id}/claim", "claim", "Take a task", granted),
        post::<input::RenewInput, _>("/v1/tasks/{id}/renew", "renew", "Stay its holder for longer", changed),
        post_then::<input::ReleaseInput, _>(
            "/v1/tasks/{id}/release",
            "release",
            "Give a task back to the queue",
            secured,
        ),
        command::<input::TakeoverInput, ClaimView>(
            "/v1/tasks/{id}/takeover",
            "takeover",
            "Take over a task whose lease has expired",
            seized,
        ),
        post::<input::BlockInput, _>("/v1/tasks/{id}/block", "block", "Say what the work waits for", changed),
        post::<input::UnblockInput, _>(
            "/v1/tasks/{id}/unblock",
            "unblock",
            "Go on: what the work waited for is there",
            changed,
        ),
        post::<input::NoteInput, _>(
            "/v1/tasks/{id}/notes",
            "note",
            "Write down progress, or comment on a task",
            changed,
        ),
        get(
            "/v1/tasks/{id}/messages",
            "messages",
            "What was said to you about a task, and not marked as read",
            messages,
        ),
        post::<input::SayInput, _>(
            "/v1/tasks/{id}/messages",
            "say",
            "Say something to the holder of a task, or answer what it waits for",
            changed,
        ),
        post::<ReadInput, _>(
            "/v1/tasks/{id}/messages/read",
            "read",
            "You have read what was said to you about a task, up to an entry",
            changed,
        ),
        get("/v1/tasks/{id}/checks", "checks", "A task's checks, each with its last run", checks),
        post_then::<input::CheckInput, _>(
            "/v1/tasks/{id}/checks",
            "check",
            "Add, approve or remove a check, or record what a run of it showed",
            |store, receipt| store.checks(&receipt.task.id),
        ),
        get("/v1/tasks/{id}/handoffs", "last_handoff", "The last handoff of a task", last_handoff),
        post_then::<input::HandoffInput, _>(
            "/v1/tasks/{id}/handoffs",
            "handoff",
            "Write down what the next holder should know, and go on",
            |store, receipt| store.handoff_of(&receipt.task.id),
        ),
        post::<input::ReviewInput, _>(
            "/v1/tasks/{id}/reviews",
            "review",
            "Say what somebody else's work is",
            changed,
        ),
        submitting::<input::MergeInput, MergeView>(
            "/v1/tasks/{id}/merge",
            "merge",
            "Bring the commits of a task that you hold into the main of record, where the server has its working tree",
            merge,
        ),
        submitting::<input::CompleteInput, FinishView>(
            "/v1/tasks/{id}/complete",
            "complete",
            "Finish a task that you hold: where the server has its working tree its checks are run and its commits land",
            complete,
        ),
        post::<input::ReopenInput, _>(
            "/v1/tasks/{id}/reopen",
            "reopen",
            "Open a complete task again: a person, or a verifier",
            changed,
        ),
        post_then::<input::DropInput, _>(
            "/v1/tasks/{id}/drop",
            "drop",
            "Give a task up for good: people only",
            secured,
        ),
    ]
}

fn merge(store: &mut Store, asked: &Asked, input: input::MergeInput) -> Result<Next, Refusal> {
    let task = asked.task()?;
    match store.lies_here(task)? {
        true => Ok(Next::Land(Box::new(input.landing(task.clone(), asked.key.clone(), asked.version)))),
        false => Err(store.lies_elsewhere(task)),
    }
}

/// Force only states, and so does whoever has worked where this server sees nothing.
fn complete(store: &mut Store, asked: &Asked, input: input::CompleteInput) -> Result<Next, Refusal> {
    let task = asked.task()?;
    if !input.force && store.lies_here(task)? {
        return Ok(Next::Land(Box::new(input.landing(task.clone(), asked.key.clone(), asked.version))));
    }
    let order = input.order(store, Some(task))?;
    Ok(Next::Submit {
        calls: vec![asked.envelope(asked.key.clone(), order)?],
        tell: Box::new(|answers| {
            let receipt = answers.into_iter().next().ok_or_else(unanswered)??;
            Ok(After::Ask(Box::new(move |store| {
                let view = store.finish_view(&receipt)?;
                Ok(Answer::of(&view)?.at(view.task.version))
            })))
        }),
    })
}

fn granted(receipt: Receipt) -> Result<After, Refusal> {
    match receipt.task.assignment() {
        Some(held) if held.forced => seized(receipt),
        _ => ClaimView::from(&receipt).told().map(After::Answer),
    }
}

/// Somebody else may have lost it.
fn seized(receipt: Receipt) -> Result<After, Refusal> {
    Ok(After::Ask(Box::new(move |store| {
        bar(store, &receipt)?;
        ClaimView::from(&receipt).told()
    })))
}

fn secured(store: &mut Store, receipt: &Receipt) -> Result<ChangeView, Refusal> {
    bar(store, receipt)?;
    Ok(ChangeView { task: TaskView::from(&receipt.task) })
}

fn checks(store: &mut Store, asked: &Asked, _: Nothing) -> Result<ChecksView, Refusal> {
    store.checks(asked.task()?)
}

/// Up to which entry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadInput {
    through: i64,
}

impl VerbInput for ReadInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::new(Command::Read { through: self.through }))
    }
}

fn messages(store: &mut Store, asked: &Asked, _: Nothing) -> Result<MessagesView, Refusal> {
    store.messages(asked.actor(), Some(asked.task()?))
}

fn last_handoff(store: &mut Store, asked: &Asked, _: Nothing) -> Result<HandoffView, Refusal> {
    store.handoff_of(asked.task()?)
}

impl Rendered for ChangeView {
    fn told(&self) -> Result<Answer, Refusal> {
        Ok(Answer::of(self)?.at(self.task.version))
    }
}

impl Rendered for ClaimView {
    fn told(&self) -> Result<Answer, Refusal> {
        Ok(Answer::of(self)?.at(self.task.version))
    }
}

impl Rendered for ChecksView {}

impl Rendered for MessagesView {}

impl Rendered for HandoffView {}
