//! Who gets which task: the map in force, each way of breaking it, and what `route` tells (mission C1, C2, C4, C13).

use crate::support::case::{case, furnished, refuse};
use crate::support::map::{FILE, ROUTES, SEED, Server, field};
use crate::support::{Answer, Site, text};
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::Ordering;

fn claim(site: &Site, task: &str, agent: &str, more: &[&str]) -> Answer {
    site.run(&[&["claim", task, "--as", agent, "--json"], more].concat())
}

fn output(site: &Site, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = site.surroundings(&mut command).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_seeds_map_routes_its_four_types() {
    let site = Site::seeded();
    let commit = output(&site, "git", &["rev-parse", "HEAD"]);
    let hash = output(&site, "sha256sum", &[FILE]);
    for (at, (task_type, agent, workstation)) in ROUTES.into_iter().enumerate() {
        let task = site.add_of_type(task_type);
        let answer = claim(&site, &task, agent, &[]);
        assert!(answer.is_ok(), "{answer:#?}");
        let held = answer.json()["assignment"].clone();
        assert_eq!((text(&held["assignee"]), text(&held["workstation"])), (agent, workstation));
        let rule = format!("routing[{at}] {task_type} -> {agent} in {workstation}");
        assert_eq!(text(&held["route"]["rule"]), rule);
        assert_eq!(text(&held["route"]["map_commit"]), commit.trim());
        assert_eq!(text(&held["route"]["map_hash"]), hash.split(' ').next().unwrap());
    }
    let shown = site.ok(&["route", "show"]);
    assert_eq!(field(&shown["rules"], "task_type"), ROUTES.map(|(task_type, ..)| task_type));
    assert_eq!(text(&shown["map_commit"]), commit.trim());
    let check = site.run(&["route", "check"]);
    assert_eq!((check.exit, check.stdout.as_str()), (Some(0), "4 rules and 0 roles can be followed\n"));
    site.assert_sound();
}

/// The refusal has this code and says this; the task stays with nobody, and the attempt is on record.
fn assert_refused(site: &Site, task: &str, answer: &Answer, code: &str, says: &str, next: &str) {
    let error = answer.error();
    assert_eq!(text(&error["code"]), code, "{error:#}");
    let told = error["findings"].as_array().unwrap().iter().any(|finding| {
        text(&finding["detail"]).contains(says) && finding["hint"].as_str().unwrap_or("").contains(next)
    });
    assert!(told, "no finding says `{says}` and leads to `{next}`: {error:#}");
    let row = site.task(task);
    assert_eq!((text(&row["state"]), &row["assignment"]), ("open", &Value::Null));
    let log = site.ok(&["ledger", "log", "--task", task]);
    let last = log["entries"].as_array().unwrap().iter().max_by_key(|entry| entry["seq"].as_i64()).unwrap();
    assert_eq!((text(&last["verb"]), text(&last["data"]["code"])), ("refused", code), "{last:#}");
}

#[test]
fn each_way_of_breaking_the_map_has_its_own_answer() {
    let site = Site::seeded();
    let (backend, docs) = (site.add_of_type("backend_feature"), site.add_of_type("docs"));
    let builder = "@agent-builder-01";

    let answer = claim(&site, &backend, "@agent-infra-01", &["--workstation", "ws-backend-01"]);
    let says =
        "routing[0] backend_feature allows @agent-builder-01 in ws-backend-01; @agent-infra-01 is not listed";
    assert_refused(&site, &backend, &answer, "routing_denied", says, FILE);

    let answer = claim(&site, &backend, builder, &["--workstation", "ws-infra-prod"]);
    let says = "ws-infra-prod is not listed";
    assert_refused(&site, &backend, &answer, "routing_denied", says, "--workstation ws-backend-01");

    let answer = claim(&site, &docs, builder, &["--workstation", "ws-backend-01"]);
    let says = "no rule routes the type docs";
    assert_refused(&site, &docs, &answer, "routing_denied", says, "add a rule with `task_type: docs`");

    site.by_person(&["workstation", "quarantine", "ws-backend-01", "--reason", "disk full"]);
    let answer = claim(&site, &backend, builder, &[]);
    let next = "onus workstation restore ws-backend-01";
    assert_refused(&site, &backend, &answer, "workstation_quarantined", "quarantined: disk full", next);
    site.by_person(&["workstation", "restore", "ws-backend-01"]);

    let other = site.add_of_type("backend_feature");
    assert!(claim(&site, &other, builder, &[]).is_ok());
    let answer = claim(&site, &backend, builder, &[]);
    let says = format!("ws-backend-01 already holds {other} for {builder}");
    assert_refused(&site, &backend, &answer, "workstation_busy", &says, "finish or release");

    site.commit_map(&SEED.replace("ws-backend-01", "ws-backend-09"));
    let answer = claim(&site, &backend, builder, &[]);
    let next = "onus workstation add ws-backend-09";
    assert_refused(&site, &backend, &answer, "workstation_unknown", "ws-backend-09 is not registered", next);
    site.assert_sound();
}

#[test]
fn a_failing_probe_closes_the_gate_until_it_passes() {
    let server = Server::start();
    server.is_well.store(false, Ordering::SeqCst);
    let site = Site::seeded();
    site.commit_map(&SEED.replace("ws-backend-01", "ws-backend-02"));
    let (http, tcp) = (server.http(), format!("tcp:127.0.0.1:{}", server.port));
    site.by_person(&["workstation", "add", "ws-backend-02", "--probe", &http, "--probe", &tcp]);
    let task = site.add_of_type("backend_feature");

    let answer = claim(&site, &task, "@agent-builder-01", &[]);
    let next = "onus workstation probe ws-backend-02";
    assert_refused(&site, &task, &answer, "workstation_not_ready", &format!("`{http}` failed"), next);
    assert_eq!(answer.error()["findings"].as_array().unwrap().len(), 1, "the other probe passed");

    server.is_well.store(true, Ordering::SeqCst);
    assert!(claim(&site, &task, "@agent-builder-01", &[]).is_ok());
}

#[test]
fn an_edit_counts_once_it_is_committed() {
    let site = Site::seeded();
    let task = site.add_of_type("backend_feature");
    let edited = SEED.replace("backend_feature", "backend_work");
    site.write_map(&edited);
    assert_eq!(site.ok(&["route", "show"])["edited"], true);
    // Somebody who edits a map checks it before the commit.
    let error = site.run(&["route", "check", "--json"]).error();
    assert_eq!(text(&error["code"]), "map_invalid");
    assert!(text(&error["detail"]).contains("no rule routes the type backend_feature"), "{error:#}");
    let refused = |answer: &Answer| text(&answer.error()["findings"][0]["detail"]).to_owned();

    std::fs::write(site.repo().join("onus.yaml"), "routing:\n  uncommitted: refuse\n").unwrap();
    let answer = claim(&site, &task, "@agent-builder-01", &[]);
    assert_eq!(answer.code(), "map_invalid");
    assert!(refused(&answer).contains("differs from the one in main"), "{answer:#?}");
    let error = site.run(&["route", "check", "--json"]).error();
    assert_eq!(field(&error["findings"], "code"), ["map_invalid", "map_invalid"], "{error:#}");

    std::fs::write(site.repo().join("onus.yaml"), "routing:\n  uncommitted: report\n").unwrap();
    assert!(claim(&site, &task, "@agent-builder-01", &[]).is_ok(), "the committed one is in force");
}

#[test]
fn an_edit_that_breaks_nothing_is_a_warning() {
    let site = Site::seeded();
    site.write_map(&format!("{SEED}# a word\n"));
    let check = site.ok(&["route", "check"]);
    assert!(field(&check["warnings"], "detail")[0].contains("is edited"), "{check:#}");
    site.commit_map(&format!("{SEED}# a word\n"));
    assert_eq!(site.ok(&["route", "check"])["warnings"].as_array().unwrap().len(), 0);
}

#[test]
fn a_check_tells_everything_at_once() {
    let site = Site::seeded();
    site.add_of_type("docs");
    site.add("without a type");
    let map = SEED
        .replace("@agent-infra-01", "@nobody-01")
        .replace("ws-infra-prod", "ws-infra-09")
        .replace("@agent-builder-02", &site.person);
    site.commit_map(&map);
    let error = site.run(&["route", "check", "--json"]).error();
    assert_eq!(text(&error["code"]), "map_invalid");
    let told = field(&error["findings"], "detail").join("\n");
    for part in [
        "@nobody-01, who is not registered",
        "ws-infra-09, which is not registered",
        "who is a person",
        "no rule routes the type docs of 1 open task",
        "has no type, and no rule routes `*`",
    ] {
        assert!(told.contains(part), "`{part}` is missing:\n{told}");
    }
    let file = site.root().join("other.yaml");
    std::fs::write(
        &file,
        "routing:\n  - task_type: a\n    agent_name: \"@x\"\n  - task_type: a\n    colour: red\n",
    )
    .unwrap();
    assert_eq!(site.run(&["route", "check", file.to_str().unwrap(), "--json"]).code(), "map_invalid");
}

#[test]
fn a_clone_without_a_store_checks_the_map_alone() {
    let site = Site::empty();
    // A database that somebody names is expected to be there.
    if site.database.is_some() {
        return;
    }
    site.commit_map(SEED);
    let check = site.ok(&["route", "check"]);
    assert_eq!((&check["compared"], &check["rules"]), (&Value::from(false), &Value::from(4)));
    site.commit_map(&SEED.replace("task_type: verification", "task_type: backend_feature"));
    assert_eq!(site.run(&["route", "check", "--json"]).code(), "map_invalid");
}

const TWO: &str = r#"routing:
  - task_type: backend_feature
    candidates:
      - agent_name: "@agent-builder-01"
        workstation: ws-backend-01
        when: { priority: P0..P1 }
      - { agent_name: "@agent-infra-01", workstation: ws-infra-prod }
      - { agent_name: "@agent-builder-02", workstation: ws-frontend-staging }
"#;

#[test]
fn an_explanation_names_every_candidate_and_its_reason() {
    let site = Site::seeded();
    site.commit_map(TWO);
    let task = site.add_of_type("backend_feature");
    let verdicts = |view: &Value| field(&view["candidates"], "verdict").join(" ");

    let view = site.ok(&["route", "explain", &task, "--as", "@agent-builder-01"]);
    assert_eq!(verdicts(&view), "lost won eligible", "{view:#}");
    assert_eq!(text(&view["winner"]["agent_name"]), "@agent-infra-01");
    assert_eq!(view["caller"]["allowed"], false);
    assert!(field(&view["caller"]["findings"], "detail")[0].contains("priority is P0..P1"), "{view:#}");

    assert_eq!(
        verdicts(&site.ok(&["route", "explain", "--type", "backend_feature", "--priority", "P1"])),
        "won eligible eligible"
    );

    site.by_person(&["workstation", "quarantine", "ws-infra-prod", "--reason", "disk full"]);
    let view = site.ok(&["route", "explain", &task]);
    assert_eq!(verdicts(&view), "lost eligible won", "{view:#}");
    assert!(text(&view["candidates"][1]["reasons"][0]).contains("quarantined"));
    assert_eq!(site.run(&["route", "explain", "T-99", "--json"]).code(), "unknown_task");
}

#[test]
fn the_history_tells_since_when_and_by_which_commit() {
    let site = Site::seeded();
    site.commit_map(TWO);
    let view = site.ok(&["route", "history", "backend_feature"]);
    let changes = view["types"][0]["changes"].as_array().unwrap();
    let to = |at: usize| text(&changes[at]["sends"]["to"][0]["agent_name"]).to_owned();
    assert_eq!((changes.len(), to(0), to(1)), (2, "@agent-builder-01".into(), "@agent-builder-01".into()));
    assert_eq!(text(&changes[0]["commit"]), output(&site, "git", &["rev-parse", "HEAD"]).trim());
    let gone = site.ok(&["route", "history", "verification"]);
    assert_eq!(gone["types"][0]["changes"][0]["sends"], "no_rule");
}

#[test]
fn ready_tells_what_is_not_for_the_one_who_asks() {
    let site = Site::seeded();
    let (backend, infra) = (site.add_of_type("backend_feature"), site.add_of_type("infrastructure_change"));
    let view = site.ok(&["ready", "--as", "@agent-infra-01"]);
    assert_eq!(field(&view["tasks"], "id"), [&backend, &infra]);
    assert_eq!(field(&view["not_for_caller"], "task"), [&backend]);
    assert_eq!(view["not_for_caller"][0]["reasons"][0], "routing_denied");
    assert_eq!(site.ok(&["ready"])["not_for_caller"], Value::Null);
}

#[test]
fn odd_calls_are_refused_and_change_nothing() {
    let site = furnished();
    refuse(
        &site,
        &[
            case("route explain", "invalid_input"),
            case("route explain T-1 --type docs", "invalid_input"),
            case("route explain --type docs --priority P9", "invalid_input"),
            case("route explain T-1 --as @stranger", "unknown_worker"),
            case("route check nowhere.yaml", "invalid_input"),
            case("route check /dev", "invalid_input"),
            case("route show", "map_invalid"),
            case("dispatch --once --limit 0 --as @ada-lovelace", "invalid_input"),
            case("dispatch --interval soon --as @ada-lovelace", "invalid_input"),
            case("dispatch --once --interval 1s --as @ada-lovelace", "invalid_input"),
            case("dispatch --once --as @stranger", "unknown_worker"),
            case("preflight --as @a1", "invalid_input"),
            case("preflight --role A --as @stranger", "unknown_worker"),
            case("preflight --role A --workstation ws-9 --as @a1", "workstation_unknown"),
        ],
    );
}
