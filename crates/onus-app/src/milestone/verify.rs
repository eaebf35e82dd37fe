//! `milestone verify`: runs the checks of all its tasks on what came of them, in the repository that one stands in.

use super::MilestoneView;
use crate::Onus;
use crate::check::{self, Bench, Sandbox};
use crate::progress::Progress;
use crate::submit::{step, unexpected};
use onus_core::code::Code;
use onus_core::id::{CheckId, Handle, MilestoneName, RequestId, TaskId};
use onus_core::refusal::Refusal;
use onus_core::task::{Check, StateName, Task};
use onus_host::identity_map;
use onus_host::refs::History;
use schemars::JsonSchema;
use serde::Serialize;

/// The answer to `milestone verify`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VerifiedView {
    pub milestone: MilestoneView,
    /// How many commands were run here.
    pub ran: usize,
    /// Tasks whose commits are not in this repository: their checks run in their own.
    pub elsewhere: Vec<TaskId>,
}

impl Onus {
    /// Runs every approved check of the complete tasks of this repository, each command once, and keeps what it showed
    /// with each task that has it.
    pub fn verify_milestone(
        &mut self,
        actor: Option<&Handle>,
        request: &RequestId,
        name: &MilestoneName,
        progress: &mut dyn Progress,
    ) -> Result<VerifiedView, Refusal> {
        let before = self.milestone(name)?;
        let (mut tasks, mut elsewhere) = (Vec::new(), Vec::new());
        for member in before.tasks.iter().filter(|member| member.state == StateName::Complete) {
            if self.is_here(member.commit.as_ref().map(|commit| commit.as_str()))? {
                tasks.push(self.task(&member.id)?);
            } else {
                elsewhere.push(member.id.clone());
            }
        }
        let checks = distinct(&tasks);
        if checks.is_empty() {
            return Ok(VerifiedView { milestone: before, ran: 0, elsewhere });
        }
        let bench = self.whole_work()?;
        for (n, (check, on)) in checks.iter().enumerate() {
            progress.begin(&format!("checking: {}", check.command), Some(checks.len() as u64));
            progress.at(n as u64);
            let first = on.first().ok_or_else(|| unexpected("a check of no task"))?;
            let tried = check::run(check, first, &bench, Sandbox::None);
            progress.end();
            for task in on {
                let request = step(request, &format!("{task} {}", check.id()))?;
                self.record_check(actor, None, request, task, tried.run.clone())?;
            }
        }
        Ok(VerifiedView { milestone: self.milestone(name)?, ran: checks.len(), elsewhere })
    }

    /// Whether a task's commit is in this repository; what was done in no repository can be checked anywhere.
    fn is_here(&self, commit: Option<&str>) -> Result<bool, Refusal> {
        match (commit, &self.place.repo) {
            (None, _) => Ok(true),
            (Some(_), None) => Ok(false),
            (Some(commit), Some(repo)) => Ok(History::at(&repo.common_dir).resolve(commit)?.is_some()),
        }
    }

    /// Where checks speak about the work as a whole: a clean tree at the tip of the main branch.
    fn whole_work(&self) -> Result<Bench, Refusal> {
        let bench = self.bench_here()?;
        let Some(repo) = &self.place.repo else {
            return Ok(bench);
        };
        if bench.ground.dirty {
            return Err(Refusal::new(Code::WrongState, "the working tree has changes that no commit has")
                .hint("commit or stash them, then verify again"));
        }
        let Some(main) = identity_map::main_branch(repo, &self.settings)? else {
            return Ok(bench);
        };
        let tip = History::at(&repo.common_dir).resolve(&main)?;
        let stands = bench.ground.commit.as_ref().map(|commit| commit.as_str());
        if tip.as_deref() == stands {
            return Ok(bench);
        }
        let short = main.trim_start_matches("refs/heads/");
        Err(Refusal::new(Code::WrongState, format!("this working tree is not at the tip of {short}"))
            .hint(format!("git switch {short}, or verify where it is checked out")))
    }
}

/// Each approved command once, with the tasks that it proves.
fn distinct(tasks: &[Task]) -> Vec<(Check, Vec<TaskId>)> {
    let mut found: Vec<(CheckId, Check, Vec<TaskId>)> = Vec::new();
    for task in tasks {
        for check in check::approved(task, None) {
            let id = check.id();
            match found.iter_mut().find(|(known, ..)| *known == id) {
                Some((.., on)) => on.push(task.id.clone()),
                None => found.push((id, check, vec![task.id.clone()])),
            }
        }
    }
    found.into_iter().map(|(_, check, on)| (check, on)).collect()
}
