//! Scenarios in one line: `check("add; claim a; tick 60s; claim b", "ok; ok e1; ok; lease_held")`.
//!
//! A step is `verb[!] [worker] [#task] [key=value | word]...`; `!` forces. Without `#n` a step is about the task added
//! last. Workers are those of [`World::new`], `-` is nobody and `x` is not registered. A worker shows the last token
//! that it was given for the task; `token=none|forged|epoch|first|<worker>` shows another one. `mute` leaves the reason
//! out, `bare` only the one for the force, `silent` the resolution, and `blank` makes it one of blanks.

use super::{BEGIN, Done, World, handle, process, spec, task_id, text, workstation_of};
use onus_core::code::Code;
use onus_core::command::{Archive, Changes, Command, Patch, Stage, Warrant, WhileBlocked};
use onus_core::command::{Opinion, Run};
use onus_core::event::Event;
use onus_core::evidence::{Classification, Ground, Proof, ReviewVerdict, RootCause};
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::identity_map::{InForce, InvalidMap, Policy};
use onus_core::lease::Token;
use onus_core::ledger::Entry;
use onus_core::main_of_record::RepositoryClone;
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::{MergePolicy, ReviewPolicy};
use onus_core::task::{Check, CheckState, State, StateName};
use onus_core::task::{CheckKind, Risk};
use onus_core::time::{Millis, Timestamp};
use onus_core::worker::WorkerState;
use onus_core::workstation::WorkstationState;
use std::collections::{BTreeMap, BTreeSet};

/// What the holder of T-1 says to the next one.
const HANDOFF: &str = r#"{"format":"onus-handoff/1","task":"T-1","status":"in_progress","depends_on_satisfied":true,
"depends_on":[],"commits":[],"files":[],"tests_run":[],"risks":[],"blockers":[],"next_slice":null,"lane":null,
"summary":"half done","by":"@a","at":"2026-09-21T14:13:20.000Z","epoch":1,"workstation":"ws-a","branch":null,"base":null,
"head":null,"dirty":[],"salvage":null}"#;

#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) world: World,
    tokens: BTreeMap<(Handle, TaskId), Vec<Token>>,
    pub(crate) refusal: Option<Refusal>,
}

/// Runs the steps and compares what each of them gave.
pub(crate) fn check(steps: &str, expected: &str) {
    let mut script = Script::new();
    let given: Vec<String> = parts(steps).map(|step| script.step(step)).collect();
    let expected: Vec<&str> = parts(expected).collect();
    assert_eq!(given, expected, "\n  {steps}");
}

/// Runs the steps; the last one must have been refused, and this is how.
pub(crate) fn refusal(steps: &str) -> Refusal {
    let mut script = Script::new();
    for step in parts(steps) {
        script.step(step);
    }
    script.refusal.unwrap_or_else(|| panic!("not refused: {steps}"))
}

/// Runs the steps; the story of the last task, as the ledger has it.
pub(crate) fn story(steps: &str) -> Vec<Entry> {
    let mut script = Script::new();
    for step in parts(steps) {
        script.step(step);
        assert!(script.refusal.is_none(), "refused: {step}");
    }
    script.world.chains[&task_id(script.world.tasks.len())].clone()
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').map(str::trim)
}

/// One step, taken apart.
#[derive(Debug)]
struct Step<'a> {
    verb: &'a str,
    forced: bool,
    words: Vec<&'a str>,
}

impl<'a> Step<'a> {
    fn read(text: &'a str) -> Step<'a> {
        let mut words = text.split_whitespace();
        let verb = words.next().unwrap_or_default();
        Step { verb: verb.trim_end_matches('!'), forced: verb.ends_with('!'), words: words.collect() }
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn task(&self) -> Option<TaskId> {
        self.words.iter().find_map(|word| word.strip_prefix('#')).map(|n| task_id(n.parse().unwrap()))
    }

    /// The first word of one letter.
    fn name(&self) -> &'a str {
        self.words.iter().find(|word| word.len() == 1).copied().unwrap_or("p")
    }

    fn who(&self) -> Option<Handle> {
        (self.name() != "-").then(|| handle(self.name()))
    }

    fn reason(&self) -> Option<String> {
        (!self.has("mute")).then(|| self.value("why").unwrap_or("because").to_owned())
    }

    fn warrant(&self) -> Warrant {
        let reason = self.reason().filter(|_| !self.has("bare"));
        if self.forced { Warrant::Forced { reason } } else { Warrant::Ordinary }
    }

    fn workstation(&self) -> Option<WorkstationName> {
        match self.value("ws") {
            Some("none") => None,
            Some(name) => Some(workstation_of(name)),
            None => Some(workstation_of(if self.name() == "-" { "p" } else { self.name() })),
        }
    }

    fn ttl(&self) -> Option<Millis> {
        self.value("ttl").map(|ttl| ttl.parse().map_or_else(|_| Millis::parse(ttl).unwrap(), Millis))
    }

    fn ids(&self) -> BTreeSet<TaskId> {
        let list = self.value("on").into_iter().flat_map(|on| on.split(','));
        list.map(|n| task_id(n.parse().unwrap())).collect()
    }

    fn command(&self) -> Command {
        let warrant = self.warrant();
        let (workstation, ttl, reason) = (self.workstation(), self.ttl(), self.reason());
        let note = self.value("note").map(text);
        match self.verb {
            "add" => self.add(),
            "claim" => Command::Claim {
                workstation,
                here: None,
                assignee: None,
                ttl,
                warrant,
                constraints: Vec::new(),
            },
            "assign" => {
                let to = self.value("to").unwrap();
                let workstation = self.value("ws").or(Some(to)).map(workstation_of);
                Command::Claim {
                    workstation,
                    here: None,
                    assignee: Some(handle(to)),
                    ttl,
                    warrant,
                    constraints: Vec::new(),
                }
            }
            "except" => Command::RequestException {
                on: self.ids().pop_first().unwrap(),
                rollback: (!self.has("final")).then(|| "go back".to_owned()),
                reason,
                adr: None,
            },
            "approve" => Command::ApproveException { on: self.ids().pop_first().unwrap() },
            "merge" | "askmerge" => Command::Merge {
                commit: "c".repeat(40).parse().unwrap(),
                onto: "0".repeat(40).parse().unwrap(),
                checks: Vec::new(),
                root_cause: self.cause(),
                stage: if self.verb == "merge" { Stage::Land } else { Stage::Ask },
                proof: self.proof(),
            },
            "askreview" => Command::RequestReview { commit: self.ground().commit },
            "adopt" => {
                let of = self.value("of").map_or(1, |of| of.parse().unwrap());
                Command::Adopt { of, commits: vec!["c".repeat(40).parse().unwrap()] }
            }
            "salvage" => {
                let of = self.value("of").map_or(1, |of| of.parse().unwrap());
                let reference = self.value("ref").map(str::to_owned);
                let kept = reference.unwrap_or_else(|| onus_core::salvage_reference(&task_id(1), of));
                Command::Salvage { of, reference: kept, commit: "c".repeat(40).parse().unwrap() }
            }
            "takeover" => Command::Takeover { workstation, here: None, ttl, reason, warrant },
            "renew" => {
                let process = self.value("pid").map(|pid| process("h1", pid.parse().unwrap()));
                Command::Renew { ttl, process }
            }
            "release" => Command::Release { note, handoff: None, warrant },
            "block" => Command::Block {
                on: self.value("on").unwrap_or("external:rain").parse().unwrap(),
                lease: if self.has("free") { WhileBlocked::ReleaseLease } else { WhileBlocked::KeepLease },
                note: None,
                handoff: None,
            },
            "unblock" => Command::Unblock,
            "handoff" => Command::Handoff { note: None, document: text(HANDOFF) },
            "start" => Command::StartSession,
            "stop" => Command::StopSession,
            "say" => Command::Say {
                to: self.value("to").map(super::handle),
                text: text(self.value("note").unwrap_or("so far so good")),
            },
            "read" => Command::Read { through: self.value("through").map_or(1, |seq| seq.parse().unwrap()) },
            "note" => Command::Note { text: text(self.value("note").unwrap_or("so far so good")) },
            "addcheck" => Command::AddCheck { check: self.check() },
            "approvecheck" => Command::ApproveCheck { check: self.check().id() },
            "removecheck" => Command::RemoveCheck { check: self.check().id(), reason },
            "run" => Command::RecordCheck { run: Box::new(self.run()) },
            "review" => Command::Review {
                opinion: Box::new(Opinion {
                    verdict: ReviewVerdict::parse(self.value("says").unwrap_or("approved")).unwrap(),
                    classification: Classification::parse(self.value("as").unwrap_or("implemented")).unwrap(),
                    commit: self.ground().commit,
                    workstation,
                    note: None,
                    comments: Vec::new(),
                }),
            },
            "complete" => Command::Complete {
                resolution: (!self.has("silent")).then(|| text(if self.has("blank") { " " } else { "done" })),
                root_cause: self.cause(),
                warrant,
                proof: self.proof(),
            },
            "reopen" => Command::Reopen { reason },
            "drop" => Command::Drop { reason },
            "edit" => Command::Edit { changes: Box::new(self.changes()) },
            "dep" => Command::AddDependency { on: self.ids().pop_first().unwrap() },
            "undep" => Command::RemoveDependency { on: self.ids().pop_first().unwrap() },
            other => panic!("no such step: {other}"),
        }
    }

    /// A document such as `{"title":"other"}`, with `~` for blanks.
    fn changes(&self) -> Changes {
        let document = self.words.iter().find(|word| word.starts_with('{')).expect("a document");
        let mut document: serde_json::Value = serde_json::from_str(&document.replace('~', " ")).unwrap();
        // A document names a text by its digest; here it is the text.
        let body = document.as_object_mut().unwrap().remove("body");
        let mut changes: Changes = serde_json::from_value(document).unwrap();
        changes.body = match body {
            None => Patch::Keep,
            Some(serde_json::Value::String(words)) => Patch::To(super::text(&words)),
            Some(_) => Patch::Clear,
        };
        changes
    }

    fn cause(&self) -> Option<RootCause> {
        let cause = self.value("cause")?;
        Some(RootCause { statement: cause.to_owned(), owner: "src/lib.rs".to_owned() })
    }

    /// `unmerged=n` commits, `risky=path` touched, `same=n` a commit that is the same work, `rivals` other clones,
    /// `done` with its handoff.
    fn proof(&self) -> Proof {
        let clone = |n: usize| RepositoryClone {
            id: format!("{n:016}").parse().unwrap(),
            host: "h1".into(),
            path: format!("/clone-{n}/.git"),
        };
        Proof {
            ground: self.ground(),
            unmerged: self.value("unmerged").map_or(0, |n| n.parse().unwrap()),
            risky: self.value("risky").map(str::to_owned).into_iter().collect(),
            same_work: self.value("same").map(|n| n.repeat(40).parse().unwrap()).into_iter().collect(),
            rivals: if self.has("rivals") { vec![clone(1), clone(2)] } else { Vec::new() },
            handoff: self.has("done").then(|| text(HANDOFF)),
            elsewhere: self.has("elsewhere"),
            ..Proof::default()
        }
    }

    /// `make test` unless the step says otherwise.
    fn check(&self) -> Check {
        let command = self.value("cmd").unwrap_or("make_test").replace('_', " ");
        let kind = self.value("kind").map_or(CheckKind::Acceptance, |kind| CheckKind::parse(kind).unwrap());
        Check { command, state: CheckState::Proposed, kind }
    }

    /// `at=n` is a commit, `dirty` a tree with changes.
    fn ground(&self) -> Ground {
        let commit = self.value("at").map(|n| n.repeat(40).parse().unwrap());
        Ground { commit, dirty: self.has("dirty") }
    }

    fn run(&self) -> Run {
        Run {
            check: self.check().id(),
            exit: self.value("exit").map_or(Some(0), |code| code.parse().ok()),
            signal: None,
            timed_out: self.has("slow"),
            took_ms: 1,
            ground: self.ground(),
            output: text("what it said"),
            output_length: 12,
            output_sha256: "0".repeat(64),
            environment: "0".repeat(64),
            sandbox: "none".to_owned(),
        }
    }

    fn add(&self) -> Command {
        let mut spec = spec(self.value("title").unwrap_or("a task"));
        spec.origin = self.value("origin").map(|origin| origin.parse().unwrap());
        spec.task_type = self.value("type").map(|t| t.parse().unwrap());
        if let Some(kind) = self.value("kind") {
            spec.kind = kind.to_owned();
        }
        if self.has("risky") {
            spec.risk = Risk::High;
        }
        spec.role = self.value("role").map(|role| role.parse().unwrap());
        spec.lane = self.value("lane").map(|lane| lane.parse().unwrap());
        spec.sprint = self.value("sprint").map(str::to_owned);
        spec.parent = self.value("parent").map(|n| task_id(n.parse().unwrap()));
        spec.merge_order = self.value("order").map(|order| order.parse().unwrap());
        spec.scope =
            self.value("scope").into_iter().flat_map(|scope| scope.split('+')).map(str::to_owned).collect();
        let tags = self.value("tags").map_or(0, |count| count.parse().unwrap());
        spec.tags = (0..tags).map(|n: usize| format!("tag-{n}")).collect();
        if self.has("check") {
            let (kind, state) = (CheckKind::Acceptance, CheckState::Approved);
            spec.checks.push(Check { command: "make test".into(), state, kind });
        }
        let state = self.value("archived").map(|state| StateName::parse(state).unwrap());
        let archived = state.map(|state| Archive { state, resolution: None, at: None });
        Command::Add { spec: Box::new(spec), depends_on: self.ids(), archived, arrival: None }
    }
}

impl Script {
    pub(crate) fn new() -> Script {
        Script { world: World::new(), tokens: BTreeMap::new(), refusal: None }
    }

    pub(crate) fn step(&mut self, text: &str) -> String {
        let step = Step::read(text);
        self.refusal = None;
        if let Some(answer) = self.look(&step).or_else(|| self.turn(&step)) {
            return answer;
        }
        let task = self.subject(&step);
        let (who, token) = (step.who(), self.token(&step, &task));
        match self.world.call(who.as_ref(), token, Some(&task), &step.command()) {
            Ok(Done::Existing(id)) => format!("existing {id}"),
            Ok(Done::Changed { task, events }) => {
                if matches!(events[..], [.., Event::Claimed(_) | Event::TakenOver(_)]) {
                    let token = self.world.live_token(&task).unwrap();
                    let holder = self.world.tasks[&task].assignment().unwrap().assignee.clone();
                    self.tokens.entry((holder, task.clone())).or_default().push(token);
                }
                // A word over limits comes before the grant that it lets happen.
                let told = events.iter().find(|event| !matches!(event, Event::LimitsLifted(_)));
                self.outcome(&task, told.unwrap())
            }
            Err(refusal) => {
                let mut codes: Vec<String> = refusal.findings.iter().map(|f| f.code.to_string()).collect();
                if codes.is_empty() {
                    codes.push(refusal.code.to_string());
                }
                self.refusal = Some(refusal);
                codes.join("+")
            }
        }
    }

    fn subject(&self, step: &Step<'_>) -> TaskId {
        step.task().unwrap_or_else(|| task_id(self.world.tasks.len().max(1)))
    }

    fn token(&self, step: &Step<'_>, task: &TaskId) -> Option<Token> {
        let of = |who: Handle| self.tokens.get(&(who, task.clone()));
        match step.value("token") {
            Some("none") => None,
            Some("forged") => Some(Token { lease: [9; 16], ..self.world.live_token(task)? }),
            Some("epoch") => {
                self.world.live_token(task).map(|token| Token { epoch: token.epoch - 1, ..token })
            }
            Some("first") => of(step.who()?)?.first().cloned(),
            Some(other) => of(handle(other))?.last().cloned(),
            None => of(step.who()?)?.last().cloned(),
        }
    }

    fn outcome(&self, task: &TaskId, event: &Event) -> String {
        let epoch = self.world.tasks[task].epoch;
        let (late, forced) = match event {
            Event::Renewed(e) => (e.renewal.late_by_ms, false),
            Event::Noted(e) => (e.renewal.as_ref().and_then(|r| r.late_by_ms), false),
            Event::Blocked(e) => (e.late_by_ms, false),
            Event::Released(e) => (e.late_by_ms, e.forced),
            Event::Completed(e) => (e.late_by_ms, e.forced),
            Event::Claimed(e) => (None, e.grant.forced),
            Event::TakenOver(e) => (None, e.grant.forced),
            _ => (None, false),
        };
        let raised =
            matches!(event, Event::Claimed(_) | Event::TakenOver(_) | Event::Reopened(_) | Event::Dropped(_));
        let mut said = "ok".to_owned();
        if raised {
            said += &format!(" e{epoch}");
        }
        if let Some(late) = late {
            said += &format!(" late {}", Millis(late));
        }
        if forced {
            said += " forced";
        }
        said
    }

    /// Steps that turn the world: clocks, the store's generation, workers and workstations.
    fn turn(&mut self, step: &Step<'_>) -> Option<String> {
        let argument = step.words.first().copied().unwrap_or_default();
        let world = &mut self.world;
        match step.verb {
            "tick" => world.tick(Millis::parse(argument).unwrap()),
            "wall" => {
                let (sign, span) = argument.split_at(1);
                let span = Millis::parse(span).unwrap().0;
                world.clock.wall.0 += if sign == "-" { -span } else { span };
            }
            "reboot" => world.reboot(),
            "end" => drop(world.ended.insert(argument.parse().unwrap())),
            "host" => world.host(argument),
            "generation" => world.generation += 1,
            "anchor" => world.behind_anchor = argument == "ahead",
            "unmerged" => world.settings.complete.merged = MergePolicy::Off,
            "reviewed" => world.settings.complete.review = ReviewPolicy::Always,
            "lane" => {
                let found = world.workstations.get_mut(&workstation_of(argument)).unwrap();
                let (role, lane) = step.words[1].split_once(':').unwrap();
                (found.role, found.lane) = (Some(role.parse().unwrap()), Some(lane.parse().unwrap()));
            }
            "map" => world.policy = policy(argument),
            "probe" => world.probe(&workstation_of(argument), step.words[1]),
            "pause" => world.workers.get_mut(&handle(argument)).unwrap().state = WorkerState::Paused,
            "workstation" => {
                let found = world.workstations.get_mut(&workstation_of(argument)).unwrap();
                found.state = WorkstationState::parse(step.words[1]).unwrap();
                found.reason = step.value("why").map(str::to_owned);
            }
            "limit" => {
                let limits = &mut world.settings.limits;
                let limit = match argument {
                    "worker" => &mut limits.worker_day,
                    "sprint" => &mut limits.sprint,
                    _ => &mut limits.task,
                };
                let number = |key: &str| step.value(key).map(|n| n.parse().unwrap());
                limit.tokens = number("tokens").or(limit.tokens);
                limit.turns = step.value("turns").map(|n| n.parse().unwrap()).or(limit.turns);
                limit.attempts = step.value("attempts").map(|n| n.parse().unwrap()).or(limit.attempts);
                limit.time = step.value("time").map(|span| Millis::parse(span).unwrap()).or(limit.time);
            }
            "uses" => world.uses(argument.parse().unwrap()),
            "grace" => {
                let grace = Some(Millis::parse(argument).unwrap());
                world.settings.lease.types.entry(step.words[1].to_owned()).or_default().grace = grace;
            }
            _ => return None,
        }
        Some("ok".to_owned())
    }

    /// Steps that only look.
    fn look(&self, step: &Step<'_>) -> Option<String> {
        let world = &self.world;
        let id = self.subject(step);
        match step.verb {
            "state" => Some(state(&world.tasks[&id].state)),
            "version" => Some(world.tasks[&id].version.to_string()),
            "route" => {
                let held = world.tasks[&id].assignment().expect("a holder");
                let lane = held.lane.map(|lane| format!(" lane {lane}")).unwrap_or_default();
                Some(format!("{}{lane}", held.route.as_ref().map_or("none", |route| &route.rule)))
            }
            "updated" => Some(at(world.tasks[&id].updated_at)),
            "lease" => {
                let lease = &world.tasks[&id].assignment().expect("a holder").lease;
                Some(format!("{} until {} renewed {}", lease.ttl, at(lease.expires_at()), lease.renewals))
            }
            "verbs" => {
                let verbs: Vec<&str> = world.chains[&id].iter().map(|entry| entry.verb.as_str()).collect();
                Some(verbs.join(" "))
            }
            "notes" => {
                let kinds: Vec<&str> = world.notes.iter().map(|(_, kind, _)| kind.name()).collect();
                Some(kinds.join(" "))
            }
            "task" => {
                let task = &world.tasks[&id];
                let spec = &task.spec;
                let on: Vec<String> = task.depends_on.iter().map(ToString::to_string).collect();
                Some(format!(
                    "{} {} [{}] [{}] [{}]",
                    spec.title,
                    spec.priority,
                    spec.tags.join(" "),
                    spec.scope.join(" "),
                    on.join(" ")
                ))
            }
            "checks" => {
                let states: Vec<String> =
                    world.tasks[&id].spec.checks.iter().map(|check| format!("{:?}", check.state)).collect();
                Some(states.join(" ").to_lowercase())
            }
            "sessions" => {
                let rows: Vec<String> = world
                    .sessions
                    .iter()
                    .map(|s| {
                        let end = s
                            .to
                            .map_or("..".to_owned(), |(_, to, why)| format!("..{} {}", at(to), why.name()));
                        format!("{} {}{end}", &s.worker.as_str()[1..], at(s.from.1))
                    })
                    .collect();
                Some(rows.join(", "))
            }
            "assignments" => {
                let rows: Vec<String> = world
                    .assignments
                    .iter()
                    .map(|row| {
                        let held = &row.assignment;
                        let end = row
                            .ended
                            .map_or("held".to_owned(), |(to, why)| format!("{} {}", why.name(), at(to)));
                        let forced = if held.forced { " forced" } else { "" };
                        let why = held.handoff_reason.as_ref().map_or(String::new(), |r| format!(" ({r})"));
                        format!("{} e{}{forced}{why} {end}", &held.assignee.as_str()[1..], held.epoch)
                    })
                    .collect();
                Some(rows.join(", "))
            }
            _ => None,
        }
    }
}

/// A map in force, from JSON without blanks; `invalid` is one that cannot be followed.
fn policy(json: &str) -> Policy {
    if json == "invalid" {
        let findings = vec![Finding::new(Code::MapInvalid, "routing is no list")];
        let (commit, hash) = (Some("c0ffee".to_owned()), Some("bad".to_owned()));
        return Policy::Invalid(Box::new(InvalidMap { findings, commit, hash }));
    }
    let map = serde_json::from_str(json).unwrap();
    Policy::InForce(Box::new(InForce { map, commit: None, hash: "h".repeat(64), edited: false }))
}

/// Seconds since the world began.
fn at(time: Timestamp) -> String {
    format!("{}s", (time.0 - BEGIN.0) / 1_000)
}

fn state(state: &State) -> String {
    let name = state.name();
    let by = |handle: &Handle, forced: bool| {
        format!("{name} {}{}", &handle.as_str()[1..], if forced { " forced" } else { "" })
    };
    match state {
        State::Open | State::Blocked { held: None, .. } => name.to_string(),
        State::InProgress(held) | State::Blocked { held: Some(held), .. } => by(&held.assignee, held.forced),
        State::Complete(closing) | State::Dropped(closing) => by(&closing.by, closing.forced),
    }
}
