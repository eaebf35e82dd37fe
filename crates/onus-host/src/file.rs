//! Small files that must be read within bounds and written whole or not at all.

use onus_core::code::Code;
use onus_core::hash::encode_hex;
use onus_core::refusal::Refusal;
use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is open here is this process's own.
pub(crate) const PRIVATE_FILE: u32 = 0o600;
pub(crate) const PRIVATE_DIR: u32 = 0o700;

/// A file that holds something other than a bounded regular file could, is an error and not a hang.
pub(crate) fn read_capped(path: &Path, cap: usize) -> io::Result<Vec<u8>> {
    read_open(open(path, OFlags::empty())?, cap)
}

/// Opens without waiting for the far end of a pipe; `flags` may forbid symbolic links.
pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags((flags | OFlags::NONBLOCK).bits().cast_signed()).open(path)
}

pub(crate) fn read_open(file: File, cap: usize) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
    }
    // Room for one byte more: a file that grows meanwhile shows, and one that does not is read at once.
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX).min(cap);
    let mut bytes = Vec::with_capacity(length + 1);
    file.take(cap as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > cap {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {cap} bytes")));
    }
    Ok(bytes)
}

/// Absence is an answer, everything else is an error.
pub(crate) fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}

pub(crate) fn create_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// A name in the same directory that nobody else uses; the dot hides it from listings of what is complete.
pub(crate) fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.{}", encode_hex(&random))))
}

pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path)
}

/// A new name survives a power loss only once its directory is written.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The store's surroundings could not be used: what was tried, on what, and the system's own words.
pub(crate) fn refused(action: &str, path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(Code::StoreUnavailable, format!("cannot {action} {}: {error}", shown(path)))
        .hint("check that it is there, its permissions, and the disk")
}

/// A path for a message.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// Names and messages from elsewhere may hold control characters; a terminal must not obey them.
pub(crate) fn printable(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bounded_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_capped(&path, 5).unwrap(), b"12345");
        assert_eq!(read_capped(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_capped(dir.path(), 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read_capped(&pipe, 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_path_in_a_message_cannot_steer_a_terminal() {
        assert_eq!(shown(Path::new("/a b/\u{1b}[2J/é")), "/a b/\\u{1b}[2J/é");
    }
}
