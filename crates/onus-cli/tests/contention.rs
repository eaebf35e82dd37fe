//! Many processes, one store: exactly one wins, everyone is answered, nothing is lost (mission A5, B2; rules: races).

use crate::support::{Agent, Answer, Rng, Site, at_once, finish, is_soak, start, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

fn claim(site: &Site, agent: &Agent, which: &str) -> Command {
    site.command(&["claim", which, "--as", &agent.handle, "--workstation", &agent.workstation, "--json"])
}

fn assert_codes(answers: &[Answer], code: &str) {
    for answer in answers.iter().filter(|answer| !answer.is_ok()) {
        assert_eq!(answer.code(), code, "{answer:#?}");
    }
}

#[test]
fn of_64_claims_exactly_one_wins_and_all_are_answered() {
    let site = Site::new();
    let agents = site.agents(64);
    let task = site.add("wanted by all");

    let answers = at_once(agents.iter().map(|agent| claim(&site, agent, &task)));

    let winners: Vec<&Answer> = answers.iter().filter(|answer| answer.is_ok()).collect();
    assert_eq!(winners.len(), 1, "{winners:#?}");
    assert_codes(&answers, "lease_held");
    let holder = site.task(&task)["assignment"]["assignee"].clone();
    assert_eq!(winners[0].json()["assignment"]["assignee"], holder);
    site.assert_sound();
    let longest = answers.iter().map(|answer| answer.took).max().unwrap();
    eprintln!("64 claims of one task: longest wait {longest:?}");
}

/// One worker of the drain: claims and completes until nothing is ready.
fn drain(site: &Site, agent: &Agent) -> Vec<String> {
    let mut done = Vec::new();
    loop {
        let claimed = finish(start(&mut claim(site, agent, "--next")));
        if !claimed.is_ok() {
            assert_eq!(claimed.code(), "nothing_ready");
            return done;
        }
        let task = text(&claimed.json()["task"]["id"]).to_owned();
        let completed =
            site.run(&["complete", &task, "--as", &agent.handle, "--resolution", "done", "--json"]);
        assert!(completed.is_ok(), "{completed:#?}");
        done.push(task);
    }
}

#[test]
fn sixteen_processes_drain_the_queue_without_a_loss_or_a_double() {
    let site = Site::new();
    // On other stores each process costs as much again at the other end.
    let tasks = match (is_soak(), site.database.is_some()) {
        (true, false) => 2_000,
        (true, true) => 300,
        (false, false) => 400,
        (false, true) => 200,
    };
    let agents = site.agents(16);
    let line = |n: usize| format!("{{\"title\":\"task {n}\",\"origin_ask_ref\":\"drain:{n}\"}}\n");
    site.import((0..tasks).map(line).collect());

    let shares: Vec<Vec<String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = agents.iter().map(|agent| scope.spawn(|| drain(&site, agent))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });

    let done: Vec<&String> = shares.iter().flatten().collect();
    assert_eq!(done.len(), tasks, "as many completions as tasks");
    assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), tasks, "no task twice");
    let states: Vec<Value> = site.tasks().iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states.len(), tasks);
    assert!(states.iter().all(|state| state == "complete"), "{states:?}");
    site.assert_sound();
    let share = |pick: fn(std::vec::IntoIter<usize>) -> Option<usize>| {
        pick(shares.iter().map(Vec::len).collect::<Vec<_>>().into_iter()).unwrap()
    };
    eprintln!("drain: smallest share {}, largest {}", share(Iterator::min), share(Iterator::max));
}

/// What an acknowledged call granted: the task and the epoch of its lease.
type Grant = (String, i64);

/// One worker of the storm: random commands on a few tasks, each of which may win, be fenced or be refused.
fn storm(site: &Site, agent: &Agent, tasks: &[String], mut rng: Rng, calls: usize) -> Vec<Grant> {
    let mut granted = Vec::new();
    for _ in 0..calls {
        let task = rng.pick(tasks).as_str();
        let verb = *rng.pick(&["claim", "claim", "takeover", "takeover", "renew", "release", "complete"]);
        let workstation = ["--workstation", &agent.workstation];
        let own: &[&str] = match verb {
            "claim" => &workstation,
            "takeover" => &[workstation[0], workstation[1], "--reason", "storm"],
            "complete" => &["--resolution", "storm"],
            _ => &[],
        };
        let answer = site.run(&[&[verb, task, "--as", &agent.handle, "--json"], own].concat());
        if !answer.is_ok() {
            answer.code();
            assert!(matches!(answer.exit, Some(4 | 5)), "{verb}: {answer:#?}");
        } else if matches!(verb, "claim" | "takeover") {
            let lease = &answer.json()["lease"];
            granted.push((task.to_owned(), lease["epoch"].as_i64().unwrap()));
        }
    }
    granted
}

/// The person keeps the storm going: takes leases away and reopens what was completed.
fn intervene(site: &Site, tasks: &[String], mut rng: Rng, calls: usize) {
    for _ in 0..calls {
        let task = rng.pick(tasks).as_str();
        let args: &[&str] = match rng.below(3) {
            0 => &["release", task, "--force", "--reason", "storm"],
            _ => &["reopen", task, "--reason", "storm"],
        };
        let answer = site.run(&[args, &["--as", &site.person, "--json"]].concat());
        if !answer.is_ok() {
            answer.code();
            assert!(matches!(answer.exit, Some(4 | 5)), "{args:?}: {answer:#?}");
        }
    }
}

/// Verbs of the ledger by which only a holder acts.
const HOLDERS: &[&str] =
    &["claimed", "taken_over", "renewed", "released", "completed", "blocked", "unblocked"];

/// Everybody who acted as holder, by task and epoch, from the public record alone.
fn holders(site: &Site) -> BTreeMap<Grant, BTreeSet<String>> {
    let mut holders: BTreeMap<Grant, BTreeSet<String>> = BTreeMap::new();
    for entry in site.ledger() {
        let own = HOLDERS.contains(&text(&entry["verb"]));
        let (Some(task), Some(epoch)) = (entry["task"].as_str(), entry["epoch"].as_i64()) else { continue };
        if own && entry["actor"] != site.person.as_str() {
            holders.entry((task.to_owned(), epoch)).or_default().insert(text(&entry["actor"]).to_owned());
        }
    }
    holders
}

#[test]
fn a_storm_of_two_agents_leaves_one_holder_per_epoch() {
    let site = Site::new();
    // Leases that expire within the storm: takeovers, late renewals and fenced calls all happen.
    std::fs::write(site.repo().join("onus.yaml"), "lease:\n  agent_ttl: 40ms\n  grace: 10ms\n").unwrap();
    let agents = site.agents(2);
    let tasks: Vec<String> = (0..4).map(|n| site.add(&format!("storm {n}"))).collect();
    let mut rng = Rng::seeded(7);

    let grants: Vec<(String, Vec<Grant>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = agents
            .iter()
            .map(|agent| {
                let (rng, site, tasks) = (rng.fork(), &site, &tasks);
                scope.spawn(move || (agent.handle.clone(), storm(site, agent, tasks, rng, 200)))
            })
            .collect();
        intervene(&site, &tasks, rng.fork(), 100);
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });

    site.assert_sound();
    let holders = holders(&site);
    for (grant, actors) in &holders {
        assert_eq!(actors.len(), 1, "{grant:?} had several holders: {actors:?}");
    }
    let total: usize = grants.iter().map(|(_, granted)| granted.len()).sum();
    assert!(total > 10, "the storm must grant something, it granted {total}");
    let mut seen = BTreeSet::new();
    for (handle, granted) in &grants {
        for grant in granted {
            assert!(seen.insert(grant.clone()), "{grant:?} was granted twice");
            assert_eq!(holders.get(grant), Some(&BTreeSet::from([handle.clone()])), "{grant:?}");
        }
    }
    eprintln!("storm: {total} grants over {} tasks", tasks.len());
}

#[test]
fn concurrent_init_makes_one_store() {
    let site = Site::empty();
    let answers = at_once((0..16).map(|_| site.command(&["init", "--project", "T", "--json"])));
    for answer in &answers {
        assert!(answer.is_ok(), "{answer:#?}");
        assert_eq!(answer.json()["store"], answers[0].json()["store"]);
        assert_eq!(answer.json()["worker"], answers[0].json()["worker"]);
    }
    let worker = answers[0].json()["worker"].clone();
    let workers = site.ok(&["worker", "list"]);
    assert_eq!(workers["workers"].as_array().unwrap().len(), 1, "{workers}");
    assert_eq!(workers["workers"][0]["handle"], worker);
    let workstations = site.ok(&["workstation", "list"]);
    assert_eq!(workstations["workstations"].as_array().unwrap().len(), 1, "{workstations}");
    site.assert_sound();
}

#[test]
fn one_origin_asked_16_times_at_once_is_one_task() {
    let site = Site::new();
    let ask = |n: usize| {
        let title = format!("the same ask, worded {n}");
        site.command(&["add", &title, "--origin", "mail:<1@example.org>", "--as", &site.person, "--json"])
    };
    let answers = at_once((0..16).map(ask));

    let outcomes: Vec<String> =
        answers.iter().map(|answer| text(&answer.json()["outcome"]).to_owned()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "created").count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "existing").count(), 15, "{outcomes:?}");
    let ids: BTreeSet<String> =
        answers.iter().map(|answer| answer.json()["task"]["id"].to_string()).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(site.tasks().len(), 1);
    site.assert_sound();
}

#[test]
fn one_request_sent_16_times_at_once_has_one_effect_and_one_answer() {
    let site = Site::new();
    let agents = site.agents(1);
    let add = || site.command(&["add", "once", "--request-id", "req-add", "--as", &site.person, "--json"]);
    let added = at_once((0..16).map(|_| add()));
    assert_same(&added);
    assert_eq!(site.tasks().len(), 1);

    let task = text(&added[0].json()["task"]["id"]).to_owned();
    let again = || {
        let mut command = claim(&site, &agents[0], &task);
        command.args(["--request-id", "req-claim"]);
        command
    };
    let claimed = at_once((0..16).map(|_| again()));
    assert_same(&claimed);
    assert_eq!(site.task(&task)["assignment"]["epoch"], claimed[0].json()["lease"]["epoch"]);
    site.assert_sound();

    let reused = site.run(&["add", "another", "--request-id", "req-add", "--as", &site.person, "--json"]);
    assert_eq!(reused.code(), "request_conflict");
}

fn assert_same(answers: &[Answer]) {
    for answer in answers {
        assert!(answer.is_ok(), "{answer:#?}");
        assert_eq!(answer.stdout, answers[0].stdout);
    }
}
