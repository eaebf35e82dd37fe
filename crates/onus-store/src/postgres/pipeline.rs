//! One connection. Statements go out without waiting for each other; answers are read in their order.
//!
//! Changes are not sent until something depends on them, so that those of many commands go out together
//! ([`dependencies`](super::dependencies), [`multi_row`]). The port is synchronous: a runtime of one thread, this
//! connection's own, moves only while somebody waits here.

use super::answer_cache::AnswerCache;
use super::bound::Bound;
use super::dependencies::{PendingChange, groups};
use super::in_flight::{Failure, InFlight, Request, Sent, settle};
use super::placeholders::postgres_text;
use super::session::DatabaseLine;
use super::value::{self, type_of};
use super::{failure, multi_row};
use crate::error::{Result, StoreError};
use crate::port::Value;
use crate::statement::Sql;
use futures_util::StreamExt as _;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, RowStream, SimpleQueryMessage, Statement};

/// How many changes may wait to be sent.
const MOST_UNSENT: usize = 512;

/// A statement that is used this often is worth preparing: before, the preparation costs more than it saves.
const WORTH_PREPARING: u32 = 3;

/// Told of one row's values.
type Each<'a> = &'a mut dyn FnMut(Vec<Value<'_>>) -> Result<()>;

/// A statement as this connection knows it.
struct KnownStatement {
    text: Arc<str>,
    uses: u32,
    prepared: Option<Statement>,
    multi_row: MultiRow,
}

/// The same statement for several lists of values.
#[derive(Clone)]
enum MultiRow {
    Untried,
    Impossible,
    Prepared(Statement),
}

/// How a text for one list of values is made one for several.
type Multiply = fn(&str, &[Type]) -> Option<String>;

/// Whether the transaction is of any use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    /// A statement failed: the server refuses everything up to the next rollback.
    Failed,
    Lost,
}

/// A place in the transaction to which one can go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Savepoint {
    None,
    /// Before the change with this number of those that are not sent yet.
    Unsent(usize),
    /// The server has seen changes that came after it.
    Sent,
}

pub(super) struct Pipeline {
    runtime: Runtime,
    client: Arc<Client>,
    line: DatabaseLine,
    known: HashMap<&'static str, KnownStatement>,
    unsent: Vec<PendingChange>,
    savepoint: Savepoint,
    in_flight: VecDeque<InFlight>,
    cache: AnswerCache,
    health: Health,
    /// How many transactions have changed something.
    writes: u32,
    /// What the planner was told last.
    planner: &'static str,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("health", &self.health).finish_non_exhaustive()
    }
}

impl Pipeline {
    pub(super) fn new(runtime: Runtime, client: Client, line: DatabaseLine) -> Pipeline {
        Pipeline {
            runtime,
            client: Arc::new(client),
            line,
            known: HashMap::new(),
            unsent: Vec::new(),
            savepoint: Savepoint::None,
            in_flight: VecDeque::new(),
            cache: AnswerCache::default(),
            health: Health::Sound,
            writes: 0,
            planner: super::READER_PLANNER,
        }
    }

    /// Sets the planner for what follows, unless it is set.
    pub(super) fn set_planner(&mut self, planner: &'static str) {
        if self.planner != planner {
            self.command(planner);
            self.planner = planner;
        }
    }

    /// Counts one more transaction. Plans are due at the 8th, the 64th, the 512th, …: tables may have grown that much.
    pub(super) fn is_due_for_plans(&mut self) -> bool {
        self.writes = self.writes.wrapping_add(1);
        self.writes > 1 && self.writes.is_power_of_two() && self.writes.trailing_zeros().is_multiple_of(3)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.health == Health::Lost || self.client.is_closed()
    }

    /// Runs a query and hands each row on.
    pub(super) fn query(&mut self, question: Bound, each: Each<'_>) -> Result<()> {
        if self.in_flight.iter().any(|one| one.asks(&question)) {
            self.settle_sent()?;
        }
        if let Some(rows) = self.cache.get(&question) {
            return rows.iter().try_for_each(|row| each(row.clone()));
        }
        self.flush()?;
        self.answered(question, each).map(drop)
    }

    /// Runs a change and waits: says how many rows it touched.
    pub(super) fn run(&mut self, change: Bound) -> Result<u64> {
        self.flush()?;
        self.settle_questions()?;
        self.cache.invalidate(&change);
        self.send_savepoint()?;
        self.answered(change, &mut |_| Ok(()))
    }

    /// Sends a statement, after everything that is in flight, and waits for its answer.
    fn answered(&mut self, statement: Bound, each: Each<'_>) -> Result<u64> {
        let name = statement.sql.name;
        let sent = self.send(statement)?;
        let (runtime, in_flight, cache) = (&self.runtime, &mut self.in_flight, &mut self.cache);
        let done = runtime.block_on(self.line.wait(async {
            settle(in_flight, cache).await?;
            let named = |error: Error| Failure::Server(name, error);
            let mut stream = pin!(sent.answer().await.map_err(named)?);
            while let Some(row) = stream.next().await {
                let row = row.map_err(named)?;
                value::borrowed(&row).and_then(&mut *each).map_err(Failure::Caller)?;
            }
            Ok(stream.rows_affected().unwrap_or(0))
        }));
        done.map_err(|failure| self.failed(failure))
    }

    /// Sends questions without waiting: [`Pipeline::query`] will find their answers, unless something is changed before.
    pub(super) fn prefetch(&mut self, questions: Vec<Bound>) -> Result<()> {
        let mut groups: Vec<Vec<Bound>> = Vec::new();
        for question in questions {
            if self.cache.get(&question).is_some() || self.in_flight.iter().any(|one| one.asks(&question)) {
                continue;
            }
            match groups.iter_mut().find(|group| std::ptr::eq(group[0].sql, question.sql)) {
                Some(group) if group.contains(&question) => {}
                Some(group) => group.push(question),
                None => groups.push(vec![question]),
            }
        }
        if groups.is_empty() {
            return Ok(());
        }
        self.flush()?;
        groups.into_iter().try_for_each(|group| self.send_questions(group))
    }

    /// Sends one question with each of several lists of values.
    fn send_questions(&mut self, questions: Vec<Bound>) -> Result<()> {
        if let [first, _, ..] = questions.as_slice() {
            let lists: Vec<&[Value<'static>]> =
                questions.iter().map(|question| question.values.as_slice()).collect();
            if let Some(sent) = self.send_multi_row(first.sql, &lists, multi_row::question)? {
                self.in_flight.push_back(InFlight::Questions { questions, sent });
                return Ok(());
            }
        }
        for question in questions {
            let sent = self.send(question.clone())?;
            self.in_flight.push_back(InFlight::Questions { questions: vec![question], sent });
        }
        Ok(())
    }

    /// Forgets all answers.
    pub(super) fn clear_cache(&mut self) {
        self.cache.clear();
    }

    /// Makes a change without waiting; that it touches another number of rows than `wanted` is told by a later call.
    pub(super) fn change(&mut self, change: Bound, wanted: Option<u64>) -> Result<()> {
        refuse_nul(&change.values)?;
        if self.unsent.len() >= MOST_UNSENT {
            self.settle()?;
        }
        self.settle_questions()?;
        self.cache.invalidate(&change);
        self.unsent.push(PendingChange { bound: change, wanted });
        Ok(())
    }

    /// Sends the changes that wait, in two parts where a savepoint lies between them.
    fn flush(&mut self) -> Result<()> {
        let mut changes = std::mem::take(&mut self.unsent);
        if let Savepoint::Unsent(place) = self.savepoint {
            let since = changes.split_off(place);
            self.savepoint = Savepoint::Unsent(0);
            self.send_changes(changes)?;
            if since.is_empty() {
                return Ok(());
            }
            self.send_savepoint()?;
            changes = since;
        }
        self.send_changes(changes)
    }

    /// The server learns of a savepoint when it first sees a change that came after it. What came before it must have
    /// worked: going back to the savepoint does not make that good.
    fn send_savepoint(&mut self) -> Result<()> {
        if matches!(self.savepoint, Savepoint::Unsent(_)) {
            self.settle_sent()?;
            self.command("SAVEPOINT mark");
            self.savepoint = Savepoint::Sent;
        }
        Ok(())
    }

    fn send_changes(&mut self, changes: Vec<PendingChange>) -> Result<()> {
        groups(changes).into_iter().try_for_each(|group| self.send_group(group))
    }

    /// Sends changes of one text.
    fn send_group(&mut self, group: Vec<PendingChange>) -> Result<()> {
        if let [first, _, ..] = group.as_slice() {
            let (sql, wanted) = (first.bound.sql, group.iter().map(|change| change.wanted).sum());
            let lists: Vec<&[Value<'static>]> =
                group.iter().map(|change| change.bound.values.as_slice()).collect();
            if let Some(sent) = self.send_multi_row(sql, &lists, multi_row::change)? {
                self.await_count(sql.name, wanted, sent);
                return Ok(());
            }
        }
        for PendingChange { bound, wanted } in group {
            let name = bound.sql.name;
            let sent = self.send(bound)?;
            self.await_count(name, wanted, sent);
        }
        Ok(())
    }

    /// The answer to a change is how many rows it touched.
    fn await_count(&mut self, name: &'static str, wanted: Option<u64>, sent: Sent<RowStream>) {
        let counted = async move {
            let mut stream = pin!(sent.answer().await?);
            while let Some(row) = stream.next().await {
                row?;
            }
            Ok(stream.rows_affected().unwrap_or(0))
        };
        let sent = Sent::new(Box::pin(counted) as Request<u64>);
        self.in_flight.push_back(InFlight::Change { name, wanted, sent });
    }

    /// Sends a command without values, without waiting.
    pub(super) fn command(&mut self, text: &'static str) {
        let client = Arc::clone(&self.client);
        let done = async move { client.batch_execute(text).await.map(|()| 0_u64) };
        let sent = Sent::new(Box::pin(done) as Request<u64>);
        self.in_flight.push_back(InFlight::Change { name: text, wanted: None, sent });
    }

    /// Waits until everything is done.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.flush()?;
        self.settle_sent()
    }

    fn settle_sent(&mut self) -> Result<()> {
        if !self.in_flight.is_empty() {
            let (runtime, in_flight, cache) = (&self.runtime, &mut self.in_flight, &mut self.cache);
            let done = runtime.block_on(self.line.wait(settle(in_flight, cache)));
            done.map_err(|failure| self.failed(failure))?;
        }
        match self.health {
            Health::Sound => Ok(()),
            Health::Failed => Err(StoreError::Guard("a statement of the transaction failed".into())),
            Health::Lost => Err(StoreError::Busy("the connection to the database was lost".into())),
        }
    }

    /// What was asked before a change is answered as of before it: it must be in the cache to be dropped from it.
    fn settle_questions(&mut self) -> Result<()> {
        match self.in_flight.iter().any(InFlight::is_question) {
            true => self.settle_sent(),
            false => Ok(()),
        }
    }

    /// Savepoints do not nest.
    pub(super) fn savepoint(&mut self) {
        self.savepoint = Savepoint::Unsent(self.unsent.len());
    }

    pub(super) fn release(&mut self) -> Result<()> {
        if self.savepoint == Savepoint::Sent {
            // In this order: what failed since the savepoint can still be undone.
            self.settle()?;
            self.command("RELEASE mark");
        }
        self.savepoint = Savepoint::None;
        Ok(())
    }

    /// Goes back to the savepoint. Where the server has not seen it, it must not have failed either.
    pub(super) fn rollback_to(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.savepoint, Savepoint::None) {
            Savepoint::Sent => self.roll_back("ROLLBACK TO mark; RELEASE mark"),
            Savepoint::Unsent(place) => {
                self.unsent.truncate(place);
                self.settle_sent()
            }
            Savepoint::None => Ok(()),
        }
    }

    /// Ends what was begun since the savepoint or the beginning, whatever came of it.
    pub(super) fn roll_back(&mut self, statement: &'static str) -> Result<()> {
        self.clear_cache();
        self.unsent.clear();
        self.savepoint = Savepoint::None;
        self.in_flight.clear();
        self.script(statement)?;
        self.health = Health::Sound;
        Ok(())
    }

    /// The point of no return: from here on only an answer tells what happened.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.settle()?;
        self.clear_cache();
        match self.runtime.block_on(self.line.wait(self.client.batch_execute("COMMIT"))) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.note(&error);
                Err(failure::during_commit(&error))
            }
        }
    }

    /// Runs statements without values, several at once, and gives the first column of each row as text.
    pub(super) fn script(&mut self, text: &str) -> Result<Vec<String>> {
        match self.runtime.block_on(self.line.wait(self.client.simple_query(text))) {
            Ok(messages) => Ok(messages.iter().filter_map(first_column).collect()),
            Err(error) => {
                self.note(&error);
                Err(failure::before_commit(&error))
            }
        }
    }

    fn send(&mut self, Bound { sql, values }: Bound) -> Result<Sent<RowStream>> {
        refuse_nul(&values)?;
        let known = self.known(sql);
        known.uses += 1;
        let prepared = match known.prepared.clone() {
            None if known.uses >= WORTH_PREPARING => Some(self.prepare(sql, &values)?),
            prepared => prepared,
        };
        let client = Arc::clone(&self.client);
        Ok(Sent::new(match prepared {
            Some(statement) => Box::pin(async move { client.query_raw(&statement, values).await }),
            None => {
                let text = Arc::clone(&self.known(sql).text);
                let types: Vec<_> = values.iter().map(type_of).collect();
                Box::pin(async move { client.query_typed_raw(&text, values.into_iter().zip(types)).await })
            }
        }))
    }

    /// Sends one statement for several lists of values, where that can be done.
    fn send_multi_row(
        &mut self,
        sql: &'static Sql,
        lists: &[&[Value<'static>]],
        multiply: Multiply,
    ) -> Result<Option<Sent<RowStream>>> {
        let one = match (self.known(sql).prepared.clone(), lists.first()) {
            (Some(one), _) => one,
            (None, Some(first)) => self.prepare(sql, first)?,
            (None, None) => return Ok(None),
        };
        let types = one.params();
        let statement = match self.known(sql).multi_row.clone() {
            MultiRow::Prepared(statement) => statement,
            MultiRow::Impossible => return Ok(None),
            MultiRow::Untried => {
                let Some(text) = multiply(&self.known(sql).text, types) else {
                    self.known(sql).multi_row = MultiRow::Impossible;
                    return Ok(None);
                };
                let statement = self.prepared(sql.name, &text, &[])?;
                self.known(sql).multi_row = MultiRow::Prepared(statement.clone());
                statement
            }
        };
        if !lists.iter().all(|list| multi_row::fits(types, list)) {
            return Ok(None);
        }
        let (client, columns) = (Arc::clone(&self.client), multi_row::columns(types, lists));
        Ok(Some(Sent::new(Box::pin(async move { client.query_raw(&statement, columns).await }))))
    }

    fn known(&mut self, sql: &'static Sql) -> &mut KnownStatement {
        self.known.entry(sql.text).or_insert_with(|| KnownStatement {
            text: postgres_text(sql.text).into(),
            uses: 0,
            prepared: None,
            multi_row: MultiRow::Untried,
        })
    }

    fn prepare(&mut self, sql: &'static Sql, values: &[Value<'_>]) -> Result<Statement> {
        let text = Arc::clone(&self.known(sql).text);
        let types: Vec<_> = values.iter().map(type_of).collect();
        let statement = self.prepared(sql.name, &text, &types)?;
        self.known(sql).prepared = Some(statement.clone());
        Ok(statement)
    }

    /// Answers come in order: what is in flight is answered before the preparation.
    fn prepared(&mut self, name: &'static str, text: &str, types: &[Type]) -> Result<Statement> {
        self.settle_sent()?;
        let prepared = self.runtime.block_on(self.line.wait(self.client.prepare_typed(text, types)));
        prepared.map_err(|error| self.failed(Failure::Server(name, error)))
    }

    fn failed(&mut self, failure: Failure) -> StoreError {
        self.clear_cache();
        self.in_flight.clear();
        match failure {
            Failure::Caller(error) => error,
            Failure::Count(name, touched) => {
                self.health = Health::Failed;
                StoreError::Guard(format!("{name} touched {touched} rows"))
            }
            Failure::Server(name, error) => {
                self.note(&error);
                failure::before_commit(&error).in_statement(name)
            }
        }
    }

    fn note(&mut self, error: &Error) {
        self.health = if failure::is_lost(error) { Health::Lost } else { Health::Failed };
    }
}

/// PostgreSQL keeps no NUL in a text.
fn refuse_nul(values: &[Value<'_>]) -> Result<()> {
    if values.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0'))) {
        return Err(StoreError::Unavailable {
            detail: "a text has a NUL character in it, which PostgreSQL cannot keep".into(),
            hint: Some("leave it out".into()),
        });
    }
    Ok(())
}

fn first_column(message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }
}
