//! Every parser against mutated examples: no panic, whatever comes. `ONUS_SOAK=1` for the long way; `fuzz/` for a fuzzer.

#![allow(clippy::panic, clippy::print_stderr, reason = "a test may fail loudly")]

use onus_sim::hostile::{TARGETS, Target, mutated};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn cases() -> u64 {
    if std::env::var_os("ONUS_SOAK").is_some() { 1_000_000 } else { 4_000 }
}

fn hold(target: &Target, input: &[u8], seed: u64) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        panic!("{} panics (seed {seed}) on {:?}", target.name, String::from_utf8_lossy(input));
    }
}

#[test]
fn no_parser_panics() {
    for target in TARGETS {
        for example in target.examples {
            hold(target, example.as_bytes(), 0);
        }
        for seed in 0..cases() {
            hold(target, &mutated(seed, target.examples), seed);
        }
    }
}

/// Nests and bombs, for every parser that reads a tree: they end, and what they take is bounded by their caps.
#[test]
fn nests_and_bombs_are_stopped() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let many = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{many}]\n"));
    }
    let nests = ["[", "{\"a\":", "- ", "(", "{", "&a [", "a: {", "**/", "{a,", "[!", "1h", "\"\\u"];
    let deep = nests.iter().map(|nest| nest.repeat(20_000));
    let large = ["x".repeat(2_000_000), "{a,b}".repeat(30), "*a".repeat(200), "[a-z]*?".repeat(60)];
    for input in deep.chain(large).chain([bomb]) {
        for target in TARGETS {
            hold(target, input.as_bytes(), 0);
            hold(target, format!("noted {input}").as_bytes(), 0);
        }
    }
}
