//! What was sent to the server and not yet answered. Answers come in the order in which they were asked for.

use super::answer_cache::{Answer as Rows, Asked, Memory};
use super::value;
use crate::error::StoreError;
use crate::port::Value;
use futures_util::StreamExt as _;
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio_postgres::{Error, RowStream};

type Answer<T> = std::result::Result<T, Error>;
pub(super) type Pending<T> = Pin<Box<dyn Future<Output = Answer<T>> + Send>>;

/// A request that was sent.
pub(super) enum Sent<T> {
    Pending(Pending<T>),
    Answered(Answer<T>),
}

impl<T> Sent<T> {
    /// Sending happens at the first poll; nobody need be woken by it.
    pub(super) fn new(mut request: Pending<T>) -> Sent<T> {
        match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Sent::Answered(answer),
            Poll::Pending => Sent::Pending(request),
        }
    }

    pub(super) async fn answer(self) -> Answer<T> {
        match self {
            Sent::Pending(request) => request.await,
            Sent::Answered(answer) => answer,
        }
    }
}

/// What was sent and not yet answered.
pub(super) enum UnderWay {
    /// A change, and how many rows it must touch.
    Change { name: &'static str, wanted: Option<u64>, sent: Sent<u64> },
    /// A question that somebody will ask.
    Question { asked: Asked, sent: Sent<RowStream> },
    /// The same question with several lists of values. The first column of each row says which.
    Questions { asked: Vec<Asked>, sent: Sent<RowStream> },
}

impl UnderWay {
    pub(super) fn asks(&self, question: &Asked) -> bool {
        match self {
            UnderWay::Change { .. } => false,
            UnderWay::Question { asked, .. } => asked == question,
            UnderWay::Questions { asked, .. } => asked.contains(question),
        }
    }

    pub(super) fn is_question(&self) -> bool {
        !matches!(self, UnderWay::Change { .. })
    }
}

pub(super) enum Trouble {
    Server(&'static str, Error),
    Count(&'static str, u64),
    /// Whoever looked at the rows wants no more of them, or they make no sense.
    Ours(StoreError),
}

/// Waits for all answers.
pub(super) async fn settle(
    under_way: &mut VecDeque<UnderWay>,
    memory: &mut Memory,
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
                let rows = rows(asked.name, sent).await?;
                memory.keep(asked, rows);
            }
            UnderWay::Questions { asked, sent } => {
                let Some(first) = asked.first() else { continue };
                let mut answers = vec![Rows::new(); asked.len()];
                for mut row in rows(first.name, sent).await? {
                    let number = match row.first() {
                        Some(Value::Int(number)) => usize::try_from(*number - 1).unwrap_or(usize::MAX),
                        _ => usize::MAX,
                    };
                    let answer = answers.get_mut(number).ok_or_else(|| {
                        Trouble::Ours(StoreError::Corrupt("an answer to a question nobody asked".into()))
                    })?;
                    row.remove(0);
                    answer.push(row);
                }
                asked.into_iter().zip(answers).for_each(|(asked, rows)| memory.keep(asked, rows));
            }
        }
    }
    Ok(())
}

async fn rows(name: &'static str, sent: Sent<RowStream>) -> std::result::Result<Rows, Trouble> {
    let named = |error: Error| Trouble::Server(name, error);
    let mut stream = pin!(sent.answer().await.map_err(named)?);
    let mut rows = Rows::new();
    while let Some(row) = stream.next().await {
        rows.push(value::owned(&row.map_err(named)?).map_err(Trouble::Ours)?);
    }
    Ok(rows)
}
