//! Outside systems that are told what happens here, and that ask for work (mission C8). What they are told is decided here;
//! who tells them, and how, is not.

mod backoff;
pub mod drift;
mod fields;
mod read_back;
pub mod setting;
mod words;

pub use backoff::backoff;
pub use fields::{AGENT, STATUS, TASK, TYPE, WORKSTATION, wanted};
pub use read_back::{ToldSoFar, unequal};
pub use words::{concerns, concerns_there, is_marked, mark, mark_of_trial, marks_in, words};

use crate::event::Event;
use crate::id::{Handle, OriginRef, Seq, TaskId, WorkstationName};
use crate::task::{Priority, StateName, Task};
use crate::time::{Date, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One entry of the ledger, as a far end is told of it. A repeat is the same in all that it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tidings {
    /// `WORKSPACE:SEQ`: what a far end knows a repeat by.
    pub id: String,
    pub seq: Seq,
    pub at: Timestamp,
    pub actor: Handle,
    pub workstation: Option<WorkstationName>,
    pub event: Event,
    /// The task as the entry leaves it; none for an entry of the workspace's own.
    pub task: Option<Picture>,
    /// The words that the entry wrote down.
    pub said: Option<String>,
    /// The task's sessions that have ended, as they count now.
    pub worked: Vec<Worked>,
    /// Whether nothing newer of the same task waits behind it.
    pub is_newest: bool,
}

/// What an outside system may show of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    pub id: TaskId,
    pub title: String,
    pub body: Option<String>,
    pub kind: String,
    pub task_type: Option<String>,
    pub priority: Priority,
    pub state: StateName,
    /// Who holds it; once it has ended, who held it last. Nobody while it is open.
    pub agent: Option<Handle>,
    pub workstation: Option<WorkstationName>,
    pub origin: Option<OriginRef>,
    /// By which entries of its story force was used.
    pub forced: bool,
    pub created_at: Timestamp,
}

/// Who held a task last, kept while its story is told.
#[derive(Debug, Clone, Default)]
pub struct LastHolder {
    held: Option<(Handle, WorkstationName)>,
    forced: bool,
}

impl LastHolder {
    /// The task as one more entry of its story leaves it.
    pub fn picture(&mut self, task: &Task, event: &Event) -> Picture {
        if let Some(held) = task.assignment() {
            self.held = Some((held.assignee.clone(), held.workstation.clone()));
        }
        self.forced |= is_forced(event);
        Picture { forced: self.forced, ..Picture::of(task, self.held.clone()) }
    }
}

impl Picture {
    /// A task that was held last by somebody, somewhere.
    pub fn of(task: &Task, held: Option<(Handle, WorkstationName)>) -> Picture {
        let state = task.state.name();
        let (agent, workstation) = held.filter(|_| state != StateName::Open).unzip();
        Picture {
            id: task.id.clone(),
            title: task.spec.title.clone(),
            body: task.spec.body.as_ref().and_then(|body| body.content()).map(str::to_owned),
            kind: task.spec.kind.clone(),
            task_type: task.spec.task_type.as_ref().map(ToString::to_string),
            priority: task.spec.priority,
            state,
            agent,
            workstation,
            origin: task.spec.origin.clone(),
            forced: false,
            created_at: task.created_at,
        }
    }
}

/// Whether a person did it against the rules.
pub fn is_forced(event: &Event) -> bool {
    match event {
        Event::Claimed(claimed) => claimed.grant.forced,
        Event::TakenOver(taken) => taken.grant.forced,
        Event::Released(released) => released.forced,
        Event::Completed(completed) => completed.forced,
        _ => false,
    }
}

/// A session that has ended, as it counts: by its last correction, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worked {
    pub session: Seq,
    pub worker: Handle,
    pub seconds: i64,
    /// The day it began, where its worker is.
    pub day: Date,
}

/// What is remembered of a task's counterpart at a far end. A far end fills it in while it delivers; it is kept whatever
/// became of the delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counterpart {
    /// What the task is called there.
    pub far_id: Option<String>,
    /// When that was made: an id may be given a second time.
    pub far_created: Option<String>,
    /// The last entry of which the far end has a trace.
    pub trace: Option<Seq>,
    /// What was read back after the last delivery.
    pub read_back: BTreeMap<String, String>,
    /// The sessions that it has, by what a far end makes of them.
    pub worked: BTreeMap<Seq, String>,
    /// The entry that somebody is about to tell. One who finds it here and did not begin with it follows a sender that died in
    /// the middle: the far end may still be at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<Seq>,
    /// What of an unfinished delivery is done, and what else it was told of, by names that its far end gives.
    pub done: BTreeMap<String, String>,
}

/// Why a delivery did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undelivered {
    /// The far end is away, out of order, or does not know the key any more: everything for it waits.
    Away(String),
    /// It was asked and did not answer: it may still be at work on it, so it is left alone for a while before it is asked
    /// what became of it.
    Silent(String),
    /// It refuses exactly this: the task waits for a person, the others go on.
    Refused(String),
    /// It has lost what it was told before: the task's story is told again from its beginning.
    WentBack,
}

impl Undelivered {
    /// Why, in words.
    pub fn words(self) -> String {
        match self {
            Undelivered::Away(why) | Undelivered::Silent(why) | Undelivered::Refused(why) => why,
            Undelivered::WentBack => "it has lost what it was told".to_owned(),
        }
    }
}
