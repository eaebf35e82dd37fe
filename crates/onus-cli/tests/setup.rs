//! `onus setup`: what it writes is what a client would run.

use crate::support::{ONUS, Site, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn read(site: &Site, path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(site.repo().join(path)).unwrap()).unwrap()
}

/// Runs a client's line the way the client would: by name, found in the path.
fn run(site: &Site, command: &mut Command, environment: &Value, input: &str) -> Output {
    let path = format!("{}:{}", Path::new(ONUS).parent().unwrap().display(), std::env::var("PATH").unwrap());
    site.surroundings(command).env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.envs(environment.as_object().unwrap().iter().map(|(name, value)| (name, text(value))));
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_written_runs() {
    let site = Site::new();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    let made = site.ok(&["setup", "claude", "agents", "--worker", "@bot"]);
    let is_new = |file: &Value| file["change"] == "created" || text(&file["path"]) == ".git/info/exclude";
    assert!(made["files"].as_array().unwrap().iter().all(is_new), "{made:#}");

    let server = read(&site, ".mcp.json")["mcpServers"]["onus"].clone();
    let nobody = json!({});
    let mut command = Command::new(text(&server["command"]));
    command.args(server["args"].as_array().unwrap().iter().map(text));
    let input = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let done = run(&site, &mut command, &nobody, &format!("{input}\n"));
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "onus");
    assert_eq!(server["env"], Value::Null, "the environment's name counts");

    let settings = read(&site, ".claude/settings.local.json");
    let hooks = &settings["hooks"];
    assert_eq!(hooks.as_object().unwrap().len(), 5);
    for (event, groups) in hooks.as_object().unwrap() {
        let line = text(&groups[0]["hooks"][0]["command"]);
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        let input = json!({ "hook_event_name": event }).to_string();
        let done = run(&site, &mut command, &nobody, &input);
        assert_eq!(done.status.code(), Some(0), "{event}: {done:?}");
        assert_eq!(done.stdout.starts_with(b"You are"), event == "SessionStart", "{event}");
    }
}

/// Once for a clone: every working tree has what its client reads, also one that is made later, and git sees none of it.
#[test]
fn one_setup_is_for_all_working_trees_and_git_sees_nothing_of_it() {
    let site = Site::new();
    site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let said = site.run(&["setup", "claude", "codex", "gemini"]);
    assert!(
        said.stderr.contains("Codex") && said.stderr.contains("Gemini") && said.stderr.contains("trust"),
        "{said:?}"
    );
    site.by_person(&["workstation", "add", "ws-2", "--kind", "worktree"]);
    for tree in ["repo", "repo-ws-1", "repo-ws-2"] {
        let dir = site.root().join(tree);
        for file in
            [".mcp.json", ".claude/settings.local.json", ".codex/config.toml", ".gemini/settings.json"]
        {
            assert!(dir.join(file).exists(), "{tree}/{file}");
        }
        let hooks = std::fs::read_to_string(dir.join(".claude/settings.local.json")).unwrap();
        assert!(hooks.contains("PreToolUse"), "{tree}: {hooks}");
        assert_eq!(site.git_in(&dir, &["status", "--porcelain"]), "", "{tree}");
    }
    site.ok(&["setup", "claude", "codex", "gemini", "--remove"]);
    for tree in ["repo", "repo-ws-1", "repo-ws-2"] {
        assert!(!site.root().join(tree).join(".mcp.json").exists(), "{tree}");
    }
}

/// For whom a client works is said for one working tree; the environment counts more, and a person is not taken for it.
#[test]
fn the_environment_says_who_a_client_works_for_before_its_settings_do() {
    let site = Site::new();
    for worker in ["@bot", "@other"] {
        site.by_person(&["worker", "add", worker, "--kind", "agent"]);
    }
    site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let tree = site.root().join("repo-ws-1");
    let call = |dir: &Path, args: &[&str], variables: &[(&str, &str)]| {
        let mut command = site.command(args);
        crate::support::finish(crate::support::start(
            command.current_dir(dir).envs(variables.iter().copied()),
        ))
    };
    assert_eq!(call(&tree, &["setup", "claude", "--worker", "@bot"], &[]).exit, Some(0));
    let said = call(&tree, &["prime"], &[("CLAUDECODE", "1")]);
    assert!(said.stdout.starts_with("You are @bot"), "{said:?}");
    let said = call(&tree, &["prime"], &[("CLAUDECODE", "1"), ("ONUS_AS", "@other")]);
    assert!(said.stdout.starts_with("You are @other"), "{said:?}");
    assert_eq!(call(&tree, &["prime", "--json"], &[]).code(), "identity_required");
    assert_eq!(call(&site.repo(), &["prime", "--json"], &[("CLAUDECODE", "1")]).code(), "identity_required");
}

#[test]
fn again_changes_nothing_print_writes_nothing_and_remove_leaves_nothing() {
    let site = Site::new();
    let before = |site: &Site| {
        let mut files: Vec<String> = std::fs::read_dir(site.repo())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        files
    };
    let bare = before(&site);
    let every = ["setup", "claude", "codex", "cursor", "gemini", "agents"];
    let shown = site.run(&[&every[..], &["--print"]].concat());
    assert!(shown.stdout.contains("mcp_servers.onus") && shown.stdout.contains("onus prime"), "{shown:#?}");
    assert_eq!(before(&site), bare);
    site.ok(&every);
    let again = site.ok(&every);
    assert!(again["files"].as_array().unwrap().iter().all(|file| file["change"] == "unchanged"), "{again:#}");
    site.ok(&[&every[..], &["--remove"]].concat());
    for path in
        [".mcp.json", ".claude/settings.local.json", ".codex/config.toml", ".cursor/mcp.json", "AGENTS.md"]
    {
        assert!(!site.repo().join(path).exists(), "{path}");
    }
    std::fs::write(site.repo().join(".mcp.json"), "{ // mine\n}").unwrap();
    let refused = site.run(&["setup", "agents", "claude", "--json"]);
    assert_eq!(refused.code(), "invalid_input");
    assert!(!site.repo().join("AGENTS.md").exists(), "nothing is written where one file is not understood");
    assert_eq!(site.run(&["setup", "emacs", "--json"]).code(), "invalid_input");
}
