//! The outside world: where we are, what time it is, and what lies beside the store.
//!
//! Nothing here decides anything about a task. What a process reads from its surroundings is an argument of the
//! function that needs it ([`env::Env`]), so that no test changes the surroundings of another.

#![allow(
    clippy::result_large_err,
    reason = "a refusal carries its findings and its hint, and is the rare way out"
)]

pub mod anchor;
pub mod clock;
pub mod clone_id;
pub mod decision_record;
mod directory_anchor;
pub mod env;
mod file;
pub mod filesystem;
pub mod fleet_lock;
pub mod git;
mod git_anchor;
mod git_config;
pub mod hook;
pub mod http_client;
pub mod identity_map;
pub mod key;
pub mod landing_turn;
pub mod lease_file;
pub mod mirror;
pub mod presets;
pub mod probe;
pub mod process;
pub mod process_liveness;
pub mod push_option;
pub mod ref_file;
pub mod refs;
pub mod repository;
pub mod secret;
pub mod settings;
pub mod setup;
pub mod supervise;
pub mod terminal;
pub mod worktree;
pub mod yaml;
pub mod zone;

// Tests of the whole crate call it by its name, as everybody else does.
#[cfg(test)]
extern crate self as onus_host;

#[cfg(test)]
#[path = "../tests/runner.rs"]
mod tests;
