//! What a person approved, told by its fingerprint: no total is copied, and a later correction shows as a difference.

use super::Row;
use crate::code::Code;
use crate::event::{Event, TimesheetApproved};
use crate::facts::Caller;
use crate::hash::{Digest, Fields};
use crate::id::{Handle, Seq, TaskId};
use crate::refusal::Refusal;
use crate::registry::person;
use crate::session::Counts;
use crate::time::{Date, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Takes the sessions of one worker and period in, by their numbers, each with what was used in it.
#[derive(Debug)]
pub struct Fingerprint {
    fields: Fields,
    last: Seq,
}

impl Fingerprint {
    pub fn new(worker: &Handle, zone: &str, from: Date, to: Date) -> Fingerprint {
        let mut fields = Fields::new("onus-timesheet-1");
        fields.text(worker.as_str()).text(zone).text(&from.to_string()).text(&to.to_string());
        Fingerprint { fields, last: 0 }
    }

    /// One session as it counts in the period. Sessions come in the order of their numbers.
    pub fn session(&mut self, id: Seq, task: &str, from: Timestamp, to: Timestamp, used: &Counts) {
        debug_assert!(id > self.last, "sessions come in order");
        self.last = id;
        self.fields.int(id).text(task).int(from.0).int(to.0);
        self.fields.int(used.input_tokens).int(used.output_tokens);
        self.fields.int(used.cache_read_tokens).int(used.cache_creation_tokens);
        // No cost is not a cost of nothing.
        self.fields.int(used.cost_micros.unwrap_or(-1));
    }

    pub fn digest(&self) -> Digest {
        self.fields.digest()
    }
}

/// What is other than it was when it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Difference {
    pub task: Option<TaskId>,
    pub day: Option<Date>,
    pub approved_seconds: i64,
    pub seconds: i64,
    pub approved_tokens: i64,
    pub tokens: i64,
}

/// What was done on which day.
type ApprovedCell<'a> = (Option<&'a TaskId>, Option<Date>);

/// Compares two sheets of one worker, by task and day.
pub fn differences(approved: &[Row], now: &[Row]) -> Vec<Difference> {
    let mut both: BTreeMap<ApprovedCell<'_>, [Option<&Row>; 2]> = BTreeMap::new();
    for (side, rows) in [approved, now].into_iter().enumerate() {
        for row in rows {
            both.entry((row.task.as_ref(), row.day)).or_default()[side] = Some(row);
        }
    }
    let seconds = |row: Option<&Row>| row.map_or(0, |row| row.seconds);
    let counts = |row: Option<&Row>| row.map(|row| row.counts).unwrap_or_default();
    both.into_iter()
        .filter(|(_, [was, is])| seconds(*was) != seconds(*is) || counts(*was) != counts(*is))
        .map(|((task, day), [was, is])| Difference {
            task: task.cloned(),
            day,
            approved_seconds: seconds(was),
            seconds: seconds(is),
            approved_tokens: counts(was).tokens(),
            tokens: counts(is).tokens(),
        })
        .collect()
}

/// A period as it would be approved.
#[derive(Debug)]
pub struct Approving {
    pub worker: Handle,
    pub from: Date,
    pub to: Date,
    /// When the last day ends where the worker is.
    pub ends_at: Timestamp,
    /// A session of the period that still runs.
    pub running: Option<Seq>,
    pub fingerprint: Digest,
    /// What was approved last for the same days.
    pub last: Option<Digest>,
}

/// Who approves it, and the event; none where the very same is approved already. People only, and only what is over:
/// a fingerprint of something that still moves would freeze nothing.
pub fn approve(
    caller: &Caller,
    period: &Approving,
    now: Timestamp,
) -> Result<(Handle, Option<Event>), Refusal> {
    let by = person(caller)?.clone();
    let Approving { worker, from, to, .. } = period;
    if period.ends_at > now {
        return Err(Refusal::invalid(format!("{to} is not over where {worker} is"))
            .hint("approve up to yesterday: --to DATE"));
    }
    if let Some(session) = period.running {
        return Err(Refusal::new(
            Code::WrongState,
            format!("the session {session} of {worker} still runs since before the end of {to}"),
        )
        .hint("it must end first: complete, release, block or take over its task"));
    }
    if period.last == Some(period.fingerprint) {
        return Ok((by, None));
    }
    let approved =
        TimesheetApproved { worker: worker.clone(), from: *from, to: *to, fingerprint: period.fingerprint };
    Ok((by, Some(approved.into())))
}
