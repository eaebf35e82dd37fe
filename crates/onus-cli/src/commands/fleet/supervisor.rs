//! The supervisor: one for each workspace and host. It gives every free agent a task and runs it as `onus run` does; when it goes,
//! whatever way, its agents go with it.

use super::{
    ENDED, STOPPED, WAITING, directory, home, log, names_in, own_program, planned, register, unexpected,
    write_names,
};
use crate::commands::dispatch::dispatched;
use crate::context::{Store, World};
use crate::output::Output;
use crate::shutdown::Ending;
use onus_app::dispatch::{Mode, Round};
use onus_app::merge::is_offered;
use onus_app::view::HeldView;
use onus_core::agents::{Agent, SandboxSetting, StoreReach, refuse_cut_off};
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::identity_map::Policy;
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use onus_host::fleet_lock::{self, FleetLock};
use onus_store::location::Location;
use onus_store::read::queue::Filter;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// An agent that fails waits so long, then twice as long, and so on.
const BACK_OFF: Duration = Duration::from_secs(1);
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// What nobody could begin is offered again after this time, or when something has changed.
const OFFER_AGAIN: Duration = Duration::from_secs(15);
/// The client is not there, or cannot be started: to try again soon helps nobody.
const CANNOT_START: [i32; 2] = [126, 127];

/// What is said of work whose agent has ended before it could be completed.
const DONE: &str = "done, and merged after it was looked at";

/// When the supervisor ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Told,
    /// Nobody works, and nothing is left that one of them could begin.
    Idle,
}

/// What wakes the supervisor.
enum Wake {
    /// An agent's run has ended, with this code.
    Ended(usize, Option<i32>),
    Look,
    /// What waits was looked after.
    Attended,
    End,
}

struct AgentSeat {
    agent: Agent,
    /// Its run, while there is one.
    pid: Option<u32>,
    failures: u32,
    not_before: Instant,
}

/// What an agent is started for.
enum Work {
    Next(WorkstationName),
    Given(TaskId, WorkstationName),
}

pub(super) fn run(world: &World, out: &Output, until: Until) -> Result<ExitCode, Refusal> {
    let mut store = world.open()?;
    let dir = directory(&mut store)?;
    let all = startable(world, &store)?;
    let person = world.identity()?.clone();
    let Some(_lock) = FleetLock::take(&dir, home(world))? else {
        let place = fleet_lock::supervisor(&dir)?.map(|other| format!(", in {}", other.place));
        let detail = "a supervisor runs for this workspace on this host already";
        return Err(Refusal::new(Code::WrongState, format!("{detail}{}", place.unwrap_or_default()))
            .hint("onus fleet status, onus fleet down"));
    };
    register(world, &mut store, &all)?;
    drop(store);
    for file in [STOPPED, ENDED, WAITING] {
        drop(std::fs::remove_file(dir.join(file)));
    }
    let (tell, woken) = channel();
    watch(&tell)?;
    let now = Instant::now();
    let seats =
        all.into_iter().map(|agent| AgentSeat { agent, pid: None, failures: 0, not_before: now }).collect();
    let mut supervisor = Supervisor {
        world,
        out,
        dir,
        person,
        seats,
        tell,
        until,
        interval: Duration::from_secs(1),
        poll: Duration::from_secs(3_600),
        ready: Vec::new(),
        refused: None,
        waiting: BTreeSet::new(),
        offers_due: now,
        attended: BTreeSet::new(),
        told: None,
    };
    supervisor.work(&woken)
}

/// The agents of the settings, where each of them could reach the store.
pub(super) fn startable(world: &World, store: &Store) -> Result<Vec<Agent>, Refusal> {
    let all = planned(store)?;
    let reach = match &world.location {
        Location::File(_) => StoreReach::File,
        Location::Database(_) => StoreReach::Database,
        Location::Server(_) => StoreReach::Server,
    };
    refuse_cut_off(&all, reach)?;
    Ok(all)
}

/// Turns signals into words: INT, TERM and HUP (its terminal is gone) end, USR1 has it look again.
fn watch(tell: &Sender<Wake>) -> Result<(), Refusal> {
    let mut ending = Ending::watch()?;
    let ends = tell.clone();
    std::thread::spawn(move || {
        while !ending.within(Duration::from_secs(3_600)) {}
        let _ = ends.send(Wake::End);
    });
    heard(signal_hook::consts::SIGHUP, tell, || Wake::End)?;
    heard(signal_hook::consts::SIGUSR1, tell, || Wake::Look)
}

fn heard(signal: i32, tell: &Sender<Wake>, word: fn() -> Wake) -> Result<(), Refusal> {
    let (mut told, teller) = std::os::unix::net::UnixStream::pair().map_err(unexpected)?;
    signal_hook::low_level::pipe::register(signal, teller).map_err(unexpected)?;
    let tell = tell.clone();
    std::thread::spawn(move || {
        while std::io::Read::read(&mut told, &mut [0]).is_ok_and(|count| count > 0) {
            let _ = tell.send(word());
        }
    });
    Ok(())
}

struct Supervisor<'a> {
    world: &'a World,
    out: &'a Output,
    dir: PathBuf,
    person: Handle,
    seats: Vec<AgentSeat>,
    tell: Sender<Wake>,
    until: Until,
    interval: Duration,
    /// How often pull requests are asked for.
    poll: Duration,
    /// The head of the queue, as it was last seen.
    ready: Vec<TaskId>,
    /// The head of the queue that nobody could begin, and when that was found out.
    refused: Option<(Vec<TaskId>, Instant)>,
    /// Those that `fleet status` knows to wait.
    waiting: BTreeSet<String>,
    /// When pull requests are asked for again.
    offers_due: Instant,
    /// Whose waiting work is being looked after.
    attended: BTreeSet<Handle>,
    /// The last trouble, told once.
    told: Option<String>,
}

impl Supervisor<'_> {
    fn work(&mut self, woken: &Receiver<Wake>) -> Result<ExitCode, Refusal> {
        let mut is_ending = false;
        loop {
            // Whoever removes the clone leaves nobody to look after, and no way to take this process down.
            if !is_ending && !home(self.world).is_dir() {
                self.trouble(&Refusal::new(Code::StoreUnavailable, "the repository is gone: the fleet ends"));
                is_ending = true;
                (0..self.seats.len()).for_each(|seat| self.end(seat));
            }
            if !is_ending {
                self.heed_ended();
                match self.fill() {
                    Ok(is_idle) => is_ending = is_idle && self.until == Until::Idle,
                    Err(refusal) => self.trouble(&refusal),
                }
            }
            if is_ending && self.seats.iter().all(|seat| seat.pid.is_none()) {
                return Ok(ExitCode::SUCCESS);
            }
            match woken.recv_timeout(self.wait()) {
                Ok(Wake::Ended(seat, code)) => self.ended(seat, code),
                Ok(Wake::Attended) => {
                    self.attended.clear();
                    self.offers_due = Instant::now() + self.poll;
                }
                Ok(Wake::Look) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => {
                    is_ending = true;
                    (0..self.seats.len()).for_each(|seat| self.end(seat));
                }
            }
        }
    }

    /// Where everybody works there is nothing to look for.
    fn wait(&self) -> Duration {
        let now = Instant::now();
        let free = self.seats.iter().filter(|seat| seat.pid.is_none());
        let waits = free.map(|seat| seat.not_before.saturating_duration_since(now).max(self.interval));
        waits.min().unwrap_or(Duration::from_secs(3_600))
    }

    fn ended(&mut self, index: usize, code: Option<i32>) {
        // Nothing for it: there is none, or a limit is reached. A limit that stopped its task leaves other tasks ready.
        let nothing = [Code::NothingReady, Code::BudgetExceeded].map(|code| i32::from(code.exit_code()));
        let Some(seat) = self.seats.get_mut(index) else { return };
        seat.pid = None;
        if code.is_some_and(|code| nothing.contains(&code)) {
            self.refused = Some((self.ready.clone(), Instant::now()));
            return;
        }
        self.refused = None;
        let wait = match code {
            Some(0) => {
                seat.failures = 0;
                Duration::ZERO
            }
            Some(code) if CANNOT_START.contains(&code) => BACK_OFF_MAX,
            _ => {
                seat.failures = seat.failures.saturating_add(1);
                BACK_OFF.saturating_mul(1 << (seat.failures - 1).min(10)).min(BACK_OFF_MAX)
            }
        };
        seat.not_before = Instant::now() + wait;
        let worker = seat.agent.worker.clone();
        self.tell_end(&worker, wait);
    }

    /// One line for whoever watches; what was printed is in `onus logs`.
    fn tell_end(&self, worker: &Handle, wait: Duration) {
        if self.out.is_silent() {
            return;
        }
        let last = self.world.open().and_then(|mut store| store.sessions(None, Some(worker), 1));
        let Some(session) = last.ok().and_then(|view| view.sessions.into_iter().next()) else { return };
        let reason = session.end_reason.as_deref().unwrap_or("in progress");
        let waits = match wait.is_zero() {
            true => String::new(),
            false => format!("; waits {}", Millis(i64::try_from(wait.as_millis()).unwrap_or(0)).in_words()),
        };
        self.out.hint(&format!("{worker}: {} {reason}{waits}", session.task));
    }

    fn end(&self, seat: usize) {
        if let Some(pid) = self.seats.get(seat).and_then(|seat| seat.pid) {
            fleet_lock::end(pid);
        }
    }

    /// Those whom `stop --now` named.
    fn heed_ended(&self) {
        let named = names_in(&self.dir, ENDED);
        if named.is_empty() {
            return;
        }
        drop(std::fs::remove_file(self.dir.join(ENDED)));
        for (index, seat) in self.seats.iter().enumerate() {
            if named.contains(seat.agent.worker.as_str()) {
                self.end(index);
            }
        }
    }

    /// Gives every free agent something to do: first what it was given, then what is ready. Whether nothing is left to do.
    fn fill(&mut self) -> Result<bool, Refusal> {
        let mut store = self.world.open()?;
        let interval = u64::try_from(store.settings.fleet.interval.0).unwrap_or(2_000);
        self.interval = Duration::from_millis(interval.max(100));
        let held = store.held()?;
        self.look_after_waiting(&mut store, &held)?;
        let mut free = self.free();
        let mut without = Vec::new();
        for index in std::mem::take(&mut free) {
            match self.given(index, &held) {
                Some(Work::Next(_)) => without.push(index),
                Some(given) => self.start(index, &given)?,
                None => {}
            }
        }
        let many = i64::try_from(without.len().max(1)).unwrap_or(1);
        let ready = store.ready(&Filter::default(), many)?.tasks;
        self.ready = ready.into_iter().map(|task| task.id).collect();
        if !without.is_empty() && !self.ready.is_empty() && !self.was_refused() {
            self.offer(&mut store, &without)?;
        }
        self.told = None;
        self.tell_waiting()?;
        let is_given = |seat: &AgentSeat| {
            held.iter().any(|one| one.assignee == seat.agent.worker && one.state == "in_progress")
        };
        let now = Instant::now();
        let is_settled = |seat: &AgentSeat| {
            seat.pid.is_none()
                && self.attended.is_empty()
                && !is_given(seat)
                && (seat.not_before <= now || self.ready.is_empty())
        };
        Ok(self.seats.iter().all(is_settled) && (self.ready.is_empty() || self.was_refused()))
    }

    /// For `fleet status`.
    fn tell_waiting(&mut self) -> Result<(), Refusal> {
        let now = Instant::now();
        let waiting = self.seats.iter().filter(|seat| seat.not_before > now);
        let waiting: BTreeSet<String> = waiting.map(|seat| seat.agent.worker.to_string()).collect();
        if waiting != self.waiting {
            write_names(&self.dir, WAITING, &waiting)?;
            self.waiting = waiting;
        }
        Ok(())
    }

    fn free(&self) -> Vec<usize> {
        let stopped = names_in(&self.dir, STOPPED);
        let now = Instant::now();
        let is_free = |seat: &AgentSeat| {
            let worker = &seat.agent.worker;
            seat.pid.is_none()
                && seat.not_before <= now
                && !stopped.contains(worker.as_str())
                && !self.attended.contains(worker)
        };
        (0..self.seats.len()).filter(|index| is_free(&self.seats[*index])).collect()
    }

    /// Whether what is ready is what nobody could begin a moment ago.
    fn was_refused(&self) -> bool {
        self.refused.as_ref().is_some_and(|(tasks, at)| *tasks == self.ready && at.elapsed() < OFFER_AGAIN)
    }

    /// What somebody gave to an agent, else that it may look for something; nothing where its place is taken.
    fn given(&self, index: usize, held: &[HeldView]) -> Option<Work> {
        let agent = &self.seats[index].agent;
        let own = held.iter().find(|one| one.assignee == agent.worker && one.state == "in_progress");
        if let Some(own) = own {
            return Some(Work::Given(own.task.clone(), own.workstation.clone()));
        }
        let is_taken = held.iter().any(|one| one.workstation == agent.workstation);
        (!is_taken).then(|| Work::Next(agent.workstation.clone()))
    }

    /// By the identity map, where there is one; else each takes the most important task that it may have.
    fn offer(&mut self, store: &mut Store, free: &[usize]) -> Result<(), Refusal> {
        if matches!(store.policy()?, Policy::Absent) {
            for index in free.iter().take(self.ready.len()) {
                let place = self.seats[*index].agent.workstation.clone();
                self.start(*index, &Work::Next(place))?;
            }
            return Ok(());
        }
        let only = free.iter().map(|index| self.seats[*index].agent.worker.clone()).collect();
        let round = dispatched(self.world, self.out, Mode::Carry, &Round { limit: free.len(), only })?;
        if round.placed.is_empty() {
            self.refused = Some((self.ready.clone(), Instant::now()));
        }
        for placed in round.placed {
            let seat = free.iter().find(|index| self.seats[**index].agent.worker == placed.assignee);
            if let Some(index) = seat {
                self.start(*index, &Work::Given(placed.task, placed.workstation))?;
            }
        }
        Ok(())
    }

    fn start(&mut self, index: usize, work: &Work) -> Result<(), Refusal> {
        let Some(agent) = self.seats.get(index).map(|seat| seat.agent.clone()) else { return Ok(()) };
        let mut run = self.as_agent(&agent)?;
        run.args(["run", "--prompt", "--ask", self.person.as_str()]);
        run.args(["--follow", &std::process::id().to_string()]);
        if let Some(client) = &agent.client {
            run.args(["--client", client.as_str()]);
        }
        if agent.sandbox != SandboxSetting::None {
            run.args(["--sandbox", agent.sandbox.name()]);
        }
        let place = match work {
            Work::Next(place) => place,
            Work::Given(task, place) => {
                run.arg(task.to_string());
                place
            }
        };
        run.args(["--workstation", &place.to_string(), "--"]).args(&agent.command);
        let name = agent.worker.as_str().trim_start_matches('@');
        run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(&self.dir, name)?);
        let mut child = run.spawn().map_err(unexpected)?;
        self.seats[index].pid = Some(child.id());
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            let code = child.wait().ok().and_then(|status| status.code());
            let _ = tell.send(Wake::Ended(index, code));
        });
        Ok(())
    }

    /// Repeats `complete` for finished work that waits, in its agent's name: for a pull request that was merged, a review that
    /// was given, what merges first.
    fn look_after_waiting(&mut self, store: &mut Store, held: &[HeldView]) -> Result<(), Refusal> {
        let poll = store.settings.git.pull_requests.as_ref().map(|settings| settings.poll.0);
        let poll = poll.and_then(|millis| u64::try_from(millis).ok()).unwrap_or(30_000);
        self.poll = Duration::from_millis(poll.max(100));
        if !self.attended.is_empty() {
            return Ok(());
        }
        let are_offers_due = self.offers_due <= Instant::now();
        let mut calls = Vec::new();
        for one in held.iter().filter(|one| one.state == "blocked") {
            let seat = self.seats.iter().find(|seat| seat.agent.worker == one.assignee);
            let Some(seat) = seat.filter(|seat| seat.pid.is_none()) else { continue };
            let task = store.task(&one.task)?;
            if (are_offers_due && is_offered(&task)) || store.may_go_on(&task)? {
                let mut complete = self.as_agent(&seat.agent)?;
                complete.args(["complete", &one.task.to_string(), "--resolution", DONE, "-q"]);
                complete.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                calls.push(complete);
                self.attended.insert(one.assignee.clone());
            }
        }
        if calls.is_empty() {
            return Ok(());
        }
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            // What it says is told by the task itself: it waits, it goes on, or it is complete.
            calls.iter_mut().for_each(|complete| drop(complete.status()));
            let _ = tell.send(Wake::Attended);
        });
        Ok(())
    }

    /// This program in an agent's name. The person's own token is nothing for it.
    fn as_agent(&self, agent: &Agent) -> Result<Command, Refusal> {
        let mut program = own_program(self.world)?;
        program.env_remove("ONUS_TOKEN").env_remove("ONUS_TOKEN_FILE");
        program.envs(&agent.env).env("ONUS_AS", agent.worker.as_str());
        Ok(program)
    }

    fn trouble(&mut self, refusal: &Refusal) {
        let text = refusal.to_string();
        if self.told.as_ref() != Some(&text) {
            self.out.warn(&text);
            self.told = Some(text);
        }
    }
}
