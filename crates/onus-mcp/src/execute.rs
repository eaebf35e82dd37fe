//! One call, carried out: its words become a command, and what came of it a short answer.

use crate::arguments::{AboutTask, Asking, Claiming};
use crate::backend::{Backend, Completing, Who};
use crate::summary::{self, Card};
use crate::tool::{self, Call};
use onus_app::inbox::MessagesView;
use onus_app::input::{self, Order, VerbInput};
use onus_app::landing::LandedAnswer;
use onus_app::queue::LIMIT_MAX;
use onus_app::show::StoryPart;
use onus_app::submit::{Receipt, Target};
use onus_app::{Onus, Sight};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::{RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::StateName;
use onus_core::text::Text;
use onus_store::read::queue::{Filter, Which};
use serde_json::{Value, json};
use std::str::FromStr;

pub(crate) fn act<D: Backend>(desk: &D, who: &Who, call: Call) -> Result<Value, Refusal> {
    let act = Execution { desk, who };
    act.carried_out(call).map(|answer| act.with_messages(answer))
}

impl<D: Backend> Execution<'_, D> {
    fn carried_out(&self, call: Call) -> Result<Value, Refusal> {
        let act = self;
        match call {
            Call::Ready(call) => act.ready(call),
            Call::Claim(call) => act.claim(call),
            Call::Show(call) => act.show(call),
            Call::Note(call) => act.change(call),
            Call::Check(call) => act.check(call),
            Call::Handoff(call) => act.change(call),
            Call::Block(call) => act.change(call),
            Call::Complete(call) => act.complete(call),
            Call::Release(call) => act.change(call),
            Call::Ask(call) => act.ask(call),
            Call::Renew(call) => act.change(call),
            Call::Unblock(call) => act.change(call),
            Call::Edit(call) => act.change(call),
            Call::Takeover(call) => act.takeover(call),
            Call::List(call) => act.list(call),
            Call::Stale(_) => act.stale(),
            Call::Say(call) => act.change(call),
            Call::Review(call) => act.change(call),
            Call::Tick(call) => act.change(call),
            Call::Inbox(_) => act.inbox(),
        }
    }

    /// Whoever calls hears what was said to it meanwhile. That it could not be asked changes nothing about what was done.
    fn with_messages(&self, mut answer: Value) -> Value {
        let Some(worker) = self.who.worker.clone() else { return answer };
        let asked = self.desk.ask(self.who, move |onus| onus.messages(Some(&worker), None));
        let Ok(MessagesView { messages, .. }) = asked else { return answer };
        if messages.is_empty() {
            return answer;
        }
        answer["messages"] = summary::messages(&messages);
        for (task, through) in onus_app::inbox::last_of(&messages) {
            if let Ok(envelope) = self.envelope(Some(task), None, None, Command::Read { through }) {
                drop(self.desk.submit(self.who, envelope, Target::Named));
            }
        }
        answer
    }
}

struct Execution<'a, D> {
    desk: &'a D,
    who: &'a Who,
}

impl<D: Backend> Execution<'_, D> {
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

    fn inbox(&self) -> Result<Value, Refusal> {
        let worker = self.who.worker.clone();
        let view = self.desk.ask(self.who, move |onus| onus.inbox(worker.as_ref()))?;
        Ok(summary::inbox(&view))
    }

    fn stale(&self) -> Result<Value, Refusal> {
        let view = self.desk.ask(self.who, |onus| onus.stale())?;
        Ok(json!({ "stale": view.stale, "untrusted": true }))
    }

    fn show(&self, call: tool::Show) -> Result<Value, Refusal> {
        let part = StoryPart { before: call.before, limit: None };
        let view = self.desk.ask(self.who, move |onus| onus.show_part(&call.task, part))?;
        Ok(summary::story(&view))
    }

    fn claim(&self, call: Claiming) -> Result<Value, Refusal> {
        let receipt = match call {
            Claiming::Named(call) => self.grant(call)?,
            Claiming::Next(call) => {
                let order = call.input.orders()?.into_iter().next();
                let order = order.ok_or_else(|| Refusal::invalid("claim: of nothing"))?;
                self.granting(None, call.request, order)?
            }
        };
        self.granted(&receipt)
    }

    fn takeover(&self, call: AboutTask<input::TakeoverInput>) -> Result<Value, Refusal> {
        let receipt = self.grant(call)?;
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

    fn grant<I: VerbInput>(&self, call: AboutTask<I>) -> Result<Receipt, Refusal> {
        let order = self.order(&call.task, call.input)?;
        self.granting(Some(call.task), call.request, order)
    }

    /// A grant: at a machine's own store, after its workstations were probed, and where the caller stands if it says
    /// nothing else.
    fn granting(
        &self,
        named: Option<TaskId>,
        request: Option<RequestId>,
        mut order: Order,
    ) -> Result<Receipt, Refusal> {
        if let Command::Claim { workstation: None, here, .. }
        | Command::Takeover { workstation: None, here, .. } = &mut order.command
        {
            *here = self.here()?;
        }
        let envelope = self.envelope(named, None, request, order.command)?;
        if self.desk.site().is_some() {
            let probed = envelope.clone();
            self.desk.ask(self.who, move |onus| onus.probe_before(&probed))?;
        }
        self.desk.submit(self.who, envelope, order.target)
    }

    fn granted(&self, receipt: &Receipt) -> Result<Value, Refusal> {
        let warning = self.desk.site().map(|site| site.keep(receipt)).transpose()?.flatten();
        let held = receipt.task.assignment().map(|held| held.workstation.clone());
        let directory = match held {
            Some(name) if self.desk.site().is_some() => {
                self.desk.ask(self.who, move |onus| onus.directory_of(&name))?
            }
            _ => None,
        };
        Ok(summary::grant(receipt, directory.as_deref(), warning))
    }

    /// Runs the checks where the working tree is. Behind a network it tells what was run, and where to run the rest.
    fn check(&self, call: tool::Check) -> Result<Value, Refusal> {
        let id = call.task;
        let failed = match self.desk.site() {
            Some(site) if !call.list => site.check(&id, self.lease(&id, call.lease.map(|lease| lease.0))?)?,
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

    fn complete(&self, call: AboutTask<input::CompleteInput>) -> Result<Value, Refusal> {
        let Some(site) = self.desk.site() else {
            return self.complete_behind_network(call);
        };
        let input::CompleteInput { resolution, root_cause, lease, .. } = call.input;
        let resolution = resolution.map(|text| Text::new(text.trim_end().to_owned()));
        let lease = self.lease(&call.task, lease.map(|lease| lease.0))?;
        let request = call.request.map_or_else(fresh, Ok)?;
        let order = Completing { task: call.task, lease, resolution, root_cause };
        Ok(summary::finished(&site.finish(&order, &request)?))
    }

    /// The server lands what lies in its own clone; of work elsewhere it asks the record and its own git what has landed.
    fn complete_behind_network(&self, call: AboutTask<input::CompleteInput>) -> Result<Value, Refusal> {
        let task = call.task.clone();
        if call.input.force || !self.desk.ask(self.who, move |onus| onus.lies_here(&task))? {
            return self.change(call);
        }
        let request = call.request.map_or_else(fresh, Ok)?;
        match self.desk.land(self.who, call.input.landing(call.task, request, None))? {
            LandedAnswer::Complete(view) => Ok(summary::finished(&view)),
            LandedAnswer::Merged(view) => Ok(json!({ "task": view.task, "landed": view.landed })),
        }
    }

    fn ask(&self, call: Asking<input::AddInput>) -> Result<Value, Refusal> {
        let order = call.input.asks();
        let envelope = self.envelope(None, None, call.request, order.command)?;
        let envelope = Envelope { project: order.project, ..envelope };
        Ok(summary::asked(&self.desk.submit(self.who, envelope, order.target)?))
    }

    /// A change by the holder, or a comment by somebody else.
    fn change<I: VerbInput>(&self, call: AboutTask<I>) -> Result<Value, Refusal> {
        let order = self.order(&call.task, call.input)?;
        let is_comment = order.lease.is_none() && matches!(order.command, Command::Note { .. });
        let speaks =
            matches!(order.command, Command::Say { .. } | Command::Review { .. } | Command::Comment { .. });
        // Others speak without a lease, wherever they stand.
        let lease = match speaks && order.lease.is_none() && !self.is_assigned(&call.task)? {
            true => None,
            false => self.lease(&call.task, order.lease)?,
        };
        let envelope = self.envelope(Some(call.task.clone()), lease, call.request, order.command)?;
        let receipt = match self.desk.submit(self.who, envelope.clone(), order.target.clone()) {
            // A token that only lay in the workstation says nothing about who its reader wants to be.
            Err(refusal)
                if refusal.code == Code::Fenced && is_comment && !self.is_assigned(&call.task)? =>
            {
                self.desk.submit(self.who, Envelope { token: None, ..envelope }, order.target)?
            }
            other => other?,
        };
        if let Some(site) = self.desk.site().filter(|_| receipt.task.assignment().is_none()) {
            site.forget(&call.task);
        }
        Ok(summary::changed(&receipt))
    }

    /// Whether the task is the caller's, whatever has become of the token.
    fn is_assigned(&self, id: &TaskId) -> Result<bool, Refusal> {
        let id = id.clone();
        let task = self.desk.ask(self.who, move |onus| onus.task(&id))?;
        Ok(task.assignment().is_some_and(|held| Some(&held.assignee) == self.who.worker.as_ref()))
    }

    fn order<I: VerbInput>(&self, task: &TaskId, input: I) -> Result<Order, Refusal> {
        let task = task.clone();
        self.desk.ask(self.who, move |onus| input.order(onus, Some(&task)))
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
    fn lease(&self, id: &TaskId, given: Option<Token>) -> Result<Option<Token>, Refusal> {
        match (given, self.desk.site()) {
            (None, Some(site)) => site.lease(id),
            (token, _) => Ok(token),
        }
    }

    fn envelope(
        &self,
        task: Option<TaskId>,
        token: Option<Token>,
        request: Option<RequestId>,
        command: Command,
    ) -> Result<Envelope, Refusal> {
        let request = request.map_or_else(fresh, Ok)?;
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

fn parsed<T: FromStr<Err = String>>(what: &str, text: Option<&str>) -> Result<Option<T>, Refusal> {
    text.map(str::parse).transpose().map_err(|why| Refusal::invalid(format!("{what}: {why}")))
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
