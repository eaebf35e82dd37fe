//! A thousand ways to tamper with a store, drawn from a seed that a failure prints: each is found, and its place named.
//!
//! The tamperer knows the format: where it says so, hashes are recomputed and rows fixed up.

use super::audit::{Case, Rng, git, in_own_process, open, settle};
use onus_app::ledger::VerifyView;
use onus_app::progress::Silent;
use onus_core::hash::Digest;
use onus_core::ledger::Entry;
use onus_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::fs;
use std::path::Path;

const ROUNDS: usize = 1_000;

/// Git is slow to start: only so often is a store in a repository tampered with.
const IN_GIT_EVERY: usize = 26;

/// Where the damage is: any of these entries or tasks must be named.
#[derive(Debug, Default)]
struct Place {
    seqs: Vec<i64>,
    tasks: Vec<String>,
    /// Damage that belongs to no entry and no task: a word of the finding.
    word: Option<&'static str>,
}

impl Place {
    /// An entry, or the chain that it belongs to.
    fn entry(victim: &Victim, entry: &Entry) -> Place {
        let mut place = Place { seqs: vec![entry.seq], ..Place::default() };
        match &entry.task {
            Some(task) => place.tasks.push(task.clone()),
            None => {
                place.seqs.extend(victim.chain(None).iter().map(|entry| entry.seq));
                place.word = Some("the workspace's chain");
            }
        }
        place
    }

    fn task(task: &str) -> Place {
        Place { tasks: vec![task.to_owned()], ..Place::default() }
    }

    fn word(word: &'static str) -> Place {
        Place { word: Some(word), ..Place::default() }
    }

    fn is_named_by(&self, view: &VerifyView) -> bool {
        view.findings.iter().any(|found| {
            found.seq.is_some_and(|seq| self.seqs.contains(&seq))
                || found.task.as_ref().is_some_and(|task| self.tasks.contains(task))
                || self.word.is_some_and(|word| found.detail.contains(word))
        })
    }
}

/// A store that somebody has got their hands on.
struct Victim {
    db: Connection,
    uid: String,
    entries: Vec<Entry>,
}

impl Victim {
    fn open(path: &Path) -> Victim {
        let db = Connection::open(path).unwrap();
        // Who can write to the file need not respect its schema.
        db.execute_batch(
            "PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; DROP INDEX ledger_chain; \
             DROP INDEX ledger_workspace_chain; DROP INDEX assignment_live;",
        )
        .unwrap();
        let uid = db.query_row("SELECT uid FROM workspace", [], |row| row.get(0)).unwrap();
        let entries = read_entries(&db);
        Victim { db, uid, entries }
    }

    fn any(&self, rng: &mut Rng) -> Entry {
        rng.pick(&self.entries).clone()
    }

    fn tasks(&self) -> Vec<String> {
        let mut tasks: Vec<String> = self.entries.iter().filter_map(|entry| entry.task.clone()).collect();
        tasks.sort();
        tasks.dedup();
        tasks
    }

    fn chain(&self, task: Option<&String>) -> Vec<Entry> {
        self.entries.iter().filter(|entry| entry.task.as_ref() == task).cloned().collect()
    }

    fn run(&self, sql: &str, args: impl rusqlite::Params) -> usize {
        self.db.execute(sql, args).unwrap()
    }

    fn put(&self, entry: &Entry) {
        self.run(
            "INSERT OR REPLACE INTO ledger (seq, workspace, task, at, actor, workstation, epoch, verb, data, prev, hash) \
             VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                entry.seq,
                entry.task,
                entry.at.0,
                entry.actor,
                entry.workstation,
                entry.epoch,
                entry.verb,
                entry.data,
                entry.prev.0,
                entry.hash.0
            ],
        );
    }

    fn sealed(&self, mut entry: Entry) -> Entry {
        entry.hash = entry.expected_hash(&self.uid);
        entry
    }

    /// Makes the row that names a chain's end agree with what is left of it.
    fn fix_row(&self, task: Option<&String>, left: &[Entry]) {
        let head = left.last().map_or(Digest::ZERO, |entry| entry.hash);
        match task {
            None => self.run("UPDATE workspace SET head = ?1", [head.0]),
            Some(task) if left.is_empty() => self.run("DELETE FROM task WHERE id = ?1", [task]),
            Some(task) => self.run(
                "UPDATE task SET head = ?1, version = ?2 WHERE id = ?3",
                params![head.0, left.len() as i64, task],
            ),
        };
    }
}

fn read_entries(db: &Connection) -> Vec<Entry> {
    let sql =
        "SELECT seq, task, at, actor, workstation, epoch, verb, data, prev, hash FROM ledger ORDER BY seq";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        Ok(Entry {
            seq: row.get(0)?,
            task: row.get(1)?,
            at: Timestamp(row.get(2)?),
            actor: row.get(3)?,
            workstation: row.get(4)?,
            epoch: row.get(5)?,
            verb: row.get(6)?,
            data: row.get(7)?,
            prev: Digest(row.get(8)?),
            hash: Digest(row.get(9)?),
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

type Tamper = fn(&Victim, &mut Rng) -> Place;

const TAMPERINGS: &[(&str, Tamper)] = &[
    ("edit a column of an entry", edit_entry),
    ("edit an entry and seal it again", edit_and_seal),
    ("delete an entry", delete_entry),
    ("swap two entries", |victim, rng| swap(victim, rng, |_, entry| entry)),
    ("swap two entries and seal them again", |victim, rng| swap(victim, rng, Victim::sealed)),
    ("append a copy of an entry under another prev", fork),
    ("let two entries follow the same one", fork_for_real),
    ("cut a chain's tail off", |victim, rng| cut(victim, rng, false)),
    ("cut a chain's tail off and fix its row", |victim, rng| cut(victim, rng, true)),
    ("cut all chains off and fix their rows", cut_all),
    ("rewrite a chain with new hashes and fix its row", rewrite),
    ("rename a task in every table and seal it again", rename),
    ("remove every trace of a task", remove_task),
    ("edit a task's row", edit_task_row),
    ("edit an assignment", |victim, rng| edit_row(victim, rng, "assignment", ASSIGNMENT)),
    ("edit a session", |victim, rng| edit_row(victim, rng, "session", SESSION)),
    ("edit what was said about a session", |victim, rng| edit_row(victim, rng, "session_fact", SESSION_FACT)),
    ("edit a note", |victim, rng| edit_row(victim, rng, "note", NOTE)),
    ("delete a row beside a task's own", delete_row),
    ("edit a dependency", edit_dependency),
    ("delete a checkpoint", delete_checkpoint),
    ("delete all checkpoints", delete_checkpoints),
    ("edit a checkpoint's document", edit_checkpoint),
    ("replace a signature", replace_signature),
    ("edit who or what is registered", edit_registry),
    ("edit the workspace's row", edit_workspace),
];

fn edit_entry(victim: &Victim, rng: &mut Rng) -> Place {
    let entry = victim.any(rng);
    let (seq, place) = (entry.seq, Place::entry(victim, &entry));
    let set = |column: &str, value: Value| {
        victim.run(&format!("UPDATE ledger SET {column} = ?1 WHERE seq = ?2"), params![value, seq]);
    };
    match rng.below(13) {
        0 => set("seq", Value::Integer(100_000 + seq)),
        1 => set("workspace", Value::Integer(2)),
        2 => set("task", entry.task.map_or(Value::Text("T-1".into()), |_| Value::Null)),
        3 => {
            let others: Vec<String> =
                victim.tasks().into_iter().filter(|task| Some(task) != entry.task.as_ref()).collect();
            set("task", Value::Text(rng.pick(&others).clone()));
        }
        4 => set("at", Value::Integer(entry.at.0 + 1)),
        5 => set("actor", Value::Text("@mallory".into())),
        6 => set("workstation", entry.workstation.map_or(Value::Text("ws-1".into()), |_| Value::Null)),
        7 => set("epoch", Value::Integer(entry.epoch + 1)),
        8 => set("verb", Value::Text(format!("{}x", entry.verb))),
        9 => set("data", Value::Text(format!("{} ", entry.data))),
        10 => set("prev", Value::Blob(rng.bytes(32))),
        11 => set("hash", Value::Blob(rng.bytes(32))),
        _ => {
            let (column, length) = (*rng.pick(&["prev", "hash"]), rng.below(32));
            set(column, Value::Blob(rng.bytes(length)));
        }
    }
    place
}

fn edit_and_seal(victim: &Victim, rng: &mut Rng) -> Place {
    let mut entry = victim.any(rng);
    match rng.below(4) {
        0 => entry.at = Timestamp(entry.at.0 - 60_000),
        1 => entry.actor = "@bee".to_owned() + if entry.actor == "@bee" { "-2" } else { "" },
        2 => entry.prev = Digest(rng.bytes(32).try_into().unwrap()),
        _ => entry.epoch += 1,
    }
    let place = Place::entry(victim, &entry);
    victim.put(&victim.sealed(entry));
    place
}

fn delete_entry(victim: &Victim, rng: &mut Rng) -> Place {
    let entry = victim.any(rng);
    victim.run("DELETE FROM ledger WHERE seq = ?1", [entry.seq]);
    Place::entry(victim, &entry)
}

fn swap(victim: &Victim, rng: &mut Rng, seal: fn(&Victim, Entry) -> Entry) -> Place {
    let (mut one, mut two) = (victim.any(rng), victim.any(rng));
    while one.seq == two.seq {
        two = victim.any(rng);
    }
    let (mut place, also) = (Place::entry(victim, &one), Place::entry(victim, &two));
    place.seqs.extend(also.seqs);
    place.tasks.extend(also.tasks);
    std::mem::swap(&mut one.seq, &mut two.seq);
    victim.run("DELETE FROM ledger WHERE seq IN (?1, ?2)", [one.seq, two.seq]);
    victim.put(&seal(victim, one));
    victim.put(&seal(victim, two));
    place
}

fn fork(victim: &Victim, rng: &mut Rng) -> Place {
    let mut entry = victim.any(rng);
    entry.seq = victim.entries.len() as i64 + 1;
    entry.prev = match rng.below(2) {
        0 => Digest(rng.bytes(32).try_into().unwrap()),
        _ => victim.chain(entry.task.as_ref()).last().unwrap().hash,
    };
    let place = Place::entry(victim, &entry);
    victim.put(&victim.sealed(entry));
    place
}

fn fork_for_real(victim: &Victim, rng: &mut Rng) -> Place {
    let mut entry = victim.any(rng);
    entry.seq = victim.entries.len() as i64 + 1;
    let place = Place::entry(victim, &entry);
    victim.put(&victim.sealed(entry));
    place
}

fn cut(victim: &Victim, rng: &mut Rng, fixed: bool) -> Place {
    let tasks = victim.tasks();
    let task = match rng.below(tasks.len() + 1) {
        n if n == tasks.len() => None,
        n => Some(&tasks[n]),
    };
    let mut chain = victim.chain(task);
    let gone = chain.split_off(rng.below(chain.len()));
    for entry in &gone {
        victim.run("DELETE FROM ledger WHERE seq = ?1", [entry.seq]);
    }
    if fixed {
        victim.fix_row(task, &chain);
    }
    let mut place = Place { seqs: gone.iter().map(|entry| entry.seq).collect(), ..Place::default() };
    place.tasks.extend(task.cloned());
    place.word = task.is_none().then_some("the workspace's chain");
    place
}

fn cut_all(victim: &Victim, rng: &mut Rng) -> Place {
    let until = 1 + rng.below(victim.entries.len() - 1) as i64;
    victim.run("DELETE FROM ledger WHERE seq > ?1", [until]);
    let tasks = victim.tasks();
    for task in tasks.iter().map(Some).chain([None]) {
        let left: Vec<Entry> = victim.chain(task).into_iter().filter(|entry| entry.seq <= until).collect();
        victim.fix_row(task, &left);
    }
    if rng.below(2) == 0 {
        victim.run("DELETE FROM checkpoint WHERE seq > ?1", [until]);
    }
    // The anchored heads name every chain that lost its tail.
    let lost = victim.entries.iter().filter(|entry| entry.seq > until);
    let tasks = lost.filter_map(|entry| entry.task.clone()).collect();
    Place { seqs: vec![], tasks, word: Some("the workspace's chain was anchored") }
}

fn rewrite(victim: &Victim, rng: &mut Rng) -> Place {
    let task = rng.pick(&victim.tasks()).clone();
    let mut chain = victim.chain(Some(&task));
    let from = rng.below(chain.len());
    chain[from].at = Timestamp(chain[from].at.0 - 1_000);
    let mut prev = chain[from].prev;
    for entry in &mut chain[from..] {
        entry.prev = prev;
        *entry = victim.sealed(entry.clone());
        prev = entry.hash;
        victim.put(entry);
    }
    victim.fix_row(Some(&task), &chain);
    Place::task(&task)
}

fn rename(victim: &Victim, rng: &mut Rng) -> Place {
    let task = rng.pick(&victim.tasks()).clone();
    let mut chain = victim.chain(Some(&task));
    let mut prev = Digest::ZERO;
    for entry in &mut chain {
        entry.task = Some("T-99".to_owned());
        entry.prev = prev;
        *entry = victim.sealed(entry.clone());
        prev = entry.hash;
        victim.put(entry);
    }
    victim.run("UPDATE task SET id = 'T-99', head = ?1 WHERE id = ?2", params![prev.0, task]);
    for table in ["assignment", "session", "session_fact", "note", "dependency"] {
        victim.run(&format!("UPDATE {table} SET task = 'T-99' WHERE task = ?1"), [&task]);
    }
    victim.run("UPDATE dependency SET depends_on = 'T-99' WHERE depends_on = ?1", [&task]);
    Place { tasks: vec![task, "T-99".to_owned()], ..Place::default() }
}

fn remove_task(victim: &Victim, rng: &mut Rng) -> Place {
    let task = rng.pick(&victim.tasks()).clone();
    for table in ["ledger", "assignment", "session", "session_fact", "note", "dependency"] {
        victim.run(&format!("DELETE FROM {table} WHERE task = ?1"), [&task]);
    }
    victim.run("DELETE FROM task WHERE id = ?1", [&task]);
    Place::task(&task)
}

const TASK: &[&str] = &[
    "uid",
    "title",
    "body",
    "type",
    "kind",
    "state",
    "priority",
    "risk",
    "role",
    "lane",
    "sprint",
    "tags",
    "scope",
    "merge_order",
    "origin_ask_ref",
    "blocker",
    "archived",
    "epoch",
    "lease_id",
    "version",
    "head",
    "created_by",
    "created_at",
    "updated_at",
    "closed_by",
    "closed_at",
    "forced",
    "born",
    "workspace",
];
const ASSIGNMENT: &[&str] = &[
    "epoch",
    "assignee",
    "tier",
    "workstation",
    "lease_id",
    "ttl_ms",
    "assigned_at",
    "renewed_at",
    "tick",
    "renewals",
    "handoff_reason",
    "forced",
    "route",
    "ended_at",
    "end_reason",
    "task",
    "workspace",
];
const SESSION: &[&str] =
    &["id", "epoch", "worker", "workstation", "started_at", "ended_at", "end_reason", "task", "workspace"];
const SESSION_FACT: &[&str] = &[
    "seq",
    "session",
    "kind",
    "started_at",
    "ended_at",
    "key",
    "source",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_tokens",
    "cost_micros",
    "task",
    "workspace",
];
const NOTE: &[&str] = &["seq", "kind", "text", "task", "workspace"];

/// Another value of the same kind.
fn other(value: &Value, column: &str) -> Value {
    match (value, column) {
        (_, "workspace") => Value::Integer(2),
        (_, "task") => Value::Text("T-77".into()),
        (_, "state") if *value == Value::Text("open".into()) => Value::Text("dropped".into()),
        (_, "state") => Value::Text("open".into()),
        (_, "archived" | "forced") if *value == Value::Integer(0) => Value::Integer(1),
        (_, "archived" | "forced") => Value::Integer(0),
        (_, "priority") if *value == Value::Integer(0) => Value::Integer(1),
        (_, "priority") => Value::Integer(0),
        (_, "risk") => Value::Text("high".into()),
        (Value::Text(_), "tags" | "scope") => Value::Text("[\"other\"]".into()),
        (Value::Text(text), "uid") => Value::Text(text.replacen('7', "8", 1) + ""),
        (Value::Text(text), "origin_ask_ref") => Value::Text(format!("{text}0")),
        (Value::Text(text), "assignee" | "worker" | "created_by" | "closed_by") if text == "@bot" => {
            Value::Text("@bee".into())
        }
        (Value::Text(_), "assignee" | "worker" | "created_by" | "closed_by") => Value::Text("@bot".into()),
        (Value::Text(text), "tick") => Value::Text(format!("{text}0")),
        (Value::Text(text), _) => Value::Text(format!("{text}x")),
        (Value::Integer(n), _) => Value::Integer(n + 1_000),
        (Value::Blob(bytes), _) => Value::Blob(bytes.iter().map(|byte| byte ^ 1).collect()),
        (Value::Null, "lane" | "merge_order" | "closed_at" | "started_at" | "ended_at" | "cost_micros") => {
            Value::Integer(1)
        }
        (Value::Null, "input_tokens" | "output_tokens" | "cache_read_tokens" | "cache_creation_tokens") => {
            Value::Integer(1)
        }
        (Value::Null, "lease_id") => Value::Blob(vec![7; 16]),
        (Value::Null, "route") => Value::Text(r#"{"rule":"r","map_commit":null,"map_hash":"h"}"#.into()),
        (Value::Null, "closed_by") => Value::Text("@ada".into()),
        (Value::Null, "blocker") => Value::Text("person:@bot".into()),
        (Value::Null | Value::Real(_), _) => Value::Text("x".into()),
    }
}

fn edit_task_row(victim: &Victim, rng: &mut Rng) -> Place {
    let (task, column) = (rng.pick(&victim.tasks()).clone(), *rng.pick(TASK));
    let sql = format!("SELECT {column} FROM task WHERE id = ?1");
    let value: Value = victim.db.query_row(&sql, [&task], |row| row.get(0)).unwrap();
    let sql = format!("UPDATE task SET {column} = ?1 WHERE id = ?2");
    assert_eq!(victim.run(&sql, params![other(&value, column), task]), 1);
    Place::task(&task)
}

fn edit_row(victim: &Victim, rng: &mut Rng, table: &str, columns: &[&'static str]) -> Place {
    let column = *rng.pick(columns);
    let sql = format!(
        "SELECT task, seq_or_epoch, {column} FROM (SELECT *, {} AS seq_or_epoch FROM {table})",
        key(table)
    );
    let mut statement = victim.db.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(String, i64, Value)> = rows.map(Result::unwrap).collect();
    let (task, key_value, value) = rng.pick(&rows);
    let sql = format!("UPDATE {table} SET {column} = ?1 WHERE task = ?2 AND {} = ?3", key(table));
    assert_eq!(victim.run(&sql, params![other(value, column), task, key_value]), 1);
    Place::task(task)
}

fn key(table: &str) -> &'static str {
    match table {
        "assignment" => "epoch",
        "session" => "id",
        _ => "seq",
    }
}

fn delete_row(victim: &Victim, rng: &mut Rng) -> Place {
    let table = *rng.pick(&["assignment", "session", "session_fact", "note", "task"]);
    let owner = if table == "task" { "id" } else { "task" };
    let mut statement = victim.db.prepare(&format!("SELECT {owner} FROM {table}")).unwrap();
    let tasks: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let task = rng.pick(&tasks);
    victim.run(&format!("DELETE FROM {table} WHERE {owner} = ?1"), [task]);
    Place::task(task)
}

fn edit_dependency(victim: &Victim, rng: &mut Rng) -> Place {
    if rng.below(2) == 0 {
        victim.run("DELETE FROM dependency WHERE task = 'T-7' AND depends_on = 'T-1'", []);
        return Place::task("T-7");
    }
    victim.run("INSERT INTO dependency (workspace, task, depends_on) VALUES (1, 'T-3', 'T-5')", []);
    Place::task("T-3")
}

fn checkpoint_seqs(victim: &Victim) -> Vec<i64> {
    let mut statement = victim.db.prepare("SELECT seq FROM checkpoint ORDER BY seq").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn delete_checkpoint(victim: &Victim, rng: &mut Rng) -> Place {
    let seqs = checkpoint_seqs(victim);
    victim.run("DELETE FROM checkpoint WHERE seq = ?1", [rng.pick(&seqs)]);
    Place { seqs, ..Place::default() }
}

fn delete_checkpoints(victim: &Victim, _: &mut Rng) -> Place {
    let seqs = checkpoint_seqs(victim);
    victim.run("DELETE FROM checkpoint", []);
    Place { seqs, ..Place::default() }
}

fn edit_checkpoint(victim: &Victim, rng: &mut Rng) -> Place {
    let seq = *rng.pick(&checkpoint_seqs(victim));
    let sql = "SELECT document FROM checkpoint WHERE seq = ?1";
    let document: String = victim.db.query_row(sql, [seq], |row| row.get(0)).unwrap();
    let edited = match rng.below(5) {
        0 => document.replacen("\"root\":\"", "\"root\":\"0", 1),
        1 => document.replacen("\"entries\":", "\"entries\":1", 1),
        2 => document.replacen("\"generation\":1", "\"generation\":2", 1),
        3 => document.replacen("\"at\":\"2", "\"at\":\"1", 1),
        _ => format!(" {document}"),
    };
    assert_ne!(edited, document);
    victim.run("UPDATE checkpoint SET document = ?1 WHERE seq = ?2", params![edited, seq]);
    Place { seqs: vec![seq], ..Place::default() }
}

fn replace_signature(victim: &Victim, rng: &mut Rng) -> Place {
    let seq = *rng.pick(&checkpoint_seqs(victim));
    let length = *rng.pick(&[64, 64, 63, 0]);
    victim.run("UPDATE checkpoint SET signature = ?1 WHERE seq = ?2", params![rng.bytes(length), seq]);
    Place { seqs: vec![seq], ..Place::default() }
}

fn edit_registry(victim: &Victim, rng: &mut Rng) -> Place {
    let (sql, word) = *rng.pick(&[
        ("UPDATE worker SET kind = 'human' WHERE handle = '@bot'", "@bot"),
        ("UPDATE worker SET handle = '@eve' WHERE handle = '@bee'", "@eve"),
        ("UPDATE worker SET role = 'verifier' WHERE handle = '@bee'", "@bee"),
        ("DELETE FROM worker WHERE handle = '@ada'", "@ada"),
        ("INSERT INTO worker VALUES (1, '@eve', 'human', NULL, NULL, 'active', 'UTC')", "@eve"),
        ("UPDATE workstation SET path = '/' WHERE name = 'ws-1'", "ws-1"),
        ("INSERT INTO workstation VALUES (1, 'ws-9', 'logical', NULL, 'ready', 'reusable', 1, NULL, NULL, NULL, NULL, NULL)", "ws-9"),
        ("DELETE FROM workstation WHERE name = 'ws-2'", "ws-2"),
        ("UPDATE workstation SET role = 'A', lane = 1 WHERE name = 'ws-1'", "ws-1"),
        ("UPDATE workspace SET main_remote = 'elsewhere', main_branch = 'main'", "main of record"),
        ("INSERT INTO clone VALUES (1, '0123456789abcdef', 'h', '/clone')", "0123456789abcdef"),
        ("INSERT INTO landed SELECT 1, '1111111111111111111111111111111111111111', 1, id, 1 FROM task LIMIT 1", "landed"),
        ("DELETE FROM project", "project T"),
        ("UPDATE token SET revoked_at = NULL", "the token"),
        ("UPDATE token SET expires_at = 1 WHERE revoked_at IS NULL", "the token"),
        ("UPDATE token SET kind = 'person', worker = '@ada'", "the token"),
        ("UPDATE token SET hash = randomblob(32)", "the token"),
        ("UPDATE token SET workstation = 'ws-1'", "the token"),
        ("UPDATE token SET created_by = '@bot'", "the token"),
        ("DELETE FROM token WHERE revoked_at IS NULL", "the token"),
        ("INSERT INTO token VALUES (1, '00000000', randomblob(32), 'person', '@ada', NULL, NULL, '@ada', 1, NULL, NULL, NULL)", "the token"),
        ("UPDATE approval SET last_day = '2026-02-01'", "an approval"),
        ("UPDATE approval SET fingerprint = randomblob(32)", "an approval"),
        ("DELETE FROM approval", "an approval"),
        ("UPDATE approval SET seq = seq + 1000", "an approval"),
    ]);
    victim.run(sql, []);
    Place::word(word)
}

fn edit_workspace(victim: &Victim, rng: &mut Rng) -> Place {
    let (sql, word) = *rng.pick(&[
        ("UPDATE workspace SET head = zeroblob(32)", "the workspace's chain"),
        ("UPDATE workspace SET generation = 7", "generation"),
        ("UPDATE workspace SET public_key = lower(hex(zeroblob(32)))", "key"),
        ("UPDATE workspace SET anchor = '00000009-0123456789abcdef'", "anchored as"),
    ]);
    victim.run(sql, []);
    Place::word(word)
}

#[test]
fn a_thousand_tamperings_are_found_and_located() {
    if !in_own_process("tests::tamper::a_thousand_tamperings_are_found_and_located") {
        return;
    }
    let seed = std::env::var("ONUS_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261);
    eprintln!("ONUS_TEST_SEED={seed}");
    let cases = [Case::outside_git(), Case::in_git()].map(|mut case| {
        case.live_a_little();
        let view = case.verify();
        assert!(view.ok, "{view:#?}");
        let Case { directory, path, onus, .. } = case;
        drop(onus);
        settle(&path);
        let bytes = fs::read(&path).unwrap();
        (directory, path, bytes)
    });
    let mut missed = Vec::new();
    for round in 0..ROUNDS {
        let (_, path, bytes) = &cases[usize::from(round % IN_GIT_EVERY == 0)];
        fs::write(path, bytes).unwrap();
        let mut rng = Rng::seeded(seed + round as u64);
        let (name, tamper) = TAMPERINGS[round % TAMPERINGS.len()];
        let victim = Victim::open(path);
        let place = tamper(&victim, &mut rng);
        drop(victim);
        let view = open(path).verify(&mut Silent).unwrap();
        if view.ok || !place.is_named_by(&view) {
            missed.push(format!("round {round}, {name}: {place:?}: {:#?}", view.findings));
        }
    }
    assert!(missed.is_empty(), "{} missed, the first:\n{}", missed.len(), missed[0]);
}

/// Who has the key can sign what they rewrote, but not change what was anchored.
#[test]
fn a_key_holder_cannot_rewrite_what_was_anchored() {
    if !in_own_process("tests::tamper::a_key_holder_cannot_rewrite_what_was_anchored") {
        return;
    }
    let mut case = Case::in_git();
    case.live_a_little();
    settle(&case.path);
    let victim = Victim::open(&case.path);
    victim.run("DELETE FROM checkpoint", []);
    victim.run("UPDATE workspace SET anchor = NULL", []);
    let place = rewrite(&victim, &mut Rng::seeded(7));
    drop(victim);
    let tip = git(case.directory.path(), &["rev-parse", "refs/onus/ledger"]);
    git(case.directory.path(), &["update-ref", "-d", "refs/onus/ledger"]);
    case.checkpoint();
    let forged = git(case.directory.path(), &["rev-parse", "refs/onus/ledger"]);
    assert_ne!(forged, tip);
    // Another clone still has the true anchor.
    git(case.directory.path(), &["update-ref", "refs/onus/ledger", &tip]);
    let view = case.verify();
    assert!(!view.ok && place.is_named_by(&view), "{view:#?}");
}
