//! Proven completion: checks, kinds of evidence, root causes, reviews, and merged work.

use crate::tests::support::script::{check, refusal, story};

#[test]
fn every_approved_check_must_have_passed_here() {
    let held = "add check; claim a";
    check(&format!("{held}; complete a"), "ok; ok e1; checks_missing");
    check(&format!("{held}; run a; complete a"), "ok; ok e1; ok; ok");
    check(&format!("{held}; run a exit=1; complete a"), "ok; ok e1; ok; checks_failed");
    check(&format!("{held}; run a slow; complete a"), "ok; ok e1; ok; checks_failed");
    check(&format!("{held}; run a exit=127; complete a"), "ok; ok e1; ok; checks_failed");
    check(&format!("{held}; run a exit=none; complete a"), "ok; ok e1; ok; checks_failed");
    // The last run counts.
    check(&format!("{held}; run a; run a exit=1; complete a"), "ok; ok e1; ok; ok; checks_failed");
    check(&format!("{held}; run a exit=1; run a; complete a"), "ok; ok e1; ok; ok; ok");
    // On exactly this commit, and on nothing else.
    check(&format!("{held}; run a at=1; complete a at=2"), "ok; ok e1; ok; checks_missing");
    check(&format!("{held}; run a at=1; complete a at=1"), "ok; ok e1; ok; ok");
    check(&format!("{held}; run a at=1 dirty; complete a at=1"), "ok; ok e1; ok; checks_missing");
    check(&format!("{held}; complete! p"), "ok; ok e1; ok forced");
    assert_eq!(refusal(&format!("{held}; run a exit=1; complete a")).code.exit_code(), 7);
    let told = refusal(&format!("{held}; run a at=1; complete a at=2"));
    assert_eq!(told.detail, "the check `make test` passed at 111111111111; the work is at 222222222222");
    assert_eq!(told.hint.as_deref(), Some("onus check T-1"));
}

#[test]
fn only_people_let_a_check_run() {
    let held = "add; claim a; addcheck a";
    check(&format!("{held}; run a; complete a"), "ok; ok e1; ok; check_unapproved; check_unapproved");
    check(
        &format!("{held}; approvecheck a; approvecheck p; run a; complete a"),
        "ok; ok e1; ok; human_required; ok; ok; ok",
    );
    check(
        &format!("{held}; removecheck a; removecheck p mute; removecheck p; complete a"),
        "ok; ok e1; ok; human_required; reason_required; ok; ok",
    );
    check("add; claim a; addcheck p; run a; complete a", "ok; ok e1; ok; ok; ok");
    // Another text is another check: it needs its own approval and its own run.
    check(
        "add check; claim a; run a; addcheck a cmd=make_test_all; complete a; approvecheck p cmd=make_test_all; complete a",
        "ok; ok e1; ok; ok; check_unapproved; ok; checks_missing",
    );
    check("add; claim a; addcheck b", "ok; ok e1; not_permitted");
    check("add check; addcheck p", "ok; existing T-1");
    check("add; approvecheck p", "ok; unknown_name");
    check("add; claim a; complete a; addcheck p", "ok; ok e1; ok; wrong_state");
}

#[test]
fn what_can_prove_nothing_is_no_check() {
    for command in ["true", "exit_0", "echo_ok", "make_test_||_true", "All_tests_pass_on_the_page."] {
        check(&format!("add; addcheck p cmd={command}"), "ok; invalid_input");
    }
}

#[test]
fn the_holder_runs_checks_and_so_may_a_person() {
    check(
        "add check; claim a; run b; run a token=forged; run p; run a",
        "ok; ok e1; lease_required; fenced; ok; ok",
    );
    check("add check; claim a; tick 5m; run a; lease", "ok; ok e1; ok; ok; 15m until 1200s renewed 1");
    check("add check; claim a; workstation a quarantined; run a", "ok; ok e1; ok; workstation_quarantined");
}

#[test]
fn high_risk_needs_an_anchor_and_a_running_path() {
    let held = "add risky; claim a";
    check(&format!("{held}; complete a"), "ok; ok e1; evidence_missing+evidence_missing");
    let anchored =
        format!("{held}; addcheck p cmd=rg_-q_x kind=code-anchor; run a cmd=rg_-q_x kind=code-anchor");
    check(&format!("{anchored}; complete a"), "ok; ok e1; ok; ok; evidence_missing");
    check(
        &format!(
            "{anchored}; addcheck p cmd=make_e2e kind=runtime; complete a; run a cmd=make_e2e kind=runtime; complete a"
        ),
        "ok; ok e1; ok; ok; ok; checks_missing+evidence_missing; ok; ok",
    );
    let map = r#"map {"high_risk":{"types":["auth"],"paths":["auth/**"]},"routing":[{"task_type":"*","agent_name":"@a","workstation":"ws-a"}]}"#;
    check(
        &format!("{map}; add type=auth; claim a; complete a"),
        "ok; ok; ok e1; evidence_missing+evidence_missing",
    );
    check(
        &format!("{map}; add scope=auth/x; claim a; complete a"),
        "ok; ok; ok e1; evidence_missing+evidence_missing",
    );
    check(&format!("{map}; add scope=docs; claim a; complete a"), "ok; ok; ok e1; ok");
}

#[test]
fn a_defect_needs_its_root_cause_and_a_proof() {
    let held = "add kind=defect; claim a";
    check(&format!("{held}; complete a"), "ok; ok e1; root_cause_missing+root_cause_missing");
    check(&format!("{held}; complete a cause=off-by-one"), "ok; ok e1; root_cause_missing");
    check(
        &format!(
            "{held}; addcheck p cmd=make_test kind=root-cause; run a kind=root-cause; complete a; complete a cause=off-by-one"
        ),
        "ok; ok e1; ok; ok; root_cause_missing; ok",
    );
}

#[test]
fn a_review_is_another_ones_word() {
    check("add; claim a; review a ws=b; review b ws=a; review b", "ok; ok e1; self_review; self_review; ok");
    check("add; claim a; release a; claim b; review a ws=v", "ok; ok e1; ok; ok e2; self_review");
    check("add; review b", "ok; wrong_state");
    // What a reviewer found stands, whether or not a review was asked for.
    check("add; claim a; review b says=rejected; complete a", "ok; ok e1; ok; review_missing");
    check("add; claim a; review b as=design-only; complete a", "ok; ok e1; ok; review_missing");
    check("add; claim a; review b says=rejected; review v; complete a", "ok; ok e1; ok; ok; ok");
    // Of a text the design is the work itself.
    for kind in ["design", "docs"] {
        let steps = format!("add kind={kind}; claim a; review b as=design-only; complete a");
        check(&steps, "ok; ok e1; ok; ok");
    }
}

#[test]
fn done_means_merged() {
    check("add; claim a; complete a unmerged=2; complete a", "ok; ok e1; not_merged; ok");
    check("add; claim a; complete! p unmerged=2", "ok; ok e1; ok forced");
    check("unmerged; add; claim a; complete a unmerged=2", "ok; ok; ok e1; ok");
    let told = refusal("add; claim a; complete a unmerged=2");
    assert_eq!(
        told.hint.as_deref(),
        Some("where the work is: onus complete T-1 --resolution TEXT merges it, too")
    );
    let told = refusal("add; claim a; complete a unmerged=1 elsewhere");
    assert_eq!(told.hint.as_deref(), Some("run it where the work is: onus complete T-1 --resolution TEXT"));
}

/// Nothing that `complete` would refuse reaches the main branch first.
#[test]
fn what_completion_asks_for_is_asked_before_the_merge() {
    check("add; claim a; review b says=rejected; merge a", "ok; ok e1; ok; review_missing");
    check("add risky; claim a; merge a", "ok; ok e1; evidence_missing+evidence_missing");
    check("add kind=defect; claim a; merge a", "ok; ok e1; root_cause_missing+root_cause_missing");
    check("add check; claim a; merge a; run a; merge a", "ok; ok e1; checks_missing; ok; ok");
    check(
        "add; add parent=1; claim a #1; merge a #1; complete a #1; drop p #2; merge a #1; complete a #1",
        "ok; ok; ok e1; dependency_incomplete; dependency_incomplete; ok e1; ok; ok",
    );
    // Before its checks have run everything else is asked, so that nobody waits for them in vain.
    check("add check; claim a; askmerge a", "ok; ok e1; ok");
    check("reviewed; add check; claim a; askmerge a", "ok; ok; ok e1; review_missing");
    check(
        "add kind=defect; claim a; askmerge a; askmerge a cause=off-by-one",
        "ok; ok e1; root_cause_missing+root_cause_missing; root_cause_missing",
    );
}

/// Slices that were merged by hand do not complete out of order, either.
#[test]
fn completion_asks_for_the_order_too() {
    let slices = "add; add parent=1 order=1; claim a; add parent=1 order=2; claim b";
    let granted = "ok; ok; ok e1; ok; ok e1";
    check(
        &format!("{slices}; complete b #3; complete a #2; complete b #3"),
        &format!("{granted}; dependency_incomplete; ok; ok"),
    );
    check(
        "add; add on=1; except a on=1; approve p on=1; claim a; complete a; complete! p #1; complete a",
        "ok; ok; ok; ok; ok e1; dependency_incomplete; ok forced; ok",
    );
}

#[test]
fn what_the_paths_demand_is_asked_of_every_task() {
    let map = r#"map {"high_risk":{"paths":["auth/**"]},"routing":[{"task_type":"*","agent_name":"@a","workstation":"ws-a"}]}"#;
    check(
        &format!("{map}; add; claim a; merge a risky=auth/x; complete a risky=auth/x; complete a"),
        "ok; ok; ok e1; evidence_missing+evidence_missing; evidence_missing+evidence_missing; ok",
    );
    let told = refusal(&format!("{map}; add; claim a; merge a risky=auth/x"));
    assert!(told.detail.contains("a change of `auth/x`"), "{told}");
}

#[test]
fn a_review_counts_for_what_it_saw() {
    let held = "reviewed; add; claim a";
    check(
        &format!("{held}; merge a at=1; review b at=1; merge a at=1"),
        "ok; ok; ok e1; review_missing; ok; ok",
    );
    check(&format!("{held}; review b at=1; merge a at=2"), "ok; ok; ok e1; ok; review_missing");
    // The same patches on a newer main branch.
    check(&format!("{held}; review b at=1; merge a at=2 same=1"), "ok; ok; ok e1; ok; ok");
    check(
        &format!("{held}; review b at=1; complete a at=2; complete a at=2 same=1"),
        "ok; ok; ok e1; ok; review_missing; ok",
    );
    check(
        &format!("{held}; askreview b; askreview a; lease"),
        "ok; ok; ok e1; lease_required; ok; 15m until 900s renewed 1",
    );
}

#[test]
fn two_clones_need_a_main_of_record() {
    check(
        "add; claim a; merge a rivals; complete a rivals",
        "ok; ok e1; main_of_record_unset; main_of_record_unset",
    );
    check("unmerged; add; claim a; complete a rivals", "ok; ok; ok e1; ok");
    check("add; claim a; complete! p rivals", "ok; ok e1; ok forced");
    assert_eq!(
        refusal("add; claim a; complete a rivals").hint.as_deref(),
        Some("a person runs once: onus init --remote origin")
    );
}

#[test]
fn an_end_leaves_a_handoff() {
    let entries = story("add; claim a; complete a done");
    let verbs: Vec<&str> = entries.iter().map(|entry| entry.verb.as_str()).collect();
    assert_eq!(verbs, ["added", "claimed", "noted", "completed"]);
    let entries = story("add; claim a; complete! p done");
    assert_eq!(entries.last().map(|entry| entry.verb.as_str()), Some("completed"));
}

#[test]
fn only_an_earlier_holders_work_is_adopted() {
    let taken = "add; claim a; tick 17m; takeover b";
    check(&format!("{taken}; adopt b"), "ok; ok e1; ok; ok e2; ok");
    check(
        &format!("{taken}; adopt a; adopt b of=2; adopt b of=0"),
        "ok; ok e1; ok; ok e2; fenced; invalid_input; invalid_input",
    );
}

/// Who may review is the map's to say: nobody else can stop the work.
#[test]
fn the_map_names_the_reviewers() {
    let map = |more: &str| {
        format!(
            r#"map {{"routing":[{{"task_type":"build","agent_name":"@a","workstation":"ws-a"}},{{"task_type":"verification","agent_name":"@v","workstation":"ws-v"}}],"roles":{{"ops":{{"workers":["@b"]}}}}{more}}}"#
        )
    };
    let held = "add type=build; claim a";
    let said = "review b says=rejected; review v says=rejected; review p says=rejected";
    check(&format!("{}; {held}; {said}", map("")), "ok; ok; ok e1; routing_denied; ok; ok");
    check(
        &format!("{}; {held}; {said}", map(r#","reviewers":["@b"]"#)),
        "ok; ok; ok e1; ok; routing_denied; ok",
    );
    check(&format!("{}; add role=ops; claim p; {said}", map("")), "ok; ok; ok e1; ok; ok; self_review");
    check(
        &format!("{}; {held}; review b says=rejected; complete a", map("")),
        "ok; ok; ok e1; routing_denied; ok",
    );
    check("map invalid; add; claim! p; review b; review q", "ok; ok; ok e1 forced; map_invalid; ok");
}
