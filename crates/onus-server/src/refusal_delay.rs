//! Whoever is refused again and again is told so later and later: to say no costs something as well, and somebody who asks at
//! once after every no would have it done without an end.

use crate::allowance::Share;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many refusals of one caller are told at once, and so many more with each second.
const AT_ONCE: f64 = 100.0;
const PER_SECOND: f64 = 50.0;

/// Beyond that they wait, this long once there were twice as many as are told at once.
const LONGEST: Duration = Duration::from_secs(1);

/// So many callers are counted. When there are more, the count begins anew.
const COUNTED: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct RefusalDelay {
    by: Mutex<HashMap<Share, RefusalCount>>,
}

#[derive(Debug, Clone, Copy)]
struct RefusalCount {
    count: f64,
    at: Instant,
}

impl RefusalDelay {
    /// Waits before a refusal of this kind is told, if its caller has had many.
    pub(crate) async fn wait(&self, share: &Share, status: StatusCode) {
        if !is_counted(status) {
            return;
        }
        let delay = self.delay(share, Instant::now());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    fn delay(&self, share: &Share, now: Instant) -> Duration {
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        if by.len() >= COUNTED && !by.contains_key(share) {
            by.clear();
        }
        let refused = by.entry(share.clone()).or_insert(RefusalCount { count: 0.0, at: now });
        let since = now.saturating_duration_since(refused.at).as_secs_f64();
        let count = (refused.count - since * PER_SECOND).max(0.0) + 1.0;
        *refused = RefusalCount { count: count.min(2.0 * AT_ONCE), at: now };
        LONGEST.mul_f64(((count - AT_ONCE) / AT_ONCE).clamp(0.0, 1.0))
    }
}

/// What says more about the caller than about the task: it may not, or not so often, or not so much.
fn is_counted(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::TOO_MANY_REQUESTS
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use onus_core::hash::Digest;

    #[test]
    fn who_is_refused_again_and_again_waits_longer_and_nobody_else_does() {
        let (refusals, now) = (RefusalDelay::default(), Instant::now());
        let (one, other) = (Share::Bearer(Digest([1; 32])), Share::Strangers);
        let told: Vec<Duration> = (0..300).map(|_| refusals.delay(&one, now)).collect();
        assert!(told[..100].iter().all(Duration::is_zero), "the first ones are told at once");
        assert!(told[100..200].is_sorted() && told[110] > Duration::ZERO);
        assert_eq!(told[299], LONGEST);
        assert!(refusals.delay(&other, now).is_zero());
        assert!(refusals.delay(&one, now + Duration::from_secs(5)).is_zero(), "it is forgotten soon");
    }
}
