//! `dep add` and `dep remove`: what waits for what; never in a circle (mission D1).

use super::{Context, Decision};
use crate::code::Code;
use crate::event::{DependencyAdded, DependencyRemoved};
use crate::id::TaskId;
use crate::queue;
use crate::refusal::Refusal;
use crate::text::LIST_MAX;

pub(super) fn add(context: &Context<'_>, on: &TaskId) -> Result<Decision, Refusal> {
    let id = &context.task.id;
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("given a dependency"));
    }
    // Whoever could give any task a dependency could stall the whole queue.
    let own = context.task.created_by == context.caller.handle || context.holder().is_ok();
    if !context.caller.is_human() && !own {
        return Err(Refusal::new(
            Code::NotPermitted,
            format!("{} neither holds {id} nor asked for it", context.caller.handle),
        )
        .hint("leave a note for its holder: onus note"));
    }
    if context.facts.dependencies.iter().any(|d| d.id == *on && d.state.is_none()) {
        return Err(
            Refusal::new(Code::UnknownTask, format!("there is no task {on}")).hint("onus list --state all")
        );
    }
    if context.task.depends_on.contains(on) {
        return Ok(Decision::Existing(id.clone()));
    }
    if let Some(way) = queue::path(&context.facts.reachable, on, id) {
        let way: Vec<String> = way.iter().map(TaskId::to_string).collect();
        let detail = format!("{id} cannot depend on {on}: {id} -> {}", way.join(" -> "));
        return Err(Refusal::new(Code::DependencyCycle, detail).hint(format!("onus dep remove {} …", way[0])));
    }
    if context.task.depends_on.len() >= LIST_MAX {
        return Err(Refusal::invalid(format!("{id} already has {LIST_MAX} dependencies")));
    }
    Ok(Decision::one(DependencyAdded { on: on.clone() }, None))
}

pub(super) fn remove(context: &Context<'_>, on: &TaskId) -> Result<Decision, Refusal> {
    let id = &context.task.id;
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("freed of a dependency"));
    }
    if !context.task.depends_on.contains(on) {
        return Err(Refusal::new(Code::UnknownName, format!("{id} does not depend on {on}"))
            .hint(format!("onus show {id}")));
    }
    // An agent that could remove a dependency could claim around it; that takes a person's word.
    if !context.caller.is_human() {
        return Err(context.human_required("remove a dependency"));
    }
    Ok(Decision::one(DependencyRemoved { on: on.clone() }, None))
}
