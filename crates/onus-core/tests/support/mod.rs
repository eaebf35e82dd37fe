//! A world in memory: what a store and a shell would do around `decide`, and nothing more.

pub(crate) mod contract;
pub(crate) mod history;
mod limits;
pub(crate) mod script;

use onus_core::command::Command;
use onus_core::decide::{Decision, decide};
use onus_core::effect::{Effect, EndReason, NoteKind, effects};
use onus_core::event::{Event, Refused, Stamped};
use onus_core::evidence::{Evidence, Review};
use onus_core::facts::{Builder, Caller, Dependency, Facts, Fresh, Place, Slice};
use onus_core::hash::Digest;
use onus_core::id::{CommitId, Epoch, Generation, Handle, Seq, TaskId, WorkstationName};
use onus_core::identity_map::{Policy, Signals, WorkerSignal, WorkstationSignal};
use onus_core::lane::Occupied;
use onus_core::lease::Token;
use onus_core::ledger::Entry;
use onus_core::output::KeptOutput;
use onus_core::probe::{ProbeResult, Verdict};
use onus_core::process::{Birth, Process, Vital};
use onus_core::refusal::Refusal;
use onus_core::registry::{self, workstation::readiness};
use onus_core::session::{OutputState, Proposal, Recorded, Usage};
use onus_core::settings::Settings;
use onus_core::task::{Assignment, Blocker, Spec, State, StateName, Task, evolve};
use onus_core::text::Text;
use onus_core::time::{Millis, Now, Tick, Timestamp};
use onus_core::worker::{Kind, VERIFIER_ROLE, Worker, WorkerState};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// The uid that every sealed entry belongs to.
pub(crate) const WORKSPACE: &str = "018f0000-0000-7000-8000-000000000001";

/// When every world begins, by the wall clock.
pub(crate) const BEGIN: Timestamp = Timestamp(1_790_000_000_000);

/// An assignment's row: it outlives the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AssignmentRow {
    pub(crate) task: TaskId,
    pub(crate) assignment: Assignment,
    pub(crate) ended: Option<(Timestamp, EndReason)>,
}

/// A session's row. `from` and `to` also keep the entries that opened and closed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) task: TaskId,
    pub(crate) worker: Handle,
    pub(crate) workstation: WorkstationName,
    pub(crate) epoch: Epoch,
    pub(crate) from: (Seq, Timestamp),
    pub(crate) to: Option<(Seq, Timestamp, EndReason)>,
    /// What the last correction says.
    pub(crate) corrected: Option<(Timestamp, Timestamp)>,
}

impl Session {
    pub(crate) fn began(&self) -> Timestamp {
        self.corrected.map_or(self.from.1, |(from, _)| from)
    }

    pub(crate) fn ended(&self) -> Option<Timestamp> {
        self.corrected.map(|(_, to)| to).or(self.to.map(|(_, at, _)| at))
    }
}

/// A call that was decided and written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    Changed { task: TaskId, events: Vec<Event> },
    Existing(TaskId),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) generation: Generation,
    pub(crate) behind_anchor: bool,
    pub(crate) clock: Now,
    /// What the clocks of the hosts that are not calling show.
    elsewhere: BTreeMap<String, Tick>,
    /// The processes, by number, that have ended.
    pub(crate) ended: BTreeSet<i32>,
    pub(crate) workers: BTreeMap<Handle, Worker>,
    pub(crate) workstations: BTreeMap<WorkstationName, Workstation>,
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    pub(crate) chains: BTreeMap<TaskId, Vec<Entry>>,
    pub(crate) assignments: Vec<AssignmentRow>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) usages: Vec<(Seq, Usage)>,
    /// Sessions whose output is on record; of every other one something was printed.
    pub(crate) closed: Vec<Seq>,
    pub(crate) proposals: Vec<(Seq, Proposal)>,
    pub(crate) notes: Vec<(TaskId, NoteKind, Text)>,
    pub(crate) policy: Policy,
    pub(crate) evidence: Vec<(TaskId, Evidence)>,
    pub(crate) reviews: Vec<(TaskId, Review)>,
    pub(crate) landed: Vec<(TaskId, Epoch, Vec<CommitId>)>,
    /// What the probes of every workstation said last.
    pub(crate) probes: Vec<ProbeResult>,
    seq: Seq,
    draws: u128,
}

pub(crate) fn handle(name: &str) -> Handle {
    format!("@{name}").parse().unwrap()
}

pub(crate) fn workstation_of(name: &str) -> WorkstationName {
    format!("ws-{name}").parse().unwrap()
}

pub(crate) fn task_id(number: usize) -> TaskId {
    format!("T-{number}").parse().unwrap()
}

pub(crate) fn text(content: &str) -> Text {
    Text::new(content.to_owned())
}

pub(crate) fn spec(title: &str) -> Spec {
    Spec { kind: "feature".into(), ..Spec::titled(title) }
}

pub(crate) fn worker(name: &str, kind: Kind, role: Option<&str>) -> Worker {
    Worker {
        handle: handle(name),
        kind,
        tier: None,
        role: role.map(|role| role.parse().unwrap()),
        state: WorkerState::Active,
        tz: "UTC".to_owned(),
    }
}

impl World {
    /// Agents `@a` and `@b`, people `@p` and `@q`, the verifying agent `@v`; `ws-a` to `ws-v`, one for each.
    pub(crate) fn new() -> World {
        let team = [
            worker("a", Kind::Agent, None),
            worker("b", Kind::Agent, None),
            worker("p", Kind::Human, None),
            worker("q", Kind::Human, None),
            worker("v", Kind::Agent, Some(VERIFIER_ROLE)),
        ];
        let workstations = ["a", "b", "p", "q", "v"].map(|name| Workstation {
            name: workstation_of(name),
            kind: WorkstationKind::Logical,
            path: None,
            state: WorkstationState::Ready,
            lifecycle: Lifecycle::Reusable,
            version: 1,
            branch: None,
            probes: Vec::new(),
            reason: None,
            role: None,
            lane: None,
        });
        World {
            settings: Settings::default(),
            generation: 1,
            behind_anchor: false,
            ended: BTreeSet::new(),
            clock: Now {
                wall: BEGIN,
                tick: Tick { host: "h1".into(), boot: "b1".into(), millis: 5_000_000 },
            },
            elsewhere: BTreeMap::new(),
            workers: team.into_iter().map(|w| (w.handle.clone(), w)).collect(),
            workstations: workstations.into_iter().map(|w| (w.name.clone(), w)).collect(),
            tasks: BTreeMap::new(),
            chains: BTreeMap::new(),
            assignments: Vec::new(),
            sessions: Vec::new(),
            usages: Vec::new(),
            closed: Vec::new(),
            proposals: Vec::new(),
            notes: Vec::new(),
            policy: Policy::Absent,
            evidence: Vec::new(),
            reviews: Vec::new(),
            landed: Vec::new(),
            probes: Vec::new(),
            seq: 0,
            draws: 0,
        }
    }

    pub(crate) fn tick(&mut self, span: Millis) {
        self.clock.wall.0 += span.0;
        for tick in self.elsewhere.values_mut().chain([&mut self.clock.tick]) {
            tick.millis += span.0;
        }
    }

    /// The host starts again: its clock counts from nothing.
    pub(crate) fn reboot(&mut self) {
        let boot: u32 = self.clock.tick.boot[1..].parse().unwrap();
        self.clock.tick.boot = format!("b{}", boot + 1);
        self.clock.tick.millis = 1_000;
    }

    /// The calls that follow come from another machine, whose clock has nothing to do with the first one's.
    pub(crate) fn host(&mut self, name: &str) {
        if self.clock.tick.host != name {
            let first_seen = Tick { host: name.into(), boot: "b1".into(), millis: 77 };
            let here = self.elsewhere.remove(name).unwrap_or(first_seen);
            let left = std::mem::replace(&mut self.clock.tick, here);
            self.elsewhere.insert(left.host.clone(), left);
        }
    }

    pub(crate) fn caller(&self, who: Option<&Handle>) -> Caller {
        match who {
            None => Caller::Anonymous,
            Some(handle) => match self.workers.get(handle) {
                Some(worker) => Caller::Registered(worker.clone()),
                None => Caller::Unregistered(handle.clone()),
            },
        }
    }

    /// The token that opens the task's lease at this moment, as only its holder would know it.
    pub(crate) fn live_token(&self, task: &TaskId) -> Option<Token> {
        let held = self.tasks.get(task)?.assignment()?;
        Some(Token {
            generation: self.generation,
            epoch: held.epoch,
            lease: *held.lease.id.secret().unwrap(),
        })
    }

    /// A workstation's only probe passes or fails.
    pub(crate) fn probe(&mut self, name: &WorkstationName, word: &str) {
        let verdict = Verdict::parse(word).unwrap();
        let probe = "tcp:db:5432".to_owned();
        let detail = "it was asked".to_owned();
        self.probes = vec![ProbeResult { probe, at: self.clock.wall, took_ms: 1, verdict, detail }];
        let workstation = self.workstations.get_mut(name).unwrap();
        if let Some(event) = readiness(workstation, &self.probes) {
            *workstation = registry::workstation::evolve(Some(workstation.clone()), &event).unwrap();
        }
    }

    fn place(&self, command: &Command) -> Place {
        let asked = match command {
            Command::Claim { workstation, here, .. } | Command::Takeover { workstation, here, .. } => {
                workstation.clone().or_else(|| here.clone())
            }
            _ => None,
        };
        let holder = |name: &WorkstationName| {
            self.tasks.values().find_map(|task| {
                let held = task.assignment().filter(|held| held.workstation == *name)?;
                Some((task.id.clone(), held.assignee.clone()))
            })
        };
        let would_do = match asked {
            Some(_) => Vec::new(),
            None => self
                .workstations
                .values()
                .filter(|w| w.state == WorkstationState::Ready && holder(&w.name).is_none())
                .map(|w| w.name.clone())
                .collect(),
        };
        Place {
            found: asked.as_ref().and_then(|name| self.workstations.get(name)).cloned(),
            holds: asked.as_ref().and_then(holder),
            asked,
            would_do,
            probes: self.probes.clone(),
        }
    }

    fn dependencies(&self, task: Option<&Task>, command: &Command) -> Vec<Dependency> {
        let mut ids: BTreeSet<TaskId> = task.map(|task| task.depends_on.clone()).unwrap_or_default();
        match command {
            Command::Add { depends_on, .. } => ids.extend(depends_on.iter().cloned()),
            Command::AddDependency { on } | Command::Block { on: Blocker::Task(on), .. } => {
                ids.extend([on.clone()]);
            }
            Command::Edit { changes } => {
                ids.extend(changes.named_dependencies().chain(changes.parent.given().cloned()));
            }
            _ => {}
        }
        if let Some(State::Blocked { on: Blocker::Task(on), .. }) = task.map(|task| &task.state) {
            ids.insert(on.clone());
        }
        ids.into_iter()
            .map(|id| {
                let exception = task.and_then(|task| task.exceptions.get(&id));
                let excepted = exception.is_some_and(|exception| exception.approved_by.is_some());
                let found = self.tasks.get(&id);
                Dependency {
                    state: found.map(|t| t.state.name()),
                    is_request: found.is_some_and(|t| t.spec.kind == "contract"),
                    excepted,
                    id,
                }
            })
            .collect()
    }

    fn live_scopes(&self, but: Option<&Task>) -> Vec<(TaskId, Handle, Vec<String>)> {
        let others = self.tasks.values().filter(|task| but.is_none_or(|but| but.id != task.id));
        let scoped = others.filter(|task| !task.spec.scope.is_empty());
        scoped
            .filter_map(|task| {
                Some((task.id.clone(), task.assignment()?.assignee.clone(), task.spec.scope.clone()))
            })
            .collect()
    }

    fn signals(&self) -> Signals {
        let held = |worker: &Handle| {
            let tasks = self.tasks.values();
            let tasks = tasks.filter(|task| task.assignment().is_some_and(|held| held.assignee == *worker));
            tasks.map(|task| task.id.clone()).collect()
        };
        let workers = self.workers.iter().map(|(handle, worker)| {
            (handle.clone(), WorkerSignal { worker: worker.clone(), holds: held(handle) })
        });
        let workstations = self.workstations.iter().map(|(name, workstation)| {
            let signal =
                WorkstationSignal { state: workstation.state, holds: self.held_in(name), utilisation: 0 };
            (name.clone(), signal)
        });
        Signals { workers: workers.collect(), workstations: workstations.collect(), dependency_depth: 0 }
    }

    fn held_in(&self, name: &WorkstationName) -> Option<(TaskId, Handle)> {
        self.tasks.values().find_map(|task| {
            let held = task.assignment().filter(|held| held.workstation == *name)?;
            Some((task.id.clone(), held.assignee.clone()))
        })
    }

    fn occupied(&self, but: Option<&Task>) -> Vec<Occupied> {
        let Some(own) = but.filter(|task| task.spec.role.is_some()) else {
            return Vec::new();
        };
        let others = self.tasks.values().filter(|task| task.id != own.id && task.spec.role == own.spec.role);
        others
            .filter_map(|task| {
                let held = task.assignment()?;
                let lane = held.lane.or(task.spec.lane).unwrap_or(1);
                Some(Occupied { task: task.id.clone(), holder: held.assignee.clone(), lane })
            })
            .collect()
    }

    fn builders(&self, task: Option<&Task>, command: &Command) -> Vec<Builder> {
        let built: Vec<&TaskId> = match command {
            Command::Review { .. } => task.iter().map(|task| &task.id).collect(),
            _ => task.into_iter().flat_map(|task| &task.depends_on).collect(),
        };
        let built = built.into_iter();
        let rows = built.flat_map(|id| self.assignments.iter().filter(move |row| row.task == *id));
        let builders = rows.map(|row| Builder {
            task: row.task.clone(),
            worker: row.assignment.assignee.clone(),
            workstation: row.assignment.workstation.clone(),
        });
        builders.collect()
    }

    fn slices(&self, of: Option<&Task>) -> Vec<Slice> {
        let Some((own, parent)) = of.and_then(|task| Some((task, task.spec.parent.as_ref()?))) else {
            return Vec::new();
        };
        let others = self.tasks.values().filter(|task| task.id != own.id);
        let slices = others.filter(|task| task.spec.parent.as_ref() == Some(parent)).filter_map(|task| {
            let merge_order = task.spec.merge_order?;
            Some(Slice { id: task.id.clone(), state: task.state.name(), merge_order })
        });
        slices.collect()
    }

    fn parts(&self, of: Option<&Task>) -> Vec<(TaskId, StateName)> {
        let parts = self.tasks.values().filter(|task| {
            of.is_some_and(|of| task.spec.parent.as_ref() == Some(&of.id)) && !task.state.name().is_terminal()
        });
        parts.map(|task| (task.id.clone(), task.state.name())).collect()
    }

    fn reachable(&self, command: &Command) -> BTreeMap<TaskId, Vec<TaskId>> {
        let mut found = BTreeMap::new();
        let mut todo = match command {
            Command::AddDependency { on } => vec![on.clone()],
            Command::Edit { changes } => changes.named_dependencies().collect(),
            _ => Vec::new(),
        };
        while let Some(id) = todo.pop() {
            let Some(task) = self.tasks.get(&id).filter(|_| !found.contains_key(&id)) else { continue };
            let next: Vec<TaskId> = task.depends_on.iter().cloned().collect();
            todo.extend(next.iter().cloned());
            found.insert(id, next);
        }
        found
    }

    fn ancestors(&self, command: &Command) -> Vec<TaskId> {
        let mut found: Vec<TaskId> = match command {
            Command::Edit { changes } => changes.parent.given().cloned().into_iter().collect(),
            _ => Vec::new(),
        };
        while let Some(next) = found.last().and_then(|id| self.tasks.get(id)?.spec.parent.clone())
            && !found.contains(&next)
        {
            found.push(next);
        }
        found
    }

    pub(crate) fn facts(
        &self,
        caller: Caller,
        token: Option<Token>,
        task: Option<&TaskId>,
        command: &Command,
    ) -> Facts<'_> {
        let task = task.and_then(|id| self.tasks.get(id)).cloned();
        let holder =
            task.as_ref().and_then(Task::assignment).and_then(|held| self.workers.get(&held.assignee));
        let held_in = task
            .as_ref()
            .and_then(Task::assignment)
            .and_then(|held| self.workstations.get(&held.workstation));
        let origin = match command {
            Command::Add { spec, .. } => spec.origin.as_ref(),
            _ => None,
        };
        let mentioned = match command {
            Command::Block { on: Blocker::Person(who), .. } => Some(self.caller(Some(who))),
            Command::Claim { assignee: Some(who), .. } => Some(self.caller(Some(who))),
            Command::Say { to: Some(who), .. } => Some(self.caller(Some(who))),
            _ => None,
        };
        let budgets = self.budgets(command, &caller, mentioned.as_ref(), task.as_ref());
        Facts {
            mentioned,
            settings: &self.settings,
            generation: self.generation,
            behind_anchor: self.behind_anchor,
            caller,
            token,
            holder: holder.map(|worker| worker.kind),
            suspended: held_in.is_some_and(|w| w.state == WorkstationState::Quarantined),
            vital: self.vital(task.as_ref()),
            policy: &self.policy,
            signals: self.signals(),
            occupied: self.occupied(task.as_ref()),
            builders: self.builders(task.as_ref(), command),
            slices: self.slices(task.as_ref()),
            parts: self.parts(task.as_ref()),
            evidence: self
                .evidence
                .iter()
                .filter(|(id, _)| Some(id) == task.as_ref().map(|t| &t.id))
                .map(|(_, e)| e.clone())
                .collect(),
            reviews: self
                .reviews
                .iter()
                .filter(|(id, _)| Some(id) == task.as_ref().map(|t| &t.id))
                .map(|(_, r)| r.clone())
                .collect(),
            base: None,
            session: self.recorded(command),
            budgets,
            stopped_by: self.stopped_by(task.as_ref()),
            place: self.place(command),
            dependencies: self.dependencies(task.as_ref(), command),
            live_scopes: self.live_scopes(task.as_ref()),
            reachable: self.reachable(command),
            ancestors: self.ancestors(command),
            existing: origin.and_then(|origin| {
                self.tasks.values().find(|t| t.spec.origin.as_ref() == Some(origin)).map(|t| t.id.clone())
            }),
            task,
        }
    }

    /// What the host that calls can tell of the process under a task's lease.
    pub(crate) fn vital(&self, task: Option<&Task>) -> Vital {
        let lease = task.and_then(Task::assignment).map(|held| &held.lease);
        match lease.and_then(|lease| lease.process.as_ref()) {
            Some(process) if process.host != self.clock.tick.host => Vital::Unknown,
            Some(process) if self.ended.contains(&process.wrapper.pid) => Vital::Gone,
            Some(process) if process.boot != self.clock.tick.boot => Vital::Gone,
            Some(_) => Vital::Lives,
            None => Vital::Unknown,
        }
    }

    fn fresh(&mut self) -> Fresh {
        self.draws += 1;
        Fresh { uid: Uuid::from_u128(self.draws), lease: (self.draws << 64 | 0xfeed).to_be_bytes() }
    }

    /// One call from beginning to end: load, decide, write down, apply. A refusal by policy is written down, too.
    pub(crate) fn call(
        &mut self,
        who: Option<&Handle>,
        token: Option<Token>,
        task: Option<&TaskId>,
        command: &Command,
    ) -> Result<Done, Refusal> {
        let fresh = self.fresh();
        let caller = self.caller(who);
        let decided = decide(&self.facts(caller, token, task, command), command, &self.clock, &fresh);
        match (decided, who) {
            (Ok(Decision::Existing(id)), _) => Ok(Done::Existing(id)),
            (Ok(Decision::Change { events, workstation }), Some(who)) => {
                let id = match command {
                    Command::Add { .. } => task_id(self.tasks.len() + 1),
                    _ => task.unwrap().clone(),
                };
                for event in &events {
                    self.record(&id, who, workstation.clone(), event.clone());
                }
                Ok(Done::Changed { task: id, events })
            }
            (Ok(change), None) => panic!("nobody decided {change:?}"),
            (Err(refusal), who) => {
                let known = task.filter(|id| self.tasks.contains_key(*id));
                if let (Some(id), Some(who)) = (known, who)
                    && refusal.code.is_policy()
                {
                    self.record(id, who, None, refused(command, &refusal));
                }
                Err(refusal)
            }
        }
    }

    /// The session that a command is about, with its neighbours.
    fn recorded(&self, command: &Command) -> Option<Recorded> {
        let (id, key) = match command {
            Command::CorrectSession { session, .. } => (*session, None),
            Command::RecordUsage { session, usage } => (*session, Some(&usage.key)),
            Command::CloseOutput { session } => (*session, None),
            _ => return None,
        };
        let session = self.sessions.iter().find(|session| session.from.0 == id)?;
        let held = self
            .assignments
            .iter()
            .find(|row| row.task == session.task && row.assignment.epoch == session.epoch)?;
        let here = || {
            self.sessions
                .iter()
                .filter(|other| other.worker == session.worker && other.workstation == session.workstation)
        };
        Some(Recorded {
            id,
            task: session.task.clone(),
            worker: session.worker.clone(),
            started_at: session.began(),
            ended_at: session.ended(),
            before: here().rfind(|other| other.from.0 < id).and_then(Session::ended),
            after: here().find(|other| other.from.0 > id).map(Session::began),
            held_from: held.assignment.assigned_at,
            held_to: held.ended.map(|(at, _)| at),
            proposal: self.proposals.iter().rfind(|(of, _)| *of == id).map(|(_, said)| said.clone()),
            usage: self
                .usages
                .iter()
                .rfind(|(session, usage)| *session == id && Some(&usage.key) == key)
                .map(|(_, usage)| usage.clone()),
            output: match self.closed.contains(&id) {
                true => OutputState::Closed,
                false => OutputState::Open(KeptOutput { bytes: 9, kept: 9, sha256: "ab".repeat(32) }),
            },
        })
    }

    /// When whoever begins a session with this event last worked in the same place.
    fn rested(
        &self,
        id: &TaskId,
        who: &Handle,
        place: Option<&WorkstationName>,
        event: &Event,
    ) -> Option<Timestamp> {
        let grant = match event {
            Event::Claimed(claimed) => Some(&claimed.grant),
            Event::TakenOver(taken) => Some(&taken.grant),
            Event::Unblocked(_) | Event::SessionStarted(_) => None,
            _ => return None,
        };
        let held = self.tasks.get(id).and_then(Task::assignment);
        let (worker, place) = match grant {
            Some(grant) => (grant.assignee.as_ref().unwrap_or(who), place?),
            None => (&held?.assignee, &held?.workstation),
        };
        self.sessions.iter().rfind(|s| s.worker == *worker && s.workstation == *place)?.ended()
    }

    fn record(&mut self, id: &TaskId, who: &Handle, workstation: Option<WorkstationName>, event: Event) {
        let before = self.tasks.get(id).cloned();
        let rested = self.rested(id, who, workstation.as_ref(), &event);
        self.seq += 1;
        let wall = rested.map_or(self.clock.wall, |rested| rested.max(self.clock.wall));
        let stamped =
            Stamped::following(before.as_ref(), self.seq, id.clone(), wall, who.clone(), workstation, event);
        let after = evolve(before.clone(), &stamped).expect("what was decided must be possible");
        let chain = self.chains.entry(id.clone()).or_default();
        let head = chain.last().map_or(Digest::ZERO, |entry| entry.hash);
        chain.push(Entry::seal(WORKSPACE, &stamped, head).unwrap());
        for effect in effects(before.as_ref(), &stamped, &after) {
            self.apply(id, &stamped, effect);
        }
        self.tasks.insert(id.clone(), after);
    }

    fn apply(&mut self, id: &TaskId, entry: &Stamped, effect: Effect) {
        match effect {
            Effect::AssignmentStarted(assignment) => {
                self.assignments.push(AssignmentRow { task: id.clone(), assignment, ended: None });
            }
            Effect::AssignmentRenewed(assignment) | Effect::AssignmentConstrained(assignment) => {
                let row = self.assignment_row(id, assignment.epoch);
                row.assignment = assignment;
            }
            Effect::AssignmentEnded { epoch, at, reason } => {
                self.assignment_row(id, epoch).ended = Some((at, reason));
            }
            Effect::SessionStarted { assignment, at } => self.sessions.push(Session {
                task: id.clone(),
                worker: assignment.assignee,
                workstation: assignment.workstation,
                epoch: assignment.epoch,
                from: (entry.seq, at),
                to: None,
                corrected: None,
            }),
            Effect::SessionStopped { epoch, at, reason } => {
                let mut open =
                    self.sessions.iter_mut().filter(|s| s.task == *id && s.epoch == epoch && s.to.is_none());
                open.next().expect("a session to stop").to = Some((entry.seq, at, reason));
                assert!(open.next().is_none(), "two open sessions of {id} at epoch {epoch}");
            }
            Effect::SessionCorrected { session, started_at, ended_at, proposed: true } => {
                let by = entry.actor.clone();
                let said = Proposal { seq: entry.seq, by, started_at, ended_at };
                self.proposals.push((session, said));
            }
            Effect::SessionCorrected { session, started_at, ended_at, proposed: false } => {
                let mut found = self.sessions.iter_mut().filter(|s| s.from.0 == session);
                found.next().expect("a session to correct").corrected = Some((started_at, ended_at));
            }
            Effect::SessionUsed { session, usage } => self.usages.push((session, usage)),
            Effect::OutputClosed { session, .. } => self.closed.push(session),
            Effect::NoteWritten { kind, text, .. } => self.notes.push((id.clone(), kind, text)),
            Effect::CheckRan(run) => {
                let evidence = Evidence {
                    stated: run.sandbox == "stated",
                    seq: entry.seq,
                    check: run.check,
                    verdict: run.verdict,
                    ground: run.ground,
                    at: entry.at,
                };
                self.evidence.push((id.clone(), evidence));
            }
            Effect::ReviewWritten(review) => {
                let review = Review {
                    seq: entry.seq,
                    by: entry.actor.clone(),
                    workstation: entry.workstation.clone(),
                    verdict: review.verdict,
                    classification: review.classification,
                    commit: review.commit,
                };
                self.reviews.push((id.clone(), review));
            }
            Effect::Landed { epoch, commits } => self.landed.push((id.clone(), epoch, commits)),
        }
    }

    fn assignment_row(&mut self, id: &TaskId, epoch: Epoch) -> &mut AssignmentRow {
        let mut live = self
            .assignments
            .iter_mut()
            .filter(|row| row.task == *id && row.assignment.epoch == epoch && row.ended.is_none());
        live.next().expect("an assignment in force")
    }

    /// The chain as anybody would read it: hashes recomputed, links followed, then folded into a row.
    pub(crate) fn replay(chain: &[Entry]) -> Result<Task, String> {
        let mut head = Digest::ZERO;
        let mut row: Option<Task> = None;
        for entry in chain {
            if entry.prev != head || entry.expected_hash(WORKSPACE) != entry.hash {
                return Err(format!("entry {} does not follow the one before it", entry.seq));
            }
            head = entry.hash;
            row = Some(evolve(row, &entry.open()?).map_err(|e| e.to_string())?);
        }
        row.ok_or_else(|| "an empty chain".to_owned())
    }
}

fn refused(command: &Command, refusal: &Refusal) -> Event {
    Refused {
        command: command.name().to_owned(),
        code: refusal.code,
        detail: refusal.detail.clone(),
        hint: refusal.hint.clone(),
        findings: refusal.findings.clone(),
    }
    .into()
}

/// A process on a host's first boot.
pub(crate) fn process(host: &str, pid: i32) -> Process {
    let birth = Birth { pid, tick: 100 };
    Process { host: host.into(), boot: "b1".into(), space: "s".into(), wrapper: birth, group: birth }
}
