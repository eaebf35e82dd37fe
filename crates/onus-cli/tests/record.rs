//! What the record says: nothing lost in silence, nothing typed in, nothing in another's name (threats 15 to 17).

use crate::support::{Answer, Site, finish, start, text};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Whether the tests run on the repository's own file: only there is a log to damage.
fn is_on_file() -> bool {
    std::env::var_os("ONUS_TEST_STORE").is_none()
}

fn refused(answer: &Answer) -> Vec<String> {
    let error = answer.error();
    let findings = error["findings"].as_array().cloned().unwrap_or_default();
    if findings.is_empty() {
        return vec![text(&error["code"]).to_owned()];
    }
    findings.iter().map(|finding| text(&finding["code"]).to_owned()).collect()
}

fn person(site: &Site, args: &[&str]) -> Answer {
    site.run(&[args, &["--as", &site.person, "--json"]].concat())
}

/// A second person.
fn bob(site: &Site) {
    site.by_person(&["worker", "add", "@bob", "--kind", "human"]);
}

fn log(site: &Site) -> PathBuf {
    site.store().with_extension("db-wal")
}

#[test]
fn a_flipped_bit_in_the_log_is_no_silent_loss() {
    if !is_on_file() {
        return;
    }
    let site = Site::new();
    site.agents(1);
    let empty = rusqlite::Connection::open(site.store()).unwrap();
    empty.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(empty);
    site.add("kept");
    let kept = fs::metadata(log(&site)).unwrap().len();
    site.add("lost");
    site.add("lost as well");
    let whole = fs::read(log(&site)).unwrap();
    // Anywhere in what came after the first: SQLite ends its log there and says nothing.
    for at in [kept as usize + 4, kept as usize + 500, whole.len() - 1_000] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(log(&site), &bytes).unwrap();
        for args in [&["claim", "T-1", "--workstation", "ws-1"][..], &["claim", "--next"], &["add", "twice"]]
        {
            assert_eq!(refused(&person(&site, args)), ["store_behind_anchor"], "{args:?} at {at}");
        }
        assert!(refused(&site.run(&["doctor", "--json"])).contains(&"store_behind_anchor".to_owned()));
        assert_eq!(refused(&site.run(&["ledger", "verify", "--json"])), ["ledger_broken"]);
        // Neither reading nor a comment makes it forgotten.
        assert!(site.run(&["list", "--json"]).is_ok());
        assert!(person(&site, &["note", "T-1", "still here"]).is_ok());
        assert_eq!(refused(&person(&site, &["add", "twice"])), ["store_behind_anchor"]);
        // The comment went into the shortened log; the next round begins with the whole one.
        fs::remove_file(site.store().with_extension("db-shm")).unwrap();
        fs::write(log(&site), &whole).unwrap();
        assert!(site.run(&["doctor", "--json"]).is_ok(), "with the log whole again all is well");
    }
    let mut bytes = whole;
    bytes[kept as usize + 500] ^= 1;
    fs::write(log(&site), &bytes).unwrap();
    assert_eq!(refused(&person(&site, &["add", "twice"])), ["store_behind_anchor"]);
    site.by_person(&["ledger", "raise-generation", "--reason", "the disk lost it"]);
    let next = site.add("after the loss");
    assert!(!["T-1", "T-2", "T-3"].contains(&next.as_str()), "{next} was somebody's already");
    site.by_person(&["claim", "T-1", "--workstation", "ws-1"]);
    site.assert_sound();
}

#[test]
fn a_store_put_back_without_its_last_writes_says_so() {
    if !is_on_file() {
        return;
    }
    let site = Site::new();
    site.agents(1);
    site.add("one");
    let settle = || {
        let store = rusqlite::Connection::open(site.store()).unwrap();
        store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    };
    settle();
    let backup = fs::read(site.store()).unwrap();
    site.add("two");
    settle();
    fs::write(site.store(), &backup).unwrap();
    assert_eq!(refused(&person(&site, &["claim", "T-1", "--workstation", "ws-1"])), ["store_behind_anchor"]);
    // Another store in its place begins anew.
    for suffix in ["db", "db-wal", "db-shm"] {
        drop(fs::remove_file(site.store().with_extension(suffix)));
    }
    site.ok(&["init", "--project", "T", "--no-hooks"]);
    site.add("another life");
    site.assert_sound();
}

#[test]
fn hours_are_not_typed_in() {
    let site = Site::new();
    site.agents(1);
    bob(&site);
    let task = site.add("work");
    site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
    site.ok(&["release", &task, "--as", "@a1"]);
    let session = || site.ok(&["session", "list"])["sessions"][0].clone();
    let id = session()["id"].to_string();
    let recorded = session()["seconds"].clone();
    let date =
        std::process::Command::new("date").args(["-u", "-d", "18 hours ago", "+%FT%TZ"]).output().unwrap();
    let early = String::from_utf8(date.stdout).unwrap().trim().to_owned();
    let from = &early[..10];
    let say = ["session", "correct", &id, "--start", &early, "--reason", "I worked before"];
    let proposed = site.by_person(&say);
    assert_eq!(proposed["sessions"][0]["seconds"], recorded, "18 hours before the task was there");
    assert!(proposed["sessions"][0]["proposal"].is_object(), "{proposed}");
    assert_eq!(refused(&person(&site, &say)), ["not_permitted"], "nobody agrees with oneself");
    let sheet = || site.ok(&["timesheet", "show", "--from", from, "--by", "worker"]);
    assert_eq!(
        sheet()["rows"].as_array().unwrap().iter().map(|row| row["corrected"].as_i64().unwrap()).sum::<i64>(),
        0
    );
    let agreed = site.ok(&[&say[..], &["--as", "@bob"]].concat());
    assert!(agreed["sessions"][0]["seconds"].as_i64().unwrap() > 3_600, "{agreed}");
    assert_eq!(sheet()["rows"][0]["corrected"], json!(1));
    let export = |format: &str, by: &[&str]| {
        let args = ["timesheet", "export", "--from", from, "--format", format];
        let answer = site.run(&[&args[..], by].concat());
        assert!(answer.is_ok(), "{answer:?}");
        answer.stdout
    };
    let csv = export("csv", &["--by", "worker"]);
    assert!(
        csv.lines().next().unwrap().ends_with(",corrected") && csv.lines().nth(1).unwrap().ends_with(",1"),
        "{csv}"
    );
    assert!(export("ics", &[]).contains("(corrected)"));
    site.assert_sound();
}

/// Entries of a task: verb, actor.
fn acts(site: &Site, task: &str) -> Vec<(String, String)> {
    let mine = site.ledger().into_iter().filter(|entry| entry["task"] == task);
    mine.map(|entry| (text(&entry["verb"]).to_owned(), text(&entry["actor"]).to_owned())).collect()
}

#[test]
fn what_a_person_gives_by_force_is_said_in_the_persons_name() {
    let site = Site::new();
    site.agents(2);
    let task = site.add("work");
    site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
    let force =
        ["claim", &task, "--for", "@a2", "--workstation", "ws-2", "--force", "--reason", "a1 is gone"];
    site.by_person(&force);
    let acts = acts(&site, &task);
    assert!(acts.contains(&("noted".into(), site.person.clone())), "the handoff is kept: {acts:?}");
    assert!(!acts.iter().any(|(_, actor)| actor == "@a2"), "@a2 said nothing yet: {acts:?}");
    site.assert_sound();
}

const MAP: &str = "routing:\n  - {task_type: build, agent_name: \"@a1\", workstation: ws-1}\n";

fn put_map(site: &Site, map: &str) -> String {
    fs::write(site.repo().join("executor-identity-map.yaml"), map).unwrap();
    site.git(&["add", "executor-identity-map.yaml"]);
    site.git(&["commit", "--quiet", "--message=map"]);
    let mut git = std::process::Command::new("git");
    let head = site.surroundings(&mut git).args(["rev-parse", "HEAD"]).output().unwrap();
    String::from_utf8(head.stdout).unwrap().trim().to_owned()
}

#[test]
fn force_over_a_map_says_which_map_it_was() {
    let site = Site::new();
    site.agents(2);
    let commit = put_map(&site, "routing: nonsense\n");
    let task = site.add("work");
    let route = |site: &Site| site.task(&task)["assignment"]["route"].clone();
    site.by_person(&["claim", &task, "--workstation", "ws-1", "--force", "--reason", "the map is broken"]);
    assert_eq!(text(&route(&site)["map_commit"]), commit);
    assert_eq!(text(&route(&site)["map_hash"]).len(), 64);
    let outside = |site: &Site| site.ok(&["report", "sprint"])["total"]["outside_policy"].clone();
    assert_eq!(outside(&site), json!(1));
    // A map that lets people take anything is not stepped over by a person who takes something.
    put_map(&site, MAP);
    site.by_person(&["takeover", &task, "--workstation", "ws-2", "--force", "--reason", "mine"]);
    assert_eq!(text(&route(&site)["rule"]), "person");
    assert_eq!(outside(&site), json!(1));
}

#[test]
fn a_sprint_counts_what_happened() {
    let site = Site::new();
    site.agents(1);
    let task = text(&site.by_person(&["add", "work", "--sprint", "s1"])["task"]["id"]).to_owned();
    for again in [true, false] {
        site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
        site.ok(&["complete", &task, "--no-merge", "--as", "@a1", "--resolution", "done"]);
        if again {
            site.by_person(&["reopen", &task, "--reason", "not yet"]);
        }
    }
    site.by_person(&["add", "another sprint's", "--sprint", "s2"]);
    let report = site.ok(&["report", "sprint", "s1"]);
    let sum = |name: &str| {
        report["flow"].as_array().unwrap().iter().map(|day| day[name].as_i64().unwrap()).sum::<i64>()
    };
    assert_eq!((sum("added"), sum("completed"), sum("reopened")), (1, 2, 1), "{report}");
    let last = report["flow"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["done"], &last["scope"]), (&json!(1), &json!(1)));
}

#[test]
fn who_may_review_is_the_maps() {
    let site = Site::new();
    site.agents(3);
    put_map(
        &site,
        &format!("{MAP}  - {{task_type: verification, agent_name: \"@a2\", workstation: ws-2}}\n"),
    );
    let task = text(&site.by_person(&["add", "work", "--type", "build"])["task"]["id"]).to_owned();
    site.ok(&["claim", &task, "--as", "@a1"]);
    let reject = |who: &str, place: &str| {
        site.run(&[
            "review",
            &task,
            "--reject",
            "--as-implemented",
            "--workstation",
            place,
            "--as",
            who,
            "--json",
        ])
    };
    assert_eq!(refused(&reject("@a3", "ws-3")), ["routing_denied"]);
    assert!(reject("@a2", "ws-2").is_ok());
}

#[test]
fn what_is_waited_for_and_asked_for_is_there() {
    let site = Site::new();
    site.agents(1);
    let task = text(&site.by_person(&["add", "work", "--origin", "jira:A-1"])["task"]["id"]).to_owned();
    site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
    let block = site.run(&["block", &task, "--on", "exception:77", "--as", "@a1", "--json"]);
    assert_eq!(refused(&block), ["unknown_name"]);
    let probe = ["workstation", "add", "ws-9", "--kind", "logical", "--probe", "git:clean"];
    assert_eq!(refused(&person(&site, &probe)), ["invalid_input"]);
    site.by_person(&["drop", &task, "--reason", "never mind"]);
    let again = site.by_person(&["add", "work", "--origin", "jira:A-1"]);
    assert_eq!(text(&again["outcome"]), "existing");
    assert!(text(&again["detail"]).contains("was dropped"), "{again}");
    // A channel that is paused brings nothing in.
    site.by_person(&["worker", "add", "@mail", "--kind", "agent"]);
    let mail = |n: u8| {
        let message = format!("Message-ID: <{n}@x>\nSubject: please\nFrom: a@b.c\n\nhello\n");
        site.feed(&["intake", "email", "--as", "@mail", "--json"], message.into_bytes())
    };
    assert!(mail(1).is_ok());
    site.by_person(&["worker", "pause", "@mail", "--reason", "spam"]);
    assert_eq!(refused(&mail(2)), ["not_permitted"]);
    assert_eq!(site.tasks().len(), 2);
    site.by_person(&["worker", "resume", "@mail"]);
    assert!(mail(2).is_ok());
}

#[test]
fn a_map_with_three_mistakes_tells_all_three() {
    let site = Site::new();
    let map = "routing:\n  - {task_type: build, agent: \"@a1\", workstation: ws-1}\n  - task_type: fix\n    agent_name: nobody!\n    workstation: ws-1\n  - {task_type: test, agent_name: \"@a1\", workstation: ws-1}\n  - {task_type: test, agent_name: \"@a1\", workstation: ws-1}\ncolour: red\n";
    put_map(&site, map);
    let answer = site.run(&["route", "check", "--json"]);
    let told = refused(&answer);
    assert!(told.len() >= 4 && told.iter().all(|code| code == "map_invalid"), "{answer:#?}");
    for part in [":2:", ":4:", "colour", "has a rule already"] {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
    fs::write(site.repo().join("onus.yaml"), "lease:\n  grase: 1m\nqueue:\n  limt: 5\n").unwrap();
    let told = refused(&site.run(&["list", "--json"]));
    assert_eq!(told, ["invalid_input", "invalid_input"]);
}

#[test]
fn an_old_lease_file_keeps_nobody_from_commenting() {
    let site = Site::new();
    site.agents(2);
    let task = site.add("work");
    let claimed = site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
    let token = text(&claimed["lease"]["token"]).to_owned();
    let force = ["claim", &task, "--workstation", "ws-2", "--force", "--reason", "mine"];
    let bystander = [&force[..], &["--for", "@a2"]].concat();
    site.by_person(&bystander);
    site.ok(&["note", &task, "what I knew", "--as", "@a1"]);
    let notes = site.ok(&["show", &task])["notes"].clone();
    let kinds: Vec<&Value> = notes
        .as_array()
        .unwrap()
        .iter()
        .filter(|note| note["by"] == "@a1")
        .map(|note| &note["kind"])
        .collect();
    assert_eq!(kinds, [&json!("comment")], "{notes}");
    // Whoever shows the token claims to be the holder.
    let shown = site.run(&["note", &task, "mine", "--as", "@a1", "--lease", &token, "--json"]);
    assert_eq!(refused(&shown), ["fenced"]);
}

#[test]
fn an_archive_restored_elsewhere_verifies() {
    if !is_on_file() {
        return;
    }
    let site = Site::new();
    site.add("work");
    site.by_person(&["ledger", "checkpoint"]);
    site.add("more work");
    let archive = site.root().join("archive.jsonl");
    let archive = archive.to_str().unwrap();
    assert!(person(&site, &["export", "--format", "onus", archive]).is_ok());
    let copy = format!("sqlite:{}", site.root().join("elsewhere.db").display());
    site.ok(&["--store", &copy, "import", "--format", "onus", archive, "--as", &site.person]);
    for verb in [&["ledger", "verify", "--json"][..], &["doctor", "--json"]] {
        let answer = site.run(&[&["--store", &copy], verb].concat());
        assert!(answer.is_ok(), "{answer:#?}");
    }
    site.ok(&["--store", &copy, "add", "it goes on", "--as", &site.person]);
    site.ok(&["--store", &copy, "ledger", "checkpoint", "--as", &site.person]);
    site.assert_sound();
}

#[test]
fn checks_that_cannot_fail_are_refused() {
    let site = Site::new();
    let task = site.add("work");
    for check in
        ["test 1", "[ 1 = 1 ]", "ls", "make test | cat", "env true", "cd . && true", "make || exit 0"]
    {
        assert_eq!(refused(&person(&site, &["add", "x", "--check", check])), ["invalid_input"], "{check}");
        assert_eq!(refused(&person(&site, &["check", &task, "--add", check])), ["invalid_input"], "{check}");
    }
}

#[test]
fn a_check_reads_no_secret_of_its_parent() {
    let site = Site::new();
    site.agents(1);
    // Whatever may be read of the parents, as far as they are ours.
    let look = "p=$PPID; for n in 1 2 3; do tr '\\0' '\\n' < /proc/$p/environ; strings /proc/$p/cmdline; \
                p=$(cut -d' ' -f4 /proc/$p/stat); done 2>&- | grep -E 'ONUS_|hush'; test -d .git";
    let task = text(&site.by_person(&["add", "work", "--check", look])["task"]["id"]).to_owned();
    let claimed = site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
    let lease = text(&claimed["lease"]["token"]).to_owned();
    let mut onus = site.command(&["check", &task, "--as", "@a1", "--json"]);
    onus.env("ONUS_TOKEN_NOT", "seen").env("ONUS_LEASE", &lease).env("PGPASSWORD", "hush-hush-hush");
    if is_on_file() {
        onus.env("ONUS_TOKEN", "onus_at_deadbeef");
    }
    let answer = finish(start(&mut onus));
    assert!(answer.is_ok(), "{answer:#?}");
    let output = site.ok(&["check", &task, "--list"])["checks"][0]["run"]["output"].to_string();
    for secret in [lease.as_str(), "hush-hush-hush", "onus_at_deadbeef", "ONUS_TOKEN_NOT"] {
        assert!(!output.contains(secret), "{secret} was read: {output}");
    }
}
