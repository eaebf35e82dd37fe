//! Runs one command under a lease (mission D15): it lives as long as the lease is renewed, and not a moment longer.
//!
//! Three processes: this one renews; a *warden* ([`group_leader`]) leads the command's process group and holds the reading end
//! of a pipe, the leash, whose only writing end is here. Whatever becomes of this process, `kill -9` included, the leash
//! ends with it, and the warden ends the group. So no command works on for a wrapper that is gone.

mod group_leader;
mod renewal;
mod signals;

pub use group_leader::warden;
pub use renewal::{Beat, Heart};
pub use signals::Signals;

use crate::process::{Group, ready};
use crate::process_liveness;
use onus_core::process::Process;
use onus_core::refusal::Refusal;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::ffi::OsString;
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often signals and the lease are looked after; the command's end is seen at once.
const ROUND: Duration = Duration::from_millis(50);
/// How long a command that lost its lease may take to end.
const LOST_GRACE: Duration = Duration::from_secs(2);
/// How long a command that was asked to end, or has ended its own assignment, may take.
const GRACE: Duration = Duration::from_secs(30);

/// How long a supervisor that was stopped itself waits for the store's word before it takes it for unreachable.
const WOKEN_GRACE: Duration = Duration::from_secs(10);

/// What to run, and where.
#[derive(Debug)]
pub struct SupervisedCommand<'a> {
    /// This program with the words that make it the warden; the number of the leash and the command follow.
    pub warden: &'a [OsString],
    pub command: &'a [OsString],
    pub directory: &'a Path,
    /// In addition to what this process has.
    pub environment: &'a [(&'static str, OsString)],
    /// Where its output goes; without it, where this process's own goes.
    pub output: Option<OutputPipes>,
}

/// Whom a command's output goes to, and when it last said something.
#[derive(Debug)]
pub struct OutputPipes {
    pub stdout: PipeWriter,
    pub stderr: PipeWriter,
    pub pulse: Arc<Pulse>,
    /// How long it may say nothing.
    pub silence: Option<Duration>,
}

/// When something was last heard.
#[derive(Debug)]
pub struct Pulse {
    began: Instant,
    millis: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse { began: Instant::now(), millis: AtomicU64::new(0) }
    }
}

impl Pulse {
    pub fn beat(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.millis.store(now, Ordering::Relaxed);
    }

    fn quiet_for(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.millis.load(Ordering::Relaxed)))
    }
}

/// How it ended.
#[derive(Debug)]
pub enum End {
    /// By itself: its exit code, 128 and the signal's number where one ended it.
    Exited(u8),
    /// The lease was lost, and the command was stopped.
    Lost(Refusal),
    /// The store could not be reached until the lease was about to run out, and the command was stopped before that.
    Unreachable(Refusal),
    /// Somebody interrupted it.
    Interrupted(u8),
    /// It said nothing for so long, and was stopped.
    Silent(Duration),
}

/// Worth telling while it runs.
#[derive(Debug)]
pub enum News<'a> {
    /// This process supervises a group, in which nothing runs yet. Whoever knows it can tell when both are gone.
    Born {
        process: Process,
    },
    Renewed {
        left: Duration,
        renewals: u64,
    },
    /// Two thirds of the lease are over without a renewal.
    Late {
        left: Duration,
        why: &'a Refusal,
    },
    Stopping {
        why: &'a str,
    },
}

/// The command in a network of its own with nobody in it, by bubblewrap; what it may do with files stays as it was. Sockets
/// with a name lie in /run: to the kernel they are no network.
pub fn without_network(command: &[OsString]) -> Vec<OsString> {
    let around = "bwrap --dev-bind / / --tmpfs /run --unshare-net --die-with-parent --";
    around.split(' ').map(OsString::from).chain(command.iter().cloned()).collect()
}

/// Runs the command to its end, or to the lease's.
pub fn supervise(
    mut order: SupervisedCommand<'_>,
    heart: &mut Heart,
    signals: &mut Signals,
    tell: &mut dyn FnMut(News<'_>),
) -> io::Result<End> {
    let heard = order.output.as_ref().and_then(|to| to.silence.map(|most| (Arc::clone(&to.pulse), most)));
    let (mut group, leash) = start(&mut order, tell)?;
    let ended = group.watch()?;
    let mut watch = Watch::new(&group);
    while !ready([Some(&ended)], ROUND)?[0] {
        watch.wake(heart);
        watch.heed(signals, tell);
        watch.listen(heart, tell);
        if let Some((pulse, most)) = &heard {
            watch.hear(pulse, *most, tell);
        }
        // Nobody could wake it: the shell waits for us, and we are not in the foreground.
        if group.was_stopped() {
            group.signal(Signal::CONT);
        }
        if watch.kill_at.is_some_and(|at| Instant::now() >= at) {
            watch.group.signal(Signal::KILL);
            watch.kill_at = None;
        }
    }
    let why = watch.why.take();
    // Only now: the leash held the warden while there was something to guard.
    let code = code(group.bury()?);
    drop(leash);
    Ok(match why {
        None => End::Exited(code),
        Some(Why::Lost(refusal)) => End::Lost(refusal),
        Some(Why::Unreachable(refusal)) => End::Unreachable(refusal),
        Some(Why::Interrupted) => End::Interrupted(code),
        Some(Why::Silent(most)) => End::Silent(most),
    })
}

fn start(
    order: &mut SupervisedCommand<'_>,
    tell: &mut dyn FnMut(News<'_>),
) -> io::Result<(Group, PipeWriter)> {
    let (end, mut leash) = io::pipe()?;
    fcntl_setfd(&end, FdFlags::empty())?;
    let [program, words @ ..] = order.warden else {
        return Err(io::Error::other("no warden"));
    };
    let mut command = Command::new(program);
    command.args(words).arg(end.as_raw_fd().to_string()).arg("--").args(order.command);
    command.current_dir(order.directory).process_group(0);
    command.envs(order.environment.iter().map(|(name, value)| (name, value)));
    if let Some(OutputPipes { stdout, stderr, .. }) = order.output.take() {
        command.stdout(stdout).stderr(stderr);
    }
    let group = Group::new(command.spawn()?);
    // It holds our copies of the writing ends: the reading ends would never come to their ends.
    drop(command);
    drop(end);
    hand_over_terminal(&group);
    // Where a process cannot be named its death cannot be proven: the lease runs its course.
    if let Ok(process) = process_liveness::supervising(group.id()) {
        tell(News::Born { process });
    }
    // The warden starts the command when it hears this: by then the terminal is the group's.
    leash.write_all(b"!")?;
    Ok((group, leash))
}

/// A command that reads from a terminal must be in its foreground. The warden gives it back.
fn hand_over_terminal(group: &Group) {
    let stdin = io::stdin();
    if tcgetpgrp(&stdin).is_ok_and(|foreground| foreground == getpgrp()) {
        // Where this fails the command can still run; it only cannot read.
        let _ = tcsetpgrp(&stdin, group.id());
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

enum Why {
    Lost(Refusal),
    Unreachable(Refusal),
    Interrupted,
    Silent(Duration),
}

struct Watch<'a> {
    group: &'a Group,
    why: Option<Why>,
    kill_at: Option<Instant>,
    interruptions: u32,
    warned: bool,
    /// When the last round was.
    seen: Instant,
    /// Until when the store's first word is waited for after this process was stopped and went on.
    woken_until: Option<Instant>,
}

impl Watch<'_> {
    fn new(group: &Group) -> Watch<'_> {
        Watch {
            group,
            why: None,
            kill_at: None,
            interruptions: 0,
            warned: false,
            seen: Instant::now(),
            woken_until: None,
        }
    }

    /// Somebody who stops this process stops its renewals, too: that says nothing about the store. It is asked before
    /// anything is concluded, for nobody may have taken over, and if somebody has, that is what there is to tell.
    fn wake(&mut self, heart: &Heart) {
        let now = Instant::now();
        if now.duration_since(self.seen) >= heart.grace() + ROUND {
            // The command should be gone before the lease is. Once that is over there is nothing left to be in time for.
            let patience = if heart.left().is_zero() { WOKEN_GRACE } else { heart.grace() };
            self.woken_until = Some(now + patience);
        }
        self.seen = now;
    }

    /// The first interruption is passed on, the second one kills.
    fn heed(&mut self, signals: &mut Signals, tell: &mut dyn FnMut(News<'_>)) {
        for signal in signals.received() {
            self.interruptions += 1;
            self.why.get_or_insert(Why::Interrupted);
            if self.interruptions > 1 {
                self.group.signal(Signal::KILL);
                continue;
            }
            tell(News::Stopping { why: "interrupted; once more kills it" });
            self.group.signal(signal);
            if signal != Signal::INT {
                self.kill_at = Some(Instant::now() + GRACE);
            }
        }
    }

    fn listen(&mut self, heart: &mut Heart, tell: &mut dyn FnMut(News<'_>)) {
        for beat in heart.beats() {
            self.woken_until = None;
            match beat {
                Beat::Live { .. } => {
                    self.warned = false;
                    tell(News::Renewed { left: heart.left(), renewals: heart.renewals() });
                }
                Beat::Unreachable(_) => {}
                Beat::Over => self.kill_at = self.kill_at.or(Some(Instant::now() + GRACE)),
                Beat::Lost(refusal) => {
                    tell(News::Stopping { why: &refusal.detail });
                    self.stop(Why::Lost(refusal), LOST_GRACE);
                }
            }
        }
        let is_waking = self.woken_until.is_some_and(|until| Instant::now() < until);
        if heart.is_over() || self.why.is_some() || is_waking {
            return;
        }
        if heart.must_stop() {
            tell(News::Stopping { why: "the store cannot be reached and the lease is about to run out" });
            self.stop(Why::Unreachable(heart.trouble()), heart.grace());
        } else if heart.is_late() && !self.warned {
            self.warned = true;
            tell(News::Late { left: heart.left(), why: &heart.trouble() });
        }
    }

    /// Who says nothing for too long hangs.
    fn hear(&mut self, pulse: &Pulse, most: Duration, tell: &mut dyn FnMut(News<'_>)) {
        if self.why.is_none() && self.kill_at.is_none() && pulse.quiet_for() > most {
            tell(News::Stopping { why: "it has said nothing for too long" });
            self.stop(Why::Silent(most), LOST_GRACE);
        }
    }

    fn stop(&mut self, why: Why, grace: Duration) {
        // A lost lease weighs more than an interruption: there is nothing left to give back.
        self.why = Some(why);
        self.group.signal(Signal::TERM);
        self.kill_at = Some(Instant::now() + grace);
    }
}
