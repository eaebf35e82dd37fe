//! A stretch of the record, verified by itself: hashes, links and numbers. Whoever watches sees it go on page by page;
//! rows, signatures and the anchor are [`verify`](super::verify)'s.

use super::finding::{FindingKind, FindingView};
use crate::Onus;
use crate::remote::calls;
use onus_core::hash::Digest;
use onus_core::id::Seq;
use onus_core::ledger::Entry;
use onus_core::refusal::Refusal;
use onus_store::error::Result as StoreResult;
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::ledger::{self, LedgerPart};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a stretch of the record was found to be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RangeView {
    pub ok: bool,
    /// Entries that were looked at.
    pub entries: i64,
    /// The last of them; the next stretch begins behind it.
    pub to: i64,
    /// The newest entry of the record.
    pub newest: i64,
    pub findings: Vec<FindingView>,
}

impl Onus {
    /// At most `limit` entries behind `after`.
    pub fn verify_range(&mut self, after: Seq, limit: i64) -> Result<RangeView, Refusal> {
        if let Some(answer) = self.remote(|| calls::VerifyRange { after, limit })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let workspace = load::workspace(tx)?;
            let entries = ledger::log(tx, &LedgerPart::After(after), limit)?;
            let mut heads: BTreeMap<Option<String>, Digest> = BTreeMap::new();
            let (mut findings, mut last) = (Vec::new(), after);
            for entry in &entries {
                if entry.seq != last + 1 {
                    let detail = format!("the entries from {} to {} are gone", last + 1, entry.seq - 1);
                    findings.push(finding(entry, FindingKind::Deleted, detail));
                }
                if entry.expected_hash(&workspace.uid) != entry.hash {
                    findings.push(finding(
                        entry,
                        FindingKind::Edited,
                        "its fields do not give its hash".into(),
                    ));
                }
                if head(tx, &heads, entry)? != entry.prev {
                    let detail = "it does not follow the entry before it in its chain".into();
                    findings.push(finding(entry, FindingKind::Unlinked, detail));
                }
                heads.insert(entry.task.clone(), entry.hash);
                last = entry.seq;
            }
            Ok(RangeView {
                ok: findings.is_empty(),
                entries: entries.len() as i64,
                to: last,
                newest: workspace.last_seq,
                findings,
            })
        })
    }
}

/// The hash that an entry must follow.
fn head(tx: &mut dyn Tx, heads: &BTreeMap<Option<String>, Digest>, entry: &Entry) -> StoreResult<Digest> {
    match heads.get(&entry.task) {
        Some(head) => Ok(*head),
        None => Ok(ledger::head_before(tx, entry.task.as_deref(), entry.seq)?.unwrap_or(Digest::ZERO)),
    }
}

fn finding(entry: &Entry, kind: FindingKind, detail: String) -> FindingView {
    let code = onus_core::code::Code::LedgerBroken.to_string();
    FindingView { code, kind, seq: Some(entry.seq), task: entry.task.clone(), detail }
}
