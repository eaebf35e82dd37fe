//! Redmine as a mirror: a real one, by its own REST interface. Skipped, with a word, where there is none.

use crate::support::tracker::{Tracker, field, history, notes};
use crate::support::{Agent, Site, text};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Tells the mirrors everything, once.
fn sync(site: &Site) -> Value {
    site.ok(&["mirror", "sync", "redmine"])["mirrors"][0].clone()
}

fn claim(site: &Site, task: &str, agent: &Agent) -> String {
    let claimed = site.ok(&["claim", task, "--as", &agent.handle, "--workstation", &agent.workstation]);
    text(&claimed["lease"]["token"]).to_owned()
}

fn by(site: &Site, agent: &Agent, lease: &str, args: &[&str]) -> Value {
    site.ok(&[args, &["--as", &agent.handle, "--lease", lease]].concat())
}

/// A site with one agent more than asked: `@redmine`, in whose name issues arrive.
fn mirrored(tracker: &Tracker, more: &str) -> (Site, Vec<Agent>) {
    let site = Site::new();
    let agents = site.agents(2);
    site.by_person(&["worker", "add", "@redmine", "--kind", "agent"]);
    tracker.set_up(&site, tracker.port, more);
    (site, agents)
}

#[test]
fn a_hand_over_is_in_redmines_own_history_and_time_is_booked() {
    let Some(tracker) = Tracker::shared() else { return };
    let (site, agents) = mirrored(&tracker, "    create: always\n");
    let task = site.add("Sort the post");
    let lease = claim(&site, &task, &agents[0]);
    by(&site, &agents[0], &lease, &["note", &task, "half of it is sorted"]);
    assert_eq!(sync(&site)["stuck"], 0);
    let [issue] = &tracker.issues()[..] else { panic!("one task, one issue: {:?}", tracker.issues()) };
    let id = issue["id"].to_string();
    let issue = tracker.read(&id);
    assert_eq!((field(&issue, "Agent Name"), field(&issue, "Workstation")), ("@a1", "ws-1"));
    assert_eq!((field(&issue, "Onus Task"), text(&issue["status"]["name"])), (task.as_str(), "In Progress"));

    site.by_person(&["takeover", &task, "--workstation", "ws-2", "--force", "--reason", "its agent sleeps"]);
    let held = site.task(&task)["assignment"]["assignee"].clone();
    let said = text(&held).to_owned();
    site.by_person(&["complete", &task, "--force", "--reason", "by hand", "--resolution", "all sorted"]);
    assert_eq!(sync(&site)["pending"], 0);
    let issue = tracker.read(&id);
    assert_eq!(text(&issue["status"]["name"]), "Closed");
    let moves = history(&issue, "Agent Name");
    assert_eq!(moves, [(String::new(), "@a1".to_owned()), ("@a1".to_owned(), said)], "{issue:#}");
    let told = notes(&issue);
    for words in ["half of it is sorted", "takes over from @a1", "its agent sleeps", "BY FORCE", "all sorted"]
    {
        assert!(told.iter().any(|note| note.contains(words)), "{words}: {told:#?}");
    }

    assert!(told.iter().all(|note| !note.contains("onus-handoff")), "a handoff is told in words: {told:#?}");
    assert!(told.iter().any(|note| note.contains("**Next slice**")), "{told:#?}");

    // To the second, and so to the minute.
    let sheet = site.ok(&["timesheet"]);
    let rows = sheet["rows"].as_array().unwrap().iter().filter(|row| row["task"] == task.as_str());
    let seconds: i64 = rows.map(|row| row["seconds"].as_i64().unwrap()).sum();
    let spent = issue["spent_hours"].as_f64().unwrap();
    assert!((spent * 3_600.0 - seconds as f64).abs() < 40.0, "{spent} h in Redmine, {seconds} s here");

    // Told once more from the beginning, nothing is there twice.
    let before = notes(&issue).len();
    assert_eq!(sync(&site)["pending"], 0);
    assert_eq!(notes(&tracker.read(&id)).len(), before);
    assert_eq!(tracker.issues().len(), 1);
    site.assert_sound();
}

#[test]
fn a_corrected_session_replaces_its_time_entry() {
    let Some(tracker) = Tracker::shared() else { return };
    let (site, agents) = mirrored(&tracker, "    create: always\n    users: {\"@a1\": \"ADA\"}\n");
    let settings =
        std::fs::read_to_string(site.repo().join("onus.yaml")).unwrap().replace("ADA", &tracker.ada);
    std::fs::write(site.repo().join("onus.yaml"), settings).unwrap();
    let task = site.add("Count the hours");
    let lease = claim(&site, &task, &agents[0]);
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    by(&site, &agents[0], &lease, &["release", &task, "--note", "later"]);
    sync(&site);
    let id = tracker.issues()[0]["id"].to_string();
    let entries = || tracker.get(&format!("/time_entries.json?issue_id={id}"))["time_entries"].take();
    let first = entries();
    assert_eq!(first.as_array().unwrap().len(), 1, "{first:#}");
    assert_eq!(first[0]["user"]["id"].to_string(), tracker.ada, "booked for who worked");
    let session = site.ok(&["session", "list", "--task", &task])["sessions"][0].clone();
    let (number, from) = (session["id"].to_string(), text(&session["started_at"]).to_owned());
    let corrected = site.run(&[
        "session",
        "correct",
        &number,
        "--start",
        &from,
        "--end",
        &from,
        "--reason",
        "asleep",
        "--as",
        &site.person,
        "--json",
    ]);
    assert_eq!(corrected.exit, Some(0), "{corrected:#?}");
    sync(&site);
    assert_eq!(entries().as_array().unwrap().len(), 0, "no time was worked: {:#}", entries());
}

#[test]
fn what_redmine_drops_is_stuck_and_told_everywhere_and_others_go_on() {
    let Some(tracker) = Tracker::shared() else { return };
    let (site, agents) = mirrored(&tracker, "    create: always\n    worker: \"@redmine\"\n");
    let (first, second) = (tracker.issue("Gone soon"), tracker.issue("Stays"));
    assert_eq!(sync(&site)["stuck"], 0);
    let task = |issue: &str| {
        let tasks = site.tasks();
        let found = tasks.iter().find(|task| task["origin_ask_ref"] == format!("redmine:{issue}"));
        text(&found.unwrap_or_else(|| panic!("no task of issue {issue}: {tasks:#?}"))["id"]).to_owned()
    };
    let (lost, kept) = (task(&first), task(&second));
    let url = format!("http://127.0.0.1:{}/issues/{first}.json", tracker.port);
    tracker.remove(&url);
    claim(&site, &lost, &agents[0]);
    claim(&site, &kept, &agents[1]);
    let stand = sync(&site);
    assert_eq!((stand["stuck"].as_i64(), stand["pending"].as_i64()), (Some(1), Some(1)), "{stand:#}");
    assert_eq!(field(&tracker.read(&second), "Agent Name"), "@a2", "a stuck task holds no other up");
    let doctor = site.run(&["doctor", "--json"]);
    assert!(doctor.stderr.contains("mirror_stuck") && doctor.stderr.contains("is gone"), "{doctor:#?}");
    let now = site.by_person(&["report", "now"]);
    assert_eq!(now["mirrors"][0]["stuck_tasks"][0]["task"], lost.as_str(), "{now:#}");
    assert_eq!(
        site.run(&["mirror", "skip", "redmine", &lost, "--as", &site.person, "--json"]).code(),
        "reason_required"
    );
    assert_eq!(
        site.run(&["mirror", "skip", "redmine", &lost, "--reason", "no", "--as", "@a1", "--json"]).code(),
        "human_required"
    );
    let left = site.by_person(&["mirror", "skip", "redmine", &lost, "--reason", "its issue was deleted"]);
    assert_eq!(
        (left["mirrors"][0]["stuck"].as_i64(), left["mirrors"][0]["pending"].as_i64()),
        (Some(0), Some(0))
    );
    let story = site.ok(&["show", &lost]).to_string();
    assert!(story.contains("its issue was deleted"), "{story}");
    site.assert_sound();
}

#[test]
fn issues_become_tasks_once_and_changes_there_are_drift() {
    let Some(tracker) = Tracker::shared() else { return };
    let (site, agents) = mirrored(&tracker, "    worker: \"@redmine\"\n    poll: 1ms\n");
    let issues: Vec<String> = (0..3).map(|n| tracker.issue(&format!("Ask {n}"))).collect();
    for _ in 0..2 {
        sync(&site);
    }
    assert_eq!(site.tasks().len(), 3, "each issue is one task, however often it is seen");
    let task = site
        .tasks()
        .into_iter()
        .find(|task| task["origin_ask_ref"] == format!("redmine:{}", issues[0]))
        .unwrap();
    let id = text(&task["id"]).to_owned();
    assert_eq!(text(&task["title"]), "Ask 0");
    let lease = claim(&site, &id, &agents[0]);
    sync(&site);
    let agent_field = tracker.read(&issues[0])["custom_fields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|field| field["name"] == "Agent Name")
        .unwrap()["id"]
        .clone();
    let meddle = json!({ "issue": { "custom_fields": [{ "id": agent_field, "value": "@nobody" }] } });
    assert_eq!(tracker.put(&format!("/issues/{}.json", issues[0]), &meddle), 204);
    let differs = site.ok(&["mirror", "diff", "redmine"]);
    assert_eq!(differs["drift"][0]["there"], "@nobody", "{differs:#}");
    assert_eq!(differs["drift"][0]["here"], "@a1");
    // The story's next entry has the last word.
    by(&site, &agents[0], &lease, &["note", &id, "still at it"]);
    sync(&site);
    assert_eq!(field(&tracker.read(&issues[0]), "Agent Name"), "@a1");
    site.assert_sound();
}

#[test]
fn many_issues_are_polled_page_by_page_and_each_is_one_task() {
    let Some(tracker) = Tracker::shared() else { return };
    let (site, agents) = mirrored(&tracker, "    worker: \"@redmine\"\n    poll: 1ms\n");
    let count = if std::env::var_os("ONUS_SOAK").is_some() { 10_000 } else { 320 };
    let store = rusqlite::Connection::open(tracker.directory.join("db.sqlite3")).unwrap();
    store.busy_timeout(Duration::from_secs(60)).unwrap();
    store.execute_batch(&onus_testkit::redmine_issues(&tracker.project, count)).unwrap();
    for _ in 0..2 {
        let stand = sync(&site);
        assert_eq!((stand["pending"].as_i64(), stand["last_error"].as_str()), (Some(0), None), "{stand:#}");
        let export = site.run(&["export", "--state", "all"]);
        assert_eq!(export.stdout.lines().count(), count, "each issue is one task");
    }
    // Nothing was written to an issue that nobody works on, and one that somebody works on is told all.
    let wrote: i64 = store
        .query_row("SELECT count(*) FROM journals j JOIN issues i ON i.id = j.journalized_id JOIN projects p ON p.id = \
             i.project_id WHERE p.identifier = ?1", [&tracker.project], |row| row.get(0))
        .unwrap();
    assert_eq!(wrote, 0);
    let first = text(&site.tasks()[0]["id"]).to_owned();
    claim(&site, &first, &agents[0]);
    sync(&site);
    let issue = text(&site.task(&first)["origin_ask_ref"]).replace("redmine:", "");
    assert_eq!(field(&tracker.read(&issue), "Onus Task"), first);
    // A change there arrives, and nothing else does.
    let renamed = json!({ "issue": { "subject": "Asked anew" } });
    assert_eq!(tracker.put(&format!("/issues/{issue}.json"), &renamed), 204);
    sync(&site);
    assert_eq!(text(&site.task(&first)["title"]), "Asked anew");
    site.assert_sound();
}

#[test]
fn a_milestone_can_need_that_every_field_was_read_back_equal() {
    let Some(tracker) = Tracker::shared() else { return };
    let more = "    create: always\n    worker: \"@redmine\"\n    poll: 1ms\n    milestones: required\n";
    let (site, _) = mirrored(&tracker, more);
    site.git(&["add", "--all"]);
    site.git(&["commit", "--quiet", "--message=settings"]);
    let added = site.by_person(&["add", "Prove it", "--sprint", "12", "--check", "test -d ."]);
    let task = text(&added["task"]["id"]).to_owned();
    site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
    site.ok(&["check", &task, "--as", "@a1"]);
    site.ok(&["complete", &task, "--as", "@a1", "--resolution", "done"]);
    site.by_person(&["milestone", "add", "twelve", "--sprint", "12"]);
    let close = || site.run(&["milestone", "close", "twelve", "--as", &site.person, "--json"]);
    let missing = |what: &str| {
        let verified = site.run(&["milestone", "verify", "twelve", "--as", &site.person, "--json"]);
        let findings = verified.error()["findings"].as_array().cloned().unwrap_or_default();
        assert_eq!(findings.len(), 1, "{what}: {verified:#?}");
        assert_eq!(findings[0]["task"], task.as_str());
        text(&findings[0]["detail"]).to_owned()
    };
    assert_eq!(missing("nobody told it"), format!("redmine was never told of {task}"));
    assert_eq!(close().code(), "milestone_incomplete");
    assert_eq!(sync(&site)["stuck"], 0);
    let shown = site.by_person(&["milestone", "show", "twelve"]);
    assert_eq!(shown["missing"], json!([]), "{shown:#}");

    // Somebody changes it there: seen by the next poll, and told field by field.
    let issue = tracker.issues()[0].clone();
    let fields = issue["custom_fields"].as_array().unwrap();
    let agent = fields.iter().find(|field| field["name"] == "Agent Name").unwrap()["id"].clone();
    let meddle = json!({ "issue": { "custom_fields": [{ "id": agent, "value": "@nobody" }] } });
    assert_eq!(tracker.put(&format!("/issues/{}.json", issue["id"]), &meddle), 204);
    let run = site.command(&["mirror", "run", "redmine"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut run = run.unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    while site.ok(&["mirror", "status"])["mirrors"][0]["drift"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < until, "nobody saw the change");
        std::thread::sleep(Duration::from_millis(50));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(missing("changed"), format!("the agent of {task} says `@nobody` in redmine, not `@a1`"));
    sync(&site);
    assert_eq!(close().exit, Some(0));
    site.assert_sound();
}

#[test]
fn check_tries_every_name_and_tells_what_is_wrong() {
    let Some(tracker) = Tracker::shared() else { return };
    let (site, _) = mirrored(&tracker, "");
    let good = site.ok(&["mirror", "check", "redmine"]);
    assert_eq!(good["ok"], true, "{good:#}");
    let text_of = std::fs::read_to_string(site.repo().join("onus.yaml")).unwrap();
    let wrong = text_of.replace("Agent Name", "Agent Nmae").replace("blocked: Feedback", "blocked: Stuck");
    std::fs::write(site.repo().join("onus.yaml"), wrong).unwrap();
    let bad = site.run(&["mirror", "check", "redmine", "--json"]);
    assert_eq!(bad.exit, Some(5), "{bad:#?}");
    assert!(bad.stderr.contains("Agent Nmae") && bad.stderr.contains("Stuck"), "{bad:#?}");
    std::fs::write(site.repo().join("key"), "0123456789abcdef0123456789abcdef").unwrap();
    let bad = site.run(&["mirror", "check", "redmine", "--json"]);
    assert!(bad.stderr.contains("the key is not accepted"), "{bad:#?}");
    assert!(!format!("{bad:?}").contains("0123456789abcdef"), "a key is never shown");
}
