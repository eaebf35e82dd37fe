//! `onus merge` on real repositories: in which order, within which paths, over which checks, and by whom.

use crate::support::{Answer, Bench, Site, at_once, text};
use serde_json::Value;

fn detail(answer: &Answer) -> String {
    let error = answer.error();
    let findings = error["findings"].as_array().cloned().unwrap_or_default();
    let details: Vec<&str> = findings.iter().filter_map(|finding| finding["detail"].as_str()).collect();
    format!("{}\n{}", text(&error["detail"]), details.join("\n"))
}

fn ask(site: &Site, args: &[&str]) -> String {
    text(&site.by_person(&[&["add"], args].concat())["task"]["id"]).to_owned()
}

/// A repository with a task, held by an agent that has committed one file for it.
fn worked(path: &str, asked: &[&str]) -> (Site, Bench, String, String) {
    let site = Site::new();
    let bench = site.bench("one");
    let task = ask(&site, &[&["work"], asked].concat());
    let commit = bench.work(&site, &task, path, "one\n");
    (site, bench, task, commit)
}

/// A client that lost its patience and began again, while its first call still went on.
#[test]
fn who_completes_twice_at_once_is_told_the_same_twice() {
    let (site, bench, task, commit) = worked("a", &["--check", "sleep 1 && test -f a"]);
    let args = ["complete", &task, "--resolution", "done", "--as", &bench.agent.handle, "--json"];
    let complete = || {
        let mut command = site.command(&args);
        command.current_dir(&bench.dir);
        command
    };
    let answers = at_once([complete(), complete()].into_iter());
    for answer in &answers {
        assert_eq!(answer.exit, Some(0), "{answer:#?}");
        assert_eq!(answer.json()["landed"]["commits"], serde_json::json!([commit]));
    }
    assert_eq!(site.ledger().iter().filter(|entry| entry["verb"] == "completed").count(), 1);
    site.assert_sound();
}

#[test]
fn the_work_enters_main_after_its_checks() {
    let (site, bench, task, commit) =
        worked("src/a.rs", &["--check", "test -f src/a.rs", "--check", "test -d ."]);
    let start = site.main();
    let merged = bench.ok(&site, &["merge", &task]);
    assert_eq!(
        [text(&merged["task"]), text(&merged["commit"]), text(&merged["onto"])],
        [&task, &commit, &start]
    );
    let checks = merged["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2);
    assert_eq!((text(&checks[0]["command"]), &checks[0]["exit_code"]), ("test -f src/a.rs", &Value::from(0)));
    assert!(checks[0]["took_ms"].is_i64());
    assert_eq!(site.main(), commit);
    // The main checkout follows, and stays clean.
    assert!(site.repo().join("src/a.rs").exists());
    assert_eq!(site.git_in(&site.repo(), &["status", "--porcelain"]), "");
    let entry = site.ledger().into_iter().find(|entry| entry["verb"] == "merged").unwrap();
    assert_eq!(
        (text(&entry["data"]["commit"]), text(&entry["data"]["onto"])),
        (commit.as_str(), start.as_str())
    );
    site.assert_sound();
}

#[test]
fn a_repeated_call_answers_the_same_and_records_nothing() {
    let (site, bench, task, commit) = worked("a", &["--check", "test -d ."]);
    let first = bench.ok(&site, &["merge", &task, "--request-id", "m1"]);
    let entries = site.ledger().len();
    let again = bench.ok(&site, &["merge", &task, "--request-id", "m1"]);
    assert_eq!((&first["commit"], &first["onto"]), (&again["commit"], &again["onto"]));
    assert_eq!(text(&again["checks"][0]["command"]), "test -d .");
    assert_eq!((site.main(), site.ledger().len()), (commit, entries));
}

#[test]
fn work_on_an_older_main_is_rebased_first() {
    let (site, bench, task, commit) = worked("a", &[]);
    let newer = site.commit(&site.repo(), "b", "by a person\n", &[]);
    let merged = bench.ok(&site, &["merge", &task]);
    assert_ne!(text(&merged["commit"]), commit);
    assert_eq!(text(&merged["onto"]), newer);
    assert_eq!(site.git_in(&site.repo(), &["rev-parse", "main~1"]), newer);
    assert_eq!(site.git_in(&bench.dir, &["rev-parse", "HEAD"]), site.main());
}

#[test]
fn dependencies_and_earlier_slices_merge_first() {
    let site = Site::new();
    let (first, second) = (site.bench("one"), site.bench("two"));
    let parent = site.add("cross-cutting");
    let contract = ask(&site, &["contract", "--parent", &parent, "--merge-order", "1"]);
    let code = ask(&site, &["code", "--parent", &parent, "--merge-order", "2"]);
    second.work(&site, &code, "code", "x");
    let refused = second.run(&site, &["merge", &code]);
    assert_eq!(refused.code(), "dependency_incomplete");
    assert!(detail(&refused).contains(&format!("{contract} merges first")), "{refused:#?}");
    first.work(&site, &contract, "contract", "x");
    first.ok(&site, &["merge", &contract]);
    first.ok(&site, &["complete", &contract, "--resolution", "done"]);
    second.ok(&site, &["merge", &code]);
    site.assert_sound();
}

#[test]
fn an_exception_lets_work_start_and_not_overtake() {
    let site = Site::new();
    let (first, second) = (site.bench("one"), site.bench("two"));
    let base = site.add("base");
    let on_top = ask(&site, &["on top", "--depends-on", &base]);
    let why = ["--reason", "in a hurry", "--rollback", "drop it"];
    site.by_person(&[&["exception", "request", &on_top, "--on", &base], &why[..]].concat());
    site.by_person(&["exception", "approve", &on_top, "--on", &base]);
    second.work(&site, &on_top, "b", "x");
    first.work(&site, &base, "a", "x");
    let refused = second.run(&site, &["merge", &on_top]);
    assert_eq!(refused.code(), "dependency_incomplete");
    assert!(detail(&refused).contains(&format!("{base} merges first")), "{refused:#?}");
}

#[test]
fn a_failing_check_names_its_exit_code_and_the_end_of_its_output() {
    let failing = "echo first; echo the reason >&2; exit 3";
    let (site, bench, task, _) =
        worked("a", &["--check", "test -d .", "--check", failing, "--check", "exit 4"]);
    let start = site.main();
    let refused = bench.run(&site, &["merge", &task]);
    assert_eq!((refused.exit, refused.code().as_str()), (Some(7), "checks_failed"));
    let said = detail(&refused);
    assert!(said.contains("ended with 3") && said.contains("the reason"), "{said}");
    assert!(said.contains("ended with 4"), "all failures at once: {said}");
    assert_eq!(site.main(), start);
}

#[test]
fn a_check_sees_no_token() {
    let check = "test -z \"$ONUS_LEASE$ONUS_TOKEN\" && test -n \"$ONUS_TASK\"";
    let (site, bench, task, _) = worked("a", &["--check", check]);
    let lease = bench.dir.join(site.git_in(&bench.dir, &["rev-parse", "--git-dir"]));
    let lease = std::fs::read_to_string(lease.join(format!("onus/lease/{task}.one"))).unwrap();
    let args = ["merge", &task, "--as", "@one", "--json"];
    let answer = site.command(&args).env("ONUS_LEASE", lease.trim()).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
}

#[test]
fn a_check_that_nobody_approved_is_not_run() {
    let site = Site::new();
    let bench = site.bench("one");
    let marker = site.root().join("ran");
    let check = format!("touch {}", marker.display());
    let asked = bench.ok(&site, &["add", "by an agent", "--check", &check]);
    let task = text(&asked["task"]["id"]);
    bench.work(&site, task, "a", "x");
    assert_eq!(bench.run(&site, &["merge", task]).code(), "check_unapproved");
    assert!(!marker.exists());
}

#[test]
fn paths_outside_the_scope_stay_outside() {
    let (site, bench, task, _) = worked("docs/a.md", &["--scope", "src/**"]);
    let start = site.main();
    let refused = bench.run(&site, &["merge", &task]);
    assert_eq!(refused.code(), "scope_violation");
    assert!(detail(&refused).contains("docs/a.md"), "{refused:#?}");
    assert_eq!(site.main(), start);
}

#[test]
fn uncommitted_work_is_not_merged_over() {
    let (site, bench, task, _) = worked("a", &[]);
    std::fs::write(bench.dir.join("a"), "more\n").unwrap();
    let refused = bench.run(&site, &["merge", &task]);
    assert_eq!(refused.code(), "workstation_not_ready");
    assert_eq!(std::fs::read_to_string(bench.dir.join("a")).unwrap(), "more\n");
}

#[test]
fn only_the_holder_merges_and_only_what_it_holds() {
    let (site, bench, task, _) = worked("a", &[]);
    let other = site.bench("two");
    assert_eq!(other.run(&site, &["merge", &task]).code(), "lease_required");
    assert_eq!(bench.run(&site, &["merge", &site.add("open")]).code(), "lease_required");
    assert_eq!(bench.run(&site, &["merge", "T-999"]).code(), "unknown_task");
    let logical = ask(&site, &["no tree"]);
    site.by_person(&["workstation", "add", "ws-logical"]);
    site.by_person(&["claim", &logical, "--workstation", "ws-logical"]);
    let refused = site.run(&["merge", &logical, "--as", &site.person, "--json"]);
    assert_eq!(refused.code(), "workstation_not_ready");
}

#[test]
fn who_lost_the_lease_while_its_checks_ran_moves_nothing() {
    let site = Site::new();
    let bench = site.bench("one");
    let gone = site.root().join("gone");
    // The check itself is the moment at which a person takes the task away.
    let check = format!(
        "HOME={home} ONUS_KEY_DIR={keys} {onus} release T-1 --force --reason lost --as {person} --store {store} && touch {gone}",
        home = site.root().join("home").display(),
        keys = site.root().join("keys").display(),
        onus = crate::support::ONUS,
        person = site.person,
        store = site.store_url(),
        gone = gone.display(),
    );
    let task = ask(&site, &["raced", "--check", &check]);
    assert_eq!(task, "T-1");
    bench.work(&site, &task, "a", "x");
    let start = site.main();
    let refused = bench.run(&site, &["merge", &task]);
    assert!(gone.exists(), "{refused:#?}");
    assert_eq!(refused.code(), "fenced");
    assert_eq!(site.main(), start);
    assert!(site.ledger().iter().all(|entry| entry["verb"] != "merged"));
}

#[test]
fn a_main_that_moved_meanwhile_is_rebased_on_once_more() {
    let site = Site::new();
    let bench = site.bench("one");
    let once = site.root().join("once");
    let commit = "git -c user.name=x -c user.email=x commit --quiet --allow-empty --message=meanwhile";
    let check = format!(
        "test -e {once} || (touch {once} && cd {repo} && {commit})",
        once = once.display(),
        repo = site.repo().display()
    );
    let task = ask(&site, &["raced", "--check", &check]);
    bench.work(&site, &task, "a", "x");
    let merged = bench.ok(&site, &["merge", &task]);
    assert_eq!(site.git_in(&site.repo(), &["log", "-1", "--format=%s", "main~1"]), "meanwhile");
    assert_eq!(text(&merged["onto"]), site.git_in(&site.repo(), &["rev-parse", "main~1"]));
}

#[test]
fn a_conflict_names_whose_work_it_is_and_who_yields() {
    let site = Site::new();
    let (first, second, third) = (site.bench("one"), site.bench("two"), site.bench("three"));
    let (base, other) = (site.add("base"), site.add("unrelated"));
    let on_top = ask(&site, &["on top", "--depends-on", &base]);
    let why = ["--reason", "in a hurry", "--rollback", "drop it"];
    site.by_person(&[&["exception", "request", &on_top, "--on", &base], &why[..]].concat());
    site.by_person(&["exception", "approve", &on_top, "--on", &base]);
    // All three begin before the first one lands.
    let starts =
        [second.work(&site, &on_top, "both", "by on top\n"), third.work(&site, &other, "both", "by other\n")];
    first.work(&site, &base, "both", "by base\n");
    first.ok(&site, &["merge", &base]);
    first.ok(&site, &["complete", &base, "--resolution", "done"]);
    for (second, task, start, words) in [
        (&second, &on_top, &starts[0], "depends: it stays"),
        (&third, &other, &starts[1], "neither depends on the other"),
    ] {
        let refused = second.run(&site, &["merge", task]);
        assert_eq!(refused.code(), "not_merged");
        let said = detail(&refused);
        assert!(said.contains(&format!("changed by {base}")) && said.contains(words), "{said}");
        // Nothing has changed, and the holder may go on.
        assert_eq!(site.git_in(&second.dir, &["rev-parse", "HEAD"]), *start);
        let synced = second.run(&site, &["workstation", "sync", &second.agent.workstation]);
        assert!(detail(&synced).contains(words), "{synced:#?}");
        second.ok(&site, &["release", task]);
    }
}

#[test]
fn nothing_to_merge_is_said() {
    let site = Site::new();
    let bench = site.bench("one");
    let task = site.add("idle");
    bench.claim(&site, &task);
    let refused = bench.run(&site, &["merge", &task]);
    assert_eq!(refused.code(), "not_merged");
    assert!(detail(&refused).contains("no commit that main has not"), "{refused:#?}");
}

/// With git asking Onus about every branch: the holder's commits pass, a merge passes, and both sides agree afterwards.
#[test]
fn hooks_let_a_merge_through() {
    let site = Site::guarded();
    let bench = site.bench("one");
    let task = ask(&site, &["guarded", "--scope", "src/**", "--check", "test -f src/a"]);
    bench.claim(&site, &task);
    site.commit(&bench.dir, "src/a", "x\n", &[]);
    let trailers = site.git_in(&bench.dir, &["log", "-1", "--format=%(trailers:key=Onus-Task,valueonly)"]);
    assert_eq!(trailers, task);
    site.commit(&site.repo(), "elsewhere", "by a person\n", &[]);
    let merged = bench.ok(&site, &["merge", &task]);
    assert_eq!(text(&merged["commit"]), site.main());
    site.ok(&["consistency"]);
}

/// What a holder who is gone has left is kept, and anybody puts its worktree back on the main branch.
#[test]
fn a_worktree_that_nobody_holds_goes_back_on_main() {
    let (site, bench, task, _) = worked("src/a.rs", &[]);
    std::fs::write(bench.dir.join("left-lying"), "half\n").unwrap();
    site.by_person(&["release", &task, "--force", "--reason", "silent"]);
    let synced = bench.ok(&site, &["workstation", "sync", &bench.agent.workstation]);
    assert_eq!(text(&synced["head"]), site.main(), "{synced:#}");
    assert_eq!(site.git_in(&bench.dir, &["status", "--porcelain"]), "");
    assert!(!bench.dir.join("src/a.rs").exists());
    let kept = format!("refs/onus/salvage/{task}/1");
    assert_eq!(site.git_in(&site.repo(), &["show", &format!("{kept}:src/a.rs")]), "one");
    site.assert_sound();
}
