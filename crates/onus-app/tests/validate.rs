//! `validate` on real rows, damaged behind the rules' back. What counts as a finding is tested in onus-core.

use super::desk::Desk;
use onus_app::progress::{Progress, Silent};
use onus_core::command::{Command, Warrant};
use rusqlite::Connection;

fn findings(desk: &mut Desk) -> Vec<String> {
    let view = desk.onus.validate(&mut Silent).unwrap();
    assert_eq!(view.counts.findings, view.findings.len() as i64);
    assert!(view.findings.iter().all(|finding| finding.hint.is_some()));
    view.findings.iter().map(|finding| format!("{} {}", finding.task, finding.code)).collect()
}

/// Changes rows as no command would.
fn damage(desk: &Desk, sql: &str) {
    let file = Connection::open(desk.path()).unwrap();
    file.pragma_update(None, "foreign_keys", false).unwrap();
    file.execute_batch(sql).unwrap();
}

fn three() -> Desk {
    let mut desk = Desk::new();
    desk.import(
        "{\"title\":\"a\"}\n{\"title\":\"b\",\"depends_on\":[\"T-1\"],\"id\":\"T-2\"}\n{\"title\":\"a\",\"id\":\"T-1\"}",
    );
    desk
}

#[test]
fn a_sound_store_has_none() {
    let mut desk = three();
    assert_eq!(findings(&mut desk), Vec::<String>::new());
    let counts = desk.onus.validate(&mut Silent).unwrap().counts;
    assert_eq!((counts.tasks, counts.dependencies), (3, 1));
    assert_eq!(findings(&mut Desk::new()), Vec::<String>::new());
}

#[test]
fn what_no_command_would_write_is_found() {
    let check = |sql: &str, expected: &[&str]| {
        let mut desk = three();
        damage(&desk, sql);
        assert_eq!(findings(&mut desk), expected, "{sql}");
    };
    check("INSERT INTO dependency VALUES (1, 'T-1', 'T-2', 0)", &["T-2 dependency_cycle"]);
    check("INSERT INTO dependency VALUES (1, 'T-1', 'T-9', 0)", &["T-1 unknown_task"]);
    check("UPDATE task SET parent = id WHERE id = 'T-3'", &["T-3 queue_invalid"]);
    check("UPDATE task SET parent = 'T-9' WHERE id = 'T-3'", &["T-3 unknown_task"]);
    check("UPDATE task SET state = 'in_progress' WHERE id = 'T-3'", &["T-3 queue_invalid"]);
    check(
        "UPDATE task SET checks = '[{\"command\":\"true\",\"state\":\"approved\"}]'",
        &["T-3 queue_invalid", "T-2 queue_invalid", "T-1 queue_invalid"],
    );
}

#[test]
fn a_dropped_dependency_is_found() {
    let mut desk = three();
    desk.submit("@ada", "T-1", None, Command::Drop { reason: Some("no".into()) });
    assert_eq!(findings(&mut desk), ["T-2 queue_invalid"]);
}

#[test]
fn a_lost_assignment_is_found() {
    let mut desk = three();
    let claim = Command::Claim {
        workstation: Some("ws-1".parse().unwrap()),
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    desk.submit("@bot", "T-1", None, claim);
    assert_eq!(findings(&mut desk), Vec::<String>::new());
    damage(&desk, "UPDATE assignment SET epoch = 7");
    assert_eq!(findings(&mut desk), ["T-1 queue_invalid"]);
    damage(&desk, "UPDATE assignment SET ended_at = 1");
    assert_eq!(findings(&mut desk), ["T-1 queue_invalid"]);
}

#[test]
fn progress_is_told() {
    #[derive(Default)]
    struct Told(Vec<String>);
    impl Progress for Told {
        fn begin(&mut self, what: &str, total: Option<u64>) {
            self.0.push(format!("{what} {total:?}"));
        }
        fn at(&mut self, done: u64) {
            self.0.push(done.to_string());
        }
        fn end(&mut self) {
            self.0.push("end".into());
        }
    }
    let mut desk = Desk::new();
    desk.import(&"{\"title\":\"x\"}\n".repeat(2_500));
    let mut told = Told::default();
    desk.onus.validate(&mut told).unwrap();
    assert_eq!(told.0, ["validating Some(2500)", "1000", "2000", "end"]);
}
