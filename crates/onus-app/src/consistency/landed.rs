//! What is in the main of record against what the record says has landed: each commit belongs to the assignment that brought
//! it there (invariant own-commits), and what somebody vouched for must be there.

use super::queue::Queue;
use super::{Disagreement, DisagreementView, brief, named};
use onus_core::id::{CommitId, TaskId};
use onus_host::refs::Commit;
use onus_store::landed::LandedCommit;
use std::collections::{BTreeMap, BTreeSet};

/// Commits that name an assignment which did not land them. What was done before landings were recorded says nothing.
pub(super) fn foreign(commits: &[Commit], queue: &Queue) -> Vec<DisagreementView> {
    let ids: BTreeSet<&str> = queue.landed.iter().map(|landed| landed.commit.as_str()).collect();
    let tasks: BTreeSet<&TaskId> = queue.landed.iter().map(|landed| &landed.task).collect();
    let mut found: BTreeMap<TaskId, Vec<&Commit>> = BTreeMap::new();
    for commit in commits.iter().filter(|commit| !ids.contains(commit.id.as_str())) {
        for task in named(commit).filter_map(|name| name.parse::<TaskId>().ok()) {
            let Some(known) = queue.tasks.get(&task).filter(|known| !known.is_held()) else { continue };
            let epoch = commit.trailers.epoch.as_deref().and_then(|epoch| epoch.parse().ok());
            let agent = commit.trailers.agent.as_deref();
            // Words about what was never granted are told as such.
            let was_granted = known
                .grants
                .iter()
                .any(|grant| Some(grant.epoch) == epoch && Some(grant.assignee.as_str()) == agent);
            if tasks.contains(&task) && was_granted {
                found.entry(task).or_default().push(commit);
            }
        }
    }
    found.iter().map(|(task, commits)| foreign_view(task, commits)).collect()
}

fn foreign_view(task: &TaskId, commits: &[&Commit]) -> DisagreementView {
    let newest = commits.first().map_or("", |commit| brief(&commit.id));
    let detail = format!(
        "the commit {newest}{} names {task}, which did not bring it to the main branch",
        and_more(commits.len())
    );
    let hint =
        format!("git show {newest}; onus show {task} tells what landed; revert it, or leave it to a person");
    DisagreementView::new(Disagreement::CommitNotLanded, detail, hint).task(task).path(newest)
}

/// What the record says has landed and the main of record has not.
pub(super) fn missing(main: &BTreeSet<&str>, landed: &[LandedCommit]) -> Vec<DisagreementView> {
    let mut found: BTreeMap<&TaskId, Vec<&CommitId>> = BTreeMap::new();
    for one in landed.iter().filter(|one| !main.contains(one.commit.as_str())) {
        found.entry(&one.task).or_default().push(&one.commit);
    }
    let view = |(task, commits): (&TaskId, Vec<&CommitId>)| {
        let first = commits.first().map_or("", |id| brief(id.as_str()));
        let detail = format!(
            "{task} is recorded as landed with {first}{}, which the main branch has not",
            and_more(commits.len())
        );
        let hint = format!(
            "onus ledger log --task {task} tells who vouched for it; onus reopen {task} --reason TEXT"
        );
        DisagreementView::new(Disagreement::LandedNotThere, detail, hint).task(task).path(first)
    };
    found.into_iter().map(view).collect()
}

/// Commits of no task at all, since the first task was given away.
pub(super) fn unowned(commits: &[Commit], before: &BTreeSet<String>) -> Option<DisagreementView> {
    let all: Vec<&Commit> = commits
        .iter()
        .filter(|commit| named(commit).next().is_none() && !before.contains(&commit.id))
        .collect();
    let newest = brief(&all.first()?.id);
    let detail = format!("the commit {newest}{} of the main branch belongs to no task", and_more(all.len()));
    let hint = format!("git show {newest}; git.unowned in onus.yaml says what is made of such commits");
    Some(DisagreementView::new(Disagreement::CommitOfNoTask, detail, hint).path(newest))
}

fn and_more(count: usize) -> String {
    if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() }
}
