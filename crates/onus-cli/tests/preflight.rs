//! Before work begins: everything that a claim would meet, with the next step (mission D6).

use crate::support::map::{SEED, Server, field};
use crate::support::{Answer, Site, text};
use serde_json::Value;
use std::sync::atomic::Ordering;

const AGENT: &str = "@agent-builder-01";

fn preflight(site: &Site, more: &[&str]) -> Answer {
    site.run(&[&["preflight", "--role", "A-backend", "--as", AGENT, "--json"], more].concat())
}

fn verdict<'v>(view: &'v Value, name: &str) -> &'v str {
    let checks = view["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).map_or("absent", |check| text(&check["verdict"]))
}

#[test]
fn work_can_begin_where_everything_is_in_place() {
    let server = Server::start();
    let site = Site::seeded();
    site.commit_map(
        &format!("{SEED}\nroles:\n  A-backend: {{ lanes: 2, workers: [\"{AGENT}\"] }}\n")
            .replace("ws-backend-01", "ws-backend-02"),
    );
    site.by_person(&["workstation", "add", "ws-backend-02", "--probe", &server.http()]);
    let task = site.by_person(&["add", "limiter", "--type", "backend_feature", "--role", "A-backend"]);
    let answer = preflight(&site, &["--workstation", "ws-backend-02"]);
    assert_eq!(answer.exit, Some(0), "{answer:#?}");
    let view = answer.json();
    assert_eq!(view["ready"][0], task["task"]["id"]);
    for (name, expected) in [
        ("map", "ok"),
        ("probes", "ok"),
        ("workstation", "ok"),
        ("leases", "ok"),
        ("tasks", "ok"),
        ("hooks", "warning"),
    ] {
        assert_eq!(verdict(&view, name), expected, "{name}: {view:#}");
    }
    site.by_person(&["hook", "install"]);
    assert_eq!(verdict(&preflight(&site, &["--workstation", "ws-backend-02"]).json(), "hooks"), "ok");

    server.is_well.store(false, Ordering::SeqCst);
    let answer = preflight(&site, &["--workstation", "ws-backend-02"]);
    assert_eq!(answer.code(), "workstation_not_ready");
    let other = site.run(&[
        "preflight",
        "--role",
        "A-backend",
        "--as",
        "@agent-infra-01",
        "--workstation",
        "ws-infra-prod",
        "--json",
    ]);
    assert_eq!(other.code(), "routing_denied", "the role lists its workers");
}

#[test]
fn what_failed_first_names_the_refusal() {
    let site = Site::seeded();
    assert_eq!(preflight(&site, &["--workstation", "ws-nowhere-01"]).code(), "workstation_unknown");
    site.by_person(&["workstation", "quarantine", "ws-backend-01", "--reason", "disk full"]);
    let error = preflight(&site, &["--workstation", "ws-backend-01"]).error();
    assert_eq!(text(&error["code"]), "workstation_quarantined");
    assert!(text(&error["hint"]).contains("onus workstation restore ws-backend-01"), "{error:#}");
    site.commit_map("routing: 7\n");
    let error = preflight(&site, &["--workstation", "ws-backend-01"]).error();
    assert_eq!(field(&error["findings"], "code"), ["map_invalid", "workstation_quarantined"]);
    let nobody = site.run(&["preflight", "--role", "A-backend", "--json"]);
    assert_eq!(nobody.code(), "identity_required");
}

#[test]
fn a_branch_that_fell_behind_is_told() {
    let site = Site::seeded();
    site.by_person(&["workstation", "add", "ws-backend-02", "--kind", "worktree"]);
    let at = ["--workstation", "ws-backend-02"];
    assert_eq!(verdict(&preflight(&site, &at).json(), "branch"), "ok");
    site.git(&["commit", "--quiet", "--allow-empty", "--message=more"]);
    let view = preflight(&site, &at).json();
    assert_eq!(verdict(&view, "branch"), "warning", "{view:#}");
    assert_eq!(verdict(&view, "tree"), "ok");
    let task = site.add("held");
    site.by_person(&[
        "claim",
        &task,
        "--for",
        AGENT,
        "--workstation",
        "ws-backend-02",
        "--force",
        "--reason",
        "test",
    ]);
    let view = preflight(&site, &at).json();
    assert_eq!((verdict(&view, "leases"), verdict(&view, "workstation")), ("warning", "warning"), "{view:#}");
}

/// It judges the workstation that a claim would take, not the one that the caller happens to stand in.
#[test]
fn it_looks_at_the_workstation_that_the_claim_would_take() {
    let site = Site::seeded();
    site.by_person(&["add", "limiter", "--type", "backend_feature", "--role", "A-backend"]);
    site.by_person(&["workstation", "add", "ws-here-01", "--kind", "worktree"]);
    let here = site.root().join("repo-ws-here-01");
    let asked = ["preflight", "--role", "A-backend", "--as", AGENT, "--json"];
    let stood = crate::support::start(site.command(&asked).current_dir(&here));
    let view = crate::support::finish(stood).json();
    let taken = ["claim", "--next", "--role", "A-backend", "--as", AGENT, "--json"];
    let claimed =
        crate::support::finish(crate::support::start(site.command(&taken).current_dir(&here))).json();
    assert_eq!(view["workstation"], claimed["assignment"]["workstation"], "{view:#}");
    assert_eq!(text(&view["workstation"]), "ws-backend-01");
}
