//! What is tried at a team's database: one workspace's names in another one, a server that stands still, and one that forgets
//! to tell its listeners.

use crate::support::server::Server;
use crate::support::wrapper::until;
use crate::support::{Answer, Site, finish, start, text};
use onus_testkit::{Cluster, Durability};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A workspace with something in most tables, all of it recognisable by `mark`.
fn lived(site: &Site, mark: &str, tasks: usize) {
    site.by_person(&["worker", "add", &format!("@{mark}"), "--kind", "agent"]);
    for place in ["", "-2"] {
        site.by_person(&["workstation", "add", &format!("ws-{mark}{place}"), "--kind", "logical"]);
    }
    for n in 0..tasks {
        site.by_person(&["add", &format!("{mark} {n}"), "--body", mark, "--tag", mark]);
    }
    site.by_person(&["milestone", "add", mark, "--title", mark, "--task", "T-1"]);
    site.by_person(&["note", "T-1", mark]);
    site.ok(&["claim", "T-1", "--as", &format!("@{mark}"), "--workstation", &format!("ws-{mark}")]);
}

/// Two workspaces of one database: nothing of the one can be seen, named or used through the other.
#[test]
fn no_name_of_one_workspace_means_anything_in_another() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let database = cluster.database();
    let [web, api] =
        ["web", "api"].map(|name| Site::at(Some(format!("{database}?workspace={name}"))).founded());
    lived(&web, "alpha", 1);
    lived(&api, "bravo", 4);
    let before = api.ledger().len();

    for words in [
        "list --state all",
        "ready",
        "status",
        "stale",
        "export",
        "ledger log",
        "ledger export",
        "report now",
        "report audit",
        "report sprint",
        "report anomalies",
        "worker list",
        "worker token list",
        "workstation list",
        "milestone list",
        "session list",
        "timesheet show",
        "show T-1",
        "check T-1 --list",
    ] {
        let args: Vec<&str> = words.split(' ').chain(["--json"]).collect();
        let answer = web.run(&args);
        assert!(answer.is_ok(), "{words}: {answer:?}");
        assert!(!answer.stdout.contains("bravo"), "{words}: {}", answer.stdout);
    }

    let issued = api.ok(&["worker", "token", "add", &api.person, "--as", &api.person]);
    let (id, secret) = (text(&issued["token"]["id"]), text(&issued["secret"]));
    let lease =
        text(&api.ok(&["claim", "T-2", "--as", "@bravo", "--workstation", "ws-bravo-2"])["lease"]["token"])
            .to_owned();
    let refused: &[&[&str]] = &[
        &["show", "T-3"],
        &["claim", "T-3", "--workstation", "ws-alpha-2"],
        &["note", "T-3", "mine"],
        &["worker", "pause", "@bravo", "--reason", "mine"],
        &["workstation", "quarantine", "ws-bravo", "--reason", "mine"],
        &["milestone", "close", "bravo"],
        &["worker", "token", "revoke", id],
        &["takeover", "T-1", "--workstation", "ws-bravo", "--force", "--reason", "mine"],
        &["renew", "T-1", "--lease", &lease],
    ];
    let known = ["unknown_task", "unknown_name", "unknown_worker", "workstation_unknown", "fenced"];
    for args in refused {
        let answer = web.run(&[args, &["--as", &web.person, "--json"][..]].concat());
        assert!(known.contains(&answer.code().as_str()), "{args:?}: {answer:?}");
    }

    // A token of the one opens no door of the other; a request id is each one's own.
    let server = Server::start(&web);
    assert_eq!(server.get(secret, "/v1/ready").status, 401);
    let again = ["add", "same id", "--request-id", "shared-1"];
    let both = [&api, &web].map(|site| text(&site.by_person(&again)["task"]["title"]).to_owned());
    assert_eq!(both, ["same id", "same id"]);
    assert_eq!((api.tasks().len(), web.tasks().len()), (5, 2));
    assert_eq!(api.ledger().len(), before + 3, "the token, the claim and the task of its own");
    for site in [&web, &api] {
        site.assert_sound();
    }
}

/// The database is stopped, not gone: the system answers for it that data arrived. Every call ends all the same, and when it goes
/// on nobody holds what somebody else holds.
#[test]
fn a_database_that_stands_still_ends_every_call_and_grants_nothing_twice() {
    let Some(cluster) = Cluster::start(Durability::Durable) else { return };
    let site = Site::at(Some(format!("{}?connect_timeout=2", cluster.database()))).founded();
    let bearers = site.token_bearers(2);
    let task = site.add("wanted by both");
    let server = Server::start(&site);
    for (_, token) in &bearers {
        assert_eq!(
            server.get(token, "/v1/ready").status,
            200,
            "every one of the server's connections is made"
        );
    }
    let paused = cluster.pause();
    let claim = |n: usize| {
        let (agent, _) = &bearers[n];
        let request = format!("still-{n}");
        site.command(&[
            "claim",
            &task,
            "--as",
            &agent.handle,
            "--workstation",
            &agent.workstation,
            "--json",
            "--request-id",
            &request,
        ])
    };
    let (codes, statuses) = std::thread::scope(|scope| {
        let claim = &claim;
        let near: Vec<_> = (0..2).map(|n| scope.spawn(move || finish(start(&mut claim(n))).code())).collect();
        let list = scope.spawn(|| site.run(&["list", "--json"]).code());
        let far: Vec<_> = bearers
            .iter()
            .map(|(agent, token)| {
                let (server, body) = (&server, json!({ "workstation": agent.workstation }));
                let (path, bearer) = (format!("/v1/tasks/{task}/claim"), format!("Bearer {token}"));
                scope
                    .spawn(move || server.try_call("POST", &path, &[("authorization", &bearer)], Some(&body)))
            })
            .collect();
        let mut codes: Vec<String> = near.into_iter().map(|call| call.join().unwrap()).collect();
        codes.push(list.join().unwrap());
        let statuses: Vec<_> = far.into_iter().map(|call| call.join().unwrap()).collect();
        (codes, statuses)
    });
    drop(paused);
    for code in &codes {
        assert_eq!(code, "store_unavailable", "{codes:?}");
    }
    for answer in statuses {
        // Within the caller's own patience, which ends before a minute does.
        assert_eq!(answer.unwrap().status, 503);
    }
    // What was in doubt is told by its key; at most one of them has it.
    let answers: Vec<Answer> = (0..2).map(|n| finish(start(&mut claim(n)))).collect();
    let granted = answers.iter().filter(|answer| answer.is_ok()).count();
    let held = site.task(&task)["assignment"].clone();
    assert!(granted <= 1 && !held.is_null(), "{answers:?} {held}");
    let claims = site
        .ledger()
        .iter()
        .filter(|entry| entry["verb"] == "claimed" && entry["task"] == json!(task))
        .count();
    assert_eq!(claims, 1);
    site.assert_sound();
}

/// What a listener is told, line by line.
struct Ear(BufReader<TcpStream>);

impl Ear {
    fn open(server: &Server, token: &str) -> Ear {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head =
            format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut ear = Ear(BufReader::new(stream));
        ear.until("200");
        ear
    }

    fn until(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended before {words}");
        }
    }
}

/// The connection on which the server hears of changes is cut again and again while others write: what was told to nobody is
/// found by looking, and a word that nobody of ours said is no reason to stop.
#[test]
fn a_lost_or_strange_notification_loses_no_event() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let url = cluster.database();
    let database = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    let site = Site::at(Some(url)).founded();
    let token = site.token(&site.person);
    let server = Server::start(&site);
    let mut ear = Ear::open(&server, &token);
    for round in 0..3 {
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() \
            AND query LIKE 'LISTEN%'";
        until("the listening connection is cut", || cluster.psql(&database, cut).trim() != "0");
        // Written by another program, which the server is not told of.
        let task = site.add(&format!("unheard {round}"));
        ear.until(&format!("\"{task}\""));
        for word in ["", "nonsense", "1:99999999999999999999", "-1:-1", "1:1"] {
            cluster.psql(&database, &format!("SELECT pg_notify('onus', '{word}')"));
        }
        let task = site.add(&format!("after nonsense {round}"));
        ear.until(&format!("\"{task}\""));
    }
    site.assert_sound();
}
