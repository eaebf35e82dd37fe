//! `fleet status`: which agents there are, what each works on, and when it last said something (mission E7).

use crate::Onus;
use crate::limits::LimitView;
use crate::remote::calls;
use onus_core::id::{Epoch, Handle, TaskId, WorkstationName};
use onus_core::limits::LimitScope;
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use onus_core::worker::{Kind, WorkerState};
use onus_store::port::Store as _;
use onus_store::{load, output};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FleetView {
    pub agents: Vec<AgentView>,
    /// The process of the supervisor that runs on the caller's host; `null` where none does, and for whoever asks a server.
    #[serde(default)]
    pub supervisor: Option<i32>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    pub worker: Handle,
    /// `working`, `blocked` (it keeps a task that waits), `stale` (its lease ran out, or its process is gone), `idle` or
    /// `paused`; where the supervisor runs also `stopped` and `backing_off`.
    pub state: String,
    pub task: Option<TaskId>,
    #[serde(default)]
    pub title: Option<String>,
    /// Under which lease it holds that: where, which grant of the task, and until when unless it is renewed.
    #[serde(default)]
    pub lease: Option<AgentLeaseView>,
    /// The last stretch of work.
    pub session: Option<i64>,
    /// When that began, or ended.
    pub since: Option<Timestamp>,
    pub last_output_at: Option<Timestamp>,
    /// Used up in that session, as far as anybody recorded it.
    pub tokens: i64,
    /// Absent where nobody knows.
    pub cost: Option<f64>,
    /// What it has used today of what it may, where it has limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentLeaseView {
    pub workstation: WorkstationName,
    pub epoch: Epoch,
    pub renewed_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Onus {
    /// What names the workspace wherever its store is.
    pub fn workspace_uid(&mut self) -> Result<String, Refusal> {
        if let Some(answer) = self.remote(|| calls::Status {})? {
            return Ok(answer.workspace);
        }
        Ok(self.ask(|tx| load::workspace(tx))?.uid)
    }

    /// The agents: these, or all that are registered.
    pub fn fleet_status(&mut self, only: &[Handle]) -> Result<FleetView, Refusal> {
        if let Some(answer) = self.remote(|| calls::FleetStatus { only: only.to_vec() })? {
            return Ok(answer);
        }
        let workers = self.workers(None)?.workers;
        let held = self.held()?;
        let limits = self.limits(None)?.limits;
        let mut agents = Vec::new();
        let wanted = |handle: &Handle| only.is_empty() || only.contains(handle);
        for worker in workers.into_iter().filter(|one| one.kind == Kind::Agent && wanted(&one.handle)) {
            let own = held.iter().find(|one| one.assignee == worker.handle);
            let last = self.sessions(None, Some(&worker.handle), 1)?.sessions.into_iter().next();
            let said = match &last {
                Some(session) => self.store.read(|tx| output::last(tx, session.id))?,
                None => None,
            };
            let state = match own {
                // Nobody need be at work on what waits.
                Some(own) if own.state == "blocked" => "blocked",
                Some(own) if own.dead.is_some() || own.may_be_taken_over => "stale",
                Some(_) => "working",
                None if worker.state == WorkerState::Paused => "paused",
                None => "idle",
            };
            agents.push(AgentView {
                state: state.to_owned(),
                task: own.map(|own| own.task.clone()),
                title: own.map(|own| own.title.clone()),
                lease: own.map(|own| AgentLeaseView {
                    workstation: own.workstation.clone(),
                    epoch: own.epoch,
                    renewed_at: own.renewed_at,
                    expires_at: own.expires_at,
                }),
                session: last.as_ref().map(|session| session.id),
                since: last.as_ref().map(|session| session.ended_at.unwrap_or(session.started_at)),
                last_output_at: said.map(|piece| piece.at),
                tokens: last.as_ref().map_or(0, |session| session.tokens),
                cost: last.as_ref().and_then(|session| session.cost),
                limits: limits
                    .iter()
                    .filter(|one| one.scope == LimitScope::WorkerDay && one.of == worker.handle.as_str())
                    .cloned()
                    .collect(),
                worker: worker.handle,
            });
        }
        Ok(FleetView { agents, supervisor: None })
    }
}
