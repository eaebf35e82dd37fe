//! The ticket (mission B5): what `pre-receive` has found in order, told to `reference-transaction` of the same push.
//!
//! Git shows the push options to `pre-receive`, which runs before the references are locked, and not to
//! `reference-transaction`, which runs under the lock. Both are children of one `receive-pack`; the ticket carries what
//! was shown from the first to the second, so that it can be checked again where it counts.

use super::push::PushOptions;
use crate::file::{create_new, if_exists, read_capped, refused, temporary_beside};
use crate::repository::Repo;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const SHOWN_MAX: usize = 1_024;

/// Names one push by the process that receives it; a process number alone comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    file: PathBuf,
}

/// The ticket of the push that this hook is part of.
pub fn parent(repo: &Repo) -> Result<Ticket, Refusal> {
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    let of_parent = parent.and_then(|pid| Some((pid, started(pid)?)));
    let (pid, started) = of_parent.ok_or_else(|| {
        Refusal::new(Code::StoreUnavailable, "the process that runs this hook cannot be told from others")
    })?;
    Ok(Ticket { file: directory(repo).join(format!("{pid}.{started}")) })
}

impl Ticket {
    pub fn leave(&self, shown: &PushOptions) -> Result<(), Refusal> {
        let written = self.file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            let temporary = temporary_beside(&self.file)?;
            create_new(&temporary, shown.text().as_bytes()).and_then(|_| fs::rename(&temporary, &self.file))
        });
        sweep(&self.file);
        written.map_err(|e| refused("write the ticket", &self.file, &e))
    }

    /// What the push has shown; nothing where there is no ticket.
    pub fn shown(&self) -> Result<PushOptions, Refusal> {
        let read = if_exists(read_capped(&self.file, SHOWN_MAX));
        let bytes = read.map_err(|e| refused("read the ticket", &self.file, &e))?;
        bytes.map_or(Ok(PushOptions::default()), |bytes| {
            PushOptions::of_text(&String::from_utf8_lossy(&bytes))
        })
    }
}

fn directory(repo: &Repo) -> PathBuf {
    repo.common_dir.join("onus/ticket")
}

/// Nothing tells us when a push is over; the next one takes away what ended processes left.
fn sweep(present: &Path) {
    let Some(entries) = present.parent().and_then(|dir| fs::read_dir(dir).ok()) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path != present) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let alive = name
            .split_once('.')
            .and_then(|(pid, then)| Some(started(pid.parse().ok()?)?.to_string() == then))
            .unwrap_or(name.starts_with('.'));
        if !alive {
            let _ = fs::remove_file(&path);
        }
    }
}

/// When the process was started, in the system's own measure.
fn started(pid: i32) -> Option<u64> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The name in brackets may hold anything; the start is the 20th field after it.
        Ok(stat) => stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok(),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self").exists() => asked(pid),
        Err(_) => None,
    }
}

/// Where there is no `/proc`, `ps` knows: the words of the date, as a number.
fn asked(pid: i32) -> Option<u64> {
    let output =
        std::process::Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|text| !text.trim().is_empty())?;
    let digest = onus_core::hash::Digest::of(text.trim().as_bytes());
    Some(u64::from_le_bytes(*digest.0.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_for_one_process_and_swept_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let common_dir = dir.path().to_owned();
        let repo = Repo { root: None, git_dir: common_dir.clone(), common_dir };
        let ticket = parent(&repo).unwrap();
        assert_eq!(ticket.shown(), Ok(PushOptions::default()));
        let tickets = directory(&repo);
        fs::create_dir_all(&tickets).unwrap();
        let own = std::process::id();
        fs::write(tickets.join(format!("{own}.1")), "another life of this number").unwrap();
        fs::write(tickets.join("999999999.7"), "a process that has ended").unwrap();
        let other = tickets.join(format!("{own}.{}", started(own.cast_signed()).unwrap()));
        fs::write(&other, "a push that goes on").unwrap();
        let shown = PushOptions { lease: Some("1.2.ab".into()), ..PushOptions::default() };
        ticket.leave(&shown).unwrap();
        assert_eq!(ticket.shown(), Ok(shown));
        assert_eq!(fs::read_dir(&tickets).unwrap().count(), 2, "its own and the other one that lives");
        assert!(other.exists());
    }
}
