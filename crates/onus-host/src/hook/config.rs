//! The lines of git's configuration that hooks depend on.

use crate::git::Git;
use crate::repository::Repo;
use crate::worktree;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use std::path::{Path, PathBuf};

const PUSH_OPTIONS: &str = "receive.advertisePushOptions";
/// What it was before us.
const PUSH_OPTIONS_BEFORE: &str = "onus.advertisePushOptionsBefore";
const UNSET: &str = "unset";
const STORE: &str = "onus.store";
const TOKEN_FILE: &str = "onus.tokenFile";
const PERSON: &str = "onus.person";

/// Where git looks for hooks: one directory, or one in each working tree when `core.hooksPath` is relative.
pub(super) fn directories(repo: &Repo) -> Result<Vec<PathBuf>, Refusal> {
    let args = ["--show-scope", "--type=path", "--get", "core.hooksPath"];
    let line = match Git::in_dir(&repo.common_dir, "config").args(&args).line() {
        Ok(line) => line,
        Err(failure) if failure.is_exit(1) => return Ok(vec![repo.common_dir.join("hooks")]),
        Err(failure) => return Err(failure.into()),
    };
    let (scope, path) = line.split_once('\t').unwrap_or(("", &line));
    if !matches!(scope, "local" | "worktree") {
        // Our hooks there would refuse in every repository of this user.
        return Err(Refusal::invalid(format!("core.hooksPath is {path} for every repository ({scope})"))
            .hint(format!(
                "give this one its own: git config core.hooksPath {}",
                repo.common_dir.join("hooks").display()
            )));
    }
    let path = PathBuf::from(path);
    if path.is_absolute() {
        return Ok(vec![path]);
    }
    let trees = worktree::list(repo)?;
    let roots = trees.into_iter().filter(|tree| tree.prunable.is_none()).map(|tree| tree.path);
    Ok(roots.map(|root| root.join(&path)).collect())
}

/// `core.hooksPath` of the repository itself.
pub(super) fn hooks_path(repo: &Repo) -> Result<Option<PathBuf>, Refusal> {
    repo.config().map(|config| config.hooks_path)
}

/// The token comes as a push option, which git refuses unless the repository has said that it takes them.
pub(super) fn prepare_shared(repo: &Repo, store: Option<&str>) -> Result<(), Refusal> {
    if get(repo, PUSH_OPTIONS_BEFORE)?.is_none() {
        let before = get(repo, PUSH_OPTIONS)?;
        set(repo, PUSH_OPTIONS_BEFORE, before.as_deref().unwrap_or(UNSET))?;
    }
    set(repo, PUSH_OPTIONS, "true")?;
    if let Some(store) = store {
        set(repo, STORE, store)?;
    }
    Ok(())
}

pub(super) fn restore_shared(repo: &Repo) -> Result<(), Refusal> {
    match get(repo, PUSH_OPTIONS_BEFORE)?.as_deref() {
        Some(UNSET) => unset(repo, PUSH_OPTIONS)?,
        Some(before) => set(repo, PUSH_OPTIONS, before)?,
        None => {}
    }
    unset(repo, PUSH_OPTIONS_BEFORE)?;
    unset(repo, STORE)
}

/// Lets every later call in this clone find its store without being told. Never a secret: the configuration is as open as
/// the repository.
pub fn keep_store(repo: &Repo, store: &str, token_file: Option<&Path>) -> Result<(), Refusal> {
    set(repo, STORE, store)?;
    match token_file.and_then(Path::to_str) {
        Some(path) => set(repo, TOKEN_FILE, path),
        None => Ok(()),
    }
}

/// Notes whose clone it is, where that is not known yet.
pub fn keep_person(repo: &Repo, person: &Handle) -> Result<(), Refusal> {
    if get(repo, PERSON)?.as_deref() == Some(person.as_str()) {
        Ok(())
    } else {
        set(repo, PERSON, person.as_str())
    }
}

fn get(repo: &Repo, name: &str) -> Result<Option<String>, Refusal> {
    match Git::on_common(repo, "config").args(&["--local", "--get", name]).line() {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.is_exit(1) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

fn set(repo: &Repo, name: &str, value: &str) -> Result<(), Refusal> {
    Git::on_common(repo, "config").args(&["--local"]).values(&[name, value]).run()?;
    Ok(())
}

fn unset(repo: &Repo, name: &str) -> Result<(), Refusal> {
    match Git::on_common(repo, "config").args(&["--local", "--unset-all"]).values(&[name]).run() {
        Err(failure) if !failure.is_exit(5) => Err(failure.into()),
        _ => Ok(()),
    }
}
