//! Writers stand in line. The kernel serves `flock` waiters in turn, where SQLite's busy handler polls and starves.

use crate::error::{Result, StoreError};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct WriterQueue {
    line: PathBuf,
    turn: PathBuf,
    patience: Duration,
}

/// The right to write; given up when dropped.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "closing the file gives up the turn")] File);

impl WriterQueue {
    pub(super) fn new(store: &Path, patience: Duration) -> WriterQueue {
        let beside = |suffix: &str| {
            let mut name = store.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        WriterQueue { line: beside("-line"), turn: beside("-queue"), patience }
    }

    /// Waits at the head of the line for the turn. With one lock alone, whoever has just given it up gets it again before
    /// the others wake: a busy process would starve them.
    pub(super) fn wait(&self) -> Result<Turn> {
        let head_of_line = self.lock(&self.line)?;
        let turn = self.lock(&self.turn)?;
        drop(head_of_line);
        Ok(turn)
    }

    fn lock(&self, path: &Path) -> Result<Turn> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| unusable(path, &error.to_string()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Turn(file)),
            Err(Errno::WOULDBLOCK) => self.stand_in_line(path, file),
            Err(error) => Err(unusable(path, &error.to_string())),
        }
    }

    /// A blocking lock has no time limit of its own, so another thread takes it; if patience runs out first, that
    /// thread gives the lock up again as soon as it gets it.
    fn stand_in_line(&self, path: &Path, file: File) -> Result<Turn> {
        let (sender, receiver) = mpsc::sync_channel(0);
        std::thread::spawn(move || {
            let locked = loop {
                match flock(&file, FlockOperation::LockExclusive) {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            // The send fails when nobody waits any more; dropping the file then unlocks it.
            drop(sender.send(locked.map(|()| Turn(file))));
        });
        match receiver.recv_timeout(self.patience) {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(error)) => Err(unusable(path, &error.to_string())),
            Err(_) => Err(StoreError::Busy(format!(
                "other writers kept the store busy for {} seconds",
                self.patience.as_secs()
            ))),
        }
    }
}

fn unusable(path: &Path, why: &str) -> StoreError {
    StoreError::Unavailable {
        detail: format!("cannot queue for the store at {}: {why}", path.display()),
        hint: Some("check the permissions of the store's directory and the space on its disk".into()),
    }
}
