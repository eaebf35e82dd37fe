//! Runs the checks of a task on what is to be merged. What could not run has not passed.

use super::{Merge, step_envelope};
use crate::Onus;
use crate::check::{self, Bench, Sandbox};
use crate::progress::Progress;
use crate::submit::Target;
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::evidence::Ground;
use onus_core::id::CommitId;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::{Check, CheckState, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One check that passed before the merge.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MergeCheckView {
    pub command: String,
    pub exit_code: Option<i32>,
    /// None where only the record of an earlier run is left.
    pub took_ms: Option<i64>,
}

impl MergeCheckView {
    /// As the record of a merge tells it: nothing is merged over a failure.
    pub(super) fn passed(command: String) -> MergeCheckView {
        MergeCheckView { command, exit_code: Some(0), took_ms: None }
    }
}

/// The checks to run; one that no person has approved refuses the whole.
pub(super) fn approved(task: &Task) -> Result<Vec<Check>, Refusal> {
    let proposed = task.spec.checks.iter().filter(|check| check.state == CheckState::Proposed);
    let finding = |check: &Check| {
        let detail = format!("the check `{}` awaits a person's approval", check.command);
        let hint = format!("a person runs: onus check {} --approve {}", task.id, check.id());
        Finding::new(Code::CheckUnapproved, detail).hint(hint)
    };
    match Refusal::from_findings(proposed.map(finding).collect()) {
        Some(refusal) => Err(refusal.task(&task.id)),
        None => Ok(task.spec.checks.clone()),
    }
}

impl Onus {
    /// Runs all of them, so that all failures are told at once, and keeps what each of them showed: that is the holder's
    /// sign of life as well.
    pub(super) fn run_checks(
        &mut self,
        call: &Merge<'_>,
        task: &Task,
        checks: &[Check],
        (directory, commit): (&Path, &CommitId),
        progress: &mut dyn Progress,
    ) -> Result<Vec<MergeCheckView>, Refusal> {
        let ground = Ground { commit: Some(commit.clone()), dirty: false };
        let network =
            task.assignment().is_none_or(|held| onus_core::constraint::has_network(&held.constraints));
        let bench = Bench { directory: directory.to_owned(), ground, hidden: self.hidden(), network };
        self.run_on(call, task, checks, &bench, progress)
    }

    /// The same on whatever the work stands on.
    pub(crate) fn run_on(
        &mut self,
        call: &Merge<'_>,
        task: &Task,
        checks: &[Check],
        bench: &Bench,
        progress: &mut dyn Progress,
    ) -> Result<Vec<MergeCheckView>, Refusal> {
        let commit = bench.ground.commit.as_ref().map_or("none", |commit| commit.as_str());
        let (mut runs, mut findings) = (Vec::with_capacity(checks.len()), Vec::new());
        for (n, check) in checks.iter().enumerate() {
            progress.begin(&format!("checking: {}", check.command), Some(checks.len() as u64));
            progress.at(n as u64);
            let tried = check::run(check, &task.id, bench, Sandbox::None);
            progress.end();
            findings.extend(check::failure(&task.id, &tried));
            runs.push(MergeCheckView {
                command: check.command.clone(),
                exit_code: tried.run.exit,
                took_ms: Some(tried.run.took_ms),
            });
            let name = format!("check {} {commit} {}", check.id(), self.version(task)?);
            let command = Command::RecordCheck { run: Box::new(tried.run) };
            self.submit(&step_envelope(call, &name, command)?, &Target::Named)?;
        }
        Refusal::from_findings(findings).map_or(Ok(runs), |refusal| Err(refusal.task(&task.id)))
    }
}
