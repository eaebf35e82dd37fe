//! `report anomalies`: what in the record is worth a second look.

use super::When;
use crate::Onus;
use crate::answer_room::{AnswerRoom, LIST_BYTES};
use crate::remote::calls;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::report::{Anomaly, Held, Known, Limits, Watch, drift};
use onus_core::time::{Millis, Timestamp};
use onus_core::worker::Kind;
use onus_store::error::{Result as StoreResult, StoreError};
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::{report, show};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is looked at when nothing is said: two weeks.
const USUAL: Millis = Millis::hours(14 * 24);

/// What is worth a second look.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnomaliesView {
    pub since: Timestamp,
    pub until: Timestamp,
    /// How many entries were read.
    pub examined: i64,
    pub anomalies: Vec<Anomaly>,
    /// There are more: ask for a shorter stretch.
    #[serde(default)]
    pub more: bool,
}

impl Onus {
    pub fn report_anomalies(
        &mut self,
        actor: Option<&Handle>,
        when: &When,
    ) -> Result<AnomaliesView, Refusal> {
        if let Some(answer) = self.remote(|| calls::ReportAnomalies { when: when.clone() })? {
            return Ok(answer);
        }
        let span = self.span(when, actor, USUAL)?;
        let policy = self.policy()?;
        self.ask(|tx| {
            let (mut watch, mut examined) = (Watch::new(Limits::default()), 0);
            report::between(tx, 0, span, &mut |entry| {
                examined += 1;
                watch.entry(&entry.open().map_err(StoreError::Corrupt)?);
                Ok(())
            })?;
            let mut known = BTreeMap::new();
            for task in watch.completed() {
                if let Some(brief) = report::brief(tx, task)? {
                    let has_checks = !brief.checks.is_empty();
                    known.insert(task.clone(), Known { task_type: brief.task_type, has_checks });
                }
            }
            let held = held(tx)?;
            let now = tx.now()?.wall;
            let mut anomalies = drift(&policy, &held);
            anomalies.extend(watch.anomalies(&held, &known, now));
            let (found, mut room) = (anomalies.len(), AnswerRoom::new(LIST_BYTES));
            anomalies.retain(|anomaly| room.has(anomaly.detail.len()));
            let more = anomalies.len() < found;
            Ok(AnomaliesView { since: span.from, until: span.to, examined, anomalies, more })
        })
    }
}

fn held(tx: &mut dyn Tx) -> StoreResult<Vec<Held>> {
    let mut all = Vec::new();
    for live in show::live(tx)? {
        let held = live.assignment;
        let kind = load::worker(tx, &held.assignee)?.map_or(Kind::Agent, |worker| worker.kind);
        let role = load::task(tx, &live.task)?.and_then(|stored| stored.task.spec.role);
        all.push(Held {
            task: live.task,
            task_type: live.task_type.and_then(|name| name.parse().ok()),
            holder: held.assignee,
            kind,
            workstation: held.workstation,
            lane: role.zip(held.lane),
            since: held.assigned_at,
        });
    }
    Ok(all)
}
