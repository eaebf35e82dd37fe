//! `review`: another identity, in another place, says what the work is (mission C12, D12).

use super::{Context, Decision, block};
use crate::code::Code;
use crate::command::Opinion;
use crate::event::{CriteriaTicked, Event, LineCommented, Reviewed};
use crate::id::{CheckId, CommitId, WorkstationName};
use crate::identity_map;
use crate::line_comment::{COMMENTS_MAX, LineComment};
use crate::refusal::{Finding, Refusal};
use crate::task::{Criterion, StateName};
use crate::text::{BODY_MAX, REASON_MAX, lines};

pub(super) fn decide(context: &Context<'_>, opinion: &Opinion) -> Result<Decision, Refusal> {
    let Opinion { verdict, classification, commit, workstation, note, comments } = opinion;
    if let Some(content) = note.as_ref().and_then(|note| note.content()) {
        lines("the note", content, BODY_MAX).map_err(Refusal::invalid)?;
    }
    if !matches!(context.task.state.name(), StateName::InProgress | StateName::Blocked) {
        return Err(context.wrong_state("reviewed"));
    }
    may_judge(context, workstation.as_ref())?;
    let mut events = commented(context, commit.as_ref(), comments)?;
    let reviewed = Reviewed {
        verdict: *verdict,
        classification: *classification,
        commit: commit.clone(),
        note: note.clone(),
    };
    events.push(reviewed.into());
    // Whoever waits for this reviewer's word has it now.
    events.extend(block::answer(context));
    Ok(Decision::Change { events, workstation: workstation.clone() })
}

/// Words about lines, which bind nobody: whoever may write a note may write them.
pub(super) fn comment(
    context: &Context<'_>,
    commit: Option<&CommitId>,
    comments: &[LineComment],
) -> Result<Decision, Refusal> {
    if comments.is_empty() {
        return Err(Refusal::invalid("there is no comment")
            .hint(format!("onus review {} --comment PATH:LINE TEXT", context.task.id)));
    }
    let events = commented(context, commit, comments)?;
    Ok(Decision::Change { events, workstation: None })
}

fn commented(
    context: &Context<'_>,
    commit: Option<&CommitId>,
    comments: &[LineComment],
) -> Result<Vec<Event>, Refusal> {
    if comments.len() > COMMENTS_MAX {
        return Err(Refusal::invalid(format!(
            "there are {} comments; the limit is {COMMENTS_MAX}",
            comments.len()
        )));
    }
    let wrong = |comment: &LineComment| {
        let said = comment.text.content().map(|content| lines("the comment", content, REASON_MAX));
        comment.checked().err().or(said.and_then(Result::err))
    };
    let findings: Vec<Finding> =
        comments.iter().filter_map(wrong).map(|detail| Finding::new(Code::InvalidInput, detail)).collect();
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal);
    }
    let holder = context.task.assignment().map(|held| held.assignee.clone());
    let to = holder.filter(|holder| *holder != context.caller.handle);
    let event = |comment: &LineComment| {
        let LineComment { path, line, text } = comment.clone();
        Event::from(LineCommented { to: to.clone(), commit: commit.cloned(), path, line, text })
    };
    Ok(comments.iter().map(event).collect())
}

/// Acceptance criteria are ticked by whoever reviews, under the same rules.
pub(super) fn tick(
    context: &Context<'_>,
    criteria: &[String],
    withdrawn: bool,
    workstation: Option<&WorkstationName>,
) -> Result<Decision, Refusal> {
    let task = context.task;
    if task.state.name().is_terminal() {
        return Err(context.wrong_state("ticked"));
    }
    let mut findings = Vec::new();
    let mut meant: Vec<&Criterion> = Vec::new();
    for name in criteria {
        match named(&task.spec.criteria, name) {
            Some(found) => meant.extend(found),
            None => {
                let detail = format!("{} has no criterion {}", task.id, crate::id::shown(name));
                findings.push(
                    Finding::new(Code::UnknownName, detail).hint(format!("onus show {} lists them", task.id)),
                );
            }
        }
    }
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal);
    }
    if criteria.is_empty() {
        return Err(Refusal::invalid("no criterion was named").hint(format!("onus show {}", task.id)));
    }
    may_judge(context, workstation)?;
    let mut changed: Vec<CheckId> = Vec::new();
    for criterion in meant {
        let id = criterion.id();
        if criterion.ticked.is_some() == withdrawn && !changed.contains(&id) {
            changed.push(id);
        }
    }
    if changed.is_empty() {
        return Ok(Decision::Existing(task.id.clone()));
    }
    Ok(Decision::one(CriteriaTicked { criteria: changed, withdrawn }, workstation.cloned()))
}

/// A criterion by its number as `show` lists it, by its id, or all of them.
fn named<'a>(criteria: &'a [Criterion], name: &str) -> Option<Vec<&'a Criterion>> {
    if name == "all" {
        return (!criteria.is_empty()).then(|| criteria.iter().collect());
    }
    let by_number = name.parse::<usize>().ok().and_then(|number| criteria.get(number.checked_sub(1)?));
    let found = by_number.or_else(|| criteria.iter().find(|criterion| criterion.id().as_str() == name));
    found.map(|criterion| vec![criterion])
}

/// Whom the identity map lets review, and who has no part in the work.
fn may_judge(context: &Context<'_>, workstation: Option<&WorkstationName>) -> Result<(), Refusal> {
    let caller = &context.caller.handle;
    let may = identity_map::may_review(context.facts.policy, &context.task.spec, context.caller);
    let built = context.facts.builders.iter().filter(|builder| {
        builder.worker == *caller || workstation.is_some_and(|own| builder.workstation == *own)
    });
    let dependent = built.map(|builder| {
        let (worker, place) = (&builder.worker, &builder.workstation);
        Finding::new(Code::SelfReview, format!("{worker} worked on it in {place}"))
            .hint("another worker reviews it, in another workstation")
    });
    let findings = may.err().into_iter().flatten().chain(dependent).collect();
    Refusal::from_findings(findings).map_or(Ok(()), Err)
}
