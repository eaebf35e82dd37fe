//! The store and the hook of the model: the core decides, on facts as small as the model's.

use onus_core::command::{Command, Warrant};
use onus_core::decide::{Decision, decide};
use onus_core::event::Stamped;
use onus_core::evidence::Proof;
use onus_core::facts::{Caller, Facts, Fresh, Place};
use onus_core::guard::{Change, Credentials, Held, Mover, Naming, News, Post, Push, pushed};
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::identity_map::{Policy, Signals};
use onus_core::lease::{Lease, LeaseId, Token};
use onus_core::process::Vital;
use onus_core::settings::{PeoplePolicy, Settings};
use onus_core::task::{Assignment, Spec, State, Task, evolve};
use onus_core::text::Text;
use onus_core::time::{Millis, Now, Tick, Timestamp};
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::RwLock;

/// How long a lease lasts, and how long after it nobody may take over, in the model's ticks.
pub(crate) const TTL: u8 = 2;
pub(crate) const GRACE: u8 = 1;

/// The task's row, as small as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Row {
    pub(crate) epoch: u8,
    pub(crate) holder: Option<u8>,
    /// Ticks since the holder was last seen.
    pub(crate) age: u8,
    /// The epoch under which it was completed.
    pub(crate) complete: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Claim,
    Takeover,
    Renew,
    Complete,
}

/// Everything around the row that never changes.
#[derive(Debug)]
pub(crate) struct Rules {
    settings: Settings,
    policy: Policy,
    id: TaskId,
    workers: Vec<Worker>,
    places: Vec<Workstation>,
    leases: Vec<LeaseId>,
    /// There are few rows, and each is asked about millions of times.
    decided: RwLock<HashMap<Question, Option<Row>>>,
    let_through: RwLock<HashMap<(Row, u8), bool>>,
}

/// Row, caller, command and the epoch of the token shown.
type Question = (Row, u8, Verb, Option<u8>);

/// What is known, else what `ask` says; that is then known.
fn remembered<K: Eq + Hash, V: Copy>(known: &RwLock<HashMap<K, V>>, key: K, ask: impl FnOnce(&K) -> V) -> V {
    if let Some(value) = known.read().unwrap().get(&key) {
        return *value;
    }
    let value = ask(&key);
    known.write().unwrap().insert(key, value);
    value
}

fn secret(epoch: u8) -> [u8; 16] {
    [epoch; 16]
}

/// The token of an epoch: each grant draws another secret.
fn token(epoch: u8) -> Token {
    Token { generation: 1, epoch: i64::from(epoch), lease: secret(epoch) }
}

impl Rules {
    pub(crate) fn new(workers: usize) -> Rules {
        let mut settings = Settings::default();
        settings.lease.agent_ttl = Millis(i64::from(TTL));
        settings.lease.grace = Millis(i64::from(GRACE));
        let handle = |n: usize| -> Handle { format!("@w{n}").parse().unwrap() };
        let place = |n: usize| -> WorkstationName { format!("ws-{n}").parse().unwrap() };
        Rules {
            settings,
            policy: Policy::Absent,
            id: "T-1".parse().unwrap(),
            workers: (0..workers)
                .map(|n| Worker {
                    handle: handle(n),
                    kind: Kind::Agent,
                    tier: None,
                    role: None,
                    state: WorkerState::Active,
                    tz: "UTC".into(),
                })
                .collect(),
            places: (0..workers)
                .map(|n| Workstation {
                    name: place(n),
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
                })
                .collect(),
            leases: (0..=u8::MAX).map(|epoch| LeaseId::new(secret(epoch))).collect(),
            decided: RwLock::default(),
            let_through: RwLock::default(),
        }
    }

    fn assignment(&self, row: &Row) -> Option<Assignment> {
        let holder = usize::from(row.holder?);
        Some(Assignment {
            assignee: self.workers[holder].handle.clone(),
            tier: None,
            workstation: self.places[holder].name.clone(),
            epoch: i64::from(row.epoch),
            assigned_at: Timestamp(0),
            lease: Lease {
                id: self.leases[usize::from(row.epoch)].clone(),
                ttl: Millis(i64::from(TTL)),
                renewed_at: Timestamp(0),
                tick: tick(0),
                renewals: 0,
                process: None,
            },
            handoff_reason: None,
            forced: false,
            route: None,
            lane: None,
            base: None,
            resting: false,
            constraints: Vec::new(),
        })
    }

    fn task(&self, row: &Row) -> Task {
        let closing = |_| onus_core::task::Closing {
            by: self.workers[0].handle.clone(),
            at: Timestamp(0),
            forced: false,
        };
        let state = match (row.complete.map(closing), self.assignment(row)) {
            (Some(closing), _) => State::Complete(closing),
            (None, Some(held)) => State::InProgress(held),
            (None, None) => State::Open,
        };
        Task {
            id: self.id.clone(),
            uid: uuid::Uuid::nil(),
            spec: Spec::titled("a task"),
            depends_on: BTreeSet::new(),
            exceptions: BTreeMap::new(),
            state,
            epoch: i64::from(row.epoch),
            version: 1,
            archived: false,
            born: 1,
            created_by: self.workers[0].handle.clone(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        }
    }

    fn command(&self, verb: Verb, who: u8) -> Command {
        let workstation = Some(self.places[usize::from(who)].name.clone());
        match verb {
            Verb::Claim => Command::Claim {
                workstation,
                here: None,
                assignee: None,
                ttl: None,
                warrant: Warrant::Ordinary,
                constraints: Vec::new(),
            },
            Verb::Takeover => Command::Takeover {
                workstation,
                here: None,
                ttl: None,
                reason: Some("it expired".into()),
                warrant: Warrant::Ordinary,
            },
            Verb::Renew => Command::Renew { ttl: None, process: None },
            Verb::Complete => Command::Complete {
                resolution: Some(Text::new("done".into())),
                root_cause: None,
                warrant: Warrant::Ordinary,
                proof: Proof::default(),
            },
        }
    }

    /// The row after a call that shows the token of an epoch, or none where it is refused.
    pub(crate) fn decide(&self, row: &Row, who: u8, verb: Verb, shown: Option<u8>) -> Option<Row> {
        remembered(&self.decided, (*row, who, verb, shown), |_| self.ask_core(row, who, verb, shown))
    }

    fn ask_core(&self, row: &Row, who: u8, verb: Verb, shown: Option<u8>) -> Option<Row> {
        let (task, command) = (self.task(row), self.command(verb, who));
        let place = match command.is_grant() {
            true => Place {
                asked: Some(self.places[usize::from(who)].name.clone()),
                found: Some(self.places[usize::from(who)].clone()),
                ..Place::default()
            },
            false => Place::default(),
        };
        let facts = Facts {
            settings: &self.settings,
            generation: 1,
            behind_anchor: false,
            caller: Caller::Registered(self.workers[usize::from(who)].clone()),
            token: shown.map(token),
            task: Some(task.clone()),
            holder: row.holder.map(|_| Kind::Agent),
            suspended: false,
            vital: Vital::Unknown,
            place,
            dependencies: Vec::new(),
            live_scopes: Vec::new(),
            mentioned: None,
            reachable: BTreeMap::new(),
            ancestors: Vec::new(),
            existing: None,
            policy: &self.policy,
            signals: Signals::default(),
            occupied: Vec::new(),
            builders: Vec::new(),
            slices: Vec::new(),
            parts: Vec::new(),
            evidence: Vec::new(),
            reviews: Vec::new(),
            base: None,
            session: None,
            budgets: Vec::new(),
            stopped_by: Vec::new(),
        };
        let now = Now { wall: Timestamp(i64::from(row.age)), tick: tick(row.age) };
        let fresh = Fresh { uid: uuid::Uuid::nil(), lease: secret(row.epoch + 1) };
        let Decision::Change { events, workstation } = decide(&facts, &command, &now, &fresh).ok()? else {
            return None;
        };
        let actor = &self.workers[usize::from(who)].handle;
        let mut after = Some(task);
        for event in events {
            let stamped = Stamped::following(
                after.as_ref(),
                2,
                self.id.clone(),
                now.wall,
                actor.clone(),
                workstation.clone(),
                event,
            );
            after = Some(evolve(after, &stamped).unwrap());
        }
        Some(self.row(row, &after.unwrap()))
    }

    /// As much of the task as the model keeps. Whoever was just seen has age nothing.
    fn row(&self, before: &Row, task: &Task) -> Row {
        let holder = task.assignment().map(|held| {
            let at = self.workers.iter().position(|worker| worker.handle == held.assignee);
            u8::try_from(at.unwrap()).unwrap()
        });
        let is_complete = matches!(task.state, State::Complete(_));
        Row {
            epoch: u8::try_from(task.epoch).unwrap(),
            holder,
            age: 0,
            complete: before.complete.or(is_complete.then_some(before.epoch)),
        }
    }

    /// Whether the hook lets a reference move for whoever shows the token of an epoch.
    pub(crate) fn lets_through(&self, row: &Row, shown: u8) -> bool {
        remembered(&self.let_through, (*row, shown), |_| self.ask_guard(row, shown))
    }

    fn ask_guard(&self, row: &Row, shown: u8) -> bool {
        let assignment = self.assignment(row).filter(|_| row.complete.is_none());
        let holder = assignment.as_ref().zip(row.holder).map(|(assignment, holder)| Post {
            workstation: &self.places[usize::from(holder)].name,
            kind: WorkstationKind::Worktree,
            state: WorkstationState::Ready,
            held: Some(Held { task: &self.id, assignment, by: Kind::Agent }),
        });
        let token = token(shown);
        let push = Push {
            refname: "refs/heads/work",
            change: Change::Forward,
            news: News::Unseen,
            main: "refs/heads/main",
            owner: None,
            holder,
            person: None,
            people: PeoplePolicy::Free,
            credentials: Credentials { token: Some(&token), generation: 1, mover: Mover::Nobody },
            naming: Naming::Free,
        };
        pushed(&push).is_ok()
    }
}

fn tick(age: u8) -> Tick {
    Tick { host: "h".into(), boot: "b".into(), millis: i64::from(age) }
}
