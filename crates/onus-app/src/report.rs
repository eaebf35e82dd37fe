//! `report`: the record and the queue, told for people who decide (mission C9, C14).
//!
//! No report stores anything: each is asked anew from the rows and the ledger.

mod anomalies;
mod audit;
mod incident;
mod now;
mod search;
mod sprint;

pub use anomalies::AnomaliesView;
pub use audit::{AuditKind, AuditLine, AuditView, csv};
pub use incident::{GrantView, IncidentView, MomentView};
pub use now::{CallView, CompletedView, NowView, StuckKind, StuckView, WantKind, WantView};
pub use search::{SearchAsk, SearchView};
pub use sprint::SprintView;

use crate::Onus;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::time::{Date, Millis, Timestamp};
use onus_host::zone;
use onus_store::read::report::Span;
use serde::{Deserialize, Serialize};

/// A stretch of time as people write it; nothing said means the usual one of the report.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct When {
    /// A day, a moment, or how long ago: `2026-11-16`, `2026-11-16T18:00`, `12h`.
    pub since: Option<String>,
    /// Likewise; a day counts to its end.
    pub until: Option<String>,
}

impl Onus {
    /// In the zone of whoever asks.
    fn span(&mut self, when: &When, actor: Option<&Handle>, usual: Millis) -> Result<Span, Refusal> {
        let now = self.now()?;
        let zone = self.zone_of(actor)?;
        let to = match &when.until {
            Some(text) => moment(&zone, now, text, Side::End)?,
            None => now.plus(Millis(1)),
        };
        let from = match &when.since {
            Some(text) => moment(&zone, now, text, Side::Begin)?,
            None => to.plus(Millis(-usual.0)),
        };
        if from >= to {
            return Err(Refusal::invalid(format!("{from} is not before {to}"))
                .hint("name an earlier --since, or a later --until"));
        }
        Ok(Span { from, to })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Begin,
    End,
}

fn moment(zone: &str, now: Timestamp, text: &str, side: Side) -> Result<Timestamp, Refusal> {
    if let Ok(day) = text.parse::<Date>() {
        let day = zone::days(zone, day, day).map_err(Refusal::invalid)?;
        return Ok(if side == Side::Begin { day.begin() } else { day.end() });
    }
    if let Ok(ago) = Millis::parse(text) {
        return Ok(now.plus(Millis(-ago.0)));
    }
    zone::moment(zone, text).map_err(|error| {
        Refusal::invalid(error).hint("write for example 2026-11-16, 2026-11-16T18:00, 12h or 7d")
    })
}
