//! How much a call takes: what a server does with many callers depends on it.

use crate::remote::CallName;

/// What one call takes of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// As much with a million tasks as with ten.
    Light,
    /// More with every task, entry or session that there is. A server answers these on threads of their own, one at a time
    /// for each caller.
    Heavy,
}

/// What a route takes: as much as the call of its name, where there is one.
pub fn of_route(name: &str) -> Weight {
    match name {
        // A diff is git's work, and as long as somebody made it.
        "verify_ledger" | "diff" => Weight::Heavy,
        name => CallName::parse(name).map_or(Weight::Light, CallName::weight),
    }
}
