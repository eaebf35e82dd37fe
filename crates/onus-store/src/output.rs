//! What sessions printed, piece by piece.

use crate::codec::row;
use crate::error::Result;
use crate::port::Tx;
use crate::sql;
use crate::tables::OutputRow;
use onus_core::id::Seq;
use onus_core::output::{KeptOutput, OutputSum};
use onus_core::session::OutputState;
use onus_core::time::Timestamp;
use std::ops::Range;

/// The kind of the fact that says how an output ended.
pub const CLOSED: &str = "output";

sql! {
    pub(crate) LAST(session) = "SELECT position, at, text FROM output WHERE workspace = :workspace AND \
        session = :session ORDER BY position DESC LIMIT 1";
    pub(crate) FROM(session, from, limit) = "SELECT position, at, text FROM output WHERE workspace = :workspace AND \
        session = :session AND position >= coalesce((SELECT max(position) FROM output WHERE workspace = :workspace AND \
        session = :session AND position <= :from), 0) ORDER BY position LIMIT :limit";
    pub(crate) LEAVE_OUT(session, from, to) = "DELETE FROM output WHERE workspace = :workspace AND session = :session \
        AND position >= :from AND position < :to";
    pub(crate) IS_CLOSED(session) = "SELECT seq FROM session_fact WHERE workspace = :workspace AND kind = 'output' AND \
        session = :session ORDER BY seq LIMIT 1";
    /// Every output that is on record.
    pub(crate) EVERY_CLOSED = "SELECT f.session, f.task, f.seq, f.key FROM session_fact f WHERE f.workspace = :workspace \
        AND f.kind = 'output' ORDER BY f.session, f.seq";
}

/// A part of what a session printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub position: i64,
    pub at: Timestamp,
    pub text: String,
}

impl Piece {
    pub fn end(&self) -> i64 {
        self.position.saturating_add(i64::try_from(self.text.len()).unwrap_or(i64::MAX))
    }
}

fn piece(mut row: crate::port::Row) -> Result<Piece> {
    Ok(Piece { position: row.int()?, at: Timestamp(row.int()?), text: row.text()? })
}

pub fn last(tx: &mut dyn Tx, session: Seq) -> Result<Option<Piece>> {
    tx.row(&LAST { session })?.map(piece).transpose()
}

/// At most `limit` pieces, beginning with the one that has the byte `from`.
pub fn pieces(tx: &mut dyn Tx, session: Seq, from: i64, limit: i64) -> Result<Vec<Piece>> {
    let mut found = Vec::new();
    tx.each(&FROM { session, from, limit }, &mut |row| {
        found.push(piece(row)?);
        Ok(())
    })?;
    Ok(found)
}

pub fn add(tx: &mut dyn Tx, session: Seq, piece: &Piece) -> Result<()> {
    let Piece { position, at, text } = piece;
    tx.run_one(&row!(OutputRow { session: session, position: *position, at: at.0, text: text.as_str() }))
}

/// The pieces that begin there go.
pub fn leave_out(tx: &mut dyn Tx, session: Seq, part: &Range<i64>) -> Result<()> {
    if part.is_empty() {
        return Ok(());
    }
    tx.run(&LEAVE_OUT { session, from: part.start, to: part.end }).map(drop)
}

pub fn is_closed(tx: &mut dyn Tx, session: Seq) -> Result<bool> {
    Ok(tx.row(&IS_CLOSED { session })?.is_some())
}

pub(crate) fn state(tx: &mut dyn Tx, session: Seq) -> Result<OutputState> {
    if is_closed(tx, session)? {
        return Ok(OutputState::Closed);
    }
    Ok(kept(tx, session)?.map_or(OutputState::None, OutputState::Open))
}

/// What is kept of it; none where nothing is.
pub fn kept(tx: &mut dyn Tx, session: Seq) -> Result<Option<KeptOutput>> {
    let mut sum = OutputSum::default();
    tx.each(&FROM { session, from: 0_i64, limit: i64::MAX }, &mut |row| {
        let piece = piece(row)?;
        sum.add(piece.position, &piece.text);
        Ok(())
    })?;
    Ok(sum.kept())
}

/// An output whose pieces are no longer those that are on record.
#[derive(Debug)]
pub struct ChangedOutput {
    pub session: Seq,
    pub task: String,
    pub seq: Seq,
}

/// Compares every output that is on record with its pieces.
pub fn changed(tx: &mut dyn Tx) -> Result<Vec<ChangedOutput>> {
    let mut closed = Vec::new();
    tx.each(&EVERY_CLOSED {}, &mut |mut row| {
        closed.push((row.int()?, row.text()?, row.int()?, row.opt_text()?));
        Ok(())
    })?;
    let mut found = Vec::new();
    for (session, task, seq, sha256) in closed {
        if kept(tx, session)?.map(|kept| kept.sha256) != sha256 {
            found.push(ChangedOutput { session, task, seq });
        }
    }
    Ok(found)
}
