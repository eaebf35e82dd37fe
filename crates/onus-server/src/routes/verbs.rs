//! What can be done to one task.

use super::body::{Lease, Nothing, bar, text, token, ttl, warrant, words};
use crate::route::{After, Answer, Asked, Order, Rendered, Route, command, get, post, post_then};
use crate::store::Store;
use onus_app::handoff::HandoffView;
use onus_app::submit::Receipt;
use onus_app::view::{ChangeView, ChecksView, ClaimView, TaskView};
use onus_core::command::{Command, Opinion, Run, WhileBlocked};
use onus_core::evidence::{Classification, Ground, ReviewVerdict, RootCause, RunPlace};
use onus_core::handoff::Standing;
use onus_core::hash::{Digest, encode_hex};
use onus_core::id::{CheckId, CommitId, Handle, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::task::{Blocker, Check, CheckKind, CheckState};
use onus_core::text::Text;
use onus_core::time::Millis;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    let changed = |receipt: &Receipt| ChangeView { task: TaskView::from(&receipt.task) };
    vec![
        command::<_, ClaimView>("/v1/tasks/{id}/claim", "claim", "Take a task", claim, granted),
        post("/v1/tasks/{id}/renew", "renew", "Stay its holder for longer", renew, changed),
        post_then("/v1/tasks/{id}/release", "release", "Give a task back to the queue", release, secured),
        command::<_, ClaimView>(
            "/v1/tasks/{id}/takeover",
            "takeover",
            "Take over a task whose lease has expired",
            takeover,
            seized,
        ),
        post("/v1/tasks/{id}/block", "block", "Say what the work waits for", block, changed),
        post(
            "/v1/tasks/{id}/unblock",
            "unblock",
            "Go on: what the work waited for is there",
            unblock,
            changed,
        ),
        post("/v1/tasks/{id}/notes", "note", "Write down progress, or comment on a task", note, changed),
        get("/v1/tasks/{id}/checks", "checks", "A task's checks, each with its last run", checks),
        post_then(
            "/v1/tasks/{id}/checks",
            "check",
            "Add, approve or remove a check, or record what a run of it showed",
            check,
            |store, receipt| store.checks(&receipt.task.id),
        ),
        get("/v1/tasks/{id}/handoffs", "last_handoff", "The last handoff of a task", last_handoff),
        post_then(
            "/v1/tasks/{id}/handoffs",
            "handoff",
            "Write down what the next holder should know, and go on",
            handoff,
            |store, receipt| store.handoff_of(&receipt.task.id),
        ),
        post("/v1/tasks/{id}/reviews", "review", "Say what somebody else's work is", review, changed),
        post("/v1/tasks/{id}/complete", "complete", "Finish a task that you hold", complete, changed),
        post(
            "/v1/tasks/{id}/reopen",
            "reopen",
            "Open a complete task again: a person, or a verifier",
            reopen,
            changed,
        ),
        post_then("/v1/tasks/{id}/drop", "drop", "Give a task up for good: people only", abandon, secured),
    ]
}

/// Where and for how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClaimBody {
    /// Where you will work; default: the one that the identity map names
    workstation: Option<WorkstationName>,
    /// How long the lease lasts unless renewed
    ttl: Option<Millis>,
    /// The same in milliseconds
    ttl_ms: Option<i64>,
    /// Give it to this worker instead of taking it: people only
    assignee: Option<Handle>,
    /// Against the rules: people only, with a reason, on record for ever
    #[serde(default)]
    force: bool,
    reason: Option<String>,
}

fn claim(_: &mut Store, _: &Asked, body: ClaimBody) -> Result<Order, Refusal> {
    Ok(Order::new(Command::Claim {
        workstation: body.workstation,
        here: None,
        assignee: body.assignee,
        ttl: ttl(body.ttl, body.ttl_ms)?,
        warrant: warrant(body.force, body.reason),
    }))
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TakeoverBody {
    workstation: Option<WorkstationName>,
    ttl: Option<Millis>,
    /// The same in milliseconds
    ttl_ms: Option<i64>,
    /// Why; goes into the ledger and to the old holder
    reason: Option<String>,
    /// Before the lease has expired: people only
    #[serde(default)]
    force: bool,
}

fn takeover(_: &mut Store, _: &Asked, body: TakeoverBody) -> Result<Order, Refusal> {
    Ok(Order::new(Command::Takeover {
        workstation: body.workstation,
        here: None,
        ttl: ttl(body.ttl, body.ttl_ms)?,
        reason: body.reason.clone(),
        warrant: warrant(body.force, body.reason),
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RenewBody {
    /// The token that the claim gave
    lease: Option<Lease>,
    ttl: Option<Millis>,
    /// The same in milliseconds
    ttl_ms: Option<i64>,
}

fn renew(_: &mut Store, _: &Asked, body: RenewBody) -> Result<Order, Refusal> {
    Ok(Order::held(Command::Renew { ttl: ttl(body.ttl, body.ttl_ms)?, process: None }, token(body.lease)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReleaseBody {
    lease: Option<Lease>,
    /// What the next holder should know
    #[serde(alias = "summary")]
    note: Option<String>,
    #[serde(default)]
    risks: Vec<String>,
    /// The next slice of the work
    next: Option<String>,
    /// Take it from its holder: people only
    #[serde(default)]
    force: bool,
    reason: Option<String>,
}

fn release(store: &mut Store, asked: &Asked, body: ReleaseBody) -> Result<Order, Refusal> {
    let words = words(body.note, body.risks, body.next)?;
    let command = Command::Release {
        note: words.said(),
        handoff: store.compose_handoff(asked.task()?, Standing::Released, None, &words)?,
        warrant: warrant(body.force, body.reason),
    };
    Ok(Order::held(command, token(body.lease)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BlockBody {
    lease: Option<Lease>,
    /// `task:ID`, `person:@x`, `external:TEXT` or `exception:ID`
    #[schemars(regex(pattern = r"^(task|person|external|exception):.+$"))]
    on: String,
    /// Give the lease back meanwhile; default: keep it, for longer
    #[serde(default)]
    release_lease: bool,
    #[serde(alias = "summary")]
    note: Option<String>,
    #[serde(default)]
    risks: Vec<String>,
    next: Option<String>,
}

fn block(store: &mut Store, asked: &Asked, body: BlockBody) -> Result<Order, Refusal> {
    let on: Blocker = body.on.parse().map_err(Refusal::invalid)?;
    let words = words(body.note, body.risks, body.next)?;
    let command = Command::Block {
        lease: if body.release_lease { WhileBlocked::ReleaseLease } else { WhileBlocked::KeepLease },
        note: words.said(),
        handoff: store.compose_handoff(asked.task()?, Standing::Blocked, Some(&on), &words)?,
        on,
    };
    Ok(Order::held(command, token(body.lease)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HolderBody {
    lease: Option<Lease>,
}

fn unblock(_: &mut Store, _: &Asked, body: HolderBody) -> Result<Order, Refusal> {
    Ok(Order::held(Command::Unblock, token(body.lease)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteBody {
    #[schemars(length(min = 1))]
    text: String,
    /// With it the note is progress and renews the lease; without it a comment
    lease: Option<Lease>,
}

fn note(_: &mut Store, _: &Asked, body: NoteBody) -> Result<Order, Refusal> {
    Ok(Order::held(Command::Note { text: text(&body.text) }, token(body.lease)))
}

fn checks(store: &mut Store, asked: &Asked, _: Nothing) -> Result<ChecksView, Refusal> {
    store.checks(asked.task()?)
}

/// What to do with a task's checks. The server runs none: whoever ran one says what it showed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
enum CheckBody {
    /// A command whose exit code tells; an agent's waits for a person's approval.
    Add {
        command: String,
        #[serde(default)]
        kind: CheckKind,
        lease: Option<Lease>,
    },
    /// Let it run, exactly as it is written: people only.
    Approve { check: CheckId },
    /// People only.
    Remove { check: CheckId, reason: Option<String>, lease: Option<Lease> },
    /// What a run of it showed.
    Record(RecordBody),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordBody {
    lease: Option<Lease>,
    check: CheckId,
    /// The exit code; none where a signal ended it
    exit: Option<i32>,
    signal: Option<i32>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    took_ms: u32,
    /// What it ran on
    commit: Option<CommitId>,
    /// The tree had changes that no commit has
    #[serde(default)]
    dirty: bool,
    #[serde(default)]
    output: String,
    /// What it saw of its surroundings, by digest
    environment: Option<String>,
    /// Not kept: a run that comes this way is stated, and nobody saw its sandbox
    sandbox: Option<RunPlace>,
}

fn check(_: &mut Store, _: &Asked, body: CheckBody) -> Result<Order, Refusal> {
    Ok(match body {
        CheckBody::Add { command, kind, lease } => {
            let check = Check { command: command.trim().to_owned(), state: CheckState::Proposed, kind };
            Order::held(Command::AddCheck { check }, token(lease))
        }
        CheckBody::Approve { check } => Order::new(Command::ApproveCheck { check }),
        CheckBody::Remove { check, reason, lease } => {
            Order::held(Command::RemoveCheck { check, reason }, token(lease))
        }
        CheckBody::Record(body) => {
            let (lease, run) = body.run();
            Order::held(Command::RecordCheck { run: Box::new(run) }, token(lease))
        }
    })
}

impl RecordBody {
    fn run(self) -> (Option<Lease>, Run) {
        let _ = self.sandbox;
        let run = Run {
            check: self.check,
            exit: self.exit,
            signal: self.signal,
            timed_out: self.timed_out,
            took_ms: i64::from(self.took_ms),
            ground: Ground { commit: self.commit, dirty: self.dirty },
            output_length: i64::try_from(self.output.len()).unwrap_or(i64::MAX),
            output_sha256: encode_hex(&Digest::of(self.output.as_bytes()).0),
            output: Text::new(self.output),
            environment: self.environment.unwrap_or_default(),
            sandbox: RunPlace::Stated.name().to_owned(),
        };
        (self.lease, run)
    }
}

fn last_handoff(store: &mut Store, asked: &Asked, _: Nothing) -> Result<HandoffView, Refusal> {
    store.handoff_of(asked.task()?)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HandoffBody {
    lease: Option<Lease>,
    #[serde(alias = "note")]
    summary: Option<String>,
    #[serde(default)]
    risks: Vec<String>,
    next: Option<String>,
}

fn handoff(store: &mut Store, asked: &Asked, body: HandoffBody) -> Result<Order, Refusal> {
    let words = words(body.summary, body.risks, body.next)?;
    let document = store.compose_handoff(asked.task()?, Standing::InProgress, None, &words)?;
    // Where nobody holds the task there is nothing to compose, and the rules say why it is refused.
    let document = document.unwrap_or_else(|| Text::new(String::new()));
    Ok(Order::held(Command::Handoff { note: words.said(), document }, token(body.lease)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReviewBody {
    verdict: ReviewVerdict,
    classification: Classification,
    commit: Option<CommitId>,
    /// Where you reviewed it
    workstation: Option<WorkstationName>,
    note: Option<String>,
}

fn review(_: &mut Store, _: &Asked, body: ReviewBody) -> Result<Order, Refusal> {
    let opinion = Opinion {
        verdict: body.verdict,
        classification: body.classification,
        commit: body.commit,
        workstation: body.workstation,
        note: body.note.as_deref().map(text),
    };
    Ok(Order::new(Command::Review { opinion: Box::new(opinion) }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompleteBody {
    lease: Option<Lease>,
    /// What was done
    resolution: Option<String>,
    /// Why a defect happened
    root_cause: Option<RootCause>,
    /// The commit that the work is at; default: the head of the workstation's branch, where the server has it
    commit: Option<CommitId>,
    #[serde(default)]
    force: bool,
    reason: Option<String>,
}

fn complete(store: &mut Store, asked: &Asked, body: CompleteBody) -> Result<Order, Refusal> {
    let command = Command::Complete {
        resolution: body.resolution.as_deref().map(text),
        root_cause: body.root_cause,
        warrant: warrant(body.force, body.reason),
        proof: store.stated_proof(asked.task()?, body.commit)?,
    };
    Ok(Order::held(command, token(body.lease)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReasonBody {
    /// Why; goes into the ledger
    reason: Option<String>,
}

fn reopen(_: &mut Store, _: &Asked, body: ReasonBody) -> Result<Order, Refusal> {
    Ok(Order::new(Command::Reopen { reason: body.reason }))
}

fn abandon(_: &mut Store, _: &Asked, body: ReasonBody) -> Result<Order, Refusal> {
    Ok(Order::new(Command::Drop { reason: body.reason }))
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

impl Rendered for HandoffView {}
