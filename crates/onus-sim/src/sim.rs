//! Many workers, one store, and everything that goes wrong: a run of random steps, drawn from a seed, through the real
//! application and the real database. After every step the whole store is judged.
//!
//! [`step`] draws, [`play`] does, [`fault`] fails, [`judge`] looks, [`run`] repeats and shortens.

mod clock;
mod command;
mod fault;
mod judge;
mod play;
mod run;
mod seeded_bugs;
mod snapshot;
mod step;
mod store;
pub(crate) mod team;

pub use judge::Violation;
pub use play::Counts;
pub use run::{Failure, Plan};
pub use seeded_bugs::SeededBug;
pub use store::Kind;
pub(crate) use store::room;
