//! Simulations, histories, models and hostile input, each with its instrument.

mod history;
mod hostile;
mod model;
mod sim;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
