//! One store for all worktrees and directories of a repository; two projects in one store; no git at all.

use crate::support::{Site, text};
use std::path::Path;

fn run_in(site: &Site, dir: &Path, args: &[&str]) -> serde_json::Value {
    let output = site.command(args).current_dir(dir).arg("--json").output().unwrap();
    assert!(output.status.success(), "{args:?} in {dir:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_worktree_and_subdirectory_finds_the_same_store() {
    let site = Site::new();
    let id = site.add("shared");
    site.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    site.git(&["worktree", "add", "-q", "../lane", "-b", "lane"]);
    let deep = site.repo().join("src/deep");
    let lane = site.root().join("lane");
    std::fs::create_dir_all(&deep).unwrap();
    for dir in [deep.as_path(), lane.as_path(), &site.repo().join(".git")] {
        let seen = run_in(&site, dir, &["list"]);
        assert_eq!(text(&seen["tasks"][0]["id"]), id, "{dir:?}");
    }
}

/// Every command pays for finding its store, and a process would be most of it.
#[test]
fn a_store_is_found_without_a_process() {
    let site = Site::new();
    let id = site.add("found");
    site.git(&["worktree", "add", "-q", "../lane", "-b", "lane"]);
    for dir in [site.repo(), site.root().join("lane")] {
        let without_git =
            site.command(&["show", &id, "--json"]).current_dir(&dir).env("PATH", "").output().unwrap();
        assert!(without_git.status.success(), "{}", String::from_utf8_lossy(&without_git.stderr));
    }
}

#[test]
fn a_claim_without_a_workstation_takes_the_one_it_stands_in() {
    let site = Site::new();
    let id = site.add("here");
    site.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    site.git(&["worktree", "add", "-q", "../lane", "-b", "lane"]);
    let lane = site.root().join("lane");
    site.by_person(&[
        "workstation",
        "add",
        "ws-lane",
        "--kind",
        "checkout",
        "--path",
        lane.to_str().unwrap(),
    ]);
    let inside = lane.join("src");
    std::fs::create_dir(&inside).unwrap();
    let claim = run_in(&site, &inside, &["claim", &id, "--as", "@ada-lovelace"]);
    assert_eq!(text(&claim["assignment"]["workstation"]), "ws-lane");
    // The token lies in the worktree's private git directory: the main checkout has none.
    let lease = site.repo().join(format!(".git/worktrees/lane/onus/lease/{id}.ada-lovelace"));
    assert_eq!(std::fs::read_to_string(lease).unwrap().trim(), text(&claim["lease"]["token"]));
    run_in(&site, &inside, &["complete", &id, "--resolution", "done", "--as", "@ada-lovelace"]);
}

#[test]
fn two_projects_share_a_store_and_count_on_their_own() {
    let site = Site::new();
    site.by_person(&["init", "--project", "WEB"]);
    let add = |project: &str| {
        let added = site.by_person(&["add", "x", "--project", project]);
        text(&added["task"]["id"]).to_owned()
    };
    assert_eq!([add("T"), add("WEB"), add("WEB"), add("T")], ["T-1", "WEB-1", "WEB-2", "T-2"]);
    let both = site.by_person(&["add", "y", "--project", "WEB", "--depends-on", "T-1"]);
    assert_eq!(text(&both["task"]["depends_on"][0]), "T-1");
    assert_eq!(text(&site.by_person(&["add", "z"])["task"]["id"]), "T-3");
}

#[test]
fn init_twice_is_harmless_and_makes_nobody_a_person() {
    let site = Site::new();
    let id = site.add("kept");
    let again = site.ok(&["init", "--as", "@intruder"]);
    assert_eq!(again["created"], false);
    assert_eq!(again["worker"], serde_json::Value::Null);
    let workers = site.ok(&["worker", "list"]);
    assert_eq!(workers["workers"].as_array().unwrap().len(), 1);
    assert_eq!(text(&site.task(&id)["title"]), "kept");
}

#[test]
fn without_git_the_store_lies_in_the_directory() {
    let site = Site::empty();
    let dir = site.root().join("plain");
    std::fs::create_dir(&dir).unwrap();
    let made = run_in(&site, &dir, &["init", "--project", "P", "--as", "@ada"]);
    assert!(text(&made["store"]).ends_with("plain/.onus/onus.db"), "{made}");
    run_in(&site, &dir, &["add", "x", "--as", "@ada"]);
    run_in(&site, &dir, &["claim", "P-1", "--as", "@ada"]);
    run_in(&site, &dir, &["complete", "P-1", "--resolution", "done", "--as", "@ada"]);
    run_in(&site, &dir, &["ledger", "checkpoint", "--as", "@ada"]);
    let verified = run_in(&site, &dir, &["ledger", "verify"]);
    assert_eq!(verified["anchored"], 1);
}

#[test]
fn settings_come_from_the_main_checkout() {
    let site = Site::new();
    let id = site.add("x");
    site.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    site.git(&["worktree", "add", "-q", "../lane", "-b", "lane"]);
    std::fs::write(site.repo().join("onus.yaml"), "lease:\n  human_ttl: 2h\n").unwrap();
    let lane = site.root().join("lane");
    std::fs::write(lane.join("onus.yaml"), "lease:\n  human_ttl: 7d\n").unwrap();
    site.by_person(&["workstation", "add", "ws-1"]);
    let claim = run_in(&site, &lane, &["claim", &id, "--as", "@ada-lovelace", "--workstation", "ws-1"]);
    assert_eq!(claim["lease"]["ttl_ms"], 7_200_000);
}
