//! `complete` and `merge` through a server that stands in the clone where the work lies: they land as the command line does
//! (mission D11, E8).

use crate::road_crash::own_git;
use crate::support::server::{Reply, Server, key};
use crate::support::team::{Team, ask, commit, files};
use crate::support::wrapper::until;
use crate::support::{Bench, ONUS, text};
use serde_json::{Value, json};
use std::process::Command;

/// A shared repository that a person named, and a server in the first clone.
struct House {
    team: Team,
    server: Server,
    one: Bench,
    token: String,
}

impl House {
    fn new() -> House {
        let team = Team::new();
        team.site.by_person(&["init", "--remote", "origin"]);
        let one = team.site.bench("one");
        let (token, server) = (team.site.token("@one"), Server::start(&team.site));
        House { team, server, one, token }
    }

    /// A task with a commit of one file that its check asks for, and the lease.
    fn worked(&self, bench: &Bench, path: &str, asked: &[&str]) -> (String, String) {
        let task = ask(&self.team.site, &[&[path], asked].concat());
        let claimed = self.team.ok(bench, &["claim", &task]);
        commit(&self.team.site, bench, path, "1\n");
        (task, text(&claimed["lease"]["token"]).to_owned())
    }

    fn lands(&self, token: &str, task: &str, verb: &str, key: &str, body: &Value) -> Reply {
        let path = format!("/v1/tasks/{task}/{verb}");
        self.server.post_with(token, &path, &[("idempotency-key", key)], body.clone())
    }

    fn in_main(&self) -> Vec<String> {
        files(&self.team.site, &self.team.origin, "main")
    }

    fn entries(&self) -> usize {
        self.team.site.ledger().len()
    }
}

fn done(lease: &str) -> Value {
    json!({ "lease": lease, "resolution": "done" })
}

#[test]
fn complete_runs_the_checks_and_lands() {
    let house = House::new();
    let (task, lease) = house.worked(&house.one, "a", &["--check", "test -f a"]);
    let view = house.lands(&house.token, &task, "complete", "c1", &done(&lease));
    assert_eq!(view.header("etag").map(|tag| tag.len() > 2), Some(true), "{view:#?}");
    let view = view.ok();
    assert_eq!(view["task"]["state"], "complete");
    assert_eq!(view["landed"]["remote"], "origin");
    assert_eq!(view["landed"]["commits"].as_array().unwrap().len(), 1, "{view:#}");
    assert_eq!(
        (&view["checks"][0]["command"], &view["checks"][0]["exit_code"]),
        (&json!("test -f a"), &json!(0))
    );
    assert_eq!(view["handoff"]["handoff"]["status"], "done", "{view:#}");
    assert_eq!(house.in_main(), ["a"]);
    // The local main branch follows, and nothing of the lease is left where it was held.
    assert!(house.team.site.repo().join("a").exists());
    let late = house.one.run(&house.team.site, &["note", &task, "late"]);
    assert_eq!(late.exit, Some(0), "without a token it is a comment: {late:#?}");

    let entries = house.entries();
    let again = house.lands(&house.token, &task, "complete", "c1", &done(&lease)).ok();
    assert_eq!((&again["task"], &again["landed"]), (&view["task"], &view["landed"]));
    assert_eq!(house.entries(), entries);
    house.team.assert_in_order();
}

#[test]
fn merge_lands_and_its_holder_goes_on() {
    let house = House::new();
    let (task, lease) = house.worked(&house.one, "a", &[]);
    let body = json!({ "lease": lease });
    let merged = house.lands(&house.token, &task, "merge", "m1", &body).ok();
    assert_eq!(merged["landed"]["commits"].as_array().unwrap().len(), 1, "{merged:#}");
    assert_eq!(house.in_main(), ["a"]);
    assert_eq!(house.team.site.task(&task)["state"], "in_progress");
    let entries = house.entries();
    assert_eq!(house.lands(&house.token, &task, "merge", "m1", &body).ok(), merged);
    assert_eq!(house.entries(), entries);
    // The same key for other work, and for another command.
    commit(&house.team.site, &house.one, "b", "1\n");
    assert_eq!(house.lands(&house.token, &task, "merge", "m1", &body).ok(), merged, "told, not done again");
    house.lands(&house.token, &task, "complete", "m1", &done(&lease)).refused(409, "request_conflict");
    assert_eq!(house.in_main(), ["a"]);
    house.lands(&house.token, &task, "complete", "c1", &done(&lease)).ok();
    assert_eq!(house.in_main(), ["a", "b"]);
    let other = json!({ "lease": lease, "resolution": "other words" });
    house.lands(&house.token, &task, "complete", "c1", &other).refused(409, "request_conflict");
    house.team.assert_in_order();
}

/// Who may not, or asks for what cannot be, moves nothing: it is told before git is asked for anything.
#[test]
fn what_is_refused_is_refused_before_the_fetch() {
    let house = House::new();
    let site = &house.team.site;
    let (task, lease) = house.worked(&house.one, "a", &[]);
    let first = site.git_in(&house.one.dir, &["rev-parse", "HEAD"]);
    site.by_person(&["worker", "add", "@two", "--kind", "agent"]);
    let other = site.token("@two");
    // Whoever fetched now would say so.
    std::fs::rename(&house.team.origin, site.root().join("away")).unwrap();
    for verb in ["merge", "complete"] {
        let land = |token: &str, key: &str, body: Value| house.lands(token, &task, verb, key, &body);
        let (kept, said) = match verb {
            "merge" => (json!({ "lease": lease }), json!({})),
            _ => (done(&lease), json!({ "resolution": "done" })),
        };
        land(&other, &key(), kept.clone()).refused(409, "fenced");
        land(&house.token, &key(), said).refused(409, "lease_required");
        let used = key();
        house
            .server
            .post_with(&house.token, "/v1/tasks", &[("idempotency-key", &used)], json!({ "title": "x" }))
            .ok();
        land(&house.token, &used, kept.clone()).refused(409, "request_conflict");
        let path = format!("/v1/tasks/{task}/{verb}");
        let old = [("if-match", "\"1\"")];
        house.server.post_with(&house.token, &path, &old, kept).refused(412, "precondition_failed");
    }
    house
        .lands(&house.token, &task, "complete", &key(), &json!({ "lease": lease }))
        .refused(422, "resolution_required");
    std::fs::rename(site.root().join("away"), &house.team.origin).unwrap();
    // Whoever looked at the work before its last commit.
    commit(site, &house.one, "b", "1\n");
    let seen = json!({ "lease": lease, "resolution": "done", "commit": first });
    house.lands(&house.token, &task, "complete", &key(), &seen).refused(412, "precondition_failed");
    assert!(house.in_main().is_empty());
    let now = json!({ "lease": lease, "resolution": "done", "commit": site.git_in(&house.one.dir, &["rev-parse", "HEAD"]) });
    house.lands(&house.token, &task, "complete", &key(), &now).ok();
    assert_eq!(house.in_main(), ["a", "b"]);
}

/// Work in another clone is not this server's to land.
#[test]
fn work_that_lies_elsewhere_is_refused_with_the_next_step() {
    let house = House::new();
    let two = house.team.bench_there("two");
    let (task, lease) = house.worked(&two, "a", &[]);
    let token = house.team.site.token("@two");
    let merge = house.lands(&token, &task, "merge", &key(), &json!({ "lease": lease }));
    merge.refused(409, "not_merged");
    assert!(text(&merge.body["hint"]).contains(&format!("onus merge {task}")), "{merge:#?}");
    house.lands(&token, &task, "complete", &key(), &done(&lease)).refused(409, "not_merged");
    house.team.ok(&two, &["complete", &task, "--resolution", "done"]);
    assert_eq!(house.in_main(), ["a"]);
}

/// A token that is revoked while the checks run lands nothing, though it was good when the call came.
#[test]
fn the_token_is_judged_in_each_step() {
    let house = House::new();
    let site = &house.team.site;
    let id = &house.token.split('_').nth(1).unwrap()[1..];
    let revoke = format!(
        "'{ONUS}' worker token revoke {id} --as {} --store '{}' --reason gone",
        site.person,
        site.store_url()
    );
    let (task, lease) = house.worked(&house.one, "a", &["--check", &revoke]);
    house.lands(&house.token, &task, "complete", &key(), &done(&lease)).refused(401, "unauthenticated");
    assert!(house.in_main().is_empty());
    assert_eq!(site.task(&task)["state"], "in_progress");
}

/// Of each token one lands at a time. A check runs its holder's own code: while it hangs, everybody else is served and lands.
#[test]
fn a_check_that_hangs_keeps_nobody_else_from_landing() {
    let house = House::new();
    let site = &house.team.site;
    let (began, go) = (site.root().join("began"), site.root().join("go"));
    let wait = format!("touch {}; while ! test -e {}; do sleep 0.05; done", began.display(), go.display());
    let (slow, slow_lease) = house.worked(&house.one, "slow", &["--check", &wait]);
    let two = site.bench("two");
    let (quick, quick_lease) = house.worked(&two, "quick", &[]);
    let token = site.token("@two");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| house.lands(&house.token, &slow, "complete", "s1", &done(&slow_lease)));
        until("the check runs", || began.exists());
        let same = house.lands(&house.token, &slow, "merge", &key(), &json!({ "lease": slow_lease }));
        same.refused(429, "too_many_requests");
        house.lands(&token, &quick, "complete", "q1", &done(&quick_lease)).ok();
        assert_eq!(house.in_main(), ["quick"]);
        std::fs::write(&go, "").unwrap();
        // Somebody was quicker, so that it begins again at the fetch.
        first.join().unwrap().ok();
    });
    assert_eq!(house.in_main(), ["quick", "slow"]);
    // The refused call's turn was not kept from it.
    let (third, lease) = house.worked(&house.one, "third", &[]);
    house.lands(&house.token, &third, "complete", &key(), &done(&lease)).ok();
    house.team.assert_in_order();
}

/// The server is killed at every run of git of a landing; the next server ends it under the same key, once.
#[test]
fn a_server_dies_while_it_lands_and_the_call_is_repeated() {
    let House { team, server, one, token } = House::new();
    drop(server);
    let site = &team.site;
    let (turn_file, count) = (site.root().join("turn"), site.root().join("count"));
    let script = format!(
        "turn=$(cat {turn})\necho x >> {count}\nif [ $(wc -l < {count}) -ge $turn ]; then kill -9 $PPID; fi\nexec {{real}} \"$@\"\n",
        turn = turn_file.display(),
        count = count.display(),
    );
    let path = own_git(&team, " serve ", &script);
    let is_soak = std::env::var_os("ONUS_SOAK").is_some();
    let serve = |path: Option<&str>| {
        let mut command = Command::new(ONUS);
        site.surroundings(&mut command).current_dir(site.repo());
        command.args(["serve", "--json", "--log", "quiet", "--listen", "127.0.0.1:0"]);
        Server::spawn(command.envs(path.map(|path| ("PATH", path))))
    };
    let (mut turn, mut kills, mut expected) = (1, 0, Vec::new());
    loop {
        let name = format!("f{turn}");
        let task = ask(site, &[&name, "--check", &format!("test -f {name}")]);
        let lease = text(&team.ok(&one, &["claim", &task])["lease"]["token"]).to_owned();
        commit(site, &one, &name, "1\n");
        expected.push(name);
        let (path_of, headers) =
            (format!("/v1/tasks/{task}/complete"), [("idempotency-key", format!("k{turn}"))]);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        std::fs::write(&turn_file, "1000000").unwrap();
        let dying = serve(Some(&path));
        std::fs::write(&count, "").unwrap();
        std::fs::write(&turn_file, turn.to_string()).unwrap();
        let died = dying.try_post(&token, &path_of, &headers, done(&lease)).is_err();
        drop(dying);
        let after = serve(None);
        let view = after.post_with(&token, &path_of, &headers, done(&lease)).ok();
        assert_eq!(view["task"]["state"], "complete", "{turn}: {view:#}");
        assert_eq!(view["landed"]["commits"].as_array().unwrap().len(), 1, "{turn}: {view:#}");
        if !died {
            break;
        }
        kills += 1;
        turn += if is_soak { 1 } else { 3 };
        assert!(turn < 200);
    }
    assert!(kills >= 3, "{kills}");
    expected.sort();
    assert_eq!(files(site, &team.origin, "main"), expected);
    let count = site.git_in(&team.origin, &["rev-list", "--count", "main"]);
    assert_eq!(count, (expected.len() + 1).to_string());
    team.assert_in_order();
}

/// An agent's client that speaks to the server lands as well.
#[test]
fn the_tool_lands_too() {
    let house = House::new();
    let (task, lease) = house.worked(&house.one, "a", &[]);
    let arguments = json!({ "task": task, "lease": lease, "resolution": "done" });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "complete", "arguments": arguments },
    });
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
    let told = house.server.post_with(&house.token, "/mcp", &headers, body).ok();
    let told = &told["result"]["structuredContent"];
    assert_eq!(told["task"]["state"], "complete", "{told:#}");
    assert_eq!(told["landed"]["commits"].as_array().unwrap().len(), 1, "{told:#}");
    assert_eq!(house.in_main(), ["a"]);
}
