//! The store: one shared SQL text, thin drivers, no rules.
//!
//! [`load`] reads the facts of a decision under lock, [`apply`] writes what was decided, [`read`] answers questions.

pub mod apply;
pub mod bulk;
mod codec;
pub mod error;
pub mod evidence;
pub mod landed;
pub mod load;
pub mod location;
pub mod milestone;
pub mod mirror;
pub mod output;
pub mod port;
pub mod postgres;
pub mod read;
pub mod registry;
pub mod remote;
pub mod saved_view;
pub mod sqlite;
pub mod statement;
pub mod statements;
pub mod tables;
pub mod token;
pub mod word_index;

// Tests of the whole crate call it by its name, as everybody else does.
#[cfg(test)]
extern crate self as onus_store;

#[cfg(test)]
#[path = "../tests/runner.rs"]
mod tests;
