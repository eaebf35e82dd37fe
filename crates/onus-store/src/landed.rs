//! What has landed in the main of record, and who uses the store to get it there.

use crate::error::Result;
use crate::port::Tx;
use crate::{args, sql};
use onus_core::id::{CloneId, CommitId, Epoch, Seq, TaskId};
use onus_core::main_of_record::{Named, RepositoryClone};
use serde::{Deserialize, Serialize};

sql! {
    INSERT_LANDED = "INSERT INTO landed (workspace, commit_id, seq, task, epoch) VALUES (?1, ?2, ?3, ?4, ?5)";
    BY_COMMIT = "SELECT commit_id, seq, task, epoch FROM landed WHERE workspace = ?1 AND commit_id = ?2 ORDER BY seq";
    BY_TASK = "SELECT commit_id, seq, task, epoch FROM landed WHERE workspace = ?1 AND task = ?2 ORDER BY seq, commit_id";
    EVERY = "SELECT commit_id, seq, task, epoch FROM landed WHERE workspace = ?1";
    CLONES = "SELECT id, host, path FROM clone WHERE workspace = ?1 ORDER BY id";
    PUT_CLONE = "INSERT INTO clone (workspace, id, host, path) VALUES (?1, ?2, ?3, ?4) \
        ON CONFLICT (workspace, id) DO UPDATE SET host = excluded.host, path = excluded.path";
    PUT_MAIN = "UPDATE workspace SET main_remote = ?2, main_branch = ?3, main_url = ?4, main_guarded = ?5 WHERE id = ?1";
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
    let workspace = tx.workspace();
    for commit in commits {
        tx.run_one(&INSERT_LANDED, &args![workspace.0, commit.as_str(), seq, task, epoch])?;
    }
    Ok(())
}

fn read(row: &mut crate::port::Row) -> Result<LandedCommit> {
    Ok(LandedCommit { commit: row.parsed()?, seq: row.int()?, task: row.parsed()?, epoch: row.int()? })
}

/// Who landed a commit; nobody where no entry speaks of it.
pub fn by_commit(tx: &mut dyn Tx, commit: &CommitId) -> Result<Option<LandedCommit>> {
    let workspace = tx.workspace();
    tx.row(&BY_COMMIT, &args![workspace.0, commit.as_str()])?.map(|mut row| read(&mut row)).transpose()
}

/// What of a task has landed, entry by entry.
pub fn of_task(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<LandedCommit>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&BY_TASK, &args![workspace.0, task.to_string()])?;
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

/// Everything that has landed.
pub fn every(tx: &mut dyn Tx, each: &mut dyn FnMut(LandedCommit) -> Result<()>) -> Result<()> {
    let workspace = tx.workspace();
    tx.each(&EVERY, &args![workspace.0], &mut |mut row| each(read(&mut row)?))
}

/// The clones that use the store.
pub fn clones(tx: &mut dyn Tx) -> Result<Vec<RepositoryClone>> {
    let workspace = tx.workspace();
    tx.rows(&CLONES, &args![workspace.0])?
        .into_iter()
        .map(|mut row| {
            let id: CloneId = row.parsed()?;
            Ok(RepositoryClone { id, host: row.text()?, path: row.text()? })
        })
        .collect()
}

pub fn put_clone(tx: &mut dyn Tx, clone: &RepositoryClone) -> Result<()> {
    let workspace = tx.workspace();
    let RepositoryClone { id, host, path } = clone;
    tx.run_one(&PUT_CLONE, &args![workspace.0, id.as_str(), host.as_str(), path.as_str()])
}

pub fn put_main(tx: &mut dyn Tx, main: &Named) -> Result<()> {
    let workspace = tx.workspace();
    let Named { remote, branch, url, guarded } = main;
    let values = args![workspace.0, remote.as_str(), branch.as_str(), url.as_deref(), i64::from(*guarded)];
    tx.run_one(&PUT_MAIN, &values)
}
