//! A Redmine that is killed, slow, out of order, or set back to a backup, and a sender that is killed: afterwards everything there
//! is as it is here, nothing twice, nothing lost. `ONUS_SOAK` plays it longer.

use crate::support::tracker::{Tracker, field, notes};
use crate::support::{Agent, Rng, Site, text};
use onus_testkit::{Fault, FaultProxy, Redmine};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Longer than any pause that the test lets come.
const PATIENCE: Duration = Duration::from_secs(240);

/// `onus mirror run`, ended the hard way.
struct SenderProcess(Child);

impl SenderProcess {
    fn start(site: &Site) -> SenderProcess {
        let mut command = site.command(&["mirror", "run", "redmine"]);
        SenderProcess(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn kill(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for SenderProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One change of some task, by whoever may make it.
fn step(
    site: &Site,
    rng: &mut Rng,
    agents: &[Agent],
    tasks: &[String],
    leases: &mut BTreeMap<String, (usize, String)>,
) {
    let task = rng.pick(tasks);
    match leases.get(task).cloned() {
        None => {
            let free = (0..agents.len()).find(|n| !leases.values().any(|(held, _)| held == n));
            let Some(n) = free else { return };
            let agent = &agents[n];
            let claimed =
                site.ok(&["claim", task, "--as", &agent.handle, "--workstation", &agent.workstation]);
            leases.insert(task.clone(), (n, text(&claimed["lease"]["token"]).to_owned()));
        }
        Some((n, lease)) => {
            let by = ["--as", agents[n].handle.as_str(), "--lease", lease.as_str()];
            match rng.below(3) {
                0 => drop(site.ok(&[&["note", task.as_str(), "so far so good"][..], &by].concat())),
                1 => {
                    site.ok(&[&["block", task.as_str(), "--on", "external:rain"][..], &by].concat());
                    site.ok(&[&["unblock", task.as_str()][..], &by].concat());
                }
                _ => {
                    site.ok(&[&["release", task.as_str(), "--note", "for another"][..], &by].concat());
                    leases.remove(task);
                }
            }
        }
    }
}

fn stand(site: &Site) -> Value {
    site.ok(&["mirror", "status"])["mirrors"][0].clone()
}

/// Waits until the mirror was told everything. A person lets it be tried at once: pauses are minutes long.
fn settle(site: &Site) {
    let until = Instant::now() + PATIENCE;
    loop {
        let stand = stand(site);
        if stand["pending"] == 0 {
            return;
        }
        assert!(Instant::now() < until, "not everything was told: {stand:#}");
        site.by_person(&["mirror", "retry", "redmine"]);
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Everything there equals everything here.
fn assert_same(site: &Site, tracker: &Tracker, tasks: &[String]) {
    let issues = tracker.issues();
    assert_eq!(issues.len(), tasks.len(), "one task, one issue");
    let words = ["open", "in_progress", "blocked", "complete", "dropped"];
    let statuses = ["New", "In Progress", "Feedback", "Closed", "Rejected"];
    let told = ["added", "claimed", "taken_over", "noted", "blocked", "unblocked", "released", "completed"];
    let ledger = site.ledger();
    for task in tasks {
        let found: Vec<&Value> = issues.iter().filter(|issue| field(issue, "Onus Task") == task).collect();
        let [issue] = found[..] else { panic!("{} issues for {task}", found.len()) };
        let issue = tracker.read(&issue["id"].to_string());
        let here = site.task(task);
        let at = words.iter().position(|word| here["state"] == *word).unwrap();
        assert_eq!(text(&issue["status"]["name"]), statuses[at], "{task}");
        let holder = here["assignment"]["assignee"].as_str().unwrap_or_default();
        assert_eq!(field(&issue, "Agent Name"), holder, "{task}");
        let notes = notes(&issue);
        let of_task = ledger.iter().filter(|entry| entry["task"] == task.as_str());
        for entry in of_task.filter(|entry| told.contains(&text(&entry["verb"]))) {
            let sign = format!("[onus {task} #{} ", entry["seq"]);
            let count = notes.iter().filter(|note| note.contains(&sign)).count();
            assert_eq!(count, 1, "{} of {task} was told {count} times", entry["verb"]);
        }
        let sessions = site.ok(&["session", "list", "--task", task, "--limit", "500"]);
        let ended = sessions["sessions"].as_array().unwrap().iter().filter(|one| !one["ended_at"].is_null());
        let seconds: i64 = ended.map(|one| one["seconds"].as_i64().unwrap_or_default()).sum();
        let hours = issue["spent_hours"].as_f64().unwrap();
        assert!((hours * 3_600.0 - seconds as f64).abs() < 30.0, "{task}: {hours} h there, {seconds} s here");
    }
}

#[test]
fn whatever_redmine_does_it_is_told_everything_once() {
    let Some(mut redmine) = Redmine::start() else { return };
    let is_soak = std::env::var_os("ONUS_SOAK").is_some();
    let (workers, rounds) = if is_soak { (8, 60) } else { (3, 4) };
    let tracker = Tracker::at(redmine.port, redmine.directory());
    let proxy = FaultProxy::to(redmine.port);
    let site = Site::new();
    let agents = site.agents(workers);
    tracker.set_up(&site, proxy.port, "    create: always\n");
    let tasks: Vec<String> = (0..workers).map(|n| site.add(&format!("Work {n}"))).collect();
    let (mut rng, mut leases) = (Rng::seeded(7), BTreeMap::new());
    let mut sender = SenderProcess::start(&site);
    settle(&site);
    redmine.kill();
    let mut backup = redmine.backup();
    assert!(redmine.up());
    let faults = [
        Fault::LostAnswer,
        Fault::Error500,
        Fault::Refused,
        Fault::Slow(Duration::from_millis(700)),
        Fault::None,
    ];
    for round in 0..rounds {
        for fault in faults {
            proxy.set(fault);
            step(&site, &mut rng, &agents, &tasks, &mut leases);
            std::thread::sleep(Duration::from_millis(300));
            step(&site, &mut rng, &agents, &tasks, &mut leases);
        }
        proxy.set(Fault::None);
        match round % 4 {
            0 => {
                sender.kill();
                sender = SenderProcess::start(&site);
            }
            1 => {
                redmine.kill();
                step(&site, &mut rng, &agents, &tasks, &mut leases);
                assert!(redmine.up());
            }
            2 => {
                settle(&site);
                redmine.kill();
                backup = redmine.backup();
                assert!(redmine.up());
            }
            _ => {
                // What was told since the backup is lost there, and nobody says so.
                settle(&site);
                redmine.kill();
                redmine.restore(&backup);
                assert!(redmine.up());
            }
        }
    }
    settle(&site);
    sender.kill();
    site.ok(&["mirror", "sync", "redmine"]);
    settle(&site);
    assert_same(&site, &tracker, &tasks);
    site.assert_sound();
}
