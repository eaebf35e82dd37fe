//! Brings tasks up to date that another system owns: what its file says otherwise than the task's row.

use super::line::ImportLine;
use super::plan::{Fate, Plan};
use super::write::Refresh;
use onus_core::event::{Event, Noted};
use onus_core::refusal::Refusal;
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::show;

/// The tasks that their own system has changed since the last import, with what changes.
pub(super) fn refreshed(tx: &mut dyn Tx, lines: &[ImportLine], plan: &Plan) -> Result<Vec<Refresh>, Refusal> {
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.outside) {
        let Fate::Existing(id) = &plan.fates[place] else { continue };
        let Some(stored) = load::task(tx, id)? else { continue };
        let events = notes(tx, line, &stored.task.id)?;
        if !events.is_empty() {
            found.push(Refresh { task: stored.task, head: stored.head, events });
        }
    }
    Ok(found)
}

/// Comments that are not here yet, known by their key, or by who said what and when.
fn notes(tx: &mut dyn Tx, line: &ImportLine, id: &onus_core::id::TaskId) -> Result<Vec<Event>, Refusal> {
    if line.notes.is_empty() {
        return Ok(Vec::new());
    }
    let kept = show::notes(tx, id, 0, i64::MAX)?;
    let is_here = |(text, said): &&(onus_core::text::Text, onus_core::event::Said)| {
        kept.iter().any(|note| match (&note.said, &said.key) {
            (Some(there), Some(key)) => there.key.as_ref() == Some(key),
            (Some(there), None) => there == said && text.content() == Some(note.text.as_str()),
            (None, _) => false,
        })
    };
    let new = line.notes.iter().filter(|note| !is_here(note));
    let noted = |(text, said): &(onus_core::text::Text, onus_core::event::Said)| {
        Event::from(Noted { text: text.clone(), renewal: None, handoff: false, said: Some(said.clone()) })
    };
    Ok(new.map(noted).collect())
}
