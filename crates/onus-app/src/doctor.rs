//! `doctor`: is the store sound, and are its surroundings? It only looks.

use crate::ledger::{FindingView, Standing, Tip};
use crate::progress::Progress;
use crate::{Onus, anchor};
use onus_core::code::Code;
use onus_core::hash::encode_hex;
use onus_core::refusal::{Finding, Refusal};
use onus_core::time::Millis;
use onus_host::anchor::Anchor;
use onus_host::filesystem::network_file_system;
use onus_host::git::Git;
use onus_host::{clock, key, place, settings};
use onus_store::load;
use onus_store::load::Workspace;
use onus_store::port::Store as _;
use onus_store::read::ledger::{self, Part};
use onus_store::read::survey;
use onus_store::sqlite::{Depth, Sqlite};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A clock may be a little behind the one that wrote the last entry.
const CLOCK_TOLERANCE: Millis = Millis::minutes(5);

/// `PRAGMA synchronous` of a store whose commits survive a power loss.
const SYNCHRONOUS_FULL: i64 = 2;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DoctorView {
    pub ok: bool,
    pub checks: Vec<CheckView>,
    /// What is wrong with the ledger, entry by entry.
    pub findings: Vec<FindingView>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckView {
    pub name: &'static str,
    pub ok: bool,
    pub detail: String,
    /// The code that a failed check is refused with.
    pub code: Option<&'static str>,
    pub hint: Option<String>,
}

impl DoctorView {
    /// The refusal that a front end gives; none when all is well.
    pub fn refusal(&self) -> Option<Refusal> {
        let failed = self.checks.iter().filter(|check| !check.ok).map(|check| {
            let code = check.code.and_then(Code::parse).unwrap_or(Code::StoreUnavailable);
            Finding::new(code, format!("{}: {}", check.name, check.detail)).hinted(check.hint.clone())
        });
        Refusal::from_findings(failed.collect())
    }
}

/// What one check says.
enum Outcome {
    Well(String),
    Ill(Code, String, &'static str),
}

use Outcome::{Ill, Well};

impl Onus<Sqlite> {
    pub fn doctor(&mut self, progress: &mut dyn Progress) -> Result<DoctorView, Refusal> {
        let workspace = self.ask(|tx| load::workspace(tx));
        let mut checks = Vec::new();
        let mut check =
            |name: &'static str, outcome: Result<Outcome, Refusal>| checks.push(view(name, outcome));
        progress.begin("looking at the pages", None);
        check("schema", self.schema());
        check("pages", self.pages());
        check("references", self.references());
        check("durability", self.durability());
        progress.end();
        check("file system", Ok(file_system(&self.path)));
        check("permissions", permissions(&self.path));
        check("settings", settings_file());
        check("queue", self.queue_order());
        check("sessions", self.orphan_sessions());
        check("workstations", self.shared_workstations());
        check("leases", self.split_leases());
        check("backups", backups(&self.path));
        let mut findings = Vec::new();
        match &workspace {
            Err(refusal) => check("workspace", Err(refusal.clone())),
            Ok(workspace) => {
                check("key", signing_key(workspace));
                check("git", git(&self.path, workspace));
                check("clock", self.clock());
                check("anchor", self.anchor(workspace));
                check("checkpoint", self.last_checkpoint(workspace));
                check("ledger", self.ledger(progress, &mut findings));
            }
        }
        Ok(DoctorView { ok: checks.iter().all(|check| check.ok), checks, findings })
    }

    fn schema(&self) -> Result<Outcome, Refusal> {
        let modes = self.store.modes()?;
        Ok(if modes.schema == modes.latest_schema {
            Well(format!("schema {}, SQLite {}", modes.schema, modes.sqlite))
        } else {
            let detail = format!("schema {}, this program has {}", modes.schema, modes.latest_schema);
            Ill(Code::StoreUnavailable, detail, "install a newer onus")
        })
    }

    fn pages(&self) -> Result<Outcome, Refusal> {
        let (depth, complaints) = self.store.integrity()?;
        Ok(match (complaints.first(), depth) {
            (None, Depth::Thorough) => Well("every page and index is sound".into()),
            (None, Depth::Quick) => Well("every page is sound (a quick check; the store is large)".into()),
            (Some(first), _) => {
                let detail = format!("{} complaints, the first: {}", complaints.len(), one_line(first));
                Ill(Code::StoreUnavailable, detail, "restore a backup, then: onus ledger raise-generation")
            }
        })
    }

    fn references(&self) -> Result<Outcome, Refusal> {
        let dangling = self.store.dangling()?;
        Ok(match dangling.first() {
            None => Well("every row refers to a row that is there".into()),
            Some(first) => {
                Ill(Code::StoreUnavailable, format!("{first}{}", others(&dangling)), "restore a backup")
            }
        })
    }

    fn durability(&self) -> Result<Outcome, Refusal> {
        let modes = self.store.modes()?;
        Ok(if modes.journal == "wal" && modes.synchronous == SYNCHRONOUS_FULL {
            Well("write-ahead log, synced at every commit".into())
        } else {
            let detail = format!("journal mode {}, synchronous {}", modes.journal, modes.synchronous);
            Ill(Code::StoreUnavailable, detail, "a power loss could take back what was acknowledged")
        })
    }

    fn orphan_sessions(&mut self) -> Result<Outcome, Refusal> {
        let orphans = self.ask(|tx| survey::orphan_sessions(tx))?;
        let named: Vec<String> =
            orphans.iter().map(|(task, epoch)| format!("{task} (epoch {epoch})")).collect();
        Ok(none_of(&named, "no session runs without its assignment", "sessions run without an assignment"))
    }

    fn queue_order(&mut self) -> Result<Outcome, Refusal> {
        let misplaced = self.ask(|tx| survey::misqueued(tx))?;
        Ok(none_of(
            &misplaced,
            "what is ready and what waits is known",
            "tasks are ready or wait against their dependencies",
        ))
    }

    fn shared_workstations(&mut self) -> Result<Outcome, Refusal> {
        let shared = self.ask(|tx| survey::shared_workstations(tx))?;
        let named: Vec<String> = shared.iter().map(|(name, tasks)| format!("{name}: {tasks}")).collect();
        Ok(none_of(&named, "no workstation holds two assignments", "workstations hold two live assignments"))
    }

    fn split_leases(&mut self) -> Result<Outcome, Refusal> {
        let split = self.ask(|tx| survey::split_leases(tx))?;
        Ok(none_of(&split, "leases and assignments agree", "leases and assignments disagree"))
    }

    fn clock(&mut self) -> Result<Outcome, Refusal> {
        let now = clock::now().wall;
        let last = self.ask(|tx| ledger::log(tx, &Part::Latest, 1))?;
        Ok(match last.first() {
            Some(entry) if entry.at > now.plus(CLOCK_TOLERANCE) => {
                let detail = format!("it says {now}; the last entry was written at {}", entry.at);
                Ill(Code::StoreUnavailable, detail, "set the clock")
            }
            _ => Well(format!("{now}")),
        })
    }

    fn anchor(&mut self, workspace: &Workspace) -> Result<Outcome, Refusal> {
        let tip = Tip::read(&anchor(&self.path, &workspace.uid)?)?;
        let known = self.store.read(|tx| ledger::checkpoints(tx))?;
        Ok(match (tip.standing(&known, workspace.generation), &workspace.anchor) {
            (Standing::Bare, None) => Well("nothing was anchored yet".into()),
            (Standing::Bare, Some(id)) => Ill(
                Code::LedgerBroken,
                format!("the last checkpoint was anchored as {id}; it is gone"),
                RESTORE_ANCHOR,
            ),
            (Standing::Known { seq }, _) => Well(format!("holds the ledger up to entry {seq}")),
            (Standing::Acknowledged, _) => Ill(
                Code::StoreBehindAnchor,
                "the generation was raised, and not anchored yet".into(),
                "onus ledger checkpoint",
            ),
            (Standing::Behind, _) => Ill(
                Code::StoreBehindAnchor,
                "it has seen a checkpoint that the store does not know".into(),
                "if the store was restored: onus ledger raise-generation --reason TEXT",
            ),
        })
    }

    fn last_checkpoint(&mut self, workspace: &Workspace) -> Result<Outcome, Refusal> {
        let Some(last) = self.ask(|tx| ledger::last_checkpoint(tx))? else {
            return Ok(Well("none yet; make one with: onus ledger checkpoint".into()));
        };
        let checkpoint: onus_core::ledger::Checkpoint = match serde_json::from_str(&last.document) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                return Ok(Ill(
                    Code::LedgerBroken,
                    format!("it cannot be read: {error}"),
                    "onus ledger verify",
                ));
            }
        };
        let age = clock::now().wall.since(checkpoint.at);
        let since = workspace.last_seq - checkpoint.seq;
        Ok(Well(format!("{age} old, {since} entries since")))
    }

    fn ledger(
        &mut self,
        progress: &mut dyn Progress,
        findings: &mut Vec<FindingView>,
    ) -> Result<Outcome, Refusal> {
        let view = self.verify(progress)?;
        let outcome = match view.refusal() {
            None => Well(format!("{} entries in {} chains hold", view.entries, view.chains)),
            Some(refusal) => Ill(Code::LedgerBroken, refusal.detail, "onus ledger verify"),
        };
        *findings = view.findings;
        Ok(outcome)
    }
}

const RESTORE_ANCHOR: &str = "fetch refs/onus/ledger from another clone, or restore the anchor's directory";

fn view(name: &'static str, outcome: Result<Outcome, Refusal>) -> CheckView {
    match outcome {
        Ok(Well(detail)) => CheckView { name, ok: true, detail, code: None, hint: None },
        Ok(Ill(code, detail, hint)) => {
            CheckView { name, ok: false, detail, code: Some(code.name()), hint: Some(hint.to_owned()) }
        }
        Err(refusal) => CheckView {
            name,
            ok: false,
            detail: refusal.detail,
            code: Some(refusal.code.name()),
            hint: refusal.hint,
        },
    }
}

fn none_of(found: &[String], well: &str, ill: &str) -> Outcome {
    match found.first() {
        None => Well(well.to_owned()),
        Some(first) => {
            Ill(Code::LedgerBroken, format!("{ill}: {first}{}", others(found)), "onus ledger verify")
        }
    }
}

fn others<T>(found: &[T]) -> String {
    match found.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn file_system(path: &Path) -> Outcome {
    match network_file_system(path) {
        None => Well("local".into()),
        Some(kind) => Ill(
            Code::StoreUnavailable,
            format!("the store lies on {kind}, where two machines would damage it"),
            "move it to a local disk and name it with --store",
        ),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn permissions(path: &Path) -> Result<Outcome, Refusal> {
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

fn settings_file() -> Result<Outcome, Refusal> {
    let file = place::here()?.settings_file();
    settings::load(&file)?;
    Ok(Well(if file.exists() { format!("{} is valid", file.display()) } else { "the defaults apply".into() }))
}

fn signing_key(workspace: &Workspace) -> Result<Outcome, Refusal> {
    let key = match key::load(&workspace.uid) {
        Ok(key) => key,
        // Only checkpoints need it: everything else works without, and everybody can verify.
        Err(refusal) if refusal.code == Code::UnknownName => {
            return Ok(Well("none on this machine: it can verify, but not sign a checkpoint".into()));
        }
        Err(refusal) => return Err(refusal),
    };
    Ok(if encode_hex(&key.public()) == workspace.public_key {
        Well("it signs this ledger".into())
    } else {
        let hint = "copy the key from where the store was made";
        Ill(Code::StoreUnavailable, "the key on this machine is not the workspace's".into(), hint)
    })
}

/// Git is needed only where the ledger is anchored in it.
fn git(path: &Path, workspace: &Workspace) -> Result<Outcome, Refusal> {
    let is_needed = matches!(anchor(path, &workspace.uid), Ok(Anchor::Git { .. }));
    let directory = path.parent().unwrap_or(Path::new("."));
    match Git::in_dir(directory, "version").line() {
        Ok(version) => Ok(Well(version)),
        Err(_) if !is_needed => Ok(Well("not found, and not needed here".into())),
        Err(failure) => Err(failure.into()),
    }
}

/// Copies that a change of the schema left; a person removes them when they trust the new one.
fn backups(path: &Path) -> Result<Outcome, Refusal> {
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
