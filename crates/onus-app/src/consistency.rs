//! `consistency`: does git say what the queue says? (mission D13)
//!
//! Git is read first, in one pass over the main branch and one look at each workstation's branch; then the store, in one
//! pass over what those commits name. Nothing is changed.

mod branches;
mod commits;
mod landed;
mod places;
mod queue;

use crate::Onus;
use crate::progress::Progress;
use crate::remote::calls;
use crate::submit::unexpected;
use onus_core::code::Code;
use onus_core::id::TaskId;
use onus_core::refusal::{Finding, Refusal, told};
use onus_core::salvage_reference;
use onus_core::settings::{Settings, Unowned};
use onus_host::refs::{self, Commit, History};
use onus_host::repository::{Place, Repo};
use onus_host::worktree::{self, Worktree};
use onus_host::{clock, clone_id, identity_map};
use onus_store::registry::WorkstationHolding;
pub(crate) use queue::Queue;
use queue::salvaged_task;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The answer to `consistency`; without findings queue and git agree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConsistencyView {
    pub findings: Vec<DisagreementView>,
    /// What is told and refuses nothing.
    pub warnings: Vec<DisagreementView>,
    pub counts: ConsistencyCountsView,
}

/// One thing that git and the queue tell differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DisagreementView {
    pub kind: Disagreement,
    pub code: Code,
    pub task: Option<String>,
    /// A directory, a branch or another reference.
    pub path: Option<String>,
    pub detail: String,
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disagreement {
    /// A commit names a task that there is not.
    CommitOfUnknownTask,
    /// A commit of the main branch names a task that nobody holds and that is not complete.
    CommitOfUnfinishedTask,
    /// A commit names a worker to whom its task was not given.
    CommitByAnother,
    /// A commit names an epoch that its task never had.
    EpochNeverGranted,
    /// A task is complete, and the main branch has not all of its commits.
    CompleteNotMerged,
    /// A branch carries commits of an assignment that has ended.
    WorkOfEndedAssignment,
    /// A task is held, and there is no sign of its holder.
    Forgotten,
    /// A working tree that is no workstation.
    WorktreeWithoutOwner,
    /// A workstation whose working tree is gone.
    WorkstationWithoutWorktree,
    /// Work was kept for a task that there is not.
    SalvageOfUnknownTask,
    /// Git does not ask Onus before a branch moves.
    HooksMissing,
    /// A commit of the main branch names an assignment that did not land it.
    CommitNotLanded,
    /// The record says that it has landed, and the main branch has it not.
    LandedNotThere,
    /// A commit of the main branch belongs to no task.
    CommitOfNoTask,
    /// The shared main branch could not be looked at: this is what was fetched last.
    MainNotFetched,
}

impl Disagreement {
    /// As the document has it.
    fn name(self) -> String {
        let word = serde_json::to_value(self).ok();
        word.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    }

    const fn code(self) -> Code {
        match self {
            Disagreement::CommitOfUnknownTask | Disagreement::SalvageOfUnknownTask => Code::UnknownTask,
            Disagreement::CommitOfUnfinishedTask => Code::WrongState,
            Disagreement::CommitByAnother | Disagreement::EpochNeverGranted => Code::Fenced,
            Disagreement::CompleteNotMerged | Disagreement::WorkOfEndedAssignment => Code::NotMerged,
            Disagreement::Forgotten | Disagreement::HooksMissing => Code::QueueInvalid,
            Disagreement::WorktreeWithoutOwner => Code::WorkstationUnknown,
            Disagreement::WorkstationWithoutWorktree => Code::WorkstationNotReady,
            Disagreement::CommitNotLanded | Disagreement::CommitOfNoTask => Code::NotOwnCommits,
            Disagreement::LandedNotThere | Disagreement::MainNotFetched => Code::NotMerged,
        }
    }
}

impl DisagreementView {
    fn new(kind: Disagreement, detail: String, hint: String) -> DisagreementView {
        DisagreementView { kind, code: kind.code(), task: None, path: None, detail, hint }
    }

    fn task(self, task: impl ToString) -> DisagreementView {
        DisagreementView { task: Some(task.to_string()), ..self }
    }

    fn path(self, path: impl ToString) -> DisagreementView {
        DisagreementView { path: Some(path.to_string()), ..self }
    }
}

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ConsistencyCountsView {
    pub commits: i64,
    pub tasks: i64,
    pub workstations: i64,
    pub findings: i64,
}

impl ConsistencyView {
    /// The refusal that a front end gives; none when all agree.
    pub fn refusal(&self) -> Option<Refusal> {
        let first = self.findings.first()?;
        let shown = |found: &DisagreementView| Finding {
            hint: Some(found.hint.clone()),
            kind: Some(found.kind.name()),
            task: found.task.clone(),
            path: found.path.clone(),
            ..Finding::new(found.code, found.detail.clone())
        };
        let detail = told(self.findings.len(), &first.detail);
        Some(
            Refusal::new(Code::QueueInvalid, detail)
                .hint(first.hint.clone())
                .findings(self.findings.iter().take(100).map(shown).collect()),
        )
    }
}

/// What git says.
struct Record {
    main: String,
    commits: Vec<Commit>,
    worktrees: Vec<Worktree>,
    salvaged: Vec<String>,
    /// By workstation: the commits of its branch that the main branch has not.
    unmerged: Vec<(WorkstationHolding, Vec<Commit>)>,
    /// Those of them that were kept when their assignment was taken away.
    kept: BTreeSet<String>,
}

/// What this clone can see of the places where people work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloneSight {
    /// Every clone that uses the store is on this machine: what is not here is gone.
    All,
    /// Some are elsewhere.
    ItsOwn,
    /// It uses the store only to ask, as CI does: nobody works here.
    Nothing,
}

impl Onus {
    /// Compares the queue with the repository. `since` leaves out the commits that it has; `onus` is the program that
    /// the hooks should run.
    pub fn consistency(
        &mut self,
        since: Option<&str>,
        onus: &Path,
        progress: &mut dyn Progress,
    ) -> Result<ConsistencyView, Refusal> {
        let (repo, main, unseen) = self.counting_main()?;
        let workstations = self.workstation_rows()?;
        let held = self.held()?;
        let record = read(&repo, main, since, workstations, progress)?;
        let queue = self.queue_about(record.tasks())?;
        let sight = self.clone_sight(&repo)?;
        let mut view = compared(&repo, &self.settings, &record, &queue, since.is_none(), |all| {
            all.extend(places::forgotten(&record, &held, sight));
            all.extend(places::worktrees(&record, &repo, sight));
            if sight != CloneSight::Nothing {
                all.extend(places::hooks(&record, &repo, onus));
            }
        })?;
        view.warnings.splice(0..0, unseen);
        Ok(view)
    }

    fn clone_sight(&mut self, repo: &Repo) -> Result<CloneSight, Refusal> {
        let (_, clones) = self.known_clones()?;
        let own = clone_id::kept(&repo.common_dir);
        let host = clock::now().tick.host;
        Ok(match clones.iter().any(|clone| own.as_ref() == Some(&clone.id)) {
            false if !clones.is_empty() => CloneSight::Nothing,
            _ if clones.iter().all(|clone| clone.host == host) => CloneSight::All,
            _ => CloneSight::ItsOwn,
        })
    }

    /// The main branch that counts, after a look at the shared repository where there is one. One that cannot be reached
    /// is told of.
    fn counting_main(&mut self) -> Result<(Repo, String, Option<DisagreementView>), Refusal> {
        // A clone of CI has perhaps no branch of its own, nor the remote by its name.
        let Ok(trunk) = self.trunk() else {
            let repo = repository(&self.place)?;
            let main = main_here(&repo, &self.settings)?;
            return Ok((repo, main, None));
        };
        let unseen = trunk.fetched().err().map(|refusal| {
            let hint = refusal.hint.unwrap_or_else(|| "git fetch".to_owned());
            DisagreementView::new(Disagreement::MainNotFetched, refusal.detail, hint).path(trunk.name())
        });
        let is_there = History::at(&trunk.repo.common_dir).resolve(&trunk.refname)?.is_some();
        let main = if is_there { trunk.refname } else { trunk.local };
        Ok((trunk.repo, main, unseen))
    }

    /// What the queue knows of these tasks, and of the last ones of every workstation.
    pub(crate) fn queue_about(&mut self, tasks: BTreeSet<TaskId>) -> Result<Queue, Refusal> {
        if let Some(answer) = self.remote(|| calls::QueueAbout { tasks: tasks.clone() })? {
            return Ok(answer);
        }
        self.ask(|tx| Queue::load(tx, Some(tasks)))
    }

    /// Everything that a comparison asks, for a clone that cannot reach the store. No secrets are in it.
    pub fn export_queue(&mut self) -> Result<String, Refusal> {
        let queue = self.ask(|tx| Queue::load(tx, None))?;
        serde_json::to_string(&queue).map_err(unexpected)
    }
}

/// The same with a queue that was exported ([`Onus::export_queue`]) and no store at all.
pub fn consistency_with(
    place: &Place,
    settings: &Settings,
    queue: &str,
    since: Option<&str>,
    progress: &mut dyn Progress,
) -> Result<ConsistencyView, Refusal> {
    let queue: Queue = serde_json::from_str(queue).map_err(|error| {
        Refusal::invalid(format!("this is no exported queue: {error}"))
            .hint("onus export --format consistency FILE, where the store is")
    })?;
    let repo = repository(place)?;
    let main = main_here(&repo, settings)?;
    let record = read(&repo, main, since, Vec::new(), progress)?;
    compared(&repo, settings, &record, &queue, since.is_none(), |_| {})
}

fn repository(place: &Place) -> Result<Repo, Refusal> {
    let repo = place.repo.clone();
    repo.ok_or_else(|| Refusal::invalid("this is no git repository").hint("cd into it"))
}

/// The main branch of a clone that has perhaps none of its own, as CI makes them.
fn main_here(repo: &Repo, settings: &Settings) -> Result<String, Refusal> {
    if let Some(main) = identity_map::main_branch(repo, settings)? {
        return Ok(main);
    }
    let history = History::at(&repo.common_dir);
    let remote = settings.git.remote.as_deref().unwrap_or("origin");
    let names = settings.git.main.as_deref().into_iter().chain(["main", "master"]);
    for refname in names.map(|name| refs::tracking_ref(remote, name)) {
        if history.resolve(&refname)?.is_some() {
            return Ok(refname);
        }
    }
    history.commit("HEAD")
}

/// What commits and branches say, what `places` adds, and what the setting makes of commits that belong to no task.
fn compared(
    repo: &Repo,
    settings: &Settings,
    record: &Record,
    queue: &Queue,
    is_whole: bool,
    places: impl FnOnce(&mut Vec<DisagreementView>),
) -> Result<ConsistencyView, Refusal> {
    let mut findings = commits::findings(&record.commits, queue);
    findings.extend(landed::foreign(&record.commits, queue));
    findings.extend(branches::findings(record, queue));
    findings.extend(places::salvaged(record, queue));
    places(&mut findings);
    if is_whole {
        let main = record.commits.iter().map(|commit| commit.id.as_str()).collect();
        findings.extend(landed::missing(&main, &queue.landed));
    }
    let mut warnings = Vec::new();
    let unowned = landed::unowned(&record.commits, &before_onus(repo, queue)?);
    match settings.git.unowned {
        Unowned::Allow => {}
        Unowned::Warn => warnings.extend(unowned),
        Unowned::Refuse => findings.extend(unowned),
    }
    let counts = ConsistencyCountsView {
        commits: record.commits.len() as i64,
        tasks: queue.tasks.len() as i64,
        workstations: record.unmerged.len() as i64,
        findings: findings.len() as i64,
    };
    Ok(ConsistencyView { findings, warnings, counts })
}

impl Record {
    /// Every task that git speaks of.
    fn tasks(&self) -> BTreeSet<TaskId> {
        let branches = self.unmerged.iter().flat_map(|(_, left)| left);
        let mut tasks = tasks_of(self.commits.iter().chain(branches));
        tasks.extend(self.salvaged.iter().filter_map(|name| salvaged_task(name)));
        tasks
    }
}

fn read(
    repo: &Repo,
    main: String,
    since: Option<&str>,
    workstations: Vec<WorkstationHolding>,
    progress: &mut dyn Progress,
) -> Result<Record, Refusal> {
    let history = History::at(&repo.common_dir);
    let since = since.map(|name| history.commit(name)).transpose()?;
    progress.begin("reading the main branch", None);
    let not: Vec<&str> = since.as_deref().into_iter().collect();
    let commits = history.commits(&main, &not)?;
    progress.end();
    let salvaged = refs::names(repo, "refs/onus/salvage")?;
    progress.begin("reading branches", Some(workstations.len() as u64));
    let (mut unmerged, mut kept) = (Vec::with_capacity(workstations.len()), BTreeSet::new());
    for row in workstations {
        let branch = row.workstation.branch.as_ref().map(|branch| refs::branch_ref(branch.as_str()));
        let tip =
            branch.filter(|branch| *branch != main).map(|branch| history.resolve(&branch)).transpose()?;
        let left = match tip.flatten() {
            Some(tip) => history.unmerged(&tip, &main)?,
            None => Vec::new(),
        };
        for commit in &left {
            if is_kept(&history, &salvaged, commit)? {
                kept.insert(commit.id.clone());
            }
        }
        unmerged.push((row, left));
        progress.at(unmerged.len() as u64);
    }
    progress.end();
    let worktrees = worktree::list(repo)?;
    Ok(Record { main, commits, worktrees, salvaged, unmerged, kept })
}

/// Whether a commit is among what was kept of the assignment that it names.
fn is_kept(history: &History<'_>, salvaged: &[String], commit: &Commit) -> Result<bool, Refusal> {
    let task = commit.trailers.task.as_deref().and_then(|task| task.parse().ok());
    let epoch = commit.trailers.epoch.as_deref().and_then(|epoch| epoch.parse().ok());
    let Some(name) = task.zip(epoch).map(|(task, epoch)| salvage_reference(&task, epoch)) else {
        return Ok(false);
    };
    Ok(salvaged.contains(&name) && history.reaches(&name, &commit.id)?)
}

/// What was in the main branch before the first task was given away.
fn before_onus(repo: &Repo, queue: &Queue) -> Result<BTreeSet<String>, Refusal> {
    let history = History::at(&repo.common_dir);
    let first = queue.first_base.as_ref().map(ToString::to_string);
    match first.map(|base| history.resolve(&base)).transpose()?.flatten() {
        Some(base) => Ok(history.ids(&base, &[])?.into_iter().collect()),
        None => Ok(BTreeSet::new()),
    }
}

/// The tasks that a commit names. Several where several commits were made one.
fn named(commit: &Commit) -> impl Iterator<Item = &str> {
    let all = commit.trailers.task.as_deref().unwrap_or_default();
    all.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn tasks_of<'a>(commits: impl Iterator<Item = &'a Commit>) -> BTreeSet<TaskId> {
    commits.flat_map(named).filter_map(|name| name.parse().ok()).collect()
}

/// The first letters of an id, as people pass them on.
fn brief(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
