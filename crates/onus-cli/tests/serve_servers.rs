//! Two servers on one database: of 64 callers one wins, nothing is given twice, a key has one effect at both, a stale
//! holder is fenced at either, and what one server wrote is heard at the other.

use crate::support::crowd::in_parallel;
use crate::support::events::listen;
use crate::support::server::{Reply, Server, key};
use crate::support::{Agent, Site, text};
use onus_testkit::Cluster;
use serde_json::json;
use std::collections::BTreeSet;

const CALLERS: usize = 64;

/// Two servers on one database, and everybody who calls them.
struct Stage {
    site: Site,
    servers: [Server; 2],
    bearers: Vec<(Agent, String)>,
    person: String,
}

impl Stage {
    fn claims(&self) -> usize {
        self.site.ledger().iter().filter(|entry| entry["verb"] == "claimed").count()
    }
}

/// One stage for all of them: registering so many callers takes longer than what they do.
#[test]
fn what_holds_at_one_server_holds_at_two() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let bearers = site.token_bearers(CALLERS);
    let person = site.token(&site.person);
    let servers = [Server::start(&site), Server::start(&site)];
    let stage = Stage { site, servers, bearers, person };
    exactly_one_wins_a_task(&stage);
    a_queue_is_drained_without_a_loss_or_a_double(&stage);
    a_holder_and_a_person_never_both_win(&stage);
    a_key_has_one_effect_at_both(&stage);
    what_is_revoked_commands_nothing_anywhere(&stage);
    stage.site.assert_sound();
}

fn exactly_one_wins_a_task(stage: &Stage) {
    let Stage { servers, bearers, person, .. } = stage;
    for round in 0..5 {
        let task = servers[0].add(person, &format!("wanted by all, {round}"));
        let answers: Vec<Reply> = in_parallel(bearers, |n, agent, token| {
            let body = json!({ "workstation": agent.workstation });
            servers[n % 2].post(token, &format!("/v1/tasks/{task}/claim"), body)
        });
        let (winners, losers): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(winners.len(), 1, "{winners:#?}");
        losers.iter().for_each(|loser| loser.refused(409, "lease_held"));
        let released = json!({ "force": true, "reason": "next round" });
        servers[1].post(person, &format!("/v1/tasks/{task}/release"), released).ok();
        servers[0].post(person, &format!("/v1/tasks/{task}/drop"), json!({ "reason": "won" })).ok();
    }
}

fn a_queue_is_drained_without_a_loss_or_a_double(stage: &Stage) {
    const TASKS: usize = 500;
    let Stage { site, servers, bearers, .. } = stage;
    let line = |n: usize| format!("{{\"title\":\"task {n}\",\"origin_ask_ref\":\"drain:{n}\"}}\n");
    site.import((0..TASKS).map(line).collect());
    let shares: Vec<Vec<String>> = in_parallel(bearers, |n, agent, token| {
        let mut done = Vec::new();
        loop {
            // What one server gave is good at the other.
            let (here, there) = (&servers[n % 2], &servers[(n + 1) % 2]);
            let claimed = here.post(token, "/v1/claims", json!({ "workstation": agent.workstation }));
            if claimed.status != 200 {
                claimed.refused(404, "nothing_ready");
                return done;
            }
            let task = text(&claimed.body["task"]["id"]);
            let body = json!({ "lease": claimed.body["lease"]["token"], "resolution": "done" });
            there.post(token, &format!("/v1/tasks/{task}/complete"), body).ok();
            done.push(task.to_owned());
        }
    });
    let done: Vec<&String> = shares.iter().flatten().collect();
    assert_eq!(done.len(), TASKS, "as many completions as tasks");
    assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), TASKS, "no task twice");
    let complete = site.tasks().iter().filter(|task| task["state"] == "complete").count();
    assert_eq!(complete, TASKS);
}

/// Each of 32 agents sends each of its calls to both servers at once, under one key.
fn a_key_has_one_effect_at_both(stage: &Stage) {
    let Stage { site, servers, bearers, .. } = stage;
    let agents = &bearers[..CALLERS / 2];
    let twins: Vec<_> = agents.iter().flat_map(|one| [one.clone(), one.clone()]).collect();
    let (tasks, claims) = (site.tasks().len(), stage.claims());
    // By both twins of an agent: the pairs are next to each other.
    let both = |name: &str, path: &(dyn Fn(usize) -> String + Sync), body: &serde_json::Value| {
        let answers: Vec<Reply> = in_parallel(&twins, |n, agent, token| {
            let mut body = body.clone();
            if path(n).ends_with("/claim") {
                body["workstation"] = json!(agent.workstation);
            }
            let key = format!("{name}-{}", &agent.handle[1..]);
            servers[n % 2].post_with(token, &path(n), &[("idempotency-key", &key)], body)
        });
        let told: Vec<_> = answers.into_iter().map(Reply::ok).collect();
        told.chunks(2).for_each(|pair| assert_eq!(pair[0], pair[1], "one key, one answer"));
        told
    };
    let added = both("add", &|_| "/v1/tasks".into(), &json!({ "title": "wanted once" }));
    let ids: Vec<String> = added.iter().map(|one| text(&one["task"]["id"]).to_owned()).collect();
    let claimed = both("claim", &|n| format!("/v1/tasks/{}/claim", ids[n]), &json!({}));
    let leases: BTreeSet<_> = claimed.iter().map(|one| text(&one["lease"]["token"]).to_owned()).collect();
    assert_eq!((site.tasks().len() - tasks, leases.len()), (agents.len(), agents.len()));
    assert_eq!(stage.claims() - claims, agents.len(), "none of them claimed twice");
    // The same key with other words is not the same call, wherever it is sent.
    for server in servers {
        let key = format!("add-{}", &agents[0].0.handle[1..]);
        let body = json!({ "title": "something else" });
        let other = server.post_with(&agents[0].1, "/v1/tasks", &[("idempotency-key", &key)], body);
        other.refused(409, "request_conflict");
    }
}

/// 32 holders finish at one server while a person takes their tasks away at the other: each task goes one way, and
/// whoever came too late changes nothing.
/// Both servers know the bearer; neither is told that the token is revoked.
fn what_is_revoked_commands_nothing_anywhere(stage: &Stage) {
    let Stage { site, servers, person, .. } = stage;
    let issued = site.by_person(&["worker", "token", "add", "@a1"]);
    let (token, id) = (text(&issued["secret"]), text(&issued["token"]["id"]));
    let task = servers[0].add(person, "talked about");
    let note =
        |server: &Server| server.post(token, &format!("/v1/tasks/{task}/notes"), json!({ "text": "a word" }));
    servers.iter().for_each(|server| drop(note(server).ok()));
    site.by_person(&["worker", "token", "revoke", id]);
    servers.iter().for_each(|server| note(server).refused(401, "unauthenticated"));
    assert_eq!(servers[1].get(person, &format!("/v1/tasks/{task}")).ok()["task"]["version"], 3);
}

fn a_holder_and_a_person_never_both_win(stage: &Stage) {
    let Stage { site, servers, bearers, person } = stage;
    let holders = &bearers[..CALLERS / 2];
    let held: Vec<(String, String)> = in_parallel(holders, |n, agent, token| {
        let task = servers[n % 2].add(token, &format!("held by {}", agent.handle));
        let body = json!({ "workstation": agent.workstation });
        let claimed = servers[n % 2].post(token, &format!("/v1/tasks/{task}/claim"), body).ok();
        (task, text(&claimed["lease"]["token"]).to_owned())
    });
    let complete = |n: usize, token: &str, server: &Server| {
        let (task, lease) = &held[n];
        let body = json!({ "lease": lease, "resolution": "done" });
        server.post_with(token, &format!("/v1/tasks/{task}/complete"), &[("idempotency-key", &key())], body)
    };
    let answers: Vec<Reply> = in_parallel(bearers, |n, agent, token| {
        if n < holders.len() {
            return complete(n, token, &servers[n % 2]);
        }
        let task = &held[n - holders.len()].0;
        let body = json!({ "workstation": agent.workstation, "reason": "urgent", "force": true });
        servers[(n + 1) % 2].post(person, &format!("/v1/tasks/{task}/takeover"), body)
    });
    let (completed, taken) = answers.split_at(holders.len());
    let mut fenced = 0;
    for (n, (completed, taken)) in completed.iter().zip(taken).enumerate() {
        match (completed.status, taken.status) {
            (200, 409) => {}
            (409, 200) => {
                completed.refused(409, "fenced");
                fenced += 1;
                servers.iter().for_each(|server| complete(n, &holders[n].1, server).refused(409, "fenced"));
            }
            other => panic!("{other:?}: {completed:#?} {taken:#?}"),
        }
    }
    for (n, (task, _)) in held.iter().enumerate() {
        assert_eq!(
            site.task(task)["state"] == "complete",
            completed[n].status == 200,
            "who was fenced did nothing"
        );
    }
    eprintln!("{fenced} of {} holders were fenced", holders.len());
}
/// What one server wrote is heard at the other, in order and without a gap, because the database says so.
#[test]
fn a_listener_at_one_server_hears_what_the_other_wrote() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let person = site.token(&site.person);
    let (one, other) = (Server::start(&site), Server::start(&site));
    let newest = || one.get(&person, "/v1/ledger?limit=1").ok()["entries"][0]["seq"].as_i64().unwrap();
    let begin = newest();
    let mut ids = listen(&other, &person, begin);
    for n in 0..20 {
        let writer = if n % 2 == 0 { &one } else { &other };
        writer.add(&person, &format!("task {n}"));
        assert_eq!(ids.next(), Some(begin + 1 + n), "each is heard before the next one is written");
    }
}
