//! Each way of breaking a map, and that all of them are told at once.

use super::{SEED, map};
use onus_core::code::Code;
use onus_core::identity_map::IdentityMap;

/// `expected` are the findings without the file's name.
#[track_caller]
fn check(yaml: &str, expected: &[&str]) {
    let findings = map(yaml).findings();
    let details: Vec<&str> = findings
        .iter()
        .map(|finding| {
            assert_eq!(finding.code, Code::MapInvalid);
            assert!(finding.hint.as_ref().is_some_and(|hint| hint.contains("executor-identity-map.yaml")));
            finding.detail.strip_prefix("executor-identity-map.yaml: ").unwrap()
        })
        .collect();
    assert_eq!(details, expected);
}

#[track_caller]
fn check_unreadable(yaml: &str, expected: &str) {
    let error = serde_saphyr::from_str::<IdentityMap>(yaml).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_seeds_map_is_valid_and_reads_back() {
    let seed = map(SEED);
    assert_eq!(seed.findings(), []);
    let types: Vec<String> = seed.routing.iter().map(|rule| rule.task_type.to_string()).collect();
    assert_eq!(types, ["backend_feature", "infrastructure_change", "frontend_component", "verification"]);
    let json = serde_json::to_value(&seed).unwrap();
    assert_eq!(serde_json::from_value::<IdentityMap>(json).unwrap(), seed);
}

#[test]
fn a_rule_names_somebody_in_one_form() {
    check(
        "
routing:
  - {task_type: a}
  - {task_type: b, agent_name: '@x'}
  - {task_type: c, workstation: ws-x-01}
  - {task_type: d, candidates: []}
  - {task_type: e, agent_name: '@x', workstation: ws-x-01, candidates: [{agent_name: '@y', workstation: ws-y-01}]}
  - {task_type: f, agent_name: '@x', candidates: [{agent_name: '@y', workstation: ws-y-01}]}
",
        &[
            "routing[0]: it names nobody: give agent_name and workstation, or candidates",
            "routing[1]: it names no workstation beside agent_name",
            "routing[2]: it names no agent_name beside the workstation",
            "routing[3]: it names nobody: give agent_name and workstation, or candidates",
            "routing[4]: it has candidates and agent_name or workstation: use one of the two forms",
            "routing[5]: it has candidates and agent_name or workstation: use one of the two forms",
        ],
    );
}

#[test]
fn a_type_has_one_rule() {
    let twice = format!("{SEED}  - {{task_type: backend_feature, agent_name: '@x', workstation: ws-x-01}}\n");
    check(&twice, &["routing[4]: backend_feature has a rule already, routing[0]"]);
    check(
        "routing:\n- &r {task_type: '*', agent_name: '@x', workstation: ws-x-01}\n- *r\n",
        &["routing[1]: * has a rule already, routing[0]"],
    );
}

#[test]
fn numbers_lie_in_their_range() {
    check(
        "
routing:
  - task_type: a
    candidates: [{agent_name: '@y', workstation: ws-y-01, when: {max_utilisation: 101}}]
roles:
  R: {lanes: 0, max_in_progress: 1001}
",
        &[
            "routing[0].candidates[0].when: max_utilisation is 101 percent",
            "roles.R: lanes is 0; it lies between 1 and 1000",
            "roles.R: max_in_progress is 1001; it lies between 1 and 1000",
        ],
    );
}

#[test]
fn globs_and_templates_are_checked_wherever_they_stand() {
    check(
        "
roles:
  R: {owns: ['/abs', 'a/**b'], worktree: '../{repo}-{role}-{lane}', branch: 'agent/{rolle}'}
co_edited: [{paths: ['..'], primary: R}]
contracts: [{paths: [], owner: R}]
high_risk: ['a[']
",
        &[
            "roles.R.owns: `/abs` must be a path inside the repository",
            "roles.R.owns: `a/**b` has `**` beside other letters; it stands alone between slashes",
            "roles.R.branch: `{rolle}` is none of {repo}, {role}, {lane}",
            "co_edited[0]: `..` must be a path inside the repository",
            "contracts[0]: it has no paths",
            "high_risk: `a[` has a `[` without its `]`, or a `/` between them",
        ],
    );
}

#[test]
fn roles_that_are_named_are_known() {
    check(
        "
roles: {R: {}}
co_edited: [{paths: [docs], primary: S, with: [R, T]}]
contracts: [{paths: [api], owner: U}]
",
        &[
            "co_edited[0]: the role S is not in roles",
            "co_edited[0]: the role T is not in roles",
            "contracts[0]: the role U is not in roles",
        ],
    );
}

#[test]
fn two_roles_own_no_path_together_unless_they_co_edit_it() {
    let shared =
        "roles: {A: {owns: ['src/**', docs]}, B: {owns: ['web/**', 'docs/api/']}, C: {owns: ['*.md']}}\n";
    check(shared, &["roles.B.owns: A and B both own `docs/api`, and it is not co-edited"]);
    check(&format!("{shared}co_edited: [{{paths: [docs/api], primary: A, with: [B]}}]\n"), &[]);
    // Co-edited by others only.
    check(
        &format!("{shared}co_edited: [{{paths: [docs/api], primary: A, with: [C]}}]\n"),
        &["roles.B.owns: A and B both own `docs/api`, and it is not co-edited"],
    );
    // Patterns that begin alike and never meet, and others that begin differently and do.
    check("roles: {A: {owns: ['src/*.rs']}, B: {owns: ['src/*.ts', 'srcs/**']}}\n", &[]);
    check(
        "roles: {A: {owns: ['**/x']}, B: {owns: ['{a,b}/x']}}\n",
        &["roles.B.owns: A and B both own `a/x`, and it is not co-edited"],
    );
}

/// Without the limit this would compare millions of pairs.
#[test]
fn the_owners_of_very_many_globs_are_not_compared() {
    let owns = |role: usize| (0..60).map(|n| format!("'**/a{role}b{n}'")).collect::<Vec<_>>().join(", ");
    let roles: String = (0..200).map(|role| format!("  R{role}: {{owns: [{}]}}\n", owns(role))).collect();
    let found = map(&format!("roles:\n{roles}")).findings();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].detail.ends_with("the limit is 32768: name directories"), "{}", found[0].detail);
}

#[test]
fn lists_have_an_end() {
    let globs = (0..257).map(|n| format!("a{n}")).collect::<Vec<_>>().join(", ");
    check(&format!("high_risk: [{globs}]\n"), &["high_risk: it lists 257; the limit is 256"]);
}

#[test]
fn names_follow_the_convention_where_there_is_one() {
    let named = format!("{SEED}naming: {{scopes: [backend, infra, frontend, verification]}}\n");
    check(&named, &[]);
    let types = "types: {backend: [other], frontend: [frontend_component], ops: []}";
    check(
        &format!("{SEED}naming: {{scopes: [backend, frontend], {types}, stages: [staging]}}\n"),
        &[
            "naming.types: `ops` is none of naming.scopes",
            "routing[0]: ws-backend-01 is of the scope backend, which does not serve backend_feature (naming.types.backend)",
            "routing[1]: ws-infra-prod names no scope after `ws-` that is followed by more (known: backend, frontend)",
            "routing[3]: ws-verification-01 names no scope after `ws-` that is followed by more (known: backend, frontend)",
        ],
    );
}

#[test]
fn what_cannot_be_a_map_is_not_read() {
    check_unreadable(&SEED.replacen("agent_name", "agent", 1), "agent");
    check_unreadable(
        &SEED.replacen("\"@agent-builder-01\"", "agent-builder-01", 1),
        "is not a worker's handle",
    );
    check_unreadable(&SEED.replacen("ws-backend-01", "WS_1", 1), "is not a workstation name");
    check_unreadable(&SEED.replacen("backend_feature", "'Backend feature'", 1), "is not a task type");
    check_unreadable("rules: []", "rules");
    check_unreadable("high_risk: {path: [a]}", "path");
    let when = |text: &str| {
        format!(
            "routing: [{{task_type: a, candidates: [{{agent_name: '@a', workstation: w, when: {text}}}]}}]"
        )
    };
    check_unreadable(&when("{priority: P3..P1}"), "runs backwards; write P1..P3");
    check_unreadable(&when("{priority: P0..P5}"), "is not a priority");
    check_unreadable(&when("{utilisation: 5}"), "utilisation");
}

#[test]
fn high_risk_has_two_forms() {
    let list = map("high_risk: ['auth/**', terminal]").high_risk;
    assert_eq!((list.paths.len(), list.types.len()), (2, 0));
    let both = map("high_risk: {paths: ['auth/**'], types: [payment]}").high_risk;
    assert_eq!((both.paths.len(), both.types[0].as_str()), (1, "payment"));
    assert_eq!(map("high_risk:\n").high_risk, Default::default());
}
