//! Who was outrun again and again on the way to the main branch gets a turn of its own: nobody else of this clone begins another
//! attempt until it is over. The lock ends with its process. It is a courtesy and no lock of anything: whoever has waited long
//! enough goes on without it, since the checks of the one that has it may take for ever.

use crate::file::refused;
use onus_core::refusal::Refusal;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often is looked whether the turn has come.
const STEP: Duration = Duration::from_millis(20);

/// Held until the landing is over.
#[derive(Debug)]
pub struct LandingTurn {
    _file: File,
}

impl LandingTurn {
    /// Waits for whoever has it, but not for ever: then there is none.
    pub fn take(common_dir: &Path, patience: Duration) -> Result<Option<LandingTurn>, Refusal> {
        let dir = common_dir.join("onus");
        let path = dir.join("landing");
        let opened = create_dir_all(&dir)
            .and_then(|()| OpenOptions::new().write(true).create(true).truncate(false).open(&path));
        let file = opened.map_err(|error| refused("open", &path, &error))?;
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(LandingTurn { _file: file })),
                Err(Errno::WOULDBLOCK) if began.elapsed() >= patience => return Ok(None),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(STEP),
                Err(Errno::INTR) => {}
                Err(error) => return Err(refused("lock", &path, &io::Error::from(error))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_ever_for_whoever_has_the_turn() {
        let dir = tempfile::tempdir().unwrap();
        let take = |patience| LandingTurn::take(dir.path(), patience).unwrap();
        let turn = take(Duration::ZERO);
        assert!(turn.is_some() && take(Duration::from_millis(50)).is_none());
        let waits = std::thread::scope(|scope| {
            let waits = scope.spawn(|| take(Duration::from_secs(300)).is_some());
            drop(turn);
            waits.join().unwrap()
        });
        assert!(waits);
    }
}
