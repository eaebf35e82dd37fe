//! The physical limit: one process, one database, one statement. No rules, no ledger, no lease; the same
//! durability, page layout and indexes as the embedded store, so that a ratio to it says what the rest costs.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension as _, Result, params};
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The store's own tables and indexes.
const SCHEMA: &str = concat!(
    include_str!("../../../crates/onus-store/schema/sqlite/001_foundation.sql"),
    include_str!("../../../crates/onus-store/schema/sqlite/008_queue.sql"),
);

const WORKSPACE: &str = "INSERT INTO workspace (id, uid, generation, head, public_key, created_at)
    VALUES (1, 'raw', 1, zeroblob(32), '', 0)";
const READY: &str = "SELECT id, title, priority FROM task
    WHERE workspace = 1 AND state = 'open' AND waits = 0 ORDER BY priority, born LIMIT 20";
const LIST: &str = "SELECT id, title, state, priority FROM task
    WHERE workspace = 1 AND state <> 'complete' AND state <> 'dropped' ORDER BY priority, born LIMIT 20";
const SHOW: &str = "SELECT id, title, state, priority FROM task WHERE workspace = 1 AND id = ?1";
const EXPORT: &str =
    "SELECT id, uid, title, body, type, kind, state, priority, risk, role, lane, sprint, tags, scope,
        parent, merge_order, origin_ask_ref, checks, version, created_by, created_at, updated_at,
        (SELECT group_concat(depends_on) FROM dependency d WHERE d.workspace = 1 AND d.task = t.id)
    FROM task t WHERE workspace = 1 ORDER BY born";
const TIMESHEET: &str =
    "SELECT worker, task, started_at / 86400000, count(*), sum(ended_at - started_at) / 1000 FROM session
    WHERE workspace = 1 AND started_at >= CAST(?1 AS INTEGER) AND started_at < CAST(?2 AS INTEGER)
    GROUP BY worker, task, started_at / 86400000 ORDER BY 1, 2, 3";
const CLAIM: &str =
    "UPDATE task SET state = 'in_progress', epoch = epoch + 1, lease_id = ?2, version = version + 1,
    updated_at = ?3 WHERE workspace = 1 AND id = ?1 AND state = 'open' RETURNING id";
const CLAIM_NEXT: &str = "UPDATE task SET state = 'in_progress', epoch = epoch + 1, lease_id = ?1,
    version = version + 1, updated_at = ?2 WHERE born = (SELECT born FROM task
        WHERE workspace = 1 AND state = 'open' AND waits = 0 ORDER BY priority, born LIMIT 1)
    RETURNING id";
const SET: &str = "UPDATE task SET state = ?2, lease_id = NULL, version = version + 1, updated_at = ?3
    WHERE workspace = 1 AND id = ?1 AND state = 'in_progress' RETURNING id";
const ADD: &str = "INSERT INTO task (workspace, id, uid, title, kind, state, priority, risk, origin_ask_ref, archived,
        epoch, version, head, created_by, created_at, updated_at, forced, waits)
    VALUES (1, ?1, ?2, ?3, 'feature', 'open', ?4, 'normal', ?5, 0, 0, 1, zeroblob(32), '@raw', ?6, ?6, 0, ?7)";
const WAKE: &str = "UPDATE task SET waits = 0 WHERE workspace = 1 AND waits = 1
    AND id IN (SELECT task FROM dependency WHERE workspace = 1 AND depends_on = ?1)";
const DEPEND: &str = "INSERT INTO dependency (workspace, task, depends_on) VALUES (1, ?1, ?2)";

const USAGE: &str = "usage: raw version
       raw DATABASE bulk COUNT | ready | list | show ID | claim ID | claim-next | release ID | complete ID | add TITLE | export | timesheet FROM TO | drain";

fn open(path: &str) -> Result<Connection> {
    let store = Connection::open(path)?;
    store.busy_timeout(Duration::from_secs(60))?;
    // One-shot calls leave the WAL to whoever comes next; closing would cost more than the call.
    store.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    store.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0",
    )?;
    Ok(store)
}

/// The store's own way with the log: a one-shot call reads all of it first, so whoever finds it long empties it.
fn keep_short(store: &Connection, path: &str) -> Result<()> {
    const LONG: u64 = 128 * 4_096;
    if std::fs::metadata(format!("{path}-wal")).is_ok_and(|log| log.len() >= LONG) {
        store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    Ok(())
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Unique without a dependency: the process, and the nanosecond.
fn unique() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:032x}", (since.as_nanos() << 32) | u128::from(std::process::id()))
}

/// Every tenth task waits for the one before it, as in the runner's data sets.
fn bulk(store: &mut Connection, count: u32) -> Result<()> {
    store.execute_batch("PRAGMA journal_mode = WAL")?;
    store.execute_batch(SCHEMA)?;
    store.execute(WORKSPACE, [])?;
    let now = now();
    let all = store.transaction()?;
    {
        let mut add = all.prepare(ADD)?;
        let mut depend = all.prepare(DEPEND)?;
        for n in 1..=count {
            let (id, uid, title) = (format!("B-{n}"), format!("{n:032x}"), format!("task number {n}"));
            let waits = n % 10 == 0;
            add.execute(params![id, uid, title, n % 5, format!("bench:{n}"), now, waits])?;
            if waits {
                depend.execute([id, format!("B-{}", n - 1)])?;
            }
        }
    }
    all.commit()
}

fn print(store: &Connection, sql: &str, args: impl rusqlite::Params) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut statement = store.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query(args)?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            let written = match row.get_ref(column)? {
                rusqlite::types::ValueRef::Null => write!(out, "\t"),
                rusqlite::types::ValueRef::Integer(n) => write!(out, "{n}\t"),
                other => write!(out, "{}\t", other.as_str().unwrap_or_default()),
            };
            written
                .and_then(|()| if column + 1 == columns { writeln!(out) } else { Ok(()) })
                .map_err(broken)?;
        }
    }
    out.flush().map_err(broken)
}

fn broken(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Completes a task and wakes whoever waits for it, which in these data sets is for nothing else.
fn complete(store: &Connection, id: &str) -> Result<()> {
    let both = store.unchecked_transaction()?;
    store.prepare_cached(SET)?.query_row(params![id, "complete", now()], |_| Ok(()))?;
    store.prepare_cached(WAKE)?.execute([id])?;
    both.commit()
}

fn claim_next(store: &Connection) -> Result<Option<String>> {
    let mut next = store.prepare_cached(CLAIM_NEXT)?;
    next.query_row(params![unique().into_bytes(), now()], |row| row.get(0)).optional()
}

/// Claims and completes until nothing is ready, the log left to SQLite as in any process that stays; then prints how many and the longest wait for a claim, in microseconds.
fn drain(store: &Connection) -> Result<()> {
    store.execute_batch("PRAGMA wal_autocheckpoint = 1000")?;
    let (mut count, mut longest) = (0_u64, Duration::ZERO);
    loop {
        let began = Instant::now();
        let claimed = claim_next(store)?;
        longest = longest.max(began.elapsed());
        let Some(id) = claimed else { break };
        complete(store, &id)?;
        count += 1;
    }
    writeln!(std::io::stdout(), "{count} {}", longest.as_micros()).map_err(broken)
}

/// What a call came to.
enum End {
    Done,
    NothingReady,
    Misunderstood,
}

fn run(words: &[&str]) -> Result<End> {
    let [path, verb, rest @ ..] = words else { return Ok(End::Misunderstood) };
    let mut store = open(path)?;
    match (*verb, rest) {
        ("bulk", [count]) => match count.parse() {
            Ok(count) => bulk(&mut store, count)?,
            Err(_) => return Ok(End::Misunderstood),
        },
        ("ready", []) => print(&store, READY, [])?,
        ("list", []) => print(&store, LIST, [])?,
        ("export", []) => print(&store, EXPORT, [])?,
        ("timesheet", [from, to]) => print(&store, TIMESHEET, params![from, to])?,
        ("show", [id]) => print(&store, SHOW, [id])?,
        ("claim", [id]) => print(&store, CLAIM, params![id, unique().into_bytes(), now()])?,
        ("release", [id]) => print(&store, SET, params![id, "open", now()])?,
        ("complete", [id]) => complete(&store, id)?,
        ("claim-next", []) => match claim_next(&store)? {
            Some(id) => writeln!(std::io::stdout(), "{id}").map_err(broken)?,
            None => return Ok(End::NothingReady),
        },
        ("add", [title]) => {
            let uid = unique();
            let id = format!("R-{uid}");
            store.execute(ADD, params![id, uid, title, 2, format!("raw:{uid}"), now(), false])?;
        }
        ("drain", []) => drain(&store)?,
        _ => return Ok(End::Misunderstood),
    }
    if matches!(*verb, "claim" | "claim-next" | "release" | "complete" | "add" | "bulk") {
        keep_short(&store, path)?;
    }
    Ok(End::Done)
}

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut stderr = std::io::stderr();
    if words == ["version"] {
        return match writeln!(std::io::stdout(), "raw {}", env!("CARGO_PKG_VERSION")) {
            Ok(()) => 0.into(),
            Err(_) => 1.into(),
        };
    }
    match run(&words) {
        Ok(End::Done) => 0.into(),
        Ok(End::NothingReady) => 6.into(),
        Ok(End::Misunderstood) => {
            drop(writeln!(stderr, "{USAGE}"));
            2.into()
        }
        Err(error) => {
            drop(writeln!(stderr, "{error}"));
            1.into()
        }
    }
}
