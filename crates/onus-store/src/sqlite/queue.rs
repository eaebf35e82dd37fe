//! Writers stand in line. The kernel serves `flock` waiters in turn, where SQLite's busy handler polls and starves.

use super::newest::{Count, Newest};
use crate::error::{Result, StoreError};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Who waits for the bell looks so often whether it was missed: a writer that was killed rings none.
const LOOK: Duration = Duration::from_millis(20);
/// Who hears no bell at all has nothing else to go by. Only the head of the line does, so it is one process that looks.
const LOOK_DEAF: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct WriterQueue {
    line: PathBuf,
    turn: PathBuf,
    patience: Duration,
}

/// The right to write; given up when dropped.
#[derive(Debug)]
pub(super) struct Turn {
    file: Option<File>,
    /// How often the record was written.
    count: Count,
}

impl Turn {
    /// The newest entry that a writer was told of.
    pub(super) fn record(&mut self) -> Option<Newest> {
        let (count, newest) = self.file.as_ref().and_then(Newest::read)?;
        self.count = count;
        Some(newest)
    }

    pub(super) fn keep(&self, newest: &Newest) {
        if let Some(file) = &self.file {
            newest.write(file, self.count.next());
        }
    }

    pub(super) fn forget(&self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), Newest::forget)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let bell = self.file.as_ref().and_then(bell);
        // Whoever hears the bell must find the turn free.
        drop(self.file.take());
        if let (Some(bell), Ok(rope)) = (bell, UnixDatagram::unbound())
            && rope.set_nonblocking(true).is_ok()
        {
            // Nobody may be listening, or somebody who does not hear.
            drop(rope.send_to_addr(&[0], &bell));
        }
    }
}

/// The name under which the head of the line listens: it belongs to the file of the turn, and leaves nothing on the disk.
fn bell(turn: &File) -> Option<SocketAddr> {
    let file = turn.metadata().ok()?;
    SocketAddr::from_abstract_name(format!("onus-turn-{:x}-{:x}", file.dev(), file.ino())).ok()
}

impl WriterQueue {
    pub(super) fn new(store: &Path, patience: Duration) -> WriterQueue {
        let beside = |suffix: &str| {
            let mut name = store.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        WriterQueue { line: beside("-line"), turn: beside("-queue"), patience }
    }

    /// What is recorded, for whoever only looks.
    pub(super) fn record(&self) -> Result<Option<Newest>> {
        match File::open(&self.turn) {
            Ok(file) => Ok(Newest::read(&file).map(|(_, newest)| newest)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&self.turn, &error.to_string())),
        }
    }

    /// Waits at the head of the line for the turn. With one lock alone, whoever has just given it up gets it again before
    /// the others wake: a busy process would starve them.
    pub(super) fn wait(&self) -> Result<Turn> {
        let line = open(&self.line)?;
        let head_of_line = if is_locked(&line, &self.line)? { line } else { self.stand_in_line(line)? };
        let turn = open(&self.turn)?;
        if !is_locked(&turn, &self.turn)? {
            self.listen(&turn)?;
        }
        drop(head_of_line);
        Ok(Turn { file: Some(turn), count: Count::default() })
    }

    /// A blocking lock has no time limit of its own, so another thread takes it; if patience runs out first, that
    /// thread gives the lock up again as soon as it gets it.
    fn stand_in_line(&self, file: File) -> Result<File> {
        let (sender, receiver) = mpsc::sync_channel(0);
        std::thread::spawn(move || {
            let locked = loop {
                match flock(&file, FlockOperation::LockExclusive) {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            // The send fails when nobody waits any more; dropping the file then unlocks it.
            drop(sender.send(locked.map(|()| file)));
        });
        match receiver.recv_timeout(self.patience) {
            Ok(Ok(head_of_line)) => Ok(head_of_line),
            Ok(Err(error)) => Err(unusable(&self.line, &error.to_string())),
            Err(_) => Err(self.out_of_patience()),
        }
    }

    /// Only the head of the line waits here, so it may try the lock itself when the bell rings: a thread in between would
    /// have to be woken first, and the disk would rest meanwhile.
    fn listen(&self, turn: &File) -> Result<()> {
        let until = Instant::now() + self.patience;
        // Somebody else may have taken the name; then looking has to do.
        let ear = bell(turn).and_then(|bell| UnixDatagram::bind_addr(&bell).ok());
        let ear = ear.filter(|ear| ear.set_read_timeout(Some(LOOK)).is_ok());
        while !is_locked(turn, &self.turn)? {
            if Instant::now() >= until {
                return Err(self.out_of_patience());
            }
            match &ear {
                Some(ear) => drop(ear.recv(&mut [0])),
                None => std::thread::sleep(LOOK_DEAF),
            }
        }
        Ok(())
    }

    fn out_of_patience(&self) -> StoreError {
        let seconds = self.patience.as_secs();
        StoreError::Busy(format!("other writers kept the store busy for {seconds} seconds"))
    }
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).read(true).write(true).truncate(false).mode(0o600);
    options.open(path).map_err(|error| unusable(path, &error.to_string()))
}

/// Takes the lock if it is free.
fn is_locked(file: &File, path: &Path) -> Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(unusable(path, &error.to_string())),
    }
}

fn unusable(path: &Path, why: &str) -> StoreError {
    StoreError::Unavailable {
        detail: format!("cannot queue for the store at {}: {why}", path.display()),
        hint: Some("check the permissions of the store's directory and the space on its disk".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    fn queue(dir: &tempfile::TempDir, patience: Duration) -> WriterQueue {
        WriterQueue::new(&dir.path().join("onus.db"), patience)
    }

    #[test]
    fn one_at_a_time_and_everybody() {
        let dir = tempfile::tempdir().unwrap();
        let (is_taken, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let queue = queue(&dir, Duration::from_secs(60));
                    for _ in 0..50 {
                        let turn = queue.wait().unwrap();
                        assert!(!is_taken.swap(true, Ordering::SeqCst), "two have the turn");
                        turns.fetch_add(1, Ordering::SeqCst);
                        is_taken.store(false, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 400);
    }

    #[test]
    fn patience_ends_at_the_head_of_the_line_and_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let turn = queue(&dir, Duration::ZERO).wait().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let late = queue(&dir, Duration::from_millis(50)).wait();
                    assert!(matches!(late, Err(StoreError::Busy(_))), "{late:?}");
                });
            }
        });
        drop(turn);
        // Whoever lost patience in line gives it up as soon as it gets it.
        queue(&dir, Duration::from_secs(60)).wait().unwrap();
    }

    /// Neither a writer that was killed nor a stranger under the bell's name keeps the next one waiting for ever.
    #[test]
    fn a_turn_without_a_bell_is_found_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let queue = queue(&dir, Duration::from_secs(60));
        for is_name_taken in [false, true] {
            let silent = open(&queue.turn).unwrap();
            assert!(is_locked(&silent, &queue.turn).unwrap());
            let _stranger = is_name_taken.then(|| UnixDatagram::bind_addr(&bell(&silent).unwrap()).unwrap());
            std::thread::scope(|scope| {
                let next = scope.spawn(|| queue.wait().map(drop));
                while is_locked(&open(&queue.line).unwrap(), &queue.line).unwrap() {
                    std::thread::yield_now();
                }
                drop(silent);
                next.join().unwrap().unwrap();
            });
        }
    }
}
