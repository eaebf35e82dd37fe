//! The clocks of a run: nothing moves them but its steps.

use onus_core::time::{Now, Tick, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When every run begins, by the wall clock.
const BEGIN: i64 = 1_790_000_000_000;

/// Whose clock decides expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clocks {
    /// Each host has a monotonic clock of its own (SQLite).
    Hosts,
    /// The database's own, which is a wall clock (PostgreSQL).
    Server,
}

#[derive(Debug, Clone)]
pub(super) struct Clock {
    kind: Clocks,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    wall: i64,
    host: usize,
    /// Boot and monotonic milliseconds of every host that was seen.
    hosts: BTreeMap<usize, (u32, i64)>,
}

impl Clock {
    pub(super) fn new(kind: Clocks) -> Clock {
        let state = State { wall: BEGIN, host: 0, hosts: BTreeMap::from([(0, (1, 5_000_000))]) };
        Clock { kind, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Now {
        let state = self.state();
        let (boot, millis) = state.hosts.get(&state.host).copied().unwrap_or_default();
        let tick = match self.kind {
            Clocks::Hosts => Tick { host: format!("h{}", state.host), boot: boot.to_string(), millis },
            Clocks::Server => Tick { host: "postgres".into(), boot: "0".into(), millis: state.wall },
        };
        Now { wall: Timestamp(state.wall), tick }
    }

    /// Time passes, everywhere.
    pub(super) fn pass(&self, millis: i64) {
        let mut state = self.state();
        state.wall += millis;
        for (_, monotonic) in state.hosts.values_mut() {
            *monotonic += millis;
        }
    }

    /// Somebody sets the wall clock.
    pub(super) fn jump(&self, millis: i64) {
        self.state().wall += millis;
    }

    /// The calls that follow come from another machine.
    pub(super) fn go_to(&self, host: usize) {
        let mut state = self.state();
        state.host = host;
        state.hosts.entry(host).or_insert((1, 77));
    }

    /// This machine starts again: its monotonic clock counts from nothing.
    pub(super) fn reboot(&self) {
        let mut state = self.state();
        let host = state.host;
        if let Some((boot, monotonic)) = state.hosts.get_mut(&host) {
            (*boot, *monotonic) = (*boot + 1, 1_000);
        }
    }
}
