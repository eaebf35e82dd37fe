//! Nobody is answered with as much as somebody wrote: one agent writes as much as it may of everything, and then every door that
//! tells something is asked, each page of the board, and each file.

use super::doors::{Door, code, table};
use super::house::{Founded, House};
use axum::body::Bytes;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};

/// The most that any answer has, with its marks: a browser's page spells some of them with five bytes.
const MOST: usize = 5 * 1024 * 1024;

/// So often each thing is said: as long as it may be, this is more than any answer holds.
const OFTEN: usize = 90;

/// Words that JSON and HTML need more room for.
fn long(bytes: usize) -> String {
    "<\"&> ".repeat(bytes / 5)
}

/// One agent, and what it makes of a server.
struct Writer<'f> {
    founded: &'f Founded,
    house: House,
    requests: usize,
}

impl Writer<'_> {
    fn call(&mut self, caller: &str, name: &str, arguments: &Value) -> Value {
        self.requests += 1;
        let token = self.founded.tokens.get(caller).map(String::as_str);
        let sent = self.founded.filled(&arguments.to_string());
        let answer = self.house.send("POST", &format!("/v1/call/{name}"), token, sent.into());
        assert_eq!(code(&answer), "ok", "{name}");
        serde_json::from_slice(answer.body()).unwrap_or(Value::Null)
    }

    fn command(
        &mut self,
        caller: &str,
        (task, lease): (&str, &str),
        command: &Value,
        texts: &[&str],
    ) -> Value {
        let [task, lease] = [task, lease].map(|text| if text.is_empty() { Value::Null } else { json!(text) });
        let sent = json!({ "request": format!("written-{}", self.requests), "token": lease, "task": task,
            "project": null, "command": command, "texts": texts });
        self.call(caller, "submit", &json!([sent, "Named"]))
    }

    fn said(&mut self) {
        let (text, held) = (long(60_000), ("T-2", "$LEASE"));
        let digest = onus_core::hash::Digest::of(text.as_bytes()).to_string();
        let summary = long(16_000);
        let opinion = json!({ "verdict": "approved", "classification": "implemented", "commit": null,
            "workstation": null, "note": digest });
        for n in 0..OFTEN {
            self.command("agent", held, &json!({ "Note": { "text": digest } }), &[&text]);
            self.command("agent", held, &json!({ "Say": { "text": digest, "to": "@ada" } }), &[&text]);
            self.command("other", ("T-5", ""), &json!({ "Review": { "opinion": opinion } }), &[&text]);
            if n % 8 == 0 {
                let body = json!({ "lease": self.founded.filled("$LEASE"), "summary": summary });
                let token = self.founded.tokens.get("agent").map(String::as_str);
                let answer =
                    self.house.send("POST", "/v1/tasks/T-2/handoffs", token, body.to_string().into());
                assert_eq!(code(&answer), "ok");
            }
        }
    }

    /// Runs of a check that print as much as is kept.
    fn ran(&mut self) {
        let check = json!({ "AddCheck": { "check": { "command": "cargo test", "state": "approved" } } });
        self.command("person", ("T-2", ""), &check, &[]);
        let told = self.call("agent", "find_task", &json!(["T-2"]));
        let id = onus_core::task::Check {
            command: "cargo test".into(),
            state: onus_core::task::CheckState::Approved,
            kind: onus_core::task::CheckKind::default(),
        };
        assert!(told.to_string().contains("cargo test"), "{told}");
        let text = long(120_000);
        let digest = onus_core::hash::Digest::of(text.as_bytes()).to_string();
        let run = json!({ "check": id.id(), "exit": 0, "signal": null, "timed_out": false, "took_ms": 5,
            "ground": { "commit": null, "dirty": false }, "output": digest, "output_length": 3,
            "output_sha256": digest, "environment": "linux", "sandbox": "none" });
        for _ in 0..OFTEN {
            self.command("agent", ("T-2", "$LEASE"), &json!({ "RecordCheck": { "run": run } }), &[&text]);
        }
    }

    /// Tasks as long as they may be, each with exceptions as long as they may be.
    fn asked(&mut self) {
        let (body, words) = (long(60_000), long(3_900));
        let checks: Vec<String> =
            (0..15).map(|n| format!("cargo test case_{n} {}", "x".repeat(4_000))).collect();
        let before: Vec<String> = (1..=8).map(|n| format!("T-{n}")).collect();
        let token = self.founded.tokens.get("agent").map(String::as_str);
        for n in 0..OFTEN {
            let depends_on = if n < 3 { Vec::new() } else { before.clone() };
            let asked =
                json!({ "title": "x".repeat(490), "body": body, "checks": checks, "depends_on": depends_on });
            let answer = self.house.send("POST", "/v1/tasks", token, asked.to_string().into());
            let told: Value = serde_json::from_slice(answer.body()).unwrap();
            let task = told["task"]["id"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
            for on in &depends_on {
                let asked = json!({ "RequestException": { "on": on, "reason": words, "rollback": words, "adr": null } });
                self.command("agent", (&task, ""), &asked, &[]);
            }
        }
    }

    /// Many grants of one task, each given back with long words, and as many clones as there may be.
    fn moved(&mut self) {
        let text = long(60_000);
        let digest = onus_core::hash::Digest::of(text.as_bytes()).to_string();
        for _ in 0..OFTEN {
            let claim = json!({ "Claim": { "workstation": "ws-2", "ttl": null, "warrant": "Ordinary" } });
            let told = self.command("agent", ("T-1", ""), &claim, &[]);
            let lease = told["token"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
            let release = json!({ "Release": { "note": digest, "warrant": "Ordinary" } });
            self.command("agent", ("T-1", &lease), &release, &[&text]);
        }
        for n in 0..onus_core::main_of_record::CLONES_MAX {
            let clone =
                json!({ "id": format!("{n:016x}"), "host": "h".repeat(190), "path": "p".repeat(3_990) });
            self.call("agent", "add_clone", &json!([clone]));
        }
    }
}

/// Every page and every file of the board, about whatever there is most of.
fn addresses() -> Vec<String> {
    let pages = onus_board::pages().into_iter().map(|page| page.path);
    let files = onus_board::downloads().into_iter().map(|file| file.path);
    let about = |path: &str| match path.contains("{id}") {
        true => ["T-1", "T-2", "T-5", "T-20"].map(|id| path.replace("{id}", id)).to_vec(),
        false => vec![path.replace("{name}", "m1")],
    };
    let mut all: Vec<String> = pages.chain(files).flat_map(about).collect();
    all.extend(
        ["/board?q=cargo", "/board?state=all", "/effort/day?worker=@bot", "/audit?show=refusal"]
            .map(str::to_owned),
    );
    all
}

/// What takes long may be asked for so often in a second.
fn patiently(ask: impl Fn() -> Response<Bytes>) -> Response<Bytes> {
    loop {
        let answer = ask();
        if answer.status() != StatusCode::TOO_MANY_REQUESTS {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn no_door_tells_as_much_as_somebody_wrote() {
    let founded = Founded::new();
    let mut writer = Writer { founded: &founded, house: founded.serve(), requests: 0 };
    writer.said();
    writer.ran();
    writer.asked();
    writer.moved();
    let person = founded.tokens.get("person").map(String::as_str);
    let mut wrong = Vec::new();
    let mut measure = |name: &str, bytes: usize, code: &str| {
        // Whoever exports takes the parts one after the other.
        let most = if name.contains("/export_") { 2 * MOST } else { MOST };
        if bytes > most {
            wrong.push(format!("{name}: {bytes} bytes"));
        }
        if code == "internal" || code.contains(' ') {
            wrong.push(format!("{name}: {code}"));
        }
    };
    let (_, doors) = table();
    let telling: Vec<&Door> =
        doors.iter().filter(|door| door.is_for_bearers() && !door.changes_something()).collect();
    assert!(telling.len() > 80, "{}", telling.len());
    for door in telling {
        let (method, target) = door.target();
        if target == "/v1/events" {
            continue;
        }
        let body = door.body(&founded, "person");
        let tasks = if format!("{target}{body}").contains("T-2") {
            &["T-1", "T-2", "T-5", "T-20"][..]
        } else {
            &["T-1"]
        };
        for task in tasks {
            let of = |text: &str| {
                founded.filled(text).replace("\"T-2\"", &format!("\"{task}\"")).replace("T-2", task)
            };
            let sent = of(&body).replace(",10]", ",10000]");
            let answer = patiently(|| writer.house.send(method, &of(&target), person, sent.clone().into()));
            measure(&format!("{target} {body} {task}"), answer.body().len(), &code(&answer));
        }
    }
    for address in addresses() {
        let answer = patiently(|| writer.house.page(&address, person.unwrap()));
        let code = if answer.status().is_server_error() { "internal" } else { "ok" };
        measure(&address, answer.body().len(), code);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
