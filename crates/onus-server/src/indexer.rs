//! The thread that reads the record for searches, so that nobody who searches waits for what was written long ago.

use crate::events::Hub;
use crate::store::{Open, is_lost, reopen};
use onus_core::code::Code;
use onus_core::id::Seq;
use onus_core::refusal::Refusal;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it looks whether there is much to read; a search itself reads what is little.
const LOOK: Duration = Duration::from_secs(2);
const MUCH: Seq = 1_000;

#[derive(Debug)]
pub(crate) struct Indexer {
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Indexer {
    pub(crate) fn start(open: &Open, hub: &Arc<Hub>) -> Result<Indexer, Refusal> {
        let (end, told) = mpsc::channel::<()>();
        let (open, hub) = (Open::clone(open), Arc::clone(hub));
        let work = move || {
            // A connection is opened when there is something to do.
            let (mut store, mut known) = (None, 0);
            while matches!(told.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) {
                let last = hub.last();
                if last < known + MUCH {
                    continue;
                }
                let Some(store) = store.take().or_else(|| open().ok()).map(|opened| store.insert(opened))
                else {
                    continue;
                };
                let done = store.index_words();
                match &done {
                    Ok(()) => known = last,
                    Err(refusal) => tracing::warn!(error = %refusal, "the index of words is not made"),
                }
                if is_lost(&done) {
                    reopen(store, &open);
                }
            }
        };
        let thread = std::thread::Builder::new().name("indexer".into()).spawn(work);
        let thread = thread.map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        Ok(Indexer { end, thread })
    }

    /// Waits for what is under way, at most.
    pub(crate) fn finish(self) {
        drop(self.end);
        drop(self.thread.join());
    }
}
