//! The thread that looks after pull requests: what waits for one is complete once that is merged there.

use crate::store::{Open, Store, reopen};
use onus_app::Sight;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Offers {
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Offers {
    /// None where nobody lands by pull request.
    pub(crate) fn start(open: &Open) -> Result<Option<Offers>, Refusal> {
        let store = open()?;
        let Some(settings) = &store.settings.git.pull_requests else { return Ok(None) };
        let poll = Duration::from_millis(u64::try_from(settings.poll.0).unwrap_or(30_000).max(100));
        let (end, told) = mpsc::channel();
        let open = Open::clone(open);
        let look = move || look_after(store, &open, poll, &told);
        let thread = std::thread::Builder::new().name("offers".into()).spawn(look);
        let thread = thread.map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        Ok(Some(Offers { end, thread }))
    }

    /// Waits for the call that is under way, at most.
    pub(crate) fn finish(self) {
        drop(self.end);
        drop(self.thread.join());
    }
}

fn look_after(mut store: Store, open: &Open, poll: Duration, told: &mpsc::Receiver<()>) {
    let mut said: Option<String> = None;
    while let Err(RecvTimeoutError::Timeout) = told.recv_timeout(poll) {
        // It asks only about workstations of the clone that this server stands in.
        store.sight = Sight::Workstations;
        let failed = match store.look_after_offers() {
            Ok(failed) => failed.first().map(ToString::to_string),
            Err(refusal) => {
                if refusal.code == Code::StoreUnavailable {
                    reopen(&mut store, open);
                }
                Some(refusal.to_string())
            }
        };
        if let Some(text) = failed.as_ref().filter(|text| said.as_ref() != Some(*text)) {
            tracing::warn!(error = %text, "what waits for a pull request cannot be completed");
        }
        said = failed;
    }
}
