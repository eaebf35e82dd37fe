//! The fast pass: each chain is hashed, followed and played again while the next entries are still being read.
//!
//! It only says which chains do not hold. Those are few, and looked at closely afterwards (see `locate`).

use super::fold::{Fold, Weigh};
use super::row_checksum::{Balance, Fact, Scale};
use onus_core::hash::Digest;
use onus_core::id::{Epoch, Seq};
use onus_core::ledger::EntryRef;
use onus_core::time::Timestamp;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// How much is handed over at once, and how much may wait.
const BATCH: usize = 256;
const WAITING: usize = 4;
const WORKERS_MAX: usize = 4;

/// Something about one task's chain.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    /// The task's row: how long the chain is, its last hash, and what else it says.
    Row { version: i64, head: Digest, said: Fact },
    /// What a row beside the task's own says.
    Said(Fact),
    /// A row that makes no sense.
    Nonsense,
    /// The next of the batch's entries.
    Entry,
}

/// An entry whose texts lie in its batch.
#[derive(Debug, Clone, Copy)]
struct Packed {
    seq: Seq,
    at: Timestamp,
    epoch: Epoch,
    prev: Digest,
    hash: Digest,
    start: usize,
    /// Where task, actor, workstation, verb and data end.
    ends: [usize; 5],
    has_task: bool,
    has_workstation: bool,
}

/// What is handed over at once. It is filled and emptied without asking for memory each time.
#[derive(Debug, Default)]
struct ChainBatch {
    items: Vec<(usize, Item)>,
    /// Apart from the items: most of those are a third as large.
    entries: Vec<Packed>,
    text: String,
}

impl ChainBatch {
    fn pack(&mut self, entry: &EntryRef<'_>) {
        let start = self.text.len();
        let parts =
            [entry.task.unwrap_or(""), entry.actor, entry.workstation.unwrap_or(""), entry.verb, entry.data];
        let ends = parts.map(|part| {
            self.text.push_str(part);
            self.text.len()
        });
        self.entries.push(Packed {
            seq: entry.seq,
            at: entry.at,
            epoch: entry.epoch,
            prev: entry.prev,
            hash: entry.hash,
            start,
            ends,
            has_task: entry.task.is_some(),
            has_workstation: entry.workstation.is_some(),
        });
    }

    fn unpack(&self, packed: &Packed) -> EntryRef<'_> {
        let [task, actor, workstation, verb, data] = packed.ends;
        EntryRef {
            seq: packed.seq,
            task: packed.has_task.then(|| &self.text[packed.start..task]),
            at: packed.at,
            actor: &self.text[task..actor],
            workstation: packed.has_workstation.then(|| &self.text[actor..workstation]),
            epoch: packed.epoch,
            verb: &self.text[workstation..verb],
            data: &self.text[verb..data],
            prev: packed.prev,
            hash: packed.hash,
        }
    }

    fn clear(&mut self) {
        self.items.clear();
        self.entries.clear();
        self.text.clear();
    }
}

/// Hands items to as many threads as there are processors. One chain always goes to the same thread, in order.
#[derive(Debug)]
pub(super) struct Crew<'scope> {
    hands: Vec<Hand<'scope>>,
}

#[derive(Debug)]
struct Hand<'scope> {
    batch: ChainBatch,
    sender: SyncSender<ChainBatch>,
    /// Batches come back to be filled again.
    returned: Receiver<ChainBatch>,
    thread: ScopedJoinHandle<'scope, Vec<usize>>,
}

impl Hand<'_> {
    fn send_if_full(&mut self) -> Result<(), Lost> {
        if self.batch.items.len() < BATCH {
            return Ok(());
        }
        let mut empty = self.returned.try_recv().unwrap_or_default();
        empty.clear();
        self.sender.send(std::mem::replace(&mut self.batch, empty)).map_err(|_| Lost)
    }
}

/// A thread of the crew is gone.
#[derive(Debug)]
pub(super) struct Lost;

impl<'scope> Crew<'scope> {
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        workspace: &'env str,
        scale: &Scale,
    ) -> Self {
        let count = std::thread::available_parallelism().map_or(1, |n| n.get().min(WORKERS_MAX));
        let hands = (0..count).map(|first| {
            let (sender, received) = sync_channel(WAITING);
            let (back, returned) = channel();
            let bench = Bench { workspace, first, stride: count, scale: scale.clone(), chains: Vec::new() };
            let thread = scope.spawn(move || bench.work(&received, &back));
            Hand { batch: ChainBatch::default(), sender, returned, thread }
        });
        Crew { hands: hands.collect() }
    }

    pub(super) fn hand_over(&mut self, chain: usize, item: Item) -> Result<(), Lost> {
        let count = self.hands.len();
        let hand = &mut self.hands[chain % count];
        hand.batch.items.push((chain, item));
        hand.send_if_full()
    }

    pub(super) fn hand_over_entry(&mut self, chain: usize, entry: &EntryRef<'_>) -> Result<(), Lost> {
        let count = self.hands.len();
        let hand = &mut self.hands[chain % count];
        hand.batch.pack(entry);
        hand.batch.items.push((chain, Item::Entry));
        hand.send_if_full()
    }

    /// The chains that do not hold.
    pub(super) fn finish(self) -> Result<Vec<usize>, Lost> {
        let mut suspects = Vec::new();
        let mut threads = Vec::new();
        for Hand { batch, sender, returned, thread } in self.hands {
            sender.send(batch).map_err(|_| Lost)?;
            threads.push((thread, returned));
        }
        for (thread, _returned) in threads {
            suspects.extend(thread.join().map_err(|_| Lost)?);
        }
        suspects.sort_unstable();
        Ok(suspects)
    }
}

/// One thread's chains.
#[derive(Debug)]
struct Bench<'env> {
    workspace: &'env str,
    /// Its chains are `first`, `first + stride` and so on.
    first: usize,
    stride: usize,
    scale: Scale,
    chains: Vec<Chain>,
}

#[derive(Debug)]
struct Chain {
    /// What the task's row says; none before it was seen, or where there is none.
    row: Option<(i64, Digest)>,
    count: i64,
    last: Digest,
    fold: Option<Box<Fold>>,
    asked: Fact,
    balance: Balance,
    is_suspect: bool,
}

impl Bench<'_> {
    fn work(mut self, batches: &Receiver<ChainBatch>, back: &Sender<ChainBatch>) -> Vec<usize> {
        for batch in batches {
            let mut entries = batch.entries.iter().map(|packed| batch.unpack(packed));
            for (chain, item) in &batch.items {
                let at = chain / self.stride;
                if self.chains.len() <= at {
                    self.chains.resize_with(at + 1, Chain::new);
                }
                let chain = &mut self.chains[at];
                match item {
                    Item::Row { version, head, said } => {
                        chain.row = Some((*version, *head));
                        chain.balance.take(*said);
                    }
                    Item::Said(fact) => chain.balance.take(*fact),
                    Item::Nonsense => chain.is_suspect = true,
                    Item::Entry => {
                        let entry = entries.next().filter(|_| !chain.is_suspect);
                        let follows =
                            entry.and_then(|entry| chain.follow(self.workspace, &mut self.scale, &entry));
                        chain.is_suspect = follows.is_none();
                    }
                }
            }
            // Nobody takes the last ones back.
            drop(back.send(batch));
        }
        let suspects = self.chains.iter().enumerate().filter(|(_, chain)| !chain.holds());
        suspects.map(|(at, _)| at * self.stride + self.first).collect()
    }
}

impl Chain {
    fn new() -> Chain {
        Chain {
            row: None,
            count: 0,
            last: Digest::ZERO,
            fold: None,
            asked: Fact::default(),
            balance: Balance::default(),
            is_suspect: false,
        }
    }

    /// `None` when the entry does not follow.
    fn follow(&mut self, workspace: &str, scale: &mut Scale, entry: &EntryRef<'_>) -> Option<()> {
        if entry.prev != self.last || entry.expected_hash(workspace) != entry.hash {
            return None;
        }
        self.last = entry.hash;
        self.count += 1;
        let stamped = entry.open().ok()?;
        let mut fold = self.fold.take().unwrap_or_default();
        let mut weigh = Weigh { scale, balance: &mut self.balance, asked: &mut self.asked };
        fold.step(stamped, &mut weigh).ok()?;
        // The row tells when the chain is complete: nothing of it need be kept until then.
        if self.row.is_some_and(|(version, _)| version == self.count) {
            let task = fold.finish(&mut weigh)?;
            weigh.task(&task);
        } else {
            self.fold = Some(fold);
        }
        Some(())
    }

    fn holds(&self) -> bool {
        !self.is_suspect && self.balance.is_even() && self.row == Some((self.count, self.last))
    }
}
