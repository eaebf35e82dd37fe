//! `rerun`: the same task once more, by the same identity, in the same workstation, from the same commit (mission C11).

use crate::remote::calls;
use crate::show::unknown_task;
use crate::submit::{Receipt, Target, step, unexpected};
use crate::{Onus, replay};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::constraint::Constraint;
use onus_core::event::WorkstationAdded;
use onus_core::id::{CommitId, Handle, OriginRef, RequestId, TaskId, WorkstationName};
use onus_core::refusal::{Finding, Refusal};
use onus_core::registry::person;
use onus_core::task::{Spec, State, Task};
use onus_core::text::{TITLE_MAX, Text};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use onus_host::refs::History;
use onus_host::worktree;
use onus_store::load;
use onus_store::registry::WorkstationHolding;
use std::path::{Path, PathBuf};

/// Who wants which task done again.
#[derive(Debug)]
pub struct Rerun<'a> {
    pub request: &'a RequestId,
    pub actor: Option<&'a Handle>,
    pub task: &'a TaskId,
    pub reason: Option<&'a str>,
}

/// How the task was done when it was completed.
struct Setting {
    assignee: Handle,
    workstation: WorkstationName,
    directory: PathBuf,
    base: CommitId,
    constraints: Vec<Constraint>,
}

impl Onus {
    /// Asks for the task again and assigns it as it was. The grant goes through map and gate like any other; where it
    /// is refused, the new task stays open and the working tree is put back.
    pub fn rerun(&mut self, call: &Rerun<'_>) -> Result<Receipt, Refusal> {
        let caller = self.caller(call.actor)?;
        person(&caller)?;
        // The workstation is busy with what an earlier call of the same name gave it.
        if let Some(granted) = self.replayed(call.actor, &step(call.request, "claim")?)? {
            return granted;
        }
        let original = self.find_task(call.task)?;
        let original = original.ok_or_else(|| unknown_task(call.task))?;
        let setting = self.setting(call, &original)?;
        let again = self.again(call, &original)?;
        let repo =
            self.place.repo.clone().ok_or_else(|| unexpected("a working tree without a repository"))?;
        let stood = worktree::detach(&repo, &setting.directory, setting.base.as_str())
            .map_err(|refusal| refusal.task(&again.id))?;
        let granted = self.assign(call, &again, &setting);
        granted.map_err(|refusal| {
            // The refusal is what the caller has to know; a tree that cannot go back loses nothing.
            drop(worktree::reattach(&setting.directory, &stood));
            let hint = format!("{} stays open; mend that, then run the same again", again.id);
            Refusal {
                hint: Some(refusal.hint.map_or(hint.clone(), |own| format!("{own}; {hint}"))),
                ..refusal
            }
        })
    }

    /// The last completed assignment, if all of it is still there.
    fn setting(&mut self, call: &Rerun<'_>, task: &Task) -> Result<Setting, Refusal> {
        let past = self.assignments(&task.id)?;
        let last = past.into_iter().rfind(|row| row.end_reason.as_deref() == Some("completed"));
        let Some(last) = last.map(|row| row.assignment) else {
            return Err(Refusal::new(Code::WrongState, format!("{} was never completed", task.id))
                .task(&task.id)
                .hint(format!("onus show {}", task.id)));
        };
        let is_known = self.workers(None)?.workers.iter().any(|worker| worker.handle == last.assignee);
        let row = self.workstation_rows()?.into_iter().find(|row| row.workstation.name == last.workstation);
        let mut findings = Vec::new();
        if !is_known {
            findings.push(
                Finding::new(Code::UnknownWorker, format!("{} is not registered any more", last.assignee))
                    .hint("onus worker list"),
            );
        }
        let retired = row.as_ref().map(|row| &row.workstation).filter(|one| comes_back(one)).cloned();
        if retired.is_none() {
            findings.extend(workstation_finding(&last.workstation, row.as_ref()));
        }
        findings.extend(self.commit_finding(last.base.as_ref())?);
        if let Some(refusal) = Refusal::from_findings(findings) {
            return Err(refusal.task(&task.id));
        }
        let directory = match (&retired, &last.base) {
            (Some(retired), Some(base)) => Some(self.made_again(call, retired, base)?),
            _ => row.and_then(|row| row.workstation.path).map(PathBuf::from),
        };
        let (Some(directory), Some(base)) = (directory, last.base) else {
            return Err(unexpected("a workstation or a commit vanished while it was looked at"));
        };
        let (assignee, workstation, constraints) = (last.assignee, last.workstation, last.constraints);
        Ok(Setting { assignee, workstation, directory, base, constraints })
    }

    /// A place that was made for one task is made again, as it was registered.
    fn made_again(
        &mut self,
        call: &Rerun<'_>,
        retired: &Workstation,
        base: &CommitId,
    ) -> Result<PathBuf, Refusal> {
        self.may_add_workstation(call.actor, &retired.name)?;
        let repo =
            self.place.repo.clone().ok_or_else(|| unexpected("a working tree without a repository"))?;
        let path = match &retired.path {
            Some(path) => PathBuf::from(path),
            None => worktree::beside(&repo, retired.name.as_str()),
        };
        let branch = match &retired.branch {
            Some(branch) => branch.clone(),
            None => format!("agent/{}", retired.name).parse().map_err(unexpected)?,
        };
        if !path.is_dir() {
            worktree::create(&repo, &path, branch.as_str(), base.as_str())?;
        }
        let wanted = WorkstationAdded {
            name: retired.name.clone(),
            kind: retired.kind,
            path: Some(path.display().to_string()),
            lifecycle: retired.lifecycle,
            branch: Some(branch),
            probes: retired.probes.clone(),
            role: retired.role.clone(),
            lane: retired.lane,
        };
        self.add_workstation(call.actor, &wanted)?;
        Ok(path)
    }

    fn commit_finding(&self, base: Option<&CommitId>) -> Result<Option<Finding>, Refusal> {
        let Some(base) = base else {
            let detail = "the commit at which it began is not on record: it was not done in a working tree";
            return Ok(Some(Finding::new(Code::UnknownName, detail).hint("ask for it anew: onus add TITLE")));
        };
        let repo = self.place.repo.as_ref();
        let repo = repo.ok_or_else(|| Refusal::invalid("this is no git repository").hint("cd into it"))?;
        let is_there = History::at(&repo.common_dir).resolve(base.as_str())?.is_some();
        Ok((!is_there).then(|| {
            Finding::new(Code::UnknownName, format!("the commit {base}, at which it began, is gone"))
                .hint("fetch it from a clone that still has it")
        }))
    }

    /// The task that is done again: a new one, or the one that an earlier call asked for and nobody has taken.
    fn again(&mut self, call: &Rerun<'_>, original: &Task) -> Result<Task, Refusal> {
        let request = step(call.request, "add")?;
        if let Some(added) = self.replayed(call.actor, &request)? {
            return added.map(|receipt| receipt.task);
        }
        let mut number = 1_u32;
        let origin = loop {
            let origin: OriginRef = format!("rerun:{}/{number}", original.id).parse().map_err(unexpected)?;
            match self.task_by_origin(&origin)? {
                None => break origin,
                Some(task) if matches!(task.state, State::Open) && task.epoch == 0 => return Ok(task),
                Some(_) => number += 1,
            }
        };
        let spec = Spec {
            title: title(original),
            origin: Some(origin),
            // It reproduces what is there: no other slice waits for it.
            merge_order: None,
            ..original.spec.clone()
        };
        let command = Command::Add {
            spec: Box::new(spec),
            depends_on: original.depends_on.clone(),
            archived: None,
            arrival: None,
        };
        let added =
            Envelope { project: Some(original.id.project.clone()), ..envelope(call, request, None, command) };
        let task = self.submit(&added, &Target::Named)?.task;
        if let Some(reason) = call.reason {
            let command = Command::Note { text: Text::new(reason.to_owned()) };
            let noted = envelope(call, step(call.request, "note")?, Some(&task.id), command);
            self.submit(&noted, &Target::Named)?;
        }
        Ok(task)
    }

    fn assign(&mut self, call: &Rerun<'_>, task: &Task, setting: &Setting) -> Result<Receipt, Refusal> {
        let command = Command::Claim {
            workstation: Some(setting.workstation.clone()),
            here: None,
            assignee: Some(setting.assignee.clone()),
            ttl: None,
            warrant: Warrant::Ordinary,
            constraints: setting.constraints.clone(),
        };
        let claim = envelope(call, step(call.request, "claim")?, Some(&task.id), command);
        let claim = Envelope { base: Some(setting.base.clone()), ..claim };
        self.probe_before(&claim)?;
        self.submit(&claim, &Target::Named)
    }

    pub fn task_by_origin(&mut self, origin: &OriginRef) -> Result<Option<Task>, Refusal> {
        if let Some(answer) = self.remote(|| calls::TaskByOrigin { origin: origin.clone() })? {
            return Ok(answer.map(Task::from));
        }
        let found = self.ask(|tx| match load::task_by_origin(tx, origin)? {
            Some(id) => load::task(tx, &id),
            None => Ok(None),
        })?;
        Ok(found.map(|stored| stored.task))
    }

    /// What a request was answered, if it was carried out before.
    pub(crate) fn replayed(
        &mut self,
        actor: Option<&Handle>,
        request: &RequestId,
    ) -> Result<Option<Result<Receipt, Refusal>>, Refusal> {
        if let Some(answer) = self.remote(|| calls::Replayed { request: request.clone() })? {
            return match answer {
                None => Ok(None),
                Some(Ok(sent)) => Receipt::try_from(sent).map(|receipt| Some(Ok(receipt))),
                Some(Err(refusal)) => Ok(Some(Err(refusal))),
            };
        }
        let found = self.ask(|tx| Ok((load::workspace(tx)?, load::replay(tx, request)?)))?;
        let (workspace, Some(earlier)) = found else { return Ok(None) };
        self.ask(|tx| Ok(replay::answer(tx, &workspace, actor, earlier.seq)))?.map(Some)
    }
}

/// Whether a retired workstation is one that was made for its task alone: whatever else is retired, a person has retired.
fn comes_back(workstation: &Workstation) -> bool {
    workstation.state == WorkstationState::Retired
        && workstation.lifecycle == Lifecycle::SingleTask
        && workstation.kind == WorkstationKind::Worktree
}

fn workstation_finding(name: &WorkstationName, row: Option<&WorkstationHolding>) -> Option<Finding> {
    let Some(WorkstationHolding { workstation, holds }) = row else {
        return Some(
            Finding::new(Code::WorkstationUnknown, format!("{name} is not registered any more"))
                .hint("onus workstation list"),
        );
    };
    if let Some((task, holder)) = holds {
        let detail = format!("{name} is not free: {holder} holds {task} there");
        return Some(Finding::new(Code::WorkstationBusy, detail).hint(format!("onus show {task}")));
    }
    let Workstation { state, path, .. } = workstation;
    let code = match state {
        WorkstationState::Quarantined => Code::WorkstationQuarantined,
        WorkstationState::Retired => Code::WorkstationNotReady,
        WorkstationState::Registered | WorkstationState::Ready => {
            let is_there = path.as_deref().is_some_and(|path| Path::new(path).is_dir());
            let gone = format!("the working tree of {name} is gone");
            return (!is_there).then(|| {
                Finding::new(Code::WorkstationNotReady, gone).hint(format!("onus workstation show {name}"))
            });
        }
    };
    let detail = format!("{name} is {}", state.name());
    Some(Finding::new(code, detail).hint(format!("onus workstation show {name}")))
}

fn envelope(call: &Rerun<'_>, request: RequestId, task: Option<&TaskId>, command: Command) -> Envelope {
    Envelope {
        request,
        actor: call.actor.cloned(),
        token: None,
        task: task.cloned(),
        project: None,
        base: None,
        command,
    }
}

fn title(original: &Task) -> String {
    let mut title = format!("Rerun of {}: {}", original.id, original.spec.title);
    while title.len() > TITLE_MAX {
        title.pop();
    }
    title
}
