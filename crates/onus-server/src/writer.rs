//! The one thread that writes: it takes whatever waits and commits it together (group commit).
//!
//! While one batch waits for the disk the next one gathers, so the more there is to do, the less of it is waiting. Whoever
//! was just answered often asks again at once: a batch waits a moment for as many as the last one had.

use crate::readers::busy;
use crate::store::{Open, Store, follow, is_lost, reopen};
use onus_app::followed_settings::FollowedSettings;
use onus_app::last_commit::Memory;
use onus_app::submit::{Order, Receipt, Target, cleaned};
use onus_app::token::Shown;
use onus_core::command::Envelope;
use onus_core::refusal::Refusal;
use std::cell::OnceCell;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// So many orders may wait; the next one is told to come back.
const WAITING: usize = 4_096;

/// So many commands go into one commit: nobody waits for more than these before them.
const TOGETHER: usize = 64;

/// So long a batch waits to become as large as the last one: a fraction of what a commit takes.
const SOON: Duration = Duration::from_micros(500);

pub type WriterAnswer = Result<Receipt, Refusal>;

/// Commands that are carried out next to each other, and the token that was shown for them.
struct Waiting {
    calls: Vec<(Envelope, Target)>,
    shown: Option<Shown>,
    reply: oneshot::Sender<Vec<WriterAnswer>>,
}

impl Waiting {
    fn order(&self) -> Order<'_> {
        Order { calls: &self.calls, shown: self.shown.as_ref() }
    }
}

#[derive(Debug)]
pub struct Writer {
    orders: SyncSender<Waiting>,
    thread: JoinHandle<()>,
}

/// Rendered after each batch: how many commands it had.
pub type Committed = Box<dyn Fn(usize) + Send>;

impl Writer {
    pub fn start(open: &Open, committed: Committed) -> Result<Writer, Refusal> {
        let (orders, queue) = sync_channel(WAITING);
        let (store, open) = (open()?, open.clone());
        let thread = std::thread::spawn(move || write(store, &open, &queue, &committed));
        Ok(Writer { orders, thread })
    }

    /// Carries the commands out, if the token is still good then; one answer for each.
    pub async fn submit(
        &self,
        calls: Vec<(Envelope, Target)>,
        shown: Option<Shown>,
    ) -> Result<Vec<WriterAnswer>, Refusal> {
        let clean = |(call, target): (Envelope, Target)| (cleaned(&call).unwrap_or(call), target);
        let calls = calls.into_iter().map(clean).collect();
        let (reply, answer) = oneshot::channel();
        self.orders.try_send(Waiting { calls, shown, reply }).map_err(|error| match error {
            TrySendError::Full(_) => busy("too many commands wait already"),
            TrySendError::Disconnected(_) => busy("the server is shutting down"),
        })?;
        answer.await.map_err(|_| busy("the server is shutting down"))
    }

    /// Carries out what waits, then ends the thread.
    pub fn finish(self) {
        drop(self.orders);
        drop(self.thread.join());
    }
}

fn write(mut store: Store, open: &Open, queue: &Receiver<Waiting>, committed: &Committed) {
    let (mut memory, mut last) = (Memory::default(), 0);
    let mut settings = FollowedSettings::of(&store);
    while let Ok(first) = queue.recv() {
        follow(&mut settings, &mut store);
        let mut batch = Batch { count: first.calls.len(), waiting: vec![first] };
        batch.gather(queue, last, Instant::now() + SOON);
        let turn = OnceCell::new();
        let orders = || {
            // Another server may have had its turn meanwhile: what has come since goes along.
            batch.gather(queue, 0, Instant::now());
            turn.get_or_init(|| batch.in_order()).iter().map(Waiting::order).collect()
        };
        let mut answers = store.submit_orders(orders, &mut memory).into_iter();
        let mut lost = false;
        last = 0;
        for one in turn.into_inner().unwrap_or_default() {
            last += one.calls.len();
            let own: Vec<WriterAnswer> = answers.by_ref().take(one.calls.len()).collect();
            lost |= own.iter().any(is_lost);
            // Whoever asked may have gone; what it asked for is done all the same.
            drop(one.reply.send(own));
        }
        committed(last);
        if lost {
            reopen(&mut store, open);
            memory.doubt();
        }
    }
}

/// What goes into one commit.
struct Batch {
    waiting: Vec<Waiting>,
    /// How many commands that is.
    count: usize,
}

impl Batch {
    /// Takes what waits, and waits itself until then while it has less than it is likely to get.
    fn gather(&mut self, queue: &Receiver<Waiting>, likely: usize, until: Instant) {
        while self.count < TOGETHER
            && let Some(next) = next(queue, (self.count < likely).then_some(until))
        {
            self.count += next.calls.len();
            self.waiting.push(next);
        }
    }

    /// None of them has been answered, so any order is right. What ends sets free what a grant may want.
    fn in_order(mut self) -> Vec<Waiting> {
        self.waiting.sort_by_key(|one| one.calls.iter().any(|(envelope, _)| envelope.command.is_grant()));
        self.waiting
    }
}

/// What waits, or comes in time where more is expected.
fn next(queue: &Receiver<Waiting>, until: Option<Instant>) -> Option<Waiting> {
    match (queue.try_recv(), until) {
        (Err(TryRecvError::Empty), Some(until)) => {
            queue.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
        }
        (found, _) => found.ok(),
    }
}
