//! Wall clocks that jump by an hour or a day, forwards and backwards. On SQLite no lease changes hands early, and none is
//! kept longer for it. On PostgreSQL only the server's clock counts: it may let a lease expire, but never makes two holders.

use crate::support::clock::{Clock, JUMPS};
use crate::support::load::Load;
use crate::support::pair::Pair;
use crate::support::server::Server;
use crate::support::wrapper::until;
use crate::support::{Answer, Site, finish, start, text};
use onus_testkit::{Cluster, Durability};
use serde_json::json;
use std::time::Duration;

/// Calls of programs that go by a clock that can be set.
struct Jumpy<'s> {
    site: &'s Site,
    clock: Clock,
}

impl<'s> Jumpy<'s> {
    fn new(site: &'s Site) -> Option<Jumpy<'s>> {
        let clock = Clock::at(&site.root().join("clock"))?;
        Some(Jumpy { site, clock })
    }

    fn run(&self, args: &[&str]) -> Answer {
        let words = [args, &["--json"]].concat();
        finish(start(self.site.command(&words).envs(self.clock.environment())))
    }

    fn ok(&self, args: &[&str]) {
        let answer = self.run(args);
        assert!(answer.is_ok(), "{args:?}: {answer:#?}");
    }

    fn takeover(&self, task: &str) -> Answer {
        self.run(&["takeover", task, "--as", "@a2", "--workstation", "ws-2", "--reason", "it seems late"])
    }

    fn claim(&self, task: &str) {
        self.ok(&["claim", task, "--as", "@a1", "--workstation", "ws-1"]);
    }

    fn complete(&self, task: &str) {
        self.ok(&["complete", task, "--as", "@a1", "--resolution", "done"]);
    }
}

/// The record verifies, every row is the fold of its entries, and nothing is wrong but what is: a clock that is behind
/// what was written.
fn assert_sound(site: &Site) {
    let verified = site.run(&["ledger", "verify", "--json"]);
    assert!(verified.is_ok(), "{verified:#?}");
    let doctor = site.run(&["doctor", "--json"]);
    if !doctor.is_ok() {
        let findings = doctor.error()["findings"].as_array().unwrap().clone();
        assert!(findings.iter().all(|one| text(&one["detail"]).starts_with("clock: ")), "{findings:#?}");
    }
}

/// The jump is seen by the program, or the test would show nothing.
fn assert_jumps(jumpy: &Jumpy<'_>) {
    jumpy.clock.set(JUMPS[2]);
    let added = jumpy.run(&["add", "from tomorrow", "--as", &jumpy.site.person]).json();
    jumpy.clock.set(0);
    let today = jumpy.site.by_person(&["add", "from today"]);
    assert!(text(&added["task"]["created_at"]) > text(&today["task"]["created_at"]), "{added} {today}");
}

#[test]
fn no_lease_changes_hands_early_and_none_is_kept_longer() {
    let site = Site::at(None).founded();
    site.agents(2);
    let Some(jumpy) = Jumpy::new(&site) else { return };
    assert_jumps(&jumpy);
    for (jump, back) in JUMPS.into_iter().flat_map(|jump| [(0, jump), (jump, 0)]) {
        let task = site.add("held through a jump");
        jumpy.clock.set(jump);
        jumpy.claim(&task);
        jumpy.clock.set(back);
        assert_eq!(jumpy.takeover(&task).code(), "not_expired", "{jump} to {back}");
        jumpy.ok(&["renew", &task, "--as", "@a1"]);
        assert_eq!(jumpy.takeover(&task).code(), "not_expired", "{jump} to {back}");
        jumpy.complete(&task);
    }
    // What has really run out may be taken, whatever the wall clock says in between.
    std::fs::write(site.repo().join("onus.yaml"), "lease:\n  agent_ttl: 100ms\n  grace: 1ms\n").unwrap();
    for jump in JUMPS {
        let task = site.add("held by nobody any more");
        jumpy.clock.set(0);
        jumpy.claim(&task);
        jumpy.clock.set(jump);
        until("the lease runs out by the clock that nobody sets", || jumpy.takeover(&task).is_ok());
        let late = jumpy.run(&["complete", &task, "--as", "@a1", "--resolution", "mine"]);
        assert_eq!(late.exit, Some(4), "{late:#?}");
        jumpy.ok(&["complete", &task, "--as", "@a2", "--resolution", "done"]);
    }
    assert_sound(&site);
}

/// The same through a server whose clock is set while it runs.
#[test]
fn a_server_whose_clock_jumps_takes_no_lease_away() {
    let site = Site::at(None).founded();
    let bearers = site.token_bearers(2);
    let Some(clock) = Clock::at(&site.root().join("clock")) else { return };
    let words = ["serve", "--json", "--log", "quiet", "--listen", "127.0.0.1:0"];
    let server = Server::spawn(site.command(&words).envs(clock.environment()));
    for jump in JUMPS {
        let [(one, holder), (two, other)] = [&bearers[0], &bearers[1]];
        let task = server.add(holder, "held through a jump");
        let act = |token: &str, verb: &str, body: serde_json::Value| {
            server.post(token, &format!("/v1/tasks/{task}/{verb}"), body)
        };
        let claimed = act(holder, "claim", json!({ "workstation": one.workstation })).ok();
        clock.set(jump);
        let lease = &claimed["lease"]["token"];
        let take = json!({ "workstation": two.workstation, "reason": "it seems late" });
        act(other, "takeover", take).refused(409, "not_expired");
        act(holder, "renew", json!({ "lease": lease })).ok();
        act(holder, "complete", json!({ "lease": lease, "resolution": "done" })).ok();
    }
    drop(server);
    assert_sound(&site);
}

#[test]
fn on_postgresql_a_callers_clock_means_nothing() {
    let Some(cluster) = Cluster::shared_durable() else { return };
    let site = Site::at(Some(cluster.database())).founded();
    site.agents(2);
    let Some(jumpy) = Jumpy::new(&site) else { return };
    for jump in JUMPS {
        let task = site.add("held through a jump");
        jumpy.clock.set(0);
        jumpy.claim(&task);
        jumpy.clock.set(jump);
        assert_eq!(jumpy.takeover(&task).code(), "not_expired", "{jump}");
        jumpy.complete(&task);
    }
    assert_sound(&site);
}

/// The clock that decides jumps itself: a lease may end early, and still nobody writes beside the new holder.
#[test]
fn on_postgresql_the_servers_clock_jumps_and_there_is_one_holder() {
    let Some(mut cluster) = Cluster::start(Durability::Durable) else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let Some(clock) = Clock::at(&cluster.directory().join("clock")) else { return };
    cluster.with_environment(clock.environment());
    let bearers = site.token_bearers(8);
    let take = |task: &str| {
        site.run(&["takeover", task, "--as", "@a2", "--workstation", "ws-2", "--reason", "late", "--json"])
    };
    let complete =
        |task: &str, who: &str| site.run(&["complete", task, "--as", who, "--resolution", "done", "--json"]);
    for jump in JUMPS {
        let task = site.add("held through a jump");
        site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
        clock.set(jump);
        let taken = take(&task);
        assert_eq!(taken.is_ok(), jump > 0, "{jump}: {taken:#?}");
        let (holder, other) = if jump > 0 { ("@a2", "@a1") } else { ("@a1", "@a2") };
        assert_eq!(complete(&task, other).exit, Some(4), "{jump}: only the holder completes");
        clock.set(0);
        assert!(complete(&task, holder).is_ok(), "{jump}: and it does");
    }
    let before = site.tasks().len();
    let pair = Pair::start(&site);
    let load = Load::run(&pair, &bearers, |load| {
        for jump in JUMPS {
            clock.set(jump);
            load.until_finished(8);
            clock.set(0);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(site.tasks().len() - before, load.finished(), "one key, one task");
    assert!(site.tasks().iter().all(|task| task["state"] == "complete"));
    assert_sound(&site);
}
