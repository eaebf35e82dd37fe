//! `claims`: the most important ready task, picked and taken in one step; or several of them.

use super::body::{filter, ttl};
use crate::route::{After, Answer, Asked, Next, Order, Route, submitting, unanswered};
use crate::store::Store;
use onus_app::submit::{Receipt, Target, step};
use onus_app::view::ClaimView;
use onus_core::command::{Command, Warrant};
use onus_core::id::{Handle, ProjectKey, Role, TaskType, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So many at once: as many as go into one commit.
const COUNT_MAX: usize = 64;

pub(super) fn routes() -> Vec<Route> {
    vec![submitting::<ClaimsBody, ClaimsView>(
        "/v1/claims",
        "claim_next",
        "Take the most important ready task; with `count` up to so many",
        claim,
    )]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClaimsBody {
    project: Option<ProjectKey>,
    #[serde(rename = "type")]
    task_type: Option<TaskType>,
    role: Option<Role>,
    lane: Option<i64>,
    sprint: Option<String>,
    /// Where you will work; default: the one that the identity map names
    workstation: Option<WorkstationName>,
    /// With `count`: one for each task, since a workstation holds one task
    #[serde(default)]
    workstations: Vec<WorkstationName>,
    /// How long each lease lasts unless renewed
    ttl: Option<Millis>,
    /// The same in milliseconds
    ttl_ms: Option<i64>,
    /// Give it to this worker instead of taking it: people only
    assignee: Option<Handle>,
    /// How many, at most 64. The answer then is a list, each with a lease of its own.
    #[schemars(range(min = 1, max = 64))]
    count: Option<usize>,
}

/// One grant, or as many as there were.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum ClaimsView {
    One(Box<ClaimView>),
    Several { claims: Vec<ClaimView> },
}

fn claim(_: &mut Store, asked: &Asked, body: ClaimsBody) -> Result<Next, Refusal> {
    let filter = filter(body.project, body.task_type, body.role, body.lane, body.sprint);
    let ttl = ttl(body.ttl, body.ttl_ms)?;
    let order = |workstation: Option<&WorkstationName>| Order {
        target: Target::Next(filter.clone()),
        ..Order::new(Command::Claim {
            workstation: workstation.cloned(),
            here: None,
            assignee: body.assignee.clone(),
            ttl,
            warrant: Warrant::Ordinary,
        })
    };
    match body.count {
        None if body.workstations.is_empty() => Ok(Next::Submit {
            calls: vec![asked.envelope(asked.key.clone(), order(body.workstation.as_ref()))?],
            tell: Box::new(|answers| {
                tell(answers, |mut granted| granted.pop().map(|one| ClaimsView::One(Box::new(one))))
            }),
        }),
        None => Err(Refusal::invalid("workstations: only with count")),
        Some(count) if !(1..=COUNT_MAX).contains(&count) => {
            Err(Refusal::invalid(format!("count: {count} is not between 1 and {COUNT_MAX}")))
        }
        Some(count) => {
            let calls = (0..count).map(|n| {
                let place = body.workstations.get(n).or(body.workstation.as_ref());
                // The same key names the same claims, one by one.
                asked.envelope(step(&asked.key, &format!("claim {n}"))?, order(place))
            });
            Ok(Next::Submit {
                calls: calls.collect::<Result<_, Refusal>>()?,
                tell: Box::new(|answers| tell(answers, |claims| Some(ClaimsView::Several { claims }))),
            })
        }
    }
}

/// What was granted; where nothing was, why the first one was not.
fn tell(
    answers: Vec<Result<Receipt, Refusal>>,
    view: fn(Vec<ClaimView>) -> Option<ClaimsView>,
) -> Result<After, Refusal> {
    let (mut granted, mut refused) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(receipt) => granted.push(ClaimView::from(&receipt)),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    if let Some(refusal) = refused.filter(|_| granted.is_empty()) {
        return Err(refusal);
    }
    let view = view(granted).ok_or_else(unanswered)?;
    let version = match &view {
        ClaimsView::One(one) => Some(one.task.version),
        ClaimsView::Several { .. } => None,
    };
    Ok(After::Answer(Answer { version, ..Answer::of(&view)? }))
}
