//! Proven completion through the real binary: checks, their approval, reviews, root causes, merged work (mission D7-D12).

use crate::support::fleet::Fleet;
use crate::support::server::Server;
use crate::support::{Answer, Site, text};
use serde_json::{Value, json};

fn codes(answer: &Answer) -> Vec<String> {
    let error: Value = serde_json::from_str(&answer.stderr).unwrap_or_else(|_| panic!("{answer:?}"));
    let findings = error["error"]["findings"].as_array().unwrap();
    if findings.is_empty() {
        return vec![text(&error["error"]["code"]).to_owned()];
    }
    findings.iter().map(|finding| text(&finding["code"]).to_owned()).collect()
}

fn complete(site: &Site, task: &str, who: &str) -> Answer {
    site.run(&["complete", task, "--no-merge", "--as", who, "--resolution", "done", "--json"])
}

fn site() -> Site {
    let site = Site::new();
    site.agents(3);
    site
}

fn claim(site: &Site, task: &str) {
    site.ok(&["claim", task, "--as", "@a1", "--workstation", "ws-1"]);
}

#[test]
fn a_check_must_pass_before_completion() {
    let site = site();
    site.by_person(&["add", "work", "--check", "test -f proof"]);
    claim(&site, "T-1");
    assert_eq!(codes(&complete(&site, "T-1", "@a1")), ["checks_missing"]);
    let failed = site.run(&["check", "T-1", "--as", "@a1", "--json"]);
    assert_eq!((failed.exit, codes(&failed)), (Some(7), vec!["checks_failed".to_owned()]), "{failed:?}");
    let refused = complete(&site, "T-1", "@a1");
    assert_eq!((refused.exit, codes(&refused)), (Some(7), vec!["checks_failed".to_owned()]));
    std::fs::write(site.repo().join("proof"), "").unwrap();
    site.ok(&["check", "T-1", "--as", "@a1"]);
    assert_eq!(codes(&complete(&site, "T-1", "@a1")), ["checks_missing"], "nobody else has these files");
    site.git(&["add", "proof"]);
    site.git(&["commit", "--quiet", "--message=proof"]);
    let passed = site.ok(&["check", "T-1", "--as", "@a1"]);
    let run = &passed["checks"][0]["run"];
    assert_eq!(
        (&run["verdict"], &run["exit_code"], &run["sandbox"]),
        (&"passed".into(), &0.into(), &made("none").into())
    );
    assert_eq!(text(&run["output_sha256"]).len(), 64);
    assert_eq!(complete(&site, "T-1", "@a1").exit, Some(0));
    site.assert_sound();
}

#[test]
fn an_agents_check_waits_for_a_person() {
    let site = site();
    site.add("work");
    claim(&site, "T-1");
    let added = site.ok(&["check", "T-1", "--as", "@a1", "--add", "test -d ."]);
    let id = text(&added["checks"][0]["id"]).to_owned();
    assert_eq!(added["checks"][0]["state"], "proposed");
    assert_eq!(codes(&site.run(&["check", "T-1", "--as", "@a1", "--json"])), ["check_unapproved"]);
    assert!(site.ok(&["check", "T-1", "--list"])["checks"][0]["run"].is_null(), "it has run");
    let own = site.run(&["check", "T-1", "--as", "@a1", "--approve", &id, "--json"]);
    assert_eq!(codes(&own), ["human_required"]);
    site.by_person(&["check", "T-1", "--approve"]);
    site.ok(&["check", "T-1", "--as", "@a1"]);
    assert_eq!(complete(&site, "T-1", "@a1").exit, Some(0));
    for nothing in ["true", "exit 0", "echo fine", "make test || true", "The page works on mobile."] {
        let refused = site.run(&["add", "more", "--check", nothing, "--as", &site.person, "--json"]);
        assert_eq!((refused.exit, codes(&refused)), (Some(2), vec!["invalid_input".to_owned()]), "{nothing}");
    }
    site.assert_sound();
}

/// What a check prints, and what it is not told.
#[test]
fn a_check_sees_little_and_says_as_much_as_is_kept() {
    let site = site();
    let check = "env | sort; seq 1 200000; test -z \"$ONUS_LEASE$SECRET\"";
    site.by_person(&["add", "work", "--check", check]);
    claim(&site, "T-1");
    let mut command = site.command(&["check", "T-1", "--as", "@a1", "--json"]);
    command.env("SECRET", "hunter2");
    let answer = crate::support::finish(crate::support::start(&mut command));
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let run = answer.json()["checks"][0]["run"].clone();
    let output = text(&run["output"]);
    assert!(!output.contains("hunter2") && output.contains("ONUS_TASK=T-1"), "{output}");
    assert!(output.contains("bytes left out") && output.trim_end().ends_with("200000"), "the end is kept");
    assert!(run["output_length"].as_i64().unwrap() > 1_000_000);
    assert!(output.len() < 200_000);
}

#[test]
fn several_checks_run_side_by_side() {
    let site = site();
    // Each waits for the other: one after the other they would never pass.
    let meet = |own: &str, other: &str| {
        format!("touch {own}; for i in $(seq 200); do test -f {other} && exit 0; sleep 0.1; done; exit 1")
    };
    site.by_person(&["add", "work", "--check", &meet("m1", "m2"), "--check", &meet("m2", "m1")]);
    claim(&site, "T-1");
    site.ok(&["check", "T-1", "--as", "@a1", "--jobs", "2"]);
}

#[test]
fn a_defect_a_risk_and_a_review() {
    let site = site();
    site.by_person(&["add", "bug", "--kind", "defect"]);
    claim(&site, "T-1");
    assert_eq!(codes(&complete(&site, "T-1", "@a1")), ["root_cause_missing", "root_cause_missing"]);
    site.by_person(&["check", "T-1", "--add", "test -d .", "--kind", "root-cause"]);
    site.ok(&["check", "T-1", "--as", "@a1"]);
    let cause = ["--root-cause", "the counter was never reset", "--owner", "src/login.rs"];
    site.ok(&[&["complete", "T-1", "--as", "@a1", "--resolution", "reset"], &cause[..]].concat());

    site.by_person(&["add", "risky", "--risk", "high"]);
    claim(&site, "T-2");
    assert_eq!(codes(&complete(&site, "T-2", "@a1")), ["evidence_missing", "evidence_missing"]);
    for (kind, command) in [("code-anchor", "test -d ."), ("runtime", "test -e .")] {
        site.by_person(&["check", "T-2", "--add", command, "--kind", kind]);
    }
    site.ok(&["check", "T-2", "--as", "@a1"]);
    let review = |who: &str, place: &str, words: &[&str]| {
        site.run(&[&["review", "T-2", "--as", who, "--workstation", place, "--json"], words].concat())
    };
    let approve = ["--approve", "--as-implemented"];
    assert_eq!(codes(&review("@a1", "ws-3", &approve)), ["self_review"]);
    assert_eq!(codes(&review("@a2", "ws-1", &approve)), ["self_review"]);
    assert_eq!(review("@a2", "ws-2", &["--reject", "--as-design-only"]).exit, Some(0));
    assert_eq!(codes(&complete(&site, "T-2", "@a1")), ["review_missing"]);
    assert_eq!(review("@a3", "ws-3", &approve).exit, Some(0));
    assert_eq!(complete(&site, "T-2", "@a1").exit, Some(0));
    site.assert_sound();
}

#[test]
fn done_means_merged() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.by_person(&["add", "work", "--check", "test -f feature"]);
    fleet.claim("T-1", "a");
    assert_eq!(fleet.commit("a", "feature", "1").exit, Some(0));
    let at = |args: &[&str]| {
        let mut command = site.command(&[args, &["--as", "@a", "--json"]].concat());
        crate::support::finish(crate::support::start(command.current_dir(fleet.tree("a"))))
    };
    assert_eq!(at(&["check", "T-1"]).exit, Some(0));
    assert_eq!(codes(&at(&["complete", "T-1", "--no-merge", "--resolution", "done"])), ["not_merged"]);
    // Somebody else's commit makes the merge rebase: another commit, so the checks run again, and count.
    site.git(&["commit", "--quiet", "--allow-empty", "--message=people"]);
    site.git(&["push", "--quiet", "origin", "main"]);
    let merged = at(&["merge", "T-1"]);
    assert_eq!(merged.exit, Some(0), "{merged:?}");
    let done = at(&["complete", "T-1", "--resolution", "done"]);
    assert_eq!(done.exit, Some(0), "{done:?}");
    assert_eq!(fleet.at(&site.repo(), "main"), fleet.at(&fleet.tree("a"), "HEAD"));
    // A commit after the run is another piece of work.
    site.by_person(&["add", "more", "--check", "test -f feature"]);
    fleet.claim("T-2", "a");
    assert_eq!(at(&["check", "T-2"]).exit, Some(0));
    assert_eq!(fleet.commit("a", "other", "1").exit, Some(0));
    let stated = ["complete", "T-2", "--no-merge", "--resolution", "done"];
    assert_eq!(codes(&at(&stated)), ["checks_missing", "not_merged"]);
    site.assert_sound();
}

/// How a run is kept: what came through a server is stated, whatever it says about its sandbox.
fn made(sandbox: &str) -> &str {
    if std::env::var("ONUS_TEST_STORE").is_ok_and(|store| store == "server") { "stated" } else { sandbox }
}

/// A caller from elsewhere tells what its tree looks like; what is in the main branch the server sees for itself.
#[test]
fn no_word_of_a_caller_makes_it_merged() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let secret = site.by_person(&["worker", "token", "add", "@a"]);
    let server = Server::start(site);
    for (number, stated) in [(1, None), (2, Some("main")), (3, Some("HEAD"))] {
        let task = format!("T-{number}");
        site.by_person(&["add", "work"]);
        let lease = fleet.claim(&task, "a");
        assert_eq!(fleet.commit("a", &task, "1").exit, Some(0));
        let commit = stated.and_then(|name| fleet.at(&fleet.tree("a"), name));
        let complete = |request: &str| {
            let command = json!({"Complete": {
                "resolution": "0".repeat(64), "warrant": "Ordinary",
                "proof": {"ground": {"commit": commit, "dirty": false}, "unmerged": 0, "main": null},
            }});
            let sent = json!({
                "request": request, "token": lease, "task": task, "command": command, "texts": ["done"],
            });
            server.post(text(&secret["secret"]), "/v1/call/submit", json!([sent, "Named"]))
        };
        complete(&format!("cheat-{number}")).refused(409, "not_merged");
        let mut merge = site.command(&["merge", &task, "--as", "@a", "--json"]);
        let merged = crate::support::finish(crate::support::start(merge.current_dir(fleet.tree("a"))));
        assert_eq!(merged.exit, Some(0), "{merged:?}");
        assert_eq!(complete(&format!("honest-{number}")).status, 200);
    }
    site.assert_sound();
}

/// What was shown is part of the record: whoever changes it is found.
#[test]
fn tampered_evidence_is_found() {
    let site = site();
    site.by_person(&["add", "work", "--check", "test -d ."]);
    claim(&site, "T-1");
    site.ok(&["check", "T-1", "--as", "@a1"]);
    site.ok(&[
        "review",
        "T-1",
        "--as",
        "@a2",
        "--workstation",
        "ws-2",
        "--approve",
        "--as-implemented",
        "--note",
        "fine",
    ]);
    site.assert_sound();
    for (statement, undo) in [
        ("UPDATE evidence SET verdict = 'failed'", "UPDATE evidence SET verdict = 'passed'"),
        (
            "UPDATE evidence SET output = output || 'x'",
            "UPDATE evidence SET output = substr(output, 1, length(output) - 1)",
        ),
        (
            "UPDATE review SET classification = 'design-only'",
            "UPDATE review SET classification = 'implemented'",
        ),
        ("UPDATE review SET note = 'bad'", "UPDATE review SET note = 'fine'"),
        ("UPDATE task SET checks = NULL", ""),
    ] {
        site.tamper(statement);
        let verified = site.run(&["ledger", "verify", "--json"]);
        assert_eq!(verified.exit, Some(5), "{statement}: {verified:?}");
        assert!(verified.stderr.contains("T-1"), "{statement}: {verified:?}");
        site.tamper(undo);
    }
}

#[test]
fn a_sandboxed_check_writes_only_where_the_work_is() {
    let works = std::process::Command::new("bwrap").args(["--ro-bind", "/", "/", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: bubblewrap is not installed, or may not run here");
        return;
    }
    let site = site();
    let outside = site.root().join("outside");
    // A temporary file is the check's own; the rest of the system is read-only.
    let check = format!("touch inside && touch {} && ! touch /usr/onus-test-outside", outside.display());
    site.by_person(&["add", "work", "--check", &check]);
    claim(&site, "T-1");
    let shown = site.ok(&["check", "T-1", "--as", "@a1", "--sandbox", "bubblewrap"]);
    assert_eq!(shown["checks"][0]["run"]["sandbox"], made("bubblewrap"));
    assert!(site.repo().join("inside").exists() && !outside.exists());
}

/// What is in a sandbox sees neither the store nor the keys, changes no history, reaches no network and no terminal.
#[test]
fn a_sandboxed_check_reaches_nothing_but_the_work() {
    let works = std::process::Command::new("bwrap").args(["--ro-bind", "/", "/", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: bubblewrap is not installed, or may not run here");
        return;
    }
    let site = site();
    let keys = site.root().join("keys");
    let tree = site.root().join("tree");
    site.by_person(&["workstation", "add", "wt", "--kind", "worktree", "--path", tree.to_str().unwrap()]);
    let other = text(&site.by_person(&["add", "other"])["task"]["id"]).to_owned();
    site.ok(&["claim", &other, "--as", "@a2", "--workstation", "wt"]);
    let leases = site.repo().join(".git/worktrees/tree/onus/lease");
    assert!(leases.is_dir() && leases.read_dir().unwrap().count() > 0, "the other one's lease is there");
    let socket = format!("/run/onus-test-{}.sock", std::process::id());
    let listening = std::os::unix::net::UnixListener::bind(&socket);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connects = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
    for check in [
        "git rev-parse --verify HEAD && test -z \"$(ls -A .git/onus)\"".to_owned(),
        "test -d . && ! git update-ref refs/heads/other HEAD".to_owned(),
        "test -d . && ! touch .git/hooks/pre-commit".to_owned(),
        format!("test -z \"$(ls -A '{}' 2>&-)\"", keys.display()),
        format!("test -d . && ! {connects}"),
        "test -z \"$(ls -A .git/worktrees/tree/onus 2>&-)\"".to_owned(),
        format!("test ! -e {socket}"),
        "test -z \"$(tr '\\0' '\\n' < /proc/1/environ | grep -E 'ONUS_(LEASE|TOKEN|STORE)')\"".to_owned(),
        "test \"$(cut -d' ' -f6 /proc/$$/stat)\" != 0".to_owned(),
    ] {
        site.by_person(&["add", "work", "--check", &check]);
        let task = text(&site.tasks().last().unwrap()["id"]).to_owned();
        claim(&site, &task);
        let tried = site.run(&["check", &task, "--as", "@a1", "--sandbox", "bubblewrap", "--json"]);
        assert!(tried.is_ok(), "{check}: {tried:#?}");
        site.ok(&["release", &task, "--as", "@a1"]);
        site.by_person(&["drop", &task, "--reason", "seen"]);
    }
    if listening.is_ok() {
        std::fs::remove_file(socket).unwrap();
    }
    site.by_person(&["add", "work", "--check", &connects]);
    let task = text(&site.tasks().last().unwrap()["id"]).to_owned();
    claim(&site, &task);
    let shown = site.ok(&["check", &task, "--as", "@a1", "--sandbox", "bubblewrap-network"]);
    assert_eq!(shown["checks"][0]["run"]["sandbox"], made("bubblewrap-network"));
}

/// Who looks at a task sees what others said about the work, and why the defect was.
#[test]
fn reviews_and_root_causes_are_shown() {
    let site = site();
    site.by_person(&["add", "bug", "--kind", "defect", "--check", "test -d ."]);
    claim(&site, "T-1");
    site.by_person(&["check", "T-1", "--add", "test -e .", "--kind", "root-cause"]);
    site.ok(&["check", "T-1", "--as", "@a1"]);
    let review = ["review", "T-1", "--as", "@a2", "--workstation", "ws-2"];
    site.ok(&[&review[..], &["--reject", "--as-implemented", "--note", "the limit is off by one"]].concat());
    site.ok(&[&review[..], &["--approve", "--as-implemented"]].concat());
    let cause = ["--root-cause", "the counter was never reset", "--owner", "src/login.rs"];
    site.ok(&[&["complete", "T-1", "--as", "@a1", "--resolution", "reset"], &cause[..]].concat());
    let shown = site.ok(&["show", "T-1"]);
    assert_eq!(shown["reviews"][0]["verdict"], "rejected", "{shown:#}");
    assert_eq!(shown["reviews"][0]["by"], "@a2");
    assert_eq!(shown["reviews"][0]["note"], "the limit is off by one");
    assert_eq!(shown["reviews"][1]["verdict"], "approved");
    assert_eq!(shown["root_cause"]["statement"], "the counter was never reset");
    assert_eq!(shown["root_cause"]["owner"], "src/login.rs");
    let told = site.run(&["show", "T-1"]).stdout;
    for words in ["the limit is off by one", "@a2 approved", "root cause: the counter was never reset"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

/// A run that Onus did not make is told as stated wherever a run is told.
#[test]
fn what_is_only_stated_is_told_as_such_at_every_door() {
    if std::env::var_os("ONUS_TEST_STORE").is_some() {
        return;
    }
    let site = Site::new();
    let (agent, token) = site.token_bearers(1).remove(0);
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let added = site.by_person(&["add", "work", "--check", "test -d .", "--sprint", "s1"]);
    let task = text(&added["task"]["id"]);
    let claimed = server
        .post(&token, &format!("/v1/tasks/{task}/claim"), json!({ "workstation": agent.workstation }))
        .ok();
    let lease = &claimed["lease"]["token"];
    let check = &site.ok(&["check", task, "--list"])["checks"][0]["id"];
    let run =
        json!({ "action": "record", "check": check, "exit": 0, "lease": lease, "sandbox": "bubblewrap" });
    server.post(&token, &format!("/v1/tasks/{task}/checks"), run).ok();
    let is_stated = |run: &Value, door: &str| assert_eq!(run["stated"], true, "{door}: {run:#}");
    is_stated(&site.ok(&["check", task, "--list"])["checks"][0]["run"], "check --list");
    assert!(site.run(&["check", task, "--list"]).stdout.contains("stated"));
    let over_http = server.get(&person, &format!("/v1/tasks/{task}/checks")).ok();
    is_stated(&over_http["checks"][0]["run"], "GET checks");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "check", "arguments": { "task": task, "list": true } } });
    let accept = ("accept", "application/json, text/event-stream");
    let told = server.post_with(&token, "/mcp", &[accept], call).ok();
    is_stated(&told["result"]["structuredContent"]["checks"][0]["run"], "MCP check");
    server
        .post(&token, &format!("/v1/tasks/{task}/handoffs"), json!({ "lease": lease, "summary": "half" }))
        .ok();
    is_stated(&site.ok(&["handoff", task, "--show"])["handoff"]["tests_run"][0], "handoff");
    let done = json!({ "lease": lease, "resolution": "done" });
    server.post(&token, &format!("/v1/tasks/{task}/complete"), done).ok();
    let now = site.by_person(&["report", "now"]);
    assert_eq!(now["completed"][0]["stated"], 1, "{now:#}");
    assert!(site.run(&["report", "now", "--as", &site.person]).stdout.contains("1/1, 1 stated"));
    let day = site.ok(&["worker", "day", &agent.handle]);
    let acts = day["tasks"][0]["acts"].as_array().unwrap();
    let ran = acts.iter().find(|act| act["verb"] == "check_run").unwrap();
    is_stated(&ran["evidence"], "worker day");
    assert!(site.run(&["worker", "day", &agent.handle]).stdout.contains("stated"));
    let cookie = format!("onus-{}={person}", server.address().rsplit(':').next().unwrap());
    let page = |path: &str| {
        server.try_call("GET", path, &[("cookie", &cookie)], None).unwrap().body.as_str().unwrap().to_owned()
    };
    for (path, words) in [
        (format!("/tasks/{task}"), "stated: Onus did not run it"),
        ("/now".to_owned(), "only stated"),
        (format!("/effort/day?worker={}", agent.handle), "stated: Onus did not run it"),
    ] {
        let page = page(&path);
        assert!(page.contains(words), "{path}: {page}");
    }
}
