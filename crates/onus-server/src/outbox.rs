//! The thread that tells the mirrors, with a connection of its own: a far end that is away holds nobody else up.

use crate::store::{Open, Store, reopen};
use onus_app::mirror::{Round, Sender};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long it waits before it looks again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long after the store or the settings failed.
const TROUBLE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Outbox {
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Outbox {
    /// None where nobody is to be told.
    pub(crate) fn start(open: &Open) -> Result<Option<Outbox>, Refusal> {
        let store = open()?;
        if !store.has_outlets() {
            return Ok(None);
        }
        let (end, told) = mpsc::channel();
        let open = Open::clone(open);
        let thread =
            std::thread::Builder::new().name("outbox".into()).spawn(move || send(store, &open, &told));
        let thread = thread.map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        Ok(Some(Outbox { end, thread }))
    }

    /// Waits for the call that is under way, at most.
    pub(crate) fn finish(self) {
        drop(self.end);
        drop(self.thread.join());
    }
}

fn send(mut store: Store, open: &Open, told: &mpsc::Receiver<()>) {
    let mut sender: Option<Sender> = None;
    let mut said: Option<String> = None;
    loop {
        let wait = match round(&mut store, &mut sender) {
            Ok(round) => {
                said = None;
                if round.more || round.delivered > 0 { Duration::ZERO } else { PAUSE }
            }
            Err(refusal) => {
                let text = refusal.to_string();
                if said.as_ref() != Some(&text) {
                    tracing::warn!(error = %text, "mirrors are not told");
                    said = Some(text);
                }
                if refusal.code == Code::StoreUnavailable {
                    reopen(&mut store, open);
                }
                TROUBLE
            }
        };
        match told.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Some(mut sender) = sender {
        // Another one need not wait until the lease has run out.
        drop(store.give_mirrors_back(&mut sender));
    }
}

fn round(store: &mut Store, sender: &mut Option<Sender>) -> Result<Round, Refusal> {
    match sender {
        Some(sender) => store.mirror_round(sender),
        None => {
            let made = sender.insert(store.sender(None)?);
            store.mirror_round(made)
        }
    }
}
