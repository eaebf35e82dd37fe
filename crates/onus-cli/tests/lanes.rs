//! Many processes, few slots: never more live assignments than a lane has room for, never two that share a path or a
//! workstation, at no time (mission C7, D2).

use crate::support::{Agent, Answer, Site, at_once, finish, is_soak, start, text};
use serde_json::Value;
use std::collections::BTreeMap;

const PROCESSES: usize = 32;

/// Each role, its lanes, and how many may be at work in each.
const ROLES: [(&str, i64, usize); 3] = [("A-backend", 2, 2), ("B-ui", 1, 3), ("C-docs", 3, 1)];

/// Directories: two of them overlap exactly if one lies in the other.
const SCOPES: [&str; 10] =
    ["src", "src/login", "src/api", "web", "web/a", "web/b", "docs", "db", "db/migrations", "ops"];

fn overlap(one: &str, other: &str) -> bool {
    one == other || one.starts_with(&format!("{other}/")) || other.starts_with(&format!("{one}/"))
}

/// Everybody may take everything; only lanes and scopes are in the way.
fn crowd(site: &Site) -> Vec<Agent> {
    let agents = site.agents(PROCESSES);
    let candidate = |agent: &Agent| {
        format!("      - {{ agent_name: \"{}\", workstation: {} }}\n", agent.handle, agent.workstation)
    };
    let candidates: String = agents.iter().map(candidate).collect();
    let role = |(name, lanes, most): &(&str, i64, usize)| {
        format!("  {name}: {{ lanes: {lanes}, max_in_progress: {most} }}\n")
    };
    let roles: String = ROLES.iter().map(role).collect();
    site.commit_map(&format!("routing:\n  - task_type: \"*\"\n    candidates:\n{candidates}roles:\n{roles}"));
    agents
}

fn add(site: &Site, at: usize) -> String {
    let (role, ..) = ROLES[at % ROLES.len()];
    let scope = format!("{}/**", SCOPES[at % SCOPES.len()]);
    let mut args = vec!["add", "work", "--role", role];
    // Every third task has a lane of its own choice, every fourth may touch everything nobody named.
    if at.is_multiple_of(3) {
        args.extend(["--lane", "1"]);
    }
    if !at.is_multiple_of(4) {
        args.extend(["--scope", &scope]);
    }
    text(&site.by_person(&args)["task"]["id"]).to_owned()
}

/// One live assignment, as the record tells it.
#[derive(Debug)]
struct Live {
    role: String,
    lane: i64,
    workstation: String,
    scope: Option<String>,
}

/// Plays the record from its beginning; every grant must have found room.
fn replay(ledger: &[Value]) -> usize {
    let mut specs: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut live: BTreeMap<&str, Live> = BTreeMap::new();
    let mut most = 0;
    let mut entries: Vec<&Value> = ledger.iter().filter(|entry| entry["task"].is_string()).collect();
    entries.sort_by_key(|entry| entry["seq"].as_i64());
    for entry in entries {
        let task = text(&entry["task"]);
        match text(&entry["verb"]) {
            "added" => drop(specs.insert(task, &entry["data"]["spec"])),
            "claimed" => {
                let grant = grant(specs[task], entry);
                check_room(&live, task, &grant);
                live.insert(task, grant);
                most = most.max(live.len());
            }
            "released" | "completed" => drop(live.remove(task)),
            _ => {}
        }
    }
    most
}

fn grant(spec: &Value, entry: &Value) -> Live {
    let scope = spec["scope"][0].as_str().map(|glob| glob.trim_end_matches("/**").to_owned());
    Live {
        role: text(&spec["role"]).to_owned(),
        lane: entry["data"]["grant"]["lane"].as_i64().unwrap(),
        workstation: text(&entry["workstation"]).to_owned(),
        scope,
    }
}

fn check_room(live: &BTreeMap<&str, Live>, task: &str, new: &Live) {
    let (_, lanes, most) = ROLES.into_iter().find(|(role, ..)| *role == new.role).unwrap();
    assert!((1..=lanes).contains(&new.lane), "{task}: {new:?}");
    let beside = live.values().filter(|other| other.role == new.role && other.lane == new.lane).count();
    assert!(beside < most, "{task} is one too many in {}:{}: {live:#?}", new.role, new.lane);
    for (other, held) in live {
        assert_ne!(held.workstation, new.workstation, "{other} and {task}");
        if let (Some(one), Some(two)) = (&held.scope, &new.scope) {
            assert!(!overlap(one, two), "{other} has {one}, {task} has {two}");
        }
    }
}

#[test]
fn lanes_and_scopes_hold_against_32_processes() {
    let site = Site::new();
    let agents = crowd(&site);
    let tasks: Vec<String> = (0..PROCESSES).map(|at| add(&site, at)).collect();
    let mut codes: BTreeMap<String, usize> = BTreeMap::new();
    // On other stores each of them costs as much again at the other end.
    let rounds = if std::env::var_os("ONUS_TEST_STORE").is_some() && !is_soak() { 2 } else { 4 };
    for round in 0..rounds {
        // Whoever holds something gives it back while the others claim.
        let held: BTreeMap<String, String> = site
            .tasks()
            .iter()
            .filter(|task| task["state"] == "in_progress")
            .map(|task| (text(&task["assignment"]["assignee"]).to_owned(), text(&task["id"]).to_owned()))
            .collect();
        let calls: Vec<[&str; 5]> = (agents.iter().enumerate())
            .map(|(at, agent)| match held.get(&agent.handle) {
                Some(task) => ["release", task, "--as", &agent.handle, "--json"],
                None => {
                    let task = tasks[(at * 7 + round * 5) % tasks.len()].as_str();
                    ["claim", task, "--as", &agent.handle, "--json"]
                }
            })
            .collect();
        let answers: Vec<Answer> = at_once(calls.iter().map(|call| site.command(call)));
        for (call, mut answer) in calls.iter().zip(answers) {
            // A slow machine keeps some waiting for longer than a database lets them: they ask again.
            while answer.exit == Some(69) && answer.code() == "store_busy" {
                answer = finish(start(&mut site.command(call)));
            }
            let code = if answer.is_ok() { "ok".to_owned() } else { answer.code() };
            *codes.entry(code).or_default() += 1;
        }
    }

    let most = replay(&site.ledger());
    // Each limit was met by somebody, and still many worked side by side.
    assert!(codes.contains_key("lane_full") && codes.contains_key("scope_overlap"), "{codes:?}");
    let known = ["ok", "lane_full", "scope_overlap", "lease_held"];
    assert!(codes.keys().all(|code| known.contains(&code.as_str())), "{codes:?}");
    assert!(most >= 4, "at most {most} at once: {codes:?}");
    site.assert_sound();
}

/// The worktree of a lane takes the work of that lane, the queue names no lane that there is not, and a worktree stays as
/// long as its role needs it.
#[test]
fn a_worktree_belongs_to_its_lane() {
    let site = Site::new();
    site.by_person(&["worker", "add", "@one", "--kind", "agent"]);
    site.commit_map("roles:\n  A-backend: { lanes: 2 }\n");
    for lane in ["1", "2"] {
        let name = format!("ws-backend-0{lane}");
        site.by_person(&[
            "workstation",
            "add",
            &name,
            "--kind",
            "worktree",
            "--role",
            "A-backend",
            "--lane",
            lane,
        ]);
    }
    let add =
        |more: &[&str]| text(&site.by_person(&[&["add", "work"], more].concat())["task"]["id"]).to_owned();
    let second = add(&["--role", "A-backend", "--lane", "2"]);
    let claim = |task: &str, place: &str| {
        site.run(&["claim", task, "--as", &site.person, "--workstation", place, "--json"])
    };
    let refused = claim(&second, "ws-backend-01");
    assert_eq!(refused.code(), "routing_denied", "{refused:#?}");
    assert!(text(&refused.error()["detail"]).contains("A-backend:1"), "{refused:#?}");
    assert_eq!(claim(&second, "ws-backend-02").exit, Some(0));

    let ninth = add(&["--role", "A-backend", "--lane", "9"]);
    let nobodys = add(&["--role", "Z-nobody"]);
    let found = site.run(&["validate", "--json"]);
    assert_eq!(found.code(), "queue_invalid");
    let details = found.error()["findings"].to_string();
    assert!(details.contains(&ninth) && details.contains(&nobodys), "{details}");
    for task in [&ninth, &nobodys] {
        site.by_person(&["drop", task, "--reason", "test"]);
    }
    site.ok(&["validate"]);

    // Lane 2 is under way, and lane 1 has work to come that would have nowhere to go.
    let first = add(&["--role", "A-backend", "--lane", "1"]);
    for (place, task) in [("ws-backend-02", &second), ("ws-backend-01", &first)] {
        let refused = site.run(&["workstation", "remove", place, "--as", &site.person, "--json"]);
        assert_eq!(refused.code(), "workstation_busy", "{refused:#?}");
        assert!(refused.error().to_string().contains(task.as_str()), "{refused:#?}");
    }
    for task in [&first, &second] {
        site.by_person(&["drop", task, "--reason", "test"]);
    }
    site.by_person(&["workstation", "remove", "ws-backend-01"]);
    site.assert_sound();
}
