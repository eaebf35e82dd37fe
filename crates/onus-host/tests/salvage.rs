//! What a fenced holder leaves behind is kept, byte for byte, and nothing of it is touched.

use super::support::{Area, git_at, try_git_at};
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_host::refs::{Salvaged, salvage};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const REF: &str = "refs/onus/salvage/API-12/3";

fn area() -> Area {
    let area = Area::with_main(&[]);
    area.write("main/kept.txt", "kept\n");
    area.write("main/gone.txt", "gone\n");
    area.write("main/staged.txt", "old\n");
    area.write("main/.gitignore", "*.log\n");
    area.commit("main", "changed.txt", "old\n");
    area.git("main", &["worktree", "add", "-q", "-b", "work", "../lane"]);
    area
}

fn of(area: &Area, dir: Option<&Path>) -> Result<Option<Salvaged>, Refusal> {
    let task: TaskId = "API-12".parse().unwrap();
    salvage(&area.repo("main"), dir, "refs/heads/work", "main", &task, 3)
}

fn of_lane(area: &Area) -> Option<Salvaged> {
    of(area, Some(&area.at("lane"))).unwrap()
}

#[test]
fn nothing_beyond_main_is_nothing_to_keep() {
    let area = area();
    area.write("lane/build.log", "ignored");
    assert_eq!(of_lane(&area), None);
    assert_eq!(of(&area, None), Ok(None));
    assert_eq!(of(&area, Some(&area.at("deleted"))), Ok(None));
    assert!(!try_git_at(&area.at("main"), &["rev-parse", "--verify", "-q", REF]).status.success());
}

#[test]
fn commits_are_kept_as_they_are() {
    let area = area();
    let tip = area.commit("lane", "b.txt", "work\n");
    let salvaged = of(&area, None).unwrap().unwrap();
    assert_eq!((salvaged.refname.as_str(), &salvaged.commit), (REF, &tip));
    assert!(salvaged.uncommitted.is_empty());
    assert_eq!(area.git("main", &["rev-parse", REF]), tip);
}

#[test]
fn a_dirty_tree_is_kept_byte_for_byte_and_stays_as_it_is() {
    let area = area();
    let tip = area.commit("lane", "b.txt", "work\n");
    let lane = area.at("lane");
    let binary: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    fs::write(lane.join("changed.txt"), &binary).unwrap();
    fs::remove_file(lane.join("gone.txt")).unwrap();
    area.write("lane/staged.txt", "staged\n");
    area.git("lane", &["add", "staged.txt"]);
    area.write("lane/new dir/ünï", "untracked\n");
    area.write("lane/.hidden", "no newline");
    area.script("lane/run.sh", "echo hello");
    symlink("kept.txt", lane.join("link")).unwrap();
    symlink("/nowhere/at/all", lane.join("dangling")).unwrap();
    area.write("lane/build.log", "ignored");
    let state = || (git_at(&lane, &["status", "--porcelain"]), git_at(&lane, &["diff", "--cached", "--raw"]));
    let before = state();
    area.script("main/.git/hooks/reference-transaction", "exit 1");

    let salvaged = of_lane(&area).unwrap();
    assert_eq!(state(), before, "neither the tree nor the index is touched");
    let mut left = fs::read_dir(area.at("main/.git/worktrees/lane")).unwrap();
    assert!(left.all(|e| !e.unwrap().file_name().to_string_lossy().starts_with(".index")));
    assert_eq!(area.head("lane"), tip);
    assert_eq!(
        area.git("main", &["rev-parse", REF, &format!("{REF}^")]),
        format!("{}\n{tip}", salvaged.commit)
    );
    let listed = ".hidden changed.txt dangling gone.txt link new dir/ünï run.sh staged.txt";
    assert_eq!(salvaged.uncommitted.first.join(" "), listed);
    assert_eq!(salvaged.left_out, None);

    fs::remove_file(area.at("main/.git/hooks/reference-transaction")).unwrap();
    area.git("main", &["worktree", "add", "-q", "--detach", "../copy", REF]);
    let copy = area.at("copy");
    assert_eq!(fs::read(copy.join("changed.txt")).unwrap(), binary);
    assert_eq!(fs::read_to_string(copy.join("staged.txt")).unwrap(), "staged\n");
    assert_eq!(fs::read_to_string(copy.join("new dir/ünï")).unwrap(), "untracked\n");
    assert_eq!(fs::read_to_string(copy.join(".hidden")).unwrap(), "no newline");
    assert_eq!(fs::metadata(copy.join("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("kept.txt"));
    assert_eq!(fs::read_link(copy.join("dangling")).unwrap(), Path::new("/nowhere/at/all"));
    assert!(!copy.join("gone.txt").exists() && !copy.join("build.log").exists());
    let message = area.git("main", &["log", "-1", "--format=%an %B", REF]);
    assert!(message.starts_with("Onus onus: salvaged work of API-12, epoch 3"), "{message}");
    assert!(message.contains("Onus-Task: API-12"));
}

#[test]
fn once_kept_it_is_not_overwritten() {
    let area = area();
    area.write("lane/new.txt", "first\n");
    let first = of_lane(&area).unwrap();
    area.write("lane/new.txt", "the fenced holder goes on\n");
    area.commit("lane", "b.txt", "work\n");
    let again = of_lane(&area).unwrap();
    assert_eq!((again.commit, again.refname), (first.commit, first.refname));
}

#[test]
fn a_conflict_and_a_detached_head_lose_nothing() {
    let area = area();
    let tip = area.commit("lane", "changed.txt", "mine\n");
    area.commit("main", "changed.txt", "theirs\n");
    assert!(!try_git_at(&area.at("lane"), &["rebase", "-q", "main"]).status.success());
    area.write("lane/note.txt", "half way\n");
    let salvaged = of_lane(&area).unwrap();
    let parents = area.git("main", &["log", "-1", "--format=%P", REF]);
    assert!(parents.ends_with(&tip), "{parents}");
    assert_eq!(area.git("main", &["show", &format!("{REF}:note.txt")]), "half way");
    let conflict = area.git("main", &["show", &format!("{REF}:changed.txt")]);
    assert!(conflict.contains("<<<<<<<") && conflict.contains("mine"), "{conflict}");
    assert!(salvaged.uncommitted.first.contains(&"changed.txt".to_owned()));
    git_at(&area.at("lane"), &["rebase", "--abort"]);
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_the_rest_is_kept() {
    let area = area();
    area.write("lane/new.txt", "x\n");
    // A nested repository without commits cannot be kept in git.
    area.git("lane", &["init", "-q", "nested"]);
    let salvaged = of_lane(&area).unwrap();
    assert!(salvaged.left_out.is_some(), "{salvaged:?}");
    assert_eq!(area.git("main", &["show", &format!("{REF}:new.txt")]), "x");
}

#[test]
fn another_repositorys_tree_is_not_taken() {
    let area = area();
    area.git(".", &["init", "-q", "stranger"]);
    assert!(of(&area, Some(&area.at("stranger"))).is_err());
}
