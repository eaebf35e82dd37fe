//! The index of words: made from the record by whoever searches, so that nobody else pays for it. An entry is read once; what
//! a task said before an edit still finds it.

use crate::error::{Result, StoreError};
use crate::load;
use crate::port::{Row, Tx};
use crate::sql;
use onus_core::id::Seq;
use onus_core::search::words;

/// So many entries are read in one transaction: other writers wait meanwhile.
const STEP: Seq = 5_000;

/// Everything that a task says of itself.
const SAYS: &str = "t.id || ' ' || t.title || ' ' || COALESCE(t.tags, '') || ' ' || COALESCE(t.origin_ask_ref, '') || ' ' || \
     COALESCE(t.body, '') ";

sql! {
    UPTO = "SELECT seq FROM word_upto WHERE workspace = :workspace";
    BEGIN = "INSERT INTO word_upto (workspace, seq) VALUES (:workspace, 0)";
    MOVE(was, upto) = "UPDATE word_upto SET seq = :upto WHERE workspace = :workspace AND seq = :was";
    pub(crate) NEW_TASKS(after, upto) = "SELECT t.born, t.born, ", SAYS, "FROM task t WHERE +t.workspace = :workspace AND t.born > :after \
        AND t.born <= :upto";
    pub(crate) EDITED(after, upto) = "SELECT l.seq, t.born, ", SAYS, "FROM ledger l JOIN task t ON t.workspace = l.workspace AND \
        t.id = l.task WHERE +l.workspace = :workspace AND l.seq > :after AND l.seq <= :upto AND l.verb = 'edited'";
    pub(crate) NEW_NOTES(after, upto) = "SELECT n.seq, t.born, n.text FROM note n JOIN task t ON t.workspace = n.workspace AND \
        t.id = n.task WHERE +n.workspace = :workspace AND n.seq > :after AND n.seq <= :upto";
    INSERT_WORD(word, seq, born) touches [] row [seq, word] = "INSERT INTO word (workspace, word, seq, born) VALUES \
        (:workspace, :word, :seq, :born)";
}

/// How many entries of the record nobody has read for the index.
pub fn behind(tx: &mut dyn Tx) -> Result<Seq> {
    Ok(load::workspace(tx)?.last_seq - upto(tx)?.unwrap_or(0))
}

fn upto(tx: &mut dyn Tx) -> Result<Option<Seq>> {
    tx.row(&UPTO {})?.map(|mut row| row.int()).transpose()
}

/// Reads on in the record, a bounded piece. Says how many entries are left.
pub fn catch_up(tx: &mut dyn Tx) -> Result<Seq> {
    let last = load::workspace(tx)?.last_seq;
    let was = match upto(tx)? {
        Some(seq) => seq,
        None => {
            tx.run_one(&BEGIN {})?;
            0
        }
    };
    let upto = last.min(was + STEP);
    if upto <= was {
        return Ok(0);
    }
    let mut said = tx.rows(&NEW_TASKS { after: was, upto })?;
    said.extend(tx.rows(&EDITED { after: was, upto })?);
    said.extend(tx.rows(&NEW_NOTES { after: was, upto })?);
    for row in said {
        insert(tx, row)?;
    }
    tx.run_one(&MOVE { was, upto })?;
    Ok(last - upto)
}

fn insert(tx: &mut dyn Tx, mut row: Row) -> Result<()> {
    let (seq, born, text) = (row.int()?, row.int()?, row.text()?);
    for word in words(&text) {
        tx.run_one(&INSERT_WORD { word: word.as_str(), seq, born }).map_err(|error| match error {
            StoreError::Guard(detail) => StoreError::Corrupt(format!("the index of words: {detail}")),
            other => other,
        })?;
    }
    Ok(())
}
