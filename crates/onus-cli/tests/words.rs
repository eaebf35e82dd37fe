//! Words that were seen wrong once: each of them stands here as people read it, so that none comes back.

use crate::support::{HANG, Site};
use std::time::{Duration, Instant};

/// What a call says on both channels, whatever comes of it.
fn said(site: &Site, who: &str, args: &[&str]) -> String {
    let answer = site.run(&[args, &["--as", who]].concat());
    format!("{}{}", answer.stdout, answer.stderr)
}

fn has(text: &str, right: &[&str], wrong: &[&str]) {
    for words in right {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    for words in wrong {
        assert!(!text.contains(words), "{words:?} is still there:\n{text}");
    }
}

#[test]
fn what_is_given_to_another_is_not_yours() {
    let site = Site::new();
    site.agents(2);
    let ada = site.person.clone();
    site.by_person(&["add", "One"]);
    let given = said(&site, &ada, &["claim", "T-1", "--for", "@a1", "--workstation", "ws-1"]);
    has(&given, &["@a1 has T-1 now"], &["is yours"]);
}

#[test]
fn a_handoff_says_who_it_was_taken_from_and_no_page_prints_its_json() {
    let site = Site::new();
    site.agents(2);
    let ada = site.person.clone();
    site.by_person(&["add", "One"]);
    site.ok(&["claim", "T-1", "--as", "@a1", "--workstation", "ws-1"]);
    let taken = ["takeover", "T-1", "--workstation", "ws-2", "--force", "--reason", "it is silent"];
    site.by_person(&taken);
    let story = said(&site, &ada, &["show", "T-1"]);
    let wrong = ["taken_over", "{\"", "\nnotes\n", "epoch", "**"];
    has(&story, &["@a1 had it until somebody took it over", "FORCED", "it is silent"], &wrong);
    has(&said(&site, &ada, &["show", "T-1", "-v"]), &["taken_over from @a1", "epoch 2"], &["{\""]);
    let day = said(&site, &ada, &["worker", "day", &ada]);
    has(&day, &["handed off", "taken over"], &["{\"", "onus-handoff"]);
    site.by_person(&["handoff", "T-1", "--summary", "Half of it works"]);
    has(&said(&site, &ada, &["worker", "day", &ada]), &["Half of it works"], &["{\""]);
    has(&said(&site, &ada, &["ledger", "log"]), &["taken over"], &["{\"", "\"hash\""]);
}

#[test]
fn what_is_complete_is_not_claimed_again() {
    let site = Site::new();
    site.agents(1);
    let ada = site.person.clone();
    site.by_person(&["add", "One"]);
    site.by_person(&["add", "Two", "--depends-on", "T-1"]);
    site.ok(&["claim", "T-1", "--as", "@a1", "--workstation", "ws-1"]);
    let waits = said(&site, &ada, &["claim", "T-2"]);
    has(&waits, &["T-1, which is in progress"], &["in_progress"]);
    let done = said(&site, "@a1", &["complete", "T-1", "--resolution", "done"]);
    has(&done, &["T-2 is ready now"], &[]);
    let again = said(&site, &ada, &["complete", "T-1", "--resolution", "again"]);
    has(&again, &["T-1 is complete", "onus show T-1"], &["onus claim T-1"]);
}

#[test]
fn a_second_project_has_no_first_task() {
    let site = Site::new();
    let ada = site.person.clone();
    let second = said(&site, &ada, &["init", "--project", "WEB"]);
    has(&second, &["project WEB", "onus add \"What is to be done\" --project WEB"], &["My first task"]);
}

#[test]
fn newer_pages_speak_plainly_too() {
    let site = Site::new();
    site.agents(2);
    let ada = site.person.clone();
    site.by_person(&["add", "One"]);
    site.ok(&["claim", "T-1", "--as", "@a1", "--workstation", "ws-1"]);
    let why = said(&site, &ada, &["route", "explain", "T-1"]);
    has(&why, &["held by @a1"], &["Z\n", "T00:", ".000Z"]);
    assert!(!why.lines().any(|line| line.ends_with('Z')), "a moment for programs:\n{why}");
    let question = ["block", "T-1", "--on", &format!("person:{ada}"), "--note", "Blue?"];
    let blocked = said(&site, "@a1", &question);
    has(&blocked, &[&format!("waits for {ada}")], &["person:"]);
    has(&said(&site, &ada, &["show", "T-1"]), &[&format!("waits for: {ada}")], &["blocked on: person:"]);
    let taken = ["takeover", "T-1", "--workstation", "ws-2", "--force", "--reason", "it is silent"];
    site.by_person(&taken);
    let now = said(&site, &ada, &["report", "now"]);
    has(&now, &["1 lease lost"], &["in_progress", "1 leases"]);
}

#[test]
fn a_refusal_is_a_sentence_and_its_code_comes_last() {
    let site = Site::new();
    site.agents(2);
    let ada = site.person.clone();
    site.by_person(&["add", "One"]);
    site.by_person(&["add", "Two", "--depends-on", "T-1"]);
    site.ok(&["claim", "T-1", "--as", "@a1", "--workstation", "ws-1"]);
    let first = |args: &[&str], who: &str| {
        let told = said(&site, who, args);
        let line = told.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("{told}"));
        (line.to_owned(), told)
    };
    for (args, who, begins, code) in [
        (
            &["claim", "T-1", "--workstation", "ws-2"][..],
            "@a2",
            "error: T-1 is held by @a1 in ws-1 until ",
            "lease_held",
        ),
        (&["complete", "T-1", "--resolution", "x"], "@a2", "error: only the holder", "lease_required"),
        (&["show", "T-9"], &ada, "error: there is no task T-9", "unknown_task"),
        (&["drop", "T-2"], &ada, "error: say why", "reason_required"),
        (&["add"], &ada, "error: ", "invalid_input"),
        (
            &["clam", "T-1"],
            &ada,
            "error: unrecognized subcommand 'clam'; some similar subcommands exist: ",
            "invalid_input",
        ),
    ] {
        let (line, told) = first(args, who);
        assert!(line.starts_with(begins) && line.ends_with(&format!(" [{code}]")), "{args:?}:\n{told}");
    }
    has(&said(&site, &ada, &["drop", "T-2"]), &["hint: the same again, with --reason TEXT"], &[]);
    has(&said(&site, &ada, &["add"]), &["not provided: <TITLE> [", "hint: onus add --help"], &["Usage"]);
    // Of several reasons each has its own.
    let held = said(&site, "@a2", &["claim", "T-2", "--workstation", "nowhere"]);
    let reasons: Vec<&str> = held.lines().filter(|line| line.starts_with("  - ")).collect();
    assert!(reasons.len() >= 2 && reasons.iter().all(|line| line.ends_with(']')), "{held}");
    has(&held, &["error: 2 things are wrong [dependency_incomplete]"], &["more)"]);
    // A record is read by people, too.
    has(
        &said(&site, &ada, &["ledger", "log"]),
        &["dependency_incomplete]"],
        &["refused: claim: dependency_incomplete"],
    );
}

#[test]
fn reports_say_what_is_so_and_nothing_twice() {
    let site = Site::new();
    site.agents(3);
    let ada = site.person.clone();
    site.by_person(&["add", "One", "--tag", "x"]);
    site.by_person(&["add", "Two", "--depends-on", "T-1", "--tag", "x"]);
    let why = ["--reason", "the client is blocked", "--rollback", "revert the commit"];
    site.by_person(&[&["exception", "request", "T-2", "--on", "T-1"][..], &why].concat());
    site.by_person(&["add", "Three", "--depends-on", "T-1", "--tag", "x"]);

    // A milestone advises nobody to claim what waits.
    let milestone = said(&site, &ada, &["milestone", "add", "m", "--tag", "x"]);
    has(&milestone, &["onus claim T-1"], &["onus claim T-2", "onus claim T-3"]);

    // An open dependency that was let through is said to be so.
    site.by_person(&["exception", "approve", "T-2", "--on", "T-1"]);
    site.ok(&["claim", "T-2", "--as", "@a1", "--workstation", "ws-1"]);
    site.ok(&["release", "T-2", "--as", "@a1", "--note", "later"]);
    let document = said(&site, &ada, &["handoff", "T-2", "--show"]);
    has(&document, &["T-1 open, let through by an exception"], &["yes (T-1 open)"]);

    // A review is told with its words.
    site.ok(&["claim", "T-1", "--as", "@a2", "--workstation", "ws-2"]);
    site.by_person(&["review", "T-1", "--reject", "--as-design-only", "--note", "Only words so far"]);
    has(
        &said(&site, &ada, &["show", "T-1"]),
        &["reviews\n", "rejected", "design-only", "Only words so far"],
        &[],
    );

    // A lease that ran out is told once, and a place without a directory has nothing to count.
    site.by_person(&["add", "Four"]);
    site.ok(&["claim", "T-4", "--as", "@a3", "--workstation", "ws-3", "--ttl", "1s"]);
    let began = Instant::now();
    let stale = loop {
        let told = said(&site, &ada, &["stale"]);
        if told.contains("T-4") || began.elapsed() > HANG {
            break told;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    has(&stale, &["its workstation has no directory"], &["0 uncommitted", "0 commits", "ago ago"]);
    assert_eq!(stale.matches(" ago").count(), 1, "{stale}");
}

#[test]
fn what_takes_long_draws_no_bar_into_a_pipe() {
    let site = Site::new();
    let lines: String = (0..400).map(|n| format!("{{\"title\":\"Task {n}\"}}\n")).collect();
    let file = site.root().join("many.jsonl");
    std::fs::write(&file, lines).unwrap();
    let told = said(&site, &site.person, &["import", "--format", "jsonl", &file.to_string_lossy()]);
    has(&told, &["400 tasks created, 0 existing"], &["\r", "\u{1b}", "█", "%"]);
    has(
        &said(&site, &site.person, &["ready", "--limit", "20"]),
        &["among the first 100: 100 ready"],
        &["of the first 20"],
    );
    has(&said(&site, &site.person, &["ledger", "verify"]), &["entries in", "verified"], &["\r", "\u{1b}"]);
}
