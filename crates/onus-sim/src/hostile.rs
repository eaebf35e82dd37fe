//! Every parser, given whatever bytes: no panic, and what is taken reads back as what it was.
//!
//! The targets are plain functions, and the doors of a whole server: `tests/hostile.rs` gives them mutated examples,
//! `fuzz/` gives them what a fuzzer finds.

mod bytes;
pub mod corpus;
mod example;
mod server_inputs;

pub use bytes::mutated;
pub use server_inputs::Doors;

use onus_app::usage::{otel, transcript};
use onus_core::event::Event;
use onus_core::handoff::Handoff;
use onus_core::hash::Digest;
use onus_core::id::{
    BranchName, CheckId, CommitId, Handle, OriginRef, ProjectKey, RequestId, Role, TaskId, TaskType, TokenId,
    WorkstationName,
};
use onus_core::identity_map::{PriorityRange, TypePattern};
use onus_core::lease::Token;
use onus_core::ledger::Checkpoint;
use onus_core::probe::{Endpoint, Probe, Url};
use onus_core::process::Process;
use onus_core::scope::{Glob, Scope};
use onus_core::task::{Blocker, Priority, Spec};
use onus_core::time::{Date, Millis, Tick};
use onus_core::token::TokenText;
use onus_store::location::Location;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

/// One parser, or several of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Inputs that it takes, for mutations to begin with.
    pub examples: &'static [&'static str],
}

macro_rules! targets {
    ($($name:ident: $examples:expr;)+) => {
        &[$(Target { name: stringify!($name), run: $name, examples: $examples }),+]
    };
}

pub const TARGETS: &[Target] = targets! {
    ids: &["@builder-01", "ws-backend-01", "API-12", "github:acme/api#12", "agent/ws-1", "A-backend", "r-1"];
    tokens: &["1.12.abababababababababababababababab", "1.0.00000000000000000000000000000000"];
    times: &["15m", "1h30m", "2026-11-16", "90s", "250ms", "2d", "h.b.1234", "a.b.c.12@3400.13@3401"];
    words: &["P1", "P0-P2", "task:API-1", "person:@ada", "external:rain", "*", "backend_*"];
    globs: &["src/**", "{a,b}/[a-z]*.rs", "docs/*.md", "**/x?y", "[!a]/**"];
    probes: &["http:http://127.0.0.1:4566/health", "tcp:db:5432", "disk:.:1G", "command:true", "git"];
    settings: &["project: T\nlease:\n  agent_ttl: 15m\nqueue: { limit: 3 }\n", "a: &a [x, *a]\n"];
    identity_map: &[
        "routing:\n  - task_type: backend\n    agent_name: \"@a\"\n    workstation: ws-1\nroles:\n  A-b: { lanes: 2 }\n",
    ];
    entries: &[
        "claimed {\"lease\":\"abababababababababababababababab\",\"ttl_ms\":1,\"tick\":{\"host\":\"h\",\"boot\":\"b\",\"millis\":1}}",
        "noted {\"text\":{\"sha256\":\"00\"}}",
    ];
    documents: &["{\"title\":\"x\",\"kind\":\"feature\",\"priority\":\"P1\"}", "{\"seq\":1}", "[]"];
    handoffs: &["# Handoff\n\n## Summary\n\nhalf done\n"];
    transcripts: &[
        "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"model\":\"x\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n",
        "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"attributes\":[]}]}]}]}\n",
    ];
    hooks: &[
        "0000000000000000000000000000000000000000 1111111111111111111111111111111111111111 refs/heads/main\n",
        "refs/heads/a 1111111111111111111111111111111111111111 refs/heads/b 0000000000000000000000000000000000000000\n",
    ];
    stores: &["postgres://user:pass@host:5432/db?workspace=a&sslmode=verify-full", "sqlite:x.db", "https://h/"];
    checks: &["cargo test", "true || false", "echo done # all is well", "npm test && exit 0"];
};

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// What was taken prints as something that is taken as the same.
#[allow(clippy::panic, reason = "a fuzz target fails by panicking")]
fn reads_back<T: FromStr + Display + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let printed = value.to_string();
        if !printed.parse::<T>().is_ok_and(|again| again == value) {
            panic!("{text:?} is taken and prints as {printed:?}, which is another value");
        }
    }
}

fn ids(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    reads_back::<Handle>(text);
    reads_back::<WorkstationName>(text);
    reads_back::<ProjectKey>(text);
    reads_back::<TaskType>(text);
    reads_back::<Role>(text);
    reads_back::<CommitId>(text);
    reads_back::<CheckId>(text);
    reads_back::<TokenId>(text);
    reads_back::<BranchName>(text);
    reads_back::<OriginRef>(text);
    reads_back::<RequestId>(text);
    reads_back::<TaskId>(text);
    let _ = Digest::parse(text);
}

fn tokens(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    reads_back::<Token>(text);
    drop(text.parse::<TokenText>());
}

fn times(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    drop(Millis::parse(text));
    drop(Tick::parse(text));
    reads_back::<Date>(text);
    reads_back::<Process>(text);
}

fn words(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    drop(text.parse::<Priority>());
    reads_back::<Blocker>(text);
    reads_back::<TypePattern>(text);
    drop(text.parse::<PriorityRange>());
}

/// Two globs of one input: whether they meet is asked of an automaton that could grow.
fn globs(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    drop(Glob::parse(text));
    let lists: Vec<Scope> =
        text.split('\n').take(4).filter_map(|line| Scope::parse(&[line.to_owned()]).ok()).collect();
    for one in &lists {
        for other in &lists {
            drop(one.overlap(other));
        }
    }
}

fn probes(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    drop(text.parse::<Probe>());
    drop(text.parse::<Url>());
    drop(text.parse::<Endpoint>());
}

fn settings(bytes: &[u8]) {
    drop(onus_host::settings::parse(bytes, "onus.yaml"));
}

fn identity_map(bytes: &[u8]) {
    drop(onus_host::identity_map::parse(bytes, "executor-identity-map.yaml"));
}

/// The first word chooses the verb; every verb is tried with the rest.
fn entries(bytes: &[u8]) {
    let Some((verb, data)) = text(bytes).and_then(|text| text.split_once(' ')) else { return };
    drop(Event::parse(verb, data));
    for verb in Event::VERBS {
        drop(Event::parse(verb, data));
    }
}

fn documents(bytes: &[u8]) {
    drop(serde_json::from_slice::<Spec>(bytes));
    drop(serde_json::from_slice::<Checkpoint>(bytes));
}

fn handoffs(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    drop(Handoff::parse(text));
}

fn transcripts(bytes: &[u8]) {
    drop(transcript::read(bytes));
    drop(otel::read(bytes));
}

fn hooks(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    drop(onus_host::hook::updates(text));
    drop(onus_host::hook::pushed(text));
}

fn stores(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    drop(Location::parse(text, Path::new("/")).map(|location| location.shown()));
}

fn checks(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    onus_core::check::looks_like_prose(text);
    onus_core::check::cannot_fail(text);
}
