//! Questions to the store. Nothing here writes.

pub mod audit;
pub mod effort;
pub mod grants;
pub mod ledger;
pub mod queue;
pub mod report;
pub mod show;
pub mod survey;
