//! Attacks that need no network: words that nobody sees, and a store in which somebody put markup and formulas everywhere.

use super::doors::code;
use super::house::{Founded, HOST, House};
use axum::http::{Request, Response};
use bytes::Bytes;
use rusqlite::Connection;
use serde_json::json;

/// Line ends that are none, spaces without width, soft hyphens, tags: a title that looks like another one.
#[test]
fn characters_that_nobody_sees_are_refused_at_every_door() {
    let founded = Founded::new();
    let house = founded.serve();
    let person = founded.tokens.get("person").map(String::as_str);
    for unseen in ['\u{2028}', '\u{2029}', '\u{200b}', '\u{ad}', '\u{e0041}', '\u{202e}', '\u{7}'] {
        let title = format!("one{unseen}two");
        let spec = onus_core::task::Spec { kind: "chore".into(), ..onus_core::task::Spec::titled(&title) };
        let sent = json!({ "request": "r", "token": null, "task": null, "project": null, "texts": [],
            "command": { "Add": { "spec": spec, "depends_on": [], "archived": null } } });
        let tool = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "ask", "arguments": { "title": title } } });
        for (target, body) in [
            ("/v1/tasks", json!({ "title": title })),
            ("/v1/tasks", json!({ "title": "t", "tags": [title] })),
            ("/v1/tasks", json!({ "title": "t", "sprint": title })),
            ("/v1/tasks", json!({ "title": "t", "checks": [title] })),
            ("/v1/call/submit", json!([sent, "Named"])),
            ("/mcp", tool),
            ("/v1/milestones", json!({ "name": "m7", "title": title, "tasks": ["T-1"] })),
            ("/v1/workers", json!({ "handle": "@eve", "kind": "agent", "tier": title })),
            ("/v1/workstations/ws-2/quarantine", json!({ "reason": title })),
        ] {
            let answer = house.send("POST", target, person, body.to_string().into());
            assert_eq!(code(&answer), "invalid_input", "{target} {body}");
        }
        // A file tells line by line what it refuses, and takes the rest.
        let line = json!({ "title": title }).to_string() + "\n";
        let import = json!([format!("import-{}", u32::from(unseen)), "T", line, "Real"]);
        let answer = house.send("POST", "/v1/call/import_jsonl", person, import.to_string().into());
        let said = String::from_utf8_lossy(answer.body()).into_owned();
        assert!(code(&answer) != "ok" || said.contains("\"created\":0"), "{said}");
    }
}

const MARKUP: &str = "=1+1\"'></script><script>alert(1)</script><img src=x onerror=alert(2)>";

fn page(house: &House, path: &str, token: &str) -> Response<Bytes> {
    let request = Request::builder()
        .uri(path)
        .header("host", HOST)
        .header("cookie", format!("onus-7420={token}"))
        .header("sec-fetch-site", "same-origin");
    house.service.answer(request.body(Vec::new()).unwrap()).unwrap()
}

/// Somebody with the file in hand puts markup into every text of it. Pages may be refused, since such a store makes little sense;
/// none has it as markup, and no file has it as a formula.
#[test]
fn a_hostile_store_is_shown_as_text() {
    let founded = Founded::new();
    let paths = onus_board::pages().into_iter().map(|page| page.path);
    let paths: Vec<String> = paths
        .chain(onus_board::downloads().into_iter().map(|file| file.path))
        .map(|path| path.replace("{id}", "T-2").replace("{name}", "m1"))
        .collect();
    let person = &founded.tokens["person"];
    let mut drawn = 0;
    for (table, column) in text_columns(&founded.serve()) {
        let house = founded.serve_changed(&format!(
            "UPDATE OR IGNORE {table} SET \"{column}\" = '{}'",
            MARKUP.replace('\'', "''")
        ));
        for path in &paths {
            let answer = page(&house, path, person);
            let said = String::from_utf8_lossy(answer.body()).into_owned();
            let is_page = answer
                .headers()
                .get("content-type")
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
            assert!(
                !is_page || !(said.contains("<script>alert") || said.contains("<img src=x")),
                "{table}.{column} on {path}: {said}"
            );
            if path.ends_with(".csv") {
                let cells =
                    said.lines().flat_map(|line| line.split(',')).map(|cell| cell.trim_start_matches('"'));
                assert!(
                    !cells.clone().any(|cell| cell.starts_with("=1+1")),
                    "{table}.{column} in {path}: {said}"
                );
            }
            drawn += usize::from(answer.status().is_success());
        }
    }
    assert!(drawn > paths.len() * 20, "{drawn}");
}

fn text_columns(house: &House) -> Vec<(String, String)> {
    let db = Connection::open(&house.path).unwrap();
    let mut statement = db
        .prepare(
            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND c.type = 'TEXT' ORDER BY 1, 2",
        )
        .unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

/// A request id is no secret: whoever sends it again, by whatever door, is told what became of it, and no lease of another one.
#[test]
fn a_lease_is_told_to_its_holder_again_and_to_nobody_else() {
    let founded = Founded::new();
    let house = founded.serve();
    let claim = json!({ "Claim": { "workstation": "ws-1", "ttl": null, "warrant": "Ordinary" } });
    let sent = json!({ "request": "claim", "token": null, "task": "T-2", "project": null, "command": claim, "texts": [] });
    let tool = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "claim",
        "arguments": { "task": "T-2", "workstation": "ws-1", "request_id": "claim" } } });
    let ways = [
        ("/v1/call/replayed", json!(["claim"])),
        ("/v1/call/submit", json!([sent, "Named"])),
        ("/mcp", tool),
    ];
    let lease = &founded.leases()[0];
    for (door, body) in &ways {
        for (caller, token) in &founded.tokens {
            let answer = house.send("POST", door, Some(token), body.to_string().into());
            founded.assert_keeps_secrets(caller, door, answer.body());
            // Without this the silence towards the others would prove nothing.
            let is_told = String::from_utf8_lossy(answer.body()).contains(lease);
            assert_eq!(is_told, *caller == "agent", "{door} by {caller}: {:?}", answer.body());
        }
    }
}
