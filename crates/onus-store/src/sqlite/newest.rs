//! The newest entry that was acknowledged, kept beside the store (ADR 21).
//!
//! SQLite ends its log silently at the first frame whose checksum is wrong: one flipped bit there takes back commits that
//! callers were told of. So every commit leaves the number and the hash of its last entry in the file of the writers' turn,
//! which is open anyway, and syncs it; the next writer looks whether the store still has that entry.

use crate::error::{Result, StoreError};
use onus_core::hash::{Digest, crc32};
use onus_core::id::Seq;
use rustix::fs::fdatasync;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// An entry of the ledger, told apart from every other that could have its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    pub seq: Seq,
    pub hash: Digest,
}

const FORMAT: &str = "onus-newest-2";
/// Format, turn, number, hash, a checksum of these four, and the line's end.
const LENGTH: usize = FORMAT.len() + 1 + 20 + 1 + 20 + 1 + 64 + 1 + 8 + 1;
/// What a disk writes at once, or not at all. There are two places, written in turn: who is cut off in the middle of one
/// leaves the other.
const PLACE: u64 = 512;

/// How often the record was written: the larger one counts. Numbers of entries do not tell, for they begin again where a
/// loss was given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Count(u64);

impl Count {
    pub(super) fn next(self) -> Count {
        Count(self.0.wrapping_add(1))
    }

    fn offset(self) -> u64 {
        self.0 % 2 * PLACE
    }
}

impl Newest {
    /// What the file says, and for the how-many-eth time. A place that was cut off or changed says nothing.
    pub(super) fn read(file: &File) -> Option<(Count, Newest)> {
        let at = |place: u64| {
            let mut bytes = [0; LENGTH];
            file.read_exact_at(&mut bytes, place).ok()?;
            Newest::parse(&bytes)
        };
        [0, PLACE].into_iter().filter_map(at).max_by_key(|(count, _)| *count)
    }

    fn parse(bytes: &[u8]) -> Option<(Count, Newest)> {
        let (said, sum) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.rsplit_once(' ')?;
        if checksum(said) != sum {
            return None;
        }
        let (count, rest) = said.strip_prefix(FORMAT)?.trim_start().split_once(' ')?;
        let (seq, hash) = rest.trim_start().split_once(' ')?;
        let newest = Newest { seq: seq.parse().ok()?, hash: Digest::parse(hash)? };
        Some((Count(count.parse().ok()?), newest))
    }

    /// Written after the log was synced, so never ahead of it, and synced itself before anybody is told.
    pub(super) fn write(&self, file: &File, count: Count) {
        let said = format!("{FORMAT} {:>20} {:>20} {}", count.0, self.seq, self.hash);
        let record = format!("{said} {}\n", checksum(&said));
        // The commit stands, whatever becomes of this; the record then tells of an earlier one.
        if file.write_all_at(record.as_bytes(), count.offset()).is_ok() {
            let _ = fdatasync(file);
        }
    }

    /// Another store begins in this file's place.
    pub(super) fn forget(file: &File) -> Result<()> {
        file.set_len(0).map_err(|error| StoreError::unavailable(error.to_string()))
    }
}

fn checksum(said: &str) -> String {
    format!("{:08x}", crc32(said.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn() -> (tempfile::TempDir, File) {
        let dir = tempfile::tempdir().unwrap();
        let mut options = File::options();
        let file = options.create(true).truncate(true).read(true).write(true).open(dir.path().join("turn"));
        (dir, file.unwrap())
    }

    fn entry(seq: Seq) -> Newest {
        Newest { seq, hash: Digest::of(&seq.to_be_bytes()) }
    }

    #[test]
    fn what_was_written_last_is_read() {
        let (_dir, file) = turn();
        assert_eq!(Newest::read(&file), None);
        // The number falls where what was lost is given up.
        for (count, seq) in [1, 7, 9_000_000_000, i64::MAX, 3, 4].into_iter().enumerate() {
            let count = Count(count as u64 + 41);
            entry(seq).write(&file, count);
            assert_eq!(Newest::read(&file), Some((count, entry(seq))));
        }
        assert_eq!(file.metadata().unwrap().len(), PLACE + LENGTH as u64);
    }

    /// A changed byte, or a write that was cut off, takes one of the two places and never both.
    #[test]
    fn what_was_torn_says_nothing_and_the_other_place_speaks() {
        let (_dir, file) = turn();
        let counts = [Count(1), Count(2)];
        entry(10).write(&file, counts[0]);
        entry(20).write(&file, counts[1]);
        for (torn, left) in [(counts[0], (counts[1], entry(20))), (counts[1], (counts[0], entry(10)))] {
            let mut whole = [0; LENGTH];
            file.read_exact_at(&mut whole, torn.offset()).unwrap();
            for at in 0..LENGTH {
                let mut odd = whole;
                odd[at] ^= 1;
                file.write_all_at(&odd, torn.offset()).unwrap();
                assert_eq!(Newest::read(&file), Some(left), "byte {at}");
            }
            file.write_all_at(&whole, torn.offset()).unwrap();
        }
        for place in counts {
            file.write_all_at(&[0; LENGTH], place.offset()).unwrap();
        }
        assert_eq!(Newest::read(&file), None);
    }
}
