//! After a takeover or a forced release: the ref barrier (an update in flight has landed or is refused), and keeping what
//! the old holder left (mission B5, B6).

use crate::Onus;
use crate::remote::calls;
use crate::submit::{Receipt, Target};
use crate::view::{HeldView, LeftView};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::{CommitId, Epoch, Handle, RequestId, TaskId, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::salvage_reference;
use onus_host::env::Env;
use onus_host::refs::{self, Salvaged};
use onus_host::repository::{self, Repo};
use onus_host::{clock, clone_id, identity_map, worktree};
use onus_store::read::show::{self, PastAssignment};
use std::path::{Path, PathBuf};

/// How many earlier grants are asked for what they left.
const EARLIER: usize = 20;

/// An assignment that ended without its holder's doing, and where it was.
#[derive(Debug, Clone)]
pub struct Evicted {
    pub task: TaskId,
    pub epoch: Epoch,
    pub worker: Handle,
    pub workstation: WorkstationName,
    directory: Option<PathBuf>,
    branch: Option<String>,
    /// The clone that the work was in, where that is another one on this machine.
    elsewhere: Option<Repo>,
}

impl Evicted {
    /// Where the work was.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

impl Onus {
    /// Who lost the task by the act that led to `receipt`. Told from the record, so that a repeated request, after a
    /// crash in the middle of it, secures the work as well.
    pub fn evicted(&mut self, receipt: &Receipt) -> Result<Option<Evicted>, Refusal> {
        let task = &receipt.task.id;
        let past = self.assignments(task)?;
        let present = receipt.task.assignment().map(|held| held.epoch);
        let before = past.into_iter().rfind(|row| present.is_none_or(|epoch| row.assignment.epoch < epoch));
        let against_will = |reason: &str| matches!(reason, "taken_over" | "forced" | "dropped");
        let lost = before.filter(|row| row.end_reason.as_deref().is_some_and(against_will));
        lost.map(|row| {
            self.site(task, row.assignment.epoch, &row.assignment.assignee, &row.assignment.workstation)
        })
        .transpose()
    }

    /// Every assignment that a task ever had, the first one first.
    pub(crate) fn assignments(&mut self, task: &TaskId) -> Result<Vec<PastAssignment>, Refusal> {
        if let Some(answer) = self.remote(|| calls::Assignments { task: task.clone() })? {
            return Ok(answer);
        }
        self.ask(|tx| show::assignments(tx, task))
    }

    /// The assignment that a workstation holds, as something that is about to be interrupted.
    pub fn held_in(
        &mut self,
        task: &TaskId,
        workstation: &WorkstationName,
    ) -> Result<Option<Evicted>, Refusal> {
        let held = self.find_task(task)?.and_then(|task| task.assignment().cloned());
        let held = held.filter(|held| held.workstation == *workstation);
        held.map(|held| self.site(task, held.epoch, &held.assignee, &held.workstation)).transpose()
    }

    fn site(
        &mut self,
        task: &TaskId,
        epoch: Epoch,
        worker: &Handle,
        workstation: &WorkstationName,
    ) -> Result<Evicted, Refusal> {
        let found = self.find_workstation(workstation)?;
        let directory = found.as_ref().and_then(|found| found.path.clone()).map(PathBuf::from);
        let elsewhere = directory.as_deref().map(|path| self.other_clone(path)).transpose()?.flatten();
        Ok(Evicted {
            task: task.clone(),
            epoch,
            worker: worker.clone(),
            workstation: workstation.clone(),
            directory,
            branch: found.and_then(|found| found.branch).map(|branch| branch.to_string()),
            elsewhere,
        })
    }

    /// The other clone of this store on this machine that a directory belongs to. A path of another machine may name
    /// anything here: only a clone that has joined is one.
    fn other_clone(&mut self, directory: &Path) -> Result<Option<Repo>, Refusal> {
        let found = repository::find_with(directory, &Env::default()).ok().and_then(|place| place.repo);
        let own = self.place.repo.as_ref().map(|repo| repo.common_dir.clone());
        let Some(repo) = found.filter(|repo| own.as_ref() != Some(&repo.common_dir)) else {
            return Ok(None);
        };
        let Some(id) = clone_id::kept(&repo.common_dir) else { return Ok(None) };
        let host = clock::now().tick.host;
        let (_, clones) = self.known_clones()?;
        let has_joined = clones.iter().any(|clone| clone.id == id && clone.host == host);
        Ok(Some(repo).filter(|_| has_joined))
    }

    /// The ref barrier: an update by the old holder that passed its check before the epoch rose has the branch's lock;
    /// once we have had that lock, it has landed. Whatever comes later is checked against the new epoch and refused.
    pub fn bar(&self, evicted: &Evicted) -> Result<(), Refusal> {
        let Some(refname) = evicted.branch.as_deref().map(refs::branch_ref) else {
            return Ok(());
        };
        if let Some(repo) = &self.place.repo {
            self.bar_in(repo, &refname)?;
        }
        match evicted.elsewhere.as_ref().map(|repo| self.bar_in(repo, &refname)) {
            Some(Err(refusal)) if refusal.code == Code::StoreBusy => Err(refusal),
            // What we may not touch is as far away as another machine.
            Some(Err(_) | Ok(())) | None => Ok(()),
        }
    }

    fn bar_in(&self, repo: &Repo, refname: &str) -> Result<(), Refusal> {
        refs::barrier(&repo.common_dir, refname)?;
        // A merge is recorded while the main branch is locked: one that was accepted before has landed after this.
        if let Some(main) = identity_map::main_branch(repo, &self.settings)? {
            refs::barrier(&repo.common_dir, &main)?;
        }
        for shared in refs::local_remotes(repo)? {
            refs::barrier(&shared, refname)?;
            // A push that was let through before has arrived after this.
            if let Some(main) = identity_map::main_branch(repo, &self.settings)? {
                refs::barrier(&shared, &main)?;
            }
        }
        Ok(())
    }

    /// Keeps what the old holder left behind, and records where. What lies in another clone is kept there and brought here.
    pub fn salvage(
        &mut self,
        actor: Option<&Handle>,
        request: RequestId,
        evicted: &Evicted,
    ) -> Result<Option<Salvaged>, Refusal> {
        let Some(repo) = self.place.repo.clone() else {
            return Ok(None);
        };
        let home = evicted.elsewhere.as_ref().unwrap_or(&repo);
        let Some(mut kept) = self.keep(home, evicted)? else {
            return Ok(None);
        };
        if let Some(other) = &evicted.elsewhere
            && !refs::bring(&repo, &other.common_dir.to_string_lossy(), &kept.refname, &kept.refname)?
        {
            kept.left_out = Some(format!("it stays in {}", other.common_dir.display()));
        }
        let commit: CommitId = kept.commit.parse().map_err(Refusal::invalid)?;
        let command = Command::Salvage { of: evicted.epoch, reference: kept.refname.clone(), commit };
        let envelope = Envelope {
            request,
            actor: actor.cloned(),
            token: None,
            task: Some(evicted.task.clone()),
            project: None,
            base: None,
            command,
        };
        self.submit(&envelope, &Target::Named)?;
        Ok(Some(kept))
    }

    /// What a takeover would find. What git cannot tell counts as nothing: the list of stale tasks must not depend on it.
    pub(crate) fn left_behind(&mut self, held: &HeldView) -> Result<LeftView, Refusal> {
        let directory = self.directory_of(&held.workstation)?;
        let mut left = LeftView {
            directory: directory.as_ref().map(|path| path.display().to_string()),
            directory_exists: directory.as_ref().is_some_and(|path| path.is_dir()),
            ..LeftView::default()
        };
        let Some(repo) = &self.place.repo else {
            return Ok(left);
        };
        let main = identity_map::main_branch(repo, &self.settings)?;
        if let (Some(directory), Some(main)) = (directory.filter(|path| path.is_dir()), main)
            && let Ok(survey) = worktree::survey(repo, &directory, &main)
        {
            left.dirty_files = survey.dirty.count;
            left.commits_not_in_main = survey.unmerged.count;
        }
        let history = refs::History::at(&repo.common_dir);
        let earlier = (1..=held.epoch).rev().take(EARLIER).map(|epoch| salvage_reference(&held.task, epoch));
        left.salvage_refs = earlier.filter(|name| matches!(history.resolve(name), Ok(Some(_)))).collect();
        Ok(left)
    }

    fn keep(&self, repo: &Repo, evicted: &Evicted) -> Result<Option<Salvaged>, Refusal> {
        let (Some(directory), Some(main)) =
            (&evicted.directory, identity_map::main_branch(repo, &self.settings)?)
        else {
            return Ok(None);
        };
        let directory: &Path = directory;
        let tree = worktree::list(repo)?.into_iter().find(|tree| tree.path == directory);
        // A directory of another repository, or none: its work is not ours to look after.
        let Some(branch) = evicted.branch.as_ref().map(|branch| refs::branch_ref(branch)) else {
            return Ok(None);
        };
        let there = tree.filter(|tree| tree.prunable.is_none()).map(|tree| tree.path);
        refs::salvage(repo, there.as_deref(), &branch, &main, &evicted.task, evicted.epoch)
    }
}
