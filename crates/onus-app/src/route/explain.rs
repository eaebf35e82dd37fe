//! Why a task goes where it goes, told by the rules that a claim meets.

use crate::Onus;
use crate::remote::calls;
use crate::submit::{Judge, claim, unexpected};
use onus_core::code::Code;
use onus_core::facts::Caller;
use onus_core::id::{Handle, TaskId, TaskType, WorkstationName};
use onus_core::identity_map::{self, Explanation, Policy, Verdict, Winner};
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::{Priority, Spec, State, Task};
use onus_core::time::Timestamp;
use onus_store::load;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// What is asked about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Subject {
    Task(TaskId),
    /// A task that nobody asked for yet.
    Kind {
        task_type: Option<TaskType>,
        priority: Priority,
    },
}

/// The answer to `route explain`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainView {
    pub task: Option<TaskId>,
    pub task_type: Option<TaskType>,
    pub priority: Priority,
    #[serde(flatten)]
    pub explanation: Explanation,
    /// Who built what it depends on may not do it.
    pub independent: bool,
    /// What the one who asks would be told.
    pub caller: Option<CallerView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallerView {
    pub worker: Handle,
    /// Where the map would send this worker.
    pub workstation: Option<WorkstationName>,
    pub allowed: bool,
    pub findings: Vec<Finding>,
}

impl Onus {
    /// Every candidate and why it won or lost; with an actor, also what it would be told.
    ///
    /// `here` is the workstation that the caller stands in, for where the map names none.
    pub fn explain(
        &mut self,
        subject: &Subject,
        actor: Option<&Handle>,
        here: Option<&WorkstationName>,
    ) -> Result<ExplainView, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::Explain { subject: subject.clone(), here: here.cloned() })?
        {
            return Ok(answer);
        }
        let policy = self.policy()?;
        self.judge(&policy, |judge| {
            let task = match subject {
                Subject::Task(id) => {
                    load::task(judge.tx, id)?.ok_or_else(|| crate::show::unknown_task(id))?.task
                }
                Subject::Kind { task_type, priority } => imagined(task_type.clone(), *priority)?,
            };
            let now = judge.tx.now()?.wall;
            let signals = load::signals(judge.tx, &policy, &task, now)?;
            let mut explanation = identity_map::explain(&policy, &task.spec, &signals);
            if is_real(&task) {
                weigh(judge, &task, &mut explanation)?;
            }
            let caller = match actor {
                Some(actor) => Some(told(judge, &policy, &task, (actor, here))?),
                None => None,
            };
            Ok(ExplainView {
                task: is_real(&task).then(|| task.id.clone()),
                task_type: task.spec.task_type.clone(),
                priority: task.spec.priority,
                explanation,
                independent: identity_map::needs_independence(&policy, &task.spec),
                caller,
            })
        })
    }
}

/// The map's explanation knows candidates; what stands against this very task is found by asking for it.
fn weigh(judge: &mut Judge<'_>, task: &Task, explanation: &mut Explanation) -> Result<(), Refusal> {
    explanation.winner = None;
    for candidate in &mut explanation.candidates {
        if candidate.verdict == Verdict::Lost {
            continue;
        }
        let (agent, workstation) = (&candidate.agent_name, &candidate.workstation);
        let claimed = judge.claim(&claim(Some(agent), &task.id, None, Some(workstation))?)?;
        (candidate.verdict, candidate.reasons) = match (claimed, &explanation.winner) {
            (Err(findings), _) => {
                (Verdict::Eligible, findings.into_iter().map(|finding| finding.detail).collect())
            }
            (Ok(_), Some(winner)) => {
                let before = format!("{} in {} comes first", winner.agent_name, winner.workstation);
                (Verdict::Eligible, vec![before])
            }
            (Ok(route), None) => {
                explanation.winner = Some(Winner {
                    agent_name: agent.clone(),
                    workstation: workstation.clone(),
                    rule: route.map(|route| route.rule).unwrap_or_default(),
                });
                (Verdict::Won, vec!["the first in order that could begin now".to_owned()])
            }
        };
    }
    Ok(())
}

fn told(
    judge: &mut Judge<'_>,
    policy: &Policy,
    task: &Task,
    (actor, here): (&Handle, Option<&WorkstationName>),
) -> Result<CallerView, Refusal> {
    let Caller::Registered(worker) = load::caller(judge.tx, Some(actor))? else {
        return Err(Refusal::new(Code::UnknownWorker, format!("{actor} is not registered"))
            .hint(format!("onus worker add {actor} --kind agent")));
    };
    let now = judge.tx.now()?.wall;
    let signals = load::signals(judge.tx, policy, task, now)?;
    let workstation = identity_map::workstation_for(policy, &task.spec, &worker, &signals).or(here);
    let answer = if is_real(task) {
        judge.claim(&claim(Some(actor), &task.id, None, workstation)?)?
    } else {
        identity_map::route(policy, &task.spec, &worker, workstation, &signals)
    };
    Ok(CallerView {
        worker: worker.handle,
        workstation: workstation.cloned(),
        allowed: answer.is_ok(),
        findings: answer.err().unwrap_or_default(),
    })
}

/// Names no task: none has the number 0.
pub(crate) fn no_task() -> Result<TaskId, Refusal> {
    let project = "NEW".parse().map_err(unexpected)?;
    Ok(TaskId { project, number: 0 })
}

fn is_real(task: &Task) -> bool {
    task.id.number > 0
}

/// A task of that kind, as if it had just been asked for.
fn imagined(task_type: Option<TaskType>, priority: Priority) -> Result<Task, Refusal> {
    Ok(Task {
        id: no_task()?,
        uid: Uuid::nil(),
        spec: Spec { task_type, priority, ..Spec::titled("") },
        depends_on: BTreeSet::new(),
        exceptions: BTreeMap::new(),
        state: State::Open,
        epoch: 0,
        version: 0,
        archived: false,
        born: 0,
        created_by: "@nobody".parse().map_err(unexpected)?,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    })
}
