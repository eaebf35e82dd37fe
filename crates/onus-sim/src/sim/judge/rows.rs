//! What the rows must be: what the chains tell, and nothing beside it.

use super::entry::is_worked_on;
use super::{Judge, Verdict, holds};
use crate::sim::snapshot::{Live, Seen, Session};
use onus_core::id::WorkstationName;
use std::collections::{BTreeMap, BTreeSet};

impl Judge {
    pub(super) fn rows(&self, seen: &Seen) -> Verdict {
        holds(seen.tasks.len() == self.tasks.len(), "fold-gives-row", || {
            format!("{} rows for {} chains", seen.tasks.len(), self.tasks.len())
        })?;
        for row in &seen.tasks {
            let told = self.tasks.get(&row.id);
            holds(told == Some(row), "fold-gives-row", || format!("the row {row:#?}\nthe chain {told:#?}"))?;
        }
        self.one_holder(&seen.live)?;
        self.sessions(&seen.sessions)
    }

    fn one_holder(&self, live: &[Live]) -> Verdict {
        let told: Vec<Live> = self
            .tasks
            .values()
            .filter_map(|task| {
                let held = task.assignment()?;
                Some(Live {
                    task: task.id.clone(),
                    epoch: held.epoch,
                    assignee: held.assignee.clone(),
                    workstation: held.workstation.clone(),
                    lane: held.lane,
                })
            })
            .collect();
        let sorted = |mut list: Vec<Live>| {
            list.sort_by_key(|live| (live.task.to_string(), live.epoch));
            list
        };
        let (told, live) = (sorted(told), sorted(live.to_vec()));
        holds(told == live, "one-holder", || format!("the chains tell {told:#?}, the rows {live:#?}"))?;
        let places: BTreeSet<&WorkstationName> = live.iter().map(|live| &live.workstation).collect();
        holds(places.len() == live.len(), "one-holder", || {
            format!("a workstation holds two tasks: {live:#?}")
        })
    }

    /// Whoever works has one open session, and nobody is at two things at once in one place.
    fn sessions(&self, sessions: &[Session]) -> Verdict {
        for task in self.tasks.values() {
            let open =
                sessions.iter().filter(|session| session.task == task.id && session.to.is_none()).count();
            let expected = usize::from(is_worked_on(task));
            holds(open == expected, "sessions", || format!("{} has {open} open sessions", task.id))?;
        }
        let mut last: BTreeMap<(&str, &str), &Session> = BTreeMap::new();
        for session in sessions {
            let place = (session.worker.as_str(), session.workstation.as_str());
            if let Some(earlier) = last.insert(place, session) {
                let apart = earlier.to.is_some_and(|end| earlier.from <= end && end <= session.from);
                holds(apart, "sessions", || format!("{earlier:#?}\noverlaps {session:#?}"))?;
            }
        }
        Ok(())
    }
}

/// What a timesheet of all time adds up to, from the sessions alone. One that runs counts up to the last sign of life.
pub(in crate::sim) fn seconds(sessions: &[Session]) -> i64 {
    let length = |session: &Session| {
        let end = session.to.unwrap_or_else(|| session.renewed.whole_second().max(session.from));
        (end.0 - session.from.0) / 1_000
    };
    sessions.iter().map(length).sum()
}
