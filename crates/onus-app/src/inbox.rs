//! `inbox`: what waits for one worker, and the command that gives it. Nothing of it is stored for itself: it is asked of
//! tasks, reviews, checks, exceptions and the record. Only what was read is a fact of its own.

mod message;

pub use message::{MessageKind, MessageView, MessagesView, last_of, told};

use crate::Onus;
use crate::handoff;
use crate::remote::calls;
use crate::report::{CallView, StuckView, WantKind, WantView};
use onus_core::code::Code;
use onus_core::event::Event;
use onus_core::facts::Caller;
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::refusal::Refusal;
use onus_core::registry::known;
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use onus_core::worker::Worker;
use onus_store::error::Result as StoreResult;
use onus_store::port::Tx;
use onus_store::read::report::{self, Span};
use onus_store::read::show;
use onus_store::{evidence, load};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// So many requests for a review are looked through, the newest first.
const REQUESTS: i64 = 500;
/// So many things are told at once.
const ITEMS: usize = 500;

/// Everything that the record knows of.
const EVER: Span = Span { from: Timestamp(0), to: Timestamp(i64::MAX) };

/// What is wanted of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboxKind {
    /// A blocked task waits for an answer.
    Question,
    /// A limit stopped a task: an answer lets it go on.
    Budget,
    /// Somebody said something.
    Message,
    /// Work is there to be looked at.
    Review,
    /// A proposed check may not run until a person approves it.
    Check,
    /// A dependency should not be waited for.
    Exception,
    /// A task does not go on by itself.
    Stuck,
    /// A workstation is closed until a person opens it.
    Workstation,
    /// A week of somebody's time is not approved.
    Timesheet,
}

impl InboxKind {
    pub const fn name(self) -> &'static str {
        match self {
            InboxKind::Question => "question",
            InboxKind::Budget => "budget",
            InboxKind::Message => "message",
            InboxKind::Review => "review",
            InboxKind::Check => "check",
            InboxKind::Exception => "exception",
            InboxKind::Stuck => "stuck",
            InboxKind::Workstation => "workstation",
            InboxKind::Timesheet => "timesheet",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InboxItem {
    pub kind: InboxKind,
    pub task: Option<TaskId>,
    pub from: Option<Handle>,
    pub at: Option<Timestamp>,
    /// Others' words, mostly.
    pub text: String,
    /// The command that deals with it.
    pub action: String,
    /// The call of the HTTP interface that does it, where nothing more has to be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallView>,
    /// The entry of the record that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    pub untrusted: bool,
}

/// The answer to `inbox`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InboxView {
    pub worker: Handle,
    /// Questions first, then what was said, what is to be looked at, and the rest.
    pub items: Vec<InboxItem>,
    /// Whether there is more than these.
    pub more: bool,
}

impl Onus {
    /// What waits for a worker. Checks, exceptions and stuck work wait for any person.
    pub fn inbox(&mut self, actor: Option<&Handle>) -> Result<InboxView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Inbox {})? {
            return Ok(answer);
        }
        let worker = self.registered(actor)?;
        let me = &worker.handle;
        let held = self.held()?;
        let wants = self.wants(&held)?;
        let mut items = self.questions(me, &wants)?;
        let said = self.messages(Some(me), None)?;
        items.extend(said.messages.iter().map(message));
        let requested = self.ask(|tx| requested(tx, me))?;
        let known: BTreeSet<TaskId> = requested.iter().filter_map(|item| item.task.clone()).collect();
        items.extend(requested);
        let is_mine = |want: &&WantView| {
            let is_own =
                held.iter().any(|held| want.task.as_ref() == Some(&held.task) && held.assignee == *me);
            match want.kind {
                WantKind::Answer | WantKind::Budget => false,
                WantKind::Review => !is_own && want.task.as_ref().is_none_or(|task| !known.contains(task)),
                _ => worker.is_human(),
            }
        };
        items.extend(wants.iter().filter(is_mine).map(wanted));
        if worker.is_human() {
            items.extend(self.stuck(&held)?.iter().filter(|stuck| !stuck.is_blocked()).map(stuck));
        }
        items.sort_by_key(|item| item.kind);
        let more = said.more || items.len() > ITEMS;
        items.truncate(ITEMS);
        Ok(InboxView { worker: worker.handle, items, more })
    }

    pub(crate) fn registered(&mut self, actor: Option<&Handle>) -> Result<Worker, Refusal> {
        let caller = self.ask(|tx| load::caller(tx, actor))?;
        known(&caller)?;
        match caller {
            Caller::Registered(worker) => Ok(worker),
            Caller::Anonymous | Caller::Unregistered(_) => {
                Err(Refusal::new(Code::IdentityRequired, "whose inbox?").hint("pass --as @handle"))
            }
        }
    }

    /// The tasks that wait for this worker's answer, with what its holder said when it stopped.
    fn questions(&mut self, me: &Handle, wants: &[WantView]) -> Result<Vec<InboxItem>, Refusal> {
        let is_question = |want: &&WantView| matches!(want.kind, WantKind::Answer | WantKind::Budget);
        let mine = wants.iter().filter(is_question).filter(|want| want.whom.as_ref() == Some(me));
        self.ask(|tx| mine.map(|want| question(tx, want)).collect())
    }
}

fn question(tx: &mut dyn Tx, want: &WantView) -> StoreResult<InboxItem> {
    let mut item = wanted(want);
    let Some(task) = &want.task else { return Ok(item) };
    if let Some(stored) = load::task(tx, task)? {
        item.from = stored.task.assignment().map(|held| held.assignee.clone());
        item.at = Some(stored.task.updated_at);
    }
    let last = show::last_note(tx, task, "handoff")?.map(|text| handoff::view(task, &text));
    if let Some(said) = last.and_then(|view| view.handoff) {
        item.from = Some(said.by);
        item.at = Some(said.at);
        item.text = said.summary.unwrap_or(item.text);
    }
    Ok(item)
}

/// What holders asked others to look at, and nobody has said anything about since.
fn requested(tx: &mut dyn Tx, me: &Handle) -> StoreResult<Vec<InboxItem>> {
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for entry in report::happened(tx, "review_requested", EVER, REQUESTS)? {
        let Ok(stamped) = entry.open() else { continue };
        let (Event::ReviewRequested(asked), Some(task)) = (stamped.event, stamped.task) else { continue };
        if !seen.insert(task.clone()) || stamped.actor == *me {
            continue;
        }
        let Some(stored) = load::task(tx, &task)? else { continue };
        let is_open = matches!(stored.task.state.name(), StateName::InProgress | StateName::Blocked);
        let is_answered = evidence::reviews(tx, &task)?.iter().any(|review| review.seq > entry.seq);
        if !is_open || is_answered {
            continue;
        }
        let at = asked.commit.map(|commit| format!(" at {}", &commit.as_str()[..8])).unwrap_or_default();
        items.push(InboxItem {
            kind: InboxKind::Review,
            from: Some(stamped.actor),
            at: Some(entry.at),
            text: format!("{}{at}", stored.task.spec.title),
            action: format!("onus diff {task}; then onus review {task} --approve --as-implemented"),
            task: Some(task),
            call: None,
            seq: Some(entry.seq),
            untrusted: true,
        });
    }
    Ok(items)
}

fn wanted(want: &WantView) -> InboxItem {
    InboxItem {
        kind: match want.kind {
            WantKind::Answer => InboxKind::Question,
            WantKind::Budget => InboxKind::Budget,
            WantKind::Review => InboxKind::Review,
            WantKind::ApproveCheck => InboxKind::Check,
            WantKind::ApproveException => InboxKind::Exception,
            WantKind::Restore => InboxKind::Workstation,
            WantKind::ApproveTimesheet => InboxKind::Timesheet,
        },
        task: want.task.clone(),
        from: None,
        at: None,
        // What is about no task is named by its words alone.
        text: match &want.task {
            Some(_) => want.detail.clone(),
            None => format!("{}: {}", want.about, want.detail),
        },
        action: want.command.clone(),
        call: want.call.clone(),
        seq: None,
        untrusted: want.untrusted,
    }
}

fn stuck(found: &StuckView) -> InboxItem {
    InboxItem {
        kind: InboxKind::Stuck,
        task: Some(found.task.clone()),
        from: found.holder.clone(),
        at: found.since,
        text: format!("{}: {}", found.title, found.detail),
        action: found.hint.clone(),
        call: None,
        seq: None,
        untrusted: found.untrusted,
    }
}

fn message(found: &MessageView) -> InboxItem {
    InboxItem {
        kind: InboxKind::Message,
        task: Some(found.task.clone()),
        from: Some(found.from.clone()),
        at: Some(found.at),
        text: found.line(),
        action: format!("onus say {} TEXT, or onus inbox read", found.task),
        call: None,
        seq: Some(found.seq),
        untrusted: true,
    }
}
