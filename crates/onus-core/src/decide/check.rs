//! `check`: commands that prove the work; only a person's word lets one run (mission D7, threat 2).

use super::add::too_long;
use super::{Context, Decision, required_reason};
use crate::check::{cannot_fail, looks_like_prose};
use crate::code::Code;
use crate::command::Run;
use crate::event::{CheckAdded, CheckApproved, CheckRemoved, CheckRun, Event};
use crate::evidence::{CheckVerdict, RunPlace};
use crate::id::CheckId;
use crate::identity_map;
use crate::refusal::Refusal;
use crate::task::{Check, CheckState};
use crate::text::{CHECK_MAX, LIST_MAX, LISTS_MAX, Text, is_unprintable, line};

/// What can prove nothing is no check.
pub(super) fn fault(command: &str) -> Option<String> {
    if let Err(detail) = line("the check", command, CHECK_MAX) {
        return Some(detail);
    }
    if looks_like_prose(command) {
        return Some(format!("the check `{command}` is a sentence, not a command"));
    }
    cannot_fail(command).then(|| format!("the check `{command}` cannot fail, so it proves nothing"))
}

pub(super) fn add(context: &Context<'_>, wanted: &Check) -> Result<Decision, Refusal> {
    let task = context.task;
    if task.state.name().is_terminal() {
        return Err(context.wrong_state("given a check"));
    }
    if let Some(detail) = fault(&wanted.command) {
        return Err(Refusal::invalid(detail).hint("a command whose exit code tells, e.g. make test"));
    }
    // Whoever could give any task a check could stall it.
    let own = task.created_by == context.caller.handle || context.holder().is_ok();
    if !context.caller.is_human() && !own {
        let detail = format!("{} neither holds {} nor asked for it", context.caller.handle, task.id);
        return Err(Refusal::new(Code::NotPermitted, detail).hint("leave a note for its holder: onus note"));
    }
    if task.spec.checks.iter().any(|check| check.id() == wanted.id()) {
        return Ok(Decision::Existing(task.id.clone()));
    }
    if task.spec.checks.len() >= LIST_MAX {
        return Err(Refusal::invalid(format!("{} already has {LIST_MAX} checks", task.id)));
    }
    let bytes = task.spec.lists_bytes() + wanted.command.len();
    if bytes > LISTS_MAX {
        return Err(Refusal::invalid(too_long(bytes)));
    }
    let state = if context.caller.is_human() { CheckState::Approved } else { CheckState::Proposed };
    Ok(Decision::one(CheckAdded { check: Check { state, ..wanted.clone() } }, None))
}

pub(super) fn approve(context: &Context<'_>, id: &CheckId) -> Result<Decision, Refusal> {
    if !context.caller.is_human() {
        return Err(context.human_required("approve a check"));
    }
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("given a check"));
    }
    match found(context, id)?.state {
        CheckState::Approved => Ok(Decision::Existing(context.task.id.clone())),
        CheckState::Proposed => Ok(Decision::one(CheckApproved { check: id.clone() }, None)),
    }
}

/// Without its checks a task would be proven by nothing: a person says why.
pub(super) fn remove(context: &Context<'_>, id: &CheckId, reason: Option<&str>) -> Result<Decision, Refusal> {
    if !context.caller.is_human() {
        return Err(context.human_required("remove a check"));
    }
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("freed of a check"));
    }
    found(context, id)?;
    let reason = required_reason(reason)?;
    Ok(Decision::one(CheckRemoved { check: id.clone(), reason }, None))
}

/// The longest run that anybody believes in, in milliseconds: a week.
const TOOK_MAX: i64 = 7 * 24 * 3_600_000;
/// What Onus keeps of an output, at most: beginning and end, with a sign for each byte that is no text.
const OUTPUT_MAX: usize = 128 * 1024;
const ENVIRONMENT_MAX: usize = 128;

/// Every field of a run, by its type: none of them is taken on trust.
fn plausible(run: &Run) -> Result<(), Refusal> {
    let is_digest = |text: &str| {
        text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_kept = run.output.content().is_some_and(|output| output.len() <= OUTPUT_MAX);
    let environment = &run.environment;
    let is_printable = environment.len() <= ENVIRONMENT_MAX && !environment.chars().any(is_unprintable);
    let faults = [
        (run.exit.is_none_or(|exit| (0..=255).contains(&exit)), "an exit code is 0 to 255"),
        (run.signal.is_none_or(|signal| (1..=64).contains(&signal)), "a signal is 1 to 64"),
        (run.exit.is_none() || run.signal.is_none(), "a run ends by itself or by a signal"),
        ((0..=TOOK_MAX).contains(&run.took_ms), "a run takes between nothing and a week"),
        (run.output_length >= 0, "an output has no negative length"),
        (is_digest(&run.output_sha256), "the digest of an output is 64 hexadecimal digits"),
        (is_kept, "of an output at most 128 KiB are kept"),
        (is_printable, "the digest of an environment is one short word"),
        (
            RunPlace::parse(&run.sandbox).is_some(),
            "a sandbox is none, bubblewrap, bubblewrap-network or stated",
        ),
    ];
    match faults.into_iter().find(|(holds, _)| !holds) {
        Some((_, rule)) => Err(Refusal::invalid(format!("the run makes no sense: {rule}"))),
        None => Ok(()),
    }
}

/// An output that steers no terminal, whoever reads it later. Its digest is that of the whole.
fn harmless(output: &Text) -> Text {
    let unwanted = |c: char| is_unprintable(c) && !matches!(c, '\n' | '\t' | '\r');
    match output.content() {
        Some(content) if content.contains(unwanted) => {
            Text::new(content.chars().map(|c| if unwanted(c) { '\u{fffd}' } else { c }).collect())
        }
        _ => output.clone(),
    }
}

/// The holder runs checks, and so may a person.
pub(super) fn record(context: &Context<'_>, run: &Run) -> Result<Decision, Refusal> {
    plausible(run)?;
    let demanded = demanded(context, &run.check);
    let check = match &demanded {
        Some(check) => check,
        None => found(context, &run.check)?,
    };
    if check.state != CheckState::Approved {
        let detail = format!("the check `{}` awaits a person's approval", check.command);
        return Err(Refusal::new(Code::CheckUnapproved, detail)
            .hint(format!("a person runs: onus check {} --approve", context.task.id)));
    }
    let held = match (&context.facts.token, context.caller.is_human()) {
        (None, true) => None,
        _ => Some(context.working_holder()?),
    };
    let run = CheckRun {
        check: run.check.clone(),
        verdict: CheckVerdict::of(run.exit, run.timed_out),
        exit: run.exit,
        signal: run.signal,
        took_ms: run.took_ms,
        ground: run.ground.clone(),
        output: harmless(&run.output),
        output_length: run.output_length,
        output_sha256: run.output_sha256.clone(),
        environment: run.environment.clone(),
        sandbox: run.sandbox.clone(),
        renewal: held.map(|held| context.renewal(held, None)),
    };
    let added = demanded.map(|check| Event::from(CheckAdded { check }));
    let events = added.into_iter().chain([Event::from(run)]).collect();
    Ok(Decision::Change { events, workstation: held.map(|held| held.workstation.clone()) })
}

/// A check that the map asks for and the task does not have yet: with its first run it becomes the task's own.
fn demanded(context: &Context<'_>, id: &CheckId) -> Option<Check> {
    let spec = &context.task.spec;
    let is_own = spec.checks.iter().any(|check| check.id() == *id);
    let required = || identity_map::required_checks(context.facts.policy, spec, None);
    (!is_own).then(required)?.into_iter().find(|check| check.id() == *id)
}

fn found<'a>(context: &'a Context<'_>, id: &CheckId) -> Result<&'a Check, Refusal> {
    context.task.spec.checks.iter().find(|check| check.id() == *id).ok_or_else(|| {
        Refusal::new(Code::UnknownName, format!("{} has no check {id}", context.task.id))
            .hint(format!("onus check {} --list", context.task.id))
    })
}
