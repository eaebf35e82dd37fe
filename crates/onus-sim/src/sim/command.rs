//! What the numbers of a step mean, said in the program's own words.

use super::snapshot::Session;
use super::step::{Ask, By, ROLES, SCOPES};
use super::team;
use onus_core::command::{Command, Warrant, WhileBlocked};
use onus_core::evidence::Proof;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::session::{Counts, Usage};
use onus_core::task::{Blocker, Spec};
use onus_core::text::Text;
use onus_core::time::Timestamp;
use onus_store::read::queue::Filter;
use std::collections::BTreeSet;

/// A command, and the task that it is about, where the step itself does not say so.
#[derive(Debug)]
pub(super) struct Meant {
    pub command: Command,
    pub next: Option<Filter>,
    pub task: Option<TaskId>,
}

impl From<Command> for Meant {
    fn from(command: Command) -> Meant {
        Meant { command, next: None, task: None }
    }
}

/// The command that a step asks for; none where there is nothing yet that it could be about.
pub(super) fn meant(ask: Ask, sessions: &[Session]) -> Result<Option<Meant>, Refusal> {
    let warrant = |by: By| match by {
        By::Rules => Warrant::Ordinary,
        By::Force => Warrant::Forced { reason: reason() },
    };
    let text = |words: &str| Some(Text::new(words.to_owned()));
    let block = |on: Blocker, lease: WhileBlocked| Command::Block {
        on,
        lease,
        note: text("it rains"),
        handoff: None,
    };
    let rain = || Blocker::External("rain".to_owned());
    Ok(Some(Meant::from(match ask {
        Ask::Add { role, scope, on, origin } => add(role, scope, on, origin)?,
        Ask::Claim(place, by) => claim(place, None, warrant(by))?,
        Ask::Assign { to, place } => claim(place, Some(to), Warrant::Ordinary)?,
        Ask::Next(place) => {
            let command = claim(place, None, Warrant::Ordinary)?;
            return Ok(Some(Meant { command, next: Some(Filter::default()), task: None }));
        }
        Ask::Takeover(place, by) => Command::Takeover {
            workstation: Some(team::workstation(place)?),
            here: None,
            ttl: None,
            reason: reason(),
            warrant: warrant(by),
        },
        Ask::Renew => Command::Renew { ttl: None, process: None },
        Ask::Release(by) => Command::Release { note: text("half done"), handoff: None, warrant: warrant(by) },
        Ask::BlockKeeping => block(rain(), WhileBlocked::KeepLease),
        Ask::BlockReleasing => block(rain(), WhileBlocked::ReleaseLease),
        Ask::BlockOnTask(other) => block(Blocker::Task(team::task(other)?), WhileBlocked::ReleaseLease),
        Ask::Unblock => Command::Unblock,
        Ask::Note => Command::Note { text: Text::new("so far so good".to_owned()) },
        Ask::Complete(by) => Command::Complete {
            resolution: text("done"),
            root_cause: None,
            warrant: warrant(by),
            proof: Proof::default(),
        },
        Ask::Reopen => Command::Reopen { reason: reason() },
        Ask::Drop => Command::Drop { reason: reason() },
        Ask::Depend(on) => Command::AddDependency { on: team::task(on)? },
        Ask::Undepend(on) => Command::RemoveDependency { on: team::task(on)? },
        Ask::Except(on) => {
            Command::RequestException { on: team::task(on)?, reason: reason(), rollback: reason(), adr: None }
        }
        Ask::ApproveException(on) => Command::ApproveException { on: team::task(on)? },
        Ask::StartSession => Command::StartSession,
        Ask::StopSession => Command::StopSession,
        Ask::Correct { .. } | Ask::Use { .. } => return Ok(about_session(ask, sessions)),
    })))
}

fn reason() -> Option<String> {
    Some("because".to_owned())
}

fn add(
    role: Option<usize>,
    scope: Option<usize>,
    on: Option<usize>,
    origin: Option<usize>,
) -> Result<Command, Refusal> {
    let mut spec = Spec::titled("a task");
    "feature".clone_into(&mut spec.kind);
    spec.role = role.map(|role| ROLES[role].parse()).transpose().map_err(Refusal::invalid)?;
    spec.scope = scope.map(|scope| format!("{}/**", SCOPES[scope])).into_iter().collect();
    spec.origin = origin.map(|n| format!("gh:{n}").parse()).transpose().map_err(Refusal::invalid)?;
    let depends_on: BTreeSet<TaskId> = on.map(team::task).transpose()?.into_iter().collect();
    Ok(Command::Add { spec: Box::new(spec), depends_on, archived: None, arrival: None })
}

fn claim(place: usize, to: Option<usize>, warrant: Warrant) -> Result<Command, Refusal> {
    Ok(Command::Claim {
        workstation: Some(team::workstation(place)?),
        here: None,
        assignee: to.map(team::worker).transpose()?,
        ttl: None,
        warrant,
        constraints: Vec::new(),
    })
}

/// A correction or a usage of some session that there is.
fn about_session(ask: Ask, sessions: &[Session]) -> Option<Meant> {
    let pick = |n: usize| sessions.get(n % sessions.len().max(1));
    let (session, command) = match ask {
        Ask::Correct { session, from, to } => {
            let session = pick(session)?;
            let moved = |at: Timestamp, by: i64| Timestamp(at.0 + by);
            let command = Command::CorrectSession {
                session: session.id,
                started_at: moved(session.from, from),
                ended_at: moved(session.to.unwrap_or(session.from), to),
                reason: reason(),
            };
            (session, command)
        }
        Ask::Use { session, tokens } => {
            let session = pick(session)?;
            let counts = Counts { input_tokens: tokens, ..Counts::default() };
            let usage = Usage { key: "k".into(), source: "reported".into(), model: None, counts };
            (session, Command::RecordUsage { session: session.id, usage })
        }
        _ => return None,
    };
    Some(Meant { command, next: None, task: Some(session.task.clone()) })
}
