//! `claims`: the most important ready task, picked and taken in one step; or several of them.

use crate::route::{After, Answer, Asked, Next, Route, submitting, unanswered};
use crate::store::Store;
use onus_app::input::ClaimNextInput;
use onus_app::submit::{Receipt, step};
use onus_app::view::ClaimView;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Serialize;

pub(super) fn routes() -> Vec<Route> {
    vec![submitting::<ClaimNextInput, ClaimsView>(
        "/v1/claims",
        "claim_next",
        "Take the most important ready task; with `count` up to so many",
        claim,
    )]
}

/// One grant, or as many as there were.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum ClaimsView {
    One(Box<ClaimView>),
    Several { claims: Vec<ClaimView> },
}

fn claim(_: &mut Store, asked: &Asked, wanted: ClaimNextInput) -> Result<Next, Refusal> {
    let is_list = wanted.count.is_some();
    let calls = wanted.orders()?.into_iter().enumerate().map(|(n, order)| {
        // The same key names the same claims, one by one.
        let key = if is_list { step(&asked.key, &format!("claim {n}"))? } else { asked.key.clone() };
        asked.envelope(key, order)
    });
    Ok(Next::Submit {
        calls: calls.collect::<Result<_, Refusal>>()?,
        tell: Box::new(move |answers| {
            tell(answers, |mut claims| match is_list {
                true => Some(ClaimsView::Several { claims }),
                false => claims.pop().map(|one| ClaimsView::One(Box::new(one))),
            })
        }),
    })
}

/// What was granted; where nothing was, why the first one was not.
fn tell(
    answers: Vec<Result<Receipt, Refusal>>,
    view: impl Fn(Vec<ClaimView>) -> Option<ClaimsView>,
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
