//! Who may take a task, where, and under which conditions.

use super::{SEED, agent, details, handle, in_role, person, policy, signals, task, workstation};
use onus_core::code::Code;
use onus_core::identity_map::{
    InvalidMap, Policy, Signals, candidates, needs_independence, route, workstation_for,
};
use onus_core::refusal::Finding;
use onus_core::task::{Priority, Spec};
use onus_core::worker::{Worker, WorkerState};
use onus_core::workstation::WorkstationState;

const CONDITIONS: &str = "
routing:
  - task_type: fix
    candidates:
      - agent_name: '@a'
        workstation: ws-a-01
        when: {tier: [opus, sonnet], priority: P0..P1, available: true, workstation_ready: true, max_utilisation: 80, max_dependency_depth: 3}
      - {agent_name: '@a', workstation: ws-a-02, when: {priority: P2..P4}}
      - {agent_name: '@b', workstation: ws-b-01}
  - {task_type: '*', agent_name: '@c', workstation: ws-c-01, independent: true}
";

#[track_caller]
fn allowed(policy: &Policy, spec: &Spec, caller: &Worker, at: &str, signals: &Signals) -> String {
    let route = route(policy, spec, caller, Some(&workstation(at)), signals).unwrap().unwrap();
    assert_eq!((route.map_commit.as_deref(), route.map_hash.as_str()), (Some("c0ffee"), "feed"));
    route.rule
}

#[track_caller]
fn refused(
    policy: &Policy,
    spec: &Spec,
    caller: &Worker,
    at: Option<&str>,
    signals: &Signals,
) -> Vec<Finding> {
    let findings = route(policy, spec, caller, at.map(workstation).as_ref(), signals).unwrap_err();
    assert!(findings.iter().all(|finding| finding.code == Code::RoutingDenied && finding.hint.is_some()));
    findings
}

#[test]
fn the_seeds_agents_get_their_types_in_their_workstations() {
    let (policy, none) = (policy(SEED), Signals::default());
    let pairs = [
        ("backend_feature", "agent-builder-01", "ws-backend-01"),
        ("infrastructure_change", "agent-infra-01", "ws-infra-prod"),
        ("frontend_component", "agent-builder-02", "ws-frontend-staging"),
        ("verification", "agent-verifier-01", "ws-verification-01"),
    ];
    for (at, (wanted, name, place)) in pairs.iter().enumerate() {
        let rule = allowed(&policy, &task(wanted), &agent(name), place, &none);
        assert_eq!(rule, format!("routing[{at}] {wanted} -> @{name} in {place}"));
        for (other, their_name, their_place) in pairs.iter().filter(|pair| pair.0 != *wanted) {
            refused(&policy, &task(other), &agent(name), Some(place), &none);
            refused(&policy, &task(wanted), &agent(their_name), Some(place), &none);
            refused(&policy, &task(wanted), &agent(name), Some(their_place), &none);
        }
    }
}

#[test]
fn each_refusal_names_the_rule_and_the_fix() {
    let (policy, none) = (policy(SEED), Signals::default());
    let check = |spec: &Spec, name: &str, at: Option<&str>, expected: &[(&str, &str)]| {
        let findings = refused(&policy, spec, &agent(name), at, &none);
        let told: Vec<(&str, &str)> =
            findings.iter().map(|f| (f.detail.as_str(), f.hint.as_deref().unwrap())).collect();
        assert_eq!(told, expected);
    };
    check(
        &task("docs"),
        "agent-builder-01",
        Some("ws-backend-01"),
        &[(
            "no rule routes the type docs",
            "add a rule with `task_type: docs` to routing in executor-identity-map.yaml and commit it, or ask a person",
        )],
    );
    check(
        &task("-"),
        "agent-builder-01",
        Some("ws-backend-01"),
        &[(
            "the task has no type, and no rule routes `*`",
            "add a rule with `task_type: \"*\"` to routing in executor-identity-map.yaml and commit it, or ask a person",
        )],
    );
    check(
        &task("backend_feature"),
        "x",
        Some("ws-other-01"),
        &[
            (
                "routing[0] backend_feature allows @agent-builder-01 in ws-backend-01; @x is not listed",
                "take work of your own type: onus ready, or add @x to routing[0] backend_feature in executor-identity-map.yaml and commit it",
            ),
            (
                "routing[0] backend_feature gives ws-backend-01; ws-other-01 is not listed",
                "add ws-other-01 to routing[0] backend_feature in executor-identity-map.yaml and commit it",
            ),
        ],
    );
    let wrong_place = "onus claim TASK --workstation ws-backend-01";
    check(
        &task("backend_feature"),
        "agent-builder-01",
        Some("ws-other-01"),
        &[(
            "routing[0] backend_feature gives ws-backend-01 to @agent-builder-01; ws-other-01 is not listed",
            wrong_place,
        )],
    );
    check(
        &task("backend_feature"),
        "agent-builder-01",
        None,
        &[(
            "routing[0] backend_feature gives ws-backend-01 to @agent-builder-01; no workstation was named",
            wrong_place,
        )],
    );
}

#[test]
fn people_may_take_anything_while_the_map_is_valid() {
    let (policy, none) = (policy(SEED), Signals::default());
    for spec in [task("backend_feature"), task("docs"), task("-")] {
        assert_eq!(allowed(&policy, &spec, &person("p"), "ws-any-01", &none), "person");
        assert!(route(&policy, &spec, &person("p"), None, &none).is_ok());
    }
    let broken = vec![Finding::new(Code::MapInvalid, "broken")];
    for caller in [agent("a"), person("p")] {
        let invalid = InvalidMap { findings: broken.clone(), ..InvalidMap::default() };
        let invalid = Policy::Invalid(Box::new(invalid));
        assert_eq!(route(&invalid, &task("docs"), &caller, None, &none), Err(broken.clone()));
        assert_eq!(route(&Policy::Absent, &task("docs"), &caller, None, &none), Ok(None));
    }
}

#[test]
fn a_rule_for_every_type_takes_what_no_other_rule_takes() {
    let (policy, none) = (policy(CONDITIONS), Signals::default());
    for spec in [task("docs"), task("-")] {
        let rule = allowed(&policy, &spec, &agent("c"), "ws-c-01", &none);
        assert_eq!(rule, "routing[1] * -> @c in ws-c-01");
    }
    refused(&policy, &task("fix"), &agent("c"), Some("ws-c-01"), &none);
}

/// Changes one thing about a candidate that meets all conditions; `expected` is what is then not met.
#[track_caller]
fn check_condition(change: impl FnOnce(&mut Spec, &mut Worker, &mut Signals), expected: &str) {
    let policy = policy(CONDITIONS);
    let mut spec = Spec { priority: Priority::P1, ..task("fix") };
    let mut caller = Worker { tier: Some("opus".to_owned()), ..agent("a") };
    let mut now = signals(std::slice::from_ref(&caller), &["ws-a-01"]);
    now.dependency_depth = 3;
    now.workstations.get_mut(&workstation("ws-a-01")).unwrap().utilisation = 80;
    allowed(&policy, &spec, &caller, "ws-a-01", &now);
    change(&mut spec, &mut caller, &mut now);
    let findings = refused(&policy, &spec, &caller, Some("ws-a-01"), &now);
    let expected = format!("routing[0] fix -> @a in ws-a-01 asks: {expected}");
    assert_eq!(details(&findings), [expected.as_str()]);
}

#[test]
fn every_condition_is_asked_and_told() {
    check_condition(|_, caller, _| caller.tier = None, "tier is opus or sonnet, @a has none");
    check_condition(
        |_, caller, _| caller.tier = Some("haiku".to_owned()),
        "tier is opus or sonnet, @a has haiku",
    );
    check_condition(|spec, _, _| spec.priority = Priority::P2, "priority is P0..P1, the task has P2");
    check_condition(|_, _, now| now.workers.clear(), "available: @a is not registered");
    check_condition(
        |_, _, now| now.workers.get_mut(&handle("a")).unwrap().worker.state = WorkerState::Paused,
        "available: @a is paused",
    );
    check_condition(
        |_, _, now| now.workers.get_mut(&handle("a")).unwrap().holds.push("T-9".parse().unwrap()),
        "available: @a holds T-9",
    );
    check_condition(|_, _, now| now.workstations.clear(), "workstation_ready: ws-a-01 is not registered");
    check_condition(
        |_, _, now| {
            now.workstations.get_mut(&workstation("ws-a-01")).unwrap().state = WorkstationState::Quarantined;
        },
        "workstation_ready: ws-a-01 is quarantined",
    );
    check_condition(
        |_, _, now| now.workstations.get_mut(&workstation("ws-a-01")).unwrap().utilisation = 81,
        "max_utilisation is 80, ws-a-01 was in use for 81% of the last day",
    );
    check_condition(|_, _, now| now.dependency_depth = 4, "max_dependency_depth is 3, the task's is 4");
}

#[test]
fn all_unmet_conditions_are_told_at_once() {
    let findings =
        refused(&policy(CONDITIONS), &task("fix"), &agent("a"), Some("ws-a-01"), &Signals::default());
    assert_eq!(findings.len(), 4, "{findings:?}");
}

#[test]
fn a_role_may_list_its_workers() {
    let yaml = format!("{SEED}roles: {{R: {{workers: ['@agent-infra-01']}}, S: {{}}}}\n");
    let (policy, none) = (policy(&yaml), Signals::default());
    let of = |role: &str, task_type: &str| Spec { task_type: task(task_type).task_type, ..in_role(role) };
    let builder = agent("agent-builder-01");
    allowed(&policy, &of("R", "infrastructure_change"), &agent("agent-infra-01"), "ws-infra-prod", &none);
    allowed(&policy, &of("S", "backend_feature"), &builder, "ws-backend-01", &none);
    allowed(&policy, &of("unlisted", "backend_feature"), &builder, "ws-backend-01", &none);
    allowed(&policy, &of("R", "backend_feature"), &person("p"), "ws-backend-01", &none);
    let findings = refused(&policy, &of("R", "backend_feature"), &builder, Some("ws-backend-01"), &none);
    assert_eq!(
        details(&findings),
        ["roles.R.workers allows @agent-infra-01; @agent-builder-01 is not listed"]
    );
}

#[test]
fn the_map_names_the_callers_workstation() {
    let policy = policy(CONDITIONS);
    let caller = Worker { tier: Some("opus".to_owned()), ..agent("a") };
    let named = |spec: &Spec, now: &Signals| {
        workstation_for(&policy, spec, &caller, now).map(ToString::to_string).unwrap_or_default()
    };
    let urgent = Spec { priority: Priority::P0, ..task("fix") };
    let mut now = signals(std::slice::from_ref(&caller), &["ws-a-01", "ws-a-02"]);
    assert_eq!(named(&urgent, &now), "ws-a-01");
    assert_eq!(named(&task("fix"), &now), "ws-a-02", "the first one that is eligible");
    now.dependency_depth = 9;
    assert_eq!(named(&urgent, &now), "ws-a-01", "none is eligible: the first that names the caller");
    assert_eq!(named(&task("docs"), &now), "", "the rule does not name the caller");
    assert_eq!(workstation_for(&Policy::Absent, &task("fix"), &caller, &now), None);
}

#[test]
fn of_two_eligible_workstations_the_free_one_is_named() {
    let policy = policy(
        "routing: [{task_type: a, candidates: [{agent_name: '@a', workstation: w-1}, {agent_name: '@a', workstation: w-2}]}]",
    );
    let mut now = signals(&[agent("a")], &["w-1", "w-2"]);
    now.workstations.get_mut(&workstation("w-1")).unwrap().holds =
        Some(("T-9".parse().unwrap(), handle("b")));
    let named = |now: &Signals| workstation_for(&policy, &task("a"), &agent("a"), now).cloned();
    assert_eq!(named(&now), Some(workstation("w-2")));
    now.workstations.get_mut(&workstation("w-2")).unwrap().state = WorkstationState::Quarantined;
    assert_eq!(named(&now), Some(workstation("w-1")), "none is free: the first");
}

#[test]
fn what_the_store_must_load_is_what_the_rule_names() {
    let policy = policy(CONDITIONS);
    let names = |task_type: &str| -> Vec<String> {
        candidates(&policy, &task(task_type)).iter().map(|(who, at)| format!("{who} {at}")).collect()
    };
    assert_eq!(names("fix"), ["@a ws-a-01", "@a ws-a-02", "@b ws-b-01"]);
    assert_eq!(names("-"), ["@c ws-c-01"]);
    assert!(candidates(&Policy::Absent, &task("fix")).is_empty());
}

#[test]
fn verification_and_what_the_rule_says_needs_independence() {
    let policy = policy(CONDITIONS);
    assert!(needs_independence(&policy, &task("docs")), "by the rule for every type");
    assert!(!needs_independence(&policy, &task("fix")));
    assert!(needs_independence(&Policy::Absent, &task("verification")));
    assert!(!needs_independence(&Policy::Absent, &task("-")));
}
