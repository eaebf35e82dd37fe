//! The road from an ask to the team's main branch, on real repositories: a clean start, own commits only, one main of record,
//! and an end that is one call (invariants clean-start and own-commits).

use crate::support::team::{Team, ask, commit, files, guarded};
use crate::support::{Answer, Bench, ONUS, Site, at_once, finish, start, text};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// `@one` claims, commits and loses the task; `@two` does it and completes it.
fn fenced(first: &str, second: &str) -> (Site, Bench, Bench, String, String) {
    let site = guarded();
    let (one, two) = (site.bench("one"), site.bench("two"));
    let task = ask(&site, &["first"]);
    one.claim(&site, &task);
    let stale = commit(&site, &one, first, "by one\n");
    std::fs::write(one.dir.join("left-lying"), "half\n").unwrap();
    site.by_person(&["release", &task, "--force", "--reason", "silent"]);
    two.claim(&site, &task);
    commit(&site, &two, second, "by two\n");
    two.ok(&site, &["complete", &task, "--resolution", "done"]);
    (site, one, two, task, stale)
}

/// Issue: a fenced holder's commits reached main through its next task.
#[test]
fn a_fenced_holders_commits_do_not_travel_with_its_next_task() {
    let (site, one, _, task, stale) = fenced("stale", "fresh");
    let next = ask(&site, &["second"]);
    one.claim(&site, &next);
    // The branch is the main branch; what was there is kept, and told by name.
    assert_eq!(site.git_in(&one.dir, &["rev-parse", "HEAD"]), site.main());
    assert_eq!(site.git_in(&one.dir, &["status", "--porcelain"]), "");
    let kept = site.git_in(&site.repo(), &["rev-parse", &format!("refs/onus/salvage/{task}/1^{{commit}}")]);
    assert!(site.git_in(&site.repo(), &["log", "--format=%H", &kept]).contains(&stale));
    assert!(files(&site, &site.repo(), &kept).contains(&"left-lying".to_owned()));
    commit(&site, &one, "own", "by one\n");
    one.ok(&site, &["complete", &next, "--resolution", "done"]);
    assert_eq!(files(&site, &site.repo(), "main"), ["fresh", "own"]);
    site.ok(&["consistency"]);
    site.assert_sound();
}

/// Issue: when both changed the same lines, nobody could remove or reset the workstation.
#[test]
fn a_workstation_with_conflicting_leftovers_is_put_back_by_anybody() {
    let (site, one, _, task, stale) = fenced("same", "same");
    one.ok(&site, &["workstation", "sync", &one.agent.workstation]);
    assert_eq!(site.git_in(&one.dir, &["rev-parse", "HEAD"]), site.main());
    let kept = format!("refs/onus/salvage/{task}/1");
    assert!(site.git_in(&site.repo(), &["log", "--format=%H", &kept]).contains(&stale));
    site.by_person(&["workstation", "remove", &one.agent.workstation]);
    site.assert_sound();
}

/// Issue: a claim gave work on a branch that was behind, without its dependency's code.
#[test]
fn a_claim_begins_with_the_code_it_depends_on() {
    let site = guarded();
    let (one, two) = (site.bench("one"), site.bench("two"));
    let base = ask(&site, &["base"]);
    let on_top = ask(&site, &["on top", "--depends-on", &base]);
    one.claim(&site, &base);
    commit(&site, &one, "library", "1\n");
    one.ok(&site, &["complete", &base, "--resolution", "done"]);
    two.claim(&site, &on_top);
    assert!(two.dir.join("library").exists());
    // A repeated call does not touch what its holder has made since.
    let mine = commit(&site, &two, "mine", "1\n");
    two.ok(&site, &["release", &on_top, "--note", "later"]);
    let again = ["claim", &on_top, "--request-id", "c1"];
    two.ok(&site, &again);
    assert_eq!(site.git_in(&two.dir, &["rev-parse", "HEAD"]), site.main());
    let newer = commit(&site, &two, "newer", "1\n");
    assert_ne!(mine, newer);
    two.ok(&site, &again);
    assert_eq!(site.git_in(&two.dir, &["rev-parse", "HEAD"]), newer);
}

/// The programs called `git` on the path: a machine may have a distribution's and a newer one.
fn gits() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).filter_map(|dir| dir.join("git").canonicalize().ok());
    let mut found: Vec<PathBuf> = found.filter(|git| git.is_file()).collect();
    found.sort();
    found.dedup();
    found
}

/// What an older git does not understand is not asked of it (2.39 took `--end-of-options` for a path).
#[test]
fn a_clean_start_with_every_git_of_this_machine() {
    for git in gits() {
        let site = guarded();
        let one = site.bench("one");
        let bin = site.root().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(&git, bin.join("git")).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let run = |args: &[&str]| {
            let args = [args, &["--as", "@one"]].concat();
            let said = finish(start(site.command(&args).current_dir(&one.dir).env("PATH", &path)));
            assert_eq!(said.exit, Some(0), "{}: {args:?}: {said:#?}", git.display());
            assert!(!said.stderr.contains("warning"), "{}: {args:?}: {said:#?}", git.display());
        };
        let task = ask(&site, &["work"]);
        run(&["claim", &task]);
        commit(&site, &one, "mine", "1\n");
        std::fs::write(one.dir.join("left-lying"), "half\n").unwrap();
        run(&["release", &task, "--note", "later"]);
        let other = ask(&site, &["other"]);
        run(&["claim", &other]);
        assert_eq!(site.git_in(&one.dir, &["rev-parse", "HEAD"]), site.main(), "{}", git.display());
        assert_eq!(site.git_in(&one.dir, &["status", "--porcelain"]), "", "{}", git.display());
        run(&["release", &other, "--note", "later"]);
        // And what was kept comes back where its next holder wants it.
        run(&["claim", &task, "--adopt"]);
        assert!(one.dir.join("mine").exists() && one.dir.join("left-lying").exists(), "{}", git.display());
        commit(&site, &one, "rest", "1\n");
        run(&["complete", &task, "--resolution", "done"]);
        assert!(files(&site, &site.repo(), "main").contains(&"mine".to_owned()));
        site.assert_sound();
    }
}

#[test]
fn other_peoples_commits_land_only_when_they_are_adopted() {
    let (site, one, _, task, stale) = fenced("stale", "fresh");
    std::fs::remove_file(one.dir.join("left-lying")).unwrap();
    std::fs::write(site.repo().join("onus.yaml"), "workstation: { sync: never }\n").unwrap();
    let next = ask(&site, &["second"]);
    one.claim(&site, &next);
    commit(&site, &one, "own", "by one\n");
    for verb in [&["merge", &next][..], &["complete", &next, "--resolution", "done"]] {
        let refused = one.run(&site, verb);
        assert_eq!(refused.code(), "not_own_commits", "{refused:#?}");
        assert!(refused.error().to_string().contains(&format!("{task} in epoch 1")), "{refused:#?}");
    }
    assert!(!files(&site, &site.repo(), "main").contains(&"stale".to_owned()));
    let merged = one.ok(&site, &["merge", &next, "--adopt", &stale]);
    assert_eq!(merged["landed"]["commits"].as_array().unwrap().len(), 2, "{merged:#}");
    assert_eq!(merged["landed"]["adopted"].as_array().unwrap().len(), 1, "{merged:#}");
    one.ok(&site, &["complete", &next, "--resolution", "done"]);
    site.assert_sound();
}

#[test]
fn a_takeover_brings_the_old_holders_work_along_where_it_is_asked_to() {
    let site = guarded();
    let (one, two) = (site.bench("one"), site.bench("two"));
    let task = ask(&site, &["first"]);
    one.claim(&site, &task);
    commit(&site, &one, "begun", "by one\n");
    std::fs::write(one.dir.join("half"), "half\n").unwrap();
    let person = site.person.clone();
    let place = ["--workstation", two.agent.workstation.as_str()];
    let why = ["--force", "--reason", "silent", "--adopt"];
    // A checkout has no branch of its own that work could be brought to, which is said.
    let here = [&["takeover", &task, "--as", &person, "--workstation", "ws-repo"], &why[..]].concat();
    let here = site.run(&here);
    assert!(here.is_ok() && here.stderr.contains("nothing was adopted: ws-repo is no worktree"), "{here:#?}");
    let taken = [&["takeover", &task, "--as", &person], &place[..], &why[..], &["--json"]].concat();
    let taken = finish(start(site.command(&taken).current_dir(&two.dir)));
    assert_eq!(taken.exit, Some(0), "{taken:#?}");
    assert!(two.dir.join("begun").exists() && two.dir.join("half").exists());
    let author = site.git_in(&two.dir, &["log", "-1", "--format=%(trailers:key=Onus-Agent,valueonly)"]);
    assert_eq!(author, "@one");
    std::fs::remove_file(two.dir.join("half")).unwrap();
    let done = ["complete", &task, "--resolution", "done", "--as", &person, "--json"];
    let done = finish(start(site.command(&done).current_dir(&two.dir)));
    assert_eq!(done.exit, Some(0), "{done:#?}");
    assert_eq!(done.json()["landed"]["adopted"].as_array().unwrap().len(), 1);
    assert!(files(&site, &site.repo(), "main").contains(&"begun".to_owned()));
    site.assert_sound();
}

/// Issue: `complete` said `not_merged`, `merge` was another verb, and no handoff was written.
#[test]
fn complete_is_the_whole_end_and_can_be_repeated() {
    let site = guarded();
    let one = site.bench("one");
    let task = ask(&site, &["work", "--check", "test -f feature"]);
    one.claim(&site, &task);
    let made = commit(&site, &one, "feature", "1\n");
    let done = one.ok(&site, &["complete", &task, "--resolution", "a feature"]);
    assert_eq!(text(&done["task"]["state"]), "complete");
    assert_eq!(done["landed"]["commits"], serde_json::json!([made]));
    assert_eq!(done["landed"]["remote"], Value::Null);
    assert_eq!(text(&done["landed"]["branch"]), "main");
    assert_eq!(text(&done["checks"][0]["command"]), "test -f feature");
    let handoff = &done["handoff"]["handoff"];
    assert_eq!((text(&handoff["status"]), text(&handoff["summary"])), ("done", "a feature"));
    assert_eq!(text(&handoff["commits"][0]["id"]), made);
    assert_eq!(site.main(), made);
    let entries = site.ledger().len();
    let again = one.ok(&site, &["complete", &task, "--resolution", "a feature"]);
    assert_eq!((&again["landed"], &again["handoff"]), (&done["landed"], &done["handoff"]));
    assert_eq!(site.ledger().len(), entries);
    // Somebody else did not complete it.
    let two = site.bench("two");
    assert!(!two.run(&site, &["complete", &task, "--resolution", "x"]).is_ok());
    site.assert_sound();
}

#[test]
fn work_that_nobody_committed_is_not_left_behind() {
    let site = guarded();
    let one = site.bench("one");
    let task = ask(&site, &["work"]);
    one.claim(&site, &task);
    std::fs::write(one.dir.join("forgotten"), "1\n").unwrap();
    let refused = one.run(&site, &["complete", &task, "--resolution", "done"]);
    assert_eq!(refused.code(), "workstation_not_ready");
    assert!(one.dir.join("forgotten").exists());
}

/// Issue: an unreviewed task merged, and an approval of an older commit counted for newer ones.
#[test]
fn a_review_is_asked_for_before_the_merge_and_counts_for_what_it_saw() {
    let site = guarded();
    let (one, two) = (site.bench("one"), site.bench("two"));
    std::fs::write(site.repo().join("onus.yaml"), "complete: { review: always }\n").unwrap();
    let task = ask(&site, &["work"]);
    one.claim(&site, &task);
    commit(&site, &one, "feature", "1\n");
    let start_of = site.main();
    let complete = ["complete", &task, "--resolution", "done"];
    for verb in [&["merge", &task][..], &complete] {
        assert_eq!(one.run(&site, verb).code(), "review_missing");
    }
    assert_eq!(site.main(), start_of);
    // It is asked for once, and whoever looks sees it.
    assert_eq!(one.run(&site, &complete).code(), "review_missing");
    let asked = site.ledger().into_iter().filter(|entry| entry["verb"] == "review_requested").count();
    assert_eq!(asked, 1);
    let seen = site.git_in(&one.dir, &["rev-parse", "HEAD"]);
    let approve = ["review", &task, "--approve", "--as-implemented", "--commit", &seen];
    two.ok(&site, &approve);
    commit(&site, &one, "more", "1\n");
    assert_eq!(one.run(&site, &complete).code(), "review_missing");
    let seen = site.git_in(&one.dir, &["rev-parse", "HEAD"]);
    two.ok(&site, &["review", &task, "--approve", "--as-implemented", "--commit", &seen]);
    // A newer main branch does not make it stale: the patches are the same.
    site.commit(&site.repo(), "elsewhere", "by a person\n", &[]);
    one.ok(&site, &complete);
    assert_ne!(site.main(), seen);
    site.assert_sound();
}

/// Issue: two clones each merged into a branch of their own, and both were complete.
#[test]
fn two_clones_need_a_main_of_record_and_then_share_it() {
    let team = Team::new();
    let site = &team.site;
    let (one, two) = (site.bench("one"), team.bench_there("two"));
    let (first, second) = (ask(site, &["first"]), ask(site, &["second"]));
    one.claim(site, &first);
    commit(site, &one, "first", "1\n");
    let complete = ["complete", &first, "--resolution", "done"];
    for verb in [&["merge", &first][..], &complete] {
        let refused = one.run(site, verb);
        assert_eq!(refused.code(), "main_of_record_unset", "{refused:#?}");
        assert!(text(&refused.error()["hint"]).contains("onus init --remote origin"), "{refused:#?}");
    }
    site.by_person(&["init", "--remote", "origin"]);
    let done = one.ok(site, &complete);
    assert_eq!(text(&done["landed"]["remote"]), "origin");
    assert_eq!(team.main(), site.main());
    // The other clone sees the same choice, begins with what landed, and lands on top of it.
    let claimed = team.as_agent(&two, &["claim", &second]);
    assert_eq!(claimed.exit, Some(0), "{claimed:#?}");
    assert!(two.dir.join("first").exists());
    commit(site, &two, "second", "1\n");
    let done = team.as_agent(&two, &["complete", &second, "--resolution", "done"]);
    assert_eq!(done.exit, Some(0), "{done:#?}");
    assert_eq!(files(site, &team.origin, "main"), ["first", "second"]);
    site.git_in(&team.origin, &["fsck", "--strict"]);
    site.assert_sound();
}

/// Three commands by an agent, from the queue to the shared repository: claim, commit, complete.
#[test]
fn three_commands_from_the_queue_to_the_shared_main_branch() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let two = team.bench_there("two");
    let task = ask(site, &["work", "--check", "test -f feature"]);
    let mut typed = 0;
    let mut type_in = |answer: Answer| {
        typed += 1;
        assert_eq!(answer.exit, Some(0), "{answer:#?}");
    };
    type_in(team.as_agent(&two, &["claim", "--next"]));
    commit(site, &two, "feature", "1\n");
    typed += 1;
    let mut type_in = |answer: Answer| {
        typed += 1;
        assert_eq!(answer.exit, Some(0), "{answer:#?}");
    };
    type_in(team.as_agent(&two, &["complete", &task, "--resolution", "done"]));
    assert_eq!(typed, 3);
    assert_eq!(files(site, &team.origin, "main"), ["feature"]);
    assert_eq!(text(&site.task(&task)["state"]), "complete");
    site.assert_sound();
}

/// A call that died between the push and its record is repeated: what is there is recorded, and nothing is pushed twice.
#[test]
fn what_was_pushed_before_a_crash_is_found_and_recorded() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let one = site.bench("one");
    let task = ask(site, &["work"]);
    one.claim(site, &task);
    let made = commit(site, &one, "feature", "1\n");
    site.git_in(&team.origin, &["fetch", "--quiet", one.dir.to_str().unwrap(), "HEAD:main"]);
    let done = one.ok(site, &["complete", &task, "--resolution", "done"]);
    assert_eq!(done["landed"]["commits"], serde_json::json!([made]), "{done:#}");
    assert!(site.ledger().iter().any(|entry| entry["verb"] == "merged"));
    assert_eq!(team.main(), made);
    site.assert_sound();
}

/// `onus run` alone: no agent knows of merging, two clones race for main, and no green run ends as `not_merged`.
#[test]
fn onus_run_lands_also_when_two_clones_race() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let benches = [site.bench("one"), team.bench_there("two")];
    let tasks: Vec<String> = (0..4).map(|n| ask(site, &[&format!("work {n}")])).collect();
    // What lies about is not what the next task's `git add --all` lands.
    std::fs::write(benches[0].dir.join("leftover"), "1\n").unwrap();
    let script = "touch $ONUS_TASK && git add --all && git commit --quiet -m work";
    let store = site.store_url();
    for round in tasks.chunks(2) {
        let run = |(bench, task): (&Bench, &String)| {
            let mut onus = Command::new(ONUS);
            site.surroundings(&mut onus).current_dir(&bench.dir);
            onus.args([
                "run",
                task,
                "--store",
                &store,
                "--as",
                &bench.agent.handle,
                "--",
                "sh",
                "-c",
                script,
            ]);
            onus
        };
        for answer in at_once(benches.iter().zip(round).map(run)) {
            assert_eq!(answer.exit, Some(0), "{answer:#?}");
        }
    }
    let mut expected = tasks.clone();
    expected.sort();
    assert_eq!(files(site, &team.origin, "main"), expected);
    for task in &tasks {
        assert_eq!(text(&site.task(task)["state"]), "complete");
    }
    site.assert_sound();
}

/// A `git` on the path that writes down what it is started with.
fn counted_git(site: &Site) -> (String, PathBuf) {
    let (bin, log) = (site.root().join("counting"), site.root().join("started"));
    std::fs::create_dir_all(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    // What git itself starts finds the real one.
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\nPATH='{path}'\nexec '{}' \"$@\"\n",
        log.display(),
        real.display()
    );
    std::fs::write(bin.join("git"), script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("git"), mode).unwrap();
    (format!("{}:{path}", bin.display()), log)
}

/// Each run of git costs more than all that Onus itself does at the end of a task. What is read without one must be what git
/// would have said: also where everything is packed, and git is asked.
#[test]
fn the_end_of_a_task_starts_git_for_what_only_git_can_do() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let (one, two) = (site.bench("one"), team.bench_there("two"));
    let (path, log) = counted_git(site);
    for (round, is_moved, is_packed, most) in [(1, false, false, 8), (2, true, false, 9), (3, true, true, 15)]
    {
        if is_moved {
            let other = ask(site, &["of others", "--scope", "others/**"]);
            team.ok(&two, &["claim", &other]);
            commit(site, &two, &format!("others/{round}"), "1\n");
            team.ok(&two, &["complete", &other, "--resolution", "done"]);
        }
        let task = ask(site, &["work", "--check", "test -d .", "--scope", "src/**"]);
        one.claim(site, &task);
        let (first, second) = (format!("src/{round}/a"), format!("src/{round}/b"));
        commit(site, &one, &first, "1\n");
        commit(site, &one, &second, "1\n");
        if is_packed {
            for place in [&site.repo(), &team.origin] {
                site.git_in(place, &["gc", "--quiet", "--prune=now"]);
                site.git_in(place, &["pack-refs", "--all"]);
            }
        }
        drop(std::fs::remove_file(&log));
        let args = ["complete", &task, "--resolution", "done", "--as", "@one", "--json"];
        let done = finish(start(site.command(&args).current_dir(&one.dir).env("PATH", &path)));
        assert_eq!(done.exit, Some(0), "{done:#?}");
        let started = std::fs::read_to_string(&log).unwrap();
        assert!(started.lines().count() <= most, "round {round}:\n{started}");
        let done = done.json();
        let landed = site.git_in(&team.origin, &["rev-list", "--max-count=2", "main"]);
        let newest_first: Vec<&str> = landed.lines().collect();
        assert_eq!(
            done["landed"]["commits"],
            serde_json::json!([newest_first[1], newest_first[0]]),
            "{done:#}"
        );
        let handoff = &done["handoff"]["handoff"];
        let told: Vec<(&str, &str)> = handoff["commits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|commit| (text(&commit["id"]), text(&commit["subject"])))
            .collect();
        let subjects = [format!("change {second}"), format!("change {first}")];
        assert_eq!(told, [(newest_first[0], subjects[0].as_str()), (newest_first[1], subjects[1].as_str())]);
        assert_eq!(handoff["files"], serde_json::json!([first, second]), "{handoff:#}");
        // The main checkout has followed.
        assert_eq!(site.main(), newest_first[0]);
        assert!(site.repo().join(&second).exists());
    }
    site.assert_sound();
}

/// What somebody edits in the main checkout is in nobody's way: the work lands, and the checkout is left as it is.
#[test]
fn a_main_checkout_that_cannot_follow_is_told_and_left() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let one = site.bench("one");
    let (task, before) = (ask(site, &["work"]), site.main());
    one.claim(site, &task);
    commit(site, &one, "feature", "1\n");
    std::fs::write(site.repo().join("feature"), "a person's own\n").unwrap();
    let done = one.ok(site, &["complete", &task, "--resolution", "done"]);
    assert!(text(&done["behind"][0]["detail"]).contains("in the way"), "{done:#}");
    assert_eq!((team.main() == before, site.main()), (false, before));
    assert_eq!(std::fs::read_to_string(site.repo().join("feature")).unwrap(), "a person's own\n");
    assert_eq!(site.git_in(&site.repo(), &["status", "--porcelain"]), "?? feature");
    // Once it is out of the way the next landing takes it along.
    std::fs::remove_file(site.repo().join("feature")).unwrap();
    let next = ask(site, &["more"]);
    one.claim(site, &next);
    commit(site, &one, "more", "1\n");
    one.ok(site, &["complete", &next, "--resolution", "done"]);
    assert_eq!(site.main(), team.main());
    assert_eq!(site.git_in(&site.repo(), &["status", "--porcelain"]), "");
    site.assert_sound();
}

/// Whoever claims from elsewhere is told where the work is.
#[test]
fn a_claim_says_where_to_commit() {
    let site = guarded();
    let one = site.bench("one");
    let said = |task: &str, dir: &std::path::Path| {
        let args = ["claim", task, "--workstation", &one.agent.workstation, "--as", "@one"];
        let claimed = finish(start(site.command(&args).current_dir(dir)));
        assert_eq!(claimed.exit, Some(0), "{claimed:#?}");
        site.by_person(&["release", task, "--force", "--reason", "again"]);
        claimed.stderr
    };
    let task = ask(&site, &["work"]);
    let from_elsewhere = said(&task, &site.repo());
    assert!(
        from_elsewhere.contains(&format!("next: commit in {}, then onus complete", one.dir.display())),
        "{from_elsewhere}"
    );
    std::fs::create_dir(one.dir.join("below")).unwrap();
    let from_inside = said(&task, &one.dir.join("below"));
    assert!(from_inside.contains("next: commit here, then onus complete"), "{from_inside}");
}

/// A push that was killed leaves git's lock in the shared repository: who lands next is told which file it is, and not that
/// others are quicker.
#[test]
fn a_lock_that_a_killed_push_left_is_named() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let one = site.bench("one");
    let task = ask(site, &["work"]);
    one.claim(site, &task);
    commit(site, &one, "feature", "1\n");
    let lock = team.origin.join("refs/heads/main.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    let complete = ["complete", &task, "--resolution", "done"];
    let refused = one.run(site, &complete);
    assert_eq!(refused.code(), "not_merged");
    let error = refused.error();
    assert!(text(&error["detail"]).contains("refs/heads/main.lock"), "{error:#}");
    assert!(text(&error["hint"]).contains("removes the .lock file"), "{error:#}");
    std::fs::remove_file(&lock).unwrap();
    one.ok(site, &complete);
    assert_eq!(files(site, &team.origin, "main"), ["feature"]);
    site.assert_sound();
}
