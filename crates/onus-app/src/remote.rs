//! A workspace behind a server: the calls of this crate that can travel, and how they do.
//!
//! A travelling call asks [`Onus::remote_call`] first; where the store is elsewhere, the server answers it with [`answer`], under
//! the identity that it knows the caller by. Whatever needs git or the file system stays where the working tree is and
//! is made of travelling calls. A call that does not travel is refused by the store itself.

use crate::Onus;
use crate::export::ExportError;
use crate::idempotent_admin::Asker;
use crate::import::Import;
use crate::ledger::ExportedView;
use crate::progress::Silent;
use crate::submit::{Receipt, ReceiptKind, Target, base_of, unexpected};
use onus_core::command::{Command, Envelope};
use onus_core::id::{CommitId, Handle, ProjectKey, RequestId, TaskId, TaskType, WorkstationName, shown};
use onus_core::lease::Token;
use onus_core::probe::ProbeResult;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_core::text::Text;
use onus_core::token::{Principal, administers, judges};
use onus_store::port::Store;
use onus_store::read::queue::Which;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

impl Onus {
    /// Asks whoever has the store; none where that is this very process.
    pub(crate) fn remote_call<T: DeserializeOwned>(
        &mut self,
        name: &str,
        arguments: &impl Serialize,
    ) -> Result<Option<T>, Refusal> {
        self.remote_call_under(None, name, || serde_json::to_string(arguments).map_err(unexpected))
    }

    /// The same under a request id: it may be asked again when nobody knows whether it was heard.
    pub(crate) fn remote_call_under<T: DeserializeOwned>(
        &mut self,
        request: Option<&RequestId>,
        name: &str,
        arguments: impl FnOnce() -> Result<String, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        let Some(far) = self.store.remote() else {
            return Ok(None);
        };
        let named = |refusal: Refusal| Refusal {
            request_id: refusal.request_id.or_else(|| request.map(ToString::to_string)),
            ..refusal
        };
        let answer = far.call(name, arguments()?, request).map_err(named)?;
        serde_json::from_str(&answer).map(Some).map_err(|error| {
            unexpected(error).hint("the server is of another version: update onus on both sides")
        })
    }
}

impl Onus {
    /// A grant on its way to a server, with the commit that the working tree stands at: the server does not see it.
    pub(crate) fn seen(&mut self, envelope: &Envelope) -> Result<Envelope, Refusal> {
        let (Command::Claim { workstation, here, .. } | Command::Takeover { workstation, here, .. }) =
            &envelope.command
        else {
            return Ok(envelope.clone());
        };
        let place = workstation.as_ref().or(here.as_ref()).filter(|_| self.place.repo.is_some());
        let directory = place.map(|name| self.directory_of(name)).transpose()?.flatten();
        let base = directory.and_then(|directory| base_of(&directory));
        Ok(Envelope { base, ..envelope.clone() })
    }
}

/// A command on its way. Who asks is not said: the server knows that from the caller's credentials.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    request: RequestId,
    token: Option<String>,
    task: Option<TaskId>,
    project: Option<ProjectKey>,
    #[serde(default)]
    base: Option<CommitId>,
    command: Command,
    /// The command names its texts by their digests; here they are, in its order.
    texts: Vec<Option<String>>,
}

impl Sent {
    pub(crate) fn new(envelope: &Envelope) -> Sent {
        let mut command = envelope.command.clone();
        let texts = command.texts_mut().into_iter().map(|text| text.content().map(str::to_owned)).collect();
        Sent {
            request: envelope.request.clone(),
            token: envelope.token.as_ref().map(ToString::to_string),
            task: envelope.task.clone(),
            project: envelope.project.clone(),
            base: envelope.base.clone(),
            command,
            texts,
        }
    }

    fn open(self, actor: Option<&Handle>) -> Result<Envelope, Refusal> {
        let mut command = self.command;
        let mut slots = command.texts_mut();
        if slots.len() != self.texts.len() {
            return Err(Refusal::invalid("a command arrived without its texts"));
        }
        for (slot, text) in slots.iter_mut().zip(self.texts) {
            **slot = text.map_or_else(|| (**slot).clone(), Text::new);
        }
        let token = self.token.map(|text| text.parse::<Token>()).transpose().map_err(Refusal::invalid)?;
        Ok(Envelope {
            request: self.request,
            actor: actor.cloned(),
            token,
            task: self.task,
            project: self.project,
            base: self.base,
            command,
        })
    }
}

/// A task on its way: its lease is sealed, and its body travels beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentTask {
    task: Task,
    body: Option<String>,
}

impl From<Task> for SentTask {
    fn from(task: Task) -> SentTask {
        let body = task.spec.body.as_ref().and_then(|body| body.content()).map(str::to_owned);
        SentTask { task, body }
    }
}

impl From<SentTask> for Task {
    fn from(SentTask { mut task, body }: SentTask) -> Task {
        if let Some(body) = body {
            task.spec.body = Some(Text::new(body));
        }
        task
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentReceipt {
    kind: ReceiptKind,
    task: SentTask,
    token: Option<String>,
}

impl From<Receipt> for SentReceipt {
    fn from(receipt: Receipt) -> SentReceipt {
        SentReceipt {
            kind: receipt.kind,
            task: receipt.task.into(),
            token: receipt.token.map(|token| token.to_string()),
        }
    }
}

impl TryFrom<SentReceipt> for Receipt {
    type Error = Refusal;

    fn try_from(sent: SentReceipt) -> Result<Receipt, Refusal> {
        let token = sent.token.map(|text| text.parse()).transpose().map_err(unexpected)?;
        Ok(Receipt { kind: sent.kind, task: sent.task.into(), token })
    }
}

/// A command that arrived, with the task it is about.
pub fn arrived(arguments: &str, actor: Option<&Handle>) -> Result<(Envelope, Target), Refusal> {
    let (sent, target): (Sent, Target) = read(arguments)?;
    Ok((sent.open(actor)?, target))
}

/// The answer to a command that arrived.
pub fn receipt(receipt: Receipt) -> Result<String, Refusal> {
    write(&SentReceipt::from(receipt))
}

/// Whether a call changes anything: then it has to wait for its turn among the writers. `submit` is not among them:
/// a server puts many of those into one transaction.
pub fn is_write(name: &str) -> bool {
    WRITES.contains(&name)
}

/// Whether a token may carry a call. What changes the workspace itself, or tells how its store is kept, takes a person's,
/// but for two things: a worker may report what its own workstation's probes say, and a verifier may close a milestone.
pub fn permits(principal: &Principal, name: &str) -> Result<(), Refusal> {
    match name {
        "record_probes" | "rehearse_one" => Ok(()),
        "close_milestone" => judges(principal),
        "doctor" => administers(principal),
        name if is_write(name) => administers(principal),
        _ => Ok(()),
    }
}

const WRITES: &[&str] = &[
    "join",
    "add_worker",
    "pause_worker",
    "resume_worker",
    "add_workstation",
    "quarantine",
    "restore",
    "retire",
    "record_probes",
    "approve_timesheet",
    "add_milestone",
    "close_milestone",
    "checkpoint",
    "raise_generation",
    "issue_token",
    "revoke_token",
    "rehearse_one",
    "plan",
    "import_jsonl",
];

/// How long a call may be: a file of tasks is longer than a command. None: as long as any request.
pub fn size_limit(name: &str) -> Option<usize> {
    (name == "import_jsonl").then_some(IMPORT_MAX)
}

const IMPORT_MAX: usize = 128 * 1024 * 1024;

/// Answers a call that arrived from somebody whom the server knows.
pub fn answer(onus: &mut Onus, asker: Asker<'_>, name: &str, arguments: &str) -> Result<String, Refusal> {
    let actor = asker.actor;
    match name {
        "list" => reply(arguments, |(which, filter, cursor, limit): (_, _, Option<String>, _)| {
            onus.list(which, &filter, cursor.as_deref(), limit)
        }),
        "ready" => reply(arguments, |(filter, limit)| onus.ready(&filter, limit)),
        "ready_for" => reply(arguments, |(filter, limit)| onus.ready_for(actor, &filter, limit)),
        "held" => reply(arguments, |()| onus.held()),
        "now" => reply(arguments, |()| onus.now()),
        "status" => reply(arguments, |()| onus.status()),
        "show" => reply(arguments, |(task, part)| onus.show_part(&task, part)),
        "log" => reply(arguments, |(task, after, limit): (Option<TaskId>, _, _)| {
            onus.log(task.as_ref(), after, limit)
        }),
        "find_task" => {
            reply(arguments, |(task,)| onus.find_task(&task).map(|found| found.map(SentTask::from)))
        }
        "task_by_origin" => {
            reply(arguments, |(origin,)| onus.task_by_origin(&origin).map(|found| found.map(SentTask::from)))
        }
        "replayed" => reply(arguments, |(request,)| {
            onus.replayed(&request).map(|found| found.map(|earlier| earlier.map(SentReceipt::from)))
        }),
        "assignments" => reply(arguments, |(task,)| onus.assignments(&task)),
        "check_runs" => reply(arguments, |(task, limit)| onus.check_runs(&task, limit)),
        "last_handoff" => reply(arguments, |(task,)| onus.last_handoff(&task)),
        "surroundings" => reply(arguments, |(task, place)| onus.surroundings(&task, &place)),
        "merged_as" => reply(arguments, |(task, commit): (_, String)| onus.merged_as(&task, &commit)),
        "relations" => reply(arguments, |(task, others)| onus.relations(&task, &others)),
        "fleet" => reply(arguments, |()| onus.fleet()),
        "places" => reply(arguments, |(sent,): (Sent,)| onus.places(&sent.open(actor)?)),
        "rehearse_one" => {
            reply(arguments, |(sent,): (Sent,)| onus.rehearse_one(&sent.open(actor)?).map(SentReceipt::from))
        }
        "exceptions" => reply(arguments, |(only,): (Option<TaskId>,)| onus.exceptions(only.as_ref())),
        "prime" => reply(arguments, |(only,): (Option<TaskId>,)| onus.prime(actor, only.as_ref())),
        "route" => reply(arguments, |(only,): (Option<TaskType>,)| onus.route(only.as_ref())),
        "explain" => reply(arguments, |(subject, here): (_, Option<WorkstationName>)| {
            onus.explain(&subject, actor, here.as_ref())
        }),
        "validate" => reply(arguments, |()| onus.validate(&mut Silent)),
        "verify" => reply(arguments, |()| onus.verify(&mut Silent)),
        "doctor" => reply(arguments, |()| onus.doctor(&mut Silent)),
        "checkpoint" => reply(arguments, |()| onus.checkpoint(actor)),
        "raise_generation" => {
            reply(arguments, |(reason,): (Option<String>,)| onus.raise_generation(asker, reason.as_deref()))
        }
        "export_ledger" => reply(arguments, |()| exported_ledger(onus)),
        "queue_about" => reply(arguments, |(tasks,)| onus.queue_about(tasks)),
        "plan" => reply(arguments, |(told, limit): (Vec<_>, _)| onus.plan(actor, &told, limit)),
        "export_tasks" => reply(arguments, |(which,)| exported(onus, which)),
        "import_jsonl" => {
            reply(arguments, |(request, project, input, run): (_, Option<ProjectKey>, String, _)| {
                let import =
                    Import { request: &request, actor, project: project.as_ref(), input: &input, run };
                onus.import_jsonl(&import, &mut Silent)
            })
        }
        _ => crew(onus, asker, name, arguments),
    }
}

fn exported(onus: &mut Onus, which: Which) -> Result<(u64, String), Refusal> {
    let mut text = Vec::new();
    let lines = onus.export_tasks(which, &mut text, &mut Silent).map_err(|error| match error {
        ExportError::Refused(refusal) => refusal,
        ExportError::Writing(error) => unexpected(error),
    })?;
    Ok((lines, String::from_utf8(text).map_err(unexpected)?))
}

fn exported_ledger(onus: &mut Onus) -> Result<(ExportedView, String), Refusal> {
    let mut text = Vec::new();
    let view = onus.export_ledger(&mut text, &mut Silent)?;
    Ok((view, String::from_utf8(text).map_err(unexpected)?))
}

/// Who there is, where they work, and how long.
fn crew(onus: &mut Onus, asker: Asker<'_>, name: &str, arguments: &str) -> Result<String, Refusal> {
    let actor = asker.actor;
    match name {
        "caller" => reply(arguments, |()| onus.caller(actor)),
        "workers" => reply(arguments, |(only,): (Option<Handle>,)| onus.workers(only.as_ref())),
        "join" => reply(arguments, |(founding,)| onus.join(asker, &founding)),
        "add_worker" => reply(arguments, |(wanted,)| onus.add_worker(asker, &wanted)),
        "pause_worker" => reply(arguments, |(handle, reason): (_, Option<String>)| {
            onus.pause_worker(asker, &handle, reason.as_deref())
        }),
        "resume_worker" => reply(arguments, |(handle,)| onus.resume_worker(asker, &handle)),
        "holdings" => reply(arguments, |(worker,)| onus.holdings(&worker)),
        "workstations" => {
            reply(arguments, |(only,): (Option<WorkstationName>,)| onus.workstations(only.as_ref()))
        }
        "workstation" => reply(arguments, |(place,)| onus.workstation(&place)),
        "find_workstation" => reply(arguments, |(place,)| onus.find_workstation(&place)),
        "workstation_rows" => reply(arguments, |()| onus.workstation_rows()),
        "directory_of" => reply(arguments, |(place,)| onus.directory_of(&place)),
        "holding_directory" => reply(arguments, |(task, worker)| onus.holding_directory(&task, &worker)),
        "add_workstation" => reply(arguments, |(wanted,)| onus.add_workstation(asker, &wanted)),
        "may_add_workstation" => reply(arguments, |(place,)| onus.may_add_workstation(actor, &place)),
        "quarantine" => reply(arguments, |(place, reason): (_, Option<String>)| {
            onus.quarantine(asker, &place, reason.as_deref())
        }),
        "restore" => reply(arguments, |(place, reason): (_, Option<String>)| {
            onus.restore(asker, &place, reason.as_deref())
        }),
        "retire" => reply(arguments, |(place, reason, removed): (_, Option<String>, _)| {
            onus.retire(asker, &place, reason.as_deref(), removed)
        }),
        "may_remove" => reply(arguments, |(place,)| onus.may_remove(&place)),
        "may_retire" => reply(arguments, |(place,)| onus.may_retire(actor, &place)),
        "record_probes" => reply(arguments, |(place, results): (_, Vec<ProbeResult>)| {
            onus.record_probes(actor, &place, &results)
        }),
        "sessions" => reply(arguments, |(task, worker, limit): (Option<TaskId>, Option<Handle>, _)| {
            onus.sessions(task.as_ref(), worker.as_ref(), limit)
        }),
        "session" => reply(arguments, |(id,)| onus.session(id)),
        "task_of_session" => reply(arguments, |(id,)| onus.task_of_session(id)),
        "day" => reply(arguments, |(worker, day)| onus.day(&worker, day)),
        "timesheet" => reply(arguments, |(ask,)| onus.timesheet(&ask)),
        "calendar" => reply(arguments, |(ask,)| onus.calendar(&ask)),
        "zone_of" => reply(arguments, |(worker,): (Option<Handle>,)| onus.zone_of(worker.as_ref())),
        "today" => reply(arguments, |(worker,): (Option<Handle>,)| onus.today(worker.as_ref())),
        "approve_timesheet" => {
            reply(arguments, |(worker, from, to)| onus.approve_timesheet(asker, &worker, (from, to)))
        }
        "milestones" => reply(arguments, |()| onus.milestones()),
        "milestone" => reply(arguments, |(name,)| onus.milestone(&name)),
        "add_milestone" => reply(arguments, |(wanted,)| onus.add_milestone(asker, &wanted)),
        "close_milestone" => reply(arguments, |(name,)| onus.close_milestone(asker, &name)),
        "tokens" => reply(arguments, |(only,): (Option<Handle>,)| onus.tokens(only.as_ref())),
        "issue_token" => reply(arguments, |(order,)| onus.issue_token(asker, &order)),
        "revoke_token" => reply(arguments, |(id, reason): (_, Option<String>)| {
            onus.revoke_token(asker, &id, reason.as_deref())
        }),
        _ => reports(onus, actor, name, arguments),
    }
}

/// The record and the queue, told for people.
fn reports(onus: &mut Onus, actor: Option<&Handle>, name: &str, arguments: &str) -> Result<String, Refusal> {
    match name {
        "report_now" => reply(arguments, |(when,)| onus.report_now(actor, &when)),
        "report_sprint" => {
            reply(arguments, |(sprint,): (Option<String>,)| onus.report_sprint(actor, sprint.as_deref()))
        }
        "report_incident" => reply(arguments, |(task,)| onus.report_incident(&task)),
        "report_audit" => {
            reply(arguments, |(when, only): (_, Vec<_>)| onus.report_audit(actor, &when, &only))
        }
        "report_anomalies" => reply(arguments, |(when,)| onus.report_anomalies(actor, &when)),
        "approvals_of" => reply(arguments, |(worker, from, to)| onus.approvals_of(&worker, from, to)),
        "verify_range" => reply(arguments, |(after, limit)| onus.verify_range(after, limit)),
        "search_ledger" => reply(arguments, |(ask,)| onus.search_ledger(actor, &ask)),
        _ => {
            Err(Refusal::invalid(format!("this server knows no call {}", shown(name)))
                .hint("update the server"))
        }
    }
}

fn reply<A: DeserializeOwned, T: Serialize>(
    arguments: &str,
    answer: impl FnOnce(A) -> Result<T, Refusal>,
) -> Result<String, Refusal> {
    write(&answer(read(arguments)?)?)
}

fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, Refusal> {
    serde_json::from_str(arguments)
        .map_err(|error| Refusal::invalid(format!("the call makes no sense: {error}")))
}

fn write(answer: &impl Serialize) -> Result<String, Refusal> {
    serde_json::to_string(answer).map_err(unexpected)
}
