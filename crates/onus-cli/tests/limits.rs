//! Limits stop agents: at the grant, and while they work (mission E10). Real processes that print what clients print.

use crate::support::server::Server;
use crate::support::wrapper::{lives, number_in, ran, until};
use crate::support::{Site, text};
use serde_json::{Value, json};

/// A store whose settings are there from the beginning, as a server's are; two agents with a place each.
fn limited(settings: &str) -> Site {
    let site = Site::empty();
    std::fs::write(site.repo().join("onus.yaml"), settings).unwrap();
    let site = site.founded();
    for name in ["a", "b"] {
        site.by_person(&["worker", "add", &format!("@{name}"), "--kind", "agent"]);
        site.by_person(&["workstation", "add", &format!("ws-{name}"), "--kind", "logical"]);
    }
    site
}

/// A message as Claude Code tells it.
fn message(id: &str, tokens: u32) -> String {
    json!({ "type": "assistant", "session_id": "s", "message": { "id": id, "model": "x",
        "usage": { "input_tokens": tokens, "output_tokens": 0 } } })
    .to_string()
}

fn claim(site: &Site, name: &str, task: &str) -> crate::support::Answer {
    let (who, place) = (format!("@{name}"), format!("ws-{name}"));
    site.run(&["claim", task, "--as", &who, "--workstation", &place, "--json"])
}

/// Claims, uses so much up, and gives it back.
fn used(site: &Site, name: &str, task: &str, usage: &[&str]) {
    assert!(claim(site, name, task).is_ok());
    let who = format!("@{name}");
    site.ok(&[&["session", "usage", task, "--as", &who], usage].concat());
    let (lease, place) = (site.task(task)["assignment"]["workstation"].clone(), format!("ws-{name}"));
    assert_eq!(text(&lease), place);
    site.by_person(&["release", task, "--force", "--reason", "enough"]);
}

fn entry(site: &Site, task: &str, verb: &str) -> Option<Value> {
    let story = site.ok(&["show", task]);
    story["ledger"].as_array().unwrap().iter().rfind(|entry| entry["verb"] == verb).cloned()
}

fn kinds(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| text(&item["kind"])).collect()
}

#[test]
fn a_client_that_uses_up_its_tokens_is_stopped_and_an_answer_lets_it_go_on() {
    let site = limited("limits: { task: { tokens: 1000 } }\n");
    let task = site.add("work");
    let pid = site.root().join("pid");
    let line = format!(
        "echo $$ > {}; echo '{}'; echo '{}'; exec sleep 1000",
        pid.display(),
        message("m1", 600),
        message("m2", 500)
    );
    let answer = ran(&site, "a", &[&task], &line);
    assert_eq!(answer.exit, Some(5), "{answer:?}");
    assert!(!lives(&number_in(&pid)), "it is gone");
    let row = site.task(&task);
    assert_eq!(
        (text(&row["state"]), text(&row["blocked_on"])),
        ("blocked", &*format!("person:{}", site.person))
    );
    let handoff = site.ok(&["handoff", &task, "--show"])["handoff"].clone();
    assert!(text(&handoff["summary"]).contains("T-1 has used 1100 of 1000 tokens"), "{handoff}");
    let stop = entry(&site, &task, "blocked").unwrap();
    assert_eq!(stop["data"]["limits"][0]["code"], "budget_exceeded", "{stop:#}");
    let inbox = site.by_person(&["inbox"]);
    assert_eq!(kinds(&inbox["items"])[0], "budget", "{inbox:#}");
    let now = site.by_person(&["report", "now"]);
    assert!(text(&now["wants"][0]["detail"]).contains("1100 of 1000 tokens"), "{now:#}");
    assert_eq!(claim(&site, "b", &task).code(), "not_claimable");
    // One more helping, on record; then it is measured by that.
    site.by_person(&["say", &task, "go on"]);
    let lifted = entry(&site, &task, "limits_lifted").unwrap();
    assert_eq!(
        (text(&lifted["actor"]), &lifted["data"]),
        (&*site.person, &json!({ "limits": stop["data"]["limits"] }))
    );
    let line = format!("echo '{}'", message("m3", 900));
    assert_eq!(ran(&site, "b", &[&task], &line).exit, Some(0));
    assert_eq!(site.task(&task)["state"], "complete");
    site.assert_sound();
}

#[test]
fn a_hung_agent_is_ended_by_its_time() {
    let site = limited("limits: { task: { time: 2s } }\n");
    let task = site.add("work");
    let answer = ran(&site, "a", &[&task], "trap '' TERM; while :; do sleep 1; done");
    assert_eq!(answer.exit, Some(5), "{answer:?}");
    assert_eq!(site.task(&task)["state"], "blocked");
    let handoff = site.ok(&["handoff", &task, "--show"])["handoff"].clone();
    assert!(text(&handoff["summary"]).contains("of 2s"), "{handoff}");
    site.assert_sound();
}

#[test]
fn a_grant_is_refused_with_figures_and_a_person_may_force_it() {
    let site = limited("limits: { task: { tokens: 1000 }, worker_day: { cost: 5 } }\n");
    let (first, second) = (site.add("work"), site.add("other"));
    used(&site, "a", &first, &["--input-tokens", "1200", "--cost", "4.8"]);
    let refused = claim(&site, "b", &first);
    let error = refused.error();
    assert_eq!((refused.exit, text(&error["code"])), (Some(5), "budget_exceeded"), "{error:#}");
    assert_eq!(text(&error["detail"]), "T-1 has used 1200 of 1000 tokens");
    let kept = entry(&site, &first, "refused").unwrap();
    assert_eq!((&kept["data"]["code"], &kept["actor"]), (&"budget_exceeded".into(), &"@b".into()));
    // What the queue says of it, and what comes next.
    let ready = site.ok(&["ready", "--as", "@b"]);
    assert!(ready.to_string().contains("budget_exceeded"), "{ready:#}");
    let next = site.ok(&["claim", "--next", "--as", "@b", "--workstation", "ws-b"]);
    assert_eq!(text(&next["task"]["id"]), second);
    site.by_person(&["release", &second, "--force", "--reason", "enough"]);
    // The day of an agent: all tasks alike, and nothing is written about any of them.
    used(&site, "a", &second, &["--input-tokens", "10", "--cost", "0.2"]);
    let third = site.add("third");
    let refused = site.run(&["claim", "--next", "--as", "@a", "--workstation", "ws-a", "--json"]);
    // What stands against all tasks comes first; the first task's own limit is told behind it.
    let detail = refused.error()["detail"].clone();
    assert!(text(&detail).starts_with("@a has used 5.00 of 5.00 USD today"), "{detail}");
    assert!(entry(&site, &third, "refused").is_none());
    let limits = site.ok(&["report", "limits"])["limits"].clone();
    let day = limits.as_array().unwrap().iter().find(|one| one["of"] == "@a").unwrap();
    assert_eq!(
        (&day["used"], &day["limit"], &day["reached"], text(&day["text"])),
        (&json!(5.0), &json!(5.0), &json!(true), "5.00 of 5.00 USD")
    );
    let agents = site.ok(&["fleet", "status"])["agents"].clone();
    assert_eq!(agents[0]["limits"][0], *day, "{agents:#}");
    // By force, and the work is not stopped at once.
    let force =
        ["claim", &first, "--for", "@a", "--workstation", "ws-a", "--force", "--reason", "it is worth it"];
    let granted = site.by_person(&force);
    assert_eq!(granted["assignment"]["forced"], true);
    let lifted = entry(&site, &first, "limits_lifted").unwrap();
    assert_eq!(lifted["data"]["limits"].as_array().unwrap().len(), 2, "{lifted:#}");
    let lease = text(&granted["lease"]["token"]).to_owned();
    site.ok(&["renew", &first, "--as", "@a", "--lease", &lease]);
    // More than it may: no renewal, but words, and an end.
    site.ok(&["session", "usage", &first, "--input-tokens", "1000", "--as", "@a"]);
    let renewed = site.run(&["renew", &first, "--as", "@a", "--lease", &lease, "--json"]);
    assert_eq!(renewed.code(), "budget_exceeded");
    site.ok(&["note", &first, "half of it", "--as", "@a", "--lease", &lease]);
    site.ok(&["release", &first, "--note", "half of it", "--as", "@a", "--lease", &lease]);
    site.assert_sound();
}

#[test]
fn a_cost_that_nobody_tells_is_not_nothing() {
    let site = limited("limits: { sprint: { cost: 1, tokens: 500 } }\n");
    site.by_person(&["add", "work", "--sprint", "s1"]);
    used(&site, "a", "T-1", &["--input-tokens", "100"]);
    used(&site, "a", "T-1", &["--input-tokens", "50", "--cost", "0.25"]);
    let limits = site.ok(&["report", "limits", "--task", "T-1"])["limits"].clone();
    assert_eq!(limits[0]["partial"], true, "{limits:#}");
    assert_eq!(text(&limits[0]["text"]), "at least 0.25 of 1.00 USD (some cost is unknown)");
    assert_eq!(limits[1]["used"], 150.0, "{limits:#}");
    assert_eq!(site.ok(&["show", "T-1"])["limits"], limits);
}

#[test]
fn every_door_tells_the_same() {
    let site = limited("limits: { task: { tokens: 1000 } }\n");
    let task = site.add("work");
    used(&site, "a", &task, &["--input-tokens", "1200"]);
    let server = Server::start(&site);
    let (person, agent) = (site.token(&site.person), site.token("@b"));
    let path = format!("/v1/tasks/{task}/claim");
    let refused = server.post(&agent, &path, json!({ "workstation": "ws-b" }));
    refused.refused(409, "budget_exceeded");
    let limits = server.get(&person, "/v1/reports/limits?task=T-1").ok();
    assert_eq!(limits, site.ok(&["report", "limits", "--task", "T-1"]));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "claim", "arguments": { "task": task, "workstation": "ws-b" } } });
    let told =
        server.post_with(&agent, "/mcp", &[("Accept", "application/json, text/event-stream")], call).ok();
    let error = &told["result"]["structuredContent"]["error"];
    let by_hand = claim(&site, "b", &task).error();
    for field in ["code", "detail", "hint", "findings"] {
        assert_eq!(error[field], by_hand[field], "{field}: {told:#}");
    }
}

#[test]
fn settings_that_cannot_be_meant_are_refused_all_at_once() {
    let site = Site::new();
    std::fs::write(
        site.repo().join("onus.yaml"),
        "limits:\n  task: { tokens: 0, cost: 0 }\nagents:\n  - { worker: \"@x\", preset: claude, limits: { time: 0s } }\n",
    )
    .unwrap();
    let error = site.run(&["validate", "--json"]).error();
    assert_eq!(error["findings"].as_array().unwrap().len(), 3, "{error:#}");
    std::fs::write(site.repo().join("onus.yaml"), "limits: { task: { money: 3 } }\n").unwrap();
    let error = site.run(&["validate", "--json"]).error();
    assert!(text(&error["hint"]).contains("cost, tokens, time, turns, attempts"), "{error:#}");
}

/// Every measure of every scope, while somebody works and at the next grant; and an agent's own figures in `agents`.
#[test]
fn every_measure_counts_for_every_scope() {
    let site = limited("{}\n");
    site.by_person(&["add", "work", "--sprint", "s1"]);
    let settings = |text: &str| std::fs::write(site.repo().join("onus.yaml"), text).unwrap();
    assert!(claim(&site, "a", "T-1").is_ok());
    site.ok(&[
        "session",
        "usage",
        "T-1",
        "--as",
        "@a",
        "--input-tokens",
        "100",
        "--cost",
        "2",
        "--turns",
        "3",
    ]);
    site.by_person(&["release", "T-1", "--force", "--reason", "an attempt"]);
    let lease = text(&claim(&site, "a", "T-1").json()["lease"]["token"]).to_owned();
    site.ok(&[
        "session",
        "usage",
        "T-1",
        "--as",
        "@a",
        "--input-tokens",
        "100",
        "--cost",
        "2",
        "--turns",
        "3",
    ]);
    until("a second of it has passed", || {
        settings("limits: { task: { time: 1s } }\n");
        site.ok(&["report", "limits", "--task", "T-1"])["limits"][0]["reached"] == true
    });
    let scopes = [
        ("task", "limits: { task: LIMIT }\n"),
        ("worker_day", "limits: { worker_day: LIMIT }\n"),
        ("worker_day", "agents: [{ worker: \"@a\", command: [x], limits: LIMIT }]\n"),
        ("sprint", "limits: { sprint: LIMIT }\n"),
        ("workspace_day", "limits: { workspace_day: LIMIT }\n"),
    ];
    let measures = ["cost: 1", "tokens: 100", "time: 1s", "turns: 3", "attempts: 1"];
    let refused = |answer: crate::support::Answer, scope: &str, measure: &str| {
        let error = answer.error();
        assert_eq!(
            (answer.exit, &*answer.code()),
            (Some(5), "budget_exceeded"),
            "{scope} {measure}: {answer:?}"
        );
        let kinds: Vec<&str> = kinds(&error["findings"]);
        assert_eq!(kinds, [scope], "{measure}: {error:#}");
    };
    for (scope, line) in scopes {
        for measure in measures {
            settings(&line.replace("LIMIT", &format!("{{ {measure} }}")));
            let renewed = site.run(&["renew", "T-1", "--as", "@a", "--lease", &lease, "--json"]);
            match measure {
                // An attempt that is under way has not failed.
                "attempts: 1" => assert!(renewed.is_ok(), "{renewed:?}"),
                _ => refused(renewed, scope, measure),
            }
        }
    }
    settings("{}\n");
    site.ok(&["release", "T-1", "--as", "@a", "--lease", &lease]);
    for (scope, line) in scopes {
        for measure in measures {
            settings(&line.replace("LIMIT", &format!("{{ {measure} }}")));
            refused(claim(&site, "a", "T-1"), scope, measure);
        }
    }
    settings("{}\n");
    assert!(claim(&site, "a", "T-1").is_ok(), "nothing else stands against it");
}
