//! The fast pass: each chain is hashed, followed and played again while the next entries are still being read.
//!
//! It only says which chains do not hold. Those are few, and looked at closely afterwards (see `locate`).

use super::balance::{Balance, Fact, Scale};
use super::fold::{Fold, Weigh};
use onus_core::hash::Digest;
use onus_core::id::Seq;
use onus_core::ledger::Entry;
use onus_store::load::Stored;
use onus_store::read::story::{PastAssignment, Session};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// How much is handed over at once, and how much may wait.
const BATCH: usize = 256;
const WAITING: usize = 4;
const WORKERS_MAX: usize = 4;

/// Something about one task's chain.
#[derive(Debug)]
pub(super) enum Item {
    Row(Box<Stored>),
    Assignment(String, Box<PastAssignment>),
    Session(String, Box<Session>),
    Note {
        task: String,
        seq: Seq,
        kind: String,
        text: String,
    },
    Entry(Entry),
    /// A row or an entry that makes no sense.
    Nonsense,
}

type Batch = Vec<(usize, Item)>;

/// Hands items to as many threads as there are processors. One chain always goes to the same thread, in order.
#[derive(Debug)]
pub(super) struct Crew<'scope> {
    hands: Vec<Hand<'scope>>,
}

#[derive(Debug)]
struct Hand<'scope> {
    batch: Batch,
    sender: SyncSender<Batch>,
    /// Batches come back to be emptied where they were filled: memory that one thread takes and another gives back
    /// makes both wait.
    returned: Receiver<Batch>,
    thread: ScopedJoinHandle<'scope, Vec<usize>>,
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
            Hand { batch: Vec::with_capacity(BATCH), sender, returned, thread }
        });
        Crew { hands: hands.collect() }
    }

    pub(super) fn hand_over(&mut self, chain: usize, item: Item) -> Result<(), Lost> {
        let count = self.hands.len();
        let hand = &mut self.hands[chain % count];
        hand.batch.push((chain, item));
        if hand.batch.len() < BATCH {
            return Ok(());
        }
        let mut empty = hand.returned.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        empty.clear();
        let batch = std::mem::replace(&mut hand.batch, empty);
        hand.sender.send(batch).map_err(|_| Lost)
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
    spec: Fact,
    balance: Balance,
    is_suspect: bool,
}

impl Bench<'_> {
    fn work(mut self, batches: &Receiver<Batch>, back: &Sender<Batch>) -> Vec<usize> {
        for batch in batches {
            for (chain, item) in &batch {
                let at = chain / self.stride;
                if self.chains.len() <= at {
                    self.chains.resize_with(at + 1, Chain::new);
                }
                self.chains[at].take(self.workspace, &mut self.scale, item);
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
            spec: Fact::default(),
            balance: Balance::default(),
            is_suspect: false,
        }
    }

    fn take(&mut self, workspace: &str, scale: &mut Scale, item: &Item) {
        match item {
            Item::Row(stored) => {
                self.row = Some((stored.task.version, stored.head));
                let spec = scale.spec(&stored.task.spec);
                self.balance.take(scale.task(&stored.task, spec));
            }
            Item::Assignment(task, past) => {
                let PastAssignment { assignment, ended_at, end_reason } = &**past;
                self.balance.take(scale.assignment(task, assignment, *ended_at, end_reason.as_deref()));
            }
            Item::Session(task, session) => self.balance.take(scale.session(task, session)),
            Item::Note { task, seq, kind, text } => {
                self.balance.take(scale.note(task, *seq, kind, &Digest::of(text.as_bytes())));
            }
            Item::Entry(entry) => {
                self.is_suspect = self.is_suspect || self.follow(workspace, scale, entry).is_none();
            }
            Item::Nonsense => self.is_suspect = true,
        }
    }

    /// `None` when the entry does not follow.
    fn follow(&mut self, workspace: &str, scale: &mut Scale, entry: &Entry) -> Option<()> {
        if entry.prev != self.last || entry.expected_hash(workspace) != entry.hash {
            return None;
        }
        self.last = entry.hash;
        self.count += 1;
        let name = entry.task.as_deref()?;
        let stamped = entry.open().ok()?;
        let mut fold = self.fold.take().unwrap_or_default();
        let mut weigh = Weigh { scale, balance: &mut self.balance, spec: &mut self.spec };
        fold.step(name, stamped, &mut weigh).ok()?;
        // The row tells when the chain is complete: nothing of it need be kept until then.
        if self.row.is_some_and(|(version, _)| version == self.count) {
            let task = fold.finish(name, &mut weigh)?;
            self.balance.add(scale.task(&task, self.spec));
        } else {
            self.fold = Some(fold);
        }
        Some(())
    }

    fn holds(&self) -> bool {
        !self.is_suspect && self.balance.is_even() && self.row == Some((self.count, self.last))
    }
}
