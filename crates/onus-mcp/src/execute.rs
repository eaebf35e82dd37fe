//! One call, carried out: its words become a command, and what came of it a short answer.

use crate::backend::{Backend, Who};
use crate::summary::{self, Card};
use crate::tool::{self, Call};
use onus_app::queue::LIMIT_MAX;
use onus_app::show::StoryPart;
use onus_app::submit::{Receipt, Target};
use onus_app::{Onus, Sight};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant, WhileBlocked};
use onus_core::evidence::{Proof, RootCause};
use onus_core::handoff::{Standing, Words};
use onus_core::id::{RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::{Blocker, Check, CheckKind, CheckState, Priority, Risk, Spec, StateName};
use onus_core::text::Text;
use onus_core::time::Millis;
use onus_store::read::queue::{Filter, Which};
use serde_json::{Value, json};
use std::str::FromStr;

pub(crate) fn act<D: Backend>(desk: &D, who: &Who, call: Call) -> Result<Value, Refusal> {
    let act = Act { desk, who };
    match call {
        Call::Ready(call) => act.ready(call),
        Call::Claim(call) => act.claim(call),
        Call::Show(call) => act.show(&call),
        Call::Note(call) => act.note(call),
        Call::Check(call) => act.check(&call),
        Call::Handoff(call) => act.handoff(call),
        Call::Block(call) => act.block(call),
        Call::Complete(call) => act.complete(call),
        Call::Release(call) => act.release(call),
        Call::Ask(call) => act.ask(call),
        Call::Renew(call) => act.renew(call),
        Call::Unblock(call) => {
            let holder = Holder { lease: call.lease, request: None };
            act.change(&task(&call.task)?, holder, Command::Unblock)
        }
        Call::Takeover(call) => act.takeover(call),
        Call::List(call) => act.list(call),
        Call::Stale(_) => act.stale(),
    }
}

/// How a holder proves itself, and under which name the call may be repeated.
struct Holder {
    lease: Option<String>,
    request: Option<String>,
}

struct Act<'a, D> {
    desk: &'a D,
    who: &'a Who,
}

impl<D: Backend> Act<'_, D> {
    fn ready(&self, call: tool::Ready) -> Result<Value, Refusal> {
        let (filter, worker) = (filter(call.r#type, call.role)?, self.who.worker.clone());
        let view = self.desk.ask(self.who, move |onus| {
            let limit = limit(onus, call.limit);
            onus.ready_for(worker.as_ref(), &filter, limit)
        })?;
        Ok(summary::ready(&view))
    }

    fn list(&self, call: tool::List) -> Result<Value, Refusal> {
        let assignee = parsed("assignee", call.assignee.as_deref())?;
        let filter = Filter { assignee, ..filter(call.r#type, call.role)? };
        let which = match call.state.as_deref() {
            None => Which::Active,
            Some("all") => Which::All,
            Some(word) => Which::Only(
                StateName::parse(word)
                    .ok_or_else(|| Refusal::invalid(format!("state: no such one: {word}")))?,
            ),
        };
        let view = self.desk.ask(self.who, move |onus| {
            let limit = limit(onus, call.limit);
            onus.list(which, &filter, call.cursor.as_deref(), limit)
        })?;
        let tasks: Vec<Card<'_>> = view.tasks.iter().map(Card::from).collect();
        Ok(json!({ "tasks": tasks, "next": view.next }))
    }

    fn stale(&self) -> Result<Value, Refusal> {
        let view = self.desk.ask(self.who, |onus| onus.stale())?;
        Ok(json!({ "stale": view.stale, "untrusted": true }))
    }

    fn show(&self, call: &tool::Show) -> Result<Value, Refusal> {
        let (id, part) = (task(&call.task)?, StoryPart { before: call.before, limit: None });
        let view = self.desk.ask(self.who, move |onus| onus.show_part(&id, part))?;
        Ok(summary::story(&view))
    }

    fn claim(&self, call: tool::Claim) -> Result<Value, Refusal> {
        let (named, target) = match call.task.as_deref() {
            Some(text) => (Some(task(text)?), Target::Named),
            None => (None, Target::Next(filter(call.r#type, call.role)?)),
        };
        let workstation = parsed("workstation", call.workstation.as_deref())?;
        let command = Command::Claim {
            here: if workstation.is_none() { self.here()? } else { None },
            workstation,
            assignee: None,
            ttl: span(call.ttl.as_deref())?,
            warrant: Warrant::Ordinary,
        };
        let receipt = self.grant(named, call.request_id, command, target)?;
        self.granted(&receipt)
    }

    fn takeover(&self, call: tool::Takeover) -> Result<Value, Refusal> {
        let workstation = parsed("workstation", call.workstation.as_deref())?;
        let command = Command::Takeover {
            here: if workstation.is_none() { self.here()? } else { None },
            workstation,
            ttl: None,
            reason: call.reason,
            warrant: Warrant::Ordinary,
        };
        let receipt = self.grant(Some(task(&call.task)?), call.request_id, command, Target::Named)?;
        match self.desk.site() {
            Some(site) => site.secure(&receipt)?,
            None => {
                let lost = receipt.clone();
                self.desk.ask(self.who, move |onus| match onus.evicted(&lost)? {
                    Some(evicted) => onus.bar(&evicted),
                    None => Ok(()),
                })?;
            }
        }
        self.granted(&receipt)
    }

    /// A grant: at a machine's own store, after its workstations were probed.
    fn grant(
        &self,
        named: Option<TaskId>,
        request: Option<String>,
        command: Command,
        target: Target,
    ) -> Result<Receipt, Refusal> {
        let envelope = self.envelope(named, None, request, command)?;
        if self.desk.site().is_some() {
            let probed = envelope.clone();
            self.desk.ask(self.who, move |onus| onus.probe_before(&probed))?;
        }
        self.desk.submit(self.who, envelope, target)
    }

    fn granted(&self, receipt: &Receipt) -> Result<Value, Refusal> {
        let warning = self.desk.site().and_then(|site| site.keep(receipt));
        let held = receipt.task.assignment().map(|held| held.workstation.clone());
        let directory = match held {
            Some(name) if self.desk.site().is_some() => {
                self.desk.ask(self.who, move |onus| onus.directory_of(&name))?
            }
            _ => None,
        };
        Ok(summary::grant(receipt, directory.as_deref(), warning))
    }

    fn note(&self, call: tool::Note) -> Result<Value, Refusal> {
        let holder = Holder { lease: call.lease, request: call.request_id };
        self.change(&task(&call.task)?, holder, Command::Note { text: text(&call.text) })
    }

    fn renew(&self, call: tool::Renew) -> Result<Value, Refusal> {
        let holder = Holder { lease: call.lease, request: None };
        self.change(
            &task(&call.task)?,
            holder,
            Command::Renew { ttl: span(call.ttl.as_deref())?, process: None },
        )
    }

    /// Runs the checks where the working tree is. Behind a network it tells what was run, and where to run the rest.
    fn check(&self, call: &tool::Check) -> Result<Value, Refusal> {
        let id = task(&call.task)?;
        let failed = match self.desk.site() {
            Some(site) if !call.list => site.check(&id, self.lease(&id, call.lease.as_deref())?)?,
            Some(_) => None,
            None if call.list => None,
            None => Some(
                Refusal::new(
                    Code::ChecksMissing,
                    "a server runs no checks: they run where the working tree is",
                )
                .hint(format!("run `onus check {id}` in the workstation, then call check with list")),
            ),
        };
        if let Some(refusal) = failed {
            return Err(refusal.task(&id));
        }
        let view = self.desk.ask(self.who, move |onus| onus.checks(&id))?;
        Ok(summary::checks(&view))
    }

    fn handoff(&self, call: tool::Handoff) -> Result<Value, Refusal> {
        let id = task(&call.task)?;
        let words = words(call.summary, call.risks, call.next)?;
        let document = self.compose(&id, Standing::InProgress, None, &words)?;
        // Where nobody holds the task there is nothing to compose, and the rules say why it is refused.
        let document = document.unwrap_or_else(|| Text::new(String::new()));
        let holder = Holder { lease: call.lease, request: call.request_id };
        self.change(&id, holder, Command::Handoff { note: words.said(), document })
    }

    fn block(&self, call: tool::Block) -> Result<Value, Refusal> {
        let id = task(&call.task)?;
        let on: Blocker = required("on", &call.on)?;
        let words = words(call.summary, Vec::new(), None)?;
        let command = Command::Block {
            lease: if call.release_lease { WhileBlocked::ReleaseLease } else { WhileBlocked::KeepLease },
            note: words.said(),
            handoff: self.compose(&id, Standing::Blocked, Some(&on), &words)?,
            on,
        };
        self.change(&id, Holder { lease: call.lease, request: call.request_id }, command)
    }

    fn release(&self, call: tool::Release) -> Result<Value, Refusal> {
        let id = task(&call.task)?;
        let words = words(call.summary, call.risks, call.next)?;
        let command = Command::Release {
            note: words.said(),
            handoff: self.compose(&id, Standing::Released, None, &words)?,
            warrant: Warrant::Ordinary,
        };
        self.change(&id, Holder { lease: call.lease, request: call.request_id }, command)
    }

    fn complete(&self, call: tool::Complete) -> Result<Value, Refusal> {
        let id = task(&call.task)?;
        let root_cause = match (call.root_cause, call.cause_owner) {
            (Some(statement), Some(owner)) => Some(RootCause { statement, owner }),
            (None, None) => None,
            _ => return Err(Refusal::invalid("root_cause and cause_owner go together")),
        };
        let commit = parsed("commit", call.commit.as_deref())?;
        let about = id.clone();
        let proof: Proof = self.desk.ask(self.who, move |onus| match onus.sight {
            Sight::Workstations => onus.proof(&about),
            Sight::Store => onus.stated_proof(&about, commit),
        })?;
        let command = Command::Complete {
            resolution: call.resolution.as_deref().map(text),
            root_cause,
            warrant: Warrant::Ordinary,
            proof,
        };
        self.change(&id, Holder { lease: call.lease, request: call.request_id }, command)
    }

    fn ask(&self, call: tool::Ask) -> Result<Value, Refusal> {
        let request = call.request_id.clone();
        let depends_on = call.depends_on.iter().map(|text| task(text)).collect::<Result<_, _>>()?;
        let command = Command::Add { spec: Box::new(spec(call)?), depends_on, archived: None };
        let receipt =
            self.desk.submit(self.who, self.envelope(None, None, request, command)?, Target::Named)?;
        Ok(summary::asked(&receipt))
    }

    /// A change by the holder, or a comment by somebody else.
    fn change(&self, id: &TaskId, holder: Holder, command: Command) -> Result<Value, Refusal> {
        let lease = self.lease(id, holder.lease.as_deref())?;
        let envelope = self.envelope(Some(id.clone()), lease, holder.request, command)?;
        let receipt = self.desk.submit(self.who, envelope, Target::Named)?;
        if let Some(site) = self.desk.site().filter(|_| receipt.task.assignment().is_none()) {
            site.forget(id);
        }
        Ok(summary::changed(&receipt))
    }

    fn compose(
        &self,
        id: &TaskId,
        standing: Standing,
        on: Option<&Blocker>,
        words: &Words,
    ) -> Result<Option<Text>, Refusal> {
        let (id, on, words) = (id.clone(), on.cloned(), words.clone());
        self.desk.ask(self.who, move |onus| onus.compose_handoff(&id, standing, on.as_ref(), &words))
    }

    /// The workstation that the caller stands in.
    fn here(&self) -> Result<Option<onus_core::id::WorkstationName>, Refusal> {
        self.desk.ask(self.who, |onus| match onus.sight {
            Sight::Workstations => {
                let cwd = onus.place.cwd.clone();
                Ok(onus.workstation_at(&cwd)?.map(|(name, _)| name))
            }
            Sight::Store => Ok(None),
        })
    }

    /// The lease token that was shown, else the one that a claim left in the workstation.
    fn lease(&self, id: &TaskId, given: Option<&str>) -> Result<Option<Token>, Refusal> {
        match (parsed("lease", given)?, self.desk.site()) {
            (None, Some(site)) => site.lease(id),
            (token, _) => Ok(token),
        }
    }

    fn envelope(
        &self,
        task: Option<TaskId>,
        token: Option<Token>,
        request: Option<String>,
        command: Command,
    ) -> Result<Envelope, Refusal> {
        let request = match request {
            Some(text) => required("request_id", &text)?,
            None => fresh()?,
        };
        let actor = self.who.worker.clone();
        let envelope = Envelope { request, actor, token, task, project: None, base: None, command };
        match &self.who.shown {
            Some(shown) => shown.principal.carry(envelope),
            None => Ok(envelope),
        }
    }
}

fn fresh() -> Result<RequestId, Refusal> {
    let mut random = [0; 16];
    let internal = |error: String| Refusal::new(Code::Internal, error);
    getrandom::fill(&mut random).map_err(|error| internal(error.to_string()))?;
    uuid::Builder::from_random_bytes(random).into_uuid().to_string().parse().map_err(internal)
}

fn required<T: FromStr<Err = String>>(what: &str, text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|why| Refusal::invalid(format!("{what}: {why}")))
}

fn parsed<T: FromStr<Err = String>>(what: &str, text: Option<&str>) -> Result<Option<T>, Refusal> {
    text.map(|text| required(what, text)).transpose()
}

fn task(text: &str) -> Result<TaskId, Refusal> {
    required("task", text)
}

fn span(text: Option<&str>) -> Result<Option<Millis>, Refusal> {
    text.map(Millis::parse).transpose().map_err(|why| Refusal::invalid(format!("ttl: {why}")))
}

fn text(content: &str) -> Text {
    Text::new(content.trim_end().to_owned())
}

fn words(summary: Option<String>, risks: Vec<String>, next_slice: Option<String>) -> Result<Words, Refusal> {
    Words { summary, risks, next_slice }.checked().map_err(Refusal::invalid)
}

fn filter(task_type: Option<String>, role: Option<String>) -> Result<Filter, Refusal> {
    let (task_type, role) = (parsed("type", task_type.as_deref())?, parsed("role", role.as_deref())?);
    Ok(Filter { task_type, role, ..Filter::default() })
}

/// A model's context is small: what the settings say is for people's terminals.
fn limit(onus: &Onus, asked: Option<u32>) -> i64 {
    let limit = asked.unwrap_or_else(|| onus.settings.queue.limit.min(10));
    i64::from(limit).clamp(1, LIMIT_MAX)
}

fn spec(call: tool::Ask) -> Result<Spec, Refusal> {
    let check = |command: &String| Check {
        command: command.trim().to_owned(),
        // The rules lower it to a proposal unless a person asks.
        state: CheckState::Approved,
        kind: CheckKind::default(),
    };
    Ok(Spec {
        title: call.title.trim().to_owned(),
        body: call.body.as_deref().map(text),
        task_type: parsed("type", call.r#type.as_deref())?,
        kind: call.kind.unwrap_or_else(|| "feature".to_owned()),
        priority: parsed::<Priority>("priority", call.priority.as_deref())?.unwrap_or_default(),
        risk: Risk::default(),
        role: parsed("role", call.role.as_deref())?,
        lane: None,
        sprint: None,
        tags: Vec::new(),
        scope: call.scope,
        parent: parsed("parent", call.parent.as_deref())?,
        merge_order: None,
        origin: parsed("origin", call.origin.as_deref())?,
        checks: call.checks.iter().map(check).collect(),
    })
}
