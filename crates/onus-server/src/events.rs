//! Every change, told as it happens. One thread reads the record behind the last entry that it knows and keeps the latest
//! ones in memory; however many listen, a change costs one question.

use crate::store::{Open, Store, is_lost, reopen};
use onus_app::view::EntryView;
use onus_core::id::Seq;
use onus_core::refusal::Refusal;
use onus_store::postgres::{Address, Listener, Wake};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use tokio::sync::watch;

/// So many of the latest entries are kept in memory; who is further behind is served from the record.
const KEPT: usize = 4_096;

/// So many entries are read at once.
const PAGE: i64 = 1_000;

/// So many of those in memory are told to a listener at once.
const TOLD_AT_ONCE: usize = 256;

/// How often the record is looked at for what other processes wrote, while somebody listens.
const LOOK: Duration = Duration::from_millis(100);

/// The same where the database tells of them itself, should a word of it be lost.
const SPARE: Duration = Duration::from_secs(2);

/// How often a thread with nothing to do sees whether it is still needed.
const ALONE: Duration = Duration::from_secs(1);

/// One change, as listeners see it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EventView {
    #[serde(flatten)]
    pub(crate) entry: EntryView,
    /// The task's state after it, where the entry changes the state.
    pub(crate) state: Option<&'static str>,
}

/// An entry, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) seq: Seq,
    /// It is about the workspace itself: its workers, workstations, tokens.
    pub(crate) is_workspace: bool,
    /// As it goes out, made once for all listeners.
    pub(crate) text: Arc<str>,
}

impl Event {
    pub(crate) fn new(entry: EntryView) -> Event {
        let (seq, verb, is_workspace) = (entry.seq, entry.verb.clone(), entry.task.is_none());
        let view = EventView { state: leads_to(&verb), entry };
        // A struct of texts, numbers and JSON always becomes JSON, and that in one line.
        let document = serde_json::to_string(&view).unwrap_or_default();
        let text = format!("id: {seq}\nevent: {verb}\ndata: {document}\n\n");
        Event { seq, is_workspace, text: text.into() }
    }
}

/// The state that an event leaves its task in, where it says so by itself.
fn leads_to(verb: &str) -> Option<&'static str> {
    match verb {
        "added" | "released" | "reopened" => Some("open"),
        "claimed" | "unblocked" => Some("in_progress"),
        "blocked" => Some("blocked"),
        "completed" => Some("complete"),
        "dropped" => Some("dropped"),
        _ => None,
    }
}

/// What listeners share.
#[derive(Debug)]
pub(crate) struct Hub {
    latest: RwLock<VecDeque<Event>>,
    /// The last entry that is known; it only rises.
    last: watch::Sender<Seq>,
    listeners: AtomicUsize,
    wake: SyncSender<()>,
    /// The thread that hears of other servers' commits.
    follower: OnceLock<Thread>,
}

/// What is known behind some entry.
#[derive(Debug)]
pub(crate) enum Behind {
    /// In order, without a gap; empty when there is nothing new.
    Known(Vec<Event>),
    /// Older than what is in memory: to be read from the record.
    Older,
}

impl Hub {
    /// The last entry that is known; it may lag behind while nobody listens.
    pub(crate) fn last(&self) -> Seq {
        *self.last.borrow()
    }

    pub(crate) fn start(
        open: &Open,
        database: Option<&Address>,
    ) -> Result<(Arc<Hub>, JoinHandle<()>), Refusal> {
        let mut store = open()?;
        let newest = newest(&mut store)?;
        let look = if database.is_some() { SPARE } else { LOOK };
        let (wake, woken) = sync_channel(1);
        let hub = Arc::new(Hub {
            latest: RwLock::default(),
            last: watch::Sender::new(newest),
            listeners: AtomicUsize::new(0),
            wake,
            follower: OnceLock::new(),
        });
        let (shared, open) = (Arc::downgrade(&hub), open.clone());
        let thread = std::thread::spawn(move || {
            let mut awake = false;
            while let Some(hub) = shared.upgrade() {
                if is_lost(&hub.catch_up(&mut store, &mut awake)) {
                    reopen(&mut store, &open);
                }
                if !hub.rest(&woken, look) {
                    return;
                }
            }
        });
        if let Some(database) = database {
            hub.follow(database.clone());
        }
        Ok((hub, thread))
    }

    /// Listens to the database for other servers' commits, as long as this server has subscribers: each listening connection
    /// costs the database a process to wake with every commit.
    fn follow(self: &Arc<Hub>, database: Address) {
        let shared = Arc::downgrade(self);
        let thread = std::thread::spawn(move || {
            let mut listener: Option<Listener> = None;
            loop {
                let Some(is_wanted) = shared.upgrade().map(|hub| hub.has_listeners()) else { return };
                if !is_wanted {
                    listener = None;
                    std::thread::park_timeout(ALONE);
                    continue;
                }
                let heard = match &mut listener {
                    Some(listener) => listener.wait(ALONE),
                    // What was said before is looked up.
                    none => Listener::open(&database)
                        .map(|open| *none = Some(open))
                        .map(|()| Some(Wake::Reconnected)),
                };
                match heard {
                    Ok(None) => {}
                    Ok(Some(_)) => shared.upgrade().iter().for_each(|hub| hub.wake()),
                    // The database is away; it is asked again soon.
                    Err(_) => std::thread::sleep(LOOK),
                }
            }
        });
        let _ = self.follower.set(thread.thread().clone());
    }

    /// Something was committed here: the reader is woken if there are subscribers.
    pub(crate) fn wake(&self) {
        if self.has_listeners() {
            // A full channel means that it is awake already.
            let _ = self.wake.try_send(());
        }
    }

    fn has_listeners(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Waits for something to do; false when there will never be anything again.
    fn rest(self: Arc<Hub>, woken: &Receiver<()>, look: Duration) -> bool {
        let alone = !self.has_listeners();
        // The thread must not keep the hub alive while it waits.
        drop(self);
        match woken.recv_timeout(if alone { ALONE } else { look }) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Reads new entries as long as there are subscribers. Entries from a time without subscribers are skipped; a subscriber
    /// that wants them asks for them by number.
    fn catch_up(&self, store: &mut Store, awake: &mut bool) -> Result<(), Refusal> {
        while self.has_listeners() {
            if !*awake {
                let newest = newest(store)?;
                self.latest.write().unwrap_or_else(PoisonError::into_inner).clear();
                self.last.send_replace(newest);
                *awake = true;
            }
            let known = *self.last.borrow();
            let entries = store.log(None, Some(known), PAGE)?.entries;
            let Some(newest) = entries.last().map(|entry| entry.seq) else { return Ok(()) };
            let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
            latest.extend(entries.into_iter().map(Event::new));
            let surplus = latest.len().saturating_sub(KEPT);
            latest.drain(..surplus);
            drop(latest);
            self.last.send_replace(newest);
        }
        *awake = false;
        Ok(())
    }

    /// The events behind `seq`.
    pub(crate) fn behind(&self, seq: Seq) -> Behind {
        let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
        match latest.front() {
            _ if seq >= *self.last.borrow() => Behind::Known(Vec::new()),
            Some(first) if first.seq <= seq + 1 => {
                let from = usize::try_from(seq + 1 - first.seq).unwrap_or(usize::MAX);
                Behind::Known(latest.iter().skip(from).take(TOLD_AT_ONCE).cloned().collect())
            }
            _ => Behind::Older,
        }
    }

    pub(crate) fn listen(self: &Arc<Hub>) -> Subscriber {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        self.follower.get().into_iter().for_each(Thread::unpark);
        self.wake();
        Subscriber { last: self.last.subscribe(), hub: Arc::clone(self) }
    }
}

/// The last entry of the record.
pub(crate) fn newest(store: &mut Store) -> Result<Seq, Refusal> {
    Ok(store.log(None, None, 1)?.entries.last().map_or(0, |entry| entry.seq))
}

/// One caller's ear; its place is counted as long as it lives.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) hub: Arc<Hub>,
    pub(crate) last: watch::Receiver<Seq>,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.hub.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}
