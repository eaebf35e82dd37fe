//! Branches and commits: what a takeover, a merge and a hook need of git beyond reading a file (mission B5, B6, D11).
//!
//! Everything here that writes runs with hooks off: whoever calls it has asked the rules already.

mod barrier;
mod forward;
mod history;
mod salvage;
mod transaction;

pub use barrier::barrier;
pub use forward::{Forwarded, fast_forward};
pub(crate) use history::paths;
pub use history::{Commit, History, Sample, Trailers};
pub use salvage::{Salvaged, salvage, salvage_ref};

use onus_core::id::shown;
use onus_core::refusal::Refusal;

/// The name of a branch as git keeps it.
pub fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// Names are written into git's line protocol; one that could break out of its line is refused. Git itself checks the
/// rest.
fn checked_name(refname: &str) -> Result<&str, Refusal> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    if refname.starts_with("refs/") && refname.chars().all(is_plain) {
        Ok(refname)
    } else {
        Err(Refusal::invalid(format!("{} is not the full name of a reference", shown(refname))))
    }
}
