//! The first byte chooses the parser, the rest is its input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_sim::hostile::TARGETS;

fuzz_target!(|data: &[u8]| {
    if let Some((which, input)) = data.split_first() {
        (TARGETS[usize::from(*which) % TARGETS.len()].run)(input);
    }
});
