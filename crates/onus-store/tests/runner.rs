//! The store from outside: one suite for every database, and what only PostgreSQL can do.

mod conformance;
mod postgres;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
