//! The outbox and the intake of mirrors (mission C8): what happened is told to outside systems, and what they ask for arrives.
//!
//! The ledger is the outbox. A [`Sender`] has a lease on each mirror; it sorts new entries by task ([`sender`]), tells each
//! task's story in its order ([`story`]), and keeps after every entry how far it came. A sender that dies leaves at most one
//! entry of which nobody knows whether it was told, and the far end knows a repeat. People who are notified and commands that run
//! after a change hear by the same way ([`outlet`]).

mod admin;
mod gathered;
mod intake;
mod outlet;
mod required;
mod sender;
mod story;
mod view;

pub use sender::{Round, Sender};
pub use view::{CheckedView, DiffView, MirrorView, MirrorsView, StuckDelivery, TriedView};
