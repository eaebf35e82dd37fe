//! Working trees made, surveyed, brought up to date and taken away by real git.

use super::support::Area;
use onus_core::code::Code;
use onus_host::worktree::{Branch, Synced, create, list, put_back, remove, survey, sync};
use std::fs;

/// A repository with a file on `main` and a working tree `lane` on `agent/a`.
fn area() -> Area {
    let area = Area::with_main(&[]);
    for (name, value) in [("user.name", "Test"), ("user.email", "test@localhost")] {
        area.git("main", &["config", name, value]);
    }
    area.commit("main", "a.txt", "one\n");
    create(&area.repo("main"), &area.at("lane"), "agent/a", "main").unwrap();
    area
}

#[test]
fn a_tree_is_made_once_locked_and_found_again() {
    let area = area();
    let repo = area.repo("main");
    let before = list(&repo).unwrap();
    create(&repo, &area.at("lane"), "agent/a", "main").unwrap();
    assert_eq!(list(&repo).unwrap(), before, "adopted as it is");
    let lane = &before[1];
    assert_eq!((lane.path.clone(), lane.branch.as_deref()), (area.at("lane"), Some("refs/heads/agent/a")));
    assert!(lane.is_locked && lane.prunable.is_none());
    assert_eq!(lane.head, Some(area.head("main")));
    // Seen from the tree itself, and through a path with detours.
    create(&area.repo("lane"), &area.at("main/../lane"), "agent/a", "main").unwrap();
    area.git("main", &["worktree", "unlock", "../lane"]);
    create(&repo, &area.at("lane"), "agent/a", "main").unwrap();
    assert_eq!(list(&repo).unwrap(), before, "and locked again");
}

#[test]
fn a_tree_whose_directory_was_deleted_comes_back_with_its_commits() {
    let area = area();
    let work = area.commit("lane", "b.txt", "work\n");
    fs::remove_dir_all(area.at("lane")).unwrap();
    assert!(list(&area.repo("main")).unwrap()[1].prunable.is_some());
    create(&area.repo("main"), &area.at("lane"), "agent/a", "main").unwrap();
    assert_eq!(area.head("lane"), work);
    assert_eq!(fs::read_to_string(area.at("lane/b.txt")).unwrap(), "work\n");
}

#[test]
fn what_is_in_use_is_refused() {
    let area = area();
    let repo = area.repo("main");
    area.write("taken/file", "x");
    area.write("file", "x");
    for (path, branch) in [
        ("other", "agent/a"),
        ("other", "main"),
        ("lane", "agent/b"),
        ("main", "agent/b"),
        ("taken", "agent/b"),
        ("file", "agent/b"),
        ("other", "-b"),
        ("other", "a..b"),
        ("other", ""),
        ("other", "a b"),
    ] {
        let refusal = create(&repo, &area.at(path), branch, "main").unwrap_err();
        assert_eq!(refusal.code, Code::InvalidInput, "{path} {branch}: {refusal}");
        assert!(refusal.hint.is_some(), "{path} {branch}");
    }
    let refusal = create(&repo, &area.at("other"), "agent/b", "nowhere").unwrap_err();
    assert_eq!(refusal.code, Code::UnknownName);
    assert!(!area.at("other").exists());
    assert_eq!(area.git("main", &["branch", "--list", "agent/b"]), "");
    area.mkdir("empty");
    create(&repo, &area.at("empty"), "agent/b", "main").unwrap();
}

#[test]
fn a_survey_tells_what_is_nowhere_else() {
    let area = area();
    let repo = area.repo("main");
    let see = || survey(&repo, &area.at("lane"), "main").unwrap();
    let clean = see();
    assert_eq!(clean.branch.as_deref(), Some("refs/heads/agent/a"));
    assert!(clean.dirty.is_empty() && clean.unmerged.is_empty() && clean.unpushed.is_empty());
    let message = "b: work\n\nOnus-Task: API-1\nOnus-Epoch: 3";
    let work = area.commit_as("lane", "b.txt", "work\n", message);
    area.commit("main", "c.txt", "main moves\n");
    for n in 0..25 {
        area.write(&format!("lane/new {n:02}"), "");
    }
    area.write("lane/a.txt", "changed\n");
    let seen = see();
    assert_eq!((seen.dirty.count, seen.dirty.first.len(), seen.behind), (26, 20, 1));
    assert_eq!((seen.dirty.first[0].as_str(), seen.dirty.first[1].as_str()), ("a.txt", "new 00"));
    let unmerged = &seen.unmerged.first[0];
    assert_eq!((unmerged.id.as_str(), unmerged.subject.as_str()), (work.as_str(), "b: work"));
    assert_eq!(unmerged.trailers.task.as_deref(), Some("API-1"));
    assert_eq!((unmerged.trailers.epoch.as_deref(), unmerged.trailers.agent.as_deref()), (Some("3"), None));
    assert!(seen.unpushed.is_empty(), "there is no remote");

    area.git(".", &["clone", "-q", "--bare", "main", "shared.git"]);
    area.git("main", &["remote", "add", "origin", "../shared.git"]);
    area.git("main", &["fetch", "-q"]);
    assert_eq!(see().unpushed.count, 0, "the clone has it");
    let second = area.commit("lane", "d.txt", "more\n");
    assert_eq!(see().unpushed.first[0].id, second);
    area.git("lane", &["push", "-q", "origin", "agent/a"]);
    assert!(see().unpushed.is_empty());
    assert_eq!(see().unmerged.count, 2);
    area.git("main", &["cherry-pick", &work, &second]);
    assert!(see().unmerged.is_empty(), "the same patches");
}

#[test]
fn a_rebase_on_main_keeps_messages_and_refuses_a_dirty_tree() {
    let area = area();
    let repo = area.repo("main");
    let old = area.commit_as("lane", "b.txt", "work\n", "b\n\nOnus-Task: API-1");
    let go = || sync(&repo, &area.at("lane"), "main");
    assert_eq!(go(), Ok(Synced::Current { head: old.clone() }));
    let main = area.commit("main", "c.txt", "main moves\n");
    area.write("lane/b.txt", "not yet committed\n");
    let refusal = go().unwrap_err();
    assert_eq!(refusal.code, Code::WorkstationNotReady);
    assert!(refusal.findings[0].detail.contains("b.txt"), "{refusal:?}");
    area.git("lane", &["checkout", "-q", "b.txt"]);
    // A hook that refuses everything is not asked.
    area.script("main/.git/hooks/reference-transaction", "exit 1");
    let new = match go().unwrap() {
        Synced::Rebased { old: from, new } if from == old => new,
        other => panic!("{other:?}"),
    };
    assert_eq!(area.git("lane", &["rev-parse", "HEAD^", "agent/a"]), format!("{main}\n{new}"));
    assert!(area.git("lane", &["log", "-1", "--format=%B"]).contains("Onus-Task: API-1"));
}

#[test]
fn a_conflict_changes_nothing_and_names_who_touched_the_path() {
    let area = area();
    area.commit("lane", "other.txt", "fine\n");
    let old = area.commit("lane", "a.txt", "mine\n");
    area.commit("main", "unrelated.txt", "x\n");
    let theirs = area.commit_as("main", "a.txt", "theirs\n", "a: theirs\n\nOnus-Task: API-7");
    let synced = sync(&area.repo("main"), &area.at("lane"), "main").unwrap();
    let Synced::Conflicts(conflicts) = synced else { panic!("{synced:?}") };
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].path, "a.txt");
    let commits: Vec<_> =
        conflicts[0].commits.iter().map(|c| (c.id.as_str(), c.trailers.task.as_deref())).collect();
    assert_eq!(commits, [(theirs.as_str(), Some("API-7"))]);
    assert_eq!(area.git("lane", &["rev-parse", "HEAD", "agent/a"]), format!("{old}\n{old}"));
    assert_eq!(area.git("lane", &["status", "--porcelain"]), "");
    assert_eq!(area.git("lane", &["symbolic-ref", "HEAD"]), "refs/heads/agent/a");
}

#[test]
fn a_rebase_that_somebody_began_is_left_alone() {
    let area = area();
    area.commit("lane", "a.txt", "mine\n");
    area.commit("main", "a.txt", "theirs\n");
    let began = super::support::try_git_at(&area.at("lane"), &["rebase", "-q", "main"]);
    assert!(!began.status.success());
    let refusal = sync(&area.repo("main"), &area.at("lane"), "main").unwrap_err();
    assert_eq!(refusal.code, Code::WorkstationNotReady);
    assert!(area.at("main/.git/worktrees/lane/rebase-merge").is_dir());
}

/// A git that was killed leaves its locks; one that lives has its own, and is not robbed.
#[test]
fn the_locks_of_a_killed_git_are_taken_away() {
    let area = area();
    let main = area.commit("main", "b.txt", "main\n");
    let locks = ["worktrees/lane/index.lock", "worktrees/lane/HEAD.lock", "refs/heads/agent/a.lock"];
    let leave = |names: &[&str]| {
        for name in names {
            area.write(&format!("main/.git/{name}"), "");
        }
    };
    let go = || put_back(&area.repo("main"), &area.at("lane"), "agent/a", "main");
    let mut git = std::process::Command::new("git");
    let git = git.args(["cat-file", "--batch"]).current_dir(area.at("lane"));
    let mut alive =
        git.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    leave(&locks[1..2]);
    assert!(go().is_err());
    assert!(area.at("main/.git/worktrees/lane/HEAD.lock").exists());
    alive.kill().unwrap();
    alive.wait().unwrap();
    leave(&locks);
    go().unwrap();
    assert_eq!(area.head("lane"), main);
    area.commit("lane", "c.txt", "goes on\n");
}

#[test]
fn only_a_clean_tree_goes_and_unmerged_work_stays_on_its_branch() {
    let area = area();
    let repo = area.repo("main");
    let go = || remove(&repo, &area.at("lane"), "main");
    area.write("lane/new.txt", "x");
    assert_eq!(go().unwrap_err().code, Code::WorkstationNotReady);
    assert!(area.at("lane/new.txt").exists());
    assert!(list(&repo).unwrap()[1].is_locked);
    fs::remove_file(area.at("lane/new.txt")).unwrap();
    let work = area.commit("lane", "b.txt", "work\n");
    assert_eq!(go(), Ok(Branch::Kept("agent/a".into())));
    assert!(!area.at("lane").exists());
    assert_eq!(list(&repo).unwrap().len(), 1);
    assert_eq!(area.git("main", &["rev-parse", "agent/a"]), work);
    // The branch that was kept is taken up again.
    create(&repo, &area.at("lane"), "agent/a", "main").unwrap();
    assert_eq!(area.head("lane"), work);
    area.git("main", &["cherry-pick", &work]);
    assert_eq!(go(), Ok(Branch::Deleted("agent/a".into())));
    assert_eq!(area.git("main", &["branch", "--list", "agent/a"]), "");
    for path in ["main", "lane", "."] {
        assert_eq!(remove(&repo, &area.at(path), "main").unwrap_err().code, Code::InvalidInput, "{path}");
    }
}

#[test]
fn commits_on_no_branch_are_not_thrown_away() {
    let area = area();
    area.git("lane", &["checkout", "-q", "--detach"]);
    area.commit("lane", "b.txt", "work\n");
    let refusal = remove(&area.repo("main"), &area.at("lane"), "main").unwrap_err();
    assert_eq!(refusal.code, Code::WorkstationNotReady);
    assert!(refusal.hint.unwrap().contains("branch NAME"));
}

#[test]
fn a_tree_whose_directory_is_gone_can_be_removed() {
    let area = area();
    area.commit("lane", "b.txt", "work\n");
    fs::remove_dir_all(area.at("lane")).unwrap();
    let repo = area.repo("main");
    assert_eq!(remove(&repo, &area.at("lane"), "main"), Ok(Branch::Kept("agent/a".into())));
    assert_eq!(list(&repo).unwrap().len(), 1);
}
