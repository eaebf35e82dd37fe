//! Runs a workstation's probes and keeps what they said (mission C5). Always outside a transaction: a probe may take
//! seconds, and nobody should wait for it but who asked.

use crate::{LOCAL, Onus};
use onus_core::command::{Command, Envelope};
use onus_core::facts::Caller;
use onus_core::id::{Handle, WorkstationName};
use onus_core::identity_map::{self, Policy};
use onus_core::probe::{ProbeResult, Verdict};
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use onus_core::workstation::{Workstation, WorkstationState};
use onus_host::{clock, probe};
use onus_store::load;
use onus_store::port::{Store, Tx};
use std::path::Path;

/// What must hold of a workstation that is a directory, whether or not it has probes.
const DIRECTORY: &str = "directory";

impl<S: Store> Onus<S> {
    /// Runs the probes of a workstation, without keeping anything.
    pub fn run_probes(&self, workstation: &Workstation) -> Vec<ProbeResult> {
        let directory = workstation.path.as_deref().map(Path::new);
        let main = self
            .place
            .repo
            .as_ref()
            .and_then(|repo| onus_host::identity_map::main_branch(repo, &self.settings).ok().flatten());
        let around = probe::Surroundings {
            directory,
            branch: workstation.branch.as_ref().map(|branch| branch.as_str()),
            main: main.as_deref(),
        };
        let presence = directory.map(present);
        presence.into_iter().chain(probe::run(&workstation.probes, &around, now)).collect()
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
        let policy = self.policy()?;
        for workstation in self.ask(|tx| places(tx, envelope, &policy))? {
            let has_vanished = || workstation.path.as_deref().is_some_and(|path| !Path::new(path).is_dir());
            let is_live = matches!(workstation.state, WorkstationState::Registered | WorkstationState::Ready);
            let is_unproven = workstation.state == WorkstationState::Registered;
            if is_live && (is_unproven || !workstation.probes.is_empty() || has_vanished()) {
                let results = self.run_probes(&workstation);
                self.record_probes(envelope.actor.as_ref(), &workstation.name, &results)?;
            }
        }
        Ok(())
    }
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
    let Caller::Registered(caller) = load::caller(tx, LOCAL, envelope.actor.as_ref())? else {
        return Ok(Vec::new());
    };
    let mut names: Vec<WorkstationName> = named.iter().cloned().collect();
    if names.is_empty() {
        let task = match &envelope.task {
            Some(id) => load::task(tx, LOCAL, id)?.map(|stored| stored.task.spec),
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
        found.extend(load::workstation(tx, LOCAL, name)?.map(|(workstation, _)| workstation));
    }
    Ok(found)
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
