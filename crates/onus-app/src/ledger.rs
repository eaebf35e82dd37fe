//! `ledger checkpoint | verify | export` and `ledger raise-generation`: what makes the record tamper-evident (mission A7).
//!
//! [`checkpoint`] signs the heads of all chains and anchors them outside the store; [`verify`] compares entries, rows,
//! checkpoints and anchor with each other and says exactly where they disagree; [`export`] writes everything that a
//! third party needs to do the same. The formats are in `docs/reference/ledger.md`.

mod anchor_sync;
mod checkpoint;
mod diff;
mod export;
mod finding;
mod fold;
mod heads;
mod locate;
mod names;
mod parallel_verify;
mod range;
mod row_checksum;
mod signed;
mod verify;
mod workspace;

use onus_core::code::Code;
use onus_core::refusal::Refusal;

pub use checkpoint::{AnchorView, CheckpointView, GenerationView};
pub use export::ExportedView;
pub(crate) use export::LedgerExportPart;
pub use finding::{FindingKind, FindingView};
pub use range::RangeView;
pub use verify::VerifyView;

pub(crate) use anchor_sync::{AnchorStanding, Tip};
pub(crate) use verify::LOST;

fn unexpected(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}
