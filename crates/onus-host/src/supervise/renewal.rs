//! Renewal in the background, and what is known about the lease without asking anybody.

use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Two renewals are never closer, unless somebody wants it.
const SOONEST: Duration = Duration::from_millis(200);

/// The answer to one attempt to renew.
#[derive(Debug)]
pub enum Beat {
    /// Renewed; the lease now lasts so long. Where a limit is near it is renewed again sooner than it must be.
    Live {
        ttl: Duration,
        again: Option<Duration>,
    },
    /// Nobody answered; the next attempt may succeed.
    Unreachable(Refusal),
    /// The holder ended the assignment itself.
    Over,
    Lost(Refusal),
}

/// Renews every third of the lease. Its own clock says when the lease would run out: the store may not answer any more.
#[derive(Debug)]
pub struct Heart {
    heard: Receiver<(Instant, Beat)>,
    nudge: Sender<()>,
    /// When the last successful renewal was begun: the store's clock read it later.
    renewed: Instant,
    ttl: Duration,
    renewals: u64,
    trouble: Option<Refusal>,
    over: bool,
}

impl Heart {
    /// `granted` is a moment before the grant was asked for. `first` is when the first renewal is wanted, if that is sooner
    /// than the lease asks for.
    pub fn start(
        granted: Instant,
        ttl: Duration,
        first: Option<Duration>,
        mut renew: impl FnMut() -> Beat + Send + 'static,
    ) -> io::Result<Heart> {
        let (said, heard) = mpsc::channel();
        let (nudge, nudged) = mpsc::channel();
        let run = move || {
            let mut wait = sooner(ttl / 3, first);
            while !matches!(nudged.recv_timeout(wait), Err(RecvTimeoutError::Disconnected)) {
                let began = Instant::now();
                let beat = renew();
                let go_on = match &beat {
                    Beat::Live { ttl, again } => Some(sooner(*ttl / 3, *again)),
                    Beat::Unreachable(_) => {
                        Some((ttl / 12).clamp(Duration::from_millis(50), Duration::from_secs(5)))
                    }
                    Beat::Over | Beat::Lost(_) => None,
                };
                if said.send((began, beat)).is_err() {
                    return;
                }
                let Some(next) = go_on else { return };
                wait = next;
            }
        };
        std::thread::Builder::new().name("renew".into()).spawn(run)?;
        Ok(Heart { heard, nudge, renewed: granted, ttl, renewals: 0, trouble: None, over: false })
    }

    /// Whoever sends something has the lease renewed at once, and so learns whether the work may go on.
    pub fn nudge(&self) -> Sender<()> {
        self.nudge.clone()
    }

    pub(super) fn beats(&mut self) -> Vec<Beat> {
        let beats: Vec<_> = self.heard.try_iter().collect();
        beats.into_iter().map(|(began, beat)| self.note(began, beat)).collect()
    }

    fn note(&mut self, began: Instant, beat: Beat) -> Beat {
        match &beat {
            Beat::Live { ttl, .. } => {
                (self.renewed, self.ttl) = (began, *ttl);
                self.renewals += 1;
                self.trouble = None;
            }
            Beat::Unreachable(refusal) => self.trouble = Some(refusal.clone()),
            Beat::Over | Beat::Lost(_) => self.over = true,
        }
        beat
    }

    /// Why the last attempt failed; one that hangs has not said.
    pub(super) fn trouble(&self) -> Refusal {
        let silent = || Refusal::new(Code::StoreUnavailable, "the store does not answer");
        self.trouble.clone().unwrap_or_else(silent)
    }

    /// Whether there is no lease left that could run out.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    pub fn left(&self) -> Duration {
        self.ttl.saturating_sub(self.renewed.elapsed())
    }

    pub(super) fn is_late(&self) -> bool {
        self.renewed.elapsed() >= self.ttl * 2 / 3
    }

    /// Early enough that the command is gone before anybody else may have the task.
    pub(super) fn must_stop(&self) -> bool {
        self.left() <= self.margin()
    }

    /// How long the command may take to end: half of what is left then.
    pub(super) fn grace(&self) -> Duration {
        self.margin() / 2
    }

    fn margin(&self) -> Duration {
        (self.ttl / 6).min(Duration::from_secs(30))
    }
}

/// No sooner than makes sense.
fn sooner(usual: Duration, wanted: Option<Duration>) -> Duration {
    wanted.map_or(usual, |wanted| usual.min(wanted.max(SOONEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heart whose last renewal was begun `ago`.
    fn heart(ttl: u64, ago: u64) -> Heart {
        let renewed = Instant::now().checked_sub(Duration::from_secs(ago)).unwrap();
        let mut heart = Heart::start(renewed, Duration::from_secs(ttl), None, || Beat::Over).unwrap();
        heart.trouble = Some(Refusal::new(Code::StoreUnavailable, "gone"));
        heart
    }

    #[test]
    fn it_stops_before_the_lease_runs_out_and_warns_before_that() {
        for (ago, late, stop) in
            [(0, false, false), (590, false, false), (610, true, false), (875, true, true)]
        {
            let heart = heart(900, ago);
            assert_eq!((heart.is_late(), heart.must_stop()), (late, stop), "{ago}");
        }
        let short = heart(12, 11);
        assert!(short.must_stop() && short.grace() <= Duration::from_secs(1));
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_begun_and_brings_its_own_length() {
        let mut heart = heart(900, 800);
        let began = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        heart.note(began, Beat::Live { ttl: Duration::from_secs(60), again: None });
        assert!(heart.trouble.is_none() && heart.renewals() == 1);
        assert!(heart.left() <= Duration::from_secs(50));
    }

    #[test]
    fn nothing_is_renewed_after_the_end() {
        let mut calls = 0;
        let (told, tell) = mpsc::channel();
        let renew = move || {
            calls += 1;
            told.send(calls).unwrap();
            Beat::Lost(Refusal::new(Code::Fenced, "held by another"))
        };
        let _heart = Heart::start(Instant::now(), Duration::from_millis(3), None, renew).unwrap();
        assert_eq!(tell.iter().collect::<Vec<_>>(), [1], "the thread has ended with the lease");
    }
}
