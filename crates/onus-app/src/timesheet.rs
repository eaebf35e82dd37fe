//! `timesheet`: who worked how long on what, asked anew each time (mission A4, A6).

mod approval;
pub mod csv;
pub mod ics;
mod view;
#[cfg_attr(not(feature = "xlsx"), path = "timesheet/xlsx_left_out.rs")]
pub mod xlsx;

pub use approval::{ApprovalView, ApprovedView};
pub(crate) use view::units;
pub use view::{RowView, TimesheetView};

use crate::answer_room::{AROUND, LIST_BYTES};
use crate::remote::calls;
use crate::{Onus, Sight};
use onus_core::code::Code;
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::refusal::Refusal;
use onus_core::settings::EffortSettings;
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::{About, Dimension, Person, Row, Sheet, Times};
use onus_core::worker::Worker;
use onus_host::zone;
use onus_store::error::{Result as StoreResult, StoreError};
use onus_store::port::Tx;
use onus_store::read::effort::{self, Counted, Period, Used};
use onus_store::registry;
use serde::{Deserialize, Serialize};

/// So many rows a server adds up in one answer, and so many bytes of sessions are in one calendar of it.
const ROWS_MAX: usize = 50_000;
const CALENDAR_BYTES: usize = 4 * LIST_BYTES;

/// A part of a sum would be wrong.
fn too_long(what: &str) -> Refusal {
    Refusal::invalid(format!("there are more {what} than one answer holds"))
        .hint("ask for fewer days, for one worker, or by fewer columns")
}

/// What a timesheet is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    /// The first and the last day, each worker's own.
    pub from: Date,
    pub to: Date,
    pub worker: Option<Handle>,
    pub by: Vec<Dimension>,
}

impl Onus {
    pub fn timesheet(&mut self, ask: &Ask) -> Result<TimesheetView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Timesheet { ask: ask.clone() })? {
            return Ok(answer);
        }
        let workers = self.people(ask.worker.as_ref())?;
        let people = people(&workers, ask.from, ask.to)?;
        let effort = self.settings.effort.clone();
        let (rows, running) = self.ask(|tx| {
            let read = read(tx, people, ask.worker.as_ref(), Seq::MAX)?;
            Ok((read.rows(tx, &ask.by, &effort)?, read.running))
        })?;
        if self.sight == Sight::Store && rows.len() > ROWS_MAX {
            return Err(too_long("rows"));
        }
        let mut view = TimesheetView::new(ask, &rows, running, &effort);
        if let [worker] = workers.as_slice()
            && ask.worker.is_some()
        {
            view.approvals = self.approvals(worker, ask.from, ask.to)?;
        }
        Ok(view)
    }

    /// Every session of a period, as it counts, with the title of its task: what a calendar shows.
    pub fn calendar(&mut self, ask: &Ask) -> Result<ics::Calendar, Refusal> {
        if let Some(answer) = self.remote(|| calls::Calendar { ask: ask.clone() })? {
            return Ok(answer);
        }
        let workers = self.people(ask.worker.as_ref())?;
        let people = people(&workers, ask.from, ask.to)?;
        let is_server = self.sight == Sight::Store;
        self.ask(|tx| {
            let uid = onus_store::load::workspace(tx)?.uid;
            let mut events = Vec::new();
            let period = period(&people, ask.worker.as_ref(), Seq::MAX);
            let corrections = effort::corrections(tx, period.as_of)?;
            effort::sessions(tx, &period, &corrections, &mut |session| {
                if touches(&people, &session) {
                    events.push(ics::Event::new(&session).map_err(StoreError::Corrupt)?);
                }
                Ok(())
            })?;
            let mut bytes = 0;
            for event in &mut events {
                event.title = effort::title(tx, &event.task)?;
                bytes += event.title.len() + AROUND;
                if is_server && bytes > CALENDAR_BYTES {
                    return Ok(None);
                }
            }
            events.sort_by_key(|event| (event.from, event.session));
            Ok(Some(ics::Calendar { uid, events, now: tx.now()?.wall }))
        })?
        .ok_or_else(|| too_long("sessions"))
    }

    /// The sessions of one worker's days, in order.
    pub(crate) fn session_ids(&mut self, ask: &Ask) -> Result<Vec<Seq>, Refusal> {
        let workers = self.people(ask.worker.as_ref())?;
        let people = people(&workers, ask.from, ask.to)?;
        self.ask(|tx| {
            let mut found = Vec::new();
            let period = period(&people, ask.worker.as_ref(), Seq::MAX);
            let corrections = effort::corrections(tx, period.as_of)?;
            effort::sessions(tx, &period, &corrections, &mut |session| {
                if touches(&people, &session) {
                    found.push((session.from, session.id));
                }
                Ok(())
            })?;
            found.sort_unstable();
            Ok(found.into_iter().map(|(_, id)| id).collect())
        })
    }

    /// The zone of a worker's days; the world's where nobody is named.
    pub fn zone_of(&mut self, worker: Option<&Handle>) -> Result<String, Refusal> {
        if let Some(answer) = self.remote(|| calls::ZoneOf { worker: worker.cloned() })? {
            return Ok(answer);
        }
        let found = match worker {
            Some(worker) => self.ask(|tx| onus_store::load::worker(tx, worker))?,
            None => None,
        };
        Ok(found.map_or_else(|| "UTC".to_owned(), |worker| worker.tz))
    }

    /// The day that it is for a worker.
    pub fn today(&mut self, worker: Option<&Handle>) -> Result<Date, Refusal> {
        if let Some(answer) = self.remote(|| calls::Today { worker: worker.cloned() })? {
            return Ok(answer);
        }
        let zone = self.zone_of(worker)?;
        let now = self.now()?;
        zone::date(&zone, now).map_err(Refusal::invalid)
    }

    pub(crate) fn people(&mut self, only: Option<&Handle>) -> Result<Vec<Worker>, Refusal> {
        let rows = self.ask(|tx| registry::workers(tx, only))?;
        match only {
            Some(handle) if rows.is_empty() => {
                Err(Refusal::new(Code::UnknownName, format!("{handle} is not registered"))
                    .hint("onus worker list"))
            }
            _ => Ok(rows.into_iter().map(|row| row.worker).collect()),
        }
    }
}

/// Whether a session has a part in its worker's own days.
fn touches(people: &[Person], session: &Counted<'_>) -> bool {
    let whose = people.iter().find(|person| person.handle.as_str() == session.worker);
    whose.is_some_and(|person| person.days.touch(session.from, session.to))
}

fn people(workers: &[Worker], from: Date, to: Date) -> Result<Vec<Person>, Refusal> {
    let mut people: Vec<Person> = Vec::with_capacity(workers.len());
    let mut zones: std::collections::HashMap<&str, onus_core::timesheet::Days> = Default::default();
    for worker in workers {
        let days = match zones.get(worker.tz.as_str()) {
            Some(days) => days.clone(),
            None => {
                let days = zone::days(&worker.tz, from, to).map_err(Refusal::invalid)?;
                zones.insert(&worker.tz, days.clone());
                days
            }
        };
        people.push(Person { handle: worker.handle.clone(), kind: worker.kind, days });
    }
    Ok(people)
}

/// From the first moment of anybody's first day to the last moment of anybody's last.
fn period<'a>(people: &[Person], worker: Option<&'a Handle>, as_of: Seq) -> Period<'a> {
    let from = people.iter().map(|person| person.days.begin()).min().unwrap_or(Timestamp(0));
    let to = people.iter().map(|person| person.days.end()).max().unwrap_or(Timestamp(0));
    Period { from, to, as_of, worker }
}

/// A sheet and how many of its sessions still run.
struct Read {
    sheet: Sheet,
    running: i64,
}

/// Reads a period in one pass, as the record was at the entry `as_of`.
fn read(tx: &mut dyn Tx, people: Vec<Person>, worker: Option<&Handle>, as_of: Seq) -> StoreResult<Read> {
    let period = period(&people, worker, as_of);
    let mut sheet = Sheet::new(people);
    let (mut running, mut span, mut own) = (0, None, Vec::new());
    let corrections = effort::corrections(tx, as_of)?;
    effort::sessions(tx, &period, &corrections, &mut |session| {
        running += i64::from(session.is_running && session.to >= period.from);
        let (first, last) = span.unwrap_or((session.id, session.id));
        span = Some((first.min(session.id), last.max(session.id)));
        if worker.is_some() {
            own.push(session.id);
        }
        let times = if session.is_corrected { Times::Corrected } else { Times::Recorded };
        let Counted { worker, task, from, to, .. } = session;
        sheet.session(worker, task, from, to, times).map_err(StoreError::Corrupt)
    })?;
    let mut take = |used: Used| {
        let counts = used.counts();
        sheet.usage(&used.worker, &used.task, used.began, &counts).map_err(StoreError::Corrupt)
    };
    match (worker, span) {
        (Some(_), _) => effort::used_in(tx, own.into_iter(), as_of, &corrections, &mut take)?,
        (None, Some(span)) => effort::used(tx, span, as_of, &corrections, &mut take)?,
        (None, None) => {}
    }
    Ok(Read { sheet, running })
}

impl Read {
    fn rows(&self, tx: &mut dyn Tx, by: &[Dimension], settings: &EffortSettings) -> StoreResult<Vec<Row>> {
        let asks = by.iter().any(|dimension| matches!(dimension, Dimension::Sprint | Dimension::Type));
        let about = if asks || !settings.billable.is_empty() {
            let about = |task: &TaskId| effort::about(tx, task);
            self.sheet.tasks().iter().map(about).collect::<StoreResult<Vec<About>>>()?
        } else {
            Vec::new()
        };
        Ok(self.sheet.rows(by, &about, settings))
    }
}
