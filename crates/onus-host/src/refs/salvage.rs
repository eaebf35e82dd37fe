//! Salvage (mission B6): what a fenced holder had done, kept under a name of its own. Nothing of it is touched.

use super::history::as_onus;
use super::{History, Sample};
use crate::env::Env;
use crate::file::{if_exists, printable, refused, temporary_beside};
use crate::git::{Failure, Git};
use crate::repository::{Repo, find_with};
use onus_core::code::Code;
use onus_core::id::{Epoch, TaskId};
use onus_core::refusal::Refusal;
use onus_core::salvage_reference;
use std::fs;
use std::path::{Path, PathBuf};

/// How the commit begins that holds what nobody had committed.
pub const SUBJECT: &str = "onus: salvaged work";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    pub refname: String,
    pub commit: String,
    /// What was not committed. Empty when an earlier call has salvaged already.
    pub uncommitted: Sample<String>,
    /// git could not read all of it; its words.
    pub left_out: Option<String>,
}

/// Keeps the tip of `refname` and the changed and new files of the working tree `dir` (ignored ones are not work).
/// None when all of it is in `main` already. Once done for a grant it stays as it is, however often it is asked for.
pub fn salvage(
    repo: &Repo,
    dir: Option<&Path>,
    refname: &str,
    main: &str,
    task: &TaskId,
    epoch: Epoch,
) -> Result<Option<Salvaged>, Refusal> {
    let target = salvage_reference(task, epoch);
    if let Some(commit) = History::at(&repo.common_dir).resolve(&target)? {
        return Ok(Some(known(target, commit)));
    }
    keep(repo, dir, refname, main, &target, &format!("{task}, epoch {epoch}"), &trailers(task, epoch))
}

/// The same for what is found where new work is to begin: nothing is assumed of an earlier call, and the name is the first
/// free one behind `target`.
pub fn set_aside(
    repo: &Repo,
    dir: &Path,
    refname: &str,
    main: &str,
    target: &str,
    of: Option<(&TaskId, Epoch)>,
) -> Result<Option<Salvaged>, Refusal> {
    let history = History::at(&repo.common_dir);
    let mut name = target.to_owned();
    for number in 2..=1_000 {
        if history.resolve(&name)?.is_none() {
            break;
        }
        name = format!("{target}.{number}");
    }
    let (whose, trailers) = match of {
        Some((task, epoch)) => (format!("{task}, epoch {epoch}"), trailers(task, epoch)),
        None => ("nobody's task".to_owned(), String::new()),
    };
    keep(repo, Some(dir), refname, main, &name, &whose, &trailers)
}

fn trailers(task: &TaskId, epoch: Epoch) -> String {
    format!("Onus-Task: {task}\nOnus-Epoch: {epoch}\n")
}

fn keep(
    repo: &Repo,
    dir: Option<&Path>,
    refname: &str,
    main: &str,
    target: &str,
    whose: &str,
    trailers: &str,
) -> Result<Option<Salvaged>, Refusal> {
    let target = target.to_owned();
    let history = History::at(&repo.common_dir);
    let tip = history.resolve(refname)?;
    let tree = dir.filter(|dir| dir.is_dir()).map(|dir| Tree::read(repo, dir)).transpose()?;
    let mut parents: Vec<String> = tree.as_ref().and_then(|tree| tree.head.clone()).into_iter().collect();
    if let Some(tip) = tip
        && !parents.first().map_or(Ok(false), |head| history.reaches(head, &tip))?
    {
        parents.push(tip);
    }
    let uncommitted = tree.as_ref().map_or_else(Vec::new, |tree| tree.changed.clone());
    let left_out = tree.as_ref().and_then(|tree| tree.left_out.clone());
    let main = history.resolve(main)?;
    let mut beyond = false;
    for parent in &parents {
        beyond |= !main.as_ref().map_or(Ok(false), |main| history.reaches(main, parent))?;
    }
    if !beyond && uncommitted.is_empty() {
        return Ok(None);
    }
    let commit = match (&tree, parents.as_slice()) {
        (Some(tree), _) if !uncommitted.is_empty() || parents.len() > 1 => {
            write(repo, &tree.id, &parents, whose, trailers)?
        }
        (_, [only]) => only.clone(),
        _ => return Err(Refusal::new(Code::Internal, "salvage found changes but no commit")),
    };
    let zeros = "0".repeat(commit.len());
    let created = Git::on_common(repo, "update-ref")
        .args(&["-m", "onus: salvage", "--no-deref"])
        .values(&[&target, &commit, &zeros])
        .run();
    match (created, history.resolve(&target)?) {
        (Ok(_), _) => {
            Ok(Some(Salvaged { refname: target, commit, uncommitted: Sample::of(uncommitted), left_out }))
        }
        // Another process was first.
        (Err(_), Some(theirs)) => Ok(Some(known(target, theirs))),
        (Err(failure), None) => Err(failure.into()),
    }
}

fn known(refname: String, commit: String) -> Salvaged {
    Salvaged { refname, commit, uncommitted: Sample::of(Vec::new()), left_out: None }
}

fn write(
    repo: &Repo,
    tree: &str,
    parents: &[String],
    whose: &str,
    trailers: &str,
) -> Result<String, Refusal> {
    let mut commit = Git::on_common(repo, "commit-tree").args(&["--no-gpg-sign"]);
    for role in ["AUTHOR", "COMMITTER"] {
        commit = as_onus(commit, role);
    }
    for parent in parents {
        commit = commit.args(&["-p", parent]);
    }
    let message = format!("{SUBJECT} of {whose}\n\n{trailers}");
    Ok(commit.args(&["-F", "-", tree]).input(message.as_bytes()).line()?)
}

/// A working tree as one tree object.
struct Tree {
    id: String,
    head: Option<String>,
    changed: Vec<String>,
    left_out: Option<String>,
}

impl Tree {
    fn read(repo: &Repo, dir: &Path) -> Result<Tree, Refusal> {
        let own = find_with(dir, &Env::default())?.repo.filter(|own| own.common_dir == repo.common_dir);
        let Some(own) = own else {
            return Err(Refusal::invalid(format!(
                "{} is not a working tree of this repository",
                crate::file::shown(dir)
            )));
        };
        let index = Index::copied_from(&own.git_dir)?;
        let add = index.git(dir, "add").args(&["--all", "--ignore-errors"]).run();
        let left_out = match add {
            Ok(_) => None,
            Err(failure @ Failure::Failed { .. }) => {
                Some(printable(failure.said().lines().next().unwrap_or("git add failed")))
            }
            Err(failure) => return Err(failure.into()),
        };
        let id = index.git(dir, "write-tree").line()?;
        let history = History::at(dir);
        let head = history.resolve("HEAD")?;
        let changed = match &head {
            Some(head) => history.between(head, &id)?,
            None => super::history::paths(&index.git(dir, "ls-files").args(&["-z"]).run()?),
        };
        Ok(Tree { id, head, changed, left_out })
    }
}

/// A copy of the index, so that the holder's own stays as it is.
struct Index {
    file: PathBuf,
}

impl Index {
    fn copied_from(git_dir: &Path) -> Result<Index, Refusal> {
        let real = git_dir.join("index");
        let file = temporary_beside(&real).map_err(|e| refused("name a file beside", &real, &e))?;
        let index = Index { file };
        if_exists(fs::copy(&real, &index.file)).map_err(|e| refused("copy", &real, &e))?;
        Ok(index)
    }

    fn git(&self, dir: &Path, verb: &str) -> Git {
        // The copy must not be compared by what a watcher remembers about the original; and thousands of new files are
        // synced together, not one by one.
        let settings = ["core.fsmonitor=false", "core.safecrlf=false", "core.fsyncMethod=batch"];
        Git::ours_with(dir, &settings, verb).env("GIT_INDEX_FILE", &self.file)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}
