//! `dispatch`: offers every ready task to the first candidate that could begin now (mission D15, C13).
//!
//! A round is planned in a transaction that is rolled back, by the very rules that a claim meets; then the plan is
//! carried out claim by claim. Nothing is taken over, forced or taken away, and a dispatcher that lost a race has lost
//! nothing else.

use crate::Onus;
use crate::probe::Probed;
use crate::remote::calls;
use crate::route::required;
use crate::submit::{Receipt, Rehearsal, Target, claim, findings};
use crate::workstation::keep_probes;
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::identity_map::{self, IdentityMap, Policy, Signals, TypePattern};
use onus_core::probe::ProbeResult;
use onus_core::refusal::{Finding, Refusal};
use onus_core::registry::person;
use onus_core::task::Task;
use onus_core::workstation::{Workstation, WorkstationState};
use onus_store::port::Tx;
use onus_store::read::queue::{self, After, Filter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Ready tasks that one round looks at, from the head of the queue.
const HEAD: i64 = 200;
/// And for each type with a rule of its own, so that many tasks that nobody may take do not hide it.
const PER_TYPE: i64 = 50;

/// Whether a round is only thought through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    DryRun,
    Carry,
}

/// What a round may do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Round {
    /// Place at most so many tasks.
    pub limit: usize,
    /// Only with these; empty: with everybody.
    pub only: Vec<Handle>,
}

impl Round {
    fn is_for(&self, worker: &Handle) -> bool {
        self.only.is_empty() || self.only.contains(worker)
    }
}

/// What one round did, or would do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DispatchView {
    pub dry_run: bool,
    /// The commit of the map that was followed; none when it was never committed.
    pub map_commit: Option<String>,
    /// The main checkout's file differs from that map.
    pub edited: bool,
    /// Every workstation whose probes were run.
    pub workstations: Vec<ProbedView>,
    pub placed: Vec<PlacedView>,
    pub unplaced: Vec<UnplacedView>,
    /// There are ready tasks that this round did not look at.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbedView {
    pub name: WorkstationName,
    pub before: WorkstationState,
    pub state: WorkstationState,
    /// The probes that did not pass.
    pub failed: Vec<ProbeResult>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlacedView {
    pub task: TaskId,
    pub title: String,
    pub assignee: Handle,
    pub workstation: WorkstationName,
    pub lane: Option<i64>,
    pub rule: Option<String>,
}

/// A ready task that nobody could begin, with what stands against each candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnplacedView {
    pub task: TaskId,
    pub title: String,
    pub findings: Vec<Finding>,
}

/// Told of each grant at once, with the directory of its workstation: whoever holds the task needs the token.
pub type Keep<'a> = &'a mut dyn FnMut(&Receipt, Option<&Path>);

/// What a round would do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    map_commit: Option<String>,
    edited: bool,
    /// How the workstations would be whose probes were only told.
    states: Vec<WorkstationState>,
    placed: Vec<PlacedView>,
    unplaced: Vec<UnplacedView>,
    more: bool,
}

/// Probes that were run, and are not on record.
pub(crate) type ProbedWorkstation = (WorkstationName, Vec<ProbeResult>);

impl Onus {
    /// One round: probe, plan, and carry the plan out. Acts in a person's name.
    pub fn dispatch(
        &mut self,
        actor: Option<&Handle>,
        mode: Mode,
        round: &Round,
        keep: Keep<'_>,
    ) -> Result<DispatchView, Refusal> {
        let by = person(&self.caller(actor)?)?.clone();
        let rows = self.workstation_rows()?;
        let all: Vec<Workstation> = rows.into_iter().map(|row| row.workstation).collect();
        let probed = self.run_all_probes(&all);
        let (mut recorded, mut told) = (Vec::new(), Vec::new());
        for one in &probed {
            match mode {
                Mode::Carry => recorded.push(self.record_probes(actor, &one.name, &one.results)?.state),
                Mode::DryRun => told.push((one.name.clone(), one.results.clone())),
            }
        }
        let plan = self.plan(actor, &told, round)?;
        let states = recorded.into_iter().chain(plan.states);
        let mut view = DispatchView {
            dry_run: mode == Mode::DryRun,
            map_commit: plan.map_commit,
            edited: plan.edited,
            workstations: probed.iter().zip(states).map(|(one, state)| probed_view(one, state)).collect(),
            placed: Vec::with_capacity(plan.placed.len()),
            unplaced: plan.unplaced,
            more: plan.more,
        };
        for placed in plan.placed {
            match mode {
                Mode::DryRun => view.placed.push(placed),
                Mode::Carry => self.carry(&by, placed, &mut view, keep)?,
            }
        }
        Ok(view)
    }

    /// One round, thought through where the store is: nothing of it stays.
    pub(crate) fn plan(
        &mut self,
        actor: Option<&Handle>,
        told: &[ProbedWorkstation],
        round: &Round,
    ) -> Result<Plan, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::PlanRound { told: told.to_vec(), round: round.clone() })?
        {
            return Ok(answer);
        }
        let by = person(&self.caller(actor)?)?.clone();
        let policy = self.policy()?;
        let in_force = required(&policy)?;
        let mut plan = Plan {
            map_commit: in_force.commit.clone(),
            edited: in_force.edited,
            states: Vec::with_capacity(told.len()),
            placed: Vec::new(),
            unplaced: Vec::new(),
            more: false,
        };
        self.rehearse(&policy, |rehearsal| {
            for (name, results) in told {
                plan.states.push(keep_probes(rehearsal.tx, &by, name, results)?.state);
            }
            fill(&mut plan, rehearsal, &by, &policy, &in_force.map, round)
        })?;
        Ok(plan)
    }

    /// The plan may be out of date by now: the store decides.
    fn carry(
        &mut self,
        by: &Handle,
        chosen: PlacedView,
        view: &mut DispatchView,
        keep: Keep<'_>,
    ) -> Result<(), Refusal> {
        let PlacedView { task, assignee, workstation, .. } = &chosen;
        let envelope = claim(Some(by), task, Some(assignee), Some(workstation))?;
        match self.submit(&envelope, &Target::Named) {
            Ok(receipt) => {
                let directory = self.directory_of(workstation)?;
                keep(&receipt, directory.as_deref());
                view.placed.extend(placed(&receipt.task));
                Ok(())
            }
            Err(refusal) if matches!(refusal.code, Code::StoreBusy | Code::StoreUnavailable) => Err(refusal),
            Err(refusal) => {
                let PlacedView { task, title, .. } = chosen;
                view.unplaced.push(UnplacedView { task, title, findings: findings(refusal) });
                Ok(())
            }
        }
    }
}

fn fill(
    plan: &mut Plan,
    rehearsal: &mut Rehearsal<'_>,
    by: &Handle,
    policy: &Policy,
    map: &IdentityMap,
    round: &Round,
) -> Result<(), Refusal> {
    let (tasks, more) = offered(rehearsal.tx, map)?;
    plan.more = more;
    for task in tasks {
        if plan.placed.len() >= round.limit {
            plan.more = true;
            break;
        }
        match offer(rehearsal, by, policy, &task, round)? {
            Ok(placed) => plan.placed.push(placed),
            Err(findings) => {
                plan.unplaced.push(UnplacedView { task: task.id, title: task.spec.title, findings });
            }
        }
    }
    Ok(())
}

/// In queue order; whether there are more.
fn offered(tx: &mut dyn Tx, map: &IdentityMap) -> onus_store::error::Result<(Vec<Task>, bool)> {
    let mut tasks = queue::ready(tx, &Filter::default(), After::START, HEAD)?;
    let more = tasks.len() as i64 == HEAD;
    if more {
        for rule in &map.routing {
            if let TypePattern::One(task_type) = &rule.task_type {
                let filter = Filter { task_type: Some(task_type.clone()), ..Filter::default() };
                tasks.extend(queue::ready(tx, &filter, After::START, PER_TYPE)?);
            }
        }
        tasks.sort_by_key(|task| (task.spec.priority.rank(), task.born));
        tasks.dedup_by_key(|task| task.born);
    }
    Ok((tasks, more))
}

/// The first candidate that the rules let begin, or what stands against all of them.
fn offer(
    rehearsal: &mut Rehearsal<'_>,
    by: &Handle,
    policy: &Policy,
    task: &Task,
    round: &Round,
) -> Result<Result<PlacedView, Vec<Finding>>, Refusal> {
    // Without a rule there are no candidates, only the reason.
    let mut against = identity_map::explain(policy, &task.spec, &Signals::default()).findings;
    for (agent, workstation) in identity_map::candidates(policy, &task.spec) {
        if !round.is_for(agent) {
            continue;
        }
        match rehearsal.submit(&claim(Some(by), &task.id, Some(agent), Some(workstation))?)? {
            Ok(receipt) => {
                if let Some(placed) = placed(&receipt.task) {
                    return Ok(Ok(placed));
                }
            }
            Err(refusal) => {
                for finding in findings(refusal) {
                    if !against.contains(&finding) {
                        against.push(finding);
                    }
                }
            }
        }
    }
    Ok(Err(against))
}

fn placed(task: &Task) -> Option<PlacedView> {
    let held = task.assignment()?;
    Some(PlacedView {
        task: task.id.clone(),
        title: task.spec.title.clone(),
        assignee: held.assignee.clone(),
        workstation: held.workstation.clone(),
        lane: held.lane,
        rule: held.route.as_ref().map(|route| route.rule.clone()),
    })
}

fn probed_view(probed: &Probed, state: WorkstationState) -> ProbedView {
    let failed = probed.results.iter().filter(|result| !result.passed()).cloned().collect();
    ProbedView { name: probed.name.clone(), before: probed.state, state, failed }
}
