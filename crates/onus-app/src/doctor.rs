//! `doctor`: is the store sound, and are its surroundings? It only looks.

mod postgres;
mod sqlite;

use crate::ledger::{AnchorStanding, FindingView, Tip};
use crate::progress::Progress;
use crate::remote::calls;
use crate::submit::unexpected;
use crate::{Onus, anchor};
use onus_core::code::Code;
use onus_core::hash::encode_hex;
use onus_core::refusal::{Finding, Refusal};
use onus_core::registry::probe_report::kept;
use onus_core::text::counted;
use onus_core::time::Millis;
use onus_host::anchor::Anchor;
use onus_host::git::Git;
use onus_host::hook::{self, HookState, Site};
use onus_host::{clock, key, repository, settings};
use onus_store::load::{self, Workspace};
use onus_store::port::{Backend, Store};
use onus_store::read::ledger::{self, LedgerPart};
use onus_store::read::survey;
use onus_store::registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A clock may be a little behind the one that wrote the last entry.
const CLOCK_TOLERANCE: Millis = Millis::minutes(5);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DoctorView {
    pub ok: bool,
    pub checks: Vec<CheckView>,
    /// What is wrong with the ledger, entry by entry.
    pub findings: Vec<FindingView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckView {
    pub name: String,
    pub ok: bool,
    pub detail: String,
    /// The code that a failed check is refused with.
    pub code: Option<String>,
    pub hint: Option<String>,
}

impl DoctorView {
    /// The refusal that a front end gives; none when all is well.
    pub fn refusal(&self) -> Option<Refusal> {
        let failed = self.checks.iter().filter(|check| !check.ok).map(|check| {
            let code = check.code.as_deref().and_then(Code::parse).unwrap_or(Code::StoreUnavailable);
            Finding::new(code, format!("{}: {}", check.name, check.detail)).hinted(check.hint.clone())
        });
        Refusal::from_findings(failed.collect())
    }
}

/// What one check says.
enum CheckOutcome {
    Well(String),
    Ill(Code, String, &'static str),
}

use CheckOutcome::{Ill, Well};

/// A database that can be examined: how it is kept, apart from what is in it.
pub trait Examined {
    /// What there is to say; nothing of a database that is elsewhere.
    fn examine(&mut self) -> Vec<CheckView>;
}

impl Examined for Backend<'_> {
    fn examine(&mut self) -> Vec<CheckView> {
        match self {
            Backend::Sqlite(store) => store.examine(),
            Backend::Postgres(store) => store.examine(),
            Backend::Remote(_) => Vec::new(),
        }
    }
}

impl Onus {
    /// A server's store is examined where it is, with the server's own surroundings.
    pub fn doctor(&mut self, progress: &mut dyn Progress) -> Result<DoctorView, Refusal> {
        if let Some(mut answer) = self.remote(|| calls::Doctor {})? {
            // The server's own clone is not where its caller commits.
            for check in answer.checks.iter_mut().filter(|check| check.name == "hooks") {
                *check = view("hooks", self.asked_by_git());
            }
            return Ok(answer);
        }
        let workspace = self.ask(|tx| load::workspace(tx));
        progress.begin("looking at the database", None);
        let mut checks = self.store.backend().examine();
        progress.end();
        let mut check =
            |name: &'static str, outcome: Result<CheckOutcome, Refusal>| checks.push(view(name, outcome));
        check("settings", settings_file());
        check("hooks", self.asked_by_git());
        check("queue", self.queue_order());
        check("sessions", self.orphan_sessions());
        check("workstations", self.shared_workstations());
        check("leases", self.split_leases());
        check("numbers", self.used_numbers());
        check("requests", self.lost_requests());
        check("probes", self.odd_probes());
        check("mirrors", self.stuck_mirrors());
        let mut findings = Vec::new();
        match &workspace {
            Err(refusal) => check("workspace", Err(refusal.clone())),
            Ok(workspace) => {
                check("key", signing_key(workspace));
                check("git", git(&self.path, &self.place.cwd, workspace));
                check("clock", self.clock());
                check("anchor", self.anchor(workspace));
                check("checkpoint", self.last_checkpoint(workspace));
                check("ledger", self.ledger(progress, &mut findings));
            }
        }
        Ok(DoctorView { ok: checks.iter().all(|check| check.ok), checks, findings })
    }

    /// Whether outside systems are told what happens.
    fn stuck_mirrors(&mut self) -> Result<CheckOutcome, Refusal> {
        let mirrors = self.mirrors()?.mirrors;
        let stuck: Vec<String> = mirrors
            .iter()
            .filter(|mirror| mirror.is_stuck())
            .map(|mirror| {
                let why = mirror.last_error.as_deref().unwrap_or("nobody knows why");
                match mirror.stuck {
                    0 => format!("{} has failed {} times in a row: {why}", mirror.name, mirror.failures),
                    count => format!("{}: {count} tasks are stuck: {why}", mirror.name),
                }
            })
            .collect();
        Ok(match (stuck.first(), mirrors.len()) {
            (Some(first), _) => Ill(
                Code::MirrorStuck,
                format!("{first}{}", others(&stuck)),
                "onus mirror status, then onus mirror check NAME and onus mirror retry NAME",
            ),
            (None, 0) => Well("none is set up".into()),
            (None, count) => {
                let pending: i64 = mirrors.iter().map(|mirror| mirror.pending).sum();
                Well(format!("{count} set up, {pending} tasks wait to be told"))
            }
        })
    }

    /// Whether git asks before a branch moves. A team may do without: that is told, and no failure.
    fn asked_by_git(&self) -> Result<CheckOutcome, Refusal> {
        let Some(repo) = &self.place.repo else {
            return Ok(Well("no git repository here".into()));
        };
        let site = if repo.root.is_some() { Site::Work } else { Site::Shared };
        let program = std::env::current_exe().map_err(unexpected)?;
        let hooks = match hook::status(repo, site, &program) {
            Ok(hooks) => hooks,
            Err(refusal) => return Ok(Well(format!("not in place: {}", refusal.detail))),
        };
        let odd = hooks.iter().filter(|hook| hook.state != HookState::Current);
        let odd: Vec<String> = odd.map(|hook| format!("{} {}", hook.name, hook.state.name())).collect();
        Ok(Well(if odd.is_empty() {
            "git asks before a branch moves".into()
        } else {
            format!("git may ask nobody before a branch moves: {} (onus hook install)", odd.join(", "))
        }))
    }

    fn orphan_sessions(&mut self) -> Result<CheckOutcome, Refusal> {
        let orphans = self.ask(|tx| survey::orphan_sessions(tx))?;
        let named: Vec<String> =
            orphans.iter().map(|(task, epoch)| format!("{task} (epoch {epoch})")).collect();
        Ok(none_of(&named, "no session runs without its assignment", "sessions run without an assignment"))
    }

    fn queue_order(&mut self) -> Result<CheckOutcome, Refusal> {
        let misplaced = self.ask(|tx| survey::misqueued(tx))?;
        Ok(none_of(
            &misplaced,
            "what is ready and what waits is known",
            "tasks are ready or wait against their dependencies",
        ))
    }

    fn shared_workstations(&mut self) -> Result<CheckOutcome, Refusal> {
        let shared = self.ask(|tx| survey::shared_workstations(tx))?;
        let named: Vec<String> = shared.iter().map(|(name, tasks)| format!("{name}: {tasks}")).collect();
        Ok(none_of(&named, "no workstation holds two assignments", "workstations hold two live assignments"))
    }

    fn split_leases(&mut self) -> Result<CheckOutcome, Refusal> {
        let split = self.ask(|tx| survey::split_leases(tx))?;
        Ok(none_of(&split, "leases and assignments agree", "leases and assignments disagree"))
    }

    fn used_numbers(&mut self) -> Result<CheckOutcome, Refusal> {
        let used = self.ask(|tx| survey::used_numbers(tx))?;
        Ok(none_of(&used, "the next number of each project is free", "numbers would be given twice"))
    }

    fn lost_requests(&mut self) -> Result<CheckOutcome, Refusal> {
        let lost = self.ask(|tx| survey::lost_requests(tx))?;
        let lost: Vec<String> = lost.iter().map(|seq| format!("entry {seq}")).collect();
        Ok(none_of(&lost, "every request names its entry", "requests name entries that are not there"))
    }

    /// What the probes said last is what they could have said.
    fn odd_probes(&mut self) -> Result<CheckOutcome, Refusal> {
        let odd = self.ask(|tx| {
            let now = tx.now()?.wall;
            let mut odd = Vec::new();
            for row in registry::workstations(tx)? {
                let place = row.workstation;
                match registry::probes(tx, &place.name) {
                    Ok(results) if results.is_empty() => {}
                    Ok(results) => {
                        odd.extend(kept(&place, &results, now).err().map(|refusal| refusal.detail));
                    }
                    Err(error) => odd.push(format!("{}: {error}", place.name)),
                }
            }
            Ok(odd)
        })?;
        Ok(none_of(&odd, "what probes said last is of their workstations", "what probes said makes no sense"))
    }

    fn clock(&mut self) -> Result<CheckOutcome, Refusal> {
        let (now, last) = self.ask(|tx| Ok((tx.now()?.wall, ledger::log(tx, &LedgerPart::Latest, 1)?)))?;
        Ok(match last.first() {
            Some(entry) if entry.at > now.plus(CLOCK_TOLERANCE) => {
                let detail = format!("it says {now}; the last entry was written at {}", entry.at);
                Ill(Code::StoreUnavailable, detail, "set the clock")
            }
            _ => Well(format!("{now}")),
        })
    }

    fn anchor(&mut self, workspace: &Workspace) -> Result<CheckOutcome, Refusal> {
        let tip = Tip::read(&anchor(&self.path, &workspace.uid)?)?;
        let known = self.store.read(|tx| ledger::checkpoints(tx))?;
        Ok(match (tip.standing(&known, workspace.generation), &workspace.anchor) {
            (AnchorStanding::Bare, None) => Well("nothing was anchored yet".into()),
            (AnchorStanding::Bare, Some(id)) => Ill(
                Code::LedgerBroken,
                format!("the last checkpoint was anchored as {id}; it is gone"),
                RESTORE_ANCHOR,
            ),
            (AnchorStanding::Known { seq }, _) => Well(format!("holds the ledger up to entry {seq}")),
            (AnchorStanding::Acknowledged, _) => Ill(
                Code::StoreBehindAnchor,
                "the generation was raised, and not anchored yet".into(),
                "onus ledger checkpoint",
            ),
            (AnchorStanding::Behind, _) => Ill(
                Code::StoreBehindAnchor,
                "it has seen a checkpoint that the store does not know".into(),
                "if the store was restored: onus ledger raise-generation --reason TEXT",
            ),
        })
    }

    fn last_checkpoint(&mut self, workspace: &Workspace) -> Result<CheckOutcome, Refusal> {
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
    ) -> Result<CheckOutcome, Refusal> {
        let view = self.verify(progress)?;
        let outcome = match view.refusal() {
            None => Well(format!(
                "{} in {} verified",
                counted(view.entries, "entry"),
                counted(view.chains, "chain")
            )),
            Some(refusal) => Ill(Code::LedgerBroken, refusal.detail, "onus ledger verify"),
        };
        *findings = view.findings;
        Ok(outcome)
    }
}

/// What to do about tables that somebody changed.
const MEND_TABLES: &str =
    "restore a backup, or move what is in it: onus export --format onus, then import it into a new store";

const RESTORE_ANCHOR: &str = "fetch refs/onus/ledger from another clone, or restore the anchor's directory";

fn view(name: &str, outcome: Result<CheckOutcome, Refusal>) -> CheckView {
    let (detail, code, hint) = match outcome {
        Ok(Well(detail)) => (detail, None, None),
        Ok(Ill(code, detail, hint)) => (detail, Some(code), Some(hint.to_owned())),
        Err(refusal) => (refusal.detail, Some(refusal.code), refusal.hint),
    };
    CheckView {
        name: name.to_owned(),
        ok: code.is_none(),
        detail,
        code: code.map(|code| code.name().to_owned()),
        hint,
    }
}

fn none_of(found: &[String], well: &str, ill: &str) -> CheckOutcome {
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

fn settings_file() -> Result<CheckOutcome, Refusal> {
    let file = repository::here()?.settings_file();
    settings::load(&file)?;
    Ok(Well(if file.exists() { format!("{} is valid", file.display()) } else { "the defaults apply".into() }))
}

fn signing_key(workspace: &Workspace) -> Result<CheckOutcome, Refusal> {
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
fn git(path: &Path, directory: &Path, workspace: &Workspace) -> Result<CheckOutcome, Refusal> {
    let is_needed = matches!(anchor(path, &workspace.uid), Ok(Anchor::Git { .. }));
    match Git::in_dir(directory, "version").line() {
        Ok(version) => Ok(Well(version)),
        Err(_) if !is_needed => Ok(Well("not found, and not needed here".into())),
        Err(failure) => Err(failure.into()),
    }
}
