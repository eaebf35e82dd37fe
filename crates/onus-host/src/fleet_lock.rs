//! One supervisor for each workspace and host: a lock that ends with its process, with the number of that process in it and
//! the place where it was started.

use crate::file::refused;
use onus_core::refusal::Refusal;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Held as long as the supervisor lives.
#[derive(Debug)]
pub struct FleetLock {
    _file: File,
}

fn path(dir: &Path) -> PathBuf {
    dir.join("supervisor")
}

fn open(dir: &Path) -> Result<File, Refusal> {
    let path = path(dir);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.and_then(|()| {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)
    })
    .map_err(|error| refused("open", &path, &error))
}

impl FleetLock {
    /// None where another process has it. `place` is told to whoever comes later.
    pub fn take(dir: &Path, place: &Path) -> Result<Option<FleetLock>, Refusal> {
        let mut file = open(dir)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let text = format!("{}\n{}\n", std::process::id(), place.display());
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|error| refused("write", &path(dir), &error))?;
        Ok(Some(FleetLock { _file: file }))
    }
}

/// A supervisor that runs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    pub pid: i32,
    /// Where it was started.
    pub place: String,
}

/// The supervisor that runs here.
pub fn supervisor(dir: &Path) -> Result<Option<Supervisor>, Refusal> {
    let mut file = open(dir)?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return Ok(None);
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| refused("read", &path(dir), &error))?;
    let (pid, place) = text.split_once('\n').unwrap_or((&text, ""));
    Ok(pid.trim().parse().ok().map(|pid| Supervisor { pid, place: place.trim_end().to_owned() }))
}

/// What a supervisor is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Look again at what was asked for.
    Look,
    End,
}

/// Tells the supervisor something; whether there is one.
pub fn tell(dir: &Path, word: Word) -> Result<bool, Refusal> {
    let signal = match word {
        Word::Look => Signal::USR1,
        Word::End => Signal::TERM,
    };
    let pid = supervisor(dir)?.and_then(|found| Pid::from_raw(found.pid));
    Ok(pid.is_some_and(|pid| kill_process(pid, signal).is_ok()))
}

/// Ends this process when `parent` does; false where that is gone already.
pub fn follow_parent(parent: i32) -> bool {
    // From here on; whether it was too late is seen behind it.
    let is_set = set_parent_process_death_signal(Some(Signal::TERM)).is_ok();
    is_set && getppid().is_some_and(|now| now.as_raw_nonzero().get() == parent)
}

/// Asks a process that was started here, and not yet waited for, to end.
pub fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}
