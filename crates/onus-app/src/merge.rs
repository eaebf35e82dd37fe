//! `merge`: rebase, boundaries, checks, and only then the main branch moves forward (mission D5, D11).
//!
//! The rules are asked twice: before anything is touched, and again while the main branch is locked, in the transaction
//! that records the merge. Whoever lost the lease in between has rebased its own branch and moved nothing else.

mod checks;

pub use checks::MergeCheckView;

use crate::Onus;
use crate::progress::Progress;
use crate::remote::calls;
use crate::submit::{Target, step, unexpected};
use onus_core::boundary::path_findings;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Stage};
use onus_core::event::{Event, Merged};
use onus_core::evidence::{Ground, Proof};
use onus_core::id::{CommitId, Handle, RequestId, TaskId, WorkstationName};
use onus_core::identity_map::Policy;
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_host::refs::{self, Forwarded, History};
use onus_host::repository::Repo;
use onus_host::worktree::{self, Synced};
use onus_host::{identity_map, ref_file};
use onus_store::read::ledger::{self, Part};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How often the checks are run anew because somebody else merged meanwhile.
const ATTEMPTS: usize = 3;

/// Who merges what.
#[derive(Debug)]
pub struct Merge<'a> {
    pub request: &'a RequestId,
    pub actor: Option<&'a Handle>,
    pub token: Option<&'a Token>,
    pub task: &'a TaskId,
}

/// The answer to `merge`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MergeView {
    pub task: TaskId,
    /// Where the main branch is now, as far as this task is concerned.
    pub commit: CommitId,
    /// Where it was before.
    pub onto: CommitId,
    pub checks: Vec<MergeCheckView>,
    /// Checkouts of the main branch whose files could not follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<BehindView>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BehindView {
    pub path: String,
    pub detail: String,
}

/// Where the work of a held task is.
struct Site {
    workstation: WorkstationName,
    directory: PathBuf,
}

impl Onus {
    /// Brings the holder's commits into the main branch, or changes nothing there.
    pub fn merge(&mut self, call: &Merge<'_>, progress: &mut dyn Progress) -> Result<MergeView, Refusal> {
        let (repo, main) = self.main_of_repository()?;
        for _ in 0..ATTEMPTS {
            if let Some(view) = self.attempt(call, &repo, &main, progress)? {
                return Ok(view);
            }
        }
        let main = short(&main);
        Err(Refusal::new(
            Code::NotMerged,
            format!("{main} moved {ATTEMPTS} times while the checks of {} ran", call.task),
        )
        .task(call.task)
        .hint("others are merging too: run it again"))
    }

    /// The repository and the full name of its main branch.
    pub fn main_of_repository(&self) -> Result<(Repo, String), Refusal> {
        let repo = self.place.repo.clone();
        let repo = repo.ok_or_else(|| Refusal::invalid("this is no git repository").hint("cd into it"))?;
        let main = identity_map::main_branch(&repo, &self.settings)?;
        let main = main.ok_or_else(|| {
            Refusal::invalid("the repository has no main branch yet").hint("commit something")
        })?;
        Ok((repo, main))
    }

    /// None when the main branch moved before it could be locked.
    fn attempt(
        &mut self,
        call: &Merge<'_>,
        repo: &Repo,
        main: &str,
        progress: &mut dyn Progress,
    ) -> Result<Option<MergeView>, Refusal> {
        let history = History::at(&repo.common_dir);
        let onto = history.commit(main)?;
        let asked = self.rehearse_one(&envelope(call, "ask", &onto, &onto, &[])?)?;
        let task = asked.task;
        let asked_for = checks::approved(&task)?;
        let site = self.site_of(&task)?;
        let commit = self.rebase(&task, repo, &site, main)?;
        let onto = history.commit(main)?;
        if history.reaches(&onto, &commit)? {
            return self.merged_before(&task, &site, main, &commit).map(Some);
        }
        self.within_bounds(&task, &history.changed_paths(&commit, &[&onto])?)?;
        let tip: CommitId = commit.parse().map_err(unexpected)?;
        let place = (site.directory.as_path(), &tip);
        let checks = self.run_checks(call, &task, &asked_for, place, progress)?;
        // Every record is a step of its own: a repeated call is asked the rules anew, it is not told what they said.
        let name = format!("merge {commit} {}", self.version(&task)?);
        let commands: Vec<String> = asked_for.into_iter().map(|check| check.command).collect();
        let envelope = envelope(call, &name, &commit, &onto, &commands)?;
        let forwarded = refs::fast_forward(repo, main, &commit, || {
            if history.commit(main)? != onto {
                return Err(Refusal::new(Code::NotMerged, "the main branch has moved"));
            }
            self.submit(&envelope, &Target::Named).map(drop)
        });
        match forwarded {
            Ok(forwarded) => Ok(Some(view(&task.id, &commit, &onto, checks, &forwarded)?)),
            Err(_) if history.commit(main)? != onto => Ok(None),
            Err(refusal) => Err(refusal.task(&task.id)),
        }
    }

    /// The working tree in which a task is held, on the branch that belongs to it.
    fn site_of(&mut self, task: &Task) -> Result<Site, Refusal> {
        let held = task.assignment().ok_or_else(|| unexpected("a merge of what nobody holds"))?;
        let name = held.workstation.clone();
        let found = self.find_workstation(&name)?;
        let place = found.and_then(|found| found.path.zip(found.branch));
        let not_ready = |detail: String| Refusal::new(Code::WorkstationNotReady, detail).task(&task.id);
        let Some((directory, branch)) = place else {
            return Err(not_ready(format!("{name} has no working tree with a branch of its own")).hint(
                "merge by hand, and next time work in one: onus workstation add NAME --kind worktree",
            ));
        };
        let directory = PathBuf::from(directory);
        if ref_file::head_of(&directory).branch != Some(refs::branch_ref(branch.as_str())) {
            return Err(not_ready(format!(
                "{} is not on {branch}, the branch of {name}",
                directory.display()
            ))
            .hint(format!("git -C {} switch {branch}", directory.display())));
        }
        Ok(Site { workstation: name, directory })
    }

    fn rebase(&mut self, task: &Task, repo: &Repo, site: &Site, main: &str) -> Result<String, Refusal> {
        match worktree::sync(repo, &site.directory, main).map_err(|refusal| refusal.task(&task.id))? {
            Synced::Current { head } => Ok(head),
            Synced::Rebased { new, .. } => Ok(new),
            Synced::Conflicts(conflicts) => {
                Err(self.conflicting(Some(&task.id), &site.workstation, main, &conflicts)?)
            }
        }
    }

    /// The answer to a call whose work is in the main branch already: the one it had, if Onus put it there.
    fn merged_before(
        &mut self,
        task: &Task,
        site: &Site,
        main: &str,
        commit: &str,
    ) -> Result<MergeView, Refusal> {
        let merged = self.merged_as(&task.id, commit)?.ok_or_else(|| {
            let (name, main) = (&site.workstation, short(main));
            Refusal::new(Code::NotMerged, format!("{name} has no commit that {main} has not"))
                .task(&task.id)
                .hint(format!("commit the work in {} first", site.directory.display()))
        })?;
        Ok(MergeView {
            task: task.id.clone(),
            commit: merged.commit,
            onto: merged.onto,
            checks: merged.checks.into_iter().map(MergeCheckView::passed).collect(),
            behind: Vec::new(),
        })
    }

    /// The record of a task's merge as this commit.
    pub(crate) fn merged_as(&mut self, task: &TaskId, commit: &str) -> Result<Option<Merged>, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::MergedAs { task: task.clone(), commit: commit.to_owned() })?
        {
            return Ok(answer);
        }
        let entries = self.ask(|tx| ledger::log(tx, &Part::Task(task, 0), i64::MAX))?;
        Ok(entries.iter().rev().find_map(|entry| match entry.open().ok()?.event {
            Event::Merged(merged) if merged.commit.as_str() == commit => Some(merged),
            _ => None,
        }))
    }

    fn within_bounds(&self, task: &Task, paths: &[String]) -> Result<(), Refusal> {
        let policy = self.policy()?;
        let findings = match &policy {
            Policy::Invalid(findings) => findings.clone(),
            Policy::Absent | Policy::InForce(_) => path_findings(&policy, &task.spec, paths),
        };
        Refusal::from_findings(findings).map_or(Ok(()), |refusal| Err(refusal.task(&task.id)))
    }

    fn version(&mut self, task: &Task) -> Result<i64, Refusal> {
        Ok(self.find_task(&task.id)?.map_or(0, |task| task.version))
    }
}

fn envelope(
    call: &Merge<'_>,
    name: &str,
    commit: &str,
    onto: &str,
    checks: &[String],
) -> Result<Envelope, Refusal> {
    let id = |commit: &str| commit.parse::<CommitId>().map_err(unexpected);
    let ground = Ground { commit: Some(id(commit)?), dirty: false };
    let command = Command::Merge {
        commit: id(commit)?,
        onto: id(onto)?,
        checks: checks.to_vec(),
        root_cause: None,
        stage: if commit == onto { Stage::Ask } else { Stage::Land },
        proof: Proof { ground, ..Proof::default() },
    };
    step_envelope(call, name, command)
}

fn step_envelope(call: &Merge<'_>, name: &str, command: Command) -> Result<Envelope, Refusal> {
    Ok(Envelope {
        request: step(call.request, name)?,
        actor: call.actor.cloned(),
        token: call.token.cloned(),
        task: Some(call.task.clone()),
        project: None,
        base: None,
        command,
    })
}

fn view(
    task: &TaskId,
    commit: &str,
    onto: &str,
    checks: Vec<MergeCheckView>,
    forwarded: &Forwarded,
) -> Result<MergeView, Refusal> {
    let behind = |(path, detail): &(PathBuf, String)| BehindView {
        path: Path::display(path).to_string(),
        detail: detail.clone(),
    };
    Ok(MergeView {
        task: task.clone(),
        commit: commit.parse().map_err(unexpected)?,
        onto: onto.parse().map_err(unexpected)?,
        checks,
        behind: forwarded.behind.iter().map(behind).collect(),
    })
}

/// A branch as people call it.
pub(crate) fn short(refname: &str) -> &str {
    refname.trim_start_matches("refs/heads/")
}
