//! The executor identity map: what it refuses, whom it routes to, and what it says about lanes, paths and names.

#![cfg(test)]

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
use onus_core::task::{Priority, Risk, Spec};
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::WorkstationState;

/// The map of the founding paper, word for word.
const SEED: &str = r#"# executor-identity-map.yaml
routing:
  - task_type: backend_feature
    agent_name: "@agent-builder-01"
    workstation: ws-backend-01

  - task_type: infrastructure_change
    agent_name: "@agent-infra-01"
    workstation: ws-infra-prod

  - task_type: frontend_component
    agent_name: "@agent-builder-02"
    workstation: ws-frontend-staging

  - task_type: verification
    agent_name: "@agent-verifier-01"
    workstation: ws-verification-01
"#;

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
    Spec {
        title: "a task".to_owned(),
        body: None,
        task_type: (task_type != "-").then(|| task_type.parse().unwrap()),
        kind: "feature".to_owned(),
        priority: Priority::P2,
        risk: Risk::Normal,
        role: None,
        lane: None,
        sprint: None,
        tags: Vec::new(),
        scope: Vec::new(),
        parent: None,
        merge_order: None,
        origin: None,
        checks: Vec::new(),
    }
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
