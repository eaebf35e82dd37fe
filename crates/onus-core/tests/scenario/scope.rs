//! Two live assignments never overlap in scope.

use crate::tests::support::script::{check, refusal};

#[test]
fn an_overlap_with_a_live_assignment_is_refused() {
    let two = "add scope=src/**; claim a; add scope=src/login; claim b";
    check(&format!("{two}; state"), "ok; ok e1; ok; scope_overlap; open");
    let told = refusal(two);
    assert_eq!(told.detail, "`src/login` is also in the scope of T-1, held by @a");
    assert_eq!(told.hint.as_deref(), Some("take other work: onus ready, or wait for T-1: onus show T-1"));
    check("add scope=src/api; claim a; add scope=src/login; claim b", "ok; ok e1; ok; ok e1");
    check(
        "add scope=docs+src/*.rs; claim a; add scope=tests+src/m*; claim b",
        "ok; ok e1; ok; scope_overlap",
    );
    check("add scope=docs+src/*.rs; claim a; add scope=tests+src/*.py; claim b", "ok; ok e1; ok; ok e1");
}

#[test]
fn every_overlap_is_a_finding() {
    check(
        "add scope=a; claim a; add scope=b; claim b; add scope=c; claim q; add scope={a,b}/*; claim p",
        "ok; ok e1; ok; ok e1; ok; ok e1; ok; scope_overlap+scope_overlap",
    );
    check(
        "add scope=a; claim a; add scope=a on=1; claim b ws=a",
        "ok; ok e1; ok; dependency_incomplete+workstation_busy+scope_overlap",
    );
}

#[test]
fn a_task_without_a_scope_overlaps_nothing() {
    check("add; claim a; add scope=**; claim b; add; claim p", "ok; ok e1; ok; ok e1; ok; ok e1");
}

#[test]
fn an_assignment_is_live_until_it_ends() {
    let held = "add scope=a; claim a; add scope=a";
    check(&format!("{held}; tick 2d; claim b"), "ok; ok e1; ok; ok; scope_overlap");
    check(&format!("{held}; block a #1; claim b"), "ok; ok e1; ok; ok; scope_overlap");
    check(&format!("{held}; block a #1 free; claim b"), "ok; ok e1; ok; ok; ok e1");
    check(&format!("{held}; release a #1; claim b; claim a #1"), "ok; ok e1; ok; ok; ok e1; scope_overlap");
    check(&format!("{held}; complete a #1; claim b"), "ok; ok e1; ok; ok; ok e1");
    check(&format!("{held}; drop p #1; claim b"), "ok; ok e1; ok; ok e2; ok e1");
}

#[test]
fn a_takeover_keeps_the_scope_and_meets_the_others() {
    check("add scope=a; claim a; tick 16m; takeover b", "ok; ok e1; ok; ok e2");
    check(
        "add scope=a; claim a; add scope=a; claim! p; tick 16m; takeover b #1",
        "ok; ok e1; ok; ok e1 forced; ok; scope_overlap",
    );
}

#[test]
fn a_persons_force_steps_over_it() {
    check("add scope=a; claim a; add scope=a; claim! p", "ok; ok e1; ok; ok e1 forced");
    check(
        "add scope=a; claim a; add scope=a; claim! p; takeover! q #1",
        "ok; ok e1; ok; ok e1 forced; ok e2 forced",
    );
    check("add scope=a; claim a; add scope=a; claim! b", "ok; ok e1; ok; human_required");
}

#[test]
fn a_refused_overlap_is_on_record() {
    check("add scope=a; claim a; add scope=a; claim b; verbs", "ok; ok e1; ok; scope_overlap; added refused");
}

#[test]
fn an_ask_with_a_bad_glob_is_refused() {
    check("add scope=src/[a; add scope=a**; add scope=a//b", "invalid_input; invalid_input; invalid_input");
    check("add scope=src/[a+..+ok+{x", "invalid_input+invalid_input+invalid_input");
    assert_eq!(refusal("add scope=../x").detail, "the scope `../x` must be a path inside the repository");
    let long = format!("add scope={}", vec!["a".repeat(500); 9].join("+"));
    assert_eq!(refusal(&long).detail, "the scope has 4536 letters; the limit is 4096: name directories");
}
