//! Patroni, etcd and two PostgreSQL servers in synchronous mode: the leader's host is lost under load, again and again.
//! Minutes of waiting for leases of etcd to run out, so only with `ONUS_SOAK`; failover.rs is the short version.

use crate::support::Site;
use crate::support::load::Load;
use crate::support::pair::Pair;
use onus_testkit::Patroni;
use std::time::Instant;

#[test]
fn leaders_are_lost_and_no_acknowledged_write_with_them() {
    if std::env::var_os("ONUS_SOAK").is_none() {
        return;
    }
    let Some(mut patroni) = Patroni::start() else { return };
    patroni.create("team");
    let site = Site::at(Some(patroni.url("team"))).founded();
    let bearers = site.token_bearers(16);
    let pair = Pair::start(&site);
    let load = Load::run(&pair, &bearers, |load| {
        for round in 1..=5 {
            load.until_finished(20);
            let leader = patroni.leader().unwrap();
            let began = Instant::now();
            patroni.lose(leader);
            patroni.until("another leader", |one| one.leader() == Some(1 - leader));
            let led = began.elapsed();
            load.until_finished(1);
            let served = began.elapsed();
            eprintln!("failover {round}: a leader after {led:.1?}, work goes on after {served:.1?}");
            patroni.join(leader);
            patroni.until_in_step();
        }
        load.until_finished(20);
    });
    load.assert_kept(&site);
    eprintln!("5 failovers: {} tasks, {} calls sent again", load.finished(), pair.repeated());
}
