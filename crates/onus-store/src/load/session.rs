//! A session as it stands on record, with its neighbours.

use crate::error::Result;
use crate::port::{Row, Tx};
use crate::sql;
use onus_core::id::{Handle, Seq, WorkstationName};
use onus_core::session::{Counts, OutputState, Proposal, Recorded, Usage};
use onus_core::time::Timestamp;

/// Sessions, each with its last correction, if there is one.
macro_rules! corrected_session {
    () => {
        "session s LEFT JOIN session_fact c ON c.workspace = s.workspace AND c.seq = (SELECT f.seq FROM session_fact f \
         WHERE f.workspace = s.workspace AND f.kind = 'corrected' AND f.session = s.id ORDER BY f.seq DESC LIMIT 1) "
    };
}

pub(crate) use corrected_session;

sql! {
    pub(crate) RECORDED(session) = "SELECT s.task, s.worker, s.workstation, coalesce(c.started_at, s.started_at), \
        coalesce(c.ended_at, s.ended_at), a.assigned_at, a.ended_at FROM ", corrected_session!(),
        "JOIN assignment a ON a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch \
        WHERE s.workspace = :workspace AND s.id = :session";
    PROPOSAL(session) = "SELECT f.seq, f.started_at, f.ended_at, l.actor FROM session_fact f \
        JOIN ledger l ON l.workspace = f.workspace AND l.seq = f.seq \
        WHERE f.workspace = :workspace AND f.kind = 'proposed' AND f.session = :session ORDER BY f.seq DESC LIMIT 1";
    pub(crate) BEFORE(worker, workstation, session) = "SELECT coalesce(c.ended_at, s.ended_at) FROM ",
        corrected_session!(),
        "WHERE s.workspace = :workspace AND s.worker = :worker AND s.workstation = :workstation AND s.id < :session \
        ORDER BY s.id DESC LIMIT 1";
    pub(crate) AFTER(worker, workstation, session) = "SELECT coalesce(c.started_at, s.started_at) FROM ",
        corrected_session!(),
        "WHERE s.workspace = :workspace AND s.worker = :worker AND s.workstation = :workstation AND s.id > :session \
        ORDER BY s.id LIMIT 1";
    pub(crate) LAST(worker, workstation) reads [worker] = "SELECT coalesce(c.ended_at, s.ended_at) FROM ",
        corrected_session!(),
        "WHERE s.workspace = :workspace AND s.worker = :worker AND s.workstation = :workstation ORDER BY s.id DESC \
        LIMIT 1";
    pub(crate) LAST_USAGE(session, key) = "SELECT key, source, model, input_tokens, output_tokens, cache_read_tokens, \
        cache_creation_tokens, cost_micros, turns FROM session_fact \
        WHERE workspace = :workspace AND kind = 'used' AND session = :session AND key = :key ORDER BY seq DESC LIMIT 1";
}

/// When a worker's last session in a workstation ended, as it counts.
pub(super) fn rested(
    tx: &mut dyn Tx,
    worker: &Handle,
    workstation: &WorkstationName,
) -> Result<Option<Timestamp>> {
    moment(tx.row(&LAST { worker, workstation })?)
}

pub(crate) fn recorded(tx: &mut dyn Tx, id: Seq, usage_key: Option<&str>) -> Result<Option<Recorded>> {
    let Some(mut row) = tx.row(&RECORDED { session: id })? else {
        return Ok(None);
    };
    let task = row.parsed()?;
    let (worker, workstation): (Handle, WorkstationName) = (row.parsed()?, row.parsed()?);
    let (started_at, ended_at) = (Timestamp(row.int()?), row.opt_int()?.map(Timestamp));
    let (held_from, held_to) = (Timestamp(row.int()?), row.opt_int()?.map(Timestamp));
    let proposal = tx.row(&PROPOSAL { session: id })?.map(proposal).transpose()?;
    let before = moment(tx.row(&BEFORE { worker: &worker, workstation: &workstation, session: id })?)?;
    let after = moment(tx.row(&AFTER { worker: &worker, workstation: &workstation, session: id })?)?;
    let last = usage_key.map(|key| tx.row(&LAST_USAGE { session: id, key })).transpose()?;
    let usage = last.flatten().map(|mut row| usage(&mut row)).transpose()?;
    Ok(Some(Recorded {
        id,
        task,
        worker,
        started_at,
        ended_at,
        before,
        after,
        held_from,
        held_to,
        proposal,
        usage,
        output: OutputState::None,
    }))
}

fn proposal(mut row: Row) -> Result<Proposal> {
    let seq = row.int()?;
    let (started_at, ended_at) = (Timestamp(row.int()?), Timestamp(row.int()?));
    Ok(Proposal { seq, by: row.parsed()?, started_at, ended_at })
}

fn moment(row: Option<Row>) -> Result<Option<Timestamp>> {
    row.map_or(Ok(None), |mut row| Ok(row.opt_int()?.map(Timestamp)))
}

pub(crate) fn usage(row: &mut Row) -> Result<Usage> {
    Ok(Usage { key: row.text()?, source: row.text()?, model: row.opt_text()?, counts: counts(row)? })
}

fn counts(row: &mut Row) -> Result<Counts> {
    Ok(Counts {
        input_tokens: row.int()?,
        output_tokens: row.int()?,
        cache_read_tokens: row.int()?,
        cache_creation_tokens: row.int()?,
        cost_micros: row.opt_int()?,
        turns: row.opt_int()?.unwrap_or(0),
    })
}
