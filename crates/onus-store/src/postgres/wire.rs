//! One connection. Statements go out without waiting for each other; answers are read in their order.
//!
//! The port is synchronous: a runtime of one thread, this connection's own, moves only while somebody waits here.

use super::failure;
use super::value::type_of;
use crate::error::{Result, StoreError};
use crate::port::{Sql, Value};
use futures_util::StreamExt as _;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Error, Row, RowStream, SimpleQueryMessage, Statement};

/// How many changes may be under way before somebody waits for their answers.
const UNDER_WAY: usize = 512;

/// A statement that is used this often is worth preparing: before, the preparation costs more than it saves.
const WORTH_PREPARING: u32 = 3;

type Answer<T> = std::result::Result<T, Error>;
type Pending<T> = Pin<Box<dyn Future<Output = Answer<T>> + Send>>;

/// A request that was sent.
enum Sent<T> {
    Pending(Pending<T>),
    Answered(Answer<T>),
}

impl<T> Sent<T> {
    /// Sending happens at the first poll; nobody need be woken by it.
    fn new(mut request: Pending<T>) -> Sent<T> {
        match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Sent::Answered(answer),
            Poll::Pending => Sent::Pending(request),
        }
    }

    async fn answer(self) -> Answer<T> {
        match self {
            Sent::Pending(request) => request.await,
            Sent::Answered(answer) => answer,
        }
    }
}

/// What was sent and not yet answered.
enum UnderWay {
    /// A change, and how many rows it must touch.
    Change { name: &'static str, wanted: Option<u64>, sent: Sent<u64> },
    /// A question that somebody will ask.
    Question { asked: Asked, sent: Sent<RowStream> },
}

/// A question, and after how many changes it was asked: those that come later may change its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    name: &'static str,
    text: &'static str,
    args: Vec<Value<'static>>,
    changes: u64,
}

struct Known {
    text: Arc<str>,
    uses: u32,
    prepared: Option<Statement>,
}

/// Whether the transaction is of any use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    /// A statement failed: the server refuses everything up to the next rollback.
    Failed,
    Lost,
}

pub(super) struct Wire {
    runtime: Runtime,
    client: Arc<Client>,
    known: HashMap<&'static str, Known>,
    under_way: VecDeque<UnderWay>,
    /// Answers to questions that were asked ahead.
    answers: Vec<(Asked, Vec<Row>)>,
    changes: u64,
    health: Health,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("health", &self.health).finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(runtime: Runtime, client: Client) -> Wire {
        Wire {
            runtime,
            client: Arc::new(client),
            known: HashMap::new(),
            under_way: VecDeque::new(),
            answers: Vec::new(),
            changes: 0,
            health: Health::Sound,
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.health == Health::Lost || self.client.is_closed()
    }

    /// Runs a query and hands each row on.
    pub(super) fn query(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
        each: &mut dyn FnMut(&Row) -> Result<()>,
    ) -> Result<u64> {
        if !self.answers.is_empty() || !self.under_way.is_empty() {
            let asked = self.asked(sql, args);
            if self.is_under_way(&asked) {
                self.settle()?;
            }
            if let Some((_, rows)) = self.answers.iter().find(|(known, _)| *known == asked) {
                rows.iter().try_for_each(each)?;
                return Ok(rows.len() as u64);
            }
        }
        let sent = self.send(sql, args)?;
        let (runtime, under_way, answers) = (&self.runtime, &mut self.under_way, &mut self.answers);
        let done = runtime.block_on(async {
            settle(under_way, answers).await?;
            let named = |error: Error| Trouble::Server(sql.name, error);
            let mut stream = pin!(sent.answer().await.map_err(named)?);
            while let Some(row) = stream.next().await {
                each(&row.map_err(named)?).map_err(Trouble::Ours)?;
            }
            Ok(stream.rows_affected().unwrap_or(0))
        });
        done.map_err(|trouble| self.understood(trouble))
    }

    /// Sends a question without waiting: [`Wire::query`] will find its answer, unless something is changed before.
    pub(super) fn ask_ahead(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<()> {
        let asked = self.asked(sql, args);
        if self.is_under_way(&asked) || self.answers.iter().any(|(known, _)| *known == asked) {
            return Ok(());
        }
        let sent = self.send(sql, args)?;
        self.under_way.push_back(UnderWay::Question { asked, sent });
        Ok(())
    }

    fn asked(&self, sql: &Sql, args: &[Value<'_>]) -> Asked {
        let args = args.iter().cloned().map(Value::into_owned).collect();
        Asked { name: sql.name, text: sql.text, args, changes: self.changes }
    }

    fn is_under_way(&self, question: &Asked) -> bool {
        self.under_way.iter().any(|one| matches!(one, UnderWay::Question { asked, .. } if asked == question))
    }

    /// What was answered before holds no longer.
    pub(super) fn forget(&mut self) {
        self.changes += 1;
        self.answers.clear();
    }

    /// Sends a change without waiting; that it touches another number of rows than `wanted` is told by a later call.
    pub(super) fn change(&mut self, sql: &Sql, args: &[Value<'_>], wanted: Option<u64>) -> Result<()> {
        if self.under_way.len() >= UNDER_WAY {
            self.settle()?;
        }
        self.forget();
        let sent = self.send(sql, args)?;
        let counted = async move {
            let mut stream = pin!(sent.answer().await?);
            while let Some(row) = stream.next().await {
                row?;
            }
            Ok(stream.rows_affected().unwrap_or(0))
        };
        let sent = Sent::new(Box::pin(counted) as Pending<u64>);
        self.under_way.push_back(UnderWay::Change { name: sql.name, wanted, sent });
        Ok(())
    }

    /// Sends a statement without values, without waiting.
    pub(super) fn say(&mut self, name: &'static str) {
        let client = Arc::clone(&self.client);
        let said = async move { client.batch_execute(name).await.map(|()| 0_u64) };
        let sent = Sent::new(Box::pin(said) as Pending<u64>);
        self.under_way.push_back(UnderWay::Change { name, wanted: None, sent });
    }

    /// Waits for everything that is under way.
    pub(super) fn settle(&mut self) -> Result<()> {
        if !self.under_way.is_empty() {
            let (runtime, under_way, answers) = (&self.runtime, &mut self.under_way, &mut self.answers);
            let done = runtime.block_on(settle(under_way, answers));
            done.map_err(|trouble| self.understood(trouble))?;
        }
        match self.health {
            Health::Sound => Ok(()),
            Health::Failed => Err(StoreError::Guard("a statement of the transaction failed".into())),
            Health::Lost => Err(StoreError::Busy("the connection to the database was lost".into())),
        }
    }

    /// Ends what was begun since the mark or the beginning, whatever came of it.
    pub(super) fn roll_back(&mut self, statement: &'static str) -> Result<()> {
        self.forget();
        self.under_way.clear();
        self.script(statement)?;
        self.health = Health::Sound;
        Ok(())
    }

    /// The point of no return: from here on only an answer tells what happened.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.settle()?;
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
        if args.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0'))) {
            return Err(StoreError::Unavailable {
                detail: "a text has a NUL character in it, which PostgreSQL cannot keep".into(),
                hint: Some("leave it out".into()),
            });
        }
        let known = self.known.entry(sql.text).or_insert_with(|| Known {
            text: spelled(sql.text).into(),
            uses: 0,
            prepared: None,
        });
        known.uses += 1;
        if known.prepared.is_none() && known.uses >= WORTH_PREPARING {
            self.prepare(sql, args)?;
        }
        let Some(Known { text, prepared, .. }) = self.known.get(sql.text) else {
            return Err(StoreError::Guard(format!("{} vanished", sql.name)));
        };
        let args: Vec<Value<'static>> = args.iter().cloned().map(Value::into_owned).collect();
        let client = Arc::clone(&self.client);
        Ok(Sent::new(match prepared.clone() {
            Some(statement) => Box::pin(async move { client.query_raw(&statement, args).await }),
            None => {
                let text = Arc::clone(text);
                let types: Vec<_> = args.iter().map(type_of).collect();
                Box::pin(async move { client.query_typed_raw(&text, args.into_iter().zip(types)).await })
            }
        }))
    }

    /// Answers come in order: what is under way is answered before the preparation.
    fn prepare(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<()> {
        self.settle()?;
        let Some(known) = self.known.get_mut(sql.text) else {
            return Ok(());
        };
        let types: Vec<_> = args.iter().map(type_of).collect();
        match self.runtime.block_on(self.client.prepare_typed(&known.text, &types)) {
            Ok(statement) => {
                known.prepared = Some(statement);
                Ok(())
            }
            Err(error) => Err(self.understood(Trouble::Server(sql.name, error))),
        }
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

enum Trouble {
    Server(&'static str, Error),
    Count(&'static str, u64),
    /// Whoever looked at the rows wants no more of them.
    Ours(StoreError),
}

async fn settle(
    under_way: &mut VecDeque<UnderWay>,
    answers: &mut Vec<(Asked, Vec<Row>)>,
) -> std::result::Result<(), Trouble> {
    while let Some(next) = under_way.pop_front() {
        match next {
            UnderWay::Change { name, wanted, sent } => {
                let touched = sent.answer().await.map_err(|error| Trouble::Server(name, error))?;
                if wanted.is_some_and(|wanted| wanted != touched) {
                    return Err(Trouble::Count(name, touched));
                }
            }
            UnderWay::Question { asked, sent } => {
                let named = |error: Error| Trouble::Server(asked.name, error);
                let mut stream = pin!(sent.answer().await.map_err(named)?);
                let mut rows = Vec::new();
                while let Some(row) = stream.next().await {
                    rows.push(row.map_err(named)?);
                }
                answers.push((asked, rows));
            }
        }
    }
    Ok(())
}

fn first_column(message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }
}

/// The shared text as PostgreSQL spells it: `$1` for a parameter. A plus before a column forbids SQLite its index; the
/// planner here knows better by itself.
pub fn spelled(text: &str) -> String {
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    let mut spelled = String::with_capacity(text.len());
    while let Some(c) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        match c {
            '?' if next.is_ascii_digit() => spelled.push('$'),
            '+' if before == ' ' && next.is_ascii_lowercase() => {}
            _ => spelled.push(c),
        }
        before = c;
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn one_text_two_spellings() {
        for (shared, here) in [
            ("SELECT a FROM t WHERE b = ?1 AND c > ?12", "SELECT a FROM t WHERE b = $1 AND c > $12"),
            ("WHERE +l.workspace = ?1", "WHERE l.workspace = $1"),
            ("SET n = n + 1, m = max(m, 0)+1", "SET n = n + 1, m = max(m, 0)+1"),
            ("SELECT 'why?'", "SELECT 'why?'"),
        ] {
            assert_eq!(spelled(shared), here);
        }
    }
}
