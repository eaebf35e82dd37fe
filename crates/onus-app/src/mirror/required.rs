//! `at: assignment-required`: a mirror is told of an assignment before the agent is told to begin (mission C8).

use super::sender::Round;
use crate::Onus;
use crate::submit::{Receipt, Target, step, unexpected};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::id::{MirrorName, RequestId, TaskId};
use onus_core::mirror::setting::MirrorAt;
use onus_core::refusal::Refusal;
use onus_core::text::Text;
use onus_store::mirror as rows;
use onus_store::read::ledger;
use std::time::{Duration, Instant};

/// How long a claim waits for a mirror that it needs.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

impl Onus {
    /// Whether a grant has to wait for a mirror.
    pub fn needs_mirrors(&self, command: &Command) -> bool {
        command.is_grant() && self.requires_mirrors()
    }

    pub fn requires_mirrors(&self) -> bool {
        self.settings.mirrors.values().any(|mirror| mirror.at == MirrorAt::AssignmentRequired)
    }

    /// Has the mirrors told of a grant that need it; where one could not be told, the task is given back and nobody begins.
    pub fn tell_of_grant(&mut self, request: &RequestId, receipt: Receipt) -> Result<Receipt, Refusal> {
        let names: Vec<MirrorName> = self
            .settings
            .mirrors
            .iter()
            .filter(|(_, mirror)| mirror.at == MirrorAt::AssignmentRequired)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            if let Err(refusal) = self.tell_at_once(&name, &receipt.task.id) {
                self.give_back_grant(request, &receipt, &refusal)?;
                return Err(refusal.hint(format!("onus mirror check {name}; then claim it again")));
            }
        }
        Ok(receipt)
    }

    /// Tells one mirror, or waits for whoever does.
    fn tell_at_once(&mut self, name: &MirrorName, task: &TaskId) -> Result<(), Refusal> {
        let failed = |why: String| {
            Refusal::new(Code::MirrorStuck, format!("{name} was not told that {task} is assigned: {why}"))
        };
        let newest = self.ask(|tx| {
            let mut newest = 0;
            ledger::chain(tx, Some(&task.to_string()), &mut |seq, entry| {
                if entry?.open().is_ok_and(|stamped| onus_core::mirror::concerns(&stamped.event)) {
                    newest = seq;
                }
                Ok(())
            })?;
            Ok(newest)
        })?;
        let mut sender = self.sender(Some(name))?;
        let until = Instant::now() + PATIENCE;
        loop {
            let round = self.mirror_round(&mut sender)?;
            let (row, stand) =
                self.ask(|tx| Ok((rows::one(tx, name, &task.to_string())?, rows::find(tx, name)?)))?;
            let outcome = match (row, stand) {
                (Some(row), _) if row.delivered >= newest => Some(Ok(())),
                (Some(row), _) if row.stuck => Some(Err(row.error.unwrap_or_default())),
                (_, Some(stand)) if stand.failures > 0 => Some(Err(stand.error.unwrap_or_default())),
                _ if Instant::now() > until => Some(Err("it takes too long".to_owned())),
                _ => None,
            };
            match outcome {
                Some(outcome) => {
                    self.give_mirrors_back(&mut sender)?;
                    return outcome.map_err(failed);
                }
                None if round == Round::default() => std::thread::sleep(PAUSE),
                None => {}
            }
        }
    }

    fn give_back_grant(
        &mut self,
        request: &RequestId,
        receipt: &Receipt,
        why: &Refusal,
    ) -> Result<(), Refusal> {
        let held = receipt.task.assignment().ok_or_else(|| unexpected("a grant without an assignment"))?;
        let envelope = Envelope {
            request: step(request, "mirror")?,
            actor: Some(held.assignee.clone()),
            token: receipt.token.clone(),
            task: Some(receipt.task.id.clone()),
            project: None,
            base: None,
            command: Command::Release {
                note: Some(Text::new(why.detail.clone())),
                handoff: None,
                warrant: Warrant::Ordinary,
            },
        };
        self.submit(&envelope, &Target::Named).map(drop)
    }
}
