//! `route` and `explain` are two answers to one question.

use super::{agent, handle, in_role, task, workstation};
use onus_core::identity_map::{
    Candidate, IdentityMap, InForce, Policy, PriorityRange, RoleRule, Rule, Signals, TypePattern, Verdict,
    When, WorkerSignal, WorkstationSignal, explain, route, unlisted, workstation_for,
};
use onus_core::task::{Priority, Spec};
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::WorkstationState;
use proptest::prelude::*;

const TIERS: [&str; 2] = ["opus", "haiku"];

fn tier() -> impl Strategy<Value = String> {
    prop::sample::select(&TIERS[..]).prop_map(str::to_owned)
}

fn when() -> impl Strategy<Value = When> {
    let range = prop::option::weighted(0.3, (0..5_i64, 0..5_i64)).prop_map(|range| {
        let priority = |rank| Priority::from_rank(rank).unwrap();
        range.map(|(a, b)| PriorityRange { first: priority(a.min(b)), last: priority(a.max(b)) })
    });
    let tiers = prop::collection::vec(tier(), 0..2);
    let numbers = (prop::option::weighted(0.3, 0..=100_u8), prop::option::weighted(0.3, 0..4_u32));
    (tiers, range, prop::bool::weighted(0.3), prop::bool::weighted(0.3), numbers).prop_map(
        |(tier, priority, available, workstation_ready, (max_utilisation, max_dependency_depth))| When {
            tier,
            priority,
            available,
            workstation_ready,
            max_utilisation,
            max_dependency_depth,
        },
    )
}

fn candidate() -> impl Strategy<Value = Candidate> {
    (0..4_u8, 0..3_u8, when()).prop_map(|(who, place, when)| Candidate {
        agent_name: handle(&format!("w{who}")),
        workstation: workstation(&format!("ws-{place}")),
        when,
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let pattern = prop_oneof![Just("a"), Just("*")].prop_map(|text| text.parse::<TypePattern>().unwrap());
    let rule = (pattern, prop::collection::vec(candidate(), 1..5));
    let workers = prop::collection::vec((0..4_u8).prop_map(|who| handle(&format!("w{who}"))), 0..3);
    (rule, workers).prop_map(|((task_type, candidates), workers)| {
        let rule = Rule {
            task_type,
            agent_name: None,
            workstation: None,
            candidates,
            independent: false,
            constraints: Vec::new(),
        };
        let role = RoleRule { workers, ..RoleRule::default() };
        let map = IdentityMap {
            routing: vec![rule],
            roles: [("R".parse().unwrap(), role)].into(),
            ..IdentityMap::default()
        };
        Policy::InForce(Box::new(InForce { map, commit: None, hash: "feed".to_owned(), edited: false }))
    })
}

fn worker(who: u8) -> impl Strategy<Value = Option<WorkerSignal>> {
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let signal = (prop::option::of(tier()), flags).prop_map(move |(tier, (human, paused, busy))| {
        let kind = if human { Kind::Human } else { Kind::Agent };
        let state = if paused { WorkerState::Paused } else { WorkerState::Active };
        let worker = Worker { kind, state, tier, ..agent(&format!("w{who}")) };
        WorkerSignal { worker, holds: busy.then(|| "T-9".parse().unwrap()).into_iter().collect() }
    });
    prop::option::weighted(0.8, signal)
}

fn place() -> impl Strategy<Value = Option<WorkstationSignal>> {
    let states = prop::sample::select(WorkstationState::ALL);
    let signal = (states, prop::bool::ANY, 0..=100_u8).prop_map(|(state, busy, utilisation)| {
        let holds = busy.then(|| ("T-9".parse().unwrap(), handle("x")));
        WorkstationSignal { state, holds, utilisation }
    });
    prop::option::weighted(0.8, signal)
}

fn signals() -> impl Strategy<Value = Signals> {
    let workers = (worker(0), worker(1), worker(2), worker(3));
    (workers, prop::collection::vec(place(), 3), 0..5_u32).prop_map(|(workers, places, dependency_depth)| {
        let workers = [workers.0, workers.1, workers.2, workers.3].into_iter().flatten();
        let named = places.into_iter().enumerate();
        Signals {
            workers: workers.map(|signal| (signal.worker.handle.clone(), signal)).collect(),
            workstations: named
                .filter_map(|(at, place)| Some((workstation(&format!("ws-{at}")), place?)))
                .collect(),
            dependency_depth,
        }
    })
}

fn spec() -> impl Strategy<Value = Spec> {
    (prop_oneof![Just("a"), Just("-")], prop::bool::ANY, 0..5_i64).prop_map(|(task_type, role, rank)| {
        let plain = Spec { priority: Priority::from_rank(rank).unwrap(), ..task(task_type) };
        if role { Spec { role: in_role("R").role, ..plain } } else { plain }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// A candidate that `explain` does not call lost gets its route, and one that it does is refused. Where the rule
    /// names the same pair twice, one that is not lost is enough.
    #[test]
    fn route_allows_exactly_what_explain_does_not_call_lost(
        policy in policy(), spec in spec(), now in signals(),
    ) {
        let explanation = explain(&policy, &spec, &now);
        for candidate in &explanation.candidates {
            let same = |other: &&_| {
                let other: &onus_core::identity_map::CandidateView = other;
                (&other.agent_name, &other.workstation) == (&candidate.agent_name, &candidate.workstation)
            };
            let listed = explanation.candidates.iter().filter(same).any(|c| c.verdict != Verdict::Lost);
            let Some(signal) = now.workers.get(&candidate.agent_name) else {
                prop_assert!(!listed, "nobody who is not registered");
                continue;
            };
            let routed = route(&policy, &spec, &signal.worker, Some(&candidate.workstation), &now);
            prop_assert_eq!(routed.is_ok(), listed, "{:?}", routed);
            prop_assert_eq!(candidate.verdict == Verdict::Lost && candidate.reasons.is_empty(), false);
        }
        let won = explanation.candidates.iter().filter(|c| c.verdict == Verdict::Won).count();
        prop_assert_eq!(won, usize::from(explanation.winner.is_some()));
    }

    /// An agent that names no workstation is refused in the one that the map gives it only where it is in all.
    #[test]
    fn the_workstation_that_the_map_names_is_the_best_there_is(
        policy in policy(), spec in spec(), now in signals(),
    ) {
        for signal in now.workers.values() {
            let Some(named) = workstation_for(&policy, &spec, &signal.worker, &now) else { continue };
            let allowed = |place: &_| route(&policy, &spec, &signal.worker, Some(place), &now).is_ok();
            let any = ["ws-0", "ws-1", "ws-2"].map(workstation).iter().any(allowed);
            prop_assert_eq!(allowed(named), any);
        }
    }

    /// What is told against a task at a glance is refused in every workstation, at every moment.
    #[test]
    fn whoever_is_unlisted_is_refused_everywhere(policy in policy(), spec in spec(), now in signals()) {
        for signal in now.workers.values() {
            let refused = |place| route(&policy, &spec, &signal.worker, place, &now).is_err();
            if !unlisted(&policy, &spec, &signal.worker).is_empty() {
                let places = ["ws-0", "ws-1", "ws-2"].map(workstation);
                prop_assert!(refused(None) && places.iter().all(|place| refused(Some(place))));
            }
        }
    }
}
