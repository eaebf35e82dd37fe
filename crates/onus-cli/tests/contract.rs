//! What a stranger finds who has read the contract and nothing else: every refusal leads to its page and to a next step,
//! and what HTTP means is what HTTP says.

use crate::support::server::Server;
use crate::support::{Site, finish, start, text};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// Sends bytes as they are; gives the status and the problem document.
fn raw(server: &Server, head: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request = format!("{head}\r\nHost: localhost\r\nConnection: close\r\n\r\n{body}");
    // A server that has heard enough may close before it has heard all.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

fn refused(site: &Site, args: &[&str]) -> Value {
    site.run(&[args, &["--json"]].concat()).error()
}

#[test]
fn a_refusal_leads_to_its_page() {
    let site = Site::new();
    let server = Server::start(&site);
    let get = |path: &str| server.try_call("GET", path, &[], None).unwrap();
    let refusal = get("/v1/tasks");
    refusal.refused(401, "unauthenticated");
    let page = get(text(&refusal.body["type"]));
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(text(&page.body).starts_with("# unauthenticated\n"), "{page:#?}");
    assert!(text(&get("/errors").body).contains("/errors/fenced: "));
    get("/errors/nonsense").refused(404, "unknown_name");
}

#[test]
fn a_refusal_over_http_has_a_next_step_and_its_task() {
    let site = Site::new();
    site.agents(1);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let server = Server::start(&site);
    let task = server.add(&person, "a task");
    let path = |verb: &str| format!("/v1/tasks/{task}/{verb}");
    for (path, body) in [
        ("/v1/tasks".to_owned(), json!({ "title": "" })),
        ("/v1/tasks".to_owned(), json!({ "titel": "x" })),
        (path("notes"), json!({})),
        ("/v1/claims".to_owned(), json!({ "count": 0 })),
    ] {
        let reply = server.post(&agent, &path, body);
        reply.refused(400, "invalid_input");
        assert!(text(&reply.body["hint"]).contains("/openapi.json"), "{reply:#?}");
    }
    let unknown = server.post(&person, "/v1/tasks", json!({ "title": "x", "depends_on": ["T-99"] }));
    unknown.refused(404, "unknown_task");
    assert_eq!(unknown.body["hint"], "onus list --state all");

    let forced = server.post(&agent, &path("claim"), json!({ "force": true, "reason": "now" }));
    forced.refused(403, "human_required");
    assert_eq!(forced.body["task"], json!(task));
    assert!(text(&forced.body["detail"]).ends_with("claim by force"), "{forced:#?}");
    assert_eq!(server.post(&agent, &path("notes"), json!({})).body["task"], json!(task));
}

#[test]
fn a_body_is_one_whole_object() {
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    // In the order of the fields: what a parser might take for a note.
    let task = server.add(&person, "a task");
    let list = server.post(&person, &format!("/v1/tasks/{task}/notes"), json!(["a note", null]));
    list.refused(400, "invalid_input");
    assert!(!text(&list.body["detail"]).contains("struct"), "{list:#?}");
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nAuthorization: Bearer {person}\r\nContent-Type: application/json"
    );
    let (status, problem) = raw(&server, &format!("{head}\r\nTransfer-Encoding: chunked"), "no length\r\n{}");
    assert_eq!((status, text(&problem["code"])), (400, "invalid_input"), "{problem}");
    let long = format!("{{\"title\":\"{}\"}}", "x".repeat(1 << 20));
    let (status, problem) = raw(&server, &format!("{head}\r\nContent-Length: {}", long.len()), &long);
    assert_eq!((status, text(&problem["code"])), (413, "invalid_input"), "{problem}");
}

#[test]
fn a_header_with_one_meaning_comes_once() {
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let bearer = format!("Authorization: Bearer {person}");
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\n{bearer}\r\nContent-Type: application/json\r\nContent-Length: 13"
    );
    for twice in ["Idempotency-Key: a\r\nIdempotency-Key: b", &bearer] {
        let (status, problem) = raw(&server, &format!("{head}\r\n{twice}"), "{\"title\":\"x\"}");
        assert_eq!((status, text(&problem["code"])), (400, "invalid_input"), "{twice}: {problem}");
    }
    assert_eq!(server.get(&person, "/v1/tasks").ok()["tasks"], json!([]));
}

#[test]
fn versions_are_compared_as_http_compares_them() {
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let task = server.add(&person, "a task");
    let bearer = format!("Bearer {person}");
    let path = format!("/v1/tasks/{task}");
    let read = |known: &str| {
        let headers = [("authorization", bearer.as_str()), ("if-none-match", known)];
        server.try_call("GET", &path, &headers, None).unwrap().status
    };
    for (known, status) in
        [("\"1\"", 304), ("W/\"1\"", 304), ("\"x\", \"1\"", 304), ("\"2\"", 200), ("1", 200)]
    {
        assert_eq!(read(known), status, "{known}");
    }
    let note = |version: &str| {
        let headers = [("if-match", version)];
        server.post_with(&person, &format!("{path}/notes"), &headers, json!({ "text": "a word" }))
    };
    for never in ["\"x\"", "W/\"1\"", "\"9\""] {
        note(never).refused(412, "precondition_failed");
    }
    note("1").refused(400, "invalid_input");
    note("\"1\"").ok();
}

#[test]
fn a_duration_may_be_milliseconds() {
    let site = Site::new();
    site.agents(1);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let server = Server::start(&site);
    let task = server.add(&person, "a task");
    let claim = |body: Value| server.post(&agent, &format!("/v1/tasks/{task}/claim"), body);
    for bad in [json!({ "ttl_ms": 0 }), json!({ "ttl_ms": -1 }), json!({ "ttl": "5m", "ttl_ms": 300_000 })] {
        claim(bad).refused(400, "invalid_input");
    }
    let claimed = claim(json!({ "workstation": "ws-1", "ttl_ms": 300_000 })).ok();
    assert_eq!(claimed["lease"]["ttl_ms"], 300_000);
}

#[test]
fn mcp_refuses_with_the_codes_of_the_rules() {
    let site = Site::new();
    site.agents(1);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let server = Server::start(&site);
    let task = server.add(&person, "a task");
    let accept = [("accept", "application/json, text/event-stream")];
    let call = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        server.post_with(&agent, "/mcp", &accept, body).ok()["result"]["structuredContent"].clone()
    };
    let lease = call("claim", json!({ "task": task, "workstation": "ws-1" }))["lease"]["token"].clone();
    let unresolved = call("complete", json!({ "task": task, "lease": lease }));
    assert_eq!(unresolved["error"]["code"], "resolution_required", "{unresolved:#}");
    let mistyped = call("note", json!({ "task": task, "txt": "x" }));
    assert_eq!(mistyped["error"]["code"], "invalid_input");
    assert!(text(&mistyped["error"]["hint"]).contains("tools/list"), "{mistyped:#}");
    let released = call("release", json!({ "task": task, "lease": lease, "note": "for the next one" }));
    assert_eq!(released["task"]["state"], "open", "{released:#}");
    let noise = server.post_with(&agent, "/mcp", &accept, json!([]));
    assert_eq!((noise.status, &noise.body["error"]["code"]), (400, &json!(-32700)), "{noise:#?}");
}

#[test]
fn a_mistyped_call_is_told_what_is_missing_and_where_to_read() {
    let site = Site::new();
    for (args, detail, hint) in [
        (&["worker", "add", "@b"][..], "not provided: --kind <KIND>", "onus worker add --help"),
        (&["block", "T-1"], "--on <BLOCKER>", "onus block --help"),
        (&["add", "x", "--priority", "P9"], "P0 to P4", "onus add --help"),
        (&["add", "", "--as", &site.person], "the title is empty", "onus add --help"),
        (&["nonsense"], "unrecognized subcommand", "onus --help"),
    ] {
        let error = refused(&site, args);
        assert!(text(&error["detail"]).contains(detail), "{args:?}: {error:#}");
        assert_eq!((&error["code"], &error["hint"]), (&json!("invalid_input"), &json!(hint)), "{args:?}");
    }
    let unknown = refused(&site, &["add", "x", "--depends-on", "T-99", "--as", &site.person]);
    assert_eq!(
        (&unknown["code"], &unknown["hint"]),
        (&json!("unknown_task"), &json!("onus list --state all"))
    );
}

#[test]
fn help_tells_no_password() {
    let site = Site::new();
    let mut help = site.command(&["list", "--help"]);
    let told = help.env("ONUS_STORE", "postgres://ada:secret@db.example/onus").output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("[env: ONUS_STORE]") && !told.contains("secret"), "{told}");
}

#[test]
fn init_through_a_server_joins_its_store() {
    let site = Site::new();
    site.agents(1);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let server = Server::start(&site);
    let elsewhere = site.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let init = |token: &str, more: &[&str]| {
        let mut command = site.command(&[&["init", "--json"], more].concat());
        command.current_dir(&elsewhere).env("ONUS_STORE", &server.url).env("ONUS_TOKEN", token);
        finish(start(&mut command))
    };
    let joined = init(&person, &[]).json();
    assert_eq!(
        (&joined["created"], &joined["workstation"]),
        (&json!(true), &json!("ws-elsewhere")),
        "{joined}"
    );
    assert_eq!((&joined["worker"], &joined["project"]), (&json!(site.person), &json!("T")));
    let again = init(&person, &[]).json();
    assert_eq!((&again["created"], &again["workstation"]), (&json!(false), &json!("ws-elsewhere")));
    assert_eq!(init(&person, &["--project", "WEB"]).json()["project"], "WEB");
    assert_eq!(init(&agent, &[]).error()["code"], "human_required");
    assert_eq!(site.ok(&["ledger", "verify"])["ok"], true);
}
