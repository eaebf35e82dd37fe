//! Every column of every table, changed behind the program's back: `ledger verify` or `doctor` notices, or the list beside
//! this file says why neither can. A new column without a line there fails.

use super::audit::{Case, handle, in_own_process, open, open_database, settle};
use onus_app::doctor::DoctorView;
use onus_app::idempotent_admin::Asker;
use onus_app::progress::Silent;
use onus_app::remote::{self, CallName};
use onus_core::command::{Command, Run, Stage};
use onus_core::event::{MilestoneAdded, ViewSaved, WorkstationAdded};
use onus_core::evidence::{Ground, Proof};
use onus_core::id::{CheckId, CommitId};
use onus_core::lease::Token;
use onus_core::probe::{ProbeResult, Verdict};
use onus_core::task::{Check, CheckKind, CheckState};
use onus_core::text::Text;
use onus_core::time::Timestamp;
use onus_testkit::Cluster;
use rusqlite::Connection;
use rusqlite::types::Value;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tamper_columns.txt");

/// What becomes of a change in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Noticed,
    Unnoticed,
    /// The store has no row to change, or the file itself refuses the change.
    Empty,
}

impl Fate {
    const fn word(self) -> &'static str {
        match self {
            Fate::Noticed => "noticed",
            Fate::Unnoticed => "unnoticed",
            Fate::Empty => "empty",
        }
    }
}

/// Rows that the usual history has none of.
fn live_more(case: &mut Case) {
    let ada = handle("@ada");
    let check =
        Check { command: "cargo test".into(), state: CheckState::Approved, kind: CheckKind::default() };
    let id: CheckId = check.id();
    case.submit("@ada", "T-5", None, Command::AddCheck { check });
    let token = case.claim("@bot", "T-5", "ws-3");
    let run = Run {
        check: id,
        exit: Some(0),
        signal: None,
        timed_out: false,
        took_ms: 5,
        ground: Ground { commit: Some("0123456789".repeat(4).parse().unwrap()), dirty: false },
        output: Text::new("ok".into()),
        output_length: 2,
        output_sha256: "ab".repeat(32),
        environment: "linux".into(),
        sandbox: "none".into(),
    };
    case.submit("@bot", "T-5", Some(&token), Command::RecordCheck { run: Box::new(run) });
    let opinion = serde_json::from_value(json!({ "verdict": "approved", "classification": "implemented",
        "commit": "0123456789".repeat(4), "workstation": null, "note": null }));
    case.submit("@ada", "T-5", None, Command::Review { opinion: Box::new(opinion.unwrap()) });
    land(case, &token);
    let milestone: MilestoneAdded = serde_json::from_value(
        json!({ "name": "m1", "title": "One", "selection": { "tasks": ["T-1", "T-2"] }, "target": "2026-11-30" }),
    )
    .unwrap();
    case.onus.add_milestone(Some(&ada), &milestone).unwrap();
    let tagged: MilestoneAdded =
        serde_json::from_value(json!({ "name": "m2", "title": "Two", "selection": { "tag": "one" } }))
            .unwrap();
    case.onus.add_milestone(Some(&ada), &tagged).unwrap();
    let view: ViewSaved =
        serde_json::from_value(json!({ "name": "Ours", "query": { "tag": "one" } })).unwrap();
    case.onus.save_view(Some(&ada), &view).unwrap();
    let place = WorkstationAdded {
        probes: vec!["tcp:127.0.0.1:1".parse().unwrap()],
        ..WorkstationAdded::logical("ws-9".parse().unwrap())
    };
    case.onus.add_workstation(Some(&ada), &place).unwrap();
    let seen = ProbeResult {
        probe: "tcp:127.0.0.1:1".into(),
        at: Timestamp(1_700_000_000_000),
        took_ms: 1,
        verdict: Verdict::Failed,
        detail: "refused".into(),
    };
    case.onus.record_probes(Some(&ada), &place.name, &[seen]).unwrap();
    let asker = Asker::from(Some(&ada));
    for (call, arguments) in [
        (CallName::AddClone, json!([{ "id": "0123456789abcdef", "host": "h", "path": "/srv/x/.git" }])),
        (
            CallName::NameMainOfRecord,
            json!([{ "remote": "origin", "branch": "main", "url": "ssh://h/x", "guarded": false }]),
        ),
    ] {
        remote::answer(&mut case.onus, asker, call, &arguments.to_string()).unwrap();
    }
    case.onus.quarantine(Some(&ada), &"ws-4".parse().unwrap(), Some("smoke")).unwrap();
    let exception = Command::RequestException {
        on: "T-2".parse().unwrap(),
        reason: Some("hurry".into()),
        rollback: Some("undo it".into()),
        adr: None,
    };
    case.submit("@bot", "T-7", None, exception);
    case.submit("@ada", "T-7", None, Command::ApproveException { on: "T-2".parse().unwrap() });
    case.onus.index_words().unwrap();
    case.checkpoint();
}

/// The same commit in the main of record.
fn land(case: &mut Case, token: &Token) {
    let commit: CommitId = "0123456789".repeat(4).parse().unwrap();
    let landed = serde_json::from_value(json!({ "remote": "origin", "branch": "main", "commits": [commit],
        "adopted": [], "tip": commit, "vouched": false }));
    let ground = Ground { commit: Some(commit.clone()), dirty: false };
    let merge = Command::Merge {
        commit,
        onto: "abcdef0123".repeat(4).parse().unwrap(),
        checks: vec!["cargo test".into()],
        root_cause: None,
        stage: Stage::Land,
        proof: Proof { ground, landed: Some(landed.unwrap()), ..Proof::default() },
    };
    case.submit("@bot", "T-5", Some(token), merge);
}

fn words(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Every table with its columns and the columns of its key.
fn columns(db: &Connection) -> Vec<(String, String, String)> {
    let tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut all = Vec::new();
    for table in words(db, tables) {
        let key =
            words(db, &format!("SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk"))
                .join(", ");
        for column in words(db, &format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid")) {
            all.push((table.clone(), column, key.clone()));
        }
    }
    all
}

/// Values that a tamperer might put in a place: that of another row, and one of its own making.
fn forged(db: &Connection, table: &str, column: &str, old: &Value, kind: &str) -> Vec<Value> {
    let other = format!("SELECT \"{column}\" FROM {table} WHERE \"{column}\" <> ?1 LIMIT 1");
    let other = db.query_row(&other, [old], |row| row.get::<_, Value>(0)).ok();
    let own = match old {
        Value::Integer(flag @ (0 | 1)) => Value::Integer(1 - flag),
        Value::Integer(number) => Value::Integer(number + 1_000),
        Value::Text(text) => {
            let end = text.chars().next_back().unwrap_or('a');
            let next = if end == '1' || end == 'a' { 'b' } else { '1' };
            Value::Text(text.chars().take(text.chars().count().saturating_sub(1)).chain([next]).collect())
        }
        Value::Blob(bytes) => Value::Blob(bytes.iter().map(|byte| byte ^ 1).collect()),
        Value::Null | Value::Real(_) => match kind {
            "INTEGER" => Value::Integer(1),
            "BLOB" => Value::Blob(vec![7; 32]),
            _ => Value::Text("x".into()),
        },
    };
    other.into_iter().chain([own]).collect()
}

/// Whether anybody notices what a store became.
fn is_noticed(path: &Path) -> bool {
    let mut onus = open(path);
    let verified = onus.verify(&mut Silent);
    verified.map_or(true, |view| !view.ok) || onus.doctor(&mut Silent).map_or(true, |view| !view.ok)
}

fn fate(path: &Path, whole: &[u8], (table, column, key): &(String, String, String)) -> Fate {
    let mut fates = Vec::new();
    for which in 0..2 {
        for suffix in ["-wal", "-shm"] {
            drop(std::fs::remove_file(format!("{}{suffix}", path.display())));
        }
        std::fs::write(path, whole).unwrap();
        let db = Connection::open(path).unwrap();
        db.execute_batch(
            "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF",
        )
        .unwrap();
        // Where no row has a value, one is given to a row that had none.
        let row = format!("FROM {table} ORDER BY \"{column}\" IS NULL, {key} LIMIT 1");
        let Ok(old) = db.query_row(&format!("SELECT \"{column}\" {row}"), [], |row| row.get::<_, Value>(0))
        else {
            return Fate::Empty;
        };
        let kind = format!("SELECT type FROM pragma_table_info('{table}') WHERE name = '{column}'");
        let kind = words(&db, &kind).remove(0);
        let Some(new) = forged(&db, table, column, &old, &kind).into_iter().nth(which) else { continue };
        let sql =
            format!("UPDATE OR IGNORE {table} SET \"{column}\" = ?1 WHERE ({key}) = (SELECT {key} {row})");
        // What another row has already the file itself refuses.
        let changed = db.execute(&sql, [&new]).unwrap();
        drop(db);
        if changed > 0 && new != old {
            fates.push(if is_noticed(path) { Fate::Noticed } else { Fate::Unnoticed });
        }
    }
    match (fates.is_empty(), fates.contains(&Fate::Unnoticed)) {
        (true, _) => Fate::Empty,
        (_, true) => Fate::Unnoticed,
        _ => Fate::Noticed,
    }
}

#[test]
fn every_column_is_watched_or_has_its_reason() {
    if !in_own_process("tests::tamper_columns::every_column_is_watched_or_has_its_reason") {
        return;
    }
    let mut case = Case::outside_git();
    case.live_a_little();
    live_more(&mut case);
    let view = case.onus.doctor(&mut Silent).unwrap();
    assert!(view.ok && case.verify().ok, "{view:#?}");
    let Case { directory: _directory, path, onus, .. } = case;
    drop(onus);
    settle(&path);
    let whole = std::fs::read(&path).unwrap();
    let all = columns(&Connection::open(&path).unwrap());

    let text = std::fs::read_to_string(LIST).unwrap_or_default();
    let (head, lines): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('#'));
    let listed: BTreeMap<&str, &str> = lines.iter().filter_map(|line| line.split_once(' ')).collect();
    let (mut wrong, mut found) = (Vec::new(), head.into_iter().map(str::to_owned).collect::<Vec<_>>());
    for column in &all {
        let name = format!("{}.{}", column.0, column.1);
        let fate = fate(&path, &whole, column).word();
        let line = listed.get(name.as_str()).copied().unwrap_or_default();
        let (said, reason) = line.split_once(": ").unwrap_or((line, ""));
        let is_explained = fate == "noticed" || !matches!(reason, "" | "?");
        // What is noticed although the list says that it cannot be is no harm.
        if !(said == fate || (fate == "noticed" && said == "unnoticed")) || !is_explained {
            wrong.push(format!("{name} is {fate}, and the list says {line:?}"));
        }
        let reason = if reason.is_empty() { "?" } else { reason };
        found.push(if fate == "noticed" {
            format!("{name} {fate}")
        } else {
            format!("{name} {fate}: {reason}")
        });
    }
    for name in listed.keys() {
        let is_there = all.iter().any(|(table, column, _)| format!("{table}.{column}") == **name);
        if !is_there {
            wrong.push(format!("{name} is on the list, and there is no such column"));
        }
    }
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(LIST, found.join("\n") + "\n").unwrap();
    }
    assert!(wrong.is_empty(), "tests/tamper_columns.txt:\n{}", wrong.join("\n"));
}

/// What a database cannot notice and a file can, with the reason.
const UNNOTICED: [(&str, &str); 3] = [
    (
        "probe.workspace",
        "the database's own keys refuse it; past them the row is out of this workspace's sight until the next probe",
    ),
    (
        "workspace.anchor",
        "taken away: it is a note of what was seen last, and without it the anchor itself is asked",
    ),
    ("workspace.main_guarded", "taken away: nothing means the same as false"),
];

/// What psql says; none where the database itself refuses.
fn told(cluster: &Cluster, database: &str, sql: &str) -> Option<String> {
    std::panic::catch_unwind(|| cluster.psql(database, sql)).ok().map(|said| said.trim_end().to_owned())
}

/// A statement that puts another value into the first row that has one, past foreign keys and triggers: that of another row,
/// or one of its own making.
fn forging(table: &str, column: &str, kind: &str, is_other: bool) -> String {
    let (place, row) = (format!("\"{column}\""), "ctid = (SELECT at FROM tampering.row)");
    let value = match (is_other, kind) {
        (true, _) => format!("(SELECT {place} FROM {table} WHERE {place} IS DISTINCT FROM old LIMIT 1)"),
        (_, "boolean") => "NOT coalesce(old, false)".to_owned(),
        (_, "bytea") => {
            "CASE WHEN old IS NULL THEN '\\x0707'::bytea ELSE set_byte(old, 0, get_byte(old, 0) # 1) END".to_owned()
        }
        (_, "text") => {
            "CASE WHEN old IS NULL THEN 'x' ELSE left(old, -1) || CASE WHEN right(old, 1) IN ('1', 'a') THEN 'b' ELSE '1' END END"
                .to_owned()
        }
        _ => "CASE WHEN old IS NULL THEN 1 WHEN old IN (0, 1) THEN 1 - old ELSE old + 1000 END".to_owned(),
    };
    format!(
        "BEGIN; SET LOCAL session_replication_role = replica; \
         CREATE TABLE tampering.kept AS SELECT * FROM {table}; \
         CREATE TABLE tampering.row AS SELECT ctid AS at, {place} AS old FROM {table} ORDER BY {place} IS NULL, 2 LIMIT 1; \
         WITH changed AS (UPDATE {table} SET {place} = (SELECT {value} FROM tampering.row) WHERE {row} \
         AND {place} IS DISTINCT FROM (SELECT {value} FROM tampering.row) RETURNING 1) SELECT count(*) FROM changed; COMMIT"
    )
}

/// The same columns in a database: every one that is watched in a file is watched there. A part of them by turns, all of them
/// where time is no matter.
#[test]
fn every_column_of_a_database_is_watched_or_has_its_reason() {
    const NAME: &str = "tests::tamper_columns::every_column_of_a_database_is_watched_or_has_its_reason";
    let Some(cluster) = Cluster::shared() else { return };
    if !in_own_process(NAME) {
        return;
    }
    let url = cluster.database();
    let database = url.rsplit('/').next().unwrap().to_owned();
    let mut case = Case::in_database(&url);
    case.live_a_little();
    live_more(&mut case);
    let path = case.path.clone();
    assert!(!is_noticed_in(&url, &path), "{:#?}", case.onus.doctor(&mut Silent));
    let sql = |text: &str| cluster.psql(&database, text);
    sql("CREATE SCHEMA tampering");
    let all =
        sql("SELECT table_name || ' ' || column_name || ' ' || data_type FROM information_schema.columns \
                   WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position");
    let text = std::fs::read_to_string(LIST).unwrap();
    let listed: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let is_whole = std::env::var_os("ONUS_SOAK").is_some();
    let mut wrong = Vec::new();
    for (n, line) in all.lines().enumerate().filter(|(n, _)| is_whole || n % 9 == 0) {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().unwrap();
        let (table, column, kind) = (next(), next(), next());
        let name = format!("{table}.{column}");
        let is_excused = UNNOTICED.iter().any(|(known, _)| *known == name);
        let said = listed.get(name.as_str()).copied().unwrap_or("noticed");
        for is_other in [true, false].into_iter().filter(|_| !is_excused) {
            let changed = told(cluster, &database, &forging(table, column, kind, is_other));
            if changed.as_deref() == Some("1")
                && !is_noticed_in(&url, &path)
                && matches!(said, "noticed" | "")
            {
                wrong.push(format!("{name} (column {n}, another row's: {is_other}) is unnoticed"));
            }
            if changed.is_some() {
                sql(&format!(
                    "BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM {table}; \
                     INSERT INTO {table} SELECT * FROM tampering.kept; DROP TABLE tampering.kept; \
                     DROP TABLE tampering.row; COMMIT"
                ));
            }
        }
    }
    assert!(!is_noticed_in(&url, &path), "all of it was put back");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_noticed_in(url: &str, path: &Path) -> bool {
    // One that cannot be opened any more is noticed.
    let Ok(mut onus) = open_database(url, path) else { return true };
    // The server of these tests need not survive a loss of power.
    let is_well = |view: &DoctorView| view.checks.iter().all(|check| check.ok || check.name == "durability");
    let verified = onus.verify(&mut Silent);
    verified.map_or(true, |view| !view.ok) || onus.doctor(&mut Silent).map_or(true, |view| !is_well(&view))
}
