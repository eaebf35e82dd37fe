//! `disk:SIZE`: so much is free for us where the workstation is.

use super::{Around, Seen, directory};
use crate::file::shown;

pub(super) fn see(wanted: u64, around: &Around) -> Result<Seen, Seen> {
    let directory = directory(around)?;
    let found = rustix::fs::statvfs(directory)
        .map_err(|e| Seen::failed(format!("cannot look at the disk of {}: {e}", shown(directory))))?;
    // What is kept for the superuser is not free for a worker.
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let detail = format!("{} free, expected {}", rounded(free), rounded(wanted));
    if free < wanted { Err(Seen::failed(detail)) } else { Ok(Seen::passed(detail)) }
}

/// Rounded down, so that what is too little never reads as enough.
fn rounded(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} KB", bytes / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
