//! `merge`: the holder's commits enter the main branch, in the order that the queue gives, and with everything that their
//! completion will ask for (mission D5, D8, D9, D11, D12).

use super::{Context, Decision, complete};
use crate::code::Code;
use crate::command::Stage;
use crate::event::{Adopted, Merged, ReviewRequested};
use crate::evidence::{Proof, RootCause};
use crate::id::{CommitId, Epoch};
use crate::refusal::{Finding, Refusal};
use crate::task::State;

/// What is to land.
pub(super) struct Landing<'a> {
    pub(super) commit: &'a CommitId,
    pub(super) onto: &'a CommitId,
    pub(super) checks: &'a [String],
    pub(super) root_cause: Option<&'a RootCause>,
    pub(super) stage: Stage,
    pub(super) proof: &'a Proof,
}

pub(super) fn decide(context: &Context<'_>, landing: &Landing<'_>) -> Result<Decision, Refusal> {
    let held = context.working_holder()?;
    if !matches!(context.task.state, State::InProgress(_)) {
        return Err(context.wrong_state("merged"));
    }
    let root_cause = complete::said(landing.root_cause)?;
    // The work is not in the main branch yet: that is what this call is for.
    let proof = Proof { unmerged: 0, ..landing.proof.clone() };
    let mut findings = complete::unproven(context, root_cause.as_ref(), &proof);
    findings.retain(|finding| match landing.stage {
        Stage::Ask => !is_shown_by_running(finding),
        Stage::Receive => finding.code != Code::RootCauseMissing,
        Stage::Land => true,
    });
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal);
    }
    let merged = Merged {
        commit: landing.commit.clone(),
        onto: landing.onto.clone(),
        checks: landing.checks.to_vec(),
        renewal: context.renewal(held, None),
        landed: landing.proof.landed.clone(),
        root_cause,
    };
    Ok(Decision::one(merged, Some(held.workstation.clone())))
}

/// What the checks themselves will show when they are run on the commit that is to land.
fn is_shown_by_running(finding: &Finding) -> bool {
    matches!(finding.code, Code::ChecksMissing | Code::ChecksFailed)
}

/// The holder waits for another worker's word about this commit.
pub(super) fn request_review(context: &Context<'_>, commit: Option<&CommitId>) -> Result<Decision, Refusal> {
    let held = context.working_holder()?;
    if !matches!(context.task.state, State::InProgress(_)) {
        return Err(context.wrong_state("reviewed"));
    }
    let requested = ReviewRequested { commit: commit.cloned(), renewal: context.renewal(held, None) };
    Ok(Decision::one(requested, Some(held.workstation.clone())))
}

/// The holder answers for what an earlier holder of the same task had committed.
pub(super) fn adopt(context: &Context<'_>, of: Epoch, commits: &[CommitId]) -> Result<Decision, Refusal> {
    let held = context.working_holder()?;
    if of < 1 || of >= held.epoch {
        return Err(Refusal::invalid(format!("epoch {of} of {} is no earlier one", context.task.id)));
    }
    if commits.len() > ADOPTED_MAX {
        return Err(Refusal::invalid(format!(
            "there are {} commits to adopt; the limit is {ADOPTED_MAX}",
            commits.len()
        )));
    }
    let adopted = Adopted { of, commits: commits.to_vec(), renewal: context.renewal(held, None) };
    Ok(Decision::one(adopted, Some(held.workstation.clone())))
}

const ADOPTED_MAX: usize = 1_000;
