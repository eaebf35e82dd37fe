//! The answer to a repeated request, told from the ledger: no receipt is stored beside it.

use crate::submit::{Receipt, ReceiptKind};
use onus_core::code::Code;
use onus_core::event::{Event, Stamped};
use onus_core::hash::Digest;
use onus_core::id::{Handle, RequestId, Seq, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::{Task, evolve};
use onus_core::text::Text;
use onus_store::apply;
use onus_store::load::{self, Replay, Workspace};
use onus_store::port::Tx;
use onus_store::read::ledger::{self, LedgerPart};

/// What a request led to before, if it was carried out. Another command under the same id is refused.
pub(crate) fn earlier(
    tx: &mut dyn Tx,
    request: &RequestId,
    fingerprint: &Digest,
) -> Result<Option<Replay>, Refusal> {
    match load::replay(tx, request)? {
        Some(earlier) if earlier.fingerprint != apply::fingerprint_key(fingerprint) => {
            Err(Refusal::new(Code::RequestConflict, format!("{request} was used for another command"))
                .hint("use a new request id for a new command"))
        }
        found => Ok(found),
    }
}

/// The answer to what became the entry `seq`, told to `to`. A lease token goes to its holder and to who made the grant: a
/// request id is no secret.
pub(crate) fn answer(
    tx: &mut dyn Tx,
    workspace: &Workspace,
    to: Option<&Handle>,
    seq: Seq,
) -> Result<Result<Receipt, Refusal>, Refusal> {
    let broken = |what: String| Refusal::new(Code::LedgerBroken, what).hint("onus ledger verify");
    let entry = ledger::entry(tx, seq)?.ok_or_else(|| broken(format!("the entry {seq} is missing")))?;
    let stamped = entry.open().map_err(broken)?;
    if let Event::Refused(refused) = &stamped.event {
        return Ok(Err(Refusal {
            code: refused.code,
            detail: refused.detail.clone(),
            hint: refused.hint.clone(),
            task: entry.task,
            findings: refused.findings.clone(),
            request_id: None,
        }));
    }
    let Some(id) = stamped.task.clone() else {
        return Ok(Err(Refusal::new(
            Code::RequestConflict,
            "the request changed the workspace, and no task",
        )
        .hint("send the same call again: its answer is kept")));
    };
    let task = as_of(tx, &id, seq)?;
    let token = match &stamped.event {
        Event::Claimed(_) | Event::TakenOver(_) if is_party(to, &stamped, &task) => {
            load::granted_lease(tx, &id, stamped.epoch)?
                .map(|(lease, _)| {
                    // A token dies with its generation; a replay must not revive it.
                    let generation = ledger::generation_at(tx, seq)?;
                    Ok::<_, Refusal>(Token {
                        generation: generation.min(workspace.generation),
                        epoch: stamped.epoch,
                        lease,
                    })
                })
                .transpose()?
        }
        _ => None,
    };
    let kind =
        if matches!(stamped.event, Event::Added(_)) { ReceiptKind::Created } else { ReceiptKind::Changed };
    Ok(Ok(Receipt { kind, task, token }))
}

fn is_party(to: Option<&Handle>, grant: &Stamped, task: &Task) -> bool {
    let holder = task.assignment().map(|held| &held.assignee);
    to.is_some_and(|to| *to == grant.actor || Some(to) == holder)
}

/// The task as it was right after the entry `seq`.
fn as_of(tx: &mut dyn Tx, id: &TaskId, seq: Seq) -> Result<Task, Refusal> {
    let broken = |what: String| Refusal::new(Code::LedgerBroken, what).task(id).hint("onus ledger verify");
    let mut task = None;
    for entry in ledger::log(tx, &LedgerPart::Task(id, 0), i64::MAX)? {
        if entry.seq > seq {
            break;
        }
        let stamped = entry.open().map_err(broken)?;
        task = Some(evolve(task, &stamped).map_err(|inconsistent| broken(inconsistent.to_string()))?);
    }
    let mut task = task.ok_or_else(|| broken(format!("{id} has no entry")))?;
    // The ledger knows the body by its digest only; the row has the text, or a note where it was edited since.
    if let Some(body) = &mut task.spec.body {
        let present = load::task(tx, id)?.and_then(|stored| stored.task.spec.body);
        match present.filter(|present| present == body) {
            Some(present) => *body = present,
            None => {
                let earlier = load::earlier_body(tx, id, body.digest())?;
                *body = earlier.map_or_else(|| body.clone(), Text::new);
            }
        }
    }
    Ok(task)
}
