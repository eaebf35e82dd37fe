//! Working trees as workstations: one directory and one branch each (mission D3).

mod detach;
mod put_back;
mod survey;
mod sync;

pub use detach::{Stood, detach, reattach};
pub use put_back::{Picked, pick, put_back};
pub use survey::{Survey, dirty, is_dirty, survey};
pub use sync::{Conflict, Synced, sync, sync_seen};

use crate::env::Env;
use crate::file::{if_exists, refused, shown};
use crate::git::Git;
use crate::ref_file;
use crate::refs::{History, Sample, branch_ref};
use crate::repository::{Repo, find_with, linked_root};
use onus_core::code::Code;
use onus_core::refusal::{Finding, Refusal};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Shown by git to whoever tries to remove it by hand.
const REASON: &str = "an onus workstation: onus workstation list";

/// One working tree of a repository, as git lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worktree {
    pub path: PathBuf,
    /// The full name of the branch; none when HEAD is detached.
    pub branch: Option<String>,
    pub head: Option<String>,
    pub is_bare: bool,
    pub is_locked: bool,
    /// Why git would forget it: as a rule its directory is gone.
    pub prunable: Option<String>,
}

/// Every working tree, the main one first.
pub fn list(repo: &Repo) -> Result<Vec<Worktree>, Refusal> {
    let output = Git::on_common(repo, "worktree").args(&["list", "--porcelain", "-z"]).run()?;
    let mut trees: Vec<Worktree> = Vec::new();
    for line in output.split(|b| *b == 0).filter(|line| !line.is_empty()) {
        let space = line.iter().position(|b| *b == b' ').unwrap_or(line.len());
        let (word, value) = (&line[..space], line.get(space + 1..).unwrap_or_default());
        let text = || String::from_utf8_lossy(value).into_owned();
        match (word, trees.last_mut()) {
            (b"worktree", _) => {
                let path = PathBuf::from(OsStr::from_bytes(value));
                trees.push(Worktree { path, ..Worktree::default() });
            }
            (b"HEAD", Some(tree)) => tree.head = Some(text()).filter(|id| id.bytes().any(|b| b != b'0')),
            (b"branch", Some(tree)) => tree.branch = Some(text()),
            (b"bare", Some(tree)) => tree.is_bare = true,
            (b"locked", Some(tree)) => tree.is_locked = true,
            (b"prunable", Some(tree)) => tree.prunable = Some(text()),
            _ => {}
        }
    }
    // git tells where a locked tree should be, not that it is gone.
    for tree in trees.iter_mut().filter(|tree| !tree.is_bare && !tree.path.exists()) {
        tree.prunable.get_or_insert_with(|| "its directory is gone".into());
    }
    Ok(trees)
}

/// Where a branch (`refs/heads/…`) is checked out, as git's own files tell; where they cannot be read so, git is asked.
pub(crate) fn checkouts_of(repo: &Repo, refname: &str) -> Result<Vec<PathBuf>, Refusal> {
    let found = match read_checkouts(repo) {
        Some(found) => found,
        None => {
            let trees = list(repo)?.into_iter().filter(|tree| tree.prunable.is_none());
            trees.filter_map(|tree| Some((tree.path, tree.branch?))).collect()
        }
    };
    Ok(found.into_iter().filter(|(_, branch)| branch == refname).map(|(path, _)| path).collect())
}

/// Every working tree that is there, with the branch that it is on.
fn read_checkouts(repo: &Repo) -> Option<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    if !repo.config().ok()?.bare {
        // Of a submodule git lists its git directory.
        let is_usual = repo.common_dir.file_name() == Some(OsStr::new(".git"));
        let branch = is_usual.then(|| ref_file::branch_at(repo, &repo.common_dir))??;
        let root = repo.common_dir.parent().map(Path::to_owned);
        found.extend(root.zip(branch));
    }
    let linked = if_exists(std::fs::read_dir(repo.common_dir.join("worktrees"))).ok()?;
    for entry in linked.into_iter().flatten() {
        let git_dir = entry.ok()?.path();
        let Some(root) = linked_root(&git_dir).ok()? else { continue };
        if let Some(branch) = ref_file::branch_at(repo, &git_dir)?.filter(|_| root.join(".git").exists()) {
            found.push((root, branch));
        }
    }
    Some(found)
}

/// Makes a working tree at `path` on `branch`, which is made at `base` unless there is one already. One that is there
/// as asked is taken as it is: an earlier call may have died before it told anybody.
pub fn create(repo: &Repo, path: &Path, branch: &str, base: &str) -> Result<(), Refusal> {
    let history = History::at(&repo.common_dir);
    let refname = checked_branch(repo, branch)?;
    let path = &absolute(path)?;
    let trees = list(repo)?;
    if let Some(other) =
        trees.iter().find(|tree| tree.branch.as_ref() == Some(&refname) && tree.path != *path)
    {
        return Err(Refusal::invalid(format!("{branch} is checked out in {}", shown(&other.path)))
            .hint("name another branch, or register that directory"));
    }
    let at_path = trees.iter().find(|tree| tree.path == *path);
    match at_path {
        Some(tree) if tree.branch.as_ref() != Some(&refname) => {
            let on = tree.branch.as_deref().unwrap_or("no branch");
            return Err(Refusal::invalid(format!("{} is a working tree on {on}", shown(path)))
                .hint(format!("git -C {} switch {branch}, or name another directory", shown(path))));
        }
        Some(tree) if tree.prunable.is_none() => return keep(repo, tree),
        None if is_in_use(path)? => {
            return Err(Refusal::invalid(format!("{} is in use by something else", shown(path)))
                .hint("name a directory that is not there yet"));
        }
        _ => {}
    }
    let mut add = Git::on_common(repo, "worktree").args(&["add", "--quiet", "--lock", "--reason", REASON]);
    if at_path.is_some() {
        // Its directory was deleted; git wants to be told twice, because the entry is locked.
        add = add.args(&["--force", "--force"]);
    }
    let place = path
        .to_str()
        .ok_or_else(|| Refusal::invalid(format!("{} is not text that every git can store", shown(path))))?;
    if history.resolve(&refname)?.is_some() {
        add.values(&[place, branch]).run()?;
    } else {
        let base = history.commit(base)?;
        add.args(&["--no-track", "-b", branch]).values(&[place, &base]).run()?;
    }
    Ok(())
}

/// Where the working tree of this name lies by default: beside the main checkout.
pub fn beside(repo: &Repo, name: &str) -> PathBuf {
    let root = main_root(repo);
    let repo_name = root.file_name().unwrap_or_default().to_string_lossy();
    relative_to(&root, &format!("../{repo_name}-{name}"))
}

/// The main checkout, whichever working tree asks.
pub fn main_root(repo: &Repo) -> PathBuf {
    match repo.common_dir.file_name() {
        Some(name) if name == ".git" => repo.common_dir.with_file_name(""),
        _ => repo.common_dir.clone(),
    }
}

/// A path relative to the main checkout; what should lie beside it lies below `WORKTREE_ROOT` where that is set.
pub fn relative_to(root: &Path, relative: &str) -> PathBuf {
    match (relative.strip_prefix("../"), std::env::var_os("WORKTREE_ROOT").filter(|root| !root.is_empty())) {
        (Some(name), Some(worktrees)) => PathBuf::from(worktrees).join(name),
        _ => {
            let mut path = root.to_owned();
            for part in Path::new(relative).components() {
                match part {
                    std::path::Component::ParentDir => drop(path.pop()),
                    other => path.push(other),
                }
            }
            path
        }
    }
}

/// What became of the branch of a working tree that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    /// HEAD was detached.
    None,
    /// All of it is in the main branch.
    Deleted(String),
    /// It has commits that the main branch has not.
    Kept(String),
}

/// Takes a clean working tree away. Work that is not merged stays on its branch.
pub fn remove(repo: &Repo, dir: &Path, main: &str) -> Result<Branch, Refusal> {
    let path = absolute(dir)?;
    let trees = list(repo)?;
    let position = trees.iter().position(|tree| tree.path == path);
    let tree = position.filter(|at| *at > 0).map(|at| &trees[at]).ok_or_else(|| {
        Refusal::invalid(format!("{} is not a linked working tree of this repository", shown(&path)))
            .hint("git worktree list")
    })?;
    let history = History::at(&repo.common_dir);
    let main = history.commit(main)?;
    if tree.prunable.is_none() {
        let survey = survey(repo, &path, &main)?;
        refuse_dirty(&path, &survey.dirty, "removed")?;
        if tree.branch.is_none() && !survey.unmerged.is_empty() {
            return Err(not_ready(&path, "has commits that are on no branch")
                .hint(format!("git -C {} branch NAME keeps them", shown(&path))));
        }
    }
    take_away(repo, tree)?;
    let (Some(refname), Some(tip)) = (&tree.branch, &tree.head) else { return Ok(Branch::None) };
    let name = refname.trim_start_matches("refs/heads/").to_owned();
    if !history.is_merged(tip, &main)? {
        return Ok(Branch::Kept(name));
    }
    let delete = Git::on_common(repo, "update-ref").args(&["-d"]).values(&[refname, tip]).run();
    // Whoever moved it in the meantime has put something there.
    Ok(if delete.is_ok() { Branch::Deleted(name) } else { Branch::Kept(name) })
}

fn take_away(repo: &Repo, tree: &Worktree) -> Result<(), Refusal> {
    let place = tree.path.to_string_lossy();
    if tree.is_locked {
        Git::on_common(repo, "worktree").args(&["unlock"]).values(&[&place]).run()?;
    }
    // Without force: git looks once more whether it is clean.
    let removed = Git::on_common(repo, "worktree").args(&["remove"]).values(&[&place]).run();
    removed.map(drop).map_err(|failure| {
        let _ = lock(repo, &place);
        Refusal::from(failure)
    })
}

fn keep(repo: &Repo, tree: &Worktree) -> Result<(), Refusal> {
    if !tree.is_locked {
        lock(repo, &tree.path.to_string_lossy())?;
    }
    Ok(())
}

fn lock(repo: &Repo, place: &str) -> Result<(), Refusal> {
    Git::on_common(repo, "worktree").args(&["lock", "--reason", REASON]).values(&[place]).run()?;
    Ok(())
}

fn refuse_dirty(path: &Path, dirty: &Sample<String>, what: &str) -> Result<(), Refusal> {
    if dirty.is_empty() {
        return Ok(());
    }
    let finding = |path: &String| {
        Finding::new(Code::WorkstationNotReady, format!("{} is not committed", onus_core::id::shown(path)))
    };
    let detail = format!("has {} uncommitted paths: it is not {what}", dirty.count);
    Err(not_ready(path, &detail)
        .hint(format!("commit or stash them: git -C {} status", shown(path)))
        .findings(dirty.first.iter().map(finding).collect()))
}

/// A tree in the middle of a rebase is nobody's to move.
fn refuse_rebasing(own: &Repo, dir: &Path) -> Result<(), Refusal> {
    if is_rebasing(own) {
        return Err(not_ready(dir, "has a rebase under way")
            .hint("finish it with git rebase --continue, or give it up with git rebase --abort"));
    }
    Ok(())
}

fn is_rebasing(own: &Repo) -> bool {
    own.git_dir.join("rebase-merge").is_dir() || own.git_dir.join("rebase-apply").is_dir()
}

fn not_ready(path: &Path, detail: &str) -> Refusal {
    Refusal::new(Code::WorkstationNotReady, format!("{} {detail}", shown(path)))
}

fn checked_branch(repo: &Repo, branch: &str) -> Result<String, Refusal> {
    let refname = branch_ref(branch);
    // A leading dash is a legal reference, but no branch that one could name to git.
    if !branch.starts_with('-') && Git::on_common(repo, "check-ref-format").args(&[&refname]).yes()? {
        return Ok(refname);
    }
    Err(Refusal::invalid(format!("{} is not a branch name", onus_core::id::shown(branch)))
        .hint("git help check-ref-format"))
}

/// As git lists it: the directory above is there, the last part perhaps not.
fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let path = std::path::absolute(path).map_err(|e| refused("find", path, &e))?;
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Refusal::invalid(format!("{} has no name", shown(&path))));
    };
    // What git has still to make has no symbolic links in it.
    let known = above.ancestors().find_map(|known| Some((known, known.canonicalize().ok()?)));
    Ok(match known {
        Some((known, real)) => real.join(above.strip_prefix(known).unwrap_or(above)).join(name),
        None => path,
    })
}

fn is_in_use(path: &Path) -> Result<bool, Refusal> {
    let mut entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(path.is_symlink()),
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => return Ok(true),
        Err(e) => return Err(refused("read", path, &e)),
    };
    Ok(entries.next().is_some())
}

/// The repository that `dir` itself belongs to, if it is the one we speak of.
fn own(repo: &Repo, dir: &Path) -> Result<Repo, Refusal> {
    let found = find_with(dir, &Env::default())?.repo.filter(|own| own.common_dir == repo.common_dir);
    found.ok_or_else(|| Refusal::invalid(format!("{} is not a working tree of this repository", shown(dir))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(dir: &Path, args: &[&str]) {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(args);
        let done = git.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    #[test]
    fn where_branches_are_checked_out_is_what_git_says() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let dir = root.join("main");
        git(&root, &["init", "--quiet", "--initial-branch=main", "main"]);
        git(&dir, &["commit", "--quiet", "--allow-empty", "--message=x"]);
        for (name, args) in [
            ("one", &["-b", "one"][..]),
            ("again", &["--force"]),
            ("loose", &["--detach"]),
            ("locked", &["--lock", "-b", "locked"]),
            ("gone", &["-b", "gone"]),
            ("gone-locked", &["--lock", "-b", "gone-locked"]),
        ] {
            let at = if name == "again" { "main" } else { "HEAD" };
            git(&dir, &[&["worktree", "add", "--quiet"], args, &[&format!("../{name}"), at]].concat());
        }
        for name in ["gone", "gone-locked"] {
            std::fs::remove_dir_all(root.join(name)).unwrap();
        }
        git(&root, &["clone", "--quiet", "--bare", "main", "bare.git"]);
        git(&root.join("bare.git"), &["worktree", "add", "--quiet", "../of-bare", "main"]);
        for (place, branches) in [("main", 3), ("one", 3), ("bare.git", 1), ("of-bare", 1)] {
            let repo = find_with(&root.join(place), &Env::default()).unwrap().repo.unwrap();
            let listed = list(&repo).unwrap().into_iter().filter(|tree| tree.prunable.is_none());
            let mut expected: Vec<_> =
                listed.filter_map(|tree| Some((tree.path, tree.branch.filter(|_| !tree.is_bare)?))).collect();
            let mut found = read_checkouts(&repo).unwrap();
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{place}");
            let distinct: std::collections::BTreeSet<_> = found.iter().map(|(_, branch)| branch).collect();
            assert_eq!(distinct.len(), branches, "{place}: {found:?}");
        }
    }
}
