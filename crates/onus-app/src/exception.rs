//! `exception`: a dependency that is not waited for, with its decision record (mission D1).

use crate::Onus;
use crate::answer_room::{AROUND, AnswerRoom, LIST_BYTES};
use crate::remote::calls;
use crate::show::unknown_task;
use crate::submit::{Receipt, Target};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::{Handle, RequestId, TaskId};
use onus_core::refusal::Refusal;
use onus_core::registry::known;
use onus_core::task::{Exception, Task};
use onus_host::decision_record::{self, DecisionRecord, Written};
use onus_store::load;
use onus_store::read::show;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One exception, asked for or approved.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExceptionView {
    pub task: TaskId,
    /// The dependency that is not waited for.
    pub on: TaskId,
    /// proposed or approved
    pub state: String,
    pub requested_by: Handle,
    pub reason: String,
    pub rollback: String,
    /// The decision record, relative to the repository's root.
    pub adr: Option<String>,
    pub approved_by: Option<Handle>,
}

impl ExceptionView {
    fn new(task: &TaskId, on: &TaskId, exception: &Exception) -> ExceptionView {
        ExceptionView {
            task: task.clone(),
            on: on.clone(),
            state: if exception.approved_by.is_some() { "approved" } else { "proposed" }.to_owned(),
            requested_by: exception.requested_by.clone(),
            reason: exception.reason.clone(),
            rollback: exception.rollback.clone(),
            adr: exception.adr.clone(),
            approved_by: exception.approved_by.clone(),
        }
    }

    pub(crate) fn of(task: &Task) -> Vec<ExceptionView> {
        task.exceptions.iter().map(|(on, exception)| ExceptionView::new(&task.id, on, exception)).collect()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExceptionsView {
    pub exceptions: Vec<ExceptionView>,
    /// There are more: ask for those of the tasks after this one.
    #[serde(default)]
    pub next: Option<TaskId>,
}

/// Which dependency of which task, and who asks.
#[derive(Debug)]
pub struct ExceptionAsked<'a> {
    pub request: &'a RequestId,
    pub actor: Option<&'a Handle>,
    pub task: &'a TaskId,
    pub on: &'a TaskId,
}

impl ExceptionAsked<'_> {
    fn envelope(&self, command: Command) -> Envelope {
        Envelope {
            request: self.request.clone(),
            actor: self.actor.cloned(),
            token: None,
            task: Some(self.task.clone()),
            project: None,
            base: None,
            command,
        }
    }
}

/// Why, how to go back, and where that is written down.
#[derive(Debug)]
pub struct Grounds<'a> {
    pub reason: Option<&'a str>,
    pub rollback: Option<&'a str>,
    pub adr: Option<&'a str>,
}

impl Onus {
    /// Asks that a dependency be not waited for, and writes the decision record.
    pub fn request_exception(
        &mut self,
        asked: &ExceptionAsked<'_>,
        grounds: &Grounds<'_>,
    ) -> Result<Receipt, Refusal> {
        let root = self.record_root();
        let adr = match &root {
            Some(root) => Some(decision_record::locate(root, &self.record_path(asked, grounds))?),
            None => grounds.adr.map(str::to_owned),
        };
        let command = Command::RequestException {
            on: asked.on.clone(),
            reason: grounds.reason.map(str::to_owned),
            rollback: grounds.rollback.map(str::to_owned),
            adr: adr.clone(),
        };
        let envelope = asked.envelope(command);
        let rehearsed = self.rehearse_one(&envelope)?;
        let written = match (&root, &adr, rehearsed.task.exceptions.get(asked.on)) {
            (Some(root), Some(adr), Some(exception)) if exception.approved_by.is_none() => {
                Some((root, adr, self.write_record(root, adr, asked, exception)?))
            }
            _ => None,
        };
        if let Some((_, adr, Written::Other)) = &written
            && grounds.adr.is_none()
        {
            return Err(Refusal::invalid(format!("{adr} is there already, with other words"))
                .task(asked.task)
                .hint("name another file: --adr PATH; one that is there is kept as it is"));
        }
        let receipt = self.submit(&envelope, &Target::Named);
        if let (Err(_), Some((root, adr, Written::Created))) = (&receipt, &written) {
            decision_record::withdraw(root, adr);
        }
        receipt
    }

    /// A person's word that the dependency is not waited for. Whether the decision record says so now comes with it;
    /// the approval stands without it.
    pub fn approve_exception(
        &mut self,
        asked: &ExceptionAsked<'_>,
    ) -> Result<(Receipt, Result<bool, Refusal>), Refusal> {
        let envelope = asked.envelope(Command::ApproveException { on: asked.on.clone() });
        let receipt = self.submit(&envelope, &Target::Named)?;
        let exception = receipt.task.exceptions.get(asked.on);
        let adr =
            exception.and_then(|exception| exception.adr.as_deref().zip(exception.approved_by.as_ref()));
        let noted = match (self.record_root(), adr) {
            (Some(root), Some((adr, by))) => {
                self.utc_date().and_then(|date| decision_record::approve(&root, adr, by, &date))
            }
            _ => Ok(false),
        };
        Ok((receipt, noted))
    }

    /// The exceptions of a task, or of all after one: as many as fit into one answer, in the order in which their tasks were
    /// asked for.
    pub fn exceptions(
        &mut self,
        only: Option<&TaskId>,
        after: Option<&TaskId>,
    ) -> Result<ExceptionsView, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::Exceptions { only: only.cloned(), after: after.cloned() })?
        {
            return Ok(answer);
        }
        if let Some(id) = only {
            let found = self.ask(|tx| load::task(tx, id))?.ok_or_else(|| unknown_task(id))?;
            return Ok(ExceptionsView { exceptions: ExceptionView::of(&found.task), next: None });
        }
        if let Some(id) = after
            && self.find_task(id)?.is_none()
        {
            return Err(unknown_task(id));
        }
        self.ask(|tx| {
            let mut room = AnswerRoom::new(LIST_BYTES);
            let (mut view, mut last) = (ExceptionsView { exceptions: Vec::new(), next: None }, None);
            show::exceptions(tx, after, &mut |task, exceptions| {
                let words = exceptions.values().map(|exception| exception.bytes() + AROUND).sum();
                if view.next.is_some() || !room.has(words) {
                    view.next = view.next.take().or_else(|| last.clone());
                    return Ok(());
                }
                let told = |(on, exception)| ExceptionView::new(&task, on, exception);
                view.exceptions.extend(exceptions.iter().map(told));
                last = Some(task);
                Ok(())
            })?;
            Ok(view)
        })
    }

    /// The main checkout, or outside git the directory of the settings. A bare repository has no tree to write into.
    fn record_root(&self) -> Option<PathBuf> {
        let is_bare = self.place.repo.as_ref().is_some_and(|repo| {
            repo.root.is_none() && repo.common_dir.file_name().is_none_or(|name| name != ".git")
        });
        let root = self.place.settings_file().parent().map(std::path::Path::to_owned);
        root.filter(|_| !is_bare)
    }

    fn record_path(&self, asked: &ExceptionAsked<'_>, grounds: &Grounds<'_>) -> String {
        let ExceptionAsked { task, on, .. } = asked;
        let usual = || {
            let name = format!("exception-{task}-on-{on}.md").to_ascii_lowercase();
            format!("{}/{name}", self.settings.exception.adr_dir)
        };
        grounds.adr.map_or_else(usual, str::to_owned)
    }

    fn write_record(
        &mut self,
        root: &std::path::Path,
        adr: &str,
        asked: &ExceptionAsked<'_>,
        exception: &Exception,
    ) -> Result<Written, Refusal> {
        let caller = self.caller(asked.actor)?;
        let record = DecisionRecord {
            task: asked.task,
            on: asked.on,
            date: &self.utc_date()?,
            requested_by: &known(&caller)?.handle,
            reason: &exception.reason,
            rollback: &exception.rollback,
        };
        decision_record::write(root, adr, &record.text())
            .map_err(|refusal| Refusal { code: Code::InvalidInput, ..refusal })
    }

    fn utc_date(&mut self) -> Result<String, Refusal> {
        let now = self.now()?.to_string();
        Ok(now.chars().take("2026-01-01".len()).collect())
    }
}
