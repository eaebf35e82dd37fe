//! `block` and `unblock`: the work waits for a named thing.

use super::{Context, Decision};
use crate::code::Code;
use crate::command::WhileBlocked;
use crate::event::{Blocked, Event, Renewal, Unblocked};
use crate::facts::Caller;
use crate::id::{TaskId, shown};
use crate::limits::{self, Moment};
use crate::refusal::Refusal;
use crate::task::{Blocker, State, StateName};
use crate::text::Text;
use crate::worker::Kind;

pub(super) fn block(
    context: &Context<'_>,
    on: &Blocker,
    lease: WhileBlocked,
    handoff: Option<Text>,
) -> Result<Decision, Refusal> {
    let held = context.working_holder()?;
    if !matches!(context.task.state, State::InProgress(_)) {
        return Err(context.wrong_state("blocked"));
    }
    if let Blocker::Task(other) = on
        && *other == context.task.id
    {
        return Err(Refusal::invalid(format!("{other} cannot wait for itself")));
    }
    known(context, on)?;
    let late_by_ms = context.late_by_ms(held);
    let kept = match lease {
        WhileBlocked::ReleaseLease => None,
        WhileBlocked::KeepLease => {
            // Never shorter than what the holder already has.
            let ttl = context.facts.settings.lease.blocked_ttl(context.task_type()).max(held.lease.ttl);
            Some(context.renewal(held, Some(ttl)))
        }
    };
    // A question to a person by whoever may not go on is about the limits, whatever else it says.
    let limits = match on {
        Blocker::Person(_) => context.limits_reached(Moment::Running),
        _ => Vec::new(),
    };
    let blocked = Blocked { on: on.clone(), kept, late_by_ms, handoff, limits };
    Ok(Decision::one(blocked, Some(held.workstation.clone())))
}

pub(super) fn unblock(context: &Context<'_>) -> Result<Decision, Refusal> {
    let answered = answer(context);
    if !answered.is_empty() {
        return Ok(Decision::Change { events: answered, workstation: None });
    }
    match &context.task.state {
        State::Blocked { on, held: Some(_) } => {
            let held = context.working_holder().map_err(|refusal| asked(on, refusal))?;
            let ttl = context.facts.settings.lease.ttl(context.caller.kind, context.task_type());
            let renewal = Some(context.renewal(held, Some(ttl)));
            Ok(Decision::one(Unblocked { renewal }, Some(held.workstation.clone())))
        }
        State::Blocked { on, held: None } => {
            let ended = |id: &TaskId| {
                context.facts.dependencies.iter().any(|d| d.id == *id && d.state == Some(StateName::Complete))
            };
            let resolved = matches!(on, Blocker::Task(id) if ended(id));
            // Nobody holds it, so nobody's word but a person's, or the blocking task's own end, opens it again.
            if context.caller.is_human() || resolved {
                let mut events = lifted(context);
                events.push(Unblocked { renewal: None }.into());
                Ok(Decision::Change { events, workstation: None })
            } else {
                Err(context.human_required(&format!("say that {on} is resolved")))
            }
        }
        _ => Err(context.holder().err().unwrap_or_else(|| context.wrong_state("unblocked"))),
    }
}

/// The end of the wait, where the caller is the one whom the work waits for. The lease runs anew from the answer, so that the
/// holder has its usual time to hear of it; whether its process lives is not for the answer to say. Where a limit had stopped
/// the work, a person's answer lifts it for this task: it would be stopped again at once.
pub(super) fn answer(context: &Context<'_>) -> Vec<Event> {
    let State::Blocked { on: Blocker::Person(person), held } = &context.task.state else {
        return Vec::new();
    };
    let caller = &context.caller.handle;
    let is_suspended = held.is_some() && context.facts.suspended;
    if is_suspended || person != caller || held.as_ref().is_some_and(|held| held.assignee == *caller) {
        return Vec::new();
    }
    let renewal = held.as_ref().map(|held| {
        let kind = context.facts.holder.unwrap_or(Kind::Agent);
        let ttl = context.facts.settings.lease.ttl(kind, context.task_type());
        Renewal { alone: false, ..context.renewal(held, Some(ttl)) }
    });
    let mut events = lifted(context);
    events.push(Unblocked { renewal }.into());
    events
}

fn lifted(context: &Context<'_>) -> Vec<Event> {
    let stopped_by = &context.facts.stopped_by;
    limits::lifted(if context.caller.is_human() { stopped_by.clone() } else { Vec::new() })
}

/// Whoever cannot lift the block learns who can.
fn asked(on: &Blocker, refusal: Refusal) -> Refusal {
    match on {
        Blocker::Person(person) if refusal.code == Code::LeaseRequired => {
            let hint =
                format!("{person} is asked: an answer of theirs lets it go on, or the holder runs unblock");
            refusal.hint(hint)
        }
        _ => refusal,
    }
}

/// A task that waits for something that is not there would wait for ever.
fn known(context: &Context<'_>, on: &Blocker) -> Result<(), Refusal> {
    match on {
        Blocker::Task(id) if context.facts.dependencies.iter().any(|d| d.id == *id && d.state.is_none()) => {
            Err(Refusal::new(Code::UnknownTask, format!("there is no task {id}"))
                .hint("onus list --state all"))
        }
        Blocker::Person(_) if matches!(context.facts.mentioned, Some(Caller::Unregistered(_))) => {
            Err(Refusal::new(Code::UnknownWorker, format!("{on}: nobody of that name is registered"))
                .hint("onus worker list"))
        }
        Blocker::Exception(name) => excepted(context, name),
        _ => Ok(()),
    }
}

/// An exception has the name of the dependency that it is about.
fn excepted(context: &Context<'_>, name: &str) -> Result<(), Refusal> {
    let id = &context.task.id;
    let asked = name.parse().ok().and_then(|on: TaskId| context.task.exceptions.get(&on).cloned());
    match asked {
        Some(asked) if asked.approved_by.is_none() => Ok(()),
        Some(_) => {
            Err(Refusal::invalid(format!("the exception for {name} is approved: nothing waits for it"))
                .hint(format!("onus show {id}")))
        }
        None => Err(Refusal::new(Code::UnknownName, format!("{id} has no exception {}", shown(name)))
            .hint(format!("onus exception request {id} --on TASK --reason TEXT --rollback TEXT"))),
    }
}
