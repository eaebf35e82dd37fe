//! The anchor, in git and as a directory: the same promises of both.

use super::support::Area;
use onus_core::code::Code;
use onus_host::anchor::Anchor;
use onus_host::env::Env;
use onus_host::repository::find_with;
use std::fs;
use std::path::Path;

const REF: &str = "refs/onus/ledger";

fn in_git(area: &Area, dir: &str) -> Anchor {
    Anchor::Git { repo: find_with(&area.at(dir), &Env::default()).unwrap().repo.unwrap() }
}

/// Every promise that does not depend on where the anchor is.
fn check_promises(anchor: &Anchor) {
    assert_eq!(anchor.tip(), Ok(None));
    assert_eq!(anchor.history(), Ok(vec![]));
    let first = anchor
        .append(None, &[("checkpoint.json", b"{\"n\":1}\n"), ("signature", b"\0\xff\n")], "one")
        .unwrap();
    assert_eq!(anchor.tip(), Ok(Some(first.clone())));
    let second = anchor.append(Some(&first), &[("checkpoint.json", b"{\"n\":2}\n")], "two").unwrap();
    let third = anchor.append(Some(&second), &[("checkpoint.json", b"")], "three").unwrap();
    assert_eq!(anchor.tip(), Ok(Some(third.clone())));
    assert_eq!(anchor.history(), Ok(vec![third.clone(), second.clone(), first.clone()]));

    let read = |id: &str, file: &str| anchor.read(id, file).unwrap();
    assert_eq!(read(&first, "checkpoint.json").as_deref(), Some(&b"{\"n\":1}\n"[..]));
    assert_eq!(read(&first, "signature").as_deref(), Some(&b"\0\xff\n"[..]));
    assert_eq!(read(&second, "checkpoint.json").as_deref(), Some(&b"{\"n\":2}\n"[..]));
    assert_eq!(read(&third, "checkpoint.json").as_deref(), Some(&b""[..]));
    assert_eq!(read(&second, "signature"), None);
    for (id, file) in
        [("", "signature"), ("HEAD", "signature"), ("--all", "signature"), (&first, "../x"), (&first, "")]
    {
        assert_eq!(read(id, file), None, "{id}:{file}");
    }

    for stale in [None, Some(first.as_str()), Some(second.as_str())] {
        let refusal = anchor.append(stale, &[("checkpoint.json", b"late")], "late").unwrap_err();
        assert_eq!(refusal.code, Code::StoreBusy, "{stale:?}: {}", refusal.detail);
        assert!(refusal.hint.is_some());
    }
    assert_eq!(anchor.tip(), Ok(Some(third)));
    for name in ["", ".about", "a/b", "-x", "A", "a b", ".."] {
        assert_eq!(anchor.append(None, &[(name, b"")], "").unwrap_err().code, Code::Internal, "{name}");
    }
}

#[test]
fn a_git_anchor_keeps_its_promises() {
    let area = Area::with_main(&[]);
    let head = area.git("main", &["rev-parse", "HEAD"]);
    check_promises(&in_git(&area, "main"));
    assert_eq!(area.git("main", &["rev-parse", "HEAD"]), head, "nothing else moves");
    assert_eq!(area.git("main", &["status", "--porcelain"]), "");
    let log = area.git("main", &["log", "-1", "--format=%an <%ae> %cn <%ce> %s", REF]);
    assert_eq!(log, "Onus <onus@localhost> Onus <onus@localhost> three");
    area.git("main", &["fsck", "--strict"]);
}

#[test]
fn a_git_anchor_in_every_kind_of_repository() {
    check_promises(&in_git(&Area::with_main(&["--object-format=sha256"]), "main"));
    check_promises(&in_git(&Area::with_main(&["--ref-format=reftable"]), "main"));
    let area = Area::with_main(&[]);
    area.git(".", &["clone", "-q", "--bare", "main", "bare.git"]);
    check_promises(&in_git(&area, "bare.git"));
    area.git("main", &["worktree", "add", "-q", "../lane"]);
    check_promises(&in_git(&area, "lane"));
    assert_eq!(in_git(&area, "lane").tip(), in_git(&area, "main").tip(), "one anchor for all worktrees");
}

#[test]
fn a_directory_anchor_keeps_its_promises() {
    let area = Area::new();
    check_promises(&Anchor::Directory(area.at("anchors/workspace")));
    let names: Vec<_> =
        fs::read_dir(area.at("anchors/workspace")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "no temporary directory stays: {names:?}");
}

#[test]
fn packed_references_are_found() {
    let area = Area::with_main(&[]);
    let anchor = in_git(&area, "main");
    let first = anchor.append(None, &[("a", b"1")], "one").unwrap();
    for n in 0..50 {
        area.git("main", &["update-ref", &format!("refs/tags/t{n}"), "HEAD"]);
    }
    area.git("main", &["pack-refs", "--all"]);
    assert!(!area.at("main/.git").join(REF).exists());
    assert_eq!(anchor.tip(), Ok(Some(first.clone())));
    // A loose reference is newer than the packed one.
    let second = anchor.append(Some(&first), &[("a", b"2")], "two").unwrap();
    assert_eq!(anchor.tip(), Ok(Some(second)));
    // A reference whose name only ends in ours is another one.
    area.git("main", &["update-ref", "-d", REF]);
    area.git("main", &["update-ref", &format!("refs/heads/x/{REF}"), "HEAD"]);
    area.git("main", &["pack-refs", "--all"]);
    assert_eq!(anchor.tip(), Ok(None));
}

#[test]
fn what_is_no_object_id_is_never_used() {
    let area = Area::with_main(&[]);
    let anchor = in_git(&area, "main");
    let first = anchor.append(None, &[("a", b"1")], "one").unwrap();
    let file = area.at("main/.git").join(REF);
    for content in
        ["", "ref: refs/heads/main\n", "--help\n", &first[..39], &first.to_uppercase(), "\u{1b}[2J"]
    {
        fs::write(&file, content).unwrap();
        let refusal = anchor.tip().unwrap_err();
        assert_eq!(refusal.code, Code::LedgerBroken, "{content:?}");
        assert!(!refusal.detail.contains('\u{1b}'));
        assert_eq!(anchor.history().unwrap_err().code, Code::LedgerBroken);
    }
    fs::remove_file(&file).unwrap();
    fs::write(area.at("main/.git/packed-refs"), format!("nonsense {REF}\n")).unwrap();
    assert_eq!(anchor.tip().unwrap_err().code, Code::LedgerBroken);
}

/// Hooks are the team's; they neither see nor stop the anchor, and a replaced commit does not stand in for it.
#[test]
fn neither_hooks_nor_replacements_touch_a_git_anchor() {
    let area = Area::with_main(&[]);
    let hook = area.at("main/.git/hooks/reference-transaction");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let anchor = in_git(&area, "main");
    let first = anchor.append(None, &[("a", b"true")], "one").unwrap();
    fs::remove_file(&hook).unwrap();
    area.git("main", &["update-ref", "refs/tags/forged", "HEAD"]);
    area.git("main", &["replace", &first, "HEAD"]);
    assert_eq!(anchor.read(&first, "a").unwrap().as_deref(), Some(&b"true"[..]));
}

#[test]
fn of_many_that_append_at_once_one_wins() {
    let (area, directory) = (Area::with_main(&[]), Area::new());
    directory.mkdir("a");
    for anchor in [in_git(&area, "main"), Anchor::Directory(directory.at("a"))] {
        let results: Vec<_> = std::thread::scope(|scope| {
            let append = |n: u8| anchor.append(None, &[("a", &[n][..])], "race");
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || append(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winners: Vec<_> = results.iter().flatten().collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        assert_eq!(anchor.tip().unwrap().as_ref(), Some(winners[0]));
        assert!(
            results.iter().flat_map(|r| r.as_ref().err()).all(|r| r.code == Code::StoreBusy),
            "{results:?}"
        );
    }
    let left = fs::read_dir(directory.at("a")).unwrap().count();
    assert_eq!(left, 1, "those that lost leave nothing behind");
}

#[test]
fn changes_to_a_directory_anchor_show() {
    let area = Area::new();
    let dir = area.at("a");
    let anchor = Anchor::Directory(dir.clone());
    let first = anchor.append(None, &[("a", b"1")], "one").unwrap();
    let second = anchor.append(Some(&first), &[("a", b"2")], "two").unwrap();
    let third = anchor.append(Some(&second), &[("a", b"3")], "three").unwrap();
    let code = |path: &Path, content: &str| {
        let kept = fs::read(path).unwrap();
        fs::write(path, content).unwrap();
        let code = anchor.history().unwrap_err().code;
        fs::write(path, kept).unwrap();
        code
    };
    assert_eq!(code(&dir.join("00000001/a"), "x"), Code::LedgerBroken);
    assert_eq!(code(&dir.join("00000002/.about"), "after nothing\n"), Code::LedgerBroken);
    assert_eq!(code(&dir.join("00000003/.about"), &format!("after {third}\n")), Code::LedgerBroken);
    fs::write(dir.join("00000001/b"), "more").unwrap();
    assert_eq!(anchor.read(&first, "a").unwrap_err().code, Code::LedgerBroken);
    fs::remove_dir_all(dir.join("00000002")).unwrap();
    assert_eq!(anchor.history().unwrap_err().code, Code::LedgerBroken);
    assert_eq!(anchor.read(&second, "a"), Ok(None));
}

#[test]
fn only_the_repositorys_own_store_is_anchored_in_it() {
    let area = Area::with_main(&[]);
    area.mkdir("main/.git/onus");
    area.mkdir("main/onus");
    area.mkdir("main/.git/refs/onus");
    area.mkdir("main/.git/other");
    let env = Env { data_home: Some("/data".into()), ..Env::default() };
    let of = |store: &str| Anchor::of_store(&area.at(store), "0198-uid", &env).unwrap();
    assert_eq!(of("main/.git/onus/onus.db"), in_git(&area, "main"));
    let directory = Anchor::Directory("/data/onus/anchors/0198-uid".into());
    for store in [
        "main/onus/onus.db",
        "main/test.db",
        ".onus/onus.db",
        "main/.git/refs/onus/onus.db",
        "main/.git/other.db",
        "main/.git/other/onus.db",
    ] {
        assert_eq!(of(store), directory, "{store}");
    }
    assert_eq!(Anchor::of_store(&area.at("x.db"), "../up", &env).unwrap_err().code, Code::InvalidInput);
    // A repository whose store has not been made yet.
    fs::remove_dir(area.at("main/.git/onus")).unwrap();
    assert_eq!(of("main/.git/onus/onus.db"), in_git(&area, "main"));
}
