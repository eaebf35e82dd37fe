//! What does not go on by itself, and why.

use crate::Onus;
use crate::submit::{Judge, claim};
use crate::view::HeldView;
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId};
use onus_core::identity_map::{self, Policy};
use onus_core::refusal::{Finding, Refusal};
use onus_core::report::plain_words::blocker;
use onus_core::task::{StateName, Task};
use onus_core::time::{Millis, Timestamp};
use onus_store::load;
use onus_store::read::queue::{self, After, Filter};
use onus_store::read::report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So many ready tasks are tried on everybody whom the map names.
const TRIED: i64 = 10;
/// So many waiting tasks are searched for what they can never get.
const WAITING: i64 = 500;
/// So much of the head of the queue is searched for what waits.
pub(super) const WINDOW: i64 = 5_000;

/// Why a task does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StuckKind {
    /// Its holder has gone silent.
    LeaseExpired,
    /// It waits for something that has a name.
    Blocked,
    /// It is ready, and nobody whom the map names could take it even if they were free.
    Unroutable,
    /// It waits for a task that was dropped, and so for ever.
    NeverReady,
}

impl StuckKind {
    pub const fn name(self) -> &'static str {
        match self {
            StuckKind::LeaseExpired => "lease_expired",
            StuckKind::Blocked => "blocked",
            StuckKind::Unroutable => "unroutable",
            StuckKind::NeverReady => "never_ready",
        }
    }
}

/// A task that does not go on by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StuckView {
    pub task: TaskId,
    pub title: String,
    pub kind: StuckKind,
    pub detail: String,
    pub holder: Option<Handle>,
    pub since: Option<Timestamp>,
    /// What to do about it.
    pub hint: String,
    pub untrusted: bool,
    /// The dropped task that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<TaskId>,
}

/// Held tasks whose holders have gone silent.
fn silent(held: &[HeldView]) -> Vec<StuckView> {
    let stale = held.iter().filter(|held| held.is_stale());
    stale
        .map(|held| {
            let detail = match (&held.dead, held.expired_for_ms) {
                (Some(death), _) => format!("{} in {}: {death}", held.assignee, held.workstation),
                (None, late) => {
                    let late = Millis(late.unwrap_or(0)).in_words();
                    format!("the lease of {} in {} expired {late} ago", held.assignee, held.workstation)
                }
            };
            let hint = if held.may_be_taken_over {
                format!("onus takeover {} --reason TEXT", held.task)
            } else {
                "it may be taken over after the grace period".to_owned()
            };
            StuckView {
                task: held.task.clone(),
                title: held.title.clone(),
                kind: StuckKind::LeaseExpired,
                detail,
                holder: Some(held.assignee.clone()),
                since: Some(held.expires_at),
                hint,
                untrusted: true,
                on: None,
            }
        })
        .collect()
}

impl StuckView {
    /// Whoever it waits for finds it in their own inbox.
    pub(crate) fn is_blocked(&self) -> bool {
        self.kind == StuckKind::Blocked
    }
}

impl Onus {
    fn blocked(&mut self) -> Result<Vec<StuckView>, Refusal> {
        let found = self.ask(|tx| report::wanting(tx, WINDOW))?;
        let blocked = found.into_iter().filter(|found| found.state == StateName::Blocked);
        Ok(blocked
            .map(|found| StuckView {
                hint: match found.blocker.as_deref().and_then(|on| on.strip_prefix("person:")) {
                    Some(person) => {
                        format!("an answer of {person} lets it go on: onus say {} TEXT", found.task)
                    }
                    None => format!("onus unblock {} once that is resolved", found.task),
                },
                detail: format!("waits for {}", found.blocker.as_deref().map_or("something", blocker)),
                kind: StuckKind::Blocked,
                holder: None,
                since: Some(found.updated_at),
                task: found.task,
                title: found.title,
                untrusted: true,
                on: None,
            })
            .collect())
    }

    /// Everything that does not go on by itself.
    pub(crate) fn stuck(&mut self, held: &[HeldView]) -> Result<Vec<StuckView>, Refusal> {
        let mut stuck = silent(held);
        stuck.extend(self.blocked()?);
        stuck.extend(self.never_ready()?);
        stuck.extend(self.unroutable()?);
        Ok(stuck)
    }

    /// Tasks that wait for one that was dropped: no work of anybody makes them ready.
    pub(super) fn never_ready(&mut self) -> Result<Vec<StuckView>, Refusal> {
        self.ask(|tx| {
            let mut found = Vec::new();
            for task in queue::waiting(tx, &Filter::default(), WAITING)? {
                let mut on = load::dependencies(tx, &task.id)?.into_iter();
                let lost = on.find(|on| on.state == Some(StateName::Dropped) && !on.excepted);
                found.extend(lost.map(|on| StuckView {
                    detail: format!("waits for {}, which was dropped", on.id),
                    kind: StuckKind::NeverReady,
                    holder: None,
                    since: Some(task.updated_at),
                    hint: format!("onus edit {} --depends-on -{}", task.id, on.id),
                    title: task.spec.title.clone(),
                    task: task.id.clone(),
                    untrusted: true,
                    on: Some(on.id),
                }));
            }
            Ok(found)
        })
    }

    /// The first ready tasks for which there is nobody. Without a map anybody may take anything.
    fn unroutable(&mut self) -> Result<Vec<StuckView>, Refusal> {
        let policy = self.policy()?;
        if policy == Policy::Absent {
            return Ok(Vec::new());
        }
        self.judge(&policy, |judge| {
            let ready = queue::ready(judge.tx, &Filter::default(), After::START, TRIED)?;
            ready.iter().map(|task| nobody_for(judge, &policy, task)).filter_map(Result::transpose).collect()
        })
    }
}

/// Whoever is only busy will come to it: that is a queue, and nothing is stuck.
fn is_only_busy(finding: &Finding) -> bool {
    matches!(finding.code, Code::WorkstationBusy | Code::LaneFull | Code::ScopeOverlap)
}

fn nobody_for(judge: &mut Judge<'_>, policy: &Policy, task: &Task) -> Result<Option<StuckView>, Refusal> {
    let mut against: Vec<String> = match policy {
        Policy::Invalid(broken) => broken.findings.iter().map(|finding| finding.detail.clone()).collect(),
        _ => Vec::new(),
    };
    let candidates = identity_map::candidates(policy, &task.spec);
    for (agent, place) in &candidates {
        match judge.claim(&claim(Some(agent), &task.id, None, Some(place))?)? {
            Ok(_) => return Ok(None),
            Err(findings) if findings.iter().all(is_only_busy) => return Ok(None),
            Err(findings) => {
                let why = findings.into_iter().filter(|finding| !is_only_busy(finding));
                against.extend(why.map(|finding| format!("{agent} in {place}: {}", finding.detail)));
            }
        }
    }
    if candidates.is_empty() && against.is_empty() {
        let of = task.spec.task_type.as_ref().map_or("no type".to_owned(), |own| format!("the type {own}"));
        against.push(format!("no rule of the map routes tasks of {of}"));
    }
    Ok(Some(StuckView {
        task: task.id.clone(),
        title: task.spec.title.clone(),
        kind: StuckKind::Unroutable,
        detail: against.join("; "),
        holder: None,
        since: Some(task.updated_at),
        hint: format!("onus route explain {}", task.id),
        untrusted: true,
        on: None,
    }))
}
