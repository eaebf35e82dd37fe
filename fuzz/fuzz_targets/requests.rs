//! The input is a request to a whole server, as `onus_sim::hostile::Doors` writes them.

#![no_main]

mod doors;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| doors::at_the(|doors| drop(doors.ask(data))));
