//! Every parser against mutated examples: no panic, whatever comes. `ONUS_SOAK=1` for the long way; `fuzz/` for a fuzzer.

use onus_sim::hostile::{Doors, TARGETS, Target, mutated};
use onus_sim::seeds;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
        let seeds = seeds(4_000, 1_000_000);
        for seed in seeds.clone() {
            hold(target, &mutated(seed, target.examples), seed);
        }
        eprintln!("{}: seeds {seeds:?} played", target.name);
    }
}

/// Through the doors of a server: bodies, queries, headers, cookies, ids of events, calls, tools.
#[test]
fn no_request_breaks_a_server() {
    let mut doors = Doors::open().unwrap();
    let examples = Doors::examples();
    // The instrument: everybody is let in, and most of what is asked makes sense.
    let told: Vec<u16> = examples.iter().map(|example| doors.ask(example.as_bytes()).unwrap()).collect();
    let answered = told.iter().filter(|status| matches!(status, 200..=303)).count();
    eprintln!("{answered} of {} examples are answered", examples.len());
    assert!(!told.contains(&401), "{told:?}");
    assert!(answered * 2 > examples.len(), "{told:?}");
    let mut held = |input: &[u8], seed: u64, ask: fn(&mut Doors, &[u8])| {
        if catch_unwind(AssertUnwindSafe(|| ask(&mut doors, input))).is_err() {
            panic!("a server breaks (seed {seed}) on {:?}", String::from_utf8_lossy(input));
        }
    };
    let ask: fn(&mut Doors, &[u8]) = |doors, input| {
        let _ = doors.ask(input);
    };
    // A request is a hundred times the work of a parser.
    let seeds = seeds(1_000, 250_000);
    for seed in seeds.clone() {
        held(&mutated(seed, &examples), seed, ask);
        held(&mutated(seed, Doors::files()), seed, Doors::import);
    }
    for nest in nests() {
        held(nest.as_bytes(), 0, Doors::import);
        for example in examples.iter().filter(|example| example.starts_with("POST")).step_by(4) {
            let (head, _) = example.split_once("\n\n").unwrap();
            held(format!("{head}\n\n{nest}").as_bytes(), 0, ask);
        }
    }
    eprintln!("requests and files: seeds {seeds:?} played");
}

/// Nests and bombs, for every parser that reads a tree: they end, and what they take is bounded by their caps.
#[test]
fn nests_and_bombs_are_stopped() {
    for input in nests() {
        for target in TARGETS {
            hold(target, input.as_bytes(), 0);
            hold(target, format!("noted {input}").as_bytes(), 0);
        }
    }
}

fn nests() -> Vec<String> {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let many = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{many}]\n"));
    }
    let nests = ["[", "{\"a\":", "- ", "(", "{", "&a [", "a: {", "**/", "{a,", "[!", "1h", "\"\\u"];
    let deep = nests.iter().map(|nest| nest.repeat(20_000));
    let large = ["x".repeat(2_000_000), "{a,b}".repeat(30), "*a".repeat(200), "[a-z]*?".repeat(60)];
    deep.chain(large).chain([bomb]).collect()
}
