//! A client that was interrupted goes on with its own session: it knows what it has read and tried.

use super::lease::GrantedLease;
use crate::context::Store;
use onus_core::agents::{Preset, UsageSpan};
use onus_core::id::Seq;
use onus_core::output::step::{Step, StepReader, resumable};
use onus_core::refusal::Refusal;
use onus_core::session::Counts;
use std::ffi::OsString;

/// So many earlier sessions are looked through for what a thread has used.
const SESSIONS: i64 = 16;

/// How a client goes on.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    /// Its call, where there is something to go on with.
    pub(super) command: Option<Vec<OsString>>,
    /// What it will count once more: Codex counts from the beginning of a thread.
    pub(super) counted: Counts,
}

/// Only what the same worker did in the same place: that is where a client looks for its sessions.
pub(super) fn found(store: &mut Store, held: &GrantedLease, client: &Preset) -> Result<Resumed, Refusal> {
    let earlier = store.sessions(Some(&held.task), None, SESSIONS)?.sessions;
    let mut earlier = earlier.into_iter().filter(|one| one.id != held.session);
    let is_own =
        |worker: &str, place: &str| worker == held.worker.as_str() && place == held.workstation.as_str();
    let Some(last) = earlier.next().filter(|last| is_own(last.worker.as_str(), &last.workstation)) else {
        return Ok(Resumed::default());
    };
    let mut steps = steps(store, last.id)?;
    let Some(session) = resumable(&steps).map(str::to_owned) else { return Ok(Resumed::default()) };
    let Some(words) = client.resumed(&session) else { return Ok(Resumed::default()) };
    let mut counted = used(&steps);
    while let (UsageSpan::Thread, None) = (client.usage, counted) {
        let Some(before) = earlier.next() else { break };
        steps = self::steps(store, before.id)?;
        if resumable(&steps) != Some(&session) {
            break;
        }
        counted = used(&steps);
    }
    let counted = counted.filter(|_| client.usage == UsageSpan::Thread).unwrap_or_default();
    Ok(Resumed { command: Some(words.into_iter().map(OsString::from).collect()), counted })
}

/// As its client told it last.
fn used(steps: &[Step]) -> Option<Counts> {
    steps.iter().rev().find_map(|step| match step {
        Step::Used { counts } => Some(*counts),
        _ => None,
    })
}

fn steps(store: &mut Store, session: Seq) -> Result<Vec<Step>, Refusal> {
    let (mut reader, mut all, mut from) = (StepReader::default(), Vec::new(), 0);
    loop {
        let view = store.output(session, from)?;
        for piece in &view.pieces {
            let found = reader.push(piece.position, &piece.text);
            all.extend(found.into_iter().filter(|step| !matches!(step, Step::Printed { .. })));
        }
        if !view.more {
            all.extend(reader.finish());
            return Ok(all);
        }
        from = view.next;
    }
}
