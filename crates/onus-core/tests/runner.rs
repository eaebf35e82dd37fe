//! The rules from outside: scenarios, tables, properties.

mod enforcement;
mod error_codes;
mod guard;
mod identity_map;
mod intake;
mod property;
mod scenario;
mod scope;
mod step;
mod support;
mod timesheet;
mod token;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
