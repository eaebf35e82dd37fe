//! `onus milestone`: exactly what is missing, until nothing is; who may close; and that the record keeps it.

use crate::support::server::Server;
use crate::support::{Answer, Site, text};
use serde_json::{Value, json};

fn site() -> Site {
    let site = Site::new();
    site.agents(2);
    site
}

/// A task of sprint 12 that `@a1` has done, proven by `test -f README`.
fn done(site: &Site, title: &str) -> String {
    let added = site.by_person(&["add", title, "--sprint", "12", "--check", "test -f README"]);
    let task = text(&added["task"]["id"]).to_owned();
    site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
    site.ok(&["check", &task, "--as", "@a1"]);
    site.ok(&["complete", &task, "--as", "@a1", "--resolution", "done"]);
    task
}

fn readme(site: &Site) {
    std::fs::write(site.repo().join("README"), "hello\n").unwrap();
    site.git(&["add", "README"]);
    site.git(&["commit", "--quiet", "--message=readme"]);
}

fn missing(view: &Value) -> Vec<String> {
    let all = view["missing"].as_array().unwrap().iter();
    all.map(|one| format!("{} {}", text(&one["code"]), one["task"].as_str().unwrap_or("-"))).collect()
}

fn person(site: &Site, args: &[&str]) -> Answer {
    site.run(&[args, &["--as", &site.person, "--json"]].concat())
}

#[test]
fn it_closes_when_nothing_is_missing_and_not_before() {
    let site = site();
    readme(&site);
    let first = done(&site, "first");
    let added = site.by_person(&["milestone", "add", "sprint-12", "--sprint", "12", "--title", "Twelve"]);
    assert_eq!(added["outcome"], "created");
    assert_eq!(missing(&added["milestone"]), [format!("checks_missing {first}")]);
    let again = site.by_person(&["milestone", "add", "sprint-12", "--sprint", "12", "--title", "Twelve"]);
    assert_eq!(again["outcome"], "existing");
    assert_eq!(person(&site, &["milestone", "add", "sprint-12", "--sprint", "13"]).code(), "invalid_input");

    // A task that comes later and shares the sprint belongs to it, too.
    let second = text(&site.by_person(&["add", "second", "--sprint", "12"])["task"]["id"]).to_owned();
    let refused = person(&site, &["milestone", "close", "sprint-12"]);
    assert_eq!((refused.exit, refused.code().as_str()), (Some(5), "milestone_incomplete"), "{refused:#?}");
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    let found = error["error"]["findings"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|one| one["hint"].is_string() && one["task"].is_string()));
    let verified = person(&site, &["milestone", "verify", "sprint-12"]);
    assert_eq!((verified.exit, verified.code().as_str()), (Some(5), "milestone_incomplete"));

    site.ok(&["claim", &second, "--as", "@a2", "--workstation", "ws-2"]);
    site.ok(&["complete", &second, "--as", "@a2", "--resolution", "done"]);
    let shown = site.by_person(&["milestone", "show", "sprint-12"]);
    assert_eq!(missing(&shown), [format!("checks_missing {first}")], "proven before the last was complete");
    let verified = site.by_person(&["milestone", "verify", "sprint-12"]);
    assert_eq!((&verified["ran"], missing(&verified["milestone"]).len()), (&json!(1), 0), "{verified:#}");

    let by_agent = site.run(&["milestone", "close", "sprint-12", "--as", "@a1", "--json"]);
    assert_eq!(by_agent.code(), "human_required");
    let closed = site.by_person(&["milestone", "close", "sprint-12"]);
    assert_eq!((&closed["state"], &closed["closed"]["intact"]), (&json!("closed"), &json!(true)));
    assert_eq!(text(&closed["closed_by"]), site.person);
    assert_eq!(text(&closed["closed"]["fingerprint"]).len(), 64);
    let again = site.by_person(&["milestone", "close", "sprint-12"]);
    assert_eq!(again["closed"], closed["closed"], "closed once");
    let entries = site.ledger();
    let last = entries.iter().rfind(|entry| entry["verb"] == "milestone_closed").unwrap();
    assert_eq!(last["data"]["fingerprint"], closed["closed"]["fingerprint"]);

    // What happens later is told beside what was verified then.
    site.by_person(&["reopen", &first, "--reason", "a case was forgotten"]);
    let later = site.by_person(&["milestone", "show", "sprint-12"]);
    assert_eq!((&later["state"], &later["closed"]["intact"]), (&json!("closed"), &json!(true)));
    assert_eq!(missing(&later), [format!("wrong_state {first}")]);
    let listed = site.by_person(&["milestone", "list"]);
    assert_eq!(listed["milestones"][0]["name"], "sprint-12");
    site.assert_sound();
}

#[test]
fn a_verifier_closes_and_nobody_else_who_is_no_person() {
    let site = site();
    readme(&site);
    let task = done(&site, "work");
    site.by_person(&["worker", "add", "@judge", "--kind", "agent", "--role", "verifier"]);
    let by_agent = site.run(&["milestone", "add", "m", "--task", &task, "--as", "@a1", "--json"]);
    assert_eq!(by_agent.code(), "human_required");
    site.by_person(&["milestone", "add", "m", "--task", &task]);
    site.by_person(&["milestone", "verify", "m"]);
    let closed = site.ok(&["milestone", "close", "m", "--as", "@judge"]);
    assert_eq!(closed["closed_by"], "@judge");
    site.assert_sound();
}

#[test]
fn a_failing_check_and_a_bypassed_gate_keep_it_open() {
    let site = site();
    readme(&site);
    let task = done(&site, "work");
    let forced = site.add("forced");
    let (reason, resolution) = (["--force", "--reason", "in a hurry"], ["--resolution", "done"]);
    site.by_person(&[&["complete", &forced][..], &reason, &resolution].concat());
    site.by_person(&["milestone", "add", "m", "--task", &task, "--task", &forced]);
    site.git(&["rm", "--quiet", "README"]);
    site.git(&["commit", "--quiet", "--message=gone"]);
    assert_eq!(person(&site, &["milestone", "verify", "m"]).code(), "milestone_incomplete");
    assert_eq!(
        missing(&site.by_person(&["milestone", "show", "m"])),
        [
            format!("checks_failed {task}"),
            format!("gate_bypassed {forced}"),
            format!("evidence_missing {forced}")
        ]
    );
    let human = site.run(&["milestone", "show", "m"]);
    assert!(human.stdout.contains("in a hurry") && human.stdout.contains("onus reopen"), "{}", human.stdout);
    site.assert_sound();
}

#[test]
fn checks_speak_about_the_main_branch_as_it_is_committed() {
    let site = site();
    readme(&site);
    let task = done(&site, "work");
    site.by_person(&["milestone", "add", "m", "--task", &task]);
    std::fs::write(site.repo().join("README"), "changed\n").unwrap();
    assert_eq!(person(&site, &["milestone", "verify", "m"]).code(), "wrong_state");
    site.git(&["checkout", "--quiet", "--", "README"]);
    site.git(&["switch", "--quiet", "--create", "side"]);
    site.git(&["commit", "--quiet", "--allow-empty", "--message=aside"]);
    assert_eq!(person(&site, &["milestone", "verify", "m"]).code(), "wrong_state");
    site.git(&["switch", "--quiet", "main"]);
    site.by_person(&["milestone", "verify", "m"]);
    site.by_person(&["milestone", "close", "m"]);
}

#[test]
fn a_milestone_names_what_is_there() {
    let site = site();
    assert_eq!(person(&site, &["milestone", "add", "m", "--task", "T-9"]).code(), "unknown_task");
    assert_eq!(person(&site, &["milestone", "add", "m"]).code(), "invalid_input");
    assert_eq!(person(&site, &["milestone", "show", "m"]).code(), "unknown_name");
    assert_eq!(person(&site, &["milestone", "close", "m"]).code(), "unknown_name");
    assert_eq!(person(&site, &["milestone", "add", "No Name", "--tag", "x"]).exit, Some(2));
    site.by_person(&["milestone", "add", "m", "--tag", "x"]);
    assert_eq!(person(&site, &["milestone", "close", "m"]).code(), "milestone_incomplete");
}

#[test]
fn an_archive_carries_it_and_tampering_shows() {
    let site = site();
    readme(&site);
    let task = done(&site, "work");
    site.by_person(&["milestone", "add", "m", "--task", &task]);
    site.by_person(&["milestone", "verify", "m"]);
    let closed = site.by_person(&["milestone", "close", "m"]);
    let archive = site.root().join("archive");
    let archive = archive.to_str().unwrap();
    // Where the store is: a server hands no archive out.
    assert!(person(&site, &["--store", &site.store_url(), "export", "--format", "onus", archive]).is_ok());
    let copy = format!("sqlite:{}", site.root().join("copy.db").display());
    let restored = site.run(&["--store", &copy, "import", "--format", "onus", archive, "--json"]);
    assert_eq!(restored.exit, Some(0), "{restored:#?}");
    assert_eq!(site.ok(&["--store", &copy, "milestone", "show", "m"]), closed);

    site.tamper("UPDATE milestone SET fingerprint = NULL, closed = NULL");
    let broken = site.run(&["ledger", "verify", "--as", &site.person, "--json"]);
    assert_eq!(broken.code(), "ledger_broken");
    assert!(broken.stderr.contains("the milestone m is not what the record says"), "{}", broken.stderr);
}

#[test]
fn the_server_has_it() {
    let site = site();
    readme(&site);
    let task = done(&site, "work");
    let server = Server::start(&site);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let body = json!({ "name": "m", "tasks": [task] });
    server.post(&agent, "/v1/milestones", body.clone()).refused(403, "human_required");
    assert_eq!(server.post(&person, "/v1/milestones", body).ok()["outcome"], "created");
    server.post(&person, "/v1/milestones/m/close", json!({})).refused(409, "milestone_incomplete");
    site.by_person(&["milestone", "verify", "m"]);
    server.post(&agent, "/v1/milestones/m/close", json!({})).refused(403, "human_required");
    let closed = server.post(&person, "/v1/milestones/m/close", json!({})).ok();
    assert_eq!(server.get(&agent, "/v1/milestones/m").ok(), closed);
    let local = site.by_person(&["milestone", "show", "m"]);
    assert_eq!(closed, local, "the answer is the document that the command line prints");
    assert_eq!(server.get(&agent, "/v1/milestones").ok()["milestones"][0]["state"], "closed");
    server.get(&agent, "/v1/milestones/other").refused(404, "unknown_name");
    site.assert_sound();
}
