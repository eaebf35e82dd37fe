//! One command, one transaction: read the clock, load facts, decide, apply, commit.

mod batch;
mod behind;
mod limited;
mod next;
mod rehearsal;
mod sender;

pub use batch::Order;
pub(crate) use rehearsal::{Judge, Rehearsal, claim, findings, request};

use crate::last_commit::Memory;
use crate::limits::UsedSoFar;
use crate::remote::{Sent, calls};
use crate::token::{self, Shown};
use crate::{Onus, Sight, replay, workstation};
use next::ReadyHead;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::decide::{Decision, decide};
use onus_core::effect::effects;
use onus_core::event::{Event, Refused, Stamped};
use onus_core::facts::{Caller, Facts, Fresh};
use onus_core::hash::{Digest, Fields};
use onus_core::id::{CommitId, Handle, ProjectKey, RequestId, Seq, TaskId, WorkstationName};
use onus_core::identity_map::Policy;
use onus_core::lease::Token;
use onus_core::ledger::Entry;
use onus_core::output::without_secrets;
use onus_core::process::Process;
use onus_core::refusal::Refusal;
use onus_core::registry::workstation::spent;
use onus_core::settings::WorktreeSync;
use onus_core::task::{Assignment, Task, evolve};
use onus_core::time::{Now, Timestamp};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use onus_host::env::{Env, secret_values};
use onus_host::repository::Place;
use onus_host::{identity_map, ref_file, refs, repository};
use onus_store::apply::{self, Change};
use onus_store::load::{self, AtWork, Loaded, Workspace};
use onus_store::port::{Driver, Outcome, Store, Tx};
use onus_store::read::queue::Filter;
use onus_store::registry;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What became of a call.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub kind: ReceiptKind,
    pub task: Task,
    /// The holder's token, after a grant.
    pub token: Option<Token>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiptKind {
    Created,
    /// It was so already; nothing was written.
    Existing,
    Changed,
}

/// Which task a call is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Target {
    /// The one the envelope names, or none yet for an ask.
    Named,
    /// The one the envelope names, if it is still at this version when the writers' turn comes.
    At(i64),
    /// The most important ready one, picked in the same transaction.
    Next(Filter),
}

/// The call without what the environment of this process keeps secret, where its words tell it.
pub fn cleaned(envelope: &Envelope) -> Option<Envelope> {
    without_secrets(envelope, secret_values)
}

impl Onus {
    fn parts(&mut self) -> (Outside<'_>, &mut dyn Driver) {
        let Onus { store, settings, path, place, sight, bearer: _ } = self;
        (Outside { settings, path, place, sight: *sight }, store.as_mut())
    }

    /// Carries a command out. The same request id gives the same receipt.
    pub fn submit(&mut self, envelope: &Envelope, target: &Target) -> Result<Receipt, Refusal> {
        let clean = cleaned(envelope);
        let envelope = clean.as_ref().unwrap_or(envelope);
        if self.store.remote().is_some() {
            let sent = Sent::new(&self.seen(envelope)?);
            let call = calls::Submit { sent, target: target.clone() };
            if let Some(answer) = self.remote_under(Some(&envelope.request), || call)? {
                return answer.try_into();
            }
        }
        let receipt = self.transact_for_bearer(envelope, target, |outcome| outcome)?;
        match self.needs_mirrors(&envelope.command) && receipt.kind == ReceiptKind::Changed {
            true => self.tell_of_grant(&envelope.request, receipt),
            false => Ok(receipt),
        }
    }

    /// The answer that `submit` would give now, with nothing written: asked before long work outside the store.
    pub fn rehearse_one(&mut self, envelope: &Envelope) -> Result<Receipt, Refusal> {
        if let Some(answer) = self.remote(|| calls::RehearseOne { sent: Sent::new(envelope) })? {
            return answer.try_into();
        }
        self.transact_for_bearer(envelope, &Target::Named, |outcome| match outcome {
            Outcome::Commit(answer) | Outcome::Rollback(answer) => Outcome::Rollback(answer),
        })
    }

    /// What the bearer of a token may carry, if the token is still good then; without one the caller is believed.
    fn transact_for_bearer(
        &mut self,
        envelope: &Envelope,
        target: &Target,
        end: impl Fn(Outcome<SubmitAnswer>) -> Outcome<SubmitAnswer>,
    ) -> Result<Receipt, Refusal> {
        let memory = &mut Memory::default();
        match self.bearer.clone() {
            None => self.transact(envelope, target, None, memory, end),
            Some(shown) => {
                let carried = shown.principal.carry(envelope.clone())?;
                self.transact(&carried, target, Some(&shown), memory, end)
            }
        }
    }

    fn transact(
        &mut self,
        envelope: &Envelope,
        target: &Target,
        shown: Option<&Shown>,
        memory: &mut Memory,
        end: impl Fn(Outcome<SubmitAnswer>) -> Outcome<SubmitAnswer>,
    ) -> Result<Receipt, Refusal> {
        let (outside, store) = self.parts();
        let mut kept = *memory;
        let answered = store.write(|tx| {
            let policy = outside.policy(envelope)?;
            let common = Common::load(tx, [(envelope, target)].into_iter(), shown.into_iter())?;
            let mut common = Common { memory: *memory, ..common };
            shown.map(|shown| token::judge(tx, shown)).transpose()?;
            let call = Call::begin(tx, outside, &policy, envelope, target, &mut common)?;
            let outcome = end(call.sent_by(shown).carry_out(tx)?);
            if matches!(outcome, Outcome::Commit(_)) {
                kept = common.memory;
            }
            Ok::<_, Refusal>(outcome)
        });
        if answered.is_ok() {
            *memory = kept;
        }
        answered.and_then(|inner| inner).map_err(|refusal| named(refusal, envelope))
    }
}

/// A refusal says which call it answers.
fn named(refusal: Refusal, envelope: &Envelope) -> Refusal {
    Refusal {
        request_id: Some(envelope.request.to_string()),
        task: refusal.task.or_else(|| envelope.task.as_ref().map(ToString::to_string)),
        ..refusal
    }
}

/// The name of one step of a call that takes several: the same call repeated names its steps the same.
pub fn step(request: &RequestId, name: &str) -> Result<RequestId, Refusal> {
    let mut fields = Fields::new("onus-step-1");
    fields.text(request.as_str()).text(name);
    fields.digest().to_string().parse().map_err(unexpected)
}

/// What distinguishes this command from another one under the same request id.
fn fingerprint(envelope: &Envelope, target: &Target) -> Result<Digest, Refusal> {
    let command = serde_json::to_string(&envelope.command.said()).map_err(unexpected)?;
    let mut fields = Fields::new("onus-request-1");
    fields
        .text(envelope.actor.as_ref().map_or("", Handle::as_str))
        .text(&envelope.task.as_ref().map(ToString::to_string).unwrap_or_default())
        .text(envelope.project.as_ref().map_or("", ProjectKey::as_str))
        .text(&command);
    if let Target::Next(filter) = target {
        fields.text(&format!("{filter:?}"));
    }
    Ok(fields.digest())
}

pub(crate) fn unexpected(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}

type SubmitAnswer = Result<Receipt, Refusal>;

/// Who does something to which task, and where.
#[derive(Clone)]
struct SubmitContext {
    task: TaskId,
    actor: Handle,
    workstation: Option<WorkstationName>,
}

/// What a call knows beside its store.
#[derive(Clone, Copy)]
struct Outside<'a> {
    settings: &'a onus_core::settings::Settings,
    path: &'a Path,
    place: &'a Place,
    sight: Sight,
}

impl Outside<'_> {
    /// The identity map, where it has a say. Read under the lock: an edit between routing and commit is seen.
    fn policy(&self, envelope: &Envelope) -> Result<Policy, Refusal> {
        match envelope.command.needs_policy() {
            true => identity_map::load(self.place, self.settings),
            false => Ok(Policy::Absent),
        }
    }
}

struct Call<'a> {
    outside: Outside<'a>,
    policy: &'a Policy,
    envelope: &'a Envelope,
    target: &'a Target,
    fingerprint: Digest,
    now: Now,
    common: &'a mut Common,
    /// The process that sent it, where it came over a network and says so.
    sender: Option<&'a Process>,
    used: UsedSoFar,
}

/// What the commands of one transaction share.
struct Common {
    workspace: Workspace,
    ready: ReadyHead,
    memory: Memory,
    at_work: AtWork,
    /// See [`Call::is_behind`]; asked at the first grant.
    is_behind_anchor: Option<bool>,
}

impl Common {
    /// Announces what the commands will ask, and reads what they share.
    fn load<'e>(
        tx: &mut dyn Tx,
        calls: impl Iterator<Item = (&'e Envelope, &'e Target)> + Clone,
        shown: impl Iterator<Item = &'e Shown>,
    ) -> Result<Common, Refusal> {
        let tokens = shown.map(|shown| shown.text.id());
        load::prefetch_calls(tx, calls.clone().map(|(envelope, _)| envelope), tokens)?;
        let ready = ReadyHead::for_calls(tx, calls.map(|(_, target)| target))?;
        let (workspace, memory, at_work) = (load::workspace(tx)?, Memory::default(), AtWork::default());
        Ok(Common { workspace, ready, memory, at_work, is_behind_anchor: None })
    }
}

impl<'a> Call<'a> {
    fn begin(
        tx: &mut dyn Tx,
        outside: Outside<'a>,
        policy: &'a Policy,
        envelope: &'a Envelope,
        target: &'a Target,
        common: &'a mut Common,
    ) -> Result<Call<'a>, Refusal> {
        let (fingerprint, now) = (fingerprint(envelope, target)?, tx.now()?);
        let (sender, used) = (None, UsedSoFar::default());
        Ok(Call { outside, policy, envelope, target, fingerprint, now, common, sender, used })
    }

    fn carry_out(&mut self, tx: &mut dyn Tx) -> Result<Outcome<SubmitAnswer>, Refusal> {
        if let Some(earlier) = replay::earlier(tx, &self.envelope.request, &self.fingerprint)? {
            return replay::answer(tx, &self.common.workspace, self.envelope.actor.as_ref(), earlier.seq)
                .map(Outcome::Rollback);
        }
        match self.target {
            Target::Named | Target::At(_) => {
                let loaded =
                    load::facts(tx, self.envelope, self.policy, self.now.wall, &mut self.common.at_work)?;
                if let (Target::At(version), Some(stored)) = (self.target, &loaded.task) {
                    unchanged_since(*version, &stored.task)?;
                }
                self.decide_one(tx, self.envelope, loaded)
            }
            Target::Next(filter) => self.decide_next(tx, filter),
        }
    }

    fn decide_one(
        &mut self,
        tx: &mut dyn Tx,
        envelope: &Envelope,
        loaded: Loaded,
    ) -> Result<Outcome<SubmitAnswer>, Refusal> {
        let is_grant = envelope.command.is_grant();
        let single_task = loaded.single_task;
        // A session never begins before the last one of the same worker in the same workstation ended.
        let wall = loaded.rested.map_or(self.now.wall, |rested| rested.max(self.now.wall));
        let before = loaded.task.clone();
        let facts = self.facts(tx, envelope, loaded)?;
        let fresh = fresh(&self.now)?;
        match decide(&facts, &envelope.command, &self.now, &fresh) {
            Ok(Decision::Existing(id)) => {
                let task = load::task(tx, &id)?.ok_or_else(|| unexpected("an existing task vanished"))?.task;
                Ok(Outcome::Rollback(Ok(Receipt { kind: ReceiptKind::Existing, task, token: None })))
            }
            Ok(Decision::Change { events, workstation }) => {
                tx.decided();
                let id = match &envelope.task {
                    Some(id) => id.clone(),
                    None => self.new_id(tx)?,
                };
                let (head, row) =
                    before.map_or((Digest::ZERO, None), |stored| (stored.head, Some(stored.task)));
                let kind = if row.is_none() { ReceiptKind::Created } else { ReceiptKind::Changed };
                let act = SubmitContext { task: id, actor: actor(&facts.caller)?, workstation };
                let spent = row.as_ref().and_then(Task::assignment).filter(|_| single_task).cloned();
                let (task, seq) = self.append(tx, &act, wall, row, head, events)?;
                if let Some(ended) =
                    spent.filter(|old| task.assignment().is_none_or(|new| new.epoch != old.epoch))
                {
                    retire_if_spent(tx, &act, &ended)?;
                    self.common.workspace = load::workspace(tx)?;
                }
                apply::request(tx, &self.envelope.request, &self.fingerprint, seq)?;
                let token = is_grant.then_some(Token {
                    generation: self.common.workspace.generation,
                    epoch: task.epoch,
                    lease: fresh.lease,
                });
                Ok(Outcome::Commit(Ok(Receipt { kind, task, token })))
            }
            Err(refusal) => self.refused(tx, is_grant, &facts, before, refusal),
        }
    }

    /// What the decision is made on: the store's part and the rest.
    fn facts(&mut self, tx: &mut dyn Tx, envelope: &Envelope, loaded: Loaded) -> Result<Facts<'a>, Refusal> {
        let behind_anchor = match &envelope.command {
            // The number of a task that is lost would be given a second time.
            Command::Add { .. } => tx.lost().is_some(),
            command => command.is_grant() && self.is_behind(tx)?,
        };
        let budgets = self.budgets(tx, envelope, &loaded)?;
        let stopped_by = self.stopped_by(tx, envelope, &loaded)?;
        let ground = loaded.ground;
        let base = match self.outside.sight {
            Sight::Workstations => {
                let found = ground.place.found.as_ref();
                envelope.base.clone().or_else(|| found.and_then(|found| self.base(found)))
            }
            Sight::Store => envelope.base.clone(),
        };
        let held = loaded.task.as_ref().and_then(|stored| stored.task.assignment());
        let vital = held.map(|held| self.vital(&held.lease)).unwrap_or_default();
        Ok(Facts {
            settings: self.outside.settings,
            generation: self.common.workspace.generation,
            behind_anchor,
            caller: loaded.caller,
            token: envelope.token.clone(),
            task: loaded.task.map(|stored| stored.task),
            holder: loaded.holder,
            suspended: loaded.suspended,
            vital,
            place: ground.place,
            dependencies: loaded.dependencies,
            live_scopes: ground.live_scopes,
            mentioned: loaded.mentioned,
            reachable: loaded.reachable,
            ancestors: loaded.ancestors,
            existing: loaded.existing,
            policy: self.policy,
            signals: ground.signals,
            occupied: ground.occupied,
            builders: ground.builders,
            slices: loaded.slices,
            parts: loaded.parts,
            evidence: loaded.evidence,
            reviews: loaded.reviews,
            session: loaded.session,
            base,
            budgets,
            stopped_by,
        })
    }

    /// The commit that work in a workstation begins with: where a clean start puts it, else where it stands.
    fn base(&self, found: &Workstation) -> Option<CommitId> {
        let stands = base(found);
        let starts_clean = self.outside.settings.workstation.sync == WorktreeSync::Claim
            && found.kind == WorkstationKind::Worktree;
        let (Some(repo), Some(path)) =
            (self.outside.place.repo.as_ref().filter(|_| starts_clean), found.path.as_deref())
        else {
            return stands;
        };
        let own = repository::find_with(Path::new(path), &Env::default()).ok()?.repo;
        if own.is_none_or(|own| own.common_dir != repo.common_dir) {
            return stands;
        }
        let name = match &self.common.workspace.main {
            Some(named) => Some(refs::tracking_ref(&named.remote, named.branch.as_str())),
            None => identity_map::main_branch(repo, self.outside.settings).ok().flatten(),
        };
        let main = name.and_then(|name| ref_file::commit(repo, &name).ok().flatten());
        main.and_then(|main| main.parse().ok()).or(stands)
    }

    /// A refusal by policy or gate is kept in the ledger; the task stays as it was.
    fn refused(
        &mut self,
        tx: &mut dyn Tx,
        is_grant: bool,
        facts: &Facts<'_>,
        before: Option<load::Stored>,
        refusal: Refusal,
    ) -> Result<Outcome<SubmitAnswer>, Refusal> {
        let (Some(stored), Caller::Registered(worker)) = (before, &facts.caller) else {
            return Ok(Outcome::Rollback(Err(refusal)));
        };
        let is_passed_over = self.is_about_task(&refusal, facts.place.asked.as_ref());
        // Whoever polls for the next task all day leaves no trace of a limit either.
        let is_polled = matches!(self.target, Target::Next(_)) && refusal.code == Code::BudgetExceeded;
        if is_passed_over || is_polled || !(is_grant && refusal.code.is_policy()) {
            return Ok(Outcome::Rollback(Err(refusal)));
        }
        let event = Event::from(Refused {
            command: self.envelope.command.name().to_owned(),
            code: refusal.code,
            detail: refusal.detail.clone(),
            hint: refusal.hint.clone(),
            findings: refusal.findings.clone(),
        });
        let workstation = facts.place.found.as_ref().map(|found| found.name.clone());
        let act = SubmitContext { task: stored.task.id.clone(), actor: worker.handle.clone(), workstation };
        let (_, seq) = self.append(tx, &act, self.now.wall, Some(stored.task), stored.head, vec![event])?;
        // A claim of whatever comes next may go on to another task under the same request.
        if !matches!(self.target, Target::Next(_)) {
            apply::request(tx, &self.envelope.request, &self.fingerprint, seq)?;
        }
        Ok(Outcome::Commit(Err(refusal)))
    }

    fn new_id(&self, tx: &mut dyn Tx) -> Result<TaskId, Refusal> {
        let project = match self.envelope.project.clone().or_else(|| self.outside.settings.project.clone()) {
            Some(project) => project,
            None => registry::projects(tx)?.into_iter().next().ok_or_else(|| {
                Refusal::new(Code::UnknownName, "the store has no project").hint("onus init")
            })?,
        };
        apply::allocate(tx, &project)?.ok_or_else(|| {
            Refusal::new(Code::UnknownName, format!("there is no project {project}"))
                .hint(format!("onus init --project {project}"))
        })
    }

    /// Writes events down and applies them to the row, one by one.
    fn append(
        &mut self,
        tx: &mut dyn Tx,
        act: &SubmitContext,
        wall: Timestamp,
        mut row: Option<Task>,
        mut head: Digest,
        events: Vec<Event>,
    ) -> Result<(Task, Seq), Refusal> {
        let mut seq = self.common.workspace.last_seq;
        for event in events {
            seq += 1;
            let SubmitContext { task, actor, workstation } = act.clone();
            let stamped = Stamped::following(row.as_ref(), seq, task, wall, actor, workstation, event);
            let after = evolve(row.clone(), &stamped).map_err(unexpected)?;
            let entry = Entry::seal(&self.common.workspace.uid, &stamped, head).map_err(unexpected)?;
            let effects = effects(row.as_ref(), &stamped, &after);
            let change = Change { before: row.as_ref(), after: &after, entry: &entry, effects: &effects };
            apply::change(tx, &change)?;
            self.common.memory.keep(tx, self.common.workspace.generation, seq, entry.hash);
            head = entry.hash;
            row = Some(after);
        }
        self.common.workspace.last_seq = seq;
        row.map(|task| (task, seq)).ok_or_else(|| unexpected("a change without an event"))
    }
}

/// What the caller saw is what is there: otherwise somebody else came first.
pub(crate) fn unchanged_since(version: i64, task: &Task) -> Result<(), Refusal> {
    if task.version == version {
        return Ok(());
    }
    let (id, present) = (&task.id, task.version);
    Err(Refusal::new(Code::PreconditionFailed, format!("{id} is at version {present}, not {version}"))
        .hint("read the task again and decide anew"))
}

/// A workstation of a single task ends with its assignment (mission C3).
fn retire_if_spent(tx: &mut dyn Tx, act: &SubmitContext, ended: &Assignment) -> Result<(), Refusal> {
    match load::workstation(tx, &ended.workstation)? {
        Some((found, _))
            if found.lifecycle == Lifecycle::SingleTask && found.state != WorkstationState::Retired =>
        {
            workstation::change(tx, &act.actor, spent(&found, &act.task)).map(drop)
        }
        _ => Ok(()),
    }
}

fn actor(caller: &Caller) -> Result<Handle, Refusal> {
    match caller {
        Caller::Registered(worker) => Ok(worker.handle.clone()),
        _ => Err(unexpected("a change by nobody")),
    }
}

/// The commit that a workstation stands at, where it is a working tree.
fn base(workstation: &Workstation) -> Option<CommitId> {
    base_of(workstation.path.as_ref().map(Path::new)?)
}

pub(crate) fn base_of(directory: &Path) -> Option<CommitId> {
    ref_file::head_of(directory).commit?.parse().ok()
}

fn fresh(now: &Now) -> Result<Fresh, Refusal> {
    let mut random = [0; 26];
    getrandom::fill(&mut random).map_err(unexpected)?;
    let mut lease = [0; 16];
    lease.copy_from_slice(&random[..16]);
    let mut tail = [0; 10];
    tail.copy_from_slice(&random[16..]);
    let millis = u64::try_from(now.wall.0).unwrap_or(0);
    Ok(Fresh { uid: uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid(), lease })
}
