//! Development only: what many clients do to the tasks of one workspace, and whether every promise is kept.
//!
//! [`sim`] plays random steps with faults against a real store and judges it after each of them. [`history`] records what
//! many real processes were told, with when each call began and returned; the history is linearizable if the calls can be
//! put into one order that agrees with those times and in which every answer is the right one. Whatever two agents may
//! believe about one task, there is then one story.

pub mod history;
pub mod hostile;
mod rng;
mod seeds;
pub mod sim;

pub use seeds::seeds;

// Tests of the whole crate call it by its name, as everybody else does.
#[cfg(test)]
extern crate self as onus_sim;

#[cfg(test)]
#[path = "../tests/runner.rs"]
mod tests;
