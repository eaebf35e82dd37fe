//! `/mcp` of the real server: the token decides, nothing is kept between calls, and no path of a client is touched.

use crate::support::server::{Reply, Server};
use crate::support::{Site, text};
use serde_json::{Value, json};

fn site() -> Site {
    let site = Site::new();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    for name in ["ws-1", "ws-2"] {
        site.by_person(&["workstation", "add", name]);
    }
    site
}

fn token(site: &Site, args: &[&str]) -> String {
    text(&site.by_person(&[&["worker", "token", "add"], args].concat())["secret"]).to_owned()
}

fn post(server: &Server, token: &str, method: &str, params: Value) -> Reply {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
    server.post_with(token, "/mcp", &headers, body)
}

fn call(server: &Server, token: &str, tool: &str, arguments: Value) -> Value {
    let reply = post(server, token, "tools/call", json!({ "name": tool, "arguments": arguments }));
    assert_eq!(reply.status, 200, "{reply:#?}");
    reply.body["result"].clone()
}

fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result:#}");
    text(&result["structuredContent"]["error"]["code"])
}

#[test]
fn without_a_good_token_there_is_nothing() {
    let site = site();
    let server = Server::start(&site);
    let good = token(&site, &["@bot"]);
    assert_eq!(post(&server, &good, "tools/list", json!({})).status, 200);
    for bad in ["", "@bot", "onus_a00000000_00000000000000000000000000000000000000", &good[..53]] {
        let reply = post(&server, bad, "tools/list", json!({}));
        assert_eq!((reply.status, reply.code()), (401, "unauthenticated"), "{bad}");
        assert!(reply.header("www-authenticate").is_some());
    }
    let id = site.ok(&["worker", "token", "list"])["tokens"][0]["id"].clone();
    site.by_person(&["worker", "token", "revoke", text(&id)]);
    assert_eq!(post(&server, &good, "tools/list", json!({})).status, 401, "revocation bites at once");
}

#[test]
fn the_kind_of_the_token_decides() {
    let site = site();
    let server = Server::start(&site);
    let task = site.add("a task");
    let (agent, service) = (token(&site, &["@bot"]), token(&site, &["@bot", "--kind", "service"]));
    let (reader, here) =
        (token(&site, &["--kind", "service"]), token(&site, &["@bot", "--workstation", "ws-2"]));
    let claim = |token: &str, place: &str| {
        call(&server, token, "claim", json!({ "task": task, "workstation": place }))
    };
    assert_eq!(code(&claim(&service, "ws-1")), "not_permitted");
    assert_eq!(code(&claim(&reader, "ws-1")), "not_permitted");
    assert_eq!(code(&claim(&here, "ws-1")), "not_permitted");
    for one in [&agent, &service, &reader, &here] {
        assert_eq!(call(&server, one, "ready", json!({}))["isError"], false);
    }
    assert_eq!(code(&call(&server, &reader, "ask", json!({ "title": "x" }))), "identity_required");
    assert_eq!(call(&server, &service, "ask", json!({ "title": "x" }))["isError"], false);
    let held = call(&server, &here, "claim", json!({ "task": task }))["structuredContent"].clone();
    assert_eq!(held["task"]["holder"]["workstation"], "ws-2", "the token's own workstation is meant");
    assert_eq!(held["task"]["holder"]["worker"], "@bot");
}

#[test]
fn no_check_runs_and_no_lease_is_left() {
    let site = site();
    let server = Server::start(&site);
    let task = text(&site.by_person(&["add", "a task", "--check", "touch ran && test -d ."])["task"]["id"])
        .to_owned();
    let bot = token(&site, &["@bot"]);
    let held = call(&server, &bot, "claim", json!({ "task": task, "workstation": "ws-1" }));
    let lease = text(&held["structuredContent"]["lease"]["token"]).to_owned();
    assert_eq!(held["structuredContent"]["directory"], Value::Null);
    // The lease token is an argument here, and nothing else will do.
    assert_eq!(code(&call(&server, &bot, "release", json!({ "task": task }))), "lease_required");
    let refused = call(&server, &bot, "check", json!({ "task": task, "lease": lease }));
    assert_eq!(code(&refused), "checks_missing");
    assert!(!site.repo().join("ran").exists());
    let told =
        call(&server, &bot, "check", json!({ "task": task, "list": true }))["structuredContent"].clone();
    assert_eq!(told["checks"][0]["run"], Value::Null);
    for (tool, more) in
        [("handoff", json!({ "summary": "so far" })), ("release", json!({ "summary": "not mine" }))]
    {
        let mut arguments = more;
        arguments["task"] = json!(task);
        arguments["lease"] = json!(lease);
        assert_eq!(call(&server, &bot, tool, arguments)["isError"], false, "{tool}");
    }
    site.assert_sound();
}

#[test]
fn a_page_of_another_origin_is_refused() {
    let site = site();
    let server = Server::start(&site);
    let bot = token(&site, &["@bot"]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let headers = [("accept", "application/json, text/event-stream"), ("origin", "https://evil.example")];
    assert_eq!(server.post_with(&bot, "/mcp", &headers, body).status, 403);
    assert_eq!(server.get(&bot, "/mcp").status, 405);
}
