//! The command line as its callers see it: the real program in a repository of its own. These tests mostly wait for
//! programs, so that many of them run at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod agent_hook;
mod attacks;
mod bad_files;
mod bad_input;
mod cheats;
mod claude_code;
mod coding_clients;
mod completions;
mod consistency;
mod constraints;
mod contract;
mod damage;
mod demands;
mod diff;
mod dispatch;
mod docs;
mod edit;
mod effort;
mod evidence;
mod exception;
mod fleet;
mod fleet_clients;
mod fleet_order;
mod fleet_page;
mod git_table;
mod guides;
mod handoff;
mod hooks;
mod inbox;
mod lanes;
mod limits;
mod logs;
mod mcp;
mod merge;
mod milestone;
mod mirror;
mod mirror_faults;
mod mirror_forge;
mod mirror_kill;
mod names;
mod notify;
mod notify_check;
mod places;
mod planted;
mod postgres_attacks;
mod preflight;
mod prime;
mod pull_request;
mod push;
mod record;
mod recording;
mod report;
mod rerun;
mod road;
mod road_crash;
mod road_team;
mod route;
mod run;
mod scopes;
mod serve;
mod serve_http2;
mod serve_intake;
mod serve_landing;
mod serve_manners;
mod serve_mcp;
mod serve_repeat;
mod serve_shares;
mod setup;
mod support;
mod token;
mod transcript;
mod views;
mod words;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
