//! The application from outside, on real stores.

mod audit;
mod bad_sources;
mod batch;
mod batches;
mod desk;
mod doctor;
mod export;
mod far;
mod field_census;
mod formats;
mod import;
mod ledger;
mod log_damage;
mod memory;
mod mirror_recovery;
mod mixed_export;
mod newer_files;
mod once;
mod parts;
mod report;
mod schema;
mod shop;
mod sources;
mod tamper;
mod tamper_columns;
mod timesheet;
mod token;
mod validate;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
