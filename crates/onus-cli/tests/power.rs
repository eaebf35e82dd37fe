//! Power is lost at any moment, and with it any part of what was not synced: the store opens, what was acknowledged is
//! there, and the call that was under way is resolved by its request id. `ONUS_SOAK` tries every moment.

use crate::support::crowd::in_parallel;
use crate::support::server::Server;
use crate::support::{Answer, Rng, Site, finish, start, text};
use onus_testkit::disk::{Disk, Step, recorded, steps};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One call, what it did to the disk, and the tasks that there were when it was acknowledged.
struct Call {
    words: Vec<String>,
    steps: Vec<Step>,
    tasks: Tasks,
}

/// The state of each task.
type Tasks = BTreeMap<String, String>;

struct Recorder {
    site: Site,
    calls: Vec<Call>,
    tasks: Tasks,
}

impl Recorder {
    fn call(&mut self, args: &[&str]) -> Value {
        let mut words: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--json".into(), "--request-id".into(), format!("power-{}", self.calls.len())]);
        let trace = self.site.root().join("trace");
        let answer = finish(start(&mut recorded(&self.site.command(&words), &trace)));
        assert!(answer.is_ok(), "{words:?}: {answer:#?}");
        let told = answer.json();
        if let (Some(id), Some(state)) = (told["task"]["id"].as_str(), told["task"]["state"].as_str()) {
            self.tasks.insert(id.to_owned(), state.to_owned());
        }
        let steps = steps(&trace, &self.site.store());
        self.calls.push(Call { words, steps, tasks: self.tasks.clone() });
        told
    }
}

/// A day of one agent, long enough that the log is written back and emptied on the way.
fn lived() -> Recorder {
    let mut day = Recorder { site: Site::at(None), calls: Vec::new(), tasks: Tasks::new() };
    let person = text(&day.call(&["init", "--project", "T"])["worker"]).to_owned();
    day.call(&["worker", "add", "@a1", "--kind", "agent", "--as", &person]);
    day.call(&["workstation", "add", "ws-1", "--kind", "logical", "--as", &person]);
    let body = "what is to be done, at length; ".repeat(600);
    for round in 0..4 {
        let title = format!("task {round}");
        let added = day.call(&["add", &title, "--body", &body, "--as", &person]);
        let id = text(&added["task"]["id"]).to_owned();
        let claimed = day.call(&["claim", &id, "--as", "@a1", "--workstation", "ws-1"]);
        // Said, not found: the file that a claim leaves is gone when the call is repeated.
        let held = ["--as", "@a1", "--lease", text(&claimed["lease"]["token"])];
        day.call(&[&["note", &id, &body], &held[..]].concat());
        day.call(&[&["complete", &id, "--resolution", "done"], &held[..]].concat());
    }
    let cuts = day.calls.iter().flat_map(|call| &call.steps);
    let emptied = cuts.filter(|step| matches!(step, Step::Cut { length: 0, file } if is_log(file))).count();
    assert!(emptied > 0, "the log must have been emptied on the way");
    day
}

fn is_log(file: &Path) -> bool {
    file.to_string_lossy().ends_with("-wal")
}

/// The store as it was found when power was back.
struct Found<'d> {
    site: &'d Site,
    url: String,
}

impl Found<'_> {
    fn run(&self, words: &[&str]) -> Answer {
        self.site.run(&[words, &["--store", &self.url]].concat())
    }

    fn tasks(&self) -> Tasks {
        let answer = self.run(&["list", "--state", "all", "--limit", "500", "--json"]);
        assert!(answer.is_ok(), "the store opens: {answer:#?}");
        let listed = answer.json();
        let pair = |task: &Value| (text(&task["id"]).to_owned(), text(&task["state"]).to_owned());
        listed["tasks"].as_array().unwrap().iter().map(pair).collect()
    }

    /// What the call before left, or what this one leaves; asked again by its id, this one has happened once.
    fn assert_kept(&self, before: Option<&Call>, call: &Call) {
        let (known, after) = (before.map(|call| &call.tasks), &call.tasks);
        if call.words[0] != "init" {
            let tasks = self.tasks();
            assert!(Some(&tasks) == known || tasks == *after, "{:?}: {tasks:?}", call.words);
        }
        let words: Vec<&str> = call.words.iter().map(String::as_str).collect();
        let again = self.run(&words);
        assert!(again.is_ok(), "{:?}: {again:#?}", call.words);
        assert_eq!(self.tasks(), *after, "{:?}", call.words);
        for args in [&["doctor", "--json"][..], &["ledger", "verify", "--json"]] {
            let sound = self.run(args);
            assert!(sound.is_ok(), "{:?}: {sound:#?}", call.words);
        }
    }
}

impl Found<'_> {
    /// Whether something that was acknowledged is gone. Where it is, the store says so instead of giving its numbers out again.
    fn is_missed(&self, call: &Call) -> bool {
        let doctor = self.run(&["doctor", "--json"]);
        if doctor.is_ok() {
            // All of it had been written back.
            assert_eq!(self.tasks(), call.tasks, "{:?}", call.words);
            return false;
        }
        let error = doctor.error();
        let findings = error["findings"].as_array().cloned().unwrap_or_default();
        let says_so = findings.iter().any(|finding| finding["code"] == "store_behind_anchor");
        // Before anything was written back, the log is all there is; nobody makes another store in its place.
        let is_empty = text(&error["detail"]).contains("is empty");
        assert!(says_so || is_empty, "{:?}: {doctor:#?}", call.words);
        if is_empty {
            let anew = self.run(&["init", "--project", "T", "--json"]);
            assert!(text(&anew.error()["detail"]).contains("acknowledged"), "{:?}: {anew:#?}", call.words);
        }
        true
    }
}

/// Writes what was found to a directory of its own. The index of the log lives in memory alone.
fn restore(image: &BTreeMap<PathBuf, Vec<u8>>, directory: &Path) {
    drop(std::fs::remove_dir_all(directory));
    std::fs::create_dir(directory).unwrap();
    for (path, bytes) in image.iter().filter(|(path, _)| !path.to_string_lossy().ends_with("-shm")) {
        let path = directory.join(path.file_name().unwrap());
        std::fs::write(&path, bytes).unwrap();
        // Whom a file belongs to is written when it is made.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn can_record() -> bool {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("skipped: strace is not installed, or ptrace is not permitted");
    }
    can
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_acknowledged() {
    if !can_record() {
        return;
    }
    // Of so many moments one is tried.
    let every = if std::env::var_os("ONUS_SOAK").is_some() { 1 } else { 25 };
    let day = lived();
    let mut rng = Rng::seeded(31);
    let mut disk = Disk::new(day.site.store().parent().unwrap());
    let directory = day.site.root().join("found");
    let found = Found { site: &day.site, url: format!("sqlite:{}", directory.join("onus.db").display()) };
    let (mut moments, mut missed, mut before) = (0, 0, None);
    for call in &day.calls {
        let acknowledged = call.steps.len();
        for (n, step) in call.steps.iter().enumerate() {
            disk.play(step);
            // Once a call is acknowledged nothing of it may be lost: that moment is always tried.
            let is_last = n + 1 == acknowledged;
            if !is_last && rng.below(every) != 0 {
                continue;
            }
            restore(&disk.after_power_loss(&mut |limit| rng.below(limit)), &directory);
            if is_last && call.words[0] != "init" {
                assert_eq!(found.tasks(), call.tasks, "acknowledged: {:?}", call.words);
            }
            found.assert_kept(before, call);
            moments += 1;
            // Nothing survives but what was synced, and the log is damaged besides: what was acknowledged is missed.
            let mut damaged = disk.after_power_loss(&mut |_| 0);
            if is_last && damaged.iter_mut().any(|(path, bytes)| is_log(path) && flip_first_page(bytes)) {
                restore(&damaged, &directory);
                missed += usize::from(found.is_missed(call));
            }
        }
        before = Some(call);
    }
    let steps: usize = day.calls.iter().map(|call| call.steps.len()).sum();
    assert!(missed > 10, "the log was damaged after {missed} calls only");
    eprintln!("power was lost at {moments} of {steps} moments of {} calls", day.calls.len());
}

/// One bit of the first page in the log: SQLite ends it there. A log without a page loses nothing.
fn flip_first_page(log: &mut [u8]) -> bool {
    log.get_mut(32 + 24 + 1_000).map(|byte| *byte ^= 4).is_some()
}

/// The ids of the tasks that a server told its callers about.
fn told_in(words: &[u8]) -> Vec<String> {
    let words = String::from_utf8_lossy(words).into_owned();
    let parts = words.split("\"id\":\"T-").skip(1);
    parts.filter_map(|part| part.split('"').next()).map(|number| format!("T-{number}")).collect()
}

/// A server commits what many callers want together, and answers them afterwards.
#[test]
fn a_server_that_loses_power_keeps_what_it_told() {
    if !can_record() {
        return;
    }
    let every = if std::env::var_os("ONUS_SOAK").is_some() { 5 } else { 60 };
    let site = Site::at(None).founded();
    let bearers = site.token_bearers(8);
    let directory = site.store().parent().unwrap().to_owned();
    let mut disk = Disk::holding(&directory);
    let trace = site.root().join("trace");
    let words = ["serve", "--json", "--log", "quiet", "--listen", "127.0.0.1:0"];
    let server = Server::spawn_with(&mut recorded(&site.command(&words), &trace), Stdio::null());
    in_parallel(&bearers, |_, agent, token| {
        for n in 0..8 {
            server.add(token, &format!("{n} of {}", agent.handle));
        }
    });
    // Whom strace watches ends; what it wrote is whole when it has ended itself.
    let watched = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid())).unwrap();
    assert!(Command::new("kill").args(["-TERM", watched.trim()]).status().unwrap().success());
    server.wait();

    let mut rng = Rng::seeded(37);
    let image = site.root().join("found");
    let found = Found { site: &site, url: format!("sqlite:{}", image.join("onus.db").display()) };
    let (mut told, mut moments) = (Vec::new(), 0);
    for step in steps(&trace, &site.store()) {
        disk.play(&step);
        match step {
            // Nothing is promised by what a socket is told before the commit, or after: only tasks count.
            Step::Say(words) if told_in(&words).is_empty() => continue,
            Step::Say(words) => told.extend(told_in(&words)),
            _ if rng.below(every) != 0 => continue,
            _ => {}
        }
        restore(&disk.after_power_loss(&mut |limit| rng.below(limit)), &image);
        let tasks = found.tasks();
        assert!(told.iter().all(|id| tasks.contains_key(id)), "{told:?} were told, there are {tasks:?}");
        moments += 1;
        if moments % 10 == 0 {
            let sound = found.run(&["doctor", "--json"]);
            assert!(sound.is_ok(), "{sound:#?}");
        }
    }
    assert!(told.len() >= 64, "everybody was told: {told:?}");
    eprintln!("power was lost at {moments} moments of a server that told of {} tasks", told.len());
}

/// The instrument itself: a disk that only says that it has synced loses what was acknowledged, and this is seen.
#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    if !can_record() {
        return;
    }
    let day = lived();
    let mut rng = Rng::seeded(31);
    let mut disk = Disk::new(day.site.store().parent().unwrap());
    let directory = day.site.root().join("found");
    let found = Found { site: &day.site, url: format!("sqlite:{}", directory.join("onus.db").display()) };
    let lost = day.calls.iter().filter(|call| {
        let steps = call.steps.iter();
        steps
            .filter(|step| !matches!(step, Step::Sync(file) if is_log(file)))
            .for_each(|step| disk.play(step));
        restore(&disk.after_power_loss(&mut |limit| rng.below(limit)), &directory);
        let listed = found.run(&["list", "--state", "all", "--limit", "500", "--json"]);
        !listed.is_ok() || found.tasks() != call.tasks
    });
    assert!(lost.count() > 0, "nothing was lost without a sync");
}
