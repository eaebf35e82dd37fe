//! `onus exception`: who asks, who approves, what the decision record says, and that the task is ready afterwards.

use crate::support::server::Server;
use crate::support::{Site, text};
use serde_json::json;

const WHY: [&str; 4] = ["--reason", "the client is blocked", "--rollback", "revert the commit"];

/// A task that waits for another one.
fn waiting() -> (Site, String, String) {
    let site = Site::new();
    let base = site.add("base");
    let asked = site.by_person(&["add", "on top", "--depends-on", &base]);
    (site, text(&asked["task"]["id"]).to_owned(), base)
}

fn request<'a>(task: &'a str, base: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["exception", "request", task, "--on", base], &WHY[..], more].concat()
}

fn refused(site: &Site, args: &[&str]) -> String {
    site.run(&[args, &["--as", &site.person, "--json"]].concat()).code()
}

#[test]
fn an_approved_exception_makes_the_task_ready() {
    let (site, task, base) = waiting();
    let agent = &site.agents(1)[0];
    let claim = ["claim", &task, "--as", &agent.handle, "--workstation", &agent.workstation, "--json"];
    let by_agent = [&request(&task, &base, &[])[..], &["--as", &agent.handle, "--json"]].concat();
    let asked = site.run(&by_agent).json();
    assert_eq!(text(&asked["task"]["exceptions"][0]["state"]), "proposed");
    assert_eq!(site.run(&claim).code(), "dependency_incomplete", "asking is not enough");
    let approve = ["exception", "approve", &task, "--on", &base];
    let own = site.run(&[&approve[..], &["--as", &agent.handle, "--json"]].concat());
    assert_eq!(own.code(), "human_required");
    let before = site.ok(&["ready"]);
    assert!(before["tasks"].as_array().unwrap().iter().all(|ready| ready["id"] != task.as_str()));
    let approved = site.by_person(&approve);
    assert_eq!(text(&approved["task"]["exceptions"][0]["approved_by"]), site.person);
    let after = site.ok(&["ready"]);
    assert!(after["tasks"].as_array().unwrap().iter().any(|ready| ready["id"] == task.as_str()), "{after}");
    assert!(site.run(&claim).is_ok());
    site.assert_sound();
}

#[test]
fn the_decision_record_follows() {
    let (site, task, base) = waiting();
    let asked = site.by_person(&request(&task, &base, &["--request-id", "e1"]));
    let adr = text(&asked["task"]["exceptions"][0]["adr"]).to_owned();
    assert_eq!(adr, "docs/adr/exception-t-2-on-t-1.md");
    let file = site.repo().join(&adr);
    let record = std::fs::read_to_string(&file).unwrap();
    for words in ["T-2 does not wait for T-1", "- Status: proposed", &site.person, WHY[1], WHY[3]] {
        assert!(record.contains(words), "{words}: {record}");
    }
    // The same call again finds its own file.
    site.by_person(&request(&task, &base, &["--request-id", "e1"]));
    site.by_person(&["exception", "approve", &format!("{task}/{base}")]);
    let approved = std::fs::read_to_string(&file).unwrap();
    let line = format!("- Status: approved by {}", site.person);
    assert!(approved.contains(&line) && !approved.contains("proposed"), "{approved}");
    assert_eq!(approved.lines().count(), record.lines().count());
    let shown = site.run(&["show", &task]);
    assert!(shown.stdout.contains(&format!("not waiting for {base}, approved by")), "{shown:#?}");
}

#[test]
fn the_directory_of_the_records_is_a_setting() {
    let (site, task, base) = waiting();
    std::fs::write(site.repo().join("onus.yaml"), "exception:\n  adr_dir: decisions\n").unwrap();
    site.by_person(&request(&task, &base, &[]));
    assert!(site.repo().join("decisions/exception-t-2-on-t-1.md").exists());
}

#[test]
fn a_file_that_is_there_is_never_overwritten() {
    let (site, task, base) = waiting();
    let file = site.repo().join("docs/adr/exception-t-2-on-t-1.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "ours\n").unwrap();
    assert_eq!(refused(&site, &request(&task, &base, &[])), "invalid_input");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "ours\n");
    assert!(site.task(&task)["exceptions"].as_array().unwrap().is_empty());
    // A record that people wrote themselves is named, and kept as it is.
    site.by_person(&request(&task, &base, &["--adr", "docs/adr/exception-t-2-on-t-1.md"]));
    site.by_person(&["exception", "approve", &task, "--on", &base]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "ours\n");
}

#[test]
fn records_stay_inside_the_repository() {
    let (site, task, base) = waiting();
    let outside = site.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, site.repo().join("link")).unwrap();
    let absolute = outside.join("a.md");
    for path in [
        "../outside/a.md",
        "docs/../../outside/a.md",
        "link/a.md",
        absolute.to_str().unwrap(),
        ".git/a.md",
        ".",
    ] {
        assert_eq!(refused(&site, &request(&task, &base, &["--adr", path])), "invalid_input", "{path}");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!site.repo().join(".git/a.md").exists());
}

#[test]
fn what_is_refused_writes_no_record() {
    let (site, task, base) = waiting();
    let other = site.add("unrelated");
    assert_eq!(refused(&site, &request(&task, &other, &[])), "unknown_name");
    assert_eq!(
        refused(&site, &["exception", "request", &task, "--on", &base, "--reason", "x"]),
        "reason_required"
    );
    assert_eq!(refused(&site, &["exception", "approve", &task, "--on", &base]), "unknown_name");
    assert_eq!(refused(&site, &["exception", "approve", &task]), "invalid_input");
    assert!(!site.repo().join("docs").exists());
}

#[test]
fn all_of_them_are_listed() {
    let (site, task, base) = waiting();
    let second = text(&site.by_person(&["add", "third", "--depends-on", &base])["task"]["id"]).to_owned();
    for task in [&task, &second] {
        site.by_person(&request(task, &base, &[]));
    }
    site.by_person(&["exception", "approve", &second, "--on", &base]);
    let listed = |args: &[&str]| -> Vec<String> {
        let view = site.ok(&[&["exception", "list"], args].concat());
        let all = view["exceptions"].as_array().unwrap().clone();
        all.iter().map(|one| format!("{} {}", text(&one["task"]), text(&one["state"]))).collect()
    };
    assert_eq!(listed(&[]), [format!("{task} proposed"), format!("{second} approved")]);
    assert_eq!(listed(&[&task]), [format!("{task} proposed")]);
    assert_eq!(listed(&["--state", "approved"]), [format!("{second} approved")]);
    assert_eq!(site.run(&["exception", "list", "T-99", "--json"]).code(), "unknown_task");
}

#[test]
fn the_server_has_it() {
    let (site, task, base) = waiting();
    let agent = &site.agents(1)[0];
    let server = Server::start(&site);
    let (person, agent) = (site.token(&site.person), site.token(&agent.handle));
    let path = format!("/v1/tasks/{task}/exceptions");
    let request = json!({ "action": "request", "on": base, "reason": WHY[1], "rollback": WHY[3] });
    let half = json!({ "action": "request", "on": base, "reason": WHY[1] });
    server.post(&agent, &path, half).refused(422, "reason_required");
    let asked = server.post(&agent, &path, request).ok();
    assert_eq!(asked["task"]["exceptions"][0]["state"], "proposed");
    let approve = json!({ "action": "approve", "on": base });
    server.post(&agent, &path, approve.clone()).refused(403, "human_required");
    let key = [("idempotency-key", "approve-1")];
    let approved = server.post_with(&person, &path, &key, approve.clone()).ok();
    assert_eq!(approved["task"]["exceptions"][0]["state"], "approved");
    assert_eq!(server.post_with(&person, &path, &key, approve).ok(), approved, "one effect, one answer");
    assert_eq!(server.get(&agent, &path).ok()["exceptions"][0]["approved_by"], site.person.as_str());
    site.assert_sound();
}
