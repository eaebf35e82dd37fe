//! Reads references from git's own files, because a claim must not wait for a process. Where they cannot be read so,
//! git is asked.

use crate::env::Env;
use crate::file::{if_exists, read_capped, refused};
use crate::git::{self, Failure, Git, is_object_id};
use crate::repository::{self, Repo};
use onus_core::refusal::Refusal;
use std::io;
use std::path::Path;

const REF_MAX: usize = 4_096;
const PACKED_MAX: usize = 32 * 1024 * 1024;

/// git itself follows no more.
const LINKS_MAX: usize = 5;

/// What a reference's file says.
enum Said {
    Commit(String),
    Link(String),
    Nothing,
    /// Not in a form that is read here.
    Odd,
}

/// The commit that a branch (`refs/heads/…`, `refs/remotes/…`) is at; none when there is no such branch.
pub fn commit(repo: &Repo, name: &str) -> Result<Option<String>, Refusal> {
    let mut name = name.to_owned();
    for _ in 0..=LINKS_MAX {
        match read(repo, &name)? {
            Said::Commit(id) => return Ok(Some(id)),
            Said::Link(next) => name = next,
            Said::Nothing => return packed(repo, &name),
            Said::Odd => break,
        }
    }
    ask(repo, "rev-parse", &["--verify", "--quiet"], &format!("{name}^{{commit}}"))
        .map(|id| id.filter(|id| is_object_id(id)))
}

/// The branch that the main checkout, or a bare repository, is on; none when it is on none.
pub(crate) fn head_branch(repo: &Repo) -> Result<Option<String>, Refusal> {
    match read(repo, "HEAD")? {
        Said::Link(name) => Ok(Some(name)),
        Said::Commit(_) | Said::Nothing => Ok(None),
        Said::Odd => ask(repo, "symbolic-ref", &["--quiet"], "HEAD"),
    }
}

/// What a working tree is on: its branch, if it is on one, and its commit, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// `refs/heads/…`
    pub branch: Option<String>,
    pub commit: Option<String>,
}

/// What the working tree at `dir` is on. Nothing where `dir` is not the top of a working tree: a directory inside
/// another repository is no tree of its own.
pub fn head_of(dir: &Path) -> Head {
    let repo = repository::find_with(dir, &Env::default()).ok().and_then(|place| place.repo);
    let Some(repo) = repo.filter(|repo| repo.root.as_deref() == Some(dir)) else {
        return Head::default();
    };
    match read_file(&repo.git_dir.join("HEAD")) {
        Ok(Said::Link(name)) if !repo.common_dir.join("reftable").exists() => {
            Head { commit: commit(&repo, &name).ok().flatten(), branch: Some(name) }
        }
        Ok(Said::Commit(id)) => Head { branch: None, commit: Some(id) },
        _ => Head {
            branch: Git::in_dir(dir, "symbolic-ref").args(&["--quiet", "HEAD"]).line().ok(),
            commit: git::head(dir),
        },
    }
}

/// The branch that the working tree of a git directory is on, if it is on one; none outside where its file does not say.
pub(crate) fn branch_at(repo: &Repo, git_dir: &Path) -> Option<Option<String>> {
    if repo.common_dir.join("reftable").exists() {
        return None;
    }
    match read_file(&git_dir.join("HEAD")).ok()? {
        Said::Link(name) => Some(Some(name)),
        Said::Commit(_) => Some(None),
        Said::Nothing | Said::Odd => None,
    }
}

/// Whether it can be a branch's name, by the rules of `git check-ref-format`.
pub(crate) fn is_branch_name(name: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    let good = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.len() <= 255
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(odd)
        && name.split('/').all(good)
}

fn read(repo: &Repo, name: &str) -> Result<Said, Refusal> {
    // There the files are only a sign for older programs.
    if repo.common_dir.join("reftable").exists() {
        return Ok(Said::Odd);
    }
    read_file(&repo.common_dir.join(name))
}

fn read_file(path: &Path) -> Result<Said, Refusal> {
    let bytes = match if_exists(read_capped(path, REF_MAX)) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Said::Nothing),
        // A directory of that name holds other branches.
        Err(e) if matches!(e.kind(), io::ErrorKind::IsADirectory | io::ErrorKind::InvalidData) => {
            return Ok(Said::Nothing);
        }
        Err(e) => return Err(refused("read", path, &e)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end();
    Ok(match text.strip_prefix("ref:").map(str::trim_start) {
        Some(target) if target.strip_prefix("refs/").is_some_and(is_branch_name) => {
            Said::Link(target.to_owned())
        }
        None if is_object_id(text) => Said::Commit(text.to_owned()),
        _ => Said::Odd,
    })
}

/// git packs a reference before it removes its file, so whoever finds no file finds it here.
pub(crate) fn packed(repo: &Repo, name: &str) -> Result<Option<String>, Refusal> {
    let path = repo.common_dir.join("packed-refs");
    let bytes = if_exists(read_capped(&path, PACKED_MAX)).map_err(|e| refused("read", &path, &e))?;
    let bytes = bytes.unwrap_or_default();
    let found = bytes.split(|byte| *byte == b'\n').find_map(|line| {
        let id = line.strip_suffix(name.as_bytes())?.strip_suffix(b" ")?;
        std::str::from_utf8(id).ok().filter(|id| is_object_id(id))
    });
    Ok(found.map(str::to_owned))
}

fn ask(repo: &Repo, verb: &str, args: &[&str], value: &str) -> Result<Option<String>, Refusal> {
    match Git::on_common(repo, verb).args(args).values(&[value]).line() {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Failed { exit: Some(1), .. }) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}
