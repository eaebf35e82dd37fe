//! Readiness is continuous: what a workstation needs goes down, and the gate closes (mission C4, C5).

use crate::support::{Answer, HANG, Site, start};
use onus_testkit::LocalStack;
use serde_json::Value;
use std::net::TcpListener;
use std::time::{Duration, Instant};

const AGENT: &str = "@agent-infra-01";

/// One agent, and a workstation with one probe.
fn site(probe: &str) -> Site {
    let site = Site::new();
    site.by_person(&["worker", "add", AGENT, "--kind", "agent"]);
    site.by_person(&["workstation", "add", "ws-infra-prod", "--kind", "worktree", "--probe", probe]);
    site
}

fn state(site: &Site) -> String {
    let shown = site.ok(&["workstation", "show", "ws-infra-prod"]);
    shown["workstations"][0]["state"].as_str().unwrap().to_owned()
}

fn claim(site: &Site, task: &str) -> Answer {
    site.run(&["claim", task, "--as", AGENT, "--workstation", "ws-infra-prod", "--json"])
}

fn error(answer: &Answer) -> Value {
    serde_json::from_str::<Value>(&answer.stderr).unwrap_or_else(|_| panic!("{answer:?}"))["error"].clone()
}

#[test]
fn a_server_that_goes_down_closes_the_gate_within_one_interval() {
    let Some(mut server) = LocalStack::start() else { return };
    let spec = format!("localstack:http://127.0.0.1:{}#services=s3+sqs", server.port);
    let site = site(&spec);
    assert_eq!(state(&site), "ready");
    let (first, second) = (site.add("while it is up"), site.add("while it is down"));
    assert_eq!(claim(&site, &first).exit, Some(0));
    site.ok(&["release", &first, "--as", AGENT, "--note", "later"]);

    let watch = ["workstation", "probe", "ws-infra-prod", "--watch", "--interval", "1s", "--as", AGENT];
    let mut watching = start(&mut site.command(&watch));
    server.stop();
    let down = Instant::now();
    while state(&site) == "ready" {
        assert!(down.elapsed() < HANG, "nobody noticed");
        std::thread::sleep(Duration::from_millis(100));
    }
    watching.kill().unwrap();
    watching.wait().unwrap();

    let refused = claim(&site, &second);
    assert_eq!(refused.exit, Some(5), "{refused:?}");
    let error = error(&refused);
    assert_eq!(error["code"], "workstation_not_ready");
    let finding = &error["findings"][0];
    assert_eq!(finding["class"], "not_ready");
    assert!(finding["detail"].as_str().unwrap().contains(&spec), "{finding}");
    assert!(finding["hint"].as_str().unwrap().contains("onus workstation probe ws-infra-prod"), "{finding}");
    assert_eq!(site.task(&second)["state"], "open");
    let verbs: Vec<String> =
        site.ledger().iter().map(|entry| entry["verb"].as_str().unwrap().to_owned()).collect();
    for verb in ["workstation_ready", "workstation_not_ready", "refused"] {
        assert!(verbs.iter().any(|found| found == verb), "{verb}: {verbs:?}");
    }
    site.assert_sound();
}

/// Nobody need watch: a claim asks the probes itself, and a workstation that came back is ready at once.
#[test]
fn a_claim_asks_the_probes_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let site = site(&format!("tcp:127.0.0.1:{port}"));
    let task = site.add("work");
    drop(listener);
    assert_eq!(state(&site), "ready", "nothing has asked since");
    let refused = claim(&site, &task);
    assert_eq!(error(&refused)["code"], "workstation_not_ready", "{refused:?}");
    assert_eq!(state(&site), "registered");
    let _again = TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(claim(&site, &task).exit, Some(0));
    site.assert_sound();
}

#[test]
fn a_worktree_that_vanished_is_not_ready() {
    let site = site("git:clean");
    let task = site.add("work");
    std::fs::remove_dir_all(site.root().join("repo-ws-infra-prod")).unwrap();
    let refused = claim(&site, &task);
    let error = error(&refused);
    assert_eq!(error["code"], "workstation_not_ready", "{refused:?}");
    assert!(error["findings"].to_string().contains("is not there"), "{error}");
    // The same registration makes it again, on its branch.
    site.by_person(&["workstation", "add", "ws-infra-prod", "--kind", "worktree", "--probe", "git:clean"]);
    assert_eq!(claim(&site, &task).exit, Some(0));
    site.assert_sound();
}

#[test]
fn a_single_task_workstation_serves_once() {
    let site = Site::new();
    site.by_person(&["worker", "add", AGENT, "--kind", "agent"]);
    let add = ["workstation", "add", "ws-infra-prod", "--kind", "worktree", "--lifecycle", "single-task"];
    site.by_person(&add);
    let (first, second) = (site.add("first"), site.add("second"));
    assert_eq!(claim(&site, &first).exit, Some(0));
    site.ok(&["complete", &first, "--as", AGENT, "--resolution", "done"]);
    assert_eq!(state(&site), "retired");
    let refused = claim(&site, &second);
    assert_eq!(error(&refused)["code"], "workstation_not_ready", "{refused:?}");
    // Its name may be used again: another version of it.
    site.by_person(&add);
    let shown = site.ok(&["workstation", "show", "ws-infra-prod"]);
    assert_eq!(shown["workstations"][0]["version"], 2);
    assert_eq!(claim(&site, &second).exit, Some(0));
    site.assert_sound();
}

#[test]
fn a_worktree_is_removed_only_when_nothing_is_lost() {
    let site = site("git");
    let tree = site.root().join("repo-ws-infra-prod");
    let remove = |code: &str, words: &[&str]| {
        let answer = site.run(&["workstation", "remove", "ws-infra-prod", "--as", &site.person, "--json"]);
        let error = error(&answer);
        assert_eq!(error["code"], code, "{answer:?}");
        for word in words {
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
    };
    let task = site.add("work");
    assert_eq!(claim(&site, &task).exit, Some(0));
    remove("workstation_busy", &[&task, AGENT]);
    site.ok(&["release", &task, "--as", AGENT, "--note", "half"]);
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let done = site.surroundings(&mut git).args(args).current_dir(&tree).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    std::fs::write(tree.join("kept"), "work").unwrap();
    git(&["add", "kept"]);
    git(&["commit", "--quiet", "--message=kept"]);
    std::fs::write(tree.join("draft"), "work").unwrap();
    remove("workstation_not_ready", &["draft", "kept", "main branch"]);
    std::fs::remove_file(tree.join("draft")).unwrap();
    remove("workstation_not_ready", &["kept"]);
    site.git(&["merge", "--quiet", "--ff-only", "agent/ws-infra-prod"]);
    site.by_person(&["workstation", "remove", "ws-infra-prod"]);
    assert!(!tree.exists());
    assert_eq!(state(&site), "retired");
    site.assert_sound();
}
