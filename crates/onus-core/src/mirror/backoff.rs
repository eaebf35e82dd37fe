//! How long a far end that failed is left alone.

use crate::time::Millis;

const FIRST: i64 = 1_000;
const LONGEST: i64 = 300_000;

/// The pause after so many failures in a row: doubled each time up to five minutes, and moved by up to a quarter either way by
/// `random`, so that many senders do not come back at once.
pub fn backoff(failures: i64, random: u64) -> Millis {
    let doublings = u32::try_from(failures.clamp(1, 20) - 1).unwrap_or(0);
    let pause = FIRST.saturating_mul(1_i64 << doublings).min(LONGEST);
    let quarter = pause / 4;
    let moved = i64::try_from(random % (2 * quarter as u64 + 1)).unwrap_or(0) - quarter;
    Millis(pause + moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes_and_keep_within_a_quarter() {
        for (failures, middle) in
            [(0, 1_000), (1, 1_000), (2, 2_000), (5, 16_000), (10, 300_000), (i64::MAX, 300_000)]
        {
            for random in [0, 1, 77, u64::MAX] {
                let Millis(pause) = backoff(failures, random);
                assert!(
                    (middle - middle / 4..=middle + middle / 4).contains(&pause),
                    "{failures} {random}: {pause}"
                );
            }
        }
        assert_ne!(backoff(3, 0), backoff(3, 1_999), "senders must not come back at once");
    }
}
