//! Branches under lock, and what has arrived in main.

use super::support::{Area, git_at, try_git_at};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_host::git::Incoming;
use onus_host::refs::{History, barrier, fast_forward};
use std::fs;
use std::time::Duration;

fn area() -> Area {
    let area = Area::with_main(&[]);
    area.commit("main", "a.txt", "one\n");
    area.git("main", &["worktree", "add", "-q", "-b", "work", "../lane"]);
    area
}

#[test]
fn a_barrier_waits_for_whoever_holds_the_lock() {
    let area = area();
    let lock = area.at("main/.git/refs/heads/work.lock");
    let old = area.head("lane");
    assert_eq!(barrier(&area.at("main"), "refs/heads/work"), Ok(Some(old.clone())));
    fs::write(&lock, format!("{old}\n")).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| barrier(&area.at("main"), "refs/heads/work"));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished(), "the lock is held");
        // The in-flight update ends as git ends it.
        let new = area.git("main", &["commit-tree", "-m", "x", "-p", &old, "HEAD^{tree}"]);
        fs::write(&lock, format!("{new}\n")).unwrap();
        fs::rename(&lock, area.at("main/.git/refs/heads/work")).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(Some(new)), "and it sees what came through");
    });
    assert!(!lock.exists());
}

/// The old holder's commit has passed its check and has not landed: the race that a check alone loses.
#[test]
fn a_commit_that_was_let_through_lands_before_the_barrier() {
    for init in [&[][..], &["--ref-format=reftable"]] {
        let area = Area::with_main(init);
        area.git("main", &["worktree", "add", "-q", "-b", "work", "../lane"]);
        let (entered, go) = (area.at("entered"), area.at("go"));
        let body = format!(
            "[ \"$1\" = prepared ] || exit 0\ncase $(cat) in *refs/heads/work*) ;; *) exit 0 ;; esac\n\
             : >'{}'\nwhile [ ! -e '{}' ]; do sleep 0.01; done",
            entered.display(),
            go.display()
        );
        area.script("main/.git/hooks/reference-transaction", &body);
        std::thread::scope(|scope| {
            let committing = scope.spawn(|| area.commit("lane", "b.txt", "late\n"));
            while !entered.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let waiting = scope.spawn(|| barrier(&area.at("main"), "refs/heads/work"));
            std::thread::sleep(Duration::from_millis(300));
            assert!(!waiting.is_finished(), "the commit is still in flight");
            fs::write(&go, "").unwrap();
            let landed = committing.join().unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(Some(landed)), "{init:?}");
        });
    }
}

#[test]
fn a_barrier_on_a_branch_that_is_not_there_and_in_every_kind_of_repository() {
    for init in [&[][..], &["--ref-format=reftable"], &["--object-format=sha256"]] {
        let area = Area::with_main(init);
        assert_eq!(barrier(&area.at("main"), "refs/heads/agent/none"), Ok(None));
        assert_eq!(area.git("main", &["branch", "--list", "agent/*"]), "");
        let main = Some(area.head("main"));
        assert_eq!(barrier(&area.at("main"), "refs/heads/main"), Ok(main.clone()));
        area.git(".", &["clone", "-q", "--bare", "main", "bare.git"]);
        area.script("bare.git/hooks/reference-transaction", "exit 1");
        assert_eq!(barrier(&area.at("bare.git"), "refs/heads/main"), Ok(main));
    }
    let area = Area::with_main(&[]);
    for name in ["main", "refs/heads/a\nabort", "refs/heads/a b", ""] {
        assert_eq!(barrier(&area.at("main"), name).unwrap_err().code, Code::InvalidInput, "{name:?}");
    }
}

#[test]
fn main_goes_forward_and_its_checkout_follows() {
    let area = area();
    let old = area.head("main");
    area.write("main/draft.txt", "untracked\n");
    area.commit("lane", "b.txt", "two\n");
    area.git("lane", &["rm", "-q", "a.txt"]);
    let new = area.commit("lane", "c/d.txt", "three\n");
    let repo = area.repo("lane");
    let mut asked = 0;
    let done = fast_forward(&repo, "refs/heads/main", &new, || {
        asked += 1;
        assert!(area.at("main/.git/refs/heads/main.lock").exists(), "asked under the lock");
        assert_eq!(area.head("main"), old);
        Ok(())
    })
    .unwrap();
    assert_eq!((asked, &done.old, &done.new), (1, &old, &new));
    assert_eq!((done.followed, done.behind), (vec![area.at("main")], vec![]));
    assert_eq!(area.head("main"), new);
    assert_eq!(area.git("main", &["status", "--porcelain"]), "?? draft.txt");
    assert!(area.at("main/c/d.txt").exists() && !area.at("main/a.txt").exists());
    // What is in main already stays where it is.
    let again = fast_forward(&repo, "refs/heads/main", &old, || Ok(())).unwrap();
    assert_eq!((again.old, again.new), (new.clone(), new));
}

#[test]
fn main_never_goes_anywhere_but_forward() {
    let area = area();
    area.commit("lane", "b.txt", "two\n");
    let main = area.commit("main", "c.txt", "three\n");
    let repo = area.repo("main");
    let not_asked = || -> Result<(), Refusal> { panic!("asked") };
    let refusal = fast_forward(&repo, "refs/heads/main", "work", not_asked).unwrap_err();
    assert_eq!(refusal.code, Code::NotMerged);
    let refusal = fast_forward(&repo, "refs/heads/none", "work", not_asked).unwrap_err();
    assert_eq!(refusal.code, Code::UnknownName);
    let refusal = fast_forward(&repo, "refs/heads/main", "nothing", not_asked).unwrap_err();
    assert_eq!(refusal.code, Code::UnknownName);
    assert_eq!(area.head("main"), main);
}

#[test]
fn a_refusal_under_the_lock_leaves_everything() {
    let area = area();
    let old = area.head("main");
    area.commit("lane", "a.txt", "two\n");
    let repo = area.repo("main");
    let fenced = || Err(Refusal::new(Code::Fenced, "not yours"));
    let refusal = fast_forward(&repo, "refs/heads/main", "work", fenced).unwrap_err();
    assert_eq!(refusal.code, Code::Fenced);
    assert_eq!(area.head("main"), old);
    assert_eq!(area.git("main", &["status", "--porcelain"]), "");
    assert!(!area.at("main/.git/refs/heads/main.lock").exists());
}

#[test]
fn files_that_followed_before_a_crash_are_no_obstacle() {
    let area = area();
    let old = area.head("main");
    area.git("lane", &["rm", "-q", "a.txt"]);
    let new = area.commit("lane", "b.txt", "two\n");
    area.git("main", &["read-tree", "-m", "-u", &old, &new]);
    fast_forward(&area.repo("main"), "refs/heads/main", &new, || Ok(())).unwrap();
    assert_eq!((area.head("main"), area.git("main", &["status", "--porcelain"])), (new, String::new()));
}

/// Somebody commits in the checkout while the merge is decided: refused by git, and nothing is taken back.
#[test]
fn a_commit_in_the_checkout_does_not_undo_the_merge() {
    let area = area();
    let new = area.commit("lane", "b.txt", "two\n");
    area.write("main/mine.txt", "mine\n");
    area.git("main", &["add", "mine.txt"]);
    let done = fast_forward(&area.repo("main"), "refs/heads/main", &new, || {
        let output = try_git_at(&area.at("main"), &["commit", "-q", "-m", "mine"]);
        assert!(!output.status.success());
        Ok(())
    });
    assert_eq!(done.unwrap().followed, [area.at("main")]);
    area.git("main", &["commit", "-q", "-m", "mine"]);
    assert_eq!(area.git("main", &["diff", "--name-only", &new, "HEAD"]), "mine.txt");
}

#[test]
fn local_changes_in_the_way_refuse_and_others_are_kept() {
    let area = area();
    area.commit("main", "mine.txt", "mine\n");
    area.git("lane", &["rebase", "-q", "main"]);
    let old = area.head("main");
    area.commit("lane", "a.txt", "two\n");
    area.commit("lane", "new.txt", "new\n");
    let repo = area.repo("main");
    let go = || fast_forward(&repo, "refs/heads/main", "work", || Ok(()));
    for (file, content) in [("main/a.txt", "edited\n"), ("main/new.txt", "untracked\n")] {
        let kept = fs::read(area.at(file)).ok();
        area.write(file, content);
        let refusal = go().unwrap_err();
        assert_eq!(refusal.code, Code::NotMerged, "{file}");
        assert!(refusal.detail.contains("local changes"), "{refusal}");
        assert_eq!(fs::read_to_string(area.at(file)).unwrap(), content);
        assert_eq!(area.head("main"), old);
        match kept {
            Some(bytes) => fs::write(area.at(file), bytes).unwrap(),
            None => fs::remove_file(area.at(file)).unwrap(),
        }
    }
    area.write("main/mine.txt", "edited\n");
    assert_eq!(go().unwrap().followed, [area.at("main")]);
    assert_eq!(area.git("main", &["status", "--porcelain"]), " M mine.txt");
    assert_eq!(fs::read_to_string(area.at("main/mine.txt")).unwrap(), "edited\n");
    assert_eq!(fs::read_to_string(area.at("main/a.txt")).unwrap(), "two\n");
}

#[test]
fn changed_paths_are_those_of_every_new_commit() {
    let area = area();
    let old = area.commit("lane", "before.txt", "x");
    area.commit("lane", "dir/added then removed", "x");
    area.git("lane", &["rm", "-q", "dir/added then removed"]);
    area.commit("lane", "ünï\tcode", "x");
    area.git("lane", &["mv", "a.txt", "moved.txt"]);
    area.git("lane", &["commit", "-q", "-am", "move"]);
    area.commit("main", "of main.txt", "x");
    area.git("lane", &["merge", "-q", "--no-edit", "main"]);
    let lane = area.at("lane");
    let zeros = "0".repeat(40);
    let paths = |not: &[&str]| History::at(&lane).changed_paths("work", not).unwrap();
    let own = ["a.txt", "dir/added then removed", "moved.txt", "ünï\tcode"];
    assert_eq!(paths(&["main", &old]), own);
    assert!(paths(&["main"]).contains(&"before.txt".to_owned()));
    assert_eq!(paths(&["main", &zeros]), paths(&["main"]));
    assert!(paths(&[]).contains(&"of main.txt".to_owned()), "root commits count, too");
    assert_eq!(paths(&["work"]), Vec::<String>::new());
}

#[test]
fn what_somebody_hides_in_a_merge_is_seen() {
    let area = area();
    area.commit("lane", "b.txt", "x");
    let old = area.head("lane");
    area.commit("main", "c.txt", "x");
    area.git("lane", &["merge", "-q", "--no-commit", "--no-ff", "main"]);
    area.write("lane/hidden.txt", "x");
    area.git("lane", &["add", "-A"]);
    area.git("lane", &["commit", "-q", "-m", "merge"]);
    let lane = area.at("lane");
    let history = History::at(&lane);
    assert_eq!(history.changed_paths("work", &["main", &old]).unwrap(), ["hidden.txt"]);
    area.git("main", &["cherry-pick", &old]);
    assert!(!history.is_merged("work", "main").unwrap(), "the merge itself holds something");
}

#[test]
fn objects_of_a_push_are_read_where_they_are() {
    let area = area();
    area.git(".", &["clone", "-q", "--bare", "main", "shared.git"]);
    let new = area.commit("lane", "b.txt", "x");
    let incoming = Incoming {
        objects: area.at("main/.git/objects").into(),
        alternates: area.at("shared.git/objects").into(),
    };
    let shared = area.at("shared.git");
    assert_eq!(History::at(&shared).resolve(&new), Ok(None));
    let history = History::receiving(&shared, Some(&incoming));
    assert_eq!(history.changed_paths(&new, &["main"]).unwrap(), ["b.txt"]);
    assert!(history.reaches(&new, "main").unwrap());
    assert!(!history.reaches("main", &new).unwrap());
}

#[test]
fn work_is_merged_by_ancestry_by_patch_or_as_one_commit() {
    let area = area();
    let (main, lane) = (area.at("main"), area.at("lane"));
    let first = area.commit("lane", "b.txt", "one\n");
    let second = area.commit("lane", "b.txt", "one\ntwo\n");
    let merged = |commit: &str| History::at(&main).is_merged(commit, "main").unwrap();
    assert!(merged("main") && !merged(&first) && !merged(&second));
    git_at(&main, &["cherry-pick", &first]);
    assert!(merged(&first) && !merged(&second));
    git_at(&main, &["reset", "-q", "--hard", "HEAD^"]);
    area.commit("main", "elsewhere.txt", "x\n");
    git_at(&main, &["merge", "-q", "--squash", "work"]);
    git_at(&main, &["commit", "-q", "-m", "all of it"]);
    assert!(merged(&second), "squashed");
    assert!(!merged(&first), "half of it was never there as such");
    // A branch that has more than what was squashed is not merged, nor is one that takes its own work back.
    area.commit("lane", "b.txt", "one\ntwo\nthree\n");
    assert!(!merged("work"));
    git_at(&lane, &["checkout", "-q", "-b", "back", "main"]);
    area.commit("lane", "new.txt", "x\n");
    git_at(&lane, &["rm", "-q", "new.txt"]);
    git_at(&lane, &["commit", "-q", "-m", "back"]);
    assert!(!merged("back"));
}
