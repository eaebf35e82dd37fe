//! The ref barrier (mission B5): waits out whoever is moving a branch at this moment.
//!
//! A hook asks the store while git holds the branch's lock. Once a takeover is committed, taking and releasing that lock
//! leaves every earlier update either finished or refused. A hook alone would race: it may have asked before the
//! takeover and move the branch after it.

use super::transaction::Transaction;
use super::{History, checked_name};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);

/// Takes and releases the lock of `refname` in the repository at `dir`, and tells where the reference stood under it.
pub fn barrier(dir: &Path, refname: &str) -> Result<Option<String>, Refusal> {
    let refname = checked_name(refname)?;
    let start = Instant::now();
    loop {
        let at = History::at(dir).resolve(refname)?;
        let change = match &at {
            Some(id) => format!("verify {refname} {id}"),
            // That there is none must be seen under the lock, too: the old holder may be creating it.
            None => format!("verify {refname}"),
        };
        match Transaction::prepare(dir, &change).and_then(Transaction::commit) {
            Ok(()) => return Ok(at),
            // It moved after we looked, or it is locked by a storage that does not wait.
            Err(refusal) if refusal.code == Code::StoreBusy && start.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Err(refusal) => return Err(refusal),
        }
    }
}
