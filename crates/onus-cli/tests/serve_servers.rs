//! Two servers on one database: one winner, one order of events, and nothing lost when either server or the database is
//! killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod support;

use onus_testkit::{Cluster, Durability};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, RwLock};
use std::time::Duration;
use support::server::{Server, key};
use support::{Site, text};

fn rounds() -> usize {
    if std::env::var_os("ONUS_SOAK").is_some() { 20 } else { 3 }
}

#[test]
fn of_the_callers_of_two_servers_exactly_one_wins() {
    let Some(cluster) = Cluster::start(Durability::Durable) else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let bearers = site.token_bearers(32);
    let servers = [Server::start(&site), Server::start(&site)];
    let person = site.token(&site.person);
    for round in 0..5 {
        let task = servers[0].add(&person, &format!("wanted by all, {round}"));
        let start = Barrier::new(bearers.len());
        let answers: Vec<_> = std::thread::scope(|scope| {
            let claim = |(n, (agent, token)): (usize, &(support::Agent, String))| {
                let (server, start, task) = (&servers[n % 2], &start, &task);
                let (body, token) = (json!({ "workstation": agent.workstation }), token.clone());
                scope.spawn(move || {
                    start.wait();
                    server.post(&token, &format!("/v1/tasks/{task}/claim"), body)
                })
            };
            let threads: Vec<_> = bearers.iter().enumerate().map(claim).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (winners, losers): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(winners.len(), 1, "{winners:#?}");
        losers.iter().for_each(|loser| loser.refused(409, "lease_held"));
        let released = json!({ "force": true, "reason": "next round" });
        servers[1].post(&person, &format!("/v1/tasks/{task}/release"), released).ok();
    }
    site.assert_sound();
}

/// What one server wrote is heard at the other, in order and without a gap, because the database says so.
#[test]
fn a_listener_at_one_server_hears_what_the_other_wrote() {
    let Some(cluster) = Cluster::start(Durability::Durable) else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let person = site.token(&site.person);
    let (one, other) = (Server::start(&site), Server::start(&site));
    let newest = || one.get(&person, "/v1/ledger?limit=1").ok()["entries"][0]["seq"].as_i64().unwrap();
    let begin = newest();
    let mut stream = TcpStream::connect(other.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let head = format!(
        "GET /v1/events?after={begin} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {person}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut ids = BufReader::new(stream).lines().map_while(Result::ok).filter_map(|line| {
        let id = line.strip_prefix("id: ")?.trim().parse::<i64>().ok()?;
        Some(id)
    });
    for n in 0..20 {
        let writer = if n % 2 == 0 { &one } else { &other };
        writer.add(&person, &format!("task {n}"));
        assert_eq!(ids.next(), Some(begin + 1 + n), "each is heard before the next one is written");
    }
}

/// Asks until there is an answer, always under the same key.
fn insist(server: &RwLock<Server>, token: &str, path: &str, body: &Value, repeated: &AtomicUsize) -> Value {
    let name = key();
    loop {
        let answer =
            server.read().unwrap().try_post(token, path, &[("idempotency-key", &name)], body.clone());
        match answer {
            Ok(reply) if reply.status == 200 || reply.status == 201 => return reply.body,
            Ok(reply) => assert_eq!(reply.status, 503, "{reply:#?}"),
            Err(_) => {}
        }
        repeated.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn servers_and_their_database_are_killed_and_nothing_is_lost() {
    let Some(mut cluster) = Cluster::start(Durability::Durable) else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let bearers = site.token_bearers(16);
    let servers = [Server::start(&site), Server::start(&site)].map(RwLock::new);
    let (is_over, repeated) = (AtomicBool::new(false), AtomicUsize::new(0));
    let done: Mutex<BTreeMap<String, String>> = Mutex::default();
    let finished = || done.lock().unwrap().len();
    std::thread::scope(|scope| {
        for (n, (agent, token)) in bearers.iter().enumerate() {
            let (server, is_over, repeated, done) = (&servers[n % 2], &is_over, &repeated, &done);
            scope.spawn(move || {
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let title = format!("{round} of {}", agent.handle);
                    let call = |path: &str, body: Value| insist(server, token, path, &body, repeated);
                    let added = call("/v1/tasks", json!({ "title": title }));
                    let task = text(&added["task"]["id"]).to_owned();
                    let place = json!({ "workstation": agent.workstation });
                    let claimed = call(&format!("/v1/tasks/{task}/claim"), place);
                    let finish = json!({ "lease": claimed["lease"]["token"], "resolution": "done" });
                    call(&format!("/v1/tasks/{task}/complete"), finish);
                    assert!(done.lock().unwrap().insert(task, title).is_none(), "no task twice");
                }
            });
        }
        for round in 0..rounds() * 2 {
            // Not before somebody has finished something since the last time.
            let before = finished();
            while finished() < before + 8 {
                std::thread::sleep(Duration::from_millis(10));
            }
            if round % 2 == 0 {
                cluster.kill();
                cluster.restart();
            } else {
                let server = &servers[round / 2 % 2];
                server.read().unwrap().signal("KILL");
                *server.write().unwrap() = Server::start(&site);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (done, repeated) = (done.into_inner().unwrap(), repeated.into_inner());
    let tasks = site.tasks();
    assert_eq!(tasks.len(), done.len(), "one key, one task");
    for task in &tasks {
        assert_eq!(
            (text(&task["title"]), text(&task["state"])),
            (done[text(&task["id"])].as_str(), "complete")
        );
    }
    let claims = site.ledger().iter().filter(|entry| entry["verb"] == "claimed").count();
    assert_eq!(claims, done.len(), "one claim for each task, none twice");
    site.assert_sound();
    eprintln!("{} kills: {} tasks, {repeated} calls sent again", rounds() * 2, done.len());
}
