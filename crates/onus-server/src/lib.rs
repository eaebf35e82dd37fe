//! The HTTP server (mission A2, E2, E6): the rules of the store for a team, over one table of routes.
//!
//! A request is understood in [`serve`], asked or written by the threads of [`readers`] and [`writer`], and answered
//! with the documents that `onus --json` prints. Nothing here decides anything: every front end submits the same commands.

mod admission;
mod allowance;
mod answer_body;
mod auth;
mod board;
mod body;
mod call;
mod config;
mod drain_body;
mod error_pages;
mod events;
mod http2_idle;
mod indexer;
mod intake;
mod landings;
mod listen;
mod log;
mod mcp;
mod metrics;
mod offers;
mod openapi;
mod origin;
mod outbox;
mod output_stream;
mod precondition;
mod problem;
mod processor_time;
mod rate;
pub mod readers;
mod refusal_delay;
mod route;
mod routes;
mod serve;
mod service;
mod sse;
pub mod store;
#[cfg_attr(not(feature = "traces"), path = "traces_left_out.rs")]
mod traces;
pub mod writer;

pub use config::{Config, Tls};
pub use listen::run;
pub use log::{Log, start as start_log};
pub use openapi::document as openapi_document;
pub use service::Service;

// Tests of the whole crate call it by its name, as everybody else does.
#[cfg(test)]
extern crate self as onus_server;

#[cfg(test)]
#[path = "../tests/runner.rs"]
mod tests;
