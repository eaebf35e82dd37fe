//! The database's host is lost and its standby takes over, under load and through two servers. A synchronous standby has
//! every acknowledged write. An asynchronous one may not: then the anchor tells, or the server that made the write; nothing
//! is granted until a person has raised the generation, and no token of before is worth anything.

use crate::support::events::listen;
use crate::support::load::Load;
use crate::support::pair::Pair;
use crate::support::server::Server;
use crate::support::{Site, text};
use onus_testkit::{Cluster, Durability};
use serde_json::json;
use std::time::Instant;

/// A primary, its standby, and a store that is reached at whichever of them takes writes.
fn replicated() -> Option<(Cluster, Cluster, Site)> {
    let primary = Cluster::start(Durability::Durable)?;
    primary.psql("postgres", "CREATE DATABASE team");
    let standby = primary.standby();
    let site = Site::at(Some(primary.url_with(&standby, "team"))).founded();
    Some((primary, standby, site))
}

#[test]
fn a_synchronous_standby_takes_over_and_nothing_is_lost() {
    let Some((mut primary, standby, site)) = replicated() else { return };
    primary.wait_for_standby();
    let bearers = site.token_bearers(16);
    let pair = Pair::start(&site);
    let person = site.token(&site.person);
    let newest = || site.ledger().last().map_or(0, |entry| entry["seq"].as_i64().unwrap());
    let begin = newest();
    let heard = listen(&pair.any(0), &person, begin);
    let load = Load::run(&pair, &bearers, |load| {
        load.until_finished(20);
        let began = Instant::now();
        primary.kill();
        standby.promote();
        let promoted = began.elapsed();
        load.until_finished(1);
        eprintln!("promoted after {promoted:?}, work goes on after {:?}", began.elapsed());
        load.until_finished(20);
    });
    load.assert_kept(&site);
    assert!(pair.repeated() > 0, "the failover must hit somebody");
    let end = newest();
    let told = heard.take_while(|seq| *seq <= end).take(usize::try_from(end - begin).unwrap());
    assert!(told.eq(begin + 1..=end), "a listener from before it hears everything, in order, once");
    eprintln!("{} tasks, {} calls sent again", load.finished(), pair.repeated());
}

/// Who knows of the last writes before the primary was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The anchor: the server is another one by then.
    Anchored,
    /// The server that made them.
    Remembered,
}

#[test]
fn a_standby_without_what_is_anchored_grants_nothing_until_a_person_has_looked() {
    lost_writes_are_noticed(Known::Anchored);
}

#[test]
fn a_standby_without_what_its_server_wrote_grants_nothing_until_a_person_has_looked() {
    lost_writes_are_noticed(Known::Remembered);
}

fn lost_writes_are_noticed(known: Known) {
    let Some((mut primary, standby, site)) = replicated() else { return };
    let bearers = site.token_bearers(3);
    let person = site.token(&site.person);
    let mut server = Server::start(&site);
    let claim = |server: &Server, n: usize, task: &str| {
        let (agent, token) = &bearers[n];
        server.post(token, &format!("/v1/tasks/{task}/claim"), json!({ "workstation": agent.workstation }))
    };
    let note = |server: &Server, n: usize, task: &str, lease: &str| {
        let body = json!({ "lease": lease, "text": "mine" });
        server.post(&bearers[n].1, &format!("/v1/tasks/{task}/notes"), body)
    };
    let [kept, lost, open] = ["kept", "lost", "open"].map(|title| server.add(&person, title));
    let kept_lease = text(&claim(&server, 0, &kept).ok()["lease"]["token"]).to_owned();
    primary.until_followed();
    standby.stop_following();
    // Acknowledged, and known to the primary alone.
    let lost_lease = text(&claim(&server, 1, &lost).ok()["lease"]["token"]).to_owned();
    if known == Known::Anchored {
        site.by_person(&["ledger", "checkpoint"]);
    }
    primary.kill();
    standby.promote();
    if known == Known::Anchored {
        server = Server::start(&site);
        let verified = site.run(&["ledger", "verify", "--json"]);
        assert!(text(&verified.error()["detail"]).contains("the store ends at"), "{verified:#?}");
    }

    claim(&server, 2, &open).refused(503, "store_behind_anchor");
    claim(&server, 2, &lost).refused(503, "store_behind_anchor");
    // The holder of a grant that never was cannot write; one that the standby knows of can.
    note(&server, 1, &lost, &lost_lease).refused(409, "fenced");
    note(&server, 0, &kept, &kept_lease).ok();
    claim(&server, 2, &open).refused(503, "store_behind_anchor");

    site.by_person(&["ledger", "raise-generation", "--reason", "the standby had not everything"]);
    for (n, task, lease) in [(0, &kept, &kept_lease), (1, &lost, &lost_lease)] {
        note(&server, n, task, lease).refused(409, "fenced");
    }
    claim(&server, 2, &lost).ok();
    note(&server, 1, &lost, &lost_lease).refused(409, "fenced");
    site.assert_sound();
}
