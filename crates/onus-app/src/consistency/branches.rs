//! What the branches of workstations carry that the main branch has not.

use super::queue::Queue;
use super::{Disagreement, DisagreementView, Record, brief, named};
use crate::merge::short;
use onus_core::id::TaskId;
use onus_core::task::StateName;
use onus_host::refs::Commit;
use onus_store::registry::WorkstationHolding;
use std::collections::BTreeMap;

pub(super) fn findings(record: &Record, queue: &Queue) -> Vec<DisagreementView> {
    let rows = record.unmerged.iter().filter(|(_, left)| !left.is_empty());
    rows.flat_map(|(row, left)| branch(record, queue, row, left)).collect()
}

fn branch(
    record: &Record,
    queue: &Queue,
    row: &WorkstationHolding,
    left: &[Commit],
) -> Vec<DisagreementView> {
    let name = &row.workstation.name;
    let holds = row.holds.as_ref().map(|(task, _)| task.to_string());
    // A commit without trailers counts for the task that is held there, else for the last one that was.
    let last = queue.last.get(name).map(|grant| grant.task.to_string());
    let assumed = holds.clone().or(last).unwrap_or_default();
    let mut by_task: BTreeMap<&str, Vec<&Commit>> = BTreeMap::new();
    for commit in left {
        // The next grant there puts the branch back; until then nothing is lost, and nobody need do anything.
        if record.kept.contains(&commit.id) && is_outdated(queue, commit) {
            continue;
        }
        let mut names = named(commit).peekable();
        if names.peek().is_none() {
            by_task.entry(&assumed).or_default().push(commit);
        }
        for task in names {
            by_task.entry(task).or_default().push(commit);
        }
    }
    let of_others = by_task.into_iter().filter(|(task, _)| holds.as_deref() != Some(*task));
    of_others.map(|(task, commits)| left_behind(record, queue, row, task, &commits)).collect()
}

/// Whether somebody else went on with the task of a commit.
fn is_outdated(queue: &Queue, commit: &Commit) -> bool {
    let epoch = commit.trailers.epoch.as_deref().and_then(|epoch| epoch.parse::<i64>().ok());
    let known = named(commit).filter_map(|name| name.parse::<TaskId>().ok()).map(|id| queue.tasks.get(&id));
    let mut is_later = known
        .map(|known| known.is_some_and(|known| known.grants.iter().any(|grant| Some(grant.epoch) > epoch)));
    epoch.is_some() && is_later.all(|later| later)
}

fn left_behind(
    record: &Record,
    queue: &Queue,
    row: &WorkstationHolding,
    task: &str,
    commits: &[&Commit],
) -> DisagreementView {
    let main = short(&record.main);
    let name = &row.workstation.name;
    let branch = row.workstation.branch.as_ref().map_or("", |branch| branch.as_str());
    let newest = commits.first().map_or("", |commit| brief(&commit.id));
    let count = match commits.len() {
        1 => "1 commit".to_owned(),
        n => format!("{n} commits"),
    };
    let look = format!("git log {main}..{branch}");
    let known = task.parse::<TaskId>().ok().and_then(|id| queue.tasks.get(&id));
    let found = match known {
        Some(known) if known.state == StateName::Complete => DisagreementView::new(
            Disagreement::CompleteNotMerged,
            format!("{task} is complete, but {count} on {branch} ({newest}) of {name} are not in {main}"),
            match commits.iter().all(|commit| is_outdated(queue, commit)) {
                true => format!("{look}; onus workstation sync {name} keeps them and puts the branch back"),
                false => format!("{look}; merge what is missing, or onus reopen {task} --reason TEXT"),
            },
        ),
        Some(known) => DisagreementView::new(
            Disagreement::WorkOfEndedAssignment,
            format!(
                "{branch} of {name} has {count} ({newest}) of {task}, which is {} and not held there",
                known.state
            ),
            format!("{look}; claim {task} there to go on, or move the work away: git branch NAME {branch}"),
        ),
        None if task.is_empty() => DisagreementView::new(
            Disagreement::WorkOfEndedAssignment,
            format!("{branch} of {name} has {count} ({newest}) of no task, and nobody works there"),
            format!("{look}; ask for a task for it: onus add TITLE"),
        ),
        None => DisagreementView::new(
            Disagreement::CommitOfUnknownTask,
            format!(
                "{branch} of {name} has {count} ({newest}) of {}, which is no task of this queue",
                onus_core::id::shown(task)
            ),
            look,
        ),
    };
    if task.is_empty() { found.path(branch) } else { found.task(task).path(branch) }
}
