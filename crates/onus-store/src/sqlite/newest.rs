//! The newest entry that was acknowledged, kept beside the store (ADR 21).
//!
//! SQLite ends its log silently at the first frame whose checksum is wrong: one flipped bit there takes back commits that
//! callers were told of. So every commit leaves the number and the hash of its last entry in the file of the writers' turn,
//! which is open anyway, and the next writer looks whether the store still has that entry.

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

const FORMAT: &str = "onus-newest-1";
/// Format, number, hash, a checksum of these three, and the line's end.
const LENGTH: usize = FORMAT.len() + 1 + 20 + 1 + 64 + 1 + 8 + 1;

impl Newest {
    /// What the file says. A record that was cut off or changed says nothing: it is written after the commit and may be
    /// lost where that is not.
    pub(super) fn read(file: &File) -> Option<Newest> {
        let mut bytes = [0; LENGTH];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let (said, sum) = text.strip_suffix('\n')?.rsplit_once(' ')?;
        if checksum(said) != sum {
            return None;
        }
        let (seq, hash) = said.strip_prefix(FORMAT)?.trim_start().split_once(' ')?;
        Some(Newest { seq: seq.parse().ok()?, hash: Digest::parse(hash)? })
    }

    /// Not synced: it is never ahead of the log, which is. What a power loss takes of it is the word about the last moments.
    pub(super) fn write(&self, file: &File) {
        let said = format!("{FORMAT} {:>20} {}", self.seq, self.hash);
        let record = format!("{said} {}\n", checksum(&said));
        // The commit stands; the record then tells of an earlier one.
        drop(file.write_all_at(record.as_bytes(), 0));
    }

    /// Another store begins in this file's place.
    pub(super) fn forget(file: &File) -> Result<()> {
        file.set_len(0).map_err(|error| StoreError::unavailable(error.to_string()))
    }

    pub(super) fn sync(file: &File) {
        // It tells of an earlier entry then.
        let _ = fdatasync(file);
    }
}

fn checksum(said: &str) -> String {
    format!("{:08x}", crc32(said.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("turn");
        let mut options = File::options();
        let file = options.create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        assert_eq!(Newest::read(&file), None);
        for seq in [1, 7, 9_000_000_000, i64::MAX] {
            let newest = Newest { seq, hash: Digest::of(&seq.to_be_bytes()) };
            newest.write(&file);
            assert_eq!(Newest::read(&file), Some(newest));
            assert_eq!(file.metadata().unwrap().len(), LENGTH as u64);
        }
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut odd = whole.clone();
            odd[at] ^= 1;
            std::fs::write(&path, &odd).unwrap();
            assert_eq!(Newest::read(&file), None, "byte {at}");
        }
        std::fs::write(&path, &whole[..LENGTH - 1]).unwrap();
        assert_eq!(Newest::read(&file), None);
    }
}
