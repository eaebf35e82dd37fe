//! The driver of the team: PostgreSQL, several workspaces in one database, several programs at once.
//!
//! A writer first locks the row of its workspace. So the writers of one workspace take turns, as they do on SQLite: the
//! ledger has no gaps, limits that count rows hold, and no statement need lock anything else (ADR 11).

mod address;
mod answer_cache;
mod bound;
mod dependencies;
mod failure;
mod in_flight;
mod inspect;
mod listen;
mod migrate;
mod multi_row;
mod password;
mod pipeline;
mod placeholders;
mod session;
mod tls;
mod value;

pub use address::Address;
pub use inspect::Modes;
pub use listen::{Listener, Wake};
pub use placeholders::postgres_text;

use crate::error::{Result, StoreError};
use crate::port::{Backend, Driver, Ending, Look, Row, Tx, Value};
use crate::sql;
use crate::statement::Statement;
use bound::Bound;
use onus_core::hash::Digest;
use onus_core::id::{Seq, WorkspaceId};
use onus_core::time::{Now, Tick, Timestamp};
use pipeline::Pipeline;

/// Wakes whoever listens; the payload is `workspace:entry`.
pub(crate) const CHANNEL: &str = "onus";

/// How often a connection that was lost before anything was done is made again.
const RECONNECTS: usize = 2;

/// A writer finds its rows by their keys, in the order of their index. The planner must not guess otherwise from what it
/// knows of tables that were empty a moment ago, nor think anew about every batch: it would read all tasks and sort them,
/// because a filter that is not set looks to it as if it left one of them, or read all assignments once and keep them, or
/// have a million tasks read by several processes, which take longer to start than the statement.
pub const WRITER_PLANNER: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; \
    SET max_parallel_workers_per_gather = 0; SET plan_cache_mode = force_generic_plan";

/// Readers keep the planner's freedom.
const READER_PLANNER: &str = "RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_sort; RESET enable_hashjoin; \
    RESET enable_mergejoin; RESET enable_material; RESET max_parallel_workers_per_gather; RESET plan_cache_mode";

/// A plan is made for the rows that are there, and kept. Until the server has looked at a table that grows, nobody tells
/// it that its plans are old.
const FORGET_PLANS: &str = "DISCARD PLANS";

/// A transaction that changed so much has filled its tables. The server would look at them within a minute by itself; until
/// then it would plan for what they were. Whoever may not say so, or would have to wait for it, leaves it to the server.
const FILLED: u32 = 4_096;
const ANALYZE_TABLES: &str = "BEGIN; SET LOCAL lock_timeout = '1s'; ANALYZE task, dependency, assignment, session, note, ledger, request; COMMIT";

/// What is read where there is no workspace of that name: no row has this number.
const NOWHERE: WorkspaceId = WorkspaceId(0);

sql! {
    FIND_WORKSPACE(name) = "SELECT id FROM workspace WHERE name = :name";
    /// Not FOR UPDATE: rows that refer to the workspace may be written meanwhile, by us alone.
    LOCK_WORKSPACE(name) = "SELECT id FROM workspace WHERE name = :name FOR NO KEY UPDATE";
    /// A workspace that is not there yet has no row to lock.
    LOCK_NAME(name) = "SELECT CAST(count(pg_advisory_xact_lock(hashtextextended('onus workspace ' || CAST(:name AS \
        TEXT), 0))) AS BIGINT)";
    NEXT_WORKSPACE = "SELECT nextval('workspace_number')";
    /// Never now(): that is the moment when the transaction began, before it waited for its turn.
    CLOCK = "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)";
    NOTIFY(channel, payload) = "SELECT pg_notify(CAST(:channel AS TEXT), CAST(:payload AS TEXT))";
}

/// A store in a PostgreSQL database. The connection is made again when it is lost between two transactions.
#[derive(Debug)]
pub struct Postgres {
    address: Address,
    pipeline: Option<Pipeline>,
    /// How often a lost connection was made again.
    reconnects: u64,
    /// The workspace's number, once it was found: it keeps it as long as it lives.
    workspace: Option<WorkspaceId>,
}

impl Postgres {
    /// Opens a store that exists; migrates it when it is older than this program.
    pub fn open(address: &Address) -> Result<Postgres> {
        let mut pipeline = session::open(address)?;
        match migrate::version(&mut pipeline)? {
            Some(version) if version == migrate::LATEST => {}
            Some(version) if version > migrate::LATEST => return Err(migrate::newer(version)),
            Some(_) => migrate::run(&mut pipeline, address)?,
            None => {
                return Err(StoreError::Missing(format!(
                    "there is no store in the database {}",
                    address.database()
                )));
            }
        }
        Ok(Postgres { address: address.clone(), pipeline: Some(pipeline), reconnects: 0, workspace: None })
    }

    /// Opens the store, making its tables when they are not there. Harmless when done twice or at once.
    pub fn create(address: &Address) -> Result<Postgres> {
        let mut pipeline = session::open(address)?;
        migrate::run(&mut pipeline, address)?;
        Ok(Postgres { address: address.clone(), pipeline: Some(pipeline), reconnects: 0, workspace: None })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Begins a transaction. A connection that was lost while nothing was under way is made again.
    fn begin(&mut self, begin: fn(&mut Pipeline, &str) -> Result<Begun>) -> Result<(Pipeline, Begun)> {
        let mut reconnects = 0;
        loop {
            let mut pipeline = self.take_pipeline()?;
            match begin(&mut pipeline, &self.address.workspace) {
                Ok(begun) => {
                    self.workspace = Some(begun.workspace).filter(|found| *found != NOWHERE);
                    return Ok((pipeline, begun));
                }
                Err(_) if pipeline.is_lost() && reconnects < RECONNECTS => reconnects += 1,
                Err(error) => {
                    self.end(pipeline);
                    return Err(error);
                }
            }
        }
    }

    /// Taken, not lent: a transaction that ends in a panic must not leave its connection to the next.
    fn take_pipeline(&mut self) -> Result<Pipeline> {
        match self.pipeline.take().filter(|pipeline| !pipeline.is_lost()) {
            Some(pipeline) => Ok(pipeline),
            None => {
                let pipeline = session::open(&self.address)?;
                self.reconnects += 1;
                Ok(pipeline)
            }
        }
    }

    /// Takes a transaction back. Where even that fails, the server does it when the connection ends.
    fn end(&mut self, mut pipeline: Pipeline) {
        if pipeline.roll_back("ROLLBACK").is_ok() {
            self.pipeline = Some(pipeline);
        }
    }
}

/// Where a transaction is, and when it began.
struct Begun {
    workspace: WorkspaceId,
    now: Option<Now>,
}

fn begin_read(pipeline: &mut Pipeline, name: &str) -> Result<Begun> {
    pipeline.set_planner(READER_PLANNER);
    pipeline.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    let workspace = number(pipeline, &FIND_WORKSPACE { name })?.map_or(NOWHERE, WorkspaceId);
    Ok(Begun { workspace, now: None })
}

fn begin_write(pipeline: &mut Pipeline, name: &str) -> Result<Begun> {
    if pipeline.is_due_for_plans() {
        pipeline.command(FORGET_PLANS);
    }
    pipeline.set_planner(WRITER_PLANNER);
    pipeline.command("BEGIN");
    let lock = LOCK_WORKSPACE { name };
    // Answered in this order: the clock is read when the lock is ours.
    pipeline.prefetch(vec![Bound::new(&lock, NOWHERE), Bound::new(&CLOCK {}, NOWHERE)])?;
    let found = match number(pipeline, &lock)? {
        Some(id) => id,
        None => {
            number(pipeline, &LOCK_NAME { name })?;
            pipeline.clear_cache();
            match number(pipeline, &lock)? {
                Some(id) => id,
                None => number(pipeline, &NEXT_WORKSPACE {})?.unwrap_or(NOWHERE.0),
            }
        }
    };
    Ok(Begun { workspace: WorkspaceId(found), now: Some(clock(pipeline)?) })
}

/// The answer to a question about no workspace: one number.
fn number(pipeline: &mut Pipeline, question: &dyn Statement) -> Result<Option<i64>> {
    let mut found = None;
    pipeline.query(Bound::new(question, NOWHERE), &mut |row| {
        found = Row::new(row.into_iter().map(Value::into_owned).collect()).opt_int()?;
        Ok(())
    })?;
    Ok(found)
}

/// The server's word for the present moment. It is wall time: leases of two databases, or of one that failed over,
/// compare as those of two hosts do.
fn clock(pipeline: &mut Pipeline) -> Result<Now> {
    let millis = number(pipeline, &CLOCK {})?;
    let millis = millis.ok_or_else(|| StoreError::unavailable("the database has no clock"))?;
    let tick = Tick { host: "postgres".into(), boot: "0".into(), millis };
    Ok(Now { wall: Timestamp(millis), tick })
}

impl Driver for Postgres {
    fn shown(&self) -> String {
        self.address.to_string()
    }

    fn backend(&mut self) -> Backend<'_> {
        Backend::Postgres(self)
    }

    fn view(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        let (mut pipeline, begun) = self.begin(begin_read)?;
        let result = work(&mut PostgresTx::new(&mut pipeline, begun, self.reconnects));
        self.end(pipeline);
        result
    }

    /// Each statement is a transaction of its own: nothing need be begun and ended.
    fn view_latest(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        let Some(workspace) = self.workspace else {
            return self.view(work);
        };
        let mut reconnects = 0;
        loop {
            let mut pipeline = self.take_pipeline()?;
            let result =
                work(&mut PostgresTx::new(&mut pipeline, Begun { workspace, now: None }, self.reconnects));
            // Whatever was made of the error: whoever asks again is answered.
            if pipeline.is_lost() && reconnects < RECONNECTS {
                reconnects += 1;
                continue;
            }
            match pipeline.settle() {
                Ok(()) => {
                    pipeline.clear_cache();
                    self.pipeline = Some(pipeline);
                }
                Err(_) => self.end(pipeline),
            }
            return result;
        }
    }

    fn change(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Ending) -> Result<()> {
        let (mut pipeline, begun) = self.begin(begin_write)?;
        let mut tx = PostgresTx::new(&mut pipeline, begun, self.reconnects);
        match work(&mut tx) {
            Ending::Commit => {
                let changes = tx.changes;
                let committed = tx.notify().and_then(|()| pipeline.commit());
                let is_analyzed =
                    committed.is_err() || changes < FILLED || pipeline.script(ANALYZE_TABLES).is_ok();
                match &committed {
                    Ok(()) if is_analyzed => self.pipeline = Some(pipeline),
                    _ => self.end(pipeline),
                }
                committed
            }
            Ending::Rollback => {
                let settled = pipeline.settle();
                self.end(pipeline);
                settled
            }
            Ending::Failed => {
                self.end(pipeline);
                Ok(())
            }
        }
    }
}

struct PostgresTx<'w> {
    pipeline: &'w mut Pipeline,
    workspace: WorkspaceId,
    now: Option<Now>,
    connection: u64,
    changes: u32,
    /// The last entry that the ledger got, and what that was at the savepoint.
    last_entry: Option<Seq>,
    entry_before: Option<Seq>,
}

impl PostgresTx<'_> {
    fn new(pipeline: &mut Pipeline, begun: Begun, connection: u64) -> PostgresTx<'_> {
        let Begun { workspace, now } = begun;
        PostgresTx { pipeline, workspace, now, connection, changes: 0, last_entry: None, entry_before: None }
    }

    fn notify(&mut self) -> Result<()> {
        match self.last_entry {
            None => Ok(()),
            Some(seq) => {
                let payload = format!("{}:{seq}", self.workspace.0);
                let notify = self.bound(&NOTIFY { channel: CHANNEL, payload });
                self.pipeline.change(notify, None)
            }
        }
    }

    fn bound(&self, statement: &dyn Statement) -> Bound {
        Bound::new(statement, self.workspace)
    }

    fn change(&mut self, statement: &dyn Statement, wanted: Option<u64>) -> Result<()> {
        self.changes += 1;
        let change = self.bound(statement);
        self.pipeline.change(change, wanted)
    }
}

impl Tx for PostgresTx<'_> {
    fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    fn connection(&self) -> u64 {
        self.connection
    }

    fn now(&mut self) -> Result<Now> {
        match &self.now {
            Some(now) => Ok(now.clone()),
            None => Ok(self.now.insert(clock(self.pipeline)?).clone()),
        }
    }

    fn each(&mut self, statement: &dyn Statement, row: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        let question = self.bound(statement);
        let mut owned =
            |found: Vec<Value<'_>>| row(Row::new(found.into_iter().map(Value::into_owned).collect()));
        self.pipeline.query(question, &mut owned)
    }

    fn visit(&mut self, statement: &dyn Statement, look: Look<'_>) -> Result<()> {
        let question = self.bound(statement);
        self.pipeline.query(question, &mut |found| look(&found))
    }

    fn run(&mut self, statement: &dyn Statement) -> Result<u64> {
        self.changes += 1;
        let change = self.bound(statement);
        self.pipeline.run(change)
    }

    fn run_one(&mut self, statement: &dyn Statement) -> Result<()> {
        self.change(statement, Some(1))
    }

    fn run_any(&mut self, statement: &dyn Statement) -> Result<()> {
        self.change(statement, None)
    }

    fn savepoint(&mut self) -> Result<()> {
        self.entry_before = self.last_entry;
        self.pipeline.savepoint();
        Ok(())
    }

    fn release(&mut self) -> Result<()> {
        self.pipeline.release()
    }

    fn rollback_to(&mut self) -> Result<()> {
        self.last_entry = self.entry_before;
        self.pipeline.rollback_to()
    }

    fn prefetches(&self) -> bool {
        true
    }

    fn prefetch(&mut self, questions: &[Box<dyn Statement + '_>]) -> Result<()> {
        let questions = questions.iter().map(|question| self.bound(&**question)).collect();
        self.pipeline.prefetch(questions)
    }

    fn announce(&mut self, seq: Seq, _hash: &Digest) {
        self.last_entry = Some(seq);
    }
}
