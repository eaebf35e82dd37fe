//! The input is a file of tasks to import.

#![no_main]

mod doors;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| doors::at_the(|doors| doors.import(data)));
