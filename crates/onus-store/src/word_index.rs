//! The index of words: made from the record by whoever searches, so that nobody else pays for it. An entry is read once; what
//! a task said before an edit still finds it.

use crate::error::{Result, StoreError};
use crate::load;
use crate::port::Tx;
use crate::sql;
use onus_core::id::Seq;
use onus_core::search::words;

/// So many entries are looked through in one transaction, and so many texts read.
const STEP: Seq = 5_000;
const TEXTS: i64 = 64;

/// With so many words a transaction ends: other writers wait meanwhile, and a text may have two thousand.
const WORDS: usize = 2_000;

/// Everything that a task says of itself.
const SAYS: &str = "t.id || ' ' || t.title || ' ' || COALESCE(t.tags, '') || ' ' || COALESCE(t.origin_ask_ref, '') || ' ' || \
     COALESCE(t.body, '') ";

sql! {
    UPTO = "SELECT seq FROM word_upto WHERE workspace = :workspace";
    BEGIN = "INSERT INTO word_upto (workspace, seq) VALUES (:workspace, 0)";
    MOVE(was, upto) = "UPDATE word_upto SET seq = :upto WHERE workspace = :workspace AND seq = :was";
    pub(crate) NEW_TASKS(after, upto, limit) = "SELECT t.born, t.born, ", SAYS, "FROM task t WHERE +t.workspace = :workspace AND t.born > :after \
        AND t.born <= :upto ORDER BY t.born LIMIT :limit";
    pub(crate) EDITED(after, upto, limit) = "SELECT l.seq, t.born, ", SAYS, "FROM ledger l JOIN task t ON t.workspace = l.workspace AND \
        t.id = l.task WHERE +l.workspace = :workspace AND l.seq > :after AND l.seq <= :upto AND l.verb = 'edited' \
        ORDER BY l.seq LIMIT :limit";
    pub(crate) NEW_NOTES(after, upto, limit) = "SELECT n.seq, t.born, n.text FROM note n JOIN task t ON t.workspace = n.workspace AND \
        t.id = n.task WHERE +n.workspace = :workspace AND n.seq > :after AND n.seq <= :upto \
        ORDER BY n.seq LIMIT :limit";
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
    let end = last.min(was + STEP);
    if end <= was {
        return Ok(0);
    }
    let upto = read_on(tx, was, end)?;
    tx.run_one(&MOVE { was, upto })?;
    Ok(last - upto)
}

/// Reads the texts of the entries behind `was`, up to `end` or to what is enough for one transaction. Says up to where.
fn read_on(tx: &mut dyn Tx, was: Seq, end: Seq) -> Result<Seq> {
    let found = [
        tx.rows(&NEW_TASKS { after: was, upto: end, limit: TEXTS })?,
        tx.rows(&EDITED { after: was, upto: end, limit: TEXTS })?,
        tx.rows(&NEW_NOTES { after: was, upto: end, limit: TEXTS })?,
    ];
    let (mut upto, mut said) = (end, Vec::new());
    for rows in found {
        let is_cut = rows.len() as i64 == TEXTS;
        for mut row in rows {
            said.push((row.int()?, row.int()?, row.text()?));
        }
        // What is behind the last one was not read.
        if let Some((seq, ..)) = said.last().filter(|_| is_cut) {
            upto = upto.min(*seq);
        }
    }
    said.retain(|(seq, ..)| *seq <= upto);
    said.sort_by_key(|(seq, ..)| *seq);
    let mut count = 0;
    for one in said.chunk_by(|(one, ..), (other, ..)| one == other) {
        for (seq, born, text) in one {
            count += insert(tx, *seq, *born, text)?;
        }
        if let Some((seq, ..)) = one.first().filter(|_| count >= WORDS) {
            return Ok(*seq);
        }
    }
    Ok(upto)
}

/// Says how many words the text has.
fn insert(tx: &mut dyn Tx, seq: Seq, born: Seq, text: &str) -> Result<usize> {
    let words = words(text);
    for word in &words {
        tx.run_one(&INSERT_WORD { word: word.as_str(), seq, born }).map_err(|error| match error {
            StoreError::Guard(detail) => StoreError::Corrupt(format!("the index of words: {detail}")),
            other => other,
        })?;
    }
    Ok(words.len())
}
