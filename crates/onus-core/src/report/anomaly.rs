//! What looks wrong in the record: a fold over its entries, and a few rules about what it collected (mission C14).
//!
//! An anomaly is a reason to look, never a verdict: every one names the entries or the task that it was found by.

use super::{forced, grant, late_by, renewal};
use crate::event::{Event, Stamped};
use crate::id::{Handle, Role, Seq, TaskId, TaskType, WorkstationName};
use crate::time::{Millis, Tick, Timestamp};
use crate::words;
use crate::worker::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

words!(
    /// What kind of thing looks wrong.
    AnomalyKind {
        /// A worker loses its leases often.
        LeasesLost = "leases_lost",
        /// A task goes from hand to hand and is not completed.
        Bouncing = "bouncing",
        /// A person completed it by force.
        ForcedCompletion = "forced_completion",
        /// It was completed, and no check says anything about it.
        Unproven = "unproven",
        /// A session ended without a note and without a run of a check.
        SilentSession = "silent_session",
        /// Somebody renews a lease and shows nothing else.
        SilentStall = "silent_stall",
        /// A worker acts after its leases have expired.
        LateActs = "late_acts",
        /// The wall clock jumped against the monotonic one.
        ClockJump = "clock_jump",
        /// Policy or gate refuses the same worker for the same reason again and again.
        RepeatedRefusals = "repeated_refusals",
        /// Work goes where the map in force sends nothing of its type.
        RoutingDrift = "routing_drift",
        /// It took far longer than others of its type.
        UnusualDuration = "unusual_duration",
        /// More is in progress than the map in force allows.
        OverLimit = "over_limit",
    }
);

/// One thing to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anomaly {
    pub kind: AnomalyKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Handle>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub detail: String,
    /// How often.
    pub count: i64,
    /// The last entry that showed it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
}

impl Anomaly {
    pub fn of_task(kind: AnomalyKind, task: &TaskId, detail: String) -> Anomaly {
        Anomaly { kind, worker: None, task: Some(task.clone()), detail, count: 1, seq: None }
    }

    fn of_worker(kind: AnomalyKind, worker: &Handle, count: i64, detail: String) -> Anomaly {
        Anomaly { kind, worker: Some(worker.clone()), task: None, detail, count, seq: None }
    }

    pub fn by(self, worker: &Handle) -> Anomaly {
        Anomaly { worker: Some(worker.clone()), ..self }
    }

    pub fn at(self, seq: Seq) -> Anomaly {
        Anomaly { seq: Some(seq), ..self }
    }
}

/// From where on something is worth a look.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Leases that a worker lost.
    pub leases_lost: i64,
    /// Grants of a task that is still not complete.
    pub grants: i64,
    /// Refusals of one worker for one reason.
    pub refusals: i64,
    /// A session without a sign of work.
    pub silent: Millis,
    /// A held task without a sign of work.
    pub stall: Millis,
    /// The two clocks apart.
    pub clock: Millis,
    /// Against the median of its type, and how many of a type make a median.
    pub duration_factor: i64,
    pub duration_samples: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            leases_lost: 3,
            grants: 4,
            refusals: 5,
            silent: Millis::minutes(30),
            stall: Millis::hours(2),
            clock: Millis::secs(60),
            duration_factor: 5,
            duration_samples: 5,
        }
    }
}

/// A stretch of work as the fold sees it.
#[derive(Debug)]
struct Stretch {
    worker: Handle,
    since: Timestamp,
    silent: bool,
}

/// A task that somebody holds now.
#[derive(Debug, Clone)]
pub struct Held {
    pub task: TaskId,
    pub task_type: Option<TaskType>,
    pub holder: Handle,
    pub kind: Kind,
    pub workstation: WorkstationName,
    /// The slot of a role that it takes.
    pub lane: Option<(Role, i64)>,
    pub since: Timestamp,
}

/// A completed task as the store knows it.
#[derive(Debug, Clone)]
pub struct Known {
    pub task_type: Option<String>,
    pub has_checks: bool,
}

/// Collects what the rules need, entry by entry in the order of the record.
#[derive(Debug, Default)]
pub struct Watch {
    limits: Limits,
    grants: BTreeMap<Handle, i64>,
    lost: BTreeMap<Handle, (i64, Seq)>,
    hands: BTreeMap<TaskId, Vec<Handle>>,
    late: BTreeMap<Handle, (i64, i64, Seq)>,
    refusals: BTreeMap<(Handle, String), (i64, Seq)>,
    stretches: BTreeMap<TaskId, Stretch>,
    /// Who began the last stretch of each.
    workers: BTreeMap<TaskId, Handle>,
    /// When each task was last granted, and last showed work.
    granted: BTreeMap<TaskId, Timestamp>,
    shown: BTreeMap<TaskId, Timestamp>,
    completed: BTreeMap<TaskId, (Handle, Seq, Option<Millis>)>,
    clocks: BTreeMap<(String, String), (i64, i64)>,
    found: Vec<Anomaly>,
}

impl Watch {
    pub fn new(limits: Limits) -> Watch {
        Watch { limits, ..Watch::default() }
    }

    pub fn entry(&mut self, entry: &Stamped) {
        self.clock(entry);
        if let Some(late) = late_by(&entry.event) {
            let (count, longest, seq) = self.late.entry(entry.actor.clone()).or_default();
            (*count, *longest, *seq) = (*count + 1, (*longest).max(late), entry.seq);
        }
        let Some(task) = &entry.task else { return };
        self.work(task, entry);
        if let Some((_, assignee)) = grant(entry) {
            *self.grants.entry(assignee.clone()).or_default() += 1;
            self.hands.entry(task.clone()).or_default().push(assignee.clone());
            self.granted.insert(task.clone(), entry.at);
        }
        match &entry.event {
            Event::TakenOver(taken) => {
                let (count, seq) = self.lost.entry(taken.from.clone()).or_default();
                (*count, *seq) = (*count + 1, entry.seq);
            }
            Event::Refused(refused) => {
                let key = (entry.actor.clone(), refused.code.to_string());
                let (count, seq) = self.refusals.entry(key).or_default();
                (*count, *seq) = (*count + 1, entry.seq);
            }
            Event::Completed(_) => {
                self.hands.remove(task);
                let took = self.granted.get(task).map(|granted| entry.at.since(*granted));
                self.completed.insert(task.clone(), (entry.actor.clone(), entry.seq, took));
                if let Some(reason) = forced(&entry.event) {
                    let detail = format!("completed by force: {reason}");
                    let anomaly = Anomaly::of_task(AnomalyKind::ForcedCompletion, task, detail);
                    self.found.push(anomaly.by(&entry.actor).at(entry.seq));
                }
            }
            Event::Dropped(_) => drop(self.hands.remove(task)),
            Event::Reopened(_) => drop(self.completed.remove(task)),
            _ => {}
        }
    }

    /// A monotonic clock and a wall clock of one boot move together, or somebody moved the wall clock.
    fn clock(&mut self, entry: &Stamped) {
        let tick: Option<&Tick> =
            grant(entry).map(|(grant, _)| &grant.tick).or(renewal(&entry.event).map(|it| &it.tick));
        let Some(tick) = tick else { return };
        let key = (tick.host.clone(), tick.boot.clone());
        let before = self.clocks.insert(key, (entry.at.0, tick.millis));
        let Some((wall, millis)) = before else { return };
        let apart = Millis((entry.at.0 - wall) - (tick.millis - millis));
        if apart.0.abs() > self.limits.clock.0 {
            let way = if apart.0 > 0 { "forwards" } else { "backwards" };
            let detail = format!("the wall clock of {} jumped {} {way}", tick.host, Millis(apart.0.abs()));
            let anomaly = Anomaly {
                kind: AnomalyKind::ClockJump,
                worker: None,
                task: entry.task.clone(),
                detail,
                count: 1,
                seq: Some(entry.seq),
            };
            self.found.push(anomaly);
        }
    }

    /// Follows the stretches of work, and whether anything came of them.
    fn work(&mut self, task: &TaskId, entry: &Stamped) {
        let ends = matches!(
            &entry.event,
            Event::Claimed(_)
                | Event::TakenOver(_)
                | Event::Released(_)
                | Event::Completed(_)
                | Event::Blocked(_)
                | Event::SessionStopped(_)
                | Event::Dropped(_)
        );
        let shows = match &entry.event {
            Event::Noted(_)
            | Event::Messaged(_)
            | Event::CheckRun(_)
            | Event::Completed(_)
            | Event::Merged(_) => true,
            Event::Blocked(blocked) => blocked.handoff.is_some(),
            Event::Released(released) => released.note.is_some(),
            _ => false,
        };
        if shows {
            self.shown.insert(task.clone(), entry.at);
            if let Some(stretch) = self.stretches.get_mut(task) {
                stretch.silent = false;
            }
        }
        if ends && let Some(stretch) = self.stretches.remove(task) {
            self.silent(task, &stretch, entry);
        }
        let starts = match &entry.event {
            Event::SessionStarted(_) => Some(&entry.actor),
            // Whoever answered is not who goes on.
            Event::Unblocked(_) => Some(self.workers.get(task).unwrap_or(&entry.actor)),
            _ => grant(entry).map(|(_, assignee)| assignee),
        };
        if let Some(worker) = starts.cloned() {
            self.workers.insert(task.clone(), worker.clone());
            let stretch = Stretch { worker, since: entry.at, silent: true };
            self.stretches.entry(task.clone()).or_insert(stretch);
        }
    }

    fn silent(&mut self, task: &TaskId, stretch: &Stretch, entry: &Stamped) {
        let length = entry.at.since(stretch.since);
        if stretch.silent && length >= self.limits.silent {
            let detail = format!("{length} without a note or a run of a check");
            let anomaly = Anomaly::of_task(AnomalyKind::SilentSession, task, detail);
            self.found.push(anomaly.by(&stretch.worker).at(entry.seq));
        }
    }

    /// The tasks that were completed, so that the store can be asked about them.
    pub fn completed(&self) -> impl Iterator<Item = &TaskId> {
        self.completed.keys()
    }

    /// Everything that looks wrong. `held` is what is held now, `known` what the store knows of completed tasks.
    pub fn anomalies(
        mut self,
        held: &[Held],
        known: &BTreeMap<TaskId, Known>,
        now: Timestamp,
    ) -> Vec<Anomaly> {
        self.workers();
        self.bouncing();
        self.stalls(held, now);
        self.completions(known);
        self.found
    }

    fn workers(&mut self) {
        for (worker, (count, seq)) in &self.lost {
            if *count >= self.limits.leases_lost {
                let grants = self.grants.get(worker).copied().unwrap_or(0);
                let detail = format!("lost {count} leases to takeovers, of {grants} grants");
                let anomaly = Anomaly::of_worker(AnomalyKind::LeasesLost, worker, *count, detail);
                self.found.push(anomaly.at(*seq));
            }
        }
        for (worker, (count, longest, seq)) in &self.late {
            let longest = Millis(*longest);
            let detail = format!("acted {count} times after its lease had expired, once {longest} late");
            let anomaly = Anomaly::of_worker(AnomalyKind::LateActs, worker, *count, detail);
            self.found.push(anomaly.at(*seq));
        }
        for ((worker, code), (count, seq)) in &self.refusals {
            if *count >= self.limits.refusals {
                let detail = format!("was refused {count} times: {code}");
                let anomaly = Anomaly::of_worker(AnomalyKind::RepeatedRefusals, worker, *count, detail);
                self.found.push(anomaly.at(*seq));
            }
        }
    }

    fn bouncing(&mut self) {
        for (task, hands) in &self.hands {
            let several = hands.iter().collect::<BTreeSet<_>>().len() > 1;
            if hands.len() as i64 >= self.limits.grants && several {
                let names: Vec<&str> = hands.iter().map(Handle::as_str).collect();
                let detail = format!("went from hand to hand: {}", names.join(", "));
                let count = hands.len() as i64;
                self.found.push(Anomaly { count, ..Anomaly::of_task(AnomalyKind::Bouncing, task, detail) });
            }
        }
    }

    fn stalls(&mut self, held: &[Held], now: Timestamp) {
        for one in held {
            let shown = self.shown.get(&one.task).copied().unwrap_or(one.since).max(one.since);
            let quiet = now.since(shown);
            if quiet >= self.limits.stall {
                let detail = format!("held without a note or a run of a check for {quiet}");
                let anomaly = Anomaly::of_task(AnomalyKind::SilentStall, &one.task, detail);
                self.found.push(anomaly.by(&one.holder));
            }
        }
    }

    fn completions(&mut self, known: &BTreeMap<TaskId, Known>) {
        let forced: BTreeSet<TaskId> = self
            .found
            .iter()
            .filter(|found| found.kind == AnomalyKind::ForcedCompletion)
            .filter_map(|found| found.task.clone())
            .collect();
        let mut by_type: BTreeMap<&Option<String>, Vec<i64>> = BTreeMap::new();
        for (task, (_, _, took)) in &self.completed {
            if let (Some(took), Some(known)) = (took, known.get(task)) {
                by_type.entry(&known.task_type).or_default().push(took.0);
            }
        }
        by_type.values_mut().for_each(|all| all.sort_unstable());
        for (task, (by, seq, took)) in &self.completed {
            let Some(known) = known.get(task) else { continue };
            if !known.has_checks && !forced.contains(task) {
                let detail = "completed, and no check says anything about it".to_owned();
                let anomaly = Anomaly::of_task(AnomalyKind::Unproven, task, detail);
                self.found.push(anomaly.by(by).at(*seq));
            }
            let all = by_type.get(&known.task_type).map(Vec::as_slice).unwrap_or_default();
            let usual = all.get(all.len() / 2).copied().unwrap_or(0).max(Millis::minutes(1).0);
            let Some(took) = took.filter(|_| all.len() >= self.limits.duration_samples) else { continue };
            if took.0 > usual.saturating_mul(self.limits.duration_factor) {
                let name = known.task_type.as_deref().unwrap_or("no type");
                let detail = format!("took {took}; half of {name} take less than {}", Millis(usual));
                let anomaly = Anomaly::of_task(AnomalyKind::UnusualDuration, task, detail);
                self.found.push(anomaly.by(by).at(*seq));
            }
        }
    }
}
