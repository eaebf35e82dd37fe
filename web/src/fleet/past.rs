//! How a workstation was over the last days, from the record of its probes and of people's words.

use crate::html::{Html, when};
use onus_core::event::{Event, Stamped};
use onus_core::id::WorkstationName;
use onus_core::probe::Probe;
use onus_core::registry::workstation::{changed, state_after};
use onus_core::time::{Millis, Timestamp};
use onus_core::workstation::WorkstationState;
use onus_store::error::Result as StoreResult;
use onus_store::port::Tx;
use onus_store::read::report::{self, Span};
use onus_store::registry;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const DAYS: Millis = Millis::hours(7 * 24);
/// Of each kind of change.
const ENTRIES: i64 = 500;
/// So many of the latest are told in words.
const TOLD: usize = 8;
/// The width of the band, in units of its own.
const WIDTH: i64 = 700;

const VERBS: [&str; 6] = [
    "workstation_added",
    "workstation_ready",
    "workstation_not_ready",
    "workstation_quarantined",
    "workstation_restored",
    "workstation_retired",
];

#[derive(Debug, Default)]
pub(super) struct Past {
    /// A band of colours.
    pub(super) band: Html,
    /// The latest first: when, and what happened.
    pub(super) told: Vec<(Html, String)>,
}

#[derive(Debug)]
struct Turn {
    at: Timestamp,
    state: WorkstationState,
    words: String,
}

pub(super) fn load(tx: &mut dyn Tx, now: Timestamp) -> StoreResult<BTreeMap<WorkstationName, Past>> {
    let span = Span { from: Timestamp(now.0 - DAYS.0), to: Timestamp(now.0 + 1) };
    let rows = registry::workstations(tx)?.into_iter();
    let probes: BTreeMap<WorkstationName, Vec<Probe>> =
        rows.map(|row| (row.workstation.name, row.workstation.probes)).collect();
    let mut turns: BTreeMap<WorkstationName, Vec<Turn>> = BTreeMap::new();
    for verb in VERBS {
        for entry in report::happened(tx, verb, span, ENTRIES)? {
            // What cannot be read is for `ledger verify` to tell.
            let Ok(Stamped { at, event, .. }) = entry.open() else { continue };
            let Some(name) = changed(&event) else { continue };
            let probes = probes.get(name).map_or(&[][..], Vec::as_slice);
            if let Some(state) = state_after(&event, probes) {
                turns.entry(name.clone()).or_default().push(Turn { at, state, words: words(&event) });
            }
        }
    }
    Ok(turns.into_iter().map(|(name, turns)| (name, drawn(turns, span, now))).collect())
}

fn words(event: &Event) -> String {
    match event {
        Event::WorkstationAdded(_) => "registered".to_owned(),
        Event::WorkstationReady(_) => "ready: every probe passed".to_owned(),
        Event::WorkstationNotReady(not) => {
            let failed: Vec<&str> = not.failed.iter().map(|result| result.probe.as_str()).collect();
            format!("not ready: {} failed", failed.join(", "))
        }
        Event::WorkstationQuarantined(shut) => format!("quarantined: {}", shut.reason),
        Event::WorkstationRestored(_) => "back from quarantine".to_owned(),
        _ => "retired".to_owned(),
    }
}

fn drawn(mut turns: Vec<Turn>, span: Span, now: Timestamp) -> Past {
    turns.sort_by_key(|turn| turn.at);
    let place = |at: Timestamp| ((at.0 - span.from.0) * WIDTH / DAYS.0).clamp(0, WIDTH);
    let mut band = format!(
        "<svg class=\"band\" viewBox=\"0 0 {WIDTH} 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
    );
    let ends = turns.iter().skip(1).map(|turn| turn.at).chain([now]);
    for (turn, end) in turns.iter().zip(ends) {
        let (from, to) = (place(turn.at), place(end));
        // A short turn is a turn as well.
        let width = (to - from).max(2);
        let _ = write!(
            band,
            "<rect class=\"{}\" x=\"{from}\" y=\"0\" width=\"{width}\" height=\"10\"/>",
            turn.state.name()
        );
    }
    band.push_str("</svg>");
    let told = turns.into_iter().rev().take(TOLD).map(|turn| (when(turn.at, now), turn.words));
    Past { told: told.collect(), band: Html(band) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_has_a_part_for_each_state() {
        let now = Timestamp(DAYS.0);
        let turn = |at, state, words: &str| Turn { at: Timestamp(at), state, words: words.to_owned() };
        let half = DAYS.0 / 2;
        let past = drawn(
            vec![
                turn(half, WorkstationState::Quarantined, "quarantined"),
                turn(0, WorkstationState::Ready, "ready"),
            ],
            Span { from: Timestamp(0), to: now },
            now,
        );
        let words: Vec<&str> = past.told.iter().map(|(_, words)| words.as_str()).collect();
        assert_eq!(words, ["quarantined", "ready"]);
        for part in [
            "class=\"ready\" x=\"0\" y=\"0\" width=\"350\"",
            "class=\"quarantined\" x=\"350\" y=\"0\" width=\"350\"",
        ] {
            assert!(past.band.0.contains(part), "{}", past.band);
        }
    }
}
