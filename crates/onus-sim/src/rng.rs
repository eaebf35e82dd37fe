//! Numbers from a seed: the same seed, the same run, on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`; nothing is below zero, so zero then.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.draw() % n.max(1) as u64).unwrap_or(0)
    }

    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        let span = to.saturating_sub(from).unsigned_abs().max(1);
        from.saturating_add_unsigned(self.draw() % span)
    }

    /// Once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of several things, each as often as its weight says. An empty list gives nothing.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> Option<T> {
        let mut at = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if at < *weight {
                return Some(*choice);
            }
            at -= weight;
        }
        None
    }
}
