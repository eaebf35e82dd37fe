//! `review`

use super::{Order, VerbInput, text};
use crate::Onus;
use onus_core::command::{Command, Opinion};
use onus_core::evidence::{Classification, ReviewVerdict};
use onus_core::id::{CommitId, TaskId, WorkstationName};
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// What somebody else's work is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewInput {
    pub verdict: Option<ReviewVerdict>,
    /// With a verdict: what there is
    pub classification: Option<Classification>,
    /// Instead of a verdict: acceptance criteria that are met, by number or id, or `all`
    #[serde(default)]
    pub tick: Vec<String>,
    /// Instead of a verdict: criteria that are not met any more
    #[serde(default)]
    pub untick: Vec<String>,
    pub commit: Option<CommitId>,
    /// Where you reviewed it
    pub workstation: Option<WorkstationName>,
    pub note: Option<String>,
}

impl VerbInput for ReviewInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        let (verdict, classification) = match (self.verdict, self.classification) {
            (None, None) if self.tick.is_empty() != self.untick.is_empty() => {
                let withdrawn = self.tick.is_empty();
                let criteria = if withdrawn { self.untick } else { self.tick };
                return Ok(Order::new(Command::Tick { criteria, withdrawn, workstation: self.workstation }));
            }
            (Some(verdict), Some(classification)) if self.tick.is_empty() && self.untick.is_empty() => {
                (verdict, classification)
            }
            _ => {
                let detail =
                    "a review is a verdict with its classification, or criteria to tick, or to untick";
                return Err(Refusal::invalid(detail).hint("send one of them at a time"));
            }
        };
        let opinion = Opinion {
            verdict,
            classification,
            commit: self.commit,
            workstation: self.workstation,
            note: self.note.as_deref().map(text),
        };
        Ok(Order::new(Command::Review { opinion: Box::new(opinion) }))
    }
}
