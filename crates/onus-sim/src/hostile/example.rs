//! Requests that a server takes, for mutations to begin with: each operation of its document, each tool, each page.
//!
//! A request is written as `METHOD target`, lines of headers, an empty line, and the body. `$BEARER` and `$LEASE` stand for
//! a person's token and for the lease of a task that it holds.

use serde_json::{Map, Value, json};

const BEARER: &str = "authorization: Bearer $BEARER\n";
const COOKIE: &str = "cookie: onus-7420=$BEARER\nsec-fetch-site: same-origin\n";
const JSON: &str = "content-type: application/json\n";

/// Files of tasks, taken and not.
pub(super) const FILES: &[&str] = &[
    "{\"title\":\"one\",\"id\":\"T-7\",\"checks\":[\"cargo test\"],\"scope\":[\"src/**\"]}\n{\"title\":\"two\",\"depends_on\":[\"T-7\"]}\n",
    "{\"title\":\"x\",\"origin_ask_ref\":\"github:a/b#1\",\"parent\":\"github:a/b#2\",\"priority\":\"P0\",\"state\":\"done\"}\n",
];

/// A value for every schema or name that wants one of its own kind.
const WORDS: &[(&str, &str)] = &[
    ("TaskId", "T-1"),
    ("task", "T-1"),
    ("id", "T-2"),
    ("Handle", "@b"),
    ("worker", "@b"),
    ("WorkstationName", "ws-1"),
    ("workstation", "ws-1"),
    ("ProjectKey", "T"),
    ("OriginRef", "github:acme/api#12"),
    ("Priority", "P1"),
    ("Role", "A-backend"),
    ("TaskType", "backend"),
    ("Lease", "$LEASE"),
    ("lease", "$LEASE"),
    ("on", "external:rain"),
    ("ttl", "15m"),
    ("expires_in", "15m"),
    ("from", "2026-11-01"),
    ("to", "2026-11-30"),
    ("since", "2026-11-01"),
    ("until", "2026-11-30"),
    ("month", "2026-11"),
    ("week", "2026-W46"),
    ("by", "task"),
    ("state", "open"),
    ("only", "forced"),
    ("tz", "Europe/Berlin"),
    ("commit", "0123456789012345678901234567890123456789"),
    ("probes", "tcp:db:5432"),
    ("scope", "src/**"),
];

/// Everything that can be asked.
pub(super) fn requests() -> Vec<String> {
    let mut all = operations();
    all.extend(tools());
    all.extend(pages());
    all.extend(calls());
    all.extend(["", "5", "9223372036854775807"].map(|id| {
        let resumed = if id.is_empty() { String::new() } else { format!("last-event-id: {id}\n") };
        format!("GET /v1/events?after=3\n{BEARER}{resumed}\n")
    }));
    let form = "token=$BEARER&link=&then=%2Fboard%3Fq%3D1";
    all.push(format!("POST /signin\norigin: http://127.0.0.1:7420\n\n{form}"));
    all
}

/// Each operation of the OpenAPI document, with a body that its schema knows.
fn operations() -> Vec<String> {
    let document: Value = serde_json::from_str(&onus_server::openapi_document()).unwrap_or_default();
    let schemas = Schemas(document["components"]["schemas"].as_object().cloned().unwrap_or_default());
    let paths = document["paths"].as_object().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().cloned().unwrap_or_default() {
            let known = operation["parameters"].as_array().cloned().unwrap_or_default();
            let (mut target, mut query, mut headers) = (path.clone(), Vec::new(), String::new());
            for parameter in known {
                let name = parameter["name"].as_str().unwrap_or_default();
                let value = plain(&schemas.example(name, &parameter["schema"]));
                match parameter["in"].as_str() {
                    Some("path") => target = target.replace(&format!("{{{name}}}"), &value),
                    Some("query") => query.push(format!("{name}={value}")),
                    // What makes a header right is its pattern, which no word of ours has.
                    _ => headers.push_str(&format!("{}: \"1\"\n", name.to_lowercase())),
                }
            }
            if !query.is_empty() {
                target.push('?');
                target.push_str(&query.join("&"));
            }
            let method = method.to_uppercase();
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let body = if schema.is_null() { String::new() } else { schemas.example("", schema).to_string() };
            all.push(format!("{method} {target}\n{BEARER}{JSON}\n{body}"));
            all.push(format!("{method} {target}\n{BEARER}{JSON}{headers}\n{body}"));
        }
    }
    all
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Calls of the Model Context Protocol: each tool with all that it takes, and what surrounds them.
fn tools() -> Vec<String> {
    let contract = include_str!("../../../../contract/mcp-tools.json");
    let document: Value = serde_json::from_str(contract).unwrap_or_default();
    let tools = document.as_array().or_else(|| document["tools"].as_array()).cloned().unwrap_or_default();
    let schemas = Schemas(Map::new());
    let call = |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        format!(
            "POST /mcp\n{BEARER}{JSON}accept: application/json, text/event-stream\nmcp-protocol-version: 2025-06-18\n\n{body}"
        )
    };
    let mut all: Vec<String> = tools
        .iter()
        .map(|tool| {
            let arguments = schemas.example("", &tool["inputSchema"]);
            call("tools/call", json!({ "name": tool["name"], "arguments": arguments }))
        })
        .collect();
    all.push(call(
        "initialize",
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } }),
    ));
    all.extend(
        ["tools/list", "resources/list", "prompts/list", "server/discover"].map(|m| call(m, json!({}))),
    );
    all.push(call("resources/read", json!({ "uri": "onus://task/T-1" })));
    all.push(call("prompts/get", json!({ "name": "prime" })));
    all
}

/// Each page and file of the board, with the words of a search.
fn pages() -> Vec<String> {
    let query = "?q=work&type=backend&role=A-backend&worker=%40b&task=T-1&sprint=1&from=2026-11-01&to=2026-11-30\
        &since=2026-11-01&until=2026-11-30&month=2026-11&week=2026-W46&by=task&only=forced&after=1&lane=1&view=table";
    let pages = onus_board::pages().into_iter().map(|page| page.path);
    let files = onus_board::downloads().into_iter().map(|file| file.path);
    pages
        .chain(files)
        .flat_map(|path| {
            let path = path.replace("{id}", "T-1").replace("{name}", "@b").replace("{handle}", "@b");
            let path = path.replace("{day}", "2026-11-16");
            [format!("GET {path}\n{COOKIE}\n"), format!("GET {path}{query}\n{COOKIE}onus-part: 1\n\n")]
        })
        .collect()
}

/// The command line's own calls.
fn calls() -> Vec<String> {
    let claim = json!({ "Claim": { "workstation": "ws-1", "ttl": null, "warrant": "Ordinary" } });
    let sent = json!({ "request": "r-1", "token": null, "task": "T-1", "project": null, "base": null,
        "command": claim, "texts": [] });
    let arguments = [
        ("submit", json!([sent, "Named"])),
        ("submit", json!([sent, { "At": 1 }])),
        ("rehearse_one", json!([sent])),
        ("places", json!([sent])),
        ("show", json!(["T-1"])),
        ("log", json!(["T-1", 1, 10])),
        ("status", json!(null)),
        ("relations", json!(["T-1", ["T-2"]])),
        ("import_jsonl", json!(["r-2", "T", "{\"title\":\"x\"}\n", "Dry"])),
        ("holdings", json!(["@b"])),
        ("day", json!(["@b", "2026-11-16"])),
        ("add_worker", json!([{ "handle": "@x", "kind": "agent", "tier": null, "role": null, "tz": "UTC" }])),
        ("quarantine", json!(["ws-1", "smoke"])),
        ("record_probes", json!(["ws-1", []])),
        ("queue_about", json!([["T-1"]])),
        ("verify_range", json!([0, 10])),
    ];
    let call = |(name, arguments): (&str, Value)| {
        format!("POST /v1/call/{name}\n{BEARER}{JSON}onus-as: @p\n\n{arguments}")
    };
    arguments.into_iter().map(call).collect()
}

/// The definitions that a document's schemas refer to.
struct Schemas(Map<String, Value>);

impl Schemas {
    /// A value that a schema takes, or nearly: mutations begin there.
    fn example(&self, name: &str, schema: &Value) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return self.0.get(name).map_or(Value::Null, |found| self.example(name, found));
        }
        for choice in ["anyOf", "oneOf"] {
            let some = schema[choice].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"));
            if let Some(one) = some {
                return self.example(name, one);
            }
        }
        if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
            return first.clone();
        }
        let kinds = schema["type"].as_array();
        let kind =
            kinds.and_then(|kinds| kinds.iter().find(|kind| **kind != "null")).unwrap_or(&schema["type"]);
        match kind.as_str() {
            Some("object") => {
                let properties = schema["properties"].as_object().into_iter().flatten();
                properties.map(|(name, schema)| (name.clone(), self.example(name, schema))).collect()
            }
            Some("array") => json!([self.example(name, &schema["items"])]),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            _ => {
                let word = WORDS.iter().find(|(known, _)| *known == name).map_or("words", |(_, word)| word);
                schema["const"].as_str().unwrap_or(word).into()
            }
        }
    }
}
