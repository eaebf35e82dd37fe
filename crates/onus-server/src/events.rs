//! Every change, told as it happens. One thread reads the record behind the last entry that it knows and keeps the latest
//! ones in memory; however many listen, a change costs one question.

use crate::store::{Open, is_lost, reopen};
use onus_app::view::EntryView;
use onus_core::id::Seq;
use onus_core::refusal::Refusal;
use onus_store::any::Any;
use onus_store::postgres::{self, Address};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// So many of the latest entries are kept in memory; who is further behind is served from the record.
const KEPT: usize = 4_096;

/// So many entries are read at once.
pub(crate) const PAGE: i64 = 1_000;

/// How often the record is looked at for what other processes wrote, while somebody listens.
const LOOK: Duration = Duration::from_millis(100);

/// The same where the database tells of every commit: only for what it could not tell.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

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
    pub(crate) verb: String,
    pub(crate) document: Arc<str>,
}

impl Event {
    pub(crate) fn new(entry: EntryView) -> Event {
        let (seq, verb) = (entry.seq, entry.verb.clone());
        let view = EventView { state: leads_to(&verb), entry };
        // A struct of texts, numbers and JSON always becomes JSON.
        let document = serde_json::to_string(&view).unwrap_or_default();
        Event { seq, verb, document: document.into() }
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
    look: Duration,
}

/// Passes on what the database tells of other programs' commits, as long as there is a hub.
fn hear(hub: &Weak<Hub>, address: &Address) {
    let mut ear = postgres::Listener::open(address);
    while let Some(hub) = hub.upgrade() {
        let heard = match &mut ear {
            Ok(ear) => ear.wait(LOOK).map(|wake| wake.is_some()),
            Err(_) => postgres::Listener::open(address).map(|opened| {
                ear = Ok(opened);
                true
            }),
        };
        match heard {
            Ok(true) => hub.wake(),
            Ok(false) => {}
            // Until it can be heard again, the record is looked at.
            Err(_) => std::thread::sleep(LOOK_ANYWAY),
        }
    }
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
    pub(crate) fn start(open: &Open) -> Result<(Arc<Hub>, JoinHandle<()>), Refusal> {
        let mut store = open()?;
        let newest = store.log(None, None, 1)?.entries.last().map_or(0, |entry| entry.seq);
        let (wake, woken) = sync_channel(1);
        let database = match &store.store {
            Any::Postgres(database) => Some(database.address().clone()),
            Any::Sqlite(_) => None,
        };
        let hub = Arc::new(Hub {
            latest: RwLock::default(),
            last: watch::Sender::new(newest),
            listeners: AtomicUsize::new(0),
            wake,
            look: if database.is_some() { LOOK_ANYWAY } else { LOOK },
        });
        if let Some(address) = database {
            let hub = Arc::downgrade(&hub);
            std::thread::spawn(move || hear(&hub, &address));
        }
        let (shared, open) = (Arc::downgrade(&hub), open.clone());
        let thread = std::thread::spawn(move || {
            while let Some(hub) = shared.upgrade() {
                if is_lost(&hub.catch_up(&mut store)) {
                    reopen(&mut store, &open);
                }
                if !hub.rest(&woken) {
                    return;
                }
            }
        });
        Ok((hub, thread))
    }

    /// Something was committed here.
    pub(crate) fn wake(&self) {
        // A full channel means that it is awake already.
        let _ = self.wake.try_send(());
    }

    /// Waits for something to do; false when there will never be anything again.
    fn rest(self: Arc<Hub>, woken: &Receiver<()>) -> bool {
        let alone = self.listeners.load(Ordering::Relaxed) == 0;
        let look = self.look;
        // The thread must not keep the hub alive while it waits.
        drop(self);
        match woken.recv_timeout(if alone { Duration::from_secs(1) } else { look }) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Reads what is new, while somebody listens.
    fn catch_up(&self, store: &mut crate::store::Store) -> Result<(), Refusal> {
        while self.listeners.load(Ordering::Relaxed) > 0 {
            let known = *self.last.borrow();
            let entries = store.log(None, Some(known), PAGE)?.entries;
            let Some(newest) = entries.last().map(|entry| entry.seq) else { break };
            let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
            latest.extend(entries.into_iter().map(Event::new));
            let surplus = latest.len().saturating_sub(KEPT);
            latest.drain(..surplus);
            drop(latest);
            self.last.send_replace(newest);
        }
        Ok(())
    }

    /// The events behind `seq`.
    pub(crate) fn behind(&self, seq: Seq) -> Behind {
        let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
        match latest.front() {
            _ if seq >= *self.last.borrow() => Behind::Known(Vec::new()),
            Some(first) if first.seq <= seq + 1 => {
                let from = usize::try_from(seq + 1 - first.seq).unwrap_or(usize::MAX);
                Behind::Known(latest.iter().skip(from).cloned().collect())
            }
            _ => Behind::Older,
        }
    }

    pub(crate) fn listen(self: &Arc<Hub>) -> Listener {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        self.wake();
        Listener { last: self.last.subscribe(), hub: Arc::clone(self) }
    }
}

/// One caller's ear; its place is counted as long as it lives.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) hub: Arc<Hub>,
    pub(crate) last: watch::Receiver<Seq>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}
