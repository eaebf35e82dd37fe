//! What `ledger verify` finds, and where.

use onus_core::code::Code;
use onus_core::id::Seq;
use onus_core::refusal::{Finding, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most findings that one answer carries.
const SHOWN: usize = 100;

/// In which way the record does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// An entry's fields do not give its hash.
    Edited,
    /// An entry that others follow, or a whole row of numbers, is gone.
    Deleted,
    /// An entry stands before the one that it follows.
    Reordered,
    /// Two entries follow the same one.
    Forked,
    /// An entry follows something that is not in its chain.
    Unlinked,
    /// A chain is shorter than its row or the anchor says.
    Truncated,
    /// A chain is not the one that was signed.
    Rewritten,
    /// A chain appeared among what was signed.
    Inserted,
    /// An entry, a row or a page cannot be read.
    Unreadable,
    /// An entry cannot follow the ones before it.
    Inconsistent,
    /// A row says something else than the record.
    RowDiffers,
    /// A row that the record speaks of is not there, or has no record.
    RowMissing,
    /// A text is not the one that was recorded.
    TextDiffers,
    /// A checkpoint's document or signature is not what was signed.
    CheckpointForged,
    /// The record is not what a checkpoint signed.
    CheckpointDiffers,
    /// A checkpoint is gone from the store.
    CheckpointMissing,
    /// The anchor is gone or cannot be reached.
    AnchorMissing,
    /// The anchor does not hold what the store says.
    AnchorDiffers,
    /// The anchor has seen more than the store knows.
    StoreBehind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingView {
    /// Always `ledger_broken`.
    pub code: String,
    pub kind: FindingKind,
    /// The entry, where it is about one.
    pub seq: Option<Seq>,
    /// The task, where it is about one.
    pub task: Option<String>,
    pub detail: String,
}

impl FindingView {
    /// In one line, with its place.
    pub fn line(&self) -> String {
        match (&self.task, self.seq) {
            (Some(task), Some(seq)) => format!("{task}, entry {seq}: {}", self.detail),
            (Some(task), None) => format!("{task}: {}", self.detail),
            (None, Some(seq)) => format!("entry {seq}: {}", self.detail),
            (None, None) => self.detail.clone(),
        }
    }
}

/// The findings so far: the first ones in full, the others counted.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) shown: Vec<FindingView>,
    pub(super) more: i64,
}

impl Findings {
    pub(super) fn add(
        &mut self,
        kind: FindingKind,
        seq: impl Into<Option<Seq>>,
        task: Option<&str>,
        detail: impl Into<String>,
    ) {
        let task = task.filter(|name| !name.is_empty()).map(str::to_owned);
        let code = Code::LedgerBroken.name();
        let found = FindingView { code: code.to_owned(), kind, seq: seq.into(), task, detail: detail.into() };
        if self.shown.contains(&found) {
            return;
        }
        if self.shown.len() < SHOWN {
            self.shown.push(found);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn count(&self) -> i64 {
        self.shown.len() as i64 + self.more
    }
}

/// The refusal that a front end gives when there are findings.
pub(super) fn refusal(findings: &[FindingView], more: i64) -> Option<Refusal> {
    let hint = "change nothing; compare the store with a backup and another clone's refs/onus/ledger";
    let listed = findings.iter().map(|found| Finding::new(Code::LedgerBroken, found.line()).hint(hint));
    let refusal = Refusal::from_findings(listed.collect())?;
    let others = findings.len() as i64 - 1 + more;
    let detail = match (findings.first(), others) {
        (Some(first), 1..) => format!("{} (and {others} more)", first.line()),
        (Some(first), _) => first.line(),
        (None, _) => refusal.detail.clone(),
    };
    Some(Refusal { detail, task: findings.iter().find_map(|found| found.task.clone()), ..refusal })
}
