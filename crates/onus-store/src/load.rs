//! Loads everything a decision needs, under lock.

mod at_work;
pub(crate) mod grant;
pub mod limits;
pub(crate) mod session;

pub use at_work::AtWork;
pub use grant::{Ground, Holding, signals, workstation};

use crate::apply;
use crate::codec::{self, TASK_COLUMNS, TASK_FROM, goes_on};
use crate::error::{Result, StoreError};
use crate::evidence;
use crate::port::{Row, Tx};
use crate::statement::Statement;
use crate::{sql, token};
use onus_core::command::{Changes, Command, Envelope};
use onus_core::contract_request::KIND;
use onus_core::evidence::{Evidence, Review};
use onus_core::facts::{Caller, Dependency, Slice};
use onus_core::hash::Digest;
use onus_core::id::{Generation, Handle, OriginRef, RequestId, Seq, TaskId, TokenId, WorkspaceId};
use onus_core::identity_map::Policy;
use onus_core::main_of_record::Named;
use onus_core::session::Recorded;
use onus_core::task::{Blocker, State, StateName, Task};
use onus_core::time::Timestamp;
use onus_core::worker::{Kind, Worker};
use onus_core::workstation::{Lifecycle, WorkstationState};
use std::collections::BTreeMap;

pub use crate::codec::StoredTask as Stored;

sql! {
    /// By the chain's index SQLite would read every entry of the workspace to find the last one.
    pub(crate) WORKSPACE = "SELECT uid, generation, head, public_key, anchor, created_at, \
        main_remote, main_branch, main_url, main_guarded, \
        (SELECT seq FROM ledger WHERE +workspace = :workspace ORDER BY seq DESC LIMIT 1) FROM workspace WHERE id = \
        :workspace";
    pub(crate) REQUEST(request) reads [request] = "SELECT fingerprint, seq FROM request WHERE workspace = :workspace \
        AND id = :request";
    ANSWER(request) = "SELECT answer FROM request WHERE workspace = :workspace AND id = :request";
    pub(crate) WORKER(handle) reads [] = "SELECT handle, kind, tier, role, state, tz FROM worker WHERE workspace = \
        :workspace AND handle = :handle";
    pub(crate) TASK(task) reads [task] = "SELECT ", TASK_COLUMNS, TASK_FROM, "WHERE t.workspace = :workspace AND t.id \
        = :task";
    /// What kind of worker holds a task, and how the workstation is in which it does.
    pub(crate) HOLDER(task) reads [task] = "SELECT k.kind, w.state, w.lifecycle FROM assignment a \
        JOIN worker k ON k.workspace = a.workspace AND k.handle = a.assignee \
        JOIN workstation w ON w.workspace = a.workspace AND w.name = a.workstation \
        WHERE a.workspace = :workspace AND a.task = :task AND ", goes_on!("a.ended_at");
    pub(crate) DEPENDENCIES(task) reads [task] found [task] = "SELECT d.depends_on, t.state, d.excepted, t.kind FROM \
        dependency d \
        LEFT JOIN task t ON t.workspace = d.workspace AND t.id = d.depends_on \
        WHERE d.workspace = :workspace AND d.task = :task ORDER BY d.depends_on";
    pub(crate) SLICES(parent, task) = "SELECT id, state, merge_order FROM task WHERE workspace = :workspace AND parent \
        = :parent AND id <> :task \
        AND merge_order IS NOT NULL";
    pub(crate) PARTS(task) reads [] found [task] = "SELECT id, state FROM task WHERE workspace = :workspace AND parent = :task \
        ORDER BY born";
    pub(crate) STATE(task) = "SELECT state FROM task WHERE workspace = :workspace AND id = :task";
    /// Everything that can be reached from one task along `depends_on`, as edges. CROSS JOIN keeps SQLite to this order.
    pub(crate) REACHABLE(from) = "WITH RECURSIVE reach (task, depends_on) AS ( \
            SELECT task, depends_on FROM dependency WHERE workspace = :workspace AND task = :from \
            UNION SELECT d.task, d.depends_on FROM reach r CROSS JOIN dependency d \
            WHERE d.workspace = :workspace AND d.task = r.depends_on) \
        SELECT task, depends_on FROM reach";
    /// A task, the one it is a slice of, and so on.
    pub(crate) ANCESTORS(from) = "WITH RECURSIVE rise (id, parent) AS ( \
            SELECT id, parent FROM task WHERE workspace = :workspace AND id = :from \
            UNION SELECT t.id, t.parent FROM rise r CROSS JOIN task t \
            WHERE t.workspace = :workspace AND t.id = r.parent) \
        SELECT id FROM rise";
    EARLIER_BODIES(task) = "SELECT text FROM note WHERE workspace = :workspace AND task = :task AND kind = \
        'earlier_body' ORDER BY seq";
    pub(crate) ORIGIN(origin) = "SELECT id FROM task WHERE workspace = :workspace AND origin_ask_ref = :origin";
    pub(crate) ASSIGNMENT_SECRET(task, epoch) = "SELECT lease_id, ttl_ms FROM assignment WHERE workspace = :workspace \
        AND task = :task AND epoch = :epoch";
}

/// The workspace's own row, with the position of its last ledger entry.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub uid: String,
    pub generation: Generation,
    pub head: Digest,
    pub public_key: String,
    pub anchor: Option<String>,
    pub created_at: Timestamp,
    /// The shared branch that counts; none where nobody named one.
    pub main: Option<Named>,
    pub last_seq: Seq,
}

pub fn workspace(tx: &mut dyn Tx) -> Result<Workspace> {
    let id = tx.workspace();
    let Some(mut row) = tx.row(&WORKSPACE {})? else {
        return Err(StoreError::Missing("the store has no workspace yet".into()));
    };
    Ok(Workspace {
        id,
        uid: row.text()?,
        generation: row.int()?,
        head: row.digest()?,
        public_key: row.text()?,
        anchor: row.opt_text()?,
        created_at: Timestamp(row.int()?),
        main: main_of_record(&mut row)?,
        last_seq: row.opt_int()?.unwrap_or(0),
    })
}

fn main_of_record(row: &mut Row) -> Result<Option<Named>> {
    let (remote, branch, url, guarded) =
        (row.opt_text()?, row.opt_parsed()?, row.opt_text()?, row.opt_int()?);
    match (remote, branch) {
        (Some(remote), Some(branch)) => Ok(Some(Named { remote, branch, url, guarded: guarded == Some(1) })),
        (None, None) => Ok(None),
        _ => Err(StoreError::Corrupt("the main of record is half a name".into())),
    }
}

/// A request that was already carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    pub fingerprint: Vec<u8>,
    pub seq: Seq,
}

/// A request id of any length as a fixed key.
pub(crate) fn request_key(request: &RequestId) -> Vec<u8> {
    Digest::of(request.as_str().as_bytes()).0[..16].to_vec()
}

pub fn replay(tx: &mut dyn Tx, request: &RequestId) -> Result<Option<Replay>> {
    let key = request_key(request);
    let Some(mut row) = tx.row(&REQUEST { request: key })? else {
        return Ok(None);
    };
    Ok(Some(Replay { fingerprint: row.opt_blob()?.unwrap_or_default(), seq: row.int()? }))
}

/// The answer that was kept beside a request.
pub fn answer(tx: &mut dyn Tx, request: &RequestId) -> Result<Option<String>> {
    let key = request_key(request);
    let row = tx.row(&ANSWER { request: key })?;
    row.map_or(Ok(None), |mut row| row.opt_text())
}

pub fn worker(tx: &mut dyn Tx, handle: &Handle) -> Result<Option<Worker>> {
    tx.row(&WORKER { handle })?.map(|mut row| codec::worker(&mut row)).transpose()
}

pub fn caller(tx: &mut dyn Tx, actor: Option<&Handle>) -> Result<Caller> {
    let Some(handle) = actor else {
        return Ok(Caller::Anonymous);
    };
    Ok(match worker(tx, handle)? {
        Some(worker) => Caller::Registered(worker),
        None => Caller::Unregistered(handle.clone()),
    })
}

/// A session as it stands on record.
pub fn recorded(tx: &mut dyn Tx, id: Seq) -> Result<Option<Recorded>> {
    session::recorded(tx, id, None)
}

pub fn task(tx: &mut dyn Tx, id: &TaskId) -> Result<Option<Stored>> {
    tx.row(&TASK { task: id })?.map(|mut row| codec::task(&mut row)).transpose()
}

pub fn task_by_origin(tx: &mut dyn Tx, origin: &OriginRef) -> Result<Option<TaskId>> {
    tx.row(&ORIGIN { origin })?.map(|mut row| row.parsed()).transpose()
}

pub fn state(tx: &mut dyn Tx, id: &TaskId) -> Result<Option<StateName>> {
    tx.row(&STATE { task: id })?.map(|mut row| state_name(&row.text()?)).transpose()
}

fn state_name(text: &str) -> Result<StateName> {
    StateName::parse(text).ok_or_else(|| StoreError::Corrupt(format!("unknown state `{text}`")))
}

/// What a task waits for, as it is now.
pub fn dependencies_of(tx: &mut dyn Tx, task: &Task) -> Result<Vec<Dependency>> {
    if task.depends_on.is_empty() { Ok(Vec::new()) } else { dependencies(tx, &task.id) }
}

pub fn dependencies(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Dependency>> {
    let rows = tx.rows(&DEPENDENCIES { task })?;
    rows.into_iter()
        .map(|mut row| {
            let id = row.parsed()?;
            let state = row.opt_text()?.map(|text| state_name(&text)).transpose()?;
            let excepted = row.flag()?;
            let is_request = row.opt_text()?.as_deref() == Some(KIND);
            Ok(Dependency { id, state, is_request, excepted })
        })
        .collect()
}

/// The token of a grant that was made earlier, for a replayed request.
pub fn granted_lease(tx: &mut dyn Tx, task: &TaskId, epoch: i64) -> Result<Option<([u8; 16], i64)>> {
    let Some(mut row) = tx.row(&ASSIGNMENT_SECRET { task, epoch })? else {
        return Ok(None);
    };
    let secret = row.opt_blob()?.and_then(|bytes| bytes.try_into().ok());
    Ok(secret.zip(Some(row.int()?)))
}

/// What the store knows about one call. The rest of the facts comes from outside it.
#[derive(Debug)]
pub struct Loaded {
    pub caller: Caller,
    pub task: Option<Stored>,
    pub holder: Option<Kind>,
    pub suspended: bool,
    /// The workstation that holds the task is there for it alone.
    pub single_task: bool,
    pub dependencies: Vec<Dependency>,
    pub mentioned: Option<Caller>,
    pub reachable: BTreeMap<TaskId, Vec<TaskId>>,
    pub ancestors: Vec<TaskId>,
    pub existing: Option<TaskId>,
    pub slices: Vec<Slice>,
    pub parts: Vec<(TaskId, StateName)>,
    pub evidence: Vec<Evidence>,
    pub reviews: Vec<Review>,
    /// For a correction or a usage.
    pub session: Option<Recorded>,
    /// For a command that begins a session: when the last one of the same worker in the same workstation ended. A wall
    /// clock that was set back must not make two of them overlap.
    pub rested: Option<Timestamp>,
    /// For a command that would make somebody the holder.
    pub ground: Ground,
}

/// A question that will be asked.
type FactQuestion<'a> = Box<dyn Statement + 'a>;

/// Announces what calls will ask before they can be refused or carried out, and what the tokens shown for them are.
pub fn prefetch_calls<'e>(
    tx: &mut dyn Tx,
    envelopes: impl Iterator<Item = &'e Envelope>,
    tokens: impl Iterator<Item = &'e TokenId>,
) -> Result<()> {
    if !tx.prefetches() {
        return Ok(());
    }
    let mut questions: Vec<FactQuestion<'_>> = vec![Box::new(WORKSPACE {})];
    questions.extend(tokens.map(|token| Box::new(token::ADMITTED { token }) as FactQuestion<'_>));
    for envelope in envelopes {
        questions.push(Box::new(REQUEST { request: request_key(&envelope.request) }));
        foresee(envelope, &mut questions);
    }
    tx.prefetch(&questions)
}

/// What [`facts`] will ask, as far as the command alone tells.
fn foresee<'e>(envelope: &'e Envelope, questions: &mut Vec<FactQuestion<'e>>) {
    if let Some(handle) = &envelope.actor {
        questions.push(Box::new(WORKER { handle }));
    }
    if let Some(task) = &envelope.task {
        questions.push(Box::new(TASK { task }));
        let is_claim = matches!(envelope.command, Command::Claim { .. });
        if !is_claim {
            questions.push(Box::new(HOLDER { task }));
        }
        if is_claim || matches!(envelope.command, Command::Takeover { .. }) {
            questions.push(Box::new(DEPENDENCIES { task }));
        }
        if matches!(envelope.command, Command::Complete { .. }) {
            questions.push(Box::new(evidence::EVIDENCE { task }));
            questions.push(Box::new(evidence::REVIEWS { task }));
            questions.push(Box::new(PARTS { task }));
            questions.push(Box::new(apply::SOME_DEPENDENT { task }));
        }
    }
    if let Command::Claim { workstation: Some(workstation), assignee, .. } = &envelope.command {
        questions.push(Box::new(grant::WORKSTATION { workstation }));
        if let Some(worker) = assignee.as_ref().or(envelope.actor.as_ref()) {
            questions.push(Box::new(session::LAST { worker, workstation }));
        }
    }
}

/// Announces what the facts of tasks will hang on that somebody is about to claim.
pub fn prefetch_dependencies(tx: &mut dyn Tx, tasks: &[Stored]) -> Result<()> {
    let waiting = tasks.iter().map(|stored| &stored.task).filter(|task| !task.depends_on.is_empty());
    let question = |task: &'_ Task| Box::new(DEPENDENCIES { task: task.id.clone() }) as FactQuestion<'static>;
    tx.prefetch(&waiting.map(question).collect::<Vec<_>>())
}

/// Loads the facts of one call. `policy` says which candidates matter.
pub fn facts(
    tx: &mut dyn Tx,
    envelope: &Envelope,
    policy: &Policy,
    now: Timestamp,
    at_work: &mut AtWork,
) -> Result<Loaded> {
    if tx.prefetches() {
        let mut questions = Vec::new();
        foresee(envelope, &mut questions);
        tx.prefetch(&questions)?;
    }
    let stored = envelope.task.as_ref().map(|id| task(tx, id)).transpose()?.flatten();
    facts_of(tx, envelope, stored, policy, now, at_work)
}

/// The same, where the task has been read already.
pub fn facts_of(
    tx: &mut dyn Tx,
    envelope: &Envelope,
    stored: Option<Stored>,
    policy: &Policy,
    now: Timestamp,
    at_work: &mut AtWork,
) -> Result<Loaded> {
    let mut loaded = Loaded {
        caller: caller(tx, envelope.actor.as_ref())?,
        task: stored,
        holder: None,
        suspended: false,
        single_task: false,
        dependencies: Vec::new(),
        mentioned: None,
        reachable: BTreeMap::new(),
        ancestors: Vec::new(),
        existing: None,
        slices: Vec::new(),
        parts: Vec::new(),
        evidence: Vec::new(),
        reviews: Vec::new(),
        session: None,
        rested: None,
        ground: Ground::default(),
    };
    if let Some(held) =
        loaded.task.as_ref().map(|stored| &stored.task).filter(|task| task.assignment().is_some())
        && let Some(mut row) = tx.row(&HOLDER { task: &held.id })?
    {
        loaded.holder = Some(codec::word(row.text()?.as_str(), Kind::parse)?);
        let state = codec::word(row.text()?.as_str(), WorkstationState::parse)?;
        loaded.suspended = state == WorkstationState::Quarantined;
        let lifecycle = codec::word(row.text()?.as_str(), Lifecycle::parse)?;
        loaded.single_task = lifecycle == Lifecycle::SingleTask;
    }
    match &envelope.command {
        Command::Add { spec, depends_on, .. } => {
            if let Some(origin) = &spec.origin {
                loaded.existing = task_by_origin(tx, origin)?;
            }
            for id in depends_on.iter().chain(&spec.parent) {
                loaded.dependencies.push(mentioned_task(tx, id)?);
            }
        }
        Command::AddDependency { on } => {
            loaded.dependencies.push(mentioned_task(tx, on)?);
            loaded.reachable = reachable(tx, on)?;
        }
        Command::Edit { changes } => edited(tx, changes, at_work, &mut loaded)?,
        Command::Claim { .. } | Command::Takeover { .. } => {
            grant::load(tx, envelope, policy, now, at_work, &mut loaded)?;
            let grantee = match loaded.mentioned.as_ref().unwrap_or(&loaded.caller) {
                Caller::Registered(worker) => Some(&worker.handle),
                Caller::Anonymous | Caller::Unregistered(_) => None,
            };
            if let (Some(worker), Some(found)) = (grantee, &loaded.ground.place.found) {
                loaded.rested = session::rested(tx, worker, &found.name)?;
            }
        }
        Command::Merge { .. } | Command::Complete { .. } => {
            if let Some(stored) = &loaded.task {
                loaded.dependencies = dependencies_of(tx, &stored.task)?;
                loaded.slices = slices(tx, &stored.task)?;
                loaded.parts = parts(tx, &stored.task.id)?;
                loaded.evidence = evidence::evidence(tx, &stored.task.id)?;
                loaded.reviews = evidence::reviews(tx, &stored.task.id)?;
            }
        }
        Command::Review { .. } | Command::Tick { .. } => {
            // A review may be the answer that the work waits for.
            loaded.rested = rested_holder(tx, loaded.task.as_ref())?;
            if let Some(stored) = &loaded.task {
                loaded.ground.builders = grant::workers_of(tx, &stored.task.id)?;
            }
        }
        Command::Say { to, .. } => {
            loaded.rested = rested_holder(tx, loaded.task.as_ref())?;
            if let Some(to) = to {
                loaded.mentioned = Some(caller(tx, Some(to))?);
            }
        }
        Command::Block { on, .. } => blocker(tx, on, &mut loaded)?,
        Command::StartSession => loaded.rested = rested_holder(tx, loaded.task.as_ref())?,
        Command::CorrectSession { session, .. } => {
            loaded.session = session::recorded(tx, *session, None)?;
        }
        Command::RecordUsage { session, usage } => {
            loaded.session = session::recorded(tx, *session, Some(&usage.key))?;
        }
        Command::CloseOutput { session } => {
            let found = session::recorded(tx, *session, None)?;
            let output = crate::output::state(tx, *session)?;
            loaded.session = found.map(|found| Recorded { output, ..found });
        }
        Command::Unblock => {
            loaded.rested = rested_holder(tx, loaded.task.as_ref())?;
            if let Some(State::Blocked { on, .. }) =
                loaded.task.as_ref().map(|stored| stored.task.state.clone())
            {
                blocker(tx, &on, &mut loaded)?;
            }
        }
        _ => {}
    }
    Ok(loaded)
}

/// When the holder last worked where it holds the task.
fn rested_holder(tx: &mut dyn Tx, task: Option<&Stored>) -> Result<Option<Timestamp>> {
    match task.and_then(|stored| stored.task.assignment()) {
        Some(held) => session::rested(tx, &held.assignee, &held.workstation),
        None => Ok(None),
    }
}

fn mentioned_task(tx: &mut dyn Tx, id: &TaskId) -> Result<Dependency> {
    Ok(Dependency { id: id.clone(), state: state(tx, id)?, is_request: false, excepted: false })
}

/// The other slices of the task's parent that have a place in its order.
fn slices(tx: &mut dyn Tx, task: &Task) -> Result<Vec<Slice>> {
    let (Some(parent), Some(_)) = (&task.spec.parent, task.spec.merge_order) else {
        return Ok(Vec::new());
    };
    let rows = tx.rows(&SLICES { parent, task: &task.id })?;
    rows.into_iter()
        .map(|mut row| {
            let id = row.parsed()?;
            Ok(Slice { id, state: state_name(&row.text()?)?, merge_order: row.int()? })
        })
        .collect()
}

/// The task's own slices. All of them, so that the answer hangs on the tasks that it names.
pub fn parts(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<(TaskId, StateName)>> {
    let rows = tx.rows(&PARTS { task })?;
    rows.into_iter().map(|mut row| Ok((row.parsed()?, state_name(&row.text()?)?))).collect()
}

/// What a blocker names, as the store knows it.
fn blocker(tx: &mut dyn Tx, on: &Blocker, loaded: &mut Loaded) -> Result<()> {
    match on {
        Blocker::Task(id) => {
            loaded.dependencies.push(mentioned_task(tx, id)?);
        }
        Blocker::Person(handle) => loaded.mentioned = Some(caller(tx, Some(handle))?),
        Blocker::External(_) | Blocker::Exception(_) => {}
    }
    Ok(())
}

/// What an edit mentions: tasks to wait for or to be a slice of, and the scopes that a new one may meet.
fn edited(tx: &mut dyn Tx, changes: &Changes, at_work: &mut AtWork, loaded: &mut Loaded) -> Result<()> {
    for id in changes.named_dependencies() {
        loaded.dependencies.push(mentioned_task(tx, &id)?);
        loaded.reachable.extend(reachable(tx, &id)?);
    }
    if let Some(parent) = changes.parent.given() {
        loaded.dependencies.push(mentioned_task(tx, parent)?);
        let rows = tx.rows(&ANCESTORS { from: parent })?;
        loaded.ancestors = rows.into_iter().map(|mut row| row.parsed()).collect::<Result<_>>()?;
    }
    let held = loaded.task.as_ref().map(|stored| &stored.task).filter(|task| task.assignment().is_some());
    if let (Some(task), Some(_)) = (held, &changes.scope) {
        loaded.ground.live_scopes = at_work.scopes_but(tx, &task.id)?;
    }
    Ok(())
}

/// What a task's body was before an edit, by its digest.
pub fn earlier_body(tx: &mut dyn Tx, task: &TaskId, digest: &Digest) -> Result<Option<String>> {
    for mut row in tx.rows(&EARLIER_BODIES { task })? {
        let text = row.text()?;
        if Digest::of(text.as_bytes()) == *digest {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// What each task that can be reached from one along `depends_on` depends on.
pub fn reachable(tx: &mut dyn Tx, from: &TaskId) -> Result<BTreeMap<TaskId, Vec<TaskId>>> {
    let mut edges: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for mut row in tx.rows(&REACHABLE { from })? {
        let task: TaskId = row.parsed()?;
        edges.entry(task).or_default().push(row.parsed()?);
    }
    Ok(edges)
}
