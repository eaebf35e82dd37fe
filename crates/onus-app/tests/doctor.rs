//! `doctor` on real files: a sound store is well, and each ill shows by its name. It changes nothing.

use super::audit::{self, Case, git, in_own_process, open, settle};
use onus_app::Onus;
use onus_app::doctor::DoctorView;
use onus_app::progress::Silent;
use onus_core::code::Code;
use onus_core::settings::Settings;
use onus_store::sqlite::{Options, Sqlite};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn doctor(case: &mut Case) -> DoctorView {
    case.onus.doctor(&mut Silent).unwrap()
}

/// The names of the checks that failed.
fn ills(case: &mut Case) -> Vec<String> {
    doctor(case).checks.into_iter().filter(|check| !check.ok).map(|check| check.name).collect()
}

fn lived_in() -> Case {
    let mut case = Case::in_git();
    case.live_a_little();
    case
}

#[test]
fn a_sound_store_is_well_and_stays_as_it_is() {
    if !in_own_process("tests::doctor::a_sound_store_is_well_and_stays_as_it_is") {
        return;
    }
    for mut case in [lived_in(), Case::outside_git()] {
        settle(&case.path);
        let before = fs::read(&case.path).unwrap();
        let view = doctor(&mut case);
        assert!(view.ok && view.refusal().is_none(), "{view:#?}");
        assert!(view.checks.len() >= 16 && view.findings.is_empty(), "{view:#?}");
        drop(case.onus);
        settle(&case.path);
        assert!(fs::read(&case.path).unwrap() == before, "it only looks");
    }
}

#[test]
fn damage_by_hand_shows_by_name() {
    if !in_own_process("tests::doctor::damage_by_hand_shows_by_name") {
        return;
    }
    let case = lived_in();
    settle(&case.path);
    let whole = fs::read(&case.path).unwrap();
    let mut case = case;
    for (sql, name) in [
        ("UPDATE session SET ended_at = NULL, end_reason = NULL WHERE task = 'T-1'", "sessions"),
        ("UPDATE task SET lease_id = zeroblob(16) WHERE id = 'T-3'", "leases"),
        ("UPDATE assignment SET epoch = 9 WHERE task = 'T-3'", "leases"),
        (
            "DROP INDEX assignment_live; UPDATE assignment SET workstation = 'ws-2' WHERE task = 'T-3'",
            "workstations",
        ),
        (
            "CREATE TRIGGER quiet AFTER INSERT ON note BEGIN DELETE FROM note WHERE seq = NEW.seq; END",
            "schema",
        ),
        ("DROP INDEX ledger_chain", "schema"),
        ("CREATE INDEX another ON task (title)", "schema"),
        ("UPDATE project SET last_number = 1", "numbers"),
        ("UPDATE request SET seq = 99999 WHERE id = (SELECT min(id) FROM request)", "requests"),
        (
            r#"INSERT OR REPLACE INTO probe VALUES (1, 'ws-1', 1,
                '[{"probe":"tcp:127.0.0.1:1","at":"2026-01-01T00:00:00.000Z","verdict":"passed","detail":"x","took_ms":1}]')"#,
            "probes",
        ),
        ("INSERT OR REPLACE INTO probe VALUES (1, 'ws-1', 1, 'nonsense')", "probes"),
        (
            "INSERT INTO note (seq, workspace, task, kind, text) VALUES (9999, 1, 'T-99', 'comment', 'x')",
            "references",
        ),
        ("UPDATE workspace SET public_key = lower(hex(zeroblob(32)))", "key"),
        ("UPDATE ledger SET at = at + 9999999999 WHERE seq = (SELECT max(seq) FROM ledger)", "clock"),
        ("DELETE FROM checkpoint", "anchor"),
        ("UPDATE task SET title = 'other' WHERE id = 'T-1'", "ledger"),
    ] {
        case.onus = open(&case.directory.path().join("elsewhere.db"));
        for suffix in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{suffix}", case.path.display())));
        }
        fs::write(&case.path, &whole).unwrap();
        let raw = Connection::open(&case.path).unwrap();
        raw.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
        drop(raw);
        case.onus = open(&case.path);
        let ills = ills(&mut case);
        assert!(ills.iter().any(|ill| ill == name), "{sql}: {ills:?}");
    }
}

#[test]
fn noise_in_any_page_shows() {
    if !in_own_process("tests::doctor::noise_in_any_page_shows") {
        return;
    }
    let Case { directory, path, onus, .. } = lived_in();
    drop(onus);
    settle(&path);
    let whole = fs::read(&path).unwrap();
    let mut rng = audit::Rng::seeded(3);
    for page in 1..whole.len() / 4096 {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].copy_from_slice(&rng.bytes(4096));
        fs::write(&path, bytes).unwrap();
        for suffix in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{suffix}", path.display())));
        }
        // Some pages the store does not even open without.
        if let Ok(store) = Sqlite::open(&path, &Options::one_shot(onus_host::clock::now)) {
            let mut onus = Onus {
                store: Box::new(store),
                settings: Settings::default(),
                path: path.clone(),
                place: onus_host::repository::find(path.parent().unwrap()).unwrap(),
                sight: onus_app::Sight::Workstations,
                bearer: None,
            };
            let view = onus.doctor(&mut Silent).unwrap();
            assert!(!view.ok && view.refusal().is_some(), "page {page}: {view:#?}");
        }
    }
    drop(directory);
}

#[test]
fn surroundings_show_by_name() {
    if !in_own_process("tests::doctor::surroundings_show_by_name") {
        return;
    }
    let mut case = lived_in();
    let chmod = |mode| fs::set_permissions(&case.path, fs::Permissions::from_mode(mode)).unwrap();
    chmod(0o644);
    let path = case.path.clone();
    assert_eq!(ills(&mut case), ["permissions"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    git(case.directory.path(), &["update-ref", "-d", "refs/onus/ledger"]);
    assert_eq!(ills(&mut case), ["anchor", "ledger"]);
    let refusal = doctor(&mut case).refusal().unwrap();
    assert_eq!((refusal.code, refusal.findings.len()), (Code::LedgerBroken, 2));
    let keys = std::env::var("ONUS_KEY_DIR").unwrap();
    fs::rename(&keys, format!("{keys}-away")).unwrap();
    let view = doctor(&mut case);
    let key = view.checks.iter().find(|check| check.name == "key").unwrap();
    assert!(key.ok && key.detail.starts_with("none"), "who has no key can still verify: {key:?}");
    fs::rename(format!("{keys}-away"), keys).unwrap();
    fs::write(format!("{}.schema-1-0.backup", path.display()), "").unwrap();
    let backups = doctor(&mut case).checks.into_iter().find(|check| check.name == "backups").unwrap();
    assert!(backups.ok && backups.detail.contains("onus.db.schema-1-0.backup"), "{backups:?}");
}
