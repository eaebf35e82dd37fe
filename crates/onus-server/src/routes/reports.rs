//! Reports: the record and the queue, told for people who decide.

use super::body::Nothing;
use crate::route::{Asked, Rendered, Route, get};
use crate::store::Store;
use onus_app::inbox::InboxView;
use onus_app::limits::LimitsView;
use onus_app::report::{AnomaliesView, AuditKind, AuditView, IncidentView, NowView, SprintView, When};
use onus_core::id::{Seq, TaskId, shown};
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/inbox", "inbox", "What waits for you, and the command that deals with it", inbox),
        get(
            "/v1/reports/now",
            "report_now",
            "What was completed, what is stuck and why, and what needs a person",
            now,
        ),
        get(
            "/v1/reports/sprint",
            "report_sprint",
            "Tasks per worker, workstation, type, state and sprint; throughput and lost leases",
            sprint,
        ),
        get(
            "/v1/reports/incident",
            "report_incident",
            "Who ran a task, where, under which version of the identity map, and was that within policy",
            incident,
        ),
        get(
            "/v1/reports/audit",
            "report_audit",
            "Grants, acts by force, refusals, exceptions, quarantines and grants outside the policy",
            audit,
        ),
        get(
            "/v1/reports/limits",
            "report_limits",
            "What agents have used of what they may: today, in sprints, or of one task",
            limits,
        ),
        get("/v1/reports/anomalies", "report_anomalies", "What is worth a second look", anomalies),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PeriodQuery {
    /// A day, a moment, or how long ago: `2026-11-16`, `2026-11-16T18:00`, `7d`
    since: Option<String>,
    /// Likewise; a day counts to its end. Default: now
    until: Option<String>,
}

fn inbox(store: &mut Store, asked: &Asked, _: Nothing) -> Result<InboxView, Refusal> {
    store.inbox(asked.actor())
}

fn now(store: &mut Store, asked: &Asked, query: PeriodQuery) -> Result<NowView, Refusal> {
    store.report_now(asked.actor(), &When { since: query.since, until: query.until })
}

fn anomalies(store: &mut Store, asked: &Asked, query: PeriodQuery) -> Result<AnomaliesView, Refusal> {
    store.report_anomalies(asked.actor(), &When { since: query.since, until: query.until })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SprintQuery {
    /// Only this sprint; default: all of them
    sprint: Option<String>,
}

fn sprint(store: &mut Store, asked: &Asked, query: SprintQuery) -> Result<SprintView, Refusal> {
    store.report_sprint(asked.actor(), query.sprint.as_deref())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IncidentQuery {
    task: TaskId,
    /// Only what happened after this entry: where an earlier answer ended
    after: Option<Seq>,
}

fn incident(store: &mut Store, _: &Asked, query: IncidentQuery) -> Result<IncidentView, Refusal> {
    store.report_incident(&query.task, query.after)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// A day, a moment, or how long ago; default: thirty days
    since: Option<String>,
    /// Likewise; a day counts to its end. Default: now
    until: Option<String>,
    /// Only these kinds, with commas: grant, outside_policy, forced, refusal, exception, quarantine, token, time, generation, milestone
    only: Option<String>,
    /// Only what came after this entry: where an earlier answer ended
    after: Option<Seq>,
}

fn audit(store: &mut Store, asked: &Asked, query: AuditQuery) -> Result<AuditView, Refusal> {
    let mut only = Vec::new();
    for name in query.only.iter().flat_map(|names| names.split(',')) {
        only.push(AuditKind::parse(name).ok_or_else(|| {
            Refusal::invalid(format!("only: {} is no kind of an audit's lines", shown(name)))
                .hint(AuditKind::ALL.map(AuditKind::name).join(", "))
        })?);
    }
    store.audit_part(asked.actor(), &When { since: query.since, until: query.until }, &only, query.after)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LimitsQuery {
    /// Only those that this task is under
    task: Option<TaskId>,
}

fn limits(store: &mut Store, _: &Asked, query: LimitsQuery) -> Result<LimitsView, Refusal> {
    store.limits(query.task.as_ref())
}

impl Rendered for LimitsView {}
impl Rendered for InboxView {}
impl Rendered for NowView {}
impl Rendered for SprintView {}
impl Rendered for IncidentView {}
impl Rendered for AuditView {}
impl Rendered for AnomaliesView {}
