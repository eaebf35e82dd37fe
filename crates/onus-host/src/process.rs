//! Runs one shell command line that a person wrote: a probe's or a check's.
//!
//! It gets a process group of its own, so that ending it ends what it started; an environment that is allowed, not
//! inherited, so that no token reaches it; and a limit on time and output. What leaves the group and keeps the output
//! open is not waited for. (`std` makes the group and rustix signals it; a crate for that would add nothing.)

mod environment;
mod output;

pub use environment::Environment;
pub use output::Captured;

use output::Capture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_dumpable_behavior,
    test_kill_process_group, waitid,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const CHUNK: usize = 65_536;
/// Linux lets an unprivileged process make a pipe as large as 1 MiB.
const PIPE_CHUNKS: usize = 16;
/// How long the output of a command that has ended may stay open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long a killed command may take to be gone: one that waits for a dead disk stays for ever.
const BURIAL: Duration = Duration::from_secs(2);

/// A line for `/bin/sh -c`.
#[derive(Debug)]
pub struct CommandLine<'a> {
    pub line: &'a str,
    pub directory: &'a Path,
    pub environment: &'a Environment,
    /// After this it is asked to end.
    pub limit: Duration,
    /// After this much more it is killed.
    pub grace: Duration,
    /// How many bytes of the output are kept, half from its beginning and half from its end.
    pub keep: usize,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// None when a signal ended it, or when it could not be ended.
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub took: Duration,
    /// Standard output and standard error in the order they were written.
    pub output: Captured,
}

impl Ran {
    pub fn succeeded(&self) -> bool {
        self.exit == Some(0) && !self.timed_out
    }
}

impl CommandLine<'_> {
    /// An error is one of this side: no shell, no such directory, no process to be had.
    pub fn run(&self) -> io::Result<Ran> {
        self.run_by(spawn_without_sight)
    }

    /// The same for a sandbox, which needs root's powers to be made and leaves them behind.
    pub fn run_sandbox(&self) -> io::Result<Ran> {
        self.run_by(Command::spawn)
    }

    fn run_by(&self, spawn: fn(&mut Command) -> io::Result<Child>) -> io::Result<Ran> {
        let began = Instant::now();
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", self.line])
            .current_dir(self.directory)
            .env_clear()
            .envs(self.environment.pairs())
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0);
        let group = Group::new(spawn(&mut command)?);
        // It holds our copies of the writing end; the reading end would never come to its end.
        drop(command);
        let ended = group.watch()?;
        let watch = ProcessWatch {
            group,
            output: Some(reader),
            ended: Some(ended),
            capture: Capture::new(self.keep),
        };
        watch.follow(began, self.limit, self.grace)
    }
}

/// A process and everything it started that stayed in its group.
pub(crate) struct Group {
    leader: Child,
    id: Pid,
}

impl Group {
    pub(crate) fn new(leader: Child) -> Group {
        let id = Pid::from_child(&leader);
        Group { leader, id }
    }

    /// A pipe that ends when the leader does. The leader is not reaped: until then nobody else can get its number,
    /// and a signal to the group cannot hit a stranger.
    pub(crate) fn watch(&self) -> io::Result<PipeReader> {
        let (reader, writer) = io::pipe()?;
        let id = self.id;
        std::thread::Builder::new().name("watch".into()).spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(id), options) {}
            drop(writer);
        })?;
        Ok(reader)
    }

    /// An error means that nobody is left to be told.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }

    /// Whether the leader was stopped since the last call.
    pub(crate) fn was_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(self.id), options), Ok(Some(_)))
    }

    pub(crate) fn id(&self) -> Pid {
        self.id
    }

    /// Takes leave of the leader, which has ended, and ends what it left behind: asked first, so that a git in the
    /// middle of something takes its locks away. A group that has members keeps its number.
    pub(crate) fn bury(&mut self) -> io::Result<ExitStatus> {
        let status = self.leader.wait()?;
        let until = Instant::now() + DRAIN;
        self.signal(Signal::TERM);
        while test_kill_process_group(self.id).is_ok() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(Signal::KILL);
        Ok(status)
    }
}

impl Drop for Group {
    /// Whatever went wrong on our side, nothing stays behind.
    fn drop(&mut self) {
        if let Ok(None) = self.leader.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.leader.try_wait();
        }
    }
}

/// What the command is given next, when its time has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    AskedToEnd,
    Killed,
    Ended,
}

struct ProcessWatch {
    group: Group,
    output: Option<PipeReader>,
    ended: Option<PipeReader>,
    capture: Capture,
}

impl ProcessWatch {
    fn follow(mut self, began: Instant, limit: Duration, grace: Duration) -> io::Result<Ran> {
        let mut stage = Stage::Running;
        let mut until = began + limit;
        let mut timed_out = false;
        while self.ended.is_some() || self.output.is_some() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                (stage, until) = match stage {
                    Stage::Running => {
                        timed_out = true;
                        self.group.signal(Signal::TERM);
                        (Stage::AskedToEnd, Instant::now() + grace)
                    }
                    Stage::AskedToEnd => {
                        self.group.signal(Signal::KILL);
                        (Stage::Killed, Instant::now() + BURIAL)
                    }
                    Stage::Killed | Stage::Ended => break,
                };
                continue;
            }
            self.wait(left)?;
            if self.ended.is_none() && stage != Stage::Ended {
                self.group.signal(Signal::KILL);
                (stage, until) = (Stage::Ended, Instant::now() + DRAIN);
            }
        }
        self.drain()?;
        // While the leader is there, waiting for it could last for ever.
        let status = if self.ended.is_none() { Some(self.group.leader.wait()?) } else { None };
        Ok(Ran {
            exit: status.as_ref().and_then(ExitStatus::code),
            signal: status.as_ref().and_then(ExitStatusExt::signal),
            timed_out,
            took: began.elapsed(),
            output: self.capture.finish(),
        })
    }

    /// Waits for output or for the end, and takes what is there.
    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let [output, ended] = ready([self.output.as_ref(), self.ended.as_ref()], at_most)?;
        if output {
            self.read()?;
        }
        if ended {
            self.ended = None;
        }
        Ok(())
    }

    /// What was written before the end came, but no more than a pipe holds: somebody may still be writing.
    fn drain(&mut self) -> io::Result<()> {
        for _ in 0..PIPE_CHUNKS {
            let [more] = ready([self.output.as_ref()], Duration::ZERO)?;
            if !more {
                break;
            }
            self.read()?;
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.output else { return Ok(()) };
        let mut chunk = [0; CHUNK];
        match pipe.read(&mut chunk) {
            Ok(0) => self.output = None,
            Ok(count) => self.capture.add(&chunk[..count]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

/// Which of the pipes have something to read, or have ended.
pub(crate) fn ready<const N: usize>(
    pipes: [Option<&PipeReader>; N],
    at_most: Duration,
) -> io::Result<[bool; N]> {
    let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
    let open = pipes.iter().flatten();
    let mut polled: Vec<_> = open.map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)).collect();
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok([false; N]),
        Err(e) => return Err(e.into()),
    }
    let mut events = polled.iter().map(|fd| !fd.revents().is_empty());
    Ok(pipes.map(|pipe| pipe.is_some() && events.next() == Some(true)))
}

/// Keeps others of the same user from reading this process in `/proc`, where its tokens and passwords are: a check is a
/// child, and a child knows its parent.
pub fn keep_secrets() {
    // Without it everything works as well.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// What lets root read another process that may not be read.
const SIGHT: [CapabilitySet; 3] =
    [CapabilitySet::SYS_PTRACE, CapabilitySet::PERFMON, CapabilitySet::SYS_ADMIN];

/// Starts a command that may not look into other processes even where we are root. The right is taken from the thread that
/// starts it, and a thread of its own ends with it.
fn spawn_without_sight(command: &mut Command) -> io::Result<Child> {
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| {
            for right in SIGHT {
                // Whoever may not give it up does not have it.
                let _ = remove_capability_from_bounding_set(right);
            }
            command.spawn()
        });
        starting.join().unwrap_or_else(|_| Err(io::Error::other("the command could not be started")))
    })
}
