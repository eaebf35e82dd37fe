//! An agent that holds a task in a worktree of its own.

use super::{Site, text};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A site with the agent `@bot` at work in a worktree of its own, and two people.
pub(crate) fn at_work() -> (Site, String, PathBuf) {
    let site = Site::new();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    site.by_person(&["worker", "add", "@mia", "--kind", "human"]);
    let made = site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let tree = PathBuf::from(text(&made["workstation"]["path"]));
    let task = site.add("a task");
    site.ok(&["claim", &task, "--as", "@bot", "--workstation", "ws-1"]);
    (site, task, tree)
}

/// What the agent does there.
pub(crate) fn commit(site: &Site, tree: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = tree.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    for args in [vec!["add", "-A"], vec!["commit", "-q", "-m", "work"]] {
        let mut git = Command::new("git");
        site.surroundings(&mut git).current_dir(tree).env("ONUS_AS", "@bot").args(&args);
        let done = git.output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }
}
