//! What callers of the server rely on.

mod attacks;
mod bounded;
mod call_fuzz;
mod doors;
mod house;
mod openapi;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
