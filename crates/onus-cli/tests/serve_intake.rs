//! Webhooks on a real socket: a signature or nothing, one ask one task, and no more power than an agent's.

use crate::support::server::{Reply, Server};
use crate::support::{Site, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

const SETTINGS: &str = "\
intake:
  channels:
    form: { secret_env: FORM_SECRET, worker: '@intake', type: support, url: 'https://form.example/{key}' }
    github: { preset: github, secret_file: github.secret, worker: '@intake' }
    silent: { worker: '@intake' }
    person: { secret_env: FORM_SECRET, worker: '@ada-lovelace' }
    stranger: { secret_env: FORM_SECRET, worker: '@nobody' }
    nobody: { secret_env: FORM_SECRET }
    short: { secret_env: SHORT_SECRET, worker: '@intake' }
";

struct Desk {
    site: Site,
    server: Server,
}

impl Desk {
    fn new() -> Desk {
        let site = Site::new();
        assert_eq!(site.person, "@ada-lovelace");
        site.by_person(&["worker", "add", "@intake", "--kind", "agent"]);
        std::fs::write(site.repo().join("onus.yaml"), SETTINGS).unwrap();
        std::fs::write(site.repo().join("github.secret"), format!("{SECRET}\n")).unwrap();
        let mut command = site.command(&["serve", "--json", "--log", "quiet", "--listen", "127.0.0.1:0"]);
        let server = Server::spawn(command.env("FORM_SECRET", SECRET).env("SHORT_SECRET", "short"));
        Desk { site, server }
    }

    fn send(&self, channel: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.server.try_call("POST", &format!("/v1/intake/{channel}"), headers, Some(body)).unwrap()
    }

    /// Signed with the channel's secret, under a delivery's name.
    fn deliver(&self, channel: &str, delivery: &str, body: &Value) -> Reply {
        let signature = signed(SECRET, &body.to_string());
        self.send(channel, &[("onus-signature", &signature), ("onus-delivery", delivery)], body)
    }

    fn count(&self) -> usize {
        self.site.tasks().len()
    }
}

/// As the guide has senders do it.
fn signed(secret: &str, body: &str) -> String {
    let mut openssl = Command::new("openssl");
    let openssl = openssl.args(["dgst", "-sha256", "-hmac", secret, "-hex"]);
    let mut child = openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    format!("sha256={}", said.trim().rsplit(' ').next().unwrap())
}

#[test]
fn the_same_ask_is_the_same_task() {
    let desk = Desk::new();
    let ask = json!({ "title": "Please help", "key": "77", "priority": "P1", "checks": ["make test"] });
    let first = desk.deliver("form", "d-1", &ask);
    assert_eq!((first.status, first.header("location")), (201, Some("/v1/tasks/T-1")), "{first:#?}");
    let task = first.ok()["task"].clone();
    assert_eq!((&task["origin_ask_ref"], &task["type"]), (&json!("form:77"), &json!("support")));
    assert_eq!((&task["created_by"], &task["priority"]), (&json!("@intake"), &json!("P1")));
    assert_eq!(task["checks"][0]["state"], "proposed", "nobody here let it run");
    // The same delivery; the same ask in another delivery; the same ask in other words.
    let edited = json!({ "title": "Please help quickly", "key": "77" });
    for (delivery, body) in [("d-1", &ask), ("d-2", &ask), ("d-3", &edited)] {
        let again = desk.deliver("form", delivery, body);
        assert_eq!((again.status, &again.body["outcome"]), (200, &json!("existing")), "{again:#?}");
        assert_eq!(again.body["task"]["id"], "T-1");
    }
    // A delivery's name is one delivery's.
    desk.deliver("form", "d-1", &json!({ "title": "Another", "key": "78" })).refused(409, "request_conflict");
    assert_eq!(desk.count(), 1);
    assert_eq!(desk.deliver("form", "d-4", &json!({ "title": "Another", "key": "78" })).status, 201);
    desk.site.assert_sound();
}

#[test]
fn nothing_is_read_without_a_good_signature() {
    let desk = Desk::new();
    let ask = json!({ "title": "Please help", "key": "77" });
    let good = signed(SECRET, &ask.to_string());
    let wrong = signed("another secret of some length", &ask.to_string());
    let of_another_body = signed(SECRET, "{}");
    for headers in [
        vec![],
        vec![("onus-signature", "")],
        vec![("onus-signature", "sha256=00")],
        vec![("onus-signature", wrong.as_str())],
        vec![("onus-signature", of_another_body.as_str())],
        vec![("x-hub-signature-256", good.as_str())],
    ] {
        desk.send("form", &headers, &ask).refused(401, "unauthenticated");
    }
    // Also what makes no sense is not told so before it is believed.
    desk.send("form", &[("onus-signature", &good)], &json!({ "nonsense": 1 }))
        .refused(401, "unauthenticated");
    desk.send("form", &[("onus-signature", &good)], &ask).ok();
    desk.deliver("form", "d", &json!({ "nonsense": 1 })).refused(400, "invalid_input");
    let long = json!({ "title": "x".repeat(2_000_000), "key": 1 });
    desk.deliver("form", "e", &long).refused(413, "invalid_input");
    let token = desk.site.token(&desk.site.person);
    desk.server.post(&token, "/v1/intake/form", ask).refused(401, "unauthenticated");
    assert_eq!(desk.count(), 1);
}

#[test]
fn a_channel_that_is_not_set_up_takes_nothing() {
    let desk = Desk::new();
    let ask = json!({ "title": "a", "key": "1" });
    desk.deliver("unknown", "1", &ask).refused(404, "unknown_name");
    desk.deliver("silent", "2", &ask).refused(403, "not_permitted");
    desk.deliver("short", "3", &ask).refused(403, "not_permitted");
    desk.deliver("nobody", "4", &ask).refused(403, "not_permitted");
    desk.deliver("person", "5", &ask).refused(403, "not_permitted");
    desk.deliver("stranger", "6", &ask).refused(403, "unknown_worker");
    assert_eq!(desk.count(), 0);
}

#[test]
fn an_issue_on_github_becomes_a_task() {
    let desk = Desk::new();
    let mut event = json!({
        "action": "opened", "issue": { "title": "<b>Broken</b>", "number": 12 },
        "repository": { "full_name": "acme/api" },
    });
    let send = |name: &str, delivery: &str, body: &Value| {
        let signature = signed(SECRET, &body.to_string());
        let headers = [
            ("x-hub-signature-256", signature.as_str()),
            ("x-github-event", name),
            ("x-github-delivery", delivery),
        ];
        desk.send("github", &headers, body)
    };
    assert_eq!(send("ping", "1", &json!({ "zen": "…" })).ok()["outcome"], "ignored");
    let made = send("issues", "2", &event).ok();
    assert_eq!(
        (&made["outcome"], &made["task"]["origin_ask_ref"]),
        (&json!("created"), &json!("github:acme/api#12"))
    );
    event["action"] = "closed".into();
    assert_eq!(send("issues", "3", &event).ok()["outcome"], "ignored");
    event["action"] = "edited".into();
    assert_eq!(send("issues", "4", &event).ok()["outcome"], "existing");
    let shown = desk.site.ok(&["show", "T-1"]);
    assert_eq!(text(&shown["task"]["title"]), "<b>Broken</b>", "data, whatever it looks like");
    desk.site.assert_sound();
}

#[test]
fn a_thread_of_messages_is_one_task() {
    let site = Site::new();
    site.by_person(&["worker", "add", "@intake", "--kind", "agent"]);
    std::fs::write(
        site.repo().join("onus.yaml"),
        "intake: { channels: { mail: { type: support, priority: P1 } } }\n",
    )
    .unwrap();
    let send = |message: &str| {
        let answer =
            site.feed(&["intake", "email", "--as", "@intake", "--json"], message.as_bytes().to_vec());
        assert_eq!(answer.exit, Some(0), "{answer:#?}");
        answer.json()
    };
    let first = send("Message-ID: <1@example.org>\nSubject: The export is empty\n\nIt really is.\n");
    assert_eq!(
        (&first["outcome"], &first["task"]["origin_ask_ref"]),
        (&json!("created"), &json!("mail:1@example.org"))
    );
    assert_eq!((&first["task"]["type"], &first["task"]["priority"]), (&json!("support"), &json!("P1")));
    assert!(first["task"]["body"].is_null(), "the words stay where they are");
    for again in [
        "Message-ID: <1@example.org>\nSubject: The export is empty\n\n",
        "Message-ID: <2@example.org>\nReferences: <1@example.org>\nSubject: Re: The export is empty\n\n",
    ] {
        assert_eq!(send(again)["outcome"], "existing");
    }
    let nothing = site.feed(&["intake", "email", "--as", "@intake", "--json"], b"no message".to_vec());
    assert_eq!((nothing.exit, nothing.code()), (Some(2), "invalid_input".to_owned()));
    assert_eq!(site.tasks().len(), 1);
    site.assert_sound();
}

#[test]
fn a_paused_channel_brings_nothing_in_and_a_dropped_ask_says_so() {
    let desk = Desk::new();
    let ask = |key: &str| json!({ "title": "Please help", "key": key });
    assert_eq!(desk.deliver("form", "d-1", &ask("1")).status, 201);
    desk.site.by_person(&["worker", "pause", "@intake", "--reason", "a flood"]);
    let refused = desk.deliver("form", "d-2", &ask("2"));
    refused.refused(403, "not_permitted");
    assert_eq!(desk.count(), 1);
    desk.site.by_person(&["worker", "resume", "@intake"]);
    desk.site.by_person(&["drop", "T-1", "--reason", "never mind"]);
    let again = desk.deliver("form", "d-3", &ask("1")).ok();
    assert!(text(&again["detail"]).contains("was dropped"), "{again}");
}
