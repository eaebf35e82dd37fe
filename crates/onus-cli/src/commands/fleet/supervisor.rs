//! The supervisor: one for each clone and host. It gives every free agent a task and runs it as `onus run` does; when it goes,
//! whatever way, its agents go with it.

use super::{directory, own_program, planned, register, stopped, unexpected};
use crate::context::World;
use crate::output::Output;
use crate::shutdown::Ending;
use onus_core::agents::Agent;
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId};
use onus_core::refusal::Refusal;
use onus_host::fleet_lock::{self, FleetLock};
use onus_store::read::queue::Filter;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// An agent that fails waits so long, then twice as long, and so on.
const BACK_OFF: Duration = Duration::from_secs(1);
const BACK_OFF_MAX: Duration = Duration::from_secs(60);

/// What wakes the supervisor.
enum Wake {
    /// An agent's run has ended, with this code.
    Ended(usize, Option<i32>),
    Look,
    End,
}

struct Seat {
    agent: Agent,
    /// Its run, while there is one.
    pid: Option<u32>,
    failures: u32,
    not_before: Instant,
}

pub(super) fn run(world: &World, out: &Output) -> Result<ExitCode, Refusal> {
    let dir = directory(world);
    let mut store = world.open()?;
    let all = planned(&store)?;
    let Some(_lock) = FleetLock::take(&dir)? else {
        return Err(Refusal::new(Code::WrongState, "a supervisor runs for this clone on this host already")
            .hint("onus fleet status, onus fleet down"));
    };
    register(world, &mut store, &all)?;
    drop(store);
    drop(std::fs::remove_file(dir.join("stopped")));
    let person = world.actor.clone().ok_or_else(|| Refusal::new(Code::IdentityRequired, "who are you?"))?;
    let (tell, woken) = channel();
    watch(&tell)?;
    let seats = all
        .into_iter()
        .map(|agent| Seat { agent, pid: None, failures: 0, not_before: Instant::now() })
        .collect();
    let mut supervisor = Supervisor { world, out, dir, person, seats, tell, told: None };
    supervisor.work(&woken)
}

/// Turns signals into words: INT and TERM end, HUP has it look again.
fn watch(tell: &Sender<Wake>) -> Result<(), Refusal> {
    let mut ending = Ending::watch()?;
    let ends = tell.clone();
    std::thread::spawn(move || {
        while !ending.within(Duration::from_secs(3_600)) {}
        let _ = ends.send(Wake::End);
    });
    let (mut told, teller) = std::os::unix::net::UnixStream::pair().map_err(unexpected)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGHUP, teller).map_err(unexpected)?;
    let looks = tell.clone();
    std::thread::spawn(move || {
        while std::io::Read::read(&mut told, &mut [0]).is_ok_and(|count| count > 0) {
            let _ = looks.send(Wake::Look);
        }
    });
    Ok(())
}

struct Supervisor<'a> {
    world: &'a World,
    out: &'a Output,
    dir: PathBuf,
    person: Handle,
    seats: Vec<Seat>,
    tell: Sender<Wake>,
    /// The last trouble, told once.
    told: Option<String>,
}

impl Supervisor<'_> {
    fn work(&mut self, woken: &Receiver<Wake>) -> Result<ExitCode, Refusal> {
        let mut is_ending = false;
        loop {
            if !is_ending {
                self.heed_ended();
                if let Err(refusal) = self.fill() {
                    self.trouble(&refusal);
                }
            } else if self.seats.iter().all(|seat| seat.pid.is_none()) {
                return Ok(ExitCode::SUCCESS);
            }
            match woken.recv_timeout(self.wait()) {
                Ok(Wake::Ended(seat, code)) => self.ended(seat, code),
                Ok(Wake::Look) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => {
                    is_ending = true;
                    (0..self.seats.len()).for_each(|seat| self.end(seat));
                }
            }
        }
    }

    fn wait(&self) -> Duration {
        let interval = self.world.open().map(|store| store.settings.fleet.interval.0).unwrap_or(2_000);
        Duration::from_millis(u64::try_from(interval).unwrap_or(2_000).max(100))
    }

    fn ended(&mut self, index: usize, code: Option<i32>) {
        let Some(seat) = self.seats.get_mut(index) else { return };
        seat.pid = None;
        // Nothing ready, somebody else was first, a check that failed: the agent itself is well.
        let is_well = matches!(code, Some(0 | 4 | 5 | 6 | 7));
        seat.failures = if is_well { 0 } else { seat.failures.saturating_add(1) };
        if !is_well {
            let wait = BACK_OFF.saturating_mul(1 << (seat.failures - 1).min(10)).min(BACK_OFF_MAX);
            seat.not_before = Instant::now() + wait;
        }
    }

    fn end(&self, seat: usize) {
        if let Some(pid) = self.seats.get(seat).and_then(|seat| seat.pid) {
            fleet_lock::end(pid);
        }
    }

    /// Those whom `stop --now` named.
    fn heed_ended(&self) {
        let path = self.dir.join("ended");
        let Ok(text) = std::fs::read_to_string(&path) else { return };
        drop(std::fs::remove_file(&path));
        for (index, seat) in self.seats.iter().enumerate() {
            if text.split_whitespace().any(|name| name == seat.agent.worker.as_str()) {
                self.end(index);
            }
        }
    }

    /// Gives every free agent something to do: first what it was given, then what is ready.
    fn fill(&mut self) -> Result<(), Refusal> {
        let stopped = stopped(&self.dir);
        let now = Instant::now();
        let is_free = |seat: &Seat| {
            seat.pid.is_none() && seat.not_before <= now && !stopped.contains(seat.agent.worker.as_str())
        };
        let free: Vec<usize> = (0..self.seats.len()).filter(|index| is_free(&self.seats[*index])).collect();
        if free.is_empty() {
            return Ok(());
        }
        let mut store = self.world.open()?;
        let held: BTreeMap<Handle, TaskId> = store
            .held()?
            .into_iter()
            .filter(|held| held.state == "in_progress")
            .map(|held| (held.assignee, held.task))
            .collect();
        let mut ready = store.ready(&Filter::default(), i64::try_from(free.len()).unwrap_or(1))?.tasks.len();
        drop(store);
        for index in free {
            let given = held.get(&self.seats[index].agent.worker).cloned();
            if given.is_none() && ready == 0 {
                continue;
            }
            ready -= usize::from(given.is_none());
            self.start(index, given.as_ref())?;
        }
        self.told = None;
        Ok(())
    }

    fn start(&mut self, index: usize, task: Option<&TaskId>) -> Result<(), Refusal> {
        let Some(seat) = self.seats.get_mut(index) else { return Ok(()) };
        let agent = &seat.agent;
        let mut run = own_program(self.world)?;
        run.env("ONUS_AS", agent.worker.as_str());
        run.args([
            "run",
            "--workstation",
            &agent.workstation.to_string(),
            "--prompt",
            "--ask",
            self.person.as_str(),
        ]);
        run.args(["--follow", &std::process::id().to_string()]);
        match task {
            Some(task) => run.arg(task.to_string()),
            None => run.arg("--next"),
        };
        run.arg("--").args(&agent.command).envs(&agent.env);
        let log = log(&self.dir, &agent.worker)?;
        run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = run.spawn().map_err(unexpected)?;
        seat.pid = Some(child.id());
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            let code = child.wait().ok().and_then(|status| status.code());
            let _ = tell.send(Wake::Ended(index, code));
        });
        Ok(())
    }

    fn trouble(&mut self, refusal: &Refusal) {
        let text = refusal.to_string();
        if self.told.as_ref() != Some(&text) {
            self.out.warn(&text);
            self.told = Some(text);
        }
    }
}

/// What the last run of an agent told beside its output.
fn log(dir: &Path, worker: &Handle) -> Result<File, Refusal> {
    let path = dir.join(format!("{}.log", worker.as_str().trim_start_matches('@')));
    File::create(&path).map_err(|error| crate::commands::file_error(&path, &error))
}
