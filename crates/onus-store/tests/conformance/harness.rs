//! A fresh database for each case, and enough of the rules to write real rows.

use onus_core::effect::effects;
use onus_core::event::{Added, Claimed, Event, Grant, Stamped};
use onus_core::hash::Digest;
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::lease::LeaseId;
use onus_core::ledger::Entry;
use onus_core::task::{Spec, Task, evolve};
use onus_core::time::{Now, Tick, Timestamp};
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use onus_store::apply::{self, Change};
use onus_store::error::{Result, StoreError};
use onus_store::port::{Outcome, Store, Tx};
use onus_store::postgres::{Address, Postgres};
use onus_store::sqlite::{Options, Sqlite};
use onus_store::{load, registry};
use onus_testkit::Cluster;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Once;

/// Makes databases of one kind.
pub(crate) trait Harness: Sync {
    type Store: Store + Send;

    /// Another connection to the case's database, made on first use.
    fn connect(&self) -> Self::Store;

    /// What is wrong with the plan of a statement that must not read whole tables.
    fn scans(&self, sql: &str) -> Vec<String>;
}

pub(crate) struct SqliteFile {
    dir: tempfile::TempDir,
    options: Options,
}

impl SqliteFile {
    pub(crate) fn new(options: fn(fn() -> Now) -> Options) -> SqliteFile {
        SqliteFile { dir: tempfile::tempdir().unwrap(), options: options(now) }
    }
}

impl Harness for SqliteFile {
    type Store = Sqlite;

    fn connect(&self) -> Sqlite {
        Sqlite::create(&self.dir.path().join("onus.db"), &self.options).unwrap()
    }

    fn scans(&self, sql: &str) -> Vec<String> {
        let connection = rusqlite::Connection::open(self.dir.path().join("onus.db")).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>(3)).map(|line| line.unwrap());
        let is_bad = |line: &String| {
            // All rows of the workspace are all rows there are; all sessions of a worker only become more.
            let ends = ["(workspace=?)", "session_place (workspace=? AND worker=?)"];
            let reads_all = line.starts_with("SCAN") || ends.iter().any(|end| line.ends_with(end));
            let is_harmless = HARMLESS.iter().any(|known| line.contains(known));
            (reads_all && !is_harmless) || line.contains("USE TEMP B-TREE FOR ORDER BY")
        };
        lines.filter(is_bad).collect()
    }
}

/// Indexes of the few live assignments; indexes read in their order up to a limit; rows made by the statement itself; the
/// ledger read backwards for its last entry.
const HARMLESS: [&str; 6] = [
    "INDEX assignment_live",
    "INDEX task_ready",
    "INDEX task_queue",
    "SCAN r",
    "SCAN CONSTANT ROW",
    "SCAN ledger",
];

/// A database of its own in the program's server.
pub(crate) struct PostgresDatabase {
    cluster: &'static Cluster,
    address: Address,
    filled: Once,
}

impl PostgresDatabase {
    pub(crate) fn new() -> Option<PostgresDatabase> {
        let cluster = Cluster::shared()?;
        let address = Address::parse(&cluster.database()).unwrap();
        Some(PostgresDatabase { cluster, address, filled: Once::new() })
    }
}

impl Harness for PostgresDatabase {
    type Store = Postgres;

    fn connect(&self) -> Postgres {
        Postgres::create(&self.address).unwrap()
    }

    fn scans(&self, sql: &str) -> Vec<String> {
        let database = self.address.url().rsplit('/').next().unwrap();
        // Plans are made for what is there: the tables must be large, and all of one workspace.
        self.filled.call_once(|| drop(self.cluster.psql(database, include_str!("fill.sql"))));
        let values =
            (1..=99).take_while(|n| sql.contains(&format!("?{n}"))).map(|_| "NULL").collect::<Vec<_>>();
        let values = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
        let plan = self.cluster.psql(
            database,
            &format!(
                "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; PREPARE p AS {}; EXPLAIN (COSTS OFF) EXECUTE p{values}",
                onus_store::postgres::postgres_text(sql)
            ),
        );
        let mut bad = Vec::new();
        let mut node = "";
        for line in plan.lines().map(|line| line.trim_start_matches([' ', '-', '>'])) {
            if line.contains("Scan") || line.starts_with("Update on") {
                node = line;
            }
            let is_harmless = BOUNDED.iter().any(|known| node.contains(known));
            // A condition on the workspace alone is none: all rows of the index are read.
            let is_whole = line.starts_with("Index Cond: (") && !line.contains(" AND ");
            let reads_all = line.starts_with("Seq Scan") || (is_whole && line.contains("workspace = "));
            if reads_all && !is_harmless {
                bad.push(format!("{node}: {line}\n{plan}"));
            }
        }
        bad
    }
}

/// Read in their order up to a limit, or few: live assignments, workspaces, projects.
const BOUNDED: [&str; 6] =
    ["task_ready", "task_queue", "assignment_live", "ledger_pkey", "on workspace", "on project"];

pub(crate) fn now() -> Now {
    Now { wall: Timestamp(1_000_000), tick: Tick { host: "h".into(), boot: "b".into(), millis: 5_000 } }
}

pub(crate) fn id<T: FromStr<Err = String>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Commits what `work` did.
pub(crate) fn commit<S: Store, T>(store: &mut S, work: impl FnOnce(&mut dyn Tx) -> Result<T>) -> Result<T> {
    store.write(|tx| work(tx).map(Outcome::Commit))
}

pub(crate) fn ask<S: Store, T>(store: &mut S, question: impl FnOnce(&mut dyn Tx) -> Result<T>) -> T {
    store.read(question).unwrap()
}

/// A workspace with a project, a person, an agent and two workstations.
pub(crate) fn furnished<H: Harness>(harness: &H) -> H::Store {
    let mut store = harness.connect();
    furnish(&mut store);
    store
}

pub(crate) fn furnish<S: Store>(store: &mut S) {
    commit(store, |tx| {
        registry::insert_workspace(tx, "0190-test", "key", Timestamp(1))?;
        registry::insert_project(tx, &id("T"))?;
        for (handle, kind) in [("@ada", Kind::Human), ("@bot", Kind::Agent)] {
            registry::insert_worker(tx, &worker(handle, kind))?;
        }
        for name in ["ws-1", "ws-2"] {
            registry::put_workstation(tx, registry::Put::New, &workstation(name))?;
        }
        Ok(())
    })
    .unwrap();
}

pub(crate) fn worker(handle: &str, kind: Kind) -> Worker {
    Worker { handle: id(handle), kind, tier: None, role: None, state: WorkerState::Active, tz: "UTC".into() }
}

pub(crate) fn workstation(name: &str) -> Workstation {
    Workstation {
        name: id(name),
        kind: WorkstationKind::Logical,
        path: None,
        state: WorkstationState::Ready,
        lifecycle: Lifecycle::Reusable,
        version: 1,
        branch: None,
        probes: Vec::new(),
        reason: None,
        role: None,
        lane: None,
    }
}

pub(crate) fn spec(title: &str) -> Spec {
    Spec { kind: "feature".into(), ..Spec::titled(title) }
}

/// Adds a task with the next free number.
pub(crate) fn add(tx: &mut dyn Tx, spec: Spec, depends_on: &[&str]) -> Result<Task> {
    let task = apply::allocate(tx, &id("T"))?.unwrap();
    let depends_on: BTreeSet<TaskId> = depends_on.iter().map(|on| id(on)).collect();
    let uid = uuid::Uuid::from_u128(task.number as u128);
    write(
        tx,
        None,
        &task,
        "@ada",
        None,
        Added { uid, spec, depends_on, archived: None, created_at: None, blocked: None },
    )
}

/// A claim's event.
pub(crate) fn claimed(secret: u8) -> Claimed {
    Claimed {
        grant: Grant {
            lease: LeaseId::new([secret; 16]),
            ttl_ms: 60_000,
            tick: now().tick,
            tier: None,
            route: None,
            forced: false,
            assignee: None,
            lane: None,
            base: None,
            constraints: Vec::new(),
        },
        reason: None,
    }
}

/// Writes one event of a task down, as the application does.
pub(crate) fn write(
    tx: &mut dyn Tx,
    before: Option<Task>,
    task: &TaskId,
    actor: &str,
    place: Option<&str>,
    event: impl Into<Event>,
) -> Result<Task> {
    let head = match &before {
        None => Digest::ZERO,
        Some(row) => load::task(tx, &row.id)?.unwrap().head,
    };
    let seq = load::workspace(tx)?.last_seq + 1;
    let (by, place): (Handle, Option<WorkstationName>) = (id(actor), place.map(id));
    let stamped = Stamped::following(before.as_ref(), seq, task.clone(), now().wall, by, place, event.into());
    let after = evolve(before.clone(), &stamped).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let entry = Entry::seal("0190-test", &stamped, head).unwrap();
    let effects = effects(before.as_ref(), &stamped, &after);
    apply::change(tx, &Change { before: before.as_ref(), after: &after, entry: &entry, effects: &effects })?;
    Ok(after)
}
