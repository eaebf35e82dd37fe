//! What an assignment allows: set by the map or by whoever grants it, told to the holder, held where Onus stands in the way.

use crate::support::server::Server;
use crate::support::{Site, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const MAP: &str = r#"
routing:
  - task_type: docs
    agent_name: "@bot"
    workstation: ws-doc-01
    constraints: ["path:docs/**", "verb:note", "verb:handoff"]
  - task_type: offline
    agent_name: "@bot"
    workstation: ws-doc-01
    constraints: ["network:none"]
  - task_type: infra
    agent_name: "@bot"
    workstation: ws-doc-01
    constraints: ["workstation:ws-doc-02"]
roles:
  writer:
    constraints: ["network:none"]
"#;

/// A guarded repository with an agent in a working tree of its own.
fn site() -> (Site, PathBuf) {
    let site = Site::guarded();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    let tree = tree(&site, "ws-doc-01");
    (site, tree)
}

fn tree(site: &Site, name: &str) -> PathBuf {
    let made = site.by_person(&["workstation", "add", name, "--kind", "worktree"]);
    PathBuf::from(text(&made["workstation"]["path"]))
}

fn claim(site: &Site, task: &str, constraints: &[&str]) -> Value {
    let flags: Vec<&str> = constraints.iter().flat_map(|one| ["--constraint", *one]).collect();
    site.by_person(&[&["claim", task, "--for", "@bot", "--workstation", "ws-doc-01"][..], &flags].concat())
}

fn add(site: &Site, args: &[&str]) -> String {
    text(&site.by_person(&[&["add", "a task"], args].concat())["task"]["id"]).to_owned()
}

/// Whether the agent can commit a file there.
fn commit(site: &Site, tree: &Path, file: &str, lease: &str) -> bool {
    let path = tree.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "x\n").unwrap();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        let command = site.surroundings(&mut command).args(args).current_dir(tree);
        command.env("ONUS_AS", "@bot").env("ONUS_LEASE", lease).output().unwrap().status.success()
    };
    let done = git(&["add", file]) && git(&["commit", "--quiet", "--message", file]);
    if !done {
        assert!(git(&["rm", "--cached", "--quiet", file]), "{file}");
        std::fs::remove_file(tree.join(file)).unwrap();
    }
    done
}

/// What the client's guard says before a tool runs.
fn tool(site: &Site, tree: &Path, name: &str, input: Value) -> Option<i32> {
    let input = json!({ "cwd": tree, "session_id": "s", "tool_name": name, "tool_input": input });
    let mut command = site.command(&["hook", "agent", "pre-tool-use"]);
    let command = command.env("ONUS_AS", "@bot").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(input.to_string().as_bytes()));
    child.wait().unwrap().code()
}

fn bash(site: &Site, tree: &Path, line: &str) -> Option<i32> {
    tool(site, tree, "Bash", json!({ "command": line }))
}

#[test]
fn whoever_grants_says_what_is_allowed() {
    let (site, tree) = site();
    let task = add(&site, &[]);
    let asked = ["path:docs/**", "command:git", "command:cargo test", "verb:note", "verb:check"];
    let granted = claim(&site, &task, &asked);
    let wanted = json!(["path:docs/**", "verb:check", "verb:note", "command:cargo test", "command:git"]);
    assert_eq!(granted["assignment"]["constraints"], wanted);
    assert_eq!(site.task(&task)["assignment"]["constraints"], wanted);
    let lease = text(&granted["lease"]["token"]);
    // Told to whoever works there.
    let prime = site.run(&["prime", "--as", "@bot"]);
    assert!(prime.stdout.contains("docs/**") && prime.stdout.contains("cargo test"), "{}", prime.stdout);
    let shown = site.run(&["show", &task]);
    assert!(shown.stdout.contains("only: path:docs/** · verb:check"), "{}", shown.stdout);
    // Paths, at git's hooks and before the client's tool runs.
    assert!(commit(&site, &tree, "docs/a.md", lease));
    assert!(!commit(&site, &tree, "src/a.rs", lease));
    let edit = |file: &str| tool(&site, &tree, "Write", json!({ "file_path": tree.join(file) }));
    assert_eq!((edit("docs/b.md"), edit("src/b.rs")), (Some(0), Some(2)));
    // Commands, before the client's tool runs.
    assert_eq!(bash(&site, &tree, "cargo test --quiet && git status"), Some(0));
    for line in ["cargo build", "git status; curl example.org", "git log $(cat x)", "git log | sh"] {
        assert_eq!(bash(&site, &tree, line), Some(2), "{line}");
    }
    // Verbs, at every door; the lease can always be kept and given back.
    let held = ["--as", "@bot", "--lease", lease];
    site.ok(&[&["note", &task, "so far"], &held[..]].concat());
    site.ok(&[&["renew", &task], &held[..]].concat());
    let end = [&["complete", &task, "--resolution", "done", "--no-merge", "--json"], &held[..]].concat();
    let refused = site.run(&end);
    assert_eq!((refused.code().as_str(), refused.exit), ("not_permitted", Some(5)));
    site.ok(&[&["release", &task, "--note", "enough"], &held[..]].concat());
    assert_eq!(site.task(&task)["assignment"], Value::Null);
    site.assert_sound();
}

#[test]
fn the_map_says_what_is_allowed_and_a_takeover_keeps_what_was_said() {
    let (site, tree) = site();
    site.commit_map(MAP);
    let task = add(&site, &["--type", "docs", "--role", "writer"]);
    let granted = site.ok(&["claim", &task, "--as", "@bot"]);
    let wanted = json!(["path:docs/**", "verb:handoff", "verb:note", "network:none"]);
    assert_eq!(granted["assignment"]["constraints"], wanted);
    let lease = text(&granted["lease"]["token"]);
    assert!(!commit(&site, &tree, "src/a.rs", lease));
    site.ok(&["release", &task, "--note", "later", "--as", "@bot", "--lease", lease]);
    let other = add(&site, &[]);
    let forced = ["--force", "--reason", "the map has no rule for it"];
    let asked =
        ["claim", &other, "--for", "@bot", "--workstation", "ws-doc-01", "--constraint", "path:src/**"];
    site.by_person(&[&asked[..], &["--constraint", "workstation:ws-doc-02"], &forced].concat());
    let again = ["takeover", &other, "--workstation", "ws-doc-01", "--reason", "why not", "--force"];
    assert_eq!(site.by_person(&again)["assignment"]["constraints"], json!(["path:src/**"]));
    site.assert_sound();
}

#[test]
fn a_check_and_a_run_without_the_network_have_none() {
    let (site, tree) = site();
    site.commit_map(MAP);
    let network = std::fs::read_link("/proc/self/ns/net").unwrap();
    let own = format!("test \"$(readlink /proc/self/ns/net)\" != '{}'", network.display());
    let task = add(&site, &["--type", "offline", "--check", &own]);
    let said = "readlink /proc/self/ns/net >network; git add network; git commit --quiet -m network";
    let run = ["run", &task, "--resolution", "done", "--as", "@bot", "--json", "--", "sh", "-c", said];
    let ran = site.run(&run);
    assert!(ran.is_ok(), "{} {}", ran.stdout, ran.stderr);
    let there = std::fs::read_to_string(tree.join("network")).unwrap();
    assert_ne!(there.trim(), network.display().to_string());
    assert_eq!(text(&site.task(&task)["state"]), "complete");
    let runs = site.ok(&["check", &task, "--list"]);
    assert!(runs.to_string().contains("\"sandbox\":\"bubblewrap\""), "{runs}");
}

#[test]
fn only_the_map_or_a_person_opens_another_workstation() {
    let (site, tree_1) = site();
    let tree_2 = tree(&site, "ws-doc-02");
    site.commit_map(MAP);
    let write = |file: &Path| tool(&site, &tree_1, "Write", json!({ "file_path": file }));
    // A rule that does not say so opens nothing.
    let closed = add(&site, &["--type", "docs"]);
    let granted = site.ok(&["claim", &closed, "--as", "@bot"]);
    let lease = text(&granted["lease"]["token"]);
    assert_eq!(write(&tree_2.join("docs/a.md")), Some(2));
    assert!(!commit(&site, &tree_2, "docs/a.md", lease));
    site.ok(&["release", &closed, "--note", "later", "--as", "@bot", "--lease", lease]);
    // One that does is on record with the commit of the map that said so.
    let task = add(&site, &["--type", "infra"]);
    let alone = ["claim", &task, "--as", "@bot", "--constraint", "workstation:ws-doc-02", "--json"];
    assert_eq!(site.run(&alone).code(), "human_required");
    let granted = site.ok(&["claim", &task, "--as", "@bot"]);
    let lease = text(&granted["lease"]["token"]);
    assert_eq!(granted["assignment"]["constraints"], json!(["workstation:ws-doc-02"]));
    let log = site.ok(&["ledger", "log", "--task", &task]);
    let entry = log["entries"].as_array().unwrap().iter().find(|entry| entry["verb"] == "claimed").unwrap();
    assert_eq!(entry["data"]["grant"]["constraints"], json!(["workstation:ws-doc-02"]), "{entry}");
    assert_eq!(text(&entry["data"]["grant"]["route"]["map_commit"]), site.main());
    assert_eq!(write(&tree_2.join("a.md")), Some(0));
    assert!(commit(&site, &tree_2, "a.md", lease));
    // Where somebody works, nobody else does.
    let other = add(&site, &[]);
    site.by_person(&["claim", &other, "--workstation", "ws-doc-02"]);
    assert_eq!(write(&tree_2.join("b.md")), Some(2));
    assert!(!commit(&site, &tree_2, "b.md", lease));
    site.assert_sound();
}

#[test]
fn a_person_says_anew_what_a_live_assignment_allows() {
    let (site, tree) = site();
    let task = add(&site, &[]);
    let granted = claim(&site, &task, &["path:docs/**", "verb:note"]);
    let lease = text(&granted["lease"]["token"]);
    let held = ["--as", "@bot", "--lease", lease];
    let edit = |words: &[&str]| {
        let flags: Vec<&str> = words.iter().flat_map(|one| ["--constraint", *one]).collect();
        site.by_person(&[&["edit", &task], &flags[..]].concat())["task"]["assignment"]["constraints"].clone()
    };
    assert!(!commit(&site, &tree, "src/a.rs", lease));
    assert_eq!(edit(&["+path:src/**", "-verb:note"]), json!(["path:docs/**", "path:src/**"]));
    assert!(commit(&site, &tree, "src/a.rs", lease), "what it allows counts at once");
    // The holder itself does not, whoever asked for the task.
    let own = site.run(&[&["edit", &task, "--constraint", "none", "--json"], &held[..]].concat());
    assert_eq!(own.exit, Some(5), "{own:#?}");
    assert!(own.stderr.contains("human_required"), "{own:#?}");
    assert_eq!(edit(&["path:src/**", "verb:check"]), json!(["path:src/**", "verb:check"]));
    let refused = site.run(&[&["note", &task, "so far", "--json"], &held[..]].concat());
    assert_eq!(refused.code(), "not_permitted", "{refused:#?}");
    // The holder reads it among its notes, and it is on record from what to what.
    let story = site.ok(&["show", &task]);
    let notes = story["notes"].to_string();
    assert!(notes.contains("you may do only: path:src/** · verb:check"), "{notes}");
    let log = site.ok(&["ledger", "log", "--task", &task]);
    let entry = log["entries"].as_array().unwrap().iter().rfind(|one| one["verb"] == "constrained").unwrap();
    assert_eq!(entry["data"]["before"], json!(["path:docs/**", "path:src/**"]));
    assert_eq!(text(&entry["actor"]), site.person);
    let wrong = ["edit", &task, "--constraint", "verb:fly", "--as", &site.person, "--json"];
    assert_eq!(site.run(&wrong).code(), "invalid_input");
    assert_eq!(edit(&["none"]), json!([]));
    site.ok(&[&["release", &task, "--note", "enough"], &held[..]].concat());
    let free = site.run(&["edit", &task, "--constraint", "network:none", "--as", &site.person, "--json"]);
    assert_eq!((free.code().as_str(), free.exit), ("wrong_state", Some(5)), "{free:#?}");
    site.assert_sound();
}

#[test]
fn what_the_map_demands_stays_on_a_live_assignment() {
    let (site, _) = site();
    site.commit_map(MAP);
    let task = add(&site, &["--type", "offline"]);
    site.ok(&["claim", &task, "--as", "@bot"]);
    let refused = site.run(&["edit", &task, "--constraint", "none", "--as", &site.person, "--json"]);
    assert_eq!((refused.code().as_str(), refused.exit), ("not_permitted", Some(5)), "{refused:#?}");
    assert!(refused.stderr.contains("the identity map demands network:none"), "{refused:#?}");
    site.by_person(&["edit", &task, "--constraint", "+verb:note"]);
    assert_eq!(site.task(&task)["assignment"]["constraints"], json!(["verb:note", "network:none"]));
    site.assert_sound();
}

#[test]
fn over_http_a_person_says_what_is_allowed_and_the_holder_is_held_to_it() {
    let (site, _) = site();
    let task = add(&site, &[]);
    let (person, bot) = (site.token(&site.person), site.token("@bot"));
    let server = Server::start(&site);
    let at = |rest: &str| format!("/v1/tasks/{task}{rest}");
    let grant = json!({ "workstation": "ws-doc-01", "assignee": "@bot", "constraints": ["verb:note"] });
    let granted = server.post(&person, &at("/claim"), grant).ok();
    assert_eq!(granted["assignment"]["constraints"], json!(["verb:note"]));
    let seen = server.get(&bot, &at("")).ok();
    assert_eq!(seen["task"]["assignment"]["constraints"], json!(["verb:note"]), "{seen:#}");
    let lease = text(&granted["lease"]["token"]);
    server.post(&bot, &at("/notes"), json!({ "text": "so far", "lease": lease })).ok();
    let end = || server.post(&bot, &at("/handoffs"), json!({ "summary": "half", "lease": lease }));
    end().refused(403, "not_permitted");
    let patch = |token: &str, words: Value| {
        let bearer = format!("Bearer {token}");
        server
            .try_call("PATCH", &at(""), &[("authorization", &bearer)], Some(&json!({ "constraints": words })))
            .unwrap()
    };
    patch(&bot, json!(["none"])).refused(403, "not_permitted");
    let changed = patch(&person, json!(["+verb:handoff"])).ok();
    assert_eq!(changed["task"]["assignment"]["constraints"], json!(["verb:handoff", "verb:note"]));
    end().ok();
    site.assert_sound();
}

#[test]
fn what_is_no_constraint_is_refused() {
    let (site, _) = site();
    let task = add(&site, &[]);
    for wrong in
        ["paths:src", "verb:fly", "verb:release", "network:lan", "path:../x", "path:", "workstation:A B"]
    {
        let asked =
            ["claim", &task, "--constraint", wrong, "--as", "@bot", "--workstation", "ws-doc-01", "--json"];
        let refused = site.run(&asked);
        assert_eq!((refused.code().as_str(), refused.exit), ("invalid_input", Some(2)), "{wrong}");
    }
    let rule = "routing:\n  - task_type: docs\n    agent_name: \"@bot\"\n    workstation: ws-doc-01\n";
    site.commit_map(&format!("{rule}    constraints: [\"verb:fly\"]\n"));
    assert_eq!(site.run(&["route", "check", "--json"]).code(), "map_invalid");
}
