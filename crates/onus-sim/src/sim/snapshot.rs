//! What is in the store after a step, read by statements of the simulation's own past everything that fails.

use super::store::Seat;
use onus_core::id::{Epoch, Handle, RequestId, Seq, TaskId, WorkstationName};
use onus_core::ledger::Entry;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_core::time::Timestamp;
use onus_store::error::Result as StoreResult;
use onus_store::port::{Row, Store as _, Tx};
use onus_store::read::ledger::{self, LedgerPart};
use onus_store::read::queue::{self, After, Filter, Which};
use onus_store::{load, sql};

sql! {
    LIVE = "SELECT task, epoch, assignee, workstation, lane FROM assignment \
        WHERE workspace = :workspace AND ended_at IS NULL ORDER BY task, epoch";
    SESSIONS = "SELECT s.id, s.task, s.worker, s.workstation, s.started_at, s.ended_at, a.renewed_at \
        FROM session s JOIN assignment a ON a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch \
        WHERE s.workspace = :workspace ORDER BY s.id";
    CORRECTED = "SELECT session, started_at, ended_at FROM session_fact \
        WHERE workspace = :workspace AND kind = 'corrected' ORDER BY seq";
}

/// An assignment that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Live {
    pub task: TaskId,
    pub epoch: Epoch,
    pub assignee: Handle,
    pub workstation: WorkstationName,
    pub lane: Option<i64>,
}

/// A session, as it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session {
    pub id: Seq,
    pub task: TaskId,
    pub worker: Handle,
    pub workstation: WorkstationName,
    pub from: Timestamp,
    pub to: Option<Timestamp>,
    /// When the holder was last seen.
    pub renewed: Timestamp,
}

/// The store after a step.
#[derive(Debug)]
pub(super) struct Seen {
    pub uid: String,
    /// The entry that was the last one before the step, as it is now.
    pub known: Option<Entry>,
    /// Everything that came since.
    pub entries: Vec<Entry>,
    pub tasks: Vec<Task>,
    pub live: Vec<Live>,
    pub sessions: Vec<Session>,
    /// Where each of the step's requests is on record.
    pub requests: Vec<Option<Seq>>,
}

/// More than any run has.
const ALL: i64 = 1_000_000;

impl Seen {
    pub(super) fn look(witness: &mut Seat, known: Seq, requests: &[RequestId]) -> Result<Seen, Refusal> {
        let seen = witness.store.read(|tx| {
            Ok(Seen {
                uid: load::workspace(tx)?.uid,
                known: ledger::entry(tx, known)?,
                entries: ledger::log(tx, &LedgerPart::After(known), ALL)?,
                tasks: queue::list(tx, Which::All, &Filter::default(), After::START, ALL)?,
                live: live(tx)?,
                sessions: sessions(tx)?,
                requests: requests
                    .iter()
                    .map(|request| Ok(load::replay(tx, request)?.map(|replay| replay.seq)))
                    .collect::<StoreResult<_>>()?,
            })
        });
        Ok(seen?)
    }
}

fn live(tx: &mut dyn Tx) -> StoreResult<Vec<Live>> {
    let read = |mut row: Row| {
        Ok(Live {
            task: row.parsed()?,
            epoch: row.int()?,
            assignee: row.parsed()?,
            workstation: row.parsed()?,
            lane: row.opt_int()?,
        })
    };
    tx.rows(&LIVE {})?.into_iter().map(read).collect()
}

fn sessions(tx: &mut dyn Tx) -> StoreResult<Vec<Session>> {
    let read = |mut row: Row| {
        Ok(Session {
            id: row.int()?,
            task: row.parsed()?,
            worker: row.parsed()?,
            workstation: row.parsed()?,
            from: Timestamp(row.int()?),
            to: row.opt_int()?.map(Timestamp),
            renewed: Timestamp(row.int()?),
        })
    };
    let mut sessions: Vec<Session> =
        tx.rows(&SESSIONS {})?.into_iter().map(read).collect::<StoreResult<_>>()?;
    // The last correction counts.
    for mut row in tx.rows(&CORRECTED {})? {
        let (id, from, to) = (row.int()?, Timestamp(row.int()?), Timestamp(row.int()?));
        if let Some(session) = sessions.iter_mut().find(|session| session.id == id) {
            (session.from, session.to) = (from, Some(to));
        }
    }
    Ok(sessions)
}
