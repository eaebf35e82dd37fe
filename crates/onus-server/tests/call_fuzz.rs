//! Requests that are almost right, by every kind of caller: whatever comes, the record stays sound, nothing of the server
//! breaks, and nobody is told another worker's secrets. `ONUS_TEST_SEED` repeats a run; `ONUS_SOAK` makes it longer.

use super::doors::{CALLERS, Door, table};
use super::house::{Founded, House, open};
use onus_app::progress::Silent;
use onus_core::task::Spec;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// So many requests in one store, and so many between two looks at the record.
const STORE: usize = 250;
const LOOK: usize = 25;

/// So many requests in all, and so many where somebody has the time.
const SHORT: usize = 1_500;
const LONG: usize = 300_000;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % n
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Each command as it travels, with the texts beside it.
fn commands() -> Vec<Value> {
    let (digest, commit) = ("ab".repeat(32), "0123456789".repeat(4));
    let run = json!({ "check": "c1", "exit": 0, "signal": null, "timed_out": false, "took_ms": 5,
        "ground": { "commit": commit, "dirty": false }, "output": digest, "output_length": 3,
        "output_sha256": digest, "environment": "linux", "sandbox": "none" });
    let opinion = json!({ "verdict": "approved", "classification": "implemented", "commit": commit,
        "workstation": null, "note": digest });
    let usage = json!({ "key": "k", "source": "reported", "model": null, "counts": { "output_tokens": 5 } });
    vec![
        json!({ "Add": { "spec": Spec::titled("asked"), "depends_on": ["T-1"], "archived": null } }),
        json!({ "Claim": { "workstation": "ws-2", "ttl": null, "warrant": "Ordinary" } }),
        json!({ "Claim": { "workstation": "ws-2", "assignee": "@bot", "ttl": 5, "warrant": { "Forced": { "reason": "so" } } } }),
        json!({ "Takeover": { "workstation": "ws-2", "ttl": null, "reason": "late", "warrant": "Ordinary" } }),
        json!({ "Takeover": { "workstation": "ws-2", "ttl": null, "reason": null, "warrant": { "Forced": { "reason": "so" } } } }),
        json!({ "Renew": { "ttl": null } }),
        json!({ "Release": { "note": digest, "warrant": "Ordinary" } }),
        json!({ "Block": { "on": { "external": "rain" }, "lease": "KeepLease" } }),
        json!("Unblock"),
        json!({ "Note": { "text": digest } }),
        json!({ "Note": { "text": digest } }),
        json!({ "Handoff": { "note": digest, "document": digest } }),
        json!({ "Complete": { "resolution": digest, "warrant": "Ordinary" } }),
        json!({ "Complete": { "resolution": digest, "warrant": { "Forced": { "reason": "so" } } } }),
        json!({ "AddCheck": { "check": { "command": "cargo test", "state": "approved" } } }),
        json!({ "RecordCheck": { "run": run } }),
        json!({ "Review": { "opinion": opinion } }),
        json!({ "Reopen": { "reason": "so" } }),
        json!({ "Drop": { "reason": "so" } }),
        json!({ "AddDependency": { "on": "T-1" } }),
        json!({ "RemoveDependency": { "on": "T-1" } }),
        json!({ "RequestException": { "on": "T-1", "reason": "so", "rollback": "undo", "adr": null } }),
        json!({ "ApproveException": { "on": "T-1" } }),
        json!({ "Merge": { "commit": commit, "onto": commit, "checks": [] } }),
        json!({ "RequestReview": { "commit": commit } }),
        json!({ "Adopt": { "of": 1, "commits": [commit] } }),
        json!({ "Salvage": { "of": 1, "reference": "refs/onus/salvage/T-2/1", "commit": commit } }),
        json!("StartSession"),
        json!("StopSession"),
        json!({ "CorrectSession": { "session": 1, "started_at": 1, "ended_at": 2, "reason": "so" } }),
        json!({ "RecordUsage": { "session": 1, "usage": usage } }),
        json!({ "CloseOutput": { "session": 1 } }),
    ]
}

/// A command on its way, by whoever says it.
fn submitted(rng: &mut Rng, n: usize, caller: &str, founded: &Founded) -> Value {
    let command = rng.pick(&commands()).clone();
    let digest = "ab".repeat(32);
    let texts = command.to_string().matches(&digest).count();
    let texts: Vec<Value> = (0..texts)
        .map(|n| if rng.below(4) == 0 { Value::Null } else { json!(format!("text {n}")) })
        .collect();
    let token =
        if caller == "agent" && rng.below(2) == 0 { json!(founded.filled("$LEASE")) } else { Value::Null };
    let task = *rng.pick(&["T-1", "T-2", "T-2", "T-3", "T-4", "T-5"]);
    let task = if command["Add"].is_null() { json!(task) } else { Value::Null };
    let sent = json!({ "request": format!("fuzz-{}", n - rng.below(3).min(n)), "token": token, "task": task, "project": null,
        "command": command, "texts": texts });
    json!([sent, rng.pick(&[json!("Named"), json!("Named"), json!({ "Next": {} }), json!({ "At": 1 })])])
}

/// What a value may become.
fn hostile(rng: &mut Rng, n: usize) -> Value {
    match rng.below(16) {
        0 => Value::Null,
        1 => json!(i64::MIN),
        2 => json!(i64::MAX),
        3 => json!(-1),
        4 => json!(1.5),
        5 => json!(true),
        6 => json!(""),
        7 => json!("x".repeat(70_000)),
        8 => json!("\u{1b}[2J\u{7}\r\n\u{2028}\u{200b}\u{ad}\u{e0041}"),
        9 => json!("../../../etc/passwd"),
        10 => json!("' OR 1=1 --"),
        11 => json!([]),
        12 => json!({}),
        13 => json!(format!("T-{}", n % 7)),
        14 => json!("ab".repeat(32)),
        _ => json!("@other"),
    }
}

/// Changes one value of the document, or leaves one out.
fn mutate(rng: &mut Rng, document: &mut Value, n: usize) {
    let mut places = Vec::new();
    values(document, String::new(), &mut places);
    let Some(place) = places.get(rng.below(places.len().max(1))).cloned() else { return };
    if rng.below(5) == 0
        && let Some((parent, name)) = place.rsplit_once('/')
        && let Some(object) = document.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        object.remove(name);
        return;
    }
    let value = hostile(rng, n);
    if let Some(old) = document.pointer_mut(&place) {
        *old = value;
    }
}

fn values(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| values(value, format!("{at}/{name}"), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, value)| values(value, format!("{at}/{n}"), found));
        }
        _ => {}
    }
    if !at.is_empty() {
        found.push(at);
    }
}

/// What is wrong with the record, by the name of what found it.
fn faults(house: &House) -> BTreeSet<String> {
    let mut store = open(&house.path);
    let verified = store.verify(&mut Silent).unwrap();
    let found = verified.findings.iter().map(|found| format!("verify: {found:?}"));
    let doctor = store.doctor(&mut Silent).unwrap();
    let failed =
        doctor.checks.iter().filter(|check| !check.ok).map(|check| format!("doctor: {}", check.name));
    found.chain(failed).collect()
}

/// The lease tokens that an answer tells.
fn leases(answer: &str) -> Vec<String> {
    let hex = |word: &&str| word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let tokens = answer.split('"').filter(|word| {
        let parts: Vec<&str> = word.split('.').collect();
        parts.len() == 3 && parts[..2].iter().all(|part| part.parse::<i64>().is_ok()) && hex(&parts[2])
    });
    tokens.filter_map(|token| token.rsplit('.').next()).map(str::to_owned).collect()
}

struct Fuzzer<'f> {
    founded: &'f Founded,
    doors: Vec<Door>,
    rng: Rng,
    /// Whose each lease is that an answer told.
    told: BTreeMap<String, &'static str>,
    /// What was sent since the record was last found sound.
    sent: Vec<String>,
}

impl Fuzzer<'_> {
    fn step(&mut self, house: &House, n: usize) {
        let rng = &mut self.rng;
        let caller = *rng.pick(&CALLERS);
        let door = rng.pick(&self.doors);
        let (method, target) = door.target();
        let is_command = rng.below(3) > 0;
        let (method, target) =
            if is_command { ("POST", "/v1/call/submit".to_owned()) } else { (method, target) };
        let mut body = match is_command {
            true => submitted(rng, n, caller, self.founded),
            // The lease is its holder's to show.
            false => {
                let body = door.body(self.founded, caller);
                let body = if caller == "agent" {
                    body
                } else {
                    body.replace(&self.founded.filled("$LEASE"), "1.1.00")
                };
                serde_json::from_str(&body).unwrap_or(Value::Null)
            }
        };
        for _ in 0..rng.below(4).saturating_sub(1) {
            mutate(rng, &mut body, n);
        }
        let body = body.to_string();
        self.sent.push(format!("{caller}: {method} {target} {}", &body[..body.floor_char_boundary(600)]));
        let answer =
            house.send(method, &target, self.founded.tokens.get(caller).map(String::as_str), body.into());
        let said = String::from_utf8_lossy(answer.body()).into_owned();
        assert!(!answer.status().is_server_error(), "{}: {said}\n{}", answer.status(), self.story());
        self.founded.assert_keeps_secrets(caller, &target, answer.body());
        for (lease, owner) in &self.told {
            assert!(
                *owner == caller || !said.contains(lease.as_str()),
                "{caller} is told the lease of {owner}: {said}\n{}",
                self.story()
            );
        }
        for lease in leases(&said) {
            self.told.entry(lease).or_insert(caller);
        }
    }

    fn story(&self) -> String {
        self.sent.join("\n")
    }
}

#[test]
fn no_request_breaks_the_record_or_tells_a_secret() {
    let seed = std::env::var("ONUS_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(17);
    let lasts = if std::env::var_os("ONUS_SOAK").is_some() { LONG } else { SHORT };
    eprintln!("ONUS_TEST_SEED={seed}");
    let founded = Founded::new();
    let rng = Rng(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) | 1);
    let mut fuzzer =
        Fuzzer { founded: &founded, doors: table().1, rng, told: BTreeMap::new(), sent: Vec::new() };
    let mut count = 0;
    while count < lasts {
        let house = founded.serve();
        let usual = faults(&house);
        let lease = founded.filled("$LEASE").rsplit('.').next().unwrap().to_owned();
        fuzzer.told = BTreeMap::from([(lease, "agent")]);
        for n in 0..STORE {
            fuzzer.step(&house, n);
            count += 1;
            if n % LOOK == LOOK - 1 {
                let found: Vec<_> = faults(&house).difference(&usual).cloned().collect();
                assert!(found.is_empty(), "seed {seed}, after {count}: {found:#?}\n{}", fuzzer.story());
                fuzzer.sent.clear();
            }
        }
    }
    eprintln!("{count} requests");
}
