//! The table of routes. One line of it is one operation: the router and the OpenAPI document are both made from it, and
//! the types of its function are the schemas, so that neither can say what the other does not.

use crate::store::Store;
use axum::body::Bytes;
use axum::extract::Query;
use axum::http::{Method, Uri};
use onus_app::idempotent_admin::Asker;
use onus_app::remote::{self, CallName};
use onus_app::submit::{Receipt, Target};
use onus_app::token::Shown;
use onus_app::view::document;
use onus_app::weight::{self, Weight};
use onus_core::command::{Command, Envelope};
use onus_core::id::{Handle, ProjectKey, RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::str::FromStr;

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One operation.
pub(crate) struct Route {
    pub(crate) sort: RouteKind,
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

impl RouteKind {
    pub(crate) fn method(self) -> Method {
        match self {
            RouteKind::Question => Method::GET,
            RouteKind::Command | RouteKind::Administration => Method::POST,
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

/// What a command needs beside the command itself.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) command: Command,
    pub(crate) lease: Option<Token>,
    pub(crate) project: Option<ProjectKey>,
    pub(crate) target: Target,
}

impl Order {
    pub(crate) fn new(command: Command) -> Order {
        Order { command, lease: None, project: None, target: Target::Named }
    }

    /// With the holder's token.
    pub(crate) fn held(command: Command, lease: Option<Token>) -> Order {
        Order { lease, ..Order::new(command) }
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
        serde_json::from_slice(bytes).map_err(|error| Refusal::invalid(format!("the body: {error}")))
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
            task: self.task.clone(),
            project: order.project,
            base: None,
            command: order.command,
        };
        Ok((self.shown.principal.carry(envelope)?, target))
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
pub(crate) fn post<B, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    order: fn(&mut Store, &Asked, B) -> Result<Order, Refusal>,
    view: fn(&Receipt) -> V,
) -> Route
where
    B: DeserializeOwned + JsonSchema + 'static,
    V: Rendered + JsonSchema + 'static,
{
    command::<B, V>(path, name, about, order, move |receipt| view(&receipt).told().map(After::Answer))
}

/// A command, after which the store is asked for the answer.
pub(crate) fn post_then<B, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    order: fn(&mut Store, &Asked, B) -> Result<Order, Refusal>,
    view: fn(&mut Store, &Receipt) -> Result<V, Refusal>,
) -> Route
where
    B: DeserializeOwned + JsonSchema + 'static,
    V: Rendered + JsonSchema + 'static,
{
    command::<B, V>(path, name, about, order, move |receipt| {
        let version = receipt.task.version;
        Ok(After::Ask(Box::new(move |store| Ok(view(store, &receipt)?.told()?.at(version)))))
    })
}

/// A command with an answer of its own making.
pub(crate) fn command<B, V>(
    path: &'static str,
    name: &'static str,
    about: &'static str,
    order: fn(&mut Store, &Asked, B) -> Result<Order, Refusal>,
    tell: impl Fn(Receipt) -> Result<After, Refusal> + Clone + Send + Sync + 'static,
) -> Route
where
    B: DeserializeOwned + JsonSchema + 'static,
    V: JsonSchema + 'static,
{
    submitting::<B, V>(path, name, about, move |store, asked, body| {
        let order = order(store, asked, body)?;
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
    // Who may not is told so before anybody looks at what it sent.
    let permitted: Act = Box::new(move |store, asked| {
        remote::permits(&asked.shown.principal, call)?;
        (administered.act)(store, asked)
    });
    Route { sort: RouteKind::Administration, act: permitted, ..administered }
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
