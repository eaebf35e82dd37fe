//! `complete`: the whole end of the road in one call (mission D11). Checks that are missing, the merge, the completion with its
//! handoff; each step finds what an earlier call has done, so that a call that died is simply repeated.

mod waiting;

pub use waiting::{ORDER, REVIEW};

use crate::check::{self, Bench};
use crate::handoff::HandoffView;
use crate::merge::{BehindView, Merge, MergeCheckView, MergeView};
use crate::progress::Progress;
use crate::submit::{Receipt, Target, step};
use crate::view::{LandedView, TaskView};
use crate::{Onus, Sight};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::evidence::{CheckVerdict, Proof};
use onus_core::handoff::{Standing, Words};
use onus_core::id::{BranchName, CommitId, Handle};
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::MergePolicy;
use onus_core::task::{Check, State, Task};
use onus_core::text::{Text, shortened};
use onus_host::refs::{self, History};
use onus_host::{ref_file, worktree};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// How many runs are looked through for the last one of each check.
const RUNS: i64 = 200;

/// Who finishes what, and how.
#[derive(Debug)]
pub struct Finish<'a> {
    /// With the request id, the token and what is adopted.
    pub merge: Merge<'a>,
    pub resolution: Option<&'a Text>,
    pub landing: Landing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// The work is merged first, where there is any.
    Merge,
    /// The completion is only stated, as far as the policy allows.
    State,
}

/// What this call did on the way to the end.
#[derive(Default)]
struct Done {
    checks: Vec<MergeCheckView>,
    behind: Vec<BehindView>,
    attempts: i64,
}

/// The answer to `complete`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FinishView {
    pub task: TaskView,
    /// `null` where there was nothing to merge.
    pub landed: Option<LandedView>,
    pub checks: Vec<MergeCheckView>,
    /// How often the merge was tried: more than once where somebody else was quicker, never where there was nothing.
    pub attempts: i64,
    pub handoff: Option<HandoffView>,
    /// Checkouts of the main branch whose files could not follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<BehindView>,
}

impl Onus {
    /// Checks, merges and completes; what was done before, or by another process of the same holder meanwhile, is not done again.
    pub fn finish(&mut self, call: &Finish<'_>, progress: &mut dyn Progress) -> Result<FinishView, Refusal> {
        let refusal = match self.finish_first(call, progress) {
            Err(refusal) if refusal.code == Code::Fenced => refusal,
            finished => return finished,
        };
        let task = self.task(call.merge.task)?;
        match is_ended_by(call.merge.actor, &task) {
            true => self.finished_view(&task, Done::default()),
            false => Err(refusal),
        }
    }

    fn finish_first(
        &mut self,
        call: &Finish<'_>,
        progress: &mut dyn Progress,
    ) -> Result<FinishView, Refusal> {
        let task = self.task(call.merge.task)?;
        let root_cause = match call.merge.root_cause {
            Some(said) => Some(said.clone()),
            None => self.root_cause_of_merge(&task)?,
        };
        let call = &Finish { merge: Merge { root_cause: root_cause.as_ref(), ..call.merge }, ..*call };
        if let Some(ended) = self.ended_before(call, &task)? {
            return self.finished_view(&ended, Done::default());
        }
        self.look_after_offer(&call.merge, &task)?;
        self.look_after_wait(call, &task)?;
        let done = self.end_of_work(call, &task, progress);
        if let Err(refusal) = &done {
            self.ask_for_review(call, &task, refusal);
        }
        let done = done?;
        let task = self.task(call.merge.task)?;
        self.finished_view(&task, done)
    }

    /// Asks for the end before anything of git is touched: whoever is not its holder, says nothing of what was done or names
    /// its request like another one is refused here. The task as it was ended before, where it was.
    fn ended_before(&mut self, call: &Finish<'_>, task: &Task) -> Result<Option<Task>, Refusal> {
        let last = last_envelope(call, Proof::default())?;
        let is_waiting = matches!(task.state, State::Blocked { .. });
        match self.rehearse_one(&last) {
            // The same request ended it; what would be done now lies behind the present.
            Ok(receipt) if receipt.task.version <= task.version => Ok(Some(receipt.task)),
            Err(refusal) if refusal.code == Code::RequestConflict => Err(refusal),
            _ if is_ended_by(call.merge.actor, task) => Ok(Some(task.clone())),
            Err(refusal) if refusal.code == Code::WrongState && is_waiting => Ok(None),
            // What is said of the work itself shows once the work was looked at.
            Err(refusal) if refusal.findings.is_empty() => Err(refusal),
            _ => Ok(None),
        }
    }

    fn end_of_work(
        &mut self,
        call: &Finish<'_>,
        task: &Task,
        progress: &mut dyn Progress,
    ) -> Result<Done, Refusal> {
        let (trunk, merged) = match self.may_merge(call, task)? {
            true => {
                let trunk = self.trunk_to_land_on(call.merge.actor)?;
                let merged = self.merge_if_any(&call.merge, &trunk, progress)?;
                (Some(trunk), merged)
            }
            false => (None, None),
        };
        let (mut done, ground) = match merged {
            Some(MergeView { checks, behind, attempts, ground, .. }) => {
                (Done { checks, behind, attempts }, ground)
            }
            None => {
                self.refuse_uncommitted(task)?;
                (Done::default(), None)
            }
        };
        let proof = self.proof_seen_from(&task.id, trunk, ground)?;
        self.refuse_unpushed(task, &proof)?;
        // Whoever may not complete it at all should not wait for its checks.
        if let Err(refusal) = self.rehearse_one(&last_envelope(call, proof.clone())?) {
            if call.landing == Landing::State || !is_shown_by_running(&refusal) {
                return Err(refusal);
            }
            done.checks.extend(self.run_missing(call, task, &proof, progress)?);
        }
        let handoff = self.done_handoff(task, call.resolution, &proof)?;
        let proof = Proof { handoff, ..proof };
        self.submit(&last_envelope(call, proof)?, &Target::Named)?;
        Ok(done)
    }

    /// Whether there is a working tree here whose commits could be merged.
    fn may_merge(&mut self, call: &Finish<'_>, task: &Task) -> Result<bool, Refusal> {
        let is_asked = call.landing == Landing::Merge
            && self.settings.complete.merged == MergePolicy::Required
            && self.sight == Sight::Workstations;
        let Some((path, branch)) = self.tree_of(task)?.filter(|_| is_asked) else {
            return Ok(false);
        };
        let head = ref_file::head_of(&path);
        let is_on_branch = head.branch == Some(refs::branch_ref(branch.as_str()));
        // A rerun stands on a commit of the past: where it made none of its own there is nothing to merge.
        let (Some(commit), false) = (&head.commit, is_on_branch) else {
            return Ok(true);
        };
        let trunk = self.trunk()?;
        Ok(!History::of(&trunk.repo).reaches(&trunk.seen()?, commit)?)
    }

    /// Where a task is held, in a working tree of this clone: its directory and its branch.
    pub(crate) fn tree_of(&mut self, task: &Task) -> Result<Option<(PathBuf, BranchName)>, Refusal> {
        let Some(held) = task.assignment() else { return Ok(None) };
        let found = self.find_workstation(&held.workstation)?.filter(|found| self.is_in_this_clone(found));
        Ok(found.and_then(|found| found.path.map(PathBuf::from).zip(found.branch)))
    }

    /// Work that nobody committed would stay behind without a word.
    fn refuse_uncommitted(&mut self, task: &Task) -> Result<(), Refusal> {
        let here = self.tree_of(task)?.filter(|_| self.sight == Sight::Workstations);
        let Some((directory, _)) = here else { return Ok(()) };
        let dirty = worktree::dirty(&directory)?;
        if dirty.is_empty() {
            return Ok(());
        }
        let named = |path: &String| {
            let detail = format!("{} is not committed", onus_core::id::shown(path));
            Finding::new(Code::WorkstationNotReady, detail)
        };
        let detail = format!("{} changed paths in {} are not committed", dirty.count, directory.display());
        Err(Refusal::new(Code::WorkstationNotReady, detail)
            .task(&task.id)
            .hint("commit them, or put them aside: git stash; then run it again")
            .findings(dirty.first.iter().map(named).collect()))
    }

    /// A checkout has no branch of its own that could be merged: its commits are pushed by whoever works there.
    fn refuse_unpushed(&mut self, task: &Task, proof: &Proof) -> Result<(), Refusal> {
        let (Some(held), true) = (task.assignment(), proof.unmerged > 0) else {
            return Ok(());
        };
        let found = self.find_workstation(&held.workstation)?;
        if found.is_none_or(|found| found.branch.is_some()) {
            return Ok(());
        }
        let trunk = self.trunk()?;
        let Some(shared) = &trunk.shared else { return Ok(()) };
        let detail = format!("what {} has made is not in {}", held.workstation, trunk.name());
        let (remote, branch) = (&shared.remote, &shared.branch);
        Err(Refusal::new(Code::NotMerged, detail).task(&task.id).hint(format!(
            "git pull --rebase {remote} {branch} && git push {remote} HEAD:{branch}, then run it again"
        )))
    }

    /// Runs the approved checks that have not passed on what the work stands on.
    fn run_missing(
        &mut self,
        call: &Finish<'_>,
        task: &Task,
        proof: &Proof,
        progress: &mut dyn Progress,
    ) -> Result<Vec<MergeCheckView>, Refusal> {
        let bench = self.bench(task)?;
        let runs = self.check_runs(&task.id, RUNS)?;
        let has_passed = |check: &Check| {
            let last = runs.iter().find(|run| run.evidence.check == check.id());
            last.is_some_and(|run| {
                run.evidence.verdict == CheckVerdict::Passed && run.evidence.ground == bench.ground
            })
        };
        let mut missing: Vec<Check> =
            check::approved(task, None).into_iter().filter(|check| !has_passed(check)).collect();
        missing.extend(self.demanded_checks(task, proof)?);
        self.run_on(&call.merge, task, &missing, &bench, progress)
    }

    /// The reviewer is asked once for each commit.
    fn ask_for_review(&mut self, call: &Finish<'_>, task: &Task, refusal: &Refusal) {
        let is_missing = refusal.code == Code::ReviewMissing
            || refusal.findings.iter().any(|finding| finding.code == Code::ReviewMissing);
        if !is_missing {
            return;
        }
        let commit: Option<CommitId> = self.bench(task).ok().and_then(|Bench { ground, .. }| ground.commit);
        let asked = self.landing_of(&task.id).map(|arrived| arrived.requested).unwrap_or_default();
        if asked.contains(&commit) {
            return;
        }
        let name = format!("review {commit:?}");
        if let Ok(envelope) = envelope(call, &name, Command::RequestReview { commit }) {
            // The refusal is what counts; that the wish is not on record changes nothing about it.
            drop(self.submit(&envelope, &Target::Named));
        }
    }

    /// What is left to whoever looks at the finished work.
    pub fn done_handoff(
        &mut self,
        task: &Task,
        resolution: Option<&Text>,
        proof: &Proof,
    ) -> Result<Option<Text>, Refusal> {
        let summary = resolution.and_then(Text::content).map(|text| shortened(text, SUMMARY_MAX));
        let words = Words { summary, ..Words::default() };
        self.compose_done(task, Standing::Done, &words, proof)
    }

    /// The same answer to whoever has the receipt of a completion.
    pub fn finish_view(&mut self, receipt: &Receipt) -> Result<FinishView, Refusal> {
        self.finished_view(&receipt.task, Done::default())
    }

    fn finished_view(&mut self, task: &Task, done: Done) -> Result<FinishView, Refusal> {
        let landed = self.landed_view_of(&task.id)?;
        let handoff = self.last_handoff(&task.id)?;
        let Done { checks, behind, attempts } = done;
        Ok(FinishView { task: TaskView::from(task), landed, checks, attempts, handoff, behind })
    }
}

/// How much of a resolution is told in the handoff.
const SUMMARY_MAX: usize = 4_000;

fn envelope(call: &Finish<'_>, name: &str, command: Command) -> Result<Envelope, Refusal> {
    Ok(Envelope {
        request: step(call.merge.request, name)?,
        actor: call.merge.actor.cloned(),
        token: call.merge.token.cloned(),
        task: Some(call.merge.task.clone()),
        project: None,
        base: None,
        command,
    })
}

/// What ends the task, under the name of the whole call.
fn last_envelope(call: &Finish<'_>, proof: Proof) -> Result<Envelope, Refusal> {
    let command = Command::Complete {
        resolution: call.resolution.cloned(),
        root_cause: call.merge.root_cause.cloned(),
        warrant: Warrant::Ordinary,
        proof,
    };
    Ok(Envelope { request: call.merge.request.clone(), ..envelope(call, "", command)? })
}

/// Whether it is complete by this one's doing, as its proofs asked.
fn is_ended_by(actor: Option<&Handle>, task: &Task) -> bool {
    matches!(&task.state, State::Complete(closing) if actor == Some(&closing.by) && !closing.forced)
}

/// Whether nothing but checks stands against it.
fn is_shown_by_running(refusal: &Refusal) -> bool {
    let is_check = |code: Code| matches!(code, Code::ChecksMissing | Code::ChecksFailed);
    match refusal.findings.as_slice() {
        [] => is_check(refusal.code),
        all => all.iter().all(|finding| is_check(finding.code)),
    }
}
