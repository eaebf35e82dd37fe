//! Runs a workstation's probes and keeps what they said (mission C5). Always outside a transaction: a probe may take
//! seconds, and only its own caller should wait for it.

use crate::Onus;
use crate::remote::{Sent, calls};
use onus_core::command::{Command, Envelope};
use onus_core::facts::Caller;
use onus_core::id::{Handle, WorkstationName};
use onus_core::identity_map::{self, Policy};
use onus_core::probe::{ProbeResult, Verdict};
use onus_core::refusal::Refusal;
use onus_core::registry::probe_report::DIRECTORY;
use onus_core::time::Timestamp;
use onus_core::workstation::{Workstation, WorkstationState};
use onus_host::{clock, probe};
use onus_store::load;
use onus_store::port::Tx;
use std::path::Path;

/// Workstations probed at the same time; each runs all of its probes at once.
const AT_ONCE: usize = 16;

/// What a run of all its probes said about a workstation.
#[derive(Debug, Clone)]
pub(crate) struct Probed {
    pub(crate) name: WorkstationName,
    /// How it was before.
    pub(crate) state: WorkstationState,
    pub(crate) results: Vec<ProbeResult>,
}

impl Onus {
    /// Runs the probes of a workstation, without keeping anything.
    pub fn run_probes(&self, workstation: &Workstation) -> Vec<ProbeResult> {
        run(workstation, self.main().as_deref())
    }

    /// Runs the probes of all that have something to prove, side by side, without keeping anything.
    pub(crate) fn run_all_probes(&self, workstations: &[Workstation]) -> Vec<Probed> {
        let main = self.main();
        let probed: Vec<&Workstation> = workstations.iter().filter(|one| must_prove(one)).collect();
        let mut all = Vec::with_capacity(probed.len());
        for some in probed.chunks(AT_ONCE) {
            all.extend(std::thread::scope(|scope| {
                let start = |one: &&Workstation| {
                    let (one, main) = (Workstation::clone(one), main.as_deref());
                    scope.spawn(move || Probed { results: run(&one, main), name: one.name, state: one.state })
                };
                let started: Vec<_> = some.iter().map(start).collect();
                // A probe whose thread panicked has no result, so none is recorded.
                started.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
            }));
        }
        all
    }

    fn main(&self) -> Option<String> {
        let repo = self.place.repo.as_ref()?;
        onus_host::identity_map::main_branch(repo, &self.settings).ok().flatten()
    }

    /// Runs the probes of a workstation and keeps what they said.
    pub fn probe(
        &mut self,
        actor: Option<&Handle>,
        name: &WorkstationName,
    ) -> Result<(Workstation, Vec<ProbeResult>), Refusal> {
        let found = self.workstation(name)?.workstation;
        let results = self.run_probes(&found);
        Ok((self.record_probes(actor, name, &results)?, results))
    }

    /// Before a grant: runs the probes of the workstations that it may go to, once each. The gate then reads what they
    /// said; it never waits and never asks again.
    pub fn probe_before(&mut self, envelope: &Envelope) -> Result<(), Refusal> {
        for workstation in self.places(envelope)? {
            if must_prove(&workstation) {
                let results = self.run_probes(&workstation);
                self.record_if_own(envelope.actor.as_ref(), &workstation.name, &results)?;
            }
        }
        Ok(())
    }

    /// The workstations that a grant may go to.
    pub(crate) fn places(&mut self, envelope: &Envelope) -> Result<Vec<Workstation>, Refusal> {
        if let Some(answer) = self.remote(|| calls::Places { sent: Sent::new(envelope) })? {
            return Ok(answer);
        }
        // Where a place is named, the map has no say in it; the grant itself reads the map under the lock.
        let policy = if names_a_place(&envelope.command) { Policy::Absent } else { self.policy()? };
        self.ask(|tx| places(tx, envelope, &policy))
    }
}

fn names_a_place(command: &Command) -> bool {
    matches!(
        command,
        Command::Claim { workstation: Some(_), .. } | Command::Takeover { workstation: Some(_), .. }
    )
}

/// The workstations that a grant may go to: the one that was named, else those that the map names for the worker, else
/// the one it stands in.
fn places(
    tx: &mut dyn Tx,
    envelope: &Envelope,
    policy: &Policy,
) -> onus_store::error::Result<Vec<Workstation>> {
    let (named, here, assignee) = match &envelope.command {
        Command::Claim { workstation, here, assignee, .. } => (workstation, here, assignee.as_ref()),
        Command::Takeover { workstation, here, .. } => (workstation, here, None),
        _ => return Ok(Vec::new()),
    };
    // Whoever is not registered starts nothing, not even a probe.
    let Caller::Registered(caller) = load::caller(tx, envelope.actor.as_ref())? else {
        return Ok(Vec::new());
    };
    let mut names: Vec<WorkstationName> = named.iter().cloned().collect();
    if names.is_empty() {
        let task = match &envelope.task {
            Some(id) => load::task(tx, id)?.map(|stored| stored.task.spec),
            None => None,
        };
        let worker = assignee.unwrap_or(&caller.handle);
        names = identity_map::places_of(policy, task.as_ref(), worker).cloned().collect();
    }
    if names.is_empty() {
        names.extend(here.clone());
    }
    names.sort();
    names.dedup();
    let mut found = Vec::with_capacity(names.len());
    for name in &names {
        found.extend(load::workstation(tx, name)?.map(|(workstation, _)| workstation));
    }
    Ok(found)
}

/// Whether a workstation could be given work, and has to show that it can take it.
fn must_prove(workstation: &Workstation) -> bool {
    let has_vanished = || workstation.path.as_deref().is_some_and(|path| !Path::new(path).is_dir());
    match workstation.state {
        WorkstationState::Registered => true,
        WorkstationState::Ready => !workstation.probes.is_empty() || has_vanished(),
        WorkstationState::Quarantined | WorkstationState::Retired => false,
    }
}

fn run(workstation: &Workstation, main: Option<&str>) -> Vec<ProbeResult> {
    let directory = workstation.path.as_deref().map(Path::new);
    let around = probe::Surroundings {
        directory,
        branch: workstation.branch.as_ref().map(|branch| branch.as_str()),
        main,
    };
    let presence = directory.map(present);
    presence.into_iter().chain(probe::run(&workstation.probes, &around, now)).collect()
}

fn present(directory: &Path) -> ProbeResult {
    let (verdict, detail) = match directory.is_dir() {
        true => (Verdict::Passed, "it is there".to_owned()),
        false => (Verdict::Failed, format!("{} is not there", directory.display())),
    };
    ProbeResult { probe: DIRECTORY.into(), at: now(), took_ms: 0, verdict, detail }
}

fn now() -> Timestamp {
    clock::now().wall
}
