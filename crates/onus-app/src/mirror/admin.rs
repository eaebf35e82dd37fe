//! What people ask and do about mirrors.

use super::outlet::Outlet;
use super::view::{CheckedView, DiffView, MirrorView, MirrorsView, StuckDelivery, TriedView};
use crate::Onus;
use crate::idempotent_admin::Asker;
use crate::remote::calls;
use crate::submit::unexpected;
use onus_core::code::Code;
use onus_core::effect::effects;
use onus_core::event::{Noted, Stamped};
use onus_core::id::{Handle, MirrorName, Seq, TaskId};
use onus_core::ledger::Entry;
use onus_core::mirror::Undelivered;
use onus_core::mirror::drift::drift;
use onus_core::refusal::Refusal;
use onus_core::registry::person;
use onus_core::task::evolve;
use onus_core::text::{REASON_MAX, Text, line};
use onus_core::time::Timestamp;
use onus_store::apply::{self, Change};
use onus_store::error::Result as StoreResult;
use onus_store::load;
use onus_store::mirror::{self as rows, StoredCounterpart};
use onus_store::port::{Outcome, Store, Tx};
use onus_store::read::ledger::{self, LedgerPart};
use std::collections::BTreeMap;

/// So many stuck deliveries are told one by one.
const TOLD: i64 = 50;
/// So much of the ledger is looked through for what nobody has sorted yet.
const UNSORTED: i64 = 10_000;
const PAGE: i64 = 500;

impl Onus {
    /// How every mirror stands.
    pub fn mirrors(&mut self) -> Result<MirrorsView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Mirrors {})? {
            return Ok(answer);
        }
        let outlets = self.outlets();
        self.ask(|tx| {
            let views = outlets.iter().map(|outlet| standing(tx, outlet));
            Ok(MirrorsView { mirrors: views.collect::<StoreResult<_>>()? })
        })
    }

    /// Tries everything that a mirror's settings name.
    pub fn check_mirror(&mut self, name: &MirrorName) -> Result<CheckedView, Refusal> {
        let tried: Vec<TriedView> = self
            .far_end(name)?
            .check()
            .into_iter()
            .map(|one| TriedView {
                what: one.what,
                ok: one.found.is_ok(),
                detail: one.found.unwrap_or_else(|why| why),
            })
            .collect();
        Ok(CheckedView { name: name.clone(), ok: tried.iter().all(|one| one.ok), tried })
    }

    /// Compares what a mirror was told with what it shows now.
    pub fn diff_mirror(&mut self, name: &MirrorName) -> Result<DiffView, Refusal> {
        let mut far = self.far_end(name)?;
        let (mut view, mut after) = (DiffView::default(), String::new());
        loop {
            let page = self.ask(|tx| rows::known(tx, name, &after, PAGE))?;
            for row in &page {
                let (Some(far_id), Ok(task)) = (&row.told.far_id, row.task.parse::<TaskId>()) else {
                    continue;
                };
                view.looked_at += 1;
                match far.look(&row.told).map_err(|failure| unreachable(name, failure))? {
                    Some(there) => view.drift.extend(drift(&task, far_id, &row.told.read_back, &there)),
                    None => view.gone.push(task),
                }
            }
            match page.last() {
                Some(last) if page.len() as i64 == PAGE => after = last.task.clone(),
                _ => return Ok(view),
            }
        }
    }

    /// Lets what is stuck be tried at once: people only.
    pub fn retry_mirror<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &MirrorName,
        task: Option<&TaskId>,
    ) -> Result<MirrorsView, Refusal> {
        let call = calls::RetryMirror { mirror: name.clone(), task: task.cloned() };
        let outlet = self.set_up_here(name)?;
        self.administer(asker, &call, |tx, caller| {
            person(caller)?;
            if rows::find(tx, name)?.is_some() {
                rows::put_stand(tx, name, 0, Timestamp(0), None)?;
                rows::retry(tx, name, task.map(ToString::to_string).as_deref())?;
            }
            Ok(Outcome::Commit(one_view(tx, outlet.as_ref())?))
        })
    }

    /// Leaves out what a mirror was not told of a task: people only, with a reason that goes on record.
    pub fn skip_mirror<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &MirrorName,
        task: &TaskId,
        reason: Option<&str>,
    ) -> Result<MirrorsView, Refusal> {
        let call =
            calls::SkipMirror { mirror: name.clone(), task: task.clone(), reason: reason.map(str::to_owned) };
        let outlet = self.set_up_here(name)?;
        self.administer(asker, &call, |tx, caller| {
            let by = person(caller)?.clone();
            let reason = reason.ok_or_else(|| {
                Refusal::new(Code::ReasonRequired, "leaving a delivery out needs a reason")
                    .hint("--reason TEXT")
            })?;
            let reason = line("the reason", reason, REASON_MAX).map_err(Refusal::invalid)?;
            let row = rows::one(tx, name, &task.to_string())?.filter(|row| row.heard > row.delivered);
            let mut row = row.ok_or_else(|| {
                Refusal::new(Code::UnknownTask, format!("nothing of {task} waits for the mirror {name}"))
                    .hint("onus mirror status")
            })?;
            let text = format!(
                "left out of the mirror {name} (entries {} to {}): {reason}",
                row.delivered + 1,
                row.heard
            );
            let noted = Noted { text: Text::new(text), renewal: None, handoff: false, said: None };
            let seq = write_note(tx, &by, task, noted)?;
            // The note itself is about the mirror, and is not told there.
            (row.delivered, row.stuck, row.attempts, row.error) = (seq, false, 0, None);
            rows::put(tx, &row)?;
            Ok(Outcome::Commit(one_view(tx, outlet.as_ref())?))
        })
    }

    /// Has everything told again; what the far end still has is known by its marks.
    pub fn retell_mirror(&mut self, name: &MirrorName) -> Result<u64, Refusal> {
        let outlet = self.outlet(name)?;
        self.store.write(|tx| {
            if rows::find(tx, name)?.is_some() {
                rows::put_stand(tx, name, 0, Timestamp(0), None)?;
            }
            // Who only hears was told, and is not told again.
            let told_again = if outlet.hears_the_past() { rows::retell(tx, name)? } else { 0 };
            Ok::<_, Refusal>(Outcome::Commit(told_again))
        })
    }

    /// What the settings say, where they are; through a server they are there.
    fn set_up_here(&mut self, name: &MirrorName) -> Result<Option<Outlet>, Refusal> {
        if self.store.remote().is_some() {
            return Ok(None);
        }
        self.outlet(name).map(Some)
    }
}

/// Writes a comment down, in the same transaction as what it is about.
fn write_note(tx: &mut dyn Tx, by: &Handle, id: &TaskId, noted: Noted) -> Result<Seq, Refusal> {
    let stored =
        load::task(tx, id)?.ok_or_else(|| Refusal::new(Code::UnknownTask, format!("there is no {id}")))?;
    let (workspace, wall) = (load::workspace(tx)?, tx.now()?.wall);
    let seq = workspace.last_seq + 1;
    let stamped =
        Stamped::following(Some(&stored.task), seq, id.clone(), wall, by.clone(), None, noted.into());
    let after = evolve(Some(stored.task.clone()), &stamped).map_err(unexpected)?;
    let entry = Entry::seal(&workspace.uid, &stamped, stored.head).map_err(unexpected)?;
    let effects = effects(Some(&stored.task), &stamped, &after);
    apply::change(
        tx,
        &Change { before: Some(&stored.task), after: &after, entry: &entry, effects: &effects },
    )?;
    Ok(seq)
}

fn unreachable(name: &MirrorName, failure: Undelivered) -> Refusal {
    let why = match failure {
        Undelivered::Away(why) | Undelivered::Silent(why) | Undelivered::Refused(why) => why,
        Undelivered::WentBack => "it has lost what it was told".to_owned(),
    };
    Refusal::new(Code::MirrorStuck, format!("the mirror {name}: {why}"))
        .hint(format!("onus mirror check {name}"))
}

fn one_view(tx: &mut dyn Tx, outlet: Option<&Outlet>) -> Result<MirrorsView, Refusal> {
    let outlet = outlet.ok_or_else(|| unexpected("a mirror without settings"))?;
    Ok(MirrorsView { mirrors: vec![standing(tx, outlet)?] })
}

fn standing(tx: &mut dyn Tx, outlet: &Outlet) -> StoreResult<MirrorView> {
    let name = &outlet.name;
    let now = tx.now()?.wall;
    let stand = rows::find(tx, name)?;
    let waiting = rows::waiting(tx, name)?;
    let (unsorted, since) = match &stand {
        Some(stand) => unsorted(tx, outlet, stand.heard)?,
        None if outlet.hears_the_past() => unsorted(tx, outlet, 0)?,
        None => (0, None),
    };
    let oldest = waiting.oldest.into_iter().chain(since).min();
    let stuck = rows::stuck(tx, name, TOLD)?;
    let drifted = rows::drifted(tx, name, TOLD)?;
    Ok(MirrorView {
        name: name.clone(),
        kind: outlet.kind.clone(),
        url: outlet.url.clone(),
        pending: waiting.tasks + unsorted,
        stuck: waiting.stuck,
        lag_ms: oldest.map_or(0, |oldest| now.since(oldest).0.max(0)),
        last_error: stand
            .as_ref()
            .and_then(|stand| stand.error.clone())
            .or_else(|| stuck.first().and_then(|row| row.error.clone())),
        is_sending: stand.as_ref().is_some_and(|stand| stand.sender.is_some() && stand.lent_until >= now),
        failures: stand.as_ref().map_or(0, |stand| stand.failures),
        next_attempt_at: stand.as_ref().map(|stand| stand.next_at).filter(|at| *at > now),
        polled_at: stand.as_ref().map(|stand| stand.polled_at).filter(|at| at.0 > 0),
        stuck_tasks: stuck.into_iter().map(|row| stuck_delivery(name, row)).collect(),
        drift: drifted.into_iter().flat_map(|row| row.drift).collect(),
    })
}

fn stuck_delivery(name: &MirrorName, row: StoredCounterpart) -> StuckDelivery {
    let task: Option<TaskId> = row.task.parse().ok();
    let of = task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    StuckDelivery {
        task,
        far_id: row.told.far_id,
        since: row.since,
        attempts: row.attempts,
        error: row.error.unwrap_or_default(),
        hint: format!("onus mirror retry {name}{of}, once its cause is gone"),
    }
}

/// Tasks of which something happened that nobody has sorted yet, beside those that wait already, and since when.
fn unsorted(tx: &mut dyn Tx, outlet: &Outlet, heard: i64) -> StoreResult<(i64, Option<Timestamp>)> {
    let mut tasks = BTreeMap::new();
    let mut since: Option<Timestamp> = None;
    for entry in ledger::log(tx, &LedgerPart::After(heard), UNSORTED)? {
        let is_wanted = entry.open().is_ok_and(|stamped| outlet.wants(&stamped.event));
        let Some(task) = entry.task.filter(|_| is_wanted) else { continue };
        tasks.entry(task).or_insert((0, entry.at)).0 = entry.seq;
    }
    let mut count = 0;
    for (task, (newest, at)) in tasks {
        // What waits already is counted with the rows; what a person left out is not to be told at all.
        let is_counted = rows::one(tx, &outlet.name, &task)?
            .is_some_and(|row| row.heard > row.delivered || row.delivered >= newest);
        if !is_counted {
            count += 1;
            since = since.into_iter().chain([at]).min();
        }
    }
    Ok((count, since))
}
