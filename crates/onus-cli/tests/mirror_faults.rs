//! A Redmine that is killed, slow, out of order, or set back to a backup, and a sender that is killed: afterwards everything there
//! is as it is here, nothing twice, nothing lost. `ONUS_SOAK` plays it with eight workers and some 600 changes.

use crate::support::tracker::{Tracker, field, notes};
use crate::support::{Agent, Site, text};
use onus_testkit::{Fault, FaultProxy, Redmine};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Longer than any pause that the test lets come, and than hundreds of changes take to be told.
const PATIENCE: Duration = Duration::from_secs(1_800);

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

/// What a worker does with its own task, one change after the other.
struct Worker {
    agent: Agent,
    task: String,
    lease: Option<String>,
    steps: usize,
}

impl Worker {
    fn step(&mut self, site: &Site) {
        let Agent { handle, workstation } = &self.agent;
        let task = self.task.as_str();
        let Some(lease) = self.lease.clone() else {
            let claimed = site.ok(&["claim", task, "--as", handle, "--workstation", workstation]);
            self.lease = Some(text(&claimed["lease"]["token"]).to_owned());
            return;
        };
        let by = ["--as", handle.as_str(), "--lease", lease.as_str()];
        self.steps += 1;
        match self.steps % 4 {
            0 => {
                site.ok(&[&["release", task, "--note", "for another"][..], &by].concat());
                self.lease = None;
            }
            1 => drop(site.ok(&[&["note", task, "so far so good"][..], &by].concat())),
            2 => drop(site.ok(&[&["block", task, "--on", "external:rain"][..], &by].concat())),
            _ => drop(site.ok(&[&["unblock", task][..], &by].concat())),
        }
    }
}

/// Every worker makes a change, all at once.
fn all_step(site: &Site, workers: &mut [Worker]) {
    std::thread::scope(|scope| {
        for worker in workers {
            scope.spawn(|| worker.step(site));
        }
    });
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

/// Waits until the far end's trouble was felt.
fn felt(site: &Site, proxy: &FaultProxy) {
    let until = Instant::now() + PATIENCE;
    while proxy.met() == 0 {
        assert!(Instant::now() < until, "nobody asked the far end: {:#}", stand(site));
        site.by_person(&["mirror", "retry", "redmine"]);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn whatever_redmine_does_it_is_told_everything_once() {
    let Some(mut redmine) = Redmine::start() else { return };
    let is_soak = std::env::var_os("ONUS_SOAK").is_some();
    let (count, rounds, slow) = if is_soak { (8, 12, 10_000) } else { (3, 1, 700) };
    let tracker = Tracker::at(redmine.port, redmine.directory());
    let proxy = FaultProxy::to(redmine.port);
    let site = Site::new();
    let agents = site.agents(count);
    tracker.set_up(&site, proxy.port, "    create: always\n    silence: 2s\n");
    let mut workers: Vec<Worker> = agents
        .into_iter()
        .map(|agent| Worker {
            task: site.add(&format!("Work of {}", agent.handle)),
            agent,
            lease: None,
            steps: 0,
        })
        .collect();
    let tasks: Vec<String> = workers.iter().map(|worker| worker.task.clone()).collect();
    let mut sender = SenderProcess::start(&site);
    settle(&site);
    redmine.kill();
    let backup = redmine.backup();
    assert!(redmine.up());
    let faults = [
        Fault::LostAnswer,
        Fault::Error500,
        Fault::Unprocessable,
        Fault::Refused,
        Fault::Slow(Duration::from_millis(slow)),
    ];
    for _ in 0..rounds {
        for fault in faults {
            proxy.set(fault);
            all_step(&site, &mut workers);
            felt(&site, &proxy);
        }
        // The key is taken away, the sender is killed, and so is Redmine; the work goes on.
        proxy.set(Fault::None);
        std::fs::write(site.repo().join("key"), "0123456789abcdef0123456789abcdef").unwrap();
        all_step(&site, &mut workers);
        felt(&site, &proxy);
        sender.kill();
        std::fs::write(site.repo().join("key"), &tracker.bot_key).unwrap();
        sender = SenderProcess::start(&site);
        redmine.kill();
        all_step(&site, &mut workers);
        assert!(redmine.up());
    }
    settle(&site);
    assert_same(&site, &tracker, &tasks);
    // What was told since the backup is lost there, and nobody says so.
    redmine.kill();
    redmine.restore(&backup);
    assert!(redmine.up());
    all_step(&site, &mut workers);
    settle(&site);
    sender.kill();
    site.ok(&["mirror", "sync", "redmine"]);
    settle(&site);
    assert_same(&site, &tracker, &tasks);
    site.assert_sound();
}
