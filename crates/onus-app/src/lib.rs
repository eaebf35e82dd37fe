//! Between the rules and the world: one call, one transaction.
//!
//! [`submit`] carries a command out; the other modules answer questions or look after the store as a whole. Every
//! front end (command line, HTTP, MCP) calls these and renders their views.

pub mod agent_hooks;
pub mod allowed_actions;
mod answer_room;
pub mod check;
pub mod clean_start;
mod conflict;
pub mod consistency;
pub mod diff;
pub mod dispatch;
pub mod doctor;
pub mod exception;
pub mod export;
pub mod finish;
pub mod fleet;
pub mod followed_settings;
pub mod guard;
pub mod handoff;
pub mod idempotent_admin;
pub mod import;
pub mod inbox;
pub mod input;
pub mod intake;
pub mod landing;
pub mod last_commit;
pub mod ledger;
pub mod limits;
pub mod main_of_record;
pub mod merge;
pub mod milestone;
pub mod mirror;
pub mod output;
pub mod preflight;
pub mod prime;
pub mod probe;
pub mod progress;
pub mod push;
pub mod queue;
pub mod registry;
pub mod remote;
mod replay;
pub mod report;
pub mod rerun;
pub mod route;
pub mod salvage;
pub mod saved_view;
pub mod search;
pub mod session;
pub mod show;
pub mod submit;
pub mod timesheet;
pub mod token;
pub mod usage;
pub mod validate;
pub mod view;
pub mod weight;
pub mod workstation;

use onus_core::identity_map::Policy;
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::time::Timestamp;
use onus_host::anchor::Anchor;
use onus_host::identity_map;
use onus_host::repository::Place;
use onus_store::port::{Driver, Store, Tx};
use std::path::PathBuf;

/// An open store with the settings that apply to it.
#[derive(Debug)]
pub struct Onus {
    pub store: Box<dyn Driver>,
    pub settings: Settings,
    /// The store's file: the anchor lies relative to it.
    pub path: PathBuf,
    /// The repository whose identity map is in force.
    pub place: Place,
    pub sight: Sight,
    /// The token that every command from here is judged by, in the transaction that carries it out; none where the caller is
    /// believed, and where a call shows its own.
    pub bearer: Option<token::Shown>,
}

/// What can be looked at beside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The caller's own machine: the directories of its workstations, too.
    Workstations,
    /// A server: a workstation's directory is on somebody else's machine, and a path that is here as well is not it.
    Store,
}

impl Onus {
    /// The identity map in force.
    pub fn policy(&self) -> Result<Policy, Refusal> {
        identity_map::load(&self.place, &self.settings)
    }

    /// What time it is where the store is.
    pub(crate) fn now(&mut self) -> Result<Timestamp, Refusal> {
        if let Some(answer) = self.remote(|| remote::calls::Now {})? {
            return Ok(answer);
        }
        Ok(self.ask(|tx| tx.now())?.wall)
    }

    /// Answers a question on one consistent view.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut dyn Tx) -> onus_store::error::Result<T>,
    ) -> Result<T, Refusal> {
        Ok(self.store.read(question)?)
    }
}

/// Where the ledger of this workspace is anchored.
fn anchor(path: &std::path::Path, uid: &str) -> Result<Anchor, Refusal> {
    Anchor::of_store(path, uid, &onus_host::env::Env::of_process())
}

// Tests of the whole crate call it by its name, as everybody else does.
#[cfg(test)]
extern crate self as onus_app;

#[cfg(test)]
#[path = "../tests/runner.rs"]
mod tests;
