//! What only a database server can do: several programs that start at once, several workspaces in one database, lost
//! connections, standbys, rights, wake-ups.

use onus_core::hash::Digest;
use onus_core::id::WorkspaceId;
use onus_core::ledger::Entry;
use onus_core::time::Timestamp;
use onus_core::worker::{Kind as WorkerKind, Worker, WorkerState};
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store, Tx};
use onus_store::postgres::{Address, Listener, Postgres, WRITER_PLANNER, Wake, postgres_text};
use onus_store::tables::{ColumnKind, SCHEMA, TABLES};
use onus_store::{apply, load, registry, sql, statements};
use onus_testkit::{Cluster, Durability};
use std::time::Duration;

fn address(url: &str) -> Address {
    Address::parse(url).unwrap()
}

fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

fn found(store: &mut Postgres, uid: &str) -> Result<WorkspaceId, StoreError> {
    store.write(|tx| {
        registry::insert_workspace(tx, uid, "key", Timestamp(1))?;
        Ok(Outcome::Commit(tx.workspace()))
    })
}

fn entry(seq: i64) -> Entry {
    let digest = |n: i64| Digest::of(&n.to_be_bytes());
    Entry {
        seq,
        task: None,
        at: Timestamp(1),
        actor: "@ada".into(),
        workstation: None,
        epoch: 0,
        verb: "added".into(),
        data: "{}".into(),
        prev: digest(seq),
        hash: digest(seq + 1),
    }
}

fn append(tx: &mut dyn Tx, seq: i64) -> Result<(), StoreError> {
    apply::entry(tx, &entry(seq))
}

fn refused(opened: Result<Postgres, StoreError>) -> (String, String) {
    match opened {
        Err(StoreError::Unavailable { detail, hint }) => (detail, hint.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn servers_that_start_at_once_make_one_schema() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Postgres::create(&address(&url)).unwrap());
        }
    });
    assert_eq!(cluster.psql(name(&url), "SELECT version FROM onus_schema"), format!("{SCHEMA}\n"));
}

#[test]
fn a_newer_schema_and_a_foreign_database_are_left_alone() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    assert!(matches!(Postgres::open(&address(&url)), Err(StoreError::Missing(_))));
    drop(Postgres::create(&address(&url)).unwrap());
    cluster.psql(name(&url), "UPDATE onus_schema SET version = 99");
    for opened in [Postgres::open(&address(&url)), Postgres::create(&address(&url))] {
        let (detail, hint) = refused(opened);
        assert!(detail.contains("99") && hint.contains("newer"), "{detail}: {hint}");
    }
    let foreign = cluster.database();
    cluster.psql(name(&foreign), "CREATE TABLE task (n INT)");
    assert!(refused(Postgres::create(&address(&foreign))).0.contains("another program"));
}

#[test]
fn tables_that_somebody_changed_are_told() {
    let Some(server) = Cluster::shared() else { return };
    let url = server.database();
    let mut store = Postgres::create(&address(&url)).unwrap();
    assert_eq!(store.strange_schema().unwrap(), [""; 0]);
    // The comparison left nothing behind, and the store goes on.
    found(&mut store, "u").unwrap();
    for (change, told) in [
        ("DROP INDEX assignment_live", "assignment_live"),
        ("ALTER TABLE task ALTER COLUMN title DROP NOT NULL", "column task.title"),
        ("ALTER TABLE task ADD COLUMN spare TEXT", "task.spare"),
        (
            "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER quiet BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION quiet()",
            "TRIGGER quiet",
        ),
        ("CREATE RULE quiet AS ON DELETE TO note DO INSTEAD NOTHING", "note.quiet"),
        ("ALTER TABLE task ENABLE ROW LEVEL SECURITY", "row security of task"),
    ] {
        let before = store.strange_schema().unwrap().len();
        server.psql(name(&url), change);
        let strange = store.strange_schema().unwrap();
        assert!(
            strange.len() > before && strange.iter().any(|one| one.contains(told)),
            "{change}: {strange:?}"
        );
    }
}

#[test]
fn workspaces_share_a_database_and_nothing_else() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let of = |workspace: &str| Postgres::create(&address(&format!("{url}?workspace={workspace}"))).unwrap();
    let (mut web, mut api) = (of("web"), of("api"));
    let (first, second) = (found(&mut web, "u1").unwrap(), found(&mut api, "u2").unwrap());
    assert_ne!(first, second);
    for store in [&mut web, &mut api] {
        // The same number in both: a ledger belongs to its workspace.
        let appended: Result<(), StoreError> = store.write(|tx| append(tx, 1).map(Outcome::Commit));
        appended.unwrap();
    }
    let uid = |store: &mut Postgres| store.read(|tx| load::workspace(tx)).unwrap().uid;
    assert_eq!((uid(&mut web), uid(&mut api)), ("u1".into(), "u2".into()));
    let nowhere = of("other").read(|tx| load::workspace(tx));
    assert!(matches!(nowhere, Err(StoreError::Missing(_))), "{nowhere:?}");
}

#[test]
fn a_workspace_that_two_make_at_once_is_one() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    drop(Postgres::create(&address(&url)).unwrap());
    let make = |n: usize| {
        let mut store = Postgres::open(&address(&url)).unwrap();
        store.write(|tx| match load::workspace(tx) {
            Ok(_) => Ok(Outcome::Rollback(false)),
            Err(StoreError::Missing(_)) => {
                registry::insert_workspace(tx, &n.to_string(), "key", Timestamp(1))?;
                Ok::<_, StoreError>(Outcome::Commit(true))
            }
            Err(error) => Err(error),
        })
    };
    let made: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || make(n).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made.iter().filter(|made| **made).count(), 1, "{made:?}");
}

/// The same tables and columns as SQLite, of the same kinds: an archive of one fits the other. The index of words is made anew.
#[test]
fn every_column_is_the_one_that_sqlite_has() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    drop(Postgres::create(&address(&url)).unwrap());
    let found = cluster.psql(
        name(&url),
        "SELECT table_name || ' ' || column_name || ' ' || data_type FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name <> 'onus_schema' AND table_name NOT LIKE 'word%'",
    );
    let mut found: Vec<&str> = found.lines().collect();
    let mut wanted = vec!["workspace id bigint".to_owned(), "workspace name text".to_owned()];
    for table in TABLES {
        if table.name != "workspace" {
            wanted.push(format!("{} workspace bigint", table.name));
        }
        wanted.extend(table.columns.iter().map(|column| {
            let kind = match column.kind {
                ColumnKind::Int => "bigint",
                ColumnKind::Text => "text",
                ColumnKind::Blob => "bytea",
            };
            format!("{} {} {kind}", table.name, column.name)
        }));
    }
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

sql! {
    COUNT = "SELECT count(*) FROM worker WHERE workspace = :workspace";
    FORGET = "UPDATE task SET waits = waits WHERE workspace = :workspace AND born < 0";
    FAILS(number) = "SELECT count(*) FROM worker WHERE workspace = :number";
}

/// What was asked ahead is answered as it was then, and asked anew when something was changed meanwhile.
#[test]
fn an_answer_given_ahead_is_never_old() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut store = Postgres::create(&address(&cluster.database())).unwrap();
    found(&mut store, "u").unwrap();
    let failed: Result<(), StoreError> = store.write(|tx| {
        let count = |tx: &mut dyn Tx| tx.row(&COUNT {})?.unwrap().int();
        let worker = |n: i64| Worker {
            handle: format!("@w{n}").parse().unwrap(),
            kind: WorkerKind::Agent,
            tier: None,
            role: None,
            state: WorkerState::Active,
            tz: "UTC".into(),
        };
        let prefetch = |tx: &mut dyn Tx| tx.prefetch(&[Box::new(COUNT {})]);
        let mut counts = Vec::new();
        prefetch(tx)?;
        counts.push(count(tx)?);
        registry::insert_worker(tx, &worker(1))?;
        counts.push(count(tx)?);
        // Asked, then changed before anybody looked.
        prefetch(tx)?;
        registry::insert_worker(tx, &worker(2))?;
        counts.push(count(tx)?);
        tx.savepoint()?;
        registry::insert_worker(tx, &worker(3))?;
        prefetch(tx)?;
        counts.push(count(tx)?);
        tx.rollback_to()?;
        counts.push(count(tx)?);
        assert_eq!(counts, [0, 1, 2, 3, 2]);
        // A failure of what was asked ahead is a failure of the transaction.
        tx.prefetch(&[Box::new(FAILS { number: "no number" })])?;
        assert!(count(tx).is_err());
        Ok(Outcome::Rollback(()))
    });
    assert!(failed.is_err(), "what failed may not pass for done");
    let counted: Result<Vec<i64>, StoreError> = store.write(|tx| {
        tx.prefetch(&[Box::new(COUNT {}), Box::new(COUNT {})])?;
        let mut count = || tx.row(&COUNT {})?.unwrap().int();
        Ok(Outcome::Commit(vec![count()?, count()?]))
    });
    assert_eq!(counted.unwrap(), [0, 0]);
}

/// Changes are sent without waiting: one that failed must not be acknowledged by whoever comes after it.
#[test]
fn a_change_that_failed_is_never_acknowledged() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut store = Postgres::create(&address(&cluster.database())).unwrap();
    found(&mut store, "u").unwrap();
    let commit = |store: &mut Postgres, seqs: &[i64]| -> Result<(), StoreError> {
        store.write(|tx| {
            // Whoever looks away from an error does not make it undone.
            seqs.iter().for_each(|seq| drop(append(tx, *seq)));
            Ok(Outcome::Commit(()))
        })
    };
    assert!(matches!(commit(&mut store, &[1, 1, 2]), Err(StoreError::Guard(_) | StoreError::Constraint(_))));
    commit(&mut store, &[1]).unwrap();
    let ignored: Result<(), StoreError> = store.write(|tx| {
        append(tx, 2)?;
        append(tx, 1)?;
        drop(load::workspace(tx));
        Ok(Outcome::Commit(()))
    });
    assert!(matches!(ignored, Err(StoreError::Guard(_) | StoreError::Constraint(_))), "{ignored:?}");
    let undone: Result<(), StoreError> = store.write(|tx| {
        append(tx, 2)?;
        tx.savepoint()?;
        append(tx, 1)?;
        tx.rollback_to()?;
        append(tx, 3).map(Outcome::Commit)
    });
    undone.unwrap();
    assert_eq!(store.read(|tx| load::workspace(tx)).unwrap().last_seq, 3);
}

/// As large tables make a server: it gladly starts other processes to read them.
const EAGER: &str = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; \
    SET min_parallel_index_scan_size = 0";

/// Its tables were empty when the server last looked at them, or a moment ago: the next task is found by its index all
/// the same, in its order, and nothing is read that is not given.
#[test]
fn a_writer_goes_by_keys_whatever_the_server_knows_of_its_tables() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let mut store = Postgres::create(&address(&url)).unwrap();
    found(&mut store, "0190-plans").unwrap();
    cluster.psql(name(&url), "VACUUM ANALYZE");
    let fill = include_str!("conformance/fill.sql").replace("ANALYZE;", "");
    cluster.psql(name(&url), &fill);
    let plan = |statement: &str| {
        let sql = statements::HOT.iter().find(|sql| sql.name == statement).unwrap().text;
        let values = (1..=99).take_while(|n| sql.contains(&format!("?{n}"))).map(|_| "NULL");
        let values = values.collect::<Vec<_>>().join(", ");
        let text = postgres_text(sql);
        cluster.psql(
            name(&url),
            &format!(
                "{EAGER}; {WRITER_PLANNER}; PREPARE p AS {text}; EXPLAIN (COSTS OFF) EXECUTE p({values})"
            ),
        )
    };
    let ready = plan("READY");
    assert!(ready.contains("Index Scan using task_ready") && !ready.contains("Sort"), "{ready}");
    // Of what has not ended there are few, and of what has ended in their index many.
    for statement in ["READY", "TASK", "HOLDER", "END_ASSIGNMENT", "RENEW_ASSIGNMENT"] {
        let plan = plan(statement);
        assert!(plan.contains("assignment_pkey") && !plan.contains("assignment_live"), "{plan}");
    }
    let stop = plan("STOP_SESSION");
    assert!(stop.contains("session_task") && !stop.contains("session_long"), "{stop}");
    // A team that has just begun: of many tasks few were ever claimed, and the server looked before they were.
    let claimed = "INSERT INTO assignment SELECT * FROM early";
    let all = "CREATE TABLE early AS SELECT * FROM assignment WHERE epoch = 1 LIMIT 900; DELETE FROM session_fact; \
        DELETE FROM session; DELETE FROM assignment";
    for change in [all, "VACUUM ANALYZE", claimed] {
        cluster.psql(name(&url), change);
    }
    let ready = plan("READY");
    assert!(!ready.contains("Materialize"), "all assignments were read, to be kept: {ready}");
    assert!(!ready.contains("Gather"), "other processes were asked for help: {ready}");
}

/// Nobody waits for the server to notice by itself that a table was filled.
#[test]
fn a_table_that_was_filled_is_looked_at() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let mut store = Postgres::create(&address(&url)).unwrap();
    found(&mut store, "0190-filled").unwrap();
    let known =
        || cluster.psql(name(&url), "SELECT reltuples::bigint FROM pg_class WHERE relname = 'ledger'");
    let fill = |store: &mut Postgres, entries: std::ops::Range<i64>| {
        store.write(|tx| entries.clone().try_for_each(|seq| append(tx, seq)).map(Outcome::Commit)).unwrap();
    };
    fill(&mut store, 1..10);
    assert_eq!(known(), "-1\n");
    fill(&mut store, 10..5_000);
    assert_eq!(known(), "4999\n");
}

/// What is only glanced at is as it is now, remembered by nobody, and a question that failed spoils no later one.
#[test]
fn a_glance_sees_what_is_committed() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let mut store = Postgres::create(&address(&url)).unwrap();
    found(&mut store, "u").unwrap();
    let mut other = Postgres::open(&address(&url)).unwrap();
    for seq in 1..=3 {
        let written: Result<(), StoreError> = other.write(|tx| append(tx, seq).map(Outcome::Commit));
        written.unwrap();
        let seen = store.read_latest(|tx| {
            tx.prefetch(&[Box::new(COUNT {})])?;
            tx.row(&COUNT {})?;
            load::workspace(tx)
        });
        assert_eq!(seen.unwrap().last_seq, seq);
        assert!(store.read_latest(|tx| tx.row(&FAILS { number: "no number" }).map(drop)).is_err());
    }
}

/// SQLite keeps them; nothing that the rules accept has one.
#[test]
fn a_text_that_cannot_be_kept_is_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut store = Postgres::create(&address(&cluster.database())).unwrap();
    found(&mut store, "u").unwrap();
    let kept: Result<(), StoreError> =
        store.write(|tx| apply::entry(tx, &Entry { data: "a\0b".into(), ..entry(1) }).map(Outcome::Commit));
    assert!(matches!(kept, Err(StoreError::Unavailable { .. })), "{kept:?}");
    assert_eq!(store.read(|tx| load::workspace(tx)).unwrap().last_seq, 0);
}

#[test]
fn a_connection_lost_between_two_calls_is_made_again() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let mut store = Postgres::create(&address(&url)).unwrap();
    found(&mut store, "u").unwrap();
    let cut = || {
        let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'onus' AND datname = ";
        cluster.psql("postgres", &format!("{all}'{}'", name(&url)));
    };
    cut();
    let written: Result<(), StoreError> = store.write(|tx| append(tx, 1).map(Outcome::Commit));
    written.unwrap();
    cut();
    assert_eq!(store.read(|tx| load::workspace(tx)).unwrap().last_seq, 1);
    cut();
    assert_eq!(store.read_latest(|tx| load::workspace(tx)).unwrap().last_seq, 1);
    // In the middle of a transaction nobody can go on for it; nothing of it stays.
    let torn: Result<(), StoreError> = store.write(|tx| {
        append(tx, 2)?;
        load::workspace(tx)?;
        cut();
        append(tx, 3)?;
        load::workspace(tx)?;
        Ok(Outcome::Commit(()))
    });
    assert!(matches!(torn, Err(StoreError::Busy(_))), "{torn:?}");
    assert_eq!(store.read(|tx| load::workspace(tx)).unwrap().last_seq, 1);
}

#[test]
fn what_cannot_be_reached_is_named_without_its_password() {
    let Some(cluster) = Cluster::shared() else { return };
    let port = cluster.port();
    for (url, told) in [
        (format!("postgres://onus:hush@127.0.0.1:{port}/nowhere"), "there is no database nowhere"),
        (format!("postgres://nobody:hush@127.0.0.1:{port}/postgres"), "does not let us in"),
        ("postgres://onus:hush@127.0.0.1:1/x".into(), "no connection"),
        (format!("postgres://onus:hush@127.0.0.1:{port}/postgres?sslmode=require"), "no connection"),
    ] {
        let (detail, hint) = refused(Postgres::open(&address(&url)));
        assert!(detail.contains(told) && !hint.is_empty(), "{url}: {detail}: {hint}");
        assert!(!format!("{detail}{hint}").contains("hush"), "{detail}: {hint}");
    }
}

#[test]
fn a_certificate_is_judged_before_anything_is_said() {
    let Some(cluster) = Cluster::start(Durability::Careless) else { return };
    let Some(certificate) = cluster.secure() else { return };
    let url = cluster.database();
    let (detail, _) = refused(Postgres::create(&address(&format!("{url}?sslmode=require"))));
    assert!(detail.contains("certificate"), "{detail}");
    let elsewhere = url.replace("127.0.0.1", "localhost");
    let trusted = format!("sslmode=verify-full&sslrootcert={}", certificate.display());
    let (detail, _) = refused(Postgres::create(&address(&format!("{elsewhere}?{trusted}"))));
    assert!(detail.contains("certificate"), "it is for another name: {detail}");
    let mut store = Postgres::create(&address(&format!("{url}?{trusted}"))).unwrap();
    found(&mut store, "u").unwrap();
    let secret = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'onus'";
    assert_eq!(cluster.psql("postgres", secret), "1\n");
}

#[test]
fn a_server_that_takes_no_writes_is_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    drop(Postgres::create(&address(&url)).unwrap());
    cluster
        .psql("postgres", &format!("ALTER DATABASE {} SET default_transaction_read_only = on", name(&url)));
    let (detail, hint) = refused(Postgres::open(&address(&url)));
    assert!(detail.contains("read-only") && hint.contains("primary"), "{detail}: {hint}");
}

/// Everyday work needs rights on the rows; only the owner changes the schema.
#[test]
fn a_worker_needs_no_more_than_the_rows() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let database = name(&url).to_owned();
    let role = format!("role_{database}");
    cluster.psql("postgres", &format!("CREATE ROLE {role} LOGIN"));
    let as_role = url.replace("onus@", &format!("{role}@"));
    let (_, hint) = refused(Postgres::create(&address(&as_role)));
    assert!(hint.contains("rights"), "{hint}");
    drop(Postgres::create(&address(&url)).unwrap());
    cluster.psql(
        &database,
        &format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}"
        ),
    );
    let mut store = Postgres::open(&address(&as_role)).unwrap();
    found(&mut store, "u").unwrap();
}

#[test]
fn a_commit_wakes_whoever_listens() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let mut store = Postgres::create(&address(&url)).unwrap();
    let workspace = found(&mut store, "u").unwrap();
    let mut listener = Listener::open(&address(&url)).unwrap();
    assert_eq!(listener.wait(Duration::from_millis(10)).unwrap(), None);
    let write = |store: &mut Postgres, seq: i64, outcome: fn(()) -> Outcome<()>| {
        let written: Result<(), StoreError> = store.write(|tx| append(tx, seq).map(outcome));
        written.unwrap();
    };
    write(&mut store, 1, Outcome::Rollback);
    write(&mut store, 1, Outcome::Commit);
    let long = Duration::from_secs(20);
    assert_eq!(listener.wait(long).unwrap(), Some(Wake::Grown { workspace, seq: 1 }));
    let own = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE query LIKE 'LISTEN%' AND datname = current_database()";
    cluster.psql(name(&url), own);
    assert_eq!(listener.wait(long).unwrap(), Some(Wake::Reconnected));
    write(&mut store, 2, Outcome::Commit);
    assert_eq!(listener.wait(long).unwrap(), Some(Wake::Grown { workspace, seq: 2 }));
}

/// Only an answer proves a commit. A server that dies in the middle leaves the outcome open, and says so.
#[test]
fn a_commit_without_an_answer_is_unknown() {
    let Some(mut cluster) = Cluster::start(Durability::Durable) else { return };
    let url = cluster.database();
    // The commit waits for a standby that never comes: it is on disk, and not answered.
    let mut store = Postgres::create(&address(&url)).unwrap();
    found(&mut store, "u").unwrap();
    cluster.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'never'");
    cluster.psql("postgres", "SELECT pg_reload_conf()");
    let waiting = std::thread::spawn(move || {
        let written: Result<(), StoreError> = store.write(|tx| append(tx, 1).map(Outcome::Commit));
        written
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while cluster.psql("postgres", waits).trim() != "1" {
        std::thread::sleep(Duration::from_millis(20));
    }
    cluster.kill();
    let written = waiting.join().unwrap();
    assert!(matches!(written, Err(StoreError::Unknown(_))), "{written:?}");
    cluster.restart();
    let mut store = Postgres::open(&address(&url)).unwrap();
    assert_eq!(store.read(|tx| load::workspace(tx)).unwrap().last_seq, 1, "it was committed after all");
}

/// What the cache keeps after a change must be what the database would answer: a row that a statement forgets to say it
/// touches would be decided upon as it was before.
#[test]
fn an_answer_that_is_kept_is_true() {
    use crate::load::{DEPENDENCIES, HOLDER, PARTS, TASK, grant::WORKSTATION, session::LAST};
    use crate::statement::Statement;
    use crate::tests::conformance::harness::{add, claimed, furnish, spec, write};
    use onus_core::event::{Dropped, Released};

    let Some(cluster) = Cluster::shared() else { return };
    let mut store = Postgres::create(&address(&cluster.database())).unwrap();
    furnish(&mut store);
    let (task, child) = ("T-1", "T-2");
    let questions = || -> Vec<Box<dyn Statement>> {
        vec![
            Box::new(TASK { task }),
            Box::new(TASK { task: child }),
            Box::new(HOLDER { task }),
            Box::new(DEPENDENCIES { task: child }),
            Box::new(PARTS { task }),
            Box::new(WORKSTATION { workstation: "ws-1" }),
            Box::new(LAST { worker: "@bot", workstation: "ws-1" }),
        ]
    };
    let answers = |tx: &mut dyn Tx| -> Result<Vec<String>, StoreError> {
        questions().iter().map(|question| Ok(format!("{:?}", tx.rows(&**question)?))).collect()
    };
    let checked = |tx: &mut dyn Tx, what: &str| -> Result<(), StoreError> {
        let kept = answers(tx)?;
        // A statement that declares nothing empties the cache.
        tx.run(&FORGET {})?;
        assert_eq!(kept, answers(tx)?, "after: {what}");
        tx.prefetch(&questions())
    };
    let played: Result<(), StoreError> = store.write(|tx| {
        let first = add(tx, spec("one"), &[])?;
        let id = first.id.clone();
        add(tx, spec("two"), &[task])?;
        tx.prefetch(&questions())?;
        let first = write(tx, Some(first), &id, "@bot", Some("ws-1"), claimed(1))?;
        checked(tx, "a claim")?;
        let released = Released { note: None, reason: None, forced: false, late_by_ms: None };
        let first = write(tx, Some(first), &id, "@bot", Some("ws-1"), released)?;
        checked(tx, "a release")?;
        let first = write(tx, Some(first), &id, "@bot", Some("ws-1"), claimed(2))?;
        checked(tx, "another claim")?;
        let released = Released { note: None, reason: None, forced: false, late_by_ms: None };
        let first = write(tx, Some(first), &id, "@bot", Some("ws-1"), released)?;
        checked(tx, "another release")?;
        // Nobody holds it: nothing but its own row is changed.
        write(tx, Some(first), &id, "@ada", None, Dropped { reason: "no".into() })?;
        checked(tx, "a drop")?;
        Ok(Outcome::Commit(()))
    });
    played.unwrap();
}
