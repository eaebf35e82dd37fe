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

#[cfg(test)]
mod tests {
    use super::LONG;
    use crate::error::StoreError;
    use crate::port::{Outcome, Store};
    use crate::sql;
    use crate::sqlite::{Options, Sqlite};
    use onus_core::time::{Now, Tick, Timestamp};
    use std::path::Path;

    sql! {
        FILL(id) = "INSERT INTO request (workspace, id, fingerprint, seq) VALUES (:workspace, :id, zeroblob(30000), 1)";
    }

    fn now() -> Now {
        Now { wall: Timestamp(0), tick: Tick { host: "h".into(), boot: "b".into(), millis: 0 } }
    }

    /// The log's length after each of some commits of eight pages.
    fn lengths(path: &Path, options: &Options, commits: i64) -> (Sqlite, Vec<u64>) {
        let mut store = Sqlite::create(path, options).unwrap();
        let lengths = (0..commits).map(|n| {
            let written: Result<(), StoreError> =
                store.write(|tx| tx.run_one(&FILL { id: n.to_be_bytes().as_slice() }).map(Outcome::Commit));
            written.unwrap();
            std::fs::metadata(path.with_extension("db-wal")).unwrap().len()
        });
        let lengths = lengths.collect();
        (store, lengths)
    }

    #[test]
    fn one_call_leaves_a_short_log_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let (store, lengths) = lengths(&dir.path().join("onus.db"), &Options::one_shot(now), 300);
        assert!(lengths.iter().all(|length| *length < LONG), "{lengths:?}");
        assert!(lengths.contains(&0), "it was never emptied: {lengths:?}");
        drop(store);
        assert!(dir.path().join("onus.db-wal").exists(), "closing would cost several times the call");
    }

    #[test]
    fn who_stays_lets_the_log_grow_writes_it_over_and_takes_it_along() {
        let dir = tempfile::tempdir().unwrap();
        let (store, lengths) = lengths(&dir.path().join("onus.db"), &Options::staying(now), 300);
        let longest = *lengths.iter().max().unwrap();
        assert!(longest > 4 * LONG, "it was written back too early: {longest}");
        assert!(longest < 16 * LONG, "it was never written over: {longest}");
        assert!(lengths.is_sorted(), "a file that shrinks has to grow again");
        drop(store);
        assert!(!dir.path().join("onus.db-wal").exists());
    }
}
