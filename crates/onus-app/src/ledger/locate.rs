//! Looks closely at one chain that does not hold, and says where and how.

use super::finding::{FindingKind, Findings};
use super::fold::{Collect, Fold};
use onus_core::effect::Effect;
use onus_core::event::Said;
use onus_core::hash::Digest;
use onus_core::id::Seq;
use onus_core::ledger::Entry;
use onus_core::task::{Spec, State, Task};
use onus_core::text::Text;
use onus_store::error::Result;
use onus_store::load::Stored;
use onus_store::port::{Tx, Value};
use onus_store::read::audit::Shown;
use onus_store::read::show::{self, PastAssignment, Session};
use onus_store::read::{audit, ledger};
use std::collections::BTreeMap;

/// What is known about the whole ledger when a chain is looked at.
#[derive(Debug)]
pub(super) struct LedgerOverview<'a> {
    pub(super) workspace: &'a str,
    /// Runs of numbers without an entry: first and last.
    pub(super) gaps: &'a [(Seq, Seq)],
}

impl LedgerOverview<'_> {
    fn has_gap_between(&self, after: Seq, before: Seq) -> bool {
        self.gaps.iter().any(|(first, last)| *first > after && *last < before)
    }
}

/// Entries as stored; one that cannot be read keeps its place.
pub(super) type Chain = Vec<(Seq, std::result::Result<Entry, String>)>;

pub(super) fn read_chain(tx: &mut dyn Tx, task: Option<&str>) -> Result<Chain> {
    let mut entries = Vec::new();
    ledger::chain(tx, task, &mut |seq, entry| {
        entries.push((seq, entry.map_err(|error| error.to_string())));
        Ok(())
    })?;
    Ok(entries)
}

pub(super) fn task(
    tx: &mut dyn Tx,
    site: &LedgerOverview<'_>,
    name: &str,
    found: &mut Findings,
) -> Result<()> {
    let before = found.count();
    let entries = read_chain(tx, Some(name))?;
    let row = audit::task_row(tx, name)?;
    links(site, Some(name), &entries, found);
    match &row {
        None => found.add(
            FindingKind::RowMissing,
            entries.first().map(|(seq, _)| *seq),
            Some(name),
            "it has entries but no row",
        ),
        Some(Err(error)) => {
            found.add(FindingKind::RowDiffers, None, Some(name), format!("its row makes no sense: {error}"));
        }
        Some(Ok(stored)) => ends_alike(name, &entries, stored, found),
    }
    // Where the chain itself is broken, its fold says nothing about the rows.
    if found.count() == before {
        rows(tx, name, &entries, row.and_then(std::result::Result::ok).as_ref(), found)?;
    }
    if found.count() == before {
        found.add(FindingKind::RowDiffers, None, Some(name), "its rows do not add up to its entries");
    }
    Ok(())
}

/// Hashes and links of one chain.
pub(super) fn links(site: &LedgerOverview<'_>, name: Option<&str>, entries: &Chain, found: &mut Findings) {
    // The entry before: its place, its hash as stored and as computed. An editor may have changed either.
    let mut before: Option<(Seq, [Digest; 2])> = Some((0, [Digest::ZERO; 2]));
    for (at, (seq, entry)) in entries.iter().enumerate() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                found.add(FindingKind::Unreadable, *seq, name, error.clone());
                before = None;
                continue;
            }
        };
        let computed = entry.expected_hash(site.workspace);
        if computed != entry.hash {
            found.add(
                FindingKind::Edited,
                *seq,
                name,
                format!("its fields give the hash {computed}, not {}", entry.hash),
            );
        } else if let Some((last, hashes)) = before
            && !hashes.contains(&entry.prev)
        {
            let (kind, detail) = unlinked(site, entries, at, entry, last);
            found.add(kind, *seq, name, detail);
        }
        before = Some((*seq, [entry.hash, computed]));
    }
}

/// Why an entry does not follow the one before it.
fn unlinked(
    site: &LedgerOverview<'_>,
    entries: &Chain,
    at: usize,
    entry: &Entry,
    last: Seq,
) -> (FindingKind, String) {
    let others = || entries.iter().enumerate().filter(|(other, _)| *other != at);
    let readable =
        || others().filter_map(|(other, (seq, entry))| entry.as_ref().ok().map(|entry| (other, seq, entry)));
    if let Some((_, twin, _)) = readable().find(|(_, _, other)| other.prev == entry.prev) {
        return (FindingKind::Forked, format!("the entry {twin} follows the same entry"));
    }
    if let Some((_, later, _)) = readable().find(|(other, _, later)| *other > at && later.hash == entry.prev)
    {
        return (FindingKind::Reordered, format!("it follows the entry {later}, which comes after it"));
    }
    if site.has_gap_between(last, entry.seq) {
        return (
            FindingKind::Deleted,
            format!("the entry that it follows is gone; it was between {last} and {}", entry.seq),
        );
    }
    let before = if last == 0 { "a beginning".to_owned() } else { format!("the entry {last}") };
    (FindingKind::Unlinked, format!("it does not follow {before}: one of them was rewritten"))
}

/// The row names the chain's length and its last hash.
fn ends_alike(name: &str, entries: &Chain, stored: &Stored, found: &mut Findings) {
    let (version, length) = (stored.task.version, entries.len() as i64);
    let last = entries.last().map(|(seq, _)| *seq);
    if length < version {
        let detail = format!("its row counts {version} entries, its chain has {length}");
        found.add(FindingKind::Truncated, last, Some(name), detail);
    } else if length > version {
        let detail = format!("its row counts {version} entries, its chain has {length}");
        found.add(FindingKind::RowDiffers, last, Some(name), detail);
    } else if let Some((seq, Ok(entry))) = entries.last()
        && entry.hash != stored.head
    {
        let detail = format!("its chain ends with {}, its row says {}", entry.hash, stored.head);
        found.add(FindingKind::RowDiffers, *seq, Some(name), detail);
    }
}

/// What the rows say against what the entries say.
fn rows(
    tx: &mut dyn Tx,
    name: &str,
    entries: &Chain,
    row: Option<&Stored>,
    found: &mut Findings,
) -> Result<()> {
    let mut said = Collect::default();
    let mut fold = Fold::default();
    for (seq, entry) in entries {
        let Ok(entry) = entry else { return Ok(()) };
        let played = entry.open().and_then(|stamped| {
            fold.step(stamped, &mut said).map_err(|inconsistent| inconsistent.to_string())
        });
        if let Err(error) = played {
            found.add(FindingKind::Inconsistent, *seq, Some(name), error);
            return Ok(());
        }
    }
    if let (Some(task), Some(spec), Some(row)) = (fold.finish(&mut said), said.spec.take(), row) {
        // What was asked for is told at the beginning; only checks and criteria change afterwards.
        let (checks, criteria) = (task.spec.checks.clone(), task.spec.criteria.clone());
        let spec = Spec { checks, criteria, ..spec };
        compare_task(name, &Task { spec, ..task }, &row.task, found);
    }
    assignments(tx, name, said.assignments, found)?;
    sessions(tx, name, said.sessions, found)?;
    session_facts(tx, name, &said.session_facts, found)?;
    notes(tx, name, &said.notes, found)?;
    let runs = said.runs.iter().map(|(seq, run)| (*seq, audit::run(*seq, run))).collect();
    shown(tx, name, Shown::Run, runs, found)?;
    let reviews = said.reviews.iter().map(|(seq, review)| (*seq, audit::review(*seq, review))).collect();
    shown(tx, name, Shown::Review, reviews, found)?;
    landed(tx, name, said.landed, found)
}

/// Which commits an entry says have landed.
fn landed(
    tx: &mut dyn Tx,
    name: &str,
    mut said: Vec<(Seq, String, i64)>,
    found: &mut Findings,
) -> Result<()> {
    for row in audit::landed_of(tx, name)? {
        match said.iter().position(|one| *one == row) {
            Some(at) => drop(said.swap_remove(at)),
            None => {
                let detail = format!("no entry says that {} landed", onus_core::id::shown(&row.1));
                found.add(FindingKind::RowDiffers, row.0, Some(name), detail);
            }
        }
    }
    for (seq, commit, _) in said {
        found.add(FindingKind::RowMissing, seq, Some(name), format!("that {commit} landed is gone"));
    }
    Ok(())
}

/// Runs and reviews: the text by its digest, the rest column by column.
fn shown(
    tx: &mut dyn Tx,
    name: &str,
    about: Shown,
    mut said: BTreeMap<Seq, [Vec<Value<'_>>; 2]>,
    found: &mut Findings,
) -> Result<()> {
    let what = match about {
        Shown::Run => "run of a check",
        Shown::Review => "review",
    };
    audit::shown_of(tx, name, about, &mut |_, [text, rest]| {
        let Some(Value::Int(seq)) = rest.first() else {
            return Ok(());
        };
        match said.remove(seq) {
            Some([_, recorded]) if recorded.as_slice() != rest => {
                found.add(
                    FindingKind::RowDiffers,
                    *seq,
                    Some(name),
                    format!("its {what} is not the one on record"),
                );
            }
            Some([recorded, _]) if recorded.as_slice() != text => {
                let detail = format!("the text of its {what} is not the one that was recorded");
                found.add(FindingKind::TextDiffers, *seq, Some(name), detail);
            }
            Some(_) => {}
            None => {
                found.add(
                    FindingKind::RowDiffers,
                    *seq,
                    Some(name),
                    format!("a {what} that no entry speaks of"),
                );
            }
        }
        Ok(())
    })?;
    for seq in said.keys() {
        found.add(FindingKind::RowMissing, *seq, Some(name), format!("its {what} is gone"));
    }
    Ok(())
}

fn compare_task(name: &str, said: &Task, row: &Task, found: &mut Findings) {
    if said.spec.body != row.spec.body {
        found.add(
            FindingKind::TextDiffers,
            said.born,
            Some(name),
            "its body is not the text that was recorded",
        );
    }
    let mut differ = Vec::new();
    let mut compare = |field: &'static str, same: bool| {
        if !same {
            differ.push(field);
        }
    };
    // The body has a finding of its own.
    let spec = |task: &Task| {
        let spec = onus_core::task::Spec { body: None::<Text>, ..task.spec.clone() };
        serde_json::to_value(spec).unwrap_or_default()
    };
    let (said_spec, row_spec) = (spec(said), spec(row));
    compare("spec", said_spec == row_spec);
    compare("uid", said.uid == row.uid);
    compare("depends_on", said.depends_on == row.depends_on);
    compare("state", said.state.name() == row.state.name());
    compare("assignment", said.assignment() == row.assignment());
    compare("state's data", apart_from_assignment(&said.state) == apart_from_assignment(&row.state));
    compare("epoch", said.epoch == row.epoch);
    compare("version", said.version == row.version);
    compare("archived", said.archived == row.archived);
    compare("born", said.born == row.born);
    compare("created_by", said.created_by == row.created_by);
    compare("created_at", said.created_at == row.created_at);
    compare("updated_at", said.updated_at == row.updated_at);
    if differ.is_empty() {
        return;
    }
    let mut fields: Vec<String> =
        differ.iter().filter(|field| **field != "spec").map(ToString::to_string).collect();
    fields.extend(spec_fields(&said_spec, &row_spec));
    let detail = format!("its row is not what its entries say: {}", fields.join(", "));
    found.add(FindingKind::RowDiffers, None, Some(name), detail);
}

fn apart_from_assignment(state: &State) -> String {
    match state {
        State::Open | State::InProgress(_) => String::new(),
        State::Blocked { on, .. } => on.to_string(),
        State::Complete(closing) | State::Dropped(closing) => format!("{closing:?}"),
    }
}

fn spec_fields(said: &serde_json::Value, row: &serde_json::Value) -> Vec<String> {
    let (Some(said), Some(row)) = (said.as_object(), row.as_object()) else {
        return Vec::new();
    };
    let mut names: Vec<&String> =
        said.keys().chain(row.keys()).filter(|name| said.get(*name) != row.get(*name)).collect();
    names.sort();
    names.dedup();
    names.into_iter().cloned().collect()
}

fn assignments(tx: &mut dyn Tx, name: &str, said: Vec<PastAssignment>, found: &mut Findings) -> Result<()> {
    let mut said: BTreeMap<i64, PastAssignment> =
        said.into_iter().map(|past| (past.assignment.epoch, past)).collect();
    for row in show::assignments_of(tx, name)? {
        match row {
            Err(error) => found.add(
                FindingKind::RowDiffers,
                None,
                Some(name),
                format!("an assignment makes no sense: {error}"),
            ),
            Ok(row) => {
                let epoch = row.assignment.epoch;
                let same = said.remove(&epoch).is_some_and(|past| {
                    past.assignment == row.assignment
                        && past.ended_at == row.ended_at
                        && past.end_reason == row.end_reason
                });
                if !same {
                    let detail = format!("its assignment of epoch {epoch} is not what its entries say");
                    found.add(FindingKind::RowDiffers, None, Some(name), detail);
                }
            }
        }
    }
    for epoch in said.keys() {
        found.add(
            FindingKind::RowMissing,
            None,
            Some(name),
            format!("its assignment of epoch {epoch} is gone"),
        );
    }
    Ok(())
}

fn sessions(tx: &mut dyn Tx, name: &str, said: Vec<Session>, found: &mut Findings) -> Result<()> {
    let mut said: BTreeMap<Seq, Session> = said.into_iter().map(|session| (session.id, session)).collect();
    for row in show::sessions_of(tx, name)? {
        match row {
            Err(error) => {
                found.add(
                    FindingKind::RowDiffers,
                    None,
                    Some(name),
                    format!("a session makes no sense: {error}"),
                );
            }
            Ok(row) => {
                let same =
                    said.remove(&row.id).is_some_and(|session| format!("{session:?}") == format!("{row:?}"));
                if !same {
                    let detail = format!("its session {} is not what its entries say", row.id);
                    found.add(FindingKind::RowDiffers, row.id, Some(name), detail);
                }
            }
        }
    }
    for id in said.keys() {
        found.add(FindingKind::RowMissing, *id, Some(name), format!("its session {id} is gone"));
    }
    Ok(())
}

fn session_facts(tx: &mut dyn Tx, name: &str, said: &[(Seq, Effect)], found: &mut Findings) -> Result<()> {
    let mut said: BTreeMap<Seq, &Effect> = said.iter().map(|(seq, effect)| (*seq, effect)).collect();
    for (seq, row) in audit::session_facts_of(tx, name)? {
        let columns = said.remove(&seq).and_then(|effect| audit::session_fact(seq, effect));
        if columns.is_none_or(|columns| columns.as_slice() != row.as_slice()) {
            let detail = "what its row says about a session is not what the entry says";
            found.add(FindingKind::RowDiffers, seq, Some(name), detail);
        }
    }
    for seq in said.keys() {
        found.add(FindingKind::RowMissing, *seq, Some(name), "what was said about a session is gone");
    }
    Ok(())
}

fn notes(
    tx: &mut dyn Tx,
    name: &str,
    said: &[(Seq, &'static str, Digest, Option<Said>)],
    found: &mut Findings,
) -> Result<()> {
    let mut said: BTreeMap<Seq, (&str, Digest, &Option<Said>)> =
        said.iter().map(|(seq, kind, text, elsewhere)| (*seq, (*kind, *text, elsewhere))).collect();
    for row in audit::notes_of(tx, name)? {
        match said.remove(&row.seq) {
            Some((kind, text, elsewhere)) if text == Digest::of(row.text.as_bytes()) => {
                if *elsewhere != row.said {
                    let detail = "who said its note elsewhere is not what was recorded";
                    found.add(FindingKind::RowDiffers, row.seq, Some(name), detail);
                }
                if kind != row.kind {
                    let detail = format!(
                        "its note {} is a {kind} note, not {}",
                        row.seq,
                        onus_core::id::shown(&row.kind)
                    );
                    found.add(FindingKind::RowDiffers, row.seq, Some(name), detail);
                }
            }
            Some(_) => found.add(
                FindingKind::TextDiffers,
                row.seq,
                Some(name),
                "its note is not the text that was recorded",
            ),
            None => found.add(FindingKind::RowDiffers, row.seq, Some(name), "a note that no entry speaks of"),
        }
    }
    for seq in said.keys() {
        found.add(FindingKind::RowMissing, *seq, Some(name), "its note is gone");
    }
    Ok(())
}
