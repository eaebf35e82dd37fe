//! Many callers, one server: exactly one wins, nothing is given twice, and the command line beside it sees the same.

use crate::support::crowd::in_parallel;
use crate::support::server::{Reply, Server};
use crate::support::{Site, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn of_64_callers_exactly_one_wins_a_task() {
    let site = Site::new();
    let bearers = site.token_bearers(64);
    let server = Server::start(&site);
    let person = site.token(&site.person);
    for round in 0..5 {
        let task = server.add(&person, &format!("wanted by all, {round}"));
        let answers: Vec<Reply> = in_parallel(&bearers, |_, agent, token| {
            server.post(
                token,
                &format!("/v1/tasks/{task}/claim"),
                json!({ "workstation": agent.workstation }),
            )
        });
        let winners: Vec<&Reply> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(winners.len(), 1, "{winners:#?}");
        for loser in answers.iter().filter(|answer| answer.status != 200) {
            loser.refused(409, "lease_held");
        }
        let lease = &winners[0].body["lease"]["token"];
        let holder = text(&winners[0].body["assignment"]["assignee"]).to_owned();
        let (_, token) = bearers.iter().find(|(agent, _)| agent.handle == holder).unwrap();
        let done = json!({ "lease": lease, "resolution": "done" });
        server.post(token, &format!("/v1/tasks/{task}/complete"), done).ok();
    }
    site.assert_sound();
}

#[test]
fn sixty_four_callers_drain_500_tasks_without_a_loss_or_a_double() {
    const TASKS: usize = 500;
    let site = Site::new();
    let bearers = site.token_bearers(64);
    let line = |n: usize| format!("{{\"title\":\"task {n}\",\"origin_ask_ref\":\"drain:{n}\"}}\n");
    site.import((0..TASKS).map(line).collect());
    let server = Server::start(&site);

    let shares: Vec<Vec<String>> = in_parallel(&bearers, |_, agent, token| {
        let mut done = Vec::new();
        loop {
            let claimed = server.post(token, "/v1/claims", json!({ "workstation": agent.workstation }));
            if claimed.status != 200 {
                claimed.refused(404, "nothing_ready");
                return done;
            }
            let (task, lease) = (text(&claimed.body["task"]["id"]), &claimed.body["lease"]["token"]);
            let body = json!({ "lease": lease, "resolution": "done" });
            server.post(token, &format!("/v1/tasks/{task}/complete"), body).ok();
            done.push(task.to_owned());
        }
    });

    let done: Vec<&String> = shares.iter().flatten().collect();
    assert_eq!(done.len(), TASKS, "as many completions as tasks");
    assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), TASKS, "no task twice");
    let states: Vec<Value> = site.tasks().iter().map(|task| task["state"].clone()).collect();
    assert!(states.iter().all(|state| state == "complete"), "{states:?}");
    site.assert_sound();
}

/// A server and the command line write to one store at once.
#[test]
fn a_server_and_the_command_line_share_a_store() {
    let site = Site::new();
    let bearers = site.token_bearers(8);
    let line = |n: usize| format!("{{\"title\":\"task {n}\",\"origin_ask_ref\":\"both:{n}\"}}\n");
    site.import((0..40).map(line).collect());
    let server = Server::start(&site);
    let shares: Vec<Vec<String>> = in_parallel(&bearers, |_, agent, token| {
        let local = agent.handle.ends_with(['1', '3', '5', '7']);
        let mut done = Vec::new();
        loop {
            let (task, lease) = if local {
                let args =
                    ["claim", "--next", "--as", &agent.handle, "--workstation", &agent.workstation, "--json"];
                let answer = site.run(&args);
                if !answer.is_ok() {
                    assert_eq!(answer.code(), "nothing_ready");
                    return done;
                }
                (answer.json()["task"]["id"].clone(), answer.json()["lease"]["token"].clone())
            } else {
                let answer = server.post(token, "/v1/claims", json!({ "workstation": agent.workstation }));
                if answer.status != 200 {
                    answer.refused(404, "nothing_ready");
                    return done;
                }
                (answer.body["task"]["id"].clone(), answer.body["lease"]["token"].clone())
            };
            let body = json!({ "lease": lease, "resolution": "done" });
            server.post(token, &format!("/v1/tasks/{}/complete", text(&task)), body).ok();
            done.push(text(&task).to_owned());
        }
    });
    let done: BTreeSet<&String> = shares.iter().flatten().collect();
    assert_eq!((done.len(), shares.iter().flatten().count()), (40, 40));
    site.assert_sound();
}
