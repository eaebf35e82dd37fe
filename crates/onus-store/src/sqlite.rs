//! The embedded driver: one file, write-ahead log, every commit synced.

mod integrity;
mod log;
mod migrate;
mod newest;
mod open;
mod queue;

pub use integrity::{Depth, Modes};
pub use newest::Newest;
pub use open::{Options, Stay};

use crate::error::{Result, StoreError};
use crate::port::{Backend, Driver, Ending, Look, Row, Tx, Value};
use crate::sql;
use crate::statement::{Sql, Statement};
use onus_core::hash::Digest;
use onus_core::id::{Seq, WorkspaceId};
use onus_core::time::Now;
use queue::WriterQueue;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, ToSql};
use std::path::{Path, PathBuf};

/// An embedded store holds exactly one workspace.
const ONLY: WorkspaceId = WorkspaceId(1);

/// A store in one SQLite file.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    queue: WriterQueue,
    path: PathBuf,
    clock: fn() -> Now,
    stay: Stay,
    /// The newest entry that this connection has seen in the store or put there: nothing takes it away while it is open.
    seen: Option<Newest>,
}

sql! {
    HASH_AT(seq) = "SELECT hash FROM ledger WHERE workspace = :workspace AND seq = :seq";
}

impl Sqlite {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The newest entry that somebody was told of, where the store does not have it.
    pub fn lost(&mut self) -> Result<Option<Newest>> {
        // Read first: whatever is recorded by then is in every view that begins later.
        let Some(newest) = self.queue.record()? else { return Ok(None) };
        let mut lost = None;
        self.view(&mut |tx| {
            lost = (!is_there(tx, &newest)?).then_some(newest);
            Ok(())
        })?;
        Ok(lost)
    }
}

fn is_there(tx: &mut dyn Tx, newest: &Newest) -> Result<bool> {
    let found = tx.row(&HASH_AT { seq: newest.seq })?;
    Ok(found.map(|mut row| row.digest()).transpose()? == Some(newest.hash))
}

impl Driver for Sqlite {
    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn backend(&mut self) -> Backend<'_> {
        Backend::Sqlite(self)
    }

    fn view(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        let tx = self.connection.unchecked_transaction().map_err(before_commit)?;
        let result = work(&mut SqliteTx::new(&self.connection, self.clock));
        drop(tx);
        result
    }

    fn change(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Ending) -> Result<()> {
        // SQLite's own busy handler polls, and under load it starves some writers for ever: they stand in line here.
        let mut turn = self.queue.wait()?;
        let tx =
            rusqlite::Transaction::new_unchecked(&self.connection, rusqlite::TransactionBehavior::Immediate)
                .map_err(before_commit)?;
        let mut own = SqliteTx::new(&self.connection, self.clock);
        let recorded = turn.record().filter(|recorded| Some(*recorded) != self.seen);
        if let Some(recorded) = recorded
            && !is_there(&mut own, &recorded)?
        {
            own.lost = Some(recorded);
        }
        let ending = work(&mut own);
        // What is lost stays known until somebody says that it is given up.
        let newest = own.newest.filter(|_| own.lost.is_none());
        drop(own);
        match ending {
            Ending::Commit => {
                tx.commit().map_err(during_commit)?;
                if let Some(newest) = newest {
                    turn.keep(&newest);
                    self.seen = Some(newest);
                }
                if self.stay == Stay::OneCall {
                    log::keep_short(&self.connection, &self.path);
                }
            }
            Ending::Rollback | Ending::Failed => drop(tx),
        }
        Ok(())
    }

    /// The system closes the file, quicker than SQLite, which takes its memory apart first. What was committed is on disk,
    /// and the log is left to the next call either way.
    fn leave(self: Box<Self>) {
        std::mem::forget(self);
    }
}

struct SqliteTx<'c> {
    connection: &'c Connection,
    clock: fn() -> Now,
    /// The statements that this transaction has used, by where their texts lie: a batch runs a dozen of them again and
    /// again, and the connection's own cache hashes and copies the text each time.
    statements: Vec<(&'static str, CachedStatement<'c>)>,
    savepoint: Savepoint,
    /// The last entry that this transaction adds; and what it was at the savepoint.
    newest: Option<Newest>,
    newest_before: Option<Newest>,
    /// See [`Tx::lost`].
    lost: Option<Newest>,
}

/// How far a savepoint is set. SQLite copies every page that changes behind one, so it is set when it has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Savepoint {
    None,
    /// Nothing was written since.
    Noted,
    Set,
    /// What was written since is meant to stay.
    GivenUp,
}

impl Tx for SqliteTx<'_> {
    fn workspace(&self) -> WorkspaceId {
        ONLY
    }

    fn now(&mut self) -> Result<Now> {
        Ok((self.clock)())
    }

    fn each(&mut self, statement: &dyn Statement, row: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        let (sql, values) = (statement.sql(), statement.values());
        let named = |error| before_commit(error).in_statement(sql.name);
        let prepared = self.prepared(sql.text).map_err(named)?;
        let columns = prepared.column_count();
        let mut rows = prepared.query(params(sql, &values)).map_err(named)?;
        while let Some(found) = rows.next().map_err(named)? {
            let mut values = Vec::with_capacity(columns);
            for column in 0..columns {
                values.push(owned(found.get_ref(column))?);
            }
            row(Row::new(values))?;
        }
        Ok(())
    }

    fn visit(&mut self, statement: &dyn Statement, look: Look<'_>) -> Result<()> {
        let (sql, values) = (statement.sql(), statement.values());
        let named = |error| before_commit(error).in_statement(sql.name);
        let prepared = self.prepared(sql.text).map_err(named)?;
        let columns = prepared.column_count();
        let mut rows = prepared.query(params(sql, &values)).map_err(named)?;
        while let Some(found) = rows.next().map_err(named)? {
            let mut values = Vec::with_capacity(columns);
            for column in 0..columns {
                values.push(borrowed(found.get_ref(column))?);
            }
            look(&values)?;
        }
        Ok(())
    }

    fn run(&mut self, statement: &dyn Statement) -> Result<u64> {
        let (sql, values) = (statement.sql(), statement.values());
        let named = |error| before_commit(error).in_statement(sql.name);
        if self.savepoint == Savepoint::Noted {
            self.command("SAVEPOINT mark")?;
            self.savepoint = Savepoint::Set;
        }
        let prepared = self.prepared(sql.text).map_err(named)?;
        let touched = prepared.execute(params(sql, &values)).map_err(named)?;
        Ok(touched as u64)
    }

    fn savepoint(&mut self) -> Result<()> {
        self.savepoint = Savepoint::Noted;
        self.newest_before = self.newest;
        Ok(())
    }

    fn announce(&mut self, seq: Seq, hash: &Digest) {
        self.newest = Some(Newest { seq, hash: *hash });
    }

    fn lost(&self) -> Option<Seq> {
        self.lost.map(|lost| lost.seq)
    }

    fn give_up_lost(&mut self) {
        self.lost = None;
    }

    fn decided(&mut self) {
        if self.savepoint == Savepoint::Noted {
            self.savepoint = Savepoint::GivenUp;
        }
    }

    fn release(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.savepoint, Savepoint::None) {
            Savepoint::Set => self.command("RELEASE mark"),
            Savepoint::None | Savepoint::Noted | Savepoint::GivenUp => Ok(()),
        }
    }

    fn rollback_to(&mut self) -> Result<()> {
        self.newest = self.newest_before;
        match std::mem::replace(&mut self.savepoint, Savepoint::None) {
            Savepoint::Set => {
                self.command("ROLLBACK TO mark")?;
                self.command("RELEASE mark")
            }
            Savepoint::GivenUp => Err(StoreError::Guard("what was decided could not be carried out".into())),
            Savepoint::None | Savepoint::Noted => Ok(()),
        }
    }
}

impl<'c> SqliteTx<'c> {
    fn new(connection: &'c Connection, clock: fn() -> Now) -> SqliteTx<'c> {
        SqliteTx {
            connection,
            clock,
            statements: Vec::new(),
            savepoint: Savepoint::None,
            newest: None,
            newest_before: None,
            lost: None,
        }
    }

    fn prepared(&mut self, text: &'static str) -> rusqlite::Result<&mut CachedStatement<'c>> {
        let at = match self.statements.iter().position(|(known, _)| std::ptr::eq(*known, text)) {
            Some(at) => at,
            None => {
                self.statements.push((text, self.connection.prepare_cached(text)?));
                self.statements.len() - 1
            }
        };
        Ok(&mut self.statements[at].1)
    }

    fn command(&mut self, text: &'static str) -> Result<()> {
        self.prepared(text).and_then(|statement| statement.execute([])).map(drop).map_err(before_commit)
    }
}

/// The values of a statement, the workspace before them where it is named.
fn params<'v>(sql: &Sql, values: &'v [Value<'v>]) -> impl rusqlite::Params + 'v {
    const WORKSPACE: &Value<'static> = &Value::Int(ONLY.0);
    rusqlite::params_from_iter(sql.names_workspace.then_some(WORKSPACE).into_iter().chain(values))
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(*n),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn owned(value: rusqlite::Result<ValueRef<'_>>) -> Result<Value<'static>> {
    borrowed(value).map(Value::into_owned)
}

fn borrowed(value: rusqlite::Result<ValueRef<'_>>) -> Result<Value<'_>> {
    match value.map_err(before_commit)? {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(n) => Ok(Value::Int(n)),
        ValueRef::Blob(bytes) => Ok(Value::Blob(bytes.into())),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::Text(text.into())),
            Err(_) => Err(StoreError::Corrupt("a text is not UTF-8".into())),
        },
        ValueRef::Real(_) => Err(StoreError::Corrupt("a fraction where none is written".into())),
    }
}

/// What an error means before the commit began: nothing was written.
fn before_commit(error: rusqlite::Error) -> StoreError {
    let detail = error.to_string();
    let unavailable =
        |hint: &str| StoreError::Unavailable { detail: detail.clone(), hint: Some(hint.to_owned()) };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy("another process is writing".into())
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(detail),
        Some(ErrorCode::DiskFull) => unavailable("the disk is full: free some space and try again"),
        Some(ErrorCode::ReadOnly) => {
            unavailable("the store cannot be written to: check the directory's permissions")
        }
        Some(ErrorCode::CannotOpen) => {
            unavailable("the store cannot be opened: check its path and permissions")
        }
        Some(ErrorCode::PermissionDenied) => unavailable("check the permissions of the store's directory"),
        Some(ErrorCode::SystemIoFailure) => {
            unavailable("the disk reports an error: check it before you go on")
        }
        Some(ErrorCode::ConstraintViolation) => StoreError::Constraint(detail),
        Some(ErrorCode::SchemaChanged) => StoreError::Busy(detail),
        Some(_) => StoreError::unavailable(detail),
        // Not from SQLite itself: a column of another type than the schema's.
        None => StoreError::Corrupt(detail),
    }
}

/// A failed COMMIT tells nothing, unless SQLite could not even begin it.
fn during_commit(error: rusqlite::Error) -> StoreError {
    match before_commit(error) {
        busy @ StoreError::Busy(_) => busy,
        other => StoreError::Unknown(other.to_string()),
    }
}
