//! How fast `ledger verify` is, over tasks with their full story. Run it with
//! `cargo test --release -p onus-app --test ledger_speed -- --ignored --nocapture`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod audit;

use audit::{Case, in_own_process, text};
use onus_app::LOCAL;
use onus_core::effect::effects;
use onus_core::event::{Added, Claimed, Completed, Event, Grant, Noted, Renewal, Stamped};
use onus_core::hash::Digest;
use onus_core::lease::LeaseId;
use onus_core::ledger::Entry;
use onus_core::refusal::Refusal;
use onus_core::task::{Priority, Risk, Spec, Task, evolve};
use onus_core::time::Now;
use onus_store::apply::{self, Change};
use onus_store::load;
use onus_store::port::{Outcome, Store as _, Tx};
use std::time::Instant;

/// Tasks of which only the ask is on record, as after an import, and tasks with their whole story.
const ASKED: i64 = 100_000;
const TOLD: i64 = 60_000;
const GOAL: f64 = 200_000.0;

struct Story<'a> {
    uid: &'a str,
    now: Now,
    seq: i64,
}

impl Story<'_> {
    fn tell(&mut self, tx: &mut dyn Tx, number: i64, length: usize) -> Result<(), Refusal> {
        let mut row: Option<Task> = None;
        let mut head = Digest::ZERO;
        for event in self.events(number).into_iter().take(length) {
            self.seq += 1;
            let stamped = Stamped {
                seq: self.seq,
                task: Some(format!("T-{number}").parse().unwrap()),
                at: self.now.wall,
                actor: "@bot".parse().unwrap(),
                workstation: Some("ws-1".parse().unwrap()),
                epoch: row.as_ref().map_or(0, |task| task.epoch) + i64::from(event.raises_epoch()),
                event,
            };
            let after = evolve(row.clone(), &stamped).unwrap();
            let entry = Entry::seal(self.uid, &stamped, head).unwrap();
            let effects = effects(row.as_ref(), &stamped, &after);
            apply::change(
                tx,
                LOCAL,
                &Change { before: row.as_ref(), after: &after, entry: &entry, effects: &effects },
            )?;
            (head, row) = (entry.hash, Some(after));
        }
        Ok(())
    }

    fn events(&self, number: i64) -> [Event; 4] {
        let tick = self.now.tick.clone();
        let mut lease = [0; 16];
        lease[..8].copy_from_slice(&number.to_le_bytes());
        let spec = Spec {
            title: format!("Add the endpoint number {number} to the service"),
            body: Some(text("It takes a list and gives a list; see the contract for the fields of each.")),
            task_type: Some("backend".parse().unwrap()),
            kind: "feature".into(),
            priority: Priority::P2,
            risk: Risk::Normal,
            role: None,
            lane: None,
            sprint: None,
            tags: vec!["api".into()],
            scope: vec!["src/api/**".into()],
            parent: None,
            merge_order: None,
            origin: Some(format!("test:{number}").parse().unwrap()),
            checks: Vec::new(),
        };
        let grant = Grant {
            lease: LeaseId::new(lease),
            ttl_ms: 900_000,
            tick: tick.clone(),
            tier: None,
            route: None,
            forced: false,
        };
        let renewal = Some(Renewal { tick, ttl_ms: None, late_by_ms: None });
        [
            Added {
                uid: uuid::Uuid::from_u128(number as u128),
                spec,
                depends_on: Default::default(),
                archived: None,
            }
            .into(),
            Claimed { grant, reason: None }.into(),
            Noted { text: text("The handler is there; the tests come next."), renewal }.into(),
            Completed { resolution: text("Done, all green."), reason: None, forced: false, late_by_ms: None }
                .into(),
        ]
    }
}

#[test]
#[ignore = "a measurement"]
fn verify_reaches_its_goal() {
    if !in_own_process("verify_reaches_its_goal") {
        return;
    }
    let rates = [("asked only", ASKED, 1), ("whole story", TOLD, 4)].map(|(what, tasks, length)| {
        let mut case = Case::outside_git();
        case.onus
            .store
            .write(|tx| {
                let workspace = load::workspace(tx, LOCAL)?;
                let mut story = Story { uid: &workspace.uid, now: tx.now()?, seq: workspace.last_seq };
                (1..=tasks).try_for_each(|number| story.tell(tx, number, length))?;
                Ok::<_, Refusal>(Outcome::Commit(()))
            })
            .unwrap();
        case.checkpoint();
        (0..7).map(|_| rate(&mut case, what)).fold(0.0, f64::max)
    });
    assert!(rates.iter().all(|rate| *rate >= GOAL), "{rates:.0?} entries/s, the goal is {GOAL:.0}");
}

fn rate(case: &mut Case, what: &str) -> f64 {
    let (start, cpu) = (Instant::now(), processor_ms());
    let view = case.verify();
    let (elapsed, cpu) = (start.elapsed(), processor_ms() - cpu);
    assert!(view.ok, "{view:#?}");
    let rate = view.entries as f64 / elapsed.as_secs_f64();
    println!("{what}: {} entries in {elapsed:.2?}, {cpu} ms of processor time: {rate:.0}/s", view.entries);
    rate
}

/// On a busy machine the processor's time says more than the wall's.
fn processor_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks: Vec<u64> =
        stat.rsplit(')').next().unwrap().split(' ').skip(12).take(2).map(|n| n.parse().unwrap()).collect();
    // The kernel's clock tick has been a hundredth of a second for every program since Linux 2.6.
    (ticks[0] + ticks[1]) * 10
}
