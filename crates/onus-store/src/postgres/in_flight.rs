//! What was sent to the server and not yet answered. Answers come in the order in which they were asked for.

use super::answer_cache::{AnswerCache, Rows};
use super::bound::Bound;
use super::value;
use crate::error::StoreError;
use crate::port::Value;
use futures_util::StreamExt as _;
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio_postgres::{Error, RowStream};

type Answered<T> = std::result::Result<T, Error>;
pub(super) type Request<T> = Pin<Box<dyn Future<Output = Answered<T>> + Send>>;

/// A request that was sent.
pub(super) enum Sent<T> {
    Pending(Request<T>),
    Answered(Answered<T>),
}

impl<T> Sent<T> {
    /// The driver sends at the first poll; nobody need be woken by it.
    pub(super) fn new(mut request: Request<T>) -> Sent<T> {
        match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Sent::Answered(answer),
            Poll::Pending => Sent::Pending(request),
        }
    }

    pub(super) async fn answer(self) -> Answered<T> {
        match self {
            Sent::Pending(request) => request.await,
            Sent::Answered(answer) => answer,
        }
    }
}

pub(super) enum InFlight {
    /// A change, and how many rows it must touch.
    Change { name: &'static str, wanted: Option<u64>, sent: Sent<u64> },
    /// The same question with one or several lists of values; of several, the first column of each row says for which list
    /// it is, counted from 1.
    Questions { questions: Vec<Bound>, sent: Sent<RowStream> },
}

impl InFlight {
    pub(super) fn asks(&self, question: &Bound) -> bool {
        match self {
            InFlight::Change { .. } => false,
            InFlight::Questions { questions, .. } => questions.contains(question),
        }
    }

    pub(super) fn is_question(&self) -> bool {
        matches!(self, InFlight::Questions { .. })
    }
}

/// Why a statement failed.
pub(super) enum Failure {
    /// The server or the connection, in the statement of this name.
    Server(&'static str, Error),
    /// The statement of this name touched another number of rows than it had to.
    Count(&'static str, u64),
    /// Whoever was given the rows wants no more of them, or they make no sense.
    Caller(StoreError),
}

/// Waits for all answers.
pub(super) async fn settle(
    in_flight: &mut VecDeque<InFlight>,
    cache: &mut AnswerCache,
) -> std::result::Result<(), Failure> {
    while let Some(next) = in_flight.pop_front() {
        match next {
            InFlight::Change { name, wanted, sent } => {
                let touched = sent.answer().await.map_err(|error| Failure::Server(name, error))?;
                if wanted.is_some_and(|wanted| wanted != touched) {
                    return Err(Failure::Count(name, touched));
                }
            }
            InFlight::Questions { questions, sent } => {
                let Some(first) = questions.first() else { continue };
                let rows = rows(first.sql.name, sent).await?;
                let answers = if questions.len() == 1 { vec![rows] } else { split(rows, questions.len())? };
                questions.into_iter().zip(answers).for_each(|(question, rows)| cache.insert(question, rows));
            }
        }
    }
    Ok(())
}

/// Gives each list of values its rows, by the number in their first column.
fn split(rows: Rows, lists: usize) -> std::result::Result<Vec<Rows>, Failure> {
    let mut answers = vec![Rows::new(); lists];
    for mut row in rows {
        let number = match row.first() {
            Some(Value::Int(number)) => usize::try_from(*number - 1).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let answer = answers.get_mut(number).ok_or_else(|| {
            Failure::Caller(StoreError::Corrupt("an answer to a question that was not asked".into()))
        })?;
        row.remove(0);
        answer.push(row);
    }
    Ok(answers)
}

async fn rows(name: &'static str, sent: Sent<RowStream>) -> std::result::Result<Rows, Failure> {
    let named = |error: Error| Failure::Server(name, error);
    let mut stream = pin!(sent.answer().await.map_err(named)?);
    let mut rows = Rows::new();
    while let Some(row) = stream.next().await {
        rows.push(value::owned(&row.map_err(named)?).map_err(Failure::Caller)?);
    }
    Ok(rows)
}
