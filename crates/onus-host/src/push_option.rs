//! The token that a push shows, where git finds it by itself (mission E1): a claim leaves it in its own working tree, and its
//! end takes it away again.
//!
//! It stands in the working tree's own `config.worktree`, readable by its owner only. Git sends push options to whatever is
//! pushed to, and fails where they are not taken: so it is left only in a clone that pushes to a repository with our hooks.

use crate::env::Env;
use crate::file::{create_new, if_exists, read_capped, refused, temporary_beside};
use crate::git::Git;
use crate::hook::{Site, absent};
use crate::repository::{Repo, find_with};
use onus_core::code::Code;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const CONFIG_MAX: usize = 1024 * 1024;
const TOKEN_MAX: usize = 256;
const BEGIN: &str = "# onus: the token that a push shows; it ends with the task";
const END: &str = "# onus: end";

/// Whether this clone pushes to a repository of this machine that has our hooks. A remote one is known to the store.
pub fn is_asked_for(repo: &Repo) -> Result<bool, Refusal> {
    let base = repo.root.as_deref().unwrap_or(&repo.common_dir);
    Ok(repo.config()?.remotes.iter().any(|url| {
        let path = url.strip_prefix("file://").unwrap_or(url);
        let is_path = !path.contains("://") && (path.starts_with(['/', '.']) || !path.contains(':'));
        let there = is_path.then(|| find_with(&base.join(path), &Env::default()).ok()?.repo).flatten();
        there.is_some_and(|there| {
            there.root.is_none() && absent(&there, Site::Shared).is_ok_and(|names| names.is_empty())
        })
    }))
}

/// Who the token in a working tree is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For<'a> {
    /// Whoever uses the clone.
    Anybody,
    /// A holder whose environment says who it is, and reaches what is pushed to.
    Environment,
    /// A holder that nothing else would name there.
    Holder(&'a Handle),
}

/// Has pushes from the working tree of `repo` show this token.
pub fn keep(repo: &Repo, token: &str, whose: For<'_>) -> Result<(), Refusal> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    if token.is_empty() || token.len() > TOKEN_MAX || !token.bytes().all(is_plain) {
        return Err(Refusal::new(Code::Internal, "this is no token that could be pushed along"));
    }
    enable(repo)?;
    // The empty value takes back what a wider configuration says: one push has one token.
    let name = match whose {
        For::Anybody => String::new(),
        For::Environment => "\tpushOption = onus-as=\n".to_owned(),
        For::Holder(name) => format!("\tpushOption = onus-as={name}\n"),
    };
    write(repo, &format!("{BEGIN}\n[push]\n\tpushOption =\n\tpushOption = onus={token}\n{name}{END}\n"))
}

/// Has them show the person's own token from now on, or none where there is none.
pub fn forget(repo: &Repo) -> Result<(), Refusal> {
    if !own_config(repo).exists() {
        return Ok(());
    }
    match person(repo)? {
        Some(token) => keep(repo, &token, For::Anybody),
        None => write(repo, ""),
    }
}

/// The person's own token that lies here.
pub fn person(repo: &Repo) -> Result<Option<String>, Refusal> {
    let path = person_file(repo);
    let bytes = if_exists(read_capped(&path, TOKEN_MAX)).map_err(|e| refused("read", &path, &e))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned()))
}

/// Leaves a person's token: it is shown wherever no lease is.
pub fn keep_person(repo: &Repo, token: &str) -> Result<(), Refusal> {
    let path = person_file(repo);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| replace(&path, token));
    written.map_err(|e| refused("write", &path, &e))?;
    keep(repo, token, For::Anybody)
}

fn person_file(repo: &Repo) -> PathBuf {
    repo.git_dir.join("onus/push-token")
}

fn own_config(repo: &Repo) -> PathBuf {
    repo.git_dir.join("config.worktree")
}

/// Lets each working tree have a configuration of its own. What speaks of the main one alone moves there, as git has it.
fn enable(repo: &Repo) -> Result<(), Refusal> {
    let config = repo.shared_config()?;
    if config.worktree_config {
        return Ok(());
    }
    let git = |args: &[&str]| Git::on_common(repo, "config").args(args).run();
    let main = repo.common_dir.join("config.worktree");
    let main =
        main.to_str().ok_or_else(|| Refusal::invalid("the repository's path is not UTF-8"))?.to_owned();
    if config.bare {
        git(&["--file", &main, "core.bare", "true"])?;
    }
    if let Some(tree) = config.worktree.as_ref().and_then(|tree| tree.to_str()) {
        git(&["--file", &main, "core.worktree", tree])?;
    }
    git(&["--local", "extensions.worktreeConfig", "true"])?;
    if config.bare {
        git(&["--local", "--unset", "core.bare"])?;
    }
    if config.worktree.is_some() {
        git(&["--local", "--unset", "core.worktree"])?;
    }
    Ok(())
}

/// Puts `block` in the place of ours. Under git's own lock, so that nobody's change is lost.
fn write(repo: &Repo, block: &str) -> Result<(), Refusal> {
    let path = own_config(repo);
    let lock = path.with_file_name("config.worktree.lock");
    let failed = |e: io::Error| refused("write", &path, &e);
    match create_new(&lock, b"") {
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Refusal::new(Code::StoreBusy, format!("{} is there", lock.display()))
                .hint("try again; if no git is running, remove it"));
        }
        Err(e) => return Err(failed(e)),
    }
    let written = if_exists(read_capped(&path, CONFIG_MAX)).and_then(|found| {
        let found = String::from_utf8(found.unwrap_or_default())
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        let text = format!("{}{block}", without_block(&found));
        if text == found {
            return fs::remove_file(&lock);
        }
        if text.trim().is_empty() {
            if_exists(fs::remove_file(&path))?;
            return fs::remove_file(&lock);
        }
        fs::write(&lock, &text).and_then(|()| fs::rename(&lock, &path))
    });
    written.map_err(|e| {
        let _ = fs::remove_file(&lock);
        failed(e)
    })
}

fn without_block(text: &str) -> String {
    let mut kept = String::new();
    let mut ours = false;
    for line in text.lines() {
        match line {
            BEGIN => ours = true,
            END => ours = false,
            line if !ours => {
                kept.push_str(line);
                kept.push('\n');
            }
            _ => {}
        }
    }
    kept
}

/// A private file in place of another, whole or not at all.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let temporary = temporary_beside(path)?;
    let written = create_new(&temporary, text.as_bytes()).and_then(|_| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn git(dir: &Path, args: &[&str]) -> String {
        Git::in_dir(dir, args[0]).args(&args[1..]).line().unwrap_or_default()
    }

    fn clone() -> (tempfile::TempDir, Repo) {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "main"]);
        let repo = find_with(&dir.path().join("main"), &Env::default()).unwrap().repo.unwrap();
        (dir, repo)
    }

    #[test]
    fn git_finds_the_token_in_its_own_working_tree_and_nobody_else_reads_it() {
        let (dir, repo) = clone();
        let root = repo.root.clone().unwrap();
        git(&root, &["config", "push.pushOption", "ci.skip"]);
        keep(&repo, "1.2.ab", For::Environment).unwrap();
        keep(&repo, "1.3.cd", For::Holder(&"@a".parse().unwrap())).unwrap();
        let options = git(&root, &["config", "--get-all", "push.pushOption"]);
        assert_eq!(options, "ci.skip\n\nonus=1.3.cd\nonus-as=@a");
        let mode = fs::metadata(own_config(&repo)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        forget(&repo).unwrap();
        assert_eq!(git(&root, &["config", "--get-all", "push.pushOption"]), "ci.skip");
        forget(&repo).unwrap();
        drop(dir);
    }

    #[test]
    fn what_else_is_there_stays_and_a_person_comes_back() {
        let (_dir, repo) = clone();
        let root = repo.root.clone().unwrap();
        keep_person(&repo, "onus_p1").unwrap();
        git(&root, &["config", "--worktree", "user.name", "Ada"]);
        keep(&repo, "1.2.ab", For::Anybody).unwrap();
        assert!(git(&root, &["config", "--get-all", "push.pushOption"]).ends_with("onus=1.2.ab"));
        forget(&repo).unwrap();
        assert!(git(&root, &["config", "--get-all", "push.pushOption"]).ends_with("onus=onus_p1"));
        assert_eq!(git(&root, &["config", "user.name"]), "Ada");
        assert!(keep(&repo, "a b", For::Anybody).is_err() && keep(&repo, "", For::Anybody).is_err());
    }

    #[test]
    fn a_bare_repository_with_working_trees_stays_bare() {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "--bare", "x.git"]);
        let repo = find_with(&dir.path().join("x.git"), &Env::default()).unwrap().repo.unwrap();
        keep(&repo, "1.2.ab", For::Anybody).unwrap();
        assert_eq!(git(&repo.common_dir, &["rev-parse", "--is-bare-repository"]), "true");
        let again = find_with(&repo.common_dir, &Env::default()).unwrap().repo.unwrap();
        assert_eq!(again, repo);
    }
}
