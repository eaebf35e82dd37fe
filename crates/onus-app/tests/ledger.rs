//! The ledger on real SQLite files and real git (mission A7): honest stores verify, and nothing else does.

use super::audit::{self, Case, git, handle, in_own_process, open, settle};
use onus_app::import::{Import, Run};
use onus_app::ledger::FindingKind;
use onus_app::progress::Silent;
use onus_core::code::Code;
use std::fs;

fn kinds(case: &mut Case) -> Vec<FindingKind> {
    case.verify().findings.iter().map(|found| found.kind).collect()
}

#[test]
fn an_honest_store_verifies() {
    if !in_own_process("tests::ledger::an_honest_store_verifies") {
        return;
    }
    for mut case in [Case::in_git(), Case::outside_git()] {
        let empty = case.verify();
        assert!(empty.ok, "{empty:#?}");
        case.live_a_little();
        let view = case.verify();
        assert!(view.ok, "{view:#?}");
        assert_eq!((view.chains, view.checkpoints, view.anchored, view.superseded), (8, 2, 2, 0));
        assert!(view.refusal().is_none());
        // What came after the last checkpoint is fine, too.
        case.note("@ada", "T-5", None, "anybody?");
        let later = case.verify();
        assert!(later.ok && later.entries == view.entries + 1, "{later:#?}");
    }
}

/// A long record is read in turns: what belongs together is put together, wherever one turn ends and the next begins.
#[test]
fn a_long_record_is_followed_to_its_end() {
    if !in_own_process("tests::ledger::a_long_record_is_followed_to_its_end") {
        return;
    }
    let mut case = Case::outside_git();
    case.live_a_little();
    let input: String = (0..17_000).map(|n| format!("{{\"title\":\"task {n}\"}}\n")).collect();
    let (request, ada) = ("long".parse().unwrap(), handle("@ada"));
    let import =
        Import { request: &request, actor: Some(&ada), project: None, input: &input, run: Run::Real };
    case.onus.import_jsonl(&import, &mut Silent).unwrap();
    // A story that goes on long after its task's row was read.
    case.note("@ada", "T-5", None, "anybody?");
    case.checkpoint();
    let view = case.verify();
    assert!(view.ok && view.entries > 17_000, "{view:#?}");
    let store = rusqlite::Connection::open(&case.path).unwrap();
    for seq in [8_192, 8_193, 16_384, 16_385, view.entries] {
        let edit = |table: &str, place: &str, by: i64| {
            let number = if table == "task" { "updated_at" } else { "at" };
            let sql = format!("UPDATE {table} SET {number} = {number} + ?1 WHERE {place} = ?2");
            store.execute(&sql, [by, seq]).unwrap()
        };
        assert_eq!(edit("ledger", "seq", 1), 1);
        let places: Vec<_> = case.verify().findings.iter().map(|found| found.seq).collect();
        assert!(places.contains(&Some(seq)), "an edit of {seq} is found at {places:?}");
        edit("ledger", "seq", -1);
        if edit("task", "born", 1) == 1 {
            assert!(kinds(&mut case).contains(&FindingKind::RowDiffers), "the row that was born at {seq}");
            edit("task", "born", -1);
        }
    }
    assert!(case.verify().ok);
}

#[test]
fn a_checkpoint_is_made_once_signed_and_anchored() {
    if !in_own_process("tests::ledger::a_checkpoint_is_made_once_signed_and_anchored") {
        return;
    }
    let mut case = Case::in_git();
    let refused = case.onus.checkpoint(None).unwrap_err();
    assert_eq!(refused.code, Code::IdentityRequired);
    assert_eq!(case.onus.checkpoint(Some(&handle("@nobody"))).unwrap_err().code, Code::UnknownWorker);
    case.live_a_little();
    let repository = case.directory.path().to_owned();
    let tip = git(&repository, &["rev-parse", "refs/onus/ledger"]);
    let again = case.checkpoint();
    assert_eq!(
        (again.outcome.as_str(), again.anchor.kind.as_str(), &again.anchor.id),
        ("existing", "git", &tip)
    );
    assert_eq!(git(&repository, &["rev-parse", "refs/onus/ledger"]), tip, "nothing new, nothing done");
    let document = git(&repository, &["show", "refs/onus/ledger:checkpoint.json"]);
    let anchored: onus_core::ledger::Checkpoint = serde_json::from_str(&document).unwrap();
    assert_eq!((anchored.digest().to_string(), anchored.seq), (again.digest.clone(), again.seq));
    assert_eq!(git(&repository, &["show", "refs/onus/ledger:signature"]), again.signature);
    let heads = git(&repository, &["show", "refs/onus/ledger:heads.jsonl"]);
    assert!(heads.contains("\"T-2\"") && !heads.contains("\"T-1\""), "only what moved: {heads}");
    // New work gives a new one on top.
    case.note("@ada", "T-5", None, "anybody?");
    let next = case.checkpoint();
    assert_eq!(next.outcome, "created");
    assert_eq!(git(&repository, &["rev-parse", "refs/onus/ledger^"]), tip);
    assert_eq!(case.verify().anchored, 3);
}

/// A crash between the steps of a checkpoint leaves less done, never something wrong.
#[test]
fn a_checkpoint_that_crashed_is_finished_by_the_next() {
    if !in_own_process("tests::ledger::a_checkpoint_that_crashed_is_finished_by_the_next") {
        return;
    }
    for mut case in [Case::in_git(), Case::outside_git()] {
        case.add("one", &[]);
        case.checkpoint();
        case.add("two", &[]);
        let made = case.checkpoint();
        // After anchoring, before it was noted in the store.
        let raw = rusqlite::Connection::open(&case.path).unwrap();
        raw.execute("UPDATE workspace SET anchor = NULL", []).unwrap();
        assert!(case.verify().ok);
        case.claim("@bot", "T-1", "ws-1");
        let healed = case.onus.checkpoint(Some(&handle("@ada"))).unwrap();
        assert_eq!(healed.outcome, "created");
        // After storing, before anchoring.
        raw.execute("UPDATE workspace SET anchor = ?1", [&made.anchor.id]).unwrap();
        match made.anchor.kind.as_str() {
            "git" => {
                git(case.directory.path(), &["update-ref", "refs/onus/ledger", &made.anchor.id]);
            }
            _ => {
                let number = healed.anchor.id.split('-').next().unwrap();
                let anchors = std::env::var("ONUS_KEY_DIR").unwrap().replace("/keys", "/anchors");
                let entry = fs::read_dir(anchors)
                    .unwrap()
                    .map(|e| e.unwrap().path().join(number))
                    .find(|p| p.is_dir());
                fs::remove_dir_all(entry.unwrap()).unwrap();
            }
        }
        let again = case.checkpoint();
        assert_eq!((again.outcome.as_str(), again.seq), ("existing", healed.seq));
        let view = case.verify();
        assert!(view.ok && view.anchored == 3, "{view:#?}");
    }
}

#[test]
fn many_checkpoints_at_once_are_harmless() {
    if !in_own_process("tests::ledger::many_checkpoints_at_once_are_harmless") {
        return;
    }
    let mut case = Case::in_git();
    case.live_a_little();
    let path = case.path.clone();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut onus = open(path);
                for round in 0..4 {
                    onus.add_worker(
                        Some(&handle("@ada")),
                        &audit::worker(&format!("@w{n}-{round}"), onus_core::worker::Kind::Agent),
                    )
                    .unwrap();
                    onus.checkpoint(Some(&handle("@bot"))).unwrap();
                }
            });
        }
    });
    case.checkpoint();
    let view = case.verify();
    assert!(view.ok, "{view:#?}");
    assert!(view.checkpoints >= 4 && view.anchored >= 3, "{view:#?}");
}

#[test]
fn a_restored_backup_grants_nothing_until_a_person_says_so() {
    if !in_own_process("tests::ledger::a_restored_backup_grants_nothing_until_a_person_says_so") {
        return;
    }
    for mut case in [Case::in_git(), Case::outside_git()] {
        case.live_a_little();
        let old = case.claim("@bee", "T-5", "ws-3");
        settle(&case.path);
        let backup = fs::read(&case.path).unwrap();
        // Life goes on and is anchored; then the backup comes back.
        case.note("@bee", "T-5", Some(&old), "lost with the restore");
        case.complete("@bee", "T-5", &old);
        case.checkpoint();
        restore(&mut case, &backup);

        let refused = case.try_claim("@bot", "T-2", "ws-4").unwrap_err();
        assert_eq!(refused.code, Code::StoreBehindAnchor);
        assert_eq!(case.onus.checkpoint(Some(&handle("@bot"))).unwrap_err().code, Code::StoreBehindAnchor);
        let view = case.verify();
        assert!(view.findings.iter().any(|found| found.kind == FindingKind::StoreBehind), "{view:#?}");
        let lost = view.findings.iter().filter(|found| found.kind == FindingKind::Truncated);
        let lost: Vec<Option<&str>> = lost.map(|found| found.task.as_deref()).collect();
        assert_eq!(lost, [None, Some("T-5")], "the store's last write, and the chain that lost its tail");

        for (actor, reason, code) in [
            (None, Some("restored"), Code::IdentityRequired),
            (Some("@bot"), Some("restored"), Code::HumanRequired),
            (Some("@ada"), None, Code::ReasonRequired),
            (Some("@ada"), Some("  "), Code::ReasonRequired),
        ] {
            let actor = actor.map(handle);
            assert_eq!(case.onus.raise_generation(actor.as_ref(), reason).unwrap_err().code, code);
        }
        let raised = case.onus.raise_generation(Some(&handle("@ada")), Some("restored")).unwrap();
        assert_eq!((raised.generation, raised.checkpoint.outcome.as_str()), (2, "created"));
        let view = case.verify();
        assert!(view.ok, "{view:#?}");
        assert_eq!(view.superseded, 1);

        let late = onus_core::command::Command::Renew { ttl: None, process: None };
        let fenced = case.try_submit("@bee", Some("T-5"), Some(&old), late).unwrap_err();
        assert_eq!(fenced.code, Code::Fenced);
        let token = case.claim("@bot", "T-2", "ws-4");
        assert_eq!(token.generation, 2);
        case.checkpoint();
        assert!(case.verify().ok);
    }
}

fn restore(case: &mut Case, backup: &[u8]) {
    let path = case.path.clone();
    case.onus = open(&case.directory.path().join("elsewhere.db"));
    for suffix in ["-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        drop(fs::remove_file(name));
    }
    fs::write(&path, backup).unwrap();
    case.onus = open(&path);
}

/// A store that was restored twice must not come back to a generation that was already given out.
#[test]
fn a_generation_is_never_given_twice() {
    if !in_own_process("tests::ledger::a_generation_is_never_given_twice") {
        return;
    }
    let mut case = Case::in_git();
    case.live_a_little();
    settle(&case.path);
    let backup = fs::read(&case.path).unwrap();
    case.note("@ada", "T-5", None, "lost");
    case.checkpoint();
    for generation in [2, 3] {
        restore(&mut case, &backup);
        let raised = case.onus.raise_generation(Some(&handle("@ada")), Some("restored again")).unwrap();
        assert_eq!(raised.generation, generation);
        let view = case.verify();
        assert!(view.ok, "{view:#?}");
    }
    assert_eq!(case.verify().superseded, 2);
}

#[test]
fn an_anchor_that_is_gone_or_rewound_shows() {
    if !in_own_process("tests::ledger::an_anchor_that_is_gone_or_rewound_shows") {
        return;
    }
    let mut case = Case::in_git();
    case.live_a_little();
    let repository = case.directory.path().to_owned();
    let tip = git(&repository, &["rev-parse", "refs/onus/ledger"]);
    git(&repository, &["update-ref", "refs/onus/ledger", "refs/onus/ledger^"]);
    assert_eq!(kinds(&mut case), [FindingKind::AnchorDiffers]);
    git(&repository, &["update-ref", "-d", "refs/onus/ledger"]);
    assert_eq!(kinds(&mut case), [FindingKind::AnchorMissing]);
    git(&repository, &["update-ref", "refs/onus/ledger", &tip]);
    assert!(case.verify().ok);
    // Somebody else's commit on top of it.
    let empty = git(&repository, &["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let foreign = git(&repository, &["commit-tree", "-m", "x", "-p", &tip, &empty]);
    git(&repository, &["update-ref", "refs/onus/ledger", &foreign]);
    assert_eq!(kinds(&mut case), [FindingKind::AnchorDiffers]);
    assert_eq!(case.onus.checkpoint(Some(&handle("@bot"))).unwrap_err().code, Code::StoreBehindAnchor);
}

#[test]
fn an_export_is_verified_by_the_documented_program() {
    if !in_own_process("tests::ledger::an_export_is_verified_by_the_documented_program") {
        return;
    }
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let page = include_str!("../../../docs/reference/ledger.md");
    let program = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let mut case = Case::in_git();
    case.live_a_little();
    let directory = case.directory.path().to_owned();
    let (script, export) = (directory.join("verify.py"), directory.join("ledger.jsonl"));
    fs::write(&script, program).unwrap();
    let mut bytes = Vec::new();
    let view = case.onus.export_ledger(&mut bytes, &mut Silent).unwrap();
    let exported = String::from_utf8(bytes).unwrap();
    assert_eq!(exported.lines().count() as i64, 1 + view.entries + view.checkpoints);
    let run = |content: &str| {
        fs::write(&export, content).unwrap();
        let output = std::process::Command::new("python3").arg(&script).arg(&export).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (ok, said) = run(&exported);
    assert!(ok, "{said}");
    assert!(said.contains(&format!("{} entries", view.entries)), "{said}");
    for (what, from, to) in [
        ("a verb", "\"verb\":\"noted\"", "\"verb\":\"renewed\""),
        ("a time", "\"at_ms\":1", "\"at_ms\":2"),
        ("an actor", "\"actor\":\"@bee\"", "\"actor\":\"@bot\""),
        ("a signature", "\"signature\":\"", "\"signature\":\"00"),
        ("a root", "\"root\":\"", "\"root\":\"0"),
    ] {
        let bent = exported.replacen(from, to, 1);
        assert_ne!(bent, exported, "{what}");
        assert!(!run(&bent).0, "{what}");
    }
    let lines: Vec<&str> = exported.lines().collect();
    for gone in [2, lines.len() - 3] {
        let fewer: Vec<&str> =
            lines.iter().enumerate().filter(|(n, _)| *n != gone).map(|(_, line)| *line).collect();
        assert!(!run(&(fewer.join("\n") + "\n")).0, "without line {gone}");
    }
}
