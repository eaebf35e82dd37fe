//! A process that stays knows what it wrote: a database that comes back without it grants nothing until a person has
//! raised the generation.

use super::desk::{Desk, id, open, request};
use onus_app::Onus;
use onus_app::last_commit::Memory;
use onus_app::submit::{Order, Target};
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::task::Spec;
use onus_store::port::{Outcome, Store as _};
use std::collections::BTreeSet;
use std::path::Path;

fn call(actor: &str, task: Option<&str>, command: Command) -> (Envelope, Target) {
    let (actor, task) = (Some(actor.parse().unwrap()), task.map(id));
    let envelope =
        Envelope { request: request(), actor, token: None, task, project: None, base: None, command };
    (envelope, Target::Named)
}

fn add() -> (Envelope, Target) {
    let spec = Box::new(Spec { kind: "chore".into(), ..Spec::titled("work") });
    call("@ada", None, Command::Add { spec, depends_on: BTreeSet::new(), archived: None, arrival: None })
}

fn claim(task: &str) -> (Envelope, Target) {
    let workstation = Some("ws-1".parse().unwrap());
    let command = Command::Claim {
        workstation,
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    call("@bot", Some(task), command)
}

/// A server's store and its memory.
struct Server {
    onus: Onus,
    memory: Memory,
}

impl Server {
    /// What each of the calls comes to, in one commit.
    fn submit(&mut self, calls: &[(Envelope, Target)]) -> String {
        let answers = self.onus.submit_orders(|| vec![Order { calls, shown: None }], &mut self.memory);
        let code = |answer: Result<_, onus_core::refusal::Refusal>| match answer {
            Ok(_) => "ok".to_owned(),
            Err(refusal) => refusal.code.to_string(),
        };
        answers.into_iter().map(code).collect::<Vec<_>>().join(" ")
    }

    /// The connection is lost, and what answers next is the store at `path`.
    fn fail_over(&mut self, path: &Path) {
        self.onus = open(path);
        self.memory.doubt();
    }

    fn raise_generation(&mut self) {
        let raised = self.onus.store.write(|tx| {
            onus_store::registry::raise_generation(tx, 1, 2)?;
            Ok::<_, onus_store::error::StoreError>(Outcome::Commit(()))
        });
        raised.unwrap();
    }
}

/// A server with two open tasks, and a copy of its store as of then.
fn server() -> (Server, Desk, std::path::PathBuf) {
    let desk = Desk::new();
    let mut server = Server { onus: open(&desk.path()), memory: Memory::default() };
    assert_eq!(server.submit(&[add(), add()]), "ok ok");
    let copy = desk.directory.path().join("standby.db");
    for ending in ["", "-wal"] {
        let named = |path: &Path| format!("{}{ending}", path.display());
        std::fs::copy(named(&desk.path()), named(&copy)).unwrap();
    }
    (server, desk, copy)
}

#[test]
fn a_database_without_the_last_writes_grants_nothing() {
    let (mut server, desk, standby) = server();
    assert_eq!(server.submit(&[claim("T-1")]), "ok");
    server.fail_over(&standby);
    assert_eq!(server.submit(&[claim("T-2")]), "store_behind_anchor");
    // What grants nothing goes on. That the record grows past what it lacks does not make up for it.
    assert_eq!(server.submit(&[add(), claim("T-1"), add()]), "ok store_behind_anchor ok");
    assert_eq!(server.submit(&[add()]), "ok");
    assert_eq!(server.submit(&[claim("T-1")]), "store_behind_anchor");
    server.fail_over(&standby);
    assert_eq!(server.submit(&[claim("T-1")]), "store_behind_anchor");
    server.raise_generation();
    assert_eq!(server.submit(&[claim("T-1"), add()]), "ok ok");
    // From here on it is this one that must not lose anything.
    server.fail_over(&desk.path());
    assert_eq!(server.submit(&[claim("T-2")]), "store_behind_anchor");
}

#[test]
fn the_same_database_is_known_again() {
    let (mut server, _desk, standby) = server();
    server.fail_over(&standby);
    assert_eq!(server.submit(&[claim("T-1")]), "ok");
    server.fail_over(&standby);
    assert_eq!(server.submit(&[add(), add()]), "ok ok");
    server.fail_over(&standby);
    assert_eq!(server.submit(&[claim("T-2")]), "workstation_busy");
    // Refused or not, nothing of what was rolled back is remembered.
    assert_eq!(server.submit(&[claim("T-2"), claim("T-1")]), "workstation_busy lease_held");
    server.fail_over(&standby);
    assert_eq!(server.submit(&[claim("T-3")]), "workstation_busy");
}
