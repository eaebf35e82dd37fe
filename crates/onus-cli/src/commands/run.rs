//! `onus run`

mod conclude;
mod lease;
mod pick_up;
mod prompt;
mod recorder;
mod resume;
mod sandbox;

use super::claim::{PlaceArgs, made_ready};
use super::list::FilterArgs;
use super::task_id;
use crate::context::{Store, World};
use crate::output::{Format, Output};
use clap::Args;
use lease::GrantedLease;
use onus_app::clean_start::Earlier;
use onus_app::submit::{Receipt, Target};
use onus_app::usage::stream::StreamUsage;
use onus_core::agents::{Preset, SandboxSetting};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::constraint::has_network;
use onus_core::facts::Caller;
use onus_core::id::{Handle, PresetName, TaskId};
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use onus_core::worker::Kind;
use onus_host::presets;
use onus_host::supervise::{self, End, Heart, News, OutputPipes, Signals, SupervisedCommand};
use recorder::Recorder;
use resume::Resumed;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Work on a task with a command that lives exactly as long as the lease
///
/// Claims the task, starts the command in the workstation with the lease in its environment, renews, stops the command
/// when the lease is lost or cannot be renewed in time, and at the end runs the checks and completes the task, or gives
/// it back with a handoff. A limit of onus.yaml stops the command, too: then a person is asked. Exit codes: the command's
/// own where it failed (128 and the signal's number where one ended it), 4 lease lost, 5 stopped by a limit, 6 nothing
/// ready, 7 a check failed, 69 store unreachable.
#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    /// The task, e.g. API-12; without it the most important ready one
    #[arg(value_name = "TASK", value_parser = task_id, conflicts_with_all = ["next", "loop"])]
    task: Option<TaskId>,

    /// The most important ready task, which is the default
    #[arg(long)]
    next: bool,

    #[command(flatten)]
    filter: FilterArgs,

    #[command(flatten)]
    place: PlaceArgs,

    /// Go on with the next ready task until there is none, or until one could not be completed
    #[arg(long)]
    r#loop: bool,

    /// Give the task back with a handoff instead of completing it
    #[arg(long, conflicts_with = "loop")]
    no_complete: bool,

    /// What was done; default: the summary of the command's last handoff
    #[arg(long, value_name = "TEXT")]
    resolution: Option<String>,

    /// Run as the warden of a command, on this leash
    #[arg(long, hide = true, value_name = "FD")]
    warden: Option<i32>,

    /// Put the task in words for `{prompt}` in the command
    #[arg(long, hide = true)]
    prompt: bool,

    /// By which preset it is called: whose own session is resumed, where the last one of this worker on the task was interrupted
    #[arg(long, hide = true, value_name = "PRESET")]
    client: Option<PresetName>,

    /// Whom a task waits for that was begun too often
    #[arg(long, hide = true, value_name = "@HANDLE", value_parser = crate::cli::handle)]
    ask: Option<Handle>,

    /// End with this process, and pass nothing on: it is kept
    #[arg(long, hide = true, value_name = "PID")]
    follow: Option<i32>,

    /// What separates the command from the rest of the machine
    #[arg(long, hide = true, value_parser = |t: &str| super::word("a sandbox", t, SandboxSetting::parse, "none, bubblewrap, bubblewrap-network"))]
    sandbox: Option<SandboxSetting>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What became of one task.
#[derive(Debug, Serialize)]
struct Outcome {
    task: TaskId,
    outcome: &'static str,
    exit: u8,
    /// Why it was not completed.
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct RunView {
    runs: Vec<Outcome>,
}

/// What a claim came to.
enum Begun {
    Held(GrantedLease),
    Not(Outcome),
}

/// As a shell has it.
const CANNOT_START: u8 = 126;

impl RunCommand {
    pub(super) fn is_warden(&self) -> bool {
        self.warden.is_some()
    }

    pub(super) fn warden(&self) -> Result<ExitCode, Refusal> {
        supervise::warden(self.warden.unwrap_or_default(), &self.command).map(ExitCode::from)
    }

    pub(super) fn run(&self, world: &World, out: &mut Output) -> Result<ExitCode, Refusal> {
        let mut signals = Signals::watch().map_err(unexpected)?;
        if self.follow.is_some_and(|parent| !onus_host::fleet_lock::follow_parent(parent)) {
            return Err(unexpected("the supervisor is gone"));
        }
        let mut view = RunView { runs: Vec::new() };
        loop {
            let outcome = match self.one(world, out, &mut signals, view.runs.is_empty()) {
                Err(refusal) if refusal.code == Code::NothingReady && !view.runs.is_empty() => break,
                other => other?,
            };
            // A task that is open again would be the next one, for ever.
            let go_on =
                self.r#loop && outcome.exit == 0 && matches!(outcome.outcome, "completed" | "blocked");
            view.runs.push(outcome);
            if !go_on {
                break;
            }
        }
        let exit = view.runs.last().map_or(0, |last| last.exit);
        if out.format != Format::Human {
            out.show_list(&view, |view| &view.runs, |_| String::new())?;
        }
        Ok(ExitCode::from(exit))
    }

    fn one(
        &self,
        world: &World,
        out: &mut Output,
        signals: &mut Signals,
        first: bool,
    ) -> Result<Outcome, Refusal> {
        let mut store = world.open()?;
        let asked = Instant::now();
        let held = match self.claim(world, &mut store, out, first)? {
            Begun::Held(held) => held,
            Begun::Not(outcome) => return Ok(outcome),
        };
        let end = self.supervise(world, &mut store, out, signals, &held, asked);
        let (end, heart) = end.inspect_err(|_| held.give_back(world, "the command could not be started"))?;
        drop(store);
        let outcome = conclude::conclude(self, world, out, &held, end);
        // The lease is kept alive while checks run.
        drop(heart);
        outcome
    }

    /// The client that is called, where somebody says which.
    fn preset(&self, store: &Store) -> Result<Option<Preset>, Refusal> {
        let Some(name) = &self.client else { return Ok(None) };
        presets::with(&store.settings.presets)?.find(name).cloned().map(Some)
    }

    fn claim(&self, world: &World, store: &mut Store, out: &Output, first: bool) -> Result<Begun, Refusal> {
        if let Some(task) = &self.task
            && let Some((held, receipt, earlier)) = pick_up::picked_up(world, store, out, task, &self.place)?
        {
            if let Some(outcome) = self.make_ready(world, store, out, &held, (&receipt, earlier))? {
                return Ok(Begun::Not(outcome));
            }
            if let Err(refusal) =
                world.keep_lease(store, &receipt.task, &held.token, held.directory.as_deref())
            {
                out.warn(&refusal.to_string());
            }
            return Ok(Begun::Held(held));
        }
        let command = Command::Claim {
            workstation: self.place.workstation.clone(),
            here: self.place.here(world, store)?,
            assignee: None,
            ttl: self.place.ttl,
            warrant: Warrant::Ordinary,
            constraints: Vec::new(),
        };
        let target = if self.task.is_some() { Target::Named } else { Target::Next(self.filter.filter()) };
        let mut envelope = world.envelope(self.task.clone(), None, command)?;
        if !first {
            envelope = Envelope { request: world.another_request()?, ..envelope };
        }
        store.probe_before(&envelope)?;
        let receipt = store.submit(&envelope, &target)?;
        let held = GrantedLease::new(store, &receipt)?;
        if let Some(outcome) = self.make_ready(world, store, out, &held, (&receipt, Earlier::Leave))? {
            return Ok(Begun::Not(outcome));
        }
        if let Err(refusal) = world.keep_lease(store, &receipt.task, &held.token, held.directory.as_deref()) {
            out.warn(&refusal.to_string());
        }
        out.hint(&format!("{}: {} in {}", held.task, receipt.task.spec.title, held.workstation));
        Ok(Begun::Held(held))
    }

    /// Nothing is started among what somebody else left: what became of the task instead, where it came to that.
    fn make_ready(
        &self,
        world: &World,
        store: &mut Store,
        out: &Output,
        held: &GrantedLease,
        (receipt, earlier): (&Receipt, Earlier),
    ) -> Result<Option<Outcome>, Refusal> {
        match made_ready(world, store, out, receipt, earlier) {
            Ok(()) => Ok(None),
            Err(refusal) => {
                conclude::give_back(self.ask.as_ref(), world, out, held, CANNOT_START, refusal.detail)
                    .map(Some)
            }
        }
    }

    fn supervise(
        &self,
        world: &World,
        store: &mut Store,
        out: &Output,
        signals: &mut Signals,
        held: &GrantedLease,
        asked: Instant,
    ) -> Result<(End, Heart), Refusal> {
        let environment = environment(world, store, held)?;
        let program = std::env::current_exe().map_err(unexpected)?.into_os_string();
        let warden = [program, "run".into(), "--warden".into()];
        let preset = self.preset(store)?;
        let resumed = match &preset {
            Some(preset) => resume::found(store, held, preset)?,
            None => Resumed::default(),
        };
        let command = resumed.command.as_ref().unwrap_or(&self.command);
        let command = if self.prompt { prompt::worded(store, held, command)? } else { command.clone() };
        let command = confined(world, store, held, self.sandbox.unwrap_or_default(), command)?;
        let first = held.next_look(store);
        let mut heart = Heart::start(asked, held.ttl, first, held.renewing(world)).map_err(unexpected)?;
        let mut output = None;
        let stream = StreamUsage::of(preset.and_then(|preset| preset.transcript), resumed.counted);
        let known = (environment.as_slice(), stream, heart.nudge());
        let recorder = self.recorder(world, store, out, held, known, &mut output)?;
        let order = SupervisedCommand {
            warden: &warden,
            command: &command,
            directory: held.directory.as_deref().unwrap_or(&world.place.cwd),
            environment: &environment,
            output,
        };
        let title = Title::of(held, out);
        title.show(held.ttl, 0);
        let end = supervise::supervise(order, &mut heart, signals, &mut |news| match news {
            News::Born { process } => held.attended_by(world, process),
            News::Renewed { left, renewals } => title.show(left, renewals),
            News::Late { left, why } => {
                let left = span(left);
                out.warn(&format!("{} could not be renewed, {left} left: {}", held.task, why.detail));
            }
            News::Stopping { why } => out.warn(&format!("the command on {} is stopped: {why}", held.task)),
        });
        title.clear();
        if let Some(recorder) = recorder {
            recorder.finish(world, out, held);
        }
        Ok((end.map_err(unexpected)?, heart))
    }

    /// Keeps what the command prints, unless a person watches it on a terminal: that stays the command's own.
    fn recorder(
        &self,
        world: &World,
        store: &Store,
        out: &Output,
        held: &GrantedLease,
        (environment, stream, nudge): (&[(&'static str, OsString)], StreamUsage, Sender<()>),
        output: &mut Option<OutputPipes>,
    ) -> Result<Option<Recorder>, Refusal> {
        let settings = &store.settings.run;
        // What nobody watches goes nowhere else: its words may hold secrets.
        let is_watched = self.follow.is_none();
        if is_watched && (settings.keep == 0 || std::io::stdout().is_terminal()) {
            return Ok(None);
        }
        let secrets = recorder::secrets(world, held, environment);
        let started = Recorder::start(world, held, settings, secrets, (is_watched, stream), nudge);
        match started {
            Ok((recorder, pipes)) => {
                *output = Some(pipes);
                Ok(Some(recorder))
            }
            Err(error) => {
                out.warn(&format!("the output cannot be kept: {error}"));
                Ok(None)
            }
        }
    }
}

/// The command as the assignment and its settings allow it. A sandbox of its own takes the network away by itself.
fn confined(
    world: &World,
    store: &Store,
    held: &GrantedLease,
    sandbox: SandboxSetting,
    command: Vec<OsString>,
) -> Result<Vec<OsString>, Refusal> {
    match (sandbox, has_network(&held.constraints)) {
        (SandboxSetting::None, true) => Ok(command),
        (SandboxSetting::None, false) => Ok(supervise::without_network(&command)),
        (_, true) => sandbox::enclosed(world, store, held, sandbox, command),
        (_, false) => sandbox::enclosed(world, store, held, SandboxSetting::Bubblewrap, command),
    }
}

/// What the command needs to be the holder, and to be known as such in git.
fn environment(
    world: &World,
    store: &mut Store,
    held: &GrantedLease,
) -> Result<Vec<(&'static str, OsString)>, Refusal> {
    let mut pairs = vec![
        ("ONUS_TASK", held.task.to_string().into()),
        ("ONUS_AS", held.worker.to_string().into()),
        ("ONUS_LEASE", held.token.to_string().into()),
        ("ONUS_WORKSTATION", held.workstation.to_string().into()),
        ("ONUS_STORE", world.location.url()),
    ];
    // A person has a name in git already.
    if let Caller::Registered(worker) = store.caller(Some(&held.worker))?
        && worker.kind == Kind::Agent
    {
        let name = held.worker.as_str().trim_start_matches('@');
        let email = format!("{name}@agents.invalid");
        pairs.extend([("GIT_AUTHOR_NAME", name.into()), ("GIT_COMMITTER_NAME", name.into())]);
        pairs.extend([("GIT_AUTHOR_EMAIL", email.clone().into()), ("GIT_COMMITTER_EMAIL", email.into())]);
    }
    Ok(pairs)
}

/// The state of the lease, where it disturbs no output: in the title of the terminal.
struct Title {
    task: Option<TaskId>,
}

impl Title {
    fn of(held: &GrantedLease, out: &Output) -> Title {
        let shown = out.format == Format::Human && !out.quiet && std::io::stderr().is_terminal();
        Title { task: shown.then(|| held.task.clone()) }
    }

    fn show(&self, left: Duration, renewals: u64) {
        if let Some(task) = &self.task {
            write_title(&format!("onus {task} · lease {} · renewed {renewals} times", span(left)));
        }
    }

    fn clear(&self) {
        if self.task.is_some() {
            write_title("");
        }
    }
}

fn write_title(text: &str) {
    drop(write!(std::io::stderr(), "\u{1b}]0;{text}\u{7}"));
}

fn span(left: Duration) -> Millis {
    Millis(i64::try_from(left.as_secs()).unwrap_or(i64::MAX / 1_000) * 1_000)
}

fn unexpected(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}
