//! The schema's versions. A migration runs once, in one transaction, after a backup.

use super::{Sqlite, before_commit, during_commit};
use crate::error::{Result, StoreError};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

const MIGRATIONS: &[&str] = &[
    include_str!("../../schema/sqlite/001_foundation.sql"),
    include_str!("../../schema/sqlite/002_dispatch.sql"),
    include_str!("../../schema/sqlite/003_effort.sql"),
    include_str!("../../schema/sqlite/004_evidence.sql"),
    include_str!("../../schema/sqlite/005_team.sql"),
    include_str!("../../schema/sqlite/006_report.sql"),
    include_str!("../../schema/sqlite/007_milestone.sql"),
    include_str!("../../schema/sqlite/008_queue.sql"),
    include_str!("../../schema/sqlite/009_answer.sql"),
    include_str!("../../schema/sqlite/010_road.sql"),
    include_str!("../../schema/sqlite/011_outside.sql"),
    include_str!("../../schema/sqlite/012_mirror.sql"),
    include_str!("../../schema/sqlite/013_output.sql"),
    include_str!("../../schema/sqlite/014_constraint.sql"),
    include_str!("../../schema/sqlite/015_search.sql"),
    include_str!("../../schema/sqlite/016_limits.sql"),
    include_str!("../../schema/sqlite/017_views.sql"),
    include_str!("../../schema/sqlite/018_parts.sql"),
];

pub(super) const LATEST: i64 = MIGRATIONS.len() as i64;

/// What the migrations come to, word for word; a test makes it. SQLite reads its whole schema again after each column that is
/// added, which would be most of what a new store costs.
const NEW: &str = include_str!("../../schema/sqlite/new.sql");

/// The tables of an empty store: those of [`NEW`], which says how many migrations are in it, and whatever came after them.
pub(super) fn fill(connection: &Connection) -> Result<()> {
    connection.execute_batch(NEW).map_err(before_commit)?;
    migrate(connection, MIGRATIONS, version(connection)?)
}

fn migrate(connection: &Connection, migrations: &[&str], from: i64) -> Result<()> {
    let mut pending = migrations.iter().skip(usize::try_from(from).unwrap_or(usize::MAX));
    pending.try_for_each(|migration| connection.execute_batch(migration)).map_err(before_commit)
}

pub(super) fn version(connection: &Connection) -> Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(before_commit)
}

fn has_tables(connection: &Connection) -> Result<bool> {
    let count = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    Ok(count.map_err(before_commit)? > 0)
}

/// Turns the write-ahead log on; a copy of a store may have lost it.
pub(super) fn ensure_log(store: &Sqlite) -> Result<()> {
    let mode = |sql: &str| -> Result<String> {
        store.connection.query_row(sql, [], |row| row.get(0)).map_err(before_commit)
    };
    if mode("PRAGMA journal_mode")? == "wal" {
        return Ok(());
    }
    let _turn = store.queue.wait()?;
    match mode("PRAGMA journal_mode = WAL")?.as_str() {
        "wal" => Ok(()),
        other => {
            let detail = format!("the file system does not allow a write-ahead log ({other})");
            Err(StoreError::unavailable(detail))
        }
    }
}

/// Whose the empty file is that a store is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreFile {
    Made,
    Found,
}

/// Makes the tables of an empty file. Whoever comes second finds them there.
pub(super) fn create(store: &Sqlite, file: StoreFile) -> Result<()> {
    if version(&store.connection)? == 0 && has_tables(&store.connection)? {
        return Err(StoreError::Unavailable {
            detail: format!("{} is a database of another program", store.path.display()),
            hint: Some("choose another file: --store sqlite:PATH".into()),
        });
    }
    ensure_log(store)?;
    let mut turn = store.queue.wait()?;
    match version(&store.connection)? {
        version if version == LATEST => Ok(()),
        // A file that lost all it had, its log with it, is not the one that somebody has just begun.
        0 if file == StoreFile::Found && turn.record().is_some() => Err(StoreError::Unavailable {
            detail: format!("{} is empty, and had entries that were acknowledged", store.path.display()),
            hint: Some("restore a backup; to begin anew without it, remove the file".into()),
        }),
        0 => {
            // What is recorded there is of a store that somebody took away.
            turn.forget()?;
            run(&store.connection, fill, LATEST)
        }
        version => upgrade_in_turn(store, MIGRATIONS, version),
    }
}

pub(super) fn upgrade(store: &Sqlite, version: i64) -> Result<()> {
    let _turn = store.queue.wait()?;
    upgrade_in_turn(store, MIGRATIONS, version)
}

fn upgrade_in_turn(store: &Sqlite, migrations: &[&str], seen: i64) -> Result<()> {
    let version = version(&store.connection)?;
    let latest = migrations.len() as i64;
    if version > latest {
        return Err(StoreError::Unavailable {
            detail: format!("the store has schema {version}; this program knows up to {latest}"),
            hint: Some("install a newer onus".into()),
        });
    }
    if version < 0 {
        return Err(StoreError::Corrupt(format!("the schema's version is {version}")));
    }
    if version != seen || version == latest {
        return Ok(());
    }
    backup(store, version)?;
    run(&store.connection, |connection| migrate(connection, migrations, version), latest)
}

/// A copy beside the store, complete and consistent, under a name that says which schema it has.
fn backup(store: &Sqlite, version: i64) -> Result<()> {
    let wall = (store.clock)().wall.0;
    let mut name = store.path.as_os_str().to_owned();
    name.push(format!(".schema-{version}-{wall}.backup"));
    let target = name.to_string_lossy().into_owned();
    // SQLite fills an empty file; made here, it is the owner's alone, as the store is.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target);
    made.map_err(|error| StoreError::unavailable(format!("cannot back the store up to {target}: {error}")))?;
    store.connection.execute("VACUUM INTO ?1", [target]).map_err(before_commit)?;
    Ok(())
}

fn run(connection: &Connection, work: impl FnOnce(&Connection) -> Result<()>, version: i64) -> Result<()> {
    let tx = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(before_commit)?;
    work(&tx)?;
    tx.pragma_update(None, "user_version", version).map_err(before_commit)?;
    tx.commit().map_err(during_commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::Options;
    use onus_core::time::{Now, Tick, Timestamp};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    fn now() -> Now {
        Now { wall: Timestamp(77), tick: Tick { host: "h".into(), boot: "b".into(), millis: 1 } }
    }

    fn backups(dir: &std::path::Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "backup")).collect()
    }

    #[test]
    fn a_migration_runs_once_and_after_a_backup() {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::create(&dir.path().join("onus.db"), &Options::one_shot(now)).unwrap();
        store
            .connection
            .execute(
                "INSERT INTO workspace (id, uid, generation, head, public_key, created_at, name) \
                 VALUES (1, 'u', 1, x'00', 'k', 0, 'main')",
                [],
            )
            .unwrap();
        let newer = [MIGRATIONS, &["CREATE TABLE later (n INTEGER) STRICT;"]].concat();
        upgrade_in_turn(&store, &newer, LATEST).unwrap();
        assert_eq!(version(&store.connection).unwrap(), LATEST + 1);
        store.connection.execute("INSERT INTO later VALUES (1)", []).unwrap();
        // Whoever comes second finds it done.
        upgrade_in_turn(&store, &newer, LATEST).unwrap();

        let made = backups(dir.path());
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(std::fs::metadata(&made[0]).unwrap().permissions().mode() & 0o777, 0o600);
        let old = Sqlite::open(&made[0], &Options::one_shot(now)).unwrap();
        let kept: String =
            old.connection.query_row("SELECT uid FROM workspace", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "u");
        let mode: String = old.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal", "a restored copy must be as durable as the store was");
    }

    /// A store of every earlier version becomes what a new one is, to the word.
    #[test]
    fn every_earlier_schema_becomes_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        for from in 1..=LATEST {
            let path = dir.path().join(format!("{from}.db"));
            let old = Connection::open(&path).unwrap();
            let earlier = &MIGRATIONS[..usize::try_from(from).unwrap()];
            run(&old, |old| migrate(old, earlier, 0), from).unwrap();
            drop(old);
            let store = Sqlite::open(&path, &Options::one_shot(now)).unwrap();
            assert_eq!(version(&store.connection).unwrap(), LATEST);
            let strange = store.strange_schema().unwrap();
            assert!(strange.is_empty(), "from {from}: {strange:?}");
        }
    }

    #[test]
    fn a_new_store_is_made_of_what_the_migrations_come_to() {
        let migrated = Connection::open_in_memory().unwrap();
        migrate(&migrated, MIGRATIONS, 0).unwrap();
        let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
        let mut texts = migrated.prepare(sql).unwrap();
        let texts = texts.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let made: String = texts.map(|text| format!("{};\n\n", text.unwrap())).collect();
        let head = "-- Made from the migrations: UPDATE_CONTRACT=1 cargo test -p onus-store";
        let made = format!("{head}\n\n{made}PRAGMA user_version = {LATEST};\n");
        if std::env::var_os("UPDATE_CONTRACT").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/schema/sqlite/new.sql"), &made).unwrap();
            return;
        }
        assert!(made == NEW, "schema/sqlite/new.sql differs: UPDATE_CONTRACT=1 cargo test -p onus-store");
    }

    #[test]
    fn a_migration_that_fails_leaves_the_store_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::create(&dir.path().join("onus.db"), &Options::one_shot(now)).unwrap();
        let step = "CREATE TABLE later (n INTEGER) STRICT; CREATE TABLE task (oops);";
        let broken = [MIGRATIONS, &[step]].concat();
        assert!(upgrade_in_turn(&store, &broken, LATEST).is_err());
        assert_eq!(version(&store.connection).unwrap(), LATEST);
        assert!(store.connection.execute("INSERT INTO later VALUES (1)", []).is_err());
    }

    #[test]
    fn a_store_of_the_future_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("onus.db");
        let store = Sqlite::create(&path, &Options::one_shot(now)).unwrap();
        store.connection.pragma_update(None, "user_version", 99).unwrap();
        let refused = Sqlite::open(&path, &Options::one_shot(now));
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
        assert!(backups(dir.path()).is_empty());
    }
}
