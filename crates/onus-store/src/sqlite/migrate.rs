//! The schema's versions. A migration runs once, in one transaction, after a backup.

use super::{Sqlite, before_commit, during_commit};
use crate::error::{Result, StoreError};
use rusqlite::{Connection, Transaction, TransactionBehavior};

const MIGRATIONS: &[&str] = &[include_str!("../../schema/sqlite/001_foundation.sql")];

pub(super) const LATEST: i64 = MIGRATIONS.len() as i64;

pub(super) fn version(connection: &Connection) -> Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(before_commit)
}

/// Makes the tables of an empty file. Whoever comes second finds them there.
pub(super) fn create(store: &Sqlite) -> Result<()> {
    let _turn = store.queue.wait()?;
    let mode: String = store
        .connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(before_commit)?;
    if mode != "wal" {
        return Err(StoreError::unavailable(format!(
            "the file system does not allow a write-ahead log ({mode})"
        )));
    }
    match version(&store.connection)? {
        version if version == LATEST => Ok(()),
        0 => run(&store.connection, 0),
        version => upgrade_in_turn(store, version),
    }
}

pub(super) fn upgrade(store: &Sqlite, version: i64) -> Result<()> {
    let _turn = store.queue.wait()?;
    upgrade_in_turn(store, version)
}

fn upgrade_in_turn(store: &Sqlite, seen: i64) -> Result<()> {
    let version = version(&store.connection)?;
    if version > LATEST {
        return Err(StoreError::Unavailable {
            detail: format!("the store has schema {version}; this program knows up to {LATEST}"),
            hint: Some("install a newer onus".into()),
        });
    }
    if version < 0 {
        return Err(StoreError::Corrupt(format!("the schema's version is {version}")));
    }
    if version != seen || version == LATEST {
        return Ok(());
    }
    backup(store, version)?;
    run(&store.connection, version)
}

/// A copy beside the store, complete and consistent, under a name that says which schema it has.
fn backup(store: &Sqlite, version: i64) -> Result<()> {
    let wall = (store.clock)().wall.0;
    let mut name = store.path.as_os_str().to_owned();
    name.push(format!(".schema-{version}-{wall}.backup"));
    let target = name.to_string_lossy().into_owned();
    store.connection.execute("VACUUM INTO ?1", [target]).map_err(before_commit)?;
    Ok(())
}

fn run(connection: &Connection, from: i64) -> Result<()> {
    let tx = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(before_commit)?;
    let pending = MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(usize::MAX));
    for migration in pending {
        tx.execute_batch(migration).map_err(before_commit)?;
    }
    tx.pragma_update(None, "user_version", LATEST).map_err(before_commit)?;
    tx.commit().map_err(during_commit)
}
