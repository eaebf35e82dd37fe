//! Where work goes: the map before the gate, lanes, independence, assignment, quarantine, exceptions, the order of
//! merges.

use crate::tests::support::script::{check, refusal};
use onus_core::code::Code;

/// `build` goes to @a in ws-a, else to @b in ws-b; `verification` to @v in ws-v or @a in ws-a.
const MAP: &str = r#"map {"routing":[{"task_type":"build","candidates":[{"agent_name":"@a","workstation":"ws-a"},{"agent_name":"@b","workstation":"ws-b","when":{"priority":"P0..P1"}}]},{"task_type":"verification","candidates":[{"agent_name":"@v","workstation":"ws-v"},{"agent_name":"@a","workstation":"ws-a"},{"agent_name":"@v","workstation":"ws-a"}]}],"roles":{"back":{"lanes":2},"front":{"max_in_progress":2},"ops":{"owns":["ops/**"],"workers":["@b"]}}}"#;

fn mapped(steps: &str, expected: &str) {
    check(&format!("{MAP}; {steps}"), &format!("ok; {expected}"));
}

#[test]
fn the_map_decides_before_the_gate() {
    mapped("add type=build; claim a; route", "ok; ok e1; routing[0] build -> @a in ws-a");
    mapped("add type=build; claim v", "ok; routing_denied+routing_denied");
    mapped("add type=build; claim a ws=b", "ok; routing_denied");
    mapped("add type=build; claim b", "ok; routing_denied");
    mapped("add type=other; claim a", "ok; routing_denied");
    mapped("add; claim a", "ok; routing_denied");
    mapped(
        "workstation a quarantined; add type=build; claim v ws=a",
        "ok; ok; routing_denied+workstation_quarantined",
    );
    mapped("add type=build; claim p; route", "ok; ok e1; person");
    // Force counts against the map only where the map is against it.
    mapped("add type=build; claim! p ws=q; route", "ok; ok e1 forced; person");
    mapped("add type=build; claim a; takeover! p; route", "ok; ok e1; ok e2 forced; person");
    mapped("add type=build; assign! p to=a; route", "ok; ok e1 forced; routing[0] build -> @a in ws-a");
    mapped("add type=build; assign! p to=v; route", "ok; ok e1 forced; forced");
    check("add type=build; claim v; route", "ok; ok e1; none");
}

#[test]
fn a_map_that_cannot_be_followed_gives_nobody_work() {
    check("map invalid; add type=build; claim a; claim p", "ok; ok; map_invalid; map_invalid");
    check("map invalid; add; claim! p; route", "ok; ok; ok e1 forced; forced over an invalid map");
    assert_eq!(refusal("map invalid; add; claim a").code.exit_code(), 2);
}

#[test]
fn lanes_are_never_overfilled() {
    check(
        &format!(
            "{MAP}; add role=back; claim p; route; add role=back; claim q; route; add role=back; claim! p ws=a; \
             add role=back; claim p ws=b"
        ),
        "ok; ok; ok e1; person lane 1; ok; ok e1; person lane 2; ok; ok e1 forced; ok; lane_full",
    );
    check(
        &format!(
            "{MAP}; add role=back lane=2; claim p; add role=back lane=2; claim q; add role=back; claim q; route"
        ),
        "ok; ok; ok e1; ok; lane_full; ok; ok e1; person lane 1",
    );
    check(
        &format!("{MAP}; add role=front; claim p; add role=front; claim q; add role=front; claim q ws=a"),
        "ok; ok; ok e1; ok; ok e1; ok; lane_full",
    );
    // A slot is free again when its assignment has ended.
    check(
        &format!(
            "{MAP}; add role=back lane=1; claim p; add role=back lane=1; claim q; complete p #1; claim q #2"
        ),
        "ok; ok; ok e1; ok; lane_full; ok; ok e1",
    );
    check("add role=back; claim a; add role=back; claim b", "ok; ok e1; ok; ok e1");
}

#[test]
fn nobody_verifies_what_they_built() {
    let built = format!("{MAP}; add type=build; claim a; complete a; add type=verification on=1");
    check(
        &format!("{built}; claim v; route"),
        "ok; ok; ok e1; ok; ok; ok e1; routing[1] verification -> @v in ws-v",
    );
    check(&format!("{built}; claim a"), "ok; ok; ok e1; ok; ok; self_review");
    // Another identity, but where it was built.
    check(&format!("{built}; claim v ws=a"), "ok; ok; ok e1; ok; ok; self_review");
    check(&format!("{built}; claim p ws=a"), "ok; ok; ok e1; ok; ok; self_review");
    check(&format!("{built}; claim! p ws=a"), "ok; ok; ok e1; ok; ok; ok e1 forced");
}

#[test]
fn a_scope_must_meet_the_roles_boundary() {
    mapped("add role=ops scope=src/**; claim p", "ok; scope_violation");
    mapped("add role=ops scope=ops/db; claim p", "ok; ok e1");
}

#[test]
fn people_assign_and_the_assignee_holds() {
    check(
        "add; assign p to=a; state; renew a; complete a; state",
        "ok; ok e1; in_progress a; ok; ok; complete a",
    );
    check("add; assign a to=b; assign b to=b; state", "ok; human_required; ok e1; in_progress b");
    check("add; assign p to=x ws=a", "ok; unknown_worker");
    check("pause a; add; assign p to=a", "ok; ok; not_permitted");
    // The lease is as long as the assignee's, not as the assigner's.
    check("add; assign p to=a; lease", "ok; ok e1; 15m until 900s renewed 0");
    mapped("add type=build; assign p to=a; route", "ok; ok e1; routing[0] build -> @a in ws-a");
    mapped("add type=build; assign p to=v", "ok; routing_denied+routing_denied");
    check("add; assign p to=a; sessions", "ok; ok e1; a 0s..");
}

#[test]
fn quarantine_suspends_the_lease_and_frees_the_task() {
    let held = "add; claim a; workstation a quarantined";
    for verb in ["renew", "complete", "block", "merge"] {
        check(&format!("{held}; {verb} a; state"), "ok; ok e1; ok; workstation_quarantined; in_progress a");
    }
    check(&format!("{held}; note a; release a note=half; state"), "ok; ok e1; ok; ok; ok; open");
    check(&format!("{held}; takeover b; renew a; state"), "ok; ok e1; ok; ok e2; fenced; in_progress b");
    check(&format!("{held}; takeover b ws=a"), "ok; ok e1; ok; workstation_quarantined");
    // Others are not touched, and only people take over from people.
    check(&format!("{held}; add; claim b; renew b"), "ok; ok e1; ok; ok; ok e1; ok");
    check(
        "add; claim p; workstation p quarantined; takeover a; takeover q",
        "ok; ok e1; ok; human_required; ok e2",
    );
    // What a suspended holder says is heard, but keeps nothing alive.
    for verb in ["note", "handoff"] {
        check(
            &format!("{held}; tick 5m; {verb} a; lease"),
            "ok; ok e1; ok; ok; ok; 15m until 900s renewed 0",
        );
        check(
            &format!("add; claim a; tick 5m; {verb} a; lease"),
            "ok; ok e1; ok; ok; 15m until 1200s renewed 1",
        );
    }
}

#[test]
fn a_failing_probe_closes_the_gate_and_a_passing_one_opens_it() {
    check(
        "add; probe a failed; claim a; probe a timed_out; claim a; probe a passed; claim a",
        "ok; ok; workstation_not_ready; ok; workstation_not_ready; ok; ok e1",
    );
    let told = refusal("add; probe a failed; claim a");
    assert_eq!(
        told.detail,
        "ws-a is not ready: `tcp:db:5432` failed at 2026-09-21T14:13:20.000Z: it was asked"
    );
    assert_eq!(told.hint.as_deref(), Some("once that is repaired: onus workstation probe ws-a"));
}

#[test]
fn a_closed_gate_says_why() {
    for state in ["quarantined", "retired"] {
        let told = refusal(&format!("add; workstation a {state} why=smoke; claim a"));
        assert_eq!(told.detail, format!("ws-a is {state}: smoke"));
        assert_eq!(
            refusal(&format!("add; workstation a {state}; claim a")).detail,
            format!("ws-a is {state}")
        );
    }
}

#[test]
fn an_approved_exception_steps_over_a_dependency() {
    let waiting = "add; add on=1; claim a";
    check(
        &format!("{waiting}; except a on=1; claim a; approve a on=1; approve p on=1; claim a"),
        "ok; ok; dependency_incomplete; ok; dependency_incomplete; human_required; ok; ok e1",
    );
    check(&format!("{waiting}; approve p on=1"), "ok; ok; dependency_incomplete; unknown_name");
    check(&format!("{waiting}; except a on=1 mute"), "ok; ok; dependency_incomplete; reason_required");
    check(&format!("{waiting}; except a on=1 final"), "ok; ok; dependency_incomplete; reason_required");
    assert_eq!(refusal(&format!("{waiting}; except a on=1 final")).hint.as_deref(), Some("--rollback TEXT"));
    check("add; add; except a on=1", "ok; ok; unknown_name");
    // A list of tasks tells all of them: their words are bounded together, whoever asks.
    let long = "x".repeat(3_990);
    let many = (1..=17).map(|n| format!("; except a #18 on={n} why={long}")).collect::<String>();
    let on = (1..=17).map(|n: usize| n.to_string()).collect::<Vec<_>>().join(",");
    let said = refusal(&format!("{}; add on={on}{many}", ["add"; 17].join("; ")));
    assert!(said.code == Code::InvalidInput && said.detail.contains("the limit is 65536"), "{said:?}");
    check(
        "add; add on=1; except a on=1; approve p on=1; approve p on=1; except a on=1",
        "ok; ok; ok; ok; existing T-2; existing T-2",
    );
    check("add; complete! p; except a on=1", "ok; ok forced; wrong_state");
    // It lets the work begin; it does not let it overtake.
    check(
        "add; add on=1; except a on=1; approve p on=1; claim a; merge a; complete! p #1; merge a",
        "ok; ok; ok; ok; ok e1; dependency_incomplete; ok forced; ok",
    );
    // With the dependency its exception goes, too.
    check(
        "add; add on=1; except a on=1; approve p on=1; undep p on=1; dep p on=1; claim a",
        "ok; ok; ok; ok; ok; ok; dependency_incomplete",
    );
}

#[test]
fn slices_merge_in_their_order() {
    let slices = "add; add parent=1 order=1; claim a; add parent=1 order=2; claim b; add parent=1; claim p";
    let granted = "ok; ok; ok e1; ok; ok e1; ok; ok e1";
    check(
        &format!("{slices}; merge b #3; merge p #4; merge a #2; merge b #3; complete a #2; merge b #3"),
        &format!("{granted}; dependency_incomplete; ok; ok; dependency_incomplete; ok; ok"),
    );
    check(&format!("{slices}; drop p #2; merge b #3"), &format!("{granted}; ok e2; ok"));
    // Slices of one number are in nobody's way.
    check(
        "add; add parent=1 order=1; claim a; add parent=1 order=1; claim b; merge b #3; merge a #2",
        "ok; ok; ok e1; ok; ok e1; ok; ok",
    );
    check("add; claim a; merge b; merge a token=forged; merge a", "ok; ok e1; lease_required; fenced; ok");
    check("add; claim a; tick 20m; merge a; lease", "ok; ok e1; ok; ok; 15m until 2100s renewed 1");
}

#[test]
fn only_what_has_ended_is_salvaged() {
    check("add; claim a; salvage p", "ok; ok e1; invalid_input");
    check(
        "add; claim a; takeover! p; salvage p; state; verbs",
        "ok; ok e1; ok e2 forced; ok; in_progress p forced; added claimed taken_over salvaged",
    );
    check(
        "add; claim a; takeover! p; salvage p of=2; salvage p ref=refs/heads/main",
        "ok; ok e1; ok e2 forced; invalid_input; invalid_input",
    );
    check(
        "add; claim a; release a; salvage p of=0; salvage p of=2; salvage p of=1",
        "ok; ok e1; ok; invalid_input; invalid_input; ok",
    );
}

/// A worktree that was made for a lane takes the work of that lane.
#[test]
fn a_lanes_worktree_is_that_lanes() {
    let map = r#"map {"roles":{"A":{"lanes":2},"B":{}},"routing":[{"task_type":"*","candidates":[{"agent_name":"@a","workstation":"ws-a"},{"agent_name":"@b","workstation":"ws-b"}]}]}"#;
    let lanes = format!("{map}; lane a A:1; lane b A:2");
    check(&format!("{lanes}; add role=A lane=2; claim a; claim b"), "ok; ok; ok; ok; routing_denied; ok e1");
    // Without a lane of its own the work takes that of the place.
    check(
        &format!("{lanes}; add role=A; claim b; add role=A lane=2; claim a"),
        "ok; ok; ok; ok; ok e1; ok; routing_denied",
    );
    check(&format!("{lanes}; add role=A; claim b; add role=A; claim a"), "ok; ok; ok; ok; ok e1; ok; ok e1");
    check(
        &format!("{lanes}; add role=B; claim a; add; claim a"),
        "ok; ok; ok; ok; routing_denied; ok; ok e1",
    );
    // A person's force steps over it.
    check(&format!("{lanes}; add role=A lane=2; claim! p ws=a"), "ok; ok; ok; ok; ok e1 forced");
}
