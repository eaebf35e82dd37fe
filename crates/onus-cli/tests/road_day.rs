//! A day of a team: five agents in two clones of one shared repository, two of them killed again and again at random. In the
//! evening every task is complete exactly once, the shared main branch holds exactly their commits, and everything that
//! looks for disorder finds none.

use crate::support::team::{Team, ask};
use crate::support::{Answer, Bench, ONUS, Rng, finish, start, text};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

const TASKS: usize = 10;
/// Longer than any day, on a machine with much to do.
const EVENING: Duration = Duration::from_secs(900);

/// What an agent does for a task: a file of its own, and a line in one that it shares with a few others.
const WORK: &str =
    "mkdir -p done && echo $ONUS_AS > done/$ONUS_TASK && git add --all && git commit --quiet -m work";

struct Day<'a> {
    team: &'a Team,
    tasks: &'a [String],
}

impl Day<'_> {
    fn onus(&self, bench: &Bench, args: &[&str]) -> Command {
        let mut onus = Command::new(ONUS);
        self.team.site.surroundings(&mut onus).current_dir(&bench.dir).env("ONUS_AS", &bench.agent.handle);
        onus.args(args);
        onus
    }

    fn call(&self, bench: &Bench, args: &[&str]) -> Answer {
        finish(start(&mut self.onus(bench, args)))
    }

    fn is_over(&self) -> bool {
        let open = self.team.site.ok(&["list", "--limit", "100"]);
        open["tasks"].as_array().unwrap().is_empty()
    }

    /// Works until nothing is left: takes what is ready, else what a dead holder left. `kills` says after how many
    /// milliseconds its process dies, one time after the other.
    fn live(&self, bench: &Bench, mut kills: Vec<u64>) {
        let began = Instant::now();
        let run = ["run", "--ttl", "10s", "--", "sh", "-c", WORK];
        while !self.is_over() {
            assert!(began.elapsed() < EVENING, "{} is not done", bench.agent.handle);
            let mut child = start(&mut self.onus(bench, &run));
            if let Some(after) = kills.pop() {
                std::thread::sleep(Duration::from_millis(after));
                // The process alone, as a kernel short of memory does it: what it has started goes on, or notices.
                drop(child.kill());
            }
            let ran = finish(child);
            match ran.exit {
                Some(0) => {}
                Some(6) => self.take_over(bench),
                // Its own task of before it died, perhaps: that can be taken over once its lease has run out.
                _ => {
                    std::thread::sleep(Duration::from_millis(300));
                    self.take_over(bench);
                }
            }
        }
    }

    /// What the holder of a stale task left is brought along, and finished.
    fn take_over(&self, bench: &Bench) {
        let stale = self.call(bench, &["stale", "--json"]);
        let Some(task) = stale.json()["stale"].as_array().unwrap().iter().find_map(|one| {
            let may = one["may_be_taken_over"].as_bool() == Some(true);
            may.then(|| text(&one["task"]).to_owned())
        }) else {
            std::thread::sleep(Duration::from_millis(200));
            return;
        };
        let why = ["--reason", "it died", "--adopt", "--json"];
        let taken = self.call(bench, &[&["takeover", &task], &why[..]].concat());
        if taken.exit != Some(0) {
            return;
        }
        let is_done = bench.dir.join("done").join(&task).exists();
        if !is_done {
            let mut work = Command::new("sh");
            self.team
                .site
                .surroundings(&mut work)
                .current_dir(&bench.dir)
                .env("ONUS_AS", &bench.agent.handle);
            drop(finish(start(work.env("ONUS_TASK", &task).args(["-c", WORK]))));
        } else {
            // What was kept of the files that nobody had committed.
            let line = "git add --all && (git diff --cached --quiet || git commit --quiet -m rest)";
            let mut rest = Command::new("sh");
            self.team
                .site
                .surroundings(&mut rest)
                .current_dir(&bench.dir)
                .env("ONUS_AS", &bench.agent.handle);
            drop(finish(start(rest.args(["-c", line]))));
        }
        let done = self.call(bench, &["complete", &task, "--resolution", "finished what was left", "--json"]);
        assert_eq!(done.exit, Some(0), "{task} by {}: {done:#?}", bench.agent.handle);
    }
}

fn day(seed: u64) {
    eprintln!("day: seed {seed}");
    let mut rng = Rng::seeded(seed);
    let team = Team::guarded();
    let site = &team.site;
    let mut benches: Vec<Bench> = ["one", "two", "three"].iter().map(|name| site.bench(name)).collect();
    benches.extend(["four", "five"].iter().map(|name| team.bench_there(name)));
    for clone in [&site.repo(), &team.other] {
        std::fs::write(clone.join("onus.yaml"), "lease: { grace: 1s }\n").unwrap();
    }
    let tasks: Vec<String> = (0..TASKS).map(|n| ask(site, &[&format!("work {n}")])).collect();
    let victims = [rng.below(3) as usize, 3 + rng.below(2) as usize];
    let day = Day { team: &team, tasks: &tasks };
    std::thread::scope(|scope| {
        for (n, bench) in benches.iter().enumerate() {
            let kills: Vec<u64> = match victims.contains(&n) {
                true => (0..3).map(|_| rng.below(4_000)).collect(),
                false => Vec::new(),
            };
            let day = &day;
            scope.spawn(move || day.live(bench, kills));
        }
    });
    evening(&day);
}

fn evening(day: &Day<'_>) {
    let Day { team, tasks } = day;
    let site = &team.site;
    let entries = site.ledger();
    for task in *tasks {
        let count = |verb: &str| {
            entries.iter().filter(|entry| entry["task"] == task.as_str() && entry["verb"] == verb).count()
        };
        assert_eq!((count("completed"), count("reopened")), (1, 0), "{task}");
        assert_eq!(text(&site.task(task)["state"]), "complete");
    }
    // Every commit but the first names a task; every task has its file; the record knows each of them.
    let log = site.git_in(
        &team.origin,
        &["log", "--format=%H %(trailers:key=Onus-Task,valueonly,separator=%x2C)", "main"],
    );
    let mut landed = BTreeSet::new();
    let lines: Vec<&str> = log.lines().collect();
    for line in &lines[..lines.len() - 1] {
        let (id, task) = line.split_once(' ').unwrap();
        assert!(tasks.iter().any(|one| one == task.rsplit(',').next().unwrap()), "{line}");
        landed.insert(id.to_owned());
    }
    let mut recorded = BTreeSet::new();
    for entry in &entries {
        for id in entry["data"]["landed"]["commits"].as_array().into_iter().flatten() {
            recorded.insert(text(id).to_owned());
        }
    }
    assert_eq!(landed, recorded, "what is in the main branch is what the record says has landed");
    let mut expected: Vec<String> = tasks.iter().map(|task| format!("done/{task}")).collect();
    expected.sort();
    assert_eq!(crate::support::team::files(site, &team.origin, "main"), expected);
    team.assert_in_order();
}

#[test]
fn a_day_of_five_agents_in_two_clones_ends_in_order() {
    let days = if std::env::var_os("ONUS_SOAK").is_some() { 20 } else { 1 };
    for seed in 1..=days {
        day(seed);
    }
}
