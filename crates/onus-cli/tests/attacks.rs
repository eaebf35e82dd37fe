//! What somebody tries who has a backup or a file: none of it gives them more than they have.

use crate::support::server::Server;
use crate::support::{Site, finish, start};
use serde_json::{Value, json};
use std::fs;

fn mcp(server: &Server, token: &str, tool: &str, arguments: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments } });
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
    server.post_with(token, "/mcp", &headers, body).body["result"].clone()
}

/// A backup that was put back grants nothing, whoever asks by which way, until a person has said so.
#[test]
fn a_restored_backup_grants_nothing_through_any_door() {
    let site = Site::new();
    if std::env::var_os("ONUS_TEST_STORE").is_some() {
        return;
    }
    let bearers = site.token_bearers(3);
    for n in 0..4 {
        site.add(&format!("task {n}"));
    }
    let settle = || {
        let file = rusqlite::Connection::open(site.store()).unwrap();
        file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    };
    settle();
    let backup = fs::read(site.store()).unwrap();
    let (first, token) = &bearers[0];
    site.ok(&["claim", "T-1", "--as", &first.handle, "--workstation", &first.workstation]);
    site.by_person(&["ledger", "checkpoint"]);
    settle();
    fs::write(site.store(), backup).unwrap();

    let server = Server::start(&site);
    let behind = "store_behind_anchor";
    let claim = json!({ "workstation": first.workstation });
    assert_eq!(server.post(token, "/v1/tasks/T-1/claim", claim.clone()).code(), behind);
    assert_eq!(server.post(token, "/v1/claims", claim).code(), behind);
    let told = mcp(&server, token, "claim", json!({ "task": "T-2", "workstation": first.workstation }));
    assert_eq!(told["structuredContent"]["error"]["code"], behind, "{told}");
    let mut far = site.command(&["claim", "T-3", "--workstation", &first.workstation, "--json"]);
    let far = finish(start(far.env("ONUS_STORE", &server.url).env("ONUS_TOKEN", token)));
    assert_eq!(far.code(), behind);
    let near =
        site.run(&["claim", "T-4", "--as", &first.handle, "--workstation", &first.workstation, "--json"]);
    assert_eq!(near.code(), behind);
    for task in site.tasks() {
        assert_eq!(task["assignment"], Value::Null, "{task}");
    }
}

/// Documents that are small and mean much: each is refused at once, whatever reads it.
#[test]
fn bombs_of_yaml_are_refused_by_whatever_reads_them() {
    let site = Site::new();
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let last = format!("*a{}", n - 1);
        laughs.push_str(&format!("a{n}: &a{n} [{}]\n", [last.as_str(); 9].join(", ")));
    }
    let deep = "[".repeat(100_000);
    let merged = "x: &x {<<: *x, a: 1}\n".to_owned();
    for bomb in [&laughs, &deep, &merged] {
        let map = site.repo().join("executor-identity-map.yaml");
        fs::write(&map, bomb).unwrap();
        site.git(&["add", "."]);
        site.git(&["commit", "--quiet", "--message=map"]);
        let checked = site.run(&["route", "check", "--json"]);
        assert_eq!((checked.exit, checked.code().as_str()), (Some(2), "map_invalid"), "{checked:?}");
        let queue = site.root().join("queue.yaml");
        fs::write(&queue, bomb).unwrap();
        let path = queue.to_str().unwrap();
        let imported = site.run(&["import", "--format", "queue", path, "--as", &site.person, "--json"]);
        assert_eq!(imported.exit, Some(2), "{imported:?}");
        fs::write(site.repo().join("onus.yaml"), bomb).unwrap();
        let listed = site.run(&["list", "--json"]);
        assert_eq!(listed.exit, Some(2), "{listed:?}");
        fs::remove_file(site.repo().join("onus.yaml")).unwrap();
    }
}

/// Another key in the place of the one that signs: it signs nothing, and a ledger that names it instead is found out.
#[test]
fn a_swapped_key_signs_nothing_and_is_noticed() {
    let [site, other] = [(), ()].map(|()| Site::new());
    if std::env::var_os("ONUS_TEST_STORE").is_some() {
        return;
    }
    let key = |site: &Site| {
        let files = fs::read_dir(site.root().join("keys")).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|path| path.is_file()).unwrap()
    };
    site.add("signed");
    site.by_person(&["ledger", "checkpoint"]);
    let swapped = fs::read(key(&other)).unwrap();
    fs::write(key(&site), &swapped).unwrap();
    site.add("not signed");
    let sign = ["ledger", "checkpoint", "--as", &site.person, "--json"];
    assert_eq!(site.run(&sign).code(), "store_unavailable");
    assert!(!site.run(&["doctor", "--json"]).is_ok(), "doctor says that it is another one's key");
    assert!(site.run(&["ledger", "verify", "--json"]).is_ok(), "what was signed before still holds");
    // The row may be changed to fit: who founded the workspace said which key it is.
    let public = |site: &Site| {
        let db = rusqlite::Connection::open(site.store()).unwrap();
        db.query_row("SELECT public_key FROM workspace", [], |row| row.get::<_, String>(0)).unwrap()
    };
    site.tamper(&format!("UPDATE workspace SET public_key = '{}'", public(&other)));
    assert_eq!(site.run(&["ledger", "verify", "--json"]).code(), "ledger_broken");
}
