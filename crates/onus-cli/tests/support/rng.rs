//! A seeded source of chance: a failing run can be run again.

/// SplitMix64: small, fast, and the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// `ONUS_SEED`, else the default; printed, so that a failure names it.
    pub(crate) fn seeded(default: u64) -> Rng {
        let seed = std::env::var("ONUS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
        eprintln!("seed: ONUS_SEED={seed}");
        Rng(seed)
    }

    /// An independent stream, so that one thread's draws do not depend on another's pace.
    pub(crate) fn fork(&mut self) -> Rng {
        Rng(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0..limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).unwrap()]
    }
}
