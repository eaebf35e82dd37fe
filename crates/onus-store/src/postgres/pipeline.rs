//! One connection. Statements go out without waiting for each other; answers are read in their order.
//!
//! Changes are not even sent until something hangs on them, so that those of many commands go out together ([`multi_row`]).
//! The port is synchronous: a runtime of one thread, this connection's own, moves only while somebody waits here.

use super::answer_cache::{Asked, Memory};
use super::dependencies::{Change, groups};
use super::in_flight::{Pending, Sent, Trouble, UnderWay, settle};
use super::placeholders::postgres_text;
use super::value::{self, type_of};
use super::{failure, multi_row};
use crate::error::{Result, StoreError};
use crate::port::{Sql, Value};
use futures_util::StreamExt as _;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, RowStream, SimpleQueryMessage, Statement};

/// How many changes may wait to be sent.
const UNSENT: usize = 512;

/// A statement that is used this often is worth preparing: before, the preparation costs more than it saves.
const WORTH_PREPARING: u32 = 3;

/// Told of one row's values.
type Each<'a> = &'a mut dyn FnMut(Vec<Value<'_>>) -> Result<()>;

#[derive(Clone)]
struct Known {
    text: Arc<str>,
    uses: u32,
    prepared: Option<Statement>,
    many: Many,
}

/// The same for many lists of values.
#[derive(Clone)]
enum Many {
    Unknown,
    Impossible,
    Prepared(Statement),
}

/// How a text for one is made one for many.
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
enum Mark {
    Nowhere,
    /// Before the change with this number of those that are not sent yet.
    Unsent(usize),
    /// The server has seen changes that came after it.
    Sent,
}

pub(super) struct Pipeline {
    runtime: Runtime,
    client: Arc<Client>,
    known: HashMap<&'static str, Known>,
    unsent: Vec<Change>,
    mark: Mark,
    under_way: VecDeque<UnderWay>,
    memory: Memory,
    health: Health,
    /// How many transactions have changed something.
    writes: u32,
    /// What the planner was told last.
    plans: &'static str,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("health", &self.health).finish_non_exhaustive()
    }
}

impl Pipeline {
    pub(super) fn new(runtime: Runtime, client: Client) -> Pipeline {
        Pipeline {
            runtime,
            client: Arc::new(client),
            known: HashMap::new(),
            unsent: Vec::new(),
            mark: Mark::Nowhere,
            under_way: VecDeque::new(),
            memory: Memory::default(),
            health: Health::Sound,
            writes: 0,
            plans: super::READER_PLANNER,
        }
    }

    /// Tells the planner how to go about what follows, unless it knows.
    pub(super) fn plans(&mut self, plans: &'static str) {
        if self.plans != plans {
            self.say(plans);
            self.plans = plans;
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
    pub(super) fn query(&mut self, sql: &Sql, args: &[Value<'_>], each: Each<'_>) -> Result<()> {
        if !self.memory.is_empty() || !self.under_way.is_empty() {
            let asked = Asked::new(sql, args);
            if self.under_way.iter().any(|one| one.asks(&asked)) {
                self.settle_sent()?;
            }
            if let Some(rows) = self.memory.of(&asked) {
                return rows.iter().try_for_each(|row| each(row.clone()));
            }
        }
        self.flush()?;
        self.answered(sql, args, each).map(drop)
    }

    /// Runs a change and waits: says how many rows it touched.
    pub(super) fn run(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<u64> {
        self.flush()?;
        self.settle_questions()?;
        self.memory.changed(sql, args);
        self.before_change()?;
        self.answered(sql, args, &mut |_| Ok(()))
    }

    /// Sends a statement, after everything that is under way, and waits for its answer.
    fn answered(&mut self, sql: &Sql, args: &[Value<'_>], each: Each<'_>) -> Result<u64> {
        let sent = self.send(sql, args)?;
        let (runtime, under_way, memory) = (&self.runtime, &mut self.under_way, &mut self.memory);
        let done = runtime.block_on(async {
            settle(under_way, memory).await?;
            let named = |error: Error| Trouble::Server(sql.name, error);
            let mut stream = pin!(sent.answer().await.map_err(named)?);
            while let Some(row) = stream.next().await {
                let row = row.map_err(named)?;
                value::borrowed(&row).and_then(&mut *each).map_err(Trouble::Ours)?;
            }
            Ok(stream.rows_affected().unwrap_or(0))
        });
        done.map_err(|trouble| self.understood(trouble))
    }

    /// Sends questions without waiting: [`Pipeline::query`] will find their answers, unless something is changed before.
    pub(super) fn ask_ahead(&mut self, questions: &[(&Sql, Vec<Value<'_>>)]) -> Result<()> {
        let mut asked: Vec<(&Sql, Vec<Asked>)> = Vec::new();
        for (sql, args) in questions {
            let question = Asked::new(sql, args);
            if self.memory.of(&question).is_some() || self.under_way.iter().any(|one| one.asks(&question)) {
                continue;
            }
            match asked.iter_mut().find(|(other, _)| other.text == sql.text) {
                Some((_, same)) if same.contains(&question) => {}
                Some((_, same)) => same.push(question),
                None => asked.push((sql, vec![question])),
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        self.flush()?;
        asked.into_iter().try_for_each(|(sql, questions)| self.ask(sql, questions))
    }

    /// Sends one question with each of several lists of values.
    fn ask(&mut self, sql: &Sql, questions: Vec<Asked>) -> Result<()> {
        if questions.len() > 1 {
            let lists: Vec<Vec<Value<'static>>> = questions.iter().map(|asked| asked.args.clone()).collect();
            if let Some(sent) = self.send_many(sql, &lists, multi_row::question)? {
                self.under_way.push_back(UnderWay::Questions { asked: questions, sent });
                return Ok(());
            }
        }
        for asked in questions {
            let sent = self.send(sql, &asked.args)?;
            self.under_way.push_back(UnderWay::Question { asked, sent });
        }
        Ok(())
    }

    /// What was answered before holds no longer.
    pub(super) fn forget(&mut self) {
        self.memory.clear();
    }

    /// Makes a change without waiting; that it touches another number of rows than `wanted` is told by a later call.
    pub(super) fn change(&mut self, sql: &Sql, args: &[Value<'_>], wanted: Option<u64>) -> Result<()> {
        keepable(args)?;
        if self.unsent.len() >= UNSENT {
            self.settle()?;
        }
        self.settle_questions()?;
        self.memory.changed(sql, args);
        let args = args.iter().cloned().map(Value::into_owned).collect();
        self.unsent.push(Change { sql: *sql, args, wanted });
        Ok(())
    }

    /// Sends the changes that were not sent yet.
    fn flush(&mut self) -> Result<()> {
        let mut changes = std::mem::take(&mut self.unsent);
        if let Mark::Unsent(mark) = self.mark {
            let since = changes.split_off(mark);
            self.mark = Mark::Unsent(0);
            self.send_changes(changes)?;
            if since.is_empty() {
                return Ok(());
            }
            self.before_change()?;
            changes = since;
        }
        self.send_changes(changes)
    }

    /// The server learns of the mark when it first sees a change that came after it. What came before it must have
    /// worked: going back to the mark does not make that good.
    fn before_change(&mut self) -> Result<()> {
        if matches!(self.mark, Mark::Unsent(_)) {
            self.settle_sent()?;
            self.say("SAVEPOINT mark");
            self.mark = Mark::Sent;
        }
        Ok(())
    }

    fn send_changes(&mut self, changes: Vec<Change>) -> Result<()> {
        for group in groups(changes) {
            self.send_group(group)?;
        }
        Ok(())
    }

    /// Sends changes of one text.
    fn send_group(&mut self, group: Vec<Change>) -> Result<()> {
        if let [first, _, ..] = group.as_slice() {
            let (sql, wanted) = (first.sql, group.iter().map(|change| change.wanted).sum());
            let lists: Vec<Vec<Value<'static>>> = group.iter().map(|change| change.args.clone()).collect();
            if let Some(sent) = self.send_many(&sql, &lists, multi_row::change)? {
                self.count(sql.name, wanted, sent);
                return Ok(());
            }
        }
        for Change { sql, args, wanted } in group {
            let sent = self.send(&sql, &args)?;
            self.count(sql.name, wanted, sent);
        }
        Ok(())
    }

    /// The answer to a change is how many rows it touched.
    fn count(&mut self, name: &'static str, wanted: Option<u64>, sent: Sent<RowStream>) {
        let counted = async move {
            let mut stream = pin!(sent.answer().await?);
            while let Some(row) = stream.next().await {
                row?;
            }
            Ok(stream.rows_affected().unwrap_or(0))
        };
        let sent = Sent::new(Box::pin(counted) as Pending<u64>);
        self.under_way.push_back(UnderWay::Change { name, wanted, sent });
    }

    /// Sends a statement without values, without waiting.
    pub(super) fn say(&mut self, name: &'static str) {
        let client = Arc::clone(&self.client);
        let said = async move { client.batch_execute(name).await.map(|()| 0_u64) };
        let sent = Sent::new(Box::pin(said) as Pending<u64>);
        self.under_way.push_back(UnderWay::Change { name, wanted: None, sent });
    }

    /// Waits until everything is done.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.flush()?;
        self.settle_sent()
    }

    fn settle_sent(&mut self) -> Result<()> {
        if !self.under_way.is_empty() {
            let (runtime, under_way, memory) = (&self.runtime, &mut self.under_way, &mut self.memory);
            let done = runtime.block_on(settle(under_way, memory));
            done.map_err(|trouble| self.understood(trouble))?;
        }
        match self.health {
            Health::Sound => Ok(()),
            Health::Failed => Err(StoreError::Guard("a statement of the transaction failed".into())),
            Health::Lost => Err(StoreError::Busy("the connection to the database was lost".into())),
        }
    }

    /// What was asked before a change is answered as of before it: it must be known to be forgotten.
    fn settle_questions(&mut self) -> Result<()> {
        match self.under_way.iter().any(UnderWay::is_question) {
            true => self.settle_sent(),
            false => Ok(()),
        }
    }

    /// Sets a mark; marks do not nest.
    pub(super) fn mark(&mut self) {
        self.mark = Mark::Unsent(self.unsent.len());
    }

    pub(super) fn keep(&mut self) -> Result<()> {
        if self.mark == Mark::Sent {
            // In this order: what failed since the mark can still be undone.
            self.settle()?;
            self.say("RELEASE mark");
        }
        self.mark = Mark::Nowhere;
        Ok(())
    }

    /// Goes back to the mark. Where the server has not seen it, it must not have failed either.
    pub(super) fn undo(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.mark, Mark::Nowhere) {
            Mark::Sent => self.roll_back("ROLLBACK TO mark; RELEASE mark"),
            Mark::Unsent(mark) => {
                self.unsent.truncate(mark);
                self.settle_sent()
            }
            Mark::Nowhere => Ok(()),
        }
    }

    /// Ends what was begun since the mark or the beginning, whatever came of it.
    pub(super) fn roll_back(&mut self, statement: &'static str) -> Result<()> {
        self.forget();
        self.unsent.clear();
        self.mark = Mark::Nowhere;
        self.under_way.clear();
        self.script(statement)?;
        self.health = Health::Sound;
        Ok(())
    }

    /// The point of no return: from here on only an answer tells what happened.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.settle()?;
        self.forget();
        match self.runtime.block_on(self.client.batch_execute("COMMIT")) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.note(&error);
                Err(failure::during_commit(&error))
            }
        }
    }

    /// Runs statements without values, several at once, and gives the first column of each row as text.
    pub(super) fn script(&mut self, text: &str) -> Result<Vec<String>> {
        match self.runtime.block_on(self.client.simple_query(text)) {
            Ok(messages) => Ok(messages.iter().filter_map(first_column).collect()),
            Err(error) => {
                self.note(&error);
                Err(failure::before_commit(&error))
            }
        }
    }

    fn send(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<Sent<RowStream>> {
        keepable(args)?;
        let known = self.known(sql);
        known.uses += 1;
        let prepared = match known.prepared.clone() {
            None if known.uses >= WORTH_PREPARING => Some(self.prepare(sql, args)?),
            prepared => prepared,
        };
        let args: Vec<Value<'static>> = args.iter().cloned().map(Value::into_owned).collect();
        let client = Arc::clone(&self.client);
        Ok(Sent::new(match prepared {
            Some(statement) => Box::pin(async move { client.query_raw(&statement, args).await }),
            None => {
                let text = Arc::clone(&self.known(sql).text);
                let types: Vec<_> = args.iter().map(type_of).collect();
                Box::pin(async move { client.query_typed_raw(&text, args.into_iter().zip(types)).await })
            }
        }))
    }

    /// Sends one statement for several lists of values, where that can be done.
    fn send_many(
        &mut self,
        sql: &Sql,
        lists: &[Vec<Value<'static>>],
        multiply: Multiply,
    ) -> Result<Option<Sent<RowStream>>> {
        let one = match (self.known(sql).prepared.clone(), lists.first()) {
            (Some(one), _) => one,
            (None, Some(first)) => self.prepare(sql, first)?,
            (None, None) => return Ok(None),
        };
        let types = one.params();
        let statement = match self.known(sql).many.clone() {
            Many::Prepared(statement) => statement,
            Many::Impossible => return Ok(None),
            Many::Unknown => {
                let Some(text) = multiply(&self.known(sql).text, types) else {
                    self.known(sql).many = Many::Impossible;
                    return Ok(None);
                };
                let statement = self.prepared(sql.name, &text, &[])?;
                self.known(sql).many = Many::Prepared(statement.clone());
                statement
            }
        };
        if !lists.iter().all(|list| multi_row::fits(types, list)) {
            return Ok(None);
        }
        let (client, columns) = (Arc::clone(&self.client), multi_row::columns(types, lists));
        Ok(Some(Sent::new(Box::pin(async move { client.query_raw(&statement, columns).await }))))
    }

    fn known(&mut self, sql: &Sql) -> &mut Known {
        self.known.entry(sql.text).or_insert_with(|| Known {
            text: postgres_text(sql.text).into(),
            uses: 0,
            prepared: None,
            many: Many::Unknown,
        })
    }

    fn prepare(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<Statement> {
        let text = Arc::clone(&self.known(sql).text);
        let types: Vec<_> = args.iter().map(type_of).collect();
        let statement = self.prepared(sql.name, &text, &types)?;
        self.known(sql).prepared = Some(statement.clone());
        Ok(statement)
    }

    /// Answers come in order: what is under way is answered before the preparation.
    fn prepared(&mut self, name: &'static str, text: &str, types: &[Type]) -> Result<Statement> {
        self.settle_sent()?;
        let prepared = self.runtime.block_on(self.client.prepare_typed(text, types));
        prepared.map_err(|error| self.understood(Trouble::Server(name, error)))
    }

    fn understood(&mut self, trouble: Trouble) -> StoreError {
        self.forget();
        self.under_way.clear();
        match trouble {
            Trouble::Ours(error) => error,
            Trouble::Count(name, touched) => {
                self.health = Health::Failed;
                StoreError::Guard(format!("{name} touched {touched} rows"))
            }
            Trouble::Server(name, error) => {
                self.note(&error);
                failure::before_commit(&error).in_statement(name)
            }
        }
    }

    fn note(&mut self, error: &Error) {
        self.health = if failure::is_lost(error) { Health::Lost } else { Health::Failed };
    }
}

/// Whether PostgreSQL can keep the values.
fn keepable(args: &[Value<'_>]) -> Result<()> {
    if args.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0'))) {
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
