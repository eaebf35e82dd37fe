//! Every door with every kind of token: each remote call, each route and each tool is tried by nobody, by a service that only
//! reads, by one that asks, by the holder, by another agent, by a person, and with tokens that ended. One table says who is
//! heard; `UPDATE_CONTRACT=1` rewrites it, and a reviewer reads the difference.

use crate::support::server::{Reply, Server};
use crate::support::{Site, text};
use onus_app::remote::CallName;
use serde_json::{Value, json};
use std::fmt::Write as _;

const BEARERS: [&str; 8] = ["none", "reader", "service", "holder", "agent", "person", "revoked", "expired"];

struct House {
    site: Site,
    server: Server,
    tokens: Vec<String>,
    lease: String,
}

impl House {
    fn new() -> House {
        let site = Site::new();
        site.agents(2);
        let token = |args: &[&str]| {
            let issued = site.by_person(&[&["worker", "token", "add"], args].concat());
            (text(&issued["secret"]).to_owned(), text(&issued["token"]["id"]).to_owned())
        };
        let (revoked, id) = token(&["@a1"]);
        site.by_person(&["worker", "token", "revoke", &id]);
        let (expired, _) = token(&["@a1", "--expires", "1s"]);
        let tokens = vec![
            String::new(),
            token(&["--kind", "service"]).0,
            token(&["@a1", "--kind", "service"]).0,
            token(&["@a1"]).0,
            token(&["@a2"]).0,
            token(&[&site.person]).0,
            revoked,
            expired,
        ];
        let server = Server::start(&site);
        let task = server.add(&tokens[5], "a task");
        let claimed = server
            .post(&tokens[3], &format!("/v1/tasks/{task}/claim"), json!({ "workstation": "ws-1" }))
            .ok();
        let lease = text(&claimed["lease"]["token"]).to_owned();
        while server.get(&tokens[7], "/v1/status").status != 401 {
            std::thread::yield_now();
        }
        House { site, server, tokens, lease }
    }

    /// One line of the table: who is heard, and who is told what instead.
    fn line(&self, door: &str, ask: impl Fn(&str) -> Reply) -> String {
        let cells = self.tokens.iter().zip(BEARERS).map(|(token, bearer)| {
            let reply = ask(token);
            let told = reply.body.to_string();
            assert!(reply.status < 500, "{door} by {bearer}: {reply:?}");
            // Another worker's lease is nobody's to learn.
            assert!(bearer == "holder" || !told.contains(&self.lease), "{door} told {bearer} the lease");
            word(&reply)
        });
        format!("| {door} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    }
}

/// Whether the caller was heard: everything but a refusal for who it is.
fn word(reply: &Reply) -> String {
    let code = match reply.body.pointer("/result/structuredContent/error/code") {
        Some(code) => text(code),
        None => reply.body["code"].as_str().unwrap_or_default(),
    };
    match code {
        "unauthenticated" | "not_permitted" | "human_required" | "identity_required" => code.to_owned(),
        _ => "heard".to_owned(),
    }
}

fn contract(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract").join(name)
}

fn document(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(contract(name)).unwrap()).unwrap()
}

fn path(template: &str) -> String {
    let name = if template.contains("/workers/") { "@a1" } else { "ws-1" };
    template.replace("{id}", "T-1").replace("{name}", name)
}

fn table(house: &House) -> String {
    let mut table = String::from(
        "# Who is heard at which door\n\n\
         Made by `onus-cli/tests/doors.rs`, which tries every call, route and tool with every kind of token. *heard*: who asks\n\
         is no reason to refuse; what is asked may be. *reader* is a service that speaks for nobody.\n",
    );
    let mut part = |title: &str, lines: Vec<String>| {
        let head = format!("| | {} |\n|---|{}\n", BEARERS.join(" | "), "---|".repeat(BEARERS.len()));
        write!(table, "\n## {title}\n\n{head}{}", lines.concat()).unwrap();
    };
    // Arguments that make no sense are read by nobody who may not make the call.
    let calls = CallName::ALL.iter().map(|call| {
        let name = call.name();
        house.line(name, |token| {
            house.server.post(token, &format!("/v1/call/{name}"), json!({ "no": "sense" }))
        })
    });
    part("Remote calls", calls.collect());
    let openapi = document("openapi.json");
    let routes = openapi["paths"].as_object().unwrap().iter().flat_map(|(template, methods)| {
        methods.as_object().unwrap().keys().map(move |method| (template.clone(), method.to_uppercase()))
    });
    let routes = routes.filter(|(template, _)| template.starts_with("/v1/") && template != "/v1/events");
    let routes = routes.map(|(template, method)| {
        house.line(&format!("{method} {template}"), |token| match method.as_str() {
            "GET" => house.server.get(token, &path(&template)),
            _ => house.server.post(token, &path(&template), json!({ "no": "sense" })),
        })
    });
    part("Routes", routes.collect());
    let tools = document("mcp-tools.json");
    let tools = tools["tools"].as_array().unwrap().iter().map(|tool| {
        let name = text(&tool["name"]);
        house.line(name, |token| {
            let params = json!({ "name": name, "arguments": { "no": "sense" } });
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            let headers =
                [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
            house.server.post_with(token, "/mcp", &headers, body)
        })
    });
    part("Tools", tools.collect());
    table
}

#[test]
fn every_door_hears_whom_it_should() {
    let house = House::new();
    let made = table(&house);
    let path = contract("doors.md");
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    for (made, kept) in made.lines().zip(kept.lines()) {
        assert_eq!(made, kept, "contract/doors.md differs: UPDATE_CONTRACT=1 cargo test -p onus-cli doors");
    }
    assert_eq!(made.lines().count(), kept.lines().count(), "contract/doors.md differs");
    house.site.assert_sound();
}
