//! Handoffs: what the next holder needs, from real worktrees (mission D10, B6).

use crate::support::fleet::Fleet;
use crate::support::text;
use serde_json::{Value, json};

fn shown(fleet: &Fleet, task: &str) -> Value {
    fleet.site.ok(&["handoff", task, "--show"])["handoff"].clone()
}

/// A task that depends on a complete one, held by `@a`, with a commit and an uncommitted file.
fn at_work() -> Fleet {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.add("before");
    site.by_person(&["add", "work", "--depends-on", "T-1", "--check", "test -f src/f"]);
    site.by_person(&["complete", "T-1", "--resolution", "done", "--force", "--reason", "test"]);
    fleet.claim("T-2", "a");
    assert_eq!(fleet.commit("a", "src/f", "1").exit, Some(0));
    std::fs::write(fleet.tree("a").join("g\u{202e}"), "2").unwrap();
    fleet
}

#[test]
fn the_exact_structure_is_filled_in() {
    let fleet = at_work();
    let site = &fleet.site;
    site.ok(&["check", "T-2", "--as", "@a"]);
    let words =
        ["--summary", "half done\nmore to come", "--risk", "the clock", "--risk", "locks", "--next", "tests"];
    site.ok(&[&["handoff", "T-2", "--as", "@a"][..], &words].concat());
    let handoff = shown(&fleet, "T-2");
    let wanted = json!({
        "format": "onus-handoff/1", "task": "T-2", "status": "in_progress", "depends_on_satisfied": true,
        "depends_on": [{"task": "T-1", "state": "complete", "satisfied": true}], "files": ["src/f"],
        "risks": ["the clock", "locks"], "blockers": [], "next_slice": "tests", "lane": null,
        "summary": "half done\nmore to come", "by": "@a", "epoch": 1, "workstation": "ws-a",
        "branch": "agent/ws-a", "dirty": ["g "], "salvage": null,
    });
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(&handoff[name], value, "{name}: {handoff}");
    }
    assert_eq!(handoff["commits"][0]["subject"], "change src/f");
    assert_eq!(handoff["commits"].as_array().unwrap().len(), 1);
    assert_eq!(Some(text(&handoff["head"]).to_owned()), fleet.at(&fleet.tree("a"), "HEAD"));
    assert_eq!(Some(text(&handoff["base"]).to_owned()), fleet.at(&fleet.tree("a"), "HEAD~1"));
    assert_eq!(
        (&handoff["tests_run"][0]["command"], &handoff["tests_run"][0]["verdict"]),
        (&json!("test -f src/f"), &json!("passed"))
    );
    let markdown = site.run(&["handoff", "T-2", "--show"]).stdout;
    for part in [
        "# Handoff of T-2",
        "**Lane**: none",
        "**Next slice**: tests",
        "> half done",
        "`test -f src/f`",
        "passed",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    site.assert_sound();
}

#[test]
fn release_and_block_leave_one_and_the_next_holder_begins_with_it() {
    let fleet = at_work();
    let site = &fleet.site;
    site.ok(&["block", "T-2", "--as", "@a", "--on", "person:@ada-lovelace", "--next", "ask her"]);
    let handoff = shown(&fleet, "T-2");
    assert_eq!((&handoff["status"], &handoff["next_slice"]), (&json!("blocked"), &json!("ask her")));
    assert_eq!(handoff["blockers"], json!(["person:@ada-lovelace"]));
    site.ok(&["unblock", "T-2", "--as", "@a"]);
    assert_eq!(site.ok(&["show", "T-2"])["handoff"], Value::Null, "its own handoff tells the holder nothing");
    // The same request twice is one release, although the document has another time.
    let release = ["release", "T-2", "--as", "@a", "--note", "see the branch", "--request-id", "r-1"];
    site.ok(&release);
    site.ok(&release);
    let other =
        site.run(&["release", "T-2", "--as", "@a", "--note", "other", "--request-id", "r-1", "--json"]);
    assert_eq!(other.code(), "request_conflict");
    let handoff = shown(&fleet, "T-2");
    assert_eq!((&handoff["status"], &handoff["summary"]), (&json!("released"), &json!("see the branch")));
    fleet.claim("T-2", "b");
    let story = site.run(&["show", "T-2"]).stdout;
    let told = "last handoff\n  @a gave it back, in ws-a · 1 commit";
    let (at, notes) = (story.find(told), story.find("who had it"));
    assert!(at.is_some() && at < notes, "{story}");
    assert!(story.contains("see the branch") && story.contains("onus handoff T-2 --show"), "{story}");
    assert!(site.run(&["show", "T-2", "-v"]).stdout.contains("# Handoff of T-2"));
    // Without any word the generated part suffices.
    site.ok(&["release", "T-2", "--as", "@b"]);
    assert_eq!(shown(&fleet, "T-2")["by"], "@b");
    site.assert_sound();
}

#[test]
fn only_the_holder_hands_on() {
    let fleet = at_work();
    for (args, code) in [
        (&["handoff", "T-2", "--as", "@b"][..], "lease_required"),
        (&["handoff", "T-1", "--as", "@a"], "lease_required"),
        (&["handoff", "T-9", "--as", "@a"], "unknown_task"),
        (&["handoff", "T-1", "--show"], "unknown_name"),
        (&["handoff", "T-2", "--as", "@a", "--risk", "a\u{7}", "--next", " "], "invalid_input"),
    ] {
        let answer = fleet.site.run(&[args, &["--json"]].concat());
        assert_eq!(answer.code(), code, "{args:?}: {answer:?}");
    }
    fleet.site.assert_sound();
}

#[test]
fn stale_tells_what_a_takeover_would_keep() {
    let fleet = at_work();
    let site = &fleet.site;
    site.ok(&["renew", "T-2", "--as", "@a", "--ttl", "1ms"]);
    let left = site.ok(&["stale"])["stale"][0]["left"].clone();
    let wanted =
        [("directory_exists", json!(true)), ("dirty_files", json!(1)), ("commits_not_in_main", json!(1))];
    for (name, value) in wanted {
        assert_eq!(left[name], value, "{left}");
    }
    assert_eq!(left["salvage_refs"], json!([]));
    let take = ["takeover", "T-2", "--workstation", "ws-b", "--force", "--reason", "test", "--ttl", "1ms"];
    site.by_person(&take);
    let handoff = shown(&fleet, "T-2");
    assert_eq!((&handoff["status"], &handoff["by"]), (&json!("taken_over"), &json!("@a")), "{handoff}");
    assert_eq!(handoff["salvage"], "refs/onus/salvage/T-2/1");
    assert_eq!(handoff["files"], json!(["src/f"]));
    let left = site.ok(&["stale"])["stale"][0]["left"].clone();
    assert_eq!(left["salvage_refs"], json!(["refs/onus/salvage/T-2/1"]));
    assert!(site.run(&["stale"]).stdout.contains("kept earlier"));
    site.assert_sound();
}

/// After a sync the branch has other people's commits as well: they are not the holder's work.
#[test]
fn a_handoff_lists_only_its_holders_commits() {
    let fleet = at_work();
    let site = &fleet.site;
    std::fs::remove_file(fleet.tree("a").join("g\u{202e}")).unwrap();
    for path in ["by-a-person", "by-another"] {
        site.commit(&site.repo(), path, "1", &[]);
    }
    let synced = site.command(&["workstation", "sync", "ws-a", "--as", "@a", "--json"]);
    let synced = crate::support::finish(crate::support::start({ synced }.current_dir(fleet.tree("a"))));
    assert_eq!(synced.exit, Some(0), "{synced:#?}");
    site.ok(&["release", "T-2", "--as", "@a", "--note", "half done"]);
    let handoff = shown(&fleet, "T-2");
    let subjects: Vec<&str> =
        handoff["commits"].as_array().unwrap().iter().map(|commit| text(&commit["subject"])).collect();
    assert_eq!(subjects, ["change src/f"], "{handoff:#}");
    assert_eq!(handoff["files"], json!(["src/f"]));
}
