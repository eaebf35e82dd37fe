//! Keeps the write-ahead log short.
//!
//! A one-shot call is often the only connection, so it has to read the whole log before it can do anything, and what an
//! earlier call had written back is forgotten: SQLite's own automatic checkpoint would write everything back again and
//! again while the log grows for ever. So the log is written back and emptied by whoever finds it too long.

use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// About twelve claims. Reading it costs a call a fraction of a millisecond; emptying it costs a few, once per dozen.
const LONG: u64 = 128 * 4_096;

/// Called after a commit, while the writer still has its turn. What fails here is no loss: the commit stands, and the
/// next writer tries again.
pub(super) fn keep_short(connection: &Connection, store: &Path) {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() < LONG) {
        return;
    }
    // A reader in the way must not hold up the writers in line.
    let patience: Option<i64> = connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).ok();
    drop(connection.busy_timeout(Duration::ZERO));
    drop(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    let patience = patience.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0);
    drop(connection.busy_timeout(Duration::from_millis(patience)));
}
