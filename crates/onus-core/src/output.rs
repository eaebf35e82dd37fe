//! What a run prints, made fit to be kept (threat 19): control sequences go, secrets go, and only a beginning and an end
//! of it stay.
//!
//! Both parts work on a stream: what arrives in pieces gives the same text as what arrives at once.

mod plain;
mod redact;
mod said;
pub mod step;

pub use plain::Plain;
pub use redact::{Redactor, is_secret_name, redacted};
pub use said::without_secrets;

use crate::hash::encode_hex;
use crate::settings::RunSettings;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The bytes of one piece, at most.
pub const PIECE_MAX: usize = 32_768;

/// What is kept of a session's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptOutput {
    /// How long all of it was.
    pub bytes: i64,
    /// How much of it is kept.
    pub kept: i64,
    /// Of what is kept, in order.
    pub sha256: String,
}

/// Adds pieces up, in order.
#[derive(Debug, Default)]
pub struct OutputSum {
    digest: Sha256,
    bytes: i64,
    kept: i64,
}

impl OutputSum {
    pub fn add(&mut self, position: i64, text: &str) {
        let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
        self.digest.update(text.as_bytes());
        self.bytes = position.saturating_add(length);
        self.kept = self.kept.saturating_add(length);
    }

    /// None where there was nothing.
    pub fn kept(self) -> Option<KeptOutput> {
        let OutputSum { digest, bytes, kept } = self;
        (kept > 0).then(|| KeptOutput { bytes, kept, sha256: encode_hex(&digest.finalize()) })
    }
}

/// Where a piece goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    /// Behind what is there.
    Next,
    /// It is there already: the answer to it was lost.
    Repeated,
    /// Something is missing before it, or it overlaps what is there.
    Elsewhere,
}

/// Whether a piece of `length` bytes at `position` goes on where the output `ends`.
pub fn fits(ends: i64, position: i64, length: usize) -> Fits {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    match position.checked_add(length) {
        _ if position == ends => Fits::Next,
        Some(end) if position >= 0 && end <= ends => Fits::Repeated,
        _ => Fits::Elsewhere,
    }
}

/// The pieces that go when an output has grown to `ends` bytes: those that begin here, neither in the first half of what is
/// kept nor in the last.
pub fn left_out(settings: &RunSettings, ends: i64) -> std::ops::Range<i64> {
    let half = i64::from(settings.keep) / 2;
    half..(ends - half).max(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_goes_on_where_the_last_one_ended() {
        for (position, length, fit) in [
            (10, 5, Fits::Next),
            (5, 5, Fits::Repeated),
            (0, 10, Fits::Repeated),
            (5, 6, Fits::Elsewhere),
            (11, 1, Fits::Elsewhere),
            (-1, 1, Fits::Elsewhere),
            (i64::MAX, 9, Fits::Elsewhere),
        ] {
            assert_eq!(fits(10, position, length), fit, "{position} {length}");
        }
    }

    #[test]
    fn only_the_middle_goes() {
        let settings = RunSettings { keep: 100, ..RunSettings::default() };
        assert!(left_out(&settings, 100).is_empty());
        assert_eq!(left_out(&settings, 250), 50..200);
    }
}
