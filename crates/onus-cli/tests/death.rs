//! Takeover by proof of death: a holder whose supervised process is gone need not expire (mission B3, B6). Real
//! processes, killed as nobody could prepare for.

use crate::support::fleet::Fleet;
use crate::support::wrapper::{lives, number_in, run, signal, until};
use crate::support::{Answer, Site, start, text};
use serde_json::Value;
use std::process::{Child, Command};

/// A command under a lease that no test waits for.
struct Running {
    wrapper: Child,
    warden: String,
    command: String,
}

impl Running {
    fn start(site: &Site, task: &str) -> Running {
        let (warden, command) = (site.root().join("warden"), site.root().join("command"));
        for file in [&warden, &command] {
            drop(std::fs::remove_file(file));
        }
        let line = format!(
            "echo half > f; echo $PPID > {}; echo $$ > {}; while :; do sleep 1; done",
            warden.display(),
            command.display()
        );
        let wrapper = start(&mut run(site, "a", &[task, "--ttl", "15m"], &line));
        Running { wrapper, command: number_in(&command), warden: number_in(&warden) }
    }

    fn kill_wrapper(&mut self) {
        self.wrapper.kill().unwrap();
        self.wrapper.wait().unwrap();
    }
}

fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    until("it is killed", || !lives(pid));
}

fn takeover(site: &Site, task: &str) -> Answer {
    site.run(&["takeover", task, "--as", "@b", "--workstation", "ws-b", "--reason", "it died", "--json"])
}

fn refused(site: &Site, task: &str, why: &str) {
    assert_eq!(takeover(site, task).code(), "not_expired", "{why}");
    assert_eq!(stale(site), Value::Array(Vec::new()), "{why}");
    assert!(site.ok(&["show", task])["dead"].is_null(), "{why}");
}

fn stale(site: &Site) -> Value {
    site.ok(&["stale"])["stale"].clone()
}

/// The lease had 15 minutes to go: only the proof lets it change hands.
fn taken_over(site: &Site, task: &str) {
    let told = stale(site)[0].clone();
    assert_eq!((text(&told["dead"]), &told["may_be_taken_over"]), ("process_gone", &true.into()), "{told:#}");
    assert!(told["expired_for_ms"].is_null() && told["left"]["dirty_files"] == 1, "{told:#}");
    assert!(site.run(&["stale"]).stdout.contains("its process is gone, free to take over"));
    assert_eq!(text(&site.ok(&["show", task])["dead"]), "process_gone");
    assert!(site.run(&["show", task]).stdout.contains("its process is gone"));
    let held = site.run(&["claim", task, "--as", "@b", "--workstation", "ws-b", "--json"]).error();
    assert!(text(&held["hint"]).starts_with("its process is gone: onus takeover"), "{held:#}");
    let taken = takeover(site, task);
    assert_eq!(taken.exit, Some(0), "{taken:?}");
    let story = site.ok(&["show", task]);
    let entry = |verb: &str| {
        let ledger = story["ledger"].as_array().unwrap();
        ledger.iter().rfind(|entry| entry["verb"] == verb).unwrap().clone()
    };
    assert_eq!(text(&entry("taken_over")["data"]["dead"]), "process_gone");
    assert!(story["dead"].is_null(), "the new holder is not: {story:#}");
    let old = &story["sessions"][0];
    assert_eq!(text(&old["ended_at"])[..19], text(&entry("renewed")["at"])[..19], "{old:#}");
    site.assert_sound();
}

#[test]
fn who_is_gone_with_everything_it_started_may_be_taken_over_at_once() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    let mut running = Running::start(site, &task);
    refused(site, &task, "all three live");
    signal(&running.wrapper, "-STOP");
    refused(site, &task, "who sleeps is not dead");
    // The warden first: it would end the command.
    kill(&running.warden);
    refused(site, &task, "its wrapper lives");
    running.kill_wrapper();
    assert!(lives(&running.command));
    refused(site, &task, "an orphan can still write");
    kill(&running.command);
    until("the group is empty", || stale(site)[0]["dead"] == "process_gone");
    taken_over(site, &task);
    assert_eq!(stale(site), Value::Array(Vec::new()));
    assert_ne!(fleet.commit("a", "late", "1").exit, Some(0), "a later write is refused");
}

#[test]
fn a_wrapper_that_dies_alone_is_proven_dead_when_its_warden_has_ended_the_command() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    let mut running = Running::start(site, &task);
    running.kill_wrapper();
    until("the warden ends it", || stale(site)[0]["dead"] == "process_gone");
    assert!(!lives(&running.command) && !lives(&running.warden));
    taken_over(site, &task);
}

#[test]
fn a_holder_that_goes_on_by_hand_is_not_dead() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    let mut running = Running::start(site, &task);
    running.kill_wrapper();
    until("the warden ends it", || stale(site)[0]["dead"] == "process_gone");
    site.ok(&["renew", &task, "--as", "@a"]);
    refused(site, &task, "it shows itself");
    site.ok(&["release", &task, "--as", "@a"]);
    // Who was never supervised proves nothing.
    site.ok(&["claim", &task, "--as", "@a", "--workstation", "ws-a"]);
    refused(site, &task, "there is no process to be gone");
    site.assert_sound();
}
