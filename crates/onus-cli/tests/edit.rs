//! `onus edit` and its other doors: what is asked for is put differently, once, and the record says so.

use crate::support::server::{Server, key};
use crate::support::{ONUS, Site, text};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn a_person_edits_and_the_record_says_what_was_before() {
    let site = Site::new();
    let task = site.add("a tpyo");
    let args =
        ["edit", &task, "--title", "a typo", "--priority", "P0", "--tag", "x", "--tag", "y", "--body", "one"];
    let edited = site.by_person(&args);
    assert_eq!((text(&edited["task"]["title"]), text(&edited["task"]["priority"])), ("a typo", "P0"));
    site.by_person(&["edit", &task, "--tag", "-x", "--tag", "+z", "--sprint", "12", "--risk", "high"]);
    let edited = site.by_person(&["edit", &task, "--sprint", "none", "--risk", "none", "--body", "two"]);
    assert_eq!((&edited["task"]["tags"], &edited["task"]["sprint"]), (&json!(["y", "z"]), &Value::Null));
    assert_eq!((text(&edited["task"]["risk"]), text(&edited["task"]["body"])), ("normal", "two"));
    let log = site.ok(&["ledger", "log", "--task", &task]);
    let data = &log["entries"][1]["data"];
    assert_eq!(
        (text(&data["before"]["title"]), text(&data["after"]["title"])),
        ("a tpyo", "a typo"),
        "{log:#}"
    );
    let shown = site.ok(&["show", &task]);
    assert!(shown["notes"].to_string().contains("earlier_body"), "{shown:#}");
    site.assert_sound();
}

#[test]
fn a_repeated_request_has_one_effect_and_the_first_answer() {
    let site = Site::new();
    let task = site.add("a task");
    let edit = ["edit", &task, "--body", "one", "--tag", "+x", "--request-id", "e1"];
    let first = site.by_person(&edit);
    site.by_person(&["edit", &task, "--body", "two", "--tag", "-x"]);
    assert_eq!(site.by_person(&edit), first, "its body is told from the note that kept it");
    let other =
        site.run(&["edit", &task, "--body", "three", "--request-id", "e1", "--as", &site.person, "--json"]);
    assert_eq!(other.code(), "request_conflict");
    site.assert_sound();
}

#[test]
fn several_tasks_get_the_same_change() {
    let site = Site::new();
    let (one, two) = (site.add("one"), site.add("two"));
    let edited = site.by_person(&["edit", &one, &two, "--priority", "P1", "--tag", "+late"]);
    let tasks = edited["tasks"].as_array().unwrap();
    assert!(tasks.len() == 2 && tasks.iter().all(|task| task["priority"] == "P1"), "{edited:#}");
    let refused = site.run(&["edit", &one, "T-99", "--priority", "P2", "--as", &site.person, "--json"]);
    assert_eq!(refused.code(), "unknown_task");
    let none = site.run(&["edit", &one, "--as", &site.person, "--json"]);
    assert_eq!(none.code(), "invalid_input");
    let piped = site.run(&["edit", &one, "--editor", "--as", &site.person, "--json"]);
    assert_eq!(piped.code(), "invalid_input", "no terminal, no editor");
}

#[test]
fn an_agent_edits_its_own_and_a_holder_its_tags() {
    let site = Site::new();
    let agent = &site.agents(1)[0];
    let task = site.add("a task");
    let by_agent = |args: &[&str]| site.run(&[args, &["--as", &agent.handle, "--json"]].concat());
    assert_eq!(by_agent(&["edit", &task, "--title", "mine"]).code(), "not_permitted");
    assert!(by_agent(&["claim", &task, "--workstation", &agent.workstation]).is_ok());
    assert!(by_agent(&["edit", &task, "--tag", "+seen"]).is_ok());
    site.by_person(&["edit", &task, "--scope", "src/**"]);
    let shown = site.ok(&["show", &task]);
    assert!(shown["notes"].to_string().contains("scope: none -> src/**"), "the holder is told: {shown:#}");
    let asked = by_agent(&["add", "mine", "--check", "make test", "--risk", "high"]).json();
    let own = text(&asked["task"]["id"]).to_owned();
    assert!(by_agent(&["edit", &own, "--title", "mine, better"]).is_ok());
    assert_eq!(by_agent(&["edit", &own, "--risk", "none"]).code(), "human_required");
    assert_eq!(by_agent(&["edit", &own, "--check", "-make test"]).code(), "human_required");
    site.assert_sound();
}

#[test]
fn of_two_editors_over_http_the_second_is_told() {
    let site = Site::new();
    let agent = &site.agents(1)[0];
    let (person, bot) = (site.token(&site.person), site.token(&agent.handle));
    let server = Server::start(&site);
    let task = server.add(&person, "a task");
    let patch = |token: &str, headers: &[(&str, &str)], body: Value| {
        let bearer = format!("Bearer {token}");
        let own = [("authorization", bearer.as_str())];
        let path = format!("/v1/tasks/{task}");
        server.try_call("PATCH", &path, &[&own[..], headers].concat(), Some(&body)).unwrap()
    };
    let seen = server.get(&person, &format!("/v1/tasks/{task}"));
    let version = seen.header("etag").unwrap().to_owned();
    let at = [("if-match", version.as_str())];
    let first = patch(&person, &at, json!({ "title": "first", "tags": ["a"] })).ok();
    assert_eq!(text(&first["task"]["title"]), "first");
    patch(&person, &at, json!({ "title": "second" })).refused(412, "precondition_failed");
    let named = key();
    let once = [("idempotency-key", named.as_str())];
    let told = patch(&person, &once, json!({ "tags": ["+b"], "sprint": "12" })).ok();
    assert_eq!(patch(&person, &once, json!({ "tags": ["+b"], "sprint": "12" })).ok(), told);
    assert_eq!(told["task"]["tags"], json!(["a", "b"]));
    assert_eq!(patch(&person, &[], json!({ "sprint": null })).ok()["task"]["sprint"], Value::Null);
    patch(&bot, &[], json!({ "title": "mine" })).refused(403, "not_permitted");
    patch(&person, &[], json!({ "colour": "red" })).refused(400, "invalid_input");
    patch(&person, &[], json!({ "title": "", "parent": "T-77", "scope": ["../x"] }))
        .refused(400, "invalid_input");
    // Through the server the command line's call is the same command.
    let far = ["--store", &server.url, "edit", &task, "--title", "from afar", "--json"];
    let done = site.command(&far).env("ONUS_TOKEN", &person).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let shown = server.get(&person, &format!("/v1/tasks/{task}")).ok();
    assert_eq!(text(&shown["task"]["title"]), "from afar");
    site.assert_sound();
}

/// `onus edit T-1 --editor` by the person at a terminal, with a shell's words for an editor: what the terminal shows.
fn at_a_terminal(site: &Site, editor: &str) -> String {
    let path = site.root().join("editor");
    std::fs::write(&path, format!("#!/bin/sh\n{editor}\n")).unwrap();
    let mut terminal = Command::new("script");
    let line = format!("{ONUS} edit T-1 --editor");
    site.surroundings(&mut terminal).args(["-qec", &line, "/dev/null"]).env("ONUS_AS", &site.person);
    terminal.env("EDITOR", format!("sh {}", path.display())).env("TMPDIR", site.root()).env("NO_COLOR", "1");
    let shown = terminal.env("TERM", "dumb").output().unwrap();
    String::from_utf8_lossy(&shown.stdout).replace("\r\n", "\n")
}

#[test]
fn an_editor_opens_the_body_and_nothing_that_was_written_is_lost() {
    let site = Site::new();
    site.by_person(&["add", "a task", "--body", "one"]);
    let body = || text(&site.ok(&["show", "T-1"])["task"]["body"]).to_owned();
    let drafts = || {
        let names = std::fs::read_dir(site.root()).unwrap().map(|file| file.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|end| end == "md")).collect::<Vec<_>>()
    };
    let said = at_a_terminal(&site, r#"sed -i "s/one/two/" "$1""#);
    assert!(said.contains("T-1 edited"), "{said}");
    assert_eq!((body(), drafts().len()), ("two".to_owned(), 0));
    let said = at_a_terminal(&site, "true");
    assert!(said.contains("is like that already"), "{said}");
    let said = at_a_terminal(&site, r#"echo three > "$1"; exit 3"#);
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!((body(), drafts().len()), ("two".to_owned(), 0));

    // Somebody else is quicker: their words stay, and so do mine.
    let quicker = format!(r#"{ONUS} edit T-1 --body theirs >/dev/null; echo mine > "$1""#);
    let said = at_a_terminal(&site, &quicker);
    let kept = drafts();
    assert_eq!((body(), kept.len()), ("theirs".to_owned(), 1), "{said}");
    assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), "mine\n");
    assert!(said.contains(&format!("your words are kept in {}", kept[0].display())), "{said}");
    assert!(said.contains("onus edit T-1 --body - <"), "{said}");
    site.assert_sound();
}
