//! Runs probes: side by side, each within its own time, whatever the other end does (mission C5).
//!
//! Each has a thread. One that is stuck where no time limit reaches (a name server, a dead file system) is left to
//! itself: its answer would come too late for anybody.

mod address;
mod command;
mod disk;
mod git;
mod http;
mod localstack;
mod tcp;

use onus_core::output::redacted;
use onus_core::probe::{DETAIL_MAX, Probe, ProbeKind, ProbeResult, Verdict};
use onus_core::text::is_unprintable;
use onus_core::time::{Millis, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a probe may know about its workstation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    pub directory: Option<&'a Path>,
    /// The branch it was registered with.
    pub branch: Option<&'a str>,
    /// The main branch, as a reference or a commit.
    pub main: Option<&'a str>,
}

/// The same, for a thread that may outlive the call.
#[derive(Debug)]
struct Around {
    directory: Option<PathBuf>,
    branch: Option<String>,
    main: Option<String>,
}

/// One result for each probe, in the order of the probes.
pub fn run(probes: &[Probe], around: &Surroundings<'_>, now: fn() -> Timestamp) -> Vec<ProbeResult> {
    let started: Vec<_> = probes.iter().map(|probe| Started::new(probe, around, now)).collect();
    started.into_iter().map(Started::result).collect()
}

/// What one probe saw.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    verdict: Verdict,
    detail: String,
}

impl Seen {
    fn passed(detail: impl Into<String>) -> Seen {
        Seen { verdict: Verdict::Passed, detail: detail.into() }
    }

    fn failed(detail: impl Into<String>) -> Seen {
        Seen { verdict: Verdict::Failed, detail: detail.into() }
    }

    fn timed_out(detail: impl Into<String>) -> Seen {
        Seen { verdict: Verdict::TimedOut, detail: detail.into() }
    }

    fn could_not_run(detail: impl Into<String>) -> Seen {
        Seen { verdict: Verdict::CouldNotRun, detail: detail.into() }
    }
}

struct Started {
    probe: Probe,
    at: Timestamp,
    began: Instant,
    answer: Result<Receiver<(Seen, Duration)>, std::io::Error>,
}

impl Started {
    fn new(probe: &Probe, around: &Surroundings<'_>, now: fn() -> Timestamp) -> Started {
        let (at, began, probe) = (now(), Instant::now(), probe.clone());
        let around = Around {
            directory: around.directory.map(Path::to_owned),
            branch: around.branch.map(str::to_owned),
            main: around.main.map(str::to_owned),
        };
        let (sender, receiver) = channel();
        let run = {
            let probe = probe.clone();
            move || {
                let seen = see(&probe, &around, began);
                // Nobody listens any more when it came too late.
                let _ = sender.send((seen, began.elapsed()));
            }
        };
        let answer = std::thread::Builder::new().name("probe".into()).spawn(run).map(|_| receiver);
        Started { probe, at, began, answer }
    }

    fn result(self) -> ProbeResult {
        let limit = limit(&self.probe);
        let until = self.began + limit + margin(&self.probe.kind);
        let (seen, took) = match &self.answer {
            Ok(answer) => match answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(answered) => answered,
                Err(RecvTimeoutError::Timeout) => {
                    (Seen::timed_out(format!("no answer within {}", span(limit))), self.began.elapsed())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    (Seen::could_not_run("the probe itself broke off"), self.began.elapsed())
                }
            },
            Err(e) => (Seen::could_not_run(format!("it could not be started: {e}")), self.began.elapsed()),
        };
        ProbeResult {
            probe: self.probe.to_string(),
            at: self.at,
            took_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
            verdict: seen.verdict,
            detail: one_line(&redacted(&seen.detail)),
        }
    }
}

fn see(probe: &Probe, around: &Around, began: Instant) -> Seen {
    let clock = Clock { until: began + limit(probe), limit: limit(probe) };
    let seen = match &probe.kind {
        ProbeKind::Command { line } => Ok(command::see(line, around, &clock)),
        ProbeKind::Tcp(endpoint) => tcp::see(endpoint, &clock),
        ProbeKind::Http { url, expect } => http::see(url, expect, &clock),
        ProbeKind::LocalStack { url, services } => localstack::see(url, services, &clock),
        ProbeKind::Git(tree) => git::see(tree, around),
        ProbeKind::Disk { bytes } => disk::see(*bytes, around),
    };
    seen.unwrap_or_else(|early| early)
}

/// How much of its time a probe has left.
struct Clock {
    until: Instant,
    limit: Duration,
}

impl Clock {
    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn timed_out(&self, what: &str) -> Seen {
        Seen::timed_out(format!("{what} within {}", span(self.limit)))
    }
}

fn limit(probe: &Probe) -> Duration {
    Duration::from_millis(u64::try_from(probe.timeout.0).unwrap_or_default())
}

/// How much longer we wait: a probe that keeps its own time has more to tell than that none came.
fn margin(kind: &ProbeKind) -> Duration {
    match kind {
        ProbeKind::Command { .. } => command::MARGIN,
        _ => Duration::from_millis(100),
    }
}

fn span(time: Duration) -> Millis {
    Millis(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// The workstation's directory, for probes that mean nothing without one.
fn directory(around: &Around) -> Result<&Path, Seen> {
    around.directory.as_deref().ok_or_else(|| Seen::could_not_run("the workstation has no directory"))
}

/// What others said is in it: shortened, and nothing that a terminal obeys.
fn one_line(text: &str) -> String {
    let mut shown = |c: char| if is_unprintable(c) { ' ' } else { c };
    let mut line: String = text.chars().take(DETAIL_MAX).map(&mut shown).collect();
    if text.chars().nth(DETAIL_MAX).is_some() {
        line.pop();
        line.push('…');
    }
    line
}

/// The addresses of an endpoint that may be spoken to, for whoever else follows the probes' rules.
pub(crate) fn checked(endpoint: &onus_core::probe::Endpoint) -> Result<http::Checked, String> {
    address::resolve(endpoint).map(http::Checked).map_err(|seen| seen.detail)
}

/// The same as a plain list.
pub(crate) fn addresses(endpoint: &onus_core::probe::Endpoint) -> Result<Vec<std::net::SocketAddr>, String> {
    address::resolve(endpoint).map_err(|seen| seen.detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_one_short_printable_line() {
        assert_eq!(one_line("a\u{1b}[2J\nb\u{202e}"), "a [2J b ");
        let long = one_line(&"é".repeat(DETAIL_MAX + 1));
        assert_eq!((long.chars().count(), long.ends_with("é…")), (DETAIL_MAX, true));
        assert_eq!(one_line(&"é".repeat(DETAIL_MAX)).chars().count(), DETAIL_MAX);
    }
}
