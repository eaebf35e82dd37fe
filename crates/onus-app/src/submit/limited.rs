//! The limits that a call is judged by, and those whose end it answers to.

use super::Call;
use crate::limits;
use onus_core::command::{Command, Envelope};
use onus_core::facts::Caller;
use onus_core::limits::Budget;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::{Blocker, State};
use onus_core::worker::Worker;
use onus_store::load::{self, Loaded};
use onus_store::port::Tx;

impl Call<'_> {
    /// Only agents are held: at a grant whoever gets the task, afterwards its holder.
    pub(super) fn budgets(
        &mut self,
        tx: &mut dyn Tx,
        envelope: &Envelope,
        loaded: &Loaded,
    ) -> Result<Vec<Budget>, Refusal> {
        let whom = match &envelope.command {
            Command::Claim { .. } | Command::Takeover { .. } => {
                loaded.mentioned.as_ref().unwrap_or(&loaded.caller)
            }
            Command::Renew { .. } | Command::Block { .. } => &loaded.caller,
            _ => return Ok(Vec::new()),
        };
        let is_agent = |worker: &&Worker| !worker.is_human();
        let agent = match whom {
            Caller::Registered(worker) => Some(worker).filter(is_agent),
            Caller::Anonymous | Caller::Unregistered(_) => None,
        };
        let (Some(agent), Some(stored)) = (agent, &loaded.task) else {
            return Ok(Vec::new());
        };
        let (settings, now) = (self.outside.settings, self.now.wall);
        limits::of_task(tx, settings, now, &stored.task, Some(agent), &mut self.used)
    }

    /// Why the work waits for whoever answers now.
    pub(super) fn stopped_by(
        &self,
        tx: &mut dyn Tx,
        envelope: &Envelope,
        loaded: &Loaded,
    ) -> Result<Vec<Finding>, Refusal> {
        let is_answer =
            matches!(envelope.command, Command::Unblock | Command::Say { .. } | Command::Review { .. });
        let state = loaded.task.as_ref().map(|stored| &stored.task);
        match state {
            Some(task)
                if is_answer
                    && limits::are_set(self.outside.settings)
                    && matches!(&task.state, State::Blocked { on: Blocker::Person(_), .. }) =>
            {
                Ok(load::limits::stopped_by(tx, &task.id)?)
            }
            _ => Ok(Vec::new()),
        }
    }
}
