//! The lease that a run holds: how it is renewed, and how it is given back.

use super::unexpected;
use crate::context::{Store, World};
use onus_app::submit::{Receipt, Target};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant, WhileBlocked};
use onus_core::constraint::Constraint;
use onus_core::handoff::{Standing, Words};
use onus_core::id::{Epoch, Handle, Seq, TaskId, WorkstationName};
use onus_core::lease::Token;
use onus_core::limits::Measure;
use onus_core::process::Process;
use onus_core::refusal::Refusal;
use onus_core::task::{Blocker, Task};
use onus_host::supervise::Beat;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What a grant gave.
#[derive(Debug, Clone)]
pub(super) struct GrantedLease {
    pub(super) task: TaskId,
    pub(super) worker: Handle,
    pub(super) workstation: WorkstationName,
    pub(super) epoch: Epoch,
    pub(super) token: Token,
    pub(super) ttl: Duration,
    pub(super) directory: Option<PathBuf>,
    /// What the assignment allows.
    pub(super) constraints: Vec<Constraint>,
    /// The stretch of work that the grant began.
    pub(super) session: Seq,
    /// What works under the lease, once it does.
    process: Arc<OnceLock<Process>>,
}

impl GrantedLease {
    pub(super) fn new(store: &mut Store, receipt: &Receipt) -> Result<GrantedLease, Refusal> {
        let (Some(held), Some(token)) = (receipt.task.assignment(), &receipt.token) else {
            return Err(unexpected("a grant without a lease"));
        };
        let begun = store.sessions(Some(&receipt.task.id), Some(&held.assignee), 1)?.sessions;
        let session = begun.first().ok_or_else(|| unexpected("a grant without a session"))?.id;
        Ok(GrantedLease {
            session,
            task: receipt.task.id.clone(),
            worker: held.assignee.clone(),
            workstation: held.workstation.clone(),
            epoch: held.epoch,
            token: token.clone(),
            ttl: duration(held.lease.ttl.0),
            directory: store.directory_of(&held.workstation)?,
            constraints: held.constraints.clone(),
            process: Arc::default(),
        })
    }

    /// Whether `task` is still held under this grant.
    pub(super) fn is_in(&self, task: &Task) -> bool {
        task.assignment().is_some_and(|held| held.epoch == self.epoch)
    }

    pub(super) fn submit(
        &self,
        world: &World,
        store: &mut Store,
        command: Command,
    ) -> Result<Receipt, Refusal> {
        let envelope = Envelope {
            request: world.another_request()?,
            actor: Some(self.worker.clone()),
            token: Some(self.token.clone()),
            task: Some(self.task.clone()),
            project: None,
            base: None,
            command,
        };
        store.submit(&envelope, &Target::Named)
    }

    /// Puts on record what works under the lease, so that its death can be proven. Where this fails the next renewal
    /// does it, or ends the command.
    pub(super) fn attended_by(&self, world: &World, process: Process) {
        if self.process.set(process).is_ok() {
            drop(self.renew(world));
        }
    }

    /// One renewal after the other. Each opens the store anew: one that went away may have come back.
    pub(super) fn renewing(&self, world: &World) -> impl FnMut() -> Beat + Send + 'static {
        let (held, world) = (self.clone(), world.clone());
        move || held.renew(&world).unwrap_or_else(|refusal| held.beat(&world, refusal))
    }

    fn renew(&self, world: &World) -> Result<Beat, Refusal> {
        let command = Command::Renew { ttl: None, process: self.process.get().cloned() };
        let mut store = world.open()?;
        let receipt = self.submit(world, &mut store, command)?;
        let held = receipt.task.assignment().ok_or_else(|| unexpected("a renewal without a lease"))?;
        Ok(Beat::Live { ttl: duration(held.lease.ttl.0), again: self.next_look(&mut store) })
    }

    /// When a limit of time may be reached: then the store says at a renewal whether it is.
    pub(super) fn next_look(&self, store: &mut Store) -> Option<Duration> {
        let limits = store.limits(Some(&self.task)).ok()?.limits;
        let times = limits.into_iter().filter(|one| one.measure == Measure::Time && !one.reached);
        let left = times.map(|one| one.limit - one.used).min_by(f64::total_cmp)?;
        Duration::try_from_secs_f64(left).ok()
    }

    /// A refusal by the rules ends the lease; anything else may pass.
    fn beat(&self, world: &World, refusal: Refusal) -> Beat {
        let is_final = matches!(
            refusal.code,
            Code::Fenced
                | Code::LeaseRequired
                | Code::WorkstationQuarantined
                | Code::BudgetExceeded
                | Code::UnknownTask
        );
        match is_final && self.ended_itself(world).unwrap_or(false) {
            true => Beat::Over,
            false if is_final => Beat::Lost(refusal),
            false => Beat::Unreachable(refusal),
        }
    }

    /// Whether the command itself completed the task, released it, or gave its lease back while it waits.
    fn ended_itself(&self, world: &World) -> Result<bool, Refusal> {
        let story = world.open()?.show(&self.task)?;
        let own = story.assignments.iter().find(|past| past.epoch == self.epoch);
        let reason = own.and_then(|past| past.end_reason.as_deref());
        Ok(matches!(reason, Some("completed" | "released" | "blocked")))
    }

    /// Gives the task back with what git knows and `summary`.
    pub(super) fn release(&self, world: &World, summary: &str) -> Result<(), Refusal> {
        let mut store = world.open()?;
        let words = Words { summary: Some(summary.to_owned()), ..Words::default() };
        let command = Command::Release {
            note: Some(onus_core::text::Text::new(summary.to_owned())),
            handoff: store.compose_handoff(&self.task, Standing::Released, None, &words)?,
            warrant: Warrant::Ordinary,
        };
        self.submit(world, &mut store, command)?;
        world.forget_lease(&self.task, self.directory.as_deref());
        Ok(())
    }

    /// Whether others had the task before so often that a person should look at it.
    pub(super) fn was_begun_too_often(&self, world: &World) -> Result<bool, Refusal> {
        let mut store = world.open()?;
        let most = usize::from(store.settings.fleet.attempts);
        Ok(store.show(&self.task)?.assignments.len() >= most)
    }

    /// Gives the task to a person to decide, with what git knows and `summary`.
    pub(super) fn block(&self, world: &World, person: &Handle, summary: &str) -> Result<(), Refusal> {
        self.wait_for(world, Blocker::Person(person.clone()), WhileBlocked::ReleaseLease, summary)?;
        world.forget_lease(&self.task, self.directory.as_deref());
        Ok(())
    }

    /// Keeps the task until others have done their part: looked at the work, merged before it.
    pub(super) fn wait_for_others(&self, world: &World, on: &str, summary: &str) -> Result<(), Refusal> {
        self.wait_for(world, Blocker::External(on.to_owned()), WhileBlocked::KeepLease, summary)
    }

    fn wait_for(
        &self,
        world: &World,
        on: Blocker,
        lease: WhileBlocked,
        summary: &str,
    ) -> Result<(), Refusal> {
        let mut store = world.open()?;
        let words = Words { summary: Some(summary.to_owned()), ..Words::default() };
        let handoff = store.compose_handoff(&self.task, Standing::Blocked, None, &words)?;
        self.submit(world, &mut store, Command::Block { on, lease, note: None, handoff }).map(drop)
    }

    /// The same where there is a better reason to tell than that it failed.
    pub(super) fn give_back(&self, world: &World, summary: &str) {
        drop(self.release(world, summary));
    }
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
