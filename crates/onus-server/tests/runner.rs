//! What callers of the server rely on.

mod openapi;

#[test]
fn no_file_is_forgotten() {
    onus_testkit::no_file_is_forgotten(env!("CARGO_MANIFEST_DIR"));
}
