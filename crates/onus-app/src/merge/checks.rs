//! Runs the checks of a task where its work is. What could not run has not passed.

use super::{Merge, step_envelope};
use crate::Onus;
use crate::progress::Progress;
use crate::submit::Target;
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::{Check, CheckState, Task};
use onus_core::text::is_unprintable;
use onus_core::time::Millis;
use onus_host::process::{CommandLine, Environment, Ran};
use onus_store::port::Store;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(5);
/// How much of an output is kept while a check runs, and how much of its end is shown.
const KEEP: usize = 64 * 1024;
const TAIL_LINES: usize = 12;
const TAIL_CHARS: usize = 1_200;

/// One run of one check.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckRunView {
    pub command: String,
    pub exit_code: Option<i32>,
    /// None where only the record of an earlier run is left.
    pub took_ms: Option<i64>,
}

impl CheckRunView {
    /// As the record of a merge tells it: nothing is merged over a failure.
    pub(super) fn passed(command: String) -> CheckRunView {
        CheckRunView { command, exit_code: Some(0), took_ms: None }
    }
}

/// The commands to run; one that no person has approved refuses the whole.
pub(super) fn approved(task: &Task) -> Result<Vec<String>, Refusal> {
    let checks = &task.spec.checks;
    let proposed = checks.iter().filter(|check| check.state == CheckState::Proposed);
    let finding = |check: &Check| {
        Finding::new(
            Code::CheckUnapproved,
            format!("`{}` is proposed; nobody has approved it", check.command),
        )
        .hint("a person approves or removes it")
    };
    match Refusal::from_findings(proposed.map(finding).collect()) {
        Some(refusal) => Err(refusal.task(&task.id)),
        None => Ok(checks.iter().map(|check| check.command.clone()).collect()),
    }
}

impl<S: Store> Onus<S> {
    /// Runs all of them, so that all failures are told at once.
    pub(super) fn run_checks(
        &mut self,
        call: &Merge<'_>,
        task: &Task,
        commands: &[String],
        directory: &Path,
        progress: &mut dyn Progress,
    ) -> Result<Vec<CheckRunView>, Refusal> {
        let environment = Environment::of_process().with("ONUS_TASK", task.id.to_string());
        let (mut runs, mut findings) = (Vec::with_capacity(commands.len()), Vec::new());
        let mut seen = Instant::now();
        for (n, command) in commands.iter().enumerate() {
            if let Some(held) = task.assignment()
                && seen.elapsed().as_millis() > u128::from(held.lease.ttl.0.unsigned_abs()) / 3
            {
                let name = format!("renew {n} {}", self.version(task)?);
                self.submit(&step_envelope(call, &name, Command::Renew { ttl: None })?, &Target::Named)?;
                seen = Instant::now();
            }
            progress.begin(&format!("checking: {command}"), Some(commands.len() as u64));
            progress.at(n as u64);
            let line = CommandLine {
                line: command,
                directory,
                environment: &environment,
                limit: LIMIT,
                grace: GRACE,
                keep: KEEP,
            };
            let ran = line.run();
            progress.end();
            match ran {
                Ok(ran) => {
                    findings.extend(failure(&task.id, command, &ran));
                    let took_ms = i64::try_from(ran.took.as_millis()).ok();
                    runs.push(CheckRunView { command: command.clone(), exit_code: ran.exit, took_ms });
                }
                Err(e) => findings
                    .push(Finding::new(Code::ChecksFailed, format!("`{command}` could not be run: {e}"))),
            }
        }
        Refusal::from_findings(findings).map_or(Ok(runs), |refusal| Err(refusal.task(&task.id)))
    }
}

fn failure(task: &TaskId, command: &str, ran: &Ran) -> Option<Finding> {
    if ran.succeeded() {
        return None;
    }
    let end = match (ran.timed_out, ran.exit, ran.signal) {
        (true, ..) => format!("was stopped at its limit of {}", shown(LIMIT)),
        (false, Some(code), _) => format!("ended with {code} after {}", shown(ran.took)),
        (false, None, Some(signal)) => format!("was ended by signal {signal} after {}", shown(ran.took)),
        (false, None, None) => "did not end".to_owned(),
    };
    let said = tail(&ran.output.text());
    let said = if said.is_empty() { "; it printed nothing".to_owned() } else { format!(":\n{said}") };
    Some(
        Finding::new(Code::ChecksFailed, format!("`{command}` {end}{said}"))
            .hint(format!("mend the cause, commit it, then onus merge {task}")),
    )
}

fn shown(time: Duration) -> Millis {
    Millis(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// The last lines, harmless for a terminal.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    let surplus = last.chars().count().saturating_sub(TAIL_CHARS);
    let visible = |c: char| if c != '\n' && is_unprintable(c) { '\u{fffd}' } else { c };
    last.chars().skip(surplus).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_shown_and_steers_no_terminal() {
        let long: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        let shown = tail(&long);
        assert!(shown.starts_with("line 89\n") && shown.ends_with("line 100"), "{shown}");
        assert_eq!(tail("a\u{1b}[2J\n\n"), "a\u{fffd}[2J");
        assert_eq!(tail(&"x".repeat(5_000)).chars().count(), TAIL_CHARS);
        assert_eq!(tail(""), "");
    }
}
