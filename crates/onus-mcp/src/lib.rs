//! The Model Context Protocol (mission E2): what an agent does all day, as tools.
//!
//! [`tool`] is the table of tools, static and small; [`arguments`] what they take beside their verbs' inputs; [`execute`] carries a call out through a [`Backend`]; [`server`] speaks the
//! protocol, in both of its eras. The state between calls is the lease token, which the claim gives and the holder shows.

mod arguments;
pub mod backend;
mod execute;
mod resource;
pub mod server;
mod summary;
pub mod tool;

pub use backend::{Backend, Completing, Who, WorkingTrees};
pub use server::{Server, http, stdio};
pub use tool::Tools;

// Tests of the whole crate call it by its name, as everybody else does.
#[cfg(test)]
extern crate self as onus_mcp;

#[cfg(test)]
#[path = "../tests/runner.rs"]
mod tests;
