//! `session usage`: tokens and cost, from the agent's own records (mission E4).
//!
//! A record may cover several sessions, and several tasks: each sample goes to the session in which it was taken. What is
//! read twice counts once, and a record that has grown replaces what it said before (see `Usage::key`).

pub mod otel;
pub mod stream;
pub mod transcript;

use crate::Onus;
use crate::remote::calls;
use crate::session::SessionView;
use crate::submit::{ReceiptKind, Target};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::hash::Fields;
use onus_core::id::{Handle, RequestId, Seq, TaskId};
use onus_core::price;
use onus_core::refusal::Refusal;
use onus_core::session::{Counts, Usage};
use onus_core::time::Timestamp;
use onus_store::read::effort::{self, Which};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One measurement in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// `None` where the record does not say.
    pub at: Option<Timestamp>,
    /// The agent's own name of its session.
    pub record: String,
    pub model: Option<String>,
    pub counts: Counts,
}

/// What was recorded.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UsageView {
    pub task: TaskId,
    pub recorded: Vec<RecordedView>,
    /// Samples that lie in no session of this worker on this task.
    pub outside: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordedView {
    pub session: i64,
    /// `created`, or `existing` where the very same is on record.
    pub outcome: String,
    pub key: String,
    pub source: String,
    pub model: Option<String>,
    pub tokens: i64,
    pub cost: Option<f64>,
}

/// Whose usage of what, under which request.
#[derive(Debug, Clone)]
pub struct Reporter<'a> {
    pub request: &'a RequestId,
    pub actor: Option<&'a Handle>,
    pub task: &'a TaskId,
    /// Whose sessions; the caller's where nobody else is named.
    pub worker: Option<&'a Handle>,
}

impl Onus {
    /// Records what somebody says a session used: the one that is named, else the last one of the worker on the task.
    pub fn report_usage(
        &mut self,
        reporter: &Reporter<'_>,
        session: Option<Seq>,
        usage: Usage,
    ) -> Result<UsageView, Refusal> {
        let session = match session {
            Some(session) => session,
            None => {
                self.own_sessions(reporter)?.last().map(|session| session.id).ok_or_else(|| none(reporter))?
            }
        };
        let recorded = vec![self.record_usage(reporter, session, usage)?];
        Ok(UsageView { task: reporter.task.clone(), recorded, outside: 0 })
    }

    /// Records what an agent's own records say about its sessions on a task.
    pub fn import_usage(
        &mut self,
        reporter: &Reporter<'_>,
        source: &str,
        samples: &[Sample],
    ) -> Result<UsageView, Refusal> {
        let sessions = self.own_sessions(reporter)?;
        if sessions.is_empty() {
            return Err(none(reporter));
        }
        let (shares, outside) = shares(&sessions, samples);
        let mut recorded = Vec::new();
        for ((session, record, model), counts) in shares {
            let key = match &model {
                Some(model) => format!("{source}:{record}:{model}"),
                None => format!("{source}:{record}"),
            };
            let usage = Usage { key, source: source.to_owned(), model, counts };
            recorded.push(self.record_usage(reporter, session, usage)?);
        }
        Ok(UsageView { task: reporter.task.clone(), recorded, outside })
    }

    /// The sessions of a worker on a task, the first one first.
    fn own_sessions(&mut self, reporter: &Reporter<'_>) -> Result<Vec<SessionView>, Refusal> {
        let worker = reporter.worker.or(reporter.actor);
        let mut sessions = self.sessions(Some(reporter.task), worker, i64::MAX)?.sessions;
        sessions.reverse();
        Ok(sessions)
    }

    pub(crate) fn task_of_session(&mut self, session: Seq) -> Result<Option<TaskId>, Refusal> {
        if let Some(answer) = self.remote(|| calls::TaskOfSession { id: session })? {
            return Ok(answer);
        }
        let found = self.ask(|tx| effort::list(tx, Which::One(session), 1))?;
        Ok(found.into_iter().next().map(|session| session.task))
    }

    fn record_usage(
        &mut self,
        reporter: &Reporter<'_>,
        session: Seq,
        usage: Usage,
    ) -> Result<RecordedView, Refusal> {
        let usage = price::priced(&self.settings.prices, usage);
        let (key, source) = (usage.key.clone(), usage.source.clone());
        let (model, counts) = (usage.model.clone(), usage.counts);
        let task = self.task_of_session(session)?.unwrap_or_else(|| reporter.task.clone());
        if task != *reporter.task {
            return Err(Refusal::new(
                Code::UnknownName,
                format!("the session {session} is about {task}, not {}", reporter.task),
            )
            .hint(format!("onus session list --task {}", reporter.task)));
        }
        let envelope = Envelope {
            request: request_of(reporter.request, session, &key)?,
            actor: reporter.actor.cloned(),
            token: None,
            task: Some(task),
            project: None,
            base: None,
            command: Command::RecordUsage { session, usage },
        };
        let receipt = self.submit(&envelope, &Target::Named)?;
        let outcome = if receipt.kind == ReceiptKind::Existing { "existing" } else { "created" };
        let cost = counts.cost_micros.map(crate::timesheet::units);
        let outcome = outcome.to_owned();
        Ok(RecordedView { session, outcome, key, source, model, tokens: counts.tokens(), cost })
    }
}

/// One request may record several usages: each has a name of its own, the same at every repeat.
fn request_of(request: &RequestId, session: Seq, key: &str) -> Result<RequestId, Refusal> {
    let mut fields = Fields::new("onus-usage-request-1");
    let digest = fields.text(request.as_str()).int(session).text(key).digest();
    format!("usage-{digest}").parse().map_err(Refusal::invalid)
}

fn none(reporter: &Reporter<'_>) -> Refusal {
    let worker = reporter.worker.or(reporter.actor).map(ToString::to_string).unwrap_or_default();
    Refusal::new(Code::UnknownName, format!("{worker} has no session on {}", reporter.task))
        .hint(format!("onus session list --task {}", reporter.task))
}

type Share = (Seq, String, Option<String>);

/// Adds samples up by session, record and model, and counts those that lie in none.
fn shares(sessions: &[SessionView], samples: &[Sample]) -> (BTreeMap<Share, Counts>, i64) {
    let mut shares: BTreeMap<Share, Counts> = BTreeMap::new();
    let mut outside = 0;
    for sample in samples {
        let session = match sample.at {
            // The latest session that had begun by then, if it had not ended. Sessions are kept in whole seconds, so
            // the second in which one ended is still its own, unless another one began in it.
            Some(at) => sessions
                .iter()
                .rfind(|session| session.started_at <= at)
                .filter(|session| session.ended_at.is_none_or(|end| at.whole_second() <= end)),
            None => sessions.last(),
        };
        let Some(session) = session else {
            outside += 1;
            continue;
        };
        let share = (session.id, sample.record.clone(), sample.model.clone());
        shares.entry(share).or_default().add(&sample.counts);
    }
    (shares, outside)
}
