//! `say`: something for somebody. From the person whom a blocked task waits for it is the answer, and the work goes on.

use super::{Context, Decision, block};
use crate::code::Code;
use crate::event::{Event, Messaged, MessagesRead};
use crate::facts::Caller;
use crate::id::{Handle, Seq};
use crate::refusal::Refusal;
use crate::task::{Blocker, State};
use crate::text::{BODY_MAX, Text, lines};

pub(super) fn decide(context: &Context<'_>, to: Option<&Handle>, text: &Text) -> Result<Decision, Refusal> {
    if let Some(content) = text.content() {
        lines("the message", content, BODY_MAX).map_err(Refusal::invalid)?;
    }
    if let (Some(to), Some(Caller::Unregistered(_))) = (to, &context.facts.mentioned) {
        return Err(
            Refusal::new(Code::UnknownWorker, format!("{to} is not registered")).hint("onus worker list")
        );
    }
    // Without a token anybody may speak. With one the caller claims to be the holder, and must be.
    let held = context.facts.token.is_some().then(|| context.holder()).transpose()?;
    let renewing = held.filter(|_| !context.facts.suspended);
    let to = to.or_else(|| usual(context)).cloned();
    let said = Messaged { to, text: text.clone(), renewal: renewing.map(|held| context.renewal(held, None)) };
    let mut events: Vec<Event> = vec![said.into()];
    events.extend(block::answer(context));
    Ok(Decision::Change { events, workstation: held.map(|held| held.workstation.clone()) })
}

/// For whom it is, where nobody is named: the holder; by the holder, whom the work waits for, else who asked for it.
fn usual<'a>(context: &Context<'a>) -> Option<&'a Handle> {
    let caller = &context.caller.handle;
    let task = context.task;
    let asked = match &task.state {
        State::Blocked { on: Blocker::Person(person), .. } => person,
        _ => &task.created_by,
    };
    let holder = task.assignment().map(|held| &held.assignee);
    match holder {
        Some(holder) if holder == caller => Some(asked),
        other => other,
    }
    .filter(|to| *to != caller)
}

/// A read mark concerns nobody but its reader.
pub(super) fn read(_: &Context<'_>, through: Seq) -> Result<Decision, Refusal> {
    if through < 1 {
        return Err(Refusal::invalid(format!("{through} is no entry of the record")));
    }
    Ok(Decision::one(MessagesRead { through }, None))
}
