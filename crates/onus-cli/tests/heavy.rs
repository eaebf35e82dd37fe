//! What needs the machine for itself: crowds, crashes, faults, jumping clocks, cut networks, and what others made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod clock;
mod contention;
mod crash;
mod death;
mod failover;
mod faults;
mod linear;
mod mcp_clients;
mod partition;
mod patroni;
mod postgres;
mod power;
mod readiness;
mod road_day;
mod run_outage;
mod serve_disk;
mod serve_events;
mod serve_faults;
mod serve_fuzz;
mod serve_kills;
mod serve_race;
mod serve_servers;
mod support;
