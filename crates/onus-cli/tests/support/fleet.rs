//! Two agents in two worktrees of one repository, and a bare repository that they push to.

use super::{Answer, ONUS, Site, finish, start, text};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

pub(crate) struct Fleet {
    pub(crate) site: Site,
}

/// What git said.
pub(crate) type Said = Answer;

impl Fleet {
    /// `@a` in `ws-a`, `@b` in `ws-b`; hooks in the repository, as `init` leaves it, and in the shared one.
    pub(crate) fn new() -> Fleet {
        let fleet = Fleet { site: Site::guarded() };
        let site = &fleet.site;
        for name in ["a", "b"] {
            site.by_person(&["worker", "add", &format!("@{name}"), "--kind", "agent"]);
            site.by_person(&["workstation", "add", &format!("ws-{name}"), "--kind", "worktree"]);
        }
        let shared = fleet.shared();
        site.git(&["init", "--quiet", "--bare", "--initial-branch=main", shared.to_str().unwrap()]);
        site.git(&["remote", "add", "origin", shared.to_str().unwrap()]);
        site.git(&["push", "--quiet", "origin", "main"]);
        let store = site.store_url();
        let mut install = site.command(&["hook", "install", "--store", &store, "--as", &site.person]);
        let installed = finish(start(install.current_dir(&shared)));
        assert_eq!(installed.exit, Some(0), "{installed:?}");
        // Now that pushes are asked about, the person's clone says who they are.
        site.by_person(&["hook", "install"]);
        fleet
    }

    pub(crate) fn shared(&self) -> PathBuf {
        self.site.root().join("shared.git")
    }

    pub(crate) fn tree(&self, name: &str) -> PathBuf {
        self.site.root().join(format!("repo-ws-{name}"))
    }

    /// git in an agent's worktree, in its name.
    pub(crate) fn git_as(&self, name: &str, args: &[&str]) -> Command {
        let mut git = Command::new("git");
        self.site.surroundings(&mut git).args(args).current_dir(self.tree(name));
        git.env("ONUS_AS", format!("@{name}"));
        git
    }

    /// git in any directory, with these variables: `ONUS_AS` and others.
    pub(crate) fn git_by(&self, dir: &Path, variables: &[(&str, &str)], args: &[&str]) -> Said {
        let mut git = Command::new("git");
        self.site.surroundings(&mut git).args(args).current_dir(dir).envs(variables.iter().copied());
        finish(start(&mut git))
    }

    pub(crate) fn git(&self, name: &str, args: &[&str]) -> Said {
        finish(start(&mut self.git_as(name, args)))
    }

    pub(crate) fn claim(&self, task: &str, name: &str) -> String {
        let claimed = self.site.ok(&[
            "claim",
            task,
            "--as",
            &format!("@{name}"),
            "--workstation",
            &format!("ws-{name}"),
        ]);
        text(&claimed["lease"]["token"]).to_owned()
    }

    pub(crate) fn commit(&self, name: &str, file: &str, content: &str) -> Said {
        let path = self.tree(name).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        let added = self.git(name, &["add", "--", file]);
        assert_eq!(added.exit, Some(0), "{added:?}");
        self.git(name, &["commit", "--quiet", "--message", &format!("change {file}")])
    }

    pub(crate) fn push(&self, name: &str, token: &str) -> Child {
        let option = format!("onus={token}");
        let branch = format!("agent/ws-{name}");
        start(&mut self.git_as(name, &["push", "--quiet", "--force", "-o", &option, "origin", &branch]))
    }

    /// What a reference of a repository is at.
    pub(crate) fn at(&self, repository: &Path, refname: &str) -> Option<String> {
        let mut git = Command::new("git");
        self.site.surroundings(&mut git).current_dir(repository);
        let said = finish(start(git.args(["rev-parse", "--verify", "--quiet", refname])));
        (said.exit == Some(0)).then(|| said.stdout.trim().to_owned())
    }

    pub(crate) fn onus() -> &'static str {
        ONUS
    }
}
