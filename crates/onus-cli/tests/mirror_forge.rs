//! GitHub and GitLab as mirrors, against a server with their REST interfaces and a memory (`support/forge.rs`).

use crate::support::forge::{Forge, KEY};
use crate::support::judge::Judge;
use crate::support::server::Server;
use crate::support::{HANG, Site, text};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn mirrored(forge: &Forge) -> Site {
    let site = Site::new();
    site.by_person(&["worker", "add", "@forge", "--kind", "agent"]);
    std::fs::write(site.repo().join("key"), KEY).unwrap();
    let kind = if forge.is_gitlab { "gitlab" } else { "github" };
    let settings = format!(
        "mirrors:\n  {kind}:\n    url: http://127.0.0.1:{}\n    key_file: key\n    project: acme/api\n    create: always\n    \
         worker: \"@forge\"\n    poll: 1ms\n    silence: 1s\n    fields: {{agent: \"agent:\", workstation: \"at:\", task: \"onus:\"}}\n    \
         statuses: {{in_progress: doing, blocked: waiting}}\n",
        forge.port
    );
    std::fs::write(site.repo().join("onus.yaml"), settings).unwrap();
    site
}

fn sync(site: &Site) -> Value {
    let stand = site.ok(&["mirror", "sync"])["mirrors"][0].clone();
    assert_eq!((stand["pending"].as_i64(), stand["stuck"].as_i64()), (Some(0), Some(0)), "{stand:#}");
    stand
}

fn both_ways(is_gitlab: bool, judge: Option<Arc<Judge>>) {
    let forge = Forge::judged(is_gitlab, judge.clone());
    let site = mirrored(&forge);
    let agents = site.agents(1);
    let channel = if is_gitlab { "gitlab" } else { "github" };
    // Every word of the settings is tried on an issue of its own, which is nobody's task and is used again.
    for _ in 0..2 {
        let checked = site.ok(&["mirror", "check", channel]);
        let tried: Vec<&str> =
            checked["tried"].as_array().unwrap().iter().map(|one| text(&one["what"])).collect();
        let words = [
            "labels of agent:",
            "labels of at:",
            "labels of onus:",
            "the label doing",
            "the label waiting",
            "comments",
        ];
        assert!(words.iter().all(|word| tried.contains(word)), "{tried:#?}");
    }
    let [trial] = &forge.issues()[..] else { panic!("one to try on: {:#?}", forge.issues()) };
    assert_eq!((text(&trial["state"]), &trial["labels"]), ("closed", &json!([])), "{trial:#}");
    assert!(forge.comments(1).is_empty(), "what was tried is taken away");

    // In: an issue is one task, however often it is seen.
    let asked = forge.ask("Mend the door");
    sync(&site);
    sync(&site);
    let tasks = site.tasks();
    assert_eq!(tasks.len(), 1, "{tasks:#?}");
    assert_eq!(text(&tasks[0]["origin_ask_ref"]), format!("{channel}:acme/api#{asked}"));
    let task = text(&tasks[0]["id"]).to_owned();
    forge.relabel(asked, &["bug"]);

    // Out: labels, state, comments; labels of others stay.
    let claimed = site.ok(&["claim", &task, "--as", "@a1", "--workstation", &agents[0].workstation]);
    let by = ["--as", "@a1", "--lease", text(&claimed["lease"]["token"])];
    site.ok(&[&["note", &task, "the hinge is loose"][..], &by].concat());
    sync(&site);
    assert_eq!(site.task(&task)["tags"], json!(["bug"]), "labels of others are tags here");
    let mut labels = forge.labels(asked);
    labels.sort_unstable();
    assert_eq!(labels, ["agent:@a1", "at:ws-1", "bug", "doing", &format!("onus:{task}")]);
    forge.relabel(asked, &["bug", "agent:@nobody", "at:ws-1", "doing", &format!("onus:{task}")]);
    let differs = site.ok(&["mirror", "diff", channel]);
    assert_eq!((text(&differs["drift"][0]["there"]), text(&differs["drift"][0]["here"])), ("@nobody", "@a1"));

    // What is made here is made there once, though nobody hears the answer, and asks for nothing back.
    forge.lose(1);
    let own = site.add("Made here");
    site.ok(&["mirror", "sync"]);
    for _ in 0..3 {
        site.by_person(&["mirror", "retry", channel]);
        site.ok(&["mirror", "sync"]);
    }
    sync(&site);
    assert_eq!(forge.issues().len(), 3, "{:#?}", forge.issues());
    assert_eq!(site.tasks().len(), 2);

    forge.fail(3);
    for id in [&task, &own] {
        site.by_person(&["complete", id, "--force", "--reason", "by hand", "--resolution", "it holds"]);
    }
    for _ in 0..5 {
        site.by_person(&["mirror", "retry", channel]);
        site.ok(&["mirror", "sync"]);
    }
    sync(&site);
    for issue in forge.issues() {
        assert_eq!(issue["state"], "closed", "{issue:#}");
    }
    let comments = forge.comments(asked);
    for words in ["the hinge is loose", "it holds", "BY FORCE"] {
        assert_eq!(comments.iter().filter(|text| text.contains(words)).count(), 1, "{words}: {comments:#?}");
    }
    std::fs::write(site.repo().join("key"), "0123456789abcdef-wrong").unwrap();
    let refused = site.run(&["mirror", "check", channel, "--json"]);
    assert!(
        refused.stderr.contains("the key is not accepted") && !refused.stderr.contains("wrong"),
        "{refused:#?}"
    );
    if let Some(judge) = judge {
        judge.assert_content();
    }
    site.assert_sound();
}

/// Every request of ours is held against what GitHub publishes about its interface, where a server can be made of that.
#[test]
fn issues_of_github_go_both_ways() {
    both_ways(false, Judge::of_github(""));
}

#[test]
fn issues_of_gitlab_go_both_ways() {
    both_ways(true, Judge::of_gitlab("/api/v4"));
}

/// A judge that takes everything would prove nothing.
#[test]
fn what_a_description_does_not_have_is_told_by_its_judge() {
    let (Some(github), Some(gitlab)) = (Judge::of_github(""), Judge::of_gitlab("/api/v4")) else { return };
    let headers = "host: forge.example\r\naccept: application/json\r\ncontent-type: application/json\r\n";
    let says = |judge: &Judge, request: &str, body: &str, words: &str| {
        let before = judge.violations().len();
        let length = format!("{headers}content-length: {}\r\n", body.len());
        judge.hear(&format!("{request} HTTP/1.1\r\n{length}"), body);
        let said = judge.violations()[before..].join("\n");
        assert!(said.contains(words), "{request} {body}: {said}");
    };
    let issues = "/repos/acme/api/issues";
    says(&github, &format!("GET {issues}?state=any"), "", "query parameter state");
    says(&github, &format!("POST {issues}"), r#"{"title":"t","labels":"bug"}"#, "labels must be array");
    says(&github, &format!("PUT {issues}/1"), "{}", "405");
    says(&github, "GET /repos/acme/api/tickets", "", "404");
    let issues = "/api/v4/projects/acme%2Fapi/issues";
    says(&gitlab, &format!("PUT {issues}/1"), r#"{"state_event":"closed"}"#, "state_event");
    says(&gitlab, &format!("POST {issues}"), r#"{"description":"no title"}"#, "title");
    says(&gitlab, &format!("GET {issues}?order_by=number"), "", "order_by");
}

#[test]
fn labels_that_are_dropped_are_told_before_anybody_relies_on_them() {
    let forge = Forge::start(false);
    let site = mirrored(&forge);
    forge.drop_labels();
    let checked = site.run(&["mirror", "check", "github", "--json"]);
    assert_eq!((checked.exit, checked.code().as_str()), (Some(5), "mirror_stuck"), "{checked:#?}");
    let findings = checked.error()["findings"].as_array().unwrap().clone();
    assert_eq!(findings.len(), 5, "three prefixes and two words: {findings:#?}");
    assert!(findings.iter().all(|one| text(&one["detail"]).contains("was dropped")), "{findings:#?}");
}

#[test]
fn where_an_assignment_must_be_told_first_nobody_begins_before_it_is() {
    let forge = Forge::start(false);
    let site = mirrored(&forge);
    let agents = site.agents(1);
    let path = site.repo().join("onus.yaml");
    let settings = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, settings.replace("    create:", "    at: assignment-required\n    create:"))
        .unwrap();
    let task = site.add("Only when all know");
    let claim = ["claim", &task, "--as", "@a1", "--workstation", &agents[0].workstation, "--json"];
    forge.fail(1_000);
    let refused = site.run(&claim);
    assert_eq!((refused.exit, refused.code().as_str()), (Some(5), "mirror_stuck"), "{refused:#?}");
    let left = site.task(&task);
    assert_eq!((text(&left["state"]), left["assignment"].is_null()), ("open", true), "{left:#}");
    forge.fail(0);
    site.by_person(&["mirror", "retry", "github"]);
    assert_eq!(site.run(&claim).exit, Some(0));
    assert!(forge.labels(1).contains(&"agent:@a1".to_owned()), "it is there when the claim returns");
    site.assert_sound();
}

#[test]
fn a_server_tells_by_itself_and_one_that_was_killed_leaves_nothing_out_or_twice() {
    let forge = Forge::start(false);
    let site = mirrored(&forge);
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let end = Instant::now() + HANG;
        while !is_so() {
            assert!(Instant::now() < end, "never {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let mut server = Server::start(&site);
    for round in 1..=3 {
        site.add(&format!("Work {round}"));
        until("the server told of it", &|| forge.issues().len() == round);
        // Whatever it is at.
        server.signal("KILL");
        server = Server::start(&site);
    }
    until("all was told", &|| site.ok(&["mirror", "status"])["mirrors"][0]["pending"] == 0);
    let says = |name: &str, count: usize| {
        let mut answer = ureq::get(format!("{}/metrics", server.url)).call().unwrap();
        let told = answer.body_mut().read_to_string().unwrap();
        told.contains(&format!("{name}{{mirror=\"github\"}} {count}"))
    };
    assert!(says("mirror_pending_tasks", 0) && says("mirror_stuck_tasks", 0));
    assert_eq!(forge.issues().len(), 3, "each task is one issue");
    for number in 1..=3 {
        assert_eq!(forge.comments(number).len(), 1, "known once: {:#?}", forge.comments(number));
    }
    // What waits for a person is told to whoever watches the server.
    forge.refuse(true);
    site.add("Nobody takes it");
    until("it is stuck", &|| says("mirror_stuck_tasks", 1));
    forge.refuse(false);
    site.by_person(&["mirror", "retry", "github"]);
    until("it was told", &|| says("mirror_pending_tasks", 0) && says("mirror_stuck_tasks", 0));
}
