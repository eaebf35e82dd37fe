//! The port between the shared SQL text and a database: a handful of methods that each driver implements.

use crate::error::{Result, StoreError};
use crate::statement::Statement;
use onus_core::hash::Digest;
use onus_core::id::{RequestId, Seq, WorkspaceId};
use onus_core::refusal::Refusal;
use onus_core::time::Now;
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
}

impl Value<'_> {
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Int(n) => Value::Int(n),
            Value::Text(text) => Value::Text(text.into_owned().into()),
            Value::Blob(bytes) => Value::Blob(bytes.into_owned().into()),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(n: i64) -> Self {
        Value::Int(n)
    }
}

impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Value::Int(i64::from(b))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Value::Blob(Cow::Owned(bytes))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Blob(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a Digest> for Value<'a> {
    fn from(digest: &'a Digest) -> Self {
        Value::Blob(Cow::Borrowed(&digest.0))
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// A list of values.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { [$($crate::port::Value::from($value)),*] };
}

/// One row, read column by column in the statement's order.
#[derive(Debug, Clone)]
pub struct Row {
    values: Vec<Value<'static>>,
    next: usize,
}

impl Row {
    pub fn new(values: Vec<Value<'static>>) -> Row {
        Row { values, next: 0 }
    }

    /// All values, for whoever copies rows without reading them.
    pub(crate) fn into_values(self) -> Vec<Value<'static>> {
        self.values
    }

    /// The next value, for whoever gives it a name.
    pub(crate) fn cell(&mut self) -> Result<Cell> {
        let value = self.values.get_mut(self.next).map(|value| std::mem::replace(value, Value::Null));
        self.next += 1;
        match value {
            Some(value) => Ok(Cell { value, number: self.next }),
            None => Err(StoreError::Corrupt(format!("a row has no column {}", self.next))),
        }
    }

    pub fn opt_int(&mut self) -> Result<Option<i64>> {
        self.cell()?.opt_int()
    }

    pub fn int(&mut self) -> Result<i64> {
        self.cell()?.int()
    }

    pub fn flag(&mut self) -> Result<bool> {
        self.cell()?.flag()
    }

    pub fn opt_text(&mut self) -> Result<Option<String>> {
        self.cell()?.opt_text()
    }

    pub fn text(&mut self) -> Result<String> {
        self.cell()?.text()
    }

    pub fn opt_blob(&mut self) -> Result<Option<Vec<u8>>> {
        self.cell()?.opt_blob()
    }

    pub fn digest(&mut self) -> Result<Digest> {
        self.cell()?.digest()
    }

    pub fn parsed<T: std::str::FromStr<Err = String>>(&mut self) -> Result<T> {
        self.cell()?.parsed()
    }

    pub fn opt_parsed<T: std::str::FromStr<Err = String>>(&mut self) -> Result<Option<T>> {
        self.cell()?.opt_parsed()
    }
}

/// One value of a row, and the number of its column. Read as what it must be; anything else is corruption, not a default.
#[derive(Debug, Clone)]
pub struct Cell {
    value: Value<'static>,
    number: usize,
}

impl Cell {
    fn wrong(number: usize, wanted: &str) -> StoreError {
        StoreError::Corrupt(format!("column {number} of a row is not {wanted}"))
    }

    pub(crate) fn opt_int(self) -> Result<Option<i64>> {
        match self.value {
            Value::Int(n) => Ok(Some(n)),
            Value::Null => Ok(None),
            _ => Err(Cell::wrong(self.number, "a number")),
        }
    }

    pub(crate) fn int(self) -> Result<i64> {
        let number = self.number;
        self.opt_int()?.ok_or_else(|| Cell::wrong(number, "a number"))
    }

    pub(crate) fn flag(self) -> Result<bool> {
        let number = self.number;
        match self.int()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Cell::wrong(number, "yes or no")),
        }
    }

    pub(crate) fn opt_text(self) -> Result<Option<String>> {
        match self.value {
            Value::Text(text) => Ok(Some(text.into_owned())),
            Value::Null => Ok(None),
            _ => Err(Cell::wrong(self.number, "text")),
        }
    }

    pub(crate) fn text(self) -> Result<String> {
        let number = self.number;
        self.opt_text()?.ok_or_else(|| Cell::wrong(number, "text"))
    }

    pub(crate) fn opt_blob(self) -> Result<Option<Vec<u8>>> {
        match self.value {
            Value::Blob(bytes) => Ok(Some(bytes.into_owned())),
            Value::Null => Ok(None),
            _ => Err(Cell::wrong(self.number, "binary")),
        }
    }

    pub(crate) fn digest(self) -> Result<Digest> {
        let number = self.number;
        let bytes = self.opt_blob()?.unwrap_or_default();
        Digest::from_slice(&bytes).ok_or_else(|| Cell::wrong(number, "a digest"))
    }

    /// A text read as a checked value.
    pub(crate) fn parsed<T: std::str::FromStr<Err = String>>(self) -> Result<T> {
        self.text()?.parse().map_err(StoreError::Corrupt)
    }

    pub(crate) fn opt_parsed<T: std::str::FromStr<Err = String>>(self) -> Result<Option<T>> {
        self.opt_text()?.map(|text| text.parse()).transpose().map_err(StoreError::Corrupt)
    }
}

/// Told of one row's values, in the statement's order.
pub type Look<'a> = &'a mut dyn FnMut(&[Value<'_>]) -> Result<()>;

/// An open transaction, in one workspace: no call can name another.
pub trait Tx {
    fn workspace(&self) -> WorkspaceId;

    /// The database's word for the present moment, read after the transaction has its locks.
    fn now(&mut self) -> Result<Now>;

    fn rows(&mut self, statement: &dyn Statement) -> Result<Vec<Row>> {
        let mut found = Vec::new();
        self.each(statement, &mut |row| {
            found.push(row);
            Ok(())
        })?;
        Ok(found)
    }

    /// Streams a result that may not fit into memory.
    fn each(&mut self, statement: &dyn Statement, row: &mut dyn FnMut(Row) -> Result<()>) -> Result<()>;

    /// Streams rows that are only looked at: nothing of them is copied.
    fn visit(&mut self, statement: &dyn Statement, look: Look<'_>) -> Result<()>;

    /// Runs a change and says how many rows it touched.
    fn run(&mut self, statement: &dyn Statement) -> Result<u64>;

    /// What follows can be undone without what came before. Savepoints do not nest.
    fn savepoint(&mut self) -> Result<()>;

    /// Forgets the savepoint; what was done since stays, if the transaction does.
    fn release(&mut self) -> Result<()>;

    /// Goes back to the savepoint and forgets it. Where that cannot be done any more, the whole transaction has failed.
    fn rollback_to(&mut self) -> Result<()>;

    /// Told that what follows was decided, and is meant to stay: a database that pays for a savepoint need not set it. Where
    /// it has to be undone all the same, the whole transaction has failed.
    fn decided(&mut self) {}

    /// Whether questions are worth announcing.
    fn prefetches(&self) -> bool {
        false
    }

    /// Told of questions that will be asked next: a database on another machine answers them all at once.
    fn prefetch(&mut self, _questions: &[Box<dyn Statement + '_>]) -> Result<()> {
        Ok(())
    }

    /// Which of the connections this is that the store has had: behind another one may be another database.
    fn connection(&self) -> u64 {
        0
    }

    /// Told of every entry that the ledger gets: a database that wakes listeners does so at the commit, and one in a file
    /// keeps beside it which was the last.
    fn announce(&mut self, _seq: Seq, _hash: &Digest) {}

    /// The newest entry that somebody was told of, where the database does not have it any more.
    fn lost(&self) -> Option<Seq> {
        None
    }

    /// A person has accepted the loss.
    fn give_up_lost(&mut self) {}

    fn row(&mut self, statement: &dyn Statement) -> Result<Option<Row>> {
        Ok(self.rows(statement)?.into_iter().next())
    }

    /// Runs a change that must touch exactly one row: anything else means that the guard did not hold. A database on
    /// another machine may say so later, at the latest instead of the commit.
    fn run_one(&mut self, statement: &dyn Statement) -> Result<()> {
        match self.run(statement)? {
            1 => Ok(()),
            n => Err(StoreError::Guard(format!("{} touched {n} rows", statement.sql().name))),
        }
    }

    /// Runs a change that may touch any number of rows, which nobody wants to know.
    fn run_any(&mut self, statement: &dyn Statement) -> Result<()> {
        self.run(statement).map(drop)
    }
}

/// What a driver does: transactions around work whose result it does not know. A boxed one is any store at all, so that
/// the application is compiled once for all of them.
pub trait Driver: std::fmt::Debug + Send {
    /// Where it is, in words that people may see.
    fn shown(&self) -> String;

    /// Which database it is, for whoever looks after that one.
    fn backend(&mut self) -> Backend<'_>;

    /// Runs `work` on one consistent view; nothing is written.
    fn view(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()>;

    /// Runs `work`, which asks about one thing as it is now: no view need stand still for it. Where the connection was
    /// lost it is asked again.
    fn view_latest(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        self.view(work)
    }

    /// Runs `work` alone among writers and ends the transaction as it says.
    fn change(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Ending) -> Result<()>;

    /// For a call that is over with its process: whatever can be left to the system is not taken apart first.
    fn leave(self: Box<Self>) {}
}

/// A driver, as the kind of database that it is.
#[derive(Debug)]
pub enum Backend<'s> {
    Sqlite(&'s mut crate::sqlite::Sqlite),
    Postgres(&'s mut crate::postgres::Postgres),
    /// Only a server reaches it.
    Remote(&'s mut dyn RemoteStore),
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Commit,
    /// Nothing of it stays, but everything that was tried must have worked.
    Rollback,
    /// The work failed: nothing of it stays, and nobody asks what became of its statements.
    Failed,
}

/// A store, for whoever uses one: work with a result of its own.
pub trait Store: Driver {
    /// Where the store itself cannot be reached, whoever can be asked instead.
    fn remote(&mut self) -> Option<&mut dyn RemoteStore> {
        match self.backend() {
            Backend::Remote(remote) => Some(remote),
            Backend::Sqlite(_) | Backend::Postgres(_) => None,
        }
    }

    /// Runs `work` on one consistent view; nothing is written.
    fn read<T>(&mut self, work: impl FnOnce(&mut dyn Tx) -> Result<T>) -> Result<T> {
        let (mut work, mut result) = (Some(work), None);
        self.view(&mut |tx| {
            result = work.take().map(|work| work(tx));
            Ok(())
        })?;
        result.unwrap_or_else(|| Err(StoreError::unavailable("the question was not asked")))
    }

    /// Asks about one thing as it is now; asked again where the connection was lost.
    fn read_latest<T>(&mut self, work: impl Fn(&mut dyn Tx) -> Result<T>) -> Result<T> {
        let mut result = None;
        self.view_latest(&mut |tx| {
            result = Some(work(tx));
            Ok(())
        })?;
        result.unwrap_or_else(|| Err(StoreError::unavailable("the question was not asked")))
    }

    /// Runs `work` alone among writers and commits what it did, or nothing.
    fn write<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut dyn Tx) -> std::result::Result<Outcome<T>, E>,
    ) -> std::result::Result<T, E> {
        let (mut work, mut result) = (Some(work), None);
        self.change(&mut |tx| {
            let Some(work) = work.take() else { return Ending::Failed };
            let (ending, worked) = match work(tx) {
                Ok(Outcome::Commit(value)) => (Ending::Commit, Ok(value)),
                Ok(Outcome::Rollback(value)) => (Ending::Rollback, Ok(value)),
                Err(error) => (Ending::Failed, Err(error)),
            };
            result = Some(worked);
            ending
        })?;
        result.unwrap_or_else(|| Err(StoreError::unavailable("the work was not begun").into()))
    }
}

impl<D: Driver + ?Sized> Store for D {}

/// A store that is elsewhere, behind a server that keeps the rules: it is asked whole questions, never statements.
pub trait RemoteStore: std::fmt::Debug + Send {
    /// Asks one question; question and answer are JSON. Under a request id it may be asked again: it has one effect.
    fn call(&mut self, call: RemoteCall<'_>) -> std::result::Result<String, Refusal>;
}

/// A call on its way to whoever has the store.
#[derive(Debug)]
pub struct RemoteCall<'a> {
    pub name: &'static str,
    pub effect: CallEffect,
    pub arguments: String,
    pub request: Option<&'a RequestId>,
}

/// Whether a call could have changed something when nobody knows whether it was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEffect {
    Reads,
    Changes,
}

/// Whether the transaction's changes stay.
#[derive(Debug)]
pub enum Outcome<T> {
    Commit(T),
    Rollback(T),
}
