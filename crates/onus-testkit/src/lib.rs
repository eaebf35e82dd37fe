//! What the tests of several crates need: a PostgreSQL server of their own, one with a standby, two under Patroni,
//! LocalStack, and a disk that loses power. No program depends on it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod cluster;
pub mod disk;
mod fault_proxy;
mod forgotten;
mod guardian;
mod localstack;
mod outside_kit;
mod patroni;
mod redmine;
mod relay;
mod standby;
mod template;

pub use cluster::{Cluster, Durability};
pub use fault_proxy::{Fault, FaultProxy};
pub use forgotten::no_file_is_forgotten;
pub use localstack::LocalStack;
pub use outside_kit::{KitServer, OutsideKit};
pub use patroni::Patroni;
pub use redmine::{Redmine, redmine_issues};
pub use template::Template;
