//! `onus hook agent`: what a client is told around its tools, and that nobody else notices.

use crate::support::{Site, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// Exit code, standard output and standard error.
type Told = (Option<i32>, String, String);

fn hook(site: &Site, worker: &str, dir: &Path, event: &str, input: Value) -> Told {
    let mut input = input;
    input["cwd"] = json!(dir);
    input["session_id"] = json!("s-1");
    let mut command = site.command(&["hook", "agent", event]);
    if !worker.is_empty() {
        command.env("ONUS_AS", worker);
    }
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever is not asked about anything may leave before it has read all.
    drop(child.stdin.take().unwrap().write_all(input.to_string().as_bytes()));
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn edit(site: &Site, worker: &str, dir: &Path, path: &str) -> Told {
    let input = json!({ "tool_name": "Edit", "tool_input": { "file_path": path, "old_string": "a", "new_string": "b" } });
    hook(site, worker, dir, "pre-tool-use", input)
}

fn bash(site: &Site, worker: &str, dir: &Path, line: &str) -> Told {
    hook(site, worker, dir, "pre-tool-use", json!({ "tool_name": "Bash", "tool_input": { "command": line } }))
}

fn nothing() -> Told {
    (Some(0), String::new(), String::new())
}

/// A site with an agent, a worktree of its own and a task with a scope, claimed there.
fn at_work() -> (Site, String, std::path::PathBuf) {
    let site = Site::new();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    let made = site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let tree = std::path::PathBuf::from(text(&made["workstation"]["path"]));
    let task = text(&site.by_person(&["add", "a task", "--scope", "src/**"])["task"]["id"]).to_owned();
    site.ok(&["claim", &task, "--as", "@bot", "--workstation", "ws-1"]);
    (site, task, tree)
}

#[test]
fn whoever_uses_no_task_notices_nothing() {
    let site = Site::new();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    let repo = site.repo();
    for worker in ["", "@bot", "@nobody", "not a handle"] {
        for event in ["pre-tool-use", "post-tool-use", "stop", "session-end", "no-such-event"] {
            let input = json!({ "tool_name": "Write", "tool_input": { "file_path": repo.join("x") } });
            assert_eq!(hook(&site, worker, &repo, event, input), nothing(), "{worker} {event}");
        }
    }
    // No store, no repository, no sense: still nothing.
    let empty = Site::empty();
    assert_eq!(edit(&empty, "@bot", &empty.repo(), "x"), nothing());
    assert_eq!(edit(&empty, "@bot", empty.root(), "x"), nothing());
    assert_eq!(hook(&site, "@bot", Path::new("/nowhere/at/all"), "stop", json!({})), nothing());
    assert_eq!(hook(&site, "@bot", &repo, "pre-tool-use", json!({ "tool_input": 7 })), nothing());
}

/// A guarded repository with two agents' worktrees and one task that nobody holds.
fn guarded() -> (Site, std::path::PathBuf, std::path::PathBuf) {
    let site = Site::guarded();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    site.by_person(&["worker", "add", "@other", "--kind", "agent"]);
    let tree = |name: &str| {
        let made = site.by_person(&["workstation", "add", name, "--kind", "worktree"]);
        std::path::PathBuf::from(text(&made["workstation"]["path"]))
    };
    let (one, two) = (tree("ws-1"), tree("ws-2"));
    site.add("a task");
    (site, one, two)
}

#[test]
fn an_agent_that_holds_nothing_writes_nothing_and_is_told_its_claim() {
    let (site, tree, _) = guarded();
    let repo = site.repo();
    site.git(&["worktree", "add", "--quiet", "-b", "aside", "../aside"]);
    let aside = site.root().join("aside");
    for dir in [&tree, &repo, &aside] {
        for worker in ["@bot", "", "@stranger"] {
            let lines = ["echo x >f", "sed -i s/a/b/ f", "git commit -am x", "cd . && git add f", "rm f"];
            let stopped = lines
                .iter()
                .map(|line| bash(&site, worker, dir, line))
                .chain([edit(&site, worker, dir, "f")]);
            for (code, _, why) in stopped {
                assert_eq!(code, Some(2), "{worker} in {dir:?}: {why}");
                assert!(!why.contains('\u{1b}'), "{why}");
                match worker {
                    "@bot" => {
                        assert!(why.contains("lease_required") && why.contains("onus claim T-1"), "{why}");
                    }
                    "" => assert!(why.contains("ONUS_AS") && why.contains("onus claim"), "{why}"),
                    _ => assert!(why.contains("unknown_worker"), "{why}"),
                }
            }
            for fine in [
                "ls",
                "git status",
                "onus claim T-1",
                "cargo test 2>&1",
                "echo x >/dev/null",
                "git branch -a",
            ] {
                assert_eq!(bash(&site, worker, dir, fine), nothing(), "{fine}");
            }
        }
        assert_eq!(edit(&site, &site.person, dir, "f"), nothing(), "a person");
    }
    let (_, _, why) = edit(&site, "@bot", &tree, "f");
    assert!(why.contains("onus claim T-1 --workstation ws-1"), "{why}");
    let notes = site.root().join("notes.md");
    assert_eq!(edit(&site, "@bot", &tree, notes.to_str().unwrap()), nothing(), "outside the repository");
    // With the claim that it was told to make it goes on.
    site.ok(&["claim", "T-1", "--as", "@bot", "--workstation", "ws-1"]);
    assert_eq!(edit(&site, "@bot", &tree, "f"), nothing());
    assert_eq!(bash(&site, "@bot", &tree, "echo x >f && git add f && git commit -m x"), nothing());
}

#[test]
fn nobody_writes_in_anothers_workstation() {
    let (site, one, two) = guarded();
    site.ok(&["claim", "T-1", "--as", "@bot", "--workstation", "ws-1"]);
    let there = two.join("f");
    let line = format!("cd {} && touch f", two.display());
    for told in [edit(&site, "@bot", &one, there.to_str().unwrap()), bash(&site, "@bot", &one, &line)] {
        assert_eq!(told.0, Some(2), "{told:?}");
        assert!(told.2.contains("not_permitted") && told.2.contains("ws-2"), "{}", told.2);
    }
    let there = one.join("f");
    let (code, _, why) = edit(&site, "@other", &two, there.to_str().unwrap());
    assert_eq!(code, Some(2));
    assert!(why.contains("@bot works on T-1"), "{why}");
}

/// The next task was claimed through a server: no lease file of it lies here, and the old one is history.
#[test]
fn an_old_lease_does_not_stop_the_next_task() {
    let (site, tree, _) = guarded();
    let next = site.add("the next one");
    site.ok(&["claim", "T-1", "--as", "@bot", "--workstation", "ws-1"]);
    site.by_person(&["release", "T-1", "--force", "--reason", "by the board"]);
    let (code, _, why) = edit(&site, "@bot", &tree, "f");
    assert_eq!(code, Some(2));
    assert!(why.contains("fenced"), "{why}");
    let leases = site.repo().join(".git/worktrees/repo-ws-1/onus/lease");
    let old = std::fs::read(leases.join("T-1.bot")).unwrap();
    site.ok(&["claim", &next, "--as", "@bot", "--workstation", "ws-1"]);
    std::fs::remove_file(leases.join(format!("{next}.bot"))).unwrap();
    std::fs::write(leases.join("T-1.bot"), old).unwrap();
    assert_eq!(edit(&site, "@bot", &tree, "f"), nothing());
}

#[test]
fn a_session_begins_with_what_the_agent_needs_to_know() {
    let (site, task, tree) = at_work();
    let (code, told, _) = hook(&site, "@bot", &tree, "session-start", json!({ "source": "startup" }));
    assert_eq!(code, Some(0));
    assert!(told.starts_with("You are @bot (agent") && told.contains(&task), "{told}");
    assert_eq!(hook(&site, "", &tree, "session-start", json!({})), nothing());
}

#[test]
fn files_outside_the_scope_or_the_workstation_are_not_edited() {
    let (site, task, tree) = at_work();
    std::fs::create_dir_all(tree.join("src")).unwrap();
    for fine in [tree.join("src/new/a.rs"), tree.join("src/b.rs"), std::env::temp_dir().join("notes.md")] {
        assert_eq!(edit(&site, "@bot", &tree, fine.to_str().unwrap()), nothing(), "{fine:?}");
    }
    assert_eq!(edit(&site, "@bot", &tree, "src/relative.rs"), nothing());
    for outside in ["README.md", "src/../Cargo.toml"] {
        let (code, _, why) = edit(&site, "@bot", &tree, outside);
        assert_eq!(code, Some(2), "{outside}");
        assert!(why.contains("scope_violation"), "{why}");
    }
    let (code, _, why) = edit(&site, "@bot", &tree, site.repo().join("src/x.rs").to_str().unwrap());
    assert_eq!(code, Some(2));
    assert!(why.contains("ws-1") && why.contains(&task), "{why}");
    // Somebody else in the same place is not this worker.
    assert_eq!(edit(&site, "@nobody", &tree, "README.md"), nothing());
    assert_eq!(bash(&site, "@bot", &tree, "cargo test"), nothing());
}

#[test]
fn a_lost_lease_stops_edits_and_commits() {
    let (site, task, tree) = at_work();
    assert_eq!(bash(&site, "@bot", &tree, "git commit -am x"), nothing());
    site.by_person(&["workstation", "add", "ws-2"]);
    site.by_person(&["takeover", &task, "--workstation", "ws-2", "--force", "--reason", "urgent"]);
    for told in
        [bash(&site, "@bot", &tree, "cd x && git commit -am x"), edit(&site, "@bot", &tree, "src/a.rs")]
    {
        assert_eq!(told.0, Some(2), "{told:?}");
        assert!(told.2.contains("fenced") && told.2.contains(&site.person), "{}", told.2);
    }
    assert_eq!(bash(&site, "@bot", &tree, "git status"), nothing());
    // With other work in hand the old lease is history.
    let other = text(&site.by_person(&["add", "another"])["task"]["id"]).to_owned();
    site.ok(&["claim", &other, "--as", "@bot", "--workstation", "ws-1"]);
    assert_eq!(edit(&site, "@bot", &tree, "src/a.rs"), nothing());
}

#[test]
fn a_lease_is_renewed_when_a_third_of_it_is_over() {
    let (site, task, tree) = at_work();
    let renewals = || site.ok(&["show", &task])["task"]["assignment"]["renewals"].clone();
    let after = || hook(&site, "@bot", &tree, "post-tool-use", json!({ "tool_name": "Edit" }));
    assert_eq!((after(), renewals()), (nothing(), json!(0)), "it is fresh");
    // A lease so short that a third of it is over by now.
    site.ok(&["renew", &task, "--as", "@bot", "--ttl", "30ms"]);
    std::thread::sleep(std::time::Duration::from_millis(40));
    assert_eq!((after(), renewals()), (nothing(), json!(2)));
}

#[test]
fn an_agent_does_not_stop_while_it_holds_a_task() {
    let (site, task, tree) = at_work();
    let stop = |active: bool| hook(&site, "@bot", &tree, "stop", json!({ "stop_hook_active": active }));
    let (code, _, why) = stop(false);
    assert_eq!(code, Some(2));
    assert!(why.contains(&format!("you still hold {task}")), "{why}");
    assert_eq!(stop(true), nothing(), "once is enough");
    site.ok(&["block", &task, "--as", "@bot", "--on", "external:rain"]);
    assert_eq!(stop(false), nothing(), "it said what it waits for");
}

#[test]
fn a_closed_client_is_not_paid() {
    let (site, task, tree) = at_work();
    let running = || {
        let sessions = site.ok(&["show", &task])["sessions"].clone();
        sessions.as_array().unwrap().iter().filter(|session| session["ended_at"].is_null()).count()
    };
    assert_eq!(running(), 1);
    assert_eq!(hook(&site, "@bot", &tree, "session-end", json!({ "reason": "exit" })), nothing());
    assert_eq!(running(), 0);
    assert_eq!(text(&site.ok(&["show", &task])["task"]["assignment"]["assignee"]), "@bot", "the lease stays");
    hook(&site, "@bot", &tree, "session-start", json!({}));
    assert_eq!(running(), 1);
    site.assert_sound();
}
