//! A call whose answer was lost is repeated: it has one effect, and the repeat gets the first answer.

use crate::support::server::Server;
use crate::support::{Site, finish, start, text};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

fn entries(site: &Site) -> usize {
    site.by_person(&["ledger", "log"])["entries"].as_array().unwrap().len()
}

#[test]
fn a_key_stands_for_one_change_of_the_workspace() {
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    site.by_person(&["worker", "add", "@old", "--kind", "agent"]);
    let story: [(&str, Value, Value); 8] = [
        ("/v1/workers", json!({"handle": "@bot", "kind": "agent"}), json!({"handle": "@b", "kind": "agent"})),
        ("/v1/workers/@old/pause", json!({"reason": "rest"}), json!({"reason": "no rest"})),
        ("/v1/workers/@old/resume", json!({}), json!({"nonsense": 1})),
        ("/v1/workstations", json!({"name": "ws-9"}), json!({"name": "ws-8"})),
        ("/v1/workstations/ws-9/quarantine", json!({"reason": "full"}), json!({"reason": "empty"})),
        ("/v1/workstations/ws-9/restore", json!({}), json!({"reason": "empty"})),
        ("/v1/workstations/ws-9/retire", json!({"reason": "old"}), json!({"reason": "new"})),
        ("/v1/milestones", json!({"name": "m", "sprint": "12"}), json!({"name": "n", "sprint": "12"})),
    ];
    let mut answers = Vec::new();
    for (n, (path, body, _)) in story.iter().enumerate() {
        let key = format!("key-{n}");
        let ask = || server.post_with(&person, path, &[("idempotency-key", &key)], body.clone());
        let first = ask();
        assert_eq!(first.status, 200, "{first:?}");
        answers.push(first);
    }
    let written = entries(&site);
    for (n, ((path, body, other), first)) in story.iter().zip(&answers).enumerate() {
        let key = format!("key-{n}");
        let ask = |body: &Value| server.post_with(&person, path, &[("idempotency-key", &key)], body.clone());
        let again = ask(body);
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{path}");
        assert_eq!(again.header("idempotency-key"), Some(key.as_str()));
        match other.get("nonsense") {
            Some(_) => ask(other).refused(400, "invalid_input"),
            None => ask(other).refused(409, "request_conflict"),
        }
    }
    assert_eq!(entries(&site), written);
    // Another key is another call, and what has become of things since is told.
    server
        .post_with(&person, "/v1/workers/@old/resume", &[("idempotency-key", "new")], json!({}))
        .refused(409, "wrong_state");
}

/// However many ask under one key at once, one of them changes something, and all are told the same.
#[test]
fn a_key_shown_by_many_at_once_has_one_effect() {
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let written = entries(&site);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || {
            let body = json!({"handle": "@bot", "kind": "agent"});
            server.post_with(&person, "/v1/workers", &[("idempotency-key", "one")], body)
        };
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for answer in &answers {
        assert_eq!((answer.status, &answer.body["outcome"]), (200, &json!("created")), "{answer:?}");
    }
    assert_eq!(entries(&site), written + 1);
}

/// Stands between a caller and a server, and loses the first answer to each call of this name.
fn losing(server: &Server, call: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (to, name) = (server.address().to_owned(), format!("POST /v1/call/{call} "));
    std::thread::spawn(move || {
        let mut lost = false;
        for near in listener.incoming() {
            let mut near = near.unwrap();
            let mut far = TcpStream::connect(&to).unwrap();
            while let Some(request) = message(&mut near) {
                far.write_all(&request).unwrap();
                let answer = message(&mut far).unwrap();
                if !lost && request.starts_with(name.as_bytes()) {
                    lost = true;
                    break;
                }
                near.write_all(&answer).unwrap();
            }
        }
    });
    format!("http://{address}")
}

/// A whole message with a length, as both sides send them here.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    bytes.extend(body);
    Some(bytes)
}

#[test]
fn a_remote_caller_repeats_a_change_whose_answer_was_lost() {
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let run = |call: &str, args: &[&str]| {
        let mut onus = site.command(&[args, &["--json"]].concat());
        finish(start(onus.env("ONUS_STORE", losing(&server, call)).env("ONUS_TOKEN", &person)))
    };
    let before = entries(&site);
    let added = run("add_worker", &["worker", "add", "@bot", "--kind", "agent"]).json();
    assert_eq!(added["outcome"], "created", "the first answer, not what is there now: {added}");
    assert_eq!(run("pause_worker", &["worker", "pause", "@bot", "--reason", "rest"]).exit, Some(0));
    assert_eq!(run("resume_worker", &["worker", "resume", "@bot"]).exit, Some(0));
    let raised = run("raise_generation", &["ledger", "raise-generation", "--reason", "lost a day"]).json();
    assert_eq!(raised["generation"], 2, "raised once");
    assert_eq!(entries(&site), before + 4);
    // Whose secret was lost is told which token it was, and has nothing to guess.
    let refused = run("issue_token", &["worker", "token", "add", "@bot"]);
    assert_eq!(refused.code(), "wrong_state");
    let issued = site.by_person(&["worker", "token", "list", "@bot"])["tokens"].clone();
    assert_eq!(issued.as_array().unwrap().len(), 1, "{issued}");
    assert!(format!("{refused:?}").contains(text(&issued[0]["id"])), "{refused:?}");
}

/// The same by hand, on the store itself: what a person types again under the id that was told.
#[test]
fn a_request_id_works_without_a_server() {
    let site = Site::new();
    let pause = |id: &str| {
        site.run(&[
            "worker",
            "pause",
            "@bot",
            "--reason",
            "rest",
            "--request-id",
            id,
            "--as",
            &site.person,
            "--json",
        ])
    };
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    let first = pause("mine");
    assert_eq!((first.exit, pause("mine").stdout), (Some(0), first.stdout));
    assert_eq!(pause("another").code(), "wrong_state");
    let other =
        site.run(&["worker", "resume", "@bot", "--request-id", "mine", "--as", &site.person, "--json"]);
    assert_eq!((other.exit, other.code()), (Some(2), "request_conflict".to_owned()));
}
