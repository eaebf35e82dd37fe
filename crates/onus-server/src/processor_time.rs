//! What callers use of the processors for questions that should be short. Most are; a list of ten thousand tasks is not, and a
//! caller that asks for many of them goes where nobody else waits for it.

use crate::allowance::Share;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A question that takes no longer than this is short, however many there are: the rate sees to their number.
const SHORT: Duration = Duration::from_millis(2);

/// What each caller may use beyond that in a second, and at once after a rest.
const PER_SECOND: f64 = 0.05;
const AT_ONCE: f64 = 0.25;

/// So many callers are counted. When there are more, the count begins anew.
const COUNTED: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct ProcessorTime {
    by: Mutex<HashMap<Share, Spent>>,
}

/// Seconds beyond what is given back with time, and when that was so.
#[derive(Debug)]
struct Spent {
    seconds: f64,
    at: Instant,
}

impl Spent {
    fn now(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.seconds - since * PER_SECOND).max(0.0)
    }
}

impl ProcessorTime {
    /// A question took so much.
    pub(crate) fn count(&self, share: &Share, took: Duration, now: Instant) {
        let Some(long) = took.checked_sub(SHORT).filter(|long| !long.is_zero()) else { return };
        let mut by = self.by();
        if by.len() >= COUNTED && !by.contains_key(share) {
            by.clear();
        }
        let spent = by.entry(share.clone()).or_insert(Spent { seconds: 0.0, at: now });
        // Nobody is kept waiting for long by what is over.
        let seconds = (spent.now(now) + long.as_secs_f64()).min(2.0 * AT_ONCE);
        *spent = Spent { seconds, at: now };
    }

    /// Whether a caller has used up what it may have at the others' cost.
    pub(crate) fn is_over(&self, share: &Share, now: Instant) -> bool {
        self.by().get(share).is_some_and(|spent| spent.now(now) > AT_ONCE)
    }

    fn by(&self) -> MutexGuard<'_, HashMap<Share, Spent>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread has used of the processors so far.
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onus_core::hash::Digest;

    #[test]
    fn only_what_is_not_short_counts_and_it_is_given_back() {
        let (spent, now) = (ProcessorTime::default(), Instant::now());
        let (one, other) = (Share::Bearer(Digest([1; 32])), Share::Bearer(Digest([2; 32])));
        for _ in 0..100_000 {
            spent.count(&one, SHORT, now);
        }
        assert!(!spent.is_over(&one, now), "short questions are free");
        for _ in 0..1_000 {
            spent.count(&one, Duration::from_millis(20), now);
        }
        assert!(spent.is_over(&one, now));
        assert!(!spent.is_over(&other, now), "everybody has their own");
        assert!(spent.is_over(&one, now + Duration::from_secs(1)));
        assert!(!spent.is_over(&one, now + Duration::from_secs(6)), "it is forgotten soon");
    }
}
