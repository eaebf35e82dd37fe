//! The dispatcher: places what it can, explains the rest, and never gives a task twice (mission D15).

use crate::support::map::{ROUTES, SEED, Server, field};
use crate::support::{HANG, Site, at_once, finish, start, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn four_tasks_go_to_four_agents_and_the_fifth_is_explained() {
    let site = Site::seeded();
    let tasks = ROUTES.map(|(task_type, ..)| site.add_of_type(task_type));
    let docs = site.add_of_type("docs");

    let dry = site.by_person(&["dispatch", "--once", "--dry-run"]);
    assert_eq!(field(&dry["placed"], "task"), tasks);
    assert_eq!(site.ok(&["list", "--state", "in_progress"])["tasks"], Value::Array(Vec::new()));

    let view = site.by_person(&["dispatch", "--once"]);
    for (placed, (_, agent, workstation)) in view["placed"].as_array().unwrap().iter().zip(ROUTES) {
        assert_eq!((text(&placed["assignee"]), text(&placed["workstation"])), (agent, workstation));
    }
    assert_eq!(field(&view["placed"], "task"), tasks);
    assert_eq!(field(&view["unplaced"], "task"), [&docs]);
    let finding = &view["unplaced"][0]["findings"][0];
    assert_eq!(text(&finding["code"]), "routing_denied");
    assert!(text(&finding["hint"]).contains("task_type: docs"), "{finding}");

    // The token lies where each agent's next command finds it; commits made here are still nobody's task.
    assert!(!site.repo().join(".git/onus/trailers").exists());
    for (task, (_, agent, _)) in tasks.iter().zip(ROUTES) {
        site.ok(&["complete", task, "--resolution", "done", "--as", agent]);
    }
    // What nobody may take is ready still, and explained again; nothing is refused into the record each round.
    let entries = site.ledger().len();
    assert_eq!(field(&site.by_person(&["dispatch", "--once"])["unplaced"], "task"), [&docs]);
    assert_eq!(site.ledger().len(), entries);
    site.by_person(&["drop", &docs, "--reason", "no"]);
    assert_eq!(site.run(&["dispatch", "--once", "--as", &site.person, "--json"]).code(), "nothing_ready");
    site.assert_sound();
}

#[test]
fn a_dry_run_writes_nothing() {
    let server = Server::start();
    let site = Site::seeded();
    site.commit_map(&SEED.replace("ws-backend-01", "ws-backend-02"));
    site.by_person(&["workstation", "add", "ws-backend-02", "--probe", &server.http()]);
    server.is_well.store(false, Ordering::SeqCst);
    site.run(&["workstation", "probe", "ws-backend-02", "--as", &site.person]);
    server.is_well.store(true, Ordering::SeqCst);
    site.add_of_type("backend_feature");
    site.add_of_type("backend_feature");
    let everything = || (site.ledger(), site.tasks(), site.ok(&["workstation", "show", "ws-backend-02"]));
    let before = everything();

    let view = site.by_person(&["dispatch", "--dry-run"]);
    assert_eq!((view["placed"].as_array().unwrap().len(), &view["dry_run"]), (1, &Value::from(true)));
    assert_eq!(text(&view["unplaced"][0]["findings"][0]["code"]), "workstation_busy", "{view:#}");
    assert_eq!(text(&view["workstations"][0]["state"]), "ready");
    assert_eq!(everything(), before);

    assert_eq!(site.by_person(&["dispatch", "--once"])["placed"].as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_that_was_given_work_in_a_worktree_can_commit_there() {
    let site = Site::seeded();
    site.commit_map(&SEED.replace("ws-backend-01", "ws-backend-02"));
    site.by_person(&["hook", "install"]);
    site.by_person(&["workstation", "add", "ws-backend-02", "--kind", "worktree"]);
    let shown = site.ok(&["workstation", "show", "ws-backend-02"]);
    let tree = text(&shown["workstations"][0]["path"]);
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        site.surroundings(&mut git).args(["-C", tree]).args(args).env("ONUS_AS", "@agent-builder-01");
        git.output().unwrap()
    };
    let commit = ["commit", "--quiet", "--allow-empty", "--message=work"];
    assert!(!git(&commit).status.success(), "nobody was given work there");
    let task = site.add_of_type("backend_feature");
    // The tree is behind, without the code that the task depends on, and somebody left something in it.
    site.commit(&site.repo(), "library", "1\n", &[]);
    std::fs::write(std::path::Path::new(tree).join("left-lying"), "half\n").unwrap();

    site.by_person(&["dispatch", "--once"]);

    assert_eq!(site.git_in(tree.as_ref(), &["rev-parse", "HEAD"]), site.main());
    assert_eq!(site.git_in(tree.as_ref(), &["ls-files", "--cached", "--others"]), {
        let files = site.git_in(&site.repo(), &["ls-files"]);
        assert!(files.contains("library"), "{files}");
        files
    });
    let kept = site.git_in(&site.repo(), &["for-each-ref", "--format=%(refname)", "refs/onus/salvage/"]);
    assert!(site.git_in(&site.repo(), &["ls-tree", "--name-only", &kept]).contains("left-lying"), "{kept}");
    let done = git(&commit);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let message = String::from_utf8(git(&["log", "-1", "--format=%B"]).stdout).unwrap();
    assert!(message.contains(&format!("Onus-Task: {task}")), "{message}");
    assert!(message.contains("Onus-Agent: @agent-builder-01"), "{message}");
}

#[test]
fn only_people_dispatch() {
    let site = Site::seeded();
    site.add_of_type("backend_feature");
    assert_eq!(
        site.run(&["dispatch", "--once", "--as", "@agent-infra-01", "--json"]).code(),
        "human_required"
    );
    assert_eq!(site.run(&["dispatch", "--once", "--json"]).code(), "identity_required");
    let named = ["dispatch", "--once", "--as", &site.person, "--request-id", "r1", "--json"];
    assert_eq!(site.run(&named).code(), "invalid_input", "one id cannot stand for many claims");
    let site = Site::new();
    assert_eq!(site.run(&["dispatch", "--once", "--as", &site.person, "--json"]).code(), "map_invalid");
}

const REVIEW: &str = r#"routing:
  - task_type: backend_feature
    agent_name: "@agent-verifier-01"
    workstation: ws-verification-01
  - task_type: verification
    candidates:
      - { agent_name: "@agent-verifier-01", workstation: ws-verification-01 }
      - { agent_name: "@agent-builder-02", workstation: ws-frontend-staging }
"#;

#[test]
fn who_built_it_is_passed_over() {
    let site = Site::seeded();
    site.commit_map(REVIEW);
    let built = site.add_of_type("backend_feature");
    let review = site.by_person(&["add", "look at it", "--type", "verification", "--depends-on", &built]);
    assert_eq!(field(&site.by_person(&["dispatch", "--once"])["placed"], "task"), [&built]);
    site.ok(&["complete", &built, "--resolution", "done", "--as", "@agent-verifier-01"]);
    let view = site.by_person(&["dispatch", "--once"]);
    assert_eq!(view["placed"][0]["task"], review["task"]["id"]);
    assert_eq!(field(&view["placed"], "assignee"), ["@agent-builder-02"]);
}

#[test]
fn dispatchers_at_once_give_each_task_once() {
    let site = Site::new();
    let agents = site.agents(12);
    let rules = agents.iter().enumerate().map(|(at, agent)| {
        format!(
            "  - task_type: t{at}\n    agent_name: \"{}\"\n    workstation: {}\n",
            agent.handle, agent.workstation
        )
    });
    site.commit_map(&format!("routing:\n{}", rules.collect::<String>()));
    for at in 0..12 {
        site.add_of_type(&format!("t{at}"));
    }
    let args = ["dispatch", "--once", "--as", &site.person, "--json"];

    let answers = at_once((0..4).map(|_| site.command(&args)));

    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    for answer in answers.iter().filter(|answer| answer.is_ok()) {
        for task in field(&answer.json()["placed"], "task") {
            *given.entry(task.to_owned()).or_default() += 1;
        }
    }
    for answer in answers.iter().filter(|answer| !answer.is_ok()) {
        assert_eq!(answer.code(), "nothing_ready");
    }
    assert_eq!(given.len(), 12, "{answers:#?}");
    assert!(given.values().all(|times| *times == 1), "{given:?}");
    let claimed = site.ledger().iter().filter(|entry| entry["verb"] == "claimed").count();
    assert_eq!(claimed, 12);
    site.assert_sound();
}

#[test]
fn the_loop_places_what_becomes_possible_and_ends_when_asked() {
    let server = Server::start();
    server.is_well.store(false, Ordering::SeqCst);
    let site = Site::seeded();
    site.commit_map(&SEED.replace("ws-backend-01", "ws-backend-02"));
    site.by_person(&["workstation", "add", "ws-backend-02", "--probe", &server.http()]);
    let task = site.add_of_type("backend_feature");
    let loops = start(&mut site.command(&["dispatch", "--interval", "50ms", "--as", &site.person]));
    let pid = loops.id().to_string();

    let until = Instant::now() + HANG;
    // At least three rounds in which nothing changes.
    let mut rounds = BTreeSet::new();
    while rounds.len() < 3 && Instant::now() < until {
        let shown = site.ok(&["workstation", "show", "ws-backend-02"]);
        let probe = &shown["workstations"][0]["probes"][0];
        if probe["verdict"] == "failed" {
            rounds.insert(text(&probe["at"]).to_owned());
        }
    }
    assert_eq!(rounds.len(), 3);
    assert_eq!(site.task(&task)["state"], "open");
    server.is_well.store(true, Ordering::SeqCst);
    while site.task(&task)["state"] == "open" && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let answer = finish(loops);

    assert_eq!(answer.exit, Some(0), "{answer:#?}");
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(
        lines.iter().filter(|line| line.starts_with(&format!("waits {task}"))).count(),
        1,
        "{lines:?}"
    );
    assert_eq!(lines.iter().filter(|line| **line == "ready ws-backend-02").count(), 1, "{lines:?}");
    let placed = format!("placed {task} to @agent-builder-01 in ws-backend-02: a backend_feature");
    assert_eq!(lines.last(), Some(&placed.as_str()));
    site.assert_sound();
}
