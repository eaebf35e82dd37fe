//! `onus consistency`: each way in which git and the queue can disagree, made and found.

use crate::support::server::Server;
use crate::support::{Bench, Site, finish, start, text};

/// What it reports, one line each: code and detail.
fn found(site: &Site, args: &[&str]) -> Vec<String> {
    let answer = site.run(&[&["consistency"], args, &["--json"]].concat());
    if answer.is_ok() {
        return Vec::new();
    }
    let error = answer.error();
    assert_eq!((answer.exit, text(&error["code"])), (Some(5), "queue_invalid"));
    let line = |finding: &serde_json::Value| {
        assert!(!text(&finding["hint"]).is_empty(), "no next step: {finding}");
        assert!(!text(&finding["kind"]).is_empty(), "no kind: {finding}");
        assert!(finding["task"].is_string() || finding["path"].is_string(), "about nothing: {finding}");
        format!("{}: {}", text(&finding["code"]), text(&finding["detail"]))
    };
    error["findings"].as_array().unwrap().iter().map(line).collect()
}

/// The findings without the one about hooks, which every repository without them has.
fn besides_hooks(site: &Site) -> Vec<String> {
    let mut all = found(site, &[]);
    all.retain(|line| !line.contains("git does not ask onus"));
    all
}

/// One finding with this code and all of these words.
fn assert_one(found: &[String], code: &str, words: &[&str]) {
    let fits = |line: &&String| line.starts_with(code) && words.iter().all(|words| line.contains(words));
    assert_eq!(found.iter().filter(fits).count(), 1, "{code} {words:?} in {found:#?}");
}

fn done(site: &Site, bench: &Bench, path: &str) -> String {
    let task = site.add(path);
    bench.work(site, &task, path, "x\n");
    bench.ok(site, &["merge", &task]);
    bench.ok(site, &["complete", &task, "--resolution", "done"]);
    task
}

#[test]
fn a_repository_in_order_passes() {
    let site = Site::new();
    let bench = site.bench("one");
    done(&site, &bench, "a");
    // Work under way, and a merge whose completion is still to come, are no disagreement.
    let going_on = site.add("going on");
    bench.work(&site, &going_on, "b", "x\n");
    bench.ok(&site, &["merge", &going_on]);
    site.commit(&bench.dir, "c", "x\n", &[]);
    site.by_person(&["hook", "install"]);
    let view = site.ok(&["consistency"]);
    assert_eq!(view["counts"]["findings"], 0, "{view}");
    assert_eq!(view["counts"]["commits"], 3);
}

#[test]
fn commits_that_say_what_was_never_granted() {
    let site = Site::new();
    let bench = site.bench("one");
    let task = done(&site, &bench, "a");
    let open = site.add("open");
    let commit = |name: &str, trailers: &[&str]| site.commit(&site.repo(), name, "x", trailers);
    commit("b", &["Onus-Task: T-99"]);
    commit("c", &["Onus-Task: T-99"]);
    commit("d", &["Onus-Task: no task"]);
    commit("e", &[&format!("Onus-Task: {open}")]);
    commit("f", &[&format!("Onus-Task: {task}"), "Onus-Agent: @one", "Onus-Epoch: 7"]);
    commit("g", &[&format!("Onus-Task: {task}"), "Onus-Agent: @two", "Onus-Epoch: 1"]);
    commit("h", &[&format!("Onus-Task: {task}"), "Onus-Agent: @three"]);
    commit("i", &["nothing of ours"]);
    let found = besides_hooks(&site);
    assert_one(&found, "unknown_task", &["T-99", "(and 1 more)"]);
    assert_one(&found, "unknown_task", &["no task`"]);
    assert_one(&found, "wrong_state", &[&open, "open and nobody holds it"]);
    assert_one(&found, "fenced", &["the epoch `7`", &task]);
    assert_one(&found, "fenced", &["`@two`", "held by @one in epoch 1"]);
    assert_one(&found, "fenced", &["`@three`", "never given"]);
    assert_eq!(found.len(), 6, "{found:#?}");
}

/// Two clones on one machine and one store: the working tree of the other one is not gone.
#[test]
fn another_clones_worktree_is_there() {
    let site = Site::new();
    let bench = site.bench("one");
    done(&site, &bench, "a");
    let (second, store) = (site.root().join("second"), site.store_url());
    site.git(&["clone", "--quiet", ".", "../second"]);
    site.git_in(&second, &["config", "user.name", "Ada Lovelace"]);
    site.git_in(&second, &["config", "user.email", "ada@example.org"]);
    let there = |args: &[&str]| {
        let args = [args, &["--store", &store, "--as", &site.person, "--json"]].concat();
        let answer = finish(start(site.command(&args).current_dir(&second)));
        assert_eq!(answer.exit, Some(0), "{args:?}: {answer:?}");
    };
    there(&["init", "--no-hooks"]);
    there(&["workstation", "add", "ws-two", "--kind", "worktree"]);
    let task = site.add("there");
    there(&["claim", &task, "--workstation", "ws-two"]);
    there(&["release", &task]);
    let found = besides_hooks(&site);
    assert!(!found.iter().any(|line| line.contains("ws-two")), "{found:#?}");
    std::fs::remove_dir_all(site.root().join("second-ws-two")).unwrap();
    assert_one(&besides_hooks(&site), "workstation_not_ready", &["ws-two"]);
}

/// A clone that only asks: with the store's address, or with a file that was exported.
#[test]
fn a_clone_of_ci_needs_no_store_of_its_own() {
    let site = Site::new();
    let bench = site.bench("one");
    let task = done(&site, &bench, "a");
    let (ci, queue) = (site.root().join("ci"), site.root().join("queue.json"));
    site.git(&["clone", "--quiet", ".", "../ci"]);
    // As CI has it: a server's address, and a token that asks and reads only.
    let server = Server::start(&site);
    let service = site.by_person(&["worker", "token", "add", "--kind", "service"]);
    let secret = text(&service["secret"]).to_owned();
    let there = |args: &[&str]| {
        let mut onus = std::process::Command::new(crate::support::ONUS);
        site.surroundings(&mut onus).env_remove("ONUS_STORE").current_dir(&ci);
        onus.envs(args.contains(&server.url.as_str()).then_some(("ONUS_TOKEN", &secret)));
        finish(start(onus.args([&["consistency", "--json"], args].concat())))
    };
    let said = there(&[]);
    assert_eq!((said.exit, said.code()), (Some(69), "store_unavailable".to_owned()));
    assert!(said.stderr.contains("--queue"), "{said:?}");
    assert!(site.run(&["export", "--format", "consistency", queue.to_str().unwrap()]).is_ok());
    let text_of = std::fs::read_to_string(&queue).unwrap();
    assert!(!text_of.contains("lease"), "no secrets: {text_of}");
    let (file, store) = (queue.to_str().unwrap(), site.store_url());
    for how in [["--queue", file], ["--store", &store], ["--store", &server.url]] {
        let said = there(&how);
        assert_eq!(said.exit, Some(0), "{how:?}: {said:?}");
        assert_eq!(said.json()["counts"]["commits"], 2, "{how:?}");
    }
    site.git_in(&ci, &["config", "user.name", "Eve"]);
    site.git_in(&ci, &["config", "user.email", "eve@example.org"]);
    site.commit(&ci, "b", "x", &[&format!("Onus-Task: {task}"), "Onus-Agent: @one", "Onus-Epoch: 1"]);
    for how in [["--queue", file], ["--store", &store], ["--store", &server.url]] {
        let said = there(&how);
        assert_eq!((said.exit, said.code()), (Some(5), "queue_invalid".to_owned()), "{how:?}: {said:?}");
        assert!(said.stderr.contains("commit_not_landed"), "{how:?}: {said:?}");
    }
    // What CI checks out is on no branch as a rule.
    site.git_in(&ci, &["checkout", "--quiet", "--detach", "origin/main"]);
    site.git_in(&ci, &["branch", "--quiet", "-D", "main"]);
    for how in [["--queue", file], ["--store", &server.url]] {
        let said = there(&how);
        assert_eq!(said.exit, Some(0), "{how:?}: {said:?}");
    }
    std::fs::write(&queue, "{").unwrap();
    assert_eq!(there(&["--queue", file]).exit, Some(2));
}

/// Who held what is history from elsewhere was not granted here.
#[test]
fn imported_history_is_believed() {
    let site = Site::new();
    site.import("{\"title\":\"old\",\"state\":\"complete\"}\n".to_owned());
    site.commit(&site.repo(), "a", "x", &["Onus-Task: T-1", "Onus-Agent: @past", "Onus-Epoch: 4"]);
    assert!(found(&site, &[]).is_empty());
}

#[test]
fn complete_means_merged() {
    let site = Site::new();
    // By this policy a task may be complete before its work is merged.
    std::fs::write(site.repo().join("onus.yaml"), "complete:\n  merged: off\n").unwrap();
    let (bench, other) = (site.bench("one"), site.bench("two"));
    let (lost, picked) = (site.add("lost"), site.add("picked"));
    bench.work(&site, &lost, "a", "x\n");
    let commit = other.work(&site, &picked, "b", "x\n");
    for (bench, task) in [(&bench, &lost), (&other, &picked)] {
        bench.ok(&site, &["complete", task, "--resolution", "done"]);
    }
    // The same patch under another id has arrived.
    site.commit(&site.repo(), "c", "x", &[]);
    site.git(&["cherry-pick", &commit]);
    let found = besides_hooks(&site);
    assert_one(&found, "not_merged", &[&lost, "is complete", &bench.branch]);
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn branches_keep_no_work_of_ended_assignments() {
    let site = Site::new();
    let bench = site.bench("one");
    let (first, second) = (site.add("first"), site.add("second"));
    bench.work(&site, &first, "a", "x\n");
    assert!(besides_hooks(&site).is_empty());
    bench.ok(&site, &["release", &first]);
    assert_one(&besides_hooks(&site), "not_merged", &[&bench.branch, &first, "not held there"]);
    // Who works there next begins clean; the old work is kept.
    bench.work(&site, &second, "b", "x\n");
    assert!(besides_hooks(&site).is_empty());
    site.git_in(&site.repo(), &["rev-parse", "--verify", &format!("refs/onus/salvage/{first}/1")]);
}

#[test]
fn a_commit_without_a_trailer_is_of_who_worked_there_last() {
    let site = Site::new();
    // By this policy a task may be complete before its work is merged.
    std::fs::write(site.repo().join("onus.yaml"), "complete:\n  merged: off\n").unwrap();
    let bench = site.bench("one");
    let task = site.add("bare");
    bench.claim(&site, &task);
    site.commit(&bench.dir, "a", "x", &[]);
    assert!(besides_hooks(&site).is_empty());
    bench.ok(&site, &["complete", &task, "--resolution", "done"]);
    assert_one(&besides_hooks(&site), "not_merged", &[&task, "is complete"]);
}

#[test]
fn forgotten_tasks_are_named() {
    let site = Site::new();
    let (silent, gone) = (site.bench("one"), site.bench("two"));
    let (first, second, third) = (site.add("first"), site.add("second"), site.add("third"));
    std::fs::write(site.repo().join("onus.yaml"), "lease:\n  grace: 1ms\n").unwrap();
    silent.ok(&site, &["claim", &first, "--ttl", "1ms"]);
    gone.claim(&site, &second);
    let living = site.bench("three");
    living.claim(&site, &third);
    std::fs::remove_dir_all(&gone.dir).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let found = besides_hooks(&site);
    assert_one(&found, "queue_invalid", &[&first, "@one", "ran out"]);
    assert_one(&found, "queue_invalid", &[&second, "@two", "is gone"]);
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn worktrees_workstations_salvage_and_hooks_belong_together() {
    let site = Site::new();
    let bench = site.bench("one");
    site.git(&["worktree", "add", "--quiet", "-b", "stray", "../stray"]);
    site.git(&["update-ref", "refs/onus/salvage/T-99/1", "HEAD"]);
    let task = site.add("known");
    site.git(&["update-ref", &format!("refs/onus/salvage/{task}/1"), "HEAD"]);
    std::fs::remove_dir_all(&bench.dir).unwrap();
    let found = found(&site, &[]);
    assert_one(&found, "workstation_unknown", &["stray"]);
    assert_one(&found, "workstation_not_ready", &["ws-one"]);
    assert_one(&found, "unknown_task", &["refs/onus/salvage/T-99/1"]);
    assert_one(&found, "queue_invalid", &["reference-transaction is missing", "pre-push is missing"]);
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn since_leaves_out_what_was_looked_at() {
    let site = Site::new();
    let seen = site.commit(&site.repo(), "a", "x", &["Onus-Task: T-98"]);
    site.commit(&site.repo(), "b", "x", &["Onus-Task: T-99"]);
    let found = found(&site, &["--since", &seen]);
    assert_one(&found, "unknown_task", &["T-99"]);
    assert_eq!(found.len(), 1, "{found:#?}");
    let unknown = site.run(&["consistency", "--since", "nowhere", "--json"]);
    assert_eq!(unknown.code(), "unknown_name");
}

#[test]
fn next_steps_alone_on_request() {
    let site = Site::new();
    site.bench("one");
    site.git(&["update-ref", "refs/onus/salvage/T-99/1", "HEAD"]);
    let answer = site.run(&["consistency", "--fix-hints"]);
    assert_eq!(answer.exit, Some(5));
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{answer:#?}");
    assert!(lines[0].contains("git update-ref -d refs/onus/salvage/T-99/1"));
    assert_eq!(lines[1], "onus hook install");
}
