//! A server that ends, by signal or by force, loses nothing that it acknowledged; what nobody heard of is told by its key.

use crate::support::server::{Reply, Server, key};
use crate::support::{HANG, Site, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What writers sent, by key, and what they were answered.
#[derive(Default)]
struct Sent {
    acknowledged: BTreeMap<String, String>,
    unknown: Vec<(String, Value)>,
}

const WRITERS: usize = 32;

/// Writers that ask until the server is gone. `ended` is called in the middle.
fn write_until_gone(server: &Server, token: &str, round: usize, end: impl FnOnce()) -> Sent {
    let (sent, gone) = (Mutex::new(Sent::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (sent, gone) = (&sent, &gone);
            scope.spawn(move || {
                for n in 0.. {
                    let (name, body) = (key(), json!({ "title": format!("{round}/{writer}/{n}") }));
                    let answer =
                        server.try_post(token, "/v1/tasks", &[("idempotency-key", &name)], body.clone());
                    let mut sent = sent.lock().unwrap();
                    match answer {
                        Ok(Reply { status: 201, body, .. }) => {
                            sent.acknowledged.insert(name, text(&body["task"]["id"]).to_owned());
                        }
                        // Turned away before it was accepted, or nobody knows.
                        Ok(Reply { status: 503, .. }) | Err(_) => {
                            sent.unknown.push((name, body));
                            if gone.load(Ordering::SeqCst) {
                                return;
                            }
                        }
                        Ok(other) => panic!("{other:#?}"),
                    }
                }
            });
        }
        // On a busy machine the first answer takes its time. Nobody panics here: the writers would go on for ever.
        let began = Instant::now();
        while sent.lock().unwrap().acknowledged.is_empty() && began.elapsed() < HANG {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300 + 70 * round as u64));
        end();
        gone.store(true, Ordering::SeqCst);
    });
    sent.into_inner().unwrap()
}

/// Every key has exactly one task: the one that was acknowledged, or whichever a repeat finds or makes.
fn resolve(server: &Server, token: &str, sent: &Sent, titles: &mut BTreeMap<String, usize>) {
    for (name, task) in &sent.acknowledged {
        let story = server.get(token, &format!("/v1/tasks/{task}")).ok();
        *titles.entry(text(&story["task"]["title"]).to_owned()).or_default() += 1;
        let body = json!({ "title": story["task"]["title"] });
        let again = server.post_with(token, "/v1/tasks", &[("idempotency-key", name)], body).ok();
        assert_eq!(text(&again["task"]["id"]), task, "the same key, the same task");
    }
    for (name, body) in &sent.unknown {
        let told = server.post_with(token, "/v1/tasks", &[("idempotency-key", name)], body.clone()).ok();
        *titles.entry(text(&told["task"]["title"]).to_owned()).or_default() += 1;
    }
}

fn assert_all_there(site: &Site, titles: &BTreeMap<String, usize>) {
    assert!(titles.values().all(|count| *count == 1), "each title was sent once");
    let stored: Vec<String> = site.tasks().iter().map(|task| text(&task["title"]).to_owned()).collect();
    assert_eq!(stored.len(), titles.len(), "nothing lost, nothing twice");
    assert!(stored.iter().all(|title| titles.contains_key(title)));
    site.assert_sound();
}

#[test]
fn a_server_that_is_killed_keeps_what_it_acknowledged() {
    let site = Site::new();
    let token = site.token(&site.person);
    let mut titles = BTreeMap::new();
    for round in 0..5 {
        let server = Server::start(&site);
        let sent = write_until_gone(&server, &token, round, || server.signal("KILL"));
        assert!(!sent.acknowledged.is_empty());
        drop(server);
        let server = Server::start(&site);
        resolve(&server, &token, &sent, &mut titles);
    }
    assert_all_there(&site, &titles);
}

#[test]
fn a_server_that_is_told_to_end_answers_what_it_accepted() {
    let site = Site::new();
    let token = site.token(&site.person);
    let server = Server::start(&site);
    let sent = write_until_gone(&server, &token, 0, || server.signal("TERM"));
    assert!(server.wait(), "a good end");
    // Connections that were idle are closed, and new ones refused: nothing that was accepted goes unanswered.
    let stored = site.tasks();
    let known: Vec<&String> = sent.acknowledged.values().collect();
    assert_eq!(stored.len(), known.len(), "what is stored was acknowledged");
    let server = Server::start(&site);
    let mut titles = BTreeMap::new();
    resolve(&server, &token, &sent, &mut titles);
    drop(server);
    assert_all_there(&site, &titles);
}
