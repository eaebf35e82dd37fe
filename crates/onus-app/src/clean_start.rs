//! A clean start (invariant clean-start): when a grant returns, the workstation's branch holds the main of record and nothing
//! else. What was there before is kept, and told (mission B6, D3).

use crate::Onus;
use crate::main_of_record::Trunk;
use crate::remote::calls;
use crate::submit::{Target, step};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::handoff::{Standing, Words};
use onus_core::id::{CommitId, Epoch, Handle, RequestId, TaskId, WorkstationName};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::salvage_reference;
use onus_core::settings::WorktreeSync;
use onus_core::task::Task;
use onus_core::text::Text;
use onus_core::workstation::{Workstation, WorkstationKind};
use onus_host::env::Env;
use onus_host::refs::{self, Commit, History, SALVAGED, Salvaged};
use onus_host::repository;
use onus_host::worktree::{self, Picked};
use onus_store::landed;
use std::path::{Path, PathBuf};

/// Who begins, and under which name the steps of it may be repeated.
#[derive(Debug, Clone, Copy)]
pub struct Begins<'a> {
    pub request: &'a RequestId,
    pub actor: Option<&'a Handle>,
    pub token: Option<&'a Token>,
}

/// What becomes of the kept work of an earlier holder of the same task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// It stays where it is kept.
    Leave,
    /// It is brought along, and the holder answers for it.
    Adopt,
}

/// What a clean start did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Started {
    /// What was found in the workstation and is kept.
    pub kept: Option<Salvaged>,
    /// The earlier work on this task that was brought along, commit by commit.
    pub adopted: Vec<CommitId>,
    /// What could not be done, in words.
    pub warnings: Vec<String>,
}

/// A worktree of this clone with a branch of its own.
struct OwnBranch {
    name: WorkstationName,
    directory: PathBuf,
    branch: String,
    git_dir: PathBuf,
}

impl Onus {
    /// Gives a task back whose workstation cannot be made ready, so that nobody works among what somebody else left; what to
    /// tell the caller.
    pub fn not_begun(&mut self, begins: &Begins<'_>, task: &TaskId, refusal: Refusal) -> Refusal {
        let words = Words { summary: Some(refusal.detail.clone()), ..Words::default() };
        let command = Command::Release {
            note: words.summary.clone().map(Text::new),
            handoff: self.compose_handoff(task, Standing::Released, None, &words).ok().flatten(),
            warrant: Warrant::Ordinary,
        };
        let released = envelope(begins, "not begun", task, command)
            .and_then(|envelope| self.submit(&envelope, &Target::Named));
        match released {
            Ok(_) => refusal,
            // Who gives work to somebody else cannot take it back; whoever picks it up tries again.
            Err(_) => Refusal { detail: format!("{}; {task} is still held", refusal.detail), ..refusal },
        }
    }

    /// Puts the workstation of a grant on the main of record. Done once for a grant: what its holder makes there afterwards
    /// is not touched, however often the call is repeated.
    pub fn clean_start(
        &mut self,
        begins: &Begins<'_>,
        task: &Task,
        earlier: Earlier,
    ) -> Result<Started, Refusal> {
        let mut started = Started::default();
        let (Some(held), WorktreeSync::Claim) = (task.assignment(), self.settings.workstation.sync) else {
            return Ok(started);
        };
        let Some(found) = self.find_workstation(&held.workstation)? else {
            return Ok(started);
        };
        let Some(place) = self.place_of(&found) else {
            if earlier == Earlier::Adopt {
                let detail =
                    format!("nothing was adopted: {} is no worktree of this clone", held.workstation);
                started
                    .warnings
                    .push(format!("{detail}; take what you need from refs/onus/salvage/{}", task.id));
            }
            return Ok(started);
        };
        let mark = (&task.id, held.epoch);
        if is_marked(&place, mark) {
            return Ok(started);
        }
        self.put_on_main(begins, task, &place, mark, earlier, &mut started).map_err(|cause| {
            let detail =
                format!("{} could not be put on the main of record: {}", held.workstation, cause.detail);
            Refusal::new(Code::WorkstationNotReady, detail)
                .hint(format!("onus workstation sync {} tells what is in its way", held.workstation))
        })?;
        mark_as_begun(&place, mark);
        Ok(started)
    }

    fn put_on_main(
        &mut self,
        begins: &Begins<'_>,
        task: &Task,
        place: &OwnBranch,
        mark: (&TaskId, Epoch),
        earlier: Earlier,
        started: &mut Started,
    ) -> Result<(), Refusal> {
        let trunk = self.trunk()?;
        if let Err(refusal) = trunk.fetched() {
            started.warnings.push(format!("work begins with what was fetched last: {}", refusal.detail));
        }
        let own = (task.id.clone(), mark.1);
        started.kept = self.put_aside(begins, &trunk, place, Some(&own))?;
        worktree::put_back(&trunk.repo, &place.directory, &place.branch, &trunk.seen()?)?;
        match earlier {
            Earlier::Adopt => self.adopt_earlier(begins, &trunk, place, mark, started),
            Earlier::Leave => Ok(()),
        }
    }

    /// Puts a workstation that nobody holds back on the main of record, and tells what was kept.
    pub fn put_back_free(
        &mut self,
        begins: &Begins<'_>,
        workstation: &Workstation,
    ) -> Result<Option<(Trunk, Option<Salvaged>)>, Refusal> {
        let Some(place) = self.place_of(workstation) else {
            return Ok(None);
        };
        let trunk = self.trunk()?;
        trunk.fetched()?;
        let kept = self.put_aside(begins, &trunk, &place, None)?;
        worktree::put_back(&trunk.repo, &place.directory, &place.branch, &trunk.seen()?)?;
        Ok(Some((trunk, kept)))
    }

    /// The worktree, if it is one of this clone.
    fn place_of(&self, found: &Workstation) -> Option<OwnBranch> {
        let repo = self.place.repo.as_ref().filter(|_| found.kind == WorkstationKind::Worktree)?;
        let directory = PathBuf::from(found.path.as_ref()?);
        let own = repository::find_with(&directory, &Env::default()).ok()?.repo?;
        (own.common_dir == repo.common_dir && own.git_dir != own.common_dir).then(|| OwnBranch {
            name: found.name.clone(),
            directory,
            branch: found.branch.as_ref().map(ToString::to_string).unwrap_or_default(),
            git_dir: own.git_dir,
        })
    }

    /// Whether a workstation's directory is a working tree of this clone.
    pub(crate) fn is_in_this_clone(&self, found: &Workstation) -> bool {
        let own = found
            .path
            .as_deref()
            .and_then(|path| repository::find_with(Path::new(path), &Env::default()).ok()?.repo);
        self.place.repo.as_ref().zip(own).is_some_and(|(repo, own)| repo.common_dir == own.common_dir)
    }

    /// Keeps what lies in a workstation and is not in the main of record.
    fn put_aside(
        &mut self,
        begins: &Begins<'_>,
        trunk: &Trunk,
        place: &OwnBranch,
        but: Option<&(TaskId, Epoch)>,
    ) -> Result<Option<Salvaged>, Refusal> {
        let history = History::at(&place.directory);
        let (tip, head) = (trunk.seen()?, history.resolve("HEAD")?);
        let branch = history.resolve(&refs::branch_ref(&place.branch))?;
        let mut is_merged = true;
        for commit in head.iter().chain(&branch) {
            is_merged &= history.reaches(&tip, commit)? || history.is_merged(commit, &tip)?;
        }
        if is_merged && !worktree::is_dirty(&place.directory)? {
            return Ok(None);
        }
        let whose = self.last_work_here(&place.name, but)?;
        let target = match &whose {
            Some((task, epoch)) => salvage_reference(task, *epoch),
            None => format!("refs/onus/salvage/{}/0", place.name),
        };
        let of = whose.as_ref().map(|(task, epoch)| (task, *epoch));
        let refname = refs::branch_ref(&place.branch);
        // By a former call, or by the takeover itself: then it is not kept twice.
        if let (Some((task, epoch)), false) = (&whose, worktree::is_dirty(&place.directory)?)
            && history.resolve(&salvage_reference(task, *epoch))? == branch
        {
            return Ok(None);
        }
        let kept = refs::set_aside(&trunk.repo, &place.directory, &refname, &tip, &target, of)?;
        if let (Some(kept), Some((task, epoch))) = (&kept, &whose) {
            let commit: CommitId = kept.commit.parse().map_err(Refusal::invalid)?;
            let command = Command::Salvage { of: *epoch, reference: kept.refname.clone(), commit };
            let name = format!("salvage {}", kept.refname);
            // The work is kept; that the record cannot say so must not stop who begins.
            drop(self.submit(&self::envelope(begins, &name, task, command)?, &Target::Named));
        }
        Ok(kept)
    }

    /// What was last worked on in a workstation, but for one assignment.
    pub(crate) fn last_work_here(
        &mut self,
        place: &WorkstationName,
        but: Option<&(TaskId, Epoch)>,
    ) -> Result<Option<(TaskId, Epoch)>, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::LastWorkHere { place: place.clone(), but: but.cloned() })?
        {
            return Ok(answer);
        }
        let none = (crate::route::no_task()?, 0);
        let (task, epoch) = but.unwrap_or(&none);
        self.ask(|tx| landed::last_work(tx, place, (task, *epoch)))
    }

    /// Brings along what the last earlier holder of the task left: its commits as commits, the rest as changed files.
    fn adopt_earlier(
        &mut self,
        begins: &Begins<'_>,
        trunk: &Trunk,
        place: &OwnBranch,
        (task, epoch): (&TaskId, Epoch),
        started: &mut Started,
    ) -> Result<(), Refusal> {
        let history = History::at(&trunk.repo.common_dir);
        let tip = trunk.seen()?;
        let kept = || {
            (1..epoch).rev().find_map(|of| {
                let name = salvage_reference(task, of);
                Some((of, history.resolve(&name).ok()??, name))
            })
        };
        let mut found = kept();
        if found.is_none() {
            self.bring_earlier(trunk, (task, epoch))?;
            found = kept();
        }
        let Some((of, commit, name)) = found else {
            started.warnings.push("no earlier holder has left anything to adopt".to_owned());
            return Ok(());
        };
        let mut commits: Vec<Commit> = history.unmerged(&commit, &tip)?;
        // A branch that was brought from elsewhere may have gone on with another task.
        let is_of_task =
            |commit: &Commit| commit.trailers.task.as_ref().is_none_or(|named| *named == task.to_string());
        commits.retain(is_of_task);
        commits.reverse();
        let uncommitted = commits.iter().position(|one| one.subject.starts_with(SALVAGED));
        let uncommitted = uncommitted.map(|at| commits.remove(at).id);
        let picked = worktree::pick(&trunk.repo, &place.directory, &commits, uncommitted.as_deref())?;
        if let Picked::Conflict(at) = picked {
            let at = at.get(..12).unwrap_or(&at);
            started.warnings.push(format!(
                "{name} was not adopted: {at} conflicts with {}; take what you need from it by hand",
                trunk.name()
            ));
            return Ok(());
        }
        let commits = commits.iter().filter_map(|commit| commit.id.parse().ok()).collect::<Vec<CommitId>>();
        let command = Command::Adopt { of, commits: commits.clone() };
        self.submit(&envelope(begins, &format!("adopt {of}"), task, command)?, &Target::Named)?;
        started.adopted = commits;
        Ok(())
    }
}

impl Onus {
    /// What the last earlier holder committed in another clone: from there, where that is on this machine, else from the shared
    /// repository, if it was pushed.
    fn bring_earlier(&mut self, trunk: &Trunk, (task, epoch): (&TaskId, Epoch)) -> Result<(), Refusal> {
        let past = self.assignments(task)?.into_iter().map(|row| row.assignment);
        let last = past.filter(|past| past.epoch < epoch).max_by_key(|past| past.epoch);
        let Some(last) = last else { return Ok(()) };
        let Some(found) = self.find_workstation(&last.workstation)? else { return Ok(()) };
        let Some(branch) = found.branch.clone().filter(|_| !self.is_in_this_clone(&found)) else {
            return Ok(());
        };
        let there = found.path.filter(|path| Path::new(path).is_dir());
        let remote = trunk.shared.as_ref().map(|shared| shared.remote.clone());
        let kept = salvage_reference(task, last.epoch);
        // What was kept there has the files that nobody committed as well.
        let branch = refs::branch_ref(branch.as_str());
        for from in there.into_iter().chain(remote) {
            if refs::bring(&trunk.repo, &from, &kept, &kept)?
                || refs::bring(&trunk.repo, &from, &branch, &kept)?
            {
                break;
            }
        }
        Ok(())
    }
}

fn envelope(begins: &Begins<'_>, name: &str, task: &TaskId, command: Command) -> Result<Envelope, Refusal> {
    Ok(Envelope {
        request: step(begins.request, name)?,
        actor: begins.actor.cloned(),
        token: begins.token.cloned(),
        task: Some(task.clone()),
        project: None,
        base: None,
        command,
    })
}

/// Beside the leases of the worktree: which grant it was made ready for.
fn mark(place: &OwnBranch) -> PathBuf {
    place.git_dir.join("onus/begun")
}

fn is_marked(place: &OwnBranch, (task, epoch): (&TaskId, Epoch)) -> bool {
    let text = std::fs::read_to_string(mark(place)).unwrap_or_default();
    text.trim() == format!("{task} {epoch}")
}

/// Without the mark a repeated call would find the holder's own work; that is then kept, and not lost.
fn mark_as_begun(place: &OwnBranch, (task, epoch): (&TaskId, Epoch)) {
    let path = mark(place);
    drop(path.parent().map(|above: &Path| std::fs::create_dir_all(above)));
    drop(std::fs::write(path, format!("{task} {epoch}\n")));
}
