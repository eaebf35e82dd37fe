//! `onus run` keeps its lease while the server restarts, the database restarts and its host is lost: one command through
//! a server, one beside it straight at the database.

use crate::support::server::Server;
use crate::support::wrapper::{run, until};
use crate::support::{Site, finish, start};
use onus_testkit::{Cluster, Durability};
use std::net::TcpListener;
use std::process::Child;
use std::time::Duration;

/// Renewed every third of it. An outage takes a third as well, and a command gives up a sixth before the end: what is left for
/// a database to start again is a sixth.
const TTL: Duration = Duration::from_secs(48);

/// A command that works until it is told that it is done.
struct Working {
    task: String,
    wrapper: Child,
}

impl Working {
    fn begin(site: &Site, name: &str, far: Option<&str>) -> Working {
        let task = site.add(&format!("work of {name}"));
        let (began, end) = (site.root().join(&task), site.root().join("end"));
        let line = format!("touch {}; until [ -e {} ]; do sleep 0.1; done", began.display(), end.display());
        let mut command = run(site, name, &[&task, "--ttl", &format!("{}s", TTL.as_secs())], &line);
        if let Some(url) = far {
            command.env("ONUS_STORE", url).env("ONUS_TOKEN", site.token(&format!("@{name}")));
        }
        let wrapper = start(&mut command);
        until("the command has started", || began.exists());
        Working { task, wrapper }
    }

    fn renewals(&self, site: &Site) -> i64 {
        site.task(&self.task)["assignment"]["renewals"].as_i64().unwrap()
    }
}

/// Longer than the time between two renewals, so that each command meets it; then both must be renewed again.
fn outage(site: &Site, working: &[Working], what: &str, begin: impl FnOnce(), end: impl FnOnce()) {
    let before: Vec<i64> = working.iter().map(|one| one.renewals(site)).collect();
    begin();
    std::thread::sleep(TTL / 3);
    end();
    let after = || working.iter().map(|one| one.renewals(site));
    until(what, || after().zip(&before).all(|(now, before)| now > *before));
}

#[test]
fn a_lease_is_kept_through_restarts_and_a_failover() {
    let Some(primary) = Cluster::start(Durability::Durable) else { return };
    primary.psql("postgres", "CREATE DATABASE team");
    let standby = primary.standby();
    let primary = std::cell::RefCell::new(primary);
    let url = primary.borrow().url_with(&standby, "team");
    let site = Site::at(Some(url)).founded();
    for name in ["a", "b"] {
        site.by_person(&["worker", "add", &format!("@{name}"), "--kind", "agent"]);
        site.by_person(&["workstation", "add", &format!("ws-{name}"), "--kind", "logical"]);
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let serve = || Server::start_with(&site, &["--listen", &listen]);
    let mut server = Some(serve());
    let far = format!("http://{listen}");
    let working = [Working::begin(&site, "a", Some(&far)), Working::begin(&site, "b", None)];

    let first = server.take().unwrap();
    outage(&site, &working, "renewed after the server's restart", || drop(first), || server = Some(serve()));
    let (kill, restart) = (|| primary.borrow_mut().kill(), || primary.borrow_mut().restart());
    outage(&site, &working, "renewed after the database's restart", kill, restart);
    primary.borrow().wait_for_standby();
    outage(&site, &working, "renewed after the failover", kill, || standby.promote());

    std::fs::write(site.root().join("end"), "").unwrap();
    for Working { task, wrapper } in working {
        let answer = finish(wrapper);
        assert_eq!(
            (answer.exit, site.task(&task)["state"].as_str()),
            (Some(0), Some("complete")),
            "{answer:?}"
        );
    }
    let claims = site.ledger().iter().filter(|entry| entry["verb"] == "claimed").count();
    assert_eq!(claims, 2, "each of them held one lease all the time");
    site.assert_sound();
}
