//! The days of one zone: where each begins.

use crate::time::{Date, Timestamp};

/// Consecutive days, each with the moment at which it begins in some zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Days {
    first: Date,
    /// One more than there are days: the last one is where the day after them begins.
    starts: Vec<Timestamp>,
}

impl Days {
    /// `None` where the moments are not in order or there is no day.
    pub fn new(first: Date, starts: Vec<Timestamp>) -> Option<Days> {
        let in_order = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        let whole = starts.iter().all(|start| start.whole_second() == *start);
        (starts.len() > 1 && in_order && whole).then_some(Days { first, starts })
    }

    pub fn begin(&self) -> Timestamp {
        self.starts[0]
    }

    pub fn end(&self) -> Timestamp {
        self.starts[self.starts.len() - 1]
    }

    pub fn count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    pub fn date(&self, index: u32) -> Date {
        let span = jiff::Span::new().try_days(index).unwrap_or_default();
        Date(self.first.0.saturating_add(span))
    }

    pub fn dates(&self) -> impl Iterator<Item = Date> + '_ {
        (0..self.count()).map(|index| self.date(index))
    }

    /// The day in which a moment lies, if it is one of these.
    pub fn index(&self, at: Timestamp) -> Option<u32> {
        if at < self.begin() || at >= self.end() {
            return None;
        }
        // A day that a zone skipped is empty: the last of those that begin together is the one.
        Some(self.starts.partition_point(|start| *start <= at) as u32 - 1)
    }

    /// Whether a stretch of time has a part in these days.
    pub fn touch(&self, from: Timestamp, to: Timestamp) -> bool {
        to > self.begin() && from < self.end() || from == to && self.index(from).is_some()
    }

    /// What a stretch of time has in common with each day, in seconds. One without length has a part in its day.
    pub(super) fn parts(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = (u32, i64)> {
        let inside = self.touch(from, to);
        let mut at = from.max(self.begin());
        let until = to.min(self.end());
        let mut next = self.index(at).filter(|_| inside);
        std::iter::from_fn(move || {
            let day = next?;
            let end = until.min(self.starts[day as usize + 1]);
            let seconds = end.since(at).0 / 1_000;
            at = end;
            next = if at < until { self.index(at) } else { None };
            Some((day, seconds))
        })
    }
}
