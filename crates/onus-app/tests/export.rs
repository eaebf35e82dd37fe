//! `export`: what leaves a store comes back the same, or is refused.

use super::desk::{Desk, id};
use onus_app::export::ExportError;
use onus_app::progress::Silent;
use onus_core::command::{Command, Warrant, WhileBlocked};
use onus_core::task::{Blocker, StateName};
use onus_core::text::Text;
use onus_store::read::queue::Which;
use std::io::{self, Write};

/// A store with a bit of everything: held, blocked, complete, reopened, dropped and imported tasks, notes, a refusal.
fn lived_in() -> Desk {
    let mut desk = Desk::new();
    desk.import(
        "{\"title\":\"first\",\"id\":\"API-3\",\"body\":\"täxt\\n\\\"quoted\\\"\",\"checks\":[\"make test\"],\"tags\":[\"a\",\"b\"]}\n\
         {\"title\":\"second\",\"origin_ask_ref\":\"gh:2\",\"depends_on\":[\"API-3\"],\"scope\":[\"src/**\"],\"priority\":\"P0\"}\n\
         {\"title\":\"third\",\"parent\":\"gh:2\",\"merge_order\":1,\"role\":\"A-backend\",\"lane\":1,\"sprint\":\"s\",\"risk\":\"low\"}\n\
         {\"title\":\"fourth\",\"state\":\"done\",\"resolution\":\"long ago\"}\n{\"title\":\"fifth\"}\n{\"title\":\"sixth\"}\n",
    );
    let claim = || Command::Claim {
        workstation: Some("ws-1".parse().unwrap()),
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    let said = |text: &str| Some(Text::new(text.to_owned()));
    let held = desk.submit("@bot", "T-2", None, claim());
    desk.submit("@bot", "T-2", held.token.as_ref(), Command::Note { text: Text::new("going well".into()) });
    let complete = |words: &str| Command::Complete {
        resolution: said(words),
        root_cause: None,
        warrant: Warrant::Ordinary,
        proof: onus_core::evidence::Proof::default(),
    };
    desk.submit("@bot", "T-2", held.token.as_ref(), complete("it works"));
    desk.submit("@ada", "T-2", None, Command::Reopen { reason: Some("it does not".into()) });
    let held = desk.submit("@bot", "T-2", None, claim());
    let block = Command::Block {
        on: Blocker::External("the weather".into()),
        lease: WhileBlocked::ReleaseLease,
        note: None,
        handoff: None,
    };
    desk.submit("@bot", "T-2", held.token.as_ref(), block);
    desk.submit("@ada", "T-4", None, Command::Drop { reason: Some("not needed".into()) });
    desk.submit("@bot", "T-5", None, claim());
    desk
}

#[test]
fn tasks_come_back_under_their_ids() {
    let mut from = lived_in();
    let exported = from.export(Which::All);
    let mut to = Desk::new();
    let view = to.import(&exported);
    assert_eq!((view.created, view.existing, view.renamed.len()), (6, 0, 0));
    to.assert_sound();
    for (before, after) in from.tasks().iter().zip(to.tasks()) {
        for key in [
            "id",
            "uid",
            "title",
            "body",
            "type",
            "kind",
            "priority",
            "risk",
            "role",
            "lane",
            "sprint",
            "tags",
            "scope",
            "depends_on",
            "parent",
            "merge_order",
            "origin_ask_ref",
            "checks",
            "resolution",
        ] {
            assert_eq!(before[key], after[key], "{key} of {}", before["id"]);
        }
        let ended = ["complete", "dropped"].contains(&before["state"].as_str().unwrap());
        let expected = if ended { before["state"].as_str().unwrap() } else { "open" };
        assert_eq!(after["state"], expected, "{}", before["id"]);
        assert_eq!(after["archived"].as_bool().unwrap_or(false), ended);
    }
    // And the same file again, into the store it came from and the one it went to, changes nothing.
    assert_eq!(from.import(&exported).existing, 6);
    assert_eq!(to.import(&exported).existing, 6);
}

#[test]
fn a_reopened_task_has_no_resolution() {
    let mut desk = lived_in();
    let tasks = desk.tasks();
    let resolution =
        |task: &str| tasks.iter().find(|row| row["id"] == task).unwrap().get("resolution").cloned();
    assert_eq!(resolution("T-2"), None);
    assert_eq!(resolution("T-3"), Some("long ago".into()));
}

#[test]
fn a_part_can_be_exported() {
    let mut desk = lived_in();
    let ids = |desk: &mut Desk, which| -> Vec<String> {
        desk.export(which)
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned()
            })
            .collect()
    };
    assert_eq!(ids(&mut desk, Which::Only(StateName::Dropped)), ["T-4"]);
    assert_eq!(ids(&mut desk, Which::Active), ["API-3", "T-1", "T-2", "T-5"]);
}

/// A reader that goes away.
struct Gone(usize);

impl Write for Gone {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        self.0 -= 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away_is_no_fault_of_the_store() {
    let mut desk = lived_in();
    let broken = |result| match result {
        Err(ExportError::Writing(error)) => assert_eq!(error.kind(), io::ErrorKind::BrokenPipe),
        other => panic!("{other:?}"),
    };
    broken(desk.onus.export_tasks(Which::All, &mut Gone(2), &mut Silent));
    broken(desk.onus.export_archive(&mut Gone(2), &mut Silent));
}

fn archive(desk: &mut Desk) -> Vec<u8> {
    let mut bytes = Vec::new();
    desk.onus.export_archive(&mut bytes, &mut Silent).unwrap();
    bytes
}

#[test]
fn an_archive_restores_everything() {
    let mut from = lived_in();
    let bytes = archive(&mut from);
    let mut to = Desk::bare();
    let view = to.onus.import_archive(&mut bytes.as_slice(), &mut Silent).unwrap();
    assert_eq!(view.tasks, 6);
    assert_eq!(view.workspace, from.onus.status().unwrap().workspace);
    assert_eq!(view.ledger_entries, from.onus.status().unwrap().ledger_entries);
    assert_eq!(archive(&mut to), bytes, "byte for byte");
    to.assert_sound();
    assert_eq!(to.summary(), from.summary());
    // The story goes on: the holder still holds, numbers are not given twice.
    assert!(to.task("T-5").assignment().is_some());
    assert_eq!(to.import("{\"title\":\"next\"}").created, 1);
    assert_eq!(to.task("T-6").id, id("T-6"));
    to.assert_sound();
}

#[test]
fn an_archive_is_restored_only_where_nothing_is() {
    let mut from = lived_in();
    let bytes = archive(&mut from);
    let refusal = from.onus.import_archive(&mut bytes.as_slice(), &mut Silent).unwrap_err();
    assert!(refusal.detail.contains("already holds"), "{refusal}");
    let refusal = Desk::new().onus.import_archive(&mut bytes.as_slice(), &mut Silent).unwrap_err();
    assert!(refusal.detail.contains("already holds"), "{refusal}");
}

/// Nothing of a damaged archive stays, and the store can still take the whole one.
fn damaged(bytes: &[u8], whole: &[u8], what: &str) {
    let mut desk = Desk::bare();
    let refusal = desk.onus.import_archive(&mut &bytes[..], &mut Silent).expect_err(what);
    assert_eq!(refusal.code.name(), "invalid_input", "{what}: {refusal}");
    assert!(refusal.hint.is_some());
    desk.onus.import_archive(&mut &whole[..], &mut Silent).expect(what);
}

#[test]
fn a_damaged_archive_is_refused() {
    let whole = archive(&mut lived_in());
    let text = String::from_utf8(whole.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    damaged(b"", &whole, "nothing");
    damaged(b"{\"title\":\"x\"}\n", &whole, "another format");
    damaged(text.replace("onus-archive/1", "onus-archive/9").as_bytes(), &whole, "another version");
    damaged(text.replacen("\"schema\":", "\"schema\":9", 1).as_bytes(), &whole, "another schema");
    damaged(text.replace("going well", "going hell").as_bytes(), &whole, "an edit");
    damaged(format!("{text}{}\n", lines[1]).as_bytes(), &whole, "something after the end");
    damaged(text.replacen("\"table\":\"note\"", "\"table\":\"nope\"", 1).as_bytes(), &whole, "no such table");
    damaged(text.replacen("\"generation\":1", "\"generation\":\"1\"", 1).as_bytes(), &whole, "another kind");
    damaged(text.replacen("\"generation\":1,", "", 1).as_bytes(), &whole, "a column less");
    damaged(
        text.replacen("\"generation\":1,", "\"generation\":1,\"x\":1,", 1).as_bytes(),
        &whole,
        "a column more",
    );
    for cut in 0..lines.len() {
        damaged(format!("{}\n", lines[..cut].join("\n")).as_bytes(), &whole, "cut between lines");
    }
    for gone in 1..lines.len() - 1 {
        let mut fewer = lines.clone();
        fewer.remove(gone);
        damaged(format!("{}\n", fewer.join("\n")).as_bytes(), &whole, "a line less");
    }
    for cut in (0..whole.len()).step_by(997) {
        damaged(&whole[..cut], &whole, "cut anywhere");
    }
}
