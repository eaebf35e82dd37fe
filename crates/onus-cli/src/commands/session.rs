//! `onus session`

use super::list::LimitArg;
use super::{LeaseArg, TaskArg, file_error, show_change, submit, submit_as_holder, task_id};
use crate::cli::handle;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::submit::ReceiptKind;
use onus_app::usage::{Reporter, Sample, otel, transcript};
use onus_core::amount::Amount;
use onus_core::command::Command;
use onus_core::id::{Handle, TaskId};
use onus_core::refusal::Refusal;
use onus_core::session::{Counts, Usage as Used};
use onus_core::time::{Millis, Timestamp};
use onus_host::zone;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Stretches of work: who, where, on what, from when until when
///
/// Claim, unblock and takeover start one; complete, release, block and takeover end it. It lasts whole seconds.
#[derive(Debug, Args)]
pub(crate) struct Session {
    #[command(subcommand)]
    verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
enum SessionVerb {
    /// Go on working on a task that you hold
    Start(SessionHolder),
    /// Rest from a task and keep holding it: no time is counted until `session start`
    Stop(SessionHolder),
    List(ListSessions),
    Correct(Correct),
    Usage(Usage),
}

#[derive(Debug, Args)]
struct SessionHolder {
    #[command(flatten)]
    task: TaskArg,

    #[command(flatten)]
    lease: LeaseArg,
}

/// Sessions, the latest first
#[derive(Debug, Args)]
struct ListSessions {
    /// Only sessions of this task
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    task: Option<TaskId>,

    /// Only sessions of this worker
    #[arg(long, value_name = "@HANDLE", value_parser = handle)]
    worker: Option<Handle>,

    #[command(flatten)]
    limit: LimitArg,
}

/// Say when a session really was: people only, with a reason
///
/// The session's own record stays as it is; what you say is a new fact beside it, and counts from now on. Times without
/// an offset are in the zone of the worker whose session it is.
#[derive(Debug, Args)]
struct Correct {
    /// The session's number, as `session list` shows it
    #[arg(value_name = "SESSION")]
    session: i64,

    /// When it began, e.g. 2026-11-16T09:00; default: as recorded
    #[arg(long, value_name = "TIME")]
    start: Option<String>,

    /// When it ended; default: as recorded
    #[arg(long, value_name = "TIME", conflicts_with = "duration")]
    end: Option<String>,

    /// How long it lasted, instead of its end: 1h30m
    #[arg(long, value_name = "DURATION", value_parser = |t: &str| Millis::parse(t))]
    duration: Option<Millis>,

    /// Why; goes into the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Record tokens and cost of your sessions on a task
///
/// From a record of the agent itself, each sample goes to the session in which it was taken; reading a record again, also
/// one that has grown, counts nothing twice. Other agents report their numbers with the flags.
#[derive(Debug, Args)]
struct Usage {
    #[command(flatten)]
    task: TaskArg,

    /// A Claude Code transcript (JSON lines)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_otel", "input_tokens", "output_tokens"])]
    from_transcript: Option<PathBuf>,

    /// OpenTelemetry logs or metrics as OTLP JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input_tokens", "output_tokens"])]
    from_otel: Option<PathBuf>,

    /// Whose sessions; default: yours. People only
    #[arg(long, value_name = "@HANDLE", value_parser = handle)]
    worker: Option<Handle>,

    /// Which session, for numbers given as flags; default: the last one
    #[arg(long, value_name = "SESSION")]
    session: Option<i64>,

    /// Tokens that the model read
    #[arg(long, value_name = "N", default_value_t = 0)]
    input_tokens: i64,

    /// Tokens that the model wrote
    #[arg(long, value_name = "N", default_value_t = 0)]
    output_tokens: i64,

    /// Tokens that it read from its cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    cache_read_tokens: i64,

    /// Tokens that it put into its cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    cache_creation_tokens: i64,

    /// What it cost, in the currency of onus.yaml, e.g. 0.0125
    #[arg(long, value_name = "AMOUNT", value_parser = |t: &str| Amount::parse(t))]
    cost: Option<Amount>,

    /// Answers of the model
    #[arg(long, value_name = "N", default_value_t = 0)]
    turns: i64,

    /// The model that was used, as its provider names it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Names the record: numbers under the same key replace the earlier ones and may only grow
    #[arg(long, value_name = "TEXT", default_value = "reported")]
    key: String,
}

impl Session {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        match &self.verb {
            SessionVerb::Start(holder) => holder.run(world, out, Command::StartSession, "session runs"),
            SessionVerb::Stop(holder) => holder.run(world, out, Command::StopSession, "session stopped"),
            SessionVerb::List(list) => {
                let mut store = world.open()?;
                let limit = list.limit.or(store.settings.queue.limit);
                let view = store.sessions(list.task.as_ref(), list.worker.as_ref(), limit)?;
                out.show_list(&view, |view| &view.sessions, render::sessions)
            }
            SessionVerb::Correct(correct) => correct.run(world, out),
            SessionVerb::Usage(usage) => usage.run(world, out),
        }
    }
}

impl SessionHolder {
    fn run(&self, world: &World, out: &Output, command: Command, said: &str) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let receipt = submit_as_holder(world, &mut store, &self.task.task, &self.lease, command)?;
        let said = if receipt.kind == ReceiptKind::Existing { &format!("{said} already") } else { said };
        show_change(out, &receipt, said)
    }
}

impl Correct {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let found = store.session(self.session)?;
        let zone = store.zone_of(Some(&found.worker))?;
        let moment = |text: &Option<String>, default: Timestamp| match text {
            Some(text) => zone::moment(&zone, text).map_err(Refusal::invalid),
            None => Ok(default),
        };
        let started_at = moment(&self.start, found.started_at)?;
        let ended_at = match self.duration {
            Some(duration) => started_at.plus(duration),
            None => moment(&self.end, found.ended_at.unwrap_or(found.started_at))?,
        };
        let reason = self.reason.clone();
        let command = Command::CorrectSession { session: found.id, started_at, ended_at, reason };
        submit(world, &mut store, &found.task, None, command)?;
        let view = onus_app::session::SessionsView { sessions: vec![store.session(found.id)?] };
        out.show(&view, render::sessions)
    }
}

impl Usage {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let request = world.request()?;
        let reporter = Reporter {
            request: &request,
            actor: world.actor.as_ref(),
            task: &self.task.task,
            worker: self.worker.as_ref(),
        };
        let view = match (&self.from_transcript, &self.from_otel) {
            (Some(path), _) => {
                let samples =
                    transcript::read(BufReader::new(open(path)?)).map_err(|e| unreadable(path, &e))?;
                store.import_usage(&reporter, transcript::SOURCE, &samples)?
            }
            (None, Some(path)) => {
                let mut samples =
                    otel::read(BufReader::new(open(path)?)).map_err(|e| unreadable(path, &e))?;
                if store.settings.effort.currency != "USD" {
                    without_cost(&mut samples);
                    out.warn(
                        "the record's costs are in USD and onus.yaml counts in another currency: left out",
                    );
                }
                store.import_usage(&reporter, otel::SOURCE, &samples)?
            }
            (None, None) => store.report_usage(&reporter, self.session, self.reported())?,
        };
        out.show_list(&view, |view| &view.recorded, render::usage)
    }

    fn reported(&self) -> Used {
        Used {
            key: self.key.clone(),
            source: "reported".into(),
            model: self.model.clone(),
            counts: Counts {
                input_tokens: self.input_tokens,
                output_tokens: self.output_tokens,
                cache_read_tokens: self.cache_read_tokens,
                cache_creation_tokens: self.cache_creation_tokens,
                cost_micros: self.cost.map(|cost| cost.0),
                turns: self.turns,
            },
        }
    }
}

/// Without its cost a sample may say nothing at all.
fn without_cost(samples: &mut Vec<Sample>) {
    samples.iter_mut().for_each(|sample| sample.counts.cost_micros = None);
    samples.retain(|sample| sample.counts != Counts::default());
}

fn open(path: &Path) -> Result<File, Refusal> {
    File::open(path).map_err(|error| file_error(path, &error))
}

fn unreadable(path: &Path, error: &str) -> Refusal {
    Refusal::invalid(format!("{}: {error}", path.display()))
}
