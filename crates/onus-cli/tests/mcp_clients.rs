//! The official clients against `onus mcp`: the inspector, the SDKs of TypeScript and Python, in both eras of the protocol.
//! They are installed once by `tests/mcp-clients`; `ONUS_TEST_MCP_CLIENTS=0` leaves them out.

use crate::support::server::Server;
use crate::support::{ONUS, Site, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests");

/// Where the clients are; none where they cannot be had, which standard error explains.
fn clients() -> Option<PathBuf> {
    match std::env::var("ONUS_TEST_MCP_CLIENTS") {
        Ok(value) if value == "0" => {
            eprintln!("skipped: ONUS_TEST_MCP_CLIENTS is 0");
            return None;
        }
        // The run has found them for all programs.
        Ok(place) => return Some(place.into()),
        Err(_) => {}
    }
    let found = Command::new(format!("{HERE}/mcp-clients")).output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&found.stderr));
    match found.status.code() {
        Some(0) => Some(PathBuf::from(String::from_utf8(found.stdout).unwrap().trim_end())),
        Some(77) => {
            eprintln!("skipped: there are no MCP clients here (see above)");
            None
        }
        other => panic!("mcp-clients ended with {other:?}"),
    }
}

fn site() -> Site {
    let site = Site::new();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    site.by_person(&["workstation", "add", "ws-1"]);
    site
}

/// Runs a client in the directory of its packages, and gives what it printed.
fn run(site: &Site, program: &Path, clients: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(program);
    site.surroundings(&mut command).env("ONUS_AS", "@bot").env("ONUS_TEST_DIR", site.repo());
    seen(command.current_dir(clients).args(args))
}

fn seen(command: &mut Command) -> Value {
    let done = command.output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {out}\n{error}");
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{command:?}: {why}: {out}\n{error}"))
}

fn expected() -> Value {
    json!({
        "server": "onus",
        "tools": "ready claim show note check handoff block complete release ask say review",
        "prompts": 1,
        "templates": 2,
        "ready": true,
        "resource": true,
        "refused": "fenced",
        "state": "complete",
    })
}

#[test]
fn the_sdks_of_both_eras_carry_a_task_through() {
    let Some(clients) = clients() else { return };
    let site = site();
    let (node, python) = (PathBuf::from("node"), clients.join("venv/bin/python"));
    for (program, script, era) in [
        (&node, "client.mjs", "v1"),
        (&node, "client.mjs", "legacy"),
        (&node, "client.mjs", "modern"),
        (&python, "client.py", "legacy"),
        (&python, "client.py", "modern"),
    ] {
        site.add(&format!("for {script} {era}"));
        let script = format!("{HERE}/mcp/{script}");
        let seen = run(&site, program, &clients, &[&script, era, "stdio", ONUS, "mcp"]);
        assert_eq!(seen, expected(), "{script} {era}");
    }
    site.assert_sound();
}

#[test]
fn the_inspector_lists_and_calls() {
    let Some(clients) = clients() else { return };
    let site = site();
    let id = site.add("for the inspector");
    let inspector = clients.join("node_modules/.bin/mcp-inspector");
    // It starts the server where it runs itself: the store is named, not found.
    let store = format!("ONUS_STORE=sqlite:{}", site.store().display());
    let inspect = |args: &[&str]| {
        let server = ["--cli", "-e", &store, "-e", "ONUS_AS=@bot", ONUS, "mcp"];
        run(&site, &inspector, &clients, &[&server, args].concat())
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 12);
    let shown =
        inspect(&["--method", "tools/call", "--tool-name", "show", "--tool-arg", &format!("task={id}")]);
    assert_eq!(text(&shown["structuredContent"]["task"]["id"]), id);
}

/// Over HTTP the token says who calls.
#[test]
fn the_sdks_of_both_eras_carry_a_task_through_over_http() {
    let Some(clients) = clients() else { return };
    let site = site();
    let server = Server::start(&site);
    let token = text(&site.by_person(&["worker", "token", "add", "@bot"])["secret"]).to_owned();
    let (node, python) = (PathBuf::from("node"), clients.join("venv/bin/python"));
    let url = format!("{}/mcp", server.url);
    for (program, script, era) in [
        (&node, "client.mjs", "v1"),
        (&node, "client.mjs", "legacy"),
        (&node, "client.mjs", "modern"),
        (&python, "client.py", "legacy"),
        (&python, "client.py", "modern"),
    ] {
        site.add(&format!("for {script} {era}"));
        let script = format!("{HERE}/mcp/{script}");
        let mut command = Command::new(program);
        site.surroundings(&mut command).env("ONUS_TOKEN", &token).current_dir(&clients);
        let seen = seen(command.args([&script, era, "http", &url]));
        assert_eq!(seen, expected(), "{script} {era}");
    }
    site.assert_sound();
}
