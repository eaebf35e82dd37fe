//! A root says that something changed; the anchored heads say which chain.

use super::anchor_sync::{Anchorage, Anchored};
use super::finding::{FindingKind, Findings};
use super::heads::{Heads, WORKSPACE_CHAIN};
use onus_core::id::Seq;
use onus_core::ledger::Head;
use onus_store::error::Result;
use onus_store::port::Tx;
use std::collections::BTreeMap;

/// Compares the chains with the anchored heads at the first and the last disputed checkpoint: between them lies
/// everything that changed.
pub(super) fn locate(
    tx: &mut dyn Tx,
    anchorage: &Anchorage,
    lineage: &[&Anchored],
    disputed: &[Seq],
    found: &mut Findings,
) -> Result<()> {
    let at = |anchored: &&Anchored| anchored.checkpoint.as_ref().map(|checkpoint| checkpoint.seq);
    let is_disputed = |anchored: &&Anchored| at(anchored).is_some_and(|seq| disputed.contains(&seq));
    let first = lineage.iter().position(is_disputed);
    let last = lineage.iter().rposition(is_disputed);
    let mut anchored_heads = BTreeMap::new();
    for (number, anchored) in lineage.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
        let Some(moved) = anchorage.heads(anchored) else {
            let detail = format!("{} does not say which chains moved", anchored.id);
            found.add(FindingKind::AnchorDiffers, at(anchored), None, detail);
            return Ok(());
        };
        anchored_heads.extend(moved.into_iter().map(|head| (head.chain.clone(), head)));
        if (Some(number) == first || Some(number) == last)
            && let Some(seq) = at(anchored)
        {
            compare(&anchored_heads, &Heads::until(tx, seq)?.since(0), found);
        }
    }
    Ok(())
}

fn compare(anchored: &BTreeMap<String, Head>, present: &[Head], found: &mut Findings) {
    let present: BTreeMap<&str, &Head> = present.iter().map(|head| (head.chain.as_str(), head)).collect();
    for (chain, head) in anchored {
        let whose = if chain == WORKSPACE_CHAIN { "the workspace's chain" } else { "its chain" };
        let (kind, detail) = match present.get(chain.as_str()) {
            Some(own) if *own == head => continue,
            Some(own) if own.seq < head.seq => (
                FindingKind::Truncated,
                format!("{whose} was anchored up to {}, and ends at {}", head.seq, own.seq),
            ),
            Some(_) => (FindingKind::Rewritten, format!("{whose} is not the one that was anchored")),
            None => (FindingKind::Truncated, format!("{whose} was anchored up to {}, and is gone", head.seq)),
        };
        found.add(kind, head.seq, Some(chain), detail);
    }
    for head in present.values().filter(|head| !anchored.contains_key(&head.chain)) {
        found.add(
            FindingKind::Inserted,
            head.seq,
            Some(&head.chain),
            "its chain was not there when this was anchored",
        );
    }
}
