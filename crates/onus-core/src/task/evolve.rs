//! `evolve(row, entry) -> row`: what an event does to its task. Folding a task's ledger with it gives the task's row.

use super::CheckState;
use super::{Assignment, Blocker, Closing, Exception, Spec, State, StateName, Task, Tick};
use crate::event::{Added, Archived, Event, ExceptionRequested, Grant, Renewal, Stamped};
use crate::id::TaskId;
use crate::lease::Lease;
use crate::time::{Millis, Timestamp};
use std::collections::BTreeMap;
use std::fmt;

/// An entry that cannot follow what came before it: the record was tampered with or written by a defect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistent(pub String);

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Inconsistent {}

/// Applies one entry of the task's own chain. `before` is `None` for the first.
pub fn evolve(before: Option<Task>, entry: &Stamped) -> Result<Task, Inconsistent> {
    let task = match (before, &entry.event) {
        (None, Event::Added(added)) => return born(entry, added),
        (Some(task), event) if !matches!(event, Event::Added(_)) => task,
        (None, event) => return Err(Inconsistent(format!("`{}` before the task was added", event.verb()))),
        (Some(task), _) => return Err(Inconsistent(format!("{} was added twice", task.id))),
    };
    let epoch = task.epoch + i64::from(entry.event.raises_epoch());
    if entry.epoch != epoch {
        return Err(Inconsistent(format!("entry {} has epoch {}, not {epoch}", entry.seq, entry.epoch)));
    }
    let mut task = Task { epoch, version: task.version + 1, ..task };
    if !matches!(entry.event, Event::Refused(_)) {
        task.updated_at = entry.at;
    }
    step(&mut task, entry).map(|()| task)
}

fn born(entry: &Stamped, added: &Added) -> Result<Task, Inconsistent> {
    let id = entry.task.clone().ok_or_else(|| Inconsistent("a task was added without an id".into()))?;
    let state = arrived(entry, &id, added.archived.as_ref(), added.blocked.as_ref())?;
    Ok(Task {
        id,
        uid: added.uid,
        spec: added.spec.clone(),
        depends_on: added.depends_on.clone(),
        exceptions: BTreeMap::new(),
        state,
        epoch: 0,
        version: 1,
        archived: added.archived.is_some(),
        born: entry.seq,
        created_by: entry.actor.clone(),
        created_at: added.created_at.unwrap_or(entry.at),
        updated_at: entry.at,
    })
}

/// The state of a task that stands like this in its own system.
fn arrived(
    entry: &Stamped,
    id: &TaskId,
    archived: Option<&Archived>,
    blocked: Option<&Blocker>,
) -> Result<State, Inconsistent> {
    let closing = |at: Option<Timestamp>| Closing {
        by: entry.actor.clone(),
        at: at.unwrap_or(entry.at),
        forced: false,
    };
    Ok(match (archived, blocked) {
        (None, None) => State::Open,
        (None, Some(on)) => State::Blocked { on: on.clone(), held: None },
        (Some(end), None) if end.state == StateName::Complete => State::Complete(closing(end.at)),
        (Some(end), None) if end.state == StateName::Dropped => State::Dropped(closing(end.at)),
        (Some(end), _) => return Err(Inconsistent(format!("{id} was archived as {}", end.state))),
    })
}

fn step(task: &mut Task, entry: &Stamped) -> Result<(), Inconsistent> {
    let state = std::mem::replace(&mut task.state, State::Open);
    let was = state.name();
    let wrong =
        || Inconsistent(format!("entry {}: `{}` of a task that is {was}", entry.seq, entry.event.verb()));
    let closing = |forced| Closing { by: entry.actor.clone(), at: entry.at, forced };
    // The person whom it waited for lets the holder go on.
    let is_answer = matches!(&state, State::Blocked { on: Blocker::Person(person), .. } if *person == entry.actor)
        && matches!(entry.event, Event::Unblocked(_));
    task.state = match (&entry.event, state) {
        (Event::Claimed(claimed), State::Open) => State::InProgress(granted(entry, &claimed.grant, None)?),
        (Event::Claimed(claimed), State::InProgress(_) | State::Blocked { .. }) if claimed.grant.forced => {
            State::InProgress(granted(entry, &claimed.grant, None)?)
        }
        (Event::TakenOver(taken), State::InProgress(_)) => {
            State::InProgress(granted(entry, &taken.grant, Some(&taken.reason))?)
        }
        (Event::TakenOver(taken), State::Blocked { on, held: Some(_) }) => {
            State::Blocked { on, held: Some(granted(entry, &taken.grant, Some(&taken.reason))?) }
        }
        (event, State::InProgress(held) | State::Blocked { held: Some(held), .. })
            if is_holders(event) && held.assignee != entry.actor && !is_answer =>
        {
            return Err(Inconsistent(format!(
                "entry {}: `{}` by {}, while {} held the task",
                entry.seq,
                event.verb(),
                entry.actor,
                held.assignee
            )));
        }
        (Event::Renewed(renewed), State::InProgress(held)) => {
            State::InProgress(renew(held, entry, &renewed.renewal))
        }
        (Event::Renewed(renewed), State::Blocked { on, held: Some(held) }) => {
            State::Blocked { on, held: Some(renew(held, entry, &renewed.renewal)) }
        }
        (Event::Noted(noted), state) => seen(entry, noted.renewal.as_ref(), state).ok_or_else(wrong)?,
        (Event::Messaged(said), state) => seen(entry, said.renewal.as_ref(), state).ok_or_else(wrong)?,
        (Event::Blocked(blocked), State::InProgress(held)) => State::Blocked {
            on: blocked.on.clone(),
            held: blocked.kept.as_ref().map(|renewal| renew(held, entry, renewal)),
        },
        (Event::Unblocked(unblocked), State::Blocked { held, .. }) => match (&unblocked.renewal, held) {
            (Some(renewal), Some(held)) => {
                State::InProgress(Assignment { resting: false, ..renew(held, entry, renewal) })
            }
            (None, None) => State::Open,
            _ => return Err(wrong()),
        },
        (Event::Released(_), State::InProgress(_) | State::Blocked { held: Some(_), .. }) => State::Open,
        (Event::Released(released), State::Blocked { held: None, .. }) if released.forced => State::Open,
        (Event::Completed(completed), State::InProgress(_)) => State::Complete(closing(completed.forced)),
        (Event::Completed(completed), State::Open | State::Blocked { .. }) if completed.forced => {
            State::Complete(closing(true))
        }
        (Event::Reopened(_), State::Complete(_)) if !task.archived => {
            // What was found met was not enough: it is looked at anew.
            task.spec.criteria.iter_mut().for_each(|criterion| criterion.ticked = None);
            State::Open
        }
        (Event::Dropped(_), state) if state.name() != StateName::Dropped && !task.archived => {
            State::Dropped(closing(false))
        }
        (Event::DependencyAdded(dependency), state) => {
            task.depends_on.insert(dependency.on.clone());
            state
        }
        (Event::DependencyRemoved(dependency), state) => {
            task.depends_on.remove(&dependency.on);
            task.exceptions.remove(&dependency.on);
            state
        }
        (Event::ExceptionRequested(requested), state) => {
            task.exceptions.insert(requested.on.clone(), asked(entry, requested));
            state
        }
        (Event::ExceptionApproved(approved), state) => match task.exceptions.get_mut(&approved.on) {
            Some(exception) => {
                exception.approved_by = Some(entry.actor.clone());
                state
            }
            None => return Err(wrong()),
        },
        (Event::Merged(merged), State::InProgress(held)) => {
            State::InProgress(renew(held, entry, &merged.renewal))
        }
        (Event::ReviewRequested(requested), State::InProgress(held)) => {
            State::InProgress(renew(held, entry, &requested.renewal))
        }
        (Event::Adopted(adopted), State::InProgress(held)) => {
            State::InProgress(renew(held, entry, &adopted.renewal))
        }
        (Event::Adopted(adopted), State::Blocked { on, held: Some(held) }) => {
            State::Blocked { on, held: Some(renew(held, entry, &adopted.renewal)) }
        }
        (
            Event::Salvaged(_)
            | Event::Reviewed(_)
            | Event::SessionCorrected(_)
            | Event::SessionUsed(_)
            | Event::MessagesRead(_)
            | Event::LineCommented(_)
            | Event::LimitsLifted(_)
            | Event::OutputClosed(_),
            state,
        ) => state,
        (Event::CheckAdded(added), state) => {
            task.spec.checks.push(added.check.clone());
            state
        }
        (Event::CheckApproved(approved), state) => {
            let check = task.spec.checks.iter_mut().find(|check| check.id() == approved.check);
            check.ok_or_else(wrong)?.state = CheckState::Approved;
            state
        }
        (Event::CheckRemoved(removed), state) => {
            task.spec.checks.retain(|check| check.id() != removed.check);
            state
        }
        (Event::CriteriaTicked(ticked), state) => {
            for id in &ticked.criteria {
                let criterion = task.spec.criteria.iter_mut().find(|criterion| criterion.id() == *id);
                let tick = Tick { by: entry.actor.clone(), at: entry.at };
                criterion.ok_or_else(wrong)?.ticked = (!ticked.withdrawn).then_some(tick);
            }
            state
        }
        (Event::CheckRun(run), state) => seen(entry, run.renewal.as_ref(), state).ok_or_else(wrong)?,
        (Event::Edited(edited), state) => {
            let checks = std::mem::take(&mut task.spec.checks);
            let criteria = match edited.outside.is_some() {
                true => edited.after.criteria.clone(),
                false => std::mem::take(&mut task.spec.criteria),
            };
            task.spec = Spec { checks, criteria, ..(*edited.after).clone() };
            seen(entry, edited.renewal.as_ref(), state).ok_or_else(wrong)?
        }
        (Event::Constrained(said), State::InProgress(held)) => {
            State::InProgress(Assignment { constraints: said.after.clone(), ..held })
        }
        (Event::Constrained(said), State::Blocked { on, held: Some(held) }) => {
            State::Blocked { on, held: Some(Assignment { constraints: said.after.clone(), ..held }) }
        }
        (Event::Followed(followed), state) => {
            task.state = state;
            if !task.follows_outside() {
                return Err(wrong());
            }
            task.archived = followed.archived.is_some();
            arrived(entry, &task.id, followed.archived.as_ref(), followed.blocked.as_ref())?
        }
        (Event::SessionStarted(started), State::InProgress(held)) if held.resting => {
            State::InProgress(Assignment { resting: false, ..renew(held, entry, &started.renewal) })
        }
        (Event::SessionStopped(stopped), State::InProgress(held)) if !held.resting => {
            State::InProgress(Assignment { resting: true, ..renew(held, entry, &stopped.renewal) })
        }
        (Event::Refused(_), state) => state,
        _ => return Err(wrong()),
    };
    Ok(())
}

/// What only the holder does, unless a person forces it.
fn is_holders(event: &Event) -> bool {
    match event {
        Event::Renewed(_)
        | Event::Blocked(_)
        | Event::Merged(_)
        | Event::ReviewRequested(_)
        | Event::Adopted(_)
        | Event::SessionStarted(_)
        | Event::SessionStopped(_) => true,
        Event::Noted(noted) => noted.renewal.is_some(),
        Event::Messaged(said) => said.renewal.is_some(),
        Event::CheckRun(run) => run.renewal.is_some(),
        Event::Edited(edited) => edited.renewal.is_some(),
        Event::Unblocked(unblocked) => unblocked.renewal.is_some(),
        Event::Released(released) => !released.forced,
        Event::Completed(completed) => !completed.forced,
        _ => false,
    }
}

fn granted(entry: &Stamped, grant: &Grant, reason: Option<&str>) -> Result<Assignment, Inconsistent> {
    let workstation = entry
        .workstation
        .clone()
        .ok_or_else(|| Inconsistent(format!("entry {}: a grant without a workstation", entry.seq)))?;
    Ok(Assignment {
        assignee: grant.assignee.clone().unwrap_or_else(|| entry.actor.clone()),
        tier: grant.tier.clone(),
        workstation,
        epoch: entry.epoch,
        assigned_at: entry.at,
        lease: Lease {
            id: grant.lease.clone(),
            ttl: Millis(grant.ttl_ms),
            renewed_at: entry.at,
            tick: grant.tick.clone(),
            renewals: 0,
            process: None,
        },
        handoff_reason: reason.map(str::to_owned),
        forced: grant.forced,
        route: grant.route.clone(),
        lane: grant.lane,
        base: grant.base.clone(),
        resting: false,
        constraints: grant.constraints.clone(),
    })
}

fn asked(entry: &Stamped, requested: &ExceptionRequested) -> Exception {
    Exception {
        requested_by: entry.actor.clone(),
        reason: requested.reason.clone(),
        rollback: requested.rollback.clone(),
        adr: requested.adr.clone(),
        approved_by: None,
    }
}

/// What leaves the state as it is: by the holder it is a sign of life.
fn seen(entry: &Stamped, renewal: Option<&Renewal>, state: State) -> Option<State> {
    match (renewal, state) {
        (None, state) => Some(state),
        (Some(renewal), State::InProgress(held)) => Some(State::InProgress(renew(held, entry, renewal))),
        (Some(renewal), State::Blocked { on, held: Some(held) }) => {
            Some(State::Blocked { on, held: Some(renew(held, entry, renewal)) })
        }
        _ => None,
    }
}

fn renew(held: Assignment, entry: &Stamped, renewal: &Renewal) -> Assignment {
    let lease = held.lease.renewed(entry.at, renewal);
    Assignment { lease, ..held }
}
