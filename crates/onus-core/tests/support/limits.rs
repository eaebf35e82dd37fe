//! What agents have used up, added up the long way: the world's own sessions, one by one.

use super::World;
use onus_core::command::Command;
use onus_core::event::Event;
use onus_core::facts::Caller;
use onus_core::id::Seq;
use onus_core::limits::{Budget, Limit, LimitScope, Used};
use onus_core::refusal::Finding;
use onus_core::session::{Counts, Usage};
use onus_core::task::Task;
use onus_core::worker::Worker;

impl World {
    /// The last session has used up so many tokens more.
    pub(crate) fn uses(&mut self, tokens: i64) {
        let session = self.sessions.last().expect("a session").from.0;
        let counts = Counts { input_tokens: tokens, turns: 1, ..Counts::default() };
        let key = format!("k{}", self.usages.len());
        self.usages.push((session, Usage { key, source: "reported".into(), model: None, counts }));
    }

    pub(super) fn budgets(
        &self,
        command: &Command,
        caller: &Caller,
        mentioned: Option<&Caller>,
        task: Option<&Task>,
    ) -> Vec<Budget> {
        let whom = match command {
            Command::Claim { .. } | Command::Takeover { .. } => mentioned.unwrap_or(caller),
            Command::Renew { .. } | Command::Block { .. } => caller,
            _ => return Vec::new(),
        };
        let (Caller::Registered(worker), Some(task)) = (whom, task) else { return Vec::new() };
        if worker.is_human() {
            return Vec::new();
        }
        let limits = &self.settings.limits;
        let lifted = self.lifted(task);
        let own = self.used(lifted.unwrap_or(0), |session_task, _| session_task == task.id.to_string());
        let day = match lifted {
            Some(_) => own,
            None => self.used(0, |_, of: &Worker| of.handle == worker.handle),
        };
        let sprint = match (lifted, &task.spec.sprint) {
            (Some(_), _) | (_, None) => own,
            (None, Some(sprint)) => self.used(0, |id, _| {
                let id = id.parse().unwrap();
                self.tasks[&id].spec.sprint.as_ref() == Some(sprint)
            }),
        };
        let named = |scope, of: String, limit: Limit, used| Budget { scope, of, limit, used };
        let mut budgets =
            vec![named(LimitScope::WorkerDay, worker.handle.to_string(), limits.worker_day, day)];
        let of = task.spec.sprint.clone();
        budgets.extend(of.map(|of| named(LimitScope::Sprint, of, limits.sprint, sprint)));
        budgets.push(named(LimitScope::Task, task.id.to_string(), limits.task, own));
        budgets
    }

    /// The entry by which a person last let a task go on.
    fn lifted(&self, task: &Task) -> Option<Seq> {
        let chain = self.chains.get(&task.id)?;
        chain.iter().rfind(|entry| entry.verb == "limits_lifted").map(|entry| entry.seq)
    }

    fn used(&self, since: Seq, counts: impl Fn(&str, &Worker) -> bool) -> Used {
        let mut used = Used::default();
        let mut ended = std::collections::BTreeSet::new();
        for session in &self.sessions {
            let worker = &self.workers[&session.worker];
            if worker.is_human() || session.from.0 < since || !counts(&session.task.to_string(), worker) {
                continue;
            }
            let end = session.ended().unwrap_or(self.clock.wall);
            used.time_ms += end.since(session.began()).0;
            let row = self
                .assignments
                .iter()
                .find(|row| row.task == session.task && row.assignment.epoch == session.epoch)
                .expect("an assignment");
            if row.ended.is_some_and(|(_, reason)| reason.name() != "completed") {
                ended.insert((session.task.clone(), session.epoch));
            }
            for (_, usage) in self.usages.iter().filter(|(of, _)| *of == session.from.0) {
                used.tokens += usage.counts.tokens();
                used.turns += usage.counts.turns;
                used.cost_micros += usage.counts.cost_micros.unwrap_or(0);
                used.is_cost_partial |= usage.counts.cost_micros.is_none();
            }
        }
        used.attempts = i64::try_from(ended.len()).unwrap();
        used
    }

    /// The limits that stopped a task when it was last blocked.
    pub(super) fn stopped_by(&self, task: Option<&Task>) -> Vec<Finding> {
        let last = task
            .and_then(|task| self.chains.get(&task.id))
            .and_then(|chain| chain.iter().rfind(|entry| entry.verb == "blocked"));
        match last.map(|entry| entry.open().unwrap().event) {
            Some(Event::Blocked(blocked)) => blocked.limits,
            _ => Vec::new(),
        }
    }
}
