//! What one caller may have of the server at once: connections, event streams, bytes that are read or sent. Nobody can
//! shut the others out by taking all of it (threat 18 of the rules).

use axum::http::Extensions;
use onus_core::code::Code;
use onus_core::hash::Digest;
use onus_core::refusal::Refusal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Whose part of the server something counts as.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    /// The bearer of a token that was found good before, by the hash of its text: nobody can use up the share of another
    /// one by knowing its name.
    Bearer(Digest),
    /// Everybody who is not known yet, together.
    Strangers,
}

impl Share {
    /// Whose request this is.
    pub(crate) fn of(extensions: &Extensions) -> Share {
        extensions.get().cloned().unwrap_or(Share::Strangers)
    }
}

/// So much of something for each, and so much for all together.
#[derive(Debug)]
pub(crate) struct Allowance {
    what: &'static str,
    each: usize,
    all: usize,
    taken: Mutex<TakenShare>,
}

#[derive(Debug, Default)]
struct TakenShare {
    total: usize,
    by: HashMap<Share, usize>,
}

impl Allowance {
    pub(crate) fn new(what: &'static str, each: usize, all: usize) -> Arc<Allowance> {
        Arc::new(Allowance { what, each, all, taken: Mutex::default() })
    }

    /// Takes a portion, which ends when it is dropped. One that is larger than a share is given only to a caller that has none.
    pub(crate) fn take(self: &Arc<Allowance>, share: &Share, amount: usize) -> Result<Portion, Refusal> {
        let mut taken = self.taken();
        let own = taken.by.get(share).copied().unwrap_or_default();
        let fits = |taken: usize, limit: usize| taken == 0 || taken.saturating_add(amount) <= limit;
        if !fits(own, self.each) {
            let detail = format!("this token has {own} {} already, and may have {}", self.what, self.each);
            return Err(Refusal::new(Code::TooManyRequests, detail).hint("end some of them, then try again"));
        }
        if !fits(taken.total, self.all) {
            let detail = format!("all callers together have {} {} already", taken.total, self.what);
            return Err(Refusal::new(Code::TooManyRequests, detail).hint("wait, then try again"));
        }
        taken.total += amount;
        *taken.by.entry(share.clone()).or_default() += amount;
        drop(taken);
        Ok(Portion { of: Arc::clone(self), share: share.clone(), amount })
    }

    /// What a caller has of it.
    pub(crate) fn taken_by(&self, share: &Share) -> usize {
        self.taken().by.get(share).copied().unwrap_or_default()
    }

    fn taken(&self) -> MutexGuard<'_, TakenShare> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What somebody has taken; dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Portion {
    of: Arc<Allowance>,
    share: Share,
    amount: usize,
}

impl Drop for Portion {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.total = taken.total.saturating_sub(self.amount);
        let left = taken.by.get(&self.share).copied().unwrap_or_default().saturating_sub(self.amount);
        match left {
            0 => taken.by.remove(&self.share),
            left => taken.by.insert(self.share.clone(), left),
        };
    }
}

/// A connection: it counts as whoever asked on it last.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    taken: Mutex<Option<Portion>>,
    /// Told when its caller has more connections than its share.
    pub(crate) leave: Notify,
}

impl Seat {
    /// The connection is this caller's now, if its share has room for it.
    pub(crate) fn sit(&self, connections: &Arc<Allowance>, share: &Share) -> Result<(), Refusal> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.as_ref().is_some_and(|portion| portion.share == *share) {
            return Ok(());
        }
        match connections.take(share, 1) {
            Ok(portion) => {
                *taken = Some(portion);
                Ok(())
            }
            Err(refusal) => {
                self.leave.notify_one();
                Err(refusal)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(n: u8) -> Share {
        Share::Bearer(Digest([n; 32]))
    }

    #[test]
    fn nobody_takes_more_than_its_share() {
        let streams = Allowance::new("streams", 2, 3);
        let (one, two) = (bearer(1), bearer(2));
        let first = streams.take(&one, 1).unwrap();
        let _second = streams.take(&one, 1).unwrap();
        assert_eq!(streams.take(&one, 1).unwrap_err().code, Code::TooManyRequests);
        let _third = streams.take(&two, 1).unwrap();
        assert!(streams.take(&two, 1).unwrap_err().detail.contains("all callers"));
        drop(first);
        streams.take(&one, 1).unwrap();
    }

    #[test]
    fn what_is_larger_than_a_share_goes_through_alone() {
        let bytes = Allowance::new("bytes", 10, 100);
        let large = bytes.take(&bearer(1), 50).unwrap();
        assert!(bytes.take(&bearer(1), 1).is_err());
        assert!(bytes.take(&bearer(2), 50).is_ok());
        drop(large);
        assert!(bytes.take(&bearer(1), 1).is_ok());
    }

    #[test]
    fn a_connection_counts_as_whoever_asked_last() {
        let connections = Allowance::new("connections", 1, 100);
        let (first, second) = (Seat::default(), Seat::default());
        first.sit(&connections, &Share::Strangers).unwrap();
        assert!(second.sit(&connections, &Share::Strangers).is_err());
        first.sit(&connections, &bearer(1)).unwrap();
        second.sit(&connections, &Share::Strangers).unwrap();
        assert!(second.sit(&connections, &bearer(1)).is_err());
        drop(first);
        second.sit(&connections, &bearer(1)).unwrap();
    }
}
