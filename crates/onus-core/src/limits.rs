//! What agents may use up before a person looks: cost, tokens, time, turns and attempts; of a task, of an agent's day, of a
//! sprint, of everybody's day (mission E10).
//!
//! Only what agents work is counted, and only agents are held. A person's word lifts the limits of one task: from then on the
//! task is measured by what it uses itself, against each limit anew. So no word makes anything endless.

use crate::agents::AgentSettings;
use crate::amount::Amount;
use crate::code::Code;
use crate::event::{Event, LimitsLifted};
use crate::id::{Handle, TaskId};
use crate::refusal::Finding;
use crate::time::Millis;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much each of these may use up. What is not named has no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// One task, all its agents together.
    pub task: Limit,
    /// One agent in one of its days.
    pub worker_day: Limit,
    /// All tasks of one sprint together.
    pub sprint: Limit,
    /// All agents together in one day, which begins at midnight UTC.
    pub workspace_day: Limit,
    /// Who is asked when a limit stops work. Default: whoever asked for the task, if that is a person.
    pub ask: Option<Handle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limit {
    /// In the currency of `effort.currency`. What nobody told the cost of is not in it.
    pub cost: Option<Amount>,
    /// Of all kinds: read, written, from and to a cache.
    pub tokens: Option<u64>,
    /// The length of the sessions.
    pub time: Option<Millis>,
    /// Answers of a model, where its client tells them.
    pub turns: Option<u32>,
    /// Grants that ended without completion.
    pub attempts: Option<u32>,
}

impl Limit {
    pub fn is_none(&self) -> bool {
        *self == Limit::default()
    }

    /// Where both name a figure, this one's counts.
    fn or(&self, usual: &Limit) -> Limit {
        Limit {
            cost: self.cost.or(usual.cost),
            tokens: self.tokens.or(usual.tokens),
            time: self.time.or(usual.time),
            turns: self.turns.or(usual.turns),
            attempts: self.attempts.or(usual.attempts),
        }
    }

    fn of(&self, measure: Measure) -> Option<i64> {
        match measure {
            Measure::Cost => self.cost.map(|cost| cost.0),
            Measure::Tokens => self.tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)),
            Measure::Time => self.time.map(|time| time.0),
            Measure::Turns => self.turns.map(i64::from),
            Measure::Attempts => self.attempts.map(i64::from),
        }
    }

    /// The names of figures that would let nothing begin.
    fn zeros(&self) -> impl Iterator<Item = &'static str> {
        Measure::ALL.iter().filter(|measure| self.of(**measure) == Some(0)).map(|measure| measure.name())
    }
}

impl LimitSettings {
    pub fn is_none(&self) -> bool {
        LimitSettings { ask: None, ..self.clone() } == LimitSettings::default()
    }

    /// The limits of an agent's day: where `agents` names figures for it, those.
    pub fn of_worker(&self, agents: &[AgentSettings], worker: &Handle) -> Limit {
        let own = agents.iter().find(|kind| kind.is_about(worker)).map(|kind| kind.limits);
        own.unwrap_or_default().or(&self.worker_day)
    }

    /// What cannot be meant.
    pub(crate) fn mistakes(&self, agents: &[AgentSettings]) -> Vec<Finding> {
        let own = [
            ("limits.task", self.task),
            ("limits.worker_day", self.worker_day),
            ("limits.sprint", self.sprint),
            ("limits.workspace_day", self.workspace_day),
        ];
        let own = own.into_iter().map(|(name, limit)| (name.to_owned(), limit));
        let agents = agents.iter().map(|kind| (format!("agents: limits of {}", kind.worker), kind.limits));
        own.chain(agents)
            .flat_map(|(name, limit)| {
                limit.zeros().map(move |figure| (name.clone(), figure)).collect::<Vec<_>>()
            })
            .map(|(name, figure)| {
                Finding::new(Code::InvalidInput, format!("{name}: {figure}: 0 would let nothing begin"))
                    .hint("remove the line to have no limit; onus worker pause @AGENT gives an agent no work")
            })
            .collect()
    }
}

words!(
    /// Whose a limit is.
    LimitScope {
        WorkspaceDay = "workspace_day",
        WorkerDay = "worker_day",
        Sprint = "sprint",
        Task = "task",
    }
);

impl LimitScope {
    /// Whether it stands against every task alike.
    pub const fn is_of_all(self) -> bool {
        matches!(self, LimitScope::WorkspaceDay | LimitScope::WorkerDay)
    }
}

words!(
    Measure {
        Cost = "cost",
        Tokens = "tokens",
        Time = "time",
        Turns = "turns",
        Attempts = "attempts",
    }
);

/// What was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    pub cost_micros: i64,
    /// Tokens were used whose cost nobody told: the cost is at least this.
    pub is_cost_partial: bool,
    pub tokens: i64,
    pub time_ms: i64,
    pub turns: i64,
    pub attempts: i64,
}

impl Used {
    fn of(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Cost => self.cost_micros,
            Measure::Tokens => self.tokens,
            Measure::Time => self.time_ms,
            Measure::Turns => self.turns,
            Measure::Attempts => self.attempts,
        }
    }
}

/// A limit that a task is under, and what was used of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub scope: LimitScope,
    /// The task, the agent or the sprint; the word for all.
    pub of: String,
    pub limit: Limit,
    pub used: Used,
}

/// One figure of it. Costs are in millionths, time is in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    pub scope: LimitScope,
    pub of: String,
    pub measure: Measure,
    pub used: i64,
    pub limit: i64,
    pub is_partial: bool,
}

impl Figure {
    pub fn is_reached(&self) -> bool {
        self.used >= self.limit
    }

    /// `4.80 of 5.00 USD`.
    pub fn told(&self, currency: &str) -> String {
        let (used, limit) = (self.used, self.limit);
        match self.measure {
            Measure::Cost => {
                let (least, unknown) =
                    if self.is_partial { ("at least ", " (some cost is unknown)") } else { ("", "") };
                format!("{least}{} of {} {currency}{unknown}", Amount(used), Amount(limit))
            }
            Measure::Tokens => format!("{used} of {limit} tokens"),
            Measure::Time if used < 1_000 => format!("0s of {}", Millis(limit)),
            Measure::Time => format!("{} of {}", Millis(used), Millis(limit)),
            Measure::Turns => format!("{used} of {limit} turns"),
            Measure::Attempts => format!("{used} of {limit} attempts"),
        }
    }

    fn sentence(&self, currency: &str) -> String {
        let told = self.told(currency);
        match self.scope {
            LimitScope::Task => format!("{} has used {told}", self.of),
            LimitScope::WorkerDay => format!("{} has used {told} today", self.of),
            LimitScope::Sprint => format!("the sprint {} has used {told}", self.of),
            LimitScope::WorkspaceDay => format!("all agents together have used {told} today"),
        }
    }
}

/// Every figure that has a limit.
pub fn figures(budgets: &[Budget]) -> Vec<Figure> {
    let of = |budget: &Budget| {
        let figure = |measure: &Measure| {
            Some(Figure {
                scope: budget.scope,
                of: budget.of.clone(),
                measure: *measure,
                used: budget.used.of(*measure),
                limit: budget.limit.of(*measure)?,
                is_partial: *measure == Measure::Cost && budget.used.is_cost_partial,
            })
        };
        Measure::ALL.iter().filter_map(figure).collect::<Vec<_>>()
    };
    budgets.iter().flat_map(of).collect()
}

/// When work is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Grant,
    /// The attempt that is under way has not failed yet.
    Running,
}

/// Every limit that is reached. What stands against all tasks alike comes first.
pub(crate) fn findings(
    budgets: &[Budget],
    moment: Moment,
    currency: &str,
    (task, worker): (&TaskId, &Handle),
) -> Vec<Finding> {
    let counts = |figure: &Figure| {
        figure.is_reached() && (moment == Moment::Grant || figure.measure != Measure::Attempts)
    };
    let finding = |figure: Figure| Finding {
        kind: Some(figure.scope.name().to_owned()),
        ..Finding::new(Code::BudgetExceeded, figure.sentence(currency)).hint(remedy(
            figure.scope,
            task,
            worker,
        ))
    };
    let mut reached: Vec<Figure> = figures(budgets).into_iter().filter(counts).collect();
    reached.sort_by_key(|figure| !figure.scope.is_of_all());
    reached.into_iter().map(finding).collect()
}

fn remedy(scope: LimitScope, task: &TaskId, worker: &Handle) -> String {
    let force = format!("a person runs: onus claim {task} --for {worker} --force --reason TEXT");
    match scope {
        LimitScope::Task | LimitScope::Sprint => {
            format!("take other work: onus ready; or {force}; or raise limits.{} in onus.yaml", scope.name())
        }
        LimitScope::WorkerDay | LimitScope::WorkspaceDay => {
            format!("wait for tomorrow; or {force}; or raise limits.{} in onus.yaml", scope.name())
        }
    }
}

/// What a person's word over these limits puts on record.
pub(crate) fn lifted(limits: Vec<Finding>) -> Vec<Event> {
    match limits.is_empty() {
        true => Vec::new(),
        false => vec![LimitsLifted { limits }.into()],
    }
}

/// Whether a refusal is about its own task alone: another one may still be begun.
pub fn is_about_task(findings: &[Finding]) -> bool {
    let of_all = |finding: &&Finding| {
        finding.code == Code::BudgetExceeded
            && finding.kind.as_deref().and_then(LimitScope::parse).is_none_or(LimitScope::is_of_all)
    };
    findings.iter().find(of_all).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(scope: LimitScope, limit: Limit, used: Used) -> Budget {
        Budget { scope, of: "@b1".into(), limit, used }
    }

    fn told(budgets: &[Budget], moment: Moment) -> Vec<String> {
        findings(budgets, moment, "USD", (&"API-1".parse().unwrap(), &"@b1".parse().unwrap()))
            .into_iter()
            .map(|finding| finding.detail)
            .collect()
    }

    #[test]
    fn every_figure_counts_from_the_moment_in_which_it_is_reached() {
        let limit = Limit {
            cost: Some(Amount(5_000_000)),
            tokens: Some(1_000),
            time: Some(Millis::minutes(10)),
            turns: Some(20),
            attempts: Some(2),
        };
        let below = Used {
            cost_micros: 4_999_999,
            tokens: 999,
            time_ms: 599_999,
            turns: 19,
            attempts: 1,
            is_cost_partial: false,
        };
        assert!(told(&[budget(LimitScope::WorkerDay, limit, below)], Moment::Grant).is_empty());
        let at = Used {
            cost_micros: 5_000_000,
            tokens: 1_000,
            time_ms: 600_000,
            turns: 20,
            attempts: 2,
            is_cost_partial: true,
        };
        let all = told(&[budget(LimitScope::WorkerDay, limit, at)], Moment::Grant);
        assert_eq!(all[0], "@b1 has used at least 5.00 of 5.00 USD (some cost is unknown) today");
        assert_eq!(all.len(), 5);
        assert_eq!(told(&[budget(LimitScope::WorkerDay, limit, at)], Moment::Running).len(), 4);
        assert!(told(&[budget(LimitScope::Task, Limit::default(), at)], Moment::Grant).is_empty());
    }

    #[test]
    fn what_stands_against_all_tasks_comes_first_and_is_known() {
        let (limit, used) =
            (Limit { tokens: Some(1), ..Limit::default() }, Used { tokens: 1, ..Used::default() });
        let of = |scopes: &[LimitScope]| {
            let budgets: Vec<Budget> = scopes.iter().map(|scope| budget(*scope, limit, used)).collect();
            findings(&budgets, Moment::Grant, "USD", (&"API-1".parse().unwrap(), &"@b1".parse().unwrap()))
        };
        let mixed = of(&[LimitScope::Task, LimitScope::WorkerDay]);
        assert_eq!(mixed[0].kind.as_deref(), Some("worker_day"));
        assert!(!is_about_task(&mixed) && is_about_task(&of(&[LimitScope::Sprint, LimitScope::Task])));
    }
}
