//! `onus fleet`

mod page;
mod supervisor;

use crate::cli::handle;
use crate::context::{Store, World};
use crate::output::{Format, Output};
use crate::render;
use crate::shutdown::Ending;
use clap::{Args, Subcommand};
use onus_app::fleet::FleetView;
use onus_core::agents::{Agent, agents, workers};
use onus_core::code::Code;
use onus_core::event::WorkerAdded;
use onus_core::id::{Handle, PresetName};
use onus_core::refusal::Refusal;
use onus_core::registry::person;
use onus_core::settings::Settings;
use onus_core::worker::Kind;
use onus_host::env::Env;
use onus_host::fleet_lock::{self, Word};
use onus_host::presets;
use onus_host::terminal::Keys;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use supervisor::Until;

/// How long `up --detach` and `down` wait for what they asked for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// Agents that Onus starts, watches and ends: `agents` in onus.yaml
#[derive(Debug, Args)]
pub(crate) struct FleetCommand {
    #[command(subcommand)]
    verb: FleetVerb,
}

#[derive(Debug, Subcommand)]
enum FleetVerb {
    Init(FleetInit),
    /// Start the agents and look after them until interrupted: people only
    Up {
        /// Go on in the background
        #[arg(long, conflicts_with = "until_idle")]
        detach: bool,

        /// End when nobody works and nothing is left that one of them could begin
        #[arg(long)]
        until_idle: bool,
    },
    /// Who works on what, since when, under which lease, and what it said last
    ///
    /// At a terminal a page that changes with it, and shows what one of them prints, until `q`. Anywhere else the table, once.
    Status {
        /// Where this is no terminal: the table again whenever something has changed, until interrupted
        #[arg(long, short, conflicts_with = "once")]
        watch: bool,

        /// The table once, at a terminal as well
        #[arg(long)]
        once: bool,
    },
    /// Follow what an agent prints: the same as `onus logs -f`
    Attach {
        /// The agent, e.g. @claude-1
        #[arg(value_name = "@WORKER", value_parser = handle)]
        worker: Handle,
    },
    /// Let an agent finish its task and give it no other one, until the next `up`
    Stop {
        /// The agent, e.g. @claude-1
        #[arg(value_name = "@WORKER", value_parser = handle, required_unless_present = "all")]
        worker: Option<Handle>,

        /// All of them
        #[arg(long, conflicts_with = "worker")]
        all: bool,

        /// End what runs, too: its task is given back
        #[arg(long)]
        now: bool,
    },
    /// End the supervisor and every agent: their tasks are given back
    Down,
}

/// Write agents into onus.yaml, and register them with a worktree each: people only
#[derive(Debug, Args)]
struct FleetInit {
    /// claude, codex, gemini, opencode, shell, or one of `presets` in onus.yaml
    #[arg(long, value_name = "PRESET")]
    preset: PresetName,

    /// How many of them
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=200))]
    count: u16,

    /// What they are called; default: @PRESET-1, @PRESET-2, …
    #[arg(long, value_name = "@STEM")]
    worker: Option<String>,

    /// The line of a shell agent
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FleetUpView {
    agents: Vec<Handle>,
    supervisor: Option<i32>,
}

impl FleetCommand {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        match &self.verb {
            FleetVerb::Init(init) => init.run(world, out),
            FleetVerb::Up { detach: true, .. } => detach(world, out),
            FleetVerb::Up { until_idle: true, .. } => supervisor::run(world, out, Until::Idle),
            FleetVerb::Up { .. } => supervisor::run(world, out, Until::Told),
            FleetVerb::Status { watch, once } => show_status(world, out, *watch, *once),
            FleetVerb::Attach { worker } => super::logs::Logs::attached(worker).run(world, out),
            FleetVerb::Stop { worker, now, .. } => stop(world, out, worker.as_ref(), *now),
            FleetVerb::Down => down(world, out),
        }
    }
}

/// Where the supervisor of this workspace keeps its lock on this host, whatever clone it was started in.
fn directory(store: &mut Store) -> Result<PathBuf, Refusal> {
    Ok(Env::of_process().fleets()?.join(store.workspace_uid()?))
}

/// What a supervisor was started for: without it there is nobody to look after.
fn home(world: &World) -> &Path {
    world.place.repo.as_ref().map_or(&world.place.cwd, |repo| &repo.common_dir)
}

/// The agents that the settings name.
fn named(settings: &Settings) -> Result<Vec<Agent>, Refusal> {
    // Most repositories have none: then no preset is read.
    if settings.agents.is_empty() {
        return Ok(Vec::new());
    }
    agents(&settings.agents, &presets::with(&settings.presets)?)
}

fn planned(store: &Store) -> Result<Vec<Agent>, Refusal> {
    let all = named(&store.settings)?;
    if all.is_empty() {
        return Err(
            Refusal::invalid("onus.yaml names no agents").hint("onus fleet init --preset claude --count 3")
        );
    }
    Ok(all)
}

/// Registers what the settings name and the store does not know yet.
fn register(world: &World, store: &mut Store, all: &[Agent]) -> Result<(), Refusal> {
    person(&store.caller(world.actor.as_ref())?)?;
    let known: BTreeSet<Handle> = store.workers(None)?.workers.into_iter().map(|one| one.handle).collect();
    for agent in all {
        if !known.contains(&agent.worker) {
            let wanted = WorkerAdded {
                handle: agent.worker.clone(),
                kind: Kind::Agent,
                tier: agent.tier.clone(),
                role: agent.role.clone(),
                tz: "UTC".into(),
            };
            store.add_worker(world.asker(&world.another_request()?), &wanted)?;
        }
        if store.find_workstation(&agent.workstation)?.is_none() {
            add_worktree(world, agent)?;
        }
    }
    Ok(())
}

/// By the verb that people use.
fn add_worktree(world: &World, agent: &Agent) -> Result<(), Refusal> {
    let name = agent.workstation.to_string();
    let mut add = own_program(world)?;
    add.args(["workstation", "add", &name, "--kind", "worktree", "-q"]);
    let said = add.stdin(Stdio::null()).output().map_err(unexpected)?;
    if said.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    Err(Refusal::invalid(format!("the worktree {name} was not made: {words}")))
}

/// This program, as the same person at the same store.
fn own_program(world: &World) -> Result<Command, Refusal> {
    let mut command = Command::new(std::env::current_exe().map_err(unexpected)?);
    command.env("ONUS_STORE", world.location.url());
    if let Some(actor) = &world.actor {
        command.env("ONUS_AS", actor.as_str());
    }
    Ok(command)
}

impl FleetInit {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        person(&store.caller(world.actor.as_ref())?)?;
        if !store.settings.agents.is_empty() {
            return Err(
                Refusal::invalid("onus.yaml has agents already").hint("edit them there, then: onus fleet up")
            );
        }
        let file = world.place.settings_file();
        let before = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| super::file_error(&file, &error))?,
        };
        let stem = self.worker.clone().unwrap_or_else(|| format!("@{}", self.preset));
        let mut line = serde_json::json!({
            "worker": format!("{stem}-*"),
            "preset": self.preset,
            "count": self.count,
        });
        if !self.command.is_empty() {
            line["command"] = serde_json::json!(self.command);
        }
        let break_ = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let after = format!("{before}{break_}agents:\n  - {line}\n");
        let settings = onus_host::settings::parse(after.as_bytes(), "onus.yaml")?;
        let all = self::named(&settings)?;
        register(world, &mut store, &all)?;
        std::fs::write(&file, after).map_err(|error| super::file_error(&file, &error))?;
        let view =
            FleetUpView { agents: all.into_iter().map(|agent| agent.worker).collect(), supervisor: None };
        let code = out.show(&view, |view| {
            let names: Vec<String> = view.agents.iter().map(ToString::to_string).collect();
            format!("{} agents, a worktree each: {}\n", names.len(), names.join(", "))
        })?;
        out.hint("next: onus add TITLE, then onus fleet up");
        Ok(code)
    }
}

fn status(world: &World) -> Result<FleetView, Refusal> {
    let mut store = world.open()?;
    let agents = workers(&store.settings.agents)?;
    let mut view = store.fleet_status(&agents)?;
    let dir = directory(&mut store)?;
    view.supervisor = fleet_lock::supervisor(&dir)?.map(|found| found.pid);
    if view.supervisor.is_some() {
        for (file, state) in [(STOPPED, "stopped"), (WAITING, "backing_off")] {
            let names = names_in(&dir, file);
            let idle = view.agents.iter_mut().filter(|agent| agent.state == "idle");
            idle.filter(|agent| names.contains(agent.worker.as_str()))
                .for_each(|agent| agent.state = state.into());
        }
    }
    Ok(view)
}

fn show_status(world: &World, out: &Output, watch: bool, once: bool) -> Result<ExitCode, Refusal> {
    let is_page = out.format == Format::Human && !out.quiet && !once && std::io::stdout().is_terminal();
    let keys = if is_page { Keys::listen().map_err(unexpected)? } else { None };
    let view = match keys {
        Some(keys) => page::watch(world, out, &keys)?,
        None if watch => return watch_status(world, out),
        None => status(world)?,
    };
    out.show_list(&view, |view: &FleetView| &view.agents, render::fleet)
}

/// How often it is looked at.
const REFRESH: Duration = Duration::from_secs(1);

/// What happened, one table after the other.
fn watch_status(world: &World, out: &Output) -> Result<ExitCode, Refusal> {
    let mut ending = Ending::watch()?;
    let mut shown = String::new();
    loop {
        let view = status(world)?;
        let now = onus_app::view::document(&view)?;
        if now != shown {
            out.show_list(&view, |view: &FleetView| &view.agents, render::fleet)?;
            shown = now;
        }
        if ending.within(REFRESH) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// What the supervisor's own words are kept under.
const SUPERVISOR: &str = "supervisor";

fn detach(world: &World, out: &Output) -> Result<ExitCode, Refusal> {
    // What it would end with is told here, not in its log.
    let mut store = world.open()?;
    supervisor::startable(world, &store)?;
    let dir = directory(&mut store)?;
    drop(store);
    let mut up = own_program(world)?;
    up.args(["fleet", "up"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(&dir, SUPERVISOR)?);
    std::os::unix::process::CommandExt::process_group(&mut up, 0);
    let mut child = up.spawn().map_err(unexpected)?;
    let until = Instant::now() + PATIENCE;
    loop {
        let own = i32::try_from(child.id()).ok();
        if fleet_lock::supervisor(&dir)?.is_some_and(|found| Some(found.pid) == own) {
            let view = FleetUpView { agents: Vec::new(), supervisor: own };
            return out
                .show(&view, |_| "the supervisor runs; onus fleet status, onus fleet down\n".to_owned());
        }
        if child.try_wait().map_err(unexpected)?.is_some() || Instant::now() > until {
            let words = std::fs::read_to_string(dir.join(format!("{SUPERVISOR}.log"))).unwrap_or_default();
            return Err(Refusal::new(
                Code::WrongState,
                format!("the supervisor did not start: {}", words.trim()),
            ));
        }
        std::thread::sleep(LOOK);
    }
}

/// The agents that get no work, as `stop` left them; those whom `stop --now` ends; those that wait because they failed.
const STOPPED: &str = "stopped";
const ENDED: &str = "ended";
const WAITING: &str = "waiting";

fn names_in(dir: &Path, file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(dir.join(file)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn write_names(dir: &Path, file: &str, names: &BTreeSet<String>) -> Result<(), Refusal> {
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    let path = dir.join(file);
    std::fs::write(&path, text).map_err(|error| super::file_error(&path, &error))
}

/// What a process that nobody watches told last.
fn log(dir: &Path, name: &str) -> Result<File, Refusal> {
    let path = dir.join(format!("{name}.log"));
    std::fs::create_dir_all(dir)
        .and_then(|()| File::create(&path))
        .map_err(|error| super::file_error(&path, &error))
}

fn stop(world: &World, out: &Output, worker: Option<&Handle>, now: bool) -> Result<ExitCode, Refusal> {
    let mut store = world.open()?;
    let dir = directory(&mut store)?;
    let all = planned(&store)?;
    drop(store);
    let wanted: Vec<String> = all
        .iter()
        .map(|agent| agent.worker.to_string())
        .filter(|one| worker.is_none_or(|only| one == only.as_str()))
        .collect();
    if wanted.is_empty() {
        let who = worker.map(ToString::to_string).unwrap_or_default();
        return Err(Refusal::new(Code::UnknownName, format!("{who} is no agent of onus.yaml"))
            .hint("onus fleet status"));
    }
    if fleet_lock::supervisor(&dir)?.is_none() {
        return Err(not_up());
    }
    let wanted: BTreeSet<String> = wanted.into_iter().collect();
    let mut names = names_in(&dir, STOPPED);
    names.extend(wanted.iter().cloned());
    write_names(&dir, STOPPED, &names)?;
    if now {
        write_names(&dir, ENDED, &wanted)?;
    }
    fleet_lock::tell(&dir, Word::Look)?;
    let shown: Vec<&str> = wanted.iter().map(String::as_str).collect();
    out.show(&serde_json::json!({ "stopped": shown }), |_| format!("stopped: {}\n", shown.join(", ")))
}

fn down(world: &World, out: &Output) -> Result<ExitCode, Refusal> {
    let dir = directory(&mut world.open()?)?;
    if !fleet_lock::tell(&dir, Word::End)? {
        return Err(not_up());
    }
    let until = Instant::now() + PATIENCE;
    while fleet_lock::supervisor(&dir)?.is_some() {
        if Instant::now() > until {
            return Err(Refusal::new(Code::WrongState, "the supervisor still waits for an agent to end")
                .hint("onus fleet status"));
        }
        std::thread::sleep(LOOK);
    }
    out.show(&serde_json::json!({ "down": true }), |_| "the supervisor has ended\n".to_owned())
}

fn not_up() -> Refusal {
    Refusal::new(Code::WrongState, "no supervisor runs for this workspace on this host").hint("onus fleet up")
}

fn unexpected(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}
