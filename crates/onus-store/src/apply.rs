//! Writes what was decided: row, assignment, session, note, ledger and request together, each guarded.

use crate::codec::{exceptions_text, goes_on, json_text, list_text, sign_text};
use crate::error::{Result, StoreError};
use crate::evidence;
use crate::landed;
use crate::load::request_key;
use crate::port::Tx;
use crate::read::audit;
use crate::{args, sql};
use onus_core::effect::Effect;
use onus_core::event::TimesheetApproved;
use onus_core::hash::Digest;
use onus_core::id::{ProjectKey, RequestId, Seq, TaskId};
use onus_core::ledger::Entry;
use onus_core::task::{Assignment, State, StateName, Task};

/// A dependency of the task is not complete, and nobody said that it need not be waited for.
macro_rules! incomplete {
    ($task:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM dependency w JOIN task u ON u.workspace = w.workspace AND u.id = w.depends_on \
             WHERE w.workspace = ",
            $task,
            ".workspace AND w.task = ",
            $task,
            ".id AND w.excepted = 0 AND u.state <> 'complete') "
        )
    };
}

pub(crate) use incomplete;

sql! {
    pub(crate) NEXT_NUMBER = "UPDATE project SET last_number = last_number + 1 WHERE workspace = ?1 AND key = ?2";
    pub(crate) NUMBER = "SELECT last_number FROM project WHERE workspace = ?1 AND key = ?2";
    pub(crate) RAISE_NUMBER = "UPDATE project SET last_number = ?3 WHERE workspace = ?1 AND key = ?2 AND last_number < ?3";
    pub(crate) INSERT_TASK = "INSERT INTO task (workspace, id, uid, title, body, type, kind, priority, risk, role, lane, sprint, \
        tags, scope, parent, merge_order, origin_ask_ref, checks, born, created_by, created_at, state, blocker, \
        archived, epoch, lease_id, version, head, updated_at, closed_by, closed_at, forced, waits) VALUES \
        (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
        ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, 0)";
    /// The fence: the row must still be the one the decision was made on.
    pub(crate) UPDATE_TASK = "UPDATE task SET state = ?6, blocker = ?7, epoch = ?8, lease_id = ?9, version = ?10, head = ?11, \
        updated_at = ?12, closed_by = ?13, closed_at = ?14, forced = ?15, exceptions = ?16, checks = ?17 \
        WHERE workspace = ?1 AND id = ?2 AND version = ?3 AND epoch = ?4 AND lease_id IS NOT DISTINCT FROM ?5";
    /// Whether each of some tasks waits is asked anew from its dependencies, so that the flag cannot drift.
    pub(crate) REFRESH_TASK = "UPDATE task SET waits = CASE WHEN ", incomplete!("task"), "THEN 1 ELSE 0 END \
        WHERE workspace = ?1 AND id = ?2";
    pub(crate) REFRESH_DEPENDENTS = "UPDATE task SET waits = CASE WHEN ", incomplete!("task"), "THEN 1 ELSE 0 END \
        FROM dependency d WHERE d.workspace = ?1 AND d.depends_on = ?2 AND task.workspace = d.workspace AND task.id = d.task";
    pub(crate) SOME_DEPENDENT = "SELECT 1 FROM dependency WHERE workspace = ?1 AND depends_on = ?2 LIMIT 1";
    REFRESH_YOUNGER = "UPDATE task SET waits = 1 WHERE workspace = ?1 AND born > ?2 AND ", incomplete!("task");
    pub(crate) INSERT_DEPENDENCY = "INSERT INTO dependency (workspace, task, depends_on) VALUES (?1, ?2, ?3)";
    EXCEPT_DEPENDENCY = "UPDATE dependency SET excepted = 1 WHERE workspace = ?1 AND task = ?2 AND depends_on = ?3";
    pub(crate) DELETE_DEPENDENCY = "DELETE FROM dependency WHERE workspace = ?1 AND task = ?2 AND depends_on = ?3";
    pub(crate) INSERT_ASSIGNMENT = "INSERT INTO assignment (workspace, task, epoch, assignee, tier, workstation, lease_id, ttl_ms, \
        assigned_at, renewed_at, tick, renewals, handoff_reason, forced, route, lane, base) VALUES \
        (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
    pub(crate) RENEW_ASSIGNMENT = "UPDATE assignment SET ttl_ms = ?4, renewed_at = ?5, tick = ?6, renewals = ?7, resting = ?8 \
        WHERE workspace = ?1 AND task = ?2 AND epoch = ?3 AND ", goes_on!("ended_at");
    pub(crate) END_ASSIGNMENT = "UPDATE assignment SET ended_at = ?4, end_reason = ?5 \
        WHERE workspace = ?1 AND task = ?2 AND epoch = ?3 AND workstation = ?6 AND ", goes_on!("ended_at");
    pub(crate) START_SESSION = "INSERT INTO session (workspace, id, task, epoch, worker, workstation, started_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    /// The worker is a guard, and said so that nobody looks through all sessions of a worker.
    pub(crate) STOP_SESSION = "UPDATE session SET ended_at = ?4, end_reason = ?5 \
        WHERE workspace = ?1 AND task = ?2 AND epoch = ?3 AND +worker IS NOT DISTINCT FROM ?6 AND ", goes_on!("ended_at");
    pub(crate) INSERT_FACT = "INSERT INTO session_fact (workspace, task, seq, session, kind, started_at, ended_at, key, source, \
        model, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, cost_micros) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    INSERT_APPROVAL = "INSERT INTO approval (workspace, seq, worker, first_day, last_day, fingerprint) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    pub(crate) INSERT_NOTE = "INSERT INTO note (workspace, seq, task, kind, text) VALUES (?1, ?2, ?3, ?4, ?5)";
    pub(crate) INSERT_ENTRY = "INSERT INTO ledger (workspace, seq, task, at, actor, workstation, epoch, verb, data, prev, hash) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    pub(crate) INSERT_REQUEST = "INSERT INTO request (workspace, id, fingerprint, seq) VALUES (?1, ?2, ?3, ?4)";
    INSERT_ANSWERED = "INSERT INTO request (workspace, id, fingerprint, seq, answer) VALUES (?1, ?2, ?3, ?4, ?5)";
    pub(crate) MOVE_HEAD = "UPDATE workspace SET head = ?3 WHERE id = ?1 AND head = ?2";
}

/// The next id of a project. Numbers are used once; a gap is no error.
pub fn allocate(tx: &mut dyn Tx, project: &ProjectKey) -> Result<Option<TaskId>> {
    let workspace = tx.workspace();
    if tx.run(&NEXT_NUMBER, &args![workspace.0, project.as_str()])? == 0 {
        return Ok(None);
    }
    let mut row = tx
        .row(&NUMBER, &args![workspace.0, project.as_str()])?
        .ok_or_else(|| StoreError::Corrupt(format!("the project {project} vanished")))?;
    Ok(Some(TaskId { project: project.clone(), number: row.int()? }))
}

/// Takes an id that came from elsewhere out of circulation.
pub fn reserve(tx: &mut dyn Tx, id: &TaskId) -> Result<()> {
    let workspace = tx.workspace();
    tx.run(&RAISE_NUMBER, &args![workspace.0, id.project.as_str(), id.number]).map(drop)
}

/// One entry of a task's chain with what it changes.
#[derive(Debug)]
pub struct Change<'a> {
    pub before: Option<&'a Task>,
    pub after: &'a Task,
    pub entry: &'a Entry,
    pub effects: &'a [Effect],
}

pub fn change(tx: &mut dyn Tx, change: &Change<'_>) -> Result<()> {
    let workspace = tx.workspace();
    let id = change.after.id.to_string();
    match change.before {
        None => insert_task(tx, &id, change)?,
        Some(before) => {
            update_task(tx, &id, before, change)?;
            move_dependencies(tx, &id, before, change.after)?;
            let is_complete = |task: &Task| task.state.name() == StateName::Complete;
            let has_turned = is_complete(before) != is_complete(change.after);
            let own = args![workspace.0, id.as_str()];
            // Most tasks are waited for by none, which is quicker asked than done.
            if has_turned && is_waited_for(tx, &change.after.id)? {
                tx.run_any(&REFRESH_DEPENDENTS, &own)?;
            }
        }
    }
    entry(tx, change.entry)?;
    let held = change.before.and_then(Task::assignment);
    for effect in change.effects {
        match (effect, held) {
            (Effect::AssignmentEnded { epoch, at, reason }, Some(held)) => tx.run_one(
                &END_ASSIGNMENT,
                &args![workspace.0, id.as_str(), *epoch, at.0, reason.name(), held.workstation.as_str()],
            )?,
            (Effect::SessionStopped { epoch, at, reason }, Some(held)) => tx.run_one(
                &STOP_SESSION,
                &args![workspace.0, id.as_str(), *epoch, at.0, reason.name(), held.assignee.as_str()],
            )?,
            (effect, _) => apply_effect(tx, &id, change.entry.seq, effect)?,
        }
    }
    Ok(())
}

/// Whether another task depends on this one.
pub fn is_waited_for(tx: &mut dyn Tx, task: &TaskId) -> Result<bool> {
    let workspace = tx.workspace();
    Ok(tx.row(&SOME_DEPENDENT, &args![workspace.0, task.to_string()])?.is_some())
}

fn insert_task(tx: &mut dyn Tx, id: &str, change: &Change<'_>) -> Result<()> {
    let workspace = tx.workspace();
    let task = change.after;
    let spec = &task.spec;
    let moving = Moving::of(task);
    tx.run_one(
        &INSERT_TASK,
        &args![
            workspace.0,
            id,
            task.uid.to_string(),
            spec.title.as_str(),
            spec.body.as_ref().and_then(|body| body.content()),
            spec.task_type.as_ref().map(|t| t.as_str()),
            spec.kind.as_str(),
            spec.priority.rank(),
            spec.risk.name(),
            spec.role.as_ref().map(|r| r.as_str()),
            spec.lane,
            spec.sprint.as_deref(),
            list_text(&spec.tags)?,
            list_text(&spec.scope)?,
            spec.parent.as_ref().map(ToString::to_string),
            spec.merge_order,
            spec.origin.as_ref().map(|o| o.as_str()),
            list_text(&spec.checks)?,
            task.born,
            task.created_by.as_str(),
            task.created_at.0,
            moving.state,
            moving.blocker,
            task.archived,
            task.epoch,
            moving.lease_id.as_deref(),
            task.version,
            &change.entry.hash,
            task.updated_at.0,
            moving.closed_by,
            moving.closed_at,
            moving.forced,
        ],
    )?;
    for on in &task.depends_on {
        tx.run_one(&INSERT_DEPENDENCY, &args![workspace.0, id, on.to_string()])?;
    }
    if task.depends_on.is_empty() {
        return Ok(());
    }
    tx.run_one(&REFRESH_TASK, &args![workspace.0, id])
}

fn update_task(tx: &mut dyn Tx, id: &str, before: &Task, change: &Change<'_>) -> Result<()> {
    let workspace = tx.workspace();
    let task = change.after;
    let (was, is) = (Moving::of(before), Moving::of(task));
    tx.run_one(
        &UPDATE_TASK,
        &args![
            workspace.0,
            id,
            before.version,
            before.epoch,
            was.lease_id.as_deref(),
            is.state,
            is.blocker,
            task.epoch,
            is.lease_id.as_deref(),
            task.version,
            &change.entry.hash,
            task.updated_at.0,
            is.closed_by,
            is.closed_at,
            is.forced,
            exceptions_text(&task.exceptions)?,
            list_text(&task.spec.checks)?,
        ],
    )
}

/// The columns that a lifecycle moves.
struct Moving<'a> {
    state: &'static str,
    blocker: Option<String>,
    lease_id: Option<Vec<u8>>,
    closed_by: Option<&'a str>,
    closed_at: Option<i64>,
    forced: bool,
}

impl Moving<'_> {
    fn of(task: &Task) -> Moving<'_> {
        let closing = match &task.state {
            State::Complete(closing) | State::Dropped(closing) => Some(closing),
            _ => None,
        };
        Moving {
            state: task.state.name().name(),
            blocker: match &task.state {
                State::Blocked { on, .. } => Some(on.to_string()),
                _ => None,
            },
            lease_id: task.assignment().and_then(|held| held.lease.id.secret()).map(|secret| secret.to_vec()),
            closed_by: closing.map(|closing| closing.by.as_str()),
            closed_at: closing.map(|closing| closing.at.0),
            forced: closing.is_some_and(|closing| closing.forced),
        }
    }
}

fn move_dependencies(tx: &mut dyn Tx, id: &str, before: &Task, after: &Task) -> Result<()> {
    let workspace = tx.workspace();
    for on in after.depends_on.difference(&before.depends_on) {
        tx.run_one(&INSERT_DEPENDENCY, &args![workspace.0, id, on.to_string()])?;
    }
    for on in before.depends_on.difference(&after.depends_on) {
        tx.run_one(&DELETE_DEPENDENCY, &args![workspace.0, id, on.to_string()])?;
    }
    let approved = |task: &Task| -> Vec<TaskId> {
        let approved = task.exceptions.iter().filter(|(_, exception)| exception.approved_by.is_some());
        approved.map(|(on, _)| on.clone()).collect()
    };
    let newly = approved(after).into_iter().filter(|on| !approved(before).contains(on));
    let newly: Vec<TaskId> = newly.collect();
    for on in &newly {
        tx.run_one(&EXCEPT_DEPENDENCY, &args![workspace.0, id, on.to_string()])?;
    }
    if before.depends_on == after.depends_on && newly.is_empty() {
        return Ok(());
    }
    tx.run_one(&REFRESH_TASK, &args![workspace.0, id])
}

/// After many tasks and their dependencies were written at once: finds out which of the younger ones wait.
pub fn refresh_younger(tx: &mut dyn Tx, than: Seq) -> Result<()> {
    let workspace = tx.workspace();
    tx.run(&REFRESH_YOUNGER, &args![workspace.0, than]).map(drop)
}

/// Appends to the record. The unique index on (task, prev) refuses a fork.
pub fn entry(tx: &mut dyn Tx, entry: &Entry) -> Result<()> {
    let workspace = tx.workspace();
    tx.announce(entry.seq);
    tx.run_one(
        &INSERT_ENTRY,
        &args![
            workspace.0,
            entry.seq,
            entry.task.as_deref(),
            entry.at.0,
            entry.actor.as_str(),
            entry.workstation.as_deref(),
            entry.epoch,
            entry.verb.as_str(),
            entry.data.as_str(),
            &entry.prev,
            &entry.hash,
        ],
    )
}

/// Appends to the workspace's own chain.
pub fn workspace_entry(tx: &mut dyn Tx, appended: &Entry) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(&MOVE_HEAD, &args![workspace.0, &appended.prev, &appended.hash])?;
    entry(tx, appended)
}

/// Keeps an approval; its own entry has the number `seq`.
pub fn approval(tx: &mut dyn Tx, seq: Seq, approved: &TimesheetApproved) -> Result<()> {
    let workspace = tx.workspace();
    let TimesheetApproved { worker, from, to, fingerprint } = approved;
    tx.run_one(
        &INSERT_APPROVAL,
        &args![workspace.0, seq, worker.as_str(), from.to_string(), to.to_string(), fingerprint],
    )
}

pub fn request(tx: &mut dyn Tx, request: &RequestId, fingerprint: &Digest, seq: Seq) -> Result<()> {
    let workspace = tx.workspace();
    let key = request_key(request);
    tx.run_one(&INSERT_REQUEST, &args![workspace.0, key.as_slice(), fingerprint_key(fingerprint), seq])
}

/// A request with its answer, where no entry could tell it again.
pub fn answered(
    tx: &mut dyn Tx,
    request: &RequestId,
    fingerprint: &Digest,
    seq: Seq,
    answer: &str,
) -> Result<()> {
    let workspace = tx.workspace();
    let (key, print) = (request_key(request), fingerprint_key(fingerprint));
    tx.run_one(&INSERT_ANSWERED, &args![workspace.0, key.as_slice(), print, seq, answer])
}

/// Eight bytes tell two commands apart; the id already makes the row unique.
pub fn fingerprint_key(fingerprint: &Digest) -> &[u8] {
    &fingerprint.0[..8]
}

fn apply_effect(tx: &mut dyn Tx, task: &str, seq: Seq, effect: &Effect) -> Result<()> {
    let workspace = tx.workspace();
    match effect {
        Effect::AssignmentStarted(assignment) => start_assignment(tx, task, assignment),
        Effect::AssignmentRenewed(Assignment { epoch, lease, resting, .. }) => tx.run_one(
            &RENEW_ASSIGNMENT,
            &args![
                workspace.0,
                task,
                *epoch,
                lease.ttl.0,
                lease.renewed_at.0,
                sign_text(lease),
                lease.renewals,
                *resting,
            ],
        ),
        Effect::SessionStarted { assignment, at } => tx.run_one(
            &START_SESSION,
            &args![
                workspace.0,
                seq,
                task,
                assignment.epoch,
                assignment.assignee.as_str(),
                assignment.workstation.as_str(),
                at.0
            ],
        ),
        Effect::AssignmentEnded { .. } | Effect::SessionStopped { .. } => {
            Err(StoreError::Guard("what ends has not begun".into()))
        }
        Effect::CheckRan(run) => evidence::insert_run(tx, task, seq, run),
        Effect::ReviewWritten(review) => evidence::insert_review(tx, task, seq, review),
        Effect::Landed { epoch, commits } => landed::insert(tx, task, seq, *epoch, commits),
        Effect::SessionCorrected { .. } | Effect::SessionUsed { .. } => {
            let fact = audit::session_fact(seq, effect)
                .ok_or_else(|| StoreError::Guard("a fact that says nothing".into()))?;
            let mut values = args![workspace.0, task].to_vec();
            values.extend(fact);
            tx.run_one(&INSERT_FACT, &values)
        }
        Effect::NoteWritten { kind, text } => {
            let content =
                text.content().ok_or_else(|| StoreError::Guard("a note without its text".into()))?;
            tx.run_one(&INSERT_NOTE, &args![workspace.0, seq, task, kind.name(), content])
        }
    }
}

fn start_assignment(tx: &mut dyn Tx, task: &str, assignment: &Assignment) -> Result<()> {
    let workspace = tx.workspace();
    let lease = &assignment.lease;
    let secret = lease.id.secret().ok_or_else(|| StoreError::Guard("a grant without its lease id".into()))?;
    tx.run_one(
        &INSERT_ASSIGNMENT,
        &args![
            workspace.0,
            task,
            assignment.epoch,
            assignment.assignee.as_str(),
            assignment.tier.as_deref(),
            assignment.workstation.as_str(),
            secret.as_slice(),
            lease.ttl.0,
            assignment.assigned_at.0,
            lease.renewed_at.0,
            sign_text(lease),
            lease.renewals,
            assignment.handoff_reason.as_deref(),
            assignment.forced,
            assignment.route.as_ref().map(json_text).transpose()?,
            assignment.lane,
            assignment.base.as_ref().map(|base| base.as_str()),
        ],
    )
}
