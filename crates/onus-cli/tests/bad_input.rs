//! Whatever a caller types, pipes or writes into a file: a stable code, its exit, plain words, no data, no effect,
//! no crash (rules: threats 12 and 14; contract: errors).

use crate::support::case::{Case, case, furnished, refuse, with};
use crate::support::text;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// Texts that no field takes.
fn bad_texts() -> Vec<OsString> {
    let mut texts: Vec<OsString> = ["a\u{1b}[31mb", "a\u{7}b", "a\u{202e}b", "a\u{2066}b", "a\u{0085}b"]
        .into_iter()
        .map(OsString::from)
        .collect();
    texts.push("x".repeat(120_000).into());
    texts.push(OsStr::from_bytes(b"a\xff\xfeb").to_owned());
    texts
}

/// Where free text goes in, and what an empty one is called there.
const TEXT_FIELDS: &[(&str, &str)] = &[
    ("add {} --as @ada-lovelace", "invalid_input"),
    ("note T-2 {} --as @a1", "invalid_input"),
    ("complete T-2 --resolution {} --as @a1", "invalid_input|resolution_required"),
    ("release T-2 --note {} --as @a1", "invalid_input"),
    ("release T-2 --force --reason {} --as @ada-lovelace", "invalid_input|reason_required"),
    ("claim T-2 --force --reason {} --as @ada-lovelace --workstation ws-2", "invalid_input|reason_required"),
    (
        "takeover T-2 --force --reason {} --as @ada-lovelace --workstation ws-2",
        "invalid_input|reason_required",
    ),
    (
        "complete T-2 --resolution done --force --reason {} --as @ada-lovelace",
        "invalid_input|reason_required",
    ),
    ("reopen T-3 --reason {} --as @ada-lovelace", "invalid_input|reason_required"),
    ("drop T-1 --reason {} --as @ada-lovelace", "invalid_input|reason_required"),
    ("block T-2 --on external:{} --as @a1", "invalid_input"),
    ("add title --tag {} --as @ada-lovelace", "invalid_input"),
    ("add title --check {} --as @ada-lovelace", "invalid_input"),
    ("add title --scope {} --as @ada-lovelace", "invalid_input"),
    ("add title --sprint {} --as @ada-lovelace", "invalid_input"),
];

#[test]
fn texts() {
    let mut cases = Vec::new();
    for (line, empty) in TEXT_FIELDS {
        cases.extend(["", "   ", "\n\n", "\t"].map(|blank| with(line, blank, empty)));
        cases.extend(bad_texts().into_iter().map(|bad| with(line, bad, "invalid_input")));
    }
    cases.push(with("add {} --as @ada-lovelace", "two\nlines", "invalid_input"));
    cases.push(with("add {} --as @ada-lovelace", "x".repeat(501), "invalid_input"));
    refuse(&furnished(), &cases);
}

#[test]
fn bodies_from_standard_input() {
    let bodies: [Vec<u8>; 5] = [
        b"x".repeat(200_000),
        b"a\0b".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        "a\u{1b}]0;title\u{7}".into(),
        "a\u{202e}b".into(),
    ];
    let cases: Vec<Case> = bodies
        .into_iter()
        .map(|body| case("add title --body - --as @ada-lovelace", "invalid_input").input(body))
        .collect();
    refuse(&furnished(), &cases);
}

/// Every verb that names a task, complete but for the task.
const TASK_VERBS: &[&str] = &[
    "show {}",
    "claim {} --as @a1 --workstation ws-1",
    "takeover {} --as @a1 --workstation ws-1 --reason gone",
    "renew {} --as @a1",
    "release {} --as @a1",
    "block {} --on external:weather --as @a1",
    "unblock {} --as @a1",
    "note {} text --as @a1",
    "complete {} --resolution done --as @a1",
    "reopen {} --reason why --as @ada-lovelace",
    "drop {} --reason why --as @ada-lovelace",
    "dep add {} T-1 --as @ada-lovelace",
    "dep add T-1 {} --as @ada-lovelace",
    "dep remove {} T-1 --as @ada-lovelace",
    "ledger log --task {}",
    "add title --depends-on {} --as @ada-lovelace",
    "add title --parent {} --as @ada-lovelace",
    "block T-2 --on task:{} --as @a1",
];

const BAD_IDS: &[&str] = &[
    "",
    " ",
    "T",
    "T-",
    "T-0",
    "T--1",
    "T-01",
    "T-1.5",
    "T-99999999999999999999",
    "../../etc/passwd",
    "T-1/../..",
    "API-1/../..",
    "T-1;reboot",
    "T-1\n",
    "T-1\u{1b}[0m",
    "T-\u{0661}",
    "*",
];

#[test]
fn task_ids() {
    let mut cases = Vec::new();
    for line in TASK_VERBS {
        cases.extend(BAD_IDS.iter().map(|bad| with(line, bad, "invalid_input")));
        cases.push(with(line, OsStr::from_bytes(b"T-\xff"), "invalid_input"));
        cases.push(with(line, "T-999", "unknown_task"));
        cases.push(with(line, "NOPE-1", "unknown_task"));
    }
    refuse(&furnished(), &cases);
}

#[test]
fn names() {
    let bad_handles = ["", "@", "@A", "@-a", "@a b", "@../a", "@a\u{1b}", "@ä"];
    let mut cases = Vec::new();
    for bad in bad_handles {
        cases.push(with("add title --as {}", bad, "invalid_input|identity_required"));
        cases.push(with("worker add {} --kind agent --as @ada-lovelace", bad, "invalid_input"));
        cases.push(with("list --assignee {}", bad, "invalid_input"));
        cases.push(with("block T-2 --on person:{} --as @a1", bad, "invalid_input"));
    }
    for bad in ["", "WS", "-ws", "../ws", "ws/1", "ws 1", "ws\u{7}", "ws_1"] {
        cases.push(with("workstation add {} --kind logical --as @ada-lovelace", bad, "invalid_input"));
        cases.push(with("claim T-1 --as @a1 --workstation {}", bad, "invalid_input"));
    }
    for bad in ["", "no-colon", ":key", "Channel:key", "mail:", "mail:a b", "mail:a\u{7}"] {
        cases.push(with("add title --origin {} --as @ada-lovelace", bad, "invalid_input"));
    }
    for bad in ["", "a b", "\u{7}", "ä"] {
        cases.push(with("add title --as @ada-lovelace --request-id {}", bad, "invalid_input"));
    }
    cases.push(with("add title --as @ada-lovelace --request-id {}", "x".repeat(201), "invalid_input"));
    for bad in ["", "lower", "../X", "TOOLONGTOOLONGTOO"] {
        cases.push(with("init --project {}", bad, "invalid_input"));
    }
    refuse(&furnished(), &cases);
}

#[test]
fn values() {
    let mut cases = Vec::new();
    for bad in ["0", "-1", "abc", "1.5", "99999999999999999999", ""] {
        cases.push(with("list --limit {}", bad, "invalid_input"));
        cases.push(with("ready --limit {}", bad, "invalid_input"));
        cases.push(with("ledger log --limit {}", bad, "invalid_input"));
    }
    for bad in ["0s", "0", "-5m", "abc", "", "5", "9999d", "1.5h", "9999999999999999999d"] {
        cases.push(with("claim T-1 --as @a1 --workstation ws-2 --ttl {}", bad, "invalid_input"));
        cases.push(with("renew T-2 --as @a1 --ttl {}", bad, "invalid_input"));
    }
    for bad in ["P5", "P-1", "5", "high", ""] {
        cases.push(with("add title --priority {} --as @ada-lovelace", bad, "invalid_input"));
    }
    for bad in ["-1", "abc", "99999999999"] {
        cases.push(with("add title --role A-backend --lane={} --as @ada-lovelace", bad, "invalid_input"));
    }
    for bad in ["", "nonsense", "complete;drop"] {
        cases.push(with("list --state {}", bad, "invalid_input"));
        cases.push(with("add title --risk {} --as @ada-lovelace", bad, "invalid_input"));
        cases.push(with("worker add @new --kind {} --as @ada-lovelace", bad, "invalid_input"));
        cases.push(with("workstation add new --kind {} --as @ada-lovelace", bad, "invalid_input"));
        cases.push(with("list --cursor {}", bad, "invalid_input"));
        cases.push(with("block T-2 --on {} --as @a1", bad, "invalid_input"));
        cases.push(with("import --format {} -", bad, "invalid_input"));
    }
    for bad in ["", "x", "1.2", "1.1.zz", "9.9.00000000000000000000000000000000"] {
        cases.push(with("complete T-2 --resolution done --as @a1 --lease {}", bad, "invalid_input|fenced"));
    }
    cases.push(with("worker add @new --kind human --tz {} --as @ada-lovelace", "no zone", "invalid_input"));
    refuse(&furnished(), &cases);
}

#[test]
fn words_that_are_no_command() {
    let site = furnished();
    let mut cases = vec![
        case("nonsense", "invalid_input"),
        case("worker", "invalid_input"),
        case("worker nonsense", "invalid_input"),
        case("claim", "invalid_input"),
        case("claim T-1 --next --as @a1", "invalid_input"),
        case("claim T-1 T-2 --as @a1", "invalid_input"),
        case("add --as @ada-lovelace", "invalid_input"),
        case("note T-2 --as @a1", "invalid_input"),
        case("block T-2 --as @a1", "invalid_input"),
        case("dep add T-1 --as @ada-lovelace", "invalid_input"),
        case("import", "invalid_input"),
    ];
    let verbs = ["init", "list", "ready", "stale", "status", "doctor", "validate", "export", "ledger verify"];
    cases.extend(verbs.map(|verb| case(&format!("{verb} --no-such-flag"), "invalid_input")));
    cases.extend(
        TASK_VERBS.iter().map(|line| with(&format!("{line} --no-such-flag"), "T-1", "invalid_input")),
    );
    cases.push(with("{}", OsStr::from_bytes(b"\xff\xfe"), "invalid_input"));
    refuse(&site, &cases);
}

/// Every verb that writes, complete but for who does it.
const WRITES: &[&str] = &[
    "add title",
    "claim T-1 --workstation ws-2",
    "claim --next --workstation ws-2",
    "takeover T-2 --workstation ws-2 --reason gone",
    "renew T-2",
    "release T-2",
    "block T-2 --on external:weather",
    "unblock T-2",
    "note T-2 text",
    "complete T-2 --resolution done",
    "reopen T-3 --reason why",
    "drop T-1 --reason why",
    "dep add T-1 T-3",
    "dep remove T-1 T-3",
    "worker add @new --kind agent",
    "workstation add new --kind logical",
    "ledger checkpoint",
];

#[test]
fn nothing_anonymous_is_written() {
    let mut cases = Vec::new();
    for line in WRITES {
        cases.push(case(line, "identity_required"));
        cases.push(case(&format!("{line} --as @nobody"), "unknown_worker"));
    }
    cases.push(case("import --format jsonl -", "identity_required").input("{\"title\":\"x\"}\n"));
    refuse(&furnished(), &cases);
}

#[test]
fn only_people_force_and_always_with_a_reason() {
    let cases = [
        case("claim T-2 --force --reason why --as @a2 --workstation ws-2", "human_required"),
        case("takeover T-2 --force --reason why --as @a2 --workstation ws-2", "human_required"),
        case("release T-2 --force --reason why --as @a2", "human_required"),
        case("complete T-2 --resolution done --force --reason why --as @a2", "human_required"),
        case("reopen T-3 --reason why --as @a2", "human_required|not_permitted"),
        case("drop T-1 --reason why --as @a2", "human_required|not_permitted"),
        case("worker add @new --kind agent --as @a2", "human_required|not_permitted"),
        case("claim T-2 --force --as @ada-lovelace --workstation ws-2", "reason_required"),
        case("takeover T-2 --force --as @ada-lovelace --workstation ws-2", "reason_required"),
        case("release T-2 --force --as @ada-lovelace", "reason_required"),
        case("complete T-2 --resolution done --force --as @ada-lovelace", "reason_required"),
        case("takeover T-2 --as @a2 --workstation ws-2", "reason_required|not_expired"),
        case("reopen T-3 --as @ada-lovelace", "reason_required"),
        case("drop T-1 --as @ada-lovelace", "reason_required"),
        case("complete T-2 --as @a1", "resolution_required"),
    ];
    refuse(&furnished(), &cases);
}

#[test]
fn what_is_not_there_and_what_is_not_yours() {
    let cases = [
        case("claim T-1 --as @a2 --workstation nowhere", "workstation_unknown"),
        case("claim T-1 --as @a1 --workstation ws-1", "workstation_busy"),
        case("claim T-2 --as @a2 --workstation ws-2", "lease_held"),
        case("claim T-3 --as @a2 --workstation ws-2", "not_claimable"),
        case("takeover T-2 --as @a2 --workstation ws-2 --reason gone", "not_expired"),
        case("complete T-2 --resolution done --as @a2", "lease_required|fenced"),
        case("renew T-2 --as @a2", "lease_required|fenced"),
        case("release T-2 --as @a2", "lease_required|fenced"),
        case("renew T-1 --as @a2", "lease_required|wrong_state|fenced"),
        case("complete T-1 --resolution done --as @a2", "lease_required|wrong_state|fenced"),
        case("unblock T-2 --as @a1", "wrong_state"),
        case("reopen T-1 --reason why --as @ada-lovelace", "wrong_state"),
        case("dep add T-1 T-1 --as @ada-lovelace", "dependency_cycle"),
        case("workstation show nowhere", "unknown_name"),
        case("worker show @nobody", "unknown_name|unknown_worker"),
        case(
            "worker add @a1 --kind human --as @ada-lovelace",
            "invalid_input|request_conflict|not_permitted",
        ),
    ];
    refuse(&furnished(), &cases);
}

#[test]
fn stores_that_cannot_be() {
    let site = furnished();
    let places = [
        "",
        "mysql://localhost/x",
        "sqlite:",
        "nonsense",
        "sqlite:/nonexistent/onus.db",
        "sqlite:/dev/null",
        "sqlite:/",
    ];
    let cases: Vec<Case> = places
        .iter()
        .map(|place| with("list --store {}", place, "invalid_input|store_unavailable"))
        .collect();
    refuse(&site, &cases);

    // A database is found from everywhere.
    if site.database.is_some() {
        return;
    }
    let outside = site.root().join("home");
    let answer =
        crate::support::finish(crate::support::start(site.command(&["list", "--json"]).current_dir(outside)));
    let error = answer.error();
    assert_eq!(error["code"], "store_unavailable");
    assert!(text(&error["hint"]).contains("onus init"), "the way out is named: {error}");
}
