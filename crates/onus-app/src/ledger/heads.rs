//! The last entry of every chain, as the record is read from its beginning.

use super::names::Names;
use onus_core::hash::Digest;
use onus_core::id::Seq;
use onus_core::ledger::{Head, leaf, root_of_leaves};
use onus_store::error::Result;
use onus_store::port::Tx;
use onus_store::read::ledger;

/// The name of the workspace's own chain.
pub(super) const WORKSPACE_CHAIN: &str = "";

#[derive(Debug, Clone, Copy)]
struct Last {
    seq: Seq,
    hash: Digest,
    /// Kept from one root to the next: most chains rest most of the time.
    leaf: Option<Digest>,
}

#[derive(Debug, Default)]
pub(super) struct Heads {
    pub(super) names: Names,
    last: Vec<Option<Last>>,
    /// Chains in the order of their names.
    sorted: Vec<usize>,
    pub(super) entries: i64,
}

impl Heads {
    /// The heads as they were right after the entry `until`.
    pub(super) fn until(tx: &mut dyn Tx, until: Seq) -> Result<Heads> {
        let mut heads = Heads::default();
        ledger::heads(tx, 0, &mut |seq, task, hash| {
            if seq <= until {
                heads.advance(task.as_deref().unwrap_or(WORKSPACE_CHAIN), seq, hash);
            }
            Ok(())
        })?;
        Ok(heads)
    }

    /// Takes the next entry of a chain and gives the chain's number.
    pub(super) fn advance(&mut self, chain: &str, seq: Seq, hash: Digest) -> usize {
        let number = self.names.number(chain);
        if self.last.len() <= number {
            self.last.resize(number + 1, None);
        }
        if self.last[number].is_none() {
            self.sorted.push(number);
        }
        self.last[number] = Some(Last { seq, hash, leaf: None });
        self.entries += 1;
        number
    }

    pub(super) fn chains(&self) -> i64 {
        self.sorted.len() as i64
    }

    pub(super) fn root(&mut self) -> Digest {
        self.sort();
        let (names, last) = (&self.names, &mut self.last);
        let leaves = self.sorted.iter().filter_map(|number| {
            let head = last[*number].as_mut()?;
            Some(*head.leaf.get_or_insert_with(|| leaf(names.name(*number), head.seq, &head.hash)))
        });
        root_of_leaves(leaves.collect())
    }

    /// The heads that lie behind `after`, by name.
    pub(super) fn since(&mut self, after: Seq) -> Vec<Head> {
        self.sort();
        let heads = self.sorted.iter().filter_map(|number| {
            let head = self.last[*number].filter(|head| head.seq > after)?;
            Some(Head { chain: self.names.name(*number).to_owned(), seq: head.seq, hash: head.hash })
        });
        heads.collect()
    }

    fn sort(&mut self) {
        let names = &self.names;
        // Stable, because what was sorted last time stays in one run.
        self.sorted.sort_by(|a, b| names.name(*a).cmp(names.name(*b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onus_core::ledger::merkle_root;

    #[test]
    fn the_root_is_that_of_the_heads_by_name() {
        let mut heads = Heads::default();
        for (seq, chain) in ["", "T-2", "T-10", "T-2", "", "A-1"].into_iter().enumerate() {
            heads.advance(chain, seq as i64 + 1, Digest([seq as u8; 32]));
            let all = heads.since(0);
            assert!(all.windows(2).all(|pair| pair[0].chain < pair[1].chain));
            assert_eq!(heads.root(), merkle_root(&all));
        }
        assert_eq!((heads.entries, heads.chains()), (6, 4));
        let late: Vec<String> = heads.since(3).into_iter().map(|head| head.chain).collect();
        assert_eq!(late, ["", "A-1", "T-2"]);
    }
}
