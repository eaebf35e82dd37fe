//! How often one token may ask: a bucket that fills at a steady rate and holds one second's worth.

use onus_app::weight::Weight;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token that asks for nothing else may ask for so much in a second that takes long.
const HEAVY_PER_SECOND: f64 = 20.0;

#[derive(Debug)]
pub(crate) struct Rate {
    per_second: f64,
    /// One for each token that was ever accepted: there are only so many.
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    pub(crate) fn new(per_second: u32) -> Rate {
        Rate { per_second: f64::from(per_second.max(1)), buckets: Mutex::default() }
    }

    /// Takes one from the token's bucket, or many for what takes long; false when there is not as much in it.
    pub(crate) fn allows(&self, token: &str, weight: Weight, now: Instant) -> bool {
        let cost = match weight {
            Weight::Light => 1.0,
            Weight::Heavy => (self.per_second / HEAVY_PER_SECOND).max(1.0),
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Bucket { left: self.per_second, at: now };
        let bucket = match buckets.get_mut(token) {
            Some(bucket) => bucket,
            None => buckets.entry(token.to_owned()).or_insert_with(fresh),
        };
        let filled = now.saturating_duration_since(bucket.at).as_secs_f64() * self.per_second;
        bucket.left = (bucket.left + filled).min(self.per_second);
        bucket.at = now;
        let allowed = bucket.left >= cost;
        if allowed {
            bucket.left -= cost;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_empties_and_fills_again_and_is_the_tokens_own() {
        let (rate, now) = (Rate::new(2), Instant::now());
        assert!(rate.allows("a", Weight::Light, now) && rate.allows("a", Weight::Light, now));
        assert!(!rate.allows("a", Weight::Light, now));
        assert!(rate.allows("b", Weight::Light, now), "another token's bucket is full");
        let later = now + Duration::from_millis(500);
        assert!(rate.allows("a", Weight::Light, later) && !rate.allows("a", Weight::Light, later));
    }

    #[test]
    fn what_takes_long_takes_more() {
        let (rate, now) = (Rate::new(100), Instant::now());
        let heavy = (0..100).filter(|_| rate.allows("a", Weight::Heavy, now)).count();
        assert_eq!(heavy, 20);
        assert!(!rate.allows("a", Weight::Light, now), "both come out of one bucket");
    }
}
