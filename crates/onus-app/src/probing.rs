//! Running the probes of workstations: outside every transaction, many at once (mission C5).

use crate::Onus;
use onus_core::id::WorkstationName;
use onus_core::probe::ProbeResult;
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use onus_core::workstation::{Workstation, WorkstationState};
use onus_host::probe::{self, Surroundings};
use onus_host::{clock, identity_map};
use std::path::Path;

/// Workstations probed at the same time; each runs all of its probes at once.
const AT_ONCE: usize = 16;

/// What a run of all its probes said about a workstation.
#[derive(Debug, Clone)]
pub struct Probed {
    pub name: WorkstationName,
    /// How it was before.
    pub state: WorkstationState,
    pub results: Vec<ProbeResult>,
}

impl<S> Onus<S> {
    /// Runs the probes of those that have some and could be given work. Nothing is recorded.
    pub fn probe(&self, workstations: &[Workstation]) -> Result<Vec<Probed>, Refusal> {
        let main = match &self.place.repo {
            Some(repo) => identity_map::main_branch(repo, &self.settings)?,
            None => None,
        };
        let may_work = |it: &&Workstation| {
            !it.probes.is_empty()
                && matches!(it.state, WorkstationState::Registered | WorkstationState::Ready)
        };
        let probed: Vec<&Workstation> = workstations.iter().filter(may_work).collect();
        let mut all = Vec::with_capacity(probed.len());
        for some in probed.chunks(AT_ONCE) {
            all.extend(std::thread::scope(|scope| {
                let started: Vec<_> =
                    some.iter().map(|one| scope.spawn(|| run(one, main.as_deref()))).collect();
                // A run that broke off has no results; it is not recorded.
                started.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
            }));
        }
        Ok(all)
    }
}

fn run(workstation: &Workstation, main: Option<&str>) -> Probed {
    let around = Surroundings {
        directory: workstation.path.as_deref().map(Path::new),
        branch: workstation.branch.as_ref().map(|branch| branch.as_str()),
        main,
    };
    let results = probe::run(&workstation.probes, &around, wall);
    Probed { name: workstation.name.clone(), state: workstation.state, results }
}

fn wall() -> Timestamp {
    clock::now().wall
}
