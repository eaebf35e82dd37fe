//! How work flows: what came in and what was completed, day by day.

use crate::time::{Date, Timestamp};
use crate::timesheet::Days;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one day brought. A task that was reopened and completed again counts again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayFlow {
    pub day: Date,
    pub added: i64,
    pub completed: i64,
    pub dropped: i64,
    pub reopened: i64,
    /// Leases that their holders lost to a takeover.
    pub leases_lost: i64,
    /// At the end of the day: everything that was asked for so far, without what was dropped.
    pub scope: i64,
    /// At the end of the day: everything that is complete.
    pub done: i64,
}

impl DayFlow {
    fn on(day: Date) -> DayFlow {
        DayFlow { day, added: 0, completed: 0, dropped: 0, reopened: 0, leases_lost: 0, scope: 0, done: 0 }
    }
}

/// Counts by day; then, from where things stand now, the sums at the end of each day.
#[derive(Debug)]
pub struct Flow {
    days: Days,
    counts: Vec<DayFlow>,
}

impl Flow {
    /// The verbs that are counted.
    pub const VERBS: [&str; 5] = ["added", "completed", "dropped", "reopened", "taken_over"];

    pub fn new(days: Days) -> Flow {
        let counts = days.dates().map(DayFlow::on).collect();
        Flow { days, counts }
    }

    pub fn begin(&self) -> Timestamp {
        self.days.begin()
    }

    pub fn end(&self) -> Timestamp {
        self.days.end()
    }

    /// Counts an entry; one outside the days counts nowhere.
    pub fn count(&mut self, verb: &str, at: Timestamp) {
        let day = self.days.index(at).and_then(|index| self.counts.get_mut(index as usize));
        let Some(day) = day else { return };
        match verb {
            "added" => day.added += 1,
            "completed" => day.completed += 1,
            "dropped" => day.dropped += 1,
            "reopened" => day.reopened += 1,
            "taken_over" => day.leases_lost += 1,
            _ => {}
        }
    }

    /// The days with their sums: `scope` and `done` are what the store counts after the last of them.
    pub fn days(mut self, mut scope: i64, mut done: i64) -> Vec<DayFlow> {
        for day in self.counts.iter_mut().rev() {
            (day.scope, day.done) = (scope, done);
            scope -= day.added - day.dropped;
            done -= day.completed - day.reopened;
        }
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn sums_are_reckoned_back_from_where_things_stand() {
        let days = Days::new("1970-01-01".parse().unwrap(), (0..=3).map(|n| Timestamp(n * DAY)).collect());
        let mut flow = Flow::new(days.unwrap());
        for (verb, at) in [
            ("added", 0),
            ("added", 5),
            ("completed", DAY + 1),
            ("added", DAY + 2),
            ("reopened", 2 * DAY),
            ("dropped", 2 * DAY + 9),
            ("taken_over", 2 * DAY + 9),
            ("completed", 3 * DAY),
            ("renewed", 7),
        ] {
            flow.count(verb, Timestamp(at));
        }
        // Ten tasks were there before the first day, four of them complete; what comes after the last day is not here.
        let told: Vec<_> =
            flow.days(12, 4).into_iter().map(|day| (day.scope, day.done, day.leases_lost)).collect();
        assert_eq!(told, [(12, 4, 0), (13, 5, 0), (12, 4, 1)]);
    }
}
