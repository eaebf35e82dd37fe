//! What the commits of the main branch say about themselves, against what was granted.

use super::queue::{KnownWork, Queue};
use super::{Disagreement, DisagreementView, brief, named};
use onus_core::id::TaskId;
use onus_host::refs::Commit;
use std::collections::BTreeMap;

/// Many commits of one task tell the same: it is said once, with how often.
#[derive(Default)]
struct ToldOnce<'a>(BTreeMap<(String, &'static str, String), (Disagreement, Vec<&'a str>)>);

impl<'a> ToldOnce<'a> {
    fn add(
        &mut self,
        kind: Disagreement,
        order: &'static str,
        task: &str,
        words: String,
        commit: &'a Commit,
    ) {
        let entry = self.0.entry((task.to_owned(), order, words)).or_insert((kind, Vec::new()));
        entry.1.push(&commit.id);
    }
}

pub(super) fn findings(commits: &[Commit], queue: &Queue) -> Vec<DisagreementView> {
    let mut told = ToldOnce::default();
    for commit in commits {
        let names: Vec<&str> = named(commit).collect();
        for name in &names {
            let known = name.parse::<TaskId>().ok().and_then(|id| Some((queue.tasks.get(&id)?, id)));
            match known {
                None => {
                    let words = "names a task that there is not".to_owned();
                    told.add(Disagreement::CommitOfUnknownTask, "1", name, words, commit);
                }
                Some((known, id)) => task(&mut told, commit, &id, known, names.len() == 1),
            }
        }
    }
    told.0
        .into_iter()
        .map(|((task, _, words), (kind, commits))| view(kind, &task, &words, &commits))
        .collect()
}

fn task<'a>(told: &mut ToldOnce<'a>, commit: &'a Commit, id: &TaskId, known: &KnownWork, is_only: bool) {
    let name = id.to_string();
    // A merge comes before its completion: who holds the task is about to say so.
    if known.state != onus_core::task::StateName::Complete && !known.is_held() {
        let words = format!("is in the main branch, but {id} is {} and nobody holds it", known.state);
        told.add(Disagreement::CommitOfUnfinishedTask, "2", &name, words, commit);
    }
    // Of several assignments made one commit, nobody can say which trailer belongs to which.
    if !is_only || known.archived {
        return;
    }
    let agent = commit.trailers.agent.as_deref();
    let Some(epoch) = commit.trailers.epoch.as_deref() else {
        if let Some(agent) = agent.filter(|agent| known.grants.iter().all(|g| g.assignee.as_str() != *agent))
        {
            let words = format!("names {}, to whom {id} was never given", onus_core::id::shown(agent));
            told.add(Disagreement::CommitByAnother, "4", &name, words, commit);
        }
        return;
    };
    let granted = epoch.parse::<i64>().ok().and_then(|epoch| known.grants.iter().find(|g| g.epoch == epoch));
    match (granted, agent) {
        (None, _) => {
            let words = format!("names the epoch {}, which {id} never had", onus_core::id::shown(epoch));
            told.add(Disagreement::EpochNeverGranted, "3", &name, words, commit);
        }
        (Some(grant), Some(agent)) if grant.assignee.as_str() != agent => {
            let agent = onus_core::id::shown(agent);
            let words = format!("names {agent}, but {id} was held by {} in epoch {epoch}", grant.assignee);
            told.add(Disagreement::CommitByAnother, "4", &name, words, commit);
        }
        _ => {}
    }
}

fn view(kind: Disagreement, task: &str, words: &str, commits: &[&str]) -> DisagreementView {
    let newest = commits.first().map_or("", |id| brief(id));
    let more = if commits.len() > 1 { format!(" (and {} more)", commits.len() - 1) } else { String::new() };
    let shown = onus_core::id::shown(task);
    let (detail, hint) = match kind {
        Disagreement::CommitOfUnknownTask => (
            format!("the commit {newest}{more} names {shown}, which is no task of this queue"),
            format!("git show {newest}; if the task is in another store, name that: --store URL"),
        ),
        Disagreement::CommitOfUnfinishedTask => (
            format!("the commit {newest}{more} {words}"),
            format!("claim and complete it, or drop it: onus show {task}"),
        ),
        _ => (
            format!("the commit {newest}{more} {words}"),
            format!("git show {newest}; onus show {task} tells who held it"),
        ),
    };
    DisagreementView::new(kind, detail, hint).task(task).path(newest)
}
