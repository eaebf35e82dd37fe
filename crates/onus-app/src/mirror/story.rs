//! A task's story as news: what of it a far end has not been told, entry by entry.

use onus_core::event::{Event, Stamped};
use onus_core::id::TaskId;
use onus_core::mirror::{LastHolder, Tidings, Worked};
use onus_core::task::evolve;
use onus_host::mirror::FarEnd;
use onus_host::zone;
use onus_store::error::{Result, StoreError};
use onus_store::load;
use onus_store::mirror::StoredCounterpart;
use onus_store::port::Tx;
use onus_store::read::effort::{self, Which};
use onus_store::read::ledger::{self, LedgerPart};
use onus_store::read::show;

/// More sessions than a task has.
const SESSIONS: i64 = 10_000;

/// The news that wait for a far end, the oldest first.
pub(super) fn waiting(tx: &mut dyn Tx, far: &dyn FarEnd, row: &StoredCounterpart) -> Result<Vec<Tidings>> {
    let workspace = load::workspace(tx)?.uid;
    let mut news = match row.task.parse::<TaskId>() {
        Ok(task) => of_task(tx, &workspace, far, row, &task)?,
        Err(_) => of_workspace(tx, &workspace, far, row)?,
    };
    if let Some(newest) = news.last_mut() {
        newest.is_newest = true;
    }
    Ok(news)
}

fn of_task(
    tx: &mut dyn Tx,
    workspace: &str,
    far: &dyn FarEnd,
    row: &StoredCounterpart,
    id: &TaskId,
) -> Result<Vec<Tidings>> {
    let body = load::task(tx, id)?.and_then(|stored| stored.task.spec.body);
    let worked = worked(tx, id)?;
    let (mut task, mut holder, mut news) = (None, LastHolder::default(), Vec::new());
    for entry in ledger::log(tx, &LedgerPart::Task(id, 0), i64::MAX)? {
        let stamped = entry.open().map_err(StoreError::Corrupt)?;
        let after = evolve(task.take(), &stamped).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let mut picture = holder.picture(&after, &stamped.event);
        picture.body = body.as_ref().and_then(|body| body.content()).map(str::to_owned);
        task = Some(after);
        let is_wanted = far.wants(&stamped.event);
        if is_wanted && stamped.seq > row.delivered && stamped.seq <= row.heard {
            let said = said(tx, id, &stamped)?;
            let mut one = told(workspace, stamped, said);
            (one.task, one.worked) = (Some(picture), worked.clone());
            news.push(one);
        }
    }
    Ok(news)
}

fn of_workspace(
    tx: &mut dyn Tx,
    workspace: &str,
    far: &dyn FarEnd,
    row: &StoredCounterpart,
) -> Result<Vec<Tidings>> {
    let entries = ledger::log(tx, &LedgerPart::After(row.delivered), row.heard - row.delivered)?;
    let own = entries.into_iter().filter(|entry| entry.task.is_none() && entry.seq <= row.heard);
    let mut news = Vec::new();
    for entry in own {
        let stamped = entry.open().map_err(StoreError::Corrupt)?;
        if far.wants(&stamped.event) {
            news.push(told(workspace, stamped, None));
        }
    }
    Ok(news)
}

fn told(workspace: &str, stamped: Stamped, said: Option<String>) -> Tidings {
    Tidings {
        id: stamped.news_id(workspace),
        seq: stamped.seq,
        at: stamped.at,
        actor: stamped.actor,
        workstation: stamped.workstation,
        event: stamped.event,
        task: None,
        said,
        worked: Vec::new(),
        is_newest: false,
    }
}

/// The words that were written down with an entry.
fn said(tx: &mut dyn Tx, task: &TaskId, stamped: &Stamped) -> Result<Option<String>> {
    if matches!(stamped.event, Event::Reviewed(_)) {
        let review = show::reviews(tx, task, stamped.seq, stamped.seq + 1)?.pop();
        return Ok(review.and_then(|review| review.note));
    }
    match stamped.event {
        // The body of an edited task is kept as a note, and is nobody's words.
        Event::Edited(_) => Ok(None),
        _ => show::note(tx, stamped.seq),
    }
}

/// The sessions that have ended, as they count.
fn worked(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Worked>> {
    let mut found = Vec::new();
    for session in effort::list(tx, Which::OfTask(task), SESSIONS)? {
        let Some(ended) = session.ended() else { continue };
        let began = session.began();
        let zone = load::worker(tx, &session.worker)?.map_or_else(|| "UTC".to_owned(), |worker| worker.tz);
        let day = zone::date(&zone, began).map_err(StoreError::Corrupt)?;
        let seconds = ended.since(began).0 / 1_000;
        found.push(Worked { session: session.id, worker: session.worker, seconds, day });
    }
    found.sort_by_key(|one| one.session);
    Ok(found)
}
