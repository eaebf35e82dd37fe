//! Reads the executor identity map: the one that the main branch's commit holds (mission C1).
//!
//! Every claim asks for it, so in the usual case a few files are read and no process is started.

mod cache;
mod committed;
mod history;

pub use crate::yaml::SIZE_MAX;
pub use history::history;

use crate::file::{if_exists, read_capped, refused, shown};
use crate::git::Git;
use crate::ref_file;
use crate::repository::{Place, Repo};
use crate::yaml::{self, Words};
use committed::Committed;
use onus_core::code::Code;
use onus_core::hash::Digest;
use onus_core::id::shown as shown_text;
use onus_core::identity_map::{FILE, IdentityMap, InForce, InvalidMap, Policy};
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::{Settings, Uncommitted};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

const WORDS: Words = Words {
    code: Code::MapInvalid,
    entry: "entry",
    entries: "entries",
    remedy: "correct it and commit it; `onus route check` checks it",
};

/// The map in force here.
///
/// Inside git that is the map of the main branch's commit, whichever working tree asks: an agent could otherwise write
/// itself a policy on its own branch. A map that is not committed yet is in force as the main checkout has it.
pub fn load(place: &Place, settings: &Settings) -> Result<Policy, Refusal> {
    let Some(repo) = &place.repo else {
        return uncommitted(&place.settings_file().with_file_name(FILE), Uncommitted::Report);
    };
    let working = main_checkout(repo).map(|root| root.join(FILE));
    let main = main(repo, settings)?;
    let content = match &main {
        Some(main) => cache::committed(repo, &main.commit)?,
        None => Committed::Absent,
    };
    let rule = settings.routing.uncommitted;
    match (content, main, working) {
        (Committed::Content(bytes), Some(main), working) => {
            let edited = match working {
                Some(working) => differs(repo, &working, &bytes, &main.commit)?,
                None => false,
            };
            if edited && rule == Uncommitted::Refuse {
                let finding = not_committed(&main);
                return Ok(invalid(vec![finding], Some(main.commit), Some(&bytes)));
            }
            Ok(in_force(&bytes, Some(main.commit), edited))
        }
        (Committed::Odd(why), Some(main), _) => {
            let finding = Finding::new(Code::MapInvalid, format!("{FILE} in {} {why}", main.name));
            Ok(invalid(vec![finding.hint("commit it as a small YAML file")], Some(main.commit), None))
        }
        (_, _, Some(working)) => uncommitted(&working, rule),
        (_, _, None) => Ok(Policy::Absent),
    }
}

/// The reference of the main branch (`refs/heads/main`); none before its first commit, and none where there is only a
/// commit without a branch.
pub fn main_branch(repo: &Repo, settings: &Settings) -> Result<Option<String>, Refusal> {
    Ok(main(repo, settings)?.map(|main| main.name).filter(|name| name != HEAD))
}

/// The JSON Schema of the map, for editors.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(IdentityMap);
    schema.insert("title".into(), FILE.into());
    schema.to_value()
}

/// A map's text as a map, with everything that is wrong with it. `name` is the file's, for messages.
pub fn parse(bytes: &[u8], name: &str) -> Result<IdentityMap, Vec<Finding>> {
    let map: IdentityMap = match yaml::parse_all(bytes, name, &WORDS) {
        Ok(map) => map,
        Err(mistakes) => return Err(all_mistakes(bytes, mistakes)),
    };
    let findings = map.findings();
    if findings.is_empty() { Ok(map) } else { Err(findings) }
}

/// What cannot be read, and what is wrong with the rest. Where a role was left out the rest misses it: that is no mistake.
fn all_mistakes(bytes: &[u8], mistakes: yaml::Mistakes<IdentityMap>) -> Vec<Finding> {
    let text = String::from_utf8_lossy(bytes);
    let is_top = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    let section = |line: usize| text.lines().take(line).filter(is_top).last().unwrap_or_default();
    let is_whole = !mistakes.left_out.iter().any(|line| section(*line).starts_with("roles"));
    let rest = mistakes.rest.filter(|_| is_whole).map(|map| map.findings()).unwrap_or_default();
    let unread = mistakes.refusals.into_iter().map(|refusal| {
        let finding = Finding::new(refusal.code, refusal.detail);
        finding.hinted(refusal.hint)
    });
    unread.chain(rest).collect()
}

/// Stands for the main branch in a repository that has none, like a checkout of one commit.
const HEAD: &str = "HEAD";

/// The main branch: its reference and where it is.
struct Main {
    name: String,
    commit: String,
}

fn main(repo: &Repo, settings: &Settings) -> Result<Option<Main>, Refusal> {
    let at = |name: String| -> Result<Option<Main>, Refusal> {
        Ok(ref_file::commit(repo, &name)?.map(|commit| Main { name, commit }))
    };
    if let Some(branch) = &settings.git.main {
        return set_by_team(repo, branch);
    }
    for name in ["refs/heads/main", "refs/heads/master"] {
        if let Some(main) = at(name.to_owned())? {
            return Ok(Some(main));
        }
    }
    at(ref_file::head_branch(repo)?.unwrap_or_else(|| HEAD.to_owned()))
}

/// A branch that is set and not there would leave everybody without a policy; only a new repository may lack it.
fn set_by_team(repo: &Repo, branch: &str) -> Result<Option<Main>, Refusal> {
    let wrong = |why: &str| {
        Refusal::invalid(format!("git.main in onus.yaml names {}, which {why}", shown_text(branch)))
            .hint("set it to the branch that work is merged to, or remove it")
    };
    if !ref_file::is_branch_name(branch) {
        return Err(wrong("is not a branch's name"));
    }
    let name = format!("refs/heads/{branch}");
    match ref_file::commit(repo, &name)? {
        Some(commit) => Ok(Some(Main { name, commit })),
        None if ref_file::head_branch(repo)?.is_some_and(|head| head == name) => Ok(None),
        None => Err(wrong("does not exist")),
    }
}

/// The working tree that the repository was made with; a bare repository has none, and a linked one is somebody's own.
fn main_checkout(repo: &Repo) -> Option<PathBuf> {
    if repo.common_dir.file_name() == Some(OsStr::new(".git")) {
        return repo.common_dir.parent().map(Path::to_owned);
    }
    repo.root.clone().filter(|_| repo.git_dir == repo.common_dir)
}

/// Whether the main checkout's file is another one than the committed.
fn differs(repo: &Repo, working: &Path, committed: &[u8], commit: &str) -> Result<bool, Refusal> {
    let there = match if_exists(read_capped(working, SIZE_MAX)) {
        Ok(there) => there,
        Err(e) if is_odd(&e) => return Ok(true),
        Err(e) => return Err(refused("read", working, &e)),
    };
    if there.as_deref() == Some(committed) {
        return Ok(false);
    }
    // Without an index nothing is checked out: a bare repository with linked working trees, or a fresh clone.
    let (Some(root), true) = (working.parent(), repo.common_dir.join("index").exists()) else {
        return Ok(false);
    };
    // Line endings and filters may make other bytes of the same content, and a sparse checkout leaves it out.
    let same = Git::in_dir(root, "diff")
        .args(&["--quiet", "--no-ext-diff", "--no-textconv", commit, "--", FILE])
        .run()
        .is_ok();
    Ok(!same)
}

fn uncommitted(working: &Path, rule: Uncommitted) -> Result<Policy, Refusal> {
    let bytes = match if_exists(read_capped(working, SIZE_MAX)) {
        Ok(None) => return Ok(Policy::Absent),
        Ok(Some(bytes)) => bytes,
        Err(e) if is_odd(&e) => {
            let finding = Finding::new(Code::MapInvalid, format!("{} is {e}", shown(working)));
            return Ok(invalid(vec![finding.hint("the map is a small YAML file")], None, None));
        }
        Err(e) => return Err(refused("read", working, &e)),
    };
    if rule == Uncommitted::Refuse {
        let detail = format!("{FILE} is not committed, and routing.uncommitted is refuse");
        let finding = Finding::new(Code::MapInvalid, detail);
        return Ok(invalid(vec![finding.hint("commit it on the main branch")], None, Some(&bytes)));
    }
    Ok(in_force(&bytes, None, false))
}

fn in_force(bytes: &[u8], commit: Option<String>, edited: bool) -> Policy {
    match parse(bytes, FILE) {
        Ok(map) => {
            let hash = Digest::of(bytes).to_string();
            Policy::InForce(Box::new(InForce { map, commit, hash, edited }))
        }
        Err(findings) => invalid(findings, commit, Some(bytes)),
    }
}

/// Whoever steps over it by force steps over exactly this one.
fn invalid(findings: Vec<Finding>, commit: Option<String>, bytes: Option<&[u8]>) -> Policy {
    let hash = bytes.map(|bytes| Digest::of(bytes).to_string());
    Policy::Invalid(Box::new(InvalidMap { findings, commit, hash }))
}

fn not_committed(main: &Main) -> Finding {
    let branch = main.name.trim_start_matches("refs/heads/");
    let detail = format!(
        "{FILE} in the main checkout differs from the one in {branch}, and routing.uncommitted is refuse"
    );
    Finding::new(Code::MapInvalid, detail)
        .hint(format!("commit it on {branch}, or undo it: git checkout {branch} -- {FILE}"))
}

fn is_odd(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidData)
}
