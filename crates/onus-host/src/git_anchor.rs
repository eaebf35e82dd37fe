//! The anchor as commits on `refs/onus/ledger`: it travels with the repository, and git's own hashes chain it.

use crate::anchor::{broken, lost_race};
use crate::file::{if_exists, read_capped, refused, shown};
use crate::git::{Failure, Git, is_object_id};
use crate::repository::Repo;
use onus_core::refusal::Refusal;

const REF: &str = "refs/onus/ledger";
const LOOSE_MAX: usize = 1024;
const PACKED_MAX: usize = 256 * 1024 * 1024;

/// Read from git's files, because a process costs more than the command that asks. Only the reftable format, which
/// is not made to be read by others, needs git.
pub(crate) fn tip(repo: &Repo) -> Result<Option<String>, Refusal> {
    if repo.common_dir.join("reftable").is_dir() {
        return ask_git(repo);
    }
    // In this order: git packs a reference before it removes the loose one.
    let loose = repo.common_dir.join(REF);
    if let Some(bytes) = if_exists(read_capped(&loose, LOOSE_MAX)).map_err(|e| refused("read", &loose, &e))? {
        let id = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        return checked(id).map(Some).map_err(|e| broken(format!("{}: {e}", shown(&loose))));
    }
    let packed = repo.common_dir.join("packed-refs");
    let Some(bytes) =
        if_exists(read_capped(&packed, PACKED_MAX)).map_err(|e| refused("read", &packed, &e))?
    else {
        return Ok(None);
    };
    let line =
        bytes.split(|b| *b == b'\n').find_map(|line| line.strip_suffix(REF.as_bytes())?.strip_suffix(b" "));
    line.map(|id| checked(String::from_utf8_lossy(id).into_owned()))
        .transpose()
        .map_err(|e| broken(format!("{}: {e}", shown(&packed))))
}

fn ask_git(repo: &Repo) -> Result<Option<String>, Refusal> {
    match Git::on_common(repo, "rev-parse").args(&["--verify", "--quiet"]).values(&[REF]).line() {
        Ok(id) => checked(id).map(Some).map_err(broken),
        // With --quiet a reference that does not exist is exit 1 without a word.
        Err(Failure::Failed { exit: Some(1), stderr, .. }) if stderr.is_empty() => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

fn checked(id: String) -> Result<String, String> {
    if is_object_id(&id) {
        Ok(id)
    } else {
        Err(format!("{REF} holds {}, not an object id", onus_core::id::shown(&id)))
    }
}

pub(crate) fn append(
    repo: &Repo,
    expected: Option<&str>,
    files: &[(&str, &[u8])],
    message: &str,
) -> Result<String, Refusal> {
    let mut tree = String::new();
    for (name, bytes) in files {
        let blob = written(Git::on_common(repo, "hash-object").args(&["-w", "--stdin"]).input(bytes))?;
        tree.push_str(&format!("100644 blob {blob}\t{name}\n"));
    }
    let tree = written(Git::on_common(repo, "mktree").input(tree.as_bytes()))?;
    let mut commit = Git::on_common(repo, "commit-tree").args(&["--no-gpg-sign"]);
    for role in ["AUTHOR", "COMMITTER"] {
        commit = commit
            .env(&format!("GIT_{role}_NAME"), "Onus")
            .env(&format!("GIT_{role}_EMAIL"), "onus@localhost");
    }
    if let Some(parent) = expected {
        let parent = checked(parent.to_owned()).map_err(broken)?;
        commit = commit.args(&["-p", &parent]);
    }
    let commit = written(commit.args(&["-F", "-", &tree]).input(message.as_bytes()))?;
    move_ref(repo, &commit, expected)?;
    Ok(commit)
}

fn written(git: Git) -> Result<String, Refusal> {
    checked(git.line()?).map_err(broken)
}

/// Compare and swap: git moves the reference only from where we saw it.
fn move_ref(repo: &Repo, new: &str, expected: Option<&str>) -> Result<(), Refusal> {
    // All zeros: there must be none yet.
    let old = expected.map_or_else(|| "0".repeat(new.len()), str::to_owned);
    let args = ["-m", "onus: checkpoint", "--no-deref"];
    match Git::on_common(repo, "update-ref").args(&args).values(&[REF, new, &old]).run() {
        Ok(_) => Ok(()),
        Err(failure) => {
            if tip(repo)?.as_deref() != expected {
                return Err(lost_race(format!("another process moved {REF} first")));
            }
            if matches!(&failure, Failure::Failed { stderr, .. } if stderr.contains("File exists")) {
                return Err(lost_race(format!("another process is updating {REF}")));
            }
            Err(failure.into())
        }
    }
}

pub(crate) fn read(repo: &Repo, id: &str, file: &str) -> Result<Option<Vec<u8>>, Refusal> {
    if !is_object_id(id) {
        return Ok(None);
    }
    let request = format!("{id}:{file}\n");
    // --batch says `missing` and goes on, where `cat-file blob` fails as it does for a damaged repository.
    let answer = Git::on_common(repo, "cat-file").args(&["--batch"]).input(request.as_bytes()).run()?;
    let (header, content) = answer
        .iter()
        .position(|b| *b == b'\n')
        .map(|at| (&answer[..at], &answer[at + 1..]))
        .ok_or_else(|| broken(format!("git did not answer for {}", request.trim_end())))?;
    if header.ends_with(b" missing") {
        return Ok(None);
    }
    let is_blob = header.split(|b| *b == b' ').nth(1) == Some(b"blob");
    Ok(content.strip_suffix(b"\n").filter(|_| is_blob).map(<[u8]>::to_vec))
}

pub(crate) fn history(repo: &Repo) -> Result<Vec<String>, Refusal> {
    let Some(tip) = tip(repo)? else { return Ok(Vec::new()) };
    let list = Git::on_common(repo, "rev-list").args(&["--first-parent"]).values(&[&tip]).run()?;
    String::from_utf8_lossy(&list).lines().map(|id| checked(id.to_owned()).map_err(broken)).collect()
}
