//! Handoffs: what git and the store know about the work, composed for whoever holds the task next (mission D10).

use crate::remote::calls;
use crate::salvage::Evicted;
use crate::submit::unexpected;
use crate::{Onus, Sight};
use onus_core::code::Code;
use onus_core::evidence::Proof;
use onus_core::facts::Dependency;
use onus_core::handoff::{DependsOn, FORMAT, HandedCommit, Handoff, LeftOut, Standing, TestRun, Words};
use onus_core::id::{CommitId, TaskId, WorkstationName};
use onus_core::own_commits::{self, Made, Ownership};
use onus_core::refusal::Refusal;
use onus_core::task::{Assignment, Blocker, Criterion, State, StateName, Task};
use onus_core::text::{REASON_MAX, Text, shortened};
use onus_core::time::Timestamp;
use onus_core::workstation::Workstation;
use onus_host::env::Env;
use onus_host::refs::{Commit, History, branch_ref};
use onus_host::{identity_map, ref_file, repository, worktree};
use onus_store::load;
use onus_store::read::show;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How many runs of checks a handoff tells of.
const RUNS: i64 = 20;

/// A handoff as it was kept: the document, or the plain words of a caller that composed none.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HandoffView {
    pub task: TaskId,
    pub handoff: Option<Handoff>,
    pub text: Option<String>,
    /// Its words are the former holder's: data, never instructions.
    pub untrusted: bool,
}

/// Work as git shows it.
#[derive(Debug, Default)]
struct GitTrace {
    commits: Vec<HandedCommit>,
    files: Vec<String>,
    dirty: Vec<String>,
    dirty_left_out: usize,
    head: Option<CommitId>,
}

pub(crate) type HandoffFacts = (Vec<Dependency>, Option<Workstation>, Timestamp);

/// What is known of the files that nobody committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uncommitted {
    /// Somebody looked a moment ago: there are none.
    None,
    Unknown,
}

impl Onus {
    /// The handoff of the present holder's work, ready to be kept. None where nobody holds the task.
    pub fn compose_handoff(
        &mut self,
        task: &TaskId,
        status: Standing,
        blocker: Option<&Blocker>,
        words: &Words,
    ) -> Result<Option<Text>, Refusal> {
        let Some(task) = self.find_task(task)? else {
            return Ok(None);
        };
        let Some(held) = task.assignment().cloned() else {
            return Ok(None);
        };
        let mut handoff = self.composed(&task, &held, status, words, Uncommitted::Unknown)?;
        let waits = match (&task.state, blocker) {
            (_, Some(on)) | (State::Blocked { on, .. }, None) => Some(on.to_string()),
            _ => None,
        };
        handoff.blockers.extend(waits);
        document(handoff).map(Some)
    }

    /// The handoff of finished work: its commits are those that have landed.
    pub(crate) fn compose_done(
        &mut self,
        task: &Task,
        status: Standing,
        words: &Words,
        proof: &Proof,
    ) -> Result<Option<Text>, Refusal> {
        let Some(held) = task.assignment().cloned() else {
            return Ok(None);
        };
        let files = match proof.ground.commit.is_some() && !proof.ground.dirty {
            true => Uncommitted::None,
            false => Uncommitted::Unknown,
        };
        let mut handoff = self.composed(task, &held, status, words, files)?;
        let arrived = self.landing_of(&task.id)?;
        let mine = |epoch: i64| epoch == held.epoch;
        let merged = arrived.merges.iter().filter(|(epoch, _)| mine(*epoch));
        let in_order = merged.filter_map(|(_, merged)| merged.landed.as_ref()).chain(&proof.landed);
        let known = arrived.landed.iter().filter(|one| mine(one.epoch)).map(|one| &one.commit);
        let mut landed: Vec<CommitId> = Vec::new();
        for commit in in_order.flat_map(|landed| &landed.commits).chain(known) {
            if !landed.contains(commit) {
                landed.push(commit.clone());
            }
        }
        if !landed.is_empty() {
            let repo = self.place.repo.clone();
            let history = repo.as_ref().map(History::of);
            let known =
                history.map(|history| history.subjects(&landed).unwrap_or_default()).unwrap_or_default();
            let subject = |id: &CommitId| known.iter().find(|(known, _)| known == id.as_str());
            handoff.commits = landed
                .iter()
                .rev()
                .map(|id| HandedCommit {
                    id: id.clone(),
                    subject: subject(id).map(|(_, subject)| subject.clone()).unwrap_or_default(),
                })
                .collect();
            let here: Vec<String> = known.iter().map(|(id, _)| id.clone()).collect();
            handoff.files = history.and_then(|history| history.changed_by(&here).ok()).unwrap_or_default();
        }
        document(handoff).map(Some)
    }

    /// What git shows of the work of somebody who lost the task and cannot say more about it.
    pub fn compose_eviction(
        &mut self,
        evicted: &Evicted,
        salvage: Option<&str>,
    ) -> Result<Option<Text>, Refusal> {
        let task = self.task(&evicted.task)?;
        let past = self.assignments(&evicted.task)?;
        let Some(lost) = past.into_iter().find(|row| row.assignment.epoch == evicted.epoch) else {
            return Ok(None);
        };
        let mut handoff = {
            let (held, words) = (&lost.assignment, Words::default());
            self.composed(&task, held, Standing::TakenOver, &words, Uncommitted::Unknown)?
        };
        handoff.salvage = salvage.map(str::to_owned);
        document(handoff).map(Some)
    }

    fn composed(
        &mut self,
        task: &Task,
        held: &Assignment,
        status: Standing,
        words: &Words,
        files: Uncommitted,
    ) -> Result<Handoff, Refusal> {
        let words = words.checked().map_err(Refusal::invalid)?;
        let (dependencies, workstation, at) = self.surroundings(&task.id, &held.workstation)?;
        let depends_on: Vec<DependsOn> = dependencies
            .into_iter()
            .map(|on| {
                let satisfied = on.excepted || on.state == Some(StateName::Complete);
                DependsOn { task: on.id, state: on.state, satisfied }
            })
            .collect();
        let seen = workstation.as_ref().filter(|_| self.sight == Sight::Workstations);
        let trace = seen.map(|place| self.trace(&task.id, place, held, files)).unwrap_or_default();
        Ok(Handoff {
            format: FORMAT.to_owned(),
            task: task.id.clone(),
            status,
            depends_on_satisfied: depends_on.iter().all(|on| on.satisfied),
            depends_on,
            commits: trace.commits,
            files: trace.files,
            tests_run: self.tests_run(task)?,
            risks: words.risks,
            blockers: Vec::new(),
            next_slice: words.next_slice,
            lane: task.spec.role.as_ref().map(|role| format!("{role}:{}", held.lane.unwrap_or(1))),
            summary: words.summary,
            by: held.assignee.clone(),
            at,
            epoch: held.epoch,
            workstation: held.workstation.clone(),
            branch: workstation.and_then(|place| place.branch).map(|branch| branch.to_string()),
            base: held.base.clone(),
            head: trace.head,
            dirty: trace.dirty,
            salvage: None,
            left_out: LeftOut { dirty: trace.dirty_left_out, ..LeftOut::default() },
            criteria: task.spec.criteria.iter().map(as_stood).collect(),
        })
    }

    /// What a task depends on, where it is held, and what time it is there.
    pub(crate) fn surroundings(
        &mut self,
        task: &TaskId,
        workstation: &WorkstationName,
    ) -> Result<HandoffFacts, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::SurroundingsOf { task: task.clone(), place: workstation.clone() })?
        {
            return Ok(answer);
        }
        self.ask(|tx| {
            let dependencies = load::dependencies(tx, task)?;
            let workstation = load::workstation(tx, workstation)?;
            Ok((dependencies, workstation.map(|(found, _)| found), tx.now()?.wall))
        })
    }

    /// The last runs of the task's checks; the command is told where the check still is one of the task's.
    fn tests_run(&mut self, task: &Task) -> Result<Vec<TestRun>, Refusal> {
        let runs = self.check_runs(&task.id, RUNS)?;
        let command = |run: &onus_core::evidence::Evidence| {
            let check = task.spec.checks.iter().find(|check| check.id() == run.check);
            check.map_or_else(|| run.check.to_string(), |check| check.command.clone())
        };
        let told = runs.into_iter().map(|run| TestRun {
            command: command(&run.evidence),
            verdict: run.evidence.verdict.name().to_owned(),
            commit: run.evidence.ground.commit,
            at: run.evidence.at,
            stated: run.evidence.stated,
        });
        Ok(told.collect())
    }

    /// What a workstation's branch and working tree show. Nothing here may stop a holder from giving a task back: where
    /// git cannot tell, the handoff says nothing.
    fn trace(&self, task: &TaskId, place: &Workstation, held: &Assignment, files: Uncommitted) -> GitTrace {
        let directory = place.path.as_deref().map(Path::new).filter(|path| path.is_dir());
        let Some(directory) = directory.filter(|_| self.place.repo.is_some()) else {
            return GitTrace::default();
        };
        let history = History::at(directory);
        let own = repository::find_with(directory, &Env::default()).ok().and_then(|place| place.repo);
        let head = match (&place.branch, &own) {
            (Some(branch), Some(own)) => ref_file::commit(own, &branch_ref(branch.as_str())).ok().flatten(),
            _ => history.resolve("HEAD").ok().flatten(),
        };
        let mut trace =
            GitTrace { head: head.as_deref().and_then(|id| id.parse().ok()), ..GitTrace::default() };
        // What came in from the main branch by a sync is other people's work.
        let base = held.base.as_ref().map(ToString::to_string);
        let not: Vec<String> = base.into_iter().chain(self.main_commit()).collect();
        if let (Some(head), false) =
            (&head, not.is_empty() || head.as_ref().is_some_and(|head| not.contains(head)))
        {
            let not: Vec<&str> = not.iter().map(String::as_str).collect();
            let own = own_commits(&history, head, &not, task, held);
            trace.files = history.paths_of(&own).unwrap_or_default();
            trace.commits = own
                .into_iter()
                .filter_map(|commit| {
                    Some(HandedCommit { id: commit.id.parse().ok()?, subject: commit.subject })
                })
                .collect();
        }
        if files == Uncommitted::Unknown
            && let Ok(dirty) = worktree::dirty(directory)
        {
            trace.dirty_left_out = dirty.count - dirty.first.len();
            trace.dirty = dirty.first;
        }
        trace
    }

    fn main_commit(&self) -> Option<String> {
        let repo = self.place.repo.as_ref()?;
        let main = identity_map::main_branch(repo, &self.settings).ok().flatten()?;
        ref_file::commit(repo, &main).ok().flatten()
    }

    /// The last handoff of a task; that there is none is a refusal.
    pub fn handoff_of(&mut self, task: &TaskId) -> Result<HandoffView, Refusal> {
        self.last_handoff(task)?.ok_or_else(|| {
            Refusal::new(Code::UnknownName, format!("{task} has no handoff"))
                .task(task)
                .hint(format!("onus show {task} tells its story"))
        })
    }

    /// The last handoff of a task.
    pub fn last_handoff(&mut self, task: &TaskId) -> Result<Option<HandoffView>, Refusal> {
        if let Some(answer) = self.remote(|| calls::LastHandoff { task: task.clone() })? {
            return Ok(answer);
        }
        self.task(task)?;
        let last = self.ask(|tx| show::last_note(tx, task, "handoff"))?;
        Ok(last.map(|text| view(task, &text)))
    }
}

/// A criterion in one line, with whether somebody has ticked it.
fn as_stood(criterion: &Criterion) -> String {
    let mark = if criterion.ticked.is_some() { "[x]" } else { "[ ]" };
    format!("{mark} {}", shortened(&criterion.text.replace('\n', " "), REASON_MAX / 8))
}

/// What was made under this assignment, newest first.
fn own_commits(
    history: &History<'_>,
    head: &str,
    not: &[&str],
    task: &TaskId,
    held: &Assignment,
) -> Vec<Commit> {
    let holding = own_commits::Holding {
        task,
        epoch: held.epoch,
        workstation: &held.workstation,
        adopted_epochs: &[],
        adopted: &[],
    };
    let is_own = |commit: &Commit| {
        made(commit).is_some_and(|made| own_commits::ownership(&made, &holding) == Ownership::Own)
    };
    history.commits(head, not).unwrap_or_default().into_iter().filter(is_own).collect()
}

/// What a commit says about itself, for the rule about whose it is.
pub(crate) fn made(commit: &Commit) -> Option<Made> {
    Some(Made {
        id: commit.id.parse().ok()?,
        subject: commit.subject.clone(),
        task: commit.trailers.task.clone(),
        epoch: commit.trailers.epoch.clone(),
        before_grant: false,
    })
}

pub(crate) fn view(task: &TaskId, text: &str) -> HandoffView {
    match Handoff::parse(text) {
        Ok(handoff) => {
            HandoffView { task: task.clone(), handoff: Some(handoff), text: None, untrusted: true }
        }
        Err(_) => {
            HandoffView { task: task.clone(), handoff: None, text: Some(text.to_owned()), untrusted: true }
        }
    }
}

fn document(handoff: Handoff) -> Result<Text, Refusal> {
    handoff.document().map(Text::new).map_err(unexpected)
}
