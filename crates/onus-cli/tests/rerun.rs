//! `onus rerun`: the same identity, workstation and commit, and nothing lost on the way.

use crate::support::{Bench, Site, text};

/// A task that an agent has completed and merged, and the commit at which it began.
fn done() -> (Site, Bench, String, String) {
    let site = Site::new();
    let bench = site.bench("one");
    let asked = site.by_person(&["add", "build it", "--scope", "src/**", "--tag", "x", "--body", "words"]);
    let task = text(&asked["task"]["id"]).to_owned();
    let base = site.main();
    bench.work(&site, &task, "src/a", "one\n");
    bench.ok(&site, &["merge", &task]);
    bench.ok(&site, &["complete", &task, "--resolution", "done"]);
    (site, bench, task, base)
}

fn refused(site: &Site, args: &[&str]) -> serde_json::Value {
    site.run(&[args, &["--as", &site.person, "--json"]].concat()).error()
}

#[test]
fn the_same_worker_does_it_again_where_and_whence_it_did() {
    let (site, bench, task, base) = done();
    let again = site.by_person(&["rerun", &task, "--reason", "flaky result"]);
    let (new, held) = (&again["task"], &again["assignment"]);
    assert_eq!(text(&new["title"]), format!("Rerun of {task}: build it"));
    assert_eq!(text(&new["origin_ask_ref"]), format!("rerun:{task}/1"));
    let spec = ["body", "scope", "tags", "kind", "priority"];
    let original = site.task(&task);
    assert!(spec.iter().all(|field| new[field] == original[field]), "{new}\n{original}");
    assert_eq!(
        [text(&held["assignee"]), text(&held["workstation"]), text(&held["base"])],
        ["@one", "ws-one", &base]
    );
    assert_eq!(site.git_in(&bench.dir, &["rev-parse", "HEAD"]), base);
    assert!(!bench.dir.join("src/a").exists());
    let notes = site.ok(&["show", text(&new["id"])]);
    assert_eq!(text(&notes["notes"][0]["text"]), "flaky result");
    // The worker finds its lease in its own workstation.
    let id = text(&new["id"]);
    bench.ok(&site, &["renew", id]);
    bench.ok(&site, &["complete", id, "--resolution", "same result"]);
    // Once more, of the original.
    let third = site.by_person(&["rerun", &task]);
    assert_eq!(text(&third["task"]["origin_ask_ref"]), format!("rerun:{task}/2"));
    site.assert_sound();
}

#[test]
fn a_repeated_call_reruns_once() {
    let (site, _, task, _) = done();
    let first = site.by_person(&["rerun", &task, "--request-id", "r1"]);
    let second = site.by_person(&["rerun", &task, "--request-id", "r1"]);
    assert_eq!(
        (&first["task"]["id"], &first["lease"]["token"]),
        (&second["task"]["id"], &second["lease"]["token"])
    );
    assert_eq!(site.tasks().len(), 2);
}

#[test]
fn uncommitted_work_stays() {
    let (site, bench, task, _) = done();
    let head = site.git_in(&bench.dir, &["rev-parse", "HEAD"]);
    std::fs::write(bench.dir.join("draft"), "mine\n").unwrap();
    assert_eq!(refused(&site, &["rerun", &task])["code"], "workstation_not_ready");
    assert_eq!(std::fs::read_to_string(bench.dir.join("draft")).unwrap(), "mine\n");
    assert_eq!(site.git_in(&bench.dir, &["rev-parse", "HEAD"]), head);
}

#[test]
fn commits_on_no_branch_stay() {
    let (site, bench, task, _) = done();
    site.git_in(&bench.dir, &["switch", "--quiet", "--detach"]);
    let loose = site.commit(&bench.dir, "loose", "x", &[]);
    let error = refused(&site, &["rerun", &task]);
    assert_eq!(error["code"], "workstation_not_ready");
    assert!(text(&error["detail"]).contains("on no branch"), "{error}");
    assert_eq!(site.git_in(&bench.dir, &["rev-parse", "HEAD"]), loose);
    site.git_in(&bench.dir, &["branch", "kept"]);
    site.by_person(&["rerun", &task]);
}

#[test]
fn a_branch_with_unmerged_work_keeps_it() {
    let (site, bench, task, base) = done();
    let ahead = site.commit(&bench.dir, "more", "x", &[]);
    site.by_person(&["rerun", &task]);
    assert_eq!(site.git_in(&bench.dir, &["rev-parse", "HEAD"]), base);
    assert_eq!(site.git_in(&bench.dir, &["rev-parse", &bench.branch]), ahead);
}

#[test]
fn what_is_gone_or_busy_is_named() {
    let (site, bench, task, _) = done();
    assert_eq!(bench.run(&site, &["rerun", &task]).code(), "human_required");
    assert_eq!(refused(&site, &["rerun", "T-99"])["code"], "unknown_task");
    let open = site.add("never done");
    assert_eq!(refused(&site, &["rerun", &open])["code"], "wrong_state");
    bench.claim(&site, &open);
    assert_eq!(refused(&site, &["rerun", &task])["code"], "workstation_busy");
    bench.ok(&site, &["release", &open]);
    site.by_person(&["workstation", "quarantine", "ws-one", "--reason", "x"]);
    assert_eq!(refused(&site, &["rerun", &task])["code"], "workstation_quarantined");
    site.by_person(&["workstation", "restore", "ws-one"]);
    site.by_person(&["workstation", "remove", "ws-one"]);
    assert_eq!(refused(&site, &["rerun", &task])["code"], "workstation_not_ready");
    assert_eq!(site.tasks().len(), 2, "nothing was asked for");
}

#[test]
fn work_outside_a_working_tree_has_no_commit_to_go_back_to() {
    let site = Site::new();
    let agent = &site.agents(1)[0];
    let task = site.add("elsewhere");
    for args in [
        &["claim", &task, "--workstation", &agent.workstation][..],
        &["complete", &task, "--resolution", "x"],
    ] {
        site.ok(&[args, &["--as", &agent.handle]].concat());
    }
    let error = refused(&site, &["rerun", &task]);
    let codes: Vec<&str> = error["findings"].as_array().unwrap().iter().map(|f| text(&f["code"])).collect();
    assert_eq!(codes, ["workstation_not_ready", "unknown_name"]);
}

/// The map no longer names this worker: its rerun is refused like any grant, and the tree goes back.
#[test]
fn a_refused_grant_leaves_the_tree_as_it_was() {
    let (site, bench, task, base) = done();
    let map = "routing:\n  - task_type: \"*\"\n    agent_name: \"@other\"\n    workstation: ws-other\n";
    std::fs::write(site.repo().join("executor-identity-map.yaml"), map).unwrap();
    let head = site.git_in(&bench.dir, &["rev-parse", "HEAD"]);
    let error = refused(&site, &["rerun", &task]);
    assert_eq!(error["code"], "routing_denied");
    assert_eq!(text(&error["task"]), "T-2");
    assert_eq!(site.git_in(&bench.dir, &["rev-parse", "HEAD"]), head);
    assert_eq!(site.git_in(&bench.dir, &["branch", "--show-current"]), bench.branch);
    std::fs::remove_file(site.repo().join("executor-identity-map.yaml")).unwrap();
    // The task that was asked for is the one that is given out.
    let again = site.by_person(&["rerun", &task]);
    assert_eq!((text(&again["task"]["id"]), text(&again["assignment"]["base"])), ("T-2", base.as_str()));
}

#[test]
fn a_place_that_was_made_for_the_task_is_made_again() {
    let site = Site::new();
    site.by_person(&["worker", "add", "@one", "--kind", "agent"]);
    let once = ["workstation", "add", "ws-once", "--kind", "worktree", "--lifecycle", "single-task"];
    let made = site.by_person(&once);
    let dir = std::path::PathBuf::from(text(&made["workstation"]["path"]));
    let task = site.add("build it");
    let base = site.main();
    let lease = site.ok(&["claim", &task, "--as", "@one", "--workstation", "ws-once"]);
    let end = |task: &str, lease: &str| {
        site.ok(&["complete", task, "--as", "@one", "--lease", lease, "--resolution", "done"]);
        let shown = site.ok(&["workstation", "show", "ws-once"]);
        assert_eq!(shown["workstations"][0]["state"], "retired");
    };
    end(&task, text(&lease["lease"]["token"]));
    let again = || {
        let again = site.by_person(&["rerun", &task]);
        let held = &again["assignment"];
        assert_eq!([text(&held["workstation"]), text(&held["base"])], ["ws-once", &base]);
        assert_eq!(site.git_in(&dir, &["rev-parse", "HEAD"]), base);
        let shown = site.ok(&["workstation", "show", "ws-once"]);
        assert_eq!(shown["workstations"][0]["lifecycle"], "single-task");
        end(text(&again["task"]["id"]), text(&again["lease"]["token"]));
    };
    // Its directory is still there, was left behind by the rerun, and is gone.
    again();
    again();
    site.by_person(&["workstation", "remove", "ws-once"]);
    assert!(!dir.exists());
    again();
    // What a person has retired stays retired.
    site.by_person(&["workstation", "add", "ws-kept", "--kind", "worktree"]);
    let other = site.add("another");
    let lease = site.ok(&["claim", &other, "--as", "@one", "--workstation", "ws-kept"]);
    let lease = text(&lease["lease"]["token"]);
    site.ok(&["complete", &other, "--as", "@one", "--lease", lease, "--resolution", "done"]);
    site.by_person(&["workstation", "retire", "ws-kept"]);
    assert_eq!(refused(&site, &["rerun", &other])["code"], "workstation_not_ready");
    site.assert_sound();
}
