//! What has landed in the main of record, and who uses the store to get it there.

use crate::codec::row;
use crate::error::{Result, StoreError};
use crate::port::Tx;
use crate::sql;
use crate::tables::LandedRow;
use onus_core::event::Event;
use onus_core::id::{CloneId, CommitId, Epoch, Handle, Seq, TaskId, WorkstationName};
use onus_core::main_of_record::{Named, RepositoryClone};
use serde::{Deserialize, Serialize};

sql! {
    BY_COMMIT(commit) = "SELECT ", LandedRow::LIST, " FROM landed d WHERE d.workspace = :workspace AND d.commit_id = :commit \
        ORDER BY d.seq";
    BY_TASK(task) = "SELECT ", LandedRow::LIST, " FROM landed d WHERE d.workspace = :workspace AND d.task = :task \
        ORDER BY d.seq, d.commit_id";
    EVERY = "SELECT ", LandedRow::LIST, " FROM landed d WHERE d.workspace = :workspace";
    FIRST_BASE = "SELECT base FROM assignment WHERE workspace = :workspace AND base IS NOT NULL \
        ORDER BY assigned_at, task, epoch LIMIT 1";
    LAST_WORK(place, task, epoch) = "SELECT task, epoch FROM assignment WHERE workspace = :workspace \
        AND workstation = :place AND ended_at IS NOT NULL AND NOT (task = :task AND epoch = :epoch) \
        ORDER BY assigned_at DESC LIMIT 1";
    CLONES = "SELECT id, host, path FROM clone WHERE workspace = :workspace ORDER BY id";
    JOINED = "SELECT actor, verb, data FROM ledger WHERE workspace = :workspace AND verb = 'clone_joined' ORDER BY at";
    PUT_CLONE(id, host, path) = "INSERT INTO clone (workspace, id, host, path) VALUES (:workspace, :id, :host, :path) \
        ON CONFLICT (workspace, id) DO UPDATE SET host = excluded.host, path = excluded.path";
    PUT_MAIN(remote, branch, url, guarded) = "UPDATE workspace SET main_remote = :remote, main_branch = :branch, \
        main_url = :url, main_guarded = :guarded WHERE id = :workspace";
}

/// A commit of the main of record, and the assignment that brought it there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedCommit {
    pub commit: CommitId,
    pub seq: Seq,
    pub task: TaskId,
    pub epoch: Epoch,
}

pub(crate) fn insert(
    tx: &mut dyn Tx,
    task: &str,
    seq: Seq,
    epoch: Epoch,
    commits: &[CommitId],
) -> Result<()> {
    for commit in commits {
        tx.run_one(&row!(LandedRow { task: task, seq: seq, commit_id: commit.as_str(), epoch: epoch }))?;
    }
    Ok(())
}

fn read(row: &mut crate::port::Row) -> Result<LandedCommit> {
    let LandedRow { task, seq, commit_id, epoch } = LandedRow::read(row)?;
    Ok(LandedCommit {
        commit: commit_id.parsed()?,
        seq: seq.int()?,
        task: task.parsed()?,
        epoch: epoch.int()?,
    })
}

/// Who landed a commit; nobody where no entry speaks of it.
pub fn by_commit(tx: &mut dyn Tx, commit: &CommitId) -> Result<Option<LandedCommit>> {
    tx.row(&BY_COMMIT { commit })?.map(|mut row| read(&mut row)).transpose()
}

/// What of a task has landed, entry by entry.
pub fn of_task(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<LandedCommit>> {
    let rows = tx.rows(&BY_TASK { task })?;
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

/// Everything that has landed.
pub fn every(tx: &mut dyn Tx, each: &mut dyn FnMut(LandedCommit) -> Result<()>) -> Result<()> {
    tx.each(&EVERY {}, &mut |mut row| each(read(&mut row)?))
}

/// The commit that the first assignment of all began with.
pub fn first_base(tx: &mut dyn Tx) -> Result<Option<CommitId>> {
    tx.row(&FIRST_BASE {})?.map(|mut row| row.parsed()).transpose()
}

/// The last assignment that ended in a workstation, but for one.
pub fn last_work(
    tx: &mut dyn Tx,
    place: &WorkstationName,
    but: (&TaskId, Epoch),
) -> Result<Option<(TaskId, Epoch)>> {
    let row = tx.row(&LAST_WORK { place, task: but.0, epoch: but.1 })?;
    row.map(|mut row| Ok((row.parsed()?, row.int()?))).transpose()
}

/// The clones that use the store.
pub fn clones(tx: &mut dyn Tx) -> Result<Vec<RepositoryClone>> {
    tx.rows(&CLONES {})?
        .into_iter()
        .map(|mut row| {
            let id: CloneId = row.parsed()?;
            Ok(RepositoryClone { id, host: row.text()?, path: row.text()? })
        })
        .collect()
}

/// Who said last where a clone is.
pub fn joined_by(tx: &mut dyn Tx, id: &CloneId) -> Result<Option<Handle>> {
    let mut last = None;
    tx.each(&JOINED {}, &mut |mut row| {
        let by = row.parsed()?;
        match Event::parse(&row.text()?, &row.text()?).map_err(StoreError::Corrupt)? {
            Event::CloneJoined(joined) if joined.id == *id => last = Some(by),
            _ => {}
        }
        Ok(())
    })?;
    Ok(last)
}

pub fn put_clone(tx: &mut dyn Tx, clone: &RepositoryClone) -> Result<()> {
    let RepositoryClone { id, host, path } = clone;
    tx.run_one(&PUT_CLONE { id: id.as_str(), host, path })
}

pub fn put_main(tx: &mut dyn Tx, main: &Named) -> Result<()> {
    let Named { remote, branch, url, guarded } = main;
    tx.run_one(&PUT_MAIN { remote, branch: branch.as_str(), url, guarded })
}
