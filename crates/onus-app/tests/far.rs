//! A workspace behind a server answers as the store itself does: here without a network in between.

use super::desk::{self, Desk, id, request};
use onus_app::doctor::DoctorView;
use onus_app::idempotent_admin::Asker;
use onus_app::remote::{self, CallName};
use onus_app::submit::{ReceiptKind, Target};
use onus_app::{Onus, Sight, progress::Silent};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Run, Warrant};
use onus_core::evidence::{Ground, Proof};
use onus_core::handoff::{Standing, Words};
use onus_core::id::{Handle, WorkstationName};
use onus_core::probe::{ProbeResult, Verdict};
use onus_core::refusal::Refusal;
use onus_core::settings::EvidencePolicy;
use onus_core::task::{Check, CheckKind, CheckState, Spec};
use onus_core::text::Text;
use onus_core::time::Timestamp;
use onus_core::worker::Kind;
use onus_core::workstation::WorkstationState;
use onus_store::port::{CallEffect, RemoteCall, RemoteStore, Store as _};
use onus_store::read::queue::{Filter, Which};
use onus_store::remote::Elsewhere;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Answers for the store of a desk, as the worker that it knows the caller by.
#[derive(Debug)]
struct Line {
    near: Onus,
    caller: Handle,
}

impl RemoteStore for Line {
    fn call(&mut self, call: RemoteCall<'_>) -> Result<String, Refusal> {
        let asker = Asker { actor: Some(&self.caller), request: call.request, shown: None };
        remote::answer(&mut self.near, asker, CallName::known(call.name)?, &call.arguments)
    }
}

fn far_from(desk: &Desk, caller: &str) -> Onus {
    let near = desk::open(&desk.path());
    let place = near.place.clone();
    let line = Line { near, caller: caller.parse().unwrap() };
    Onus {
        store: Box::new(Elsewhere(Box::new(line))),
        settings: onus_core::settings::Settings::default(),
        path: "elsewhere".into(),
        place,
        sight: Sight::Workstations,
        bearer: None,
    }
}

/// A call as anybody can write it.
fn raw(far: &mut Onus, name: &'static str, arguments: &Value) -> Result<String, Refusal> {
    let arguments = arguments.to_string();
    far.store.remote().unwrap().call(RemoteCall {
        name,
        effect: CallEffect::Changes,
        arguments,
        request: None,
    })
}

fn envelope(task: Option<&str>, command: Command) -> Envelope {
    // Whatever a client says about itself is not believed.
    let actor = Some("@mallory".parse().unwrap());
    Envelope {
        request: request(),
        actor,
        token: None,
        task: task.map(id),
        project: None,
        base: None,
        command,
    }
}

fn claim() -> Command {
    Command::Claim {
        workstation: Some("ws-1".parse().unwrap()),
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    }
}

fn add(title: &str) -> Command {
    let body = Some(Text::new(format!("the body of {title}")));
    Command::Add {
        spec: Box::new(Spec { body, kind: "feature".into(), ..Spec::titled(title) }),
        depends_on: BTreeSet::new(),
        archived: None,
        arrival: None,
    }
}

#[test]
fn a_whole_story_travels() {
    let mut desk = Desk::new();
    let mut far = far_from(&desk, "@bot");
    let added = far.submit(&envelope(None, add("one")), &Target::Named).unwrap();
    assert_eq!((added.kind, added.task.created_by.as_str()), (ReceiptKind::Created, "@bot"));
    assert_eq!(added.task.spec.body.unwrap().content(), Some("the body of one"));
    let task = added.task.id.to_string();
    let claimed = far.submit(&envelope(None, claim()), &Target::Next(Filter::default())).unwrap();
    let token = claimed.token.clone().unwrap();
    // The token opens what the store holds, and the store's copy of the lease never left it.
    assert!(desk.onus.task(&id(&task)).unwrap().assignment().unwrap().lease.is_opened_by(&token));
    assert!(claimed.task.assignment().unwrap().lease.id.secret().is_none());
    let words = Words { summary: Some("half of it".into()), ..Words::default() };
    let handoff = far.compose_handoff(&id(&task), Standing::Released, None, &words).unwrap();
    let release =
        Command::Release { note: Some(Text::new("half".into())), handoff, warrant: Warrant::Ordinary };
    let released = Envelope { token: Some(token), ..envelope(Some(&task), release) };
    let once = far.submit(&released, &Target::Named).unwrap();
    let twice = far.submit(&released, &Target::Named).unwrap();
    assert_eq!((once.task.version, once.kind), (twice.task.version, twice.kind));
    let near = serde_json::to_value(desk.onus.show(&id(&task)).unwrap()).unwrap();
    assert_eq!(serde_json::to_value(far.show(&id(&task)).unwrap()).unwrap(), near);
    assert_eq!(near["handoff"]["handoff"]["summary"], "half of it");
}

#[test]
fn every_question_is_answered_as_near_by() {
    let mut desk = Desk::new();
    let ada: Handle = "@ada".parse().unwrap();
    let mut far = far_from(&desk, "@ada");
    far.submit(&envelope(None, add("one")), &Target::Named).unwrap();
    let filter = Filter::default();
    let day = desk.onus.today(Some(&ada)).unwrap();
    macro_rules! same {
        ($($method:ident($($argument:expr),*);)+) => {$(
            let near = serde_json::to_value(desk.onus.$method($($argument),*).unwrap()).unwrap();
            let there = serde_json::to_value(far.$method($($argument),*).unwrap()).unwrap();
            assert_eq!(near, there, stringify!($method));
        )+};
    }
    same! {
        list(Which::Active, &filter, None, 10);
        ready(&filter, 10);
        ready_for(Some(&ada), &filter, 10);
        held();
        status();
        stale();
        log(None, None, 50);
        workers(None);
        workstations(None);
        sessions(None, None, 10);
        day(&ada, day);
        prime(Some(&ada), None);
        exceptions(None, None);
        validate(&mut Silent);
    }
    // Two looks at a clock see two times.
    let checked = |view: DoctorView| -> Vec<_> {
        view.checks.into_iter().map(|check| (check.name, check.ok, check.code)).collect()
    };
    assert_eq!(checked(far.doctor(&mut Silent).unwrap()), checked(desk.onus.doctor(&mut Silent).unwrap()));
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let near = desk.onus.export_ledger(&mut here, &mut Silent).unwrap();
    assert_eq!(far.export_ledger(&mut there, &mut Silent).unwrap().entries, near.entries);
    assert_eq!(here, there);
}

/// More tasks and more notes than are read at once, and more than is sent at once.
#[test]
fn an_export_comes_in_parts_and_is_the_same() {
    let mut desk = Desk::new();
    let said = |task: usize, count: usize| -> Vec<Value> {
        let note = |n| json!({ "by": "github:bob", "at": "2025-06-01T10:00:00Z", "key": format!("{task}-{n}"), "text": format!("note {n} {}", "x".repeat(500)) });
        (0..count).map(note).collect()
    };
    let line = |task| {
        let (state, notes) = match task {
            1 | 129 => ("open", 64),
            3 => ("open", 200),
            4 => ("dropped", 130),
            64 | 65 => ("open", 1),
            _ => ("open", 0),
        };
        json!({ "title": format!("task {task}"), "state": state, "notes": said(task, notes) }).to_string()
    };
    let lines: Vec<String> = (1..=130).map(line).collect();
    assert_eq!(desk.import(&lines.join("\n")).created, 130);
    let mut far = far_from(&desk, "@ada");
    for (which, count) in [(Which::All, 130), (Which::Active, 129)] {
        let mut there = Vec::new();
        assert_eq!(far.export_tasks(which, &mut there, &mut Silent).unwrap(), count);
        let there = String::from_utf8(there).unwrap();
        assert_eq!(there, desk.export(which));
        let told: Vec<Value> = there.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(told.len() as u64, count);
        for task in told {
            let number = task["title"].as_str().unwrap().trim_start_matches("task ").parse().unwrap();
            let expected: Value = serde_json::from_str(&line(number)).unwrap();
            let notes = task.get("notes").cloned().unwrap_or_else(|| json!([]));
            let texts = |notes: &Value| -> Vec<Value> {
                notes.as_array().unwrap().iter().map(|note| note["text"].clone()).collect()
            };
            assert_eq!(texts(&notes), texts(&expected["notes"]), "{number}");
        }
    }
    let part: Value =
        serde_json::from_str(&raw(&mut far, "export_tasks", &json!(["All", null])).unwrap()).unwrap();
    assert!(part["text"].as_str().unwrap().len() < 100_000 && part["next"].is_object());
    let part: Value = serde_json::from_str(&raw(&mut far, "export_ledger", &json!([null])).unwrap()).unwrap();
    assert!(part["text"].as_str().unwrap().len() < 1_000_000 && part["next"].is_i64());
}

/// Whoever asks by number gets no more at once than anybody may have.
#[test]
fn no_number_asks_for_everything() {
    let mut desk = Desk::new();
    let lines: Vec<String> =
        (0..10_010).map(|n| json!({ "title": format!("task {n}") }).to_string()).collect();
    desk.import(&lines.join("\n"));
    let mut far = far_from(&desk, "@ada");
    let most = json!(i64::MAX);
    for (name, arguments, list) in [
        ("log", json!([null, 0, most]), "entries"),
        ("list", json!(["All", {}, null, most]), "tasks"),
        (
            "search_ledger",
            json!([{ "task": null, "actor": null, "verb": null, "when": {}, "before": null, "limit": most }]),
            "entries",
        ),
    ] {
        let answer: Value = serde_json::from_str(&raw(&mut far, name, &arguments).unwrap()).unwrap();
        assert_eq!(answer[list].as_array().map(Vec::len), Some(10_000), "{name}");
    }
    let range: Value =
        serde_json::from_str(&raw(&mut far, "verify_range", &json!([0, most])).unwrap()).unwrap();
    assert_eq!(range["entries"], 10_000);
}

fn said_by_bot(desk: &Desk, task: &str, command: Value, texts: &[&str]) {
    let sent = json!({ "request": desk::request(), "token": null, "task": task, "command": command, "texts": texts });
    raw(&mut far_from(desk, "@bot"), "submit", &json!([sent, "Named"])).unwrap();
}

/// Whatever one agent writes, however much of it: nobody is answered with all of it, and what is left out is said.
#[test]
fn no_answer_is_as_large_as_what_somebody_wrote() {
    const MANY: usize = 80;
    let mut desk = Desk::new();
    let long = "y".repeat(60_000);
    let checks: Vec<String> = (0..15).map(|n| format!("cargo test case_{n} {}", &long[..4_000])).collect();
    let lines: Vec<String> =
        (0..MANY).map(|n| json!({ "title": format!("task {n}"), "checks": checks }).to_string()).collect();
    desk.import_as(&request(), "@bot", None, &lines.join("\n"), onus_app::import::Run::Real).unwrap();
    let digest = |text: &str| onus_core::hash::Digest::of(text.as_bytes()).to_string();
    let comment = &long[..4_000];
    let line = |n: usize| json!({ "path": format!("src/f{n}.rs"), "line": n + 1, "text": digest(comment) });
    let comments: Vec<Value> = (0..100).map(line).collect();
    for _ in 0..MANY {
        said_by_bot(&desk, "T-1", json!({ "Say": { "text": digest(&long), "to": "@ada" } }), &[&long]);
        if desk.onus.line_comments(&id("T-1")).unwrap().left_out == 0 {
            let said = json!({ "Comment": { "commit": null, "comments": comments } });
            said_by_bot(&desk, "T-1", said, &vec![comment; comments.len()]);
        }
    }
    let mut far = far_from(&desk, "@ada");
    let most = json!(10_000);
    let search =
        json!({ "task": null, "actor": null, "verb": null, "when": {}, "before": null, "limit": most });
    for (name, arguments) in [
        ("log", json!([null, null, most])),
        ("log", json!([null, 0, most])),
        ("log", json!(["T-1", null, most])),
        ("search_ledger", json!([search])),
        ("list", json!(["All", {}, null, most])),
        ("ready", json!([{}, most])),
        ("find", json!(["task", "All", {}, most])),
        ("report_now", json!([{}])),
        ("inbox", json!(null)),
        ("messages", json!([null])),
        ("line_comments", json!(["T-1"])),
        ("show", json!(["T-1", { "limit": 1_000 }])),
        ("export_tasks", json!(["All", null])),
        ("export_ledger", json!([null])),
    ] {
        let answer = raw(&mut far, name, &arguments).unwrap();
        assert!(answer.len() < 4_500_000, "{name} {arguments}: {} bytes", answer.len());
    }
    let messages = far.messages(Some(&"@ada".parse().unwrap()), None).unwrap();
    assert!(messages.more && !messages.messages.is_empty());
    let comments = far.line_comments(&id("T-1")).unwrap();
    assert!(comments.left_out > 0 && comments.comments.is_sorted_by_key(|one| one.seq));
    // In parts, each beginning where the last one ended, there is everything.
    let (mut seen, mut after) = (0, 0);
    while let Some(last) = far.log(None, Some(after), 10_000).unwrap().entries.last() {
        (seen, after) = (seen + 1, last.seq);
    }
    assert!(seen > 2, "{seen}");
}

/// A request id is no secret, and what it was used for is not always a command: that is no fault of the record.
#[test]
fn what_a_change_of_the_workspace_led_to_is_told_to_whoever_repeats_it() {
    let mut desk = Desk::new();
    let (ada, key): (Handle, _) = ("@ada".parse().unwrap(), request());
    let asker = Asker { actor: Some(&ada), request: Some(&key), shown: None };
    desk.onus.pause_worker(asker, &"@bot".parse().unwrap(), Some("rest")).unwrap();
    for caller in ["@ada", "@bot"] {
        let told = raw(&mut far_from(&desk, caller), "replayed", &json!([key])).unwrap();
        assert!(told.starts_with("{\"Err\":{\"code\":\"request_conflict\""), "{caller}: {told}");
    }
}

#[test]
fn who_asks_is_the_servers_to_say() {
    let desk = Desk::new();
    let mut far = far_from(&desk, "@bot");
    let ada: Handle = "@ada".parse().unwrap();
    // The client claims to be a person; the server knows an agent.
    let refused = far.quarantine(Some(&ada), &"ws-1".parse().unwrap(), Some("why not")).unwrap_err();
    assert_eq!(refused.code, Code::HumanRequired);
}

#[test]
fn what_cannot_travel_says_so() {
    let desk = Desk::new();
    let mut far = far_from(&desk, "@ada");
    let refused = far.export_archive(&mut Vec::new(), &mut Silent).unwrap_err();
    assert!(format!("{refused:?}").contains("NotPermitted"), "{refused:?}");
    let unknown = raw(&mut far, "no-such-call", &json!(null)).unwrap_err();
    assert_eq!(unknown.code, Code::InvalidInput);
    let nonsense = raw(&mut far, "show", &json!([42])).unwrap_err();
    assert_eq!(nonsense.code, Code::InvalidInput);
}

/// Calls are read strictly: what the other side would not look at was meant for something else.
#[test]
fn unknown_fields_and_surplus_arguments_are_refused() {
    let desk = Desk::new();
    let mut far = far_from(&desk, "@ada");
    let claim = json!({ "Claim": { "workstation": "ws-1", "ttl": null, "warrant": "Ordinary" } });
    let sent = json!({ "request": "r-1", "token": null, "task": "T-1", "command": claim, "texts": [] });
    let mut more = sent.clone();
    more["actor"] = json!("@ada");
    let mut deep = sent.clone();
    deep["command"]["Claim"]["force"] = json!(true);
    for (name, arguments) in [
        ("submit", json!([more, "Named"])),
        ("submit", json!([deep, "Named"])),
        ("submit", json!([sent, "Named", 1])),
        ("show", json!(["T-1", "T-2"])),
        ("status", json!([1])),
        ("list", json!(["Active", { "unknown": 1 }, null, 10])),
    ] {
        let refused = raw(&mut far, name, &arguments).unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{name} {arguments}");
        assert!(refused.detail.contains("makes no sense"), "{refused:?}");
    }
}

/// A text that the store does not have would make the record look broken for ever.
#[test]
fn a_text_travels_with_its_words_or_not_at_all() {
    let mut desk = Desk::new();
    let mut far = far_from(&desk, "@bot");
    far.submit(&envelope(None, add("one")), &Target::Named).unwrap();
    let digest = "ab".repeat(32);
    let words = [
        ("T-1", json!({ "Note": { "text": digest } })),
        (
            "T-1",
            json!({ "Review": { "opinion": { "verdict": "approved", "classification": "implemented",
            "commit": null, "workstation": null, "note": digest } } }),
        ),
        (
            "",
            json!({ "Add": { "spec": Spec { body: Some(Text::new("b".into())), ..Spec::titled("two") },
            "depends_on": [], "archived": null } }),
        ),
    ];
    for (task, command) in words {
        let task = (!task.is_empty()).then_some(task);
        let sent = json!({ "request": request(), "token": null, "task": task, "project": null,
            "command": command, "texts": [null] });
        let refused = raw(&mut far, "submit", &json!([sent, "Named"])).unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{command}");
    }
    // Nor by any other way in: a command with a text that is only a digest is refused where it is decided.
    let bare = Text::known_by(onus_core::hash::Digest::of(b"words that nobody has"));
    let noted = Envelope {
        actor: Some("@bot".parse().unwrap()),
        ..envelope(Some("T-1"), Command::Note { text: bare })
    };
    assert_eq!(desk.onus.submit(&noted, &Target::Named).unwrap_err().code, Code::InvalidInput);
    assert_eq!(desk.onus.verify(&mut Silent).unwrap().findings, []);
    desk.assert_sound();
}

/// A request id is no secret; the lease token that it led to is its holder's.
#[test]
fn a_lease_token_is_told_again_to_its_holder_only() {
    let mut desk = Desk::new();
    let ada: Handle = "@ada".parse().unwrap();
    desk.onus.add_worker(Some(&ada), &desk::worker("@other", Kind::Agent)).unwrap();
    let mut bot = far_from(&desk, "@bot");
    bot.submit(&envelope(None, add("one")), &Target::Named).unwrap();
    let claim = envelope(Some("T-1"), claim());
    let token = bot.submit(&claim, &Target::Named).unwrap().token.unwrap().to_string();
    let told = |who: &str| raw(&mut far_from(&desk, who), "replayed", &json!([claim.request])).unwrap();
    assert!(told("@bot").contains(&token));
    for other in ["@other", "@ada", "@nobody"] {
        assert!(!told(other).contains(&token), "{other}");
    }
}

fn result(verdict: Verdict, detail: &str) -> ProbeResult {
    ProbeResult {
        probe: "directory".into(),
        at: Timestamp(4_000_000_000_000),
        took_ms: 1,
        verdict,
        detail: detail.into(),
    }
}

/// A workstation is spoken for by whoever works there, or may; nobody makes another one's place ready or unready.
#[test]
fn probes_are_reported_by_whose_place_it_is() {
    let mut desk = Desk::new();
    let (ada, place) = ("@ada".parse::<Handle>().unwrap(), "ws-1".parse::<WorkstationName>().unwrap());
    desk.onus.add_worker(Some(&ada), &desk::worker("@other", Kind::Agent)).unwrap();
    let mut bot = far_from(&desk, "@bot");
    bot.submit(&envelope(None, add("one")), &Target::Named).unwrap();
    bot.submit(&envelope(Some("T-1"), claim()), &Target::Named).unwrap();
    let failed = [result(Verdict::Failed, "not there")];
    let refused = far_from(&desk, "@other").record_probes(None, &place, &failed).unwrap_err();
    assert_eq!(refused.code, Code::NotPermitted);
    assert_eq!(desk.onus.workstation(&place).unwrap().workstation.state, WorkstationState::Ready);
    // What is told is bounded, printable, and not from the future.
    let wild = format!("\u{1b}[2J{}", "x".repeat(500_000));
    bot.record_probes(None, &place, &[result(Verdict::Failed, &wild)]).unwrap();
    let log = serde_json::to_string(&desk.onus.log(None, None, 50).unwrap()).unwrap();
    assert!(log.len() < 50_000 && !log.contains("\\u001b"), "{}", log.len());
    let shown = desk.onus.workstations(Some(&place)).unwrap();
    assert!(serde_json::to_string(&shown).unwrap().len() < 5_000);
    // A probe that nobody asked for proves nothing, and one that is not told of is not passed.
    let strange = ProbeResult { probe: "tcp:localhost:1".into(), ..result(Verdict::Passed, "open") };
    assert_eq!(bot.record_probes(None, &place, &[strange]).unwrap_err().code, Code::InvalidInput);
    let endless = ProbeResult { took_ms: i64::MIN, ..result(Verdict::Passed, "it is there") };
    assert_eq!(bot.record_probes(None, &place, &[endless]).unwrap_err().code, Code::InvalidInput);
    far_from(&desk, "@ada").record_probes(None, &place, &[result(Verdict::Passed, "it is there")]).unwrap();
    assert_eq!(desk.onus.workstation(&place).unwrap().workstation.state, WorkstationState::Ready);
    desk.assert_sound();
}

fn run(check: &Check) -> Run {
    Run {
        check: check.id(),
        exit: Some(0),
        signal: None,
        timed_out: false,
        took_ms: 12,
        ground: Ground::default(),
        output: Text::new("fine".into()),
        output_length: 4,
        output_sha256: "0".repeat(64),
        environment: String::new(),
        sandbox: "none".into(),
    }
}

/// What a caller says about its own run is read by type, kept as stated, and need not be believed.
#[test]
fn a_run_made_elsewhere_is_stated() {
    let mut desk = Desk::new();
    let check =
        Check { command: "make test".into(), state: CheckState::Approved, kind: CheckKind::default() };
    let spec = Spec { checks: vec![check.clone()], kind: "feature".into(), ..Spec::titled("one") };
    let add =
        Command::Add { spec: Box::new(spec), depends_on: BTreeSet::new(), archived: None, arrival: None };
    far_from(&desk, "@ada").submit(&envelope(None, add), &Target::Named).unwrap();
    let mut bot = far_from(&desk, "@bot");
    let token = bot.submit(&envelope(Some("T-1"), claim()), &Target::Named).unwrap().token;
    let mut said = |run: Run| {
        let command = Command::RecordCheck { run: Box::new(run) };
        let call = Envelope { token: token.clone(), ..envelope(Some("T-1"), command) };
        bot.submit(&call, &Target::Named).map(drop).map_err(|refusal| refusal.code)
    };
    let fine = run(&check);
    let nonsense = [
        Run { exit: Some(-7), ..fine.clone() },
        Run { exit: Some(0), signal: Some(9), ..fine.clone() },
        Run { exit: None, signal: Some(4_000), ..fine.clone() },
        Run { took_ms: i64::MIN, ..fine.clone() },
        Run { output_length: -1, ..fine.clone() },
        Run { output_sha256: "fine".into(), ..fine.clone() },
        Run { environment: "\u{1b}[2J".into(), ..fine.clone() },
        Run { output: Text::new("x".repeat(500_000)), ..fine.clone() },
    ];
    for run in nonsense {
        assert_eq!(said(run.clone()), Err(Code::InvalidInput), "{run:?}");
    }
    said(Run { output: Text::new("\u{1b}[2Jfine".into()), sandbox: "fort-knox".into(), ..fine }).unwrap();
    let checks = desk.onus.checks(&id("T-1")).unwrap();
    let kept = checks.checks[0].run.clone().unwrap();
    assert_eq!(
        (kept.stated, kept.sandbox.as_str(), kept.output.as_str()),
        (true, "stated", "\u{fffd}[2Jfine")
    );
    let done = Command::Complete {
        resolution: Some(Text::new("done".into())),
        root_cause: None,
        warrant: Warrant::Ordinary,
        proof: Proof::default(),
    };
    let done = Envelope { token, actor: Some("@bot".parse().unwrap()), ..envelope(Some("T-1"), done) };
    desk.onus.settings.complete.evidence = EvidencePolicy::Witnessed;
    let refused = desk.onus.submit(&done, &Target::Named).unwrap_err();
    assert_eq!(refused.code, Code::ChecksMissing, "{refused:?}");
    desk.onus.settings.complete.evidence = EvidencePolicy::Stated;
    desk.onus.submit(&Envelope { request: request(), ..done }, &Target::Named).unwrap();
    desk.assert_sound();
}
