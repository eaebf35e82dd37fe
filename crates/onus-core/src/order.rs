//! In which order work reaches the main branch (mission D1, D5): asked by `merge` and by `complete`, so that no way goes
//! round it.

use crate::code::Code;
use crate::facts::{Dependency, Slice};
use crate::id::TaskId;
use crate::queue;
use crate::refusal::Finding;
use crate::task::StateName;

/// Everything that comes first. `own` is the task's place among the slices of its parent; `parts` are its own slices.
pub fn findings(
    own: Option<i64>,
    dependencies: &[Dependency],
    slices: &[Slice],
    parts: &[(TaskId, StateName)],
) -> Vec<Finding> {
    let mut found = waiting_for(dependencies);
    found.extend(earlier(own, slices));
    found.extend(unfinished(parts));
    found
}

/// An exception lets the work start early; it does not let it overtake.
fn waiting_for(all: &[Dependency]) -> Vec<Finding> {
    let waiting = all.iter().filter(|dependency| dependency.state != Some(StateName::Complete));
    let overtaken = waiting.clone().filter(|dependency| dependency.excepted);
    let overtaken = overtaken.map(|Dependency { id, state, .. }| {
        let state = state.map_or("missing", StateName::name);
        let detail = format!(
            "it depends on {id}, which is {state}: the exception let this one start, {id} merges first"
        );
        Finding::new(Code::DependencyIncomplete, detail).hint(format!("onus show {id}"))
    });
    queue::incomplete(waiting.filter(|dependency| !dependency.excepted))
        .into_iter()
        .chain(overtaken)
        .collect()
}

/// Contracts before what is generated from them, that before implementations, those before their tests: the slices of
/// one parent merge in the order of their numbers.
fn earlier(own: Option<i64>, slices: &[Slice]) -> Vec<Finding> {
    let Some(own) = own else {
        return Vec::new();
    };
    let earlier = slices.iter().filter(|slice| {
        slice.merge_order < own && !matches!(slice.state, StateName::Complete | StateName::Dropped)
    });
    let finding = |slice: &Slice| {
        let Slice { id, state, merge_order } = slice;
        Finding::new(
            Code::DependencyIncomplete,
            format!("{id} merges first (order {merge_order} before {own}); it is {state}"),
        )
        .hint(format!("onus show {id}"))
    };
    earlier.map(finding).collect()
}

/// A parent is done when its slices are.
fn unfinished(parts: &[(TaskId, StateName)]) -> Vec<Finding> {
    let left = parts.iter().filter(|(_, state)| !state.is_terminal());
    let finding = |(id, state): &(TaskId, StateName)| {
        Finding::new(Code::DependencyIncomplete, format!("{id} is a part of it and {state}"))
            .hint(format!("onus show {id}"))
    };
    left.map(finding).collect()
}
