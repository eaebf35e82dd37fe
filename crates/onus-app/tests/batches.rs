//! Batches at random, on PostgreSQL and one by one on SQLite: every command has the same answer, and the tasks end the same.

use super::desk::{self, worker};
use onus_app::progress::Silent;
use onus_app::registry::Founding;
use onus_app::submit::{Receipt, Target};
use onus_app::{Onus, Sight};
use onus_core::command::{Command, Envelope, Warrant, WhileBlocked};
use onus_core::event::WorkstationAdded;
use onus_core::evidence::Proof;
use onus_core::id::{Handle, RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::task::{Blocker, Priority, Spec};
use onus_core::text::Text;
use onus_core::worker::Kind;
use onus_core::workstation::Lifecycle;
use onus_store::port::Driver;
use onus_store::postgres::{Address, Postgres};
use onus_store::read::queue::{Filter, Which};
use onus_store::sqlite::{Options, Sqlite};
use onus_testkit::Cluster;
use std::collections::BTreeMap;
use std::path::Path;

const AGENTS: usize = 4;

/// Numbers that look drawn, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// One store, and the leases that it gave.
struct Side {
    onus: Onus,
    held: BTreeMap<TaskId, (Handle, Token)>,
}

impl Side {
    fn new(store: impl Driver + 'static, directory: &Path) -> Side {
        let place = onus_host::repository::find(directory).unwrap();
        let path = directory.join("onus.db");
        let mut onus = Onus {
            store: Box::new(store),
            settings: Settings::default(),
            path,
            place,
            sight: Sight::Store,
            bearer: None,
        };
        let founding = Founding {
            project: Some("T".parse().unwrap()),
            default_project: "T".parse().unwrap(),
            person: worker("@ada", Kind::Human),
            checkout: None,
        };
        onus.init(&founding, |_| Ok("00".repeat(32))).unwrap();
        let ada: Handle = "@ada".parse().unwrap();
        for n in 0..AGENTS {
            onus.add_worker(Some(&ada), &worker(&format!("@a{n}"), Kind::Agent)).unwrap();
        }
        for n in 0..AGENTS + 3 {
            let lifecycle = if n < AGENTS { Lifecycle::Reusable } else { Lifecycle::SingleTask };
            let name = format!("ws-{n}").parse().unwrap();
            let wanted = WorkstationAdded { lifecycle, ..WorkstationAdded::logical(name) };
            onus.add_workstation(Some(&ada), &wanted).unwrap();
        }
        Side { onus, held: BTreeMap::new() }
    }

    /// The call as this store's holders make it.
    fn own(&self, (envelope, target): &(Envelope, Target)) -> (Envelope, Target) {
        let lease = envelope.task.as_ref().and_then(|task| self.held.get(task));
        let token = lease.filter(|(holder, _)| envelope.actor.as_ref() == Some(holder));
        (Envelope { token: token.map(|(_, token)| token.clone()), ..envelope.clone() }, target.clone())
    }

    /// What became of a call: the task as it is, or the code.
    fn learn(&mut self, answer: &Result<Receipt, Refusal>) -> String {
        match answer {
            Err(refusal) => refusal.code.to_string(),
            Ok(Receipt { kind, task, token }) => {
                if task.assignment().is_none() {
                    self.held.remove(&task.id);
                }
                if let (Some(token), Some(held)) = (token, task.assignment()) {
                    self.held.insert(task.id.clone(), (held.assignee.clone(), token.clone()));
                }
                let holder = task.assignment().map(|held| format!("{} {}", held.assignee, held.workstation));
                format!(
                    "{kind:?} {} v{} e{} {} {holder:?}",
                    task.id,
                    task.version,
                    task.epoch,
                    task.state.name()
                )
            }
        }
    }

    fn tasks(&mut self) -> String {
        let mut bytes = Vec::new();
        self.onus.export_tasks(Which::All, &mut bytes, &mut Silent).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let kept = text.lines().map(|line| {
            let mut task: serde_json::Value = serde_json::from_str(line).unwrap();
            for moment in ["uid", "created_at", "updated_at", "closed_at", "assignment"] {
                task.as_object_mut().unwrap().remove(moment);
            }
            for note in task["notes"].as_array_mut().into_iter().flatten() {
                note.as_object_mut().unwrap().remove("at");
            }
            task.to_string()
        });
        kept.collect::<Vec<_>>().join("\n")
    }
}

/// What is known when a batch is put together: how many tasks there are, and who holds which.
struct Known {
    tasks: usize,
    held: Vec<(TaskId, Handle)>,
}

fn call(dice: &mut Dice, request: &str, known: &Known, batch: &[(Envelope, Target)]) -> (Envelope, Target) {
    let (n, tasks) = (dice.below(AGENTS), known.tasks);
    let some = |dice: &mut Dice| {
        let number = 1 + dice.below(tasks.max(1));
        Some(format!("T-{number}").parse::<TaskId>().unwrap())
    };
    // Mostly what somebody holds, by its holder.
    let held = |dice: &mut Dice| match known.held.get(dice.below(known.held.len() + 1)) {
        Some((task, holder)) => (holder.to_string(), Some(task.clone())),
        None => (format!("@a{n}"), some(dice)),
    };
    let place = if dice.below(8) == 0 { AGENTS + dice.below(3) } else { n };
    let claim = Command::Claim {
        workstation: Some(format!("ws-{place}").parse().unwrap()),
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    let words = Text::new("words".to_owned());
    let (by_ada, agent) = ("@ada".to_owned(), format!("@a{n}"));
    let ((actor, task), target, command) = match dice.below(20) {
        0..=2 => ((by_ada, None), Target::Named, add(dice, tasks)),
        3..=5 => ((agent, some(dice)), Target::Named, claim),
        6..=9 => ((agent, None), Target::Next(Filter::default()), claim),
        10..=12 => (held(dice), Target::Named, complete(words)),
        13 => {
            let release = Command::Release { note: Some(words), handoff: None, warrant: Warrant::Ordinary };
            (held(dice), Target::Named, release)
        }
        14 => {
            let on = Blocker::External("rain".into());
            let block = Command::Block { on, lease: WhileBlocked::KeepLease, note: None, handoff: None };
            (held(dice), Target::Named, block)
        }
        15 => (held(dice), Target::Named, Command::Unblock),
        16 => (held(dice), Target::Named, Command::StopSession),
        17 => ((by_ada, some(dice)), Target::Named, Command::Reopen { reason: Some("again".into()) }),
        18 => ((by_ada, some(dice)), Target::At(2), Command::Note { text: words }),
        // The same call once more, in the same batch.
        _ => match batch.last() {
            Some(last) => return last.clone(),
            None => ((by_ada, some(dice)), Target::Named, Command::Note { text: words }),
        },
    };
    let request: RequestId = request.parse().unwrap();
    let actor = Some(actor.parse().unwrap());
    (Envelope { request, actor, token: None, task, project: None, base: None, command }, target)
}

fn add(dice: &mut Dice, tasks: usize) -> Command {
    let mut spec = Spec { kind: "feature".into(), ..Spec::titled("work") };
    spec.priority = Priority::from_rank(dice.below(5) as i64).unwrap();
    if dice.below(3) == 0 {
        spec.role = Some("builder".parse().unwrap());
    }
    if dice.below(3) == 0 {
        spec.scope = vec![format!("src/{}/**", dice.below(3))];
    }
    let on = (tasks > 0 && dice.below(2) == 0).then(|| format!("T-{}", 1 + dice.below(tasks)));
    let depends_on = on.into_iter().map(|on| on.parse().unwrap()).collect();
    Command::Add { spec: Box::new(spec), depends_on, archived: None, arrival: None }
}

fn complete(words: Text) -> Command {
    let proof = Proof::default();
    Command::Complete { resolution: Some(words), root_cause: None, warrant: Warrant::Ordinary, proof }
}

#[test]
fn many_at_once_are_answered_as_if_each_had_come_alone() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut done = BTreeMap::<&str, usize>::new();
    for seed in 1..=2 {
        let directory = tempfile::tempdir().unwrap();
        let file =
            Sqlite::create(&directory.path().join("onus.db"), &Options::one_shot(desk::clock)).unwrap();
        let database = Postgres::create(&Address::parse(&cluster.database()).unwrap()).unwrap();
        let mut alone = Side::new(file, directory.path());
        let mut together = Side::new(database, directory.path());
        let mut dice = Dice(seed);
        let mut known = Known { tasks: 0, held: Vec::new() };
        for round in 0..40 {
            let mut calls: Vec<(Envelope, Target)> = Vec::new();
            for n in 0..2 + dice.below(14) {
                calls.push(call(&mut dice, &format!("r{round}-{n}"), &known, &calls));
            }
            let own: Vec<_> = calls.iter().map(|call| together.own(call)).collect();
            let answers = together.onus.submit_many(&own);
            let told: Vec<String> = answers.iter().map(|answer| together.learn(answer)).collect();
            // Whoever sends a batch does not know the leases that it gives.
            let own: Vec<_> = calls.iter().map(|call| alone.own(call)).collect();
            let mut expected = Vec::new();
            for ((envelope, target), answer) in own.iter().zip(&answers) {
                expected.push(alone.onus.submit(envelope, target));
                let name = if answer.is_ok() { envelope.command.name() } else { "refused" };
                *done.entry(name).or_default() += 1;
            }
            let expected: Vec<String> = expected.iter().map(|answer| alone.learn(answer)).collect();
            assert_eq!(told, expected, "seed {seed}, round {round}: {calls:#?}");
            known.tasks += told.iter().filter(|word| word.starts_with("Created")).count();
            known.held =
                alone.held.iter().map(|(task, (holder, _))| (task.clone(), holder.clone())).collect();
        }
        assert_eq!(alone.tasks(), together.tasks(), "seed {seed}");
        let validated = together.onus.validate(&mut Silent).unwrap();
        assert_eq!(validated.findings, [], "seed {seed}");
    }
    for name in ["add", "claim", "complete", "release", "block", "unblock", "note", "reopen", "refused"] {
        assert!(done.get(name).is_some_and(|count| *count >= 3), "too little {name}: {done:?}");
    }
}

/// The head of the queue is read before anything is changed: whoever takes from it sees what was set free meanwhile.
#[test]
fn what_a_completion_sets_free_is_next_in_the_same_batch() {
    let Some(cluster) = Cluster::shared() else { return };
    let directory = tempfile::tempdir().unwrap();
    let database = Postgres::create(&Address::parse(&cluster.database()).unwrap()).unwrap();
    let mut side = Side::new(database, directory.path());
    let make = |n: usize, actor: &str, task: Option<&str>, target: Target, command: Command| {
        let (request, actor) = (format!("free-{n}").parse().unwrap(), Some(actor.parse().unwrap()));
        let task = task.map(|task| task.parse().unwrap());
        (Envelope { request, actor, token: None, task, project: None, base: None, command }, target)
    };
    let add = |n: usize, rank: i64, on: &[&str]| {
        let mut spec = Spec { kind: "feature".into(), ..Spec::titled("work") };
        spec.priority = Priority::from_rank(rank).unwrap();
        let depends_on = on.iter().map(|on| on.parse().unwrap()).collect();
        let command = Command::Add { spec: Box::new(spec), depends_on, archived: None, arrival: None };
        make(n, "@ada", None, Target::Named, command)
    };
    let next = |n: usize, agent: usize| {
        let workstation = Some(format!("ws-{agent}").parse().unwrap());
        let warrant = Warrant::Ordinary;
        let command = Command::Claim {
            workstation,
            here: None,
            assignee: None,
            ttl: None,
            warrant,
            constraints: Vec::new(),
        };
        make(n, &format!("@a{agent}"), None, Target::Next(Filter::default()), command)
    };
    let done = |n: usize, agent: usize, task: &str| {
        make(n, &format!("@a{agent}"), Some(task), Target::Named, complete(Text::new("words".to_owned())))
    };
    let mut tell = |calls: &[(Envelope, Target)]| {
        let own: Vec<_> = calls.iter().map(|call| side.own(call)).collect();
        let answers = side.onus.submit_many(&own);
        let told = answers.iter().map(|answer| side.learn(answer));
        let word = |said: String| said.split(' ').nth(1).map(str::to_owned).unwrap_or(said);
        told.map(word).collect::<Vec<_>>().join(" ")
    };
    // T-4 is the most important and waits for T-1; nobody waits for T-2.
    let tasks = [add(1, 1, &[]), add(2, 1, &[]), add(3, 2, &[]), add(4, 0, &["T-1"]), add(5, 2, &[])];
    assert_eq!(tell(&tasks), "T-1 T-2 T-3 T-4 T-5");
    assert_eq!(tell(&[next(6, 0), next(7, 1)]), "T-1 T-2");
    assert_eq!(tell(&[done(8, 1, "T-2"), next(9, 2)]), "T-2 T-3");
    assert_eq!(tell(&[done(10, 0, "T-1"), next(11, 3), next(12, 0)]), "T-1 T-4 T-5");
}
