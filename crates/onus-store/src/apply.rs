//! Writes what was decided: row, assignment, session, note, ledger and request together, each guarded.

use crate::codec::{self, goes_on, row, sign_text};
use crate::error::{Result, StoreError};
use crate::evidence;
use crate::landed;
use crate::load::request_key;
use crate::port::Tx;
use crate::sql;
use crate::tables::{
    AssignmentEnd, AssignmentRow, AssignmentTask, EntryRow, SessionRow, TaskAsked, TaskMoving, TaskQueue,
    TaskRow,
};
use onus_core::effect::Effect;
use onus_core::event::TimesheetApproved;
use onus_core::hash::Digest;
use onus_core::id::{ProjectKey, RequestId, Seq, TaskId};
use onus_core::ledger::Entry;
use onus_core::task::{Assignment, StateName, Task};

/// The one event that changes what is asked for.
const EDITED: &str = "edited";

/// A dependency of the task is not complete, and nobody said that it need not be waited for; or a slice of it goes on.
macro_rules! incomplete {
    ($task:literal) => {
        concat!(
            "(EXISTS (SELECT 1 FROM dependency w JOIN task u ON u.workspace = w.workspace AND u.id = w.depends_on \
             WHERE w.workspace = ",
            $task,
            ".workspace AND w.task = ",
            $task,
            ".id AND w.excepted = 0 AND u.state <> 'complete') \
             OR EXISTS (SELECT 1 FROM task p WHERE p.workspace = ",
            $task,
            ".workspace AND p.parent = ",
            $task,
            ".id AND p.state NOT IN ('complete', 'dropped'))) "
        )
    };
}

pub(crate) use incomplete;

sql! {
    pub(crate) NEXT_NUMBER(project) = "UPDATE project SET last_number = last_number + 1 WHERE workspace = :workspace \
        AND key = :project";
    pub(crate) NUMBER(project) = "SELECT last_number FROM project WHERE workspace = :workspace AND key = :project";
    pub(crate) RAISE_NUMBER(project, number) = "UPDATE project SET last_number = :number WHERE workspace = :workspace \
        AND key = :project AND last_number < :number";
    /// The fence: the row must still be the one the decision was made on.
    pub(crate) UPDATE_TASK(task, was_version, was_epoch, was_lease_id, ..moving: TaskMoving) touches [task] row [task] =
        "UPDATE task SET ", TaskMoving::SET, " WHERE workspace = :workspace AND id = :task AND version = :was_version \
        AND epoch = :was_epoch AND lease_id IS NOT DISTINCT FROM :was_lease_id";
    /// What is asked for, after an edit; the row is already at the version of the edit.
    pub(crate) EDIT_TASK(task, version, ..asked: TaskAsked) = "UPDATE task SET ", TaskAsked::SET,
        " WHERE workspace = :workspace AND id = :task AND version = :version";
    /// Whether each of some tasks waits is asked anew from its dependencies and slices, so that the flag cannot drift.
    pub(crate) REFRESH_TASK(task) = "UPDATE task SET waits = CASE WHEN ", incomplete!("task"), "THEN 1 ELSE 0 END \
        WHERE workspace = :workspace AND id = :task";
    pub(crate) REFRESH_PARENT(task) last [] = "UPDATE task SET waits = CASE WHEN ", incomplete!("task"), "THEN 1 ELSE 0 \
        END WHERE workspace = :workspace AND id = :task";
    pub(crate) REFRESH_DEPENDENTS(task) last [] = "UPDATE task SET waits = CASE WHEN ", incomplete!("task"), "THEN 1 \
        ELSE 0 END \
        FROM dependency d WHERE d.workspace = :workspace AND d.depends_on = :task AND task.workspace = d.workspace AND \
        task.id = d.task";
    pub(crate) SOME_DEPENDENT(task) reads [] = "SELECT 1 FROM dependency WHERE workspace = :workspace AND depends_on = \
        :task LIMIT 1";
    REFRESH_YOUNGER(than) = "UPDATE task SET waits = 1 WHERE workspace = :workspace AND (born > :than OR id IN (SELECT y.parent \
        FROM task y WHERE y.workspace = :workspace AND y.born > :than AND y.parent IS NOT NULL)) AND ", incomplete!("task");
    pub(crate) INSERT_DEPENDENCY(task, depends_on) = "INSERT INTO dependency (workspace, task, depends_on) VALUES \
        (:workspace, :task, :depends_on)";
    EXCEPT_DEPENDENCY(task, depends_on) = "UPDATE dependency SET excepted = 1 WHERE workspace = :workspace AND task = \
        :task AND depends_on = :depends_on";
    pub(crate) DELETE_DEPENDENCY(task, depends_on) = "DELETE FROM dependency WHERE workspace = :workspace AND task = \
        :task AND depends_on = :depends_on";
    pub(crate) RENEW_ASSIGNMENT(task, epoch, ttl_ms, renewed_at, tick, renewals, resting) touches [task] row [task,
        epoch] = "UPDATE assignment SET ttl_ms = :ttl_ms, renewed_at = :renewed_at, tick = :tick, renewals = \
        :renewals, resting = :resting \
        WHERE workspace = :workspace AND task = :task AND epoch = :epoch AND ", goes_on!("ended_at");
    /// A person said anew what the holder is allowed.
    pub(crate) CONSTRAIN_ASSIGNMENT(task, epoch, constraints) touches [task] row [task, epoch] = "UPDATE assignment SET \
        constraints = :constraints WHERE workspace = :workspace AND task = :task AND epoch = :epoch AND ", goes_on!("ended_at");
    pub(crate) END_ASSIGNMENT(task, epoch, ended_at, end_reason, workstation) touches [task, workstation] row [task,
        epoch] = "UPDATE assignment SET ended_at = :ended_at, end_reason = :end_reason \
        WHERE workspace = :workspace AND task = :task AND epoch = :epoch AND workstation = :workstation AND ",
        goes_on!("ended_at");
    /// The worker is a guard, and said so that nobody looks through all sessions of a worker.
    pub(crate) STOP_SESSION(task, epoch, ended_at, end_reason, worker) touches [worker] row [task, epoch] = "UPDATE \
        session SET ended_at = :ended_at, end_reason = :end_reason \
        WHERE workspace = :workspace AND task = :task AND epoch = :epoch AND +worker IS NOT DISTINCT FROM :worker AND \
        ", goes_on!("ended_at");
    INSERT_APPROVAL(seq, worker, first_day, last_day, fingerprint) = "INSERT INTO approval (workspace, seq, worker, \
        first_day, last_day, fingerprint) \
        VALUES (:workspace, :seq, :worker, :first_day, :last_day, :fingerprint)";
    pub(crate) INSERT_REQUEST(id, fingerprint, seq) touches [request: id] row [id] = "INSERT INTO request (workspace, \
        id, fingerprint, seq) VALUES (:workspace, :id, :fingerprint, :seq)";
    INSERT_ANSWERED(id, fingerprint, seq, answer) = "INSERT INTO request (workspace, id, fingerprint, seq, answer) \
        VALUES (:workspace, :id, :fingerprint, :seq, :answer)";
    pub(crate) MOVE_HEAD(from, to) = "UPDATE workspace SET head = :to WHERE id = :workspace AND head = :from";
}

/// The next id of a project. Numbers are used once; a gap is no error.
pub fn allocate(tx: &mut dyn Tx, project: &ProjectKey) -> Result<Option<TaskId>> {
    if tx.run(&NEXT_NUMBER { project })? == 0 {
        return Ok(None);
    }
    let mut row = tx
        .row(&NUMBER { project })?
        .ok_or_else(|| StoreError::Corrupt(format!("the project {project} vanished")))?;
    Ok(Some(TaskId { project: project.clone(), number: row.int()? }))
}

/// Takes an id that came from elsewhere out of circulation.
pub fn reserve(tx: &mut dyn Tx, id: &TaskId) -> Result<()> {
    tx.run(&RAISE_NUMBER { project: &id.project, number: id.number }).map(drop)
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
    let id = change.after.id.to_string();
    match change.before {
        None => insert_task(tx, &id, change)?,
        Some(before) => {
            update_task(tx, &id, before, change)?;
            move_dependencies(tx, &id, before, change.after)?;
            let is_complete = |task: &Task| task.state.name() == StateName::Complete;
            let has_turned = is_complete(before) != is_complete(change.after);
            // Most tasks are waited for by none, which is quicker asked than done.
            if has_turned && is_waited_for(tx, &change.after.id)? {
                tx.run_any(&REFRESH_DEPENDENTS { task: id.as_str() })?;
            }
        }
    }
    refresh_parents(tx, change.before, change.after)?;
    entry(tx, change.entry)?;
    let held = change.before.and_then(Task::assignment);
    for effect in change.effects {
        match (effect, held) {
            (Effect::AssignmentEnded { epoch, at, reason }, Some(held)) => tx.run_one(&END_ASSIGNMENT {
                task: id.as_str(),
                epoch: *epoch,
                ended_at: at,
                end_reason: reason.name(),
                workstation: &held.workstation,
            })?,
            (Effect::SessionStopped { epoch, at, reason }, Some(held)) => tx.run_one(&STOP_SESSION {
                task: id.as_str(),
                epoch: *epoch,
                ended_at: at,
                end_reason: reason.name(),
                worker: &held.assignee,
            })?,
            (effect, _) => apply_effect(tx, &id, change.entry.seq, effect)?,
        }
    }
    Ok(())
}

/// A task waits for its slices, and begins with none of them open.
fn refresh_parents(tx: &mut dyn Tx, before: Option<&Task>, after: &Task) -> Result<()> {
    let part_of = |task: &Task| task.spec.parent.clone().filter(|_| !task.state.name().is_terminal());
    let (was, is) = (before.and_then(part_of), part_of(after));
    if was == is {
        return Ok(());
    }
    was.iter().chain(&is).try_for_each(|parent| tx.run_any(&REFRESH_PARENT { task: parent }))
}

/// Whether another task depends on this one.
pub fn is_waited_for(tx: &mut dyn Tx, task: &TaskId) -> Result<bool> {
    Ok(tx.row(&SOME_DEPENDENT { task })?.is_some())
}

fn insert_task(tx: &mut dyn Tx, id: &str, change: &Change<'_>) -> Result<()> {
    let task = change.after;
    tx.run_one(&TaskRow {
        asked: codec::asked_row(&task.spec)?,
        queue: row!(TaskQueue { waits: false }),
        moving: codec::moving_row(task, Some(&change.entry.hash))?,
        given: codec::given_row(task),
    })?;
    for on in &task.depends_on {
        tx.run_one(&INSERT_DEPENDENCY { task: id, depends_on: on })?;
    }
    if task.depends_on.is_empty() {
        return Ok(());
    }
    tx.run_one(&REFRESH_TASK { task: id })
}

fn update_task(tx: &mut dyn Tx, id: &str, before: &Task, change: &Change<'_>) -> Result<()> {
    tx.run_one(&UPDATE_TASK {
        task: id,
        was_version: before.version,
        was_epoch: before.epoch,
        was_lease_id: codec::secret(before.assignment()),
        moving: codec::moving_row(change.after, Some(&change.entry.hash))?,
    })?;
    if change.entry.verb != EDITED {
        return Ok(());
    }
    let is = &change.after.spec;
    if is.body.as_ref().is_some_and(|body| body.content().is_none()) {
        return Err(StoreError::Guard("a body without its text".into()));
    }
    tx.run_one(&EDIT_TASK { task: id, version: change.after.version, asked: codec::asked_row(is)? })
}

fn move_dependencies(tx: &mut dyn Tx, id: &str, before: &Task, after: &Task) -> Result<()> {
    for on in after.depends_on.difference(&before.depends_on) {
        tx.run_one(&INSERT_DEPENDENCY { task: id, depends_on: on })?;
    }
    for on in before.depends_on.difference(&after.depends_on) {
        tx.run_one(&DELETE_DEPENDENCY { task: id, depends_on: on })?;
    }
    let approved = |task: &Task| -> Vec<TaskId> {
        let approved = task.exceptions.iter().filter(|(_, exception)| exception.approved_by.is_some());
        approved.map(|(on, _)| on.clone()).collect()
    };
    let newly = approved(after).into_iter().filter(|on| !approved(before).contains(on));
    let newly: Vec<TaskId> = newly.collect();
    for on in &newly {
        tx.run_one(&EXCEPT_DEPENDENCY { task: id, depends_on: on })?;
    }
    if before.depends_on == after.depends_on && newly.is_empty() {
        return Ok(());
    }
    tx.run_one(&REFRESH_TASK { task: id })
}

/// After many tasks and their dependencies were written at once: finds out which of the younger ones wait, and which parents.
pub fn refresh_younger(tx: &mut dyn Tx, than: Seq) -> Result<()> {
    tx.run(&REFRESH_YOUNGER { than }).map(drop)
}

/// Appends to the record. The unique index on (task, prev) refuses a fork.
pub fn entry(tx: &mut dyn Tx, entry: &Entry) -> Result<()> {
    tx.announce(entry.seq, &entry.hash);
    tx.run_one(&row!(EntryRow {
        seq: entry.seq,
        task: entry.task.as_deref(),
        at: entry.at.0,
        actor: entry.actor.as_str(),
        workstation: entry.workstation.as_deref(),
        epoch: entry.epoch,
        verb: entry.verb.as_str(),
        data: entry.data.as_str(),
        prev: &entry.prev,
        hash: &entry.hash,
    }))
}

/// Appends to the workspace's own chain.
pub fn workspace_entry(tx: &mut dyn Tx, appended: &Entry) -> Result<()> {
    tx.run_one(&MOVE_HEAD { from: &appended.prev, to: &appended.hash })?;
    entry(tx, appended)
}

/// Keeps an approval; its own entry has the number `seq`.
pub fn approval(tx: &mut dyn Tx, seq: Seq, approved: &TimesheetApproved) -> Result<()> {
    let TimesheetApproved { worker, from, to, fingerprint } = approved;
    tx.run_one(&INSERT_APPROVAL { seq, worker, first_day: from, last_day: to, fingerprint })
}

pub fn request(tx: &mut dyn Tx, request: &RequestId, fingerprint: &Digest, seq: Seq) -> Result<()> {
    let key = request_key(request);
    tx.run_one(&INSERT_REQUEST { id: key, fingerprint: fingerprint_key(fingerprint), seq })
}

/// A request with its answer, where no entry could tell it again.
pub fn answered(
    tx: &mut dyn Tx,
    request: &RequestId,
    fingerprint: &Digest,
    seq: Seq,
    answer: &str,
) -> Result<()> {
    let (key, print) = (request_key(request), fingerprint_key(fingerprint));
    tx.run_one(&INSERT_ANSWERED { id: key, fingerprint: print, seq, answer })
}

/// Eight bytes tell two commands apart; the id already makes the row unique.
pub fn fingerprint_key(fingerprint: &Digest) -> &[u8] {
    &fingerprint.0[..8]
}

fn apply_effect(tx: &mut dyn Tx, task: &str, seq: Seq, effect: &Effect) -> Result<()> {
    match effect {
        Effect::AssignmentStarted(assignment) => start_assignment(tx, task, assignment),
        Effect::AssignmentRenewed(Assignment { epoch, lease, resting, .. }) => {
            tx.run_one(&RENEW_ASSIGNMENT {
                task,
                epoch: *epoch,
                ttl_ms: lease.ttl,
                renewed_at: lease.renewed_at,
                tick: sign_text(lease),
                renewals: lease.renewals,
                resting: *resting,
            })
        }
        Effect::AssignmentConstrained(held) => tx.run_one(&CONSTRAIN_ASSIGNMENT {
            task,
            epoch: held.epoch,
            constraints: codec::list_text(&held.constraints)?,
        }),
        Effect::SessionStarted { assignment, at } => tx.run_one(&row!(SessionRow {
            task: task,
            id: seq,
            epoch: assignment.epoch,
            worker: assignment.assignee.as_str(),
            workstation: assignment.workstation.as_str(),
            started_at: at.0,
            ended_at: None::<i64>,
            end_reason: None::<&str>,
        })),
        Effect::AssignmentEnded { .. } | Effect::SessionStopped { .. } => {
            Err(StoreError::Guard("what ends has not begun".into()))
        }
        Effect::CheckRan(run) => evidence::insert_run(tx, task, seq, run),
        Effect::ReviewWritten(review) => evidence::insert_review(tx, task, seq, review),
        Effect::Landed { epoch, commits } => landed::insert(tx, task, seq, *epoch, commits),
        Effect::SessionCorrected { .. } | Effect::SessionUsed { .. } | Effect::OutputClosed { .. } => {
            let fact = codec::fact_row(task, seq, effect);
            tx.run_one(&fact.ok_or_else(|| StoreError::Guard("a fact that says nothing".into()))?)
        }
        Effect::NoteWritten { kind, text, said } => {
            let content =
                text.content().ok_or_else(|| StoreError::Guard("a note without its text".into()))?;
            tx.run_one(&codec::note_row(task, content, seq, kind.name(), said.as_ref()))
        }
    }
}

fn start_assignment(tx: &mut dyn Tx, task: &str, assignment: &Assignment) -> Result<()> {
    if assignment.lease.id.secret().is_none() {
        return Err(StoreError::Guard("a grant without its lease id".into()));
    }
    tx.run_one(&AssignmentRow {
        of: row!(AssignmentTask { task: task }),
        held: codec::held_row(assignment)?,
        end: row!(AssignmentEnd { ended_at: None::<i64>, end_reason: None::<&str> }),
    })
}
