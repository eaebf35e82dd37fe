//! The executor identity map: what it refuses, whom it routes to, and what it says about lanes, paths and names.

mod boundary;
mod explain;
mod findings;
mod history;
mod lane;
mod naming;
mod property;
mod route;

use onus_core::id::{Handle, WorkstationName};
use onus_core::identity_map::{IdentityMap, InForce, Policy, Signals, WorkerSignal, WorkstationSignal};
use onus_core::refusal::Finding;
use onus_core::task::Spec;
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::WorkstationState;

/// The map of the founding paper, word for word.
const SEED: &str = include_str!("identity_map/seed.yaml");

#[track_caller]
fn map(yaml: &str) -> IdentityMap {
    serde_saphyr::from_str(yaml).unwrap_or_else(|e| panic!("{e}\n{yaml}"))
}

/// The policy in which a valid map is in force.
#[track_caller]
fn policy(yaml: &str) -> Policy {
    let map = map(yaml);
    assert_eq!(map.findings(), []);
    let (commit, hash) = (Some("c0ffee".to_owned()), "feed".to_owned());
    Policy::InForce(Box::new(InForce { map, commit, hash, edited: false }))
}

fn handle(name: &str) -> Handle {
    format!("@{name}").parse().unwrap()
}

fn workstation(name: &str) -> WorkstationName {
    name.parse().unwrap()
}

/// A task of a type; `-` has none.
fn task(task_type: &str) -> Spec {
    let task_type = (task_type != "-").then(|| task_type.parse().unwrap());
    Spec { task_type, kind: "feature".into(), ..Spec::titled("a task") }
}

fn in_role(role: &str) -> Spec {
    Spec { role: Some(role.parse().unwrap()), ..task("-") }
}

fn agent(name: &str) -> Worker {
    Worker {
        handle: handle(name),
        kind: Kind::Agent,
        tier: None,
        role: None,
        state: WorkerState::Active,
        tz: "UTC".to_owned(),
    }
}

fn person(name: &str) -> Worker {
    Worker { kind: Kind::Human, ..agent(name) }
}

/// Everybody and everything that is named, registered, active, ready and free.
fn signals(workers: &[Worker], workstations: &[&str]) -> Signals {
    let worker =
        |worker: &Worker| (worker.handle.clone(), WorkerSignal { worker: worker.clone(), holds: Vec::new() });
    let place = |name: &&str| {
        let signal = WorkstationSignal { state: WorkstationState::Ready, holds: None, utilisation: 0 };
        (workstation(name), signal)
    };
    Signals {
        workers: workers.iter().map(worker).collect(),
        workstations: workstations.iter().map(place).collect(),
        dependency_depth: 0,
    }
}

fn details(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.detail.as_str()).collect()
}
