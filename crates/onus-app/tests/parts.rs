//! What is too long for one answer comes in parts, and the parts are the whole.

use super::desk::{Desk, id};
use onus_app::report::{AuditKind, When};
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::id::Handle;
use onus_core::main_of_record::{CLONES_MAX, RepositoryClone};
use serde_json::json;
use std::collections::BTreeSet;

const TASKS: usize = 40;

fn request(on: &str) -> Command {
    let words = |word: &str| Some(word.repeat(3_900 / word.len()));
    Command::RequestException { on: id(on), reason: words("why "), rollback: words("back "), adr: None }
}

#[test]
fn what_comes_in_parts_is_whole() {
    let mut desk = Desk::new();
    desk.import(&json!({ "title": "first" }).to_string());
    let line = |n: usize| json!({ "title": format!("task {n}"), "depends_on": ["T-1"] }).to_string();
    desk.import(&(0..TASKS).map(line).collect::<Vec<_>>().join("\n"));
    for n in 0..TASKS {
        desk.submit("@bot", &format!("T-{}", n + 2), None, request("T-1"));
        desk.submit("@bot", "T-2", None, request("T-1"));
    }
    let (mut seen, mut after, mut parts) = (BTreeSet::new(), None, 0);
    loop {
        let view = desk.onus.exceptions(None, after.as_ref()).unwrap();
        assert!(view.exceptions.iter().all(|one| seen.insert(one.task.clone())), "told twice");
        (after, parts) = (view.next, parts + 1);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((seen.len(), parts > 1), (TASKS, true));
    assert_eq!(desk.onus.exceptions(None, Some(&id("T-99"))).unwrap_err().code, Code::UnknownTask);

    let (mut told, mut after, mut parts) = (Vec::new(), None, 0);
    loop {
        let view = desk.onus.report_incident(&id("T-2"), after).unwrap();
        told.extend(view.timeline.iter().map(|moment| moment.seq));
        (after, parts) = (view.next, parts + 1);
        if after.is_none() {
            break;
        }
    }
    assert!(told.is_sorted() && told.len() == TASKS + 2 && parts > 1, "{parts}: {told:?}");

    let (when, only) = (When::default(), [AuditKind::Exception]);
    let part = desk.onus.audit_part(None, &when, &only, None).unwrap();
    let whole = desk.onus.report_audit(None, &when, &only).unwrap();
    assert!(part.more && part.next == part.lines.last().map(|line| line.seq));
    assert_eq!((whole.lines.len(), whole.more, whole.next), (2 * TASKS, false, None));
    assert!(whole.lines.is_sorted_by_key(|line| line.seq));
    assert_eq!((whole.counts["exception"], part.counts["exception"]), (80, 80), "of the whole stretch");
}

/// Whoever could say that somebody else's clone is elsewhere would keep a takeover from barring what is under way in it.
#[test]
fn a_clone_is_moved_by_a_person_or_by_whoever_joined_it() {
    let mut desk = Desk::new();
    let (ada, bot, other): (Handle, Handle, Handle) =
        ("@ada".parse().unwrap(), "@bot".parse().unwrap(), "@other".parse().unwrap());
    desk.onus.add_worker(Some(&ada), &super::desk::worker("@other", onus_core::worker::Kind::Agent)).unwrap();
    let clone = |n: usize, path: &str| RepositoryClone {
        id: format!("{n:016x}").parse().unwrap(),
        host: "h".into(),
        path: path.into(),
    };
    let mut join = |by: &Handle, n: usize, path: &str| {
        desk.onus.add_clone(Some(by), &clone(n, path)).map_err(|refusal| refusal.code)
    };
    assert_eq!(join(&ada, 1, "/a/.git"), Ok(()));
    assert_eq!(join(&bot, 1, "/a/.git"), Ok(()), "where it is known to be");
    assert_eq!(join(&bot, 1, "/tmp/.git"), Err(Code::HumanRequired));
    assert_eq!(join(&bot, 2, "/b/.git"), Ok(()));
    assert_eq!(join(&other, 2, "/tmp/.git"), Err(Code::HumanRequired));
    assert_eq!(join(&bot, 2, "/c/.git"), Ok(()), "its own");
    assert_eq!(join(&ada, 2, "/d/.git"), Ok(()));
    assert_eq!(join(&bot, 2, "/c/.git"), Err(Code::HumanRequired), "a person's by now");
    for n in 3..=CLONES_MAX {
        assert_eq!(join(&bot, n, "/x/.git"), Ok(()));
    }
    assert_eq!(join(&bot, 999, "/x/.git"), Err(Code::InvalidInput));
    desk.assert_sound();
}
