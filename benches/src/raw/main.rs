//! The physical limit.
fn main() {}
