//! Limits hold agents: at the grant and while they work. A person's word gives a task one more helping.

use crate::tests::support::script::{check, refusal, story};

#[test]
fn an_agent_gets_no_task_that_has_used_up_its_limit() {
    check(
        "limit task tokens=100; add; claim a; uses 99; release a; claim b; uses 1; release b; claim a; state",
        "ok; ok; ok e1; ok; ok; ok e2; ok; ok; budget_exceeded; open",
    );
    let told = refusal("limit task tokens=100; add; claim a; uses 120; release a; claim b");
    assert_eq!(told.detail, "T-1 has used 120 of 100 tokens");
    let hint = "take other work: onus ready; or a person runs: onus claim T-1 --for @b --force --reason TEXT; or raise \
                limits.task in onus.yaml";
    assert_eq!(told.hint.as_deref(), Some(hint));
}

#[test]
fn every_limit_that_is_reached_is_told_at_once_and_those_of_all_tasks_first() {
    let told = refusal(
        "limit task tokens=10; limit task turns=1; limit task attempts=1; limit worker tokens=10; add; claim a; uses 10; \
         release a; claim a",
    );
    let all: Vec<&str> = told.findings.iter().map(|finding| finding.detail.as_str()).collect();
    assert_eq!(
        all,
        [
            "@a has used 10 of 10 tokens today",
            "T-1 has used 10 of 10 tokens",
            "T-1 has used 1 of 1 turns",
            "T-1 has used 1 of 1 attempts"
        ]
    );
    assert_eq!(told.findings[0].kind.as_deref(), Some("worker_day"));
}

#[test]
fn each_scope_counts_its_own() {
    check(
        "limit worker tokens=50; add; claim a; uses 50; release a; claim a; claim b",
        "ok; ok; ok e1; ok; ok; budget_exceeded; ok e2",
    );
    check(
        "limit sprint tokens=50; add sprint=s; add sprint=s; add; claim a #1; uses 50; release a #1; claim a #2; claim a #3",
        "ok; ok; ok; ok; ok e1; ok; ok; budget_exceeded; ok e1",
    );
    check(
        "limit task time=10m; add; claim a; tick 9m; release a; claim a; tick 1m; release a; claim a",
        "ok; ok; ok e1; ok; ok; ok e2; ok; ok; budget_exceeded",
    );
    check(
        "limit task attempts=2; add; claim a; release a; claim a; complete a; reopen p; claim a; release a; claim a",
        "ok; ok; ok e1; ok; ok e2; ok; ok e3; ok e4; ok; budget_exceeded",
    );
}

#[test]
fn people_are_not_held_and_what_they_work_is_not_counted() {
    check(
        "limit task tokens=10; add; claim a; uses 10; release a; claim p; uses 500; release p; claim a",
        "ok; ok; ok e1; ok; ok; ok e2; ok; ok; budget_exceeded",
    );
    check(
        "limit task time=1m; add; claim p; tick 2h; renew p; release p; claim a",
        "ok; ok; ok e1; ok; ok; ok; ok e2",
    );
}

#[test]
fn whoever_works_beyond_a_limit_is_not_renewed_but_may_still_end_well() {
    let over = "limit task tokens=10; add; claim a; uses 10";
    for (verb, answer) in [
        ("renew a", "budget_exceeded"),
        ("note a", "ok"),
        ("handoff a", "ok"),
        ("block a", "ok"),
        ("release a", "ok"),
        ("complete a", "ok"),
    ] {
        check(&format!("{over}; {verb}"), &format!("ok; ok; ok e1; ok; {answer}"));
    }
    let told = refusal(&format!("{over}; renew a"));
    assert!(told.hint.unwrap().contains("onus block T-1 --on person:@p --release-lease"));
    // An attempt that is under way has not failed.
    check("limit task attempts=1; add; claim a; renew a", "ok; ok; ok e1; ok");
}

#[test]
fn an_answer_gives_the_task_one_more_helping() {
    let stopped = "limit task tokens=10; add; claim a; uses 12; block a on=person:@p free";
    check(
        &format!("{stopped}; claim a; unblock p; claim a; uses 9; renew a; uses 1; renew a; verbs"),
        "ok; ok; ok e1; ok; ok; not_claimable; ok; ok e2; ok; ok; ok; budget_exceeded; added claimed blocked limits_lifted \
         unblocked claimed renewed refused",
    );
    check(
        &format!("{stopped}; say p; claim a; verbs"),
        "ok; ok; ok e1; ok; ok; ok; ok e2; added claimed blocked messaged limits_lifted unblocked claimed",
    );
    let entries = story(stopped);
    assert!(entries.last().unwrap().data.contains("T-1 has used 12 of 10 tokens"), "{entries:#?}");
    // A question that is about something else lifts nothing.
    check(
        "limit task tokens=10; add; claim a; block a on=person:@p free; unblock p; verbs",
        "ok; ok; ok e1; ok; ok; added claimed blocked unblocked",
    );
}

#[test]
fn a_grant_by_force_is_a_word_for_the_limits_as_well() {
    check(
        "limit worker tokens=10; add; add; claim a; uses 10; release a; assign! p to=a; renew a; release a; claim a #1; \
         verbs",
        "ok; ok; ok; ok e1; ok; ok; ok e2 forced; ok; ok; budget_exceeded; added claimed released limits_lifted claimed \
         renewed released",
    );
    check("limit task tokens=10; add; claim! p; verbs", "ok; ok; ok e1 forced; added claimed");
    check(
        "limit task tokens=10; add; claim a; uses 10; release a; claim! a",
        "ok; ok; ok e1; ok; ok; human_required",
    );
}
