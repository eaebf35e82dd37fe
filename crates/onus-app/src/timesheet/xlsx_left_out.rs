//! In a build without the feature `xlsx`: the same question, answered with a refusal.

use super::TimesheetView;
use onus_core::refusal::Refusal;

pub fn write(_: &TimesheetView) -> Result<Vec<u8>, Refusal> {
    Err(Refusal::invalid("this build of onus writes no workbooks")
        .hint("take csv, or build with the feature xlsx: cargo install --path crates/onus-cli"))
}
