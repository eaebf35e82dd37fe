//! What a process that stays was told was committed, held against the database that it finds after a lost connection
//! (mission A7): a standby that took over without the last writes shows, also where nothing was anchored since.

use onus_core::hash::Digest;
use onus_core::id::{Generation, Seq};
use onus_store::error::Result;
use onus_store::port::Tx;
use onus_store::read::ledger;

/// An entry of the ledger, told apart from every other that could have its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    generation: Generation,
    seq: Seq,
    hash: Digest,
}

/// The last entry that was committed through this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    last: Option<Written>,
    /// The connection that is known to lead to a database with that entry.
    connection: Option<u64>,
}

impl Memory {
    /// The store was opened anew: of its connections nothing is known.
    pub fn doubt(&mut self) {
        self.connection = None;
    }

    /// Whether the database lacks the entry. It is asked once for each connection, and as long as it says no. A person who
    /// has raised the generation since has accepted the loss.
    pub(crate) fn is_lacking(&mut self, tx: &mut dyn Tx, generation: Generation) -> Result<bool> {
        let Some(last) = self.last.filter(|last| last.generation >= generation) else {
            return Ok(false);
        };
        if self.connection == Some(tx.connection()) {
            return Ok(false);
        }
        let is_there = ledger::entry(tx, last.seq)?.is_some_and(|entry| entry.hash == last.hash);
        if is_there {
            self.connection = Some(tx.connection());
        }
        Ok(!is_there)
    }

    /// An entry that the transaction adds. What the database may lack is not forgotten over it.
    pub(crate) fn keep(&mut self, tx: &dyn Tx, generation: Generation, seq: Seq, hash: Digest) {
        let connection = Some(tx.connection());
        if self.connection == connection || self.last.is_none_or(|last| last.generation < generation) {
            *self = Memory { last: Some(Written { generation, seq, hash }), connection };
        }
    }
}
