//! `validate`: is the queue sound? (mission D13; the rules are in `onus_core::validate`)

use crate::Onus;
use crate::answer_room::{AnswerRoom, LIST_BYTES};
use crate::progress::Progress;
use crate::remote::calls;
use onus_core::code::Code;
use onus_core::id::TaskId;
use onus_core::identity_map::Policy;
use onus_core::refusal::{Finding, Refusal, told};
use onus_core::validate::{Found, Queue, findings};
use onus_store::bulk;
use onus_store::port::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many tasks pass between two words about progress.
const STRIDE: usize = 1_000;

/// The answer to `validate`; without findings the queue is sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidateView {
    /// The first ones: `counts` says how many there are.
    pub findings: Vec<QueueFindingView>,
    /// What is wrong with the identity map, if it cannot be followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map: Vec<MapFindingView>,
    pub counts: ValidateCountsView,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFindingView {
    pub code: String,
    pub task: TaskId,
    pub detail: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MapFindingView {
    pub code: String,
    pub detail: String,
    pub hint: Option<String>,
}

impl From<&Finding> for MapFindingView {
    fn from(finding: &Finding) -> MapFindingView {
        MapFindingView {
            code: finding.code.name().to_owned(),
            detail: finding.detail.clone(),
            hint: finding.hint.clone(),
        }
    }
}

impl From<Found> for QueueFindingView {
    fn from(Found { task, finding }: Found) -> QueueFindingView {
        QueueFindingView {
            code: finding.code.name().to_owned(),
            task,
            detail: finding.detail,
            hint: finding.hint,
        }
    }
}

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ValidateCountsView {
    pub tasks: i64,
    pub dependencies: i64,
    pub findings: i64,
}

impl ValidateView {
    /// The refusal that a front end gives; none when the queue is sound.
    pub fn refusal(&self) -> Option<Refusal> {
        let finding = |code: &str, detail: String, hint: &Option<String>| {
            Finding::new(Code::parse(code).unwrap_or(Code::QueueInvalid), detail).hinted(hint.clone())
        };
        let of_map = self.map.iter().map(|found| finding(&found.code, found.detail.clone(), &found.hint));
        let of_queue = self
            .findings
            .iter()
            .map(|found| finding(&found.code, format!("{}: {}", found.task, found.detail), &found.hint));
        let all: Vec<Finding> = of_map.chain(of_queue).collect();
        let detail = told(all.len(), &all.first()?.detail);
        Some(
            Refusal::new(Code::QueueInvalid, detail)
                .hint("each finding says what to do about it")
                .findings(all.into_iter().take(100).collect()),
        )
    }
}

impl Onus {
    /// Looks at the whole queue on one consistent view.
    pub fn validate(&mut self, progress: &mut dyn Progress) -> Result<ValidateView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Validate {})? {
            return Ok(answer);
        }
        let policy = self.policy()?;
        let queue = self.ask(|tx| load(tx, progress))?;
        let mut found: Vec<QueueFindingView> =
            findings(&queue, &policy).into_iter().map(Into::into).collect();
        let map: Vec<MapFindingView> = match &policy {
            Policy::Invalid(broken) => broken.findings.iter().map(Into::into).collect(),
            Policy::Absent | Policy::InForce(_) => Vec::new(),
        };
        let counts = ValidateCountsView {
            tasks: queue.tasks.len() as i64,
            dependencies: queue.edges.len() as i64,
            findings: (found.len() + map.len()) as i64,
        };
        let mut room = AnswerRoom::new(LIST_BYTES);
        found.retain(|finding| room.has(finding.detail.len() + finding.hint.as_ref().map_or(0, String::len)));
        Ok(ValidateView { findings: found, map, counts })
    }
}

fn load(tx: &mut dyn Tx, progress: &mut dyn Progress) -> onus_store::error::Result<Queue> {
    let total = bulk::count_tasks(tx)?;
    progress.begin("validating", u64::try_from(total).ok());
    let mut tasks = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
    bulk::standings(tx, &mut |standing| {
        tasks.push(standing);
        if tasks.len() % STRIDE == 0 {
            progress.at(tasks.len() as u64);
        }
        Ok(())
    })?;
    let queue = Queue { tasks, edges: bulk::edges(tx)?, live: bulk::live(tx)? };
    progress.end();
    Ok(queue)
}
