//! Repositories made by git itself, in a directory that is gone after the test.

use onus_host::env::Env;
use onus_host::repository::{Repo, find_with};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) struct Area {
    _temporary: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Area {
    pub(crate) fn new() -> Area {
        let temporary = tempfile::tempdir().unwrap();
        // On some systems the temporary directory is behind a symbolic link.
        let path = temporary.path().canonicalize().unwrap();
        Area { _temporary: temporary, path }
    }

    /// An area with a repository `main` in it that has one commit.
    pub(crate) fn with_main(init: &[&str]) -> Area {
        let area = Area::new();
        area.git(".", &[&["init", "-q", "-b", "main", "main"], init].concat());
        area.git("main", &["commit", "-q", "--allow-empty", "-m", "first"]);
        area
    }

    pub(crate) fn at(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    pub(crate) fn mkdir(&self, relative: &str) -> PathBuf {
        let path = self.at(relative);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn write(&self, relative: &str, content: &str) {
        let path = self.at(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Writes one file below `dir` and commits it; gives the commit.
    pub(crate) fn commit(&self, dir: &str, file: &str, content: &str) -> String {
        self.commit_as(dir, file, content, &format!("{file}: {}", content.trim_end()))
    }

    pub(crate) fn commit_as(&self, dir: &str, file: &str, content: &str, message: &str) -> String {
        self.write(&format!("{dir}/{file}"), content);
        self.git(dir, &["add", "-A"]);
        self.git(dir, &["commit", "-q", "-m", message]);
        self.head(dir)
    }

    pub(crate) fn head(&self, dir: &str) -> String {
        self.git(dir, &["rev-parse", "HEAD"])
    }

    pub(crate) fn repo(&self, dir: &str) -> Repo {
        find_with(&self.at(dir), &Env::default()).unwrap().repo.unwrap()
    }

    /// An executable shell text.
    pub(crate) fn script(&self, relative: &str, body: &str) -> PathBuf {
        self.write(relative, &format!("#!/bin/sh\n{body}\n"));
        let path = self.at(relative);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Runs git in a directory of the area with nobody's configuration, and gives its output.
    pub(crate) fn git(&self, dir: &str, args: &[&str]) -> String {
        git_at(&self.at(dir), args)
    }
}

pub(crate) fn git_at(dir: &Path, args: &[&str]) -> String {
    let output = try_git_at(dir, args);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The same where git may refuse.
pub(crate) fn try_git_at(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
    command
        .current_dir(dir)
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always"])
        .args(args)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .output()
        .unwrap()
}
