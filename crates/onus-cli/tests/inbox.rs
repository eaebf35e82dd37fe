//! Messages to holders, questions to people, and the inbox of each (mission E8).

use crate::support::at_work::{at_work, commit};
use crate::support::server::Server;
use crate::support::{Site, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

fn hook(site: &Site, dir: &std::path::Path, event: &str) -> (Option<i32>, String, String) {
    let input = json!({ "cwd": dir, "session_id": "s-1", "hook_event_name": "PostToolUse" });
    let mut command = site.command(&["hook", "agent", event]);
    let command = command.env("ONUS_AS", "@bot");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(input.to_string().as_bytes()));
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn kinds(inbox: &Value) -> Vec<&str> {
    inbox["items"].as_array().unwrap().iter().map(|item| text(&item["kind"])).collect()
}

#[test]
fn a_question_waits_for_the_person_asked_whose_answer_lets_the_work_go_on() {
    let (site, task, tree) = at_work();
    let block = ["block", &task, "--on", "person:@mia", "--summary", "Which colour?", "--as", "@bot"];
    site.ok(&block);
    let inbox = site.ok(&["inbox", "--as", "@mia"]);
    assert_eq!(kinds(&inbox), ["question"], "{inbox:#}");
    let item = &inbox["items"][0];
    assert_eq!((text(&item["task"]), text(&item["from"])), (task.as_str(), "@bot"));
    assert!(text(&item["text"]).contains("Which colour?"), "{item}");
    assert_eq!(text(&item["action"]), format!("onus say {task} TEXT"));
    // Nobody else has it, and nobody else lifts it.
    assert!(!kinds(&site.ok(&["inbox", "--as", &site.person])).contains(&"question"));
    let refused = site.run(&["unblock", &task, "--as", &site.person, "--json"]);
    assert_eq!(refused.code(), "lease_required");
    let answered = site.ok(&["say", &task, "Blue.", "--as", "@mia"]);
    assert_eq!(text(&answered["task"]["state"]), "in_progress");
    assert_eq!(kinds(&site.ok(&["inbox", "--as", "@mia"])), Vec::<&str>::new());
    // The agent hears of it at its next step, once.
    let (code, said, _) = hook(&site, &tree, "post-tool-use");
    let said: Value = serde_json::from_str(&said).unwrap();
    let words = text(&said["hookSpecificOutput"]["additionalContext"]);
    assert!(code == Some(0) && words.contains("@mia") && words.contains("\"Blue.\""), "{said}");
    assert_eq!(hook(&site, &tree, "post-tool-use").1, "");
    site.ok(&["note", &task, "blue it is", "--as", "@bot"]);
    site.assert_sound();
}

#[test]
fn unblock_by_the_person_asked_is_an_answer_without_words() {
    let (site, task, _) = at_work();
    site.ok(&["block", &task, "--on", "person:@mia", "--as", "@bot"]);
    let lifted = site.ok(&["unblock", &task, "--as", "@mia"]);
    assert_eq!(text(&lifted["task"]["state"]), "in_progress");
    site.assert_sound();
}

#[test]
fn what_is_said_reaches_a_holder_by_name_or_by_task_and_stays_until_it_is_read() {
    let (site, task, _) = at_work();
    site.by_person(&["say", "@bot", "mind \u{1f600} the gap"]);
    site.by_person(&["say", &task, "and the door"]);
    let inbox = site.ok(&["inbox", "--as", "@bot"]);
    assert_eq!(kinds(&inbox), ["message", "message"], "{inbox:#}");
    let prime = site.run(&["prime", "--as", "@bot"]);
    assert!(prime.stdout.contains("mind 😀 the gap"), "{}", prime.stdout);
    assert_eq!(kinds(&site.ok(&["inbox", "--as", "@bot"])), Vec::<&str>::new(), "prime has told it");
    // By the holder it goes to who asked for the work.
    site.ok(&["say", &task, "what door?", "--as", "@bot"]);
    let own = site.ok(&["inbox", "--as", &site.person]);
    assert_eq!(text(&own["items"][0]["text"]), "what door?", "{own:#}");
    let left = site.ok(&["inbox", "read", "--as", &site.person]);
    assert!(!kinds(&left).contains(&"message"), "{left:#}");
    let nobody = site.run(&["say", "@mia", "hello", "--as", &site.person, "--json"]);
    assert_eq!(nobody.code(), "invalid_input", "she holds nothing, and neither does the sender");
    for (args, code) in [
        (["say", "T-99", "x"], "unknown_task"),
        (["say", &task, " "], "invalid_input"),
        (["say", &task, "\u{1b}[2J"], "invalid_input"),
    ] {
        let mut args = args.to_vec();
        args.extend(["--as", &site.person, "--json"]);
        assert_eq!(site.run(&args).code(), code, "{args:?}");
    }
    site.assert_sound();
}

#[test]
fn a_person_finds_reviews_checks_and_exceptions_in_the_inbox() {
    let (site, task, _) = at_work();
    let other = site.add("another");
    site.ok(&["check", &task, "--add", "make test", "--as", "@bot"]);
    site.by_person(&["dep", "add", &task, &other]);
    let request = [
        "exception",
        "request",
        &task,
        "--on",
        &other,
        "--reason",
        "late",
        "--rollback",
        "revert",
        "--as",
        "@bot",
    ];
    site.ok(&request);
    let inbox = site.by_person(&["inbox"]);
    let kinds = kinds(&inbox);
    assert!(kinds.contains(&"check") && kinds.contains(&"exception"), "{inbox:#}");
    for item in inbox["items"].as_array().unwrap() {
        assert!(text(&item["action"]).starts_with("onus "), "{item}");
    }
    let agents = site.ok(&["inbox", "--as", "@bot"]);
    assert_eq!(agents["items"], json!([]), "an agent approves nothing");
}

#[test]
fn comments_on_lines_reach_the_holder_and_a_rejection_sends_the_work_back() {
    let (site, task, tree) = at_work();
    commit(&site, &tree, &[("src/a.rs", &"line\n".repeat(12)), ("src/b.rs", "line\n")]);
    site.by_person(&["review", &task, "--comment", "src/a.rs:3", "why?"]);
    site.ok(&["block", &task, "--on", "person:@mia", "--summary", "please look", "--as", "@bot"]);
    let args = [
        "review",
        &task,
        "--reject",
        "--as-implemented",
        "--note",
        "not yet",
        "--comment",
        "src/a.rs:12",
        "off by one",
        "--comment",
        "src/b.rs:1",
        "no licence",
        "--as",
        "@mia",
    ];
    let back = site.ok(&args);
    assert_eq!(text(&back["task"]["state"]), "in_progress", "the same holder goes on");
    assert_eq!(text(&back["task"]["assignment"]["workstation"]), "ws-1");
    let (_, said, _) = hook(&site, &tree, "post-tool-use");
    for words in ["src/a.rs:3: why?", "src/a.rs:12: off by one", "src/b.rs:1: no licence", "rejected"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let bad =
        ["review", &task, "--comment", "src/a.rs", "x", "--comment", "../x:1", "y", "--as", "@mia", "--json"];
    assert_eq!(site.run(&bad).code(), "invalid_input");
    site.assert_sound();
}

#[test]
fn the_inbox_is_the_same_through_a_server() {
    let (site, task, _) = at_work();
    let server = Server::start(&site);
    let mia = text(&site.ok(&["worker", "token", "add", "@mia", "--as", "@mia"])["secret"]).to_owned();
    let bot = site.token("@bot");
    site.ok(&["block", &task, "--on", "person:@mia", "--summary", "Which?", "--as", "@bot"]);
    let inbox = server.get(&mia, "/v1/inbox").ok();
    assert_eq!(kinds(&inbox), ["question"], "{inbox:#}");
    let path = format!("/v1/tasks/{task}/messages");
    server.post(&bot, &path, json!({ "text": "are you there?" })).ok();
    let said = server.post(&mia, &path, json!({ "text": "this one" })).ok();
    assert_eq!(text(&said["task"]["state"]), "in_progress");
    let told = server.get(&bot, &path).ok();
    assert_eq!(text(&told["messages"][0]["text"]), "this one");
    let through = told["messages"][0]["seq"].clone();
    server.post(&bot, &format!("{path}/read"), json!({ "through": through })).ok();
    assert_eq!(server.get(&bot, &path).ok()["messages"], json!([]));
    let mine = server.get(&mia, "/v1/inbox").ok();
    assert_eq!(text(&mine["items"][0]["text"]), "are you there?");
}
