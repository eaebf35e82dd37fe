//! The record searched, the newest entries first.

use super::When;
use crate::Onus;
use crate::remote::calls;
use crate::view::EntryView;
use onus_core::event::Event;
use onus_core::id::{Handle, TaskId, shown};
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use onus_store::load;
use onus_store::read::ledger;
use onus_store::read::report::{self, Search, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A filter that matches little looks at so many entries, and says how far it came.
const LOOKED_AT: i64 = 200_000;

/// Which entries; everything that is absent matches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SearchAsk {
    pub task: Option<TaskId>,
    pub actor: Option<Handle>,
    pub verb: Option<String>,
    pub when: When,
    /// Only entries before this one.
    pub before: Option<i64>,
    pub limit: i64,
}

/// Entries, and where to go on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SearchView {
    pub entries: Vec<EntryView>,
    /// The `before` of the next page; absent where there is nothing older.
    pub next: Option<i64>,
}

impl Onus {
    pub fn search_ledger(&mut self, actor: Option<&Handle>, ask: &SearchAsk) -> Result<SearchView, Refusal> {
        if let Some(answer) = self.remote(|| calls::SearchLedger { ask: ask.clone() })? {
            return Ok(answer);
        }
        if let Some(verb) = ask.verb.as_deref().filter(|verb| !Event::VERBS.contains(verb)) {
            return Err(Refusal::invalid(format!("{} is no verb of the ledger", shown(verb)))
                .hint(format!("one of {}", Event::VERBS.join(", "))));
        }
        let span = match (&ask.when.since, &ask.when.until) {
            (None, None) => Span { from: Timestamp(i64::MIN), to: Timestamp(i64::MAX) },
            _ => self.span(&ask.when, actor, onus_core::time::Millis::MAX)?,
        };
        self.ask(|tx| {
            let newest = load::workspace(tx)?.last_seq + 1;
            let before = ask.before.unwrap_or(newest).min(newest);
            let down_to = if ask.task.is_some() { 0 } else { (before - LOOKED_AT).max(0) };
            let search = Search {
                before,
                down_to,
                task: ask.task.as_ref(),
                actor: ask.actor.as_ref(),
                verb: ask.verb.as_deref(),
                span,
            };
            let mut found = report::search(tx, &search, ask.limit + 1)?;
            let more = found.len() as i64 > ask.limit || ledger::is_enough(&found);
            found.truncate(usize::try_from(ask.limit).unwrap_or(usize::MAX));
            let next =
                if more { found.last().map(|last| last.seq) } else { Some(down_to).filter(|seq| *seq > 0) };
            Ok(SearchView { entries: found.iter().map(EntryView::from).collect(), next })
        })
    }
}
