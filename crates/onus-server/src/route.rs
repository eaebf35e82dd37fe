//! The table of routes. One line of it is one operation: the router and the OpenAPI document are both made from it, and
//! the types of its function are the schemas, so that neither can say what the other does not.

use crate::store::Store;
use axum::body::Bytes;
use axum::extract::Query;
use axum::http::{Method, Uri};
use onus_app::idempotent_admin::Asker;
use onus_app::input::{Order, VerbInput};
use onus_app::landing::{LandedAnswer, LandingOrder};
use onus_app::remote::{self, CallName};
use onus_app::submit::{Receipt, Target};
use onus_app::token::Shown;
use onus_app::view::document;
use onus_app::weight::{self, Weight};
use onus_core::command::Envelope;
use onus_core::id::{Handle, RequestId, Seq, TaskId, shown};
use onus_core::refusal::Refusal;
use onus_core::token::{Principal, speaks, works};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::str::FromStr;

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One operation.
pub(crate) struct Route {
    pub(crate) sort: RouteKind,
    pub(crate) method: Method,
    pub(crate) access: Access,
    /// Of the call that has the same name.
    pub(crate) weight: Weight,
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) query: Option<SchemaOf>,
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answer: SchemaOf,
    pub(crate) act: Act,
}

/// What an operation does to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteKind {
    Question,
    /// Changes a task: waits for its turn among the commands.
    Command,
    /// Changes the workspace itself, at once.
    Administration,
}

/// Who may make a request at all: asked before a byte of its body is read. What it leads to is judged once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anybody with a token.
    Question,
    /// Whoever speaks for a worker.
    Ask,
    /// People and agents.
    Work,
    /// Whoever may make this call.
    Call(CallName),
}

impl Route {
    pub(crate) fn permits(&self, principal: &Principal) -> Result<(), Refusal> {
        match self.access {
            Access::Question => Ok(()),
            Access::Ask => speaks(principal),
            Access::Work => works(principal, self.name),
            Access::Call(call) => remote::permits(principal, call),
        }
    }
}

/// Runs where the store can be asked.
pub(crate) type Act = Box<dyn Fn(&mut Store, &Asked) -> Result<Next, Refusal> + Send + Sync>;

/// A request after its headers were understood.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The token, and whose it is.
    pub(crate) shown: Shown,
    /// The task in the path.
    pub(crate) task: Option<TaskId>,
    /// The worker or workstation in the path.
    pub(crate) name: Option<String>,
    pub(crate) uri: Uri,
    pub(crate) body: Bytes,
    /// `Idempotency-Key`, or one of our own.
    pub(crate) key: RequestId,
    /// `If-Match`: the version that the task must have.
    pub(crate) version: Option<i64>,
}

/// What an operation leads to.
pub(crate) enum Next {
    Answer(Answer),
    /// To be written; `tell` makes the answer of what came of it.
    Submit {
        calls: Vec<(Envelope, Target)>,
        tell: Tell,
    },
    /// To be landed, where the work lies in the server's own clone.
    Land(Box<LandingOrder>),
}

pub(crate) type Tell = Box<dyn FnOnce(Vec<Result<Receipt, Refusal>>) -> Result<After, Refusal> + Send>;

/// An answer that may need to ask the store once more.
pub(crate) enum After {
    Answer(Answer),
    Ask(Question),
}

type Question = Box<dyn FnOnce(&mut Store) -> Result<Answer, Refusal> + Send>;

/// A document on its way to the caller.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: String,
    /// The task's version, where the document is about one task.
    pub(crate) version: Option<i64>,
    /// Where what was created is.
    pub(crate) location: Option<String>,
}

impl Answer {
    pub(crate) fn of(view: &impl Serialize) -> Result<Answer, Refusal> {
        Ok(Answer { body: document(view)?, version: None, location: None })
    }

    pub(crate) fn at(self, version: i64) -> Answer {
        Answer { version: Some(version), ..self }
    }
}

impl TryFrom<LandedAnswer> for Answer {
    type Error = Refusal;

    fn try_from(landed: LandedAnswer) -> Result<Answer, Refusal> {
        match landed {
            LandedAnswer::Merged(view) => Answer::of(&view),
            LandedAnswer::Complete(view) => Ok(Answer::of(&view)?.at(view.task.version)),
        }
    }
}

impl Asked {
    pub(crate) fn actor(&self) -> Option<&Handle> {
        self.shown.principal.worker.as_ref()
    }

    /// Who asks for a change of the workspace, and under which key.
    pub(crate) fn asker(&self) -> Asker<'_> {
        Asker { actor: self.actor(), request: Some(&self.key), shown: Some(&self.shown) }
    }

    /// The task in the path, for routes that have one.
    pub(crate) fn task(&self) -> Result<&TaskId, Refusal> {
        self.task.as_ref().ok_or_else(|| Refusal::invalid("the path names no task"))
    }

    /// The worker or workstation in the path, for routes that have one.
    pub(crate) fn name<N: FromStr<Err = String>>(&self) -> Result<N, Refusal> {
        self.name.as_deref().unwrap_or_default().parse().map_err(Refusal::invalid)
    }

    /// The session in the path, for routes that have one.
    pub(crate) fn session(&self) -> Result<Seq, Refusal> {
        let text = self.name.as_deref().unwrap_or_default();
        text.parse().map_err(|_| Refusal::invalid(format!("{} is not the number of a session", shown(text))))
    }

    fn query<Q: DeserializeOwned>(&self) -> Result<Q, Refusal> {
        let parsed = Query::<Q>::try_from_uri(&self.uri).map_err(|error| {
            // The outer words only say that it is a query.
            let inner = std::error::Error::source(&error).map(ToString::to_string);
            Refusal::invalid(format!("the query: {}", inner.unwrap_or_else(|| error.to_string())))
        })?;
        Ok(parsed.0)
    }

    fn body<B: DeserializeOwned>(&self) -> Result<B, Refusal> {
        let bytes: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        // An array would be read as the fields in their order: a meaning that nobody promised.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(Refusal::invalid("the body: it must be a JSON object"));
        }
        serde_json::from_slice(bytes).map_err(|error| unreadable(&error))
    }

    /// The call in the caller's name, if its token may carry it.
    pub(crate) fn envelope(&self, request: RequestId, order: Order) -> Result<(Envelope, Target), Refusal> {
        let target = match (order.target, self.version) {
            (Target::Named, Some(version)) => Target::At(version),
            (target, _) => target,
        };
        let envelope = Envelope {
            request,
            actor: self.actor().cloned(),
            token: order.lease,
            task: order.task.or_else(|| self.task.clone()),
            project: order.project,
            base: None,
            command: order.command,
        };
        Ok((self.shown.principal.carry(envelope)?, target))
    }
}

/// What is wrong with a body, without the words of whoever parsed it: a field that is missing is named; where the text
/// itself is no JSON, the place is worth telling.
fn unreadable(error: &serde_json::Error) -> Refusal {
    let told = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let plain = told.strip_suffix(&place).filter(|_| error.is_data()).unwrap_or(&told);
    match plain.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        Some(field) => Refusal::invalid(format!("the body: {field} is missing")),
        None => Refusal::invalid(format!("the body: {plain}")),
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The schema itself, not a reference to it: its properties become the parameters.
fn inlined<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// A question.
pub(crate) fn get<Q, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    ask: fn(&mut Store, &Asked, Q) -> Result<V, Refusal>,
) -> Route
where
    Q: DeserializeOwned + JsonSchema + 'static,
    V: Rendered + JsonSchema + 'static,
{
    Route {
        sort: RouteKind::Question,
        method: Method::GET,
        access: Access::Question,
        weight: weight::of_route(name),
        path,
        name,
        about,
        query: Some(inlined::<Q>),
        body: None,
        answer: schema_of::<V>,
        act: Box::new(move |store, asked| {
            let view = ask(store, asked, asked.query()?)?;
            Ok(Next::Answer(view.told()?))
        }),
    }
}

/// A command, whose answer is told from its receipt alone.
pub(crate) fn post<I, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    view: fn(&Receipt) -> V,
) -> Route
where
    I: VerbInput,
    V: Rendered + JsonSchema + 'static,
{
    command::<I, V>(path, name, about, move |receipt| view(&receipt).told().map(After::Answer))
}

/// The same, for a command that changes what is there and adds nothing.
pub(crate) fn patch<I, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    view: fn(&Receipt) -> V,
) -> Route
where
    I: VerbInput,
    V: Rendered + JsonSchema + 'static,
{
    Route { method: Method::PATCH, ..post::<I, V>(path, name, about, view) }
}

/// A command, after which the store is asked for the answer.
pub(crate) fn post_then<I, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    view: fn(&mut Store, &Receipt) -> Result<V, Refusal>,
) -> Route
where
    I: VerbInput,
    V: Rendered + JsonSchema + 'static,
{
    command::<I, V>(path, name, about, move |receipt| {
        let version = receipt.task.version;
        Ok(After::Ask(Box::new(move |store| Ok(view(store, &receipt)?.told()?.at(version)))))
    })
}

/// A command with an answer of its own making.
pub(crate) fn command<I, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    tell: impl Fn(Receipt) -> Result<After, Refusal> + Clone + Send + Sync + 'static,
) -> Route
where
    I: VerbInput,
    V: JsonSchema + 'static,
{
    submitting::<I, V>(path, name, about, move |store, asked, input| {
        let order = input.order(store, asked.task.as_ref())?;
        let tell = tell.clone();
        Ok(Next::Submit {
            calls: vec![asked.envelope(asked.key.clone(), order)?],
            tell: Box::new(move |answers| answers.into_iter().next().ok_or_else(unanswered)?.and_then(tell)),
        })
    })
}

/// Whatever leads to commands.
pub(crate) fn submitting<B, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    act: impl Fn(&mut Store, &Asked, B) -> Result<Next, Refusal> + Send + Sync + 'static,
) -> Route
where
    B: DeserializeOwned + JsonSchema + 'static,
    V: JsonSchema + 'static,
{
    Route {
        sort: RouteKind::Command,
        method: Method::POST,
        access: Access::Work,
        weight: weight::of_route(name),
        path,
        name,
        about,
        query: None,
        body: Some(schema_of::<B>),
        answer: schema_of::<V>,
        act: Box::new(move |store, asked| act(store, asked, asked.body()?)),
    }
}

/// A change of the workspace itself. It has the name of the call that the command line makes for it, and its permission.
pub(crate) fn administration<B, V>(
    path: &'static str,
    call: CallName,
    about: &'static str,
    act: fn(&mut Store, &Asked, B) -> Result<V, Refusal>,
) -> Route
where
    B: DeserializeOwned + JsonSchema + 'static,
    V: Rendered + JsonSchema + 'static,
{
    let administered = submitting::<B, V>(path, call.name(), about, move |store, asked, body| {
        Ok(Next::Answer(act(store, asked, body)?.told()?))
    });
    // Who was remembered as somebody who may is asked for again here.
    let permitted: Act = Box::new(move |store, asked| {
        remote::permits(&asked.shown.principal, call)?;
        (administered.act)(store, asked)
    });
    Route { sort: RouteKind::Administration, access: Access::Call(call), act: permitted, ..administered }
}

pub(crate) fn unanswered() -> Refusal {
    Refusal::new(onus_core::code::Code::Internal, "a command without an answer")
}

/// A view that becomes an answer.
pub(crate) trait Rendered: Serialize + Sized {
    fn told(&self) -> Result<Answer, Refusal> {
        Answer::of(self)
    }
}
