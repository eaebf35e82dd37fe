//! The outside world as it is: real repositories, real files.

mod anchor;
mod git;
mod hook;
mod identity_map;
mod localstack;
mod place;
mod probe;
mod process;
mod refs;
mod salvage;
mod server;
mod settings;
mod support;
mod worktree;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
