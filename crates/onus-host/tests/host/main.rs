//! The outside world as it is: real repositories, real files.

#![cfg(test)]
#![allow(
    clippy::result_large_err,
    reason = "a refusal carries its findings and its hint, and is the rare way out"
)]

mod anchor;
mod git;
mod hook;
mod identity_map;
mod place;
mod probe;
mod process;
mod refs;
mod salvage;
mod server;
mod settings;
mod support;
mod worktree;
