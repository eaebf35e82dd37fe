//! The end of a run: complete, or give back, and say which.

use super::lease::GrantedLease;
use super::{Outcome, RunCommand};
use crate::commands::merge::tell_behind;
use crate::context::{Store, World};
use crate::output::Output;
use crate::progress::Bar;
use onus_app::finish::{Finish, Landing, ORDER, REVIEW};
use onus_app::merge::{Merge, is_offered};
use onus_core::code::Code;
use onus_core::id::{Handle, shown};
use onus_core::refusal::Refusal;
use onus_core::task::{State, StateName};
use onus_core::text::Text;
use onus_host::supervise::End;

const INTERRUPTED: u8 = 130;
/// As `timeout` has it.
const HUNG: u8 = 124;

pub(super) fn conclude(
    run: &RunCommand,
    world: &World,
    out: &mut Output,
    held: &GrantedLease,
    end: End,
) -> Result<Outcome, Refusal> {
    match end {
        End::Exited(code) => ended(run, world, out, held, code),
        End::Interrupted(code) => {
            let exit = if code == 0 { INTERRUPTED } else { code };
            give_back(None, world, out, held, exit, format!("{} was interrupted", named(run)))
        }
        End::Silent(most) => {
            let why =
                format!("{} said nothing for {} and was ended", named(run), super::span(most).in_words());
            give_back(run.ask.as_ref(), world, out, held, HUNG, why)
        }
        End::Lost(refusal) if refusal.code == Code::BudgetExceeded => {
            over_limit(run, world, out, held, &refusal)
        }
        End::Lost(refusal) => {
            // A suspended holder may still give back what it cannot go on with.
            if refusal.code == Code::WorkstationQuarantined {
                held.give_back(world, &format!("{} was stopped: {}", named(run), refusal.detail));
            }
            world.forget_lease(&held.task, held.directory.as_deref());
            let exit = Code::Fenced.exit_code();
            Ok(outcome(out, held, "lost", exit, Some(told(&refusal))))
        }
        End::Unreachable(refusal) => {
            let exit = Code::StoreUnavailable.exit_code();
            Ok(outcome(out, held, "unreachable", exit, Some(told(&refusal))))
        }
    }
}

/// The handoff tells the figures; a person says whether it goes on. Where nobody can be asked the next grant is refused.
fn over_limit(
    run: &RunCommand,
    world: &World,
    out: &Output,
    held: &GrantedLease,
    refusal: &Refusal,
) -> Result<Outcome, Refusal> {
    let why = format!("{} was stopped: {}", named(run), told(refusal));
    let exit = refusal.code.exit_code();
    let whom = world.open()?.limits(Some(&held.task))?.ask.or_else(|| run.ask.clone());
    match whom {
        Some(person) => {
            held.block(world, &person, &why)?;
            Ok(outcome(out, held, "blocked", exit, Some(why)))
        }
        None => give_back(None, world, out, held, exit, why),
    }
}

fn ended(
    run: &RunCommand,
    world: &World,
    out: &mut Output,
    held: &GrantedLease,
    code: u8,
) -> Result<Outcome, Refusal> {
    let mut store = world.open()?;
    let task = store.task(&held.task)?;
    if !held.is_in(&task) {
        world.forget_lease(&held.task, held.directory.as_deref());
        let what = match (task.state.name(), task.epoch == held.epoch) {
            (StateName::Complete, true) => "completed",
            (StateName::Blocked, true) => "blocked",
            (_, true) => "released",
            _ => {
                let why = format!("{} is {} under another grant", held.task, task.state.name());
                return Ok(outcome(out, held, "lost", Code::Fenced.exit_code(), Some(why)));
            }
        };
        return Ok(outcome(out, held, what, code, None));
    }
    if matches!(task.state, State::Blocked { .. }) {
        return Ok(outcome(out, held, "blocked", code, None));
    }
    if code != 0 {
        let why = format!("{} ended with exit code {code}", named(run));
        return give_back(run.ask.as_ref(), world, out, held, code, why);
    }
    if run.no_complete {
        return give_back(
            None,
            world,
            out,
            held,
            0,
            format!("{} is done; not completed as asked", named(run)),
        );
    }
    match complete(run, world, &mut store, out, held) {
        Ok(()) => {
            world.forget_lease(&held.task, held.directory.as_deref());
            Ok(outcome(out, held, "completed", 0, None))
        }
        // Its branch is offered where the team merges: the task waits for that, and the lease with it.
        Err(refusal) if is_offered(&store.task(&held.task)?) => {
            Ok(outcome(out, held, "blocked", 0, Some(told(&refusal))))
        }
        Err(refusal) => {
            // Nothing is left to do until others have done their part; then the supervisor goes on.
            if let Some(others) = run.ask.as_ref().and_then(|_| waits_for(&refusal)) {
                let why = told(&refusal);
                held.wait_for_others(world, others, &why)?;
                return Ok(outcome(out, held, "blocked", 0, Some(why)));
            }

            let why = format!("{} is done, but not complete: {}", named(run), told(&refusal));
            give_back(run.ask.as_ref(), world, out, held, refusal.code.exit_code(), why)
        }
    }
}

/// The whole end of the road: checks, merge, completion, handoff.
fn complete(
    run: &RunCommand,
    world: &World,
    store: &mut Store,
    out: &mut Output,
    held: &GrantedLease,
) -> Result<(), Refusal> {
    let resolution = Text::new(resolution(run, store, held)?);
    let request = world.another_request()?;
    let merge = Merge {
        request: &request,
        actor: Some(&held.worker),
        token: Some(&held.token),
        task: &held.task,
        adopt: &[],
        root_cause: None,
    };
    let call = Finish { merge, resolution: Some(&resolution), landing: Landing::Merge };
    let view = store.finish(&call, &mut Bar::new(out))?;
    tell_behind(out, &view.behind);
    Ok(())
}

/// As asked for, else as the command said in its last handoff of this very run.
fn resolution(run: &RunCommand, store: &mut Store, held: &GrantedLease) -> Result<String, Refusal> {
    if let Some(words) = &run.resolution {
        return Ok(words.clone());
    }
    let last = store.last_handoff(&held.task)?.and_then(|last| last.handoff);
    let own = last.filter(|last| last.epoch == held.epoch).and_then(|last| last.summary);
    Ok(own.unwrap_or_else(|| format!("done by {}", named(run))))
}

/// Who is given is asked instead, where the task was begun too often.
pub(super) fn give_back(
    ask: Option<&Handle>,
    world: &World,
    out: &Output,
    held: &GrantedLease,
    exit: u8,
    why: String,
) -> Result<Outcome, Refusal> {
    if let Some(person) = ask
        && held.was_begun_too_often(world)?
    {
        held.block(world, person, &why)?;
        return Ok(outcome(out, held, "blocked", exit, Some(why)));
    }
    held.release(world, &why)?;
    Ok(outcome(out, held, "released", exit, Some(why)))
}

fn outcome(out: &Output, held: &GrantedLease, what: &'static str, exit: u8, why: Option<String>) -> Outcome {
    match &why {
        Some(why) => out.warn(&format!("{} {what}: {why}", held.task)),
        None => out.hint(&format!("{} {what}", held.task)),
    }
    Outcome { task: held.task.clone(), outcome: what, exit, why }
}

/// Whose part is missing, where nothing else stands against it.
fn waits_for(refusal: &Refusal) -> Option<&'static str> {
    let codes: Vec<Code> = match refusal.findings.as_slice() {
        [] => vec![refusal.code],
        all => all.iter().map(|finding| finding.code).collect(),
    };
    let is_order = |code: &Code| *code == Code::DependencyIncomplete;
    let waits = codes.iter().all(|code| is_order(code) || *code == Code::ReviewMissing);
    // What is reviewed while it waits for its turn is not asked for twice.
    waits.then(|| if codes.iter().any(is_order) { ORDER } else { REVIEW })
}

/// Every finding of a refusal, in one line.
fn told(refusal: &Refusal) -> String {
    match refusal.findings.as_slice() {
        [] | [_] => format!("{}: {}", refusal.code, refusal.detail),
        several => {
            let all: Vec<String> =
                several.iter().map(|one| format!("{}: {}", one.code, one.detail)).collect();
            all.join("; ")
        }
    }
}

/// The command as people know it: its name, without what was passed to it.
fn named(run: &RunCommand) -> String {
    let name = run.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    shown(&name)
}
