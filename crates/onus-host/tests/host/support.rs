//! Repositories made by git itself, in a directory that is gone after the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

    /// Runs git in a directory of the area with nobody's configuration, and gives its output.
    pub(crate) fn git(&self, dir: &str, args: &[&str]) -> String {
        git_at(&self.at(dir), args)
    }
}

pub(crate) fn git_at(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
    let output = command
        .current_dir(dir)
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always"])
        .args(args)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
