//! What happened: the ledger's vocabulary. An event is a fact; it is never refused and never changes (mission A7).

use crate::code::Code;
use crate::constraint::Constraint;
use crate::evidence::{CheckVerdict, Classification, Ground, ReviewVerdict, RootCause};
use crate::id::CheckId;
use crate::id::{CommitId, Epoch, Handle, Seq, TaskId, WorkstationName};
use crate::lease::LeaseId;
use crate::output::KeptOutput;
use crate::process::{Death, Process};
use crate::refusal::Finding;
use crate::session::Usage;
use crate::task::Check;
use crate::task::{Blocker, Route, Spec, StateName, Task};
use crate::text::Text;
use crate::time::{Millis, Tick, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use uuid::Uuid;

/// An event with who, where and when: what one ledger entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    pub seq: Seq,
    /// `None` for what concerns the workspace and no single task.
    pub task: Option<TaskId>,
    pub at: Timestamp,
    pub actor: Handle,
    pub workstation: Option<WorkstationName>,
    pub epoch: Epoch,
    pub event: Event,
}

impl Stamped {
    /// Writes an event down behind what is known of its task: the epoch rises where the event says so, and time never
    /// runs backwards within one task's story, whatever a wall clock does.
    pub fn following(
        row: Option<&Task>,
        seq: Seq,
        task: TaskId,
        wall: Timestamp,
        actor: Handle,
        workstation: Option<WorkstationName>,
        event: Event,
    ) -> Stamped {
        let epoch = row.map_or(0, |row| row.epoch) + i64::from(event.raises_epoch());
        let at = row.map_or(wall, |row| row.updated_at.max(wall));
        Stamped { seq, task: Some(task), at, actor, workstation, epoch, event }
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $verb:literal),+ $(,)?) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Event { $($(#[$doc])* $variant($variant)),+ }

        impl Event {
            pub const VERBS: &[&str] = &[$($verb),+];

            pub const fn verb(&self) -> &'static str { match self { $(Event::$variant(_) => $verb),+ } }

            /// The entry's data as the exact text that is stored and hashed.
            pub fn data(&self) -> Result<String, serde_json::Error> {
                match self { $(Event::$variant(data) => serde_json::to_string(data)),+ }
            }

            /// Reads an entry back. An unknown verb or unknown field is an error, not a default.
            pub fn parse(verb: &str, data: &str) -> Result<Event, String> {
                match verb {
                    $($verb => serde_json::from_str(data).map(Event::$variant).map_err(|e| format!("{verb}: {e}")),)+
                    _ => Err(format!("unknown verb {}", crate::id::shown(verb))),
                }
            }
        }

        $(impl From<$variant> for Event { fn from(data: $variant) -> Event { Event::$variant(data) } })+
    };
}

events! {
    /// A task was asked for.
    Added = "added",
    Claimed = "claimed",
    TakenOver = "taken_over",
    Renewed = "renewed",
    Noted = "noted",
    Blocked = "blocked",
    Unblocked = "unblocked",
    Released = "released",
    Completed = "completed",
    Reopened = "reopened",
    Dropped = "dropped",
    DependencyAdded = "dependency_added",
    DependencyRemoved = "dependency_removed",
    /// Policy or gate said no. The row does not change; the attempt is on record.
    Refused = "refused",
    WorkspaceCreated = "workspace_created",
    ProjectAdded = "project_added",
    /// A dependency should be stepped over, and why (mission D1).
    ExceptionRequested = "exception_requested",
    ExceptionApproved = "exception_approved",
    /// A command that is to prove a part of the work.
    CheckAdded = "check_added",
    /// A person lets it run, with exactly this text.
    CheckApproved = "check_approved",
    CheckRemoved = "check_removed",
    /// What a run of it showed.
    CheckRun = "check_run",
    Reviewed = "reviewed",
    /// The holder's commits are in the main branch.
    Merged = "merged",
    /// What a former holder left behind is kept.
    Salvaged = "salvaged",
    /// The holder goes on working on what it holds.
    SessionStarted = "session_started",
    /// The holder rests, and keeps what it holds.
    SessionStopped = "session_stopped",
    /// A person says when a session really was. The session's own row stays as it is.
    SessionCorrected = "session_corrected",
    /// What an agent used up in a session, by its own records.
    SessionUsed = "session_used",
    /// What a session printed has come to its end.
    OutputClosed = "output_closed",
    WorkerAdded = "worker_added",
    WorkerPaused = "worker_paused",
    WorkerResumed = "worker_resumed",
    WorkstationAdded = "workstation_added",
    /// Its probes passed, where they had not before.
    WorkstationReady = "workstation_ready",
    /// A probe failed, where all had passed before.
    WorkstationNotReady = "workstation_not_ready",
    WorkstationQuarantined = "workstation_quarantined",
    WorkstationRestored = "workstation_restored",
    WorkstationRetired = "workstation_retired",
    /// Somebody or something may call over a network, in whose name and for how long.
    TokenIssued = "token_issued",
    TokenRevoked = "token_revoked",
    GenerationRaised = "generation_raised",
    Imported = "imported",
    /// A person approved a worker's time between two days.
    TimesheetApproved = "timesheet_approved",
    /// Some tasks are to be verified together.
    MilestoneAdded = "milestone_added",
    /// Nothing was missing any more.
    MilestoneClosed = "milestone_closed",
    /// A milestone is called, or meant to be reached, otherwise.
    MilestoneEdited = "milestone_edited",
    /// Filters of the board were kept under a name, or no longer are.
    ViewSaved = "view_saved",
    /// The holder waits for another worker's word.
    ReviewRequested = "review_requested",
    /// The holder goes on with what an earlier holder of the task had committed.
    Adopted = "adopted",
    /// A clone of the repository uses the store.
    CloneJoined = "clone_joined",
    /// A person said which main branch counts.
    MainOfRecordNamed = "main_of_record_named",
    /// A person moved a reference of the shared repository in their own name.
    PushedByPerson = "pushed_by_person",
    /// A reviewer found acceptance criteria met, or no longer.
    CriteriaTicked = "criteria_ticked",
    /// What is asked for was put differently. Dependencies and checks have entries of their own.
    Edited = "edited",
    /// Somebody said something to somebody about the task.
    Messaged = "messaged",
    /// Whoever was spoken to has been told.
    MessagesRead = "messages_read",
    /// A reviewer's words about one line of a commit.
    LineCommented = "line_commented",
    /// A person lets a task go on beyond the limits that it has reached.
    LimitsLifted = "limits_lifted",
    /// Nobody has begun with it here, and the system that it came from says that it has ended, waits, or goes on.
    Followed = "followed",
    /// A person said anew what the holder is allowed.
    Constrained = "constrained",
}

fn is_false(b: &bool) -> bool {
    !b
}

/// Declares the data of the events. Field order is part of the stored text; new fields are optional and come last.
macro_rules! data {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $type:ty),* $(,)? })+) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$fdoc])* pub $field: $type),* })+
    };
}

mod message;
mod workspace;

pub use message::*;
pub use workspace::*;

data! {
    Added {
        uid: Uuid,
        spec: Spec,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        depends_on: BTreeSet<TaskId>,
        /// History from elsewhere arrives finished.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<Archived>,
        /// When it was asked for where it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<Timestamp>,
        /// What it waits for there: nobody holds it, and nobody is to begin with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocked: Option<Blocker>,
    }

    /// The end of a task that happened in another system.
    Archived {
        state: StateName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolution: Option<Text>,
        /// When it ended there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    }

    /// Who said something in another system, and when.
    Said {
        by: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// What it is called there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }

    /// What every grant says; the assignee and the workstation are the entry's own.
    Grant {
        lease: LeaseId,
        ttl_ms: i64,
        tick: Tick,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<Route>,
        #[serde(default, skip_serializing_if = "is_false")]
        forced: bool,
        /// Who gets it, where that is not who made the entry: a person or the dispatcher assigned it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assignee: Option<Handle>,
        /// The slot of the role that it takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<i64>,
        /// The commit that the workstation stood at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<CommitId>,
        /// What the holder is held to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        constraints: Vec<Constraint>,
    }

    Claimed {
        grant: Grant,
        /// Why a person forced it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }

    TakenOver {
        grant: Grant,
        reason: String,
        /// Who held it.
        from: Handle,
        /// The proof that the holder was dead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dead: Option<Death>,
    }

    /// The holder showed itself: its lease runs anew from the entry's time.
    Renewed { renewal: Renewal }

    Noted {
        text: Text,
        /// Present on the holder's own notes: activity renews.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        renewal: Option<Renewal>,
        /// For whoever holds the task next.
        #[serde(default, skip_serializing_if = "is_false")]
        handoff: bool,
        /// Present on what was said elsewhere and brought in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<Said>,
    }

    Blocked {
        on: Blocker,
        /// The lease that the holder keeps; without it the task is blocked and free.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Renewal>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late_by_ms: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff: Option<Text>,
        /// The limits that stopped it, with their figures.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        limits: Vec<Finding>,
    }

    Unblocked {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        renewal: Option<Renewal>,
    }

    Released {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Text>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        forced: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late_by_ms: Option<i64>,
    }

    Completed {
        resolution: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        forced: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late_by_ms: Option<i64>,
        /// What was completed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root_cause: Option<RootCause>,
        /// What of it was found in the main of record, where no merge has recorded it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        landed: Option<Landed>,
    }

    /// Where work arrived, and which commits there are the task's.
    Landed {
        /// None where the local main branch is the main of record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remote: Option<String>,
        branch: String,
        /// The oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<CommitId>,
        /// Those of them that were made under another assignment.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        adopted: Vec<CommitId>,
        /// The head of the main of record when this was seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tip: Option<CommitId>,
        /// Whoever decided this had no git to ask: it is the caller's word.
        #[serde(default, skip_serializing_if = "is_false")]
        vouched: bool,
    }

    /// Both without the checks, whose entries say what became of them.
    Edited {
        before: Box<Spec>,
        after: Box<Spec>,
        /// Present where the holder did it: activity renews.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        renewal: Option<Renewal>,
        /// Present where the system that it came from has changed it: all that it says, whatever was taken over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outside: Option<Box<Outside>>,
    }

    /// What another system says of a task, the commands and the criteria included.
    Outside {
        spec: Spec,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        depends_on: BTreeSet<TaskId>,
    }

    /// How a task stands in its own system: like the end, or the wait, that it could have arrived with.
    Followed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<Archived>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocked: Option<Blocker>,
    }

    /// From here on the task is measured by what it uses itself.
    LimitsLifted { limits: Vec<Finding> }

    /// What a live assignment allows.
    Constrained { before: Vec<Constraint>, after: Vec<Constraint> }

    Reopened { reason: String }
    Dropped { reason: String }
    DependencyAdded { on: TaskId }
    DependencyRemoved { on: TaskId }

    Refused {
        command: String,
        code: Code,
        detail: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
    }

    ExceptionRequested {
        /// The dependency that the task should not wait for.
        on: TaskId,
        reason: String,
        rollback: String,
        /// The decision record, relative to the repository's root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        adr: Option<String>,
    }

    ExceptionApproved { on: TaskId }

    CheckAdded { check: Check }
    CheckApproved { check: CheckId }
    CheckRemoved { check: CheckId, reason: String }

    CheckRun {
        check: CheckId,
        verdict: CheckVerdict,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        took_ms: i64,
        ground: Ground,
        /// What is kept of the output: its beginning and its end.
        output: Text,
        /// All of the output, in bytes and by digest.
        output_length: i64,
        output_sha256: String,
        /// The environment that it ran in, by digest.
        environment: String,
        sandbox: String,
        /// Present on the holder's own runs: activity renews.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        renewal: Option<Renewal>,
    }

    Reviewed {
        verdict: ReviewVerdict,
        classification: Classification,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Text>,
    }

    Merged {
        commit: CommitId,
        /// What the main branch was before.
        onto: CommitId,
        /// The commands that passed on this commit.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        checks: Vec<String>,
        renewal: Renewal,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        landed: Option<Landed>,
        /// Why the defect happened, where it was said before the merge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root_cause: Option<RootCause>,
    }

    ReviewRequested {
        /// What there is to review.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
        renewal: Renewal,
    }

    Adopted {
        /// Whose: the epoch under which it was made.
        of: Epoch,
        /// As they are kept, the oldest first.
        commits: Vec<CommitId>,
        renewal: Renewal,
    }

    Salvaged {
        /// Under which epoch it was made.
        of: Epoch,
        reference: String,
        commit: CommitId,
    }

    SessionStarted { renewal: Renewal }
    SessionStopped { renewal: Renewal }

    SessionCorrected {
        /// The entry that started it.
        session: Seq,
        started_at: Timestamp,
        ended_at: Timestamp,
        reason: String,
        /// Longer than the assignment: it counts when another person has said the same.
        #[serde(default, skip_serializing_if = "is_false")]
        proposed: bool,
        /// The entry of another person that this one agrees with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approves: Option<Seq>,
    }

    SessionUsed {
        session: Seq,
        usage: Usage,
    }

    OutputClosed {
        session: Seq,
        output: KeptOutput,
    }

    CriteriaTicked {
        criteria: Vec<CheckId>,
        /// They are open again.
        #[serde(default, skip_serializing_if = "is_false")]
        withdrawn: bool,
    }
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    pub tick: Tick,
    /// Absent where the length stays as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// How long the lease had been expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_by_ms: Option<i64>,
    /// What works under the lease from now on, where that is another one than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The process on record has ended, and its holder goes on without one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub alone: bool,
}

impl Event {
    /// Every grant, and every end that must outdate the tokens given before it.
    pub fn raises_epoch(&self) -> bool {
        matches!(self, Event::Claimed(_) | Event::TakenOver(_) | Event::Reopened(_) | Event::Dropped(_))
    }
}

impl Renewal {
    pub fn ttl(&self) -> Option<Millis> {
        self.ttl_ms.map(Millis)
    }
}
