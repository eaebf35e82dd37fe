//! The decision, told with its reasons.

use super::{agent, person, policy, signals, task, workstation};
use onus_core::code::Code;
use onus_core::identity_map::{Explanation, InvalidMap, Policy, Signals, Verdict, explain};
use onus_core::refusal::Finding;
use onus_core::worker::{Worker, WorkerState};
use onus_core::workstation::WorkstationState;

const MAP: &str = "
routing:
  - task_type: fix
    candidates:
      - {agent_name: '@a', workstation: ws-a-01, when: {tier: [opus]}}
      - {agent_name: '@b', workstation: ws-b-01}
      - {agent_name: '@c', workstation: ws-c-01}
      - {agent_name: '@d', workstation: ws-d-01}
";

/// Each candidate as `@a lost: why; why`, then the winner.
fn told(explanation: &Explanation) -> Vec<String> {
    let verdict = |verdict| match verdict {
        Verdict::Won => "won",
        Verdict::Eligible => "eligible",
        Verdict::Lost => "lost",
    };
    let lines = explanation.candidates.iter();
    let lines = lines.map(|c| format!("{} {}: {}", c.agent_name, verdict(c.verdict), c.reasons.join("; ")));
    lines.chain(explanation.winner.iter().map(|winner| winner.rule.clone())).collect()
}

#[test]
fn every_candidate_is_told_why_it_won_or_lost() {
    let mut now =
        signals(&[agent("a"), agent("b"), agent("c")], &["ws-a-01", "ws-b-01", "ws-c-01", "ws-d-01"]);
    let explanation = explain(&policy(MAP), &task("fix"), &now);
    assert_eq!(explanation.rule.as_deref(), Some("routing[0] fix"));
    assert_eq!(explanation.map_commit.as_deref(), Some("c0ffee"));
    assert_eq!(explanation.map_hash.as_deref(), Some("feed"));
    assert_eq!(
        told(&explanation),
        [
            "@a lost: tier is opus, @a has none",
            "@b won: the first in order that could begin now",
            "@c eligible: @b in ws-b-01 comes first",
            "@d lost: @d is not registered: onus worker add @d --kind agent",
            "routing[0] fix -> @b in ws-b-01",
        ]
    );
    now.workstations.get_mut(&workstation("ws-b-01")).unwrap().state = WorkstationState::Registered;
    now.workstations.remove(&workstation("ws-c-01"));
    now.workers.values_mut().for_each(|signal| {
        if signal.worker.handle.as_str() == "@c" {
            signal.worker.state = WorkerState::Paused;
        }
    });
    let explanation = explain(&policy(MAP), &task("fix"), &now);
    assert_eq!(
        told(&explanation),
        [
            "@a lost: tier is opus, @a has none",
            "@b eligible: ws-b-01 is registered",
            "@c eligible: @c is paused; ws-c-01 is not registered",
            "@d lost: @d is not registered: onus worker add @d --kind agent",
        ]
    );
    assert_eq!(explanation.winner, None);
}

#[test]
fn a_person_whom_the_map_names_is_never_lost() {
    let named = person("a");
    let now = signals(&[named, agent("b")], &["ws-a-01", "ws-b-01"]);
    let explanation = explain(&policy(MAP), &task("fix"), &now);
    assert_eq!(told(&explanation)[0], "@a eligible: tier is opus, @a has none");
    let named = Worker { tier: Some("opus".to_owned()), ..person("a") };
    let now = signals(&[named, agent("b")], &["ws-a-01", "ws-b-01"]);
    assert_eq!(explain(&policy(MAP), &task("fix"), &now).winner.unwrap().agent_name.as_str(), "@a");
}

#[test]
fn without_a_rule_or_a_valid_map_the_findings_say_why() {
    let none = Signals::default();
    let explanation = explain(&policy(MAP), &task("docs"), &none);
    assert_eq!(explanation.findings[0].detail, "no rule routes the type docs");
    assert_eq!((explanation.rule, explanation.winner), (None, None));
    let broken = vec![Finding::new(Code::MapInvalid, "broken")];
    let invalid = InvalidMap { findings: broken.clone(), ..InvalidMap::default() };
    assert_eq!(explain(&Policy::Invalid(Box::new(invalid)), &task("fix"), &none).findings, broken);
    assert_eq!(explain(&Policy::Absent, &task("fix"), &none), Explanation::default());
}
