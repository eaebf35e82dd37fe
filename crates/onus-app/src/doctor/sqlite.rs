//! What a file can suffer from.

use super::CheckOutcome::{Ill, Well};
use super::{CheckOutcome, CheckView, Examined, others, view};
use crate::ledger::LOST;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_host::filesystem::network_file_system;
use onus_store::sqlite::{Depth, Sqlite};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// `PRAGMA synchronous` of a store whose commits survive a power loss.
const SYNCHRONOUS_FULL: i64 = 2;

impl Examined for Sqlite {
    fn examine(&mut self) -> Vec<CheckView> {
        let newest = newest(self);
        let path = self.path();
        vec![
            view("schema", schema(self)),
            view("pages", pages(self)),
            view("references", references(self)),
            view("durability", durability(self)),
            view("last write", newest),
            view("file system", Ok(file_system(path))),
            view("permissions", permissions(path)),
            view("backups", backups(path)),
        ]
    }
}

fn schema(store: &Sqlite) -> Result<CheckOutcome, Refusal> {
    let modes = store.modes()?;
    Ok(if modes.schema == modes.latest_schema {
        let strange = store.strange_schema()?;
        match strange.first() {
            None => Well(format!("schema {}, SQLite {}", modes.schema, modes.sqlite)),
            Some(first) => Ill(
                Code::StoreUnavailable,
                format!("somebody changed the tables: {first}{}", others(&strange)),
                super::MEND_TABLES,
            ),
        }
    } else {
        let detail = format!("schema {}, this program has {}", modes.schema, modes.latest_schema);
        Ill(Code::StoreUnavailable, detail, "install a newer onus")
    })
}

fn pages(store: &Sqlite) -> Result<CheckOutcome, Refusal> {
    let (depth, complaints) = store.integrity()?;
    Ok(match (complaints.first(), depth) {
        (None, Depth::Thorough) => Well("every page and index is sound".into()),
        (None, Depth::Quick) => Well("every page is sound (a quick check; the store is large)".into()),
        (Some(first), _) => {
            let detail = format!("{} complaints, the first: {}", complaints.len(), one_line(first));
            Ill(Code::StoreUnavailable, detail, "restore a backup, then: onus ledger raise-generation")
        }
    })
}

fn references(store: &Sqlite) -> Result<CheckOutcome, Refusal> {
    let dangling = store.dangling()?;
    Ok(match dangling.first() {
        None => Well("every row refers to a row that is there".into()),
        Some(first) => {
            Ill(Code::StoreUnavailable, format!("{first}{}", others(&dangling)), "restore a backup")
        }
    })
}

fn durability(store: &Sqlite) -> Result<CheckOutcome, Refusal> {
    let modes = store.modes()?;
    Ok(if modes.journal == "wal" && modes.synchronous == SYNCHRONOUS_FULL {
        Well("write-ahead log, synced at every commit".into())
    } else {
        let detail = format!("journal mode {}, synchronous {}", modes.journal, modes.synchronous);
        Ill(Code::StoreUnavailable, detail, "a power loss could take back what was acknowledged")
    })
}

/// The last entry that a writer was told of.
fn newest(store: &mut Sqlite) -> Result<CheckOutcome, Refusal> {
    Ok(match store.lost()? {
        None => Well("the last acknowledged write is there".into()),
        Some(lost) => Ill(
            Code::StoreBehindAnchor,
            format!("entry {}: {LOST}", lost.seq),
            "look for a newer copy; to go on without it: onus ledger raise-generation --reason TEXT",
        ),
    })
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn file_system(path: &Path) -> CheckOutcome {
    match network_file_system(path) {
        None => Well("local".into()),
        Some(kind) => Ill(
            Code::StoreUnavailable,
            format!("the store lies on {kind}, where two machines would damage it"),
            "move it to a local disk and name it with --store",
        ),
    }
}

fn permissions(path: &Path) -> Result<CheckOutcome, Refusal> {
    let mut open = Vec::new();
    for suffix in ["", "-wal", "-shm", "-line", "-queue"] {
        let file = beside(path, suffix);
        match fs::metadata(&file) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
                open.push(format!("{} (mode {:o})", file.display(), metadata.permissions().mode() & 0o777));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let detail = format!("{}: {error}", file.display());
                return Err(
                    Refusal::new(Code::StoreUnavailable, detail).hint("check the directory's permissions")
                );
            }
        }
    }
    Ok(match open.first() {
        None => Well("the store is its owner's alone".into()),
        Some(first) => {
            let detail = format!("others can open {first}{}; lease tokens are in it", others(&open));
            Ill(Code::StoreUnavailable, detail, "chmod 600 these files")
        }
    })
}

/// Copies that a change of the schema left; a person removes them when they trust the new one.
fn backups(path: &Path) -> Result<CheckOutcome, Refusal> {
    let unreadable = |error: std::io::Error| Refusal::new(Code::StoreUnavailable, error.to_string());
    let prefix = beside(path, ".schema-").file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names = Vec::new();
    for entry in fs::read_dir(path.parent().unwrap_or(Path::new("."))).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) && name.ends_with(".backup") {
            names.push(name);
        }
    }
    names.sort();
    Ok(Well(match names.first() {
        None => "none left over".into(),
        Some(first) => format!("left over from a change of the schema: {first}{}", others(&names)),
    }))
}
