//! An entry in a few words, for people who read a time line.

use crate::constraint;
use crate::event::{Event, Grant};
use crate::id::CommitId;
use crate::time::Millis;

/// What an event says beyond its verb; empty where the verb says it all. Texts are named by digest in the record, so
/// that they are not here.
pub fn said(event: &Event) -> String {
    let mut parts = Vec::new();
    match event {
        Event::Added(added) => parts.push(added.spec.title.clone()),
        Event::Claimed(claimed) => {
            granted(&mut parts, &claimed.grant);
            parts.extend(claimed.reason.clone());
        }
        Event::TakenOver(taken) => {
            parts.push(format!("from {}", taken.from));
            granted(&mut parts, &taken.grant);
            parts.push(taken.reason.clone());
            parts.extend(taken.dead.as_ref().map(ToString::to_string));
        }
        Event::Blocked(blocked) => {
            parts.push(format!("on {}", blocked.on));
            parts.extend(blocked.limits.iter().map(|limit| limit.detail.clone()));
        }
        Event::Released(released) => {
            parts.extend(released.forced.then(|| "by force".to_owned()));
            parts.extend(released.reason.clone());
        }
        Event::Completed(completed) => {
            parts.extend(completed.forced.then(|| "by force".to_owned()));
            parts.extend(completed.commit.as_ref().map(at));
            parts.extend(completed.reason.clone());
            parts.extend(completed.root_cause.as_ref().map(|cause| cause.statement.clone()));
        }
        Event::Refused(refused) => {
            let command = refused.command.replace('_', " ");
            parts.push(format!("{command}: {} ({})", refused.detail, refused.code));
        }
        Event::CheckRun(run) => {
            parts.push(format!("{} {}", run.check, run.verdict.name().replace('_', " ")));
            parts.extend(run.ground.commit.as_ref().map(at));
            parts.extend(run.ground.dirty.then(|| "uncommitted changes".to_owned()));
        }
        Event::Reviewed(review) => {
            parts.push(format!("{}, {}", review.verdict.name(), review.classification.name()));
            parts.extend(review.commit.as_ref().map(at));
        }
        Event::Merged(merged) => parts.push(at(&merged.commit)),
        Event::Salvaged(salvaged) => parts.push(format!("kept in {}", salvaged.reference)),
        other => parts.extend(of_the_rest(other)),
    }
    parts.extend(super::late_by(event).map(|late| format!("{} late", Millis(late))));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn of_the_rest(event: &Event) -> Option<String> {
    let because = |what: String, reason: &Option<String>| match reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what,
    };
    Some(match event {
        Event::Edited(edited) => edited.before.differences(&edited.after).join("; "),
        Event::Constrained(said) => {
            let allowed = constraint::words(&said.after);
            if allowed.is_empty() { "nothing is held back".to_owned() } else { format!("only: {allowed}") }
        }
        Event::Followed(followed) => match (&followed.archived, &followed.blocked) {
            (Some(end), _) => end.state.to_string(),
            (None, Some(on)) => on.to_string(),
            (None, None) => "open".to_owned(),
        },
        Event::Reopened(reopened) => reopened.reason.clone(),
        Event::Dropped(dropped) => dropped.reason.clone(),
        Event::DependencyAdded(added) => added.on.to_string(),
        Event::DependencyRemoved(removed) => removed.on.to_string(),
        Event::ProjectAdded(added) => added.key.to_string(),
        Event::ExceptionRequested(asked) => format!("not to wait for {}: {}", asked.on, asked.reason),
        Event::ExceptionApproved(approved) => format!("not to wait for {}", approved.on),
        Event::CheckAdded(added) => added.check.command.clone(),
        Event::CheckApproved(approved) => approved.check.to_string(),
        Event::CheckRemoved(removed) => format!("{}: {}", removed.check, removed.reason),
        Event::SessionCorrected(corrected) => {
            let (from, to) = (corrected.started_at, corrected.ended_at);
            format!("{from} to {to}: {}", corrected.reason)
        }
        Event::SessionUsed(used) => format!("{} tokens", used.usage.counts.tokens()),
        Event::OutputClosed(closed) => {
            format!("{} bytes, {} of them kept", closed.output.bytes, closed.output.kept)
        }
        Event::WorkerAdded(added) => format!("{}, {}", added.handle, added.kind.name()),
        Event::WorkerPaused(paused) => format!("{}: {}", paused.handle, paused.reason),
        Event::WorkerResumed(resumed) => resumed.handle.to_string(),
        Event::WorkstationAdded(added) => added.name.to_string(),
        Event::WorkstationReady(ready) => ready.name.to_string(),
        Event::WorkstationNotReady(failing) => {
            let failed: Vec<&str> = failing.failed.iter().map(|result| result.probe.as_str()).collect();
            format!("{}: {}", failing.name, failed.join(", "))
        }
        Event::WorkstationQuarantined(closed) => format!("{}: {}", closed.name, closed.reason),
        Event::WorkstationRestored(restored) => because(restored.name.to_string(), &restored.reason),
        Event::WorkstationRetired(retired) => because(retired.name.to_string(), &retired.reason),
        Event::TokenIssued(issued) => {
            let whom = issued.worker.as_ref().map(|worker| format!(" for {worker}")).unwrap_or_default();
            format!("{}, {}{whom}", issued.id, issued.kind.name())
        }
        Event::TokenRevoked(revoked) => because(revoked.id.to_string(), &revoked.reason),
        Event::GenerationRaised(raised) => format!("{}: {}", raised.generation, raised.reason),
        Event::Imported(imported) => {
            let changed = match imported.changed {
                0 => String::new(),
                changed => format!(", {changed} of them changed"),
            };
            format!("{} created, {} existing{changed}", imported.created, imported.existing)
        }
        Event::TimesheetApproved(approved) => {
            format!("{}, {} to {}", approved.worker, approved.from, approved.to)
        }
        Event::Messaged(said) => said.to.as_ref().map_or_else(String::new, |to| format!("to {to}")),
        Event::MessagesRead(read) => format!("up to {}", read.through),
        Event::LimitsLifted(lifted) => {
            let all: Vec<&str> = lifted.limits.iter().map(|one| one.detail.as_str()).collect();
            all.join("; ")
        }
        Event::LineCommented(comment) => format!("{}:{}", comment.path, comment.line),
        Event::CriteriaTicked(ticked) => {
            let word = if ticked.withdrawn { "open again" } else { "met" };
            format!("{} {word}", ticked.criteria.len())
        }
        Event::MilestoneAdded(added) => added.name.to_string(),
        Event::MilestoneClosed(closed) => closed.name.to_string(),
        Event::MilestoneEdited(edited) => match edited.target {
            Some(target) => format!("{}, for {target}", edited.name),
            None => edited.name.to_string(),
        },
        Event::ViewSaved(saved) => match saved.query {
            Some(_) => saved.name.clone(),
            None => format!("{}: removed", saved.name),
        },
        Event::PushedByPerson(pushed) => {
            let names: Vec<&str> = pushed.moves.iter().map(|moved| moved.refname.as_str()).collect();
            names.join(", ")
        }
        _ => return None,
    })
}

fn granted(parts: &mut Vec<String>, grant: &Grant) {
    parts.extend(grant.assignee.as_ref().map(|assignee| format!("for {assignee}")));
    parts.extend(grant.forced.then(|| "by force".to_owned()));
    let rule = grant.route.as_ref().filter(|_| !grant.forced).map(|route| route.rule.clone());
    parts.extend(rule);
}

fn at(commit: &CommitId) -> String {
    format!("at {}", commit.as_str().get(..8).unwrap_or(commit.as_str()))
}
