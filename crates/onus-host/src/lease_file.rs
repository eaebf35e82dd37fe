//! The lease token that a claim leaves in its workstation, so that the holder's next command finds it (mission B2).
//!
//! One private file for each task and worker: two workers in one checkout never read each other's token by accident.

use crate::file::{
    create_new, create_private_dir, if_exists, open, read_open, refused, shown, temporary_beside,
};
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId};
use onus_core::refusal::Refusal;
use rustix::fs::OFlags;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const TOKEN_MAX: usize = 256;

/// Leaves `token` for the next command of `worker`, in place of an older one.
///
/// Not synced: the store's commit is what grants a lease, and after a power loss the boot has changed anyway.
pub fn save(dir: &Path, task: &TaskId, worker: &Handle, token: &str) -> Result<(), Refusal> {
    let path = path_of(dir, task, worker);
    if !is_token(token.as_bytes()) {
        return Err(Refusal::new(
            Code::Internal,
            format!("the lease token of {task} cannot be kept in a file"),
        ));
    }
    write(dir, &path, token).map_err(|e| refused("write the lease file", &path, &e))
}

/// Leaves what commits of this working tree say about their assignment, for git's hook to read without asking anybody.
pub fn save_trailers(dir: &Path, trailers: &[(&str, String)]) -> Result<(), Refusal> {
    let path = trailers_of(dir);
    let text: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let temporary = temporary_beside(&path);
    let written = temporary.and_then(|temporary| {
        create_new(&temporary, text.as_bytes()).and_then(|_| fs::rename(&temporary, &path))
    });
    written.map_err(|e| refused("write", &path, &e))
}

/// Beside the leases, of which there is one at a time in a working tree.
fn trailers_of(dir: &Path) -> PathBuf {
    dir.with_file_name("trailers")
}

/// The token that a claim left here; none when there was no claim, or it has ended.
pub fn load(dir: &Path, task: &TaskId, worker: &Handle) -> Result<Option<String>, Refusal> {
    let path = path_of(dir, task, worker);
    let odd = |why: &str| {
        Refusal::new(Code::LeaseRequired, format!("the lease file {} is ignored: {why}", shown(&path)))
            .task(task)
            .hint("give the token with --lease, or remove the file and claim again")
    };
    let read = if_exists(open(&path, OFlags::NOFOLLOW))
        .and_then(|file| file.map(|file| read_open(file, TOKEN_MAX)).transpose());
    match read {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => match String::from_utf8(bytes) {
            Ok(text) if is_token(text.trim_end().as_bytes()) => Ok(Some(text.trim_end().to_owned())),
            _ => Err(odd("it does not hold a lease token")),
        },
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Err(odd("it is a symbolic link"))
        }
        Err(e) if matches!(e.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidData) => {
            Err(odd(&format!("it is {e}")))
        }
        Err(e) => Err(refused("read the lease file", &path, &e)),
    }
}

/// Any token that was left here: whoever has one, but not the right one, was a holder once.
pub fn any(dir: &Path) -> Option<String> {
    let entries = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let tokens = entries.filter_map(|path| read_open(open(&path, OFlags::NOFOLLOW).ok()?, TOKEN_MAX).ok());
    let mut tokens = tokens.filter_map(|bytes| String::from_utf8(bytes).ok());
    tokens.find(|text| is_token(text.trim_end().as_bytes())).map(|text| text.trim_end().to_owned())
}

/// Every token that was left here for a worker.
pub fn of(dir: &Path, worker: &Handle) -> Vec<(TaskId, String)> {
    let names = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let own = names.filter_map(|name| {
        let (task, handle) = name.split_once('.')?;
        (handle == worker.as_str().trim_start_matches('@')).then(|| task.parse::<TaskId>().ok())?
    });
    own.filter_map(|task| Some((load(dir, &task, worker).ok()??, task)))
        .map(|(text, task)| (task, text))
        .collect()
}

/// Forgets the token; that there is none is fine.
pub fn remove(dir: &Path, task: &TaskId, worker: &Handle) -> Result<(), Refusal> {
    let path = path_of(dir, task, worker);
    let removed =
        if_exists(fs::remove_file(&path)).map_err(|e| refused("remove the lease file", &path, &e))?;
    if removed.is_some() {
        let path = trailers_of(dir);
        if_exists(fs::remove_file(&path)).map_err(|e| refused("remove", &path, &e))?;
    }
    Ok(())
}

/// Both parts are checked names: neither can hold a slash or begin with a dot.
fn path_of(dir: &Path, task: &TaskId, worker: &Handle) -> PathBuf {
    dir.join(format!("{task}.{}", worker.as_str().trim_start_matches('@')))
}

fn is_token(bytes: &[u8]) -> bool {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    (1..=TOKEN_MAX).contains(&bytes.len()) && bytes.iter().all(is_plain)
}

fn write(dir: &Path, path: &Path, token: &str) -> io::Result<()> {
    // Only the last directory is private: the one above may hold a store that a group shares.
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    create_private_dir(dir)?;
    let temporary = temporary_beside(path)?;
    let written = create_new(&temporary, token.as_bytes()).and_then(|_| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const TOKEN: &str = "1.7.0f3a9c2b4d5e6f708192a3b4c5d6e7f8";

    struct Case {
        _temporary: tempfile::TempDir,
        dir: PathBuf,
        task: TaskId,
        worker: Handle,
    }

    fn case() -> Case {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("onus/lease");
        Case {
            _temporary: temporary,
            dir,
            task: "API-12".parse().unwrap(),
            worker: "@builder-01".parse().unwrap(),
        }
    }

    impl Case {
        fn load(&self) -> Result<Option<String>, Refusal> {
            load(&self.dir, &self.task, &self.worker)
        }

        fn save(&self, token: &str) -> Result<(), Refusal> {
            save(&self.dir, &self.task, &self.worker, token)
        }

        fn file(&self) -> PathBuf {
            self.dir.join("API-12.builder-01")
        }
    }

    #[test]
    fn a_token_is_kept_replaced_and_forgotten() {
        let case = case();
        assert_eq!(case.load(), Ok(None));
        case.save("old").unwrap();
        case.save(TOKEN).unwrap();
        assert_eq!(case.load(), Ok(Some(TOKEN.into())));
        assert_eq!(load(&case.dir, &case.task, &"@other".parse().unwrap()), Ok(None));
        assert_eq!(load(&case.dir, &"API-1".parse().unwrap(), &case.worker), Ok(None));
        assert_eq!(fs::read_dir(&case.dir).unwrap().count(), 1, "no temporary file stays");
        remove(&case.dir, &case.task, &case.worker).unwrap();
        remove(&case.dir, &case.task, &case.worker).unwrap();
        assert_eq!(case.load(), Ok(None));
    }

    #[test]
    fn nobody_else_can_read_it() {
        let case = case();
        case.save(TOKEN).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&case.file()), mode(&case.dir)), (0o600, 0o700));
        assert_ne!(mode(case.dir.parent().unwrap()), 0o700, "what a group may share stays open");
    }

    #[test]
    fn what_a_claim_cannot_have_written_is_refused() {
        let case = case();
        case.save(TOKEN).unwrap();
        for content in ["", "\n", "a b", "a\u{1b}[0m", "a\nb", "é", "../x", &"x".repeat(257)] {
            fs::write(case.file(), content).unwrap();
            let refusal = case.load().unwrap_err();
            assert_eq!(refusal.code, Code::LeaseRequired, "{content:?}");
            assert!(refusal.detail.contains("API-12.builder-01"), "{}", refusal.detail);
        }
        fs::write(case.file(), [0xff, 0xfe]).unwrap();
        assert_eq!(case.load().unwrap_err().code, Code::LeaseRequired);
        fs::write(case.file(), format!("{TOKEN}\n")).unwrap();
        assert_eq!(case.load(), Ok(Some(TOKEN.into())), "typed by hand");
    }

    #[test]
    fn links_are_neither_read_nor_written_through() {
        let case = case();
        case.save(TOKEN).unwrap();
        let elsewhere = case.dir.join("elsewhere");
        fs::write(&elsewhere, TOKEN).unwrap();
        fs::remove_file(case.file()).unwrap();
        symlink(&elsewhere, case.file()).unwrap();
        let refusal = case.load().unwrap_err();
        assert!(refusal.detail.contains("symbolic link"), "{}", refusal.detail);
        case.save("new").unwrap();
        assert_eq!(fs::read_to_string(elsewhere).unwrap(), TOKEN);
        assert_eq!(case.load(), Ok(Some("new".into())));
    }

    #[test]
    fn only_tokens_are_kept() {
        let case = case();
        for token in ["", "a b", "a\nb", &"x".repeat(257)] {
            assert_eq!(case.save(token).unwrap_err().code, Code::Internal, "{token:?}");
        }
    }
}
