//! Every door of a server with every kind of token, compared with one table: contract/doors.txt.

use super::house::{Founded, House};
use axum::body::{Body, Bytes};
use axum::http::Response;
use onus_app::remote::CallName;
use onus_mcp::Tools;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract/doors.txt");

/// Those who have a column, in its order.
pub(super) const CALLERS: [&str; 5] = ["read", "service", "agent", "other", "person"];

/// Doors that no table of the program has.
const OTHERS: [&str; 11] = [
    "GET /v1/events",
    "open GET /healthz",
    "open GET /readyz",
    "open GET /metrics",
    "open GET /openapi.json",
    "open GET /errors",
    "open GET /errors/{code}",
    "open GET /",
    "open GET /signin",
    "open GET /assets/{version}/{name}",
    "open POST /v1/intake/{channel}",
];

/// Those who are told nothing anywhere.
const NOBODY: [&str; 6] = ["", "revoked", "expired", "another", "link", "push"];

/// One line of the table.
pub(super) struct Door {
    /// `call NAME`, `METHOD PATH`, `tool NAME`, `page PATH` for whoever is signed in, or `open METHOD PATH` for everybody.
    name: String,
    request: String,
    answers: String,
}

pub(super) fn table() -> (String, Vec<Door>) {
    let text = std::fs::read_to_string(TABLE).unwrap();
    let (head, rows): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('#'));
    let row = |line: &&str| {
        let mut parts = line.split('|').map(str::trim);
        let mut next = || parts.next().unwrap_or_default().to_owned();
        Door { name: next(), request: next(), answers: next() }
    };
    (head.join("\n") + "\n", rows.iter().map(row).collect())
}

impl Door {
    fn kind(&self) -> (&str, &str) {
        self.name.split_once(' ').unwrap()
    }

    pub(super) fn target(&self) -> (&str, String) {
        match self.kind() {
            ("call", name) => ("POST", format!("/v1/call/{name}")),
            ("tool", _) => ("POST", "/mcp".to_owned()),
            ("page", path) => ("GET", path.to_owned()),
            ("open", door) => door.split_once(' ').map(|(method, path)| (method, path.to_owned())).unwrap(),
            (method, path) => (method, path.to_owned()),
        }
    }

    /// What this caller sends.
    pub(super) fn body(&self, founded: &Founded, caller: &str) -> String {
        let place = if caller == "person" { "ws-4" } else { "ws-2" };
        let sent = json!({
            "request": format!("submit-{caller}"), "token": null, "task": "T-1", "project": null,
            "command": { "Claim": { "workstation": place, "ttl": null, "warrant": "Ordinary" } }, "texts": [],
        });
        let request = self.request.replace("\"@sent\"", &sent.to_string()).replace("$PLACE", place);
        let request = founded.filled(&request);
        match self.kind() {
            ("tool", name) => {
                let arguments: Value = serde_json::from_str(&request).unwrap();
                let params = json!({ "name": name, "arguments": arguments });
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
            }
            _ => request,
        }
    }

    pub(super) fn changes_something(&self) -> bool {
        match self.kind() {
            ("call", name) => CallName::parse(name).is_none_or(|call| call.class().is_write()),
            ("page" | "open", _) => false,
            (method, _) => method != "GET",
        }
    }

    /// Whether it is a browser's, or everybody's: neither asks for a bearer.
    pub(super) fn is_for_bearers(&self) -> bool {
        !matches!(self.kind(), ("page" | "open", _))
    }

    /// What a browser gets that keeps this token, or everybody: never the token that opens something for somebody else.
    fn ask_without_bearer(&self, founded: &Founded, house: &House, caller: &str) -> String {
        let (method, target) = self.target();
        let token = founded.tokens.get(caller).map_or("", String::as_str);
        let answer = match self.kind() {
            ("page", path) => house.page(path, token),
            _ => house.send(method, &target, Some(token), Body::empty()),
        };
        founded.assert_keeps_secrets(caller, &self.name, answer.body());
        let leads_to = answer.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or_default();
        match answer.status().as_u16() {
            200 => "ok".to_owned(),
            303 if leads_to.starts_with("/signin") => "unauthenticated".to_owned(),
            303 => "ok".to_owned(),
            status if self.kind().0 == "page" && answer.body().starts_with(b"<") => status.to_string(),
            _ => code(&answer),
        }
    }

    /// The answer's code, marked where it came before the body was asked for.
    fn ask(&self, founded: &Founded, house: &House, caller: &str) -> String {
        if !self.is_for_bearers() {
            return self.ask_without_bearer(founded, house, caller);
        }
        let (method, target) = self.target();
        let (body, is_read) = watched(self.body(founded, caller));
        let token = founded.tokens.get(caller).map(String::as_str);
        let answer = house.send(method, &founded.filled(&target), token, body);
        founded.assert_keeps_secrets(caller, &self.name, answer.body());
        let mark = if is_read.load(Ordering::Relaxed) || method == "GET" { "" } else { "!" };
        format!("{}{mark}", code(&answer))
    }
}

/// A body that knows whether anybody asked for it.
fn watched(text: String) -> (Body, Arc<AtomicBool>) {
    let is_read = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_read);
    let stream = futures_util::stream::once(async move {
        seen.store(true, Ordering::Relaxed);
        Ok::<_, std::convert::Infallible>(Bytes::from(text))
    });
    (Body::from_stream(stream), is_read)
}

/// What an answer comes down to: `ok`, or the code of the refusal, wherever it stands.
pub(super) fn code(answer: &Response<Bytes>) -> String {
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let tool = &body["result"]["structuredContent"]["error"]["code"];
    let said = [&body["code"], &body["error"]["data"]["code"], tool].into_iter().find_map(Value::as_str);
    match said {
        Some(code) => code.to_owned(),
        None if answer.status().is_success()
            && body["error"].is_null()
            && body["result"]["isError"] != true =>
        {
            "ok".to_owned()
        }
        None => format!("{} {}", answer.status(), String::from_utf8_lossy(answer.body())),
    }
}

/// Every door that there is, as the table names it: a path with an example in each of its places is found by its shape.
fn known() -> BTreeSet<String> {
    let calls = CallName::ALL.iter().map(|call| format!("call {}", call.name()));
    let routes = crate::routes::table().into_iter().map(|route| format!("{} {}", route.method, route.path));
    let tools = Tools::Few.list().into_iter().map(|tool| format!("tool {}", tool.name));
    let pages = onus_board::pages().into_iter().map(|page| page.path);
    let pages = pages.chain(onus_board::downloads().into_iter().map(|file| file.path));
    // Whether there are workbooks is a choice of the build.
    let pages = pages.filter(|path| !path.ends_with(".xlsx")).map(|path| format!("page {path}"));
    calls.chain(routes).chain(tools).chain(pages).chain(OTHERS.map(str::to_owned)).collect()
}

/// Whether a line of the table is about this door.
fn is_about(door: &Door, known: &str) -> bool {
    let path = door.name.split('?').next().unwrap_or_default();
    let (mut own, mut other) = (path.split('/'), known.split('/'));
    loop {
        match (own.next(), other.next()) {
            (None, None) => return true,
            (Some(own), Some(other)) if own == other || other.starts_with('{') => {}
            _ => return false,
        }
    }
}

#[test]
fn every_door_has_one_line_in_the_table() {
    let (_, doors) = table();
    let known = known();
    for one in &known {
        // `/v1/ledger/verify` has the shape of nothing else: what is written out comes first.
        let lines = doors.iter().filter(|door| is_about(door, one)).count();
        assert!(
            lines >= 1,
            "{one} has no line in contract/doors.txt: say what each kind of token gets there"
        );
        assert_eq!(lines, 1, "{one} has {lines} lines in contract/doors.txt");
    }
    for door in &doors {
        assert!(known.iter().any(|one| is_about(door, one)), "there is no {}", door.name);
    }
}

#[test]
fn every_kind_of_token_gets_at_every_door_what_the_table_says() {
    let (head, doors) = table();
    let founded = Founded::new();
    let (mut text, mut wrong) = (head, Vec::new());
    let shared = founded.serve();
    for door in &doors {
        let own = door.changes_something().then(|| founded.serve());
        let house = own.as_ref().unwrap_or(&shared);
        for nobody in NOBODY {
            let told = door.ask(&founded, house, nobody);
            let is_refused = told.trim_end_matches('!') == "unauthenticated";
            let is_unread = told.ends_with('!') || door.target().0 == "GET";
            let is_open = door.kind().0 == "open" && door.answers.split(' ').all(|answer| answer == told);
            if !(is_open || is_refused && is_unread) {
                wrong.push(format!("{}: {nobody:?} gets {told}", door.name));
            }
        }
        let answers: Vec<_> = CALLERS.iter().map(|caller| door.ask(&founded, house, caller)).collect();
        let answers = answers.join(" ");
        if answers != door.answers {
            wrong.push(format!("{}\n    table: {}\n    gets:  {answers}", door.name, door.answers));
        }
        writeln!(text, "{} | {} | {answers}", door.name, door.request).unwrap();
    }
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(TABLE, text).unwrap();
    }
    assert!(wrong.is_empty(), "{} differ from contract/doors.txt:\n{}", wrong.len(), wrong.join("\n"));
}

/// What nobody would look at was meant for something else.
#[test]
fn an_unknown_field_is_refused_at_every_door() {
    let (_, doors) = table();
    let founded = Founded::new();
    let mut house = founded.serve();
    let person = founded.tokens.get("person").map(String::as_str);
    let mut taken = Vec::new();
    for door in doors.iter().filter(|door| door.is_for_bearers()) {
        let (method, target) = door.target();
        let sent = door.body(&founded, "person");
        let targets = match method {
            "GET" if target == "/v1/events" => continue,
            "GET" => {
                let mark = if target.contains('?') { '&' } else { '?' };
                vec![(format!("{target}{mark}zz=1"), sent)]
            }
            _ => more_in_every_object(&sent).into_iter().map(|sent| (target.clone(), sent)).collect(),
        };
        for (target, sent) in targets {
            let mut code = code(&house.send(method, &target, person, sent.clone().into()));
            if code == "too_many_requests" {
                // What takes long may be asked for so often and no more: a new server has counted nothing yet.
                house = founded.serve();
                code = self::code(&house.send(method, &target, person, sent.clone().into()));
            }
            if code != "invalid_input" {
                taken.push(format!("{method} {target} {sent}: {code}"));
            }
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n"));
}

/// The document, each time with one more field in another one of its objects, or with one more argument.
fn more_in_every_object(text: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let is_message = document["jsonrpc"].is_string();
    let mut all = Vec::new();
    if let Value::Array(arguments) = &document {
        all.push(Value::Array([&arguments[..], &[Value::Null]].concat()).to_string());
    }
    if document.is_null() {
        all.push("[1]".to_owned());
    }
    let mut places = Vec::new();
    objects(&document, String::new(), &mut places);
    for place in places {
        // The protocol around a tool's arguments is the library's.
        if is_message && !place.starts_with("/params/arguments") {
            continue;
        }
        let mut more = document.clone();
        if let Some(object) = more.pointer_mut(&place).and_then(Value::as_object_mut) {
            object.insert("zz".into(), json!(1));
        }
        all.push(more.to_string());
    }
    all
}

fn objects(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(at.clone());
            fields.iter().for_each(|(name, value)| objects(value, format!("{at}/{name}"), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, value)| objects(value, format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

/// A document that two readers could understand differently says nothing, whichever door it comes through.
#[test]
fn a_key_that_comes_twice_is_refused_at_every_door() {
    let founded = Founded::new();
    let house = founded.serve();
    let person = founded.tokens.get("person").map(String::as_str);
    let sent = r#"{"request":"r","token":null,"task":"T-1","project":null,"command":{"Note":{"text":"a","text":"b"}},"texts":["a"]}"#;
    let tool = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"note","arguments":{"task":"T-1","text":"a","text":"b"}}}"#;
    for (target, body) in [
        ("/v1/tasks", r#"{"title":"a","title":"b"}"#.to_owned()),
        ("/v1/tasks/T-1/notes", r#"{"text":"a","text":"b"}"#.to_owned()),
        ("/v1/workers", r#"{"handle":"@eve","kind":"agent","kind":"human"}"#.to_owned()),
        ("/v1/call/submit", format!("[{sent},\"Named\"]")),
        ("/mcp", tool.to_owned()),
    ] {
        assert_eq!(code(&house.send("POST", target, person, body.into())), "invalid_input", "{target}");
    }
}
