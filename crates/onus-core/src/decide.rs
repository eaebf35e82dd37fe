//! `decide(facts, command, now) -> events | refusal`: the only place where a rule exists.
//!
//! Implements the transition table of rules.md: who may do what to a task in which state.

mod add;
mod block;
mod check;
mod claim;
mod complete;
mod dep;
mod edit;
mod exception;
mod handoff;
mod merge;
mod note;
mod release;
mod renew;
mod reopen;
mod review;
mod salvage;
mod say;
mod screen;
mod session;
mod takeover;

pub use screen::Screen;

use crate::code::Code;
use crate::command::{Command, Warrant};
use crate::event::{Event, Renewal};
use crate::facts::{Caller, Facts, Fresh};
use crate::id::{Handle, TaskId, WorkstationName};
use crate::limits::{self, Moment};
use crate::process::Vital;
use crate::refusal::{Finding, Refusal};
use crate::task::{Assignment, Task};
use crate::text::{REASON_MAX, line};
use crate::time::{Millis, Now};
use crate::worker::{Kind, Worker};

/// What will be true if the transaction commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// These events, in this order, done in this workstation.
    Change { events: Vec<Event>, workstation: Option<WorkstationName> },
    /// The ask is already a task: nothing changes.
    Existing(TaskId),
}

impl Decision {
    fn one(event: impl Into<Event>, workstation: Option<WorkstationName>) -> Decision {
        Decision::Change { events: vec![event.into()], workstation }
    }
}

/// A store that lost what somebody was told of gives nothing away: neither a lease nor a number.
fn behind() -> Refusal {
    Refusal::new(
        Code::StoreBehindAnchor,
        "the store is older than what was on record: it was restored, or it lost its last writes",
    )
    .hint("a person runs: onus ledger raise-generation --reason TEXT")
}

pub fn decide(facts: &Facts<'_>, command: &Command, now: &Now, fresh: &Fresh) -> Result<Decision, Refusal> {
    let caller = identified(&facts.caller)?;
    // The record would name a text that nobody has, and look broken for ever.
    if command.texts().iter().any(|text| text.content().is_none()) {
        return Err(Refusal::invalid("a text came without its words, by its digest only"));
    }
    if let Command::Add { spec, depends_on, archived, arrival } = command {
        let (archived, arrival) = (archived.as_ref(), arrival.as_deref());
        return add::decide(facts, caller, &add::NewTask { spec, depends_on, archived, arrival }, now, fresh);
    }
    let task = facts.task.as_ref().ok_or_else(|| {
        Refusal::new(Code::UnknownTask, "there is no such task").hint("onus list --state all")
    })?;
    let context = Context { facts, caller, task, now };
    if let Some(refusal) = crate::constraint::forbidden(task, caller, command) {
        return Err(refusal.task(&task.id));
    }
    let decided = match command {
        Command::Add { .. } => unreachable_add(),
        Command::Claim { assignee, ttl, warrant, constraints, .. } => {
            claim::decide(&context, assignee.as_ref(), *ttl, warrant, constraints, fresh)
        }
        Command::Takeover { ttl, reason, warrant, .. } => {
            takeover::decide(&context, *ttl, reason.as_deref(), warrant, fresh)
        }
        Command::Renew { ttl, process } => renew::decide(&context, *ttl, process.as_ref()),
        Command::Release { note, handoff, warrant } => {
            let words = handoff::words(&context, note.as_ref(), handoff.as_ref());
            words.and_then(|note| release::decide(&context, note, warrant))
        }
        Command::Block { on, lease, note, handoff } => {
            let words = handoff::words(&context, note.as_ref(), handoff.as_ref());
            words.and_then(|handoff| block::block(&context, on, *lease, handoff))
        }
        Command::Unblock => block::unblock(&context),
        Command::Note { text } => note::decide(&context, text),
        Command::Say { to, text } => say::decide(&context, to.as_ref(), text),
        Command::Read { through } => say::read(&context, *through),
        Command::Comment { commit, comments } => review::comment(&context, commit.as_ref(), comments),
        Command::Handoff { document, .. } => handoff::decide(&context, document),
        Command::Complete { resolution, root_cause, warrant, proof } => {
            complete::decide(&context, resolution.as_ref(), root_cause.as_ref(), warrant, proof)
        }
        Command::AddCheck { check } => check::add(&context, check),
        Command::ApproveCheck { check } => check::approve(&context, check),
        Command::RemoveCheck { check, reason } => check::remove(&context, check, reason.as_deref()),
        Command::RecordCheck { run } => check::record(&context, run),
        Command::Review { opinion } => review::decide(&context, opinion),
        Command::Tick { criteria, withdrawn, workstation } => {
            review::tick(&context, criteria, *withdrawn, workstation.as_ref())
        }
        Command::Reopen { reason } => reopen::reopen(&context, reason.as_deref()),
        Command::Drop { reason } => reopen::drop(&context, reason.as_deref()),
        Command::Edit { changes } => edit::decide(&context, changes),
        Command::AddDependency { on } => dep::add(&context, on),
        Command::RemoveDependency { on } => dep::remove(&context, on),
        Command::RequestException { on, reason, rollback, adr } => {
            exception::request(&context, on, reason.as_deref(), rollback.as_deref(), adr.as_deref())
        }
        Command::ApproveException { on } => exception::approve(&context, on),
        Command::Merge { commit, onto, checks, root_cause, stage, proof } => {
            let (root_cause, stage) = (root_cause.as_ref(), *stage);
            merge::decide(&context, &merge::Landing { commit, onto, checks, root_cause, stage, proof })
        }
        Command::RequestReview { commit } => merge::request_review(&context, commit.as_ref()),
        Command::Adopt { of, commits } => merge::adopt(&context, *of, commits),
        Command::Salvage { of, reference, commit } => salvage::decide(&context, *of, reference, commit),
        Command::StartSession => session::start(&context),
        Command::StopSession => session::stop(&context),
        Command::CorrectSession { started_at, ended_at, reason, .. } => {
            session::correct(&context, *started_at, *ended_at, reason.as_deref())
        }
        Command::RecordUsage { usage, .. } => session::record_usage(&context, usage),
        Command::CloseOutput { .. } => session::close_output(&context),
    };
    decided.map_err(|refusal| refusal.task(&task.id))
}

fn unreachable_add() -> Result<Decision, Refusal> {
    Err(Refusal::new(Code::Internal, "an ask was decided as a change"))
}

/// Why a command can be no check.
pub(crate) fn check_fault(command: &str) -> Option<String> {
    check::fault(command)
}

/// Nothing anonymous enters the ledger (mission B7).
pub(crate) fn identified(caller: &Caller) -> Result<&Worker, Refusal> {
    match caller {
        Caller::Registered(worker) => Ok(worker),
        Caller::Anonymous => {
            Err(Refusal::new(Code::IdentityRequired, "who are you? no write without an identity")
                .hint("pass --as @handle or set ONUS_AS"))
        }
        Caller::Unregistered(handle) => {
            Err(Refusal::new(Code::UnknownWorker, format!("{handle} is not registered"))
                .hint(format!("onus worker add {handle} --kind agent")))
        }
    }
}

/// One call about one task: what the rules below share.
struct Context<'a> {
    facts: &'a Facts<'a>,
    caller: &'a Worker,
    task: &'a Task,
    now: &'a Now,
}

impl Context<'_> {
    /// The assignment, if the caller proves to be its holder. Every mutation by a holder goes through here.
    fn holder(&self) -> Result<&Assignment, Refusal> {
        let Some(token) = &self.facts.token else {
            let id = &self.task.id;
            let state = self.task.state.name();
            let detail = if state.is_terminal() {
                format!("{id} is {state}: nobody holds it any more")
            } else {
                format!("only the holder of {id} may do this")
            };
            return Err(Refusal::new(Code::LeaseRequired, detail).hint(self.way_in()));
        };
        let held = self.task.assignment().filter(|held| {
            token.generation == self.facts.generation
                && token.epoch == held.epoch
                && held.lease.is_opened_by(token)
                && held.assignee == self.caller.handle
        });
        held.ok_or_else(|| self.fenced())
    }

    /// The assignment, if its holder may go on: a lease in a quarantined workstation is suspended (mission C6).
    fn working_holder(&self) -> Result<&Assignment, Refusal> {
        let held = self.holder()?;
        if self.facts.suspended {
            let (id, workstation) = (&self.task.id, &held.workstation);
            return Err(Refusal::new(
                Code::WorkstationQuarantined,
                format!("{workstation} is quarantined: the lease of {id} is suspended"),
            )
            .hint(format!("give it back with what you know: onus release {id} --note TEXT")));
        }
        Ok(held)
    }

    fn fenced(&self) -> Refusal {
        let id = &self.task.id;
        let now_held = match self.task.assignment() {
            Some(held) => format!("{id} is held by {} since {}", held.assignee, held.assigned_at),
            None => format!("{id} is {} since {}", self.task.state.name(), self.task.updated_at),
        };
        let older = self.facts.token.as_ref().filter(|token| token.epoch < self.task.epoch);
        let kept = older.map(|token| {
            let reference = crate::salvage_reference(id, token.epoch);
            format!("; if anything was left behind, it is kept in {reference}")
        });
        Refusal::new(Code::Fenced, now_held)
            .hint(format!("stop writing; onus show {id} tells what became of it{}", kept.unwrap_or_default()))
    }

    fn way_in(&self) -> String {
        let id = &self.task.id;
        match self.task.assignment() {
            None if self.task.state.name().is_terminal() => format!("onus show {id}"),
            None => format!("onus claim {id}"),
            Some(held) => {
                format!(
                    "{} holds it; pass its --lease, or run from its workstation {}",
                    held.assignee, held.workstation
                )
            }
        }
    }

    fn renewal(&self, held: &Assignment, ttl: Option<Millis>) -> Renewal {
        Renewal {
            tick: self.now.tick.clone(),
            ttl_ms: ttl.filter(|ttl| *ttl != held.lease.ttl).map(|ttl| ttl.0),
            late_by_ms: self.late_by_ms(held),
            process: None,
            // Whoever shows itself now is not the process that has ended.
            alone: held.lease.process.is_some() && self.facts.vital == Vital::Gone,
        }
    }

    fn late_by_ms(&self, held: &Assignment) -> Option<i64> {
        held.lease.late_by(self.now).map(|late| late.0)
    }

    /// The limits that the task, its agent, its sprint or everybody has reached.
    fn limits_reached(&self, moment: Moment) -> Vec<Finding> {
        let currency = &self.facts.settings.effort.currency;
        limits::findings(&self.facts.budgets, moment, currency, (&self.task.id, &self.grantee().handle))
    }

    /// Who says whether work goes on that a limit stops.
    fn whom_to_ask(&self) -> &Handle {
        self.facts.settings.limits.ask.as_ref().unwrap_or(&self.task.created_by)
    }

    fn task_type(&self) -> Option<&str> {
        self.task.spec.task_type.as_ref().map(|t| t.as_str())
    }

    fn human_required(&self, what: &str) -> Refusal {
        Refusal::new(
            Code::HumanRequired,
            format!("{} is an agent; only a person may {what}", self.caller.handle),
        )
        .hint("ask a person, or take other work: onus ready")
    }

    fn wrong_state(&self, verb: &str) -> Refusal {
        let (id, state) = (&self.task.id, self.task.state.name());
        Refusal::new(Code::WrongState, format!("{id} is {state}: it cannot be {verb}"))
            .hint(format!("onus show {id}"))
    }

    /// The reason of a forced act, or `None` for an ordinary one. Agents can never carry it.
    fn force(&self, warrant: &Warrant, what: &str) -> Result<Option<String>, Refusal> {
        match warrant {
            Warrant::Ordinary => Ok(None),
            Warrant::Forced { .. } if !self.caller.is_human() => {
                Err(self.human_required(&format!("force {what}")))
            }
            Warrant::Forced { reason } => required_reason(reason.as_deref()).map(Some),
        }
    }

    fn lease_length(&self, asked: Option<Millis>) -> Result<Millis, Refusal> {
        match asked {
            Some(ttl) if ttl.0 <= 0 => Err(Refusal::invalid("a lease must last longer than nothing")),
            Some(ttl) if ttl > self.longest_lease() => Err(Refusal::invalid(format!(
                "a lease of {ttl} is too long; the limit is {}",
                self.longest_lease()
            ))),
            Some(ttl) => Ok(ttl),
            None => Ok(self.usual_lease()),
        }
    }

    fn usual_lease(&self) -> Millis {
        self.facts.settings.lease.ttl(self.grantee().kind, self.task_type())
    }

    /// Who holds the task after a grant: the caller, or whom it assigns.
    fn grantee(&self) -> &Worker {
        match &self.facts.mentioned {
            Some(Caller::Registered(worker)) => worker,
            _ => self.caller,
        }
    }

    /// An agent that dies with a long lease keeps everybody waiting.
    fn longest_lease(&self) -> Millis {
        match self.grantee().kind {
            Kind::Human => Millis::MAX,
            Kind::Agent => Millis::hours(24).max(self.usual_lease()),
        }
    }
}

pub(crate) fn required_reason(reason: Option<&str>) -> Result<String, Refusal> {
    match reason {
        Some(text) if !text.trim().is_empty() => {
            line("the reason", text, REASON_MAX).map_err(Refusal::invalid)
        }
        _ => Err(Refusal::new(Code::ReasonRequired, "say why; the reason goes into the ledger")
            .hint("--reason TEXT")),
    }
}
