//! `merge`: the holder's commits enter the main branch, in the order that the queue gives (mission D5, D11).

use super::{Context, Decision};
use crate::code::Code;
use crate::event::Merged;
use crate::facts::{Dependency, Slice};
use crate::id::CommitId;
use crate::queue;
use crate::refusal::{Finding, Refusal};
use crate::task::{State, StateName};

pub(super) fn decide(
    context: &Context<'_>,
    commit: &CommitId,
    onto: &CommitId,
    checks: &[String],
) -> Result<Decision, Refusal> {
    let held = context.working_holder()?;
    if !matches!(context.task.state, State::InProgress(_)) {
        return Err(context.wrong_state("merged"));
    }
    let mut findings = dependencies(&context.facts.dependencies);
    findings.extend(slices(context.task.spec.merge_order, &context.facts.slices));
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal);
    }
    let merged = Merged {
        commit: commit.clone(),
        onto: onto.clone(),
        checks: checks.to_vec(),
        renewal: context.renewal(held, None),
    };
    Ok(Decision::one(merged, Some(held.workstation.clone())))
}

/// An exception lets the work start early; it does not let it overtake.
fn dependencies(all: &[Dependency]) -> Vec<Finding> {
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
fn slices(own: Option<i64>, slices: &[Slice]) -> Vec<Finding> {
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
