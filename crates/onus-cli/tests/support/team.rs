//! A team: two clones of one shared repository on one store, agents with worktrees in both.

use super::{Agent, Answer, Bench, Site, finish, start, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository whose branches are guarded: commits say under which assignment they were made.
pub(crate) fn guarded() -> Site {
    let site = Site::new();
    site.by_person(&["hook", "install"]);
    site
}

pub(crate) fn ask(site: &Site, args: &[&str]) -> String {
    text(&site.by_person(&[&["add"], args].concat())["task"]["id"]).to_owned()
}

/// Commits as an agent does whose hooks are in place.
pub(crate) fn commit(site: &Site, bench: &Bench, path: &str, content: &str) -> String {
    let file = bench.dir.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, content).unwrap();
    for args in [&["add", "--all"][..], &["commit", "--quiet", "--message", &format!("change {path}")]] {
        let made = git_as(site, bench, args);
        assert_eq!(made.exit, Some(0), "git {args:?}: {made:#?}");
    }
    site.git_in(&bench.dir, &["rev-parse", "HEAD"])
}

/// git in an agent's worktree, in its name.
pub(crate) fn git_as(site: &Site, bench: &Bench, args: &[&str]) -> Answer {
    let mut git = Command::new("git");
    let git = site.surroundings(&mut git).current_dir(&bench.dir).env("ONUS_AS", &bench.agent.handle);
    finish(start(git.args(args)))
}

pub(crate) fn files(site: &Site, dir: &Path, at: &str) -> Vec<String> {
    site.git_in(dir, &["ls-tree", "-r", "--name-only", at]).lines().map(str::to_owned).collect()
}

pub(crate) struct Team {
    pub(crate) site: Site,
    /// The second clone.
    pub(crate) other: PathBuf,
    /// The repository that both push to.
    pub(crate) origin: PathBuf,
}

impl Team {
    /// Nobody has said yet which main branch counts.
    pub(crate) fn new() -> Team {
        let site = guarded();
        let origin = site.root().join("origin.git");
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        site.git(&["init", "--quiet", "--bare", "--initial-branch=main", &path(&origin)]);
        site.git(&["remote", "add", "origin", &path(&origin)]);
        site.git(&["push", "--quiet", "origin", "main"]);
        let other = site.root().join("other");
        let team = Team { site, other, origin };
        team.clone_to(&team.other);
        team.there(&["init", "--as", &team.site.person.clone()]);
        team
    }

    /// A person has put the hooks into the shared repository, which makes its main branch the one that counts.
    pub(crate) fn guarded() -> Team {
        let team = Team::new();
        let person = team.site.person.clone();
        let installed = team.run_there(&team.origin, &["hook", "install", "--as", &person]);
        assert_eq!(installed.exit, Some(0), "{installed:#?}");
        for clone in [&team.site.repo(), &team.other] {
            let kept = team.run_there(clone, &["hook", "install", "--as", &person]);
            assert_eq!(kept.exit, Some(0), "{kept:#?}");
        }
        team
    }

    /// One more clone of the shared repository.
    pub(crate) fn clone_to(&self, path: &Path) {
        let words = |path: &Path| path.to_str().unwrap().to_owned();
        self.site.git(&["clone", "--quiet", &words(&self.origin), &words(path)]);
        for (key, value) in [("user.name", "Ada Lovelace"), ("user.email", "ada@example.org")] {
            self.site.git_in(path, &["config", key, value]);
        }
    }

    pub(crate) fn run_there(&self, dir: &Path, args: &[&str]) -> Answer {
        let store = self.site.store_url();
        let args = [args, &["--store", &store, "--json"]].concat();
        finish(start(self.site.command(&args).current_dir(dir)))
    }

    pub(crate) fn there(&self, args: &[&str]) -> Value {
        let answer = self.run_there(&self.other, args);
        assert_eq!(answer.exit, Some(0), "onus {args:?}: {answer:#?}");
        answer.json()
    }

    /// An agent with a worktree of the other clone.
    pub(crate) fn bench_there(&self, name: &str) -> Bench {
        let agent = Agent { handle: format!("@{name}"), workstation: format!("ws-{name}") };
        self.site.by_person(&["worker", "add", &agent.handle, "--kind", "agent"]);
        let person = self.site.person.clone();
        let added =
            self.there(&["workstation", "add", &agent.workstation, "--kind", "worktree", "--as", &person]);
        let dir = PathBuf::from(text(&added["workstation"]["path"]));
        Bench { branch: format!("agent/{}", agent.workstation), agent, dir }
    }

    pub(crate) fn main(&self) -> String {
        self.site.git_in(&self.origin, &["rev-parse", "main"])
    }

    /// `onus` by an agent in its worktree, as it would type it.
    pub(crate) fn as_agent(&self, bench: &Bench, args: &[&str]) -> Answer {
        self.run_there(&bench.dir, &[args, &["--as", &bench.agent.handle]].concat())
    }

    pub(crate) fn ok(&self, bench: &Bench, args: &[&str]) -> Value {
        let answer = self.as_agent(bench, args);
        assert_eq!(answer.exit, Some(0), "onus {args:?}: {answer:#?}");
        answer.json()
    }

    /// What must hold whenever everybody has gone home.
    pub(crate) fn assert_in_order(&self) {
        self.site.assert_sound();
        for clone in [&self.site.repo(), &self.other] {
            let agreed = self.run_there(clone, &["consistency"]);
            assert_eq!(agreed.exit, Some(0), "{agreed:#?}");
            self.site.git_in(clone, &["fsck", "--strict", "--no-dangling"]);
        }
        self.site.git_in(&self.origin, &["fsck", "--strict", "--no-dangling"]);
    }
}
