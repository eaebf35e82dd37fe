//! Brings tasks up to date that another system owns: what its file says otherwise than last time.

use super::line::ImportLine;
use super::plan::{Fate, Plan};
use super::write::Refresh;
use super::{Authority, DriftView, ImportSession, decide_line};
use crate::submit::unexpected;
use onus_core::code::Code;
use onus_core::event::{Event, Noted, Said};
use onus_core::facts::{Caller, Facts};
use onus_core::id::TaskId;
use onus_core::intake::refresh::{Drift, Heard, Refreshed, is_current, refresh};
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::Task;
use onus_core::text::Text;
use onus_core::time::Now;
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::{ledger, show};
use std::collections::{BTreeSet, HashMap, HashSet};
use uuid::Uuid;

/// How many differences that stay are told.
const DRIFT_MAX: usize = 1_000;

/// What the lines of existing tasks change.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) tasks: Vec<Refresh>,
    pub(super) drift: Vec<DriftView>,
    /// Lines that are wrong, with what is.
    pub(super) refused: Vec<(usize, Refusal)>,
}

impl ImportSession<'_> {
    /// The tasks that their own system has changed since the last import, with what changes. Their lines are used up.
    pub(super) fn refreshed(
        &self,
        tx: &mut dyn Tx,
        facts: &mut Facts<'_>,
        lines: &mut [Option<ImportLine>],
        plan: &mut Plan,
        now: &Now,
    ) -> Result<Changed, Refusal> {
        let mut changed = Changed::default();
        let is_person = matches!(&facts.caller, Caller::Registered(worker) if worker.is_human());
        let may_change = is_person || self.authority == Authority::Settings;
        for (place, line) in lines.iter_mut().enumerate() {
            let Fate::Existing(id) = plan.fates[place].clone() else { continue };
            let Some(line) = line.take_if(|line| line.outside) else { continue };
            let Some(stored) = load::task(tx, &id)? else { continue };
            let number = line.number;
            let mut events = notes(tx, &line, &id)?;
            if may_change {
                match self.heard(facts, line, plan, place, now) {
                    Ok(heard) => {
                        let Refreshed { events: more, drift } = compared(tx, &stored.task, &heard)?;
                        let view = |Drift { field, here, there }| DriftView {
                            line: number,
                            task: id.clone(),
                            field: field.to_owned(),
                            here,
                            there,
                        };
                        changed.drift.extend(drift.into_iter().map(view));
                        events.extend(more);
                    }
                    Err(refusal) => changed.refused.push((place, refusal)),
                }
            }
            if !events.is_empty() {
                changed.tasks.push(Refresh { task: stored.task, head: stored.head, events });
            }
        }
        changed.drift.truncate(DRIFT_MAX);
        changed.refused.extend(circles(tx, &changed.tasks, plan)?);
        Ok(changed)
    }

    /// What a line says, under the rules of an ask.
    fn heard(
        &self,
        facts: &mut Facts<'_>,
        line: ImportLine,
        plan: &mut Plan,
        place: usize,
        now: &Now,
    ) -> Result<Heard, Refusal> {
        match decide_line(facts, line, plan, place, now, Uuid::nil())?.event {
            Event::Added(added) => Ok(Heard::from(added)),
            _ => Err(unexpected("an ask is an `added`")),
        }
    }
}

fn compared(tx: &mut dyn Tx, task: &Task, now: &Heard) -> Result<Refreshed, Refusal> {
    if is_current(task, now) {
        return Ok(Refreshed::default());
    }
    let mut before = None;
    ledger::chain(tx, Some(&task.id.to_string()), &mut |_, entry| {
        if let Ok(stamped) = entry?.open() {
            before = Heard::tell(before.take(), stamped.event);
        }
        Ok(())
    })?;
    Ok(before.map(|before| refresh(task, &before, now)).unwrap_or_default())
}

/// Comments that are not here yet, known by their key, or by who said what and when: there, or here before an export.
fn notes(tx: &mut dyn Tx, line: &ImportLine, id: &TaskId) -> Result<Vec<Event>, Refusal> {
    if line.notes.is_empty() {
        return Ok(Vec::new());
    }
    let kept = show::notes(tx, id, 0, i64::MAX)?;
    let is_here = |(text, said): &&(Text, Said)| {
        kept.iter().any(|note| match (&note.said, &said.key) {
            (Some(there), Some(key)) => {
                there.key.as_ref() == Some(key) && text.content() == Some(note.text.as_str())
            }
            (Some(there), None) => there == said && text.content() == Some(note.text.as_str()),
            (None, _) => {
                note.by == said.by && said.at == Some(note.at) && text.content() == Some(note.text.as_str())
            }
        })
    };
    let new = line.notes.iter().filter(|note| !is_here(note));
    let noted = |(text, said): &(Text, Said)| {
        Event::from(Noted { text: text.clone(), renewal: None, handoff: false, said: Some(said.clone()) })
    };
    Ok(new.map(noted).collect())
}

/// New dependencies and parents of tasks that are there must not lead back to them, through the file or the store.
fn circles(tx: &mut dyn Tx, tasks: &[Refresh], plan: &Plan) -> Result<Vec<(usize, Refusal)>, Refusal> {
    let mut ahead: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    let mut above: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    let places = plan.fates.iter().enumerate().filter(|(_, fate)| matches!(fate, Fate::New(_)));
    for (place, _) in places {
        let links = &plan.links[place];
        ahead.insert(plan.id(place).clone(), links.depends_on.iter().cloned().collect());
        above.insert(plan.id(place).clone(), links.parent.iter().cloned().collect());
    }
    let mut to_ask: Vec<(&TaskId, BTreeSet<TaskId>, Option<TaskId>)> = Vec::new();
    for Refresh { task, events, .. } in tasks {
        let (mut on, mut news, mut parent) = (task.depends_on.clone(), BTreeSet::new(), None);
        for event in events {
            match event {
                Event::DependencyAdded(added) => {
                    on.insert(added.on.clone());
                    news.insert(added.on.clone());
                }
                Event::DependencyRemoved(removed) => drop(on.remove(&removed.on)),
                Event::Edited(edited) if edited.after.parent != edited.before.parent => {
                    parent = edited.after.parent.clone();
                    above.insert(task.id.clone(), parent.iter().cloned().collect());
                }
                _ => {}
            }
        }
        ahead.insert(task.id.clone(), on.into_iter().collect());
        if !news.is_empty() || parent.is_some() {
            to_ask.push((&task.id, news, parent));
        }
    }
    let mut found = Vec::new();
    for (id, news, parent) in to_ask {
        let place = plan.fates.iter().position(|fate| *fate == Fate::Existing(id.clone())).unwrap_or(0);
        for on in news {
            if leads_to(tx, &on, id, &ahead, &waited_for)? {
                let detail = format!("{id} cannot depend on {on}, which waits for it");
                found.push((place, refused(Code::DependencyCycle, detail, &on)));
            }
        }
        if let Some(parent) = parent.filter(|parent| parent != id)
            && leads_to(tx, &parent, id, &above, &parent_of)?
        {
            let detail = format!("{id} cannot be a slice of {parent}, which is one of it");
            found.push((place, refused(Code::InvalidInput, detail, &parent)));
        }
    }
    Ok(found)
}

fn refused(code: Code, detail: String, other: &TaskId) -> Refusal {
    Refusal::new(code, detail.clone())
        .findings(vec![Finding::new(code, detail).hint(format!("onus show {other}"))])
}

type Neighbours = dyn Fn(&mut dyn Tx, &TaskId) -> Result<Vec<TaskId>, Refusal>;

fn waited_for(tx: &mut dyn Tx, id: &TaskId) -> Result<Vec<TaskId>, Refusal> {
    Ok(load::dependencies(tx, id)?.into_iter().map(|one| one.id).collect())
}

fn parent_of(tx: &mut dyn Tx, id: &TaskId) -> Result<Vec<TaskId>, Refusal> {
    Ok(load::task(tx, id)?.and_then(|stored| stored.task.spec.parent).into_iter().collect())
}

fn leads_to(
    tx: &mut dyn Tx,
    from: &TaskId,
    to: &TaskId,
    planned: &HashMap<TaskId, Vec<TaskId>>,
    stored: &Neighbours,
) -> Result<bool, Refusal> {
    let mut seen: HashSet<TaskId> = HashSet::new();
    let mut waiting = vec![from.clone()];
    while let Some(id) = waiting.pop() {
        if id == *to {
            return Ok(true);
        }
        if !seen.insert(id.clone()) {
            continue;
        }
        match planned.get(&id) {
            Some(next) => waiting.extend(next.iter().cloned()),
            None => waiting.extend(stored(tx, &id)?),
        }
    }
    Ok(false)
}
