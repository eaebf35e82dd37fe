//! `review`

use super::{Order, VerbInput, text};
use crate::Onus;
use onus_core::command::{Command, Opinion};
use onus_core::evidence::{Classification, ReviewVerdict};
use onus_core::id::{CommitId, TaskId, WorkstationName};
use onus_core::line_comment::LineComment;
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
    /// Words about lines of the commit, with a verdict or alone; the holder gets them
    #[serde(default)]
    pub comments: Vec<CommentInput>,
}

/// Words about one line of a file, as the commit has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentInput {
    pub path: String,
    #[schemars(range(min = 1))]
    pub line: i64,
    #[schemars(length(min = 1))]
    pub text: String,
}

impl CommentInput {
    fn comment(self) -> LineComment {
        LineComment { path: self.path, line: self.line, text: text(&self.text) }
    }
}

impl VerbInput for ReviewInput {
    fn order(self, onus: &mut Onus, task: Option<&TaskId>) -> Result<Order, Refusal> {
        let is_alone = self.verdict.is_none() && self.tick.is_empty() && self.untick.is_empty();
        let comments: Vec<LineComment> = self.comments.into_iter().map(CommentInput::comment).collect();
        onus.refuse_missing_lines(task, self.commit.as_ref(), &comments)?;
        if is_alone && !comments.is_empty() {
            return Ok(Order::new(Command::Comment { commit: self.commit, comments }));
        }
        let (verdict, classification) = match (self.verdict, self.classification) {
            (None, None) if comments.is_empty() && self.tick.is_empty() != self.untick.is_empty() => {
                let withdrawn = self.tick.is_empty();
                let criteria = if withdrawn { self.untick } else { self.tick };
                return Ok(Order::new(Command::Tick { criteria, withdrawn, workstation: self.workstation }));
            }
            (Some(verdict), Some(classification)) if self.tick.is_empty() && self.untick.is_empty() => {
                (verdict, classification)
            }
            _ => {
                let detail = "a review is a verdict with its classification, or comments, or criteria to tick, or to untick";
                return Err(Refusal::invalid(detail).hint("send one of them at a time"));
            }
        };
        let opinion = Opinion {
            verdict,
            classification,
            commit: self.commit,
            workstation: self.workstation,
            note: self.note.as_deref().map(text),
            comments,
        };
        Ok(Order::new(Command::Review { opinion: Box::new(opinion) }))
    }
}
