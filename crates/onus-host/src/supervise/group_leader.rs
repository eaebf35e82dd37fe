//! The warden: leads the command's group, and ends it when the leash ends.

use super::signals::Signals;
use crate::file::refused;
use onus_core::refusal::Refusal;
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::process::{Signal, getpgrp, getppid, kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long a command whose wrapper is gone may take to end.
const GRACE: Duration = Duration::from_secs(2);
const SIGNALS_ROUND: Duration = Duration::from_millis(50);

/// Runs the command as the leader of its group; gives its exit code.
pub fn warden(leash: i32, command: &[OsString]) -> Result<u8, Refusal> {
    let path = format!("/dev/fd/{leash}");
    let mut leash = opened(&path).map_err(|e| refused("open", Path::new(&path), &e))?;
    // Handlers, not deaf ears: the command starts with every signal as it should be.
    let signals = Signals::watch().map_err(|e| refused("watch signals of", Path::new(&path), &e))?;
    let wrapper = getppid();
    if !matches!(leash.read(&mut [0]), Ok(1)) {
        return Ok(1);
    }
    let [program, args @ ..] = command else { return Ok(2) };
    let mut child = match Command::new(program).args(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            let name = program.to_string_lossy();
            drop(writeln!(io::stderr(), "onus run: {}: {error}", crate::file::printable(&name)));
            give_back_terminal();
            return Ok(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 });
        }
    };
    std::thread::spawn(move || end_with(leash));
    std::thread::spawn(move || second_interruption_kills(signals));
    let code =
        child.wait().ok().and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)));
    if getppid() != wrapper {
        // They have been asked to end: a git in the middle of something takes its locks away.
        std::thread::sleep(GRACE / 4);
        end_group();
    }
    give_back_terminal();
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// A file of its own for an inherited descriptor. Where the other end is gone already, opening must not wait for it.
fn opened(path: &str) -> io::Result<File> {
    let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

/// The wrapper never writes again: whatever this read gives, the leash has ended.
fn end_with(mut leash: File) {
    while let Err(error) = leash.read(&mut [0]) {
        if error.kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    let _ = kill_process_group(getpgrp(), Signal::TERM);
    std::thread::sleep(GRACE);
    end_group();
}

/// In the foreground of a terminal the keys reach this group and not the wrapper.
fn second_interruption_kills(mut signals: Signals) {
    let mut interruptions = 0;
    loop {
        interruptions += signals.received().iter().filter(|signal| **signal == Signal::INT).count();
        if interruptions > 1 {
            end_group();
        }
        std::thread::sleep(SIGNALS_ROUND);
    }
}

/// This process is one of them.
fn end_group() {
    let _ = kill_process_group(getpgrp(), Signal::KILL);
}

/// Only who is in the foreground may give it away; the wrapper could not take it.
fn give_back_terminal() {
    let stdin = io::stdin();
    let parent = getppid().and_then(|parent| rustix::process::getpgid(Some(parent)).ok());
    if let Some(parent) = parent
        && tcgetpgrp(&stdin).is_ok_and(|foreground| foreground == getpgrp())
    {
        let _ = tcsetpgrp(&stdin, parent);
    }
}
