//! `onus report`

use super::export::Target;
use super::{TaskArg, file_error, task_id, word};
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::report::{AuditKind, AuditView, When, csv};
use onus_core::code::Code;
use onus_core::id::{Seq, TaskId};
use onus_core::refusal::Refusal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const KINDS: &str =
    "grant, outside_policy, forced, refusal, exception, quarantine, token, time, generation, milestone";

/// The record and the queue, told for people who decide
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(subcommand)]
    verb: ReportVerb,
}

#[derive(Debug, Subcommand)]
enum ReportVerb {
    Now(Now),
    Sprint(Sprint),
    Incident(Incident),
    Audit(Audit),
    Anomalies(Anomalies),
    Limits(Limits),
}

/// What was completed since yesterday evening, what is stuck and why, and what needs a person
#[derive(Debug, Args)]
struct Now {
    /// Since when: a day, a moment, or how long ago, e.g. 2026-11-16T18:00 or 12h; default: 14h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
}

/// Tasks per worker, workstation, type, state and sprint; throughput and lost leases
#[derive(Debug, Args)]
struct Sprint {
    /// Only this sprint; default: all of them
    #[arg(value_name = "SPRINT")]
    sprint: Option<String>,
}

/// Who ran a task, where, under which version of the identity map, was it within policy; its time line
#[derive(Debug, Args)]
struct Incident {
    #[command(flatten)]
    task: TaskArg,

    /// Only what happened after this entry: where an earlier answer ended
    #[arg(long, value_name = "ENTRY")]
    after: Option<Seq>,
}

/// Grants, acts by force, refusals, exceptions, quarantines and grants outside the policy
#[derive(Debug, Args)]
struct Audit {
    #[command(flatten)]
    period: Period,

    /// Only these kinds: grant, outside_policy, forced, refusal, exception, quarantine, token, time, generation,
    /// milestone
    #[arg(long, value_name = "KINDS", value_delimiter = ',',
          value_parser = |t: &str| word("a kind", t, AuditKind::parse, KINDS))]
    only: Vec<AuditKind>,

    /// Write comma-separated values to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,
}

/// What is worth a second look: lost leases, bouncing tasks, forced or unproven completions, silent work, drift
#[derive(Debug, Args)]
struct Anomalies {
    #[command(flatten)]
    period: Period,
}

/// What agents have used of what they may: today, in the sprints that somebody works for, or of one task
#[derive(Debug, Args)]
struct Limits {
    /// Only those that this task is under
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    task: Option<TaskId>,
}

/// Which stretch of time, in your own zone.
#[derive(Debug, Args)]
struct Period {
    /// A day, a moment, or how long ago: 2026-11-16, 2026-11-16T18:00, 7d
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Likewise; a day counts to its end. Default: now
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

impl Period {
    fn when(&self) -> When {
        When { since: self.since.clone(), until: self.until.clone() }
    }
}

impl Report {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let actor = world.actor.as_ref();
        match &self.verb {
            ReportVerb::Now(now) => {
                let when = When { since: now.since.clone(), until: None };
                out.show(&store.report_now(actor, &when)?, render::now)
            }
            ReportVerb::Sprint(sprint) => {
                out.show(&store.report_sprint(actor, sprint.sprint.as_deref())?, render::sprint)
            }
            ReportVerb::Incident(incident) => {
                let task = &incident.task.task;
                let view = store.report_incident(task, incident.after)?;
                let code = out.show(&view, render::incident)?;
                if let Some(next) = view.next {
                    out.hint(&format!("there is more: onus report incident {task} --after {next}"));
                }
                Ok(code)
            }
            ReportVerb::Audit(audit) => {
                let view = store.report_audit(actor, &audit.period.when(), &audit.only)?;
                if view.more {
                    out.warn("there is more than one answer holds: name a shorter stretch with --since and --until");
                }
                match &audit.csv {
                    Some(file) => write_csv(file, &view),
                    None => out.show_list(&view, |view| &view.lines, render::audit),
                }
            }
            ReportVerb::Anomalies(anomalies) => {
                let view = store.report_anomalies(actor, &anomalies.period.when())?;
                out.show_list(&view, |view| &view.anomalies, render::anomalies)
            }
            ReportVerb::Limits(limits) => {
                out.show_list(&store.limits(limits.task.as_ref())?, |view| &view.limits, render::limits)
            }
        }
    }
}

fn write_csv(file: &Path, view: &AuditView) -> Result<ExitCode, Refusal> {
    let bytes = csv(view).map_err(|error| Refusal::new(Code::Internal, error))?;
    Target::new(file).write(|writer| writer.write_all(&bytes).map_err(|error| file_error(file, &error)))?;
    Ok(ExitCode::SUCCESS)
}
