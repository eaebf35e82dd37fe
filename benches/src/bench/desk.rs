//! A repository to measure in, with a home and keys of its own.

use crate::measure::{Outcome, output};
use crate::place::Programs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A repository, and the place of one worktree beside it.
pub(crate) struct Desk {
    dir: TempDir,
    onus: PathBuf,
}

impl Desk {
    pub(crate) fn new(programs: &Programs) -> Outcome<Desk> {
        let dir = tempfile::Builder::new().prefix("onus-bench-desk-").tempdir()?;
        let desk = Desk { dir, onus: programs.onus.clone() };
        std::fs::create_dir(desk.repo())?;
        desk.set_up(&[
            &["init", "--quiet", "--initial-branch=main"],
            &["config", "user.name", "Ada"],
            &["config", "user.email", "ada@example.org"],
            &["config", "gc.auto", "0"],
            &["commit", "--quiet", "--allow-empty", "--message=start"],
        ])?;
        Ok(desk)
    }

    /// Commands of git in the repository.
    pub(crate) fn set_up(&self, commands: &[&[&str]]) -> Outcome<()> {
        for args in commands {
            output(&mut self.git(&self.repo(), args))?;
        }
        Ok(())
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("repo-ws-a")
    }

    fn surroundings<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("ONUS_KEY_DIR", self.dir.path().join("keys"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// In its worktree by the agent, elsewhere by the person.
    pub(crate) fn git(&self, dir: &Path, args: &[&str]) -> Command {
        let mut git = Command::new("git");
        let worker = if dir == self.tree() { "@a" } else { "@ada" };
        self.surroundings(&mut git).args(args).env("ONUS_AS", worker).current_dir(dir);
        git
    }

    /// By the person, in the repository.
    pub(crate) fn onus(&self, args: &[&str]) -> Command {
        let mut onus = Command::new(&self.onus);
        self.surroundings(&mut onus).args(args).env("ONUS_AS", "@ada").current_dir(self.repo());
        onus
    }

    /// Several commands; `$ONUS` is the program.
    pub(crate) fn shell(&self, dir: &Path, line: &str) -> Command {
        let mut shell = Command::new("sh");
        self.surroundings(&mut shell).args(["-euc", line]).env("ONUS", &self.onus).current_dir(dir);
        shell
    }
}
