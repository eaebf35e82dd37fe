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
    assert!(made["files"].as_array().unwrap().iter().all(|file| file["change"] == "created"), "{made:#}");

    let server = read(&site, ".mcp.json")["mcpServers"]["onus"].clone();
    let mut command = Command::new(text(&server["command"]));
    command.args(server["args"].as_array().unwrap().iter().map(text));
    let input = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let done = run(&site, &mut command, &server["env"], &format!("{input}\n"));
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "onus");
    assert_eq!(server["env"], json!({ "ONUS_AS": "@bot" }));

    let settings = read(&site, ".claude/settings.json");
    let hooks = &settings["hooks"];
    assert_eq!(hooks.as_object().unwrap().len(), 5);
    for (event, groups) in hooks.as_object().unwrap() {
        let line = text(&groups[0]["hooks"][0]["command"]);
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        let input = json!({ "hook_event_name": event }).to_string();
        let done = run(&site, &mut command, &settings["env"], &input);
        assert_eq!(done.status.code(), Some(0), "{event}: {done:?}");
        assert_eq!(done.stdout.starts_with(b"You are"), event == "SessionStart", "{event}");
    }
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
    for path in [".mcp.json", ".claude/settings.json", ".codex/config.toml", ".cursor/mcp.json", "AGENTS.md"]
    {
        assert!(!site.repo().join(path).exists(), "{path}");
    }
    std::fs::write(site.repo().join(".mcp.json"), "{ // mine\n}").unwrap();
    let refused = site.run(&["setup", "agents", "claude", "--json"]);
    assert_eq!(refused.code(), "invalid_input");
    assert!(!site.repo().join("AGENTS.md").exists(), "nothing is written where one file is not understood");
    assert_eq!(site.run(&["setup", "emacs", "--json"]).code(), "invalid_input");
}
