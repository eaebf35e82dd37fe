//! `consistency`: does git say what the queue says? (mission D13)
//!
//! Git is read first, in one pass over the main branch and one look at each workstation's branch; then the store, in one
//! pass over what those commits name. Nothing is changed.

mod branches;
mod commits;
mod places;
mod queue;

use crate::Onus;
use crate::progress::Progress;
use crate::remote::calls;
use crate::view::HeldView;
use onus_core::code::Code;
use onus_core::id::TaskId;
use onus_core::refusal::{Finding, Refusal};
use onus_host::refs::{self, Commit, History};
use onus_host::repository::Repo;
use onus_host::worktree::{self, Worktree};
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
        let detail = format!("{} findings; the first: {}", self.findings.len(), first.detail);
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
        let (repo, main) = self.main_of_repository()?;
        let workstations = self.workstation_rows()?;
        let held = self.held()?;
        let record = read(&repo, main, since, workstations, progress)?;
        let queue = self.queue_about(record.tasks())?;
        let findings = findings(&record, &queue, &held, &repo, onus);
        let counts = ConsistencyCountsView {
            commits: record.commits.len() as i64,
            tasks: queue.tasks.len() as i64,
            workstations: record.unmerged.len() as i64,
            findings: findings.len() as i64,
        };
        Ok(ConsistencyView { findings, counts })
    }

    /// What the queue knows of these tasks, and of the last ones of every workstation.
    pub(crate) fn queue_about(&mut self, tasks: BTreeSet<TaskId>) -> Result<Queue, Refusal> {
        if let Some(answer) = self.remote(|| calls::QueueAbout { tasks: tasks.clone() })? {
            return Ok(answer);
        }
        self.ask(|tx| Queue::load(tx, tasks))
    }
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
    progress.begin("reading branches", Some(workstations.len() as u64));
    let mut unmerged = Vec::with_capacity(workstations.len());
    for row in workstations {
        let branch = row.workstation.branch.as_ref().map(|branch| refs::branch_ref(branch.as_str()));
        let tip =
            branch.filter(|branch| *branch != main).map(|branch| history.resolve(&branch)).transpose()?;
        let left = match tip.flatten() {
            Some(tip) => history.unmerged(&tip, &main)?,
            None => Vec::new(),
        };
        unmerged.push((row, left));
        progress.at(unmerged.len() as u64);
    }
    progress.end();
    let (worktrees, salvaged) = (worktree::list(repo)?, refs::names(repo, "refs/onus/salvage")?);
    Ok(Record { main, commits, worktrees, salvaged, unmerged })
}

fn findings(
    record: &Record,
    queue: &Queue,
    held: &[HeldView],
    repo: &Repo,
    onus: &Path,
) -> Vec<DisagreementView> {
    let mut all = commits::findings(&record.commits, queue);
    all.extend(branches::findings(record, queue));
    all.extend(places::forgotten(record, held));
    all.extend(places::worktrees(record));
    all.extend(places::salvaged(record, queue));
    all.extend(places::hooks(record, repo, onus));
    all
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
