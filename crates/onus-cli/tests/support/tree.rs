//! Agents with working trees of their own, and commits in them.

use super::{Agent, Answer, Site, finish, start, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An agent, its workstation, and the working tree that this is.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    pub(crate) agent: Agent,
    pub(crate) dir: PathBuf,
    pub(crate) branch: String,
}

impl Site {
    /// Registers `@NAME` with the worktree `ws-NAME` on `agent/ws-NAME`.
    pub(crate) fn bench(&self, name: &str) -> Bench {
        let agent = Agent { handle: format!("@{name}"), workstation: format!("ws-{name}") };
        self.by_person(&["worker", "add", &agent.handle, "--kind", "agent"]);
        let added = self.by_person(&["workstation", "add", &agent.workstation, "--kind", "worktree"]);
        let dir = PathBuf::from(text(&added["workstation"]["path"]));
        Bench { branch: format!("agent/{}", agent.workstation), agent, dir }
    }

    /// What git prints in `dir`; in an agent's working tree in its name.
    pub(crate) fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let mut git = Command::new("git");
        let name = dir.file_name().and_then(|name| name.to_str()?.strip_prefix("repo-ws-"));
        let who = name.map(|name| ("ONUS_AS", format!("@{name}")));
        let made = self.surroundings(&mut git).current_dir(dir).envs(who).args(args).output().unwrap();
        assert!(made.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8_lossy(&made.stdout).trim().to_owned()
    }

    /// Writes a file and commits it; a task's trailers are those that the hook would add.
    pub(crate) fn commit(&self, dir: &Path, path: &str, content: &str, trailers: &[&str]) -> String {
        let file = dir.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        self.git_in(dir, &["add", "--all"]);
        let message = format!("change {path}\n\n{}\n", trailers.join("\n"));
        self.git_in(dir, &["commit", "--quiet", "--message", &message]);
        self.git_in(dir, &["rev-parse", "HEAD"])
    }

    pub(crate) fn main(&self) -> String {
        self.git_in(&self.repo(), &["rev-parse", "refs/heads/main"])
    }
}

impl Bench {
    /// Runs with `--json` as the agent, in its working tree.
    pub(crate) fn run(&self, site: &Site, args: &[&str]) -> Answer {
        let args = [args, &["--as", &self.agent.handle, "--json"]].concat();
        finish(start(site.command(&args).current_dir(&self.dir)))
    }

    pub(crate) fn ok(&self, site: &Site, args: &[&str]) -> Value {
        let answer = self.run(site, args);
        assert_eq!(answer.exit, Some(0), "onus {args:?}: {answer:#?}");
        answer.json()
    }

    /// Takes a task, and gives the trailers of commits made for it.
    pub(crate) fn claim(&self, site: &Site, task: &str) -> Vec<String> {
        let claimed = self.ok(site, &["claim", task]);
        let Agent { handle, workstation } = &self.agent;
        vec![
            format!("Onus-Task: {task}"),
            format!("Onus-Agent: {handle}"),
            format!("Onus-Workstation: {workstation}"),
            format!("Onus-Epoch: {}", claimed["lease"]["epoch"]),
        ]
    }

    /// Takes a task, changes one file and commits that.
    pub(crate) fn work(&self, site: &Site, task: &str, path: &str, content: &str) -> String {
        let trailers = self.claim(site, task);
        let trailers: Vec<&str> = trailers.iter().map(String::as_str).collect();
        site.commit(&self.dir, path, content, &trailers)
    }
}
