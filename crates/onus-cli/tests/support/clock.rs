//! Wall clocks that somebody sets: libfaketime shifts what a program reads, and leaves the monotonic clock alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

const HOUR: i64 = 3_600;

/// Everything that a clock may do to us, in seconds.
pub(crate) const JUMPS: [i64; 4] = [HOUR, -HOUR, 24 * HOUR, -24 * HOUR];

/// The library, where it is installed; says when it is not.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").unwrap().filter_map(Result::ok);
    let found =
        folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: libfaketime is not installed (Debian package faketime)");
    }
    found
}

/// A clock in a file: programs that go by it read it each time, so that it can be set while they run.
#[derive(Debug)]
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    pub(crate) fn at(file: &Path) -> Option<Clock> {
        let clock = Clock { library: library()?, file: file.to_owned() };
        clock.set(0);
        Some(clock)
    }

    /// So many seconds from the true time. Replaced as a whole: a reader never finds half of it.
    pub(crate) fn set(&self, shift: i64) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{shift:+}\n")).unwrap();
        std::fs::rename(new, &self.file).unwrap();
    }

    /// What makes a program go by this clock.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone().into()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }
}
