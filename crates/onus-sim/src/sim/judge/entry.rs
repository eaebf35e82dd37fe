//! What each new entry of the record must be: a link of its chain, and an act that was permitted.

use super::{Deeds, Judge, Sign, Verdict, holds};
use crate::sim::step::{ROLES, SCOPES};
use crate::sim::team::{LANES, MAPS, is_person, is_verifier};
use onus_core::event::{Event, Grant, Renewal, Stamped};
use onus_core::hash::Digest;
use onus_core::id::{TaskId, WorkstationName};
use onus_core::ledger::Entry;
use onus_core::settings::Settings;
use onus_core::task::{Assignment, State, StateName, Task, evolve};
use onus_core::time::{Millis, Now};

impl Judge {
    /// Takes one entry into the judge's own picture.
    pub(super) fn follow(&mut self, uid: &str, entry: &Entry, deeds: &mut Deeds<'_>) -> Verdict {
        holds(entry.seq == self.seq + 1, "one-chain", || {
            format!("entry {} follows {}", entry.seq, self.seq)
        })?;
        holds(entry.hash == entry.expected_hash(uid), "one-chain", || {
            format!("entry {} is not its hash", entry.seq)
        })?;
        let head = self.heads.insert(entry.task.clone(), entry.hash).unwrap_or(Digest::ZERO);
        holds(entry.prev == head, "one-chain", || format!("entry {} does not follow its chain", entry.seq))?;
        (self.seq, self.last) = (entry.seq, entry.hash);
        let stamped = entry.open();
        let Ok(stamped) = stamped else {
            return holds(false, "one-chain", || format!("entry {} cannot be read: {stamped:?}", entry.seq));
        };
        match &stamped.task {
            None => self.workspace_event(&stamped),
            Some(id) => self.task_event(id, &stamped, deeds),
        }
    }

    fn workspace_event(&mut self, stamped: &Stamped) -> Verdict {
        match &stamped.event {
            Event::WorkerPaused(event) => drop(self.paused.insert(event.handle.clone())),
            Event::WorkerResumed(event) => drop(self.paused.remove(&event.handle)),
            Event::WorkstationQuarantined(event) => drop(self.quarantined.insert(event.name.clone())),
            Event::WorkstationRestored(event) => drop(self.quarantined.remove(&event.name)),
            _ => {}
        }
        holds(is_person(stamped.actor.as_str()), "people-only-force", || {
            format!("{} did {}", stamped.actor, stamped.event.verb())
        })
    }

    fn task_event(&mut self, id: &TaskId, stamped: &Stamped, deeds: &mut Deeds<'_>) -> Verdict {
        let before = self.tasks.get(id).cloned();
        let after = evolve(before.clone(), stamped);
        let Ok(after) = after else {
            return holds(false, "fold-gives-row", || format!("{id}: {after:?}"));
        };
        let epoch = before.as_ref().map_or(0, |task| task.epoch);
        let raises = matches!(
            stamped.event,
            Event::Claimed(_) | Event::TakenOver(_) | Event::Reopened(_) | Event::Dropped(_)
        );
        holds(after.epoch == epoch + i64::from(raises), "epoch-rises", || {
            format!("{id} went from {epoch} to {} by {}", after.epoch, stamped.event.verb())
        })?;
        people_only(stamped)?;
        if let Some(before) = &before {
            self.fenced(before, stamped, deeds)?;
            self.not_early(before, stamped, deeds.now)?;
        }
        if let Some((grant, was_forced)) = granted(&stamped.event) {
            self.granted(&after, grant, was_forced)?;
        }
        let claimed = matches!(&stamped.event, Event::Claimed(claimed) if !claimed.grant.forced);
        holds(!(claimed && self.waits(&after)), "dependencies", || format!("{id} waits for others"))?;
        self.note_life(id, stamped, &after, deeds.now);
        deeds.versions.insert(stamped.seq, after.version);
        self.tasks.insert(id.clone(), after);
        Ok(())
    }

    /// A holder's act was made by the holder, with the token that opens its lease, and not while that is suspended.
    fn fenced(&self, before: &Task, stamped: &Stamped, deeds: &Deeds<'_>) -> Verdict {
        let (is_holders, goes_on) = match &stamped.event {
            Event::Renewed(_) | Event::Blocked(_) | Event::SessionStarted(_) | Event::SessionStopped(_) => {
                (true, true)
            }
            Event::Released(released) => (!released.forced, false),
            Event::Completed(completed) => (!completed.forced, true),
            Event::Noted(noted) => (noted.renewal.is_some(), false),
            Event::Unblocked(unblocked) => (unblocked.renewal.is_some(), true),
            _ => (false, false),
        };
        if !is_holders {
            return Ok(());
        }
        let shown = |held: &Assignment| {
            deeds.told.iter().any(|told| {
                told.actor == held.assignee
                    && told.token.as_ref().is_some_and(|token| {
                        token.generation == 1 && token.epoch == held.epoch && held.lease.is_opened_by(token)
                    })
            })
        };
        let held = before.assignment();
        let is_holder = held.is_some_and(|held| held.assignee == stamped.actor && shown(held));
        holds(is_holder, "fence", || {
            format!("{} by {} without the lease of {}", stamped.event.verb(), stamped.actor, before.id)
        })?;
        let suspended = held.is_some_and(|held| self.quarantined.contains(&held.workstation));
        holds(!(goes_on && suspended), "fence", || {
            format!("{} went on in a quarantined workstation", stamped.actor)
        })
    }

    /// A lease changes hands by force, or when it may: by the simulation's clock.
    fn not_early(&self, before: &Task, stamped: &Stamped, now: &Now) -> Verdict {
        let (Event::TakenOver(taken), Some(held)) = (&stamped.event, before.assignment()) else {
            return Ok(());
        };
        if taken.grant.forced {
            return Ok(());
        }
        let from_agent = !is_person(held.assignee.as_str());
        holds(from_agent || is_person(stamped.actor.as_str()), "expiry-permits", || {
            format!("{} took {} over from a person", stamped.actor, before.id)
        })?;
        let may = self.quarantined.contains(&held.workstation)
            || self.signs.get(&before.id).is_some_and(|sign| sign.is_over(now));
        holds(may, "expiry-permits", || format!("{} changed hands early", before.id))
    }

    /// What a grant by the rules found: room, and everything done that it waits for.
    fn granted(&self, task: &Task, grant: &Grant, was_forced: bool) -> Verdict {
        let Some(held) = task.assignment() else {
            return holds(false, "one-holder", || format!("{} was granted to nobody", task.id));
        };
        let others: Vec<(&Task, &Assignment)> = self
            .tasks
            .values()
            .filter(|other| other.id != task.id)
            .filter_map(|other| Some((other, other.assignment()?)))
            .collect();
        let place_is_free = others.iter().all(|(_, other)| other.workstation != held.workstation);
        holds(place_is_free, "one-holder", || format!("{} was taken already", held.workstation))?;
        holds(!self.paused.contains(&held.assignee), "gate", || format!("{} is paused", held.assignee))?;
        let open = |name: &WorkstationName| !self.quarantined.contains(name);
        holds(open(&held.workstation), "gate", || format!("{} is quarantined", held.workstation))?;
        if was_forced {
            return Ok(());
        }
        self.lane(task, grant, &others)?;
        for (other, _) in others {
            let apart = !overlap(scope(task), scope(other));
            holds(apart, "scope", || format!("{} and {} share paths", task.id, other.id))?;
        }
        Ok(())
    }

    fn lane(&self, task: &Task, grant: &Grant, others: &[(&Task, &Assignment)]) -> Verdict {
        let Some(limits) = LANES.get(self.map % MAPS) else { return Ok(()) };
        let Some(role) = &task.spec.role else { return Ok(()) };
        let Some(at) = ROLES.iter().position(|name| *name == role.as_str()) else { return Ok(()) };
        let (lanes, most) = limits[at];
        let own = grant.lane.unwrap_or(0);
        holds((1..=lanes).contains(&own), "lane", || format!("{} has lane {own} of {lanes}", task.id))?;
        // Whoever was forced in has no lane of its own, and counts in the first one.
        let there = |other: &&(&Task, &Assignment)| {
            other.0.spec.role == task.spec.role && other.1.lane.unwrap_or(1) == own
        };
        let taken = others.iter().filter(there).count();
        holds(taken < most, "lane", || format!("{role}:{own} has {taken} already, and takes {most}"))
    }

    /// Remembers when a holder was last seen, by the simulation's clock.
    fn note_life(&mut self, id: &TaskId, stamped: &Stamped, after: &Task, now: &Now) {
        let ttl = after.assignment().map(|held| held.lease.ttl);
        let shows_life = granted(&stamped.event).is_some() || renewal(&stamped.event).is_some();
        match ttl {
            Some(ttl) if shows_life => drop(self.signs.insert(id.clone(), Sign { at: now.clone(), ttl })),
            Some(_) => {}
            None => drop(self.signs.remove(id)),
        }
    }

    /// An ordinary claim waits for nothing.
    fn waits(&self, task: &Task) -> bool {
        task.depends_on.iter().any(|on| {
            let done = self.tasks.get(on).is_some_and(|other| other.state.name() == StateName::Complete);
            let excepted = task.exceptions.get(on).is_some_and(|exception| exception.approved_by.is_some());
            !done && !excepted
        })
    }
}

impl Sign {
    /// Expired and past the grace period, or its host has booted since.
    fn is_over(&self, now: &Now) -> bool {
        let (then, grace) = (&self.at, Settings::default().lease.grace);
        let age = if then.tick.host != now.tick.host {
            now.wall.0 - then.wall.0
        } else if then.tick.boot != now.tick.boot {
            return true;
        } else {
            now.tick.millis - then.tick.millis
        };
        Millis(age) >= Millis(self.ttl.0 + grace.0)
    }
}

fn granted(event: &Event) -> Option<(&Grant, bool)> {
    match event {
        Event::Claimed(claimed) => Some((&claimed.grant, claimed.grant.forced)),
        Event::TakenOver(taken) => Some((&taken.grant, taken.grant.forced)),
        _ => None,
    }
}

fn renewal(event: &Event) -> Option<&Renewal> {
    match event {
        Event::Renewed(event) => Some(&event.renewal),
        Event::SessionStarted(event) => Some(&event.renewal),
        Event::SessionStopped(event) => Some(&event.renewal),
        Event::Noted(event) => event.renewal.as_ref(),
        Event::Unblocked(event) => event.renewal.as_ref(),
        Event::Blocked(event) => event.kept.as_ref(),
        _ => None,
    }
}

fn people_only(stamped: &Stamped) -> Verdict {
    let actor = stamped.actor.as_str();
    let takes_person = match &stamped.event {
        Event::Claimed(claimed) => claimed.grant.forced || claimed.grant.assignee.is_some(),
        Event::TakenOver(taken) => taken.grant.forced,
        Event::Released(released) => released.forced,
        Event::Completed(completed) => completed.forced,
        Event::Reopened(_) => !is_verifier(actor),
        Event::Dropped(_) | Event::DependencyRemoved(_) => true,
        Event::ExceptionApproved(_) | Event::SessionCorrected(_) => true,
        _ => false,
    };
    holds(!takes_person || is_person(actor), "people-only-force", || {
        format!("{actor} did what takes a person: {}", stamped.event.verb())
    })
}

fn scope(task: &Task) -> Option<usize> {
    let glob = task.spec.scope.first()?;
    SCOPES.iter().position(|directory| *glob == format!("{directory}/**"))
}

/// Directories: two of them overlap exactly if one lies in the other.
fn overlap(one: Option<usize>, other: Option<usize>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let (one, other) = (SCOPES[one], SCOPES[other]);
    let within = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    within(one, other) || within(other, one)
}

/// Whether a task is worked on now: somebody holds it and does not rest.
pub(super) fn is_worked_on(task: &Task) -> bool {
    matches!(&task.state, State::InProgress(held) if !held.resting)
}
