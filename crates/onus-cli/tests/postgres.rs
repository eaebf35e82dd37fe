//! PostgreSQL from the command line: a store moves there and back, several workspaces share a database, and a server that
//! is killed again and again loses nothing that was acknowledged.

use crate::support::{Agent, Answer, Rng, Site, text};
use onus_testkit::{Cluster, Durability};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Every table of an archive, row by row; its first line says when it was made.
fn rows_of(site: &Site, store: &str) -> Vec<String> {
    let answer = site.run(&["export", "--format", "onus", "-", "--store", store]);
    assert!(answer.is_ok(), "{answer:?}");
    answer.stdout.lines().filter(|line| line.starts_with("{\"table\"")).map(str::to_owned).collect()
}

fn move_store(site: &Site, from: &str, to: &str) {
    let file = site.root().join("archive.jsonl");
    let path = file.to_str().unwrap();
    for args in [["export", path, from], ["import", path, to]] {
        let answer = site.run(&[args[0], "--format", "onus", args[1], "--store", args[2]]);
        assert!(answer.is_ok(), "{args:?}: {answer:?}");
    }
}

fn verify(site: &Site, store: &str) {
    let answer = site.run(&["ledger", "verify", "--json", "--store", store]);
    assert!(answer.is_ok(), "{store}: {answer:?}");
}

/// Something in most tables.
fn live(site: &Site) {
    let agents = site.agents(2);
    site.by_person(&["add", "first", "--check", "test -d .", "--scope", "src/**", "--tag", "a"]);
    site.by_person(&[
        "add",
        "second",
        "--depends-on",
        "T-1",
        "--body",
        "Ünïcödé 'quoted'",
        "--origin",
        "mail:1",
    ]);
    let Agent { handle, workstation } = &agents[0];
    site.ok(&["claim", "T-1", "--as", handle, "--workstation", workstation]);
    site.ok(&["note", "T-1", "half way", "--as", handle]);
    site.ok(&["check", "T-1", "--as", handle]);
    site.ok(&["complete", "T-1", "--as", handle, "--resolution", "done"]);
    site.by_person(&["ledger", "checkpoint"]);
    site.ok(&["claim", "T-2", "--as", handle, "--workstation", workstation]);
}

#[test]
fn a_store_moves_to_postgresql_and_back() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let site = Site::at(None).founded();
    live(&site);
    let file = format!("sqlite:{}", site.store().display());
    let database = cluster.database();
    let before = rows_of(&site, &file);
    let tables = before.iter().filter_map(|line| line.split('"').nth(3));
    assert!(tables.collect::<std::collections::BTreeSet<_>>().len() >= 11, "{before:#?}");

    move_store(&site, &file, &database);
    assert_eq!(rows_of(&site, &database), before);
    verify(&site, &database);
    // The lease that was given by the file is good in the database, and the anchor is the repository's.
    let noted = site.run(&["note", "T-2", "moved", "--as", "@a1", "--store", &database]);
    assert!(noted.is_ok(), "{noted:?}");
    let noted = site.run(&["ledger", "checkpoint", "--as", &site.person, "--store", &database]);
    assert!(noted.is_ok(), "{noted:?}");
    let again = site.run(&[
        "import",
        "--format",
        "onus",
        site.root().join("archive.jsonl").to_str().unwrap(),
        "--store",
        &database,
    ]);
    assert_eq!(again.exit, Some(2), "{again:?}");

    std::fs::rename(site.store(), site.root().join("old.db")).unwrap();
    let there = rows_of(&site, &database);
    move_store(&site, &database, &file);
    assert_eq!(rows_of(&site, &file), there);
    verify(&site, &file);
    site.assert_sound();
}

#[test]
fn workspaces_of_one_database_do_not_see_each_other() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let database = cluster.database();
    let [web, api] =
        ["web", "api"].map(|name| Site::at(Some(format!("{database}?workspace={name}"))).founded());
    web.add("in web");
    api.add("in api");
    let titles =
        |site: &Site| site.tasks().iter().map(|task| text(&task["title"]).to_owned()).collect::<Vec<_>>();
    assert_eq!((titles(&web), titles(&api)), (vec!["in web".into()], vec!["in api".into()]));
    for site in [&web, &api] {
        site.assert_sound();
    }
    let shown = web.ok(&["status"]);
    assert!(text(&shown["store"]).ends_with("?workspace=web"), "{shown}");
}

#[test]
fn a_store_that_is_not_there_is_refused_with_a_next_step() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let site = Site::at(Some(cluster.database()));
    for (store, exit, hint) in [
        (cluster.database(), 69, "onus init"),
        (cluster.url("nowhere"), 69, "createdb"),
        (format!("{}?workspace=No", cluster.url("x")), 2, "--store"),
        ("postgres://onus:hush@127.0.0.1:1/x".into(), 69, "check that the server runs"),
    ] {
        let answer = site.run(&["list", "--json", "--store", &store]);
        assert_eq!(answer.exit, Some(exit), "{store}: {answer:?}");
        assert!(answer.stderr.contains(hint) && !answer.stderr.contains("hush"), "{store}: {answer:?}");
    }
}

/// What a writer was told.
#[derive(Debug, Default)]
struct Told {
    complete: Vec<(String, String)>,
    repeated: usize,
}

/// Sends a call until it is answered. A server that is gone, or that did not say what became of a call, is asked again
/// with the same request id.
fn insist(site: &Site, args: &[&str], request: &str, repeated: &mut usize) -> Value {
    let words = [args, &["--json", "--request-id", request]].concat();
    loop {
        let answer: Answer = site.run(&words);
        match answer.exit {
            Some(0) => return answer.json(),
            Some(69) => {
                *repeated += 1;
                std::thread::sleep(Duration::from_millis(30));
            }
            _ => panic!("{args:?}: {answer:#?}"),
        }
    }
}

fn work(site: &Site, agent: &Agent, is_over: &AtomicBool, done: &AtomicUsize) -> Told {
    let mut told = Told::default();
    let by = ["--as", agent.handle.as_str()];
    for n in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return told;
        }
        let title = format!("{n} of {}", agent.handle);
        let mut call = |step: &str, args: &[&str]| {
            let request = format!("{}-{n}-{step}", &agent.handle[1..]);
            insist(site, &[args, &by].concat(), &request, &mut told.repeated)
        };
        let added = call("add", &["add", &title]);
        let task = text(&added["task"]["id"]).to_owned();
        call("claim", &["claim", &task, "--workstation", &agent.workstation]);
        call("complete", &["complete", &task, "--resolution", "done"]);
        told.complete.push((task, title));
        done.fetch_add(1, Ordering::Relaxed);
    }
    told
}

#[test]
fn a_server_killed_again_and_again_loses_nothing_that_was_acknowledged() {
    let kills = if std::env::var_os("ONUS_SOAK").is_some() { 20 } else { 5 };
    let Some(mut cluster) = Cluster::start(Durability::Durable) else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let agents = site.agents(16);
    let (is_over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut rng = Rng::seeded(17);

    let told: Vec<Told> = std::thread::scope(|scope| {
        let writers: Vec<_> =
            agents.iter().map(|agent| scope.spawn(|| work(&site, agent, &is_over, &done))).collect();
        for _ in 0..kills {
            // Not before somebody has finished something since the last time.
            let before = done.load(Ordering::Relaxed);
            while done.load(Ordering::Relaxed) < before + 4 {
                std::thread::sleep(Duration::from_millis(10));
            }
            std::thread::sleep(Duration::from_millis(rng.below(300)));
            cluster.kill();
            cluster.restart();
        }
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });

    let complete: Vec<&(String, String)> = told.iter().flat_map(|told| &told.complete).collect();
    let repeated: usize = told.iter().map(|told| told.repeated).sum();
    assert!(repeated >= kills, "the kills must hit: {repeated}");
    let tasks = site.tasks();
    assert_eq!(tasks.len(), complete.len(), "one request, one task");
    for (id, title) in &complete {
        let task = tasks.iter().find(|task| task["id"] == id.as_str()).unwrap();
        assert_eq!((text(&task["title"]), text(&task["state"])), (title.as_str(), "complete"));
    }
    let claims = site.ledger().iter().filter(|entry| entry["verb"] == "claimed").count();
    assert_eq!(claims, complete.len(), "one claim for each task, none twice");
    site.assert_sound();
    assert!(!Path::new(&site.store()).exists(), "nothing was written beside the database");
    eprintln!("{kills} kills: {} tasks, {repeated} calls sent again", complete.len());
}
