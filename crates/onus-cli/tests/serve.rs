//! The server on a real socket: every operation once, its refusals, and the manners of HTTP.

use crate::support::server::{Reply, Server, key};
use crate::support::{Site, text};
use serde_json::{Value, json};

struct Desk {
    site: Site,
    server: Server,
    person: String,
    agent: String,
}

impl Desk {
    fn new() -> Desk {
        let site = Site::new();
        site.agents(3);
        let (person, agent) = (site.token(&site.person), site.token("@a1"));
        Desk { server: Server::start(&site), site, person, agent }
    }

    /// A task that `@a1` holds in `ws-1`, and its lease.
    fn held(&self, title: &str) -> (String, String) {
        let task = self.server.add(&self.person, title);
        let claimed = self.claim(&self.agent, &task, "ws-1").ok();
        (task, text(&claimed["lease"]["token"]).to_owned())
    }

    fn claim(&self, token: &str, task: &str, workstation: &str) -> Reply {
        self.verb(token, task, "claim", json!({ "workstation": workstation }))
    }

    fn verb(&self, token: &str, task: &str, verb: &str, body: Value) -> Reply {
        self.server.post(token, &format!("/v1/tasks/{task}/{verb}"), body)
    }
}

#[test]
fn a_task_goes_from_ask_to_completion() {
    let desk = Desk::new();
    let (server, person, agent) = (&desk.server, &desk.person, &desk.agent);
    let ask = json!({ "title": "first", "priority": "P1", "origin_ask_ref": "mail:1", "tags": ["a"] });
    let added = server.post(person, "/v1/tasks", ask.clone());
    assert_eq!((added.status, added.header("location")), (201, Some("/v1/tasks/T-1")));
    let again = server.post(person, "/v1/tasks", ask);
    assert_eq!((again.status, &again.body["outcome"]), (200, &json!("existing")));

    let (second, lease) = desk.held("second");
    desk.claim(agent, &second, "ws-2").refused(409, "lease_held");
    desk.verb(agent, &second, "renew", json!({})).refused(409, "lease_required");
    desk.verb(agent, &second, "renew", json!({ "lease": lease, "ttl": "20m" })).ok();
    desk.verb(agent, &second, "notes", json!({ "lease": lease, "text": "half done" })).ok();
    let blocked = desk.verb(agent, &second, "block", json!({ "lease": lease, "on": "external:parts" })).ok();
    assert_eq!(blocked["task"]["state"], "blocked");
    desk.verb(agent, &second, "unblock", json!({ "lease": lease })).ok();
    let handed =
        desk.verb(agent, &second, "handoffs", json!({ "lease": lease, "summary": "see the notes" })).ok();
    assert_eq!(handed["handoff"]["summary"], "see the notes");
    assert_eq!(server.get(agent, &format!("/v1/tasks/{second}/handoffs")).ok()["handoff"]["epoch"], 1);
    desk.verb(agent, &second, "complete", json!({ "lease": lease })).refused(422, "resolution_required");
    let done = desk.verb(agent, &second, "complete", json!({ "lease": lease, "resolution": "done" })).ok();
    assert_eq!(done["task"]["state"], "complete");
    desk.verb(agent, &second, "reopen", json!({ "reason": "no" })).refused(403, "human_required");
    desk.verb(person, &second, "reopen", json!({})).refused(422, "reason_required");
    desk.verb(person, &second, "reopen", json!({ "reason": "not yet" })).ok();
    desk.verb(person, &second, "drop", json!({ "reason": "no longer wanted" })).ok();

    let story = server.get(person, &format!("/v1/tasks/{second}")).ok();
    let local = desk.site.ok(&["show", &second]);
    assert_eq!(story, local, "the answer is the document that the command line prints");
    desk.site.assert_sound();
}

#[test]
fn a_lease_is_given_back_taken_over_and_forced() {
    let desk = Desk::new();
    let (task, lease) = desk.held("wanted");
    let takeover = json!({ "workstation": "ws-2", "reason": "silent" });
    let other = desk.site.token("@a2");
    desk.verb(&other, &task, "takeover", takeover).refused(409, "not_expired");
    let forced = json!({ "workstation": "ws-2", "reason": "urgent", "force": true });
    desk.verb(&other, &task, "takeover", forced.clone()).refused(403, "human_required");
    let taken = desk.verb(&desk.person, &task, "takeover", forced).ok();
    desk.verb(&desk.agent, &task, "renew", json!({ "lease": lease })).refused(409, "fenced");
    let lease = text(&taken["lease"]["token"]);
    let released =
        desk.verb(&desk.person, &task, "release", json!({ "lease": lease, "note": "over to you" })).ok();
    assert_eq!(released["task"]["state"], "open");
    desk.claim(&other, &task, "ws-2").ok();
    desk.verb(&desk.person, &task, "release", json!({ "force": true, "reason": "stop" })).ok();
    desk.claim(&desk.agent, &task, "ws-nowhere").refused(422, "workstation_unknown");
    desk.site.assert_sound();
}

#[test]
fn checks_are_added_approved_recorded_and_reviewed() {
    let desk = Desk::new();
    let (task, lease) = desk.held("proven");
    let checks = |body: Value, token: &str| desk.verb(token, &task, "checks", body);
    let added = checks(json!({ "action": "add", "command": "make test", "lease": lease }), &desk.agent).ok();
    let check = text(&added["checks"][0]["id"]).to_owned();
    assert_eq!(added["checks"][0]["state"], "proposed");
    checks(json!({ "action": "approve", "check": check }), &desk.agent).refused(403, "human_required");
    checks(json!({ "action": "approve", "check": check }), &desk.person).ok();
    let done = json!({ "lease": lease, "resolution": "done" });
    desk.verb(&desk.agent, &task, "complete", done.clone()).refused(409, "checks_missing");
    let record = json!({ "action": "record", "check": check, "exit": 0, "took_ms": 5, "output": "ok", "lease": lease });
    let shown = checks(record, &desk.agent).ok();
    assert_eq!(shown["checks"][0]["run"]["verdict"], "passed");
    let review = json!({ "verdict": "approved", "classification": "implemented", "workstation": "ws-2" });
    desk.verb(&desk.agent, &task, "reviews", review.clone()).refused(403, "self_review");
    desk.verb(&desk.site.token("@a2"), &task, "reviews", review).ok();
    assert_eq!(desk.server.get(&desk.agent, &format!("/v1/tasks/{task}/checks")).ok(), shown);
    desk.verb(&desk.agent, &task, "complete", done).ok();
    desk.site.assert_sound();
}

/// What is asked over HTTP is what the command line prints.
#[test]
fn questions_are_answered_as_the_command_line_answers_them() {
    let desk = Desk::new();
    desk.held("held");
    for n in 0..5 {
        desk.server.add(&desk.person, &format!("task {n}"));
    }
    let same = |path: &str, args: &[&str]| {
        assert_eq!(desk.server.get(&desk.person, path).ok(), desk.site.by_person(args), "{path}");
    };
    same("/v1/tasks", &["list"]);
    same("/v1/tasks?state=open&limit=2", &["list", "--state", "open", "--limit", "2"]);
    same("/v1/ready", &["ready"]);
    same("/v1/stale", &["stale"]);
    same("/v1/workers", &["worker", "list"]);
    same("/v1/workers?handle=@a2", &["worker", "show", "@a2"]);
    same("/v1/workstations", &["workstation", "list"]);
    same("/v1/ledger?limit=5", &["ledger", "log", "--limit", "5"]);
    same("/v1/sessions?worker=@a1", &["session", "list", "--worker", "@a1"]);
    same("/v1/timesheets?month=2026-01", &["timesheet", "--month", "2026-01"]);
    let explained = desk.server.get(&desk.person, "/v1/routes/explain?type=backend").ok();
    assert_eq!((&explained["task_type"], &explained["caller"]["allowed"]), (&json!("backend"), &json!(true)));
    let pages = |limit: usize| {
        let (mut all, mut path) = (Vec::new(), format!("/v1/tasks?state=all&limit={limit}"));
        loop {
            let page = desk.server.get(&desk.person, &path).ok();
            all.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()));
            let Some(next) = page["next"].as_str() else { return all };
            path = format!("/v1/tasks?state=all&limit={limit}&cursor={next}");
        }
    };
    assert_eq!(pages(2), pages(100));
    for (path, status, code) in [
        ("/v1/tasks/T-99", 404, "unknown_task"),
        ("/v1/tasks/nonsense", 400, "invalid_input"),
        ("/v1/tasks?state=odd", 400, "invalid_input"),
        ("/v1/tasks?nonsense=1", 400, "invalid_input"),
        ("/v1/tasks?limit=0", 400, "invalid_input"),
        ("/v1/tasks?cursor=x", 400, "invalid_input"),
        ("/v1/ledger?after=-1", 400, "invalid_input"),
        ("/v1/workers?handle=@nobody", 404, "unknown_name"),
        ("/v1/sessions?task=T-99", 404, "unknown_task"),
        ("/v1/timesheets?by=odd", 400, "invalid_input"),
        ("/v1/routes/explain", 400, "invalid_input"),
        ("/v1/nonsense", 404, "unknown_name"),
    ] {
        desk.server.get(&desk.person, path).refused(status, code);
    }
}

#[test]
fn people_register_pause_and_quarantine_and_agents_do_not() {
    let desk = Desk::new();
    let (server, person, agent) = (&desk.server, &desk.person, &desk.agent);
    let worker = json!({ "handle": "@new", "kind": "agent", "role": "backend", "tz": "Europe/Berlin" });
    let added = server.post(person, "/v1/workers", worker.clone()).ok();
    assert_eq!((&added["outcome"], &added["worker"]["tz"]), (&json!("created"), &json!("Europe/Berlin")));
    assert_eq!(server.post(person, "/v1/workers", worker.clone()).ok()["outcome"], "existing");
    let nowhere = json!({ "handle": "@other", "kind": "agent", "tz": "Mars/Olympus" });
    server.post(person, "/v1/workers", nowhere).refused(400, "invalid_input");

    let place = json!({ "name": "ws-new", "lifecycle": "single-task" });
    assert_eq!(server.post(person, "/v1/workstations", place).ok()["workstation"]["kind"], "logical");
    let (task, lease) = desk.held("work");
    server.post(person, "/v1/workstations/ws-1/quarantine", json!({})).refused(422, "reason_required");
    let why = json!({ "reason": "it lies" });
    let shut = server.post(person, "/v1/workstations/ws-1/quarantine", why.clone()).ok();
    assert_eq!(shut["workstation"]["held_by"]["task"], json!(task));
    let done = json!({ "lease": lease, "resolution": "done" });
    assert_eq!(desk.verb(agent, &task, "complete", done).code(), "workstation_quarantined");
    assert_eq!(server.post(person, "/v1/workstations/ws-1/quarantine", why.clone()).code(), "wrong_state");
    server.post(person, "/v1/workstations/ws-1/restore", why.clone()).ok();
    server.post(person, "/v1/workstations/ws-new/retire", why.clone()).ok();

    server.post(person, "/v1/workers/@new/pause", why.clone()).ok();
    assert_eq!(server.get(person, "/v1/workers?handle=@new").ok()["workers"][0]["state"], "paused");
    server.post(person, "/v1/workers/@new/resume", json!({})).ok();
    server.post(person, "/v1/workers/nobody/resume", json!({})).refused(400, "invalid_input");
    server.post(person, "/v1/workers/@nobody/resume", json!({})).refused(404, "unknown_name");

    for (path, body) in [
        ("/v1/workers", worker),
        ("/v1/workstations", json!({ "name": "ws-own" })),
        ("/v1/workstations/ws-2/quarantine", why.clone()),
        ("/v1/workers/@a2/pause", why),
        ("/v1/timesheets/approve", json!({ "worker": "@a1", "from": "2026-11-01", "to": "2026-11-02" })),
    ] {
        server.post(agent, path, body).refused(403, "human_required");
    }
    desk.site.assert_sound();
}

#[test]
fn sessions_stop_and_start() {
    let desk = Desk::new();
    let (task, lease) = desk.held("resting");
    let session = |action: &str| {
        let body = json!({ "task": task, "lease": lease, "action": action });
        desk.server.post(&desk.agent, "/v1/sessions", body)
    };
    session("stop").ok();
    session("start").ok();
    let sessions = desk.server.get(&desk.agent, &format!("/v1/sessions?task={task}")).ok();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2);
    session("pause").refused(400, "invalid_input");
}

#[test]
fn several_tasks_are_claimed_at_once_each_with_its_own_lease() {
    let desk = Desk::new();
    desk.server
        .post(&desk.agent, "/v1/claims", json!({ "workstation": "ws-1" }))
        .refused(404, "nothing_ready");
    for n in 0..5 {
        desk.server.add(&desk.person, &format!("task {n}"));
    }
    let (name, wanted) = (key(), json!({ "count": 3, "workstations": ["ws-1", "ws-2", "ws-3"] }));
    let claim = || {
        desk.server.post_with(&desk.agent, "/v1/claims", &[("idempotency-key", &name)], wanted.clone()).ok()
    };
    let claimed = claim();
    let leases = |claimed: &Value| -> Vec<Value> {
        claimed["claims"].as_array().unwrap().iter().map(|one| one["lease"]["token"].clone()).collect()
    };
    assert_eq!(leases(&claimed).len(), 3);
    assert_eq!(leases(&claim()), leases(&claimed), "the same key, the same claims");
    let more = json!({ "count": 2, "workstations": ["ws-1", "ws-2"] });
    desk.server.post(&desk.agent, "/v1/claims", more).refused(409, "workstation_busy");
    desk.server.post(&desk.agent, "/v1/claims", json!({ "count": 65 })).refused(400, "invalid_input");
}

#[test]
fn a_repeated_key_has_one_effect_and_the_same_answer() {
    let desk = Desk::new();
    let name = key();
    let add = |title: &str| {
        desk.server.post_with(
            &desk.person,
            "/v1/tasks",
            &[("idempotency-key", &name)],
            json!({ "title": title }),
        )
    };
    let first = add("once");
    let again = add("once");
    assert_eq!((first.status, &first.body["task"]), (201, &again.body["task"]));
    assert_eq!(again.header("idempotency-key"), Some(name.as_str()));
    add("another").refused(409, "request_conflict");
    let odd =
        desk.server.post_with(&desk.person, "/v1/tasks", &[("idempotency-key", "")], json!({ "title": "x" }));
    odd.refused(400, "invalid_input");
    assert_eq!(desk.site.tasks().len(), 1);

    let (task, name) = (text(&first.body["task"]["id"]), key());
    let claim = || {
        let path = format!("/v1/tasks/{task}/claim");
        desk.server
            .post_with(&desk.agent, &path, &[("idempotency-key", &name)], json!({ "workstation": "ws-1" }))
            .ok()
    };
    assert_eq!(claim()["lease"]["token"], claim()["lease"]["token"]);
    let other = desk.site.token("@a2");
    let stolen = desk.server.post_with(
        &other,
        &format!("/v1/tasks/{task}/claim"),
        &[("idempotency-key", &name)],
        json!({ "workstation": "ws-1" }),
    );
    stolen.refused(409, "request_conflict");
}

#[test]
fn a_version_that_was_overtaken_is_refused() {
    let desk = Desk::new();
    let task = desk.server.add(&desk.person, "versioned");
    let path = format!("/v1/tasks/{task}");
    let shown = desk.server.get(&desk.person, &path);
    let tag = shown.header("etag").unwrap().to_owned();
    let note = |tag: &str| {
        desk.server.post_with(
            &desk.person,
            &format!("{path}/notes"),
            &[("if-match", tag)],
            json!({ "text": "a" }),
        )
    };
    let bearer = format!("Bearer {}", desk.person);
    let known = [("authorization", bearer.as_str()), ("if-none-match", tag.as_str())];
    assert_eq!(desk.server.try_call("GET", &path, &known, None).unwrap().status, 304);
    let noted = note(&tag);
    assert_eq!(noted.status, 200, "{noted:#?}");
    assert_ne!(noted.header("etag"), Some(tag.as_str()));
    note(&tag).refused(412, "precondition_failed");
    note(noted.header("etag").unwrap()).ok();
    note("*").ok();
    note("7").refused(400, "invalid_input");
    assert_eq!(desk.server.try_call("GET", &path, &known, None).unwrap().status, 200);
}

#[test]
fn the_server_tells_how_it_is() {
    let desk = Desk::new();
    desk.held("one");
    let plain = |path: &str| desk.server.try_call("GET", path, &[], None).unwrap();
    for path in ["/healthz", "/readyz"] {
        assert_eq!((plain(path).status, plain(path).body), (200, json!("ok\n")));
    }
    let metrics = plain("/metrics").body;
    for line in ["onus_http_requests_total{operation=\"claim\",status=\"200\"} 1", "onus_commands_total 2"] {
        assert!(text(&metrics).contains(line), "{metrics}");
    }
    let stored =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract/openapi.json")).unwrap();
    assert!(plain("/openapi.json").body == serde_json::from_str::<Value>(&stored).unwrap());
}

/// Whoever changes a rule by its file has it kept by the server as well, and a slip of the pen changes nothing.
#[test]
fn a_running_server_follows_the_settings() {
    let desk = Desk::new();
    let file = desk.site.repo().join("onus.yaml");
    let review_missing = |title: &str| {
        let (task, lease) = desk.held(title);
        let done = desk.verb(&desk.agent, &task, "complete", json!({ "lease": lease, "resolution": "done" }));
        if done.status != 200 {
            desk.verb(&desk.agent, &task, "release", json!({ "lease": lease })).ok();
        }
        (done.status != 200).then(|| done.code().to_owned())
    };
    assert_eq!(review_missing("by the defaults"), None);
    std::fs::write(&file, "complete: { review: always }\nqueue: { limit: 1 }\n").unwrap();
    assert_eq!(review_missing("reviewed").as_deref(), Some("review_missing"));
    desk.server.add(&desk.person, "one more");
    let ready = desk.server.get(&desk.agent, "/v1/ready").ok();
    assert_eq!(ready["tasks"].as_array().unwrap().len(), 1, "the readers follow, too");

    std::fs::write(&file, "complete: { review: perhaps }\n").unwrap();
    assert_eq!(review_missing("a slip").as_deref(), Some("review_missing"));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(review_missing("by the defaults again"), None);
    desk.site.assert_sound();
}
