//! `onus check`

use super::{LeaseArg, TaskArg, submit_as_holder, word};
use crate::context::{Store, World};
use crate::output::{Format, Output};
use crate::render;
use clap::Args;
use onus_app::check::{self, Sandbox, Tried};
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::id::{CheckId, TaskId};
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::{Check as Stored, CheckKind, CheckState, Task};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Run a task's checks where the work is, and keep what they show
///
/// Only approved checks run: those of people are approved, those of agents wait until a person approves them. Exit code
/// 7 when one does not pass.
#[derive(Debug, Args)]
pub(crate) struct RunChecks {
    #[command(flatten)]
    task: TaskArg,

    /// Tell the checks and their last runs, and run nothing
    #[arg(long, conflicts_with_all = ["add", "approve", "remove"])]
    list: bool,

    /// Add a check: a command whose exit code tells
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["approve", "remove"])]
    add: Option<String>,

    /// What an added check proves: acceptance, code-anchor, runtime or root-cause
    #[arg(long, default_value = "acceptance", requires = "add",
          value_parser = |t: &str| word("a kind of check", t, CheckKind::parse, "acceptance, code-anchor, runtime, root-cause"))]
    kind: CheckKind,

    /// Let a proposed check run, exactly as it is written; without an id all of them: people only
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with = "remove", value_parser = |t: &str| t.parse::<CheckId>())]
    approve: Option<Option<CheckId>>,

    /// Take a check away: people only
    #[arg(long, value_name = "ID", requires = "reason", value_parser = |t: &str| t.parse::<CheckId>())]
    remove: Option<CheckId>,

    /// Why a check is taken away
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Run only this check
    #[arg(long, value_name = "ID", value_parser = |t: &str| t.parse::<CheckId>())]
    only: Option<CheckId>,

    /// How many run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,

    /// none, bubblewrap (only the working tree can be written; no network, no store, no keys) or bubblewrap-network; kept
    /// with the evidence
    #[arg(long, default_value = "none", value_parser = |t: &str| word("a sandbox", t, Sandbox::parse, "none, bubblewrap, bubblewrap-network"))]
    sandbox: Sandbox,

    #[command(flatten)]
    lease: LeaseArg,
}

impl RunChecks {
    pub(super) fn run(&self, world: &World, out: &mut Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let id = &self.task.task;
        if let Some(command) = &self.add {
            let check =
                Stored { command: command.trim().to_owned(), state: CheckState::Proposed, kind: self.kind };
            submit_as_holder(world, &mut store, id, &self.lease, Command::AddCheck { check })?;
        } else if let Some(wanted) = &self.approve {
            self.approve(world, &mut store, wanted.as_ref())?;
        } else if let Some(check) = &self.remove {
            let command = Command::RemoveCheck { check: check.clone(), reason: self.reason.clone() };
            submit_as_holder(world, &mut store, id, &self.lease, command)?;
        } else if !self.list {
            return self.prove(world, &mut store, out);
        }
        show(&mut store, out, id)
    }

    fn approve(&self, world: &World, store: &mut Store, wanted: Option<&CheckId>) -> Result<(), Refusal> {
        let task = store.task(&self.task.task)?;
        let proposed = task.spec.checks.iter().filter(|check| check.state == CheckState::Proposed);
        let ids: Vec<CheckId> = match wanted {
            Some(id) => vec![id.clone()],
            None => proposed.map(Stored::id).collect(),
        };
        for check in ids {
            let command = Command::ApproveCheck { check };
            // One request names one change; each of these is its own.
            let envelope = onus_core::command::Envelope {
                request: world.another_request()?,
                ..world.envelope(Some(task.id.clone()), None, command)?
            };
            store.submit(&envelope, &onus_app::submit::Target::Named)?;
        }
        Ok(())
    }

    fn prove(&self, world: &World, store: &mut Store, out: &mut Output) -> Result<ExitCode, Refusal> {
        let id = &self.task.task;
        let task = store.task(id)?;
        let failed = run_checks(
            world,
            store,
            out,
            &task,
            &ChecksToRun {
                only: self.only.as_ref(),
                jobs: usize::from(self.jobs),
                sandbox: self.sandbox,
                lease: &self.lease,
            },
        )?;
        let code = show(store, out, id)?;
        match failed {
            Some(refusal) => Err(refusal.task(id)),
            None => Ok(code),
        }
    }
}

/// How checks are to be run.
pub(super) struct ChecksToRun<'a> {
    pub(super) only: Option<&'a CheckId>,
    pub(super) jobs: usize,
    pub(super) sandbox: Sandbox,
    pub(super) lease: &'a LeaseArg,
}

/// Runs a task's approved checks and keeps what they show; the refusal says which did not pass.
pub(super) fn run_checks(
    world: &World,
    store: &mut Store,
    out: &mut Output,
    task: &Task,
    request: &ChecksToRun<'_>,
) -> Result<Option<Refusal>, Refusal> {
    let mut checks = check::approved(task, request.only);
    if request.only.is_none() && task.assignment().is_some() {
        let proof = store.proof(&task.id)?;
        checks.extend(store.demanded_checks(task, &proof)?);
    }
    let bench = store.bench(task)?;
    let token = world.token(store, &task.id, request.lease.lease.as_deref())?;
    let tried =
        side_by_side(out, &checks, request.jobs, |one| check::run(one, &task.id, &bench, request.sandbox));
    let mut findings = Vec::new();
    for tried in tried {
        findings.extend(check::failure(&task.id, &tried));
        let (actor, request) = (world.actor.as_ref(), world.another_request()?);
        store.record_check(actor, token.as_ref(), request, &task.id, tried.run)?;
    }
    let waiting = task.spec.checks.iter().filter(|check| check.state == CheckState::Proposed);
    for check in waiting.filter(|check| request.only.is_none_or(|id| check.id() == *id)) {
        let detail = format!("the check `{}` awaits a person's approval", check.command);
        let hint = format!("a person runs: onus check {} --approve {}", task.id, check.id());
        findings.push(Finding::new(Code::CheckUnapproved, detail).hint(hint));
    }
    Ok(Refusal::from_findings(findings))
}

/// Runs some at once and tells how far it is; the results come in the order of the checks.
fn side_by_side(
    out: &mut Output,
    checks: &[Stored],
    jobs: usize,
    run: impl Fn(&Stored) -> Tried + Sync,
) -> Vec<Tried> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(checks.len()) {
            scope.spawn(|| {
                while let Some((at, check)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    checks.get(at).map(|check| (at, check))
                } {
                    tell(out, at, checks.len(), &check.command);
                    let tried = run(check);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, tried));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, tried)| tried).collect()
}

fn tell(out: &Output, at: usize, all: usize, command: &str) {
    if out.format == Format::Human {
        out.hint(&format!("[{}/{all}] {command}", at + 1));
    }
}

fn show(store: &mut Store, out: &Output, id: &TaskId) -> Result<ExitCode, Refusal> {
    out.show_list(&store.checks(id)?, |view| &view.checks, render::checks)
}
