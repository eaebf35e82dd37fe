//! What an assignment allows: set by the map or by whoever grants it, told to the holder, held where Onus stands in the way.

use crate::support::{Site, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const MAP: &str = "routing:\n  - task_type: docs\n    agent_name: \"@bot\"\n    workstation: ws-1\n    constraints: [\"path:docs/**\", \"verb:note\", \
                   \"verb:handoff\"]\nroles:\n  writer:\n    constraints: [\"network:none\"]\n";

/// A guarded repository with an agent in a working tree of its own.
fn site() -> (Site, PathBuf) {
    let site = Site::guarded();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    let made = site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let tree = PathBuf::from(text(&made["workstation"]["path"]));
    (site, tree)
}

fn claim(site: &Site, task: &str, constraints: &[&str]) -> Value {
    let flags: Vec<&str> = constraints.iter().flat_map(|one| ["--constraint", *one]).collect();
    site.by_person(&[&["claim", task, "--for", "@bot", "--workstation", "ws-1"][..], &flags].concat())
}

fn commit(site: &Site, tree: &Path, file: &str) -> bool {
    let path = tree.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "x\n").unwrap();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        let done = site.surroundings(command.args(args).current_dir(tree).env("ONUS_AS", "@bot")).output().unwrap();
        done.status.success()
    };
    git(&["add", file]) && git(&["commit", "--quiet", "--message", file])
}

fn bash(site: &Site, tree: &Path, line: &str) -> Option<i32> {
    let input = json!({ "cwd": tree, "session_id": "s", "tool_name": "Bash", "tool_input": { "command": line } });
    let mut command = site.command(&["hook", "agent", "pre-tool-use"]);
    let command = command.env("ONUS_AS", "@bot").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(input.to_string().as_bytes()));
    child.wait().unwrap().code()
}

#[test]
fn whoever_grants_says_what_is_allowed() {
    let (site, tree) = site();
    let task = site.add("write it up");
    let granted = claim(&site, &task, &["path:docs/**", "command:git", "command:cargo test", "verb:note", "verb:check"]);
    let wanted = json!(["path:docs/**", "verb:check", "verb:note", "command:cargo test", "command:git"]);
    assert_eq!(granted["assignment"]["constraints"], wanted);
    assert_eq!(site.task(&task)["assignment"]["constraints"], wanted);
    let prime = site.run(&["prime", "--as", "@bot"]);
    assert!(prime.stdout.contains("docs/**"), "{}", prime.stdout);
    // Paths, at git's hooks.
    assert!(commit(&site, &tree, "docs/a.md"));
    assert!(!commit(&site, &tree, "src/a.rs"));
    // Commands, before the client's tool runs.
    assert_eq!(bash(&site, &tree, "cargo test --quiet && git status"), Some(0));
    for line in ["cargo build", "git status; curl example.org", "echo $(cat x)"] {
        assert_eq!(bash(&site, &tree, line), Some(2), "{line}");
    }
    // Verbs, at every door; the lease can always be kept and given back.
    site.ok(&["note", &task, "so far", "--as", "@bot"]);
    site.ok(&["renew", &task, "--as", "@bot"]);
    let refused = site.run(&["handoff", &task, "--summary", "half", "--as", "@bot", "--json"]);
    assert_eq!(refused.code(), "not_permitted");
    site.ok(&["release", &task, "--note", "enough", "--as", "@bot"]);
    site.assert_sound();
}

#[test]
fn the_map_says_what_is_allowed_and_a_takeover_keeps_what_was_said() {
    let (site, tree) = site();
    site.commit_map(MAP);
    let asked = site.by_person(&["add", "a page", "--type", "docs", "--role", "writer"]);
    let task = text(&asked["task"]["id"]).to_owned();
    let granted = site.ok(&["claim", &task, "--as", "@bot", "--json"]);
    let wanted = json!(["path:docs/**", "verb:handoff", "verb:note", "network:none"]);
    assert_eq!(granted["assignment"]["constraints"], wanted);
    assert!(!commit(&site, &tree, "src/a.rs"));
    let other = site.add("another");
    site.ok(&["release", &task, "--note", "later", "--as", "@bot"]);
    claim(&site, &other, &["path:src/**"]);
    let again = site.by_person(&["takeover", &other, "--workstation", "ws-1", "--reason", "why not", "--force"]);
    assert_eq!(again["assignment"]["constraints"], json!(["path:src/**"]));
    site.assert_sound();
}

#[test]
fn what_is_no_constraint_is_refused() {
    let (site, _) = site();
    let task = site.add("a task");
    for wrong in ["paths:src", "verb:fly", "network:lan", "path:../x", "path:"] {
        let refused = site.run(&["claim", &task, "--constraint", wrong, "--as", "@bot", "--workstation", "ws-1", "--json"]);
        assert_eq!((refused.code().as_str(), refused.exit), ("invalid_input", Some(2)), "{wrong}");
    }
    site.commit_map("routing:\n  - task_type: docs\n    agent_name: \"@bot\"\n    workstation: ws-1\n    constraints: [\"verb:fly\"]\n");
    assert!(!site.run(&["route", "check"]).is_ok());
}
