//! `onus run`: a command lives exactly as long as its lease (mission D15, B6). Real processes, real worktrees.

use crate::support::fleet::Fleet;
use crate::support::wrapper::{lives, number_in, ran, run, signal, until};
use crate::support::{Rng, Site, finish, start, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// A third of it is waited for the next renewal. Half of it has to pass without one, and a sixth before a command has ended,
/// for a machine to be too slow.
const TTL: &str = "36s";

fn last_handoff(site: &Site, task: &str) -> Value {
    site.ok(&["handoff", task, "--show"])["handoff"].clone()
}

fn pid_file(site: &Site) -> PathBuf {
    site.root().join("pid")
}

/// As documents tell it.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    onus_core::time::Timestamp(i64::try_from(since.as_millis()).unwrap()).to_string()
}

#[test]
fn a_command_works_commits_and_the_task_is_complete() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.by_person(&["add", "work", "--check", "test -f done"]);
    let line = "set -e; test \"$ONUS_TASK $ONUS_AS $ONUS_WORKSTATION\" = 'T-1 @a ws-a'; test -n \"$ONUS_STORE\"; \
        echo 1 > done; git add done; git commit --quiet --message=work; \
        onus merge T-1; onus handoff T-1 --summary 'limiter with tests'";
    let line = format!("onus() {{ {} \"$@\"; }}; {line}", Fleet::onus());
    let answer = ran(site, "a", &["T-1", "--json"], &line);
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let task = site.task("T-1");
    assert_eq!(task["state"], "complete", "{answer:?}");
    let author = fleet.git("a", &["log", "-1", "--format=%an <%ae>"]).stdout;
    assert_eq!(author.trim(), "a <a@agents.invalid>");
    let notes = site.ok(&["show", "T-1"])["notes"].clone();
    let resolution = notes.as_array().unwrap().iter().find(|note| note["kind"] == "resolution").unwrap();
    assert_eq!(resolution["text"], "limiter with tests");
    // Merged, and proven on exactly what was merged.
    let merged = fleet.at(&site.repo(), "main").unwrap();
    assert_eq!(fleet.at(&fleet.tree("a"), "HEAD").as_ref(), Some(&merged));
    let run = site.ok(&["check", "T-1", "--list"])["checks"][0]["run"].clone();
    assert_eq!(
        (text(&run["verdict"]), text(&run["commit"]), &run["dirty"]),
        ("passed", &*merged, &false.into())
    );
    let ledger = site.ok(&["show", "T-1"])["ledger"].clone();
    let entry = |verb: &str| ledger.as_array().unwrap().iter().find(|entry| entry["verb"] == verb).unwrap();
    assert_eq!(entry("merged")["data"]["commit"], merged);
    assert_eq!(entry("completed")["data"]["commit"], merged);
    site.assert_sound();
}

#[test]
fn what_fails_is_given_back_with_a_handoff_and_its_own_code() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    let line = "echo 1 > f; git add f; git commit --quiet --message='half of it'; echo 2 > g; exit 23";
    let answer = ran(site, "a", &["--next"], line);
    assert_eq!(answer.exit, Some(23), "{answer:?}");
    assert_eq!(site.task(&task)["state"], "open");
    let handoff = last_handoff(site, &task);
    assert_eq!(handoff["status"], "released", "{handoff}");
    assert_eq!(handoff["commits"][0]["subject"], "half of it");
    assert_eq!((&handoff["files"][0], &handoff["dirty"][0]), (&"f".into(), &"g".into()));
    assert!(text(&handoff["summary"]).contains("exit code 23"), "{handoff}");
    // A check that fails: seven, and the next one hears why.
    site.by_person(&["add", "other", "--check", "false"]);
    let answer = ran(site, "b", &["T-2"], "true");
    assert_eq!(answer.exit, Some(7), "{answer:?}");
    let handoff = last_handoff(site, "T-2");
    assert!(text(&handoff["summary"]).contains("checks_failed"), "{handoff}");
    assert_eq!(handoff["tests_run"][0]["verdict"], "failed");
    // A command that is not there, one that a signal ended, and nothing to do at all.
    let words = ["run", "--as", "@b", "--workstation", "ws-b", "T-2", "--", "/no/such/command"];
    assert_eq!(site.run(&words).exit, Some(127));
    assert_eq!(ran(site, "b", &["T-2"], "kill -9 $$").exit, Some(137));
    assert_eq!(ran(site, "b", &["T-2", "--no-complete"], "true").exit, Some(0));
    assert_eq!(site.task("T-2")["state"], "open");
    assert_eq!(ran(site, "b", &["--type", "nobodys"], "true").exit, Some(6));
    site.assert_sound();
}

#[test]
fn a_command_may_end_its_assignment_itself() {
    let site = Site::new();
    site.by_person(&["worker", "add", "@a", "--kind", "agent"]);
    site.by_person(&["workstation", "add", "ws-a", "--kind", "logical"]);
    for (verb, state, exit) in [
        ("complete T --resolution ok", "complete", 0),
        ("release T", "open", 0),
        ("block T --on external:x", "blocked", 5),
    ] {
        let task = site.add("work");
        let line = format!("{} {} && exit {exit}", Fleet::onus(), verb.replace('T', &task));
        let answer = ran(&site, "a", &[&task], &line);
        assert_eq!(answer.exit, Some(exit), "{verb}: {answer:?}");
        assert_eq!(site.task(&task)["state"], state, "{verb}");
        if verb.starts_with("release") {
            site.by_person(&["drop", &task, "--reason", "over"]);
        }
    }
    site.assert_sound();
}

#[test]
fn a_lost_lease_stops_the_command_and_its_work_is_kept() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    let lease = site.root().join("lease");
    let line = format!(
        "echo half > f; echo $ONUS_LEASE > {}; echo $$ > {}; sleep 300",
        lease.display(),
        pid_file(site).display()
    );
    // Deaf to TERM: it is killed after its grace.
    let line = format!("trap '' TERM; {line}; sleep 300");
    let wrapper = start(&mut run(site, "a", &[&task, "--ttl", TTL], &line));
    let pid = number_in(&pid_file(site));
    let words = ["takeover", &task, "--workstation", "ws-b", "--force", "--reason", "test"];
    site.by_person(&words);
    let answer = finish(wrapper);
    assert_eq!(answer.exit, Some(4), "{answer:?}");
    assert!(!lives(&pid));
    let kept = fleet.at(&site.repo(), &format!("refs/onus/salvage/{task}/1")).expect("the work is kept");
    let mut show = Command::new("git");
    let shown = finish(start(site.surroundings(&mut show).args(["show", &format!("{kept}:f")])));
    assert_eq!(shown.stdout, "half\n", "{shown:?}");
    let handoff = last_handoff(site, &task);
    assert_eq!((text(&handoff["status"]), text(&handoff["by"])), ("taken_over", "@a"));
    assert!(text(&handoff["salvage"]).ends_with("/1"));
    assert_eq!(site.ok(&["show", &task])["handoff"]["handoff"]["by"], "@a", "the new holder begins with it");
    assert_ne!(fleet.commit("a", "late", "1").exit, Some(0), "a later write is refused");
    let token = std::fs::read_to_string(lease).unwrap().trim().to_owned();
    let pushed = finish(fleet.push("a", &token));
    assert_ne!(pushed.exit, Some(0), "{pushed:?}");
    for words in [&["renew", &task][..], &["note", &task, "x"], &["complete", &task, "--resolution", "x"]] {
        let late = site.run(&[words, &["--as", "@a", "--lease", &token, "--json"]].concat());
        assert_eq!(late.code(), "fenced", "{words:?}");
    }
    site.assert_sound();
}

/// A wrapper that is stopped beyond its lease renews nothing. Woken, it asks: where nobody took over it goes on, and who was
/// taken over from is told that, and not that the store is away.
#[test]
fn a_wrapper_that_was_stopped_beyond_its_lease_hears_how_things_stand() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.by_person(&["workstation", "add", "ws-c", "--kind", "logical"]);
    let begin = |name: &str| {
        let task = site.add("work");
        let (began, end) = (site.root().join(&task), site.root().join("end"));
        let line = format!("touch {}; until [ -e {} ]; do sleep 0.1; done", began.display(), end.display());
        let wrapper = start(&mut run(site, name, &[&task, "--ttl", "9s"], &line));
        until("the command has started", || began.exists());
        signal(&wrapper, "-STOP");
        (task, wrapper)
    };
    let ((left, stays), (taken, loses)) = (begin("a"), begin("b"));
    let expired = || site.ok(&["stale"])["stale"].as_array().map_or(0, Vec::len);
    until("both leases are over", || expired() == 2);
    site.by_person(&["takeover", &taken, "--workstation", "ws-c", "--force", "--reason", "asleep"]);
    // The store is busy for a moment just then: an answer that comes late is still an answer.
    let busy = site.database.is_none().then(|| rusqlite::Connection::open(site.store()).unwrap());
    busy.iter().for_each(|store| store.execute_batch("BEGIN IMMEDIATE").unwrap());
    signal(&stays, "-CONT");
    signal(&loses, "-CONT");
    std::thread::sleep(Duration::from_millis(500));
    drop(busy);
    until("who was left alone is renewed", || expired() == 0);
    // It hears of it while its command runs, which ends by that.
    let lost = finish(loses);
    std::fs::write(site.root().join("end"), "").unwrap();
    let stayed = finish(stays);
    assert_eq!((stayed.exit, text(&site.task(&left)["state"])), (Some(0), "complete"), "{stayed:?}");
    assert_eq!(lost.exit, Some(4), "{lost:?}");
    assert!(lost.stderr.contains("lost: fenced"), "{lost:?}");
    site.assert_sound();
}

#[test]
fn a_quarantined_workstation_stops_it_too() {
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    let line = format!("echo $$ > {}; sleep 300", pid_file(&fleet.site).display());
    let wrapper = start(&mut run(&fleet.site, "a", &[&task, "--ttl", TTL], &line));
    let pid = number_in(&pid_file(&fleet.site));
    fleet.site.by_person(&["workstation", "quarantine", "ws-a", "--reason", "smoke"]);
    let answer = finish(wrapper);
    assert_eq!(answer.exit, Some(4), "{answer:?}");
    assert!(!lives(&pid));
    assert_eq!(fleet.site.task(&task)["state"], "open", "given back: others may go on elsewhere");
}

#[test]
fn a_store_that_is_gone_ends_the_command_before_its_lease() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    // A server cannot be moved aside; it is killed in tests/postgres.rs.
    if site.database.is_some() {
        return;
    }
    let task = site.add("work");
    let line = format!("echo $$ > {}; sleep 300", pid_file(site).display());
    let wrapper = start(&mut run(site, "a", &[&task, "--ttl", TTL], &line));
    let pid = number_in(&pid_file(site));
    let (store, aside) = (site.store().parent().unwrap().to_owned(), site.root().join("aside"));
    std::fs::rename(&store, &aside).unwrap();
    let answer = finish(wrapper);
    let (ended, gone) = (now(), !lives(&pid));
    if store.exists() {
        std::fs::remove_dir_all(&store).unwrap();
    }
    std::fs::rename(&aside, &store).unwrap();
    assert!(gone);
    assert_eq!(answer.exit, Some(69), "{answer:?}");
    let held = site.ok(&["status"])["held"][0].clone();
    assert!(
        *ended < *text(&held["expires_at"]),
        "it ended before anybody else may have the task: {ended} {held}"
    );
    assert_eq!(held["dead"], "process_gone", "and its end is proof enough here: {held}");
    site.assert_sound();
}

#[test]
fn an_interruption_is_passed_on_once_and_then_kills() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    let deaf = format!(
        "trap 'echo told > {}/told' INT; echo $$ > {}; while :; do sleep 0.1; done",
        site.root().display(),
        pid_file(site).display()
    );
    let wrapper = start(&mut run(site, "a", &[&task], &deaf));
    let pid = number_in(&pid_file(site));
    signal(&wrapper, "-INT");
    until("it is passed on", || site.root().join("told").exists());
    assert!(lives(&pid));
    signal(&wrapper, "-INT");
    let answer = finish(wrapper);
    assert_eq!(answer.exit, Some(137), "{answer:?}");
    assert!(!lives(&pid));
    assert_eq!(site.task(&task)["state"], "open");
    assert!(text(&last_handoff(site, &task)["summary"]).contains("interrupted"));
}

#[test]
fn a_killed_wrapper_takes_its_command_with_it() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    let mut rng = Rng::seeded(17);
    for round in 0..20 {
        let file = site.root().join(format!("pid-{round}"));
        // A child of its own, and a commit after the other: what is killed is never idle.
        let line = format!(
            "sleep 300 & echo $! > {0}.child; echo $$ > {0}; while :; do git commit -q --allow-empty -m x; done",
            file.display()
        );
        let mut wrapper = start(&mut run(site, "a", &[&task, "--ttl", "1m"], &line));
        std::thread::sleep(Duration::from_millis(rng.below(400)));
        wrapper.kill().unwrap();
        wrapper.wait().unwrap();
        let pids = |name: &Path| std::fs::read_to_string(name).unwrap_or_default().trim().to_owned();
        let names = [file.clone(), file.with_extension("child")];
        let ended = || {
            names.iter().all(|name| {
                let pid = pids(name);
                pid.is_empty() || !lives(&pid)
            })
        };
        // Longer than the guard's patience: a command that starts late must end, too.
        until("the command ends with its wrapper", || {
            ended() && {
                std::thread::sleep(Duration::from_millis(100));
                ended()
            }
        });
        let state = site.task(&task);
        if state["state"] == "in_progress" {
            let release = ["release", &task, "--force", "--reason", "killed", "--as", &site.person, "--json"];
            let released = site.run(&release);
            // A git that is killed between two instructions leaves its lock behind; a person takes it away, as told.
            let lock = site.repo().join(".git/refs/heads/agent/ws-a.lock");
            if released.exit == Some(69) {
                assert!(released.stderr.contains("remove the lock file"), "{released:?}");
                std::fs::remove_file(lock).unwrap();
            } else {
                assert_eq!(released.exit, Some(0), "{released:?}");
            }
        }
    }
    let answer = ran(site, "a", &[&task, "--no-complete"], "git status --short");
    assert_eq!(answer.exit, Some(0), "the next one can go on: {answer:?}");
    site.assert_sound();
}

#[test]
fn two_wrappers_empty_the_queue() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    for n in 1..=5 {
        site.add(&format!("task {n}"));
    }
    let log = site.root().join("log");
    let line = format!("echo $ONUS_TASK >> {}; sleep 0.2", log.display());
    let wrappers: Vec<Child> =
        ["a", "b"].iter().map(|name| start(&mut run(site, name, &["--loop", "--json"], &line))).collect();
    for wrapper in wrappers {
        let answer = finish(wrapper);
        assert_eq!(answer.exit, Some(0), "{answer:?}");
    }
    let log = std::fs::read_to_string(log).unwrap();
    let mut done: Vec<&str> = log.lines().collect();
    done.sort_unstable();
    assert_eq!(done, ["T-1", "T-2", "T-3", "T-4", "T-5"], "each once");
    assert!(site.tasks().iter().all(|task| task["state"] == "complete"));
    assert_eq!(ran(site, "a", &["--loop"], "true").exit, Some(6));
    site.assert_sound();
}

/// A parent is done when its slices are: nobody is offered what nobody can complete.
#[test]
fn a_parent_is_offered_behind_its_slices() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let parent = site.add("whole");
    let slice =
        |title: &str| text(&site.by_person(&["add", title, "--parent", &parent])["task"]["id"]).to_owned();
    let (one, two) = (slice("one"), slice("two"));
    let ready = || {
        let view = site.ok(&["ready"]);
        let ids = view["tasks"].as_array().unwrap().iter().map(|task| text(&task["id"]).to_owned());
        (ids.collect::<Vec<_>>(), view["not_ready"].clone())
    };
    let (tasks, waits) = ready();
    assert_eq!(tasks, [one.clone(), two.clone()]);
    assert_eq!(
        (&waits[0]["task"], &waits[0]["reasons"][0]),
        (&parent.clone().into(), &"dependency_incomplete".into())
    );
    assert_eq!(waits[0]["waits_for"], serde_json::json!([one, two]));
    let line = "echo \"$ONUS_TASK\" > \"$ONUS_TASK.txt\"; git add . && git commit --quiet --message work";
    for done in [&one, &two, &parent] {
        let ended = ran(site, "a", &["--next"], line);
        assert_eq!(ended.exit, Some(0), "{ended:?}");
        assert_eq!(site.task(done)["state"], "complete", "{ended:?}");
    }
    // What was complete waits again for a slice that comes later, and for nothing that was dropped.
    let later = slice("later");
    site.by_person(&["reopen", &parent, "--reason", "more of it"]);
    assert_eq!(ready().0.join(" "), later);
    let dropped = site.by_person(&["drop", &later, "--reason", "no"]);
    assert_eq!(dropped["task"]["state"], "dropped");
    assert_eq!(ready().0.join(" "), parent);
    // The last one says what can begin.
    let last = slice("last");
    let claimed = site.ok(&["claim", &last, "--as", "@a", "--workstation", "ws-a"]);
    let token = text(&claimed["lease"]["token"]);
    let said = finish(start(&mut site.command(&[
        "complete",
        &last,
        "--resolution",
        "done",
        "--as",
        "@a",
        "--lease",
        token,
        "--no-merge",
    ])));
    assert!(said.stderr.contains(&parent), "{said:?}");
    site.assert_sound();
}

/// Invariant clean-start, where git itself is in the way: nothing is started, and nobody keeps the task.
#[test]
fn nothing_begins_in_a_place_that_cannot_be_made_ready() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let task = site.add("work");
    // What stands where git locks its index, and is nothing that a killed git left.
    let tree = fleet.tree("a");
    std::fs::write(tree.join("left.txt"), "left behind\n").unwrap();
    let index = site.repo().join(".git/worktrees/repo-ws-a/index.lock");
    std::fs::create_dir(&index).unwrap();
    let is_open = || {
        let row = site.task(&task);
        assert_eq!((text(&row["state"]), row["assignment"].is_null()), ("open", true), "{row}");
    };
    let started = site.root().join("started");
    let line = format!("touch {}", started.display());
    let ended = ran(site, "a", &[&task, "--json"], &line);
    assert_eq!(
        (ended.exit, &ended.json()["runs"][0]["outcome"]),
        (Some(126), &"released".into()),
        "{ended:#?}"
    );
    assert!(!started.exists(), "it was started among what somebody else left");
    is_open();
    let refused = site.run(&["claim", &task, "--as", "@a", "--workstation", "ws-a", "--json"]);
    assert_eq!((refused.exit, &*refused.code()), (Some(5), "workstation_not_ready"), "{refused:#?}");
    is_open();
    let told = site.ok(&["handoff", &task, "--show"])["handoff"]["summary"].clone();
    assert!(text(&told).contains("could not be put on the main of record"), "{told}");
    // Once git can work there again, it begins clean.
    std::fs::remove_dir(&index).unwrap();
    let ended = ran(site, "a", &[&task], "ls; echo x >x.txt; git add . && git commit --quiet --message work");
    assert_eq!(ended.exit, Some(0), "{ended:#?}");
    assert!(!ended.stdout.contains("left.txt"), "{ended:#?}");
    site.assert_sound();
}
