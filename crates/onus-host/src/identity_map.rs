//! Reads the executor identity map: the one that the main branch's commit holds (mission C1).

use crate::place::{Place, Repo};
use onus_core::identity_map::{Policy, Version};
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;

/// The map in force here.
pub fn load(_place: &Place, _settings: &Settings) -> Result<Policy, Refusal> {
    Ok(Policy::Absent)
}

/// The reference of the main branch; none before its first commit.
pub fn main_branch(_repo: &Repo, _settings: &Settings) -> Result<Option<String>, Refusal> {
    Ok(None)
}

/// The commits of the main branch that changed the map, newest first.
pub fn history(_place: &Place, _settings: &Settings) -> Result<Vec<Version>, Refusal> {
    Ok(Vec::new())
}
